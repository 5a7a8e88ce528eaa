"""Processes are told apart: a forked child, and a clone that Python's hooks did not see."""

from __future__ import annotations

import os

import pytest

from dither.stateful import process


def test_one_process_is_the_same_throughout() -> None:
    assert process() == process()


def test_a_changed_process_number_alone_is_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    before = process()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert process() != before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_is_another_process() -> None:
    before, (read, write) = process(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, "{} {}".format(*process()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    number, forks = (int(part) for part in os.read(read, 100).split())
    assert number == child
    assert forks == before[1] + 1
    assert process() == before
