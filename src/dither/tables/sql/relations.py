"""From FROM, JOIN and WHERE to rows: private tables, relations made of them, and public tables joined to them.

Private relations are joined on the person (JOIN … ON a.person = b.person AND …), also by a comma with the equality in
WHERE, and compared with each other by EXISTS and IN. What would not carry the person is refused, with what to write
instead.

A SELECT below the aggregation has rows, tables per person, and window functions over the rows of a person. GROUP BY and
DISTINCT must have the person, and windows must be partitioned by the person: every row of the result is then of one
person.

``EXISTS (SELECT … FROM other WHERE other.person = row.person AND …)`` and ``person IN (SELECT person FROM …)`` keep a
row by the rows of the same person alone. Of any other subquery the result would depend on several people, and is
refused. ``x IN (SELECT key FROM public_table)`` asks a public table.

NOT IN is as in SQL where the list has no NULL: rows without a person are excluded, and a column of the person that
may be NULL is refused there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sqlglot import exp

from dither.errors import InvalidArgument
from dither.tables.card.model import Card, Type
from dither.tables.card.values import clip
from dither.tables.query.evaluate import Types, require_boolean, typed
from dither.tables.query.operations.base import refuse_other_parts, refuse_sql
from dither.tables.query.relations import (
    Relation,
    Rows,
    own_name,
    person_of,
    private_columns,
    private_relation,
    public_relation,
    relation_card,
    relation_schema,
    same_keys,
    spelling,
    type_of,
    types_of,
    unique,
)
from dither.tables.query.tree import (
    Call,
    Column,
    Expression,
    Join,
    JoinKind,
    PerPerson,
    PersonAggregate,
    PersonJoin,
    PrivateRows,
    Projection,
    PublicMembership,
    Source,
    UnionAll,
    Windowed,
    WindowFunction,
    columns,
    conjunction,
    show,
)
from dither.tables.sql.aggregates import (
    Leaf,
    find_column,
    is_person_aggregate,
    name_of,
    person_aggregate,
    read,
    row_leaf,
    window_function,
)
from dither.tables.sql.scopes import Clause, NameScope, group_node, means_alias, select_items, write_groups_out

_KINDS: dict[str, JoinKind] = {
    "": "inner", "INNER": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full", "SEMI": "semi", "ANTI": "anti",
    "CROSS": "inner", "LEFT SEMI": "semi", "LEFT ANTI": "anti",
}  # fmt: skip


def rows_of(select: exp.Select, card: Card) -> Rows:
    """Return the rows that a SELECT reads: FROM with its joins, filtered by WHERE. EXISTS and IN of queries in WHERE
    become semi and anti joins."""
    where = select.args.get("where")
    waiting = [] if where is None else conjuncts(where.this)
    rows = from_and_joins(select, card, waiting)
    subqueries = [node for node in waiting if is_subquery_condition(node)]
    if subqueries:
        for node in subqueries:
            rows = replace(with_condition(rows, node, card), outer=rows.outer)
    rest = [node for node in waiting if not any(node is item for item in subqueries)]
    if not rest:
        return rows
    written = [] if where is None else conjuncts(where.this)
    is_all = len(rest) == len(written) and all(node is item for node, item in zip(rest, written, strict=True))
    whole = where.this if where is not None and is_all else exp.and_(*rest, wrap=False)
    condition = require_boolean(read(whole, row_leaf(rows, "WHERE")), types_of(rows, card), "WHERE")
    return replace(rows, where=conjunction(rows.where, condition))


def from_and_joins(select: exp.Select, card: Card, where: list[exp.Expr]) -> Rows:
    """Return the rows of FROM and its joins. Equalities of the person that belong to a join by comma are removed
    from ``where``."""
    start = select.args.get("from_")
    if start is None:
        raise refuse_sql(f"FROM {card.name}", "no FROM", f"end with FROM {card.name}")
    refuse_other_parts(start, "this")
    joins, kept = select.args.get("joins") or [], list(where)
    try:
        return _in_written_order(start, joins, card, where)
    except InvalidArgument as refusal:
        if not joins:  # there is no other order; trying one again at each level would double the work
            raise
        where[:] = kept
        rows = _from_public(start.this, joins, card, where)
        if rows is None:
            where[:] = kept
            rows = _in_connected_order([start.this, *(join.this for join in joins)], joins, card, where)
        if rows is None:
            raise refusal
        return rows


def _in_written_order(start: exp.Expr, joins: list[exp.Join], card: Card, where: list[exp.Expr]) -> Rows:
    """Return the rows of FROM with each table joined to those before it, as it is written."""
    rows = relation_rows(start.this, card)
    written = list(where)
    for join in joins:
        rows = _with_join(rows, join, card, where)
    taken = [node for node in written if not any(node is item for item in where)]
    for column in (column for node in taken for column in node.find_all(exp.Column)):
        rows.lookup(name_of(column))  # a table that comes later in FROM may have the name, too
    return rows


def _from_public(start: exp.Expr, joins: list[exp.Join], card: Card, where: list[exp.Expr]) -> Rows | None:
    """Return the rows of a public table LEFT JOIN a private one, and of further joins behind it; None where FROM is
    not that."""
    join = joins[0] if joins else None
    if join is None or join.side != "LEFT" or join.kind not in ("", "OUTER") or not _reads_private(join.this, card):
        return None
    if not isinstance(start, exp.Table) or spelling(start.name, card.public) is None or join.args.get("on") is None:
        return None
    public_join = exp.Join(this=start.copy(), on=join.args["on"].copy())
    rows = _with_public(relation_rows(join.this, card), public_join, card)
    for item in joins[1:]:
        rows = _with_join(rows, item, card, where)
    return replace(rows, outer=frozenset([start.alias_or_name]))


def _in_connected_order(
    tables: list[exp.Expr], joins: list[exp.Join], card: Card, where: list[exp.Expr]
) -> Rows | None:
    """Return the rows of inner joins, a comma among them, with each table joined as soon as conditions connect it.
    Private ones are first, on the person or a key that leads to one; public ones are joined on all equalities.

    The order of inner joins, and which of ON and WHERE has a condition, changes nothing. What is used for joins is
    removed from ``where``, and what ON says more is added. None where a join is none of these, or nothing connects it.
    """
    if any(join.side or join.method or join.args.get("using") for join in joins):
        return None
    if any(join.kind not in ("", "INNER", "CROSS") for join in joins):
        return None
    pool = [*where, *(node for join in joins if (on := join.args.get("on")) is not None for node in conjuncts(on))]
    written = list(pool)
    implied = [node for item in pool for node in _common_conjuncts(item)]
    private = [node for node in tables if _reads_private(node, card)]
    public = [node for node in tables if not any(node is item for item in private)]
    if not private or not all(isinstance(node, exp.Table) and spelling(node.name, card.public) for node in public):
        return None
    rows, waiting = relation_rows(private[0], card), private[1:]
    while waiting:
        for node in waiting:
            reader = PersonJoinReader(rows, relation_rows(node, card), "inner", card)
            stated = [item for item in pool if reader.states_columns(item)]
            used = [item for item in stated if reader.is_person_equality(item)]
            used += reader.key_equalities(stated)
            if used:
                rows = reader.joined(used)
                pool = [item for item in pool if not any(item is other for other in used)]
                waiting = [item for item in waiting if item is not node]
                break
        else:
            return None
    while public:
        for node in public:
            connected, name, relation = _beside_public(rows, node, card, "give one an alias")
            both = replace(connected, relations=(*connected.relations, relation))
            equalities = [
                (item, pair) for item in (*pool, *implied) if (pair := _equal_in(item, both, name)) is not None
            ]
            if equalities:
                pairs = list(dict.fromkeys(pair for _, pair in equalities))
                rows = _joined_public(connected, card, name, relation, pairs, left=False)
                pool = [item for item in pool if not any(item is other for other, _ in equalities)]
                public = [item for item in public if item is not node]
                break
        else:
            return None
    taken = [node for node in written if not any(node is item for item in pool)]
    for column in (column for node in taken for column in node.find_all(exp.Column)):
        rows.lookup(name_of(column))  # a table that is joined later may have the name, too
    where[:] = pool
    return rows


def _reads_private(node: exp.Expr, card: Card) -> bool:
    """Return whether an element of FROM is a private table or a subquery of private rows."""
    return isinstance(node, exp.Subquery) or (isinstance(node, exp.Table) and is_private(node.name, card))


def _common_conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """Return the conditions that all arms of an OR demand; none for another condition."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.Or):
        return []
    left, right = ([*conjuncts(arm), *_common_conjuncts(arm)] for arm in (node.this, node.expression))
    return [item for item in left if any(item == other for other in right)]


def _equal_in(node: exp.Expr, rows: Rows, name: str) -> tuple[Expression, str] | None:
    """Return a condition as an expression on the rows that equals a column of a public table; None for any other, and
    for one about tables that are not joined yet."""
    if not isinstance(node, exp.EQ) or node.find(exp.Query) is not None:
        return None
    leaf = row_leaf(rows, "ON")
    try:
        return _public_pair((read(node.this, leaf), read(node.expression, leaf)), name)
    except InvalidArgument:
        return None


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """Return the conditions that a condition joins by AND; itself if it has none."""
    while isinstance(node, exp.Paren):
        node = node.this
    return [*conjuncts(node.this), *conjuncts(node.expression)] if isinstance(node, exp.And) else [node]


def is_subquery_condition(node: exp.Expr) -> bool:
    """Return whether a condition is EXISTS or IN of a query, or the negation of one."""
    while isinstance(node, (exp.Paren, exp.Not)):
        node = node.this
    return isinstance(node, exp.Exists) or (isinstance(node, exp.In) and bool(node.args.get("query")))


def is_private(name: str, card: Card) -> bool:
    """Return whether a name is that of a private table of the card."""
    return spelling(name, [card.name, *card.tables]) is not None


def relation_rows(node: exp.Expr, card: Card) -> Rows:
    """Return the rows of one element of FROM: a private table, or a subquery of private rows."""
    if isinstance(node, exp.Subquery):
        refuse_other_parts(node, "this", "alias")
        alias = node.args.get("alias")
        names = [] if alias is None else [item.name for item in alias.args.get("columns") or ()]
        if alias is None or not names:
            return query_rows(node.this, card, _alias(node) or "")
        refuse_other_parts(alias, "this", "columns")
        query = node.this.copy()
        for item in query.expressions if isinstance(query, exp.Select) else ():
            if not isinstance(item, (exp.Alias, exp.Column, exp.Star)):  # which is called by its name in the list alone
                item.replace(exp.alias_(item.copy(), unique(f"value_{len(names)}", set(query.named_selects))))
        return _with_names(query_rows(query, card, node.alias), names)
    name = _table_name(node, f"FROM {card.name}", f"the table's name is {card.name}")
    if not is_private(name, card):
        if spelling(name, card.public) is not None:
            fix = f"start with FROM {card.name} and JOIN {clip(name)}"
            raise refuse_sql(f"FROM {card.name}", f"the public table {clip(name)!r} first", fix)
        raise refuse_sql(f"FROM {card.name}", f"a table {clip(name)!r}", f"the table's name is {card.name}")
    table = spelling(name, [card.name, *card.tables])
    if table == card.name or table is None:
        return Rows((private_relation(card, _alias(node)),))
    listed, unit = private_columns(card, table)
    person = person_of(card)
    columns = {item: Column(person if item == unit else own_name(card, item)) for item in listed}
    reached = None if card.tables[table].path is None else unit
    return Rows((Relation(_alias(node) or table, columns, reached=reached),), source=PrivateRows(table))


def _with_names(rows: Rows, names: list[str]) -> Rows:
    """Return the rows of a subquery with other names for its columns, in their order: FROM (SELECT …) AS s (a, b)."""
    (relation,) = rows.relations
    if len(names) != len(relation.columns) or len({name.casefold() for name in names}) != len(names):
        fix = "name each column once behind the name of the table, or none"
        raise refuse_sql(f"{len(relation.columns)} different names of columns", f"{len(names)} names", fix)
    columns = dict(zip(names, relation.columns.values(), strict=True))
    return replace(rows, relations=(replace(relation, columns=columns),))


def _table_name(node: exp.Expr, expected: str, fix: str) -> str:
    """Return the name of a table in FROM; refuse functions, lists and paths."""
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise refuse_sql(expected, "a function or a list as table", fix)
    if node.args.get("db") or node.args.get("catalog"):
        raise refuse_sql(expected, "a path to a table", fix)
    refuse_other_parts(node, "this", "alias")
    return str(node.name)


def _alias(node: exp.Expr) -> str | None:
    """Return the alias of an element of FROM; None without one."""
    alias = node.args.get("alias")
    if alias is not None:
        refuse_other_parts(alias, "this")
    return node.alias or None


# -- joins ------------------------------------------------------------------------------------------------------------


def _with_join(rows: Rows, join: exp.Join, card: Card, where: list[exp.Expr]) -> Rows:
    """Return the rows with one join added, of a private relation or of a public table."""
    private = _reads_private(join.this, card)
    return _with_private(rows, join, card, where) if private else _with_public(rows, join, card)


def _with_private(rows: Rows, join: exp.Join, card: Card, where: list[exp.Expr]) -> Rows:
    """Return the rows joined with a private relation; one condition must be that the person is the same. For a join
    by comma that equality is taken out of ``where``."""
    refuse_other_parts(join, "this", "side", "kind", "using", "on")
    kind = _KINDS.get(" ".join(filter(None, (join.side.upper(), join.kind.upper().replace("OUTER", "")))))
    if join.method or kind is None:
        got = f"{join.method} {join.side} {join.kind} JOIN".replace("  ", " ").strip()
        raise refuse_sql("JOIN, LEFT, RIGHT or FULL JOIN", got, "write JOIN … ON a.person = b.person")
    reader = PersonJoinReader(rows, relation_rows(join.this, card), kind, card)
    condition, using = join.args.get("on"), join.args.get("using") or []
    if condition is not None:
        return reader.joined(conjuncts(condition))
    if using:
        return reader.joined_using([item.name for item in using])
    equalities = [node for node in where if kind == "inner" and reader.is_person_equality(node)]
    equalities += [node for node in reader.key_equalities(where) if kind == "inner"]
    where[:] = [node for node in where if not any(node is item for item in equalities)]
    return reader.joined(equalities)


class PersonJoinReader:
    """Reads the condition of a join of two private relations, of which one part is that the person is the same.

    ``nested`` is whether the right relation is of a query inside the other's: names in the condition are then its own
    first. Otherwise both are beside each other.
    """

    def __init__(self, left: Rows, right: Rows, kind: JoinKind, card: Card, nested: bool = False) -> None:
        """Name the columns of the joined relation, each once.

        ``names`` maps names of the right side's columns in it to their own; ``left_person`` and ``right_person`` are
        columns that are NULL where the join found no row of that side (None: it always does).
        """
        self.card, self.kind, self.person = card, kind, person_of(card)
        self.left, self.right = materialized(left, card), materialized(right, card)
        assert self.left.source is not None
        assert self.right.source is not None
        self._left_schema = relation_schema(card, self.left.source)
        self._right_schema = relation_schema(card, self.right.source)
        sides = {"left": self.left}, {"right": self.right}
        self.scope = NameScope((sides[1], sides[0]) if nested else (sides[0] | sides[1],))
        for item in () if nested else self.right.relations:
            if item.name and self.left.has_table(item.name):
                raise refuse_sql("different names for tables", f"{clip(item.name)!r} twice", "give one an alias")
        taken = {name.casefold() for name in self._left_schema.columns}
        prefix = next((item.name for item in self.right.relations if item.name), "right")
        self.names = {
            unique_name(name, prefix, taken): name for name in self._right_schema.columns if name != self.person
        }
        self.left_person = unique_name(f"left.{self.person}", "left", taken) if kind in ("right", "full") else None
        outer = kind in ("left", "full")
        self.right_person = unique_name(f"{prefix}.{self.person}", prefix, taken) if outer else None

    def is_person_equality(self, node: exp.Expr) -> bool:
        """Return whether a condition compares the person of one side with the person of the other."""
        if not isinstance(node, exp.EQ):
            return False
        people = [self._person_side(item) for item in (node.this, node.expression)]
        return sorted(side for side in people if side) == ["left", "right"]

    def states_columns(self, node: exp.Expr) -> bool:
        """Return whether the sources of both sides have all columns of a condition."""
        sides = [self.left, self.right]
        names = [name_of(column) for column in node.find_all(exp.Column)]
        return all(any(rows.lookup(name, reached=False) is not None for rows in sides) for name in names)

    def key_equalities(self, nodes: list[exp.Expr]) -> list[exp.Expr]:
        """Return the equalities that compare a key of the left relation, one that determines the person, with the same
        key of the right one: joined rows then belong to one person. Further equalities of these columns of the right
        relation are among them."""
        pairs: list[tuple[exp.Expr, tuple[str, str]]] = []
        for node in nodes:
            if not isinstance(node, exp.EQ):
                continue
            sides = {}
            for item in (node.this, node.expression):
                match = self.scope.find(name_of(item)) if isinstance(item, exp.Column) else None
                if match is not None and isinstance(match[1], Column):
                    sides[match[0]] = match[1].name
            if len(sides) == 2:
                pairs.append((node, (sides["left"], sides["right"])))
        equal = {pair for _, pair in pairs}
        keys = same_keys(self._left_schema, self._right_schema, equal)
        columns = {column for key in keys for column in key.columns}
        return [node for node, (_, right) in pairs if right in columns]

    def _person_side(self, node: exp.Expr) -> str | None:
        """Return "left" or "right" where a node names the person of that side; None where it does not."""
        match = self.scope.find(name_of(node)) if isinstance(node, exp.Column) else None
        if match is None:
            return None
        side, value = match
        people = (self._left_schema if side == "left" else self._right_schema).people
        return side if isinstance(value, Column) and (value.name == self.person or value.name in people) else None

    def sides_of(self, node: exp.Expr, clause: str) -> set[str]:
        """Return which sides, "left" or "right", a condition has columns of."""
        sides: set[str] = set()
        read(node, self._leaf(clause, sides))
        return sides

    def condition(self, node: exp.Expr, clause: str) -> Expression:
        """Return a condition on columns of both sides, under the names that the joined relation gives them."""
        return require_boolean(read(node, self._leaf(clause, set())), self._types, clause)

    @property
    def _types(self) -> Types:
        """The types of the columns of both sides, also of the right side of a semi or anti join, whose condition
        names them."""
        kind: JoinKind = "inner" if self.kind in ("semi", "anti") else self.kind
        return types_of(Rows((), source=self._join(kind, None)), self.card)

    def _leaf(self, clause: str, sides: set[str]) -> Leaf:
        """Return the reader of leaf nodes that finds columns of both sides and adds the sides it meets to ``sides``."""
        other = row_leaf(self.scope.rows, clause)

        def leaf(node: exp.Expr) -> Expression | None:
            """Return the column under its name in the joined relation; other nodes as in a clause about rows."""
            match = self.scope.find(name_of(node)) if isinstance(node, exp.Column) else None
            if match is None:
                return other(node)
            side, value = match
            sides.add(side)
            return self._left_column(value) if side == "left" else self._right_column(value)

        return leaf

    def joined(self, conditions: list[exp.Expr]) -> Rows:
        """Return the joined rows; the conditions must contain that the person of both sides is the same."""
        equalities = [node for node in conditions if self.is_person_equality(node)]
        if not equalities and not self.key_equalities(conditions):
            fix = f"add {self.person_in(self.left)} = {self.person_in(self.right)} to ON: only public tables are "
            fix += "joined on something else"
            got = "a join of private tables on something else"
            raise refuse_sql(f"a join on the person, {self.person}", got, fix)
        plain = [node for node in equalities if self.is_plain(node)]
        rest = [node for node in conditions if not any(node is item for item in plain)]
        on: Expression | None = None
        for node in rest:
            on = conjunction(on, self.condition(node, "ON"))
        return self.rows(on)

    def person_in(self, rows: Rows) -> str:
        """Return how SQL names the person of one side, for example ``visits.patient``."""
        named = [(item.name, name) for item in rows.relations for name, value in item.columns.items()
                 if value == Column(self.person)]  # fmt: skip
        table, name = named[0] if named else ("…", self.person)
        return f"{table}.{name}" if table else name

    def is_plain(self, node: exp.Expr) -> bool:
        """Return whether an equality compares the persons themselves; a column that an outer join can make NULL is a
        further condition."""
        people = [self.scope.find(name_of(item)) for item in (node.this, node.expression)]
        return all(item is not None and item[1] == Column(self.person) for item in people)

    def joined_using(self, names: list[str]) -> Rows:
        """Return the joined rows of JOIN … USING: columns of these names are equal, and one pair of them must be the
        person."""
        pairs = [(self.left.find(Column(name)), self._right_column(self.right.find(Column(name)))) for name in names]
        if not any(self._are_people(left, right) for left, right in pairs):
            fix = f"name a column that is the person of both, or write ON {self.person_in(self.left)} = "
            raise refuse_sql("USING with the person", "other columns", fix + self.person_in(self.right))
        on: Expression | None = None
        for left, right in pairs:
            if (left, right) != (Column(self.person), self._right_person_column):
                on = conjunction(on, typed(Call("=", (left, right)), self._types)[0])
        if self.kind in ("right", "full") and on is not None:
            raise refuse_sql("JOIN or LEFT JOIN USING several columns", f"{self.kind.upper()} JOIN", "write ON")
        rows = self.rows(on)
        # columns that USING names are one column each: of the merged side they are found by their full name only
        hidden = {name.casefold() for name in names}
        kept = self.left.relations if self.kind in ("semi", "anti") else rows.relations
        merged = tuple(
            replace(item, merged=frozenset(name for name in item.columns if name.casefold() in hidden))
            if place >= len(self.left.relations) or self.kind in ("right", "full")
            else item
            for place, item in enumerate(kept)
        )
        if self.kind in ("right", "full"):
            merged = (*merged, Relation("", {names[0]: Column(self.person)}))
        return replace(rows, relations=merged)

    def _are_people(self, left: Expression, right: Expression) -> bool:
        """Return whether a column of the left side and one of the right side, as the join names them, both hold
        their side's person."""
        people = {self.person, *self._left_schema.people}
        others = {
            self._right_person_column.name,
            *(name for name, old in self.names.items() if old in self._right_schema.people),
        }
        return isinstance(left, Column) and left.name in people and isinstance(right, Column) and right.name in others

    @property
    def _right_person_column(self) -> Column:
        """The column with the right side's person: one of its own in an outer join, otherwise the shared one."""
        return Column(self.right_person or self.person)

    def _right_column(self, value: Expression) -> Expression:
        """Return a column of the right side under its name in the joined relation."""
        new = {old: name for name, old in self.names.items()}
        assert isinstance(value, Column)
        return self._right_person_column if value.name == self.person else Column(new[value.name])

    def _relations_of_both(self) -> Rows:
        """Return the relations of both sides with the columns' names in the joined relation."""
        left = tuple(
            replace(item, columns={name: self._left_column(value) for name, value in item.columns.items()})
            for item in self.left.relations
        )
        right = tuple(
            replace(item, columns={name: self._right_column(value) for name, value in item.columns.items()})
            for item in self.right.relations
        )
        return Rows((*left, *right))

    def _left_column(self, value: Expression) -> Expression:
        """Return a column of the left side under its name in the joined relation, where an outer join may make its
        person NULL."""
        return Column(self.left_person) if self.left_person and value == Column(self.person) else value

    def rows(self, on: Expression | None) -> Rows:
        """Return the rows joined on the person and a further condition; None for no further condition."""
        relations = self.left.relations if self.kind in ("semi", "anti") else self._relations_of_both().relations
        return Rows(relations, source=self._join(self.kind, on))

    def _join(self, kind: JoinKind, on: Expression | None) -> PersonJoin:
        """Return the join as a node of the query tree."""
        assert self.left.source is not None
        assert self.right.source is not None
        return PersonJoin(
            self.left.source, self.right.source, kind, self.names, on, self.left_person, self.right_person
        )


def materialized(rows: Rows, card: Card) -> Rows:
    """Return the rows as a relation whose every column is a plain name, so that they can be joined: expressions,
    WHERE and public joins move into a projection. Rows that are so already stay."""
    source: Source = rows.source or PrivateRows()
    values = [value for item in rows.relations for value in item.columns.values()]
    if rows.where is None and not rows.joins and all(isinstance(item, Column) and not item.table for item in values):
        return Rows(rows.relations, source=source)
    person = Column(person_of(card))
    names: dict[str, Expression] = {}
    taken = {person.name.casefold()}
    relations: list[Relation] = []
    for item in rows.relations:
        shown: dict[str, Expression] = {}
        for name, value in item.columns.items():
            known = next((other for other, known in names.items() if known == value), None)
            if value != person and known is None:
                known = unique_name(name, item.name, taken)
                names[known] = value
            shown[name] = person if known is None else Column(known)
        relations.append(replace(item, columns=shown))
    return Rows(tuple(relations), source=Projection(source, names, rows.where, rows.joins))


def unique_name(name: str, prefix: str, taken: set[str]) -> str:
    """Return a column name that is not taken, regardless of case, with a prefix or number where needed, and reserve
    it."""
    number, result = 1, name
    while result.casefold() in taken:
        result = f"{prefix}.{name}" if number == 1 else f"{prefix}.{name}.{number}"
        number += 1
    taken.add(result.casefold())
    return result


def _with_public(rows: Rows, join: exp.Join, card: Card) -> Rows:
    """Return the rows joined with a public table on equalities of its columns with expressions on the rows."""
    side, kind = join.side.upper(), join.kind.upper()
    condition, using = join.args.get("on"), join.args.get("using")
    fix = "write JOIN table ON own_column = table.key, or LEFT JOIN"
    if kind in ("CROSS", "SEMI", "ANTI", "ASOF") or side in ("RIGHT", "FULL") or join.method:
        raise refuse_sql("JOIN or LEFT JOIN", f"{join.method} {side} {kind} JOIN".replace("  ", " ").strip(), fix)
    if condition is None and not using:
        if isinstance(join.this, exp.Table):  # FROM visits, other: which of them there is comes first
            public_relation(card, _table_name(join.this, "JOIN with a public table", fix))
        raise refuse_sql("JOIN … ON one equality", "no condition", fix)
    refuse_other_parts(join, "this", "side", "kind", "using" if using else "on")
    rows, name, relation = _beside_public(rows, join.this, card, fix)
    if using:
        keys = [Column(item.name) for item in using]
        public = Rows((relation,))
        sides = [(rows.find(key), public.find(key)) for key in keys]
        relation = replace(relation, merged=frozenset(public.spelling_of(key) for key in keys))
        rest: list[exp.Expr] = []
    else:
        assert condition is not None
        both = replace(rows, relations=(*rows.relations, relation))
        equal, rest = [], []
        for node in conjuncts(condition):
            if isinstance(node, exp.EQ):
                leaf = row_leaf(both, "ON")
                equal.append((read(node.this, leaf), read(node.expression, leaf)))
            else:
                rest.append(node)
        if not equal or (rest and side == "LEFT"):
            got = rest[0].key.upper() if rest else "none"
            raise refuse_sql("JOIN … ON one equality", got, f"{fix}; put the rest into WHERE")
        sides = equal
    pairs = [_public_pair(item, name) for item in sides]
    known = [pair for pair in pairs if pair is not None]
    if not known or (side == "LEFT" and None in pairs):
        raise refuse_sql("a column of the table = a column of the public table", "an equality of other columns", fix)
    result = _joined_public(rows, card, name, relation, known, side == "LEFT")
    more = [Call("=", item) for item, pair in zip(sides, pairs, strict=True) if pair is None]
    conditions = [typed(item, types_of(result, card))[0] for item in more]
    conditions += [require_boolean(read(node, row_leaf(result, "ON")), types_of(result, card), "ON") for node in rest]
    where = result.where
    for item in conditions:
        where = conjunction(where, item)
    return replace(result, where=where)


def _beside_public(rows: Rows, node: exp.Expr, card: Card, fix: str) -> tuple[Rows, str, Relation]:
    """Return the rows to which a public table can be joined, the table's name in the card, and what it is called.

    Where they are joined with the table already, or with another one that its key may stand in (nation, then its
    region), the columns of these become columns of the rows.
    """
    name, relation = public_relation(card, _table_name(node, "JOIN with a public table", fix), _alias(node))
    if any(item.name.casefold() == relation.name.casefold() for item in rows.relations):
        raise refuse_sql("different names for tables", f"{clip(relation.name)!r} twice", "give one an alias")
    return (materialized(rows, card) if any(item.table == name for item in rows.joins) else rows), name, relation


def _public_pair(sides: tuple[Expression, Expression], name: str) -> tuple[Expression, str] | None:
    """Return an equality as an expression on the rows and a column of the public table; None for any other."""
    for own, other in (sides, sides[::-1]):
        named = {column.table for column in columns(own)}
        if isinstance(other, Column) and other.table == name and named and name not in named:
            return own, other.name
    return None


def _joined_public(
    rows: Rows, card: Card, name: str, relation: Relation, pairs: list[tuple[Expression, str]], left: bool
) -> Rows:
    """Return the rows joined with a public table on a key of one part or several; parts of it may be columns of public
    tables joined before."""
    types = types_of(rows, card)
    for own, other in pairs:
        typed(Call("=", (own, Column(other, name))), types)
    if any(column.table is not None for own, _ in pairs for column in columns(own)):
        before, rows = rows, materialized(rows, card)
        new = {
            value: after.columns[column]
            for item, after in zip(before.relations, rows.relations, strict=True)
            for column, value in item.columns.items()
        }
        pairs = [(_renamed_in(own, new), other) for own, other in pairs]
    (own, other), *more = pairs
    added = Join(name, own, other, left, tuple(more))
    return replace(rows, relations=(*rows.relations, relation), joins=(*rows.joins, added))


def _renamed_in(value: Expression, new: Mapping[Expression, Expression]) -> Expression:
    """Return an expression on rows as one on the relation that they were made, whose columns stand for ``new``."""
    if value in new:
        return new[value]
    return Call(value.op, tuple(_renamed_in(item, new) for item in value.args)) if isinstance(value, Call) else value


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
    """Return the rows of a subquery in FROM or IN, under an alias."""
    while isinstance(query, exp.Subquery) and not query.alias:
        refuse_other_parts(query, "this")
        query = query.this
    if isinstance(query, exp.Union):
        return _union_rows(query, card, alias)
    if not isinstance(query, exp.Select):
        got = query.key.upper()
        raise refuse_sql("a SELECT of rows in FROM", got, f"write FROM (SELECT … FROM {card.name}) AS s")
    for name, (got, fix) in _REFUSED.items():
        if query.args.get(name):
            raise refuse_sql("a SELECT of rows in FROM", got, fix.format(person=card.unit or "person"))
    refuse_other_parts(query, *_PARTS)
    return _SelectRows(query, card).rows(alias)


def _group_nodes(select: exp.Select, rows: Rows) -> list[exp.Expr]:
    """Return the expressions of GROUP BY, with positions and names by AS resolved; none without GROUP BY."""
    group = select.args.get("group")
    if group is None:
        return []
    refuse_other_parts(group, "expressions")
    items = select_items(select)
    return [group_node(node, items, rows) for node in group.expressions]


def groups_by_person(select: exp.Select, card: Card) -> bool:
    """Return whether GROUP BY or DISTINCT of a SELECT contains the person, so that each row of the result belongs to
    one person."""
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
    named: list[Expression] = []
    for written in nodes:
        node = written
        with suppress(InvalidArgument):  # a name of two meanings is refused where the groups are read
            node = written if group is None else group_node(written, items, rows)
        inner = node.this if isinstance(node, exp.Alias) else node
        if isinstance(inner, exp.Star):
            return any(Column(card.unit) in item.stated.values() for item in rows.relations)
        if isinstance(inner, exp.Column):
            with suppress(InvalidArgument):
                named.append(rows.find(name_of(inner)))
    return Column(card.unit) in named or (group is not None and _lead_to_a_person(named, rows, card))


def _lead_to_a_person(values: Collection[Expression], rows: Rows, card: Card) -> bool:
    """Return whether rows that are equal in these values are of one person, since a key among them leads to one."""
    names = {value.name for value in values if isinstance(value, Column) and value.table is None}
    return any(names.issuperset(key.columns) for key in relation_schema(card, rows.source or PrivateRows()).keys)


class _SelectRows:
    """Reads one SELECT below the aggregation."""

    def __init__(self, select: exp.Select, card: Card) -> None:
        """Read FROM, and find out whether the SELECT groups and whether it has window functions."""
        self.select, self.card = select, card
        distinct = select.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            fix = f"write QUALIFY ROW_NUMBER() OVER (PARTITION BY {card.unit} ORDER BY …) = 1"
            raise refuse_sql("SELECT DISTINCT", "DISTINCT ON", fix)
        self.source_rows = rows_of(select, card)
        if self.source_rows.outer:
            fix = "start with the private table, or write JOIN"
            raise refuse_sql("rows of people in FROM (SELECT …)", "rows of a public table without people", fix)
        write_groups_out(select)
        self.groups: dict[str, Expression] = {}
        self.aggregates: dict[str, PersonAggregate] = {}
        self.windows: dict[str, WindowFunction] = {}
        self.aliases = {alias.casefold(): node for alias, node in select_items(select) if alias}
        self.taken: set[str] = set()
        parts = [*select.expressions, select.args.get("having"), select.args.get("qualify")]
        written = [part for part in parts if part is not None]
        self.grouped = bool(select.args.get("group")) or any(_has_node(part, is_person_aggregate) for part in written)
        self.windowed = any(_has_node(part, lambda node: isinstance(node, exp.Window)) for part in written)
        if self.windowed and not self.grouped:
            self.source_rows = materialized(self.source_rows, card)

    def rows(self, alias: str) -> Rows:
        """Return the rows that the SELECT makes, under an alias, after checking every clause."""
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
        return _distinct_rows(result, alias, self.card) if self.select.args.get("distinct") else result

    def _source(self, having: Expression | None) -> Source | None:
        """Return the relation that the SELECT's columns are computed on: per person where it groups, with window
        functions where it has some."""
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
        """Return the type of a column of the relation as far as it is read."""
        source: Source | None = self.source_rows.source
        if self.grouped:
            source = PerPerson(source or PrivateRows(), self.aggregates, self.groups)
        if self.windows:
            source = Windowed(source or PrivateRows(), self.windows)
        return type_of(relation_card(self.card, source), column)

    def _read_groups(self) -> None:
        """Read GROUP BY of a table per person; refuse one that does not contain the person."""
        person = Column(person_of(self.card))
        has_person = False
        for node in _group_nodes(self.select, self.source_rows):
            value = read(node, row_leaf(self.source_rows, "GROUP BY"))
            value, _ = typed(value, types_of(self.source_rows, self.card))
            if value == person:
                has_person = True
            elif value not in self.groups.values():
                self.groups[self._name(_default_name(node, "group"))] = value
        if not has_person and not _lead_to_a_person(self.groups.values(), self.source_rows, self.card):
            raise refuse_sql(
                f"GROUP BY {person.name} in a table per person",
                "GROUP BY without it" if self.select.args.get("group") else "aggregates without GROUP BY",
                f"add {person.name} to GROUP BY inside; an aggregation of all people is a question of its own",
            )

    def _name(self, default: str) -> str:
        """Return a new column name that neither the source nor the person has."""
        if not self.taken:
            self.taken.add(person_of(self.card).casefold())
            if not self.grouped:
                known = relation_card(self.card, self.source_rows.source or PrivateRows())
                self.taken |= {name.casefold() for name in known.columns}
        return unique_name(default, "of", self.taken)

    def _condition(self, name: str) -> Expression | None:
        """Return HAVING or QUALIFY as a condition on the relation; None where the SELECT has none."""
        part = self.select.args.get(name)
        if part is None:
            return None
        clause: Clause = "HAVING" if name == "having" else "QUALIFY"
        condition = require_boolean(self._value(part.this, clause), self._types, clause)
        if clause == "HAVING" and any(column.name in self.windows for column in columns(condition)):
            raise refuse_sql("groups and aggregates in HAVING", "a window function", "put the condition into QUALIFY")
        return condition

    def _shown(self) -> dict[str, Expression]:
        """Return the output columns of the SELECT by name; refuse a name that is given twice."""
        result: dict[str, Expression] = {}
        for item in self.select.expressions:
            for name, value in self._columns(item):
                if name.casefold() in (known.casefold() for known in result):
                    expected = "columns of different names in FROM (SELECT …)"
                    raise refuse_sql(expected, f"{clip(name)!r} twice", "rename one")
                result[name] = value
        return result

    def _columns(self, item: exp.Expr) -> list[tuple[str, Expression]]:
        """Return the output columns that one item of SELECT stands for: several for *, otherwise one."""
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
        """Return the columns that * or table.* stands for, in order; a column merged by USING occurs once."""
        rows, merged = self.source_rows, set[str]()
        result: list[tuple[str, Expression]] = []
        for relation in rows.relations:
            for name, value in relation.stated.items():
                if table:
                    result += [(name, value)] if relation.name.casefold() == table.casefold() else []
                elif name in relation.merged:
                    result += [] if name.casefold() in merged else [(name, rows.find(Column(name)))]
                    merged.add(name.casefold())
                elif name.casefold() not in merged:
                    result.append((name, value))
        return result

    def _value(self, node: exp.Expr, clause: Clause = "SELECT") -> Expression:
        """Return an expression on the relation: on its groups and aggregates where the SELECT groups."""

        def leaf(item: exp.Expr) -> Expression | None:
            """Return the expression of a window function, an aggregate or a column; None for other nodes."""
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
        """Return what a column's name stands for: a column of the rows, or an output column by AS."""
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
        """Return an expression in which groups, aggregates and windows are columns of the relation; refuse a column
        that is not grouped."""
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
        """Return a column for an aggregate of the person's rows."""
        return self._computed(node, person_aggregate(node, self.source_rows, self.card), self.aggregates)

    def _window(self, node: exp.Window) -> Expression:
        """Return a column for a window function over the person's rows."""
        result = window_function(node, self._value, self._types, Column(person_of(self.card)))
        return self._computed(node, result, self.windows)

    def _computed(self, node: exp.Expr, function: _Function, known: dict[str, _Function]) -> _Computed:
        """Return the column of an aggregate or window function among ``known``, added under a new name where it is
        not there yet."""
        name = next((name for name, other in known.items() if other == function), None)
        if name is None:
            name = self._name(_default_name(node, function.kind))
            known[name] = function
        return _Computed(name)


def _default_name(node: exp.Expr, default: str) -> str:
    """Return the name of a column by AS or by its own name, otherwise a default."""
    if isinstance(node.parent, exp.Alias):
        return node.parent.alias
    return node.name if isinstance(node, exp.Column) else default


def _has_node(part: exp.Expr, wanted: Callable[[exp.Expr], bool]) -> bool:
    """Return whether a clause has a node of some kind, outside of nested queries. The function of a window is not
    looked at, since it is no aggregate of groups; its arguments are."""
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


def _distinct_rows(rows: Rows, alias: str, card: Card) -> Rows:
    """Return SELECT DISTINCT of rows: each distinct row of a person once. The person must be among the columns."""
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


def _union_rows(query: exp.Union, card: Card, alias: str) -> Rows:
    """Return UNION ALL of two queries, matched by position; for UNION the distinct rows of it."""
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
    return _distinct_rows(rows, alias, card) if query.args.get("distinct") else rows


def with_condition(rows: Rows, node: exp.Expr, card: Card) -> Rows:
    """Return the rows for which EXISTS, IN, or the negation of one holds."""
    negated = False
    while isinstance(node, (exp.Paren, exp.Not)):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    if isinstance(node, exp.Exists):
        return _with_existence(rows, node, negated, card)
    assert isinstance(node, exp.In)
    return _with_membership(rows, node, negated, card)


def _unwrapped_query(node: exp.Expr) -> exp.Expr:
    """Return the query inside of parentheses."""
    while isinstance(node, exp.Subquery):
        refuse_other_parts(node, "this")
        node = node.this
    return node


def _with_existence(rows: Rows, node: exp.Exists, negated: bool, card: Card) -> Rows:
    """Return the rows with, or if negated without, rows of the same person in a subquery: a semi or anti join."""
    query, person = _unwrapped_query(node.this), person_of(card)
    fix = f"write {person} IN (SELECT {person} FROM … GROUP BY {person} HAVING …)"
    if not isinstance(query, exp.Select):
        raise refuse_sql("EXISTS (SELECT … FROM … WHERE …)", query.key.upper(), fix)
    for name in ("group", "having", "qualify", "limit", "offset", "distinct"):
        if query.args.get(name):
            raise refuse_sql("EXISTS (SELECT … FROM … WHERE …)", f"{name.upper()} inside", fix)
    refuse_other_parts(query, "expressions", "from_", "joins", "where", "order")
    where = query.args.get("where")
    waiting = [] if where is None else conjuncts(where.this)
    _refuse_public(query, waiting, negated, card)
    inner = from_and_joins(query, card, waiting)
    kind: JoinKind = "anti" if negated else "semi"
    scope = PersonJoinReader(rows, inner, kind, card, nested=True)
    people = [item for item in waiting if scope.is_person_equality(item)]
    if not people and not scope.key_equalities(waiting):
        raise refuse_sql(
            "EXISTS about rows of the same person",
            "rows of other people",
            f"compare the person of both inside: add {scope.person_in(inner)} = {scope.person_in(rows)} to WHERE",
        )
    correlated: list[exp.Expr] = []
    for item in waiting:
        if any(item is other for other in people):
            if not scope.is_plain(item):  # a person that an outer join makes NULL equals no other
                correlated.append(item)
        elif is_subquery_condition(item):
            inner = with_condition(inner, item, card)
        elif "left" in scope.sides_of(item, "EXISTS"):
            correlated.append(item)
        else:
            condition = require_boolean(read(item, row_leaf(inner, "EXISTS")), types_of(inner, card), "EXISTS")
            inner = replace(inner, where=conjunction(inner.where, condition))
    reader = PersonJoinReader(rows, inner, kind, card, nested=True)
    on: Expression | None = None
    for item in correlated:
        on = conjunction(on, reader.condition(item, "EXISTS"))
    return reader.rows(on)


def _refuse_public(query: exp.Select, conditions: list[exp.Expr], negated: bool, card: Card) -> None:
    """Refuse EXISTS about a public table, with the JOIN that keeps the same rows as advice."""
    table = query.args["from_"].this if query.args.get("from_") else None
    if not isinstance(table, exp.Table) or spelling(table.name, card.public) is None:
        return
    name, relation = public_relation(card, table.name, table.alias or None)
    inner = Rows((relation,))

    def is_inner(node: exp.Expr) -> bool:
        """Return whether a node is a column of the public table."""
        return isinstance(node, exp.Column) and inner.lookup(name_of(node)) is not None

    def written(node: exp.Expr) -> str:
        """Return a condition as SQL with the table's name before its columns."""
        result = node.transform(lambda item: exp.column(item.name, relation.name) if is_inner(item) else item)
        return result.sql("duckdb")

    join = f"{'LEFT ' if negated else ''}JOIN {exp.to_table(name, alias=table.alias or None).sql('duckdb')}"
    fix = f"join it: {join} ON own_column = key, and compare its columns in WHERE"
    equal = [(item, item.this, item.expression) for item in conditions if isinstance(item, exp.EQ)]
    pairs = [(item, *sides) for item, *sides in equal if all(isinstance(side, exp.Column) for side in sides)]
    keys = [item for item, left, right in pairs if is_inner(left) != is_inner(right)]
    if len(keys) == 1:
        rest = " AND ".join(written(item) for item in conditions if item is not keys[0])
        if negated:
            key = next(item for item in (keys[0].this, keys[0].expression) if is_inner(item))
            rest = f"NOT COALESCE({rest}, FALSE)" if rest else f"{written(key)} IS NULL"
        fix = f"join it: write {join} ON {written(keys[0])}" + (f" WHERE {rest}" if rest else "")
    raise refuse_sql("EXISTS about a private table", f"the public table {clip(name)!r}", fix)


def _with_membership(rows: Rows, node: exp.In, negated: bool, card: Card) -> Rows:
    """Return the rows whose value is, or if negated is not, in a subquery: people of another private relation, or a
    column of a public table."""
    refuse_other_parts(node, "this", "query")
    query = _unwrapped_query(node.args["query"])
    value = read(node.this, row_leaf(rows, "IN"))
    public = _public_column(query, card)
    if public is not None:
        table, column = public
        kept = materialized(rows, card)
        value = read(node.this, row_leaf(kept, "IN"))
        typed(Call("=", (value, Column(column, table))), types_of(kept, card))
        assert kept.source is not None
        return Rows(kept.relations, source=PublicMembership(kept.source, value, table, column, negated))
    person = person_of(card)
    inner = query_rows(query, card, "")
    shown = list(inner.relations[0].columns.values())
    fix = f"write {person} IN (SELECT {person} FROM …), or ask a public table of the card"
    if value != Column(person) or len(shown) != 1 or shown[0] != Column(person):
        raise refuse_sql(f"{person} IN (SELECT {person} FROM …)", "IN of something else of other rows", fix)
    return PersonJoinReader(rows, inner, "anti" if negated else "semi", card, nested=True).rows(None)


def _public_column(query: exp.Expr, card: Card) -> tuple[str, str] | None:
    """Return the table and column of ``SELECT column FROM public_table``; None where the query reads no public
    table."""
    if not isinstance(query, exp.Select) or not query.args.get("from_"):
        return None
    table = query.args["from_"].this
    if not isinstance(table, exp.Table) or spelling(table.name, card.public) is None:
        return None
    fix = "write x IN (SELECT key FROM public_table), and join the table to say more"
    if len(query.expressions) != 1 or not isinstance(query.expressions[0], exp.Column):
        raise refuse_sql("one column of a public table in IN (SELECT …)", "an expression or several columns", fix)
    for name, part in query.args.items():
        if part and name not in ("expressions", "from_", "distinct"):
            raise refuse_sql("IN (SELECT column FROM public_table)", f"{name.strip('_').upper()} inside", fix)
    name, relation = public_relation(card, table.name, table.alias or None)
    column = Rows((relation,)).find(name_of(query.expressions[0]))
    assert isinstance(column, Column)
    return name, column.name
