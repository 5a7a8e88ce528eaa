"""Synthetic census records: a model is trained on them, and tested on real people who were held out.

``--data FOLDER`` names a folder with the Adult table of the UCI repository as whole-number codes, ``adult.csv``, and
the number of codes of each column, ``adult-domain.json``, as the public repository ryan112358/mbi has them. Without it,
made-up people stand in. Domains, bounds and rules are public; the private rows are read once, by one release.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from matplotlib.figure import Figure
from sklearn.ensemble import RandomForestClassifier

import dither as dp

RULE = "NOT (marital = 'married' AND age < 15)"
SCHOOL = ["none", "primary", "secondary", "university"]
MARITAL = ["single", "married", "widowed"]


def made_up(rows: int, seed: int = 1) -> tuple[pa.Table, dict[str, Any], str]:
    """People whose income depends on age, school and hours; what is public about the columns; what is predicted."""
    generator = np.random.default_rng(seed)
    age = np.minimum(generator.gamma(3.0, 14.0, rows).astype(int), 99)
    school = np.where(age < 6, 0, np.minimum(3, 1 + (generator.random(rows) * age / 18).astype(int)))
    marital = np.where((age >= 18) & (generator.random(rows) < 0.55), 1, 0)
    marital = np.where((age > 60) & (generator.random(rows) < 0.3), 2, marital)
    hours = np.clip(generator.normal(np.where((age > 17) & (age < 67), 36, 2), 9, rows), 0, 80).astype(int)
    odds = 1.3 * school + 0.06 * hours + 0.9 * (marital == 1) - 4.0 - ((age - 48) / 22) ** 2
    rich = generator.random(rows) < 1 / (1 + np.exp(-odds))
    table = pa.table(
        {
            "age": age,
            "school": pa.array(SCHOOL).take(pa.array(school)),
            "marital": pa.array(MARITAL).take(pa.array(marital)),
            "hours": hours,
            "rich": rich,
        }
    )
    public = {"bounds": {"age": (0, 99), "hours": (0, 80)}, "keys": {"school": SCHOOL, "marital": MARITAL}}
    return table, public, "rich"


def adult(folder: Path) -> tuple[pa.Table, dict[str, Any], str]:
    """The Adult table as codes."""
    sizes: dict[str, int] = json.loads((folder / "adult-domain.json").read_text(encoding="utf-8"))
    public = {"bounds": {name: (0, size - 1) for name, size in sizes.items()}}
    return pyarrow.csv.read_csv(folder / "adult.csv").select([*sizes]), public, [*sizes][-1]


def accuracy(train: pa.Table, test: pa.Table, target: str) -> float:
    """Of a random forest that is trained on one table and tested on another."""

    def columns(table: pa.Table) -> np.ndarray:
        return np.stack([numbers(table[name], test[name]) for name in table.column_names if name != target], axis=1)

    model = RandomForestClassifier(100, min_samples_leaf=5, random_state=0)
    model.fit(columns(train), numbers(train[target], test[target]))
    return float(model.score(columns(test), numbers(test[target], test[target])))


def numbers(values: pa.ChunkedArray, known: pa.ChunkedArray) -> np.ndarray:
    """A column as numbers; texts as their places among the known ones, in order, and NULL as -1."""
    listed = sorted(known.drop_null().unique().to_pylist())
    if not isinstance(listed[0], str):
        return np.asarray(values.cast(pa.float64()).fill_null(-1.0))
    places = {key: i for i, key in enumerate(listed)}
    return np.array([places.get(value, -1) for value in values.to_pylist()], dtype=float)


def main(out: Path | None = None, quick: bool = False, data: Path | None = None) -> dict[str, Any]:
    """Release, train, test, and plot."""
    people, public, target = made_up(10_000 if quick else 40_000) if data is None else adult(data)
    order = np.random.default_rng(2).permutation(people.num_rows)
    held_out = people.num_rows // 3
    train, test = people.take(pa.array(order[held_out:])), people.take(pa.array(order[:held_out]))
    rules = [RULE] if data is None else []
    with dp.open(train, **public, budget=dp.ApproxDP(1, 1e-6), name="people") as table:
        records = dp.publish.synthesize(table, epsilon=1, delta=1e-9, target=target, constraints=rules)

    share = np.bincount(numbers(test[target], test[target]).astype(int)).max() / test.num_rows
    results = {
        "always the same": float(share),
        "trained on synthetic": accuracy(records, test, target),
        "trained on real": accuracy(train, test, target),
    }
    print(f"{train.num_rows:,} people, {records.num_rows:,} synthetic records, ε = 1, δ = 1e-9")
    for name, value in results.items():
        print(f"{name:>22} {value:7.1%} of {test.num_rows:,} held-out people predicted rightly")
    figures: dict[str, Any] = {"accuracy": results, "people": train.num_rows, "records": records.num_rows}
    if data is None:
        young = [row for row in records.to_pylist() if row["marital"] == "married" and (row["age"] or 0) < 15]
        figures["married_children"] = len(young)
        print(f"{len(young)} married children among the synthetic records: the rule is {RULE}")

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    ages = [numbers(item["age"], train["age"]) for item in (train, records)]
    bins = np.arange(0, max(map(np.max, ages)) + 2)
    left.hist(ages[0], bins, density=True, color="tab:gray", alpha=0.5, label="real")
    left.hist(ages[1], bins, density=True, histtype="step", color="tab:blue", label="synthetic")
    left.set(title="Age", xlabel="age", ylabel="share of people")
    left.legend()
    right.barh([*results], [*results.values()], color=["tab:gray", "tab:blue", "tab:green"])
    right.set(title="Accuracy on held-out real people", xlim=(0.5, 1))
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "synthetic_adult.png", dpi=150)
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer people")
    parser.add_argument("--data", type=Path, help="folder with adult.csv and adult-domain.json")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick, arguments.data)
