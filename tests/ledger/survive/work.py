"""What the tests run in processes of their own: ``python work.py task '{"place": …}'``, and the other end of that.

A task says "ready", waits for a line, works, and prints what it found as JSON.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg  # noqa: F401  (before processes are forked, each of which would import it)
import sqlalchemy.dialects.postgresql.psycopg
import sqlalchemy.dialects.sqlite  # noqa: F401

import dither as dp

PATIENCE_S = 300
SECRET = bytes(range(32))
COST = Fraction(1, 1000)
PEOPLE = ["ann", "bob", "eve", "ann"]


class Worker:
    """A task in a process of its own, at the other end of a socket."""

    def __init__(self, end: socket.socket) -> None:
        end.settimeout(PATIENCE_S)
        self._stream = end.makefile("rw")
        end.close()

    def tell(self, text: str = "go") -> None:
        """Send it a line."""
        self._stream.write(text + "\n")
        self._stream.flush()

    def says(self) -> Any:
        """The next thing it says; None if it has ended."""
        try:
            line = self._stream.readline()
        except ConnectionResetError:
            return None
        return json.loads(line) if line else None

    def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(OSError):
            self._stream.close()


@contextlib.contextmanager
def workers(count: int, task: str, *, within: Sequence[str] = (), **arguments: Any) -> Iterator[list[Worker]]:
    """So many processes with the same task, ready to begin; they do not outlive the block.

    One interpreter starts, imports, and forks them before anything is open: importing in each would take longer than
    the work. ``within`` is a command that runs the interpreter's.
    """
    ours, theirs = zip(*(socket.socketpair() for _ in range(count)), strict=True)
    numbers = [end.fileno() for end in theirs]
    process = subprocess.Popen(
        [*within, sys.executable, __file__, task, json.dumps(arguments), json.dumps(numbers)],
        pass_fds=numbers,
        start_new_session=True,
    )
    for end in theirs:
        end.close()
    started = [Worker(end) for end in ours]
    patience = 0
    try:
        for worker in started:
            assert worker.says() == "ready", "the task did not start"
        yield started
        patience = PATIENCE_S
    finally:
        for worker in started:
            worker.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE_S)


def together(count: int, task: str, *, within: Sequence[str] = (), **arguments: Any) -> list[Any]:
    """What so many processes say that all begin at once."""
    with workers(count, task, within=within, **arguments) as started:
        for worker in started:
            worker.tell()
        return [worker.says() for worker in started]


def cost_of(text: str) -> dp.PureDP:
    """A cost from its text, exactly."""
    return dp.PureDP(Fraction(text))


def opened(place: str, kind: type[dp.ledger.Ledger] = dp.ledger.Ledger) -> dp.ledger.Ledger:
    """The ledger of a task."""
    return kind(place, secret=SECRET)


def charged(ledger: dp.ledger.Ledger, dataset: str, cost: str, times: int, **rest: Any) -> list[Any]:
    """Charge again and again; for each whether it was paid, or who took part."""
    result: list[Any] = []
    for _ in range(times):
        try:
            kept = ledger.charge(dataset, cost_of(cost), **rest).kept
            result.append(True if kept is None else kept.tolist())
        except dp.BudgetExceeded:
            result.append(False)
    return result


def charge(place: str, times: int, costs: list[str], number: int, people: bool = False, analysts: int = 0) -> Any:
    """Open, wait, charge."""
    rest: dict[str, Any] = {"people": PEOPLE} if people else {}
    if analysts:
        rest["analyst"] = f"analyst {number % analysts}"
    with opened(place) as ledger:
        wait()
        return charged(ledger, "visits", costs[number % len(costs)], times, **rest)


def first_use(place: str, given: bool, share: str, number: int) -> Any:
    """Open a ledger that is not there yet, and its accounts, and pay a share."""
    wait()
    with dp.ledger.open(place, secret=SECRET if given else None) as ledger:
        ledger.ensure("visits", limit=dp.PureDP(1), each_person=dp.PureDP(1))
        return [charged(ledger, "visits", share, 1, people=[number])[0] == [True], ledger.created]


def same_key(place: str, number: int) -> Any:
    """Everybody asks the same at the same time."""
    with opened(place) as ledger:
        wait()
        result = [ledger.release("visits", dp.PureDP(0.1), lambda: secrets.token_hex(), key=f"k{i}") for i in range(20)]
    return [[one.value, one.receipt.seq] for one in result]


class Mortal(dp.ledger.Ledger):
    """Its process dies when a release has come so far."""

    step: str

    def _reached(self, step: str) -> None:
        if step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


def released(ledger: dp.ledger.Ledger, key: str, log: str) -> None:
    """Release a random answer under a key; then show it to the world, whose memory is a file of its own."""
    answer = ledger.release("visits", dp.PureDP(COST), lambda _: secrets.token_hex(), key=key, people=PEOPLE)
    handle = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.write(handle, json.dumps([key, answer.stored.decode()]).encode() + b"\n")
    os.fsync(handle)
    os.close(handle)


def die_at(place: str, step: str, log: str, number: int) -> Any:
    """One release that gets so far."""
    Mortal.step = step
    wait()
    with opened(place, Mortal) as ledger:
        released(ledger, "k", log)
    return "survived"


def zygote(place: str, log: str, number: int) -> Any:
    """Fork a process for each line: it opens the ledger and releases until it is killed. Nothing is open at the fork.

    Where the line is "working", it speaks up after its first release.
    """
    opened(place).close()  # so that everything is imported
    wait()
    for run, line in enumerate(sys.stdin):
        child = os.fork()
        if child == 0:
            with opened(place) as ledger:
                for turn in range(1 << 30):
                    released(ledger, f"{run}.{turn}", log)
                    if turn == 0 and line == "working\n":
                        say(os.getpid())
        if line != "working\n":
            say(child)
        os.waitpid(child, 0)
        say("gone")
    return "done"


def persist(place: str, log: str, number: int) -> Any:
    """Release until told to stop, through whatever happens to the database: the same object, the same key again.

    A file beside the log grows with every error.
    """
    stop, errors = threading.Event(), []
    with opened(place) as ledger:
        wait()
        threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
        turn = 0
        while not stop.is_set():
            try:
                released(ledger, f"{number}.{turn}", log)
                turn += 1
            except dp.LedgerError as error:
                errors.append(str(error))
                with open(f"{log}.{number}.errors", "a", encoding="utf-8") as seen:
                    seen.write("!")
                time.sleep(0.02)
        released(ledger, f"{number}.last", log)
    return errors


def fork(place: str, number: int, busy: bool = False) -> Any:
    """Children that inherit the object, while the parent goes on; ``busy``: another thread is charging at the fork."""
    ledger = opened(place)
    charged(ledger, "visits", "1/1000", 5)
    wait()
    stop = threading.Event()
    counts = {"thread": 0}

    def work() -> None:
        while not stop.is_set():
            counts["thread"] += sum(charged(ledger, "visits", "1/1000", 1))

    thread = threading.Thread(target=work)
    if busy:
        thread.start()
    pipes = []
    for _ in range(4):
        if busy:
            time.sleep(0.01)
        read, write = os.pipe()
        if os.fork() == 0:
            signal.alarm(600)  # a child that hangs has to end by itself
            paid = sum(charged(ledger, "visits", "1/1000", 25))
            both = [threading.Thread(target=charged, args=(ledger, "visits", "1/1000", 10)) for _ in range(2)]
            for one in both:
                one.start()
            for one in both:
                one.join()
            os.write(write, json.dumps(paid + 20).encode())
            os._exit(0)
        os.close(write)
        pipes.append(read)
    parent = sum(charged(ledger, "visits", "1/1000", 25))
    paid = [json.loads(os.read(read, 100) or b"-1") for read in pipes]
    stop.set()
    if busy:
        thread.join()
    parent += sum(charged(ledger, "visits", "1/1000", 5))
    ledger.close()
    return {"children": paid, "all": 5 + sum(paid) + parent + counts["thread"]}


def orphan(place: str, number: int) -> Any:
    """A child that inherits the object and outlives its parent: it charges after whatever the test does meanwhile."""
    ledger = opened(place)
    charged(ledger, "visits", "1/1000", 5)
    wait()
    parent = os.getpid()
    if os.fork():
        os._exit(0)  # no closing: a parent that ends in an instant
    charged(ledger, "visits", "1/1000", 5)
    while os.getppid() == parent:
        time.sleep(0.005)
    say("alone")
    sys.stdin.readline()
    return sum(charged(ledger, "visits", "1/1000", 5))


def full_disk(place: str, way: str, number: int) -> Any:
    """Charge until the disk is full, make room, and go on with the same object."""
    folder, ballast = Path(place).parent, Path(place).with_name("ballast")
    ballast.write_bytes(bytes(100_000))
    wait()
    ledger = opened(place)
    ledger.create("visits", limit=dp.PureDP(1000), each_person=dp.PureDP(1000))
    paid = len(charged(ledger, "visits", str(COST), 5, people=PEOPLE))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if way == "file size":  # Python ignores the signal that comes with it
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(file.stat().st_size for file in folder.iterdir()), hard))
    elif way == "pages":
        ledger._store._driver().execute("PRAGMA max_page_count = 1")
    errors = []
    try:
        for _ in range(10_000):
            ledger.charge("visits", dp.PureDP(COST), people=PEOPLE)
            paid += 1
    except dp.LedgerError as error:
        errors.append(str(error))
    try:
        ledger.charge("visits", dp.PureDP(COST), people=PEOPLE, key="k")
        paid += 1
    except dp.LedgerError as error:
        errors.append(str(error))
    readable = ledger.left("visits") == dp.PureDP(1000 - paid * COST)
    ballast.unlink()
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    for _ in range(2):
        ledger.charge("visits", dp.PureDP(COST), people=PEOPLE, key="k")
        paid += 1
    entries = ledger.verify().entries
    ledger.close()
    return {"errors": errors, "readable": readable, "paid": paid, "entries": entries}


def powerless() -> None:
    """Root without the capabilities that let root ignore permissions (and nothing else changes)."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    if os.geteuid() == 0 and libc.capset(header, (ctypes.c_uint32 * 6)()) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def forbidden(place: str, what: str, number: int) -> Any:
    """Meet a file, or a folder, that may not be written; then go on with the same object once it may."""
    file, folder = Path(place), Path(place).parent
    powerless()
    wait()
    errors = []

    def attempt(action: Callable[[], Any]) -> Any:
        try:
            return action()
        except dp.LedgerError as error:
            errors.append(str(error))

    if what == "new":
        folder.chmod(0o555)
        attempt(lambda: opened(place))
        folder.chmod(0o755)
        opened(place).close()
        return {"errors": errors}
    ledger = opened(place)
    ledger.close()
    if what == "folder":
        Path(place + "-journal").unlink()  # with it there, the ledger can be written even so
    file.chmod(0o644 if what == "folder" else 0o444)
    folder.chmod(0o755 if what == "file" else 0o555)
    for _ in range(2):
        attempt(lambda: ledger.charge("visits", dp.PureDP(COST), key="k", people=PEOPLE))
    attempt(lambda: opened(place).close())
    folder.chmod(0o755)
    for item in folder.iterdir():  # what SQLite keeps beside a file has the permissions of the file
        item.chmod(0o644)
    ledger.charge("visits", dp.PureDP(COST), key="k", people=PEOPLE)
    entries = ledger.verify().entries
    ledger.close()
    return {"errors": errors, "entries": entries}


def read_only(place: str, number: int) -> Any:
    """Read everything where nothing may be written."""
    powerless()
    wait()
    with dp.ledger.open(place, read_only=True) as ledger:
        verified, history, left = ledger.verify(), list(ledger.history()), ledger.left("visits")
        there = ledger.ensure("visits", limit=dp.PureDP(1), each_person=dp.PureDP(1))
        missing = ledger.ensure("deaths", limit=dp.PureDP(1))
        errors = []
        for attempt in (
            lambda: ledger.charge("visits", dp.PureDP(COST), people=["ann"]),
            lambda: ledger.create("deaths", limit=dp.PureDP(1)),
            lambda: ledger.reopen("visits", signed_by="ann", reason="none"),
        ):
            try:
                attempt()
            except dp.LedgerError as error:
                errors.append(str(error))
    return [verified.entries, len(history), left == dp.PureDP(1 - COST), there, missing, errors]


def say(what: Any) -> None:
    """Tell the test."""
    print(json.dumps(what), flush=True)


def wait() -> None:
    """Say that all is prepared; go on when told."""
    say("ready")
    if not sys.stdin.readline():
        os._exit(0)


TASKS: dict[str, Callable[..., Any]] = {
    task.__name__: task
    for task in (charge, first_use, same_key, die_at, read_only, zygote, persist, fork, orphan, full_disk, forbidden)
}


def main(task: str, arguments: str, ends: str) -> None:
    """Fork a process for each socket, in which the task is run; wait for them.

    What a ledger on a server imports is imported before; and a process ends without taking apart what it inherited.
    """
    numbers: list[int] = json.loads(ends)
    children = []
    for number, end in enumerate(numbers):
        child = os.fork()
        if child == 0:
            for standard in (0, 1):
                os.dup2(end, standard)
            for item in numbers:
                os.close(item)
            status = 1
            try:
                say(TASKS[task](number=number, **json.loads(arguments)))
                status = 0
            except BaseException:
                traceback.print_exc()
            os._exit(status)
        children.append(child)
    for end in numbers:
        os.close(end)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
