"""A table of visits asked in SQL and in Python: the same question, the same answer, charged once.

The frame is in memory and its ledger lasts as long as the table; with a card and a file, both last. One person's
visits are protected together: at most ``max_rows`` of them count, in one region. What that leaves out is a bias, which
the example shows beside the noise; it is the price of a smaller sensitivity, and it is public how it comes about.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

import dither as dp

REGIONS = ("north", "east", "south", "west")
SQL = "SELECT region, COUNT(*) AS n, AVG(amount) AS spend FROM visits GROUP BY region"
LIMIT = 5


def visits(rows: int) -> pa.Table:
    """Made-up visits: three for each person on average, in the region where the person lives."""
    random = np.random.default_rng(4)
    person = random.integers(rows // 3, size=rows)
    region = (4 * random.random(rows // 3) ** 1.5).astype(int)[person]
    amount = np.minimum(random.gamma(2.0, 10.0 + 5 * region), 200)
    return pa.table({"person": person, "region": np.array(REGIONS)[region], "amount": amount})


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Explain, ask in SQL, ask again in Python, ask for an accuracy; print and plot the answers beside the truth."""
    frame = visits(30_000 if quick else 100_000)
    keys, bounds = {"region": REGIONS}, {"amount": (0, 200)}
    with dp.open(
        frame, name="visits", unit="person", keys=keys, bounds=bounds, max_rows=LIMIT, budget=dp.PureDP(1)
    ) as table:
        question = table.sql(SQL)
        print(f"{SQL}\n\nbefore anything is read or charged:\n{question.explain(epsilon=0.5)}\n")
        answer = question.release(epsilon=0.5)
        print(answer)
        again = question.release(epsilon=0.5)
        print(f"\nasked again: the same answer {again == answer}, paid earlier {again.replayed}, left {again.left}")

        built = table.where(dp.col("amount") > 50).group_by("region").agg(n=dp.count(), m=dp.median("amount"))
        large = built.release(epsilon=0.25)
        print(f"\nvisits above 50, by the builder:\n{large}\n")
        people = table.agg(people=dp.people()).release(error=50)
        print(f"people, to within 50 (95 %):\n{people}\n")
        refused = ""
        try:
            table.agg(n=dp.count()).release(epsilon=0.5)
        except dp.BudgetExceeded as error:
            refused = str(error)
            print(f"one question too many: {refused}")

    true, bounded = _truth(frame)
    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.add_subplot()
    places = np.arange(len(REGIONS))
    axes.bar(places, answer["n"], 0.55, yerr=answer.error("n"), capsize=4, color="tab:blue", alpha=0.6, label="answer")
    axes.hlines(true, places - 0.3, places + 0.3, "k", label="all visits")
    axes.hlines(bounded, places - 0.3, places + 0.3, "r", label=f"at most {LIMIT} visits of each person")
    axes.set_xticks(places, REGIONS)
    axes.set(title=f"Visits by region, {answer.cost}; the bias is the bounding's", ylabel="visits")
    axes.legend(fontsize=9)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "ask_in_sql.png", dpi=150)
    return {
        "regions": answer["region"],
        "n": answer["n"],
        "error": answer.error("n"),
        "true": true,
        "bounded": bounded,
        "same": again == answer and again.replayed,
        "large": large["n"],
        "people": people["people"][0],
        "people_error": people.error("people")[0],
        "true_people": len(set(frame["person"].to_pylist())),
        "refused": refused,
    }


def _truth(frame: pa.Table) -> tuple[list[int], list[int]]:
    """Visits of each region, and as many of them as count: for show, since nobody exists."""
    person, region = frame["person"].to_numpy(), frame["region"].to_numpy(zero_copy_only=False)
    item = [np.bincount(person[region == name]) for name in REGIONS]
    return [int(counts.sum()) for counts in item], [int(np.minimum(counts, LIMIT).sum()) for counts in item]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer visits")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
