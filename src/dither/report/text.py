"""Values as text that a page can hold: escaped, without signs that HTML forbids or that turn the line around."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Sequence
from typing import Any


def escaped(text: object) -> str:
    """Text between tags or inside a quoted attribute. Control signs, half surrogates and marks of direction are shown
    as a replacement sign: a key is text from the data, and none of these may change how the page is read.

    >>> escaped('<script>"&"</script>')
    '&lt;script&gt;&quot;&amp;&quot;&lt;/script&gt;'
    >>> escaped("a\\x00b\\u202ec")
    'a�b�c'
    """
    told = "".join(_sign(sign) for sign in str(text))
    return html.escape(told, quote=True)


def _sign(sign: str) -> str:
    if sign in "\n\t\r":
        return " "
    if "\ufdd0" <= sign <= "\ufdef" or ord(sign) & 0xFFFE == 0xFFFE:
        return "�"
    return "�" if unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") else sign


def shown(value: Any) -> str:
    """A value as in the terminal: six digits of a fraction, nothing for a value that is not there.

    >>> shown(1 / 3), shown(12), shown(None), shown([1, 2])
    ('0.333333', '12', '', '[1, 2]')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(shown(item) for item in value) + "]"
    return str(value)


def error(value: float | None) -> str:
    """An error to three digits, in plain figures where they are short.

    >>> error(17.97), error(1797.3), error(None), error(2.0e9)
    ('18', '1800', '', '2e+09')
    """
    return "" if value is None else f"{float(f'{value:.3g}'):.6g}"


def number(value: Any) -> bool:
    """Whether it can be drawn: a number that is not beyond all measure, and no truth value.

    >>> number(3), number(float("inf")), number(None), number(True)
    (True, False, False, False)
    """
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= 1e300
