"""Running a function many times on two data sets: one run at a time, in batches, or in several processes.

Each round of the guessing game starts with a fair coin, as the bound of
:func:`~dither.audit.blackbox.confidence.epsilon_lower_bound` requires. Since rounds are independent, it is equivalent
to run each data set as often as the coins say in one call, where a function gives many outputs at once.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.audit.blackbox.views import Outputs, collect_outputs, concatenate
from dither.audit.outputs.canonical import Raised, digest
from dither.audit.outputs.observe import feature, observe_each
from dither.errors import InvalidArgument, WrongType
from dither.mechanisms import RandomizedResponse
from dither.mechanisms.additive import Additive
from dither.randomness import SYSTEM

_CHUNK = 1 << 18
_MIN_CHUNK = 1 << 10
_PROBE = 32
_MIN_LOG_ORDERS = 24 * math.log(2)
_BITS_PER_WORD = 64

Labels = NDArray[np.bool_]


@dataclass(frozen=True)
class Runs:
    """Outputs of many runs, with labels that are True for runs on the neighbor."""

    outputs: Outputs
    labels: Labels

    def __add__(self, other: Runs) -> Runs:
        return Runs(concatenate([self.outputs, other.outputs]), np.concatenate([self.labels, other.labels]))

    def split(self, rounds: int) -> tuple[Runs, Runs]:
        """Return the first ``rounds`` runs and the rest, as two values."""
        size = self.labels.size
        return self._part(0, rounds), self._part(rounds, size)

    def _part(self, start: int, stop: int) -> Runs:
        """Return the rounds from ``start`` to ``stop``."""
        return Runs(self.outputs.rows(start, stop), self.labels[start:stop])


def coin_flips(count: int) -> Labels:
    """Draw ``count`` independent fair coins from the operating system's randomness, as booleans."""
    words = SYSTEM.words(-(-count // _BITS_PER_WORD))
    return np.unpackbits(words.view(np.uint8))[:count].astype(bool)


DataSets = tuple[Any, Any]
Draw = Callable[[DataSets, Labels], Any]
"""One output for each label, of the second data set where it is True: a list, or an array with a row for each."""


def run_function(fn: Any, batch: bool, features: Callable[[Any], Any] | None = None) -> Draw:
    """Return a function that runs ``fn`` on one of two data sets for each of some labels.

    A mechanism of dither stands for its ``release``; mechanisms with independent noise on every coordinate are
    sampled in one call, and so is what ``fn(x, size)`` returns in the mode ``batch``. Everything else is run once for
    each label in their order, so that what a function keeps from one run to the next is independent of the next label.
    """
    if isinstance(fn, (Additive, RandomizedResponse)):
        if isinstance(fn, Additive) and not fn.noise.joint:
            return run_function(fn.release, False, features)
        return lambda pair, labels: _sides(lambda x, size: _released(fn, x, size), pair, labels, features)
    if not callable(fn):
        if hasattr(fn, "release"):
            return run_function(fn.release, batch, features)
        raise WrongType("fn", "a function of the data", type(fn).__name__, "pass lambda x: mechanism.release(f(x))")
    if batch:
        return lambda pair, labels: _sides(lambda x, size: _batch(fn, x, size), pair, labels, features)
    return lambda pair, labels: observe_each(fn, (pair[int(label)] for label in labels), features)


def _sides(
    draw: Callable[[Any, int], Any], pair: DataSets, labels: Labels, features: Callable[[Any], Any] | None
) -> Any:
    """Return the outputs of both data sets, each computed in one call, in the order of the labels.

    ``pair`` has x and its neighbor; a label is True where the neighbor is to be used. ``draw`` returns a number of
    outputs for one data set, and ``features``, if given, is applied to them.
    """
    sizes = int((~labels).sum()), int(labels.sum())
    parts = [draw(x, size) for x, size in zip(pair, sizes, strict=True) if size]
    if features is not None:
        parts = [
            features(part) if isinstance(part, np.ndarray) else [feature(features, item) for item in part]
            for part in parts
        ]
    order = np.empty(labels.size, dtype=np.intp)
    order[~labels], order[labels] = np.arange(sizes[0]), np.arange(sizes[0], labels.size)
    if all(type(part) is np.ndarray and part.dtype == parts[0].dtype for part in parts):
        return np.concatenate(parts)[order]
    # the elements of one array are views of it
    flat = [item.copy() if isinstance(item, np.ndarray) else item for part in parts for item in part]
    return [flat[index] for index in order.tolist()]


def _released(mechanism: Any, x: Any, size: int) -> Any:
    """Release ``x`` independently ``size`` times, in one vectorized call where ``x`` is a single number."""
    if np.ndim(x) or isinstance(x, str) or hasattr(x, "__len__"):
        return observe_each(mechanism.release, [x] * size)
    return _batch(lambda value, count: mechanism.release(np.full(count, value)), x, size)


def _batch(fn: Callable[[Any, int], Any], x: Any, size: int) -> Any:
    """Return ``size`` outputs of a batch function, or the error that it raises on every run."""
    try:
        outputs = fn(x, size)
    except Exception as error:
        return [_constant_error(fn, x, error)] * size
    if not hasattr(outputs, "__len__") or len(outputs) != size:
        got = f"{len(outputs)}" if hasattr(outputs, "__len__") else type(outputs).__name__
        raise InvalidArgument(
            "fn", f"{size} outputs from fn(x, {size})", got, "return one for each run, or leave out batch=True"
        )
    return outputs


def _constant_error(fn: Callable[[Any, int], Any], x: Any, error: Exception) -> Raised:
    """Return the error as an output, provided that every run on x raises it.

    An error that is raised only sometimes must not stand for all runs: then it is refused.
    """
    result = Raised.by(error)
    for _ in range(_PROBE):
        try:
            fn(x, 1)
        except Exception as again:
            if Raised.by(again).kind == result.kind:
                continue
        raise InvalidArgument(
            "fn",
            "outputs of fn(x, size), or an error whatever the size",
            f"{result.kind}, not every time",
            "return None for a run that fails, or leave out batch=True",
        ) from None
    return result


class Sampler:
    """Draw rounds of the game, in worker processes where more than one is asked for; a context manager, which ends
    them."""

    def __init__(self, draw: Draw, x: Any, neighbor: Any, processes: int, bar: ProgressBar | None) -> None:
        self._draw, self._data, self._bar = draw, (x, neighbor), bar
        self._processes = processes
        self._pool: Any = None

    def __enter__(self) -> Sampler:
        """Start the worker processes, and refuse them if they would draw identical noise."""
        if self._processes > 1:
            if "fork" not in multiprocessing.get_all_start_methods():
                raise InvalidArgument(
                    "processes", "1 on this system, which cannot fork", self._processes, "leave it out"
                )
            context = multiprocessing.get_context("fork")
            first = context.SimpleQueue()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # threads are not copied by a fork, as intended
                self._pool = context.Pool(self._processes, _start_worker, (self._draw, self._data, first))
            try:
                _refuse_identical_workers([first.get() for _ in range(self._processes)])
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.terminate()
            self._pool.join()

    def rounds(self, count: int) -> Runs:
        """Run the function ``count`` times, each on the data set that an independent fair coin chooses."""
        labels = coin_flips(count)
        size = _CHUNK if self._bar is None else max(_MIN_CHUNK, count // 50)
        if self._pool is not None:
            size = max(1, min(_CHUNK, -(-count // (4 * self._processes))))
        chunks = [labels[start : start + size] for start in range(0, count, size)]
        # in order of submission: the order of completion would depend on running times
        parts = (
            (collect_outputs(self._draw(self._data, chunk)) for chunk in chunks)
            if self._pool is None
            else self._pool.imap(_work, chunks)
        )
        outputs = []
        for part in parts:
            outputs.append(part)
            if self._bar is not None:
                self._bar.advance(part.size)
        return Runs(concatenate(outputs) if outputs else Outputs(0, {}), labels)


_worker: tuple[Draw, DataSets] | None = None


def _start_worker(draw: Draw, data: DataSets, first: Any) -> None:
    """Prepare a worker process that calls ``draw`` on the two data sets.

    The hashes of its first outputs are put into the queue ``first``. The hashes are how the parent notices that several
    workers have a copy of one random generator.
    """
    global _worker
    _worker = draw, data
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends the workers
    try:
        first.put([digest(output).hex() for output in draw(data, np.zeros(_PROBE, dtype=bool))])
    except Exception:  # raised again by the first task, which reports it to the parent
        first.put([])


def _work(labels: Labels) -> Outputs:
    """Run one chunk of rounds in a worker process."""
    assert _worker is not None
    draw, data = _worker
    return collect_outputs(draw(data, labels))


def _refuse_identical_workers(probes: list[list[str]]) -> None:
    """Refuse workers whose random generator was copied by the fork, so that they draw identical noise.

    They are refused if two of them start with the same outputs and these have at least 2^24 distinct orderings.
    """
    for index, probe in enumerate(probes):
        orders = math.lgamma(len(probe) + 1) - sum(math.lgamma(count + 1) for count in Counter(probe).values())
        if probe in probes[:index] and orders > _MIN_LOG_ORDERS:
            raise InvalidArgument(
                "fn",
                "independent outputs in every process",
                "identical outputs from two processes",
                "take its noise from the operating system in each call, or pass processes=1",
            )


class ProgressBar:
    """A progress bar on standard error."""

    def __init__(self, total: int, text: str) -> None:
        """Show a bar labeled ``text`` that is complete after ``total`` steps."""
        from rich.console import Console
        from rich.progress import Progress

        self._file = _own_stderr()
        console = Console(file=self._file)
        self._progress = Progress(console=console, transient=console.is_terminal)
        self._task = self._progress.add_task(text, total=total)

    def advance(self, count: int) -> None:
        """Count ``count`` more runs."""
        self._progress.advance(self._task, count)

    def start(self) -> None:
        """Show the bar."""
        self._progress.start()

    def stop(self) -> None:
        """Remove the bar."""
        self._progress.stop()
        if self._file is not sys.stderr:
            self._file.close()


def _own_stderr() -> Any:
    """Return standard error on a duplicated descriptor, since that of the process is captured while audited
    code runs.
    """
    try:
        return os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding, buffering=1)
    except (OSError, ValueError, AttributeError):
        return sys.stderr


@contextmanager
def progress_bar(shown: bool, total: int, text: str) -> Iterator[ProgressBar | None]:
    """Show a progress bar for ``total`` runs while the context is open; yield None if it is not to be shown."""
    if not shown:
        yield None
        return
    bar = ProgressBar(total, text)
    bar.start()
    try:
        yield bar
    finally:
        bar.stop()
