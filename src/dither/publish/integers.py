"""Whole, non-negative counts that add up: one object of which every table is a margin.

The attribute with the most levels is the *spine*. From its coarsest level to its finest, the whole counts of each place
(one for every combination of the other attributes) are divided among its children:

1. The unbiased estimates of the children are moved to add up to the whole counts of the parent, which is what least
   squares does once the parent is fixed.
2. The wanted tables of this level are shrunk toward what counts like them are (:mod:`dither.publish.shrink`), the
   coarsest first: what it says of a place is what the cells of that place are compared with. Shrinking makes counts
   non-negative without taking people from dense places for sparse ones.
3. The cells are pulled toward these tables, which are nearly kept, and fitted to the parents exactly. Where the cells
   themselves were not measured, since only margins of them were wanted, they are scaled to these margins.
4. They are rounded at random, systematically within each family: every count becomes one of the two whole numbers
   around it, with the right mean, and families keep their sums. In tables that are not large, places are rounded first
   and their cells within them (:mod:`dither.publish.rounding`), so that no sum is far from what it was.

All of this uses released and public numbers only. Plain top-down instead projects the estimates of each family to the
nearest non-negative ones: it takes the same number of people from all its cells until none is left below zero, so that
dense places lose what empty ones gained.

Public totals come first: the whole counts of the smallest table that they all are margins of meet them
(:mod:`dither.publish.imposed`), and the descent begins there.

Rounding is random, with the noisy numbers as its seed: the same release always has the same whole counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from dither.publish.contrasts import Floats, Numbers
from dither.publish.domain import Domain, Integers, Levels, finest
from dither.publish.imposed import imposed_counts
from dither.publish.joint_totals import place_in
from dither.publish.reconstruct import Estimates
from dither.publish.residuals import margin, margins
from dither.publish.rounding import Blocks, fill_blocks, fit_to_sums, round_families
from dither.publish.shrink import shrink
from dither.publish.totals import PublicTotals
from dither.randomness import SeededSource, Source, resolve

_SWEEPS = 6
_SCALING_SWEEPS = 10
_FILLED_CELLS = 200_000
"""Up to so many cells, places and columns are rounded together, so that the sums of places are rounded only once."""
_LEAST = 1e-12
_FLOOR = 1e-3
_SHARE = 0.05
"""What share of the variance of a margin counts when cells are pulled toward it: cells that were shrunk are less
independent than their variances say."""


@dataclass(frozen=True, eq=False)
class WholeCounts:
    """The whole counts of the finest table; every other table is a margin of it.

    >>> from dither.publish import Attribute
    >>> WholeCounts(Domain([Attribute.flat("sex", ["f", "m"])]), (1,), np.array([3, 4])).table([])
    array(7)
    """

    domain: Domain
    levels: Levels
    counts: Integers

    def table(self, names: Sequence[str]) -> Integers:
        """The whole counts of a table, one axis for each attribute that it has.

        >>> from dither.publish import Attribute
        >>> domain = Domain([Attribute.flat("sex", ["f", "m"]), Attribute.flat("region", ["n", "s", "w"])])
        >>> WholeCounts(domain, (1, 1), np.array([[3, 1, 2], [0, 5, 4]])).table(["sex"])
        array([6, 9])
        """
        levels = self.domain.levels(names)
        result = margin(self.domain, self.counts, self.levels, levels)
        return result.reshape([size for size, level in zip(result.shape, levels, strict=True) if level])


def whole_counts(
    estimates: Estimates, *, totals: PublicTotals | None = None, source: Source | None = None
) -> WholeCounts:
    """Non-negative whole counts close to the estimates: they add up, and meet the public totals.

    >>> from dither.publish import Attribute, Residuals
    >>> residuals = Residuals(Domain([Attribute.flat("sex", ["f", "m"])]))
    >>> noisy = {(0,): np.array([10.0]), (1,): np.array([16.0])}
    >>> estimates = Estimates(residuals, [(1,)], noisy, {(0,): 1.0, (1,): 3.0})
    >>> whole_counts(estimates).counts
    array([10,  0])
    """
    domain = estimates.domain
    levels = finest(estimates.tables)
    domain.check_size(levels)
    spine = max(range(len(levels)), key=lambda axis: (levels[axis], domain.shape(levels)[axis]))
    stream = resolve(source) if source is not None else SeededSource(_digest(estimates))
    core, counts = _imposed(estimates, levels, totals, stream)
    fitting = _Fitting(estimates, levels, spine, stream)
    counts = fitting.first_level(core, counts)
    for level in range(core[spine] + 1, levels[spine] + 1):
        counts = fitting.next_level(counts, level)
    shape = domain.shape(levels)
    moved = counts.reshape(shape[spine], *(size for axis, size in enumerate(shape) if axis != spine))
    return WholeCounts(domain, levels, np.ascontiguousarray(np.moveaxis(moved, 0, spine)))


def _imposed(
    estimates: Estimates, levels: Levels, totals: PublicTotals | None, source: Source
) -> tuple[Levels, Integers]:
    """The table that public totals say something about, and its whole counts; the total where there are none."""
    if totals is not None and totals.tables:
        return imposed_counts(estimates, totals.within(estimates.domain, levels), source)
    everybody = (0,) * len(levels)
    return everybody, np.maximum(np.rint(estimates.values(everybody)), 0.0).astype(np.int64)


def _digest(estimates: Estimates) -> int:
    """A seed from the noisy numbers: the same release is always rounded in the same way. It need not be secret."""
    digest = hashlib.sha256()
    for levels, values in sorted(estimates.parts.items(), key=itemgetter(0)):
        digest.update(repr((levels, values.shape)).encode())
        digest.update(np.ascontiguousarray(values, dtype="<f8").data)
    return int.from_bytes(digest.digest(), "big")


@dataclass(frozen=True, eq=False)
class _Fitting:
    """One descent along the spine; counts are arrays of places (rows) by all other attributes together (columns)."""

    estimates: Estimates
    levels: Levels
    spine: int
    source: Source

    def _at(self, level: int, table: Levels | None = None) -> Levels:
        """The finest table, or another one, at some level of the spine."""
        levels = self.levels if table is None else table
        return (*levels[: self.spine], level, *levels[self.spine + 1 :])

    def _columns(self, table: Levels) -> Integers:
        """For every column, the column of a coarser table at the same level of the spine that it belongs to."""
        return place_in(self.estimates.domain, self._at(0), self._at(0, table))

    def _margins(self, level: int) -> Iterator[tuple[Levels, Integers]]:
        """The wanted tables at a level of the spine that are proper margins there, the finest first, with the column of
        each of them that every column of the finest table belongs to."""
        wanted = {self._at(level, table) for table in self.estimates.tables if table[self.spine] >= level}
        wanted.discard(self._at(level))
        for table in sorted(wanted, key=lambda levels: (-self.estimates.domain.size(levels), levels)):
            yield table, self._columns(table)

    def _is_known(self, table: Levels, level: int | None) -> bool:
        """Whether all residuals of a table are known: all, or those that have this level of the spine."""
        return all(
            levels in self.estimates.parts
            for levels in margins([table])
            if (level is None or levels[self.spine] == level) and self.estimates.residuals.size(levels)
        )

    def _flatten(self, values: Numbers) -> Numbers:
        return np.moveaxis(values, self.spine, 0).reshape(values.shape[self.spine], -1)

    def first_level(self, core: Levels, counts: Integers) -> Integers:
        """The whole counts of a level of the spine from those of a coarser table at the same level."""
        level = core[self.spine]
        table = self._at(level)
        families = self._columns(core)
        above = self._flatten(counts)
        if table == core:
            return above
        sizes = np.bincount(families)
        expected = (above / sizes)[:, families]
        values, variance = self._flatten(self.estimates.values(table)), self._flatten(self._variances(table, None))
        targets = (
            (places, self._flatten(self.estimates.values(other)), self._flatten(self._variances(other, None)))
            for other, places in self._margins(level)
        )
        order = np.argsort(families, kind="stable")
        every_family = np.tile(sizes, len(above))

        def to_families(mean: Floats, spread: Floats) -> Floats:
            ordered, uncertain = mean[:, order].reshape(-1, 1), spread[:, order].reshape(-1, 1)
            sums = above.reshape(-1, 1).astype(np.float64)
            result = np.empty_like(mean)
            result[:, order] = fit_to_sums(ordered, uncertain, sums, every_family).reshape(mean.shape)
            return result

        fitted = _fit(values, variance, expected, targets, self._is_known(table, None), to_families)
        rounded = round_families(fitted[:, order].reshape(-1, 1), above.reshape(-1, 1), every_family, self.source)
        result = np.empty(fitted.shape, dtype=np.int64)
        result[:, order] = rounded.reshape(fitted.shape)
        return result

    def next_level(self, parents: Integers, level: int) -> Integers:
        """The whole counts of a level from those of the level above."""
        families = self.estimates.residuals.attributes[self.spine].contrasts[level - 1].children
        sums = parents.astype(np.float64)
        values, variance = self._children(self._at(level), level, sums)
        expected = np.repeat(parents / families[:, np.newaxis], families, axis=0)
        targets = (
            (places, *self._children(table, level, _grouped(sums, places))) for table, places in self._margins(level)
        )
        known = self._is_known(self._at(level), level)
        fitted = _fit(
            values, variance, expected, targets, known, lambda mean, spread: fit_to_sums(mean, spread, sums, families)
        )
        if fitted.shape[1] == 1 or fitted.size > _FILLED_CELLS:
            return round_families(fitted, parents, families, self.source)
        everybody = parents.sum(axis=1, keepdims=True)
        places = round_families(fitted.sum(axis=1, keepdims=True), everybody, families, self.source)
        blocks = Blocks(families, np.full(len(families), fitted.shape[1]))
        filled = fill_blocks(blocks, places.ravel(), parents.ravel(), fitted.ravel(), self.source)
        return filled.reshape(fitted.shape)

    def _children(self, table: Levels, level: int, parents: Floats) -> tuple[Floats, Floats]:
        """The estimates of a table that add up to these counts of the level above, and their variances given those."""
        residuals = self.estimates.residuals
        contrasts = residuals.attributes[self.spine].contrasts[level - 1]
        if contrasts.size:
            noisy = self._flatten(residuals.table(table, self.estimates.parts.get, keep={self.spine: level}))
            values = contrasts.expand(parents, noisy * self.estimates.unit)
        else:  # everyone is an only child
            values = parents.copy()
        return values, self._flatten(self._variances(table, level))

    def _variances(self, table: Levels, level: int | None) -> Floats:
        """The variances of a table: of all its residuals, or of those that have this level of the spine."""
        parts = {
            levels: variance * self.estimates.unit**2
            for levels, variance in self.estimates.variances.items()
            if level is None or levels[self.spine] == level
        }
        return self.estimates.residuals.variances(table, parts)


def _fit(
    values: Floats,
    variance: Floats,
    expected: Floats,
    targets: Iterable[tuple[Integers, Floats, Floats]],
    known: bool,
    to_sums: Callable[[Floats, Floats], Floats],
) -> Floats:
    """Non-negative counts near their estimates, near those of margins, and with the right sums.

    Where the counts themselves were not measured (``known`` is False), they begin as equal as their sums allow, and are
    scaled to the margins that were.
    """
    pulls: list[tuple[Integers, Floats, Floats]] = []
    prior = expected
    for places, target, noise in reversed([*targets]):
        mean, spread = _shrunk(target, noise, _grouped(prior, places))
        pulls.insert(0, (places, mean, spread))
        prior = np.maximum(prior * (mean / np.maximum(_grouped(prior, places), _LEAST))[:, places], _FLOOR * expected)
        prior = to_sums(prior, prior)
    if known:
        mean, spread = _shrunk(values, variance, prior)
    else:
        mean, spread = prior, prior
    for _ in range(1 if not pulls else _SWEEPS if known else _SCALING_SWEEPS):
        for places, target, noise in pulls:
            if known:
                _pull(mean, spread, places, target, noise)
            else:
                mean = mean * (target / np.maximum(_grouped(mean, places), _LEAST))[:, places]
        mean = to_sums(mean, spread if known else mean)
    return mean


def _shrunk(values: Floats, variance: Floats, expected: Floats) -> tuple[Floats, Floats]:
    mean, spread = shrink(values.ravel(), variance.ravel(), expected.ravel())
    return mean.reshape(values.shape), spread.reshape(values.shape)


def _grouped(values: Floats, places: Integers) -> Floats:
    """Sums of columns that belong together."""
    groups = int(places.max()) + 1
    if groups == 1:
        return np.asarray(values.sum(axis=1, keepdims=True))
    order = np.argsort(places, kind="stable")
    starts = np.searchsorted(places[order], np.arange(groups))
    return np.asarray(np.add.reduceat(values[:, order], starts, axis=1))


def _pull(mean: Floats, spread: Floats, places: Integers, target: Floats, noise: Floats) -> None:
    """Move counts, in place, so that sums of columns come closer to a target, as far as both are uncertain."""
    uncertain = _grouped(spread, places)
    step = (target - _grouped(mean, places)) / np.maximum(uncertain + _SHARE * noise, 1e-12)
    mean += spread * step[:, places]
    np.maximum(mean, 0.0, out=mean)
