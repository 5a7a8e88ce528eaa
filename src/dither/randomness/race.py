"""The largest of many scores with noise, decided exactly in one pass.

With Gumbel noise the index of the maximum is that of the smallest of independent exponential variables ``E_i / w_i``,
``w_i = counts_i * exp(factor * scores_i)``: it is i with probability ``w_i / sum(w)``, a draw in proportion to weights
that need never be added up.

*Keys.* A key is ``factor * score + ln(count) + Z``; all of it but Z is its fixed part. Keys are computed in floats
relative to the fixed part of the k-th best, and a fixed part that is more than 64 below it is raised to -64: noise the
floats can hold is between -14 and 28, so such a candidate can only be among the best with a word that is settled
exactly, and its key is not used as a lower bound. Between -64 and 64 the product, the logarithm of the count and the
sums are good to 2^-45, the noise to 2^-40 (:mod:`dither.randomness.laws`), and a key to ``SLACK``, where scores are
only near their exact values also to their rounding. A fixed part above 64 is the result of at most seven operations,
none on a number above 2.5 times as large, so it is good to a relative 2^-48, the rounding of the score included: the
upper bound of such a key is raised by that, and the lower bound lowered. The same is done, by 2^-20, for a word w from
2^24 to 2^44, which leaves U open by a relative 1 / w: ``|dQ / d ln U|`` is at most ``1 / (1 - U)`` for each of the
laws, so Q is known to 2^-23, and its float value at such a U, of at most 28, is off by less than 2^-40. Candidates
whose bounds do not say in which order they are, and those whose word the float quantile cannot take, are compared by
enclosures of their true keys, on as many bits as it needs.

*Filter.* Almost no candidate needs its key. Each of the laws has ``P(Z > t) <= exp(-t)``, or ``P(|Z| > t) <= exp(-t)``
where it is symmetric, and Z falls as U grows, so ``Z >= t`` implies ``U <= exp(-t)``. Let b be the k-th largest key
known so far, F the largest fixed part in a block and s the slack. A candidate of the block with ``Z < t``, ``t = b - 2
s - F``, has a true key below ``F + s + t = b - s``, and k candidates have true keys of at least ``b - s``: it is not
among the k largest. So candidates whose word is above ``exp(-t) * 2^63``, rounded up, are passed over: they cost one
comparison of integers and no logarithm. Where few scores of a block are large, many words are within that threshold
though their own scores are far lower: of these, a candidate with the fixed part ``f < b - 2 s - 14`` and a word above
``exp(-14) * 2^63`` has ``Z < 14`` and is passed over for the same reason. The candidates of the largest scores come
first, which makes b large enough for all others; the words that fall to them again in their blocks are not used.
Nothing else is approximated: what is passed over could not have been among the k largest, whatever the rest of its
bits, so the outcome is that of comparing all true keys.

*Rounding.* F is the fixed part of the block's largest score: products and differences of floats with constants are
monotone, so no fixed part computed in the block is larger. The float t is off by a relative 2^-52 of numbers below 2^11
where ``exp(-t) * 2^63`` is above 2^-900, and ``exp`` by 2^-46 (assumption (A) of :mod:`dither.randomness.laws`); the
threshold is raised by a relative 2^-30 and by 1, which covers both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument
from dither.exact import Enclosure, log
from dither.randomness.lattice import CHUNK, MAGNITUDE
from dither.randomness.laws import LOW, Exponential, Floats, Gumbel
from dither.randomness.source import LazyUniform, Source, Words

SLACK = 2.0**-38
_WINDOW = 64.0
_RELATIVE, _HUGE = 2.0**-48, 1e300
_FEW_BITS, _COARSE = 2.0**-39, 2.0**-20
_RARE = 14.0  # about one word in a million gives more noise than this
_TAME = 1e150
_LOWEST = -1e308
_SHORT = 2048  # up to this number of candidates the floats of all keys take less time than a filter
_FIRST = 128
_BATCH = 256
_MIN_WIDTH = 4
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
        """Draw 64 more bits of the uniform number behind the variable."""
        self.uniform.extend()

    def approximate(self) -> float:
        """Return a float within 2^-40 of the variable, or NaN where floats cannot decide."""
        u = self.uniform.value / (1 << self.uniform.bits)
        if not LOW <= u <= self.law.high:
            return math.nan
        z, _ = self.law.quantile_one(u)
        return -z if self._negative else z

    def enclose(self) -> tuple[Fraction, Fraction]:
        """Enclose the variable, for all values of the bits that were not drawn."""
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


def exponential_race(
    scores: Floats,
    source: Source,
    factor: Fraction = Fraction(1),
    counts: NDArray[np.int64] | None = None,
    law: Noise = _GUMBEL,
    exact_score: Callable[[int], Fraction] | None = None,
) -> int:
    """Return the index of the largest ``factor * score + ln(count) + noise``.

    With Gumbel noise, the default, ``P(i)`` is proportional to ``counts[i] * exp(factor * scores[i])``. A score of
    -inf, or a count of 0, never wins. ``exact_score(i)`` gives a score where the float is only near it.

    >>> from dither.randomness import SeededSource
    >>> exponential_race(np.array([0.0, 50.0, -np.inf]), SeededSource(1))
    1
    """
    if counts is not None or exact_score is not None or not 0 < scores.size <= _SHORT:
        return noisy_top_k(scores, 1, source, factor, counts, law, exact_score)[0]
    words = source.words(scores.size)
    winner = _clear_winner(scores, words, factor, law)
    return noisy_top_k(scores, 1, source, factor, law=law, words=words)[0] if winner is None else winner


@_QUIET
def _clear_winner(scores: Floats, words: Words, factor: Fraction, law: Noise) -> int | None:
    """Return the winner of a short race if floats leave no doubt; otherwise None, and the words are used again.

    A key is ``factor * score + noise``; ``scores`` are the candidates', and the noise is the quantile of ``law`` at
    the uniform numbers in ``words``. The best score is in the race and all words are in the floats' range, so a key
    that matters is within 28 of it. The winner must lead by twice the error of a key.
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
def noisy_top_k(
    scores: Floats,
    k: int,
    source: Source,
    factor: Fraction = Fraction(1),
    counts: NDArray[np.int64] | None = None,
    law: Noise = _GUMBEL,
    exact_score: Callable[[int], Fraction] | None = None,
    words: Words | None = None,
) -> list[int]:
    """Return the indices of the ``k`` largest ``factor * score + ln(count) + noise``, the largest first.

    ``scores`` holds one number for each candidate, ``counts`` how many equal candidates each stands for (None: one),
    and ``law`` is that of the noise. ``exact_score(i)`` gives a score exactly where the float is only near it (None:
    floats are exact). The noise comes from ``source``, for a first selection of candidates from ``words`` if they are
    given. Floats rule out most candidates, and exact arithmetic decides among those too near to each other.

    >>> from dither.randomness import SeededSource
    >>> noisy_top_k(np.array([0.0, 50.0, 200.0, 100.0]), 2, SeededSource(1))
    [2, 3]
    """
    if counts is not None:
        scores = np.where(counts > 0, scores, -np.inf)
    top = float(scores.max()) if scores.size else math.nan
    if not -math.inf < top < math.inf:
        raise InvalidArgument(
            "scores", "at least one above -inf, none NaN or +inf", "NaN, +inf, or -inf alone", "pass finite scores"
        )
    leaders = np.arange(scores.size) if scores.size <= _SHORT else np.sort(_leaders(scores, max(k, _FIRST)))
    fixed = _FixedParts.relative_to_kth(scores, counts, factor, leaders, k)
    slack = SLACK if exact_score is None else SLACK + float(factor) * abs(fixed.reference) * 2.0**-51
    contest = _Contest(fixed, k, slack, law)
    contest.enter(leaders, source.words(leaders.size) if words is None else words)
    contest.evaluate()
    for start in range(0, scores.size if leaders.size < scores.size else 0, CHUNK):
        block = slice(start, min(start + CHUNK, scores.size))
        drawn = source.words(block.stop - start)
        places = _within_reach(drawn, contest.bar - fixed.largest(block), law)
        if places.size:
            indices = places + start
            new = leaders.take(leaders.searchsorted(indices), mode="clip") != indices
            contest.screen(indices[new], drawn[places[new]])
    contest.evaluate()
    order, undecided = contest.result()
    if order:
        return order
    unresolved = {}
    for i, word in undecided:
        score = Fraction(float(scores[i])) if exact_score is None else exact_score(i)
        unresolved[i] = (factor * score, 1 if counts is None else int(counts[i]), Variate(law, word, source))
    return _ranked(unresolved, k)


class _Contest:
    """The candidates that may be among the k largest, and the bar: no candidate with a key below it is among them."""

    def __init__(self, fixed: _FixedParts, k: int, slack: float, law: Noise) -> None:
        """Start without candidates.

        ``fixed`` computes the part of a key that is not noise, ``k`` is how many win, ``slack`` bounds the error of a
        key in floats, and ``law`` is that of the noise. ``_waiting`` holds candidates whose keys are not computed yet.
        """
        self._fixed, self._k, self._slack, self._law = fixed, k, slack, law
        self._waiting: list[tuple[NDArray[np.int64], Words]] = []
        self._entries: list[tuple[Floats, Floats, NDArray[np.int64], Words]] = []
        self._best = np.full(k, -np.inf)
        self.bar = -math.inf

    def screen(self, indices: NDArray[np.int64], words: Words) -> None:
        """Add those of the candidates that can reach the bar by their own scores and words."""
        possible = _possible(words, self._fixed.at(indices), self.bar, self._law)
        self.enter(indices[possible], words[possible])

    def enter(self, indices: NDArray[np.int64], words: Words) -> None:
        """Add candidates; their keys are computed once some hundreds have been added."""
        self._waiting.append((indices, words))
        if sum(waiting.size for waiting, _ in self._waiting) > _BATCH:
            self.evaluate()

    def evaluate(self) -> None:
        """Compute the keys (score plus noise) of the waiting candidates, and raise the bar to the k-th largest key.

        The bar is lowered by twice the error of a key; candidates below it are dropped.
        """
        if not self._waiting:
            return
        indices, words = (np.concatenate(column) for column in zip(*self._waiting, strict=True))
        self._waiting.clear()
        keys, known = _keys(words, self._fixed.at(indices), self._law)
        self._best = _largest(np.concatenate([self._best, known]), self._k)
        self.bar = float(self._best.min()) - 2 * self._slack
        above = (keys >= self.bar) & (keys > -np.inf)
        self._entries.append((keys[above], known[above], indices[above], words[above]))

    def result(self) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the indices of the k largest in order, where floats leave no doubt.

        Otherwise the first result is empty, and the second has the indices and words of all candidates that floats
        cannot rule out.
        """
        upper, lower, indices, words = (np.concatenate(column) for column in zip(*self._entries, strict=True))
        candidates = upper >= self.bar
        upper, lower, indices, words = upper[candidates], lower[candidates], indices[candidates], words[candidates]
        if upper.size == self._k:
            order = np.argsort(-upper)
            # the order is certain if each lower bound exceeds the next upper bound by more than both may be off
            if bool(np.all(lower[order[:-1]] - upper[order[1:]] > 2 * self._slack)):  # false for NaN
                return indices[order].tolist(), []
        return [], list(zip(indices.tolist(), words.tolist(), strict=True))


def _within_reach(words: Words, threshold: float, law: Noise) -> NDArray[np.int64]:
    """Return the indices of all words whose noise may be at least ``threshold``, with few others among them.

    A word stands for a uniform number U, and noise of at least t implies ``U <= exp(-t)``, since each of the laws has
    ``P(Z > t) <= exp(-t)``. The bound is raised by a relative 2^-30 and by 1 to cover rounding.
    """
    if not threshold > 0:
        return np.arange(words.size)
    limit = np.uint64(min(int(math.exp(-threshold) * (1 + 2.0**-30) * 2.0**63) + 1, MAGNITUDE))
    # where the highest bit is the sign, a word up to the limit is positive
    return np.flatnonzero((words if law.symmetric else words & np.uint64(MAGNITUDE)) <= limit)


def _possible(words: Words, fixed: Floats, bar: float, law: Noise) -> NDArray[np.bool_]:
    """Return a mask of the candidates that may reach the ``bar``: a high fixed part, or unusually large noise.

    Noise of 14 or more has probability about 1e-6. A candidate with a fixed part below ``bar - 14`` and less noise
    cannot reach the bar.
    """
    possible: NDArray[np.bool_] = fixed >= bar - _RARE
    possible[_within_reach(words, _RARE, law)] = True
    return possible


def _leaders(scores: Floats, count: int) -> NDArray[np.int64]:
    """Return the indices of the ``count`` largest scores.

    The scores are cut into rows, and ``lowest`` is the ``count``-th largest maximum of a row. The scores above it
    either hold all that are wanted, in fewer than ``count`` rows, or are wanted themselves together with maxima that
    are equal to it.
    """
    width = scores.size // (4 * count)
    if width < _MIN_WIDTH:
        return np.argpartition(scores, scores.size - count)[-count:]
    rows = scores.size // width
    places = scores[: rows * width].reshape(rows, width).argmax(axis=1) + np.arange(0, rows * width, width)
    maxima = scores[places]
    lowest = _largest(maxima, count).min()
    above = np.flatnonzero(scores > lowest)
    if above.size > count:
        return above[_leaders(scores[above], count)]
    return np.concatenate([above, places[maxima == lowest][: count - above.size]])


@dataclass(frozen=True)
class _FixedParts:
    """``factor * (score - reference) + ln(count) - lead``: the keys without noise, near 0 for the k-th largest."""

    scores: Floats
    counts: NDArray[np.int64] | None
    factor: Fraction
    reference: float
    lead: float = 0.0

    @classmethod
    def relative_to_kth(
        cls, scores: Floats, counts: NDArray[np.int64] | None, factor: Fraction, leaders: NDArray[np.int64], k: int
    ) -> _FixedParts:
        """Return the fixed parts relative to the k-th largest, so that floats are accurate where it matters."""
        uncentered = cls(scores, counts, factor, _kth(scores[leaders], k))
        return uncentered if counts is None else replace(uncentered, lead=_kth(uncentered.at(leaders), k))

    @cached_property
    def _constants(self) -> tuple[float, float, float]:
        """Return (shrink, reference * shrink, factor / shrink), with shrink a power of two so small that differences of
        scores do not overflow and the scaled factor does not underflow."""
        power = 600 if self.factor < _TINY else 2
        return 2.0**-power, self.reference * 2.0**-power, float(self.factor * 2**power)

    def _compute(self, scores: Floats, counts: NDArray[np.int64] | None) -> Floats:
        """Return ``factor * (score - reference) + ln(count) - lead``, in floats.

        ``shrink`` scales scores down and ``slope`` is the factor scaled up, against overflow and underflow.
        """
        shrink, reference, slope = self._constants
        fixed: Floats = (scores * shrink - reference) * slope
        if counts is not None:
            fixed += np.log(np.maximum(counts, 1).astype(np.float64))
        fixed -= self.lead
        return fixed

    def at(self, indices: NDArray[np.int64]) -> Floats:
        """Return the fixed part of the keys of some candidates, by index; -inf only for those that never win."""
        scores = self.scores[indices]
        fixed = self._compute(scores, None if self.counts is None else self.counts[indices])
        return np.where(scores > -np.inf, np.maximum(fixed, _LOWEST), -np.inf)

    def largest(self, block: slice) -> float:
        """Return an upper bound on the fixed parts in a block: the same operations on its largest score and count."""
        shrink, reference, slope = self._constants
        fixed = (float(self.scores[block].max()) * shrink - reference) * slope
        if self.counts is not None:
            fixed += float(np.log(np.float64(max(self.counts[block].max(), 1))))
        return fixed - self.lead


def _kth(values: Floats, k: int) -> float:
    """Return the k-th largest of the values above -inf, or the smallest of them."""
    largest = _largest(values, k)
    return float(largest[largest > -np.inf].min())


def _keys(words: Words, fixed: Floats, law: Noise) -> tuple[Floats, Floats]:
    """Return an upper and a lower bound on each key, ``fixed`` + noise, both within the slack where floats can decide.

    The noise is the quantile of ``law`` at the uniform numbers in ``words``. Where floats cannot decide: a word out of
    the floats' range has an upper bound of infinity or a lower bound of -inf, and a fixed part below the window is
    raised, and so gives no lower bound. A fixed part above the window is good to a relative error, and noise from a
    word with few significant bits to ``_COARSE``: by these the bounds are widened.
    """
    u: Floats = (words & np.uint64(MAGNITUDE)).view(np.int64) * np.float64(2.0**-63)
    small, coarse, large = u < _FEW_BITS, np.flatnonzero(u < LOW), u > law.high
    behind, ahead = fixed < -_WINDOW, np.flatnonzero(fixed > _WINDOW)
    u[small] = 0.5
    np.minimum(u, law.high, out=u)  # the quantile decreases
    law.quantile(u)
    if law.symmetric:
        np.copysign(u, words.view(np.float64), out=u)
    margin = np.zeros(u.size)
    margin[coarse] = _COARSE
    margin[ahead] += np.minimum(fixed[ahead], _HUGE) * _RELATIVE
    known = u + np.clip(fixed, -_WINDOW, _HUGE) - margin
    u += np.maximum(fixed, -_WINDOW) + margin
    known[small | large | behind] = -np.inf
    u[small] = np.inf
    u[fixed == -np.inf] = -np.inf
    return u, known


def _largest(keys: Floats, k: int) -> Floats:
    """Return the k largest keys, or all of them if there are fewer."""
    if k == 1:
        return np.array([keys.max()])
    return np.partition(keys, keys.size - k)[keys.size - k :] if keys.size > k else keys


def _ranked(unresolved: dict[int, tuple[Fraction, int, Variate]], k: int) -> list[int]:
    """Return the k with the largest keys, in order: enclose them, and draw more bits for those that still overlap."""
    ends = {i: _key(*clock) for i, clock in unresolved.items()}
    order: list[int] = []
    while ends and len(order) < k:
        best_lower = max(low for low, _ in ends.values())
        contenders = [i for i, (_, high) in ends.items() if high >= best_lower]
        if len(contenders) == 1:
            order.append(contenders[0])
            del ends[contenders[0]]
            continue
        for i in contenders:
            unresolved[i][2].extend()
            ends[i] = _key(*unresolved[i])
    return order


def _key(rate: Fraction, count: int, noise: Variate) -> tuple[Fraction, Fraction]:
    """Enclose the key ``rate + ln(count) + noise`` of a candidate."""
    low, high = noise.enclose()
    bits = 64 + max(low.denominator.bit_length(), high.denominator.bit_length())
    size = log(Fraction(count), bits)
    return rate + low + Fraction(size[0], 1 << bits), rate + high + Fraction(size[1], 1 << bits)
