"""Make ``tests/support.py`` importable under pytest's importlib mode, and give tests a fast folder, enough time, one
thread each, interrupts that work and the same examples in every run."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Matrices of the tests are small: threads of the linear algebra only wait for each other, and for other test processes.
for _threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

# A shell that starts the tests in the background has them ignore interrupts, and every process that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

sys.path.insert(0, str(Path(__file__).parent))

# the start files of processes that tests start: importing them here would seed this one
collect_ignore = ["seeded"]

# a busy machine is no fault of the code, and the same examples are tried in every run
settings.register_profile(
    "house", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, database=None
)
# for a search: fresh examples, and ten times as many of them
settings.register_profile("long", settings.get_profile("house"), derandomize=False, print_blob=True)
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "house")
settings.load_profile(_PROFILE)


# The site takes the longest, and the pictures of its gallery are those that the tests of the examples made before.
_FIRST = ("tests/examples/test_examples.py::", "tests/docs/test_built_site.py::")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no worker waits for it at the end; workers steal tests from the end of
    each other's lists, so that those at the beginning stay in one of them.

    In the long profile, multiply the examples of tests that say how many they try, too.
    """
    items.sort(key=lambda item: next((n for n, path in enumerate(_FIRST) if item.nodeid.startswith(path)), len(_FIRST)))
    if _PROFILE == "long":
        for test in {getattr(item, "function", None) for item in items}:
            given = getattr(test, "_hypothesis_internal_use_settings", None)
            if given is not None:
                test._hypothesis_internal_use_settings = settings(given, max_examples=10 * given.max_examples)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays to the end: the search for garbage, which takes a tenth of the time of collecting, waits
    for it, and never looks at it again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # at the end of the process all of it is released


_MEMORY = Path("/dev/shm")
_ENOUGH_BYTES = 6 << 30


def _use_memory_for_temporary_files() -> None:
    """Thousands of durable commits on a disk take minutes of waiting and show no more than the same on a file system in
    memory. A folder named by TMPDIR is used instead, and the disk where memory is short.
    """
    if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ENOUGH_BYTES:
        os.environ["TMPDIR"] = str(_MEMORY)
        tempfile.tempdir = None


_use_memory_for_temporary_files()
