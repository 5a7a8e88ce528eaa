"""Error handling of the command line: every error ends as one line and an exit status, never as a traceback.

========  ============================================================
status    meaning
========  ============================================================
0         done
1         done, and ``audit`` has refuted a claim
2         refused or failed; the line on stderr says why
130       interrupted
========  ============================================================

A traceback would show local variables and messages of libraries, and both can hold data. Of an unexpected error only
its type and its line of code are shown, and after a charge, when rows have been read, not even these.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import typer

import dither
from dither.cli import printing
from dither.errors import DitherError, LedgerError

_USAGE: type[Any] = typer.BadParameter.__mro__[2]  # ClickException, of whichever click typer brings
_REPORT = "please report it, with the command and without any data"


def run(command: Callable[[], object]) -> int:
    """Run a command, print its error in one line, and return the exit status."""
    try:
        result = command()
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except SystemExit as stopped:
        return stopped.code if isinstance(stopped.code, int) else 0 if stopped.code is None else 2
    except BrokenPipeError:  # the reader has closed the pipe
        _forget_output()
        return 2
    except BaseException as error:
        said, status = explained(error)
        if said:
            _say(f"dither: {said}")
        return status


def explained(error: BaseException) -> tuple[str, int]:
    """Return the line to print about an error (empty for none), and the exit status of the command.

    The status is 130 for an interruption (128 plus the number of SIGINT, as in shells), the parser's status for an
    invalid command line, and 2 otherwise. For a failure inside a release, the line also says whether it was charged.
    """
    if isinstance(error, QuestionFailed):
        cause = error.__cause__
        assert cause is not None
        if interrupted(cause):
            return (f"interrupted. {error.charged}" if error.after_charge else ""), 130
        if not isinstance(cause, (DitherError, OSError)) and error.after_charge:
            return f"this is a bug in dither: {_REPORT}. {error.charged}", 2
        said, status = explained(cause)
        return f"{said.rstrip('.')}. {error.charged}", status
    if interrupted(error):
        return "", 130
    if isinstance(error, DitherError):
        return printing.cell(error.command_text), 2
    if isinstance(error, _USAGE):
        return printing.cell(error.format_message()), error.exit_code
    if isinstance(error, OSError):
        return f"{printing.cell(error.filename or 'output')}: {error.strerror or 'cannot be written'}", 2
    if isinstance(error, MemoryError):
        return "out of memory", 2
    return f"this is a bug in dither ({type(error).__name__} at {_location(error)}): {_REPORT}", 2


def interrupted(error: BaseException) -> bool:
    """Return whether Ctrl-C caused an error, directly or as the cause of an error that a library raised."""
    return any(
        isinstance(item, (KeyboardInterrupt, typer.Abort))
        or (isinstance(item, RuntimeError) and str(item) == "Query interrupted")  # what DuckDB makes of it
        for item in _chain(error)
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes, each once."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _location(error: BaseException) -> str:
    """Return file and line of dither's code in which an error was raised last."""
    home = Path(dither.__file__).parent
    lines = [
        f"{Path(frame.filename).relative_to(home).as_posix()}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(home)
    ]
    return lines[-1] if lines else "an unknown line"


def _say(line: str) -> None:
    """Print a line to standard error, unless that is closed."""
    with suppress(OSError, ValueError, AttributeError):  # the terminal is gone
        printing.echo(line, err=True)


def _forget_output() -> None:
    """Redirect standard output to nowhere, so that flushing it at exit does not fail again."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


UNKNOWN = "The ledger cannot be read, so this may have been charged: assume that it was, and see dither budget."


class QuestionFailed(Exception):
    """Wraps the error of a release with a sentence on whether it was charged."""

    def __init__(self, charged: str, *, after_charge: bool) -> None:
        """Keep the sentence ``charged`` about the charge; ``after_charge`` is False if nothing was charged."""
        super().__init__(charged)
        self.charged = charged
        self.after_charge = after_charge


Kind = Literal["question", "publication", "series", "profile"]
"""The kind of a release, which is the name of a field that only requests of this kind have in the ledger."""


@contextmanager
def explaining_failures(ledger: str, dataset: str, kind: Kind, question: str | None = None) -> Iterator[None]:
    """Run a release in the block; if it fails, raise an error that says whether the ledger has charged for it.

    ``ledger`` is the ledger's address, ``dataset`` the charged dataset and ``kind`` the kind of release. ``question``
    is the SQL by which the charge of a question is recognized, None for other releases.
    """
    before = _last_entry(ledger)
    try:
        yield
    except BaseException as error:
        said = _charge_since(ledger, dataset, kind, question, before)
        if said is not None:
            raise QuestionFailed(said, after_charge=True) from error
        if isinstance(error, LedgerError) or not isinstance(error, dither.DitherError):
            raise QuestionFailed("Nothing was charged.", after_charge=False) from error
        raise


def _last_entry(address: str) -> int | None:
    """Return the number of a ledger's last entry; None if it cannot be read."""
    try:
        with dither.ledger.open(address, create=False, read_only=True) as ledger:
            return ledger.head.seq
    except Exception:  # a ledger that cannot be read now may be readable later, and the other way round
        return None


def _charge_since(address: str, dataset: str, kind: Kind, question: str | None, before: int | None) -> str | None:
    """Return a sentence on the newest charge for this release after entry number ``before``; None if there is none.

    ``address`` is the ledger's, ``kind`` the kind of release and ``question`` the SQL of a question (None for other
    kinds). If the ledger cannot be read now or could not be read before (``before`` is None), the text says that the
    charge is unknown.
    """
    from dither.ledger.accounts import promised  # with it SQLAlchemy, which most commands do not need

    paid: dict[int, str] = {}
    answered = set()
    if before is None:
        return UNKNOWN
    try:
        with dither.ledger.open(address, create=False, read_only=True) as ledger:
            if ledger.head.seq == before:
                return None
            for entry in ledger.history(dataset):
                if entry.seq <= before:
                    continue
                if entry.kind == "charge" and _belongs_to(entry.body, kind, question):
                    paid[entry.seq] = str(promised(entry.body["cost"]))
                elif entry.kind == "answer":
                    answered.add(entry.charge)
    except Exception:
        return UNKNOWN
    if not paid:
        return None
    seq, cost = list(paid.items())[-1]
    if kind == "series":
        return f"{cost} was charged, once for the whole series: releasing it again is free."
    if seq in answered:
        return f"{cost} was charged, and the answer is recorded: repeating the question returns it for free."
    return f"{cost} was charged (entry {seq} of the ledger) and stays charged; repeating it is charged again."


def _belongs_to(body: dict[str, object], kind: Kind, question: str | None) -> bool:
    """Return whether the body of a charge belongs to this kind of release, and to this question if it is one.

    The ledger does not keep very long requests; those count as belonging.
    """
    asked = body.get("asked")
    if not isinstance(asked, str):
        return True
    try:
        request = json.loads(asked)
    except ValueError:
        return True
    if not isinstance(request, dict):
        return True
    return kind in request if question is None else request.get(kind) == question
