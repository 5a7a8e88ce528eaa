"""Escaping text from data before it is printed on a terminal, so that nothing in it acts as a command."""

from __future__ import annotations

import unicodedata

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


def _shown(sign: str) -> str:
    if sign.isprintable() or sign in _HARMLESS or unicodedata.category(sign) == "Zs":
        return sign
    return sign.encode("unicode_escape").decode()
