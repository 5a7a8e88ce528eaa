"""Publications: tables with the names that are asked for, margins, sums, and how they are shown."""

from __future__ import annotations

import numpy as np
import pytest

import dither as dp
from dither.publish import Attribute, Domain, MarginalPlan, table_spec
from support import refuses

PLACES = {"state": ["A", "A", "B"], "county": ["A1", "A2", "B1"]}
DOMAIN = Domain([Attribute.nested("geo", ["state", "county"], PLACES), Attribute.flat("sex", ["f", "m"])])


@pytest.fixture(scope="module")
def publication():
    plan = MarginalPlan(DOMAIN, [table_spec(DOMAIN, ["county", "sex"]), table_spec(DOMAIN, ["state"])])
    return plan.release({(2, 1): [[900, 800], [700, 600], [500, 400]]}, dp.ZCDP(0.5))


def test_every_name_is_a_column_and_a_place_stands_beside_the_one_that_it_lies_in(publication):
    table = publication.table("state", "county", "sex")
    assert table.column_names == ["state", "county", "sex", "value", "lower", "upper", "integer"]
    assert table.column("state").to_pylist() == ["A"] * 4 + ["B"] * 2
    assert publication.table("county").column_names[0] == "county"


def test_tables_are_margins_of_one_another(publication):
    by_county = publication.table("county", "sex")
    by_state = publication.table("state")
    for column in ("value", "integer"):
        fine = by_county.column(column).to_numpy()
        np.testing.assert_allclose(by_state.column(column).to_numpy(), [fine[:4].sum(), fine[4:].sum()])
    total = publication.sum_of(["state"], [1, 1])
    assert total.value == pytest.approx(publication.table().column("value")[0].as_py())


def test_a_table_that_was_not_planned_is_refused(publication):
    with refuses(dp.InvalidArgument, "table", "age"):
        publication.table("age")


def test_a_publication_is_shown_with_its_cost_and_errors(publication):
    assert str(publication).splitlines()[0] == "cost: ρ = 0.5 (zCDP)"
    assert "county × sex: 6 cells, ± " in str(publication)
    assert "expected ± (95 %)" in publication._repr_html_()
    assert (publication.cost, publication.left, publication.replayed) == ("ρ = 0.5 (zCDP)", "", False)
    assert [*publication.errors] == [("county", "sex"), ("state",)]
