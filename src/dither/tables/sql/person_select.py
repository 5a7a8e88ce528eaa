"""A SELECT below the aggregation: rows, tables per person, and window functions over the rows of a person.

Its columns become expressions on a private relation. GROUP BY and DISTINCT must have the person, and windows must be
partitioned by the person: every row of the result is then of one person.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sqlglot import exp

from dither.errors import InvalidArgument
from dither.tables.card.model import Card, Type
from dither.tables.card.wording import clip
from dither.tables.query.operations.base import refuse_other_parts, refuse_sql
from dither.tables.query.relations import person_of, relation_card, types_of
from dither.tables.query.resolve import Relation, Rows, type_of
from dither.tables.query.tree import (
    Call,
    Column,
    Expression,
    PerPerson,
    PersonAggregate,
    PrivateRows,
    Projection,
    Source,
    UnionAll,
    Windowed,
    WindowFunction,
    columns,
    show,
)
from dither.tables.query.typecheck import require_boolean, typed
from dither.tables.sql.expressions import find_column, name_of, read, row_leaf
from dither.tables.sql.person_functions import is_person_aggregate, person_aggregate, window_function
from dither.tables.sql.relations import materialized, rows_of, unique_name
from dither.tables.sql.scopes import Clause, group_node, means_alias, select_items, write_groups_out

_PARTS = ("expressions", "from_", "joins", "where", "group", "having", "qualify", "distinct")
_REFUSED = {
    "limit": ("LIMIT inside", "number rows instead: QUALIFY ROW_NUMBER() OVER (PARTITION BY {person} ORDER BY …) <= 3"),
    "offset": ("OFFSET inside", "leave it out"),
    "order": ("ORDER BY inside", "leave it out; order the answer outside"),
    "with_": ("WITH inside", "write WITH before the whole question"),
}


_Function = TypeVar("_Function", PersonAggregate, WindowFunction)


class _Computed(Column):
    """A column that is not one of the rows: an aggregate of a person, or a window function."""


@dataclass(frozen=True)
class _Known(Column):
    """A name whose value on the relation is known."""

    value: Expression = field(kw_only=True)


def query_rows(query: exp.Expr, card: Card, alias: str) -> Rows:
    """The rows of a query in FROM or IN, under an alias."""
    while isinstance(query, exp.Subquery) and not query.alias:
        refuse_other_parts(query, "this")
        query = query.this
    if isinstance(query, exp.Union):
        return _union(query, card, alias)
    if not isinstance(query, exp.Select):
        got = query.key.upper()
        raise refuse_sql("a SELECT of rows in FROM", got, f"write FROM (SELECT … FROM {card.name}) AS s")
    for name, (got, fix) in _REFUSED.items():
        if query.args.get(name):
            raise refuse_sql("a SELECT of rows in FROM", got, fix.format(person=card.unit or "person"))
    refuse_other_parts(query, *_PARTS)
    return _SelectRows(query, card).rows(alias)


def _group_nodes(select: exp.Select, rows: Rows) -> list[exp.Expr]:
    """What is grouped by, where positions and names by AS stand for items of SELECT."""
    group = select.args.get("group")
    if group is None:
        return []
    refuse_other_parts(group, "expressions")
    items = select_items(select)
    return [group_node(node, items, rows) for node in group.expressions]


def groups_by_person(select: exp.Select, card: Card) -> bool:
    """Whether a SELECT has GROUP BY or DISTINCT with the person, so that each row of its result is of one person."""
    if card.unit is None or not (select.args.get("group") or select.args.get("distinct")):
        return False
    try:
        rows = rows_of(select, card)
        items = select_items(select)
    except InvalidArgument:
        return False
    write_groups_out(select)
    group = select.args.get("group")
    if group is None and not select.args.get("distinct"):
        return False
    nodes = list(select.expressions) if group is None else list(group.expressions)
    for written in nodes:
        node = written
        with suppress(InvalidArgument):  # a name of two meanings is refused where the groups are read
            node = written if group is None else group_node(written, items, rows)
        inner = node.this if isinstance(node, exp.Alias) else node
        if isinstance(inner, exp.Star):
            return any(Column(card.unit) in item.columns.values() for item in rows.relations)
        if isinstance(inner, exp.Column):
            try:
                if rows.find(name_of(inner)) == Column(card.unit):
                    return True
            except InvalidArgument:
                continue
    return False


class _SelectRows:
    """Reads one SELECT below the aggregation."""

    def __init__(self, select: exp.Select, card: Card) -> None:
        self.select, self.card = select, card
        distinct = select.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            fix = f"write QUALIFY ROW_NUMBER() OVER (PARTITION BY {card.unit} ORDER BY …) = 1"
            raise refuse_sql("SELECT DISTINCT", "DISTINCT ON", fix)
        self.source_rows = rows_of(select, card)
        write_groups_out(select)
        self.groups: dict[str, Expression] = {}
        self.aggregates: dict[str, PersonAggregate] = {}
        self.windows: dict[str, WindowFunction] = {}
        self.aliases = {alias.casefold(): node for alias, node in select_items(select) if alias}
        self.taken: set[str] = set()
        parts = [*select.expressions, select.args.get("having"), select.args.get("qualify")]
        written = [part for part in parts if part is not None]
        self.grouped = bool(select.args.get("group")) or any(_contains(part, is_person_aggregate) for part in written)
        self.windowed = any(_contains(part, lambda node: isinstance(node, exp.Window)) for part in written)
        if self.windowed and not self.grouped:
            self.source_rows = materialized(self.source_rows, card)

    def rows(self, alias: str) -> Rows:
        """The rows of the SELECT."""
        if self.grouped:
            self._read_groups()
        having = self._condition("having") if self.grouped else None
        if self.select.args.get("having") and not self.grouped:
            raise refuse_sql("GROUP BY before HAVING", "none", "write WHERE, or add GROUP BY")
        shown = self._shown()
        qualify = self._condition("qualify")
        if self.select.args.get("qualify") and not self.windowed:
            raise refuse_sql("a window function in QUALIFY", "none", "write WHERE")
        base, source = self.source_rows, self._source(having)
        checked: dict[str, Expression] = {}
        for name, value in shown.items():
            checked[name], kind = typed(value, types_of(replace(base, source=source), self.card))
            if kind is None:
                raise refuse_sql("a value in FROM (SELECT …)", "NULL", "leave the column out")
        if self.windowed:
            result = Rows((Relation(alias, checked),), qualify, source=source)
        elif self.grouped:
            result = Rows((Relation(alias, checked),), having, source=source)
        else:
            result = Rows((Relation(alias, checked),), base.where, base.joins, base.source)
        return _distinct(result, alias, self.card) if self.select.args.get("distinct") else result

    def _source(self, having: Expression | None) -> Source | None:
        """The relation that the columns are of."""
        base = self.source_rows
        if not self.grouped and not self.windowed:
            return base.source
        source: Source = base.source or PrivateRows()
        if self.grouped:
            source = PerPerson(source, self.aggregates, self.groups, base.where, base.joins)
            if self.windowed and having is not None:
                names = [*self.groups, *self.aggregates]
                source = Projection(source, {name: Column(name) for name in names}, having)
        return Windowed(source, self.windows) if self.windowed else source

    def _types(self, column: Column) -> Type:
        source: Source | None = self.source_rows.source
        if self.grouped:
            source = PerPerson(source or PrivateRows(), self.aggregates, self.groups)
        if self.windows:
            source = Windowed(source or PrivateRows(), self.windows)
        return type_of(relation_card(self.card, source), column)

    def _read_groups(self) -> None:
        person = Column(person_of(self.card))
        has_person = False
        for node in _group_nodes(self.select, self.source_rows):
            value = read(node, row_leaf(self.source_rows, "GROUP BY"))
            value, _ = typed(value, types_of(self.source_rows, self.card))
            if value == person:
                has_person = True
            elif value not in self.groups.values():
                self.groups[self._name(_default_name(node, "group"))] = value
        if not has_person:
            raise refuse_sql(
                f"GROUP BY {person.name} in a table per person",
                "GROUP BY without it" if self.select.args.get("group") else "aggregates without GROUP BY",
                f"add {person.name} to GROUP BY inside; an aggregation of all people is a question of its own",
            )

    def _name(self, default: str) -> str:
        if not self.taken:
            self.taken.add(person_of(self.card).casefold())
            if not self.grouped:
                known = relation_card(self.card, self.source_rows.source or PrivateRows())
                self.taken |= {name.casefold() for name in known.columns}
        return unique_name(default, "of", self.taken)

    def _condition(self, name: str) -> Expression | None:
        part = self.select.args.get(name)
        if part is None:
            return None
        clause: Clause = "HAVING" if name == "having" else "QUALIFY"
        condition = require_boolean(self._value(part.this, clause), self._types, clause)
        if clause == "HAVING" and any(column.name in self.windows for column in columns(condition)):
            raise refuse_sql("groups and aggregates in HAVING", "a window function", "put the condition into QUALIFY")
        return condition

    def _shown(self) -> dict[str, Expression]:
        result: dict[str, Expression] = {}
        for item in self.select.expressions:
            for name, value in self._columns(item):
                if name.casefold() in (known.casefold() for known in result):
                    expected = "columns of different names in FROM (SELECT …)"
                    raise refuse_sql(expected, f"{clip(name)!r} twice", "rename one")
                result[name] = value
        return result

    def _columns(self, item: exp.Expr) -> list[tuple[str, Expression]]:
        """The columns one item adds."""
        star = item.this if isinstance(item, exp.Column) else item
        if isinstance(star, exp.Star):
            refuse_other_parts(star)
            if self.grouped:
                raise refuse_sql("groups and aggregates", "*", "name the columns")
            return self._every_column(item.table if isinstance(item, exp.Column) else "")
        node = item.this if isinstance(item, exp.Alias) else item
        value = self._value(node)
        if isinstance(item, exp.Alias):
            return [(item.alias, value)]
        if isinstance(item, exp.Column):
            return [(self.source_rows.spelling_of(name_of(item)), value)]
        raise refuse_sql("a name for each expression in FROM (SELECT …)", "none", "write expression AS name")

    def _every_column(self, table: str) -> list[tuple[str, Expression]]:
        """The columns that * stands for; one that USING has merged stands where it is first."""
        rows, merged = self.source_rows, set[str]()
        result: list[tuple[str, Expression]] = []
        for relation in rows.relations:
            for name, value in relation.columns.items():
                if table:
                    result += [(name, value)] if relation.name.casefold() == table.casefold() else []
                elif name in relation.merged:
                    result += [] if name.casefold() in merged else [(name, rows.find(Column(name)))]
                    merged.add(name.casefold())
                elif name.casefold() not in merged:
                    result.append((name, value))
        return result

    def _value(self, node: exp.Expr, clause: Clause = "SELECT") -> Expression:
        """An expression on the relation: of groups and aggregates where the rows are grouped."""

        def leaf(item: exp.Expr) -> Expression | None:
            if isinstance(item, exp.Window):
                return self._window(item)
            if is_person_aggregate(item):
                return self._aggregate(item)
            if isinstance(item, exp.Column):
                return self._named(item, clause)
            return None

        value = read(node, leaf)
        return self._resolved(value)

    def _named(self, node: exp.Column, clause: Clause) -> Expression:
        """What a name stands for: a column of the rows, or an item of SELECT by AS."""
        alias = self.aliases.get(node.name.casefold()) if clause != "SELECT" and not node.table else None
        if alias is None:
            return find_column(node, self.source_rows)
        column, usable = None, False
        if self.source_rows.lookup(name_of(node)) is not None:
            column = self.source_rows.find(name_of(node))
            usable = not self.grouped or column in (Column(person_of(self.card)), *self.groups.values())
            column = self._resolved(column) if usable else column
        meant = self._value(alias)
        if means_alias(node.name, clause, column, meant, usable) or column is None:
            return _Known(node.name, value=meant)
        return _Known(node.name, value=column)

    def _resolved(self, value: Expression) -> Expression:
        """The expression on columns of the relation alone."""
        if isinstance(value, _Known):
            return value.value
        if isinstance(value, _Computed):
            return Column(value.name)
        if not self.grouped:
            return Call(value.op, tuple(map(self._resolved, value.args))) if isinstance(value, Call) else value
        if value == Column(person_of(self.card)):
            return value
        for name, group in self.groups.items():
            if value == group:
                return Column(name)
        if isinstance(value, Column):
            fix = f"add it to GROUP BY inside, or aggregate it: MAX({show(value)})"
            raise refuse_sql("groups and aggregates", f"the column {show(value)} outside of aggregates", fix)
        if isinstance(value, Call):
            return Call(value.op, tuple(map(self._resolved, value.args)))
        return value

    def _aggregate(self, node: exp.Expr) -> Expression:
        return self._computed(node, person_aggregate(node, self.source_rows, self.card), self.aggregates)

    def _window(self, node: exp.Window) -> Expression:
        result = window_function(node, self._value, self._types, Column(person_of(self.card)))
        return self._computed(node, result, self.windows)

    def _computed(self, node: exp.Expr, function: _Function, known: dict[str, _Function]) -> _Computed:
        """What a function computes, under the name that it is known by, or under a new one."""
        name = next((name for name, other in known.items() if other == function), None)
        if name is None:
            name = self._name(_default_name(node, function.kind))
            known[name] = function
        return _Computed(name)


def _default_name(node: exp.Expr, default: str) -> str:
    """What a column of a relation is called: what AS says, or its own name."""
    if isinstance(node.parent, exp.Alias):
        return node.parent.alias
    return node.name if isinstance(node, exp.Column) else default


def _contains(part: exp.Expr, wanted: Callable[[exp.Expr], bool]) -> bool:
    """Whether a part of a SELECT has such a node, outside of queries inside it and of window functions."""
    waiting = [part]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Query):
            continue
        if wanted(node):
            return True
        if isinstance(node, exp.Window):
            function = node.this
            while isinstance(function, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)):
                function = function.this
            others = [item for item in node.iter_expressions() if item is not node.this]
            waiting += [*function.iter_expressions(), *others]
        else:
            waiting += list(node.iter_expressions())
    return False


def _distinct(rows: Rows, alias: str, card: Card) -> Rows:
    """Each different row once, of each person."""
    person = Column(person_of(card))
    (relation,) = rows.relations
    if person not in relation.columns.values():
        fix = f"write SELECT DISTINCT {person.name}, …, or COUNT(DISTINCT {person.name}) outside"
        raise refuse_sql(f"SELECT DISTINCT with {person.name}", "without it", fix)
    groups: dict[str, Expression] = {}
    taken = {person.name.casefold()}
    shown: dict[str, Expression] = {}
    for name, value in relation.columns.items():
        if value == person:
            shown[name] = person
            continue
        known = unique_name(name, "of", taken)
        groups[known], shown[name] = value, Column(known)
    source = PerPerson(rows.source or PrivateRows(), {}, groups, rows.where, rows.joins)
    return Rows((Relation(alias, shown),), source=source)


def _union(query: exp.Union, card: Card, alias: str) -> Rows:
    """The rows of both queries, by the places of their columns; without ALL each different row of a person once."""
    refuse_other_parts(query, "this", "expression", "distinct")
    person = Column(person_of(card))
    sides = [materialized(query_rows(item, card, ""), card) for item in (query.this, query.expression)]
    columns = [list(item.relations[0].columns.items()) for item in sides]
    if len(columns[0]) != len(columns[1]):
        raise refuse_sql("UNION ALL of as many columns", "different numbers", "name the same columns in both")
    shown: dict[str, Expression] = {}
    parts: list[dict[str, Expression]] = [{}, {}]
    taken = {person.name.casefold()}
    for (name, left), (_, right) in zip(*columns, strict=True):
        if (left == person) != (right == person):
            fix = f"name {person.name} at the same place in both"
            raise refuse_sql("the person at one place of UNION ALL", "at different ones", fix)
        if left == person:
            shown[name] = person
            continue
        known = unique_name(name, "of", taken)
        shown[name], parts[0][known], parts[1][known] = Column(known), left, right
    if person not in shown.values():
        raise refuse_sql(f"UNION ALL with {person.name}", "without it", f"add {person.name} to both")
    projected = [Projection(side.source or PrivateRows(), part) for side, part in zip(sides, parts, strict=True)]
    cards = [relation_card(card, item) for item in projected]
    for name in parts[0]:
        kinds = {item.columns[name].type for item in cards}
        if len(kinds) > 1:
            got = " and ".join(sorted(kinds))
            raise refuse_sql("columns of one type at each place of UNION ALL", got, "CAST one of them")
    rows = Rows((Relation(alias, shown),), source=UnionAll(tuple(projected)))
    return _distinct(rows, alias, card) if query.args.get("distinct") else rows
