"""Scores for outputs: large where they speak for the neighbour, small where they speak for x."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dither.audit.blackbox.bits import hash_of
from dither.audit.blackbox.features import Array, Outputs
from dither.audit.blackbox.joint import Joint
from dither.audit.blackbox.views import View

Floats = NDArray[np.float64]
Labels = NDArray[np.bool_]
Look = View | Joint

_PRIOR = 1.0
_MOST_BINS = 128
_MOST_LABELS = 512
_OTHER = "…"
_SHOWN = 60


@dataclass(frozen=True)
class Bins:
    """Atoms and quantile bins of numbers, or the labels of what is not a number.

    >>> Bins.of(np.array([0.0] * 50 + [1.0, 2.0, 3.0, 4.0] * 5))(np.array([0.0, 0.1, 9.0])).tolist()
    [1, 2, 10]
    """

    edges: Floats
    labels: tuple[str, ...] = ()
    shared: bool = True
    """Whether one bin may hold several values that were seen."""

    @classmethod
    def of(cls, column: Array) -> Bins:
        """Bins that hold about as much each; a value that fills a good part of one is a bin of its own."""
        if column.dtype == object:
            seen = Counter(map(str, column))
            names = sorted(seen, key=lambda name: (-seen[name], name))[:_MOST_LABELS]
            return cls(np.empty(0), tuple(names), len(seen) > _MOST_LABELS)
        numbers = column[~np.isnan(column)]
        count = min(_MOST_BINS, max(4, int(numbers.size**0.4)))
        values, counts = np.unique(numbers, return_counts=True)
        common = counts > (0 if values.size <= count else max(5.0, numbers.size / count / 3))
        atoms, rest = values[common], np.repeat(values[~common], counts[~common])
        share = max(1, round(count * rest.size / max(1, numbers.size)))
        places = (np.arange(1, share) * rest.size) // share
        edges = np.unique(np.concatenate([atoms, np.nextafter(atoms, np.inf), rest[places]]))
        return cls(edges, shared=bool(rest.size))

    @property
    def count(self) -> int:
        """How many there are."""
        return (len(self.labels) if self.labels else self.edges.size) + 1

    def __call__(self, column: Array) -> NDArray[np.intp]:
        """The bin of each value."""
        if self.labels:
            places = {label: place for place, label in enumerate(self.labels)}
            return np.array([places.get(str(value), len(places)) for value in column], dtype=np.intp)
        if column.dtype == object:
            return np.full(column.size, self.edges.size, dtype=np.intp)
        return np.searchsorted(self.edges, column, side="right")

    def name(self, place: int) -> str:
        """A bin in words."""
        if self.labels:
            return _printable(self.labels[place]) if place < len(self.labels) else _OTHER
        low = -math.inf if place == 0 else float(self.edges[place - 1])
        high = math.inf if place == self.edges.size else float(self.edges[place])
        return f"{low:.6g}" if math.nextafter(low, math.inf) == high else f"[{low:.6g}, {high:.6g})"


def _printable(label: str) -> str:
    """A label that a terminal can be shown."""
    short = label if len(label) <= _SHOWN else f"{label[:_SHOWN]}…"
    return short if short.isprintable() else ascii(short)


@dataclass(frozen=True)
class Large:
    """Score by the size of a number itself; ``sign`` is -1 if small ones speak for the neighbour."""

    view: Look
    sign: float

    def __call__(self, outputs: Outputs) -> Floats:
        """One score for each run; NaN scores nothing."""
        return finite(self.sign * self.view(outputs))

    def where(self, low: float, high: float) -> tuple[str, str]:
        """For which outputs the score is at least ``high``, and for which at most ``low``."""
        more, less = (">=", "<=") if self.sign > 0 else ("<=", ">=")
        return f"{self.view.name} {more} {self.sign * high:.6g}", f"{self.view.name} {less} {self.sign * low:.6g}"


@dataclass(frozen=True)
class Ratio:
    """Score by the log-likelihood ratio of the bin."""

    view: Look
    bins: Bins
    ratios: Floats

    def __call__(self, outputs: Outputs) -> Floats:
        """One score for each run."""
        return np.asarray(self.ratios[self.bins(self.view(outputs))], dtype=np.float64)

    def where(self, low: float, high: float) -> tuple[str, str]:
        """For which outputs the score is at least ``high``, and for which at most ``low``."""
        return self._words(self.ratios >= high), self._words(self.ratios <= low)

    def _words(self, chosen: Labels) -> str:
        names = [self.bins.name(place) for place in np.flatnonzero(chosen).tolist()]
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        return f"{self.view.name} in {{{shown}}}"


@dataclass(frozen=True)
class Atoms:
    """Score by the log-likelihood ratio of the very value, for those that came more than once; others score 0."""

    view: Look
    values: Array
    ratios: Floats

    @classmethod
    def of(cls, view: Look, column: Array, labels: Labels) -> Atoms:
        """Learn from values with their labels."""
        values, codes, counts = np.unique(column, return_inverse=True, return_counts=True)
        often = counts > 1
        ours = np.bincount(codes[labels], minlength=values.size)
        ratios = log_ratios(ours, counts - ours)
        return cls(view, values[often], ratios[often])

    def __call__(self, outputs: Outputs) -> Floats:
        """One score for each run."""
        return self.of_values(exact_values(self.view(outputs)))

    def of_values(self, column: Array) -> Floats:
        """The scores of values."""
        if not self.values.size:
            return np.zeros(column.size)
        places = np.minimum(np.searchsorted(self.values, column), self.values.size - 1)
        return np.where(self.values[places] == column, self.ratios[places], 0.0)

    def where(self, low: float, high: float) -> tuple[str, str]:
        """For which outputs the score is at least ``high``, and for which at most ``low``."""
        return self._words(self.ratios >= high), self._words(self.ratios <= low)

    def _words(self, chosen: Labels) -> str:
        values = self.values[chosen]
        shown = ", ".join(f"{value:.6g}" for value in values[:4].tolist())
        return f"{self.view.name} is exactly one of {{{shown}{f' and {values.size - 4} more' * (values.size > 4)}}}"


def exact_values(column: Array) -> Array:
    """Values, or hashes of labels, that are equal where what they stand for is."""
    if column.dtype != object:
        with np.errstate(invalid="ignore"):
            return column.astype(np.float64) if column.dtype.kind != "f" else column
    return np.fromiter((hash_of(label) >> 11 for label in column), np.float64, column.size)


@dataclass(frozen=True)
class Blend:
    """Score by a weighted sum of ratios."""

    parts: tuple[Ratio, ...]
    weights: Floats

    def __call__(self, outputs: Outputs) -> Floats:
        """One score for each run."""
        total = np.zeros(outputs.size)
        for part, weight in zip(self.parts, self.weights.tolist(), strict=True):
            total += weight * part(outputs)
        return total

    def where(self, low: float, high: float) -> tuple[str, str]:
        """For which outputs the score is at least ``high``, and for which at most ``low``."""
        names = ", ".join(part.view.name for part in self.parts[:4])
        names += f" and {len(self.parts) - 4} more" if len(self.parts) > 4 else ""
        return f"score of {names} >= {high:.3g}", f"score of {names} <= {low:.3g}"


Score = Large | Ratio | Atoms | Blend


def finite(scores: Array) -> Floats:
    """Infinities as the largest floats: an infinite cut is for a set that is empty."""
    most = np.finfo(np.float64).max
    return np.clip(scores.astype(np.float64), -most, most)


def log_ratios(neighbor: Array, x: Array) -> Floats:
    """Log-likelihood ratios of the bins, drawn to 0 where there is little to go by."""
    total, other = neighbor.sum() + _PRIOR, x.sum() + _PRIOR
    return np.asarray(np.log((neighbor + _PRIOR) / total * other / (x + _PRIOR)), dtype=np.float64)


__all__ = ["Atoms", "Bins", "Blend", "Large", "Look", "Ratio", "Score", "exact_values", "finite", "log_ratios"]
