"""Assumption (A) on this machine, and that each law's float side is as near to its exact side as it says."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from dither.randomness import Exponential, Gumbel, HeavyTail, Normal, Staircase, truncated_tail
from dither.randomness.discrete import DiscreteLaplace
from dither.randomness.laws import LOW, _series
from support import PRECISION, each, real, tail_of

LAWS = [
    Exponential(),
    Exponential(symmetric=True),
    Gumbel(),
    Normal(),
    *(Staircase(Fraction(e), Fraction(g)) for e, g in (("1/1000", "1/2"), ("1", "3/8"), ("1", "1/20"), ("20", "1/3"))),
    *(HeavyTail(Fraction(g)) for g in ("3/2", "2", "37/10", "4")),
    *(DiscreteLaplace(s) for s in (2.0**-20, 0.1, 1.0, 3.3, 2.0**26)),
]
LEAST_WORD = 1 << 44


def name(law: Any) -> str:
    return repr(law) if not isinstance(law, Normal) else "Normal()"


@pytest.fixture(autouse=True)
def precise() -> Iterator[None]:
    with mp.workprec(PRECISION):
        yield


def words_for(law: Any, count: int = 120) -> list[int]:
    """63-bit words that the float side takes: the ends, both sides of every power of two, and many more."""
    most = min(int(law.high * 2.0**63), 2**63 - 1)
    rng = random.Random(7)
    result = [LEAST_WORD, LEAST_WORD + 1, most, most - 1, most - (1 << 9), most - (1 << 10)]
    result += [2**e + d for e in range(44, 63, 2) for d in (-1, 0, 1, 513)]
    result += [int(2 ** rng.uniform(44, 63)) for _ in range(count)]
    result += [2**63 - int(2 ** rng.uniform(0, 62)) for _ in range(count // 4)]
    if isinstance(law, Staircase):  # step ends and knots, where the pieces meet
        s = mp.exp(-real(law.epsilon))
        width = real(law.gamma) + s * (1 - real(law.gamma))
        for k in range(5):
            result += [
                int(mp.floor(place * 2**63)) + d for place in (s**k, s ** (k + 1) / width) for d in (-1500, 0, 1500)
            ]
    # a word w is taken as the float nearest to it, which must be in [LOW, high]
    return [w for w in result if LEAST_WORD <= w < 2**63 and LOW <= w * 2.0**-63 <= law.high]


@pytest.mark.slow
@pytest.mark.parametrize("function", ["log", "log1p", "exp", "cosh"])
@pytest.mark.parametrize("library", [np, math], ids=["numpy", "math"])
def test_assumption_a_holds_here(library: Any, function: str) -> None:
    rng = np.random.default_rng(3)
    points = {
        "log": np.concatenate(
            [
                2.0 ** rng.uniform(-20, 64, 3000),
                [LOW, 0.5, 1 - 2.0**-53, 1 + 2.0**-52, 13.2, 2.0**63],
                1 - 2.0 ** rng.uniform(-52, -1, 500),
            ]
        ),
        "log1p": np.concatenate(
            [
                -(2.0 ** rng.uniform(-19, -1, 2000)),
                -1 + 2.0 ** rng.uniform(-15, -1, 2000),
                2.0 ** rng.uniform(-60, 0, 500),
                [-LOW, -(1 - 2.0**-15)],
            ]
        ),
        "exp": np.concatenate(
            [
                rng.uniform(-700, 700, 2000),
                rng.uniform(-45, 45, 2000),
                2.0 ** rng.uniform(-60, 0, 300),
                [0.0, -44.0, 14.0],
            ]
        ),
        "cosh": np.concatenate([rng.uniform(0, 20, 2000), 2.0 ** rng.uniform(-40, 0, 300)]),
    }[function]
    # arrays as long as a chunk reach the vectorized loops, which differ from the scalar ones
    values = np.resize(points, 1 << 14)
    results = (
        np.asarray(getattr(np, function)(values))
        if library is np
        else [getattr(math, function)(v) for v in points.tolist()]
    )
    truth = getattr(mp, function)
    with mp.workprec(160):
        worst = max(
            abs(mp.mpf(float(r)) / t - 1)
            for r, x in zip(results, points.tolist(), strict=False)
            if (t := truth(mp.mpf(x))) != 0
        )
    assert worst < mp.mpf(2) ** -46


@pytest.mark.slow
@each("law", LAWS)
def test_the_float_quantile_is_within_its_bound(law: Any) -> None:
    """For every U of the word, Q(U) is in [z - error, z + error]: tail(z + error) <= U <= tail(z - error)."""
    tail = tail_of(law)
    if isinstance(law, DiscreteLaplace):  # its quantile goes on below zero, where every value rounds to zero alike
        size = mp.cosh(1 / (2 * real(law.scale)))
        tail = lambda z: mp.exp(-z) / size  # noqa: E731
    words = words_for(law)
    u = np.array(words, dtype=np.int64).astype(np.float64) * 2.0**-63
    z = u.copy()
    errors = law.quantile(z)
    bounds = np.full(len(z), law.error) if errors is None else errors
    finite = np.isfinite(bounds)
    assert finite.mean() > 0.8, "the float side decides almost nothing"  # the heavy tail gives up next to u = 1
    for word, value, error in zip(np.array(words, dtype=object)[finite], z[finite], bounds[finite], strict=True):
        center, extent = mp.mpf(float(value)), mp.mpf(float(error))
        least, most = mp.mpf(int(word)) / 2**63, mp.mpf(int(word) + 1) / 2**63
        assert tail(center + extent) <= least, f"{word}: bound too small above"
        assert tail(center - extent) >= most, f"{word}: bound too small below"


@pytest.mark.slow
@each("law", LAWS)
def test_one_and_many_agree_within_their_bounds(law: Any) -> None:
    words = words_for(law, 60)
    u = np.array(words, dtype=np.int64).astype(np.float64) * 2.0**-63
    z = u.copy()
    errors = law.quantile(z)
    bounds = np.full(len(z), law.error) if errors is None else errors
    for item, value, error in zip(u.tolist(), z.tolist(), bounds.tolist(), strict=True):
        single, own = law.quantile_one(item)
        assert abs(single - value) <= own + error


def test_one_series_of_the_heavy_tail_has_the_bits_of_many() -> None:
    rng = np.random.default_rng(5)
    x, a = rng.random(500) / 2, rng.random(500)
    assert [_series(*pair) for pair in zip(x.tolist(), a.tolist(), strict=True)] == _series(x, a).tolist()


@each("law", LAWS)
@each("exponent", [-400, -64, -20])
def test_one_gives_a_finite_guess_for_tiny_words(law: Any, exponent: int) -> None:
    assert math.isfinite(law.quantile_one(2.0**exponent)[0])


@pytest.mark.slow
@each("law", LAWS)
@each("bits", [63, 255])
def test_the_exact_tail_encloses_the_truth_and_falls(law: Any, bits: int) -> None:
    tail, rng = tail_of(law), random.Random(bits)
    points = [Fraction(rng.uniform(0, 3) * 2.0 ** rng.randint(-30, 5)) for _ in range(40)]
    points += [Fraction(k, 8) for k in range(0, 40, 3)] + [Fraction(1, 3), Fraction(1, 2**70)]
    if not law.symmetric and isinstance(law, Gumbel):
        points += [-p for p in points if p < 6]
    enclosures = []
    for z in sorted(points):
        low, high = law.tail(z, bits)
        assert low <= tail(real(z)) * mp.mpf(2) ** bits <= high
        assert high - low <= 12
        enclosures.append((low, high))
    assert all(later[0] <= earlier[1] for earlier, later in itertools.pairwise(enclosures))


@pytest.mark.parametrize("law", [law for law in LAWS if law.symmetric], ids=name)
def test_a_symmetric_law_has_all_its_mass_beyond_zero(law: Any) -> None:
    for z in (Fraction(0), Fraction(-1, 3), Fraction(-1000)):
        assert law.tail(z, 90) == (1 << 90, 1 << 90)


def test_a_staircase_of_huge_epsilon_has_one_step() -> None:
    for epsilon in (700, 740, 10**6):  # exp(-epsilon) is a small float, a subnormal one, and none
        law = Staircase(Fraction(epsilon), Fraction(1, 2))
        z = np.array([LOW, 0.25, 1.0])
        law.quantile(z)
        assert z == pytest.approx([0.5, 0.375, 0.0], abs=1e-5)


def _truncated(low: Fraction, high: Fraction) -> Callable[[Fraction], Any]:
    """P(Z > z | low < Z < high) from the two-sided cumulative distribution."""

    def cumulative(z: Fraction) -> Any:
        return mp.exp(real(z)) / 2 if z < 0 else 1 - mp.exp(-real(z)) / 2

    return lambda z: (cumulative(high) - cumulative(z)) / (cumulative(high) - cumulative(low))


@pytest.mark.parametrize(("low", "high"), [("-1", "1"), ("0", "5"), ("-7/2", "0"), ("-1/1000", "1/3"), ("-80", "90")])
def test_the_truncated_laplace_tail(low: str, high: str) -> None:
    left, right = Fraction(low), Fraction(high)
    truth = _truncated(left, right)
    for bits in (63, 200):
        for i in range(1, 40):
            z = left + (right - left) * Fraction(i, 40)
            below, above = truncated_tail(z, left, right, bits)
            assert below <= truth(z) * mp.mpf(2) ** bits <= above
            assert above - below <= 8
        assert truncated_tail(left, left, right, bits) == (1 << bits, 1 << bits)
        assert truncated_tail(right, left, right, bits) == (0, 0)
