"""The engines' dialects of SQL, and the functions that they name or write differently."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from sqlglot import exp

Dialect = Literal["duckdb", "postgres", "spark"]
DIALECTS: tuple[Dialect, ...] = ("duckdb", "postgres", "spark")

_TIMESTAMP_FORMATS: dict[Dialect, tuple[str, str]] = {
    "duckdb": ("STRFTIME", "%Y-%m-%d %H:%M:%S.%f"),
    "postgres": ("TO_CHAR", "YYYY-MM-DD HH24:MI:SS.US"),
    "spark": ("DATE_FORMAT", "yyyy-MM-dd HH:mm:ss.SSSSSS"),
}


def _named(*names: str) -> dict[Dialect, Callable[..., exp.Expr]]:
    """A function by its names on each engine."""

    def named(name: str) -> Callable[..., exp.Expr]:
        return lambda *arguments: exp.Anonymous(this=name, expressions=list(arguments))

    return dict(zip(DIALECTS, map(named, names), strict=True))


def _difference(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    sides = (exp.Paren(this=side) for side in (left, right))
    return exp.Paren(this=exp.Sub(this=next(sides), expression=next(sides)))


def _timestamp_text(dialect: Dialect) -> Callable[..., exp.Expr]:
    name, pattern = _TIMESTAMP_FORMATS[dialect]
    return lambda x: exp.Anonymous(this=name, expressions=[x, exp.Literal.string(pattern)])


def _part(name: str) -> Callable[..., exp.Expr]:
    return lambda x: exp.Extract(this=exp.Var(this=name), expression=x)


DIALECT_FUNCTIONS: dict[str, dict[Dialect, Callable[..., exp.Expr]]] = {
    "_text_bytes": _named("STRLEN", "OCTET_LENGTH", "OCTET_LENGTH"),
    "_text_position": _named("STRPOS", "STRPOS", "INSTR"),
    "_starts_with": _named("STARTS_WITH", "STARTS_WITH", "STARTSWITH"),
    "_days_between": {**_named("", "", "DATEDIFF"), "duckdb": _difference, "postgres": _difference},
    "_day_of_week": {"duckdb": _part("ISODOW"), "postgres": _part("ISODOW"), "spark": _part("DAYOFWEEK_ISO")},
    "_timestamp_text": {dialect: _timestamp_text(dialect) for dialect in DIALECTS},
}
"""What :func:`dither.tables.query.nodes.render` writes for each engine. Each uses each of its arguments once."""
