"""The two neighboring relations. Every sensitivity is a function of one of them.

>>> AddRemove, ReplaceOne
(AddRemove, ReplaceOne)
"""

from __future__ import annotations

from enum import Enum

from dither.errors import WrongType


class Neighbors(Enum):
    """What it means for two tables to differ in one person.

    >>> Neighbors.AddRemove.description
    'one record is added or removed; the number of records is private'
    """

    AddRemove = "one record is added or removed; the number of records is private"
    ReplaceOne = "one record is replaced by another; the number of records is public"

    @property
    def description(self) -> str:
        """Return the relation in words."""
        return self.value

    def __repr__(self) -> str:
        return self.name


AddRemove = Neighbors.AddRemove
"""One record is added or removed; the number of records is private.

>>> AddRemove
AddRemove
"""

ReplaceOne = Neighbors.ReplaceOne
"""One record is replaced by another; the number of records is public.

>>> ReplaceOne
ReplaceOne
"""


def relation(value: object) -> Neighbors:
    """Return the neighboring relation; refuse anything else.

    >>> relation(AddRemove)
    AddRemove
    """
    if not isinstance(value, Neighbors):
        raise WrongType(
            "neighbors",
            "dither.AddRemove or dither.ReplaceOne",
            type(value).__name__,
            "pass neighbors=dither.ReplaceOne",
        )
    return value
