"""Local hashing: a random hash of the category, reported with randomized response over the few hash values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dither.exact import Enclosure
from dither.local.designs import inside_float, inside_probability
from dither.local.estimates import LocalFrequencies
from dither.local.fields import field_tables, prime_power
from dither.local.index_records import IndexProtocol
from dither.local.protocol import Codes, Tally
from dither.local.pure import PureProtocol
from dither.local.reports import Records
from dither.local.wire_codes import LOCAL_HASHING
from dither.randomness import Source, trials, uniform_integers

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
    the fewest that hold g^(m+1) - 1. Elements of the field are numbered, added and multiplied as in
    :mod:`dither.local.fields`; digit i of category c is ``c // g^i % g``.

    n times the variance of a rare category is ``(e^epsilon - 1 + g)^2 / ((e^epsilon - 1)^2 (g - 1))``, at best
    ``4 e^epsilon / (e^epsilon - 1)^2``.

    >>> import dither as dp
    >>> p = dp.local.LocalHashing(categories=1024, epsilon=1)
    >>> p.hash_range, p.digits, p.record_bytes, round(p.variance(1), 3)
    (4, 5, 2, 3.692)
    """

    categories: Any
    epsilon: float
    wire_code: ClassVar[int] = LOCAL_HASHING

    def __post_init__(self) -> None:
        self.check_parameters()

    @property
    def hash_range(self) -> int:
        """The number g of hash values."""
        return _best_range(float(self.epsilon))

    @property
    def digits(self) -> int:
        """The number m of digits of a category in base g."""
        return next(m for m in range(1, 64) if self.hash_range**m >= self.category_count)

    @property
    def report_count(self) -> int:
        """The number of possible reports, g^(m+1)."""
        return int(self.hash_range ** (self.digits + 1))

    def own_probability(self, bits: int) -> Enclosure:
        """Limits of the probability of reporting the hash of the own category, times ``2**bits``."""
        return inside_probability(self.exact_epsilon, 1, self.hash_range, bits)

    @property
    def support(self) -> tuple[float, float]:
        """The probabilities that a report agrees with the hash of its sender's category, and with that of another."""
        return inside_float(float(self.epsilon), 1, self.hash_range), 1 / self.hash_range

    def draw(self, codes: Codes, source: Source) -> Records:
        """A hash function for each, and its value for the code, or another."""
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
        """How many reports agree with the hashes of these categories.

        With C(a, v) reports of the function a and the value v, a category x has ``sum over a of C(a, <a, x>)``. One
        digit after the other, the sum over a_i of ``C(..., a_i, ..., v + a_i x_i)`` replaces a_i by x_i.
        """
        g, m = self.hash_range, self.digits
        add, multiply = field_tables(g)
        sums = tally.reshape((-1, g))
        places = np.arange(g)
        for _ in range(m):
            # the highest digit of the function comes first; the digit of the category is put last, before the value
            blocks = sums.reshape(g, -1, g)
            after = np.empty((blocks.shape[1], g, g), dtype=np.int64)
            for x in range(g):
                after[:, x, :] = sum(blocks[a][:, add[places, multiply[a, x]]] for a in range(g))
            sums = after.reshape(-1, g)
        # the digits were appended from the highest to the lowest, as the digits of a number are written
        result: NDArray[np.int64] = sums[:, 0][codes]
        return result


@lru_cache(maxsize=64)
def _best_range(epsilon: float) -> int:
    growth = math.expm1(epsilon)
    choices = [g for g in range(2, _MAX_RANGE + 1) if prime_power(g) is not None]
    return min(choices, key=lambda g: (growth + g) ** 2 / (g - 1))
