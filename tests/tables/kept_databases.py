"""Databases for SQL on noisy answers that many questions share, for tests that ask thousands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from dither.tables.query.postprocess import _EVERY, IsolatedDatabase


@contextmanager
def databases_kept() -> Iterator[None]:
    """Keep the databases that answers are post-processed in, which take longer to open than anything else; each
    question still finds an empty one."""
    kept: dict[bool, Any] = {}
    opening = IsolatedDatabase.__init__

    def open_once(self: Any, post: Any, *columns: Any, strict: bool = False, wide: bool = False, **_: Any) -> None:
        if strict not in kept:
            opening(self, post, *columns, strict=strict)
            self._timer.cancel()
            kept[strict] = self._connection
        self._wide = wide
        self._post, self._columns = post, dict(zip(post.tables, map(dict, columns), strict=True))
        self._connection = kept[strict]

    def empty(self: Any) -> None:
        for place, name in enumerate(self._columns):
            self._connection.execute(f'DROP TABLE IF EXISTS "{name}"')
            self._connection.execute(f"DROP TABLE IF EXISTS {_EVERY}_{place}")

    try:
        with patch.multiple(IsolatedDatabase, __init__=open_once, close=empty):
            yield
    finally:
        for connection in kept.values():
            connection.close()
