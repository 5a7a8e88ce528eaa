"""An answer: a noisy table with its errors, its cost, and what is left."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from os import PathLike
from typing import Any

from dither.comparison import unhashable
from dither.errors import InvalidArgument, message
from dither.extras import need
from dither.homes import public_in
from dither.ledger.report import safe
from dither.tables.card.model import Type
from dither.terminal import printable


@public_in("dither")
@unhashable
@dataclass(frozen=True)
class Answer:
    """A released table.

    ``columns`` are the names, ``rows`` the values, ``errors`` for each noisy column how far each value may be off with
    95 % confidence (None where no such number can be had without another release). ``cost`` is what it cost, ``left``
    what the dataset has left. ``len(answer)`` is the number of rows, and iteration gives each row as a dict.

    >>> answer = Answer(("region", "n"), ("text", "integer"), (("north", 41),), {"n": (6.0,)}, "ε = 0.5")
    >>> answer["n"], answer.error("n"), answer.dicts()
    ([41], [6.0], [{'region': 'north', 'n': 41}])
    >>> len(answer), [row["n"] for row in answer]
    (1, [41])
    """

    columns: tuple[str, ...]
    types: tuple[Type, ...]
    rows: tuple[tuple[Any, ...], ...]
    errors: Mapping[str, tuple[float | None, ...]]
    cost: str
    notes: tuple[str, ...] = ()
    left: str | None = field(default=None, compare=False)
    replayed: bool = field(default=False, compare=False)
    receipt: str = field(default="", compare=False)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, each as a dict, as :meth:`dicts` has them."""
        return iter(self.dicts())

    def __getitem__(self, name: str) -> list[Any]:
        """One column, as a list."""
        if name not in self.columns:
            raise InvalidArgument(message("column", f"one of {', '.join(self.columns)}", name, "correct the name"))
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    def error(self, name: str) -> list[float | None]:
        """How far each value of a column may be off, with 95 % confidence."""
        return list(self.errors.get(name, [None] * len(self.rows)))

    def _error_names(self) -> dict[str, str]:
        """What the columns of errors are called: ``<name>_error``, unless a column of the answer is."""
        result: dict[str, str] = {}
        places = {name: place for place, name in enumerate(self.columns)}
        for name in sorted(self.errors, key=lambda name: places.get(name, len(places))):
            result[name] = f"{name}_error"
            while result[name] in self.columns:
                result[name] += "_"
        return result

    def dicts(self, errors: bool = False) -> list[dict[str, Any]]:
        """A dict for each row; with ``errors``, also ``<name>_error`` for each noisy column."""
        result = []
        for i, row in enumerate(self.rows):
            line = dict(zip(self.columns, row, strict=True))
            if errors:
                line |= {other: self.errors[name][i] for name, other in self._error_names().items()}
            result.append(line)
        return result

    def to_arrow(self, errors: bool = True) -> Any:
        """An Arrow table."""
        import pyarrow as pa

        from dither.tables.card.model import arrow_type

        columns = {
            name: [_exported(value, kind) for value in self[name]]
            for name, kind in zip(self.columns, self.types, strict=True)
        }
        fields = [
            pa.field(
                name, pa.list_(pa.int64()) if any(isinstance(v, list) for v in columns[name]) else arrow_type(kind)
            )
            for name, kind in zip(self.columns, self.types, strict=True)
        ]
        if errors:
            for name, other in self._error_names().items():
                fields.append(pa.field(other, pa.float64()))
                columns[other] = list(self.errors[name])
        return pa.table(columns, schema=pa.schema(fields))

    def to_pandas(self, errors: bool = True) -> Any:
        """A pandas frame."""
        return self.to_arrow(errors).to_pandas()

    def to_polars(self, errors: bool = True) -> Any:
        """A Polars frame."""
        import polars

        return polars.from_arrow(self.to_arrow(errors))

    def to_json(self) -> str:
        """JSON: rows with their errors, the cost and the notes, whether it was recorded earlier, and its receipt."""
        about = {
            "cost": self.cost,
            "left": self.left,
            "notes": self.notes,
            "replayed": self.replayed,
            "receipt": self.receipt,
        }
        return json.dumps({"rows": self.dicts(errors=True), **about}, default=_plain)

    def to_csv(self) -> str:
        """CSV with the error columns; no cell is a formula, or a command to a terminal."""
        out = io.StringIO(newline="")
        names = [*self.columns, *self._error_names().values()]
        table = csv.writer(out)
        table.writerow([_cell(name) for name in names])
        for line in self.dicts(errors=True):
            table.writerow([_cell(line[name]) for name in names])
        return out.getvalue()

    def write(self, path: str | PathLike[str], format: str | None = None) -> None:
        """Write to a file: json, csv or parquet, by the ending of its name unless ``format`` says otherwise."""
        ending = format or str(path).rpartition(".")[2].lower()
        if ending == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(self.to_arrow(), str(path))
        elif ending in ("json", "csv"):
            with open(path, "w", encoding="utf-8", newline="") as out:
                out.write(self.to_json() + "\n" if ending == "json" else self.to_csv())
        else:
            raise InvalidArgument(message("format", "json, csv or parquet", ending, "choose one of these"))

    def plot(self, name: str | None = None, *, axes: Any = None) -> Any:
        """Bars of one noisy column (the first by default) with their errors; returns the axes."""
        noisy = [c for c in self.columns if c in self.errors and not any(isinstance(v, (list, str)) for v in self[c])]
        column = name if name is not None else next(iter(noisy), None)
        if column not in noisy:
            expected = f"one of {', '.join(noisy)}" if noisy else "an answer with a column of noisy numbers"
            raise InvalidArgument(message("column", expected, name or "none", "name a column of noisy numbers"))
        if axes is None:
            axes = need("matplotlib.pyplot", "plot").subplots(layout="constrained")[1]
        keys = [name for name in self.columns if name not in self.errors]
        labels = [", ".join(shown(row[self.columns.index(key)]) for key in keys) or column for row in self.rows]
        widths = [0.0 if error is None else error for error in self.error(column)]
        places = range(len(labels))
        axes.bar(places, [value or 0 for value in self[column]], yerr=widths, capsize=3, color="#4c78a8")
        axes.set_xticks(list(places), labels, rotation=90 if len(labels) > 6 else 0)
        axes.set_ylabel(column)
        axes.set_title(f"{column}, {self.cost}; bars: 95 %")
        return axes

    def __str__(self) -> str:
        return self.text()

    def text(self, most: int = 40) -> str:
        """A table for the terminal, with a ± column for each noisy one, the cost, and what is left."""
        header: list[str] = []
        for name in self.columns:
            header += [shown(name), "±"] if name in self.errors else [shown(name)]
        lines = [header]
        for i, row in enumerate(self.rows[:most]):
            line: list[str] = []
            for name, value in zip(self.columns, row, strict=True):
                line.append(shown(value))
                if name in self.errors:
                    line.append(short(self.errors[name][i]))
            lines.append(line)
        numeric = [len(lines) > 1 and all(_number(line[j]) for line in lines[1:]) for j in range(len(header))]
        widths = [max(len(line[j]) for line in lines) for j in range(len(header))]
        output = [
            "  ".join(
                cell.rjust(width) if number else cell.ljust(width)
                for cell, width, number in zip(line, widths, numeric, strict=True)
            ).rstrip()
            for line in lines
        ]
        output.insert(1, "  ".join("─" * width for width in widths))
        if len(self.rows) > most:
            output.append(f"… {len(self.rows) - most} more rows")
        return "\n".join([*output, self.summary()])

    def summary(self) -> str:
        """The cost, what is left, and the notes, a line each."""
        output = [f"cost: {self.cost}" + (" (paid earlier: this is the recorded answer)" if self.replayed else "")]
        if self.left is not None:
            output.append(f"left: {self.left}")
        return "\n".join([*output, *map(printable, self.notes)])

    def stored(self) -> dict[str, Any]:
        """What the ledger keeps of it."""
        return {
            "columns": list(self.columns),
            "types": list(self.types),
            "rows": [[_plain(value) for value in row] for row in self.rows],
            "errors": {name: list(values) for name, values in self.errors.items()},
            "cost": self.cost,
            "notes": list(self.notes),
        }

    @classmethod
    def restored(cls, stored: Mapping[str, Any], **more: Any) -> Answer:
        """The answer that was stored."""
        types = tuple(stored["types"])
        return cls(
            tuple(stored["columns"]),
            types,
            tuple(tuple(_rich(value, kind) for value, kind in zip(row, types, strict=True)) for row in stored["rows"]),
            {name: tuple(errors) for name, errors in stored["errors"].items()},
            stored["cost"],
            tuple(stored["notes"]),
            **more,
        )


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, (date, datetime)) else value


def _exported(value: Any, kind: Type) -> Any:
    """A value as Arrow takes it in a column of its type: it does not turn a whole number beyond 2^53 into a double."""
    if isinstance(value, list):
        return value
    return float(value) if kind == "number" and value is not None else value


def _cell(value: Any) -> Any:
    plain = "" if value is None else _plain(value)
    return safe(plain) if isinstance(plain, str) else plain


def _rich(value: Any, kind: Type) -> Any:
    if isinstance(value, str) and kind == "date":
        return date.fromisoformat(value)
    if isinstance(value, str) and kind == "timestamp":
        return datetime.fromisoformat(value)
    return value


def short(error: float | None) -> str:
    """An error to three digits, in plain figures where they are short.

    >>> short(17.97), short(1797.3), short(None), short(2.0e9)
    ('18', '1800', '', '2e+09')
    """
    return "" if error is None else shown(float(f"{error:.3g}"))


def _number(cell: str) -> bool:
    return cell == "" or cell.lstrip("-")[:1].isdigit()


def shown(value: Any) -> str:
    """A value on one line: six digits of a fraction, nothing for a value that is not there, no control characters.

    >>> shown(1 / 3), shown(12), shown(None), shown([1, 2])
    ('0.333333', '12', '', '[1, 2]')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(shown(item) for item in value) + "]"
    return printable(str(value).replace("\n", " "))
