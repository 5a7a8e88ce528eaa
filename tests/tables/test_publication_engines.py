"""Counts of a publication are the same on every engine, to the bit, and those by hand."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.tables.compile import marginals
from support_counting import check, random_publication
from tables.conftest import fill

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # Py4J leaves them to the collector
]
PATHS = {"comparisons": (24, 1_000), "constants": (0, 1_000), "staged": (0, 0)}
CASES = {
    "postgres": [(14, "comparisons"), (16, "constants"), (18, "staged"), (36, "staged"), (33, "comparisons")],
    "spark": [(14, "comparisons"), (36, "staged")],
}


@pytest.fixture(scope="module")
def place(postgres_server) -> str:
    """A database of its own, where no other test names its tables."""
    postgres_server.execute("CREATE DATABASE publications")
    return postgres_server.place("publications")


@pytest.mark.parametrize(
    ("kind", "seed", "path"), [(kind, seed, path) for kind, cases in CASES.items() for seed, path in cases]
)
def test_counts_are_those_by_hand(request, tmp_path, monkeypatch, kind, seed, path):
    monkeypatch.setattr(marginals, "MOST_COMPARISONS", PATHS[path][0])
    monkeypatch.setattr(marginals, "MOST_CONSTANTS", PATHS[path][1])
    publication = random_publication(seed)
    rows = publication.source()
    if kind == "postgres":
        source = fill(request.getfixturevalue("place"), rows)
    else:
        pq.write_table(rows, tmp_path / "rows.parquet")
        request.getfixturevalue("spark")
        source = f"spark::{tmp_path / 'rows.parquet'}"
    with dp.open(publication.card(source, str(tmp_path / "ledger"))) as table:
        check(publication, table)
