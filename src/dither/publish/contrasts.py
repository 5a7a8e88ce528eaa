"""Contrasts among the children of a place: whole-number vectors, orthogonal to one another and to the sum.

The children of a place are halved, the halves are halved, and so on. Where a segment of n children has a left part of
size a and a right part of size b, its contrast is ``(b * sum(left) - a * sum(right)) / g`` with g the greatest common
divisor of a and b: a whole number for whole counts. As a vector over the children, a contrast is zero outside of its
segment, constant on both parts and adds up to zero, so that the k - 1 contrasts of a place with k children are
orthogonal to one another and to the sum, and with it they are a basis. The square of its length is ``a b n / g^2``.

The halves differ in size by at most one, so that few different lengths occur (about twice the binary logarithm of k),
and noise of one size can be drawn for all contrasts of one length at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.publish.domain import Integers

Floats = NDArray[np.float64]
Numbers = NDArray[Any]


@dataclass(frozen=True, eq=False)
class _Halving:
    """The segments of one depth of the halving, and how those of the next depth come from them."""

    segments: int
    divided: Integers
    """The segments of two children or more; their left parts come first in the next depth, then their right parts."""
    single: Integers
    """The segments of one child."""
    child: Integers
    """The place of that child."""
    left: Integers
    right: Integers
    divisor: Integers
    """The sizes of the parts of each divided segment, and their greatest common divisor."""
    position: Integers
    """Where the contrast of each divided segment stands among all contrasts."""


class Contrasts:
    """The contrasts of one level: among the children of each place of the level above.

    >>> level = Contrasts(np.array([3, 2]))
    >>> level.size, level.groups
    (3, ((0, 1, Fraction(1, 1)), (1, 2, Fraction(4, 3)), (2, 3, Fraction(4, 1))))
    >>> counts = np.array([[5], [1], [3], [2], [4]])
    >>> level.of(counts).ravel()
    array([-2,  4,  0])
    >>> level.expand(np.array([[9.0], [6.0]]), np.array([[-2.0], [4.0], [0.0]])).ravel()
    array([5., 1., 3., 2., 4.])
    """

    def __init__(self, children: Integers) -> None:
        self.children = children
        self.nodes = int(children.sum())
        self.size = self.nodes - int(np.count_nonzero(children))
        start = np.cumsum(children) - children
        size, family = children.copy(), children.copy()  # of each segment: its size, and the size of its whole family
        halvings: list[tuple[Integers, ...]] = []
        segment_kinds: list[Integers] = []
        while len(size):
            divided, single = np.flatnonzero(size > 1), np.flatnonzero(size == 1)
            whole = size[divided]
            left = (whole + 1) // 2
            right = whole - left
            halvings.append((np.array(len(size)), divided, single, start[single], left, right))
            segment_kinds.append(np.stack([whole, family[divided]], axis=1))
            start = np.concatenate([start[divided], start[divided] + left])
            size = np.concatenate([left, right])
            family = np.concatenate([family[divided], family[divided]])
        self.groups, positions = _grouped(np.concatenate(segment_kinds))
        """Slices of the contrasts that have one scale, with its square: the squared length times 1 - 1/k."""
        self._halvings: list[_Halving] = []
        done = 0
        for count, divided, single, child, left, right in halvings:
            position = positions[done : done + len(divided)]
            self._halvings.append(
                _Halving(int(count), divided, single, child, left, right, np.gcd(left, right), position)
            )
            done += len(divided)

    @property
    def largest_coefficient(self) -> int:
        """The largest number in any contrast."""
        return max((int((item.left // item.divisor).max(initial=1)) for item in self._halvings), default=1)

    def of(self, counts: Numbers) -> Numbers:
        """The contrasts of an array whose first axis is the level; whole numbers are modulo 2^64."""
        result = np.empty((self.size, *counts.shape[1:]), dtype=counts.dtype)
        below = counts[:0]
        for item in reversed(self._halvings):
            sums = np.empty((item.segments, *counts.shape[1:]), dtype=counts.dtype)
            sums[item.single] = counts[item.child]
            count = len(item.divided)
            first, second = below[:count], below[count:]
            sums[item.divided] = first + second
            result[item.position] = _column(item.right // item.divisor, first) * first
            result[item.position] -= _column(item.left // item.divisor, first) * second
            below = sums
        return result

    def expand(self, parents: Floats, contrasts: Floats | None) -> Floats:
        """The counts that have these sums for each place of the level above, and these contrasts (None: zeros)."""
        means = parents / _column(np.maximum(self.children, 1), parents)
        if contrasts is None:
            return np.asarray(np.repeat(means, self.children, axis=0))
        result = np.empty((self.nodes, *parents.shape[1:]))
        for item in self._halvings:
            result[item.child] = means[item.single]
            middle, contrast = means[item.divided], contrasts[item.position]
            contrast = contrast * _column(item.divisor / (item.left + item.right), contrast)
            means = np.concatenate(
                [middle + contrast / _column(item.left, middle), middle - contrast / _column(item.right, middle)]
            )
        return result


def _column(factors: Numbers, like: Numbers) -> Numbers:
    """One factor for each entry of the first axis."""
    return factors.reshape(-1, *[1] * (like.ndim - 1))


def _grouped(segment_kinds: Integers) -> tuple[tuple[tuple[int, int, Fraction], ...], Integers]:
    """The contrasts in groups of one scale, and the place of each; from the sizes of segment and family."""
    if not len(segment_kinds):
        return (), np.zeros(0, dtype=np.int64)
    base = int(segment_kinds[:, 1].max()) + 1
    codes = segment_kinds[:, 0] * base + segment_kinds[:, 1]
    kinds, kind_of, counts = np.unique(codes, return_inverse=True, return_counts=True)
    positions = np.empty(len(segment_kinds), dtype=np.int64)
    positions[np.argsort(kind_of, kind="stable")] = np.arange(len(segment_kinds))
    stops = np.cumsum(counts)
    groups = []
    for kind, count, stop in zip(kinds.tolist(), counts.tolist(), stops.tolist(), strict=True):
        whole, family = divmod(kind, base)
        left, right = (whole + 1) // 2, whole // 2
        divisor = int(np.gcd(left, right))
        square = Fraction(left * right * whole, divisor * divisor) * Fraction(family - 1, family)
        groups.append((stop - count, stop, square))
    return tuple(groups), positions
