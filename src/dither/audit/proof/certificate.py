"""Certificates: what was proved about a mechanism, compared with what it claims.

The proof is evidence: enclosures of the privacy loss and the privacy curve at the worst pair of neighbors. Every number
is an interval of rationals that contains the true value. Evidence is combined in two ways: the *worst* of several
variants, and the *composition* of independent parts, whose losses add up. Curves are functions that pickle, so that
certificates do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

from dither import arguments
from dither.accounting.events import pure_delta
from dither.exact import down, exp, exp_neg, log, up
from dither.exact.search import minimize
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.present import chart, markup

BITS = 256
RESOLUTION = Fraction(1, 1 << 128)
"""The precision of losses. An irrational loss that equals its claim cannot be distinguished from one that exceeds it
by less than this."""

FAR = Fraction(200)
"""The score gap at which the weight of a candidate, exp(-200), is negligible."""

Interval = tuple[Fraction, Fraction]
Curve = Callable[[Fraction], Interval]

ZERO: Interval = (Fraction(0), Fraction(0))
ONE: Interval = (Fraction(1), Fraction(1))


@dataclass(frozen=True)
class Evidence:
    """The worst privacy loss over all neighbors, enclosed (None if it is infinite), and the curve delta(epsilon)."""

    loss: Interval | None
    curve: Curve
    pair: str
    method: str
    rho: Interval | None = None
    """The smallest rho for which zCDP holds, enclosed, where it is known."""

    def at(self, epsilon: Fraction) -> Interval:
        """Return bounds on delta(epsilon): those of ``curve``, the upper one at most what ``loss`` implies."""
        if self.loss is not None and epsilon >= self.loss[1]:
            return ZERO
        low, high = self.curve(epsilon)
        if self.loss is not None:
            high = min(high, pure_delta(self.loss[1], epsilon))
        high = min(max(high, Fraction(0)), Fraction(1))
        return min(max(low, Fraction(0)), high), high

    def named(self, pair: str, method: str) -> Evidence:
        """Return this evidence with another description of the worst pair and of the method."""
        return Evidence(self.loss, self.curve, pair, method, self.rho)


def no_noise(pair: str) -> Evidence:
    """Return the evidence of a release without noise, which shows the answer itself."""
    return Evidence(None, partial(_constant_curve, ONE), pair, "no noise")


def unaffected(reason: str) -> Evidence:
    """Return the evidence of a release that has one distribution for all neighbors."""
    return Evidence(ZERO, partial(_constant_curve, ZERO), f"none: {reason}", "no neighbor differs", ZERO)


def _constant_curve(delta: Interval, _: Fraction) -> Interval:
    """Return an enclosure of delta that is the same at every epsilon."""
    return delta


def worst_of(*variants: Evidence) -> Evidence:
    """Return the worst case over several variants, any of which may be released, described as the variant with the
    largest loss.
    """
    if len(variants) == 1:
        return variants[0]
    leading = max(
        variants, key=lambda item: (item.loss is None, item.loss[1] if item.loss else item.at(Fraction(1))[1])
    )
    losses = [item.loss for item in variants if item.loss]
    rhos = [item.rho for item in variants if item.rho]
    return Evidence(
        _largest(losses) if len(losses) == len(variants) else None,
        partial(_worst_curve, variants),
        leading.pair,
        leading.method,
        _largest(rhos) if len(rhos) == len(variants) else None,
    )


def _worst_curve(variants: tuple[Evidence, ...], epsilon: Fraction) -> Interval:
    """Return the enclosure of the largest delta(epsilon) of several variants."""
    return _largest([item.at(epsilon) for item in variants])


def _largest(intervals: list[Interval]) -> Interval:
    """Enclose the largest of several numbers: between the largest lower and the largest upper end."""
    return max(low for low, _ in intervals), max(high for _, high in intervals)


def compose(*parts: Evidence, pair: str, method: str) -> Evidence:
    """Compose independent releases about the same people, all of which may be at their worst at once: losses add up.

    The upper bound on the curve is that of any release with the total loss; the lower bound is that of the worst part,
    with the others ignored.
    """
    if len(parts) == 1:
        return parts[0].named(pair, method)
    losses = [part.loss for part in parts if part.loss]
    total = None
    if len(losses) == len(parts):
        total = sum((low for low, _ in losses), Fraction(0)), sum((high for _, high in losses), Fraction(0))
    return Evidence(total, partial(_part_curve, parts), pair, method)


def compose_repeated(part: Evidence, times: int) -> Evidence:
    """Return the evidence of ``times`` independent copies of one release, whose losses add up."""
    loss = None if part.loss is None else (times * part.loss[0], times * part.loss[1])
    return Evidence(loss, partial(_part_curve, (part,)), part.pair, part.method)


def _part_curve(parts: tuple[Evidence, ...], epsilon: Fraction) -> Interval:
    """Return bounds on the curve of a composition: the lower bound of its worst part, and no upper bound below 1."""
    return max(part.at(epsilon)[0] for part in parts), Fraction(1)


def exp_interval(x: Fraction, bits: int = BITS) -> Interval:
    """Enclose exp(x) in an interval of rationals with a denominator of ``2^bits``."""
    low, high = exp(x, bits) if x > 0 else exp_neg(-x, bits)
    return Fraction(low, 1 << bits), Fraction(high, 1 << bits)


@dataclass(frozen=True)
class Certificate:
    """The worst-case privacy loss of a mechanism over all neighbors, enclosed, and whether its claim is proved.

    Every bound is rigorous and rounded outward. Losses are computed to a precision of 2^-128, and an excess below that
    is tolerated, since no enclosure could distinguish an irrational loss from a claim that equals it.

    >>> import dither as dp
    >>> from dither.audit.proof.certify import certify
    >>> certificate = certify(dp.Laplace(sensitivity=1, epsilon=1))
    >>> certificate.holds, certificate.epsilon, certificate.epsilon_low
    (True, 1.0, 1.0)
    >>> print(certificate)
    Laplace(sensitivity=1, epsilon=1, split=None)
      claims     ε = 1
      certified  loss = 1: the claim holds
      worst      answers as far apart as the sensitivity allows
      method     closed tail comparison
    """

    mechanism: str
    """The representation of the mechanism."""
    claim: Guarantee
    """The guarantee that it states."""
    epsilon: float
    """An upper bound on the worst privacy loss; infinite if it is unbounded."""
    epsilon_low: float
    """A lower bound on the worst privacy loss, attained by some pair of neighbors."""
    at: float
    """The epsilon at which delta is given: by default that of the claim, or 1."""
    delta: float
    """An upper bound on delta at that epsilon."""
    delta_low: float
    """A lower bound on delta at that epsilon."""
    rho: float | None
    """An upper bound on the zCDP parameter, where it is known."""
    rho_low: float | None
    """A lower bound on the zCDP parameter, where it is known."""
    holds: bool
    """Whether the upper bounds prove the claim."""
    refuted: bool
    """Whether the lower bounds disprove the claim."""
    pair: str
    """The worst pair of neighbors."""
    method: str
    """The method of proof."""
    _evidence: Evidence = field(repr=False, compare=False)

    @classmethod
    def of(cls, mechanism: str, claim: Guarantee, evidence: Evidence, at: Fraction | None = None) -> Certificate:
        """Return the certificate that compares ``evidence`` with ``claim``.

        ``mechanism`` describes what was examined. ``at`` is the epsilon at which delta is stated: by default that of
        the claim, or 1 for zCDP. Bounds are rounded outward; None or infinity stands for what the evidence does not
        bound.
        """
        if at is None:
            at = Fraction(1) if isinstance(claim, ZCDP) else claim.exact[0]
        delta = evidence.at(at)
        holds, refuted = _verdict(claim, evidence)
        loss = evidence.loss
        return cls(
            mechanism,
            claim,
            math.inf if loss is None else up(max(loss[1] - RESOLUTION, Fraction(0))),
            math.inf if loss is None else down(loss[0]),
            up(at),
            up(delta[1]),
            down(delta[0]),
            None if evidence.rho is None else up(evidence.rho[1]),
            None if evidence.rho is None else down(evidence.rho[0]),
            holds,
            refuted,
            evidence.pair,
            evidence.method,
            evidence,
        )

    def curve(self, epsilon: float) -> tuple[float, float]:
        """Enclose delta(epsilon), the largest over all neighbors that the contract allows.

        >>> import dither as dp
        >>> from dither.audit.proof.certify import certify
        >>> low, high = certify(dp.Gaussian(sensitivity=1, epsilon=1, delta=1e-6)).curve(1)
        >>> 0.99e-6 < low <= high <= 1e-6
        True
        """
        low, high = self._evidence.at(arguments.epsilon_or_zero(epsilon))
        return down(low), up(high)

    def _repr_html_(self) -> str:
        """Return the certificate for a notebook: the verdict, and the certified curve of delta over epsilon."""
        end = min(2 * max(self.at, 0.1), 20.0)
        points = [end * i / 40 for i in range(41)]
        curve = [("from above", points, [self.curve(point)[1] for point in points])]
        picture = chart.lines(curve, title="Certified delta at each epsilon", x_label="ε", y_label="δ")
        return markup.block(markup.code(str(self)), markup.picture(picture))

    def to_dict(self) -> dict[str, Any]:
        """Return everything except the curve as plain values, for JSON; None for infinite values.

        >>> import dither as dp
        >>> from dither.audit.proof.certify import certify
        >>> certify(dp.RandomizedResponse(epsilon=1)).to_dict()["verdict"]
        'holds'
        """
        numbers = {
            name: value if value is not None and math.isfinite(value) else None
            for name, value in (
                ("epsilon", self.epsilon),
                ("epsilon_low", self.epsilon_low),
                ("at", self.at),
                ("delta", self.delta),
                ("delta_low", self.delta_low),
                ("rho", self.rho),
                ("rho_low", self.rho_low),
            )
        }
        claim = {name: float(number) for name, number in zip(_NAMES[type(self.claim)], self.claim.exact, strict=True)}
        return {
            "mechanism": self.mechanism,
            "claim": claim,
            **numbers,
            "pure": math.isfinite(self.epsilon),
            "holds": self.holds,
            "refuted": self.refuted,
            "verdict": self.verdict,
            "pair": self.pair,
            "method": self.method,
        }

    @property
    def verdict(self) -> str:
        """Return ``"holds"``, ``"refuted"`` or ``"open"``.

        >>> import dither as dp
        >>> from dither.audit.proof.certify import certify
        >>> certify(dp.SparseVector(sensitivity=1, epsilon=1)).verdict
        'holds'
        """
        return "holds" if self.holds else "refuted" if self.refuted else "open"

    def __str__(self) -> str:
        """Return the claim, the certified bounds of its delta, loss or rho, the worst pair and the method."""
        if isinstance(self.claim, ApproxDP) or (isinstance(self.claim, PureDP) and math.isinf(self.epsilon)):
            result = f"δ({self.at:.6g}) {_between(self.delta_low, self.delta)}"
        elif isinstance(self.claim, PureDP):
            result = f"loss {_between(self.epsilon_low, self.epsilon)}"
        else:
            result = "ρ unknown" if self.rho is None else f"ρ {_between(self.rho_low or 0.0, self.rho)}"
        words = {"holds": "the claim holds", "refuted": "the claim is false", "open": "the claim is not proved"}
        return "\n".join(
            [
                self.mechanism,
                f"  claims     {self.claim}",
                f"  certified  {result}: {words[self.verdict]}",
                f"  worst      {self.pair}",
                f"  method     {self.method}",
            ]
        )


_NAMES: dict[type[Guarantee], tuple[str, ...]] = {
    PureDP: ("epsilon",),
    ApproxDP: ("epsilon", "delta"),
    ZCDP: ("rho",),
}


def _verdict(claim: Guarantee, evidence: Evidence) -> tuple[bool, bool]:
    """Return (proved, refuted): whether the upper bounds prove the claim, and whether the lower bounds disprove it."""
    if isinstance(claim, PureDP):
        if evidence.loss is None:
            return False, True
        return evidence.loss[1] <= claim.exact[0] + RESOLUTION, evidence.loss[0] > claim.exact[0]
    if isinstance(claim, ApproxDP):
        low, high = evidence.at(claim.exact[0])
        return high <= claim.exact[1], low > claim.exact[1]
    if evidence.rho is not None:
        return evidence.rho[1] <= claim.exact[0], evidence.rho[0] > claim.exact[0]
    return evidence.loss is not None and PureDP(evidence.loss[1]) <= claim, False


def _between(low: float, high: float) -> str:
    """Return the text ``= 1.5`` or ``in [1, 2]``: one number if both ends agree to six digits."""
    first, last = f"{low:.6g}", f"{high:.6g}"
    return f"= {last}" if first == last else f"in [{first}, {last}]"


def zcdp_delta(rho: Fraction, epsilon: Fraction) -> Fraction:
    """Return an upper bound on the delta of rho-zCDP at epsilon.

    It is ``exp((a - 1)(a rho - epsilon)) (1 - 1/a)^a / (a - 1)`` for an order a > 1 (Canonne, Kamath and Steinke 2020,
    proposition 12). It holds for any order, which is chosen in floats.
    """
    fast_rho, fast_epsilon = float(rho), float(epsilon)

    def exponent(t: float) -> float:
        """Return the logarithm of the bound at the order ``1 + e^t``."""
        a = 1 + math.exp(t)
        return (a - 1) * (a * fast_rho - fast_epsilon) + a * math.log1p(-1 / a) - t

    a = 1 + Fraction(math.exp(minimize(exponent, -18.0, 36.0, steps=200)))
    one = 1 << 96
    result = (a - 1) * (a * rho - epsilon) + (a * log(1 - 1 / a, 96)[1] - log(a - 1, 96)[0]) / one
    return Fraction(1) if result >= 0 else exp_interval(Fraction(math.ceil(result * one), one), 2048)[1]
