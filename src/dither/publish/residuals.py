"""Counts as residuals: what each combination of levels adds to the coarser ones.

The residual of a combination of levels A holds, for every place of A, the contrasts among its siblings along every
attribute that A has, summed over the attributes that A does not have. A table T is
determined by the residuals of all A that are margins of T, and no residual repeats what another one says. This is the
decomposition of Xiao, He, Zhang and Kifer (2023), extended to levels inside one another: there, the contrasts are among
the children of each place.

*What one record adds.* Let a record lie, along attribute i of A, among the k_i children of a place. The contrasts h of
one family of siblings are orthogonal to one another and to the sum, so that the sum of ``h(record)^2 / |h|^2`` over
them is ``1 - 1/k_i``. Divide every square by ``|h|^2 (1 - 1/k_i)`` and it becomes 1 for every family (0 for an only
child). For several attributes contrasts are products, and so is the sum of their squares: 1 again, or 0.

*Noise.* The contrast ``h_1 x h_2 x ...`` of residual A is measured with noise of variance ``v_A * prod |h_i|^2 (1 -
1/k_i)``. By the above, one record's squared distance in units of the noise is ``1 / v_A`` for residual A, and the sum
of ``1 / v_A`` over all of them.

*Variance.* From exact contrasts with this noise, a count is ``parent / k`` plus its own part of the contrasts, which
has variance ``v_A (1 - 1/k)^2``; the parts of all levels and attributes are independent. The variance of a cell of T is
therefore the sum over A of ``v_A`` times, for every attribute, ``(1 - 1/k_l)^2 / (k_{l+1} ... k_t)^2`` where A has
level l of it and T has level t, and ``1 / (k_1 ... k_t)^2`` where A does not have it; k_l is the number of siblings of
the cell's ancestor in level l, itself included. Estimates made like this are those of generalized least squares: there
are as many contrasts as unknown numbers, so that the system has one solution.

Contrasts among the children of a place: whole-number vectors, orthogonal to one another and to the sum.

The children of a place are halved, the halves are halved, and so on. Where a segment of n children has a left part of
size a and a right part of size b, its contrast is ``(b * sum(left) - a * sum(right)) / g`` with g the greatest common
divisor of a and b: a whole number for whole counts. As a vector over the children, a contrast is zero outside of its
segment, constant on both parts and adds up to zero, so that the k - 1 contrasts of a place with k children are
orthogonal to one another and to the sum, and with it they are a basis. The square of its length is ``a b n / g^2``.

The halves differ in size by at most one, so that few different lengths occur (about twice the binary logarithm of k),
and noise of one size can be drawn for all contrasts of one length at once.

Unbiased estimates of every cell of every table, and of any sum of cells, with exact variances.

Estimates are generalized least squares on the noisy contrasts, by the formulas above. They
agree with one another: every table is a margin of the finer ones. They are real numbers and may be negative; whole
numbers that are not come from :mod:`dither.publish.integers`. Intervals are those of the normal law with the exact
variance: the noise of a cell is a sum of independent draws, each at least 64 steps wide.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument
from dither.inference.measured import normal_quantile
from dither.present.text import rounded, significant, two_digit_decimals, two_digits
from dither.publish.domain import Attribute, Domain, Integers, Levels, contains

Floats = NDArray[np.float64]
Numbers = NDArray[Any]


@dataclass(frozen=True, eq=False)
class _Halving:
    """One step of halving families of siblings: its segments, and how they are divided into those of the next step."""

    segments: int
    divided: Integers
    """The segments of two children or more; their left parts come first in the next depth, then their right parts."""
    single: Integers
    """The segments of one child."""
    child: Integers
    """The index of that child in the level."""
    left: Integers
    right: Integers
    divisor: Integers
    """The sizes of the parts of each divided segment, and their greatest common divisor."""
    position: Integers
    """The index of each divided segment's contrast among all contrasts of the level."""


class Contrasts:
    """The contrasts of one level of an attribute: differences among the children of each key of the level above."""

    def __init__(self, children: Integers) -> None:
        """Derive the contrasts from the number of ``children`` of each key of the level above.

        Families are halved until single children are left. A contrast is the difference between the two halves of a
        segment of siblings: a family of k has k - 1 of them.
        """
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
        """Slices of contrasts with the same scale of noise; see :class:`ContrastGroup`."""
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
        """Return the largest absolute coefficient of a count in any contrast."""
        return max((int((item.left // item.divisor).max(initial=1)) for item in self._halvings), default=1)

    def of(self, counts: Numbers) -> Numbers:
        """Return the contrasts of counts along their first axis, which has the keys of the level.

        The contrast of segments with a and b children is ``(b * sum(left) - a * sum(right)) / gcd(a, b)``. Integers are
        computed modulo 2^64.
        """
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
        """Return the counts of a level from the counts ``parents`` of the level above and the contrasts (None: all 0);
        the inverse of :meth:`of`."""
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
    """Return ``factors``, one for each entry of the first axis of ``like``, in a shape that broadcasts against it."""
    return factors.reshape(-1, *[1] * (like.ndim - 1))


class ContrastGroup(NamedTuple):
    """The contrasts from ``start`` to before ``stop``, whose noise has one scale: ``square`` is the square of that
    scale where ``v_A`` is 1, the squared length of a contrast times ``1 - 1/k``."""

    start: int
    stop: int
    square: Fraction


def _grouped(segment_kinds: Integers) -> tuple[tuple[ContrastGroup, ...], Integers]:
    """Return groups of contrasts with the same scale, each a slice, and the index of each contrast in that order.

    ``segment_kinds`` has a row for each contrast: the sizes of its segment and of its whole family, which determine the
    scale. The contrast of halves a and b in a family of k has the square ``a b (a + b) / gcd(a, b)^2 * (1 - 1/k)``.
    """
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
        groups.append(ContrastGroup(stop - count, stop, square))
    return tuple(groups), positions


def margins(tables: Iterable[Levels]) -> list[Levels]:
    """Return the levels of all tables that are margins of at least one of ``tables``, the coarsest first."""
    return sorted({below for table in tables for below in itertools.product(*(range(top + 1) for top in table))})


@dataclass(frozen=True, eq=False)
class AttributeResiduals:
    """The contrasts of all levels of one attribute, and their coefficients in the variance of cells and sums."""

    attribute: Attribute

    @cached_property
    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return the contrasts of level 1, 2, and so on."""
        return tuple(Contrasts(children) for children in self.attribute.children)

    def variance_classes(self, level: int) -> tuple[Floats, Integers]:
        """Return the coefficients of the levels' variances in the variance of a key's count, as the distinct rows of
        coefficients (one for each level from 0 to ``level``) and the index of each key's row.

        The coefficient of level l is ``(1 - 1/k_l)^2 / (k_{l+1} ... k_t)^2``, of level 0 ``1 / (k_1 ... k_t)^2``; see
        the module.

        >>> AttributeResiduals(Attribute.flat("sex", ["f", "m"])).variance_classes(1)
        (array([[0.25, 0.25]]), array([0, 0]))
        """
        if level not in self._classes:
            self._classes[level] = self._find_classes(level)
        return self._classes[level]

    @cached_property
    def _classes(self) -> dict[int, tuple[Floats, Integers]]:
        """Return the cache of :meth:`variance_classes`, with level 0, which has one key and all of its variance."""
        return {0: (np.ones((1, 1)), np.zeros(1, dtype=np.int64))}

    def _find_classes(self, level: int) -> tuple[Floats, Integers]:
        """Return :meth:`variance_classes` of a level, derived from those of the level above.

        Siblings have one class, and so have the children of keys of one class with equally many children.
        """
        above, which = self.variance_classes(level - 1)
        children, parents = self.attribute.children[level - 1], self.attribute.parents[level - 1]
        kinds, kind_of = np.unique(which * (int(children.max()) + 1) + children, return_inverse=True)
        previous, size = kinds // (int(children.max()) + 1), (kinds % (int(children.max()) + 1)).astype(np.float64)
        rows = np.concatenate([above[previous] / size[:, np.newaxis] ** 2, (1 - 1 / size[:, np.newaxis]) ** 2], axis=1)
        return rows, kind_of[parents]

    def mean_shares(self, level: int) -> Floats:
        """Return the mean, over the keys of a level, of their rows of :meth:`variance_classes`."""
        rows, which = self.variance_classes(level)
        return np.asarray(np.bincount(which, minlength=len(rows)) @ rows / len(which))

    def squared_weights(self, weights: Floats, level: int) -> Iterator[Floats]:
        """Return, for each level from 0 to ``level``, weights whose sum of squares is the coefficient of that level's
        ``v_A`` in the variance of a weighted sum over the keys of ``level``.

        ``weights`` has the weights of the sum along its first axis. At each level, the weights of siblings are divided
        into their mean, which goes to the level above, and the deviations from it, times ``sqrt(1 - 1/k)``.
        """
        by_level = []
        for depth in range(level, 0, -1):
            children, parents = self.attribute.children[depth - 1], self.attribute.parents[depth - 1]
            size = children.reshape(-1, *[1] * (weights.ndim - 1)).astype(np.float64)
            sums = _segment_sums(weights, children)
            centered = weights - (sums / size)[parents]
            by_level.append(centered * np.sqrt(1 - 1 / size)[parents])
            weights = sums / size
        by_level.append(weights)
        return reversed(by_level)


class LargestVariance(NamedTuple):
    """The largest variance of a table's cells, and the coefficient of each residual's ``v_A`` in it."""

    variance: float
    coefficients: Floats


@dataclass(frozen=True, eq=False)
class Residuals:
    """The residuals of all tables over a domain; each is the array of contrasts of one combination of levels.

    >>> from dither.publish.domain import Attribute
    >>> residuals = Residuals(Domain([Attribute.flat("sex", ["f", "m"]), Attribute.flat("region", ["n", "s", "w"])]))
    >>> counts = np.array([[3, 1, 2], [0, 5, 4]])
    >>> parts = {levels: residuals.of(levels, counts, (1, 1)).astype(float) for levels in margins([(1, 1)])}
    >>> residuals.table((1, 1), parts.get)
    array([[3., 1., 2.],
           [0., 5., 4.]])
    >>> residuals.table((0, 1), parts.get)
    array([[3., 6., 6.]])
    """

    domain: Domain

    @cached_property
    def attributes(self) -> tuple[AttributeResiduals, ...]:
        """Return the residuals of each attribute of the domain."""
        return tuple(AttributeResiduals(attribute) for attribute in self.domain.attributes)

    def shape(self, levels: Levels) -> tuple[int, ...]:
        """Return the number of contrasts of a residual along each attribute; 1 along attributes at level 0."""
        pairs = zip(self.attributes, levels, strict=True)
        return tuple(item.contrasts[level - 1].size if level else 1 for item, level in pairs)

    def size(self, levels: Levels) -> int:
        """Return the number of contrasts of a residual; 0 where every key is an only child."""
        return math.prod(self.shape(levels))

    def of(self, levels: Levels, counts: Numbers, table: Levels) -> Numbers:
        """Return the contrasts of a residual, from the counts of a table that it is a margin of."""
        result = margin(self.domain, counts, table, levels)
        for axis, level in enumerate(levels):
            if level:
                contrasts = self.attributes[axis].contrasts[level - 1]
                result = _along(axis, result, contrasts.of)
        return result

    def table(
        self, table: Levels, parts: Callable[[Levels], Floats | None], keep: Mapping[int, int] | None = None
    ) -> Floats:
        """Return the counts of a table from its residuals.

        ``parts`` returns the residual of some levels, None for zeros. ``keep`` maps attributes to a level: along their
        axes, the result has the contrasts of that level instead of counts.
        """
        kept = keep or {}
        choices = [[kept[i]] if i in kept else range(top + 1) for i, top in enumerate(table)]
        state: dict[Levels, Floats | None] = {levels: parts(levels) for levels in itertools.product(*choices)}
        for axis, top in enumerate(table):
            if axis in kept:
                state = {levels[1:]: value for levels, value in state.items()}
                continue
            following: dict[Levels, Floats | None] = {}
            for rest in {levels[1:] for levels in state}:
                following[rest] = self._expand(axis, [state[level, *rest] for level in range(top + 1)])
            state = following
        result = state[()]
        if result is None:
            shape = [
                self.attributes[i].contrasts[kept[i] - 1].size if kept.get(i) else self.domain.shape(table)[i]
                for i in range(len(table))
            ]
            return np.zeros(shape)
        return result

    def _expand(self, axis: int, by_level: list[Floats | None]) -> Floats | None:
        """Combine the contrasts of all levels of one attribute into the counts of the finest.

        ``axis`` is the attribute, and ``by_level`` has the array of each level from 0 on, with that level's contrasts
        along the axis; None stands for zeros. The result is None if all are.
        """
        attribute = self.attributes[axis]
        result = by_level[0]
        for contrasts, part in zip(attribute.contrasts, by_level[1:], strict=False):
            if result is None and part is None:
                continue
            if result is None:
                assert part is not None
                shape = list(part.shape)
                shape[axis] = len(contrasts.children)
                result = np.zeros(shape)
            moved = None if part is None else np.moveaxis(part, axis, 0)
            result = np.moveaxis(contrasts.expand(np.moveaxis(result, axis, 0), moved), 0, axis)
        if result is not None and result.shape[axis] != attribute.attribute.sizes[len(by_level) - 1]:
            raise AssertionError("every level was expanded")
        return result

    def groups(self, levels: Levels) -> Iterator[tuple[tuple[slice, ...], Fraction]]:
        """Yield the blocks of a residual whose noise has one scale, as slices along each attribute, each with the
        square of that scale where ``v_A`` is 1 (a product of :attr:`ContrastGroup.square`)."""
        options = [
            self.attributes[axis].contrasts[level - 1].groups if level else (ContrastGroup(0, 1, Fraction(1)),)
            for axis, level in enumerate(levels)
        ]
        for choice in itertools.product(*options):
            square = Fraction(1)
            for _, _, factor in choice:
                square *= factor
            yield tuple(slice(start, stop) for start, stop, _ in choice), square

    def mean_coefficients(self, table: Levels, parts: Iterable[Levels]) -> Floats:
        """Return the coefficient of each residual's ``v_A`` in the mean variance of a table's cells; 0 for residuals
        that the table does not depend on."""
        means = [item.mean_shares(top) for item, top in zip(self.attributes, table, strict=True)]
        return np.array([_product(means, table, levels) for levels in parts])

    def mean_variance(self, table: Levels, parts: Mapping[Levels, float]) -> float:
        """Return the mean variance of a table's cells, from ``v_A`` of each residual in ``parts``."""
        return float(self.mean_coefficients(table, parts) @ np.array([*parts.values()]))

    def variances(self, table: Levels, parts: Mapping[Levels, float]) -> Floats:
        """Return the variance of every cell of a table, from ``v_A`` of each residual."""
        classes = [item.variance_classes(top) for item, top in zip(self.attributes, table, strict=True)]
        result = self._class_variances(table, parts)
        return np.asarray(result[np.ix_(*(which for _, which in classes))])

    def largest_variance(self, table: Levels, parts: Mapping[Levels, float]) -> LargestVariance:
        """Return the largest variance of a table's cells, from ``v_A`` of each residual in ``parts``."""
        variances = self._class_variances(table, parts)
        place = np.unravel_index(int(np.argmax(variances)), variances.shape)
        rows = [
            item.variance_classes(top)[0][int(i)] for item, top, i in zip(self.attributes, table, place, strict=True)
        ]
        return LargestVariance(float(variances[place]), np.array([_product(rows, table, levels) for levels in parts]))

    def _class_variances(self, table: Levels, parts: Mapping[Levels, float]) -> Floats:
        """Return the variance of a table's cells, with one entry for each combination of the attributes' variance
        classes instead of each cell."""
        rates = np.zeros([top + 1 for top in table])
        for levels in itertools.product(*(range(top + 1) for top in table)):
            rates[levels] = parts.get(levels, 0.0)
        result: Floats = rates
        for item, top in zip(self.attributes, table, strict=True):
            different, _ = item.variance_classes(top)
            result = np.tensordot(result, different, axes=([0], [1]))
        return result

    def variance_of_sum(self, table: Levels, weights: Floats, parts: Mapping[Levels, float]) -> float:
        """Return the variance of a weighted sum of the cells of a table, from ``v_A`` of each residual in ``parts``."""
        state: dict[Levels, Floats] = {(): weights}
        for axis, top in enumerate(table):
            state = {
                (*levels, level): np.moveaxis(part, 0, axis)
                for levels, value in state.items()
                for level, part in enumerate(self.attributes[axis].squared_weights(np.moveaxis(value, axis, 0), top))
            }
        return float(sum(parts.get(levels, 0.0) * float(np.sum(value * value)) for levels, value in state.items()))


def margin(domain: Domain, counts: Numbers, table: Levels, levels: Levels) -> Numbers:
    """Return the counts of the margin ``levels`` of a table, from the ``counts`` of the table; integers are added
    modulo 2^64."""
    result = counts
    for axis in np.argsort([-size for size in counts.shape]).tolist():
        fine, coarse = table[axis], levels[axis]
        if coarse == 0 and fine:
            result = result.sum(axis=axis, keepdims=True)
        for level in range(fine, max(coarse, 0), -1):
            if coarse:
                children = domain.attributes[axis].children[level - 1]
                result = _along(axis, result, lambda part, sizes=children: _segment_sums(part, sizes))  # type: ignore[misc]
    return result


def _segment_sums(values: Numbers, sizes: Integers) -> Numbers:
    """Return the sums of consecutive segments along the first axis, whose ``sizes`` are at least 1."""
    return np.asarray(np.add.reduceat(values, np.cumsum(sizes) - sizes, axis=0))


def _along(axis: int, values: Numbers, function: Callable[[Numbers], Numbers]) -> Numbers:
    """Apply a function of the first axis along the given axis of an array."""
    return np.moveaxis(function(np.ascontiguousarray(np.moveaxis(values, axis, 0))), 0, axis)


def _product(rows: list[Floats], table: Levels, levels: Levels) -> float:
    """Return the product over attributes of ``rows[i][levels[i]]``; 0 if ``levels`` is not a margin of the table."""
    if any(level > top for level, top in zip(levels, table, strict=True)):
        return 0.0
    return float(np.prod([row[level] for row, level in zip(rows, levels, strict=True)]))


@dataclass(frozen=True, eq=False)
class TableEstimate:
    """The cells of one table: one axis for each attribute that it has.

    >>> TableEstimate(("sex",), np.array([6.0, 4.0]), np.array([1.0, 1.0])).interval(0.95)[0].round(2)
    array([4.04, 2.04])
    """

    names: tuple[str, ...]
    value: Floats
    standard_error: Floats

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return the lower and upper limits of each cell's interval, which contains the exact count with this
        probability."""
        width = normal_quantile(confidence) * self.standard_error
        return self.value - width, self.value + width


@dataclass(frozen=True)
class SumEstimate:
    """The estimate of a weighted sum of cells, in rows, with its standard error.

    >>> SumEstimate(10.0, 2.0).interval(0.95)[1] < 14
    True
    """

    value: float
    standard_error: float

    def __repr__(self) -> str:
        if self.standard_error == 0:
            return f"SumEstimate({significant(self.value)} ± 0 (public))"
        error = normal_quantile(0.95) * self.standard_error
        return f"SumEstimate({rounded(self.value, two_digit_decimals(error))} ± {two_digits(error)} (95 %))"

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the limits of an interval that contains the exact sum with this probability."""
        width = normal_quantile(confidence) * self.standard_error
        return self.value - width, self.value + width


@dataclass(frozen=True, eq=False)
class Estimates:
    """Unbiased estimates of tables, and of sums of their cells, from noisy contrasts.

    >>> from dither.publish import Attribute, Domain
    >>> residuals = Residuals(Domain([Attribute.flat("sex", ["f", "m"])]))
    >>> noisy = {(0,): np.array([10.0]), (1,): np.array([2.0])}
    >>> estimates = Estimates(residuals, [(1,)], noisy, {(0,): 1.0, (1,): 3.0})
    >>> estimates.table(["sex"]).value, estimates.table(["sex"]).standard_error
    (array([6., 4.]), array([1., 1.]))
    >>> estimates.sum_of(["sex"], np.array([1.0, 1.0]))
    SumEstimate(10.0 ± 2.0 (95 %))
    """

    residuals: Residuals
    tables: Sequence[Levels]
    parts: Mapping[Levels, Floats]
    """The contrasts of each residual: with noise, or public."""
    variances: Mapping[Levels, float]
    """The variance ``v_A`` of each residual, in squared units of the counts; a missing residual is exact."""
    unit: float = 1.0
    """The value of 1 in the counts, in rows."""

    @property
    def domain(self) -> Domain:
        """Return the domain of the tables."""
        return self.residuals.domain

    def table(self, names: Sequence[str]) -> TableEstimate:
        """Return a table by the names of its levels: one that was planned, or a margin of one."""
        levels = self._known(names)
        shape = [size for size, level in zip(self.domain.shape(levels), levels, strict=True) if level]
        values = self.values(levels).reshape(shape)
        errors = self.unit * np.sqrt(self.residuals.variances(levels, self.variances)).reshape(shape)
        return TableEstimate(self.domain.names(levels), values, errors)

    def values(self, levels: Levels) -> Floats:
        """Return the estimated counts of a table in rows; residuals that were not measured are taken as 0."""
        if not any(contains(table, levels) for table in self.tables):
            self.domain.check_size(levels)
        values = self.residuals.table(levels, self.parts.get)
        return values * self.unit if self.unit != 1 else values

    def sum_of(self, names: Sequence[str], weights: Any) -> SumEstimate:
        """Return the estimate of ``sum(weights * counts)`` over the cells of a table; ``weights`` has a number for each
        cell."""
        levels = self._known(names)
        array = np.asarray(weights, dtype=np.float64)
        if array.size != self.domain.size(levels):
            raise InvalidArgument(
                "weights", f"{self.domain.size(levels):,} numbers", f"{array.size:,}", "pass one for each cell"
            )
        array = array.reshape(self.domain.shape(levels))
        variance = self.residuals.variance_of_sum(levels, array, self.variances)
        value = float(np.sum(array * self.values(levels)))
        return SumEstimate(value, self.unit * math.sqrt(variance))

    def _known(self, names: Sequence[str]) -> Levels:
        """Return the levels of a table by its names; refuse one that is not a margin of a planned table."""
        levels = self.domain.levels(names)
        if not all(below in self.parts for below in margins([levels]) if self.residuals.size(below)):
            planned = ", ".join(" × ".join(self.domain.names(table)) or "total" for table in self.tables)
            raise InvalidArgument(
                "table", f"a table of the plan or a margin of one ({planned})", " × ".join(names), "plan it"
            )
        return levels
