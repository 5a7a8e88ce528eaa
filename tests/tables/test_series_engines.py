"""What a series measures is the same on every engine, to the bit."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.budget_hooks import observed_by
from dither.tables.card.model import Card, ColumnCard
from support_series import REGIONS, Witness, measured, random_history, series_of, table_of, through
from tables.conftest import fill

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # Py4J leaves them to the collector
]
COLUMNS = {
    "who": ColumnCard("integer"), "day": ColumnCard("date"), "loaded": ColumnCard("date"),
    "region": ColumnCard("text", keys=REGIONS), "x": ColumnCard("number", bounds=(-4, 10)),
}  # fmt: skip


@pytest.fixture(scope="module")
def place(postgres_server) -> str:
    """A database of its own, where no other test names its tables."""
    postgres_server.execute("CREATE DATABASE series")
    return postgres_server.place("series")


@pytest.mark.parametrize("kind", ["postgres", "spark"])
@pytest.mark.parametrize("seed", [3, 5])
def test_increments_are_those_of_duckdb(request, tmp_path, kind, seed):
    late = {"late": "arrival", "arrived": "loaded"} if seed == 5 else {}
    history = random_history(seed)[0]
    expected, _ = measured(history, tmp_path / "duckdb", **late)
    witness = Witness()
    for number, (day, rows) in enumerate(history):
        if kind == "postgres":
            source = fill(request.getfixturevalue("place"), table_of(rows))
        else:
            request.getfixturevalue("spark")
            pq.write_table(table_of(rows), tmp_path / f"{number}.parquet")
            source = f"spark::{tmp_path / f'{number}.parquet'}"
        card = Card("data", source, COLUMNS, "who", ledger=str(tmp_path / "ledger"), budget=dp.ApproxDP(10, 1e-3))
        with observed_by(witness), dp.open(card) as table:
            series_of(table, **late).release(through=through(day))
    assert np.array_equal(np.concatenate(witness.increments), expected)
