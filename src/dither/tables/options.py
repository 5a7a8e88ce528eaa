"""The options of a release, each declared once: a line of :class:`ReleaseOptions`.

From that line follow the keyword of ``question.release``, ``explain`` and ``plan`` (:func:`takes_options`), the option
of ``dither query`` and ``dither explain`` (:mod:`dither.cli.app`), the field of an HTTP request
(:mod:`dither.wire.requests`), what recorded answers are found by (:mod:`dither.tables.execute.recorded_key`), and the
documentation.
"""

from __future__ import annotations

import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import cache, wraps
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, overload

from dither import arguments
from dither.errors import InvalidArgument, WrongType
from dither.public_module import public_in
from dither.tables.card.values import nearest

NoiseChoice = Literal["best", "laplace", "gaussian"]
IntervalChoice = Literal["noise", "population"]
TailsChoice = Literal["usual", "any"]


def option(
    default: Any,
    help: str,
    metavar: str = "",
    *,
    flag: str = "",
    planned: bool = True,
    recorded: bool = True,
    sent: bool = True,
) -> Any:
    """Return the dataclass field of an option with its default, its help, and the placeholder of its value on the
    command line.

    ``flag`` is the option's name on the command line where it differs. ``planned`` says that it can change a plan, so
    that ``dither explain`` takes it. ``recorded`` says that it is part of a recorded request as it was given: others
    are covered by the cost or the settled limits and noise, or do not affect the answer. ``sent`` says that it is a
    field of HTTP requests.
    """
    about = {"metavar": metavar, "flag": flag, "planned": planned, "recorded": recorded, "sent": sent}
    return field(default=default, metadata={"help": help, **about})


@public_in("dither")
@dataclass(frozen=True)
class ReleaseOptions:
    """How a question is to be released.

    What ``error="1%"`` is a percentage of must be public before anything is asked: the ``rows`` that the card states,
    divided by the number of groups (and of bins); for a sum, times half the largest value. A condition makes the answer
    smaller and its relative error larger.

    >>> ReleaseOptions(epsilon=0.5, max_groups="auto").max_groups
    'auto'
    >>> ReleaseOptions(epsilon=-1)
    Traceback (most recent call last):
    dither.InvalidArgument: epsilon: expected a number above 0 and at most 1e+06, got -1. Fix: pass a larger
    epsilon, for example epsilon=1.
    """

    epsilon: float | None = option(None, "The ε to spend on this question.", "NUMBER", recorded=False)
    _: KW_ONLY
    error: float | str | None = option(
        None,
        "Instead of ε: the error (95 %) that is good enough for counts and sums; N% is of the card's rows.",
        "NUMBER|N%",
        recorded=False,
    )
    delta: float | None = option(
        None, "The δ to spend, where one is needed; else that of the question or the card.", "NUMBER", recorded=False
    )
    max_groups: int | Literal["auto"] | None = option(
        None, "In how many groups a person counts at most; auto chooses privately.", "N|auto", recorded=False
    )
    max_rows: int | Literal["auto"] | None = option(
        None,
        "How many rows of a person count at most, in each group; auto chooses privately.",
        "N|auto",
        recorded=False,
    )
    noise: NoiseChoice = option(
        "best", "best (of the two, the one with the smaller errors), laplace or gaussian.", "NAME", recorded=False
    )
    quantile_interval: bool = option(
        False, "Spend a third of the budget of quantiles, MIN and MAX on their ±, of MODE on its probability."
    )
    interval: IntervalChoice = option(
        "noise", "What the ± is about: noise, or population (adds the sampling error).", "NAME"
    )
    tails: TailsChoice = option(
        "usual",
        "usual, or any: of a COUNT or SUM, a lower limit that holds whatever people have, for more noise.",
        "NAME",
    )
    other: bool = option(False, "Spend a fifth of the budget on one more row, for all groups that are not shown.")
    bias: bool = option(
        False,
        "Spend a twentieth of ε to learn how much the limits leave out, and show it beside the ±.",
        recorded=False,
    )
    profile_age: float | None = option(
        None, "Plan without a profile that is older than this; without the option, whatever its age.", "DAYS"
    )
    nonnegative: bool = option(False, "Return no count or sum below 0.", planned=False)
    integer: bool = option(False, "Return counts and sums as whole numbers.", planned=False)
    analyst: str | None = option(None, "Who asks, where each analyst has a budget.", "NAME", recorded=False, sent=False)
    key: str | None = option(
        None,
        "A name for this release: asked again under it, the same answer is returned.",
        "NAME",
        planned=False,
        recorded=False,
        sent=False,
    )
    again: bool = option(
        False, "Answer anew, and charge anew, even if this was asked before.", planned=False, recorded=False
    )
    force: bool = option(
        False, "Ask although the answer is expected to be noise alone.", flag="--yes", planned=False, recorded=False
    )

    def __post_init__(self) -> None:
        """Check the type and the range of every option."""
        if self.epsilon is not None:
            arguments.epsilon(self.epsilon)
        if isinstance(self.error, str):
            percentage(self.error)
        elif self.error is not None:
            arguments.positive(self.error, "error")
        if self.delta is not None:
            arguments.delta(self.delta)
        if self.profile_age is not None:
            arguments.positive(self.profile_age, "profile_age")
        for name in ("max_groups", "max_rows"):
            limit = getattr(self, name)
            if limit is not None and not (isinstance(limit, str) and limit == "auto"):
                arguments.whole(limit, name)
        kind: type = type(self)
        for name, hint in option_types(kind).items():
            _check_type(name, getattr(self, name), hint)
        if self.key is not None:
            from dither.release.pipeline import (
                check_key,  # with it the ledger, which the help of commands need not load
            )

            check_key(self.key)


@cache
def option_types(options: type) -> dict[str, Any]:
    """Return the annotated types of the options, by name."""
    hints = typing.get_type_hints(options)
    return {item.name: hints[item.name] for item in fields(options)}


def _check_type(name: str, value: object, hint: Any) -> None:
    """Refuse a value that is not of the type of its option; numbers have rules of their own."""
    if hint is bool and not isinstance(value, bool):
        raise WrongType(name, "True or False", type(value).__name__, f"pass {name}=True")
    if hint == str | None and not (value is None or isinstance(value, str)):
        raise WrongType(name, "text", type(value).__name__, f"pass {name}='…'")
    choices = typing.get_args(hint) if typing.get_origin(hint) is Literal else ()
    if choices and value not in choices:
        expected = f"{', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}"
        fix = nearest(str(value), choices) or f"leave it out for {choices[0]!r}"
        raise InvalidArgument(name, expected, repr(value), fix)


def percentage(text: str) -> float:
    """Return a percentage as a share of 1.

    >>> percentage("1%"), percentage("2.5 %")
    (0.01, 0.025)
    >>> percentage("1")
    Traceback (most recent call last):
    dither.InvalidArgument: error: expected a number, or a percentage such as '1%', got '1'. Fix: give 1 as a
    number, or '1%'.
    """
    result = _PERCENTAGE.fullmatch(text)
    share = float(result[1]) / 100 if result else 0.0
    if not share > 0:
        number = text.strip()
        fix, command = "give a number such as 50, or a percentage such as '1%'", "pass --error 50, or --error 1%"
        if number.isascii() and number.replace(".", "", 1).isdigit():
            fix = f"give {number[:20]} as a number, or '{number[:20]}%'"
        raise InvalidArgument("error", "a number, or a percentage such as '1%'", repr(text[:20]), fix, command)
    return share


_PERCENTAGE = re.compile(r"\s*([0-9]{1,4}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})\s*%\s*", re.ASCII)

# -- methods that take options ----------------------------------------------------------------------------------------

Stated = ParamSpec("Stated")
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


class OptionsMethod(Protocol[Stated, Result_co]):
    """A method that takes the options as keyword arguments or as one object."""

    @overload
    def __call__(self, *args: Stated.args, **keywords: Stated.kwargs) -> Result_co: ...
    @overload
    def __call__(self, *, options: ReleaseOptions) -> Result_co: ...


def takes_options(
    kind: Callable[Stated, ReleaseOptions],
) -> Callable[[Callable[[Any, ReleaseOptions], Result]], OptionsMethod[Stated, Result]]:
    """Let a method of one :class:`ReleaseOptions` take the options as keyword arguments, too.

    >>> class Question:
    ...     @takes_options(ReleaseOptions)
    ...     def release(self, options):
    ...         return options
    >>> Question().release(0.5, max_rows=3) == Question().release(options=ReleaseOptions(epsilon=0.5, max_rows=3))
    True
    """

    def decorate(method: Callable[[Any, ReleaseOptions], Result]) -> OptionsMethod[Stated, Result]:
        """Wrap the method, and give it a signature with ``options`` and the parameters of ``kind``."""

        @wraps(method)
        def with_keywords(
            self: Any, epsilon: float | None = None, *, options: ReleaseOptions | None = None, **keywords: Any
        ) -> Result:
            """Call the method with ``options``, or with options made from the other arguments."""
            if options is None:
                _refuse_unknown(keywords, typing.cast(type, kind))
                return method(self, typing.cast(Any, kind)(epsilon, **keywords))
            if not isinstance(options, ReleaseOptions):
                fix = "pass options=ReleaseOptions(epsilon=0.5)"
                raise WrongType("options", "a ReleaseOptions", type(options).__name__, fix)
            if epsilon is not None or keywords:
                fix = "state everything in the ReleaseOptions"
                raise InvalidArgument("options", "options=, or keyword arguments", "both", fix)
            return method(self, options)

        own, stated = inspect.signature(method), inspect.signature(kind)
        whole = inspect.Parameter("options", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=ReleaseOptions)
        parameters = [next(iter(own.parameters.values())), *stated.parameters.values(), whole]
        setattr(with_keywords, "__signature__", own.replace(parameters=parameters))  # noqa: B010 unknown to mypy
        return typing.cast(OptionsMethod[Stated, Result], with_keywords)

    return decorate


def _refuse_unknown(keywords: Mapping[str, Any], kind: type) -> None:
    """Refuse a keyword that is not an option, and suggest the most similar one."""
    names = [item.name for item in fields(kind)]
    for name in keywords:
        if name not in names:
            fix = nearest(name, names) or "leave it out"
            raise WrongType(name, f"{', '.join(names[:-1])} or {names[-1]}", "an unknown option", fix)


def _documented(options: type) -> str:
    """Return the documentation of the class with a section about each option before its examples."""
    text, _, examples = (inspect.getdoc(options) or "").partition(">>>")
    lines = [
        f"{item.name}\n" + textwrap.indent(textwrap.fill(item.metadata["help"], 110), "    ")
        for item in fields(options)
    ]
    return f"{text}Parameters\n----------\n" + "\n".join(lines) + f"\n\nExamples\n--------\n>>>{examples}"


ReleaseOptions.__doc__ = _documented(ReleaseOptions)
