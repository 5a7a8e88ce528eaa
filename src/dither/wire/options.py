"""The options of a release as JSON: an object with those that are not at their defaults.

Who asks is not among them: a server knows that from the session alone, and refuses a request that names an analyst.

>>> to_json(ReleaseOptions(epsilon=0.5, max_rows=3))
{'epsilon': 0.5, 'max_rows': 3}
>>> from_json({"epsilon": 0.5, "noise": "gaussian"}).noise
'gaussian'
"""

from __future__ import annotations

from dataclasses import fields as fields_of
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dither.errors import InvalidArgument, WrongType
from dither.tables.options import ReleaseOptions
from dither.wire import values
from dither.wire.documents import fields, kind_of

NAMES = tuple(item.name for item in fields_of(ReleaseOptions) if item.name not in ("analyst", "key"))
"""The options that may be stated; ``key`` is the header Idempotency-Key."""

_NUMBERS = ("epsilon", "delta", "error", "max_groups", "max_rows")


def to_json(options: ReleaseOptions) -> dict[str, Any]:
    """The options, but for ``key``, which is a header, and ``analyst``, which is refused."""
    if options.analyst is not None:
        fix = "leave it out: a server knows who asks from the token"
        raise InvalidArgument("analyst", "none, on a server", "a name", fix)
    return {
        item.name: values.to_json(getattr(options, item.name))
        for item in fields_of(options)
        if item.name in NAMES and getattr(options, item.name) != item.default
    }


def from_json(document: object, *, analyst: str | None = None, key: str | None = None) -> ReleaseOptions:
    """The options, with the analyst of the session and the key of the request."""
    given = fields(document, "options", (), NAMES)
    for name in _NUMBERS:
        if given.get(name) is None:
            given.pop(name, None)
        elif name in given:
            given[name] = _number(given[name], name)
    return replace(ReleaseOptions(**given), analyst=analyst, key=key)


def _number(document: object, name: str) -> Any:
    value = values.from_json(document, f"options.{name}")
    if isinstance(value, (int, float, Fraction)) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and name in ("error", "max_groups", "max_rows"):
        return value  # "1%", "auto"
    raise WrongType(f"options.{name}", "a number", kind_of(document), f'write "{name}": 1')
