"""Stated variances against enumeration of all hash functions and reports, and what intervals cover."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.linalg import hadamard

import dither as dp
from dither.randomness import SeededSource

EPSILON, ROWS = 1.2, 2
PEOPLE = (0, 0, 0, 1, 2, 2)  # the values of six people; value 2 is estimated


def unary_reports(width):
    """Each possible bit vector, as what it adds to a row, and its probability for each column."""
    p, q = 0.5, 1 / (math.exp(EPSILON) + 1)
    vectors = np.array(list(itertools.product((0, 1), repeat=width)))
    laws = [np.prod(np.where(vectors, *_split(p, q, width, c)), axis=1) for c in range(width)]
    return vectors, np.array(laws)


def _split(p, q, width, column):
    ones = np.where(np.arange(width) == column, p, q)
    return ones, 1 - ones


def sign_reports(width):
    """Each coordinate and sign, as what it adds to a row, and its probability for each column."""
    e, signs = math.exp(EPSILON), hadamard(width)
    vectors, laws = [], []
    for place, sign in itertools.product(range(width), (1, -1)):
        vectors.append(sign * np.eye(width, dtype=int)[place])
        laws.append([(e if signs[c][place] == sign else 1) / (e + 1) / width for c in range(width)])
    return np.array(vectors), np.array(laws).T


CASES = {
    "count-mean": (lambda width: dp.local.CountMeanSketch(EPSILON, rows=ROWS, width=width), unary_reports, 3),
    "Hadamard": (lambda width: dp.local.HadamardCountMeanSketch(EPSILON, rows=ROWS, width=width), sign_reports, 4),
}


def hash_functions(width, values=3):
    """All maps of the values to columns, for all rows at once: independent and uniform."""
    return itertools.product(itertools.product(range(width), repeat=values), repeat=ROWS)


@pytest.mark.parametrize("name", CASES)
def test_the_variance_is_that_of_all_hash_functions_and_reports(name):
    """The estimate is a mean of what each report adds, so the variance given a hash function is a sum over people, and
    its mean given the function is off by the collisions. Both are enumerated."""
    build, reports, width = CASES[name]
    protocol, (vectors, laws), n, asked = build(width), reports(width), len(PEOPLE), 2
    cells = np.array([protocol.cells(vector[None, :])[0] for vector in vectors], dtype=float)
    added = (protocol.matched(cells, 1) - 1 / width) * width / (width - 1)  # by report and column asked about
    assert laws.sum(axis=1) == pytest.approx(1)
    first, second = laws @ added, laws @ added**2  # by column of the sender and column asked about
    truth, squared, bias = PEOPLE.count(asked) / n, [], []
    for tables in hash_functions(width):
        means = [sum(first[table[x], table[asked]] for table in tables) / ROWS for x in range(3)]
        squares = [sum(second[table[x], table[asked]] for table in tables) / ROWS for x in range(3)]
        off = sum(means[x] for x in PEOPLE) / n - truth
        squared.append(sum(squares[x] - means[x] ** 2 for x in PEOPLE) / n**2 + off**2)
        bias.append(off)
    others = [PEOPLE.count(value) for value in (0, 1)]
    pairs = sum(count * (count - 1) for count in others) / n**2
    stated = protocol.variance(n, truth) + protocol.collision_variance(pairs)
    assert np.mean(bias) == pytest.approx(0, abs=1e-12)
    assert stated == pytest.approx(np.mean(squared), rel=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_the_concentration_is_unbiased_over_all_hash_functions_and_reports(name):
    """Three people, two of whom have the same value: a random pair agrees with probability 1/3."""
    build, reports, width = CASES[name]
    width = 2
    protocol, (vectors, laws) = build(width), reports(width)
    total = 0.0
    for tables in hash_functions(width, values=2):
        options = []
        for value in (0, 0, 1):
            options.append([
                (row, vector, chance / ROWS)
                for row, table in enumerate(tables)
                for vector, chance in zip(vectors, laws[table[value]], strict=True)
            ])  # fmt: skip
        for sent in itertools.product(*options):
            tally = np.zeros((ROWS, width), dtype=np.int32)
            for row, vector, _ in sent:
                tally[row] += vector
            total += math.prod(chance for _, _, chance in sent) * protocol.concentration(tally, 3)
    assert total / width ** (2 * ROWS) == pytest.approx(1 / 3, rel=1e-12)


@pytest.mark.parametrize("listed", [None, 40])
@pytest.mark.parametrize("kind", [dp.local.CountMeanSketch, dp.local.HadamardCountMeanSketch])
def test_intervals_cover_what_they_say_over_keys_and_values(kind, listed):
    """A small sketch in which collisions are most of the error; 250 keys, half of the people of one value. Seeded."""
    values = np.concatenate([np.zeros(2000, dtype=np.int64), np.arange(2000) % 40])
    truth, asked = np.bincount(values, minlength=50) / values.size, np.arange(40 if listed else 50)
    scores = []
    for number in range(250):
        protocol = kind(3.0, listed, rows=64, width=8, key=number.to_bytes(16, "little"))
        reports = protocol.privatize(values, source=SeededSource(number))
        estimate = protocol.estimate(reports, asked)
        scores.append((estimate.shares - truth[asked]) / estimate.standard_error)
    squares = np.square(scores)
    assert protocol.collision_variance(0.25) > protocol.variance(values.size)
    assert 0.9 < squares[:, 1:].mean() < 1.1
    assert 0.75 < squares[:, 0].mean() < 1.25  # the frequent value, which has few collisions; 250 scores
    assert 0.93 < np.mean(squares[:, 1:] < 1.959964**2) < 0.97


@pytest.mark.parametrize(("k", "epsilon"), [(20, 3.0), (13, 2.0), (7, 1.0), (128, 4.0), (100, 2.5)])
def test_the_variance_of_the_hadamard_response_is_that_of_its_points(k, epsilon):
    """All points enumerated, for one person of each category: the mean over categories, blocks equally large or not."""
    p = dp.local.HadamardResponse(k, epsilon)
    e, total = math.exp(epsilon), p.report_count
    prefers = np.zeros((k, total))
    for code in range(k):
        prefers[code, p.preferred(code)] = 1
    laws = (1 + (e - 1) * prefers) / (total + (e - 1) * prefers.sum(axis=1, keepdims=True))
    block = np.arange(total) // p.order
    adds = np.where(block == np.arange(k)[:, None] % p.blocks, 2 * prefers - 1, 0.0)
    means = laws @ adds.T  # by sender and by category asked about
    assert means - np.diag(np.diag(means)) == pytest.approx(0, abs=1e-12)
    spread = (laws @ (adds**2).T - means**2) / np.diag(means) ** 2
    assert p.variance(k, 1 / k) == pytest.approx(spread.sum(axis=0).mean() / k**2, rel=1e-9)
    rare = (spread.sum(axis=0) - np.diag(spread)) / (k - 1)  # nobody has the category, the others are spread evenly
    assert p.variance(1) == pytest.approx(rare.mean(), rel=1e-9)


def test_a_block_without_reports_is_not_known_exactly():
    p = dp.local.HadamardResponse(64, 5)
    assert p.blocks > 1
    estimate = p.estimate(p.privatize([3]))
    assert np.all(estimate.standard_error > 0.3 * math.sqrt(p.variance(1)))
    single = dp.local.Distribution((0, 1), 8, 2)
    assert np.all(np.diag(single.estimate(single.privatize([0.5])).covariance) > 0)


def test_the_draw_of_one_item_of_several_is_in_the_variance():
    """At a large epsilon the only noise is the draw: a person with the item reports it half of the time. Seeded."""
    p, n = dp.local.PaddedSets(["a", "b", "c"], max_items=2, epsilon=30), 400
    sets = [{"a", "b"}] * (n // 2) + [set()] * (n // 2)
    estimates = [p.estimate(p.privatize(sets, source=SeededSource(seed))) for seed in range(200)]
    shares = np.array([estimate.shares for estimate in estimates])
    assert p.variance(n, 0.5) == pytest.approx(0.5 / n, rel=1e-6)
    assert 0.8 < shares[:, 0].var(ddof=1) / p.variance(n, 0.5) < 1.2
    scores = (shares[:, 0] - 0.5) / [estimate.standard_error[0] for estimate in estimates]
    assert 0.8 < np.square(scores).mean() < 1.2
