"""Equality of frozen values that hold arrays, and values without a hash.

``==`` of a dataclass compares its fields as a tuple, which fails for arrays: they compare element by element. A class
that derives from :class:`ComparedByValue`, with ``dataclass(frozen=True, eq=False)``, is equal to another of the same
type with equal fields. Neither arrays nor mappings have a hash, and what holds them says so itself.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True, eq=False)
... class Counts(ComparedByValue):
...     counts: np.ndarray
>>> Counts(np.array([1, 2])) == Counts(np.array([1, 2])), Counts(np.array([1, 2])) == Counts(np.array([1, 3]))
(True, False)
>>> hash(Counts(np.array([1, 2])))
Traceback (most recent call last):
TypeError: unhashable type: 'Counts'
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

Kind = TypeVar("Kind", bound=type)


def unhashable(kind: Kind) -> Kind:
    """Decorate a class whose values have no hash: ``hash`` then raises an error that names the class.

    >>> @unhashable
    ... class Answer:
    ...     pass
    >>> hash(Answer())
    Traceback (most recent call last):
    TypeError: unhashable type: 'Answer'
    """
    type.__setattr__(kind, "__hash__", None)
    return kind


@unhashable
class ComparedByValue:
    """Base of frozen dataclasses with array fields: equal if their types and all fields are equal."""

    def __eq__(self, other: object) -> bool:
        """Compare type and fields; arrays element by element, NaN equal to NaN."""
        if type(other) is not type(self) or not is_dataclass(self):
            return NotImplemented
        names = [field.name for field in fields(self) if field.compare]
        return all(_equal(getattr(self, name), getattr(other, name)) for name in names)

    def __init_subclass__(cls) -> None:
        """Make subclasses unhashable, too."""
        super().__init_subclass__()
        unhashable(cls)


def _equal(one: Any, other: Any) -> bool:
    """Return whether two fields are equal; arrays if all elements are, with NaN equal to NaN."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        alike = isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and one.shape == other.shape
        return alike and bool(np.all((one == other) | ((one != one) & (other != other))))  # NaN equals NaN
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)
