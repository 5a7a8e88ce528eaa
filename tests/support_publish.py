"""Domains for the tests of publishing: small ones at random, with nested levels and families of any size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dither.publish import Attribute, Domain
from dither.publish.domain import Levels
from dither.publish.residuals import Residuals, margin, margins


def random_tree(name: str, depth: int, generator: np.random.Generator, most: int = 3) -> Attribute:
    """A tree whose families have 1 to ``most`` children; its lookup stands in random order."""
    columns = [np.arange(generator.integers(1, most + 1))]
    parents = [columns[0]]
    for _ in range(depth - 1):
        sizes = generator.integers(1, most + 1, len(columns[-1]))
        parents = [np.repeat(column, sizes) for column in parents]
        columns.append(np.arange(sizes.sum()))
        parents.append(columns[-1])
    order = generator.permutation(len(columns[-1]))
    names = [f"{name}{level}" for level in range(depth)]
    lookup = {level: column[order].tolist() for level, column in zip(names, parents, strict=True)}
    return Attribute.nested(name, names, lookup)


def random_domain(seed: int, most_cells: int = 120) -> tuple[Domain, Levels]:
    """A domain and its finest table, of at most so many cells."""
    generator = np.random.default_rng(seed)
    while True:
        depths = generator.choice([1, 1, 2, 3], size=generator.integers(1, 4))
        attributes = [
            Attribute.flat(f"a{i}", range(int(generator.integers(1, 7))))
            if depth == 1
            else random_tree(f"a{i}", int(depth), generator)
            for i, depth in enumerate(depths)
        ]
        domain = Domain(attributes)
        finest = tuple(int(depth) for depth in depths)
        if domain.size(finest) <= most_cells:
            return domain, finest


def dense(domain: Domain, table: Levels, levels: Levels) -> np.ndarray:
    """The matrix that sums the cells of a table to those of a margin."""
    unit = np.eye(domain.size(table)).reshape(-1, *domain.shape(table))
    return np.stack([margin(domain, cell, table, levels).ravel() for cell in unit], axis=1)


def measurement(residuals: Residuals, table: Levels, variances: dict[Levels, float]) -> tuple[np.ndarray, np.ndarray]:
    """All contrasts of a table as rows of a matrix, and the variances of their noise."""
    unit = np.eye(residuals.domain.size(table)).reshape(-1, *residuals.domain.shape(table))
    rows, noise = [], []
    for levels in margins([table]):
        squares = np.ones(residuals.shape(levels))
        for block, square in residuals.groups(levels):
            squares[block] = float(square)
        rows.append(np.stack([residuals.of(levels, cell, table).ravel() for cell in unit], axis=1))
        noise.append(variances[levels] * squares.ravel())
    return np.concatenate(rows), np.concatenate(noise)


def published_visits(folder: Path, card: str, plan: str) -> None:
    """The card and the plan of the documentation in a folder, with their lookup and rows that somebody made up."""
    (folder / "visits.toml").write_text(card, encoding="utf-8")
    (folder / "plan.toml").write_text(plan, encoding="utf-8")
    (folder / "places.csv").write_text("state,county\nNorth,Alder\nNorth,Birch\nSouth,Cedar\nSouth,Dogwood\n")
    random = np.random.default_rng(1)
    hours = random.integers(0, 365 * 24, 2000) * np.timedelta64(1, "h")
    rows = {
        "patient": np.arange(2000) % 900,
        "county": random.choice(["Alder", "Birch", "Cedar", "Dogwood"], 2000),
        "sex": random.choice(["f", "m", "x"], 2000),
        "age": random.integers(0, 100, 2000),
        "amount": random.uniform(0, 900, 2000),
        "visited_at": np.datetime64("2026-01-01T00:00:00", "us") + hours,
    }
    pq.write_table(pa.table(rows), folder / "visits.parquet")
