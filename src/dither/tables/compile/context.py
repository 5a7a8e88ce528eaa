"""What the statements of a question share: its rows, its groups, and which groups of a person count.

A :class:`Statement` is built once from sqlglot nodes. The rows it is about can be exchanged (:meth:`Statement.on`), to
try it on no rows before anything is charged; its text is written once for each.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Concatenate, ParamSpec, Protocol

from sqlglot import exp

from dither.errors import InvalidArgument
from dither.tables.card.model import Card, Type
from dither.tables.card.values import Value
from dither.tables.compile import expressions
from dither.tables.compile.expressions import Lookup
from dither.tables.compile.limits import Limits
from dither.tables.compile.relations import public_join, relation_sql
from dither.tables.query import nodes
from dither.tables.query.nodes import (
    Dialect,
    alias,
    all_of,
    binary,
    call,
    cast,
    coalesce,
    count_rows,
    dense_rank,
    integer,
    join,
    over,
    placeholder,
    plain_column,
    relation,
    row_number,
    select,
    total,
    values,
)
from dither.tables.query.operations.base import TypedSql
from dither.tables.query.relations import base_of, person_of
from dither.tables.query.tree import Query, private_tables

_PRIME = (1 << 31) - 1


@dataclass(frozen=True, eq=False)
class Statement:
    """A SELECT for one engine, about the rows of ``sources``: private tables by name, "" for the card's own."""

    node: exp.Expr
    sources: Mapping[str, exp.Expr]
    dialect: Dialect

    @cached_property
    def text(self) -> str:
        """The statement as SQL text, written once."""
        replacing = {placeholder(name): source for name, source in self.sources.items()}
        return nodes.render(self.node, self.dialect, replacing=replacing)

    def on(self, sources: Mapping[str, exp.Expr]) -> Statement:
        """Return the same statement on other tables, by the names of ``sources``."""
        return Statement(self.node, sources, self.dialect)

    def __str__(self) -> str:
        return self.text


class RowCodes(Protocol):
    """The place of each row in a public domain, as whole numbers; rows outside the domain do not count."""

    def code_columns(self, find: Lookup, name: str) -> tuple[list[exp.Expr], list[exp.Join], list[exp.Expr]]:
        """Return what a SELECT needs for the code of each row: columns whose names begin with ``name``, joins, and
        conditions that exclude rows outside the domain."""


@dataclass(frozen=True)
class StatementContext:
    """What every statement of a question shares.

    A group with public keys is known by the number of its key, which takes one join and makes everything after it a
    matter of whole numbers; DuckDB numbers private keys too. ``keys`` are in the order of the numbers. ``tables`` are
    what stands in FROM for the table itself, under the name ``""``, and for the public tables joined to it.
    """

    query: Query
    card: Card
    keys: tuple[tuple[Value, ...] | None, ...]
    limits: Limits
    secret: int
    dialect: Dialect
    tables: Mapping[str, exp.Expr]
    every_group: bool = False
    """Whether all groups of a person are kept, for statements of which nothing is shown by key."""
    codes: tuple[RowCodes, ...] = ()
    """Public domains that every row must be in, with its place in each as columns that begin with c0, c1, …"""
    built: dict[str, Statement] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The statements of :func:`built_once`."""

    def statement(self, node: exp.Expr) -> Statement:
        """Return a SELECT as a statement for this engine, about this question's tables."""
        sources = {name or "": self.tables[name or ""] for name in private_tables(self.query)}
        return Statement(node, sources, self.dialect)

    @cached_property
    def find(self) -> Lookup:
        """The lookup of columns, which compiles each expression once for all statements."""
        return expressions.remembering(expressions.lookup(self.card, self._aliases))

    @property
    def _aliases(self) -> dict[str, str]:
        """The aliases p0, p1, … of the public tables that the question joins."""
        return {joined.table: f"p{i}" for i, joined in enumerate(self.query.joins)}

    @property
    def names(self) -> list[str]:
        """The names g0, g1, … of the groups in the statements."""
        return [f"g{i}" for i in range(len(self.query.groups))]

    @property
    def limits_groups(self) -> bool:
        """Whether the groups of each person are limited to the first few, because some keys are not public: each group
        that a person is alone in is another key that noise could reveal."""
        return not self.every_group and self.card.unit is not None and any(keys is None for keys in self.keys)

    @property
    def numbered(self) -> list[bool]:
        """For each group, whether its private keys are replaced by numbers within the statement, as on DuckDB where
        each person's groups are limited."""
        return [keys is None and self.dialect == "duckdb" and self.limits_groups for keys in self.keys]

    @property
    def with_every_group(self) -> StatementContext:
        """The same context with all groups of every person kept."""
        return replace(self, every_group=True)

    @property
    def passed_columns(self) -> list[str]:
        """The columns of groups (g0, g1, …) and of the hashes of numbered keys (h0, h1, …) that inner SELECTs pass
        on."""
        return [*self.names, *(f"h{i}" for i, yes in enumerate(self.numbered) if yes)]

    # -- rows ---------------------------------------------------------------------------------------------------------

    @cached_property
    def grouped(self) -> list[TypedSql]:
        """The compiled expressions of the groups; refused are doubles without public keys, of which nearly every value
        would be a separate group."""
        result = [expressions.key(group.value, self.find) for group in self.query.groups]
        nodes.check_length(*(typed.node for typed in result))
        for group, typed, keys in zip(self.query.groups, result, self.keys, strict=True):
            if typed.type == "number" and keys is None:
                raise InvalidArgument(
                    group.name,
                    "groups of whole numbers, text or dates",
                    "a number",
                    "round it, FLOOR(x / 10), or cut it into bins, WIDTH_BUCKET(x, 0, 100, 10), or list its keys",
                )
        return result

    def source(self, columns: Mapping[str, exp.Expr], with_person: bool = False) -> exp.Select:
        """Return the SELECT of the rows that the question is about: these columns, the groups (g0, g1, …), codes, and
        the person (u). Where every row is a person, there is a u only if ``with_person`` is True."""
        parts = [alias(node, name) for name, node in columns.items()]
        conditions, joins = self._conditions(), self._joins()
        for i, (typed, keys, numbered) in enumerate(zip(self.grouped, self.keys, self.numbered, strict=True)):
            number: exp.Expr = plain_column("i", f"k{i}")
            equal = binary("=", typed.node, plain_column("k", f"k{i}"))
            if keys is not None:
                listed = relation(listed_keys(keys, typed.type), f"k{i}")
                joins.append(join(listed, equal, "LEFT" if None in keys else ""))
                if None in keys:
                    conditions.append(binary("or", nodes.is_not_null(number), nodes.is_null(typed.node)))
                    number = coalesce(number, integer(keys.index(None)))
                parts.append(alias(number, f"g{i}"))
            elif numbered:
                joins.append(join(relation(exp.to_table(f"keys{i}"), f"k{i}"), equal, "LEFT"))
                parts.append(alias(coalesce(number, integer(0)), f"g{i}"))
                parts.append(alias(coalesce(plain_column("h", f"k{i}"), integer(1)), f"h{i}"))
            else:
                parts.append(alias(typed.node, f"g{i}"))
        for i, item in enumerate(self.codes):
            codes, code_joins, code_conditions = item.code_columns(self.find, f"c{i}")
            parts, joins, conditions = parts + codes, joins + code_joins, conditions + code_conditions
        if self.card.unit is not None or with_person:
            parts.append(alias(self._who, "u"))
        return select(parts or [alias(integer(1), "one")], self._rows, joins=joins, where=conditions)

    @cached_property
    def _rows(self) -> exp.Expr:
        """The card's own table, or the relation that is asked about, for FROM under the alias t."""
        if self.query.source is None:
            return relation(exp.to_table(placeholder("")), "t")
        return relation(relation_sql(self.query.source, self.base_card, self.tables, self.dialect), "t")

    @property
    def _who(self) -> exp.Expr:
        """The column that names the person."""
        unit = self.card.unit
        return nodes.column(person_of(self.base_card) if unit is None else unit, "t")

    @property
    def base_card(self) -> Card:
        """The card of the private tables that the question reads."""
        return base_of(self.card)

    @property
    def null_people(self) -> bool:
        """Whether rows whose ``u`` is NULL each count as a person with that row only; relations made of tables have
        no such rows."""
        named = self.card.unit is not None and self.query.source is None
        return named and self.card.counts_rows_without_unit

    def _conditions(self) -> list[exp.Expr]:
        """Return the conditions that rows must meet: a known person and the question's WHERE."""
        named = self.card.unit is not None and not self.null_people
        result = [nodes.is_not_null(self._who)] if named else []
        return result if self.query.where is None else [*result, expressions.condition(self.query.where, self.find)]

    def _joins(self) -> list[exp.Join]:
        """Return the joins with the question's public tables."""
        aliases, find = self._aliases, self.find
        return [
            public_join(item, self.tables[item.table], self.card.public[item.table], aliases[item.table], find)
            for item in self.query.joins
        ]

    def finish(
        self,
        totals: Mapping[str, exp.Expr],
        lines: exp.Select,
        by: Sequence[str],
        before: Sequence[tuple[str, exp.Select]],
    ) -> exp.Select:
        """Return the complete statement: the aggregates ``totals`` of the rows of ``lines``, grouped ``by`` columns.

        ``before`` are common table expressions (name and SELECT) that ``lines`` reads. Where private keys are numbered,
        a table of each group's keys with their numbers and hashes is added to these, and the keys themselves are joined
        to the result.
        """
        keys = [plain_column(name) for name in by]
        summed = select(
            [*keys, *(alias(node, name) for name, node in totals.items())], relation(lines, "kept"), group_by=keys
        )
        tables: list[tuple[str, exp.Select]] = []
        back: list[exp.Join] = []
        shown: dict[str, exp.Expr] = {name: plain_column(name, "a") for name in [*by, *totals]}
        for i, (typed, numbered) in enumerate(zip(self.grouped, self.numbered, strict=True)):
            if numbered:
                seen = select(
                    [alias(typed.node, "k")],
                    self._rows,
                    joins=self._joins(),
                    where=[*self._conditions(), nodes.is_not_null(typed.node)],
                ).distinct(copy=False)
                k = plain_column("k")
                hashed = self._reduced(self._hashed_value(k, typed.type))
                listed = [k, alias(row_number([k]), "i"), alias(hashed, "h")]
                tables.append((f"keys{i}", select(listed, relation(seen, "s"))))
                equal = binary("=", plain_column(f"g{i}", "a"), plain_column("i", f"b{i}"))
                back.append(join(relation(exp.to_table(f"keys{i}"), f"b{i}"), equal, "LEFT"))
                shown[f"g{i}"] = alias(plain_column("k", f"b{i}"), f"g{i}")
        tables += before
        if not tables:
            return summed
        return nodes.with_tables(select(list(shown.values()), relation(summed, "a"), joins=back), tables)

    # -- keyed hashes: numbers mod the prime 2^31 - 1, whose products no engine's 64 bits overflow --------------------

    def _key(self, which: str) -> int:
        """Return a factor or summand of the hash, from 1 to 2^31 - 2, derived from the secret and a label."""
        return 1 + int.from_bytes(hashlib.sha256(f"{self.secret}/{which}".encode()).digest()[:8], "big") % (_PRIME - 1)

    def _linear(self, x: exp.Expr, factor: str, summand: str) -> exp.Expr:
        """Return a * x + b, where a and b are the hash keys with the labels ``factor`` and ``summand``."""
        return binary("+", binary("*", x, integer(self._key(factor))), integer(self._key(summand)))

    def _hashed_value(self, x: exp.Expr, type: Type) -> exp.Expr:
        """Return a keyed hash of one value, not yet reduced modulo the prime: linear in an integer, the first 60 bits
        of MD5(secret, text) for other types."""
        if type == "integer":  # the remainder is below 2^32 and the factor below 2^31: the product fits 64 bits
            remainder = binary("+", self._reduced(cast(x, "integer")), integer(_PRIME))
            return self._linear(remainder, "a", "b")
        key = exp.Literal.string(f"{self._key('0'):x}{self._key('1'):x}")
        return nodes.hash_60_bits(nodes.concatenate(key, nodes.as_text(x, type, self.dialect)), self.dialect)

    def hash_of_value(self, x: exp.Expr, type: Type) -> exp.Expr:
        """Return the keyed hash of one value, below 2^31."""
        return self._reduced(self._hashed_value(x, type))

    @staticmethod
    def _reduced(hashed: exp.Expr) -> exp.Expr:
        """Return a hash modulo the prime 2^31 - 1."""
        return binary("%", hashed, integer(_PRIME))

    def _combined(self, hashed: exp.Expr, other: exp.Expr, which: str) -> exp.Expr:
        """Return one hash of two: (a xor b) times the key with the label ``which``, modulo the prime. Without the xor
        the hashes would rank the groups of different people in similar orders."""
        return self._reduced(binary("*", nodes.xor(hashed, other, self.dialect), integer(self._key(which))))

    def keyed_hash(self, *more: str) -> exp.Expr:
        """Return the keyed hash of a person, a group and the columns in ``more``, below 2^31. It decides which
        groups of a person count."""
        unit = self.card.columns[self.card.unit].type if self.card.unit is not None else "integer"
        result = self._reduced(self._hashed_value(plain_column("u"), unit))
        for i, (typed, keys, numbered) in enumerate(zip(self.grouped, self.keys, self.numbered, strict=True)):
            group = plain_column(f"g{i}")
            if keys is not None:
                hashed = self._reduced(self._linear(cast(group, "integer"), f"c{i}", f"d{i}"))
            elif numbered:
                hashed = plain_column(f"h{i}")
            else:
                hashed = coalesce(self._reduced(self._hashed_value(group, typed.type)), integer(1))
            result = self._combined(result, hashed, f"e{i}")
        for name in more:
            linear = self._linear(cast(plain_column(name), "integer"), name, name * 2)
            result = self._combined(result, self._reduced(linear), name * 3)
        # once more, or some secrets would favor some groups
        return self._combined(result, integer(self._key("f")), "ff")

    # -- the groups of a person that count ----------------------------------------------------------------------------

    def counted(
        self, columns: Mapping[str, exp.Expr], where: Sequence[exp.Expr] = ()
    ) -> tuple[exp.Select, list[tuple[str, exp.Select]]]:
        """Return the SELECT of the rows that count, and the common table expressions (name and SELECT) that it reads.

        ``columns`` are computed columns of each row by name, and ``where`` conditions on them. Where each person's
        groups are limited (:attr:`limits_groups`), only rows in the person's groups with the smallest keyed hashes
        count: DuckDB joins with these groups, other engines rank the groups by a window function.
        """
        lines = select([exp.Star()], relation(self.source(columns), "r"), where=where)
        if not self.limits_groups:
            return lines, []
        if self.dialect != "duckdb":
            order = [self.keyed_hash(), *(plain_column(name) for name in self.names)]
            place = alias(dense_rank(order, [plain_column("u")]), "place")
            ranked = select([exp.Star(), place], relation(lines, "l"))
            first = binary("<=", plain_column("place"), integer(self.limits.groups))
            if self.null_people:
                first = binary("or", first, nodes.is_null(plain_column("u")))
            return select([exp.Star()], relation(ranked, "k"), where=[first]), []
        pair = [plain_column(name) for name in ["u", *self.passed_columns]]
        asked = exp.to_table("asked")
        chosen = self._first_groups(select(pair, asked, group_by=pair))
        equal = [binary("=", plain_column(name, "a"), plain_column(name, "c")) for name in ["u", *self.names]]
        # a line has one partner at most, and lines without a person have none
        kept = join(relation(chosen, "c"), all_of(equal), "LEFT" if self.null_people else "SEMI")
        every = exp.Column(this=exp.Star(), table=exp.to_identifier("a"))
        null = binary("or", nodes.is_null(plain_column("u", "a")), nodes.is_not_null(plain_column("u", "c")))
        where = [null] if self.null_people else []
        # read once: were the source to change between two readings, more groups of a person might be kept
        return select([every], relation(asked, "a"), joins=[kept], where=where), [("asked", lines)]

    def weighted(self, lines: exp.Select, limits: Limits) -> tuple[exp.Select, list[tuple[str, exp.Select]], exp.Expr]:
        """Return a SELECT of ``lines`` with the person's weight ``w``, the common table expressions (name and SELECT)
        that it reads, and the expression of the sum of weights.

        w = min(1, R / N) for a person with N lines and the limit R (the l1 norm), in units of 2^-bits. Where every row
        is a person, the lines are unchanged and the sum of weights is their number.
        """
        if self.card.unit is None:
            return lines, [], count_rows()

        def weight(windows: bool) -> exp.Expr:
            """Return the weight from the number of the person's lines, counted by a window function or an aggregate."""
            rows = over(count_rows(), [plain_column("u")]) if windows else count_rows()
            return limits.weight(rows, self.dialect)

        result, tables = with_weights(lines, {"w": weight}, self.dialect, self.null_people)
        w = coalesce(plain_column("w"), integer(1 << limits.bits())) if self.null_people else plain_column("w")
        return result, tables, total(w)

    def _first_groups(self, pairs: exp.Select) -> exp.Select:
        """Return, on DuckDB, the groups of each person with the smallest keyed hashes, as many as the limit allows.

        ``pairs`` has each person's groups once. Equal hashes are ordered by the keys of the groups; the order of rows
        would make a person's groups depend on other people. Where they fit, hash and group numbers are packed into one
        integer, which DuckDB sorts much faster than a struct: the hash, below 2^31, in the upper bits, and in the lower
        31 bits the number of each group, in as many bits as its number of keys needs.
        """
        listed, most = ["u", *self.names], self.limits.groups
        widths = [31 if keys is None or len(self.keys) == 1 else (len(keys) - 1).bit_length() for keys in self.keys]
        if sum(widths) > 31:
            order = call("ROW", self.keyed_hash(), *(plain_column(name) for name in self.names))
            return smallest(pairs, ["u"], order, most, listed)
        shifts = [sum(widths[i + 1 :]) for i in range(len(widths))]
        order = binary("*", self.keyed_hash(), integer(1 << 31))
        for i, shift in enumerate(shifts):
            order = binary("+", order, binary("*", cast(plain_column(f"g{i}"), "integer"), integer(1 << shift)))
        shown = [
            alias(binary("&", binary(">>", plain_column("p"), integer(shift)), integer((1 << width) - 1)), f"g{i}")
            for i, (shift, width) in enumerate(zip(shifts, widths, strict=True))
        ]
        least = call("MIN", order) if most == 1 else call("UNNEST", call("MIN", order, integer(most)))
        u = plain_column("u")
        packed = select([u, alias(least, "p")], relation(pairs, "l"), group_by=[u])
        return select([u, *shown], relation(packed, "k"))


_Arguments = ParamSpec("_Arguments")


def built_once(
    build: Callable[Concatenate[StatementContext, _Arguments], exp.Expr],
) -> Callable[Concatenate[StatementContext, _Arguments], Statement]:
    """Decorate a function that writes a SELECT: it then returns a :class:`Statement`, which is cached in the context
    for equal arguments."""

    @functools.wraps(build)
    def statement(context: StatementContext, /, *args: _Arguments.args, **keywords: _Arguments.kwargs) -> Statement:
        """Return the statement for these arguments, from the context if it was built before."""
        name = repr((build.__name__, args, keywords))  # which tells 1 from 1.0 and True
        if name not in context.built:
            context.built[name] = context.statement(build(context, *args, **keywords))
        return context.built[name]

    return statement


def listed_keys(keys: tuple[Value, ...], type: Type) -> exp.Select:
    """Return a SELECT of public keys ``k`` with their index ``i``; of keys that the engine considers equal only the
    first is listed, so that no row matches two."""
    given = [(key, (number,)) for number, key in enumerate(keys) if key is not None]
    return each_key_once(key_values(given, type, ("i",)), ("i",))


def key_values(rows: Sequence[tuple[Value, Sequence[int]]], type: Type, numbers: Sequence[str]) -> exp.Select:
    """Return a SELECT of constant rows: public keys as the column ``k``, and beside each its integers in the columns
    ``numbers``."""
    k: exp.Expr = plain_column("k")
    if type != "text":  # as text, cast once
        k = cast(k, type)
    lines = [(nodes.literal(str(key)), *map(integer, given)) for key, given in rows]
    if not lines:  # NULL is the only key: a table without rows cannot be written as constants, and NULL equals nothing
        lines = [(nodes.literal(None), *(integer(0) for _ in numbers))]
    return select([alias(k, "k"), *map(plain_column, numbers)], values(lines, "v", ("k", *numbers)))


def each_key_once(keys: exp.Expr, numbers: Sequence[str]) -> exp.Select:
    """Return a SELECT with one row for each key ``k`` that the engine tells apart, and the least of its ``numbers``."""
    key = plain_column("k")
    least = [alias(call("MIN", plain_column(name)), name) for name in numbers]
    return select([key, *least], relation(keys, "d"), group_by=[key])


def smallest(rows: exp.Select, by: Sequence[str], order: exp.Expr, most: int, columns: Sequence[str]) -> exp.Select:
    """Return, on DuckDB, a SELECT of these columns of the ``most`` rows that are first in ``order`` for each value of
    ``by``."""
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
    """Return a SELECT of ``lines`` with further columns computed from all lines of the same person, and the common
    table expressions (name and SELECT) that it reads.

    ``weights`` has a function for each column, which returns its SQL: made of window functions over the person's lines
    if called with True, of aggregates for GROUP BY person if called with False. The lines are read once, since the
    source could change between two readings. With ``keep_null`` there are lines without a person, for which the new
    columns are NULL.
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
