"""What the ± of local estimates covers, with few reports as with many."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import dither as dp
from dither.randomness import SeededSource

PROTOCOLS = {
    "randomized response": dp.local.RandomizedResponse,
    "subset selection": dp.local.SubsetSelection,
    "optimized unary": dp.local.UnaryEncoding,
    "symmetric unary": lambda k, epsilon: dp.local.UnaryEncoding(k, epsilon, optimized=False),
    "2 items": lambda k, epsilon: dp.local.PaddedSets(k, 2, epsilon),
    "4 items": lambda k, epsilon: dp.local.PaddedSets(k, 4, epsilon),
}


def support(name, k, epsilon):
    """The probabilities that a report supports a category for those who have it and for others, from the papers."""
    e = math.exp(epsilon)
    if name == "randomized response":
        return e / (e + k - 1), 1 / (e + k - 1)
    if name == "optimized unary":
        return 1 / 2, 1 / (e + 1)
    if name == "symmetric unary":
        root = math.exp(epsilon / 2)
        return root / (root + 1), 1 / (root + 1)
    items = int(name[0]) if name[0].isdigit() else None
    k += items is not None  # the blank
    w = max(1, round(k / (e + 1)))
    p = w * e / (w * e + k - w)
    q = (p * (w - 1) + (1 - p) * w) / (k - 1)
    return p if items is None else q + (p - q) / items, q


def numbers_of_supporters(n, holders, p, q):
    """The exact law of the number of n reports that support a category which so many people have."""
    own = stats.binom.pmf(np.arange(holders + 1), holders, p)
    return np.convolve(own, stats.binom.pmf(np.arange(n - holders + 1), n - holders, q))


@pytest.mark.parametrize("n", [20, 50, 300])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_intervals_cover_for_every_number_of_reports_that_support_a_category(name, n):
    """Exactly, without a draw: what the ± covers by the law of the number of supporters, at least 94 %."""
    for k in (4, 10, 100):
        for epsilon in (0.5, 2, 4, 8):
            protocol, (p, q) = PROTOCOLS[name](k, epsilon), support(name, k, epsilon)
            tally, codes = protocol.new_tally(), np.arange(k)
            estimates, errors = np.empty(n + k), np.empty(n + k)
            for first in range(0, n + 1, k):
                tally[:k] = np.arange(first, first + k)
                result = protocol.read(tally, n, codes, False)
                estimates[first : first + k], errors[first : first + k] = result.shares, result.error()
            for holders in sorted({0, 1, 2, 3, n // 50, n // 20, n // 10, n // 4, n // 2, n}):
                law = numbers_of_supporters(n, holders, p, q)
                inside = np.abs(estimates - holders / n) <= errors + 1e-9
                assert law @ inside[: n + 1] >= 0.94, (k, epsilon, holders)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_with_many_reports_intervals_are_the_normal_ones(name):
    """Of 100,000 reports, where some hundred support a category: at most a tenth wider."""
    for k, epsilon in ((4, 0.5), (10, 1), (10, 4), (100, 2)):
        protocol, (_, q) = PROTOCOLS[name](k, epsilon), support(name, k, epsilon)
        tally, n = protocol.new_tally(), 100_000
        tally[:] = round(q * n)
        assert q * n > 200
        result = protocol.read(tally, n, [0], False)
        assert result.error() == pytest.approx(1.959964 * result.standard_error, rel=0.1)
        assert result.error(0.5) == pytest.approx(0.67449 * result.standard_error, rel=0.1)


def estimates(protocol, values, runs):
    """What ``runs`` servers say of the same people, seeded."""
    n, seeded = len(values), SeededSource(5)
    records = protocol.privatize(np.tile(values, runs), source=seeded).records
    for first in range(0, n * runs, n):
        tally = protocol.new_tally()
        protocol.tally(tally, records[first : first + n])
        yield protocol.read(tally, n, None, True)


@pytest.mark.parametrize(
    ("protocol", "n"),
    [
        (dp.local.HadamardResponse(10, 8), 20),
        (dp.local.HadamardResponse(100, 8), 300),
        (dp.local.LocalHashing(10, 4), 20),
        (dp.local.ProjectiveGeometryResponse(10, 8), 300),
        (dp.local.CountMeanSketch(8, 10, rows=64, width=64), 50),
        (dp.local.HadamardCountMeanSketch(8, 10, rows=64, width=64), 50),
    ],
    ids=lambda item: type(item).__name__ if isinstance(item, dp.local.LocalProtocol) else str(item),
)
def test_intervals_of_shares_cover(protocol, n):
    """Of 400 seeded servers: the standard error of a coverage of 0.95 is 0.011, and 0.90 is more than four of them
    below; over all categories, 0.94. People have one category each, some have most of them."""
    k = protocol.category_count
    values = np.minimum(k * np.random.default_rng(1).random(n) ** 3, k - 1).astype(np.int64)
    truth = np.bincount(values, minlength=k) / n
    covered = np.mean(
        [np.abs(item.shares - truth) <= item.error() + 1e-9 for item in estimates(protocol, values, 400)], 0
    )
    assert covered.min() >= 0.90
    assert covered.mean() >= 0.94


@pytest.mark.parametrize("method", ["best", "duchi", "piecewise"])
@pytest.mark.parametrize("n", [20, 50, 300])
def test_intervals_of_means_cover(method, n):
    """Of 400 seeded servers, as above: also where every report may be the same, which tells nothing of its spread."""
    for epsilon in (1, 4, 8):
        protocol = dp.local.Mean((0, 1), epsilon, method)
        for values in (np.zeros(n), np.full(n, 0.01), (np.arange(n) < 2) * 1.0, np.linspace(0, 1, n)):
            covered = [abs(item.value - values.mean()) <= item.error() for item in estimates(protocol, values, 400)]
            assert np.mean(covered) >= 0.92, (epsilon, values[:2])


@pytest.mark.parametrize(("bins", "epsilon"), [(16, 2), (64, 2), (64, 4)])
def test_intervals_of_cumulative_shares_cover(bins, epsilon, monkeypatch):
    """Of 400 seeded servers, as above; the smooth shares take long and are not part of the interval."""
    monkeypatch.setattr(dp.local.Distribution, "smoothed", lambda self, _: np.full(self.bins, 1 / self.bins))
    protocol = dp.local.Distribution((0, 1), bins, epsilon)
    for n, values in ((20, np.zeros(20)), (50, (np.arange(50) < 2) * 0.99)):
        truth = np.cumsum(np.bincount(protocol.encode(values), minlength=bins)) / n
        intervals = (item.cumulative_interval() for item in estimates(protocol, values, 400))
        covered = np.mean([(low <= truth + 1e-9) & (truth - 1e-9 <= high) for low, high in intervals], 0)
        assert covered.min() >= 0.90


def test_intervals_of_frequent_words_cover():
    """Shares among all who were asked; of 100 seeded searches, 0.86 is four standard errors below 0.95."""
    words, search = ["a"] * 70 + ["b"] * 230, dp.local.HeavyHitters(epsilon=8, threshold=0.2, max_bytes=1)
    found = [hit for seed in range(100) for hit in search.search(words, source=SeededSource(seed)) if hit.text == "a"]
    assert len(found) > 80
    assert np.mean([abs(hit.share - 70 / 300) <= hit.error() for hit in found]) >= 0.86
