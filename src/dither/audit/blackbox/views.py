"""Looks at outputs, of which the learner picks: a number, one of its bits, its residue, a letter of a text, the sum of
a vector, a projection; and several parts together (:mod:`dither.audit.blackbox.joint`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dither.audit.blackbox import bits
from dither.audit.blackbox.features import Array, Outputs
from dither.audit.blackbox.joint import Joint, joint_views
from dither.audit.blackbox.summaries import NUMBER, UNORDERED, VECTOR

Floats = NDArray[np.float64]
Labels = NDArray[np.bool_]

_FEW_COLUMNS = 12
_MOST_COLUMNS = 60
_MOST_COORDINATES = 24
_CLEAR = 3.5
_SCREENED = 200_000
_SCREENED_ROWS = 20_000
_TEXTS = 2000
_LETTERS = 1 << 13
_TOKENS = 40
_TOKEN = re.compile(r"[A-Za-z]+|\d+|[^A-Za-z\d\s]")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class View:
    """One look at one column; ``weights`` for a projection, ``place`` for a coordinate, ``number`` for a bit, a
    modulus, or the place of a letter, a word or a number in a text."""

    column: str
    look: str = "value"
    place: int | None = None
    weights: tuple[float, ...] = ()
    number: int = 0
    only_atoms: bool = False
    taught: int = 0
    """From how many runs, the first ones, the weights were learned."""

    @property
    def name(self) -> str:
        """In words."""
        column = self.column or "output"
        if self.column.startswith(" "):
            column = f"output{self.column}"
        place = "" if self.place is None else f"[{self.place}]"
        look = f"{self.look} {self.number}" if self.look in _NUMBERED else self.look
        return f"{column}{place}" if self.look == "value" else f"{look} of {column}{place}"

    @property
    def ordered(self) -> bool:
        """Whether it is to be expected that large and small speak for different data sets."""
        return self.look not in UNORDERED

    def __call__(self, outputs: Outputs) -> Array:
        """One number or label for each run."""
        column = outputs.column(self.column)
        if self.column.endswith(" kind") and column.dtype == object:
            return _TEXT[self.look](column, self.number) if self.look in _TEXT else column
        if self.look in _TEXT:
            return np.full(outputs.size, np.nan)
        if self.look == "projection":
            return _projected(column, self.weights)
        if self.look in VECTOR:
            return VECTOR[self.look](column if column.ndim == 2 else column[:, None])
        if self.place is not None:
            column = bits.coordinate(column, self.place)
        elif column.ndim == 2:  # a vector where a number was expected
            column = np.full(outputs.size, np.nan)
        if self.look in ("bit", "stored bit"):
            return bits.bit(column, self.number, stored=self.look == "stored bit").astype(np.float64)
        if self.look == "residue":
            return bits.residues(column, self.number).astype(np.float64)
        return NUMBER[self.look](column) if self.look in NUMBER else column.astype(np.float64)


def _letter(column: Array, number: int) -> Array:
    """The letter at a place, from the end if it is negative."""
    reach = number + 1 if number >= 0 else -number
    return np.array([float(ord(text[number])) if len(text) >= reach else -1.0 for text in column])


def _word(column: Array, number: int) -> Array:
    result = np.empty(column.size, dtype=object)
    for place, text in enumerate(column):
        words = _TOKEN.findall(text)
        result[place] = words[number] if number < len(words) else ""
    return result


def _number_in(column: Array, number: int) -> Array:
    result = np.full(column.size, np.nan)
    for place, text in enumerate(column):
        written = _NUMBER.findall(text)
        if number < len(written):
            result[place] = float(written[number])
    return result


_TEXT = {"letter": _letter, "word": _word, "number in the text": _number_in}
_NUMBERED = {"bit", "stored bit", "residue", *_TEXT}


def _projected(column: Array, weights: tuple[float, ...]) -> Floats:
    matrix = np.nan_to_num((column if column.ndim == 2 else column[:, None]).astype(np.float64), posinf=0.0, neginf=0.0)
    width = min(matrix.shape[1], len(weights))
    return np.asarray(matrix[:, :width] @ np.asarray(weights[:width]), dtype=np.float64)


def views(outputs: Outputs, labels: Labels) -> Iterator[View | Joint]:
    """The looks worth trying, of which the learner picks; ``labels`` tell the two data sets apart."""
    columns = [(name, column) for name, column in outputs.columns.items() if _varies(column)]
    few = len(columns) <= _FEW_COLUMNS
    ranked = columns
    if len(columns) > _MOST_COLUMNS:
        ranked = sorted(columns, key=lambda item: -float(_strength(item[1], labels).max(initial=0.0)))
    for name, column in ranked[:_MOST_COLUMNS]:
        if column.ndim == 2:
            yield from _of_vector(name, column, labels)
            continue
        yield View(name)
        if column.dtype == object:
            yield from _of_texts(name, column, labels)
        else:
            yield from (View(name, look) for look in (NUMBER if few else ("kind of number",)))
            yield from _fine(name, column, labels, [None])
    yield from joint_views(outputs, labels, columns)


def _varies(column: Array) -> bool:
    if column.dtype == object:
        first = column[0] if column.size else None
        return any(label != first for label in column)
    words = column if column.dtype.kind in "iu" else np.ascontiguousarray(column, dtype=np.float64).view(np.int64)
    return bool(len(words)) and bool((words != words[0]).any())


def _of_vector(name: str, column: Array, labels: Labels) -> Iterator[View]:
    yield from (View(name, look) for look in VECTOR)
    taught = labels.size // 2
    numbers, first = np.nan_to_num(column[:taught].astype(np.float64), posinf=0.0, neginf=0.0), labels[:taught]
    with np.errstate(all="ignore"):
        apart = _mean(numbers[first]) - _mean(numbers[~first])
        weights = np.nan_to_num(apart / numbers.var(axis=0), posinf=0.0, neginf=0.0)
    if weights.any():
        yield View(name, "projection", weights=tuple(weights.tolist()), taught=taught)
    strongest = np.argsort(-_strength(column, labels), kind="stable")[:_MOST_COORDINATES].tolist()
    for place in strongest:
        yield View(name, place=place)
        if column.shape[1] <= 4:
            yield from (View(name, look, place) for look in NUMBER)
    yield from _fine(name, column, labels, strongest)


def _mean(rows: Array) -> Floats:
    return np.asarray(rows.sum(axis=0) / max(1, len(rows)), dtype=np.float64)


def _fine(name: str, column: Array, labels: Labels, places: list[int | None]) -> Iterator[View]:
    """The bits and residues in which the two data sets are clearly apart, in a part of the runs."""
    rows = min(_SCREENED_ROWS, max(500, _SCREENED // max(1, len(places))))
    result: list[tuple[float, View]] = []
    part, chosen = column[:rows], labels[:rows]
    for place in places:
        values = bits.coordinate(part, place)
        for look, raw in (("stored bit", True), ("bit", False)):
            if look == "bit" or values.dtype.kind == "f":
                clear = bits.bits_apart(values, chosen, raw=raw)
                best = np.argsort(-clear, kind="stable")[:3].tolist()
                result += [(float(clear[at]), View(name, look, place, number=at)) for at in best]
        for modulus in bits.MODULI:
            clear_by = bits.apart(bits.residues(values, modulus), chosen)
            result.append((clear_by, View(name, "residue", place, number=modulus)))
    result.sort(key=lambda item: -item[0])
    for kind in ("stored bit", "bit", "residue"):
        yield from [view for clear, view in result if clear > _CLEAR and view.look == kind][:3]


def _of_texts(name: str, column: Array, labels: Labels) -> Iterator[View]:
    """The letters, words and numbers of texts in which the two data sets are clearly apart, in a part of the runs."""
    texts, chosen = [str(text) for text in column[:_TEXTS]], labels[:_TEXTS]
    longest = min(_LETTERS, max(map(len, texts), default=0))
    if longest < 4 or len(set(texts)) < 3:
        return
    result: list[tuple[float, View]] = []
    for sign in (1, -1):
        letters = np.array([text[:longest] if sign > 0 else text[: -longest - 1 : -1] for text in texts])
        codes = letters.view(np.uint32).reshape(len(texts), -1).astype(np.int64)
        for mix in (1, 0x2545F491):
            clear = bits.shares_apart((codes * mix >> (0 if mix == 1 else 13)) & 1, chosen)
            for at in np.argsort(-clear, kind="stable")[:2].tolist():
                result.append((float(clear[at]), View(name, "letter", number=at if sign > 0 else -at - 1)))
    words = [_TOKEN.findall(text) for text in texts]
    for at in range(min(_TOKENS, max(map(len, words), default=0))):
        codes = np.array([bits.hash_of(word[at]) & 31 if at < len(word) else 32 for word in words])
        result.append((bits.apart(codes, chosen), View(name, "word", number=at)))
    result.sort(key=lambda item: -item[0])
    yield from [view for clear, view in result if clear > _CLEAR][:6]
    count = max((len(_NUMBER.findall(text)) for text in texts[:50]), default=0)
    yield from (View(name, "number in the text", number=at) for at in range(min(4, count)))


def _strength(column: Array, labels: Labels) -> Floats:
    """Roughly how far apart the two data sets are, in each coordinate: to leave out the ones that show least."""
    if column.dtype == object:
        codes = np.fromiter((bits.hash_of(label) & 1023 for label in column), np.int64, column.size)
        ours, theirs = (np.bincount(codes[chosen], minlength=codes.max() + 1) for chosen in (labels, ~labels))
        return np.array([np.abs(ours / max(1, ours.sum()) - theirs / max(1, theirs.sum())).sum()])
    matrix = (column if column.ndim == 2 else column[:, None]).astype(np.float64)
    numbers = np.nan_to_num(matrix, posinf=0.0, neginf=0.0)
    with np.errstate(all="ignore"):
        sizes = np.abs(numbers - np.median(numbers, axis=0))  # a coordinate may keep its mean and lose its noise
        looks = (numbers / numbers.std(axis=0), sizes / sizes.std(axis=0), (~np.isfinite(matrix)).astype(np.float64))
        gaps = [np.abs(look[labels].mean(axis=0) - look[~labels].mean(axis=0)) for look in looks]
    return np.asarray(np.nan_to_num(np.maximum.reduce(gaps)), dtype=np.float64)
