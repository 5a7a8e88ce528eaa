"""A session: charge, then read, then record; refusals cost nothing; what was answered is answered again, for free."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.errors import BudgetExceeded, DataIncident, DitherError, InvalidArgument, InvalidData
from dither.tables.card.model import ColumnCard
from dither.tables.compile.limits import Limits
from dither.tables.compile.statements import bin_limits
from dither.tables.execute import run
from support import refuses
from tables.glass import glass
from tables.visits import COUNT, ROWS, card, entries, reads, spent

pytestmark = pytest.mark.slow


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
    assert "privately chosen" in str(question.explain(0.5, max_groups="auto"))
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


def test_the_row_of_other_groups_has_no_probability_of_a_mode():
    rows = pa.table({"who": range(400), "town": ["a"] * 399 + ["few"], "what": ["x", "y"] * 200})
    with dp.open(rows, unit="who", keys={"what": ["x", "y"]}, budget=dp.ApproxDP(100, 1e-3), delta=1e-9) as table:
        question = table.sql("SELECT town, MODE(what) AS m FROM data GROUP BY town")
        answer = question.release(epsilon=20, other=True, quantile_interval=True)
    assert (answer["town"], len(answer["m"])) == (["a", None], 2)
    assert answer["m"][1] is None
    assert answer.probabilities["m"][1] is None


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
        with refuses(BudgetExceeded, "nobody"):  # it would be noise alone, and that is public
            table.sql("SELECT COUNT(*) AS n FROM visits").release(2500)
        third = table.sql("SELECT COUNT(*) AS n FROM visits WHERE who >= 0").release(1900)
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
    one = 1 << bin_limits(Limits(1, 1)).bits()  # each of them adds this, less what is rounded down
    assert (len(paid) - 1) * one < seen.added[1][1].sum() <= len(paid) * one
