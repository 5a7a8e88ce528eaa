"""Values of people as codes of categories: what a category may be, and which values are equal.

Categories and values are read by one rule, that of :func:`dither.validation.as_values`: 17, 17.0 and
``numpy.int64(17)`` are one label; True is not 1; a missing value (None, NaN) is no label.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.errors import InvalidArgument, InvalidData, WrongType
from dither.validation import as_values

MAX_CATEGORIES = 1 << 31


def require_column(
    values: Any,
    name: str,
    expected: str = "a column of values",
    fix: str = "pass a list or an array, one value a person",
) -> None:
    """Refuse a value that is not a list, an array or a column."""
    if isinstance(values, (str, bytes, dict)) or not hasattr(values, "__len__"):
        raise WrongType(name, expected, type(values).__name__, fix)


def read_labels(values: Any, name: str) -> list[Any]:
    """Return values as plain Python objects, numbers of equal value alike; None for missing ones."""
    labels: list[Any] = as_values(values, "label", name=name).values.tolist()
    return labels


def read_categories(categories: Any) -> int | tuple[Any, ...]:
    """Return the declared categories: their number if one was given, else a tuple of distinct labels."""
    if not isinstance(categories, (Sequence, np.ndarray)) or isinstance(categories, (str, bytes)):
        if hasattr(categories, "__iter__"):
            kind = type(categories).__name__
            raise WrongType("categories", "a list of labels or their number", kind, "pass a list, in one order")
        return arguments.whole(categories, "categories", 2, MAX_CATEGORIES)
    labels = tuple(read_labels(categories, "categories"))
    if None in labels:
        raise WrongType(
            "categories",
            "labels, such as texts and whole numbers",
            "None, NaN or an object that cannot be hashed",
            'name every category; for missing values use a label such as "missing"',
        )
    different = len({_key(label) for label in labels})
    if different != len(labels):
        raise InvalidArgument("categories", "labels that differ", "a label twice", "name each category once")
    if different < 2:
        raise InvalidArgument("categories", "at least two", different, "name two categories or more")
    return labels


def encode(values: Any, categories: int | tuple[Any, ...], name: str) -> NDArray[np.int64]:
    """Return the index of each value among the categories; other values are refused without naming them."""
    if isinstance(categories, int):
        count, codes = categories, integers(values, name)
    else:
        index = {_key(label): code for code, label in enumerate(categories)}
        count = len(categories)
        codes = np.array([index.get(_key(label), -1) for label in read_labels(values, name)], dtype=np.int64)
    if codes.size and not (int(codes.min()) >= 0 and int(codes.max()) < count):
        raise InvalidData(
            name,
            f"one of the {count} categories each",
            "a value that is not among them",
            "add a category for the others and for missing values",
        )
    return codes


def integers(values: Any, name: str = "values") -> NDArray[np.int64]:
    """Return whole numbers from 0 to 2^62 as int64; -1, or another negative number, for other values."""
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "iu":
        if values.dtype == np.uint64:
            return np.where(values > np.uint64((1 << 63) - 1), np.int64(-1), values.astype(np.int64))
        return values.astype(np.int64)
    labels = read_labels(values, name)
    return np.array([item if type(item) is int and 0 <= item < 1 << 62 else -1 for item in labels], dtype=np.int64)


def labels_digest(labels: tuple[Any, ...]) -> str:
    """Return 16 hexadecimal digits of the SHA-256 hash of the labels in their order.

    Hashed are the types and texts, joined by zero bytes; a zero byte in a text is doubled.
    """
    text = "\0".join(f"{type(label).__name__}:{label}".replace("\0", "\0\0") for label in labels)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _key(label: Any) -> Any:
    """Return the key by which a label is looked up: the label, but a pair for True and False, which equal 1 and 0."""
    return (bool, label) if type(label) is bool else label
