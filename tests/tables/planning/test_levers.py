"""What is said, and asked for, where an answer is expected to be mostly noise."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

import dither as dp
from dither.present.notes import Note, lever_words
from dither.tables.card.profile import NoisyHistogram
from dither.tables.planning.top_keys import keys_above
from support import each, refuses
from tables.planning.test_profiled import opened


@pytest.fixture(scope="module")
def table():
    with opened() as result:
        yield result


def noise_note(explained: dp.Explanation) -> Note | None:
    return next((note for note in explained.limitations if note.kind == "mostly_noise"), None)


def levers(note: Note) -> dict[str, dict]:
    return {lever["kind"]: lever for lever in note.values["levers"]}


def test_mostly_noise_is_forecast_with_what_would_be_better_and_asks_for_confirmation(table):
    sql = "SELECT town, k, AVG(x) AS a FROM t GROUP BY town, k"
    question = table.sql(sql)
    note = noise_note(question.explain(0.08))
    assert note is not None
    assert note.values["error"] > note.values["size"]
    known = levers(note)
    assert known["groups"]["error"] < note.values["size"]
    spent = table.left
    with refuses(dp.InvalidArgument, "± of a", "mostly noise", "force=True", lever_words(known["groups"])):
        question.release(0.08)
    assert table.left == spent
    assert question.release(0.08, force=True).cost == dp.PureDP(0.08)
    assert question.release(0.08).replayed, "what is recorded is given without being asked for"
    assert noise_note(question.explain(20)) is None


@each("sql", ["SELECT AVG(x) AS a FROM t", "SELECT town, STDDEV(x) AS a FROM t GROUP BY town"])
def test_more_epsilon_is_a_lever_and_keeps_what_it_says(sql, table):
    question = table.sql(sql)
    note = noise_note(question.explain(0.004))
    assert note is not None
    more = levers(note)["epsilon"]
    expected = question.plan(more["epsilon"]).parts[0].expected["a"]
    assert expected.typical / expected.answer == more["share"] <= 0.5


def test_a_condition_and_other_columns_are_levers(table):
    note = noise_note(table.sql("SELECT k, COUNT(*) AS n FROM t WHERE x > 90 GROUP BY k").explain(0.2))
    assert note is not None
    assert levers(note)["where"]["share"] < 0.5
    assert "without WHERE ± " in str(note)
    note = noise_note(table.sql("SELECT town, k, AVG(x) AS a FROM t GROUP BY town, k").explain(0.15))
    assert note is not None
    assert levers(note)["groups"]["columns"] == ["k"]


def test_one_good_answer_beside_a_noisy_one_is_no_reason_to_refuse(table):
    question = table.sql("SELECT town, k, COUNT(*) AS n, STDDEV(x) AS s FROM t GROUP BY town, k")
    note = noise_note(question.explain(0.1))
    assert note is not None
    assert not note.values["all"]
    assert question.release(0.1).cost == dp.PureDP(0.1)


def test_a_mean_near_zero_that_is_known_well_is_no_noise(table):
    item = table.sql("SELECT AVG(x) AS a FROM t").plan(50).parts[0].expected["a"]
    assert not item._replace(answer=0.0).is_mostly_noise
    assert item._replace(answer=0.0, typical=item.spread).is_mostly_noise


def test_without_a_profile_nothing_is_said():
    with opened(None) as plain:
        assert noise_note(plain.sql("SELECT town, k, AVG(x) AS a FROM t GROUP BY town, k").explain(0.01)) is None


def test_numbers_of_keys_fall_with_their_weight():
    edges = (0.0, 1.0, 2.0, 4.0, 8.0)
    layers = NoisyHistogram(edges, (10.0, 12.0, 14.0, -4.0), scale=1.0)
    assert [keys_above(layers, weight) for weight in (0.0, 1.5, 3.0, 7.0, 9.0)] == [11, 11, 7, 0, 0]
    assert keys_above(replace(layers, weights=(0.0, 0.0, 0.0, 40.0)), 0.5) == 7


@each("people", [0, 12])
def test_a_profile_of_a_few_people_plans_and_forecasts_without_failing(people):
    """It holds noise and nothing else, far beyond what it describes."""
    who = [i // 4 for i in range(4 * people)]
    rows = pa.table(
        {
            "who": pa.array(who, pa.int64()),
            "g": pa.array(["ab"[i % 2] for i in who], pa.string()),
            "x": pa.array([float(i % 9) for i in range(len(who))], pa.float64()),
        }
    )
    stated = {"unit": "who", "bounds": {"x": (0, 100)}, "keys": {"g": ["a", "b"]}, "budget": dp.PureDP(100)}
    with dp.open(rows, name="t", max_rows="auto", max_groups="auto", **stated) as few:
        few.profile(epsilon=0.01, force=True)
        for sql in (
            "SELECT g, AVG(x) AS a, COUNT(*) AS n FROM t GROUP BY g",
            "SELECT MEDIAN(x) AS a FROM t WHERE x > 3",
        ):
            explained = few.sql(sql).explain(0.1)
            assert "nan" not in str(explained)
            assert len(few.sql(sql).release(0.1, force=True)) == (2 if "GROUP" in sql else 1)
