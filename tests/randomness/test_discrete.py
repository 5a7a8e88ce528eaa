"""The integer samplers: exact on boundary words, and in frequency what the exact probabilities say."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from dither.errors import InvalidArgument
from dither.exact import exp_neg
from dither.randomness import (
    MAX_SCALE,
    MIN_SCALE,
    SPLIT_SCALE,
    SYSTEM,
    Normal,
    SeededSource,
    bernoulli,
    bernoulli_exp,
    discrete_gaussian,
    discrete_gaussian_one,
    discrete_laplace,
    discrete_laplace_one,
    geometric,
    integer_steps,
    uniform_integers,
)
from dither.randomness.discrete import _acceptance, _exact_acceptance, _split_low, trial, trials
from dither.randomness.lattice import MAGNITUDE
from support import (
    PRECISION,
    Cdf,
    ScriptedSource,
    assert_distribution,
    assert_uniform,
    each,
    integer_edges,
    real,
    refuses,
    surprise,
    words_beside,
)

SMALL = (1e-3, 0.1, 0.5, 1.0, 3.3, 10.0)
LARGE = (1e6, 1e9, 1e12, 1e15)
Sampler = Callable[[float, int, Any], Any]


def cumulative(pmf: Callable[[int], Any], edges: np.ndarray) -> np.ndarray:
    """P(K <= edge) from probabilities up to a factor, summed in high precision."""
    extent = int(edges[-1]) + 3000 if edges[-1] > 1000 else 4 * int(edges[-1]) + 8
    weights = [pmf(k) for k in range(-extent, extent + 1)]
    total, running, below = mp.fsum(weights), mp.mpf(0), {}
    for k, weight in zip(range(-extent, extent + 1), weights, strict=True):
        running += weight
        below[k] = running
    return np.array([float(below[int(e)] / total) for e in edges])


def laplace_cdf(scale: float) -> Cdf:
    def cdf(edges: np.ndarray) -> np.ndarray:
        if scale < 100:
            with mp.workprec(200):
                return cumulative(lambda k: mp.exp(-abs(k) / mp.mpf(scale)), edges)
        half = np.exp(-np.abs(edges + (edges < 0)) / scale) / (1 + np.exp(-1 / scale))  # P(K >= |k| + 1), P(K <= -|k|)
        return np.where(edges < 0, np.exp(edges / scale) / (1 + np.exp(-1 / scale)), 1 - half * np.exp(-1 / scale))

    return cdf


def geometric_cdf(scale: float) -> Cdf:
    return lambda edges: np.where(edges < 0, 0.0, -np.expm1(-(np.maximum(edges, 0) + 1) / scale))


def gaussian_cdf(scale: float) -> Cdf:
    def cdf(edges: np.ndarray) -> np.ndarray:
        if scale < 100:
            with mp.workprec(200):
                return cumulative(lambda k: mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(scale) ** 2)), edges)
        return special.ndtr((edges + 0.5) / scale)  # differs by 1 / scale^2

    return cdf


def rounded_cdf(scale: float) -> Cdf:
    return lambda edges: special.ndtr((edges + 0.5) / scale)


SAMPLERS: dict[str, tuple[Sampler, Callable[[float], Cdf]]] = {
    "laplace": (discrete_laplace, laplace_cdf),
    "geometric": (geometric, geometric_cdf),
    "gaussian": (discrete_gaussian, gaussian_cdf),
    "rounded normal": (lambda scale, count, source: integer_steps(Normal(), scale, count, source), rounded_cdf),
}
# where nearly every draw is 0, five times as many are needed to see the scale, and below that none are enough
RARE = {("laplace", 0.1), ("geometric", 0.1)}
BLIND = {("gaussian", 0.1), ("rounded normal", 0.1)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scale"),
    [pytest.param(n, s, marks=[pytest.mark.slow] * ((n, s) in RARE)) for n in SAMPLERS for s in SMALL],
)
def test_small_scales_have_the_exact_probabilities(name: str, scale: float) -> None:
    sampler, cdf_for = SAMPLERS[name]
    count = 5 * 10**6 if (name, scale) in RARE else 10**6 if scale >= 0.1 else 10**5
    assert_distribution(
        sampler(scale, count, SYSTEM), cdf_for, scale, detectable=scale > 0.01 and (name, scale) not in BLIND
    )


# the rounded normal settles every draw exactly once the scale is beyond floats, whatever it is, at 0.1 ms each
EXACT = ("rounded normal", 1e15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scale"),
    [(n, s) for n in SAMPLERS for s in LARGE if n != EXACT[0] or s in (LARGE[0], EXACT[1])],
)
def test_large_scales_follow_the_law_down_to_the_last_bits(name: str, scale: float) -> None:
    sampler, cdf_for = SAMPLERS[name]
    count = 2 * 10**4 if (name, scale) == EXACT else 10**6
    sample = sampler(scale, count, SYSTEM)
    assert_distribution(sample, cdf_for, scale)
    if count == 10**6:
        assert_uniform(sample & 15, 16)  # the law changes by less than 1e-5 over sixteen neighbors
        lost = np.bincount(sample & ~1 & 15, minlength=16)
        assert surprise(lost, np.full(16, 1 / 16)) < 1e-9, "the test cannot see a lost bit"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "cdf_for"), [(discrete_laplace_one, laplace_cdf), (discrete_gaussian_one, gaussian_cdf)]
)
@pytest.mark.parametrize("scale", [1.0, 2.0**26 + 1, 1e12])
def test_single_draws_follow_the_law(
    one: Callable[[float, Any], int], cdf_for: Callable[[float], Cdf], scale: float
) -> None:
    count = 30_000 if scale == 1.0 or one is discrete_laplace_one else 4000
    sample = np.array([one(scale, SYSTEM) for _ in range(count)])
    assert_distribution(sample, cdf_for, scale, detectable=count > 4000)


@pytest.mark.parametrize("name", list(SAMPLERS)[:3])
def test_both_sides_of_the_split_give_the_same_law(name: str) -> None:
    sampler, cdf_for = SAMPLERS[name]
    for scale in (SPLIT_SCALE, np.nextafter(SPLIT_SCALE, np.inf), MAX_SCALE):
        assert_distribution(sampler(float(scale), 60_000, SYSTEM), cdf_for, float(scale))


@each("sampler", [discrete_laplace, geometric, discrete_gaussian])
@each("scale", [0.0, -1.0, MIN_SCALE / 2, MAX_SCALE * 2, float("nan"), float("inf")])
def test_scales_out_of_range_are_refused(sampler: Sampler, scale: float) -> None:
    with refuses(InvalidArgument, "scale"):
        sampler(scale, 1, SYSTEM)


@each("sampler", [discrete_laplace, geometric, discrete_gaussian])
@each("scale", [MIN_SCALE, 1.0, SPLIT_SCALE, 1e9, MAX_SCALE])
@each("count", [0, 1, 3])
def test_shapes_and_types(sampler: Sampler, scale: float, count: int) -> None:
    sample = sampler(scale, count, SYSTEM)
    assert sample.shape == (count,)
    assert sample.dtype == np.int64


@pytest.mark.parametrize("high", [1, 2, 3, 6, 1000])
def test_uniform_integers_are_uniform(high: int) -> None:
    sample = uniform_integers(high, 500_000, SYSTEM)
    assert sample.dtype == np.uint64
    assert int(sample.max()) == high - 1
    assert_uniform(sample, high)


@pytest.mark.parametrize("high", [2**40 - 3, 2**63 + 1, 2**64 - 1, 2**64])
def test_uniform_integers_in_wide_ranges(high: int) -> None:
    sample = uniform_integers(high, 200_000, SYSTEM)
    cells = np.array([int(value) * 64 // high for value in sample.tolist()])
    assert_uniform(cells, 64)
    assert_uniform(sample & np.uint64(15), 16)


def test_uniform_integers_keeps_the_largest_and_skips_what_is_above() -> None:
    assert uniform_integers(6, 3, ScriptedSource([6, 5, 7, 8 + 4, 2**64 - 1, 0])).tolist() == [5, 4, 0]
    assert uniform_integers(2**64, 2, ScriptedSource([2**64 - 1, 0])).tolist() == [2**64 - 1, 0]
    assert uniform_integers(2**63 + 1, 2, ScriptedSource([2**63 + 1, 2**63, 2**64 - 1, 3])).tolist() == [2**63, 3]
    for high in (0, -1, 2**64 + 1):
        with refuses(InvalidArgument, "high"):
            uniform_integers(high, 1, SYSTEM)


def assert_rate(flags: np.ndarray, p: float) -> None:
    counts = np.array([flags.size - flags.sum(), flags.sum()])
    assert surprise(counts, np.array([1 - p, p])) > 1e-9
    for wrong in (0.9 * p, 1.1 * p):
        assert surprise(counts, np.array([1 - wrong, wrong])) < 1e-9


@pytest.mark.parametrize("p", [Fraction(1, 3), 0.3, 0.05, Fraction(5, 6)])
def test_bernoulli_rates(p: Fraction | float) -> None:
    assert_rate(bernoulli(p, 10**6, SYSTEM), float(p))


def test_bernoulli_arrays_zero_and_one() -> None:
    p = np.tile([0.0, 1.0, 0.25, 0.8], 100_000)
    flags = bernoulli(p, p.size, SYSTEM)
    assert not flags[0::4].any()
    assert flags[1::4].all()
    assert_rate(flags[2::4], 0.25)
    assert_rate(flags[3::4], 0.8)
    assert not bernoulli(0.0, 3, ScriptedSource([0, 0, 0])).any()
    assert bernoulli(1.0, 2, ScriptedSource([2**64 - 1, 2**64 - 1])).all()
    assert bernoulli(0.5, 0, SYSTEM).size == 0


@pytest.mark.parametrize("p", [-0.1, 1.5, float("nan"), Fraction(3, 2)])
def test_bernoulli_refuses_what_is_no_probability(p: Any) -> None:
    with refuses(InvalidArgument, "p"):
        bernoulli(p, 1, SYSTEM)


@pytest.mark.parametrize("gamma", [Fraction(1, 2), 3.0, 0.1])
def test_bernoulli_exp_rates(gamma: Fraction | float) -> None:
    assert_rate(bernoulli_exp(gamma, 10**6, SYSTEM), float(np.exp(-float(gamma))))
    assert bernoulli_exp(0.0, 100, SYSTEM).all()
    for bad in (-1.0, float("inf"), float("nan")):
        with refuses(InvalidArgument, "gamma"):
            bernoulli_exp(bad, 1, SYSTEM)


@pytest.fixture
def precise() -> Iterator[None]:
    with mp.workprec(PRECISION):
        yield


@pytest.mark.usefixtures("precise")
@pytest.mark.parametrize("extra", [1, 2, 3])
@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(2, 7), Fraction(1, 3 * 2**30), Fraction(1, 3 * 2**64)])
def test_bernoulli_on_boundary_words(p: Fraction, extra: int) -> None:
    """Also for probabilities below 2^-64, of which the first word says almost nothing."""
    for above in (False, True):
        words = words_beside(real(p), 64, extra, above)
        source = ScriptedSource(words)
        assert bernoulli(p, 1, source).tolist() == [not above]
        assert source.used == 1 + extra


@pytest.mark.usefixtures("precise")
@pytest.mark.parametrize("extra", [1, 2, 3])
@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(17), Fraction(44)])
def test_single_and_many_trials_on_boundary_words(rate: Fraction, extra: int) -> None:
    for above in (False, True):
        words = words_beside(mp.exp(-real(rate)), 64, extra, above)
        p = math.exp(-rate)
        source = ScriptedSource(words)
        assert trial(p, lambda bits: exp_neg(rate, bits), source) is not above
        assert source.used == 1 + extra
        assert trials(p, lambda bits: exp_neg(rate, bits), 1, ScriptedSource(words)).tolist() == [not above]


def test_a_float_probability_is_the_binary_number_it_is() -> None:
    for p in (0.1, 0.5, 1 - 2.0**-53, 2.0**-40):
        word = int(Fraction(p) * 2**64)  # exact: these floats end before bit 64
        for form in (p, np.array([p]), Fraction(p)):
            assert bernoulli(form, 1, ScriptedSource([word])).tolist() == [False]
            assert bernoulli(form, 1, ScriptedSource([word - 1])).tolist() == [True]


@pytest.mark.usefixtures("precise")
@pytest.mark.parametrize("extra", [1, 2, 3])
@pytest.mark.parametrize("gamma", [Fraction(1, 3), 0.7, 17.3, 40.0, 100.0])
def test_bernoulli_exp_on_boundary_words(gamma: Fraction | float, extra: int) -> None:
    for above in (False, True):
        words = words_beside(mp.exp(-real(gamma)), 64, max(extra, 2), above)
        source = ScriptedSource(words)
        assert bernoulli_exp(gamma, 1, source).tolist() == [not above]
        assert source.used == len(words)


@pytest.mark.usefixtures("precise")
def test_a_success_rarer_than_a_word_can_say() -> None:
    # word 0 leaves U anywhere below 2^-64; the next bit decides whether it is below 2^-65
    def threshold(bits: int) -> tuple[int, int]:
        return (0, 1) if bits < 65 else (1 << (bits - 65), 1 << (bits - 65))

    for word, expected in ((0, True), (2**63 - 1, True), (2**63, False), (2**64 - 1, False)):
        assert bernoulli(2.0**-65, 1, ScriptedSource([0, word])).tolist() == [expected]
        assert trial(2.0**-65, threshold, ScriptedSource([0, word])) is expected
        assert trials(2.0**-65, threshold, 1, ScriptedSource([0, word])).tolist() == [expected]
    assert not bernoulli(1e-300, 1, ScriptedSource([0, 0, 1])).any()


@pytest.mark.usefixtures("precise")
@pytest.mark.parametrize("scale", [0.3, 7.7, 2.0**26])
@pytest.mark.parametrize("extra", [1, 2, 3])
def test_geometric_boundaries(scale: float, extra: int) -> None:
    for k in (1, 2, max(3, int(3 * scale))):
        for above in (False, True):
            words = words_beside(mp.exp(-k / real(scale)), 63, extra, above)
            source = ScriptedSource(words)
            assert geometric(scale, 1, source)[0] == k - above
            assert source.used == 1 + extra


@pytest.mark.usefixtures("precise")
@pytest.mark.parametrize("extra", [1, 2, 3])
def test_the_low_part_of_a_split_draw_on_boundary_words(extra: int) -> None:
    scale, shift = 1.5 * 2.0**40, 16
    low = (1 << shift) - 3
    for above in (False, True):
        first, *rest = words_beside(mp.exp(-low / real(scale)), 64, extra, above)
        # high part, low part, keep-or-not, then either the sign or a second low part that is surely kept
        script = [1 << 62, low << (64 - shift), first, *rest, 5 << (64 - shift), 0]
        result = geometric(scale, 1, ScriptedSource(script))[0]
        high = int(mp.floor(mp.log(2) * real(scale) / 2**shift))
        assert result == (high << shift) + (5 if above else low)
        assert _split_low(scale, shift, ScriptedSource(script[1:])) == (5 if above else low)


@pytest.mark.parametrize("scale", [1e9, 1e12, MAX_SCALE])
def test_a_negative_zero_is_drawn_again(scale: float) -> None:
    """Too rare at these scales for frequencies to show it: high part 0, low part 0, kept, and a minus sign."""
    shift = math.frexp(scale)[1] - 25
    script = [MAGNITUDE, 0, 0, 1 << 63, MAGNITUDE, 7 << (64 - shift), 0, 1 << 63]
    for sample in (
        lambda source: discrete_laplace(scale, 1, source)[0],
        lambda source: discrete_laplace_one(scale, source),
    ):
        source = ScriptedSource(script)
        assert sample(source) == -7
        assert source.used == len(script)
        assert sample(ScriptedSource([MAGNITUDE, 0, 0, 0])) == 0


def true_acceptance(k: int, sigma: float) -> Any:
    s = real(sigma)

    def cell(j: int) -> Any:  # from the upper tail, so that far cells do not cancel
        return mp.erfc((j - mp.mpf(1) / 2) / s / mp.sqrt(2)) - mp.erfc((j + mp.mpf(1) / 2) / s / mp.sqrt(2))

    return mp.exp(-(k**2) / (2 * s**2)) * cell(0) / cell(k)


@pytest.mark.usefixtures("precise")
@pytest.mark.parametrize("sigma", [0.15, 0.16, 0.2, 0.3, 0.5, 1.0, 3.0, 50.0])
def test_the_quadrature_is_good_to_its_margin(sigma: float) -> None:
    most = int(40 * sigma * sigma)
    for k in sorted({0, 1, 2, 3, most // 2, max(most - 1, 0), most}):
        if k <= most:
            error = mp.mpf(float(_acceptance(np.array([float(k)]), sigma)[0])) / true_acceptance(k, sigma) - 1
            assert abs(error) < mp.mpf(2) ** -36


@pytest.mark.usefixtures("precise")
@each(("sigma", "k"), [(0.12, 1), (0.5, 1), (0.5, 3), (3.3, 4), (3.3, 20), (1000.0, 2500)])
@each("extra", [1, 2, 3])
def test_gaussian_acceptance_on_boundary_words(sigma: float, k: int, extra: int) -> None:
    truth = true_acceptance(k, sigma)
    for bits in (64, 128, 300):
        low, high = _exact_acceptance(k, Fraction(sigma))(bits)
        assert low <= truth * mp.mpf(2) ** bits <= high <= low + 6
    if mp.erfc((k + 0.5) / real(sigma) / mp.sqrt(2)) < 2.0**-40:
        return  # a proposal that no first word makes alone
    proposed = int(mp.erfc(k / real(sigma) / mp.sqrt(2)) * 2**63)  # a word in the middle of cell k
    for above in (False, True):
        first, *rest = words_beside(truth, 64, extra, above)
        retry = [2**63 - 1, 0]  # proposes 0, which is kept
        expected = 0 if above else k
        assert discrete_gaussian_one(sigma, ScriptedSource([proposed, first, *rest, *retry])) == expected
        assert discrete_gaussian(sigma, 1, ScriptedSource([proposed, first, *rest, *retry]))[0] == expected


def test_the_reference_laws_cover_all_cells_and_add_up() -> None:
    """Cells cover everything and probabilities add up, for every reference law."""
    for _, cdf_for in SAMPLERS.values():
        for scale in (*SMALL, *LARGE):
            below = cdf_for(scale)(integer_edges(scale))
            assert np.all(np.diff(below) >= 0)
            assert below[0] < 1e-3
            assert below[-1] > 1 - 1e-3


def test_seeded_draws_are_reproducible() -> None:
    for sampler in (discrete_laplace, geometric, discrete_gaussian):
        assert np.array_equal(sampler(1e9, 50, SeededSource(4)), sampler(1e9, 50, SeededSource(4)))
