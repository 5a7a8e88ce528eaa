"""A country in miniature: tables over six levels of places, published once, that add up from the top to the bottom.

Made-up people live in places inside places: 8 regions down to 8,192 blocks, by sex and age (``quick``: 1,024 blocks;
``full``: 1,000,000). Two tables of every level are wanted, with and without sex and age, and one release measures them
all. What comes out is unbiased estimates with intervals, and whole, non-negative counts of which every table is a
margin; most blocks have empty cells, so making counts non-negative is where plain methods go wrong. The treemaps show
how well the places of each level are known: areas are people, colors are relative errors.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch

import dither as dp
from dither.present import write_html
from dither.present.pages.publication import CLASSES, color_of, layout
from dither.publish import Attribute, Domain, MarginalPlan, Publication, table_spec

LEVELS = ["region", "district", "county", "town", "quarter", "block"]
WANTED = [names for level in LEVELS for names in ([level], [level, "sex", "age"])]
AGES = [0, 18, 40, 65, 110]
BUDGET = dp.ApproxDP(1, 1e-9)
MOST_BOXES = 20_000


def country(sizes: list[int], seed: int = 1) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Which block lies in which places, and how many people of each sex and age live in each block."""
    generator = np.random.default_rng(seed)
    block, share = np.arange(sizes[-1]), np.ones(sizes[-1])
    lookup = {level: block // (sizes[-1] // size) for level, size in zip(LEVELS, sizes, strict=True)}
    for size in sizes:
        share *= np.repeat(generator.gamma(0.8, 1.25, size), sizes[-1] // size)
    cells = np.array([[0.5], [0.5]]) * np.array([0.2, 0.3, 0.3, 0.2])
    return lookup, generator.poisson((share / share.sum() * 20 * sizes[-1])[:, np.newaxis, np.newaxis] * cells)


def from_rows(lookup: dict[str, np.ndarray], counts: np.ndarray) -> Publication:
    """Publish from a table with one row for each person, as one would: the engine counts, the ledger is charged."""
    block, sex, age = (np.repeat(place, counts.ravel()) for place in np.indices(counts.shape).reshape(3, -1))
    ages = np.random.default_rng(2).integers(np.array(AGES)[age], np.array(AGES)[age + 1])
    rows = pa.table({"block": block, "sex": pa.array(["f", "m"]).take(pa.array(sex)), "age": ages})
    with dp.open(rows, keys={"sex": ["f", "m"]}, bounds={"age": (0, 109)}, budget=BUDGET, delta=1e-9) as people:
        plan = dp.publish.Plan(
            table=people,
            tables=WANTED,
            columns={"age": {"edges": AGES}},
            nested={"place": LEVELS},
            lookups={"place": pa.table(lookup)},
        )
        return plan.release(epsilon=1)


def from_counts(lookup: dict[str, np.ndarray], counts: np.ndarray) -> Publication:
    """Publish counts that were made already."""
    attributes = Attribute.nested("place", LEVELS, lookup), Attribute.flat("sex", ["f", "m"])
    domain = Domain([*attributes, Attribute.binned("age", AGES)])
    plan = MarginalPlan(domain, [table_spec(domain, names) for names in WANTED])
    return plan.release({plan.needed[0]: counts}, BUDGET)


def main(out: Path | None = None, quick: bool = False, full: bool = False) -> dict[str, Any]:
    """Publish, print the errors of every level, and plot them."""
    sizes = [8, 64, 128, 256, 512, 1024] if quick else [8, 32, 128, 512, 2048, 8192]
    lookup, counts = country([10**i for i in range(1, 7)] if full else sizes)
    published = from_counts(lookup, counts) if full else from_rows(lookup, counts)
    print(f"{counts.sum():,} people, {counts.size:,} cells, {(counts == 0).mean():.0%} of them empty; {BUDGET}")
    print(f"{'by place, sex and age':>22} {'± (95 %)':>9} {'covered':>8} {'unbiased':>9} {'clipped':>8} {'whole':>7}")
    estimate = published.estimates.table(["block", "sex", "age"])
    order = [estimate.names.index(name) for name in ("block", "sex", "age")]  # of the axes of all such tables
    clipped = np.maximum(np.rint(estimate.value), 0).transpose(order)
    kinds: dict[str, list[float]] = {"clipped": [], "unbiased": [], "whole": []}
    covered = []
    for level in LEVELS:
        exact, of_clipped = (np.zeros((lookup[level].max() + 1, 2, 4)) for _ in range(2))
        np.add.at(exact, lookup[level], counts)
        np.add.at(of_clipped, lookup[level], clipped)
        estimate = published.estimates.table([level, "sex", "age"])
        low, high = (limit.transpose(order) for limit in estimate.interval())
        whole = published.counts.table([level, "sex", "age"])
        tables = (of_clipped, estimate.value.transpose(order), whole.transpose(order))
        for kind, values in zip(kinds, tables, strict=True):
            kinds[kind].append(float(np.sqrt(np.mean((values - exact) ** 2))))
        covered.append(float(np.mean((low <= exact) & (exact <= high))))
        errors = " ".join(f"{kinds[kind][-1]:>8.1f}" for kind in ("unbiased", "clipped", "whole"))
        print(f"{level:>22} {np.mean(high - low) / 2:>9.1f} {covered[-1]:>8.1%}  {errors}")
    records = published.records()
    print(f"{records.num_rows:,} records give exactly the whole counts; clipped cells add up to {clipped.sum():,.0f}")

    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    plot(published, lookup, kinds).savefig(folder / "publish_country.png", dpi=150)
    if not quick:
        write_html(folder / "publish_country.html", published, "A country in miniature")
    total = published.estimates.table([])
    return {
        "rmse": kinds, "covered": covered, "people": int(counts.sum()), "records": records.num_rows,
        "clipped": int(clipped.sum()), "total": (total.value.item(), total.standard_error.item()),
    }  # fmt: skip


def plot(published: Publication, lookup: dict[str, np.ndarray], kinds: dict[str, list[float]]) -> Figure:
    """Errors by level, and a treemap of every level of not too many places: boxes lie in those of their parents."""
    drawn = [level for level in LEVELS if lookup[level].max() < MOST_BOXES]
    figure = Figure(figsize=(12, 9.3), layout="constrained")
    top, below = figure.subfigures(2, 1, height_ratios=[1, 2])
    axes = top.add_subplot()
    for kind, color in zip(kinds, ("tab:red", "tab:gray", "tab:blue"), strict=True):
        axes.semilogy(LEVELS, kinds[kind], "o-", color=color, label=f"{kind} counts")
    axes.set(title=f"Errors of place × sex × age, {BUDGET}", ylabel="root mean square (people)")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    boxes = {0: (0.0, 0.0, 16.0, 9.0)}
    above = np.zeros_like(lookup["block"])
    plain = {"frameon": False, "xticks": [], "yticks": []}
    for axes, level in zip(below.subplots(2, 3, subplot_kw=plain).flat, drawn, strict=False):
        estimate = published.estimates.table([level])
        people = np.maximum(estimate.value, 0.1)
        relative = 1.96 * estimate.standard_error / np.maximum(estimate.value, 1)
        places, first = np.unique(lookup[level], return_index=True)
        inside: dict[int, tuple[float, float, float, float]] = {}
        for parent, box in boxes.items():
            children = places[above[first] == parent]
            children = children[np.argsort(-people[children])]
            inside |= dict(zip(children.tolist(), layout(people[children].tolist(), box), strict=True))
        corners = [[(x, y), (x + w, y), (x + w, y + h), (x, y + h)] for x, y, w, h in inside.values()]
        colors = [color_of(relative[place]) for place in inside]
        width = 0.8 if len(inside) < 1000 else 0.1
        axes.add_collection(PolyCollection(corners, facecolors=colors, edgecolors="white", linewidths=width))
        axes.set(xlim=(0, 16), ylim=(9, 0), title=f"{level}: {len(inside):,} places")
        boxes, above = inside, lookup[level]
    legend = [Patch(color=color, label=name) for _, name, color in CLASSES]
    below.legend(handles=legend, title="error of a place's number of people", loc="outside lower center", ncols=5)
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot and the page (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer blocks")
    parser.add_argument("--full", action="store_true", help="a million blocks, from counts that were made already")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick, arguments.full)
