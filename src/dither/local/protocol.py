"""The interface of every local protocol: a client that privatizes, and a server that estimates.

A protocol is a frozen description that client and server share. ``privatize`` turns values into
:class:`~dither.local.reports.Reports`, each drawn independently on behalf of one person; everything after that is
post-processing. ``server`` starts a :class:`Server`, which adds up reports in constant memory;
``estimate`` is the same in one call.

A protocol of this package implements six hooks: how values become integer codes (:meth:`LocalProtocol.encode`), how
reports are drawn from codes (:meth:`~LocalProtocol.draw`), which records are possible
(:meth:`~LocalProtocol.check_records`), and how a server adds them up and reads an estimate from the sums
(:meth:`~LocalProtocol.new_tally`, :meth:`~LocalProtocol.tally`, :meth:`~LocalProtocol.read`). Most come from a base:
records of one integer or of a bit for each category and pure protocols (:mod:`dither.local.bases`), and sketches
(:mod:`dither.local.sketch`).
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.accounting import Event, Pure
from dither.budget_hooks import spends
from dither.errors import InvalidArgument, InvalidData, WrongType
from dither.exact import up
from dither.guarantees import PureDP
from dither.inference.measured import normal_quantile
from dither.local import labels
from dither.local.reports import LocalFrequencies, Records, Reports, protocol_name
from dither.mechanisms.additive import plain_value
from dither.present import chart, markup
from dither.randomness import Source, resolve

Codes = NDArray[np.int64]
Tally = NDArray[Any]
Floats = NDArray[np.float64]
Result = TypeVar("Result")

MIN_EPSILON = Fraction(1, 10_000)  # below, a thousand million people are too few, and floats cannot tell p from q
MAX_EPSILON = 64
_PEOPLE = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
"""Numbers of people for whom a notebook shows the error."""


class LocalProtocol(ABC, Generic[Result]):
    """Base of the local protocols: what a client sends, and what a server estimates from the reports of many clients.

    *Statement.* For every report r and all values x and x', ``P(r | x) <= e^epsilon P(r | x')``: each report is
    epsilon-DP for the person who sends it, whatever the collector does (Kasiviswanathan et al. 2008). Reports of one
    person compose; reports of different people do not.

    >>> import dither as dp
    >>> p = dp.local.SubsetSelection(categories=128, epsilon=1)
    >>> isinstance(p, LocalProtocol), p.guarantee
    (True, PureDP(1))
    """

    _estimated: ClassVar[str] = "the share of a rare category"
    """The quantity whose error a notebook shows."""

    wire_code: ClassVar[int]
    """The number of the protocol in the byte format of reports."""

    chunk_bytes: ClassVar[int] = 1 << 19
    """How much a server adds at once."""

    categories: Any
    epsilon: float

    def __post_init__(self) -> None:
        self.check_parameters()

    def check_parameters(self) -> None:
        """Validate and store epsilon and the categories; every constructor calls it first."""
        report_epsilon(self.epsilon)
        object.__setattr__(self, "epsilon", plain_value(self.epsilon))
        object.__setattr__(self, "categories", labels.read_categories(self.categories))

    # what is claimed

    @property
    def exact_epsilon(self) -> Fraction:
        """Return the epsilon of one report as an exact number."""
        return arguments.epsilon(self.epsilon)

    @property
    def guarantee(self) -> PureDP:
        """Return the guarantee of one report: epsilon-DP for its sender, whose value may be replaced by any other."""
        return PureDP(self.epsilon)

    @property
    def event(self) -> Event:
        """Return the event for accountants, one report of one person."""
        return Pure(self.exact_epsilon)

    # the domain

    @property
    def category_count(self) -> int:
        """Return the number k of categories."""
        return self.categories if isinstance(self.categories, int) else len(self.categories)

    def encode(self, values: Any, name: str = "values") -> Codes:
        """Return the code of each value, from 0 to k - 1; a value that is no category is refused, without naming it."""
        labels.require_column(values, name)
        return labels.encode(values, self.categories, name)

    def all_codes(self) -> Codes:
        """Return the codes of all categories."""
        return np.arange(self.category_count, dtype=np.int64)

    # client

    @spends
    def privatize(self, values: Any, *, source: Source | None = None) -> Reports:
        """Return one report for each value, drawn independently; nothing else about the values leaves this call.

        >>> import dither as dp
        >>> len(dp.local.SubsetSelection(categories=16, epsilon=1).privatize([3, 1, 4]))
        3
        """
        resolved = resolve(source)
        codes = self.encode(values)
        records = self.draw(codes, resolved)
        return Reports.of(self, records, resolved)

    # server

    def server(self, *, refuse_duplicates: bool = True) -> Server[Result]:
        """Return a server that adds up reports in constant memory.

        >>> import dither as dp
        >>> p = dp.local.HadamardResponse(categories=16, epsilon=1)
        >>> s = p.server()
        >>> s.add(p.privatize([3, 1, 4])).n
        3
        """
        return Server(self, refuse_duplicates=refuse_duplicates)

    def estimate(self, reports: Any, categories: Any = None) -> Result:
        """Return the estimates from these reports: :class:`Reports`, or their bytes.

        For categories these are unbiased shares of the people who reported, each with its standard error, of the
        ``categories`` asked for, by default all.

        >>> import dither as dp
        >>> p = dp.local.SubsetSelection(categories=4, epsilon=20)
        >>> p.estimate(p.privatize([0, 0, 1, 2])).shares.round(3)[:3]
        array([0.5 , 0.25, 0.25])
        """
        return self.server().add(reports).estimate(categories)

    def _repr_html_(self) -> str:
        """Return the protocol for a notebook: the guarantee, the size of a report, and the error by the number of
        reports."""
        what = self._estimated
        facts = [
            ("promises", f"{self.guarantee} for each report"),
            ("a report has", f"{self.report_bits:,} bits"),
            ("variance × people", f"{self.variance(1):.4g}, for {what}"),
        ]
        rows = [(f"{n:,} people", self.error(n=n), None) for n in _PEOPLE]
        picture = chart.bars(rows, title=f"± of {what} (95 %), by how many people report")
        return markup.block(markup.heading(repr(self)), markup.facts(facts), markup.picture(picture))

    # accuracy

    @abstractmethod
    def variance(self, n: int, share: float = 0.0) -> float:
        """Return the variance of an estimated share among n people, for a category of which the true share is
        ``share``.
        """

    def error(self, confidence: float = 0.95, *, n: int, share: float = 0.0) -> float:
        """Return the half-width of a normal confidence interval for the estimated share of a category.

        ``n`` is the number of reports and ``share`` the true share of the category, 0 for a rare one.

        >>> import dither as dp
        >>> round(dp.local.SubsetSelection(categories=128, epsilon=1).error(n=1_000_000), 5)
        0.00372
        """
        return normal_quantile(confidence) * math.sqrt(self.variance(n, share))

    def people_needed(self, error: float, confidence: float = 0.95) -> int:
        """Return the number of reports from which the share of a rare category is estimated to within ``error``.

        ``confidence`` is the probability with which it is, by the normal law.

        >>> import dither as dp
        >>> dp.local.SubsetSelection(categories=128, epsilon=1).people_needed(0.001)
        13866852
        """
        z = normal_quantile(confidence)
        return max(1, math.ceil(self.variance(1) * (z / arguments.positive(error, "error")) ** 2))

    # the byte format

    @property
    def canonical_parameters(self) -> str:
        """Return the text of all parameters whose hash identifies them in the byte format of reports."""
        names = "" if isinstance(self.categories, int) else f";labels={labels.labels_digest(self.categories)}"
        own = "".join(f";{name}={value}" for name, value in self.own_parameters().items())
        count = "" if self.categories is None else f";categories={self.category_count}"
        return f"{type(self).__name__};epsilon={self.exact_epsilon}{count}{names}{own}"

    def own_parameters(self) -> dict[str, object]:
        """Return the parameters besides epsilon and the categories, by name, for the canonical parameters."""
        return {}

    @property
    def fingerprint(self) -> bytes:
        """Return the first eight bytes of the SHA-256 hash of the canonical parameters."""
        return hashlib.sha256(self.canonical_parameters.encode()).digest()[:8]

    @property
    def epsilon_on_the_wire(self) -> float:
        """Return epsilon as a float, rounded up, as it is written into the header of a batch."""
        return up(self.exact_epsilon)

    @property
    def report_bits(self) -> int:
        """Return the number of bits in a report, without the header of a batch."""
        return 8 * self.record_bytes

    # hooks

    @property
    @abstractmethod
    def record_bytes(self) -> int:
        """Return the number of bytes of each record."""

    @abstractmethod
    def draw(self, codes: Codes, source: Source) -> Records:
        """Draw one report for each code and return the records: an array of bytes with a row for each report."""

    @abstractmethod
    def check_records(self, records: Records) -> None:
        """Refuse records that no client sends; a server checks reports before it adds them."""

    @abstractmethod
    def new_tally(self) -> Tally:
        """Return the empty sums of a server, before the first report; their form depends on the protocol."""

    @abstractmethod
    def tally(self, tally: Tally, records: Records) -> None:
        """Add records to the sums, in place."""

    @abstractmethod
    def read(self, tally: Tally, n: int, categories: Any, seeded: bool) -> Result:
        """Return the estimates from the sums of n reports; ``categories`` are those asked for, None for all."""


class FrequencyProtocol(LocalProtocol[LocalFrequencies]):
    """Base of the protocols whose servers estimate the shares of categories."""

    @abstractmethod
    def shares(self, tally: Tally, n: int, codes: Codes) -> tuple[Floats, Floats]:
        """Return unbiased shares of the categories with these codes, and their standard errors."""

    @property
    @abstractmethod
    def report_range(self) -> float:
        """Return the largest change of ``n share``, for a share estimated from n reports, if one report is replaced."""

    @property
    def variance_slope(self) -> float:
        """Return the derivative of n times the variance with respect to the share, in absolute value.

        The variance is linear in the share, so the derivative is the difference between shares 1 and 0.
        """
        return abs(self.variance(1, 1.0) - self.variance(1))

    def read(self, tally: Tally, n: int, categories: Any, seeded: bool) -> LocalFrequencies:
        """Return unbiased shares of these categories, each with its standard error.

        ``tally`` holds the added-up reports of ``n`` people, ``categories`` are those asked for (None: all that the
        protocol lists), and ``seeded`` says that some report came from a seeded source and is not private.
        """
        if categories is not None:
            codes, names = self.encode(categories, "categories"), tuple(plain_value(list(categories)))
        elif self.categories is None:
            raise InvalidArgument("categories", "the categories to estimate", "none", "pass a list of them")
        else:
            codes = self.all_codes()
            names = tuple(range(self.categories)) if isinstance(self.categories, int) else self.categories
        shares, errors = self.shares(tally, n, codes)
        return LocalFrequencies(names, shares, errors, n, seeded, self.variance_slope / n, self.report_range / n)


def refuse_choice(categories: Any, what: str) -> None:
    """Refuse ``categories`` that were asked for where an estimate is about no categories.

    ``what`` says what is estimated, for the error.
    """
    if categories is not None:
        raise InvalidArgument("categories", f"none: {what}", "some", "leave them out")


def report_epsilon(value: object) -> Fraction:
    """Return epsilon exactly; one outside of the range for a local report, 1/10,000 to 64, is refused."""
    exact = arguments.epsilon(value)
    if exact > MAX_EPSILON:
        raise InvalidArgument("epsilon", f"at most {MAX_EPSILON} for one report", value, "pass 10 or less")
    if exact < MIN_EPSILON:
        raise InvalidArgument("epsilon", f"at least {float(MIN_EPSILON):g} for one report", value, "pass 0.1 or more")
    return exact


class Server(Generic[Result]):
    """Sums of reports of one protocol, from which shares are estimated at any time.

    A batch is checked as a whole before any of it is added, so that a refused batch changes nothing. With
    ``refuse_duplicates`` the server remembers the 16-byte id of every batch and refuses one that it has; without, its
    memory does not grow at all.

    >>> import dither as dp
    >>> p = dp.local.SubsetSelection(categories=16, epsilon=1)
    >>> monday, tuesday = p.server(), p.server()
    >>> monday.add(p.privatize([3, 1, 4])).add(p.privatize([1, 5]).to_bytes()).n
    5
    >>> tuesday.add(p.privatize([9])).merge(monday).n
    6
    """

    def __init__(self, protocol: LocalProtocol[Result], *, refuse_duplicates: bool = True) -> None:
        """Start a server without reports; ``protocol`` reads them, and ``refuse_duplicates`` is described above."""
        self.protocol = protocol
        self.refuse_duplicates = refuse_duplicates
        self.n = 0
        self.seeded = False
        self._tally = protocol.new_tally()
        self._batches: set[bytes] = set()

    def add(self, reports: Any) -> Server[Result]:
        """Add a batch: :class:`Reports`, or their bytes. Returns the server."""
        batch = reports if isinstance(reports, Reports) else Reports.from_bytes(reports)
        chunks = self._checked(batch)
        self._make_room(len(batch))
        for records in chunks:
            self.protocol.tally(self._tally, records)
        self.n += len(batch)
        self.seeded |= batch.seeded
        if self.refuse_duplicates:
            self._batches.add(batch.batch)
        return self

    def _checked(self, batch: Reports) -> list[Records]:
        """Return the records of a batch in chunks, all of which could have been sent; anything else is refused."""
        p = self.protocol
        if batch.wire_code != p.wire_code:
            raise InvalidData(
                "reports",
                f"reports of {type(p).__name__}",
                f"reports of {protocol_name(batch.wire_code)}",
                "add them to a server of their own protocol; nothing of this batch was added",
            )
        if batch.fingerprint != p.fingerprint:
            other = (
                f"epsilon={batch.epsilon:g}"
                if batch.epsilon != p.epsilon_on_the_wire
                else "other categories or options"
            )
            raise InvalidData(
                "reports",
                f"reports of clients with the server's parameters, epsilon={p.epsilon_on_the_wire:g}",
                f"reports of clients with {other}",
                "keep one server for each set of parameters; nothing of this batch was added",
            )
        if batch.records.ndim != 2 or batch.records.dtype != np.uint8 or batch.records.shape[1] != p.record_bytes:
            raise InvalidData(
                "reports",
                f"records of {p.record_bytes} bytes",
                "records of another width",
                "send the batch again; nothing of it was added",
            )
        if self.refuse_duplicates and batch.batch in self._batches:
            raise InvalidData(
                "reports", "a batch that is new", "one that was added before", "leave it out; it counts already"
            )
        step = max(1, p.chunk_bytes // p.record_bytes)
        records = np.ascontiguousarray(batch.records)
        chunks = [records[start : start + step] for start in range(0, len(batch), step)]
        for chunk in chunks:
            p.check_records(chunk)
        return chunks

    def _make_room(self, more: int) -> None:
        """Widen sums of 32 bits to 64 bits before one of them could overflow."""
        if self._tally.dtype == np.int32 and self.n + more >= 1 << 31:
            self._tally = self._tally.astype(np.int64)

    def merge(self, other: Server[Result]) -> Server[Result]:
        """Add the sums of another server of an equal protocol, which stays unchanged; return this server."""
        if not isinstance(other, Server):
            raise WrongType("other", "a server", type(other).__name__, "pass what protocol.server() returned")
        if other is self or other.protocol.canonical_parameters != self.protocol.canonical_parameters:
            raise InvalidArgument(
                "other",
                "a second server with equal parameters",
                "itself, or different parameters",
                "merge equal servers",
            )
        if other.n and self.refuse_duplicates and not other.refuse_duplicates:
            raise InvalidArgument(
                "other",
                "a server that knows which batches it has added, as this one does",
                "one with refuse_duplicates=False",
                "start both servers alike; nothing was merged",
            )
        if self.refuse_duplicates and not self._batches.isdisjoint(other._batches):
            raise InvalidData(
                "other",
                "batches that this server does not have",
                "a batch that both have added",
                "add every batch to one server only; nothing was merged",
            )
        self._make_room(other.n)
        self._tally += other._tally
        self.n += other.n
        self.seeded |= other.seeded
        if self.refuse_duplicates:
            self._batches |= other._batches
        return self

    @property
    def nbytes(self) -> int:
        """Return the size of the sums in bytes."""
        return int(self._tally.nbytes)

    def estimate(self, categories: Any = None) -> Result:
        """Return the estimates from all reports added so far; for categories, by default of all of them."""
        if self.n == 0:
            raise InvalidData("reports", "at least one", "none", "add reports first")
        return self.protocol.read(self._tally, self.n, categories, self.seeded)

    def __repr__(self) -> str:
        return f"Server({self.protocol!r}, n={self.n})"
