"""A private summary of a made-up table of people: count, mean, median, histogram, each with its error and its cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from dither import arguments, stats
from dither.guarantees import PureDP
from dither.neighbors import AddRemove
from dither.randomness import SYSTEM, Normal, round_nearest_all

AGES = (0, 100)
INCOMES = (0.0, 200_000.0)


@dataclass(frozen=True)
class People:
    """The made-up table: one row is one person."""

    age: NDArray[np.int64]
    income: NDArray[np.float64]


def make_people(count: int) -> People:
    """Ages around 45 and incomes around 40,000 with a long tail; drawn anew each time.

    >>> make_people(3).age.size
    3
    """
    zeros = np.zeros(count)
    age = np.clip(np.rint(round_nearest_all(zeros + 45, Normal(), 18.0, 2.0**-10, SYSTEM)), 0, 100)
    income: NDArray[np.float64] = np.exp(round_nearest_all(zeros + 10.5, Normal(), 0.6, 2.0**-20, SYSTEM))
    return People(age.astype(np.int64), np.rint(income))


def run(people: int, epsilon: float) -> None:
    """Make the people up, ask the questions, print the answers."""
    console = Console(width=110)
    total = PureDP(arguments.epsilon(epsilon))
    share: Any = total.exact_epsilon / 5
    table = make_people(people)
    console.print(
        f"[bold]A private summary of {people:,} made-up people[/bold]   (privacy loss of all of it: {total})\n"
        "One person may be added or removed without these answers changing by more than chance allows.\n"
    )
    count = stats.count(table.age, epsilon=share, neighbors=AddRemove)
    age = stats.mean(table.age, bounds=AGES, epsilon=share, neighbors=AddRemove)
    income = stats.mean(table.income, bounds=INCOMES, epsilon=share, neighbors=AddRemove)
    median = stats.median(table.income, bounds=INCOMES, epsilon=share, neighbors=AddRemove)
    ages = stats.histogram(table.age, bounds=AGES, bins=10, epsilon=share, neighbors=AddRemove)

    grid = Table("question", "answer", "± (95 %)", "cost", "truth*", "how it is made private")
    rows = [
        (
            "people",
            f"{int(count):,}",
            f"{count.error():,.0f}",
            f"{people:,}",
            "one person changes a count by 1: noise of that size over ε",
        ),
        (
            "mean age",
            f"{float(age):.3f}",
            f"{age.error():.3f}",
            f"{table.age.mean():.3f}",
            f"ages count as {AGES[0]} to {AGES[1]} at most; sums from both ends, then their ratio",
        ),
        (
            "mean income",
            f"{float(income):,.0f}",
            f"{income.error():,.0f}",
            f"{np.clip(table.income, *INCOMES).mean():,.0f}",
            f"incomes above {INCOMES[1]:,.0f} count as that much: the bound is public",
        ),
        (
            "median income",
            f"{float(median):,.0f}",
            f"{median.rank_error():.0f} ranks",
            f"{np.median(table.income):,.0f}",
            "chosen among all values, those near the middle rank being likeliest",
        ),
    ]
    for question, answer, error, truth, how in rows:
        grid.add_row(question, answer, error, f"ε = {float(share):g}", truth, how)
    console.print(grid)

    bars = Table(
        "age",
        "people",
        "± (95 %)",
        "truth*",
        "",
        title=f"ages, 10 bins, one release for all of them: ε = {float(share):g}",
        title_justify="left",
    )
    real_counts = np.histogram(table.age, bins=ages.edges)[0]
    widest = max(int(ages.counts.max()), 1)
    for low, high, found, real in zip(
        ages.edges, ages.edges[1:], ages.counts.tolist(), real_counts.tolist(), strict=False
    ):
        bars.add_row(
            f"{low:.0f} to {high:.0f}",
            f"{found:,}",
            f"{ages.error():.0f}",
            f"{real:,}",
            "█" * round(40 * max(found, 0) / widest),
        )
    console.print(bars)

    spent = sum(answer.guarantee for answer in (count, age, income, median, ages))
    console.print(
        f"\nspent: {spent} in five answers: losses about the same people add up.\n"
        "Each person is in one bin only, so the ten bins together cost one share.\n"
        "* shown because these people do not exist; of real people nothing is shown without noise."
    )
