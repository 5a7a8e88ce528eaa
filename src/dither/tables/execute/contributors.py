"""Whom a question is about, where people have accounts: they pay for it, and only who paid is asked about."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dither.tables.compile import statements
from dither.tables.compile.context import StatementContext


class Contributors:
    """Everybody with a row that is asked about: they take part, and pay for it. Read only when they have to."""

    def __init__(self, engine: Any, frames: Sequence[StatementContext]) -> None:
        self._engine, self._frames = engine, frames
        self._column: Any = None
        self._staged: Any = None

    def read(self) -> Any:
        """The column of their keys. Rows are read: the ledger charges for it, whether that fails or not."""
        columns = [self._engine.run(statements.contributors(frame)).column(0) for frame in self._frames]
        self._column = columns[0]
        if len(columns) > 1:  # whoever is asked about by one of the aggregations pays for all of them
            import pyarrow as pa

            chunks = [chunk for column in columns for chunk in column.chunks]
            self._column = pa.chunked_array([pa.chunked_array(chunks, columns[0].type).unique()])
        return self._column

    def remaining(self, kept: Any) -> list[StatementContext]:
        """The same question about those only who paid: not about people who came since, or could not pay."""
        import pyarrow as pa

        name = f"dither_paying_{secrets.token_hex(8)}"
        self._staged = self._engine.stage(name, pa.table({"u": self._column.filter(pa.array(kept))}))
        paying = [statements.only_people_of(frame, self._staged) for frame in self._frames]
        return [
            replace(frame, tables={**frame.tables, **rows}) for frame, rows in zip(self._frames, paying, strict=True)
        ]

    def drop(self) -> None:
        """Remove the table of those who paid: nobody may read it once the question is answered."""
        if self._staged is not None:
            self._engine.drop(self._staged)
            self._staged = None
