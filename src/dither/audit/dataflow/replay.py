"""Replay: does anything of the data reach the result, except through a mechanism, within its sensitivity?

A pipeline is run once, and every release in it is recorded: what released, from which input, with which outcome. It
is run again on the neighbour with every outcome frozen to what it was. Now nothing random is left, and all that may
differ is the inputs of the mechanisms, each by its declared sensitivity at most. Whatever else differs, a number of
releases, a parameter, a shape, a key, an error, the result, does so because one person was there or not: a leak that
no noise covers. Then the roles are changed.

Coins that are not noise (which rows a step samples, which groups of a person are kept) are tossed alike in both runs.

*What it does not show:* that a mechanism draws its noise rightly (see :func:`~dither.audit.certify` and
:func:`~dither.audit.measure`), or that other neighbours behave as these do.

>>> import numpy as np, dither as dp
>>> from dither.audit.dataflow.replay import replay
>>> x = np.array([1.0, 2.0, 3.0, 4.0])
>>> print(replay(lambda x: dp.stats.mean(x, bounds=(0, 10), epsilon=1), x, np.array([1.0, 2.0, 3.0, 9.0])))
nothing but 1 release(s) depends on the data; the farthest moved by 0.5 of its sensitivity
>>> print(replay(lambda x: dp.stats.mean(x, bounds=(0, x.max()), epsilon=1), x, np.array([1.0, 2.0, 3.0, 9.0])))
LEAK release 1, Laplace.release: its parameters depend on the data
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from types import GeneratorType
from typing import Any

from dither import arguments
from dither.accounting import gaussian_delta
from dither.audit.dataflow.distance import ROUNDING, Moved, Shape, known, moved, one_way
from dither.audit.outputs.canonical import Raised
from dither.audit.outputs.equality import difference
from dither.budget_hooks import Request, observed_by
from dither.errors import WrongType, message
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.mechanisms import SparseVector
from dither.mechanisms.sparse_vector import SparseVectorSession
from dither.randomness import SeededSource, drawn_from

_MOST_MADE = 1 << 16
_ON_DEMAND = (GeneratorType, map, filter, zip)


@dataclass(frozen=True)
class Release:
    """One release of a pipeline, and how far its input moved between the neighbours.

    >>> Release("Laplace.release", Moved(0.5, epsilon=0.5)).moved.times
    0.5
    """

    name: str
    moved: Moved


@dataclass(frozen=True)
class Replay:
    """What was seen: the releases, and everything that depends on the data without being one.

    >>> Replay((), ("the results differ",)).passed
    False
    """

    releases: tuple[Release, ...]
    findings: tuple[str, ...]
    recorded: int = 0
    """How many releases the first run made; with none, nothing of what the pipeline draws was seen."""
    ended: str = ""
    """The error that all runs ended in, if they did: what would have come after it was not seen."""

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "passed": self.passed,
            "findings": list(self.findings),
            "releases": [{"name": release.name, "moved": release.moved.times} for release in self.releases],
            "ended": self.ended,
        }

    def __str__(self) -> str:
        if self.findings:
            return "\n".join(f"LEAK {finding}" for finding in self.findings)
        far = max((release.moved.times for release in self.releases), default=0.0)
        told = f"nothing but {len(self.releases)} release(s) depends on the data"
        told += f"; the farthest moved by {far:.4g} of its sensitivity" if self.releases else ""
        return told + (f"; all runs ended in {self.ended}" if self.ended else "")


def replay(
    pipeline: Callable[[Any], Any],
    x: Any,
    x_neighbor: Any,
    *,
    claim: Guarantee | None = None,
    rounds: int = 2,
) -> Replay:
    """Run ``pipeline`` on ``x``, and again on its neighbour with every release frozen; then the other way round.

    ``claim``: what the pipeline says it costs. What these neighbours can lose over all releases, by how far they moved
    each, must not be more. ``rounds``: how many pairs of runs; each has its own noise, so that other ways through the
    pipeline are taken.

    >>> import dither as dp
    >>> noisy = dp.Laplace(sensitivity=1, epsilon=1)
    >>> replay(lambda x: noisy.release(len(x)), [1, 2, 3], [1, 2], claim=dp.PureDP(1)).passed
    True
    >>> print(replay(lambda x: (noisy.release(len(x)), len(x)), [1, 2, 3], [1, 2]))
    LEAK the result differs at [1], though every release was the same
    """
    if not callable(pipeline):
        raise WrongType(message("pipeline", "a function of the data", type(pipeline).__name__, "pass a function"))
    if claim is not None and not isinstance(claim, (PureDP, ApproxDP, ZCDP)):
        raise WrongType(message("claim", "a guarantee", type(claim).__name__, "pass claim=dither.PureDP(1)"))
    releases: list[Release] = []
    findings: dict[str, None] = {}
    recorded, ended = 0, ""
    for turn in range(arguments.whole(rounds, "rounds")):
        one, other = (x, x_neighbor) if turn % 2 == 0 else (x_neighbor, x)
        count, seen, result, ended = _pair(pipeline, one, other, claim)
        releases, recorded = releases or seen, recorded or count
        findings |= dict.fromkeys(result)
    return Replay(tuple(releases), tuple(findings), recorded, ended)


def _pair(
    pipeline: Callable[[Any], Any], one: Any, other: Any, claim: Guarantee | None
) -> tuple[int, list[Release], list[str], str]:
    """One run recorded, one replayed."""
    seed = int.from_bytes(os.urandom(16), "big")
    recorder = _Recorder(_Coins(seed))
    first = _outcome(pipeline, one, recorder)
    player = _Player(_Coins(seed), recorder.log)
    second = _outcome(pipeline, other, player)
    result = list(player.findings)
    if player.diverged:
        return len(recorder.log), player.releases, result, ""
    if len(player.releases) < len(recorder.log):
        result.append(f"{len(recorder.log)} release(s) with one, {len(player.releases)} with the other")
    elif (isinstance(first, _Raised), isinstance(second, _Raised)) in ((True, False), (False, True)):
        result.append("an error is raised with one and not with the other")
    else:
        where = difference(first, second)
        if where is not None:
            what = "the error" if isinstance(first, _Raised) else "the result"
            result.append(f"{what} differs{where}, though every release was the same")
    if claim is not None and not result:
        result += _overspent([release.moved for release in player.releases], claim)
    ended = first.kind.__name__ if isinstance(first, _Raised) and isinstance(second, _Raised) else ""
    return len(recorder.log), player.releases, result, ended


def _overspent(steps: list[Moved], claim: Guarantee) -> list[str]:
    """Whether what these neighbours can lose over all releases is more than is claimed."""
    loss, square, delta = (sum(getattr(step, name) for step in steps) for name in ("epsilon", "square", "delta"))
    if isinstance(claim, ZCDP):
        held = sum(step.epsilon**2 + step.square for step in steps) / 2 <= float(claim.exact[0]) * (1 + ROUNDING)
        held = held and not delta
    else:
        numbers = [float(number) for number in claim.exact]
        spare, chance = numbers[0] * (1 + ROUNDING) - loss, numbers[1] if len(numbers) > 1 else 0.0
        normal = (
            0.0
            if square == 0
            else (float(gaussian_delta(Fraction(spare), Fraction(1 / square**0.5))) if spare >= 0 else 1.0)
        )
        held = spare >= 0 and normal + delta <= chance * (1 + ROUNDING)
    return [] if held else [f"the releases together can lose more than {claim!r}"]


@dataclass(frozen=True)
class _Raised:
    """A pipeline that ended in an error."""

    kind: type
    said: str


def _outcome(pipeline: Callable[[Any], Any], x: Any, witness: _Recorder | _Player) -> Any:
    with observed_by(witness), drawn_from(witness.coins):
        try:
            result = pipeline(_own(x))
            # what is made on demand is made here, where its releases are seen
            return [*islice(result, _MOST_MADE)] if isinstance(result, _ON_DEMAND) else result
        except _Diverged:
            return None
        except (Exception, SystemExit) as error:
            return _Raised(type(error), Raised.by(error).message)


def _own(x: Any) -> Any:
    """A copy for this run, where there can be one: what the pipeline does to its data is not to reach the next run."""
    try:
        return copy.deepcopy(x)
    except Exception:
        return x


class _Diverged(BaseException):
    """The replay cannot go on: its releases are no longer those of the record."""


class _Coins:
    """The same words in both runs: a new stream after every release, however much that release drew."""

    private = True  # so that what is watched does what it always does; nothing drawn here is published

    def __init__(self, seed: int) -> None:
        self._seed, self._place = seed, 0
        self.turn()

    def turn(self) -> None:
        """On to the next stream."""
        self._place += 1
        self._stream = SeededSource((self._seed << 32) + self._place)

    def words(self, count: int) -> Any:
        """The next ``count`` words."""
        return self._stream.words(count)

    def word(self) -> int:
        """One word, as an int."""
        return self._stream.word()


@dataclass(frozen=True)
class _Seen:
    """A release as it was recorded."""

    what: Any
    method: str
    given: Mapping[str, Any]
    outcome: Any
    session: int = -1
    """Of the sessions that the pipeline started, the one that is asked."""
    seed: Any = None

    @property
    def name(self) -> str:
        owner = self.what
        return owner.name if isinstance(owner, Request) else f"{type(owner).__name__}.{self.method}"


def _arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """What the data reach a release by: not its owner, and not where coins come from."""
    return {name: _own(value) for name, value in given.items() if name not in ("self", "source")}


def _parameters(what: Any) -> Any:
    """What a release is made with, and no neighbour may change; a session has noise and a count of its own."""
    return (what.mechanism, what.threshold) if isinstance(what, SparseVectorSession) else what


def _seed(given: Mapping[str, Any]) -> Any:
    source = given.get("source")
    return type(source), getattr(source, "seed", None)


def _place(sessions: list[Any], what: Any) -> int:
    return next((place for place, item in enumerate(sessions) if item is what), -1)


class _Recorder:
    """The first run: everything happens, and is written down."""

    def __init__(self, coins: _Coins) -> None:
        self.coins, self.log, self.sessions = coins, list[_Seen](), list[Any]()

    def see(self, what: Any, name: str, given: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """Write down the innermost release there is."""
        arguments = _arguments(given) if known(what) else {}
        before = len(self.log)
        with observed_by(self if isinstance(what, Request) or not known(what) else None):
            outcome = compute()
        if known(what) and len(self.log) == before:
            session, seed = _place(self.sessions, what), _seed(given)
            # a session is never copied; of it only what it was started with is compared
            owner = what if isinstance(what, SparseVectorSession) else copy.copy(what)
            started = isinstance(what, SparseVector)
            self.log.append(_Seen(owner, name, arguments, None if started else _own(outcome), session, seed))
            self.coins.turn()
            if started:
                self.sessions.append(outcome)
        return outcome


class _Player:
    """The second run: every release has the outcome that was written down."""

    def __init__(self, coins: _Coins, log: list[_Seen]) -> None:
        self.coins, self._log = coins, log
        self.releases, self.findings = list[Release](), list[str]()
        self.diverged = False
        self.sessions, self._asked = list[Any](), dict[int, list[Any]]()

    def see(self, what: Any, name: str, given: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """What was written down for this release, after comparing."""
        place = len(self.releases)
        expected = self._log[place] if place < len(self._log) else None
        within = isinstance(what, Request) and not (
            expected and isinstance(expected.what, Request) and expected.method == name
        )
        if not known(what) or within:
            return compute()  # made of releases that will be seen
        here = f"release {place + 1}, {_Seen(what, name, {}, None).name}"
        if expected is None:
            self._stop(f"{here}: made with one and not with the other")
        assert expected is not None
        if (expected.method, type(expected.what)) != (name, type(what)):
            self._stop(f"{here}: {expected.name} with the other")
        arguments, session = _arguments(given), _place(self.sessions, what)
        if _seed(given) != expected.seed:
            self._stop(f"{here}: the source of its noise depends on the data")
        if session != expected.session or difference(_parameters(expected.what), _parameters(what)) is not None:
            self._stop(f"{here}: its parameters depend on the data")
        try:
            far = moved(what, expected.given, arguments)
            if isinstance(what, SparseVectorSession):
                asked = self._asked.setdefault(id(what), [])
                asked.append((expected.given, arguments))
                far = replace(far, times=max(far.times, one_way(what, asked)))
        except Shape as shape:
            self._stop(f"{here}: expected {shape} with both")
        except (ValueError, OverflowError, TypeError):
            self._stop(f"{here}: its input is a number with one and not with the other")
        self.releases.append(Release(expected.name, far))
        if not far.times <= 1 + ROUNDING:
            self.findings.append(f"{here}: its input moved by {far.times:.4g} times the declared sensitivity")
        self.coins.turn()
        if isinstance(what, SparseVector):
            self.sessions.append(compute())
            return self.sessions[-1]
        if isinstance(what, SparseVectorSession):
            what.asked += 1
            what.above += expected.outcome is not False
        return _own(expected.outcome)

    def _stop(self, finding: str) -> None:
        self.findings.append(finding)
        self.diverged = True
        raise _Diverged


__all__ = ["Release", "Replay", "replay"]
