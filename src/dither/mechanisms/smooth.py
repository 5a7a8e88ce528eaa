"""Noise of the size of a smooth sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from dither import arguments
from dither.accounting import (
    POWERS,
    Approximate,
    Pure,
    gaussian_smooth_delta,
    heavy_smooth_loss,
    laplace_smooth_delta,
    smooth_calibration,
    smooth_scale,
    widest_beta,
)
from dither.budget_hooks import spends
from dither.errors import InvalidArgument, NotPrivate, WrongType
from dither.exact import decimal, exactly, exp, log, square_root, up
from dither.guarantees import ApproxDP, PureDP
from dither.mechanisms.pictures import Pictured
from dither.mechanisms.values import scalar
from dither.randomness import (
    Exponential,
    HeavyTail,
    Law,
    Normal,
    Source,
    Student,
    mark,
    resolve,
    round_nearest,
    spacing,
)

_BITS = 96
_LAWS: dict[str, Law] = {
    "laplace": Exponential(symmetric=True),
    "gaussian": Normal(),
    "student": Student(),
}
_UNIT_VARIANCE = {"laplace": 2.0, "gaussian": 1.0, "student": 1.0}
_TEXTBOOK_REFUSAL = "'exact' for this epsilon: the textbook's constants are for small ones"

Kind = Literal["laplace", "gaussian", "power", "cauchy", "student"]


@dataclass(frozen=True)
class SmoothNoise(Pictured):
    """Release ``f(x) + scale * S(x) * Z``, S a beta-smooth bound on the local sensitivity of f
    (:mod:`dither.sensitivity`), for one number f(x).

    *Statement.* (epsilon, delta)-DP with Laplace or Gaussian Z, epsilon-DP with heavy-tailed Z, when one record is
    replaced. The heavy-tailed laws are ``"power"``, density proportional to ``1 / (1 + |z|**gamma)`` for any gamma
    from 1.2 to 30 (nearer to 1 the noise exceeds the range of floating-point numbers too often), ``"cauchy"``, which
    is ``gamma=2``, and ``"student"``, density proportional to ``1 / (1 + z^2)^2``.

    *Why.* See :mod:`dither.accounting.smooth`: on neighbors the release is shifted by at most S and stretched by a
    factor within exp(+-beta), and the worst such pair is known. ``calibration="exact"`` takes the beta and scale for
    which scale/beta is smallest, so that the worst pair's divergence is delta (or its loss epsilon) and no less;
    :meth:`certificate` recomputes it with rigorous bounds. ``calibration="textbook"`` takes the constants of Nissim,
    Raskhodnikova and Smith 2007: Laplace 2/epsilon with ``beta = epsilon / (2 ln(2/d'))``, where ``delta = d'
    (e^(epsilon/2) + 1)/2``; Gaussian ``5 sqrt(2 ln(2/delta)) / epsilon`` with ``beta = epsilon / (2 ln(2/delta))``;
    power laws ``2 (gamma + 1) / epsilon`` with ``beta = epsilon / (2 (gamma + 1))``. They hold, with delta or epsilon
    to spare, for small epsilon; where the certificate says otherwise (Gaussian from epsilon = 5 on) they are refused.

    The lattice of the release must not depend on the data, and S does; it is set by ``width``, a public size of
    the values, at 2^40 or more steps to it.

    Examples
    --------
    >>> import dither as dp
    >>> m = SmoothNoise("laplace", epsilon=1, delta=1e-6)
    >>> textbook = SmoothNoise("laplace", epsilon=1, delta=1e-6, calibration="textbook")
    >>> m.scale / m.beta < textbook.scale / textbook.beta
    True
    >>> x = list(range(1, 1002))
    >>> s = dp.sensitivity.smooth_median(x, bounds=(0, 2000), beta=m.beta)
    >>> isinstance(m.release(501.0, s, width=2000), float)
    True
    >>> pure = SmoothNoise("power", epsilon=1, gamma=4)      # no delta, and a variance
    >>> pure.guarantee, round(pure.std(1.0) / pure.scale, 6)
    (PureDP(1), 1.0)
    """

    kind: Kind
    epsilon: float
    delta: float | None = None
    calibration: Literal["exact", "textbook"] = "exact"
    gamma: float | None = None
    """The exponent of ``kind="power"``; none for the others."""
    beta: float = field(init=False)
    """For which beta the smooth sensitivity must be computed."""
    scale: float = field(init=False)
    """The noise is this times the smooth sensitivity times Z."""

    def __post_init__(self) -> None:
        """Check the parameters, and compute ``beta`` and ``scale`` by the chosen calibration.

        A textbook calibration whose certified delta (or epsilon) exceeds the one asked for is refused.
        """
        if self.kind not in _LAWS and self.kind not in POWERS:
            raise InvalidArgument(
                "kind", "'laplace', 'gaussian', 'power', 'cauchy' or 'student'", repr(self.kind), "choose one of them"
            )
        if (self.gamma is None) == (self.kind == "power"):
            expected = "a number from 1.2 to 30, for the density 1 / (1 + |z|**gamma)" if self.gamma is None else "none"
            raise InvalidArgument("gamma", expected, self.gamma, "gamma and kind='power' go together")
        gamma = self.exponent  # refuses what is not a number; the law refuses what is out of range
        if self.kind == "power":
            HeavyTail(gamma)
        if self.calibration not in ("exact", "textbook"):
            raise InvalidArgument("calibration", "'exact' or 'textbook'", repr(self.calibration), "leave it out")
        epsilon = arguments.epsilon(self.epsilon)
        if not Fraction(1, 1000) <= epsilon <= 50:
            raise InvalidArgument(
                "epsilon",
                "a number from 0.001 to 50 for noise of a smooth sensitivity",
                self.epsilon,
                "choose one in between",
            )
        if self.kind in POWERS:
            if self.delta:
                raise InvalidArgument(
                    "delta",
                    f"none: {self.kind} noise is epsilon-DP",
                    self.delta,
                    "leave delta out, or choose kind='laplace'",
                )
            exact_delta = Fraction(0)
        elif not self.delta:
            raise NotPrivate(
                "delta",
                f"a number in (0, 1), which {self.kind} noise of a private size needs",
                self.delta,
                "pass delta=1e-6, or kind='cauchy'",
            )
        else:
            exact_delta = arguments.delta(self.delta)
            if exact_delta < Fraction(1, 10**20):
                raise InvalidArgument(
                    "delta", "a number from 1e-20 on", self.delta, "pass delta=1e-9, or kind='cauchy'"
                )
        calibrated = smooth_calibration if self.calibration == "exact" else _textbook
        beta, scale = calibrated(self.kind, epsilon, exact_delta, gamma)
        object.__setattr__(self, "beta", float(beta))
        object.__setattr__(self, "scale", up(scale))
        if self.calibration == "textbook" and (true := self.certificate()) > (exact_delta or epsilon):
            name = "delta" if exact_delta else "epsilon"
            raise NotPrivate(
                "calibration", _TEXTBOOK_REFUSAL, f"'textbook', whose true {name} is up to {true:.3g}", "leave it out"
            )

    @classmethod
    def for_beta(
        cls, kind: Kind, epsilon: float, delta: float | None, beta: float, *, gamma: float | None = None
    ) -> SmoothNoise:
        """Return noise for a chosen ``beta``, with the smallest scale that is private for it.

        The other parameters are those of the class. A beta above 9/10 of the largest for which any noise suffices
        (:func:`~dither.accounting.widest_beta`) is refused.

        >>> SmoothNoise.for_beta("cauchy", 1, None, beta=0.85).scale > SmoothNoise("cauchy", 1).scale
        True
        """
        result = cls(kind, epsilon, delta, gamma=gamma)
        exact_beta = exactly(arguments.positive(beta, "beta"))
        max_beta = arguments.epsilon(epsilon) * Fraction(9, 10) * widest_beta(kind, result.exponent)
        if not 2.0**-40 < exact_beta <= max_beta:
            raise InvalidArgument(
                "beta",
                f"above 1e-12 and at most {float(max_beta):g} for this epsilon",
                beta,
                "a smaller beta needs less noise for each unit of sensitivity",
            )
        object.__setattr__(result, "beta", float(exact_beta))
        object.__setattr__(
            result,
            "scale",
            up(
                smooth_scale(
                    kind,
                    arguments.epsilon(epsilon),
                    arguments.delta(delta) if delta else Fraction(0),
                    exact_beta,
                    result.exponent,
                )
            ),
        )
        return result

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        """Return epsilon-DP for heavy-tailed noise, (epsilon, delta)-DP for Laplace and Gaussian noise."""
        return ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)

    @property
    def event(self) -> Pure | Approximate:
        """Return the event for accountants, which know only the guarantee."""
        epsilon = arguments.epsilon(self.epsilon)
        return Approximate(epsilon, self.delta) if self.delta else Pure(epsilon)

    @property
    def law(self) -> Law:
        """Return the standard law of the noise, before it is multiplied by the scale and the smooth sensitivity.

        >>> SmoothNoise("laplace", epsilon=1, delta=1e-6).law.symmetric
        True
        """
        return HeavyTail(self.exponent) if self.kind in ("power", "cauchy") else _LAWS[self.kind]

    @property
    def exponent(self) -> Fraction:
        """Return the exact gamma; 2 for every kind but ``"power"``.

        >>> SmoothNoise("power", epsilon=1, gamma=2.5).exponent
        Fraction(5, 2)
        """
        return Fraction(2) if self.gamma is None else decimal(self.gamma, "gamma")

    def certificate(self, epsilon: float | None = None) -> float:
        """Return a rigorous upper bound, from the law itself, on delta at this epsilon (Laplace, Gaussian), or on the
        loss (heavy tails).

        >>> SmoothNoise("gaussian", 1, 1e-6).certificate() <= 1e-6, SmoothNoise("cauchy", 1).certificate() <= 1
        (True, True)
        """
        exact_epsilon, scale, beta = (
            arguments.epsilon(self.epsilon if epsilon is None else epsilon),
            Fraction(self.scale),
            Fraction(self.beta),
        )
        if self.kind in POWERS:
            return heavy_smooth_loss(scale, beta, POWERS[self.kind], self.exponent)
        return (laplace_smooth_delta if self.kind == "laplace" else gaussian_smooth_delta)(exact_epsilon, scale, beta)

    def std(self, smooth_sensitivity: float) -> float:
        """Return the standard deviation of the noise for this smooth sensitivity, which depends on the data: never
        release it.

        It is infinite for power laws with gamma of 3 or less, the Cauchy law among them.

        >>> SmoothNoise("cauchy", 1).std(1.0)
        inf
        """
        return self.scale * smooth_sensitivity * math.sqrt(self._unit_variance)

    @property
    def _unit_variance(self) -> float:
        """Return the variance of Z.

        Of a power law it is the ratio of two integrals ``(pi/g) / sin(pi k/g)``, k = 3 and k = 1.
        """
        gamma = float(self.exponent)
        if self.kind not in ("power", "cauchy"):
            return _UNIT_VARIANCE[self.kind]
        return math.sin(math.pi / gamma) / math.sin(3 * math.pi / gamma) if gamma > 3 else math.inf

    def error(self, smooth_sensitivity: float, confidence: float = 0.95) -> float:
        """Return the half-width that holds the noise with probability ``confidence``, for this smooth sensitivity.

        The rounding of the release to a lattice is left out. The half-width depends on the data, as
        ``smooth_sensitivity`` does: never release it. ``slack`` is the error of the law's quantile; where a law has no
        proven bound (infinity) its quantile is good to far more than 1e-9.

        >>> SmoothNoise("laplace", 1, 1e-6).error(1.0) > 3
        True
        """
        z, slack = self.law.quantile_one(1 - arguments.confidence(confidence))
        return self.scale * smooth_sensitivity * (z + (slack if math.isfinite(slack) else 1e-9 * z))

    @spends
    def release(self, value: Any, smooth_sensitivity: float, *, width: float, source: Source | None = None) -> float:
        """Return the number ``value`` with noise.

        ``smooth_sensitivity`` must be computed for this mechanism's ``beta``; ``width``, a public size of the values
        such as ``upper - lower``, sets the lattice; ``source`` is the randomness, by default the operating system's.
        """
        resolved, number = resolve(source), scalar(value)
        if number is None:
            raise WrongType("value", "one number", type(value).__name__, "release one number at a time")
        exact_size = exactly(smooth_sensitivity, "smooth_sensitivity")
        if not 0 <= exact_size < 1 << 900:
            raise InvalidArgument(
                "smooth_sensitivity",
                "a number from 0 to 1e+270",
                "a negative or larger one",
                "compute it with dither.sensitivity",
            )
        exact_width = arguments.positive(width, "width")
        if not 2.0**-500 < exact_width < 2.0**900:
            raise InvalidArgument("width", "a number from 1e-150 to 1e+270", width, "pass upper - lower of the bounds")
        step = spacing(exact_width) * 2.0**-20
        # a vanishing sensitivity gets noise of a thousandth of a step: S may be replaced by any larger smooth
        # bound, and the maximum with a constant is one
        scale = up(Fraction(self.scale) * max(exact_size, Fraction(step) / 1000))
        released: float = mark(round_nearest(Fraction(number), self.law, scale, step, resolved), resolved)
        return released


def _textbook(kind: str, epsilon: Fraction, delta: Fraction, gamma: Fraction) -> tuple[Fraction, Fraction]:
    """Return beta and scale by the formulas of Nissim, Raskhodnikova and Smith (2007), rounded towards more noise.

    ``kind`` is the law of the noise, ``epsilon`` and ``delta`` are the guarantee, and ``gamma`` is the exponent of a
    power law. The formulas stand in :class:`SmoothNoise`; Student's law has none.
    """
    if kind == "student":
        raise InvalidArgument("calibration", "'exact' for kind='student'", "'textbook'", "leave it out")
    if kind in POWERS:
        return epsilon / (2 * (gamma + 1)), 2 * (gamma + 1) / epsilon
    one = 1 << _BITS
    if kind == "laplace":
        split_delta = 2 * delta / (Fraction(exp(epsilon / 2, _BITS)[1], one) + 1)
        return epsilon / (2 * Fraction(log(2 / split_delta, _BITS)[1], one)), 2 / epsilon
    logarithm = Fraction(log(2 / delta, _BITS)[1], one)
    return epsilon / (2 * logarithm), 5 * Fraction(square_root(2 * logarithm, _BITS)[1], one) / epsilon
