"""Synthetic records beside the noisy tables that they were made from: how close they are, and how close they could be.

Only what was released is used, so that a comparison costs nothing and can be published with the records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from dither.publish.contrasts import Floats
from dither.publish.graphical import Measurement
from dither.publish.junction import Clique, cells
from dither.publish.selection import combined
from dither.publish.synthesizer import Synthesis


@dataclass(frozen=True)
class TableComparison:
    """One measured table: its noisy counts and those of the records, in rows of the private table.

    >>> comparison = TableComparison((0,), ("sex",), np.array([60.0, 40.0]), np.array([50.0, 50.0]), 5.0)
    >>> comparison.distance, round(comparison.expected_distance, 3)
    (0.1, 0.04)
    """

    table: Clique
    names: tuple[str, ...]
    noisy: Floats = field(repr=False)
    """The released counts: unbiased, with noise."""
    records: Floats = field(repr=False)
    """The counts of the records, in proportion to as many records as the noisy counts say."""
    sigma: float
    """The standard deviation of the noise of a released count."""

    @property
    def distance(self) -> float:
        """The total variation distance of the records from the released counts."""
        return float(np.abs(self.noisy - self.records).sum() / 2 / max(self.records.sum(), 1.0))

    @property
    def expected_distance(self) -> float:
        """How far the released counts are expected to be from the exact ones: what noise alone does.

        Records that were exactly right would be so far from the released counts.
        """
        return math.sqrt(2 / math.pi) * self.sigma * self.noisy.size / 2 / max(float(self.records.sum()), 1.0)


def comparisons(synthesis: Synthesis) -> list[TableComparison]:
    """Every measured table beside the records, in the order of the columns, smaller tables first.

    >>> from dither.guarantees import ZCDP
    >>> from dither.publish import Attribute, Domain, Synthesizer
    >>> synthesis = Synthesizer(Domain([Attribute.flat("sex", ["f", "m"])]), ZCDP(1)).release({(1,): [300, 200]})
    >>> comparisons(synthesis)[0].names
    ('sex',)
    """
    return [_comparison(synthesis, table) for table in sorted(_measured(synthesis), key=lambda item: (len(item), item))]


def column_comparisons(synthesis: Synthesis) -> list[TableComparison]:
    """Every column beside the records: its noisy counts are sums of the measured table that says most about it."""
    sizes, measured, result = synthesis.laws.sizes, _measured(synthesis), []
    for place in range(len(sizes)):
        having = [item for table, item in measured.items() if place in table]
        if not having:
            continue
        variances = [item.variance * cells(item.table, sizes) / sizes[place] for item in having]
        best = having[int(np.argmin(variances))]
        axes = tuple(axis for axis, other in enumerate(best.table) if other != place)
        margin = Measurement((place,), np.asarray(best.values.sum(axis=axes)), min(variances))
        result.append(_comparison(synthesis, (place,), margin))
    return result


def _measured(synthesis: Synthesis) -> dict[Clique, Measurement]:
    measured: dict[Clique, Measurement] = {}
    for item in synthesis.rounds:
        measured[item.table] = combined(measured.get(item.table), item.measurement)
    return measured


def _comparison(synthesis: Synthesis, table: Clique, item: Measurement | None = None) -> TableComparison:
    item = item or _measured(synthesis)[table]
    shape = [synthesis.laws.sizes[place] for place in table]
    codes = np.ravel_multi_index([synthesis.codes[place] for place in table], shape)
    counts = np.bincount(codes, minlength=math.prod(shape)).reshape(shape)
    total = synthesis.laws.total * synthesis.unit
    records = counts.astype(np.float64) * (total / max(int(counts.sum()), 1))
    names = tuple(synthesis.columns[place].attribute.name for place in table)
    return TableComparison(
        table, names, item.values * synthesis.unit, records, math.sqrt(item.variance) * synthesis.unit
    )
