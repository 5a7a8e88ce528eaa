"""Objects that count what they give out exist once: no copy, no pickle, no use in a forked process."""

from __future__ import annotations

import ast
import copy
import importlib
import os
import pickle
import pkgutil
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dither
from dither import AddRemove, PureDP, ReusableHoldout, SparseVector, WrongType
from dither.learn.budget import GaussianBudget
from dither.ledger import Charge, Receipt
from dither.ledger.ledger import Allowance, LedgerScope
from dither.local.repetition import DeviceBudget
from dither.local.subset_selection import SubsetSelection
from dither.mechanisms.sparse_vector import SparseVectorSession
from dither.public_module import defining_module
from dither.randomness import SYSTEM
from dither.stateful import Stateful
from dither.stream import Histogram, RunningMean, RunningSum, SlidingWindow, StreamPlan, ThresholdAlarm
from dither.stream.mechanism import NoiseStream
from dither.stream.running import StreamSession
from support import refuses

_PLAN = StreamPlan(horizon=4, budget=PureDP(1))

MAKE: dict[type, Callable[[], Any]] = {
    SparseVectorSession: lambda: SparseVector(1, 1, limit=1).start(0),
    ReusableHoldout: lambda: ReusableHoldout([1.0], [1.0], bounds=(0, 1), epsilon=1, threshold=0, limit=1),
    Allowance: lambda: Allowance(Charge("dataset", "key", PureDP(1), Receipt(1, "00" * 32))),
    LedgerScope: lambda: LedgerScope(None, "dataset", None, None),  # type: ignore[arg-type]
    GaussianBudget: lambda: GaussianBudget(PureDP(1), AddRemove),
    DeviceBudget: lambda: DeviceBudget(Path(tempfile.mkdtemp()) / "device.sqlite", PureDP(1)),
    NoiseStream: lambda: _PLAN.start(bytes(32)),
    StreamSession: lambda: StreamSession(_PLAN, SYSTEM),
    RunningSum: lambda: RunningSum(horizon=4, epsilon=1),
    RunningMean: lambda: RunningMean(horizon=4, epsilon=1),
    SlidingWindow: lambda: SlidingWindow(window=2, horizon=4, epsilon=1),
    Histogram: lambda: Histogram(bins=2, horizon=4, epsilon=1),
    ThresholdAlarm: lambda: ThresholdAlarm(0, epsilon=1),
}
USE: dict[type, Callable[[Any], Any]] = {
    SparseVectorSession: lambda one: one.ask(10**6),
    ReusableHoldout: lambda one: one.ask(lambda x: x),
    Allowance: lambda one: one.spend(SparseVector(1, 1), lambda: 0, private=True),
    LedgerScope: lambda one: one.spend(SparseVector(1, 1), lambda: 0, private=True),
    GaussianBudget: lambda one: one.release([], 1),
    DeviceBudget: lambda one: one.report(SubsetSelection(4, 1), 1, question="q"),
    NoiseStream: lambda one: one.advance(),
    StreamSession: lambda one: one.release([1]),
    RunningSum: lambda one: one.release(1),
    RunningMean: lambda one: one.release(1),
    SlidingWindow: lambda one: one.release(1),
    Histogram: lambda one: one.release([1, 2]),
    ThresholdAlarm: lambda one: one.update(1),
}
ELSEWHERE = {
    "_Sketch": "a number set aside while it computes",
    "_BuffersState": "lives in a NoiseStream, which is Stateful",
    "_BandsState": "lives in a NoiseStream, which is Stateful",
    "_TreeState": "lives in a NoiseStream, which is Stateful",
    "_HalfTail": "the auditor's arithmetic about public numbers",
    "_SharedCoins": "the auditor's coins",
    "_Player": "the auditor's coins",
    "Watch": "what one run after the other left behind; nothing is drawn",
    "_Memory": "copies of what an audited function stores",
    "Sampler": "the auditor's processes",
    "Server": "it adds up reports, which anybody may see",
    "HeavyHitterSearch": "it adds up reports, which anybody may see",
    "Table": "holds the newest profile, which was released",
    "TableAccounts": "it remembers what it opened; the budget is in the ledger",
    "PrivateEstimator": "fit pays every time; what it keeps was released",
    "NonPrivate": "makes no promise",
    "PrivateClassifier": "fit pays every time; what it keeps was released",
    "_PlainMean": "makes no promise",
    "Secret": "a key on disk, read when asked for",
    "LedgerStore": "a connection: what was spent is in the database",
    "HeaderTimeoutProtocol": "one connection of a browser; it holds no budget",
    "Store": "a connection of the server to its database",
    "LazyUniform": "one draw, inside a release",
    "_Contest": "lives as long as one call",
    "Selection": "lives as long as one release of synthetic records, inside it",
    "GraphicalModel": "a fit to released numbers",
    "KeyStream": "starts anew after a fork, and SystemSource does not let it be copied",
    "Engine": "a connection to the data",
    "DuckDBEngine": "a connection to the data",
    "PostgreSQLEngine": "a connection to the data",
    "SparkEngine": "a connection to the data",
    "AskedPeople": "one question's contributors",
    "OutputFiles": "files that a command is about to write",
    "Total": "adds up what was spent, and allows nothing",
    "_Compilation": "a compiler at work",
    "PrivateBlock": "a parser at work",
    "_SelectRows": "a parser at work",
    "Progress": "what is shown while a question is answered",
    "AnnouncedLedger": "remembers that the ledger charged; the ledger counts",
    "Folder": "cards and ledgers that are open; the ledgers count",
    "Jobs": "questions under way; their charges are the ledger's",
    "Pool": "worker processes",
    "Process": "a worker process",
    "RateLimit": "requests in this process, not releases",
    "_Server": "whether a signal has stopped the server",
    "Supervisor": "when systemd heard of the server last",
    "Watchdog": "when systemd heard of the server last",
    "EventLog": "lines of the event log in this process, not releases",
    "Task": "how a task of a worker ended; its charge is the ledger's",
    "ImpatientProtocol": "how long a connection has been silent",
    "Worker": "tables that are open; their ledgers count",
    "ServerBackend": "remembers that its table was closed; the server charges",
}
"""Classes that change after they were made and promise nothing by what they remember."""


def modules() -> None:
    for module in pkgutil.walk_packages(dither.__path__, "dither."):
        importlib.import_module(module.name)


def below(kind: type) -> set[type]:
    return set().union(*({child} | below(child) for child in kind.__subclasses__()))


def name(kind: type) -> str:
    """A certificate may have executed a module anew, so that a class is there twice."""
    return f"{defining_module(kind)}.{kind.__qualname__}"


def changing() -> set[str]:
    """Names of classes with a method, other than those that make an object, that assigns to ``self``."""
    names = set()
    for path in Path(dither.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                methods = [item for item in node.body if isinstance(item, ast.FunctionDef)]
                if any(_assigns(method) for method in methods if method.name not in ("__init__", "__post_init__")):
                    names.add(node.name)
    return names


def _assigns(method: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
        for node in ast.walk(method)
    )


@pytest.mark.slow
def test_whatever_changes_is_stateful_or_says_why_not():
    modules()
    stateful = {kind.__name__ for kind in below(Stateful)}
    assert changing() - stateful - set(ELSEWHERE) == set(), "derive it from Stateful, or say why it need not be"
    assert not stateful & set(ELSEWHERE)


def test_every_stateful_class_is_tried_here():
    modules()
    mine = {name(kind) for kind in below(Stateful) if defining_module(kind).startswith("dither.")}
    assert mine == {name(kind) for kind in MAKE} == {name(kind) for kind in USE}


@pytest.mark.parametrize("kind", MAKE, ids=lambda kind: kind.__name__)
def test_no_copy_and_no_pickle(kind):
    one = MAKE[kind]()
    attempts = [copy.copy, copy.deepcopy, lambda x: copy.deepcopy([x])]
    attempts += [lambda x, p=protocol: pickle.dumps({"a": x}, protocol=p) for protocol in range(6)]
    for attempt in attempts:
        with refuses(WrongType, "expected the one that was started, got "):
            attempt(one)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MAKE, ids=lambda kind: kind.__name__)
def test_no_use_by_a_forked_process(kind):
    one = MAKE[kind]()
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other tests may have left threads
        child = os.fork()
    if child == 0:
        try:
            USE[kind](one)
            os.write(writer, b"answered")
        except WrongType as refusal:
            os.write(writer, str(refusal).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        said = stream.read().decode()
    os.waitpid(child, 0)
    assert "got a forked copy of it. Fix: " in said


def test_threads_together_get_no_more_answers_than_the_limit():
    for _ in range(20):
        session, barrier, above = SparseVector(1, 1, limit=1).start(-(10**9)), threading.Barrier(8), []

        def ask(session=session, barrier=barrier, above=above):
            barrier.wait()
            try:
                above.append(session.ask(0))
            except dither.InvalidArgument:
                above.append(False)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert above.count(True) == 1
