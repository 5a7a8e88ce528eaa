"""Participation of people in a series: how often each person counts, which bounds a person over the whole horizon.

*Rule.* A person takes part in a period if they have a row in it, took part in fewer than k periods before, and the last
of those is at least b periods earlier. Periods are processed in order. A person who takes part counts with all that the
SQL statement returns for them in that period (:mod:`dither.tables.compile.statements`), otherwise with nothing.

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

*Where every row is a person*, no participation is recorded. A row has one date, so it counts in at most one period. A
changed row counts as a new one: if dates of rows may change while a series runs, the card should name the person
(``unit``) instead.

*People are their keys.* A person whose key (``unit``) changes while a series runs counts as a new person.
A unit of another type is refused, as the series that was charged is another one (:mod:`dither.stream.series_spec`).

*What is kept.* For each person who they are (:func:`identities`), how often they took part, and when last: from 9 to
24 bytes. It is sealed and stays in the ledger, in parts that are sorted by identity, column by column. Each advance
adds one and merges it with some of the newest (:func:`merged`); how many that are depends on the number of advances
alone (:func:`parts_to_merge`).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.errors import LedgerError
from dither.ledger.people import canonical_key

_RECORD = np.dtype([("high", "<u8"), ("low", "<u8"), ("used", "<u4"), ("last", "<u4")])
_WHOLE = 32
_NAMES = ("high", "low", "used", "last")
Widths = tuple[int, int]
"""The number of bytes of a person's ``used`` (count of periods) and ``last`` (the last of them) in a record."""


@dataclass(frozen=True)
class Participation:
    """The rule that a person takes part in at most ``max_participations`` periods, any two of them at least
    ``min_separation`` apart."""

    max_participations: int = 1
    min_separation: int = 1

    def __post_init__(self) -> None:
        arguments.whole(self.max_participations, "max_participations")
        arguments.whole(self.min_separation, "min_separation")

    def is_bounded(self, horizon: int) -> bool:
        """Return whether the rule excludes some periods of a person within the horizon, so that participation must be
        recorded."""
        return self.max_participations < horizon or self.min_separation > 1

    def widths(self, horizon: int) -> Widths:
        """Return the numbers of bytes for a person's count of periods and for the last of them; 0 for the last if the
        rule requires no separation, so that it is not recorded."""
        most = min(self.max_participations, horizon)
        used, last = (np.min_scalar_type(number).itemsize for number in (most, horizon))
        return used, last if self.min_separation > 1 else 0


def identities(keys: Any, secret: bytes) -> NDArray[Any]:
    """Return a record without participation for each person in an Arrow array of distinct keys.

    A person is identified by two numbers, ``high`` and ``low``. For a signed integer of 64 bits they are the integer
    and 0. For text they are 127 bits of BLAKE2b under a key derived from ``secret``, where ``low`` is odd: the
    probability that two of n texts collide is at most n^2 / 2^128. A text of the digits of such an integer is treated
    as that integer, as in people's accounts, so that changing a column's type from numbers to text keeps the people.
    """
    import pyarrow as pa

    result = np.zeros(len(keys), dtype=_RECORD)
    if pa.types.is_signed_integer(keys.type):
        result["high"] = keys.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
        return result
    key = hmac.digest(secret, b"people of a series", "sha256")

    def one(text: bytes) -> bytes:
        """Return the two numbers of one key as 16 bytes: the integer that it spells and 0, or a keyed hash."""
        if (number := _number(text)) is not None:
            return number.to_bytes(8, "little", signed=True) + bytes(8)
        high, low = (hashlib.blake2b(text, digest_size=16, key=key).digest()[i : i + 8] for i in (0, 8))
        return high + bytes([low[0] | 1]) + low[1:]

    raw = b"".join([one(canonical_key(item) or b"") for item in keys.to_pylist()])
    halves = np.frombuffer(raw, dtype="<u8").reshape(-1, 2)
    result["high"], result["low"] = halves[:, 0], halves[:, 1]
    return result


def _number(text: bytes) -> int | None:
    """Return the integer that a text spells if it fits into 64 bits and the text is its usual form; else None.

    Texts such as 07, +7 and -0 are not in that form. Integers of 64 bits have at most 19 digits and a sign.
    """
    if not 0 < len(text) <= 20 or not text.lstrip(b"-").isdigit():
        return None
    try:
        number = int(text)
    except ValueError:
        return None
    return number if b"%d" % number == text and -(1 << 63) <= number < 1 << 63 else None


def packed(records: NDArray[Any], widths: Widths = (4, 4)) -> bytes:
    """Return records encoded as bytes, column by column, so that they can be searched without copying.

    ``widths`` are the bytes of ``used`` and ``last``; ``low`` is omitted if every key is an integer.
    """
    return _joined([records[name] for name in _NAMES], widths)


def _joined(columns: Sequence[NDArray[Any]], widths: Widths) -> bytes:
    """Return the columns ``high``, ``low``, ``used`` and ``last`` as bytes, one after another, preceded by the number
    of bytes of an entry of each; a column with 0 bytes is omitted."""
    sizes = (8, 8 if columns[1].any() else 0, *widths)
    chosen = [(column, size) for column, size in zip(columns, sizes, strict=True) if size]
    return b"".join([bytes(sizes), *(column.astype(f"<u{size}").tobytes() for column, size in chosen)])


def unpacked(part: bytes) -> tuple[dict[str, NDArray[Any]], Widths]:
    """Return the columns of a part by name, without copying, and the widths of the last two.

    A part begins with the number of bytes of each column (0: the column is 0 everywhere); the columns follow. Other
    contents are refused as a changed record.
    """
    sizes, content = tuple(part[: len(_NAMES)]), memoryview(part)[len(_NAMES) :]
    if len(sizes) < len(_NAMES) or not {*sizes} <= {0, 1, 2, 4, 8} or not sizes[0] or len(content) % sum(sizes):
        raise LedgerError("series", "a record of people as it was written", "a changed record", "restore the ledger")
    count, columns, offset = len(content) // sum(sizes), {}, 0
    for name, size in zip(_NAMES, sizes, strict=True):
        if size:
            columns[name] = np.frombuffer(content, dtype=f"<u{size}", count=count, offset=offset)
        else:
            columns[name] = np.broadcast_to(np.uint64(0), count)
        offset += count * size
    return columns, (sizes[2], sizes[3])


def merged(parts: Sequence[bytes]) -> bytes:
    """Return one part with the records of several, from the oldest to the newest; of a person in several parts, the
    newest record is kept."""
    read = [unpacked(part) for part in parts]
    high, low, used, last = (np.concatenate([columns[name] for columns, _ in read]) for name in _NAMES)
    order = _in_order(high, low)  # stable: the newest of a person comes last
    is_last = np.ones(len(order), dtype=bool)
    for column in (high, low) if low.any() else (high,):
        ordered = column[order]
        changes = ordered[1:] != ordered[:-1]
        is_last[:-1] = changes if column is high else is_last[:-1] | changes
    chosen = order[is_last]
    return _joined([column[chosen] for column in (high, low, used, last)], read[-1][1])


def parts_to_merge(advances: int) -> int | None:
    """Return how many of the newest parts are merged with the part of an advance, by its number; None for all.

    After n advances there is one part for the first ``32 * (n // 32)`` of them, and as many smaller ones as ``n % 32``
    has binary ones: few parts to search, and few people who are in several.

    >>> [parts_to_merge(advances) for advances in (1, 2, 4, 31, 32, 34)]
    [0, 1, 2, 0, None, 1]
    """
    return None if advances % _WHOLE == 0 else (advances & -advances).bit_length() - 1


def _in_order(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Return the stable permutation that sorts identities by ``high``, then ``low``."""
    order = np.argsort(high, kind="stable")
    ordered = high[order]
    same = ordered[1:] == ordered[:-1]
    if same.any() and low.any():
        alike = np.zeros(len(order), dtype=bool)
        alike[1:] |= same
        alike[:-1] |= same
        tied = order[alike]
        order[alike] = tied[np.lexsort((low[tied], high[tied]))]
    return order


def look_up(people: NDArray[Any], parts: Sequence[bytes]) -> NDArray[Any]:
    """Return the records of ``people`` with ``used`` and ``last`` from the newest of the ``parts`` that contains each.

    ``used`` is 0 for a person who never took part. Parts are sorted by ``high``: each person is found by binary search,
    and people with equal ``high`` are compared one after the other.
    """
    result = people.copy()
    order = np.argsort(people["high"])  # sorted ones are found faster
    high, low = people["high"][order], people["low"][order]
    for part in parts:  # later ones are newer
        record, _ = unpacked(part)
        position = np.searchsorted(record["high"], high)
        open_ = np.arange(len(people))
        while len(open_):
            at = position[open_]
            inside = at < len(record["high"])
            open_, at = open_[inside], at[inside]
            same_high = record["high"][at] == high[open_]
            open_, at = open_[same_high], at[same_high]
            same = record["low"][at] == low[open_]
            known, at = order[open_[same]], at[same]
            result["used"][known] = record["used"][at]
            result["last"][known] = record["last"][at]
            open_ = open_[~same]
            position[open_] += 1
    return result


def take_part(
    records: NDArray[Any], person: NDArray[np.intp], step: NDArray[np.int64], rule: Participation
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Return a mask of the lines that count under the rule, and the people's new records.

    Line i belongs to the person ``records[person[i]]`` in period ``step[i]``. Periods are processed in order.
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
        taking = who[free]  # a person with several lines occurs several times, with the same new values
        after["used"][taking] = used[free] + 1
        after["last"][taking] = now
    return kept, after


def changed(before: NDArray[Any], after: NDArray[Any], widths: Widths = (4, 4)) -> bytes:
    """Return the records that an advance changed, sorted and encoded by :func:`packed`."""
    new = after[after["used"] != before["used"]]
    return packed(new[_in_order(new["high"], new["low"])], widths)
