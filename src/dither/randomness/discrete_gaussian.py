"""The discrete Gaussian law, exactly: by rejection from the normal law rounded to integers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dither.exact import Enclosure, divide, exp_neg, normal_tail
from dither.randomness.coins import below
from dither.randomness.discrete import SPLIT_SCALE, Integers, check_scale, discrete_laplace
from dither.randomness.lattice import draw_one, in_blocks, integer_steps
from dither.randomness.laws import Floats
from dither.randomness.normal import Normal
from dither.randomness.source import LazyUniform, Source, Threshold

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_NODES = (_NODES + 1) / 4  # on [0, 1/2]
_NODES.setflags(write=False)
_WEIGHTS.setflags(write=False)
_KAPPA = 40.0
_NORMAL = Normal()


def _acceptance(k: Floats, sigma: float) -> Floats:
    """Return ``A(0) / A(k)`` in floats, the probability to keep a rounded normal number k.

    ``A(k)`` is the integral over (0, 1/2) of exp(-s^2 / (2 sigma^2)) cosh(k s / sigma^2).

    Gauss-Legendre with 20 nodes: for k / sigma^2 <= 40 and sigma >= 0.15 the error term of the rule, relative
    to A(k), is below 2^-36.
    """
    base = _WEIGHTS * np.exp(-(_NODES**2) / (2 * sigma * sigma))
    top = np.cosh(np.multiply.outer(k / (sigma * sigma), _NODES)) @ base
    ratio: Floats = base.sum() / np.asarray(top)
    return ratio


def _exact_acceptance(k: int, sigma: Fraction) -> Threshold:
    """Enclose exp(-k^2 / (2 sigma^2)) P(cell 0) / P(cell k) for the rounded normal."""
    half = Fraction(1, 2)

    def threshold(bits: int) -> Enclosure:
        """Enclose the probability of acceptance times ``2**bits``."""
        rate = Fraction(k * k) / (2 * sigma * sigma)
        work_bits = bits + 32 + 2 * int(rate * 3 / 2) + 2 * max(0, math.frexp(float(sigma))[1])
        upper_tail, lower_tail = normal_tail((k - half) / sigma, work_bits), normal_tail((k + half) / sigma, work_bits)
        cell = upper_tail[0] - lower_tail[1], upper_tail[1] - lower_tail[0]
        middle = normal_tail(half / sigma, work_bits)
        one = 1 << work_bits
        center = 2 * (one - middle[1]), 2 * (one - middle[0])  # both tails are counted in `cell`
        decay = exp_neg(rate, work_bits)
        numerator = decay[0] * center[0] >> work_bits, (decay[1] * center[1] >> work_bits) + 1
        low, high = divide(numerator, (max(cell[0], 1), cell[1]), bits)
        return low, min(high, 1 << bits)

    return threshold


def discrete_gaussian(sigma: float, count: int, source: Source) -> Integers:
    """Draw integers with probability proportional to ``exp(-k^2 / (2 sigma^2))`` (Canonne, Kamath and Steinke 2020).

    ``count`` is how many to draw, from the words of ``source``. The proposal is the normal law rounded to integers,
    whose cell k has mass proportional to exp(-k^2/2s^2) A(k) with A as in :func:`_acceptance`; it is kept with
    probability A(0)/A(k) >= 1/cosh(k/2s^2) >= 1 - k^2/8s^4, so one comparison keeps nearly all, a quadrature decides
    most others, and enclosures the rest. For very wide laws the proposal is the discrete Laplace law.

    >>> from dither.randomness import SeededSource
    >>> discrete_gaussian(10.0, 4, SeededSource(1))
    array([  3,  14, -11,   6])
    """
    propose = _gaussian_from_laplace if check_scale(sigma) > SPLIT_SCALE else _gaussian_from_rounded

    def block(size: int) -> Integers:
        """Draw a block of integers, repeating rejected proposals."""
        out, rejected = propose(sigma, size, source)
        while rejected.size:
            out[rejected], again = propose(sigma, rejected.size, source)
            rejected = rejected[again]
        return out

    return in_blocks(count, block)


def discrete_gaussian_one(sigma: float, source: Source) -> int:
    """Draw one integer of :func:`discrete_gaussian` for ``sigma`` from ``source``, without arrays.

    The tests of a proposal go from cheap to exact: the lower bound ``1 - k^2 / (8 sigma^4)`` of the probability to
    keep it, a quadrature with its margin of error, and an enclosure.

    >>> from dither.randomness import SeededSource
    >>> discrete_gaussian_one(10.0, SeededSource(1))
    3
    """
    if check_scale(sigma) > SPLIT_SCALE:
        return int(discrete_gaussian(sigma, 1, source)[0])
    while True:
        k, word = draw_one(_NORMAL, sigma, source), source.word()
        u = word * 2.0**-64
        if u < 1 - k * k / (8 * sigma**4) - 2.0**-40:
            return k
        if sigma >= 0.15 and abs(k) <= _KAPPA * sigma * sigma:
            value = float(_acceptance(np.array(abs(k)), sigma))
            if u < value * (1 - 2.0**-34):
                return k
            if u > value * (1 + 2.0**-34) + 2.0**-60:
                continue
        if LazyUniform(word, 64, source).below(_exact_acceptance(abs(k), Fraction(sigma))):
            return k


def _gaussian_from_rounded(sigma: float, count: int, source: Source) -> tuple[Integers, Integers]:
    """Return proposals from rounded normal noise, and the indices of those that are rejected.

    ``count`` proposals are drawn for ``sigma`` from ``source``. With K the largest of the sizes, every one is kept
    with probability 1 - K^2/8s^4 or more, so words below that are not looked at again; a word's uniform number is less
    than one more than the word.
    """
    k = integer_steps(_NORMAL, sigma, count, source)
    words = source.words(count)
    largest = float(max(k.max(initial=0), -k.min(initial=0)))
    certain_acceptance = max(0.0, 1 - largest * largest / (8 * sigma**4) - 2.0**-40)
    rest = np.flatnonzero(words >= np.uint64(int(certain_acceptance * 2.0**64)))
    size, u = np.abs(k[rest]).astype(np.float64), words[rest] * 2.0**-64
    uncertain = u >= 1 - size * size / (8 * sigma**4) - 2.0**-40
    rest, size, u = rest[uncertain], size[uncertain], u[uncertain]
    if not rest.size:
        return k, rest
    quick = (size <= _KAPPA * sigma * sigma) & (sigma >= 0.15)
    value = _acceptance(np.where(quick, size, 0.0), sigma)
    rejected = quick & (u > value * (1 + 2.0**-34) + 2.0**-60)
    undecided = ~rejected & ~(quick & (u < value * (1 - 2.0**-34)))
    for i in np.flatnonzero(undecided).tolist():
        index = int(rest[i])
        threshold = _exact_acceptance(abs(int(k[index])), Fraction(sigma))
        rejected[i] = not LazyUniform(int(words[index]), 64, source).below(threshold)
    return k, rest[rejected]


def _gaussian_from_laplace(sigma: float, count: int, source: Source) -> tuple[Integers, Integers]:
    """Return proposals from discrete Laplace noise of scale t = ``sigma``, and the indices of those that are rejected.

    ``count`` is how many to draw, from the words of ``source``. A proposal is kept with probability exp(-(|k| -
    sigma^2/t)^2 / (2 sigma^2)).
    """
    k = discrete_laplace(sigma, count, source)
    exact_sigma = Fraction(sigma)

    def exact(i: int) -> Threshold:
        """Return the enclosure of the probability that proposal i is kept."""
        rate = (abs(int(k[i])) - exact_sigma) ** 2 / (2 * exact_sigma**2)
        return lambda bits: exp_neg(rate, bits)

    size = np.abs(k)
    rate = ((size.astype(np.float64) - sigma) / sigma) ** 2 / 2
    # the rounding of |k| to a float moves the rate by less than 2^-44 where |k| < 2^8 sigma; beyond, exp(-rate)
    # < 2^-60 decides
    return k, np.flatnonzero(~below(source.words(count), np.exp(-rate), exact, source))
