"""Paths to the person: private tables whose rows name no person, but a row of another private table that does.

A line item names its order, and the order its customer. The card says so (``person = "orders via l_orderkey =
o_orderkey"``), and the engine reads line items with a column of the person (:func:`with_person`), as if they had it
themselves. Whatever is asked of such a table, joined to it, published of it or measured in a profile is then as for any
table with a unit.

*Whose a row is.* The person of a row is the least of the people that the rows of the next table with the same key have.
Where these have none, or no row has the key, or a part of the key is NULL, it is nobody's, and is in no answer.

*Neighbors.* A person is all rows that are theirs, in all private tables, whatever their number: rows that name them,
and rows that reach them by a path. One of two neighbors is the other without all rows of one person.

*Statement.* Remove all rows of a person p, as above, from all private tables. Then every other row is the same person's
as before, or nobody's as before. So the table with its column of the person loses the rows with p in it, and no other
row changes: it is private as any table whose own column names the person, for all data. That a key has one person is
assumed nowhere.

*Why.* By induction over the tables of the path; for rows that name their person it is clear. A row r that is not p's
has a key, and S is the set of the people of the next table's rows with that key. By induction, removing p from that
table removes p's rows alone and leaves the people of the others, so S becomes S without p. If S is empty, r is nobody's
before and after. Otherwise r belongs to the least of S, which is not p, since r is not p's; it is in S without p, and
is the least there, too. So r stays theirs.

*Why the least.* Any choice that does not change when those who are not chosen leave would do. "Nobody's, where several
people have the key" would not: a person could take the rows of all others out of an answer by having their keys as
well, and no limit on that person's own rows would bound it.

*What a key with several people means.* Then all rows with it count for the least of them, which may be somebody else's
in truth, and answers are right about that data only. The steward asserts that a key has one row, as the foreign key of
a database does, and ``dither check`` counts keys with more (:func:`rows_beyond_path`). Joins on the key rely on it for
what a question means, and for how long it takes (:mod:`dither.tables.planning.work`), never for privacy.
"""

from __future__ import annotations

from sqlglot import exp

from dither.tables.card.model import PersonPath
from dither.tables.query import nodes
from dither.tables.query.nodes import (
    alias,
    all_of,
    binary,
    call,
    count_rows,
    integer,
    join,
    plain_column,
    relation,
    select,
)


def with_person(rows: exp.Select, path: PersonPath, unit: str, other: exp.Expr, person: str) -> exp.Select:
    """Return the rows of a table with the person that they reach as the column ``unit``, NULL where they reach nobody.

    ``rows`` has the columns of the table. ``other`` is the next table of the path, which has the column ``person``.
    """
    people = select(
        [*_keys(path), alias(call("MIN", nodes.column(person, "o")), "person")],
        relation(other, "o"),
        where=_usable(path, person),
        group_by=[nodes.column(key, "o") for _, key in path.keys],
    )
    equal = [
        binary("=", nodes.column(own, "r"), plain_column(f"k{place}", "p")) for place, (own, _) in enumerate(path.keys)
    ]
    every = exp.Column(this=exp.Star(), table=exp.to_identifier("r"))
    shown = exp.Alias(this=plain_column("person", "p"), alias=exp.to_identifier(unit, quoted=True))
    return select([every, shown], relation(rows, "r"), joins=[join(relation(people, "p"), all_of(equal), "LEFT")])


def rows_beyond_path(rows: exp.Expr, unit: str, path: PersonPath, other: exp.Expr, person: str) -> exp.Select:
    """Return a SELECT of how many ``rows`` reach nobody, ``unreached``, and how many keys of the next table have
    several rows, ``repeated``. For the steward alone: neither is private."""
    of_key = select(
        [alias(count_rows(), "n")],
        relation(other, "o"),
        where=_usable(path, person),
        group_by=[nodes.column(key, "o") for _, key in path.keys],
    )
    several = binary(">", plain_column("n"), integer(1))
    repeated = select([alias(count_rows(), "n")], relation(of_key, "s"), where=[several])
    none = nodes.is_null(nodes.column(unit, "r"))
    unreached = select([alias(count_rows(), "n")], relation(rows, "r"), where=[none])
    both = [alias(exp.Subquery(this=query), name) for query, name in ((unreached, "unreached"), (repeated, "repeated"))]
    return exp.Select(expressions=both)


def _keys(path: PersonPath) -> list[exp.Expr]:
    """Return the columns of the next table that the path compares, as k0, k1, …"""
    return [alias(nodes.column(key, "o"), f"k{place}") for place, (_, key) in enumerate(path.keys)]


def _usable(path: PersonPath, person: str) -> list[exp.Expr]:
    """Return the conditions for a row of the next table to lead to somebody: a key, and a person."""
    return [nodes.is_not_null(nodes.column(name, "o")) for name in (*(key for _, key in path.keys), person)]
