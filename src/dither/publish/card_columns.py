"""Attributes of a plan from the columns of a card: each row's value as an expression, and its public domain.

A column of a plan is specified by one of

* nothing: the column of the card that has its name, with the keys that the card lists or that follow from it (truth
  values, whole numbers and days within narrow bounds);
* a list of its public keys;
* an expression over the card's columns, in SQL or in Python, whose values are public
  (:mod:`dither.tables.planning.group_keys`): ``"MONTH(visited_at)"``;
* a mapping with ``column`` or ``expression``, and ``keys``, ``edges``, ``width`` (with the card's bounds), ``part`` (of
  a date: the number of its month, say) or ``period`` (the day on which its month begins), and ``null`` and ``other``.

Nothing is read from the private rows. A row whose value is not among the keys counts in no table, unless the column has
a key for it: ``null=True`` for NULL, ``other="other"`` for values that are not listed.

>>> import dither as dp, pyarrow as pa
>>> rows = pa.table({"sex": ["f", "m"] * 50, "age": [30, 40] * 50})
>>> with dp.open(rows, keys={"sex": ["f", "m"]}, bounds={"age": (0, 99)}, budget=dp.ZCDP(1)) as people:
...     age = ColumnReader(people).column("age", {"width": 20, "null": True})
>>> age.attribute.keys[0].to_pylist(), age.expression
(['[0, 20)', '[20, 40)', '[40, 60)', '[60, 80)', '[80, 100)', None], Column(name='age', table=None))

Levels inside one another need a public lookup (which county lies in which state): a public table of the card, a file, a
frame or a mapping.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlglot import exp

from dither import arguments
from dither.errors import InvalidArgument, NotPrivate, WrongType
from dither.present.notes import Note
from dither.publish.domain import Attribute
from dither.tables.builder.expressions import Term, condition
from dither.tables.card.model import Card, Type, arrow_type
from dither.tables.card.toml import check_names, kind_of
from dither.tables.card.values import Value, clip, closest, literal_type, plain_keys
from dither.tables.compile import expressions as compiled
from dither.tables.planning.group_keys import PublicFacts
from dither.tables.query import nodes
from dither.tables.query.evaluate import require_boolean, typed
from dither.tables.query.relations import Rows, private_relation, resolve_columns, type_of
from dither.tables.query.tree import Call, Column, Expression, Literal, show
from dither.tables.table import Table

_ENDINGS = (".csv", ".parquet")


def read_lookup(
    table: Table, name: str, levels: Sequence[str], lookup: Any, types: Mapping[str, Type], folder: str
) -> dict[str, Any]:
    """Return the lookup of a nested attribute: an Arrow array for each level, with one entry for each finest key.

    Parameters
    ----------
    lookup
        The name of a public table of the card, the path of a CSV or Parquet file (from ``folder``), a frame, a mapping
        of a sequence for each level, or, of two levels, a mapping of each finest place to its parent. None: the only
        public table of the card that has a column for each level.
    types
        The types of levels that are columns of the card; the others are text where a file has no types.
    """
    where = f"lookup of {name}"
    if len(levels) == 1 and lookup is None:
        fix = "list it among the columns, or name a level above it"
        raise InvalidArgument(where, "at least two levels, or a lookup", "one level without", fix)
    columns = _columns(table, where, levels, lookup, folder)
    missing = [level for level in levels if level not in columns.column_names]
    if missing:
        fix = closest(missing[0], columns.column_names) + ", or add the column"
        raise InvalidArgument(where, f"a column {missing[0]}", "none", fix)
    distinct = columns.select([*levels]).group_by([*levels], use_threads=False).aggregate([])
    return {level: _cast(where, level, distinct.column(level), types.get(level)) for level in levels}


def _columns(table: Table, where: str, levels: Sequence[str], lookup: Any, folder: str) -> pa.Table:
    """Return the columns of a lookup from a public table of the card, a file, or values given in Python.

    ``where`` names the lookup in errors, ``levels`` are the required columns, and relative paths start from ``folder``.
    ``lookup`` is as for :func:`read_lookup`; a mapping without a level among its keys maps finest keys to their
    parents.
    """
    public = table.card.public
    if lookup is None:
        fitting = [item for item, card in public.items() if {*levels} <= {*card.columns}]
        if len(fitting) != 1:
            got = "none" if not fitting else f"several: {', '.join(fitting)}"
            expected = f"a public table of the card with the columns {', '.join(levels)}, or a lookup in the plan"
            fix = 'name one: lookup = "places.csv", or the name of a public table'
            raise InvalidArgument(where, expected, got, fix)
        lookup = fitting[0]
    if isinstance(lookup, (str, os.PathLike)):
        text = os.fspath(lookup)
        if text in public:
            return _of_public_table(table, text, [level for level in levels if level in public[text].columns])
        _refuse_private_rows(table, where, Path(folder, os.path.expanduser(text)))
        return _of_file(where, text, folder, [*public])
    if isinstance(lookup, Mapping):
        if {*levels} & {*lookup} or len(levels) != 2:
            return _as_arrow(where, {key: [*values] for key, values in lookup.items()})
        return _as_arrow(where, {levels[0]: [*lookup.values()], levels[1]: [*lookup]})
    return _as_arrow(where, lookup)


def _refuse_private_rows(table: Table, where: str, path: Path) -> None:
    """Refuse a file with the private rows as a lookup, since it is not public which keys occur in them.

    ``where`` names the lookup in the error, and ``path`` is the file of the lookup.
    """
    for private in table.engine.private_files:
        if path.exists() and os.path.exists(private) and os.path.samefile(path, private):
            fix = "name a public list of all keys, also of those that no row has"
            raise NotPrivate(where, "a public file", "the file that holds the private rows", fix)


def _as_arrow(where: str, given: Any) -> pa.Table:
    """Return a frame, mapping or Arrow table as an Arrow table."""
    try:
        return pa.table(given)
    except (pa.ArrowInvalid, TypeError, ValueError):
        expected = "a public table's name, a CSV or Parquet file, a frame, or columns of one length"
        fix = "pass {'state': [...], 'county': [...]}, one row for each county"
        raise WrongType(where, expected, type(given).__name__, fix) from None


def _of_public_table(table: Table, name: str, columns: Sequence[str]) -> pa.Table:
    """Read columns of a public table of the card."""
    engine = table.engine
    selected = [exp.alias_(nodes.column(column, "p"), column, quoted=True) for column in columns]
    result: pa.Table = engine.run(exp.select(*selected).from_(exp.alias_(engine.public(name), "p", table=True)))
    return result


def _of_file(where: str, text: str, folder: str, public: Sequence[str]) -> pa.Table:
    """Read a lookup from a CSV or Parquet file; all values of a CSV file are text, and empty ones are NULL.

    ``where`` names the lookup in errors, ``text`` is the path as stated, relative to ``folder``, and ``public`` are the
    names of the card's public tables, for advice about a mistyped name.
    """
    path = Path(folder, os.path.expanduser(text))
    ending = path.suffix.lower()
    if ending not in _ENDINGS:
        fix = closest(text, public) if public else "name a file that ends in .csv or .parquet"
        raise InvalidArgument(where, "a public table of the card, or a .csv or .parquet file", repr(clip(text)), fix)
    try:
        if ending == ".parquet":
            import pyarrow.parquet as pq

            return pq.read_table(path)
        from pyarrow import csv

        names = csv.open_csv(path).schema.names
        options = csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
        )
        return csv.read_csv(path, convert_options=options)
    except (OSError, pa.ArrowException):
        fix = "check the path, which starts from the folder of the plan"
        raise InvalidArgument(where, "a file that can be read", repr(clip(text)), fix) from None


def _cast(where: str, level: str, column: Any, kind: Type | None) -> Any:
    """Convert a column of a lookup to the type that its level has in the card."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if kind is None:
        return array
    try:
        return array.cast(arrow_type(kind))
    except pa.ArrowException:
        fix = f"write the values of {level} as the card has them"
        raise InvalidArgument(
            where, f"a column {level} of type {kind}, as in the card", "values that cannot be converted", fix
        ) from None


PARTS = ("year", "quarter", "month", "week", "day", "weekday", "hour")
"""Parts of a date, as numbers; Monday is weekday 1, and weeks are those of ISO 8601."""
PERIODS = ("year", "quarter", "month", "week", "day", "hour")
"""Periods, each known by its first day or moment."""
_SOURCES = ("column", "expression")
_DOMAINS = ("keys", "edges", "width", "part", "period")
_KEYS = (*_SOURCES, *_DOMAINS, "null", "other")
_NESTED = ("levels", "lookup", "column", "expression", "null", "other")
_MOST_BINS = 100_000


@dataclass(frozen=True, eq=False)
class CardColumn:
    """An attribute, the expression of its value in a row, and the note on rows whose value is not among its keys."""

    attribute: Attribute
    expression: Expression
    outside_note: Note


class ColumnReader:
    """Makes attributes from a plan's sections about columns, for the rows of one private table that meet a
    condition."""

    def __init__(self, table: Table, *, about: str | None = None, where: Any = None, folder: str = ".") -> None:
        """Prepare to read columns of an open table; nothing of its rows is read.

        Parameters
        ----------
        about
            The name of the private table, for a card with several.
        where
            A condition on the rows, in SQL or in Python, which narrows the public domains; None: all rows.
        folder
            The folder from which relative paths of lookups start.
        """
        self.table, self.folder = table, folder
        self.card = card_about(table.card, about)
        self._rows = Rows((private_relation(self.card),))
        self.where = None if where is None else require_boolean(self._resolved(where, "where"), self._type, "where")
        self._facts = PublicFacts.of(compiled.lookup(self.card, {}), self.where)

    def column(self, name: str, spec: Any) -> CardColumn:
        """Return the attribute of the column ``name`` from its section ``spec`` in the plan (None: it has none)."""
        spec = _as_mapping(name, spec)
        null, other = _null(name, spec), spec.get("other")
        expression = self._counted_expression(name, spec, f"columns.{name}")
        if "edges" in spec or "width" in spec:
            return self._binned(name, expression, spec, null, other)
        kind = self._kind(expression)
        values = self._values(name, expression, kind, spec)
        null = null or None in values
        keys = pa.array([value for value in values if value is not None], type=arrow_type(kind))
        attribute = Attribute.flat(name, keys, null=null, other=other)
        return CardColumn(attribute, expression, _outside_note(name, null, other, {"keys": len(keys)}))

    def nested(self, name: str, spec: Any, lookup: Any = None) -> CardColumn:
        """Return an attribute of nested levels, such as states and their counties.

        ``spec`` is its section in the plan: a list of levels, or a mapping with ``levels``. ``lookup`` maps the keys of
        each level to those of the level above; None takes that of the section, else a public table of the card.
        """
        levels = nested_levels(name, spec)
        spec = spec if isinstance(spec, Mapping) else {}
        if lookup is not None and "lookup" in spec:
            raise InvalidArgument(f"lookups.{name}", "one lookup", "two", f"leave out lookup under nested.{name}")
        null, other = _null(name, spec), spec.get("other")
        expression = self._counted_expression(levels[-1], spec, f"nested.{name}")
        kind = self._kind(expression)
        places = read_lookup(
            self.table, name, levels, spec.get("lookup") if lookup is None else lookup, self._level_types(levels, kind),
            self.folder,
        )  # fmt: skip
        known = {level: self.card.columns[level].keys for level in levels if level in self.card.columns}
        required = {level: keys for level, keys in known.items() if keys is not None}
        attribute = Attribute.nested(name, levels, places, keys=required, null=null, other=other)
        size = len(places[levels[-1]])
        return CardColumn(attribute, expression, _outside_note(levels[-1], null, other, {"lookup": size}))

    # -- where the value of a row comes from ---------------------------------------------------------------------------

    def _counted_expression(self, name: str, spec: Mapping[str, Any], where: str) -> Expression:
        """Return the expression of a row's value, from a section with ``column``, ``expression``, ``part`` or
        ``period``; by default the column called ``name``. ``where`` is the path of the section in errors."""
        if all(key in spec for key in _SOURCES):
            raise InvalidArgument(where, "column or expression", "both", "leave one of them out")
        if "expression" in spec:
            expression = self._resolved(spec["expression"], f"{where}.expression")
        else:
            expression = Column(self._matching_column(name, spec, where))
        for key, names, operation in (("part", PARTS, "date_part"), ("period", PERIODS, "date_trunc")):
            if key in spec:
                expression = self._of_date(f"{where}.{key}", expression, key, spec[key], names, operation)
        checked, kind = typed(expression, self._type)
        if kind is None:
            raise InvalidArgument(where, "values", "NULL always", "name a column of the card")
        return checked

    def _matching_column(self, name: str, spec: Mapping[str, Any], section: str) -> str:
        """Return the name of the card's column, in the card's spelling, that a name in the plan matches without regard
        to case.

        ``name`` is the name in the plan, which ``column`` in the section ``spec`` replaces; ``section`` names the
        section in errors.
        """
        given = spec.get("column", name)
        where = f"{section}.column" if "column" in spec else section
        if not isinstance(given, str):
            raise InvalidArgument(where, "the name of a column", kind_of(given), 'write column = "state"')
        matches = [item for item in self.card.columns if item.casefold() == given.casefold()]
        if given in self.card.columns:
            return given
        if len(matches) == 1:
            return matches[0]
        fix = closest(given, self.card.columns)
        if "column" not in spec:
            fix += f'; for a column with a different name, write column = "…" or expression = "…" under {section}'
        raise InvalidArgument(where, f"a column of {self.card.name}", repr(clip(given)), fix)

    def _of_date(
        self, where: str, expression: Expression, key: str, given: Any, names: tuple[str, ...], operation: str
    ) -> Expression:
        """Return the expression of the part or period of a date; refuse unknown names and columns without dates.

        ``where`` is the path in errors, ``expression`` the date, ``key`` is "part" or "period", ``given`` the requested
        one of the possible ``names``, and ``operation`` the name of the function in the query tree.
        """
        if given not in names:
            got = repr(clip(given)) if isinstance(given, str) else kind_of(given)
            raise InvalidArgument(where, ", ".join(names), got, f'write {key} = "month"')
        kind = self._kind(expression)
        if kind not in ("date", "timestamp"):
            raise InvalidArgument(
                where, "a column of dates or timestamps", f"one of type {kind}",
                f'name it by column = "…", or leave out {key}',
            )  # fmt: skip
        return Call(operation, (Literal("isodow" if given == "weekday" else given), expression))

    def _resolved(self, given: Any, where: str) -> Expression:
        """Return a condition or expression with its columns resolved to those of the card."""
        if not isinstance(given, (str, Term, Column, Literal, Call)):
            raise WrongType(where, "SQL over a row", kind_of(given), 'write "MONTH(visited_at)", for example')
        return resolve_columns(condition(given, where), self._rows)

    def _type(self, column: Column) -> Type:
        """Return the type of a column by the card."""
        return type_of(self.card, column)

    def _kind(self, expression: Expression) -> Type:
        """Return the type of an expression."""
        return compiled.compile(expression, compiled.lookup(self.card, {})).type

    # -- domains -------------------------------------------------------------------------------------------------------

    def _values(self, name: str, expression: Expression, kind: Type, spec: Mapping[str, Any]) -> tuple[Value, ...]:
        """Return the public keys of a column without bins: those listed under ``keys`` in its section ``spec``, else
        those that follow from the card.

        ``expression`` is the value of the column in a row, ``kind`` its type, and ``name`` the column's name for
        errors.
        """
        if "keys" in spec:
            given = spec["keys"]
            listed = plain_keys(given.to_pylist() if isinstance(given, (pa.Array, pa.ChunkedArray)) else _listed(given))
            kinds = {literal_type(key) for key in listed or ()} - {None}
            fits = kinds <= ({"integer", "number"} if kind == "number" else {kind})
            if not listed or not kinds or not fits:
                got = "none" if not kinds else f"keys of type {', '.join(sorted(str(item) for item in kinds))}"
                fix = f"list values of {show(expression)}, each once"
                raise InvalidArgument(f"columns.{name}.keys", f"a list of keys of type {kind}", got, fix)
            return listed
        values = self._facts.values(expression)
        if values is None and isinstance(expression, Column):
            values = self.card.columns[expression.name].keys  # PublicFacts leaves out long lists of keys
        if values is None or values == (None,):
            if isinstance(expression, Column) and expression.name == self.card.unit:
                got = f"{expression.name}, the unit of the card: every key is a person"
                fix = "leave it out of the tables; if its keys are public, list them under columns"
                raise InvalidArgument(f"columns.{name}", "a column that groups people", got, fix)
            raise InvalidArgument(f"columns.{name}", "public keys or bins", "neither", self._domain_advice(name, kind))
        return values

    def _domain_advice(self, name: str, kind: Type) -> str:
        """Return the fix, in an error, for a column of this type without a public domain."""
        if kind in ("integer", "number"):
            return f"write edges = [0, 10, 100] under columns.{name}, or width = 10 where the card states bounds"
        if kind in ("date", "timestamp"):
            return f'write part = "month" or period = "month" under columns.{name}; the card must state bounds'
        return f"list keys of {name} in the card, or keys = […] under columns.{name}"

    def _binned(self, name: str, expression: Expression, spec: Mapping[str, Any], null: bool, other: Any) -> CardColumn:
        """Return a column of numbers in bins, with edges from the plan or at equal widths between the card's bounds.

        ``name`` is the name of the column in the plan, ``expression`` its value in a row, and ``spec`` its section,
        with ``edges`` or ``width``. ``null`` says whether NULL has a key, and ``other`` is the key of numbers outside
        the bins (None: they are left out).
        """
        kind = self._kind(expression)
        if kind not in ("integer", "number"):
            raise InvalidArgument(
                f"columns.{name}",
                "a column of numbers for bins",
                f"one of type {kind}",
                self._domain_advice(name, kind),
            )
        edges = self._edges(name, expression, spec["width"]) if "width" in spec else _listed(spec["edges"])
        if any(isinstance(edge, bool) or not isinstance(edge, (int, float)) for edge in edges):
            raise InvalidArgument(
                f"columns.{name}.edges", "numbers", "values that are not numbers", "write edges = [0, 18, 65, 120]"
            )
        attribute = Attribute.binned(name, edges, null=null, other=other, whole=kind == "integer")
        outside = {"low": float(edges[0]), "high": float(edges[-1])}
        return CardColumn(attribute, expression, _outside_note(name, null, other, outside))

    def _edges(self, name: str, expression: Expression, width: Any) -> list[float]:
        """Return the edges ``low, low + width, …`` of equal bins, the last of which contains the upper bound.

        The bounds of a column are those of the card; those of other expressions follow from them. ``name`` is the name
        of the column in the plan, for errors.
        """
        step = Fraction(arguments.positive(width, f"width of {name}"))
        known = compiled.compile(expression, compiled.lookup(self.card, {})).range
        bounds = self.card.columns[expression.name].bounds if isinstance(expression, Column) else None
        if bounds is None and known is not None:
            bounds = known.low, known.high
        if bounds is None or not all(map(math.isfinite, bounds)):
            raise InvalidArgument(
                f"columns.{name}.width",
                "bounds in the card",
                "none",
                "state bounds of the column, or write edges = […]",
            )
        low, high = map(Fraction, bounds)
        count = (high - low) // step + 1
        if count > _MOST_BINS:
            raise InvalidArgument(
                f"columns.{name}.width", f"at most {_MOST_BINS:,} bins", f"{count:,}", "write a larger width"
            )
        return [float(low + i * step) for i in range(count + 1)]

    def _level_types(self, levels: Sequence[str], finest: Type) -> dict[str, Type]:
        """Return the types of the levels that are known: of columns of the card by the card, and ``finest`` for the
        last level."""
        columns = self.card.columns
        types: dict[str, Type] = {level: columns[level].type for level in levels if level in columns}
        return {**types, levels[-1]: finest}


def card_about(card: Card, about: str | None) -> Card:
    """Return the card restricted to its private table ``about``; None is allowed for a card with one private table.

    >>> from dither.tables.card.model import ColumnCard
    >>> card_about(Card("visits", "visits.csv", {"age": ColumnCard("integer")}), None).name
    'visits'
    """
    names = [*card.private_tables]
    if about is None and card.columns:
        return card
    if about is None or about not in names:
        got = "none" if about is None else repr(clip(about))
        raise InvalidArgument("about", f"one of {', '.join(names)}", got, f"write {names[0]!r}, for example")
    return card.for_table(about)


def _as_mapping(name: str, spec: Any) -> Mapping[str, Any]:
    """Return the section of a column as a mapping; a list of keys or an expression becomes ``keys`` or
    ``expression``."""
    where = f"columns.{name}"
    if spec is None:
        return {}
    if isinstance(spec, (str, Term, Column, Literal, Call)):
        return {"expression": spec}
    if not isinstance(spec, Mapping):
        return stated_keys(name, spec)
    check_names(spec, _KEYS, where)
    stated = [key for key in _DOMAINS if key in spec and not (key == "keys" and ("part" in spec or "period" in spec))]
    if len(stated) > 1:
        raise InvalidArgument(where, f"one of {', '.join(_DOMAINS)}", " and ".join(stated), "leave out all but one")
    return spec


def stated_keys(name: str, given: Any) -> dict[str, Any]:
    """Return the section ``{"keys": …}`` of a column that was specified by a plain list of keys.

    A list of numbers is refused, since it might be meant as the edges of bins. ``name`` is the name of the column, for
    errors.
    """
    items = [*given] if isinstance(given, (list, tuple, range)) else []
    if items and all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in items):
        fix = f"write {{'edges': {[*items[:3]]}}} for bins, with all edges, or {{'keys': …}} for single values"
        raise InvalidArgument(f"columns.{name}", "keys or edges, with that name", "a list of numbers", fix)
    return {"keys": given}


def _null(name: str, spec: Mapping[str, Any]) -> bool:
    """Return the value of ``null`` in a section: whether NULL is a key of the column (default False)."""
    null = spec.get("null", False)
    if not isinstance(null, bool):
        raise InvalidArgument(f"null of {name}", "true or false", kind_of(null), "write null = true")
    return null


def _listed(given: Any) -> list[Any]:
    """Return a list of keys or edges as Python values."""
    if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__iter__"):
        raise WrongType("keys or edges", "a list", kind_of(given), 'write keys = ["f", "m"], for example')
    return [item.item() if hasattr(item, "item") else item for item in given]


def nested_levels(name: str, spec: Any) -> list[str]:
    """Return the levels of a nested attribute, from the list of them or from its section.

    >>> nested_levels("geo", {"levels": ["state", "county"], "lookup": "places.csv"})
    ['state', 'county']
    """
    where, levels = f"nested.{name}", spec
    if isinstance(spec, Mapping):
        check_names(spec, _NESTED, where)
        levels = spec.get("levels")
    texts = isinstance(levels, Sequence) and not isinstance(levels, str) and all(isinstance(i, str) for i in levels)
    if not texts or not levels:
        got = "none" if not levels else kind_of(levels)
        raise InvalidArgument(where, "a list of levels, the coarsest first", got, 'write levels = ["state", "county"]')
    return [*levels]


def _outside_note(name: str, null: bool, other: Any, outside: dict[str, float]) -> Note:
    """Return the note that says what becomes of rows whose value is not among the keys.

    ``name`` is the column, ``null`` says whether NULL has a key, ``other`` is the key of other values (None: such rows
    are not counted), and ``outside`` has the number of keys, or the range of the bins.
    """
    return Note("rows_outside", {"name": name, "null": null, "other": other, "outside": outside})
