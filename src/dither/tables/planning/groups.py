"""The groups of a plan whose keys are all public: every combination of them."""

from __future__ import annotations

import itertools
import math

from dither.errors import InvalidArgument, message
from dither.tables.planning.key_selection import Key
from dither.tables.planning.plan import Plan

MOST_COMBINATIONS = 1_000_000


def every_group(plan: Plan) -> list[Key] | None:
    """The groups, where all keys are public."""
    if any(keys is None for keys in plan.keys):
        return None
    size = math.prod(len(keys) for keys in plan.keys if keys is not None)
    if size > MOST_COMBINATIONS:
        raise InvalidArgument(
            message("groups", f"at most {MOST_COMBINATIONS} combinations of public keys", f"{size}", "state fewer keys")
        )
    return list(itertools.product(*(keys for keys in plan.keys if keys is not None)))


def group_numbers(plan: Plan) -> list[Key] | None:
    """The groups by the numbers of their keys, in the order of :func:`every_group`."""
    if any(keys is None for keys in plan.keys):
        return None
    return list(itertools.product(*(range(len(keys)) for keys in plan.keys if keys is not None)))


__all__ = ["MOST_COMBINATIONS", "every_group", "group_numbers"]
