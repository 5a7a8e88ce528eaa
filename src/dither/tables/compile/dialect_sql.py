"""Queries that engines write differently. Expressions that differ are in :mod:`dither.tables.query.nodes`.

>>> nodes.render(DialectSql("postgres").integer_quotient(nodes.plain_column("a"), nodes.plain_column("b")), "postgres")
'(a / b)'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from dither.tables.card.model import Type
from dither.tables.compile.queries import alias, relation, row_number, select
from dither.tables.query import nodes
from dither.tables.query.nodes import Dialect, binary, call, integer, plain_column


@dataclass(frozen=True)
class DialectSql:
    """SQL for one engine."""

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


__all__ = ["DialectSql"]
