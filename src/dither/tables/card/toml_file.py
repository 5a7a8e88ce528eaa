"""TOML files that people write: cards, plans and the configuration of a server. Every mistake in the file itself is
named with its line."""

from __future__ import annotations

import difflib
import re
import tomllib
from pathlib import Path
from typing import Any

from dither.errors import InvalidArgument
from dither.present.terminal import printable
from dither.tables.card.columns import wrong
from dither.tables.card.wording import clip

_MOST_LINES = 1_000
"""How far back the beginning of a mistake is looked for."""


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


def contents(raw: bytes, what: str, place: Path | None = None) -> dict[str, Any]:
    """What the bytes of a TOML file say; ``what`` it is and its ``place`` are for refusals.

    >>> contents(b"a = 1", "card")
    {'a': 1}
    >>> contents(b"a = 1\\nb = [1,, 2]", "card", Path("visits.toml"))
    Traceback (most recent call last):
    dither.InvalidArgument: card visits.toml: expected a file in TOML, got a mistake in line 2, column 8: b = [1,, 2].
    Fix: write key = value there, with text in "…", lists in […] and sections as [name], each once.
    """
    name = what if place is None else f"{what} {clip(place.name)}"
    try:
        text = raw.decode("utf-8-sig")
        return tomllib.loads(text)
    except UnicodeDecodeError:
        raise wrong(name, "a file in UTF-8", "another encoding", "save it as UTF-8") from None
    except RecursionError:
        raise wrong(name, "a file in TOML", "lists or tables nested too deep", "write them flat") from None
    except ValueError as error:  # TOMLDecodeError, and numbers too long to be read
        raise _mistake(str(error), text, name) from None


def missing(place: Path, what: str, hint: str) -> InvalidArgument:
    """The refusal of a file that is not there, with the name of one beside it that is meant, perhaps."""
    beside = [item.stem for item in place.parent.glob("*.toml")][:200] if place.parent.is_dir() else []
    near = difflib.get_close_matches(place.stem[:200], beside, n=1)
    fix = f"write '{near[0]}.toml', the nearest name" if near else f"check the path, {hint}"
    return wrong(what, "a file that can be read", f"none of the name {clip(place.name)!r}", fix)


def _mistake(reason: str, text: str, name: str) -> InvalidArgument:
    """The refusal of a file that is no TOML, with the place of the first mistake and its line.

    Of what was never closed, a list or a text, the parser names the place where it gave up; the mistake is where it
    begins.
    """
    lines = text.splitlines()
    match = re.search(r"line ([0-9]+), column ([0-9]+)", reason)
    end = min(int(match[1]), len(lines)) if match else len(lines)
    begin = _beginning(lines, end)
    column = int(match[2]) if match and begin == end else len(lines[begin - 1].rstrip()) + 1 if begin == end else 1
    where = f"line {begin}, column {column}" if begin == end else f"what begins in line {begin}"
    got = f"a mistake in {where}: {_shown(lines[begin - 1])}" if lines else "a mistake"
    fix = 'write key = value there, with text in "…", lists in […] and sections as [name], each once'
    return wrong(name, "a file in TOML", got, fix)


def _beginning(lines: list[str], end: int) -> int:
    """The line in which the statement begins that ends in a mistake in line ``end``: those before it can be read."""
    for before in range(end - 1, max(-1, end - _MOST_LINES), -1):
        try:
            tomllib.loads("\n".join(lines[:before]))
        except (ValueError, RecursionError):
            continue
        blank = (
            line for line in range(before, end) if lines[line].strip() and not lines[line].lstrip().startswith("#")
        )
        return next(blank, end - 1) + 1
    return end


def _shown(line: str) -> str:
    """A line of a file, for a message; passwords and secrets are left out."""
    if re.search("(?i)secret|password|token", line.partition("=")[0]):
        line = line.partition("=")[0] + "= …"
    line = re.sub(r"(?i)(password=)[^&\s\"':]*", r"\1…", re.sub(r"(://[^/@:\s]*):[^@\s]*@", r"\1:…@", line))
    return clip(printable(line.strip()))
