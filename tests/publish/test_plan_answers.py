"""What a plan answers: the order of columns, keys of whole numbers, sums by key, and fixes that work in one try."""

import json
import re

import pyarrow as pa
import pytest
from tests.support import refuses

import dither as dp
from dither.publish import Attribute, Domain, Plan
from dither.publish.plan_file import draft_plan
from dither.publish.plan_file import plan as plan_file
from support import noted

ROWS = pa.table(
    {
        "who": [*range(1200)],
        "sex": ["f", "m", "m"] * 400,
        "month": [1, 2, 3, 4] * 300,
        "place": ["Alder", "Birch"] * 600,
    }
)
KEYS = {"sex": ["f", "m"], "place": ["Alder", "Birch"]}


@pytest.fixture(scope="module")
def people():
    stated = {"unit": "who", "max_rows": 1, "keys": KEYS, "bounds": {"month": (1, 4)}, "delta": 1e-9}
    with dp.open(ROWS, **stated, budget=dp.ApproxDP(1000, 1e-3)) as table:
        yield table


def test_whole_numbers_in_bins_of_one_are_keys_themselves(people):
    plan = Plan(table=people, tables=[("month",)], columns={"month": {"width": 1}})
    assert plan.release(epsilon=50).table("month").column("month").to_pylist() == [1, 2, 3, 4]
    beside = Plan(table=people, tables=[("month",)], columns={"month": {"edges": [1, 2, 3], "other": "later"}})
    assert beside.domain.attributes[0].keys[0].to_pylist() == ["1", "2", "later"]
    assert Attribute.binned("x", [1, 2, 3]).keys[0].to_pylist() == ["[1, 2)", "[2, 3)"]  # 1.5 is not 1
    assert "# the whole numbers 1 to 4" in draft_plan(people.card, "people.toml")


def test_columns_rows_and_files_follow_the_order_of_names(people, tmp_path):
    out = Plan(table=people, tables=[("month",), ("sex", "month")]).release(epsilon=50)
    table = out.table("sex", "month")
    assert table.column_names[:2] == ["sex", "month"]
    assert table.column("sex").to_pylist() == ["f"] * 4 + ["m"] * 4
    assert table.column("integer").to_pylist() == pytest.approx([100] * 4 + [200] * 4, abs=25)
    other = out.table(["month", "sex"])
    assert other.column("month").to_pylist() == [1, 1, 2, 2, 3, 3, 4, 4]
    assert other.column("integer").to_pylist() == pytest.approx([100, 200] * 4, abs=25)
    assert "sex_month.csv" in out.write(tmp_path)
    assert (tmp_path / "sex_month.csv").read_text().startswith('"sex","month","value"')


def test_totals_stand_in_the_order_of_their_names(people, tmp_path):
    totals = {("sex", "month"): [100] * 4 + [200] * 4}
    plan = Plan(table=people, tables=[("month",), ("sex", "month"), ("place",)], totals=totals)
    out = plan.release(epsilon=50)
    assert out.table("sex").column("value").to_pylist() == pytest.approx([400, 800])
    assert "sex × month: 8 cells, ± 0 (public)" in str(out)
    assert noted(out, "totals_of_bounded_rows")
    out.write(tmp_path)
    described = json.loads((tmp_path / "publication.json").read_text())
    assert sorted(described["plan"]["totals"][0]["counts"]) == [100] * 4 + [200] * 4
    assert "by more than the ±" in described["promises"]["integer"]


def test_a_sum_takes_weights_by_key_and_shows_its_error(people):
    out = Plan(table=people, tables=[("month",), ("sex", "month")]).release(epsilon=50)
    assert out.sum_of("sex", {"m": 1}).value == pytest.approx(800, abs=20)
    total = out.sum_of(["sex", "month"], {("f", 1): 1, ("m", 2): 1})
    assert total.value == pytest.approx(300, abs=20)
    assert out.sum_of(["sex", "month"], [1, 0, 0, 0, 0, 1, 0, 0]) == total
    assert re.fullmatch(r"SumEstimate\(\d+\.\d+ ± \d\.\d+ \(95 %\)\)", repr(total))
    with refuses(dp.InvalidArgument, "weights", "keys of sex", "'x'"):
        out.sum_of(["sex"], {"x": 1})
    with refuses(dp.InvalidArgument, "table", "'moths'", "month"):
        out.table("moths")


def test_the_same_tables_in_another_order_are_the_same_request(people):
    first = Plan(table=people, tables=[("sex", "month"), ("sex",)]).release(epsilon=3)
    second = Plan(table=people, tables=[("sex",), ("sex", "month")]).release(epsilon=3)
    assert not first.replayed
    assert second.replayed
    assert second.table("sex").equals(first.table("sex"))


@pytest.mark.parametrize("budget", [{"epsilon": 0.2}, {"epsilon": 0.2, "delta": 1e-6}])
def test_the_budget_that_a_target_needs_is_enough_and_hardly_too_much(people, budget):
    plan = Plan(table=people, tables=[{"by": ["sex"], "error": 3}, ("month",)])
    with refuses(dp.NotPrivate, "instead of ± 3.0", "pass epsilon=") as refusal:
        plan.explain(**budget)
    assert "e+" not in str(refusal.value)
    epsilon = float(str(refusal.value).split("pass epsilon=")[1].rstrip("."))
    plan.explain(**{**budget, "epsilon": epsilon})
    with refuses(dp.NotPrivate, "instead of"):
        plan.explain(**{**budget, "epsilon": epsilon * 0.98})


def test_the_rho_that_a_target_needs_is_enough_and_hardly_too_much():
    with dp.open(ROWS, keys=KEYS, budget=dp.ZCDP(10)) as table:
        plan = Plan(table=table, tables=[{"by": ["sex"], "error": 3}])
        with refuses(dp.NotPrivate, "pass rho=") as refusal:
            plan.explain(rho=0.01)
        rho = float(str(refusal.value).split("pass rho=")[1].rstrip("."))
        plan.explain(rho=rho)
        with refuses(dp.NotPrivate):
            plan.explain(rho=rho * 0.98)


def test_places_of_a_lookup_are_named():
    with refuses(dp.InvalidArgument, "'B1' in 'A' and 'B'", "tell them apart"):
        Attribute.nested("geo", ["state", "county"], {"state": ["A", "A", "B"], "county": ["A1", "B1", "B1"]})
    with refuses(dp.InvalidArgument, "from the coarsest to the finest", 'levels = ["state", "county"]'):
        Attribute.nested("geo", ["county", "state"], {"state": ["A", "A", "B"], "county": ["A1", "A2", "B1"]})
    with refuses(dp.InvalidArgument, "a state for every place", "none for 'A2'"):
        Attribute.nested("geo", ["state", "county"], {"state": ["A", None, "B"], "county": ["A1", "A2", "B1"]})


def test_a_finest_level_of_another_name_is_said_under_nested(people):
    places = {"Alder": "North", "Birch": "South"}
    with refuses(dp.InvalidArgument, "nested.geo", "under nested.geo"):
        Plan(table=people, tables=[("state",)], nested={"geo": ["state", "county"]}, lookups={"geo": places})
    section = {"levels": ["state", "county"], "column": "place"}
    Plan(table=people, tables=[("state",)], nested={"geo": section}, lookups={"geo": places})


def test_mistakes_of_a_plan_are_named_where_they_stand(people, tmp_path):
    with refuses(dp.InvalidArgument, "totals.by", "'place', which no table has", 'such as ["place"]'):
        Plan(table=people, tables=[("sex",)], totals={"place": [600, 600]})
    with refuses(dp.DitherError, "values of one row", "SUM") as refusal:
        Plan(table=people, tables=[("sex",)], where="SUM(month) > 3")
    assert "write SUM" not in str(refusal.value)
    place = tmp_path / "plan.toml"
    place.write_text('tables = [["sex"]]\n[budget]\nepsilon = 1\nmax_rows = 1\n')
    with refuses(dp.DitherError, "budget.max_rows", "above the first line in [brackets]"):
        plan_file(place, people)


def test_axes_of_names_follow_the_names():
    domain = Domain([Attribute.flat("a", [1, 2]), Attribute.flat("b", [1])])
    assert domain.axes(["b", "a"]) == [1, 0]
