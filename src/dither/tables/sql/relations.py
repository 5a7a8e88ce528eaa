"""From FROM, JOIN and WHERE to rows: private tables, relations made of them, and public tables joined to them.

Private relations are joined on the person (JOIN … ON a.person = b.person AND …), also by a comma with the equality in
WHERE, and compared with each other by EXISTS and IN. What would not carry the person is refused, with what to write
instead.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dither.tables.card.model import Card
from dither.tables.card.wording import clip
from dither.tables.query.operations.base import refuse_other_parts, refuse_sql
from dither.tables.query.relations import own_name, person_of, private_columns, relation_schema, types_of
from dither.tables.query.resolve import Relation, Rows, private_relation, public_relation, spelling
from dither.tables.query.tree import (
    Call,
    Column,
    Expression,
    Join,
    JoinKind,
    PersonJoin,
    PrivateRows,
    Projection,
    Source,
    columns,
)
from dither.tables.query.typecheck import Types, require_boolean, typed
from dither.tables.sql.expressions import Leaf, name_of, read, row_leaf
from dither.tables.sql.scopes import Scope

_SELECT = ("expressions", "from_", "joins", "where", "group", "having", "order", "limit")
_KINDS: dict[str, JoinKind] = {
    "": "inner", "INNER": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full", "SEMI": "semi", "ANTI": "anti",
    "CROSS": "inner", "LEFT SEMI": "semi", "LEFT ANTI": "anti",
}  # fmt: skip


def refuse_unanswerable(select: exp.Select) -> None:
    """Refuse a SELECT with parts of which nothing is known, or that cannot be answered."""
    args = select.args
    if args.get("distinct"):
        raise refuse_sql("SELECT", "SELECT DISTINCT", "use GROUP BY and COUNT(*)")
    if args.get("with_"):
        raise refuse_sql("one SELECT", "a WITH clause", "write the inner query into FROM: SELECT … FROM (SELECT …)")
    if args.get("offset"):
        raise refuse_sql("LIMIT", "OFFSET", "take LIMIT and skip rows of the answer yourself; the answer is yours")
    refuse_other_parts(select, *_SELECT)


def rows_of(select: exp.Select, card: Card) -> Rows:
    """The rows a SELECT is about."""
    where = select.args.get("where")
    waiting = [] if where is None else conjuncts(where.this)
    rows = from_and_joins(select, card, waiting)
    subqueries = [node for node in waiting if is_subquery_condition(node)]
    if subqueries:
        from dither.tables.sql.existence import with_condition

        for node in subqueries:
            rows = with_condition(rows, node, card)
    rest = [node for node in waiting if not any(node is item for item in subqueries)]
    if not rest or where is None:
        return rows
    whole = where.this if len(rest) == len(conjuncts(where.this)) else exp.and_(*rest, copy=False, wrap=False)
    condition = require_boolean(read(whole, row_leaf(rows, "WHERE")), types_of(rows, card), "WHERE")
    return replace(rows, where=conjunction(rows.where, condition))


def from_and_joins(select: exp.Select, card: Card, where: list[exp.Expr]) -> Rows:
    """The rows of FROM and its joins; equalities of people that a comma leaves to WHERE are taken out of it."""
    start = select.args.get("from_")
    if start is None:
        raise refuse_sql(f"FROM {card.name}", "no FROM", f"end with FROM {card.name}")
    refuse_other_parts(start, "this")
    rows = relation_rows(start.this, card)
    written = list(where)
    for join in select.args.get("joins") or ():
        rows = _with_join(rows, join, card, where)
    taken = [node for node in written if not any(node is item for item in where)]
    for column in (column for node in taken for column in node.find_all(exp.Column)):
        rows.lookup(name_of(column))  # a table that comes later in FROM may have the name, too
    return rows


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The conditions of which all must hold."""
    while isinstance(node, exp.Paren):
        node = node.this
    return [*conjuncts(node.this), *conjuncts(node.expression)] if isinstance(node, exp.And) else [node]


def is_subquery_condition(node: exp.Expr) -> bool:
    """Whether a condition is EXISTS, NOT EXISTS, IN or NOT IN of a query."""
    while isinstance(node, (exp.Paren, exp.Not)):
        node = node.this
    return isinstance(node, exp.Exists) or (isinstance(node, exp.In) and bool(node.args.get("query")))


def conjunction(first: Expression | None, second: Expression | None) -> Expression | None:
    """Both conditions, where stated.

    >>> conjunction(None, Column("a"))
    Column(name='a', table=None)
    """
    if first is None or second is None:
        return second if first is None else first
    return Call("and", (first, second))


def is_private(name: str, card: Card) -> bool:
    """Whether a private table of the card has this name."""
    return spelling(name, [card.name, *card.tables]) is not None


def relation_rows(node: exp.Expr, card: Card) -> Rows:
    """The rows of one thing in FROM: a private table, or a query of rows."""
    if isinstance(node, exp.Subquery):
        from dither.tables.sql.person_select import query_rows

        refuse_other_parts(node, "this", "alias")
        return query_rows(node.this, card, _alias(node) or "")
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
    return Rows((Relation(_alias(node) or table, columns),), source=PrivateRows(table))


def _table_name(node: exp.Expr, expected: str, fix: str) -> str:
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise refuse_sql(expected, "a function or a list as table", fix)
    if node.args.get("db") or node.args.get("catalog"):
        raise refuse_sql(expected, "a path to a table", fix)
    refuse_other_parts(node, "this", "alias")
    return str(node.name)


def _alias(node: exp.Expr) -> str | None:
    alias = node.args.get("alias")
    if alias is not None:
        refuse_other_parts(alias, "this")
    return node.alias or None


# -- joins ------------------------------------------------------------------------------------------------------------


def _with_join(rows: Rows, join: exp.Join, card: Card, where: list[exp.Expr]) -> Rows:
    private = isinstance(join.this, exp.Subquery) or (
        isinstance(join.this, exp.Table) and is_private(join.this.name, card)
    )
    return _with_private(rows, join, card, where) if private else _with_public(rows, join, card)


def _with_private(rows: Rows, join: exp.Join, card: Card, where: list[exp.Expr]) -> Rows:
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
    where[:] = [node for node in where if not any(node is item for item in equalities)]
    return reader.joined(equalities)


class PersonJoinReader:
    """Reads the condition of a join of two private relations, of which one part is that the person is the same.

    ``nested`` is whether the right relation is of a query inside the other's: names in the condition are then its own
    first. Otherwise both are beside each other.
    """

    def __init__(self, left: Rows, right: Rows, kind: JoinKind, card: Card, nested: bool = False) -> None:
        self.card, self.kind, self.person = card, kind, person_of(card)
        self.left, self.right = materialized(left, card), materialized(right, card)
        assert self.left.source is not None
        assert self.right.source is not None
        self._left_schema = relation_schema(card, self.left.source)
        self._right_schema = relation_schema(card, self.right.source)
        sides = {"left": self.left}, {"right": self.right}
        self.scope = Scope((sides[1], sides[0]) if nested else (sides[0] | sides[1],))
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
        """Whether a condition says that the person of both sides is the same."""
        if not isinstance(node, exp.EQ):
            return False
        people = [self._person_side(item) for item in (node.this, node.expression)]
        return sorted(side for side in people if side) == ["left", "right"]

    def _person_side(self, node: exp.Expr) -> str | None:
        """The side whose person a name stands for; None where it is no person."""
        match = self.scope.find(name_of(node)) if isinstance(node, exp.Column) else None
        if match is None:
            return None
        side, value = match
        people = (self._left_schema if side == "left" else self._right_schema).people
        return side if isinstance(value, Column) and (value.name == self.person or value.name in people) else None

    def sides_of(self, node: exp.Expr, clause: str) -> set[str]:
        """The sides whose columns are named in a condition."""
        sides: set[str] = set()
        read(node, self._leaf(clause, sides))
        return sides

    def condition(self, node: exp.Expr, clause: str) -> Expression:
        """A condition on columns of both sides, by the names that the join gives them."""
        return require_boolean(read(node, self._leaf(clause, set())), self._types, clause)

    @property
    def _types(self) -> Types:
        """The types of the columns of both sides, of which a semi join shows those of the left one alone."""
        kind: JoinKind = "inner" if self.kind in ("semi", "anti") else self.kind
        return types_of(Rows((), source=self._join(kind, None)), self.card)

    def _leaf(self, clause: str, sides: set[str]) -> Leaf:
        other = row_leaf(self.scope.rows, clause)

        def leaf(node: exp.Expr) -> Expression | None:
            match = self.scope.find(name_of(node)) if isinstance(node, exp.Column) else None
            if match is None:
                return other(node)
            side, value = match
            sides.add(side)
            return self._of_left(value) if side == "left" else self._renamed(value)

        return leaf

    def joined(self, conditions: list[exp.Expr]) -> Rows:
        """The rows of both, under these conditions."""
        equalities = [node for node in conditions if self.is_person_equality(node)]
        if not equalities:
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
        """How the person is written for one side of the join."""
        named = [(item.name, name) for item in rows.relations for name, value in item.columns.items()
                 if value == Column(self.person)]  # fmt: skip
        table, name = named[0] if named else ("…", self.person)
        return f"{table}.{name}" if table else name

    def is_plain(self, node: exp.Expr) -> bool:
        """Whether an equality is of the persons themselves: one that may be NULL is a condition of its own."""
        people = [self.scope.find(name_of(item)) for item in (node.this, node.expression)]
        return all(item is not None and item[1] == Column(self.person) for item in people)

    def joined_using(self, names: list[str]) -> Rows:
        """The rows of both, where the columns of these names are equal; one of them is the person."""
        pairs = [(self.left.find(Column(name)), self._renamed(self.right.find(Column(name)))) for name in names]
        if not any(self._are_people(left, right) for left, right in pairs):
            fix = f"name a column that is the person of both, or write ON {self.person_in(self.left)} = "
            raise refuse_sql("USING with the person", "other columns", fix + self.person_in(self.right))
        on: Expression | None = None
        for left, right in pairs:
            if (left, right) != (Column(self.person), self._right_value):
                on = conjunction(on, typed(Call("=", (left, right)), self._types)[0])
        if self.kind in ("right", "full") and on is not None:
            raise refuse_sql("JOIN or LEFT JOIN USING several columns", f"{self.kind.upper()} JOIN", "write ON")
        rows = self.rows(on)
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
        """Whether a column of each side, by their names in the join, is its person."""
        people = {self.person, *self._left_schema.people}
        others = {
            self._right_value.name,
            *(name for name, old in self.names.items() if old in self._right_schema.people),
        }
        return isinstance(left, Column) and left.name in people and isinstance(right, Column) and right.name in others

    @property
    def _right_value(self) -> Column:
        return Column(self.right_person or self.person)

    def _renamed(self, value: Expression) -> Expression:
        new = {old: name for name, old in self.names.items()}
        assert isinstance(value, Column)
        return self._right_value if value.name == self.person else Column(new[value.name])

    def _both(self) -> Rows:
        left = tuple(
            replace(item, columns={name: self._of_left(value) for name, value in item.columns.items()})
            for item in self.left.relations
        )
        right = tuple(
            replace(item, columns={name: self._renamed(value) for name, value in item.columns.items()})
            for item in self.right.relations
        )
        return Rows((*left, *right))

    def _of_left(self, value: Expression) -> Expression:
        return Column(self.left_person) if self.left_person and value == Column(self.person) else value

    def rows(self, on: Expression | None) -> Rows:
        """The rows of both, on the same person and a condition."""
        relations = self.left.relations if self.kind in ("semi", "anti") else self._both().relations
        return Rows(relations, source=self._join(self.kind, on))

    def _join(self, kind: JoinKind, on: Expression | None) -> PersonJoin:
        assert self.left.source is not None
        assert self.right.source is not None
        return PersonJoin(
            self.left.source, self.right.source, kind, self.names, on, self.left_person, self.right_person
        )


def materialized(rows: Rows, card: Card) -> Rows:
    """The same rows as a relation of their own: every column is one of the relation's."""
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
    """A name that no other column of a relation has, also in other case; it is then taken.

    >>> unique_name("day", "v", {"day"})
    'v.day'
    """
    number, result = 1, name
    while result.casefold() in taken:
        result = f"{prefix}.{name}" if number == 1 else f"{prefix}.{name}.{number}"
        number += 1
    taken.add(result.casefold())
    return result


def _with_public(rows: Rows, join: exp.Join, card: Card) -> Rows:
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
    name, relation = public_relation(card, _table_name(join.this, "JOIN with a public table", fix), _alias(join.this))
    if any(item.table == name for item in rows.joins):
        raise refuse_sql("each public table once", f"{clip(name)!r} twice", "join it once")
    if any(item.name.casefold() == relation.name.casefold() for item in rows.relations):
        raise refuse_sql("different names for tables", f"{clip(relation.name)!r} twice", "give one an alias")
    if using:
        if len(using) != 1:
            raise refuse_sql("USING (one column)", f"{len(using)} columns", "join on one key")
        key = Column(using[0].name)
        sides = (rows.find(key), Rows((relation,)).find(key))
        relation = replace(relation, merged=frozenset({Rows((relation,)).spelling_of(key)}))
    both_sides = replace(rows, relations=(*rows.relations, relation))
    if not using:
        sides = _equality(condition, both_sides, fix)
    own_sides = [item for item in sides if all(column.table is None for column in columns(item)) and columns(item)]
    others = [item.name for item in sides if isinstance(item, Column) and item.table == name]
    if len(own_sides) != 1 or len(others) != 1:
        raise refuse_sql("a column of the table = a column of the public table", "another equality", fix)
    typed(Call("=", sides), types_of(rows, card))
    added = Join(name, own_sides[0], others[0], left=side == "LEFT")
    return replace(both_sides, joins=(*rows.joins, added))


def _equality(node: exp.Expr | None, rows: Rows, fix: str) -> tuple[Expression, Expression]:
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.EQ):
        got = node.key.upper() if node is not None else "none"
        raise refuse_sql("JOIN … ON one equality", got, f"{fix}; put the rest into WHERE")
    leaf = row_leaf(rows, "ON")
    return read(node.this, leaf), read(node.expression, leaf)
