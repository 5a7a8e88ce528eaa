"""Files of a publication: names that differ everywhere, keys of every type, NULL apart from empty text."""

from __future__ import annotations

import json
from datetime import date

import pyarrow as pa
import pyarrow.csv as pc
import pytest

import dither as dp
from dither.publish import Attribute, Domain, MarginalPlan, table_spec
from dither.publish.publication_files import description, file_names, writers
from support import refuses

DOMAIN = Domain(
    [
        Attribute.flat("day", pa.array([date(2024, 1, 1), date(2024, 1, 2)])),
        Attribute.flat("a/b", ["", "x"], null=True),
    ]
)


@pytest.fixture(scope="module")
def publication():
    plan = MarginalPlan(DOMAIN, [table_spec(DOMAIN, ["day", "a/b"]), table_spec(DOMAIN, [])])
    return plan.release({(1, 1): [[500, 400, 300], [200, 100, 50]]}, dp.ZCDP(0.5))


def test_names_of_files_differ_in_more_than_case_and_never_leave_the_folder():
    names = [("State",), ("state",), ("a/b", "..", "c"), ("records",), ("publication",), ()]
    assert file_names(names, "csv") == [
        "State.csv", "state_2.csv", "a_b___c.csv", "records_2.csv", "publication_2.csv", "everybody.csv",
    ]  # fmt: skip


def test_null_and_empty_text_are_told_apart_in_csv(publication, tmp_path):
    files = publication.write(tmp_path)
    assert files == ["day_a_b.csv", "everybody.csv", "records.parquet", "publication.json"]
    options = pc.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""])
    table = pc.read_csv(tmp_path / "day_a_b.csv", convert_options=options)
    assert table.column("a/b").to_pylist()[:3] == ["", "x", None]
    assert table.column("day").to_pylist()[0] == date(2024, 1, 1)


def test_the_description_is_the_same_whenever_it_is_asked_for(publication):
    files = [*writers(publication, "csv")][:2]
    first, second = (json.dumps(description(publication, files)) for _ in range(2))
    assert first == second
    assert json.loads(first)["tables"][0]["cells"] == 6


def test_a_folder_that_is_a_file_is_refused(publication, tmp_path):
    (tmp_path / "file").write_text("x")
    with refuses(dp.InvalidArgument, "folder", "a folder"):
        publication.write(tmp_path / "file")
