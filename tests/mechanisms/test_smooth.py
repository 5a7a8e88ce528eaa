"""SmoothNoise: its contract, its law, its guarantee on the pair where the local sensitivity leaks, and its gain."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from divergence import hockey_stick_of_densities, largest_loss, number, refusal
from scipy import stats

from dither import ApproxDP, InvalidArgument, NotPrivate, PureDP, SmoothNoise, sensitivity
from dither.randomness import SeededSource, round_nearest_all
from dither.randomness.source import is_seeded
from support import FALSE_ALARM, each, refuses, surprise

KINDS: list[Any] = ["laplace", "gaussian", "cauchy", "student", "power"]
GAMMA = 3.5


def power_cdf(z: Any, gamma: float = GAMMA) -> Any:
    """The law with density proportional to 1 / (1 + |z|^gamma): |Z|^gamma / (1 + |Z|^gamma) is a beta variable."""
    power = np.abs(z) ** gamma
    return 0.5 + 0.5 * np.sign(z) * stats.beta.cdf(power / (1 + power), 1 / gamma, 1 - 1 / gamma)


def power_ppf(u: Any, gamma: float = GAMMA) -> Any:
    share = stats.beta.ppf(np.abs(2 * u - 1), 1 / gamma, 1 - 1 / gamma)
    return np.sign(u - 0.5) * (share / (1 - share)) ** (1 / gamma)


CDFS: dict[str, Any] = {
    "laplace": stats.laplace.cdf,
    "gaussian": stats.norm.cdf,
    "cauchy": stats.cauchy.cdf,
    "student": lambda z: stats.t.cdf(np.sqrt(3) * z, 3),
    "power": power_cdf,
}
PPFS: dict[str, Any] = {
    "laplace": stats.laplace.ppf,
    "gaussian": stats.norm.ppf,
    "cauchy": stats.cauchy.ppf,
    "student": lambda u: stats.t.ppf(u, 3) / np.sqrt(3),
    "power": power_ppf,
}


def mechanism(kind: Any, epsilon: float = 1, delta: float = 1e-6) -> SmoothNoise:
    gamma = GAMMA if kind == "power" else None
    return SmoothNoise(kind, epsilon, delta if kind in ("laplace", "gaussian") else None, gamma=gamma)


@pytest.mark.parametrize("kind", KINDS)
def test_fields(kind: Any) -> None:
    m = mechanism(kind)
    assert (m.kind, m.epsilon, m.calibration) == (kind, 1, "exact")
    assert m.guarantee == (ApproxDP(1, 1e-6) if m.delta else PureDP(1))
    assert isinstance(m.beta, float)
    assert isinstance(m.scale, float)
    assert 0 < m.beta < 1
    assert m == mechanism(kind)
    with pytest.raises(dataclasses.FrozenInstanceError):
        m.scale = 0.1  # type: ignore[misc]
    assert m.certificate() <= (1e-6 if m.delta else 1)
    assert m.certificate() > (1e-6 if m.delta else 1) * (1 - 1e-4)
    if m.delta:
        assert m.certificate(2) < m.certificate(1)
    moments = [mp.quad(lambda z, k=k: z**k / (1 + z ** mp.mpf(GAMMA)), [0, 1, 10, mp.inf]) for k in (0, 2)]
    power = math.sqrt(moments[1] / moments[0])
    unit = {"laplace": math.sqrt(2), "gaussian": 1.0, "cauchy": math.inf, "student": 1.0, "power": power}[kind]
    assert m.std(3.0) == pytest.approx(3 * m.scale * unit)


@pytest.mark.slow
@each("kind", KINDS)
@each("epsilon", [0.001, 0.07, 1, 7, 50])
def test_every_certificate_holds(kind: Any, epsilon: float) -> None:
    for delta in (0.3, 1e-5, 1e-12) if kind in ("laplace", "gaussian") else (0.0,):
        m = mechanism(kind, epsilon, delta)
        assert Fraction(m.certificate()) <= Fraction(repr(delta or epsilon))


@pytest.mark.parametrize("kind", KINDS)
def test_half_widths(kind: Any) -> None:
    m = mechanism(kind)
    for confidence in (0.5, 0.95, 0.999):
        z = m.error(2.0, confidence) / (2 * m.scale)
        assert 2 * CDFS[kind](z) - 1 == pytest.approx(confidence, rel=1e-8)


def test_for_beta() -> None:
    for kind in KINDS:
        best = mechanism(kind)
        item = SmoothNoise.for_beta(kind, 1, best.delta, best.beta / 2, gamma=best.gamma)
        assert item.beta == best.beta / 2
        assert item.scale < best.scale
        assert item.scale / item.beta > best.scale / best.beta
        assert item.certificate() <= (1e-6 if item.delta else 1)
    for kind, beta in (("laplace", 0.95), ("laplace", 0.5), ("gaussian", 0.5), ("student", 0.4), ("cauchy", 1.0)):
        refusal(lambda kind=kind, beta=beta: SmoothNoise.for_beta(kind, 1, mechanism(kind).delta, beta))
    for beta in (0, -1, math.nan, 1e-40, 1e-13):
        refusal(lambda beta=beta: SmoothNoise.for_beta("gaussian", 1, 1e-6, beta))


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_a_delta_is_needed(kind: Any) -> None:
    for missing in (None, 0, 0.0):
        with refuses(NotPrivate, "delta"):
            SmoothNoise(kind, 1, missing)
    for wrong in (-1e-6, 1, 2, math.nan, 1e-21, 1e-300):
        refusal(lambda wrong=wrong: SmoothNoise(kind, 1, wrong))


@pytest.mark.parametrize(("kind", "gamma"), [("cauchy", None), ("student", None), ("power", 3)])
def test_a_delta_is_not_wanted(kind: Any, gamma: float | None) -> None:
    with refuses(InvalidArgument, "delta"):
        SmoothNoise(kind, 1, 1e-6, gamma=gamma)
    assert SmoothNoise(kind, 1, 0, gamma=gamma).guarantee == PureDP(1)


def test_a_gamma_belongs_to_a_power_law() -> None:
    for kind, gamma in (("power", None), ("cauchy", 2), ("laplace", 2)):
        with refuses(InvalidArgument, "gamma"):
            SmoothNoise(kind, 1, 1e-6 if kind == "laplace" else None, gamma=gamma)  # type: ignore[arg-type]
    for gamma in (1, 1.19, 30.5, 0, -2, math.nan, math.inf, "3"):
        refusal(lambda gamma=gamma: SmoothNoise("power", 1, gamma=gamma))
    cauchy, power = SmoothNoise("cauchy", 1), SmoothNoise("power", 1, gamma=2)
    assert (cauchy.beta, cauchy.scale, cauchy.law) == (power.beta, power.scale, power.law)


@each("gamma", [1.2, 1.7, 2, 3, 5.5, 30])
@each("epsilon", [0.001, 1, 50])
def test_power_laws_against_the_textbook(gamma: float, epsilon: float) -> None:
    """The printed scale and beta are private, and need more noise than the smallest pair."""
    textbook = SmoothNoise("power", epsilon, calibration="textbook", gamma=gamma)
    best = SmoothNoise("power", epsilon, gamma=gamma)
    assert textbook.scale == pytest.approx(2 * (gamma + 1) / epsilon)
    assert textbook.beta == pytest.approx(epsilon / (2 * (gamma + 1)))
    assert textbook.certificate() < epsilon
    assert best.certificate() <= epsilon
    assert best.scale / best.beta < textbook.scale / textbook.beta


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [1.5, 3.5, 8.0])
def test_the_power_law_of_many_draws(gamma: float) -> None:
    """Chi-square on twenty equal cells: the true scale passes, 0.9 and 1.1 times it do not."""
    law, source = SmoothNoise("power", 1, gamma=gamma).law, SeededSource(7)
    edges = power_ppf(np.arange(1, 20) / 20, gamma)
    sample = round_nearest_all(np.zeros(60_000), law, 1.0, 2.0**-30, source)
    counts = np.bincount(np.searchsorted(edges, sample), minlength=20).astype(np.int64)

    def judge(factor: float) -> float:
        return surprise(counts, np.diff(np.concatenate([[0.0], power_cdf(edges / factor, gamma), [1.0]])))

    assert judge(1.0) > FALSE_ALARM
    assert judge(0.9) < FALSE_ALARM
    assert judge(1.1) < FALSE_ALARM


def test_other_refusals() -> None:
    for epsilon in (0, -1, 0.0009, 50.1, math.nan, math.inf, None, "1"):
        refusal(lambda epsilon=epsilon: SmoothNoise("cauchy", epsilon))
    refusal(lambda: SmoothNoise("normal", 1, 1e-6))  # type: ignore[arg-type]
    refusal(lambda: SmoothNoise("cauchy", 1, calibration="best"))  # type: ignore[arg-type]
    refusal(lambda: SmoothNoise("student", 1, calibration="textbook"))
    with refuses(NotPrivate, "true delta"):
        SmoothNoise("gaussian", 10, 1e-6, "textbook")
    m = mechanism("laplace")
    secret = 123.456789
    for size in (-secret, math.nan, math.inf, 10**400, 1e300, "1", None):
        refusal(lambda size=size: m.release(1.0, size, width=1), secret)
    for width in (0, -1, math.nan, math.inf, 1e-310, 1e300):
        refusal(lambda width=width: m.release(secret, 1.0, width=width), secret)
    for value in (math.nan, math.inf, "1", [secret], np.array([secret]), None):
        refusal(lambda value=value: m.release(value, 1.0, width=1), secret)


@each("kind", KINDS)
@each("width", [1e-9, 1, 100, 1e6 + 0.1])
def test_the_lattice_is_public(kind: Any, width: float) -> None:
    """Whatever the sensitivity, outcomes are multiples of one step that the width alone decides."""
    step = 2.0 ** (math.frexp(width)[1] - 41)
    assert width / 2**41 <= step <= width / 2**40
    m, seen = mechanism(kind), set()
    for size in (0, 1e-30, width * 1e-7, width / 3, Fraction(width) / 7):
        for value in (0.0, width / 3, Fraction(1, 7)):
            released = m.release(value, size, width=width)
            assert type(released) is float
            assert released % step == 0
            seen.add(released / step % 2)
    assert seen == {0.0, 1.0}  # and of no larger step


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_without_sensitivity_the_value_is_rounded_and_no_more(kind: Any) -> None:
    m = mechanism(kind)
    step = 2.0 ** (math.frexp(8.0)[1] - 41)
    for value in (5.0, math.pi, 0.1):
        assert {m.release(value, 0, width=8) for _ in range(50)} == {round(Fraction(value) / Fraction(step)) * step}
    assert m.release(5, 0.0, width=8) == 5.0


def test_seeded_releases_are_marked() -> None:
    for kind in KINDS:
        m = mechanism(kind)
        first, again = (m.release(1.0, 1.0, width=10, source=SeededSource(4)) for _ in range(2))
        assert first == again
        assert is_seeded(first)
        assert not is_seeded(m.release(1.0, 1.0, width=10))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_law_of_the_release(kind: Any) -> None:
    m, size, value = mechanism(kind), 0.7, 20.3
    source = SeededSource(11)
    count = 3000 if kind == "student" else 5000
    sample = np.array([float(m.release(value, size, width=100, source=source)) for _ in range(count)]) - value
    edges = PPFS[kind](np.arange(1, 10) / 10) * m.scale * size
    counts = np.bincount(np.searchsorted(edges, sample, side="left"), minlength=10).astype(np.int64)

    def judge(factor: float) -> float:
        below = CDFS[kind](edges / (m.scale * size * factor))
        return surprise(counts, np.diff(np.concatenate([[0.0], below, [1.0]])))

    assert judge(1.0) > FALSE_ALARM
    assert judge(0.8) < FALSE_ALARM
    assert judge(1.25) < FALSE_ALARM


# --- the pair on which noise of the local sensitivity leaks ----------------------------------------------------------

N, TOP = 21, 1000.0
TIED = [0.0] * 12 + [TOP] * 9  # the median is 0 and stays 0 whatever one record does
FREE = [0.0] * 11 + [TOP] * 10  # the median is 0 and one record moves it to the top


def laplace_density(scale: float) -> Any:
    return lambda z: mp.exp(-abs(z) / number(scale)) / (2 * number(scale))


def normal_density(scale: float) -> Any:
    return lambda z: mp.exp(-((z / number(scale)) ** 2) / 2) / (number(scale) * mp.sqrt(2 * mp.pi))


def test_noise_of_the_local_sensitivity_is_caught_on_the_pair() -> None:
    """Both medians are 0; noise of the local sensitivity is none for one table and large for its neighbor."""
    local = [sensitivity.local_median(x, (0, TOP)) for x in (TIED, FREE)]
    assert local == [0.0, TOP]
    rng = np.random.default_rng(3)
    zero = [int(np.sum(rng.laplace(0, 1, 2000) * size == 0)) for size in local]
    assert zero == [2000, 0]  # the event "exactly 0": probabilities 1 and 0, whatever epsilon
    nearly = [max(size, 1e-3) for size in local]
    extent = [k * size * s for size in nearly for k in (1, 4, 16, 60) for s in (-1, 1)]
    caught = hockey_stick_of_densities(laplace_density(nearly[0]), laplace_density(nearly[1]), [0, *extent], 1)
    assert caught > 0.99


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "density"), [("laplace", laplace_density), ("gaussian", normal_density)])
@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-3), (1, 1e-6), (3, 1e-6)])
def test_noise_of_the_smooth_sensitivity_is_not(kind: Any, density: Any, epsilon: float, delta: float) -> None:
    m = SmoothNoise(kind, epsilon, delta)
    sizes = [sensitivity.smooth_median(x, (0, TOP), m.beta) for x in (TIED, FREE)]
    assert sizes[0] < sizes[1] <= sizes[0] * math.exp(m.beta)
    scales = [m.scale * size for size in sizes]
    extent = [k * scales[1] * s for k in (0.5, 1, 2, 4, 8, 16, 40) for s in (-1, 1)]
    result = hockey_stick_of_densities(density(scales[0]), density(scales[1]), [0, *extent], epsilon)
    assert 0 <= result <= delta
    if delta == 1e-3:
        assert result > delta / 100  # the pair does use the budget


@pytest.mark.parametrize(("kind", "power"), [("cauchy", 1), ("student", 2)])
def test_heavy_tails_lose_no_more_than_epsilon_on_the_pair(kind: Any, power: int) -> None:
    m = SmoothNoise(kind, 1)
    scales = [m.scale * sensitivity.smooth_median(x, (0, TOP), m.beta) for x in (TIED, FREE)]
    grid = [k / 7 * scales[0] for k in range(-3000, 3001, 5)]
    laws = [{z: (1 + (z / s) ** 2) ** -power / s for z in grid} for s in scales]
    assert 0 < largest_loss(*laws) <= 1
    for gamma in (1.5, 3.0, 6.0):
        m = SmoothNoise("power", 1, gamma=gamma)
        scales = [m.scale * sensitivity.smooth_median(x, (0, TOP), m.beta) for x in (TIED, FREE)]
        laws = [{z: 1 / (1 + abs(z / s) ** gamma) / s for z in grid} for s in scales]
        assert 0 < largest_loss(*laws) <= 1


def test_exact_calibration_against_the_textbook() -> None:
    exact = {kind: SmoothNoise(kind, 1, 1e-6) for kind in ("laplace", "gaussian")}
    textbook = {kind: SmoothNoise(kind, 1, 1e-6, "textbook") for kind in ("laplace", "gaussian")}
    for kind, gain in (("laplace", 1.5), ("gaussian", 2.5)):
        assert textbook[kind].scale / textbook[kind].beta > gain * exact[kind].scale / exact[kind].beta
    ratios: dict[str, list[float]] = {"laplace": [], "gaussian": []}
    for seed in range(3):
        incomes = np.random.default_rng(seed).lognormal(10.5, 0.8, 10_001)
        for kind, result in ratios.items():
            stds = [m.std(sensitivity.smooth_median(incomes, (0, 1e6), m.beta)) for m in (textbook[kind], exact[kind])]
            result.append(stds[0] / stds[1])
    print(ratios)
    assert ratios["laplace"][0] >= 1.4
    assert ratios["gaussian"][0] >= 2.4
    assert min(ratios["laplace"]) > 1.2
    assert min(ratios["gaussian"]) > 2.2
