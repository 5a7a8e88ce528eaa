"""How a release reports its cost to the spender in force, without knowing it.

A mechanism marks what it releases with :func:`spends`. Without a budget in force that does nothing. Inside ``with
ledger.scope(...)`` wrong arguments are refused first (:mod:`dither.rehearsal`); then the spender gets the mechanism and
the computation, charges, and only then computes. A release made of other releases is charged once: dither calls its
parts through :func:`covered`, since its guarantee covers them. A session that answers later is paid for where it is
constructed, however that is done (:func:`starts_session`). The
spender stays in force all the while, so that a release by code of the user's which runs inside (an iterator that yields
the data, a function, an object's ``__float__``) is charged like any other.

The spender is held in a context variable: it is in force for the thread or task that opened the scope, and for tasks
started from it; a new thread starts without it.

Whatever NumPy does where a value overflows or vanishes (``np.seterr``), a release does not tell: inside of every marked
function its errors and warnings are off, since a record decides whether they occur.

An *observer* (:func:`observed_by`) is held in the same way, and sees every release, also those inside of others: what
releases, by which function, with which arguments. The auditor is one. What is not charged by itself but must be seen is
marked with :func:`observed`.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, ParamSpec, Protocol, TypeVar, cast

import numpy as np

from dither.errors import DitherError, WrongType
from dither.guarantees import ApproxDP, Guarantee, PureDP
from dither.randomness import is_secure
from dither.rehearsal import rehearse

P = ParamSpec("P")
R = TypeVar("R")


class Spender(Protocol):
    """Charges each release made in its scope: a ledger scope, for example."""

    def spend(self, what: Any, compute: Callable[[], Any], *, private: bool, recordable: bool = True) -> Any:
        """Charge the cost ``what.guarantee``, then return ``compute()``.

        ``private`` says that the noise comes from the operating system; ``recordable``, that the result is a value
        which a ledger can record, and not a session.
        """


class Observer(Protocol):
    """Is shown each release made in its scope, as the auditor is."""

    def see(self, what: Any, name: str, given: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """Return ``compute()``, or a substitute for its result."""


# both in one variable, and None where there is neither, so that a release looks once
_IN_FORCE: ContextVar[tuple[Spender | None, Observer | None] | None] = ContextVar("dither_in_force", default=None)


@contextmanager
def _put_in_force(spender: Spender | None, observer: Observer | None) -> Iterator[None]:
    """Make releases in the block report to this spender and this observer; None stands for neither."""
    token = _IN_FORCE.set(None if spender is None and observer is None else (spender, observer))
    try:
        yield
    finally:
        _IN_FORCE.reset(token)


def charging_to(spender: Spender | None) -> AbstractContextManager[None]:
    """Charge every release in the block to ``spender``; None charges none."""
    return _put_in_force(spender, (_IN_FORCE.get() or (None, None))[1])


def current_spender() -> Spender | None:
    """Return the spender to which releases of this context are charged; None if there is none."""
    return (_IN_FORCE.get() or (None, None))[0]


def observed_by(observer: Observer | None) -> AbstractContextManager[None]:
    """Show every release in the block to ``observer``; None shows none."""
    return _put_in_force((_IN_FORCE.get() or (None, None))[0], observer)


def current_observer() -> Observer | None:
    """Return the observer to which releases of this context are shown; None if there is none."""
    return (_IN_FORCE.get() or (None, None))[1]


@dataclass(frozen=True)
class Request:
    """The release made by a call of a function: the name of the function, and the cost that its arguments state."""

    name: str
    guarantee: Guarantee


def spends(method: Callable[P, R]) -> Callable[P, R]:
    """Mark a method as a release whose cost is the ``guarantee`` of its object."""
    return _reported(method, _owner, paid=True)


def observed(method: Callable[P, R]) -> Callable[P, R]:
    """Mark a method as a release that was charged elsewhere, and is only shown to the observer."""
    return _reported(method, _owner, paid=False)


def starts_session(cost: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Mark a method that starts a session: its argument ``cost``, a guarantee or an object with one, covers all
    later answers.

    Mark the constructor itself, so that there is no session which was not paid for. A method that constructs one and
    is marked as well calls the class through :func:`covered`.
    """
    return partial(_reported, what=lambda given: given[cost], paid=True, recordable=False)


def spends_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function as a release whose cost is stated by its arguments ``epsilon`` and, if given, ``delta``."""

    def request(given: Mapping[str, Any]) -> Request:
        """Return the release that a call with these arguments makes."""
        epsilon, delta = cast(float, given.get("epsilon")), given.get("delta")
        cost = PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)
        return Request(function.__name__, cost)

    return _with_explained_arguments(_reported(function, request, paid=True), inspect.signature(function))


_REASONS = {
    "bounds": ("bounds=(lower, upper)", "pass the range that values can have at all, which must not be taken from the "
               "data: without it one person could change the answer by any amount"),
    "epsilon": ("epsilon", "pass epsilon=1, for example: how much may be learned about one person"),
    "edges": ("edges", "pass the edges of the bins, edges=(0, 10, 20), which must not be taken from the data"),
    "categories": ("categories", "list the values that may occur, which must not be taken from the data"),
    "q": ("q", "pass q=0.5 for the median, for example"),
}  # fmt: skip
"""What is missing, and why it is needed."""


def _with_explained_arguments(function: Callable[P, R], signature: inspect.Signature) -> Callable[P, R]:
    """Wrap a function so that calls with missing or unknown arguments raise an error that explains which to pass."""

    @wraps(function)
    def explained(*args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function, and explain a wrong call."""
        try:
            return function(*args, **kwargs)
        except DitherError:
            raise
        except TypeError:
            refusal = _refused_call(function.__name__, signature, args, kwargs)
            if refusal is None:
                raise
        raise refusal

    return explained


def _refused_call(
    name: str, signature: inspect.Signature, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> WrongType | None:
    """Return the error for a call whose arguments do not fit the signature; None if they fit."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        pass
    else:
        return None
    parameters = signature.parameters
    listed = ", ".join(parameters)
    unknown = next((key for key in kwargs if key not in parameters), None)
    if unknown is not None:
        near = difflib.get_close_matches(unknown, parameters, 1)
        fix = f"write {near[0]}" if near else "leave it out"
        return WrongType(f"{name}()", f"only {listed}", f"{unknown[:40]!r}", fix)
    positional = [key for key, item in parameters.items() if item.kind is not item.KEYWORD_ONLY]
    given = {*positional[: len(args)], *kwargs}
    needed = [key for key, item in parameters.items() if item.default is item.empty and key not in given]
    if not needed:
        return WrongType(f"{name}()", listed, "more arguments", "pass them by their names")
    needed.sort(key=lambda key: [*_REASONS, key].index(key))
    expected, fixes = zip(*(_REASONS.get(key, (key, f"pass {key}")) for key in needed), strict=True)
    return WrongType(f"{name}()", " and ".join(expected), "none", "; ".join(fixes))


def covered(release: Callable[P, R]) -> Callable[P, R]:
    """Return a release as a function that is shown to the observer and not charged.

    It is for a release that is part of another one, whose guarantee covers it: dither's own calls from inside a marked
    function. It covers that one call; releases inside of the call are charged. A class is constructed without a charge,
    and not observed, since the method that starts the session is.
    """
    if isinstance(release, type):
        return cast("Callable[P, R]", partial(_construct, release))
    function = getattr(release, "__func__", release)
    part: Callable[P, R] | None = getattr(function, "covered_part", None)
    if part is None:  # not marked: what it releases is charged
        return release
    return part if function is release else partial(part, getattr(release, "__self__"))  # noqa: B009 a bound method


def _construct(kind: type[R], *args: Any, **kwargs: Any) -> R:
    """Construct an object without charging for it."""
    constructed: R = kind.__new__(kind)
    constructor = vars(kind)["__init__"]
    getattr(constructor, "__wrapped__", constructor)(constructed, *args, **kwargs)
    return constructed


def _owner(given: Mapping[str, Any]) -> Any:
    """Return the object of a method call, its first argument."""
    return next(iter(given.values()))


def _quiet(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function so that NumPy's errors and warnings are off."""

    @wraps(function)
    def quiet(*args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function without NumPy's errors and warnings."""
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return quiet


class _Marked(Protocol[P, R]):
    """A function that reports its releases, and its variant for covered calls."""

    covered_part: Callable[P, R]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Release, and report it."""


def _reported(
    function: Callable[P, R], what: Callable[[Mapping[str, Any]], Any], paid: bool, recordable: bool = True
) -> Callable[P, R]:
    """Wrap a function so that its releases are charged by the spender in force, if ``paid``, and shown to the
    observer.

    ``what`` returns the release for the bound arguments of a call. ``recordable`` is False if the result is a
    session, which no ledger can record.
    """
    signature = inspect.signature(function)
    function = _quiet(function)
    rehearsed = function.__module__.startswith("dither.") and {"compute", "loss", "pieces", "score"}.isdisjoint(
        signature.parameters
    )

    def part(*args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function, shown to the observer in force but not charged."""
        in_force = _IN_FORCE.get()
        if in_force is None or in_force[1] is None:
            return function(*args, **kwargs)
        given = signature.bind(*args, **kwargs).arguments
        seen: R = in_force[1].see(what(given), function.__name__, given, lambda: function(*args, **kwargs))
        return seen

    @wraps(function)
    def released(*args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function, charged and shown; wrong arguments are refused before the charge."""
        in_force = _IN_FORCE.get()
        if in_force is None:
            return function(*args, **kwargs)
        if in_force[0] is None or not paid:
            return part(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        releasing, source = what(bound.arguments), bound.arguments.get("source")
        if isinstance(releasing, Request):  # an object may say another number when it is read again
            exact = dict(zip(("epsilon", "delta"), releasing.guarantee.exact, strict=False))
            bound.arguments.update({name: exact[name] for name in exact if bound.arguments.get(name) is not None})
        if rehearsed:
            with observed_by(None):
                rehearse(function, bound.arguments)
        answer: R = in_force[0].spend(
            releasing,
            lambda: part(*bound.args, **bound.kwargs),
            private=is_secure(source),
            **({} if recordable else {"recordable": False}),
        )
        return answer

    marked = cast("_Marked[P, R]", released)
    marked.covered_part = part
    return marked
