"""What a profile counts is the same on every engine, to the bit."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.tables.card.model import Card, ColumnCard
from dither.tables.planning.profile_plan import ProfilePlan
from tables.conftest import fill
from tables.test_profile import COLUMNS, Exact, rows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # Py4J leaves them to the collector
]


@pytest.fixture(scope="module")
def place(postgres_server) -> str:
    """A database of its own, where no other test names its tables."""
    postgres_server.execute("CREATE DATABASE profiles")
    return postgres_server.place("profiles")


@pytest.mark.parametrize("without", [None, "each"])
@pytest.mark.parametrize("kind", ["postgres", "spark"])
def test_a_profile_is_that_of_duckdb(request, tmp_path, monkeypatch, kind, without):
    monkeypatch.setattr(ProfilePlan, "noise", lambda *_: Exact())
    unknown = pa.table({name: [None] * 7 for name in COLUMNS}, schema=rows().schema)
    table = pa.concat_tables([rows(), unknown])
    pq.write_table(table, tmp_path / "rows.parquet")
    if kind == "postgres":
        source = fill(request.getfixturevalue("place"), table)
    else:
        request.getfixturevalue("spark")
        source = f"spark::{tmp_path / 'rows.parquet'}"
    keys = ColumnCard("integer", keys=tuple(range(60)))  # so many that they are joined
    columns = {**COLUMNS, "age": keys}
    measured = []
    for number, given in enumerate((str(tmp_path / "rows.parquet"), source)):
        card = Card(
            "visits", given, columns, "who", ledger=str(tmp_path / f"ledger{number}"), budget=dp.PureDP(1),
            rows_without_unit=without,
        )  # fmt: skip
        with dp.open(card) as opened:
            measured.append(opened.profile(epsilon=1).tables["visits"])
    assert measured[0] == measured[1]
    assert measured[0].columns["amount"].by_rows is not None
