"""What a page says about a table agrees with what the library allows."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import dither as dp
from dither.errors import DitherError
from dither.server.pages.forms import (
    budget_meter,
    completion_words,
    contribution,
    example,
    options_in_words,
    tables_in_words,
)  # fmt: skip
from dither.tables.card.model import Card, ColumnCard

ROWS = pa.table({"who": [1, 2], "kind": ["a", "b"], "word": ["x", "y"], "size": [1.0, 2.0], "free": [1.0, 2.0]})


def opened(**options):
    stated = {"unit": "who", "bounds": {"size": (0, 9)}, "keys": {"kind": ["a", "b"]}, "name": "t"}
    return dp.open(ROWS, budget=dp.PureDP(9), **stated, **options)


def test_what_the_page_says_is_forbidden_is_refused_and_the_rest_is_not():
    with opened() as table:
        words = {column.name: column for column in tables_in_words(table.card)["t"]}
        for name, sql in (("free", "AVG(free)"), ("size", "AVG(size)")):
            question = f"SELECT {sql} AS x FROM t"
            if "AVG" in words[name].forbids:
                with pytest.raises(DitherError):
                    table.sql(question).explain(epsilon=1)
            else:
                assert table.sql(question).explain(epsilon=1).cost
        for name in ("kind", "word", "free"):
            question = f"SELECT {name}, COUNT(*) AS n FROM t GROUP BY {name}"
            if "GROUP BY:" in words[name].forbids:
                with pytest.raises(DitherError):
                    table.sql(question).explain(epsilon=1)
            else:
                assert table.sql(question).explain(epsilon=1).cost
        assert words["who"].person
        assert words["size"].bounds == "0 to 9"
        assert words["kind"].keys == "a, b"


def test_the_example_can_be_asked():
    with opened() as table:
        assert table.sql(example(table.card)).explain(epsilon=1).cost
    with dp.open(ROWS, name="odd", budget=dp.PureDP(1)) as table:
        assert table.sql(example(table.card)).explain(epsilon=1).cost


def test_suggestions_are_names_and_functions():
    with opened() as table:
        words = dict(json.loads(completion_words(table.card)))
    assert (words["t"], words["kind"], words["COUNT("], words["ABS("]) == ("table", "text", "aggregate", "function")


def test_many_keys_are_cut_and_public_tables_are_named():
    columns = {"key": ColumnCard("integer", keys=tuple(range(40)))}
    card = Card("t", "", columns, public={"p": dp.tables.card.model.PublicTable("p.csv", {"a": ColumnCard("text")})})
    words = tables_in_words(card)
    assert list(words) == ["t", "p"]
    assert words["t"][0].keys.endswith("11 and 28 more")
    assert words["p"][0].forbids == ""
    assert contribution(card) == "With one row: every row is a person of its own."


def test_amounts_meters_and_options():
    assert budget_meter(dp.PureDP(2), None)[0].spent == 100.0
    assert budget_meter(None, None) == (None, "ε")
    assert budget_meter(dp.ZCDP(2), dp.PureDP(1)) == (None, "ρ")
    assert budget_meter(dp.PureDP(2), dp.PureDP(2.5)) == (None, "ε"), "the card says less than the ledger"
    assert options_in_words({"error": 50, "noise": "best", "max_rows": 3}) == ["± = 50", "max_rows = 3"]
