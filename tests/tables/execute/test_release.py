"""What the limits on one person's rows leave out is learned privately, paid for, recorded and shown.

Where each person has a budget, explanations and answers say who may be missing, from public figures alone.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.guarantees import stored
from dither.present.notes import Note
from dither.tables.planning.automatic import SHARES
from support import noted, refuses

PEOPLE = 2000
SIZES = [min(300, int(3 * (PEOPLE / (i + 1)) ** 0.5)) for i in range(PEOPLE)]
"""How many rows each person has: 3 or more, some of them many more."""
TRUTH = sum(SIZES)
LEFT_OUT = sum(size - 3 for size in SIZES) / TRUTH
"""The share of the rows that is left out if at most 3 rows of a person count."""


def rows() -> pa.Table:
    who = [i for i in range(PEOPLE) for _ in range(SIZES[i])]
    return pa.table({"who": who, "region": ["a" if i % 2 else "b" for i in who], "x": [1.0] * len(who)})


@pytest.fixture(scope="module")
def table():
    budget = dp.ApproxDP(4000, 1e-3)
    with dp.open(rows(), unit="who", keys={"region": ["a", "b"]}, bounds={"x": (0, 1)}, budget=budget) as result:
        yield result


def covered(answer: dp.Answer, name: str, truth: float) -> bool:
    """Whether a truth is within eight times the stated widths, each of which is exceeded with a probability of 0.05 at
    most: under Laplace noise eight times as much is exceeded with 0.05^8 = 4e-11, and under normal noise with less."""
    (value,), (error,), (undercount,) = answer[name], answer.error(name), answer.undercount(name)
    assert error is not None
    assert undercount is not None
    high = undercount[2] or 0.0
    share = 1 + undercount[1] / value  # what is left out is stated in proportion to the value
    least, most = value - 8 * error, value + 8 * error
    return least * share <= truth <= most + (math.inf if undercount[2] is None else high * most / value)


def test_stated_limits_can_be_asked_what_they_leave_out(table):
    question = table.sql("SELECT COUNT(*) AS n, COUNT(x) AS v, SUM(x) AS s, AVG(x) AS m FROM data")
    answer = question.release(200, max_rows=3, bias=True)
    assert set(answer.clipped_share) == {"n"}  # of the values in these rows nothing was learned
    share, low, high = answer.clipped_share["n"]
    assert share == low <= LEFT_OUT < high == 1
    assert share > 0.7 * LEFT_OUT
    assert covered(answer, "n", TRUTH)
    assert [(values["of"], values["epsilon"]) for values in noted(answer, "left_out")] == [("rows", 10)]
    assert noted(answer, "undercount_share") == [{"of": "rows", "of_parts": ["sum"]}]
    alone = table.sql("SELECT COUNT(*) AS n FROM data").release(200, max_rows=3, bias=True)
    assert noted(alone, "undercount_beside")
    assert not noted(answer, "undercount_unknown")


def test_learning_it_is_part_of_the_cost_and_not_on_top(table):
    question = table.sql("SELECT COUNT(*) AS n FROM data")
    [plan], [without] = (question.plan(1, max_rows=3, bias=bias).parts for bias in (True, False))
    assert plan.guarantee == without.guarantee == dp.PureDP(1)
    assert plan.automatic == {"bias": SHARES["bias"]}
    [noise], [noise_without] = plan.measures.values(), without.measures.values()
    assert noise.guarantee.exact[0] + SHARES["bias"] <= 1
    assert noise_without.guarantee.exact[0] > 1 - Fraction(1, 1000)


def test_it_is_recorded_with_the_answer_and_found_again(table):
    question = table.sql("SELECT region, COUNT(*) AS n FROM data GROUP BY region")
    answer = question.release(2, max_rows=3, bias=True)
    again = question.release(2, max_rows=3, bias=True)
    assert again.replayed
    assert again == answer
    assert again.clipped_share == answer.clipped_share != {}
    other = question.release(2, max_rows=3)
    assert not other.replayed
    assert other.clipped_share == {}
    assert noted(other, "undercount_unknown")


def test_limits_say_what_they_leave_out_of_all_groups_together(table):
    asked = table.sql("SELECT region, COUNT(*) AS n FROM data GROUP BY region")
    assert asked.release(4, max_rows="auto").clipped_share == {}  # it is in the answer
    answer = asked.release(4, max_rows=50, bias=True)
    assert set(answer.clipped_share) == {"n"}
    content = json.loads(answer.to_json())
    assert content["left_out"]["n"]["high"] == 1
    assert set(content["rows"][0]) == {"region", "n", "n_error"}
    assert "The share stated is of all rows; that of a group may differ." in answer.text(verbose=True)
    page = dp.present.html(answer)
    assert "for all groups together" in page
    assert "low by" not in page


def test_nothing_is_said_of_a_group_from_which_nothing_is_left_out():
    """Everybody who has many rows has them in one group: of the other one, a share of all rows would be untrue."""
    who = [*range(2000), *(i for i in range(2000, 3000) for _ in range(50))]
    data = pa.table({"who": who, "region": ["light"] * 2000 + ["heavy"] * 50_000})
    with dp.open(data, unit="who", keys={"region": ["light", "heavy"]}, budget=dp.PureDP(1000)) as table:
        question = table.sql("SELECT region, COUNT(*) AS n FROM data GROUP BY region")
        answer = question.release(200, max_rows=1, bias=True)
        assert 0.9 < answer.clipped_share["n"][0] <= 0.95
        assert answer["n"] == pytest.approx([2000, 1000], abs=3)
        assert answer.undercount("n") == [None, None]
        assert "low by" not in str(answer)
        of_sql = f"WITH g AS ({question.text}) SELECT n + 1000000 AS n FROM g"
        assert table.sql(of_sql).release(200, max_rows=1, bias=True).clipped_share == {}


def test_learning_works_beside_limits_that_are_chosen_privately():
    """Of which groups of a person are left out nothing is known where max_groups is stated, whatever max_rows is."""
    data = pa.table({"who": [i for i in range(3000) for _ in "abcd"], "region": [*"abcd"] * 3000})
    with dp.open(data, unit="who", budget=dp.ApproxDP(4000, 1e-3), delta=1e-6) as people:
        question = people.sql("SELECT region, COUNT(*) AS n FROM data GROUP BY region")
        assert set(question.plan(200, max_groups=2, max_rows="auto", bias=True).parts[0].automatic) == {
            "max_rows",
            "bias",
        }
        learned = question.release(200, max_groups=2, max_rows="auto", bias=True)
        assert [values["of"] for values in noted(learned, "left_out")] == ["rows", "groups"]
        assert not noted(learned, "undercount_unknown")
        assert set(learned.clipped_share) == {"n"}
        nothing = {"max_groups": "auto", "max_rows": "auto", "bias": True}
        assert "bias" not in question.plan(200, **nothing).parts[0].automatic
        for said in (question.explain(200, **nothing), question.release(200, **nothing)):
            assert noted(said, "bias_unused") == [{"reason": "limits_chosen"}]


def test_people_who_are_counted_in_fewer_groups(table):
    data = pa.table({"who": [i for i in range(3000) for _ in "ab"], "region": ["a", "b"] * 3000})
    with dp.open(data, unit="who", keys={"region": ["a", "b"]}, budget=dp.PureDP(1000)) as people:
        question = people.sql("SELECT region, COUNT(DISTINCT who) AS n FROM data GROUP BY region")
        answer = question.release(200, max_groups=1, bias=True)
        assert answer.clipped_share["n"][0] == pytest.approx(0.5, abs=0.05)
        assert question.release(200, max_groups=2, bias=True).clipped_share["n"][0] == pytest.approx(0, abs=0.02)


def test_where_nothing_can_be_left_out_nothing_is_spent():
    with dp.open(rows(), budget=dp.PureDP(10)) as table:
        question = table.agg(n=dp.count())
        assert question.plan(1, bias=True).parts[0].automatic == {}
        assert question.release(1, bias=True).clipped_share == {}
    with dp.open(rows(), unit="who", budget=dp.PureDP(10)) as table:
        assert table.sql("SELECT COUNT(DISTINCT who) AS n FROM data").plan(1, bias=True).parts[0].automatic == {}
        assert list(table.agg(n=dp.count()).plan(1, bias=True, max_rows="auto").parts[0].automatic) == ["max_rows"]


def test_an_error_may_be_a_percentage_of_the_rows_that_are_public():
    with dp.open(rows(), budget=dp.PureDP(10), keys={"region": ["a", "b"]}, bounds={"x": (0, 1)}, rows=12_000) as table:
        assert table.agg(n=dp.count()).explain(error="1%").lines[0]["error"] == pytest.approx(120, rel=0.02)
        grouped = table.group_by("region").agg(n=dp.count(), s=dp.sum("x"), h=dp.histogram("x", [0, 0.5, 1]))
        widths = {line["answer"]: line["error"] for line in grouped.explain(error="1%").lines}
        assert widths["n"] <= 60
        assert widths["s"] <= 30
        assert widths["h"] <= 30
    with dp.open(rows(), budget=dp.PureDP(10)) as table, refuses(dp.InvalidArgument, "error", "rows = "):
        table.agg(n=dp.count()).explain(error="1%")
    question = "SELECT COUNT(DISTINCT who) AS n FROM data"
    with (
        dp.open(rows(), unit="who", budget=dp.PureDP(10), rows=12_000) as table,
        refuses(dp.InvalidArgument, "error", "counts people"),
    ):
        table.sql(question).explain(error="1%")


def test_an_error_that_leaves_no_room_for_noise_is_refused():
    with dp.open(rows(), budget=dp.PureDP(100), rows=50) as table:
        for error in (0.4, 0.99, "1%"):
            with refuses(dp.InvalidArgument, "error", "room for noise"):
                table.agg(n=dp.count()).explain(error=error)
        assert table.agg(n=dp.count()).explain(error=1).lines[0]["error"] == 1


def test_groups_that_are_not_public_are_left_out_with_their_rows():
    data = pa.table({"who": [i for i in range(3000) for _ in "abcd"], "region": [*"abcd"] * 3000})
    with dp.open(data, unit="who", budget=dp.ApproxDP(4000, 1e-3), delta=1e-6) as people:
        question = people.sql("SELECT region, COUNT(*) AS n FROM data GROUP BY region")
        stated = question.release(200, max_groups=2, bias=True)
        assert len(stated) == 4
        assert 0.45 < stated.clipped_share["n"][0] <= 0.5
        # which two groups count is drawn: Binomial(3000, 1/2), beyond 6.6 deviations in 4e-11
        assert stated["n"] == pytest.approx([1500] * 4, abs=200)
        assert 0 <= question.release(200, max_groups="auto", max_rows="auto").clipped_share["n"][1] < 1
        unknown = question.release(200, max_groups=2, max_rows="auto")  # of people's groups nothing was learned
        assert unknown.clipped_share == {}
        assert noted(unknown, "undercount_unknown")


CARD = """
name = "visits"
source = "visits.parquet"
unit = "who"
ledger = "visits.ledger"
[budget]
epsilon = 1
{per}
[columns.who]
type = "integer"
[columns.age]
type = "integer"
bounds = [0, 100]
"""
COST = {"cost": stored(dp.PureDP(0.6))}


@pytest.fixture
def opened(tmp_path):
    pq.write_table(pa.table({"who": list(range(50)), "age": [30] * 50}), tmp_path / "visits.parquet")

    def open_with(per: str):
        (tmp_path / "visits.toml").write_text(CARD.format(per=per))
        return dp.open(tmp_path / "visits.toml")

    return open_with


def test_the_sum_of_what_was_asked_says_who_is_missing(opened):
    with opened('per = "person"') as table:
        question = table.sql("SELECT COUNT(*) AS n FROM visits WHERE age >= 0")  # whom it is about is private
        everybody = Note("people_without_budget", {**COST, "state": "everybody"})
        assert everybody in question.explain(0.6).limitations
        assert everybody in question.release(0.6).notes
        spent = {"state": "not_all", "spent": stored(dp.PureDP(0.6)), "left": stored(dp.PureDP(0.4))}
        missing = Note("people_without_budget", {**COST, **spent})
        with refuses(dp.BudgetExceeded, "got nobody"):  # of the same rows everybody was in the first one
            question.release(0.6, again=True)
        question = table.sql("SELECT COUNT(*) AS n FROM visits WHERE age >= 1")
        assert missing in question.explain(0.6).limitations
        second = question.release(0.6)
        assert missing in second.notes
        assert "People with less than ε = 0.6 left are not counted; how many is private." in str(second)
        assert "Questions so far cost ε = 0.6; people in all of them have ε = 0.4 left." in str(second)
        [nobody] = noted(question.explain(0.6), "people_without_budget")
        assert (nobody["state"], nobody["spent"]) == ("nobody", stored(dp.PureDP(1.2)))
        assert question.release(0.6).replayed
        first = table.sql("SELECT COUNT(*) AS n FROM visits WHERE age >= 0").release(0.6)
        assert first.replayed
        assert everybody in first.notes


def test_a_budget_of_the_table_leaves_nobody_out(opened):
    with opened("") as table:
        question = table.sql("SELECT COUNT(*) AS n FROM visits")
        for said in (question.explain(0.6), question.release(0.6)):
            assert not noted(said, "people_without_budget")
