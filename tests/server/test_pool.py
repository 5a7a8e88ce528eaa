"""Workers that go on whatever happens to a task or to a process."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from collections import Counter
from contextlib import contextmanager

import pytest

from dither.server import pool as pool_module
from dither.server.pool import Clock, Pool, Process, Task
from support import eventually

ECHO = """
import json, os, sys
for line in sys.stdin:
    task = json.loads(line)
    if task["do"] == "garble":
        print(["no JSON", "[]", "5", "{}", json.dumps({"number": task["number"]})][task["with"]], flush=True)
        continue
    if task["do"] == "die" or (task["do"] == "open" and os.path.exists(task["card"])):
        os._exit(3)
    print(json.dumps({"event": "end", "number": task["number"], "said": task["do"]}), flush=True)
"""


@pytest.fixture
def pool(monkeypatch, tmp_path):
    monkeypatch.setattr(pool_module, "_BETWEEN_STARTS", 0.01)
    monkeypatch.setattr(pool_module, "_BETWEEN_LOOKS", 0.01)
    program = tmp_path / "echo.py"
    program.write_text(ECHO)
    monkeypatch.setattr(Process, "program", (str(program),))

    @contextmanager
    def started(**options):
        warm_up = [{"do": "open", "card": str(tmp_path / "deadly")}]
        result = Pool(2, memory_mb=0, time_limit=600.0, warm_up=warm_up, clock=Clock(), **options)
        try:
            yield result
        finally:
            result.stop()

    return started


def says(pool, what="hello"):
    result = pool.call({"do": what}, 600.0)
    return None if result is None else result["said"]


ERRORS = [OSError(28, "No space left on device"), KeyError("x"), MemoryError(), RecursionError(), EOFError()]


@pytest.mark.parametrize("place", ["ended", "begin", "stop_at", "wake_at"])
def test_no_exception_of_a_task_ends_a_worker(pool, place):
    with pool() as workers:
        eventually(lambda: workers.ready == 2)
        for error in ERRORS * 2:
            reached = threading.Event()

            def broken(*_, error=error, reached=reached):
                reached.set()
                raise error

            workers.submit(Task({"do": "hello"}, **{"ended": lambda *_: None, place: broken}))
            eventually(lambda reached=reached: reached.is_set() or not workers.ready)
            assert reached.is_set()
        assert [says(workers) for _ in range(4)] == ["hello"] * 4
        eventually(lambda: workers.ready == 2)


def test_a_process_that_dies_is_replaced(pool):
    with pool() as workers:
        eventually(lambda: workers.ready == 2)
        assert [says(workers, "die"), says(workers, "die"), says(workers, "die")] == [None] * 3
        assert [says(workers) for _ in range(4)] == ["hello"] * 4


class Watched(queue.Queue):
    """A queue that counts how often each worker has looked into it."""

    def __init__(self):
        super().__init__()
        self.looks = Counter()

    def get(self, block=True, timeout=None):
        self.looks[threading.current_thread()] += 1
        return super().get(block, timeout)


@pytest.mark.parametrize("warm", [True, False])
def test_a_process_that_dies_with_nothing_to_do_is_replaced_before_anybody_asks(pool, warm):
    with pool(warm=warm) as workers:
        eventually(lambda: workers.ready == 2)
        eventually(lambda: says(workers) and len(workers.pids) == 2)  # one that is not warm starts with a question
        eventually(lambda: not any(slot.is_busy for slot in workers._slots))
        killed = [slot.process for slot in workers._slots]
        for process in killed:
            os.kill(process.pid, signal.SIGKILL)
        eventually(lambda: not any(process.is_running for process in killed))
        workers._tasks = Watched()
        eventually(lambda: all(workers._tasks.looks[thread] > 2 for thread in workers._threads))
        assert {process.pid for process in killed}.isdisjoint(workers.pids)
        assert len(workers.pids) == workers.ready == 2
        assert [says(workers) for _ in range(4)] == ["hello"] * 4


def test_a_table_that_kills_its_worker_keeps_nobody_else_waiting(pool, tmp_path):
    (tmp_path / "deadly").touch()
    with pool() as workers:
        eventually(lambda: workers.ready == 2)
        assert [says(workers) for _ in range(4)] == ["hello"] * 4


def test_workers_that_cannot_be_started_are_not_ready_until_they_can_be(pool, monkeypatch):
    executable = sys.executable
    with pool() as workers:
        eventually(lambda: workers.ready == 2)
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        assert [says(workers, "die"), says(workers, "die")] == [None] * 2
        eventually(lambda: workers.ready == 0)
        monkeypatch.setattr(sys, "executable", executable)
        eventually(lambda: workers.ready == 2)
        assert says(workers) == "hello"


def test_every_task_ends_once_whatever_the_process_or_the_submitter_does(pool):
    def broken(*_):
        raise KeyError("x")

    with pool() as workers:
        eventually(lambda: workers.ready == 2)
        tasks = [{"do": "garble", "with": i} for i in range(5)] + [{"do": "die"}]
        cases = [(message, {}) for message in tasks]
        cases += [({"do": "hello"}, {place: broken}) for place in ("begin", "stop_at", "wake_at")]
        for message, given in cases:
            ends = []
            workers.submit(Task(message, lambda how, _, key, ends=ends: ends.append((how, key)), **given))
            assert [says(workers) for _ in range(2)] == ["hello"] * 2
            eventually(lambda: not any(slot.is_busy for slot in workers._slots))
            assert ends == [("died", None)], (message, given)
