"""Randomized response: each person's own answer, privately."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.accounting import ResponseReport
from dither.errors import InvalidArgument, InvalidData, WrongType, message
from dither.exact import Enclosure, divide, exp_neg, up
from dither.guarantees import PureDP
from dither.mechanisms.additive import plain
from dither.randomness import Source, mark, resolve, trial, trials, uniform_integer, uniform_integers
from dither.randomness.seeded import NOTICE
from dither.spending import spends

_BITS = 80
_MOST_CATEGORIES = 1 << 62


@dataclass(frozen=True)
class Frequencies:
    """Estimated shares of the categories, with their standard errors; together they are unbiased and add up to 1.

    >>> RandomizedResponse(epsilon=50).estimate([0, 0, 1, 1]).shares
    array([0.5, 0.5])
    """

    shares: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    responses: int

    def error(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """Half-widths of normal confidence intervals for the shares among the people asked.

        >>> RandomizedResponse(epsilon=1).estimate([0, 1] * 500).error().round(2)
        array([0.07, 0.07])
        """
        from statistics import NormalDist

        return self.standard_error * NormalDist().inv_cdf((1 + arguments.confidence(confidence)) / 2)


@dataclass(frozen=True)
class RandomizedResponse:
    """Report one's category with probability p = e^epsilon / (e^epsilon + k - 1), otherwise one of the other k
    - 1 at random.

    *Statement.* Each report is epsilon-DP for the person who gives it, whatever that person's category is
    replaced by (Warner 1965; Kairouz, Oh and Viswanath 2014).

    *Why.* A report has probability p or (1 - p)/(k - 1), and their ratio is e^epsilon; for two categories
    epsilon = ln(p / (1 - p)). As an instance of the exponential mechanism it would be billed twice that.

    Parameters
    ----------
    epsilon
        The privacy loss of each person's report.
    categories
        Their number, then the values are 0 to categories - 1 (or booleans, for 2); or the list of labels.

    Examples
    --------
    >>> rr = RandomizedResponse(epsilon=math.log(3))
    >>> round(rr.probability, 6)
    0.75
    >>> rr.release(True) in (True, False)
    True
    >>> answers = rr.release([1] * 400 + [0] * 600)
    >>> bool(abs(rr.estimate(answers).shares[1] - 0.4) < 0.4)
    True
    """

    epsilon: float
    categories: int | Sequence[Any] = 2

    def __post_init__(self) -> None:
        arguments.epsilon(self.epsilon)
        object.__setattr__(self, "epsilon", plain(self.epsilon))
        if isinstance(self.categories, (Sequence, np.ndarray)) and not isinstance(self.categories, (str, bytes)):
            labels = plain(self.categories if isinstance(self.categories, np.ndarray) else list(self.categories))
            try:
                different = len(set(labels))
            except TypeError:
                raise WrongType(
                    message("categories", "hashable labels", "one that is not", "name categories by strings or ints")
                ) from None
            if different != len(labels):
                raise InvalidArgument(
                    message("categories", "labels that differ", "a label twice", "name each category once")
                )
            object.__setattr__(self, "categories", labels)
        else:
            object.__setattr__(self, "categories", arguments.whole(self.categories, "categories", 2))
        if self._k > _MOST_CATEGORIES:
            raise InvalidArgument(message("categories", "at most 2**62", self._k, "group the categories"))
        if self._k < 2:
            raise InvalidArgument(message("categories", "at least two", self._k, "name two categories or more"))

    @property
    def _k(self) -> int:
        return self.categories if isinstance(self.categories, int) else len(self.categories)

    def _truth(self, bits: int) -> Enclosure:
        """Enclose p = 1 / (1 + (k - 1) exp(-epsilon))."""
        low, high = exp_neg(arguments.epsilon(self.epsilon), bits)
        one, others = 1 << bits, self._k - 1
        return divide((one, one), (one + others * low, one + others * high), bits)

    @property
    def guarantee(self) -> PureDP:
        """epsilon-DP for each person."""
        return PureDP(self.epsilon)

    @property
    def event(self) -> ResponseReport:
        """For accountants: one person's report."""
        return ResponseReport(arguments.epsilon(self.epsilon), self._k)

    @property
    def probability(self) -> float:
        """The probability p of reporting the truth."""
        return 1 / (1 + (self._k - 1) * math.exp(-float(self.epsilon)))

    @property
    def scale(self) -> float:
        """By how much an observed share is stretched to undo the noise: 1 / (p - (1 - p)/(k - 1)), which is 1 / (p
        (1 - exp(-epsilon))).
        """
        return 1 / (self.probability * -math.expm1(-float(self.epsilon)))

    @property
    def variance(self) -> float:
        """The variance that one person's report adds to the estimate of a share that is 0: q (1 - q) scale^2, q
        = (1 - p)/(k - 1).
        """
        q = (1 - self.probability) / (self._k - 1)
        return q * (1 - q) * self.scale * self.scale

    def error(self, confidence: float = 0.95, *, people: int) -> float:
        """A half-width for every estimated share, whatever the truth, by Hoeffding's inequality.

        >>> round(RandomizedResponse(epsilon=1).error(people=10_000), 4)
        0.0294
        """
        tail = 1 - arguments.confidence(confidence)
        return self.scale * math.sqrt(math.log(2 / tail) / (2 * arguments.whole(people, "people")))

    @classmethod
    def for_error(
        cls, error: float, *, people: int, categories: int | Sequence[Any] = 2, confidence: float = 0.95
    ) -> RandomizedResponse:
        """The smallest epsilon for which every share is within ``error`` with this confidence.

        >>> RandomizedResponse.for_error(0.02, people=100_000).error(people=100_000) <= 0.02
        True
        """
        width = arguments.positive(error, "error")
        low, high = 1e-9, 700.0
        if cls(high, categories).error(confidence, people=people) > width:
            raise InvalidArgument(
                message(
                    "error", "an error that so many people allow", error, "ask more people, or accept a larger error"
                )
            )
        for _ in range(100):
            middle = math.sqrt(low * high)
            fits = cls(middle, categories).error(confidence, people=people) <= width
            low, high = (low, middle) if fits else (middle, high)
        return cls(high, categories)

    def privacy_curve(self, epsilon: float) -> float:
        """The smallest delta for which a report is (epsilon, delta)-DP: ``p - exp(epsilon) (1 - p)/(k - 1)``,
        rounded up.

        >>> RandomizedResponse(epsilon=1).privacy_curve(1)
        0.0
        """
        at, own = arguments.loss(epsilon), arguments.epsilon(self.epsilon)
        if at >= own:
            return 0.0
        one = 1 << _BITS
        # (1 - p)/(k - 1) = p exp(-own)
        return up(Fraction(self._truth(_BITS)[1], one) * (1 - Fraction(exp_neg(own - at, _BITS)[0], one)))

    @spends
    def release(self, value: Any, *, source: Source | None = None) -> Any:
        """A report for one category, or for each of a list, an array or a Series of them."""
        words = resolve(source)
        if hasattr(value, "__len__") and not isinstance(value, (str, bytes)) and np.ndim(value) > 0 and len(value) == 0:
            raise InvalidArgument(message("value", "at least one report", "none", "ask somebody"))
        if isinstance(value, (list, tuple)):
            return mark(self._decode(self._report(self._encode(list(value)), words), bool_out=_all_bool(value)), words)
        if isinstance(value, np.ndarray) and value.ndim > 0:
            if value.ndim != 1:
                raise InvalidArgument(message("value", "one dimension", f"{value.ndim} dimensions", "pass one column"))
            reports = self._report(self._encode(value.tolist()), words)
            answers = self._decode(reports, bool_out=value.dtype == bool)
            return mark(np.array(answers, dtype=self._holding(value.dtype)), words)
        if type(value).__name__ == "Series":
            answers = self._decode(
                self._report(self._encode(value.to_list()), words), bool_out=str(value.dtype).lower().startswith("bool")
            )
            name = value.name if words.private else f"{value.name} ({NOTICE})"
            return (
                type(value)(answers, index=value.index, name=name)
                if hasattr(value, "index")
                else type(value)(name, answers)
            )
        single = value.item() if isinstance(value, (np.generic, np.ndarray)) else value
        code = self._encode_one(single)
        if not trial(self.probability, self._truth, words):
            other = uniform_integer(self._k - 1, words)
            code = other + (other >= code)
        if not isinstance(self.categories, int):
            return mark(self.categories[code], words)
        return mark(bool(code) if isinstance(single, bool) else code, words)

    def estimate(self, responses: Any) -> Frequencies:
        """Unbiased shares of the categories among the people who answered, from their reports."""
        if not hasattr(responses, "__iter__") or isinstance(responses, (str, bytes)):
            raise WrongType(message("responses", "reports", type(responses).__name__, "pass a list of reports"))
        codes = self._encode(responses.tolist() if hasattr(responses, "tolist") else list(responses))
        if codes.size == 0:
            raise InvalidData(message("responses", "at least one", "none", "collect reports first"))
        observed = np.bincount(codes, minlength=self._k) / codes.size
        q = (1 - self.probability) / (self._k - 1)
        deviation = np.sqrt(observed * (1 - observed) / codes.size)
        return Frequencies((observed - q) * self.scale, deviation * self.scale, int(codes.size))

    def _encode_one(self, label: Any) -> int:
        if type(label) is int and isinstance(self.categories, int) and 0 <= label < self.categories:
            return int(label)
        return int(self._encode([label])[0])

    def _encode(self, labels: list[Any]) -> NDArray[np.int64]:
        wrong = message(
            "value",
            f"one of the {self._k} categories",
            "something else",
            "map it to a category, or add one, before the report",
        )
        if isinstance(self.categories, int):
            booleans = self._k == 2
            if not all(isinstance(x, (int, np.integer)) and (booleans or not isinstance(x, bool)) for x in labels):
                raise WrongType(wrong)
            if not all(0 <= label < self._k for label in labels):  # before they meet 64 bits
                raise InvalidData(wrong)
            return np.array(labels, dtype=np.int64)
        index = {label: i for i, label in enumerate(self.categories)}
        try:
            return np.array([index[label] for label in labels], dtype=np.int64)
        except (KeyError, TypeError):
            raise InvalidData(wrong) from None

    def _holding(self, dtype: Any) -> Any:
        """A type that holds every report, whichever categories were in the data."""
        if not isinstance(self.categories, int):
            return np.result_type(dtype, np.array(self.categories).dtype)
        return dtype if dtype.kind in "bO" or self._k - 1 <= np.iinfo(dtype).max else np.dtype(np.int64)

    def _decode(self, codes: NDArray[np.int64], *, bool_out: bool) -> list[Any]:
        if not isinstance(self.categories, int):
            return [self.categories[i] for i in codes.tolist()]
        return [bool(i) for i in codes.tolist()] if bool_out else codes.tolist()

    def _report(self, codes: NDArray[np.int64], source: Source) -> NDArray[np.int64]:
        truthful = trials(self.probability, self._truth, codes.size, source)
        others = uniform_integers(self._k - 1, codes.size, source).astype(np.int64)
        others += others >= codes
        return np.where(truthful, codes, others)


def _all_bool(items: Sequence[Any]) -> bool:
    return len(items) > 0 and all(isinstance(item, bool) for item in items)
