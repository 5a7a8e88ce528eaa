"""What engines say differently, said once. Everything else is plain SQL, rewritten by sqlglot.

>>> Phrases("postgres").divide("a", "b")
'DITHER_DIV(a, b)'
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dither.errors import InvalidArgument, message
from dither.tables.card.model import Type

if TYPE_CHECKING:  # sqlglot, which that brings, is loaded when something is rendered
    from dither.tables.compile.nodes import Dialect


@dataclass(frozen=True)
class Phrases:
    """How one engine says it."""

    dialect: Dialect

    def text(self, sql: str, type: Type) -> str:
        """A value as text, the same on every engine."""
        return sql if type == "text" else f"DITHER_TEXT({sql}, '{type}')"

    def hash(self, sql: str) -> str:
        """The first 60 bits of the MD5 of a text, as a whole number."""
        return f"DITHER_HASH({sql})"

    def divide(self, a: str, b: str) -> str:
        """The whole part of a quotient of whole numbers from 0 on."""
        return f"DITHER_DIV({a}, {b})"

    def either(self, a: str, b: str) -> str:
        """The exclusive or of the bits of whole numbers."""
        return f"DITHER_XOR({a}, {b})"

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
        """The statement in this engine's own words; refused where operations are too deep inside each other.

        It is done in a thread of its own, so that how deep is too deep does not depend on who calls: what can be
        rendered before a question is paid for can be rendered after.
        """
        with ThreadPoolExecutor(1) as threads:
            try:
                return threads.submit(self._rendered, sql).result()
            except RecursionError:
                pass
        raise InvalidArgument(
            message("expression", "fewer operations inside each other", "too many", "simplify it, or use x IN (…)")
        )

    def _rendered(self, sql: str) -> str:
        import sqlglot
        from sqlglot import exp

        from dither.tables.compile import nodes as say

        tree: Any = sqlglot.parse_one(sql, read="duckdb")
        for call in reversed(list(tree.find_all(exp.Anonymous))):  # the inner ones first
            first, *more = call.expressions or [None]
            if call.name == "DITHER_DIV":
                call.replace(say.whole_quotient(first, more[0], self.dialect))
            elif call.name == "DITHER_XOR":
                call.replace(_either(first, more[0], self.dialect))
            elif call.name == "DITHER_TEXT":
                call.replace(say.as_text(first, more[0].name, self.dialect))
            elif call.name == "DITHER_HASH":
                digits = f"SUBSTR({say.render(say.digest(first), self.dialect)}, 1, 15)"
                call.replace(sqlglot.parse_one(_NUMBER[self.dialect].format(digits), read=self.dialect))
        return say.render(tree, self.dialect)


def _either(a: Any, b: Any, dialect: Dialect) -> Any:
    from sqlglot import exp

    if dialect == "duckdb":
        return exp.Anonymous(this="XOR", expressions=[a, b])
    return exp.paren(exp.BitwiseXor(this=exp.paren(a), expression=exp.paren(b)))


_NUMBER: dict[Dialect, str] = {
    "duckdb": "CAST('0x' || {} AS BIGINT)",
    "postgres": "CAST(CAST('x' || {} AS BIT(60)) AS BIGINT)",
    "spark": "CAST(CONV({}, 16, 10) AS BIGINT)",
}
