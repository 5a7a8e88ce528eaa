"""Publishing: tables that add up, with intervals, as whole numbers; small tables, and a country of a million places."""

from __future__ import annotations

import gc
import resource
import time

import numpy as np
from numpy.typing import NDArray

import dither as dp
from dither.publish import MarginalPlan, TableSpec, records
from marginals import NOTE, counting
from publish_adult import NOTE as ADULT
from publish_adult import adult_rows
from publish_tables import coverage, margins_of_states, root_mean_square, tree, whole_numbers
from suite import Row, limited, main, number

TITLE = "Publishing"
NOTES = (
    "State × age × sex: 51 × 9 × 2 cells of made-up people, epsilon = 0.5, delta = 1e-9, all eight tables wanted. "
    "*Cells alone* asks the same mechanism for the cells only, at the same cost; a margin is then the sum of its "
    "cells. Errors are root mean squares over cells and releases. Laplace noise at epsilon = 0.5 without delta "
    "would give the cells alone an error of 2.83, but no margin that is much better than the sum of its cells.",
    "Coverage: how many of the 95 % intervals hold the exact count, for every table over all cells and releases, and "
    "for 50 random sums of cells; the one farthest from 95 % is shown. The tables are small, since a table of one cell "
    "needs thousands of releases. Uneven levels: 4 places with 1, 2, 5 and 12 children, of which every third has an "
    "only child. Weights: rows count 2/3 in units of 2^-20. Public: the places' totals and sex × age are public.",
    "Whole counts: non-negative, every table a margin of one object. *Clipping* rounds the unbiased cells and "
    "sets negative ones to zero; *top-down* projects each family to the nearest non-negative numbers with the "
    "parent's sum. Zero-heavy is a tree of 4 levels, 4,096 leaves by 8 cells, of which four in five are empty, at "
    "epsilon = 1, delta = 1e-9. Bias of the dense places: the mean error of the cells among the largest 5 %. The worst "
    "table is the wanted table whose error, of whole counts against unbiased estimates, has the largest ratio; of a "
    "squared error, 1/4 is rounding and not counted, and the unbiased one is what it is expected to be. Pairs: only "
    "the three two-way tables of 20 × 15 × 10 cells.",
    ADULT,
    "A country: 6 levels, 1,000,000 leaves × 8 cells, 20 million people, epsilon = 1, delta = 1e-9, tables of all "
    "levels with and without the 8 cells. CPU seconds, and the largest memory of the process.",
    NOTE,
)
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LIMIT_SECONDS, LIMIT_GIGABYTES = 60.0, 6.0


def country(quick: bool) -> list[Row]:
    sizes = (5, 25, 50, 100, 200, 1_000) if quick else (10, 100, 1_000, 10_000, 100_000, 1_000_000)
    domain, counts = tree(sizes, 20.0 * sizes[-1], 1.0)
    finest = (6, 1, 1)
    tables = [(level, cells, cells) for level in range(7) for cells in (0, 1)]
    gc.collect()
    start = time.process_time()
    plan = MarginalPlan(domain, [TableSpec(levels) for levels in tables])
    publication = plan.release({finest: counts}, dp.ApproxDP(1, 1e-9))
    estimates = publication.estimates
    measured = time.process_time()
    for levels in tables:
        estimates.table(domain.names(levels)).interval()
    estimated = time.process_time()
    whole = publication.counts
    done = time.process_time()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    made = records(whole).num_rows
    listed = time.process_time()
    unbiased = root_mean_square(estimates.values(finest) - counts)
    ours = root_mean_square((whole.counts - counts).astype(np.float64))
    assert made == whole.counts.sum()
    parts = f"measure {measured - start:.1f}, estimate {estimated - measured:.1f}, make whole {done - estimated:.1f} s"
    return [
        limited("a country: measure, estimate, make whole", done - start, "s", LIMIT_SECONDS, parts),
        limited("a country: memory", memory, "GB", LIMIT_GIGABYTES),
        limited(f"a country: {made:,} records", listed - done, "s"),
        Row("a country: error of the leaves' cells, whole counts", number(ours), f"{number(unbiased)} (unbiased)",
            ours / unbiased, "≤ 1.00×", ours <= unbiased),
    ]  # fmt: skip


def rows(quick: bool) -> list[Row]:
    """Measure."""
    repeats = 2 if quick else 100
    small = margins_of_states(repeats) + coverage(repeats if quick else 4000) + whole_numbers(max(3, repeats // 5))
    if quick:
        small = [Row(row.what, row.ours, row.reference, row.ratio) for row in small]  # too few releases for targets
    return small + adult_rows(1 if quick else 5) + counting(quick) + country(quick)


if __name__ == "__main__":
    main(TITLE, NOTES, rows)
