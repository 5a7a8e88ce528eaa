"""The largest and the smallest of several values: GREATEST and LEAST, which leave NULLs out, as all engines do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dither.errors import InvalidArgument
from dither.tables.query import nodes
from dither.tables.query.operations.base import (
    Checked,
    Compiler,
    Operation,
    TypedExpression,
    TypedSql,
    check_alike,
    constant,
    wrong_type,
)
from dither.tables.query.operations.comparison import as_datetime
from dither.tables.query.operations.conditional import compile_branches, union
from dither.tables.query.ranges import Range
from dither.tables.query.tree import Call


def _check(call: Call, args: list[TypedExpression]) -> Checked:
    values, kind = check_alike(call, args)
    if kind == "boolean":
        fix = "combine conditions by AND and OR"
        raise InvalidArgument(call.op.upper(), "numbers, texts or dates", "conditions", fix)
    return values, kind


def _compile(call: Call, compiler: Compiler, as_number: bool = False) -> TypedSql:
    parts = [part for part in compile_branches(list(call.args), compiler, as_number) if not part.is_null]
    kind, known = union(parts)
    if not parts or len({part.type for part in parts}) > 1 or kind == "boolean":
        raise wrong_type("numbers, texts, dates or timestamps", "booleans")
    if known is not None:
        known = _clamped(call, known)
    return TypedSql(nodes.call(call.op.upper(), *(part.node for part in parts)), kind, known)


def _clamped(call: Call, known: Range) -> Range:
    """Constants are never NULL: nothing is below them in GREATEST, or above them in LEAST."""
    fixed = [value for item in call.args if isinstance(value := constant(item), (int, float))]
    low = max([known.low, *map(float, fixed)]) if call.op == "greatest" else known.low
    high = min([known.high, *map(float, fixed)]) if call.op == "least" else known.high
    return Range(low, high, known.least, known.quantum)


def _extreme(choose: Callable[..., Any], *arguments: Callable[[], Any]) -> Any:
    values = [value for argument in arguments if (value := argument()) is not None]
    if len({isinstance(value, str) for value in values}) > 1:
        raise TypeError
    return choose(values, key=as_datetime) if values else None


EXTREMES = tuple(
    Operation(
        name, f"the {word} of them, NULLs left out", 2, None, _check, _compile, partial(_extreme, choose), example,
        strict=False, takes_null=True, compile_number=partial(_compile, as_number=True), functions=(name.upper(),),
        examples=examples, null_where="", range_rule="that of all together; constants limit it",
    )
    for name, word, choose, example, examples in (
        ("greatest", "largest", max, "GREATEST(x, n)", ("GREATEST(x, 0)", "GREATEST(s, 'b')", "GREATEST(n, -1, 1)")),
        ("least", "smallest", min, "LEAST(x, n)", ("LEAST(n, 2)", "LEAST(d, DATE '2024-03-01')", "LEAST(t, t)")),
    )
)  # fmt: skip
"""GREATEST and LEAST."""
