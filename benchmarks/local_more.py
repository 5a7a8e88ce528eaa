"""Shuffling, numbers and frequent words in the local model: ``python benchmarks/local_more.py [--quick]``."""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np

import dither as dp
from dither.randomness import SYSTEM, uniform_integers

PEOPLE = 10**6


def main() -> None:
    """Print a line for each target."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer people, to see that it runs")
    people = 10**4 if parser.parse_args().quick else PEOPLE
    for line in (*shuffling(), *means(people), *distributions(people), *frequent_words(people), *year()):
        print(line)


def shuffling() -> list[str]:
    """Certified epsilon of shuffled reports at n = 10^5, epsilon0 = 4, delta = 1e-6."""
    lines = []
    for name, options, target in (
        ("any randomizer", {}, 0.1728),
        ("reports of one bit", {"distinct": True}, None),
        ("10-ary response", {"response_categories": 10}, None),
        ("128-ary response", {"response_categories": 128}, None),
    ):
        start = time.perf_counter()
        epsilon = dp.accounting.shuffled(4, n=100_000, delta=1e-6, **options).epsilon  # type: ignore[arg-type]
        seconds = time.perf_counter() - start
        wanted = "" if target is None else f" (target {target}, {seconds:.2f} s of 1 s)"
        lines.append(f"shuffle, {name}: epsilon {epsilon:.5f} in {seconds:.2f} s{wanted}")
    growth = math.exp(4)
    closed = math.log1p((growth - 1) / (growth + 1) * 8 * (math.sqrt(growth * math.log(4e6) / 1e5) + growth / 1e5))
    return [*lines, f"shuffle, closed form: epsilon {closed:.3f}"]


def means(people: int) -> list[str]:
    """Variance of the mean of numbers against the best of the papers, and the time of a million reports."""
    lines = []
    for epsilon in (0.5, 1, 2, 4):
        protocol = dp.local.Mean((-1, 1), epsilon)
        values = np.linspace(-1, 1, people)
        start = time.perf_counter()
        reports = protocol.privatize(values)
        middle = time.perf_counter()
        result = protocol.estimate(reports)
        end = time.perf_counter()
        lines.append(
            f"mean, epsilon {epsilon}: {protocol.chosen}, n * variance at most {protocol.worst_variance:.3f}; "
            f"{people} reports {middle - start:.2f} s, estimate {end - middle:.3f} s, ± {result.error():.5f}"
        )
    return lines


def distributions(people: int) -> list[str]:
    """The mean difference of cumulative shares, smooth and unbiased."""
    values = 100 * np.linspace(0, 1, people) ** 0.6
    lines = []
    for epsilon in (0.5, 1, 2, 4):
        protocol = dp.local.Distribution((0, 100), 64, epsilon)
        truth = np.cumsum(np.histogram(values, protocol.edges)[0]) / people
        start = time.perf_counter()
        result = protocol.estimate(protocol.privatize(values))
        seconds = time.perf_counter() - start
        smooth = float(np.abs(result.cumulative - truth).mean())
        unbiased = float(np.abs(np.cumsum(result.unbiased) - truth).mean())
        lines.append(f"distribution, epsilon {epsilon}: off by {smooth:.5f}, unbiased {unbiased:.5f}; {seconds:.2f} s")
    return lines


def made_up_words(n: int, low: float = 0.012, high: float = 0.04) -> tuple[list[str], dict[str, float]]:
    """25 frequent words of six letters with shares from ``low`` to ``high``, and 20,000 others, for n people."""
    letters = (uniform_integers(26, 6 * 20_025, SYSTEM) + np.uint64(97)).astype(np.uint8)
    words = letters.view("S6").astype(str)
    shares = np.linspace(low, high, 25)
    counts = np.rint(shares * n).astype(int)
    rest = n - int(counts.sum())
    people = np.concatenate([np.repeat(words[:25], counts), words[25 + np.arange(rest) % 20_000]])
    return people.tolist(), dict(zip(words[:25].tolist(), shares.tolist(), strict=True))


def frequent_words(most: int) -> list[str]:
    """Recall and false words against the number of people; 2^48 words, epsilon 4, those above 1 %."""
    plan = dp.local.HeavyHitters(epsilon=4, threshold=0.01, max_bytes=6)
    lines = []
    edge = [(PEOPLE, 0.01, 0.012)] * 5
    cases = [*((n, 0.012, 0.04) for n in (10_000, 30_000, 100_000, 300_000, PEOPLE)), *edge]
    for n, low, high in (case for case in cases if case[0] <= most):
        people, truth = made_up_words(n, low, high)
        start = time.perf_counter()
        hits: Any = {hit.text for hit in plan.search(people)}
        seconds = time.perf_counter() - start
        recall, false = len(hits & set(truth)) / len(truth), len(hits - set(truth))
        what = f"frequent words of {low:.1%} to {high:.1%}, {n} people"
        lines.append(f"{what}: recall {recall:.2f}, {false} false, {seconds:.1f} s")
    return lines


def year() -> list[str]:
    """What a year of daily reports costs."""
    return [f"epsilon {epsilon}: {dp.local.repetition_cost(epsilon, 365)}" for epsilon in (0.1, 1, 4)]


if __name__ == "__main__":
    main()
