"""Views of outputs among which the learner chooses.

A view maps every output to one number or label: the value of a column, one of its bits, its residue, a character of a
text, the sum of a vector, a projection. Views of several columns are in :mod:`dither.audit.blackbox.joint`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dither.audit.blackbox import bits
from dither.audit.blackbox.features import Array, Outputs
from dither.audit.blackbox.joint import JointView, joint_views
from dither.audit.blackbox.summaries import NUMBER_TRANSFORMS, UNORDERED_TRANSFORMS, VECTOR_SUMMARIES

Floats = NDArray[np.float64]
Labels = NDArray[np.bool_]

_MANY_COLUMNS = 12
_MAX_COLUMNS = 60
_MAX_COORDINATES = 24
_MIN_SCORE = 3.5
_SCREENED = 200_000
_SCREENED_ROWS = 20_000
_TEXTS = 2000
_LETTERS = 1 << 13
_TOKENS = 40
_TOKEN = re.compile(r"[A-Za-z]+|\d+|[^A-Za-z\d\s]")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class View:
    """One transform of one column.

    ``weights`` defines a projection and ``index`` selects a coordinate. ``number`` is the bit, the modulus, or the
    position of a character, word or number within a text.
    """

    column: str
    transform: str = "value"
    index: int | None = None
    weights: tuple[float, ...] = ()
    number: int = 0
    only_atoms: bool = False
    training_runs: int = 0
    """The number of runs, counted from the first, from which the weights were learned."""

    @property
    def name(self) -> str:
        """A description for reports."""
        column = self.column or "output"
        if self.column.startswith(" "):
            column = f"output{self.column}"
        index = "" if self.index is None else f"[{self.index}]"
        transform = f"{self.transform} {self.number}" if self.transform in _NUMBERED else self.transform
        return f"{column}{index}" if self.transform == "value" else f"{transform} of {column}{index}"

    @property
    def ordered(self) -> bool:
        """Whether large and small values can be expected to favor different data sets."""
        return self.transform not in UNORDERED_TRANSFORMS

    def __call__(self, outputs: Outputs) -> Array:
        """One number or label for each run."""
        column = outputs.column(self.column)
        if self.column.endswith(" kind") and column.dtype == object:
            return _TEXT[self.transform](column, self.number) if self.transform in _TEXT else column
        if self.transform in _TEXT:
            return np.full(outputs.size, np.nan)
        if self.transform == "projection":
            return _projection(column, self.weights)
        if self.transform in VECTOR_SUMMARIES:
            return VECTOR_SUMMARIES[self.transform](column if column.ndim == 2 else column[:, None])
        if self.index is not None:
            column = bits.coordinate(column, self.index)
        elif column.ndim == 2:  # a vector in place of a number
            column = np.full(outputs.size, np.nan)
        if self.transform in ("bit", "stored bit"):
            return bits.bit(column, self.number, stored=self.transform == "stored bit").astype(np.float64)
        if self.transform == "residue":
            return bits.residues(column, self.number).astype(np.float64)
        return (
            NUMBER_TRANSFORMS[self.transform](column)
            if self.transform in NUMBER_TRANSFORMS
            else column.astype(np.float64)
        )


def _character(column: Array, number: int) -> Array:
    """The character code at a position, counted from the end if negative; -1 if the text is too short."""
    min_length = number + 1 if number >= 0 else -number
    return np.array([float(ord(text[number])) if len(text) >= min_length else -1.0 for text in column])


def _word(column: Array, number: int) -> Array:
    result = np.empty(column.size, dtype=object)
    for index, text in enumerate(column):
        words = _TOKEN.findall(text)
        result[index] = words[number] if number < len(words) else ""
    return result


def _number_in_text(column: Array, number: int) -> Array:
    result = np.full(column.size, np.nan)
    for index, text in enumerate(column):
        written = _NUMBER.findall(text)
        if number < len(written):
            result[index] = float(written[number])
    return result


_TEXT = {"letter": _character, "word": _word, "number in the text": _number_in_text}
_NUMBERED = {"bit", "stored bit", "residue", *_TEXT}


def _projection(column: Array, weights: tuple[float, ...]) -> Floats:
    matrix = np.nan_to_num((column if column.ndim == 2 else column[:, None]).astype(np.float64), posinf=0.0, neginf=0.0)
    width = min(matrix.shape[1], len(weights))
    return np.asarray(matrix[:, :width] @ np.asarray(weights[:width]), dtype=np.float64)


def views(outputs: Outputs, labels: Labels) -> Iterator[View | JointView]:
    """The views worth trying; ``labels`` are True for runs on the neighbor."""
    columns = [(name, column) for name, column in outputs.columns.items() if _is_varying(column)]
    transforms = NUMBER_TRANSFORMS if len(columns) <= _MANY_COLUMNS else ("kind of number",)
    ranked = columns
    if len(columns) > _MAX_COLUMNS:
        ranked = sorted(columns, key=lambda item: -float(_separation(item[1], labels).max(initial=0.0)))
    for name, column in ranked[:_MAX_COLUMNS]:
        if column.ndim == 2:
            yield from _vector_views(name, column, labels)
            continue
        yield View(name)
        if column.dtype == object:
            yield from _text_views(name, column, labels)
        else:
            yield from (View(name, transform) for transform in transforms)
            yield from _bit_views(name, column, labels, [None])
    yield from joint_views(outputs, labels, columns)


def _is_varying(column: Array) -> bool:
    if column.dtype == object:
        first = column[0] if column.size else None
        return any(label != first for label in column)
    words = column if column.dtype.kind in "iu" else np.ascontiguousarray(column, dtype=np.float64).view(np.int64)
    return bool(len(words)) and bool((words != words[0]).any())


def _vector_views(name: str, column: Array, labels: Labels) -> Iterator[View]:
    yield from (View(name, transform) for transform in VECTOR_SUMMARIES)
    training_runs = labels.size // 2
    numbers, first = (
        np.nan_to_num(column[:training_runs].astype(np.float64), posinf=0.0, neginf=0.0),
        labels[:training_runs],
    )
    with np.errstate(all="ignore"):
        mean_difference = _mean(numbers[first]) - _mean(numbers[~first])
        weights = np.nan_to_num(mean_difference / numbers.var(axis=0), posinf=0.0, neginf=0.0)
    if weights.any():
        yield View(name, "projection", weights=tuple(weights.tolist()), training_runs=training_runs)
    strongest = np.argsort(-_separation(column, labels), kind="stable")[:_MAX_COORDINATES].tolist()
    for index in strongest:
        yield View(name, index=index)
        if column.shape[1] <= 4:
            yield from (View(name, transform, index) for transform in NUMBER_TRANSFORMS)
    yield from _bit_views(name, column, labels, strongest)


def _mean(rows: Array) -> Floats:
    return np.asarray(rows.sum(axis=0) / max(1, len(rows)), dtype=np.float64)


def _bit_views(name: str, column: Array, labels: Labels, indices: list[int | None]) -> Iterator[View]:
    """The bits and residues that clearly distinguish the two data sets on a sample of the runs."""
    rows = min(_SCREENED_ROWS, max(500, _SCREENED // max(1, len(indices))))
    result: list[tuple[float, View]] = []
    sample, chosen = column[:rows], labels[:rows]
    for index in indices:
        values = bits.coordinate(sample, index)
        for transform, raw in (("stored bit", True), ("bit", False)):
            if transform == "bit" or values.dtype.kind == "f":
                scores = bits.bit_z_scores(values, chosen, raw=raw)
                best = np.argsort(-scores, kind="stable")[:3].tolist()
                result += [
                    (float(scores[position]), View(name, transform, index, number=position)) for position in best
                ]
        for modulus in bits.MODULI:
            score = bits.chi_square_score(bits.residues(values, modulus), chosen)
            result.append((score, View(name, "residue", index, number=modulus)))
    result.sort(key=lambda item: -item[0])
    for kind in ("stored bit", "bit", "residue"):
        yield from [view for scores, view in result if scores > _MIN_SCORE and view.transform == kind][:3]


def _text_views(name: str, column: Array, labels: Labels) -> Iterator[View]:
    """The characters, words and numbers of texts that clearly distinguish the data sets on a sample of the runs."""
    texts, chosen = [str(text) for text in column[:_TEXTS]], labels[:_TEXTS]
    longest = min(_LETTERS, max(map(len, texts), default=0))
    if longest < 4 or len(set(texts)) < 3:
        return
    result: list[tuple[float, View]] = []
    for sign in (1, -1):
        letters = np.array([text[:longest] if sign > 0 else text[: -longest - 1 : -1] for text in texts])
        codes = letters.view(np.uint32).reshape(len(texts), -1).astype(np.int64)
        for multiplier in (1, 0x2545F491):
            scores = bits.proportion_z_scores((codes * multiplier >> (0 if multiplier == 1 else 13)) & 1, chosen)
            for position in np.argsort(-scores, kind="stable")[:2].tolist():
                result.append(
                    (float(scores[position]), View(name, "letter", number=position if sign > 0 else -position - 1))
                )
    words = [_TOKEN.findall(text) for text in texts]
    for position in range(min(_TOKENS, max(map(len, words), default=0))):
        codes = np.array([bits.label_hash(word[position]) & 31 if position < len(word) else 32 for word in words])
        result.append((bits.chi_square_score(codes, chosen), View(name, "word", number=position)))
    result.sort(key=lambda item: -item[0])
    yield from [view for scores, view in result if scores > _MIN_SCORE][:6]
    count = max((len(_NUMBER.findall(text)) for text in texts[:50]), default=0)
    yield from (View(name, "number in the text", number=position) for position in range(min(4, count)))


def _separation(column: Array, labels: Labels) -> Floats:
    """A rough standardized distance between the two data sets in each coordinate, used to rank coordinates."""
    if column.dtype == object:
        codes = np.fromiter((bits.label_hash(label) & 1023 for label in column), np.int64, column.size)
        first, second = (np.bincount(codes[chosen], minlength=codes.max() + 1) for chosen in (labels, ~labels))
        return np.array([np.abs(first / max(1, first.sum()) - second / max(1, second.sum())).sum()])
    matrix = (column if column.ndim == 2 else column[:, None]).astype(np.float64)
    numbers = np.nan_to_num(matrix, posinf=0.0, neginf=0.0)
    with np.errstate(all="ignore"):
        deviations = np.abs(numbers - np.median(numbers, axis=0))  # the noise may differ where the mean does not
        features = (
            numbers / numbers.std(axis=0),
            deviations / deviations.std(axis=0),
            (~np.isfinite(matrix)).astype(np.float64),
        )
        gaps = [np.abs(transform[labels].mean(axis=0) - transform[~labels].mean(axis=0)) for transform in features]
    return np.asarray(np.nan_to_num(np.maximum.reduce(gaps)), dtype=np.float64)
