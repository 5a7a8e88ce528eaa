"""Finite fields: prime powers, primitive polynomials, tables of small fields and Singer's difference sets.

Everything is determined by the field sizes, so that a client in another language computes the same tables. An element
of the field with p^m elements is a polynomial over the integers modulo p, written as the integer whose digits in base p
are its coefficients, the constant one first. Products are taken modulo the *first* primitive polynomial: that with the
smallest integer among the monic polynomials of degree m for which the powers of X are all elements but 0.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.int64]


def prime_power(q: int) -> tuple[int, int] | None:
    """(p, e) with q = p^e, or None where q is no prime power.

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
    factors, d = [], 2
    while d * d <= n:
        if n % d == 0:
            factors.append(d)
            while n % d == 0:
                n //= d
        d += 1
    return [*factors, n] if n > 1 else factors


def _times_x(p: int, low: list[int]) -> Matrix:
    """The matrix of multiplication by X modulo X^m + low, for coefficients in a row vector."""
    m = len(low)
    matrix = np.zeros((m, m), dtype=np.int64)
    matrix[np.arange(m - 1), np.arange(1, m)] = 1
    matrix[m - 1] = [-c % p for c in low]
    return matrix


def _power(matrix: Matrix, exponent: int, p: int) -> Matrix:
    result = np.eye(matrix.shape[0], dtype=np.int64)
    while exponent:
        if exponent & 1:
            result = result @ matrix % p
        matrix = matrix @ matrix % p
        exponent >>= 1
    return result


@lru_cache(maxsize=64)
def primitive_polynomial(p: int, m: int) -> tuple[int, ...]:
    """The coefficients of the first primitive polynomial of degree m, without the leading 1, the constant one first.

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
    """The first ``count`` powers of X, a row of coefficients each.

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
    # sums of m products below p^2 are exact in doubles, whose products are fast
    product: Matrix = (rows.astype(np.float64) @ matrix.astype(np.float64)).astype(np.int64) % p
    return product


@lru_cache(maxsize=16)
def singer_difference_set(q: int, t: int) -> Matrix:
    """The exponents i below K = (q^t - 1) / (q - 1) for which the trace of X^i to the field with q elements is 0.

    These are (q^(t-1) - 1) / (q - 1) numbers modulo K, such that every number but 0 is a difference of two of them in
    exactly (q^(t-2) - 1) / (q - 1) ways (Singer 1938): the hyperplanes of a projective space are their translates.

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
    """The tables of addition and multiplication in the field with q elements.

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
    """The powers of a generator of the integers modulo p: the multiplication does not depend on which."""
    [low] = primitive_polynomial(p, 1)
    root, result = -low % p, np.ones(p - 1, dtype=np.int64)
    for i in range(1, p - 1):
        result[i] = result[i - 1] * root % p
    return result
