"""Profiles of tables: what is measured, what is charged and recorded, and what is found again."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.tables.card.model import Card, ColumnCard, PrivateTable, with_recent_profile
from dither.tables.planning.automatic import EDGES
from dither.tables.planning.profile_plan import (
    KEY_EDGES,
    MOST_BINS,
    ProfilePlan,
)
from dither.tables.profile import recorded_profile
from support import each, for_each, refuses
from tables.visits import PROFILED as COLUMNS
from tables.visits import entries, reads

SIZE = 3_000


def rows(people: int = 900, size: int = SIZE) -> pa.Table:
    """People of whom some have one row, some two, and some many; towns of which a few are large."""
    pick = np.random.default_rng(5)
    who = (
        np.concatenate([np.arange(people), pick.zipf(1.6, size - people) % people])
        if size > people
        else np.arange(size)
    )
    size = len(who)
    amount = np.round(pick.normal(0, 20, size), 1)
    amount[pick.random(size) < 0.2] = 0.0
    return pa.table(
        {
            "who": pa.array(who, pa.int64()),
            "region": pa.array(pick.choice(["north", "south", "east", None], size).tolist(), pa.string()),
            "town": [f"t{int(i)}" for i in pick.zipf(1.5, size) % 200],
            "amount": pa.array([math.nan if x > 45 else x for x in amount.tolist()]),
            "age": pa.array((pick.integers(0, 130, size)).tolist(), pa.int64(), mask=pick.random(size) < 0.1),
            "day": [date.fromordinal(date(2023, 12, 25).toordinal() + int(i)) for i in pick.integers(0, 400, size)],
            "vip": (pick.random(size) < 0.3).tolist(),
            "empty": pa.nulls(size, pa.float64()),
            "one": pa.array([5] * size, pa.int64()),
        }
    )


def card(folder, table: pa.Table | None = None, **more) -> Card:
    pq.write_table(rows() if table is None else table, folder / "visits.parquet")
    stated = {"unit": "who", "ledger": str(folder / "ledger"), "budget": dp.PureDP(100), "columns": COLUMNS}
    return Card("visits", str(folder / "visits.parquet"), **{**stated, **more})


class Exact:
    """No noise, for tests of what is counted."""

    scale = 0.001
    variance = 1.0

    def release(self, counts):
        return counts


@pytest.fixture
def exact(tmp_path, monkeypatch):
    """The profile of a table as it is without noise."""
    monkeypatch.setattr(ProfilePlan, "noise", lambda *_: Exact())

    def profile(table=None, **more):
        with dp.open(card(tmp_path, table, **more)) as opened:
            return opened.profile(epsilon=1)

    return profile


def sql(table: pa.Table, text: str):
    """What DuckDB says about rows with the weights of their people."""
    connection = duckdb.connect()
    connection.register("given", table)
    connection.execute("CREATE VIEW v AS SELECT *, 1.0 / COUNT(*) OVER (PARTITION BY who) AS w, "
                       "COUNT(*) OVER (PARTITION BY who) AS n FROM given WHERE who IS NOT NULL")  # fmt: skip
    return connection.execute(text).fetchall()


def number_of(table, condition: str) -> float:
    return float(sql(table, f"SELECT COALESCE(SUM(w), 0) FROM v WHERE {condition}")[0][0])


def weights_between(table, column: str, edges, more: str = "TRUE") -> list[float]:
    """Weights in bins by the definition of a histogram: the first and the last take in what is beyond."""
    inner = edges[1:-1]
    ends = [(None, inner[0]), *list(pairwise(inner)), (inner[-1], None)] if inner else [(None, None)]
    result = []
    for low, high in ends:
        conditions = [f"{column} IS NOT NULL", f"NOT isnan({column}::DOUBLE)", more]
        conditions += [f"{column} >= {low!r}"] if low is not None else []
        conditions += [f"{column} < {high!r}"] if high is not None else []
        result.append(number_of(table, " AND ".join(conditions)))
    return result


ROUNDING = 0.02
"""Weights are whole numbers of 2^-20, rounded down: 3,000 of them are low by less than this."""


def near(values, expected) -> bool:
    return bool(np.all(np.abs(np.array(values) - np.array(expected)) < ROUNDING))


# -- what is counted --------------------------------------------------------------------------------------------------


def test_numbers_are_counted_in_bins_with_weight_one_for_a_person(exact):
    table = rows()
    measured = exact(table).tables["visits"].columns
    for name in ("amount", "age"):
        values = measured[name].values
        assert len(values.weights) == len(values.edges) - 1 <= MOST_BINS
        expected = weights_between(table, name, values.edges)
        assert near(values.weights, expected), [
            *zip(values.edges, np.subtract(values.weights, expected), strict=False)
        ][10:]
        assert near(measured[name].nulls, number_of(table, f"{name} IS NULL OR isnan({name}::DOUBLE)"))
    whole = number_of(table, "NOT isnan(amount) AND amount = floor(amount)")
    assert near(measured["amount"].whole.value, whole)
    assert measured["age"].whole is None


def test_zero_has_a_bin_of_its_own(exact):
    table = rows()
    values = exact(table).tables["visits"].columns["amount"].values
    assert near(values.weights[values.edges.index(0.0)], number_of(table, "amount = 0"))


def test_dates_are_counted_in_days(exact):
    table = rows()
    values = exact(table).tables["visits"].columns["day"].values
    days = "date_diff('day', DATE '1970-01-01', day)"
    inner = values.edges[1:-1]
    for place, (low, high) in enumerate(pairwise(values.edges)):
        conditions = [f"{days} >= {low}"] if place else []
        conditions += [f"{days} < {high}"] if place < len(inner) else []
        assert near(values.weights[place], number_of(table, " AND ".join(conditions)))


def test_public_keys_are_counted_and_all_other_values_left_out(exact):
    table = rows()
    measured = exact(table).tables["visits"].columns
    region, vip = measured["region"], measured["vip"]
    assert region.keys.keys == ("north", "south")
    assert near(region.keys.weights, [number_of(table, f"region = '{key}'") for key in region.keys.keys])
    assert near(region.nulls, number_of(table, "region IS NULL"))
    assert vip.keys.keys == (False, True)
    assert near(vip.keys.weights, [number_of(table, f"vip = {key}") for key in vip.keys.keys])


def test_people_are_counted_by_their_rows_and_keys(exact):
    table = rows()
    visits = exact(table).tables["visits"]
    numbers = [n for (n,) in sql(table, "SELECT COUNT(*) FROM v GROUP BY who")]
    counts = [sum(low < n <= high for n in numbers) for low, high in pairwise([0, *visits.people.edges])]
    assert list(visits.people.weights) == counts
    assert visits.people.edges == EDGES
    assert visits.total.value == len(numbers)
    keys = [n for (n,) in sql(table, "SELECT COUNT(DISTINCT town) FROM v GROUP BY who")]
    shown = visits.columns["town"].keys_per_person
    assert list(shown.weights) == [sum(low < n <= high for n in keys) for low, high in pairwise([0, *shown.edges])]


def test_layers_of_keys_say_how_many_have_how_many_people(exact):
    table = rows()
    layers = exact(table).tables["visits"].columns["town"].private_keys
    assert layers.edges == KEY_EDGES
    weights = np.array([float(s) for (s,) in sql(table, "SELECT SUM(w) FROM v GROUP BY town")])
    for low, high, layer in zip(layers.edges, layers.edges[1:], layers.weights, strict=False):
        assert near(layer, np.clip(weights - low, 0, high - low).sum())
        assert (weights >= high).sum() - 0.1 <= layer / (high - low) <= (weights > low).sum() + 0.1


def test_columns_by_classes_of_rows_per_person(exact):
    table = rows()
    visits = exact(table).tables["visits"]
    assert len(visits.classes) > 1
    limits = [0, *visits.classes[:-1], SIZE]
    for name in ("amount", "age"):
        assert len(visits.columns[name].by_rows) == len(visits.classes)
        for (low, high), shown in zip(pairwise(limits), visits.columns[name].by_rows, strict=True):
            assert set(shown.edges) <= set(visits.columns[name].values.edges)
            assert near(shown.weights, weights_between(table, name, shown.edges, f"n > {low} AND n <= {high}"))


def test_a_column_of_null_and_a_constant_one(exact):
    visits = exact().tables["visits"]
    empty, one = visits.columns["empty"], visits.columns["one"]
    assert near(empty.nulls, 900)
    assert near(sum(empty.values.weights), 0)
    assert near(one.values.weights, [900.0 * (edge == 5) for edge in one.values.edges[:-1]])
    assert near(one.nulls, 0)


def test_every_row_may_be_a_person(exact):
    table = rows()
    visits = exact(table, unit=None).tables["visits"]
    assert (visits.people, visits.classes, visits.total.value) == (None, (), SIZE)
    vip = [bool(x) for x in table["vip"].to_pylist()]
    assert visits.columns["vip"].keys.weights == (float(vip.count(False)), float(vip.count(True)))
    assert visits.columns["amount"].by_rows is None
    assert visits.columns["town"].keys_per_person is None
    towns = np.unique(table["town"].to_pylist(), return_counts=True)[1]
    assert visits.columns["town"].private_keys.weights[1] == (np.clip(towns - 1, 0, 1)).sum()
    assert "who" in visits.columns  # which names nobody here


def test_rows_without_a_person_are_people_where_the_card_says_so(exact, tmp_path):
    unknown = pa.table({name: [None] * 7 for name in COLUMNS}, schema=rows().schema)
    table = pa.concat_tables([rows(), unknown])
    (tmp_path / "each").mkdir()
    dropped = exact(table).tables["visits"]
    with dp.open(card(tmp_path / "each", table, rows_without_unit="each")) as opened:
        counted = opened.profile(epsilon=1).tables["visits"]
    assert counted.total.value == dropped.total.value + 7
    assert counted.people.weights[0] == dropped.people.weights[0] + 7
    assert near(counted.columns["age"].nulls, dropped.columns["age"].nulls + 7)
    assert near(counted.columns["age"].by_rows[0].weights, dropped.columns["age"].by_rows[0].weights)


def test_several_private_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(ProfilePlan, "noise", lambda *_: Exact())
    persons = pa.table({"id": pa.array(range(50), pa.int64()), "born": pa.array([1950 + i % 10 for i in range(50)])})
    pq.write_table(persons, tmp_path / "persons.parquet")
    columns = {"id": ColumnCard("integer"), "born": ColumnCard("integer", (1940, 2000))}
    more = {"persons": PrivateTable(str(tmp_path / "persons.parquet"), columns, "id")}
    with dp.open(card(tmp_path, tables=more)) as clinic:
        profile = clinic.profile(epsilon=1, columns=["persons.born", "age"])
        assert clinic.card.for_table("persons").profile == profile
    assert {name: list(item.columns) for name, item in profile.tables.items()} == {
        "visits": ["age"],
        "persons": ["born"],
    }
    assert [profile.tables[name].total.value for name in ("visits", "persons")] == [900, 50]
    assert near(sum(profile.tables["persons"].columns["born"].values.weights), 50)
    assert profile.tables["persons"].classes == ()  # everybody has one row there


# -- what it costs ----------------------------------------------------------------------------------------------------


def test_one_charge_for_all_tables_and_none_to_find_it_again(tmp_path, monkeypatch):
    made = card(tmp_path)
    with dp.open(made) as table:
        assert table.card.profile is None
        profile = table.profile(epsilon=0.5)
        assert table.card.profile == profile
        assert table.left == dp.PureDP(99.5)
        assert entries(table)["charge"] == entries(table)["answer"] == 1
        seen = reads(table, monkeypatch)
        assert table.profile(epsilon=0.5) == profile
        assert not seen
        assert table.left == dp.PureDP(99.5)
    with dp.open(made) as table:
        assert table.card.profile == profile
        assert table.left == dp.PureDP(99.5)
        newer = table.profile(epsilon=0.5, again=True)
        assert newer.tables != profile.tables
        other = table.profile(epsilon=0.25, columns=["age"])
        assert table.left == dp.PureDP(98.75)
    for read_only in (False, True):
        with dp.open(made, read_only=read_only) as table:
            assert table.card.profile == other
    assert profile.cost == dp.PureDP(0.5)
    assert abs((datetime.now(profile.released.tzinfo) - profile.released).days) <= 1


def test_each_person_pays(tmp_path):
    with dp.open(card(tmp_path, budget=None, each_person=dp.PureDP(1))) as table:
        table.profile(epsilon=1, columns=["age"])
        with refuses(dp.BudgetExceeded):
            table.profile(epsilon=1, columns=["age"], again=True)


def test_a_profile_does_not_change_what_was_answered(tmp_path):
    with dp.open(card(tmp_path)) as table:
        question = "SELECT COUNT(*) AS n FROM visits"
        first = table.sql(question).release(epsilon=1)
        table.profile(epsilon=1)
        again = table.sql(question).release(epsilon=1)
        assert (again.dicts(), again.replayed) == (first.dicts(), True)


def test_no_question_can_take_the_place_of_a_profile(tmp_path):
    with dp.open(card(tmp_path)) as table:
        with refuses(dp.InvalidArgument, "key"):
            table.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=1, key="profile0")
        table.ledger.release("visits", dp.PureDP(1), lambda: [1], key="profile0")  # by whoever has the ledger itself
        assert recorded_profile(table.card, table.ledger) is None
        profile = table.profile(epsilon=1)
        table.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=1, key="profile of mine")
        assert recorded_profile(table.card, table.ledger) == profile


@each(("days", "used"), [(None, True), (2, True), (0.5, False)])
def test_an_old_profile_is_used_only_where_its_age_is_accepted(tmp_path, days, used):
    with dp.open(card(tmp_path)) as table:
        table.profile(epsilon=10)
        old = replace(table.card.profile, released=datetime.now(UTC) - timedelta(days=1))
        table.card = replace(table.card, profile=old)
        question = table.sql("SELECT AVG(amount) AS a FROM visits")
        plan = question.plan(epsilon=1, profile_age=days)
        assert (plan.parts[0].card.profile is not None) == used
        unknown = replace(table.card, profile=replace(old, released=None))
        assert with_recent_profile(unknown, 1000).profile is None
        with refuses(dp.InvalidArgument, "profile_age"):
            question.plan(epsilon=1, profile_age=0)


# -- what is refused, and what is left out ----------------------------------------------------------------------------


def test_what_is_refused_is_refused_for_free(tmp_path):
    with dp.open(card(tmp_path)) as table:
        for_each(
            [({}, "epsilon"), ({"epsilon": 1, "rho": 1}, "rho"), ({"epsilon": 1, "columns": ["agee"]}, "age"),
             ({"epsilon": 1, "without": "age"}, "without"), ({"epsilon": 1, "columns": ["who"]}, "columns"),
             ({"epsilon": 1, "delta": 1e-6}, "delta"), ({"epsilon": 1e-9}, "min_epsilon")],
            lambda given, named: _refused(table, given, named),
        )  # fmt: skip
        assert not entries(table)["charge"]
    with dp.open(card(tmp_path), read_only=True) as table, refuses(dp.InvalidArgument, "read_only"):
        table.profile(epsilon=1)


def _refused(table, given, named) -> None:
    with refuses((ValueError, TypeError), named):
        table.profile(**given)


def test_too_little_to_see_anything_is_refused_where_it_is_public(tmp_path):
    made = card(tmp_path, rows=12)
    with dp.open(made) as table:
        with refuses(dp.InvalidArgument, "epsilon", "12 rows", "force"):
            table.profile(epsilon=0.1)
        assert not entries(table)["charge"]
        assert table.profile(epsilon=0.1, force=True).cost == dp.PureDP(0.1)
        assert table.profile(epsilon=0.1).cost == dp.PureDP(0.1)  # it is recorded
        assert table.profile(epsilon=90, columns=["age"]).cost == dp.PureDP(90)


@each("people", [0, 1, 12])
def test_a_table_of_a_few_people(tmp_path, people):
    with dp.open(card(tmp_path, rows(people, people))) as table:
        visits = table.profile(epsilon=1).tables["visits"]
        assert len(visits.columns) == 8
        assert abs(visits.total.value - people) < 40 * visits.total.deviation
        large = table.profile(epsilon=95, columns=["age"]).tables["visits"]
        assert abs(large.total.value - people) < 10


def test_what_the_card_says_otherwise_is_left_out(tmp_path):
    with dp.open(card(tmp_path)) as table:
        profile = table.profile(epsilon=1)
    fewer = {name: item for name, item in COLUMNS.items() if name != "town"}
    changed = {**fewer, "age": ColumnCard("number", (0.0, 120.0)), "more": ColumnCard("integer")}
    with dp.open(card(tmp_path), read_only=True) as table:
        kept = recorded_profile(replace(table.card, columns=changed), table.ledger)
        assert set(kept.tables["visits"].columns) == set(fewer) - {"age", "who"}
        assert kept.tables["visits"].people == profile.tables["visits"].people
        assert recorded_profile(replace(table.card, unit="age"), table.ledger) is None
        assert recorded_profile(replace(table.card, unit=None), table.ledger) is None
        assert recorded_profile(replace(table.card, name="others"), table.ledger) is None


# -- what the numbers are worth ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_noise_is_what_it_is_said_to_be(tmp_path, monkeypatch, delta):
    """In 95 of 100 bins the noisy weight is within 1.96 deviations (of Laplace noise 2.996 scales) of the weight that
    the rows have. About 300 bins have independent noise: fewer than 88 % are within them with probability 1e-7."""
    table, more = rows(), {} if delta is None else {"budget": dp.ApproxDP(100, 1e-3), "delta": delta}
    with dp.open(card(tmp_path, table, **more)) as opened:
        profile = opened.profile(epsilon=1).tables["visits"]
        monkeypatch.setattr(ProfilePlan, "noise", lambda *_: Exact())
        truth = opened.profile(epsilon=1, again=True).tables["visits"]
    inside, drawn = [], []
    pairs = [(profile.people, truth.people), (profile.total, truth.total)]
    for name, column in profile.columns.items():
        true = truth.columns[name]
        pairs += [(column.values, true.values), (column.keys, true.keys), (column.whole, true.whole)]
        pairs += [(column.private_keys, true.private_keys), (column.keys_per_person, true.keys_per_person)]
    for noisy, exact in pairs:
        if noisy is None:
            continue
        assert noisy.normal == (delta is not None)
        width = (1.96 if noisy.normal else math.log(20)) * noisy.scale
        values = (
            [(noisy.value, exact.value)] if hasattr(noisy, "value") else zip(noisy.weights, exact.weights, strict=True)
        )
        for value, true in values:
            inside.append(abs(value - true) <= width)
            drawn.append(abs(value - true) / noisy.deviation)
    assert len(inside) > 250
    assert 0.88 < np.mean(inside) < 0.995
    assert 0.6 < np.median(drawn) / (0.674 if delta is not None else math.log(2) / math.sqrt(2)) < 1.4
