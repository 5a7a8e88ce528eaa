"""Noisy tables below one another, where the SQL on them failed."""

from __future__ import annotations

from dither.tables.execute.unprocessed import NoisyColumns, unprocessed


def test_one_table_is_shown_as_it_is():
    result = unprocessed([NoisyColumns({"a": "text", "n": "integer"}, [("x", 1)], {"n": [2.0]}, {"n": [0.5]})])
    assert result[:5] == (("a", "n"), ("text", "integer"), (("x", 1),), {"n": (2.0,)}, {"n": (0.5,)})


def test_columns_of_one_name_and_different_types_stay_apart():
    first = NoisyColumns({"n": "integer", "aggregation": "text"}, [(1, "x")], {"n": [2.0]}, {})
    second = NoisyColumns({"n": "number"}, [(0.5,), (0.7,)], {"n": [3.0, None]}, {})
    result = unprocessed([first, second])
    assert result.names == ("aggregation", "n", "aggregation_2", "n_2")
    assert result.types == ("integer", "integer", "text", "number")
    assert result.rows == ((1, 1, "x", None), (2, None, None, 0.5), (2, None, None, 0.7))
    assert result.errors == {"n": (2.0, None, None), "n_2": (None, 3.0, None)}


def test_tables_without_rows_have_columns():
    result = unprocessed([NoisyColumns({"n": "integer"}, [], {"n": []}, {})] * 2)
    assert (result.names, result.rows, result.errors) == (("aggregation", "n"), (), {"n": ()})
