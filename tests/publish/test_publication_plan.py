"""Plans over the rows of a table: against counts by pandas, dry run, charge, replay, refusals.

Tables, totals and budgets as they are written in a plan.

What a dry run says of a plan, as text, as a table and in a notebook.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.ledger.accounts import Remaining
from dither.publish import Attribute, Domain, ExpectedTable, Plan, PlanExplanation
from dither.publish.publication_plan import (
    WantedTable,
    check_repetitions,
    table_lines,
    totals_of,
    wanted_tables,
    whole_note,
)
from support import refuses

DOMAIN = Domain([Attribute.flat("sex", ["f", "m"], null=True), Attribute.flat("year", [2023, 2024])])


def test_tables_are_lists_of_names_or_sections():
    assert wanted_tables([["sex", "year"], "sex", {"by": [], "weight": 2}]) == [
        WantedTable(("sex", "year")),
        WantedTable(("sex",)),
        WantedTable((), 2),
    ]
    check_repetitions(DOMAIN, wanted_tables([["sex"], ["year"], []]))
    with refuses(dp.InvalidArgument, "tables", "sex × year and year × sex, one table"):
        check_repetitions(DOMAIN, wanted_tables([["sex", "year"], ["year", "sex"]]))


def test_totals_are_given_by_key_in_any_order_and_null_has_a_name():
    given = [{"by": ["year"], "counts": {"2024": 7, "2023": 5}}, {"counts": 12}]
    assert totals_of(DOMAIN, given) == {("year",): [5, 7], (): 12}
    assert totals_of(DOMAIN, {"sex": {"NULL": 1, "m": 2, "f": 3}}) == {("sex",): [3, 2, 1]}
    assert totals_of(DOMAIN, None) == {}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([{"by": ["sex"]}], ["totals[0]", "counts", "none"]),
        ([{"of": ["sex"]}], ["totals[0].of"]),
        ([{"by": ["sex", "year"], "counts": {"f": 1}}], ["totals of sex × year", "one level"]),
        ([{"counts": 1}, {"by": [], "counts": 2}], ["everybody twice"]),
        ({3: 4}, ["totals", "a list of names"]),
    ],
)
def test_totals_that_say_nothing_clear_are_refused(given, words):
    with refuses(dp.InvalidArgument, *words):
        totals_of(DOMAIN, given)


TABLES = (
    ExpectedTable("state", 51, 12.0, 12.0, 0.002, "; wanted: 15"),
    ExpectedTable("county", 3000, 10.0, 20.0, 0.09),
    ExpectedTable("sex", 2, 0.0, 0.0, 0.0),
)


def test_tables_are_said_with_mean_and_largest_error_and_their_target():
    assert [str(table) for table in TABLES] == [
        "state: 51 cells, ± 12 (0.20 % of an average cell); wanted: 15",
        "county: 3,000 cells, ± 10, at most 20 (9.0 % of an average cell)",
        "sex: 2 cells, ± 0 (public)",
    ]
    header, lines = table_lines(TABLES)
    assert header == ["table", "cells", "expected ± (95 %)", "of an average cell"]
    assert lines[1] == ["county", "3,000", "± 10, at most 20", "9.0 %"]


def test_an_explanation_says_that_it_would_be_refused():
    explanation = PlanExplanation(TABLES, dp.ZCDP(1), Remaining(dp.ZCDP(0.5)), (), "cost: too much")
    assert str(explanation).splitlines()[:3] == [
        "cost: ρ = 1 (zCDP); left: ρ = 0.5 (zCDP)",
        "would be refused: cost: too much",
        "expected ± of each cell (95 %):",
    ]
    assert "would be refused" in explanation._repr_html_()


def test_whole_counts_of_very_many_combinations_are_warned_of():
    kinds = [(note.kind, note.values.get("slow")) for note in (whole_note(n, 10**8) for n in (100, 2 * 10**7, 10**9))]
    assert kinds == [("whole_counts", False), ("whole_counts", True), ("too_many_combinations", None)]


random = np.random.default_rng(16)
PEOPLE = pd.DataFrame(
    {
        "who": np.arange(4000) % 1000,
        "county": random.choice(["A1", "A2", "B1", None], 4000, p=[0.5, 0.2, 0.25, 0.05]),
        "sex": random.choice(["f", "m", "x"], 4000, p=[0.5, 0.49, 0.01]),
        "age": random.integers(0, 110, 4000),
    }
)
PLACES = {"A1": "A", "A2": "A", "B1": "B"}
COLUMNS = {"age": {"edges": [0, 18, 65, 100]}}
GEO = {"nested": {"geo": ["state", "county"]}, "lookups": {"geo": PLACES}}
PLANNED = [("state",), ("county", "sex"), ("age", "sex"), ()]


def opened(**options):
    stated = {"unit": "who", "keys": {"sex": ["f", "m"]}, "max_rows": 4, "budget": dp.ZCDP(1000), "name": "people"}
    return dp.open(pa.Table.from_pandas(PEOPLE), **{**stated, **options})


@pytest.fixture(scope="module")
def people():
    with opened(delta=1e-9) as table:
        yield table


def plan(people, **options):
    return Plan(**{"table": people, "tables": PLANNED, "columns": COLUMNS, **GEO, **options})


def counts(*names, null=False):
    """The rows that count, by pandas: those within all domains."""
    rows = PEOPLE.assign(
        state=PEOPLE.county.map(PLACES),
        age=pd.cut(PEOPLE.age, [0, 18, 65, 100], right=False, labels=["[0, 18)", "[18, 65)", "[65, 100)"]),
    )
    rows = rows[rows.sex.isin(["f", "m"]) & rows.age.notna() & (rows.county.notna() | null)]
    return rows.groupby([*names], observed=False, dropna=False).size() if names else len(rows)


def test_tables_are_the_counts_of_rows_within_all_domains(people):
    """With next to no noise (ρ = 300, at most 4 rows of a person) estimates and whole counts are the counts."""
    released = plan(people).release(rho=300, again=True)
    for names in (("state",), ("county", "sex"), ("age", "sex")):
        table = released.table(*names).to_pandas().set_index([*names])
        exact = counts(*names)
        assert table.value.to_dict() == pytest.approx(exact.to_dict(), abs=3)
        assert (table.integer - exact).abs().max() <= 3
        assert ((table.lower < table.value) & (table.value < table.upper)).all()
    assert released.table().column("value")[0].as_py() == pytest.approx(counts(), abs=3)
    grouped = released.records().to_pandas().groupby(["county", "sex"], observed=False).size()
    whole = released.table("county", "sex").to_pandas().set_index(["county", "sex"]).integer
    assert grouped.to_dict() == whole.to_dict()


def test_null_and_other_values_are_kept_where_the_plan_says_so(people):
    released = plan(
        people,
        tables=[("county", "sex")],
        columns={"sex": {"other": "other"}},
        nested={"geo": {"levels": ["state", "county"], "null": True}},
    ).release(rho=300)
    table = released.table("sex").to_pandas().set_index("sex").value
    assert table.sum() == pytest.approx(4000, abs=10)
    assert table["other"] == pytest.approx((PEOPLE.sex == "x").sum(), abs=5)
    by_state = dict(
        zip(*(released.table("state").column(name).to_pylist() for name in ("state", "value")), strict=True)
    )
    assert by_state[None] == pytest.approx(PEOPLE.county.isna().sum(), abs=5)
    assert released.records().column("county").null_count > 0


def test_only_rows_that_meet_the_condition_count(people):
    released = plan(people, where="age >= 18 AND age < 65", tables=[("sex",)]).release(rho=300)
    rows = PEOPLE[PEOPLE.age.between(18, 64)]
    assert released.table("sex").column("value").to_pylist() == pytest.approx(
        [(rows.sex == key).sum() for key in ("f", "m")], abs=5
    )


def test_a_dry_run_says_the_errors_of_the_release_and_charges_nothing(people):
    before = people.left
    explanation = plan(people).explain(rho=0.5)
    assert people.left == before
    released = plan(people).release(rho=0.5)
    assert [table.error for table in explanation.tables] == pytest.approx([*released.errors.values()])
    assert [table.name for table in explanation.tables] == ["state", "county × sex", "age × sex", "everybody"]
    text = str(explanation)
    assert "cost: ρ = 0.5 (zCDP); left: ρ = " in text
    assert "Rows whose `age` is NULL or below 0 or not below 100 count in no table." in text
    assert "Rows whose `county` is NULL or none of the 3 in the lookup count in no table." in text
    assert "Each person counts for at most 4 rows." in text
    assert "<table" in explanation._repr_html_()
    assert "they have no ±" in text


def test_the_same_plan_again_is_replayed_for_free_bit_for_bit(people):
    first = plan(people).release(rho=1)
    left = people.left
    second = plan(people).release(rho=1)
    assert (first.replayed, second.replayed, people.left) == (False, True, left)
    assert second.receipt == first.receipt
    for names in PLANNED:
        assert first.table(*names).equals(second.table(*names))
    assert first.records().equals(second.records())
    anew = plan(people).release(rho=1, again=True)
    assert people.left != left
    assert not anew.table("state").equals(first.table("state"))
    other = plan(people, tables=[*PLANNED[:1], {"by": PLANNED[1], "weight": 3}, *PLANNED[2:]]).release(rho=1)
    assert not other.replayed


def test_files_hold_the_tables_the_records_and_what_is_promised(people, tmp_path):
    released = plan(people).release(rho=1)
    files = released.write(tmp_path / "out")
    assert files == [
        "state.csv", "county_sex.csv", "age_sex.csv", "everybody.csv", "records.parquet", "publication.json",
    ]  # fmt: skip
    by_county = pc.read_csv(tmp_path / "out" / "county_sex.csv")
    assert by_county.column_names == ["state", "county", "sex", "value", "lower", "upper", "integer"]
    assert by_county.column("value").to_pylist() == released.table("county", "sex").column("value").to_pylist()
    assert pq.read_table(tmp_path / "out" / "records.parquet").num_rows == released.records().num_rows
    about = json.loads((tmp_path / "out" / "publication.json").read_text())
    assert about["guarantee"] == "ρ = 1 (zCDP)"
    assert about["receipt"] == released.receipt
    assert about["promises"]["integer"].startswith("whole count, never negative")
    assert [table["error"] for table in about["tables"]] == pytest.approx([*released.errors.values()])
    assert about["plan"]["columns"][0]["rows outside"].startswith("Rows whose `county` is NULL")
    with refuses(dp.InvalidArgument, "folder", "a folder with state.csv", "force=True"):
        released.write(tmp_path / "out")
    released.write(tmp_path / "out", "parquet", force=True)
    assert pq.read_table(tmp_path / "out" / "state.parquet").equals(released.table("state"))
    with refuses(dp.InvalidArgument, "format", "'csv' or 'parquet'"):
        released.write(tmp_path / "more", "xlsx")


def test_a_target_is_met_and_one_that_the_budget_cannot_meet_says_what_it_would_reach(people):
    explained = plan(people, tables=[("county", "sex"), {"by": ["state"], "error": 25}]).explain(rho=0.5)
    assert explained.tables[1].largest_error <= 25.001
    with refuses(dp.NotPrivate, "targets that the budget can meet", "state ±", "instead of ± 25"):
        plan(people, tables=[("county", "sex"), {"by": ["state"], "error": 25}]).explain(rho=0.01)
    relative = plan(people, rows=4000, tables=[{"by": ["state"], "error": "2%"}]).explain(rho=1)
    assert relative.tables[0].largest_error <= 40
    assert relative.tables[0].share == pytest.approx(relative.tables[0].error / 2000)
    with refuses(dp.InvalidArgument, "error of state", "a public number of rows", "rows = 100000"):
        plan(people, tables=[{"by": ["state"], "error": "2%"}])


def test_public_totals_are_met(people):
    exact = counts("state")
    totals = [{"by": ["state"], "counts": {"B": int(exact["B"]), "A": int(exact["A"])}}]
    released = plan(people, totals=totals).release(rho=1)
    assert released.table("state").column("integer").to_pylist() == exact.tolist()
    with refuses(dp.InvalidArgument, "totals", "agree"):
        plan(people, totals={"state": [1, 2], (): 5})
    with refuses(dp.InvalidArgument, "totals of state", "none for 'B'"):
        plan(people, totals={"state": {"A": 1}})
    with refuses(dp.InvalidArgument, "totals of state", "'C', which is no key"):
        plan(people, totals={"state": {"A": 1, "B": 2, "C": 3}})


def test_the_budget_comes_from_the_call_or_the_plan_and_the_delta_from_the_card(people):
    assert plan(people, budget=dp.ZCDP(0.5)).guarantee() == dp.ZCDP(0.5)
    with opened(delta=1e-9, budget=dp.ApproxDP(9, 1e-3)) as table:
        assert plan(table).guarantee(epsilon=1) == dp.ApproxDP(1, 1e-9)
        assert plan(table, budget={"epsilon": 2}).guarantee() == dp.ApproxDP(2, 1e-9)
        assert plan(table, budget=dp.ApproxDP(1, 1e-6)).guarantee(epsilon=3) == dp.ApproxDP(3, 1e-6)
        assert plan(table, budget=dp.ApproxDP(1, 1e-6)).guarantee(delta=1e-7) == dp.ApproxDP(1, 1e-7)
        with refuses(dp.InvalidArgument, "epsilon", "min_epsilon"):
            plan(table).explain(1e-5)
    with refuses(dp.InvalidArgument, "a budget", "none", "epsilon=1 and delta=1e-9"):
        plan(people).explain()
    with refuses(dp.InvalidArgument, "rho", "rho and epsilon"):
        plan(people).explain(1, rho=1)
    with refuses(dp.InvalidArgument, "expected at least", "min_epsilon"):
        plan(people).explain(rho=1e-10)
    with refuses(dp.InvalidArgument, "budget", "epsilon and rho"):
        plan(people, budget={"rho": 1, "epsilon": 1})
    with opened() as without, refuses(dp.InvalidArgument, "delta", "Gaussian noise"):
        plan(without).explain(1)


def test_a_cost_that_the_accounts_never_add_up_is_refused_with_one_that_they_do(people):
    with refuses(dp.NotPrivate, "rho, which is what the accounts", "pass rho=0.012"):
        plan(people).explain(1)
    with opened(budget=dp.ApproxDP(9, 1e-6)) as table, refuses(dp.NotPrivate, "epsilon and delta", "pass epsilon="):
        plan(table).explain(rho=0.01)
    with opened(budget=dp.PureDP(9)) as table, refuses(dp.NotPrivate, "a budget with a delta", "ε = 9", "delta = 1e-6"):
        plan(table).explain(1, delta=1e-9)


def test_what_the_accounts_cannot_pay_is_said_by_the_dry_run_and_refused(people):
    assert "would be refused: cost" in str(plan(people).explain(rho=2000))
    before = people.left
    with refuses(dp.BudgetExceeded, "cost"):
        plan(people).release(rho=2000)
    assert people.left == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tables": []}, ["tables", "a list of tables"]),
        ({"tables": "state"}, ["tables", "a list of tables"]),
        ({"tables": [("state",), ("state",)]}, ["tables", "each table once", "state twice"]),
        ({"tables": [("county",), ("state", "county")]}, ["tables", "county and state × county, one table"]),
        ({"tables": [("sex", "sex")]}, ["tables[0].by", "'sex' twice"]),
        ({"tables": [{"bye": ["sex"]}]}, ["tables[0].bye", "write 'by'"]),
        ({"tables": [("sexx",)]}, ["tables", "'sexx'", "write 'sex'"]),
        ({"tables": [("who",)]}, ["columns.who", "the unit of the card", "leave it out"]),
        ({"tables": [()]}, ["a table with a column"]),
        ({"tables": [{"by": ["sex"], "error": "2"}], "rows": 10}, ["error", 'Fix: write "2%"']),
        ({"tables": [{"by": ["sex"], "weight": -1}]}, ["tables[0].weight"]),
        ({"lookups": {"geo": {"A1": "A"}, "gio": {}}}, ["lookups", "'gio'", "'geo'"]),
        ({"lookups": {"geo": {"state": ["A", None], "county": ["A1", "B1"]}}}, ["lookup of geo", "a state for every"]),
        ({"nested": {"geo": "state"}}, ["nested.geo", "a list of levels"]),
        ({"columns": {"county": ["A1"]}}, ["nested.geo", "'county' elsewhere"]),
        ({"objective": "least"}, ["objective", "'sum' or 'largest'"]),
        ({"whole": "yes"}, ["whole", "true or false"]),
        ({"where": "age"}, ["where", "a condition"]),
        ({"budget": 1}, ["budget", "ApproxDP"]),
        ({"table": None}, ["table", "an open table"]),
        ({"about": "patients"}, ["about", "one of people"]),
    ],
)
def test_what_is_wrong_about_a_plan_is_refused_when_it_is_made(people, options, words):
    with refuses(dp.DitherError, *words):
        plan(people, **options)


def test_a_table_of_a_billion_cells_is_refused_when_the_plan_is_made(people):
    keys = {name: {"column": "age", "keys": [*range(1000)]} for name in "ijk"}
    with refuses(dp.InvalidArgument, "table i × j × k", "1,000,000,000"):
        plan(people, tables=["i", "j", "k", ("i", "j", "k")], columns=keys)
    separate = plan(people, tables=["i", "j", "k"], columns=keys)
    assert "No whole counts and no records" in str(separate.explain(rho=1))
    assert "No whole counts and no records, as the plan says." in str(plan(people, whole=False).explain(rho=1))


def test_a_plan_is_shown_without_reading_anything(people):
    assert repr(plan(people)) == "Plan('people', state, county × sex, age × sex, everybody; 15 cells)"
    assert "expected ± of each cell" in str(plan(people, budget=dp.ZCDP(1)))
    assert "release(rho=0.05) publishes" in plan(people)._repr_html_()
    assert "expected ±" in plan(people, budget=dp.ZCDP(1))._repr_html_()
    released = plan(people).release(rho=1)
    assert "county" in str(released)
    assert "<table" in released._repr_html_()


def test_one_of_several_tables_is_published_and_people_with_budgets_pay():
    frames = {"visits": pa.Table.from_pandas(PEOPLE[["who", "sex"]]), "others": pa.table({"who": [1], "age": [3]})}
    with dp.open(frames, unit="who", keys={"sex": ["f", "m"]}, max_rows=4, budget=dp.ZCDP(1000)) as clinic:
        released = Plan(table=clinic, tables=["sex"], about="visits").release(rho=300)
        assert released.table("sex").column("value").to_pylist() == pytest.approx(
            [(PEOPLE.sex == key).sum() for key in ("f", "m")], abs=5
        )
        with refuses(dp.InvalidArgument, "about", "visits, others", "none"):
            Plan(table=clinic, tables=["sex"])


def test_people_with_accounts_of_their_own_are_charged(tmp_path):
    pq.write_table(pa.Table.from_pandas(PEOPLE), tmp_path / "people.parquet")
    (tmp_path / "people.toml").write_text(
        'name = "people"\nsource = "people.parquet"\nunit = "who"\nmax_rows = 4\nledger = "people.ledger"\n'
        '[budget]\nrho = 400\nper = "person"\n[columns]\nwho = "integer"\nage = "integer"\ncounty = "text"\n'
        'sex = { type = "text", keys = ["f", "m"] }\n'
    )
    with dp.open(tmp_path / "people.toml") as table:
        one = Plan(table=table, tables=["sex"])
        assert "People with less than ρ = 300" in str(one.explain(rho=300))
        released = one.release(rho=300)
        assert "So far everybody can pay." in str(released)
        exact = [(PEOPLE.sex == key).sum() for key in ("f", "m")]
        assert released.table("sex").column("value").to_pylist() == pytest.approx(exact, abs=5)
        with refuses(dp.BudgetExceeded, "cost"):
            one.release(rho=300, again=True)
        assert one.release(rho=300).replayed
