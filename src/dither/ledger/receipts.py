"""A file with the last receipt of a ledger. Kept on another disk, it detects that an older copy was restored.

The file holds one line, what a receipt prints as. It is replaced as a whole, and only by a later receipt.
"""

from __future__ import annotations

import os
from pathlib import Path

from dither.errors import LedgerError
from dither.ledger.chain import Receipt
from dither.ledger.files import write_durably

_MAX_BYTES = 200


def read(path: str | os.PathLike[str]) -> Receipt | None:
    """Return the receipt in a file; None where there is no file yet."""
    try:
        with open(path, "rb") as file:
            text = file.read(_MAX_BYTES).decode("ascii", "replace")
    except FileNotFoundError:
        return None
    except OSError:
        raise _unusable("that can be read", "check its path and who may read it") from None
    return Receipt.read(text.strip())


def keep(path: str | os.PathLike[str], receipt: Receipt) -> None:
    """Write a receipt, durably and whole, unless the file holds a later one."""
    stored = read(path)
    if stored is not None and stored.seq >= receipt.seq:
        return
    try:
        write_durably(Path(path), f"{receipt}\n".encode(), mode=0o666)
    except OSError:
        raise _unusable(
            "that can be written",
            "make room for it; the ledger holds what was charged and answered, and asking the same again is free",
        ) from None


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a place where no receipt could be kept, before anything is charged."""
    folder = Path(path).absolute().parent
    if Path(path).is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise _unusable("in a folder that can be written to", "correct the card's receipt, or make the folder")


def _unusable(expected: str, fix: str) -> LedgerError:
    """Return the error for a receipt file that cannot be used."""
    return LedgerError("receipt", f"a file {expected}", "a file that cannot be used", fix)
