"""Which web domains make a browser slow, when nobody can list all domains: Apple's Safari case.

Source: document 5 of the course on Apple's deployment, and Apple's description of it (2017), where domains are
reported with epsilon = 4. Simulated: 24 slow domains with shares of 1.2 to 4 per cent, and 20,000 others. The domains
are found by their letters: every person answers once, in a group of their own, about the prefixes that other groups
have shown to be frequent. The plot shows recall and false domains against the number of people.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp

EPSILON, THRESHOLD, LENGTH = 4, 0.01, 8
SYLLABLES = ("ba", "co", "di", "fu", "ga", "he", "li", "mo", "na", "pe", "ri", "su", "to", "vu")


def domain(number: int) -> str:
    """A made-up name of eight letters; all below 14^4 differ."""
    return "".join(SYLLABLES[number // 14**place % 14] for place in (0, 1, 2, 3))


def visited(people: int) -> tuple[list[str], dict[str, float]]:
    """Simulated: the slow domain that each person has seen, and the shares of the frequent ones; without luck."""
    shares = {domain(1571 * i % 38_416): share for i, share in enumerate(np.linspace(0.012, 0.04, 24).tolist())}
    frequent = [name for name, share in shares.items() for _ in range(round(share * people))]
    others = [name for name in map(domain, range(20_200)) if name not in shares][:20_000]
    return frequent + [others[i % len(others)] for i in range(people - len(frequent))], shares


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print recall and false domains for several numbers of people, and plot them."""
    sizes = (10_000, 100_000, 400_000) if quick else (10_000, 30_000, 100_000, 300_000, 1_000_000)
    plan = dp.local.HeavyHitters(epsilon=EPSILON, threshold=THRESHOLD, max_bytes=LENGTH)
    print(f"domains of {LENGTH} bytes, of which 2^{8 * LENGTH} are possible; epsilon = {EPSILON}, one report a person")
    print(f"{len(plan.rounds)} groups; wanted are domains that {THRESHOLD:.0%} of the people have seen")
    recall, false, errors = [], [], []
    for people in sizes:
        names, shares = visited(people)
        hits = plan.search(names)
        listed = {hit.text for hit in hits}
        recall.append(len(listed & set(shares)) / len(shares))
        false.append(len(listed - set(shares)))
        errors.append([(hit.share - shares.get(hit.text, 0.0)) / hit.standard_error for hit in hits])
        first = f"; first {hits[0].text} {hits[0].share:.2%} ± {hits[0].error():.2%}" if hits else ""
        print(f"{people:>9,} people: {recall[-1]:>4.0%} of the frequent domains, {false[-1]} false{first}")

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    axes.semilogx(sizes, recall, "o-", label="recall: frequent domains that are listed")
    axes.semilogx(sizes, [count / 24 for count in false], "s--", color="tab:red", label="false domains, of 24")
    axes.axvline(plan.people_needed(), color="k", linewidth=0.8, linestyle=":", label="people_needed()")
    axes.set(
        title=f"Domains above {THRESHOLD:.0%} among 2^{8 * LENGTH}, ε = {EPSILON}",
        xlabel="people",
        ylabel="share",
        ylim=(-0.03, 1.03),
    )
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0.0, 0.95))
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "local_domains.png", dpi=150)
    return {"sizes": list(sizes), "recall": recall, "false": false, "errors": errors}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer people")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
