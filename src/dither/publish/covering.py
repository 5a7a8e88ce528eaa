"""Fewer tables to count than are wanted: small tables are margins of tables that are not much larger.

An engine adds up every row once for each table that it is asked for. Forty tables of two attributes are margins of some
ten tables of four, whose cells are still few, and adding up cells costs nothing.

>>> from dither.publish.domain import Attribute
>>> domain = Domain([Attribute.flat(name, range(4)) for name in "abcd"])
>>> covering_tables(domain, [(1, 1, 0, 0), (0, 0, 1, 1), (1, 0, 0, 1)])
[(1, 1, 1, 1)]
>>> covering_tables(domain, [(1, 1, 0, 0), (0, 0, 1, 1), (1, 0, 0, 1)], most_cells=64)
[(1, 1, 0, 1), (0, 0, 1, 1)]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dither.publish.domain import Domain, Levels
from dither.publish.mechanism import tables_needed

MOST_CELLS = 4096
"""The cells of a table that several are counted from: so many sums fit in the caches of a processor."""
_MOST_TABLES = 2_000


def covering_tables(domain: Domain, tables: Sequence[Levels], most_cells: int = MOST_CELLS) -> list[Levels]:
    """Tables of which each of these is a margin: as few as a greedy search finds, of at most so many cells, or those
    that are larger themselves.

    A table begins with the largest one that is not covered yet, and grows by whichever other keeps it smallest.
    """
    needed = sorted(tables_needed(tables), key=domain.size, reverse=True)
    if len(needed) > _MOST_TABLES:
        return needed
    sizes = [np.array(attribute.sizes, dtype=np.float64) for attribute in domain.attributes]
    waiting = np.array(needed, dtype=np.int64).reshape(len(needed), len(sizes))
    result: list[Levels] = []
    while len(waiting):
        table, waiting = waiting[0], waiting[1:]
        while len(waiting):
            larger = np.maximum(waiting, table)
            cells = np.prod([size[larger[:, i]] for i, size in enumerate(sizes)], axis=0)
            best = int(np.argmin(cells))
            if cells[best] > most_cells:
                break
            table = larger[best]
            waiting = waiting[np.any(waiting > table, axis=1)]
        result.append(tuple(int(level) for level in table))
    return result
