"""Alarms over a stream: when the running sum passes a threshold, at a price that does not grow with the steps."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from fractions import Fraction
from sys import float_info
from typing import Any, cast

from dither import arguments
from dither.accounting import Pure
from dither.errors import InvalidArgument, WrongType
from dither.exact import exactly, up
from dither.guarantees import PureDP
from dither.mechanisms import SparseVector
from dither.mechanisms.values import scalar
from dither.randomness import Source
from dither.stateful import Stateful

_LARGEST = Fraction(float_info.max)


class ThresholdAlarm(Stateful):
    """Announces when a running sum passes a threshold, or each of several in turn; one charge for any number of steps.

    *Statement.* If one person's data change the values of at most ``max_participations`` steps, each by at most
    ``sensitivity``, all announcements together are epsilon-DP.

    *Why.* The running sum of any step moves by at most ``max_participations * sensitivity``: the alarm is a session of
    :class:`~dither.SparseVector` with that sensitivity, whose questions are the running sums minus the next threshold,
    with as many answers above as there are thresholds. ``monotone`` is for values that one person only increases (or
    only decreases), so that all sums move in the same direction: half the noise.

    Examples
    --------
    >>> alarm = ThresholdAlarm(10_000, epsilon=1)
    >>> [alarm.update(4_000) for _ in range(3)], alarm.done
    ([False, False, True], True)
    >>> round(ThresholdAlarm.for_error(300, 10_000, steps=365).guarantee.epsilon, 3)
    0.136
    """

    thresholds: tuple[Fraction, ...]
    """The thresholds, in rising order."""
    mechanism: SparseVector
    """The mechanism that compares running sums with thresholds."""

    def __init__(
        self,
        threshold: float | Sequence[float],
        *,
        epsilon: float,
        max_participations: int = 1,
        sensitivity: float | Fraction = 1,
        monotone: bool = False,
        source: Source | None = None,
    ) -> None:
        """Begin a session with a running sum of 0.

        Parameters
        ----------
        threshold
            One threshold, or several in rising order, which are passed in turn.
        epsilon
            The guarantee of all announcements together.
        max_participations, sensitivity
            The most steps that contain values of one person, and the most that the person changes the value of one
            step.
        monotone
            Whether one person can only increase values, or only decrease them.
        source
            Where random words come from; by default the system.
        """
        several = threshold if isinstance(threshold, (list, tuple)) else [threshold]
        self.thresholds = tuple(exactly(item, "threshold") for item in several)
        if not self.thresholds or any(b <= a for a, b in zip(self.thresholds, self.thresholds[1:], strict=False)):
            raise InvalidArgument(
                "threshold", "one or more in rising order", "none, or thresholds out of order", "sort them"
            )
        moves: Any = _moves(max_participations, sensitivity)  # an exact rational
        self.mechanism = SparseVector(moves, epsilon, len(self.thresholds), monotone=monotone)
        self._session = self.mechanism.start(0, source=source)
        self._sum = Fraction(0)
        self._lock = threading.Lock()

    @classmethod
    def for_error(
        cls,
        error: float,
        threshold: float | Sequence[float],
        *,
        steps: int,
        confidence: float = 0.95,
        max_participations: int = 1,
        sensitivity: float | Fraction = 1,
        monotone: bool = False,
        source: Source | None = None,
    ) -> ThresholdAlarm:
        """Return the alarm with the smallest epsilon whose error bound over all ``steps`` is at most ``error``.

        The bound holds with probability ``confidence``, and is inversely proportional to epsilon: it is computed at
        epsilon 1, and epsilon is rounded up. The other parameters are those of the class.
        """
        count = len(threshold) if isinstance(threshold, (list, tuple)) else 1
        moves: Any = _moves(max_participations, sensitivity)
        at_one = SparseVector(moves, 1, count, monotone=monotone).error(steps, confidence)
        epsilon = up(exactly(at_one) / exactly(arguments.positive(error, "error")) * (1 + Fraction(1, 1 << 40)))
        return cls(
            threshold,
            epsilon=epsilon,
            max_participations=max_participations,
            sensitivity=sensitivity,
            monotone=monotone,
            source=source,
        )

    @property
    def guarantee(self) -> PureDP:
        """Return the guarantee of everything that the alarm announces, together."""
        return self.mechanism.guarantee

    @property
    def event(self) -> Pure:
        """Return the event of the whole session for accountants."""
        return self.mechanism.event

    @property
    def done(self) -> bool:
        """Return whether the last threshold was announced."""
        return self._session.done

    @property
    def passed(self) -> int:
        """Return the number of thresholds that were announced."""
        return self._session.above

    def update(self, value: float) -> bool:
        """Add the value of the next step; return whether the running sum now passes the next threshold."""
        number = scalar(value)
        if number is None:
            raise WrongType("value", "a number", type(value).__name__, "pass the value of the step")
        with self._lock:
            if self.done:
                raise InvalidArgument(
                    "update", "a threshold that is left", "none", "start a new alarm, at its own cost"
                )
            self._sum += Fraction(number)
            above = self._sum - self.thresholds[self.passed]
            # clipping to the range of floats increases no difference of two sums; an error here would disclose the sum
            # a session without numeric answers returns True or False
            return cast(bool, self._session.ask(max(-_LARGEST, min(above, _LARGEST))))

    def error(self, steps: int, confidence: float = 0.95) -> float:
        """Return a bound on the error of all announcements over ``steps`` steps together, with this confidence.

        No threshold is announced where the sum is below it by more than the bound, nor left unannounced where the sum
        is above it by more than that.
        """
        return self.mechanism.error(steps, confidence)


def _moves(max_participations: int, sensitivity: float | Fraction) -> Fraction:
    """Return the most that one person can change a running sum: ``max_participations * sensitivity``."""
    return arguments.whole(max_participations, "max_participations") * arguments.sensitivity(sensitivity)
