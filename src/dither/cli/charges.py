"""What a failed command has charged, according to the ledger rather than to the error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import dither
from dither.errors import LedgerError

UNKNOWN = "The ledger cannot be asked whether this was charged: assume that it was, and see dither budget."


class QuestionFailed(Exception):
    """A question failed, from whatever cause, and this is what the ledger says about its charge."""

    def __init__(self, charged: str, *, after_charge: bool) -> None:
        super().__init__(charged)
        self.charged = charged
        self.after_charge = after_charge


Kind = Literal["question", "publication", "series"]
"""What is released: the field of a recorded request that only such a request has."""


@contextmanager
def explaining_failures(place: str, dataset: str, kind: Kind, question: str | None = None) -> Iterator[None]:
    """Say of a release that fails inside what the ledger holds about it; a question is known by its words."""
    before = _head(place)
    try:
        yield
    except BaseException as error:
        said = _since(place, dataset, kind, question, before)
        if said is not None:
            raise QuestionFailed(said, after_charge=True) from error
        if isinstance(error, LedgerError) or not isinstance(error, dither.DitherError):
            raise QuestionFailed("Nothing was charged.", after_charge=False) from error
        raise


def _head(place: str) -> int | None:
    try:
        with dither.ledger.open(place, create=False, read_only=True) as ledger:
            return ledger.head.seq
    except Exception:  # a ledger that cannot be read now may be readable later, and the other way round
        return None


def _since(place: str, dataset: str, kind: Kind, question: str | None, before: int | None) -> str | None:
    """A sentence about the charges for this release since then; None if there is none."""
    from dither.ledger.accounts import promised  # with it SQLAlchemy, which most commands do not need

    paid: dict[int, str] = {}
    answered = set()
    if before is None:
        return UNKNOWN
    try:
        with dither.ledger.open(place, create=False, read_only=True) as ledger:
            if ledger.head.seq == before:
                return None
            for entry in ledger.history(dataset):
                if entry.seq <= before:
                    continue
                if entry.kind == "charge" and _asks(entry.body, kind, question):
                    paid[entry.seq] = str(promised(entry.body["cost"]))
                elif entry.kind == "answer":
                    answered.add(entry.charge)
    except Exception:
        return UNKNOWN
    if not paid:
        return None
    seq, cost = list(paid.items())[-1]
    if kind == "series":
        return f"{cost} was charged, once for the whole series: released again, it goes on for free."
    if seq in answered:
        return f"{cost} was charged, and the answer is recorded: asked again, the same question returns it for free."
    return f"{cost} was charged (entry {seq} of the ledger) and stays charged; asked again, it is charged again."


def _asks(body: dict[str, object], kind: Kind, question: str | None) -> bool:
    """Whether a charge is for a release of this kind, and a question for this one; of a very long one the ledger does
    not keep the words.
    """
    asked = body.get("asked")
    if not isinstance(asked, str):
        return True
    try:
        request = json.loads(asked)
    except ValueError:
        return True
    if not isinstance(request, dict):
        return True
    return kind in request if question is None else request.get(kind) == question
