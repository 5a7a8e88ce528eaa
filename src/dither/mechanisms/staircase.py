"""The staircase mechanism: the least noise that pure privacy allows a single number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dither import arguments
from dither.accounting import Pure, pure_delta
from dither.errors import InvalidArgument
from dither.exact import exactly, exp_neg, up
from dither.exact.search import smallest_float
from dither.guarantees import PureDP
from dither.mechanisms.additive import Additive, coordinates_of, shares
from dither.randomness import Staircase as StaircaseLaw

_BITS = 80


@dataclass(frozen=True)
class Staircase(Additive):
    """Release ``f(x) + sensitivity * Z``, Z with a density that falls by exp(-epsilon) in steps.

    *Statement.* If ``|f(x) - f(y)| <= sensitivity`` for all neighbors x, y, the release of the one number f(x)
    is epsilon-DP, and no noise that does not depend on the data has a smaller expected absolute value (Geng and
    Viswanath 2014).

    *Why.* Between z and z + d with d at most one step the density changes by one factor of exp(-epsilon) at
    most. Each coordinate that moves at all can lose epsilon, so vectors need a sensitivity, and a share of
    epsilon, for each coordinate.

    Examples
    --------
    >>> m = Staircase(sensitivity=1, epsilon=3)
    >>> m.guarantee, m.variance < 2 / 3**2          # less than Laplace noise
    (PureDP(3), True)
    >>> isinstance(m.release(1.5), float)
    True
    """

    sensitivity: float | Sequence[float]
    epsilon: float
    gamma: float | None = None
    split: Sequence[float] | None = None

    def __post_init__(self) -> None:
        """Check the parameters and choose a law for each coordinate.

        ``gamma`` is the part of each step of the density that is at the higher level; by default it is ``1 / (1 +
        exp(epsilon / 2))``, which makes the expected absolute value of the noise smallest.
        """
        sensitivities = coordinates_of(self.sensitivity)
        own_epsilon = arguments.epsilon(self.epsilon)
        # these shares of epsilon make the sum of the variances smallest
        weights = shares(self.split, [float(sensitivity) ** (2 / 3) for sensitivity in sensitivities])
        if self.gamma is not None and not 0 < exactly(self.gamma, "gamma") < 1:
            raise InvalidArgument(
                "gamma", "a number strictly between 0 and 1", self.gamma, "leave it out for the best one"
            )
        laws = []
        for weight in weights:
            epsilon = own_epsilon * weight
            gamma = (
                exactly(self.gamma)
                if self.gamma is not None
                else Fraction(1 / (1 + math.exp(min(float(epsilon) / 2, 600))))
            )
            laws.append(StaircaseLaw(epsilon, gamma))
        scales = [up(sensitivity) for sensitivity in sensitivities]
        self._set(
            sensitivities,
            laws,
            scales,
            [scale * math.sqrt(self._unit_variance(law)) for scale, law in zip(scales, laws, strict=True)],
            joint=False,
        )

    @classmethod
    def for_error(cls, error: float, *, sensitivity: float, confidence: float = 0.95) -> Staircase:
        """Return the mechanism with the smallest epsilon whose answers are within ``error`` of the truth with this
        confidence.

        >>> Staircase.for_error(5, sensitivity=1).error(0.95, integer=False) <= 5
        True
        """
        width = arguments.positive(error, "error")

        def fits(epsilon: float) -> bool:
            """Return whether the mechanism at this epsilon stays within the error."""
            return float(cls(sensitivity, epsilon).error(confidence, integer=False)) <= width

        epsilon = smallest_float(fits, 1e-9, 1e6)
        if epsilon == 1e6:
            raise InvalidArgument("error", "an error that epsilon = 1e6 can reach", error, "accept a larger error")
        return cls(sensitivity, epsilon)

    @property
    def guarantee(self) -> PureDP:
        """Return epsilon-DP."""
        return PureDP(self.epsilon)

    @property
    def event(self) -> Pure:
        """Return the event for accountants, which know only that it is epsilon-DP."""
        return Pure(arguments.epsilon(self.epsilon))

    def _unit_variance(self, law: StaircaseLaw) -> float:
        """Return ``E G^2 + 2 E G E U + E U^2``, the variance of unit noise.

        Its size is the sum of a geometric number G of steps and an offset U, uniform on either part of a step.
        """
        s, gamma, gap = math.exp(-float(law.epsilon)), float(law.gamma), -math.expm1(-float(law.epsilon))
        low = gamma / (gamma + s * (1 - gamma))
        steps, steps_squared = s / gap, s * (1 + s) / gap / gap
        offset = low * gamma / 2 + (1 - low) * (1 + gamma) / 2
        offset_squared = low * gamma**2 / 3 + (1 - low) * (1 + gamma + gamma**2) / 3
        return steps_squared + 2 * steps * offset + offset_squared

    def privacy_curve(self, epsilon: float) -> float:
        """Return the smallest delta for which the release is (epsilon, delta)-DP, rounded up.

        For a shift d the loss takes the values -e, 0, e only, and ``P(loss = e) = P(|Z| <= d/2) / (1 -
        exp(-e))``, largest at the full sensitivity; so delta is that times ``1 - exp(epsilon - e)``. With
        several coordinates: the bound of all epsilon-DP releases.

        >>> Staircase(sensitivity=1, epsilon=1).privacy_curve(1)
        0.0
        """
        exact_epsilon = arguments.epsilon_or_zero(epsilon)
        own_epsilon = arguments.epsilon(self.epsilon)
        if exact_epsilon >= own_epsilon:
            return 0.0
        if len(self._laws) > 1:
            return up(pure_delta(own_epsilon, exact_epsilon))
        one = 1 << _BITS
        gap = 1 - Fraction(exp_neg(own_epsilon - exact_epsilon, _BITS)[0], one)
        inside = 1 - Fraction(self._laws[0].tail(Fraction(1, 2), _BITS)[0], one)
        return up(min(Fraction(1), gap * inside / (1 - Fraction(exp_neg(own_epsilon, _BITS)[1], one))))
