"""The laws of reports, written down from the papers: for each protocol the probability of every record, by value."""

from __future__ import annotations

import hashlib
import math
from itertools import combinations, product

from scipy.linalg import hadamard

import dither as dp

GF4 = (
    [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]],
    [[0, 0, 0, 0], [0, 1, 2, 3], [0, 2, 3, 1], [0, 3, 1, 2]],
)


def as_bytes(bits):
    value = sum(bit << place for place, bit in enumerate(bits))
    return value.to_bytes(-(-len(bits) // 8), "little")


def randomized_response(k, epsilon, x):
    e = math.exp(epsilon)
    return {bytes([y]): (e if y == x else 1) / (e + k - 1) for y in range(k)}


def subset_selection(k, epsilon, x):
    e = math.exp(epsilon)
    w = max(1, round(k / (e + 1)))
    weights = {subset: e if x in subset else 1.0 for subset in combinations(range(k), w)}
    total = sum(weights.values())
    return {as_bytes([c in subset for c in range(k)]): weight / total for subset, weight in weights.items()}


def unary(k, epsilon, x, optimized):
    p, q = 0.5, 1 / (math.exp(epsilon) + 1)
    if not optimized:
        q = 1 / (math.exp(epsilon / 2) + 1)
        p = 1 - q
    law = {}
    for bits in product((0, 1), repeat=k):
        ones = [p if c == x else q for c in range(k)]
        law[as_bytes(bits)] = math.prod(one if bit else 1 - one for one, bit in zip(ones, bits, strict=True))
    return law


def local_hashing(k, epsilon, x):
    """For g = 4 and two digits: a uniform vector and randomized response on the scalar product over GF(4)."""
    add, multiply = GF4
    e = math.exp(epsilon)
    law = {}
    for a0, a1, v in product(range(4), repeat=3):
        hashed = add[multiply[a0][x % 4]][multiply[a1][x // 4]]
        law[bytes([v + 4 * (a0 + 4 * a1)])] = (e if v == hashed else 1) / (e + 3) / 16
    return law


def hadamard_response(k, epsilon, x, blocks, order):
    e = math.exp(epsilon)
    row, block = divmod(x, blocks)
    signs = hadamard(order)[row + 1]
    weights = {}
    for i, y in product(range(blocks), range(order)):
        weights[bytes([i * order + y])] = e if i == block and signs[y] == 1 else 1.0
    total = sum(weights.values())
    return {record: weight / total for record, weight in weights.items()}


def projective_geometry(k, epsilon, x):
    """Over GF(4) with vectors of 3 elements: 21 points; hyperplanes by Singer's perfect difference set of order 4."""
    e = math.exp(epsilon)
    members = SINGER_4_3
    weights = {bytes([y]): e if (y - x) % 21 in members else 1.0 for y in range(21)}
    total = sum(weights.values())
    return {record: weight / total for record, weight in weights.items()}


SINGER_4_3 = {3, 6, 7, 12, 14}


def column(value, row, width, key=bytes(16)):
    """The keyed hash, from its specification."""
    x = int.from_bytes(hashlib.sha256(b"i" + value.to_bytes(8, "little")).digest()[:8], "little")
    digest = hashlib.sha256(b"dither local hash 1" + key + row.to_bytes(4, "little")).digest()
    a, b, c = (int.from_bytes(digest[i : i + 8], "little") for i in (0, 8, 16))
    h = ((a * (x & 0xFFFFFFFF) + b * (x >> 32) + c) % 2**64) >> 32
    return (h * width) >> 32


def count_mean_sketch(epsilon, x, rows, width, optimized):
    law = {}
    for row in range(rows):
        for bits, probability in unary(width, epsilon, column(x, row, width), optimized).items():
            law[bytes([row]) + bits] = probability / rows
    return law


def hadamard_sketch(epsilon, x, rows, width):
    e, signs = math.exp(epsilon), hadamard(width)
    law = {}
    for row, coordinate, negative in product(range(rows), range(width), (0, 1)):
        truth = signs[column(x, row, width)][coordinate] == -1
        probability = (e if truth == bool(negative) else 1) / (e + 1) / (rows * width)
        law[bytes([2 * (row * width + coordinate) + negative])] = probability
    return law


PROTOCOLS = {
    "randomized response": (lambda e: dp.local.RandomizedResponse(5, e), lambda e, x: randomized_response(5, e, x)),
    "subset selection": (lambda e: dp.local.SubsetSelection(7, e), lambda e, x: subset_selection(7, e, x)),
    "optimized unary": (lambda e: dp.local.UnaryEncoding(6, e), lambda e, x: unary(6, e, x, True)),
    "symmetric unary": (lambda e: dp.local.UnaryEncoding(6, e, optimized=False), lambda e, x: unary(6, e, x, False)),
    "local hashing": (lambda e: dp.local.LocalHashing(13, e), lambda e, x: local_hashing(13, e, x)),
    "Hadamard response": (lambda e: dp.local.HadamardResponse(7, e), lambda e, x: hadamard_response(7, e, x, 1, 8)),
    "Hadamard response, blocks": (
        lambda e: dp.local.HadamardResponse(13, 2 * e), lambda e, x: hadamard_response(13, 2 * e, x, 4, 8),
    ),
    "projective geometry": (
        lambda e: dp.local.ProjectiveGeometryResponse(18, e), lambda e, x: projective_geometry(18, e, x),
    ),
    "count-mean sketch": (
        lambda e: dp.local.CountMeanSketch(e, rows=3, width=5), lambda e, x: count_mean_sketch(e, x, 3, 5, True),
    ),
    "Hadamard sketch": (
        lambda e: dp.local.HadamardCountMeanSketch(e, rows=3, width=8), lambda e, x: hadamard_sketch(e, x, 3, 8),
    ),
}  # fmt: skip
