"""The history of a ledger: a hash chain of entries, keyed with the secret of the ledger.

Each entry is hashed together with the hash of the entry before. To change, remove or insert an entry unnoticed, one
would have to recompute every later hash, which needs the secret. A change by somebody who has the secret is detected by
a receipt (the number and the hash of a later entry) that was kept elsewhere (:func:`keep_receipt`). The numbers of the
entries define their order. The time of an entry is for the reader only, so a wrong clock does no harm.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dither.errors import InvalidArgument, LedgerError, LedgerRolledBack, WrongType
from dither.ledger import schema
from dither.ledger.files import write_durably
from dither.ledger.recorded import canonical
from dither.ledger.store import LedgerStore

START = bytes(32)
_MAX_RECEIPT_BYTES = 200
_PAGE = 200  # entries in memory at a time; the first are there at once


@dataclass(frozen=True)
class Receipt:
    """The number and the hash of an entry of the history. A ledger without that entry was rolled back or rewritten.

    >>> Receipt.read(str(Receipt(3, "ab" * 32))) == Receipt(3, "ab" * 32)
    True
    """

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash}"

    @classmethod
    def read(cls, text: str) -> Receipt:
        """Return the receipt with this text, the inverse of ``str(receipt)``; refuse other text."""
        seq, _, digest = str(text).partition(":")
        if (
            not (seq.isascii() and seq.isdigit() and len(seq) < 19)
            or len(digest) != 64
            or set(digest) - set("0123456789abcdef")
        ):
            raise InvalidArgument(
                "receipt",
                "a number, a colon and 64 hexadecimal digits",
                "text of a different form",
                "pass the line as it was printed, str(receipt)",
                "pass --receipt with all of the line that dither budget printed after the word receipt",
            )
        return cls(int(seq), digest)


def read_receipt(path: str | os.PathLike[str]) -> Receipt | None:
    """Return the receipt that is kept in a file; None where there is no file yet."""
    try:
        with open(path, "rb") as file:
            text = file.read(_MAX_RECEIPT_BYTES).decode("ascii", "replace")
    except FileNotFoundError:
        return None
    except OSError:
        raise _unusable_receipt("that can be read", "check its path and who may read it") from None
    return Receipt.read(text.strip())


def keep_receipt(path: str | os.PathLike[str], receipt: Receipt) -> None:
    """Write a receipt to the file ``path``, durably and whole, unless the file holds a later one.

    Kept on another disk than the ledger, it detects that an older copy was restored. The file has one line, ``str`` of
    the receipt.
    """
    stored = read_receipt(path)
    if stored is not None and stored.seq >= receipt.seq:
        return
    try:
        write_durably(Path(path), f"{receipt}\n".encode(), mode=0o666)
    except OSError:
        raise _unusable_receipt(
            "that can be written",
            "make room for it; the ledger holds what was charged and answered, and asking the same again is free",
        ) from None


def check_receipt_file(path: str | os.PathLike[str]) -> None:
    """Refuse, before anything is charged, the path of a receipt file that could not be written."""
    folder = Path(path).absolute().parent
    if Path(path).is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise _unusable_receipt("in a folder that can be written to", "correct the card's receipt, or make the folder")


def _unusable_receipt(expected: str, fix: str) -> LedgerError:
    """Return the error for a receipt file that cannot be used; ``expected`` completes "a file …"."""
    return LedgerError("receipt", f"a file {expected}", "a file that cannot be used", fix)


@dataclass(frozen=True)
class Entry:
    """One entry of the history.

    >>> import dither as dp, tempfile
    >>> with tempfile.TemporaryDirectory() as folder, dp.ledger.open(folder + "/budget.sqlite") as ledger:
    ...     _ = ledger.create("visits", limit=dp.PureDP(1))
    ...     print([entry.dataset for entry in ledger.history("visits")][0])
    visits
    """

    seq: int
    at: str
    kind: str
    dataset: str
    key: str | None
    charge: int | None
    text: str
    answer: bytes | None = field(repr=False)
    hash: bytes = field(repr=False)

    @property
    def body(self) -> dict[str, Any]:
        """Return the content of the entry, parsed."""
        try:
            content = json.loads(self.text)
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise broken(self.seq, "its text cannot be read")
        return content

    @property
    def receipt(self) -> Receipt:
        """Return the receipt of this entry."""
        return Receipt(self.seq, self.hash.hex())


def _digest(store: LedgerStore, before: bytes, fields: tuple[Any, ...], answer: bytes | None) -> bytes:
    """Return the hash of an entry: HMAC-SHA-256, under the ledger's secret, of the hash ``before`` (that of the entry
    before) and the canonical JSON of the entry's fields and its answer's SHA-256."""
    content = canonical([*fields, None if answer is None else hashlib.sha256(answer).hexdigest()])
    return hmac.digest(store.secret.chain, before + content.encode("utf-8", "surrogatepass"), "sha256")


def now() -> str:
    """Return the current time as ISO 8601 text in UTC with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def append(
    store: LedgerStore,
    kind: str,
    dataset: str,
    body: dict[str, Any],
    *,
    last: tuple[int, bytes] | None = None,
    key: str | None = None,
    charge: int | None = None,
    answer: bytes | None = None,
) -> Receipt:
    """Append an entry to the history, in the transaction that is under way; return its number and hash as a receipt.

    ``kind`` is the kind of entry (as ``charge``, ``answer`` or ``limit``) and ``body`` its details. ``last`` is number
    and hash of the entry before, where the caller has read them. ``key`` is the key of a request, ``charge`` the number
    of the charge that this entry belongs to, and ``answer`` an encoded answer; None where the entry has none. The hash
    covers all of these and the hash of the entry before, so that no entry can be changed unnoticed.
    """
    seq, before = last or last_entry(store)
    seq, at, text = seq + 1, now(), canonical(body)
    digest = _digest(store, before, (seq, at, kind, dataset, key, charge, text), answer)
    store.run(
        schema.APPEND,
        {
            "seq": seq,
            "at": at,
            "kind": kind,
            "dataset": dataset,
            "key": key,
            "charge": charge,
            "body": text,
            "answer": answer,
            "hash": digest,
        },
    )
    return Receipt(seq, digest.hex())


def last_entry(store: LedgerStore) -> tuple[int, bytes]:
    """Return number and hash of the last entry; 0 and :data:`START` where there is none yet."""
    row = store.run(schema.LAST).fetchone()
    return (row[0], as_bytes(row[1], row[0])) if row else (0, START)


def as_bytes(value: Any, seq: int) -> bytes:
    """Return the value of a binary column of entry ``seq`` as bytes; refuse another type, which SQLite would allow."""
    if not isinstance(seq, int) or not isinstance(value, (bytes, memoryview)):
        raise broken(seq, "it cannot be read")
    return bytes(value)


def entries(store: LedgerStore, dataset: str | None = None) -> Iterator[Entry]:
    """Yield the entries of the history, or of one dataset, in order; they are read a page at a time."""
    after, statement = 0, schema.ENTRIES if dataset is None else schema.ENTRIES_OF
    while True:
        values: dict[str, object] = {"after": after, "most": _PAGE}
        rows = store.rows(statement, values if dataset is None else {**values, "dataset": dataset})
        for row in rows:
            yield entry_of(row)
        if len(rows) < _PAGE:
            return
        after = rows[-1][0]


def entry_of(row: Any) -> Entry:
    """Return an entry from its database row."""
    seq, at, kind, dataset, key, charge, text, answer, digest = row
    recorded = None if answer is None else as_bytes(answer, seq)
    return Entry(seq, at, kind, dataset, key, charge, text, recorded, as_bytes(digest, seq))


def check(store: LedgerStore, entry: Entry, before: bytes) -> None:
    """Refuse an entry whose hash does not follow from its content and from ``before``, the hash of the entry before."""
    fields = (entry.seq, entry.at, entry.kind, entry.dataset, entry.key, entry.charge, entry.text)
    try:
        same = hmac.compare_digest(_digest(store, before, fields, entry.answer), entry.hash)
    except TypeError:
        same = False
    if not same:
        raise broken(entry.seq, "it, or the one before, was changed")


def checked(store: LedgerStore, seq: int) -> Entry:
    """Return entry number ``seq``, checked against the hash of the entry before it; refuse a missing one."""
    rows = [row for n in (seq - 1, seq) for row in store.rows(schema.ENTRY, {"seq": n})]
    if len(rows) < min(seq, 2):
        raise broken(seq, "it, or the one before, is missing")
    result = entry_of(rows[-1])
    check(store, result, START if seq == 1 else as_bytes(rows[0][-1], seq - 1))
    return result


def checked_answers(store: LedgerStore, keys: Mapping[str, object]) -> list[Entry]:
    """Return the answers to one charge in order, each checked against the hash of the entry before it.

    ``keys`` holds the parameters of the query: ``charge``, ``dataset``, and the keys from ``first`` to before ``last``.
    """
    result = []
    for row in store.rows(schema.ANSWERS, keys):
        entry = entry_of(row[:-1])
        check(store, entry, as_bytes(row[-1], entry.seq - 1))
        result.append(entry)
    return result


def check_last(store: LedgerStore) -> None:
    """Refuse a ledger whose last entry does not fit the one before; the whole chain is checked by ``Ledger.verify``
    only, since opening has to be quick."""
    seq, _ = last_entry(store)
    if seq:
        checked(store, seq)


def check_receipt(store: LedgerStore, receipt: Receipt) -> None:
    """Refuse a ledger without the entry that a receipt was given for."""
    if not isinstance(receipt, Receipt):
        raise WrongType("receipt", "a Receipt", type(receipt).__name__, "pass Receipt.read(text)")
    if receipt == Receipt(0, START.hex()):  # given before the first entry
        return
    with store.snapshot():
        result = select_entry(store, receipt)
        rows = result.fetchall() if result else []
    if not rows or entry_of(rows[0]).receipt != receipt:
        raise _missing_entry()


def select_entry(store: LedgerStore, receipt: Receipt) -> Any:
    """Return a cursor over the entry with the number of a receipt, in the transaction that is under way; None where
    that number cannot be one of an entry.
    """
    possible = isinstance(receipt.seq, int) and 0 < receipt.seq < 1 << 63
    return store.run(schema.ENTRY, {"seq": receipt.seq}) if possible else None


def check_charge(cursor: Any, charge: Any) -> None:
    """Refuse a charge that was not made in this ledger: its answer would be recorded for a different charge.

    ``cursor`` is what :func:`select_entry` returned for the receipt of the charge.
    """
    for row in cursor.fetchall() if cursor else []:
        result = entry_of(row)
        identity = (result.receipt, result.kind, result.dataset, result.key)
        if identity == (charge.receipt, "charge", charge.dataset, charge.key):
            return
    raise _missing_entry()


def _missing_entry() -> LedgerRolledBack:
    """Return the error for a receipt whose entry the ledger does not hold."""
    return LedgerRolledBack(
        "ledger",
        "the entry that the receipt was given for",
        "a different entry, or none: this is an older copy, was rewritten, or is a different ledger",
        "use the ledger the receipt came from",
    )


def broken(seq: int, what: str) -> LedgerError:
    """Return the error for a history that was changed at an entry."""
    return LedgerError(
        "ledger", "a history as it was written", f"a break at entry {seq}: {what}", "restore it from a copy"
    )
