"""Paths to the person: whose a row is, that removing a person changes nobody else's rows, and what a card may say."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.errors import InvalidArgument
from dither.tables.card import toml
from dither.tables.card.model import Card
from dither.tables.engines import connect
from support import refuses
from tables.conftest import fill

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # Py4J leaves them to the collector

TEXT = {"type": "text"}
SECTIONS: dict[str, Any] = {
    "stays": {"unit": "patient", "columns": {"stay": "integer", "ward": "text", "patient": "text"}},
    "orders": {"person": "stays via ward = ward AND stay = stay", "columns": {"stay": "integer", "ward": "text",
                                                                              "id": "integer"}},
    "doses": {"person": "orders via order_id = id", "columns": {"order_id": "integer", "mg": "integer"}},
}  # fmt: skip
NAMES = ["", "ann", "Ann", "ánn", "bob", "ß", "🎲", None]
Rows = dict[str, list[dict[str, Any]]]


def card(sources: dict[str, str] | None = None, **changed: Any) -> Card:
    """The card of three tables, of which one names people and the others lead to it."""
    sections = {name: {"source": (sources or {}).get(name, name), **about, **changed.get(name, {})}
                for name, about in SECTIONS.items()}  # fmt: skip
    others = {name: value for name, value in changed.items() if name not in SECTIONS}
    return toml.parse({"name": "clinic", "tables": sections, "budget": {"epsilon": 100}, **others})


def random_rows(pick: random.Random) -> Rows:
    """Rows whose keys several people have, or nobody, or are missing in part."""

    def stay() -> dict[str, Any]:
        return {"stay": pick.choice([None, 1, 1, 2]), "ward": pick.choice([None, "a", "A", ""])}

    return {
        "stays": [{**stay(), "patient": pick.choice(NAMES)} for _ in range(pick.randint(1, 12))],
        "orders": [{**stay(), "id": pick.choice([None, 1, 2, 3, 3])} for _ in range(pick.randint(1, 12))],
        "doses": [{"order_id": pick.choice([None, 1, 2, 3, 4]), "mg": n} for n in range(pick.randint(1, 12))],
    }  # fmt: skip


def owners(rows: Rows) -> dict[str, list[Any]]:
    """Whose each row is, by the definition: the least of the people who have the key, byte by byte."""

    def least(found: list[Any]) -> Any:
        return min((person for person in found if person is not None), key=str.encode, default=None)

    result = {"stays": [row["patient"] for row in rows["stays"]]}
    pairs = list(zip(rows["stays"], result["stays"], strict=True))
    result["orders"] = [
        least([who for other, who in pairs if None not in (row["stay"], row["ward"])
               and (other["stay"], other["ward"]) == (row["stay"], row["ward"])])
        for row in rows["orders"]
    ]  # fmt: skip
    orders = list(zip(rows["orders"], result["orders"], strict=True))
    result["doses"] = [
        least([who for other, who in orders if row["order_id"] is not None and other["id"] == row["order_id"]])
        for row in rows["doses"]
    ]
    return result


def arrow(rows: Rows) -> dict[str, pa.Table]:
    kinds = {"integer": pa.int64(), "text": pa.string()}
    return {
        name: pa.table({column: pa.array([row[column] for row in rows[name]], kinds[kind])
                        for column, kind in SECTIONS[name]["columns"].items()})
        for name in SECTIONS
    }  # fmt: skip


def attributed(sources: dict[str, Any], known: Card) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of each table as an engine reads them, with their person."""
    result = {}
    with connect(sources, known) as engine:
        for name in SECTIONS:
            node = engine.private(name).as_("t")
            lines = engine.run(f"SELECT * FROM {node.sql(dialect=engine.dialect)}").to_pylist()
            result[name] = sorted((tuple(line.values()) for line in lines), key=repr)
    return result


def expected(rows: Rows) -> dict[str, list[tuple[Any, ...]]]:
    whose = owners(rows)
    result = {"stays": sorted((tuple(row.values()) for row in rows["stays"]), key=repr)}
    for name in ("orders", "doses"):
        lines = [(*row.values(), person) for row, person in zip(rows[name], whose[name], strict=True)]
        result[name] = sorted(lines, key=repr)
    return result


def test_a_row_is_of_the_least_person_that_has_its_key_and_removing_one_changes_nobody_else():
    known, shared, unreached = card(), 0, 0
    for seed in range(40):
        rows = random_rows(random.Random(seed))
        whole, whose = attributed(arrow(rows), known), owners(rows)
        assert whole == expected(rows), seed
        unreached += whose["doses"].count(None)
        shared += len({(row["stay"], row["ward"]) for row in rows["stays"]}) < len(rows["stays"])
        for person in {who for listed in whose.values() for who in listed} - {None}:
            left = {
                name: [row for row, who in zip(rows[name], whose[name], strict=True) if who != person] for name in rows
            }
            others = {name: [line for line in whole[name] if line[-1] != person] for name in rows}
            assert attributed(arrow(left), known) == others, (seed, person)
    assert shared > 20
    assert unreached > 20


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["postgres", pytest.param("spark", marks=pytest.mark.slow)])
def test_the_other_engines_read_the_same_people(tmp_path, engine, request):
    place = request.getfixturevalue(engine)
    for seed in range(6):
        rows = random_rows(random.Random(seed))
        tables = arrow(rows)
        if engine == "postgres":
            sources = {name: fill(place, table) for name, table in tables.items()}
        else:
            sources = {name: f"spark::{tmp_path}/{name}-{seed}.parquet" for name in tables}
            for name, table in tables.items():
                pq.write_table(table, tmp_path / f"{name}-{seed}.parquet")
        assert attributed(sources, card(sources)) == expected(rows), seed


def test_a_table_with_a_path_is_asked_about_as_any_other():
    frames = {
        "orders": pa.table({"id": [1, 2, 3], "who": [7, 7, 8]}),
        "items": pa.table({"order_id": [1, 1, 2, 3, 9], "n": [1, 2, 3, 4, 5]}),
    }
    unit = {"orders": "who", "items": "orders via order_id = id"}
    with dp.open(frames, unit=unit, max_rows=4, bounds={"n": (0, 9)}, budget=dp.PureDP(4000)) as table:
        asked = "SELECT COUNT(*) AS c, SUM(n) AS s, COUNT(DISTINCT who) AS p FROM items"
        assert table.sql(asked).release(epsilon=1000).dicts() == [{"c": 4, "s": 10, "p": 2}]
        joined = "SELECT COUNT(*) AS c, SUM(n) AS s FROM orders, items WHERE order_id = id AND who > 7"
        assert table.sql(joined).release(epsilon=1000).dicts() == [{"c": 1, "s": 4}]
        with refuses(InvalidArgument, "a join on the person"):
            table.sql("SELECT COUNT(*) FROM orders JOIN items ON n = who")
        shown = table["items"].agg(n=dp.count()).release(epsilon=100).dicts()
        assert shown == [{"n": 4}]
        assert "orders via order_id = id" in table._repr_html_()


def test_a_person_reached_by_a_path_is_no_column_of_the_table():
    """It is found where no column has the name, so that SQL means what it means on the rows themselves."""
    known = card()
    assert known.tables["doses"].unit == "patient"
    assert list(known.tables["doses"].stated_columns) == ["order_id", "mg"]
    taken = card(orders={"columns": {**SECTIONS["orders"]["columns"], "PATIENT": "text"}})
    assert taken.tables["orders"].unit == "stays.patient"
    assert taken.tables["doses"].unit == "stays.patient"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"doses": {"person": "order_id = id"}}, "tables.doses.person: expected a path to the person"),
        ({"doses": {"person": "order via order_id = id"}}, "doses.person: .* Fix: write 'orders'"),
        ({"doses": {"person": "orders via oder_id = id"}}, "doses.person: expected columns .* write 'order_id'"),
        ({"doses": {"person": "orders via order_id = ward"}}, "doses.person: expected keys .* got integer = text"),
        ({"doses": {"unit": "order_id"}}, "tables.doses.person: expected a unit or a path to the person, got both"),
        ({"orders": {"person": "doses via id = order_id"}}, "person: .* got a path that comes back to it"),
        ({"stays": {"unit": None}}, "orders.person: expected a path that ends at a column of the person"),
        ({"rows_without_unit": "each"}, 'rows_without_unit: expected "drop" where a person is reached by a path'),
    ],
)  # fmt: skip
def test_mistakes_in_paths(changed, said):
    with pytest.raises(InvalidArgument, match=said):
        card(**changed)


def test_the_steward_is_told_of_rows_that_lead_to_nobody_and_of_keys_with_several_rows():
    rows: Rows = {
        "stays": [{"stay": 1, "ward": "a", "patient": who} for who in ("ann", "bob", None)],
        "orders": [{"stay": stay, "ward": "a", "id": 1} for stay in (1, 2, None)],
        "doses": [{"order_id": order, "mg": 1} for order in (1, 2)],
    }
    with connect(arrow(rows), card()) as engine:
        assert engine.count_beyond_path("orders") == (2, 1)
        assert engine.count_beyond_path("doses") == (1, 0)


def test_foreign_keys_of_a_database_are_proposed_as_paths(tmp_path):
    from dither.tables.draft import draft

    place = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(place)) as connection:
        connection.execute("CREATE TABLE stays (stay INT, ward TEXT, patient TEXT, PRIMARY KEY (stay, ward))")
        connection.execute(
            "CREATE TABLE orders (id INT PRIMARY KEY, s INT, w TEXT, FOREIGN KEY (s, w) REFERENCES stays (stay, ward))"
        )
        connection.execute("CREATE TABLE doses (order_id INT, mg INT)")
    text = draft({name: f"{place}::{name}" for name in ("stays", "orders", "doses")}, "patient", "clinic")
    assert 'person = "stays via s = stay AND w = ward"  # a foreign key of the database' in text
    assert 'person = "orders via order_id = id"  # proposed by the names of columns: check it' in text
