"""What engines say differently, said once. Everything else is plain SQL, rewritten by sqlglot.

>>> Phrases("postgres").divide("a", "b")
'DITHER_DIV(a, b)'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Choice

from dither.tables.card import Type

Dialect = Choice["duckdb", "postgres", "spark"]

_STAMP = {
    "duckdb": "STRFTIME({}, '%Y-%m-%d %H:%M:%S.%f')",
    "postgres": "TO_CHAR({}, 'YYYY-MM-DD HH24:MI:SS.US')",
    "spark": "DATE_FORMAT({}, 'yyyy-MM-dd HH:mm:ss.SSSSSS')",
}


@dataclass(frozen=True)
class Phrases:
    """How one engine says it."""

    dialect: Dialect

    def text(self, sql: str, type: Type) -> str:
        """A value as text, the same on every engine."""
        if type == "text":
            return sql
        if type == "boolean":
            return f"CASE WHEN {sql} THEN 'true' WHEN NOT {sql} THEN 'false' END"
        if type == "timestamp":
            return f"DITHER_STAMP({sql})"
        if type == "number":  # a double has no one text; nothing groups by one
            return f"CAST(CAST({sql} AS BIGINT) AS VARCHAR)"
        return f"CAST({sql} AS VARCHAR)"

    def hash(self, sql: str) -> str:
        """The first 60 bits of the MD5 of a text, as a whole number."""
        return f"DITHER_HASH({sql})"

    def divide(self, a: str, b: str) -> str:
        """The whole part of a quotient of whole numbers from 0 on."""
        return f"DITHER_DIV({a}, {b})"

    def smallest(self, lines: str, of: list[str], mark: str, most: int, listed: list[str]) -> str:
        """Of the lines of each ``of``, the ``most`` with the smallest mark."""
        if self.dialect == "duckdb":
            packed = ", ".join(f"{name} := {name}" for name in listed)
            chosen = f"MIN_BY(STRUCT_PACK({packed}), {mark}, {most})"
            shown = ", ".join(f"s.{name} AS {name}" for name in listed)
            listed_of = ", ".join(of)
            return f"(SELECT {shown} FROM (SELECT UNNEST({chosen}) AS s FROM ({lines}) AS l GROUP BY {listed_of}) AS k)"
        rank = f"ROW_NUMBER() OVER (PARTITION BY {', '.join(of)} ORDER BY {mark}, {', '.join(listed)}) AS place"
        return f"(SELECT {', '.join(listed)} FROM (SELECT *, {rank} FROM ({lines}) AS l) AS k WHERE place <= {most})"

    def gathered(self, lines: str, of: list[str], mark: str, most: int, value: str) -> str:
        """The same for one value, as a list of values (``scattered`` undoes it); for most = 1 the value itself."""
        named = ", ".join(of)
        if most == 1 and self.dialect == "duckdb":
            return (
                f"SELECT {named}, LIST_VALUE(ARG_MIN({value}, {mark})) AS {value} FROM ({lines}) AS l GROUP BY {named}"
            )
        if self.dialect == "duckdb":
            return f"SELECT {named}, MIN_BY({value}, {mark}, {most}) AS {value} FROM ({lines}) AS l GROUP BY {named}"
        chosen = self.smallest(lines, of, mark, most, [*of, value])
        return f"SELECT {named}, ARRAY_AGG({value}) AS {value} FROM {chosen} AS c GROUP BY {named}"

    def scattered(self, lines: str, names: list[str], value: str) -> str:
        """A line for each value of the lists."""
        return f"SELECT {', '.join([*names, f'UNNEST({value}) AS {value}'])} FROM ({lines}) AS l"

    def render(self, sql: str) -> str:
        """The statement in this engine's own words."""
        import sqlglot
        from sqlglot import exp

        tree = sqlglot.parse_one(sql, read="duckdb")
        for call in reversed(list(tree.find_all(exp.Anonymous))):  # the inner ones first
            if call.name.upper() == "DITHER_DIV":
                a, b = (f"({part.sql(self.dialect)})" for part in call.expressions)
                sign = {"duckdb": "//", "postgres": "/", "spark": "DIV"}[self.dialect]
                call.replace(sqlglot.parse_one(f"({a} {sign} {b})", read=self.dialect))
            elif call.name.upper() == "DITHER_HASH":
                call.replace(sqlglot.parse_one(self._hash(call.expressions[0].sql(self.dialect)), read=self.dialect))
            elif call.name.upper() == "DITHER_STAMP":
                stamp = _STAMP[self.dialect].format(call.expressions[0].sql(self.dialect))
                call.replace(sqlglot.parse_one(stamp, read=self.dialect))
            elif call.name.upper() == "DITHER_BYTES":
                inner = call.expressions[0]
                call.replace(
                    exp.Collate(this=inner, expression=exp.to_identifier("C", quoted=True))
                    if self.dialect == "postgres"
                    else inner
                )
        return tree.sql(dialect=self.dialect)

    def _hash(self, sql: str) -> str:
        digits = f"SUBSTR(MD5({sql}), 1, 15)"
        return {
            "duckdb": f"CAST('0x' || {digits} AS BIGINT)",
            "postgres": f"CAST(CAST('x' || {digits} AS BIT(60)) AS BIGINT)",
            "spark": f"CAST(CONV({digits}, 16, 10) AS BIGINT)",
        }[self.dialect]
