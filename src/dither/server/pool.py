"""Worker processes that are kept warm, each with a thread that hands it one task after the other.

A worker that exceeds its time, or dies, is replaced. What it had charged stays charged; the thread reports this to the
submitter of the task (``died``), with the key of the charge, so that the incident can be recorded. Whatever goes wrong
with a task, the thread goes on with the next one, in a new process: a disk that was full for a moment, or a database
that was restarted, must not leave a server that takes questions and answers none.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

_log = logging.getLogger("dither.server")

_START_SECONDS = 300.0
"""How long a new process may take to open a table, before there is a question."""
_BETWEEN_STARTS = 1.0
"""Seconds between attempts to start a process."""
_BETWEEN_LOOKS = 1.0
"""Seconds between checks of an idle worker that its process runs."""
Ending = Literal["end", "died", "stopped", "late"]


class Clock:
    """The time that decides when an answer is shown, and when a question has taken too long.

    The system's clock is read once, and a monotonic clock counts from there, so that setting the system's clock neither
    ends nor delays a question. Processes of one machine share the ``origin``, so that they show an answer at the same
    moment. Tests replace the clock by one that they control.

    >>> first = Clock()
    >>> abs(Clock(first.origin).now() - first.now()) < 60
    True
    """

    def __init__(self, origin: float | None = None) -> None:
        self.origin = time.time() - time.monotonic() if origin is None else origin

    def now(self) -> float:
        """Return the time in seconds since 1970."""
        return self.origin + time.monotonic()

    def wait(self, until: float, stopping: threading.Event) -> None:
        """Wait until a time, or until the event ``stopping`` if that comes first."""
        stopping.wait(max(0.0, until - self.now()))


@dataclass
class Task:
    """A message for a worker process, with callbacks. ``ended`` is called once, with how the task ended and the
    worker's last event.

    ``begin`` is called when a worker starts on it. ``stop_at`` returns when a task is to be stopped before its end,
    None for never; it is asked again at each time that ``wake_at`` returns.
    """

    message: Mapping[str, Any]
    ended: Callable[[Ending, dict[str, Any], str | None], None]
    begin: Callable[[], None] = lambda: None
    stop_at: Callable[[], float | None] = lambda: None
    wake_at: Callable[[float], float] = lambda now: now + 1.0
    time_limit: float | None = None
    key: str | None = None
    """The key of its charge, as soon as the worker has said it."""
    is_ended: bool = False

    def end(self, how: Ending, event: dict[str, Any] | None = None) -> None:
        """Report how the task ended, unless that was reported before."""
        if not self.is_ended:
            self.is_ended = True
            self.ended(how, event or {}, self.key)


class Process:
    """One worker process and the pipe to it."""

    program: ClassVar[tuple[str, ...]] = ("-m", "dither.server.worker")

    def __init__(self, memory_mb: int, seconds: int) -> None:
        """Start a worker process with limits on memory and on the seconds of one task."""
        command = [sys.executable, *self.program, str(memory_mb), str(seconds)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        assert self._process.stdout is not None
        self._output = self._process.stdout.fileno()
        self._events = select.poll()  # select takes no descriptor above 1023, which a server with many clients has
        self._events.register(self._output, select.POLLIN)
        self._rest = b""
        self._number = 0

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a task. A broken pipe means that the process is dead, which :meth:`read` will notice."""
        assert self._process.stdin is not None
        self._number += 1
        with suppress(OSError, ValueError):
            self._process.stdin.write(json.dumps({**message, "number": self._number}).encode() + b"\n")
            self._process.stdin.flush()

    def read(self, seconds: float) -> dict[str, Any] | None:
        """Return the next event of the task that was sent last; None if there is none within ``seconds``.

        Raises EOFError if the process is dead or sends something else. Events of other tasks are dropped, so that no
        answer goes to another question.
        """
        until = time.monotonic() + seconds
        while True:
            while b"\n" not in self._rest:
                if not self._events.poll(1000 * max(0.0, until - time.monotonic())):
                    return None
                part = os.read(self._output, 1 << 20)
                if not part:
                    raise EOFError
                self._rest += part
            line, _, self._rest = self._rest.partition(b"\n")
            try:
                result: dict[str, Any] = json.loads(line)
                is_own = result["number"] == self._number and result["event"] in ("charging", "end")
            except (ValueError, LookupError, TypeError):
                raise EOFError from None
            if is_own:
                return result

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Return whether the process has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()
        self.close()

    def close(self) -> None:
        """Close the pipe, which ends the process; kill it if it has not ended after 10 seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


@dataclass
class _Slot:
    """The state of a worker: its process (None before the first start), whether the last attempt to start one
    succeeded, and whether it runs a task."""

    can_start: bool
    process: Process | None = None
    is_busy: bool = False

    @property
    def is_ready(self) -> bool:
        """Return whether this worker can take a task, now or after the current one."""
        process = self.process
        return self.can_start and (self.is_busy or process is None or process.is_running)


class Pool:
    """A fixed number of worker processes, and a first-in, first-out queue of tasks for them."""

    def __init__(
        self, size: int, *, memory_mb: int, time_limit: float, warm_up: list[Mapping[str, Any]], clock: Clock,
        warm: bool = True,
    ) -> None:  # fmt: skip
        """Start the threads of ``size`` workers, each with a process if ``warm``; every process first runs the tasks
        ``warm_up``.

        A process may use ``memory_mb`` of memory, and a task may run for ``time_limit`` seconds by the ``clock``.
        """
        self._memory, self._limit, self._warm, self._clock = memory_mb, time_limit, warm, clock
        self._warm_up = warm_up
        # not a SimpleQueue: a look at it with a time limit may wait for ever (CPython 3.11)
        self._tasks: queue.Queue[Task | None] = queue.Queue()
        self._stopping = False
        self._slots = [_Slot(not warm) for _ in range(size)]
        self._threads = [
            threading.Thread(target=self._serve, args=(slot,), daemon=True, name=f"worker-{i}")
            for i, slot in enumerate(self._slots)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pids(self) -> list[int]:
        """Return the ids of the worker processes."""
        return [process.pid for slot in self._slots if (process := slot.process) is not None]

    def submit(self, task: Task) -> None:
        """Append a task to the queue."""
        self._tasks.put(task)

    def call(self, message: Mapping[str, Any], seconds: float) -> dict[str, Any] | None:
        """Run the task ``message`` for at most ``seconds``, and wait for its last event; None if the worker died or
        took too long.

        It may wait in the queue before it begins, for up to four times as long in all.
        """
        done = threading.Event()
        result: list[dict[str, Any]] = []

        def ended(how: Ending, event: dict[str, Any], _: str | None) -> None:
            """Keep the last event of a task that ended, and wake the caller."""
            if how == "end":
                result.append(event)
            done.set()

        self.submit(Task(message, ended, time_limit=seconds))
        done.wait(seconds * 4)
        return result[0] if result else None

    def stop(self) -> None:
        """Stop all workers: running tasks end, and waiting ones are reported as ``stopped``."""
        self._stopping = True
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()
        with suppress(queue.Empty):
            while True:  # tasks submitted after the last thread ended, also by the end of one of these tasks
                task = self._tasks.get_nowait()
                if task is not None:
                    self._end(task, "stopped")

    @property
    def size(self) -> int:
        """Return the configured number of workers."""
        return len(self._threads)

    @property
    def ready(self) -> int:
        """Return how many workers can take a task, now or after the current one.

        A worker counts if its last start succeeded and its process did not end while idle. That a process ended over
        a question does not show, since when that happened depends on the rows.
        """
        pairs = zip(self._threads, self._slots, strict=True)
        return sum(thread.is_alive() and slot.is_ready for thread, slot in pairs)

    def _start(self, slot: _Slot) -> None:
        """Start the process of a worker unless it runs; retry until that succeeds or the pool stops."""
        if slot.process is not None and slot.process.is_running:
            return
        while not self._stopping:
            try:
                self._replace(slot)
                slot.can_start = True
                return
            except Exception as error:  # no memory, no descriptors: there may be some again
                _log.error("no worker can be started: %s", type(error).__name__)
                slot.can_start = False
                time.sleep(_BETWEEN_STARTS)

    def _replace(self, slot: _Slot) -> None:
        """Start a new process in a ``slot`` and let it open the tables; if it dies over a table, start one without open
        tables.
        """
        for messages in (self._warm_up, []):
            self._drop(slot)
            slot.process = process = Process(self._memory, int(self._limit) + 30)
            with suppress(EOFError):
                for message in messages:
                    process.send(message)
                    while (event := process.read(_START_SECONDS)) is not None and event["event"] != "end":
                        pass
                return

    def _drop(self, slot: _Slot) -> None:
        """Kill the process of a worker."""
        process, slot.process = slot.process, None
        if process is not None:
            process.kill()

    def _serve(self, slot: _Slot) -> None:
        """Run tasks one after the other in the thread of a worker until the pool stops; no failed task ends the thread.

        ``slot`` holds the worker's process, which is replaced when it has died.
        """
        if self._warm:
            self._start(slot)
        while (task := self._next(slot)) is not None:
            slot.is_busy = True
            self._start(slot)  # a new process, if the old one has ended since the last task
            process = slot.process
            if self._stopping or process is None:
                self._end(task, "stopped")
            else:
                try:
                    is_usable = self._do(task, process)
                except Exception as error:  # of what submitted the task, as a rule
                    _log.error("a task failed with %s", type(error).__name__)
                    is_usable = False
                if not is_usable:
                    process.kill()
                    self._end(task, "died")  # has no effect if the ending was reported before
                    if self._warm:
                        self._start(slot)
            slot.is_busy = False
        if slot.process is not None:
            slot.process.close()
            slot.process = None

    def _next(self, slot: _Slot) -> Task | None:
        """Return the next task, None to stop; while idle, replace a process that has ended."""
        while True:
            with suppress(queue.Empty):
                return self._tasks.get(timeout=_BETWEEN_LOOKS)
            if slot.process is not None:
                self._start(slot)

    def _end(self, task: Task, how: Ending) -> None:
        """Report how a task ended, and log what that raises."""
        try:
            task.end(how)
        except Exception as error:
            _log.error("the end of a task failed with %s", type(error).__name__)

    def _do(self, task: Task, process: Process) -> bool:
        """Run a task, report how it ended, and return whether the process can run another one.

        A task that is stopped or late has its process killed before that is reported.
        """
        stop_at = task.stop_at()
        if stop_at is not None and self._clock.now() >= stop_at:
            task.end("stopped")
            return True
        task.begin()
        until = self._clock.now() + (self._limit if task.time_limit is None else task.time_limit)
        process.send(task.message)
        while True:
            now = self._clock.now()
            stop_at = task.stop_at()
            if now >= until or (stop_at is not None and now >= stop_at):
                process.kill()
                task.end("stopped" if now < until else "late")
                return False
            wake = min(until, task.wake_at(now), until if stop_at is None else stop_at)
            try:
                event = process.read(max(0.0, wake - now))
            except EOFError:
                task.end("died")
                return False
            if event is None:
                continue
            if event["event"] == "end":
                task.end("end", event)
                return True
            task.key = event["key"]
