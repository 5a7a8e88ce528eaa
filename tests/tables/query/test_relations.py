"""What is known of private relations before any row is read."""

from __future__ import annotations

from datetime import date

from dither.errors import InvalidArgument
from dither.tables.card.model import Card, ColumnCard, PrivateTable
from dither.tables.query.operations.base import Range
from dither.tables.query.relations import describe_relation, extent_of, relation_card, relation_schema
from dither.tables.query.tree import (
    Call,
    Column,
    Literal,
    PerPerson,
    PersonAggregate,
    PersonJoin,
    PrivateRows,
    Projection,
    UnionAll,
    Windowed,
    WindowFunction,
)
from support import each, refuses

DAYS = (date(2024, 1, 1), date(2024, 12, 31))
COLUMNS = {
    "who": ColumnCard("integer"),
    "amount": ColumnCard("number", (-5, 10)),
    "region": ColumnCard("text", keys=("a", "b")),
    "day": ColumnCard("date", period=DAYS),
}
OTHER = PrivateTable("", {"id": ColumnCard("integer"), "who": ColumnCard("text")}, "id")
CARD = Card("visits", "", COLUMNS, "who", max_groups=3, max_rows=4, tables={"others": OTHER})
ROWS = PrivateRows()
FIRST = Call("=", (Column("p"), Literal(1)))
NUMBERED = Windowed(ROWS, {"place": WindowFunction("row_number")})


def test_aggregates_of_a_person_have_the_bounds_of_their_values_and_counts_and_sums_have_none():
    kinds = ("count", "count_value", "sum", "mean", "min", "max")
    values = {kind: PersonAggregate(kind, None if kind == "count" else Column("amount")) for kind in kinds}
    columns = relation_schema(CARD, PerPerson(ROWS, {**values, "first": PersonAggregate("min", Column("day"))})).columns
    assert {name: columns[name].bounds for name in kinds} == {
        "count": None, "count_value": None, "sum": None, "mean": (-5, 10), "min": (-5, 10), "max": (-5, 10)
    }  # fmt: skip
    extents = {name: extent_of(columns[name]) for name in kinds}
    assert extents["count"] == Range.whole(1, 2**31)
    assert extents["count_value"] == Range.whole(0, 2**31)
    assert extents["sum"] == Range.of(-10 * 2.0**31, 10 * 2.0**31, 2.0**-76)
    assert extents["mean"] is extents["min"] is extents["max"] is None
    assert columns["first"].period == DAYS


def test_values_of_other_rows_have_the_bounds_and_keys_of_the_column_and_may_be_missing():
    source = Windowed(
        ROWS, {"last": WindowFunction("lag", Column("region")), "x": WindowFunction("max", Column("amount"))}
    )
    columns = relation_schema(CARD, source).columns
    assert columns["last"].keys == ("a", "b", None)
    assert columns["x"].bounds == (-5, 10)


@each(
    ("source", "where", "one_row"),
    [
        (ROWS, None, False),
        (PerPerson(ROWS, {}), None, True),
        (PerPerson(ROWS, {}, {"region": Column("region")}), None, False),
        (PersonJoin(PerPerson(ROWS, {}), PerPerson(ROWS, {}), "full"), None, True),
        (PersonJoin(PerPerson(ROWS, {}), PerPerson(ROWS, {}), "full", on=Literal(True)), None, False),
        (PersonJoin(PerPerson(ROWS, {}), PerPerson(ROWS, {}), "left", on=Literal(True)), None, True),
        (PersonJoin(PerPerson(ROWS, {}), ROWS, "left"), None, False),
        (PersonJoin(PerPerson(ROWS, {}), ROWS, "semi"), None, True),
        (UnionAll((PerPerson(ROWS, {}), PerPerson(ROWS, {}))), None, False),
        (NUMBERED, Call("=", (Column("place"), Literal(1))), True),
        (NUMBERED, Call("and", (Call("<=", (Column("place"), Literal(1))), Column("vip"))), True),
        (NUMBERED, Call("<=", (Column("place"), Literal(2))), False),
        (NUMBERED, Call("or", (Call("=", (Column("place"), Literal(1))), Column("vip"))), False),
        (Windowed(ROWS, {"place": WindowFunction("rank")}), Call("=", (Column("place"), Literal(1))), False),
        (
            Windowed(ROWS, {"place": WindowFunction("row_number", partition=(Column("region"),))}),
            Call("=", (Column("place"), Literal(1))),
            False,
        ),
        (
            Projection(Projection(NUMBERED, {"p": Column("place")}), {}, Call("=", (Column("p"), Literal(1)))),
            None,
            True,
        ),
    ],
)
def test_a_person_is_known_to_have_one_row_at_most(source, where, one_row):
    assert (relation_card(CARD, source, where=where).unit is None) == one_row


def test_a_column_of_another_table_does_not_take_the_name_of_the_person():
    assert relation_schema(CARD, PrivateRows("others")).columns == {
        "who": ColumnCard("integer"), "own.who": ColumnCard("text")
    }  # fmt: skip


def test_people_of_different_types_are_not_the_same_people():
    other = PrivateTable("", {"id": ColumnCard("text")}, "id")
    card = Card("visits", "", COLUMNS, "who", tables={"others": other})
    with refuses(InvalidArgument, "one type of the column of the person"):
        relation_schema(card, PrivateRows("others"))


def test_a_relation_is_described_in_a_few_words():
    joined = PersonJoin(PerPerson(ROWS, {}, {"region": Column("region")}), PrivateRows("others"), "inner")
    assert describe_relation(joined, CARD) == "a row for each who and region, of visits joined with others on who"
    assert describe_relation(PersonJoin(ROWS, ROWS, "anti"), CARD) == "visits of people who are not in visits"
