"""Between a domain and the statement that counts its tables: codes of keys, columns of codes, and arrays of counts.

The statement itself is :mod:`dither.tables.compile.marginals`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dither.ledger.recorded import canonical
from dither.publish.covering import covering_tables
from dither.publish.domain import Attribute, Domain, Integers, Levels, contains
from dither.publish.residuals import margin
from dither.tables.compile.marginals import BinCodes, KeyCodes, RowCode, column_name
from dither.tables.execute.recorded_key import plain
from dither.tables.query.tree import Expression


def domain_digest(domain: Domain, expressions: Sequence[Expression]) -> str:
    """A digest of the attributes' keys, levels and expressions: a part of the key of a recorded publication.

    >>> from dither.tables.query.tree import Column
    >>> domain = Domain([Attribute.flat("sex", ["f", "m"])])
    >>> domain_digest(domain, [Column("sex")]) == domain_digest(domain, [Column("gender")])
    False
    """
    digest = hashlib.sha256()
    for attribute, expression in zip(domain.attributes, expressions, strict=True):
        described = {
            "value": plain(expression),
            "levels": list(attribute.level_names),
            "edges": None if attribute.edges is None else [float(edge) for edge in attribute.edges],
            "null": attribute.null,
            "other": None if attribute.other is None else str(attribute.other),
            "types": [str(keys.type) for keys in attribute.keys],
        }
        digest.update(canonical(described).encode() + b"\n")
        for keys, parents in zip(attribute.keys, attribute.parents, strict=True):
            digest.update(canonical([plain(key) for key in keys.to_pylist()]).encode() + b"\n")
            digest.update(np.ascontiguousarray(parents, dtype="<i8").tobytes())
    return digest.hexdigest()


def attribute_codes(attribute: Attribute, value: Expression, levels: tuple[int, ...]) -> RowCode:
    """How the codes of an attribute are found from its value in a row, at the levels that tables have.

    >>> from dither.tables.query.tree import Column
    >>> attribute_codes(Attribute.binned("age", [0, 18, 65]), Column("age"), (1,)).edges
    (0.0, 18.0, 65.0)
    """
    finest = attribute.sizes[-1]
    extra = (attribute.other is not None) + attribute.null
    depth = len(attribute.level_names)
    above = {level: attribute.ancestors(depth, level) for level in levels}
    null = finest - 1 if attribute.null else None
    other = finest - extra if attribute.other is not None else None
    if attribute.edges is not None:
        return BinCodes(attribute.name, value, attribute.edges, other, null, levels)
    return KeyCodes(
        attribute.name,
        value,
        attribute.keys[-1][: finest - extra],
        {level: above[level][: finest - extra] for level in levels},
        {level: attribute.sizes[level] for level in levels},
        None if other is None else {level: int(above[level][other]) for level in levels},
        None if null is None else {level: int(above[level][null]) for level in levels},
    )


def code_columns(domain: Domain, tables: Sequence[Levels]) -> list[tuple[str, ...]]:
    """The columns of the codes of each table that is no margin of another.

    >>> code_columns(Domain([Attribute.flat("sex", ["f", "m"]), Attribute.binned("age", [0, 18])]), [(1, 1), (0, 1)])
    [('c0_1', 'c1_1')]
    """
    return [
        tuple(column_name(i, level) for i, level in enumerate(table) if level)
        for table in covering_tables(domain, tables)
    ]


def table_counts(domain: Domain, tables: Sequence[Levels], lines: Any) -> dict[Levels, Integers]:
    """An array of whole numbers for each table, from the lines of the statement as Arrow; tables that are margins of
    others are added up from them.

    >>> import pyarrow as pa
    >>> lines = pa.table({"c0_1": [0, 1], "m0": [30, 40]})
    >>> table_counts(Domain([Attribute.flat("sex", ["f", "m"])]), [(1,), (0,)], lines)
    {(1,): array([30, 40]), (0,): array([70])}
    """
    names = lines.column_names[:-1]
    is_there = np.empty((len(names), lines.num_rows), dtype=bool)
    for i, name in enumerate(names):
        is_there[i] = np.asarray(lines.column(name).is_valid())
    sums = np.asarray(lines.column("m0"))
    counted: dict[Levels, Integers] = {}
    for levels, columns in zip(covering_tables(domain, tables), code_columns(domain, tables), strict=True):
        has_column = np.array([name in columns for name in names], dtype=bool)
        rows = np.flatnonzero(np.all(is_there == has_column[:, None], axis=0))
        shape = domain.shape(levels)
        cells = np.zeros(len(rows), dtype=np.int64)
        for i, level in enumerate(levels):
            if level:
                codes = lines.column(column_name(i, level)).take(rows).to_numpy()
                cells = cells * shape[i] + codes.astype(np.int64)
        table = np.zeros(domain.size(levels), dtype=np.int64)
        table[cells] = sums[rows]
        counted[levels] = table.reshape(shape)
    return {levels: _margin(domain, levels, counted) for levels in tables}


def _margin(domain: Domain, levels: Levels, counted: Mapping[Levels, Integers]) -> Integers:
    """A table from the smallest that was counted and has it as a margin."""
    source = min((table for table in counted if contains(table, levels)), key=domain.size)
    return margin(domain, counted[source], source, levels)
