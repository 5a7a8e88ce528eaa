"""``dither publish``, ``dither synthesize`` and ``dither series``: many released numbers for one charge."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from dither.cli.files import OutputFiles, of_card, open_table, read_card
from dither.cli.guard import explaining_failures
from dither.cli.options import PublishOptions, SeriesOptions, SynthesizeOptions
from dither.cli.printing import busy, echo, is_terminal
from dither.cli.printing import table as print_table
from dither.errors import InvalidArgument
from dither.present.notes import Note
from dither.publish.plan_file import card_path, draft_plan, plan_of, read_plan
from dither.publish.publication import DESCRIPTION, FORMATS, RECORDS, Publication, file_names, write_table, writers
from dither.publish.publication_plan import Plan, PlanExplanation, table_lines
from dither.publish.synthesizer import check_rows
from dither.publish.synthetic_table import SyntheticPlan, SyntheticRecords, synthetic_plan
from dither.stream.series import named_series
from dither.stream.series_answer import SeriesAnswer
from dither.tables.table import Table

RECORD_FORMATS = ("parquet", "csv")
MOST_LINES = 20
"""The most lines of a table that are printed."""


def explain_plan(path: str, options: PublishOptions) -> None:
    """Print the expected ± of every table of the plan in the file ``path``, as text or JSON; nothing is read or
    charged.
    """
    with _opened(path, options, read_only=True) as (plan, _):
        explanation = plan.explain(**options.cost, analyst=options.analyst)
    if options.json:
        echo(json.dumps(_as_json(explanation), ensure_ascii=False, indent=1))
    else:
        _print_plan(explanation)


def publish(path: str, options: PublishOptions) -> None:
    """Release the plan in the file ``path``, and write its files or print its tables.

    The files that ``options.output`` and ``options.report`` ask for are checked before the charge, and written after
    it.
    """
    if options.format not in FORMATS:
        raise InvalidArgument("--format", "csv or parquet", repr(options.format[:20]), "leave it out for csv")
    with _opened(path, options, read_only=False) as (plan, card):
        protected = of_card(card, plan.table.card) | {Path(path)}
        with _folder(options.output), OutputFiles(force=options.force, protected=protected) as outputs:
            for name in _files(plan, options.format) if options.output is not None else ():
                outputs.add(_option(name), os.path.join(options.output or "", name))
            outputs.add("--report", options.report, ("html", "htm"))
            with explaining_failures(str(plan.table.card.ledger), plan.table.card.name, "publication"):
                publication = plan.release(
                    **options.cost, analyst=options.analyst, key=options.key, again=options.again
                )
                if publication.has_whole_counts:
                    with busy("making whole counts…"):
                        publication.counts.table([])
                _write_publication(publication, outputs, options)
                title = f"Tables of {plan.card.name}"
                outputs.write("--report", lambda room: _write_page(room, publication, title))


def draft(card: str, output: str | None, about: str | None, force: bool) -> None:
    """Write a draft of a plan for the card at the path ``card``.

    ``output`` is the file to write, None for ``<card>_plan.toml`` beside the card. ``about`` is the private table, of a
    card with several (None: the first), and ``force`` allows an existing file to be overwritten.
    """
    description = read_card(card)
    path = output if output is not None else str(Path(card).with_name(f"{Path(card).stem}_plan.toml"))
    from_plan = os.path.relpath(card, Path(path).absolute().parent)
    text = draft_plan(description, from_plan, about)
    with OutputFiles(force=force, protected=of_card(card, description)) as outputs:
        outputs.add("--output", path, ("toml",))
        outputs.write("--output", lambda room: Path(room).write_text(text, encoding="utf-8"))
    echo(f"{path}: a draft, from the card only. Choose the tables, then: dither publish {path} --dry-run")


@contextmanager
def _opened(path: str, options: PublishOptions, *, read_only: bool) -> Iterator[tuple[Plan, str]]:
    """Open the plan in the file ``path`` and the table of its card, and yield the plan and the path of its card.

    ``options`` may replace entries of the plan (``changes``) and hold a receipt, which is ignored if ``read_only``.
    """
    file = Path(path)
    given, folder = {**read_plan(file), **options.changes}, file.absolute().parent
    card = str(card_path(given, folder))
    with open_table(card, receipt=None if read_only else options.receipt, read_only=read_only) as table:
        yield plan_of(given, table, folder), card


def _files(plan: Plan, format: str) -> list[str]:
    """Return the names of the files that a publication of this plan has."""
    names = [item.by for item in plan.wanted]
    return [*file_names(names, format), *([RECORDS] if plan.marginal.has_whole_counts else []), DESCRIPTION]


def _option(name: str) -> str:
    """Return how messages name a file in the output folder."""
    return f"--output ({name})"


@contextmanager
def _folder(path: str | None) -> Iterator[None]:
    """Create the output folder ``path`` for the block, unless it is None; remove it afterwards if nothing was
    written."""
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
            raise InvalidArgument("--output", expected, "a path that is neither", "pass --output tables") from None
    try:
        yield
    finally:
        if missing:
            with suppress(OSError):  # not empty: something was written
                target.rmdir()


def _write_publication(publication: Publication, outputs: OutputFiles, options: PublishOptions) -> None:
    """Write the files of a publication to ``options.output``, or print its tables if there is no output folder.

    With an output folder, what is printed goes to standard error, except the description that ``options.json`` asks
    for.
    """
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


def _write_page(path: str, result: Publication | SyntheticRecords | SeriesAnswer, title: str, **more: Any) -> None:
    """Write the HTML page about a result to a file; ``more`` are further arguments of :func:`dither.present.html`."""
    from dither.present import write_html

    write_html(path, result, title, **more)


def _print_table(publication: Publication, names: tuple[str, ...]) -> None:
    """Print the first rows of the published table with the key columns ``names``: values, the half-widths of their
    intervals as ±, and whole counts if there are any. A ± of 0 means that the number was public."""
    from dither.present.text import rounded, two_digit_decimals, two_digits

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


def _print_plan(explanation: PlanExplanation) -> None:
    """Print cost, tables and notes of an explained plan."""
    echo(f"cost: {explanation.cost}; left: {explanation.remaining}")
    if explanation.refused:
        echo(f"would be refused: {explanation.refused}")
    echo()
    print_table(*table_lines(explanation.tables))
    echo()
    for note in explanation.notes:
        echo(str(note))


def _as_json(explanation: PlanExplanation) -> dict[str, Any]:
    """Convert an explained plan to JSON."""
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
    """Convert a publication with all its tables to JSON."""
    names = [publication.names_of(levels) for levels in publication.tables]
    return {
        "cost": str(publication.cost),
        "left": "" if publication.remaining is None else str(publication.remaining),
        "receipt": publication.receipt,
        "replayed": publication.replayed,
        "max_rows": publication.max_rows,
        "left_out": None if publication.clipped_share is None else vars(publication.clipped_share),
        "tables": [{"by": [*name], "rows": publication.table(*name).to_pylist()} for name in names],
        "notes": [*map(str, publication.notes)],
    }


def explain_synthesis(path: str, options: SynthesizeOptions) -> None:
    """Print columns, bins, tables and cost of a synthesis for the card at ``path``; nothing is read or charged."""
    check_rows(options.rows)
    with open_table(path, read_only=True) as table:
        for line in _synthetic_plan(table, options).explain(analyst=options.analyst).splitlines():
            echo(line)


def synthesize(path: str, options: SynthesizeOptions) -> None:
    """Release synthetic records for the card at ``path``, and write or print them.

    Everything that can fail without the records, such as an existing output file, is checked before the charge.
    """
    check_rows(options.rows)
    card = read_card(path)
    with OutputFiles(force=options.force, protected=of_card(path, card)) as outputs:
        outputs.add("--output", options.output, RECORD_FORMATS)
        outputs.add("--report", options.report, ("html", "htm"))
        with open_table(path, card=card, receipt=options.receipt) as table:
            plan = _synthetic_plan(table, options)
            with explaining_failures(str(card.ledger), card.name, "publication"):
                with busy("counting and fitting…"):
                    released = plan.release(
                        rows=options.rows, analyst=options.analyst, key=options.key, again=options.again
                    )
                _write_records(released, plan, outputs, options)


def _synthetic_plan(table: Table, options: SynthesizeOptions) -> SyntheticPlan:
    """Build the plan of a synthesis from the options; ε is required, and a δ here or in the card."""
    if options.epsilon is None:
        raise InvalidArgument("--epsilon", "what to spend", "none", "pass --epsilon 1")
    delta = options.delta if options.delta is not None else table.card.delta
    if delta is None:
        raise InvalidArgument("--delta", "a delta, here or in the card", "none", "pass --delta 1e-9")
    columns = None
    if options.columns is not None:
        columns = [name.strip() for name in options.columns.split(",") if name.strip()]
    return synthetic_plan(
        table,
        columns,
        epsilon=options.epsilon,
        delta=delta,
        target=options.target,
        constraints=options.constraint,
        max_rows=options.max_rows,
        bias=options.bias,
        where=options.where,
        about=options.about,
    )


def _write_records(
    released: SyntheticRecords, plan: SyntheticPlan, outputs: OutputFiles, options: SynthesizeOptions
) -> None:
    """Write the ``released`` records or print them, write their page if ``options.report`` asks for it, and print the
    cost.
    """
    records = released.table
    ending = Path(options.output or "").suffix.lower().lstrip(".")
    outputs.write("--output", lambda room: write_table(records, room, ending))
    if options.output is None:
        _print_records(records)
    title = f"Synthetic records of {plan.counting.card.name}"
    outputs.write("--report", lambda room: _write_page(room, released, title, explanation=plan))
    paid = "replayed for free" if released.replayed else f"cost {plan.guarantee}"
    echo(f"{records.num_rows:,} synthetic records; {paid}; left: {released.remaining}", err=True)
    for note in (*released.notes, Note("rows_outside_domains")):
        echo(f"- {note}", err=True)
    for path in (options.output, options.report):
        if path is not None:
            echo(f"written to {path}", err=True)


def _print_records(records: Any) -> None:
    """Print the first records on a terminal, or all of them as CSV elsewhere."""
    if not is_terminal():
        from pyarrow import csv

        sys.stdout.flush()
        csv.write_csv(records, sys.stdout.buffer)
        return
    rows = records.slice(0, MOST_LINES).to_pylist()
    lines = [["NULL" if value is None else value for value in row.values()] for row in rows]
    print_table(records.column_names, lines)
    if records.num_rows > MOST_LINES:
        echo(f"… and {records.num_rows - MOST_LINES:,} more: --output records.parquet writes all, for free")


def explain_series(card: str, name: str, options: SeriesOptions) -> None:
    """Print the cost of the series ``name`` of a card and its ± over time, as text or JSON; nothing is read or
    charged."""
    with open_table(card, read_only=True) as table:
        explanation = named_series(table, name).explain(window=options.window, analyst=options.analyst)
    if options.json:
        shown = {
            "cost": str(explanation.cost),
            "left": str(explanation.remaining),
            "refused": explanation.refused or None,
        }
        lines = {"periods": explanation.periods, "errors": explanation.errors, "notes": [*map(str, explanation.notes)]}
        echo(json.dumps({**shown, **lines}, ensure_ascii=False))
    else:
        echo(str(explanation))


def release_series(card: str, name: str, options: SeriesOptions) -> None:
    """Release the series ``name`` of a card up to the period ``options.through``, and print or write its points."""
    with open_table(card, receipt=options.receipt, read_only=False) as table:
        series = named_series(table, name)
        with OutputFiles(force=options.force, protected=of_card(card, table.card)) as outputs:
            outputs.add("--output", options.output, ("csv", "json", "parquet"))
            outputs.add_plot(options.plot)
            outputs.add("--report", options.report, ("html", "htm"))
            with explaining_failures(str(table.card.ledger), table.card.name, "series"):
                answer = series.release(options.through, window=options.window, analyst=options.analyst)
                outputs.write("--output", answer.write)
                outputs.write_plot(lambda axes: answer.plot(axes=axes), 9.0)
                title = f"{answer.name or 'A series'} of {table.card.name}"
                outputs.write("--report", lambda room: _write_page(room, answer, title))
    if options.json:
        echo(answer.to_json())
        return
    _print_series(answer)
    written = [item for item in (options.output, options.plot, options.report) if item is not None]
    if written:
        echo(f"written: {', '.join(written)}", err=True)


def _print_series(answer: SeriesAnswer) -> None:
    """Print the last points of a series, and what they cost."""
    last = max(0, len(answer.rows) - MOST_LINES)
    if last:
        echo(f"{len(answer.rows):,} points, the last {MOST_LINES}; --output FILE has all:", err=True)
    errors = {name: values[last:] for name, values in answer.errors.items()}
    echo(replace(answer, rows=answer.rows[last:], errors=errors).text())
