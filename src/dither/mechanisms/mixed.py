"""Laplace or Gaussian noise, whichever is smaller for the guarantee asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dither import arguments
from dither.accounting import Event
from dither.budget_hooks import covered
from dither.guarantees import ApproxDP, PureDP
from dither.mechanisms.additive import Noise, PerCoordinate, ReleasesNumbers, plain_value
from dither.mechanisms.gaussian import Gaussian
from dither.mechanisms.laplace import Laplace
from dither.randomness import Source


@dataclass(frozen=True)
class MixedNoise(ReleasesNumbers):
    """Release with Laplace or exactly calibrated Gaussian noise, the one with the smaller variance.

    *Statement.* The release is (epsilon, delta)-DP; epsilon-DP when Laplace noise is chosen.

    *Why.* Either mechanism has the guarantee by itself and the choice depends on public parameters only. For
    vectors the choice is by the largest error over ``coordinates``, at 95 %, the Laplace scale following the l1
    sensitivity and sigma the l2 sensitivity.

    Gaussian noise with the Laplace variance, ``sigma = sqrt(2) sensitivity / epsilon``, has a delta that does not
    depend on the sensitivity, so no threshold on the sensitivity can decide between the two laws.

    Examples
    --------
    >>> MixedNoise(sensitivity=1, epsilon=1, delta=1e-6).chosen
    'Laplace'
    >>> MixedNoise(sensitivity=100, epsilon=1, delta=1e-6, l2_sensitivity=10, coordinates=100).chosen
    'Gaussian'
    """

    sensitivity: float
    epsilon: float
    delta: float
    l2_sensitivity: float | None = None
    coordinates: int = 1
    mechanism: Laplace | Gaussian = field(init=False, repr=False, compare=False)
    """The mechanism that was chosen."""

    def __post_init__(self) -> None:
        """Check the parameters and choose the law with the smaller variance (for vectors, the smaller error)."""
        for name, value in vars(self).copy().items():
            object.__setattr__(self, name, plain_value(value))
        arguments.sensitivity(self.sensitivity)
        if self.l2_sensitivity is not None:
            arguments.sensitivity(self.l2_sensitivity, "l2_sensitivity")
        laplace = Laplace(self.sensitivity, self.epsilon)
        gaussian = Gaussian(
            self.sensitivity if self.l2_sensitivity is None else self.l2_sensitivity, self.epsilon, self.delta
        )
        if arguments.whole(self.coordinates, "coordinates") == 1:
            smaller = np.less_equal(laplace.variance, gaussian.variance)
        else:
            smaller = laplace.error(coordinates=self.coordinates, integer=False) <= gaussian.error(
                coordinates=self.coordinates, integer=False
            )
        object.__setattr__(self, "mechanism", laplace if smaller else gaussian)

    @classmethod
    def for_error(cls, error: float, *, sensitivity: float, delta: float, confidence: float = 0.95) -> MixedNoise:
        """Return the mechanism at the smaller of the two laws' epsilons for this error.

        Where the law of smaller variance misses the error at that epsilon, it is the larger of the two.

        >>> MixedNoise.for_error(5, sensitivity=1, delta=1e-6).chosen
        'Laplace'
        """
        laplace = Laplace.for_error(error, sensitivity=sensitivity, confidence=confidence)
        gaussian = Gaussian.for_error(error, sensitivity=sensitivity, delta=delta, confidence=confidence)
        assert gaussian.epsilon is not None
        small, large = sorted((laplace.epsilon, gaussian.epsilon))
        result = cls(sensitivity, small, delta)
        return result if result.error(confidence, integer=False) <= error else cls(sensitivity, large, delta)

    @property
    def chosen(self) -> str:
        """Return the name of the law that is used."""
        return type(self.mechanism).__name__

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        """Return epsilon-DP with Laplace noise, (epsilon, delta)-DP with Gaussian noise."""
        result = self.mechanism.guarantee
        assert isinstance(result, (PureDP, ApproxDP))
        return result

    @property
    def event(self) -> Event:
        """Return the event of the noise that is used, for accountants."""
        return self.mechanism.event

    @property
    def noise(self) -> Noise:
        """Return the law, scale, sensitivity and lattice of the noise that is used."""
        return self.mechanism.noise

    @property
    def scale(self) -> PerCoordinate:
        """Return the scale of the noise that is used."""
        return self.mechanism.scale

    @property
    def variance(self) -> PerCoordinate:
        """Return the variance of the noise that is used."""
        return self.mechanism.variance

    def error(
        self, confidence: float = 0.95, *, coordinates: int | None = None, integer: bool | None = None
    ) -> PerCoordinate:
        """Return the half-width of the noise that is used, for all ``coordinates`` together by default."""
        return self.mechanism.error(
            confidence, coordinates=self.coordinates if coordinates is None else coordinates, integer=integer
        )

    def privacy_curve(self, epsilon: float) -> float:
        """Return the smallest delta at this epsilon for the noise that is used."""
        return self.mechanism.privacy_curve(epsilon)

    def _release(self, value: Any, source: Source | None) -> Any:
        """Return the value with the noise that was chosen."""
        return covered(self.mechanism.release)(value, source=source)
