"""The computation behind each claim of ``dither.course``, and what the computations need.

A computation says two things besides its figures: whether the claim is true *as stated* in the case computed, and,
where we change it or add a condition, whether it is then true. The verdict must agree with both, so a computation
that comes out otherwise refutes our verdict.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dither.course.documents import Claim

Counts = tuple[int, ...]


@dataclass(frozen=True)
class Computed:
    """The figures of a computation and what they say about the claim, as stated and as corrected."""

    figures: str
    stated: bool | None
    """None where the computation cannot tell: the claim is open."""
    corrected: bool | None = None


@dataclass(frozen=True)
class Checked:
    """A claim with its computation."""

    claim: Claim
    compute: Callable[[], Computed]

    @cache  # noqa: B019  (the page and the tests share it; there are as many as rows)
    def figures(self) -> str:
        """Run the computation, hold it against the verdict, return its figures."""
        result = self.compute()
        seen = (
            None if result.stated is None else bool(result.stated),
            None if result.corrected is None else bool(result.corrected),
        )
        wanted = {"holds": (True, None), "open": (None, None)}.get(self.claim.verdict, (False, True))
        assert seen == wanted, f"{self.claim.place}: {self.claim.verdict}, but computed {seen}: {result.figures}"
        return result.figures


COMPUTATIONS: dict[tuple[int, str], Callable[[], Computed]] = {}
"""By document and place."""


@dataclass(frozen=True)
class Computing:
    """The computations of one document; a decorator that takes the place of a claim."""

    document: int

    def __call__(self, place: str) -> Callable[[Any], Any]:
        def add(compute: Callable[[], Computed]) -> Callable[[], Computed]:
            known = COMPUTATIONS.setdefault((self.document, place), compute)
            assert known.__code__ == compute.__code__, f"{place} has two computations"  # pytest loads modules twice
            return compute

        return add


def close(a: float, b: float, relative: float = 1e-9) -> bool:
    return math.isclose(a, b, rel_tol=relative, abs_tol=1e-12)


def tables(records: int, categories: int) -> Iterator[Counts]:
    """All tables of counts of so many records in so many categories."""
    for cut in itertools.combinations(range(records + categories - 1), categories - 1):
        yield tuple(b - a - 1 for a, b in itertools.pairwise((-1, *cut, records + categories - 1)))


def added(records: int, categories: int) -> Iterator[tuple[Counts, Counts]]:
    """All pairs of tables, of up to so many records, the second with one record more."""
    for n in range(records + 1):
        for x in tables(n, categories):
            for i in range(categories):
                yield x, tuple(c + (j == i) for j, c in enumerate(x))


def replaced(records: int, categories: int) -> Iterator[tuple[Counts, Counts]]:
    """All pairs of tables of exactly so many records that differ in one of them."""
    for x in tables(records, categories):
        for i, k in itertools.permutations(range(categories), 2):
            if x[k]:
                yield x, tuple(c + (j == i) - (j == k) for j, c in enumerate(x))


def worst_loss(law: Callable[[Any], Sequence[float] | NDArray[Any]], pairs: Iterable[tuple[Any, Any]]) -> float:
    """The largest absolute logarithm of a ratio of probabilities, over all pairs and outputs."""

    @cache
    def logs(x: Any) -> NDArray[np.float64]:
        return np.asarray(np.log(np.asarray(law(x), dtype=np.float64)))

    return max(float(np.abs(logs(x) - logs(y)).max()) for x, y in pairs)


def neighbors(values: Sequence[float], n: int) -> Iterator[tuple[tuple[float, ...], tuple[float, ...]]]:
    """All pairs of data sets of n records with these values that differ in the first record (order is irrelevant)."""
    for rest in itertools.combinations_with_replacement(values, n - 1):
        for a, b in itertools.combinations(values, 2):
            yield (a, *rest), (b, *rest)


def sensitivity(f: Callable[[tuple[float, ...]], float], values: Sequence[float], n: int) -> float:
    """The largest change of f when one of n records with these values is replaced, by enumeration."""
    return max(abs(float(f(x)) - float(f(y))) for x, y in neighbors(values, n))


def gaussian_delta(epsilon: float, ratio: float) -> float:
    """delta(epsilon) of Gaussian noise with sigma = ratio * sensitivity (Balle and Wang 2018), in floats."""
    near, far = 1 / (2 * ratio) - epsilon * ratio, -1 / (2 * ratio) - epsilon * ratio
    return float(ndtr(near) - math.exp(epsilon) * ndtr(far))


def softmax(scores: Sequence[float] | NDArray[Any], rate: float) -> NDArray[np.float64]:
    """The exponential mechanism, written down without the library."""
    exponents = rate * np.asarray(scores, dtype=np.float64)
    weights = np.exp(exponents - exponents.max())
    return np.asarray(weights / weights.sum())
