"""Public totals: numbers that are known already, stated in the plan, which the published counts must meet.

They are never read from the data. An exact total computed from the private rows, even if a law requires its
publication, discloses something about every person in it: it is outside of every guarantee of differential privacy.

Any tables may be public. Two of them *agree* if their common margins are equal; then all of them together determine
every residual that is a margin of one of them, without contradiction. Whole, non-negative counts of which all are
margins need not exist. They do if the tables can be *joined one by one*, such that the common margin of a table with
all tables before it is a margin of one of these (a join tree): joining two tables fills, for every cell of their common
margin, a table with given row and column sums, which is always possible (:mod:`dither.publish.integers`). Nested levels
make no difference: a table by county is also one by state. Otherwise, as for all three pairs of three attributes,
integer programming searches for such counts, and totals without any are refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither.errors import InvalidArgument
from dither.publish.domain import Domain, Integers, Levels, common_margin, contains, finest
from dither.publish.residuals import Floats, Residuals, margin, margins

MAX_SOLVED_CELLS = 20_000
"""The largest table, in cells, that integer programming is used for."""
_NODES = 1_000
_SECONDS = 60.0


def joining_order(tables: Sequence[Levels]) -> list[Levels] | None:
    """Return the tables that are not margins of other ones, in an order in which they can be joined one by one; None if
    there is none.

    In that order, the common margin of a table with all tables before it is a margin of one of them (the running
    intersection property). The order is found from its end by Graham's reduction (1979).
    """
    distinct = [*dict.fromkeys(tables)]
    left = [table for table in distinct if not any(contains(other, table) for other in distinct if other != table)]
    order: list[Levels] = []
    while len(left) > 1:
        for table in reversed(left):
            others = [other for other in left if other != table]
            common = common_margin(table, finest(others))
            if any(contains(other, common) for other in others):
                left = others
                order.append(table)
                break
        else:
            return None
    return [*left, *reversed(order)]


def containing_cells(domain: Domain, table: Levels, coarse: Levels) -> Integers:
    """Return, for each cell of a table, the index of the cell of its margin ``coarse`` that contains it."""
    places = np.zeros((), dtype=np.int64)
    for attribute, fine, level in zip(domain.attributes, table, coarse, strict=True):
        places = np.add.outer(places * attribute.sizes[level], attribute.ancestors(fine, level))
    return places.ravel()


def common_table(domain: Domain, tables: Mapping[Levels, Integers]) -> Integers:
    """Return whole, non-negative counts, over the smallest possible table, of which all these public tables are
    margins; refuse tables for which the search finds none."""
    shown = [" × ".join(domain.names(levels)) or "the total" for levels in tables]
    among = f"{', '.join(shown[:-1])} and {shown[-1]}"
    core = finest(tables)
    if domain.size(core) > MAX_SOLVED_CELLS:
        raise InvalidArgument(
            "totals",
            "public totals that can be joined one by one, or that have at most "
            f"{MAX_SOLVED_CELLS:,} combinations of their keys",
            f"{among}, which have {domain.size(core):,}",
            "leave one of these tables out, or impose a table that holds two of them",
        )
    problem = _NearestTable.of(domain, core, tables)
    counts = problem.solve(np.zeros(domain.size(core)), _SECONDS)
    if counts is None:
        raise InvalidArgument(
            "totals",
            "public totals that whole, non-negative counts can have together",
            f"{among}: each two of them agree, but no counts were found that have all of them",
            "correct one of them, or leave it out",
        )
    return counts.reshape(domain.shape(core))


def nearest_table(domain: Domain, tables: Mapping[Levels, Integers], target: Floats, example: Integers) -> Integers:
    """Return whole counts near ``target`` of which these tables are margins, by a limited search; if it finds none,
    return ``example``, which has these margins."""
    core = finest(tables)
    counts = _NearestTable.of(domain, core, tables).solve(target.ravel(), None)
    return example if counts is None else counts.reshape(domain.shape(core))


@dataclass(frozen=True, eq=False)
class _NearestTable:
    """The integer program for whole, non-negative counts near a target, with given sums over sets of cells."""

    rows: Integers
    """For each one in the constraint matrix, the index of the sum that it belongs to."""
    cells: Integers
    """For each one in the constraint matrix, the index of the cell that it adds."""
    sums: Integers
    """The required sums."""

    @classmethod
    def of(cls, domain: Domain, core: Levels, tables: Mapping[Levels, Integers]) -> _NearestTable:
        """Return the program for the table ``core`` whose margins must be the public ``tables``."""
        size, before = domain.size(core), 0
        rows = []
        for levels, counts in tables.items():
            rows.append(containing_cells(domain, core, levels) + before)
            before += counts.size
        sums = np.concatenate([counts.ravel() for counts in tables.values()])
        return cls(np.concatenate(rows), np.tile(np.arange(size), len(tables)), sums)

    def solve(self, target: Floats, seconds: float | None) -> Integers | None:
        """Return the counts with the smallest l1 distance from ``target`` that a search limited in nodes, and to
        ``seconds`` if not None, finds; None if it finds no counts that meet all sums."""
        from scipy import sparse
        from scipy.optimize import Bounds, LinearConstraint, milp

        size = len(target)
        sums = sparse.csr_matrix((np.ones(len(self.rows)), (self.rows, self.cells)), (len(self.sums), size))
        one, none = sparse.identity(size, format="csr"), sparse.csr_matrix(sums.shape)
        constraints = [
            LinearConstraint(sparse.hstack([sums, none]), self.sums, self.sums),
            LinearConstraint(sparse.hstack([one, -one]), -np.inf, target),
            LinearConstraint(sparse.hstack([one, one]), target, np.inf),
        ]
        options = {"node_limit": _NODES, "mip_rel_gap": 0.01} | ({} if seconds is None else {"time_limit": seconds})
        result = milp(
            np.concatenate([np.zeros(size), np.ones(size)]),
            constraints=constraints,
            integrality=np.concatenate([np.ones(size), np.zeros(size)]),
            bounds=Bounds(0, np.inf),
            options=options,
        )
        if result.x is None:
            return None
        counts = np.rint(result.x[:size]).astype(np.int64)
        exact = np.bincount(self.rows, counts[self.cells], minlength=len(self.sums)).astype(np.int64)
        return counts if counts.min() >= 0 and np.array_equal(exact, self.sums) else None


_MOST = 1 << 52


@dataclass(frozen=True, eq=False)
class PublicTotals:
    """Public tables by their levels; made by :func:`public_totals`.

    >>> PublicTotals({(1,): np.array([4, 6])}).tables[1,]
    array([4, 6])
    """

    tables: Mapping[Levels, Integers]
    example: Integers | None = None
    """Whole counts of the smallest table of which all these tables are margins, if the tables cannot be joined one by
    one; else None."""

    def parts(self, residuals: Residuals) -> dict[Levels, Floats]:
        """Return the residuals that these totals determine, by their levels."""
        result: dict[Levels, Floats] = {}
        for table, counts in self.tables.items():
            exact = counts.astype(np.float64)
            result |= {
                levels: residuals.of(levels, exact, table) for levels in margins([table]) if levels not in result
            }
        return result

    def within(self, domain: Domain, levels: Levels) -> PublicTotals:
        """Return these totals reduced to a table: the common margin of each with the table, without repetitions.

        >>> from dither.publish.domain import Attribute
        >>> domain = Domain([Attribute.flat("sex", ["f", "m"]), Attribute.flat("region", ["n", "s"])])
        >>> public_totals(domain, {"sex": [4, 6], "region": [3, 7]}).within(domain, (1, 0)).tables
        {(1, 0): array([[4],
               [6]])}
        """
        reduced: dict[Levels, Integers] = {}
        for table, counts in self.tables.items():
            common = common_margin(table, levels)
            reduced[common] = margin(domain, counts, table, common)
        kept = {
            table: counts
            for table, counts in reduced.items()
            if not any(contains(other, table) for other in reduced if other != table)
        }
        example = self.example
        if example is not None:
            example = margin(domain, example, finest(self.tables), finest(kept))
        return PublicTotals(kept, example)


def public_totals(domain: Domain, totals: Mapping[Sequence[str] | str, Any] | None) -> PublicTotals:
    """Return public totals from numbers by the names of a table's levels, one for each cell; refuse those that
    disagree.

    The total of all rows has the name ``()``. Numbers of several attributes are in the order of the domain's
    attributes, the last one running fastest, or in an array of that shape.

    >>> from dither.publish.domain import Attribute
    >>> domain = Domain([Attribute.flat("region", ["n", "s", "w"]), Attribute.flat("sex", ["f", "m"])])
    >>> sorted(public_totals(domain, {"region": [1, 2, 7], "sex": [4, 6]}).tables)
    [(0, 1), (1, 0)]
    >>> public_totals(domain, {"region": [1, 2, 8], ("sex",): [4, 6]})
    Traceback (most recent call last):
    ...
    dither.InvalidArgument: totals: expected public totals that agree, got region and sex, which differ in the total.
    Fix: correct one of them, or leave it out.
    """
    tables: dict[Levels, Integers] = {}
    for names, numbers in (totals or {}).items():
        levels = domain.levels([names] if isinstance(names, str) else names)
        counts = _numbers(domain, levels, numbers)
        if levels in tables and np.any(tables[levels] != counts):
            raise _disagreement(domain, levels, levels, levels)
        tables[levels] = counts
    for first, second in itertools.combinations(tables, 2):
        common = common_margin(first, second)
        if np.any(margin(domain, tables[first], first, common) != margin(domain, tables[second], second, common)):
            raise _disagreement(domain, first, second, common)
    if not tables or joining_order([*tables]) is not None:
        return PublicTotals(tables)
    return PublicTotals(tables, common_table(domain, tables))


def _disagreement(domain: Domain, first: Levels, second: Levels, common: Levels) -> InvalidArgument:
    """Return the refusal of two public totals, ``first`` and ``second``, whose ``common`` margin differs."""
    return InvalidArgument(
        "totals",
        "public totals that agree",
        f"{_shown(domain, first)} and {_shown(domain, second)}, which differ in {_shown(domain, common)}",
        "correct one of them, or leave it out",
    )


def _numbers(domain: Domain, levels: Levels, numbers: Any) -> Integers:
    """Return the numbers of a public table as 64-bit integers in its shape; refuse negative numbers, fractions, and a
    wrong number of them."""
    try:
        array = np.atleast_1d(np.asarray(numbers))
    except ValueError:  # rows of different lengths
        array = np.zeros(0)
    whole = array.dtype.kind in "iu" or (array.dtype.kind == "f" and bool(np.all(array == np.floor(array))))
    right_size = array.size == domain.size(levels)
    if right_size and array.ndim > 1:
        right_size = [n for n in array.shape if n > 1] == [n for n in domain.shape(levels) if n > 1]
    if not right_size or not whole or np.any(array < 0) or np.any(array > _MOST):
        raise InvalidArgument(
            f"totals of {_shown(domain, levels)}",
            f"{domain.size(levels):,} whole number(s) from 0 on",
            "a different number of values, fractions, or negative numbers",
            "give one public number for each place, in the order of its keys",
        )
    return array.astype(np.int64).reshape(domain.shape(levels))


def _shown(domain: Domain, levels: Levels) -> str:
    """Return the names of a table, joined by ×."""
    return " × ".join(domain.names(levels)) or "the total"
