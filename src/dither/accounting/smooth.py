"""Noise whose scale depends on the data: the exact guarantee, and the scale that a guarantee needs.

A release ``f(x) + s S(x) Z``, S a beta-smooth bound on the local sensitivity, shifts by at most the smaller of
S(x) and S(y) between neighbors x, y, and their scales differ by a factor within exp(+-beta). It is (epsilon,
delta)-DP if the hockey-stick divergence ``E = integral of (p - e^epsilon q)_+`` of all such pairs P (at x), Q
(at y) is at most delta.

**The worst pair**, for Laplace and for normal Z, is a P that is wider by e^beta and shifted by the whole of the
smaller S: in units of that, ``P = law of s e^beta Z`` and ``Q = law of 1 + s Z``, provided, for normal Z,
``e^beta/s + 1/(2 s^2) + beta < epsilon``, for Laplace Z ``1/s + beta < epsilon``, which is checked. Let A be the
set where p > e^epsilon q, d the shift.

* *E grows with d.* Its derivative is ``e^epsilon * integral over A of dq/dx``. If Q is the wider one, A is an
  interval [a1, a2] whose middle lies to the left of 0, so a2 is nearer to d and q(a2) > q(a1); if P is, A is
  the outside of an interval whose middle lies to the right of d, so a1 is nearer to d and q(a1) > q(a2). Either
  way the derivative is positive.
* *A P that is wider by e^b: E grows with b.* A is the outside of [a1, a2], which holds 0 and d, since the
  log-ratio there is at most 1/(2 s^2), respectively 1/s. The derivative by b is ``integral over A of -d(x p)/dx =
  a2 p(a2) - a1 p(a1)``, positive as a1 < 0 < a2.
* *A Q that is wider by e^b is no worse than b = 0.* Where ``|x - d| > s e^b`` a wider Q has the larger density,
  so p - e^epsilon q falls with b; and nearer to d the log-ratio is at most e^b/s + b, respectively 1/s + b,
  which is below epsilon, so A has no points there.

At the worst pair A is the outside of an interval with explicit ends, and E is four tail probabilities:
enclosed, the ends rounded outward.

For the heavy-tailed laws the loss is bounded: pure epsilon-DP. Let Q be wider than P by e^b (b may be negative) and
shifted by d, at most min(1, e^b)/s in units of P's scale. Between points on the same side of both centers and their
mirror images the farther one has the larger loss, so a point at distance z >= 0 beyond P's center, on the side away
from Q's, is the worst.

*Density proportional to* ``1 / (1 + |z|^g)``, g > 1 (g = 2: Cauchy). With v = e^(-g b) the ratio of densities is e^b
times ``R(z) = (1 + v (z+d)^g) / (1 + z^g)``. Its derivative has the sign of ``v (1 + d/z)^(g-1) (1 - d z^(g-1)) -
1``, which falls with z, so R has one maximum, where ``R = v (1 + d/z)^(g-1) = 1 / (1 - d z^(g-1))``. Eliminating z,
the loss is at most epsilon if and only if epsilon > b, epsilon/(g-1) > -b and ``d^g <= (1 - e^(b-epsilon))
(e^(epsilon/(g-1)+b) - 1)^(g-1)``: the smallest scale is a closed formula. Only b = -beta, 0 and beta matter. For b =
-a < 0 the derivative of the largest loss by a is ``g w/(1+w) - 1`` with w = z^g at the maximum, and z rises with a,
since ``v (1 + d/z)^(g-1) (1 - d z^(g-1))`` does with ``d = e^-a/s``; for b > 0 the derivative by b is ``1 - g
u/(1+u)`` with ``u = v (z+d)^g = R (1 + z^g) - 1``, and z and R fall with b. In both cases it changes sign once, from
- to +, so that the loss is largest at an end.

*Density proportional to* ``(1 + z^2)^(-m)``, m = 2: Student's law with 3 degrees of freedom, scaled. The largest
ratio of the two quadratics is the larger root R of ``v R^2 - R (1 + d^2 + v) + 1 = 0``, v = e^(2b), which rises with
d and falls with b. So on a piece b1 <= b <= b2 the loss is at most ``b2 + m ln R(b1, largest d)``: a fine cut of
[-beta, beta] gives a rigorous bound.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from dither.errors import InvalidArgument
from dither.exact import exp, exp_neg, log, normal_tail, square_root, up
from dither.exact.search import bisect_floats, bisect_fractions, minimize

_BITS = 160  # e^50 takes 72 of them, and a delta of 1e-20 another 66
_ONE = 1 << _BITS

POWERS = {"power": 1, "cauchy": 1, "student": 2}
"""The heavy-tailed laws, density ``(1 + |z|^gamma)^(-power)``, and their power; gamma is 2 but for ``"power"``."""

_CAUCHY = Fraction(2)


def _exp_ends(x: Fraction) -> tuple[Fraction, Fraction]:
    """Enclose exp(x) in rationals."""
    low, high = exp(x, _BITS)
    return Fraction(low, _ONE), Fraction(high, _ONE)


def _half_tail(z: Fraction, upper: bool) -> Fraction:
    """Return a bound on P(N > z) for the standard normal law and any z: from above if ``upper``, else from below."""
    low, high = (Fraction(end, 2 * _ONE) for end in normal_tail(abs(z), _BITS))
    if z >= 0:
        return high if upper else low
    return 1 - low if upper else 1 - high


def gaussian_smooth_delta(epsilon: Fraction, s: Fraction, beta: Fraction) -> float:
    """Return an upper bound on the delta of normal noise of scale s times a beta-smooth sensitivity.

    At the worst pair of the module, ``P = law of s e^beta Z`` and ``Q = law of 1 + s Z``, ``p > e^epsilon q`` holds
    outside of the interval between two roots, so delta is ``P(outside) - e^epsilon Q(outside)``. It is 1 where the
    module's condition on s does not hold.

    >>> gaussian_smooth_delta(Fraction(1), Fraction(10), Fraction(1, 50)) < 1e-5
    True
    """
    widest = _exp_ends(beta)[1]
    if not widest / s + 1 / (2 * s * s) + beta < epsilon:
        return 1.0
    lower_roots, upper_roots = [], []
    for shrunk in _exp_ends(-2 * beta):  # the roots of h x^2 - 2 x + 1 - 2 s^2 (epsilon + beta) are monotone in h
        h = 1 - shrunk
        square = square_root(1 - h * (1 - 2 * s * s * (epsilon + beta)), _BITS)
        distances = [Fraction(end, _ONE) for end in square]
        lower_roots += [(1 - distance) / h for distance in distances]
        upper_roots += [(1 + distance) / h for distance in distances]
    p = _half_tail(-max(lower_roots) / (s * widest), True) + _half_tail(min(upper_roots) / (s * widest), True)
    q = _half_tail((1 - min(lower_roots)) / s, False) + _half_tail((max(upper_roots) - 1) / s, False)
    return up(min(Fraction(1), max(Fraction(0), p - _exp_ends(epsilon)[0] * q)))


def laplace_smooth_delta(epsilon: Fraction, s: Fraction, beta: Fraction) -> float:
    """Return an upper bound on the delta of Laplace noise of scale s times a beta-smooth sensitivity.

    At the worst pair, ``P = law of s e^beta Z`` and ``Q = law of 1 + s Z``, the densities satisfy ``p > e^epsilon q``
    outside of the interval from ``(1 - t) / g`` to ``(1 + t) / g``, with ``t = s (epsilon + beta)`` and ``g = 1 -
    e^-beta``; delta is ``P(outside) - e^epsilon Q(outside)``, every part rounded up. That pair is the worst if ``1/s +
    beta < epsilon``; otherwise 1 is returned.

    >>> laplace_smooth_delta(Fraction(1), Fraction(3), Fraction(1, 50)) < 1e-5
    True
    """
    if not 1 / s + beta < epsilon:
        return 1.0
    widest = _exp_ends(beta)[1]
    gaps = [1 - shrunk for shrunk in _exp_ends(-beta)]
    t = s * (epsilon + beta)  # above 1, by the condition
    lower_ends, upper_ends = [(1 - t) / gap for gap in gaps], [(1 + t) / gap for gap in gaps]

    def tail(x: Fraction, end: int) -> Fraction:
        """Return P(Lap > x) for x >= 0, from below (end=0) or above (end=1)."""
        return Fraction(exp_neg(x, _BITS)[end], 2 * _ONE)

    p = tail(-max(lower_ends) / (s * widest), 1) + tail(min(upper_ends) / (s * widest), 1)
    q = tail((1 - min(lower_ends)) / s, 0) + tail((max(upper_ends) - 1) / s, 0)
    return up(min(Fraction(1), max(Fraction(0), p - _exp_ends(epsilon)[0] * q)))


def heavy_smooth_loss(s: Fraction, beta: Fraction, power: int, gamma: Fraction = _CAUCHY) -> float:
    """Return an upper bound on the loss of noise with density ``(1 + |z|^gamma)^(-power)``.

    Its scale is s times a beta-smooth sensitivity; a power other than 1 is for ``gamma = 2``. There the module's bound
    is taken on 256 pieces of [-beta, beta], with a margin for floats.

    >>> round(heavy_smooth_loss(Fraction(6), Fraction(1, 6), 1), 4)      # the textbook's Cauchy noise at epsilon = 1
    0.2261
    >>> round(heavy_smooth_loss(Fraction(8), Fraction(1, 8), 1, Fraction(3)), 4)      # and with tails like |z|^-3
    0.3644
    """
    if power == 1:
        return _power_loss(s, beta, gamma)
    pieces, width = 256, float(beta)
    cuts = [width * (2 * i / pieces - 1) for i in range(pieces + 1)]
    result = max(
        b2 + power * math.log(_largest_ratio(b1, math.exp(2 * min(b2, 0.0)) / float(s) ** 2))
        for b1, b2 in itertools.pairwise(cuts)
    )
    return result * (1 + 1e-12) + 1e-13


def _power_room(b: float, gamma: float, epsilon: float) -> float:
    """Return the logarithm of the largest d^gamma for which the loss is at most epsilon, in floats."""
    near, far = epsilon - b, epsilon / (gamma - 1) + b
    if not (near > 0 and far > 0):
        return -math.inf
    return math.log(-math.expm1(-near)) + (gamma - 1) * (far + math.log(-math.expm1(-far)))


def _power_fits(s: Fraction, beta: Fraction, gamma: Fraction, epsilon: Fraction) -> bool:
    """Return whether noise with density ``1/(1 + |z|^gamma)`` is proved to be epsilon-DP, by the module's formula.

    ``s`` is the scale of the noise for a smooth sensitivity of 1 and ``beta`` the smoothness. The formula is checked
    at b = -beta, 0 and beta, with every logarithm and exponential enclosed by rational bounds.
    """
    scale = Fraction(log(s, _BITS)[0], _ONE)
    for b in (-beta, Fraction(0), beta):
        near, far = epsilon - b, epsilon / (gamma - 1) + b
        if not (near > 0 and far > 0):
            return False
        one_minus = [Fraction(_ONE - exp_neg(x, _BITS)[1], _ONE) for x in (near, far)]
        if min(one_minus) <= 0:
            return False
        logs = [Fraction(log(x, _BITS)[0], _ONE) for x in one_minus]
        if logs[0] + (gamma - 1) * (far + logs[1]) < gamma * (min(b, Fraction(0)) - scale):
            return False
    return True


def _power_loss(s: Fraction, beta: Fraction, gamma: Fraction) -> float:
    """Return the smallest epsilon of noise with density ``1/(1 + |z|^gamma)``, found in floats and then proved.

    ``s`` is the scale of the noise for a smooth sensitivity of 1 and ``beta`` the smoothness. The result of the search
    is raised by a relative 2^-48, doubled until exact arithmetic confirms it.
    """
    width, exponent = float(beta), float(gamma)
    needed = [(b, exponent * (min(b, 0.0) - math.log(s))) for b in (-width, 0.0, width)]

    def fits(epsilon: float) -> bool:
        """Return whether the loss is at most ``epsilon`` for scales that differ by e^-beta, 1 or e^beta, in floats."""
        return all(_power_room(b, exponent, epsilon) >= room for b, room in needed)

    high = max(1.0, 2 * max(1.0, exponent - 1) * width)
    while not fits(high):
        high *= 2
    least, excess = bisect_floats(fits, 0.0, high).holds, 2.0**-48
    while not _power_fits(s, beta, gamma, Fraction(least * (1 + excess))):
        excess *= 2
    return least * (1 + excess)


def _largest_ratio(b: float, d2: float) -> float:
    """Return the maximum over z of ``(1 + (z - d)^2) / (e^(2 b) + z^2)`` for d^2 = d2, a root of a quadratic
    equation."""
    v = math.exp(2 * b)
    middle = 1 + d2 + v
    return (middle + math.sqrt(max(middle * middle - 4 * v, 0.0))) / (2 * v)


def _smallest_scale(holds: Callable[[Fraction], bool], start: float) -> Fraction:
    """Return the smallest scale s for which ``holds(s)``, to a relative 2^-26, by doubling and bisection.

    ``holds`` must be true for all scales above the smallest. ``start`` is the first scale tried. The scale that is
    returned was checked. Where beta alone costs more than epsilon and delta no scale suffices, which is an error after
    120 doublings.
    """
    high, most = Fraction(start), Fraction(start) * 2**120
    while not holds(high):
        if high > most:
            raise InvalidArgument(
                "beta",
                "one for which some amount of noise is enough for this epsilon and delta",
                "a larger one",
                "pass a smaller beta, or take the one of dither.SmoothNoise",
            )
        high *= 2
    low = high / 2
    while holds(low):
        high, low = low, low / 2
    return Fraction(up(bisect_fractions(holds, low, high, steps=26).holds))


@lru_cache(maxsize=256)
def smooth_scale(kind: str, epsilon: Fraction, delta: Fraction, beta: Fraction, gamma: Fraction = _CAUCHY) -> Fraction:
    """Return the smallest scale of noise, for a smooth sensitivity of 1, that keeps the guarantee.

    ``kind`` is the law of the noise: ``"laplace"``, ``"gaussian"`` or one of :data:`POWERS`; ``epsilon`` and ``delta``
    are the guarantee (delta is not used by the heavy-tailed laws of POWERS), ``beta`` is the smoothness of the
    sensitivity, and ``gamma`` the exponent of the law ``"power"``.

    >>> float(smooth_scale("cauchy", Fraction(1), Fraction(0), Fraction(1, 6))) < 6
    True
    """
    if kind in POWERS and POWERS[kind] == 1:
        return _smallest_scale(lambda s: _power_fits(s, beta, gamma, epsilon), 2 / float(epsilon))
    if kind in POWERS:
        return _smallest_scale(
            lambda s: Fraction(heavy_smooth_loss(s, beta, POWERS[kind])) <= epsilon, 2 / float(epsilon)
        )
    curve = laplace_smooth_delta if kind == "laplace" else gaussian_smooth_delta
    return _smallest_scale(lambda s: Fraction(curve(epsilon, s, beta)) <= delta, 2 / float(epsilon))


def widest_beta(kind: str, gamma: Fraction = _CAUCHY) -> Fraction:
    """Return the share of epsilon below which beta must stay.

    Without any shift, scales that differ by e^beta already lose beta at the center and, far out, ``(gamma power - 1)
    beta``.

    >>> widest_beta("student"), widest_beta("cauchy"), widest_beta("power", Fraction(5))
    (Fraction(1, 3), Fraction(1, 1), Fraction(1, 4))
    """
    return 1 / max(Fraction(1), gamma * POWERS[kind] - 1) if kind in POWERS else Fraction(1)


@lru_cache(maxsize=256)
def smooth_calibration(
    kind: str, epsilon: Fraction, delta: Fraction, gamma: Fraction = _CAUCHY
) -> tuple[Fraction, Fraction]:
    """Return the beta, and the scale for it, for which ``scale / beta`` is smallest.

    ``kind`` is the law of the noise (``"laplace"``, ``"gaussian"`` or one of :data:`POWERS`), ``epsilon`` and
    ``delta`` are the guarantee, and ``gamma`` is the exponent of the law ``"power"``.

    The smooth sensitivity of an order statistic of spread-out data is in proportion to 1/beta (the best k is 1/beta,
    and k ranks make a distance of k gaps), so this makes the noise smallest whatever the gaps. The search is in floats;
    its result is certified. It stops short of the largest possible beta (:func:`widest_beta`), where the scale
    becomes infinite.

    >>> beta, scale = smooth_calibration("cauchy", Fraction(1), Fraction(0))
    >>> heavy_smooth_loss(scale, beta, 1) <= 1
    True
    """
    quick = _float_scale(kind, float(epsilon), float(delta), float(gamma))
    widest = (0.95 if kind in POWERS else 0.9) * float(widest_beta(kind, gamma))
    low, high = math.log(1e-4 * float(epsilon)), math.log(widest * float(epsilon))

    def cost(t: float) -> float:
        """Return ``scale / beta`` at beta = e^t, in floats."""
        return quick(math.exp(t)) / math.exp(t)

    beta = Fraction(math.exp(minimize(cost, low, high, steps=32)))
    return beta, smooth_scale(kind, epsilon, delta, beta, gamma)


def _float_scale(kind: str, epsilon: float, delta: float, gamma: float) -> Callable[[float], float]:
    """Return a function from beta to the smallest scale, in floats: a fast version of :func:`smooth_scale`.

    ``kind``, ``epsilon``, ``delta`` and ``gamma`` are as there. It only guides the choice of beta, so its errors cost
    no privacy.
    """

    def scale(beta: float) -> float:
        """Return the scale for a beta in floats, by a closed formula or by bisection."""
        if kind in POWERS and POWERS[kind] == 1:
            return math.exp(max(min(b, 0.0) - _power_room(b, gamma, epsilon) / gamma for b in (-beta, 0.0, beta)))

        def fits(s: float) -> bool:
            """Return whether noise of scale s keeps the guarantee, by the module's formulas in floats."""
            if kind in POWERS:
                return all(
                    b + POWERS[kind] * math.log(_largest_ratio(b, math.exp(2 * min(b, 0.0)) / s**2)) <= epsilon
                    for b in (-beta, -beta / 2, 0.0)
                )
            near = 1 / s if kind == "laplace" else math.exp(beta) / s + 1 / (2 * s * s)
            return near + beta < epsilon and _float_delta(kind, epsilon, s, beta) <= delta

        start = 1e-3 / epsilon * math.exp(-epsilon)
        return bisect_floats(fits, start, 1e4 / epsilon, geometric=True, steps=36).holds

    return scale


def _float_delta(kind: str, epsilon: float, s: float, beta: float) -> float:
    """Return what :func:`laplace_smooth_delta` and :func:`gaussian_smooth_delta` bound, in floats."""
    t, wider = s * (epsilon + beta), s * math.exp(beta)
    if kind == "laplace":
        gap = -math.expm1(-beta)
        first, second = (1 - t) / gap, (1 + t) / gap
        p = math.exp(first / wider) + math.exp(-second / wider)
        return 0.5 * (p - math.exp(epsilon) * (math.exp((first - 1) / s) + math.exp((1 - second) / s)))
    h = -math.expm1(-2 * beta)
    root = math.sqrt(1 - h * (1 - 2 * s * t))
    first, second = (1 - root) / h, (1 + root) / h

    def above(x: float) -> float:
        """Return P(N > x) for the standard normal law, in floats."""
        return 0.5 * math.erfc(x / math.sqrt(2))

    return (
        above(-first / wider)
        + above(second / wider)
        - math.exp(epsilon) * (above((1 - first) / s) + above((second - 1) / s))
    )
