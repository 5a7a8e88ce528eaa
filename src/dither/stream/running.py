"""Running sums, windows, means and histograms over time: one charge for all steps of a horizon."""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from typing import Any

from dither import arguments
from dither.accounting import Event
from dither.errors import InvalidArgument
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.randomness import Source, mark, resolve
from dither.stateful import Stateful
from dither.stream import pictures
from dither.stream.factorizations import Factorization
from dither.stream.mechanism import StreamPlan
from dither.stream.session import Floats, StreamSession, as_values


def budget_of(epsilon: float | None, delta: float | None, rho: float | None) -> Guarantee:
    """The guarantee that these arguments ask for.

    >>> budget_of(1, 1e-9, None), budget_of(1, None, None), budget_of(None, None, 0.5)
    (ApproxDP(1, 1e-09), PureDP(1), ZCDP(0.5))
    """
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise InvalidArgument("rho", "rho, or epsilon and delta", "both", "leave one of them out")
        return ZCDP(rho)
    if epsilon is None:
        raise InvalidArgument("epsilon", "epsilon, or rho", "neither", "pass epsilon=1, delta=1e-9")
    return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)


_Budget = tuple[float | None, float | None, float | None]
"""Epsilon, delta and rho."""
_Schema = tuple[int | None, int, int, float | Fraction]
"""The horizon, and what one person can change: in how many steps, how far apart, and by how much in each."""


class _Series:
    """What all series have in common."""

    plan: StreamPlan
    """What the series costs, draws and errs by; public."""

    _released_is = "running sum"

    def __init__(self, budget: _Budget, schema: _Schema, source: Source | None, **chosen: Any) -> None:
        horizon, max_participations, min_separation, sensitivity = schema
        self.plan = StreamPlan(
            horizon=horizon,
            budget=budget_of(*budget),
            max_participations=max_participations,
            min_separation=min_separation,
            sensitivity=sensitivity,
            **chosen,
        )
        self._source = resolve(source)
        self._session = StreamSession(self.plan, self._source)

    @property
    def guarantee(self) -> Guarantee:
        """What all steps together cost, paid when the series is started."""
        return self.plan.guarantee

    @property
    def event(self) -> Event:
        """For accountants: all steps together."""
        return self.plan.event

    @property
    def step(self) -> int:
        """How many steps were released."""
        return self._session.step

    def _repr_html_(self) -> str:
        """For a notebook: the plan, and how many steps were released; no released number and no noise."""
        title = f"{type(self).__name__}, {self.step:,} steps released"
        return pictures.fragment(self.plan, title, self._released_is, self.error)

    def error(self, step: int | None = None, confidence: float = 0.95) -> float:
        """The ± of a step (from 1), by default of the step released last."""
        return self.plan.error(self._at(step), confidence)

    def _at(self, step: int | None) -> int:
        return max(1, self.step) if step is None else arguments.whole(step, "step")


class RunningSum(_Series, Stateful):
    """The running sum of a series, released at every step; one charge for all of them.

    *Statement.* If one person's data change the values of at most ``max_participations`` steps, any two of them at
    least ``min_separation`` steps apart, each by at most ``sensitivity``, all releases together are (epsilon,
    delta)-DP, rho-zCDP, or epsilon-DP where only epsilon is given. Later values may depend on earlier releases.

    *Why.* The noise is correlated between steps (a factorization of the running sum), and what a person can change of
    the fresh noise behind it is bounded by a theorem about whole numbers as they are computed: see
    ``dither/stream/filters.py`` and ``dither/stream/mechanism.py``. Fresh noise at every step would err by ``sqrt(n)``
    times the noise of one step; this errs by about ``1 + ln(n)/pi`` times.

    Parameters
    ----------
    horizon
        The number of steps that may be released. None if it is not known: epochs of doubling length, each with noise of
        its own that stays in the sum. That costs accuracy: 1.5 times the error at 365 steps, 2.2 times at 10,000,
        2.7 times at a million.
    epsilon, delta, rho
        The guarantee: epsilon and delta, or rho, or epsilon alone, for which a tree with Laplace noise is used.
    max_participations, min_separation
        One person is in the values of at most so many steps, at least so many steps apart.
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
        schema = (horizon, max_participations, min_separation, sensitivity)
        chosen = {"factorization": factorization, "buffers": buffers, "bands": bands}
        super().__init__((epsilon, delta, rho), schema, source, **chosen)

    def release(self, value: float) -> float:
        """The running sum with noise, after the value of the next step."""
        noisy = self._session.release([value])[0]
        result: float = mark(float(noisy), self._source)
        return result


class SlidingWindow(_Series, Stateful):
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
        schema = (horizon, max_participations, min_separation, sensitivity)
        super().__init__((epsilon, delta, rho), schema, source, window=window)

    def release(self, value: float) -> float:
        """The sum over the last steps with noise, after the value of the next step."""
        running = float(self._session.release([value])[0])
        self._released.append(running)
        result: float = mark(running - self._released[0], self._source)
        return result

    def error(self, step: int | None = None, confidence: float = 0.95) -> float:
        """The ± of a step (from 1), by default of the step released last."""
        return self.plan.error(self._at(step), confidence, self.window)


class RunningMean(RunningSum):
    """The mean of the values of all steps so far, released at every step; otherwise as :class:`RunningSum`.

    The number of steps is public, so the mean is the running sum over it, and its error falls nearly as 1/n.

    >>> s = RunningMean(horizon=365, epsilon=1, delta=1e-9)
    >>> means = [s.release(1000) for _ in range(100)]
    >>> abs(means[-1] - 1000) < 3, s.error() < 0.5
    (True, True)
    """

    _released_is = "mean so far"

    def release(self, value: float) -> float:
        """The mean of the values so far with noise, after the value of the next step."""
        result: float = mark(float(super().release(value)) / self.step, self._source)
        return result

    def error(self, step: int | None = None, confidence: float = 0.95) -> float:
        """The ± of a step (from 1), by default of the step released last."""
        return super().error(step, confidence) / self._at(step)


class Histogram(_Series, Stateful):
    """Running counts of many categories, released together at every step; otherwise as :class:`RunningSum`.

    ``sensitivity`` is the l2 norm (under epsilon alone the l1 norm) of what one person changes in the counts of one
    step: 1 for one category a step. Counts are whole numbers.

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
        schema = (horizon, max_participations, min_separation, sensitivity)
        chosen = {"series": arguments.whole(bins, "bins"), "factorization": factorization}
        super().__init__((epsilon, delta, rho), schema, source, **chosen)

    def release(self, values: Any) -> Floats:
        """The running counts with noise, after the counts of the next step."""
        return self._session.release(as_values(values, self.plan.series))

    def error(self, step: int | None = None, confidence: float = 0.95) -> float:
        """The ± of the count of each category at a step (from 1), by default of the step released last."""
        return self.plan.error(self._at(step), confidence)
