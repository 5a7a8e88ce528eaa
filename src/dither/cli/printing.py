"""Everything that a command prints: as plain text, complete, and in whatever encoding the terminal has.

Names and keys come from tables, and messages quote what was typed. None of them may move the cursor, turn the line
around or end it: :func:`plain` shows such characters by their number. An encoding without ε or ± gets words instead,
so printing never fails, least of all after a question was charged.
"""

from __future__ import annotations

import codecs
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import zip_longest

from dither.present.text import printable

_WORDS = {
    "±": "+/-", "ε": "epsilon", "δ": "delta", "ρ": "rho", "σ": "sigma", "…": "...", "×": "x", "≤": "<=", "≥": ">=",
    "–": "-", "—": "-", "─": "-", "━": "-", "│": "|", "┃": "|", "█": "#", "→": "->", "√": "sqrt", "∞": "infinity",
    "‘": "'", "’": "'", "“": '"', "”": '"', "²": "^2", "³": "^3", "·": "*", "µ": "mu",
}  # fmt: skip
_BREAKS = re.compile("([\n\t])")
_HANDLER = "dither.words"


def _encodable(error: UnicodeError) -> tuple[str, int]:
    """The replacement for characters that an encoding does not have: a word, a plus sign for a box, or an escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_word, error.object[error.start : error.end])), error.end


def _word(sign: str) -> str:
    if sign in _WORDS:
        return _WORDS[sign]
    return "+" if "\u2500" <= sign <= "\u259f" else _number(sign)


def _number(sign: str) -> str:
    return sign.encode("unicode_escape", "surrogatepass").decode("ascii")


codecs.register_error(_HANDLER, _encodable)


def prepare() -> None:
    """Make the standard streams replace characters that their encoding does not have, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_HANDLER)


def plain(text: object) -> str:
    """Text in which nothing is a command to a terminal; lines and tabs stay.

    >>> plain("north\\x1b[2J")
    'north\\\\x1b[2J'
    """
    string = str(text)
    if string.isprintable():
        return string
    return "".join(part if part in ("\n", "\t") else printable(part) for part in _BREAKS.split(string))


def cell(text: object) -> str:
    """The same, on one line and without tabs.

    >>> cell("a\\nb\\tc")
    'a b c'
    """
    string = str(text)
    return string if string.isprintable() else plain(" ".join(string.replace("\t", " ").splitlines()))


def echo(text: object = "", *, err: bool = False, end: str = "\n") -> None:
    """Print text."""
    stream = sys.stderr if err else sys.stdout
    stream.write(plain(text) + end)
    stream.flush()


def is_terminal() -> bool:
    """Whether standard output is a terminal, whose width is limited."""
    return sys.stdout.isatty()


def busy(doing: str) -> AbstractContextManager[object]:
    """A sign of life on a terminal, while something is done that takes long; nothing where there is no terminal."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(doing)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a small table: folded to the width of a terminal, as wide as it is where there is none."""
    lines = [[cell(part) for part in row] for row in rows]
    widths = [max(len(line[j]) for line in [list(header), *lines]) for j in range(len(header))]
    if is_terminal():
        from rich.console import Console
        from rich.table import Column, Table
        from rich.text import Text

        console = Console(highlight=False, markup=False)
        if sum(widths) + 2 * len(widths) > console.width:
            shown = Table(*(Column(name, overflow="fold") for name in header), show_lines=True)
            for line in lines:
                shown.add_row(*map(Text, line))
            console.print(shown)
            return
    for line in [list(header), ["─" * width for width in widths], *lines]:
        echo("  ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip())


def item(text: object, mark: str = "- ") -> None:
    """Print a paragraph after a mark, folded to the width of a terminal; one line where there is none."""
    whole = cell(text)
    if is_terminal():
        width = max(40, shutil.get_terminal_size().columns)
        whole = textwrap.fill(whole, width - len(mark), break_long_words=False, break_on_hyphens=False)
    echo(mark + whole.replace("\n", "\n" + " " * len(mark)))


def columns(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a small table without a frame, whose cells may have several lines."""
    lines: list[Sequence[str]] = [header]
    for row in rows:
        split = [part.split("\n") for part in row]
        lines += zip_longest(*split, fillvalue="")
    widths = [max(len(cell(line[j])) for line in lines) for j in range(len(header))]
    for line in lines:
        parts = (cell(part).ljust(width) for part, width in zip(line, widths, strict=True))
        echo(("  " + "  ".join(parts)).rstrip())


def stream(header: Sequence[str], rows: Iterable[Sequence[object]], widths: Sequence[int]) -> None:
    """Print a long table line by line: in columns on a terminal, separated by tabs where there is none."""
    wide = is_terminal()
    out = sys.stdout
    out.write(_line(header, widths, wide))
    for row in rows:
        out.write(_line(row, widths, wide))
    out.flush()


def _line(row: Sequence[object], widths: Sequence[int], wide: bool) -> str:
    cells = [cell(part) for part in row]
    if not wide:
        return "\t".join(cells) + "\n"
    return "  ".join(part.ljust(width) for part, width in zip(cells, widths, strict=True)).rstrip() + "\n"
