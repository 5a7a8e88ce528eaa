"""Public domains: keys, bins, levels inside one another, sizes and lookups."""

from __future__ import annotations

import numpy as np
import pytest

import dither as dp
from dither.publish import Attribute, Domain
from dither.publish.domain import contains, finest
from support import refuses

PLACES = {"state": ["B", "A", "B", "A"], "county": ["B2", "A1", "B1", "A2"]}


def geography():
    return Attribute.nested("geography", ["state", "county"], PLACES)


def test_children_stand_together_in_the_order_of_their_parents():
    attribute = geography()
    assert [keys.to_pylist() for keys in attribute.keys] == [["B", "A"], ["B2", "B1", "A1", "A2"]]
    assert [parents.tolist() for parents in attribute.parents] == [[0, 0], [0, 0, 1, 1]]
    assert [children.tolist() for children in attribute.children] == [[2], [2, 2]]
    assert attribute.ancestors(2, 1).tolist() == [0, 0, 1, 1]


def test_codes_are_places_among_the_keys():
    assert geography().codes(["A1", "elsewhere", "B2"]).tolist() == [2, -1, 0]
    assert geography().codes(["A"], depth=1).tolist() == [1]


def test_a_table_takes_the_finer_of_two_levels_of_one_attribute():
    domain = Domain([geography(), Attribute.flat("sex", ["f", "m"])])
    assert domain.levels(["state", "county", "sex"]) == (2, 1)
    assert domain.names((1, 0)) == ("state",)
    assert finest([(1, 0), (0, 1)]) == (1, 1)
    assert contains((2, 1), (2, 0))
    assert not contains((1, 1), (2, 0))


def test_a_lookup_that_misses_a_place_is_refused():
    with refuses(dp.InvalidArgument, "lookup of geography", "every state of the domain", "none for 'C'"):
        Attribute.nested("geography", ["state", "county"], PLACES, keys={"state": ["A", "B", "C"]})
    with refuses(dp.InvalidArgument, "a state for every place", "none for 'A1'"):
        Attribute.nested("geography", ["state", "county"], {**PLACES, "state": ["B", None, "B", "A"]})
    with refuses(dp.InvalidArgument, "a column county", "none"):
        Attribute.nested("geography", ["state", "county"], {"state": ["A"]})


def test_a_place_in_two_places_is_refused():
    with refuses(dp.InvalidArgument, "every county in one place"):
        Attribute.nested("g", ["state", "county"], {"state": ["A", "B"], "county": ["x", "x"]})
    with refuses(dp.InvalidArgument, "every county once"):
        Attribute.nested("g", ["state", "county"], {"state": ["A", "A"], "county": ["x", "x"]})
    with refuses(dp.InvalidArgument, "every sex once"):
        Attribute.flat("sex", ["f", "f"])


def test_a_table_of_a_billion_cells_is_refused():
    domain = Domain([Attribute.flat(name, range(1000)) for name in "ijk"])
    with refuses(dp.InvalidArgument, "table i × j × k", "100,000,000 cells", "1,000,000,000", "synthetic records"):
        domain.check_size((1, 1, 1))
    domain.check_size((1, 1, 0))


@pytest.mark.parametrize("edges", [[1], [0, 0], [3, 1], [0, float("inf")], [0, float("nan")]])
def test_edges_of_bins_increase(edges):
    with refuses(dp.InvalidArgument, "increasing"):
        Attribute.binned("age", edges)


def test_names_are_different_and_known():
    with refuses(dp.InvalidArgument, "different names", "sex"):
        Domain([Attribute.flat("sex", ["f"]), Attribute.flat("sex", ["m"])])
    with refuses(dp.InvalidArgument, "names among sex", "age"):
        Domain([Attribute.flat("sex", ["f"])]).levels(["age"])
    with refuses(dp.WrongType, "a list of names"):
        Domain([Attribute.flat("sex", ["f"])]).levels("sex")


def test_a_million_places_are_looked_up_quickly():
    leaves = np.arange(200_000)
    attribute = Attribute.nested("g", ["a", "b"], {"a": leaves // 1000, "b": leaves})
    assert attribute.sizes == (1, 200, 200_000)


def test_null_and_other_values_have_the_last_keys_of_every_level():
    attribute = Attribute.nested("geography", ["state", "county"], PLACES, null=True, other="other")
    assert [keys.to_pylist() for keys in attribute.keys] == [
        ["B", "A", "other", None],
        ["B2", "B1", "A1", "A2", "other", None],
    ]
    assert [parents.tolist() for parents in attribute.parents] == [[0, 0, 0, 0], [0, 0, 1, 1, 2, 3]]
    assert attribute.codes(["A1", "elsewhere", None]).tolist() == [2, 4, 5]
    only_null = Attribute.flat("sex", ["f", "m"], null=True)
    assert only_null.codes(["m", "x", None]).tolist() == [1, -1, 2]
    assert Attribute.flat("sex", ["f", "m"], other="x").codes(["m", "?", None]).tolist() == [1, 2, -1]
    assert Attribute.flat("month", [1, 2], other=-1).keys[0].to_pylist() == [1, 2, -1]
    bins = Attribute.binned("age", [0, 18, 120], null=True, other="unknown")
    assert bins.keys[0].to_pylist() == ["[0, 18)", "[18, 120)", "unknown", None]
    assert (bins.edges, bins.null, bins.other) == ((0.0, 18.0, 120.0), True, "unknown")


@pytest.mark.parametrize(("keys", "other"), [(["f", "other"], "other"), ([1, 2], "other"), (["f", "m"], 3)])
def test_a_key_of_other_values_is_of_the_kind_of_the_keys_and_none_of_them(keys, other):
    with refuses(dp.InvalidArgument, "other of sex", "a key of the kind of the keys"):
        Attribute.flat("sex", keys, other=other)
