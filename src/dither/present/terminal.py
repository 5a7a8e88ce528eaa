"""Text on a terminal: tables in columns, and names from data in which nothing acts as a command."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

_HARMLESS = {"\u200c", "\u200d"}  # joiners, which several scripts and many emoji need


def printable(text: str) -> str:
    r"""Text on one line in which no character controls a terminal or the direction of writing.

    Controls, line separators, bidirectional and other invisible signs, halves of characters and those without a
    meaning are written as escapes. Letters of every script stay as they are.

    >>> print(printable("\x1b[2Jnord\u202e\n"), printable("Ångström 😀"))
    \x1b[2Jnord\u202e\n Ångström 😀
    """
    if text.isprintable():
        return text
    return "".join(map(_shown, text))


def table(headings: Sequence[str], lines: Iterable[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """The lines of a table of text: its headings, a rule, and its cells; columns of numbers are flush ``right``.

    >>> print("\\n".join(table(["region", "n"], [["north", "41"], ["south", "9"]], [False, True])))
    region   n
    ──────  ──
    north   41
    south    9
    """
    cells = [list(headings), *map(list, lines)]
    widths = [max(len(line[j]) for line in cells) for j in range(len(headings))]
    shown = [
        "  ".join(
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in cells
    ]
    return [shown[0], "  ".join("─" * width for width in widths), *shown[1:]]


def _shown(sign: str) -> str:
    if sign.isprintable() or sign in _HARMLESS or unicodedata.category(sign) == "Zs":
        return sign
    return sign.encode("unicode_escape").decode()
