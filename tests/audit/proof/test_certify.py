"""Mechanisms are certified over a grid, broken variants are refuted, and altered or unknown objects are refused."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import math
import pickle
import time
from fractions import Fraction

import numpy as np
import pytest

import dither as dp
from dither import mechanisms
from dither.audit.proof.certificate import Certificate, Evidence
from dither.audit.proof.certify import certify, certify_unchecked
from dither.budget_hooks import charging_to, observed_by
from dither.errors import InvalidArgument, NotPrivate, WrongType
from dither.randomness import SeededSource, drawn_from, source
from support import SOON_S, each, refuses


def changed(mechanism, /, **fields):
    """The same mechanism with modified attributes, as a bug would leave them."""
    for name, value in fields.items():
        assert hasattr(mechanism, name)
        object.__setattr__(mechanism, name, value)
    return mechanism


def holdout(epsilon, limit=2):
    return dp.ReusableHoldout([1.0, 2.0], [1.0, 2.0, 4.0], bounds=(0, 1), epsilon=epsilon, threshold=0.1, limit=limit)


def built_in(epsilons):
    """One mechanism of each kind and variant, with a flag that says whether upper and lower bounds must agree."""
    for e in epsilons:
        yield dp.Laplace(1, e), True
        yield dp.Laplace(0.3, e), True
        yield dp.Laplace(Fraction(7, 3), e), True
        yield dp.Laplace([1, 2.5, 3], e), True
        yield dp.Laplace([1, 2], e, split=[1, 3]), True
        yield dp.Gaussian(1, e, 1e-6), True
        yield dp.Gaussian(0.3, e, 1e-12), True
        yield dp.Gaussian([1, 2], e, 1e-6), True
        yield dp.Gaussian(2, rho=e), True
        yield dp.Staircase(1, e), True
        yield dp.Staircase(0.7, e, gamma=0.3), True
        yield dp.Staircase([1, 2], e), True
        yield dp.MixedNoise(1, e, 1e-6), True
        yield dp.MixedNoise(100, e, 1e-6, l2_sensitivity=10, coordinates=100), True
        yield dp.BoundedLaplace(1, e, 0, 10), True
        yield dp.BoundedLaplace(0.5, e, 0, 1), True
        yield dp.BoundedLaplace(1, e, 0, 10, delta=1e-3), False
        yield dp.SmoothNoise("laplace", e, 1e-6), True
        yield dp.SmoothNoise("gaussian", e, 1e-6), True
        yield dp.SmoothNoise("cauchy", e), True
        yield dp.SmoothNoise("student", e), True
        yield dp.SmoothNoise("power", e, gamma=3), True
        yield dp.SmoothNoise("power", e, gamma=1.5), True
        yield dp.SmoothNoise("cauchy", e, calibration="textbook"), False
        yield dp.SmoothNoise("laplace", e, 1e-6, calibration="textbook"), True
        yield dp.RandomizedResponse(e), True
        yield dp.RandomizedResponse(e, categories=["a", "b", "c", "d"]), True
        for monotone in (False, True):
            yield dp.Exponential(1, e, monotone), True
            yield dp.Exponential.continuous(sensitivity=2, epsilon=e, bounds=(0, 1), monotone=monotone), True
            for noise in ("gumbel", "laplace", "exponential"):
                yield dp.NoisyMax(0.5, e, monotone, noise), True
            yield dp.PermuteAndFlip(1, e, monotone), True
            yield dp.TopK(3, 1, e, monotone=monotone), True
            yield dp.TopK(50, 1, e, 1e-6, monotone), False
            for numeric in (False, True):
                yield dp.SparseVector(1, e, 3, numeric, monotone), True
        yield dp.SparseVector(1, e).start(threshold=3), True
        yield holdout(e), True
        yield dp.ProposeTestRelease(0.1, e, 1e-6), True


def check(mechanism, tight):
    result = certify(mechanism)
    assert result.holds, result
    assert not result.refuted, result
    assert result.epsilon_low <= result.epsilon
    assert result.delta_low <= result.delta
    claim = result.claim
    if isinstance(claim, dp.PureDP):
        assert result.epsilon <= claim.epsilon * (1 + 1e-15)
        assert result.delta == 0 or result.delta < 1e-60
        assert not tight or result.epsilon_low >= 0.99 * result.epsilon
    elif isinstance(claim, dp.ApproxDP):
        assert result.delta <= claim.delta
        assert not tight or result.delta_low >= 0.99 * result.delta
    else:
        assert result.rho_low >= 0.99 * result.rho
        assert result.rho <= claim.rho


@each(("mechanism", "tight"), list(built_in((1,))))
def test_built_in(mechanism, tight):
    check(mechanism, tight)


@pytest.mark.slow
def test_built_in_over_a_grid():
    for mechanism, tight in built_in((0.01, 0.5, 2, 10)):
        check(mechanism, tight)


@pytest.mark.slow
def test_extreme_parameters():
    for mechanism in (
        dp.Laplace(1, 1e6),
        dp.Laplace(1e18, 1),
        dp.Laplace(1e-100, 1e-6),
        dp.Gaussian(1, 1e5, 1e-6),
        dp.Gaussian(1, 1, 1e-300),
        dp.Gaussian(1, 1e-5, 1e-200),
        dp.Staircase(1, 2000),
        dp.BoundedLaplace(1, 500, -1000, 1000),
        dp.BoundedLaplace(1e-9, 1e-3, 0, 1),
        dp.RandomizedResponse(1000),
        dp.RandomizedResponse(1e-9, 2**60),
        dp.Exponential(1, 1e6),
        dp.TopK(10**5, 1, 1, 1e-6),
        dp.SparseVector(1, 1e6, 10**10, True),
        dp.ProposeTestRelease(1, 100, 1e-300),
    ):
        start = time.process_time()
        result = certify(mechanism)
        result.curve(0)
        assert result.holds, result
        assert not result.refuted, result
        assert time.process_time() - start < SOON_S


def half(mechanism):
    return changed(mechanism, _scales=tuple(scale / 2 for scale in mechanism._scales))


def mixed_of_the_lecture():
    """Theorem 10 with sensitivity 0.01: Gaussian noise of the Laplace variance, claimed at delta = 0.0113."""
    gaussian = changed(dp.Gaussian(0.01, 1, 0.0113), _scales=(0.01 * math.sqrt(2),))
    return changed(dp.MixedNoise(0.01, 1, 0.0113), mechanism=gaussian)


class TooTruthfulResponse(dp.RandomizedResponse):
    def truth_probability(self, bits):
        return dp.RandomizedResponse(2 * self.epsilon, self.categories).truth_probability(bits)


class LowThreshold(dp.ProposeTestRelease):
    @property
    def threshold(self):
        return 20


class DoubledRate(dp.Exponential):
    @property
    def rate(self):
        return Fraction(1)


BROKEN = {
    "half-scale Laplace": lambda: half(dp.Laplace(1, 1)),
    "half-scale Laplace, split": lambda: half(dp.Laplace([1, 2], 1)),
    "Laplace, one per mille short": lambda: changed(dp.Laplace(1, 1), _scales=(0.999,)),
    "half-scale Gaussian": lambda: half(dp.Gaussian(1, 1, 1e-6)),
    "Gaussian, one per mille short": lambda: changed(
        dp.Gaussian(1, 1, 1e-6), _scales=(0.999 * dp.Gaussian(1, 1, 1e-6).sigma,)
    ),
    "half-scale Gaussian, rho": lambda: half(dp.Gaussian(1, rho=0.5)),
    "half-scale staircase": lambda: half(dp.Staircase(1, 1)),
    "mixed noise of the lecture": mixed_of_the_lecture,
    "naive bounded Laplace": lambda: changed(dp.BoundedLaplace(1, 1, 0, 10), scale=1.0),
    "bounded Laplace, integers": lambda: changed(dp.BoundedLaplace(1, 1, 0, 10), integer_scale=0.6),
    "bounded Laplace with delta": lambda: changed(dp.BoundedLaplace(1, 1, 0, 10, delta=1e-3), scale=1.0),
    "half-scale smooth Laplace": lambda: halved(dp.SmoothNoise("laplace", 1, 1e-6)),
    "half-scale smooth Gaussian": lambda: halved(dp.SmoothNoise("gaussian", 1, 1e-6)),
    "half-scale smooth Cauchy": lambda: halved(dp.SmoothNoise("cauchy", 1)),
    "half-scale smooth power law": lambda: halved(dp.SmoothNoise("power", 1, gamma=3)),
    "power law of a smaller gamma": lambda: changed(dp.SmoothNoise("power", 1, gamma=3), gamma=5),
    "half-scale smooth Student": lambda: halved(dp.SmoothNoise("student", 1)),
    "smooth noise for another beta": lambda: changed(dp.SmoothNoise("laplace", 1, 1e-6), beta=0.2),
    "response that tells the truth too often": lambda: TooTruthfulResponse(1),
    "exponential mechanism without the 2": lambda: DoubledRate(1, 1),
    "noisy max with Lap(1/epsilon), replacement": lambda: changed(dp.NoisyMax(1, 1, noise="laplace"), rate=Fraction(1)),
    "permute-and-flip without the 2": lambda: changed(dp.PermuteAndFlip(1, 1), rate=Fraction(1)),
    "Gumbel noise without the 2": lambda: changed(dp.NoisyMax(1, 1), rate=Fraction(1)),
    "continuous, without the 2": lambda: changed(
        dp.Exponential.continuous(sensitivity=1, epsilon=1, bounds=(0, 1)), rate=Fraction(1)
    ),
    "top k at the price of one": lambda: changed(dp.TopK(3, 1, 1), choice=dp.Exponential(1, 1)),
    "top k, zCDP, at a double rate": lambda: changed(
        dp.TopK(100, 1, 1, 1e-6), choice=dp.Exponential(1, 2 * dp.TopK(100, 1, 1, 1e-6).choice.epsilon)
    ),
    "sparse vector, noise not scaled by the limit": lambda: changed(
        dp.SparseVector(1, 1, 5), scale=dp.SparseVector(1, 1, 1).scale
    ),
    "sparse vector, no noise on the questions": lambda: changed(dp.SparseVector(1, 1), scale=0.0),
    "sparse vector, all of epsilon spent twice": lambda: changed(dp.SparseVector(1, 1), threshold_scale=1.0, scale=2.0),
    "sparse vector, answers at the whole epsilon": lambda: changed(
        dp.SparseVector(1, 1, numeric=True), answer=dp.Laplace(1, 1)
    ),
    "sparse vector, monotone noise for any questions": lambda: changed(
        dp.SparseVector(1, 1), scale=dp.SparseVector(1, 1).scale / 2
    ),
    "holdout with a record too few": lambda: smaller(holdout(1)),
    "propose-test-release with a low threshold": lambda: LowThreshold(0.1, 1, 1e-6),
}


def halved(smooth):
    return changed(smooth, scale=smooth.scale / 2)


def smaller(session):
    session._holdout = session._holdout[:2]
    return session


@each("name", BROKEN)
def test_broken_variants_are_refuted(name):
    result = certify_unchecked(BROKEN[name]())
    assert result.refuted, result
    assert not result.holds, result
    assert result.verdict == "refuted"
    with refuses(NotPrivate):
        certify(BROKEN[name]())


def test_a_larger_scale_than_needed_is_certified_with_slack():
    result = certify_unchecked(changed(dp.Laplace(1, 1), _scales=(2.0,)))
    assert result.holds
    assert result.epsilon == 0.5


def test_every_number_of_a_session_is_part_of_its_loss():
    """A third of epsilon is for the numbers, of which there are three."""
    certificate = certify(dp.SparseVector(1, 1, 3, numeric=True))
    assert certificate.holds
    assert 1 - 1e-9 < certificate.epsilon <= 1


@pytest.mark.parametrize(
    "unknown",
    [lambda x: x, 3, "Laplace", None, object(), dp.PureDP(1), np.float64(1), dp.Laplace],
    ids=lambda item: type(item).__name__,
)
def test_unknown_objects_are_refused(unknown):
    with refuses(WrongType, "whose law is known"):
        certify(unknown)


def test_mechanisms_without_noise_are_refused():
    with refuses(NotPrivate, "not private by themselves"):
        certify(dp.SampleAndAggregate(np.mean, blocks=5, bounds=(0, 1)))


class Fixed(dp.Laplace):
    def release(self, value, *, source=None):
        return value


class Restated(dp.Laplace):
    def error(self, confidence=0.95, **more):
        return 0.0


def test_subclasses_and_patched_methods_are_refused():
    for kind in (Fixed, Restated):
        with refuses(NotPrivate, "draw in its own way"):
            certify(kind(1, 1))
    with refuses(NotPrivate, "changed value in Laplace.release"):
        certify(changed(dp.Laplace(1, 1), release=lambda value: value))


def test_parts_of_another_kind_are_refused():
    for mechanism in (
        changed(dp.MixedNoise(1, 1, 1e-6), mechanism=dp.Staircase(1, 1)),
        changed(dp.SparseVector(1, 1, numeric=True), answer=Fixed(1, 1)),
        changed(dp.TopK(2, 1, 1), choice=dp.PermuteAndFlip(1, 1)),
    ):
        with refuses(NotPrivate):
            certify(mechanism)


def test_unknown_distributions_are_refused():
    from dither.randomness import Exponential

    with refuses(NotPrivate, "one law for each"):
        certify_unchecked(changed(dp.Laplace(1, 1), _laws=(Exponential(),)))
    with refuses(NotPrivate, "one law for each"):
        certify_unchecked(changed(dp.Laplace(1, 1), sensitivity=(1, 1)))
    with refuses(NotPrivate, "staircase"):
        certify_unchecked(changed(dp.Staircase(1, 1), _joint=True))
    with refuses(NotPrivate, "all but certain"):
        certify(dp.RandomizedResponse(10**6))


def test_certificates_print_and_serialize():
    for mechanism in (dp.Laplace(1, 1), dp.Gaussian(1, 1, 1e-6), dp.Gaussian(1, rho=0.5), half(dp.Laplace(1, 1))):
        result = certify_unchecked(mechanism)
        assert isinstance(result, Certificate)
        text = str(result)
        assert str(result.claim) in text
        assert result.pair in text
        read = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        assert read["holds"] is result.holds
        assert read["mechanism"] == result.mechanism
    assert "false" in text
    assert certify(dp.Gaussian(1, 1, 1e-6)).to_dict()["epsilon"] is None
    with pytest.raises(AttributeError):
        result.holds = True


def test_at_and_curve():
    result = certify(dp.Laplace(1, 1), at=0.5)
    assert result.at == 0.5
    assert result.curve(0.5) == (result.delta_low, result.delta)
    assert result.curve(1) == (0, 0)
    assert result.curve(0)[1] > result.curve(0.5)[1]
    for wrong in (-1, math.nan, math.inf):
        with refuses(InvalidArgument):
            certify(dp.Laplace(1, 1), at=wrong)
        with refuses(InvalidArgument):
            result.curve(wrong)


@each(("mechanism", "tight"), list(built_in((1,))))
def test_curves_fall_and_stay_in_order(mechanism, tight):
    result = certify(mechanism)
    curve = [result.curve(epsilon) for epsilon in (0, 0.3, 0.7, 1.2)]
    for low, high in curve:
        assert 0 <= low <= high <= 1
    for before, after in itertools.pairwise(curve):
        assert after[0] <= before[1] + 1e-15
        assert after[1] <= before[1] + 1e-15
    assert curve[0][0] > 0


MECHANISMS = [mechanism for mechanism, _ in built_in((1,))]


@each("mechanism", MECHANISMS)
def test_a_certificate_survives_pickling(mechanism):
    certificate = certify(mechanism)
    restored = pickle.loads(pickle.dumps(certificate))
    assert restored == certificate
    assert hash(restored) == hash(certificate)
    assert restored.curve(0.5) == certificate.curve(0.5)
    assert copy.deepcopy(certificate) == certificate


def test_certificates_of_equal_mechanisms_are_equal():
    assert certify(dp.Laplace(1, 1)) == certify(dp.Laplace(1, 1))
    assert certify(dp.Laplace(1, 1)) != certify(dp.Laplace(1, 2))
    assert len({certify(dp.Laplace(1, 1)), certify(dp.Laplace(1, 1))}) == 1


@pytest.mark.parametrize("claim", [dp.ApproxDP(1, 1e-6), dp.PureDP(1), dp.ZCDP(0.5)])
def test_bounds_on_both_sides_of_a_claim_neither_prove_nor_refute_it(claim):
    around = tuple(Fraction(factor) * claim.exact[-1] for factor in (Fraction(1, 2), 2))
    evidence = Evidence((around if len(claim.exact) == 1 else None), lambda _: around, "pair", "method", around)
    assert Certificate.of("mechanism", claim, evidence).verdict == "open"


def other_values(value):
    """Values of the same type and of other types that differ from this one."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value - 1, value + 1, -100)
    elif isinstance(value, float):
        yield from (value / 2, value * 2, math.nan, LyingFloat(value))
    elif isinstance(value, Fraction):
        yield from (value / 2, value + 1)
    elif isinstance(value, str):
        yield from ("laplace", "gaussian", "gumbel", "textbook")
    elif isinstance(value, tuple) and value:
        for changed in other_values(value[0]):
            yield (changed, *value[1:])
        yield value[1:]
        yield (*value, value[0])
    elif isinstance(value, np.ndarray):
        yield value[:-1]
    yield from (object(), None, lambda *given: given[-1])


class LyingFloat(float):
    """A float that behaves as another number when it is multiplied."""

    def __mul__(self, other):
        return 0.0


def same_value(one, other):
    return type(one) is type(other) and repr(one) == repr(other)


def is_legitimate(mechanism):
    """Whether the constructor builds exactly this object from its arguments: a different mechanism, but a valid one."""
    if not dataclasses.is_dataclass(mechanism):
        return False
    given = {item.name: getattr(mechanism, item.name) for item in dataclasses.fields(mechanism) if item.init}
    if any(isinstance(value, LyingFloat) for value in given.values()):
        return False
    try:
        fresh = type(mechanism)(**given)
    except (ValueError, TypeError):
        return False
    return vars(fresh).keys() <= vars(mechanism).keys() and all(
        same_value(vars(fresh)[name], vars(mechanism)[name]) for name in vars(fresh)
    )


@each("index", range(len(MECHANISMS)))
def test_every_attribute_of_every_mechanism_is_checked(index):
    count = len(vars(MECHANISMS[index]))
    tried = 0
    for name in sorted(vars(MECHANISMS[index]).keys() - {"_train", "threshold"}):  # these are public, and any will do
        for changed in other_values(getattr(MECHANISMS[index], name)):
            mechanism = rebuilt(index)
            if same_value(changed, getattr(mechanism, name)):
                continue
            object.__setattr__(mechanism, name, changed)
            if is_legitimate(mechanism):
                continue
            tried += 1
            with refuses(NotPrivate):
                certify(mechanism)
    assert tried >= count


def rebuilt(index):
    """A fresh mechanism of the same class and parameters."""
    given = MECHANISMS[index]
    if dataclasses.is_dataclass(given):
        return type(given)(**{e.name: getattr(given, e.name) for e in dataclasses.fields(given) if e.init})
    if isinstance(given, mechanisms.ReusableHoldout):
        return holdout(1)
    return dp.SparseVector(1, 1).start(threshold=3)


@each("index", range(len(MECHANISMS)))
def test_additional_attributes_and_subclasses_are_refused(index):
    mechanism = rebuilt(index)
    kind = type(mechanism)
    for name in ("release", "select_index", "ask", "probability", "guarantee", "anything"):
        extended = rebuilt(index)
        vars(extended)[name] = lambda *given: given
        with refuses(NotPrivate):
            certify(extended)
    vars(forged := object.__new__(type(kind.__name__, (kind,), {}))).update(vars(mechanism))
    with refuses(NotPrivate, "draw in its own way"):
        certify(forged)


class Truthful(dp.RandomizedResponse):
    @property
    def probability(self):
        return 1.0


def test_a_subclass_whose_probability_is_a_property():
    with refuses(NotPrivate):
        certify(Truthful(1))


@pytest.mark.parametrize("state", [{"above": -100}, {"above": 1}, {"asked": 5}, {"limit": 10}])
def test_a_session_with_modified_state_is_refused(state):
    session = dp.SparseVector(1, 1).start(threshold=3)
    assert certify(session).holds
    for name, value in state.items():
        vars(session)[name] = value
    with refuses(NotPrivate):
        certify(session)


def test_a_session_that_was_asked_is_refused():
    session = dp.SparseVector(1, 1).start(threshold=10**6)
    session.ask(0)
    with refuses(NotPrivate):
        certify(session)
    assert certify(dp.SparseVector(1, 1)).holds


def test_a_session_with_known_noise_is_refused():
    with refuses(NotPrivate):
        certify(dp.SparseVector(1, 1).start(threshold=3, source=SeededSource(1)))


def test_cached_properties_are_recomputed():
    mechanism = dp.BoundedLaplace(1, 1, 0, 10)
    mechanism.release(3)  # computes the scale for integers
    assert "integer_scale" in vars(mechanism)
    assert certify(mechanism).holds
    vars(mechanism)["integer_scale"] = 0.6
    with refuses(NotPrivate):
        certify(mechanism)


def test_another_source_of_noise_is_refused():
    token = source._DEFAULT.set(SeededSource(3))
    try:
        with refuses(NotPrivate, "source"):
            certify(dp.Laplace(1, 1))
    finally:
        source._DEFAULT.reset(token)
    with drawn_from(SeededSource(3)), pytest.raises(NotPrivate, match="source"):
        certify(dp.Laplace(1, 1))
    assert certify(dp.Laplace(1, 1)).holds


class Replaces:
    """A hook that returns the input of a release instead of its output."""

    def see(self, what, name, given, compute):
        return given["value"]

    def spend(self, what, compute, *, private, recordable=True):
        return 0


def test_an_observer_or_a_foreign_spender_in_force_is_refused(tmp_path):
    """Either may replace what a release returns, so that a certificate of the mechanism would say nothing about it."""
    mechanism = dp.Laplace(1, 1)
    with observed_by(Replaces()):
        assert mechanism.release(42) == 42
        with refuses(NotPrivate, "observer"):
            certify(mechanism)
    with charging_to(Replaces()), refuses(NotPrivate, "spender"):
        certify(mechanism)
    with dp.ledger.open(tmp_path / "budget.sqlite") as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
        with ledger.scope("visits"):
            session = dp.SparseVector(1, 0.25).start(0)
            assert certify(mechanism).holds
            assert certify(session).holds
        assert ledger.left("visits") == dp.PureDP(0.75), "the auditor's comparisons cost nothing"


def test_mechanisms_that_were_used_are_certified():
    noise = dp.Laplace(1, 1)
    noise.release(np.zeros(3))
    choice = dp.Exponential(1, 1)
    choice.select_index([0, 1])
    assert certify(noise).holds
    assert certify(choice).holds
