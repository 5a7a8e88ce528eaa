"""Every test draws words of its own, the same in each run; those that draw real ones say how rarely they fail."""

from __future__ import annotations

import os
import random
import re
import secrets
import shutil
import subprocess
import sys
import threading
import uuid
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from seeded_entropy import VARIABLE, Draws

import dither as dp
from dither.randomness import SYSTEM, SystemSource
from dither.randomness.source import is_secure
from support_seeding import ENTROPY, Seeding, is_statistical

TESTS = Path(__file__).parent

DRAWN = """
import os, random, secrets, subprocess, sys, threading, uuid, warnings

import numpy as np
import pytest

import dither as dp

AT_IMPORT = secrets.token_hex(8)
GENERATORS = np.random.default_rng(), random.Random(5)
ONE, OTHER = GENERATORS
CHILD = (
    "import dither as dp, multiprocessing, secrets, random;"
    "print(dp.randomness.SYSTEM.word(), secrets.token_hex(8), dp.Laplace(1, 1).release(0.0))"
)


def say(*values):
    print("DRAWN", os.environ["PYTEST_CURRENT_TEST"].split()[0], *values)


def in_thread():
    words = []
    thread = threading.Thread(target=lambda: words.append(dp.randomness.SYSTEM.word()))
    thread.start()
    thread.join()
    return words[0]


def in_fork():
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        os.write(writer, str(dp.randomness.SYSTEM.word()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return os.read(reader, 100).decode()


@pytest.fixture(scope="session")
def shared():
    return secrets.token_hex(8)


@pytest.fixture
def own():
    return secrets.token_hex(8)


def test_words(own, shared):
    say(AT_IMPORT, own, shared)
    say(dp.randomness.SYSTEM.word(), dp.randomness.SystemSource().word())
    say(in_thread(), in_thread(), in_fork(), in_fork())
    say(os.urandom(4).hex(), secrets.token_hex(4), uuid.uuid4(), random.SystemRandom().random(), random.random())
    say(np.random.default_rng().integers(1 << 60), np.random.random())


def test_children():
    for _ in range(2):
        say(subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True).stdout)


def test_others(shared):
    say(shared, dp.randomness.SYSTEM.word())


@pytest.mark.parametrize("number", [0, 1])
def test_shared_generators(number):
    say(ONE.integers(1 << 60), OTHER.random())


@pytest.mark.statistical(alpha=1e-9)
def test_real(shared):
    say(dp.randomness.SYSTEM.word(), secrets.token_hex(8))
    say(subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True).stdout)
"""


def run_pytest(folder: Path, text: str, *options: str) -> tuple[int, str]:
    """Run a file of tests in a folder and process of its own."""
    folder.mkdir(exist_ok=True)
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    statistical\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-s", "-p", "support_seeding", "-p", "no:cacheprovider", *options]
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE} | {"PYTHONPATH": paths}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, env=environment)
    return done.returncode, done.stdout + done.stderr


def drawn(folder: Path, *options: str) -> tuple[dict[str, list[str]], str]:
    """What the tests of ``DRAWN`` printed, by test."""
    code, output = run_pytest(folder, DRAWN, *options)
    assert code == 0, output
    result: dict[str, list[str]] = {}
    for name, line in re.findall(r"DRAWN test_it\.py::(\w+)\S* (.*)", output):
        result.setdefault(name, []).append(line)
    return result, output


def test_a_test_draws_the_same_words_in_every_run_and_order(tmp_path: Path) -> None:
    names = ["test_words", "test_children", "test_others", "test_shared_generators", "test_real"]
    one, output = drawn(tmp_path / "one", "--fresh-randomness")
    assert [*one] == names
    base = re.search(r"--base-seed=\w{16}", output)
    assert base is not None
    other, _ = drawn(tmp_path / "other", base[0], *(f"test_it.py::{name}" for name in reversed(names)))
    assert [*other] == names[::-1]
    for name in names[:-1]:
        assert one[name] == other[name]
    assert not {*one["test_real"]} & {*other["test_real"]}

    first, second = one.pop("test_shared_generators")
    assert first == second

    # no two of them are the same: children, threads and forks do not share their words
    everything = [word for name in names[:3] for line in one[name] for word in line.split() if len(word) > 7]
    everything.remove(one["test_words"][0].split()[2])  # the shared fixture, seen by two tests
    assert len({*everything}) == len(everything) > 20


def test_another_base_gives_other_words() -> None:
    words = set()
    for seeding in (Seeding(""), Seeding("a"), Seeding("a")):
        with seeding.drawing("a test"):
            words.add((SYSTEM.word(), random.random(), np.random.random()))
        shutil.rmtree(seeding.children)
    assert len(words) == 2


@pytest.mark.parametrize(
    "mark",
    [
        pytest.mark.statistical,
        pytest.mark.statistical(1e-9),
        pytest.mark.statistical(alpha=1e-8),
        pytest.mark.statistical(alpha=-1e-9),
        pytest.mark.statistical(alpha=float("nan")),
        pytest.mark.statistical(alpha=None),
        pytest.mark.statistical(alpha=True),
        pytest.mark.statistical(alpha=1e-9, n=1),
    ],
    ids=lambda mark: f"{mark.args}{mark.kwargs}",
)
def test_a_false_alarm_rate_is_declared_and_low(mark: pytest.MarkDecorator) -> None:
    item = SimpleNamespace(nodeid="test_it.py::test_it", iter_markers=lambda _: iter([mark.mark]))
    with pytest.raises(pytest.UsageError, match=r"test_it: expected .*statistical\(alpha=…\) .* at most 1e-09"):
        is_statistical(item)  # type: ignore[arg-type]


def test_a_false_alarm_rate_is_refused_before_any_test_runs(tmp_path: Path) -> None:
    marked = "@pytest.mark.statistical(alpha=1e-8)\ndef test_it(): ..."
    text = f"import pytest\ndef test_first(): raise SystemExit('ran')\n{marked}\n"
    code, output = run_pytest(tmp_path, text)
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "test_it.py::test_it: expected @pytest.mark.statistical(alpha=…)" in output


def test_the_source_is_the_one_of_production() -> None:
    """Its type and what the audit says of it are unchanged; its keys alone are seeded."""
    assert ENTROPY.draws is not None
    assert is_secure(None)
    assert type(SYSTEM) is SystemSource
    assert dp.audit.certify(dp.Laplace(1, 1)).epsilon == 1


def test_what_python_draws_comes_from_the_draws_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way to the operating system's entropy that the code and its tests use."""

    def twice(draw: object) -> list[object]:
        result = []
        for _ in range(2):
            monkeypatch.setattr(ENTROPY, "draws", Draws("a test"))
            monkeypatch.setattr(SYSTEM, "_local", threading.local())
            result.append(draw())  # type: ignore[operator]
        return result

    for draw in (
        lambda: os.urandom(16), lambda: secrets.token_hex(16), lambda: secrets.token_urlsafe(16), uuid.uuid4,
        lambda: secrets.randbits(64), random.SystemRandom().random, lambda: np.random.default_rng().integers(1 << 60),
        SYSTEM.word, lambda: SystemSource().word(), lambda: dp.Laplace(1, 1).release(0.0),
    ):  # fmt: skip
        one, other = twice(draw)
        assert one == other


@pytest.mark.statistical(alpha=0)  # it fails with probability 2^-127
def test_a_statistical_test_draws_from_the_operating_system() -> None:
    assert ENTROPY.draws is None
    assert VARIABLE not in os.environ
    assert os.urandom(16) != os.urandom(16)


def test_a_forked_child_has_words_of_its_own() -> None:
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other tests may have left threads
        child = os.fork()
    if child == 0:
        try:
            os.write(writer, os.urandom(16))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        assert stream.read() not in (b"", os.urandom(16))
