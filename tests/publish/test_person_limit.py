"""Limits on a person's rows: chosen or only described, never above the budget, and nothing but noisy bins decides."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import dither as dp
from dither.publish import Plan, person_limit
from dither.publish.person_limit import split, typical_cell
from dither.publish.synthetic_table import synthetic_plan
from dither.tables.planning.automatic import EDGES
from support import noted, refuses

COST = {"epsilon": 1, "delta": 1e-9}


def visits(people=1000, largest=20):
    """Rows of people who have from 1 to ``largest`` rows each, some of them outside the domain."""
    sizes = 1 + np.arange(people) % largest
    who = np.repeat(np.arange(people), sizes)
    towns = np.array(["a", "b", "c", "elsewhere"])[(who + np.arange(len(who))) % 4]
    return pa.table({"who": who, "town": towns, "old": (np.arange(len(who)) % 3 == 0)})


def opened(rows, **options):
    stated = {"unit": "who", "keys": {"town": ["a", "b", "c"]}, "budget": dp.ApproxDP(1000, 1e-3), "name": "visits"}
    return dp.open(rows, **{**stated, **options})


def plan(table, **options):
    return Plan(table=table, tables=[("town",), ("town", "old")], **options)


@pytest.mark.parametrize("share", [Fraction(1, 10), Fraction(1, 20)])
@pytest.mark.parametrize("size", [1e-6, 0.1, 0.3, 1, 7.7, 1 / 3])
def test_both_parts_together_are_the_budget_exactly(share, size):
    approximate, concentrated = dp.ApproxDP(size, 1e-9), dp.ZCDP(size)
    epsilon, rest = split(approximate, share)
    assert epsilon + rest.exact[0] == approximate.exact[0]
    assert rest.exact[1] == approximate.exact[1]
    epsilon_alone, pure = split(dp.PureDP(size), share)
    assert epsilon_alone + pure.exact[0] == dp.PureDP(size).exact[0]
    assert float(epsilon) == pytest.approx(size * float(share))
    epsilon, rest = split(concentrated, share)
    assert epsilon**2 / 2 + rest.exact[0] == concentrated.exact[0]
    assert epsilon**2 / 2 <= concentrated.exact[0] * share
    assert float(epsilon**2 / 2) == pytest.approx(size * float(share))
    for cost in (approximate, concentrated):
        assert split(cost, Fraction(0)) == (0, cost)


def test_a_typical_cell_is_that_of_equal_tables():
    assert typical_cell([3, 1], [4, 4], [6, 6]) == (2.0, 6)
    noise, groups = typical_cell([1, 1], [2, 6], [1, 10**6])
    assert (noise, groups) == (2.0, 1)


def histograms(rows, monkeypatch, **options):
    """The bins of people by their rows in the domain, before the noise."""
    seen = []

    def exact(lines, epsilon):
        counts = np.zeros(len(EDGES))
        for place, number in lines:
            counts[place] = number
        seen.append(counts)
        return counts

    with monkeypatch.context() as patch, opened(rows) as table:
        patch.setattr(person_limit, "noisy_histogram", exact)
        plan(table, max_rows="auto", **options).release(**COST)
    return seen[0]


@pytest.mark.slow
def test_the_histogram_counts_people_by_their_rows_in_the_domain_and_one_person_changes_one_bin(monkeypatch):
    rows = visits(200)
    whole = histograms(rows, monkeypatch, where="NOT old")
    frame = rows.to_pandas()
    sizes = frame[(frame.town != "elsewhere") & ~frame.old].groupby("who").size()
    assert whole.tolist() == np.bincount(np.searchsorted(EDGES, sizes), minlength=len(EDGES)).tolist()
    for person in (0, 19, 57):
        changes = whole - histograms(rows.filter(pc.not_equal(rows["who"], person)), monkeypatch, where="NOT old")
        assert sorted(np.abs(changes))[-2:] == [0, 1 if person in sizes.index else 0]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"max_rows": "auto"}, {"max_rows": 3, "bias": True}], ids=["auto", "bias"])
def test_neighbors_differ_by_no_more_than_is_paid_for(options):
    """Everything is replayed without a person of twenty rows: every release at the distance of its inputs, and the
    limit, what it leaves out and the tables, which depend on nothing else."""
    rows = visits(300)
    fewer = rows.filter(pc.not_equal(rows["who"], 19))

    def pipeline(data):
        with opened(data) as table:
            released = plan(table, **options).release(**COST)
            return released.table("town").to_pydict(), released.max_rows, vars(released.clipped_share), released.notes

    result = dp.audit.replay(pipeline, rows, fewer, claim=dp.ApproxDP(1, 1e-9), rounds=2)
    assert result.passed, result
    assert result.releases[0].change.ratio == 1  # the person is in one bin


def test_the_audit_finds_a_limit_from_bins_without_noise(monkeypatch):
    rows = visits(300)
    fewer = rows.filter(pc.less(rows["who"], 150))

    def exact(lines, epsilon):
        return np.bincount([b for b, _ in lines], [n for _, n in lines], len(EDGES))

    monkeypatch.setattr(person_limit, "noisy_histogram", exact)

    def pipeline(data):
        with opened(data) as table:
            return vars(plan(table, max_rows=3, bias=True).release(**COST).clipped_share)

    assert not dp.audit.replay(pipeline, rows, fewer, rounds=1).passed


def test_what_is_left_out_stands_beside_the_numbers_and_is_replayed():
    with opened(visits()) as table:
        wanted, much = plan(table, max_rows=3, bias=True), {"epsilon": 100, "delta": 1e-9}
        first, again = wanted.release(**much), wanted.release(**much)
        assert (first.replayed, again.replayed, again.clipped_share, again.max_rows) == (
            False,
            True,
            first.clipped_share,
            3,
        )
        assert again.table("town").equals(first.table("town"))
        frame = visits().to_pandas()
        sizes = frame[frame.town != "elsewhere"].groupby("who").size()
        share = np.maximum(sizes - 3, 0).sum() / sizes.sum()
        assert share - 0.1 < first.clipped_share.low <= share
        assert str(first.clipped_share).startswith("at least")
        assert str(first).lower().count(str(first.clipped_share)) == 3  # beside each of two tables, and in a note
        assert noted(first, "rows_without_person") == [{"column": "who"}]
        assert not plan(table, max_rows=3).release(**much).replayed  # another request
        chosen = plan(table, max_rows="auto").release(**COST)
        assert not chosen.replayed
        assert chosen.guarantee == dp.ApproxDP(1, 1e-9)
        assert [values["rows"] for values in noted(chosen, "rows_chosen")] == [chosen.max_rows]
        again = plan(table, max_rows="auto").release(**COST)
        assert (again.replayed, again.max_rows, again.clipped_share) == (True, chosen.max_rows, chosen.clipped_share)
        assert again.table("town").equals(chosen.table("town"))


def test_a_publication_without_it_says_that_nobody_knows(tmp_path):
    with opened(visits(), max_rows=2) as table:
        dry = str(plan(table).explain(**COST))
        released = plan(table).release(**COST)
    for text in (dry, str(released)):
        assert "Each person counts for at most 2 rows." in text
        assert 'is not known, nor in any ±: bias = true, or max_rows = "auto"' in text
    released.write(tmp_path)
    said = json.loads((tmp_path / "publication.json").read_text())
    assert (said["max_rows"], said["plan"]["max_rows"], said["left_out"]) == (2, 2, None)
    assert "the count of bounded rows of the cell" in said["promises"]["lower, upper"]
    assert "is not known" in said["promises"]["lower, upper"]


def test_a_dry_run_shows_the_error_of_one_row_and_the_limit_multiplies_it():
    with opened(visits(), max_rows="auto") as table:  # as the card says
        explanation = plan(table).explain(**COST)
        released = plan(table).release(**COST)
    assert all("× max_rows" in item.expected for item in explanation.tables)
    assert "multiply every ± by the limit" in str(explanation)
    expected = [item.error * released.max_rows for item in explanation.tables]
    assert [*released.errors.values()] == pytest.approx(expected, rel=1e-6)


def test_records_are_made_with_a_chosen_limit_for_the_same_charge():
    with opened(visits()) as table:
        wanted = synthetic_plan(table, ["town", "old"], **COST, max_rows="auto")
        assert "at most max_rows rows" in wanted.explain()
        released = wanted.release()
        assert wanted.release().table.equals(released.table)
        assert str(table.left) == "(ε, δ) = (999, 0.000999999)"
        said = json.loads(released.table.schema.metadata[b"dither"])
        assert said["guarantee"] == "(ε, δ) = (1, 1e-09)"
        assert (said["max_rows"], said["left_out"]) == (released.max_rows, vars(released.clipped_share))
        stated = synthetic_plan(table, ["town"], **COST, max_rows=3, bias=True).release()
        assert stated.max_rows == 3
        assert [values["low"] for values in noted(stated, "left_out")] == [stated.clipped_share.low]


def test_where_every_row_is_a_person_nothing_is_spent_on_limits():
    with opened(visits(50), unit=None, max_rows="auto") as table:
        released = plan(table, bias=True).release(**COST)
    assert (released.max_rows, released.clipped_share) == (None, None)
    assert noted(released, "row_is_person")


def test_what_cannot_be_is_refused_before_the_charge():
    with opened(visits(50)) as table:
        before = table.left
        with refuses(dp.InvalidArgument, "max_rows"):
            Plan(table=table, tables=[{"by": ["town"], "error": 5}], max_rows="auto")
        with refuses(dp.WrongType, "bias"):
            plan(table, bias="yes")
        wanted = plan(table, max_rows="auto")
        with refuses(dp.InvalidArgument, "max_rows"):  # nothing is known of the noise
            wanted.counting.release(wanted.marginal.needed, dp.ApproxDP(1, 1e-9), {}, lambda *_: b"")
        assert table.left == before
