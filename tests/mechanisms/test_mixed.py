from __future__ import annotations

import mpmath as mp
import pytest
from divergence import budget, discrete_laplace, hockey_stick, number, refusal, rounded

from dither import ApproxDP, Gaussian, Laplace, MixedNoise, PureDP
from support import each

CASES = [(s, e, d) for s in (1, 3) for e in (0.3, 1, 4) for d in (1e-9, 1e-3, 0.05, 0.3)]


@each(("sensitivity", "epsilon", "delta"), CASES)
def test_the_smaller_variance_is_chosen(sensitivity: float, epsilon: float, delta: float) -> None:
    m = MixedNoise(sensitivity, epsilon, delta)
    laplace, gaussian = Laplace(sensitivity, epsilon), Gaussian(sensitivity, epsilon, delta)
    assert m.variance == min(laplace.variance, gaussian.variance)
    assert m.mechanism in (laplace, gaussian)
    assert m.guarantee == (PureDP(epsilon) if m.chosen == "Laplace" else ApproxDP(epsilon, delta))
    assert m.guarantee <= ApproxDP(epsilon, delta)


def test_both_laws_are_chosen_somewhere() -> None:
    assert {MixedNoise(*case).chosen for case in CASES} == {"Laplace", "Gaussian"}


@pytest.mark.parametrize(("sensitivity", "epsilon", "delta"), [(1, 1, 1e-3), (2, 1, 0.3), (3, 0.5, 0.2)])
def test_integers_stay_below_the_curve_of_the_law_that_is_used(sensitivity: int, epsilon: float, delta: float) -> None:
    m = MixedNoise(sensitivity, epsilon, delta)
    extent = int(60 * m.scale)
    if m.chosen == "Laplace":
        p, q = (discrete_laplace(m.scale, k, extent) for k in (0, sensitivity))
    else:
        p, q = (rounded(lambda z: mp.erfc(z / number(m.scale) / mp.sqrt(2)), k, extent) for k in (0, sensitivity))
    for at in (0, 0.5 * epsilon, epsilon):
        assert hockey_stick(p, q, at) <= number(m.privacy_curve(at)) + mp.mpf(10) ** -18
    assert hockey_stick(p, q, epsilon) <= budget(delta)


def test_vectors_choose_by_the_largest_error() -> None:
    m = MixedNoise(100, 1, 1e-6, l2_sensitivity=10, coordinates=100)
    assert m.chosen == "Gaussian"
    assert m.error() == Gaussian(10, 1, 1e-6).error(coordinates=100)
    assert m.error(integer=False) <= Laplace(100, 1).error(coordinates=100, integer=False)
    assert MixedNoise(1, 1, 1e-6, l2_sensitivity=1, coordinates=5).chosen == "Laplace"


@each("delta", [1e-6, 1e-2, 0.1, 0.3])
@each("confidence", [0.5, 0.9, 0.95, 0.999, 0.999999])
def test_for_error_keeps_to_the_error_with_the_law_it_uses(delta: float, confidence: float) -> None:
    m = MixedNoise.for_error(3, sensitivity=1, delta=delta, confidence=confidence)
    assert m.error(confidence, integer=False) <= 3
    assert m.epsilon <= max(
        Laplace.for_error(3, sensitivity=1, confidence=confidence).epsilon,
        Gaussian.for_error(3, sensitivity=1, delta=delta, confidence=confidence).epsilon,
    )


def test_one_sensitivity_only() -> None:
    refusal(lambda: MixedNoise([1, 2], 1, 1e-6))  # type: ignore[arg-type]
    refusal(lambda: MixedNoise(1, 1, 1e-6, l2_sensitivity=[1]))  # type: ignore[arg-type]
    refusal(lambda: MixedNoise(1, 1, 1e-6, coordinates=0))
    refusal(lambda: MixedNoise(1, 1, 0))
