"""What the arguments of :func:`dither.open` say about columns, where there is no card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dither.errors import InvalidArgument
from dither.tables.card.model import ColumnCard, PrivateTable, Type, column_card
from dither.tables.engines import connect


@dataclass(frozen=True)
class StatedColumns:
    """What the arguments of :func:`open` say about columns, by name: ``amount`` of any table, ``visits.amount`` of
    one."""

    unit: str | Mapping[str, str] | None
    bounds: Mapping[str, Any]
    keys: Mapping[str, Any]
    types: Mapping[str, Type]

    def private_table(self, source: object, table: str | None) -> PrivateTable:
        """A table as its schema and the arguments describe it."""
        from dither.tables.builder.expressions import distinct_keys

        unit = self._unit_of(table)
        types = self._of_table(self.types, table)
        with connect(source, types=types) as engine:
            present = engine.source_columns()
            schema = engine.schema(unit) | {column: type for column, type in types.items() if column in present}
        if unit is not None and unit not in schema:
            raise InvalidArgument("column", f"one of {', '.join(schema)}", unit, "correct the name")
        bounds, keys = self._of_table(self.bounds, table), self._of_table(self.keys, table)
        columns = {
            column: column_card(
                column,
                kind,
                bounds.get(column),
                None if column not in keys else distinct_keys(keys[column], f"keys of {column}"),
            )
            for column, kind in schema.items()
        }
        return PrivateTable("", columns, unit)

    def _unit_of(self, table: str | None) -> str | None:
        if not isinstance(self.unit, Mapping):
            return self.unit
        if table is None or table not in self.unit:
            fix = "name the column of each table that says which person a row is about"
            raise InvalidArgument("unit", f"a column of {table or 'the table'}", "none", fix)
        return self.unit[table]

    @staticmethod
    def _of_table(stated: Mapping[str, Any], table: str | None) -> dict[str, Any]:
        """What is stated of the columns of a table, by their names; what is stated of it alone goes before."""
        if table is None:
            return dict(stated)
        start = f"{table}."
        return dict(stated) | {name[len(start) :]: item for name, item in stated.items() if name.startswith(start)}

    def check_names(self, tables: Mapping[str, Mapping[str, ColumnCard]]) -> None:
        """Refuse what is stated of a column that no table has."""
        known = {name for columns in tables.values() for name in columns}
        known |= {f"{table}.{name}" for table, columns in tables.items() if table for name in columns}
        for name in sorted({*self.bounds, *self.keys, *self.types} - known):
            raise InvalidArgument("column", f"one of {', '.join(sorted(known))}", name, "correct the name")
