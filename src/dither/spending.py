"""How a release tells whoever keeps the books, without knowing them.

A mechanism marks what it releases with :func:`spends`. Outside of any books that does nothing. Inside
``with ledger.scope(...)`` the keeper of the books gets the mechanism and the computation, charges, and only then
computes. A release made of other releases is charged once, at the outermost: its guarantee covers what is inside.

The keeper is found through a context variable: it holds for the thread or task that opened the scope, and for
tasks started from it; a new thread starts without it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar

from dither.guarantees import ApproxDP, Guarantee, PureDP

P = ParamSpec("P")
R = TypeVar("R")


class Spender(Protocol):
    """Whoever keeps the books: charges for the release of ``what``, then computes it."""

    def spend(self, what: Any, compute: Callable[[], Any], *, private: bool) -> Any:
        """Charge what ``what.guarantee`` says, then return ``compute()``."""


_KEEPER: ContextVar[Spender | None] = ContextVar("dither_spender", default=None)


@contextmanager
def kept_by(spender: Spender | None) -> Iterator[None]:
    """Every release inside is reported to ``spender``; with None, to nobody."""
    token = _KEEPER.set(spender)
    try:
        yield
    finally:
        _KEEPER.reset(token)


def spends(method: Callable[P, R]) -> Callable[P, R]:
    """Mark a method that releases: what it costs is its object's ``guarantee``."""

    @wraps(method)
    def released(*args: P.args, **kwargs: P.kwargs) -> R:
        keeper = _KEEPER.get()
        if keeper is None:
            return method(*args, **kwargs)
        source = kwargs.get("source")
        with kept_by(None):
            answer: R = keeper.spend(
                args[0],
                lambda: method(*args, **kwargs),
                private=source is None or bool(getattr(source, "private", False)),
            )
            return answer

    return released


@dataclass(frozen=True)
class Asked:
    """A release by a function: its name, and what its arguments say it costs."""

    name: str
    guarantee: Guarantee


def spends_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that releases: what it costs is its ``epsilon`` and, where given, its ``delta``."""
    signature = inspect.signature(function)

    @wraps(function)
    def released(*args: P.args, **kwargs: P.kwargs) -> R:
        keeper = _KEEPER.get()
        if keeper is None:
            return function(*args, **kwargs)
        given = signature.bind(*args, **kwargs).arguments
        loss, delta, source = given.get("epsilon"), given.get("delta"), given.get("source")
        cost = PureDP(loss) if delta is None else ApproxDP(loss, delta)  # type: ignore[arg-type]
        with kept_by(None):
            answer: R = keeper.spend(
                Asked(function.__name__, cost),
                lambda: function(*args, **kwargs),
                private=source is None or bool(getattr(source, "private", False)),
            )
            return answer

    return released
