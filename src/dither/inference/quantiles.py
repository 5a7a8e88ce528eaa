"""Several quantiles by halving: the middle one first, the others among the values on its two sides.

*Statement.* If selecting one quantile is epsilon-DP under adding or removing a value, then selecting m of them in this
order is ``levels(m) * epsilon``-DP, where :func:`levels` is the whole part of ``log2(m) + 1`` (Kaplan, Schnapp and
Stemmer 2022).

*Why.* The values are split at the value selected, and the quantiles below it are selected among the values below, the
others among those above. A value is on one side only, so all selections of a level together cost as much as one of
them. That holds as long as splitting keeps neighbors neighbors: one value more makes one of the sides larger by one
value, never both. How values that are equal to the selected one are split is for the caller to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self, TypeVar

Values = TypeVar("Values")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Split:
    """A quantile that is selected, and those that are then selected below and above it."""

    share: Fraction
    """The quantile, among all values."""
    at: Fraction
    """The quantile, among the values that are left to select from."""
    below: Self | None = None
    above: Self | None = None

    def __iter__(self) -> Iterator[Self]:
        """Iterate over this split, then those below it, then those above it."""
        yield self
        for side in (self.below, self.above):
            yield from side or ()

    @property
    def depth(self) -> int:
        """Return the number of levels, this one included."""
        return 1 + max((side.depth for side in (self.below, self.above) if side is not None), default=0)

    def select_all(
        self, values: Values, select: Callable[[Self, Values], tuple[Answer, Values, Values]]
    ) -> dict[Fraction, Answer]:
        """Return every quantile by its share; ``select`` returns one of them, and the values below and above it.

        >>> def exactly(split: Split, values: range) -> tuple[int, range, range]:
        ...     cut = int(split.at * len(values))
        ...     return values[cut], values[:cut], values[cut:]
        >>> halve([Fraction(1, 4), Fraction(1, 2)]).select_all(range(100), exactly)
        {Fraction(1, 2): 50, Fraction(1, 4): 25}
        """
        answer, below, above = select(self, values)
        result = {self.share: answer}
        if self.below is not None:
            result |= self.below.select_all(below, select)
        if self.above is not None:
            result |= self.above.select_all(above, select)
        return result


def levels(count: int) -> int:
    """Return how many selections each value takes part in, if there are ``count`` quantiles.

    >>> [levels(count) for count in (1, 2, 3, 4, 7, 8)]
    [1, 2, 2, 3, 3, 4]
    """
    return count.bit_length()


def halve(shares: Sequence[Fraction]) -> Split:
    """Return the order in which these quantiles, at least one and increasing, are selected.

    >>> split = halve([Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)])
    >>> [(str(node.share), str(node.at)) for node in split]
    [('1/2', '1/2'), ('1/4', '1/2'), ('3/4', '1/2')]
    """
    result = _halve(shares, Fraction(0), Fraction(1))
    assert result is not None
    return result


def _halve(shares: Sequence[Fraction], low: Fraction, high: Fraction) -> Split | None:
    """Return the quantiles between the shares ``low`` and ``high``, among the values between them."""
    if not shares:
        return None
    middle = len(shares) // 2
    share = shares[middle]
    return Split(
        share,
        (share - low) / (high - low),
        _halve(shares[:middle], low, share),
        _halve(shares[middle + 1 :], share, high),
    )
