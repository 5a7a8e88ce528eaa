"""The keyed hash of sketches, version 1, specified to the byte.

1. *The value as a number.* A text is the byte ``s`` followed by its UTF-8 bytes; a byte string is the byte ``b``
followed
   by itself; a whole number from 0 to 2^63 - 1 is the byte ``i`` followed by its 8 bytes, little-endian. X is the first
   8 bytes of SHA-256 of these bytes, read as a little-endian integer; its low 32 bits are L and its high 32 bits are H.
2. *The row as three numbers.* SHA-256 of ``dither local hash 1`` (ASCII, 19 bytes), the 16 bytes of the key and the 4
bytes
   of the row's number, little-endian. Its first, second and third 8 bytes, little-endian, are A, B and C.
3. *The hash.* ``h = ((A L + B H + C) mod 2^64) >> 32``, and the column is ``(h width) >> 32``.

For random A, B and C the values h of two different X are independent and uniform (multiply-shift: Dietzfelbinger 1996).
A column is therefore uniform to within ``width / 2^32``, and independent for two values. The hash needs no secrecy: the
key only lets two collections use different functions. ``tests/local/vectors.json`` has test vectors.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidData

Words = NDArray[np.uint64]

KEY_BYTES = 16
_DOMAIN = b"dither local hash 1"
_HALF = np.uint64(32)
_LOW = np.uint64((1 << 32) - 1)


def value_number(value: Any, name: str = "values") -> int:
    """The number X of a text, a byte string or a whole number.

    >>> hex(value_number("a")), hex(value_number(b"a")), hex(value_number(1))
    ('0xe82837a99a82f64c', '0xefbcad2c9c510f97', '0x26c97d6a77cc19d2')
    """
    if isinstance(value, str):
        try:
            content = b"s" + value.encode()
        except UnicodeEncodeError:
            raise InvalidData(name, "texts", "one that is not valid Unicode", "repair the text") from None
    elif isinstance(value, bytes):
        content = b"b" + value
    elif isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= value < 1 << 63:
        content = b"i" + int(value).to_bytes(8, "little")
    else:
        raise InvalidData(
            name, "texts, byte strings or whole numbers from 0 on", "another value", "convert the values first"
        )
    return int.from_bytes(hashlib.sha256(content).digest()[:8], "little")


@lru_cache(maxsize=8)
def row_numbers(key: bytes, rows: int) -> tuple[Words, Words, Words]:
    """The numbers A, B and C of every row.

    >>> [hex(int(column[0])) for column in row_numbers(bytes(16), 1)]
    ['0x974a45ed068fadc0', '0xc57ed431f6db8171', '0x45a2bd712ca14fe7']
    """
    digests = b"".join(hashlib.sha256(_DOMAIN + key + row.to_bytes(4, "little")).digest()[:24] for row in range(rows))
    table = np.frombuffer(digests, dtype="<u8").astype(np.uint64).reshape(rows, 3)
    a, b, c = (np.ascontiguousarray(column) for column in table.T)
    a.flags.writeable = b.flags.writeable = c.flags.writeable = False
    return a, b, c


def hash_columns(numbers: Words, rows: NDArray[Any], key: bytes, row_count: int, width: int) -> NDArray[np.int64]:
    """The column of each number X in its row, for arrays that broadcast against each other.

    >>> hash_columns(np.array([value_number("a")], dtype=np.uint64), np.array([0, 1, 2]), bytes(16), 3, 1024).shape
    (3,)
    """
    a, b, c = row_numbers(key, row_count)
    mixed = a[rows] * (numbers & _LOW) + b[rows] * (numbers >> _HALF) + c[rows]
    columns: NDArray[np.int64] = (((mixed >> _HALF) * np.uint64(width)) >> _HALF).astype(np.int64)
    return columns
