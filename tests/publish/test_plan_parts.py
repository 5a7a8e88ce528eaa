"""Tables, totals and budgets as they are written in a plan."""

from __future__ import annotations

import pytest

import dither as dp
from dither.publish import Attribute, Domain
from dither.publish.plan_parts import WantedTable, check_repetitions, totals_of, wanted_tables
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
