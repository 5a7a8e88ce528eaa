"""Accounting: 2,000 releases of distinct sizes to one epsilon, and private gradient descent, against dp-accounting."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module

from dither.accounting import (
    GaussianNoise,
    LaplaceNoise,
    PoissonSampled,
    Sequential,
    best_of,
    calibrate,
    distribution,
    pld,
)
from dither.accounting import gaussian as gaussian_accounting
from dither.guarantees import ApproxDP
from suite import Row, interleaved, limited, main, times

TITLE = "Accounting"
NOTES = (
    "Workload: 1,000 Laplace releases of ratio 10, 10.01, … and 1,000 Gaussian ones of ratio 40, 40.02, …, to epsilon "
    "at delta = 1e-6. *dp-accounting* is Google's library: each release composed in turn, on its default lattice of "
    "1e-4, once. CPU seconds throughout; *best_of* starts with empty caches.",
    "The exact epsilon lies between dp-accounting's optimistic and pessimistic estimates, and not above our own on a "
    "lattice ten times as fine (*finer*).",
    "Private gradient descent: sigma = 1.1, batches of 256 out of 60,000, 14,000 steps, delta = 1e-5.",
)
SECONDS = 2.0


def workload(size: int) -> tuple[list[float], list[float]]:
    """Ratios of the Laplace and of the Gaussian releases."""
    return [10 + 10 * i / size for i in range(size)], [40 + 20 * i / size for i in range(size)]


def theirs(laplace: list[float], gaussian: list[float], delta: float, pessimistic: bool) -> float:
    """Their loop."""
    google = import_module("dp_accounting.pld.privacy_loss_distribution")
    options = {"pessimistic_estimate": pessimistic} | ({} if pessimistic else {"use_connect_dots": False})
    total = google.identity(pessimistic_estimate=pessimistic)
    for ratio in laplace:
        total = total.compose(google.from_laplace_mechanism(ratio, **options))
    for ratio in gaussian:
        total = total.compose(google.from_gaussian_mechanism(ratio, **options))
    return float(total.get_epsilon_for_delta(delta))


def timed(task: Callable[[], float]) -> tuple[float, float]:
    """What it says, and how long that takes."""
    start = time.process_time()
    result = task()
    return result, time.process_time() - start


def refined(event: Sequential, delta: float) -> float:
    """The same on a lattice ten times as fine."""
    share, distribution._SHARE = distribution._SHARE, distribution._SHARE / 100
    try:
        return pld.guarantee(event, delta).epsilon
    finally:
        distribution._SHARE = share


def within(what: str, ours: float, reference: float, named: str) -> Row:
    """A row for an epsilon that is to be at least the reference and at most 1 % above."""
    ratio = ours / reference
    return Row(f"{what}: epsilon", f"{ours:.6f}", f"{reference:.6f} ({named})", ratio, "1 to 1.01×", 1 <= ratio <= 1.01)


def rows(quick: bool) -> list[Row]:
    """Measure."""
    size, repeats = (3, 1) if quick else (1000, 3)
    laplace, gaussian = workload(size)
    event = Sequential(*map(LaplaceNoise, laplace), *map(GaussianNoise, gaussian))
    assert isinstance(event, Sequential)
    ours = pld.guarantee(event, 1e-6).epsilon
    fine = refined(event, 1e-6)

    def cold() -> None:
        for item in vars(gaussian_accounting).values():
            if hasattr(item, "cache_clear"):
                item.cache_clear()
        best_of(event, 1e-6)

    best = interleaved({"pld": lambda: pld.guarantee(event, 1e-6), "best": cold}, repeats)
    what = f"{2 * size:,} distinct releases"
    result = [
        limited(f"{what}: epsilon by pld", best["pld"], "s", SECONDS),
        limited(f"{what}: epsilon by best_of, all five accountants", best["best"], "s"),
        within(what, ours, fine, "finer"),
    ]
    try:
        above, slow = timed(lambda: theirs(laplace, gaussian, 1e-6, True))
        below, _ = timed(lambda: theirs(laplace, gaussian, 1e-6, False))
    except ModuleNotFoundError:
        result.append(Row(f"{what}: dp-accounting", "", "not installed"))
    else:
        result.append(times(f"{what}: epsilon by pld", best["pld"], slow, "s", 0.25, "dp-accounting"))
        result.append(within(what, ours, below, "dp-accounting, optimistic"))
        result.append(Row(f"{what}: epsilon", f"{ours:.6f}", f"{above:.6f} (dp-accounting, pessimistic)", ours / above))
    for delta in () if quick else (1e-12, 1e-20):
        result.append(
            within(f"{what}, delta = {delta:g}", pld.guarantee(event, delta).epsilon, refined(event, delta), "finer")
        )
    sgd = 14_000 * PoissonSampled(GaussianNoise(1.1), 256 / 60_000)
    result.append(
        limited(
            "private gradient descent: epsilon by pld",
            interleaved({"": lambda: pld.guarantee(sgd, 1e-5)}, repeats)[""],
            "s",
        )
    )
    small = [LaplaceNoise(1), 20 * GaussianNoise(1)]
    result.append(
        limited(
            "calibrate one Laplace and 20 Gaussian releases to (1, 1e-6)",
            interleaved({"": lambda: calibrate(small, ApproxDP(1, 1e-6))}, repeats)[""],
            "s",
        )
    )
    return result


if __name__ == "__main__":
    main(TITLE, NOTES, rows)
