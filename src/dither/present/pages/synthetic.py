"""The page about synthetic records: their guarantee, and how close they are to the released tables.

Everything on it is computed from the noisy tables and the records. No record is compared with a private row.
"""

from __future__ import annotations

from collections.abc import Sequence

from dither.present.chart import Axis, Chart, Mark
from dither.present.pages import sheet
from dither.present.pages.answer import promise as promise_of
from dither.present.text import significant
from dither.publish.record_values import RecordColumn
from dither.publish.synthesizer import Synthesis, TableComparison, column_comparisons, comparisons
from dither.publish.synthetic_table import SyntheticPlan, SyntheticRecords

MAX_TABLES = 100
MAX_CHARTS = 40
_FEW_KEYS = 16
_HALF_WIDTH = 1.959964
"""The half-width of a 95 % interval of the normal law, in standard deviations."""

_NOT_PROMISED = (
    "Relations that no measured table shows are not in the records: columns that were never measured together are "
    "related only through other columns.",
    "Records are no more accurate than the measured tables: an analysis of them should add the noise to its errors.",
    "No record is a person. A record may resemble a person by coincidence, as any invented one may.",
)
_CLOSENESS = (
    "Each measured table was released with noise; ± is the error of one of its cells, at 95 %. “Records” is the share "
    "of all records that would have to be changed to give the released counts; “noise” is the share expected for exact "
    "counts, since the released ones are noisy. If the first is not much larger than the second, the records are as "
    "close as the released tables can show; if it is smaller, they follow some of the noise."
)


def synthetic_page(released: Synthesis | SyntheticRecords, title: str, plan: SyntheticPlan | None = None) -> str:
    """Render the page of the ``released`` synthetic records with this ``title``.

    It shows the rules and the notes of the ``plan`` if one is given, and what is left of the budget if the records were
    released through a ledger.
    """
    synthesis = released if isinstance(released, Synthesis) else released.synthesis
    constraints, notes = ((), []) if plan is None else (plan.constraints, [*plan.notes])
    measured = comparisons(synthesis)
    cost = str(synthesis.guarantee)
    summary = [
        ("records", f"{synthesis.records.num_rows:,} of {len(synthesis.columns)} columns"),
        ("measured", f"{len(measured)} tables in {len(synthesis.rounds)} measurements"),
        ("cost", cost),
    ]
    if isinstance(released, SyntheticRecords):
        summary += [("left", str(released.remaining)), ("receipt", released.receipt)]
        notes += released.notes
    promise = f"{cost} for the records and this page together: {promise_of(synthesis.guarantee, 'them')}"
    return sheet.page(
        title,
        sheet.facts(summary),
        sheet.section("What is guaranteed", sheet.paragraph(promise)),
        sheet.section("Rules", sheet.paragraph("No record violates these:"), sheet.listed(constraints))
        * bool(constraints),
        _columns(synthesis),
        sheet.section("How close the records are", sheet.paragraph(_CLOSENESS), _closeness(measured)),
        sheet.section("What is not promised", sheet.listed(_NOT_PROMISED)),
        sheet.section("Notes", sheet.listed(notes)) * bool(notes),
    )


def _closeness(measured: Sequence[TableComparison]) -> str:
    """Render how far the records are from each measured table, worst fit first."""
    rows = [
        (
            " × ".join(item.names),
            f"{item.noisy.size:,}",
            f"± {significant(_HALF_WIDTH * item.sigma, 2)}",
            f"{100 * item.distance:.1f} %",
            f"{100 * item.expected_distance:.1f} %",
        )
        for item in sorted(measured, key=lambda item: item.expected_distance - item.distance)[:MAX_TABLES]
    ]
    more = "" if len(measured) <= MAX_TABLES else f" The first {MAX_TABLES} of {len(measured)}."
    headings = ("table", "cells", "±", "records", "noise")
    return sheet.table(headings, rows, f"The tables that fit worst come first.{more}", [False, True, True, True, True])


def _columns(synthesis: Synthesis) -> str:
    """Render a chart for each column that was measured alone."""
    items = column_comparisons(synthesis)
    more = "" if len(items) <= MAX_CHARTS else f" The first {MAX_CHARTS} of {len(items)} columns."
    legend = f"Bars are released counts with their 95 % intervals, points are counts of the records.{more}"
    charts = [_chart(item, synthesis.columns[item.table[0]]) for item in items[:MAX_CHARTS]]
    figures = sheet.side_by_side(sheet.figure(chart, width=340, height=110) for chart in charts)
    return sheet.section("Columns", sheet.paragraph(legend), figures)


def _chart(item: TableComparison, column: RecordColumn) -> Chart:
    """Build the chart of a column: released counts and counts of the records, in rows, or as a plane for many keys."""
    keys = [column.label(code) for code in range(len(item.noisy))]
    last = len(keys) - 1
    few = last < _FEW_KEYS
    name = column.attribute.name
    errors = (_HALF_WIDTH * item.sigma,) * len(keys)
    records = item.records.tolist()
    return Chart(
        f"{name}: released counts and counts of the records",
        (
            Mark(tuple(item.noisy.tolist()), style="bars", errors=errors, color=11),
            Mark(tuple(records), style="points", texts=tuple(f"{count:,.0f}" for count in records), color=0),
        ),
        Axis() if few else Axis(low=-0.5, high=last + 0.5, ticks=((0, keys[0]), (last, keys[-1]))),
        Axis(low=0.0),
        categories=tuple(keys) if few else (),
        heading=name,
    )
