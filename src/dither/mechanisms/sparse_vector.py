"""The sparse vector technique: many questions, paid only for the answers above a threshold."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dither import arguments
from dither.accounting import Pure
from dither.budget_hooks import covered, observed, starts_session
from dither.errors import InvalidArgument, WrongType
from dither.exact import exactly, up
from dither.guarantees import PureDP
from dither.mechanisms.laplace import Laplace
from dither.mechanisms.pictures import Pictured
from dither.mechanisms.values import scalar
from dither.randomness import Exponential, Source, Variate, mark, resolve
from dither.stateful import Stateful

_LAPLACE = Exponential(symmetric=True)
_MAX_LIMIT = 10**15
_FAR = Fraction(2) ** 1000


@dataclass(frozen=True)
class SparseVector(Pictured):
    """Ask any number of questions; learn which answers exceed a threshold, until ``limit`` of them did.

    *Statement.* If each question has this sensitivity, whatever the answers before it, the whole session is
    epsilon-DP: the threshold gets ``Lap(s/e1)`` once, each question ``Lap(2 c s/e2)`` (``Lap(c s/e2)`` if all
    questions move in the same direction between neighbors), c the limit, and, ``numeric=True``, each answer
    above a fresh ``Lap(c s/e3)``; ``e1 + e2 + e3 = epsilon``.

    *Why.* Shift the threshold's noise by s: every answer below stays below on the neighbor, for free, at a
    cost of e1 in all; each answer above is shifted by 2s at a cost of e2/c (Dwork and Roth 2014, Algorithm 2;
    Lyu, Su and Li 2017, Algorithm 7, who also list the variants that are not private). The split e1 : e2 = 1 :
    (2c)^(2/3), or c^(2/3), makes the variance of the comparison smallest.

    The comparison is of ideal real numbers: the noise is drawn bit by bit until it is decided.

    Examples
    --------
    >>> session = SparseVector(sensitivity=1, epsilon=1, limit=1).start(threshold=1000)
    >>> session.ask(0), session.ask(5000), session.done
    (False, True, True)
    """

    sensitivity: float
    epsilon: float
    limit: int = 1
    numeric: bool = False
    monotone: bool = False
    threshold_scale: float = field(init=False, repr=False, compare=False)
    """The scale of the noise on the threshold."""
    scale: float = field(init=False, repr=False, compare=False)
    """The scale of the noise on each question."""
    answer: Laplace | None = field(init=False, repr=False, compare=False)
    """The mechanism of the numeric answers."""

    def __post_init__(self) -> None:
        """Check the parameters and divide epsilon among the threshold, the comparisons and the numeric answers.

        Numeric answers get a third; threshold and comparisons share the rest as 1 : (2c)^(2/3), see the class.
        """
        part, total, c = (
            arguments.sensitivity(self.sensitivity),
            arguments.epsilon(self.epsilon),
            arguments.whole(self.limit, "limit"),
        )
        for name, flag in (("numeric", self.numeric), ("monotone", self.monotone)):
            if not isinstance(flag, bool):
                raise WrongType(name, "True or False", type(flag).__name__, "leave it out if unsure")
        if c > _MAX_LIMIT:
            raise InvalidArgument("limit", f"at most {_MAX_LIMIT}", "more", "ask for fewer answers")
        for_answers = total / 3 if self.numeric else Fraction(0)
        weight = Fraction(float(c if self.monotone else 2 * c) ** (2 / 3))
        first = (total - for_answers) / (1 + weight)
        rest = total - for_answers - first
        object.__setattr__(self, "threshold_scale", up(part / first))
        object.__setattr__(self, "scale", up((1 if self.monotone else 2) * c * part / rest))
        exact: Any = (part, for_answers / c)  # rationals, which say more than the floats of the annotation
        object.__setattr__(self, "answer", Laplace(*exact) if self.numeric else None)

    @property
    def guarantee(self) -> PureDP:
        """Return epsilon-DP for the whole session."""
        return PureDP(self.epsilon)

    @property
    def event(self) -> Pure:
        """Return the event of the whole session for accountants, which know only that it is epsilon-DP."""
        return Pure(arguments.epsilon(self.epsilon))

    @starts_session(cost="self")
    def start(self, threshold: float, *, source: Source | None = None) -> SparseVectorSession:
        """Start a session, which costs the guarantee once.

        >>> SparseVector(sensitivity=1, epsilon=1).start(threshold=10).asked
        0
        """
        return covered(SparseVectorSession)(self, exactly(threshold, "threshold"), resolve(source))

    def error(self, questions: int, confidence: float = 0.95) -> float:
        """Return a bound on the error of all comparisons of a session with this many questions, with this confidence.

        With the bound a, no answer above threshold + a is called below, and none below threshold - a is called above.

        All noises are within their logarithmic limits together: half the tail to the threshold, half to the
        questions.

        >>> SparseVector(sensitivity=1, epsilon=1).error(100) > 10
        True
        """
        tail = 1 - arguments.confidence(confidence)
        z_threshold, _ = _LAPLACE.quantile_one(tail / 2)
        z_questions, _ = _LAPLACE.quantile_one(tail / 2 / arguments.whole(questions, "questions"))
        return self.threshold_scale * z_threshold + self.scale * z_questions


class SparseVectorSession(Stateful):
    """A running session of :class:`SparseVector`; it cannot be copied, pickled or used by a forked process.

    Started by :meth:`SparseVector.start`. Where a ledger charges for releases, constructing one is what it charges for.

    >>> session = SparseVector(sensitivity=1, epsilon=1).start(threshold=1000)
    >>> session.ask(0)
    False
    """

    mechanism: SparseVector
    """The mechanism that the session belongs to."""
    threshold: Fraction
    """The public threshold, without its noise."""

    @starts_session(cost="mechanism")
    def __init__(self, mechanism: SparseVector, threshold: Fraction, source: Source) -> None:
        """Start a session of ``mechanism`` at ``threshold``: draw the noise of the threshold from ``source``.

        ``asked`` counts the questions and ``above`` those answered as above the threshold. The lock lets threads ask
        one after another.
        """
        self.mechanism, self.threshold, self._source = mechanism, threshold, source
        self._noise = Variate(_LAPLACE, source.word(), source)
        self._lock = threading.Lock()
        self.asked = 0
        self.above = 0

    @property
    def done(self) -> bool:
        """Return whether the limit of answers above the threshold is used up."""
        return self.above >= self.mechanism.limit

    @property
    def guarantee(self) -> PureDP:
        """Return the guarantee of the whole session, for any number of questions."""
        return self.mechanism.guarantee

    def constructor_arguments(self) -> dict[str, Any]:
        """Return the arguments with which the session was built.

        The auditor builds another session from them to compare.
        """
        return {"mechanism": self.mechanism, "threshold": self.threshold, "source": self._source}

    @observed
    def ask(self, value: float | Fraction, *, answer: float | Fraction | None = None) -> bool | float:
        """Return False if ``value`` is below the noisy threshold; otherwise True or, in a numeric session, a noisy
        number.

        That number is of ``value`` itself, or of ``answer``, another number of the same sensitivity.

        >>> SparseVector(sensitivity=1, epsilon=1, numeric=True).start(threshold=0).ask(10**6) > 10**5
        True
        """
        number = scalar(value)
        shown = number if answer is None else scalar(answer)
        if number is None or shown is None:
            raise InvalidArgument("value", "a number", type(value).__name__, "ask for one number at a time")
        with self._lock:  # two threads that ask at once must not both be the last
            if self.done:
                raise InvalidArgument(
                    "ask",
                    f"at most {self.mechanism.limit} answer(s) above the threshold in a session",
                    "a question after them",
                    "start another session, at its cost",
                )
            self.asked += 1
            if not self._exceeds(Fraction(number)):
                return False
            self.above += 1
        numeric = self.mechanism.answer
        return mark(True, self._source) if numeric is None else covered(numeric.release)(shown, source=self._source)

    def _exceeds(self, value: Fraction) -> bool:
        """Return whether value + question noise >= threshold + threshold noise, for the ideal real noises.

        Floats decide where they can; otherwise both noises are enclosed until the intervals separate.
        """
        question_noise, threshold_noise = Variate(_LAPLACE, self._source.word(), self._source), self._noise
        gap = value - self.threshold
        scale, threshold_scale = self.mechanism.scale, self.mechanism.threshold_scale
        near = float(min(max(gap, -_FAR), _FAR))  # farther away no noise that floats hold can matter
        guess = near + scale * question_noise.approximate() - threshold_scale * threshold_noise.approximate()
        if abs(guess) > (scale + threshold_scale) * 2.0**-36 + abs(near) * 2.0**-50:  # false for NaN
            return guess > 0
        while True:
            low, high = question_noise.enclose()
            first, last = threshold_noise.enclose()
            if gap + Fraction(scale) * low - Fraction(threshold_scale) * last > 0:
                return True
            if gap + Fraction(scale) * high - Fraction(threshold_scale) * first < 0:
                return False
            question_noise.extend()
            threshold_noise.extend()
