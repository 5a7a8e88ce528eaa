"""Random questions of private relations, in SQL over the table of ``tables.glass``."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

NUMBERS = ("amount", "age")
COMPARED = ("amount", "age", "day", "at", "town", "code")
CONDITIONS = (
    "amount > 20", "age IS NOT NULL", "town = 'a'", "vip", "NOT vip", "region IN ('north', 'south')",
    "age / 2 > 10 OR town IS NULL", "day >= DATE '2024-01-01'", "amount * age < 300",
)  # fmt: skip


def relation(random_source: random.Random, depth: int = 2) -> str:
    """A SELECT of rows that carry their person, with columns person and x, and others."""
    makers: list[Callable[[random.Random, int], str]] = [_per_person, _windowed, _joined, _filtered, _distinct, _union]
    if depth == 0:
        return "SELECT person, amount AS x, age, town, region, day, vip FROM visits" + _where(random_source)
    return random_source.choice(makers)(random_source, depth - 1)


def _where(random_source: random.Random) -> str:
    return f" WHERE {random_source.choice(CONDITIONS)}" if random_source.random() < 0.4 else ""


def _aggregates(random_source: random.Random) -> str:
    number, compared = random_source.choice(NUMBERS), random_source.choice(COMPARED)
    first = random_source.choice(
        [f"SUM({number})", f"AVG({number})", "COUNT(*)", f"COUNT({compared})", f"COUNT(DISTINCT {compared})",
         "COUNT(*) FILTER (WHERE vip)", f"MAX({number})", "SUM(amount * 2)", "SUM(code)"]
    )  # fmt: skip
    second = random_source.choice([f"MIN({compared})", f"MAX({compared})", "BOOL_OR(vip)", "BOOL_AND(age > 3)"])
    return f"{first} AS x, {second} AS y"


def _per_person(random_source: random.Random, depth: int) -> str:
    if depth and random_source.random() < 0.5:
        inner = relation(random_source, depth)
        return f"SELECT person, COUNT(*) AS x, COUNT(DISTINCT x) AS y FROM ({inner}) AS q GROUP BY person"
    groups = random_source.choice(["person", "person", "person, region", "person, town, vip"])
    having = random_source.choice(["", " HAVING COUNT(*) >= 2"])
    shown = f"{groups}, {_aggregates(random_source)}"
    return f"SELECT {shown} FROM visits{_where(random_source)} GROUP BY {groups}{having}"


def _windowed(random_source: random.Random, _depth: int) -> str:
    number, compared = random_source.choice(NUMBERS), random_source.choice(COMPARED)
    order = random_source.choice(["day", "day DESC", "amount, town", "vip", "region, age DESC"])
    partition = random_source.choice(["person", "person", "person, region"])
    function = random_source.choice(
        ["ROW_NUMBER()", "RANK()", "DENSE_RANK()", f"LAG({compared})", f"LEAD({compared}, 2)",
         f"FIRST_VALUE({compared})", f"SUM({number})", f"AVG({number})", f"MIN({compared})", f"MAX({compared})",
         f"COUNT({compared})", "COUNT(*)"]
    )  # fmt: skip
    frame = random_source.choice(["", "", " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"])
    if function.startswith(("ROW", "RANK", "DENSE", "LAG", "LEAD", "FIRST")):
        frame = ""
    over = f"OVER (PARTITION BY {partition} ORDER BY {order}{frame})"
    kept = (
        " QUALIFY ROW_NUMBER() OVER (PARTITION BY person ORDER BY amount) <= 2" if random_source.random() < 0.3 else ""
    )
    return f"SELECT person, {function} {over} AS x, age, town FROM visits{_where(random_source)}{kept}"


def _joined(random_source: random.Random, depth: int) -> str:
    kind = random_source.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    person = "b.person AS person" if kind == "RIGHT JOIN" else "a.person AS person"
    if random_source.random() < 0.5 and kind != "FULL JOIN":
        extra = random_source.choice(["a.town = b.town", "a.age < b.age", "b.vip"])
        on = f"a.person = b.person AND {extra}"
        return f"SELECT {person}, a.amount AS x, b.region AS y FROM visits AS a {kind} visits AS b ON {on}"
    left, right = relation(random_source, depth), relation(random_source, depth)
    if kind == "FULL JOIN":
        return f"SELECT person, a.x AS x, b.x AS y FROM ({left}) AS a FULL JOIN ({right}) AS b USING (person)"
    columns = f"{person}, a.x AS x, b.x AS y, b.person IS NULL AS alone"
    return f"SELECT {columns} FROM ({left}) AS a {kind} ({right}) AS b ON b.person = a.person"


def full_joined(random_source: random.Random) -> str:
    """A full join of two tables of one row for each person: where these do not match, the person has two rows."""
    one_row = "SELECT person, COUNT(*) AS x FROM visits GROUP BY person"
    left, right = (random_source.choice([one_row, one_row + " HAVING COUNT(*) > 1"]) for _ in range(2))
    extra = random_source.choice(["", " AND a.x = b.x", " AND a.x > 2", " AND 1 = 0"])
    on = f"a.person = b.person{extra}"
    return f"SELECT COALESCE(a.x, -1) AS x, b.x AS y FROM ({left}) AS a FULL JOIN ({right}) AS b ON {on}"


def _filtered(random_source: random.Random, depth: int) -> str:
    word = random_source.choice(["", "NOT "])
    if random_source.random() < 0.5:
        inner = relation(random_source, depth)
        return f"SELECT person, age AS x FROM visits WHERE person {word}IN (SELECT person FROM ({inner}) AS q)"
    compared = random_source.choice(["w.age > v.age", "w.town = v.town", "w.amount < 50", "w.vip"])
    return (
        f"SELECT person, age AS x FROM visits AS v WHERE {word}EXISTS "
        f"(SELECT 1 FROM visits AS w WHERE w.person = v.person AND {compared})"
    )


def _distinct(random_source: random.Random, _depth: int) -> str:
    columns = random_source.choice(["amount AS x", "town AS x, vip", "age AS x, region"])
    return f"SELECT DISTINCT person, {columns} FROM visits{_where(random_source)}"


def _union(random_source: random.Random, _depth: int) -> str:
    number = random_source.choice(NUMBERS)
    every = random_source.choice(["UNION ALL", "UNION"])
    return (
        f"SELECT person, {number} AS x FROM visits{_where(random_source)} {every} "
        f"SELECT person, {number} FROM visits{_where(random_source)}"
    )


def rows(random_source: random.Random, count: int) -> list[dict[str, Any]]:
    """Rows of a few people with values at, inside and far beyond their bounds, some of them several times."""
    choose = random_source.choice
    result: list[dict[str, Any]] = []
    for _ in range(count):
        row = {
            "person": choose([None, 1, 1, 1, 2, 2, 3, 4, 5]),
            "region": choose([None, "north", "south", "east"]),
            "town": choose([None, "", "a", "A", "é", "e\u0301", "b"]),
            "code": choose([None, 5, (1 << 63) - 1, -(1 << 63)]),
            "amount": choose(
                [None, 0.0, -0.0, 5e-324, 0.1, 0.2, 0.30000000000000004, 49.5, 99.99, 100.0, 1e308, -1e308,
                 float("inf"), float("nan"), random_source.uniform(-10, 110)]
            ),
            "age": choose([None, 0, 1, 2, 60, 120, 121, -1, (1 << 63) - 1, -(1 << 63)]),
            "day": choose([None, date(1, 1, 1), date(2024, 2, 28), date(2024, 2, 29), date(9999, 12, 31)]),
            "at": choose([None, datetime(1, 1, 1), datetime(2024, 2, 29, 23, 59, 59, 999999)]),
            "vip": choose([None, True, False]),
        }  # fmt: skip
        result += [row] * choose([1, 1, 2])
    return result
