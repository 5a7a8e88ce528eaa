"""Running a function many times on two data sets: one run at a time, in batches, or in several processes.

Each round of the guessing game starts with a fair coin, as the bound of
:func:`~dither.audit.blackbox.confidence.epsilon_lower_bound` requires. Since rounds are independent, it is equivalent
to draw the number of rounds that use the neighbor, Binomial(rounds, 1/2), to run each data set that often, and to
distinguish the runs by their labels.
"""

from __future__ import annotations

import math
import multiprocessing
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

from dither.audit.blackbox.features import Outputs, collect_outputs, concatenate
from dither.audit.outputs.observe import Raised, Warned, observe_runs
from dither.errors import InvalidArgument, WrongType, message
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
    """Outputs with labels that are True for runs on the neighbor."""

    outputs: Outputs
    labels: Labels

    def __add__(self, other: Runs) -> Runs:
        return Runs(concatenate([self.outputs, other.outputs]), np.concatenate([self.labels, other.labels]))

    def split(self, rounds: int) -> tuple[Runs, Runs]:
        """The first ``rounds`` rounds, and the rest."""
        size = self.labels.size
        return self._part(0, rounds), self._part(rounds, size)

    def _part(self, start: int, stop: int) -> Runs:
        return Runs(self.outputs.rows(start, stop), self.labels[start:stop])


def coin_flips(count: int) -> Labels:
    """Independent fair coins.

    >>> coin_flips(100).shape
    (100,)
    """
    words = SYSTEM.words(-(-count // _BITS_PER_WORD))
    return np.unpackbits(words.view(np.uint8))[:count].astype(bool)


def batch_function(fn: Any, batch: bool) -> Callable[[Any, int], Any]:
    """A function ``draw(x, size)`` that returns ``size`` independent outputs of ``fn`` on x.

    A mechanism of dither stands for its ``release``; mechanisms with independent noise on every coordinate are
    sampled in one call.

    >>> import dither as dp
    >>> len(batch_function(dp.Laplace(1, 1), False)(0, 5))
    5
    """
    if isinstance(fn, (Additive, RandomizedResponse)):
        if isinstance(fn, Additive) and not fn.noise.joint:
            return batch_function(fn.release, False)
        return lambda x, size: _released(fn, x, size)
    if not callable(fn):
        if hasattr(fn, "release"):
            return batch_function(fn.release, batch)
        raise WrongType(
            message("fn", "a function of the data", type(fn).__name__, "pass lambda x: mechanism.release(f(x))")
        )
    return (lambda x, size: _batch(fn, x, size)) if batch else (lambda x, size: observe_runs(fn, x, size))


def _released(mechanism: Any, x: Any, size: int) -> Any:
    if np.ndim(x) or isinstance(x, str) or hasattr(x, "__len__"):
        return observe_runs(mechanism.release, x, size)
    return _batch(lambda value, count: mechanism.release(np.full(count, value)), x, size)


def _batch(fn: Callable[[Any, int], Any], x: Any, size: int) -> Any:
    try:
        outputs = fn(x, size)
    except Exception as error:
        return [_constant_error(fn, x, error)] * size
    if not hasattr(outputs, "__len__") or len(outputs) != size:
        got = f"{len(outputs)}" if hasattr(outputs, "__len__") else type(outputs).__name__
        raise InvalidArgument(
            message("fn", f"{size} outputs from fn(x, {size})", got, "return one for each run, or leave out batch=True")
        )
    return outputs


def _constant_error(fn: Callable[[Any, int], Any], x: Any, error: Exception) -> Raised:
    """The error, provided that every run on x raises it; an occasional failure must not stand for all runs."""
    result = Raised.by(error)
    for _ in range(_PROBE):
        try:
            fn(x, 1)
        except Exception as again:
            if Raised.by(again).kind == result.kind:
                continue
        raise InvalidArgument(
            message(
                "fn",
                "outputs of fn(x, size), or an error whatever the size",
                f"{result.kind}, not every time",
                "return None for a run that fails, or leave out batch=True",
            )
        ) from None
    return result


class Sampler:
    """Draws rounds of the game; used as a context manager, which ends the worker processes."""

    def __init__(
        self, draw: Callable[[Any, int], Any], x: Any, neighbor: Any, features: Any, processes: int, bar: Bar | None
    ) -> None:
        self._draw, self._data, self._features, self._bar = draw, (x, neighbor), features, bar
        self._processes = processes
        self._pool: Any = None

    def __enter__(self) -> Sampler:
        if self._processes > 1:
            if "fork" not in multiprocessing.get_all_start_methods():
                raise InvalidArgument(
                    message("processes", "1 on this system, which cannot fork", self._processes, "leave it out")
                )
            context = multiprocessing.get_context("fork")
            first = context.SimpleQueue()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # threads are not copied by a fork, as intended
                self._pool = context.Pool(
                    self._processes, _start_worker, (self._draw, self._data, self._features, first)
                )
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
        """``count`` rounds, in an order that carries no information."""
        labels = coin_flips(count)
        neighbor_runs = int(labels.sum())
        result = [self._outputs(0, count - neighbor_runs), self._outputs(1, neighbor_runs)]
        indices = np.empty(count, dtype=np.intp)
        indices[~labels] = np.arange(count - neighbor_runs)
        indices[labels] = np.arange(count - neighbor_runs, count)
        return Runs(concatenate(result).select(indices), labels)

    def _outputs(self, side: int, count: int) -> Outputs:
        if not count:
            return Outputs(0, {})
        if self._pool is not None:
            return concatenate(self._from_workers(side, count))
        parts, completed = [], 0
        while completed < count:
            size = min(count - completed, _CHUNK if self._bar is None else max(_MIN_CHUNK, count // 50))
            parts.append(_chunk(self._draw, self._data[side], self._features, size))
            completed += size
            if self._bar is not None:
                self._bar.advance(size)
        return concatenate(parts)

    def _from_workers(self, side: int, count: int) -> list[Outputs]:
        size = max(1, min(_CHUNK, -(-count // (4 * self._processes))))
        sizes = [min(size, count - start) for start in range(0, count, size)]
        parts = []
        # in order of submission: the order of completion would depend on running times
        for part in self._pool.imap(_work, [(side, size) for size in sizes]):
            parts.append(part)
            if self._bar is not None:
                self._bar.advance(part.size)
        return parts


def _chunk(draw: Callable[[Any, int], Any], x: Any, features: Callable[[Any], Any] | None, size: int) -> Outputs:
    outputs = draw(x, size)
    if features is not None:
        if isinstance(outputs, np.ndarray):
            outputs = features(outputs)
        else:
            outputs = [_feature(features, output) for output in outputs]
    return collect_outputs(outputs)


def _feature(features: Callable[[Any], Any], observation: Any) -> Any:
    """The feature of an output; an error stands for itself, and warnings are not looked at."""
    output = observation.output if isinstance(observation, Warned) else observation
    return output if isinstance(output, Raised) else features(output)


_worker: tuple[Callable[[Any, int], Any], tuple[Any, Any], Any] | None = None


def _start_worker(draw: Callable[[Any, int], Any], data: tuple[Any, Any], features: Any, first: Any) -> None:
    global _worker
    _worker = draw, data, features
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends the workers
    try:
        first.put([repr(output) for output in draw(data[0], _PROBE)])
    except Exception:  # raised again by the first task, which reports it to the parent
        first.put([])


def _work(task: tuple[int, int]) -> Outputs:
    assert _worker is not None
    draw, data, features = _worker
    side, size = task
    return _chunk(draw, data[side], features, size)


def _refuse_identical_workers(probes: list[list[str]]) -> None:
    """Refuse workers whose random generator was copied by the fork, so that they draw identical noise.

    They are refused if two of them start with the same outputs and these have at least 2^24 distinct orderings.
    """
    for index, probe in enumerate(probes):
        orders = math.lgamma(len(probe) + 1) - sum(math.lgamma(count + 1) for count in Counter(probe).values())
        if probe in probes[:index] and orders > _MIN_LOG_ORDERS:
            raise InvalidArgument(
                message(
                    "fn",
                    "independent outputs in every process",
                    "the same ones twice",
                    "take its noise from the operating system in each call, or pass processes=1",
                )
            )


class Bar:
    """A progress bar on standard error."""

    def __init__(self, total: int, text: str) -> None:
        from rich.console import Console
        from rich.progress import Progress

        console = Console(file=sys.stderr)
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


@contextmanager
def progress_bar(shown: bool, total: int, text: str) -> Iterator[Bar | None]:
    """A bar for ``total`` runs, or None if it is not shown."""
    if not shown:
        yield None
        return
    bar = Bar(total, text)
    bar.start()
    try:
        yield bar
    finally:
        bar.stop()
