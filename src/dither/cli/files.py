"""The output files of commands: whether a file may be written is decided here, before anything else happens.

* What exists stays, unless ``--force`` says otherwise.
* A source, a card, a ledger, its key and a receipt stay even then. They are known by the card that is asked about, by
  the cards in the folder that is written to, and by what is in them.
* A file appears whole or not at all. Room for it is made before a question is charged, so that a folder that is
  missing or read-only is found out while it costs nothing.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

from dither.errors import DitherError, InvalidArgument
from dither.tables.card import toml
from dither.tables.card.model import Card

LEDGER_ENDINGS = ("", "-wal", "-shm", "-journal", ".key", ".incidents.log")
_RECEIPT = re.compile(rb"\s*[0-9]{1,18}:[0-9a-f]{64}\s*")
_KEY = re.compile(rb"\s*[0-9a-fA-F]{64}\s*")
_CARD = re.compile(rb"^\s*(source\s*=|\[\s*(columns|tables))", re.MULTILINE)
_MAX_CARDS, _MAX_CARD_BYTES = 200, 1 << 20


def receipt_file(path: str | os.PathLike[str], card: Card) -> Path:
    """Where the command line keeps the last receipt of a card's ledger: as the card says, or beside the card."""
    return Path(card.receipt or f"{os.fspath(path)}.receipt")


def of_card(path: str | os.PathLike[str], card: Card) -> set[Path]:
    """What belongs to a card and is never written over: itself, its sources, its ledger with its key, its receipt."""
    result = {Path(path), receipt_file(path, card)}
    private, public = card.private_tables.values(), card.public.values()
    for source in (*(table.source for table in private), *(table.source for table in public)):
        result |= source_files(source)
    if card.ledger is not None and "://" not in card.ledger:
        result |= {Path(card.ledger + ending) for ending in LEDGER_ENDINGS}
    return result | ({Path(card.incident_log)} if card.incident_log else set())


def source_files(source: str) -> set[Path]:
    """The files that a source names; none for a server's table."""
    if "://" in source or source.startswith("spark::"):
        return set()
    place = source.rpartition("::")[0] or source
    return {Path(place), *map(Path, glob.glob(place, recursive=True))}


class Outputs:
    """The files that one run of a command is to write; use it as a context, and what was not written leaves no trace.

    >>> with tempfile.TemporaryDirectory() as folder, Outputs() as outputs:
    ...     outputs.add("--output", folder + "/answer.csv", ("csv", "json"))
    ...     outputs.write("--output", lambda path: Path(path).write_text("n"))
    ...     Path(folder, "answer.csv").read_text(), os.listdir(folder)
    ('n', ['answer.csv'])
    """

    def __init__(self, *, force: bool = False, protected: Iterable[Path] = ()) -> None:
        self._force = force
        self._protected = set(protected)
        self._reserved: dict[str, tuple[Path, Path]] = {}

    def add(self, option: str, path: str | None, endings: tuple[str, ...] = ()) -> None:
        """Check that an option's file can be written, and make room for it."""
        if path is None:
            return
        target = Path(path)
        if not path or "\0" in path or target.name in ("", "..") or path.endswith(("/", os.sep)):
            raise _refused(option, "the name of a file", "another", f"pass {option} {_example(endings)}")
        if endings and target.suffix.lower().lstrip(".") not in endings:
            wanted = f"a file that ends in .{', .'.join(endings)}"
            raise _refused(option, wanted, "another", f"pass {option} {_example(endings)}")
        self._check(option, target)
        for other, (_, taken) in self._reserved.items():
            if _same(taken, target):
                raise _refused(option, f"another file than {other}", "the same", "choose another name for one of them")
        try:
            handle, room = tempfile.mkstemp(dir=target.parent, prefix=".dither-", suffix=target.suffix)
        except (OSError, ValueError):
            raise _unwritable(option) from None
        os.close(handle)
        self._reserved[option] = (Path(room), target)

    def write(self, option: str, content: Callable[[str], object]) -> None:
        """Write an option's file, if there is one: ``content`` gets a path to write to, with the same ending."""
        if option not in self._reserved:
            return
        room, target = self._reserved[option]
        content(str(room))
        os.chmod(room, 0o666 & ~_umask())
        self._check(option, target)  # somebody may have put something there meanwhile
        if self._force:
            os.replace(room, target)
        else:
            _place(option, room, target)
        del self._reserved[option]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for room, _target in self._reserved.values():
            room.unlink(missing_ok=True)
        self._reserved = {}

    def _check(self, option: str, target: Path) -> None:
        try:
            about = target.stat()
        except FileNotFoundError:
            if target.is_symlink():
                raise _refused(option, "a file", "a link to nowhere", "choose another name") from None
            about = None
        except (OSError, ValueError):
            raise _unwritable(option) from None
        if not target.absolute().parent.is_dir():
            raise _unwritable(option)
        what = self._what_it_is(target, about)
        if what:
            fix = f"pass another name with {option}; --force does not help"
            raise _refused(option, "a file that may be written", what, fix)
        if about is not None and not stat.S_ISREG(about.st_mode):
            raise _refused(option, "a file", "a folder or a device", "choose another name")
        if about is not None and not self._force:
            raise _refused(option, "a new file", "one that exists", "choose another name, or pass --force")

    def _what_it_is(self, target: Path, about: os.stat_result | None) -> str:
        """What makes a file one that is never written over; nothing for any other."""
        if any(_same(target, item) for item in (*self._protected, *_of_cards_beside(target))):
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


def _of_cards_beside(target: Path) -> set[Path]:
    """What the cards in the folder of a file are about."""
    result: set[Path] = set()
    for path in sorted(target.absolute().parent.glob("*.toml"))[:_MAX_CARDS]:
        card = _card_in(path)
        if card is not None:
            result |= of_card(path, card)
    return result


def _card_in(path: Path) -> Card | None:
    if path.suffix.lower() != ".toml":
        return None
    try:
        return toml.read(path) if path.stat().st_size <= _MAX_CARD_BYTES else None
    except (DitherError, OSError):
        return None


def _mentions_columns(path: Path) -> bool:
    """Whether a file is a card, also one with mistakes in it."""
    try:
        return _CARD.search(path.read_bytes()[:_MAX_CARD_BYTES]) is not None
    except OSError:
        return True


def _same(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file, or would if it existed."""
    try:
        return os.path.realpath(one) == os.path.realpath(other) or os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def _place(option: str, room: Path, target: Path) -> None:
    """Give a finished file its name, unless that was taken meanwhile."""
    try:
        os.link(room, target)
    except FileExistsError:
        raise _refused(option, "a new file", "one that was made meanwhile", "choose another name") from None
    except OSError as error:  # a file system without links
        if error.errno == errno.ENOSPC:
            raise
        os.replace(room, target)
    else:
        room.unlink()


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _example(endings: tuple[str, ...]) -> str:
    return f"answer.{endings[0]}" if endings else "answer.csv"


def _refused(option: str, expected: str, got: str, fix: str) -> InvalidArgument:
    return InvalidArgument(option, expected, got, fix)


def _unwritable(option: str) -> InvalidArgument:
    return _refused(
        option,
        "a file in a folder that exists and can be written",
        "one elsewhere",
        "make the folder first",
    )
