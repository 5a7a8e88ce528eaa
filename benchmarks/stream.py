"""Releases over time: the error of running sums, the optimum, time and memory, coverage at every step."""

from __future__ import annotations

import math
import time
import tracemalloc
from dataclasses import replace

import numpy as np

import dither as dp
from dither.stream.buffers import Buffers, buffers_for
from dither.stream.filters import Bands, Filter, Tree
from dither.stream.keyed import new_key
from dither.stream.mechanism import StreamPlan
from suite import Row, limited, main, number

TITLE = "Releases over time"
NOTES = (
    "Error: the largest root mean squared error of a running sum over all steps, over the noise sigma of one release "
    "at unit sensitivity; one participation. It is computed from the filter whose whole numbers are released, "
    "sensitivity rounded up. Fresh noise for every step errs by the root of the number of steps.",
    "The optimum is over all factorizations, dense ones included, between bounds that meet within 1e-4; it needs the "
    "memory of the horizon squared.",
    "Participations: the largest error at unit noise for the schema; *square root* is the best known Toeplitz matrix "
    "for one participation, *banded* has as many bands as steps between participations.",
    "Time is CPU time, memory what Python allocates. One day of 10,000 series includes the recomputation of all days "
    "before it from the key, as after a restart. Coverage: 20,000 series, the step farthest from 95 %.",
)
BUDGET = dp.ApproxDP(1, 1e-9)
SQUARE_ROOT = {365: 2.944, 1024: 3.273}


def error(filter_: Filter, participations: int = 1, separation: int = 1) -> float:
    """The largest error of a running sum at unit noise, for the schema."""
    sensitivity = float(filter_.l2_sensitivity(participations, separation))
    return sensitivity * math.sqrt(max(filter_.squared_row(step) for step in _candidates(filter_)))


def _candidates(filter_: Filter) -> list[int]:
    """The steps among which the error is largest: the last, or for the tree any."""
    return [filter_.length] if not isinstance(filter_, Tree) else [*range(1, filter_.length + 1)]


def errors() -> list[Row]:
    rows = []
    for horizon, known in SQUARE_ROOT.items():
        filter_ = buffers_for(horizon, 5)
        assert isinstance(filter_, Buffers)
        assert len(filter_.weights) <= 5
        ours = error(filter_)
        rows += [
            Row(
                f"Error, {horizon} steps, 5 buffers", f"{ours:.4f}", f"{known} (square root)", ours / known, "≤ 1.01×",
                ours <= 1.01 * known,
            ),
            Row(f"Error, {horizon} steps, 3 buffers", f"{error(buffers_for(horizon, 3)):.4f}", f"{known} (root)"),
            Row(
                f"Error, {horizon} steps, tree", f"{error(Tree(horizon)):.3f}",
                f"{math.sqrt(horizon):.1f} (fresh noise)",
            ),
        ]  # fmt: skip
    return rows


def optima(quick: bool) -> list[Row]:
    rows = []
    for horizon in (16,) if quick else (64, 365):
        best, ours = dp.stream.optimum(horizon), error(buffers_for(horizon, 5))
        rows.append(
            Row(
                f"The optimum, {horizon} steps, and the gap of 5 buffers", f"{ours:.4f}", f"{best.upper:.4f} (optimum)",
                ours / best.upper, "gap ≤ 1e-4 of its bounds", best.gap <= 1e-4,
            )
        )  # fmt: skip
    return rows


def participations(quick: bool) -> list[Row]:
    rows = []
    for count, separation in ((12, 30),) if quick else ((5, 1), (12, 30), (52, 7)):
        ours = error(buffers_for(365, 5, count, separation), count, separation)
        root = error(Bands.square_root(365, 365), count, separation)
        banded = error(Bands.square_root(365, separation), count, separation)
        what = f"Error, 365 steps, {count} participations at least {separation} steps from each other"
        reference = f"{number(root)} (square root), {number(banded)} (banded)"
        rows.append(Row(what, number(ours), reference, ours / min(root, banded), "≤ 1.0×", ours <= min(root, banded)))
    return rows


def unknown_horizon(quick: bool) -> list[Row]:
    unknown, rows = StreamPlan(horizon=None, budget=BUDGET), []
    for steps in (365,) if quick else (365, 10_000, 1_000_000):
        known = StreamPlan(horizon=steps, budget=BUDGET)
        theirs, ours = known.error(steps), unknown.error(steps)
        reference = f"± {number(theirs)} (known)"
        rows.append(Row(f"Horizon not known, step {steps:,}", f"± {number(ours)}", reference, ours / theirs))
    return rows


def windows() -> list[Row]:
    plain = StreamPlan(horizon=365, budget=BUDGET)
    rows = []
    for window in (7, 30):
        ours = replace(plain, window=window).error(365, window=window)
        theirs = plain.error(365, window=window)
        reference = f"± {number(theirs)} (buffers for the running sum)"
        rows.append(Row(f"Sum over the last {window} of 365 steps", f"± {number(ours)}", reference, ours / theirs))
    return rows


def speed(quick: bool) -> list[Row]:
    steps = 12_000 if quick else 1_000_000
    series = dp.stream.RunningSum(horizon=steps, epsilon=1, delta=1e-9)
    start = time.process_time()
    stream = series.plan.start(new_key())
    for _ in range(0, steps, 4_000):
        stream.advance(4_000)
    seconds = time.process_time() - start
    rows = [limited(f"{steps:,} steps of 1 series", seconds, "s", 10.0)]
    memory = []
    for count in (2, 10):
        tracemalloc.start()
        stream = series.plan.start(new_key())
        for _ in range(count):
            stream.advance(1_000)
        memory.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    rows.append(
        Row(
            "Memory at 10,000 steps against 2,000", f"{memory[1] / 1e6:.2f} MB", f"{memory[0] / 1e6:.2f} MB",
            memory[1] / memory[0], "≤ 1.1×", memory[1] <= 1.1 * memory[0],
        )
    )  # fmt: skip
    calls = 100 if quick else 2_000
    start = time.process_time()
    for _ in range(calls):
        series.release(1)
    rows.append(limited("One RunningSum.release", (time.process_time() - start) / calls * 1e6, "µs"))
    lanes = 100 if quick else 10_000
    plan = StreamPlan(horizon=365, budget=BUDGET, series=lanes)
    key = new_key()
    start = time.process_time()
    plan.noise(key, 365)
    rows.append(limited(f"{lanes:,} series in step, day 365 from the key alone", time.process_time() - start, "s", 0.5))
    stream = plan.start(key)
    stream.advance(100)
    start = time.process_time()
    stream.advance()
    rows.append(limited(f"{lanes:,} series in step, one day more", (time.process_time() - start) * 1000, "ms"))
    return rows


def coverage(quick: bool) -> list[Row]:
    lanes, steps, rows = (200, 10, []) if quick else (20_000, 365, [])
    cases = (
        ("buffers", {"horizon": 365, "budget": BUDGET}),
        ("12 participations", {"horizon": 365, "budget": BUDGET, "max_participations": 12, "min_separation": 30}),
        ("tree, epsilon = 1 alone", {"horizon": 365, "budget": dp.PureDP(1)}),
        ("horizon not known", {"horizon": None, "budget": BUDGET}),
        ("horizon not known, epsilon = 1 alone", {"horizon": None, "budget": dp.PureDP(1)}),
    )
    for name, options in cases:
        plan = StreamPlan(**options, series=lanes)  # type: ignore[arg-type]
        stream, shares = plan.start(new_key()), []
        for step in range(1, steps + 1):
            noise = plan.values(stream.advance()[0])
            shares.append(float((np.abs(noise) <= plan.error(step)).mean()))
        worst = max(shares, key=lambda share: abs(share - 0.95))
        rows.append(
            Row(f"Coverage, {name}", f"{100 * worst:.2f} %", "95 %", None, "94 – 96 %", bool(0.94 <= worst <= 0.96))
        )
    return rows


def rows(quick: bool) -> list[Row]:
    """All rows."""
    return [
        *errors(),
        *optima(quick),
        *participations(quick),
        *unknown_horizon(quick),
        *windows(),
        *speed(quick),
        *coverage(quick),
    ]


if __name__ == "__main__":
    main(TITLE, NOTES, rows)
