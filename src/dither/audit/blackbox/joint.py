"""Views of several parts of an output jointly, which detect leaks that no single column shows.

Examples are two keys of a dict that share their noise, so that the difference is exact; four counts whose parity is
exact; and a whole output that recurs. The numbers of all columns, whatever containers they come from, are treated as
one vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dither.audit.blackbox import bits
from dither.audit.blackbox.bits import Bit, coordinate
from dither.audit.blackbox.features import Array, Outputs
from dither.audit.blackbox.summaries import UNORDERED_TRANSFORMS, VECTOR_SUMMARIES

Floats = NDArray[np.float64]
Labels = NDArray[np.bool_]
Position = tuple[str, int | None]

_MAX_POSITIONS = 256
_MAX_DISCRIMINANT = 48
_MAX_PAIRED = 6
_MAX_TRAINING_RUNS = 20_000
_PATTERN = 8
_INTEGER_BITS = 8
_SCREENED_RUNS = 1200
_MAX_BITS = 512
_RIDGE = 1e-12


def numeric_matrix(outputs: Outputs, positions: tuple[Position, ...]) -> Floats:
    """The numbers at several positions as floats, one column per position."""
    result = np.empty((outputs.size, len(positions)))
    for target, (name, index) in enumerate(positions):
        column = outputs.column(name)
        result[:, target] = np.nan if column.dtype == object else coordinate(column, index)
    return result


@dataclass(frozen=True)
class JointSummary:
    """A summary, or a projection by ``weights``, of the numbers at several positions."""

    positions: tuple[Position, ...]
    transform: str
    weights: tuple[float, ...] = ()
    only_atoms: bool = False
    training_runs: int = 0
    """The number of runs, counted from the first, from which the weights were learned."""

    @property
    def name(self) -> str:
        """A description for reports."""
        names = [f"{name or 'output'}{'' if index is None else f'[{index}]'}" for name, index in self.positions]
        return f"{self.transform} of {_listed(names)}"

    @property
    def ordered(self) -> bool:
        """Whether large and small values can be expected to favor different data sets."""
        return self.transform not in UNORDERED_TRANSFORMS

    def __call__(self, outputs: Outputs) -> Array:
        """One number for each run."""
        numbers = numeric_matrix(outputs, self.positions)
        if self.weights:
            with np.errstate(all="ignore"):
                filled = np.nan_to_num(numbers, posinf=0.0, neginf=0.0)
                return np.asarray(np.round(filled @ np.asarray(self.weights), 9), dtype=np.float64)
        return VECTOR_SUMMARIES[self.transform](numbers)


@dataclass(frozen=True)
class _BitView:
    """A function of several bits of an output; its values are codes without an order."""

    bits: tuple[Bit, ...]
    ordered: bool = False
    only_atoms: bool = False
    training_runs: int = 0

    operation: ClassVar[str]

    @property
    def name(self) -> str:
        """A description for reports."""
        return f"{self.operation} of {_listed([bit.name for bit in self.bits])}"


class Parity(_BitView):
    """The parity of several bits."""

    operation = "parity"

    def __call__(self, outputs: Outputs) -> Array:
        """0 or 1 for each run."""
        result = np.zeros(outputs.size, dtype=np.uint8)
        for bit in self.bits:
            result ^= bit(outputs)
        return result.astype(np.float64)


class Pattern(_BitView):
    """Several bits, read as one binary number."""

    operation = "pattern"

    def __call__(self, outputs: Outputs) -> Array:
        """One number for each run."""
        result = np.zeros(outputs.size)
        for index, bit in enumerate(self.bits):
            result += bit(outputs) * float(1 << index)
        return result


def _listed(names: list[str]) -> str:
    """The first four names, and how many more there are."""
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


@dataclass(frozen=True)
class Digest:
    """A hash of several columns, which detects that all of them recur together."""

    columns: tuple[tuple[str, int], ...]
    subject: str
    ordered: bool = False
    only_atoms: bool = True
    training_runs: int = 0

    @property
    def name(self) -> str:
        """A description for reports."""
        return f"hash of {self.subject}"

    def __call__(self, outputs: Outputs) -> Array:
        """One number for each run."""
        total = np.zeros(outputs.size, dtype=np.uint64)
        for index, (name, width) in enumerate(self.columns):
            column = outputs.column(name)
            if column.dtype == object:
                words = np.fromiter((bits.label_hash(label) for label in column), np.uint64, column.size)[:, None]
            else:
                matrix = column if column.ndim == 2 else column[:, None]
                words = matrix[:, :width].astype(np.float64).view(np.uint64)
            factors = _splitmix64(np.arange(words.shape[1], dtype=np.uint64) + np.uint64(index << 32)) | np.uint64(1)
            total += (_splitmix64(words) * factors).sum(axis=1, dtype=np.uint64)
        return (_splitmix64(total) >> np.uint64(11)).astype(np.float64)


def _splitmix64(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of SplitMix64, a bijection of 64-bit words in which every input bit affects all output bits."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


JointView = JointSummary | Parity | Pattern | Digest


def joint_views(outputs: Outputs, labels: Labels, columns: list[tuple[str, Array]]) -> Iterator[JointView]:
    """Views of the varying columns taken jointly."""
    numeric = [(name, column) for name, column in columns if column.dtype != object]
    positions = tuple(_positions(numeric))
    if len(numeric) > 1:
        yield from (JointSummary(positions, transform) for transform in VECTOR_SUMMARIES)
    if len(positions) > 1:
        yield from _projections(outputs, labels, positions)
    yield from _parities(outputs, labels, columns, positions)
    widths = tuple((name, column.shape[1] if column.ndim == 2 else 1) for name, column in columns)
    if len(widths) > 1 or (widths and widths[0][1] > 1):
        yield Digest(widths, "the whole output")
    text_columns = tuple((name, 1) for name, column in columns if column.dtype == object)
    if 1 < len(text_columns) < len(widths):
        yield Digest(text_columns, "all non-numeric parts")
    for part, inside in _parts(widths).items():
        if 1 < len(inside) < len(widths):
            yield Digest(tuple(inside), part)


def _parts(widths: tuple[tuple[str, int], ...]) -> dict[str, list[tuple[str, int]]]:
    """The columns within each of the outermost parts of the output."""
    result: dict[str, list[tuple[str, int]]] = {}
    for name, width in widths:
        for end in range(1, len(name)):
            if name[end] in "[.{ " and name[0] in "[.{":
                result.setdefault(name[:end], []).append((name, width))
                break
    return dict(list(result.items())[:16])


def _positions(numeric: list[tuple[str, Array]]) -> Iterator[Position]:
    remaining = _MAX_POSITIONS
    for name, column in numeric:
        width = column.shape[1] if column.ndim == 2 else 1
        yield from ((name, index if column.ndim == 2 else None) for index in range(min(width, remaining)))
        remaining -= min(width, remaining)


def _projections(outputs: Outputs, labels: Labels, positions: tuple[Position, ...]) -> Iterator[JointSummary]:
    """The linear discriminant between the two data sets, and differences of pairs of coordinates."""
    selected = positions[:_MAX_DISCRIMINANT]
    training_runs = min(_MAX_TRAINING_RUNS, labels.size // 2)
    numbers, labels = numeric_matrix(outputs.rows(0, training_runs), selected), labels[:training_runs]
    numbers = np.nan_to_num(numbers, posinf=0.0, neginf=0.0)
    with np.errstate(all="ignore"):
        scale = numbers.std(axis=0)
        scale[~(scale > 0) | ~np.isfinite(scale)] = 1.0
        scaled = (numbers - numbers.mean(axis=0)) / scale
        means = [scaled[chosen].sum(axis=0) / max(1, chosen.sum()) for chosen in (labels, ~labels)]
        gap = means[0] - means[1]
        residuals = np.vstack([scaled[labels] - means[0], scaled[~labels] - means[1]])
        covariance = residuals.T @ residuals / max(1, len(residuals)) + _RIDGE * np.eye(len(selected))
        if np.isfinite(covariance).all() and np.isfinite(gap).all():
            weights = np.linalg.lstsq(covariance, gap, rcond=None)[0]
            weights = weights / max(float(np.abs(weights).max()), 1e-300) / scale
            if np.isfinite(weights).all() and weights.any():
                yield JointSummary(selected, "discriminant", tuple(weights.tolist()), training_runs=training_runs)
    paired = range(min(len(positions), _MAX_PAIRED))
    for first in paired:
        for second in paired:
            if first < second:
                yield JointSummary((positions[first], positions[second]), "difference", (1.0, -1.0))
    if len(positions) > _MAX_PAIRED:
        signs = tuple(1.0 if index % 2 == 0 else -1.0 for index in range(len(positions)))
        yield JointSummary(positions, "alternating sum", signs)


def _parities(
    outputs: Outputs, labels: Labels, columns: list[tuple[str, Array]], positions: tuple[Position, ...]
) -> Iterator[Parity | Pattern]:
    step = max(1, labels.size // _SCREENED_RUNS)
    sample, chosen = outputs.select(np.arange(0, labels.size, step)), labels[::step]
    text_names = [name for name, column in columns if column.dtype == object][:_MAX_POSITIONS]
    candidates = [Bit(name, index) for name, index in positions] + [Bit(name, None) for name in text_names]
    candidates += [Bit(name, index, number) for number in range(1, _INTEGER_BITS) for name, index in positions]
    candidates += [Bit(name, index, number, True) for name, index in positions[:8] for number in range(52)]
    varying: list[Bit] = []
    bit_columns: list[Array] = []
    for bit in candidates[: 4 * _MAX_BITS]:
        column = bit(sample)
        if column.min(initial=1) < column.max(initial=0):
            varying.append(bit)
            bit_columns.append(column)
        if len(varying) == _MAX_BITS:
            break
    if len(varying) < 2:
        return
    matrix = np.stack(bit_columns, axis=1)
    for result in (bits.strongest_parities(matrix, chosen), bits.constant_parities(matrix, chosen)):
        yield from (Parity(tuple(varying[index] for index in subset)) for subset in result if len(subset) > 1)
    yield Pattern(tuple(varying[:_PATTERN]))
