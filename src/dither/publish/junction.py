"""Junction trees: cliques of attributes that hold all measured tables, joined so that sums can be passed along."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Clique = tuple[int, ...]
"""Attributes by their place, in increasing order."""


@dataclass(frozen=True)
class JunctionTree:
    """Cliques in an order in which the parent of each comes before it; the first has none (-1).

    >>> tree = junction_tree([2, 3, 4, 5], [(0, 1), (1, 2), (2, 3)])
    >>> sorted(tree.cliques), tree.size([2, 3, 4, 5])
    ([(0, 1), (1, 2), (2, 3)], 38)
    """

    cliques: tuple[Clique, ...]
    parents: tuple[int, ...]

    def separator(self, place: int) -> Clique:
        """The attributes that a clique shares with its parent."""
        above = self.cliques[self.parents[place]] if self.parents[place] >= 0 else ()
        return tuple(attribute for attribute in self.cliques[place] if attribute in above)

    def size(self, sizes: Sequence[int]) -> int:
        """The number of cells of all cliques."""
        return sum(cells(clique, sizes) for clique in self.cliques)

    def home(self, table: Clique) -> int:
        """The first clique that holds a table."""
        return next(i for i, clique in enumerate(self.cliques) if {*table} <= {*clique})


def cells(attributes: Iterable[int], sizes: Sequence[int]) -> int:
    """The number of cells of a table of these attributes.

    >>> cells((0, 2), [2, 3, 4])
    8
    """
    return math.prod(sizes[attribute] for attribute in attributes)


def junction_tree(sizes: Sequence[int], tables: Iterable[Clique]) -> JunctionTree:
    """A junction tree whose cliques hold all these tables: attributes are eliminated one by one, always the one whose
    clique is smallest; cliques are joined where they share the most.
    """
    cliques = maximal_cliques(sizes, tables)
    order, parents = [0], [-1]
    left = [*range(1, len(cliques))]
    while left:
        _, best, above = max(
            (cells({*cliques[i]} & {*cliques[j]}, sizes) if {*cliques[i]} & {*cliques[j]} else 0, -i, place)
            for place, j in enumerate(order)
            for i in left
        )
        order.append(-best)
        parents.append(above)
        left.remove(-best)
    return JunctionTree(tuple(cliques[i] for i in order), tuple(parents))


def maximal_cliques(sizes: Sequence[int], tables: Iterable[Clique]) -> list[Clique]:
    """The cliques of the graph after elimination.

    >>> maximal_cliques([2, 2, 2, 2], [(0, 1), (1, 2), (2, 3), (0, 3)])
    [(0, 1, 3), (1, 2, 3)]
    """
    neighbors: dict[int, set[int]] = {attribute: set() for attribute in range(len(sizes))}
    for table in tables:
        for attribute in table:
            neighbors[attribute].update(other for other in table if other != attribute)
    eliminated: list[set[int]] = []
    while neighbors:
        chosen = min(neighbors, key=lambda i: (sizes[i] * cells(neighbors[i], sizes), i))
        around = neighbors.pop(chosen)
        eliminated.append({chosen, *around})
        for attribute in around:
            neighbors[attribute] |= around - {attribute}
            neighbors[attribute].discard(chosen)
    cliques: list[set[int]] = []
    for clique in eliminated:
        if not any(clique <= other for other in cliques):
            cliques.append(clique)
    return sorted(tuple(sorted(clique)) for clique in cliques)
