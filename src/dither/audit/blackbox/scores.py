"""Scores of outputs: large scores favor the neighbor, small scores favor x."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dither.audit.blackbox.bits import label_hash
from dither.audit.blackbox.features import Array, Outputs
from dither.audit.blackbox.joint import JointView
from dither.audit.blackbox.views import View
from dither.audit.outputs.canonical import ContentEquality

Floats = NDArray[np.float64]
Labels = NDArray[np.bool_]
AnyView = View | JointView

_PRIOR = 1.0
_MAX_BINS = 128
_MAX_LABELS = 512
_OTHER = "…"
_MAX_SHOWN = 60


@dataclass(frozen=True, eq=False)
class Bins(ContentEquality):
    """Bins of a column: atoms and quantile bins for numbers, one bin per label for everything else.

    >>> Bins.of(np.array([0.0] * 50 + [1.0, 2.0, 3.0, 4.0] * 5))(np.array([0.0, 0.1, 9.0])).tolist()
    [1, 2, 10]
    """

    edges: Floats
    labels: tuple[str, ...] = ()
    shared: bool = True
    """Whether some bin may contain several distinct observed values."""

    @classmethod
    def of(cls, column: Array) -> Bins:
        """Bins of roughly equal counts; a frequent value gets a bin of its own."""
        if column.dtype == object:
            frequencies = Counter(map(str, column))
            names = sorted(frequencies, key=lambda name: (-frequencies[name], name))[:_MAX_LABELS]
            return cls(np.empty(0), tuple(names), len(frequencies) > _MAX_LABELS)
        numbers = column[~np.isnan(column)]
        count = min(_MAX_BINS, max(4, int(numbers.size**0.4)))
        values, counts = np.unique(numbers, return_counts=True)
        common = counts > (0 if values.size <= count else max(5.0, numbers.size / count / 3))
        atoms, rest = values[common], np.repeat(values[~common], counts[~common])
        share = max(1, round(count * rest.size / max(1, numbers.size)))
        indices = (np.arange(1, share) * rest.size) // share
        edges = np.unique(np.concatenate([atoms, np.nextafter(atoms, np.inf), rest[indices]]))
        return cls(edges, shared=bool(rest.size))

    @property
    def count(self) -> int:
        """The number of bins."""
        return (len(self.labels) if self.labels else self.edges.size) + 1

    def __call__(self, column: Array) -> NDArray[np.intp]:
        """The bin of each value."""
        if self.labels:
            indices = {label: index for index, label in enumerate(self.labels)}
            return np.array([indices.get(str(value), len(indices)) for value in column], dtype=np.intp)
        if column.dtype == object:
            return np.full(column.size, self.edges.size, dtype=np.intp)
        return np.searchsorted(self.edges, column, side="right")

    def name(self, index: int) -> str:
        """A description of a bin for reports."""
        if self.labels:
            return _printable(self.labels[index]) if index < len(self.labels) else _OTHER
        low = -math.inf if index == 0 else float(self.edges[index - 1])
        high = math.inf if index == self.edges.size else float(self.edges[index])
        return f"{low:.6g}" if math.nextafter(low, math.inf) == high else f"[{low:.6g}, {high:.6g})"


def _printable(label: str) -> str:
    """A label shortened and escaped for display on a terminal."""
    short = label if len(label) <= _MAX_SHOWN else f"{label[:_MAX_SHOWN]}…"
    return short if short.isprintable() else ascii(short)


@dataclass(frozen=True)
class ValueScore:
    """Scores by the value of the view itself; ``sign`` is -1 if small values favor the neighbor."""

    view: AnyView
    sign: float

    def __call__(self, outputs: Outputs) -> Floats:
        """One score for each run; NaN where the value is NaN."""
        return finite(self.sign * self.view(outputs))

    def where(self, low: float, high: float) -> tuple[str, str]:
        """Descriptions of the outputs with scores of at least ``high`` and of at most ``low``."""
        more, less = (">=", "<=") if self.sign > 0 else ("<=", ">=")
        return f"{self.view.name} {more} {self.sign * high:.6g}", f"{self.view.name} {less} {self.sign * low:.6g}"


@dataclass(frozen=True, eq=False)
class LikelihoodRatioScore(ContentEquality):
    """Scores by the log-likelihood ratio of the bin."""

    view: AnyView
    bins: Bins
    ratios: Floats

    def __call__(self, outputs: Outputs) -> Floats:
        """One score for each run."""
        return np.asarray(self.ratios[self.bins(self.view(outputs))], dtype=np.float64)

    def where(self, low: float, high: float) -> tuple[str, str]:
        """Descriptions of the outputs with scores of at least ``high`` and of at most ``low``."""
        return self._describe(self.ratios >= high), self._describe(self.ratios <= low)

    def _describe(self, chosen: Labels) -> str:
        names = [self.bins.name(index) for index in np.flatnonzero(chosen).tolist()]
        listed = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        return f"{self.view.name} in {{{listed}}}"


@dataclass(frozen=True, eq=False)
class AtomScore(ContentEquality):
    """Scores by the log-likelihood ratio of the exact value, for values observed more than once; others score 0."""

    view: AnyView
    values: Array
    ratios: Floats

    @classmethod
    def of(cls, view: AnyView, column: Array, labels: Labels) -> AtomScore:
        """Learn the ratios from labeled values."""
        values, codes, counts = np.unique(column, return_inverse=True, return_counts=True)
        repeated = counts > 1
        neighbor_counts = np.bincount(codes[labels], minlength=values.size)
        ratios = log_ratios(neighbor_counts, counts - neighbor_counts)
        return cls(view, values[repeated], ratios[repeated])

    def __call__(self, outputs: Outputs) -> Floats:
        """One score for each run."""
        return self.of_values(exact_values(self.view(outputs)))

    def of_values(self, column: Array) -> Floats:
        """The scores of given values."""
        if not self.values.size:
            return np.zeros(column.size)
        indices = np.minimum(np.searchsorted(self.values, column), self.values.size - 1)
        return np.where(self.values[indices] == column, self.ratios[indices], 0.0)

    def where(self, low: float, high: float) -> tuple[str, str]:
        """Descriptions of the outputs with scores of at least ``high`` and of at most ``low``."""
        return self._describe(self.ratios >= high), self._describe(self.ratios <= low)

    def _describe(self, chosen: Labels) -> str:
        values = self.values[chosen]
        listed = ", ".join(f"{value:.6g}" for value in values[:4].tolist())
        return f"{self.view.name} is exactly one of {{{listed}{f' and {values.size - 4} more' * (values.size > 4)}}}"


def exact_values(column: Array) -> Array:
    """Numbers themselves, or hashes of labels, so that equal values map to equal floats."""
    if column.dtype != object:
        with np.errstate(invalid="ignore"):
            return column.astype(np.float64) if column.dtype.kind != "f" else column
    return np.fromiter((label_hash(label) >> 11 for label in column), np.float64, column.size)


@dataclass(frozen=True, eq=False)
class BlendedScore(ContentEquality):
    """Scores by a weighted sum of log-likelihood ratios."""

    parts: tuple[LikelihoodRatioScore, ...]
    weights: Floats

    def __call__(self, outputs: Outputs) -> Floats:
        """One score for each run."""
        total = np.zeros(outputs.size)
        for part, weight in zip(self.parts, self.weights.tolist(), strict=True):
            total += weight * part(outputs)
        return total

    def where(self, low: float, high: float) -> tuple[str, str]:
        """Descriptions of the outputs with scores of at least ``high`` and of at most ``low``."""
        names = ", ".join(part.view.name for part in self.parts[:4])
        names += f" and {len(self.parts) - 4} more" if len(self.parts) > 4 else ""
        return f"score of {names} >= {high:.3g}", f"score of {names} <= {low:.3g}"


Score = ValueScore | LikelihoodRatioScore | AtomScore | BlendedScore


def finite(scores: Array) -> Floats:
    """Scores clipped to finite floats, since an infinite threshold stands for an empty set."""
    largest = np.finfo(np.float64).max
    return np.clip(scores.astype(np.float64), -largest, largest)


def log_ratios(neighbor: Array, x: Array) -> Floats:
    """Log-likelihood ratios of the bins, shrunk towards 0 where counts are small."""
    total, other = neighbor.sum() + _PRIOR, x.sum() + _PRIOR
    return np.asarray(np.log((neighbor + _PRIOR) / total * other / (x + _PRIOR)), dtype=np.float64)
