"""The keys of groups: which are public, in which combinations, and which of the others may be shown.

*Keys that are public without being listed* (:class:`PublicFacts`) are every value that an expression can have, from the
question, the card and the public tables alone. These say enough about

* constants, and CASE, IF and COALESCE among them; conditions;
* columns with listed keys, columns of public tables, truth values, and whole numbers and days within narrow bounds;
* parts of dates: months, quarters, days of the week and hours are always the same, and years and the beginnings of
  periods are those within the bounds of the column;
* a column that WHERE compares with constants (``carrier IN ('AA', 'UA')``, ``day >= '2024-01-01'``), computed ones
  too (``day >= DATE_TRUNC('month', DATE '2024-03-15') - INTERVAL 2 MONTH``);
* whatever an operation makes of these: its values are computed for every combination of its arguments;
* whole numbers computed from numbers with bounds (``FLOOR(amount / 10)``), where their range is narrow.

No row of the private table is read, so neighbors have the same keys. A row whose key is not among them is left out, as
it is where keys are listed: one beyond the bounds, one whose date is NULL. NULL is a key where the question itself
makes it one: in a branch of CASE, by a left join, by a division by 0.

*Relations inside of each other* (:class:`RelationRows`). A column of a relation is often one inside it, as it is
or computed from the row it stands in, so an expression can be written on the rows of the relation inside, and further
in. On the way conditions come up that all of these rows meet: of WHERE, ON and QUALIFY. What they say about the values
of an expression, which rows of a public table it can be from, and whether it can be NULL, is public. The way ends at
the rows of a private table, at what is computed from several rows, and where rows of several relations come together.

*Keys that occur together* (:func:`tied_values`). Every row of people that is in a group has its partner in a public
table (or none, where the join keeps such rows), so groups by columns of one public table are the combinations that its
rows have, as far as conditions on the table let them through. Only rows of the public table are read.

*The card of a derived relation* (:func:`card_of_question`) has what is public about its columns: types, bounds and
keys, and bounds of whole numbers from the WHERE of the question, as of a count of a person's rows in ``WHERE k <= 20``.
Aggregates of what has no public bounds, of other counts and sums of a person's rows above all, get ``bounds="auto"``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dither.budget_hooks import observed
from dither.errors import DitherError, InvalidArgument
from dither.exact.search import bisect_integers
from dither.mechanisms import Gaussian, Laplace
from dither.tables.card.model import Card, ColumnCard, Type
from dither.tables.card.values import EXACT_INTEGERS, Value, literal_type
from dither.tables.compile import expressions, relations
from dither.tables.compile.expressions import Lookup
from dither.tables.compile.statements import Measure
from dither.tables.query.evaluate import evaluate, folded
from dither.tables.query.operations.dates import NAMES
from dither.tables.query.relations import base_of, extent_of, relation_card
from dither.tables.query.tree import (
    Aggregate,
    Call,
    CappedRows,
    Column,
    Expression,
    Group,
    Join,
    Literal,
    PerPerson,
    PersonJoin,
    Projection,
    PublicMembership,
    Query,
    Source,
    Windowed,
    columns,
    conjuncts,
    replaced,
    walk,
)

MOST_VALUES = 10_000
"""How many keys of one column may be derived."""
MOST_INTEGERS = 1_000
"""How many whole numbers may lie between bounds for them to be keys: wider bounds say little about what occurs."""
_MOST_DAYS = 40_000
_MOST_DAYS_TRIED = 4_000
"""How many days a condition is computed for."""
_CYCLES = ("quarter", "month", "week", "day", "isodow", "dow", "doy")
"""Parts and names of a date that return: all of their values occur in 2020, a leap year of 53 weeks."""
_PARTS = ("date_part", "date_name")
_TIMES = {"hour": timedelta(hours=1), "minute": timedelta(minutes=1), "second": timedelta(seconds=1)}
_FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

Values = tuple[Value, ...]
PublicKeys = tuple[Values | None, ...]
Bounds = tuple[Value, Value]
"""The least and the largest value, both included; None where nothing is known."""


@dataclass(frozen=True)
class PublicFacts:
    """What is public about the rows of a question: its columns (looked up by ``find``) and the conditions that all rows
    satisfy. It derives the values that an expression can have."""

    find: Lookup
    conditions: tuple[Expression, ...] = ()

    @classmethod
    def of(cls, find: Lookup, where: Expression | None) -> PublicFacts:
        """Return the facts for rows that satisfy a condition (None: all rows)."""
        return cls(find, () if where is None else tuple(conjuncts(folded(where))))

    def values(self, expression: Expression) -> Values | None:
        """Return every value that the expression can have, each once; None where that is not public."""
        expression = folded(expression)
        values = self._values(expression)
        if not values or len(values) > MOST_VALUES:
            return None
        return self.meeting(expression, values) or values

    def meeting(self, expression: Expression, values: Values) -> Values:
        """Return those values of an expression that satisfy the conditions on it alone."""
        about = [condition for condition in self.conditions if _is_about(condition, expression)]
        return tuple(
            value for value in values if all(may_hold(replaced(item, expression, Literal(value))) for item in about)
        )

    def listed(self, expression: Expression) -> Values | None:
        """Return the values that a condition lists for an expression, as in ``x IN (1, 2)``; None where none does."""
        kind = expressions.compile(expression, self.find).type
        types = {"integer", "number"} if kind == "number" else {kind}
        for condition in self.conditions:
            if isinstance(condition, Call) and condition.op in ("=", "in"):
                left, *right = condition.args
                if condition.op == "=" and right == [expression]:
                    left, right = expression, [left]
                if left == expression and all(isinstance(item, Literal) for item in right):
                    values = [item.value for item in right if isinstance(item, Literal) and item.value is not None]
                    if values and {literal_type(value) for value in values} <= types:
                        return _distinct(values)
        return None

    def _values(self, expression: Expression) -> Values | None:
        """Return the possible values of an expression by the rule for its operation, before the conditions exclude any;
        None where they are unknown or too many."""
        if isinstance(expression, Literal):
            return (expression.value,)
        values = self.listed(expression)
        if values is not None:
            return values
        if isinstance(expression, Column):
            return self._of_column(expression)
        typed = expressions.compile(expression, self.narrowed)
        if typed.type == "boolean":
            return (False, True)
        rule = _RULES.get(expression.op, PublicFacts._of_arguments)
        values = rule(self, expression)
        if values is None and typed.range is not None:
            known = typed.range
            if known.quantum >= 1 and known.size < EXACT_INTEGERS and known.high - known.low < MOST_INTEGERS:
                return tuple(range(math.ceil(known.low), math.floor(known.high) + 1))
        return values

    def _of_column(self, column: Column) -> Values | None:
        """Return the values of a column: its keys, or all between its bounds; None where they are too many or
        unknown."""
        card = self.find(column)[1]
        if card.keys is not None:
            return _distinct(card.keys)
        if card.type == "boolean":
            return (False, True)
        low, high = self.bounds(column)
        if card.type == "integer" and isinstance(low, int) and isinstance(high, int):
            return tuple(range(low, high + 1)) if high - low < MOST_INTEGERS else None
        if card.type == "date" and isinstance(low, date) and isinstance(high, date):
            return tuple(_days(low, high)) if (high - low).days < MOST_INTEGERS else None
        return None

    def bounds(self, column: Column) -> Bounds:
        """Return the least and the largest value of a column of whole numbers or dates, by its card and by the
        conditions."""
        card = self.find(column)[1]
        low: Value
        high: Value
        if card.type == "integer":
            known = extent_of(card)
            ends = card.bounds if known is None else (known.low, known.high)
            low, high = (None, None) if ends is None else (math.ceil(ends[0]), math.floor(ends[1]))
        elif card.type in ("date", "timestamp"):
            low, high = (None, None) if card.period is None else card.period
        else:
            return None, None
        as_other = Call("cast", (Literal("timestamp" if card.type == "date" else "date"), column))
        for sign, value in (*self._comparisons(column), *self._comparisons(as_other)):
            if sign in (">", ">=", "="):
                low = _narrower(max, low, _limit(sign, value, card.type, lower=True))
            if sign in ("<", "<=", "="):
                high = _narrower(min, high, _limit(sign, value, card.type, lower=False))
        return low, high

    def narrowed(self, column: Column) -> tuple[Any, ColumnCard]:
        """Return a column's SQL and card, with bounds of numbers narrowed by the conditions."""
        node, card = self.find(column)
        if card.type != "number" or card.bounds is None:
            return node, card
        low, high = card.bounds
        for sign, value in self._comparisons(column):
            if isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high:
                low = value if sign in (">", ">=", "=") else low
                high = value if sign in ("<", "<=", "=") else high
        return node, replace(card, bounds=(low, high)) if low < high else card

    def _comparisons(self, value: Expression) -> Iterable[tuple[str, Value]]:
        """Yield the comparisons of an expression with constants among the conditions, as (operator, constant)."""
        for condition in self.conditions:
            if not isinstance(condition, Call):
                continue
            if condition.op in _FLIPPED:
                left, right = condition.args
                if left == value and isinstance(right, Literal):
                    yield condition.op, right.value
                elif right == value and isinstance(left, Literal):
                    yield _FLIPPED[condition.op], left.value
            elif condition.op == "between" and condition.args[0] == value:
                for sign, end in zip((">=", "<="), condition.args[1:], strict=True):
                    if isinstance(end, Literal):
                        yield sign, end.value

    # -- rules, by the name of the operation --------------------------------------------------------------------------

    def _of_arguments(self, call: Call) -> Values | None:
        """Return the results of an operation for every combination of its arguments' values."""
        arguments = [self.values(item) for item in call.args]
        known = [values for values in arguments if values is not None]
        if len(known) < len(arguments) or math.prod(map(len, known)) > MOST_VALUES:
            return None
        try:
            results = [evaluate(Call(call.op, tuple(map(Literal, line))), {}) for line in itertools.product(*known)]
        except DitherError:
            return None
        if any(isinstance(value, (int, float)) and abs(value) > EXACT_INTEGERS for value in results):
            return None  # such whole numbers are not exact where they are computed as doubles
        return _in_order(_distinct(results))

    def _of_any(self, items: Iterable[Expression]) -> Values | None:
        """Return the union of the values of several expressions; None if those of one are unknown."""
        result: list[Value] = []
        for item in items:
            values = self.values(item)
            if values is None:
                return None
            result += values
        return _distinct(result)

    def _of_case(self, call: Call) -> Values | None:
        """Return the values of all branches of CASE."""
        return self._of_any([*call.args[1:-1:2], call.args[-1]])

    def _of_if(self, call: Call) -> Values | None:
        """Return the values of both branches of IF; without the second, NULL."""
        return self._of_any([*call.args[1:], *([Literal(None)] if len(call.args) == 2 else [])])

    def _of_coalesce(self, call: Call) -> Values | None:
        """Return the values of all arguments, without NULL if the last is a constant."""
        values = self._of_any(call.args)
        last = call.args[-1]
        if values is None or not (isinstance(last, Literal) and last.value is not None):
            return values
        return tuple(value for value in values if value is not None)

    def _of_nullif(self, call: Call) -> Values | None:
        """Return NULL, and the values that do not equal a constant; any other second argument may be NULL itself."""
        first, other = call.args
        values = self.values(first)
        if values is None:
            return None
        if isinstance(other, Literal):
            values = tuple(evaluate(Call("nullif", (Literal(value), other)), {}) for value in values)
        return (*_distinct(value for value in values if value is not None), None)

    def _of_round(self, call: Call) -> Values | None:
        """Return the values rounded to digits before the point: multiples of a power of ten, as they are computed."""
        value, digits = call.args
        known = self._of_arguments(call)
        places = digits.value if isinstance(digits, Literal) else None
        if known is not None or not isinstance(places, int) or places >= 0:
            return known
        scale = Literal(10**-places)
        return self.values(Call("*", (Call(call.op, (Call("/", (value, scale)), Literal(0))), scale)))

    def _of_extreme(self, call: Call) -> Values | None:
        """Return the values that no constant excludes: GREATEST and LEAST leave NULLs out, and which arguments
        are NULL is not public."""
        values = self._of_any(call.args)
        if values is None:
            return None
        fixed = [item.value for item in call.args if isinstance(item, Literal) and item.value is not None]
        known: list[Any] = [value for value in values if value is not None]
        least = call.op == "least"
        try:
            for end in cast(list[Any], fixed):
                known = [value for value in known if (value <= end if least else value >= end)]
        except TypeError:
            return None
        return _in_order(tuple(known))

    def _of_bin(self, call: Call) -> Values | None:
        """Return the numbers of the bins."""
        return tuple(range(len(call.args) - 2))

    def _of_part(self, call: Call) -> Values | None:
        """Return the values of a part of a date, or the beginnings of periods."""
        *options, value = call.args
        kind = expressions.compile(value, self.find).type
        if kind not in ("date", "timestamp") or not all(isinstance(item, Literal) for item in options):
            return self._of_arguments(call)
        names = tuple(item.value for item in options if isinstance(item, Literal))
        period = self._period(value)
        cyclic = call.op in _PARTS and (names[0] in _CYCLES or names[0] in _TIMES)
        if not period and not cyclic:
            return self._of_arguments(call)
        values = _parts(call.op, names, kind, period)
        days = self._days_met(value) if kind == "date" and isinstance(value, Column) else None
        if not values or not days:
            return values
        met = {evaluate(Call(call.op, (*options, Literal(day))), {}) for day in days}
        return tuple(item for item in values if item in met) or values

    def _days_met(self, column: Column) -> Values | None:
        """Return the days within a column's bounds that satisfy the conditions on it; None where all conditions are
        comparisons with constants, which the bounds include already, or where there are too many days."""
        about = (item for item in self.conditions if _is_about(item, column))
        others = [item for item in about if not any(PublicFacts(self.find, (item,))._comparisons(column))]
        period = self._period(column)
        if period is None or not others or (period[1] - period[0]).days >= _MOST_DAYS_TRIED:
            return None
        return self.meeting(column, tuple(_days(*period)))

    def _of_cast(self, call: Call) -> Values | None:
        """Return the days of timestamps."""
        period = self._period(call)
        if expressions.compile(call, self.find).type != "date" or period is None:
            return self._of_arguments(call)
        low, high = period
        return tuple(_days(low, high)) if (high - low).days < MOST_INTEGERS else None

    def _period(self, expression: Expression) -> tuple[date, date] | None:
        """Return the first and the last date or timestamp of a column, or of a column cast to the other type."""
        if isinstance(expression, Column):
            low, high = self.bounds(expression)
            return (low, high) if isinstance(low, date) and isinstance(high, date) else None
        if not isinstance(expression, Call) or expression.op != "cast":
            return None
        inside = next((item for item in expression.args if not isinstance(item, Literal)), None)
        period = None if inside is None else self._period(inside)
        if period is None or expressions.compile(expression, self.find).type != "date":
            return period
        low, high = map(_as_moment, period)
        return low.date(), high.date()


Rule = Callable[[PublicFacts, Call], Values | None]
_RULES: dict[str, Rule] = {
    "case": PublicFacts._of_case,
    "if": PublicFacts._of_if,
    "coalesce": PublicFacts._of_coalesce,
    "nullif": PublicFacts._of_nullif,
    "round": PublicFacts._of_round,
    "trunc": PublicFacts._of_round,
    "bin": PublicFacts._of_bin,
    "greatest": PublicFacts._of_extreme,
    "least": PublicFacts._of_extreme,
    "cast": PublicFacts._of_cast,
    "date_part": PublicFacts._of_part,
    "date_name": PublicFacts._of_part,
    "date_trunc": PublicFacts._of_part,
}
"""What is known of the values of an operation; of all others they are computed from the values of their arguments."""


@lru_cache(maxsize=64)
def _parts(op: str, options: Values, kind: Type, period: tuple[date, date] | None) -> Values | None:
    """Return the results of an operation (``date_part`` or ``date_trunc``) on all dates or timestamps of a period; None
    where they are too many.

    A part that repeats, such as the month, has all its values in a year, so that a longer or unknown period (None) is
    replaced by the year 2020.
    """
    moments: Iterable[date]
    (name, *_) = options
    if op == "date_part" and isinstance(name, str) and name in _TIMES:
        start = datetime(2020, 1, 1)
        moments = [start + _TIMES[name] * i for i in range(24 if name == "hour" else 60)]
    else:
        if op in _PARTS and name in _CYCLES and (period is None or period[1] - period[0] >= timedelta(days=366)):
            period = date(2020, 1, 1), date(2020, 12, 31)
        assert period is not None
        step = timedelta(hours=1) if name == "hour" else timedelta(days=1)
        first, last = map(_as_moment, period)
        if (last - first) / step >= _MOST_DAYS:
            return None
        first = first.replace(minute=0, second=0, microsecond=0)
        if step == timedelta(days=1):
            first = first.replace(hour=0)
        count = max(0, (last - first) // step + 1)
        moments = [first + step * i for i in range(count)]
    if kind == "date":
        moments = [moment.date() for moment in moments if isinstance(moment, datetime)]
    results = _distinct(evaluate(Call(op, (*map(Literal, options), Literal(moment))), {}) for moment in moments)
    if op == "date_name":
        return tuple(value for value in NAMES[str(name)] if value in results)
    return _in_order(results) if len(results) <= MOST_VALUES else None


def _is_about(condition: Expression, expression: Expression) -> bool:
    """Return whether a condition depends on this expression and no column outside of it."""
    return not any(isinstance(node, Column) for node in walk(replaced(condition, expression, Literal(None))))


def _as_moment(value: date) -> datetime:
    """Return a date as the start of its day; a datetime unchanged."""
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


def _narrower(choose: Callable[..., Any], one: Value, other: Value) -> Value:
    """Return the narrower of two limits by ``choose`` (min or max); None is no limit."""
    result: Value = other if one is None else one if other is None else choose(one, other)
    return result


def _days(low: date, high: date) -> Iterable[date]:
    """Return every day from the first to the last."""
    return (low + timedelta(days=i) for i in range((high - low).days + 1))


def _limit(sign: str, value: Value, kind: Type, lower: bool) -> Value:
    """Return the smallest (``lower``) or largest value of a type that satisfies a comparison with a constant; None if
    there is no such limit. Dates and timestamps are compared with a date as the start of its day."""
    outward = {">": 1, "<": -1}.get(sign, 0)
    try:
        if kind == "integer" and isinstance(value, (int, float)) and not isinstance(value, bool):
            if value == int(value):
                return int(value) + outward
            return math.ceil(value) if lower else math.floor(value)
        if kind == "date" and isinstance(value, datetime):
            if value.time() != time():
                return value.date() + timedelta(days=lower)
            value = value.date()
        if kind == "date" and isinstance(value, date):
            return value + timedelta(days=outward)
        if kind == "timestamp" and isinstance(value, datetime):
            return value + timedelta(microseconds=outward)
        if kind == "timestamp" and isinstance(value, date):
            first = datetime.combine(value, time()) + timedelta(days=outward)
            return first if lower else first + timedelta(days=1) - timedelta(microseconds=1)
    except OverflowError:  # beyond the calendar, or infinite
        return None
    return None


def may_hold(condition: Expression, row: Mapping[str, Value] | None = None) -> bool:
    """Return whether a condition holds on a row, or cannot be computed here."""
    try:
        return evaluate(condition, row or {}) is True
    except DitherError:
        return True


def _distinct(values: Iterable[Value]) -> Values:
    """Return the values, each once, in their order."""
    return tuple(dict.fromkeys(values))


def _in_order(values: Values) -> Values:
    """Return values in rising order, NULL last; as they are where they cannot be compared."""
    try:
        known = sorted(cast(Iterable[Any], (value for value in values if value is not None)))
    except TypeError:
        return values
    return (*known, *(value for value in values if value is None))


_Move = Callable[[Column], Expression | None]
"""What a column of a relation is in the one inside of it; None where it is not there."""


@dataclass(frozen=True)
class RelationRows:
    """The rows of a relation that meet conditions, with public tables joined to them. ``path`` says how it is reached
    from the relation that is asked of."""

    source: Source | None
    conditions: tuple[Expression, ...] = ()
    joins: tuple[Join, ...] = ()
    path: tuple[int, ...] = ()

    @classmethod
    def asked(cls, query: Query) -> RelationRows:
        """Return the rows that a question is about."""
        return cls(query.source, _conditions_of(query.where), tuple(query.joins))

    def levels(self, value: Expression) -> Iterator[tuple[RelationRows, Expression]]:
        """Yield the expression on these rows, then rewritten for each nested relation that it can be computed in."""
        step: tuple[RelationRows, Expression] | None = self, folded(value)
        while step is not None:
            yield step
            rows, item = step
            step = rows.inside(item)

    def inside(self, value: Expression) -> tuple[RelationRows, Expression] | None:
        """Return the nested relation's rows with the expression rewritten for them; None if it is not from there."""
        for place, (rows, move) in enumerate(self._relations()):
            moved = _moved(value, move)
            if moved is not None:
                kept = (_moved(condition, move) for condition in self.conditions)
                conditions = (*rows.conditions, *(item for item in kept if item is not None))
                return RelationRows(rows.source, conditions, rows.joins, (*self.path, place)), folded(moved)
        return None

    def _relations(self) -> Iterator[tuple[RelationRows, _Move]]:
        """Yield the nested relations, each with a function that rewrites columns for it."""
        source = self.source
        if isinstance(source, (Projection, PerPerson)):
            named: dict[str, Expression | None] = {}
            if isinstance(source, Projection):
                named |= source.columns
            else:
                named |= {**source.groups, **dict.fromkeys(source.aggregates)}
            yield RelationRows(source.source, _conditions_of(source.where), source.joins), _renamed(named)
        elif isinstance(source, Windowed):
            yield RelationRows(source.source), _renamed(dict.fromkeys(source.windows))
        elif isinstance(source, (PublicMembership, CappedRows)):
            yield RelationRows(source.source), _renamed({})
        elif isinstance(source, PersonJoin):
            yield from _sides(source)


def _sides(source: PersonJoin) -> Iterator[tuple[RelationRows, _Move]]:
    """Yield the sides of a join whose columns keep their values; columns of other sides may become NULL."""
    people = [name for name in (source.left_person, source.right_person) if name is not None]
    left = _renamed(dict.fromkeys([*source.names, *people]))
    on = _conditions_of(source.on) if source.kind in ("inner", "semi") else ()
    if source.kind not in ("right", "full"):
        yield RelationRows(source.left, _all_moved(on, left)), left
    if source.kind in ("inner", "right"):

        def right(column: Column) -> Expression | None:
            """Return a column of the join as the column of its right side; None if it is not from there."""
            return Column(source.names[column.name]) if column.name in source.names else None

        yield RelationRows(source.right, _all_moved(on, right)), right


def _renamed(named: dict[str, Expression | None]) -> _Move:
    """Return a function that maps named columns to their expressions (None: no such), and others to themselves."""
    return lambda column: named.get(column.name, column)


def _conditions_of(condition: Expression | None) -> tuple[Expression, ...]:
    """Return the conditions that AND joins; none for no condition."""
    return () if condition is None else tuple(conjuncts(folded(condition)))


def _all_moved(conditions: tuple[Expression, ...], move: _Move) -> tuple[Expression, ...]:
    """Return those conditions that can be written on the columns of the relation inside."""
    return tuple(item for item in (_moved(condition, move) for condition in conditions) if item is not None)


def _moved(value: Expression, move: _Move) -> Expression | None:
    """Return an expression rewritten for the nested relation by ``move``; None where it uses columns that are not from
    there, such as those of public tables joined outside."""
    if isinstance(value, Column):
        return None if value.table is not None else move(value)
    if isinstance(value, Call):
        args = [_moved(item, move) for item in value.args]
        return None if None in args else Call(value.op, tuple(item for item in args if item is not None))
    return value


MOST_ROWS = 100_000
"""How many different rows of a public table may be read to know which keys occur together."""


@dataclass(frozen=True)
class TiedValues:
    """Columns of GROUP BY, by their indices ``places``, and the combinations of ``values`` in which they occur."""

    places: tuple[int, ...]
    values: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class _Origin:
    """A grouping expression as an expression on a public table: the path of the relation that joins the table, the
    join, and the expression."""

    path: tuple[int, ...]
    join: Join
    value: Expression
    conditions: tuple[Expression, ...]
    """The conditions on columns of the table alone."""


def tied_values(query: Query, card: Card) -> list[TiedValues]:
    """Return groups that come from the same public table with known rows, with their combinations of values there."""
    members_of: dict[tuple[tuple[int, ...], Join], list[tuple[int, _Origin]]] = {}
    for place, group in enumerate(query.groups):
        origin = _origin(group.value, query, card)
        if origin is not None:
            members_of.setdefault((origin.path, origin.join), []).append((place, origin))
    result = []
    for (_, join), members in members_of.items():
        rows = list(card.public[join.table].rows or ())
        if join.left:
            rows.append(dict.fromkeys(rows[0]))
        conditions = members[0][1].conditions
        kept = [row for row in rows if all(may_hold(condition, row) for condition in conditions)]
        values = dict.fromkeys(tuple(evaluate(origin.value, row) for _, origin in members) for row in kept)
        if values:
            result.append(TiedValues(tuple(place for place, _ in members), tuple(values)))
    return result


def _origin(value: Expression, query: Query, card: Card) -> _Origin | None:
    """Return an expression rewritten on a joined public table; None if it depends on other columns."""
    for rows, item in RelationRows.asked(query).levels(value):
        for join in rows.joins:
            there = _of_table(item, join, card)
            if there is not None:
                conditions = [_of_table(condition, join, card) for condition in rows.conditions]
                return _Origin(rows.path, join, there, tuple(known for known in conditions if known is not None))
    return None


def _of_table(item: Expression, join: Join, card: Card) -> Expression | None:
    """Return an expression on a joined public table's known columns, its join key included; None for others."""
    result = item if join.left else replaced(item, join.own, Column(join.other, join.table))
    used, rows = columns(result), card.public[join.table].rows
    known = bool(used) and bool(rows) and all(column.table == join.table for column in used)
    return result if known and rows and {column.name for column in used} <= set(rows[0]) else None


_BOUNDED = ("sum", "mean", "var", "std", "min", "max", "quantile")


def card_of_question(query: Query, card: Card) -> Card:
    """Return the card of the relation in FROM, with bounds of its columns that follow from WHERE."""
    result = relation_card(card, query.source, _described, query.where)
    if query.source is None or query.where is None:
        return result
    find = expressions.lookup_of(result, query.joins)
    columns = {name: _compared(Column(name), column, find, query.where) for name, column in result.columns.items()}
    return replace(result, columns=columns)


def narrowed_keys(query: Query, card: Card, keys: PublicKeys) -> PublicKeys:
    """Return the keys without those that conditions of nested relations (WHERE, QUALIFY, ON) exclude. Keys that the
    question lists, and NULL, stay."""
    if query.source is None:
        return keys
    result, lookups = list(keys), dict[tuple[int, ...], Lookup]()
    for place, group in enumerate(query.groups):
        if result[place] is None or group.keys is not None:
            continue
        for rows, item in itertools.islice(RelationRows.asked(query).levels(group.value), 1, None):
            if rows.path not in lookups:
                inner = card_of_question(Query({}, source=rows.source), base_of(card))
                lookups[rows.path] = expressions.lookup_of(inner, rows.joins)
            facts = PublicFacts(lookups[rows.path], rows.conditions)
            possible = facts.values(item)
            listed = result[place] or ()
            kept = listed if possible is None else tuple(key for key in listed if key is None or key in possible)
            result[place] = facts.meeting(item, kept) or kept or listed
    return tuple(result)


def _described(expression: Expression, card: Card, where: Expression | None, joins: tuple[Join, ...]) -> ColumnCard:
    """Return what is public about a column of a relation, given by its expression on the rows inside: as
    :func:`~dither.tables.compile.relations.describe`, with public keys and bounds of dates narrowed by the condition
    ``where`` of these rows."""
    column = relations.describe(expression, card, where, joins)
    facts = PublicFacts.of(expressions.lookup_of(card, joins), where)
    if not isinstance(expression, Column):
        return column if column.keys is not None else replace(column, keys=facts.values(expression))
    listed = facts.listed(expression) if where is not None else None
    if listed is not None:
        column = replace(column, keys=listed)
    if column.type in ("date", "timestamp"):
        first, last = facts.bounds(expression)
        if isinstance(first, date) and isinstance(last, date) and first <= last:
            column = replace(column, period=(first, last))
    return column


def _compared(expression: Column, column: ColumnCard, find: Lookup, where: Expression) -> ColumnCard:
    """Return the card of an integer column, with bounds that follow from a condition if it has none; other columns
    unchanged."""
    if extent_of(column) is None or column.type != "integer":
        return column
    low, high = PublicFacts.of(find, where).bounds(expression)
    if (low, high) != PublicFacts.of(expressions.wider(find), where).bounds(expression):
        return column
    assert isinstance(low, int)
    assert isinstance(high, int)
    return replace(column, bounds=(low, max(high, low + 1)))


def with_unstated_bounds(query: Query, card: Card) -> Query:
    """Return the question with bounds="auto" for aggregates without public bounds: of columns of a relation, and of
    quotients by what may be near 0, unless WHERE keeps the divisor away from 0. Numbers that are read from text are
    refused later."""
    find = expressions.lookup_of(card, query.joins)
    aggregates = {
        name: replace(item, bounds=_bounds_by_conditions(item, find, query.where) or "auto")
        for name, item in query.aggregates.items()
        if (query.source is not None or not isinstance(item.value, Column)) and _is_unbounded(item, find)
    }
    return replace(query, aggregates={**query.aggregates, **aggregates})


def _is_unbounded(aggregate: Aggregate, find: Lookup) -> bool:
    """Return whether an aggregate needs bounds that neither the question nor the card state."""
    value = aggregate.value
    if aggregate.kind not in _BOUNDED or aggregate.bounds is not None or value is None:
        return False
    try:
        return expressions.public_interval(value, find) is None and not expressions.reads_text(value, find)
    except InvalidArgument:  # arithmetic with a column of a private table that has no bounds
        return False


def _bounds_by_conditions(aggregate: Aggregate, find: Lookup, where: Expression | None) -> tuple[float, float] | None:
    """Return the bounds of a computed value that follow from the conditions; None if none follow."""
    value = aggregate.value
    if value is None or isinstance(value, Column):
        return None
    known = expressions.public_interval(value, PublicFacts.of(find, where).narrowed)
    return known if known is not None and known[0] < known[1] else None


MOST_COMBINATIONS = 1_000_000

Noise = Laplace | Gaussian
Key = tuple[Value, ...]
"""The public keys of each column of GROUP BY; None where they are not public."""
Shown = tuple[list[Key], dict[Measure, NDArray[Any]]]


@dataclass(frozen=True)
class Tie:
    """Columns of GROUP BY whose keys do not occur in every combination: those that do, by the numbers of the keys."""

    places: tuple[int, ...]
    numbers: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class KeySelection:
    """Which keys that are not public are shown: those whose noisy number of people is at least ``threshold``."""

    threshold: int
    delta: Fraction
    """The probability with which a key that one person alone has is shown, over all of their groups."""
    groups: int = 1
    """How many of them one person can be in."""

    @observed
    def release(self, lines: Mapping[Key, tuple[int, ...]], noises: Mapping[Measure, Noise]) -> Shown:
        """Return the keys with enough people by the noisy count, and their noisy measures; ``lines`` are exact."""
        # in the order of their text, which says nothing of who has them
        keys = sorted(lines, key=lambda key: tuple((part is None, str(part)) for part in key))
        noisy = noisy_measures([lines[key] for key in keys], noises)
        is_shown = noisy[Measure("people")] >= self.threshold
        shown = [key for key, keep in zip(keys, is_shown.tolist(), strict=True) if keep]
        return shown, {measure: values[is_shown] for measure, values in noisy.items()}


def vectors(measures: Iterable[Measure]) -> list[list[int]]:
    """Return, for each measurement, the indices of its measures, which are released together as one vector."""
    places: dict[object, list[int]] = {}
    for place, measure in enumerate(measures):
        places.setdefault(measure.measurement, []).append(place)
    return list(places.values())


def noisy_measures(lines: Sequence[tuple[int, ...]], noises: Mapping[Measure, Noise]) -> dict[Measure, NDArray[Any]]:
    """Return the noisy measures of groups, whose exact numbers are ``lines``. Measures of one measurement are released
    as one vector, whose norm over all groups the sensitivity bounds."""
    whole = np.array(lines, dtype=np.int64).reshape(len(lines), len(noises))
    measures, released = list(noises), whole.copy()
    for vector in vectors(measures) if lines else ():
        noisy = noises[measures[vector[0]]].release(whole[:, vector].ravel())
        released[:, vector] = np.asarray(noisy).reshape(len(lines), len(vector))
    return {measure: released[:, place] for place, measure in enumerate(measures)}


def public_keys(
    groups: Sequence[Group],
    where: Expression | None,
    find: Lookup,
    *,
    listed_only: bool = False,
    tied: Sequence[TiedValues] = (),
) -> PublicKeys:
    """Return the public keys of each column of GROUP BY: those of the question, of the column's card, or those that
    follow from what is public; None where they are not public.

    Of keys that the question does not list, only those are left that WHERE lets through, and of columns of a public
    table those that are in rows that it lets through: ``tied``. Where derived keys have more combinations than can be
    shown, the longest lists are not used. With ``listed_only`` keys are not derived, but for booleans and bins.
    """
    keys: list[tuple[Value, ...] | None] = []
    derived: set[int] = set()
    for i, group in enumerate(groups):
        if group.keys is not None:
            keys.append(_of_type(group.keys, group.value, find))
            continue
        card = find(group.value)[1] if isinstance(group.value, Column) else None
        if card is not None and card.keys is not None:
            listed = _of_type(card.keys, group.value, find)
            if where is None:
                keys.append(listed)
                continue
        elif listed_only and not _has_few_keys(group.value, find):
            keys.append(None)
            continue
        else:
            derived.add(i)
        values = PublicFacts.of(find, where).values(group.value)
        keys.append(None if values == (None,) else values)
    for item in tied:
        for place, occurring in zip(item.places, map(set, zip(*item.values, strict=True)), strict=True):
            listed_here = keys[place]
            if listed_here is not None and groups[place].keys is None:
                keys[place] = tuple(key for key in listed_here if key in occurring) or listed_here
    while derived and number_of_groups(keys, ties_of(groups, keys, tied)) > MOST_COMBINATIONS:
        longest = max(derived, key=lambda i: len(keys[i] or ()))
        derived.discard(longest)
        keys[longest] = None
    return tuple(keys)


def ties_of(groups: Sequence[Group], keys: Sequence[Values | None], tied: Sequence[TiedValues]) -> tuple[Tie, ...]:
    """Return the combinations of public keys that occur, for columns from one public table. Columns whose keys the
    question lists are left out: they are shown in all combinations."""
    result = []
    for item in tied:
        free = [i for i, place in enumerate(item.places) if keys[place] is not None and groups[place].keys is None]
        places = tuple(item.places[i] for i in free)
        known = [{key: number for number, key in enumerate(keys[place] or ())} for place in places]
        lines = [[number_of.get(line[i]) for i, number_of in zip(free, known, strict=True)] for line in item.values]
        numbers = {tuple(n for n in line if n is not None) for line in lines if None not in line}
        if 0 < len(numbers) < math.prod(map(len, known)):
            result.append(Tie(places, tuple(sorted(numbers))))
    return tuple(result)


def number_of_groups(keys: Sequence[Values | None], ties: Sequence[Tie] = (), private: int = 1) -> int:
    """Return the number of groups, counting ``private`` keys for each column without public keys."""
    places = {place for tie in ties for place in tie.places}
    free = [private if listed is None else len(listed) for i, listed in enumerate(keys) if i not in places]
    return math.prod([*free, *(len(tie.numbers) for tie in ties)])


def _has_few_keys(value: Expression, find: Lookup) -> bool:
    """Return whether an expression has few values whatever the card says: a truth value or a bin."""
    is_bin = isinstance(value, Call) and value.op == "bin"
    return is_bin or expressions.compile(value, find).type == "boolean"


def _of_type(keys: tuple[Value, ...], value: Expression, find: Lookup) -> tuple[Value, ...]:
    """Return public keys, each once; refuse keys of a type other than that of the grouped expression."""
    kind = expressions.compile(value, find).type
    if not any(key is not None for key in keys) or {literal_type(key) for key in keys} - {kind, None}:
        raise InvalidArgument("keys", f"keys of type {kind}", "others, or none", "list values of the column")
    return tuple(dict.fromkeys(keys))


def mode_keys(value: Expression, where: Expression | None, find: Lookup) -> tuple[Value, ...] | None:
    """Return the public keys that MODE chooses among where the question lists none; NULL is no value."""
    (keys,) = public_keys([Group("", value)], where, find)
    return None if keys is None else tuple(key for key in keys if key is not None)


def bin_labels(groups: Sequence[Group]) -> dict[str, Expression]:
    """Return the labels of groups that are bins: their edges, as an expression of the bin's number. NULL stays NULL."""
    result: dict[str, Expression] = {}
    for group in groups:
        if isinstance(group.value, Call) and group.value.op == "bin":
            edges = [f"{item.value:,.15g}" for item in group.value.args[1:] if isinstance(item, Literal)]
            last = len(edges) - 2
            arms: list[Expression] = []
            for i, (low, high) in enumerate(itertools.pairwise(edges)):
                label = f"[{low}, {high}{']' if i == last else ')'}"
                arms += [Call("=", (Column(group.name), Literal(i))), Literal(label)]
            result[group.name] = Call("case", (*arms, Literal(None)))
    return result


def every_group(keys: PublicKeys, ties: Sequence[Tie] = ()) -> list[Key] | None:
    """Return every combination of public keys that there is; None where some keys are not public.

    >>> every_group((("north", "south"), (False, True)))
    [('north', False), ('north', True), ('south', False), ('south', True)]
    >>> every_group((("north", "south"), (1, 2), ("n", "s")), [Tie((0, 2), ((0, 0), (1, 1)))])
    [('north', 1, 'n'), ('north', 2, 'n'), ('south', 1, 's'), ('south', 2, 's')]
    """
    listed = [values for values in keys if values is not None]
    if len(listed) < len(keys):
        return None
    size = number_of_groups(keys, ties)
    if size > MOST_COMBINATIONS:
        raise InvalidArgument(
            "groups", f"at most {MOST_COMBINATIONS} combinations of public keys", f"{size}", "state fewer keys"
        )
    if not ties:
        return list(itertools.product(*listed))
    return [tuple(values[i] for values, i in zip(listed, line, strict=True)) for line in _numbers(keys, ties)]


def group_numbers(keys: PublicKeys, ties: Sequence[Tie] = ()) -> list[Key] | None:
    """Return the groups by the numbers of their keys, in the order of :func:`every_group`."""
    return None if any(listed is None for listed in keys) else list(_numbers(keys, ties))


def _numbers(keys: PublicKeys, ties: Sequence[Tie]) -> list[tuple[int, ...]]:
    """Return every combination of the numbers of public keys that occurs, in rising order."""
    tied = {place for tie in ties for place in tie.places}
    rest = [(i, len(listed)) for i, listed in enumerate(keys) if listed is not None and i not in tied]
    parts: list[Iterable[tuple[int, ...]]] = [tie.numbers for tie in ties]
    parts += [[(number,) for number in range(size)] for _, size in rest]
    places = [place for tie in ties for place in tie.places] + [place for place, _ in rest]
    order = sorted(range(len(places)), key=places.__getitem__)
    lines = (tuple(itertools.chain.from_iterable(line)) for line in itertools.product(*parts))
    return sorted(tuple(line[i] for i in order) for line in lines)


def threshold(noise: Noise, delta: Fraction, groups: int, normal: bool) -> KeySelection:
    """Return the smallest threshold that a noisy count of one person reaches with probability at most delta / groups.

    ``groups`` is the largest number of groups of one person. With ``normal`` noise, which spends half of the delta,
    the other half is used. Rounding of the released number to an integer is included.
    """
    delta_of_keys = delta / 2 if normal else delta
    share = delta_of_keys / groups
    bits = 64 + (1 / share).__ceil__().bit_length()
    low, high = 1, 2
    while noise.integer_tail(1, high, bits) > share:
        low, high = high, 2 * high
    high = bisect_integers(lambda k: noise.integer_tail(1, k, bits) <= share, low, high).holds
    return KeySelection(high, delta_of_keys, groups)
