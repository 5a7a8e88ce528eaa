"""A uniform real number whose bits are drawn when a comparison needs them."""

from __future__ import annotations

from collections.abc import Callable

from dither.exact import Enclosure
from dither.randomness.source import Source

Threshold = Callable[[int], Enclosure]


class LazyUniform:
    """U uniform on (0, 1): ``value / 2**bits < U < (value + 1) / 2**bits``, more bits drawn on demand.

    The bits already drawn never change, so every answer stays true of the number that all later answers
    are about: a decision taken after any finite number of bits is a decision about U itself.

    >>> from fractions import Fraction
    >>> from dither.exact import exp_neg
    >>> from dither.randomness import SeededSource
    >>> u = LazyUniform(0b101, 3, SeededSource(1))               # 5/8 < U < 6/8
    >>> u.below(lambda bits: exp_neg(Fraction(1, 10), bits))     # U < exp(-1/10) = 0.905 ?
    True
    """

    __slots__ = ("bits", "source", "value")

    def __init__(self, value: int, bits: int, source: Source) -> None:
        self.value, self.bits, self.source = value, bits, source

    def extend(self) -> None:
        """Learn 64 more bits."""
        self.value = self.value << 64 | self.source.word()
        self.bits += 64

    def below(self, threshold: Threshold) -> bool:
        """Decide ``U < t`` exactly; ``threshold(bits)`` encloses ``t * 2**bits``."""
        while True:
            low, high = threshold(self.bits)
            if self.value + 1 <= low:
                return True
            if self.value >= high:
                return False
            self.extend()

    def approximate(self) -> float:
        """Return a positive float near U, good enough to start a search from."""
        while self.value >> 32 == 0 and self.bits < 960:
            self.extend()
        return max(self.value, 1) / (1 << self.bits)
