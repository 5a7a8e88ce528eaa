"""Replay: whether a result depends on the data only through mechanisms, within their declared sensitivities.

A pipeline is run once on x, and every release is recorded with its mechanism, its input and its output. The pipeline
is then run on the neighbor with every release replaced by the recorded output. Nothing random is left, and the only
permitted difference is in the inputs of the mechanisms, each within its declared sensitivity. Any other difference (in
the number of releases, a parameter, a shape, a key, an error, a warning, the result, or anything that is printed,
logged, written or stored) exists because of one person's data and is a leak that no noise covers. Then the two data
sets change roles. A release whose noise comes from a seed is a finding too: a reader who knows the seed knows the data.

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
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Thread
from typing import Any, NamedTuple

from dither import arguments
from dither.accounting import gaussian_delta
from dither.audit.dataflow.distance import (
    ROUNDING,
    InputChange,
    ShapeMismatch,
    input_change,
    is_supported,
    monotone_violation,
    series_cost,
    series_ratio,
)
from dither.audit.outputs.canonical import Frozen, Raised, Stopped, Warned, difference, differing, first_difference
from dither.audit.outputs.observe import observe, snapshot
from dither.budget_hooks import Request, current_observer, observed_by
from dither.errors import WrongType
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.mechanisms import SparseVector
from dither.mechanisms.sparse_vector import SparseVectorSession
from dither.present import markup
from dither.randomness import SeededSource, SystemSource, drawn_from
from dither.stream.series_spec import SeriesMechanism

_REPEATS = 8
"""How often a difference is looked for on each of the two data sets alone."""
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
    """What could not be decomposed, each with its location: nothing is known about it."""

    @property
    def passed(self) -> bool:
        """Return whether there are no findings, and everything could be compared."""
        return not self.findings and not self.incomparable

    def _repr_html_(self) -> str:
        """Return the replay for a notebook: its findings, and how far the input of each release moved."""
        rows = [(release.name, f"{release.change.ratio:.4g}") for release in self.releases]
        table = markup.table(("release", "moved, in sensitivities"), rows, [False, True]) if rows else ""
        return markup.block(markup.lines(str(self).splitlines()), table)

    def to_dict(self) -> dict[str, Any]:
        """Return the replay as plain values, for JSON."""
        return {
            "passed": self.passed,
            "findings": list(self.findings),
            "releases": [{"name": release.name, "moved": release.change.ratio} for release in self.releases],
            "ended": self.ended,
            "incomparable": list(self.incomparable),
        }

    def __str__(self) -> str:
        """Return the leaks and what could not be compared, a line each; if there are none, how far the inputs moved."""
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
        raise WrongType("pipeline", "a function of the data", type(pipeline).__name__, "pass a function")
    if claim is not None and not isinstance(claim, (PureDP, ApproxDP, ZCDP)):
        raise WrongType("claim", "a guarantee", type(claim).__name__, "pass claim=dither.PureDP(1)")
    releases: list[Release] = []
    findings: dict[_Finding, None] = {}
    unknown: dict[_Location, str] = {}
    incomparable: dict[str, None] = {}
    recorded, ended = 0, ""
    for round_number in range(arguments.whole(rounds, "rounds")):
        one, other = (x, x_neighbor) if round_number % 2 == 0 else (x_neighbor, x)
        pair = _Pair.of(pipeline, one, other)
        differences = pair.differences(claim)
        if differences and all(finding.location[0] in pair.effects for finding in differences):
            pair = _Pair.of(pipeline, one, other)  # some libraries warn, or fill a cache, only once, whatever the data
            differences = pair.differences(claim)
        releases, recorded = releases or pair.player.releases, recorded or len(pair.recorder.log)
        ended, incomparable = pair.ended, incomparable | dict.fromkeys(pair.opaque)
        if {finding.location for finding in differences} - {finding.location for finding in findings}:
            # what differs between runs on the same data, as the time of day does, is no evidence of a leak
            varying = pair.repeated(pipeline, one, other)
            differences = pair.differences(claim, varying)
            unknown |= {finding.location: finding.text for finding in differences if finding.varies}
        findings |= dict.fromkeys(differences)
    leaks = dict.fromkeys(finding.text for finding in findings if finding.location not in unknown)
    incomparable |= {f"{text}, and with the same data": None for text in unknown.values()}
    return Replay(tuple(releases), tuple(leaks), recorded, ended, tuple(incomparable))


_Location = tuple[str, int | str]
"""What differs, and where: the index of a release, or the location within an output."""
_RELEASE, _SOURCE, _COUNT, _ERROR, _RESULT = "release", "source", "the number of releases", "an error", "the result"
_TOTAL = "the total"


class _Finding(NamedTuple):
    """A difference between two runs, or a release that is not private."""

    location: _Location
    text: str
    varies: bool = False
    """Whether it may differ on the same data too."""


class _Varying:
    """The differences between runs on one data set with identical releases, as the time of day makes them: no leaks."""

    def __init__(self) -> None:
        self._locations: set[_Location] = set()
        self._leaves: dict[str, set[int]] = {}
        self._ends: dict[str, int] = {}
        """From where on nothing corresponds."""

    def add(self, one: _TracedRun, other: _TracedRun) -> None:
        """Add all releases, leaves and errors in which two runs on one data set differ."""
        shorter = min(len(one.moved), len(other.moved))
        for index, (a, b) in enumerate(zip(one.moved, other.moved, strict=False)):
            if a != b and not abs(a - b) <= ROUNDING * max(1.0, a):
                self._locations.add((_RELEASE, index))
        first, second = one.outcome, other.outcome
        if len(one.moved) != len(other.moved) or (first is None) != (second is None):
            self._ends[_RELEASE] = min(self._ends.get(_RELEASE, shorter), shorter)
        elif first is not None and second is not None:
            if bool(first.raised) != bool(second.raised):
                self._locations.add((_ERROR, ""))
            for name in {*first.parts, *second.parts}:
                leaves = self._leaves.setdefault(name, set())
                for index, parted in differing(first.part(name), second.part(name)):
                    leaves.add(index)
                    if parted:
                        self._ends[name] = min(self._ends.get(name, index), index)

    @property
    def releases(self) -> bool:
        """Return whether the releases of two runs on one data set do not correspond: then nothing after them does."""
        return _RELEASE in self._ends

    def covers(self, location: _Location) -> bool:
        """Return whether a finding at this location is explained by what varies between runs on one data set.

        The location is that of a release, or of whether an error is raised; for leaves of an output see :meth:`leaf`.
        """
        name, where = location
        if name == _RELEASE:
            return location in self._locations or int(where) >= self._ends.get(_RELEASE, int(where) + 1)
        return self.releases or location in self._locations

    def leaf(self, name: str, index: int) -> bool:
        """Return whether a leaf of an output varies between runs on one data set."""
        return self.releases or index in self._leaves.get(name, ()) or index >= self._ends.get(name, index + 1)


@dataclass(frozen=True)
class _Outcome:
    """What one run returned and left behind, decomposed when it ended."""

    parts: Mapping[str, Frozen]
    """The result, and what was left behind."""
    raised: str
    """The type of the error, if there was one."""

    def part(self, name: str) -> Frozen:
        """Return one of the parts; an empty one if there is none of that name."""
        return self.parts.get(name, Frozen(()))


class _TracedRun(NamedTuple):
    """One replayed run: the ratio of each release's input change to its sensitivity, and the outcome.

    The outcome is None if the releases do not correspond to the record.
    """

    moved: list[float]
    outcome: _Outcome | None


@dataclass(frozen=True)
class _Pair:
    """A recorded run on one data set and a replayed one on the other."""

    recorder: _Recorder
    player: _Player
    first: _Outcome | None
    second: _Outcome | None
    seed: int
    restore: Callable[[], None]
    """Restores everything that the pipeline stores to its state before the first run."""

    @classmethod
    def of(cls, pipeline: Callable[[Any], Any], one: Any, other: Any) -> _Pair:
        """Record a run on ``one`` and replay it on ``other``, from an identical state of everything that the pipeline
        stores."""
        seed = int.from_bytes(os.urandom(16), "big")
        recorder = _Recorder(_SharedCoins(seed))
        restore = snapshot(pipeline)
        first = _outcome(pipeline, one, recorder)
        restore()
        player = _Player(_SharedCoins(seed), recorder.log)
        return cls(recorder, player, first, _outcome(pipeline, other, player), seed, restore)

    def repeated(self, pipeline: Callable[[Any], Any], one: Any, other: Any) -> _Varying:
        """Repeat both runs on unchanged data with the recorded releases, and return what varies between repetitions.

        What varies, such as the time of day, does not depend on the data.
        """
        varying = _Varying()
        recorded = _TracedRun([0.0] * len(self.recorder.log), self.first)
        for x, run in ((one, recorded), (other, self.player.run(self.second))):
            for _ in range(_REPEATS):
                self.restore()
                player = _Player(_SharedCoins(self.seed), self.recorder.log)
                varying.add(run, player.run(_outcome(pipeline, x, player)))
        return varying

    @property
    def effects(self) -> set[str]:
        """Return the names of everything that the runs left behind besides their result."""
        return {name for item in (self.first, self.second) if item for name in item.parts if name != _RESULT}

    @property
    def ended(self) -> str:
        """Return the type of the error that both runs raised; an empty string if they did not."""
        return self.first.raised if self.first and self.second and self.second.raised else ""

    @property
    def opaque(self) -> list[str]:
        """Return what could not be decomposed, with the name of its part; nothing if a run was ended early."""
        parts = self.first.parts if self.first and self.second else {}
        return [f"{name}: {part}" for name, item in parts.items() for part in item.opaque]

    def differences(self, claim: Guarantee | None, varying: _Varying | None = None) -> list[_Finding]:
        """Return everything that depends on the data: releases, the number of releases, errors, results and effects.

        Where an output differs in several locations, the first that does not vary between runs on one data set is
        returned. ``varying`` has the locations that do (None: nothing varies). If nothing else is found, the sum of the
        releases' costs is compared with ``claim``, unless that is None.
        """
        varying = varying or _Varying()
        released = [finding._replace(varies=varying.covers(finding.location)) for finding in self.player.findings]
        differences = [*self.recorder.findings, *released]
        if self.first is None or self.second is None:
            return differences
        first, second = self.first, self.second
        counts = len(self.recorder.log), len(self.player.releases)
        if counts[1] < counts[0]:
            text = f"{counts[0]} release(s) with one, {counts[1]} with the other"
            differences.append(_Finding((_COUNT, ""), text, varying.releases))
        elif bool(first.raised) != bool(second.raised):
            text = "an error is raised with one and not with the other"
            differences.append(_Finding((_ERROR, ""), text, varying.covers((_ERROR, ""))))
        else:
            says = f"the {'error' if first.raised else 'result'} differs"
            differences += _different(_RESULT, says, first, second, varying)
        if all(finding.varies for finding in differences):
            for name in dict.fromkeys([*first.parts, *second.parts]):
                if name != _RESULT:
                    says = f"{name} differ{'' if name == 'the warnings' else 's'}"
                    differences += _different(name, says, first, second, varying)
        if claim is not None and not differences:
            differences += _overspent([release.change for release in self.player.releases], claim)
        return differences


def _different(name: str, says: str, one: _Outcome, other: _Outcome, varying: _Varying) -> list[_Finding]:
    """Return a list of one finding if a part of two outcomes differs, and an empty list otherwise.

    ``name`` is the name of the part and ``says`` the beginning of the finding's text. The finding names the first
    location that differs and does not vary between runs on one data set (``varying``). If every location that differs
    varies, it names the first of them and is marked as varying.
    """
    first, second = one.part(name), other.part(name)
    certain = first_difference(first, second, lambda index: varying.leaf(name, index))
    location = first_difference(first, second) if certain is None else certain
    if location is None:
        return []
    where = location if name == _RESULT else ""
    return [_Finding((name, where), f"{says}{where}, {_UNCHANGED}", certain is None)]


def _overspent(changes: list[InputChange], claim: Guarantee) -> list[_Finding]:
    """Return a list of one finding if all releases together cost more than ``claim``, and an empty list otherwise.

    ``changes`` has the cost of each release for these two data sets. Under zCDP, ``rho = sum (epsilon^2 + mu^2) / 2``
    (Bun and Steinke 2016). Otherwise the epsilons of pure releases add up, and so do the mu^2 of Gaussian ones (Dong,
    Roth and Su 2022), which then have the delta of a mu-GDP mechanism at the epsilon that the pure ones leave.
    """
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
    return [] if within else [_Finding((_TOTAL, ""), f"the releases together can lose more than {claim!r}")]


def _outcome(pipeline: Callable[[Any], Any], x: Any, witness: _Recorder | _Player) -> _Outcome | None:
    """Return the result or error of one run and what it left behind; None if its releases do not correspond.

    ``pipeline`` is run on a copy of ``x``, while ``witness`` records its releases or replaces them by recorded ones.
    """
    with observed_by(witness), drawn_from(witness.coins), _inherited_by_threads(witness.coins):
        try:
            observed = observe(pipeline, _copied(x), keep=Frozen.of)
        except _Diverged:
            return None
    if witness.diverged:  # in another thread
        return None
    warned = observed if isinstance(observed, Warned) else Warned(observed)
    output = warned.output
    parts = {_RESULT: Frozen.of(output)}
    if warned.warnings:
        parts["the warnings"] = Frozen.of(warned.warnings)
    parts |= {name: Frozen.of(value) for name, value in warned.effects}
    return _Outcome(parts, output.kind if isinstance(output, Raised) else "")


@contextmanager
def _inherited_by_threads(coins: _SharedCoins) -> Iterator[None]:
    """Make threads that are started in this context, and tasks of pools, report to the observer of their parent thread.

    ``Thread.start`` and ``ThreadPoolExecutor.submit`` are replaced until the context ends by versions that pass on the
    observer, and ``coins`` as the source of noise.
    """
    threads: Any = Thread
    pools: Any = ThreadPoolExecutor
    start, submit = threads.start, pools.submit

    def handed_on(function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with the observer and the coins of the thread that calls this."""
        observer = current_observer()

        def run(*given: Any, **named: Any) -> Any:
            """Call the function, observed and with the shared coins."""
            with observed_by(observer), drawn_from(coins):
                return function(*given, **named)

        return run

    def started(thread: Any) -> None:
        """Start a thread whose work is observed like that of the present one."""
        work = handed_on(thread.run)

        def run() -> None:
            """Do the work of the thread, and end it silently where its releases do not correspond to the record."""
            vars(thread).pop("run", None)
            with suppress(_Diverged):  # the difference was recorded
                work()

        thread.run = run
        start(thread)

    def submitted(pool: Any, function: Callable[..., Any], /, *given: Any, **named: Any) -> Any:
        """Submit a task whose work is observed like that of the present thread."""
        return submit(pool, handed_on(function), *given, **named)

    threads.start, pools.submit = started, submitted
    try:
        yield
    finally:
        threads.start, pools.submit = start, submit


def _copied(x: Any) -> Any:
    """Return a copy for one run where possible, so that a pipeline that changes its data does not affect the
    next run.
    """
    try:
        return copy.deepcopy(x)
    except Exception:
        return x


class _Diverged(Stopped):
    """Ends a replay whose releases no longer correspond to the record."""


class _SharedCoins:
    """A source of identical random words for both runs: a new stream after every release, however much that drew."""

    private = True  # so that releases behave as usual; nothing drawn here is published

    def __init__(self, seed: int) -> None:
        self._seed, self._index = seed, 0
        self.start_next_stream()

    def start_next_stream(self) -> None:
        """Start the next stream of words, so that both runs agree again however many words a release drew."""
        self._index += 1
        self._stream = SeededSource((self._seed << 32) + self._index)

    def words(self, count: int) -> Any:
        """Return the next ``count`` words."""
        return self._stream.words(count)

    def word(self) -> int:
        """Return one word, as an int."""
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
        """Return the name of the release: of the function, or of the mechanism and its method."""
        owner = self.what
        return owner.name if isinstance(owner, Request) else f"{type(owner).__name__}.{self.method}"


def _arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a release that may depend on the data: all but its owner and its source of randomness."""
    return {name: _copied(value) for name, value in given.items() if name not in ("self", "source")}


def _parameters(what: Any) -> Any:
    """Return the parameters of a release, which must not depend on the data; the state of a session is not one
    of them.
    """
    return (what.mechanism, what.threshold) if isinstance(what, SparseVectorSession) else what


def _seed(given: Mapping[str, Any]) -> Any:
    """Return the type of the source from which a release draws, and its seed, None if it has none."""
    source = given.get("source")
    return type(source), getattr(source, "seed", None)


def _index(sessions: list[Any], what: Any) -> int:
    """Return the index of a session among those that the pipeline started, by identity; -1 if it is none of them."""
    return next((index for index, item in enumerate(sessions) if item is what), -1)


class _Recorder:
    """The observer of the first run, which records every release."""

    def __init__(self, coins: _SharedCoins) -> None:
        self.coins, self.log, self.sessions = coins, list[_Record](), list[Any]()
        self.findings: list[_Finding] = []
        self.diverged = False

    def see(self, what: Any, name: str, given: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """Compute a release and return its outcome; record it with its arguments.

        A function (:class:`Request`) that itself makes releases is not recorded: those are, one by one. ``what`` is the
        mechanism or function, ``name`` its method, ``given`` the arguments, and ``compute`` carries out the release. A
        source of noise that is not private is a finding.
        """
        if type(given.get("source")) not in _PRIVATE:
            label = f"release {len(self.log) + 1}, {_Record(what, name, {}, None).name}"
            text = f"{label}: its noise is drawn from a source that is not private"
            self.findings.append(_Finding((_SOURCE, len(self.log)), text))
        arguments = _arguments(given) if is_supported(what) else {}
        recorded_before = len(self.log)
        with observed_by(self if isinstance(what, Request) or not is_supported(what) else None):
            outcome = compute()
        if is_supported(what) and (len(self.log) == recorded_before or not isinstance(what, Request)):
            session, seed = _index(self.sessions, what), _seed(given)
            # a session is never copied; only its parameters are compared
            owner = what if isinstance(what, SparseVectorSession) else copy.copy(what)
            started = isinstance(what, SparseVector)
            self.log.append(_Record(owner, name, arguments, None if started else _copied(outcome), session, seed))
            self.coins.start_next_stream()
            if started:
                self.sessions.append(outcome)
        return outcome


class _Player:
    """The observer of the second run, which replaces every release by the recorded one."""

    def __init__(self, coins: _SharedCoins, log: list[_Record]) -> None:
        """Prepare to replace the releases of a run by those of ``log``; all other noise is drawn from ``coins``."""
        self.coins, self._log = coins, log
        self.releases, self.findings = list[Release](), list[_Finding]()
        self.diverged = False
        self.sessions, self._asked = list[Any](), dict[int, list[Any]]()
        self._advances: dict[str, list[Any]] = {}

    def see(self, what: Any, name: str, given: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """Compare a release with the record, and return the recorded outcome; end the run if they do not correspond.

        ``what`` is the mechanism or function and ``name`` its method, ``given`` are the arguments, and ``compute``
        carries out the release. It is called only for releases that are composed of others, and to start a session of
        questions. An input that moved farther than the declared sensitivity is a finding.
        """
        if self.diverged:
            raise _Diverged
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
            text = f"{label}: its input moved by {change.ratio:.4g} times the declared sensitivity"
            self.findings.append(_Finding((_RELEASE, index), text))
        self.coins.start_next_stream()
        if isinstance(what, SparseVector):
            self.sessions.append(compute())
            return self.sessions[-1]
        if isinstance(what, SparseVectorSession):
            what.asked += 1
            what.above += expected.outcome is not False
        return _copied(expected.outcome)

    def run(self, outcome: _Outcome | None) -> _TracedRun:
        """Return how far the input of each release moved, with the outcome of the run."""
        return _TracedRun([release.change.ratio for release in self.releases], outcome)

    def _stop(self, finding: str) -> None:
        """Record a finding and end the run, since its releases no longer correspond to the record."""
        self.findings.append(_Finding((_RELEASE, len(self.releases)), finding))
        self.diverged = True
        raise _Diverged
