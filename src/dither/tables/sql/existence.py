"""EXISTS and IN of a query in WHERE: rows whose person has, or has not, rows in another private relation.

``EXISTS (SELECT … FROM other WHERE other.person = row.person AND …)`` and ``person IN (SELECT person FROM …)`` keep a
row by the rows of the same person alone. Of any other subquery the result would depend on several people, and is
refused. ``x IN (SELECT key FROM public_table)`` asks a public table.

NOT IN is as in SQL where the list has no NULL: rows without a person belong to nobody, and a column of the person that
may be NULL is refused there.
"""

from __future__ import annotations

from sqlglot import exp

from dither.errors import InvalidArgument
from dither.tables.card.model import Card
from dither.tables.query.operations.base import refuse_other_parts, refuse_sql
from dither.tables.query.relations import person_of, types_of
from dither.tables.query.resolve import Rows, public_relation, spelling
from dither.tables.query.tree import Call, Column, Expression, JoinKind, PublicMembership
from dither.tables.query.typecheck import require_boolean, typed
from dither.tables.sql.expressions import Leaf, is_aggregate, name_of, read, row_leaf
from dither.tables.sql.person_select import query_rows
from dither.tables.sql.relations import (
    PersonJoinReader,
    conjunction,
    conjuncts,
    from_and_joins,
    is_subquery_condition,
    materialized,
)


def with_condition(rows: Rows, node: exp.Expr, card: Card) -> Rows:
    """The rows for which EXISTS, IN, or the opposite of one of them, holds."""
    negated = False
    while isinstance(node, (exp.Paren, exp.Not)):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    if isinstance(node, exp.Exists):
        return _exists(rows, node, negated, card)
    assert isinstance(node, exp.In)
    return _member(rows, node, negated, card)


def _query(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Subquery):
        refuse_other_parts(node, "this")
        node = node.this
    return node


def _exists(rows: Rows, node: exp.Exists, negated: bool, card: Card) -> Rows:
    query, person = _query(node.this), person_of(card)
    fix = f"write {person} IN (SELECT {person} FROM … GROUP BY {person} HAVING …)"
    if not isinstance(query, exp.Select):
        raise refuse_sql("EXISTS (SELECT … FROM … WHERE …)", query.key.upper(), fix)
    for name in ("group", "having", "qualify", "limit", "offset", "distinct"):
        if query.args.get(name):
            raise refuse_sql("EXISTS (SELECT … FROM … WHERE …)", f"{name.upper()} inside", fix)
    refuse_other_parts(query, "expressions", "from_", "joins", "where", "order")
    where = query.args.get("where")
    waiting = [] if where is None else conjuncts(where.this)
    inner = from_and_joins(query, card, waiting)
    kind: JoinKind = "anti" if negated else "semi"
    equality = PersonJoinReader(rows, inner, "semi", card)
    people = [item for item in waiting if equality.is_person_equality(item)]
    correlated: list[exp.Expr] = []
    for item in waiting:
        if is_subquery_condition(item):
            inner = with_condition(inner, item, card)
        elif not any(item is other for other in people):
            condition = _of_inner(item, inner, card)
            if condition is None:
                correlated.append(item)
            else:
                inner = Rows(inner.relations, conjunction(inner.where, condition), inner.joins, inner.source)
    reader = PersonJoinReader(rows, inner, kind, card)
    if not people:
        raise refuse_sql(
            "EXISTS about rows of the same person",
            "rows of other people",
            f"compare the person of both inside: WHERE inner_table.{person} = outer_table.{person}",
        )
    inside, both = reader.scope_of_right(), reader.left

    def leaf(item: exp.Expr) -> Expression | None:
        if is_aggregate(item):
            raise refuse_sql("rows in EXISTS", "an aggregate", fix)
        if not isinstance(item, exp.Column):
            return None
        try:
            return inside.find(name_of(item))
        except InvalidArgument:
            return both.find(name_of(item))

    on: Expression | None = None
    joined = PersonJoinReader(rows, inner, "inner", card).rows(None)
    for item in correlated:
        on = conjunction(on, require_boolean(read(item, leaf), types_of(joined, card), "EXISTS"))
    return reader.rows(on)


def _of_inner(node: exp.Expr, inner: Rows, card: Card) -> Expression | None:
    """A condition on the inner rows alone; None where it is about the outer ones too."""
    leaf: Leaf = row_leaf(inner, "EXISTS")
    try:
        return require_boolean(read(node, leaf), types_of(inner, card), "EXISTS")
    except InvalidArgument:
        return None


def _member(rows: Rows, node: exp.In, negated: bool, card: Card) -> Rows:
    refuse_other_parts(node, "this", "query")
    query = _query(node.args["query"])
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
    return PersonJoinReader(rows, inner, "anti" if negated else "semi", card).rows(None)


def _public_column(query: exp.Expr, card: Card) -> tuple[str, str] | None:
    """The public table and column of ``SELECT column FROM public_table``."""
    if not isinstance(query, exp.Select) or not query.args.get("from_"):
        return None
    table = query.args["from_"].this
    if not isinstance(table, exp.Table) or spelling(table.name, card.public) is None:
        return None
    fix = "write x IN (SELECT key FROM public_table), and join the table to say more"
    if len(query.expressions) != 1 or not isinstance(query.expressions[0], exp.Column):
        raise refuse_sql("one column of a public table in IN (SELECT …)", "something else", fix)
    for name, part in query.args.items():
        if part and name not in ("expressions", "from_", "distinct"):
            raise refuse_sql("IN (SELECT column FROM public_table)", f"{name.strip('_').upper()} inside", fix)
    name, relation = public_relation(card, table.name, table.alias or None)
    column = Rows((relation,)).find(name_of(query.expressions[0]))
    assert isinstance(column, Column)
    return name, column.name


__all__ = ["with_condition"]
