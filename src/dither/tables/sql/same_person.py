"""Subqueries about the rows of the same person, inside of expressions: each becomes a join with a row for each person.

``CASE WHEN person IN (SELECT person FROM other) …``, ``EXISTS (SELECT … WHERE other.person = row.person AND …)`` and
``(SELECT AVG(x) FROM other WHERE other.person = row.person AND …)`` have one value for all rows of a person. So a LEFT
JOIN with ``SELECT person, AVG(x) … GROUP BY person`` has the same value in its column, and keeps each row once: NULL
where the person has no such rows, and for COUNT 0. What the join means, and whether it may be asked, is decided where
joins are read.

EXISTS and IN that WHERE demands as they are (:mod:`dither.tables.sql.relations`) stay; an IN there whose query names
columns of the outer row becomes EXISTS. INTERSECT and EXCEPT of people become IN and NOT IN. A person that an outer
join makes NULL is in no list and not out of it, so all of these stay in a question with such a join. A subquery of
another form stays, too, and is refused where it is read.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dither.tables.card.model import Card
from dither.tables.query.relations import unique
from dither.tables.sql.aggregates import is_aggregate, outer_columns, tables_in
from dither.tables.sql.relations import conjuncts, is_subquery_condition

_PARTS = {"expressions", "from_", "joins", "where"}
_PERSON = "person"


def with_person_joins(tree: exp.Query, card: Card) -> None:
    """Rewrite subqueries about the rows of the same person, inside of expressions, as joins on the person.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("SELECT COUNT(*) FROM v WHERE a OR p IN (SELECT p FROM c)", dialect="duckdb")
    >>> with_person_joins(tree, Card("v", "", {}, "p"))
    >>> print(tree.sql("duckdb").partition(" FROM ")[2])  # doctest: +NORMALIZE_WHITESPACE
    v LEFT JOIN (SELECT DISTINCT p AS "person" FROM c) AS "of_person" ON p = "of_person"."person"
    WHERE a OR (NOT "of_person"."person" IS NULL)
    """
    public = {name.casefold() for name in card.public}
    joins = [join for join in tree.find_all(exp.Join) if join.this.name.casefold() not in public]
    has_nulls = any(join.side for join in joins)
    units = {unit.casefold() for unit in (card.unit, *(table.unit for table in card.tables.values())) if unit}
    taken = {str(item.this).casefold() for item in tree.find_all(exp.Identifier)}
    if not has_nulls:
        for node in reversed(list(tree.find_all(exp.Intersect, exp.Except))):
            _write_set_operation(node, units)
    for select in list(tree.find_all(exp.Select)):
        if units and select.args.get("from_") is not None:
            _PersonJoins(select, units, taken, has_nulls).write()


def _write_set_operation(node: exp.SetOperation, units: set[str]) -> None:
    """Rewrite INTERSECT and EXCEPT of two lists of people as IN and NOT IN in the first query; leave other set
    operations as they are."""
    left, right = _query(node.this), _query(node.expression)
    if left is None or right is None or not node.args.get("distinct"):
        return
    shown = [*left.expressions, *right.expressions]
    if len(shown) != 2 or not all(isinstance(item, exp.Column) and item.name.casefold() in units for item in shown):
        return
    if any(part and name not in ("this", "expression", "distinct", "with_") for name, part in node.args.items()):
        return
    if any(part and name not in (*_PARTS, "group", "having", "distinct") for name, part in left.args.items()):
        return
    listed: exp.Expr = exp.In(this=shown[0].copy(), query=exp.Subquery(this=right))
    left.where(exp.Not(this=listed) if isinstance(node, exp.Except) else listed, copy=False)
    left.set("distinct", exp.Distinct())
    if node.args.get("with_"):
        left.set("with_", node.args["with_"])
    node.replace(left)


class _PersonJoins:
    """Writes the joins of one SELECT."""

    def __init__(self, select: exp.Select, units: set[str], taken: set[str], has_nulls: bool) -> None:
        """Take the SELECT, the names of person columns, the names in use, and whether persons may be NULL."""
        self.select, self.units, self.taken, self.has_nulls = select, units, taken, has_nulls
        self.has_star = any(item.is_star for item in select.expressions)
        self.only_table = "" if select.args.get("joins") else select.args["from_"].this.alias_or_name
        self.written: dict[str, str] = {}
        """The names of the joins, by what they join."""

    def write(self) -> None:
        """Write a join for each subquery of this SELECT that has one value per person; the others stay, and are
        refused where they are read."""
        where = self.select.args.get("where")
        conditions = [] if where is None else conjuncts(where.this)
        demanded = [_bare(node) for node in conditions if is_subquery_condition(node)]
        for node in list(self._subqueries()):
            if any(node is item for item in demanded):
                if isinstance(node, exp.In):
                    self._as_exists(node)
            elif self.has_star:
                continue
            elif isinstance(node, exp.In):
                self._join_members(node)
            elif isinstance(node, exp.Exists):
                self._join_existing(node)
            else:
                self._join_value(node)

    def _subqueries(self) -> Iterator[exp.Expr]:
        """Yield the scalar subqueries, EXISTS and IN in SELECT, WHERE and GROUP BY, without those nested in other
        queries."""
        group, where = self.select.args.get("group"), self.select.args.get("where")
        for part in (*self.select.expressions, where, group):
            for node in () if part is None else part.walk(prune=lambda item: isinstance(item, exp.Query)):
                listed = isinstance(node, exp.In) and node.args.get("query")
                scalar = isinstance(node, exp.Subquery) and not isinstance(node.parent, (exp.In, exp.Exists))
                if listed or scalar or isinstance(node, exp.Exists):
                    yield node

    def _as_exists(self, node: exp.In) -> None:
        """Rewrite ``person IN (SELECT person … WHERE …)`` whose query names columns of the outer row as EXISTS;
        leave other forms."""
        inner, person = self._members(node)
        if inner is None or person is None or not outer_columns(inner, inner) or not inner.args.get("where"):
            return
        if any(part and name not in _PARTS for name, part in inner.args.items()):
            return
        around = node.this.copy()
        if not around.table and self.only_table:
            around.set("table", exp.to_identifier(self.only_table))
        if not around.table or around.table.casefold() in tables_in(inner):
            return
        where = inner.args["where"]
        same = exp.EQ(this=person.copy(), expression=around)
        where.set("this", exp.And(this=same, expression=exp.Paren(this=where.this)))
        node.replace(exp.Exists(this=inner))

    def _join_members(self, node: exp.In) -> None:
        """Replace ``person IN (SELECT person …)`` by whether a LEFT JOIN with these people has a partner."""
        inner, person = self._members(node)
        if inner is None or person is None or outer_columns(inner, inner):
            return
        column = self._joined(inner, [_named(person, _PERSON)], node.this, distinct=True)
        node.replace(_is_there(exp.column(_PERSON, column, quoted=True)))

    def _join_existing(self, node: exp.Exists) -> None:
        """Replace EXISTS about rows of the same person by whether a LEFT JOIN with the people who have such rows has
        a partner."""
        inner = _query(node.this)
        pair = self._same_person(inner)
        if inner is None or pair is None:
            return
        person, around = pair
        column = self._joined(inner, [_named(person, _PERSON)], around, distinct=True)
        node.replace(_is_there(exp.column(_PERSON, column, quoted=True)))

    def _join_value(self, node: exp.Expr) -> None:
        """Replace a scalar subquery, an aggregate of the same person's rows, by a column of a LEFT JOIN with one row
        per person; COUNT of no rows is 0."""
        inner = _query(node)
        shown = [] if inner is None else [item.unalias() for item in inner.expressions]
        if len(shown) != 1 or not is_aggregate(shown[0]):
            return
        pair = self._same_person(inner)
        if inner is None or pair is None:
            return
        person, around = pair
        column = self._joined(inner, [_named(person, _PERSON), _named(shown[0], "value")], around, distinct=False)
        value: exp.Expr = exp.column("value", column, quoted=True)
        if _function(shown[0]).startswith("COUNT"):
            value = exp.Anonymous(this="COALESCE", expressions=[value, exp.Literal.number(0)])
        node.replace(value)

    def _members(self, node: exp.In) -> tuple[exp.Select | None, exp.Column | None]:
        """Return the query of IN and its column, where both sides of IN are the person; (None, None) otherwise."""
        inner = _query(node.args["query"])
        if inner is None or self.has_nulls or len(inner.expressions) != 1 or not self._is_person(node.this):
            return None, None
        person = inner.expressions[0]
        return (inner, person) if self._is_person(person) else (None, None)

    def _same_person(self, inner: exp.Select | None) -> tuple[exp.Column, exp.Column] | None:
        """Take the equality of the inner and the outer person out of a plain query's WHERE and return both columns;
        None where the query depends on the outer row in another way."""
        if inner is None or any(part and name not in _PARTS for name, part in inner.args.items()):
            return None
        where = inner.args.get("where")
        conditions = [] if where is None else conjuncts(where.this)
        for node in conditions:
            sides = [node.this, node.expression] if isinstance(node, exp.EQ) else []
            outside = [bool(outer_columns(side, inner)) for side in sides]
            if sorted(outside) != [False, True] or not all(map(self._is_person, sides)):
                continue
            rest = [item for item in conditions if item is not node]
            others = (*rest, *inner.expressions, *(inner.args.get("joins") or ()))
            if any(outer_columns(item, inner) for item in others):
                return None
            inner.set("where", exp.Where(this=exp.and_(*rest, copy=False)) if rest else None)
            person, around = sides if outside[1] else sides[::-1]
            return person, around
        return None

    def _is_person(self, node: exp.Expr) -> bool:
        """Return whether a node is a column named like the unit of a private table."""
        return isinstance(node, exp.Column) and node.name.casefold() in self.units

    def _joined(self, inner: exp.Select, shown: list[exp.Expr], around: exp.Expr, distinct: bool) -> str:
        """Add a LEFT JOIN with a query that has one row per person, unless it is there already, and return its name."""
        person = shown[0].this
        table = inner.copy()
        table.set("expressions", [item.copy() for item in shown])
        if distinct:
            table.set("distinct", exp.Distinct())
        else:
            table.set("group", exp.Group(expressions=[person.copy()]))
        text = f"{table.sql('duckdb')} ON {around.sql('duckdb')}"
        if text not in self.written:
            name = self.written[text] = unique("of_person", self.taken)
            self.taken.add(name.casefold())
            alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
            same = exp.EQ(this=around.copy(), expression=exp.column(_PERSON, name, quoted=True))
            join = exp.Join(this=exp.Subquery(this=table, alias=alias), side="LEFT", on=same)
            self.select.append("joins", join)
        return self.written[text]


def _bare(node: exp.Expr) -> exp.Expr:
    """Return a condition without parentheses and NOT around it."""
    while isinstance(node, (exp.Paren, exp.Not)):
        node = node.this
    return node


def _query(node: exp.Expr) -> exp.Select | None:
    """Return the SELECT inside of parentheses; None where it is another kind of query or has no FROM."""
    while isinstance(node, exp.Subquery) and not node.alias:
        node = node.this
    return node if isinstance(node, exp.Select) and node.args.get("from_") else None


def _function(node: exp.Expr) -> str:
    """Return the name of an aggregate function, without FILTER and WITHIN GROUP."""
    while isinstance(node, (exp.Filter, exp.WithinGroup)):
        node = node.this
    return node.name.upper()


def _named(node: exp.Expr, name: str) -> exp.Alias:
    """Return a copy of a node under a quoted name by AS."""
    return exp.Alias(this=node.copy(), alias=exp.to_identifier(name, quoted=True))


def _is_there(column: exp.Expr) -> exp.Expr:
    """Return ``column IS NOT NULL`` in parentheses: whether a LEFT JOIN found a partner."""
    return exp.Paren(this=exp.Not(this=exp.Is(this=column, expression=exp.Null())))
