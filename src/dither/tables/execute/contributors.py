"""Whom a question is about, where people have accounts: they pay for it, and only who paid is asked about."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any

from dither.tables.compile import expressions
from dither.tables.compile.statements import Frame
from dither.tables.execute import incidents


class Contributors:
    """Everybody with a row that is asked about: they take part, and pay for it. Read only when they have to."""

    def __init__(self, engine: Any, frame: Frame, log: incidents.IncidentLog) -> None:
        self._engine, self._frame, self._log = engine, frame, log
        self._column: Any = None
        self._staged: Any = None

    def __call__(self) -> Any:
        """The column of their keys. Rows are read: the ledger charges for it, whether that fails or not."""
        return incidents.shielded(self._read, self._log, f"{self._frame.card.name}: whom a question is about")

    def _read(self) -> Any:
        sql = f"SELECT DISTINCT u FROM ({self._frame.everywhere.source({})}) AS r"
        self._column = self._engine.run(self._frame.phrases.render(sql)).column(0)
        return self._column

    def remaining(self, kept: Any) -> Frame:
        """The same question about those only who paid: not about people who came since, or could not pay."""
        import pyarrow as pa

        name = f"dither_paying_{secrets.token_hex(8)}"
        self._staged = self._engine.stage(name, pa.table({"u": self._column.filter(pa.array(kept))}))
        beside = self._staged.sql("duckdb")
        unit = expressions.name(self._frame.card.unit or "")
        table = self._frame.tables[""]
        paying = f"(SELECT o.* FROM {table} AS o WHERE EXISTS (SELECT 1 FROM {beside} AS x WHERE x.u = o.{unit}))"
        return replace(self._frame, tables={**self._frame.tables, "": paying})

    def drop(self) -> None:
        """Remove the table of those who paid: nobody may read it once the question is answered."""
        if self._staged is not None:
            self._engine.drop(self._staged)
            self._staged = None
