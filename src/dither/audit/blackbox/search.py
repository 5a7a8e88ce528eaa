"""Searching for the pair of neighbours at which code loses most."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from dither import arguments
from dither.audit.blackbox.measure import Measurement, measure
from dither.audit.blackbox.neighbors import catalogue
from dither.errors import InvalidArgument, WrongType, message
from dither.guarantees import Guarantee
from dither.neighbors import Neighbors

_SCREENED = 300
_SCREENING_CONFIDENCE = 0.7


@dataclass(frozen=True)
class Tried:
    """One pair: what a few runs suggested, and what was measured if it was among the most suspect."""

    name: str
    screened: float
    measured: Measurement | None = None


@dataclass(frozen=True)
class Search:
    """The worst pair found, and all that were tried, the most suspect first.

    >>> import dither as dp, numpy as np
    >>> forgot = lambda x: np.mean(x) + dp.Laplace(sensitivity=0.01, epsilon=1).release(0.0)
    >>> found = search(forgot, bounds=(0, 1), neighbors=dp.ReplaceOne, claim=1, trials=2000)
    >>> found.refuted
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
        """Whether the claim is false, with that confidence."""
        return self.worst.refuted

    def table(self) -> list[dict[str, Any]]:
        """A row for each pair; ``epsilon`` is None where only the few runs of the screening were made."""
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
    """Measure ``fn`` at many pairs of neighbours and report the worst.

    *Statement.* The largest of the measured bounds is at most the true epsilon of ``fn`` (at ``delta``, under the
    relation of the pairs) with probability ``confidence``.

    *Why.* A few runs of every pair, used for nothing else, pick the ``finalists``. Each of these is measured with
    fresh runs at confidence ``1 - (1 - confidence) / finalists``, so all their bounds hold together with probability
    ``confidence``; the picking is independent of them. With a claim the search ends at the first refutation.

    Parameters
    ----------
    fn
        As for :func:`dither.audit.measure`; the same holds for ``trials`` (for each finalist), ``delta``, ``claim``,
        ``batch``, ``processes``, ``progress`` and ``features``.
    make_pairs
        Triples (name, x, x_neighbor), or a function that makes them. By default the catalogue of
        :func:`dither.audit.blackbox.neighbors.catalogue`, which needs ``bounds`` and ``neighbors`` and has arrays for
        data; ``unusual=False`` leaves NaN and the like out of it.

    >>> import dither as dp
    >>> mean = lambda x: dp.stats.mean(x, bounds=(0, 1), epsilon=1)
    >>> pairs = [("all at 0, one moved to 1", [0, 0, 0], [0, 0, 1]), ("one moved by a little", [0.5, 1.0], [0.6, 1.0])]
    >>> search(mean, pairs, claim=1, trials=500, confidence=1 - 1e-9).refuted
    False
    """
    level = arguments.confidence(confidence)
    count, most = arguments.whole(trials, "trials", 20, 1 << 32), arguments.whole(finalists, "finalists")
    pairs = _pairs(make_pairs, bounds, neighbors, unusual)
    options: dict[str, Any] = {"delta": delta, "batch": batch, "processes": processes, "features": features}
    few = max(20, min(_SCREENED, count // 2))
    suspects = []
    for name, x, neighbor in pairs:
        first = measure(fn, x, neighbor, trials=few, confidence=_SCREENING_CONFIDENCE, **_own(options, claim))
        suspects.append((first.epsilon, first.estimate, name, x, neighbor))
    suspects.sort(key=lambda suspect: suspect[:2], reverse=True)
    chosen = min(most, len(suspects))
    item = 1 - (1 - level) / chosen
    tried: list[Tried] = []
    for place, (screened, _, name, x, neighbor) in enumerate(suspects):
        done = any(result.measured and result.measured.refuted for result in tried)
        measured = None
        if place < chosen and not done:
            measured = measure(
                fn, x, neighbor, trials=count, confidence=item, claim=claim, progress=progress, **options
            )
        tried.append(Tried(name, screened, measured))
    worst = max((result for result in tried if result.measured), key=lambda result: result.measured.epsilon)  # type: ignore[union-attr]
    assert worst.measured is not None
    return Search(worst.name, worst.measured, tuple(tried), level)


def _own(options: dict[str, Any], claim: Any) -> dict[str, Any]:
    """The options, with the delta of the claim if it brings one."""
    return {**options, "delta": getattr(claim, "delta", None) or options["delta"]}


def _pairs(make_pairs: Any, bounds: Any, neighbors: Neighbors | None, unusual: bool) -> list[tuple[str, Any, Any]]:
    if make_pairs is None:
        if neighbors is None or bounds is None:
            missing = "neighbors" if neighbors is None else "bounds"
            raise InvalidArgument(
                message(missing, "given, or make_pairs", "none", "pass bounds=(0, 1), neighbors=dither.ReplaceOne")
            )
        make_pairs = catalogue(bounds, neighbors, unusual=unusual)
    result = []
    for triple in make_pairs() if callable(make_pairs) else make_pairs:
        parts = tuple(triple)
        if len(parts) != 3:
            raise WrongType(
                message("make_pairs", "triples (name, x, x_neighbor)", f"{len(parts)} parts", "name each pair")
            )
        result.append((str(parts[0]), parts[1], parts[2]))
    if not result:
        raise InvalidArgument(message("make_pairs", "at least one pair", "none", "give one (name, x, x_neighbor)"))
    return result
