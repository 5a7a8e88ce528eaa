"""What is chosen privately: bounds, and how many rows and groups of a person count."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import dither as dp
from dither.errors import DitherError
from dither.guarantees import ApproxDP, PureDP
from dither.tables.compile.queries import DialectSql
from dither.tables.options import ReleaseOptions
from dither.tables.planning import automatic, automatic_bounds
from dither.tables.planning.best_limit import EDGES, BestLimit
from dither.tables.planning.calibrate import plan_after_choices, plan_question
from dither.tables.query.tree import Aggregate, Call, Column, Group, Literal, Query
from support import each, refuses
from tables.glass import glass

ROWS = pa.table(
    {
        "who": [i // 3 for i in range(6000)],
        "town": [f"t{i % 3}" for i in range(6000)],
        "x": [100.0 + i % 300 for i in range(6000)],
        "zero": [0] * 6000,
        "big": [-5_000_000 + i for i in range(6000)],
    }
)


@pytest.fixture(autouse=True)
def sure(monkeypatch):
    """No test here fails by chance."""
    monkeypatch.setattr(automatic_bounds, "CONFIDENCE", 1 - 1e-11)
    monkeypatch.setattr(automatic_bounds, "NEXT_CONFIDENCE", 1 - 1e-11)


@pytest.fixture
def table():
    with dp.open(ROWS, unit="who", budget=dp.ApproxDP(4000, 0.1), delta=1e-6, max_rows=3) as result:
        yield result


def test_bounds_hold_the_values(table):
    result = table.agg(m=dp.mean("x", bounds="auto"), b=dp.mean("big", bounds="auto")).release(100)
    assert result["m"][0] == pytest.approx(249.5, abs=5)
    assert result["b"][0] == pytest.approx(-4_997_000, rel=0.01)
    assert [note for note in result.notes if "bounds of m = (64, 512)" in note]
    assert [note for note in result.notes if "bounds of b = (-8.38861e+06, -4.1943e+06)" in note]


def test_a_note_says_that_values_beyond_the_bounds_are_held_within(table):
    plain = table.agg(m=dp.mean("x", bounds="auto")).release(100)
    sql = "SELECT AVG(total) AS m FROM (SELECT who, COUNT(*) AS total FROM data GROUP BY who) AS p"
    with dp.open(ROWS, unit="who", budget=dp.PureDP(100), max_rows="auto") as without_limit:
        of_a_relation = without_limit.sql(sql).release(epsilon=100)
    for answer in (plain, of_a_relation):
        (note,) = [note for note in answer.notes if "bounds of m = " in note]
        assert "values beyond them count as the nearer bound, so m may be off by more than its ±" in note


@pytest.mark.parametrize(("next_confidence", "highest"), [(0.8, 256), (1 - 1e-11, 128)])
def test_few_large_values_next_to_many_are_within_the_bounds(table, monkeypatch, next_confidence, highest):
    """A tail is less than noise might show in some bin, and more than it shows in the next; far away it is ignored."""
    place = automatic_bounds.MAGNITUDES.index(64.0)
    noisy = np.zeros(len(automatic_bounds.MAGNITUDES) - 1, dtype=np.int64)
    noisy[[place, place + 1, place + 9]] = 3940, 10, 10
    mechanism = dp.Laplace(1, 1)
    monkeypatch.setattr(automatic, "_noisy", lambda *_: (noisy, mechanism))
    monkeypatch.setattr(automatic_bounds, "NEXT_CONFIDENCE", next_confidence)
    answer = table.agg(m=dp.mean("x", bounds="auto")).release(1)
    assert f"bounds of m = (64, {highest})," in answer.notes[-1]


def test_bounds_of_whole_numbers_are_whole_and_apart(table):
    """All values 0: the powers of two next to it are 0 and 2^-20, and no whole number lies between."""
    result = table.agg(m=dp.mean("zero", bounds="auto")).release(100)
    assert "bounds of m = (0, 1)" in result.notes[-1]
    assert result["m"][0] == pytest.approx(0, abs=0.1)


def test_enough_groups_are_chosen(table):
    result = table.group_by("town").agg(n=dp.people()).release(100, max_groups="auto")
    assert any("max_groups = 3" in note for note in result.notes)
    assert result["n"] == pytest.approx([2000] * 3, abs=20)


def test_a_row_is_in_one_group():
    """Without a unit there is nothing to choose, and nothing to pay for it."""
    with dp.open(ROWS, budget=dp.ApproxDP(100, 0.1), delta=1e-6) as table:
        plan = table.group_by("town").agg(n=dp.count()).plan(1, max_groups="auto")
        assert plan.automatic == {}
        result = table.group_by("town").agg(s=dp.mean("x", bounds="auto")).release(50, max_groups="auto")
        assert len([note for note in result.notes if "chosen privately" in note]) == 1
        assert result["s"] == pytest.approx([248.5, 249.5, 250.5], abs=5)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_choices_are_part_of_what_is_charged(delta):
    """Everything that reaches a mechanism, choices included, costs no more than the charge."""
    keys = {"town": ["t0", "t1", "t2"]}
    with dp.open(ROWS, unit="who", budget=dp.ApproxDP(100, 0.1), keys=keys, max_rows=3) as table:
        question = table.group_by("town").agg(m=dp.mean("x", bounds="auto"), n=dp.count())
        plan = question.plan(1, delta=delta, max_groups="auto", noise="laplace")
        assert plan.guarantee == PureDP(1)
        assert plan.automatic == {"max_groups": Fraction(1, 10), "bounds of m": Fraction(1, 20)}
        with glass() as seen:
            question.release(1, delta=delta, max_groups="auto", noise="laplace")
        # histograms, the last of which looks for bounds again, then the groups: one vector of three parts
        choices, vectors = seen.added[:3], seen.added[3:]
        assert [values.ndim for _, values in vectors] == [1]
        spent = sum(Fraction(mechanism.epsilon) for mechanism, _ in [*choices, *vectors])
        assert Fraction(99, 100) < spent <= 1
        sizes, magnitudes = choices[0][1], choices[1][1]
        assert sizes.tolist()[:4] == [0, 0, 2000, 0]
        assert (sizes.sum(), choices[0][0].sensitivity) == (2000, 1)
        assert magnitudes.sum() <= 2000 << 10  # a row of each person, in units of 2^-10
        assert choices[1][0].sensitivity == choices[2][0].sensitivity == 1 << 10
        assert choices[2][1].tolist() == magnitudes.tolist()


def test_bounds_of_an_expression_can_be_chosen():
    query = Query({"m": Aggregate("mean", Call("+", (Column("x"), Literal(1))), bounds="auto")})
    assert automatic.unstated_limits(query, 1, 1, private=False) == {"bounds of m": Fraction(1, 20)}
    both = Query({"m": Aggregate("mean", Column("x"), bounds="auto")}, (Group("town", Column("town")),))
    assert automatic.with_provisional_bounds(both).aggregates["m"].bounds == (0.0, 1.0)


def test_nothing_at_all_is_no_error():
    with dp.open(ROWS.slice(0, 0), unit="who", budget=dp.ApproxDP(100, 0.1), delta=1e-6) as table:
        result = table.group_by("town").agg(m=dp.mean("x", bounds="auto")).release(1, max_groups="auto")
        assert len(result) == 0


def test_without_enough_values_there_are_no_bounds_and_no_answer():
    """What noise alone would show is no reason for bounds: the answer is NULL, and says why."""
    few = pa.table({"who": [1, 2, 3], "x": [100.0, 200.0, 300.0]})
    with dp.open(few, unit="who", budget=dp.PureDP(10)) as table:
        result = table.agg(m=dp.mean("x", bounds="auto"), n=dp.count()).release(0.5)
        assert result["m"] == [None]
        assert result.error("m") == [None]
        assert isinstance(result["n"][0], int)
        assert [note for note in result.notes if "no bounds of m could be found" in note]


def test_the_noise_that_was_asked_for_is_part_of_what_is_recorded(table):
    question = table.group_by("town").agg(n=dp.people())
    assert not question.release(1, max_groups="auto").replayed
    assert not question.release(1, max_groups="auto", noise="laplace").replayed
    assert question.release(1, max_groups="auto", noise="laplace").replayed


TENTH, TWENTIETH = Fraction(1, 10), Fraction(1, 20)
TOWN = (Group("town", Column("town")),)
COUNT, PEOPLE = Aggregate("count"), Aggregate("people")
MEAN = Aggregate("mean", Column("x"), bounds="auto")


@pytest.mark.parametrize(
    ("query", "max_groups", "max_rows", "private", "paid"),
    [
        (Query({"n": COUNT}), 1, 1, False, {}),
        (Query({"n": COUNT}), "auto", "auto", False, {"max_rows": TENTH}),
        (Query({"n": COUNT}), "auto", 5, False, {}),  # there are no groups to choose among
        (Query({"n": COUNT}, TOWN), "auto", "auto", False, {"max_rows": TENTH}),  # one weight is for all groups
        (Query({"n": COUNT}, TOWN), "auto", 5, False, {"max_groups": TENTH}),
        (Query({"n": COUNT}, TOWN), 2, "auto", False, {"max_rows": TENTH}),
        (Query({"n": COUNT}, TOWN), "auto", "auto", True, {"max_rows": TENTH, "max_groups": TENTH}),
        (Query({"n": PEOPLE}, TOWN), "auto", "auto", False, {"max_groups": TENTH}),
        (Query({"n": PEOPLE}), "auto", "auto", False, {}),
        (Query({"n": PEOPLE, "c": COUNT}, TOWN), "auto", "auto", False, {"max_rows": TENTH, "max_groups": TENTH}),
        (Query({"m": MEAN}, TOWN), 1, 1, False, {"bounds of m": TWENTIETH}),
        (Query({"m": MEAN}, TOWN), "auto", 1, False, {"max_groups": TENTH, "bounds of m": TWENTIETH}),
    ],
)
def test_a_histogram_is_paid_for_where_it_is_needed(query, max_groups, max_rows, private, paid):
    assert automatic.unstated_limits(query, max_groups, max_rows, private) == paid


# -- the limits that are chosen -----------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [{"town": ["t0", "t1", "t2"]}, {}], ids=["public", "private"])
def test_limits_of_neighbors_that_show_the_same_histogram_are_the_same(keys, monkeypatch):
    """Replayed: with the released histogram of one table, its neighbor is asked about with the same limits."""
    shown = []
    original = automatic.noisy_histogram

    def replayed(lines, epsilon):
        shown.append(original(lines, epsilon))
        return shown[(len(shown) - 1) % (1 if keys else 2)]

    monkeypatch.setattr(automatic, "noisy_histogram", replayed)
    notes = []
    for rows in (ROWS, ROWS.filter(pc.not_equal(ROWS["who"], 5))):
        with dp.open(rows, unit="who", budget=dp.ApproxDP(100, 0.1), delta=1e-6, keys=keys) as table:
            question = table.group_by("town").agg(n=dp.count())
            answer = question.release(1, max_rows="auto", max_groups="auto")
            notes.append([note for note in answer.notes if "chosen privately" in note])
    assert notes[0] == notes[1] != []


def test_both_limits_with_private_keys_fit_together():
    """A person has at least one row in each group, so there are never more groups than rows."""
    people = np.random.default_rng().integers(1, 6, 4000)
    who = np.repeat(np.arange(4000), people)
    rows = pa.table(
        {"who": who, "town": [f"t{number}" for number in np.random.default_rng().integers(0, 60, len(who))]}
    )
    with dp.open(rows, unit="who", budget=dp.ApproxDP(100, 0.1), delta=1e-6) as table:
        answer = table.group_by("town").agg(n=dp.count()).release(2, max_rows="auto", max_groups="auto")
    groups, total = (
        int(re.search(pattern, "\n".join(answer.notes)).group(1).replace(",", ""))
        for pattern in (r"max_groups = (\d+)", r"at most ([\d,]+) rows, chosen")
    )
    assert 2 <= groups <= 10
    assert groups <= total <= 20
    assert len(answer["n"]) == pytest.approx(60, abs=6)


def test_bounds_far_from_zero_are_no_reason_to_refuse_after_the_charge():
    """Whatever limit is chosen, a grid fits; where none could, the question is refused before anything is paid."""
    rows = pa.table({"who": list(range(300)) * 20, "x": [100.5, 100.6, 100.7] * 2000})
    with dp.open(rows, unit="who", budget=dp.PureDP(10), bounds={"x": (100, 101)}) as table:
        answer = table.agg(s=dp.sum("x")).release(1, max_rows="auto")
        assert answer["s"][0] == pytest.approx(603_600, rel=0.3)
        assert "that of a sum may be smaller or larger" in answer.notes[-1]
    with dp.open(rows, unit="who", budget=dp.PureDP(10), bounds={"x": (1e12, 1e12 + 1e-3)}) as table:
        left = table.left
        with refuses(DitherError, "bounds"):
            table.agg(s=dp.sum("x")).release(1, max_rows="auto")
        assert table.left == left


@pytest.mark.parametrize(("max_groups", "max_rows"), [(3, "auto"), ("auto", 3)])
def test_the_largest_limits_that_can_be_chosen_are_planned(max_groups, max_rows, monkeypatch):
    """The most that one person may count for, divided by the limit that is stated: no refusal after the charge."""
    largest = BestLimit(EDGES[-1], 1.0)
    monkeypatch.setattr(automatic, "best_limit", lambda *_: largest)
    with dp.open(ROWS, unit="who", budget=dp.ApproxDP(100, 0.1), delta=1e-6, bounds={"x": (0, 400)}) as table:
        question = table.group_by("town").agg(n=dp.count(), v=dp.var("x"))
        options = ReleaseOptions(epsilon=1, max_groups=max_groups, max_rows=max_rows)
        planned = plan_question(question.query, table.card, options)
        context = planned.frame(DialectSql("duckdb"), {"": table.engine.table}, 1)
        # of very many people even keys of few of them are shown, whatever the number of groups
        choices = automatic.choose_limits(planned, question.query, context, lambda _: [(0, 10**12)])
        limits = plan_after_choices(planned, choices, options).limits
        assert (1 << 19) < limits.groups * limits.rows <= 1 << 20


def test_the_number_of_groups_leaves_keys_to_be_shown():
    """Where keys are private, more groups for each person mean that keys need more people to be shown."""
    rows = pa.table({"who": [i // 20 for i in range(40_000)], "shop": [f"s{i % 20}" for i in range(40_000)]})
    with dp.open(rows, unit="who", budget=dp.ApproxDP(100, 0.1), delta=1e-6, max_groups="auto", max_rows=1) as table:
        answer = table.group_by("shop").agg(n=dp.count()).release(1)
    assert len(answer) >= 15  # each shop has all 2,000 people


@each("noise", ["best", "laplace", "gaussian"])
@each("limits", [{"max_rows": "auto"}, {"max_groups": "auto"}, {"bounds": "auto"}])
@each("groups", [3, 20])
def test_a_delta_is_charged_only_where_noise_may_need_it_and_the_plan_says_so(noise, limits, groups):
    """Whatever is chosen later, a plan that is charged no delta never has noise that needs one."""
    keys = {"town": [f"t{i}" for i in range(groups)]}
    options = {name: value for name, value in limits.items() if name != "bounds"}
    with dp.open(ROWS, unit="who", budget=dp.ApproxDP(100, 0.1), keys=keys, max_rows=3, delta=1e-6) as table:
        value = dp.mean("x", bounds="auto") if "bounds" in limits else dp.people()
        question = table.group_by("town").agg(n=dp.count(), m=value)
        plan = question.plan(1, noise=noise, **options)
        needed = noise == "gaussian" or (noise == "best" and (limits != {"max_rows": "auto"} or groups >= 16))
        assert isinstance(plan.guarantee, ApproxDP) == needed
        assert ("normal noise" in str(question.explain(1, noise=noise, **options))) == needed
        for many in (1, 3, 400):
            choices = automatic.stand_in(plan)
            chosen = choices._replace(
                max_groups=None if choices.max_groups is None else min(many, groups),
                max_rows=None if choices.max_rows is None else many,
            )
            after = plan_after_choices(plan, chosen, ReleaseOptions(epsilon=1, noise=noise, **options))
            assert needed or isinstance(after.guarantee, PureDP)


def test_a_limit_that_was_chosen_is_stated_once():
    bounds = {"x": (0, 1000)}
    with dp.open(ROWS, unit="who", budget=dp.PureDP(100), bounds=bounds, max_rows="auto") as table:
        for aggregates in ({"m": dp.mean("x")}, {"m": dp.mean("x"), "n": dp.count()}):
            notes = table.agg(**aggregates).release(epsilon=20).notes
            assert len([note for note in notes if "each person counts for at most" in note]) == 1
            assert any("lean toward people with few rows" in note for note in notes)


def test_an_answer_that_was_charged_a_delta_which_nothing_needed_is_given_again(monkeypatch):
    keys = {"town": ["t0", "t1", "t2"]}
    with dp.open(ROWS, unit="who", budget=dp.ApproxDP(100, 0.1), keys=keys, max_rows="auto", delta=1e-6) as table:
        question = table.group_by("town").agg(n=dp.count())
        with monkeypatch.context() as before:
            before.setattr("dither.tables.planning.calibrate._Aggregation._may_choose_normal_noise", lambda _: True)
            charged = question.release(epsilon=1)
        assert charged.cost == "(ε, δ) = (1, 1e-06)"
        again = question.release(epsilon=1)
        assert again.replayed
        assert (again.rows, again.cost) == (charged.rows, charged.cost)
        assert question.release(epsilon=2).cost == "ε = 2"
