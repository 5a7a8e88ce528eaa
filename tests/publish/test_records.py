"""Records that give exactly the tables."""

from __future__ import annotations

import numpy as np
import pytest

from dither.publish import WholeCounts, records
from dither.publish.residuals import margins
from support_publish import random_domain


@pytest.mark.parametrize("seed", range(6))
def test_records_grouped_by_any_table_are_its_counts(seed):
    domain, finest = random_domain(seed)
    counts = np.random.default_rng(seed).integers(0, 4, domain.shape(finest))
    whole = WholeCounts(domain, finest, counts)
    rows = records(whole)
    assert rows.num_rows == counts.sum()
    for levels in margins([finest]):
        names = domain.names(levels)
        if not names:
            continue
        grouped = rows.group_by(list(names)).aggregate([([], "count_all")]).to_pylist()
        observed = {tuple(row[name] for name in names): row["count_all"] for row in grouped}
        table = whole.table(names)
        keys = [
            attribute.keys[level - 1].to_pylist()
            for attribute, level in zip(domain.attributes, levels, strict=True)
            if level
        ]
        for place in np.ndindex(table.shape):
            key = tuple(names[i] for names, i in zip(keys, place, strict=True))
            assert observed.get(key, 0) == table[place]


def test_ancestors_are_columns_of_the_records():
    domain, finest = next(pair for pair in map(random_domain, range(50)) if max(pair[1]) == 3)
    rows = records(WholeCounts(domain, finest, np.ones(domain.shape(finest), dtype=np.int64)))
    attribute = domain.attributes[finest.index(3)]
    fine, coarse = attribute.level_names[2], attribute.level_names[0]
    places = attribute.codes(rows.column(fine).to_pylist())
    above = [attribute.keys[0][int(i)].as_py() for i in attribute.ancestors(3, 1)[places]]
    assert rows.column(coarse).to_pylist() == above
