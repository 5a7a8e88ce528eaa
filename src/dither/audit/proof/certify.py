"""Certify a mechanism: its worst-case privacy loss, computed from the distribution that it samples.

Two things are read from a mechanism: its *contract* (how far one person can move the answer, score or question;
whether all scores move in the same direction; the limits) and its *distribution* (the type and scales of its noise,
its lattice, thresholds and rates). The guarantee that the mechanism states is read only at the end, for comparison.

A certificate applies to the object only if the object behaves as its class does on the attributes that the constructor
computes. Three checks establish this:

* *The source of randomness.* The default source of random words is the operating system.
* *The hooks.* No observer is in force, and no spender but a ledger's: either could replace what a release returns.
* *The object.* Its type is exactly a class of this package, and rebuilding it from its own constructor arguments gives
  the same attributes, including all computed and private ones. Subclasses, modified attributes and parameters of
  unknown types are refused.

These checks detect mistakes, such as a subclass or a seeded source that is still in force. They do not detect code that
was replaced in the same process: no check inside the process can rule that out. A session that has answered a question
cannot be distinguished from one whose count was reset, so only sessions that were never asked pass.

>>> import dither as dp
>>> laplace = dp.Laplace(sensitivity=1, epsilon=1)
>>> certify(laplace).holds
True
>>> object.__setattr__(laplace, "_scales", (0.5,))
>>> certify(laplace)
Traceback (most recent call last):
dither.NotPrivate: mechanism: expected a Laplace as its constructor builds it, got a changed value in
Laplace._scales[0]. Fix: build it anew and leave its attributes alone.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import math
import sys
import threading
import uuid
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from dither import arguments, local
from dither.accounting import Shuffled
from dither.audit.proof import local_reports
from dither.audit.proof.certificate import BITS, ONE, Certificate, Evidence, Interval, compose, compose_repeated
from dither.audit.proof.noise import additive_noise, bounded_laplace, cdf, smooth_noise
from dither.audit.proof.selection import (
    above_threshold,
    exponential_selection,
    noisy_max_selection,
    score_range,
    top_k_selection,
)
from dither.audit.proof.streams import stream_evidence
from dither.budget_hooks import charging_to, current_observer, current_spender
from dither.errors import DitherError, NotPrivate, WrongType
from dither.exact import exactly
from dither.guarantees import Guarantee
from dither.mechanisms import (
    BoundedLaplace,
    ContinuousExponential,
    Exponential,
    Gaussian,
    Laplace,
    MixedNoise,
    NoisyMax,
    ProposeTestRelease,
    RandomizedResponse,
    ReusableHoldout,
    SampleAndAggregate,
    SmoothNoise,
    SparseVector,
    SparseVectorSession,
    Staircase,
    TopK,
)
from dither.mechanisms.additive import coordinates_of
from dither.public_module import defining_module
from dither.randomness import MIN_SCALE, SYSTEM, LazyUniform, SystemSource, Variate, resolve
from dither.randomness.discrete import DiscreteLaplace
from dither.stream.mechanism import StreamPlan

_PLAIN: frozenset[type] = frozenset(
    {type(None), bool, int, float, complex, str, bytes, Fraction, decimal.Decimal, uuid.UUID}
    | {datetime.date, datetime.datetime, datetime.time, datetime.timedelta}
)
_INITIAL_BITS = 63
_LOCK = type(threading.Lock())


def _refuse_another_source() -> None:
    """Refuse to certify while releases draw from a source other than the operating system."""
    if resolve(None) is not SYSTEM:
        raise NotPrivate(
            "mechanism",
            "noise from the operating system",
            "a different default source of random words",
            "certify outside of drawn_from, and leave dither.randomness.SYSTEM alone",
        )


def _refuse_hooks() -> None:
    """Refuse to certify while an observer, or a spender other than a ledger's, could replace what a release returns."""
    from dither.ledger.ledger import Allowance, LedgerScope  # a ledger takes a while to import

    if current_observer() is not None or type(current_spender()) not in (type(None), Allowance, LedgerScope):
        raise NotPrivate(
            "mechanism",
            "releases without an observer",
            "an observer, or a spender of another package, in force",
            "certify outside of observed_by and charging_to; a ledger scope may be open",
        )


def _is_defined_by_dither(kind: type) -> bool:
    """Return whether a class is the one of that name in the module of dither that it states."""
    module = defining_module(kind)
    return module.startswith("dither.") and vars(sys.modules[module]).get(kind.__qualname__) is kind


def require_genuine(mechanism: Any) -> None:
    """Refuse an object that differs from what its constructor builds from its own arguments.

    A proof about a class says nothing about an object whose attributes were changed, of a class that dither does not
    define, or that draws from a source or through hooks that were replaced.
    """
    _refuse_another_source()
    _refuse_hooks()
    kind = type(mechanism)
    if not _is_defined_by_dither(kind):
        raise NotPrivate(
            "mechanism",
            "a class that dither defines",
            f"{kind.__name__}, which may draw in its own way",
            "measure it with dither.audit.measure",
        )
    location = _altered(mechanism, kind.__name__)
    if location is not None:
        raise NotPrivate(
            "mechanism",
            f"a {kind.__name__} as its constructor builds it",
            f"a changed value in {location}",
            "build it anew and leave its attributes alone",
        )


def _altered(mechanism: Any, name: str) -> str | None:
    """Return the location of the first attribute that differs from those of a mechanism rebuilt from its own arguments.

    None if no attribute differs; the name of the object itself if its constructor refuses its arguments.
    """
    try:
        rebuilt = _rebuilt(mechanism)
    except (DitherError, AttributeError, TypeError, ValueError, ArithmeticError):  # refused by the constructor
        return name
    return _attributes(rebuilt, mechanism, name)


def _rebuilt(mechanism: Any) -> Any:
    """Build the mechanism again from its own constructor arguments."""
    kind = type(mechanism)
    if kind in (SparseVectorSession, ReusableHoldout):
        keywords = mechanism.constructor_arguments()
        if kind is SparseVectorSession and [type(keywords[name]) for name in ("mechanism", "threshold")] != [
            SparseVector,
            Fraction,
        ]:
            raise TypeError
        with charging_to(None):  # a session that is never asked costs nothing
            return kind(**keywords)
    return kind(**{item.name: getattr(mechanism, item.name) for item in dataclasses.fields(kind) if item.init})


def _differing(expected: Any, actual: Any, name: str) -> str | None:
    """Return the location of the first difference between a rebuilt value and the actual one, or None.

    ``name`` is the location of the value itself, from which those of its parts are made. Types are compared exactly; a
    value of a type that is not known counts as different unless it is identical.
    """
    kind = type(actual)
    if type(expected) is not kind:
        return name
    if kind in _PLAIN:
        return None if expected is actual or (expected == actual and repr(expected) == repr(actual)) else name
    if kind in (tuple, list):
        if len(expected) != len(actual):
            return name
        return _first_difference(
            (_differing(b, g, f"{name}[{i}]") for i, (b, g) in enumerate(zip(expected, actual, strict=True)))
        )
    if kind is dict:
        return _differing([*expected.items()], [*actual.items()], name)
    if issubclass(kind, np.generic) and kind.__module__ == "numpy":
        return None if expected.tobytes() == actual.tobytes() else name
    if kind is np.ndarray:
        # arrays of data; objects in them are compared by identity
        same_shape = expected.dtype == actual.dtype and expected.shape == actual.shape
        return None if same_shape and expected.tobytes() == actual.tobytes() else name
    if kind is Variate:
        return _first_difference(
            [_differing(expected.law, actual.law, f"{name}.law"), _stale_variate(actual.uniform, name)]
        )
    if kind is SystemSource:
        return None
    if kind is _LOCK:
        return name if actual.locked() else None
    if not _is_defined_by_dither(kind) or not hasattr(actual, "__dict__"):
        return None if expected is actual and _is_defined_by_dither(kind) else name
    location = _altered(actual, name) if dataclasses.is_dataclass(kind) else None
    return _attributes(expected, actual, name) if location is None else location


def _stale_variate(uniform: Any, name: str) -> str | None:
    """Return the location of a lazily drawn uniform number that did not start with fresh secure bits, or None."""
    is_fresh = (
        type(uniform) is LazyUniform
        and type(uniform.value) is int
        and (uniform.bits, type(uniform.source)) == (_INITIAL_BITS, SystemSource)
        and 0 <= uniform.value < 1 << _INITIAL_BITS
    )
    return None if is_fresh else f"{name}.uniform"


def _attributes(rebuilt: Any, actual: Any, name: str) -> str | None:
    """Return the location of the first attribute in which an object differs from the rebuilt one, or None."""
    expected, state = dict(vars(rebuilt)), vars(actual)
    for key in state:  # cached properties are recomputed
        if key not in expected and isinstance(getattr(type(rebuilt), key, None), cached_property):
            expected[key] = getattr(rebuilt, key)
    for key in expected.keys() ^ state.keys():
        if not isinstance(getattr(type(rebuilt), key, None), cached_property):
            return f"{name}.{key}"
    return _first_difference(_differing(expected[key], state[key], f"{name}.{key}") for key in state)


def _first_difference(result: Any) -> str | None:
    """Return the first location that is not None, or None."""
    return next((location for location in result if location is not None), None)


_SCORES = "one candidate far behind, moved against all others as far as the contract allows"
_MAX_EPSILON = 2.0**14


def certify(mechanism: Any, *, at: float | None = None) -> Certificate:
    """Certify a mechanism: enclose its worst-case privacy loss and its privacy curve over all neighbors that its
    contract allows.

    Both are computed from the distribution that is sampled, not from the mechanism's own formula. ``at`` is the
    epsilon for which delta is reported, by default that of the claim.

    A certificate is about this object, so the object must be an instance of a class of dither exactly as its
    constructor builds it. Subclasses, modified instances and sessions that have answered a question are
    refused (:mod:`dither.audit.proof.certify` says why).

    The proofs that the examined pairs are the worst are in the modules of :mod:`dither.audit.proof`: ``noise``
    (additive noise, noise within limits, smooth sensitivity), ``selection`` (scores, categories, sparse vector),
    ``local_reports`` (of shuffled reports, certify the event :class:`dither.accounting.Shuffled`) and ``streams``
    (certify the plan of a series).

    >>> import dither as dp
    >>> certify(dp.Gaussian(sensitivity=1, epsilon=1, delta=1e-6)).holds
    True
    >>> certify(dp.SampleAndAggregate(min, blocks=5, bounds=(0, 1)))
    Traceback (most recent call last):
    dither.NotPrivate: mechanism: expected one that draws noise, got SampleAndAggregate, whose results are not
    private by themselves. Fix: certify the mechanism that aggregates the results.
    """
    _proof_of(mechanism)
    require_genuine(mechanism)
    return certify_unchecked(mechanism, at=at)


def certify_unchecked(mechanism: Any, *, at: float | None = None) -> Certificate:
    """Certify the parameters that an object holds, without checking that its constructor computed them.

    This is the computing half of :func:`certify`. By itself it makes no statement about what the object does; it
    serves to show that wrong parameters are detected.
    """
    prove = _proof_of(mechanism)
    epsilon = None if at is None else arguments.epsilon_or_zero(at, "at")
    claim: Guarantee = mechanism.guarantee
    return Certificate.of(_name(mechanism), claim, prove(mechanism), epsilon)


def _proof_of(mechanism: Any) -> Callable[[Any], Evidence]:
    """Return the function that proves bounds on mechanisms of this type; other types are refused."""
    for kind, prove in _PROOFS.items():
        if isinstance(mechanism, kind):
            return prove
    if isinstance(mechanism, SampleAndAggregate):
        raise NotPrivate(
            "mechanism",
            "one that draws noise",
            "SampleAndAggregate, whose results are not private by themselves",
            "certify the mechanism that aggregates the results",
        )
    if isinstance(getattr(mechanism, "plan", None), StreamPlan):
        raise WrongType("mechanism", "the plan of a series", type(mechanism).__name__, "certify series.plan")
    raise WrongType(
        "mechanism",
        "a mechanism of dither, whose law is known",
        type(mechanism).__name__,
        "measure other code with dither.audit.measure",
    )


def _name(mechanism: Any) -> str:
    """Return the representation of a mechanism; for sessions, one without an address."""
    if isinstance(mechanism, (ReusableHoldout, SparseVectorSession)):  # their repr contains an address
        return f"{type(mechanism).__name__} on {mechanism.mechanism}"
    return repr(mechanism)


def _additive(mechanism: Laplace | Gaussian | Staircase) -> Evidence:
    """Return the evidence of additive noise for the sensitivities that the mechanism declares."""
    return additive_noise(mechanism, coordinates_of(mechanism.sensitivity))


def _mixed(mechanism: MixedNoise) -> Evidence:
    """Return the evidence of the noise that mixed noise chose: normal at the l2 sensitivity, or Laplace at the l1."""
    chosen = mechanism.mechanism
    l2 = mechanism.l2_sensitivity is not None and isinstance(chosen, Gaussian)
    return additive_noise(chosen, coordinates_of(mechanism.l2_sensitivity if l2 else mechanism.sensitivity))


def _exponential(mechanism: Exponential | ContinuousExponential) -> Evidence:
    """Return the evidence of the exponential mechanism."""
    return exponential_selection(score_range(mechanism), _SCORES)


def _noisy_max(mechanism: NoisyMax) -> Evidence:
    """Return the evidence of report noisy max.

    Gumbel noise selects as the exponential mechanism does: ``P(i wins) = w_i / sum of w``.
    """
    if mechanism.noise == "gumbel":
        return exponential_selection(score_range(mechanism), _SCORES)
    return noisy_max_selection(score_range(mechanism), mechanism.noise)


def _top_k(mechanism: TopK) -> Evidence:
    """Return the evidence of k exponential selections without replacement, from the rate of one of them."""
    change = arguments.sensitivity(mechanism.sensitivity) * Fraction(mechanism.choice.rate)
    return top_k_selection(arguments.whole(mechanism.k, "k"), change if mechanism.monotone else 2 * change)


def _randomized_response(mechanism: RandomizedResponse) -> Evidence:
    """Return the evidence of randomized response over k categories, from the truth probability that is sampled.

    It is the design in which every category prefers one report, itself.
    """
    k = mechanism.category_count
    bits = 2 * BITS + 3 * math.ceil(min(float(mechanism.epsilon), _MAX_EPSILON)) + 2 * k.bit_length()
    low, high = mechanism.truth_probability(bits)
    if low < high == 1 << bits:
        raise NotPrivate(
            "epsilon", "reports that are not all but certain to be true", f"{mechanism.epsilon}", "pass 10 or less"
        )
    others = Fraction(1, k - 1)
    p = Fraction(low, 1 << bits), Fraction(high, 1 << bits)
    return local_reports.two_levels(p, Fraction(k - 1), ONE, (others, others), "any two categories")


def _sparse_vector(mechanism: SparseVector, sensitivity: Fraction | None = None) -> Evidence:
    """Return the evidence of the comparisons of a session and, if it is numeric, of up to ``limit`` noisy answers."""
    exact_sensitivity = arguments.sensitivity(mechanism.sensitivity) if sensitivity is None else sensitivity
    comparisons = above_threshold(
        exact_sensitivity, mechanism.threshold_scale, mechanism.scale, mechanism.limit, monotone=mechanism.monotone
    )
    if mechanism.answer is None:
        return comparisons
    answers = compose_repeated(additive_noise(mechanism.answer, (exact_sensitivity,)), mechanism.limit)
    method = comparisons.method + ", plus the noisy answers"
    return compose(comparisons, answers, pair=comparisons.pair, method=method)


def _session(session: SparseVectorSession) -> Evidence:
    """Return the evidence of a sparse vector session, which is that of its mechanism for all questions together."""
    return _sparse_vector(session.mechanism)


def _holdout(holdout: ReusableHoldout) -> Evidence:
    """Return the evidence of a reusable holdout, a sparse vector session about means.

    One record of the holdout moves its mean, and the difference of the two means, by at most width / n.
    """
    low, high = holdout.bounds
    result = _sparse_vector(holdout.mechanism, exactly((high - low) / holdout.holdout_size))
    return result.named(result.pair + ", the questions being means over the holdout", result.method)


def _propose_test_release(mechanism: ProposeTestRelease) -> Evidence:
    """Return the evidence of propose-test-release for the worse of two cases.

    Where the answer moves by more than the bound, both distances are 0: the test has one distribution, and the answer,
    which may reveal everything, is released with probability ``P(K > threshold)``. Elsewhere the distance moves by 1
    and the answer by the bound, and test and answer compose.
    """
    test, answer = mechanism.test, mechanism.answer
    parts = compose(
        additive_noise(test, (Fraction(1),)),
        additive_noise(answer, (arguments.sensitivity(mechanism.bound),)),
        pair="",
        method="",
    )
    released = _release_probability(max(test.noise.scales[0], MIN_SCALE), mechanism.threshold)
    return Evidence(
        None,
        partial(_propose_test_release_curve, parts, released),
        "data whose answer moves by more than the bound, so that both distances are 0",
        "tail of the noisy distance; elsewhere test and answer composed by the sum of losses",
    )


def _propose_test_release_curve(parts: Evidence, released: Interval, epsilon: Fraction) -> Interval:
    """Enclose the larger of delta(epsilon) of test and answer, and of the probability that the test passes."""
    low, high = parts.at(epsilon)
    return max(low, released[0]), max(high, released[1])


def _release_probability(scale: float, threshold: int) -> Interval:
    """Enclose P(K > threshold), where K is discrete Laplace noise of the given scale."""
    if not scale > 0:
        return ONE
    bits = BITS
    while True:
        low, high = cdf(DiscreteLaplace(scale), -(threshold + Fraction(1, 2)) / Fraction(scale), bits)
        if high - low <= high / (1 << 64) or bits > 1 << 14:
            return low, high
        bits *= 2


_PROOFS: dict[type, Callable[[Any], Evidence]] = {
    Laplace: _additive,
    Gaussian: _additive,
    Staircase: _additive,
    MixedNoise: _mixed,
    BoundedLaplace: bounded_laplace,
    SmoothNoise: smooth_noise,
    RandomizedResponse: _randomized_response,
    Exponential: _exponential,
    ContinuousExponential: _exponential,
    NoisyMax: _noisy_max,
    TopK: _top_k,
    SparseVector: _sparse_vector,
    SparseVectorSession: _session,
    ReusableHoldout: _holdout,
    ProposeTestRelease: _propose_test_release,
    local.RandomizedResponse: local_reports.design,
    local.ProjectiveGeometryResponse: local_reports.design,
    local.HadamardResponse: local_reports.design,
    local.SubsetSelection: local_reports.subsets,
    local.LocalHashing: local_reports.hashing,
    local.UnaryEncoding: local_reports.unary,
    local.CountMeanSketch: local_reports.count_mean_sketch,
    local.HadamardCountMeanSketch: local_reports.hadamard_sketch,
    local.Mean: local_reports.mean_evidence,
    local.Distribution: local_reports.distribution_evidence,
    local.PaddedSets: local_reports.sets_evidence,
    local.HeavyHitters: local_reports.words_evidence,
    StreamPlan: stream_evidence,
    Shuffled: local_reports.shuffled_evidence,
}
