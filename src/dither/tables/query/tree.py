"""A question as a tree that knows no engine and no syntax.

Rows are described by expressions (:class:`Column`, :class:`Literal`, :class:`Call`), people by aggregates
(:class:`Aggregate`) over groups (:class:`Group`), the answer by what is done to the noisy table (:class:`Shape`).
SQL and Python both make such a tree; the plan and the engines read it.

>>> question = Query(aggregates={"n": Aggregate("count")}, groups=(Group("region", Column("region")),))
>>> question.aggregates["n"].kind
'count'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Literal as Choice

from dither.errors import InvalidArgument
from dither.tables.card.values import Value, clip, plain_keys, plain_value

MAX_DEPTH = 100
MAX_NODES = 20_000


@dataclass(frozen=True)
class Column:
    """A column of the table, or of a public table joined to it (``table`` then names that)."""

    name: str
    table: str | None = None


@dataclass(frozen=True)
class Literal:
    """A constant, as a plain Python value."""

    value: Value

    def __post_init__(self) -> None:
        """Make the value a plain Python value."""
        object.__setattr__(self, "value", plain_value(self.value))


@dataclass(frozen=True)
class Call:
    """An operation on expressions; :data:`dither.tables.query.operations.OPERATIONS` has them all, and their meaning.

    NULL is unknown, as in SQL, and NaN is NULL.
    """

    op: str
    args: tuple[Expression, ...]


Expression = Column | Literal | Call

Kind = Choice[
    "count", "count_value", "count_distinct", "people", "sum", "mean", "var", "std", "min", "max", "quantile",
    "mode", "histogram",
    "covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2",
]  # fmt: skip
Bounds = tuple[float, float] | Choice["auto"] | None

OF_PAIRS: tuple[Kind, ...] = ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2")
"""Kinds that are of two values."""

EXTREMES: tuple[Kind, ...] = ("min", "max")
"""Kinds in which each person counts once in a group, by the person's own extreme."""


SIMPLE: tuple[Kind, ...] = ("count", "count_value", "count_distinct", "people", "sum", "histogram")
"""Kinds whose answer is one noisy number, or several, so that its error does not depend on the data."""


@dataclass(frozen=True)
class Aggregate:
    """What is asked of each group.

    ``count`` counts rows, ``count_value`` rows where ``value`` is not NULL, ``count_distinct`` the different values of
    ``value``, ``people`` the people. ``sum``, ``mean``,
    ``var``, ``std``, ``min``, ``max`` and ``quantile`` (at ``at``; the median is 0.5) are of ``value`` within
    ``bounds`` (the card's where None). ``mode`` is the most common of ``keys``, ``histogram`` counts ``value`` between
    ``edges``. ``covar_pop``, ``covar_samp``, ``corr`` and ``regr_slope``, ``regr_intercept``, ``regr_r2`` (of a line
    that predicts ``value`` from ``other``) are of two values, the second within ``other_bounds``. ``weight`` is this
    aggregate's part of the budget; None means: whatever makes relative errors equal. A ``discrete`` quantile is one of
    the values in SQL, and so a whole number where they are. ``rows_per_person`` is the norm of what one person counts
    for in this aggregate over all groups together, by the l1 norm or for normal noise by the l2 norm; None is the limit
    of the question.
    """

    kind: Kind
    value: Expression | None = None
    bounds: Bounds = None
    at: float = 0.5
    keys: tuple[Value, ...] | None = None
    edges: tuple[float, ...] | None = None
    weight: float | None = None
    other: Expression | None = None
    other_bounds: tuple[float, float] | None = None
    discrete: bool = False
    rows_per_person: int | None = None

    def __post_init__(self) -> None:
        """Make the keys plain Python values."""
        object.__setattr__(self, "keys", plain_keys(self.keys))


@dataclass(frozen=True)
class Group:
    """One column of GROUP BY: a name, an expression, and its public keys if the question states them."""

    name: str
    value: Expression
    keys: tuple[Value, ...] | None = None

    def __post_init__(self) -> None:
        """Make the keys plain Python values."""
        object.__setattr__(self, "keys", plain_keys(self.keys))


@dataclass(frozen=True)
class Join:
    """A public table joined on equal keys, ``own`` in the private table and ``other`` in the public one. Each key
    occurs at most once in the public table. ``left`` keeps rows without a partner. ``more`` are the further parts of a
    composite key, as pairs of an own expression and a public column.
    """

    table: str
    own: Expression
    other: str
    left: bool = False
    more: tuple[tuple[Expression, str], ...] = ()

    @property
    def pairs(self) -> tuple[tuple[Expression, str], ...]:
        """All parts of the key: an own expression, and the column of the public table that it equals."""
        return ((self.own, self.other), *self.more)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the public table that are its key."""
        return tuple(other for _, other in self.pairs)


@dataclass(frozen=True)
class Order:
    """One key of ORDER BY, on the noisy table or in a window over a person's rows; NULLs come last."""

    value: Expression
    descending: bool = False


@dataclass(frozen=True)
class PrivateRows:
    """The rows of a private table of the card that have a person; None is the card's own table."""

    table: str | None = None


@dataclass(frozen=True)
class Projection:
    """The rows of a relation for which a condition holds, with public tables joined, as these columns.

    The person of a row is always kept, under the name of the card's unit; it need not be among the columns.
    """

    source: Source
    columns: Mapping[str, Expression]
    where: Expression | None = None
    joins: tuple[Join, ...] = ()


PersonKind = Choice["count", "count_value", "count_distinct", "sum", "mean", "min", "max", "any", "every"]


@dataclass(frozen=True)
class PersonAggregate:
    """An exact aggregate of the rows of one person: it leaves the engine only through a noisy one."""

    kind: PersonKind
    value: Expression | None = None


@dataclass(frozen=True)
class PerPerson:
    """A row for each person, and for each value of ``groups`` that the person has."""

    source: Source
    aggregates: Mapping[str, PersonAggregate]
    groups: Mapping[str, Expression] = field(default_factory=dict)
    where: Expression | None = None
    joins: tuple[Join, ...] = ()


WindowKind = Choice[
    "row_number", "rank", "dense_rank", "lag", "lead", "first_value", "last_value", "count", "count_value", "sum",
    "mean", "min", "max",
]  # fmt: skip
Frame = Choice["all", "peers", "rows"]


@dataclass(frozen=True)
class WindowFunction:
    """A window function over the rows of one person that are equal in ``partition``.

    ``frame`` says which rows an aggregate is of: all of them, those up to the current one and its peers in the order,
    or those up to the current one.
    """

    kind: WindowKind
    value: Expression | None = None
    partition: tuple[Expression, ...] = ()
    order: tuple[Order, ...] = ()
    offset: int = 1
    frame: Frame = "all"


@dataclass(frozen=True)
class Windowed:
    """The rows of a relation with further columns, each a window function over the rows of the person."""

    source: Source
    windows: Mapping[str, WindowFunction]


JoinKind = Choice["inner", "left", "right", "full", "semi", "anti"]


@dataclass(frozen=True)
class PersonJoin:
    """Two relations joined on the person, and on a condition.

    ``names`` says which columns of the right one are added, by their new names. ``left_person`` and ``right_person``
    name columns with the person of either side, which are NULL where that side has no partner. ``on`` is about the
    columns of both. ``semi`` keeps the left rows with a partner, ``anti`` those without, and neither adds columns.
    """

    left: Source
    right: Source
    kind: JoinKind
    names: Mapping[str, str] = field(default_factory=dict)
    on: Expression | None = None
    left_person: str | None = None
    right_person: str | None = None


@dataclass(frozen=True)
class PublicMembership:
    """The rows for which a value is, or is not, IN a column of a public table."""

    source: Source
    value: Expression
    table: str
    column: str
    negated: bool = False


@dataclass(frozen=True)
class UnionAll:
    """The rows of several relations with the same columns."""

    sources: tuple[Source, ...]


@dataclass(frozen=True)
class CappedRows:
    """At most ``most`` rows of each person of a relation, chosen by a hash of their places in the order of its columns
    ``seen``, which are all that the question reads of it.

    No question states it. It is put where rows of a person are combined (:mod:`dither.tables.planning.work`).
    """

    source: Source
    most: int
    seen: tuple[str, ...]


Source = PrivateRows | Projection | PerPerson | Windowed | PersonJoin | PublicMembership | UnionAll | CappedRows
"""A private relation: every row has a person and depends on the rows of that person, and on public tables, alone."""


@dataclass(frozen=True)
class Shape:
    """What is done to the noisy table: all of it is free.

    ``columns`` are the columns shown, in order, each an expression over the names of groups and aggregates; where
    there are none, all groups and aggregates are shown. ``having`` keeps rows, then ``order`` (NULLs last), then
    ``limit``.
    """

    columns: Mapping[str, Expression] = field(default_factory=dict)
    having: Expression | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None


@dataclass(frozen=True)
class PostProcessing:
    """One SELECT in the SQL of DuckDB that is run on the noisy table, which it reads under the name ``table``: its
    columns are the groups and the aggregates. It costs nothing, as :class:`Shape`, in whose place it stands. The noisy
    tables of further private aggregations have the names ``more``; ``public`` are the public tables that it reads under
    their own names. ``table`` is empty where it reads these alone.
    """

    sql: str
    table: str = "noisy"
    more: tuple[str, ...] = ()
    public: tuple[str, ...] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all noisy tables that the SQL reads, the first aggregation's first."""
        return (self.table, *self.more) if self.table else ()


@dataclass(frozen=True)
class Query:
    """A question: which rows, in which groups, which aggregates, and what becomes of the answer.

    ``epsilon``, ``delta``, ``max_groups`` and ``max_rows`` (per person: how many groups, and rows in each) may be
    stated in the question; otherwise the call or the card says them. ``post`` is SQL that makes the answer from the
    noisy table, where ``shape`` cannot say it.

    A question may hold several private aggregations: ``more`` are the others, which have a noisy table each and share
    the budget with this one; only the first has ``post``, ``epsilon`` and ``delta``. Of a level of ROLLUP, CUBE or
    GROUPING SETS, ``rolled_up`` are the columns that other levels group by and this one does not.
    """

    aggregates: Mapping[str, Aggregate]
    groups: tuple[Group, ...] = ()
    where: Expression | None = None
    joins: tuple[Join, ...] = ()
    shape: Shape = Shape()
    epsilon: float | None = None
    delta: float | None = None
    max_groups: int | Choice["auto"] | None = None
    max_rows: int | Choice["auto"] | None = None
    post: PostProcessing | None = None
    source: Source | None = None
    """The private relation that is asked of; None is the card's own table."""
    more: tuple[Query, ...] = ()
    rolled_up: tuple[Group, ...] = ()
    as_of: date | None = None
    """The day that CURRENT_DATE stands for, where the question names it."""
    before: tuple[Query, ...] = ()
    """Questions with one number each, which are answered first: this one is read again with their noisy answers, and
    has stand-ins for them until then."""

    @property
    def is_public(self) -> bool:
        """Return whether the question reads public tables alone."""
        return self.post is not None and not self.post.tables

    @property
    def aggregations(self) -> tuple[Query, ...]:
        """All private aggregations of the question as questions of their own, this one first."""
        if self.is_public:
            return ()
        return (replace(self, more=()), *self.more) if self.more else (self,)


def sources(source: Source | None) -> Iterator[Source]:
    """Yield a relation and, recursively, the relations it is made of; nothing for None, the card's own table."""
    if source is None:
        return
    yield source
    inside: tuple[Source, ...] = ()
    if isinstance(source, PersonJoin):
        inside = (source.left, source.right)
    elif isinstance(source, UnionAll):
        inside = source.sources
    elif not isinstance(source, PrivateRows):
        inside = (source.source,)
    for item in inside:
        yield from sources(item)


def private_tables(query: Query) -> list[str | None]:
    """Return the names of the private tables that a question reads, each once; None stands for the card's own table."""
    if query.source is None:
        return [None]
    names = [item.table for item in sources(query.source) if isinstance(item, PrivateRows)]
    return list(dict.fromkeys(names))


def public_joins(query: Query) -> list[Join]:
    """Return all joins with public tables, including those inside the relation that is asked about."""
    inside = (item for item in sources(query.source) if isinstance(item, (Projection, PerPerson)))
    return [*query.joins, *(join for item in inside for join in item.joins)]


def conditions(query: Query) -> list[Expression]:
    """Return all conditions on rows, including those inside the relation that is asked about."""
    inside = (item for item in sources(query.source) if isinstance(item, (Projection, PerPerson)))
    every = [query.where, *(item.where for item in inside)]
    return [item for item in every if item is not None]


def public_tables(query: Query) -> list[str]:
    """Return the names of the public tables that a question reads, each once."""
    names = [join.table for join in public_joins(query)]
    names += [item.table for item in sources(query.source) if isinstance(item, PublicMembership)]
    return list(dict.fromkeys(names))


def walk(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and all expressions inside it."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, Call):
            waiting.extend(reversed(node.args))


def conjuncts(condition: Expression | None) -> Iterator[Expression]:
    """Yield the conditions that a condition joins by AND; nothing for None."""
    if isinstance(condition, Call) and condition.op == "and":
        for item in condition.args:
            yield from conjuncts(item)
    elif condition is not None:
        yield condition


def replaced(expression: Expression, old: Expression, new: Expression) -> Expression:
    """Return an expression in which every occurrence of a part is replaced by another expression."""
    if expression == old:
        return new
    if isinstance(expression, Call):
        return Call(expression.op, tuple(replaced(item, old, new) for item in expression.args))
    return expression


def columns(*expressions: Expression | None) -> set[Column]:
    """Return all columns in some expressions; None counts as an expression without columns."""
    return {node for item in expressions if item is not None for node in walk(item) if isinstance(node, Column)}


def check_size(expression: Expression) -> None:
    """Refuse an expression with more than :data:`MAX_NODES` nodes, or nested deeper than :data:`MAX_DEPTH`."""
    pending: list[tuple[Expression, int]] = [(expression, 1)]
    count = 0
    while pending:
        node, depth = pending.pop()
        count += 1
        if depth > MAX_DEPTH or count > MAX_NODES:
            limit = f"at most {MAX_DEPTH} operations inside each other and {MAX_NODES} in all"
            raise InvalidArgument("expression", limit, "more", "write long OR chains as x IN (…), or simplify")
        if isinstance(node, Call):
            pending.extend((item, depth + 1) for item in node.args)


def show(expression: Expression) -> str:
    """Return an expression as short text for error messages, such as "amount > 5"; "case (…)" for nested ones."""
    if isinstance(expression, Column):
        return clip(f"{expression.table}.{expression.name}" if expression.table else expression.name)
    if isinstance(expression, Literal):
        value = expression.value
        return "NULL" if value is None else clip(repr(value) if isinstance(value, (str, int, float)) else str(value))
    if expression.op == "cast" and isinstance(target := expression.args[0], Literal):
        name = {"number": "DOUBLE"}.get(str(target.value), str(target.value).upper())
        return f"CAST({show(expression.args[1])} AS {name})"
    if any(isinstance(item, Call) for item in expression.args) or len(expression.args) > 3:
        return f"{expression.op} (…)"
    parts = [show(item) for item in expression.args]
    infix = len(parts) == 2 and (not expression.op.isidentifier() or expression.op in ("and", "or", "like"))
    return f"{parts[0]} {expression.op} {parts[1]}" if infix else f"{expression.op}({', '.join(parts)})"


def conjunction(first: Expression | None, second: Expression | None) -> Expression | None:
    """Return a condition that holds where both hold; None is a condition that always holds."""
    if first is None or second is None:
        return second if first is None else first
    return Call("and", (first, second))
