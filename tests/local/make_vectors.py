"""Writes vectors.json: reports, hashes and tables with which a client in another language is checked.

Run it only for a new version of the format: the vectors of version 1 do not change.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import dither as dp
from dither.local.finite_fields import prime_power, primitive_polynomial, singer_difference_set
from dither.local.sketch import hash_columns, value_number
from dither.randomness import SeededSource


def batch(name, values, **parameters):
    readable = {key: value.hex() if isinstance(value, bytes) else value for key, value in parameters.items()}
    p = getattr(dp.local, name)(**parameters)
    reports = p.privatize(values, source=SeededSource(1))
    estimate = p.estimate(reports)
    shares = estimate.unbiased if name == "Distribution" else estimate.value if name == "Mean" else estimate.shares
    return {
        "protocol": name,
        "parameters": readable,
        "canonical": p.canonical_parameters,
        "epsilon": reports.epsilon,
        "batch": reports.batch.hex(),
        "records": [bytes(row).hex() for row in reports.records],
        "bytes": reports.to_bytes().hex(),
        "shares": np.atleast_1d(shares).tolist(),
    }


def hashed(value, row, rows, width, key):
    kind = {str: "text", bytes: "bytes", int: "number"}[type(value)]
    number = value_number(value)
    [column] = hash_columns(np.array([number], dtype=np.uint64), np.array([row]), key, rows, width).tolist()
    shown = value.hex() if isinstance(value, bytes) else value
    return {
        "value": shown, "type": kind, "number": f"{number:016x}", "key": key.hex(), "row": row, "rows": rows,
        "width": width, "column": column,
    }  # fmt: skip


def field(q, t):
    p, e = prime_power(q)
    polynomial = list(primitive_polynomial(p, e * t))
    return {"q": q, "t": t, "p": p, "m": e * t, "polynomial": polynomial, "set": singer_difference_set(q, t).tolist()}


if __name__ == "__main__":
    key = bytes(range(16))
    vectors = {
        "version": 1,
        "batches": [
            batch("RandomizedResponse", [0, 1, 299], categories=300, epsilon=1),
            batch("SubsetSelection", [0, 1, 12], categories=13, epsilon=1),
            batch("SubsetSelection", ["b", "a"], categories=["a", "b", "c"], epsilon=0.5),
            batch("UnaryEncoding", [0, 1, 12], categories=13, epsilon=1),
            batch("UnaryEncoding", [0, 1, 12], categories=13, epsilon=1, optimized=False),
            batch("LocalHashing", [0, 1, 99], categories=100, epsilon=1),
            batch("HadamardResponse", [0, 1, 99], categories=100, epsilon=2),
            batch("ProjectiveGeometryResponse", [0, 1, 99], categories=100, epsilon=1),
            *(
                batch(name, ["a", "b"], categories=["a", "b", "c"], epsilon=4, rows=8, width=16, key=key)
                for name in ("CountMeanSketch", "HadamardCountMeanSketch")
            ),
            *(batch("Mean", [0.0, 2.5, 10.0], bounds=[0, 10], epsilon=epsilon) for epsilon in (0.5, 1, 4)),
            batch("Distribution", [0.0, 37.5, 100.0], bounds=[0, 100], bins=16, epsilon=1),
            batch("PaddedSets", [["a", "b"], ["c"], []], categories=["a", "b", "c"], max_items=2, epsilon=2),
        ],
        "hashes": [
            hashed(value, row, 65536, width, chosen)
            for value in ("", "a", "straße", "😀", b"", b"\x00\xff", 0, 1, 2**63 - 1)
            for row, width, chosen in ((0, 1024, bytes(16)), (65535, 32768, key))
        ],
        "fields": [field(2, 4), field(3, 3), field(4, 3), field(5, 3), field(8, 3), field(9, 3), field(53, 3)],
    }
    text = json.dumps(vectors, ensure_ascii=False, indent=1) + "\n"
    (Path(__file__).parent / "vectors.json").write_text(text, encoding="utf-8")
