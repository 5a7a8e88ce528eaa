"""One SELECT: its groups and aggregates by their names."""

from __future__ import annotations

from dither.tables.query.tree import Column
from dither.tables.sql.select_reader import SelectReader, is_bucket
from dither.tables.sql.text import statement
from tables.questions import CARD


def reader(text: str) -> SelectReader:
    result = SelectReader(statement(text, "visits")[0], CARD)
    result.read_groups()
    return result


def test_groups_are_named_by_as():
    result = reader("SELECT region AS r, COUNT(*) FROM visits GROUP BY 1")
    assert [group.name for group in result.groups] == ["r"]
    assert result.written == {"r": Column("region")}
    assert result.types == {"r": "text"}


def test_the_same_aggregate_is_known_by_one_name():
    result = reader("SELECT COUNT(*), COUNT(*) FROM visits")
    names = {result.aggregate(node).name for _, node in result.items}
    assert names == {"count"}


def test_buckets_are_bins():
    result = reader("SELECT WIDTH_BUCKET(age, 0, 100, 10), COUNT(*) FROM visits GROUP BY 1")
    assert all(map(is_bucket, result.written.values()))
