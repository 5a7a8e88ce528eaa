"""Expressions by Python's operators, and aggregates of them.

>>> col("amount").between(0, 10) | col("region").isin(["a", "b"])
Term(between(amount, 0, 10) or in(region, 'a', 'b'))

In an aggregate a str names a column; other values are expressions (:func:`col`).

``bounds`` are the public limits (lower, upper) of each value, "auto", or None for the card's; ``weight`` is the part of
the budget, relative to the other aggregates of the question. ``rows_per_person`` is the most rows that one person
counts for in the aggregate, over all groups together (for normal noise, by the l2 norm); None is the limit of the
question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from dither import arguments
from dither.errors import InvalidArgument, WrongType
from dither.tables.card.model import Type
from dither.tables.card.values import Value, literal_type, plain_value
from dither.tables.query.evaluate import typed
from dither.tables.query.tree import Aggregate, Bounds, Call, Column, Expression, Kind, Literal

_EXAMPLE = "write col('amount') > 5, or a condition in SQL as a str"


def _left(op: str) -> Callable[[Term, object], Term]:
    """Return the method of a binary operator, such as ``__add__``: the operation ``op`` with the term on the left."""
    return lambda self, other: term(op, self, other)


def _right(op: str) -> Callable[[Term, object], Term]:
    """Return the reflected method of a binary operator, such as ``__radd__``: the term is on the right."""
    return lambda self, other: term(op, other, self)


def _unary(op: str) -> Callable[[Term], Term]:
    """Return the method of a unary operator, such as ``__neg__``."""
    return lambda self: term(op, self)


@dataclass(frozen=True, eq=False)
class Term:
    """An expression that Python's operators extend: ``+ - * / % **``, comparisons, ``& | ~`` for and, or, not.

    >>> (col("amount") * 2 > 5) & ~col("vip")
    Term((amount * 2 > 5) and not vip)
    """

    expression: Expression

    __add__, __radd__ = _left("+"), _right("+")
    __sub__, __rsub__ = _left("-"), _right("-")
    __mul__, __rmul__ = _left("*"), _right("*")
    __truediv__, __rtruediv__ = _left("/"), _right("/")
    __mod__, __rmod__ = _left("%"), _right("%")
    __and__, __rand__ = _left("and"), _right("and")
    __or__, __ror__ = _left("or"), _right("or")
    __eq__ = _left("=")  # type: ignore[assignment]  # builds a condition, as in pandas
    __ne__ = _left("<>")  # type: ignore[assignment]  # builds a condition, as in pandas
    __lt__, __le__, __gt__, __ge__ = _left("<"), _left("<="), _left(">"), _left(">=")
    __neg__, __abs__, __invert__ = _unary("neg"), _unary("abs"), _unary("not")
    __pow__ = _left("power")

    def __round__(self, digits: int = 0) -> Term:
        """Return the value rounded to ``digits`` after the point, halves away from 0."""
        return term("round", self, digits)

    def __bool__(self) -> bool:
        """Raise: a condition is evaluated by the engine, so that Python cannot combine it by and, or, not."""
        fix = "combine conditions by & | ~ in parentheses, not by and, or, not, in or a chain a < b < c"
        raise WrongType("condition", "to be asked of the table", "to be true or false in Python", fix)

    def isin(self, values: Iterable[object]) -> Term:
        """Return whether the value is one of several."""
        if isinstance(values, str):
            raise WrongType("isin", "a list of values", "a str", "write .isin(['a', 'b'])")
        listed = list(values)
        if not listed:
            raise InvalidArgument("isin", "at least one value", "none", "leave the condition out")
        return term("in", self, *listed)

    def between(self, low: object, high: object) -> Term:
        """Return whether the value lies between two others, inclusive."""
        return term("between", self, low, high)

    def like(self, pattern: str) -> Term:
        """Return whether a text matches a pattern of ``%`` and ``_``."""
        return term("like", self, pattern)

    def is_null(self) -> Term:
        """Return whether the value is NULL."""
        return term("is_null", self)

    def coalesce(self, *others: object) -> Term:
        """Return the value, or the first of the others that is not NULL."""
        return term("coalesce", self, *others)

    def trunc(self, period: str) -> Term:
        """Return the first moment of the year, quarter, month, week, day or hour."""
        return term("date_trunc", period, self)

    def part(self, name: str) -> Term:
        """Return the year, quarter, month, week, day, doy, isodow, dow, isoyear, hour, minute or second of a date;
        isodow is 1 on Monday, dow is 0 on Sunday."""
        return term("date_part", name, self)

    def later(self, count: int, unit: str) -> Term:
        """Return the date ``count`` days, weeks, months, quarters or years later."""
        return term("date_add", unit, count, self)

    def since(self, start: object, unit: str = "day") -> Term:
        """Return the number of days, months, quarters or years from ``start`` to this date."""
        return term("date_diff", unit, start, self)

    def cast(self, type: str) -> Term:
        """Convert to integer, number, text, boolean, date or timestamp; NULL where a value cannot be converted."""
        return term("cast", type, self)

    def round(self, digits: int = 0) -> Term:
        """Round to ``digits`` after the point, halves away from 0."""
        return term("round", self, digits)

    def clip(self, low: object, high: object) -> Term:
        """Limit the value to the range from ``low`` to ``high``; NULL stays NULL."""
        return term("case", term("is_null", self), None, term("greatest", low, term("least", high, self)))

    def bin(self, edges: Iterable[float]) -> Term:
        """Return the index, from 0, of the bin between the edges that contains the value."""
        return term("bin", self, *edges)

    def ilike(self, pattern: str) -> Term:
        """Return whether a text matches a pattern of ``%`` and ``_``, ignoring the case of ASCII letters."""
        return term("ilike", self, pattern)

    def contains(self, part: object) -> Term:
        """Return whether a text contains another."""
        return term("contains", self, part)

    def startswith(self, start: object) -> Term:
        """Return whether a text begins with another."""
        return term("starts_with", self, start)

    def endswith(self, end: object) -> Term:
        """Return whether a text ends with another."""
        return term("ends_with", self, end)

    def slice(self, start: int, count: int) -> Term:
        """Return ``count`` characters of a text from position ``start``; the first character has position 1."""
        return term("substr", self, start, count)

    def length(self) -> Term:
        """Return the number of characters of a text."""
        return term("length", self)

    def strip(self) -> Term:
        """Return a text without the spaces at its ends."""
        return term("trim", self)

    def lower(self) -> Term:
        """Return a text with ASCII letters in lower case."""
        return term("lower", self)

    def upper(self) -> Term:
        """Return a text with ASCII letters in upper case."""
        return term("upper", self)

    def __repr__(self) -> str:
        return f"Term({_shown(self.expression)})"


Operand = str | Term | Expression
"""A column by its name, or an expression."""
Condition = str | Term | Expression
"""A condition in SQL, or an expression."""


def col(name: str, table: str | None = None) -> Term:
    """Return a column of the table, or of a public table joined to it, as an expression.

    >>> col("amount") > 5
    Term(amount > 5)
    """
    if not isinstance(name, str) or not (table is None or isinstance(table, str)):
        raise WrongType("col", "the name of a column", type(name).__name__, "write col('amount')")
    return Term(Column(name, table))


def case(*branches: tuple[object, object], otherwise: object = None) -> Term:
    """Return the value of the first branch (condition, value) whose condition holds."""
    if not branches or not all(isinstance(item, tuple) and len(item) == 2 for item in branches):
        fix = "write case((col('age') < 18, 'young'), otherwise='old')"
        raise WrongType("case", "pairs (condition, value)", "other arguments", fix)
    return term("case", *(part for item in branches for part in item), otherwise)


def term(op: str, *args: object) -> Term:
    """Return an operation on expressions and constants, by the operation's name."""
    return Term(Call(op, tuple(_operand(item) for item in args)))


def _tree(value: object) -> Expression | None:
    """Return the expression of a term or an expression itself; None for other values."""
    if isinstance(value, Term):
        return value.expression
    return value if isinstance(value, (Column, Literal, Call)) else None


def _operand(value: object) -> Expression:
    """Return the expression of a term, or a Python value as a constant; refuse values that some engine cannot hold."""
    tree = _tree(value)
    if tree is not None:
        return tree
    constant = Literal(plain_value(value))
    literal_type(constant.value)  # raises the refusal
    return constant


def expression(value: object, what: str) -> Expression:
    """Return the expression of an argument, in which a str names a column; ``what`` names the argument in errors."""
    tree = Column(value) if isinstance(value, str) else _tree(value)
    if tree is not None:
        return tree
    raise WrongType(what, "a column's name or an expression", type(value).__name__, "write col('amount')")


def condition(value: object, what: str) -> Expression:
    """Return the expression of an argument, in which a str is a condition in SQL; ``what`` names the argument in
    errors."""
    if isinstance(value, str):
        from dither.tables.sql.aggregates import syntax  # sqlglot is slow to load

        return syntax(value)
    tree = _tree(value)
    if tree is not None:
        return tree
    raise WrongType(what, "a condition", type(value).__name__, _EXAMPLE)


def _shown(expression: Expression, inside: bool = False) -> str:
    """Return an expression as text for ``repr``, in parentheses where it is an operand (``inside``) of another."""
    if isinstance(expression, Column):
        return f"{expression.table}.{expression.name}" if expression.table else expression.name
    if isinstance(expression, Literal):
        return repr(expression.value)
    parts = [_shown(item, inside=True) for item in expression.args]
    if len(parts) == 2 and (not expression.op.isidentifier() or expression.op in ("and", "or")):
        text = f"{parts[0]} {expression.op} {parts[1]}"
        return f"({text})" if inside and expression.op not in ("*", "/") else text
    if expression.op == "not":
        return f"not {parts[0]}"
    return f"{expression.op}({', '.join(_shown(item) for item in expression.args)})"


def count(
    value: Operand | None = None, *, weight: float | None = None, rows_per_person: int | None = None
) -> Aggregate:
    """Ask for the number of rows; with a column, of rows where it is not NULL.

    ``weight`` is this aggregate's part of the question's budget relative to the others (None: what makes relative
    errors equal). ``rows_per_person`` limits the rows of one person that count in it (None: the limit of the question).

    >>> count().kind, count("amount").kind
    ('count', 'count_value')
    """
    if value is None:
        return _aggregate("count", None, weight, rows_per_person)
    return _aggregate("count_value", expression(value, "count"), weight, rows_per_person)


def count_distinct(value: Operand, *, weight: float | None = None) -> Aggregate:
    """Ask for the number of distinct values, of which each person adds at most ``max_rows`` to a group.

    >>> count_distinct("product").kind
    'count_distinct'
    """
    return _aggregate("count_distinct", expression(value, "count_distinct"), weight)


def people(*, weight: float | None = None) -> Aggregate:
    """Ask for the number of people.

    >>> people().kind
    'people'
    """
    return _aggregate("people", None, weight)


def sum_(
    value: Operand, bounds: object = None, *, weight: float | None = None, rows_per_person: int | None = None
) -> Aggregate:
    """Ask for the sum of a value.

    >>> sum_("amount", (0, 100)).bounds
    (0, 100)
    """
    return _numbers("sum", value, bounds, weight, rows_per_person)


def mean(
    value: Operand, bounds: object = None, *, weight: float | None = None, rows_per_person: int | None = None
) -> Aggregate:
    """Ask for the mean of a value.

    ``bounds`` are the lower and upper limit to which values are clipped, ``"auto"`` to choose them privately, None for
    the card's. ``weight`` is this aggregate's part of the question's budget relative to the others (None: what makes
    relative errors equal). ``rows_per_person`` limits the rows of one person that count in it (None: the limit of the
    question).

    >>> mean("amount").kind
    'mean'
    """
    return _numbers("mean", value, bounds, weight, rows_per_person)


def var(
    value: Operand, bounds: object = None, *, weight: float | None = None, rows_per_person: int | None = None
) -> Aggregate:
    """Ask for the sample variance of a value, with divisor n - 1.

    The other parameters are those of :func:`mean`.

    >>> var("amount").kind
    'var'
    """
    return _numbers("var", value, bounds, weight, rows_per_person)


def std(
    value: Operand, bounds: object = None, *, weight: float | None = None, rows_per_person: int | None = None
) -> Aggregate:
    """Ask for the sample standard deviation of a value, the root of :func:`var`.

    The other parameters are those of :func:`mean`.

    >>> std("amount").kind
    'std'
    """
    return _numbers("std", value, bounds, weight, rows_per_person)


def covariance(
    value: Operand,
    other: Operand,
    bounds: object = None,
    other_bounds: object = None,
    *,
    population: bool = False,
    weight: float | None = None,
    rows_per_person: int | None = None,
) -> Aggregate:
    """Ask for the covariance of two values over rows where neither is NULL: with divisor n - 1, or n for a
    ``population``.

    ``bounds`` are the limits to which ``value`` is clipped, ``other_bounds`` those of ``other``; None takes the card's.
    ``weight`` and ``rows_per_person`` are those of :func:`mean`.

    >>> covariance("income", "age").kind, covariance("income", "age", population=True).kind
    ('covar_samp', 'covar_pop')
    """
    return _pair(
        "covar_pop" if population else "covar_samp", value, other, bounds, other_bounds, weight, rows_per_person
    )


def corr(
    value: Operand,
    other: Operand,
    bounds: object = None,
    other_bounds: object = None,
    *,
    weight: float | None = None,
    rows_per_person: int | None = None,
) -> Aggregate:
    """Ask for the correlation of ``value`` and ``other`` over rows where neither is NULL.

    The other parameters are those of :func:`covariance`.

    >>> corr("income", "age").kind
    'corr'
    """
    return _pair("corr", value, other, bounds, other_bounds, weight, rows_per_person)


def regression_slope(
    value: Operand,
    other: Operand,
    bounds: object = None,
    other_bounds: object = None,
    *,
    weight: float | None = None,
    rows_per_person: int | None = None,
) -> Aggregate:
    """Ask for the slope of the least-squares line that predicts ``value`` from ``other``.

    Rows where either is NULL do not count. The other parameters are those of :func:`covariance`.

    >>> regression_slope("income", "age").kind
    'regr_slope'
    """
    return _pair("regr_slope", value, other, bounds, other_bounds, weight, rows_per_person)


def regression_intercept(
    value: Operand,
    other: Operand,
    bounds: object = None,
    other_bounds: object = None,
    *,
    weight: float | None = None,
    rows_per_person: int | None = None,
) -> Aggregate:
    """Ask for the intercept of the least-squares line that predicts ``value`` from ``other``.

    Rows where either is NULL do not count. The other parameters are those of :func:`covariance`.

    >>> regression_intercept("income", "age").kind
    'regr_intercept'
    """
    return _pair("regr_intercept", value, other, bounds, other_bounds, weight, rows_per_person)


def regression_r2(
    value: Operand,
    other: Operand,
    bounds: object = None,
    other_bounds: object = None,
    *,
    weight: float | None = None,
    rows_per_person: int | None = None,
) -> Aggregate:
    """Ask for the share of the variance of ``value`` that its least-squares line on ``other`` explains: the square of
    :func:`corr`.

    Rows where either is NULL do not count. The other parameters are those of :func:`covariance`.

    >>> regression_r2("income", "age").kind
    'regr_r2'
    """
    return _pair("regr_r2", value, other, bounds, other_bounds, weight, rows_per_person)


def min_(
    value: Operand, bounds: object = None, *, weight: float | None = None, rows_per_person: int | None = None
) -> Aggregate:
    """Ask for the smallest value.

    The other parameters are those of :func:`mean`.

    >>> min_("amount").kind
    'min'
    """
    return _numbers("min", value, bounds, weight, rows_per_person)


def max_(
    value: Operand, bounds: object = None, *, weight: float | None = None, rows_per_person: int | None = None
) -> Aggregate:
    """Ask for the largest value.

    The other parameters are those of :func:`mean`.

    >>> max_("amount").kind
    'max'
    """
    return _numbers("max", value, bounds, weight, rows_per_person)


def median(
    value: Operand, bounds: object = None, *, weight: float | None = None, rows_per_person: int | None = None
) -> Aggregate:
    """Ask for the median of a value.

    The other parameters are those of :func:`mean`.

    >>> median("amount").at
    0.5
    """
    return _numbers("quantile", value, bounds, weight, rows_per_person)


def quantile(
    value: Operand, q: float, bounds: object = None, *, weight: float | None = None, rows_per_person: int | None = None
) -> Aggregate:
    """Ask for the quantile of a value at ``q``, from 0 to 1.

    The other parameters are those of :func:`mean`.

    >>> quantile("amount", 0.9).at
    0.9
    """
    if isinstance(q, bool) or not isinstance(q, (int, float)):
        raise WrongType("q", "a number from 0 to 1", type(q).__name__, "pass q=0.9")
    if not 0 <= q <= 1:
        raise InvalidArgument("q", "a number from 0 to 1", q, "pass q=0.9")
    return replace(_numbers("quantile", value, bounds, weight, rows_per_person), at=float(q))


def mode(
    value: Operand,
    keys: Sequence[Value] | None = None,
    *,
    weight: float | None = None,
    rows_per_person: int | None = None,
) -> Aggregate:
    """Ask for the most common of the public ``keys`` among the cells of ``value``; None takes the card's keys.

    ``weight`` and ``rows_per_person`` are those of :func:`mean`.

    >>> mode("region", keys=["a", "b"]).keys
    ('a', 'b')
    """
    listed = None if keys is None else distinct_keys(keys, "keys")
    return replace(_aggregate("mode", expression(value, "mode"), weight, rows_per_person), keys=listed)


def histogram(
    value: Operand, edges: Sequence[float], *, weight: float | None = None, rows_per_person: int | None = None
) -> Aggregate:
    """Ask for the number of values between each edge and the next; the last bin contains its upper edge.

    >>> histogram("age", [0, 50, 100]).edges
    (0, 50, 100)
    """
    call = term("bin", 0, *edges).expression  # type-checked with a stand-in for the value, which checks the edges
    typed(call, _no_columns)
    assert isinstance(call, Call)
    numbers = tuple(cast(float, item.value) for item in call.args[1:] if isinstance(item, Literal))
    return replace(_aggregate("histogram", expression(value, "histogram"), weight, rows_per_person), edges=numbers)


def distinct_keys(keys: object, what: str) -> tuple[Value, ...]:
    """Return public keys as plain Python values; refuse none, and repeated ones. ``what`` names the argument in
    errors."""
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise WrongType(what, "a list of values", type(keys).__name__, "pass ['a', 'b']")
    listed = tuple(plain_value(key) for key in keys)
    for item in listed:
        literal_type(item)
    if not listed or len(set(listed)) < len(listed):
        raise InvalidArgument(what, "different values", "none, or one twice", "list each once")
    return listed


def _numbers(
    kind: Kind, value: Operand, bounds: object, weight: float | None, rows_per_person: int | None
) -> Aggregate:
    """Return an aggregate of one number of this ``kind`` with checked parameters, which are those of :func:`mean`."""
    limits = cast(Bounds, bounds if bounds is None or bounds == "auto" else arguments.bounds(bounds))
    return replace(_aggregate(kind, expression(value, kind), weight, rows_per_person), bounds=limits)


def _pair(
    kind: Kind,
    value: Operand,
    other: Operand,
    bounds: object,
    other_bounds: object,
    weight: float | None,
    rows_per_person: int | None,
) -> Aggregate:
    """Return an aggregate of two numbers of this ``kind`` with checked parameters, which are those of
    :func:`covariance`.
    """
    limits = None if bounds is None else arguments.bounds(bounds)
    other_limits = None if other_bounds is None else arguments.bounds(other_bounds, "other_bounds")
    result = _aggregate(kind, expression(value, kind), weight, rows_per_person)
    return replace(result, bounds=limits, other=expression(other, kind), other_bounds=other_limits)


def _aggregate(
    kind: Kind, value: Expression | None, weight: float | None, rows_per_person: int | None = None
) -> Aggregate:
    """Return an aggregate of this kind; refuse a ``weight`` that is not positive, and a ``rows_per_person`` that is not
    a positive integer (None: not stated)."""
    return Aggregate(
        kind,
        value,
        weight=None if weight is None else arguments.positive(weight, "weight"),
        rows_per_person=None if rows_per_person is None else arguments.whole(rows_per_person, "rows_per_person"),
    )


def _no_columns(_column: Column) -> Type:
    """Raise the error for a column among the edges of a histogram; it is the type lookup that :func:`histogram`
    passes."""
    raise InvalidArgument("edges", "numbers", "a column", "pass edges=[0, 50, 100]")
