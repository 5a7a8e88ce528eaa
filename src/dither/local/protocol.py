"""The face of every local protocol: a client that privatizes, and a server that estimates.

A protocol is a frozen description that client and server share. ``privatize`` turns values into
:class:`~dither.local.reports.Reports`, each drawn independently on behalf of one person; everything after that is
post-processing. ``server`` starts a :class:`~dither.local.server.Server`, which adds up reports in constant memory;
``estimate`` is the same in one call.

A protocol of this package implements six hooks: how values become integer codes (:meth:`LocalProtocol.encode`), how
reports are drawn from codes (:meth:`~LocalProtocol.draw`), which records are possible (:meth:`~LocalProtocol.check`),
and how a server adds them up and reads an estimate from the sums (:meth:`~LocalProtocol.new_tally`,
:meth:`~LocalProtocol.tally`, :meth:`~LocalProtocol.read`). Most come from a base: records of one integer
(:mod:`dither.local.index_records`), of a bit for each category (:mod:`dither.local.bit_records`), pure protocols
(:mod:`dither.local.pure`) and sketches (:mod:`dither.local.sketch`).
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
from dither.errors import InvalidArgument
from dither.exact import up
from dither.guarantees import PureDP
from dither.local import labels
from dither.local.estimates import LocalFrequencies, normal_quantile
from dither.local.reports import Records, Reports
from dither.mechanisms.additive import plain
from dither.randomness import Source, resolve

Codes = NDArray[np.int64]
Tally = NDArray[Any]
Floats = NDArray[np.float64]
Result = TypeVar("Result")

MIN_EPSILON = Fraction(1, 10_000)  # below, a thousand million people are too few, and floats cannot tell p from q
MAX_EPSILON = 64


class LocalProtocol(ABC, Generic[Result]):
    """Base of the protocols: what a phone sends, and what the collector learns from many phones.

    *Statement.* For every report r and all values x and x', ``P(r | x) <= e^epsilon P(r | x')``: each report is
    epsilon-DP for the person who sends it, whoever collects it (Kasiviswanathan et al. 2008). Reports of one person
    compose; reports of different people do not.

    >>> import dither as dp
    >>> p = dp.local.SubsetSelection(categories=128, epsilon=1)
    >>> isinstance(p, LocalProtocol), p.guarantee
    (True, PureDP(1))
    """

    wire_code: ClassVar[int]
    """The number of the protocol in the byte format of reports."""

    chunk_bytes: ClassVar[int] = 1 << 19
    """How much a server adds at once."""

    categories: Any
    epsilon: float

    def check_parameters(self) -> None:
        """Validate and store epsilon and the categories; the first thing that a constructor does."""
        report_epsilon(self.epsilon)
        object.__setattr__(self, "epsilon", plain(self.epsilon))
        object.__setattr__(self, "categories", labels.read_categories(self.categories))

    # what is claimed

    @property
    def exact_epsilon(self) -> Fraction:
        """The epsilon of one report as an exact number."""
        return arguments.epsilon(self.epsilon)

    @property
    def guarantee(self) -> PureDP:
        """epsilon-DP for the person who sends the report, whatever their value is replaced by."""
        return PureDP(self.epsilon)

    @property
    def event(self) -> Event:
        """For accountants: one report of one person."""
        return Pure(self.exact_epsilon)

    # the domain

    @property
    def category_count(self) -> int:
        """The number k of categories."""
        return self.categories if isinstance(self.categories, int) else len(self.categories)

    def encode(self, values: Any, name: str = "values") -> Codes:
        """The code of each value, from 0 to k - 1; a value that is no category is refused, without naming it."""
        labels.require_column(values, name)
        return labels.encode(values, self.categories, name)

    def all_codes(self) -> Codes:
        """The codes of all categories."""
        return np.arange(self.category_count, dtype=np.int64)

    # client

    @spends
    def privatize(self, values: Any, *, source: Source | None = None) -> Reports:
        """One report for each value, drawn independently; nothing else about the values leaves this call.

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
        """A server that adds up reports in constant memory.

        >>> import dither as dp
        >>> p = dp.local.HadamardResponse(categories=16, epsilon=1)
        >>> s = p.server()
        >>> s.add(p.privatize([3, 1, 4])).n
        3
        """
        return Server(self, refuse_duplicates=refuse_duplicates)

    def estimate(self, reports: Any, categories: Any = None) -> Result:
        """What a server says of these reports: :class:`Reports`, or their bytes.

        For categories these are unbiased shares of the people who reported, each with its standard error, of the
        ``categories`` asked for, by default all.

        >>> import dither as dp
        >>> p = dp.local.SubsetSelection(categories=4, epsilon=20)
        >>> p.estimate(p.privatize([0, 0, 1, 2])).shares.round(3)[:3]
        array([0.5 , 0.25, 0.25])
        """
        return self.server().add(reports).estimate(categories)

    def _repr_html_(self) -> str:
        """For a notebook: the promise, the size of a report, and the error by how many people report."""
        from dither.local.pictures import fragment

        return fragment(self)

    # accuracy

    @abstractmethod
    def variance(self, n: int, share: float = 0.0) -> float:
        """The variance of an estimated share among n people, for a category of which the true share is ``share``."""

    def error(self, confidence: float = 0.95, *, n: int, share: float = 0.0) -> float:
        """The half-width of a normal confidence interval for the share of a category.

        >>> import dither as dp
        >>> round(dp.local.SubsetSelection(categories=128, epsilon=1).error(n=1_000_000), 5)
        0.00372
        """
        return normal_quantile(confidence) * math.sqrt(self.variance(n, share))

    def people_needed(self, error: float, confidence: float = 0.95) -> int:
        """The number of people for which the share of a rare category is known to within ``error``.

        >>> import dither as dp
        >>> dp.local.SubsetSelection(categories=128, epsilon=1).people_needed(0.001)
        13866852
        """
        z = normal_quantile(confidence)
        return max(1, math.ceil(self.variance(1) * (z / arguments.positive(error, "error")) ** 2))

    # the byte format

    @property
    def canonical_parameters(self) -> str:
        """The text whose hash tells one set of parameters from another in the byte format of reports."""
        names = "" if isinstance(self.categories, int) else f";labels={labels.labels_digest(self.categories)}"
        own = "".join(f";{name}={value}" for name, value in self.own_parameters().items())
        count = "" if self.categories is None else f";categories={self.category_count}"
        return f"{type(self).__name__};epsilon={self.exact_epsilon}{count}{names}{own}"

    def own_parameters(self) -> dict[str, object]:
        """The parameters besides epsilon and the categories."""
        return {}

    @property
    def fingerprint(self) -> bytes:
        """Eight bytes that tell one set of parameters from another: the first of SHA-256 of the canonical text."""
        return hashlib.sha256(self.canonical_parameters.encode()).digest()[:8]

    @property
    def epsilon_on_the_wire(self) -> float:
        """Epsilon as a float, rounded up."""
        return up(self.exact_epsilon)

    @property
    def report_bits(self) -> int:
        """The number of bits in a report, without the header of a batch."""
        return 8 * self.record_bytes

    # hooks

    @property
    @abstractmethod
    def record_bytes(self) -> int:
        """The number of bytes of each record."""

    @abstractmethod
    def draw(self, codes: Codes, source: Source) -> Records:
        """A record for each code: an array of bytes with one row a report."""

    @abstractmethod
    def check(self, records: Records) -> None:
        """Refuse records that no client sends; a server calls it before it adds anything."""

    @abstractmethod
    def new_tally(self) -> Tally:
        """The sums of a server before the first report."""

    @abstractmethod
    def tally(self, tally: Tally, records: Records) -> None:
        """Add records to the sums, in place."""

    @abstractmethod
    def read(self, tally: Tally, n: int, categories: Any, seeded: bool) -> Result:
        """What the sums of n reports say; ``categories`` are what was asked for, None for all."""


class FrequencyProtocol(LocalProtocol[LocalFrequencies]):
    """Base of the protocols whose servers estimate the shares of categories."""

    @abstractmethod
    def shares(self, tally: Tally, n: int, codes: Codes) -> tuple[Floats, Floats]:
        """Unbiased shares of the categories with these codes, and their standard errors."""

    @property
    @abstractmethod
    def report_range(self) -> float:
        """The most that n times an estimated share changes if one report is replaced."""

    @property
    def variance_slope(self) -> float:
        """The most that n times the variance changes with the share; a variance is linear in the share."""
        return abs(self.variance(1, 1.0) - self.variance(1))

    def read(self, tally: Tally, n: int, categories: Any, seeded: bool) -> LocalFrequencies:
        """Unbiased shares of these categories, by default of all, each with its standard error."""
        if categories is not None:
            codes, names = self.encode(categories, "categories"), tuple(plain(list(categories)))
        elif self.categories is None:
            raise InvalidArgument("categories", "the categories to estimate", "none", "pass a list of them")
        else:
            codes = self.all_codes()
            names = tuple(range(self.categories)) if isinstance(self.categories, int) else self.categories
        shares, errors = self.shares(tally, n, codes)
        return LocalFrequencies(names, shares, errors, n, seeded, self.variance_slope / n, self.report_range / n)


def refuse_choice(categories: Any, what: str) -> None:
    """Refuse categories where an estimate has none to choose."""
    if categories is not None:
        raise InvalidArgument("categories", f"none: {what}", "some", "leave them out")


def report_epsilon(value: object) -> Fraction:
    """An epsilon that a local report can have.

    >>> report_epsilon(1)
    Fraction(1, 1)
    """
    exact = arguments.epsilon(value)
    if exact > MAX_EPSILON:
        raise InvalidArgument("epsilon", f"at most {MAX_EPSILON} for one report", value, "pass 10 or less")
    if exact < MIN_EPSILON:
        raise InvalidArgument("epsilon", f"at least {float(MIN_EPSILON):g} for one report", value, "pass 0.1 or more")
    return exact


from dither.local.server import Server  # noqa: E402 it needs the class above, which names it
