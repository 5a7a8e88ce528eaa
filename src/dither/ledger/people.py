"""The accounts of people: what each person has spent, stored under a keyed hash of the person's key.

A person's key is a whole number or a text, and its canonical form is bytes: the number's decimal digits, the text's
UTF-8, exactly as they are. So the number 7 and the text "7" are one person; "07", "7 " and "7\\0" are others, and a
letter with an accent is not the same letter composed of two. That is how the engines compare keys, and the ledger
must not see fewer people than they do: if two people shared an account, a charge of one could exclude the other, so a
person's participation would depend on somebody else's rows. Keys of other types (booleans, floats, decimals, UUIDs,
bytes, dates) have no unique text and are refused.

A key's hash is 128 bits of keyed BLAKE2b, under a key made of the ledger's secret and the population: without the
secret the hashes say nothing about the keys, and that two people among n share one has a probability of n^2 / 2^129.

A person without enough budget left is silently excluded, since what a person has left is itself private. That is sound:
exclusion depends on the questions asked so far and on this person's own rows, never on anybody else's. So adding or
removing one person changes the input of a release by that person only, and only for releases that this person's account
paid for: at most the limit in all (individual privacy filters; Feldman and Zrnic 2021 for the sum of rho).
"""

from __future__ import annotations

import hashlib
import hmac
import math
from dataclasses import dataclass
from decimal import Decimal
from operator import mul
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from dither.errors import LedgerError, WrongType
from dither.ledger import schema
from dither.ledger.accounts import Amount
from dither.ledger.store import LedgerStore

WIDTH = schema.PERSON_BYTES
_BATCH = 1 << 20
PRIME = (1 << 63) - 25
_MAX_KEY_BITS = 2000  # the longest whole number that is accepted as a key


@dataclass(frozen=True)
class Contributors:
    """The distinct people in a column of keys.

    ``who`` has the keyed hash of each person (a row of 16 bytes). ``person_of_row`` has, for each row of the column,
    the index of its person, or the number of people for a row without a key.
    """

    who: NDArray[np.uint8]
    person_of_row: NDArray[np.intp]

    def rows(self, kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return a mask of the column's rows from the mask ``kept`` of its people; rows without a key are not
        selected."""
        result = np.append(kept, False)
        rows: NDArray[np.bool_] = result[self.person_of_row]
        return rows


def contributors(people: Any, population: str, secret: bytes) -> Contributors:
    """Return the distinct people in a column of keys, in the order of their hashes.

    ``people`` is an array, a Series, a list, an engine's expression, or a function that returns one of these. The
    hashes are keyed with the ledger's ``secret`` and the name of the ``population``.
    """
    keys, person_of_row = _distinct(_column(people))
    who = _hashes(keys, hmac.digest(secret, b"population " + population.encode(), "sha256"))
    # in the order of the table, which is how a database takes many at once
    order = np.argsort(who.view(">u8")[:, 0]) if who.size else np.empty(0, dtype=np.intp)
    position = np.empty(len(keys) + 1, dtype=np.intp)
    position[order] = np.arange(len(keys))
    position[-1] = len(keys)  # a row without a key points one beyond the last
    return Contributors(who[order], position[person_of_row])


def _column(people: Any) -> Any:
    """Return a column of person keys as a one-dimensional NumPy array, without turning whole numbers into floats."""
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
        kind = str(getattr(people, "type", ""))
        integers = kind.startswith(("int", "uint")) and not people.null_count
        people = people.to_numpy() if integers else people.to_pylist()
        if kind.startswith("decimal") and kind.endswith(", 0)"):  # whole numbers of more than 64 bits
            people = [None if key is None else int(key) for key in people]
    if isinstance(people, (str, bytes, dict)) or not hasattr(people, "__iter__"):
        raise WrongType(
            "people", "a column of person keys", type(people).__name__, "pass the column, or a list of keys"
        )
    if hasattr(people, "to_numpy"):
        result = people.to_numpy()
        # missing keys make floats of whole numbers, and large ones would then be somebody else
        whole = result.dtype.kind in "iu" or result.ndim != 1
        people = result if whole or not hasattr(people, "to_list") else people.to_list()
    if isinstance(people, np.ma.MaskedArray):
        people = people.tolist()
    if not isinstance(people, np.ndarray):
        held = list(people)
        people = np.fromiter(held, dtype=object, count=len(held))
    if people.ndim != 1:
        raise WrongType("people", "one column", f"{people.ndim} dimensions", "pass one column of keys")
    if people.dtype.kind not in "iuUTOf":
        raise _no_key(people.dtype.name)
    return people


def _only(columns: Any) -> Any:
    """Return the single column of a table; refuse several."""
    result = list(columns)
    if len(result) != 1:
        raise WrongType("people", "one column", f"{len(result)} columns", "pass the column of person keys")
    return result[0]


def canonical_key(key: Any) -> bytes | None:
    """Return a person's key as bytes: the digits of a whole number, the UTF-8 of text; None for a missing key.

    >>> canonical_key(7) == canonical_key("7") != canonical_key("07")
    True
    """
    if isinstance(key, str):
        try:
            return key.encode()
        except UnicodeEncodeError:
            raise WrongType("people", "keys of valid Unicode", "half of a surrogate pair", "mend the text") from None
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        if int(key).bit_length() < _MAX_KEY_BITS:
            return b"%d" % int(key)
        raise WrongType("people", "keys of a few hundred digits", "longer keys", "pass them as text")
    if key is None or type(key).__name__ in ("NAType", "NaTType"):
        return None
    if key.is_nan() if isinstance(key, Decimal) else isinstance(key, (float, np.floating)) and math.isnan(key):
        return None
    raise _no_key(type(key).__name__)


def _no_key(got: str) -> WrongType:
    """Return the error for keys of a type that has no unique text, such as floats."""
    return WrongType(
        "people",
        "keys that are whole numbers or text",
        got,
        'pass them as text; a column of whole numbers with gaps is made of floats: use astype("Int64")',
    )


def _distinct(column: NDArray[Any]) -> tuple[list[bytes], NDArray[np.intp]]:
    """Return the distinct keys of a column, and for each row the index of its key; -1 for a row without one."""
    if column.dtype.kind in "iu":
        numbers, person_of_row = np.unique(column, return_inverse=True)
        return [b"%d" % number for number in numbers.tolist()], person_of_row.ravel()
    seen: dict[bytes | None, int] = {None: -1}
    keys = map(canonical_key, column.tolist())
    person_of_row = np.fromiter((seen.setdefault(key, len(seen) - 1) for key in keys), np.intp, column.size)
    del seen[None]
    return [key for key in seen if key is not None], person_of_row


def _hashes(keys: list[bytes], secret: bytes) -> NDArray[np.uint8]:
    """Return 128 bits of keyed BLAKE2b for each key, a row of bytes each."""
    blake2b = hashlib.blake2b
    joined = b"".join([blake2b(key, digest_size=WIDTH, key=secret).digest() for key in keys])
    return np.frombuffer(joined, dtype=np.uint8).reshape(len(keys), WIDTH)


def charge(
    store: LedgerStore, population: str, who: NDArray[np.uint8], cost: Amount, limit: Amount
) -> NDArray[np.bool_]:
    """Charge the people who can pay ``cost`` within ``limit``, in the transaction that is under way; return a mask of
    them.

    ``who`` has one row of bytes per person, the keyed hash of the person's key in ``population``. People are charged in
    batches of ``_BATCH``; those without an account get one. If ``cost`` is above ``limit``, nobody is charged.
    """
    kept = np.ones(len(who), dtype=bool)
    if not cost.within(limit):
        return ~kept
    room = limit - cost
    for start in range(0, len(who), _BATCH):
        part = who[start : start + _BATCH]
        exhausted = store.run(
            store.batched(schema.exhausted),
            {"batch": part.tobytes(), "size": len(part), "room_loss": room.loss, "room_delta": room.delta},
        ).fetchall()
        kept[start + np.array(exhausted, dtype=np.intp).ravel()] = False
        paying = part[kept[start : start + _BATCH]]
        if len(paying):
            store.run(
                store.batched(schema.charge_people),
                {
                    "population": population,
                    "batch": paying.tobytes(),
                    "size": len(paying),
                    "loss": cost.loss,
                    "delta": cost.delta,
                },
            )
    return kept


def checksum(secret: bytes, who: NDArray[np.uint8], loss: Any, delta: Any) -> int:
    """Return the sum of all people's spending with secret weights, modulo a prime, which detects changed accounts.

    ``who`` has one row of 16 bytes per person (their keyed hash), ``loss`` and ``delta`` what each has spent, as whole
    numbers: one for all or one per row. The sum is linear, so the checksums of charges add up to that of the accounts.
    Each person has two weights of 64 bits, AES of their hash under a key made of ``secret``, one for the loss and one
    for the delta. Without the secret, a changed amount goes unnoticed with probability about 2^-63. The modulus is a
    prime because modulo a power of two, a change by a large power of two would hardly depend on the weights.
    """
    if not len(who):
        return 0
    key = hmac.digest(secret, b"weights of people", "sha256")
    drawn = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(np.ascontiguousarray(who).tobytes())
    weights, others = np.frombuffer(drawn, dtype="<u8").reshape(-1, 2).T
    return (_weighted(weights, loss) + _weighted(others, delta)) % PRIME


def _weighted(weights: NDArray[np.uint64], amounts: Any) -> int:
    """Return the exact sum of weights times amounts, one amount for all people or one for each."""
    if isinstance(amounts, int):
        high, low = weights >> np.uint64(32), weights & np.uint64((1 << 32) - 1)
        return amounts * ((int(high.sum()) << 32) + int(low.sum()))
    return sum(map(mul, weights.tolist(), amounts.tolist()))


def total(store: LedgerStore, secret: bytes, population: str) -> int:
    """Return the checksum of all stored accounts of a population."""
    result, after = 0, b""
    while True:
        rows = store.run(schema.PEOPLE, {"population": population, "after": after, "most": _BATCH}).fetchall()
        if rows:
            who, epsilon, delta = zip(*rows, strict=True)
            names = b"".join(map(bytes, who)) if all(isinstance(one, (bytes, memoryview)) for one in who) else b""
            numbers = np.array([epsilon, delta])
            if len(names) != WIDTH * len(rows) or numbers.dtype.kind != "i" or numbers.min() < 0:
                raise changed_accounts()
            result += checksum(secret, np.frombuffer(names, dtype=np.uint8).reshape(-1, WIDTH), *numbers)
            after = names[-WIDTH:]
        if len(rows) < _BATCH:
            return result % PRIME


def seal(secret: bytes, population: str, seq: int, checksum: int) -> str:
    """Return a keyed hash of the checksum of a population's accounts: it binds them to entry ``seq`` of the history and
    discloses nothing about them."""
    text = f"{population}\0{seq}\0{checksum}".encode()
    return hmac.digest(secret, text, "sha256").hex()[:32]


def changed_accounts() -> LedgerError:
    """Return the error for people's accounts that differ from what was charged to them."""
    expected, fix = "people's accounts as they were charged", "restore it from a copy"
    return LedgerError("ledger", expected, "changed accounts", fix)
