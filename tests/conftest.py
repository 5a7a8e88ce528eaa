"""Make ``tests/support.py`` importable under pytest's importlib mode, and let no property test fail for being slow."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# a busy machine is no fault of the code
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")
