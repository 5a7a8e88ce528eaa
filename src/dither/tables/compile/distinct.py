"""How many different values a column has in each group, where one person adds only so many of them.

*Statement.* Of each person at most ``rows`` different values count in a group, and those of at most ``groups`` groups.
Then a person moves the numbers of different values by at most ``rows`` in at most ``groups`` groups: by
``groups * rows`` in the l1 norm and ``sqrt(groups) * rows`` in the l2 norm, whoever else is in the data.

*Why.* The number of a group is the size of the union of sets of values, one of each person. One set more makes the
union larger by what is in no other set: by 0 at least, and by the size of the set at most. Which values and groups of a
person count is decided by keyed hashes of person, group and value under a secret that is fresh for each release; where
hashes agree, by the values themselves. So it depends on the person's own rows only, and no set of another person
changes with them.

*Which number it is.* Each person's choice is random, and those of different people are independent: a value that many
people have is counted almost surely. A value that only people with more than ``rows`` values have may be missed, so the
number is too low by an amount that nobody knows, and never too high.

NULL and NaN are no values. Numbers that are equal are one value, 0 and -0 among them; texts are compared byte by byte.
"""

from __future__ import annotations

from sqlglot import exp

from dither.tables.card.model import Type
from dither.tables.compile import expressions
from dither.tables.compile.context import Statement, StatementContext
from dither.tables.compile.queries import alias, all_of, count_rows, dense_rank, relation, row_number, select
from dither.tables.query import nodes
from dither.tables.query.nodes import binary, case, cast, double, integer, plain_column
from dither.tables.query.tree import Expression

_FAR = 2.0**40
_FINE = 1024.0


def distinct_values(context: StatementContext, value: Expression) -> Statement:
    """The statement that counts different values: a line for each group that has any, with their number."""
    return context.once("distinct", value, build=lambda: _distinct_values(context, value))


def _distinct_values(context: StatementContext, value: Expression) -> exp.Select:
    typed = expressions.key(value, context.find)
    x = typed.node
    if typed.type == "number":
        arms = [(expressions.is_nan(x), nodes.literal(None)), (binary("=", x, double(0.0)), double(0.0))]
        x = case(arms, x)
    nodes.check_length(x)
    lines, before = context.counted({"x": x}, [nodes.is_not_null(plain_column("x"))])
    groups, carried = [plain_column(name) for name in context.names], [plain_column(name) for name in context.carried]
    if context.card.unit is not None:
        u = plain_column("u")
        pairs = select([u, *carried, plain_column("x")], relation(lines, "l")).distinct(copy=False)
        hashed = select([exp.Star(), alias(_hash(context, typed.type), "hx")], relation(pairs, "p"))
        order = [context.keyed_hash("hx"), plain_column("x")]
        places = [alias(row_number(order, [u, *groups]), "place")]
        conditions = [binary("<=", plain_column("place"), integer(context.limits.rows))]
        if groups and context.limits.exceeded and not context.chosen:
            places.append(alias(dense_rank([context.keyed_hash(), *groups], [u]), "group_place"))
            conditions.append(binary("<=", plain_column("group_place"), integer(context.limits.groups)))
        if context.null_people:  # each of whom has one value in one group
            conditions = [binary("or", nodes.is_null(u), all_of(conditions))]
        lines = select(
            [exp.Star()], relation(select([exp.Star(), *places], relation(hashed, "h")), "r"), where=conditions
        )
    values = select([*groups, plain_column("x")], relation(lines, "v")).distinct(copy=False)
    return context.finish({"m0": cast(count_rows(), "integer")}, values, context.names, before)


def _hash(context: StatementContext, type: Type) -> exp.Expr:
    """A keyed hash of the column ``x``. That of a double is the hash of the number of its cell on a public grid, since
    engines write doubles as different texts: values in one cell go by their order.
    """
    x = plain_column("x")
    if type == "number":
        return context.hash_of_value(cast(expressions.hold(x, -_FAR, _FAR, _FINE), "integer"), "integer")
    return context.hash_of_value(x, type)
