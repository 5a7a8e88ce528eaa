"""The encoding of recorded answers as bytes, so that a repeated request returns exactly the same answer.

It is JSON with tagged objects for types that JSON lacks: tuples, bytes and NumPy arrays. Pickle is not used, since
reading a ledger must not be able to run code.

>>> decode(encode({"n": 3, "mean": 1.5})) == {"n": 3, "mean": 1.5}
True
"""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import numpy as np

from dither.errors import LedgerError, NotPrivate, WrongType
from dither.randomness import is_seeded

_TAG = "dither"
_MAX_INTEGER_BITS = 2000  # longer integers are written in hexadecimal, since JSON parsers limit their digits
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no spaces, so that equal values have equal text."""
    return _CANONICAL.encode(value)


def encode(value: Any) -> bytes:
    """Return an answer as the bytes that a ledger records; refuse one drawn from a seeded source."""
    try:
        return canonical(_plain(value)).encode("utf-8", "surrogatepass")
    except RecursionError:
        raise WrongType("answer", "lists a few levels deep", "deeper ones", "flatten it inside compute") from None


def decode(stored: bytes) -> Any:
    """Return the answer that :func:`encode` turned into bytes."""
    try:
        return _rich(json.loads(stored.decode("utf-8", "surrogatepass")))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise LedgerError(
            "ledger", "answers as they were written", "one that cannot be read", "restore it from a copy"
        ) from None


def _tagged(kind: str, **parts: Any) -> dict[str, Any]:
    """Return the JSON object that represents a value of a type which JSON lacks; ``kind`` is its tag."""
    return {_TAG: kind, **parts}


def _plain(value: Any) -> Any:
    """Return an answer as plain JSON, with tagged objects for tuples, bytes, arrays and numbers that JSON lacks."""
    if is_seeded(value):
        raise NotPrivate(
            "answer", "one drawn from the system's randomness", "a seeded one", "leave the seeded source to tests"
        )
    if isinstance(value, np.generic) and not isinstance(value, (np.void, np.datetime64, np.timedelta64)):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if value.bit_length() < _MAX_INTEGER_BITS else _tagged("int", value=hex(value))
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _tagged("float", value=str(float(value)))
    if isinstance(value, tuple):
        return _tagged("tuple", items=[_plain(item) for item in value])
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        result = {str(key): _plain(item) for key, item in value.items()}
        return _tagged("dict", items=result) if _TAG in result else result
    if isinstance(value, bytes):
        return _tagged("bytes", data=base64.b64encode(value).decode())
    if type(value) is np.ndarray and _storable(value.dtype):
        plain = np.ascontiguousarray(value)
        return _tagged(
            "array",
            dtype=plain.dtype.str,
            shape=list(value.shape),
            data=base64.b64encode(plain.tobytes()).decode(),
        )
    raise WrongType(
        "answer",
        "numbers, text, bytes, None, lists, tuples, dicts with text keys or NumPy arrays of these",
        type(value).__name__,
        "turn it into one of these inside compute",
    )


def _storable(dtype: np.dtype[Any]) -> bool:
    """Return whether arrays of this dtype have the same bytes on every machine, unlike those of long doubles."""
    return dtype.kind in "biuSU" or (dtype.kind == "f" and dtype.itemsize <= 8)


def _rich(value: Any) -> Any:
    """Return the answer that :func:`_plain` turned into JSON."""
    if isinstance(value, list):
        return [_rich(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(_TAG)
    if kind is None:
        return {key: _rich(item) for key, item in value.items()}
    if kind == "float":
        return float(value["value"])
    if kind == "int":
        return int(value["value"], 16)
    if kind == "tuple":
        return tuple(_rich(item) for item in value["items"])
    if kind == "dict":
        return {key: _rich(item) for key, item in value["items"].items()}
    data = base64.b64decode(value["data"])
    if kind == "bytes":
        return data
    dtype = np.dtype(str(value["dtype"]))
    if kind != "array" or not _storable(dtype):
        raise ValueError("no kind that is written")
    return np.frombuffer(data, dtype=dtype).reshape(value["shape"]).copy()
