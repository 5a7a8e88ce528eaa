"""Random questions whose names are those of several tables, queries and AS at once."""

from __future__ import annotations

import random

NAMES = ("kind", "n", "amount", "q")
"""Two columns of both tables, one of visits alone, and no column."""


def question(source: random.Random) -> str:
    """A question that DuckDB answers, or refuses for a name that is ambiguous or unknown."""
    return source.choice([_existence, _joined, _named_rows, _per_person, _grouped])(source)


def _name(source: random.Random, *tables: str) -> str:
    table = source.choice(["", "", *tables])
    return f"{table}.{source.choice(('kind', 'n', 'amount', 'cost', 'pid'))}" if table else source.choice(NAMES[:3])


def _condition(source: random.Random, *tables: str) -> str:
    name = _name(source, *tables)
    if name.endswith("kind"):
        return f"{name} = '{source.choice('ab')}'"
    return f"{name} {source.choice('<>')} {source.choice((2, 3, 20))}"


def _existence(source: random.Random) -> str:
    outer, inner = source.choice([("visits", "claims"), ("visits", "w"), ("v", "v"), ("claims", "visits"), ("v", "c")])
    tables = {"visits": "visits", "claims": "visits AS claims", "v": "visits AS v"}
    inside = {"claims": "claims", "w": "visits AS w", "v": "claims AS v", "visits": "claims AS visits", "c": "claims c"}
    person = source.choice([f"{inner}.pid = {outer}.pid"] * 3 + [f"pid = {outer}.pid", f"{inner}.pid = pid"])
    word = source.choice(["", "NOT "])
    rest = " AND ".join(_condition(source, inner, outer) for _ in range(source.randint(1, 2)))
    where = f"{word}EXISTS (SELECT 1 FROM {inside[inner]} WHERE {person} AND {rest})"
    return f"SELECT COUNT(*) AS c FROM {tables[outer]} WHERE {where}"


def _joined(source: random.Random) -> str:
    kind = source.choice(["JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN"])
    rest = _condition(source, "v", "c")
    on = source.choice([
        f"ON v.pid = c.pid AND {rest}", f"ON c.pid = v.pid AND {rest}", "ON v.pid = pid", "USING (pid)",
        "USING (pid, kind)", "USING (kind, n, pid)",
    ])  # fmt: skip
    return f"SELECT COUNT(*) AS c FROM visits AS v {kind} claims AS c {on} WHERE {_condition(source, 'v', 'c')}"


def _rows(source: random.Random, names: list[str]) -> str:
    return f"SELECT * FROM {source.choice(['visits', *names])} WHERE n {source.choice('<>')} {source.randint(1, 4)}"


def _named_rows(source: random.Random) -> str:
    outer = [f"{name} AS ({_rows(source, known)})" for name, known in (("x", ["x"]), ("y", ["x", "y"]))]
    inner = [
        f"{name} AS ({_rows(source, ['x', 'y'])})" for name in source.sample(["x", "y", "X"], source.randint(1, 2))
    ]
    count = f"SELECT COUNT(*) FROM {source.choice('xy')}"
    return f"WITH {', '.join(outer)} SELECT (WITH {', '.join(inner)} {count}) AS a, ({count}) AS b"


def _item(source: random.Random) -> str:
    return f"{source.choice(('kind', 'n', '-n', 'UPPER(kind)', 'n % 3', 'visits.n'))} AS {source.choice(NAMES)}"


def _per_person(source: random.Random) -> str:
    item, by = _item(source), source.choice([*NAMES, "visits.n", "visits.kind", "2"])
    aggregate = source.choice(["COUNT(*)", "MAX(n)"])
    shown = f"pid, {item}, {aggregate} AS {source.choice(('m', 'amount', 'n'))}"
    having = source.choice(["", f" HAVING {source.choice(('m', 'amount', 'n', 'q'))} > 1"])
    if source.random() < 0.3:
        window = "ROW_NUMBER() OVER (PARTITION BY pid ORDER BY amount, day)"
        inside = f"SELECT pid, {item} FROM visits QUALIFY {window} <= 3 AND {source.choice(('n', 'q'))} > 1"
    else:
        inside = f"SELECT {shown} FROM visits GROUP BY pid, {by}{having}"
    return f"SELECT COUNT(*) AS c FROM ({inside}) AS s"


def _grouped(source: random.Random) -> str:
    item, by = _item(source), source.choice([*NAMES[:2], "q", "visits.n", "visits.kind", "1", "(1)"])
    name = source.choice(("c", "m", "amount"))
    having = source.choice(["", "", f" HAVING {source.choice((name, 'n', 'c'))} > 60"])
    order = source.choice(["", f" ORDER BY {source.choice((name, f'-{name}', 'n', 'q', '-n', '1'))}, 1, 2 LIMIT 2"])
    lateral = source.choice(["", "", f", {source.choice((name, 'n', 'q'))} + 1 AS z"])
    return f"SELECT {item}, COUNT(*) AS {name}{lateral} FROM visits GROUP BY {by}{having}{order}"
