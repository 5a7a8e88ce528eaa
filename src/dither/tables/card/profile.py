"""A profile: a small noisy description of the private tables of a card, which was released once and is public.

Every histogram has weight 1 for a person, whatever the number of their rows: each of a person's N rows in a table
counts ``1 / N``. So the l1 sensitivity of a histogram is 1 when a person with all their rows is added or removed.
:mod:`dither.tables.profile` releases one; :mod:`dither.tables.compile.marginals` has the statements and the proofs.

Charts of a profile: bars of people with their bands, a chart for each column, as values that are drawn elsewhere.

Fine bins are shown as few wide ones: neighbors are added up until a dozen are left, those with the fewest people first,
and all that lies beyond the first and the last bin in which people are seen is one bin on either side. The ± of a sum
of k bins is that of k independent numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from dither.comparison import unhashable
from dither.guarantees import Guarantee
from dither.present import markup
from dither.present.chart import Axis, Chart, bars
from dither.present.text import percent, shown, with_error
from dither.public_module import public_in


@dataclass(frozen=True, kw_only=True)
class ProfileNoise:
    """The noise in each number of a part of a profile: Laplace noise of this scale, or normal noise whose standard
    deviation is the scale."""

    scale: float
    normal: bool = False

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in one number."""
        return self.scale if self.normal else math.sqrt(2) * self.scale


@dataclass(frozen=True)
class NoisyHistogram(ProfileNoise):
    """The noisy weights of people in bins.

    A bin goes from its edge up to the next one; the first and the last take in what is beyond, and there is an edge
    more than bins. In a histogram of people by a number (of rows, of keys) ``edges`` are the largest numbers of the
    bins, and as many as these.

    >>> NoisyHistogram((0, 10, 20), (103.0, 48.0), scale=4.0).deviation
    5.656854249492381
    """

    edges: tuple[float, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True)
class NoisyKeys(ProfileNoise):
    """The noisy weight of the people at each public key; a person whose rows have several keys is shared by them."""

    keys: tuple[Any, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True)
class NoisyNumber(ProfileNoise):
    """One noisy number of people, or sum of their weights."""

    value: float


@dataclass(frozen=True)
class ColumnProfile:
    """What is known of one column. A part that was not measured is None."""

    type: str = ""
    """The type of the column in the card."""
    values: NoisyHistogram | None = None
    """Weights of people by value, in whole numbers or doubles; of dates and timestamps in days since 1970-01-01."""
    keys: NoisyKeys | None = None
    """Weights of people by public key."""
    nulls: float | None = None
    """The weight of people whose value is NULL (or NaN), with the noise of a bin of ``values`` or a key of ``keys``."""
    whole: NoisyNumber | None = None
    """The weight of people whose value is a whole number, in a column of numbers."""
    by_rows: tuple[NoisyHistogram, ...] | None = None
    """``values`` for people of each class of rows per person (:attr:`TableProfile.classes`), in fewer bins."""
    private_keys: NoisyHistogram | None = None
    """How keys that are not public are shared: with the weight s of a key (the sum over its people), a bin from ``a``
    to ``b`` holds the sum over all keys of what s has between a and b. Divided by ``b - a`` it is at least the number
    of keys of weight b, and at most the number of keys above a. Weight above the last edge is in no bin."""
    keys_per_person: NoisyHistogram | None = None
    """People by the number of different keys they have, where the keys are not public."""


@dataclass(frozen=True)
class TableProfile:
    """What is known of one private table: people by their number of rows, and its columns."""

    people: NoisyHistogram | None
    """People by their number of rows; None where every row is a person of its own."""
    columns: Mapping[str, ColumnProfile] = field(default_factory=dict)
    total: NoisyNumber | None = None
    """How many people there are."""
    classes: tuple[int, ...] = ()
    """The largest numbers of rows of the classes of :attr:`ColumnProfile.by_rows`; the last takes in what is beyond."""


@public_in("dither")
@unhashable
@dataclass(frozen=True)
class Profile:
    """A noisy description of the private tables of a card, by their names in SQL; what planning uses.

    It was charged once, and everything that is computed from it is post-processing.

    >>> from dither.guarantees import PureDP
    >>> table = TableProfile(None, total=NoisyNumber(1012.0, scale=10.0))
    >>> Profile({"visits": table}, PureDP(0.1)).tables["visits"].total.value
    1012.0
    """

    tables: Mapping[str, TableProfile]
    cost: Guarantee
    released: datetime | None = None

    def text(self, width: int = 100) -> str:
        """Return it as text for a terminal: every column with bars of its people, and their bands."""
        from dither.present.drawing import terminal

        lines = []
        for name, table in self.tables.items():
            lines += [self.heading(name), ""]
            for chart in table_charts(table).values():
                lines += [terminal(chart, width), ""]
        return "\n".join([*lines, *self.facts()])

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: a chart for each column of each table."""

        parts = []
        for name, table in self.tables.items():
            parts.append(markup.heading(self.heading(name)))
            parts += [markup.picture(chart) for chart in table_charts(table).values()]
        return markup.block(*parts, markup.lines(self.facts()))

    def heading(self, name: str) -> str:
        """Return the name of a table and about how many people it has."""
        total = self.tables[name].total
        if total is None:
            return name

        value, error = with_error(round(total.value), error_of(total))
        return f"{name}: {value} ± {error} people"

    def facts(self) -> list[str]:
        """Return what it cost, when it was released, and what its numbers are."""
        when = [] if self.released is None else [f"released: {self.released:%Y-%m-%d}"]
        meaning = "Each person counts 1 in every chart, shared evenly by the person's rows; ± is the noise (95 %)."
        return [*when, f"cost: {self.cost}", meaning]


MOST_ROWS = 14
"""How many bars a chart has at most, beside those for what is beyond, for NULL and for other keys."""
_EPOCH = date(1970, 1, 1)


class Bar(NamedTuple):
    """A bar: its label, how many people or keys, and the half-width of the interval of 95 %."""

    label: str
    value: float
    error: float


class _Cell(NamedTuple):
    """Neighboring bins of a histogram as one: its range, the people in it, and the number of bins."""

    low: float
    high: float
    weight: float
    bins: int


def error_of(noise: ProfileNoise, numbers: int = 1) -> float:
    """Return the half-width of the 95 % interval for the noise of a sum of independent noisy numbers.

    >>> from dither.tables.card.profile import NoisyNumber
    >>> round(error_of(NoisyNumber(0.0, scale=1.0)), 3), error_of(NoisyNumber(0.0, scale=1.0, normal=True), 4)
    (2.996, 3.92)
    """
    if numbers == 1 and not noise.normal:
        return math.log(20) * noise.scale
    return 1.96 * noise.deviation * math.sqrt(numbers)


def charts(profile: Profile) -> dict[str, dict[str, Chart]]:
    """Return the charts of every table by the name of the column; "" is that of people by their number of rows."""
    return {name: table_charts(table) for name, table in profile.tables.items()}


def table_charts(table: TableProfile) -> dict[str, Chart]:
    """Return the charts of a table by the name of the column; "" is that of people by their number of rows."""
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
    """Return a bar chart with the ± of each bar, and the notes below it."""
    texts = [" ± ".join(with_error(round(bar.value) if bar.error > 3 else bar.value, bar.error)) for bar in rows]
    chart = bars(rows, title=title, heading=title, texts=texts, most=None, y=Axis(low=0.0))
    return replace(chart, note=" ".join(notes))


def _unseen(rows: Sequence[Bar]) -> list[str]:
    """Return a warning if no bar of a chart exceeds its noise; otherwise an empty list."""
    return [] if any(bar.value > bar.error for bar in rows) else ["Nothing here can be told from noise."]


def _facts(column: ColumnProfile) -> list[str]:
    """Return sentences about a column: the share of whole numbers, and how many keys most people have."""
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
    """Return the bars of a column: people by value or by public key; for private keys, keys by their people."""
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
    """Return bars of about how many keys have at least 1, 2, 4, … people, from the first one above its noise.

    The weight between two neighboring edges is the sum over keys of their people in that range. Divided by the width
    of the range it is the mean, over that range, of how many keys have that many people.
    """
    error = error_of(layers)
    powers = [
        Bar(f"at least {shown(high)}", weight / (high - low), error / (high - low))
        for (low, high), weight in zip(pairwise(layers.edges), layers.weights, strict=True)
        if math.log2(high).is_integer()
    ]
    seen = [i for i, bar in enumerate(powers) if bar.value > bar.error]
    return powers[seen[0] : seen[-1] + 2] if seen else powers[-1:]


def _count_bars(people: NoisyHistogram) -> list[Bar]:
    """Return bars of a histogram of people by a count, such as their number of rows.

    Bins are merged between powers of 2. All after the last bar that is clearly above its noise become one bar,
    "… or more".
    """
    ranges: list[_Cell] = []
    low = 1.0
    for edge, weight in zip(people.edges, people.weights, strict=True):
        cell = _Cell(low, edge, weight, 1)
        if ranges and math.ceil(math.log2(ranges[-1].high)) == math.ceil(math.log2(edge)):
            ranges[-1] = _merged([ranges[-1], cell])
        else:
            ranges.append(cell)
        low = edge + 1
    result = [
        Bar(
            shown(cell.low) if cell.low == cell.high else f"{cell.low:,.0f} to {cell.high:,.0f}",
            cell.weight,
            error_of(people, cell.bins),
        )
        for cell in ranges
    ]
    shown_bars = 1 + max((i for i, bar in enumerate(result) if bar.value > 1.5 * bar.error), default=0)
    if rest := ranges[shown_bars:]:
        tail = _merged(rest)
        return [*result[:shown_bars], Bar(f"{tail.low:,.0f} or more", tail.weight, error_of(people, tail.bins))]
    return result


def _value_bars(values: NoisyHistogram, type: str) -> Iterable[Bar]:
    """Return bars of people by value.

    Bins outside the first and the last one that are clearly above their noise become one bar on either side; of those
    in between the neighbors with the fewest people are merged until :data:`MOST_ROWS` are left.
    """
    edges = pairwise(values.edges)
    cells = [_Cell(low, high, weight, 1) for (low, high), weight in zip(edges, values.weights, strict=True)]
    seen = [i for i, cell in enumerate(cells) if cell.weight > 3.5 * values.deviation]
    if not seen:
        label_of_all = _label(values.edges[0], values.edges[-1], type)
        return [Bar(label_of_all, sum(values.weights), error_of(values, len(cells)))]
    below, inner, above = cells[: seen[0]], cells[seen[0] : seen[-1] + 1], cells[seen[-1] + 1 :]
    while len(inner) > MOST_ROWS:
        i = min(range(len(inner) - 1), key=lambda i: inner[i].weight + inner[i + 1].weight)
        inner[i : i + 2] = [_merged(inner[i : i + 2])]
    ends = [[_merged(part)] if part else [] for part in (below, above)]
    smallest = next((cell.high for cell in cells if cell.low == 0), 0.0)  # the end of the bin of 0, if it has one

    def label(low: float, high: float) -> str:
        """Return the label of a bar; the bin of the value 0 alone is "0", and the next one starts at 0."""
        if (low, high) == (0.0, smallest) and type == "number":
            return "0"
        return _label(0.0 if low == smallest and type == "number" else low, high, type)

    return [Bar(label(low, high), weight, error_of(values, n)) for low, high, weight, n in [*ends[0], *inner, *ends[1]]]


def _merged(cells: Sequence[_Cell]) -> _Cell:
    """Return neighboring cells, in rising order, as one."""
    return _Cell(cells[0].low, cells[-1].high, sum(cell.weight for cell in cells), sum(cell.bins for cell in cells))


def _label(low: float, high: float, type: str) -> str:
    """Return the label of a bin with these edges. Of integers and dates it names the first and the last value, of
    fractions both edges.

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
