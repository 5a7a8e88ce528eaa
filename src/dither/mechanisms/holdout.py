"""The reusable holdout: check many ideas against the same held-out data without overfitting to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.accounting import Pure
from dither.callbacks import outcome, silenced
from dither.errors import InvalidData
from dither.exact import exactly
from dither.guarantees import PureDP
from dither.mechanisms.sparse_vector import SparseVector
from dither.randomness import Source
from dither.stateful import Stateful
from dither.validation import as_records

Question = Callable[[NDArray[Any]], Any]


@dataclass(frozen=True)
class HoldoutAnswer:
    """An answer and where it came from: ``from_holdout`` is True where the training data disagreed.

    >>> HoldoutAnswer(0.5, from_holdout=True).value
    0.5
    """

    value: float
    from_holdout: bool


class ReusableHoldout(Stateful):
    """Thresholdout (Dwork, Feldman, Hardt, Pitassi, Reingold and Roth 2015).

    *Statement.* Each question is a function of one record with values in ``bounds``; its mean over the training
    data is answered unless it is farther than the threshold from the mean over the holdout, and then the
    holdout's mean is given with noise, ``limit`` times at most. A value outside the bounds counts as the nearer
    bound, NaN as the lower. The holdout is used through a numeric
    :class:`~dither.SparseVector` only, so all answers together are epsilon-DP for it (replacing one record).

    A question gets an array of one record, float64 for numbers, and returns an array of one number. It is asked of
    every record by itself, so that no record changes what is said of another. It is tried on the training data first:
    if it fails there it is refused. A held-out record on which it fails counts as the lower bound, and its warnings are
    not shown: no held-out record decides between an answer and an error.

    *Why.* The distance of the two means moves by width/n when one holdout record is replaced, and so does the
    holdout's mean.

    Examples
    --------
    >>> holdout = ReusableHoldout([1.0, 2.0], [1.0, 2.0], bounds=(0, 1), epsilon=1, threshold=1e6, limit=1)
    >>> holdout.ask(lambda x: x > 1.5).value
    0.5
    """

    bounds: tuple[Fraction, Fraction]
    """Limits of every question's values."""
    mechanism: SparseVector
    """The mechanism that compares the two means and answers."""

    def __init__(
        self,
        train: Any,
        holdout: Any,
        *,
        bounds: tuple[float, float],
        epsilon: float,
        threshold: float,
        limit: int,
        source: Source | None = None,
    ) -> None:
        """Start a session, which a ledger charges once for all its answers.

        ``train`` and ``holdout`` are the two parts of the records, ``bounds`` the range of every question's values,
        ``epsilon`` the guarantee for the holdout, ``threshold`` the distance of the two means from which on the
        holdout answers, ``limit`` how often it may, and ``source`` the randomness, by default the operating system's.
        """
        self._train, self._holdout = as_records(train, name="train"), as_records(holdout, name="holdout")
        if len(self._holdout) == 0 or len(self._train) == 0:
            raise InvalidData("holdout", "at least one record in each part", "none", "keep some data aside")
        low, high = arguments.bounds(bounds)
        self.bounds = exactly(low), exactly(high)
        sensitivity: Any = (self.bounds[1] - self.bounds[0]) / len(self._holdout)  # an exact rational
        self.mechanism = SparseVector(sensitivity, epsilon, limit, numeric=True)
        self._session = self.mechanism.start(threshold, source=source)

    @property
    def guarantee(self) -> PureDP:
        """Return the guarantee of all answers together for the people in the holdout."""
        return self._session.guarantee

    @property
    def event(self) -> Pure:
        """Return the event of all answers together for accountants."""
        return self.mechanism.event

    @property
    def holdout_size(self) -> int:
        """Return the number of held-out records, which is public."""
        return len(self._holdout)

    def constructor_arguments(self) -> dict[str, Any]:
        """Return the arguments with which the object was built, data included; never release them.

        The auditor builds another object from them to compare.
        """
        return {
            "train": self._train,
            "holdout": self._holdout,
            "bounds": self.bounds,
            "epsilon": self.mechanism.epsilon,
            "limit": self.mechanism.limit,
            **{name: self._session.constructor_arguments()[name] for name in ("threshold", "source")},
        }

    @property
    def left(self) -> int:
        """Return how many more answers may come from the holdout."""
        return self.mechanism.limit - self._session.above

    def ask(self, question: Question) -> HoldoutAnswer:
        """Return the mean of ``question`` over the records, from the training data where that generalizes."""
        with silenced():
            values = [value for value in _answers(question, self._train) if value is not None]
            fails = len(values) < len(self._train)
            held_out = [] if fails else self._held_out(question)
        if fails:
            raise InvalidData(
                "question",
                "one number for each record",
                "an error or something else",
                "return an array of one number, for any record",
            )
        train, held = self._mean(values), self._mean(held_out)
        answer = self._session.ask(abs(train - held), answer=held)
        return HoldoutAnswer(float(train), False) if answer is False else HoldoutAnswer(float(answer), True)

    def _held_out(self, question: Question) -> list[float]:
        """Return the question's value on each held-out record; NaN where it has none."""
        return [math.nan if answer is None else answer for answer in _answers(question, self._holdout)]

    def _mean(self, values: list[float]) -> Fraction:
        """Return the exact mean of values clipped to the bounds."""
        low, high = self.bounds
        return sum((_clipped(value, low, high) for value in values), Fraction(0)) / len(values)


def _answers(question: Question, records: NDArray[Any]) -> list[float | None]:
    """Return the question's value on each record; None where it is no single number."""

    def one(record: NDArray[Any]) -> float | None:
        """Return the question's value on one record; None if it is no array of one number."""
        value = np.asarray(question(record), dtype=np.float64)
        return float(value[0]) if value.shape == (1,) else None

    return [outcome(one, records[i : i + 1].copy()) for i in range(len(records))]


def _clipped(value: float, low: Fraction, high: Fraction) -> Fraction:
    """Clip a value to the bounds; NaN becomes the lower one, since no record may decide between an answer and
    an error."""
    if value >= high:
        return high
    return Fraction(value) if value > low else low
