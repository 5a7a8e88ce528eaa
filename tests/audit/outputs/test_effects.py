"""What a function leaves behind is recorded, and everything around it is as it was."""

from __future__ import annotations

import decimal
import logging
import os
import sys
from pathlib import Path

import numpy as np

from dither.audit.outputs.effects import Watch, remembered
from dither.audit.outputs.observe import observe, observe_each

SEEN: list[object] = []


def left(effect):
    """The names of what an effect leaves behind."""
    with Watch(effect) as watch:
        return {name for name, _ in watch.run(effect)[1]}


def test_streams_are_captured_at_every_level():
    with Watch(print) as watch:
        for write in (lambda: print("a"), lambda: os.write(1, b"a\n"), lambda: sys.stdout.buffer.write(b"a\n")):
            assert watch.run(write)[1] == (("standard output", "a\n"),)
        assert watch.run(lambda: None)[1] == ()
        assert watch.run(lambda: sys.stderr.write("b") and None)[1] == (("standard error", "b"),)


def test_everything_around_is_put_back():
    streams, handlers = (sys.stdout, sys.stderr), [*logging.root.handlers]
    before = dict(os.environ), Path.cwd(), np.geterr(), decimal.getcontext().prec

    def restless():
        os.environ["DITHER_TEST"] = "1"
        os.chdir("/")
        np.seterr(all="ignore")
        decimal.getcontext().prec = 3
        logging.info("root gets a handler")

    assert left(restless) == {"environment", "directory", "modes", "log"}
    assert (dict(os.environ), Path.cwd(), np.geterr(), decimal.getcontext().prec) == before
    assert ((sys.stdout, sys.stderr), logging.root.handlers) == (streams, handlers)


def test_files_are_compared_by_what_was_added(tmp_path):
    path = tmp_path / "log.txt"

    def append():
        with path.open("a") as file:
            file.write("x")

    with Watch(append) as watch:
        assert watch.run(append)[1] == watch.run(append)[1] == (("file 0", (str(path), b"x")),)


def test_what_a_function_stores_is_seen_in_every_run():
    def store(x):
        SEEN.append(x)

    observed = observe_each(store, [1, 1, 2])
    kept = [[leaf.value for _, _, leaf in dict(item.effects)["memory global SEEN items"].leaves] for item in observed]
    assert kept[0] == kept[1] != kept[2]
    SEEN.clear()


def test_what_a_function_stores_is_put_back():
    memory, calls = {"n": 0}, [1]

    def store():
        memory["n"] += 1
        calls.append(2)

    put_back = remembered(store)
    store()
    put_back()
    assert (memory, calls) == ({"n": 0}, [1])


def test_nothing_is_recorded_where_nothing_happens():
    assert observe(len, [1, 2]) == 2
