"""Joins, frames, small tables, errors asked for, and what is done to the noisy table: from question to answer."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

import dither as dp
from dither.errors import DitherError, InvalidArgument, InvalidData
from dither.tables.card.model import Card, ColumnCard, PublicTable
from dither.tables.planning import calibrate
from support import refuses
from tables.visits import COUNT, ROWS, card, spent

pytestmark = pytest.mark.slow

# -- joins ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["who", None])
def test_a_public_table_has_each_key_once(tmp_path, unit):
    """A row with two partners would count twice: noise for one would not hide it."""
    (tmp_path / "regions.csv").write_text("region,name\nnorth,N\nsouth,S\nnorth,N\n,x\n,y\n")
    public = {
        "regions": PublicTable(str(tmp_path / "regions.csv"), dict.fromkeys(("region", "name"), ColumnCard("text")))
    }
    with dp.open(card(tmp_path, unit=unit, public=public)) as table:
        before = spent(table)
        question = "SELECT COUNT(*) AS n FROM visits JOIN regions ON visits.region = regions.region"
        with refuses(InvalidData, "each region once"):
            table.sql(question).release(1)
        assert spent(table) == before
    (tmp_path / "regions.csv").write_text("region,name\nnorth,N\nsouth,S\n,x\n,y\n")
    with dp.open(card(tmp_path, unit=unit, public=public, budget=dp.PureDP(4000), ledger=str(tmp_path / "l"))) as table:
        inner = table.sql(question).release(1000)["n"]
        left = table.sql(question.replace("JOIN", "LEFT JOIN")).release(1000)["n"]
        assert (inner, left) == ([1334], [2000 if unit else 2010])


@pytest.mark.parametrize("unit", ["who", None])
def test_a_row_counts_once_where_a_public_table_has_a_key_twice_after_it_was_checked(tmp_path, unit, monkeypatch):
    (tmp_path / "regions.csv").write_text("region,name\nnorth,N\nsouth,S\nnorth,N\n")
    public = {
        "regions": PublicTable(str(tmp_path / "regions.csv"), dict.fromkeys(("region", "name"), ColumnCard("text")))
    }
    with dp.open(card(tmp_path, unit=unit, public=public, budget=dp.PureDP(4000))) as table:
        monkeypatch.setattr(type(table.engine), "unique", lambda *_: True)
        question = "SELECT COUNT(*) AS n FROM visits JOIN regions ON visits.region = regions.region"
        assert table.sql(question).release(1000)["n"] == [1334]


@pytest.mark.parametrize("unit", ["who", None])
def test_a_composite_key_of_a_public_table_is_compared_in_all_its_parts(tmp_path, unit):
    (tmp_path / "prices.csv").write_text("region,age,price\nnorth,0,1\nnorth,1,2\nsouth,0,3\nsouth,1,4\n")
    kinds = {"region": ColumnCard("text"), "age": ColumnCard("integer"), "price": ColumnCard("number")}
    public = {"prices": PublicTable(str(tmp_path / "prices.csv"), kinds)}
    with dp.open(card(tmp_path, unit=unit, public=public, budget=dp.PureDP(4000))) as table:
        both = "visits.region = prices.region AND visits.age = prices.age"
        asked = f"SELECT COUNT(*) AS n, SUM(price) AS s FROM visits JOIN prices ON {both}"
        answer = table.sql(asked).release(1000)
        assert (answer["n"], [round(x) for x in answer["s"]]) == ([46], [23 * 1 + 23 * 4])
        if unit is not None:
            chain = (
                "FROM prices p, visits v, prices q WHERE p.region = v.region AND p.age = v.age AND q.age = 1 - v.age"
            )
            twice = f"SELECT SUM(q.price) AS s {chain} AND q.region = p.region"
            assert [round(x) for x in table.sql(twice).release(1000)["s"]] == [23 * 2 + 23 * 3]
    (tmp_path / "prices.csv").write_text("region,age,price\nnorth,0,1\nnorth,0,2\n")
    opened = dp.open(card(tmp_path, unit=unit, public=public, ledger=str(tmp_path / "l")))
    with opened as table, refuses(InvalidData, "each region, age once"):
        table.sql(asked).release(1)


# -- opening --------------------------------------------------------------------------------------------------------


def frame(**more):
    stated = {"unit": "who", "budget": dp.ApproxDP(1000, 0.1), "bounds": {"amount": (0, 50)}, "delta": 1e-6, **more}
    return dp.open(ROWS, **stated)


@pytest.mark.parametrize(
    ("how", "match"),
    [
        ({"unit": "nosuch"}, "nosuch"),
        ({"bounds": {"amount": (50, 0)}}, "lower below upper"),
        ({"bounds": {"nosuch": (0, 1)}}, "nosuch"),
        ({"keys": {"region": ["a", "a"]}}, "different"),
        ({"keys": {"region": "north"}}, "list"),
        ({"keys": {"region": []}}, "different"),
        ({"budget": None}, "budget"),
        ({"budget": 1}, "limit"),
    ],
    ids=str,
)
def test_a_frame_needs_what_a_card_would_say(how, match):
    with pytest.raises(DitherError, match=match):
        frame(**how)


def test_a_frame_is_asked_like_a_file():
    with frame(keys={"region": ["north", "south", "nowhere"]}, max_groups=3, max_rows=5) as table:
        result = table.group_by("region").agg(n=dp.count(), m=dp.mean("amount")).release(900)
        assert result["region"] == ["north", "south", "nowhere"]
        assert result["n"] == [667, 667, 0]
        assert repr(table) == "Table('data', 4 columns, unit='who')"
        assert "north" not in repr(table.group_by("region"))


@pytest.mark.parametrize("size", [0, 1])
def test_tables_with_hardly_any_rows(size):
    with dp.open(
        ROWS.slice(0, size), unit="who", budget=dp.ApproxDP(100, 0.1), bounds={"age": (0, 99), "amount": (0, 9)}
    ) as table:
        answer = table.sql(
            "SELECT COUNT(*) AS n, SUM(age) AS s, AVG(amount) AS m, STDDEV(age) AS d, MEDIAN(age) AS q, MIN(age) AS a, "
            "MAX(amount) AS b FROM data"
        ).release(10)
        assert len(answer) == 1
        numbers = answer.rows[0] if size else answer.rows[0][:2]  # of no values there are a count and a sum alone
        assert all(isinstance(value, (int, float)) and math.isfinite(value) for value in numbers)
        assert size or answer.rows[0][2:] == (None,) * 5
        private = table.sql("SELECT region, COUNT(*) AS n FROM data GROUP BY region").release(1, delta=1e-9)
        assert len(private) == 0
        assert private.to_pandas().shape == (0, 3)


def test_columns_of_nothing_but_null_and_nan(tmp_path):
    data = pa.table({"who": [1, 2], "x": pa.array([None, None], pa.float64()), "y": [math.nan, math.inf]})
    with dp.open(data, unit="who", budget=dp.PureDP(2000), bounds={"x": (0, 10), "y": (0, 10)}) as table:
        answer = table.agg(x=dp.mean("x"), n=dp.count("x"), y=dp.count("y"), m=dp.mean("y")).release(1000)
    assert (answer["n"], answer["y"]) == ([0], [1])
    assert answer["x"] == [None]
    assert answer["m"][0] == pytest.approx(10, abs=0.2)


def test_a_csv_file_with_a_header_only(tmp_path):
    (tmp_path / "empty.csv").write_text("who,age\n")
    columns = {"who": ColumnCard("text"), "age": ColumnCard("integer", (0, 99))}
    stated = Card("t", str(tmp_path / "empty.csv"), columns, "who", ledger=str(tmp_path / "l"), budget=dp.PureDP(100))
    with dp.open(stated) as table:
        assert abs(table.sql("SELECT SUM(age) AS s FROM t").release(99)["s"][0]) < 100


# -- accuracy first -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        *((COUNT, error) for error in (1, 3, 20, 1000, 12_345.6)),
        *(
            ("SELECT COUNT(*) AS n, SUM(amount) AS s, AVG(age) AS a FROM visits", error)
            for error in (20, 1000, 12_345.6)
        ),
    ],
)
def test_an_error_is_reached_and_not_by_much(visits, error, sql):
    plan = visits.sql(sql).plan(error=error)
    widths = calibrate.widths(plan)
    assert max(widths) <= error
    spent = float(plan.cost.exact[0])
    if error >= 100:
        assert max(widths) >= 0.99 * error
    less = visits.sql(sql).plan(spent * 0.98)
    assert max(calibrate.widths(less)) > error


def test_an_error_needs_something_whose_error_is_known(visits):
    with refuses(InvalidArgument, "error"):
        visits.sql("SELECT MEDIAN(age) AS m FROM visits").plan(error=1)
    with refuses(InvalidArgument, "auto"):
        visits.agg(s=dp.mean("age", bounds="auto"), n=dp.count()).plan(error=1)


# -- what is done to the noisy table --------------------------------------------------------------------------------


def test_having_order_and_limit_are_of_the_noisy_table(tmp_path):
    with dp.open(card(tmp_path, budget=dp.ApproxDP(4000, 0.1))) as table:
        answer = table.sql(
            "SELECT region AS r, COUNT(*) * 2 AS twice, 7 AS seven, 'é' AS word FROM visits GROUP BY region "
            "HAVING COUNT(*) > 0 ORDER BY twice DESC, r LIMIT 2"
        ).release(3000)
    assert answer.columns == ("r", "twice", "seven", "word")
    assert answer.rows == (("north", 1334, 7, "é"), ("south", 1334, 7, "é"))
    assert answer.types == ("text", "integer", "integer", "text")


def test_counts_can_be_made_whole_and_not_negative(visits):
    result = visits.sql("SELECT COUNT(*) AS n, SUM(amount) AS s FROM visits WHERE age > 1000").release(
        0.1, nonnegative=True, integer=True
    )
    assert all(isinstance(value, int) and value >= 0 for value in result.rows[0])


def test_a_group_of_each_person_is_not_shown(visits):
    with refuses(dp.InvalidArgument, "groups of several people", "COUNT(DISTINCT who)"):
        visits.sql("SELECT who, COUNT(*) AS n FROM visits GROUP BY who")


def nested(depth: int):
    result = dp.col("amount")
    for _ in range(depth):
        result = abs(result)
    return result


def test_what_cannot_be_compiled_is_refused_before_it_is_paid_for(visits, monkeypatch):
    before = visits.left
    with refuses(InvalidArgument, "inside each other"):
        visits.agg(s=dp.sum(nested(100), (0, 1))).release(1)
    monkeypatch.setattr(visits.engine, "rehearse", lambda _: visits.engine.run("SELECT nothing FROM nowhere"))
    with refuses(InvalidData):  # an engine may refuse what was rendered: a depth, a length, a type
        visits.sql(COUNT).release(1)
    assert visits.left == before


def test_a_statement_is_tried_on_no_rows(visits, monkeypatch):
    """The trial before the charge reads nothing of the source: neither what it says nor how long it takes depends on
    it."""
    tried = []
    real = visits.engine.rehearse
    monkeypatch.setattr(visits.engine, "rehearse", lambda statement: tried.append(statement) or real(statement))
    visits.sql("SELECT region, COUNT(*) AS n, MEDIAN(age) AS m FROM visits GROUP BY region").release(1)
    assert len(tried) == 2
    assert not any("dither_rows" in str(statement) or "parquet" in str(statement) for statement in tried)


@pytest.mark.parametrize("chain", [" OR ".join(f"age = {i}" for i in range(60)), f"{' + '.join(['age'] * 60)} > 5"])
def test_long_chains_are_answered(visits, chain):
    truth = sum(1 for age in ROWS["age"].to_pylist() if age is not None and (age < 60 if "OR" in chain else age > 0))
    assert visits.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {chain}").release(5)["n"] == [
        pytest.approx(truth, abs=60)
    ]


def test_the_types_of_counts_and_sums_do_not_depend_on_what_is_shown() -> None:
    text = "SELECT k, COUNT(*) n, COUNT(x) v, SUM(x) s FROM data GROUP BY k"
    for size in (0, 100_000):
        rows = pa.table({"k": pa.array(["a"] * size, pa.string()), "x": pa.array([1] * size, pa.int64())})
        with dp.open(rows, bounds={"x": (0, 1)}, budget=dp.ApproxDP(1, 1e-6), delta=1e-6) as table:
            answer = table.sql(text).release(0.9)
            assert answer.types == ("text", "integer", "integer", "integer")
            assert len(answer) == min(size, 1)
            assert [str(field.type) for field in answer.to_arrow(errors=False).schema] == [
                "string",
                "int64",
                "int64",
                "int64",
            ]
