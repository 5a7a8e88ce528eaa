"""Random questions over the whole grammar, as the text that an analyst writes.

What can be written is listed in productions, each a function of a generator or a template: further grammar is one
production more. In templates ``{number}``, ``{text}`` and so on stand for further expressions of that type. Those of
expressions come from the examples of the table of operations, so that a new operation is asked about at once.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dither.tables.card.model import ColumnCard
from dither.tables.query.evaluate import typed
from dither.tables.query.operations import OPERATIONS
from dither.tables.sql.aggregates import syntax
from tables.neighbors.random_tables import COLUMNS, NOTE_COLUMNS, PERSON_COLUMNS

_LETTERS = {"x": "number", "n": "integer", "s": "text", "d": "date", "t": "timestamp", "b": "boolean"}
"""The columns of the examples of operations, by type."""
_SLOT = re.compile(r"\{(\w+)\}")
_LETTER_OUTSIDE_QUOTES = re.compile(r"'(?:[^']|'')*'|\b([xnsdtb])\b(?!\()")
CONSTANTS = {
    "number": ["0", "1", "-2.5", "0.1", "50", "1e15", "1e-9"],
    "integer": ["0", "1", "-3", "7", "100", "9223372036854775807"],
    "text": ["''", "'a'", "'A'", "'é'", "'north'", "'%'"],
    "date": ["DATE '2024-02-29'", "DATE '0001-01-01'", "DATE '9999-12-31'"],
    "timestamp": ["TIMESTAMP '2024-02-29 23:59:00'", "TIMESTAMP '0001-01-01 00:00:00'"],
    "boolean": ["TRUE", "FALSE"],
}


def _expression_templates() -> dict[str, list[str]]:
    """The examples of all operations by the type of their result, with slots in place of their columns."""
    result: dict[str, list[str]] = {kind: [] for kind in CONSTANTS}
    for operation in OPERATIONS.values():
        for example in (operation.example, *operation.examples):
            kind = typed(syntax(example), lambda column: _LETTERS[column.name])[1]
            if kind is not None:
                result[kind].append(_with_slots(example))
    return result


def _with_slots(example: str) -> str:
    def slot(match: re.Match[str]) -> str:
        return f"{{{_LETTERS[match[1]]}}}" if match[1] else match[0]

    return _LETTER_OUTSIDE_QUOTES.sub(slot, example.replace("{", "{{").replace("}", "}}"))


EXPRESSIONS = _expression_templates()
AGGREGATES = [
    "COUNT(*)", "COUNT(*)", "COUNT({any})", "COUNTIF({boolean})", "COUNT(*) FILTER (WHERE {boolean})",
    "COUNT(DISTINCT {person})", "SUM({bounded})", "SUM({bounded})", "SUM({bounded}) FILTER (WHERE {boolean})",
    "AVG({bounded})", "AVG({boolean})", "AVG(CASE WHEN {boolean} THEN {bounded} END)", "VAR_SAMP({bounded})",
    "STDDEV({bounded})", "MIN({bounded})", "MAX({bounded})", "MEDIAN({bounded})", "QUANTILE({bounded}, 0.9)",
    "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY {bounded})", "MODE({keyed})",
    "AVG({bounded} - {bounded})", "SUM({bounded} + {bounded})", "MAX({bounded} - {bounded})",
    "COUNT(*) FILTER (WHERE {bounded} IS NULL)",
    "COUNT(DISTINCT {any})", "COUNT(DISTINCT {column_text})", "CORR({bounded}, {bounded})",
    "REGR_SLOPE({bounded}, {bounded})", "COVAR_SAMP({bounded}, {bounded})",
    "SUM({bounded}, contribution_bounds_per_row => (-5, 7))", "AVG({number}, contribution_bounds_per_row => (0, 1.5))",
    "COUNT(*, rows_per_person => 1)", "SUM({bounded}, rows_per_person => 2)", "AVG({bounded}, rows_per_person => 1)",
    "STDDEV({bounded}, rows_per_person => 9)", "MEDIAN({bounded}, rows_per_person => 1)",
]  # fmt: skip
GROUPS = [
    # keys that the card states
    "{keyed}", "{keyed}",
    # keys that are public without being listed
    "{column_boolean}", "{column_number} > {number}", "{narrow}",
    "WIDTH_BUCKET({bounded}, 0, 100, 4)", "MONTH({column_date})", "ISODOW({column_timestamp})",
    "DAYOFWEEK({column_date})", "DAYNAME({column_date})", "MONTHNAME({column_timestamp})",
    "CASE WHEN {boolean} THEN 'a' WHEN {boolean} THEN 'A' END", "FLOOR({bounded} / 10)",
    "CASE WHEN {column_text} IN ('a', 'é') THEN {column_text} END", "COALESCE({keyed}, 'none')", "{column_day}",
    # keys that are private
    "{column_text}", "{column_text}", "{column_integer}", "{tied}", "{tied}", "{tied}",
    "UPPER({column_text})", "TRIM({column_text} || {text})",
    "date_trunc('month', {column_date})", "date_trunc('hour', {column_timestamp})", "{column_integer} % 7", "{any}",
]  # fmt: skip
OUTER = [
    # several private aggregations in one question
    "WITH m AS ({block}), t AS (SELECT COUNT(*) AS n FROM visits) SELECT {first} / t.n AS share FROM m, t",
    "WITH m AS ({block}), t AS (SELECT region, AVG(age) AS n FROM visits GROUP BY region) SELECT * FROM m, t",
    "{block} HAVING {first} > 3",
    "{block} ORDER BY {first} DESC LIMIT 2",
    "WITH m AS ({block}) SELECT *, {first} - LAG({first}) OVER (ORDER BY {first}) AS step FROM m",
    "SELECT *, ROUND({first}, 1) AS r, 100.0 * {first} / SUM({first}) OVER () AS share FROM ({block}) AS m",
    "SELECT COUNT(*) AS groups, MAX({first}) AS most FROM ({block}) AS m",
    "WITH m AS ({block}) SELECT * FROM m UNION ALL SELECT * FROM m WHERE {first} > 2",
    "WITH m AS ({block}) SELECT a.{first} AS x, b.{first} AS y FROM m AS a JOIN m AS b ON a.{first} < b.{first}",
]


TOP = [
    " ORDER BY COUNT(*) DESC LIMIT 3",
    " ORDER BY COUNT(*) DESC LIMIT 1",
    " ORDER BY COUNT(DISTINCT {person}) DESC LIMIT 2",
]
LEVELS = ["ROLLUP ({keys})", "CUBE ({keys})", "GROUPING SETS (({keys}), ())"]


@dataclass(frozen=True)
class Relation:
    """What stands after FROM: its columns by type, those with bounds, with few values and with public keys, and its
    column of people."""

    sql: str
    columns: Mapping[str, Sequence[str]]
    bounded: Sequence[str]
    narrow: Sequence[str]
    keyed: Sequence[str]
    person: str | None
    where: str = ""
    """A condition that belongs to it."""

    def aliased(self, alias: str) -> Relation:
        """The same under an alias, which all columns are written with."""
        named = {kind: [f"{alias}.{name}" for name in names] for kind, names in self.columns.items()}
        bounded, narrow, keyed = (
            [f"{alias}.{name}" for name in names] for names in (self.bounded, self.narrow, self.keyed)
        )
        person = self.person and f"{alias}.{self.person}"
        return Relation(f"{self.sql} AS {alias}", named, bounded, narrow, keyed, person)

    def with_columns(self, sql: str, where: str = "", **columns: Sequence[str]) -> Relation:
        """The same with further columns by type, or ``bounded``, and other words after FROM."""
        by_type = {kind: [*names, *columns.get(kind, ())] for kind, names in self.columns.items()}
        bounded = [*self.bounded, *columns.get("bounded", ())]
        return replace(self, sql=sql, columns=by_type, bounded=bounded, where=where)


def _table(sql: str, columns: Mapping[str, ColumnCard], person: str | None) -> Relation:
    by_type: dict[str, list[str]] = {kind: [] for kind in CONSTANTS}
    for name, column in columns.items():
        if name not in ("person", "name", "removed", "id"):
            by_type[column.type].append(name)
    bounded = [name for name, column in columns.items() if column.bounds is not None]
    narrow = [name for name in bounded if columns[name].type == "integer"]
    return Relation(sql, by_type, bounded, narrow, [name for name, column in columns.items() if column.keys], person)


def of_card(question: RandomQuestion) -> Relation:
    """The card's table."""
    return _table("visits", COLUMNS, question.person)


def with_public_table(question: RandomQuestion) -> Relation:
    """The card's table and a public one."""
    visits = of_card(question).aliased("v")
    side = question.pick.choice(["JOIN", "LEFT JOIN"])
    own = question.pick.choice(["v.town", "LOWER(v.town)", "COALESCE(v.town, 'a')"])
    sql = f"{visits.sql} {side} zones AS z ON {own} = z.town"
    return visits.with_columns(sql, integer=["z.zone"], text=["z.level"], bounded=["z.zone"])


def of_subquery(question: RandomQuestion) -> Relation:
    """A SELECT of rows in FROM, with computed columns."""
    return _computed(question, as_common_table=False)


def of_common_table(question: RandomQuestion) -> Relation:
    """The same written as WITH."""
    return _computed(question, as_common_table=True)


def _computed(question: RandomQuestion, as_common_table: bool) -> Relation:
    inner = of_card(question)
    number, text = question.fill("{bounded}", inner), question.fill("{text}", inner)
    rows = f"SELECT *, {number} AS new_number, {text} AS new_text FROM visits"
    if question.pick.random() < 0.5:
        rows += f" WHERE {question.fill('{boolean}', inner)}"
    return inner.with_columns(
        _written(question, rows, as_common_table), number=["new_number"], text=["new_text"], bounded=["new_number"]
    )


def _written(question: RandomQuestion, rows: str, as_common_table: bool) -> str:
    """A query of rows for FROM, in place or in WITH."""
    if not as_common_table:
        return f"({rows}) AS s"
    question.prefix.append(f"r AS ({rows})")
    return "r"


RELATIONS: list[Callable[[RandomQuestion], Relation]] = [
    of_card, of_card, of_card, of_card, with_public_table, of_subquery, of_common_table,
]  # fmt: skip


# -- relations below the aggregation that carry the person -----------------------------------------------------------

PERSON_AGGREGATES = [
    "COUNT(*)", "COUNT({any})", "COUNT(DISTINCT {any})", "SUM({bounded})", "AVG({bounded})", "MIN({bounded})",
    "MAX({bounded})",
]  # fmt: skip
WINDOWS = [
    "ROW_NUMBER() OVER (PARTITION BY {person} ORDER BY {order})",
    "RANK() OVER (PARTITION BY {person} ORDER BY {order} DESC)",
    "DENSE_RANK() OVER (PARTITION BY {person}, {keyed} ORDER BY {order})",
    "COUNT(*) OVER (PARTITION BY {person})",
    "SUM({bounded}) OVER (PARTITION BY {person} ORDER BY {order})",
    "LAG({bounded}) OVER (PARTITION BY {person} ORDER BY {order})",
    "FIRST_VALUE({bounded}) OVER (PARTITION BY {person} ORDER BY {order})",
    "{bounded} - LEAD({bounded}) OVER (PARTITION BY {person} ORDER BY {order})",
]


def per_person(question: RandomQuestion) -> Relation:
    """A row for each person, or for each person and region."""
    visits = of_card(question)
    groups = [visits.person, *(["region"] if question.pick.random() < 0.4 else [])]
    values = [question.fill(question.pick.choice(PERSON_AGGREGATES), visits) for _ in range(2)]
    listed = ", ".join([*map(str, groups), *(f"{value} AS v{i}" for i, value in enumerate(values))])
    rows = f"SELECT {listed} FROM visits"
    if question.pick.random() < 0.3:
        rows += f" WHERE {question.fill('{boolean}', visits)}"
    rows += f" GROUP BY {', '.join(map(str, groups))}"
    if question.pick.random() < 0.3:
        rows += " HAVING COUNT(*) > 1"
    sql = _written(question, rows, question.pick.random() < 0.5)
    columns = {**dict.fromkeys(CONSTANTS, ()), "number": ["v0", "v1"], "text": groups[1:]}
    return Relation(sql, columns, ["v0", "v1"], [], groups[1:], visits.person)


def with_windows(question: RandomQuestion) -> Relation:
    """Rows with window functions over those of the same person."""
    visits = of_card(question)
    value = question.fill(question.pick.choice(WINDOWS), visits)
    rows = f"SELECT *, {value} AS w FROM visits"
    if question.pick.random() < 0.3:
        order = question.fill("{order}", visits)
        rows += f" QUALIFY ROW_NUMBER() OVER (PARTITION BY {visits.person} ORDER BY {order}) <= 2"
    where = question.pick.choice(["", "w <= 1", "w > 1"])
    return visits.with_columns(f"({rows}) AS s", where, number=["w"], bounded=["w"] * 5)


def joined_with_itself(question: RandomQuestion) -> Relation:
    """Pairs of rows of the same person."""
    left, right = of_card(question).aliased("a"), of_card(question).aliased("b")
    side = question.pick.choice(["JOIN", "LEFT JOIN"])
    more = question.pick.choice(["", " AND a.ever < b.ever", " AND a.town = b.town", " AND a.amount <> b.amount"])
    sql = f"{left.sql} {side} {right.sql} ON a.{question.person} = b.{question.person}{more}"
    columns = {kind: right.columns[kind] for kind in CONSTANTS}
    return left.with_columns(sql, **columns, bounded=right.bounded)


def joined_tables(question: RandomQuestion) -> Relation:
    """Rows of two private tables of the same person."""
    visits, persons = of_card(question).aliased("v"), _table("persons", PERSON_COLUMNS, "id").aliased("p")
    side = question.pick.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    sql = f"{visits.sql} {side} {persons.sql} ON v.{question.person} = p.id"
    return replace(
        visits.with_columns(sql, **{kind: persons.columns[kind] for kind in CONSTANTS}, bounded=persons.bounded),
        narrow=[*visits.narrow, *persons.narrow],
        keyed=[*visits.keyed, *persons.keyed],
    )


def by_a_path(question: RandomQuestion) -> Relation:
    """Rows that lead to their person by a path of one or two tables."""
    return _table(question.pick.choice(["notes", "pages"]), NOTE_COLUMNS, "id")


def joined_by_keys(question: RandomQuestion) -> Relation:
    """Rows joined with those that they lead to, on the key alone."""
    side = question.pick.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
    notes, persons = _table("notes", NOTE_COLUMNS, "id").aliased("n"), _table("persons", PERSON_COLUMNS, "id")
    if question.pick.random() < 0.5:
        persons = persons.aliased("p")
        sql = f"{notes.sql} {side} {persons.sql} ON n.number = p.number"
        more = {kind: persons.columns[kind] for kind in CONSTANTS}
        return replace(notes.with_columns(sql, **more, bounded=persons.bounded), keyed=[*notes.keyed, *persons.keyed])
    pages = _table("pages", NOTE_COLUMNS, "id").aliased("q")
    if question.pick.random() < 0.4:
        word = question.pick.choice(["EXISTS", "NOT EXISTS"])
        inner = "SELECT 1 FROM pages AS q WHERE q.note = n.note AND q.part = n.part AND q.stars > 0"
        return replace(notes, where=f"{word} ({inner})")
    sql = f"{pages.sql} {side} {notes.sql} ON q.part = n.part AND n.note = q.note"
    return replace(pages, sql=sql)


def with_public_tables(question: RandomQuestion) -> Relation:
    """Rows with a public table by a composite key, twice, or first in FROM."""
    visits = of_card(question).aliased("v")
    more = {"integer": ["z.zone"], "text": ["z.level"], "bounded": ["z.zone"]}
    form = question.pick.choice(["composite", "twice", "first", "outer"])
    if form == "composite":
        side = question.pick.choice(["JOIN", "LEFT JOIN"])
        return visits.with_columns(f"{visits.sql} {side} zones AS z ON v.town = z.town AND z.zone = v.stars", **more)
    if form == "twice":
        sql = f"{visits.sql}, zones AS y, zones AS z"
        return visits.with_columns(sql, "v.town = z.town AND y.town = v.region", **more)
    side = "JOIN" if form == "first" else "LEFT JOIN"
    return visits.with_columns(f"zones AS z {side} {visits.sql} ON v.town = z.town", **more)


def other_table(_: RandomQuestion) -> Relation:
    """The second private table alone."""
    return _table("persons", PERSON_COLUMNS, "id")


SEMI_JOINS = [
    "{person} IN (SELECT id FROM persons WHERE born > 1950)",
    "{person} NOT IN (SELECT id FROM persons WHERE id IS NOT NULL AND sex = 'f')",
    "{person} IN (SELECT {unit} FROM visits GROUP BY {unit} HAVING COUNT(*) > 2)",
    "EXISTS (SELECT 1 FROM persons AS p WHERE p.id = {person} AND p.born < 1990)",
    "NOT EXISTS (SELECT 1 FROM visits AS o WHERE o.{unit} = {person} AND o.vip)",
    "town IN (SELECT town FROM zones)",
]


def with_semi_join(question: RandomQuestion) -> Relation:
    """Rows of people who have, or do not have, rows elsewhere."""
    visits = of_card(question).aliased("v")
    where = question.pick.choice(SEMI_JOINS).replace("{unit}", str(question.person))
    return replace(visits, where=question.fill(where, visits))


def distinct_rows(question: RandomQuestion) -> Relation:
    """The different rows of each person, or the rows of two queries."""
    visits = of_card(question)
    if question.pick.random() < 0.5:
        rows = f"SELECT DISTINCT {visits.person}, region, age FROM visits"
    else:
        rows = f"SELECT {visits.person}, region, age FROM visits UNION ALL SELECT id, sex, born FROM persons"
    columns = {**dict.fromkeys(CONSTANTS, ()), "integer": ["age"], "text": ["region"]}
    return Relation(f"({rows}) AS s", columns, ["age"], ["age"], ["region"], visits.person)


PERSON_RELATIONS: list[Callable[[RandomQuestion], Relation]] = [
    per_person, per_person, with_windows, with_windows, with_windows, joined_with_itself, joined_tables, other_table,
    with_semi_join, distinct_rows, by_a_path, joined_by_keys, joined_by_keys,
    with_public_tables,
]  # fmt: skip
"""Those for which a row has to have a person: a card without one refuses them."""


def _rarely(number: int) -> list[bool]:
    return [True, *[False] * (number - 1)]


OPTIONS: dict[str, list[Any]] = {
    "max_groups": [1, 1, 1, 1, 2, 2, 2, 3, 7, "auto"],
    "max_rows": [1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 5, 40, "auto"],
    "noise": ["best", "laplace", "gaussian"],
    "other": _rarely(10),
    "bias": _rarely(12),
    "quantile_interval": _rarely(3),
    "integer": _rarely(12),
    "nonnegative": [False, True],
}


@dataclass
class RandomQuestion:
    """One random question: its text, and the options of its release."""

    pick: random.Random
    person: str | None
    prefix: list[str] = field(default_factory=list)
    """What stands after WITH."""

    def __post_init__(self) -> None:
        self.sql = self._sql()
        self.options = {name: self.pick.choice(values) for name, values in OPTIONS.items()}

    def _sql(self) -> str:
        pick = self.pick
        known = PERSON_RELATIONS if self.person is not None and pick.random() < 0.4 else RELATIONS
        relation = pick.choice(known)(self)
        groups = [pick.choice(GROUPS) for _ in range(pick.choice([0, 0, 1, 1, 1, 2]))]
        keys = [self.fill(group, relation) for group in groups]
        asked = [text for text in AGGREGATES if self.person is not None or "DISTINCT" not in text]
        aggregates = [self.fill(pick.choice(asked), relation) for _ in range(pick.choice([1, 1, 1, 2, 3]))]
        if pick.random() < 0.1:
            aggregates.append(f"{aggregates[0]} / COUNT(*)")
        columns = [f"{value} AS k{i}" for i, value in enumerate(keys)]
        columns += [f"{value} AS a{i}" for i, value in enumerate(aggregates)]
        block = f"SELECT {', '.join(columns)} FROM {relation.sql}"
        conditions = [relation.where] if relation.where else []
        if pick.random() < 0.35:
            conditions.append(self.fill("{boolean}", relation))
        if conditions:
            block += f" WHERE {' AND '.join(conditions)}"
        if keys:
            listed = ", ".join(str(i + 1) for i in range(len(keys)))
            block += f" GROUP BY {pick.choice(LEVELS).format(keys=listed) if pick.random() < 0.12 else listed}"
        if pick.random() < 0.08:
            block = pick.choice(OUTER).format(block=block, first="a0")
        elif keys and pick.random() < 0.3:
            block += self.fill(pick.choice(TOP), relation)
        if not self.prefix:
            return block
        before = ", ".join(self.prefix)
        return f"WITH {before}, {block.removeprefix('WITH ')}" if block.startswith("WITH") else f"WITH {before} {block}"

    def fill(self, template: str, relation: Relation, depth: int = 0) -> str:
        """The template with an expression in each slot."""
        return _SLOT.sub(lambda slot: self._slot(slot[1], relation, depth), template)

    def _slot(self, kind: str, relation: Relation, depth: int) -> str:
        """An expression of this kind: a column, rarely a constant, or an operation on further expressions."""
        pick, columns = self.pick, relation.columns
        if kind == "person":
            return relation.person or pick.choice([name for names in columns.values() for name in names])
        if kind == "order":
            return pick.choice([name for names in columns.values() for name in names])
        if kind in ("bounded", "narrow", "keyed"):
            names = getattr(relation, kind) or [name for listed in columns.values() for name in listed]
            if kind == "bounded" and pick.random() < 0.3:
                return self.fill(pick.choice(_BOUNDED), relation, depth + 1)
            return pick.choice(names)
        if kind == "tied":  # whose keyed hashes agree
            tied = [name for name in columns["integer"] if name.split(".")[-1] == "code"]
            return pick.choice(tied or [name for listed in columns.values() for name in listed])
        if kind.startswith("column_"):
            wanted = columns.get(kind.removeprefix("column_"), [name for name in columns["date"] if "day" in name])
            return pick.choice(wanted or [name for listed in columns.values() for name in listed])
        if kind == "any":
            kind = pick.choice(list(CONSTANTS))
        chance = pick.random()
        if depth < 2 and chance < (0.9, 0.25)[depth] * (1.0 if kind == "boolean" else 0.5):
            return f"({self.fill(pick.choice(EXPRESSIONS[kind]), relation, depth + 1)})"
        if chance < 0.9 and (columns[kind] or kind == "number"):
            return pick.choice([*columns[kind], *(columns["integer"] if kind == "number" else [])])
        return pick.choice(CONSTANTS[kind])


_BOUNDED = [
    *(template for kind in ("number", "integer") for template in EXPRESSIONS[kind]),
    "CASE WHEN {boolean} THEN {bounded} ELSE {bounded} END", "{bounded} + {bounded}", "ABS({bounded})",
]  # fmt: skip
