from dither.publish.lookup_places import misplaced, places_without, some


def test_many_places_are_cut_and_counted():
    assert some([str(i) for i in range(9)]) == "0, 1, 2, 3, 4 and 4 more"


def test_places_without_a_parent_are_named():
    lookup = {"state": ["A", None, None], "county": ["A1", "B1", "C1"]}
    assert places_without(["state", "county"], "state", lookup) == "'B1', 'C1'"


def test_levels_in_the_wrong_order_are_told_apart_from_a_place_in_two():
    reversed_levels = {"state": ["A", "A", "B"], "county": ["A1", "A2", "B1"]}
    assert "coarsest to the finest" in str(misplaced("geo", ["county", "state"], "state", reversed_levels))
    crossing = {"state": ["A", "B", "B"], "county": ["X", "X", "Y"]}
    assert "tell them apart" in str(misplaced("geo", ["state", "county"], "county", crossing))
