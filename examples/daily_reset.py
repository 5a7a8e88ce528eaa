"""A budget that is reset every day, seen from the other side: how sure is the collector after a day, a month, a year?

Source: document 5 of the course, section 7.1, on Apple. A phone answers a yes/no question about its owner every day by
randomized response with epsilon = 0.5, and the budget starts anew each night. "No single day's operations would result
in a breach": true, and after m days the collector has m answers about the same person. They add up: the best guess is
the majority, right with a probability that is computed exactly here and seen in the guesses about 2000 phones.

After m days nothing better than ``m epsilon`` is guaranteed. A phone that answers once and repeats that answer
(memoization) tells no more on the last day than on the first, and stays at epsilon for life, as long as the truth stays
the same. ``dither.local.DeviceBudget`` refuses what exceeds a lifetime's budget.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp

EPSILON, DAYS = 0.5, 365


def guess(epsilon: float, days: int) -> float:
    """The probability that the majority of so many answers is the truth; a tie is decided by a coin."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    logs = [math.lgamma(days + 1) - math.lgamma(k + 1) - math.lgamma(days - k + 1) for k in range(days + 1)]
    law = [math.exp(c + k * math.log(p) + (days - k) * math.log(1 - p)) for k, c in enumerate(logs)]
    return math.fsum(mass * (1.0 if 2 * k > days else 0.5 if 2 * k == days else 0.0) for k, mass in enumerate(law))


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print how often the collector is right, and draw what it believes of a few phones, day by day."""
    phones = 400 if quick else 2000
    truth = np.arange(phones) % 2
    response = dp.RandomizedResponse(epsilon=EPSILON)
    answers = np.array([response.release(truth) for _ in range(DAYS)])  # a row each day
    once = np.asarray(response.release(truth))
    yes = np.cumsum(answers, axis=0)
    days = np.arange(1, DAYS + 1)[:, None]
    odds = EPSILON * (2 * yes - days)  # the logarithm of the odds of "yes", from even ones
    belief = 1 / (1 + np.exp(-odds))
    right = np.mean(np.where(odds == 0, 0.5, (odds > 0) == truth), axis=1)

    shown = (1, 7, 31, 90, 365)
    exact = {day: guess(EPSILON, day) for day in shown}
    costs = {day: dp.local.repetition_cost(EPSILON, day).fresh.epsilon for day in shown}
    seen = {day: float(right[day - 1]) for day in shown}
    kept = float((once == truth).mean())
    print(f"{phones} phones, one yes/no answer a day, ε = {EPSILON:g}, reset every night")
    print(f"{'days':>5} {'guaranteed ε':>13} {'guess right, exactly':>21} {'seen':>7} {'one answer, repeated':>21}")
    for day in shown:
        print(f"{day:>5} {costs[day]:>13g} {exact[day]:>21.6f} {seen[day]:>7.4f} {guess(EPSILON, 1):>21.6f}")
    print(f"of the phones that repeat one answer {kept:.4f} are guessed right, on every day")
    sure = int(np.argmax([guess(EPSILON, day) > 0.99 for day in range(1, DAYS + 1)])) + 1
    print(f"the collector is right about 99 of 100 people after {sure} days")

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right_axes = figure.subplots(1, 2)
    for phone in range(8):
        left.plot(days[:120, 0], belief[:120, phone], color="tab:red" if truth[phone] else "tab:blue", linewidth=1)
    left.set(title="What the collector believes of eight phones", xlabel="day", ylabel="probability of “yes”")
    right_axes.semilogx(days[:, 0], right, label="seen: a new answer every day")
    line = np.unique(np.logspace(0, math.log10(DAYS), 60).astype(int))
    right_axes.semilogx(line, [guess(EPSILON, int(day)) for day in line], "k--", linewidth=1, label="exactly")
    right_axes.axhline(guess(EPSILON, 1), color="tab:green", label="one answer, repeated")
    right_axes.set(
        title=f"Guesses about {phones} phones, ε = {EPSILON:g} a day", xlabel="day", ylabel="share that is right"
    )
    right_axes.legend(fontsize=8)
    for axes in (left, right_axes):
        axes.grid(alpha=0.3)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "daily_reset.png", dpi=150)
    return {"phones": phones, "exact": exact, "seen": seen, "costs": costs, "kept": kept, "sure": sure}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer phones")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
