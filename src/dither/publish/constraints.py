"""Public rules that every synthetic record obeys, such as ``NOT (marital = 'married' AND age < 15)``.

A rule is a condition in SQL over the columns of the records. As with CHECK in SQL, a record violates it only if it is
false; if it is NULL, the record is allowed. Rules are public: nothing here reads private data.

A condition over few columns becomes a table of their cells with true where some record is possible; the model
(:mod:`dither.publish.graphical`) has no records elsewhere. A bin may lie across a limit of a rule. Then it is divided
into *parts*, between neighboring constants that its column is compared with, and the numbers of a record are drawn from
the parts in which all rules hold.

*No record violates a rule.* Columns in bins may only be compared with constants (or asked for NULL), so a condition
has one truth value in each product of parts, that of any point in it. Rules that share a column with a divided bin are
joined into one, over all their columns: so the parts of a record's bins are chosen for all these rules at once. A
column that several joined rules share otherwise has no divided bin, and whatever number is drawn in its bins, no rule
changes its truth value.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument
from dither.publish.domain import Integers
from dither.publish.graphical import Clique
from dither.publish.record_values import RecordColumn, inside, on_scale
from dither.publish.residuals import Floats
from dither.tables.builder.expressions import condition
from dither.tables.query.evaluate import evaluate, require_boolean
from dither.tables.query.relations import Relation, Rows, resolve_columns
from dither.tables.query.tree import Call, Column, Expression, Literal, columns, show, walk

MAX_COMBINATIONS = 200_000
"""The most combinations of values that the columns of one rule may have."""
_AT_BOTH = frozenset(["between", "=", "<>", "in", "is_distinct"])
_CHANGES_AT, _CHANGES_ABOVE = _AT_BOTH | {"<", ">="}, _AT_BOTH | {"<=", ">"}
"""Comparisons that change at a constant, and those that change just above it."""


@dataclass(frozen=True, eq=False)
class Parts:
    """The values of one column in a rule: each code's values, divided into parts where a condition changes."""

    codes: Integers
    """The code of each part; the parts of one code are consecutive."""
    low: NDArray[Any]
    """The smallest value of each part, on the scale of the column's bins; 0 for a code that is a single key."""
    high: NDArray[Any]
    """The largest value of each part, on that scale."""
    weights: Floats
    """The number of values in each part, or its length for real numbers; 1 for a key."""

    @property
    def starts(self) -> Integers:
        """Return the index of the first part of each code."""
        return np.flatnonzero(np.diff(self.codes, prepend=-1))

    @property
    def divided(self) -> bool:
        """Return whether some code has several parts."""
        return len(self.codes) > len(self.starts)


@dataclass(frozen=True, eq=False)
class RecordRule:
    """A rule of one condition, or of several that share a column with a divided bin; made by :func:`rules_of`.

    >>> from dither.publish import Attribute, Domain
    >>> from dither.publish.record_values import record_columns
    >>> domain = Domain([Attribute.flat("marital", ["single", "married"]), Attribute.binned("age", [0, 10, 20])])
    >>> rule, = rules_of(["NOT (marital = 'married' AND age < 15)"], record_columns(domain))
    >>> rule.allowed
    array([[ True,  True],
           [False,  True]])
    """

    table: Clique
    """The indices of the attributes of its columns."""
    parts: tuple[Parts, ...] = field(repr=False)
    """The parts of each of these columns."""
    holds: NDArray[np.bool_] = field(repr=False)
    """Whether all conditions hold, for each combination of parts."""

    @property
    def allowed(self) -> NDArray[np.bool_]:
        """Return, for each combination of the columns' codes, whether the rule holds for some values in them."""
        result = self.holds
        for axis, parts in enumerate(self.parts):
            result = np.logical_or.reduceat(result, parts.starts, axis=axis)
        return result

    @property
    def _fully_allowed(self) -> NDArray[np.bool_]:
        """Return, for each combination of the columns' codes, whether the rule holds for all values in them."""
        result = self.holds
        for axis, parts in enumerate(self.parts):
            result = np.logical_and.reduceat(result, parts.starts, axis=axis)
        return result

    def move_inside(
        self, codes: Sequence[Integers], numbers: list[NDArray[Any] | None], uniform: Sequence[Floats]
    ) -> None:
        """Replace, in place, the numbers of records in cells where only some values satisfy the rule.

        A part where the rule holds is drawn with probability proportional to its size, then a number in it uniformly.
        ``codes`` has the records' codes of each attribute, ``numbers`` their values (None for attributes without bins),
        and ``uniform`` uniform numbers from 0 to 1: an array for each attribute and a last one for the choice of parts.
        """
        if not any(parts.divided for parts in self.parts):
            return
        rule_codes = tuple(codes[attribute] for attribute in self.table)
        concerned = np.flatnonzero((self.allowed & ~self._fully_allowed)[rule_codes])
        if not len(concerned):
            return
        cells = np.ravel_multi_index([code[concerned] for code in rule_codes], self.allowed.shape)
        order = np.argsort(cells, kind="stable")
        present, firsts = np.unique(cells[order], return_index=True)
        for cell, rows in zip(present.tolist(), np.split(concerned[order], firsts[1:]), strict=True):
            self._draw(np.unravel_index(cell, self.allowed.shape), rows, numbers, uniform)

    def _draw(
        self, cell: Sequence[Any], rows: Integers, numbers: list[NDArray[Any] | None], uniform: Sequence[Floats]
    ) -> None:
        """Replace, in place, the numbers of the records of one cell by numbers that satisfy the rule.

        A combination of parts where the rule holds is drawn with probability proportional to its size, then a number in
        each part uniformly.

        Parameters
        ----------
        cell
            The codes of the rule's attributes that all these records have.
        rows
            The indices of the records.
        numbers
            The drawn numbers of each attribute, which are changed in place; None for attributes without bins.
        uniform
            Uniform numbers in [0, 1) for each attribute and each record, and a last array for the choice of the parts.
        """
        ranges = [np.flatnonzero(parts.codes == code) for parts, code in zip(self.parts, cell, strict=True)]
        block = np.ix_(*ranges)
        sizes = np.ones(())
        for parts, part_indices in zip(self.parts, ranges, strict=True):
            sizes = np.multiply.outer(sizes, parts.weights[part_indices])
        weights = np.where(self.holds[block], sizes, 0.0).ravel()
        if not weights.any():  # the rule holds only at single points, which have length 0
            weights = self.holds[block].ravel().astype(np.float64)
        cumulative = np.cumsum(weights)
        drawn = np.searchsorted(cumulative / cumulative[-1], np.minimum(uniform[-1][rows], 1 - 1e-9), side="right")
        chosen = np.unravel_index(drawn, [len(part_indices) for part_indices in ranges])
        for attribute, parts, part_indices, choice in zip(self.table, self.parts, ranges, chosen, strict=True):
            values = numbers[attribute]
            if values is not None and len(part_indices) > 1:
                part = part_indices[choice]
                values[rows] = inside(parts.low[part], parts.high[part], uniform[attribute][rows])


def rules_of(constraints: Iterable[object], record_columns: Sequence[RecordColumn]) -> tuple[RecordRule, ...]:
    """Return the rules of conditions in SQL, or as expressions of :func:`dither.col`, over the columns of records.

    Conditions that share a column with a divided bin are joined into one rule, since its parts must meet all of them.
    ``record_columns`` are the columns of the records, in their order.
    """
    names = {name: index for index, item in enumerate(record_columns) for name in item.attribute.level_names}
    types = {name: type for item in record_columns for name, type in item.types.items()}
    rows = Rows((Relation("records", {name: Column(name) for name in names}),))
    conditions = []
    for given in [constraints] if isinstance(constraints, str) else constraints:
        resolved = resolve_columns(condition(given, "constraints"), rows)
        checked = require_boolean(resolved, lambda column: types[column.name], "constraints")
        if not columns(checked):
            fix = "name columns of the records, as in NOT (marital = 'married' AND age < 15)"
            raise InvalidArgument("constraints", "a condition on columns", show(checked), fix)
        conditions.append(checked)
    cuts = _cuts(conditions, record_columns, names)
    parts = {index: _parts(record_columns[index], cuts.get(index, set())) for index in {*names.values()}}
    return tuple(_rule(group, record_columns, names, parts) for group in _independent_groups(conditions, names, parts))


def _cuts(
    conditions: Sequence[Expression], record_columns: Sequence[RecordColumn], names: Mapping[str, int]
) -> dict[int, set[tuple[Fraction, bool]]]:
    """Return, for each column in bins (by index), the constants at which a condition on it may change.

    Each is a pair of the constant and whether the condition changes just above it (True) or at it (False): ``x < 5``
    changes at 5, ``x <= 5`` just above it. ``names`` has the index of each name's column in ``record_columns``.
    Comparisons with anything but constants are refused. Timestamps are in microseconds (86,400,000,000 in a day).
    """
    cuts: dict[int, set[tuple[Fraction, bool]]] = {}
    for expression in conditions:
        for node in walk(expression):
            if not isinstance(node, Call):
                continue
            for argument in node.args:
                if not isinstance(argument, Column) or record_columns[names[argument.name]].low is None:
                    continue
                index = names[argument.name]
                constants = [_constant(item) for item in node.args if item is not argument]
                if node.op != "is_null" and (node.op not in _CHANGES_AT | _CHANGES_ABOVE or None in constants):
                    raise _not_compared(argument.name, show(node))
                factor = 86_400_000_000 if record_columns[index].type == "timestamp" else 1
                for literal in constants:
                    assert literal is not None
                    if literal.value is None:  # IS DISTINCT FROM NULL
                        continue
                    number = on_scale(literal.value) * factor
                    cuts.setdefault(index, set()).update(
                        (number, above)
                        for above, ops in ((False, _CHANGES_AT), (True, _CHANGES_ABOVE))
                        if node.op in ops
                    )
    return cuts


def _constant(expression: Expression) -> Literal | None:
    """Return the value of an expression without columns; None if it has columns."""
    return None if columns(expression) else Literal(evaluate(expression, {}))


def _not_compared(name: str, got: str) -> InvalidArgument:
    """Return the error for a constraint that compares a column in bins with anything but constants; ``got`` is the
    comparison."""
    return InvalidArgument(
        "constraints",
        f"{name}, which is in bins, compared with constants",
        got,
        f"write for example {name} < 15, or give {name} keys instead of bins",
    )


def _parts(column: RecordColumn, cuts: set[tuple[Fraction, bool]]) -> Parts:
    """Return the parts of a column: its keys, or its bins divided at ``cuts`` (see :func:`_cuts`)."""
    size = column.attribute.sizes[-1]
    if column.low is None or column.high is None:
        return Parts(np.arange(size), np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64), np.ones(size))
    starts = sorted({_first_value_from(number, above, column.whole) for number, above in cuts})
    codes, low, high = [], [], []
    for code, (first, last) in enumerate(zip(column.low.tolist(), column.high.tolist(), strict=True)):
        begins = [first, *(start for start in starts if first < start <= last)]
        for begin, following in itertools.zip_longest(begins, begins[1:]):
            codes.append(code)
            low.append(begin)
            high.append(last if following is None else _value_below(following, column.whole))
    for code in range(len(column.low), size):  # other numbers and NULL
        codes.append(code)
        low.append(0)
        high.append(0)
    kind = column.low.dtype
    lows, highs = np.array(low, dtype=kind), np.array(high, dtype=kind)
    weights = (highs - lows + column.whole).astype(np.float64)
    weights[len(codes) - (size - len(column.low)) :] = 1.0
    return Parts(np.array(codes), lows, highs, weights)


def _first_value_from(number: Fraction, above: bool, whole: bool) -> float:
    """Return the smallest value, whole or a float, that is at least ``number`` or, with ``above``, larger than it."""
    if whole:
        return math.floor(number) + 1 if above else math.ceil(number)
    nearest = float(number)
    if Fraction(nearest) < number or (above and Fraction(nearest) == number):
        return math.nextafter(nearest, math.inf)
    return nearest


def _value_below(value: float, whole: bool) -> float:
    """Return the largest value, whole or a float, below ``value``."""
    return value - 1 if whole else math.nextafter(value, -math.inf)


def _independent_groups(
    conditions: Sequence[Expression], names: Mapping[str, int], parts: Mapping[int, Parts]
) -> list[list[Expression]]:
    """Return the conditions in groups such that conditions of different groups share no column with a divided bin."""
    groups: list[tuple[set[int], list[Expression]]] = []
    for expression in conditions:
        divided = {index for index in _column_indices(expression, names) if parts[index].divided}
        together = [group for group in groups if group[0] & divided]
        groups = [group for group in groups if not group[0] & divided]
        shared = divided.union(*(indices for indices, _ in together))
        groups.append((shared, [*itertools.chain.from_iterable(members for _, members in together), expression]))
    return [members for _, members in groups]


def _column_indices(expression: Expression, names: Mapping[str, int]) -> set[int]:
    """Return the indices of the record columns that an expression names."""
    return {names[column.name] for column in columns(expression)}


def _rule(
    conditions: Sequence[Expression],
    record_columns: Sequence[RecordColumn],
    names: Mapping[str, int],
    parts: Mapping[int, Parts],
) -> RecordRule:
    """Return the rule of all conditions about one set of columns, evaluated on every combination of their parts.

    ``names`` has the index of each name's column in ``record_columns``, and ``parts`` the parts of each column by
    index. A condition that is NULL holds. Rules that no record without NULLs can obey are refused.
    """
    table = tuple(sorted(set().union(*(_column_indices(expression, names) for expression in conditions))))
    shape = [len(parts[index].codes) for index in table]
    shown = " × ".join(record_columns[index].attribute.name for index in table)
    if math.prod(shape) > MAX_COMBINATIONS:
        raise InvalidArgument(
            f"constraints on {shown}",
            f"at most {MAX_COMBINATIONS:,} combinations of values",
            f"{math.prod(shape):,}",
            "use coarser bins, whose edges are the limits in the constraints, or fewer columns in one of them",
        )
    values = [
        [
            record_columns[index].values_at(code, number)
            for code, number in zip(parts[index].codes.tolist(), parts[index].low.tolist(), strict=True)
        ]
        for index in table
    ]
    holds = np.zeros(shape, dtype=np.bool_)
    without_null = False
    for i, combination in enumerate(itertools.product(*values)):
        row = {name: value for levels in combination for name, value in levels.items()}
        holds.flat[i] = all(evaluate(expression, row) is not False for expression in conditions)
        without_null = without_null or (bool(holds.flat[i]) and None not in row.values())
    if not without_null:  # otherwise only records with NULLs could satisfy it
        got = "none" if not holds.any() else "NULLs only"
        fix = "correct the condition: it contradicts another one, or the bounds or keys of its columns"
        raise InvalidArgument(f"constraints on {shown}", "at least one possible record", got, fix)
    return RecordRule(table, tuple(parts[index] for index in table), holds)
