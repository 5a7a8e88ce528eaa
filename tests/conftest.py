"""Make ``tests/support.py`` importable under pytest's importlib mode, and give tests a fast folder, enough time and one
thread each."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings

# Matrices of the tests are small: threads of the linear algebra only wait for each other, and for other test processes.
for _threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

sys.path.insert(0, str(Path(__file__).parent))

# a busy machine is no fault of the code
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

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
