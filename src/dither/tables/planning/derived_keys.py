"""Keys that are public although nobody listed them: every value that an expression can have, from public facts alone.

The facts are the question, the card, and the public tables. They say enough about

* constants, and CASE, IF and COALESCE among them; conditions;
* columns with listed keys, columns of public tables, truth values, and whole numbers and days within narrow bounds;
* parts of dates: months, quarters, days of the week and hours are always the same, and years and the beginnings of
  periods are those within the bounds of the column;
* a column that WHERE compares with constants (``carrier IN ('AA', 'UA')``, ``day >= '2024-01-01'``), computed ones
  too (``day >= DATE_TRUNC('month', DATE '2024-03-15') - INTERVAL 2 MONTH``);
* whatever an operation makes of these: its values are computed for every combination of its arguments;
* whole numbers computed from numbers with bounds (``FLOOR(amount / 10)``), where their range is narrow.

No row of the private table is read, so neighbors have the same keys. A row whose key is not among them is left out, as
it is where keys are listed: one beyond the bounds, one whose date is NULL.

NULL is a key where the question itself makes it one: in a branch of CASE, by a left join, by a division by 0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Any, cast

from dither.errors import DitherError
from dither.tables.card.model import ColumnCard, Type
from dither.tables.card.values import EXACT_INTEGERS, Value, literal_type
from dither.tables.compile import expressions
from dither.tables.compile.expressions import Lookup
from dither.tables.query.evaluate import evaluate, folded
from dither.tables.query.relations import extent_of
from dither.tables.query.tree import Call, Column, Expression, Literal, conjuncts, replaced, walk

MOST_VALUES = 10_000
"""How many keys of one column may be derived."""
MOST_INTEGERS = 1_000
"""How many whole numbers may lie between bounds for them to be keys: wider bounds say little about what occurs."""
_MOST_DAYS = 40_000
_MOST_DAYS_TRIED = 4_000
"""How many days a condition is computed for."""
_CYCLES = ("quarter", "month", "week", "day", "isodow", "doy")
"""Parts of a date that return: all of their values occur in 2020, a leap year of 53 weeks."""
_TIMES = {"hour": timedelta(hours=1), "minute": timedelta(minutes=1), "second": timedelta(seconds=1)}
_FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

Values = tuple[Value, ...]
Bounds = tuple[Value, Value]
"""The least and the largest value, both included; None where nothing is known."""


@dataclass(frozen=True)
class PublicFacts:
    """What is public about the rows of a question: its columns, by ``find``, and the conditions that all rows meet."""

    find: Lookup
    conditions: tuple[Expression, ...] = ()

    @classmethod
    def of(cls, find: Lookup, where: Expression | None) -> PublicFacts:
        """The facts for rows that meet a condition."""
        return cls(find, () if where is None else tuple(conjuncts(folded(where))))

    def values(self, expression: Expression) -> Values | None:
        """Every value that the expression can have, each once; None where that is not public."""
        expression = folded(expression)
        values = self._values(expression)
        if not values or len(values) > MOST_VALUES:
            return None
        return self.meeting(expression, values) or values

    def meeting(self, expression: Expression, values: Values) -> Values:
        """Those values of an expression that the conditions on it alone let through."""
        about = [condition for condition in self.conditions if _is_about(condition, expression)]
        return tuple(
            value for value in values if all(may_hold(replaced(item, expression, Literal(value))) for item in about)
        )

    def listed(self, expression: Expression) -> Values | None:
        """The values that a condition lists for an expression: ``x = 1``, ``x IN (1, 2)``; None where none does."""
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
        """The least and the largest value of a column of whole numbers or dates, by its card and by the conditions."""
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
        """What is public about a column, of numbers with the bounds that conditions leave."""
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
        """The constants that conditions compare an expression with, each with the sign."""
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
        """The results of an operation for every combination of its arguments' values."""
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
        """The values of any of these."""
        result: list[Value] = []
        for item in items:
            values = self.values(item)
            if values is None:
                return None
            result += values
        return _distinct(result)

    def _of_case(self, call: Call) -> Values | None:
        return self._of_any([*call.args[1:-1:2], call.args[-1]])

    def _of_if(self, call: Call) -> Values | None:
        return self._of_any([*call.args[1:], *([Literal(None)] if len(call.args) == 2 else [])])

    def _of_coalesce(self, call: Call) -> Values | None:
        values = self._of_any(call.args)
        last = call.args[-1]
        if values is None or not (isinstance(last, Literal) and last.value is not None):
            return values
        return tuple(value for value in values if value is not None)

    def _of_nullif(self, call: Call) -> Values | None:
        """NULL, and the values that do not equal a constant; a second argument that is none may be NULL itself."""
        first, other = call.args
        values = self.values(first)
        if values is None:
            return None
        if isinstance(other, Literal):
            values = tuple(evaluate(Call("nullif", (Literal(value), other)), {}) for value in values)
        return (*_distinct(value for value in values if value is not None), None)

    def _of_round(self, call: Call) -> Values | None:
        """To digits before the point: whole multiples of a power of ten, as they are computed."""
        value, digits = call.args
        known = self._of_arguments(call)
        places = digits.value if isinstance(digits, Literal) else None
        if known is not None or not isinstance(places, int) or places >= 0:
            return known
        scale = Literal(10**-places)
        return self.values(Call("*", (Call(call.op, (Call("/", (value, scale)), Literal(0))), scale)))

    def _of_extreme(self, call: Call) -> Values | None:
        """Any of the values that no constant excludes: GREATEST and LEAST leave NULLs out, and which arguments are NULL
        is not public."""
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
        return tuple(range(len(call.args) - 2))

    def _of_part(self, call: Call) -> Values | None:
        """The values of a part of a date, or the beginnings of periods."""
        *options, value = call.args
        kind = expressions.compile(value, self.find).type
        if kind not in ("date", "timestamp") or not all(isinstance(item, Literal) for item in options):
            return self._of_arguments(call)
        names = tuple(item.value for item in options if isinstance(item, Literal))
        period = self._period(value)
        cyclic = call.op == "date_part" and (names[0] in _CYCLES or names[0] in _TIMES)
        if not period and not cyclic:
            return self._of_arguments(call)
        values = _parts(call.op, names, kind, period)
        days = self._days_met(value) if kind == "date" and isinstance(value, Column) else None
        if not values or not days:
            return values
        met = {evaluate(Call(call.op, (*options, Literal(day))), {}) for day in days}
        return tuple(item for item in values if item in met) or values

    def _days_met(self, column: Column) -> Values | None:
        """The days of a column that meet the conditions on it; None where all of these compare it with constants, which
        are its bounds already, or where there are too many days."""
        about = (item for item in self.conditions if _is_about(item, column))
        others = [item for item in about if not any(PublicFacts(self.find, (item,))._comparisons(column))]
        period = self._period(column)
        if period is None or not others or (period[1] - period[0]).days >= _MOST_DAYS_TRIED:
            return None
        return self.meeting(column, tuple(_days(*period)))

    def _of_cast(self, call: Call) -> Values | None:
        """The days of timestamps."""
        period = self._period(call)
        if expressions.compile(call, self.find).type != "date" or period is None:
            return self._of_arguments(call)
        low, high = period
        return tuple(_days(low, high)) if (high - low).days < MOST_INTEGERS else None

    def _period(self, expression: Expression) -> tuple[date, date] | None:
        """The first and the last date or timestamp that a column, or a column cast to the other type, can have."""
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
    "date_trunc": PublicFacts._of_part,
}
"""What is known of the values of an operation; of all others they are computed from the values of their arguments."""


@lru_cache(maxsize=64)
def _parts(op: str, options: Values, kind: Type, period: tuple[date, date] | None) -> Values | None:
    """The results of an operation on the dates or timestamps of a period; of a part that returns, on all there are."""
    moments: Iterable[date]
    (name, *_) = options
    if op == "date_part" and isinstance(name, str) and name in _TIMES:
        start = datetime(2020, 1, 1)
        moments = [start + _TIMES[name] * i for i in range(24 if name == "hour" else 60)]
    else:
        if op == "date_part" and name in _CYCLES and (period is None or period[1] - period[0] >= timedelta(days=366)):
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
    return _in_order(results) if len(results) <= MOST_VALUES else None


def _is_about(condition: Expression, expression: Expression) -> bool:
    """Whether a condition is about this expression alone."""
    return not any(isinstance(node, Column) for node in walk(replaced(condition, expression, Literal(None))))


def _as_moment(value: date) -> datetime:
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


def _narrower(choose: Callable[..., Any], one: Value, other: Value) -> Value:
    """The least or the largest of two limits of one type, of which None says nothing."""
    result: Value = other if one is None else one if other is None else choose(one, other)
    return result


def _days(low: date, high: date) -> Iterable[date]:
    return (low + timedelta(days=i) for i in range((high - low).days + 1))


def _limit(sign: str, value: Value, kind: Type, lower: bool) -> Value:
    """The least, or the largest, value of a type that a comparison with a constant lets through; None where it says
    nothing. A date beside a timestamp is the start of its day, and a timestamp beside a date is its day."""
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
    """Whether a condition holds on a row, or cannot be computed here.

    >>> may_hold(Call("<", (Column("n"), Literal(3))), {"n": 5})
    False
    """
    try:
        return evaluate(condition, row or {}) is True
    except DitherError:
        return True


def _distinct(values: Iterable[Value]) -> Values:
    return tuple(dict.fromkeys(values))


def _in_order(values: Values) -> Values:
    """Values in rising order, NULL last; as they are where they cannot be compared."""
    try:
        known = sorted(cast(Iterable[Any], (value for value in values if value is not None)))
    except TypeError:
        return values
    return (*known, *(value for value in values if value is None))
