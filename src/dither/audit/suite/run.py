"""Putting subjects to the test: certified where there is a proof, measured from outside, replayed; a verdict each.

The confidence is that of the whole: every subject gets an equal part of its failure probability, so that a wrong
alarm anywhere is no more likely than stated.
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

_DELTA = 1e-6
_FEWEST, _MOST, _PILOT = 500, 200_000, 4


@dataclass(frozen=True)
class Row:
    """What was found of one subject, in plain values.

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
        """Whether it is not what it claims."""
        return self.verdict == "REFUTED"


@dataclass(frozen=True)
class Audit:
    """All that was found.

    >>> from dither.audit.suite.subjects import subjects
    >>> found = audit(subjects()[:2], seconds=0.05)
    >>> found.passed, [row.verdict for row in found.rows]
    (True, ['proved', 'proved'])
    """

    rows: tuple[Row, ...]
    confidence: float
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether nothing was refuted."""
        return not any(row.refuted for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        rows = [asdict(row) for row in self.rows]
        return {"passed": self.passed, "confidence": self.confidence, "seconds": self.seconds, "rows": rows}


def audit(
    chosen: Sequence[Subject] | None = None,
    *,
    seconds: float = 1.0,
    confidence: float = 0.999,
    processes: int | None = None,
    tell: Callable[[Row], None] | None = None,
) -> Audit:
    """Put subjects to the test, by default all that are built in.

    Parameters
    ----------
    seconds
        About how long to sample each.
    confidence
        The probability that nothing is refuted that is what it claims.
    processes
        How many to work in; by default as many as there are cores. They are forks.
    tell
        Called with every row as it is found.

    Examples
    --------
    >>> from dither.audit.suite.subjects import subjects
    >>> audit(subjects()[:1], seconds=0.05).rows[0].verdict
    'proved'
    """
    begin = time.perf_counter()
    these = list(subjects() if chosen is None else chosen)
    level = arguments.confidence(confidence)
    item = 1 - (1 - level) / max(len(these), 1)
    limit = float(arguments.positive(seconds, "seconds"))
    workers = arguments.whole(processes or os.cpu_count() or 1, "processes")
    rows = []
    for row in _rows(these, limit, item, min(workers, len(these) or 1)):
        rows.append(row)
        if tell is not None:
            tell(row)
    return Audit(tuple(rows), level, time.perf_counter() - begin)


_AT_WORK: list[Subject] = []  # functions do not pickle: forks find them here


def _rows(these: list[Subject], limit: float, each: float, workers: int) -> Iterator[Row]:
    if workers == 1 or "fork" not in multiprocessing.get_all_start_methods():
        yield from (examine(subject, seconds=limit, confidence=each) for subject in these)
        return
    _AT_WORK[:] = these
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork"))
    try:
        yield from pool.map(_numbered, range(len(these)), [limit] * len(these), [each] * len(these))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        _AT_WORK.clear()


def _numbered(place: int, limit: float, each: float) -> Row:
    return examine(_AT_WORK[place], seconds=limit, confidence=each)


def examine(subject: Subject, *, seconds: float = 1.0, confidence: float = 0.999) -> Row:
    """Put one subject to the test.

    >>> from dither.audit.suite.subjects import subjects
    >>> examine(subjects()[0], seconds=0.05).verdict
    'proved'
    """
    begin = time.perf_counter()
    claim = subject.claim.to_approx(_DELTA) if isinstance(subject.claim, ZCDP) else subject.claim
    assert isinstance(claim, (PureDP, ApproxDP))
    mechanism = subject.mechanism() if isinstance(subject.mechanism, partial) else subject.mechanism
    certificate, refused = None, False
    if mechanism is not None:
        try:
            certificate = certify(mechanism)
        except NotPrivate:  # it is not what it is said to be, whatever it does
            refused = True
    replayed = measured = None
    if subject.replayed:
        replayed = replay(lambda x: subject.draw(x, 1), subject.one, subject.other, claim=subject.claim)
    if subject.measured:
        trials = _affordable(subject, seconds)
        measured = measure(
            subject.draw, subject.one, subject.other, batch=True, trials=trials, confidence=confidence, claim=claim
        )
    refuted = any(
        (
            refused,
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
        time.perf_counter() - begin,
    )


def _affordable(subject: Subject, seconds: float) -> int:
    """How many runs a side fit in the time, from a few: the first also builds tables."""
    count, taken = 1, 0.0
    while taken < seconds / 20 and count < _MOST:
        count *= 4
        begin = time.perf_counter()
        with suppress(Exception):  # an error is an outcome, which is measured
            subject.draw(subject.one, count)
        taken = time.perf_counter() - begin if count > _PILOT else 0.0
    return int(min(max(count * seconds / 2 / max(taken, 1e-9), _FEWEST), _MOST))


__all__ = ["Audit", "Row", "audit", "examine"]
