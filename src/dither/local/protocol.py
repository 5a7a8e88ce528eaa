"""The face of every local protocol: a client that privatizes, and a server that estimates.

A protocol is a frozen description that client and server share. ``privatize`` turns values into
:class:`~dither.local.reports.Reports`, each drawn independently on behalf of one person; everything after that is
post-processing. ``server`` starts a :class:`~dither.local.server.Server`, which adds up reports in constant memory;
``estimate`` is the same in one call.

A protocol of this package implements six hooks: how values become integer codes (:meth:`LocalProtocol.encode`), how
reports are drawn from codes (:meth:`~LocalProtocol.draw`), which records are possible (:meth:`~LocalProtocol.check`),
and how a server adds them up and reads shares from the sums (:meth:`~LocalProtocol.new_tally`,
:meth:`~LocalProtocol.tally`, :meth:`~LocalProtocol.shares`).
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.accounting import Event, Pure
from dither.budget_hooks import spends
from dither.errors import InvalidArgument, InvalidData, WrongType, message
from dither.exact import up
from dither.guarantees import PureDP
from dither.intake import as_values
from dither.local.estimates import LocalFrequencies, normal_quantile
from dither.local.reports import Records, Reports
from dither.mechanisms.additive import plain
from dither.randomness import Source, resolve

Codes = NDArray[np.int64]
Tally = NDArray[Any]
Floats = NDArray[np.float64]

MIN_EPSILON = Fraction(1, 10_000)  # below, a thousand million people are too few, and floats cannot tell p from q
MAX_EPSILON = 64
MAX_CATEGORIES = 1 << 31


class LocalProtocol(ABC):
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
        object.__setattr__(self, "categories", read_categories(self.categories))

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
        k = self.category_count
        if isinstance(values, (str, bytes, dict)) or not hasattr(values, "__len__"):
            raise WrongType(
                message(
                    name, "a column of values", type(values).__name__, "pass a list or an array, one value a person"
                )
            )
        if isinstance(self.categories, int):
            codes = integers(values)
        else:
            index = {label: code for code, label in enumerate(self.categories)}
            labels = as_values(values, "label", name=name).values.tolist()
            codes = np.array([index.get(label, -1) for label in labels], dtype=np.int64)
        if codes.size and not (int(codes.min()) >= 0 and int(codes.max()) < k):
            raise InvalidData(
                message(
                    name, f"one of the {k} categories each", "a value that is none", "add a category for the others"
                )
            )
        return codes

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

    def server(self, *, refuse_duplicates: bool = True) -> Server:
        """A server that adds up reports in constant memory.

        >>> import dither as dp
        >>> p = dp.local.HadamardResponse(categories=16, epsilon=1)
        >>> s = p.server()
        >>> s.add(p.privatize([3, 1, 4])).n
        3
        """
        return Server(self, refuse_duplicates=refuse_duplicates)

    def estimate(self, reports: Any, categories: Any = None) -> LocalFrequencies:
        """Unbiased shares of the categories among the people who reported, each with its standard error.

        ``categories`` are those to estimate, by default all. ``reports`` are :class:`Reports` or their bytes.

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
        names = "" if isinstance(self.categories, int) else f";labels={_labels_digest(self.categories)}"
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
    def shares(self, tally: Tally, n: int, codes: Codes) -> tuple[Floats, Floats]:
        """Unbiased shares of the categories with these codes, and their standard errors."""


def report_epsilon(value: object) -> Fraction:
    """An epsilon that a local report can have.

    >>> report_epsilon(1)
    Fraction(1, 1)
    """
    exact = arguments.epsilon(value)
    if exact > MAX_EPSILON:
        raise InvalidArgument(message("epsilon", f"at most {MAX_EPSILON} for one report", value, "pass 10 or less"))
    if exact < MIN_EPSILON:
        raise InvalidArgument(
            message("epsilon", f"at least {float(MIN_EPSILON):g} for one report", value, "pass 0.1 or more")
        )
    return exact


def read_categories(categories: Any) -> int | tuple[Any, ...]:
    """Categories as their number or as a tuple of labels that differ.

    >>> read_categories(["a", "b"]), read_categories(3)
    (('a', 'b'), 3)
    """
    if not isinstance(categories, (Sequence, np.ndarray)) or isinstance(categories, (str, bytes)):
        if hasattr(categories, "__iter__"):
            kind = type(categories).__name__
            raise WrongType(
                message("categories", "a list of labels or their number", kind, "pass a list, in one order")
            )
        return arguments.whole(categories, "categories", 2, MAX_CATEGORIES)
    labels = tuple(plain(categories if isinstance(categories, np.ndarray) else list(categories)))
    try:
        different = len(set(labels))
    except TypeError:
        raise WrongType(
            message("categories", "hashable labels", "one that is not", "name categories by strings or ints")
        ) from None
    if different != len(labels):
        raise InvalidArgument(message("categories", "labels that differ", "a label twice", "name each category once"))
    if different < 2:
        raise InvalidArgument(message("categories", "at least two", different, "name two categories or more"))
    return labels


def integers(values: Any) -> Codes:
    """Whole numbers as int64; -1 for what is none.

    >>> integers([3, True, 2.5, None])
    array([ 3, -1, -1, -1])
    """
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iu":
        if values.dtype == np.uint64:
            return np.where(values > np.uint64((1 << 63) - 1), np.int64(-1), values.astype(np.int64))
        return values.astype(np.int64)
    items = as_values(values, "label", name="values").values.tolist()
    return np.array([item if type(item) is int and 0 <= item < 1 << 62 else -1 for item in items], dtype=np.int64)


def _labels_digest(labels: tuple[Any, ...]) -> str:
    text = "\x00".join(f"{type(label).__name__}:{label}" for label in labels)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


from dither.local.server import Server  # noqa: E402 it needs the class above, which names it

__all__ = ["Codes", "Floats", "LocalProtocol", "Tally", "integers", "read_categories", "report_epsilon"]
