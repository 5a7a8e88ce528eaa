"""What a failed command has charged, according to the ledger rather than to the error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import dither
from dither.errors import LedgerError

UNKNOWN = "The ledger cannot be asked whether this was charged: assume that it was, and see dither budget."


class QuestionFailed(Exception):
    """A question failed, from whatever cause, and this is what the ledger says about its charge."""

    def __init__(self, charged: str, *, after_charge: bool) -> None:
        super().__init__(charged)
        self.charged = charged
        self.after_charge = after_charge


@contextmanager
def explaining_failures(place: str, dataset: str, question: str | None) -> Iterator[None]:
    """Say of a question that fails inside what the ledger holds about it; None is a publication, which has no words."""
    before = _head(place)
    try:
        yield
    except BaseException as error:
        said = _since(place, dataset, question, before)
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


def _since(place: str, dataset: str, question: str | None, before: int | None) -> str | None:
    """A sentence about the charges for this question since then; None if there is none."""
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
                if entry.kind == "charge" and _asks(entry.body, question):
                    paid[entry.seq] = str(promised(entry.body["cost"]))
                elif entry.kind == "answer":
                    answered.add(entry.charge)
    except Exception:
        return UNKNOWN
    if not paid:
        return None
    seq, cost = list(paid.items())[-1]
    if seq in answered:
        return f"{cost} was charged, and the answer is recorded: asked again, the same question returns it for free."
    return f"{cost} was charged (entry {seq} of the ledger) and stays charged; asked again, it is charged again."


def _asks(body: dict[str, object], question: str | None) -> bool:
    """Whether a charge is for this question, or, where there is none, for a publication; of a very long one the ledger
    does not keep the words.
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
    return "publication" in request if question is None else request.get("question") == question


__all__ = ["UNKNOWN", "QuestionFailed", "explaining_failures"]
