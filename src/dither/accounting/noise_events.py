"""The leaves of a workload: the events of single releases, one class for each kind of noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dither import arguments
from dither.accounting import concentrated
from dither.accounting.events import ERROR, Event
from dither.accounting.gaussian import gaussian_epsilon
from dither.accounting.pairs import AtomsPair, Floats, GaussianPair, LaplacePair, LossPair, RangePair
from dither.errors import InvalidArgument
from dither.exact import decimal, exp_neg, up
from dither.guarantees import ZCDP, ApproxDP, Guarantee

_BITS = 96


def pure_delta(epsilon: Fraction, other: Fraction) -> Fraction:
    """Return the largest delta at the epsilon ``other`` of any ``epsilon``-DP release, from above; 0 from ``epsilon``
    on.

    The least private of them is randomized response: ``(1 - exp(other - epsilon)) / (1 + exp(-epsilon))``.

    >>> round(float(pure_delta(Fraction(1), Fraction(0))), 6)
    0.462117
    """
    if other >= epsilon:
        return Fraction(0)
    one = 1 << _BITS
    return (1 - Fraction(exp_neg(epsilon - other, _BITS)[0], one)) / (1 + Fraction(exp_neg(epsilon, _BITS)[0], one))


_MAX_ATOMS = 1 << 14


@dataclass(frozen=True, init=False, repr=False)
class LaplaceNoise(Event):
    """Real Laplace noise of scale ``ratio * sensitivity`` (l1), continuous or rounded; loss 1/ratio.

    >>> LaplaceNoise(2).guarantee, round(float(LaplaceNoise(2).zcdp), 6)
    (PureDP(0.5), 0.106531)
    """

    ratio: Fraction

    def __init__(self, ratio: float | Fraction) -> None:
        self._freeze(ratio=_ratio(ratio, "ratio"))

    @property
    def pure_epsilon(self) -> Fraction:
        """Return 1 / ratio."""
        return 1 / self.ratio

    @property
    def zcdp(self) -> Fraction:
        """Return ``e + exp(-e) - 1`` for the largest loss e; see :mod:`dither.accounting.concentrated`."""
        return concentrated.laplace_rho(self.pure_epsilon)

    @property
    def pair(self) -> LossPair:
        """Return the pair of a shift by the whole sensitivity."""
        return LaplacePair(up(self.pure_epsilon))

    def renyi(self, orders: Floats) -> Floats:
        """Return ``ln(a/(2a-1) e^((a-1) e) + (a-1)/(2a-1) e^(-a e)) / (a - 1)`` (Mironov 2017, proposition 6)."""
        e = float(self.pure_epsilon)
        first = np.log(orders / (2 * orders - 1)) + (orders - 1) * e
        second = np.log((orders - 1) / (2 * orders - 1)) - orders * e
        return _least(np.logaddexp(first, second), orders, e, self.zcdp)

    def scaled(self, factor: Fraction) -> Event:
        """Return the event at ratio * factor."""
        return LaplaceNoise(self.ratio * factor)


@dataclass(frozen=True, init=False, repr=False)
class DiscreteLaplaceNoise(Event):
    """Noise on the integers in proportion to ``exp(-|k| / scale)``, for a whole sensitivity (l1).

    >>> DiscreteLaplaceNoise(2, 1).guarantee, DiscreteLaplaceNoise(2, 1).zcdp == Pure(0.5).zcdp
    (PureDP(0.5), True)
    """

    scale: Fraction
    sensitivity: int

    def __init__(self, scale: float | Fraction, sensitivity: int) -> None:
        size = arguments.whole(sensitivity, "sensitivity")
        self._freeze(scale=_ratio(Fraction(decimal(scale, "scale")) / size, "scale") * size, sensitivity=size)

    @property
    def pure_epsilon(self) -> Fraction:
        """Return sensitivity / scale."""
        return self.sensitivity / self.scale

    @property
    def zcdp(self) -> Fraction:
        """Return the Kullback-Leibler divergence; see :mod:`dither.accounting.concentrated`."""
        return concentrated.discrete_laplace_rho(self.scale, self.sensitivity)

    @property
    def pair(self) -> LossPair:
        """Return the pair of losses ``(D - 2k) / scale``, k = 0 to D; for D above 16384 that of the pure loss."""
        size, t = self.sensitivity, math.exp(-1 / float(self.scale))
        if size > _MAX_ATOMS:
            return response_pair(self.pure_epsilon, 2)
        powers = np.exp(-np.arange(size, -1, -1) / float(self.scale)) / (1 + t)
        powers[1:-1] *= -math.expm1(-1 / float(self.scale))
        return AtomsPair([(2 * j - size) / self.scale for j in range(size + 1)], powers.tolist())

    def renyi(self, orders: Floats) -> Floats:
        """Return the divergences, each a sum over all integers in closed form as geometric series."""
        b, size, e = float(self.scale), self.sensitivity, float(self.pure_epsilon)
        t, r = math.exp(-1 / b), -(2 * orders - 1) / b
        middle = -math.expm1(-1 / b) * np.exp(r) * np.expm1((size - 1) * r) / np.expm1(r)
        total = np.logaddexp((orders - 1) * e + np.log1p(middle), -orders * e) - math.log1p(t)
        return _least(total, orders, e, self.zcdp)

    def scaled(self, factor: Fraction) -> Event:
        """Return the event at scale * factor."""
        return DiscreteLaplaceNoise(self.scale * factor, self.sensitivity)


@dataclass(frozen=True, init=False, repr=False)
class GaussianNoise(Event):
    """Normal noise of deviation ``ratio * sensitivity`` (l2), continuous or rounded.

    >>> GaussianNoise(2).guarantee
    ZCDP(0.125)
    """

    ratio: Fraction

    def __init__(self, ratio: float | Fraction) -> None:
        self._freeze(ratio=_ratio(ratio, "ratio"))

    @property
    def zcdp(self) -> Fraction:
        """Return ``1 / (2 ratio^2)``."""
        return 1 / (2 * self.ratio**2)

    @property
    def pair(self) -> LossPair:
        """Return the pair of two normal laws whose means differ by the sensitivity."""
        return GaussianPair(up(1 / self.ratio))

    def epsilon_at(self, delta: Fraction) -> Fraction:
        """Return the epsilon at this delta by the exact curve."""
        return gaussian_epsilon(self.ratio, delta)

    def scaled(self, factor: Fraction) -> Event:
        """Return the event at ratio * factor."""
        return GaussianNoise(self.ratio * factor)


@dataclass(frozen=True, init=False, repr=False)
class _Bounded(Event):
    """An event known by its largest loss, epsilon, first of all."""

    epsilon: Fraction

    def __init__(self, epsilon: float | Fraction) -> None:
        self._freeze(epsilon=arguments.epsilon(epsilon))

    @property
    def pure_epsilon(self) -> Fraction:
        """Return epsilon."""
        return self.epsilon

    def scaled(self, factor: Fraction) -> Event:
        """Return the event at epsilon / factor."""
        return replace(self, epsilon=self.epsilon / factor)


@dataclass(frozen=True, init=False, repr=False)
class BoundedRange(_Bounded):
    """A choice all of whose losses lie in an interval of length epsilon: the exponential mechanism.

    >>> BoundedRange(1).guarantee, BoundedRange(1).zcdp < Pure(1).zcdp / 3
    (PureDP(1), True)
    """

    @property
    def zcdp(self) -> Fraction:
        """Return ``x - 1 - ln x``, x = epsilon / (1 - exp(-epsilon)); see :mod:`dither.accounting.concentrated`."""
        return concentrated.range_rho(self.epsilon)

    @property
    def pair(self) -> LossPair:
        """Return the upper envelope over all intervals of losses of this length."""
        return RangePair(up(self.epsilon))

    def renyi(self, orders: Floats) -> Floats:
        """Return ``(a s(a) - (a - 1) s(a - 1) - s(1)) / (a - 1)``, where ``s(u) = ln(2 sinh(u epsilon / 2) / u)``."""
        e = float(self.epsilon)

        def s(u: Floats) -> Floats:
            return u * e / 2 + np.log(-np.expm1(-u * e) / u)

        total = orders * s(orders) - (orders - 1) * s(orders - 1) - s(np.ones(1))
        return _least(total, orders, (1 + float(orders.max())) * e, self.zcdp)


@dataclass(frozen=True, init=False, repr=False)
class ResponseReport(_Bounded):
    """One person's report by randomized response over k categories.

    >>> ResponseReport(1, 5).guarantee
    PureDP(1)
    """

    categories: int

    def __init__(self, epsilon: float | Fraction, categories: int) -> None:
        super().__init__(epsilon)
        self._freeze(categories=arguments.whole(categories, "categories", 2))

    @property
    def zcdp(self) -> Fraction:
        """Return the Kullback-Leibler divergence, where that is known to suffice."""
        return concentrated.response_rho(self.epsilon, self.categories)

    @property
    def pair(self) -> LossPair:
        """Return the pair of losses -epsilon, 0 and epsilon."""
        return response_pair(self.epsilon, self.categories)

    def renyi(self, orders: Floats) -> Floats:
        """Return ``ln((e^(a e) + e^((1-a) e) + k - 2) / (e^e + k - 1)) / (a - 1)``."""
        e, others = float(self.epsilon), self.categories - 2
        total = np.logaddexp(orders * e, (1 - orders) * e) - np.logaddexp(e, math.log(others + 1))
        if others:
            total = np.logaddexp(total, math.log(others) - np.logaddexp(e, math.log(others + 1)))
        return _least(total, orders, e, self.zcdp)


@dataclass(frozen=True, init=False, repr=False)
class Pure(_Bounded):
    """Anything that is epsilon-DP, known by nothing else: no worse than randomized response.

    >>> Pure(1).guarantee
    PureDP(1)
    """

    @property
    def zcdp(self) -> Fraction:
        """Return ``epsilon tanh(epsilon / 2)``."""
        return concentrated.pure_rho(self.epsilon)

    @property
    def pair(self) -> LossPair:
        """Return the pair of randomized response."""
        return response_pair(self.epsilon, 2)

    def renyi(self, orders: Floats) -> Floats:
        """Return ``ln(cosh((a - 1/2) epsilon) / cosh(epsilon / 2)) / (a - 1)``."""
        e = float(self.epsilon)
        return _least(np.logaddexp(orders * e, (1 - orders) * e) - np.logaddexp(e, 0.0), orders, e, self.zcdp)


@dataclass(frozen=True, init=False, repr=False)
class Approximate(Event):
    """Anything that is (epsilon, delta)-DP, known by nothing else: with probability delta everything is shown, else
    randomized response (Kairouz, Oh and Viswanath 2015).

    >>> Approximate(1, 1e-6).guarantee
    ApproxDP(1, 1e-06)
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: float | Fraction, delta: float | Fraction) -> None:
        self._freeze(epsilon=arguments.epsilon(epsilon), delta=arguments.delta(delta))

    @property
    def guarantee(self) -> Guarantee:
        """Return (epsilon, delta)-DP."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def own_delta(self) -> Fraction:
        """Return delta."""
        return self.delta

    @property
    def pair(self) -> LossPair:
        """Return the pair of randomized response with an infinite loss of probability delta."""
        return response_pair(self.epsilon, 2, float(self.delta) * (1 + 2.0**-50))

    def epsilon_at(self, delta: Fraction) -> Fraction | None:
        """Return epsilon, or less at a larger delta; None at a smaller one."""
        return ApproxDP(self.epsilon, self.delta).epsilon_at(delta) if delta >= self.delta else None

    def scaled(self, factor: Fraction) -> Event:
        """Return the event at epsilon / factor with an unchanged delta."""
        return Approximate(self.epsilon / factor, self.delta)


@dataclass(frozen=True, init=False, repr=False)
class Concentrated(Event):
    """Anything that is rho-zCDP: discrete Gaussian noise, for example.

    >>> Concentrated(0.5).guarantee
    ZCDP(0.5)
    """

    rho: Fraction

    def __init__(self, rho: float | Fraction) -> None:
        self._freeze(rho=ZCDP(rho).exact[0])

    @property
    def zcdp(self) -> Fraction:
        """Return rho."""
        return self.rho

    def epsilon_at(self, delta: Fraction) -> Fraction:
        """Return the epsilon at this delta by the conversion of :meth:`dither.ZCDP.to_approx`."""
        return ZCDP(self.rho).epsilon_at(delta)

    def scaled(self, factor: Fraction) -> Event:
        """Return the event at rho / factor^2."""
        return Concentrated(self.rho / factor**2)


def response_pair(epsilon: Fraction, categories: int, infinite: float = 0.0) -> LossPair:
    """Return the pair of randomized response: losses -epsilon, 0 and epsilon, with masses times 1 - infinite.

    >>> response_pair(Fraction(1), 2).losses
    (Fraction(-1, 1), Fraction(1, 1))
    """
    small = math.exp(-float(epsilon))
    rest = (1 - infinite) / (1 + (categories - 1) * small)
    if categories == 2:
        return AtomsPair([-epsilon, epsilon], [rest * small, rest], infinite)
    return AtomsPair([-epsilon, Fraction(0), epsilon], [rest * small, (categories - 2) * rest * small, rest], infinite)


def _least(total: Floats, orders: Floats, epsilon: float, rho: Fraction) -> Floats:
    """Return ``total / (orders - 1)`` with rounding covered, or ``rho * orders`` if that is less."""
    error = ERROR * (1 + np.abs(total) + epsilon * orders)
    return np.minimum((np.maximum(total, 0.0) + error) / (orders - 1), float(rho) * orders * (1 + ERROR))


def _ratio(value: object, name: str) -> Fraction:
    """Return noise over sensitivity as an exact number, or refuse it outside of 1e-6 to about 1e120 (2^400).

    ``value`` is the number as the user passed it, and ``name`` the parameter's name for the error.
    """
    exact = decimal(value, name)
    if not Fraction(1, 10**6) <= exact < 1 << 400:
        raise InvalidArgument(
            name, "a number from 1e-06 to 1e+120", value, f"pass {name}: noise over sensitivity, 2 for example"
        )
    return exact
