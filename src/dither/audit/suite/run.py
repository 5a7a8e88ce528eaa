"""Running an audit: every subject is certified where there is a proof, measured, replayed, and given a verdict.

The confidence is that of the whole audit: every subject receives an equal share of the failure probability, so that
the probability of any false refutation is at most the stated one.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from dither import arguments
from dither.audit.blackbox.measure import measure
from dither.audit.dataflow.replay import replay
from dither.audit.proof.certify import certify
from dither.audit.suite.subjects import Subject, subjects
from dither.errors import NotPrivate
from dither.guarantees import ZCDP, ApproxDP, PureDP
from dither.present import markup

_DELTA = 1e-6
_MIN_TRIALS, _MAX_TRIALS, _WARM_UP = 500, 200_000, 4


@dataclass(frozen=True)
class Row:
    """The findings about one subject, as plain values.

    >>> Row("mine", "function", "ε = 1", 1.0, 0.0, None, None, None, "not refuted", 0.1).refuted
    False
    """

    name: str
    kind: str
    claim: str
    epsilon: float
    """The epsilon of the claim, at ``delta``."""
    delta: float
    certified: dict[str, Any] | None
    measured: dict[str, Any] | None
    replayed: dict[str, Any] | None
    verdict: str
    """``proved``, ``not refuted`` or ``REFUTED``."""
    seconds: float

    @property
    def refuted(self) -> bool:
        """Return whether the claim was refuted."""
        return self.verdict == "REFUTED"


@dataclass(frozen=True)
class Audit:
    """The findings about all subjects.

    >>> from dither.audit.suite.subjects import subjects
    >>> result = audit(subjects()[:2], seconds=0.05)
    >>> result.passed, [row.verdict for row in result.rows]
    (True, ['proved', 'proved'])
    """

    rows: tuple[Row, ...]
    confidence: float
    seconds: float

    @property
    def passed(self) -> bool:
        """Return whether no claim was refuted."""
        return not any(row.refuted for row in self.rows)

    def _repr_html_(self) -> str:
        """Return the audit for a notebook: a row for each subject."""
        rows = [(row.name, row.kind, row.claim, row.verdict) for row in self.rows]
        summary = f"{'no claim' if self.passed else 'a claim'} was refuted, at {self.confidence:.1%} confidence"
        return markup.block(
            markup.table(("subject", "kind", "claim", "verdict"), rows, [False] * 4),
            markup.lines([summary.replace("%", " %")]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain values, for JSON."""
        rows = [asdict(row) for row in self.rows]
        return {"passed": self.passed, "confidence": self.confidence, "seconds": self.seconds, "rows": rows}


def audit(
    chosen: Sequence[Subject] | None = None,
    *,
    seconds: float = 1.0,
    confidence: float = 0.999,
    processes: int | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> Audit:
    """Audit subjects, by default everything that is built in.

    Parameters
    ----------
    seconds
        The approximate time for sampling each subject.
    confidence
        The probability that no true claim is refuted.
    processes
        The number of processes, by default the number of cores. They are forks.
    on_row
        A function that is called with every row as soon as it is complete.

    Examples
    --------
    >>> from dither.audit.suite.subjects import subjects
    >>> audit(subjects()[:1], seconds=0.05).rows[0].verdict
    'proved'
    """
    start = time.perf_counter()
    selected = list(subjects() if chosen is None else chosen)
    level = arguments.confidence(confidence)
    subject_confidence = 1 - (1 - level) / max(len(selected), 1)
    limit = float(arguments.positive(seconds, "seconds"))
    workers = arguments.whole(processes or os.cpu_count() or 1, "processes")
    rows = []
    for row in _rows(selected, limit, subject_confidence, min(workers, len(selected) or 1)):
        rows.append(row)
        if on_row is not None:
            on_row(row)
    return Audit(tuple(rows), level, time.perf_counter() - start)


_IN_PROGRESS: list[Subject] = []  # functions do not pickle, so forks find them here


def _rows(selected: list[Subject], limit: float, confidence: float, workers: int) -> Iterator[Row]:
    """Yield the findings about each subject, in order, from worker processes where there are several.

    ``limit`` is the time for measuring one subject, in seconds, and ``workers`` the number of processes. They are
    forks, since subjects contain functions that cannot be pickled: each is found by its index.
    """
    if workers == 1 or "fork" not in multiprocessing.get_all_start_methods():
        yield from (examine(subject, seconds=limit, confidence=confidence) for subject in selected)
        return
    _IN_PROGRESS[:] = selected
    count = len(selected)
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork"))
    try:
        yield from pool.map(_examine_index, range(count), [limit] * count, [confidence] * count)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        _IN_PROGRESS.clear()


def _examine_index(index: int, limit: float, confidence: float) -> Row:
    """Examine one of the subjects in progress, which a forked worker knows by its index."""
    return examine(_IN_PROGRESS[index], seconds=limit, confidence=confidence)


def examine(subject: Subject, *, seconds: float = 1.0, confidence: float = 0.999) -> Row:
    """Audit one subject: certify its mechanism, replay it and measure it, as far as each applies.

    ``seconds`` is about how long the measurement may take, and ``confidence`` that of its bound. The verdict is
    "REFUTED" if any of the methods refutes the claim, "proved" if a certificate exists and holds, and else "not
    refuted".
    """
    start = time.perf_counter()
    claim = subject.claim.to_approx(_DELTA) if isinstance(subject.claim, ZCDP) else subject.claim
    assert isinstance(claim, (PureDP, ApproxDP))
    mechanism = subject.mechanism() if isinstance(subject.mechanism, partial) else subject.mechanism
    certificate, is_refused = None, False
    if mechanism is not None:
        try:
            certificate = certify(mechanism)
        except NotPrivate:  # the object is not what its class and parameters say
            is_refused = True
    replayed = measured = None
    if subject.replayed:
        replayed = replay(lambda x: subject.draw(x, 1), subject.x, subject.x_neighbor, claim=subject.claim)
    if subject.measured:
        trials = _affordable(subject, seconds)
        measured = measure(
            subject.draw, subject.x, subject.x_neighbor, batch=True, trials=trials, confidence=confidence, claim=claim
        )
    refuted = any(
        (
            is_refused,
            replayed is not None and not replayed.passed,
            measured is not None and measured.refuted,
            certificate is not None and not certificate.holds,
        )
    )
    return Row(
        subject.name,
        subject.kind,
        str(subject.claim),
        float(claim.epsilon),
        float(claim.delta) if isinstance(claim, ApproxDP) else 0.0,
        None if certificate is None else certificate.to_dict(),
        None if measured is None else measured.to_dict(),
        None if replayed is None else replayed.to_dict(),
        "REFUTED" if refuted else "not refuted" if certificate is None else "proved",
        time.perf_counter() - start,
    )


def _affordable(subject: Subject, seconds: float) -> int:
    """Return how many runs per data set fit into the time, estimated from a few runs after a warm-up.

    The number of trial runs grows by a factor of 4 until they take a twentieth of ``seconds``; half of ``seconds`` is
    for each of the two data sets.
    """
    count, taken = 1, 0.0
    while taken < seconds / 20 and count < _MAX_TRIALS:
        count *= 4
        start = time.perf_counter()
        with suppress(Exception):  # an error is an output and will be measured
            subject.draw(subject.x, count)
        taken = time.perf_counter() - start if count > _WARM_UP else 0.0
    return int(min(max(count * seconds / 2 / max(taken, 1e-9), _MIN_TRIALS), _MAX_TRIALS))
