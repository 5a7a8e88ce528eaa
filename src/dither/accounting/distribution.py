"""The privacy curve of a whole workload, from its privacy loss distribution, and always from above.

**Not a filter.** The curve is that of a workload whose noise was fixed in advance. The questions may depend on the
answers before them, the amounts of noise may not: a ledger that decides as it goes must add epsilons or rhos.

*What is computed.* ``delta(epsilon) = E_P[(1 - exp(epsilon - L))_+]`` for the sum L of independent losses, one for each
release. All Gaussian releases are one: their sum G is normal, with ``s^2 = sum of 1/ratio^2``, and its curve d_G is
known in closed form. The sum K of the others is put on a lattice, and ``delta(epsilon) = E[d_G(epsilon - K)]``.

*Tilting.* All is done under ``W = P exp(t L) / M(t)``, M the moment generating function. With ``f(x) = exp(t x) d_G(x)
/ M_G(t)``, which lies between 0 and ``c = (t/(t+1))^t / (t + 1)`` (the maximum of ``exp(t x) (1 - exp(x))``),

    delta(epsilon) = M exp(-t epsilon) * (sum over k of w_k f(epsilon - l_k)) <= c M exp(-t epsilon),

and t is taken where that bound, the one behind the conversion of Renyi divergences, is smallest. So an error of e in
the tilted masses, wherever they are, is one of at most ``e c M exp(-t epsilon)`` in delta: relative, whether delta is
1e-6 or 1e-60. The errors, all added to the sum:

* *Splitting* each cell of the lattice on its two ends (:mod:`dither.accounting.pairs`) can only raise delta. It adds
  about ``(t + 1) n h^2 / 12`` to epsilon; h is chosen for a relative 2e-4 of that, less for few releases. What lies
  beyond the end of a lattice counts as an infinite loss.
* *Window*: K is computed modulo N h. Chernoff's bound for the lattice masses themselves puts all but 2e-15 within one
  period; what is wrapped into it from outside only adds.
* *Fast Fourier transform*: a transform of N masses that add up to 1 is a tree of log2 N additions of numbers whose
  absolute values add up to 1 on every level, so no coefficient is off by more than 8 u log2 N, u = 2^-53; a product
  of n of them by n (8 log2 N + 4) u; by Parseval's identity and Cauchy's inequality the sum over k is then off by at
  most sqrt(N) times that.
* *Floats*: exp, expm1 and erfc are taken to be right to 4 u; with their arguments, the masses are right to a relative
  ``(64 + 4 t |l|) u`` each and f to 2^-40.

* *Infinite losses*: the sum is infinite with probability ``1 - product of (1 - p_i)``, in floats to a relative
  ``(n + 16) u`` for n kinds of losses, which is added.

Where there is no normal loss, delta is that of the infinite losses from the sum of all largest losses on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither.accounting.pairs import UNIT, Floats, LossPair, normal_tail
from dither.errors import NotPrivate
from dither.exact.search import bisect_floats, crossing

_SHARE = 2e-4  # of epsilon, the error that the lattice may add
_BEYOND = 2.0**-20
_MAX_CELLS = 1 << 17
_STEEPEST = 2.0
_MAX_MEMORY = 1 << 25
_MAX_WINDOW = 1 << 22
_LARGEST_LOSS = 2e6  # twice what any guarantee may say
_FAR = 35.0  # exp(-35) of the mass lies outside the window, on either side

Losses = Sequence[tuple[LossPair, int]]


@dataclass(frozen=True)
class Composed:
    """The loss of a workload on a lattice, tilted; good near the epsilon or delta it was made for, valid everywhere."""

    places: Floats
    weights: Floats
    deviation: float
    tilt: float
    log_moment: float
    error: float
    infinite: float
    ceiling: float
    """No finite loss is above."""

    def log_delta(self, epsilon: float) -> float:
        """Return the logarithm of an upper bound on delta, without the infinite losses.

        It is ``M(t) e^(-t epsilon) (sum of the tilted weights times _excess + error)``, t the tilt, M(t) the moment.
        """
        if epsilon >= self.ceiling:
            return -math.inf
        values = _excess(epsilon - self.places, self.deviation, self.tilt)
        total = float(self.weights @ values) * (1 + 4 * self.places.size * UNIT) + self.error
        exponent = self.log_moment - self.tilt * epsilon
        return exponent + 4 * UNIT * (abs(self.log_moment) + self.tilt * epsilon) + math.log(total)

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta."""
        return min(1.0, (math.exp(min(self.log_delta(epsilon), 0.0)) + self.infinite) * (1 + 2.0**-40))

    def epsilon(self, delta: float) -> float:
        """Return an upper bound on epsilon; infinite if delta is below the infinite part."""
        left = (delta * (1 - 2.0**-40) - self.infinite) * (1 - 2.0**-40)
        if left <= 0:
            return math.inf
        log_target, high = math.log(left), 1.0
        if self.ceiling > _LARGEST_LOSS and self.log_delta(_LARGEST_LOSS) > log_target:
            return math.inf
        while self.log_delta(high) > log_target:
            high *= 2
        return crossing(lambda epsilon: self.log_delta(epsilon) - log_target, 0.0, min(high, self.ceiling), 1e-9)


def compose(losses: Losses, deviation: float, *, delta: float | None = None, epsilon: float = 0.0) -> Composed:
    """Compose losses, each repeated, with a normal loss of this deviation, most accurately around one delta or one
    epsilon.

    >>> from dither.accounting import Pure
    >>> round(compose([(Pure(1).pair, 10)], 0.0, delta=1e-6).epsilon(1e-6), 4)
    10.0
    """
    count = sum(times for _, times in losses)
    tail = (_BEYOND if delta is None else _BEYOND * delta) / count
    if delta is None:
        tail = min(tail, 1e-30)
    sketch = _Sketch(losses, deviation, tail)
    tilt = sketch.tilt(delta, epsilon)
    h = _spacing(losses, sketch, tilt, tail, delta, epsilon)
    if tilt * h > _STEEPEST and h != _common_unit(losses):
        tilt = _STEEPEST / h  # beyond it the tilt would weigh what the lattice splits, not the losses
    first, masses, finite, moments = [], [], 0.0, 0.0
    for pair, times in losses:
        low, high = pair.loss_range(tail)
        start, end = math.floor(low / h) - 1, math.ceil(high / h) + 1
        grid = np.arange(start, end + 1, dtype=np.float64) * h
        mass, beyond = pair.on(grid)
        finite += times * _log_complement(pair.infinite + beyond)
        top = tilt * float(grid[mass > 0][-1])
        mass *= np.exp(np.minimum(tilt * grid - top, 0.0))
        total = float(mass.sum())
        moments += times * (top + math.log(total))
        first.append(start)
        masses.append(mass / total)
    infinite = -math.expm1(finite) * (1 + (len(losses) + 16) * UNIT)
    return _transformed(losses, first, masses, h, sketch, tilt, moments, infinite, deviation)


def _log_complement(mass: float) -> float:
    """Return ln(1 - mass) for the mass of an infinite loss: the sum is finite if all of its parts are."""
    return math.log1p(-mass) if mass < 1 else -math.inf


def _transformed(
    losses: Losses,
    first: list[int],
    masses: list[Floats],
    h: float,
    sketch: _Sketch,
    tilt: float,
    moments: float,
    infinite: float,
    deviation: float,
) -> Composed:
    """Return the distribution of the sum of all losses on the lattice of spacing ``h``, by fast Fourier transform.

    Loss i of ``losses`` occurs ``losses[i][1]`` times; its tilted masses are ``masses[i]``, the first of them at
    ``first[i] * h``. The sum is computed within a window outside of which Chernoff's bound leaves at most exp(-35) of
    the mass on either side; ``sketch`` suggests the exponents of that bound. ``tilt`` is the t of the module,
    ``moments`` the logarithm of the moment generating function of the lattice losses there, ``infinite`` the
    probability of an infinite loss, and ``deviation`` the standard deviation of the normal loss that is added in
    closed form (0 for none). ``error`` collects the errors listed in the module, for which the result's delta is
    raised.
    """
    times = [count for _, count in losses]
    ends = []
    for sign in (-1, 1):
        s = sign * sketch.window(tilt, sign)
        logs = 0.0
        for start, mass, count in zip(first, masses, times, strict=True):
            occupied = np.flatnonzero(mass)
            exponents = s * h * (start + occupied) + np.log(mass[occupied])
            excess = float(exponents.max())
            logs += count * (excess + math.log(float(np.exp(exponents - excess).sum())))
        ends.append((logs + _FAR) / s)
    lowest = sum(start * count for start, count in zip(first, times, strict=True))
    most = lowest + sum((mass.size - 1) * count for mass, count in zip(masses, times, strict=True))
    left = max(math.floor(ends[0] / h) - 1, lowest)
    right = min(math.ceil(ends[1] / h) + 1, most)
    size = _fast(max(right - left + 1, 16))
    if size > _MAX_WINDOW:
        raise NotPrivate(
            "event",
            f"a workload whose loss fits {_MAX_WINDOW} cells of a lattice",
            "more",
            "compose fewer releases, or use another accountant",
        )
    spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
    for mass, count in zip(masses, times, strict=True):
        if mass.size > size:  # modulo the period
            mass = np.concatenate([mass, np.zeros(-mass.size % size)]).reshape(-1, size).sum(axis=0)
        spectrum *= _power(np.fft.rfft(mass, size), count)
    weights = np.roll(np.fft.irfft(spectrum, size), (lowest - left) % size)
    total = sum(times)
    item = (total * (8 * math.log2(size) + 4) + 8 * math.log2(size)) * UNIT
    farthest = max(abs(start) + mass.size for start, mass in zip(first, masses, strict=True)) * h
    masses_error = total * (64 + 4 * tilt * farthest) * UNIT
    peak = math.exp(-tilt * math.log1p(1 / tilt)) / (tilt + 1) if tilt else 1.0
    error = peak * (math.sqrt(size) * item + masses_error + 2 * math.exp(-_FAR))
    error += 2.0**-40 * (1.0 if deviation else peak)
    places = np.arange(left, left + size, dtype=np.float64) * h
    square = deviation * deviation
    log_moment = moments + square * tilt * (1 + tilt) / 2
    highest = sum(pair.high * count for pair, count in losses) * (1 + 2 * total * UNIT)
    ceiling = highest if deviation == 0 else math.inf
    return Composed(places, np.maximum(weights, 0.0), deviation, tilt, log_moment, error, infinite, ceiling)


class _Sketch:
    """The moment generating function of the sum, in floats, from a few points of each loss.

    It is accurate enough to choose parameters by; nothing is proved from it.
    """

    def __init__(self, losses: Losses, deviation: float, tail: float) -> None:
        """Evaluate each loss on a coarse grid.

        ``losses`` are pairs (loss, how many times it occurs), ``deviation`` is the standard deviation of the normal
        loss, 0 for none, and ``tail`` the mass that a grid may leave out at its ends. ``_losses`` and ``_log_masses``
        have one row for each loss, filled up with masses of 0 where its grid has fewer points. ``_most`` is the
        largest tilt to try: beyond it only the largest losses count.
        """
        grids = [pair.grid(tail) for pair, _ in losses]
        widest = max(grid.size for grid in grids)
        self._losses = np.zeros((len(losses), widest))
        self._log_masses = np.full((len(losses), widest), -np.inf)
        with np.errstate(divide="ignore"):
            for row, ((pair, _), grid) in enumerate(zip(losses, grids, strict=True)):
                self._losses[row, : grid.size] = grid
                self._log_masses[row, : grid.size] = np.log(pair.on(grid)[0])
        self._counts = np.array([float(times) for _, times in losses])
        self._square = deviation * deviation
        self.count = float(self._counts.sum())
        ranges = self._losses.max(axis=1) - self._losses.min(axis=1)
        self._most = 1e6 / float(ranges.max())

    def moments(self, t: float) -> tuple[float, float]:
        """Return the logarithm of the moment generating function of the sum at t, and its derivative.

        A normal loss of variance s^2 has mean s^2/2, so it adds ``s^2 t (1 + t) / 2``.
        """
        exponents = self._log_masses + t * self._losses
        top = exponents.max(axis=1, keepdims=True)
        weights = np.exp(exponents - top)
        sums = weights.sum(axis=1)
        log_moment = float(self._counts @ (top[:, 0] + np.log(sums)))
        mean = float(self._counts @ ((weights * self._losses).sum(axis=1) / sums))
        return log_moment + self._square * t * (1 + t) / 2, mean + self._square * (0.5 + t)

    def tilt(self, delta: float | None, epsilon: float) -> float:
        """Return the tilt t at which the bound ``delta <= M(t) e^(-t epsilon) t^t / (1 + t)^(1 + t)`` is smallest.

        It is taken at this epsilon or, if ``delta`` is not None, at the smallest epsilon for this delta.
        """

        def rising(t: float) -> bool:
            """Return whether the derivative of the bound is positive at t; it increases with t."""
            log_moment, mean = self.moments(t)
            if delta is None:
                return mean - math.log1p(1 / t) >= epsilon
            return t * mean - log_moment + math.log1p(t) >= -math.log(delta)

        lowest = bisect_floats(rising, 0.0, self._most, geometric=True, tolerance=1e-3, negligible=1e-6, steps=50).holds
        return lowest if lowest > 1e-6 else 0.0

    def window(self, tilt: float, sign: int) -> float:
        """Return the exponent s of Chernoff's bound for one end of the window of the Fourier transform.

        ``sign`` is 1 for the upper end and -1 for the lower. The s returned makes ``(ln M(tilt + sign s) - ln M(tilt)
        + 35) / s`` smallest, which is how far that end must be from 0; M is the moment generating function of the
        lattice losses, without the normal loss.
        """
        square, self._square = self._square, 0.0
        start = self.moments(tilt)[0]

        def rising(s: float) -> bool:
            """Return whether the tail beyond s is negligible, by Chernoff's bound."""
            log_moment, mean = self.moments(tilt + sign * s)
            return sign * s * mean - (log_moment - start) >= _FAR

        width = bisect_floats(rising, 1e-9 * self._most, 4 * self._most, geometric=True, tolerance=1e-2, steps=40).holds
        self._square = square
        return width


def _spacing(losses: Losses, sketch: _Sketch, tilt: float, tail: float, delta: float | None, epsilon: float) -> float:
    """Return the spacing h of the lattice of losses: as wide as the error that it adds to epsilon allows.

    The error is about ``(tilt + 1) n h^2 / 12`` for n losses (see the module), and at most a relative ``_SHARE`` is
    allowed, of ``epsilon`` or, if ``delta`` is not None, of the epsilon at that delta, guessed by the moment bound of
    ``sketch`` at ``tilt``. ``tail`` is the mass that the range of a loss may leave out. If all losses are multiples of
    one number, h is that number, unless it is far below the h allowed, and then no mass is split. The number of cells
    is limited by ``_MAX_CELLS`` and ``_MAX_MEMORY``.
    """
    log_moment, mean = sketch.moments(tilt)
    guess = max(epsilon, 0.1 * mean)
    if delta is not None and tilt > 0:
        guess = (log_moment - math.log(delta)) / tilt
    allowed = _SHARE * min(1.0, (sketch.count + 10) / 1000) ** 1.5 * max(guess, 1e-9)
    h = max(allowed / sketch.count, math.sqrt(12 * allowed / ((tilt + 1) * sketch.count)))
    widest = max(high - low for low, high in (pair.loss_range(tail) for pair, _ in losses))
    h = min(h, widest / 8)
    common = _common_unit(losses)
    if common is not None and common >= h / 8:
        h = common
    return float(max(h, widest / min(_MAX_CELLS, _MAX_MEMORY // len(losses))))


def _common_unit(losses: Losses) -> float | None:
    """Return the largest number of which all losses are multiples, if they are at most 64 rationals; None otherwise."""
    unit = Fraction(0)
    for pair, _ in losses:
        if pair.losses is None or len(pair.losses) > 64:
            return None
        for loss in pair.losses:
            unit = Fraction(
                math.gcd(unit.numerator * loss.denominator, loss.numerator * unit.denominator),
                unit.denominator * loss.denominator,
            )
        if unit.denominator > 1 << 64:
            return None
    return float(unit)


def _excess(x: Floats, s: float, t: float) -> Floats:
    """Return ``exp(t x) d_G(x) / M_G(t)``, with d_G the curve of a normal loss of deviation s: between 0 and 1."""
    if s == 0:
        with np.errstate(over="ignore"):
            return np.where(x < 0, -np.expm1(np.minimum(x, 0.0)) * np.exp(t * np.minimum(x, 0.0)), 0.0)
    z = x / s - s / 2
    shift = t * s * z - (t * s) ** 2 / 2
    return np.clip(_scaled_tail(z, shift) - _scaled_tail(z + s, shift + x), 0.0, 1.0)


def _scaled_tail(z: Floats, shift: Floats) -> Floats:
    """Return ``exp(shift) P(N > z)`` without overflow: from z = 12 on by the series of Mills' ratio."""
    result, high = np.empty(z.size), z >= 12
    result[~high] = np.exp(shift[~high]) * normal_tail(z[~high])
    y = z[high]
    series = np.ones(y.size)
    for k in range(19, 0, -2):
        series = 1 - k * series / (y * y)
    with np.errstate(over="ignore", under="ignore"):
        result[high] = np.exp(np.minimum(shift[high] - y * y / 2, 1.0)) * series / (y * math.sqrt(2 * math.pi))
    return result


def _power(spectrum: NDArray[np.complex128], times: int) -> NDArray[np.complex128]:
    """Return the power of a spectrum by squaring, with a relative error of a few units for each factor."""
    result = None
    while times:
        if times & 1:
            result = spectrum if result is None else result * spectrum
        times >>= 1
        if times:
            spectrum = spectrum * spectrum
    assert result is not None
    return result


def _fast(size: int) -> int:
    """Return the next even product of 2, 3 and 5 that transforms quickly."""
    return min(factor << max(1, math.ceil(math.log2(size / factor))) for factor in (1, 3, 5, 9, 15))
