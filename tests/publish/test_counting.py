"""Counting: one person moves the counts by no more than is said, and a publication is charged and recorded once.

Covering tables: every table is a margin of one of them, and there are fewer.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

import dither as dp
from dither.publish import Attribute, Domain, MarginalPlan, table_spec
from dither.publish.counting import Counting, covering_tables
from dither.publish.domain import contains
from dither.tables.card.model import Card, ColumnCard
from dither.tables.compile import marginals
from dither.tables.compile.limits import Limits
from dither.tables.query.nodes import integer
from dither.tables.query.tree import Call, Column, Literal
from support import each, noted, refuses
from support_counting import check, random_publication, released_counts
from support_publish import random_domain

PATHS = {"comparisons": (24, 1_000), "constants": (0, 1_000), "staged": (0, 0)}
"""How codes are found: the most keys that are compared, and that are written into the statement."""


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """Opens the table of a random publication."""

    def open_it(publication, path="comparisons"):
        monkeypatch.setattr(marginals, "MOST_COMPARISONS", PATHS[path][0])
        monkeypatch.setattr(marginals, "MOST_CONSTANTS", PATHS[path][1])
        pq.write_table(publication.source(), tmp_path / "rows.parquet")
        return dp.open(publication.card(str(tmp_path / "rows.parquet"), str(tmp_path / "ledger")))

    return open_it


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("seed", range(4))
def test_one_person_moves_every_table_by_no_more_than_the_contribution(opened, seed, path):
    publication = random_publication(100 * seed + [*PATHS].index(path))
    with opened(publication, path) as table:
        check(publication, table)


def without_weights(monkeypatch):
    monkeypatch.setattr(Limits, "weight", lambda limits, *_: integer(1 << limits.bits()))
    return released_counts


def without_conditions(monkeypatch):
    """Rows outside the domain count in some cell."""
    for kind in (marginals.BinCodes, marginals.KeyCodes):
        original = kind.code_columns
        monkeypatch.setattr(kind, "code_columns", lambda *given, original=original: (*original(*given)[:2], []))
    return released_counts


def with_repeated_keys(monkeypatch):
    """Every key is in its lookup twice."""
    monkeypatch.setattr(marginals, "each_key_once", lambda keys, _: exp.union(keys.copy(), keys.copy(), distinct=False))
    return released_counts


def in_each_table_alone(monkeypatch):
    """Rows are left out of a table only by what the table has."""

    def count(counting, tables):
        result = {}
        for levels in tables:
            places = [i for i, level in enumerate(levels) if level] or [0]
            domain = Domain(counting.domain.attributes[i] for i in places)
            alone = replace(counting, domain=domain, expressions=tuple(counting.expressions[i] for i in places))
            own = tuple(levels[i] for i in places)
            result[levels] = released_counts(alone, [own])[own].reshape(counting.domain.shape(levels))
        return result

    return count


@pytest.mark.slow
@pytest.mark.parametrize("defect", [without_weights, without_conditions, with_repeated_keys, in_each_table_alone])
def test_the_generator_finds_defects(opened, monkeypatch, defect):
    path = "constants" if defect is with_repeated_keys else "comparisons"
    for seed in range(20):
        publication = random_publication(seed)
        with opened(publication, path) as table, monkeypatch.context() as patch:
            count = defect(patch)
            try:
                check(publication, table, count)
            except AssertionError:
                return
    pytest.fail("nothing was found")


# -- the ledger ----------------------------------------------------------------------------------------------------

ROWS = pa.table({"who": [i // 5 for i in range(100)], "sex": ["f", "m", "m", None] * 25, "age": [*range(100)]})
DOMAIN = Domain([Attribute.flat("sex", ["f", "m"]), Attribute.binned("age", [0, 18, 65, 120])])
TABLES = [(1, 1), (0, 1)]


def card(tmp_path, **more) -> Card:
    pq.write_table(ROWS, tmp_path / "visits.parquet")
    columns = {"who": ColumnCard("integer"), "sex": ColumnCard("text"), "age": ColumnCard("integer")}
    stated = {"unit": "who", "max_rows": 3, "ledger": str(tmp_path / "ledger"), "budget": dp.PureDP(5), **more}
    return Card("visits", str(tmp_path / "visits.parquet"), columns, **stated)


def counting_of(table, **more) -> Counting:
    return Counting(table, DOMAIN, (Column("sex"), Column("age")), **more)


class Computed:
    """Counts how often it computes."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, _, counts) -> bytes:
        self.times += 1
        return b"\x00noise" + bytes([self.times])


def kinds(table) -> list[str]:
    return [entry.kind for entry in table.ledger.history() if entry.kind in ("charge", "answer", "incident")]


def test_a_publication_is_charged_once_and_then_given_again(tmp_path):
    compute = Computed()
    with dp.open(card(tmp_path)) as table:
        first = counting_of(table).release(TABLES, dp.PureDP(1), {"method": 1}, compute)
    with dp.open(card(tmp_path)) as table:
        counting = counting_of(table)
        again = counting.release(TABLES, dp.PureDP(1), {"method": 1}, compute)
        assert (first.stored, first.replayed) == (b"\x00noise\x01", False)
        assert (again.stored, again.replayed, again.receipt, compute.times) == (first.stored, True, first.receipt, 1)
        assert first.notes == ()  # nothing of the ledger: whoever reads it has asked nothing
        assert again.notes == first.notes
        assert first.remaining.guarantee == dp.PureDP(4)
        assert str(table.left) == "ε = 4"
        others = [
            (counting, TABLES, dp.PureDP(1), {"method": 2}),
            (counting, TABLES[:1], dp.PureDP(1), {"method": 1}),
            (counting_of(table, max_rows=2), TABLES, dp.PureDP(1), {"method": 1}),
            (counting_of(table, where=Call("<", (Column("age"), Literal(9)))), TABLES, dp.PureDP(1), {"method": 1}),
        ]
        for number, (other, tables, cost, content) in enumerate(others, 2):
            assert other.release(tables, cost, content, compute).stored[-1] == number
        with refuses(dp.BudgetExceeded):
            counting.release(TABLES, dp.PureDP(1), {"method": 3}, compute)
        assert kinds(table) == ["charge", "answer"] * 5
    assert compute.times == 5


def test_a_key_names_a_publication_and_again_asks_anew(tmp_path):
    compute = Computed()
    with dp.open(card(tmp_path)) as table:
        counting = counting_of(table)
        first = counting.release(TABLES, dp.PureDP(1), {}, compute, key="2024")
        assert counting.release(TABLES, dp.PureDP(1), {}, compute, key="2024").stored == first.stored
        with refuses(dp.InvalidArgument, "key"):
            counting.release(TABLES, dp.PureDP(1), {"other": 1}, compute, key="2024")
        with refuses(dp.InvalidArgument, "key"):  # nor does a question get its answer
            table.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=1, key="2024")
        assert counting.release(TABLES, dp.PureDP(1), {}, compute, again=True).stored != first.stored
        with refuses(dp.InvalidArgument, "key"):
            counting.release(TABLES, dp.PureDP(1), {}, compute, key="0" * 64)


def test_an_error_in_between_wastes_the_charge_and_says_nothing(tmp_path):
    with dp.open(card(tmp_path)) as table:

        def fail(_, counts):
            raise ValueError(f"secret {counts}")

        with refuses(dp.DataIncident, hiding=["secret"]):
            counting_of(table).release(TABLES, dp.PureDP(1), {}, fail)
        assert kinds(table) == ["charge", "incident"]
        released = counting_of(table).release(TABLES, dp.PureDP(1), {}, Computed())
        assert (released.replayed, released.remaining.guarantee) == (False, dp.PureDP(3))


def test_a_stop_in_between_wastes_the_charge(tmp_path):
    with dp.open(card(tmp_path)) as table:

        def stop(*_):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            counting_of(table).release(TABLES, dp.PureDP(1), {}, stop)
        assert kinds(table) == ["charge"]
        assert not counting_of(table).release(TABLES, dp.PureDP(1), {}, Computed()).replayed


def test_receipts_are_kept_and_one_that_cannot_be_is_refused_before_the_charge(tmp_path):
    place = tmp_path / "receipt"
    with dp.open(card(tmp_path, receipt=str(place))) as table:
        released = counting_of(table).release(TABLES, dp.PureDP(1), {}, Computed())
        assert place.read_text().strip() == released.receipt
        os.remove(place)
        place.mkdir()
        with pytest.raises(dp.DitherError):
            counting_of(table).release(TABLES, dp.PureDP(1), {"other": 1}, Computed())
        assert kinds(table) == ["charge", "answer"]


def test_people_pay_for_themselves_and_only_they_count(tmp_path):
    whole = card(tmp_path, budget=None, each_person=dp.PureDP(2))
    with dp.open(whole) as table:
        young = Call("<", (Column("age"), Literal(50)))
        counts = []
        some = counting_of(table, where=young)
        some.release(TABLES, dp.PureDP(1.5), {}, lambda _, given: counts.append(given[0, 1].sum()) or b"")
        released = counting_of(table).release(
            TABLES, dp.PureDP(1), {}, lambda _, given: counts.append(given[0, 1].sum()) or b""
        )
        assert noted(released, "people_without_budget")
    # ten people are below 50, and cannot pay again; of each person's five rows at least three have a sex
    assert [float(count) * some.unit for count in counts] == pytest.approx([30, 30], abs=0.01)


def test_whoever_is_outside_the_domain_does_not_pay(tmp_path):
    whole = card(tmp_path, budget=None, each_person=dp.PureDP(1))
    domain = Domain([Attribute.binned("age", [0, 50])])
    with dp.open(whole) as table:
        Counting(table, domain, (Column("age"),)).release([(1,)], dp.PureDP(1), {}, Computed())
        old = Counting(table, Domain([Attribute.binned("age", [50, 100])]), (Column("age"),))
        counts = []
        old.release([(1,)], dp.PureDP(1), {}, lambda _, given: counts.append(given[1,].sum()) or b"")
    assert float(counts[0]) * old.unit == pytest.approx(30, abs=0.01)


def test_what_is_released_inside_is_not_charged_again(tmp_path):
    with dp.open(card(tmp_path, budget=dp.ApproxDP(5, 1e-6))) as table, dp.ledger.open(tmp_path / "other") as other:
        other.ensure("study", limit=dp.PureDP(0.001))
        counting = counting_of(table)
        plan = MarginalPlan(DOMAIN, [table_spec(DOMAIN, ["sex", "age"])], contribution=counting.contribution)
        cost = dp.ApproxDP(1, 1e-9)
        with other.scope("study"):
            counting.release(
                plan.needed, cost, {}, lambda _, counts: repr(plan.release(counts, cost).table("sex")).encode()
            )
        assert other.left("study") == dp.PureDP(0.001)


# -- refused before the charge --------------------------------------------------------------------------------------


def refusals():
    sex = Attribute.flat("sex", ["f", "m"])
    text = (Column("sex"),)
    return {
        "keys of another type": ("keys of sex", Domain([Attribute.flat("sex", [1, 2])]), text, {}),
        "keys of dates": ("keys of sex", Domain([Attribute.flat("sex", [True])]), text, {}),
        "bins of text": ("a number", Domain([Attribute.binned("sex", [0, 1])]), text, {}),
        "too many bins": ("bins", Domain([Attribute.binned("age", range(5000))]), (Column("age"),), {}),
        "keys with NUL": ("NUL", Domain([Attribute.flat("sex", ["f\0"])]), text, {}),
        "a limit of zero": ("max_rows", Domain([sex]), text, {"max_rows": 0}),
        "too many rows": ("max_rows", Domain([sex]), text, {"max_rows": 1 << 21}),
        "another table": ("about", Domain([sex]), text, {"about": "patients"}),
        "an unknown column": ("column", Domain([sex]), (Column("gender"),), {}),
        "no condition": ("WHERE", Domain([sex]), text, {"where": Column("age")}),
        "too few values": ("expressions", Domain([sex]), (), {}),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", refusals())
def test_what_can_be_refused_is_refused_before_the_charge(tmp_path, name):
    fragment, domain, expressions, more = refusals()[name]
    compute = Computed()
    with dp.open(card(tmp_path)) as table:
        with refuses(dp.InvalidArgument, fragment):
            Counting(table, domain, expressions, **more).release([(1,)], dp.PureDP(1), {}, compute)
        with refuses(dp.InvalidArgument, fragment):
            Counting(table, domain, expressions, **more).check([(1,)])
        assert kinds(table) == []
    assert compute.times == 0


def test_costs_and_tables_are_checked_before_the_charge(tmp_path):
    with dp.open(card(tmp_path, min_epsilon=0.1)) as table:
        counting = counting_of(table)
        for cost in (dp.PureDP(0.09), dp.ApproxDP(0.09, 1e-9), dp.ZCDP(0.0049)):
            with refuses(dp.InvalidArgument, "at least"):
                counting.release(TABLES, cost, {}, Computed())
        for tables in ([], [(1,)], [(2, 0)], [(-1, 0)]):
            with refuses(dp.InvalidArgument, "tables"):
                counting.release(tables, dp.PureDP(1), {}, Computed())
        assert kinds(table) == []
    with dp.open(card(tmp_path), read_only=True) as table, refuses(dp.InvalidArgument, "read_only"):
        counting_of(table).release(TABLES, dp.PureDP(1), {}, Computed())


def test_rows_that_are_people_count_one_each():
    with dp.open(pa.table({"sex": ["f", "m", "x", "m"]}), budget=dp.PureDP(1), max_rows=7) as table:
        counting = Counting(table, Domain([Attribute.flat("sex", ["f", "m"])]), (Column("sex"),))
        assert (counting.contribution, counting.unit) == (1, 1.0)
        assert released_counts(counting, [(1,)])[1,].tolist() == [1, 2]


def test_a_table_without_rows_has_counts_of_zero():
    rows = pa.table({"who": pa.array([], pa.int64()), "sex": pa.array([], pa.string())})
    with dp.open(rows, unit="who", budget=dp.PureDP(1)) as table:
        counting = Counting(table, Domain([Attribute.flat("sex", ["f", "m"], null=True)]), (Column("sex"),))
        counts = released_counts(counting, [(1,), (0,)])
        assert (counts[1,].tolist(), counts[0,].tolist()) == ([0, 0, 0], [0])
        assert counts[1,].dtype == np.int64


def test_one_of_several_tables_is_counted():
    visits = pa.table({"who": [1, 1, 2], "kind": ["a", "b", "b"]})
    patients = pa.table({"who": [1, 2, 3], "sex": ["f", "m", "m"]})
    tables = {"visits": visits, "patients": patients}
    with dp.open(tables, unit="who", budget=dp.PureDP(9), max_rows=2) as clinic:
        kinds_of_visits = Counting(
            clinic, Domain([Attribute.flat("kind", ["a", "b"])]), (Column("kind"),), about="visits"
        )
        sexes = Counting(clinic, Domain([Attribute.flat("sex", ["f", "m"])]), (Column("sex"),), about="patients")
        one = 1 << 14
        assert released_counts(kinds_of_visits, [(1,)])[1,].tolist() == [one, 2 * one]
        assert released_counts(sexes, [(1,)])[1,].tolist() == [one, 2 * one]
        assert kinds_of_visits.release([(1,)], dp.PureDP(1), {}, Computed()).replayed is False
        with refuses(dp.InvalidArgument, "about", "visits"):
            Counting(clinic, Domain([Attribute.flat("sex", ["f", "m"])]), (Column("sex"),)).check([(1,)])


@each("seed", range(30))
def test_every_table_is_a_margin_of_a_covering_one_that_is_small(seed):
    domain, finest = random_domain(seed, most_cells=2000)
    generator = np.random.default_rng(seed)
    tables = [tuple(int(generator.integers(0, level + 1)) for level in finest) for _ in range(8)]
    for most_cells in (1, 20, 4096):
        covering = covering_tables(domain, tables, most_cells)
        assert all(any(contains(table, wanted) for table in covering) for wanted in tables)
        for table in covering:
            covered = [wanted for wanted in tables if contains(table, wanted)]
            assert covered
            assert domain.size(table) <= most_cells or table in tables
        assert len(covering) <= len({*tables})


def test_pairs_are_covered_by_a_third_as_many_tables():
    domain = Domain([Attribute.flat(f"a{i}", range(6)) for i in range(10)])
    pairs = [tuple(int(i in pair) for i in range(10)) for pair in itertools.combinations(range(10), 2)]
    assert len(covering_tables(domain, pairs)) <= len(pairs) // 3


def test_tables_that_are_larger_than_the_limit_stay_as_they_are():
    domain = Domain([Attribute.flat("i", range(100)), Attribute.flat("j", range(100)), Attribute.flat("k", range(3))])
    assert covering_tables(domain, [(1, 1, 0), (1, 0, 0), (0, 0, 1)]) == [(1, 1, 0), (0, 0, 1)]
