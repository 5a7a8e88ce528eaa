"""``python -m dither`` is the command line."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dither as dp


@pytest.mark.slow
def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "dither", "--version"], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{dp.__version__}\n", "")
