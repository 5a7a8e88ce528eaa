"""A year of releases: what five accountants say of it, the noise a total allows, and the epsilon an error needs.

A count every day by Laplace noise, a mean every week by Gaussian noise, a choice every month by the exponential
mechanism. Each accountant's answer is a theorem about the same public numbers, so the smallest may be used, for a
workload that is fixed in advance. A ledger that decides as it goes uses ``basic`` or ``zcdp``, whose sums are filters.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

import dither as dp
from dither.accounting import best_of, calibrate, epsilon_for_error

DELTA = 1e-6
NAMES = ("basic", "advanced", "zcdp", "renyi", "pld")
COLORS = ("tab:gray", "tab:red", "tab:orange", "tab:green", "tab:blue")


def workload(days: int) -> Any:
    """What is released within so many days."""
    day = dp.Laplace(1, 0.1).event_for(integer=False)
    week = dp.Gaussian(1, 0.5, 1e-6).event
    month = dp.Exponential(1, 0.2).event
    result = days * day
    if days >= 7:
        result += (days // 7) * week
    return result + (days // 30) * month if days >= 30 else result


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print and plot epsilon by accountant over the days; then the noise of a total, and the epsilon of an error."""
    spans = [1, 30, 365] if quick else [1, 7, 30, 120, 365]
    result: dict[str, list[float]] = {name: [] for name in NAMES}
    best: list[tuple[float, str]] = []
    print(f"epsilon at delta = {DELTA:g}: a Laplace count a day, a Gaussian mean a week, a choice a month")
    print(f"{'days':>5} " + " ".join(f"{name:>8}" for name in NAMES) + "   smallest")
    for days in spans:
        smallest = best_of(workload(days), DELTA)
        lines = dict(smallest.answers)
        for name in NAMES:
            result[name].append(lines[name].to_approx(DELTA).epsilon)
        best.append((smallest.guarantee.to_approx(DELTA).epsilon, smallest.accountant))
        print(f"{days:>5} " + " ".join(f"{result[name][-1]:8.4f}" for name in NAMES) + f"   {smallest.accountant}")

    total = dp.ApproxDP(2, DELTA)
    day, week = dp.Laplace(1, 0.1).event_for(integer=False), dp.Gaussian(1, 0.5, 1e-6).event
    noise = calibrate([30 * day, 4 * week], total)
    print(
        f"\nfor {total} in all, a month allows {float(noise.factor):.4g} times that noise: {noise.accountant} says so"
    )
    needed = epsilon_for_error(lambda epsilon: dp.Laplace(1, epsilon), error=5)
    print(f"a count to within 5 (95 %) needs epsilon = {needed:.4g}")

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.add_subplot()
    for name, color in zip(NAMES, COLORS, strict=True):
        axes.plot(spans, result[name], ".-", color=color, label=name)
    axes.set(title=f"What a year costs, δ = {DELTA:g}", xlabel="days", ylabel="ε", xscale="log", yscale="log")
    axes.legend(fontsize=9)
    axes.grid(alpha=0.3)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "which_accountant.png", dpi=150)
    return {"spans": spans, "epsilon": result, "best": best, "factor": float(noise.factor), "needed": needed}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer days")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
