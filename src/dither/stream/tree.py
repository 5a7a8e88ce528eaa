"""The binary tree, as a filter: the reference, and the one for pure guarantees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dither.exact import root_up
from dither.stream.filters import ROOT_BITS, FilterState, Floats, advance_rows, restored, stored
from dither.stream.keyed import Lattice


@dataclass(frozen=True)
class Tree:
    """The binary tree in Fenwick's form: the reference, and the one that pure epsilon can use.

    >>> tree = Tree(365)
    >>> tree.levels, tree.row(6).tolist()                 # step 6 is the sum of 4 steps and of the last 2
    (9, [0.0, 0.0, 0.0, 1.0, 0.0, 1.0])
    """

    length: int

    @property
    def levels(self) -> int:
        """The most nodes that one step is in."""
        return self.length.bit_length()

    @property
    def rounding(self) -> Fraction:
        """Sums of whole numbers are exact."""
        return Fraction(0)

    @property
    def decreasing(self) -> bool:
        """Its bounds hold for any pattern."""
        return True

    def l1_sensitivity(self, participations: int) -> Fraction:
        """The largest sum of the entries of columns: one for each level and step."""
        return Fraction(participations * self.levels)

    def l2_sensitivity(self, participations: int, separation: int) -> Fraction:
        """From above, level by level: a node over 2^l steps holds at most ``m = min(k, ceil(2^l / b))`` of a person's
        steps, and squares of counts that add up to k are largest where as many as possible are m.
        """
        total = 0
        for level in range(self.levels):
            most = min(participations, -(-(1 << level) // separation))
            full, rest = divmod(participations, most)
            total += full * most * most + rest * rest
        return root_up(Fraction(total), ROOT_BITS)

    def row(self, step: int) -> Floats:
        """One for each node that the running sum of a step is made of."""
        row = np.zeros(step)
        while step:
            row[step - 1] = 1.0
            step -= step & -step
        return row

    def squared_row(self, step: int) -> float:
        """The number of those nodes."""
        return float(step.bit_count())

    def start(self, lanes: int, recorded: Mapping[str, Any] | None = None) -> FilterState:
        """No nodes yet, or those that were recorded."""
        return _TreeState(recorded)

    def record(self) -> dict[str, Any]:
        """The number of steps."""
        return {"kind": "tree", "length": self.length}


class _TreeState:
    """The noise of the last step that ended in each power of two."""

    def __init__(self, recorded: Mapping[str, Any] | None) -> None:
        self._noise: dict[int, Lattice] = {}
        self._step = 0
        if recorded is not None:
            self._noise = {int(size): restored(noise) for size, noise in recorded["nodes"].items()}
            self._step = int(recorded["step"])

    def record(self) -> dict[str, Any]:
        """The nodes that later steps need, and the number of steps."""
        needed = {size: noise for size, noise in self._noise.items() if size & self._step}
        return {"nodes": {str(size): stored(noise) for size, noise in needed.items()}, "step": self._step}

    def advance(self, fresh: Lattice) -> Lattice:
        """All steps."""
        return advance_rows(self._advance_one, fresh)

    def _advance_one(self, row: Lattice) -> Lattice:
        self._step += 1
        rest = self._step & (self._step - 1)
        noise: Lattice = row.copy()
        if rest:
            noise = noise + self._noise[rest & -rest]  # Python's integers if one of them is
        self._noise[self._step & -self._step] = noise
        return noise
