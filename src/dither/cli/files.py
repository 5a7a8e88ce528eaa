"""The files of a command: the card that it opens, with its ledger and receipt, and the files that it writes.

The last receipt is kept beside the card (``visits.toml.receipt``), or in the file that the card's ``receipt`` states,
best on a different disk. It is read before a question and written after each answer, so that a ledger that was rolled
back or removed is refused.

Whether an output file may be written is decided before anything else happens:

* Existing files are not overwritten without ``--force``.
* A source, card, ledger, key or receipt is never overwritten. Such files are recognized by the card of the command, by
  the cards in the folder that is written to, and by their content.
* A file appears whole or not at all. A temporary file is made before a question is charged, so that a folder that is
  missing or read-only is refused before the charge.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import dither
from dither.errors import DitherError, InvalidArgument, LedgerError, LedgerRolledBack, LimitsDiffer
from dither.extras import need
from dither.guarantees import ZCDP, Guarantee
from dither.ledger import Receipt
from dither.ledger.chain import check_receipt_file, read_receipt
from dither.release.pipeline import incident_log_beside_card
from dither.tables import table as session
from dither.tables.card import toml
from dither.tables.card.model import Card
from dither.tables.table import Table

LEDGER_ENDINGS = ("", "-wal", "-shm", "-journal", ".key", ".incidents.log")
_RECEIPT = re.compile(rb"\s*[0-9]{1,18}:[0-9a-f]{64}\s*")
_KEY = re.compile(rb"\s*[0-9a-fA-F]{64}\s*")
_CARD = re.compile(rb"^\s*(source\s*=|\[\s*(columns|tables))", re.MULTILINE)
_SCHEME = re.compile(r"https?://", re.IGNORECASE)
_MAX_CARDS, _MAX_CARD_BYTES = 200, 1 << 20


def receipt_file(path: str | os.PathLike[str], card: Card) -> Path:
    """Return the file in which the command line keeps the last receipt: as the card states, or beside the card."""
    return Path(card.receipt or f"{os.fspath(path)}.receipt")


def of_card(path: str | os.PathLike[str], card: Card) -> set[Path]:
    """Return the files of a card, which are never overwritten: card, sources, ledger, key, receipt, incident log."""
    result = {Path(path), receipt_file(path, card)}
    private, public = card.private_tables.values(), card.public.values()
    for source in (*(table.source for table in private), *(table.source for table in public)):
        result |= source_files(source)
    if card.ledger is not None and "://" not in card.ledger:
        result |= {Path(card.ledger + ending) for ending in LEDGER_ENDINGS}
    return result | ({Path(card.incident_log)} if card.incident_log else set())


def source_files(source: str) -> set[Path]:
    """Return the files that a source names; none for a table on a database server."""
    if "://" in source or source.startswith("spark::"):
        return set()
    place = source.rpartition("::")[0] or source
    return {Path(place), *map(Path, glob.glob(place, recursive=True))}


class OutputFiles:
    """The files that a command will write; leaving its ``with`` block removes reserved files that were not written.

    >>> with tempfile.TemporaryDirectory() as folder, OutputFiles() as outputs:
    ...     outputs.add("--output", folder + "/answer.csv", ("csv", "json"))
    ...     outputs.write("--output", lambda path: Path(path).write_text("n"))
    ...     Path(folder, "answer.csv").read_text(), os.listdir(folder)
    ('n', ['answer.csv'])
    """

    def __init__(self, *, force: bool = False, protected: Iterable[Path] = ()) -> None:
        """Overwrite existing files if ``force``, but never a ``protected`` one."""
        self._force = force
        self._protected = set(protected)
        self._reserved: dict[str, tuple[Path, Path]] = {}

    def add(self, option: str, path: str | None, endings: tuple[str, ...] = ()) -> None:
        """Check that the file of an option may be written, and reserve a temporary file beside it.

        ``option`` is the flag, as ``--output``; ``path`` is what was passed, None if nothing was; ``endings`` are the
        endings a file name may have, without dots, and empty allows any.
        """
        if path is None:
            return
        target = Path(path)
        if not path or "\0" in path or target.name in ("", "..") or path.endswith(("/", os.sep)):
            raise InvalidArgument(option, "the name of a file", repr(path[:40]), f"pass {option} {_example(endings)}")
        if endings and target.suffix.lower().lstrip(".") not in endings:
            wanted = f"a file that ends in .{', .'.join(endings)}"
            raise InvalidArgument(option, wanted, repr(target.suffix[:20]), f"pass {option} {_example(endings)}")
        self._check(option, target)
        for other, (_, taken) in self._reserved.items():
            if _same(taken, target):
                raise InvalidArgument(
                    option, f"a different file from {other}", "the same file", "choose another name for one of them"
                )
        try:
            handle, room = tempfile.mkstemp(dir=target.parent, prefix=".dither-", suffix=target.suffix)
        except (OSError, ValueError):
            raise _unwritable(option) from None
        os.close(handle)
        self._reserved[option] = (Path(room), target)

    def write(self, option: str, content: Callable[[str], object]) -> None:
        """Write the file of an option, if it was passed: ``content`` gets the path of a temporary file with the same
        ending."""
        if option not in self._reserved:
            return
        room, target = self._reserved[option]
        content(str(room))
        os.chmod(room, 0o666 & ~_umask())
        self._check(option, target)  # the file may have been created since it was reserved
        if self._force:
            os.replace(room, target)
        else:
            _give_name(option, room, target)
        del self._reserved[option]

    def add_plot(self, path: str | None) -> None:
        """Check that matplotlib is installed and that the plot may be written, and reserve room for it."""
        if path is not None:
            need("matplotlib.figure", "plot")
        self.add("--plot", path, ("png", "svg", "pdf", "jpg", "webp"))

    def write_plot(self, draw: Callable[[Any], object], width: float = 7.0) -> None:
        """Draw a plot by ``draw``, which is passed new axes, and write it to the file of ``--plot``, if that option was
        passed.

        ``width`` is the figure's width in inches.
        """

        def save(room: str) -> None:
            """Draw and save the figure."""
            figure = need("matplotlib.figure", "plot").Figure(figsize=(width, 4.0), layout="constrained")
            draw(figure.subplots())
            figure.savefig(room)

        self.write("--plot", save)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for room, _target in self._reserved.values():
            room.unlink(missing_ok=True)
        self._reserved = {}

    def _check(self, option: str, target: Path) -> None:
        """Refuse a file that exists without --force, that is protected, or whose folder cannot be written."""
        try:
            about = target.stat()
        except FileNotFoundError:
            if target.is_symlink():
                raise InvalidArgument(option, "a file", "a link to nowhere", "choose another name") from None
            about = None
        except (OSError, ValueError):
            raise _unwritable(option) from None
        if not target.absolute().parent.is_dir():
            raise _unwritable(option)
        what = self._what_it_is(target, about)
        if what:
            fix = f"pass another name with {option}; --force does not help"
            raise InvalidArgument(option, "a file that may be written", what, fix)
        if about is not None and not stat.S_ISREG(about.st_mode):
            raise InvalidArgument(option, "a file", "a folder or a device", "choose another name")
        if about is not None and not self._force:
            raise InvalidArgument(option, "a new file", "one that exists", "choose another name, or pass --force")

    def _what_it_is(self, target: Path, about: os.stat_result | None) -> str:
        """Return why the file ``target`` must never be overwritten, as a phrase; empty if it may be.

        ``about`` is the file's status, None if it does not exist. Protected are the files of cards (sources, ledgers,
        keys and receipts) by name and, by their first bytes, databases, receipts and keys; a card is recognized by its
        columns.
        """
        if any(_same(target, item) for item in (*self._protected, *_of_cards_beside(target, self._protected))):
            named = "a source, card, ledger, key or receipt"
            return f"the name of {named}" if about is None else f"one that exists and is {named}"
        if about is None or not stat.S_ISREG(about.st_mode):
            return ""
        try:
            with target.open("rb") as file:
                start = file.read(200)
        except OSError:
            return "one that exists and cannot be read"
        if start.startswith(b"SQLite format 3\0") or start[8:12] == b"DUCK":
            return "one that exists and is a database or a ledger"
        if _RECEIPT.fullmatch(start) or _KEY.fullmatch(start):
            return "one that exists and is a receipt or a key"
        return "one that exists and is a card" if target.suffix.lower() == ".toml" and _mentions_columns(target) else ""


def _of_cards_beside(target: Path, known: set[Path]) -> set[Path]:
    """Return the files of all cards in the folder of a file, except cards that are known already."""
    result: set[Path] = set()
    for path in sorted(target.absolute().parent.glob("*.toml"))[:_MAX_CARDS]:
        card = None if any(_same(path, item) for item in known) else _card_in(path)
        if card is not None:
            result |= of_card(path, card)
    return result


def _card_in(path: Path) -> Card | None:
    """Return the card in a file; None if it holds none."""
    if path.suffix.lower() != ".toml":
        return None
    try:
        return toml.read(path) if path.stat().st_size <= _MAX_CARD_BYTES else None
    except (DitherError, OSError):
        return None


def _mentions_columns(path: Path) -> bool:
    """Return whether a file looks like a card, even with mistakes."""
    try:
        return _CARD.search(path.read_bytes()[:_MAX_CARD_BYTES]) is not None
    except OSError:
        return True


def _same(one: Path, other: Path) -> bool:
    """Return whether two paths lead to one file, or would if it existed."""
    try:
        return os.path.realpath(one) == os.path.realpath(other) or os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def _give_name(option: str, room: Path, target: Path) -> None:
    """Move the finished temporary file ``room`` to its name ``target``, unless that name was taken meanwhile.

    A hard link is made first because, unlike a rename, it fails if the name exists.
    """
    try:
        os.link(room, target)
    except FileExistsError:
        raise InvalidArgument(option, "a new file", "one that was made meanwhile", "choose another name") from None
    except OSError as error:  # a file system without links
        if error.errno == errno.ENOSPC:
            raise
        os.replace(room, target)
    else:
        room.unlink()


def _umask() -> int:
    """Return the process's umask."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _example(endings: tuple[str, ...]) -> str:
    """Return an example of a file name with the first of these endings."""
    return f"answer.{endings[0]}" if endings else "answer.csv"


def _unwritable(option: str) -> InvalidArgument:
    """Return the error for a file in a folder that is missing or read-only."""
    return InvalidArgument(
        option, "a file in a folder that exists and can be written", "one elsewhere", "make the folder first"
    )


def is_url(text: str) -> bool:
    """Return whether an argument is the address of a server rather than the path of a card.

    >>> is_url("https://host/visits"), is_url("visits.toml"), is_url("postgresql://host/db")
    (True, False, False)
    """
    return _SCHEME.match(text) is not None


def read_card(path: str) -> Card:
    """Read a card, with receipt and incident log beside it unless it states other files; refuse the address of a
    server."""
    if is_url(path):
        fix = "run it where the card and its ledger are; query, explain, budget and check take an address"
        raise InvalidArgument("CARD", "the card of a table, a .toml file", "the address of a table", fix)
    card = toml.read(path)
    if card.receipt is None:
        card = replace(card, receipt=str(receipt_file(path, card).absolute()))
    return replace(card, incident_log=incident_log_beside_card(card.incident_log, card.name, card.ledger, path))


def open_table(path: str, *, card: Card | None = None, receipt: str | None = None, read_only: bool = False) -> Table:
    """Open the table of a card; refuse a ledger without the entries of the kept receipt and of the passed one.

    ``path`` is the card's file, and ``card`` its content (None: it is read). ``receipt`` is the text of a receipt that
    the user passed (None: none). With ``read_only`` nothing can be charged, so no receipt needs to be kept.
    """
    card = read_card(path) if card is None else card
    if not read_only:
        check_receipt(path, card)
    given = None if receipt is None else Receipt.read(receipt)
    kept = read_receipt(receipt_file(path, card))
    try:
        table = session.open(card, receipt=given or kept, read_only=read_only)
    except LedgerError as error:
        raise with_receipt_file(error, path, card, kept) from error
    except LimitsDiffer as error:
        raise _with_command(error, path, card) from error
    if given is not None and kept is not None:
        try:
            table.ledger.expect(kept)
        except LedgerError as error:
            table.close()
            raise with_receipt_file(error, path, card, kept) from error
    return table


def open_remote(url: str) -> Table:
    """Connect to the table at an address, or to the only table of its server.

    The token is read from the environment variable DITHER_TOKEN: everybody on the machine can see a command line.
    """
    table = dither.connect(url)
    if isinstance(table, Table):
        return table
    with table:
        names = table.tables
    expected = f"one of {', '.join(names)}" if names else "a table that you may ask"
    fix = f"write {url.rstrip('/')}/{names[0]}, for example" if names else "ask a steward for a grant"
    raise InvalidArgument("CARD", expected, "a server", fix)


def refuse_on_server(option: str, given: object) -> None:
    """Refuse an option that needs direct access to a ledger, if it was passed with the address of a server."""
    if given:
        fix = "leave it out; stewards and auditors find it on the server's page"
        raise InvalidArgument(option, "a card or a ledger of your own", "a server", fix)


def check_receipt(path: str, card: Card) -> None:
    """Refuse to charge if the new receipt could not be written to the receipt file of the card at ``path``.

    Without the kept receipt, an older copy of the ledger would go unnoticed.
    """
    kept = receipt_file(path, card)
    if _cannot_start(card.ledger):
        return  # the ledger itself will be refused, and says why
    if kept.absolute() == Path(f"{path}.receipt").absolute() and not os.access(kept.absolute().parent, os.W_OK):
        raise LedgerError(
            "receipt",
            "a folder that can be written, beside the card",
            "one that cannot",
            f'name a file in the card: receipt = "/other/place/{card.name}.receipt"',
        )
    check_receipt_file(kept)


def _cannot_start(ledger: str | None) -> bool:
    """Return whether a ledger is missing and cannot be created."""
    if ledger is None or "://" in ledger or os.path.lexists(ledger):
        return False
    return not os.access(Path(ledger).absolute().parent, os.W_OK)


def with_receipt_file(error: LedgerError, path: str, card: Card, kept: Receipt | None) -> LedgerError:
    """Return an error of the ledger, with the path of the receipt file in its fix if the ledger lacks the entry of the
    kept receipt."""
    if kept is None or not isinstance(error, LedgerRolledBack):
        return error
    fix = f"{error.fix}. The receipt is kept in {receipt_file(path, card)}"
    return LedgerRolledBack(error.subject, error.expected, error.got, fix)


def _with_command(error: LimitsDiffer, path: str, card: Card) -> LimitsDiffer:
    """Return the error about differing limits, with the command that changes the ledger's limits in its fix."""
    whose = " --each-person" if card.each_person is not None else ""
    stated = card.each_person if card.each_person is not None else card.budget
    limit = "LIMIT" if stated is None else _option(stated)
    command = f"dither budget {path} --set {limit}{whose} --signed-by NAME --reason WHY"
    fix = f"state that, or change the ledger's: {command}"
    return LimitsDiffer(error.subject, error.expected, error.got, fix)


def _option(limit: Guarantee) -> str:
    """Format a limit as --set takes it.

    >>> from dither.guarantees import ApproxDP
    >>> _option(ApproxDP(2, 1e-6)), _option(ZCDP(0.5))
    ('epsilon=2,delta=1e-06', 'rho=0.5')
    """
    names = ("rho",) if isinstance(limit, ZCDP) else ("epsilon", "delta")
    return ",".join(f"{name}={float(number):.15g}" for name, number in zip(names, limit.exact, strict=False))
