"""Protocols over finite fields: projective geometry response and local hashing.

Projective geometry response has short reports with the variance of subset selection; local hashing reports a random
linear hash of the category. Both need prime powers, primitive polynomials, tables of small fields and Singer's
difference sets. Everything is determined by the field sizes, so that a client in another language computes the same
tables. An element of the field with p^m elements is a polynomial over the integers modulo p, written as the integer
whose digits in base p are its coefficients, the constant one first. Products are taken modulo the *first* primitive
polynomial: that with the smallest integer among the monic polynomials of degree m for which the powers of X are all
elements but 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dither.exact import Enclosure
from dither.local.bases import IndexProtocol, PureProtocol, design_support, inside_float, inside_probability
from dither.local.protocol import Codes, Tally
from dither.local.reports import WIRE_CODES, LocalFrequencies, Records
from dither.randomness import Source, trials, uniform_integers

Matrix = NDArray[np.int64]


def prime_power(q: int) -> tuple[int, int] | None:
    """Return (p, e) with q = p^e for a prime p, or None if q is not a prime power.

    >>> prime_power(8), prime_power(53), prime_power(12)
    ((2, 3), (53, 1), None)
    """
    p = next((d for d in range(2, int(q**0.5) + 1) if q % d == 0), q)
    e = 0
    while q > 1 and q % p == 0:
        q //= p
        e += 1
    return (p, e) if q == 1 and e else None


def _prime_factors(n: int) -> list[int]:
    """Return the distinct prime factors of n, in rising order."""
    factors, d = [], 2
    while d * d <= n:
        if n % d == 0:
            factors.append(d)
            while n % d == 0:
                n //= d
        d += 1
    return [*factors, n] if n > 1 else factors


def _times_x(p: int, low: list[int]) -> Matrix:
    """Return the matrix of multiplication by X modulo X^m + low, for coefficients in a row vector."""
    m = len(low)
    matrix = np.zeros((m, m), dtype=np.int64)
    matrix[np.arange(m - 1), np.arange(1, m)] = 1
    matrix[m - 1] = [-c % p for c in low]
    return matrix


def _power(matrix: Matrix, exponent: int, p: int) -> Matrix:
    """Return the power of a square matrix modulo p, by repeated squaring."""
    result = np.eye(matrix.shape[0], dtype=np.int64)
    while exponent:
        if exponent & 1:
            result = result @ matrix % p
        matrix = matrix @ matrix % p
        exponent >>= 1
    return result


@lru_cache(maxsize=64)
def primitive_polynomial(p: int, m: int) -> tuple[int, ...]:
    """Return the first primitive polynomial of degree ``m`` over the integers modulo the prime ``p``.

    It is given by its coefficients, the constant one first, without the leading 1. A polynomial is primitive if the
    powers of x modulo it run through all ``p**m - 1`` elements but 0, which is so if the order of multiplying by x is
    exactly that number.

    >>> primitive_polynomial(2, 4), primitive_polynomial(3, 2)
    ((1, 1, 0, 0), (2, 1))
    """
    order = p**m - 1
    exponents = [order // factor for factor in _prime_factors(order)]
    identity = np.eye(m, dtype=np.int64)
    for number in range(1, p**m):
        low = [number // p**i % p for i in range(m)]
        if low[0] == 0:
            continue
        step = _times_x(p, low)
        if np.array_equal(_power(step, order, p), identity) and not any(
            np.array_equal(_power(step, exponent, p), identity) for exponent in exponents
        ):
            return tuple(low)
    raise AssertionError("every finite field has a primitive element")


def powers_of_x(p: int, m: int, count: int) -> Matrix:
    """Return the first ``count`` powers of X, a row of coefficients each.

    >>> powers_of_x(2, 2, 4).tolist()
    [[1, 0], [0, 1], [1, 1], [1, 0]]
    """
    step = _times_x(p, list(primitive_polynomial(p, m)))
    rows = np.zeros((count, m), dtype=np.int64)
    rows[0, 0], filled = 1, 1
    while filled < count:
        take = min(filled, count - filled)
        rows[filled : filled + take] = _matmul(rows[:take], step, p)
        step, filled = step @ step % p, filled + take
    return rows


def _matmul(rows: Matrix, matrix: Matrix, p: int) -> Matrix:
    """Return ``rows @ matrix`` modulo p."""
    # sums of m products below p^2 are exact in doubles, whose products are fast
    product: Matrix = (rows.astype(np.float64) @ matrix.astype(np.float64)).astype(np.int64) % p
    return product


@lru_cache(maxsize=16)
def singer_difference_set(q: int, t: int) -> Matrix:
    """Return Singer's difference set of a projective space of t coordinates over the field with q elements, sorted.

    It has the exponents i below K = (q^t - 1) / (q - 1) for which the trace of X^i to the field with q elements is 0:
    (q^(t-1) - 1) / (q - 1) numbers modulo K, such that every number but 0 is a difference of two of them in exactly
    (q^(t-2) - 1) / (q - 1) ways (Singer 1938). The hyperplanes of the space are their translates.

    >>> singer_difference_set(2, 3).tolist()
    [1, 2, 4]
    """
    power = prime_power(q)
    assert power is not None
    p, e = power
    m, total = e * t, (q**t - 1) // (q - 1)
    step = _times_x(p, list(primitive_polynomial(p, m)))
    # the trace is linear: the rows of its matrix are the traces of 1, X, X^2, ...
    trace = np.zeros((m, m), dtype=np.int64)
    one = np.eye(1, m, dtype=np.int64)
    for i in range(m):
        for j in range(t):
            trace[i] += (one @ _power(step, i * q**j, p) % p)[0]
    rows = powers_of_x(p, m, total)
    result = np.flatnonzero(~_matmul(rows, trace % p, p).any(axis=1))
    result.flags.writeable = False
    return result


@lru_cache(maxsize=64)
def field_tables(q: int) -> tuple[Matrix, Matrix]:
    """Return the tables of addition and multiplication in the field with q elements.

    >>> add, multiply = field_tables(4)
    >>> add[2].tolist(), multiply[2].tolist()
    ([2, 3, 0, 1], [0, 2, 3, 1])
    """
    power = prime_power(q)
    assert power is not None
    p, m = power
    weights = p ** np.arange(m)
    digits = np.arange(q)[:, None] // weights % p
    add = ((digits[:, None, :] + digits[None, :, :]) % p) @ weights
    exponential = powers_of_x(p, m, q - 1) @ weights if m > 1 else _prime_powers(p)
    logarithm = np.zeros(q, dtype=np.int64)
    logarithm[exponential] = np.arange(q - 1)
    multiply = exponential[(logarithm[:, None] + logarithm[None, :]) % (q - 1)]
    multiply[0], multiply[:, 0] = 0, 0
    add.flags.writeable = multiply.flags.writeable = False
    return add, multiply


def _prime_powers(p: int) -> Matrix:
    """Return the powers ``1, r, r^2, ...`` modulo a prime p of a generator r of its ``p - 1`` nonzero integers."""
    [low] = primitive_polynomial(p, 1)
    root, result = -low % p, np.ones(p - 1, dtype=np.int64)
    for i in range(1, p - 1):
        result[i] = result[i - 1] * root % p
    return result


_MAX_TOTAL = 1 << 22  # tables of that many points are built in some seconds
_EXACT_BELOW = 1 << 45


@dataclass(frozen=True)
class ProjectiveGeometryResponse(IndexProtocol[LocalFrequencies], PureProtocol):
    """Report a point of a projective space: with probability p one on the hyperplane of the own category, otherwise
    one off it.

    *Statement.* The projective space of dimension t - 1 over the field with q elements has K = (q^t - 1) / (q - 1)
    points, s = (q^(t-1) - 1) / (q - 1) on each hyperplane. With ``p = s e^epsilon / (s e^epsilon + K - s)`` and the
    point otherwise uniform, each report is epsilon-DP for its sender, whatever their category is replaced by (Feldman,
    Nelson, Nguyen and Talwar 2022).

    *Why.* Every point has one of two probabilities, whose ratio is e^epsilon.

    Points and hyperplanes are numbered modulo K such that the hyperplane of category x is the translate ``x + D`` of
    Singer's difference set D: a client adds a random member of D, or of its complement, to its category. Two
    hyperplanes always share (q^(t-2) - 1) / (q - 1) points, so that the protocol is pure. q near e^epsilon + 1 makes
    the hyperplanes the right share of the space: the variance is that of subset selection for K categories with sets of
    size s.

    *Record.* The number of the point, in 1, 2, 4 or 8 bytes, the fewest that hold K - 1.

    >>> import dither as dp
    >>> p = dp.local.ProjectiveGeometryResponse(categories=1024, epsilon=1)
    >>> p.field_size, p.dimension, p.report_count, p.record_bytes, round(p.variance(1), 3)
    (4, 6, 1365, 2, 3.685)
    """

    categories: Any
    epsilon: float
    wire_code: ClassVar[int] = WIRE_CODES["ProjectiveGeometryResponse"]

    @property
    def geometry(self) -> tuple[int, int]:
        """Return the field size q and the dimension t that have the smallest variance for k categories."""
        return _best_geometry(self.category_count, float(self.epsilon))

    @property
    def field_size(self) -> int:
        """Return the number q of elements of the field."""
        return self.geometry[0]

    @property
    def dimension(self) -> int:
        """Return the dimension t of the vectors whose lines are the points."""
        return self.geometry[1]

    @property
    def report_count(self) -> int:
        """Return the number K of points, each of which is a report."""
        return _points(*self.geometry)

    @property
    def hyperplane_size(self) -> int:
        """Return the number s of points on a hyperplane."""
        q, t = self.geometry
        return _points(q, t - 1)

    def own_probability(self, bits: int) -> Enclosure:
        """Enclose p, the probability of a point on the sender's hyperplane, in whole multiples of ``2**-bits``.

        With s points on a hyperplane of K in all, ``p = s e^epsilon / (s e^epsilon + K - s)``.
        """
        return inside_probability(self.exact_epsilon, self.hyperplane_size, self.report_count, bits)

    @property
    def support(self) -> tuple[float, float]:
        """Return the probabilities that a point is on its sender's hyperplane, and on that of any other category."""
        return _support(*self.geometry, float(self.epsilon))

    def draw(self, codes: Codes, source: Source) -> Records:
        """Draw a member of the difference set D, or of its complement, and add it to each code modulo K."""
        total, (inside, outside) = self.report_count, _hyperplane_and_complement(*self.geometry)
        probability = inside_float(float(self.epsilon), inside.size, total)
        held = trials(probability, self.own_probability, codes.size, source)
        points = codes.copy()
        for steps, chosen in ((inside, np.flatnonzero(held)), (outside, np.flatnonzero(~held))):
            points[chosen] += steps[uniform_integers(steps.size, chosen.size, source)]
        points -= total * (points >= total)
        return self.pack(points)

    def preferred(self, code: int) -> NDArray[np.int64]:
        """Return the points that a category prefers, those on its hyperplane: each is e^epsilon times as likely for it
        as any other point."""
        return (_hyperplane_and_complement(*self.geometry)[0] + code) % self.report_count

    def supporters(self, tally: Tally, n: int, codes: Codes) -> NDArray[np.int64]:
        """Return how many reported points lie on the hyperplane of each category: a circular correlation with D.

        ``tally`` counts the reports of each point, ``n`` is their number, and ``codes`` are the categories asked for.
        The Fourier transform computes all of them in doubles, whose error is far below one half where n is below 2^45
        divided by K; otherwise, and where few are asked, they are added up one by one.
        """
        total, inside = self.report_count, _hyperplane_and_complement(*self.geometry)[0]
        if codes.size < 64 or n * total > _EXACT_BELOW:
            return np.array([int(tally[(inside + code) % total].sum()) for code in codes.tolist()], dtype=np.int64)
        members = np.zeros(total)
        members[inside] = 1
        spectrum = np.fft.rfft(tally.astype(np.float64)) * np.conj(np.fft.rfft(members))
        return np.rint(np.fft.irfft(spectrum, total)).astype(np.int64)[codes]


def _points(q: int, t: int) -> int:
    """Return the number of points of the projective geometry of dimension t over q elements: ``(q^t - 1) / (q -
    1)``."""
    return sum(q**i for i in range(t))


def _support(q: int, t: int, epsilon: float) -> tuple[float, float]:
    """Return the support probabilities of the protocol on q and t, from the sizes of hyperplanes and their
    intersections."""
    return design_support(epsilon, _points(q, t - 1), _points(q, t), _points(q, t - 2))


@lru_cache(maxsize=64)
def _best_geometry(k: int, epsilon: float) -> tuple[int, int]:
    """Return the field size q and dimension t of the projective space in which reports have the smallest variance.

    Only spaces with at least ``k`` points, one for each category, and of a size that can be computed are tried; q near
    ``e^epsilon + 1`` is best, so the search ends at about twice that.
    """
    best = math.inf, 2, 2
    wanted = min(math.exp(epsilon) + 1, 2.0 * k + 2)
    for q in range(2, int(2 * wanted) + 4):
        if prime_power(q) is None:
            continue
        t = next(t for t in range(2, 64) if _points(q, t) >= k)
        if _points(q, t) > max(_MAX_TOTAL, 4 * k):
            continue
        p, other = _support(q, t, epsilon)
        best = min(best, (other * (1 - other) / (p - other) ** 2, q, t))
    return best[1], best[2]


@lru_cache(maxsize=16)
def _hyperplane_and_complement(q: int, t: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return Singer's difference set of the projective space over the field of ``q`` elements, and its complement.

    Both are sorted arrays of point numbers. ``t`` is the number of coordinates of a point; for t = 2 the space is a
    line, and a hyperplane is one point.
    """
    inside = singer_difference_set(q, t)
    outside = np.ones(_points(q, t), dtype=np.bool_)
    outside[inside] = False
    others = np.flatnonzero(outside)
    others.flags.writeable = False
    return inside, others


_MAX_RANGE = 64


@dataclass(frozen=True)
class LocalHashing(IndexProtocol[LocalFrequencies], PureProtocol):
    """Report a random hash function and, by randomized response, the hash of the own category among g values.

    *Statement.* The hash function is drawn independently of the category; its value is reported with probability
    e^epsilon / (e^epsilon + g - 1) and otherwise another of the g values, uniformly. Each report is epsilon-DP for its
    sender, whatever their category is replaced by (Wang, Blocki, Li and Jha 2017).

    *Why.* Given the hash function, the two probabilities of a reported value have the ratio e^epsilon, and the function
    itself has the same law for every category.

    The hash functions are the linear ones over the field with g elements: the category is written with m digits in base
    g, the function is a vector of m elements of the field, and the hash is their scalar product. Two categories differ
    in a digit, so their hashes agree with probability exactly 1/g. A server needs a table of g^(m+1) numbers, whatever
    the number of reports, and reads all categories from it with one transform. g is the prime power of the smallest
    variance, which is near e^epsilon + 1, and at most 64.

    *Record.* ``v + g (a_0 + a_1 g + ... + a_(m-1) g^(m-1))`` for the value v and the vector a, in 1, 2, 4 or 8 bytes,
    the fewest that hold g^(m+1) - 1. Elements of the field are numbered, added and multiplied as said
    above in this module; digit i of category c is ``c // g^i % g``.

    n times the variance of a rare category is ``(e^epsilon - 1 + g)^2 / ((e^epsilon - 1)^2 (g - 1))``, at best
    ``4 e^epsilon / (e^epsilon - 1)^2``.

    >>> import dither as dp
    >>> p = dp.local.LocalHashing(categories=1024, epsilon=1)
    >>> p.hash_range, p.digits, p.record_bytes, round(p.variance(1), 3)
    (4, 5, 2, 3.692)
    """

    categories: Any
    epsilon: float
    wire_code: ClassVar[int] = WIRE_CODES["LocalHashing"]

    @property
    def hash_range(self) -> int:
        """Return the number g of hash values."""
        return _best_range(float(self.epsilon))

    @property
    def digits(self) -> int:
        """Return the number m of digits of a category in base g."""
        return next(m for m in range(1, 64) if self.hash_range**m >= self.category_count)

    @property
    def report_count(self) -> int:
        """Return the number of possible reports, g^(m+1)."""
        return int(self.hash_range ** (self.digits + 1))

    def own_probability(self, bits: int) -> Enclosure:
        """Return limits of the probability of reporting the hash of the own category, times ``2**bits``."""
        return inside_probability(self.exact_epsilon, 1, self.hash_range, bits)

    @property
    def support(self) -> tuple[float, float]:
        """Return the probabilities that a report equals the hash of its sender's category, and that of any other
        category."""
        return inside_float(float(self.epsilon), 1, self.hash_range), 1 / self.hash_range

    def draw(self, codes: Codes, source: Source) -> Records:
        """Draw a hash function for each code; report its value for the code with probability p, else a different one.

        The hash is the scalar product of the digits of function and code, by the tables of the field.
        """
        g = self.hash_range
        add, multiply = field_tables(g)
        functions = uniform_integers(g**self.digits, codes.size, source).astype(np.int64)
        hashes = np.zeros(codes.size, dtype=np.int64)
        function_digits, code_digits = functions.copy(), codes.copy()
        for _ in range(self.digits):
            function_digits, a = np.divmod(function_digits, g)
            code_digits, x = np.divmod(code_digits, g)
            hashes = add.reshape(-1)[hashes * g + multiply.reshape(-1)[a * g + x]]
        truthful = trials(self.support[0], self.own_probability, codes.size, source)
        others = uniform_integers(g - 1, codes.size, source).astype(np.int64)
        others += others >= hashes
        return self.pack(functions * g + np.where(truthful, hashes, others))

    def supporters(self, tally: Tally, n: int, codes: Codes) -> NDArray[np.int64]:
        """Return how many reports agree with the hashes of these categories.

        ``tally`` counts the reports of each pair of a hash function and a value, ``n`` is not needed, and ``codes``
        are the categories asked for. With C(a, v) reports of the function a and the value v, a category x has ``sum
        over a of C(a, <a, x>)``. One digit after the other, the sum over a_i of ``C(..., a_i, ..., v + a_i x_i)``
        replaces a_i by x_i.
        """
        g, m = self.hash_range, self.digits
        add, multiply = field_tables(g)
        sums = tally.reshape((-1, g))
        values = np.arange(g)
        for _ in range(m):
            # the highest digit of the function comes first; the digit of the category is put last, before the value
            blocks = sums.reshape(g, -1, g)
            after = np.empty((blocks.shape[1], g, g), dtype=np.int64)
            for x in range(g):
                after[:, x, :] = sum(blocks[a][:, add[values, multiply[a, x]]] for a in range(g))
            sums = after.reshape(-1, g)
        # the digits were appended from the highest to the lowest, as the digits of a number are written
        result: NDArray[np.int64] = sums[:, 0][codes]
        return result


@lru_cache(maxsize=64)
def _best_range(epsilon: float) -> int:
    """Return the prime power g up to 64 at which the variance of local hashing is smallest.

    n times the variance of a rare category is ``(e^epsilon - 1 + g)^2 / ((e^epsilon - 1)^2 (g - 1))``, so the smallest
    ``(e^epsilon - 1 + g)^2 / (g - 1)`` is taken.
    """
    growth = math.expm1(epsilon)
    choices = [g for g in range(2, _MAX_RANGE + 1) if prime_power(g) is not None]
    return min(choices, key=lambda g: (growth + g) ** 2 / (g - 1))
