"""Every protocol: its law, its estimates and their errors, and what it refuses."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy import stats
from scipy.linalg import hadamard

import dither as dp
from dither.errors import InvalidArgument, InvalidData, WrongType
from dither.local.bases import index_bytes
from dither.local.hadamard_response import hadamard_transform
from dither.local.labels import integers, read_categories
from dither.local.reports import LocalFrequencies
from dither.randomness import SeededSource

from .laws import PROTOCOLS

ALPHA = 1e-9
NAMES = list(PROTOCOLS)


def p_value(records, law):
    """Of a chi-square test of the records against a law; 0 where a record is impossible."""
    names = {record: place for place, record in enumerate(law)}
    raw = np.ascontiguousarray(records).view(f"V{records.shape[1]}").reshape(-1)
    seen, counts = np.unique(raw, return_counts=True)
    observed = np.zeros(len(law))
    for record, count in zip(seen, counts, strict=True):
        if record.tobytes() not in names:
            return 0.0
        observed[names[record.tobytes()]] = count
    expected = np.array(list(law.values())) * len(records)
    rare = expected < 10
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        observed = np.append(observed[~rare], observed[rare].sum())
    return float(stats.chisquare(observed, expected).pvalue)


@pytest.mark.parametrize("name", NAMES)
def test_reports_have_the_law_of_the_paper_and_no_other(name):
    protocol, law = PROTOCOLS[name]
    for x in (0, 3):
        assert math.isclose(sum(law(1, x).values()), 1)
        records = protocol(1).privatize(np.full(400_000, x)).records
        assert p_value(records, law(1, x)) > ALPHA
        for wrong in (0.85, 1.15):
            if set(law(wrong, x)) == set(law(1, x)):  # the same sets of subset selection
                assert p_value(records, law(wrong, x)) < ALPHA
        assert p_value(records, law(1, x + 1)) < ALPHA


@pytest.mark.parametrize("name", NAMES)
def test_the_law_of_the_paper_is_private_and_uses_all_of_epsilon(name):
    protocol, law = PROTOCOLS[name]
    values = [law(1, x) for x in range(protocol(1).category_count if protocol(1).categories is not None else 8)]
    worst = max(math.log(one[record] / other[record]) for one in values for other in values for record in one)
    assert math.isclose(worst, float(protocol(1).guarantee.epsilon), rel_tol=1e-9)


def all_protocols(k, epsilon):
    return [
        dp.local.RandomizedResponse(k, epsilon),
        dp.local.SubsetSelection(k, epsilon),
        dp.local.UnaryEncoding(k, epsilon),
        dp.local.UnaryEncoding(k, epsilon, optimized=False),
        dp.local.LocalHashing(k, epsilon),
        dp.local.HadamardResponse(k, epsilon),
        dp.local.ProjectiveGeometryResponse(k, epsilon),
        dp.local.CountMeanSketch(epsilon, k, rows=64, width=128),
        dp.local.HadamardCountMeanSketch(epsilon, k, rows=64, width=128),
    ]


def label(protocol):
    return type(protocol).__name__ + ("" if getattr(protocol, "optimized", True) else " symmetric")


@pytest.mark.parametrize("epsilon", [0.5, 3])
@pytest.mark.parametrize("index", range(9), ids=[label(p) for p in all_protocols(4, 1)])
def test_estimates_are_unbiased_with_the_variance_that_is_said(index, epsilon):
    """300 collections of 1,000 people with 16 categories, of which the first is half."""
    k, n, repeats = 16, 1000, 300
    protocol = all_protocols(k, epsilon)[index]
    values = np.concatenate([np.zeros(n // 2, dtype=int), np.arange(n // 2) % k])
    truth = np.bincount(values, minlength=k) / n
    estimates = [protocol.estimate(protocol.privatize(values)) for _ in range(repeats)]
    shares = np.array([estimate.shares for estimate in estimates])
    stated = np.mean([estimate.standard_error**2 for estimate in estimates], axis=0)
    collisions = 6.5 * math.sqrt(protocol.collision_variance(0.3)) if hasattr(protocol, "collision_variance") else 0.0
    deviations = np.abs(shares.mean(axis=0) - truth)
    assert np.all(deviations < 6.5 * np.sqrt(stated / repeats) + collisions)
    if collisions:
        stated = stated - protocol.collision_variance(float(np.square(truth).sum()))
    ratio = float(np.mean(shares.var(axis=0, ddof=1)[1:]) / np.mean(stated[1:]))
    assert 0.75 < ratio < 1.3
    if not isinstance(protocol, dp.local.HadamardResponse):  # whose variance depends on who else is in the block
        assert 0.85 < np.mean(stated[1:]) / protocol.variance(n, float(truth[1])) < 1.15
    normal = 1.959964 * estimates[0].standard_error
    assert np.all((normal < estimates[0].error(0.95)) & (estimates[0].error(0.95) < 1.25 * normal))


def test_variances_are_those_of_the_theory():
    """n times the variance of a rare category at k = 128, epsilon = 0.5, 1, 2 and 4."""
    expected = {
        dp.local.SubsetSelection: (15.41, 3.610, 0.6971, 0.0584),
        dp.local.UnaryEncoding: (15.67, 3.683, 0.7241, 0.0760),
        dp.local.RandomizedResponse: (303, 43.6, 3.27, 0.063),
    }
    for kind, numbers in expected.items():
        for epsilon, number in zip((0.5, 1, 2, 4), numbers, strict=True):
            assert kind(128, epsilon).variance(1) == pytest.approx(number, rel=0.005)
    for epsilon, number in zip((0.5, 1, 2, 4), (15.92, 3.918, 0.9207, 0.1810), strict=True):
        assert dp.local.UnaryEncoding(128, epsilon, optimized=False).variance(1) == pytest.approx(number, rel=0.001)
        assert dp.local.CountMeanSketch.apple(epsilon).variance(1) == pytest.approx(number, rel=0.01)
        assert dp.local.LocalHashing(128, epsilon).variance(1) < 1.01 * dp.local.UnaryEncoding(128, epsilon).variance(1)
        projective = dp.local.ProjectiveGeometryResponse(1024, epsilon).variance(1)
        assert projective < 1.02 * dp.local.SubsetSelection(1024, epsilon).variance(1)


@pytest.mark.parametrize("protocol", all_protocols(16, 1), ids=label)
def test_a_value_outside_of_the_domain_is_refused_without_naming_it(protocol):
    for values in ([3, 16], [-1], [2.5], [None], np.array([1, 1 << 40])):
        with pytest.raises(InvalidData) as error:
            protocol.privatize(values)
        assert "values: expected one of the 16 categories each, got a value that is not among them" in str(error.value)
    for values in (3, "3", {3: 1}):
        with pytest.raises(WrongType):
            protocol.privatize(values)
    assert len(protocol.privatize([])) == 0


@pytest.mark.parametrize("protocol", all_protocols(["ja", "nein", "weiß nicht"], 30), ids=label)
def test_labels_are_categories(protocol):
    estimate = protocol.estimate(protocol.privatize(["ja"] * 300 + ["weiß nicht"] * 100))
    assert estimate.categories == ("ja", "nein", "weiß nicht")
    assert estimate["ja"] == pytest.approx(0.75, abs=0.7)
    assert protocol.estimate(protocol.privatize(["ja"]), ["nein"]).shares.shape == (1,)
    with pytest.raises(InvalidData):
        protocol.estimate(protocol.privatize(["ja"]), ["vielleicht"])
    assert pickle.loads(pickle.dumps(protocol)) == protocol
    assert hash(protocol) == hash(pickle.loads(pickle.dumps(protocol)))


def test_a_sketch_estimates_whatever_it_is_asked_about():
    for p in (dp.local.CountMeanSketch(8, width=256), dp.local.HadamardCountMeanSketch(8)):
        reports = p.privatize(["the"] * 6000 + ["quick"] * 3000 + [b"\x00"] * 500 + [17] * 500)
        estimate = p.estimate(reports, ["the", "quick", "slow", b"\x00", 17])
        assert np.all(np.abs(estimate.shares - [0.6, 0.3, 0, 0.05, 0.05]) < 7 * estimate.standard_error)
        with pytest.raises(InvalidArgument, match="the categories to estimate"):
            p.estimate(reports)
        for values in ([1.5], [None], [-1], ["\ud800"]):
            with pytest.raises(InvalidData):
                p.privatize(values)


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda: dp.local.SubsetSelection(1, 1), InvalidArgument),
        (lambda: dp.local.SubsetSelection(["a", "a"], 1), InvalidArgument),
        (lambda: dp.local.SubsetSelection([{1}, {2}], 1), WrongType),
        (lambda: dp.local.SubsetSelection(4, 0), InvalidArgument),
        (lambda: dp.local.SubsetSelection(4, math.nan), InvalidArgument),
        (lambda: dp.local.SubsetSelection(4, 65), InvalidArgument),
        (lambda: dp.local.UnaryEncoding(4, 1, optimized=1), WrongType),
        (lambda: dp.local.CountMeanSketch(1, key=b"short"), InvalidArgument),
        (lambda: dp.local.CountMeanSketch(1, key="0" * 16), WrongType),
        (lambda: dp.local.CountMeanSketch(1, rows=1 << 20, width=1 << 20), InvalidArgument),
        (lambda: dp.local.HadamardCountMeanSketch(1, width=1000), InvalidArgument),
    ],
)
def test_parameters_are_checked(build, error):
    with pytest.raises(error, match="Fix:"):
        build()


def test_a_seeded_source_is_reproducible_and_says_so():
    p = dp.local.SubsetSelection(16, 1)
    one, other = (p.privatize([1, 2, 3], source=SeededSource(1)) for _ in range(2))
    assert one == other
    assert "seeded, not private" in repr(one)
    assert p.estimate(one).seeded
    assert not p.estimate(p.privatize([1])).seeded


def test_large_counts_of_points_are_added_up_without_the_fourier_transform():
    p = dp.local.ProjectiveGeometryResponse(100, 1)
    tally = np.arange(p.report_count, dtype=np.int64) << 40
    codes = np.arange(100)
    direct = [int(tally[p.preferred(int(code))].sum()) for code in codes]
    assert p.supporters(tally, int(tally.sum()), codes).tolist() == direct
    assert p.supporters(tally >> 40, int((tally >> 40).sum()), codes).tolist() == [count >> 40 for count in direct]


def test_consistent_shares_are_a_distribution():
    shares = LocalFrequencies((0, 1, 2), np.array([0.9, 0.4, -0.2]), np.ones(3), 10).consistent().shares
    assert shares == pytest.approx([0.75, 0.25, 0])


def test_helpers():
    assert integers(np.array([1, 2], dtype=np.uint64)).tolist() == [1, 2]
    assert integers(np.array([1 << 63], dtype=np.uint64)).tolist() == [-1]
    assert read_categories(np.array([3, 5])) == (3, 5)
    assert [index_bytes(high) for high in (2, 256, 257, 1 << 32, (1 << 32) + 1)] == [1, 1, 2, 4, 8]
    square = np.array([[1, 2, 3, 4], [0, 0, 0, 1]])

    assert np.array_equal(hadamard_transform(square), square @ hadamard(4))


def test_an_epsilon_at_which_floats_cannot_tell_p_from_q_is_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"at least 0\.0001"):
        dp.local.Distribution((0, 1), 8, 1e-9)
    smallest = dp.local.Mean((0, 1), 1e-4)
    assert np.isfinite(smallest.estimate(smallest.privatize([0.5] * 40)).standard_error)


def test_what_equals_a_number_is_no_number_for_a_sketch() -> None:
    sketch = dp.local.CountMeanSketch(epsilon=1)
    for value in (True, 1.5, [1]):
        with pytest.raises(InvalidData, match="values"):
            sketch.encode([1, value])
