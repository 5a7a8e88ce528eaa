"""Which emoji are popular, without anybody collecting what people type: Apple's case, taken apart.

Source: document 5 of the course on Apple's deployment, and Apple's description of it (2017): 2,600 emoji, a
count-mean sketch with epsilon = 4 and rows of 1,024 columns (65,536 rows there, 1,024 here). Simulated: the
popularity falls as 1/rank. Compared are Apple's sketch and the best protocol for as many categories, and what the
same phone gives away in a year: fresh reports every day compose, and a budget that is full again every morning (what
document 5 criticizes) promises a day's epsilon for a day only.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp

EMOJI, EPSILON, SHOWN = 2600, 4, 20


def typed(people: int) -> np.ndarray:
    """Simulated: the favorite emoji of each person, by rank; shares are in proportion to 1/rank, without luck."""
    shares = 1 / np.arange(1, EMOJI + 1)
    edges = np.cumsum(shares / shares.sum())
    return np.searchsorted(edges, (np.arange(people) + 0.5) / people)


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print the most popular emoji by two protocols, and what a year of reports costs; plot the shares."""
    people = 100_000 if quick else 1_000_000
    values = typed(people)
    truth = np.bincount(values, minlength=EMOJI)[:SHOWN] / people
    protocols = {
        "Apple's count-mean sketch": dp.local.CountMeanSketch(EPSILON, EMOJI, rows=1024, width=1024, optimized=False),
        "the best protocol": dp.local.best(categories=EMOJI, epsilon=EPSILON, max_bits=64).protocol,
    }
    estimates = {
        name: protocol.estimate(protocol.privatize(values), list(range(SHOWN))) for name, protocol in protocols.items()
    }
    print(f"{people:,} people, {EMOJI} emoji, epsilon = {EPSILON}; the ± is for 95 per cent")
    for name, protocol in protocols.items():
        estimate = estimates[name]
        print(
            f"{name} ({type(protocol).__name__}): {protocol.report_bits} bits a report; the first three "
            + ", ".join(f"{share:.2%}" for share in estimate.shares[:3])
            + f" ± {estimate.error()[-1]:.2%}, truly "
            + ", ".join(f"{share:.2%}" for share in truth[:3])
        )
    print("what one phone gives away:")
    costs = {reports: dp.local.repetition_cost(EPSILON, reports) for reports in (1, 365)}
    for reports, cost in costs.items():
        print(f"  {reports:>3} daily reports: {cost.fresh} if drawn anew, {cost.remembered} if remembered")
    print("  remembered answers show the day on which the favorite changes, and that is not protected")

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(range(1, SHOWN + 1), truth, "k_", markersize=10, label="truth")
    for shift, (name, estimate) in zip((-0.15, 0.15), estimates.items(), strict=True):
        left.errorbar(
            np.arange(1, SHOWN + 1) + shift, estimate.shares, estimate.error(), fmt=".", capsize=2, label=name
        )
    left.set(title=f"{people:,} people, ε = {EPSILON}", xlabel="rank of the emoji", ylabel="share of people")
    left.set_xticks([1, 5, 10, 15, 20])
    left.legend(fontsize=8)
    days = np.arange(1, 366)
    right.plot(days, EPSILON * days, label="a new report every day")
    right.plot(days, np.full(days.size, EPSILON), label="remembered, the favorite stays")
    right.axhline(2 * EPSILON, color="tab:red", linestyle="--", label="a device budget of 8 for life: refused above")
    right.set(title="What one phone has given away", xlabel="day", ylabel="total ε", yscale="log")
    right.legend(fontsize=8)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "local_emoji.png", dpi=150)
    return {
        "truth": truth,
        "shares": {name: estimate.shares for name, estimate in estimates.items()},
        "standard_error": {name: estimate.standard_error for name, estimate in estimates.items()},
        "fresh": {reports: cost.fresh.epsilon for reports, cost in costs.items()},
        "remembered": {reports: cost.remembered.epsilon for reports, cost in costs.items()},
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer people")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
