"""Looks at a column: the value, its lowest bit, its kind, the sum and the largest of a vector, a projection.

A textbook sampler in floating point adds noise of the right law and still gives the data away in the last bits of
the sum, a rounding in the fraction, a missing value in the kind: each is a look of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dither.audit.features import Array, Outputs

Floats = NDArray[np.float64]
Labels = NDArray[np.bool_]

_FEW_COLUMNS = 12
_MOST_COLUMNS = 60
_MOST_COORDINATES = 24
_FINE = 2.0**20
_NO_BIT = 2000.0
_UNORDERED = ("significant bits", "fraction", "kind of number", "place of the largest", "place of the smallest")


def lowest_bit(values: Array) -> Floats:
    """The exponent of the last binary digit that is not 0.

    >>> lowest_bit(np.array([1.0, 0.75, 2.0**-60, 12.0, 0.0])).tolist()
    [0.0, -2.0, -60.0, 2.0, 2000.0]
    """
    if values.dtype.kind in "iu":
        whole = values.astype(np.int64)
        low = (whole & -whole).view(np.uint64)
        return np.where(whole == 0, _NO_BIT, np.frexp(low.astype(np.float64))[1] - 1.0)
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.int64)
    exponent = (bits >> 52) & 0x7FF
    mantissa = (bits & ((1 << 52) - 1)) | np.where(exponent > 0, np.int64(1 << 52), np.int64(0))
    low = (mantissa & -mantissa).astype(np.float64)
    place = np.maximum(exponent, 1) - 1075 + np.frexp(low)[1] - 1.0
    return np.where((values == 0) | ~np.isfinite(values), _NO_BIT, place)


def significant_bits(values: Array) -> Floats:
    """How many binary digits a number needs.

    >>> significant_bits(np.array([1.0, 0.75, 10.0])).tolist()
    [1.0, 2.0, 3.0]
    """
    numbers = values.astype(np.float64)
    return np.where(numbers == 0, 0.0, np.frexp(numbers)[1] - lowest_bit(values))


def fraction(values: Array) -> Floats:
    """What follows the point, to about a millionth: noise on whole numbers leaves it bare."""
    with np.errstate(invalid="ignore"):
        return np.rint((values - np.floor(values)) * _FINE) / _FINE % 1.0


def kind(values: Array) -> Floats:
    """A number for each kind of number: usual, NaN, the infinities, the two zeros, whole.

    >>> kind(np.array([0.5, np.nan, np.inf, -np.inf, 0.0, -0.0, 3.0])).tolist()
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    """
    numbers = values.astype(np.float64)
    zero = np.where(np.signbit(numbers), 5.0, 4.0)
    endless = np.where(numbers > 0, 2.0, 3.0)
    with np.errstate(invalid="ignore"):
        found = np.where(numbers == np.rint(numbers), 6.0, 0.0)
    found = np.where(numbers == 0, zero, found)
    return np.where(np.isnan(numbers), 1.0, np.where(np.isinf(numbers), endless, found))


def _quietly(summary: Callable[[Array], Array]) -> Callable[[Array], Floats]:
    def made(matrix: Array) -> Floats:
        with np.errstate(all="ignore"):
            filled = np.where(np.isnan(matrix), 0.0, matrix) if matrix.dtype.kind == "f" else matrix.astype(np.float64)
            return np.asarray(summary(filled), dtype=np.float64)

    return made


NUMBER: dict[str, Callable[[Array], Floats]] = {
    "lowest bit": lowest_bit,
    "significant bits": significant_bits,
    "fraction": fraction,
    "kind of number": kind,
}
VECTOR: dict[str, Callable[[Array], Floats]] = {
    "sum": _quietly(lambda m: m.sum(axis=1)),
    "largest": _quietly(lambda m: m.max(axis=1)),
    "smallest": _quietly(lambda m: m.min(axis=1)),
    "place of the largest": _quietly(lambda m: m.argmax(axis=1)),
    "place of the smallest": _quietly(lambda m: m.argmin(axis=1)),
    "l1 norm": _quietly(lambda m: np.abs(m).sum(axis=1)),
    "l2 norm": _quietly(lambda m: np.sqrt((m * m).sum(axis=1))),
    "number of zeros": _quietly(lambda m: (m == 0).sum(axis=1)),
    "last coordinate": lambda m: m[:, -1].astype(np.float64),
    "number of NaN": lambda m: np.isnan(m).sum(axis=1).astype(np.float64),
    "lowest bit of all": lambda m: lowest_bit(m.ravel()).reshape(m.shape).min(axis=1),
}


@dataclass(frozen=True)
class View:
    """One look at one column; ``weights`` for a projection, ``place`` for a coordinate."""

    column: str
    look: str = "value"
    place: int | None = None
    weights: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        """In words."""
        column = self.column or "output"
        if self.column.startswith(" "):
            column = f"output{self.column}"
        place = "" if self.place is None else f"[{self.place}]"
        return f"{column}{place}" if self.look == "value" else f"{self.look} of {column}{place}"

    @property
    def ordered(self) -> bool:
        """Whether it is to be expected that large and small speak for different data sets."""
        return self.look not in _UNORDERED

    def __call__(self, outputs: Outputs) -> Array:
        """One number or label for each run."""
        column = outputs.column(self.column)
        if self.column.endswith(" kind") and column.dtype == object:
            return column
        if self.look == "projection":
            return _projected(column, self.weights)
        if self.look in VECTOR:
            return VECTOR[self.look](column if column.ndim == 2 else column[:, None])
        if self.place is not None:
            matrix = column if column.ndim == 2 else column[:, None]
            column = matrix[:, self.place] if self.place < matrix.shape[1] else np.full(outputs.size, np.nan)
        elif column.ndim == 2:  # a vector where a number was expected
            column = np.full(outputs.size, np.nan)
        return NUMBER[self.look](column) if self.look in NUMBER else column.astype(np.float64)


def _projected(column: Array, weights: tuple[float, ...]) -> Floats:
    matrix = np.nan_to_num((column if column.ndim == 2 else column[:, None]).astype(np.float64), posinf=0.0, neginf=0.0)
    width = min(matrix.shape[1], len(weights))
    return np.asarray(matrix[:, :width] @ np.asarray(weights[:width]), dtype=np.float64)


def views(outputs: Outputs, labels: Labels) -> list[View]:
    """The looks worth trying, of which the learner picks; ``labels`` tell the two data sets apart."""
    columns = list(outputs.columns.items())
    few = len(columns) <= _FEW_COLUMNS
    if len(columns) > _MOST_COLUMNS:
        columns.sort(key=lambda item: -float(_strength(item[1], labels).max(initial=0.0)))
    found: list[View] = []
    for name, column in columns[:_MOST_COLUMNS]:
        if column.ndim == 2:
            found += _of_vector(name, column, labels)
            continue
        found.append(View(name))
        if column.dtype != object:
            found += [View(name, look) for look in (NUMBER if few else ("kind of number",))]
    return found


def _of_vector(name: str, column: Array, labels: Labels) -> Iterator[View]:
    yield from (View(name, look) for look in VECTOR)
    numbers = np.nan_to_num(column.astype(np.float64), posinf=0.0, neginf=0.0)
    with np.errstate(all="ignore"):
        apart = numbers[labels].mean(axis=0) - numbers[~labels].mean(axis=0)
        weights = np.nan_to_num(apart / numbers.var(axis=0), posinf=0.0, neginf=0.0)
    if weights.any():
        yield View(name, "projection", weights=tuple(weights.tolist()))
    for place in np.argsort(-_strength(column, labels), kind="stable")[:_MOST_COORDINATES].tolist():
        yield View(name, place=place)
        if column.shape[1] <= 4:
            yield from (View(name, look, place) for look in NUMBER)


def _strength(column: Array, labels: Labels) -> Floats:
    """Roughly how far apart the two data sets are, in each coordinate: to leave out the ones that show least."""
    if column.dtype == object:
        _, codes = np.unique(column.astype(str), return_inverse=True)
        ours, theirs = (np.bincount(codes[chosen], minlength=codes.max() + 1) for chosen in (labels, ~labels))
        return np.array([np.abs(ours / max(1, ours.sum()) - theirs / max(1, theirs.sum())).sum()])
    matrix = (column if column.ndim == 2 else column[:, None]).astype(np.float64)
    numbers = np.nan_to_num(matrix, posinf=0.0, neginf=0.0)
    with np.errstate(all="ignore"):
        sizes = np.abs(numbers - np.median(numbers, axis=0))  # a coordinate may keep its mean and lose its noise
        looks = (numbers / numbers.std(axis=0), sizes / sizes.std(axis=0), (~np.isfinite(matrix)).astype(np.float64))
        gaps = [np.abs(look[labels].mean(axis=0) - look[~labels].mean(axis=0)) for look in looks]
    return np.asarray(np.nan_to_num(np.maximum.reduce(gaps)), dtype=np.float64)
