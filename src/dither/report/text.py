"""Values as text that a page can hold: escaped, without signs that HTML forbids or that turn the line around."""

from __future__ import annotations

import html
import unicodedata
from typing import Any

from dither.tables.answer import short as error
from dither.tables.answer import shown


def escaped(text: object) -> str:
    """Text between tags or inside a quoted attribute. Control signs, half surrogates and marks of direction are shown
    as a replacement sign: a key is text from the data, and none of these may change how the page is read.

    >>> escaped('<script>"&"</script>')
    '&lt;script&gt;&quot;&amp;&quot;&lt;/script&gt;'
    >>> escaped("a\\x00b\\u202ec")
    'a�b�c'
    """
    visible = "".join(_sign(sign) for sign in str(text))
    return html.escape(visible, quote=True)


def _sign(sign: str) -> str:
    if sign in "\n\t\r":
        return " "
    if "\ufdd0" <= sign <= "\ufdef" or ord(sign) & 0xFFFE == 0xFFFE:
        return "�"
    return "�" if unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") else sign


def number(value: Any) -> bool:
    """Whether it can be drawn: a number that is not beyond all measure, and no truth value.

    >>> number(3), number(float("inf")), number(None), number(True)
    (True, False, False, False)
    """
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= 1e300


__all__ = ["error", "escaped", "number", "shown"]
