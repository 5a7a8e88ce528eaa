"""Text from data, made safe to show: on a terminal, in HTML, and in tables of plain text.

Keys, names and messages may hold anything. None of it may move a cursor, turn a line around or become a tag.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import zip_longest

_HARMLESS = {"\u200c", "\u200d"}  # joiners, which several scripts and many emoji need


def printable(text: str) -> str:
    r"""Return text on one line in which no character controls a terminal or the direction of writing.

    Controls, line separators, bidirectional and other invisible signs, halves of characters and those without a
    meaning are written as escapes. Letters of every script stay as they are.

    >>> print(printable("\x1b[2Jnord\u202e\n"), printable("Ångström 😀"))
    \x1b[2Jnord\u202e\n Ångström 😀
    """
    if text.isprintable():
        return text
    return "".join(
        sign
        if sign.isprintable() or sign in _HARMLESS or unicodedata.category(sign) == "Zs"
        else sign.encode("unicode_escape").decode()
        for sign in text
    )


def visible(text: object) -> str:
    """Replace control signs, half surrogates and marks of direction by �, and line ends and tabs by spaces.

    >>> visible("a\\x00b\\u202ec")
    'a�b�c'
    """
    return "".join(_visible(sign) for sign in str(text))


def _visible(sign: str) -> str:
    if sign in "\n\t\r":
        return " "
    if "\ufdd0" <= sign <= "\ufdef" or ord(sign) & 0xFFFE == 0xFFFE:
        return "�"
    return "�" if unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") else sign


def escaped(text: object) -> str:
    """Return visible text that can stand between tags or inside a quoted attribute.

    >>> escaped('<script>"&"</script>')
    '&lt;script&gt;&quot;&amp;&quot;&lt;/script&gt;'
    """
    return html.escape(visible(text), quote=True)


def shortened(text: str, most: int) -> str:
    """Cut text after ``most`` characters, the last of them an ellipsis.

    >>> shortened("northwest", 6), shortened("north", 6)
    ('north…', 'north')
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[bool] = (), *, rule: bool = True
) -> list[str]:
    """Return the lines of a table: headings, a rule, and cells, which may have several lines.

    Columns of numbers are flush ``right``.

    >>> print("\\n".join(table(["region", "n"], [["north", "41"], ["south", "9"]], [False, True])))
    region   n
    ──────  ──
    north   41
    south    9
    """
    lines = [list(headings)]
    for row in rows:
        lines += map(list, zip_longest(*(cell.split("\n") for cell in row), fillvalue=""))
    widths = [max(len(line[j]) for line in lines) for j in range(len(headings))]
    sides = right or [False] * len(headings)
    shown = [
        "  ".join(
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(line, widths, sides, strict=True)
        ).rstrip()
        for line in lines
    ]
    return [shown[0], *(["  ".join("─" * width for width in widths)] if rule else []), *shown[1:]]
