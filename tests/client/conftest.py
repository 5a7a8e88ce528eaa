"""One server for all tests of clients: each adds tables of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from client.served import Served, serving


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served")) as served:
        yield served
