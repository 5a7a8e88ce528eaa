"""Synthetic records of the Adult table: distances from the real tables, time, and what a classifier loses."""

from __future__ import annotations

import itertools
import json
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import dither as dp
from dither.publish import Attribute, Domain, Synthesizer
from suite import Row, limited

NOTE = (
    "Adult: the 14 columns of the UCI table as whole-number codes, epsilon = 1, delta = 1e-9; the mean total variation "
    "distance over the 91 pairs and the 210 triples of at most 10,000 cells, the mean of 5 runs. Measured where the "
    "variable DITHER_ADULT names a folder with adult.csv and adult-domain.json. *AIM* is that of the mbi repository, "
    "model size 1 MB, 200 iterations. *From the file*: opened as a CSV file with the public bounds of its columns, "
    "with a key for NULL in each; counting, charging and recording included. *Classifier*: a random forest of 100 "
    "trees, trained on synthetic records of two thirds of the rows, made for that target, and tested on the rest; the "
    "points of accuracy that it loses against one trained on the rows themselves."
)
Integers = NDArray[np.int64]
COST = {"epsilon": 1, "delta": 1e-9}


class Adult:
    """The table, and how far records are from it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "adult.csv"
        self.sizes: dict[str, int] = json.loads((folder / "adult-domain.json").read_text())
        self.names, self.shape = [*self.sizes], [*self.sizes.values()]
        self.data: Integers = np.loadtxt(self.file, delimiter=",", skiprows=1, dtype=np.int64)
        tables = [[*itertools.combinations(range(len(self.shape)), size)] for size in (2, 3)]
        tables[1] = [table for table in tables[1] if math.prod(self.shape[i] for i in table) <= 10_000]
        self.tables = tables

    def counted(self, columns: Integers, places: Sequence[int]) -> Integers:
        """A table of columns of codes."""
        codes = np.ravel_multi_index([columns[:, i] for i in places], [self.shape[i] for i in places])
        return np.bincount(codes, minlength=math.prod(self.shape[i] for i in places))

    def distances(self, records: Integers) -> list[float]:
        """The mean total variation distances over pairs and triples."""
        return [
            float(np.mean([
                np.abs(self.counted(records, table) / len(records) - self.counted(self.data, table) / len(self.data))
                .sum() / 2
                for table in group
            ]))
            for group in self.tables
        ]  # fmt: skip

    def synthesizer(self, target: str | None = None) -> Synthesizer:
        """For counts of codes."""
        domain = Domain([Attribute.flat(name, range(size)) for name, size in self.sizes.items()])
        return Synthesizer(domain, dp.ApproxDP(1, 1e-9), target=target)

    def records(self, rows: Integers, target: str | None = None) -> Integers:
        """Synthetic records of some rows, as codes."""
        synthesizer = self.synthesizer(target)
        counts = {
            levels: self.counted(rows, [i for i, level in enumerate(levels) if level]) for levels in synthesizer.tables
        }
        return np.stack(synthesizer.release(counts).codes, axis=1)

    def records_of_file(self) -> Integers:
        """The same from the file, with a ledger of its own; records with NULL, if there are any, are left out."""
        types: dict[str, Any] = dict.fromkeys(self.names, "integer")
        bounds = {name: (0, size - 1) for name, size in self.sizes.items()}
        budget = dp.ApproxDP(1, 1e-6)
        with dp.open(str(self.file), types=types, bounds=bounds, budget=budget, name="adult") as table:
            records: pa.Table = dp.publish.synthesize(table, **COST)
        complete = records.drop_null()
        return np.stack([complete[name].to_numpy() for name in self.names], axis=1)


def points_lost(adult: Adult) -> float:
    """By a random forest, on rows that were held out."""
    from sklearn.ensemble import RandomForestClassifier

    order = np.random.default_rng(0).permutation(len(adult.data))
    held_out = len(order) // 3
    train, test = adult.data[order[held_out:]], adult.data[order[:held_out]]

    def accuracy(rows: Integers) -> float:
        model = RandomForestClassifier(100, min_samples_leaf=5, random_state=0).fit(rows[:, :-1], rows[:, -1])
        return float(model.score(test[:, :-1], test[:, -1]))

    return 100 * (accuracy(train) - accuracy(adult.records(train, adult.names[-1])))


def adult_rows(repeats: int) -> list[Row]:
    """Measure, where the data are."""
    folder = os.environ.get("DITHER_ADULT")
    if folder is None:
        return []
    adult = Adult(Path(folder))
    rows = []
    for name, make in (("", lambda: adult.records(adult.data)), (" from the file", adult.records_of_file)):
        distances, seconds = [], []
        for _ in range(repeats):
            start = time.process_time()
            records = make()
            seconds.append(time.process_time() - start)
            distances.append(adult.distances(records))
        pairs, triples = np.mean(distances, axis=0).tolist()
        peers = "0.041 (AIM); 0.078 (independent columns)", "0.065 (AIM); 0.185 (independent columns)"
        rows += [
            limited(f"Adult, synthetic{name}: distance over pairs", pairs, "", 0.041, peers[0]),
            limited(f"Adult, synthetic{name}: distance over triples", triples, "", 0.065, peers[1]),
            limited(f"Adult, synthetic{name}: time", float(np.mean(seconds)), "s", 120.0, "1,900 s (AIM)"),
        ]
    lost = float(np.mean([points_lost(adult) for _ in range(repeats)]))
    return [*rows, limited("Adult, synthetic: points that a classifier loses", lost, "", 1.5)]


__all__ = ["NOTE", "adult_rows"]
