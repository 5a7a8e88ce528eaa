"""Printing for commands: plain text, complete, in any encoding of the terminal.

Names and keys come from tables, and messages quote user input. None of them may move the cursor, reverse the direction
of a line or end it: :func:`without_commands` escapes such characters. If the encoding lacks ε or ±, words are printed
instead, so that printing never fails after a question was charged.
"""

from __future__ import annotations

import codecs
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain

from dither.present.text import printable
from dither.present.text import table as text_table

_WORDS = {
    "±": "+/-", "ε": "epsilon", "δ": "delta", "ρ": "rho", "σ": "sigma", "…": "...", "×": "x", "≤": "<=", "≥": ">=",
    "–": "-", "—": "-", "─": "-", "━": "-", "│": "|", "┃": "|", "█": "#", "▒": ":", "→": "->", "√": "sqrt",
    "∞": "infinity", "‘": "'", "’": "'", "“": '"', "”": '"', "²": "^2", "³": "^3", "·": "*", "µ": "mu",
}  # fmt: skip
_BREAKS = re.compile("([\n\t])")
_HANDLER = "dither.words"


def _encodable(error: UnicodeError) -> tuple[str, int]:
    """Replace characters that the encoding of the terminal lacks (an error handler of :mod:`codecs`)."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_word, error.object[error.start : error.end])), error.end


def _word(sign: str) -> str:
    """Return the replacement of a character: a word, a plus sign for box drawing, or an escape."""
    number = sign.encode("unicode_escape", "surrogatepass").decode("ascii")
    return _WORDS.get(sign, "+" if "\u2500" <= sign <= "\u259f" else number)


codecs.register_error(_HANDLER, _encodable)


def prepare() -> None:
    """Make standard streams replace characters that their encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors=_HANDLER)


def without_commands(text: object) -> str:
    """Escape control characters in text, except line ends and tabs.

    >>> without_commands("north\\x1b[2J")
    'north\\\\x1b[2J'
    """
    string = str(text)
    if string.isprintable():
        return string
    return "".join(part if part in ("\n", "\t") else printable(part) for part in _BREAKS.split(string))


def cell(text: object) -> str:
    """Return text on one line without control characters.

    >>> cell("a\\nb\\tc")
    'a b c'
    """
    string = str(text)
    return string if string.isprintable() else without_commands(" ".join(string.replace("\t", " ").splitlines()))


def echo(text: object = "", *, err: bool = False, end: str = "\n") -> None:
    """Print text without control characters."""
    stream = sys.stderr if err else sys.stdout
    stream.write(without_commands(text) + end)
    stream.flush()


def is_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout.isatty()


def busy(doing: str) -> AbstractContextManager[object]:
    """Return a context that shows ``doing`` with a spinner on a terminal while its block runs."""
    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(doing)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table with the titles ``header``: folded to the width of a terminal, or at full width elsewhere."""
    cells = [[cell(part) for part in row] for row in rows]
    lines = text_table(header, cells)
    if is_terminal():
        from rich.console import Console
        from rich.table import Column, Table
        from rich.text import Text

        console = Console(highlight=False, markup=False)
        if max(map(len, lines)) > console.width:
            shown = Table(*(Column(name, overflow="fold") for name in header), show_lines=True)
            for row in cells:
                shown.add_row(*map(Text, row))
            console.print(shown)
            return
    echo("\n".join(lines))


def item(text: object, mark: str = "- ") -> None:
    """Print the paragraph ``text`` after a ``mark``, folded to the width of a terminal, or on one line elsewhere."""
    whole = cell(text)
    if is_terminal():
        width = max(40, shutil.get_terminal_size().columns)
        whole = textwrap.fill(whole, width - len(mark), break_long_words=False, break_on_hyphens=False)
    echo(mark + whole.replace("\n", "\n" + " " * len(mark)))


def stream(header: Sequence[str], rows: Iterable[Sequence[object]], widths: Sequence[int]) -> None:
    """Print the rows of a long table one by one: in columns on a terminal, separated by tabs elsewhere.

    ``widths`` has the width of each column in characters; it is stated since later rows are not known yet.
    """
    separator, room = ("  ", widths) if is_terminal() else ("\t", [0] * len(header))
    for row in chain([header], rows):
        parts = (cell(part).ljust(width) for part, width in zip(row, room, strict=True))
        sys.stdout.write(separator.join(parts).rstrip(" ") + "\n")
    sys.stdout.flush()
