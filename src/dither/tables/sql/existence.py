"""EXISTS and IN of a query in WHERE: rows whose person has, or has not, rows in another private relation.

``EXISTS (SELECT … FROM other WHERE other.person = row.person AND …)`` and ``person IN (SELECT person FROM …)`` keep a
row by the rows of the same person alone. Of any other subquery the result would depend on several people, and is
refused. ``x IN (SELECT key FROM public_table)`` asks a public table.

NOT IN is as in SQL where the list has no NULL: rows without a person belong to nobody, and a column of the person that
may be NULL is refused there.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dither.tables.card.model import Card
from dither.tables.card.wording import clip
from dither.tables.query.operations.base import refuse_other_parts, refuse_sql
from dither.tables.query.relations import person_of, types_of
from dither.tables.query.resolve import Rows, public_relation, spelling
from dither.tables.query.tree import Call, Column, Expression, JoinKind, PublicMembership
from dither.tables.query.typecheck import require_boolean, typed
from dither.tables.sql.expressions import name_of, read, row_leaf
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
    _refuse_public(query, waiting, negated, card)
    inner = from_and_joins(query, card, waiting)
    kind: JoinKind = "anti" if negated else "semi"
    scope = PersonJoinReader(rows, inner, kind, card, nested=True)
    people = [item for item in waiting if scope.is_person_equality(item)]
    if not people:
        raise refuse_sql(
            "EXISTS about rows of the same person",
            "rows of other people",
            f"compare the person of both inside: add {scope.person_in(inner)} = {scope.person_in(rows)} to WHERE",
        )
    correlated: list[exp.Expr] = []
    for item in waiting:
        if any(item is other for other in people):
            if not scope.is_plain(item):  # a person that an outer join makes NULL is equal to nobody
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
    """Refuse EXISTS about a public table, and say how the table is joined instead, so that the same rows are kept."""
    table = query.args["from_"].this if query.args.get("from_") else None
    if not isinstance(table, exp.Table) or spelling(table.name, card.public) is None:
        return
    name, relation = public_relation(card, table.name, table.alias or None)
    inner = Rows((relation,))

    def is_inner(node: exp.Expr) -> bool:
        return isinstance(node, exp.Column) and inner.lookup(name_of(node)) is not None

    def written(node: exp.Expr) -> str:
        """As SQL, with the table before its columns."""
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
    return PersonJoinReader(rows, inner, "anti" if negated else "semi", card, nested=True).rows(None)


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
