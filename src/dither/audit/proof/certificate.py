"""Certificates: what was proved about a mechanism, compared with what it claims."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dither import arguments
from dither.audit.proof.evidence import RESOLUTION, Evidence
from dither.exact import down, up
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.present import drawing, markup


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
        """The certificate that compares ``evidence`` with ``claim``."""
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
        """delta(epsilon) over all neighbors that the contract allows, enclosed.

        >>> import dither as dp
        >>> from dither.audit.proof.certify import certify
        >>> low, high = certify(dp.Gaussian(sensitivity=1, epsilon=1, delta=1e-6)).curve(1)
        >>> 0.99e-6 < low <= high <= 1e-6
        True
        """
        low, high = self._evidence.at(arguments.epsilon_or_zero(epsilon))
        return down(low), up(high)

    def _repr_html_(self) -> str:
        """For a notebook: the verdict, and the certified curve of delta over epsilon."""
        end = min(2 * max(self.at, 0.1), 20.0)
        places = [end * i / 40 for i in range(41)]
        curve = [("from above", places, [self.curve(place)[1] for place in places])]
        picture = drawing.line_chart(curve, title="Certified delta at each epsilon", x_label="ε", y_label="δ")
        return markup.block(markup.code(str(self)), picture)

    def to_dict(self) -> dict[str, Any]:
        """Everything except the curve, for JSON; None for infinite values.

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
        """``"holds"``, ``"refuted"`` or ``"open"``.

        >>> import dither as dp
        >>> from dither.audit.proof.certify import certify
        >>> certify(dp.SparseVector(sensitivity=1, epsilon=1)).verdict
        'holds'
        """
        return "holds" if self.holds else "refuted" if self.refuted else "open"

    def __str__(self) -> str:
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
    """Whether the claim is proved, and whether it is disproved."""
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
    """An interval, or one number if its ends agree to six digits."""
    first, last = f"{low:.6g}", f"{high:.6g}"
    return f"= {last}" if first == last else f"in [{first}, {last}]"
