"""What one reading of a table says of a series: lines of people in periods, and which of them count.

Everything here is private, and none of it leaves the advance that it was read for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dither.ledger.recorded import decode, encode
from dither.ledger.series import Pay, SeriesState
from dither.stream.filters import SAFE, as_wide, restored, stored, whole_numbers
from dither.stream.keyed import Lattice
from dither.stream.participants import Participation, changed, identities, look_up, merged, parts_to_merge, take_part
from dither.stream.series_spec import SeriesSpec

SECRET = 0
"""The part of the state that holds the totals and the noise; the others hold people."""


class Secret(NamedTuple):
    """What the next advance needs beside the people: how far the series is, its exact totals, and the noise in them.

    Keys of noise are not kept: what they drew is in ``noise``, and they are never needed again.
    """

    position: int
    totals: NDArray[Any]
    noise: Mapping[str, Any] | None

    @classmethod
    def read(cls, state: SeriesState, lanes: int) -> Secret:
        """That of a state; at first nothing is out."""
        if not state.advances:
            return cls(0, np.zeros(lanes, dtype=object), None)
        content = decode(state.parts[SECRET])
        return cls(content["position"], as_wide(restored(content["totals"])), content["noise"])

    def sealed(self) -> bytes:
        """As the ledger keeps it."""
        totals = stored(whole_numbers([self.totals.tolist()])[0])
        return encode({"position": self.position, "totals": totals, "noise": self.noise})


class Lines(NamedTuple):
    """What a statement said: lines of people in periods, in the units of the measures."""

    step: NDArray[np.int64]
    cell: NDArray[np.int64]
    numbers: list[NDArray[np.int64]]
    person: NDArray[np.intp] | None
    keys: Any
    people: Any

    @classmethod
    def read(cls, rows: Any, spec: SeriesSpec, people_key: bytes, first: int, last: int) -> Lines:
        """The lines of a statement about some periods, an Arrow table. A line of another period, should an engine have
        one, does not count: a period is measured once.
        """
        begins = np.array([spec.calendar.begin(step) for step in range(first, last + 1)], dtype="datetime64[us]")
        moments = rows.column("t").to_numpy().astype("datetime64[us]")
        place = np.minimum(np.searchsorted(begins, moments), len(begins) - 1)
        inside = begins[place] == moments
        if not inside.all():
            rows, place = rows.filter(pa.array(inside)), place[inside]
        step = place.astype(np.int64) + first
        cell = np.zeros(rows.num_rows, dtype=np.int64)
        for i, keys in enumerate(spec.keys):
            cell = cell * len(keys) + rows.column(f"g{i}").to_numpy()
        measured = [rows.column(f"m{i}").to_numpy() for i in range(len(spec.measures))]
        if spec.card.unit is None:
            return cls(step, cell, measured, None, None, None)
        people = pc.dictionary_encode(rows.column("u").combine_chunks())
        person = people.indices.to_numpy(zero_copy_only=False).astype(np.intp)
        return cls(step, cell, measured, person, people.dictionary, identities(people.dictionary, people_key))

    def increments(self, first: int, last: int, cells: int, kept: NDArray[np.bool_] | None) -> Lattice:
        """What each period adds, a row for each, over the lines that count: exactly, however large it is."""
        result: Lattice = np.zeros((last - first + 1, len(self.numbers) * cells), dtype=np.int64)
        chosen = slice(None) if kept is None else kept
        rows, cell = self.step[chosen] - first, self.cell[chosen]
        for i, numbers in enumerate(self.numbers):
            largest = max(abs(int(bound)) for bound in (numbers.min(initial=0), numbers.max(initial=0)))
            if largest * len(numbers) >= SAFE:  # sums of 64 bits could overflow
                result, numbers = as_wide(result), numbers.astype(object)
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
    new, number = changed(before, after, rule.widths(horizon)), state.advances + 1
    count = parts_to_merge(number)
    newest = places if count is None else places[max(0, len(places) - count) :]
    whole = merged([*(state.parts[part] for part in newest), new]) if newest else new
    return kept, {**dict.fromkeys(newest), number: whole}
