"""Publications: tables with the names that are asked for, margins, sums, and how they are shown.

Files of a publication: names that differ everywhere, keys of every type, NULL apart from empty text.
"""

from __future__ import annotations

import json
from datetime import date
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest

import dither as dp
from dither.publish import Attribute, Domain, MarginalPlan, table_spec
from dither.publish.publication import _weights_by_key, description, file_names, writers
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
    assert (publication.cost, publication.left, publication.replayed) == (dp.ZCDP(0.5), None, False)
    assert [*publication.errors] == [("county", "sex"), ("state",)]


WRITTEN = Domain(
    [
        Attribute.flat("day", pa.array([date(2024, 1, 1), date(2024, 1, 2)])),
        Attribute.flat("a/b", ["", "x"], null=True),
    ]
)


@pytest.fixture(scope="module")
def written():
    plan = MarginalPlan(WRITTEN, [table_spec(WRITTEN, ["day", "a/b"]), table_spec(WRITTEN, [])])
    return plan.release({(1, 1): [[500, 400, 300], [200, 100, 50]]}, dp.ZCDP(0.5))


def test_names_of_files_differ_in_more_than_case_and_never_leave_the_folder():
    names = [("State",), ("state",), ("a/b", "..", "c"), ("records",), ("publication",), ()]
    assert file_names(names, "csv") == [
        "State.csv", "state_2.csv", "a_b___c.csv", "records_2.csv", "publication_2.csv", "everybody.csv",
    ]  # fmt: skip


def test_null_and_empty_text_are_told_apart_in_csv(written, tmp_path):
    files = written.write(tmp_path)
    assert files == ["day_a_b.csv", "everybody.csv", "records.parquet", "publication.json"]
    options = pc.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""])
    table = pc.read_csv(tmp_path / "day_a_b.csv", convert_options=options)
    assert table.column("a/b").to_pylist()[:3] == ["", "x", None]
    assert table.column("day").to_pylist()[0] == date(2024, 1, 1)


def test_the_description_is_the_same_whenever_it_is_asked_for(written):
    files = [*writers(written, "csv")][:2]
    first, second = (json.dumps(description(written, files)) for _ in range(2))
    assert first == second
    assert json.loads(first)["tables"][0]["cells"] == 6


def test_a_folder_that_is_a_file_is_refused(written, tmp_path):
    (tmp_path / "file").write_text("x")
    with refuses(dp.InvalidArgument, "folder", "a folder"):
        written.write(tmp_path / "file")


def test_weights_of_many_keys_take_linear_work():
    class Key(str):
        __slots__ = ()
        hashed = 0

        def __hash__(self):
            Key.hashed += 1
            return super().__hash__()

    rows = [Key(i) for i in range(200)]
    column = SimpleNamespace(to_pylist=lambda: rows)
    keys = SimpleNamespace(columns=[column], column_names=["county"])
    assert _weights_by_key(keys, {str(i): i for i in range(200)}) == [*range(200)]
    assert Key.hashed <= 10 * len(rows)
