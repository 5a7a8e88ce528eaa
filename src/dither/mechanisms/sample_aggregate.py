"""Sample and aggregate: any function of the data, made private by running it on disjoint blocks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.callbacks import outcome, silenced
from dither.errors import InvalidArgument
from dither.exact import exactly
from dither.mechanisms.pictures import Pictured
from dither.randomness import Source, resolve
from dither.validation import Kind, as_records


@dataclass(frozen=True)
class SampleAndAggregate(Pictured):
    """Run ``fn`` on disjoint random blocks of the data and aggregate the results privately.

    *Statement.* Replacing a record changes one block and so one of the ``blocks`` results: an aggregate that is
    private for the results, under :data:`~dither.ReplaceOne`, is private for the data, whatever ``fn`` does
    (Nissim, Raskhodnikova and Smith 2007). The guarantee is the aggregate's.

    *How.* Rows are assigned to blocks by a random permutation from the secure source. A result is a number; one
    that is not finite, or an exception, counts as the lower bound, and warnings are not shown, so that nothing but
    the aggregate depends on the data. ``fn`` must not keep anything between calls or have effects of its own.

    *Types.* ``fn`` gets arrays of float64, NaN for what is missing or no number, whatever the records are: pandas
    makes floats of whole numbers once one is missing, and no record may change what ``fn`` sees of the others.
    ``kind="integer"`` or ``kind="label"`` declares another type; ``columns`` is how many a list of rows has.

    Examples
    --------
    >>> import numpy as np
    >>> import dither as dp
    >>> blocks = SampleAndAggregate(np.mean, blocks=50, bounds=(0, 10))
    >>> results = blocks.results(np.full(1000, 4.0))
    >>> abs(dp.stats.median(results, bounds=(0, 10), epsilon=1) - 4) < 6
    True
    """

    fn: Callable[[NDArray[Any]], float]
    blocks: int
    bounds: tuple[float, float]
    kind: Kind | None = None
    columns: int | None = None

    def __post_init__(self) -> None:
        """Check the parameters: at least two blocks, valid bounds, a known ``kind`` and a number of columns."""
        arguments.whole(self.blocks, "blocks", 2)
        arguments.bounds(self.bounds)
        as_records([], self.kind)
        if self.columns is not None:
            arguments.whole(self.columns, "columns")

    def results(self, x: Any, *, source: Source | None = None) -> NDArray[np.float64]:
        """Return one bounded number for each block, to be aggregated privately.

        They are not private themselves, but each record changes only one of them.
        """
        rows = as_records(x, self.kind, columns=self.columns)
        if rows.shape[0] < self.blocks:
            raise InvalidArgument("x", f"at least as many rows as blocks, {self.blocks}", "fewer", "use fewer blocks")
        low, high = (float(exactly(end)) for end in arguments.bounds(self.bounds))
        order = np.argsort(resolve(source).words(rows.shape[0]), kind="stable")
        results = []
        with silenced():
            for part in np.array_split(order, self.blocks):
                value = outcome(self._result, rows[part])
                results.append(low if value is None else min(max(value, low), high))
        return np.array(results)

    def _result(self, rows: NDArray[Any]) -> float | None:
        """Return the function's value on the rows of one block; None if it is not finite."""
        value = float(self.fn(rows))
        return value if math.isfinite(value) else None
