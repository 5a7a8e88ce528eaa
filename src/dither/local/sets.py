"""Sets of items: every person has several of the categories, and a client reports one of them, or a blank."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dither import arguments
from dither.budget_hooks import spends
from dither.errors import InvalidData, WrongType
from dither.local.labels import require_column
from dither.local.protocol import Codes, Floats, FrequencyProtocol, Tally
from dither.local.reports import WIRE_CODES, Records, Reports
from dither.local.subset_selection import SubsetSelection
from dither.randomness import Source, resolve, uniform_integer, uniform_integers


@dataclass(frozen=True)
class PaddedSets(FrequencyProtocol):
    """Sample one item of a set that is padded to ``max_items``, and report it by subset selection.

    *Statement.* Each report is epsilon-DP for its sender, whatever set theirs is replaced by (Qin et al. 2016; Wang, Li
    and Jha 2018, "padding and sampling").

    *Why.* A set of fewer than ``max_items`` items is filled up with blanks, one more category; one place is drawn
    uniformly, and what is there is reported by an epsilon-DP protocol over k + 1 categories. Whatever is drawn, the law
    of the report changes by at most e^epsilon, and so does a mixture of such laws.

    Estimated shares are of people who have the item: ``max_items`` times the share of reports. Of a person with more
    items, ``max_items`` are drawn first, uniformly, so shares of their items are underestimated; otherwise shares are
    unbiased. A small ``max_items`` has little noise and much of that bias: the variance grows with its square.

    *Record.* That of :class:`SubsetSelection` over k + 1 categories; the last one is the blank.

    >>> import dither as dp
    >>> p = dp.local.PaddedSets(categories=["tea", "coffee", "water"], max_items=2, epsilon=20)
    >>> estimate = p.estimate(p.privatize([{"tea", "coffee"}, {"tea"}, set()] * 400))
    >>> bool(abs(estimate["tea"] - 2 / 3) < 0.25)
    True
    """

    categories: Any
    max_items: int
    epsilon: float
    wire_code: ClassVar[int] = WIRE_CODES["PaddedSets"]

    def __post_init__(self) -> None:
        self.check_parameters()
        object.__setattr__(self, "max_items", arguments.whole(self.max_items, "max_items", 1, self.category_count))

    @property
    def base(self) -> SubsetSelection:
        """Return the protocol that reports the item that was drawn."""
        return SubsetSelection(self.category_count + 1, self.epsilon)

    def own_parameters(self) -> dict[str, object]:
        """Return ``max_items``, the size to which sets are padded, for the canonical parameters."""
        return {"max_items": self.max_items}

    @spends
    def privatize(self, values: Any, *, source: Source | None = None) -> Reports:
        """Return one report for each set of items.

        >>> import dither as dp
        >>> len(dp.local.PaddedSets(categories=16, max_items=4, epsilon=1).privatize([{3, 1}, set()]))
        2
        """
        resolved = resolve(source)
        require_column(values, "values", "a list of sets", "pass one set of items for each person")
        codes = self.sample(values, resolved)
        return Reports.of(self, self.draw(codes, resolved), resolved)

    def sample(self, sets: Iterable[Any], source: Source) -> Codes:
        """Return the code of one item for each of ``sets``, or that of the blank, drawn from ``source``.

        Each set is padded to ``max_items`` places with blanks and one place is drawn uniformly; from a larger set an
        item is drawn uniformly. An item that is named twice counts once.
        """
        items: list[Any] = []
        owners: list[int] = []
        count = 0
        for own in sets:
            if isinstance(own, (str, bytes)) or not isinstance(own, Iterable):
                raise WrongType(
                    "values", "a list of sets", "a list with a value that is no set", "pass a set for each person"
                )
            before = len(items)
            items.extend(own)
            owners.extend([count] * (len(items) - before))
            count += 1
        k = self.category_count
        # an item that is named twice, also as 17 and 17.0, is one item
        codes = self.encode(items) if items else np.zeros(0, dtype=np.int64)
        owner, codes = np.divmod(np.unique(np.array(owners, dtype=np.int64) * k + codes), k)
        counts = np.bincount(owner, minlength=count)
        starts = np.cumsum(counts) - counts
        place = uniform_integers(self.max_items, count, source).astype(np.int64)
        # of more items than places, each is equally likely to be the one: uniform among all of them
        for person in np.flatnonzero(counts > self.max_items).tolist():
            place[person] = uniform_integer(int(counts[person]), source)
        result = np.full(count, k, dtype=np.int64)
        has_item = place < counts
        result[has_item] = codes[(starts + place)[has_item]]
        return result

    @property
    def record_bytes(self) -> int:
        """Return the number of bytes of each record."""
        return self.base.record_bytes

    def draw(self, codes: Codes, source: Source) -> Records:
        """Draw reports by subset selection; a code is an item or the blank."""
        return self.base.draw(codes, source)

    def check_records(self, records: Records) -> None:
        """Refuse records that are not sets of the right size, as subset selection does."""
        self.base.check_records(records)

    def new_tally(self) -> Tally:
        """Return zeros: the number of reports that contain each item, before the first report."""
        return self.base.new_tally()

    def tally(self, tally: Tally, records: Records) -> None:
        """Add up the reports."""
        self.base.tally(tally, records)

    def shares(self, tally: Tally, n: int, codes: Codes) -> tuple[Floats, Floats]:
        """Return the estimated share of people who have each item, with standard errors.

        ``tally`` holds the added-up reports of ``n`` people, and ``codes`` the numbers of the categories asked for. A
        share is ``max_items`` times that of the reports; the error includes that of drawing one item of each set.
        """
        if codes.size and int(codes.max()) >= self.category_count:
            raise InvalidData("categories", "items", "the blank", "ask for items")
        shares, errors = self.base.shares(tally, n, codes)
        shares *= self.max_items
        drawn = np.clip(shares, 0.0, 1.0) * (self.max_items - 1) / n
        return shares, np.sqrt((errors * self.max_items) ** 2 + drawn)

    @property
    def report_range(self) -> float:
        """Return ``max_items`` times the range of subset selection."""
        return self.max_items * self.base.report_range

    def variance(self, n: int, share: float = 0.0) -> float:
        """Return the variance of an estimated share.

        It is ``max_items**2`` times that of subset selection, and ``share (max_items - 1) / n`` for the draw of one
        item.
        """
        drawn = share * (self.max_items - 1) / arguments.whole(n, "n")
        return self.max_items**2 * self.base.variance(n, share / self.max_items) + drawn
