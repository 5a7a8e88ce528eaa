"""An answer: a noisy table with its errors, its cost, and what is left."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

from dither.comparison import unhashable
from dither.errors import InvalidArgument
from dither.extras import Axes, PandasFrame, PolarsFrame
from dither.guarantees import Guarantee, restored, stored
from dither.ledger.accounts import Remaining
from dither.ledger.report import safe
from dither.present import markup
from dither.present import text as plain_text
from dither.present.chart import MAX_BARS, Axis, Chart, bars, is_drawable
from dither.present.drawing import draw
from dither.present.notes import MOST_SHOWN, Note, kinds_of, lasting, leading
from dither.present.text import keys_shown, noisy, printable, rounded, shown, two_digit_decimals
from dither.public_module import public_in
from dither.tables.attribute_hints import missing_attribute
from dither.tables.card.model import Type
from dither.tables.card.values import nearest

MAX_ROWS_SHOWN = 40
LOW_BY = ("low_by", "low_by_min", "low_by_max")
"""How the columns end that say by how much a number is low: an estimate, and between what and what it lies."""
_ALMOST_ALL = 0.999

Undercount = tuple[Any, Any, Any]


class Heading(NamedTuple):
    """A column of the table that people see: a key, a noisy value, its ±, how probable it is, or by how much it is
    low."""

    text: str
    kind: Literal["key", "value", "error", "population error", "probability", "low by"]
    numeric: bool


class ErrorParts(NamedTuple):
    """The parts of the errors of a column, one for each row."""

    noise: list[float | None]
    limits: list[float | None]


@public_in("dither")
@unhashable
@dataclass(frozen=True)
class Answer:
    """A released table.

    ``columns`` are the names, ``rows`` the values, ``errors`` for each noisy column how far each value may be off with
    95 % confidence (None where no such number can be had without another release). ``cost`` is what it cost, ``left``
    what whoever asked may still spend. ``len(answer)`` is the number of rows, and iteration gives each row as a dict.

    Where the table has a profile, the errors are total: of the noise, and of what limits and bounds leave out, as far
    as that is not known from the profile and corrected; :meth:`parts` has both. Otherwise they are about the noise, and
    what the limits on one person's rows leave out comes on top: ``clipped_share`` has, for each count for which it was
    estimated, the share of all rows (for people: of all their groups) that is left out, and between what and what it
    lies. It says nothing about a single group. Where nothing bounds that from above, the last is 1 and the first two
    are the same: it is at least that.

    ``notes`` are what is to be known beside the numbers (:mod:`dither.present.notes`). ``interval`` says what the
    errors are about: the noise, or the population that the rows were drawn from. ``probabilities`` has, for a mode,
    how probable it is that nothing is more common.

    >>> from dither.guarantees import PureDP
    >>> answer = Answer(("region", "n"), ("text", "integer"), (("north", 41),), {"n": (6.0,)}, PureDP(0.5))
    >>> answer["n"], answer.error("n"), answer.dicts()
    ([41], [6.0], [{'region': 'north', 'n': 41}])
    >>> len(answer), [row["n"] for row in answer]
    (1, [41])
    """

    columns: tuple[str, ...]
    types: tuple[Type, ...]
    rows: tuple[tuple[Any, ...], ...]
    errors: Mapping[str, tuple[float | None, ...]]
    cost: Guarantee
    notes: tuple[Note, ...] = ()
    remaining: Remaining | None = field(default=None, compare=False)
    replayed: bool = field(default=False, compare=False)
    receipt: str = field(default="", compare=False)
    clipped_share: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)
    interval: Literal["noise", "population"] = "noise"
    probabilities: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    limit_errors: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    """The part of ``errors`` that is about limits and bounds, where that was estimated."""

    @property
    def left(self) -> Guarantee | None:
        """Return the budget left to the caller; None if none is left, and if it is not known."""
        return None if self.remaining is None else self.remaining.guarantee

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Return the rows, each as a dict, as :meth:`dicts` has them."""
        return iter(self.dicts())

    def __getitem__(self, name: str) -> list[Any]:
        """Return one column, as a list."""
        if name not in self.columns:
            fix = (
                nearest(str(name), self.columns)
                or f"write answer[{self.columns[-1]!r}], or answer.rows for all of them"
            )
            raise InvalidArgument("column", f"one of {', '.join(self.columns)}", name, fix)
        place = self.columns.index(name)
        return [row[place] for row in self.rows]

    if not TYPE_CHECKING:  # a type checker still finds names that do not exist

        def __getattr__(self, name: str) -> NoReturn:
            """Raise the error for a missing attribute; for names that data frames have, it says what to write here."""
            raise missing_attribute(self, name, self.__dict__.get("columns", ()))

    def error(self, name: str) -> list[float | None]:
        """Return the half-width of the 95 % interval of each value of a column; None where it is not known."""
        return list(self.errors.get(name, [None] * len(self.rows)))

    def parts(self, name: str) -> ErrorParts:
        """Return the parts of :meth:`error`: by noise, and by what limits and bounds leave out (None: not known). Their
        squares add up to the square of the error.

        >>> from dither.guarantees import PureDP
        >>> errors, limits = {"n": (5.0,)}, {"n": (3.0,)}
        >>> Answer(("n",), ("integer",), ((900,),), errors, PureDP(1), limit_errors=limits).parts("n")
        ErrorParts(noise=[4.0], limits=[3.0])
        """
        total, limits = self.error(name), list(self.limit_errors.get(name, [None] * len(self.rows)))
        noise = [
            whole if whole is None or part is None else math.sqrt(max(whole**2 - part**2, 0.0))
            for whole, part in zip(total, limits, strict=True)
        ]
        return ErrorParts(noise, limits)

    @property
    def unseen(self) -> dict[str, int]:
        """How many people with far more rows than all others could go undetected, for each column whose ± holds nothing
        of them: counts and sums may then be larger than the ± says, means and the like be off by more. Columns that are
        not named have none.

        >>> from dither.guarantees import PureDP
        >>> note = Note("unseen_people", {"people": 160, "names": ["n"]})
        >>> Answer(("n",), ("integer",), ((900,),), {"n": (6.0,)}, PureDP(1), (note,)).unseen
        {'n': 160}
        """
        notes = [note.values for note in self.notes if note.kind == "unseen_people"]
        return {name: values["people"] for values in notes for name in values["names"]}

    @property
    def open_ended(self) -> frozenset[str]:
        """The columns that may be off by more than their ±: of :attr:`unseen` people, or because a join takes a limited
        number of rows, or COUNT(DISTINCT x) of values, of each person, and what that loses is not known.

        >>> from dither.guarantees import PureDP
        >>> note = Note("join_limit", {"rows": 12, "relation": "visits", "exists": False, "names": ["n"]})
        >>> sorted(Answer(("n",), ("integer",), ((900,),), {"n": (6.0,)}, PureDP(1), (note,)).open_ended)
        ['n']
        """
        limited = [
            note.values.get("names", ()) for note in self.notes if note.kind in ("join_limit", "distinct_limited")
        ]
        return frozenset(self.unseen).union(*limited) & frozenset(self.columns)

    def undercount(self, name: str) -> list[Undercount | None]:
        """Return by how much each value of a column is low because of the limits on one person's rows.

        Each is (estimate, least, most), or None where it is not known. Without an upper limit of ``clipped_share`` the
        estimate is the least, and the most is None. A share s of all rows is left out, so their number v is low by
        ``v s / (1 - s)``. Shares of single groups are not known, so answers with groups have none.

        >>> from dither.guarantees import PureDP
        >>> shares = {"n": (0.1, 0.0, 0.25)}
        >>> answer = Answer(("n",), ("integer",), ((900,),), {"n": (6.0,)}, PureDP(1), clipped_share=shares)
        >>> answer.undercount("n")
        [(100.0, 0.0, 300.0)]
        """
        if name not in self.clipped_share or not is_total(self):
            return [None] * len(self.rows)
        shares = self.clipped_share[name]
        return [_shortfall(value, shares, integer=self._type(name) == "integer") for value in self[name]]

    def _type(self, name: str) -> Type:
        """Return the type of a column of the answer."""
        return self.types[self.columns.index(name)]

    def _added_columns(self) -> dict[str, tuple[str, str]]:
        """Return the columns that describe others, as name -> (described column, ending).

        They are ``<name>_error`` (or ``<name>_population_error``), ``<name>_probability`` and ``<name>_low_by``, with
        underscores added where a name is taken.
        """
        result: dict[str, tuple[str, str]] = {}
        error = "error" if self.interval == "noise" else "population_error"
        undercount = self.clipped_share if is_total(self) else {}
        described_by = ((error,), self.errors), (("probability",), self.probabilities), (LOW_BY, undercount)
        for endings, described in described_by:
            for name in (*self.columns, *(name for name in described if name not in self.columns)):
                for ending in endings if name in described else ():
                    added = f"{name}_{ending}"
                    while added in self.columns:
                        added += "_"
                    result[added] = name, ending
        return result

    def _added(self, name: str, ending: str) -> list[Any]:
        """Return the values of the column that :meth:`_added_columns` adds for ``name`` with this ending."""
        if ending in ("error", "population_error"):
            return list(self.errors[name])
        if ending == "probability":
            return list(self.probabilities[name])
        place = LOW_BY.index(ending)
        return [None if item is None else item[place] for item in self.undercount(name)]

    def dicts(self, errors: bool = False) -> list[dict[str, Any]]:
        """Return a dict for each row; with ``errors``, also ``<name>_error`` for each noisy column, and
        ``<name>_low_by`` with ``_min`` and ``_max`` where it is known by how much it is low.
        """
        added = {other: self._added(*about) for other, about in self._added_columns().items()} if errors else {}
        return [
            dict(zip(self.columns, row, strict=True)) | {other: values[i] for other, values in added.items()}
            for i, row in enumerate(self.rows)
        ]

    def to_arrow(self, errors: bool = True) -> Any:
        """Return an Arrow table."""
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
            for other, (name, ending) in self._added_columns().items():
                columns[other] = self._added(name, ending)
                several = any(isinstance(value, list) for value in columns[other])
                fields.append(pa.field(other, pa.list_(pa.float64()) if several else pa.float64()))
        return pa.table(columns, schema=pa.schema(fields))

    def to_pandas(self, errors: bool = True) -> PandasFrame:
        """Return a pandas frame."""
        return self.to_arrow(errors).to_pandas()

    def to_polars(self, errors: bool = True) -> PolarsFrame:
        """Return a Polars frame."""
        import polars

        frame = polars.from_arrow(self.to_arrow(errors))
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_json(self) -> str:
        """Return the answer as JSON: rows with errors, clipped shares, cost, notes, whether replayed, and receipt."""
        names = ("share", "low", "high")
        about = {
            "left_out": {name: dict(zip(names, shares, strict=True)) for name, shares in self.clipped_share.items()},
            "interval": self.interval,
            "cost": str(self.cost),
            "left": None if self.remaining is None else str(self.remaining),
            "notes": [*map(str, self.notes)],
            "note_kinds": kinds_of(self.notes),
            "replayed": self.replayed,
            "receipt": self.receipt,
        }
        return json.dumps({"rows": self.dicts(errors=True), **about}, default=_plain)

    def to_csv(self) -> str:
        """Return CSV with the error columns; no cell is a formula, or a command to a terminal."""
        out = io.StringIO(newline="")
        names = [*self.columns, *self._added_columns()]
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
            raise InvalidArgument("format", "json, csv or parquet", ending, "choose one of these")

    def drawable(self) -> list[str]:
        """Return the noisy columns with numbers to draw."""
        return [name for name in self._noisy_numbers() if any(is_drawable(value) for value in self[name])]

    def _noisy_numbers(self) -> list[str]:
        """Return the noisy columns of numbers, of which there are charts; where no group is shown, empty ones."""
        noisy_columns = [name for name in self.columns if name in self.errors]
        return [name for name in noisy_columns if not any(isinstance(value, (list, str)) for value in self[name])]

    def chart(self, name: str | None = None, *, most: int | None = MAX_BARS) -> Chart:
        """Return a chart of one noisy column, by default the first of numbers: a bar for each row, with its error.

        ``most`` is how many rows are drawn at most, None for all.

        >>> from dither.guarantees import PureDP
        >>> rows = (("a", 50), ("b", 100))
        >>> answer = Answer(("region", "n"), ("text", "integer"), rows, {"n": (10.0, 10.0)}, PureDP(1))
        >>> answer.chart().categories, answer.chart().marks[0].texts
        (('a', 'b'), ('50 ± 10', '100 ± 10'))
        """
        column = self._column(name)
        kinds = zip(self.columns, self.types, strict=True)
        keys = [j for j, (key, kind) in enumerate(kinds) if key not in self.errors and kind != "number"]
        labels = [keys_shown(row[j] for j in keys) if keys else "all rows" for row in self.rows]
        rows = list(zip(labels, self[column], self.error(column), strict=True))
        texts = [
            " ± ".join(filter(None, noisy(value, error))) if is_drawable(value) else "" for _, value, error in rows
        ]
        title = f"{column}, with its error (95 %), {self.cost}"
        return bars(rows, title=title, texts=texts, heading=column, y=Axis(column), most=most)

    def _column(self, name: str | None) -> str:
        """Return ``name``, or the first column that a chart can show (None); refuse other columns."""
        known = self._noisy_numbers()
        column = name if name is not None else next(iter(self.drawable() or known), None)
        if column is None or column not in known:
            expected = f"one of {', '.join(known)}" if known else "an answer with a column of noisy numbers"
            raise InvalidArgument("column", expected, name or "none", "name a column of noisy numbers")
        return column

    def plot(self, name: str | None = None, *, axes: Axes | None = None) -> Axes:
        """Draw :meth:`chart` of all rows with matplotlib; returns the axes."""
        return draw(self.chart(name, most=None), axes)

    def __str__(self) -> str:
        return self.text()

    def table(self, most: int | None = None) -> tuple[list[Heading], list[list[str | None]]]:
        """Return the table that people see: its headings, and the cells of at most ``most`` rows, None where missing.

        Behind a noisy column stand its ±, and by how much it is low where that is known. Digits follow the ±, or the
        bins that a value is chosen among where it has none. ``~`` stands before a number whose ± exceeds it, ``+``
        behind a ± that the number may be off by more than (:attr:`open_ended`).
        """
        widths = {note.values["name"]: note.values["bin_width"] for note in self.notes if "bin_width" in note.values}
        headings: list[Heading] = []
        columns: list[list[str | None]] = []
        for place, (name, kind) in enumerate(zip(self.columns, self.types, strict=True)):
            values = [row[place] for row in self.rows[:most]]
            numeric = kind in ("integer", "number")
            if name not in self.errors:
                headings.append(Heading(name, "key", numeric))
                columns.append([None if value is None else shown(value) for value in values])
                continue
            known = self.errors[name][:most]
            half_bin = (widths.get(name) or 0.0) / 2 or None
            pairs = [_noisy_cells(value, error, half_bin) for value, error in zip(values, known, strict=True)]
            headings.append(Heading(name, "value", numeric))
            columns.append([text for text, _ in pairs])
            if name in self.probabilities:
                headings.append(Heading("probability", "probability", True))
                columns.append([_probability_text(item) for item in self.probabilities[name][:most]])
            else:
                noise = self.interval == "noise"
                heading = Heading("±", "error", True) if noise else Heading("± population", "population error", True)
                headings.append(heading)
                more = "+" if name in self.open_ended else ""
                columns.append([error and error + more for _, error in pairs])
            if name in self.clipped_share and is_total(self):
                headings.append(Heading("low by", "low by", True))
                columns.append(
                    [
                        _undercount_text(item, self.clipped_share[name], kind == "integer")
                        for item in self.undercount(name)[:most]
                    ]
                )
        return headings, [list(line) for line in zip(*columns, strict=True)]

    def text(
        self,
        most: int | None = MAX_ROWS_SHOWN,
        more: str = "text(most=None) shows all, to_csv() too",
        *,
        verbose: bool = False,
    ) -> str:
        """Return a table for the terminal, with a ± column for each noisy one, the cost, what is left, and the notes
        that matter most.

        ``most`` is how many rows are shown, None for all; ``more`` says how to see the others. ``verbose`` shows all
        notes.
        """
        headings, lines = self.table(most)
        names = [printable(heading.text.replace("\n", " ")) for heading in headings]
        cells = [[cell or "" for cell in line] for line in lines]
        output = plain_text.table(names, cells, [heading.numeric for heading in headings])
        if most is not None and len(self.rows) > most:
            output.append(f"{len(self.rows):,} rows, {most:,} shown: {more}")
        return "\n".join([*output, self.summary(verbose=verbose)])

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the table, the cost, what is left, and the notes."""
        headings, lines = self.table(MAX_ROWS_SHOWN)
        cells = explained_noise(headings, lines)
        parts = [markup.table([heading.text for heading in headings], cells, [h.numeric for h in headings])]
        if len(self.rows) > MAX_ROWS_SHOWN:
            parts.append(markup.lines([f"{len(self.rows):,} rows, {MAX_ROWS_SHOWN} shown: to_pandas() has all"]))
        if not self.rows:
            parts.append(markup.lines(["No group has enough people to be shown."]))
        return markup.block(*parts, self._notes_html())

    def _notes_html(self) -> str:
        """Return HTML for a notebook of the cost, what is left, and the notes, the less important ones folded."""
        shown, others = self.leading_notes()
        first = markup.lines([*self._facts(), *self._legend(), *map(str, shown)])
        return first + markup.folded(f"{len(others)} more notes", markup.lines(others))

    def leading_notes(self) -> tuple[list[Note], list[Note]]:
        """Return the notes that stand under the answer, at most two lines with what explains ``~``, and the others.

        >>> from dither.guarantees import PureDP
        >>> notes = tuple(Note("limit_of_aggregate", {"name": name, "rows": 1}) for name in ("a", "b", "c"))
        >>> shown, others = Answer(("n",), ("integer",), ((41,),), {"n": (6.0,)}, PureDP(1), notes).leading_notes()
        >>> len(shown), [str(note) for note in others]
        (2, ['In c, each person counts for at most 1 row.'])
        """
        return leading(lasting(self.notes) if self.replayed else self.notes, MOST_SHOWN - len(self._legend()))

    def _legend(self) -> list[str]:
        """Return the line that explains ``~`` if some number has it; otherwise an empty list."""
        return [MOSTLY_NOISE] if is_marked(self) else []

    def _facts(self) -> list[str]:
        """Return the lines with the cost and, if it is known, the remaining budget."""
        output = [f"cost: {self.cost}" + (" (paid earlier: this is the recorded answer)" if self.replayed else "")]
        return output if self.remaining is None else [*output, f"left: {self.remaining}"]

    def summary(self, *, verbose: bool = False, more: str = "answer.notes") -> str:
        """Return the cost, what is left, and the notes that matter most, a line each; with ``verbose`` all notes.

        ``more`` says how the others are to be seen.
        """
        first, others = self.leading_notes()
        output = [*self._legend(), *map(str, first)]
        if verbose:
            output += map(str, others)
        elif others:
            output[-1] += f" ({len(others)} more: {more})"
        return "\n".join([*self._facts(), *map(printable, output)])

    def stored(self) -> dict[str, Any]:
        """Return the JSON object that the ledger stores of the answer; empty parts are left out."""
        by_column: dict[str, Mapping[str, tuple[float | None, ...]]] = {
            "left_out": self.clipped_share,
            "probabilities": self.probabilities,
            "limit_errors": self.limit_errors,
        }
        return {
            "columns": list(self.columns),
            "types": list(self.types),
            "rows": [[_plain(value) for value in row] for row in self.rows],
            "errors": {name: list(values) for name, values in self.errors.items()},
            "cost": stored(self.cost),
            "notes": [note.stored() for note in self.notes],
            **({"interval": self.interval} if self.interval != "noise" else {}),
            **{
                field: {name: list(values) for name, values in known.items()}
                for field, known in by_column.items()
                if known
            },
        }

    @classmethod
    def restored(cls, document: Mapping[str, Any], **more: Any) -> Answer:
        """Return the answer of a JSON object that :meth:`stored` made; ``more`` are further fields."""
        types = tuple(document["types"])
        return cls(
            tuple(document["columns"]),
            types,
            tuple(
                tuple(_rich(value, kind) for value, kind in zip(row, types, strict=True)) for row in document["rows"]
            ),
            {name: tuple(errors) for name, errors in document["errors"].items()},
            restored(document["cost"]),
            tuple(map(Note.restored, document["notes"])),
            clipped_share={name: (a, b, c) for name, (a, b, c) in document.get("left_out", {}).items()},
            interval=document.get("interval", "noise"),
            probabilities={name: tuple(values) for name, values in document.get("probabilities", {}).items()},
            limit_errors={name: tuple(values) for name, values in document.get("limit_errors", {}).items()},
            **more,
        )


MOSTLY_NOISE = "~ is mostly noise: the ± exceeds the number."


def is_mostly_noise(value: Any, error: float | None) -> bool:
    """Return whether the ± of a number exceeds it.

    >>> is_mostly_noise(3, 12.0), is_mostly_noise(30, 12.0), is_mostly_noise(None, None)
    (True, False, False)
    """
    return is_drawable(value) and not isinstance(value, list) and error is not None and error > abs(value)


def _noisy_cells(value: Any, error: float | None, half_bin: float | None) -> tuple[str | None, str]:
    """Return the texts of a noisy value and of its ±, with ``~`` before a value that is mostly noise; None for NULL. A
    value without a ± is rounded by ``half_bin``, half the width of its bin."""
    text, half = noisy(value, half_bin if error is None else error)
    if value is None:
        return None, ""
    return (f"~{text}" if is_mostly_noise(value, error) else text), ("" if error is None else half)


def is_marked(answer: Answer) -> bool:
    """Return whether any number of an answer is smaller than its ±."""
    columns = ((answer[name], answer.errors[name]) for name in answer.columns if name in answer.errors)
    return any(is_mostly_noise(*cell) for column in columns for cell in zip(*column, strict=True))


def explained_noise(headings: list[Heading], lines: list[list[str | None]]) -> list[list[object]]:
    """Return the cells of :meth:`Answer.table` for a page, where numbers that are mostly noise explain themselves."""
    numbers = [heading.kind == "value" and heading.numeric for heading in headings]
    return [
        [
            markup.Explained(cell, MOSTLY_NOISE) if is_number and cell is not None and cell.startswith("~") else cell
            for is_number, cell in zip(numbers, line, strict=True)
        ]
        for line in lines
    ]


def is_total(answer: Answer) -> bool:
    """Return whether an answer is one row without keys, so that statements about all rows apply to it.

    >>> from dither.guarantees import PureDP
    >>> is_total(Answer(("n",), ("integer",), ((41,),), {"n": (6.0,)}, PureDP(0.5)))
    True
    """
    return len(answer.rows) == 1 and set(answer.columns) <= set(answer.errors)


def _probability_text(value: float | None) -> str | None:
    """Return a probability with as many digits as tell it from 1."""
    return None if value is None else ">0.999" if value > 0.999 else f"{value:.3f}" if value > 0.99 else f"{value:.2f}"


def _plain(value: Any) -> Any:
    """Return a value as JSON and CSV have it: dates and timestamps as ISO 8601 text, others unchanged."""
    return value.isoformat() if isinstance(value, (date, datetime)) else value


def _exported(value: Any, kind: Type) -> Any:
    """Return a value for an Arrow column: numbers as floats, since Arrow refuses to convert integers beyond 2^53."""
    if isinstance(value, list):
        return value
    return float(value) if kind == "number" and value is not None else value


def _cell(value: Any) -> Any:
    """Return a value as a cell of CSV: empty for NULL, with texts escaped that a spreadsheet would run as formulas."""
    plain = "" if value is None else _plain(value)
    return safe(plain) if isinstance(plain, str) else plain


def _rich(value: Any, kind: Type) -> Any:
    """Return a stored value as its type: dates and timestamps were stored as ISO 8601 text."""
    if isinstance(value, str) and kind == "date":
        return date.fromisoformat(value)
    if isinstance(value, str) and kind == "timestamp":
        return datetime.fromisoformat(value)
    return value


def _shortfall(value: Any, shares: tuple[float, float, float], integer: bool) -> Undercount | None:
    """Return by how much a value is low as (estimate, least, most), if these shares s of the rows are left out: v s /
    (1 - s), None for a share near 1. For a histogram each part is a list."""
    if isinstance(value, list):
        items = [_shortfall(item, shares, integer) for item in value]
        estimates, least, most = zip(*((None,) * 3 if item is None else item for item in items), strict=True)
        return list(estimates), list(least), list(most)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    size = float(max(value, 0) if integer else value)
    result = [size * share / (1 - share) if share < _ALMOST_ALL else None for share in shares]
    result[1:] = result[:0:-1] if size < 0 else result[1:]
    return result[0], result[1], result[2]


def _undercount_text(item: Undercount | None, shares: tuple[float, float, float], integer: bool) -> str | None:
    """Return the text of an undercount: "estimate (least–most)" with two digits, or "at least …" without an upper
    limit; for a histogram the shares in percent."""
    if item is None:
        return None
    one_sided = shares[2] >= 1
    if isinstance(item[0], list):
        estimate, low, high = (f"{100 * share:.2g}" for share in shares)
        return f"at least {low} %" if one_sided else f"{estimate} % ({low}–{high} %)"
    largest = max((abs(end) for end in item if end is not None), default=0.0)
    if not 1e-6 <= largest < 1e15:
        return "?" if largest >= 1e-6 else "at least 0" if one_sided else "0"
    size = abs(item[0] or 0.0)
    decimals = min(two_digit_decimals(size) if size > 1e-6 else 0, two_digit_decimals(largest) + 1, 0 if integer else 2)
    estimate, low, high = ("?" if end is None else rounded(end, decimals) for end in item)
    if one_sided:
        return f"at least {low}" if item[1] is not None else f"at most {high}"
    return f"{estimate} ({low} to {high})" if "-" in low + high else f"{estimate} ({low}–{high})"
