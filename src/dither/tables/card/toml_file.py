"""TOML files that people write: cards and plans, read so that every mistake in the file itself is named."""

from __future__ import annotations

import difflib
import re
import tomllib
from pathlib import Path
from typing import Any

from dither.errors import InvalidArgument
from dither.tables.card.columns import wrong
from dither.tables.card.wording import clip


def read_bytes(place: Path, what: str, hint: str) -> bytes:
    """The bytes of a file; ``what`` it is and a ``hint`` how to come by one are for refusals.

    >>> read_bytes(Path("nowhere.toml"), "card", "or draft a card with dither init")
    Traceback (most recent call last):
    dither.InvalidArgument: card: expected a file that can be read, got none of the name 'nowhere.toml'. Fix: check the
    path, or draft a card with dither init.
    """
    try:
        return place.read_bytes()
    except IsADirectoryError:
        raise wrong(what, "a file", "a folder", f"name the {what} in it") from None
    except (OSError, ValueError):  # a NUL in the path is a ValueError
        raise missing(place, what, hint) from None


def contents(raw: bytes, what: str) -> dict[str, Any]:
    """What the bytes of a TOML file say.

    >>> contents(b"a = 1", "card")
    {'a': 1}
    """
    try:
        return tomllib.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise wrong(what, "a file in UTF-8", "another encoding", "save it as UTF-8") from None
    except RecursionError:
        raise wrong(what, "a file in TOML", "lists or tables nested too deep", "write them flat") from None
    except ValueError as error:  # TOMLDecodeError, and numbers too long to be read
        raise _mistake(str(error), what) from None


def missing(place: Path, what: str, hint: str) -> InvalidArgument:
    """The refusal of a file that is not there, with the name of one beside it that is meant, perhaps."""
    beside = [item.stem for item in place.parent.glob("*.toml")][:200] if place.parent.is_dir() else []
    near = difflib.get_close_matches(place.stem[:200], beside, n=1)
    fix = f"write '{near[0]}.toml', the nearest name" if near else f"check the path, {hint}"
    return wrong(what, "a file that can be read", f"none of the name {clip(place.name)!r}", fix)


def _mistake(text: str, what: str) -> InvalidArgument:
    """The refusal of a file that is no TOML, with the place of the first mistake."""
    line = re.search(r"line ([0-9]+), column ([0-9]+)", text)
    at = f"a mistake in line {line[1]}, at column {line[2]}" if line else "a mistake"
    at = "a mistake at its end" if "end of document" in text else at
    fix = 'write key = value there, with text in "…", lists in […] and sections as [name], each once'
    return wrong(what, "a file in TOML", at, fix)


__all__ = ["contents", "missing", "read_bytes"]
