"""A pytest plugin: no test can fail by chance unless it says how rarely.

Every test, doctest, collected module and shared fixture draws from entropy that is a function of its own name: the same
words whichever tests ran before and in whichever process. Generators that a module shares among its tests begin anew
for each of them. ``dither.randomness.SYSTEM`` remains the secure source, and
its keys come from :class:`seeded_entropy.SeededEntropy` instead of the operating system.

A test draws from the operating system only where it is marked ``@pytest.mark.statistical(alpha=1e-9)``: ``alpha`` is
the probability that it fails although the code is right, at most 1e-9, and its computation stands beside the test.

``--fresh-randomness`` derives all seeds from a random base, and prints it; ``--base-seed=BASE`` runs them once more.
"""

from __future__ import annotations

import copy
import hashlib
import os
import random
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent / "seeded"))

from seeded_entropy import VARIABLE, Draws, SeededEntropy

from dither.randomness import SYSTEM

FOLDER = Path(__file__).parent / "seeded"
MAX_ALPHA = 1e-9
ENTROPY = SeededEntropy()

# Sets have the same order in every process that is started from here, workers of pytest-xdist included.
os.environ.setdefault("PYTHONHASHSEED", "0")


class Seeding:
    """The seeds of one run, all of them derived from ``base``."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.children = tempfile.mkdtemp(prefix="seeded-")

    def _enter(self, draws: Draws | None, streams: threading.local) -> None:
        ENTROPY.draws = draws
        SYSTEM._local = streams  # a stream that another test began would go on with its words
        if draws is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = f"{self.children}:{draws.name}"

    @contextmanager
    def drawing(self, name: str | None, module: object = None) -> Iterator[None]:
        """Whatever is drawn inside is a function of this name; None is the operating system's entropy. Generators of
        the module are as they were after its import."""
        before, generators = (ENTROPY.draws, SYSTEM._local), _generators(module)
        states = random.getstate(), np.random.get_state(), [copy.deepcopy(_state(one)) for one, _ in generators]
        digest = hashlib.sha256(f"{self.base}\n{name}".encode(errors="surrogatepass")).hexdigest()[:32]
        self._enter(None if name is None else Draws(digest), threading.local())
        random.seed(None if name is None else digest)
        np.random.seed(None if name is None else int(digest[:8], 16))
        for generator, start in generators:
            _set_state(generator, start)
        try:
            yield
        finally:
            self._enter(*before)
            random.setstate(states[0])
            np.random.set_state(states[1])
            for (generator, _), state in zip(generators, states[2], strict=True):
                _set_state(generator, state)


_GENERATORS: dict[int, list[tuple[Any, Any]]] = {}


def _generators(module: object) -> list[tuple[Any, Any]]:
    """The generators of random numbers that a module of tests shares among them, with the states they began with: what
    one test draws would depend on those that ran before it."""
    if module is None:
        return []
    if id(module) not in _GENERATORS:  # seen by the first of its tests
        shared = {id(value): value for value in vars(module).values() if _state(value) is not None}.values()
        _GENERATORS[id(module)] = [(value, copy.deepcopy(_state(value))) for value in shared]
    return _GENERATORS[id(module)]


def _state(value: Any) -> Any:
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    return value.getstate() if isinstance(value, random.Random) and type(value) is not random.SystemRandom else None


def _set_state(generator: Any, state: Any) -> None:
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    else:
        generator.setstate(state)


_SEEDING = pytest.StashKey[Seeding]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fresh-randomness", action="store_true", help="derive all seeds from a random base; print it")
    parser.addoption("--base-seed", default="", help="derive all seeds from this base")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.fresh_randomness and not config.option.base_seed:
        config.option.base_seed = ENTROPY.genuine(8).hex()  # workers of pytest-xdist are given the option
    config.stash[_SEEDING] = Seeding(config.option.base_seed)
    ENTROPY.install()
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(FOLDER) not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(FOLDER), *paths]))


def pytest_unconfigure(config: pytest.Config) -> None:
    if _SEEDING in config.stash:
        ENTROPY.remove()
        shutil.rmtree(config.stash[_SEEDING].children, ignore_errors=True)


def pytest_report_header(config: pytest.Config) -> list[str]:
    base = config.option.base_seed
    return [f"seeds: --base-seed={base}"] if base else []


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The base once more, where ``-q`` left the header out."""
    for line in pytest_report_header(config):
        terminalreporter.write_line(line)


def is_statistical(item: pytest.Item) -> bool:
    """Whether a test is marked as one that draws real randomness, with a false-alarm rate that is low enough."""
    marks = [*item.iter_markers("statistical")]
    for mark in marks:
        alpha = mark.kwargs.get("alpha")
        declared = not mark.args and [*mark.kwargs] == ["alpha"] and isinstance(alpha, int | float)
        if not declared or isinstance(alpha, bool) or not 0 <= alpha <= MAX_ALPHA:
            raise pytest.UsageError(
                f"{item.nodeid}: expected @pytest.mark.statistical(alpha=…) with an alpha of at most {MAX_ALPHA:g}, "
                f"got {mark.args or mark.kwargs}. Fix: compute how often the test fails by chance, and widen its bands."
            )
    return bool(marks)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        is_statistical(item)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[Any]:
    with collector.config.stash[_SEEDING].drawing(f"collect {collector.nodeid}"):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    name = None if is_statistical(item) else f"test {item.nodeid}"
    with item.config.stash[_SEEDING].drawing(name, getattr(item, "module", None)):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[Any]:
    """What tests share is the same, whichever of them asks for it first."""
    if fixturedef.scope == "function":
        return (yield)
    name = f"fixture {request.node.nodeid} {fixturedef.baseid} {fixturedef.argname} {request.param_index}"
    module = None if fixturedef.scope in ("session", "package") else request.module
    with request.config.stash[_SEEDING].drawing(name, module):
        return (yield)
