"""Running a function many times on two data sets: one by one, in batches, over several processes.

Each round of the game is decided by a fair coin, as the bound in :func:`dither.audit.blackbox.confidence.loss` wants
it. As the rounds are independent it is the same to draw how many of them fall to the neighbour, Binomial(rounds, 1/2),
to run either data set that often, and to keep the runs apart by their label only.
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
from itertools import islice
from types import GeneratorType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither.audit.blackbox.features import Outputs, Raised, gather, join
from dither.errors import InvalidArgument, WrongType, message
from dither.mechanisms import RandomizedResponse
from dither.mechanisms.additive import Additive
from dither.randomness import SYSTEM

_PIECE = 1 << 18
_MOST_MADE = 1 << 16
_ON_DEMAND = (GeneratorType, map, filter, zip)  # made here, so that what they give is seen
_TURN = 1 << 10
_PROBE = 32
_ORDERS = 24 * math.log(2)
_BITS_A_WORD = 64

Labels = NDArray[np.bool_]


@dataclass(frozen=True)
class Runs:
    """Outputs with their labels: True where the neighbour was run."""

    outputs: Outputs
    labels: Labels

    def __add__(self, other: Runs) -> Runs:
        return Runs(join([self.outputs, other.outputs]), np.concatenate([self.labels, other.labels]))

    def split(self, rounds: int) -> tuple[Runs, Runs]:
        """The first so many rounds, and the rest."""
        size = self.labels.size
        return self._part(0, rounds), self._part(rounds, size)

    def _part(self, start: int, stop: int) -> Runs:
        return Runs(self.outputs.part(start, stop), self.labels[start:stop])


def coin_flips(count: int) -> Labels:
    """Fair coins.

    >>> coin_flips(100).shape
    (100,)
    """
    words = SYSTEM.words(-(-count // _BITS_A_WORD))
    return np.unpackbits(words.view(np.uint8))[:count].astype(bool)


def drawing(fn: Any, batch: bool) -> Callable[[Any, int], Any]:
    """``draw(x, size)``: so many independent outputs of ``fn`` on x.

    A mechanism of dither stands for its ``release``; the ones that give every coordinate its own noise are drawn in
    one call.

    >>> import dither as dp
    >>> len(drawing(dp.Laplace(1, 1), False)(0, 5))
    5
    """
    if isinstance(fn, (Additive, RandomizedResponse)):
        if isinstance(fn, Additive) and not fn.noise.joint:
            return drawing(fn.release, False)
        return lambda x, size: _released(fn, x, size)
    if not callable(fn):
        if hasattr(fn, "release"):
            return drawing(fn.release, batch)
        raise WrongType(
            message("fn", "a function of the data", type(fn).__name__, "pass lambda x: mechanism.release(f(x))")
        )
    return (lambda x, size: _batch(fn, x, size)) if batch else (lambda x, size: [_once(fn, x) for _ in range(size)])


def _released(mechanism: Any, x: Any, size: int) -> Any:
    if np.ndim(x) or isinstance(x, str) or hasattr(x, "__len__"):
        return [_once(mechanism.release, x) for _ in range(size)]
    return _batch(lambda value, count: mechanism.release(np.full(count, value)), x, size)


def _once(fn: Callable[[Any], Any], x: Any) -> Any:
    try:
        result = fn(x)
        return [*islice(result, _MOST_MADE)] if isinstance(result, _ON_DEMAND) else result
    except (Exception, SystemExit) as error:  # an error is an output too: whoever sees it learns from it
        return Raised.by(error)


def _batch(fn: Callable[[Any, int], Any], x: Any, size: int) -> Any:
    try:
        outputs = fn(x, size)
    except Exception as error:
        return [_refused(fn, x, error)] * size
    if not hasattr(outputs, "__len__") or len(outputs) != size:
        got = f"{len(outputs)}" if hasattr(outputs, "__len__") else type(outputs).__name__
        raise InvalidArgument(
            message("fn", f"{size} outputs from fn(x, {size})", got, "return one for each run, or leave out batch=True")
        )
    return outputs


def _refused(fn: Callable[[Any, int], Any], x: Any, error: Exception) -> Raised:
    """The error, if that is what every run on x ends in; one run that fails now and then is not to speak for all."""
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
    """Draws rounds of the game; to be used in a ``with`` block, which ends the processes."""

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
                warnings.simplefilter("ignore", DeprecationWarning)  # that other threads are not copied is known
                self._pool = context.Pool(
                    self._processes, _start_worker, (self._draw, self._data, self._features, first)
                )
            try:
                _refuse_copies([first.get() for _ in range(self._processes)])
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.terminate()
            self._pool.join()

    def rounds(self, count: int) -> Runs:
        """So many rounds, in an order that says nothing."""
        labels = coin_flips(count)
        chosen = int(labels.sum())
        result = [self._outputs(0, count - chosen), self._outputs(1, chosen)]
        places = np.empty(count, dtype=np.intp)
        places[~labels] = np.arange(count - chosen)
        places[labels] = np.arange(count - chosen, count)
        return Runs(join(result).where(places), labels)

    def _outputs(self, side: int, count: int) -> Outputs:
        if not count:
            return Outputs(0, {})
        if self._pool is not None:
            return join(self._from_workers(side, count))
        parts, done = [], 0
        while done < count:
            size = min(count - done, _PIECE if self._bar is None else max(_TURN, count // 50))
            parts.append(_piece(self._draw, self._data[side], self._features, size))
            done += size
            if self._bar is not None:
                self._bar.advance(size)
        return join(parts)

    def _from_workers(self, side: int, count: int) -> list[Outputs]:
        size = max(1, min(_PIECE, -(-count // (4 * self._processes))))
        sizes = [min(size, count - start) for start in range(0, count, size)]
        parts = []
        # in their order: first those that were done first, and what comes first would depend on what takes longer
        for part in self._pool.imap(_work, [(side, size) for size in sizes]):
            parts.append(part)
            if self._bar is not None:
                self._bar.advance(part.size)
        return parts


def _piece(draw: Callable[[Any, int], Any], x: Any, features: Callable[[Any], Any] | None, size: int) -> Outputs:
    outputs = draw(x, size)
    if features is not None:
        if isinstance(outputs, np.ndarray):
            outputs = features(outputs)
        else:
            outputs = [o if isinstance(o, Raised) else features(o) for o in outputs]
    return gather(outputs)


_worker: tuple[Callable[[Any, int], Any], tuple[Any, Any], Any] | None = None


def _start_worker(draw: Callable[[Any, int], Any], data: tuple[Any, Any], features: Any, first: Any) -> None:
    global _worker
    _worker = draw, data, features
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends the workers
    try:
        first.put([repr(output) for output in draw(data[0], _PROBE)])
    except Exception:  # comes again with the first task, where the parent hears of it
        first.put([])


def _work(task: tuple[int, int]) -> Outputs:
    assert _worker is not None
    draw, data, features = _worker
    side, size = task
    return _piece(draw, data[side], features, size)


def _refuse_copies(probes: list[list[str]]) -> None:
    """Workers that were copied together with a generator draw the same noise, which is no sample at all.

    Refused if two workers begin with the same outputs, and these could have come in 2^24 different orders or more.
    """
    for place, probe in enumerate(probes):
        orders = math.lgamma(len(probe) + 1) - sum(math.lgamma(count + 1) for count in Counter(probe).values())
        if probe in probes[:place] and orders > _ORDERS:
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

    def __init__(self, total: int, words: str) -> None:
        from rich.console import Console
        from rich.progress import Progress

        console = Console(file=sys.stderr)
        self._progress = Progress(console=console, transient=console.is_terminal)
        self._task = self._progress.add_task(words, total=total)

    def advance(self, count: int) -> None:
        """So many runs more."""
        self._progress.advance(self._task, count)

    def start(self) -> None:
        """Show it."""
        self._progress.start()

    def stop(self) -> None:
        """Take it away."""
        self._progress.stop()


@contextmanager
def progress_bar(shown: bool, total: int, words: str) -> Iterator[Bar | None]:
    """A bar for ``total`` runs, or none."""
    if not shown:
        yield None
        return
    bar = Bar(total, words)
    bar.start()
    try:
        yield bar
    finally:
        bar.stop()
