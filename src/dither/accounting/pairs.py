"""Dominating pairs: two laws at least as distinguishable as the releases of any neighbors, by their privacy loss.

A pair (P, Q) dominates a release if its privacy curve ``E_P[(1 - exp(epsilon - L))_+]``, L = ln(dP/dQ), is nowhere
below the release's; the product of dominating pairs dominates the composition, adaptive or not (Zhu, Dong and Wang
2022, theorem 10). Every pair here is symmetric, L under P having the law of -L under Q, except samples, which have
one pair for each direction.

``tails(l)`` gives ``P(L > l)`` and ``Q(L > l)`` in floats, each within a relative ``slack``. :meth:`LossPair.on` puts
the loss on a grid so that P and Q keep their mass in every cell ("connect the dots", Doroshenko, Ghazi, Kamath,
Kumar and Manurangsi 2022): the curve then agrees with the pair's at every grid point and is linear in e^epsilon in
between, and a curve is convex in e^epsilon, so the result dominates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

UNIT = 2.0**-53
_DENSER = 0.5 ** np.arange(5, 21)
_DENSER.setflags(write=False)


def normal_tail(z: Floats) -> Floats:
    """Return P(N > z), accurate to 2 z^2 + 4 units in the last place for z above 0.

    >>> normal_tail(np.array([0.0])).tolist()
    [0.5]
    """
    root = math.sqrt(0.5)
    return np.array([0.5 * math.erfc(x * root) for x in z.tolist()])


class LossPair:
    """Base: losses in [low, high], and ``infinite``, the mass of P where Q has none."""

    low: float
    high: float
    infinite: float = 0.0
    slack: float = 256 * UNIT
    losses: tuple[Fraction, ...] | None = None
    """All finite losses, where they are finitely many rationals."""

    def tails(self, at: Floats) -> tuple[Floats, Floats]:
        """Return ``P(L > l)`` and ``Q(L > l)`` for each finite loss l in ``at``."""
        raise AssertionError("each pair knows its laws")

    def loss_range(self, tail: float) -> tuple[float, float]:
        """Return an interval outside of which at most ``tail`` of the losses lie on either side."""
        return self.low, self.high

    def grid(self, tail: float) -> Floats:
        """Return 33 losses between which the law is sketched, denser towards the largest loss.

        At most ``tail`` of the losses lie beyond either end.
        """
        low, high = self.loss_range(tail)
        low, high = low - 1e-9 * (high - low), high + 1e-9 * (high - low)  # no loss beyond by a rounding
        return np.concatenate([np.linspace(low, high, 17)[:-1], high - (high - low) * _DENSER, [high]])

    def on(self, grid: Floats) -> tuple[Floats, float]:
        """Return the masses of P on an increasing grid, from above, and the mass beyond its end.

        In the cell from l to m, with masses a and b, m gets ``(a - b e^l) / (1 - e^(l - m))`` and l the rest of a.
        Errors are added to a and go to m. What is below the grid is moved up to its start.
        """
        p, q = self.tails(grid)
        with np.errstate(divide="ignore", over="ignore"):
            error = (self.slack + 4 * UNIT * np.abs(grid[:-1])) * p[:-1]
            a = p[:-1] - p[1:] + error
            b = np.exp(np.log(np.maximum(q[:-1] - q[1:], 0.0)) + grid[:-1])
            upper = np.clip((a - b + error) / -np.expm1(grid[:-1] - grid[1:]), 0.0, a)
        result = np.zeros(grid.size)
        result[1:] = upper
        result[:-1] += a - upper
        result[0] += max(0.0, 1 - self.infinite - float(p[0]))
        return result * (1 + 8 * UNIT), float(p[-1]) * (1 + self.slack)


class LaplacePair(LossPair):
    """Laplace noise of ratio 1/e: ``P(L > l) = 1 - exp(-(e - l)/2) / 2``, ``Q(L > l) = exp(-(e + l)/2) / 2``.

    >>> LaplacePair(1.0).tails(np.array([-2.0, 0.0, 1.0]))[1].round(4).tolist()
    [1.0, 0.3033, 0.0]
    """

    def __init__(self, loss: float) -> None:
        self.low, self.high = -loss, loss

    def tails(self, at: Floats) -> tuple[Floats, Floats]:
        """Return ``P(L > l)`` and ``Q(L > l)`` for each loss l in ``at``, by the closed form of the class."""
        clipped = np.clip(at, self.low, self.high)
        p, q = 1 - 0.5 * np.exp(0.5 * (clipped - self.high)), 0.5 * np.exp(0.5 * (self.low - clipped))
        below, above = at < self.low, at >= self.high
        return np.where(below, 1.0, np.where(above, 0.0, p)), np.where(below, 1.0, np.where(above, 0.0, q))


class RangePair(LossPair):
    """Losses within an unknown interval of length e: the curve ``(1 - exp((epsilon - e)/2))^2 / (1 - exp(-e))``
    (Dong, Durfee and Rogers 2020), so ``P(L > l) = (1 - exp((l - e)/2)) / (1 - exp(-e))`` and ``Q = exp(-(e +
    l)/2) P``.

    >>> RangePair(1.0).tails(np.array([-1.0, 0.0, 1.0]))[0].round(4).tolist()
    [1.0, 0.6225, 0.0]
    """

    def __init__(self, loss: float) -> None:
        self.low, self.high = -loss, loss

    def tails(self, at: Floats) -> tuple[Floats, Floats]:
        """Return ``P(L > l)`` and ``Q(L > l)`` for each loss l in ``at``, by the closed form of the class."""
        clipped = np.clip(at, self.low, self.high)
        p = -np.expm1(0.5 * (clipped - self.high)) / -math.expm1(-self.high) + 0.0
        return np.where(at < self.low, 1.0, p), np.where(at < self.low, 1.0, np.exp(0.5 * (self.low - clipped)) * p)


class AtomsPair(LossPair):
    """Finitely many losses, in increasing order, and the mass of P at each; the rest of P is where Q has none.

    >>> AtomsPair([Fraction(-1), Fraction(1)], [1 / (1 + math.e), math.e / (1 + math.e)]).tails(np.zeros(1))[0].round(4)
    array([0.7311])
    """

    def __init__(self, losses: Sequence[Fraction], masses: Sequence[float], infinite: float = 0.0) -> None:
        """Compute the tail sums of P and Q from the atoms.

        ``losses`` are the possible finite losses ``ln(P/Q)`` in increasing order, ``masses`` the probability of each
        under P (under Q it is ``mass * exp(-loss)``), and ``infinite`` the probability under P of what is impossible
        under Q.
        """
        self.losses, self.infinite = tuple(losses), infinite
        self._places = np.array([float(loss) for loss in losses])
        p = np.array(masses, dtype=np.float64)
        self.slack = (256 + 2 * p.size) * UNIT
        self.low, self.high = float(self._places[0]), float(self._places[-1])
        self._p, self._q = (
            np.append(np.cumsum(mass[::-1])[::-1], 0.0) for mass in (p, p * np.exp(-np.maximum(self._places, -700.0)))
        )

    def tails(self, at: Floats) -> tuple[Floats, Floats]:
        """Return ``P(L > l)`` and ``Q(L > l)`` for each loss l in ``at``: the sums of the masses above it."""
        index = np.searchsorted(self._places, at, side="right")
        return self._p[index], self._q[index]


class GaussianPair(LossPair):
    """Normal noise: L is normal with mean s^2/2 under P, -s^2/2 under Q, and deviation s, s = 1/ratio.

    >>> GaussianPair(1.0).tails(np.array([0.5]))[0].tolist()
    [0.5]
    """

    slack = 4096 * UNIT

    def __init__(self, deviation: float) -> None:
        self.low, self.high, self.deviation = -math.inf, math.inf, deviation

    def tails(self, at: Floats) -> tuple[Floats, Floats]:
        """Return ``P(L > l)`` and ``Q(L > l)`` for each loss l in ``at``; L is normal under both, see the class."""
        return normal_tail(at / self.deviation - self.deviation / 2), normal_tail(
            at / self.deviation + self.deviation / 2
        )

    def loss_range(self, tail: float) -> tuple[float, float]:
        """Return losses outside of which at most ``tail`` lies, by ``P(N > z) <= exp(-z^2 / 2)``."""
        width = self.deviation * (math.sqrt(-2 * math.log(tail)) + self.deviation / 2)
        return -width, width


class SampledPair(LossPair):
    """A symmetric pair when each person is in the sample with this rate below 1, in one of the two directions.

    *Removing* somebody: ``((1 - rate) Q + rate P, Q)``, with loss ``m = ln(1 - rate + rate e^l)``; *adding* somebody:
    ``(Q, (1 - rate) Q + rate P)``, with loss -m (Zhu, Dong and Wang 2022, theorem 11). Where Q has mass and P has
    none, m is ln(1 - rate).

    >>> pair = SampledPair(LaplacePair(1.0), 0.5, adding=False)
    >>> round(pair.low, 4), round(pair.high, 4)
    (-0.3799, 0.6201)
    """

    def __init__(self, base: LossPair, rate: float, *, adding: bool) -> None:
        """Mix the pair ``base`` of the release with itself for Poisson samples.

        ``rate`` is the probability, below 1, that a person is in the sample, and ``adding`` chooses the direction: the
        person is added (True) or removed (False), see the class.
        """
        self._base, self._rate, self._adding = base, rate, adding
        self.slack = 2 * base.slack + 64 * UNIT
        self.infinite = 0.0 if adding else rate * base.infinite
        self._least = math.log1p(-rate)
        self.low, self.high = self._mixed_range(base.low, base.high)

    def _mixed(self, loss: Floats) -> Floats:
        """Return the loss of the sampled release where the release has this loss: ``ln(1 - rate + rate e^loss)``."""
        return np.logaddexp(self._least, math.log(self._rate) + loss)

    def _mixed_range(self, low: float, high: float) -> tuple[float, float]:
        """Return the range of the losses of the sampled release, from the range (low, high) of the release's losses.

        Both ends are mapped by :meth:`_mixed`; for a person added the range changes its sign. If the release has
        outputs without mass under P, the lower end is ``ln(1 - rate)``.
        """
        first = self._least if self._base.infinite else float(self._mixed(np.array(low)))
        last = float(self._mixed(np.array(high)))
        return (-last, -first) if self._adding else (first, last)

    def tails(self, at: Floats) -> tuple[Floats, Floats]:
        """Return ``P(L > l)`` and ``Q(L > l)`` of the mixture for each loss l in ``at``; see the class.

        The loss m of the mixture is turned back into the loss of the base, ``ln(1 + (e^m - 1) / rate)``. By symmetry
        of the base ``Q(L < l) = P(L > -l)``, which the second direction uses.
        """
        m = -at if self._adding else at
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            inner = np.minimum(np.expm1(np.minimum(m, 700.0)) / self._rate, 1e300)
            base = np.clip(np.log1p(np.maximum(inner, -1.0)), -1e300, 1e300)
        beyond = m <= self._least if self._adding else m < self._least
        if self._adding:
            p, q = self._base.tails(-base)
            p = np.where(beyond, 0.0, p + self._base.infinite)
            return p, np.where(beyond, 0.0, (1 - self._rate) * p + self._rate * q)
        p, q = self._base.tails(base)
        mixture = (1 - self._rate) * q + self._rate * p
        return np.where(beyond, 1 - self.infinite, mixture), np.where(beyond, 1.0, q)

    def loss_range(self, tail: float) -> tuple[float, float]:
        """Return the range of the sample's losses that leaves out at most ``tail`` of the base's on either side."""
        return self._mixed_range(*self._base.loss_range(tail))

    def grid(self, tail: float) -> Floats:
        """Return the losses of the base's grid, mapped to those of the sample, in increasing order."""
        places = self._mixed(self._base.grid(tail))
        if self._base.infinite:
            places = np.append(places, self._least)
        return np.unique(-places if self._adding else places)


class EnvelopePair(LossPair):
    """The pair whose curve is the largest of several curves, at every epsilon: it dominates each of them, and so also
    a choice among them that depends on earlier answers.

    The largest of curves that are convex in e^epsilon is one too, and where the i-th is the largest, its tails are
    those of the pair. Curves ``P(L > l) - e^l Q(L > l)`` are compared in floats; P is raised by what the comparison
    may have lost. If all pairs are symmetric, so is this one.

    >>> pair = EnvelopePair([LaplacePair(1.0), GaussianPair(0.1)])
    >>> pair.tails(np.array([0.0]))[0].round(4) == LaplacePair(1.0).tails(np.array([0.0]))[0].round(4)
    array([ True])
    """

    def __init__(self, pairs: Sequence[LossPair]) -> None:
        """Take the envelope of these ``pairs``: ``low`` and ``high`` bound all of their losses.

        ``slack`` is the relative error of the tails. ``_lost`` is what a comparison in floats may be off by: twice the
        error of each of two curves.
        """
        self._pairs = tuple(pairs)
        self.low, self.high = min(pair.low for pair in pairs), max(pair.high for pair in pairs)
        self.infinite = max(pair.infinite for pair in pairs)
        self._lost = 4 * max(pair.slack for pair in pairs)
        self.slack = 2 * self._lost

    def tails(self, at: Floats) -> tuple[Floats, Floats]:
        """Return ``P(L > l)`` and ``Q(L > l)`` for each loss l in ``at``, of the pair whose curve is largest there."""
        tails = [(p + pair.infinite, q) for pair, (p, q) in ((pair, pair.tails(at)) for pair in self._pairs)]
        with np.errstate(divide="ignore", over="ignore"):
            curves = np.array([p - np.exp(np.minimum(np.log(q) + at, 700.0)) for p, q in tails])
        worst, places = np.argmax(curves, axis=0), np.arange(at.size)
        p, q = (np.array(column)[worst, places] for column in zip(*tails, strict=True))
        raised = p + self._lost * np.max([p for p, _ in tails], axis=0)
        return np.clip(raised, self.infinite, 1.0) - self.infinite, q

    def loss_range(self, tail: float) -> tuple[float, float]:
        """Return the smallest interval that contains the loss ranges of all pairs at ``tail``."""
        lows, highs = zip(*(pair.loss_range(tail) for pair in self._pairs), strict=True)
        return min(lows), max(highs)

    def grid(self, tail: float) -> Floats:
        """Return the union of the grids of all pairs, in increasing order."""
        return np.unique(np.concatenate([pair.grid(tail) for pair in self._pairs]))
