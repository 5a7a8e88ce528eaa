"""The options of a release: what may be said beside the question, each once, for Python, the command line and records.

``question.release(epsilon=0.5, max_rows=3)`` and ``question.release(options=ReleaseOptions(epsilon=0.5, max_rows=3))``
are the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

from dither import arguments
from dither.errors import InvalidArgument, WrongType
from dither.public_module import public_in
from dither.release.pipeline import check_key
from dither.tables.card.values import nearest

NoiseChoice = Literal["best", "laplace", "gaussian"]
NOISES: tuple[NoiseChoice, ...] = ("best", "laplace", "gaussian")
IntervalChoice = Literal["noise", "population"]
INTERVALS: tuple[IntervalChoice, ...] = ("noise", "population")


class OptionKeywords(TypedDict, total=False):
    """The options as keyword arguments; see :class:`ReleaseOptions`. ``epsilon`` is a parameter of its own."""

    error: float | str | None
    delta: float | None
    max_groups: int | Literal["auto"] | None
    max_rows: int | Literal["auto"] | None
    noise: NoiseChoice
    quantile_interval: bool
    interval: IntervalChoice
    other: bool
    bias: bool
    nonnegative: bool
    integer: bool
    analyst: str | None
    key: str | None
    again: bool
    force: bool


@public_in("dither")
@dataclass(frozen=True, kw_only=True)
class ReleaseOptions:
    """How a question is to be released.

    Parameters
    ----------
    epsilon
        The epsilon to spend. This, or ``error``, or an epsilon in the question itself is needed.
    error
        Instead of epsilon: the error that is good enough for every count and sum, with 95 % confidence; or a
        percentage, as in ``"1%"``. What it is a percentage of must be public before anything is asked: the ``rows``
        that the card states, divided by the number of groups (and of bins); for a sum, times half the largest value.
        A condition makes the answer smaller and its relative error larger.
    delta
        The delta to spend where one is needed; by default what the question or the card says.
    max_groups
        How many groups of a person count; ``"auto"`` chooses the number privately.
    max_rows
        How many rows of a person count in each group; ``"auto"`` chooses the number privately.
    noise
        ``"laplace"``, ``"gaussian"``, or ``"best"``: whichever of the two has the smaller errors.
    quantile_interval
        Spend a third of the budget of quantiles, ``MIN`` and ``MAX`` on their ±, and of ``MODE`` on the probability
        that nothing is more common; without it they have none.
    interval
        What the ± is about: the ``"noise"`` in the answer, or the ``"population"`` that the rows (where they belong to
        people, the people) were drawn from, which adds the sampling error. What ``error`` asks for is about the noise.
    other
        Spend a fifth of the budget on grand totals, to show one more row for all groups that are not shown.
    bias
        Spend a twentieth of the epsilon to learn how much ``max_groups`` and ``max_rows`` leave out, and show it beside
        the ±. With ``"auto"`` that is shown anyway.
    nonnegative, integer
        Counts and sums not below 0; counts and sums as whole numbers.
    analyst
        Who asks, where analysts have accounts.
    key
        A name for this release: the same request under the same key returns the recorded answer.
    again
        Ask anew, and pay anew, although the same question may have been answered before.
    force
        Ask although an expected ± is wider than everything that the answer could be, which is refused otherwise.

    >>> ReleaseOptions(epsilon=0.5, max_groups="auto").max_groups
    'auto'
    >>> ReleaseOptions(epsilon=-1)
    Traceback (most recent call last):
    dither.InvalidArgument: epsilon: expected a number above 0 and at most 1e+06, got -1. Fix: pass a larger
    epsilon, for example epsilon=1.
    """

    epsilon: float | None = None
    error: float | str | None = None
    delta: float | None = None
    max_groups: int | Literal["auto"] | None = None
    max_rows: int | Literal["auto"] | None = None
    noise: NoiseChoice = "best"
    quantile_interval: bool = False
    interval: IntervalChoice = "noise"
    other: bool = False
    bias: bool = False
    nonnegative: bool = False
    integer: bool = False
    analyst: str | None = None
    key: str | None = None
    again: bool = False
    force: bool = False

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            arguments.epsilon(self.epsilon)
        if isinstance(self.error, str):
            percentage(self.error)
        elif self.error is not None:
            arguments.positive(self.error, "error")
        if self.delta is not None:
            arguments.delta(self.delta)
        if self.max_groups is not None and not _is_auto(self.max_groups):
            arguments.whole(self.max_groups, "max_groups")
        if self.max_rows is not None and not _is_auto(self.max_rows):
            arguments.whole(self.max_rows, "max_rows")
        if self.noise not in NOISES:
            fix = "pass noise='gaussian'" if self.noise in ("normal", "gauss", "Gaussian") else "leave it out"
            raise InvalidArgument("noise", "'best', 'laplace' or 'gaussian'", repr(self.noise), fix)
        if self.interval not in INTERVALS:
            fix = "leave it out: the ± is then about the noise"
            raise InvalidArgument("interval", "'noise' or 'population'", repr(self.interval), fix)
        for name in ("quantile_interval", "other", "bias", "nonnegative", "integer", "again", "force"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise WrongType(name, "True or False", type(value).__name__, f"pass {name}=True")
        for name in ("analyst", "key"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise WrongType(name, "text", type(value).__name__, f"pass {name}='…'")
        check_key(self.key)


_PERCENTAGE = re.compile(r"\s*([0-9]{1,4}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})\s*%\s*", re.ASCII)


def percentage(text: str) -> float:
    """A percentage as a share of 1.

    >>> percentage("1%"), percentage("2.5 %")
    (0.01, 0.025)
    >>> percentage("1")
    Traceback (most recent call last):
    dither.InvalidArgument: error: expected a number, or a percentage such as '1%', got '1'. Fix: pass error=1 as
    a number, or error='1%'.
    """
    result = _PERCENTAGE.fullmatch(text)
    share = float(result[1]) / 100 if result else 0.0
    if not share > 0:
        number = text.strip()
        fix = "pass error=50, or error='1%'"
        if number.isascii() and number.replace(".", "", 1).isdigit():
            fix = f"pass error={number[:20]} as a number, or error='{number[:20]}%'"
        raise InvalidArgument("error", "a number, or a percentage such as '1%'", repr(text[:20]), fix)
    return share


REMOVED = {"consistent": "write GROUP BY ROLLUP (…), the levels of which add up, or publish a set of tables"}
"""Options of earlier versions, and what to write instead."""


def _is_auto(limit: object) -> bool:
    return isinstance(limit, str) and limit == "auto"


def release_options(epsilon: float | None, options: ReleaseOptions | None, keywords: OptionKeywords) -> ReleaseOptions:
    """The options of a call, as an object or as keyword arguments; both at once and unknown names are refused.

    >>> release_options(0.5, None, {"max_rows": 2}).max_rows
    2
    >>> release_options(0.5, None, {"max_row": 2})
    Traceback (most recent call last):
    dither.WrongType: max_row: expected epsilon, error, delta, max_groups, max_rows, noise, quantile_interval, interval,
    other, bias, nonnegative, integer, analyst, key, again or force, got an unknown option. Fix: write 'max_rows', the
    nearest name.
    """
    given: dict[str, Any] = dict(keywords)
    names = [item.name for item in fields(ReleaseOptions)]
    for name in given:
        if name not in names:
            fix = REMOVED.get(name) or nearest(name, names) or "leave it out"
            raise WrongType(name, f"{', '.join(names[:-1])} or {names[-1]}", "an unknown option", fix)
    if options is None:
        return ReleaseOptions(epsilon=epsilon, **given)
    if not isinstance(options, ReleaseOptions):
        raise WrongType(
            "options", "a ReleaseOptions", type(options).__name__, "pass options=ReleaseOptions(epsilon=0.5)"
        )
    if epsilon is not None or given:
        raise InvalidArgument(
            "options", "options=, or keyword arguments", "both", "state everything in the ReleaseOptions"
        )
    return options
