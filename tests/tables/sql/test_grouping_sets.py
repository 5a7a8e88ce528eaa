"""ROLLUP, CUBE and GROUPING SETS: the sets are those of DuckDB, in its sense of every form."""

from __future__ import annotations

import duckdb
import pytest

from dither.tables.sql.blocks import grouping_sets
from dither.tables.sql.text import statement
from support import each

FORMS = [
    "ROLLUP (a, b, c)",
    "CUBE (a, b)",
    "CUBE (a, b, c)",
    "GROUPING SETS ((a, b), (a), ())",
    "GROUPING SETS (a, (b, c))",
    "GROUPING SETS (a, ROLLUP (b, c))",
    "GROUPING SETS (ROLLUP (a, b), CUBE (b, c))",
    "a, ROLLUP (b, c)",
    "ROLLUP ((a, b), c)",
    "ROLLUP (a), ROLLUP (b)",
    "GROUPING SETS ((a), (a), (b))",
]


@pytest.mark.parametrize("form", FORMS)
def test_the_sets_are_those_of_duckdb(form):
    tree, _ = statement(f"SELECT COUNT(*) FROM t GROUP BY {form}", "t")
    sets = [sorted({column.name for column in columns}) for columns in grouping_sets(tree.args["group"])]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a, 2 AS b, 3 AS c")
        every = [item for item in "abc" if item in form.replace("GROUPING", "").replace("CUBE", "")]
        shown = ", ".join(f"GROUPING({item})" for item in every)
        rows = connection.sql(f"SELECT {shown} FROM t GROUP BY {form}").fetchall()
    expected = [[item for item, bit in zip(every, row, strict=True) if not bit] for row in rows]
    assert sorted(sets) == sorted(expected)


@pytest.mark.parametrize("form", ["a, b", "1", "(a)"])
def test_a_plain_list_of_columns_has_no_sets(form):
    tree, _ = statement(f"SELECT a, COUNT(*) FROM t GROUP BY {form}", "t")
    assert grouping_sets(tree.args["group"]) is None


def test_with_rollup_is_a_rollup_of_all_columns():
    tree, _ = statement("SELECT a, b, COUNT(*) FROM t GROUP BY a, b WITH ROLLUP", "t")
    sets = [[column.name for column in columns] for columns in grouping_sets(tree.args["group"])]
    assert sets == [["a", "b"], ["a"], []]


@each(
    ("grouped", "levels"),
    [
        ("ROLLUP (amount > 50, region)", [["amount > 50", "region"], ["amount > 50"], []]),
        ("CUBE (a = 1 OR b, c)", [["a = 1 OR b", "c"], ["a = 1 OR b"], ["c"], []]),
        ("GROUPING SETS ((a > 1, b), (c IS NULL))", [["a > 1", "b"], ["c IS NULL"]]),
    ],
)
def test_conditions_are_columns_of_levels(grouped, levels):
    tree, _ = statement(f"SELECT COUNT(*) FROM t GROUP BY {grouped}", "t")
    sets = grouping_sets(tree.args["group"])
    assert sets is not None
    assert [[column.sql() for column in columns] for columns in sets] == levels
