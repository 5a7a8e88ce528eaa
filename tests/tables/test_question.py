"""A session: charge, then read, then record; refusals cost nothing; what was answered is answered again, for free."""

from __future__ import annotations

import json
import math
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.errors import BudgetExceeded, DataIncident, DitherError, InvalidArgument, InvalidData
from dither.tables.card.model import Card, ColumnCard, PublicTable
from dither.tables.execute import run
from dither.tables.planning import calibrate
from support import refuses
from tables.glass import glass

pytestmark = pytest.mark.slow

ROWS = pa.table(
    {
        "who": pa.array([i % 400 for i in range(2000)] + [None] * 10, pa.int64()),
        "region": [("north", "south", "east")[i % 3] for i in range(2000)] + ["secret"] * 10,
        "amount": [float(i % 50) for i in range(2000)] + [math.nan] * 10,
        "age": [i % 90 for i in range(2000)] + [None] * 10,
    }
)
COUNT = "SELECT COUNT(*) AS n FROM visits"


def card(tmp_path, **more) -> Card:
    pq.write_table(ROWS, tmp_path / "visits.parquet")
    columns = {
        "who": ColumnCard("integer"),
        "region": ColumnCard("text"),
        "amount": ColumnCard("number", (0, 50)),
        "age": ColumnCard("integer", (0, 120)),
    }
    stated = {
        "columns": columns,
        "unit": "who",
        "max_groups": 3,
        "max_rows": 5,
        "ledger": str(tmp_path / "ledger.sqlite"),
        "budget": dp.ApproxDP(10, 1e-3),
        "delta": 1e-6,
    }
    return Card("visits", str(tmp_path / "visits.parquet"), **{**stated, **more})


@pytest.fixture
def visits(tmp_path):
    with dp.open(card(tmp_path)) as table:
        yield table


def reads(table, monkeypatch) -> list[str]:
    """Every statement that an engine is asked to run from now on."""
    seen: list[str] = []
    real = table.engine.run
    monkeypatch.setattr(table.engine, "run", lambda sql: seen.append(str(sql)) or real(sql))
    return seen


def spent(table) -> object:
    return [(account.name, account.kind, account.spent) for account in table.ledger.accounts()]


def entries(table) -> Counter:
    return Counter(entry.kind for entry in table.ledger.history())


def test_with_a_huge_epsilon_answers_are_exact(tmp_path):
    with dp.open(card(tmp_path, budget=dp.ApproxDP(4000, 0.1))) as table:
        answer = table.sql(
            "SELECT region, COUNT(*) AS n, COUNT(DISTINCT who) AS p, SUM(age) AS s, AVG(amount) AS m "
            "FROM visits WHERE age >= 30 GROUP BY region ORDER BY region"
        ).release(3000)
    kept = [row for row in ROWS.to_pylist() if row["who"] is not None and row["age"] >= 30]
    for name, n, p, s, m in answer.rows:
        mine = [row for row in kept if row["region"] == name]
        assert (n, p) == (len(mine), len({row["who"] for row in mine}))
        assert s == pytest.approx(sum(row["age"] for row in mine), abs=50)
        assert m == pytest.approx(sum(row["amount"] for row in mine) / len(mine), abs=0.1)
    assert answer["region"] == ["east", "north", "south"]  # nobody's rows are in no group


# -- nothing is read before it is paid for --------------------------------------------------------------------------


def test_explaining_reads_nothing_and_charges_nothing(visits, monkeypatch):
    before, seen = spent(visits), reads(visits, monkeypatch)
    question = visits.sql("SELECT region, COUNT(*) AS n, MEDIAN(age) AS m FROM visits GROUP BY region")
    stated = str(question.explain(0.5))
    assert "cost: (ε, δ) = (0.5, 1e-06)" in stated
    assert "groups: private" in stated
    assert "exponential mechanism" in stated
    assert "chosen privately" in str(question.explain(0.5, max_groups="auto"))
    question.plan(error=100)
    assert seen == []
    assert spent(visits) == before
    assert entries(visits) == {"open": 1} or sum(entries(visits).values()) == 1


def test_a_budget_exceeded_reads_nothing(visits, monkeypatch):
    before, seen = spent(visits), reads(visits, monkeypatch)
    for how in ({"epsilon": 10.1}, {"epsilon": 1, "delta": 1e-2, "noise": "gaussian"}):
        with refuses(BudgetExceeded):
            visits.sql(COUNT).release(**how)
    assert seen == []
    assert spent(visits) == before


def test_the_budget_can_be_spent_to_the_last_and_no_further(tmp_path):
    with dp.open(card(tmp_path, budget=dp.PureDP(1))) as table:
        for _ in range(10):
            table.sql(COUNT).release(0.1, again=True)
        assert table.left is None or str(table.left) == "ε = 0"
        with refuses(BudgetExceeded):
            table.sql(COUNT).release(1e-4, again=True)


REFUSED = {
    "a group of numbers": "SELECT amount, COUNT(*) FROM visits GROUP BY amount",
    "a number out of range": "SELECT COUNT(*) FROM visits WHERE amount > 1e200",
    "no SELECT": "DROP TABLE visits",
    "two statements": "SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM visits",
    "a path": "SELECT COUNT(*) FROM '/etc/passwd'",
    "a path in quotes": 'SELECT COUNT(*) FROM "visits.parquet"',
    "a function as table": "SELECT COUNT(*) FROM read_csv('/etc/passwd')",
    "rows": "SELECT * FROM visits",
    "no aggregate": "SELECT region FROM visits GROUP BY region",
    "no such column": "SELECT SUM(nosuch) FROM visits",
    "parentheses": "SELECT COUNT(*) FROM visits WHERE " + "(" * 10_000 + "age > 1" + ")" * 10_000,
    "nothing": "",
    "half a question": "SELECT COUNT(*) FROM",
    "NUL": "SELECT COUNT(*) FROM visits WHERE region = 'a\0'",
    "half a character": "SELECT COUNT(*) FROM visits WHERE region = '\ud800'",
}


@pytest.mark.parametrize("sql", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_asked_costs_nothing(visits, monkeypatch, sql):
    before, seen = spent(visits), reads(visits, monkeypatch)
    with refuses(DitherError):
        visits.sql(sql).release(1)
    assert seen == []
    assert spent(visits) == before


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"epsilon": 1, "error": 1},
        {"epsilon": 0},
        {"epsilon": math.nan},
        {"epsilon": "1"},
        {"epsilon": True},
        {"error": 0},
        {"error": -1},
        {"error": math.inf},
        {"error": 1e-9},
        {"epsilon": 1, "delta": 2},
        {"epsilon": 1, "max_groups": 0},
        {"epsilon": 1, "max_groups": "many"},
        {"epsilon": 1, "max_rows": 1.5},
        {"epsilon": 1, "noise": "none"},
        {"epsilon": 1, "key": ""},
        {"epsilon": 1, "key": "k" * 300},
        {"epsilon": 1, "analyst": ""},
        {"epsilon": 1, "analyst": "\udcff"},
    ],
    ids=str,
)
def test_nonsense_costs_nothing(visits, monkeypatch, how):
    before, seen = spent(visits), reads(visits, monkeypatch)
    with refuses(DitherError):
        visits.sql("SELECT region, COUNT(*) AS n FROM visits GROUP BY region").release(**how)
    assert seen == []
    assert spent(visits) == before


# -- the same question ----------------------------------------------------------------------------------------------


def test_the_same_question_has_the_same_answer_for_free(visits, monkeypatch):
    question = "SELECT region, COUNT(*) AS n, AVG(amount) AS m FROM visits GROUP BY region"
    first = visits.sql(question).release(1)
    left, seen = visits.left, reads(visits, monkeypatch)
    second = visits.sql(question).release(1)
    assert (first.replayed, second.replayed) == (False, True)
    assert second == first
    same, once = json.loads(second.to_json()), json.loads(first.to_json())
    assert (once.pop("replayed"), same.pop("replayed")) == (False, True)
    assert same == once
    assert second.to_csv() == first.to_csv()
    assert seen == []
    assert visits.left == left
    assert "recorded answer" in str(second)


def test_what_differs_is_paid_for(visits):
    question = visits.sql("SELECT region, SUM(age) AS s FROM visits GROUP BY region")
    stated = [
        question.release(0.5),
        question.release(0.4),
        question.release(0.5, again=True),
        question.release(0.5, key="mine"),
        question.release(0.5, analyst="somebody"),
        question.release(0.5, max_groups=1),
        question.release(0.5, max_groups="auto"),
        question.release(0.5, max_rows=1),
        question.release(0.5, noise="gaussian"),
        question.release(0.5, integer=True),
        question.release(0.5, other=True),
    ]
    assert not any(answer.replayed for answer in stated)
    assert len({answer.receipt for answer in stated}) == len(stated)
    assert entries(visits)["charge"] == len(stated)
    assert question.release(0.5, key="mine").replayed
    assert question.release(0.5, max_groups="auto").replayed


def test_a_key_is_for_one_request(visits):
    visits.sql(COUNT).release(1, key="k")
    before = spent(visits)
    with refuses(InvalidArgument, "key"):
        visits.sql(COUNT).release(0.5, key="k")
    with refuses(InvalidArgument, "key"):
        visits.sql("SELECT COUNT(*) AS m FROM visits").release(1, key="k")
    assert spent(visits) == before


def test_another_card_is_another_question(tmp_path):
    with dp.open(card(tmp_path)) as table:
        table.sql(COUNT).release(1)
    with dp.open(card(tmp_path)) as table:
        assert table.sql(COUNT).release(1).replayed
    with dp.open(card(tmp_path, max_rows=4)) as table:
        assert not table.sql(COUNT).release(1).replayed
        assert str(table.left) == "(ε, δ) = (8, 0.001)"


def test_a_new_version_of_the_data_is_asked_anew(tmp_path):
    for version, replayed in (("2026-01", False), ("2026-01", True), ("2026-02", False)):
        with dp.open(card(tmp_path, version=version)) as table:
            assert table.sql(COUNT).release(1).replayed is replayed


def test_each_analyst_has_a_budget(tmp_path):
    with dp.open(card(tmp_path, each_analyst=dp.PureDP(1))) as table:
        with refuses(InvalidArgument, "analyst"):
            table.sql(COUNT).release(0.5)
        table.sql(COUNT).release(1, analyst="a")
        with refuses(BudgetExceeded):
            table.sql(COUNT).release(0.1, analyst="a")
        assert table.sql(COUNT).release(1, analyst="a").replayed
        assert not table.sql(COUNT).release(1, analyst="b").replayed


# -- what goes wrong after the charge -------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, InvalidData("source: …"), MemoryError])
def test_what_fails_after_the_charge_stays_charged_and_is_paid_again(visits, monkeypatch, error):
    real = run.answer

    def fail(*_):
        raise error

    monkeypatch.setattr(run, "answer", fail)
    raised = KeyboardInterrupt if error is KeyboardInterrupt else DataIncident
    for left in (9, 8):
        with pytest.raises(raised):
            visits.sql(COUNT).release(1)
        assert str(visits.left) == f"(ε, δ) = ({left}, 0.001)"
    monkeypatch.setattr(run, "answer", real)
    answer = visits.sql(COUNT).release(1)
    assert not answer.replayed
    assert abs(answer["n"][0] - 2000) < 1000
    assert str(visits.left) == "(ε, δ) = (7, 0.001)"
    assert (entries(visits)["charge"], entries(visits)["answer"]) == (3, 1)
    assert visits.sql(COUNT).release(1).replayed
    assert visits.ledger.verify().entries


def test_a_file_that_is_gone_costs_nothing(tmp_path):
    with dp.open(card(tmp_path)) as table:
        before = spent(table)
        (tmp_path / "visits.parquet").unlink()
        with refuses(DitherError):
            table.sql(COUNT).release(1)
        assert spent(table) == before


def test_a_file_damaged_after_it_was_checked_is_an_incident(tmp_path, monkeypatch):
    with dp.open(card(tmp_path)) as table:
        monkeypatch.setattr(table.engine, "check", lambda: None)
        path = tmp_path / "visits.parquet"
        good = path.read_bytes()
        path.write_bytes(good[:4] + b"\xff" * (len(good) // 2) + good[4 + len(good) // 2 :])
        for left in (9, 8):
            with refuses(DataIncident) as caught:
                table.sql("SELECT SUM(age) AS s FROM visits").release(1)
            assert str(caught.value) == str(DataIncident())
            assert str(table.left) == f"(ε, δ) = ({left}, 0.001)"
        path.write_bytes(good)
        table.sql("SELECT SUM(age) AS s FROM visits").release(1)
        assert str(table.left) == "(ε, δ) = (7, 0.001)"


def test_a_source_that_is_not_there_leaves_nothing_open(tmp_path):
    stated = card(tmp_path)
    (tmp_path / "visits.parquet").unlink()
    with refuses(InvalidData, "no such file"):
        dp.open(stated)


# -- people ---------------------------------------------------------------------------------------------------------


def test_people_who_cannot_pay_are_left_out_before_anything_is_bounded(tmp_path):
    stated = card(tmp_path, budget=None, each_person=dp.PureDP(3000), max_rows=256)
    with dp.open(stated) as table:
        first = table.sql("SELECT COUNT(DISTINCT who) AS n FROM visits WHERE who < 100").release(2000)
        assert first["n"] == [100]
        second = table.sql("SELECT COUNT(DISTINCT who) AS n, COUNT(*) AS rows_ FROM visits").release(2000)
        assert second["n"] == [300]
        assert abs(second["rows_"][0] - 1500) < 20
        third = table.sql("SELECT COUNT(*) AS n FROM visits").release(2500)
        assert abs(third["n"][0]) < 20


def test_people_who_come_between_the_charge_and_the_answer_are_not_asked_about(tmp_path, monkeypatch):
    """Whoever did not pay is in no answer: a live table may gain rows in between."""
    stated = card(tmp_path, budget=None, each_person=dp.PureDP(3000), max_rows=256)
    more = pa.concat_tables([ROWS, ROWS.set_column(0, "who", pa.array([10_000 + i for i in range(2010)]))])
    with dp.open(stated) as table:
        real = table.ledger.charge

        def charge(*args, **kwargs):
            paid = real(*args, **kwargs)
            pq.write_table(more, tmp_path / "visits.parquet")
            return paid

        monkeypatch.setattr(table.ledger, "charge", charge)
        assert table.sql("SELECT COUNT(DISTINCT who) AS n FROM visits").release(2000)["n"] == [400]


def test_bounds_are_chosen_from_those_who_paid(tmp_path):
    """People outside the public keys are not asked about, do not pay, and so must not be looked at."""
    columns = {**card(tmp_path).columns, "region": ColumnCard("text", keys=("north",))}
    stated = card(tmp_path, columns=columns, budget=None, each_person=dp.PureDP(3000), max_rows=1, delta=None)
    with dp.open(stated) as table, glass() as seen:
        table.sql("SELECT COUNT(*) AS n FROM visits WHERE who >= 100").release(2900)
        question = table.group_by("region").agg(m=dp.mean("age", bounds="auto"))
        question.release(200)
    rows = ROWS.to_pylist()
    paid = {row["who"] for row in rows if row["region"] == "north" and row["who"] is not None and row["who"] < 100}
    assert seen.added[1][1].sum() == len(paid)


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


# -- opening --------------------------------------------------------------------------------------------------------


def frame(**more):
    stated = {"unit": "who", "budget": dp.ApproxDP(1000, 0.1), "bounds": {"amount": (0, 50)}, "delta": 1e-6, **more}
    return dp.open(ROWS, **stated)


@pytest.mark.parametrize(
    ("how", "match"),
    [
        ({"unit": "amount"}, "whole numbers or text"),
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
        assert all(isinstance(value, (int, float)) and math.isfinite(value) for value in answer.rows[0])
        private = table.sql("SELECT region, COUNT(*) AS n FROM data GROUP BY region").release(1, delta=1e-9)
        assert len(private) == 0
        assert private.to_pandas().shape == (0, 3)


def test_columns_of_nothing_but_null_and_nan(tmp_path):
    data = pa.table({"who": [1, 2], "x": pa.array([None, None], pa.float64()), "y": [math.nan, math.inf]})
    with dp.open(data, unit="who", budget=dp.PureDP(2000), bounds={"x": (0, 10), "y": (0, 10)}) as table:
        answer = table.agg(x=dp.mean("x"), n=dp.count("x"), y=dp.count("y"), m=dp.mean("y")).release(1000)
    assert (answer["n"], answer["y"]) == ([0], [1])
    assert answer["x"] == [5.0]
    assert answer["m"][0] == pytest.approx(10, abs=0.2)


def test_a_csv_file_with_a_header_only(tmp_path):
    (tmp_path / "empty.csv").write_text("who,age\n")
    columns = {"who": ColumnCard("text"), "age": ColumnCard("integer", (0, 99))}
    stated = Card("t", str(tmp_path / "empty.csv"), columns, "who", ledger=str(tmp_path / "l"), budget=dp.PureDP(100))
    with dp.open(stated) as table:
        assert abs(table.sql("SELECT SUM(age) AS s FROM t").release(99)["s"][0]) < 100


# -- accuracy first -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [0.5, 3, 20, 1000, 12_345.6])
@pytest.mark.parametrize("sql", [COUNT, "SELECT COUNT(*) AS n, SUM(amount) AS s, AVG(age) AS a FROM visits"])
def test_an_error_is_reached_and_not_by_much(visits, error, sql):
    plan = visits.sql(sql).plan(error=error)
    widths = calibrate.widths(plan)
    assert max(widths) <= error
    spent = float(plan.guarantee.exact[0])
    if error >= 100:
        assert max(widths) >= 0.99 * error
    less = visits.sql(sql).plan(spent * 0.98)
    assert max(calibrate.widths(less)) > error or error < 1


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
    assert len(visits.sql("SELECT who, COUNT(*) AS n FROM visits GROUP BY who").release(1)) == 0


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
            assert answer.types == ("text", "integer", "integer", "number")
            assert len(answer) == min(size, 1)
            assert [str(field.type) for field in answer.to_arrow(errors=False).schema] == [
                "string",
                "int64",
                "int64",
                "double",
            ]
