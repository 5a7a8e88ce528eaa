"""The table of operations: one row for each, with everything that dither knows of it.

A row says what the operation takes and gives, the range of its result, how it is evaluated, how it is written for an
engine and how SQL spells it (:class:`~dither.tables.query.operations.base.Operation`). To add one, add a row to the
module of its family; ``tests/tables/query/test_operations.py`` tries every row everywhere.

>>> OPERATIONS["abs"].meaning, OPERATIONS["abs"].functions
('the absolute value', ('ABS',))
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dither.errors import InvalidArgument
from dither.tables.card.values import clip, closest
from dither.tables.query.operations.arithmetic import ARITHMETIC, NUMERIC_FUNCTIONS, ROUNDING
from dither.tables.query.operations.base import Function, Operation, Syntax
from dither.tables.query.operations.casts import CASTS
from dither.tables.query.operations.comparison import COMPARISON, CONDITIONAL, EXTREMES, LOGIC
from dither.tables.query.operations.dates import DATE_ARITHMETIC, DATES
from dither.tables.query.operations.text import TEXT

OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        row.name: row
        for family in (
            *(ARITHMETIC, ROUNDING, NUMERIC_FUNCTIONS, EXTREMES, COMPARISON, LOGIC),
            *(CONDITIONAL, TEXT, DATES, DATE_ARITHMETIC, CASTS),
        )
        for row in family
    }
)
"""Every operation by its name."""

FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {name: row.name for row in OPERATIONS.values() for name in row.functions}
)
"""The operation of every SQL function that is called with its arguments."""

SPECIAL_FUNCTIONS: Mapping[str, Function] = MappingProxyType(
    {item.name: item for row in OPERATIONS.values() for item in row.special_functions}
)
"""SQL functions whose arguments are read in a way of their own."""

SYNTAX: Mapping[str, tuple[Operation, Syntax]] = MappingProxyType(
    {form.node: (row, form) for row in OPERATIONS.values() for form in row.all_syntax}
)
"""The operation of every sqlglot class that stands for one, and how its node is read."""


def operation(name: str) -> Operation:
    """Return the row of the table of operations with this name; refuse an unknown name."""
    if name not in OPERATIONS:
        raise InvalidArgument("operation", "one of the known ones", clip(name), closest(name, sorted(OPERATIONS)))
    return OPERATIONS[name]


__all__ = ["FUNCTIONS", "OPERATIONS", "SPECIAL_FUNCTIONS", "SYNTAX", "Operation", "operation"]
