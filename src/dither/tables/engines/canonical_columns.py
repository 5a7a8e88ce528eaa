"""The columns of a source as the card has them: the part of an engine that writes them in its SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from dither.tables.card.model import ColumnCard, Type
from dither.tables.engines.conversions import parsed_text, unit_text
from dither.tables.query import nodes
from dither.tables.query.dialects import Dialect

if TYPE_CHECKING:
    from dither.tables.engines.base import SourceColumn


class CanonicalColumns(ABC):
    """What an engine makes of the columns of a source. No value makes it fail."""

    dialect: ClassVar[Dialect]

    @abstractmethod
    def _canonical(self, name: str, result: SourceColumn, type: Type) -> exp.Expr:
        """A column of the source as the card's type. Never fails on a value."""

    def _query(
        self,
        present: Mapping[str, SourceColumn],
        columns: Mapping[str, ColumnCard],
        raw: exp.Expr,
        unit: str | None = None,
    ) -> exp.Select:
        columns_sql = [
            exp.alias_(
                self._unit_column(name, present[name], column)
                if name == unit
                else self._typed_column(name, present[name], column),
                exp.to_identifier(name, quoted=True),
            )
            for name, column in columns.items()
        ]
        return exp.select(*columns_sql).from_(raw)

    def _typed_column(self, name: str, present: SourceColumn, column: ColumnCard) -> exp.Expr:
        """A column as the card's type; a text that is too long for every function of every engine is NULL."""
        if column.format is not None:
            text = self._typed_column(name, present, ColumnCard("text"))
            return parsed_text(text, column.format, column.type, self.dialect)
        type = column.type
        value = self._canonical(name, present, type)
        return (
            nodes.limit_text(value, nodes.cast(nodes.column(name), "text"), self.dialect) if type == "text" else value
        )

    def _unit_column(self, name: str, present: SourceColumn, column: ColumnCard) -> exp.Expr:
        """The column that names the person: of every value but NULL and NaN a value of its own."""
        if column.type != "text":
            return self._typed_column(name, present, column)
        is_double = present.types[:1] == ("number",) and "integer" in present.types
        canonical = self._canonical(name, present, "text")
        return unit_text(nodes.column(name), canonical, self.dialect, is_double=is_double)
