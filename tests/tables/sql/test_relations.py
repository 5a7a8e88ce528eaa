"""SQL below the aggregation: what becomes a private relation, and what is refused, with what works instead."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dither.errors import InvalidArgument
from dither.tables.card.model import Card, ColumnCard, PersonPath, PrivateTable, PublicTable, with_people_by_path
from dither.tables.query.relations import MAX_DEGREE, relation_card
from dither.tables.query.tree import (
    Column,
    PerPerson,
    PersonAggregate,
    PersonJoin,
    PrivateRows,
    Projection,
    PublicMembership,
    Windowed,
    public_joins,
    public_tables,
)
from dither.tables.sql.parse import parse
from support import refuses

COLUMNS = {
    "who": ColumnCard("integer"),
    "region": ColumnCard("text", keys=("a", "b")),
    "amount": ColumnCard("number", (0, 10)),
    "age": ColumnCard("integer", (0, 120)),
    "day": ColumnCard("date"),
}
PATIENTS = PrivateTable("", {"id": ColumnCard("integer"), "sex": ColumnCard("text"), "who": ColumnCard("text")}, "id")
AREAS = PublicTable("", {"region": ColumnCard("text"), "area": ColumnCard("text")})
CARD = Card(
    "visits", "", COLUMNS, "who", max_groups=2, max_rows=5, public={"areas": AREAS}, tables={"patients": PATIENTS}
)
TOTALS = "SELECT who, SUM(amount) AS total, COUNT(*) AS n FROM visits GROUP BY who"


def test_a_table_per_person_has_the_types_that_follow_from_the_card():
    question = parse(f"SELECT AVG(total) AS m FROM ({TOTALS}) AS t", CARD)
    counted = {"total": PersonAggregate("sum", Column("amount")), "n": PersonAggregate("count")}
    assert question.source == PerPerson(PrivateRows(), counted)
    card = relation_card(CARD, question.source)
    assert card.unit is None
    assert (card.columns["total"].type, card.columns["n"].type) == ("number", "integer")


@pytest.mark.parametrize("limit", ["auto", 1, 3])
def test_counts_and_sums_have_no_bounds_whatever_limits_the_card_states(limit):
    card = Card("visits", "", COLUMNS, "who", max_groups=limit, max_rows=limit)
    question = parse(f"SELECT AVG(total) AS m FROM ({TOTALS}) AS t", card)
    columns = relation_card(card, question.source).columns
    assert columns["total"].bounds is None
    assert columns["n"].bounds is None


@pytest.mark.parametrize(
    "sql",
    [
        f"WITH t AS ({TOTALS}) SELECT AVG(total) AS m FROM t",
        f"WITH s AS (SELECT * FROM visits), t AS ({TOTALS.replace('visits', 's')}) SELECT AVG(total) AS m FROM t",
        f"SELECT AVG(t.total) AS m FROM ({TOTALS.replace('GROUP BY who', 'GROUP BY 1')}) AS t",
    ],
)
def test_a_table_per_person_can_be_written_in_several_ways(sql):
    assert parse(sql, CARD).source == parse(f"SELECT AVG(total) AS m FROM ({TOTALS}) AS t", CARD).source


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT COUNT(*) FROM visits v JOIN patients p ON v.who = p.id AND p.sex = 'f'", PersonJoin),
        ("SELECT COUNT(*) FROM visits a, visits b WHERE a.who = b.who AND a.day < b.day", PersonJoin),
        ("SELECT COUNT(*) FROM visits JOIN (SELECT DISTINCT who FROM visits) s USING (who)", PersonJoin),
        ("SELECT COUNT(*) FROM visits WHERE who IN (SELECT id FROM patients)", PersonJoin),
        ("SELECT COUNT(*) FROM visits WHERE region IN (SELECT region FROM areas)", PublicMembership),
        ("SELECT COUNT(*) FROM (SELECT LAG(day) OVER (PARTITION BY who ORDER BY day) AS l FROM visits) s", Windowed),
        ("SELECT COUNT(*) FROM (SELECT who, age FROM visits UNION ALL SELECT who, age FROM visits) s", object),
        ("SELECT COUNT(*) FROM patients", PrivateRows),
    ],
)
def test_relations_are_read(sql, kind):
    assert isinstance(parse(sql, CARD).source, kind)


def test_a_number_of_all_people_is_a_question_that_is_asked_before():
    question = parse("SELECT COUNT(*) FROM visits WHERE age > (SELECT AVG(age) FROM visits)", CARD)
    assert question.source is None
    assert question.before == (parse("SELECT AVG(age) FROM visits", CARD),)


def test_rows_of_a_plain_query_are_read_as_before():
    assert (
        parse("SELECT COUNT(*) FROM (SELECT amount * 2 AS d FROM visits WHERE age > 3) AS s WHERE d > 1", CARD).source
        is None
    )


def test_public_tables_are_joined_inside_and_outside():
    inside = "SELECT who, area, COUNT(*) AS n FROM visits JOIN areas ON visits.region = areas.region GROUP BY who, area"
    question = parse(f"SELECT area, COUNT(*) FROM ({inside}) AS s GROUP BY area", CARD)
    assert isinstance(question.source, PerPerson)
    assert question.source.joins[0].table == "areas"
    first = "SELECT who, MIN(region) AS region FROM visits GROUP BY who"
    outside = parse(
        f"SELECT area, COUNT(*) FROM ({first}) AS s JOIN areas ON s.region = areas.region GROUP BY area", CARD
    )
    assert outside.joins[0].table == "areas"
    both = parse(
        "SELECT COUNT(*) FROM visits v JOIN areas a ON v.region = a.region JOIN patients p ON p.id = v.who", CARD
    )
    assert isinstance(both.source, PersonJoin)
    assert isinstance(both.source.left, Projection)


REFUSED = [
    (
        "SELECT COUNT(*) FROM visits v JOIN patients p ON v.region = p.sex",
        "add v.who = p.id to ON",
        "SELECT COUNT(*) FROM visits v JOIN patients p ON v.region = p.sex AND v.who = p.id",
    ),
    (
        "SELECT COUNT(*) FROM visits a, visits b WHERE a.age = b.age",
        "add a.who = b.who",
        "SELECT COUNT(*) FROM visits a, visits b WHERE a.age = b.age AND a.who = b.who",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT who, RANK() OVER (ORDER BY age) AS r FROM visits) s WHERE r < 3",
        "add who to PARTITION BY",
        "SELECT COUNT(*) FROM (SELECT who, RANK() OVER (PARTITION BY who ORDER BY age) AS r FROM visits) s WHERE r < 3",
    ),
    (
        "SELECT COUNT(*) FROM visits JOIN (SELECT region, COUNT(*) AS n FROM visits GROUP BY region) s ON TRUE",
        "add who to GROUP BY inside",
        "SELECT COUNT(*) FROM visits JOIN (SELECT who, region, COUNT(*) AS n FROM visits GROUP BY who, region) s "
        "ON visits.who = s.who",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT who, age FROM visits ORDER BY age LIMIT 3) s",
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY who",
        "SELECT COUNT(*) FROM (SELECT who, age FROM visits "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY who ORDER BY age) <= 3) s",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE age > (SELECT AVG(age) FROM visits GROUP BY region)",
        "ask it first",
        "SELECT COUNT(*) FROM visits WHERE age > (SELECT AVG(age) FROM visits)",
    ),
    (
        "SELECT who, COUNT(*) FROM visits GROUP BY who",
        "COUNT(DISTINCT who) counts people",
        "SELECT COUNT(DISTINCT who) FROM visits",
    ),
    (
        "SELECT who, n FROM (SELECT who, COUNT(*) AS n FROM visits GROUP BY who) s",
        "single rows are never released",
        "SELECT n, COUNT(*) FROM (SELECT who, COUNT(*) AS n FROM visits GROUP BY who) s GROUP BY n",
    ),
    (
        "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM patients p WHERE p.sex = v.region)",
        "compare the person of both inside",
        "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM patients p WHERE p.sex = v.region AND p.id = v.who)",
    ),
    (
        "SELECT COUNT(*) FROM visits WHERE region IN (SELECT sex FROM patients)",
        "who IN (SELECT who FROM …)",
        "SELECT COUNT(*) FROM visits WHERE who IN (SELECT id FROM patients)",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT DISTINCT region FROM visits) s",
        "SELECT DISTINCT who, …",
        "SELECT COUNT(*) FROM (SELECT DISTINCT who, region FROM visits) s",
    ),
    (
        "SELECT AVG(m) FROM (SELECT who, MEDIAN(age) AS m FROM visits GROUP BY who) s",
        "use COUNT, COUNTIF, SUM, AVG",
        "SELECT AVG(m) FROM (SELECT who, AVG(age) AS m FROM visits GROUP BY who) s",
    ),
    (
        "SELECT COUNT(*) FROM (SELECT who, LAST_VALUE(age) OVER (PARTITION BY who ORDER BY day) AS l FROM visits) s",
        "use FIRST_VALUE with DESC",
        "SELECT COUNT(*) FROM (SELECT who, FIRST_VALUE(age) OVER (PARTITION BY who ORDER BY day DESC) AS l "
        "FROM visits) s",
    ),
]


@pytest.mark.parametrize(("written", "fragment", "instead"), REFUSED, ids=[item[1][:40] for item in REFUSED])
def test_what_does_not_carry_the_person_is_refused_with_what_works(written, fragment, instead):
    with refuses(InvalidArgument) as refused:
        parse(written, CARD)
    assert fragment in str(refused.value)
    parse(instead, CARD)


def test_relations_need_a_card_that_names_the_person():
    card = Card("visits", "", COLUMNS)
    with refuses(InvalidArgument, "unit"):
        parse("SELECT COUNT(*) FROM visits a JOIN visits b ON a.who = b.who", card)


def _chain(tables: int, table: str = "visits") -> str:
    joins = "".join(f" JOIN {table} t{i} ON t{i}.who = t0.who" for i in range(1, tables))
    return f"SELECT COUNT(*) FROM {table} t0{joins}"


def _doubled(times: int) -> str:
    named = ["c0 AS (SELECT who, age FROM visits)"]
    named += [
        f"c{i} AS (SELECT who, age FROM c{i - 1} UNION ALL SELECT who, age FROM c{i - 1})" for i in range(1, times + 1)
    ]
    return f"WITH {', '.join(named)} SELECT COUNT(*) FROM c{times}"


def test_rows_of_a_person_are_not_multiplied_without_end():
    """Otherwise one person with 12 rows has 12^7 in a chain of joins, which shows in how long a question takes."""
    parse(_chain(MAX_DEGREE), CARD)
    with refuses(InvalidArgument, "aggregate by person"):
        parse(_chain(MAX_DEGREE + 1), CARD)
    one_row = "(SELECT who, COUNT(*) AS n FROM visits GROUP BY who)"
    parse(_chain(6, one_row), CARD)  # one row for each person, however many are joined
    with refuses(InvalidArgument, "aggregate by person"):  # also where it is hidden in a table of people
        parse(f"SELECT AVG(n) FROM (SELECT t0.who, COUNT(*) AS n {_chain(7)[16:]} GROUP BY t0.who)", CARD)


@pytest.mark.parametrize(
    "condition",
    [
        "SEMI JOIN visits w ON w.who = t0.who AND w.age > t0.age",
        "ANTI JOIN visits w ON w.who = t0.who AND w.age > 3",
        "WHERE EXISTS (SELECT 1 FROM visits w WHERE w.who = t0.who AND w.age > t0.age)",
    ],
)
def test_rows_of_a_person_are_compared_as_often_as_they_are_joined(condition):
    parse(f"{_chain(MAX_DEGREE - 1)} {condition}", CARD)
    with refuses(InvalidArgument, "aggregate by person"):
        parse(f"{_chain(MAX_DEGREE)} {condition}", CARD)
    plain = parse(f"{_chain(MAX_DEGREE)} SEMI JOIN visits w ON w.who = t0.who", CARD).source  # nothing to compare
    assert isinstance(plain, PersonJoin)
    with refuses(InvalidArgument, "aggregate by person"):  # in a tree that was not made from SQL as well
        relation_card(CARD, replace(plain, on=Column("w.age")))


@pytest.mark.slow
def test_rows_of_a_person_are_not_copied_without_end():
    parse(_doubled(8), CARD)
    with refuses(InvalidArgument, "fewer times"):
        parse(_doubled(9), CARD)
    for times in (13, 40):  # refused before it is written out
        with refuses(InvalidArgument, "WITH"):
            parse(_doubled(times), CARD)


INTEGER, TEXT = ColumnCard("integer"), ColumnCard("text")
ORDERS = PrivateTable("", {"shop": TEXT, "id": INTEGER, "who": INTEGER}, "who")
ITEMS = PrivateTable(
    "", {"shop": TEXT, "nr": INTEGER, "n": ColumnCard("integer", (0, 9))}, None,
    path=PersonPath("orders", (("nr", "id"), ("shop", "shop"))),
)  # fmt: skip
STORE = with_people_by_path(Card("store", "", {}, tables={"orders": ORDERS, "items": ITEMS}))
SHOP = STORE.for_table("orders", "items")
CARD_OF_ITEMS = replace(STORE.for_table("items"), delta=1e-6)


@pytest.mark.parametrize(
    "rows",
    [
        "orders o JOIN items i ON o.id = i.nr AND i.shop = o.shop",
        "items i JOIN orders o ON o.id = i.nr AND i.shop = o.shop AND i.n > 2",
        "orders o, items i WHERE o.id = i.nr AND i.shop = o.shop",
        "items i LEFT JOIN items j ON j.nr = i.nr AND i.shop = j.shop",
        "items i WHERE EXISTS (SELECT 1 FROM orders o WHERE o.id = i.nr AND i.shop = o.shop)",
    ],
)
def test_a_key_that_leads_to_a_person_joins_as_the_person_does(rows):
    question = parse(f"SELECT COUNT(*) AS n FROM {rows}", SHOP)
    assert isinstance(question.source, PersonJoin)
    for half in (" AND i.shop = o.shop", " AND i.shop = j.shop"):
        if half in rows:
            with refuses(InvalidArgument, "person"):
                parse(f"SELECT COUNT(*) AS n FROM {rows.replace(half, '')}", SHOP)


STEPS = PublicTable("", {"area": TEXT, "land": TEXT, "size": ColumnCard("number")})
PRICES = PublicTable("", {"region": TEXT, "age": INTEGER, "price": ColumnCard("number", (0, 9))})
SCHEMA = replace(CARD, public={"areas": AREAS, "steps": STEPS, "prices": PRICES})


@pytest.mark.parametrize(
    "rows",
    [
        "visits v JOIN areas a ON v.region = a.region JOIN steps s ON a.area = s.area",
        "visits v LEFT JOIN areas a ON v.region = a.region LEFT JOIN steps s ON a.area = s.area",
        "visits v, areas a, steps s WHERE v.region = a.region AND s.area = a.area",
        "steps s, areas a, visits v WHERE v.region = a.region AND s.area = a.area AND v.age > 3",
        "areas a JOIN visits v ON v.region = a.region JOIN steps s ON a.area = s.area",
        "visits v JOIN areas a ON v.region = a.region AND a.area <> 'x', steps s WHERE a.area = s.area",
        "visits v, areas a, steps s WHERE (v.region = a.region AND a.area = s.area AND v.age = 1) "
        "OR (s.area = a.area AND v.region = a.region AND a.area = s.area AND v.age = 2)",
    ],
)
def test_public_tables_are_joined_in_a_chain_in_any_order(rows):
    question = parse(f"SELECT s.land, COUNT(*) AS n FROM {rows} GROUP BY s.land", SCHEMA)
    assert public_tables(question) == ["steps", "areas"]


@pytest.mark.parametrize(
    "rows",
    [
        "visits v JOIN areas a ON v.region = a.region JOIN areas b ON v.region = b.region",
        "visits v, areas a, areas b WHERE v.region = a.region AND b.area = a.area",
        "visits v JOIN prices p ON v.region = p.region AND v.age = p.age",
        "visits v JOIN prices p USING (region, age)",
        "visits v LEFT JOIN prices p ON p.age = v.age + 1 AND v.region = p.region",
        "prices p, visits v WHERE v.region = p.region AND v.age = p.age",
    ],
)
def test_a_public_table_is_joined_twice_or_by_a_composite_key(rows):
    question = parse(f"SELECT COUNT(*) AS n, AVG(v.amount) AS m FROM {rows}", SCHEMA)
    joins = public_joins(question)
    assert [len(join.pairs) for join in joins] == ([1, 1] if "areas" in rows else [2])


def test_a_public_table_that_nothing_connects_is_refused_as_it_is_written():
    with refuses(InvalidArgument, "JOIN … ON one equality"):
        parse("SELECT COUNT(*) AS n FROM visits v, areas a WHERE v.age > 3", SCHEMA)
    with refuses(InvalidArgument, "the public table 'areas' first"):
        parse("SELECT COUNT(*) AS n FROM areas a, visits v WHERE v.region > a.region", SCHEMA)


def test_a_public_table_whose_rows_are_all_kept_counts_none_where_nobody_is():
    rows = "areas a LEFT JOIN visits v ON v.region = a.region"
    kept = ["COUNT(v.who)", "COUNT(DISTINCT v.who)", "SUM(v.amount)", "AVG(v.amount + 1)",
            "COUNT(*) FILTER (WHERE v.age > 3)", "SUM(CASE WHEN v.age > 3 THEN v.amount END)"]  # fmt: skip
    for asked in kept:
        parse(f"SELECT a.area, {asked} AS n FROM {rows} GROUP BY a.area", SCHEMA)
    for asked in [
        "COUNT(*)",
        "SUM(COALESCE(v.amount, 1))",
        "COUNT(a.area)",
        "SUM(CASE WHEN v.age > 3 THEN 1 ELSE 0 END)",
    ]:
        with refuses(InvalidArgument, "COUNT(v.who)"):
            parse(f"SELECT a.area, {asked} AS n FROM {rows} GROUP BY a.area", SCHEMA)
        with refuses(InvalidArgument, "COUNT(v.who)"):
            in_list = f"{rows} WHERE v.who IN (SELECT id FROM patients)"
            parse(f"SELECT a.area, {asked} AS n FROM {in_list} GROUP BY a.area", SCHEMA)
    with refuses(InvalidArgument, "start with the private table"):
        parse(f"SELECT COUNT(*) AS n FROM (SELECT v.who, a.area FROM {rows}) AS s", SCHEMA)


def test_groups_of_a_key_that_leads_to_a_person_are_of_one_person():
    """Each has one row for each person and key, and joins on the key go on from there."""
    sums = "SELECT nr, shop, SUM(n) AS total FROM items GROUP BY shop, nr"
    question = parse(f"SELECT AVG(total) AS m FROM ({sums}) AS s", SHOP)
    assert isinstance(question.source, PerPerson)
    assert list(question.source.groups) == ["shop", "nr"]
    joined = parse(f"SELECT COUNT(*) AS c FROM orders o JOIN ({sums}) AS s ON s.nr = o.id AND o.shop = s.shop", SHOP)
    assert isinstance(joined.source, PersonJoin)
    deeper = f"SELECT s.nr, s.shop FROM ({sums}) AS s JOIN items i ON i.nr = s.nr AND s.shop = i.shop"
    again = parse(f"SELECT COUNT(*) AS c FROM orders o, ({deeper}) AS d WHERE d.nr = o.id AND d.shop = o.shop", SHOP)
    assert isinstance(again.source, PersonJoin)
    half = parse("SELECT MAX(total) AS m FROM (SELECT nr, SUM(n) AS total FROM items GROUP BY nr) AS s", CARD_OF_ITEMS)
    assert half.source is None  # groups of several people, of which the answer is a noisy table


def test_a_column_around_a_query_goes_before_a_person_whom_a_path_has_reached_in_it():
    """Or the condition would compare the rows inside with themselves."""
    people = PrivateTable("", {"who": INTEGER, "age": INTEGER}, "who")
    path = PersonPath("people", (("buyer", "who"),))
    orders = PrivateTable("", {"id": INTEGER, "buyer": INTEGER}, None, path=path)
    card = with_people_by_path(Card("shop", "", {}, tables={"people": people, "orders": orders}))
    asked = "SELECT COUNT(*) AS n FROM people WHERE NOT EXISTS (SELECT 1 FROM orders WHERE buyer = who)"
    question = parse(asked, card.for_table("people", "orders"))
    assert isinstance(question.source, PersonJoin)
    assert question.source.kind == "anti"
