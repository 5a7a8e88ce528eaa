"""``dither series``: a dashboard that stays private all year, released period by period for one charge."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from dither.cli import charges, plots
from dither.cli.files import Outputs, of_card
from dither.cli.guard import as_options
from dither.cli.opening import open_table
from dither.cli.printing import echo
from dither.stream.series import named_series
from dither.stream.series_answer import SeriesAnswer

MOST_LINES = 20


@dataclass(frozen=True)
class SeriesOptions:
    """What is to be released, and what becomes of it."""

    through: str | None = None
    window: int | None = None
    output: str | None = None
    plot: str | None = None
    report: str | None = None
    json: bool = False
    force: bool = False
    analyst: str | None = None
    receipt: str | None = None


def dry_run(card: str, name: str, options: SeriesOptions) -> None:
    """Print the cost and the ± after some of the periods; nothing is read or charged."""
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
        echo(as_options(str(explanation)))


def release(card: str, name: str, options: SeriesOptions) -> None:
    """Release a series through a period, and print or write its points."""
    plots.check(options.plot)
    with open_table(card, receipt=options.receipt, read_only=False) as table:
        series = named_series(table, name)
        with Outputs(force=options.force, protected=of_card(card, table.card)) as outputs:
            outputs.add("--output", options.output, ("csv", "json", "parquet"))
            outputs.add("--plot", options.plot, plots.ENDINGS)
            outputs.add("--report", options.report, ("html", "htm"))
            with charges.explaining_failures(str(table.card.ledger), table.card.name, "series"):
                answer = series.release(options.through, window=options.window, analyst=options.analyst)
                outputs.write("--output", answer.write)
                outputs.write("--plot", lambda room: plots.save(room, lambda axes: answer.plot(axes=axes), 9.0))
                outputs.write("--report", lambda room: _write_page(room, answer, table.card.name))
    if options.json:
        echo(answer.to_json())
        return
    _print(answer)
    written = [item for item in (options.output, options.plot, options.report) if item is not None]
    if written:
        echo(f"written: {', '.join(written)}", err=True)


def _write_page(place: str, answer: SeriesAnswer, table: str) -> None:
    from dither.present import write_html

    write_html(place, answer, f"{answer.name or 'A series'} of {table}")


def _print(answer: SeriesAnswer) -> None:
    """The last points, and what they cost."""
    last = max(0, len(answer.rows) - MOST_LINES)
    if last:
        echo(f"{len(answer.rows):,} points, the last {MOST_LINES}; --output FILE has all:", err=True)
    errors = {name: values[last:] for name, values in answer.errors.items()}
    echo(replace(answer, rows=answer.rows[last:], errors=errors).text())
