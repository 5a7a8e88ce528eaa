"""Formatting of text and numbers for terminals, HTML and tables of plain text.

Keys, names and messages may contain any characters. None may move a cursor, reverse the direction of a line or become a
tag. Numbers have no more digits than their ± allows, separated thousands and no powers of ten; programs get full
numbers.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Decimal
from itertools import zip_longest
from typing import Any

_HARMLESS = {"\u200c", "\u200d"}  # joiners, which several scripts and many emoji need


def printable(text: str) -> str:
    r"""Return text on one line, with all characters escaped that control a terminal or the direction of writing.

    Control characters, line separators, bidirectional and other invisible characters, surrogates and unassigned
    characters are written as escapes. Letters of every script stay as they are.

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
    """Replace control and direction characters and half surrogates by �, line ends and tabs by spaces.

    >>> visible("a\\x00b\\u202ec")
    'a�b�c'
    """
    return "".join(_visible(sign) for sign in str(text))


def _visible(sign: str) -> str:
    """Return the visible replacement of one character."""
    if sign in "\n\t\r":
        return " "
    if "\ufdd0" <= sign <= "\ufdef" or ord(sign) & 0xFFFE == 0xFFFE:
        return "�"
    return "�" if unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") else sign


def escaped(text: object) -> str:
    """Return visible text escaped for HTML, inside tags and quoted attributes.

    >>> escaped('<script>"&"</script>')
    '&lt;script&gt;&quot;&amp;&quot;&lt;/script&gt;'
    """
    return html.escape(visible(text), quote=True)


def shortened(text: str, most: int) -> str:
    """Cut text to ``most`` characters, the last of which is then an ellipsis.

    >>> shortened("northwest", 6), shortened("north", 6)
    ('north…', 'north')
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def table(
    headings: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[bool] = (), *, rule: bool = True
) -> list[str]:
    """Return the lines of a plain text table: headings, a rule, and cells, which may have several lines.

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


# -- numbers ----------------------------------------------------------------------------------------------------------

_LARGEST = 1e15
_SMALLEST = 1e-6


def decimals_of(error: float) -> int:
    """Return how many decimals a number is shown with beside its error; negative for tens and hundreds.

    It is the rule of the Particle Data Group: two significant digits of an error that begins with 100 to 354, one of
    an error that begins with 355 to 949, and 950 to 999 are rounded up to 1000 with two.

    >>> decimals_of(0.848), decimals_of(17.97), decimals_of(1797.3), decimals_of(9.96), decimals_of(3.2)
    (1, 0, -2, 0, 1)
    """
    digits, _, exponent = f"{error:.2e}".partition("e")
    return (1 if float(digits) < 3.55 else 0) - int(exponent)


def two_digit_decimals(size: float) -> int:
    """Return how many decimals show two significant digits of a size; negative for tens and hundreds.

    >>> two_digit_decimals(0.848), two_digit_decimals(1797.3), two_digit_decimals(9.96)
    (2, -2, 0)
    """
    return 1 - int(f"{size:.1e}".partition("e")[2])


def rounded(value: float, decimals: int) -> str:
    """Format a number with this many decimals and separated thousands; negative decimals round to tens and hundreds.

    >>> rounded(15.6828, 1), rounded(98845, -1), rounded(2157950.4, 0), rounded(-0.01, 1)
    ('15.7', '98,840', '2,157,950', '0.0')
    """
    if isinstance(value, int):
        return f"{round(value, min(decimals, 0)):,}"
    if not math.isfinite(value) or abs(value) >= _LARGEST:
        return f"{value:.6g}"
    return f"{round(value, decimals) + 0.0:,.{max(decimals, 0)}f}"


def significant(value: float, digits: int = 6) -> str:
    """Format a number with this many significant digits, without an exponent if it has at most 15 digits.

    >>> significant(2157950.0), significant(1 / 3), significant(2013.0), significant(1e300), significant(0.0)
    ('2,157,950', '0.333333', '2013', '1e+300', '0')
    """
    size = abs(value)
    if size == 0:
        return "0"
    if not math.isfinite(value) or not _SMALLEST <= size < _LARGEST:
        return f"{value:.{digits}g}"
    decimals = digits - 1 - int(f"{value:.{digits - 1}e}".partition("e")[2])
    text = f"{value:,.{max(decimals, 0)}f}" if size >= 1e4 else f"{value:.{max(decimals, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def rounded_up(value: float) -> str:
    """Format a positive number, rounded up to three significant digits, without an exponent or separators.

    >>> rounded_up(10.3001), rounded_up(0.0123), rounded_up(123456.0)
    ('10.4', '0.0123', '124000')
    """
    exact = Decimal(repr(float(value)))
    step = Decimal(1).scaleb(exact.adjusted() - 2)
    return f"{(exact / step).to_integral_value(ROUND_CEILING) * step:f}"


def two_digits(size: float) -> str:
    """Format the size of an error or of noise with two significant digits.

    >>> two_digits(1898.2), two_digits(0.848), two_digits(0.0)
    ('1,900', '0.85', '0')
    """
    if not math.isfinite(size) or not _SMALLEST <= size < _LARGEST:
        return significant(size, 2)
    return rounded(float(size), two_digit_decimals(size))


def with_error(value: float, error: float | None) -> tuple[str, str]:
    """Format a noisy number and its ± (``error``): the ± with one or two significant digits, the number with as many
    decimals.

    A whole number is shown without decimals, and its ± then rounded up. An error of None gives an empty ±.

    >>> with_error(15.6828, 0.848), with_error(98845, 181.7), with_error(41, 6.2), with_error(2157950.3, None)
    (('15.7', '0.8'), ('98,840', '180'), ('41', '7'), ('2,157,950', ''))
    """
    if error is None:
        return (f"{value:,}" if isinstance(value, int) else significant(value)), ""
    if not math.isfinite(error) or not _SMALLEST <= error < _LARGEST:
        return (f"{value:,}" if isinstance(value, int) else significant(value)), two_digits(error)
    decimals = decimals_of(error)
    if isinstance(value, int) and two_digit_decimals(error) > 0:
        return f"{value:,}", f"{math.ceil(error):,}"
    return rounded(value, decimals), rounded(float(error), decimals)


def noisy(value: Any, error: float | None) -> tuple[str, str]:
    """Format a noisy value of any type and its ±; the bins of a histogram share one ±.

    >>> noisy(15.6828, 0.848), noisy([98845, 10], 181.7), noisy("north", None), noisy(None, 2.5)
    (('15.7', '0.8'), ('[98,840, 10]', '180'), ('north', ''), ('', ''))
    """
    if value is None:
        return "", ""
    if isinstance(value, list):
        pairs = [noisy(item, error) for item in value]
        return "[" + ", ".join(text for text, _ in pairs) + "]", pairs[0][1] if pairs else ""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return with_error(value, error)
    return shown(value), "" if error is None else with_error(0.0, error)[1]


def shown(value: Any) -> str:
    """Format a value on one line: fractions with six digits, nothing for None, no control characters.

    >>> shown(1 / 3), shown(12), shown(None), shown([1, 2])
    ('0.333333', '12', '', '[1, 2]')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return significant(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(shown(item) for item in value) + "]"
    return printable(str(value).replace("\n", " "))


def keys_shown(values: Iterable[Any]) -> str:
    """Format the keys of a row as one label.

    >>> keys_shown(["north", None]), keys_shown([])
    ('north, NULL', '')
    """
    return ", ".join("NULL" if value is None else shown(value) for value in values)


def percent(share: float) -> str:
    """Format a share or a relative error as a percentage, with two significant digits below 100 %.

    >>> percent(0.5), percent(0.0123), percent(3.456), percent(2e-7), percent(0)
    ('50 %', '1.2 %', '346 %', 'less than 0.01 %', '0 %')
    """
    if 0 < share < 0.0001:
        return "less than 0.01 %"
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * min(share, 99.99):,.0f} %"
