"""Everything that a caller observes is recorded: results, errors, warnings, and what is left behind."""

from __future__ import annotations

import asyncio
import decimal
import logging
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import dither as dp
from dither.audit import measure, replay
from dither.audit.blackbox.views import collect_outputs
from dither.audit.outputs.canonical import Raised, Warned, digest
from dither.audit.outputs.observe import Watch, observe, observe_each, observe_runs, snapshot


def warn_and_return(x, category=UserWarning):
    warnings.warn(f"{x} values", category, stacklevel=2)
    return x


def warn_and_fail(x):
    warnings.warn("about to fail", RuntimeWarning, stacklevel=2)
    raise ValueError(str(x))


def test_results_errors_and_warnings():
    assert observe(abs, -1) == 1
    assert observe(warn_and_return, 3) == Warned(3, (("UserWarning", "3 values"),))
    assert observe(warn_and_fail, 3) == Warned(Raised("ValueError", "3"), (("RuntimeWarning", "about to fail"),))
    assert observe(lambda: (value for value in (1, 2))) == [1, 2]
    with pytest.raises(KeyboardInterrupt):
        observe(lambda: (_ for _ in ()).throw(KeyboardInterrupt))


@pytest.mark.parametrize("kind", [asyncio.CancelledError, GeneratorExit, SystemExit, type("Own", (BaseException,), {})])
def test_every_error_is_an_output(kind):
    """But for an interrupt from the keyboard."""

    def fails(x):
        raise kind(len(x))

    assert observe(fails, [1]).kind == kind.__qualname__
    assert replay(fails, [1, 2], [1]).findings
    assert not replay(lambda x: fails(x[:1]), [1, 2], [1]).findings


def test_a_warning_is_recorded_in_every_run():
    assert observe_runs(warn_and_return, 1, 3) == [Warned(1, (("UserWarning", "1 values"),))] * 3


@pytest.mark.parametrize("category", [DeprecationWarning, ResourceWarning, ImportWarning])
def test_categories_that_python_hides_are_not_recorded(category):
    assert observe(warn_and_return, 1, category) == 1


def test_filters_of_the_caller_are_restored():
    before = list(warnings.filters)
    observe(warn_and_return, 1)
    assert warnings.filters == before


def test_warnings_are_part_of_the_canonical_form():
    plain, warned, other = 1.0, Warned(1.0, (("UserWarning", "a"),)), Warned(1.0, (("UserWarning", "b"),))
    assert len({digest(plain), digest(warned), digest(other)}) == 3
    outputs = collect_outputs([plain, warned])
    assert outputs.column("").tolist() == [1.0, 1.0]
    assert outputs.column(" warnings type kind").tolist() == ["absent", "tuple"]


def zeros_warn(x):
    """NumPy warns where the data contain a zero; the result is noise."""
    np.divide(1.0, x)
    return dp.Laplace(1, 0.01).release(0.0)


@pytest.mark.parametrize("leaking", [zeros_warn, lambda x: warn_and_return(int(x.min())) * 0])
def test_a_warning_on_one_data_set_only_is_a_leak(leaking):
    x, neighbor = np.array([1.0, 2.0]), np.array([1.0, 0.0])
    assert measure(leaking, x, neighbor, claim=1, trials=500, confidence=1 - 1e-9).refuted
    assert "the warnings differ" in str(replay(leaking, x, neighbor))


def test_the_same_warning_on_both_is_no_leak():
    def honest(x):
        warnings.warn("experimental", stacklevel=2)
        return dp.Laplace(1, 0.01).release(float(len(x)))

    x, neighbor = np.array([1.0, 2.0]), np.array([1.0])
    assert not measure(honest, x, neighbor, claim=1, trials=500, confidence=1 - 1e-9).refuted
    assert replay(honest, x, neighbor).passed


def test_a_warning_that_is_issued_once_is_no_leak():
    issued = []

    def warns_once(x):
        if not issued:
            issued.append(True)
            warnings.warn("loading", stacklevel=2)
        return dp.Laplace(1, 0.01).release(float(len(x)))

    assert replay(warns_once, [1, 2], [1]).passed


def test_features_replace_warnings():
    assert measure(warn_and_return, 0, 1, features=lambda _: 0, trials=200).epsilon == 0


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

    put_back = snapshot(store)
    store()
    put_back()
    assert (memory, calls) == ({"n": 0}, [1])


def test_a_variable_that_had_no_value_has_none_again():
    def store():
        nonlocal late
        late = 1

    put_back = snapshot(store)
    late = 2
    store()
    put_back()
    with pytest.raises(NameError):
        print(late)


def test_nothing_is_recorded_where_nothing_happens():
    assert observe(len, [1, 2]) == 2
