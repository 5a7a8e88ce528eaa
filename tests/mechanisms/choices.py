"""Exact laws of the mechanisms that choose, in mpmath, and small datasets with all their neighbors."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
from divergence import number
from numpy.typing import NDArray

from dither import AddRemove, ReplaceOne

Counts = tuple[int, ...]


def exponents(scores: Any, rate: Fraction) -> list[Any]:
    """rate * (score - largest), exactly; None for -inf."""
    exact = [None if score == -np.inf else Fraction(score) for score in scores]
    top = max(score for score in exact if score is not None)
    return [None if score is None else number((score - top) * rate) for score in exact]


def softmax(scores: Any, rate: Fraction) -> list[Any]:
    weights = [mp.mpf(0) if x is None else mp.exp(x) for x in exponents(scores, rate)]
    total = mp.fsum(weights)
    return [w / total for w in weights]


def permute_and_flip(scores: Any, rate: Fraction) -> list[Any]:
    """p_i times the integral of the product over j != i of (1 - p_j t): polynomials, multiplied out."""
    p = [mp.mpf(0) if x is None else mp.exp(x) for x in exponents(scores, rate)]
    result = []
    for i, item in enumerate(p):
        product = [mp.mpf(1)]
        for j, other in enumerate(p):
            if j != i:
                shifted = [mp.mpf(0), *(-other * c for c in product)]
                product = [a + b for a, b in itertools.zip_longest(product, shifted, fillvalue=mp.mpf(0))]
        result.append(item * mp.fsum(c / (k + 1) for k, c in enumerate(product)))
    return result


def laplace_winner(scores: Any, rate: Fraction) -> list[Any]:
    """P(i has the largest score + Laplace noise): between two scores the integrand is a sum of exponentials."""
    centers = exponents(scores, rate)
    knots = sorted({c for c in centers if c is not None})

    def times(poly: dict[int, Any], terms: dict[int, Any]) -> dict[int, Any]:
        out: dict[int, Any] = {}
        for (a, x), (b, y) in itertools.product(poly.items(), terms.items()):
            out[a + b] = out.get(a + b, mp.mpf(0)) + x * y
        return out

    def integral(poly: dict[int, Any], low: Any, high: Any) -> Any:
        total = mp.mpf(0)
        for a, x in poly.items():
            if a == 0:
                total += x * (high - low)
            else:
                ends = [mp.mpf(0) if mp.isinf(z) else mp.exp(a * z) for z in (high, low)]
                total += x * (ends[0] - ends[1]) / a
        return total

    result = []
    half = mp.mpf(1) / 2
    for i, item in enumerate(centers):
        total = mp.mpf(0)
        for low, high in itertools.pairwise([-mp.inf, *knots, mp.inf]) if item is not None else ():
            middle = high - 1 if mp.isinf(low) else low + 1 if mp.isinf(high) else (low + high) / 2
            density = {1: half * mp.exp(-item)} if middle < item else {-1: half * mp.exp(item)}
            for j, c in enumerate(centers):
                if j != i and c is not None:
                    below = {1: half * mp.exp(-c)} if middle < c else {0: mp.mpf(1), -1: -half * mp.exp(c)}
                    density = times(density, below)
            total += integral({a: x for a, x in density.items() if x != 0}, low, high)
        result.append(total)
    return result


LAWS = {"gumbel": softmax, "exponential": permute_and_flip, "laplace": laplace_winner}


def datasets(records: int, categories: int) -> Iterator[Counts]:
    for cut in itertools.combinations(range(records + categories - 1), categories - 1):
        ends = (-1, *cut, records + categories - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(ends))


def neighboring_counts(neighbors: Any, records: int, categories: int) -> Iterator[tuple[Counts, Counts]]:
    """All pairs of tables of so many records (or one more) in so many categories that differ in one person."""
    for n in range(records + 1):
        for x in datasets(n, categories):
            for i in range(categories):
                more = tuple(c + (j == i) for j, c in enumerate(x))
                if neighbors is AddRemove:
                    yield x, more
                    continue
                for k in range(categories):
                    if k != i and x[k] > 0:
                        yield x, tuple(c - (j == k) for j, c in enumerate(more))


def worst_loss(law: Any, rate: Fraction, pairs: Iterator[tuple[Any, Any]]) -> Any:
    """The largest |ln of a ratio of probabilities| over all pairs and outputs."""
    seen: dict[Any, list[Any]] = {}

    def of(x: Any) -> list[Any]:
        if x not in seen:
            seen[x] = law(x, rate)
        return seen[x]

    return max(abs(mp.log(a / b)) for x, y in pairs for a, b in zip(of(x), of(y), strict=True))


def frequencies(draws: list[int], size: int) -> NDArray[np.int64]:
    return np.bincount(np.asarray(draws, dtype=np.int64), minlength=size)


__all__ = ["LAWS", "AddRemove", "ReplaceOne", "datasets", "frequencies", "neighboring_counts", "worst_loss"]
