"""Who took part in a series, and how often: what bounds a person over the whole horizon.

*Rule.* A person takes part in a period if they have a row in it, took part in fewer than k periods before, and the last
of those is at least b periods earlier. Periods are taken in order. Whoever takes part counts with everything that the
statement gives them in that period (:mod:`dither.tables.compile.periods`), and otherwise with nothing.

*Statement.* Let the table be read at any times, and let its rows change in between in any way: rows come late, are
changed, moved to other dates or deleted. Let two courses of events differ by one person's rows in all these readings.
Then what is measured differs in at most k periods, any two of them at least b apart, and in each by at most the l1 norm
that one person's rows of one period are bounded by.

*Why.* Each period is measured once, in the advance that releases it, and never again. What is measured there is a sum
over people, and what a person adds is a function of the rows of this person in this reading and of this person's
record: how often they took part so far, and when last. The record is written in the transaction that records the
advance, so there is no period in which a person counted and which the record does not hold; it is a function of this
person's rows alone (and of their account, where people have accounts, which depends on nobody else). So for everybody
else nothing changes, and for this person the rule itself says k and b. What rows of other dates there are plays no
part: in particular rows that were deleted after they counted stay in the record, so that nobody starts anew.

*Late rows.* A row whose date is in a period that was released adds nothing: the period is not measured again. Where a
column says when each row arrived, the policy ``"arrival"`` puts a row into the period of its date or of its arrival,
whichever is later: a function of the row, so that the statement holds as it stands. Without such a column nobody can
tell a late row from one that counted already, and the policy is refused.

*Where every row is a person of its own*, there is nobody to keep a record of. A row has one date, so it counts in one
period at most, once. A row that is changed is another one: whoever changes the dates of rows while a series runs makes
one person two, and should name the person (``unit``) instead.

*People are their keys.* Whoever is given another key (``unit``) while a series runs is another person.
A unit of another type is refused, as the series that was charged is another one (:mod:`dither.stream.series_spec`).

*What is kept.* For each person a keyed hash of 128 bits (:func:`hashes`), how often they took part, and when last: 24
bytes. It is sealed and stays in the ledger. New records are appended, and merged now and then (:func:`merged`).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from dither import arguments
from dither.errors import LedgerError, message
from dither.ledger.people import canonical_key

_RECORD = np.dtype([("high", "<u8"), ("low", "<u8"), ("used", "<u4"), ("last", "<u4")])
MOST_PARTS = 8
"""How many parts a record has before they are merged."""


@dataclass(frozen=True)
class Participation:
    """In at most ``max_participations`` periods, any two of them at least ``min_separation`` apart.

    >>> Participation(2, 7).is_bounded(horizon=365), Participation(365, 1).is_bounded(horizon=365)
    (True, False)
    """

    max_participations: int = 1
    min_separation: int = 1

    def __post_init__(self) -> None:
        arguments.whole(self.max_participations, "max_participations")
        arguments.whole(self.min_separation, "min_separation")

    def is_bounded(self, horizon: int) -> bool:
        """Whether somebody may have to be left out; otherwise no record is needed."""
        return self.max_participations < horizon or self.min_separation > 1


def hashes(keys: Any, secret: bytes) -> NDArray[Any]:
    """128 bits for each key of an Arrow array of different keys, as numbers ``high`` and ``low``.

    Whole numbers of 64 bits with a sign are encrypted by AES, so that two different ones never have the same hash; of
    texts it is keyed BLAKE2b, under which two of n texts share one with a probability of n^2 / 2^129. A text of the
    digits of such a number is that number, as in people's accounts: whoever makes texts of a column of numbers does
    not make everybody a new person.
    """
    import pyarrow as pa

    key = hmac.digest(secret, b"people of a series", "sha256")
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    if pa.types.is_signed_integer(keys.type):
        blocks = np.zeros((len(keys), 2), dtype="<i8")
        blocks[:, 0] = keys.to_numpy(zero_copy_only=False)
        raw = cipher.update(blocks.tobytes())
    else:

        def one(text: bytes) -> bytes:
            if (number := _number(text)) is not None:
                return cipher.update(number.to_bytes(8, "little", signed=True) + bytes(8))
            return hashlib.blake2b(text, digest_size=16, key=key).digest()

        raw = b"".join([one(canonical_key(item) or b"") for item in keys.to_pylist()])
    result = np.zeros(len(keys), dtype=_RECORD)
    halves = np.frombuffer(raw, dtype="<u8").reshape(-1, 2)
    result["high"], result["low"] = halves[:, 0], halves[:, 1]
    return result


def _number(text: bytes) -> int | None:
    """The number of 64 bits whose digits a text is, if it is one: neither 07 nor +7 nor -0 is."""
    if not 0 < len(text) <= 20 or not text.lstrip(b"-").isdigit():
        return None
    try:
        number = int(text)
    except ValueError:
        return None
    return number if b"%d" % number == text and -(1 << 63) <= number < 1 << 63 else None


def merged(parts: Sequence[bytes]) -> bytes:
    """One part that says what several say; of a person in several, what the last one says.

    >>> a = np.array([(1, 1, 1, 3)], dtype=_RECORD).tobytes()
    >>> b = np.array([(1, 1, 2, 9)], dtype=_RECORD).tobytes()
    >>> np.frombuffer(merged([a, b]), dtype=_RECORD)["used"].tolist()
    [2]
    """
    every = np.concatenate([_read(part) for part in parts])
    age = np.arange(len(every))
    order = np.lexsort((age, every["low"], every["high"]))
    ordered = every[order]
    is_last = np.ones(len(ordered), dtype=bool)
    is_last[:-1] = (ordered["high"][1:] != ordered["high"][:-1]) | (ordered["low"][1:] != ordered["low"][:-1])
    return ordered[is_last].tobytes()


def _read(part: bytes) -> NDArray[Any]:
    if len(part) % _RECORD.itemsize:
        raise LedgerError(message("series", "a record of people as it was written", "another", "restore the ledger"))
    return np.frombuffer(part, dtype=_RECORD)


def look_up(people: NDArray[Any], parts: Sequence[bytes]) -> NDArray[Any]:
    """The records of people by their hashes; of somebody who never took part, ``used`` is 0."""
    result = people.copy()
    for part in parts:  # sorted by hash, each; later ones are newer
        record = _read(part)
        place = np.searchsorted(record["high"], people["high"])
        open_ = np.arange(len(people))
        while len(open_):
            at = place[open_]
            inside = at < len(record)
            open_, at = open_[inside], at[inside]
            same_high = record["high"][at] == people["high"][open_]
            open_, at = open_[same_high], at[same_high]
            same = record["low"][at] == people["low"][open_]
            result["used"][open_[same]] = record["used"][at[same]]
            result["last"][open_[same]] = record["last"][at[same]]
            open_ = open_[~same]
            place[open_] += 1
    return result


def take_part(
    records: NDArray[Any], person: NDArray[np.intp], step: NDArray[np.int64], rule: Participation
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Which lines count (of ``person[i]`` in period ``step[i]``), and the records after them.

    >>> records = np.zeros(1, dtype=_RECORD)
    >>> kept, after = take_part(records, np.array([0, 0, 0]), np.array([3, 4, 9]), Participation(2, 5))
    >>> kept.tolist(), after[["used", "last"]].tolist()
    ([True, False, True], [(2, 9)])
    """
    after = records.copy()
    kept = np.zeros(len(person), dtype=bool)
    order = np.argsort(step, kind="stable")
    ordered = step[order]
    edges = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(ordered)]
    for first, end in pairwise(edges) if len(ordered) else ():
        lines, now = order[first:end], int(ordered[first])
        who = person[lines]
        used, last = after["used"][who], after["last"][who].astype(np.int64)
        free = (used < rule.max_participations) & ((used == 0) | (now - last >= rule.min_separation))
        kept[lines] = free
        taking = np.unique(who[free])
        after["used"][taking] += 1
        after["last"][taking] = now
    return kept, after


def changed(before: NDArray[Any], after: NDArray[Any]) -> bytes:
    """The records that an advance changed, as a part."""
    new = after[after["used"] != before["used"]]
    return bytes(new[np.lexsort((new["low"], new["high"]))].tobytes())


__all__ = ["MOST_PARTS", "Participation", "changed", "hashes", "look_up", "merged", "take_part"]
