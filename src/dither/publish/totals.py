"""Totals that are public anyway, imposed on what is published as numbers of the plan.

They are never read from the data. A total that is published exactly because a law or a custom says so, computed from
the private rows, tells something about every person in it that no noise hides: it is outside of every guarantee of
differential privacy.

Any tables may be public. Two of them *agree* if their common margins are equal; then all of them together determine
every residual that is a margin of one of them, without contradiction. Whether there are whole, non-negative counts that
have them all as margins is another question. Where the tables can be *joined one by one*, so that what a table has in
common with all tables before it is a margin of one of these (a join tree), agreement is enough: joining two tables is
to fill, for every cell of their common margin, a table with given sums of rows and columns, which is always possible
(:mod:`dither.publish.integers`). Places inside places make no difference: a table of counties has states, too. Where
tables cannot be joined so, such as all three pairs of three attributes, integer programming looks for one
, and what has none is refused.

Several public tables at once: in which order they can be joined, and whole counts that have them all as margins.
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
"""The most cells of a table that integer programming looks for."""
_NODES = 1_000
_SECONDS = 60.0


def joining_order(tables: Sequence[Levels]) -> list[Levels] | None:
    """Return the tables that are no margins of others, in an order in which they can be joined one by one; None if
    there is none.

    In that order, what a table has in common with all tables before it is a margin of one of them (the running
    intersection property). It is found from the end: a table that has it among all others is put last (Graham 1979).
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


def place_in(domain: Domain, table: Levels, coarse: Levels) -> Integers:
    """Return, for every cell of a table, the index of the cell of a margin that contains it."""
    places = np.zeros((), dtype=np.int64)
    for attribute, fine, level in zip(domain.attributes, table, coarse, strict=True):
        places = np.add.outer(places * attribute.sizes[level], attribute.ancestors(fine, level))
    return places.ravel()


def common_table(domain: Domain, tables: Mapping[Levels, Integers]) -> Integers:
    """Return whole, non-negative counts that have all these tables as margins; refused where there are none."""
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
    """Return whole counts near a target that have these tables as margins.

    If the search finds none, the example, which has these margins, is returned.
    """
    core = finest(tables)
    counts = _NearestTable.of(domain, core, tables).solve(target.ravel(), None)
    return example if counts is None else counts.reshape(domain.shape(core))


@dataclass(frozen=True, eq=False)
class _NearestTable:
    """Whole, non-negative counts with given sums over sets of cells."""

    rows: Integers
    cells: Integers
    """The sums and the cells that belong to them, pair by pair."""
    sums: Integers

    @classmethod
    def of(cls, domain: Domain, core: Levels, tables: Mapping[Levels, Integers]) -> _NearestTable:
        """Return the program whose constraints are the sums of the cells in each cell of the given margins.

        ``core`` is the table to find, and ``tables`` has the public counts of its margins. The matrix of the
        constraints is given by the rows and columns of its ones.
        """
        size, before = domain.size(core), 0
        rows = []
        for levels, counts in tables.items():
            rows.append(place_in(domain, core, levels) + before)
            before += counts.size
        sums = np.concatenate([counts.ravel() for counts in tables.values()])
        return cls(np.concatenate(rows), np.tile(np.arange(size), len(tables)), sums)

    def solve(self, target: Floats, seconds: float | None) -> Integers | None:
        """Return the counts with the smallest sum of distances to the target that a limited search finds; None if it
        finds none."""
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
    """Tables of public numbers; use :func:`public_totals`.

    >>> PublicTotals({(1,): np.array([4, 6])}).tables[1,]
    array([4, 6])
    """

    tables: Mapping[Levels, Integers]
    example: Integers | None = None
    """Whole counts that have all these tables as margins, where the tables cannot be joined one by one: of the smallest
    table that they are margins of."""

    def parts(self, residuals: Residuals) -> dict[Levels, Floats]:
        """Return the residuals that these numbers determine."""
        result: dict[Levels, Floats] = {}
        for table, counts in self.tables.items():
            exact = counts.astype(np.float64)
            result |= {
                levels: residuals.of(levels, exact, table) for levels in margins([table]) if levels not in result
            }
        return result

    def within(self, domain: Domain, levels: Levels) -> PublicTotals:
        """Return what these totals say about a table: their margins that are margins of it, without repetitions.

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
    """Check totals that are to be imposed: by the names of a table's levels, one number for each cell.

    A total of everybody has the name ``()``. Numbers of several attributes stand in the order of the domain's
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
    """Return public totals as whole numbers in the shape of a table; anything else is refused."""
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
