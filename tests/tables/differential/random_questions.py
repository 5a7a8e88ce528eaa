"""Random questions as analysts write them, over the tables of :mod:`tables.differential.random_tables`.

A question is a template with a slot for each private aggregation (a *block*). What a block is made of is kept beside
its text: the values that its keys can have, and the kinds of its aggregates. The oracle needs these to say which groups
an answer may have; everything else it reads from the text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tables.differential.random_tables import BEYOND, COLUMNS, DOMAINS, PUBLIC_COLUMNS


@dataclass(frozen=True)
class Column:
    """A column in scope: how it is written, its type, and where its public values are."""

    name: str
    type: str
    origin: str
    """What it is made of: columns of one origin have its rows in common."""
    source: str
    """A table of the oracle with every value that the origin can have."""
    values: str = "v"
    """An expression over the columns of that table: what this column is for each of them."""
    bounded: bool = False
    nullable: bool = False
    """Whether NULL is a value that the question itself makes."""
    template: str = "{c}"
    """The expression that it is of a column of its origin."""
    compared: str = ""
    """The column of the same rows that it is worth comparing with."""
    free: bool = False
    """Whether all values of its type are possible, constants of the question included: it is made of a condition, of
    CASE or COALESCE, or is an expression of a column that is one itself."""

    def as_column(self, alias: str) -> Column:
        """The expression as a column of a SELECT of rows."""
        kind = _type_of(self.template, self.type)
        return replace(
            self, name=alias, type=kind, bounded=False, template="{c}", free=self.free or self.template != "{c}"
        )


@dataclass(frozen=True)
class Condition:
    """A condition; where it is about one column alone, which one, and with what in its place; where it is two, both."""

    sql: str
    column: Column | None = None
    template: str = ""
    both: tuple[Condition, ...] = ()

    def narrows(self, key: Column) -> bool:
        """Whether it says which values a key can have: of numbers, only comparisons with a constant do, and of numbers
        that are computed from the rows of a person, nothing does."""
        if self.column is None or self.column.origin != key.origin or key.free:
            return False
        if self.column.type not in ("number", "integer"):
            return True
        computed = self.column.origin.startswith(("per person", "window"))
        return not computed and self.template.startswith(("{c} >", "{c} <=", "{c} BETWEEN", "{c} IN"))


@dataclass(frozen=True)
class Scope:
    """What stands after FROM: its columns, what WHERE needs with it, and how the person is written."""

    sql: str
    columns: tuple[Column, ...]
    person: str = "pid"
    conditions: tuple[Condition, ...] = ()
    known: tuple[Condition, ...] = ()
    """Conditions inside it, that limit the values of its columns."""
    tags: frozenset[str] = frozenset()

    @property
    def outside(self) -> str:
        """The person as a query inside this one writes it, where one without its table would be another column."""
        alias = self.sql.split()[-1]
        return self.person if "." in self.person or " " in alias or ")" in alias else f"{alias}.{self.person}"

    def of_type(self, *types: str) -> list[Column]:
        """The columns of these types."""
        return [column for column in self.columns if column.type in types]


@dataclass(frozen=True)
class Block:
    """A private aggregation, and what is known of its keys and aggregates."""

    keys: tuple[Column, ...]
    aggregates: tuple[str, ...]
    kinds: tuple[str, ...]
    source: str
    where: tuple[str, ...]
    known: tuple[Condition, ...]
    group_by: str = ""
    levels: bool = False
    """Whether there are several levels, in some of which keys are NULL."""

    @property
    def sql(self) -> str:
        """The SELECT."""
        return self.with_keys(())

    @property
    def facts(self) -> list[Condition]:
        """The conditions that every row meets, each alone."""
        return [part for item in self.known for part in (item.both or (item,))]

    def with_keys(self, places: Sequence[int]) -> str:
        """The SELECT of rows that have these keys."""
        shown = [f"{key.name} AS k{i}" for i, key in enumerate(self.keys)]
        shown += [f"{text} AS a{i}" for i, text in enumerate(self.aggregates)]
        where = [*self.where, *(f"({self.keys[i].name}) IS NOT NULL" for i in places)]
        text = f"SELECT {', '.join(shown)} FROM {self.source}"
        if where:
            text += f" WHERE {' AND '.join(where)}"
        return text + (f" GROUP BY {self.group_by}" if self.group_by else "")


@dataclass(frozen=True)
class Question:
    """A question: its text, with its blocks apart, and what kinds of SQL are in it."""

    template: str
    blocks: tuple[Block, ...]
    tags: frozenset[str]
    after: str = ""
    """What the oracle writes in place of the template, where the SELECT of a block is itself changed by it."""
    prefix: str = ""
    """The WITH that rows come from."""

    @property
    def sql(self) -> str:
        """The text that is asked."""
        return self.with_prefix(self.template.format(*(block.sql for block in self.blocks)))

    def with_prefix(self, text: str) -> str:
        """A SELECT of the rows that the question defines."""
        if not self.prefix:
            return text
        return f"WITH {self.prefix}, {text[5:]}" if text.startswith("WITH ") else f"WITH {self.prefix} {text}"


# -- conditions -------------------------------------------------------------------------------------------------------

CONDITIONS: dict[str, list[str]] = {
    "date": [
        "{c} >= DATE '2024-04-01'", "{c} < '2024-10-01'", "{c} BETWEEN DATE '2024-02-15' AND DATE '2024-06-30'",
        "{c} >= DATE_TRUNC('month', DATE '2024-09-15') - INTERVAL '2 months'", "MONTH({c}) IN (1, 2, 3)",
        "{c} > DATE '2024-06-01' + INTERVAL 1 MONTH", "{c} < CAST('2024-05-01' AS DATE)",
        "date_trunc('quarter', {c}) = DATE '2024-04-01'", "{c} IS NOT NULL", "YEAR({c}) = 2024",
        "DATE_DIFF('day', {c}, DATE '2024-12-31') < 90", "DATE_DIFF('day', {c}, DATE '2024-12-31') // 7 > 20",
        "DATE_DIFF('month', {c}, DATE '2024-07-15') = 1", "DATE_DIFF('quarter', DATE '2024-03-31', {c}) >= 1",
        "{c} >= DATE '2024-12-31' - INTERVAL 90 DAY",
        "NOT {c} < DATE '2024-03-05'", "QUARTER({c}) <> 2", "{c} <= DATE '2024-08-31'",
        "{c} >= DATE_TRUNC('year', DATE '2024-09-15') + INTERVAL 3 MONTH",
    ],
    "text": [
        "{c} = 'north'", "{c} <> 'north'", "{c} IN ('north', 'south', 'eye')", "{c} NOT IN ('east', 'dental')",
        "{c} LIKE '%e%'", "{c} IS NOT NULL", "UPPER({c}) > 'E'", "COALESCE({c}, 'x') <> 'north'", "LENGTH({c}) > 3",
        "{c} IS DISTINCT FROM 'eye'",
    ],
    "integer": [
        "{c} > 1", "{c} <= 5", "{c} BETWEEN 1 AND 6", "{c} IN (1, 2, 3)", "{c} % 2 = 1", "{c} + 0 > 2", "{c} <> 1",
        "{c} IS NOT NULL", "COALESCE({c}, 0) < 4", "{c} / 2 > 0.6", "NOT {c} = 2",
        "CAST({c} AS BIGINT) // 2 = 1", "CAST({c} / 2 AS INTEGER) = 2",
    ],
    "id": ["{c} > 4", "{c} <= 5", "{c} IN (1, 2, 3)", "{c} <> 1", "{c} BETWEEN 2 AND 7"],
    "number": [
        "{c} > 20", "{c} <= 100.25", "{c} * 2 > 50", "{c} BETWEEN 10 AND 90", "ROUND({c}) <> 30", "{c} IS NOT NULL",
        "FLOOR({c} / 10) IN (1, 2, 3, 4, 5)", "ABS({c} - 50) < 40",
        "CAST({c} AS INTEGER) > 20", "CAST({c} * 2 AS INTEGER) % 2 = 0", "{c} + 0 >= 64",
    ],
    "boolean": ["{c}", "NOT {c}", "{c} IS NOT NULL", "COALESCE({c}, FALSE)", "{c} = TRUE", "{c} IS NOT TRUE"],
}  # fmt: skip
KEYS: dict[str, list[str]] = {
    "date": [
        "date_trunc('month', {c})",
        "date_trunc('quarter', {c})",
        "MONTH({c})",
        "EXTRACT(QUARTER FROM {c})",
        "YEAR({c})",
        "ISODOW({c})",
        "DAYOFWEEK({c})",
        "DAYNAME({c})",
        "date_trunc('year', {c})",
        "{c} >= DATE '2024-07-01'",
    ],
    "text": [
        "{c}",
        "{c}",
        "{c}",
        "UPPER({c})",
        "COALESCE({c}, 'none')",
        "CASE WHEN {c} = 'north' THEN 'n' ELSE 'other' END",
        "{c} = 'south'",
        "LEFT({c}, 1)",
    ],
    "integer": [
        "{c}",
        "{c} % 3",
        "{c} > 2",
        "CASE WHEN {c} > 4 THEN 'many' WHEN {c} > 0 THEN 'some' ELSE 'none' END",
        "LEAST({c}, 3)",
        "CAST(FLOOR({c} / 2) AS BIGINT)",  # of a double, // would not be cut off by DuckDB: docs/tables.md
        "COALESCE({c}, 0)",
        "{c} // 4",
        "{c} / 2",
        "SIGN({c} - 4)",
    ],
    "id": ["{c}", "{c}", "{c} IN (1, 4)"],
    "number": [
        "FLOOR({c} / 32)",
        "FLOOR({c} / 32) * 32",
        "CAST({c} AS INTEGER) % 10",
        "SIGN({c} - 100)",
        "{c} > 50",
        "CASE WHEN {c} < 40 THEN 'low' ELSE 'high' END",
    ],
    "boolean": ["{c}", "NOT {c}", "CASE WHEN {c} THEN 'yes' ELSE 'no' END"],
}
OF_TWO = ["{a} > {b}", "{a} = {b}", "{a} >= {b}", "{a} - {b} > 0"]  # fmt: skip


class Generator:
    """Random questions, one after another."""

    def __init__(self, pick: random.Random) -> None:
        self.pick = pick
        self.prefix: list[str] = []
        self.tags: set[str] = set()

    def question(self) -> Question:
        self.prefix, self.tags = [], set()
        form = self.pick.choices([form for form, _ in FORMS], [weight for _, weight in FORMS])[0]
        template, blocks, after = form(self)
        self.tags.add(form.__name__)
        return Question(template, tuple(blocks), frozenset(self.tags), after, ", ".join(self.prefix))

    # -- pieces of SELECT

    def condition(self, scope: Scope) -> Condition:
        """A condition on one column, or on several."""
        column, other = (self.pick.choice(scope.columns) for _ in range(2))
        if self.pick.random() < 0.4:  # a row with what is computed from the rows of its person
            computed = [item for item in scope.columns if item.compared]
            if computed:
                one = self.pick.choice(computed)
                return Condition(self.pick.choice(OF_TWO).format(a=one.compared, b=one.name))
        template = self.pick.choice(CONDITIONS[column.type])
        first = Condition(template.format(c=column.name), column, template)
        if self.pick.random() < 0.8:
            return first
        template = self.pick.choice(CONDITIONS[other.type])
        second = Condition(template.format(c=other.name), other, template)
        form = self.pick.choice(
            ["({} OR {})", "NOT ({} AND {})", "(CASE WHEN {} THEN {} ELSE TRUE END)", "({} AND {})", "({} OR NOT {})"]
        )
        return Condition(form.format(first.sql, second.sql), both=(first, second) if form == "({} AND {})" else ())

    def conditions(self, scope: Scope, most: int = 2) -> list[Condition]:
        """Some conditions for WHERE."""
        return [self.condition(scope) for _ in range(self.pick.choice([0, 0, *range(1, most + 1)]))]

    def where(self, conditions: Sequence[Condition]) -> str:
        return f" WHERE {' AND '.join(item.sql for item in conditions)}" if conditions else ""

    def key(self, scope: Scope, wanted: str | None = None) -> Column:
        """A column of GROUP BY, or an expression of one."""
        types = [wanted] if wanted else ["date", "text", "text", "text", "integer", "number", "boolean", "id"]
        suitable = [column for column in scope.columns if column.name.split(".")[-1] not in ("pid", "visit_id")]
        wished = self.pick.choice(types)
        column = self.pick.choice(
            [column for column in suitable if column.type == wished] or suitable or list(scope.columns)
        )
        template = self.pick.choice(KEYS[column.type])
        return replace(
            column,
            name=template.format(c=column.name),
            values=template.format(c=column.values),
            template=template,
            free=column.free
            or template.startswith(("CASE", "COALESCE"))
            or "boolean" in (column.type, _type_of(template)),
        )

    def aggregate(self, scope: Scope) -> tuple[str, str]:
        """An aggregate and its kind."""
        bounded = [column.name for column in scope.columns if column.bounded]
        any_column = self.pick.choice(scope.columns).name
        flag = [column.name for column in scope.of_type("boolean")]
        forms = [("COUNT(*)", "count")] * 3 + [(f"COUNT({any_column})", "count")]
        forms += [(f"COUNT(DISTINCT {scope.person})", "count")] * 2 if scope.person else []
        if flag:
            forms += [(f"COUNT(*) FILTER (WHERE {self.pick.choice(flag)})", "count")]
        forms.append((f"COUNT(*) FILTER (WHERE {self.condition(scope).sql})", "count"))
        if bounded:
            name = self.pick.choice(bounded)
            forms += [(f"SUM({name})", "sum"), (f"AVG({name})", "mean")] * 2
            forms += [
                (f"MIN({name})", "min"), (f"MAX({name})", "max"), (f"SUM({name} * 2 + 1)", "sum"),
                (f"AVG(CASE WHEN {self.condition(scope).sql} THEN {name} END)", "mean"),
                (f"SUM(CASE WHEN {self.condition(scope).sql} THEN 1 ELSE 0 END)", "sum"), (f"AVG({name} - 1)", "mean"),
                (f"SUM({name}) FILTER (WHERE {self.condition(scope).sql})", "sum"),
            ]  # fmt: skip
            if self.pick.random() < 0.2:
                forms += [(f"VAR_SAMP({name})", "var"), (f"STDDEV({name})", "var")]
        few = [column for column in scope.columns if column.type in ("text", "boolean")]
        if few and self.pick.random() < 0.3:
            forms.append((f"COUNT(DISTINCT {self.pick.choice(few).name})", "count"))
        return self.pick.choice(forms)

    def block(self, scope: Scope | None = None, groups: int | None = None, wanted: str | None = None) -> Block:
        """A SELECT of aggregates."""
        pick = self.pick
        scope = scope or self.scope()
        self.tags |= scope.tags
        count = pick.choice([0, 1, 1, 1, 2, 2]) if groups is None else groups
        keys: list[Column] = []
        for _ in range(count):
            key = self.key(scope, wanted)
            if key.origin.startswith("public") or key.origin not in [item.origin for item in keys]:
                keys.append(key)
        keys = list({key.name: key for key in keys}.values())
        conditions = [*scope.conditions, *self.conditions(scope)]
        if pick.random() < 0.12 and scope.person:
            conditions.append(self.membership(scope))
        aggregates = list(dict.fromkeys(self.aggregate(scope) for _ in range(pick.choice([1, 1, 2]))))
        group_by = ", ".join(pick.choice([key.name, f"k{i}", str(i + 1)]) for i, key in enumerate(keys))
        return Block(
            tuple(keys), tuple(text for text, _ in aggregates), tuple(kind for _, kind in aggregates), scope.sql,
            tuple(item.sql for item in conditions), (*scope.known, *conditions), group_by,
        )  # fmt: skip

    # -- rows that carry their person

    def scope(self) -> Scope:
        """What stands after FROM."""
        makers = [maker for maker, _ in SCOPES]
        return self.pick.choices(makers, [weight for _, weight in SCOPES])[0](self)

    def table(self, name: str, alias: str | None = None) -> Scope:
        """A private table."""
        columns = []
        for column, card in COLUMNS[name].items():
            source = f"values_{name}_{column}" if column in DOMAINS[name] else f"values_{card.type}"
            written = f"{alias}.{column}" if alias else column
            kind = "id" if column in ("pid", "visit_id", "plan_id") else card.type
            # aggregates of prices are rounded to a grid, and those of other columns held within bounds
            bounded = card.bounds is not None and column not in ("price", *BEYOND)
            columns.append(Column(written, kind, f"{name} {written}", source, bounded=bounded))
        shown = f"{name} AS {alias}" if alias and self.pick.random() < 0.5 else f"{name} {alias}" if alias else name
        return Scope(shown, tuple(columns), f"{alias}.pid" if alias else "pid")

    def any_table(self, alias: str | None = None) -> Scope:
        return self.table(self.pick.choice(["visits", "visits", "visits", "claims", "people"]), alias)

    def named(self, rows: str, columns: Sequence[Column], person: str = "pid", **more: object) -> Scope:
        """Rows of a SELECT, in FROM or in WITH."""
        if self.pick.random() < 0.5:
            name = f"r{len(self.prefix)}"
            self.prefix.append(f"{name} AS ({rows})")
            return Scope(name, tuple(columns), person, **more)  # type: ignore[arg-type]
        return Scope(f"({rows}) AS s", tuple(columns), person, **more)  # type: ignore[arg-type]

    def membership(self, scope: Scope) -> Condition:
        """A condition on the person's rows elsewhere, correlated or not, with names that several tables have."""
        pick, person = self.pick, scope.person
        self.tags.add("membership")
        other = pick.choice(["visits", "claims", "people"])
        inner = self.table(other)
        own = self.table(other, "o")
        condition = self.where(self.conditions(inner))
        more = "".join(f" AND {item.sql}" for item in self.conditions(own, 1))
        bare = "".join(f" AND {item.sql}" for item in self.conditions(inner, 1))
        word = pick.choice(["", "NOT "])
        inside = pick.choice([*[scope.outside] * 3, "pid"])
        both = [c.name for c in scope.columns if c.name.split(".")[-1] in COLUMNS[other] and "." in c.name]
        forms = [
            f"{person} {word}IN (SELECT pid FROM {other}{condition})",
            f"{word}EXISTS (SELECT 1 FROM {other} AS o WHERE o.pid = {scope.outside}{more})",
            f"{word}EXISTS (SELECT 1 FROM {other} AS o WHERE {scope.outside} = o.pid{bare})",
            f"{word}EXISTS (SELECT 1 FROM {other} WHERE {other}.pid = {scope.outside}{bare})",
            f"{word}EXISTS (SELECT pid FROM {other} o WHERE o.pid = {inside}{more})",
            f"{person} {word}IN (SELECT pid FROM {other} GROUP BY pid HAVING COUNT(*) > {pick.choice([1, 2, 3])})",
        ]
        if both:
            shared = pick.choice(both)
            bare_name = shared.split(".")[-1]
            forms += [
                f"{word}EXISTS (SELECT 1 FROM {other} o WHERE o.pid = {person} AND o.{bare_name} = {shared})",
                f"{word}EXISTS (SELECT 1 FROM {other} o WHERE o.pid = {person} AND {bare_name} = {shared})",
            ] * 2
        return Condition(pick.choice(forms))


# -- scopes -----------------------------------------------------------------------------------------------------------


def plain(one: Generator) -> Scope:
    return one.any_table(one.pick.choice([None, None, "v"]))


def filtered_rows(one: Generator) -> Scope:
    """A SELECT of rows, some of whose names are those of other columns."""
    inner = one.table(one.pick.choice(["visits", "visits", "claims"]))
    one.tags.add("subquery")
    columns: list[Column] = []
    shown = ["pid"]
    for column in inner.columns[1:]:
        if one.pick.random() < 0.5:
            continue
        if one.pick.random() < 0.35:
            key = one.key(replace(inner, columns=(column,)))
            alias = one.pick.choice([column.name, column.name, f"x_{column.name}"])
            if alias == column.name:
                one.tags.add("alias equal to a column")
            shown.append(f"{key.name} AS {alias}")
            columns.append(key.as_column(alias))
        else:
            shown.append(column.name)
            columns.append(column)
    conditions = one.conditions(inner)
    rows = f"SELECT {', '.join(shown)} FROM {inner.sql}{one.where(conditions)}"
    return one.named(rows, [inner.columns[0], *columns], known=tuple(conditions))


def _type_of(template: str, kind: str = "text") -> str:
    """The type of an expression of a column of this type, by its text."""
    if template == "{c}":
        return kind
    if template.startswith("date_trunc"):
        return "date"
    if template.startswith(("CASE", "UPPER", "LEFT")) or (template.startswith("COALESCE") and "'" in template):
        return "text"
    return "boolean" if any(sign in template for sign in (" > ", " = ", " >= ", "NOT ", " IN ")) else "integer"


def per_person(one: Generator) -> Scope:
    """A row for each person, or each person and group, with exact aggregates."""
    pick = one.pick
    inner = one.table(pick.choice(["visits", "visits", "visits", "claims"]))
    one.tags.add("per person")
    groups: list[Column] = []
    if pick.random() < 0.45:
        key = one.key(inner)
        name, base = key.name, key.origin.split()[-1]
        alias = pick.choice([base, base, "g"]) if name != base else base
        groups.append(key.as_column(alias))
        shown_key = name if alias == name else f"{name} AS {alias}"
        grouped = pick.choice([alias, alias, "2", name])
        if alias == base != name:
            one.tags.add("alias equal to a column")
    number = pick.choice([column.name for column in inner.columns if column.bounded])
    other = pick.choice([column.name for column in inner.columns[1:]])
    values = pick.sample(
        [
            ("COUNT(*)", "integer"), (f"COUNT({other})", "integer"), (f"COUNT(DISTINCT {other})", "integer"),
            (f"SUM({number})", "number"), (f"AVG({number})", "number"), (f"MAX({number})", "number"),
            (f"MIN({number})", "number"), (f"COUNT(*) FILTER (WHERE {one.condition(inner).sql})", "integer"),
            (f"BOOL_OR({one.condition(inner).sql})", "boolean"), ("MIN(day)", "date"), ("MAX(day)", "date"),
        ],
        2,
    )  # fmt: skip
    names = ["k", pick.choice(["total", "total", "qty"])]
    shown = ["pid", *([shown_key] if groups else [])]
    shown += [f"{text} AS {name}" for (text, _), name in zip(values, names, strict=True)]
    conditions = one.conditions(inner)
    rows = f"SELECT {', '.join(shown)} FROM {inner.sql}{one.where(conditions)} GROUP BY pid"
    rows += f", {grouped}" if groups else ""
    if pick.random() < 0.25:
        rows += f" HAVING COUNT(*) > {pick.choice([1, 2])}"
    columns = [
        Column(name, kind, f"per person {name}", f"values_{kind}", bounded=kind in ("integer", "number"))
        for (_, kind), name in zip(values, names, strict=True)
    ]
    if groups and groups[0].name in names:
        columns = [column for column in columns if column.name != groups[0].name]
        rows = rows.replace(" AS qty FROM", " AS total FROM")
    return one.named(rows, [inner.columns[0], *groups, *columns], known=tuple(conditions) if groups else ())


def windows(one: Generator) -> Scope:
    """Rows with window functions over the rows of their person, or the first of these."""
    pick = one.pick
    inner = one.table("visits")
    one.tags.add("window")
    order = pick.choice(["day, visit_id", "amount DESC, visit_id", "visit_id", "qty NULLS LAST, visit_id"])
    partition = pick.choice(["pid", "pid", "pid, region", "pid, kind"])
    over = f"OVER (PARTITION BY {partition} ORDER BY {order})"
    whole = f"OVER (PARTITION BY {partition})"
    function, kind = pick.choice(
        [
            (f"ROW_NUMBER() {over}", "integer"), (f"RANK() {over}", "integer"), (f"COUNT(*) {whole}", "integer"),
            (f"LAG(amount) {over}", "number"), (f"LEAD(qty) {over}", "integer"), (f"SUM(qty) {over}", "integer"),
            (f"MAX(amount) {whole}", "number"), (f"FIRST_VALUE(amount) {over}", "number"),
            (f"day - LAG(day) {over}", "integer"),
            (f"AVG(amount) {whole}", "number"), (f"DENSE_RANK() {over}", "integer"),
            (f"SUM(price) {whole}", "number"), (f"AVG(price) {whole}", "number"),
        ]
    )  # fmt: skip
    alias = pick.choice(["w", "w", "amount", "qty"])
    columns = [column for column in inner.columns if column.name != alias]
    listed = ", ".join(column.name for column in columns)
    conditions = one.conditions(inner, 1)
    rows = f"SELECT {listed}, {function} AS {alias} FROM visits{one.where(conditions)}"
    if pick.random() < 0.4:
        one.tags.add("qualify")
        name = f"{alias} <= 2" if kind == "integer" else f"ROW_NUMBER() {over} <= {pick.choice([1, 2])}"
        rows += f" QUALIFY {name}"
    beside = "price" if "price" in function else ""
    added = Column(alias, kind, f"window {alias}", f"values_{kind}", bounded=not beside, compared=beside)
    return one.named(rows, [*columns, added], known=tuple(conditions))


def joined(one: Generator) -> Scope:
    """Rows of two tables of one person."""
    pick = one.pick
    first, second = pick.choice(
        [("visits", "people"), ("claims", "people"), ("visits", "claims"), ("visits", "visits")]
    )
    one.tags.add("join")
    left, right = one.table(first, "a"), one.table(second, "b")
    word = pick.choice(["JOIN", "JOIN", "LEFT JOIN"])
    more = "".join(f" AND {item.sql}" for item in one.conditions(right, 1))
    known = list(right.columns[1:])
    if word == "LEFT JOIN":
        known = [replace(column, nullable=True) for column in known]
        one.tags.add("left join")
    if pick.random() < 0.3 and first != second:
        return Scope(f"{left.sql} {word} {right.sql} USING (pid)", (*left.columns, *known), "a.pid", tags=frozenset())
    extra = ""
    if first == second:
        extra = pick.choice([" AND a.visit_id < b.visit_id", " AND a.day < b.day", " AND a.region = b.region"])
    return Scope(f"{left.sql} {word} {right.sql} ON a.pid = b.pid{extra}{more}", (*left.columns, *known), "a.pid")


def semi_joined(one: Generator) -> Scope:
    """Rows of people with, or without, rows elsewhere."""
    pick = one.pick
    first, second = pick.choice(
        [("visits", "claims"), ("claims", "visits"), ("visits", "people"), ("people", "visits")]
    )
    one.tags.add("semi join")
    left, right = one.table(first, "a"), one.table(second, "b")
    word = pick.choice(["SEMI JOIN", "ANTI JOIN"])
    shared = [name for name in ("kind", "qty", "day", "region") if name in COLUMNS[first] and name in COLUMNS[second]]
    if shared and pick.random() < 0.3:
        return Scope(f"{left.sql} {word} {right.sql} USING (pid, {pick.choice(shared)})", left.columns, "a.pid")
    if pick.random() < 0.2:
        return Scope(f"{left.sql} {word} {right.sql} USING (pid)", left.columns, "a.pid")
    more = "".join(f" AND {item.sql}" for item in one.conditions(right, 1))
    if shared and pick.random() < 0.4:
        name = pick.choice(shared)
        more += f" AND b.{name} {pick.choice(['=', '<=', '>'])} a.{name}"
    return Scope(f"{left.sql} {word} {right.sql} ON a.pid = b.pid{more}", left.columns, "a.pid")


def with_public_table(one: Generator) -> Scope:
    """Rows with the columns of a public table."""
    pick = one.pick
    one.tags.add("public join")
    inner = one.table("visits", "v")
    table, key = pick.choice([("plans", "plan_id"), ("plans", "plan_id"), ("areas", "region")])
    word = pick.choice(["JOIN", "JOIN", "LEFT JOIN"])
    added = []
    for column, card in PUBLIC_COLUMNS[table].items():
        source = table if word == "JOIN" else f"{table}_or_null"
        added.append(Column(f"p.{column}", card.type, f"public {table}", source, column, nullable=True))
    if word == "LEFT JOIN":
        one.tags.add("left join")
    own = [column for column in inner.columns if column.name != f"v.{key}"]
    return Scope(f"{inner.sql} {word} {table} AS p ON v.{key} = p.{key}", (*own, *added, *added, *added), "v.pid")


def by_a_path(one: Generator) -> Scope:
    """Rows that name no person, alone and with those that they lead to."""
    pick = one.pick
    one.tags.add("path")
    items, visits, people = one.table("items", "i"), one.table("visits", "v"), one.table("people", "p")
    same = Condition("v.visit_id = i.visit_id")
    form = pick.choice(["alone", "join", "left join", "comma", "other order", "three", "exists", "grouped", "grouped"])
    columns = (*items.columns, *visits.columns)
    if form == "alone":
        return Scope(items.sql, items.columns, "")
    if form == "join":
        return Scope(f"{visits.sql} JOIN {items.sql} ON {same.sql}", columns, "v.pid")
    if form == "left join":
        one.tags.add("left join")
        known = [replace(column, nullable=True) for column in items.columns]
        more = "".join(f" AND {item.sql}" for item in one.conditions(items, 1))
        return Scope(f"{visits.sql} LEFT JOIN {items.sql} ON {same.sql}{more}", (*visits.columns, *known), "v.pid")
    if form == "comma":
        return Scope(f"{items.sql}, {visits.sql}", columns, "v.pid", (same,))
    if form == "grouped":  # a row for each visit, which is of one person
        total = Column("s.total", "number", "per person total", "values_number", bounded=True)
        conditions = one.where(one.conditions(one.table("items"), 1))
        rows = f"SELECT visit_id, SUM(weight) AS total, COUNT(*) AS n FROM items{conditions} GROUP BY visit_id"
        if pick.random() < 0.4:
            return Scope(f"({rows}) AS s", (total,), "")
        word = pick.choice(["JOIN", "LEFT JOIN"])
        return Scope(f"{visits.sql} {word} ({rows}) AS s ON v.visit_id = s.visit_id", (*visits.columns, total), "v.pid")
    if form == "exists":
        more = "".join(f" AND {item.sql}" for item in one.conditions(items, 1))
        word = pick.choice(["", "NOT "])
        there = Condition(f"{word}EXISTS (SELECT 1 FROM {items.sql} WHERE {same.sql}{more})")
        return Scope(visits.sql, visits.columns, "v.pid", (there,))
    own = Condition("p.pid = v.pid")
    order = pick.choice([[items, people, visits], [people, items, visits], [people, visits, items]])
    return Scope(", ".join(item.sql for item in order), (*columns, *people.columns), "v.pid", (same, own))


def public_schema(one: Generator) -> Scope:
    """Rows with several public tables: in a chain, one of them twice, by a composite key, and in any order."""
    pick = one.pick
    one.tags.add("public schema")
    visits, items = one.table("visits", "v"), one.table("items", "i")

    def public(table: str, alias: str) -> list[Column]:
        """The columns of a public table."""
        return [
            Column(f"{alias}.{column}", "id" if column == "plan_id" else card.type, f"public {alias}", table, column,
                   bounded=column == "rate", nullable=True)
            for column, card in PUBLIC_COLUMNS[table].items()
        ]  # fmt: skip

    chain = ["v.region = a.region", "a.area = c.area"]
    forms = [
        (["visits v", "areas a", "climates c"], chain, [*public("areas", "a"), *public("climates", "c")]),
        (["visits v", "plans p", "plans q"], ["v.plan_id = p.plan_id", "q.plan_id = v.qty"],
         [*public("plans", "p"), *public("plans", "q")]),
        (["visits v", "rates r"], ["v.region = r.region", "r.plan_id = v.plan_id"], public("rates", "r") * 2),
    ]  # fmt: skip
    tables, equal, added = pick.choice(forms)
    columns = [*visits.columns, *added, *added]
    if pick.random() < 0.3:
        tables, equal, columns = [*tables, "items i"], [*equal, "i.visit_id = v.visit_id"], [*columns, *items.columns]
    if pick.random() < 0.4:
        written, known = tables[0], [tables[0].split()[1]]
        for table in tables[1:]:
            known.append(table.split()[1])
            on = [text for text in equal if {side[0] for side in text.split(" = ")} <= {*known} and known[-1] in text]
            on = [text for text in on if any(side.startswith(f"{known[-1]}.") for side in text.split(" = "))]
            written += f" {pick.choice(['JOIN', 'INNER JOIN'])} {table} ON {' AND '.join(on)}"
        return Scope(written, tuple(columns), "v.pid")
    pick.shuffle(tables)
    return Scope(", ".join(tables), tuple(columns), "v.pid", tuple(Condition(text) for text in equal))


def unions(one: Generator) -> Scope:
    """Rows of two SELECTs, or different rows."""
    pick = one.pick
    one.tags.add("union or distinct")
    inner = one.table("visits")
    by_name = {column.name: column for column in inner.columns}
    if pick.random() < 0.4:
        names = ["pid", *pick.sample(["region", "kind", "qty", "vip"], 2)]
        conditions = one.conditions(inner, 1)
        rows = f"SELECT DISTINCT {', '.join(names)} FROM visits{one.where(conditions)}"
        return one.named(rows, [by_name[name] for name in names], known=tuple(conditions))
    word = pick.choice(["UNION ALL", "UNION"])
    other = one.table("claims")
    rows = (
        f"SELECT pid, day, qty FROM visits{one.where(one.conditions(inner, 1))} {word} "
        f"SELECT pid, day, qty FROM claims{one.where(one.conditions(other, 1))}"
    )
    columns = [replace(by_name[name], origin=f"union {name}") for name in ("pid", "day", "qty")]
    return one.named(rows, columns)


def shadowed(one: Generator) -> Scope:
    """A name after WITH that is defined again inside."""
    one.tags.add("shadowing")
    inner = one.table("visits")
    outer_where, inner_where = one.conditions(inner, 2), one.conditions(inner, 2)
    one.prefix.append(f"t AS (SELECT * FROM visits{one.where(outer_where)})")
    again = f"WITH t AS (SELECT * FROM visits{one.where(inner_where)}) SELECT * FROM t"
    if one.pick.random() < 0.5:
        one.prefix.append(f"u AS ({again})")
        name, known = one.pick.choice([("u", inner_where), ("t", outer_where)])
        return Scope(name, inner.columns, known=tuple(known))
    return Scope(f"({again}) AS s", inner.columns, known=tuple(inner_where))


SCOPES: list[tuple[Callable[[Generator], Scope], int]] = [
    (plain, 30), (filtered_rows, 14), (per_person, 16), (windows, 9), (joined, 8), (semi_joined, 7),
    (with_public_table, 12), (unions, 5), (shadowed, 5), (by_a_path, 9), (public_schema, 9),
]  # fmt: skip


# -- forms of questions -----------------------------------------------------------------------------------------------

Form = tuple[str, list[Block], str]


def one_block(one: Generator) -> Form:
    """A SELECT of aggregates alone."""
    return "{0}", [one.block()], ""


def having(one: Generator) -> Form:
    """HAVING on an aggregate, by its name or its text."""
    block = one.block(groups=one.pick.choice([1, 1, 2]))
    condition = one.pick.choice(["{} >= 3", "{} > 0", "{} < 12"])
    text = one.pick.choice([block.aggregates[0], "a0"])
    one.tags.add("having")
    return "{0} HAVING " + condition.format(text), [block], "{0} WHERE " + condition.format("a0")


def ordered(one: Generator) -> Form:
    """The first groups in an order that has no ties."""
    block = one.block(groups=one.pick.choice([1, 2]))
    places = ", ".join(f"k{i}" for i in range(len(block.keys)))
    order = one.pick.choice([f"{places}", f"{places} DESC" if len(block.keys) == 1 else places])
    if block.kinds[0] == "count" and one.pick.random() < 0.6:
        order = f"a0 DESC, {order}"
    elif block.kinds[0] == "mean" and one.pick.random() < 0.6:
        order = f"ROUND(a0, 3) DESC, {order}"
    one.tags.add("order")
    text = f"{{0}} ORDER BY {order} LIMIT {one.pick.choice([1, 2, 3])}"
    return text, [block], text


def two_blocks(one: Generator) -> Form:
    """Two aggregations of one table that differ in WHERE."""
    scope = one.scope()
    groups = one.pick.choice([0, 1, 1, 1, 2])
    first = one.block(scope, groups, one.pick.choice(["date", None]))
    about = [column for column in scope.columns if first.keys and column.origin == first.keys[0].origin]
    about = about if about and one.pick.random() < 0.6 else list(scope.columns)
    if one.pick.random() < 0.5:
        own = [one.condition(replace(scope, columns=tuple(about)))]
        first = replace(first, where=tuple(item.sql for item in (*scope.conditions, *own)), known=(*scope.known, *own))
    known = [one.condition(replace(scope, columns=tuple(about)))]
    second = replace(
        first, where=(*(item.sql for item in scope.conditions), *(item.sql for item in known)),
        known=(*scope.known, *scope.conditions, *known),
    )  # fmt: skip
    one.tags.add("several blocks")
    templates = [
        "WITH x AS ({0}), y AS ({1}) SELECT (SELECT COUNT(*) FROM x) AS p, (SELECT COUNT(*) FROM y) AS q",
        "WITH x AS ({0}), y AS ({1}) SELECT (SELECT AVG(a0) FROM x) AS p, (SELECT AVG(a0) FROM y) AS q",
        "WITH x AS ({0}), y AS ({1}) SELECT (SELECT MIN(a0) FROM x) AS p, (SELECT MAX(a0) FROM y) AS q",
        "WITH x AS ({0}), y AS ({1}) SELECT 'x' AS w, * FROM x UNION ALL SELECT 'y', * FROM y",
        "SELECT COUNT(*) AS n, SUM(x.a0) AS s FROM ({0}) AS x, ({1}) AS y",
        "{0} UNION ALL {1}",
        "SELECT * FROM ({0}) AS x EXCEPT SELECT * FROM ({1}) AS y",
    ]
    if first.keys:
        templates += [
            "WITH x AS ({0}), y AS ({1}) SELECT x.k0, x.a0 - y.a0 AS d FROM x JOIN y ON x.k0 = y.k0",
            "WITH x AS ({0}), y AS ({1}) SELECT k0, x.a0 AS p, y.a0 AS q FROM x LEFT JOIN y USING (k0)",
        ]
    else:
        templates += ["SELECT ({0}) AS p, ({1}) AS q", "SELECT x.a0 / y.a0 AS r FROM ({0}) AS x, ({1}) AS y"]
        if len(first.aggregates) > 1:
            first, second = (
                replace(item, aggregates=item.aggregates[:1], kinds=item.kinds[:1]) for item in (first, second)
            )
    template = one.pick.choice(templates)
    return template, [first, second], template


def outer_scope_again(one: Generator) -> Form:
    """A name of an aggregation that is defined again inside."""
    scope = one.table(one.pick.choice(["visits", "claims"]))
    one.tags |= {"shadowing", "several blocks"}
    first, second = (one.block(scope, 0) for _ in range(2))
    first, second = (replace(item, aggregates=item.aggregates[:1], kinds=item.kinds[:1]) for item in (first, second))
    template = one.pick.choice(
        [
            "WITH t AS ({0}) SELECT (SELECT a0 FROM t) AS p, (WITH t AS ({1}) SELECT a0 FROM t) AS q",
            "WITH t AS ({0}), u AS (WITH t AS ({1}) SELECT a0 FROM t) SELECT t.a0 AS p, u.a0 AS q FROM t, u",
            "WITH t AS ({0}) SELECT s.a0 AS p, t.a0 AS q FROM (WITH t AS ({1}) SELECT * FROM t) AS s, t",
        ]
    )
    return template, [first, second], template


def over_groups(one: Generator) -> Form:
    """SQL on the answer of one block."""
    scope = one.scope()
    block = one.block(scope, groups=one.pick.choice([1, 1, 2]))
    one.tags.add("outer")
    if is_whole(block.aggregates[0], scope) and one.pick.random() < 0.5:
        one.tags.add("whole numbers")
        template = one.pick.choice(OF_WHOLE_NUMBERS)
        return template, [block], template
    template = one.pick.choice(
        [
            "WITH m AS ({0}) SELECT COUNT(*) AS n, MAX(a0) AS most FROM m",
            "SELECT AVG(a0) AS m, MIN(a0) AS least FROM ({0}) AS q",
            "WITH m AS ({0}) SELECT k0, a0, a0 / SUM(a0) OVER () AS share FROM m",
            "SELECT k0, SUM(a0) AS s FROM ({0}) AS q GROUP BY k0",
            "WITH m AS ({0}) SELECT * FROM m WHERE a0 > 2",
            "SELECT k0, a0 FROM ({0}) AS q QUALIFY RANK() OVER (ORDER BY a0 DESC) <= 2",
            "WITH m AS ({0}) SELECT COUNT(*) AS n FROM m WHERE a0 = 0",
            "WITH m AS ({0}) SELECT m.k0, m.a0 - t.s AS d FROM m, (SELECT AVG(a0) AS s FROM m) AS t",
        ]
    )
    return template, [block], template


OF_WHOLE_NUMBERS = [
    "WITH m AS ({0}) SELECT k0, a0 // 3 AS w FROM m", "SELECT k0, a0 % 4 AS w FROM ({0}) AS q",
    "WITH m AS ({0}) SELECT k0, a0::VARCHAR || ' pieces' AS w FROM m",
    "WITH m AS ({0}) SELECT SUM(a0) * 100 // 7 AS w, MAX(a0)::VARCHAR AS v FROM m",
    "SELECT k0, 100 * a0 // (COUNT(*) OVER () + 1) AS w FROM ({0}) AS q",
]  # fmt: skip
"""SQL that means something else on doubles."""


def is_whole(aggregate: str, scope: Scope) -> bool:
    """Whether DuckDB computes an aggregate as a whole number, where that is seen from its text."""
    match = re.match(r"(?:SUM|MIN|MAX)\(([\w.]+)( \* 2 \+ 1)?\)", aggregate)
    kinds = {column.name: column.type for column in scope.columns}
    return aggregate.startswith(("COUNT(", "SUM(CASE")) or (match is not None and kinds.get(match[1]) == "integer")


def share_of_total(one: Generator) -> Form:
    """A group's share of all rows."""
    scope = one.scope()
    block = one.block(scope, 1)
    block = replace(block, aggregates=("COUNT(*)",), kinds=("count",))
    total = replace(block, keys=(), group_by="")
    one.tags |= {"several blocks", "outer"}
    if one.pick.random() < 0.5:
        total = replace(total, where=tuple(item.sql for item in scope.conditions), known=scope.known)
    template = "WITH m AS ({0}), every AS ({1}) SELECT m.k0, m.a0 / every.a0 AS share FROM m, every"
    return template, [block, total], template


def levels(one: Generator) -> Form:
    """ROLLUP, CUBE and GROUPING SETS."""
    block = one.block(groups=2)
    beyond = any(key.origin.split(".")[-1].endswith(BEYOND) for key in block.keys)  # whose rows totals are without
    if len(block.keys) < 2 or beyond or any(key.nullable for key in block.keys):  # NULL would be a key and a level
        return "{0}", [block], ""
    one.tags.add("levels")
    kinds = [
        "ROLLUP ({0}, {1})", "CUBE ({0}, {1})", "GROUPING SETS (({0}, {1}), ())", "GROUPING SETS (({0}), ({1}))",
    ]  # fmt: skip
    written = [one.pick.choice([key.name, f"k{i}"]) for i, key in enumerate(block.keys)]
    block = replace(block, group_by=one.pick.choice(kinds).format(*written), levels=True)
    return "{0}", [block], ""


def one_persons_groups(one: Generator) -> Form:
    """Groups each of which is one person's alone: nobody could see any of them."""
    one.tags.add("groups of one person")
    scope = one.table("visits")
    block = one.block(scope, 0)
    block = replace(block, keys=(Column("visit_id", "integer", "visit_id", "values_integer"),), group_by="visit_id")
    template = one.pick.choice(["WITH v AS ({0}) SELECT COUNT(*) AS n FROM v", "SELECT AVG(a0) AS m FROM ({0}) AS v"])
    return template, [block], template


FORMS: list[tuple[Callable[[Generator], Form], int]] = [
    (one_block, 50), (having, 7), (ordered, 7), (two_blocks, 12), (outer_scope_again, 3), (over_groups, 8),
    (share_of_total, 4), (levels, 7), (one_persons_groups, 1),
]  # fmt: skip
