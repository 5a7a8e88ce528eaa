"""The largest groups by keys that are not public: what may be shown, against enumeration, and what is found."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

import mpmath as mp
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dither as dp
from dither.audit.dataflow.distance import input_change
from dither.mechanisms import Gaussian, Laplace
from dither.tables.card.model import Card, ColumnCard
from dither.tables.card.profile import NoisyHistogram
from dither.tables.compile import statements
from dither.tables.compile.context import StatementContext
from dither.tables.compile.limits import Limits
from dither.tables.compile.statements import key_bits
from dither.tables.engines import connect
from dither.tables.execute.release import planned
from dither.tables.options import ReleaseOptions
from dither.tables.planning import top_keys
from dither.tables.planning.automatic import stand_in
from dither.tables.planning.calibrate import plan_after_choices
from dither.tables.planning.top_keys import TopKeys, TopQuestion
from dither.tables.query.tree import Column, Group, Query
from support import each, refuses

DELTA = Fraction(1, 10**6)


def question(noise="best", groups=8, of_people=False, has_unit=True, k=3):
    return TopQuestion((None,), k, of_people, has_unit, groups, noise)


# -- the threshold ----------------------------------------------------------------------------------------------------


def tail(choice: TopKeys, weight: int) -> mp.mpf:
    """The probability that a key of this weight is shown, from the law of the noise."""
    distance = mp.mpf(choice.threshold - weight)
    scale = mp.mpf(choice.noise.scale)
    if isinstance(choice.noise, Laplace):  # discrete: P(k) = (1 - q) / (1 + q) q^|k|
        q = mp.exp(-1 / scale)
        return q**distance / (1 + q) if distance > 0 else 1 - q ** (1 - distance) / (1 + q)
    return mp.ncdf(-(distance - mp.mpf(1) / 2) / scale)  # rounded


def own_delta(choice: TopKeys) -> mp.mpf:
    """What is left of delta for keys of one person, beside the noise."""
    share = Fraction(1, 2) if isinstance(choice.noise, Gaussian) else Fraction(1)
    return mp.mpf((choice.delta * share).numerator) / (choice.delta * share).denominator


@settings(max_examples=60)
@given(
    st.sampled_from(["laplace", "gaussian"]),
    st.sampled_from([0.01, 0.4, 1, 5, 40]),
    st.sampled_from([1e-12, 1e-6, 0.01]),
    st.lists(st.tuples(st.integers(1, 1 << 10), st.integers(1, 1 << 20)), min_size=1, max_size=4),
)
def test_keys_of_one_person_alone_are_shown_with_at_most_delta(noise, epsilon, delta, drawn):
    """Whatever the weights of the person's keys are, within the norm: drawn as (weight, how many keys have it)."""
    choice = question(noise).at(Fraction(epsilon), Fraction(delta))
    size, left = 1 << choice.bits, (1 << choice.bits) ** choice.norm
    shown = mp.mpf(0)
    with mp.workdps(40):
        for weight, number in [*drawn, (1, 1 << 40)]:
            weight = min(weight, size)
            number = min(number, left // weight**choice.norm)
            left -= number * weight**choice.norm
            shown += number * tail(choice, weight)
        assert shown <= own_delta(choice) * (1 + mp.mpf(10) ** -12)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_threshold_is_not_much_larger_than_it_has_to_be(noise):
    choice = question(noise).at(Fraction(2, 5), DELTA)
    size = 1 << choice.bits
    with mp.workdps(40):
        assert size**choice.norm * tail(choice, 1) > own_delta(choice) / 2
    assert choice.people < (60 if noise == "laplace" else 80)


def test_a_row_that_is_a_person_has_one_key():
    choice = question(has_unit=False).at(Fraction(2, 5), DELTA)
    assert (choice.bits, choice.norm) == (0, 1)
    with mp.workdps(40):
        assert tail(choice, 1) <= mp.mpf(10) ** -6
        before = TopKeys(choice.noise, choice.threshold - 1, 0, DELTA, 1)
        assert tail(before, 1) > mp.mpf(10) ** -6


def test_normal_noise_is_for_people_in_many_groups():
    kinds = [type(question(groups=groups).at(Fraction(2, 5), DELTA).noise) for groups in (1, 100)]
    assert kinds == [Laplace, Gaussian]


# -- the whole law, by enumeration ------------------------------------------------------------------------------------


def divergence(one: dict, other: dict, epsilon: float) -> mp.mpf:
    """The least delta for which the first law is (epsilon, delta)-close to the second."""
    factor = mp.exp(mp.mpf(epsilon))
    return sum(max(p - factor * other.get(shown, 0), 0) for shown, p in one.items())


def law(choice: TopKeys, weights: dict[str, int]) -> dict[frozenset[str], mp.mpf]:
    """The probability of each set of keys that may be shown, of keys with a weight."""
    result = {frozenset(): mp.mpf(1)}
    for key, weight in weights.items():
        p = tail(choice, weight) if weight > 0 else mp.mpf(0)
        with_it = {shown | {key}: value * p for shown, value in result.items()}
        result = {shown: value * (1 - p) for shown, value in result.items()} | with_it
    return {shown: p for shown, p in result.items() if p}


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.01), (2.0, 0.05), (1.0, 1e-4)])
def test_which_keys_are_shown_is_private_by_enumeration(monkeypatch, noise, epsilon, delta):
    """Every way in which a person can divide a weight of a few units among two keys that others have and three that
    nobody else has, for others from far below the threshold to above it; in both directions."""
    monkeypatch.setattr(top_keys, "key_bits", lambda _norm: 2)
    choice = question(noise).at(Fraction(epsilon), Fraction(delta))
    size, near = 1 << choice.bits, choice.threshold
    worst = mp.mpf(0)
    for x in itertools.product(range(size + 1), repeat=5):
        if sum(number**choice.norm for number in x) > size**choice.norm or list(x[2:]) != sorted(x[2:]):
            continue
        for a, b in [(1, near - size), (near - 1, near), (near + 3, 2 * near)]:
            others = {"a": a, "b": b}
            mine = {"a": a + x[0], "b": b + x[1], "c": x[2], "d": x[3], "e": x[4]}
            with_me, without = law(choice, mine), law(choice, others)
            worst = max(worst, divergence(with_me, without, epsilon), divergence(without, with_me, epsilon))
    assert worst <= mp.mpf(delta)
    in_all = size**choice.norm  # keys that a person may have alone, of which three are tried
    assert worst > own_delta(choice) * 3 / in_all / 2, "the search comes near what is allowed"


# -- the weights ------------------------------------------------------------------------------------------------------

CARD = Card("t", "", {"who": ColumnCard("integer"), "k": ColumnCard("integer")}, "who")
BY_K = Query({}, (Group("k", Column("k")),))


def weights(rows, norm, of_people, unit="who", without_unit=None):
    """What the statement says, by key."""
    data = pa.table(
        {"who": pa.array([who for who, _ in rows], pa.int64()), "k": pa.array([k for _, k in rows], pa.int64())}
    )
    card = Card("t", "", CARD.columns, unit, rows_without_unit=without_unit)
    with connect(data, card) as engine:
        context = StatementContext(BY_K, card, (None,), Limits(1, 1, 1), 3, "duckdb", {"": engine.table})
        result = engine.run(statements.key_weights(context, norm, of_people))
    return dict(zip(*(column.to_pylist() for column in result.columns), strict=True))


def by_hand(rows, norm, of_people):
    result: Counter = Counter()
    people = defaultdict(Counter)
    for who, key in rows:
        if who is not None:
            people[who][key] += 1
    one = 1 << key_bits(norm)
    for groups in people.values():
        numbers = {key: 1 if of_people else n for key, n in groups.items()}
        squares = sum(n**norm for n in numbers.values())
        for key, n in numbers.items():
            root = squares if norm == 1 else math.isqrt(squares << 20)
            root += norm == 2 and root * root < squares << 20
            x = one * n // root if norm == 1 else one * n * 1024 // (root + 1)
            result[key] += one if len(numbers) == 1 else x
    return {key: n for key, n in result.items() if n}


row = st.tuples(st.sampled_from([1, 1, 1, 2, 3, None]), st.sampled_from([None, *range(12)]))
rows_of_people = st.lists(st.tuples(row, st.sampled_from([1, 1, 2, 40])), max_size=14).map(
    lambda drawn: [row for row, times in drawn for _ in range(times)]
)


@settings(max_examples=60, deadline=None)
@given(rows_of_people, st.sampled_from([1, 2]), st.booleans())
def test_a_person_is_divided_among_groups_and_adds_no_more_than_one(rows, norm, of_people):
    whole, fewer = (weights(some, norm, of_people) for some in (rows, [row for row in rows if row[0] != 1]))
    assert whole == by_hand(rows, norm, of_people)
    change = [whole.get(key, 0) - fewer.get(key, 0) for key in {*whole, *fewer}]
    assert all(x >= 0 for x in change)
    assert sum(x**norm for x in change) <= (1 << key_bits(norm)) ** norm


def test_rows_that_are_people_add_one_each():
    rows = [(1, 5), (1, 5), (None, 5), (2, 7)]
    assert weights(rows, 1, False, unit=None) == {5: 3, 7: 1}
    one = 1 << key_bits(1)
    assert weights(rows, 1, False, without_unit="each") == {5: 2 * one, 7: one}
    assert weights(rows, 1, True, without_unit="drop") == {5: one, 7: one}


def test_many_groups_of_a_person_are_left_out_rather_than_too_many_shown():
    for norm in (1, 2):
        most = (1 << key_bits(norm)) ** norm
        rows = [(1, key) for key in range(most + 1)]
        assert weights(rows, norm, False) == {}
        assert len(weights(rows[: most // 4], norm, False)) == most // 4


# -- what an auditor is told ------------------------------------------------------------------------------------------


def test_the_change_of_neighbors_is_measured():
    choice = question("laplace").at(Fraction(2, 5), DELTA)
    one = 1 << choice.bits
    told = input_change(choice, {"lines": {("a",): one, ("b",): one}}, {"lines": {("a",): one}})
    assert (told.ratio, told.delta) == (1, float(DELTA))
    assert told.epsilon == pytest.approx(0.4)
    assert input_change(choice, {"lines": {("a",): 3 * one}}, {"lines": {("a",): one}}).ratio == 2


# -- questions --------------------------------------------------------------------------------------------------------


def people_in(sizes: dict[object, int], more: int = 3) -> list[tuple[int, object]]:
    """For each key so many people, each with some rows there."""
    numbers = itertools.count()
    return [(who, key) for key, size in sizes.items() for who in itertools.islice(numbers, size) for _ in range(more)]


def opened(sizes, kind, **options):
    rows = people_in(sizes)
    data = pa.table({
        "who": [who for who, _ in rows], "k": pa.array([key for _, key in rows], kind),
        "side": ["l" if who % 2 else "r" for who, _ in rows], "x": [float(who % 7) for who, _ in rows],
    })  # fmt: skip
    keys, bounds = {"side": ["l", "r"]}, {"x": (0, 6)}
    limits = {"max_rows": 3, **options}
    return dp.open(data, unit="who", keys=keys, bounds=bounds, budget=dp.ApproxDP(1000, 0.1), delta=1e-6, **limits)


SIZES = [400, 350, 300, 250, 200, 3, 2, 1]
KEYS = {
    "text": (["a", "é", "x'y", 'q"r', "\\", "rare", None, ""], pa.string()),
    "integer": ([7, -1, (1 << 62), 0, 12, 1, None, 2], pa.int64()),
    "date": ([date(2024, 1, day) for day in range(1, 8)] + [None], pa.date32()),
    "timestamp": ([datetime(2024, 1, 1, hour, 0, 0, 7) for hour in range(7)] + [None], pa.timestamp("us")),
}


@pytest.mark.parametrize("kind", sorted(KEYS))
def test_the_largest_groups_are_found_and_measured(kind):
    """At an epsilon at which noise decides nothing: 350 against 300 people, with a scale of 1/4."""
    keys, type = KEYS[kind]
    with opened(dict(zip(keys, SIZES, strict=True)), type) as table:
        asked = "SELECT k, COUNT(*) AS n, AVG(x) AS m FROM data GROUP BY k ORDER BY n DESC LIMIT 3"
        answer = table.sql(asked).release(epsilon=40)
    assert [row["k"] for row in answer.dicts()] == keys[:3]
    assert [row["n"] for row in answer.dicts()] == pytest.approx([1200, 1050, 900], abs=30)
    assert [row["m"] for row in answer.dicts()] == pytest.approx([3, 3, 3], abs=0.2)
    (note,) = [note for note in answer.notes if note.kind == "top_keys"]
    assert (note.values["asked"], note.values["shown"]) == (3, 3)


def test_groups_by_several_columns_are_those_that_occur():
    with opened({"a": 400, "b": 300, "c": 100}, pa.string()) as table:
        asked = "SELECT k, side, COUNT(DISTINCT who) AS n FROM data GROUP BY k, side ORDER BY n DESC, k, side LIMIT 9"
        answer = table.sql(asked).release(epsilon=40)
    found = {(row["k"], row["side"]): row["n"] for row in answer.dicts()}
    assert found.keys() == {(key, side) for key in "abc" for side in "lr"}
    assert found["a", "l"] == pytest.approx(200, abs=20)


def test_an_answer_says_that_fewer_could_be_shown():
    with opened({"a": 400, "b": 300, "c": 2}, pa.string()) as table:
        question = table.sql("SELECT k, COUNT(*) AS n FROM data GROUP BY k ORDER BY COUNT(*) DESC LIMIT 3")
        some, none = question.release(epsilon=1), question.release(epsilon=0.01, force=True)
    assert [row["k"] for row in some.dicts()] == ["a", "b"]
    assert "Only 2 of 3 groups could be shown, in a noisy order" in str(some)
    assert none.dicts() == []
    assert "No group could be shown" in str(none)


def test_a_person_in_very_many_groups_shows_none_of_them():
    """Nobody else has any of 5,000 keys of one person, each in as many rows as all others have together."""
    rows = [(0, f"mine {i}") for i in range(5000)] + [(who, "ours") for who in range(1, 300)]
    data = pa.table({"who": [who for who, _ in rows], "k": [key for _, key in rows]})
    with dp.open(data, unit="who", budget=dp.ApproxDP(1000, 0.1), delta=1e-6, max_rows=5000) as table:
        answer = table.sql("SELECT k, COUNT(*) AS n FROM data GROUP BY k ORDER BY n DESC LIMIT 50").release(epsilon=2)
    assert [row["k"] for row in answer.dicts()] == ["ours"]


def test_a_plan_reads_nothing_and_says_how_keys_are_chosen():
    with opened({"a": 400}, pa.string()) as table:
        question = table.sql("SELECT k, COUNT(*) AS n FROM data GROUP BY k ORDER BY n DESC LIMIT 5")
        told = str(question.explain(epsilon=1))
        left = table.left.exact
    assert "the 5 largest of those of a noisy 52 people on" in told
    assert "keys for ε = 0.4" in told
    assert "for normal noise" not in told  # what delta is for
    assert left[0] == 1000


def layers_of(weights, edges=(0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)):
    """The layers of the weights of keys, from their definition."""
    return [sum(min(max(weight - low, 0), high - low) for weight in weights) for low, high in itertools.pairwise(edges)]


@pytest.mark.parametrize("threshold", [3, 20, 40, 100, 200, 5000])
def test_the_number_of_groups_shown_is_forecast_from_a_profile(threshold):
    """The number of keys of a layer is between those above its upper and above its lower edge."""
    weights, edges = [1.5] * 40 + [10] * 20 + [50] * 9 + [150] * 4 + [400], (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    layers = NoisyHistogram(edges, tuple(map(float, layers_of(weights))), scale=1.0)
    asked = replace(question(k=1000), layers=layers)
    expected = asked.expected(TopKeys(Laplace(1, 1), threshold, 0, DELTA, 10))
    low = max((edge for edge in edges if edge < threshold), default=0)
    high = min((edge for edge in edges if edge >= threshold), default=math.inf)
    assert sum(weight >= high for weight in weights) <= expected <= sum(weight > low for weight in weights)
    assert replace(asked, k=2).expected(TopKeys(Laplace(1, 1), threshold, 0, DELTA, 10)) == min(expected, 2)
    assert question().expected(TopKeys(Laplace(1, 1), threshold, 0, DELTA, 10)) is None


def test_an_explanation_forecasts_from_the_profile_of_the_table():
    """With noise of a scale of 1/8 at most: 130 keys of 3 people, and 6 of 250."""
    sizes = {f"few {i}": 3 for i in range(130)} | {f"many {i}": 250 for i in range(6)}
    with opened(sizes, pa.string()) as table:
        table.profile(epsilon=200)
        asked = "SELECT k, COUNT(*) AS n FROM data {} GROUP BY k ORDER BY n DESC LIMIT {}"
        told = str(table.sql(asked.format("", 10)).explain(epsilon=1))
        few = str(table.sql(asked.format("", 4)).explain(epsilon=1))
        some = str(table.sql(asked.format("WHERE x > 1", 4)).explain(epsilon=1))
    assert "about 6 are expected to be shown" in told
    assert "about 4 are expected to be shown" in few
    assert "expected to be shown" not in some


def test_a_profile_says_in_how_many_groups_people_are():
    """One of ten people is in one group, and nine in 16 at most."""
    people = NoisyHistogram((1, 2, 8, 16), (100.0, 0.0, 0.0, 900.0), scale=0.001)
    assert top_keys._typical(people, 8) == pytest.approx(1 / (0.1 + 0.9 / 16), rel=0.01)
    assert top_keys._typical(NoisyHistogram((1, 2), (1.0, -1.0), scale=1.0), 8) == 8


@pytest.mark.parametrize("noise", ["best", "laplace", "gaussian"])
@pytest.mark.parametrize("rows", [3, "auto"])
def test_the_parts_add_up_to_what_is_charged(noise, rows):
    with opened({"a": 400}, pa.string(), max_rows=rows) as table:
        asked = table.sql("SELECT k, COUNT(*) AS n, AVG(x) AS m FROM data GROUP BY k ORDER BY n DESC LIMIT 5")
        (before,) = planned(asked, ReleaseOptions(epsilon=1, delta=1e-6, noise=noise)).parts
    assert before.guarantee.exact == (1, DELTA)
    assert before.top_keys is not None
    assert before.top_keys.delta == DELTA / 2
    choices = stand_in(before)
    if rows == "auto":
        choices = choices._replace(max_rows=7, norm=2 if noise == "gaussian" else 1)
    after = plan_after_choices(before, choices)
    epsilon, *delta = after.guarantee.exact
    assert epsilon == 1 - sum(before.automatic.values())
    assert before.automatic["keys"] == Fraction(2, 5) == Fraction(before.top_keys.noise.epsilon).limit_denominator(99)
    assert (*delta, 0)[0] == (DELTA / 2 if noise == "gaussian" else 0)


def test_it_takes_a_delta():
    data = pa.table({"who": [1, 2], "k": ["a", "b"]})
    with dp.open(data, unit="who", budget=dp.PureDP(10)) as table:
        question = table.sql("SELECT k, COUNT(*) AS n FROM data GROUP BY k ORDER BY n DESC LIMIT 5")
        with refuses(dp.DitherError, "delta"):
            question.release(epsilon=1)
        with refuses(dp.DitherError, "a budget with a delta"):
            question.release(epsilon=1, delta=1e-6)


OTHERS = [
    "SELECT side, COUNT(*) AS n FROM data GROUP BY side ORDER BY n DESC LIMIT 1",
    "SELECT k, COUNT(*) AS n FROM data GROUP BY k ORDER BY n DESC",
    "SELECT k, COUNT(*) AS n FROM data GROUP BY k ORDER BY n DESC LIMIT 0",
    "SELECT k, COUNT(*) AS n FROM data GROUP BY k ORDER BY n DESC LIMIT 1001",
    "SELECT k, COUNT(*) AS n FROM data GROUP BY k ORDER BY n LIMIT 2",
    "SELECT k, COUNT(*) AS n FROM data GROUP BY k ORDER BY k LIMIT 2",
    "SELECT k, AVG(x) AS m FROM data GROUP BY k ORDER BY m DESC LIMIT 2",
    "SELECT k, COUNT(*) AS n, AVG(x) AS m FROM data GROUP BY k HAVING m > 3 ORDER BY n DESC LIMIT 2",
]


@each("sql", OTHERS)
def test_other_questions_are_not_for_the_largest_groups(sql):
    with opened({"a": 5}, pa.string()) as table:
        (part,) = planned(table.sql(sql), ReleaseOptions(epsilon=1, delta=1e-6)).parts
        assert part.top is None


def test_keys_are_put_in_the_order_of_their_text_and_no_more_than_are_needed():
    choice = TopKeys(Laplace(1, 1e6), 5, 0, DELTA, 2)
    assert choice.release({("b",): 7, ("a",): 9, ("c",): 6, ("d",): 4}) == [("a",), ("b",)]
    assert choice.release({}) == []
    assert choice.release({("a\0",): 9, (None,): 9}) == [(None,)]
    assert np.all([choice.release({("x",): 4}) == [] for _ in range(20)])
