"""How much one person counts. This is the one place where a person's rows are bounded.

A person whose rows are within the limit counts with all of them. A person with more rows keeps all of them as well, but
each at the same smaller weight, so that together they count no more than the limit. Whatever is computed from the
weighted rows of a question (counts, sums, means, bins) describes the same rows, so that a ratio of two such numbers
estimates the ratio.

*Statement.* Let a person have n_g rows in group g, let every row add a vector to its group whose l1 norm (l2 norm) is
at most ``top``, and let the weight be ``w = min(1, R / N)``: for the l1 norm with ``N = sum n_g`` and
``R = groups * rows``, for the l2 norm with ``N = sqrt(sum n_g^2)`` and ``R = sqrt(groups) * rows``. Then all that the
person adds to all groups has an l1 norm (l2 norm) of at most ``R * top``, whoever else is in the data.

*Why.* The person adds a vector of norm at most ``w n_g top`` to group g. Over the groups these make
``w top sum n_g`` in the l1 norm, and at most ``w top sqrt(sum n_g^2)`` in the l2 norm: ``w N top <= R top`` in both.
The weight depends on the person's own rows only.

*In whole numbers.* A weight is a whole number of ``2^-bits``, rounded down; the root is rounded up; products are
rounded toward zero. Rounding makes every coordinate smaller, so the statement holds for what is computed. The square
root of a double is rounded correctly on every engine, so that all of them compute the same weights.

*Rows without a unit*, where the card says that each is a person of its own, and where removing a person removes one
such row. The person has one row in one group, so N = 1 <= R, and the weight is 1: the statement holds with no sum over
other rows. Weight 1 is ``2^bits``, so what such rows add is a whole number without any rounding, and many of them may
be added up before they are weighted: removing one changes the sum by what this row adds, bit for bit. The sum of k such
rows counts k people, each below ``2^30``, as any others. Of groups whose keys are not public such a person has one, and
keeps it, whatever the limit: no choice is made, so nobody else's rows can change it. A person with a unit is weighted
and chosen without these rows.

*A limit of its own* for each number that is measured. The statement holds for every whole number ``R >= 1`` in place
of that of groups and rows: the proof uses of it only that ``w N <= R``. So several numbers of one question may have
different R. N is the same for all of them, that of all the person's rows in the question, and each has the weight
``w_R = min(1, R / N)`` and the norm ``R * top``. They are separate measurements, whose costs add up. A mean is computed
from a sum and a number of one measurement, and so with one weight.

A person who is in at most ``groups`` groups with at most ``rows`` rows in each is within the limit: the noise is what
it would be if groups and rows were cut off one by one, and less is left out.

*Levels.* The same rows can be added up by several sets of columns, as ROLLUP does. For the l1 norm the weight does not
depend on the groups: at every level the same rows have the same weights, so that groups add up to the groups above
them, and what the person adds to all groups of a level has an l1 norm of at most ``R * top``, ``sum n_g`` being the
same N at every level. The l2 norm of a vector is at most its l1 norm, so the same R bounds that as well. People count
once in a group, which is another number at each level: of them ``level_groups`` groups count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

from sqlglot import exp

from dither.tables.query import nodes
from dither.tables.query.nodes import Dialect, binary, call, case, cast, double, integer, shift_right

MAX_TOTAL = 1 << 20
"""The most rows that one person may count for."""
_BITS = 20
_ROOM = 30
"""What one person adds is below ``2^30``, so that sums over people stay within 64 bits."""
_ROOT_UNITS = 64


@dataclass(frozen=True)
class Limits:
    """The most that one person counts for: ``groups`` groups of ``rows`` rows, in the l1 norm or the l2 norm.

    ``weighted`` is False where nobody can count for more, so that nothing is weighted: where every row is a person.
    ``exceeded`` is False where nobody can be in more than ``groups`` groups. ``level_groups`` is stated for one of
    several levels that are bounded together: how many groups of this level count where people are counted.
    ``rows_per_person`` is the norm itself, of all groups together, where it is stated for what is measured.

    >>> Limits(groups=4, rows=3, norm=1).total, Limits(groups=4, rows=3, norm=2).total
    (Fraction(12, 1), Fraction(6, 1))
    """

    groups: int
    rows: int
    norm: Literal[1, 2] = 1
    weighted: bool = True
    exceeded: bool = True
    max_bits: int = _BITS
    level_groups: int | None = None
    rows_per_person: int | None = None

    @cached_property
    def total(self) -> Fraction:
        """The norm R of what one person counts for, in rows: rounded down where weights see to it, otherwise up."""
        if self.rows_per_person is not None:
            return Fraction(self.rows_per_person)
        if self.norm == 1:
            return Fraction(self.groups * self.rows)
        square = _ROOT_UNITS**2 * self.groups * self.rows**2
        root = math.isqrt(square) if self.weighted else math.isqrt(square - 1) + 1
        return Fraction(root, _ROOT_UNITS)

    @property
    def of_people(self) -> Limits:
        """The limits for counts of people: each person counts as one row in each of at most ``groups`` groups."""
        groups = self.groups if self.level_groups is None else self.level_groups
        return replace(self, groups=groups, rows=1, weighted=self.exceeded, rows_per_person=None)

    def of_aggregate(self, rows_per_person: int | None) -> Limits:
        """Return the limits of an aggregate that states its own ``rows_per_person``; unchanged for None, and where
        every row is a person, so that nobody has several."""
        if rows_per_person is None or not self.weighted:
            return self
        return replace(self, rows_per_person=rows_per_person)

    def bits(self, top: int = 1) -> int:
        """Return b such that weighted sums, to which one row adds at most ``top``, are integers in units of 2^-b: as
        many bits as keep what one person adds below 2^30."""
        if not self.weighted:
            return 0
        return max(0, min(self.max_bits, _ROOM - (math.ceil(self.total) * top).bit_length()))

    def sensitivity(self, top: int = 1) -> Fraction:
        """Return the sensitivity R * top in units of 2^-bits: the norm of what one person adds to all groups, for rows
        that add at most ``top``."""
        return self.total * top * (1 << self.bits(top))

    def weight(self, size: exp.Expr, dialect: Dialect) -> exp.Expr:
        """Return the weight min(1, R / N) of a person's rows as SQL, in units of 2^-bits, rounded down.

        ``size`` is N, the number of the person's rows; for the l2 norm it is N^2, the sum of the squares of the
        numbers of rows in the person's groups, whose root is computed in 64ths of a row and rounded up.
        """
        one = 1 << self.bits()
        limit = math.floor(self.total if self.norm == 1 else self.total**2)
        scaled, norm = one * limit, size
        if self.norm == 2:
            scaled = int(one * self.total * _ROOT_UNITS)
            squares = binary("*", cast(size, "number"), double(float(_ROOT_UNITS**2)))
            root = cast(call("CEIL", call("SQRT", squares)), "integer")
            norm = binary("+", root, integer(1))  # a sum of squares above 2^53 is rounded, by much less than this
        return case(
            [(binary("<=", size, integer(limit)), integer(one))], nodes.integer_quotient(integer(scaled), norm, dialect)
        )

    def times_weight(self, x: exp.Expr, weight: exp.Expr, top: int) -> exp.Expr:
        """Return x * weight as SQL for an integer x >= 0, in units of 2^-bits(top), rounded down."""
        return shift_right(binary("*", x, weight), self.bits() - self.bits(top))


@dataclass(frozen=True)
class Level:
    """One of several levels that are made to agree: which columns of all of them it groups by."""

    hierarchy: int
    """Which levels it belongs to; a question may have several hierarchies."""
    columns: tuple[int, ...]
    sizes: tuple[int, ...]
    """How many public keys each column has."""


@dataclass(frozen=True)
class SharedBounds:
    """How an aggregation is bounded together with the others of its question, so that a ratio of their answers is an
    estimate of the ratio: all of them by the l1 norm, with the limit of the one that has the most groups.
    """

    rows: int
    """Which rows it is about: aggregations of the same rows have the same number."""
    most_groups: int
    level: Level | None = None
