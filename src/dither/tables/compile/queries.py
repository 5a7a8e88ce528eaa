"""SELECT statements and their clauses as sqlglot nodes, also where engines write them differently.

Expressions that engines write differently are in :mod:`dither.tables.query.nodes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from sqlglot import exp

from dither.tables.query import nodes
from dither.tables.query.nodes import Dialect, binary, call, integer, plain_column


def alias(x: exp.Expr, name: str) -> exp.Expr:
    """Return a value of a SELECT under a plain name."""
    return exp.Alias(this=x, alias=exp.to_identifier(name))


def relation(source: Any, name: str) -> exp.Expr:
    """Return a query or a table for FROM, under a plain name."""
    if isinstance(source, exp.Query) and not isinstance(source, exp.Subquery):
        return source.subquery(name, copy=False)
    return exp.alias_(source, name, table=True)


def select(
    columns: Sequence[exp.Expr],
    source: exp.Expr,
    *,
    joins: Sequence[exp.Join] = (),
    where: Sequence[exp.Expr] = (),
    group_by: Sequence[exp.Expr] = (),
) -> exp.Select:
    """Return a SELECT; of several conditions all must hold."""
    query = exp.Select().select(*columns, copy=False).from_(source, copy=False)
    for item in joins:
        query.append("joins", item)
    if where:
        query.set("where", exp.Where(this=all_of(where)))
    if group_by:
        query.set("group", exp.Group(expressions=list(group_by)))
    return query


def all_of(conditions: Sequence[exp.Expr]) -> exp.Expr:
    """Return one condition that holds where all of them hold."""
    result = conditions[0]
    for item in conditions[1:]:
        result = binary("and", result, item)
    return result


def join(source: exp.Expr, on: exp.Expr, kind: Literal["", "LEFT", "SEMI"] = "") -> exp.Join:
    """Return a join, for :func:`select`."""
    side = {"side": "LEFT"} if kind == "LEFT" else {"kind": "SEMI"} if kind == "SEMI" else {}
    return exp.Join(this=source, on=on, **side)


def row_number(order: Sequence[exp.Expr], partition: Sequence[exp.Expr] = ()) -> exp.Expr:
    """Return the number of a row from 1 on, in this order, within rows that are equal in ``partition``; NULLs come
    last."""
    ordered = [exp.Ordered(this=item, desc=False, nulls_first=False) for item in order]
    return exp.Window(
        this=exp.RowNumber(), partition_by=list(partition), order=exp.Order(expressions=ordered), over="OVER"
    )


def dense_rank(order: Sequence[exp.Expr], partition: Sequence[exp.Expr]) -> exp.Expr:
    """Return the number of a row's value among the different values of ``order``, from 1 on, within the partition."""
    ordered = [exp.Ordered(this=item, desc=False, nulls_first=False) for item in order]
    return exp.Window(
        this=exp.DenseRank(), partition_by=list(partition), order=exp.Order(expressions=ordered), over="OVER"
    )


def over(aggregate: exp.Expr, partition: Sequence[exp.Expr]) -> exp.Expr:
    """Return an aggregate over all rows that are equal in ``partition``, for each of them."""
    return exp.Window(this=aggregate, partition_by=list(partition), over="OVER")


def values(rows: Sequence[Sequence[exp.Expr]], name: str, columns: Sequence[str]) -> exp.Expr:
    """Return a table of constants, for FROM."""
    tuples = [exp.Tuple(expressions=list(row)) for row in rows]
    identifiers = [exp.to_identifier(item) for item in columns]
    return exp.Values(expressions=tuples, alias=exp.TableAlias(this=exp.to_identifier(name), columns=identifiers))


def count_rows() -> exp.Expr:
    """Return how many rows there are."""
    return exp.Count(this=exp.Star(), big_int=True)


def total(x: exp.Expr) -> exp.Expr:
    """Return the sum of whole numbers, 0 of none."""
    return nodes.cast(nodes.coalesce(call("SUM", x), integer(0)), "integer")


def placeholder(table: str) -> str:
    """Return what stands in a statement for a private table, until it is known where its rows are; "" is the card's
    own."""
    return f"dither_source_{table}" if table else "dither_source"


def free_prefix(names: Iterable[str]) -> str:
    """Return the beginning of names for what is computed on the way, which none of these columns has: were a column to
    have such a name, it would stand for what was computed. Engines differ in whether they tell capitals.

    >>> free_prefix(["day", "who"])
    'dd'
    """
    taken, prefix = [name.casefold() for name in names], "d"
    while any(name.startswith(prefix) for name in taken):
        prefix += "d"
    return prefix


def once(table: exp.Expr, columns: Sequence[str], key: str) -> exp.Select:
    """Return columns of a public table with one row at most for each value of its key, so that no row of ours has two
    partners."""
    place = f"{free_prefix(columns)}place"
    number = alias(row_number([nodes.column(key)], [nodes.column(key)]), place)
    numbered = select([*map(nodes.column, columns), number], relation(table, "p"))
    first = binary("=", plain_column(place), integer(1))
    return select([*map(nodes.column, columns)], relation(numbered, "q"), where=[first])


def smallest(rows: exp.Select, by: Sequence[str], order: exp.Expr, most: int, columns: Sequence[str]) -> exp.Select:
    """Return, for each value of ``by``, ``columns`` of the ``most`` rows that come first in ``order``; on DuckDB."""
    packed = exp.Struct(
        expressions=[exp.PropertyEQ(this=exp.to_identifier(name), expression=plain_column(name)) for name in columns]
    )
    chosen = call("UNNEST", call("MIN_BY", packed, order, integer(most)))
    packs = select([alias(chosen, "s")], relation(rows, "l"), group_by=[plain_column(name) for name in by])
    return select([alias(plain_column(name, "s"), name) for name in columns], relation(packs, "k"))


def with_weights(
    lines: exp.Select,
    weights: Mapping[str, Callable[[bool], exp.Expr]],
    dialect: Dialect,
    keep_null: bool = False,
) -> tuple[exp.Select, list[tuple[str, exp.Select]]]:
    """Return the lines of a table with numbers that follow from all lines of the same person, and tables to read
    before.

    Each number is an expression of aggregates; asked for with True, of windows over the person's lines. The lines
    are read once: were the source to change between two readings, a weight would be that of other rows. With
    ``keep_null`` there are lines of no person, whose numbers are NULL.
    """
    u = plain_column("u")
    if dialect == "spark":  # which would read a table twice that is named twice
        windows = {name: number(True) for name, number in weights.items()}
        if keep_null:
            known = nodes.is_not_null(u)
            windows = {name: nodes.case([(known, x)], nodes.literal(None)) for name, x in windows.items()}
        numbers = [alias(x, name) for name, x in windows.items()]
        return select([exp.Star(), *numbers], relation(lines, "l")), []
    numbers = [alias(number(False), name) for name, number in weights.items()]
    where = [nodes.is_not_null(u)] if keep_null else []
    people = select([u, *numbers], relation(exp.to_table("lines"), "l"), where=where, group_by=[u])
    every = exp.Column(this=exp.Star(), table=exp.to_identifier("l"))
    equal = binary("=", plain_column("u", "l"), plain_column("u", "p"))
    same = join(relation(people, "p"), equal, "LEFT" if keep_null else "")
    shown = [every, *(plain_column(name, "p") for name in weights)]
    return select(shown, relation(exp.to_table("lines"), "l"), joins=[same]), [("lines", lines)]


def shift_right(x: exp.Expr, places: int) -> exp.Expr:
    """Return a whole number from 0 on, divided by ``2^places`` and rounded down."""
    return exp.BitwiseRightShift(this=nodes.operand(x), expression=integer(places)) if places else x
