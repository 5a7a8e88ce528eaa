"""Records that give exactly the whole counts: as many rows of each kind as the counts say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from dither.publish.integers import WholeCounts


def records(counts: WholeCounts) -> Any:
    """One row for each person, as an Arrow table with a column for every level of every attribute in the tables.

    Columns are dictionaries, so that a million rows take a few megabytes. Rows stand in the order of the keys.

    >>> from dither.publish import Attribute, Domain
    >>> domain = Domain([Attribute.flat("sex", ["f", "m"]), Attribute.flat("region", ["n", "s"])])
    >>> records(WholeCounts(domain, (1, 1), np.array([[1, 0], [0, 2]]))).to_pydict()
    {'sex': ['f', 'm', 'm'], 'region': ['n', 's', 's']}
    """
    flattened = counts.counts.ravel()
    present = np.flatnonzero(flattened)
    rows = np.repeat(present, flattened[present])
    columns = {}
    places = np.unravel_index(rows, counts.counts.shape)
    for attribute, level, place in zip(counts.domain.attributes, counts.levels, places, strict=True):
        for depth in range(1, level + 1):
            codes = attribute.ancestors(level, depth).astype(np.int32)[place]
            keys = attribute.keys[depth - 1]
            nulls = (
                codes == len(keys) - 1 if attribute.null else None
            )  # no value, rather than a value of the dictionary
            columns[attribute.level_names[depth - 1]] = pa.DictionaryArray.from_arrays(
                pa.array(codes, mask=nulls), keys[: len(keys) - attribute.null]
            )
    if not columns:  # a plan of the total alone: rows without columns
        return pa.table({"person": pa.nulls(len(rows))})
    return pa.table(columns)
