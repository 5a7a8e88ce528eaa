"""What one reading of a table says of a series: lines of people in periods, and which of them count.

Everything here is private, and none of it leaves the advance that it was read for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from dither.ledger.series import Pay, SeriesState
from dither.stream.participants import MOST_PARTS, Participation, changed, hashes, look_up, merged, take_part
from dither.stream.series_spec import SeriesSpec

SECRET = 0
"""The part of the state that holds the key and the totals; the others hold people."""


class Lines(NamedTuple):
    """What a statement said: lines of people in periods, in the units of the measures."""

    step: NDArray[np.int64]
    cell: NDArray[np.int64]
    numbers: list[NDArray[np.int64]]
    person: NDArray[np.intp] | None
    keys: Any
    people: Any

    @classmethod
    def read(cls, rows: Any, spec: SeriesSpec, people_key: bytes) -> Lines:
        """The lines of a statement, an Arrow table."""
        calendar = spec.calendar
        moments = pc.dictionary_encode(rows.column("t").combine_chunks())
        numbers = np.array([calendar.step(value) for value in moments.dictionary.to_pylist()], dtype=np.int64)
        step = numbers[moments.indices.to_numpy(zero_copy_only=False)] if len(numbers) else np.empty(0, np.int64)
        cell = np.zeros(rows.num_rows, dtype=np.int64)
        for i, keys in enumerate(spec.keys):
            cell = cell * len(keys) + rows.column(f"g{i}").to_numpy()
        measured = [rows.column(f"m{i}").to_numpy() for i in range(len(spec.measures))]
        if spec.card.unit is None:
            return cls(step, cell, measured, None, None, None)
        people = pc.dictionary_encode(rows.column("u").combine_chunks())
        person = people.indices.to_numpy(zero_copy_only=False).astype(np.intp)
        return cls(step, cell, measured, person, people.dictionary, hashes(people.dictionary, people_key))

    def increments(self, first: int, last: int, cells: int, kept: NDArray[np.bool_] | None) -> NDArray[np.int64]:
        """What each period adds, a row for each, over the lines that count."""
        result = np.zeros((last - first + 1, len(self.numbers) * cells), dtype=np.int64)
        chosen = slice(None) if kept is None else kept
        rows, cell = self.step[chosen] - first, self.cell[chosen]
        for i, numbers in enumerate(self.numbers):
            np.add.at(result, (rows, i * cells + cell), numbers[chosen])
        return result


def participating(
    lines: Lines, state: SeriesState, pay: Pay | None, rule: Participation, horizon: int
) -> tuple[NDArray[np.bool_] | None, dict[int, bytes | None]]:
    """Which lines count, and what is new in the record of people.

    How many entries and parts the ledger gets does not depend on the rows: the number of an entry is in every receipt.
    """
    if lines.person is None or (pay is None and not rule.is_bounded(horizon)):
        return None, {}
    places = sorted(part for part in state.parts if part != SECRET)
    before = look_up(lines.people, [state.parts[part] for part in places])
    allowed = np.ones(len(lines.person), dtype=bool)
    if pay is not None:
        unpaid = np.flatnonzero(before["used"] == 0)
        admitted = np.ones(len(before), dtype=bool)
        admitted[unpaid] = pay(lines.keys.take(unpaid))  # also of nobody: what the ledger writes must not depend on it
        allowed = admitted[lines.person]
    kept = np.zeros(len(lines.person), dtype=bool)
    kept[allowed], after = take_part(before, lines.person[allowed], lines.step[allowed], rule)
    new, number = changed(before, after), max(places, default=SECRET) + 1
    if len(places) < MOST_PARTS:
        return kept, {number: new}
    whole = merged([*(state.parts[part] for part in places), new])
    return kept, {**dict.fromkeys(places), number: whole}


__all__ = ["SECRET", "Lines", "participating"]
