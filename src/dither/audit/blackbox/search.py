"""Searching for the pair of neighbors with the largest measured epsilon.

For finding violations, the choice of the pair matters more than the statistics. Code that is right for most data fails
where all records are equal, where one is at a bound, where the data set is empty, where integers overflow, or where a
value is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dither import arguments
from dither.audit.blackbox.measure import Measurement, measure
from dither.audit.outputs.canonical import ContentEquality
from dither.errors import InvalidArgument, WrongType
from dither.guarantees import Guarantee
from dither.neighbors import AddRemove, Neighbors, relation

_RECORDS = 6
_MANY = 1000
_ROWS_PER_PERSON = 10


@dataclass(frozen=True, eq=False)
class Pair(ContentEquality):
    """Two data sets that differ in one person; unpacks as ``name, x, x_neighbor``.

    >>> name, x, x_neighbor = Pair("one more", [1], [1, 2])
    """

    name: str
    x: Any
    x_neighbor: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.name, self.x, self.x_neighbor))


def standard_neighbors(
    bounds: tuple[float, float], neighbors: Neighbors, *, records: int = _RECORDS, unusual: bool = True
) -> list[Pair]:
    """Return standard pairs of neighboring arrays, for functions of an array of numbers with public ``bounds``.

    They include equal records, ties, one outlier at each bound, an empty data set, a single record, and many records.
    With ``unusual`` they also include values that a column may contain in spite of its bounds: NaN, infinities, values
    far outside, the limits of integer types, and negative zero. A function that raises an error for such values
    reveals their presence.

    >>> import dither as dp
    >>> [pair.name for pair in standard_neighbors((0, 1), dp.AddRemove)][:3]
    ['nothing, one record at the lower bound', 'nothing, one record at the upper bound', 'one more at the lower bound']
    >>> first = standard_neighbors((0.0, 1.0), dp.ReplaceOne)[0]
    >>> first.x, first.x_neighbor
    (array([0.]), array([1.]))
    """
    low, high = arguments.bounds(bounds)
    if type(low) is not type(high):
        low, high = float(low), float(high)
    count = arguments.whole(records, "records", 2)
    pairs_under = _added if relation(neighbors) is AddRemove else _replaced
    result = list(pairs_under(low, high, count))
    if unusual:
        result += _unusual(low, high, count, neighbors)
    return result


def _bases(low: Any, high: Any, count: int) -> Iterator[tuple[str, Any]]:
    """Yield named data sets of ``count`` records with extreme distributions between the bounds ``low`` and ``high``.

    One record is added to each of them, or changed, to make a pair. The last has a thousand records.
    """
    middle = type(low)((low + high) / 2)
    yield "all at the lower bound", np.full(count, low)
    yield "all at the upper bound", np.full(count, high)
    yield "all in the middle", np.full(count, middle)
    yield "half at each bound", np.where(np.arange(count) % 2 == 0, low, high)
    yield "one at the lower bound, the others at the upper", np.array([low] + [high] * (count - 1))
    yield "one at the upper bound, the others at the lower", np.array([high] + [low] * (count - 1))
    yield "spread evenly", np.linspace(low, high, count).astype(np.full(1, low).dtype)
    yield "many at the upper bound", np.full(_MANY, high)


def _added(low: Any, high: Any, count: int) -> Iterator[Pair]:
    """Yield pairs of which the second data set has one record more, at one of the bounds ``low`` and ``high``."""
    empty = np.full(0, low)
    yield Pair("nothing, one record at the lower bound", empty, np.array([low]))
    yield Pair("nothing, one record at the upper bound", empty, np.array([high]))
    for bound, value in (("lower", low), ("upper", high)):
        yield Pair(f"one more at the {bound} bound", np.array([value]), np.array([value, value]))
        for name, base in _bases(low, high, count):
            yield Pair(f"{name}, one more at the {bound} bound", base, np.append(base, value))


def _replaced(low: Any, high: Any, count: int) -> Iterator[Pair]:
    """Yield pairs in which one record is moved to one of the bounds ``low`` and ``high``.

    ``count`` is the number of records of most data sets. Data sets that lie at that bound altogether are left out.
    """
    yield Pair("a single record, lower to upper bound", np.array([low]), np.array([high]))
    for bound, value in (("lower", low), ("upper", high)):
        for name, base in _bases(low, high, count):
            changed = base.copy()
            index = int(np.argmax(changed != value))
            if changed[index] != value:
                changed[index] = value
                yield Pair(f"{name}, one moved to the {bound} bound", base, changed)


def _unusual(low: Any, high: Any, count: int, neighbors: Neighbors) -> Iterator[Pair]:
    """Yield pairs that differ in a value which a column may contain in spite of its bounds, such as NaN.

    The other ``count`` records lie at the bound ``low``, are NaN, or are the limits of an integer type, where a
    difference overflows. ``neighbors`` says whether the value is added or replaces a record.
    """
    usual = np.full(count, float(low))
    numbers = {"NaN": np.nan, "infinity": np.inf, "minus infinity": -np.inf, "1e308": 1e308, "minus zero": -0.0}
    for name, value in numbers.items():
        yield _with_record(f"one {name}", usual, value, neighbors)
    yield _with_record("all NaN but one", np.full(count, np.nan), float(high), neighbors)
    for kind in (np.uint8, np.int64):
        limits = np.iinfo(kind)
        yield _with_record(
            f"{kind.__name__} at its largest", np.full(count, limits.max, dtype=kind), limits.min, neighbors
        )
        if limits.min:
            yield _with_record(
                f"{kind.__name__} at its least", np.full(count, limits.min, dtype=kind), limits.max, neighbors
            )


def _with_record(name: str, base: Any, value: Any, neighbors: Neighbors) -> Pair:
    """Return a pair in which ``value`` is added to the data set ``base``, or replaces its last record."""
    if neighbors is AddRemove:
        return Pair(f"{name}, added", base, np.append(base, np.array([value], dtype=base.dtype)))
    changed = base.copy()
    changed[-1] = value
    return Pair(f"{name}, replacing a record", base, changed)


def multi_row_neighbors(
    bounds: tuple[float, float], neighbors: Neighbors, *, rows: int = _ROWS_PER_PERSON
) -> list[Pair]:
    """Return pairs of lists of rows ``{"id": ..., "value": ...}`` in which one person has many rows.

    They are for functions whose guarantee is per person rather than per row. Values lie at the ``bounds``; ``rows`` is
    the number of rows of that person. Under ``AddRemove`` the person is in one data set only; under ``ReplaceOne`` the
    person's values change, or all rows but one are removed.

    >>> import dither as dp
    >>> [pair.name for pair in multi_row_neighbors((0, 1), dp.AddRemove)]
    ['ten rows of one person at the lower bound', 'ten rows of one person at the upper bound', 'nobody else']
    """
    low, high = arguments.bounds(bounds)
    others = [{"id": f"p{i}", "value": low} for i in range(_RECORDS)]

    def person(value: Any) -> list[dict[str, Any]]:
        """Return all rows of the person ``q``, each with this value."""
        return [{"id": "q", "value": value} for _ in range(rows)]

    count = "ten" if rows == _ROWS_PER_PERSON else str(rows)
    if relation(neighbors) is AddRemove:
        return [
            Pair(f"{count} rows of one person at the lower bound", others, others + person(low)),
            Pair(f"{count} rows of one person at the upper bound", others, others + person(high)),
            Pair("nobody else", [], person(high)),
        ]
    return [
        Pair(
            f"{count} rows of one person, lower to upper bound",
            others + person(low),
            others + person(high),
        ),
        Pair(f"one row for {count}", others + person(high)[:1], others + person(high)),
    ]


_SCREENED = 300
_SCREENING_CONFIDENCE = 0.7


@dataclass(frozen=True)
class Tried:
    """One pair: the bound from a few screening runs, and the measurement if it was among the finalists."""

    name: str
    screened: float
    measured: Measurement | None = None


@dataclass(frozen=True)
class Search:
    """The worst pair, and all pairs that were tried, ordered by the screening.

    >>> import dither as dp, numpy as np
    >>> forgot = lambda x: np.mean(x) + dp.Laplace(sensitivity=0.01, epsilon=1).release(0.0)
    >>> result = search(forgot, bounds=(0, 1), neighbors=dp.ReplaceOne, claim=1, trials=2000)
    >>> result.refuted
    True
    """

    name: str
    worst: Measurement
    tried: tuple[Tried, ...] = field(repr=False)
    confidence: float

    @property
    def epsilon(self) -> float:
        """Return the lower bound on epsilon for the worst pair."""
        return self.worst.epsilon

    @property
    def refuted(self) -> bool:
        """Return whether the claim is false, at the stated confidence."""
        return self.worst.refuted

    def table(self) -> list[dict[str, Any]]:
        """Return one row per pair; ``epsilon`` is None for pairs that were only screened."""
        return [
            {
                "pair": item.name,
                "screened": item.screened,
                "epsilon": item.measured.epsilon if item.measured else None,
                "estimate": item.measured.estimate if item.measured else None,
                "trials": item.measured.trials if item.measured else None,
                "refuted": bool(item.measured and item.measured.refuted),
            }
            for item in self.tried
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the search as plain values, for JSON."""
        worst = {**self.worst.to_dict(), "confidence": self.confidence}
        return {"pair": self.name, "worst": worst, "refuted": self.refuted, "tried": self.table()}

    def __str__(self) -> str:
        """Return the name of the worst pair, its measurement, and how many pairs were tried and measured."""
        count = sum(item.measured is not None for item in self.tried)
        return (
            f"worst of {len(self.tried)} pairs, {count} of them measured: {self.name}\n"
            f"{self.worst}\n(all of them together hold with {100 * self.confidence:.12g} % confidence)"
        )


def search(
    fn: Callable[..., Any],
    make_pairs: Callable[[], Iterable[Any]] | Iterable[Any] | None = None,
    *,
    trials: int = 20_000,
    confidence: float = 0.99,
    delta: float = 0.0,
    claim: float | Guarantee | None = None,
    bounds: tuple[float, float] | None = None,
    neighbors: Neighbors | None = None,
    unusual: bool = True,
    finalists: int = 4,
    batch: bool = False,
    processes: int | None = None,
    progress: bool = False,
    features: Callable[[Any], Any] | None = None,
) -> Search:
    """Measure ``fn`` at many pairs of neighbors and report the worst.

    *Statement.* The largest of the measured bounds is at most the true epsilon of ``fn`` (at ``delta``, under the
    relation of the pairs) with probability ``confidence``.

    *Proof.* A few runs of every pair, used for nothing else, select the ``finalists``. Each finalist is measured with
    fresh runs, independent of the selection, at confidence ``1 - (1 - confidence) / finalists``, so by the union bound
    all bounds hold together with probability ``confidence``. With a claim, the search stops at the first refutation.

    Parameters
    ----------
    fn
        As for :func:`dither.audit.measure`; the same holds for ``trials`` (for each finalist), ``delta``, ``claim``,
        ``batch``, ``processes``, ``progress`` and ``features``.
    make_pairs
        Triples (name, x, x_neighbor), or a function that returns them. By default the arrays of
        :func:`dither.audit.standard_neighbors`, which needs ``bounds`` and ``neighbors``; ``unusual=False`` leaves out
        NaN and similar values.
    confidence
        The probability with which the statement holds.
    finalists
        The number of pairs, at most, that are measured at full length.

    >>> import dither as dp
    >>> mean = lambda x: dp.stats.mean(x, bounds=(0, 1), epsilon=1)
    >>> pairs = [("all at 0, one moved to 1", [0, 0, 0], [0, 0, 1]), ("one moved by a little", [0.5, 1.0], [0.6, 1.0])]
    >>> search(mean, pairs, claim=1, trials=500, confidence=1 - 1e-9).refuted
    False
    """
    level = arguments.confidence(confidence)
    count, max_finalists = arguments.whole(trials, "trials", 20, 1 << 32), arguments.whole(finalists, "finalists")
    pairs = _pairs(make_pairs, bounds, neighbors, unusual)
    options: dict[str, Any] = {"delta": delta, "batch": batch, "processes": processes, "features": features}
    screening_trials = max(20, min(_SCREENED, count // 2))
    delta = getattr(claim, "delta", None) or options["delta"]
    screening_options = {**options, "delta": delta, "confidence": _SCREENING_CONFIDENCE}
    screenings = []
    for name, x, neighbor in pairs:
        first = measure(fn, x, neighbor, trials=screening_trials, **screening_options)
        screenings.append((first.epsilon, first.estimate, name, x, neighbor))
    screenings.sort(key=lambda item: item[:2], reverse=True)
    chosen = min(max_finalists, len(screenings))
    finalist_confidence = 1 - (1 - level) / chosen
    tried: list[Tried] = []
    for index, (screened, _, name, x, neighbor) in enumerate(screenings):
        refuted = any(result.measured and result.measured.refuted for result in tried)
        measured = None
        if index < chosen and not refuted:
            measured = measure(
                fn, x, neighbor, trials=count, confidence=finalist_confidence, claim=claim, progress=progress, **options
            )
        tried.append(Tried(name, screened, measured))
    name, worst = max(
        ((item.name, item.measured) for item in tried if item.measured is not None), key=lambda pair: pair[1].epsilon
    )
    return Search(name, worst, tuple(tried), level)


def _pairs(make_pairs: Any, bounds: Any, neighbors: Neighbors | None, unusual: bool) -> list[tuple[str, Any, Any]]:
    """Return the pairs to try as triples ``(name, x, x_neighbor)``: those of ``make_pairs``, or else the standard ones.

    ``make_pairs`` is a sequence of triples or a function that returns one. If it is None, ``bounds`` and ``neighbors``
    are required, and ``unusual`` says whether NaN and similar values are among the records.
    """
    if make_pairs is None:
        if neighbors is None or bounds is None:
            missing = "neighbors" if neighbors is None else "bounds"
            raise InvalidArgument(
                missing, "given, or make_pairs", "none", "pass bounds=(0, 1), neighbors=dither.ReplaceOne"
            )
        make_pairs = standard_neighbors(bounds, neighbors, unusual=unusual)
    result = []
    for triple in make_pairs() if callable(make_pairs) else make_pairs:
        items = tuple(triple)
        if len(items) != 3:
            raise WrongType("make_pairs", "triples (name, x, x_neighbor)", f"{len(items)} parts", "name each pair")
        result.append((str(items[0]), items[1], items[2]))
    if not result:
        raise InvalidArgument("make_pairs", "at least one pair", "none", "give one (name, x, x_neighbor)")
    return result
