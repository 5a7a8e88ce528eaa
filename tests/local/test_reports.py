"""The byte format of reports and the keyed hash, against their specification, and the vectors for other languages."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import dither as dp
from dither.errors import InvalidData, WrongType
from dither.local import sketch
from dither.local.finite_fields import primitive_polynomial, singer_difference_set
from dither.local.reports import HEADER_BYTES, Reports, protocol_name
from support import each

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text(encoding="utf-8"))
P = dp.local.SubsetSelection(categories=20, epsilon=1)


def specified_bytes(code, epsilon, text, batch, records):
    """A batch, written from the specification."""
    header = b"DLRP" + bytes([1, code, 0, 0]) + struct.pack("<d", epsilon) + hashlib.sha256(text.encode()).digest()[:8]
    header += batch + struct.pack("<QI", len(records), len(records[0]))
    body = b"".join(records)
    return header + struct.pack("<I", zlib.crc32(header + body)) + body


def build(vector):
    parameters = dict(vector["parameters"])
    if "key" in parameters:
        parameters["key"] = bytes.fromhex(parameters["key"])
    return getattr(dp.local, vector["protocol"])(**parameters)


@pytest.mark.parametrize("vector", VECTORS["batches"], ids=lambda vector: vector["protocol"])
def test_batches_are_what_the_vectors_say(vector):
    p = build(vector)
    assert p.canonical_parameters == vector["canonical"]
    data = bytes.fromhex(vector["bytes"])
    records = [bytes.fromhex(record) for record in vector["records"]]
    batch = bytes.fromhex(vector["batch"])
    assert data == specified_bytes(p.wire_code, vector["epsilon"], vector["canonical"], batch, records)
    reports = Reports.from_bytes(data)
    assert reports.to_bytes() == data
    assert [bytes(row) for row in reports.records] == records
    estimate = p.estimate(data)
    shares = {"Mean": "value", "Distribution": "unbiased"}.get(vector["protocol"], "shares")
    assert np.atleast_1d(getattr(estimate, shares)) == pytest.approx(np.array(vector["shares"]), abs=1e-9)


@each("vector", VECTORS["hashes"])
def test_the_keyed_hash_is_what_the_vectors_and_the_specification_say(vector):
    value = vector["value"] if vector["type"] != "bytes" else bytes.fromhex(vector["value"])
    if vector["type"] == "number":
        content = b"i" + struct.pack("<Q", value)
    else:
        content = b"s" + value.encode() if vector["type"] == "text" else b"b" + value
    x = int.from_bytes(hashlib.sha256(content).digest()[:8], "little")
    assert sketch.value_number(value) == x == int(vector["number"], 16)
    key, row, width = bytes.fromhex(vector["key"]), vector["row"], vector["width"]
    digest = hashlib.sha256(b"dither local hash 1" + key + struct.pack("<I", row)).digest()
    a, b, c = struct.unpack("<3Q", digest[:24])
    column = ((((a * (x & 0xFFFFFFFF) + b * (x >> 32) + c) % 2**64) >> 32) * width) >> 32
    rows = vector["rows"]
    [computed] = sketch.hash_columns(np.array([x], dtype=np.uint64), np.array([row]), key, rows, width)
    assert computed == column == vector["column"]


@pytest.mark.parametrize("vector", VECTORS["fields"], ids=lambda vector: f"{vector['q']}-{vector['t']}")
def test_difference_sets_are_what_the_vectors_say(vector):
    assert singer_difference_set(vector["q"], vector["t"]).tolist() == vector["set"]
    assert list(primitive_polynomial(vector["p"], vector["m"])) == vector["polynomial"]


def test_columns_are_uniform_and_pairs_of_them_independent():
    """Over many rows: chi-square of pairs of columns of two values, at 1e-9."""
    from scipy import stats

    rows, width = 1 << 16, 8
    numbers = np.array([sketch.value_number(word) for word in ("one", "two")], dtype=np.uint64)
    columns = sketch.hash_columns(numbers[:, None], np.arange(rows), bytes(16), rows, width)
    counts = np.bincount(columns[0] * width + columns[1], minlength=width * width)
    assert stats.chisquare(counts).pvalue > 1e-9


def test_every_protocol_has_vectors():
    kinds = [kind for kind in vars(dp.local).values() if isinstance(kind, type) and hasattr(kind, "wire_code")]
    assert {kind.__name__ for kind in kinds} == {vector["protocol"] for vector in VECTORS["batches"]}


def test_every_protocol_has_a_number_of_its_own():
    kinds = [kind for kind in vars(dp.local).values() if isinstance(kind, type) and hasattr(kind, "wire_code")]
    codes = [kind.wire_code for kind in kinds]
    assert len(set(codes)) == len(codes)
    for kind in kinds:
        assert protocol_name(kind.wire_code) == kind.__name__


def test_truncated_and_damaged_bytes_are_refused():
    data = P.privatize([1, 2, 3]).to_bytes()
    assert len(data) == HEADER_BYTES + 9
    for length in range(len(data)):
        with pytest.raises(InvalidData, match="Fix:"):
            Reports.from_bytes(data[:length])
    with pytest.raises(InvalidData, match="10 bytes"):
        Reports.from_bytes(data + b"\0")
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 4
        with pytest.raises(InvalidData):
            Reports.from_bytes(bytes(damaged))
    for other in (None, "DLRP", [1], np.zeros((2, 3), dtype=np.uint8)):
        with pytest.raises(WrongType):
            P.server().add(other)


def test_another_version_is_refused_by_its_number():
    data = bytearray(P.privatize([1]).to_bytes())
    data[4] = 2
    with pytest.raises(InvalidData, match="expected version 1 of the format, got version 2"):
        Reports.from_bytes(data)


def test_ids_of_batches_differ_and_reports_compare_by_content():
    one, other = P.privatize([1]), P.privatize([1])
    assert one.batch != other.batch
    assert one == Reports.from_bytes(one.to_bytes())
    assert one != other
    with pytest.raises(ValueError, match="read-only"):
        one.records[0, 0] = 1
