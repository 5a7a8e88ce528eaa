"""The released points of a series with their ±, and the explanation of a series before it is charged."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: F401  (names of inherited annotations, which are read here)
from dataclasses import dataclass, field
from typing import Any, Literal  # noqa: F401

from dither.comparison import unhashable
from dither.errors import InvalidArgument
from dither.extras import Axes
from dither.guarantees import Guarantee
from dither.ledger.accounts import Remaining
from dither.present import markup
from dither.present.chart import Chart, Mark
from dither.present.drawing import draw
from dither.present.notes import Note
from dither.present.text import keys_shown, two_digits
from dither.public_module import public_in
from dither.tables.answer import Answer
from dither.tables.card.model import Type  # noqa: F401

MAX_LINES = 12
"""The most groups that a chart shows."""


@public_in("dither.stream")
@unhashable
@dataclass(frozen=True)
class SeriesAnswer(Answer):
    """All points of a series so far: an :class:`~dither.Answer` with a line for each period and group.

    ``window`` is the number of periods that each number is a sum of, None for running totals. Points that were released
    earlier are unchanged.

    >>> from dither.guarantees import PureDP
    >>> answer = SeriesAnswer(("day", "n"), ("date", "number"), (), {"n": ()}, PureDP(1), name="daily", unit="day")
    >>> answer.name, len(answer)
    ('daily', 0)
    """

    name: str = field(default="")
    unit: str = field(default="day")
    window: int | None = field(default=None)

    @property
    def groups(self) -> tuple[str, ...]:
        """Return the names of the group columns."""
        return tuple(name for name in self.columns[1:] if name not in self.errors)

    def lines(self, column: str | None = None) -> dict[str, list[tuple[Any, float, float]]]:
        """Return the points of one aggregate (by default the first) for each group: period, value and ±."""
        known = [name for name in self.columns if name in self.errors]
        name = column if column is not None else known[0]
        if name not in known:
            raise InvalidArgument("column", f"one of {', '.join(known)}", "an unknown column", f"write {known[0]!r}")
        places = [self.columns.index(group) for group in self.groups]
        result: dict[str, list[tuple[Any, float, float]]] = {}
        for row, value, error in zip(self.rows, self[name], self.error(name), strict=True):
            label = keys_shown(row[place] for place in places)
            result.setdefault(label, []).append((row[0], float(value), float(error or 0.0)))
        return result

    def describe(self, column: str) -> str:
        """Return a heading for one aggregate's numbers: ``n, running total`` or ``n, last 7 days``."""
        if self.window is None:
            return f"{column}, running total"
        return f"{column}, each {self.unit}" if self.window == 1 else f"{column}, last {self.window} {self.unit}s"

    def _facts(self) -> list[str]:
        """Return whether numbers are totals or window sums, the cost of the whole series, and the remaining budget, a
        line each.

        >>> from dither.guarantees import PureDP
        >>> print(SeriesAnswer(("day", "n"), ("date", "number"), (), {"n": ()}, PureDP(1), unit="day").summary())
        each line is a running total since the first day
        cost: ε = 1, once for the whole series
        """
        if self.window is None:
            numbers = f"a running total since the first {self.unit}"
        else:
            numbers = f"of one {self.unit}" if self.window == 1 else f"a sum over the last {self.window} {self.unit}s"
        output = [f"each line is {numbers}", f"cost: {self.cost}, once for the whole series"]
        return output if self.remaining is None else [*output, f"left: {self.remaining}"]

    def chart(self, name: str | None = None, *, most: int | None = MAX_LINES) -> Chart:
        """Return a chart of one aggregate over time: a line for each group with a band of its errors (95 %).

        ``most`` is the largest number of groups that are drawn, None for all.

        >>> from datetime import date
        >>> from dither.guarantees import PureDP
        >>> rows = ((date(2026, 1, 1), 4.0), (date(2026, 1, 2), 7.0))
        >>> SeriesAnswer(("day", "n"), ("date", "number"), rows, {"n": (1.0, 1.5)}, PureDP(1)).chart().heading
        'n, running total'
        """
        column = name if name is not None else next(item for item in self.columns if item in self.errors)
        lines = self.lines(column)
        marks = []
        for label, points in list(lines.items())[:most]:
            moments, values, errors = zip(*points, strict=True)
            marks.append(Mark(values, moments, label, errors=errors))
        note = f"The first {most} of {len(lines):,} groups are drawn." if len(marks) < len(lines) else ""
        title = f"{self.describe(column)}: {self.cost} for the whole series; bands: 95 %, of the noise alone."
        return Chart(title, tuple(marks), heading=self.describe(column), note=note)

    def plot(self, name: str | None = None, *, axes: Axes | None = None) -> Axes:
        """Draw :meth:`chart` with matplotlib; returns the axes."""
        return draw(self.chart(name), axes, size=(8, 4))

    def _repr_html_(self) -> str:
        """Return the answer for a notebook: a line chart of each aggregate with its band, and the last points."""
        pictures = [markup.picture(self.chart(name)) for name in self.columns if name in self.errors and self.rows]
        last = max(0, len(self.rows) - MAX_LINES)
        errors = {name: values[last:] for name, values in self.errors.items()}
        headings, lines = Answer(self.columns, self.types, self.rows[last:], errors, self.cost).table()
        table = markup.table([item.text for item in headings], lines, [item.numeric for item in headings])
        return markup.block(*pictures, table, self._notes_html())


@public_in("dither.stream")
@unhashable
@dataclass(frozen=True)
class SeriesExplanation:
    """The cost of a series and the ± of its numbers, before anything is read or charged.

    ``errors`` has, for each aggregate, the ± after every period; ``refused`` is why a release would be refused, empty
    if it would not.

    >>> from dither.guarantees import PureDP
    >>> print(SeriesExplanation(PureDP(1), Remaining(PureDP(2)), ("2026-01-01", "2026-01-02"), {"n": (3.0, 4.2)}))
    cost: ε = 1, once for all 2 periods; left: ε = 2
    2026-01-01  n ± 3.0
    2026-01-02  n ± 4.2
    """

    cost: Guarantee
    remaining: Remaining
    periods: tuple[str, ...]
    errors: dict[str, tuple[float, ...]]
    notes: tuple[Note, ...] = ()
    refused: str = ""

    def __str__(self) -> str:
        """Return the cost, what is left, the ± after some of the periods, and the notes, a line each."""
        output = [f"cost: {self.cost}, once for all {len(self.periods):,} periods; left: {self.remaining}"]
        output += [f"would be refused: {self.refused}"] if self.refused else []
        for place in self.places():
            parts = [f"{name} ± {two_digits(errors[place])}" for name, errors in self.errors.items()]
            output.append(f"{self.periods[place]}  {', '.join(parts)}")
        return "\n".join([*output, *map(str, self.notes)])

    def places(self, most: int = 8) -> list[int]:
        """Return the indices of at most ``most`` periods from the first to the last."""
        count = len(self.periods)
        if count <= most:
            return [*range(count)]
        return sorted({round((count - 1) * i / (most - 1)) for i in range(most)})

    def _repr_html_(self) -> str:
        """Return the explanation for a notebook: the cost, and the ± after some of the periods."""
        lines: list[list[str | None]] = [
            [self.periods[place], *(f"± {two_digits(errors[place])}" for errors in self.errors.values())]
            for place in self.places()
        ]
        table = markup.table(["period", *self.errors], lines, [False, *[True] * len(self.errors)])
        facts = [f"cost: {self.cost}, once for all {len(self.periods):,} periods; left: {self.remaining}"]
        facts += map(str, self.notes)
        return markup.block(markup.lines(facts), table)
