"""Paths to the person that a draft proposes, from foreign keys and from names."""

from __future__ import annotations

from dither.tables.draft_paths import ForeignKey, proposed_paths
from support import each

SCHEMA = {
    "customer": {"c_custkey": "integer", "c_name": "text"},
    "orders": {"o_orderkey": "integer", "o_custkey": "integer"},
    "lineitem": {"l_orderkey": "integer", "l_number": "integer"},
}


@each(
    ("own", "referred", "path"),
    [
        ({"order_id": "integer"}, {"id": "integer"}, "orders via order_id = id"),
        ({"orders_id": "integer"}, {"id": "integer"}, "orders via orders_id = id"),
        ({"order_id": "text"}, {"order_id": "text"}, "orders via order_id = order_id"),
        ({"order_id": "text"}, {"order_id": "integer"}, None),
        ({"order_id": "number"}, {"order_id": "number"}, None),
        ({"id": "integer"}, {"id": "integer"}, None),
        ({"amount": "integer"}, {"amount": "integer"}, None),
    ],
)
def test_columns_of_one_name_are_proposed_where_both_can_be_keys(own, referred, path):
    result = proposed_paths({"orders": {"who": "text", **referred}, "items": own}, "who", {})
    assert {name: str(item.path) for name, item in result.items()} == ({} if path is None else {"items": path})
    assert not any(item.declared for item in result.values())


def test_paths_go_on_from_table_to_table_and_foreign_keys_come_first():
    by_name = proposed_paths(SCHEMA, "c_custkey", {})
    assert {name: str(item.path) for name, item in by_name.items()} == {
        "orders": "customer via o_custkey = c_custkey",
        "lineitem": "orders via l_orderkey = o_orderkey",
    }
    key = ForeignKey(("l_number",), "orders", ("o_orderkey",))
    declared = proposed_paths(SCHEMA, "o_custkey", {"lineitem": [key]})
    assert str(declared["lineitem"].path) == "orders via l_number = o_orderkey"
    assert declared["lineitem"].declared
    assert "customer" in declared
