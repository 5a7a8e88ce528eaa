"""Charts of a profile: bars of people with their bands, a chart for each column, as values that are drawn elsewhere.

Fine bins are shown as few wide ones: neighbors are added up until a dozen are left, those with the fewest people first,
and all that lies beyond the first and the last bin in which people are seen is one bin on either side. The ± of a sum
of k bins is that of k independent numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from typing import NamedTuple

from dither.present.chart import Axis, Chart, bars
from dither.present.text import percent, shown, with_error
from dither.tables.card.profile import ColumnProfile, NoisyHistogram, Profile, ProfileNoise, TableProfile

MOST_ROWS = 14
"""How many bars a chart has at most, beside those for what is beyond, for NULL and for other keys."""
_EPOCH = date(1970, 1, 1)


class Bar(NamedTuple):
    """A bar: its label, how many people or keys, and the half-width of the interval of 95 %."""

    label: str
    value: float
    error: float


def error_of(noise: ProfileNoise, numbers: int = 1) -> float:
    """Return what the noise of a sum of independent numbers exceeds in 5 of 100 cases.

    >>> round(error_of(NoisyNumber(0.0, scale=1.0)), 3), error_of(NoisyNumber(0.0, scale=1.0, normal=True), 4)
    (2.996, 3.92)
    """
    if numbers == 1 and not noise.normal:
        return math.log(20) * noise.scale
    return 1.96 * noise.deviation * math.sqrt(numbers)


def charts(profile: Profile) -> dict[str, dict[str, Chart]]:
    """Return the charts of every table, by the name of the column; that of people by their rows has the name ""."""
    return {name: table_charts(table) for name, table in profile.tables.items()}


def table_charts(table: TableProfile) -> dict[str, Chart]:
    """Return the charts of a table, by the name of the column; that of people by their rows has the name ""."""
    result: dict[str, Chart] = {}
    if table.people is not None:
        rows = _count_bars(table.people)
        result[""] = _chart("People by their number of rows", rows, _unseen(rows))
    for name, column in table.columns.items():
        rows = list(column_bars(column))
        of_keys = column.values is None and column.keys is None and column.private_keys is not None
        title = f"{name}: keys by people" if of_keys else f"{name}: people by value"
        result[name] = _chart(title, rows, [*_unseen(rows), *_facts(column)])
    return result


def _chart(title: str, rows: Sequence[Bar], notes: Iterable[str]) -> Chart:
    texts = [" ± ".join(with_error(round(bar.value) if bar.error > 3 else bar.value, bar.error)) for bar in rows]
    chart = bars(rows, title=title, heading=title, texts=texts, most=None, y=Axis(low=0.0))
    return replace(chart, note=" ".join(notes))


def _unseen(rows: Sequence[Bar]) -> list[str]:
    """Return what is said of a chart in which nothing can be told from noise."""
    return [] if any(bar.value > bar.error for bar in rows) else ["Nothing here can be told from noise."]


def _facts(column: ColumnProfile) -> list[str]:
    """Return what else is known of a column, in words."""
    result = []
    if column.whole is not None and column.values is not None:
        seen = sum(column.values.weights)
        if seen > error_of(column.values, len(column.values.weights)):
            share = min(max(column.whole.value / seen, 0.0), 1.0)
            result.append(f"Whole numbers: {percent(share)} ± {percent(error_of(column.whole) / seen)}.")
    if column.keys_per_person is not None:
        rows = [bar for bar in _count_bars(column.keys_per_person) if bar.value > bar.error]
        if rows:
            result.append(f"Most people have {max(rows, key=lambda bar: bar.value).label} of them.")
    return result


def column_bars(column: ColumnProfile) -> Iterable[Bar]:
    """Return the bars of a column: of its values, its public keys, or of keys that are not public by their people."""
    if column.values is not None:
        yield from _value_bars(column.values, column.type)
        if column.nulls is not None:
            yield Bar("NULL", column.nulls, error_of(column.values))
    elif column.keys is not None:
        error, size = error_of(column.keys), len(column.keys.keys)
        for key, weight in list(zip(column.keys.keys, column.keys.weights, strict=True))[:MOST_ROWS]:
            yield Bar(shown(key) or "''", weight, error)
        if size > MOST_ROWS:
            rest = column.keys.weights[MOST_ROWS:]
            yield Bar(f"{size - MOST_ROWS} more keys", sum(rest), error_of(column.keys, len(rest)))
        if column.nulls is not None:
            yield Bar("NULL", column.nulls, error)
    elif column.private_keys is not None:
        yield from _layer_bars(column.private_keys)


def _layer_bars(layers: NoisyHistogram) -> Iterable[Bar]:
    """Return about how many keys have at least 1, 2, 4, … people: between powers of 2, the mean of a layer."""
    error = error_of(layers)
    powers = [
        Bar(f"at least {shown(high)}", weight / (high - low), error / (high - low))
        for (low, high), weight in zip(pairwise(layers.edges), layers.weights, strict=True)
        if math.log2(high).is_integer()
    ]
    seen = [i for i, bar in enumerate(powers) if bar.value > bar.error]
    return powers[seen[0] : seen[-1] + 2] if seen else powers[-1:]


def _count_bars(people: NoisyHistogram) -> list[Bar]:
    """Return people by a number (of rows, of keys), in bins that end at powers of 2, up to the last that is seen."""
    rows: list[tuple[float, float, float, int]] = []  # from, to, weight, how many bins
    low = 1.0
    for edge, weight in zip(people.edges, people.weights, strict=True):
        if rows and math.ceil(math.log2(rows[-1][1])) == math.ceil(math.log2(edge)):
            first, _, sum_of, bins = rows[-1]
            rows[-1] = first, edge, sum_of + weight, bins + 1
        else:
            rows.append((low, edge, weight, 1))
        low = edge + 1
    shown_rows = [
        Bar(shown(first) if first == last else f"{first:,.0f} to {last:,.0f}", weight, error_of(people, bins))
        for first, last, weight, bins in rows
    ]
    last_seen = max((i for i, bar in enumerate(shown_rows) if bar.value > 1.5 * bar.error), default=0)
    rest = rows[last_seen + 1 :]
    result = shown_rows[: last_seen + 1]
    if rest:
        weight, bins = sum(item[2] for item in rest), sum(item[3] for item in rest)
        result.append(Bar(f"{rest[0][0]:,.0f} or more", weight, error_of(people, bins)))
    return result


def _value_bars(values: NoisyHistogram, type: str) -> Iterable[Bar]:
    """Return people by value, in at most a dozen bins and one on either side for all that lies beyond."""
    cells = [(low, high, weight, 1) for (low, high), weight in zip(pairwise(values.edges), values.weights, strict=True)]
    seen = [i for i, cell in enumerate(cells) if cell[2] > 3.5 * values.deviation]
    if not seen:
        return [
            Bar(f"{_label(values.edges[0], values.edges[-1], type)}", sum(values.weights), error_of(values, len(cells)))
        ]
    below, inner, above = cells[: seen[0]], cells[seen[0] : seen[-1] + 1], cells[seen[-1] + 1 :]
    while len(inner) > MOST_ROWS:
        place = min(range(len(inner) - 1), key=lambda i: inner[i][2] + inner[i + 1][2])
        inner[place : place + 2] = [_merged(inner[place : place + 2])]
    ends = [[_merged(part)] if part else [] for part in (below, above)]
    smallest = next((high for low, high, *_ in cells if low == 0), 0.0)  # the end of the bin of 0, if it has one

    def label(low: float, high: float) -> str:
        if (low, high) == (0.0, smallest) and type == "number":
            return "0"
        return _label(0.0 if low == smallest and type == "number" else low, high, type)

    return [Bar(label(low, high), weight, error_of(values, n)) for low, high, weight, n in [*ends[0], *inner, *ends[1]]]


def _merged(cells: Sequence[tuple[float, float, float, int]]) -> tuple[float, float, float, int]:
    return cells[0][0], cells[-1][1], sum(cell[2] for cell in cells), sum(cell[3] for cell in cells)


def _label(low: float, high: float, type: str) -> str:
    """Return the values of a bin in words: both ends are in it, but for the upper end of a bin of fractions.

    >>> _label(10, 15, "integer"), _label(0.0, 1e-9, "number"), _label(0.0, 31.0, "date")
    ('10 to 14', '0', '1970-01-01 to 1970-01-31')
    """
    if type in ("date", "timestamp"):
        first, last = (_EPOCH + timedelta(days=int(day)) for day in (low, high - 1))
        return str(first) if first >= last else f"{first} to {last}"
    if isinstance(low, int) and isinstance(high, int):
        return shown(low) if high - low <= 1 else f"{shown(low)} to {shown(high - 1)}"
    if low == 0 and high < 1e-6:
        return "0"
    return f"{shown(low)} to {shown(high)}"
