"""A clinic publishes every day how many patients it has: fresh noise averages away, noise for the year does not.

Source: document 5 of the course, section 5 (epsilons add up); Dwork, Rothblum and Vadhan 2010 on advanced
composition; Dwork, Naor, Pitassi and Rothblum 2010 on continual observation. One patient stays all year. With fresh
Laplace noise of epsilon = 1 every day, "epsilon = 1" is a promise about a day: the mean of a year of releases tells
whether that patient is there. The number of patients is the running sum of admissions minus discharges, of which one
stay changes two, so a series of running sums protects the stay for the whole year, at one charge.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp
from dither.stream.keyed import new_key

DAYS, EPSILON, DELTA = 365, 1.0, 1e-9


def attack_on_fresh_noise(epsilon: float, trials: int) -> float:
    """How often the mean of a year of noisy counts, each of epsilon, tells whether one patient more is there."""
    mechanism, right = dp.Laplace(sensitivity=1, epsilon=epsilon), 0
    for trial in range(trials):
        there = trial % 2
        year = mechanism.release(np.full(DAYS, 120 + there))
        right += (year.mean() > 120.5) == bool(there)
    return right / trials


def attack_on_the_series(plan: dp.stream.StreamPlan, trials: int) -> float:
    """The same by the best test there is: the likelihood ratio of the whole transcript, noise and filter known."""
    rows = np.zeros((DAYS, DAYS))
    for day in range(1, DAYS + 1):
        rows[day - 1, :day] = plan.segments[0].filter.row(day)
    shift = np.linalg.solve(rows, np.ones(DAYS))  # of the fresh noise, for a patient who is there from the first day on
    noise = np.concatenate([plan.values(plan.noises(new_key(), DAYS)) for _ in range(trials)], axis=1)
    there = np.arange(trials) % 2
    scores = shift @ np.linalg.solve(rows, noise + there[None, :])
    return float(((scores > shift @ shift / 2) == (there == 1)).mean())


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Attack both, add up what fresh noise costs, and compare errors at the same guarantee for the year."""
    trials = 200 if quick else 2000
    fresh = attack_on_fresh_noise(EPSILON, trials)
    print(
        f"fresh Laplace noise, ε = {EPSILON:g} every day: one patient of 121 recognized {100 * fresh:.1f} % of the time"
    )

    one_day = dp.Laplace(sensitivity=1, epsilon=EPSILON).event
    year = DAYS * one_day
    total = float(dp.accounting.basic.guarantee(year).epsilon)  # type: ignore[attr-defined]
    bounds = {
        "epsilons added up": total,
        "advanced composition": dp.accounting.advanced.guarantee(year, delta=DELTA).epsilon,
        "the best accountant here": dp.accounting.best_of(year, DELTA).guarantee.epsilon,
    }
    for name, epsilon in bounds.items():
        print(f"  what the year really promises, {name}: ε = {epsilon:.1f}")

    budget = dp.ApproxDP(EPSILON, DELTA)
    plan = dp.stream.StreamPlan(horizon=DAYS, budget=budget, max_participations=2)
    series = attack_on_the_series(plan, trials)
    most = NormalDist().cdf(1 / (2 * float(plan.ratio)))
    print(
        f"one series for the year, {budget}: recognized {100 * series:.1f} %; "
        f"no test can do better than {100 * most:.1f} %"
    )

    daily = dp.Gaussian(sensitivity=math.sqrt(DAYS), epsilon=EPSILON, delta=DELTA)
    errors = {
        "fresh noise, advanced composition": _fresh_error_by_advanced_composition(),
        "fresh Gaussian noise, exact": daily.error(confidence=0.95, integer=False),
        "one series": max(plan.error(day) for day in range(1, DAYS + 1)),
    }
    for name, error in errors.items():
        print(f"  ± of a day's number at {budget} for the year, {name}: {error:.1f}")

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.add_subplot()
    truth = 120 + np.cumsum(np.round(3 * np.sin(np.arange(DAYS) / 20))).astype(int)
    changes = np.diff(truth, prepend=0)
    running = dp.stream.RunningSum(horizon=DAYS, epsilon=EPSILON, delta=DELTA, max_participations=2)
    published = np.array([running.release(int(change)) for change in changes])
    band = np.array([running.error(day) for day in range(1, DAYS + 1)])
    days = np.arange(1, DAYS + 1)
    axes.fill_between(days, published - band, published + band, alpha=0.25, color="tab:blue", label="± of the series")
    axes.plot(days, published, color="tab:blue", label="one series for the year")
    axes.plot(days, daily.release(truth.astype(float)), ".", color="tab:orange", label="fresh noise, same guarantee")
    axes.plot(days, truth, color="k", linewidth=1, label="patients")
    axes.set(title=f"A year of daily numbers, {budget} in all", xlabel="day", ylabel="patients")
    axes.legend(loc="upper left", fontsize=9)
    target = Path("out") if out is None else out
    target.mkdir(parents=True, exist_ok=True)
    figure.savefig(target / "fresh_noise_averages_away.png", dpi=150)
    covered = float((np.abs(published - truth) <= band).mean())
    return {
        "trials": trials,
        "fresh": fresh,
        "series": series,
        "most": most,
        "bounds": bounds,
        "errors": errors,
        "covered": covered,
    }


def _fresh_error_by_advanced_composition() -> float:
    """The 95 % error of Laplace noise whose epsilon a day adds up to the year's by the advanced bound."""
    low, high = 1e-6, 1.0
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        event = DAYS * dp.accounting.Pure(middle)
        enough = dp.accounting.advanced.guarantee(event, delta=DELTA).epsilon <= EPSILON
        low, high = (middle, high) if enough else (low, middle)
    return dp.Laplace(sensitivity=1, epsilon=low).error(confidence=0.95, integer=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer trials")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
