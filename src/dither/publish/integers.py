"""Whole, non-negative counts that add up: one object of which every table is a margin.

The attribute with the most levels is the *spine*. From its coarsest level to its finest, the whole counts of each place
(one for every combination of the other attributes) are divided among its children:

1. The unbiased estimates of the children are moved to add up to the whole counts of the parent, which is what least
   squares does once the parent is fixed.
2. The requested tables of this level are shrunk toward their prior by empirical Bayes (:func:`shrink`), the coarsest
   first: the shrunk count of a place is the expectation that its cells are compared with. Shrinking makes counts
   non-negative without moving people from dense places to sparse ones.
3. The cells are pulled toward these tables, which are nearly kept, and fitted to the parents exactly. Where the cells
   themselves were not measured, since only margins of them were wanted, they are scaled to these margins.
4. They are rounded at random, systematically within each family: every count becomes one of the two whole numbers
   around it, with the right mean, and families keep their sums. In tables that are not large, places are rounded first
   and their cells within them, so that no sum is far from what it was.

All of this uses released and public numbers only. Plain top-down instead projects the estimates of each family to the
nearest non-negative ones: it takes the same number of people from all its cells until none is left below zero, so that
dense places lose what empty ones gained.

Public totals come first: the descent begins at whole counts, which meet them, of the smallest table of which they all
are margins (:func:`imposed_counts`).

Rounding is random, with the noisy numbers as its seed: the same release always has the same whole counts.

*Families.* Numbers that add up to a whole number are rounded systematically: each becomes one of the two whole numbers
around it, with the right mean, and the sum stays.

*Rows and columns.* A table with given whole sums of rows and of columns is made by halving the rows. The sums of the
columns over the upper half are real numbers between 0 and the sums of the columns, chosen so that they add up to the
rows of that half (the weights of both halves are tilted until they do, as iterative proportional fitting would); they
are rounded as a family, and what is left goes to the lower half. Then each half is halved. Whatever the weights are,
the rounded sums stay between 0 and the sums of the columns and add up to the rows, so that no step can fail: **every
pair of row and column sums with one total is met exactly.**

*Empirical Bayes.* Most cells of a fine table are empty or nearly so. Setting negative estimates to zero leaves the
positive ones, which in an empty region are all noise, so the sum grows; removing the excess from all cells equally
takes it from the dense ones. Instead, the distribution of the true counts is estimated from all noisy counts of similar
cells (whose parents have similar averages): the mixture over whole counts under which the noisy counts are most likely
(Kiefer and Wolfowitz 1956; by expectation maximization). The posterior mean is the estimate: near zero where most cells
are empty, and the noisy count itself where counts are far from zero. It uses only numbers that were released.

*Public totals.* The public tables are joined one by one (:func:`~dither.publish.totals.joining_order`). The counts of
the tables joined so far are the rows and those of the next table the columns; for every cell of their common margin, a
table with these sums of rows and columns is filled near the estimates (:func:`fill_blocks`, which never fails). Tables
that cannot be joined so are met by integer programming, for which a feasible table is known beforehand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dither.publish.domain import Domain, Integers, Levels, common_margin, contains, finest
from dither.publish.residuals import Estimates, Floats, Numbers, margin, margins
from dither.publish.totals import PublicTotals, containing_cells, joining_order, nearest_table
from dither.randomness import SeededSource, Source, resolve

_REPAIRS = 4
_BISECTIONS = 48
_LARGEST_TILT = 60.0
_LEAST_WEIGHT = 1e-9


def fit_to_sums(mean: Floats, spread: Floats, sums: Floats, families: Integers) -> Floats:
    """Return non-negative numbers near ``mean`` that add up to ``sums`` in each family of consecutive rows.

    The difference is distributed in proportion to the variances, as in least squares, a few times with negative results
    set to 0 in between; what then remains is removed by scaling.

    Parameters
    ----------
    mean, spread
        The numbers and their variances: a row for each child; columns are treated separately.
    sums
        The required sums: a row for each family.
    families
        The number of rows of each family, in their order.
    """
    starts, parent = np.cumsum(families) - families, np.repeat(np.arange(len(families)), families)
    for _ in range(_REPAIRS):
        missing = sums - np.add.reduceat(mean, starts, axis=0)
        free = np.where((mean > 0) | (missing > 0)[parent], spread, 0.0)
        room = np.add.reduceat(free, starts, axis=0)
        step = missing / np.where(room > 0, room, np.inf)
        mean = np.maximum(mean + free * step[parent], 0.0)
    present = np.add.reduceat(mean, starts, axis=0)
    empty = (present <= 0) & (sums > 0)
    mean = np.where(empty[parent], 1.0, mean)
    present = np.where(empty, families[:, np.newaxis], present)
    factor = np.where(present > 0, sums / np.where(present > 0, present, 1.0), 0.0)
    return np.asarray(mean * factor[parent])


def round_families(mean: Floats, sums: Integers, families: Integers, source: Source) -> Integers:
    """Return ``mean`` rounded to whole numbers with given ``sums`` in each family of consecutive rows.

    The method is systematic sampling: a number is rounded up where the running sum of the fractions, shifted by one
    random number for the family, passes a whole number, so that each number has its mean as expectation.

    ``mean`` has a row for each child, ``sums`` a row for each family, and ``families`` the number of rows of each;
    columns are treated separately. Every operation on the running sum is monotone, so its differences are never
    negative, and its end is set to the required sum.
    """
    floors = np.floor(mean)
    parts = mean - floors
    whole = floors.astype(np.int64)
    del floors
    starts, parent = np.cumsum(families) - families, np.repeat(np.arange(len(families)), families)
    ends = starts + families - 1
    left = sums - np.add.reduceat(whole, starts, axis=0)
    running = np.cumsum(parts, axis=0)
    running -= (running[starts] - parts[starts])[parent]
    np.maximum(running, 0.0, out=running)
    total = running[ends]
    words = source.words(sums.size) >> np.uint64(11)
    shift = words.astype(np.float64).reshape(sums.shape) * 2.0**-53
    running *= np.where(total > 0, left / np.where(total > 0, total, 1.0), 0.0)[parent]
    running += shift[parent]
    steps = np.minimum(np.floor(running), left[parent]).astype(np.int64)
    steps[ends] = left
    whole += steps
    whole[1:] -= steps[:-1]
    # the first of a family has no predecessor
    whole[starts[1:]] += steps[ends[:-1]]
    return whole


@dataclass(frozen=True, eq=False)
class Blocks:
    """The shapes of several tables: block b has ``rows[b]`` rows and ``columns[b]`` columns.

    Arrays of cells have one block after another, row by row.
    """

    rows: Integers
    columns: Integers


def fill_blocks(blocks: Blocks, row_sums: Integers, column_sums: Integers, weights: Floats, source: Source) -> Integers:
    """Return whole, non-negative cells with given row and column sums in every block, near ``weights``.

    All blocks are repeatedly halved by rows, and the column sums divided between the halves (:func:`_divide`), until
    every part has one row, whose cells are its column sums. The module's docstring says why that never fails.

    Parameters
    ----------
    blocks
        The number of rows and of columns of each block.
    row_sums, column_sums
        The sums of all rows of the first block, then of the second, and so on; those of the columns likewise.
    weights
        The approximate cells, block by block and row by row; the result has the same order.
    """
    sizes, widths = blocks.rows.copy(), blocks.columns  # segments of rows, at first one for each block
    cell_widths = np.repeat(blocks.columns, blocks.rows)  # of every row
    row_starts = np.cumsum(cell_widths) - cell_widths
    column_of_cell = np.arange(int(cell_widths.sum())) - np.repeat(row_starts, cell_widths)
    rows_before = np.concatenate([[0], np.cumsum(row_sums)])
    sums = column_sums.astype(np.int64)  # of every segment and column
    positive = np.maximum(weights, 0.0) + _LEAST_WEIGHT
    while np.any(sizes > 1):
        first = (sizes + 1) // 2
        parts = np.stack([first, sizes - first], axis=1)
        starts = np.cumsum(sizes) - sizes
        divided = np.repeat(sizes > 1, widths)
        halves = np.zeros((2, len(sums)))
        offsets = np.cumsum(widths) - widths
        in_upper = np.arange(len(cell_widths)) < np.repeat(starts + first, sizes)
        key = np.repeat(np.repeat(offsets, sizes), cell_widths) + column_of_cell
        upper_cell = np.repeat(in_upper, cell_widths)
        for half, cells in enumerate((upper_cell, ~upper_cell)):
            halves[half] = np.bincount(key[cells], positive[cells], minlength=len(sums))
        wanted = rows_before[starts + first] - rows_before[starts]
        upper = _divide(sums, halves[0], halves[1], wanted, widths, source)
        upper = np.where(divided, upper, sums)
        present = parts.ravel() > 0
        following = np.repeat(widths, 2)
        target = np.repeat(present, following)
        both = np.empty(int(following.sum()), dtype=np.int64)
        places = np.repeat(2 * offsets, widths) + np.arange(len(sums)) - np.repeat(offsets, widths)
        both[places], both[places + np.repeat(widths, widths)] = upper, sums - upper
        sizes, widths, sums = parts.ravel()[present], following[present], both[target]
    return sums


def _divide(
    sums: Integers, upper: Floats, lower: Floats, wanted: Integers, widths: Integers, source: Source
) -> Integers:
    """Return, for each column, the part of its sum that goes to the upper half of its segment, such that these parts
    add up to ``wanted`` in each segment.

    Each part is a whole number from 0 to the column's sum. Real numbers are found first: the odds of the upper half are
    multiplied by one factor for each segment, found by bisection. They are rounded, and a remaining difference is added
    or removed from left to right.

    Parameters
    ----------
    sums
        The sums of the columns of all segments, one segment after another.
    upper, lower
        The weights of both halves of each column.
    wanted, widths
        The sum of the upper half, and the number of columns, of each segment.
    """
    starts, segment = np.cumsum(widths) - widths, np.repeat(np.arange(len(widths)), widths)
    odds = np.log(np.maximum(upper, _LEAST_WEIGHT)) - np.log(np.maximum(lower, _LEAST_WEIGHT))
    low, high = np.full(len(widths), -_LARGEST_TILT), np.full(len(widths), _LARGEST_TILT)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        too_much = np.add.reduceat(sums / (1 + np.exp(-(odds + middle[segment]))), starts) > wanted
        low, high = np.where(too_much, low, middle), np.where(too_much, middle, high)
    shares = sums / (1 + np.exp(-(odds + low[segment])))
    whole = round_families(shares[:, np.newaxis], wanted[:, np.newaxis], widths, source).ravel()
    whole = np.clip(whole, 0, sums)
    for sign, room in ((1, sums - whole), (-1, whole.copy())):
        missing = sign * (wanted - np.add.reduceat(whole, starts))
        before = np.cumsum(room) - room
        before -= before[starts][segment]
        whole = whole + sign * np.clip(missing[segment] - before, 0, room)
    return whole


_LEAST_GROUP = 30
_SIZES = 8192
_MEMBERS_PER_ITERATION, _FEWEST, _MOST = 5, 10, 300
"""Expectation maximization takes one iteration for each 5 counts, but 10 to 300: few counts would be overfitted."""
_FAR = 30.0
"""Counts more than this number of standard deviations above 0 are not shrunk."""
_POINTS_PER_DEVIATION = 4
_LEAST_SHARE = 0.01
_LEAST_PROBABILITY = 1e-12
_TINY = 1e-300


def shrink(noisy: Floats, variance: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """Return the posterior mean and variance of each count by empirical Bayes; see the module.

    Parameters
    ----------
    noisy, variance
        Noisy counts, and the variances of their noise.
    expected
        The count of the parent divided by its number of cells. Cells with similar expectations and variances share a
        prior; a cell with expectation 0 is 0.
    """
    mean, spread = np.maximum(noisy, 0.0), variance.copy()
    mean[expected <= 0] = spread[expected <= 0] = 0.0
    kinds = _prior_groups(variance, expected)
    order = np.argsort(kinds, kind="stable")
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(kinds[order])) + 1, [len(kinds)]])
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        members = order[start:stop]
        if kinds[members[0]] < 0:
            continue
        deviation = float(np.sqrt(variance[members].mean()))
        members = members[noisy[members] < _FAR * deviation]
        if len(members) >= _LEAST_GROUP:
            mean[members], spread[members] = _posterior(noisy[members], deviation)
    spread = np.maximum(spread, _LEAST_SHARE * variance)
    spread[expected <= 0] = 0.0
    return mean, spread


def _prior_groups(variance: Floats, expected: Floats) -> Integers:
    """Return a number for each cell, equal for cells that share a prior; -1 for cells with variance or expectation 0.

    Cells of one group have variances within a factor of about 1.4 (half steps of log2) and expectations within about
    1.6. Both rounded logarithms are coded in one number, with 4096 added to keep them positive. Small groups are
    merged.
    """
    known = (variance > 0) & (expected > 0)
    with np.errstate(divide="ignore"):
        noise = np.rint(2 * np.log2(np.where(known, variance, 1.0)))
        size = np.rint(1.5 * np.log2(np.where(known, expected, 1.0)))
    kinds = ((noise + 4096) * _SIZES + size + 4096).astype(np.int64)
    return np.where(known, _merged_groups(kinds, known), -1)


def _merged_groups(kinds: Integers, known: NDArray[np.bool_]) -> Integers:
    """Return ``kinds`` with groups of equal variance and neighboring expectations merged, until each has at least
    ``_LEAST_GROUP`` cells; cells that are not ``known`` are ignored."""
    different, which, counts = np.unique(kinds[known], return_inverse=True, return_counts=True)
    merged = np.empty_like(different)
    start, members = 0, 0
    for i, kind in enumerate(different.tolist()):
        members += int(counts[i])
        last_of_variance = i + 1 == len(different) or different[i + 1] // _SIZES != kind // _SIZES
        if last_of_variance and members < _LEAST_GROUP and start and different[start - 1] // _SIZES == kind // _SIZES:
            merged[start : i + 1] = merged[start - 1]
        else:
            merged[start : i + 1] = kind
        if members >= _LEAST_GROUP or last_of_variance:
            start, members = i + 1, 0
    result = kinds.copy()
    result[known] = merged[which]
    return result


def _posterior(noisy: Floats, deviation: float) -> tuple[Floats, Floats]:
    """Return the posterior mean and variance of counts that share a prior, by empirical Bayes.

    ``noisy`` are the noisy counts and ``deviation`` is the standard deviation of their normal noise. The prior is the
    distribution on whole counts under which the noisy counts are most likely, by expectation maximization from weights
    ``1 / (1 + count)``. For speed, noisy counts are binned on a grid, and the result is interpolated on it.
    """
    low, high = float(noisy.min()), float(noisy.max())
    points = max(int((high - low) / deviation * _POINTS_PER_DEVIATION), 16)
    at = np.linspace(low, high, points + 1)
    place = (noisy - low) * (points / max(high - low, 1e-300))
    observed = np.bincount(np.rint(place).astype(np.int64), minlength=points + 1).astype(np.float64)
    support = _support(max(high, 0.0) + deviation, deviation)
    exponent = -0.5 * ((at[:, np.newaxis] - support) / deviation) ** 2
    likelihood = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    weights = 1 / (1 + support)
    for _ in range(min(max(len(noisy) // _MEMBERS_PER_ITERATION, _FEWEST), _MOST)):
        joint = likelihood * weights
        weights = (observed / (joint.sum(axis=1) + _TINY)) @ joint / observed.sum()
    joint = likelihood * np.maximum(weights, _LEAST_PROBABILITY)
    joint /= joint.sum(axis=1, keepdims=True)
    mean = joint @ support
    variance = np.maximum(joint @ support**2 - mean**2, 0.0)
    return np.interp(noisy, at, mean), np.interp(noisy, at, variance)


def _support(highest: float, deviation: float) -> Floats:
    """Return the support of a prior: whole counts from 0 to ``highest``, at first all, then in steps of half a
    deviation."""
    step = max(deviation / 2, 1.0)
    near = np.arange(0.0, min(highest, 4 * step, 40.0) + 1)
    return np.unique(np.rint(np.concatenate([near, np.arange(0.0, highest + step, step)])))


_IMPOSED_SWEEPS = 10
_TINY_SUM = 1e-12


def imposed_counts(estimates: Estimates, totals: PublicTotals, source: Source) -> tuple[Levels, Integers]:
    """Return the levels of the smallest table of which all public tables are margins, and whole counts of it.

    The counts meet the public totals. The public tables are joined one by one where they can be; otherwise the
    estimates are scaled to them by iterative proportional fitting, and integer programming finds the nearest whole
    counts. ``source`` decides the rounding.
    """
    domain = estimates.domain
    order = joining_order([*totals.tables])
    if order is None:
        core = finest(totals.tables)
        exact = {levels: counts.astype(np.float64) for levels, counts in totals.tables.items()}
        everybody = next(iter(exact.values())).sum()
        start = np.full(domain.shape(core), everybody / domain.size(core))
        target = scaled_to(estimates, core, start, exact)
        assert totals.example is not None
        return core, nearest_table(domain, totals.tables, target, totals.example)
    joined, counts = order[0], totals.tables[order[0]]
    for table in order[1:]:
        joined, counts = _join(estimates, joined, counts, table, totals.tables[table], source)
    return joined, counts


def _join(
    estimates: Estimates, first: Levels, rows: Integers, second: Levels, columns: Integers, source: Source
) -> tuple[Levels, Integers]:
    """Return the levels of the smallest table of which both tables are margins, and whole counts of it that meet both.

    ``first`` has the counts ``rows`` and ``second`` the counts ``columns``, which agree in the common margin. Each cell
    of that margin is a block with given sums of rows and columns, to be filled near the ``estimates``, starting from
    independence of rows and columns within the block. ``source`` decides the rounding.
    """
    domain = estimates.domain
    both = finest([first, second])
    common = common_margin(first, second)
    row, column = containing_cells(domain, both, first), containing_cells(domain, both, second)
    block_of_row, block_of_column = containing_cells(domain, first, common), containing_cells(domain, second, common)
    sums = np.bincount(block_of_row, rows.ravel(), minlength=domain.size(common))
    block = block_of_row[row]
    independent = rows.ravel()[row] * columns.ravel()[column] / np.maximum(sums[block], 1.0)
    weights = scaled_to(estimates, both, independent.reshape(domain.shape(both)), {})
    order = np.lexsort((column, row, block))
    row_order, column_order = (np.argsort(places, kind="stable") for places in (block_of_row, block_of_column))
    sizes = Blocks(*(np.bincount(places, minlength=len(sums)) for places in (block_of_row, block_of_column)))
    filled = np.empty(len(order), dtype=np.int64)
    filled[order] = fill_blocks(
        sizes, rows.ravel()[row_order], columns.ravel()[column_order], weights.ravel()[order], source
    )
    return both, filled.reshape(domain.shape(both))


def scaled_to(estimates: Estimates, table: Levels, start: Floats, exact: dict[Levels, Floats]) -> Floats:
    """Return non-negative real counts of a table near the estimates and with given ``exact`` margins.

    The method is iterative proportional fitting: ``start`` (counts of the table) is scaled in turn to each known
    margin. A margin is known if it is exact, or if all of its residuals were measured; the estimates of measured ones
    are shrunk (:func:`shrink`), so that they are not negative. If the table itself was measured and nothing is exact,
    the result is its shrunk estimates. ``exact`` has counts by the levels of their table.
    """
    domain, residuals = estimates.domain, estimates.residuals
    known = [
        *dict.fromkeys(
            common_margin(table, wanted)
            for wanted in estimates.tables
            if all(levels in estimates.parts for levels in margins([wanted]) if residuals.size(levels))
        )
    ]
    known = [levels for levels in known if not any(contains(other, levels) for other in known if other != levels)]
    # variances are in squared units of the counts; ``unit`` converts units to rows
    variances = {levels: variance * estimates.unit**2 for levels, variance in estimates.variances.items()}
    targets: list[tuple[Integers, Floats]] = []
    for levels in known:
        places = containing_cells(domain, table, levels)
        expected = np.bincount(places, start.ravel(), minlength=domain.size(levels)).astype(np.float64)
        noise = residuals.variances(levels, variances).ravel()
        targets.append((places, shrink(estimates.values(levels).ravel(), noise, expected)[0]))
    targets += [(containing_cells(domain, table, levels), counts.ravel()) for levels, counts in exact.items()]
    result = start.ravel().copy()
    for _ in range(_IMPOSED_SWEEPS if len(targets) > 1 else 1):
        for places, target in targets:
            result *= (target / np.maximum(np.bincount(places, result, minlength=len(target)), _TINY_SUM))[places]
    return result.reshape(start.shape)


_SWEEPS = 6
_SCALING_SWEEPS = 10
_FILLED_CELLS = 200_000
"""The largest table whose sums of places are rounded first and its cells within them, rather than each cell by
itself."""
_FLOOR = 1e-3
_SHARE = 0.05
"""The factor of a margin's variance when cells are pulled toward it, below 1 because cells that were shrunk are less
independent than their variances suggest."""


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
        """Return the whole counts of a table, one axis for each attribute that it has.

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
    """Return non-negative whole counts of the finest table near the estimates, which meet the public totals.

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
    core, counts = _starting_counts(estimates, levels, totals, stream)
    fitting = _Fitting(estimates, levels, spine, stream)
    counts = fitting.first_level(core, counts)
    for level in range(core[spine] + 1, levels[spine] + 1):
        counts = fitting.next_level(counts, level)
    shape = domain.shape(levels)
    moved = counts.reshape(shape[spine], *(size for axis, size in enumerate(shape) if axis != spine))
    return WholeCounts(domain, levels, np.ascontiguousarray(np.moveaxis(moved, 0, spine)))


def _starting_counts(
    estimates: Estimates, levels: Levels, totals: PublicTotals | None, source: Source
) -> tuple[Levels, Integers]:
    """Return the levels of the table at which the descent begins, and its whole counts.

    With public totals it is the smallest table that they all are margins of, as far as ``levels`` (the finest table)
    contains them. Without any it is the total, whose levels are all 0, at its estimate rounded to a whole number.
    ``source`` decides the rounding.
    """
    if totals is not None and totals.tables:
        return imposed_counts(estimates, totals.within(estimates.domain, levels), source)
    everybody = (0,) * len(levels)
    return everybody, np.maximum(np.rint(estimates.values(everybody)), 0.0).astype(np.int64)


def _digest(estimates: Estimates) -> int:
    """Return a seed computed from the noisy numbers, so that one release is always rounded in one way.

    It need not be secret.
    """
    digest = hashlib.sha256()
    for levels, values in sorted(estimates.parts.items(), key=itemgetter(0)):
        digest.update(repr((levels, values.shape)).encode())
        digest.update(np.ascontiguousarray(values, dtype="<f8").data)
    return int.from_bytes(digest.digest(), "big")


@dataclass(frozen=True, eq=False)
class _Fitting:
    """The descent along the spine from coarse to fine; counts are matrices with a row for each key of the spine and a
    column for each combination of the other attributes."""

    estimates: Estimates
    levels: Levels
    spine: int
    source: Source

    def _at(self, level: int, table: Levels | None = None) -> Levels:
        """Return the levels of ``table`` (None: the finest table), with ``level`` in place of its level of the
        spine."""
        levels = self.levels if table is None else table
        return (*levels[: self.spine], level, *levels[self.spine + 1 :])

    def _columns(self, table: Levels) -> Integers:
        """Return, for each column of the finest table, the index of the column of a coarser table that contains it."""
        return containing_cells(self.estimates.domain, self._at(0), self._at(0, table))

    def _margins(self, level: int) -> Iterator[tuple[Levels, Integers]]:
        """Yield the requested tables at a level of the spine except the finest, the largest first, each with the index
        of its column that contains each column of the finest table."""
        wanted = {self._at(level, table) for table in self.estimates.tables if table[self.spine] >= level}
        wanted.discard(self._at(level))
        for table in sorted(wanted, key=lambda levels: (-self.estimates.domain.size(levels), levels)):
            yield table, self._columns(table)

    def _is_known(self, table: Levels, level: int | None) -> bool:
        """Return whether every residual of a table was measured or is public, so that its estimates are unbiased.

        If ``level`` is not None, only residuals at this level of the spine count. Residuals of size 0 need no
        measurement.
        """
        return all(
            levels in self.estimates.parts
            for levels in margins([table])
            if (level is None or levels[self.spine] == level) and self.estimates.residuals.size(levels)
        )

    def _flatten(self, values: Numbers) -> Numbers:
        """Return values as a matrix: a row for each key of the spine, a column for each combination of the other
        attributes."""
        return np.moveaxis(values, self.spine, 0).reshape(values.shape[self.spine], -1)

    def first_level(self, core: Levels, counts: Integers) -> Integers:
        """Return the whole counts of a level of the spine from those of a coarser table at that level."""
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
            """Fit means to the sums of their families."""
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
        """Return the whole counts of a level of the spine from those of the level above (``parents``)."""
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
        """Return the estimates of a table at ``level`` of the spine given the counts ``parents`` of the level above, to
        which they add up, and their variances."""
        residuals = self.estimates.residuals
        contrasts = residuals.attributes[self.spine].contrasts[level - 1]
        if contrasts.size:
            noisy = self._flatten(residuals.table(table, self.estimates.parts.get, keep={self.spine: level}))
            values = contrasts.expand(parents, noisy * self.estimates.unit)
        else:  # each key has one child
            values = parents.copy()
        return values, self._flatten(self._variances(table, level))

    def _variances(self, table: Levels, level: int | None) -> Floats:
        """Return the variances of a table's cells that come from all its residuals or, if ``level`` is not None, from
        those with this level of the spine."""
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
    """Return non-negative counts near their estimates and near the estimates of margins, with the required sums.

    Counts that were not measured themselves start as equal as their sums allow, and are scaled to the measured margins
    (iterative proportional fitting).

    Parameters
    ----------
    values, variance
        The unbiased estimates of the counts, a row for each key of the spine, and their variances.
    expected
        The counts if those of one parent were equal.
    targets
        For each requested margin, the finest first: the index of the margin's column that contains each column, the
        estimates of the margin, and their variances.
    known
        Whether the counts themselves were measured.
    to_sums
        Returns the given counts, moved in proportion to the given variances, such that they add up to those of the
        level above.
    """
    pulls: list[tuple[Integers, Floats, Floats]] = []
    prior = expected
    for places, target, noise in reversed([*targets]):
        mean, spread = _shrunk(target, noise, _grouped(prior, places))
        pulls.insert(0, (places, mean, spread))
        prior = np.maximum(
            prior * (mean / np.maximum(_grouped(prior, places), _TINY_SUM))[:, places], _FLOOR * expected
        )
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
                mean = mean * (target / np.maximum(_grouped(mean, places), _TINY_SUM))[:, places]
        mean = to_sums(mean, spread if known else mean)
    return mean


def _shrunk(values: Floats, variance: Floats, expected: Floats) -> tuple[Floats, Floats]:
    """Return posterior means and variances of cells (:func:`shrink`), in the shape of the values."""
    mean, spread = shrink(values.ravel(), variance.ravel(), expected.ravel())
    return mean.reshape(values.shape), spread.reshape(values.shape)


def _grouped(values: Floats, places: Integers) -> Floats:
    """Return the sums of the columns of each group; ``places`` gives the group of every column."""
    groups = int(places.max()) + 1
    if groups == 1:
        return np.asarray(values.sum(axis=1, keepdims=True))
    order = np.argsort(places, kind="stable")
    starts = np.searchsorted(places[order], np.arange(groups))
    return np.asarray(np.add.reduceat(values[:, order], starts, axis=1))


def _pull(mean: Floats, spread: Floats, places: Integers, target: Floats, noise: Floats) -> None:
    """Move counts, in place, so that the sums of groups of columns come closer to ``target``.

    A count moves by ``spread * (target - sum) / (sum of spreads + _SHARE * noise)``, with its variance ``spread`` and
    the variance ``noise`` of the target. ``mean`` are the counts, and ``places`` has the index of each column's group.
    """
    uncertain = _grouped(spread, places)
    step = (target - _grouped(mean, places)) / np.maximum(uncertain + _SHARE * noise, 1e-12)
    mean += spread * step[:, places]
    np.maximum(mean, 0.0, out=mean)


def records(counts: WholeCounts) -> Any:
    """Return records with exactly these counts, as an Arrow table with a column for every level of every attribute.

    Columns are dictionary-encoded, so that a million rows take a few megabytes. Rows are sorted by the keys.

    >>> from dither.publish import Attribute, Domain
    >>> domain = Domain([Attribute.flat("sex", ["f", "m"]), Attribute.flat("region", ["n", "s"])])
    >>> records(WholeCounts(domain, (1, 1), np.array([[1, 0], [0, 2]]))).to_pydict()
    {'sex': ['f', 'm', 'm'], 'region': ['n', 's', 's']}
    """
    flattened = counts.counts.ravel()
    present = np.flatnonzero(flattened)
    rows = np.repeat(present, flattened[present])
    columns = {}
    places = np.unravel_index(rows, counts.counts.shape)
    for attribute, level, place in zip(counts.domain.attributes, counts.levels, places, strict=True):
        for depth in range(1, level + 1):
            codes = attribute.ancestors(level, depth).astype(np.int32)[place]
            keys = attribute.keys[depth - 1]
            nulls = (
                codes == len(keys) - 1 if attribute.null else None
            )  # no value, rather than a value of the dictionary
            columns[attribute.level_names[depth - 1]] = pa.DictionaryArray.from_arrays(
                pa.array(codes, mask=nulls), keys[: len(keys) - attribute.null]
            )
    if not columns:  # a plan of the total alone: rows without columns
        return pa.table({"person": pa.nulls(len(rows))})
    return pa.table(columns)
