"""Whole counts of the smallest table that all public totals are margins of: they meet the totals, near the estimates.

The public tables are joined one by one (:func:`~dither.publish.joint_totals.joining_order`). The counts of the tables
joined so far are the rows, those of the next table the columns, and every cell of what they have in common is a table
to be filled with these sums of rows and columns, near the estimates of the joined table
(:func:`~dither.publish.rounding.fill_blocks`, which never fails). Tables that cannot be joined so are met by integer
programming, for which a table that meets them is known beforehand.
"""

from __future__ import annotations

import numpy as np

from dither.publish.contrasts import Floats
from dither.publish.domain import Integers, Levels, contains, finest
from dither.publish.joint_totals import joining_order, nearest_table, place_in
from dither.publish.reconstruct import Estimates
from dither.publish.residuals import margins
from dither.publish.rounding import Blocks, fill_blocks
from dither.publish.shrink import shrink
from dither.publish.totals import PublicTotals
from dither.randomness import Source

_SWEEPS = 10
_LEAST = 1e-12


def imposed_counts(estimates: Estimates, totals: PublicTotals, source: Source) -> tuple[Levels, Integers]:
    """The smallest table that all public tables are margins of, and its whole counts.

    >>> from dither.publish.domain import Attribute, Domain
    >>> from dither.publish.residuals import Residuals
    >>> from dither.publish.totals import public_totals
    >>> from dither.randomness import SYSTEM
    >>> domain = Domain([Attribute.flat("region", ["n", "s"]), Attribute.flat("sex", ["f", "m"])])
    >>> totals = public_totals(domain, {"region": [3, 7], "sex": [10, 0]})
    >>> residuals = Residuals(domain)
    >>> noisy = {**totals.parts(residuals), (1, 1): np.array([[1.0]])}
    >>> imposed_counts(Estimates(residuals, [(1, 1)], noisy, {(1, 1): 4.0}), totals, SYSTEM)
    ((1, 1), array([[3, 0],
           [7, 0]]))
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
    """Whole counts of the smallest table that both are margins of, from the counts of both."""
    domain = estimates.domain
    both = finest([first, second])
    common = tuple(map(min, first, second))
    row, column = place_in(domain, both, first), place_in(domain, both, second)
    block_of_row, block_of_column = place_in(domain, first, common), place_in(domain, second, common)
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
    """Non-negative real counts of a table near the estimates: shrunk, where all of its residuals are known; otherwise
    the start, scaled in turn to the shrunk estimates of the margins that are known, and to exact ones."""
    domain, residuals = estimates.domain, estimates.residuals
    known = [
        *dict.fromkeys(
            tuple(map(min, table, wanted))
            for wanted in estimates.tables
            if all(levels in estimates.parts for levels in margins([wanted]) if residuals.size(levels))
        )
    ]
    known = [levels for levels in known if not any(contains(other, levels) for other in known if other != levels)]
    variances = {levels: variance * estimates.unit**2 for levels, variance in estimates.variances.items()}
    targets: list[tuple[Integers, Floats]] = []
    for levels in known:
        places = place_in(domain, table, levels)
        expected = np.bincount(places, start.ravel(), minlength=domain.size(levels)).astype(np.float64)
        noise = residuals.variances(levels, variances).ravel()
        targets.append((places, shrink(estimates.values(levels).ravel(), noise, expected)[0]))
    targets += [(place_in(domain, table, levels), counts.ravel()) for levels, counts in exact.items()]
    result = start.ravel().copy()
    for _ in range(_SWEEPS if len(targets) > 1 else 1):
        for places, target in targets:
            result *= (target / np.maximum(np.bincount(places, result, minlength=len(target)), _LEAST))[places]
    return result.reshape(start.shape)
