"""SELECT statements and their clauses as sqlglot nodes, also where engines write them differently.

Expressions that engines write differently are in :mod:`dither.tables.query.nodes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlglot import exp

from dither.tables.card.model import Type
from dither.tables.query import nodes
from dither.tables.query.nodes import Dialect, binary, call, integer, plain_column


def alias(x: exp.Expr, name: str) -> exp.Expr:
    """A value of a SELECT under a plain name."""
    return exp.Alias(this=x, alias=exp.to_identifier(name))


def relation(source: Any, name: str) -> exp.Expr:
    """A query or a table for FROM, under a plain name.

    >>> select([exp.Star()], relation(exp.to_table("rows"), "t")).sql()
    'SELECT * FROM rows AS t'
    """
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
    """A SELECT; of several conditions all must hold."""
    query = exp.Select().select(*columns, copy=False).from_(source, copy=False)
    for item in joins:
        query.append("joins", item)
    if where:
        query.set("where", exp.Where(this=all_of(where)))
    if group_by:
        query.set("group", exp.Group(expressions=list(group_by)))
    return query


def all_of(conditions: Sequence[exp.Expr]) -> exp.Expr:
    """One condition that holds where all of them hold.

    >>> all_of([exp.column("a"), exp.column("b"), exp.column("c")]).sql()
    'a AND b AND c'
    """
    result = conditions[0]
    for item in conditions[1:]:
        result = binary("and", result, item)
    return result


def join(source: exp.Expr, on: exp.Expr, kind: Literal["", "LEFT", "SEMI"] = "") -> exp.Join:
    """A join, for :func:`select`."""
    side = {"side": "LEFT"} if kind == "LEFT" else {"kind": "SEMI"} if kind == "SEMI" else {}
    return exp.Join(this=source, on=on, **side)


def row_number(order: Sequence[exp.Expr], partition: Sequence[exp.Expr] = ()) -> exp.Expr:
    """The number of a row from 1 on, in this order, within rows that are equal in ``partition``; NULLs come last."""
    ordered = [exp.Ordered(this=item, desc=False, nulls_first=False) for item in order]
    return exp.Window(
        this=exp.RowNumber(), partition_by=list(partition), order=exp.Order(expressions=ordered), over="OVER"
    )


def values(rows: Sequence[Sequence[exp.Expr]], name: str, columns: Sequence[str]) -> exp.Expr:
    """A table of constants, for FROM."""
    tuples = [exp.Tuple(expressions=list(row)) for row in rows]
    identifiers = [exp.to_identifier(item) for item in columns]
    return exp.Values(expressions=tuples, alias=exp.TableAlias(this=exp.to_identifier(name), columns=identifiers))


def count_rows() -> exp.Expr:
    """How many rows there are."""
    return exp.Count(this=exp.Star(), big_int=True)


@dataclass(frozen=True)
class DialectSql:
    """Queries and expressions that engines write differently, for one engine.

    >>> quotient = DialectSql("postgres").integer_quotient(plain_column("a"), plain_column("b"))
    >>> nodes.render(quotient, "postgres")
    '(a / b)'
    """

    dialect: Dialect

    def as_text(self, x: exp.Expr, type: Type) -> exp.Expr:
        """A value as text, the same on every engine."""
        return nodes.as_text(x, type, self.dialect)

    def hash_60_bits(self, text: exp.Expr) -> exp.Expr:
        """The first 60 bits of the MD5 of a text, as a whole number."""
        return nodes.hash_60_bits(text, self.dialect)

    def integer_quotient(self, left: exp.Expr, right: exp.Expr) -> exp.Expr:
        """The whole part of a quotient of whole numbers from 0 on."""
        return nodes.integer_quotient(left, right, self.dialect)

    def xor(self, left: exp.Expr, right: exp.Expr) -> exp.Expr:
        """The exclusive or of the bits of whole numbers."""
        return nodes.xor(left, right, self.dialect)

    def smallest(
        self, rows: exp.Select, by: Sequence[str], order: exp.Expr, most: int, columns: Sequence[str]
    ) -> exp.Select:
        """For each value of ``by``, the ``most`` rows that come first in ``order``; only ``columns`` of them."""
        listed = [plain_column(name) for name in columns]
        if self.dialect == "duckdb":
            packed = exp.Struct(
                expressions=[
                    exp.PropertyEQ(this=exp.to_identifier(name), expression=plain_column(name)) for name in columns
                ]
            )
            chosen = call("UNNEST", call("MIN_BY", packed, order, integer(most)))
            packs = select([alias(chosen, "s")], relation(rows, "l"), group_by=[plain_column(name) for name in by])
            return select([alias(plain_column(name, "s"), name) for name in columns], relation(packs, "k"))
        place = row_number([order, *listed], [plain_column(name) for name in by])
        ranked = select([exp.Star(), alias(place, "place")], relation(rows, "l"))
        first = binary("<=", plain_column("place"), integer(most))
        return select(listed, relation(ranked, "k"), where=[first])

    def collect(self, rows: exp.Select, by: Sequence[str], order: exp.Expr, most: int, value: str) -> exp.Select:
        """For each value of ``by``, a list of the ``most`` values that come first; :meth:`explode` undoes it."""
        keys, x = [plain_column(name) for name in by], plain_column(value)
        if self.dialect == "duckdb" and most == 1:
            collected, source = call("LIST_VALUE", call("ARG_MIN", x, order)), rows
        elif self.dialect == "duckdb":
            collected, source = call("MIN_BY", x, order, integer(most)), rows
        else:
            collected, source = exp.ArrayAgg(this=x), self.smallest(rows, by, order, most, [*by, value])
        return select([*keys, alias(collected, value)], relation(source, "l"), group_by=keys)

    def explode(self, rows: exp.Select, names: Sequence[str], value: str) -> exp.Select:
        """A row for each value of the lists."""
        return select(
            [*(plain_column(name) for name in names), alias(exp.Explode(this=plain_column(value)), value)],
            relation(rows, "l"),
        )


__all__ = ["DialectSql", "alias", "all_of", "count_rows", "join", "relation", "row_number", "select", "values"]
