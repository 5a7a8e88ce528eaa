"""Who took part: keys of people as keyed hashes, and their accounts for life.

A person's key is read as text (the number 7, 7.0 and "7" are the same person), its keyed hash is the first 64 bits
of AES-CBC-MAC under a secret of the ledger, over the length and the text. With the length in front no message is
the beginning of another, so CBC-MAC is a pseudorandom function (Bellare, Kilian and Rogaway 2000): without the
secret the hashes say nothing about the keys. Should two people ever share a hash they share an account, which costs
them answers and never privacy.

Whoever has not enough left is left out, silently: what a person has left is itself private. That is sound. Whether
somebody is left out depends on the questions asked so far and on this person's own rows, never on anybody else's, so
adding or removing one person changes the input of every release by that person only, and only for releases which
this person's account paid for: at most the limit in all (Feldman and Zrnic 2021 for the sum of rho).
"""

from __future__ import annotations

import hashlib
import hmac
import math
import unicodedata
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from operator import mul
from typing import Any
from uuid import UUID

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from dither.errors import LedgerError, WrongType, message
from dither.ledger import schema
from dither.ledger.store import Store, parameter
from dither.ledger.units import Amount

_LONG = 64  # texts above this many bytes are hashed first
_BATCH = 1 << 20
PRIME = (1 << 63) - 25
_LARGE = 2000  # bits or digits of numbers that are still keys


@dataclass(frozen=True)
class Crowd:
    """The people of a column: each one's keyed hash, once, and where in the column they are."""

    who: NDArray[np.int64]
    place: NDArray[np.intp]

    def rows(self, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """A mask of the column's rows from a mask of its people; rows without a key belong to nobody."""
        found = np.append(kept, False)
        rows: NDArray[np.bool_] = found[self.place]
        return rows


def crowd(people: Any, secret: bytes) -> Crowd:
    """The people in a column of keys: an array, a Series, a list, an engine's expression, or a function giving one.

    >>> found = crowd([7, "7", 7.0, None, "b"], bytes(32))
    >>> len(found.who), found.rows(np.array([True, True])).tolist()
    (2, [True, True, True, False, True])
    """
    texts, place = _distinct(_column(people))
    who, again = np.unique(_hashes(texts, secret), return_inverse=True)
    position = np.append(again.ravel(), who.size)  # a row without a key points one beyond the last
    return Crowd(who, position[place])


def _column(people: Any) -> Any:
    """The keys as an array, whatever holds them."""
    if callable(people):
        people = people()
    for method in ("to_pyarrow", "to_arrow_table", "arrow", "fetch_arrow_table"):
        if hasattr(people, method) and not hasattr(people, "__array__"):
            people = getattr(people, method)()
            break
    if hasattr(people, "columns") and hasattr(people, "column_names"):  # an Arrow table of one column
        people = _only(people.columns)
    elif hasattr(people, "columns") and hasattr(people, "iloc"):
        people = _only([people[name] for name in people.columns])
    if hasattr(people, "to_pylist"):
        integers = str(getattr(people, "type", "")).startswith(("int", "uint")) and not people.null_count
        people = people.to_numpy() if integers else people.to_pylist()
    if isinstance(people, (str, bytes, dict)) or not hasattr(people, "__iter__"):
        raise WrongType(
            message("people", "a column of person keys", type(people).__name__, "pass the column, or a list of keys")
        )
    if hasattr(people, "to_numpy"):
        found = people.to_numpy()
        # missing keys make floats of whole numbers, and large ones would then be somebody else
        whole = found.dtype.kind in "iu" or found.ndim != 1
        people = found if whole or not hasattr(people, "to_list") else people.to_list()
    if isinstance(people, np.ma.MaskedArray):
        people = people.tolist()
    if not isinstance(people, np.ndarray):
        held = list(people)
        people = np.fromiter(held, dtype=object, count=len(held))
    if people.ndim != 1:
        raise WrongType(message("people", "one column", f"{people.ndim} dimensions", "pass one column of keys"))
    if people.dtype.kind in "mM":
        raise WrongType(message("people", "keys that are numbers, text or UUIDs", "times", "pass them as text"))
    return people


def _only(columns: Any) -> Any:
    found = list(columns)
    if len(found) != 1:
        raise WrongType(message("people", "one column", f"{len(found)} columns", "pass the column of person keys"))
    return found[0]


def _distinct(column: NDArray[Any]) -> tuple[NDArray[np.bytes_], NDArray[np.intp]]:
    """The different keys as text, and for each row the index of its own; -1 for a row without a key."""
    if column.dtype.kind in "iu":
        numbers, place = np.unique(column, return_inverse=True)
        return numbers.astype(np.bytes_), place.ravel()
    seen: dict[bytes | None, int] = {None: -1}
    place = np.fromiter((seen.setdefault(_text(key), len(seen) - 1) for key in column.tolist()), np.intp, column.size)
    del seen[None]
    return np.array(list(seen), dtype=np.bytes_), place


def _text(key: Any) -> bytes | None:
    """A key as text: numbers by value, text in one normal form; None for what is missing."""
    if isinstance(key, str):
        text = key
    elif key is None or type(key).__name__ in ("NAType", "NaTType"):
        return None
    elif isinstance(key, bytes):
        text = key.decode("utf-8", "surrogateescape")
    elif isinstance(key, (float, Decimal, np.floating)):
        if key.is_nan() if isinstance(key, Decimal) else math.isnan(key):
            return None
        text = _number(key)
    elif isinstance(key, (UUID, date)) or (
        isinstance(key, (int, np.integer, np.bool_)) and int(key).bit_length() < _LARGE
    ):
        text = str(key)
    else:
        raise WrongType(
            message("people", "keys that are numbers, text, bytes or UUIDs", type(key).__name__, "pass them as text")
        )
    found = (text if text.isascii() else unicodedata.normalize("NFC", text)).encode("utf-8", "surrogatepass")
    return found if len(found) <= _LONG else hashlib.blake2b(found).hexdigest()[:_LONG].encode()


def _number(key: Any) -> str:
    """7.0 is 7, however it is held; what is not whole stays as its own kind prints it."""
    if isinstance(key, Decimal):
        whole = key.is_finite() and key.adjusted() < _LARGE and key == key.to_integral_value()
        return str(int(key)) if whole else str(key.normalize())
    number = float(key)
    return str(int(number)) if number.is_integer() else str(number)


def _hashes(texts: NDArray[np.bytes_], secret: bytes) -> NDArray[np.int64]:
    """The first 64 bits of AES-CBC-MAC over the length (4 bytes) and the text."""
    width = max(texts.dtype.itemsize, 1)
    blocks = -(-(width + 4) // 16)
    held = np.zeros((texts.size, 16 * blocks), dtype=np.uint8)
    if texts.size:
        held[:, 4 : 4 + width] = texts.astype(f"S{width}").view(np.uint8).reshape(texts.size, width)
    lengths = np.char.str_len(texts).astype(">u4")
    held[:, :4] = lengths.view(np.uint8).reshape(texts.size, 4)
    encrypt = Cipher(algorithms.AES(secret), modes.ECB()).encryptor()  # one block at a time: the chaining is below
    state = np.zeros((texts.size, 16), dtype=np.uint8)
    for i in range(blocks):
        more = i * 16 < lengths + 4  # shorter texts have ended
        fresh = np.ascontiguousarray(state[more] ^ held[more, 16 * i : 16 * i + 16])
        state[more] = np.frombuffer(encrypt.update(fresh.tobytes()), dtype=np.uint8).reshape(-1, 16)
    hashes: NDArray[np.int64] = np.ascontiguousarray(state[:, :8]).view(">i8").ravel().astype(np.int64)
    return hashes


def charge(store: Store, population: str, who: NDArray[np.int64], cost: Amount, limit: Amount) -> NDArray[np.bool_]:
    """Charge whoever can pay, in the transaction that is under way, and say who could."""
    kept = np.ones(who.size, dtype=bool)
    if not cost.within(limit):
        return ~kept
    room = limit - cost
    for start in range(0, who.size, _BATCH):
        part = who[start : start + _BATCH]
        found = store.run(
            store.batched(schema.exhausted),
            {
                "population": population,
                "batch": parameter(store, part.tolist()),
                "room_loss": room.loss,
                "room_delta": room.delta,
            },
        ).fetchall()
        if found:
            kept[start : start + _BATCH] = ~np.isin(part, np.array(found, dtype=np.int64).ravel())
        paying = part[kept[start : start + _BATCH]]
        store.run(
            store.batched(schema.charge_people),
            {
                "population": population,
                "batch": parameter(store, paying.tolist()),
                "loss": cost.loss,
                "delta": cost.delta,
            },
        )
    return kept


def checksum(secret: bytes, who: NDArray[np.int64], loss: Any, delta: Any) -> int:
    """A weighted sum over people, mod a prime, that changed accounts change; it adds up over charges.

    Each person's weights are drawn from the secret. Whoever does not have it can move what one person has spent to
    another, or to somebody new, unseen with probability 2^-63 only; modulo a power of two, large steps would do.

    >>> one, key = np.array([5]), bytes(32)
    >>> (checksum(key, one, 2, 0) + checksum(key, one, 3, 1) - checksum(key, one, 5, 1)) % PRIME
    0
    """
    if not who.size:
        return 0
    block = np.zeros((who.size, 2), dtype="<i8")
    block[:, 0] = who
    key = hmac.new(secret, b"weights of people", hashlib.sha256).digest()
    drawn = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block.tobytes())
    weights, others = np.frombuffer(drawn, dtype="<u8").reshape(-1, 2).T
    return (_weighted(weights, loss) + _weighted(others, delta)) % PRIME


def _weighted(weights: NDArray[np.uint64], amounts: Any) -> int:
    """The exact sum of weights times amounts: one amount for all, or one for each."""
    if isinstance(amounts, int):
        high, low = weights >> np.uint64(32), weights & np.uint64((1 << 32) - 1)
        return amounts * ((int(high.sum()) << 32) + int(low.sum()))
    return sum(map(mul, weights.tolist(), amounts.tolist()))


def total(store: Store, secret: bytes, population: str) -> int:
    """The checksum of everybody's account as it is stored."""
    found, start = 0, -(1 << 63)
    while True:
        rows = store.run(schema.PEOPLE, {"population": population, "start": start, "most": _BATCH}).fetchall()
        if rows:
            table = np.array(rows)
            if table.dtype.kind != "i" or table[:, 1:].min() < 0:
                raise LedgerError(
                    message("ledger", "people's accounts as they were charged", "others", "restore it from a copy")
                )
            who, loss, delta = table.T
            found += checksum(secret, who, loss, delta)
            start = int(who[-1]) + 1
        if len(rows) < _BATCH or start == 1 << 63:
            return found % PRIME


def seal(secret: bytes, population: str, seq: int, found: int) -> str:
    """What the history says of everybody's accounts without saying anything: a keyed hash of their checksum."""
    told = f"{population}\0{seq}\0{found}".encode()
    return hmac.new(secret, told, hashlib.sha256).hexdigest()[:32]
