"""Replay: whether a result depends on the data only through mechanisms, within their declared sensitivities.

A pipeline is run once on x, and every release is recorded with its mechanism, its input and its output. The pipeline
is then run on the neighbor with every release replaced by the recorded output. Nothing random is left, and the only
permitted difference is in the inputs of the mechanisms, each within its declared sensitivity. Any other difference (in
the number of releases, a parameter, a shape, a key, an error, a warning, the result, or anything that is printed,
logged, written or stored) exists because of one person's data and is a leak that no noise covers. Then the two data
sets change roles. A release whose noise comes from a seed is a finding too: whoever knows the seed knows the data.

What cannot be decomposed (:mod:`dither.audit.outputs.canonical`) is listed in ``incomparable``: it is neither a leak
nor passed.

Random choices that are not noise (which rows are sampled, which groups of a person are kept) are the same in both
runs.

*Limits.* Replay does not check that a mechanism samples its noise correctly (see :func:`~dither.audit.certify` and
:func:`~dither.audit.measure`), nor how other pairs of neighbors behave.

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
from typing import Any, NamedTuple

from dither import arguments, markup
from dither.accounting import gaussian_delta
from dither.audit.dataflow.distance import (
    ROUNDING,
    InputChange,
    ShapeMismatch,
    input_change,
    is_supported,
    monotone_violation,
)
from dither.audit.dataflow.series import series_cost, series_ratio
from dither.audit.outputs.canonical import Frozen, difference, first_difference
from dither.audit.outputs.effects import remembered
from dither.audit.outputs.observe import Raised, Warned, observe
from dither.budget_hooks import Request, observed_by
from dither.errors import WrongType, message
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.mechanisms import SparseVector
from dither.mechanisms.sparse_vector import SparseVectorSession
from dither.randomness import SeededSource, SystemSource, drawn_from
from dither.stream.series_mechanism import SeriesMechanism

_UNCHANGED = "though every release was the same"


@dataclass(frozen=True)
class Release:
    """One release of a pipeline, and the change of its input between the neighbors.

    >>> Release("Laplace.release", InputChange(0.5, epsilon=0.5)).change.ratio
    0.5
    """

    name: str
    change: InputChange


@dataclass(frozen=True)
class Replay:
    """The releases of a pipeline, and everything else that depends on the data.

    >>> Replay((), ("the results differ",)).passed
    False
    """

    releases: tuple[Release, ...]
    findings: tuple[str, ...]
    recorded: int = 0
    """The number of releases in the first run; if 0, the pipeline uses no mechanism of dither."""
    ended: str = ""
    """The type of the error that all runs raised, if they did; nothing after it was checked."""
    incomparable: tuple[str, ...] = ()
    """What could not be decomposed, each with its place: nothing is known about it."""

    @property
    def passed(self) -> bool:
        """Whether there are no findings, and everything could be compared."""
        return not self.findings and not self.incomparable

    def _repr_html_(self) -> str:
        """For a notebook: what leaks, or that nothing does, and how far each release moved."""
        rows = [(release.name, f"{release.change.ratio:.4g}") for release in self.releases]
        table = markup.table(("release", "moved, in sensitivities"), rows, [False, True]) if rows else ""
        return markup.block(markup.lines(str(self).splitlines()), table)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "passed": self.passed,
            "findings": list(self.findings),
            "releases": [{"name": release.name, "moved": release.change.ratio} for release in self.releases],
            "ended": self.ended,
            "incomparable": list(self.incomparable),
        }

    def __str__(self) -> str:
        if not self.passed:
            unknown = [f"CANNOT BE COMPARED {part}" for part in self.incomparable]
            return "\n".join([*(f"LEAK {finding}" for finding in self.findings), *unknown])
        farthest = max((release.change.ratio for release in self.releases), default=0.0)
        text = f"nothing but {len(self.releases)} release(s) depends on the data"
        text += f"; the farthest moved by {farthest:.4g} of its sensitivity" if self.releases else ""
        return text + (f"; all runs ended in {self.ended}" if self.ended else "")


def replay(
    pipeline: Callable[[Any], Any],
    x: Any,
    x_neighbor: Any,
    *,
    claim: Guarantee | None = None,
    rounds: int = 2,
) -> Replay:
    """Run ``pipeline`` on ``x`` and again on its neighbor with the recorded releases; then with roles exchanged.

    ``claim`` is the privacy cost that the pipeline states: the composition of its releases, each at the distance of
    its two inputs, must not cost more. ``rounds`` is the number of pairs of runs; each has new noise, so that other
    branches of the pipeline may be taken.

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
    incomparable: dict[str, None] = {}
    recorded, ended = 0, ""
    for round_number in range(arguments.whole(rounds, "rounds")):
        one, other = (x, x_neighbor) if round_number % 2 == 0 else (x_neighbor, x)
        comparison = _compare(pipeline, one, other, claim)
        if comparison.only_effects:  # some libraries warn, or fill a cache, only once, whatever the data
            comparison = _compare(pipeline, one, other, claim)
        releases, recorded = releases or comparison.releases, recorded or comparison.recorded
        ended = comparison.ended
        # what differs between two runs on the same data, as the time of day does, is no evidence of a leak
        varying = _compare(pipeline, one, one, claim).findings if comparison.is_different else []
        findings |= dict.fromkeys(finding for finding in comparison.findings if finding not in varying)
        incomparable |= dict.fromkeys(comparison.incomparable)
        incomparable |= {
            f"{finding}, and with the same data": None for finding in comparison.findings if finding in varying
        }
    return Replay(tuple(releases), tuple(findings), recorded, ended, tuple(incomparable))


class _Comparison(NamedTuple):
    """The outcome of one recorded and one replayed run."""

    recorded: int
    releases: list[Release]
    findings: list[str]
    ended: str = ""
    incomparable: tuple[str, ...] = ()
    only_effects: bool = False
    """Whether nothing differs but what was left behind."""
    is_different: bool = False
    """Whether something differs although every release was the same."""


@dataclass(frozen=True)
class _Outcome:
    """What one run gave, decomposed when it ended."""

    result: Frozen
    raised: str
    """The type of the error, if there was one."""
    effects: Mapping[str, Frozen]


def _compare(pipeline: Callable[[Any], Any], one: Any, other: Any, claim: Guarantee | None) -> _Comparison:
    """Record a run on ``one`` and replay it on ``other``, from the same state of everything that it stores."""
    seed = int.from_bytes(os.urandom(16), "big")
    recorder = _Recorder(_SharedCoins(seed))
    put_back = remembered(pipeline)
    first = _outcome(pipeline, one, recorder)
    put_back()
    player = _Player(_SharedCoins(seed), recorder.log)
    second = _outcome(pipeline, other, player)
    findings = [*recorder.findings, *(finding for finding in player.findings if finding not in recorder.findings)]
    if player.diverged or first is None or second is None:
        return _Comparison(len(recorder.log), player.releases, findings)
    raised = bool(first.raised), bool(second.raised)
    if len(player.releases) < len(recorder.log):
        findings.append(f"{len(recorder.log)} release(s) with one, {len(player.releases)} with the other")
    elif raised[0] != raised[1]:
        findings.append("an error is raised with one and not with the other")
    else:
        location = first_difference(first.result, second.result)
        if location is not None:
            findings.append(f"the {'error' if raised[0] else 'result'} differs{location}, {_UNCHANGED}")
    only_effects = not findings
    if not findings:
        findings += _different_effects(first.effects, second.effects)
    only_effects, is_different = only_effects and bool(findings), len(findings) > len(recorder.findings)
    if claim is not None and not findings:
        findings += _overspent([release.change for release in player.releases], claim)
    ended = first.raised if all(raised) else ""
    parts = {"the result": first.result, **first.effects}
    incomparable = tuple(f"{name}: {part}" for name, item in parts.items() for part in item.opaque)
    return _Comparison(len(recorder.log), player.releases, findings, ended, incomparable, only_effects, is_different)


def _different_effects(one: Mapping[str, Frozen], other: Mapping[str, Frozen]) -> list[str]:
    """Which of the things that were left behind differ."""
    nothing = Frozen(())
    return [
        f"{name} differ{'' if name == 'the warnings' else 's'}, {_UNCHANGED}"
        for name in dict.fromkeys([*one, *other])
        if first_difference(one.get(name, nothing), other.get(name, nothing)) is not None
    ]


def _overspent(changes: list[InputChange], claim: Guarantee) -> list[str]:
    """Whether the composition of all releases, for these neighbors, costs more than is claimed."""
    epsilon, mu_squared, delta = (
        sum(getattr(change, name) for change in changes) for name in ("epsilon", "mu_squared", "delta")
    )
    if isinstance(claim, ZCDP):
        rho = sum(change.epsilon**2 + change.mu_squared for change in changes) / 2
        within = rho <= float(claim.exact[0]) * (1 + ROUNDING) and not delta
    else:
        claimed_epsilon, *claimed_delta = (float(number) for number in claim.exact)
        remaining = claimed_epsilon * (1 + ROUNDING) - epsilon
        if mu_squared > 0 and remaining >= 0:
            delta += float(gaussian_delta(Fraction(remaining), Fraction(1 / mu_squared**0.5)))
        within = remaining >= 0 and delta <= sum(claimed_delta) * (1 + ROUNDING)
    return [] if within else [f"the releases together can lose more than {claim!r}"]


def _outcome(pipeline: Callable[[Any], Any], x: Any, witness: _Recorder | _Player) -> _Outcome | None:
    """The result or error of one run, and what it left behind; None if its releases do not correspond."""
    with observed_by(witness), drawn_from(witness.coins):
        try:
            observed = observe(pipeline, _copied(x), keep=Frozen.of)
        except _Diverged:
            return None
    warned = observed if isinstance(observed, Warned) else Warned(observed)
    effects = {name: Frozen.of(value) for name, value in warned.effects}
    if warned.warnings:
        effects = {"the warnings": Frozen.of(warned.warnings), **effects}
    output = warned.output
    return _Outcome(Frozen.of(output), output.kind if isinstance(output, Raised) else "", effects)


def _copied(x: Any) -> Any:
    """A copy for one run where possible, so that changes which the pipeline makes to its data do not reach the next."""
    try:
        return copy.deepcopy(x)
    except Exception:
        return x


class _Diverged(BaseException):
    """Ends a replay whose releases no longer correspond to the record."""


class _SharedCoins:
    """The same random words in both runs: a new stream after every release, however much that release drew."""

    private = True  # so that releases behave as usual; nothing drawn here is published

    def __init__(self, seed: int) -> None:
        self._seed, self._index = seed, 0
        self.turn()

    def turn(self) -> None:
        """Start the next stream."""
        self._index += 1
        self._stream = SeededSource((self._seed << 32) + self._index)

    def words(self, count: int) -> Any:
        """The next ``count`` words."""
        return self._stream.words(count)

    def word(self) -> int:
        """One word, as an int."""
        return self._stream.word()


_PRIVATE = (type(None), SystemSource, _SharedCoins)


@dataclass(frozen=True)
class _Record:
    """One recorded release."""

    what: Any
    method: str
    given: Mapping[str, Any]
    outcome: Any
    session: int = -1
    """The index of the session that is asked, among those that the pipeline started; -1 for other releases."""
    seed: Any = None

    @property
    def name(self) -> str:
        owner = self.what
        return owner.name if isinstance(owner, Request) else f"{type(owner).__name__}.{self.method}"


def _arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a release that may depend on the data: all but its owner and its source of randomness."""
    return {name: _copied(value) for name, value in given.items() if name not in ("self", "source")}


def _parameters(what: Any) -> Any:
    """The parameters of a release, which must not depend on the data; the state of a session is not part of them."""
    return (what.mechanism, what.threshold) if isinstance(what, SparseVectorSession) else what


def _seed(given: Mapping[str, Any]) -> Any:
    source = given.get("source")
    return type(source), getattr(source, "seed", None)


def _index(sessions: list[Any], what: Any) -> int:
    return next((index for index, item in enumerate(sessions) if item is what), -1)


class _Recorder:
    """The witness of the first run, which records every release."""

    def __init__(self, coins: _SharedCoins) -> None:
        self.coins, self.log, self.sessions = coins, list[_Record](), list[Any]()
        self.findings: list[str] = []

    def see(self, what: Any, name: str, given: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """Compute and record the innermost release."""
        if type(given.get("source")) not in _PRIVATE:
            label = f"release {len(self.log) + 1}, {_Record(what, name, {}, None).name}"
            self.findings.append(f"{label}: its noise is drawn from a source that is not private")
        arguments = _arguments(given) if is_supported(what) else {}
        before = len(self.log)
        with observed_by(self if isinstance(what, Request) or not is_supported(what) else None):
            outcome = compute()
        if is_supported(what) and len(self.log) == before:
            session, seed = _index(self.sessions, what), _seed(given)
            # a session is never copied; only its parameters are compared
            owner = what if isinstance(what, SparseVectorSession) else copy.copy(what)
            started = isinstance(what, SparseVector)
            self.log.append(_Record(owner, name, arguments, None if started else _copied(outcome), session, seed))
            self.coins.turn()
            if started:
                self.sessions.append(outcome)
        return outcome


class _Player:
    """The witness of the second run, which replaces every release by the recorded one."""

    def __init__(self, coins: _SharedCoins, log: list[_Record]) -> None:
        self.coins, self._log = coins, log
        self.releases, self.findings = list[Release](), list[str]()
        self.diverged = False
        self.sessions, self._asked = list[Any](), dict[int, list[Any]]()
        self._advances: dict[str, list[Any]] = {}

    def see(self, what: Any, name: str, given: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """Compare the release with the record, and return the recorded outcome."""
        index = len(self.releases)
        expected = self._log[index] if index < len(self._log) else None
        within = isinstance(what, Request) and not (
            expected and isinstance(expected.what, Request) and expected.method == name
        )
        if not is_supported(what) or within:
            return compute()  # composed of releases that will be seen
        label = f"release {index + 1}, {_Record(what, name, {}, None).name}"
        if expected is None:
            self._stop(f"{label}: made with one and not with the other")
        assert expected is not None
        if (expected.method, type(expected.what)) != (name, type(what)):
            self._stop(f"{label}: {expected.name} with the other")
        arguments, session = _arguments(given), _index(self.sessions, what)
        if _seed(given) != expected.seed:
            self._stop(f"{label}: the source of its noise depends on the data")
        if session != expected.session or difference(_parameters(expected.what), _parameters(what)) is not None:
            self._stop(f"{label}: its parameters depend on the data")
        try:
            change = input_change(what, expected.given, arguments)
            if isinstance(what, SparseVectorSession):
                queries = self._asked.setdefault(id(what), [])
                queries.append((expected.given, arguments))
                change = replace(change, ratio=max(change.ratio, monotone_violation(what, queries)))
            if isinstance(what, SeriesMechanism):  # its periods are bounded together
                advances = self._advances.setdefault(what.name, [])
                advances.append((expected.given, arguments))
                epsilon, mu_squared = series_cost(what, advances)
                ratio = series_ratio(what, advances)
                change = replace(change, ratio=ratio, epsilon=epsilon, mu_squared=mu_squared)
        except ShapeMismatch as mismatch:
            self._stop(f"{label}: expected {mismatch} with both")
        except (ValueError, OverflowError, TypeError):
            self._stop(f"{label}: its input is a number with one and not with the other")
        self.releases.append(Release(expected.name, change))
        if not change.ratio <= 1 + ROUNDING:
            self.findings.append(f"{label}: its input moved by {change.ratio:.4g} times the declared sensitivity")
        self.coins.turn()
        if isinstance(what, SparseVector):
            self.sessions.append(compute())
            return self.sessions[-1]
        if isinstance(what, SparseVectorSession):
            what.asked += 1
            what.above += expected.outcome is not False
        return _copied(expected.outcome)

    def _stop(self, finding: str) -> None:
        self.findings.append(finding)
        self.diverged = True
        raise _Diverged


__all__ = ["Release", "Replay", "replay"]
