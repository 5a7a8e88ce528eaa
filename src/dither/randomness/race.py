"""The largest of many scores with noise, decided exactly in one pass.

With Gumbel noise this is a race of exponential clocks: clock i rings after ``E_i / w_i``, ``w_i = counts_i *
exp(factor * scores_i)``, and is the first with probability ``w_i / sum(w)``: a draw in proportion to weights that
need never be added up.

Keys ``factor * score + ln(count) + Z`` are computed in floats relative to the fixed part of the k-th best, and
held within 64 of it: noise the floats can hold is between -14 and 14, so a clock farther behind can only be among
the best with a word that is settled exactly. A key held up is no lower bound and one held down no upper bound, and
neither is used as one. What remains is at most 64 in size, so the product, the logarithm of the count and the sums
are good to 2^-45, the noise to 2^-40 (:mod:`dither.randomness.laws`), and a key to ``SLACK``, where scores are only
near their exact values also to their rounding. Clocks within twice that of the k-th best, and those whose word the
float quantile cannot take, are compared by enclosures of their true keys, on as many bits as it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument, message
from dither.exact import Enclosure, log
from dither.randomness.lattice import CHUNK, MAGNITUDE
from dither.randomness.laws import LOW, Exponential, Floats, Gumbel
from dither.randomness.lazy import LazyUniform
from dither.randomness.source import Source, Words

SLACK = 2.0**-38
_WINDOW = 64.0
_TAME = 1e150
_TINY = Fraction(1, 2**500)
_GUMBEL = Gumbel()
_QUIET = np.errstate(over="ignore")  # a score so far behind that it overflows is far behind

Noise = Gumbel | Exponential


class Variate:
    """A standard Gumbel, exponential or Laplace number, known to as many bits as a question about it needed.

    >>> from dither.randomness import SeededSource
    >>> low, high = Variate(Exponential(), 1 << 62, SeededSource(1)).enclose()      # U = 1/2 and a little
    >>> float(low) <= math.log(2) <= float(high)
    True
    """

    __slots__ = ("_negative", "law", "uniform")

    def __init__(self, law: Noise, word: int, source: Source) -> None:
        self.law, self._negative = law, law.symmetric and word > MAGNITUDE
        self.uniform = LazyUniform(word & MAGNITUDE, 63, source)

    def extend(self) -> None:
        """Learn 64 more bits."""
        self.uniform.extend()

    def approximate(self) -> float:
        """A float within 2^-40 of it, or NaN where floats cannot say."""
        u = self.uniform.value / (1 << self.uniform.bits)
        if not LOW <= u <= self.law.high:
            return math.nan
        z, _ = self.law.quantile_one(u)
        return -z if self._negative else z

    def enclose(self) -> tuple[Fraction, Fraction]:
        """Limits that hold whatever bits are still to come."""
        u = self.uniform
        while u.value == 0 or u.value + 1 == 1 << u.bits:
            u.extend()
        # either law's quantile decreases in U
        low, high = self._quantile(u.value + 1, u.bits)[0], self._quantile(u.value, u.bits)[1]
        ends = (-high, -low) if self._negative else (low, high)
        return Fraction(ends[0], 1 << u.bits), Fraction(ends[1], 1 << u.bits)

    def _quantile(self, value: int, bits: int) -> Enclosure:
        """Enclose the quantile at ``value / 2**bits``, times ``2**bits``."""
        if isinstance(self.law, Exponential):
            low, high = log(Fraction(value, 1 << bits), bits)
            return -high, -low
        work = 2 * bits + 16
        low, high = log(1 - Fraction(value, 1 << bits), work)
        return -log(Fraction(-low, 1 << work), bits)[1], -log(Fraction(max(-high, 1), 1 << work), bits)[0]


def first_to_ring(
    scores: Floats,
    source: Source,
    factor: Fraction = Fraction(1),
    counts: NDArray[np.int64] | None = None,
    law: Noise = _GUMBEL,
    exact_score: Callable[[int], Fraction] | None = None,
) -> int:
    """The index of the largest ``factor * score + ln(count) + noise``.

    With Gumbel noise, the default, ``P(i)`` is proportional to ``counts[i] * exp(factor * scores[i])``. A score of
    -inf, or a count of 0, never wins. ``exact_score(i)`` gives a score where the float is only near it.

    >>> from dither.randomness import SeededSource
    >>> first_to_ring(np.array([0.0, 50.0, -np.inf]), SeededSource(1))
    1
    """
    if counts is not None or exact_score is not None or not 0 < scores.size <= CHUNK:
        return largest_keys(scores, 1, source, factor, counts, law, exact_score)[0]
    words = source.words(scores.size)
    result = _clear_winner(scores, words, factor, law)
    return largest_keys(scores, 1, source, factor, law=law, words=words)[0] if result is None else result


@_QUIET
def _clear_winner(scores: Floats, words: Words, factor: Fraction, law: Noise) -> int | None:
    """The winner of a short race, if the floats leave no doubt; the same words are used again if they do.

    The best score is in the race and all words are in the floats' range, so a key that matters is within 28 of it.
    """
    keys: Floats = (words & np.uint64(MAGNITUDE)).view(np.int64) * np.float64(2.0**-63)
    top = scores.max()
    if not (scores.min() > -_TAME and top < _TAME) or keys.min() < LOW or keys.max() > law.high:
        return None
    law.quantile(keys)
    if law.symmetric:
        np.copysign(keys, words.view(np.float64), out=keys)
    keys += (scores - top) * (factor.numerator / factor.denominator)
    winner = int(keys.argmax())
    lead = float(keys[winner])
    keys[winner] = -np.inf
    return winner if lead - float(keys.max()) > 2 * SLACK else None  # false for NaN


@_QUIET
def largest_keys(
    scores: Floats,
    k: int,
    source: Source,
    factor: Fraction = Fraction(1),
    counts: NDArray[np.int64] | None = None,
    law: Noise = _GUMBEL,
    exact_score: Callable[[int], Fraction] | None = None,
    words: Words | None = None,
) -> list[int]:
    """The indices of the k largest ``factor * score + ln(count) + noise``, the largest first; from ``words``,
    if given.

    >>> from dither.randomness import SeededSource
    >>> largest_keys(np.array([0.0, 50.0, 200.0, 100.0]), 2, SeededSource(1))
    [2, 3]
    """
    if counts is not None:
        scores = np.where(counts > 0, scores, -np.inf)
    top = float(scores.max()) if scores.size else math.nan
    if not -math.inf < top < math.inf:
        raise InvalidArgument(
            message("scores", "at least one above -inf, none NaN or +inf", "something else", "pass finite scores")
        )
    weights = None if counts is None else np.log(np.maximum(counts, 1).astype(np.float64))
    middle = top if k == 1 else _kth(scores, k)
    lead = 0.0 if weights is None else _kth(_fixed(scores, middle, factor, weights), k)
    slack = SLACK if exact_score is None else SLACK + float(factor) * abs(middle) * 2.0**-51
    some_never = float(scores.min()) == -math.inf
    chosen: list[tuple[Floats, NDArray[np.int64], Words]] = []
    best = np.full(k, -np.inf)
    for start in range(0, scores.size, CHUNK):
        part = slice(start, start + CHUNK)
        fixed = _fixed(scores[part], middle, factor, None if weights is None else weights[part])
        fixed -= lead
        behind = fixed < -_WINDOW if fixed.min() < -_WINDOW else None
        ahead = fixed > _WINDOW if fixed.max() > _WINDOW else None
        np.clip(fixed, -_WINDOW, _WINDOW, out=fixed)
        if some_never:
            fixed[scores[part] == -np.inf] = -np.inf
        drawn = source.words(fixed.size) if words is None else words[part]
        keys, known = _keys(drawn, fixed, law)
        if behind is not None:
            known = np.where(behind, -np.inf, known)
        if ahead is not None:
            keys = np.where(ahead, np.inf, keys)
        best = np.maximum(best, known.max()) if k == 1 else _largest(np.concatenate([best, _largest(known, k)]), k)
        bar = float(best.min()) - 2 * slack
        if keys.max() >= bar:
            result = np.flatnonzero((keys >= bar) & (keys > -np.inf))
            chosen.append((keys[result], start + result, drawn[result]))
    bar = float(best.min()) - 2 * slack
    left: list[tuple[int, int]] = []
    for keys, places, kept in chosen:
        near = keys >= bar
        left += zip(places[near].tolist(), kept[near].tolist(), strict=True)
    if len(left) == 1 == k:
        return [left[0][0]]
    racing = {}
    for i, word in left:
        score = Fraction(float(scores[i])) if exact_score is None else exact_score(i)
        racing[i] = (factor * score, 1 if counts is None else int(counts[i]), Variate(law, word, source))
    return _ranked(racing, k)


def _kth(values: Floats, k: int) -> float:
    """The k-th largest of the values above -inf, or the smallest of them."""
    largest = _largest(values, k)
    return float(largest[largest > -np.inf].min())


def _fixed(scores: Floats, middle: float, factor: Fraction, weights: Floats | None) -> Floats:
    """``factor * (score - middle)``, plus the logarithm of the count."""
    # a power of two changes sides where the difference would overflow or the factor underflow
    power = 600 if factor < _TINY else 2
    fixed: Floats = scores * 2.0**-power
    fixed -= middle * 2.0**-power
    fixed *= float(factor * 2**power)
    if weights is not None:
        fixed += weights
    return fixed


def _keys(words: Words, fixed: Floats, law: Noise) -> tuple[Floats, Floats]:
    """Keys, and keys that are known: for a word out of the floats' range as large as can be, and -inf."""
    u: Floats = (words & np.uint64(MAGNITUDE)).view(np.int64) * np.float64(2.0**-63)
    small = u < LOW if u.min() < LOW else None
    large = u > law.high if u.max() > law.high else None
    if small is not None:
        u[small] = 0.5
    if large is not None:
        u[large] = law.high  # the quantile decreases
    law.quantile(u)
    if law.symmetric:
        np.copysign(u, words.view(np.float64), out=u)
    u += fixed
    if small is None and large is None:
        return u, u
    known = u.copy()
    if large is not None:
        known[large] = -np.inf
    if small is not None:
        known[small] = -np.inf
        u[small] = np.where(fixed[small] > -np.inf, np.inf, -np.inf)
    return u, known


def _largest(keys: Floats, k: int) -> Floats:
    """The k largest keys, or all of them."""
    if k == 1:
        return keys.max(keepdims=True)  # type: ignore[no-any-return]
    return np.partition(keys, keys.size - k)[keys.size - k :] if keys.size > k else keys


def _ranked(racing: dict[int, tuple[Fraction, int, Variate]], k: int) -> list[int]:
    """The k with the largest keys, in order: enclose, and draw more bits for those that still overlap."""
    ends = {i: _key(*clock) for i, clock in racing.items()}
    order: list[int] = []
    while ends and len(order) < k:
        front = max(low for low, _ in ends.values())
        ahead = [i for i, (_, high) in ends.items() if high >= front]
        if len(ahead) == 1:
            order.append(ahead[0])
            del ends[ahead[0]]
            continue
        for i in ahead:
            racing[i][2].extend()
            ends[i] = _key(*racing[i])
    return order


def _key(rate: Fraction, count: int, noise: Variate) -> tuple[Fraction, Fraction]:
    low, high = noise.enclose()
    bits = 64 + max(low.denominator.bit_length(), high.denominator.bit_length())
    size = log(Fraction(count), bits)
    return rate + low + Fraction(size[0], 1 << bits), rate + high + Fraction(size[1], 1 << bits)
