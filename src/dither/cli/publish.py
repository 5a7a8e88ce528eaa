"""``dither publish``: tables that add up, from a plan, for one charge."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dither.cli import charges
from dither.cli.files import Outputs, of_card
from dither.cli.guard import as_options
from dither.cli.opening import open_table, read_card
from dither.cli.printing import busy, echo
from dither.cli.printing import table as print_table
from dither.cli.tables import parsed_limit
from dither.errors import InvalidArgument
from dither.publish.plan_file import card_path, draft_plan, plan_of, read_plan
from dither.publish.publication import DESCRIPTION, FORMATS, RECORDS, Publication, file_names, writers
from dither.publish.publication_plan import Plan, PlanExplanation, table_lines


@dataclass(frozen=True)
class Cost:
    """What the options say about the budget."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None

    def as_arguments(self) -> dict[str, Any]:
        """For a plan's methods."""
        return {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}


@dataclass(frozen=True)
class PublishOptions:
    """What is to become of a publication."""

    output: str | None = None
    format: str = "csv"
    force: bool = False
    json: bool = False
    analyst: str | None = None
    key: str | None = None
    again: bool = False
    receipt: str | None = None
    max_rows: str | None = None
    bias: bool = False
    report: str | None = None

    @property
    def changes(self) -> dict[str, Any]:
        """What the options say in place of the plan."""
        stated = parsed_limit("--max-rows", self.max_rows)
        return {**({} if stated is None else {"max_rows": stated}), **({"bias": True} if self.bias else {})}


def dry_run(path: str, cost: Cost, options: PublishOptions) -> None:
    """Print every table's expected ±; nothing is read or charged."""
    with _opened(path, options, read_only=True) as (plan, _):
        explanation = plan.explain(**cost.as_arguments(), analyst=options.analyst)
    if options.json:
        echo(json.dumps(_as_json(explanation), ensure_ascii=False, indent=1))
    else:
        _print(explanation)


def publish(path: str, cost: Cost, options: PublishOptions) -> None:
    """Release a plan, and write its files or print its tables."""
    if options.format not in FORMATS:
        raise InvalidArgument("--format", "csv or parquet", repr(options.format[:20]), "leave it out for csv")
    with _opened(path, options, read_only=False) as (plan, card):
        protected = of_card(card, plan.table.card) | {Path(path)}
        with _folder(options.output), Outputs(force=options.force, protected=protected) as outputs:
            for name in _files(plan, options.format) if options.output is not None else ():
                outputs.add(_option(name), os.path.join(options.output or "", name))
            outputs.add("--report", options.report, ("html", "htm"))
            with charges.explaining_failures(str(plan.table.card.ledger), plan.table.card.name, "publication"):
                publication = plan.release(
                    **cost.as_arguments(), analyst=options.analyst, key=options.key, again=options.again
                )
                if publication.has_whole_counts:
                    with busy("making whole counts…"):
                        publication.counts.table([])
                _write(publication, outputs, options)
                outputs.write("--report", lambda room: _write_page(room, publication, plan))


def draft(card: str, output: str | None, about: str | None, force: bool) -> None:
    """Write a draft of a plan from a card."""
    description = read_card(card)
    path = output if output is not None else str(Path(card).with_name(f"{Path(card).stem}_plan.toml"))
    from_plan = os.path.relpath(card, Path(path).absolute().parent)
    text = draft_plan(description, from_plan, about)
    with Outputs(force=force, protected=of_card(card, description)) as outputs:
        outputs.add("--output", path, ("toml",))
        outputs.write("--output", lambda room: Path(room).write_text(text, encoding="utf-8"))
    echo(f"{path}: a draft, from the card only. Choose the tables, then: dither publish {path} --dry-run")


@contextmanager
def _opened(path: str, options: PublishOptions, *, read_only: bool) -> Iterator[tuple[Plan, str]]:
    """The plan with its table, open, and the path of its card."""
    place = Path(path)
    given, folder = {**read_plan(place), **options.changes}, place.absolute().parent
    card = str(card_path(given, folder))
    with open_table(card, receipt=None if read_only else options.receipt, read_only=read_only) as table:
        yield plan_of(given, table, folder), card


def _files(plan: Plan, format: str) -> list[str]:
    """The files that a publication of this plan will have."""
    names = [item.by for item in plan.wanted]
    return [*file_names(names, format), *([RECORDS] if plan.marginal.has_whole_counts else []), DESCRIPTION]


def _option(name: str) -> str:
    return f"--output ({name})"


@contextmanager
def _folder(path: str | None) -> Iterator[None]:
    """The folder that is written to; one that was made for nothing is removed again."""
    if path is None:
        yield
        return
    target = Path(path)
    missing = not target.is_dir()
    if missing:
        try:
            target.mkdir()
        except (OSError, ValueError):
            expected = "a folder, or the name of a new one in a folder that can be written"
            raise InvalidArgument("--output", expected, "another", "pass --output tables") from None
    try:
        yield
    finally:
        if missing:
            with suppress(OSError):  # not empty: something was written
                target.rmdir()


def _write(publication: Publication, outputs: Outputs, options: PublishOptions) -> None:
    """Write the files and say what was published; without a folder, print the tables."""
    if options.output is not None:
        files = writers(publication, options.format)
        for name, write in files.items():
            outputs.write(_option(name), write)
        if options.json:
            echo(Path(options.output, DESCRIPTION).read_text(encoding="utf-8"), end="")
        echo(publication, err=True)
        echo(f"written to {options.output}: {', '.join(files)}", err=True)
        return
    if options.json:
        echo(json.dumps(_tables_as_json(publication), ensure_ascii=False, default=str))
        return
    echo(publication)
    for levels in publication.tables:
        echo()
        _print_table(publication, publication.names_of(levels))
    echo("--output FOLDER writes all of it, with records", err=True)


def _write_page(place: str, publication: Publication, plan: Plan) -> None:
    from dither.present import write_html

    write_html(place, publication, f"Tables of {plan.card.name}")


MOST_LINES = 20


def _print_table(publication: Publication, names: tuple[str, ...]) -> None:
    """The first lines of a table."""
    from dither.present.digits import rounded, two_digit_decimals, two_digits

    table = publication.table(*names)
    lines = []
    for row in table.slice(0, MOST_LINES).to_pylist():
        error = (row["upper"] - row["lower"]) / 2
        decimals = two_digit_decimals(error) if error > 0 else 0
        whole = [f"{row['integer']:,}"] if "integer" in row else []
        keys = ["NULL" if row[name] is None else row[name] for name in names]
        lines.append(
            [*keys, rounded(row["value"], decimals), f"± {two_digits(error)}" if error > 0 else "± 0 (public)", *whole]
        )
    print_table([*names, "value", "± (95 %)", *(["whole"] if publication.has_whole_counts else [])], lines)
    if table.num_rows > MOST_LINES:
        echo(f"… and {table.num_rows - MOST_LINES:,} more")


def _print(explanation: PlanExplanation) -> None:
    """An explanation, its tables in columns."""
    echo(f"cost: {explanation.cost}; left: {explanation.remaining}")
    if explanation.refused:
        echo(as_options(f"would be refused: {explanation.refused}"))
    echo()
    print_table(*table_lines(explanation.tables))
    echo()
    for note in explanation.notes:
        echo(str(note))


def _as_json(explanation: PlanExplanation) -> dict[str, Any]:
    tables = [
        {
            "table": item.name,
            "cells": item.cells,
            "error": item.error,
            "largest_error": item.largest_error,
            **({"times": "max_rows"} if item.for_one_row else {}),
        }
        for item in explanation.tables
    ]
    return {
        "cost": str(explanation.cost),
        "left": str(explanation.remaining),
        "refused": explanation.refused or None,
        "tables": tables,
        "notes": [*map(str, explanation.notes)],
    }


def _tables_as_json(publication: Publication) -> dict[str, Any]:
    names = [publication.names_of(levels) for levels in publication.tables]
    return {
        "cost": str(publication.cost),
        "left": "" if publication.remaining is None else str(publication.remaining),
        "receipt": publication.receipt,
        "replayed": publication.replayed,
        "max_rows": publication.max_rows,
        "left_out": None if publication.left_out is None else vars(publication.left_out),
        "tables": [{"by": [*name], "rows": publication.table(*name).to_pylist()} for name in names],
        "notes": [*map(str, publication.notes)],
    }
