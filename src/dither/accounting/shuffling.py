"""Amplification by shuffling: the guarantee of n reports in random order, without their senders.

Each of n people sends one report of an epsilon0-DP randomizer R, and a shuffler that is trusted to forget who sent
what passes them on in random order. One person's value is replaced, from 0 to 1 say; n is public.

*Clones* (Feldman, McMillan and Talwar 2021, theorem 3.1). With ``t = exp(-epsilon0)`` there are laws Q0 and Q1 with
``R(0) = (Q0 + t Q1) / (1 + t)`` and ``R(1) = (t Q0 + Q1) / (1 + t)``, and for every other value ``R(x) >= t max(R(0),
R(1)) >= t (Q0 + Q1) / 2``: with probability t the report of any other person is a *clone*, drawn from Q0 or Q1 by a
fair coin. So all n reports are computed from two numbers: how many reports came from Q0 and how many from Q1. With C ~
Bin(n - 1, t) clones, m = C + 1 of them in all, a of them from Q0 and b = m - a from Q1,

    P(a | m) = Bin(a; m, 1/2) * 2 (a + t b) / ((1 + t) m),      Q(a | m) the same with a and b exchanged,

and the privacy loss is ``ln((a + t b) / (t a + b))``. The pair (P, Q) dominates, and it is symmetric.

*Distinct reports.* If no report is likely for two different values, ``R(x) >= 2 / (1 + e^epsilon0) * (Q0 + Q1) / 2``,
and clones are nearly twice as likely: so it is in k-ary randomized response, where a report that is more likely for one
value than for others is so for that value only, and where reports are of one bit: a mixture of two values' laws is no
easier to tell from another mixture than the two are.

*Blanket* (Balle, Bell, Gascon and Nissim 2019, theorem 5.2) for k-ary randomized response: a report is uniform with
probability ``g = k / (e^epsilon0 + k - 1)``, whatever the value. Of N - 1 ~ Bin(n - 1, g) other uniform reports and the
person's own, a are 0 and b are 1; with ``K = e^epsilon0 - 1`` the loss is ``ln((N + K a) / (N + K b))``. Its number of
reports that are 0 or 1, and N, are the same under P and Q.

*Rounding.* Everything is rounded against us:

* t is rounded down. Fewer clones, or fewer uniform reports, are worse: a clone can be added to the reports without
  knowing anything. Neighboring values of C are merged into the smallest of them.
* A binomial law is computed from its mode outward, by the ratios of neighbors, and divided by its sum over a window
  outside of which lie at most e^-L on either side, by Bernstein's inequality: every mass is at least the true one, but
  for a relative 4 u for each step. What lies outside counts as a loss of epsilon0, the largest there is.
* Losses are right to (128 + 8 epsilon0) u, which is added where delta is computed, and to the ``slack`` of the pair:
  a logarithm is right to 2 u of itself, and is at most 18 + epsilon0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dither import arguments
from dither.accounting import concentrated
from dither.accounting.events import Event
from dither.accounting.pairs import UNIT, Floats, LossPair
from dither.errors import WrongType
from dither.exact import up
from dither.exact.search import bisect_floats
from dither.guarantees import ApproxDP
from dither.neighbors import Neighbors, ReplaceOne

_EXPONENT = 80.0  # outside of each window lies at most exp(-80)
_OUTSIDE = 2 * math.exp(-_EXPONENT)
_MAX_ATOMS = 1 << 19
_PAIR_ATOMS = 1 << 18
_MIN_ROWS = 8
_PARTS, _MOST_PARTS = 12, 96
_MAX_MEAN = float(1 << 24)
_MAX_EXPONENT = 700.0  # above, exp(-epsilon0) is no normal float, and counts as 0


def shuffled(
    epsilon0: float | Fraction,
    n: int,
    delta: float | Fraction,
    *,
    response_categories: int | None = None,
    distinct: bool = False,
) -> ApproxDP:
    """Return the guarantee of n shuffled reports when one person's value is replaced, computed numerically and rounded
    up.

    Parameters
    ----------
    epsilon0
        The privacy loss of one report, as its sender has it without a shuffler.
    n
        How many reports are shuffled together; public. Those who may collude with the collector do not count.
    delta
        The delta of the promise.
    response_categories
        For k-ary randomized response, its number of categories: a smaller epsilon is known for it.
    distinct
        For reports of one bit and nothing else: a smaller epsilon is known for these, too. A report of one bit and of
        a row or a coordinate beside it, as in the Hadamard protocols, is not one.

    Returns
    -------
    ApproxDP
        At most epsilon0. It holds beside epsilon0-DP, against any reader of the reports after the shuffler.

    Examples
    --------
    >>> shuffled(4, n=100_000, delta=1e-6).epsilon < 0.17
    True
    >>> shuffled(4, n=100_000, delta=1e-6, response_categories=10).epsilon < 0.112
    True
    >>> shuffled(1, n=2, delta=1e-9).epsilon <= 1
    True
    """
    exact = arguments.delta(delta)
    event = Shuffled(epsilon0, n, response_categories=response_categories, distinct=distinct)
    return ApproxDP(event.epsilon_at(exact), exact)


@dataclass(frozen=True, init=False, repr=False)
class Shuffled(Event):
    """n reports of an epsilon-DP randomizer, shuffled, for one replaced value; the parameters of :func:`shuffled`.

    Neighbors differ by a replaced value (:data:`dither.ReplaceOne`), since n is public: a sum with events that are for
    added and removed people only, such as a sample, is refused, and so is a sample of it. Noise does not say for which
    neighbors its sensitivity was computed, and ledger accounts do not either: a release for added and removed people
    counts here with its guarantee for a group of two (:meth:`dither.Guarantee.group`).

    >>> from dither.accounting import best_of
    >>> best = best_of(30 * Shuffled(2, 10_000), 1e-6)
    >>> best.accountant, best.guarantee.epsilon < 1.4
    ('pld', True)
    """

    epsilon: Fraction
    n: int
    response_categories: int | None
    distinct: bool

    def __init__(
        self, epsilon: float | Fraction, n: int, *, response_categories: int | None = None, distinct: bool = False
    ) -> None:
        """Describe ``n`` shuffled reports; the parameters are those of :func:`shuffled`.

        ``epsilon`` is the guarantee of each report, ``response_categories`` the k of k-ary randomized response or None
        for any other randomizer, and ``distinct`` whether no report is likely for two different values, which is so
        where ``response_categories`` is given.
        """
        k = response_categories
        if not isinstance(distinct, bool):
            raise WrongType("distinct", "True or False", type(distinct).__name__, "leave it out")
        if k is not None:
            k = arguments.whole(k, "response_categories", 2)
        self._freeze(
            epsilon=arguments.epsilon(epsilon, "epsilon0"),
            n=arguments.whole(n, "n"),
            response_categories=k,
            distinct=distinct or k is not None,
        )

    def __repr__(self) -> str:
        k = self.response_categories
        more = f", response_categories={k}" if k else ", distinct=True" if self.distinct else ""
        return f"Shuffled({float(self.epsilon):g}, {self.n}{more})"

    @property
    def relation(self) -> Neighbors:
        """Return ReplaceOne: one value is replaced by another."""
        return ReplaceOne

    @property
    def pure_epsilon(self) -> Fraction:
        """Return the epsilon of one report, which a shuffler does not reduce."""
        return self.epsilon

    @property
    def zcdp(self) -> Fraction:
        """Return the rho of epsilon-DP, ``epsilon tanh(epsilon / 2)``, for the epsilon of one report."""
        return concentrated.pure_rho(self.epsilon)

    @property
    def pair(self) -> LossPair:
        """Return the pair of the module's introduction, or the blanket's where that is known to be better."""
        return _pair(up(self.epsilon), self.n, self.response_categories, self.distinct, _PAIR_ATOMS)

    def epsilon_at(self, delta: Fraction) -> Fraction:
        """Return the smallest epsilon at this delta, by the dominating pair with the most losses, rounded up.

        It is at most the epsilon of one report, which holds without a shuffler.
        """
        pair = _pair(up(self.epsilon), self.n, self.response_categories, self.distinct, _MAX_ATOMS)
        target = float(delta) * (1 - 2.0**-50)
        most = up(self.epsilon)
        fast = bisect_floats(
            lambda e: pair.delta(e) <= target, 0.0, most, tolerance=1e-7, negligible=1e-12 * most
        ).holds
        return min(max(Fraction(fast), arguments.MIN_EPSILON), self.epsilon)


class ShufflePair(LossPair):
    """Many losses and the mass of P at each, both as floats.

    >>> pair = ShufflePair(np.array([-1.0, 1.0]), np.array([1 / (1 + math.e), math.e / (1 + math.e)]), 1e-15)
    >>> round(pair.delta(0.0), 6) == round((math.e - 1) / (math.e + 1), 6)
    True
    """

    def __init__(self, losses: Floats, masses: Floats, error: float) -> None:
        """Sort the losses and compute the tail sums of P and Q.

        ``losses`` and ``masses`` (under P) are arrays of equal length in any order. ``error`` is the relative error of
        the masses, by which they are raised.
        """
        order = np.argsort(losses)
        self._places, self._masses = losses[order], masses[order] * (1 + error)
        self.low, self.high = float(self._places[0]), float(self._places[-1])
        self._loss_error = (128 + 8 * max(abs(self.low), abs(self.high))) * UNIT
        precise = np.longdouble
        self.slack = self._loss_error + error + 2 * self._places.size * float(np.finfo(precise).eps)
        p, q = self._masses.astype(precise), (self._masses * np.exp(-self._places)).astype(precise)
        self._p, self._q = (np.append(np.cumsum(mass[::-1])[::-1], 0).astype(np.float64) for mass in (p, q))

    def tails(self, at: Floats) -> tuple[Floats, Floats]:
        """Return ``P(L > l)`` and ``Q(L > l)`` for each loss l in ``at``: the sums of the masses above it."""
        index = np.searchsorted(self._places, at, side="right")
        return np.minimum(self._p[index], 1.0), np.minimum(self._q[index], 1.0)

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta(epsilon) = E_P[(1 - exp(epsilon - L))_+], the sum over all losses L."""
        start = int(np.searchsorted(self._places, epsilon - self._loss_error))
        excess = -np.expm1(np.minimum(epsilon - self._places[start:], 0.0)) + self._loss_error
        return float(self._masses[start:] @ excess) * (1 + 4 * self._places.size * UNIT)


@lru_cache(maxsize=32)
def _pair(epsilon0: float, n: int, categories: int | None, distinct: bool, atoms: int) -> ShufflePair:
    """Return a dominating pair of the shuffled reports, by clones or by the blanket.

    The two analyses are compared where the curve of the clones falls to a delta of 1e-6, and the smaller one is taken.
    ``epsilon0`` is the guarantee of each of ``n`` reports, ``categories`` the k of k-ary randomized response (None for
    another randomizer, for which there is no blanket), ``distinct`` whether reports are likely for one value only, and
    ``atoms`` about how many losses a pair may have.
    """
    clones = clone_pair(epsilon0, n, distinct=distinct, atoms=atoms)
    if categories is None or categories == 2:
        return clones
    blanket = blanket_pair(epsilon0, n, categories, atoms=atoms)
    smallest = 1e-6 * epsilon0
    at = bisect_floats(lambda e: clones.delta(e) <= 1e-6, 0.0, epsilon0, tolerance=1e-3, negligible=smallest).holds
    return blanket if blanket.delta(at) < clones.delta(at) else clones


def clone_pair(epsilon0: float, n: int, *, distinct: bool = False, atoms: int = _MAX_ATOMS) -> ShufflePair:
    """Return the pair of losses by the analysis of clones (see the module).

    ``epsilon0`` is the guarantee of each of ``n`` reports, ``distinct`` whether no report is likely for two different
    values, and ``atoms`` about how many losses the pair may have. Factors such as ``1 - 2.0**-50`` round a probability
    down.

    >>> clone_pair(1.0, 1).delta(0.5) < 0.29
    True
    """
    t = math.exp(-epsilon0) * (1 - 2.0**-50) if epsilon0 <= _MAX_EXPONENT else 0.0
    rate = 2 * t / (1 + t) * (1 - 2.0**-50) if distinct else t
    first, weights, error = _binomial(n - 1, rate)
    half_width = _half_width((first + weights.size) / 4.0)
    totals, weights = _blocks(first, weights, max(_MIN_ROWS, atoms // (2 * half_width + 1)))
    m = totals + 1.0
    a, mass, row_error = _halves(m, half_width)
    b = m[:, None] - a
    mass *= 2 * (a + t * b) / ((1 + t) * m[:, None]) * weights[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.log(a + t * b) - np.log(t * a + b)
    return _collected(losses, mass, error + row_error, epsilon0)


def blanket_pair(epsilon0: float, n: int, categories: int, *, atoms: int = _MAX_ATOMS) -> ShufflePair:
    """Return the pair of losses of k-ary randomized response by the analysis of the blanket (see the module).

    ``epsilon0`` is the guarantee of each of ``n`` reports, ``categories`` is k, and ``atoms`` about how many losses
    the pair may have. Of the reports, those are counted that are 0 or 1, the two values that the person may have: a of
    the t of them are 0, and N reports in all are uniform, the person's own included.

    Of T ~ Bin(n - 1, 2 g / k) others' uniform reports that are 0 or 1, and U others ~ Bin(n - 1 - T, ...), only the
    totals t and N with the person's own report are seen. Given both, and t >= 1, a has the law of ``X + Bin(t - 1,
    1/2)``, where X is a fair coin with probability ``r / (r + K / 2)``, r = N / t, and else 1 under P and 0 under Q.
    So for the same r more coins are better, for the same t a larger r is, and a block is no worse than its smallest t
    with its smallest r. With t = 0 nothing is revealed: such a report counts as one with t = 1 if 1 is in its block.

    >>> blanket_pair(1.0, 100, 5).delta(0.4) < clone_pair(1.0, 100, distinct=True).delta(0.4)
    True
    """
    if epsilon0 > _MAX_EXPONENT:
        return clone_pair(epsilon0, n, distinct=True, atoms=atoms)
    growth = math.exp(epsilon0) * (1 + 2.0**-50)
    g = categories / (growth + categories - 1) * (1 - 2.0**-50)
    pairs_rate = 2 * g / categories  # right to u: a mass of its binomial law to 3 u for each step from the mean
    n = _fewer(n, pairs_rate)  # the same people for t as for N
    neither = (categories - 2) / (growth + categories - 1)  # the person's own report is not 0 or 1
    own = (1 + growth) / (growth + categories - 1)
    first, weights, error = _binomial(n - 1, pairs_rate)
    error *= 2
    spread = np.zeros(weights.size + 1)  # the law of t, the person's own report included
    spread[:-1] += weights * neither * (1 + 2.0**-50)
    spread[1:] += weights * own * (1 + 2.0**-50)
    half_width = _half_width((first + spread.size) / 4.0)
    totals, blocks = _blocks(first, spread, max(_MIN_ROWS, atoms // (_PARTS * (2 * half_width + 1))))
    ends = np.append(totals[1:], first + spread.size)
    parts = min(max(_PARTS, atoms // (totals.size * (2 * half_width + 1))), _MOST_PARTS)
    rest_rate = (g - pairs_rate) / (1 - pairs_rate) * (1 - 2.0**-49)
    rows_t, rows_n, rows_w = [], [], []
    for low, end, weight in zip(totals.tolist(), ends.tolist(), blocks.tolist(), strict=True):
        # others that are neither: at least Bin(n - t, rate) for every t below the end; N >= t + that
        start, rest, rest_error = _binomial(max(n - int(end) + 1, 0), rest_rate)
        error = max(error, rest_error)
        fewest, shares = _blocks(start, rest, parts)
        low = max(low, 1.0) if end > 1 else low
        rows_t.append(np.full(fewest.size, low))
        rows_n.append(low * (1 + fewest / (end - 1)) if low else fewest + 1.0)
        rows_w.append(weight * shares)
    t, reports, weight = (np.concatenate(column) for column in (rows_t, rows_n, rows_w))
    a, mass, row_error = _halves(t, half_width)
    b, reports = t[:, None] - a, reports[:, None]
    k = growth - 1
    mass *= (reports + k * a) / (reports + k * t[:, None] / 2) * weight[:, None]
    losses = np.log(reports + k * a) - np.log(reports + k * np.maximum(b, 0.0))
    return _collected(losses, mass, 2 * error + row_error, epsilon0)


def _collected(losses: Floats, mass: Floats, error: float, epsilon0: float) -> ShufflePair:
    """Return the pair with the losses and masses of all rows, of which those with mass 0 are left out.

    Losses are at most ``epsilon0``. The mass outside of the windows, at most ``8 _OUTSIDE``, is added at that largest
    loss. ``error`` is the relative error of the masses.
    """
    kept = mass > 0
    places = np.append(np.minimum(losses[kept], epsilon0), epsilon0)
    return ShufflePair(places, np.append(mass[kept], 8 * _OUTSIDE), error + 32 * UNIT)


def _half_width(variance: float) -> int:
    """Return a half-width such that at most exp(-L) of a binomial law lies farther above its mean, and as much below.

    It follows from Bernstein's inequality.
    """
    return math.ceil(math.sqrt(2 * variance * _EXPONENT) + 2 * _EXPONENT / 3) + 2


def _fewer(n: int, rate: float) -> int:
    """Return the number of people, reduced until the mean number of clones is at most _MAX_MEAN: fewer people are
    worse."""
    return 0 if rate == 0 else n if n * rate <= _MAX_MEAN else int(_MAX_MEAN / rate)


def _binomial(n: int, rate: float) -> tuple[int, Floats, float]:
    """Return the binomial law of ``n`` trials of probability ``rate`` within a window around its mode.

    The result is the first value of the window, the probabilities of it and of those that follow, and their relative
    error. They are divided by their sum in the window, so each is at least the true one, up to that error. If the
    mean is above ``_MAX_MEAN``, n is reduced first, which is never too favorable.
    """
    n = _fewer(n, rate)
    mean = n * rate
    width = _half_width(mean)
    mode = min(n, math.floor((n + 1) * rate))
    low, high = max(0, mode - width), min(n, mode + width)
    odds = rate / (1 - rate)
    k = np.arange(low, high, dtype=np.float64)
    ratios = (n - k) / (k + 1) * odds
    masses = np.ones(high - low + 1)
    at = mode - low
    masses[at + 1 :] = np.cumprod(ratios[at:])
    masses[:at] = np.cumprod(1 / ratios[:at][::-1])[::-1]
    return low, masses / float(masses.sum()), 8 * (width + 8) * UNIT


def _halves(m: Floats, half_width: int) -> tuple[Floats, Floats, float]:
    """Return, for each number of coins in ``m``, the law of the number of heads in a window around m/2.

    The window extends ``half_width`` to either side. The result is an array of values and one of their probabilities,
    each with one row for each m and ``2 half_width + 1`` columns, and the relative error of the probabilities. Values
    outside of 0 to m have mass 0.
    """
    offsets = np.arange(half_width + 1, dtype=np.float64)
    middle = np.floor(m / 2)[:, None]
    above = np.ones((m.size, half_width + 1))
    ratios = (m[:, None] - middle - offsets[:-1]) / (middle + offsets[:-1] + 1)
    above[:, 1:] = np.cumprod(np.maximum(ratios, 0.0), axis=1)
    below = np.ones((m.size, half_width + 1))
    ratios = (middle - offsets[:-1]) / (m[:, None] - middle + offsets[:-1] + 1)
    below[:, 1:] = np.cumprod(np.maximum(ratios, 0.0), axis=1)
    masses = np.concatenate([below[:, :0:-1], above], axis=1)
    values = np.concatenate([middle - offsets[:0:-1], middle + offsets], axis=1)
    totals = masses.sum(axis=1, keepdims=True)
    return np.clip(values, 0.0, m[:, None]), masses / totals, (8 * half_width + 64) * UNIT


def _blocks(first: int, weights: Floats, most: int) -> tuple[Floats, Floats]:
    """Merge values with their weights into at most ``most`` blocks, each represented by its smallest value."""
    if weights.size <= most:
        return first + np.arange(weights.size, dtype=np.float64), weights
    step = -(-weights.size // most)
    starts = np.arange(0, weights.size, step)
    return first + starts.astype(np.float64), np.add.reduceat(weights, starts)
