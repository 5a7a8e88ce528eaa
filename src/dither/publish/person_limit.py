"""The limit on a person's rows in a publication, stated or chosen privately, and the share of rows that it excludes.

Where ``max_rows`` is ``"auto"``, a tenth of the budget pays for a noisy histogram of people by how many of their rows
are in the domain, and the limit is chosen from it; with ``bias``, a twentieth pays for the same histogram, which says
how much a stated limit leaves out. The rest of the budget pays for the tables.

*Sensitivity.* The histogram counts people, not rows. A row is in the domain or not whatever other rows there are, so
the number of a person's rows in the domain depends on this person's rows alone, and puts the person into exactly one
bin of :data:`~dither.tables.planning.automatic.EDGES`, or, without any such row, into none. A row without a unit that
counts as a person of its own is one person in the first bin. Removing a person, with all rows, therefore lowers one bin
by 1, or none, and changes no other: the sensitivity is 1 in the l1 norm, bit for bit, since all of it is counting.

*Cost.* The bins are released with Laplace noise on the integers of scale ``1 / epsilon_h``: ``epsilon_h``-DP, so also
``epsilon_h^2 / 2``-zCDP (Bun and Steinke 2016, Proposition 1.4). The limit, and what is left out, are computed from the
noisy bins and from public numbers alone. Whatever the limit is, the tables are then counted with it and released at the
rest of the budget, so that both compose adaptively:

* ``epsilon_h = share * epsilon`` and ``(epsilon - epsilon_h, delta)`` add up to (epsilon, delta);
* ``epsilon_h^2 / 2 <= share * rho`` and ``rho - epsilon_h^2 / 2`` add up to rho.

Everything is computed in fractions and ``epsilon_h`` is rounded down to a float, which is what the noise is drawn for:
the sum is exactly the budget, never more.

>>> both = split(ApproxDP(1, 1e-9), Fraction(1, 10))
>>> both.histogram + both.tables.exact[0] == 1, round(float(both.histogram), 9)
(True, 0.1)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from dither.exact.functions import square_root
from dither.exact.rational import down
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.present.notes import Note
from dither.tables.card.model import Card
from dither.tables.compile.context import Statement, StatementContext
from dither.tables.compile.limits import MAX_TOTAL
from dither.tables.compile.statements import people_by_size
from dither.tables.planning.automatic import (
    EDGES,
    SHARES,
    ClippedShare,
    best_limit,
    estimate_clipped_share,
    noisy_histogram,
    undetected,
)
from dither.tables.planning.explain import unit_notes

MaxRows = int | Literal["auto"]
SHARE_OF_CHOICE = SHARES["max_rows"]
"""The fraction of the budget spent on choosing a limit."""
SHARE_OF_BIAS = SHARES["bias"]
"""The fraction of the budget spent on estimating what a stated limit excludes."""
TRIED_LIMITS = (1, (1 << 16) - 1, MAX_TOTAL)
"""Limits for which a mechanism is built before the charge, to see whether its numbers fit: the smallest, the largest
whose weights use all binary digits, and the largest of all. Those numbers are largest at one of them."""
_BITS = 128


class BudgetSplit(NamedTuple):
    """The epsilon of the histogram of people (0 if there is none), and the guarantee that is left for the tables."""

    histogram: Fraction
    tables: Guarantee


def split(guarantee: Guarantee, share: Fraction) -> BudgetSplit:
    """Split a budget between the histogram of people, which takes ``share`` of it, and the tables.

    The histogram is epsilon-DP, which under zCDP costs ``epsilon^2 / 2``.
    """
    if not share:
        return BudgetSplit(Fraction(0), guarantee)
    if isinstance(guarantee, ZCDP):
        rho = guarantee.exact[0]
        histogram = Fraction(down(Fraction(square_root(2 * rho * share, _BITS)[0], 1 << _BITS)))
        return BudgetSplit(histogram, ZCDP(rho - histogram**2 / 2))
    epsilon = guarantee.exact[0]
    histogram = Fraction(down(epsilon * share))
    if isinstance(guarantee, ApproxDP):
        return BudgetSplit(histogram, ApproxDP(epsilon - histogram, guarantee.exact[1]))
    return BudgetSplit(histogram, PureDP(epsilon - histogram))


class TypicalCell(NamedTuple):
    """The cell for which a limit on a person's rows is chosen: the standard deviation of its noise in rows if a person
    counts for one row, and the number of cells (``groups``) of its table. Both are public."""

    noise_of_one: float
    groups: int


def typical_cell(weights: Sequence[float], variances: Sequence[float], sizes: Sequence[int]) -> TypicalCell:
    """Return a cell whose mean squared error is the weighted mean of those of several tables.

    ``weights``, ``variances`` (of a cell, for one row of the limit) and ``sizes`` (numbers of cells) have one number
    for each table. Let a table have n cells, each with the variance v at a limit of one row. If the limit is R and
    excludes B rows, the mean squared error of its cells is about ``R^2 v + (B / n)^2``. The weighted mean of this over
    the tables has the same form, with the weighted means of v and of ``1 / n^2``.
    """
    total = math.fsum(weights)
    variance = math.fsum(weight * item for weight, item in zip(weights, variances, strict=True)) / total
    inverse = math.fsum(weight / size**2 for weight, size in zip(weights, sizes, strict=True)) / total
    return TypicalCell(math.sqrt(variance), max(1, round(1 / math.sqrt(inverse))))


@dataclass(frozen=True)
class PersonLimit:
    """The limit on a person's rows and the estimated share of rows that it excludes; recorded with a publication.

    >>> limit = PersonLimit(4, ClippedShare(0.12, 0.1, 0.15), 0.1)
    >>> PersonLimit.from_recorded(limit.as_recorded()) == limit
    True
    """

    max_rows: int
    clipped_share: ClippedShare
    epsilon: float
    """The privacy cost of the histogram of people."""

    def as_recorded(self) -> dict[str, Any]:
        """Return the limit and its clipped share as plain values, for the ledger."""
        shares = [self.clipped_share.share, self.clipped_share.low, self.clipped_share.high]
        return {"max_rows": self.max_rows, "left_out": shares, "epsilon": self.epsilon}

    @classmethod
    def from_recorded(cls, recorded: Mapping[str, Any]) -> PersonLimit:
        """Return the limit from the values that :meth:`as_recorded` returned."""
        return cls(recorded["max_rows"], ClippedShare(*recorded["left_out"]), recorded["epsilon"])


def histogram_statement(context: StatementContext) -> Statement:
    """Return the statement that counts people by the bin of their number of rows in the domain of the context."""
    return people_by_size(context, EDGES, "rows")


def learn_limit(lines: Any, epsilon: Fraction, max_rows: MaxRows, cell: TypicalCell | None) -> PersonLimit:
    """Return the limit on a person's rows and the share of rows that it excludes, from the exact histogram of people.

    Noise for ``epsilon`` is added to the histogram (``lines``, the result of :func:`histogram_statement`) first; this
    is the only place where it is used. A stated ``max_rows`` is kept; ``"auto"`` chooses the limit with the smallest
    expected error for the typical ``cell``.
    """
    people = noisy_histogram(list(zip(*(column.to_pylist() for column in lines.columns), strict=True)), epsilon)
    if max_rows != "auto":
        limit = max_rows
    else:
        limit = 1 if cell is None else min(best_limit(people, epsilon, *cell).limit, MAX_TOTAL)
    return PersonLimit(limit, estimate_clipped_share(people, epsilon, limit), float(epsilon))


def limit_notes(card: Card, max_rows: MaxRows, share: Fraction, learned: PersonLimit | None = None) -> tuple[Note, ...]:
    """Return the notes on the limit of a person's rows that accompany every ±, before a release and after it.

    Parameters
    ----------
    max_rows
        The requested limit: a number of rows, or "auto".
    share
        The fraction of the budget spent on the histogram of people.
    learned
        The limit that a release has used, with its estimate; None before a release or without a histogram.

    Examples
    --------
    >>> from dither.tables.card.model import ColumnCard
    >>> card = Card("visits", "", {"who": ColumnCard("integer")}, unit="who")
    >>> print(*limit_notes(card, 4, Fraction(1, 20))[:3], sep="\\n")
    Each person counts for at most 4 rows.
    Rows of people with more are weighted down; the ± and intervals are of the weighted counts.
    What the limit excludes will be learned and stated beside the ±, which does not include it.
    """
    if card.unit is None:
        return (Note("row_is_person"),)
    if max_rows == "auto" and learned is None:
        return (Note("rows_chosen_later"), Note("left_out_later"), *unit_notes(card))
    most = learned.max_rows if learned is not None else max_rows
    limit = Note("limits", {"rows": most, "groups": None})
    if learned is None:
        known = [Note("left_out_later" if share else "undercount_not_measured")]
    else:
        known = [learned.clipped_share.note("rows", learned.epsilon), undetected(Fraction(learned.epsilon))]
        if max_rows == "auto":
            limit = Note("rows_chosen", {"rows": most, "epsilon": learned.epsilon})
    return (limit, Note("weighted_rows"), *known, *unit_notes(card))
