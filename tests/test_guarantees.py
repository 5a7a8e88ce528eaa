from __future__ import annotations

import copy
import itertools
import math
import pickle
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from dither import ZCDP, ApproxDP, DitherError, Guarantee, PureDP, parallel, sequential
from dither.accounting import amplify, post_process
from support import each, label, refuses

DIGITS = 60
DELTAS = [1e-300, 1e-40, 1e-12, 1e-6, 1e-3, 0.01, 0.1, 0.3]
losses = st.fractions(min_value=Fraction(1, 10**6), max_value=100)
failures = st.fractions(min_value=Fraction(1, 10**9), max_value=Fraction(1, 100))
pures = st.builds(PureDP, losses)
approxes = st.builds(ApproxDP, losses, failures)
zcdps = st.builds(ZCDP, losses)
ONE_KIND = [pures, approxes, zcdps]


def exact(number: Any) -> Any:
    fraction = Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
    return mp.mpf(fraction.numerator) / fraction.denominator


def binary(number: Fraction) -> Any:
    return mp.mpf(number.numerator) / number.denominator


def test_ten_tenths_are_one_and_nothing_more_fits() -> None:
    ten = sum(10 * [PureDP(0.1)])
    assert ten == PureDP(1) == 10 * PureDP(0.1) == PureDP(0.1) * 10
    assert ten <= PureDP(1)
    assert not ten + PureDP(1e-12) <= PureDP(1)
    assert sum(1000 * [ApproxDP(0.001, 1e-9)]) == ApproxDP(1, 1e-6)
    assert sum(10 * [ZCDP(0.1)]) == ZCDP(1)


def test_kinds_add_as_far_as_they_can() -> None:
    assert PureDP(1) + ApproxDP(0.5, 1e-6) == ApproxDP(1.5, 1e-6) == ApproxDP(0.5, 1e-6) + PureDP(1)
    assert PureDP(1) + ZCDP(0.1) == PureDP(1).to_zcdp() + ZCDP(0.1) == ZCDP(0.1) + PureDP(1)
    assert sum([PureDP(1), ApproxDP(1, 1e-6), PureDP(1)]) == ApproxDP(3, 1e-6)
    for left, right in itertools.permutations([ZCDP(1), ApproxDP(1, 1e-6)]):
        with pytest.raises(TypeError, match=r"to_approx"):
            left + right
        with pytest.raises(TypeError, match=r"to_approx"):
            parallel(left, right)


def test_parallel_takes_the_largest_of_each_number() -> None:
    assert parallel(PureDP(1) + PureDP(0.5), PureDP(0.7)) == PureDP(1.5)
    assert parallel(ApproxDP(1, 1e-6), ApproxDP(0.5, 1e-3)) == ApproxDP(1, 1e-3)
    assert parallel(PureDP(1), ZCDP(0.1)) == PureDP(1).to_zcdp()
    assert parallel(PureDP(2)) == PureDP(2)


@pytest.mark.parametrize("junk", [(), (1,), ("x", PureDP(1)), (PureDP(1), 0), (None,), ([PureDP(1)],)], ids=label)
def test_parallel_refuses(junk: tuple[Any, ...]) -> None:
    with refuses((ValueError, TypeError)) as refused:
        parallel(*junk)
    assert isinstance(refused.value, DitherError)


@each(
    "make",
    [
        lambda: PureDP(0),
        lambda: PureDP(-1),
        lambda: PureDP(math.nan),
        lambda: PureDP(math.inf),
        lambda: PureDP("1"),
        lambda: PureDP(None),
        lambda: PureDP(True),
        lambda: PureDP(1e7),
        lambda: ApproxDP(-1, 1e-6),
        lambda: ApproxDP(1, 0),
        lambda: ApproxDP(1, 1),
        lambda: ApproxDP(math.nan, 0.1),
        lambda: ApproxDP(1, 0.5) + ApproxDP(1, 0.5),
        lambda: ZCDP(0),
        lambda: ZCDP(math.nan),
        lambda: ZCDP(1e13),
        lambda: PureDP(1) * 0,
        lambda: PureDP(1) * -1,
        lambda: PureDP(1) * 1.5,
        lambda: PureDP(1) * True,
        lambda: PureDP(1).to_approx(0),
        lambda: PureDP(1).to_approx(math.nan),
        lambda: ZCDP(1).to_approx(1),
        lambda: ApproxDP(1, 1e-3).to_approx(1e-6),
    ],
)
def test_nonsense_is_refused(make: Any) -> None:
    with refuses((ValueError, TypeError)) as refused:
        make()
    assert isinstance(refused.value, DitherError)


@pytest.mark.parametrize("other", [1, "x", None, 1.5, [1]])
def test_other_things_neither_add_nor_compare(other: Any) -> None:
    for act in (lambda: PureDP(1) + other, lambda: other + PureDP(1), lambda: PureDP(1) <= other):
        with pytest.raises(TypeError):
            act()
    assert PureDP(1) != other


@pytest.mark.parametrize("one", [PureDP(Fraction(1, 3)), ApproxDP(0, 0.1), ApproxDP(0.1, 1e-9), ZCDP(1e-12)], ids=label)
def test_guarantees_are_frozen_values(one: Guarantee) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(one, protocol)) == one
    assert copy.deepcopy(one) == one
    assert hash(copy.copy(one)) == hash(one)
    assert {one: 1}[copy.copy(one)] == 1
    with pytest.raises(AttributeError):
        one.epsilon = 0.1  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        one.exact = ()
    with pytest.raises(AttributeError):
        del one.exact
    assert one == copy.copy(one)


def test_kinds_with_equal_numbers_differ() -> None:
    assert PureDP(1) != ZCDP(1)
    assert len({PureDP(1), ZCDP(1), ApproxDP(1, 0.1), PureDP(1.0)}) == 3


def test_repr_and_str_say_the_numbers() -> None:
    assert repr(PureDP(0.1)) == "PureDP(0.1)"
    assert repr(ApproxDP(1, 1e-6)) == "ApproxDP(1, 1e-06)"
    assert str(PureDP(0.5)) == "ε = 0.5"
    assert str(ApproxDP(1, 1e-6)) == "(ε, δ) = (1, 1e-06)"
    assert str(ZCDP(0.5)) == "ρ = 0.5 (zCDP)"


@given(st.one_of(pures, approxes, zcdps))
def test_what_is_shown_is_never_less_than_what_is_lost(one: Guarantee) -> None:
    shown = eval(repr(one))
    assert all(a >= b for a, b in zip(shown.exact, one.exact, strict=True))
    assert all(a <= b * (1 + Fraction(1, 10**11)) for a, b in zip(shown.exact, one.exact, strict=True))


@each("delta", DELTAS)
@each("epsilon", [1e-6, 0.1, 1, 3.7, 30, 1000])
def test_pure_to_approx_is_the_randomized_response_curve(epsilon: float, delta: float) -> None:
    with mp.workdps(1000):
        truth = max(
            mp.mpf(0), exact(epsilon) + mp.log(max(1 - exact(delta) * (1 + mp.exp(-exact(epsilon))), mp.mpf(0)))
        )
        result = binary(PureDP(epsilon).to_approx(delta).exact[0])
        assert truth <= result <= truth + mp.mpf(10) ** -12
        assert result <= exact(epsilon)
        # by its own definition: randomized response at found has delta no larger
        p = 1 / (1 + mp.exp(-exact(epsilon)))
        assert p - mp.exp(result) * (1 - p) <= exact(delta) + mp.mpf(10) ** -500


@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.01, 0.3])
def test_approx_to_approx_is_the_curve_of_leak_or_randomized_response(delta: float) -> None:
    with mp.workdps(DIGITS):
        leak, epsilon = exact(1e-6), mp.mpf(2)
        result = binary(ApproxDP(2, 1e-6).to_approx(delta).exact[0])
        p = 1 / (1 + mp.exp(-epsilon))
        curve = leak + (1 - leak) * (p - mp.exp(result) * (1 - p))
        assert curve <= exact(delta) + mp.mpf(10) ** -50
        assert result == 2 if delta == 1e-6 else curve > exact(delta) - mp.mpf(10) ** -12


def gaussian_delta(epsilon: Any, sigma: Any) -> Any:
    return mp.ncdf(1 / (2 * sigma) - epsilon * sigma) - mp.exp(epsilon) * mp.ncdf(-1 / (2 * sigma) - epsilon * sigma)


@pytest.mark.slow
@each("delta", [1e-300, 1e-30, 1e-10, 1e-6, 1e-3, 0.1])
@each("rho", [1e-9, 1e-4, 0.01, 0.5, 1, 10, 1000])
def test_zcdp_to_approx_is_the_least_of_the_cks_formula(rho: float, delta: float) -> None:
    with mp.workdps(DIGITS):
        r, log_delta = exact(rho), mp.log(exact(delta))
        result = binary(ZCDP(rho).to_approx(delta).exact[0])

        def loss(t: Any) -> Any:
            a = 1 + mp.exp(t)
            return a * r + (-log_delta + a * mp.log(1 - 1 / a) - mp.log(a - 1)) / (a - 1)

        start = minimize_scalar(lambda t: float(loss(mp.mpf(t))), bounds=(-18, 36), method="bounded").x
        low, high = mp.mpf(start) - 1, mp.mpf(start) + 1
        for _ in range(120):
            a, b = low + (high - low) * mp.mpf("0.382"), high - (high - low) * mp.mpf("0.382")
            low, high = (low, b) if loss(a) < loss(b) else (a, high)
        best = max(mp.mpf(0), loss((low + high) / 2))
        assert best - mp.mpf(10) ** -40 <= result <= best + mp.mpf(10) ** -9 * max(best, 1)
        assert result <= r + 2 * mp.sqrt(-r * log_delta)
    with mp.workdps(700):
        assert gaussian_delta(result, 1 / mp.sqrt(2 * exact(rho))) <= exact(delta)  # one rho-zCDP mechanism


def test_comparison_across_kinds_is_implication() -> None:
    assert PureDP(1) <= ApproxDP(1, 1e-6)
    assert PureDP(1) <= PureDP(1).to_approx(0.01)
    assert PureDP(1) <= ZCDP(0.4622)
    assert not PureDP(1) <= ZCDP(0.4621)  # tanh(1/2) = 0.46212
    assert ZCDP(0.5) <= ZCDP(0.5).to_approx(1e-6)
    for weaker, stronger in itertools.product([ApproxDP(1, 1e-6), ZCDP(1e-9)], [PureDP(1000)]):
        assert not weaker <= stronger
    assert not ApproxDP(1e-6, 1e-9) <= ZCDP(1000)
    assert not ApproxDP(1, 1e-3) <= ApproxDP(1, 1e-6)
    assert not ZCDP(1e12) <= ApproxDP(1, 1e-6)  # a loss beyond a million compares, and is larger
    assert PureDP(1) > PureDP(0.5) >= PureDP(0.5)
    assert not PureDP(1) < PureDP(1)


def test_implication_uses_the_delta_itself_not_its_float() -> None:
    third = Fraction(1, 3)  # its float, rounded up, is larger
    with mp.workdps(DIGITS):
        need = 2 + mp.log(1 - mp.mpf(1) / 3 * (1 + mp.exp(-2)))
        short = Fraction(int(mp.floor(need * mp.mpf(2) ** 120)), 1 << 120) - Fraction(1, 1 << 60)
    assert not PureDP(2) <= ApproxDP(short, third)
    assert PureDP(2) <= ApproxDP(short + Fraction(1, 1 << 48), third)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ONE_KIND)
def test_composition_is_a_commutative_monoid_and_never_helps(kind: Any) -> None:
    @settings(max_examples=60, deadline=None)
    @given(kind, kind, kind)
    def check(a: Guarantee, b: Guarantee, c: Guarantee) -> None:
        assert a + b == b + a
        assert (a + b) + c == a + (b + c)
        assert a <= a + b
        assert a < a + b
        assert not a + b <= a
        assert parallel(a, b) <= a + b
        assert a <= parallel(a, b)
        assert parallel(a, b) == parallel(b, a)
        assert 3 * a == a + a + a == sum([a, a, a])
        assert 0 + a == a

    check()


@settings(max_examples=60, deadline=None)
@given(st.one_of(pures, zcdps), st.one_of(pures, zcdps), failures, failures)
def test_to_approx_is_monotone(a: Guarantee, b: Guarantee, small: Fraction, large: Fraction) -> None:
    small, large = sorted((small, large))
    assert a.to_approx(large).epsilon <= a.to_approx(small).epsilon
    assert a <= a.to_approx(small)
    if a <= b and type(a) is type(b):
        assert a.to_approx(small).epsilon <= b.to_approx(small).epsilon * (1 + 1e-12)


def test_a_delta_below_the_floats_still_converts() -> None:
    tiny = ZCDP(1).to_approx(Fraction(1, 10**400))
    assert 60 < tiny.epsilon < 63
    assert "1E-400" in repr(tiny)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 0.01, 0.5, 1, 3, 20, 1000, 10**6])
def test_pure_to_zcdp_is_epsilon_tanh_half_epsilon_and_bounds_every_order(epsilon: float) -> None:
    with mp.workdps(DIGITS):
        e, result = exact(epsilon), binary(PureDP(epsilon).to_zcdp().exact[0])
        truth = e * mp.tanh(e / 2)
        assert truth <= result <= truth * (1 + mp.mpf(10) ** -15)
        assert result <= e * e / 2

        def divergence(order: Any) -> Any:
            return (mp.log(mp.cosh((order - mp.mpf(1) / 2) * e)) - mp.log(mp.cosh(e / 2))) / (order - 1)

        for order in (1 + mp.mpf(10) ** -9, mp.mpf("1.001"), mp.mpf("1.5"), mp.mpf(2), mp.mpf(7), mp.mpf(100)):
            assert divergence(order) <= order * result
        near = 1 + mp.mpf(10) ** -9  # and no smaller rho would do
        assert divergence(near) > near * result * mp.mpf("0.99")


def test_sequential_adds_and_post_processing_is_free() -> None:
    assert sequential(PureDP(0.1), PureDP(0.2), PureDP(0.3)) == PureDP(0.6)
    assert sequential(PureDP(1), ApproxDP(1, 1e-6)) == ApproxDP(2, 1e-6)
    assert sequential(ZCDP(0.1)) == ZCDP(0.1)
    assert parallel(sequential(PureDP(0.3), PureDP(0.2)), PureDP(0.4)) == PureDP(0.5)
    for one in (PureDP(1), ApproxDP(1, 0.1), ZCDP(1)):
        assert post_process(one) is one


@pytest.mark.parametrize("size", [1, 2, 5, 50])
def test_groups(size: int) -> None:
    assert PureDP(0.1).group(size) == PureDP(0.1) * size
    assert ZCDP(0.1).group(size) == ZCDP(0.1) * size**2
    with mp.workdps(DIGITS):
        result = ApproxDP(0.1, 1e-9).group(size).exact
        assert result[0] == Fraction(size, 10)
        truth = mp.mpf(10) ** -9 * mp.fsum(mp.exp(mp.mpf(i) / 10) for i in range(size))
        assert truth <= binary(result[1]) <= truth * (1 + mp.mpf(10) ** -15)
    assert ApproxDP(0, 1e-3).group(size) == ApproxDP(0, 1e-3) * size


@each("rate", [1e-12, 1e-3, 0.5, 0.999, 1])
@each("epsilon", [1e-9, 0.1, 1, 30, 500, 10**5])
def test_amplification_is_the_formula_from_above(epsilon: float, rate: float) -> None:
    with mp.workdps(300):
        e, q = exact(epsilon), exact(rate)
        truth = e + mp.log(q + (1 - q) * mp.exp(-e))
        result = amplify(PureDP(epsilon), rate)
        assert truth <= binary(result.exact[0]) <= truth * (1 + mp.mpf(10) ** -12)
        assert result <= PureDP(epsilon)
    twin = amplify(ApproxDP(epsilon, 1e-6), rate)
    assert twin == ApproxDP(result.exact[0], Fraction(1, 10**6) * Fraction(repr(rate)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: sequential(),
        lambda: sequential(PureDP(1), 1),  # type: ignore[arg-type]
        lambda: sequential(ZCDP(1), ApproxDP(1, 0.1)),
        lambda: post_process(1),  # type: ignore[arg-type]
        lambda: PureDP(1).group(0),
        lambda: ZCDP(1).group(1.5),  # type: ignore[arg-type]
        lambda: ApproxDP(1, 0.1).group(True),
        lambda: ApproxDP(1, 0.1).group(3),
        lambda: ApproxDP(100, 1e-9).group(10**6),
        lambda: amplify(PureDP(1), 0),
        lambda: amplify(PureDP(1), 1.1),
        lambda: amplify(PureDP(1), math.nan),
        lambda: amplify(PureDP(1), True),
        lambda: amplify(ZCDP(1), 0.1),
        lambda: amplify("x", 0.1),  # type: ignore[arg-type]
    ],
)
def test_groups_samples_and_sequences_refuse_nonsense(make: Any) -> None:
    with refuses((ValueError, TypeError)) as refused:
        make()
    assert isinstance(refused.value, DitherError)
