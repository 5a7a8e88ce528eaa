"""Releases that are small enough to be measured, each in a correct and in a broken version.

Functions are ``(data, size) -> size outputs``. *Publishing* is run from the rows to the noisy residuals: counted by an
engine, bounded, charged, noisy. People have up to twenty rows, of which three count; the broken version has noise for
one row. *Series over time* are compared by whole transcripts of histories that differ in one person, who is in at most
two of six steps; the broken versions have noise for one step, or draw new noise whenever their process is started
again. For *local reports* about numbers, sets, words and days, the data are one person's value.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.guarantees import ApproxDP, Guarantee, PureDP
from dither.local.bases import inside_float, inside_probability, pack_indices, unpack_indices
from dither.local.heavy_hitters import HeavyHitters
from dither.local.protocol import LocalProtocol
from dither.local.sets import PaddedSets
from dither.local.subset_selection import SubsetSelection
from dither.local.windows import Distribution, Mean
from dither.randomness import Exponential, Normal, resolve, trials, uniform_integers
from dither.stream.keyed import new_key
from dither.stream.mechanism import NoiseStream, StreamPlan

PUBLISHING_CLAIM = ApproxDP(1, 0.01)
MAX_ROWS = 3


def people() -> tuple[Any, Any]:
    """Return rows of people in two towns, and those rows without a person who has twenty of them in one town."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = pa.table(
        {
            "who": [*(i % 20 for i in range(60)), *[7] * 20],
            "town": [*("ab"[i // 7 % 2] for i in range(60)), *"b" * 20],
        }
    )
    return rows, rows.filter(pc.not_equal(rows["who"], 7))


def noisy_residuals(rows: Any, size: int, *, rows_of_a_person: int = MAX_ROWS) -> list[list[float]]:
    """Return ``size`` independent releases of a table of towns, from one charge and one scan."""
    import numpy as np

    from dither.ledger.recorded import decode, encode
    from dither.publish import Attribute, Domain, MarginalPlan, table_spec
    from dither.publish.counting import Counting
    from dither.tables.query.tree import Column
    from dither.tables.table import open as open_table

    domain = Domain([Attribute.flat("town", ["a", "b"])])
    with open_table(rows, unit="who", max_rows=MAX_ROWS, budget=PUBLISHING_CLAIM) as table:
        counting = Counting(table, domain, (Column("town"),))
        contribution = counting.contribution * Fraction(rows_of_a_person, MAX_ROWS)
        plan = MarginalPlan(domain, [table_spec(domain, ["town"])], contribution=contribution, unit=counting.unit)
        mechanism = plan.mechanism(PUBLISHING_CLAIM)

        def compute(_: Counting, counts: Any) -> bytes:
            """Return ``size`` noisy releases of the counts, encoded for the ledger's record."""
            releases = (mechanism.release(counts) for _ in range(size))
            return encode([np.concatenate([part.ravel() for part in noisy.values()]).tolist() for noisy in releases])

        stored = counting.release(plan.needed, PUBLISHING_CLAIM, {"tables": ["town"]}, compute).stored
    result: list[list[float]] = decode(stored)
    return result


bounded_for_one_row = partial(noisy_residuals, rows_of_a_person=1)
"""Releases under noise for people of one row each, though three rows of a person count."""


SERIES_CLAIM = ApproxDP(1, 0.01)
HISTORY = (5, 5, 5, 5, 5, 5)
NEIGHBOR = (6, 6, 5, 5, 5, 5)
"""With one person more, in the first two steps: the worst pattern."""


def plan_for(claim: Guarantee = SERIES_CLAIM, *, participations: int = 2) -> StreamPlan:
    """Return the plan of a series of six steps, for a guarantee and a number of steps that a person may be in."""
    return StreamPlan(horizon=len(HISTORY), budget=claim, max_participations=participations)


def _transcripts(plan: StreamPlan, history: Any, size: int) -> NDArray[np.float64]:
    """Return ``size`` transcripts of running sums, each under independent noise (lanes of one key are independent)."""
    law = Exponential(symmetric=True) if plan.pure else Normal()
    noise = NoiseStream(plan.segment, law, size, new_key(resolve(None))).advance(len(history))
    sums = np.cumsum(np.asarray(history, dtype=np.int64)) << plan.lattice_bits
    return plan.values(sums[None, :] + noise.T)


def running_sums(history: Any, size: int) -> NDArray[np.float64]:
    """Return transcripts of a series in which a person may be in two steps."""
    return _transcripts(plan_for(), history, size)


def running_sums_of_a_tree(history: Any, size: int) -> NDArray[np.float64]:
    """Return transcripts of such a series under a pure guarantee, from the tree of sums."""
    return _transcripts(plan_for(PureDP(1)), history, size)


def for_one_participation(history: Any, size: int) -> NDArray[np.float64]:
    """Return transcripts under noise for people who are in one step, though a person is in two."""
    return _transcripts(plan_for(participations=1), history, size)


def redrawn(history: Any, size: int) -> NDArray[np.float64]:
    """Return transcripts of a process that is started anew for every step, without the key of its noise.

    Each step is then a release of its own with fresh noise, though the plan is charged once.
    """
    steps = [_transcripts(plan_for(), history, size)[:, step] for step in range(len(history))]
    return np.stack(steps, axis=1)


LOCAL_CLAIM = PureDP(1)
MEAN = Mean((0, 1), 1)
DISTRIBUTION = Distribution((0, 1), 8, 1)
SETS = PaddedSets(4, 2, 1)
WORDS = HeavyHitters(1, 0.5, 3)
DAILY = SubsetSelection(4, 1)
DAYS = 5


def reports(protocol: LocalProtocol[Any], x: Any, size: int) -> list[bytes]:
    """Return the records of ``size`` reports of one value."""
    return [record.tobytes() for record in protocol.privatize([x] * size).records]


def mean_reports(x: float, size: int) -> list[int]:
    """Return ``size`` reports of a number."""
    records = MEAN.privatize(np.full(size, x)).records
    numbers: list[int] = unpack_indices(records, MEAN.report_count).tolist()
    return numbers


def mean_of_two_kinds(x: float, size: int) -> list[int]:
    """Return reports of one bit for numbers at an end, and window reports for all others: the kind reveals which."""
    kind = Mean((0, 1), 1, "duchi" if x in (0, 1) else "piecewise")
    numbers: list[int] = unpack_indices(kind.privatize(np.full(size, x)).records, kind.report_count).tolist()
    return numbers


distribution_reports = partial(reports, DISTRIBUTION)


def window_cut_off(x: float, size: int) -> list[bytes]:
    """Return reports from windows that end at the bounds: a bin at the edge spreads its probability over fewer
    reports.
    """
    source, bins, half = resolve(None), DISTRIBUTION.bins, 2
    code = int(DISTRIBUTION.encode([x])[0])
    low, high = max(0, code - half), min(bins, code + half + 1)
    width = 2 * half + 1
    held = trials(inside_float(1.0, width, bins), partial(inside_probability, Fraction(1), width, bins), size, source)
    inside = low + uniform_integers(high - low, size, source).astype(np.int64)
    outside = uniform_integers(bins - (high - low), size, source).astype(np.int64)
    outside += np.where(outside >= low, high - low, 0)
    return [record.tobytes() for record in pack_indices(np.where(held, inside, outside), bins)]


set_reports = partial(reports, SETS)


def every_item(x: Any, size: int) -> list[list[bytes]]:
    """Return a report of epsilon for each item of the set, whose number depends on the set."""
    items = [reports(SETS.base, item, size) for item in sorted(x)]
    return [[column[run] for column in items] for run in range(size)]


def word_reports(x: str, size: int) -> list[bytes]:
    """Return the reports of a person who is asked in the first round only."""
    return [record.tobytes() for record in WORDS.start().privatize([x] * size).records]


def asked_in_every_round(x: str, size: int) -> list[tuple[int, ...]]:
    """Return ``size`` answers of a person with the word ``x`` who is asked in all rounds, at epsilon each.

    An answer is a tuple with a private bit for each letter: in which half of the alphabet it is.
    """
    half = SubsetSelection(2, WORDS.epsilon)
    rounds = [half.privatize([int(letter > "m")] * size).records[:, 0] for letter in x]
    return [tuple(int(column[run]) for column in rounds) for run in range(size)]


def remembered_reports(x: int, size: int) -> list[list[bytes]]:
    """Return one report that is sent again on every day."""
    return [[report] * DAYS for report in reports(DAILY, x, size)]


def reset_every_day(x: int, size: int) -> list[list[bytes]]:
    """Return a new report of full epsilon on every day, as if the budget were renewed every morning."""
    days = [reports(DAILY, x, size) for _ in range(DAYS)]
    return [[day[run] for day in days] for run in range(size)]
