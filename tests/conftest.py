"""Make ``tests/support.py`` importable under pytest's importlib mode, and let no property test fail for being slow."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# a busy machine is no fault of the code
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

SLOW = (
    "accounting/test_accountants.py",
    "accounting/test_distribution.py",
    "audit/test_adversary.py",
    "audit/test_broken.py",
    "audit/test_measure",
    "audit/test_suite.py",
    "claims/",
    "cli/test_demo.py",
    "cli/test_tables_cli.py",
    "learn/test_adversary.py",
    "learn/test_audit.py",
    "learn/test_peer_faults.py",
    "ledger/survive/",
    "ledger/test_accounts.py",
    "ledger/test_chain.py",
    "ledger/test_charging.py",
    "tables/test_bounding.py",
    "tables/test_engine",
    "tables/test_session",
    "tables/test_sql_refusals.py",
)
"""Whole files that `make check` leaves to `make test`."""


def pytest_collection_modifyitems(items):
    for item in items:
        if any(part in item.nodeid for part in SLOW):
            item.add_marker(pytest.mark.slow)
