"""The suite of ``support_engines`` on DuckDB and PostgreSQL; Spark has a file of its own, to start it once."""

from __future__ import annotations

import pytest

from support_engines import Primitives

pytestmark = pytest.mark.slow


class TestDuckDB(Primitives):
    kind = "duckdb"


class TestPostgreSQL(Primitives):
    kind = "postgres"
