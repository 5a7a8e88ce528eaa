"""Answers as JSON: what the ledger recorded, byte for byte, as text, and what was true when it was given.

``recorded`` holds the bytes themselves, so that whoever asks again can see that they are the same.

>>> answer = Answer(("n",), ("integer",), ((41,),), {"n": (6.0,)}, "ε = 0.5", left="ε = 9.5", receipt="3-ab")
>>> sent = to_json(answer)
>>> sent["recorded"]
'{"columns":["n"],"cost":"ε = 0.5","errors":{"n":[6.0]},"notes":[],"rows":[[41]],"types":["integer"]}'
>>> from_json(sent) == answer
True
"""

from __future__ import annotations

from typing import Any

from dither.errors import DitherError, InvalidArgument
from dither.ledger.recorded import decode, encode
from dither.tables.answer import Answer
from dither.wire.documents import VERSION, fields, flag, text


def recorded_bytes(answer: Answer) -> bytes:
    """What the ledger keeps of an answer."""
    return encode(answer.stored())


def to_json(answer: Answer) -> dict[str, Any]:
    """An answer as JSON has it."""
    return {
        "version": VERSION,
        "recorded": recorded_bytes(answer).decode("utf-8", "surrogatepass"),
        "left": answer.left,
        "replayed": answer.replayed,
        "receipt": answer.receipt,
    }


def from_json(document: object) -> Answer:
    """The answer."""
    given = fields(document, "answer", ("recorded",), ("left", "replayed", "receipt"))
    stored = text(given["recorded"], "answer.recorded").encode("utf-8", "surrogatepass")
    left = given.get("left")
    about = {
        "left": None if left is None else text(left, "answer.left"),
        "replayed": flag(given.get("replayed", False), "answer.replayed"),
        "receipt": text(given.get("receipt", ""), "answer.receipt"),
    }
    try:
        return Answer.restored(decode(stored), **about)
    except (DitherError, KeyError, TypeError, ValueError, AttributeError):
        pass
    raise InvalidArgument("answer.recorded", "an answer as it is recorded", "another text", "ask again")
