"""``python -m dither`` is the command line."""

from __future__ import annotations

import subprocess
import sys

import dither as dp


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "dither", "--version"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{dp.__version__}\n", "")
