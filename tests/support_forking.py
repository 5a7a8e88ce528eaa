"""Processes that import nothing: one interpreter imports what they need, and forks each of them.

A process that a test kills at some step takes milliseconds to come there and seconds to import. Nothing is open at a
fork, and no other thread runs; each process is seeded by its test, as one that was started by it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from typing import Any

from seeded_entropy import VARIABLE, seed_child


class Forking:
    """An interpreter that has run ``prepared``, and runs ``code`` in a fork of its own for each call."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, *arguments: str) -> int:
        """Run the code with these arguments as ``sys.argv[1:]``; its status, which is -N where signal N ended it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([os.environ.get(VARIABLE), arguments]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@contextlib.contextmanager
def forking(prepared: str, code: str) -> Iterator[Forking]:
    """Such an interpreter, which ends with the block."""
    command = [sys.executable, __file__, prepared, code]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        yield Forking(process)


def _serve(prepared: str, code: str) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(prepared, "prepared", "exec"), names)
    compiled = compile(code, "code", "exec")
    for line in sys.stdin:
        seed, arguments = json.loads(line)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                if seed is not None:
                    os.environ[VARIABLE] = seed
                    seed_child()
                sys.argv[1:] = arguments
                exec(compiled, names)
                status = 0
            except BaseException:
                traceback.print_exc()
            os._exit(status)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
