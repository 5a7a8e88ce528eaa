"""From FROM, JOIN and WHERE to rows: the card's table, public tables joined to it, and queries of rows inside."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dither.tables.card.model import Card
from dither.tables.card.wording import clip
from dither.tables.query.operations.base import refuse_other_parts, refuse_sql
from dither.tables.query.resolve import Relation, Rows, private_relation, public_relation, spelling, type_of
from dither.tables.query.tree import Call, Column, Expression, Join, columns
from dither.tables.query.typecheck import require_boolean, typed
from dither.tables.sql.expressions import is_aggregate, name_of, read, row_leaf

_SELECT = ("expressions", "from_", "joins", "where", "group", "having", "order", "limit")


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
    start = select.args.get("from_")
    if start is None:
        raise refuse_sql(f"FROM {card.name}", "no FROM", f"end with FROM {card.name}")
    refuse_other_parts(start, "this")
    rows = _relation(start.this, card)
    for join in select.args.get("joins") or ():
        rows = _with_join(rows, join, card)
    where = select.args.get("where")
    if where is not None:
        where_condition = read(where.this, row_leaf(rows, "WHERE"))
        checked = require_boolean(where_condition, lambda column: type_of(card, column), "WHERE")
        rows = Rows(rows.relations, conjunction(rows.where, checked), rows.joins)
    return rows


def conjunction(first: Expression | None, second: Expression | None) -> Expression | None:
    """Both conditions, where stated.

    >>> conjunction(None, Column("a"))
    Column(name='a', table=None)
    """
    if first is None or second is None:
        return second if first is None else first
    return Call("and", (first, second))


def _relation(node: exp.Expr, card: Card) -> Rows:
    if isinstance(node, exp.Subquery):
        return _subquery(node, card)
    name = _table_name(node, f"FROM {card.name}", f"the table's name is {card.name}")
    if spelling(name, [card.name]) is None:
        if spelling(name, card.public) is not None:
            fix = f"start with FROM {card.name} and JOIN {clip(name)}"
            raise refuse_sql(f"FROM {card.name}", f"the public table {clip(name)!r} first", fix)
        raise refuse_sql(f"FROM {card.name}", f"a table {clip(name)!r}", f"the table's name is {card.name}")
    return Rows((private_relation(card, _alias(node)),))


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


def _subquery(node: exp.Subquery, card: Card) -> Rows:
    """A query of rows in FROM: its columns become expressions on the table's."""
    refuse_other_parts(node, "this", "alias")
    inner = node.this
    if not isinstance(inner, exp.Select):
        raise refuse_sql("a SELECT of rows in FROM", inner.key.upper(), f"write FROM (SELECT … FROM {card.name}) AS s")
    refuse_unanswerable(inner)
    fix = "group and aggregate in the outer query only"
    if any(inner.args.get(clause) for clause in ("group", "having", "order", "limit")):
        raise refuse_sql("a SELECT of rows in FROM", "GROUP BY, HAVING, ORDER BY or LIMIT inside", fix)
    if any(is_aggregate(node) for item in inner.expressions for node in item.walk()):
        raise refuse_sql("a SELECT of rows in FROM", "an aggregate inside", fix)
    rows = rows_of(inner, card)
    result: dict[str, Expression] = {}
    for item in inner.expressions:
        for name, value in _output_columns(item, rows, card):
            if name.casefold() in (known.casefold() for known in result):
                raise refuse_sql("columns of different names in FROM (SELECT …)", f"{clip(name)!r} twice", "rename one")
            result[name] = value
    return Rows((Relation(_alias(node) or "", result),), rows.where, rows.joins)


def _output_columns(item: exp.Expr, rows: Rows, card: Card) -> list[tuple[str, Expression]]:
    """The columns one item of a SELECT of rows adds."""
    star = item.this if isinstance(item, exp.Column) else item
    if isinstance(star, exp.Star):
        refuse_other_parts(star)
        table = item.table if isinstance(item, exp.Column) else ""
        several = [relation for relation in rows.relations if not table or relation.name.casefold() == table.casefold()]
        return [(name, value) for relation in several for name, value in relation.columns.items()]
    node = item.this if isinstance(item, exp.Alias) else item
    value, kind = typed(read(node, row_leaf(rows, "FROM (SELECT …)")), lambda column: type_of(card, column))
    if kind is None:
        raise refuse_sql("a value in FROM (SELECT …)", "NULL", "leave the column out")
    if isinstance(item, exp.Alias):
        return [(item.alias, value)]
    if isinstance(item, exp.Column):
        return [(rows.spelling_of(name_of(item)), value)]
    raise refuse_sql("a name for each expression in FROM (SELECT …)", "none", "write expression AS name")


def _with_join(rows: Rows, join: exp.Join, card: Card) -> Rows:
    side, kind = join.side.upper(), join.kind.upper()
    condition, using = join.args.get("on"), join.args.get("using")
    fix = "write JOIN table ON own_column = table.key, or LEFT JOIN"
    if kind in ("CROSS", "SEMI", "ANTI", "ASOF") or side in ("RIGHT", "FULL") or join.method:
        raise refuse_sql("JOIN or LEFT JOIN", f"{join.method} {side} {kind} JOIN".replace("  ", " ").strip(), fix)
    if condition is None and not using:
        raise refuse_sql("JOIN … ON one equality", "no condition", fix)
    refuse_other_parts(join, "this", "side", "kind", "using" if using else "on")
    if isinstance(join.this, exp.Subquery):
        raise refuse_sql("JOIN with a public table", "a subquery", fix)
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
        relation = replace(relation, merged=Rows((relation,)).spelling_of(key))
    both_sides = Rows((*rows.relations, relation), rows.where, rows.joins)
    if not using:
        sides = _equality(condition, both_sides, fix)
    own_sides = [item for item in sides if all(column.table is None for column in columns(item)) and columns(item)]
    others = [item.name for item in sides if isinstance(item, Column) and item.table == name]
    if len(own_sides) != 1 or len(others) != 1:
        raise refuse_sql("a column of the table = a column of the public table", "another equality", fix)
    typed(Call("=", sides), lambda column: type_of(card, column))
    added = Join(name, own_sides[0], others[0], left=side == "LEFT")
    return Rows(both_sides.relations, rows.where, (*rows.joins, added))


def _equality(node: exp.Expr | None, rows: Rows, fix: str) -> tuple[Expression, Expression]:
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.EQ):
        got = node.key.upper() if node is not None else "none"
        raise refuse_sql("JOIN … ON one equality", got, f"{fix}; put the rest into WHERE")
    leaf = row_leaf(rows, "ON")
    return read(node.this, leaf), read(node.expression, leaf)
