"""The worst-case privacy loss of a mechanism, computed from the distribution that it samples.

Two things are read from a mechanism: its *contract* (how far one person can move the answer, score or question;
whether all scores move in the same direction; the limits) and its *distribution* (the type and scales of its noise,
its lattice, thresholds and rates). The guarantee that the mechanism states is read only at the end, for comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from dither import arguments
from dither.accounting import Shuffled
from dither.audit.proof.additive import additive_noise
from dither.audit.proof.bounded_laplace import bounded_laplace
from dither.audit.proof.certificate import Certificate
from dither.audit.proof.evidence import BITS, ONE, Evidence, Interval, compose, compose_repeated
from dither.audit.proof.genuine import require_genuine
from dither.audit.proof.local_numbers import number_proofs
from dither.audit.proof.local_reports import local_proofs
from dither.audit.proof.selection import (
    exponential_selection,
    noisy_max_selection,
    randomized_response,
    score_range,
    top_k_selection,
)
from dither.audit.proof.shifts import cdf
from dither.audit.proof.shuffled_reports import shuffled_evidence
from dither.audit.proof.smooth_noise import smooth_noise
from dither.audit.proof.sparse_vector import above_threshold
from dither.audit.proof.streams import stream_evidence
from dither.errors import NotPrivate, WrongType
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
from dither.randomness import MIN_SCALE
from dither.randomness.discrete import DiscreteLaplace
from dither.stream.mechanism import StreamPlan

_SCORES = "one candidate far behind, moved against all others as far as the contract allows"
_MAX_EPSILON = 2.0**14


def certify(mechanism: Any, *, at: float | None = None) -> Certificate:
    """The worst-case privacy loss and the privacy curve of a mechanism over all neighbors that its contract allows.

    Both are computed from the distribution that is sampled, not from the mechanism's own formula. ``at`` is the
    epsilon for which delta is reported, by default that of the claim.

    A certificate is about this object, so the object must be an instance of a class of dither exactly as its
    constructor builds it. Subclasses, modified instances and sessions that have answered a question are
    refused (:mod:`dither.audit.proof.genuine`).

    The proofs that the examined pairs are the worst are in the modules of :mod:`dither.audit.proof`: ``shifts``
    (additive noise), ``smooth_noise`` (smooth sensitivity), ``bounded_laplace`` (noise within limits), ``selection``
    (scores and categories), ``sparse_vector``, ``local_reports``, ``local_numbers``, ``shuffled_reports`` (certify the
    event, :class:`dither.accounting.Shuffled`) and ``streams`` (series over time: certify the plan of a series).

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
    """The certificate for the parameters that an object holds, without checking that its constructor computed them.

    This is the computing half of :func:`certify`. By itself it makes no statement about what the object does; it
    serves to show that wrong parameters are detected.

    >>> import dither as dp
    >>> half = dp.Laplace(sensitivity=1, epsilon=1)
    >>> object.__setattr__(half, "_scales", (0.5,))
    >>> result = certify_unchecked(half)
    >>> result.epsilon, result.refuted
    (2.0, True)
    """
    prove = _proof_of(mechanism)
    epsilon = None if at is None else arguments.epsilon_or_zero(at, "at")
    claim: Guarantee = mechanism.guarantee
    return Certificate.of(_name(mechanism), claim, prove(mechanism), epsilon)


def _proof_of(mechanism: Any) -> Callable[[Any], Evidence]:
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
    if isinstance(mechanism, (ReusableHoldout, SparseVectorSession)):  # their repr contains an address
        return f"{type(mechanism).__name__} on {mechanism.mechanism}"
    return repr(mechanism)


def _additive(mechanism: Laplace | Gaussian | Staircase) -> Evidence:
    return additive_noise(mechanism, coordinates_of(mechanism.sensitivity))


def _mixed(mechanism: MixedNoise) -> Evidence:
    chosen = mechanism.mechanism
    l2 = mechanism.l2_sensitivity is not None and isinstance(chosen, Gaussian)
    return additive_noise(chosen, coordinates_of(mechanism.l2_sensitivity if l2 else mechanism.sensitivity))


def _exponential(mechanism: Exponential | ContinuousExponential) -> Evidence:
    return exponential_selection(score_range(mechanism), _SCORES)


def _noisy_max(mechanism: NoisyMax) -> Evidence:
    """Gumbel noise selects as the exponential mechanism does: ``P(i wins) = w_i / sum of w``."""
    if mechanism.noise == "gumbel":
        return exponential_selection(score_range(mechanism), _SCORES)
    return noisy_max_selection(score_range(mechanism), mechanism.noise)


def _top_k(mechanism: TopK) -> Evidence:
    change = arguments.sensitivity(mechanism.sensitivity) * Fraction(mechanism.choice.rate)
    return top_k_selection(arguments.whole(mechanism.k, "k"), change if mechanism.monotone else 2 * change)


def _randomized_response(mechanism: RandomizedResponse) -> Evidence:
    k = mechanism.category_count
    bits = 2 * BITS + 3 * math.ceil(min(float(mechanism.epsilon), _MAX_EPSILON)) + 2 * k.bit_length()
    low, high = mechanism.truth_probability(bits)
    if low < high == 1 << bits:
        raise NotPrivate(
            "epsilon", "reports that are not all but certain to be true", f"{mechanism.epsilon}", "pass 10 or less"
        )
    return randomized_response((Fraction(low, 1 << bits), Fraction(high, 1 << bits)), k)


def _sparse_vector(mechanism: SparseVector, sensitivity: Fraction | None = None) -> Evidence:
    """The comparisons and, for numeric sessions, up to ``limit`` answers, each with independent noise."""
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
    return _sparse_vector(session.mechanism)


def _holdout(holdout: ReusableHoldout) -> Evidence:
    """One record of the holdout moves its mean, and the difference of the two means, by at most width / n."""
    low, high = holdout.bounds
    result = _sparse_vector(holdout.mechanism, exactly((high - low) / holdout.holdout_size))
    return result.named(result.pair + ", the questions being means over the holdout", result.method)


def _propose_test_release(mechanism: ProposeTestRelease) -> Evidence:
    """Where the answer moves by more than the bound, both distances are 0: the test has the same distribution, and the
    answer, which may reveal everything, is released with probability ``P(K > threshold)``. Elsewhere the distance
    moves by 1 and the answer by the bound, and test and answer compose.
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
    low, high = parts.at(epsilon)
    return max(low, released[0]), max(high, released[1])


def _release_probability(scale: float, threshold: int) -> Interval:
    """P(K > threshold), where K is discrete Laplace noise."""
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
    **local_proofs(),
    **number_proofs(),
    StreamPlan: stream_evidence,
    Shuffled: shuffled_evidence,
}
