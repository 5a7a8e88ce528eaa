"""``dither synthesize``: synthetic records of a card's table, for one charge."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dither.cli import charges
from dither.cli.files import Outputs, of_card
from dither.cli.guard import as_options
from dither.cli.opening import open_table, read_card
from dither.cli.printing import busy, echo, is_terminal
from dither.cli.printing import table as print_table
from dither.cli.tables import parsed_limit
from dither.errors import InvalidArgument
from dither.present.notes import Note
from dither.publish.publication import write_table
from dither.publish.synthesizer import check_rows
from dither.publish.synthetic_table import SyntheticPlan, SyntheticRecords, synthetic_plan
from dither.tables.table import Table

FORMATS = ("parquet", "csv")
MOST_LINES = 20


@dataclass(frozen=True)
class Wanted:
    """What records are to be made."""

    epsilon: float | None = None
    delta: float | None = None
    columns: str | None = None
    target: str | None = None
    constraints: tuple[str, ...] = ()
    where: str | None = None
    max_rows: str | None = None
    about: str | None = None
    rows: int | None = None
    bias: bool = False


@dataclass(frozen=True)
class SynthesizeOptions:
    """Who asks, and what is to become of the records."""

    output: str | None = None
    report: str | None = None
    force: bool = False
    analyst: str | None = None
    key: str | None = None
    again: bool = False
    receipt: str | None = None


def dry_run(path: str, wanted: Wanted, options: SynthesizeOptions) -> None:
    """Print the columns, their bins, the tables and the cost; no rows are read, and nothing is charged."""
    check_rows(wanted.rows)
    with open_table(path, read_only=True) as table:
        for line in _plan(table, wanted).explain(analyst=options.analyst).splitlines():
            echo(as_options(line) if line.startswith("would be refused") else line)


def synthesize(path: str, wanted: Wanted, options: SynthesizeOptions) -> None:
    """Release, and write or print the records. Whatever can fail without them is tried before the charge."""
    check_rows(wanted.rows)
    card = read_card(path)
    with Outputs(force=options.force, protected=of_card(path, card)) as outputs:
        outputs.add("--output", options.output, FORMATS)
        outputs.add("--report", options.report, ("html", "htm"))
        with open_table(path, receipt=options.receipt) as table:
            plan = _plan(table, wanted)
            with charges.explaining_failures(str(card.ledger), card.name, "publication"):
                with busy("counting and fitting…"):
                    released = plan.release(
                        rows=wanted.rows, analyst=options.analyst, key=options.key, again=options.again
                    )
                _write(released, plan, outputs, options)


def _plan(table: Table, wanted: Wanted) -> SyntheticPlan:
    if wanted.epsilon is None:
        raise InvalidArgument("--epsilon", "what to spend", "none", "pass --epsilon 1")
    delta = wanted.delta if wanted.delta is not None else table.card.delta
    if delta is None:
        raise InvalidArgument("--delta", "a delta, here or in the card", "none", "pass --delta 1e-9")
    columns = None
    if wanted.columns is not None:
        columns = [name.strip() for name in wanted.columns.split(",") if name.strip()]
    return synthetic_plan(
        table,
        columns,
        epsilon=wanted.epsilon,
        delta=delta,
        target=wanted.target,
        constraints=wanted.constraints,
        max_rows=parsed_limit("--max-rows", wanted.max_rows),
        bias=wanted.bias,
        where=wanted.where,
        about=wanted.about,
    )


def _write(released: SyntheticRecords, plan: SyntheticPlan, outputs: Outputs, options: SynthesizeOptions) -> None:
    """Write or print the records, write the page, and say what it cost."""
    records = released.table
    ending = Path(options.output or "").suffix.lower().lstrip(".")
    outputs.write("--output", lambda room: write_table(records, room, ending))
    if options.output is None:
        _print(records)
    outputs.write("--report", lambda room: _write_page(room, released, plan))
    paid = "replayed for free" if released.replayed else f"cost {plan.guarantee}"
    echo(f"{records.num_rows:,} synthetic records; {paid}; left: {released.remaining}", err=True)
    for note in (*released.notes, Note("rows_outside_domains")):
        echo(f"- {note}", err=True)
    for place in (options.output, options.report):
        if place is not None:
            echo(f"written to {place}", err=True)


def _print(records: Any) -> None:
    """The first records on a terminal; all of them, as CSV, where a program reads."""
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


def _write_page(room: str, released: SyntheticRecords, plan: SyntheticPlan) -> None:
    from dither.present import write_html

    write_html(room, released, f"Synthetic records of {plan.counting.card.name}", explanation=plan)
