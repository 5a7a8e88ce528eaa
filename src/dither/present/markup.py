"""HTML fragments for notebooks, and escaping for every page: nothing from the data becomes a tag.

A fragment has no script and no style sheet, and takes its colors from where it is shown: it is legible on a light and
on a dark ground, whatever the notebook's theme is.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Iterable, Sequence
from fractions import Fraction

_CELL = "padding:.15em 1em .15em 0;border-bottom:1px solid rgba(128,128,128,.35);vertical-align:top"
_SIDES = {
    True: f"{_CELL};text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap",
    False: f"{_CELL};text-align:left",
}


def escaped(text: object) -> str:
    """Text between tags or inside a quoted attribute. Control signs, half surrogates and marks of direction are shown
    as a replacement sign: a key is text from the data, and none of these may change how the page is read.

    >>> escaped('<script>"&"</script>')
    '&lt;script&gt;&quot;&amp;&quot;&lt;/script&gt;'
    >>> escaped("a\\x00b\\u202ec")
    'a�b�c'
    """
    return html.escape(visible(text), quote=True)


def visible(text: object) -> str:
    """Text without control signs, half surrogates and marks of direction, each of which is shown as a replacement sign.
    Ends of lines and tabs become spaces.

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


def block(*parts: str) -> str:
    """Fragments in one block that scrolls where it is wider than the page."""
    return f'<div style="overflow-x:auto;max-width:100%">{"".join(parts)}</div>'


def heading(text: object) -> str:
    """A short line in bold."""
    return f'<div style="font-weight:bold;padding:.3em 0">{escaped(text)}</div>'


def code(text: str) -> str:
    """Source text with its lines."""
    body = "\n".join(escaped(line) for line in text.splitlines())
    style = "background:transparent;color:inherit;margin:.3em 0;white-space:pre-wrap;overflow-wrap:anywhere"
    return f'<pre style="{style}">{body}</pre>'


def lines(texts: Iterable[object]) -> str:
    """Sentences, a line each."""
    style = "padding-top:.3em;opacity:.85;max-width:60em;text-align:left"
    return "".join(f'<div style="{style}">{escaped(text)}</div>' for text in texts)


def table(header: Sequence[object], rows: Iterable[Sequence[object]], numeric: Sequence[bool]) -> str:
    """A table; None is shown as NULL, and columns of numbers stand on the right.

    >>> "&lt;b&gt;" in table(["<b>", "n"], [["north", 41], [None, 6]], [False, True])
    True
    """

    def cell(tag: str, text: object, right: bool, scope: str = "") -> str:
        body = "<em>NULL</em>" if text is None else escaped(text)
        return f'<{tag}{scope} style="{_SIDES[right]}">{body}</{tag}>'

    head = "".join(cell("th", text, right, ' scope="col"') for text, right in zip(header, numeric, strict=True))
    body = "".join(
        f"<tr>{''.join(cell('td', text, right) for text, right in zip(row, numeric, strict=True))}</tr>" for row in rows
    )
    style = "border-collapse:collapse;background:transparent;color:inherit;margin:.5em 0"
    return f'<table style="{style}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def facts(pairs: Iterable[tuple[object, object]]) -> str:
    """Names and what is to be said of each, a line each."""
    body = "".join(
        f'<tr><th scope="row" style="{_SIDES[False]}">{escaped(name)}</th>'
        f'<td style="{_SIDES[False]}">{escaped(text)}</td></tr>'
        for name, text in pairs
    )
    style = "border-collapse:collapse;background:transparent;color:inherit;margin:.5em 0"
    return f'<table style="{style}"><tbody>{body}</tbody></table>'


def guarantee(text: str, epsilon: Fraction | None, except_delta: bool) -> str:
    """A privacy guarantee, and what it says of one person's data; without an epsilon it is one of zCDP.

    >>> "e^ε = 1.65" in guarantee("ε = 0.5", Fraction(1, 2), except_delta=False)
    True
    """
    if epsilon is None:
        meaning = "zero-concentrated differential privacy: ρ adds up over releases; to_approx(delta) converts it"
    else:
        factor = f" = {math.ceil(math.exp(epsilon) * 100) / 100:,.2f}" if epsilon <= 10 else ""
        meaning = f"with or without one person's data, any outcome is as likely to within a factor of e^ε{factor}"
        meaning += ", except with probability at most δ" if except_delta else ""
    return block(heading(text), lines([meaning]))
