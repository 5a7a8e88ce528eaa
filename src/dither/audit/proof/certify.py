"""The worst-case privacy loss of a mechanism, from the law that it draws.

What is read from a mechanism is its *contract* (how far one person can move the answer, the score, the question;
whether all scores move the same way; the limits) and its *law*: the scales it holds, the kind of its noise, its
lattice, thresholds and rates. Its own statement is read once, at the end, to be compared with what was found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dither import arguments
from dither.audit.proof.additive import added_noise
from dither.audit.proof.bounded_laplace import bounded_laplace
from dither.audit.proof.certificate import Certificate
from dither.audit.proof.evidence import BITS, EVERYTHING, Evidence, Interval, repeated, together
from dither.audit.proof.integrity import require_genuine
from dither.audit.proof.selection import exponential_choice, noisy_choice, reach, response, top_choices
from dither.audit.proof.shifts import below
from dither.audit.proof.smooth_noise import smooth_noise
from dither.audit.proof.sparse_vector import above_threshold
from dither.errors import NotPrivate, WrongType, message
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

_SCORES = "one candidate far behind, moved against all others as far as the contract allows"
_MOST_LOSS = 2.0**14


def certify(mechanism: Any, *, at: float | None = None) -> Certificate:
    """The worst-case loss, and the privacy curve, of a mechanism over all neighbours that its contract allows.

    Computed from the law that is drawn, not from the mechanism's own formula. ``at`` is the epsilon for which delta is
    shown, by default that of the claim.

    A certificate is about this object, so the object must be what its constructor builds from its parameters, of a
    class of dither itself: a subclass, an instance or a class that was changed, and a session that was asked already
    are refused (:mod:`dither.audit.proof.integrity`).

    Why the pairs that are looked at are the worst is said in the modules that look at them: ``shifts`` (added noise),
    ``stretched`` (smooth sensitivity), ``truncated`` (limits), ``choices`` (scores, categories) and ``threshold``
    (sparse vector).

    >>> import dither as dp
    >>> certify(dp.Gaussian(sensitivity=1, epsilon=1, delta=1e-6)).holds
    True
    >>> certify(dp.SampleAndAggregate(min, blocks=5, bounds=(0, 1)))
    Traceback (most recent call last):
    dither.errors.NotPrivate: mechanism: expected one that draws noise, got SampleAndAggregate, whose results are not
    private by themselves. Fix: certify the mechanism that aggregates the results.
    """
    _proof_of(mechanism)
    require_genuine(mechanism)
    return certificate_of_law(mechanism, at=at)


def certificate_of_law(mechanism: Any, *, at: float | None = None) -> Certificate:
    """What the numbers that a mechanism holds prove, whether or not its constructor computed them.

    The half of :func:`certify` that computes. By itself it is no statement about what the object does; it shows that
    wrong numbers are found out.

    >>> import dither as dp
    >>> half = dp.Laplace(sensitivity=1, epsilon=1)
    >>> object.__setattr__(half, "_scales", (0.5,))
    >>> found = certificate_of_law(half)
    >>> found.epsilon, found.refuted
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
            message(
                "mechanism",
                "one that draws noise",
                "SampleAndAggregate, whose results are not private by themselves",
                "certify the mechanism that aggregates the results",
            )
        )
    raise WrongType(
        message(
            "mechanism",
            "a mechanism of dither, whose law is known",
            type(mechanism).__name__,
            "measure other code with dither.audit.measure",
        )
    )


def _name(mechanism: Any) -> str:
    if isinstance(mechanism, (ReusableHoldout, SparseVectorSession)):  # their own words would be an address
        return f"{type(mechanism).__name__} on {mechanism._mechanism}"
    return repr(mechanism)


def _additive(mechanism: Laplace | Gaussian | Staircase) -> Evidence:
    return added_noise(mechanism, coordinates_of(mechanism.sensitivity))


def _mixed(mechanism: MixedNoise) -> Evidence:
    chosen = mechanism.mechanism
    l2 = mechanism.l2_sensitivity is not None and isinstance(chosen, Gaussian)
    return added_noise(chosen, coordinates_of(mechanism.l2_sensitivity if l2 else mechanism.sensitivity))


def _exponential(mechanism: Exponential | ContinuousExponential) -> Evidence:
    return exponential_choice(reach(mechanism), _SCORES)


def _noisy_max(mechanism: NoisyMax) -> Evidence:
    """Gumbel noise chooses as the exponential mechanism does: ``P(i wins) = w_i / sum of w``."""
    if mechanism.noise == "gumbel":
        return exponential_choice(reach(mechanism), _SCORES)
    return noisy_choice(reach(mechanism), mechanism.noise)


def _top_k(mechanism: TopK) -> Evidence:
    moved = arguments.sensitivity(mechanism.sensitivity) * Fraction(mechanism.each.rate)
    return top_choices(arguments.whole(mechanism.k, "k"), moved if mechanism.monotone else 2 * moved)


def _response(mechanism: RandomizedResponse) -> Evidence:
    bits = 2 * BITS + 3 * math.ceil(min(float(mechanism.epsilon), _MOST_LOSS)) + 2 * mechanism._k.bit_length()
    low, high = mechanism._truth(bits)
    if low < high == 1 << bits:
        raise NotPrivate(
            message(
                "epsilon", "reports that are not all but certain to be true", f"{mechanism.epsilon}", "pass 10 or less"
            )
        )
    return response((Fraction(low, 1 << bits), Fraction(high, 1 << bits)), mechanism._k)


def _sparse_vector(mechanism: SparseVector, sensitivity: Fraction | None = None) -> Evidence:
    """The comparisons, and, if numbers are released, as many of them as the limit, each with noise of its own."""
    part = arguments.sensitivity(mechanism.sensitivity) if sensitivity is None else sensitivity
    compared = above_threshold(
        part, mechanism.threshold_scale, mechanism.scale, mechanism.limit, monotone=mechanism.monotone
    )
    if mechanism.answer is None:
        return compared
    answered = repeated(added_noise(mechanism.answer, (part,)), mechanism.limit)
    return together(compared, answered, pair=compared.pair, method=compared.method + ", plus the noisy answers")


def _session(session: SparseVectorSession) -> Evidence:
    return _sparse_vector(session._mechanism)


def _holdout(holdout: ReusableHoldout) -> Evidence:
    """A record of the holdout moves its mean, and the distance of the means, by width / n."""
    low, high = holdout._bounds
    result = _sparse_vector(holdout._session._mechanism, exactly((high - low) / len(holdout._holdout)))
    return result.named(result.pair + ", the questions being means over the holdout", result.method)


def _propose_test_release(mechanism: ProposeTestRelease) -> Evidence:
    """Where the answer moves by more than the bound, both distances are 0: the test has the same law, and the answer,
    which shows everything, is given with probability ``P(K > threshold)``. Elsewhere the distance moves by 1 and the
    answer by the bound: test and answer together.
    """
    half = arguments.epsilon(mechanism.epsilon) / 2
    test, answer = Laplace(1, half), Laplace(mechanism.bound, half)  # type: ignore[arg-type]
    parts = together(
        added_noise(test, (Fraction(1),)),
        added_noise(answer, (arguments.sensitivity(mechanism.bound),)),
        pair="",
        method="",
    )
    scale = max(test._scales[0], MIN_SCALE)
    given = _given(scale, mechanism.threshold)

    def curve(at: Fraction) -> Interval:
        low, high = parts.at(at)
        return max(low, given[0]), max(high, given[1])

    return Evidence(
        None,
        curve,
        "data whose answer moves by more than the bound, so that both distances are 0",
        "tail of the noisy distance; elsewhere test and answer composed by the sum of losses",
    )


def _given(scale: float, threshold: int) -> Interval:
    """P(K > threshold), K discrete Laplace."""
    if not scale > 0:
        return EVERYTHING
    bits = BITS
    while True:
        low, high = below(DiscreteLaplace(scale), -(threshold + Fraction(1, 2)) / Fraction(scale), bits)
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
    RandomizedResponse: _response,
    Exponential: _exponential,
    ContinuousExponential: _exponential,
    NoisyMax: _noisy_max,
    TopK: _top_k,
    SparseVector: _sparse_vector,
    SparseVectorSession: _session,
    ReusableHoldout: _holdout,
    ProposeTestRelease: _propose_test_release,
}
