"""Randomized response: the category of each person, reported privately."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.accounting import ResponseReport
from dither.budget_hooks import spends
from dither.comparison import ComparedByValue
from dither.errors import InvalidArgument, InvalidData, WrongType
from dither.exact import Enclosure, divide, exp_neg, up
from dither.exact.search import smallest_float
from dither.guarantees import PureDP
from dither.mechanisms.additive import plain_value
from dither.mechanisms.pictures import Pictured
from dither.randomness import Source, mark, resolve, trial, trials, uniform_integer, uniform_integers
from dither.randomness.source import NOTICE
from dither.validation import as_label, as_values

_BITS = 80
_MAX_CATEGORIES = 1 << 62


@dataclass(frozen=True, eq=False)
class Frequencies(ComparedByValue):
    """Estimated shares of the categories, with their standard errors; together they are unbiased and add up to 1.

    >>> RandomizedResponse(epsilon=50).estimate([0, 0, 1, 1]).shares
    array([0.5, 0.5])
    """

    shares: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    responses: int

    def error(self, confidence: float = 0.95) -> NDArray[np.float64]:
        """Return half-widths of normal confidence intervals for the shares among the people asked.

        >>> RandomizedResponse(epsilon=1).estimate([0, 1] * 500).error().round(2)
        array([0.07, 0.07])
        """
        from statistics import NormalDist

        return self.standard_error * NormalDist().inv_cdf((1 + arguments.confidence(confidence)) / 2)


@dataclass(frozen=True)
class RandomizedResponse(Pictured):
    """Report one's category with probability p = e^epsilon / (e^epsilon + k - 1), otherwise one of the other k
    - 1 at random.

    *Statement.* Each report is epsilon-DP for the person who gives it, whatever that person's category is
    replaced by (Warner 1965; Kairouz, Oh and Viswanath 2014).

    *Why.* A report has probability p or (1 - p)/(k - 1), and their ratio is e^epsilon; for two categories
    epsilon = ln(p / (1 - p)). Analyzed as an exponential mechanism it would cost twice that. What is none
    of the categories is reported as each of them with probability 1/k, which lies between the two.

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
        """Check epsilon and the categories: a number of at least 2, or hashable labels that all differ."""
        arguments.epsilon(self.epsilon)
        object.__setattr__(self, "epsilon", plain_value(self.epsilon))
        if isinstance(self.categories, (Sequence, np.ndarray)) and not isinstance(self.categories, (str, bytes)):
            labels = plain_value(self.categories if isinstance(self.categories, np.ndarray) else list(self.categories))
            try:
                different = len(set(labels))
            except TypeError:
                raise WrongType(
                    "categories", "hashable labels", "a label that is not", "name categories by strings or ints"
                ) from None
            if different != len(labels):
                raise InvalidArgument("categories", "labels that differ", "a label twice", "name each category once")
            object.__setattr__(self, "categories", labels)
        else:
            object.__setattr__(self, "categories", arguments.whole(self.categories, "categories", 2))
        k = self.category_count
        if k > _MAX_CATEGORIES:
            raise InvalidArgument("categories", "at most 2**62", k, "group the categories")
        if k < 2:
            raise InvalidArgument("categories", "at least two", k, "name two categories or more")

    @property
    def category_count(self) -> int:
        """Return the number k of categories."""
        return self.categories if isinstance(self.categories, int) else len(self.categories)

    def truth_probability(self, bits: int) -> Enclosure:
        """Enclose the probability of reporting the truth, p = 1 / (1 + (k - 1) exp(-epsilon)), times ``2**bits``.

        >>> low, high = RandomizedResponse(epsilon=1).truth_probability(60)
        >>> round(low / 2**60, 6), high - low < 10
        (0.731059, True)
        """
        low, high = exp_neg(arguments.epsilon(self.epsilon), bits)
        one, others = 1 << bits, self.category_count - 1
        return divide((one, one), (one + others * low, one + others * high), bits)

    @property
    def guarantee(self) -> PureDP:
        """Return epsilon-DP for each person."""
        return PureDP(self.epsilon)

    @property
    def event(self) -> ResponseReport:
        """Return the event of one person's report for accountants."""
        return ResponseReport(arguments.epsilon(self.epsilon), self.category_count)

    @property
    def probability(self) -> float:
        """Return the probability p of reporting the truth."""
        return 1 / (1 + (self.category_count - 1) * math.exp(-float(self.epsilon)))

    @property
    def scale(self) -> float:
        """Return the factor by which an observed share is stretched to undo the noise.

        It is 1 / (p - (1 - p)/(k - 1)), which is 1 / (p (1 - exp(-epsilon))).
        """
        return 1 / (self.probability * -math.expm1(-float(self.epsilon)))

    @property
    def variance(self) -> float:
        """Return the variance that one report adds to the estimate of a share that is 0: q (1 - q) scale^2, q = (1 -
        p)/(k - 1)."""
        q = (1 - self.probability) / (self.category_count - 1)
        return q * (1 - q) * self.scale * self.scale

    def error(self, confidence: float = 0.95, *, people: int) -> float:
        """Return a half-width for every estimated share, whatever the truth, by Hoeffding's inequality.

        >>> round(RandomizedResponse(epsilon=1).error(people=10_000), 4)
        0.0294
        """
        tail = 1 - arguments.confidence(confidence)
        return self.scale * math.sqrt(math.log(2 / tail) / (2 * arguments.whole(people, "people")))

    @classmethod
    def for_error(
        cls, error: float, *, people: int, categories: int | Sequence[Any] = 2, confidence: float = 0.95
    ) -> RandomizedResponse:
        """Return the mechanism with the smallest epsilon for which every share is within ``error``.

        ``people`` is the number of reports, ``categories`` is that of the class, and ``confidence`` the probability
        with which all estimated shares are that near.

        >>> RandomizedResponse.for_error(0.02, people=100_000).error(people=100_000) <= 0.02
        True
        """
        width = arguments.positive(error, "error")

        def fits(epsilon: float) -> bool:
            """Return whether the mechanism at this epsilon stays within the error."""
            return cls(epsilon, categories).error(confidence, people=people) <= width

        if not fits(700.0):
            raise InvalidArgument(
                "error",
                "an error that this number of people allows",
                error,
                "ask more people, or accept a larger error",
            )
        return cls(smallest_float(fits, 1e-9, 700.0), categories)

    def privacy_curve(self, epsilon: float) -> float:
        """Return the smallest delta for which a report is (epsilon, delta)-DP: ``p - exp(epsilon) (1 - p)/(k - 1)``,
        rounded up.

        >>> RandomizedResponse(epsilon=1).privacy_curve(1)
        0.0
        """
        exact_epsilon, own_epsilon = arguments.epsilon_or_zero(epsilon), arguments.epsilon(self.epsilon)
        if exact_epsilon >= own_epsilon:
            return 0.0
        one = 1 << _BITS
        # (1 - p)/(k - 1) = p exp(-own)
        gap = 1 - Fraction(exp_neg(own_epsilon - exact_epsilon, _BITS)[0], one)
        return up(Fraction(self.truth_probability(_BITS)[1], one) * gap)

    @overload
    def release(self, value: int, *, source: Source | None = None) -> int: ...
    @overload
    def release(self, value: str, *, source: Source | None = None) -> str: ...
    @overload
    def release(self, value: NDArray[Any], *, source: Source | None = None) -> NDArray[Any]: ...
    @overload
    def release(
        self, value: list[int] | list[bool] | tuple[int, ...], *, source: Source | None = None
    ) -> list[int]: ...
    @overload
    def release(self, value: list[str] | tuple[str, ...], *, source: Source | None = None) -> list[str]: ...
    @overload
    def release(self, value: Any, *, source: Source | None = None) -> Any: ...
    @spends
    def release(self, value: Any, *, source: Source | None = None) -> Any:
        """Return a report for one category, or for each of a list, an array or a Series of them.

        ``value`` is the category or the column, which is returned in its own container, and ``source`` the randomness,
        by default the operating system's. Reports are labels where labels were named, and otherwise integers, or
        booleans for a column that is declared to hold booleans. What is none of the categories is reported as a random
        one: an error would tell that it was there.
        """
        resolved = resolve(source)
        if type(value) in (int, bool, str):  # the usual ones, which need no closer look
            return mark(self._report(value, resolved), resolved)
        if isinstance(value, (dict, set, frozenset)):
            raise WrongType("value", "a category, or a column of them", type(value).__name__, "pass a list")
        dimensions = 1 if isinstance(value, (list, tuple)) else getattr(value, "ndim", int(hasattr(value, "to_numpy")))
        if dimensions == 0:
            return mark(self._report(value.item() if isinstance(value, np.ndarray) else value, resolved), resolved)
        if dimensions != 1:
            raise InvalidArgument("value", "one dimension", f"{dimensions} dimensions", "pass one column")
        if len(value) == 0:
            raise InvalidArgument("value", "at least one report", "none", "pass at least one category")
        booleans = str(getattr(value, "dtype", "")).lower().startswith("bool") and isinstance(self.categories, int)
        k = self.category_count
        if booleans and k != 2:
            raise WrongType("value", f"one of {k} categories", "a column of booleans", "convert it")
        reports = self._reports(value, resolved)
        if isinstance(value, (list, tuple)):
            return mark(reports, resolved)
        if booleans:
            reports = [bool(report) for report in reports]
        if isinstance(value, np.ndarray):
            return mark(np.array(reports, dtype=self._holding(value.dtype)), resolved)
        if not hasattr(value, "name"):
            return mark(reports, resolved)
        name = value.name if resolved.private else f"{value.name} ({NOTICE})"
        return (
            type(value)(reports, index=value.index, name=name)
            if hasattr(value, "index")
            else type(value)(name, reports)
        )

    def estimate(self, responses: Any) -> Frequencies:
        """Estimate unbiased shares of the categories among the people who answered, from their reports."""
        if not hasattr(responses, "__iter__") or isinstance(responses, (str, bytes)):
            raise WrongType("responses", "reports", type(responses).__name__, "pass a list of reports")
        codes, k = self._encode(responses), self.category_count
        if codes.size == 0:
            raise InvalidData("responses", "at least one", "none", "collect reports first")
        if bool(np.any(codes < 0)):
            raise InvalidData(
                "responses", f"the {k} categories", "a report that is none of them", "pass reports, as released"
            )
        observed = np.bincount(codes, minlength=k) / codes.size
        q = (1 - self.probability) / (k - 1)
        deviation = np.sqrt(observed * (1 - observed) / codes.size)
        return Frequencies((observed - q) * self.scale, deviation * self.scale, int(codes.size))

    def _encode(self, labels: Any) -> NDArray[np.int64]:
        """Return the index of each label's category, and -1 for values that are no category."""
        k = self.category_count
        if isinstance(labels, np.ndarray) and labels.dtype.kind in "biu" and isinstance(self.categories, int):
            integer_codes = np.full(labels.shape, -1, dtype=np.int64)  # -1 does not fit into an unsigned type
            known = (labels >= 0) & (labels < k)
            integer_codes[known] = labels[known]
            return integer_codes
        values = as_values(labels, "label", name="value").values.tolist()
        if isinstance(self.categories, int):
            kinds = (int, bool) if k == 2 else (int,)
            codes = [int(label) if type(label) in kinds and 0 <= label < k else -1 for label in values]
        else:
            codes = [self._index.get(label, -1) for label in values]
        return np.array(codes, dtype=np.int64)

    @cached_property
    def _index(self) -> dict[Any, int]:
        """Return the index of each label; empty where categories are numbers."""
        return {} if isinstance(self.categories, int) else {label: i for i, label in enumerate(self.categories)}

    def _holding(self, dtype: Any) -> Any:
        """Return an array type that can represent every report, whatever categories were in the data."""
        if not isinstance(self.categories, int):
            return np.result_type(dtype, np.array(self.categories).dtype)
        holds = dtype.kind in "bO" or (dtype.kind in "iu" and self.category_count - 1 <= np.iinfo(dtype).max)
        return dtype if holds else np.dtype(np.int64)

    def _encode_one(self, value: Any) -> int:
        """Return the index of one value's category as :meth:`_encode` does, without arrays."""
        k, kind = self.categories, type(value)
        label = value if kind is int or kind is str else as_label(value)
        if not isinstance(k, int):
            return self._index.get(label, -1)
        is_number = type(label) is int or (k == 2 and type(label) is bool)
        return int(label) if is_number and 0 <= label < k else -1

    def _report(self, value: Any, source: Source) -> Any:
        """Draw the report for one value, as :meth:`_reports` draws many."""
        k, code = self.category_count, self._encode_one(value)
        if code < 0:
            code = uniform_integer(k, source)
        truthful = trial(self.probability, self.truth_probability, source)
        other = uniform_integer(k - 1, source)
        report = code if truthful else other + (other >= code)
        return report if isinstance(self.categories, int) else self.categories[report]

    def _reports(self, labels: Any, source: Source) -> list[Any]:
        """Draw a report for each label: its category with probability p, otherwise another one, uniformly.

        What is no category is replaced by a uniform one first. Reports are labels if labels were named, else numbers.
        """
        codes = self._encode(labels)
        unknown = np.flatnonzero(codes < 0)
        codes[unknown] = uniform_integers(self.category_count, unknown.size, source).astype(np.int64)
        truthful = trials(self.probability, self.truth_probability, codes.size, source)
        others = uniform_integers(self.category_count - 1, codes.size, source).astype(np.int64)
        others += others >= codes
        reports: list[int] = np.where(truthful, codes, others).tolist()
        return reports if isinstance(self.categories, int) else [self.categories[code] for code in reports]
