"""Running sums, windows, means and histograms over time: one charge for all steps of a horizon."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.accounting import Event
from dither.budget_hooks import observed, starts_session
from dither.errors import InvalidArgument, InvalidData, WrongType
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.mechanisms.values import scalar
from dither.randomness import Source, mark, resolve
from dither.stateful import Stateful
from dither.stream.keyed import new_key
from dither.stream.mechanism import Factorization, StreamPlan
from dither.validation import saturate

Floats = NDArray[np.float64]


class StreamSession(Stateful):
    """The running sums of one plan under one secret key; it cannot be copied, pickled or used by a forked process.

    A ledger scope charges for its construction, which pays for all steps.
    """

    plan: StreamPlan
    """The public plan."""

    @starts_session(cost="plan")
    def __init__(self, plan: StreamPlan, source: Source) -> None:
        self.plan, self._source = plan, source
        self._noise = plan.start(new_key(source))
        self._sums: list[int] = [0] * plan.series
        self._lock = threading.Lock()

    @property
    def step(self) -> int:
        """Return the number of released steps."""
        return self._noise.step

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of all steps together."""
        return self.plan.guarantee

    @observed
    def release(self, values: Sequence[Any]) -> Floats:
        """Add the values of the next step, one for each series, and return the noisy running sums."""
        steps = [self._lattice(value) for value in values]
        if len(steps) != self.plan.series:
            raise InvalidArgument(
                "values", f"{self.plan.series:,} numbers, one for each series", f"{len(steps):,}", "pass them all"
            )
        with self._lock:  # two threads at once must not draw the same step
            noise = self._noise.advance()[0].tolist()
            self._sums = [total + step for total, step in zip(self._sums, steps, strict=True)]
            scale = 1 << self.plan.lattice_bits
            result = np.array([_quotient(total + w, scale) for total, w in zip(self._sums, noise, strict=True)])
        marked: Floats = mark(result, self._source)
        return marked

    def _lattice(self, value: Any) -> int:
        """Return a value as a whole number of lattice steps; half a step is rounded up."""
        number = scalar(value)
        if number is None:
            raise WrongType("value", "a number", type(value).__name__, "pass the value of the step")
        if isinstance(number, int):
            return number << self.plan.lattice_bits
        if self.plan.series > 1:
            raise InvalidData("values", "whole numbers", "fractions", "round them, in units as small as needed")
        # half a step is always rounded up: rounding half to even could increase the distance of two values by a step
        return math.floor(Fraction(number) * (1 << self.plan.lattice_bits) + Fraction(1, 2))


def _quotient(noisy: int, scale: int) -> float:
    """Return ``noisy / scale`` as the nearest float, clipped to the range of floats."""
    try:
        return noisy / scale
    except OverflowError:
        return float_info.max if noisy > 0 else -float_info.max


def as_values(values: Any, series: int) -> Sequence[Any]:
    """Return the values of one step of several series: a list, or a one-dimensional array of whole numbers."""
    if isinstance(values, np.ndarray):
        if values.ndim != 1 or values.dtype.kind not in "biu":
            raise WrongType(
                "values", "one dimension of whole numbers", f"dtype {values.dtype}", "pass counts as integers"
            )
        numbers: list[Any] = saturate(values).tolist() if values.dtype.kind == "u" else values.tolist()
        return numbers
    if not isinstance(values, (list, tuple)):
        raise WrongType(
            "values", f"a list of {series:,} numbers", type(values).__name__, "pass one number for each series"
        )
    return values


def budget_of(epsilon: float | None, delta: float | None, rho: float | None) -> Guarantee:
    """Return the guarantee that these arguments state; each is None if it was not passed.

    ``epsilon`` alone is pure differential privacy, with ``delta`` approximate, and ``rho`` alone is zCDP.
    """
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise InvalidArgument("rho", "rho, or epsilon and delta", "both", "leave one of them out")
        return ZCDP(rho)
    if epsilon is None:
        raise InvalidArgument("epsilon", "epsilon, or rho", "neither", "pass epsilon=1, delta=1e-9")
    return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)


class _RunningSeries:
    """Base of the series that release a number at every step: their plan, budget and error."""

    plan: StreamPlan
    """The public plan: cost, noise and errors."""
    _released_is = "running sum"

    def __init__(self, budget: Guarantee, source: Source | None, **planned: Any) -> None:
        """Plan the series and start its noise.

        ``source`` provides random words (None: the operating system), and ``planned`` are the other arguments of
        :class:`StreamPlan`.
        """
        self.plan = StreamPlan(budget=budget, **planned)
        self._source = resolve(source)
        self._session = StreamSession(self.plan, self._source)

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of all steps together, which is charged when the series starts."""
        return self.plan.guarantee

    @property
    def event(self) -> Event:
        """Return the event of all steps together for accountants."""
        return self.plan.event

    @property
    def step(self) -> int:
        """Return the number of released steps."""
        return self._session.step

    def _repr_html_(self) -> str:
        """Return the series for a notebook: its plan and the number of released steps."""
        title = f"{type(self).__name__}, {self.step:,} steps released"
        return self.plan.fragment(title, self._released_is, self.error)

    def error(self, step: int | None = None, confidence: float = 0.95) -> float:
        """Return the ± of a step (from 1), by default of the step released last."""
        return self.plan.error(self._at(step), confidence)

    def _at(self, step: int | None) -> int:
        """Return a step, by default the last one released (at least the first)."""
        return max(1, self.step) if step is None else arguments.whole(step, "step")


class RunningSum(_RunningSeries, Stateful):
    """The running sum of a series, released at every step; one charge for all of them.

    *Statement.* If one person's data change the values of at most ``max_participations`` steps, any two of them at
    least ``min_separation`` steps apart, each by at most ``sensitivity``, all releases together are (epsilon,
    delta)-DP, rho-zCDP, or epsilon-DP where only epsilon is given. Later values may depend on earlier releases.

    *Why.* The noise is correlated between steps by a factorization of the running sum, and the change that one person
    causes in the independent noise behind it is bounded exactly, rounding included: see ``dither/stream/filters.py``
    and ``dither/stream/mechanism.py``. Independent noise at every step would give an error of ``sqrt(n)`` times the
    noise of one step; this gives about ``1 + ln(n)/pi`` times.

    Parameters
    ----------
    horizon
        The number of steps that may be released. None if it is not known: epochs of doubling length, each with
        independent noise that stays in the sum. That costs accuracy: 1.5 times the error at 365 steps, 2.2 times at
        10,000, 2.7 times at a million.
    epsilon, delta, rho
        The guarantee: epsilon and delta, or rho, or epsilon alone, for which a tree with Laplace noise is used.
    max_participations, min_separation
        The most steps that contain values of one person, and the fewest steps from one of them to the next.
    sensitivity
        The most that one person changes the value of one step.
    factorization, buffers, bands
        ``"buffers"`` (constant memory), ``"square root"`` or ``"banded"`` (memory of the horizon, or the bands), or
        ``"tree"``.

    Examples
    --------
    >>> s = RunningSum(horizon=365, epsilon=1, delta=1e-9, max_participations=1)
    >>> [abs(s.release(1000) - 1000 * day) < 200 for day in (1, 2, 3)]
    [True, True, True]
    >>> s.guarantee, s.step, round(s.error(365, confidence=0.95))
    (ApproxDP(1, 1e-09), 3, 32)
    """

    def __init__(
        self,
        *,
        horizon: int | None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        max_participations: int = 1,
        min_separation: int = 1,
        sensitivity: float | Fraction = 1,
        factorization: Factorization = "buffers",
        buffers: int = 5,
        bands: int | None = None,
        source: Source | None = None,
    ) -> None:
        super().__init__(
            budget_of(epsilon, delta, rho),
            source,
            horizon=horizon,
            max_participations=max_participations,
            min_separation=min_separation,
            sensitivity=sensitivity,
            factorization=factorization,
            buffers=buffers,
            bands=bands,
        )

    def release(self, value: float) -> float:
        """Add the value of the next step, and return the noisy running sum."""
        noisy = self._session.release([value])[0]
        result: float = mark(float(noisy), self._source)
        return result


class SlidingWindow(_RunningSeries, Stateful):
    """The sum over the last ``window`` steps, released at every step; otherwise as :class:`RunningSum`.

    The noise of a window is the difference of the noises of two running sums, and the buffers are optimized for that.

    >>> s = SlidingWindow(window=7, horizon=365, epsilon=1, delta=1e-9)
    >>> sums = [s.release(1000) for _ in range(10)]
    >>> abs(sums[-1] - 7000) < 200, s.error() < RunningSum(horizon=365, epsilon=1, delta=1e-9).error(365)
    (True, True)
    """

    _released_is = "sum over the window"

    def __init__(
        self,
        *,
        window: int,
        horizon: int | None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        max_participations: int = 1,
        min_separation: int = 1,
        sensitivity: float | Fraction = 1,
        source: Source | None = None,
    ) -> None:
        self.window = arguments.whole(window, "window", at_most=1 << 24)
        self._released: deque[float] = deque([0.0], maxlen=window + 1)
        super().__init__(
            budget_of(epsilon, delta, rho),
            source,
            horizon=horizon,
            max_participations=max_participations,
            min_separation=min_separation,
            sensitivity=sensitivity,
            window=window,
        )

    def release(self, value: float) -> float:
        """Add the value of the next step, and return the noisy sum over the last ``window`` steps."""
        running = float(self._session.release([value])[0])
        self._released.append(running)
        result: float = mark(running - self._released[0], self._source)
        return result

    def error(self, step: int | None = None, confidence: float = 0.95) -> float:
        """Return the ± of a step (from 1), by default of the step released last."""
        return self.plan.error(self._at(step), confidence, self.window)


class RunningMean(RunningSum):
    """The mean of the values of all steps so far, released at every step; otherwise as :class:`RunningSum`.

    The number of steps n is public: the mean is the running sum divided by n, and its error falls nearly as 1/n.

    >>> s = RunningMean(horizon=365, epsilon=1, delta=1e-9)
    >>> means = [s.release(1000) for _ in range(100)]
    >>> abs(means[-1] - 1000) < 3, s.error() < 0.5
    (True, True)
    """

    _released_is = "mean so far"

    def release(self, value: float) -> float:
        """Add the value of the next step, and return the noisy mean of all values."""
        result: float = mark(float(super().release(value)) / self.step, self._source)
        return result

    def error(self, step: int | None = None, confidence: float = 0.95) -> float:
        """Return the ± of a step (from 1), by default of the step released last."""
        return super().error(step, confidence) / self._at(step)


class Histogram(_RunningSeries, Stateful):
    """Running counts of many categories, released together at every step; otherwise as :class:`RunningSum`.

    ``sensitivity`` is the l2 norm (under epsilon alone the l1 norm) of one person's change of the counts of one step: 1
    for one category a step. Counts are whole numbers. :meth:`error` is the ± of each category.

    >>> s = Histogram(bins=3, horizon=52, epsilon=1, delta=1e-9)
    >>> noisy = s.release([100, 200, 300])
    >>> noisy.shape, bool(abs(noisy - [100, 200, 300]).max() < 100)
    ((3,), True)
    """

    def __init__(
        self,
        *,
        bins: int,
        horizon: int | None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        max_participations: int = 1,
        min_separation: int = 1,
        sensitivity: float | Fraction = 1,
        factorization: Factorization = "buffers",
        source: Source | None = None,
    ) -> None:
        super().__init__(
            budget_of(epsilon, delta, rho),
            source,
            horizon=horizon,
            max_participations=max_participations,
            min_separation=min_separation,
            sensitivity=sensitivity,
            series=arguments.whole(bins, "bins"),
            factorization=factorization,
        )

    def release(self, values: Any) -> Floats:
        """Add the counts of the next step, and return the noisy running counts."""
        return self._session.release(as_values(values, self.plan.series))
