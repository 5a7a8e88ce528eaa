"""Looks at several parts of an output together: whatever container they are in, their numbers are one vector.

Two keys of a dict whose difference is exact, four counts whose parity is, a whole output that comes again: none of it
shows in one column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dither.audit.blackbox import bits
from dither.audit.blackbox.bits import Bit, coordinate
from dither.audit.blackbox.features import Array, Outputs
from dither.audit.blackbox.summaries import UNORDERED, VECTOR

Floats = NDArray[np.float64]
Labels = NDArray[np.bool_]
Place = tuple[str, int | None]

_MOST_PLACES = 256
_MOST_DISCRIMINATED = 48
_MOST_PAIRED = 6
_TAUGHT = 20_000
_PATTERN = 8
_WHOLE_BITS = 8
_ROWS = 1200
_MOST_BITS = 512
_TINY = 1e-12


def matrix_of(outputs: Outputs, places: tuple[Place, ...]) -> Floats:
    """The numbers of several places as floats, one column each."""
    result = np.empty((outputs.size, len(places)))
    for at, (name, place) in enumerate(places):
        column = outputs.column(name)
        result[:, at] = np.nan if column.dtype == object else coordinate(column, place)
    return result


@dataclass(frozen=True)
class Together:
    """A summary, or a projection by ``weights``, of the numbers of several places."""

    places: tuple[Place, ...]
    look: str
    weights: tuple[float, ...] = ()
    only_atoms: bool = False
    taught: int = 0
    """From how many runs, the first ones, the weights were learned."""

    @property
    def name(self) -> str:
        """In words."""
        names = ", ".join(f"{name or 'output'}{'' if at is None else f'[{at}]'}" for name, at in self.places[:4])
        return f"{self.look} of {names}" + (f" and {len(self.places) - 4} more" if len(self.places) > 4 else "")

    @property
    def ordered(self) -> bool:
        """Whether it is to be expected that large and small speak for different data sets."""
        return self.look not in UNORDERED

    def __call__(self, outputs: Outputs) -> Array:
        """One number for each run."""
        numbers = matrix_of(outputs, self.places)
        if self.weights:
            with np.errstate(all="ignore"):
                filled = np.nan_to_num(numbers, posinf=0.0, neginf=0.0)
                return np.asarray(np.round(filled @ np.asarray(self.weights), 9), dtype=np.float64)
        return VECTOR[self.look](numbers)


@dataclass(frozen=True)
class Parity:
    """The parity of several bits."""

    parts: tuple[Bit, ...]
    ordered: bool = False
    only_atoms: bool = False
    taught: int = 0

    @property
    def name(self) -> str:
        """In words."""
        shown = ", ".join(part.name for part in self.parts[:4])
        return f"parity of {shown}" + (f" and {len(self.parts) - 4} more" if len(self.parts) > 4 else "")

    def __call__(self, outputs: Outputs) -> Array:
        """0 or 1 for each run."""
        result = np.zeros(outputs.size, dtype=np.uint8)
        for part in self.parts:
            result ^= part(outputs)
        return result.astype(np.float64)


@dataclass(frozen=True)
class Pattern:
    """Several bits as one number."""

    parts: tuple[Bit, ...]
    ordered: bool = False
    only_atoms: bool = False
    taught: int = 0

    @property
    def name(self) -> str:
        """In words."""
        return f"pattern of {', '.join(part.name for part in self.parts[:4])}"

    def __call__(self, outputs: Outputs) -> Array:
        """One number for each run."""
        result = np.zeros(outputs.size)
        for place, part in enumerate(self.parts):
            result += part(outputs) * float(1 << place)
        return result


@dataclass(frozen=True)
class Digest:
    """A hash of several columns: whether the same thing, all of it, came again."""

    columns: tuple[tuple[str, int], ...]
    what: str
    ordered: bool = False
    only_atoms: bool = True
    taught: int = 0

    @property
    def name(self) -> str:
        """In words."""
        return f"hash of {self.what}"

    def __call__(self, outputs: Outputs) -> Array:
        """One number for each run."""
        total = np.zeros(outputs.size, dtype=np.uint64)
        for place, (name, width) in enumerate(self.columns):
            column = outputs.column(name)
            if column.dtype == object:
                words = np.fromiter((bits.hash_of(label) for label in column), np.uint64, column.size)[:, None]
            else:
                matrix = column if column.ndim == 2 else column[:, None]
                words = matrix[:, :width].astype(np.float64).view(np.uint64)
            factors = _mixed(np.arange(words.shape[1], dtype=np.uint64) + np.uint64(place << 32)) | np.uint64(1)
            total += (_mixed(words) * factors).sum(axis=1, dtype=np.uint64)
        return (_mixed(total) >> np.uint64(11)).astype(np.float64)


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection of 64-bit words that spreads every bit (the finalizer of SplitMix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


Joint = Together | Parity | Pattern | Digest


def joint_views(outputs: Outputs, labels: Labels, columns: list[tuple[str, Array]]) -> Iterator[Joint]:
    """Looks at the columns that vary, taken together."""
    numeric = [(name, column) for name, column in columns if column.dtype != object]
    places = tuple(_places(numeric))
    if len(numeric) > 1:
        yield from (Together(places, look) for look in VECTOR)
    if len(places) > 1:
        yield from _projections(outputs, labels, places)
    yield from _parities(outputs, labels, columns, places)
    widths = tuple((name, column.shape[1] if column.ndim == 2 else 1) for name, column in columns)
    if len(widths) > 1 or (widths and widths[0][1] > 1):
        yield Digest(widths, "the whole output")
    words = tuple((name, 1) for name, column in columns if column.dtype == object)
    if 1 < len(words) < len(widths):
        yield Digest(words, "all that is not a number")
    for part, inside in _parts(widths).items():
        if 1 < len(inside) < len(widths):
            yield Digest(tuple(inside), part)


def _parts(widths: tuple[tuple[str, int], ...]) -> dict[str, list[tuple[str, int]]]:
    """The columns inside of each of the outermost parts of the output."""
    result: dict[str, list[tuple[str, int]]] = {}
    for name, width in widths:
        for end in range(1, len(name)):
            if name[end] in "[.{ " and name[0] in "[.{":
                result.setdefault(name[:end], []).append((name, width))
                break
    return dict(list(result.items())[:16])


def _places(numeric: list[tuple[str, Array]]) -> Iterator[Place]:
    left = _MOST_PLACES
    for name, column in numeric:
        width = column.shape[1] if column.ndim == 2 else 1
        yield from ((name, place if column.ndim == 2 else None) for place in range(min(width, left)))
        left -= min(width, left)


def _projections(outputs: Outputs, labels: Labels, places: tuple[Place, ...]) -> Iterator[Together]:
    """The direction in which the two means are farthest apart for the spread there, and differences of two."""
    used = places[:_MOST_DISCRIMINATED]
    taught = min(_TAUGHT, labels.size // 2)
    numbers, labels = matrix_of(outputs.part(0, taught), used), labels[:taught]
    numbers = np.nan_to_num(numbers, posinf=0.0, neginf=0.0)
    with np.errstate(all="ignore"):
        scale = numbers.std(axis=0)
        scale[~(scale > 0) | ~np.isfinite(scale)] = 1.0
        scaled = (numbers - numbers.mean(axis=0)) / scale
        means = [scaled[chosen].sum(axis=0) / max(1, chosen.sum()) for chosen in (labels, ~labels)]
        gap = means[0] - means[1]
        inside = np.vstack([scaled[labels] - means[0], scaled[~labels] - means[1]])
        spread = inside.T @ inside / max(1, len(inside)) + _TINY * np.eye(len(used))
        if np.isfinite(spread).all() and np.isfinite(gap).all():
            weights = np.linalg.lstsq(spread, gap, rcond=None)[0]
            weights = weights / max(float(np.abs(weights).max()), 1e-300) / scale
            if np.isfinite(weights).all() and weights.any():
                yield Together(used, "discriminant", tuple(weights.tolist()), taught=taught)
    few = range(min(len(places), _MOST_PAIRED))
    for first in few:
        for second in few:
            if first < second:
                yield Together((places[first], places[second]), "difference", (1.0, -1.0))
    if len(places) > _MOST_PAIRED:
        signs = tuple(1.0 if place % 2 == 0 else -1.0 for place in range(len(places)))
        yield Together(places, "alternating sum", signs)


def _parities(
    outputs: Outputs, labels: Labels, columns: list[tuple[str, Array]], places: tuple[Place, ...]
) -> Iterator[Parity | Pattern]:
    step = max(1, labels.size // _ROWS)
    some, chosen = outputs.where(np.arange(0, labels.size, step)), labels[::step]
    named = [name for name, column in columns if column.dtype == object][:_MOST_PLACES]
    wanted = [Bit(name, place) for name, place in places] + [Bit(name, None) for name in named]
    wanted += [Bit(name, place, number) for number in range(1, _WHOLE_BITS) for name, place in places]
    wanted += [Bit(name, place, number, True) for name, place in places[:8] for number in range(52)]
    used: list[Bit] = []
    table: list[Array] = []
    for item in wanted[: 4 * _MOST_BITS]:
        column = item(some)
        if column.min(initial=1) < column.max(initial=0):
            used.append(item)
            table.append(column)
        if len(used) == _MOST_BITS:
            break
    if len(used) < 2:
        return
    matrix = np.stack(table, axis=1)
    for result in (bits.parities(matrix, chosen), bits.relations(matrix, chosen)):
        yield from (Parity(tuple(used[place] for place in subset)) for subset in result if len(subset) > 1)
    yield Pattern(tuple(used[:_PATTERN]))
