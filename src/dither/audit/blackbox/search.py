"""Searching for the pair of neighbors with the largest measured epsilon."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from dither import arguments
from dither.audit.blackbox.measure import Measurement, measure
from dither.audit.blackbox.neighbors import standard_neighbors
from dither.errors import InvalidArgument, WrongType
from dither.guarantees import Guarantee
from dither.neighbors import Neighbors

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
        """The lower bound for the worst pair."""
        return self.worst.epsilon

    @property
    def refuted(self) -> bool:
        """Whether the claim is false, at the stated confidence."""
        return self.worst.refuted

    def table(self) -> list[dict[str, Any]]:
        """One row per pair; ``epsilon`` is None for pairs that were only screened."""
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
        """Plain values, for JSON."""
        worst = {**self.worst.to_dict(), "confidence": self.confidence}
        return {"pair": self.name, "worst": worst, "refuted": self.refuted, "tried": self.table()}

    def __str__(self) -> str:
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
    screening_options = {**_with_delta(options, claim), "confidence": _SCREENING_CONFIDENCE}
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


def _with_delta(options: dict[str, Any], claim: Any) -> dict[str, Any]:
    """The options, with the delta of the claim if it has one."""
    return {**options, "delta": getattr(claim, "delta", None) or options["delta"]}


def _pairs(make_pairs: Any, bounds: Any, neighbors: Neighbors | None, unusual: bool) -> list[tuple[str, Any, Any]]:
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
