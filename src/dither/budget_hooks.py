"""How a release tells whoever keeps the books, without knowing them.

A mechanism marks what it releases with :func:`spends`. Outside of any books that does nothing. Inside
``with ledger.scope(...)`` the keeper of the books gets the mechanism and the computation, charges, and only then
computes. A release made of other releases is charged once: dither calls those it is made of through :func:`covered`,
since its guarantee covers them. The keeper stays in place all the while, so that a release by code of the user's which
runs inside (an iterator that yields the data, a function, an object's ``__float__``) is charged like any other.

The keeper is found through a context variable: it holds for the thread or task that opened the scope, and for
tasks started from it; a new thread starts without it.

A *witness* (:func:`watched_by`) is found the same way, and sees every release, also those inside of others: who asks,
for what, with which arguments. The auditor is one. What is not paid for by itself but must be seen is marked with
:func:`watched`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, ParamSpec, Protocol, TypeVar

from dither.guarantees import ApproxDP, Guarantee, PureDP
from dither.randomness import is_secure

P = ParamSpec("P")
R = TypeVar("R")


class Spender(Protocol):
    """Whoever keeps the books: charges for the release of ``what``, then computes it."""

    def spend(self, what: Any, compute: Callable[[], Any], *, private: bool) -> Any:
        """Charge what ``what.guarantee`` says, then return ``compute()``."""


class Witness(Protocol):
    """Whoever looks on: told what releases, by which function, from which arguments, and how."""

    def see(self, what: Any, name: str, given: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """Return ``compute()``, or what it would have returned."""


# both in one variable, and None where there is neither: a release looks once
_PRESENT: ContextVar[tuple[Spender | None, Witness | None] | None] = ContextVar("dither_present", default=None)


@contextmanager
def _present(spender: Spender | None, witness: Witness | None) -> Iterator[None]:
    token = _PRESENT.set(None if spender is None and witness is None else (spender, witness))
    try:
        yield
    finally:
        _PRESENT.reset(token)


def kept_by(spender: Spender | None) -> AbstractContextManager[None]:
    """Every release inside is reported to ``spender``; with None, to nobody."""
    return _present(spender, (_PRESENT.get() or (None, None))[1])


def keeper() -> Spender | None:
    """Whoever is told of the next release; None outside of any block."""
    return (_PRESENT.get() or (None, None))[0]


def watched_by(witness: Witness | None) -> AbstractContextManager[None]:
    """Every release inside is shown to ``witness``; with None, to nobody."""
    return _present((_PRESENT.get() or (None, None))[0], witness)


@dataclass(frozen=True)
class Asked:
    """A release by a function: its name, and what its arguments say it costs."""

    name: str
    guarantee: Guarantee


def spends(method: Callable[P, R]) -> Callable[P, R]:
    """Mark a method that releases: what it costs is its object's ``guarantee``."""
    return _reported(method, _owner, paid=True)


def watched(method: Callable[P, R]) -> Callable[P, R]:
    """Mark a method that releases what was paid for elsewhere."""
    return _reported(method, _owner, paid=False)


def spends_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that releases: what it costs is its ``epsilon`` and, where given, its ``delta``."""

    def asked(given: Mapping[str, Any]) -> Asked:
        loss, delta = given.get("epsilon"), given.get("delta")
        cost = PureDP(loss) if delta is None else ApproxDP(loss, delta)  # type: ignore[arg-type]
        return Asked(function.__name__, cost)

    return _reported(function, asked, paid=True)


def covered(release: Callable[P, R]) -> Callable[P, R]:
    """A release that is a part of another, whose guarantee covers it: a witness sees it, and nobody is charged.

    Only for dither's own calls from inside a marked function. It covers that one call, not what runs inside it.
    """
    function = getattr(release, "__func__", release)
    part = getattr(function, "_covered", None)
    if part is None:  # not marked: what it releases is charged
        return release
    bound: Callable[P, R] = part if function is release else partial(part, release.__self__)  # type: ignore[attr-defined]
    return bound


def _owner(given: Mapping[str, Any]) -> Any:
    return next(iter(given.values()))


def _reported(function: Callable[P, R], what: Callable[[Mapping[str, Any]], Any], paid: bool) -> Callable[P, R]:
    """The function, reporting ``what`` its arguments say is released: to the keeper of the books, if there is one
    and it is to be paid for, and to a witness, if there is one."""
    signature = inspect.signature(function)

    def part(*args: P.args, **kwargs: P.kwargs) -> R:
        present = _PRESENT.get()
        if present is None or present[1] is None:
            return function(*args, **kwargs)
        given = signature.bind(*args, **kwargs).arguments
        seen: R = present[1].see(what(given), function.__name__, given, lambda: function(*args, **kwargs))
        return seen

    @wraps(function)
    def released(*args: P.args, **kwargs: P.kwargs) -> R:
        present = _PRESENT.get()
        if present is None:
            return function(*args, **kwargs)
        if present[0] is None or not paid:
            return part(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        asked, source = what(bound.arguments), bound.arguments.get("source")
        if isinstance(asked, Asked):  # an object may say another number when it is read again
            exact = dict(zip(("epsilon", "delta"), asked.guarantee.exact, strict=False))
            bound.arguments.update({name: exact[name] for name in exact if bound.arguments.get(name) is not None})
        answer: R = present[0].spend(asked, lambda: part(*bound.args, **bound.kwargs), private=is_secure(source))
        return answer

    released._covered = part  # type: ignore[attr-defined]
    return released
