"""One person's total effect, bounded inside the engine: only bounded sums for each group ever leave it.

A question becomes at most two kinds of statement. Both begin alike:

``rows``   the rows asked about, of people who have a key, in the groups asked about; values are whole numbers on a
           public grid (:mod:`dither.tables.compile.expressions`)
``pairs``  one line for each person and group
``kept``   of each person at most ``groups`` of these, those with the smallest keyed hash of person and group: a fresh
           secret for each release, so the choice is random, the same on every engine, and depends on nobody else's rows

*Sums* (counts, sums, means, variances) clamp what a person adds to a group to what ``limit`` rows may add, and add up.
*Bins* (quantiles, extremes, modes, histograms) count people's values by bin: of each person and group at most ``limit``
values, chosen by a keyed hash divided by how often the value occurs, so that a value is chosen about as often as
it occurs.

All of it is whole numbers below 2^62 by construction, so order, rounding and overflow cannot change a sum.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dither.errors import InvalidArgument, message
from dither.tables.card.model import Card, Type, Value
from dither.tables.compile import expressions
from dither.tables.compile.dialect_sql import Phrases
from dither.tables.compile.discretize import bin_of, whole_steps
from dither.tables.compile.expressions import Lookup, Typed
from dither.tables.planning.measures import SQUARE_BITS, Grid, Measure, grid
from dither.tables.query.tree import Expression, Query

_PRIME = (1 << 31) - 1
SQL_TYPES: dict[Type, str] = {"integer": "BIGINT", "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP"}


@dataclass(frozen=True)
class Frame:
    """What every statement of a question shares.

    A group with public keys is known by the number of its key, which takes one join and makes everything after it a
    matter of whole numbers; DuckDB numbers private keys too. ``keys`` are in the order of the numbers.
    """

    query: Query
    card: Card
    keys: tuple[tuple[Value, ...] | None, ...]
    groups: float
    limit: int
    secret: int
    phrases: Phrases
    tables: Mapping[str, str]

    @property
    def find(self) -> Lookup:
        """How columns are found."""
        return expressions.lookup(self.card, self._aliases)

    @property
    def _aliases(self) -> dict[str, str]:
        return {join.table: f"p{i}" for i, join in enumerate(self.query.joins)}

    @property
    def names(self) -> list[str]:
        """What the groups are called: g0, g1, …"""
        return [f"g{i}" for i in range(len(self.query.groups))]

    @property
    def chosen(self) -> bool:
        """Whether a person's groups have to be chosen: there may be more than allowed."""
        return self.card.unit is not None and bool(self.query.groups) and self.possible > self.groups

    @property
    def possible(self) -> float:
        """How many groups there can be at most."""
        return math.prod(math.inf if keys is None else len(keys) for keys in self.keys)

    @property
    def numbered(self) -> list[bool]:
        """Which groups' private keys are numbered by the engine."""
        return [keys is None and self.phrases.dialect == "duckdb" and self.chosen for keys in self.keys]

    @property
    def everywhere(self) -> Frame:
        """The same with every group of every person."""
        return replace(self, groups=math.inf)

    @property
    def carried(self) -> list[str]:
        """The groups and what goes with them."""
        return [*self.names, *(f"h{i}" for i, yes in enumerate(self.numbered) if yes)]

    def grouped(self) -> list[Typed]:
        """The groups' expressions."""
        result = [expressions.compile(group.value, self.find) for group in self.query.groups]
        expressions.check_length(sum(len(typed.sql) for typed in result))
        for group, typed in zip(self.query.groups, result, strict=True):
            if typed.type == "number":
                raise InvalidArgument(
                    message(group.name, "groups of whole numbers, text or dates", "a number", "cut it into bins")
                )
        return result

    def source(self, columns: Mapping[str, str]) -> str:
        """``rows``: who (u), in which group (g0, g1, …), with which values."""
        parts = [f"{sql} AS {alias}" for alias, sql in columns.items()]
        conditions, joins = self._conditions(), self._joins()
        for i, (typed, keys, numbered) in enumerate(zip(self.grouped(), self.keys, self.numbered, strict=True)):
            if keys is not None:
                joins += f"{' LEFT' if None in keys else ''} JOIN {_listed(keys, typed.type)} AS k{i} ON "
                joins += f"{typed.sql} = k{i}.k"
                if None in keys:
                    conditions.append(f"(k{i}.i IS NOT NULL OR {typed.sql} IS NULL)")
                parts.append(f"COALESCE(k{i}.i, {keys.index(None)}) AS g{i}" if None in keys else f"k{i}.i AS g{i}")
            elif numbered:
                joins += f" LEFT JOIN keys{i} AS k{i} ON {typed.sql} = k{i}.k"
                parts += [f"COALESCE(k{i}.i, 0) AS g{i}", f"COALESCE(k{i}.h, 1) AS h{i}"]
            else:
                parts.append(f"{typed.sql} AS g{i}")
        if self.card.unit is not None:
            parts.append(f"{self._who} AS u")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {', '.join(parts) or '1 AS one'} FROM {self.tables['']} AS t{joins}{where}"

    @property
    def _who(self) -> str:
        return f"t.{expressions.name(self.card.unit or '')}"

    def _conditions(self) -> list[str]:
        result = [f"{self._who} IS NOT NULL"] if self.card.unit is not None else []
        return result if self.query.where is None else [*result, _condition(self.query.where, self.find)]

    def _joins(self) -> str:
        return "".join(
            f" {'LEFT ' if join.left else ''}JOIN {_once(self.tables[join.table], expressions.name(join.other))} "
            f"AS {self._aliases[join.table]} "
            f"ON {expressions.compile(join.own, self.find).sql} = "
            f"{self._aliases[join.table]}.{expressions.name(join.other)}"
            for join in self.query.joins
        )

    def finish(self, shown: list[str], lines: str, by: list[str], before: list[str]) -> str:
        """The whole statement: numbers given to private keys before, and their keys put back after."""
        sql = f"SELECT {', '.join([*by, *shown])} FROM ({lines}) AS kept" + (f" GROUP BY {', '.join(by)}" if by else "")
        tables, back, names = [], "", list(by)
        for i, (typed, numbered) in enumerate(zip(self.grouped(), self.numbered, strict=True)):
            if numbered:
                seen = (
                    f"SELECT DISTINCT {typed.sql} AS k FROM {self.tables['']} AS t{self._joins()} "
                    f"WHERE {' AND '.join([*self._conditions(), f'{typed.sql} IS NOT NULL'])}"
                )
                mark = self._small(self._mixed("k", typed.type))
                tables.append(
                    f"keys{i} AS MATERIALIZED (SELECT k, ROW_NUMBER() OVER (ORDER BY k) AS i, {mark} AS h "
                    f"FROM ({seen}) AS s)"
                )
                back += f" LEFT JOIN keys{i} AS b{i} ON a.g{i} = b{i}.i"
                names[names.index(f"g{i}")] = f"b{i}.k AS g{i}"
        tables += before
        if not tables:
            return self.phrases.render(sql)
        aliases = [part.rpartition(" AS ")[2] for part in shown]
        listed = [name if name.startswith("b") and "." in name else f"a.{name}" for name in names]
        listed += [f"a.{alias}" for alias in aliases]
        return self.phrases.render(f"WITH {', '.join(tables)} SELECT {', '.join(listed)} FROM ({sql}) AS a{back}")

    # -- keyed hashes: numbers mod the prime 2^31 - 1, whose products no engine's 64 bits overflow --------------------

    def _key(self, which: str) -> int:
        return 1 + int.from_bytes(hashlib.sha256(f"{self.secret}/{which}".encode()).digest()[:8], "big") % (_PRIME - 1)

    def _mixed(self, sql: str, type: Type) -> str:
        """A keyed hash of one value: of a whole number by a line, of anything else by MD5 under the secret."""
        if type == "integer":  # from 1 to 2^32, times less than 2^31
            return f"((CAST({sql} AS BIGINT) % {_PRIME} + {_PRIME}) * {self._key('a')} + {self._key('b')})"
        return self.phrases.hash(
            f"{expressions.text(f'{self._key(str(0)):x}{self._key(str(1)):x}')} || {self.phrases.text(sql, type)}"
        )

    @staticmethod
    def _small(mixed: str) -> str:
        return f"({mixed} % {_PRIME})"

    def _with(self, result: str, other: str, which: str) -> str:
        """Two hashes made one: without the exclusive or, a product would order the groups of many people alike."""
        return self._small(f"({self.phrases.either(result, other)} * {self._key(which)})")

    def marks(self, *more: str) -> str:
        """The keyed hash of a person and a group, and of what else is named: a number below 2^31."""
        unit = self.card.columns[self.card.unit].type if self.card.unit is not None else "integer"
        result = self._small(self._mixed("u", unit))
        for i, (typed, keys, numbered) in enumerate(zip(self.grouped(), self.keys, self.numbered, strict=True)):
            if keys is not None:
                other = self._small(f"(CAST(g{i} AS BIGINT) * {self._key(f'c{i}')} + {self._key(f'd{i}')})")
            elif numbered:
                other = f"h{i}"
            else:
                other = f"COALESCE({self._small(self._mixed(f'g{i}', typed.type))}, 1)"
            result = self._with(result, other, f"e{i}")
        for name in more:
            mixed = f"(CAST({name} AS BIGINT) * {self._key(name)} + {self._key(name * 2)})"
            result = self._with(result, self._small(mixed), name * 3)
        return self._with(result, str(self._key("f")), "ff")  # once more, or some secrets would favour some groups

    @property
    def _early(self) -> bool:
        """Whether groups are chosen before anything is added up: on DuckDB, where that is faster."""
        return self.chosen and self.phrases.dialect == "duckdb"

    def counted(self, columns: Mapping[str, str], where: str = "") -> tuple[str, list[str]]:
        """``rows``, and tables to read before; where groups are chosen early, rows of the groups that are kept."""
        lines = f"SELECT * FROM ({self.source(columns)}) AS r{where}"
        if not self._early:
            return lines, []
        pair = ", ".join(["u", *self.carried])
        chosen = self._first(f"SELECT {pair} FROM asked GROUP BY {pair}")
        on = " AND ".join(f"a.{name} = c.{name}" for name in ["u", *self.names])
        # read once: were the source to change between two readings, more groups of a person might be kept
        before = f"asked AS MATERIALIZED ({lines})"
        return f"SELECT a.* FROM asked AS a SEMI JOIN ({chosen}) AS c ON {on}", [before]

    def keep(self, lines: str, columns: list[str]) -> str:
        """``kept``: of each person at most ``groups`` lines. With no columns, a line is a person and a group."""
        listed = [*self.names, *columns]
        if self._early and not columns:
            return self._first(lines)
        if not self.chosen or self._early:
            return f"SELECT {', '.join(listed) or '1 AS one'} FROM ({lines}) AS l"
        chosen = self.phrases.smallest(lines, ["u"], self.marks(), int(self.groups), listed)
        return f"SELECT {', '.join(listed)} FROM {chosen} AS s"

    def _first(self, pairs: str) -> str:
        """Of each person the pairs with the smallest hashes, on DuckDB.

        Groups with the same hash go by their numbers, which are in the order of their keys: were they to go by the
        order of rows, a person's groups would depend on other people's. Hash and numbers are one whole number where
        they fit, which is much faster than a struct.
        """
        listed, most = ["u", *self.names], int(self.groups)
        bits = [31 if keys is None or len(self.keys) == 1 else (len(keys) - 1).bit_length() for keys in self.keys]
        if sum(bits) > 31:
            mark = f"ROW({self.marks()}, {', '.join(self.names)})"
            return f"SELECT {', '.join(listed)} FROM {self.phrases.smallest(pairs, ['u'], mark, most, listed)} AS s"
        places = [sum(bits[i + 1 :]) for i in range(len(bits))]
        number = " + ".join(f"CAST(g{i} AS BIGINT) * {1 << place}" for i, place in enumerate(places))
        shown = ", ".join(
            f"((p >> {place}) & {(1 << width) - 1}) AS g{i}"
            for i, (place, width) in enumerate(zip(places, bits, strict=True))
        )
        mark = f"{self.marks()} * {1 << 31} + {number}"
        least = f"MIN({mark})" if most == 1 else f"UNNEST(MIN({mark}, {most}))"
        return f"SELECT u, {shown} FROM (SELECT u, {least} AS p FROM ({pairs}) AS l GROUP BY u) AS k"


def _listed(keys: tuple[Value, ...], type: Type) -> str:
    """The public keys with their numbers, each once by the engine's own equality: a row has one of them at most,
    whatever they are."""
    if type == "text":
        given, k = [(expressions.literal(key).sql, i) for i, key in enumerate(keys) if key is not None], "k"
    else:  # as text, cast once
        given = [(expressions.text(str(key)), i) for i, key in enumerate(keys) if key is not None]
        k = f"CAST(k AS {SQL_TYPES[type]})"
    values = ", ".join(f"({key}, {i})" for key, i in given)
    return f"(SELECT k, MIN(i) AS i FROM (SELECT {k} AS k, i FROM (VALUES {values}) AS v(k, i)) AS d GROUP BY k)"


def _once(table: str, key: str) -> str:
    """A public table with one row at most for each value of its key, so that no row of ours has two partners."""
    numbered = f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {key}) AS dither_place FROM {table} AS p"
    return f"(SELECT * FROM ({numbered}) AS q WHERE dither_place = 1)"


def _condition(expression: Expression, find: Lookup) -> str:
    result = expressions.compile(expression, find)
    if result.type != "boolean":
        raise InvalidArgument(message("WHERE", "a condition", result.type, "compare the columns with something"))
    return result.sql


def sums(frame: Frame, measures: list[Measure]) -> str:
    """The statement for sums: a line for each group, with each measure as a whole number."""
    values: dict[tuple[object, ...], str] = {}
    columns: dict[str, str] = {}
    length = 0
    for measure in measures:
        if measure.value is not None and measure.column not in values:
            values[measure.column] = f"x{len(values)}"
            columns[values[measure.column]] = _steps(measure, frame.find)
            length += len(columns[values[measure.column]])
            expressions.check_length(length)
    before: list[str] = []
    if frame.card.unit is None:
        added = [_added_by_row(measure, values.get(measure.column, "")) for measure in measures]
        lines = frame.source(columns)
    else:
        item: dict[str, str] = {}
        for measure in measures:
            x = values.get(measure.column, "")
            if measure.kind == "count":
                item["n"] = "COUNT(*)"
            if x:
                item[f"c_{x}"] = f"COUNT({x})"
                if measure.grid is not None:
                    item[f"s_{x}"] = f"CAST(COALESCE(SUM({x}), 0) AS BIGINT)"
                if measure.kind == "square":
                    item[f"q_{x}"] = f"CAST(COALESCE(SUM({x} * {x}), 0) AS BIGINT)"
        listed = ["u", *(frame.names if item else frame.carried)]
        told = [f"{sql} AS {name}" for name, sql in item.items()]
        lines, before = frame.counted(columns) if item else (frame.source(columns), [])
        pairs = f"SELECT {', '.join([*listed, *told])} FROM ({lines}) AS r GROUP BY {', '.join(listed)}"
        added = [_added_by_person(measure, values.get(measure.column, ""), frame) for measure in measures]
        lines = frame.keep(pairs, list(item))
    totals = [f"CAST(COALESCE(SUM({sql}), 0) AS BIGINT) AS m{i}" for i, sql in enumerate(added)]
    return frame.finish(totals, lines, frame.names, before)


def _steps(measure: Measure, find: Lookup) -> str:
    """The value as whole steps: for a square, twice the distance from the middle."""
    assert measure.value is not None
    if measure.grid is None:
        return f"CASE WHEN {expressions.compile(measure.value, find).sql} IS NULL THEN NULL ELSE 1 END"
    assert measure.bounds is not None
    steps = whole_steps(measure.value, measure.grid, measure.bounds, find)
    return f"(2 * {steps} - {_both(measure.grid)})" if measure.kind == "square" else steps


def _both(grid: Grid) -> str:
    """The sum of the bounds, in parentheses where a minus would follow a minus."""
    return f"({grid.low + grid.high})"


def _added_by_row(measure: Measure, x: str) -> str:
    """What a row adds, where each row is a person."""
    if measure.kind in ("count", "people"):
        return "1"
    if measure.kind == "values":
        return f"CASE WHEN {x} IS NULL THEN 0 ELSE 1 END"
    if measure.kind == "sum":
        return x
    assert measure.grid is not None
    return f"(2 * {x} - {_both(measure.grid)})" if measure.kind == "center" else f"({x} * {x})"


def _added_by_person(measure: Measure, x: str, frame: Frame) -> str:
    """What a person adds to a group: no more than ``limit`` rows could.

    For a mean, more rows than that count as so many rows at their mean.
    """
    limit = frame.limit
    if measure.kind == "people":
        return "1"
    if measure.kind in ("count", "values"):
        n = "n" if measure.kind == "count" else f"c_{x}"
        return f"CASE WHEN {n} > {limit} THEN {limit} ELSE {n} END"
    assert measure.grid is not None
    if measure.kind == "sum":
        low, high = min(0, measure.grid.low * limit), max(0, measure.grid.high * limit)
        return f"CASE WHEN s_{x} < {low} THEN {low} WHEN s_{x} > {high} THEN {high} ELSE s_{x} END"

    def part(total: str) -> str:
        """``limit`` times the mean of a total of c rows, rounded down, in whole numbers from 0 on."""
        divide, c = frame.phrases.divide, f"c_{x}"
        return f"({divide(total, c)} * {limit} + {divide(f'(({total} % {c}) * {limit})', c)})"

    if measure.kind == "square":
        return f"CASE WHEN c_{x} <= {limit} THEN q_{x} ELSE {part(f'q_{x}')} END"
    few = f"2 * s_{x} - {_both(measure.grid)} * c_{x}"
    many = f"2 * {part(f'(s_{x} - ({measure.grid.low}) * c_{x})')} - {measure.grid.width * limit}"
    return f"CASE WHEN c_{x} <= {limit} THEN {few} ELSE {many} END"


def bins(frame: Frame, value: Expression, edges: tuple[float, ...] | None, keys: tuple[Value, ...] | None) -> str:
    """The statement for bins: a line for each group and bin that holds anything, with how many values.

    Bins are between ``edges`` (the first and the last take in what is beyond), or one for each of ``keys``, and are
    numbered from 0. NULL and NaN are in none.
    """
    result = expressions.compile(value, frame.find)
    if edges is not None:
        bin = bin_of(value, edges, frame.find)
    else:
        assert keys is not None
        expressions.repeated(result.sql, len(keys))
        arms = " ".join(f"WHEN {result.sql} = {expressions.literal(key).sql} THEN {i}" for i, key in enumerate(keys))
        bin = f"CASE {arms} ELSE NULL END"
    lines, before = frame.counted({"b": bin}, " WHERE b IS NOT NULL")
    if frame.card.unit is not None:
        person = ["u", *frame.carried]
        item = ", ".join([*person, "b"])
        counted = f"SELECT {item}, COUNT(*) AS n FROM ({lines}) AS r GROUP BY {item}"
        mark = f"({frame.phrases.divide(frame.marks('b'), 'n')} * {1 << 31} + b)"  # no two bins have the same
        picked = frame.phrases.gathered(counted, person, mark, frame.limit, "b")
        lines = frame.phrases.scattered(frame.keep(picked, ["b"]), frame.names, "b")
    return frame.finish(["COUNT(*) AS m0"], lines, [*frame.names, "b"], before)


def spread(frame: Frame, most: int) -> str:
    """The statement that counts people by the number of groups they are in, less 1, as ``b``."""
    pair = ", ".join(["u", *frame.names])
    pairs = f"SELECT {pair} FROM ({frame.everywhere.source({})}) AS r GROUP BY {pair}"
    count = f"CASE WHEN COUNT(*) > {most} THEN {most} ELSE COUNT(*) END - 1"
    people = f"SELECT u, {count} AS b FROM ({pairs}) AS p GROUP BY u"
    return frame.phrases.render(f"SELECT b, COUNT(*) AS m0 FROM ({people}) AS q GROUP BY b")


__all__ = ["SQUARE_BITS", "Frame", "Grid", "Measure", "bins", "grid", "spread", "sums", "whole_steps"]
