"""Several public tables at once: in which order they can be joined, and whole counts that have them all as margins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dither.errors import InvalidArgument
from dither.publish.contrasts import Floats
from dither.publish.domain import Domain, Integers, Levels, contains, finest

MAX_SOLVED_CELLS = 20_000
"""The most cells of a table that integer programming looks for."""
_NODES = 1_000
_SECONDS = 60.0


def joining_order(tables: Sequence[Levels]) -> list[Levels] | None:
    """The tables that are no margins of others, in an order in which they can be joined one by one; None if there is
    none.

    In that order, what a table has in common with all tables before it is a margin of one of them (the running
    intersection property). It is found from the end: a table that has it among all others is put last (Graham 1979).

    >>> joining_order([(1, 0, 0), (0, 1, 1), (1, 1, 0)])
    [(0, 1, 1), (1, 1, 0)]
    >>> joining_order([(1, 1, 0), (0, 1, 1), (1, 0, 1)]) is None
    True
    """
    distinct = [*dict.fromkeys(tables)]
    left = [table for table in distinct if not any(contains(other, table) for other in distinct if other != table)]
    order: list[Levels] = []
    while len(left) > 1:
        for table in reversed(left):
            others = [other for other in left if other != table]
            common = tuple(map(min, table, finest(others)))
            if any(contains(other, common) for other in others):
                left = others
                order.append(table)
                break
        else:
            return None
    return [*left, *reversed(order)]


def place_in(domain: Domain, table: Levels, coarse: Levels) -> Integers:
    """For every cell of a table, in order, the cell of a margin of it that it belongs to.

    >>> from dither.publish.domain import Attribute
    >>> domain = Domain([Attribute.flat("i", range(2)), Attribute.flat("j", range(3))])
    >>> place_in(domain, (1, 1), (0, 1))
    array([0, 1, 2, 0, 1, 2])
    """
    places = np.zeros((), dtype=np.int64)
    for attribute, fine, level in zip(domain.attributes, table, coarse, strict=True):
        places = np.add.outer(places * attribute.sizes[level], attribute.ancestors(fine, level))
    return places.ravel()


def common_table(domain: Domain, tables: Mapping[Levels, Integers]) -> Integers:
    """Whole, non-negative counts that have all these tables as margins; refused where there are none.

    >>> from dither.publish.domain import Attribute
    >>> domain = Domain([Attribute.flat(name, range(2)) for name in "ijk"])
    >>> pairs = {(1, 1, 0): [[1, 0], [0, 1]], (0, 1, 1): [[1, 0], [0, 1]], (1, 0, 1): [[1, 0], [0, 1]]}
    >>> common_table(domain, {levels: np.array(counts) for levels, counts in pairs.items()}).ravel()
    array([1, 0, 0, 0, 0, 0, 0, 1])
    """
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
    problem = _Problem.of(domain, core, tables)
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
    """Whole counts near a target that have these tables as margins; the example, which has, where none is found."""
    core = finest(tables)
    counts = _Problem.of(domain, core, tables).solve(target.ravel(), None)
    return example if counts is None else counts.reshape(domain.shape(core))


@dataclass(frozen=True, eq=False)
class _Problem:
    """Whole, non-negative counts with given sums over sets of cells."""

    rows: Integers
    cells: Integers
    """The sums and the cells that belong to them, pair by pair."""
    sums: Integers

    @classmethod
    def of(cls, domain: Domain, core: Levels, tables: Mapping[Levels, Integers]) -> _Problem:
        size, before = domain.size(core), 0
        rows = []
        for levels, counts in tables.items():
            rows.append(place_in(domain, core, levels) + before)
            before += counts.size
        sums = np.concatenate([counts.ravel() for counts in tables.values()])
        return cls(np.concatenate(rows), np.tile(np.arange(size), len(tables)), sums)

    def solve(self, target: Floats, seconds: float | None) -> Integers | None:
        """The counts with the smallest sum of distances to the target, as far as the search goes."""
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
