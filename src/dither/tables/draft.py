"""A first draft of a card, from a source's schema only, every line explained to a steward."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dither.errors import InvalidArgument
from dither.tables.card.model import NAME, Type
from dither.tables.card.toml import EXAMPLES
from dither.tables.card.values import nearest
from dither.tables.draft_paths import ForeignKey, ProposedPath, proposed_paths


def draft(source: object, unit: str | None = None, name: str | None = None) -> str:
    """Return the text of a first card for a source, or for several tables by name, made from their schemas, with a
    comment on every line.

    Bounds and keys are left for the steward to fill in, since values taken from the data would reveal them. The card
    has to be saved beside the source, or with the source's full path.

    >>> import pyarrow as pa
    >>> print(draft(pa.table({"patient": [1], "amount": [2.5]}), "patient").splitlines()[0])
    # What is public about this table. Everything in this file may be seen by everyone who asks questions.
    """
    several = isinstance(source, Mapping)
    sources: Mapping[str, object] = source if isinstance(source, Mapping) else {name or title_of(source): source}
    title = name or (next(iter(sources)) if not several else "dataset")
    for word in (title, *sources):
        if not NAME.fullmatch(word):
            raise InvalidArgument(
                "name", "a name for SQL: letters, digits and _", repr(word), 'pass name="visits", for example'
            )
    if several and unit is None:
        fix = "pass the column that says which person a row is about, in every table"
        raise InvalidArgument("unit", "a column of every table, since they are about the same people", "none", fix)
    if several and title.casefold() in (table.casefold() for table in sources):
        fix = 'pass name="clinic", for example'
        raise InvalidArgument("name", "a name for all tables together", "that of one of them", fix)
    schemas = {table: _schema(item, unit, table if several else "") for table, item in sources.items()}
    named = [schema for schema in schemas.values() if unit in schema.types]
    if unit is not None and len({schema.types[unit] for schema in named}) > 1:
        for schema in named:  # every column that may name people can be text
            schema.types[unit] = "text"
    paths = {} if unit is None else _paths(schemas, sources, unit)
    ledger = _quoted(f"{title}.ledger.sqlite")
    if several:
        parts = [_HEAD_OF_SEVERAL.format(name=_quoted(title), rest=_LIMITS.format(unit=_PEOPLE, ledger=ledger))]
    else:
        where = _WHERE.format(source=_quoted(_shown(source)))
        rest = _LIMITS.format(unit=_unit(unit), ledger=ledger)
        parts = [_HEAD.format(name=_quoted(title), where=where, rest=rest)]
    parts.append(_SPEND.format(per=_DATASET + (_PERSON if unit is not None else "")))
    parts.append(_COLUMNS + ("" if all(schema.declares_types for schema in schemas.values()) else _CSV))
    for table, schema in schemas.items():
        if several and unit not in schema.types and table not in paths:
            parts.append(_public_table(table, sources[table], schema))
            continue
        if several:
            parts.append(
                f"[tables.{table}]\nsource = {_quoted(_shown(sources[table]))}\n"
                + _person_of_table(unit or "", paths.get(table))
            )
        if schema.left_out:
            names = _comment(", ".join(schema.left_out))
            parts.append(f"# Left out, since lists, bytes and the like cannot be asked about: {names}\n")
        prefix = f"tables.{table}." if several else ""
        parts += [
            _section(prefix, column, type, column == unit, schema.declares_types)
            for column, type in schema.types.items()
        ]
    parts.append(_TABLES)
    dates = [] if several else [name for name, type in schema.types.items() if type in ("date", "timestamp")]
    parts += [_SERIES.format(column=_quoted(name)) for name in dates[:1]]
    return "\n".join(parts)


@dataclass(frozen=True)
class _Schema:
    """The usable columns of a source, those that are not, and whether the source says their types."""

    types: dict[str, Type]
    left_out: list[str]
    declares_types: bool
    keys: Sequence[ForeignKey] = ()


def _schema(source: object, unit: str | None, table: str) -> _Schema:
    """Return the schema of a source; refuse a unit that is not among its columns or cannot name people."""
    from dither.tables.engines import connect
    from dither.tables.engines.files import headless, looks_like_data

    with connect(source) as engine:
        if engine.reads_csv and looks_like_data([*engine.source_columns()]):
            raise headless()  # the values of a person would be names in a card, which is public
        schema = _Schema(engine.schema(unit), engine.unusable(), not engine.reads_csv, engine.foreign_keys())
    if unit is not None and unit not in schema.types and not table:
        fix = nearest(unit, schema.types) or "pass the name of the column that says who a row is about"
        raise InvalidArgument("unit", "one of the source's columns", repr(unit), fix)
    if unit in schema.types and schema.types[unit] not in ("integer", "text"):
        fix = "convert it in the source, or choose another"
        raise InvalidArgument("unit", "a column of whole numbers or text", schema.types[unit], fix)
    return schema


def _paths(schemas: Mapping[str, _Schema], sources: Mapping[str, object], unit: str) -> dict[str, ProposedPath]:
    """Return paths to the person for the tables without a column ``unit`` from which one leads there; refuse a unit
    that no table has."""
    by_relation = {str(source).rpartition("::")[2].rpartition(".")[2]: table for table, source in sources.items()}
    keys = {
        table: [replace(key, table=by_relation[key.table]) for key in schema.keys if key.table in by_relation]
        for table, schema in schemas.items()
    }
    names = list(dict.fromkeys(name for schema in schemas.values() for name in schema.types))
    if unit not in names:
        fix = nearest(unit, names) or "pass the name of the column that says who a row is about"
        raise InvalidArgument("unit", "a column of one of the tables", repr(unit), fix)
    return proposed_paths({table: schema.types for table, schema in schemas.items()}, unit, keys)


def _public_table(table: str, source: object, schema: _Schema) -> str:
    """Return a table from which no path leads to a person as comments: nothing is public before a steward says so."""
    columns = ", ".join(f"{_quoted(name)} = {_quoted(type)}" for name, type in schema.types.items())
    return (
        f"# No column of {table} leads to a person. If anybody may see it, uncomment these lines, and questions can\n"
        "# join it. If it is about people, add their column, or a path, in a section of its own as above.\n"
        f"# [public.{table}]\n# source = {_quoted(_shown(source))}\n# columns = {{ {columns} }}\n"
    )


def _person_of_table(unit: str, proposed: ProposedPath | None) -> str:
    """Return the line that says who the rows of one of several tables are about: by a column, or by a path."""
    if proposed is None:
        return f"unit = {_quoted(unit)}  # the same people as in the other tables\n"
    reason = "a foreign key of the database" if proposed.declared else "proposed by the names of columns: check it"
    return f"person = {_quoted(str(proposed.path))}  # {reason}\n"


def _shown(source: object) -> str:
    """Return a source as a comment shows it: a path or URL without its password, and "…" for a frame."""
    return _without_password(os.fspath(source)) if isinstance(source, (str, os.PathLike)) else "…"


def _without_password(source: str) -> str:
    """Return a URL without its password, before the host or as a parameter."""
    if "://" not in source:
        return source
    source = re.sub(r"(://[^/@:]*):[^/@]*@", r"\1@", source)
    return re.sub(r"(?<=[?&])password=[^&:]*&?", "", source).replace("&::", "::").replace("?::", "::")


def title_of(source: object) -> str:
    """Return a name for SQL made from a source's file or table name.

    >>> title_of("data/Visits 2024.parquet")
    'visits_2024'
    """
    if not isinstance(source, (str, os.PathLike)):
        return "data"
    _, mark, table = os.fspath(source).rpartition("::")
    word = table.rpartition(".")[2] if mark and "/" not in table else Path(table).name.partition(".")[0]
    result = re.sub(r"[^A-Za-z0-9_]+", "_", word).strip("_").lower()[:60]
    return result if NAME.fullmatch(result) else f"data_{result}" if result else "data"


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _quoted(text: str) -> str:
    """Return a text as a TOML string."""
    signs = (_ESCAPES.get(s) or (f"\\u{ord(s):04x}" if ord(s) < 32 or ord(s) == 127 else s) for s in text)
    return '"' + "".join(signs) + '"'


def _comment(text: str) -> str:
    """Return a text for a comment in TOML, which must not contain control characters."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def _unit(unit: str | None) -> str:
    """Return the lines of a draft that name the unit, or explain that none is named."""
    if unit is None:
        return (
            "# The column that says which person a row is about. None is named: every row counts as a person\n"
            "# of its own, and somebody with many rows is protected row by row only. If people have several, name it.\n"
            '# unit = "patient_id"\n'
        )
    return (
        "# The column that says which person a row is about. All rows of one person are protected together.\n"
        f"unit = {_quoted(unit)}\n"
        "# Rows where it is empty are excluded from every answer.\n"
        'rows_without_unit = "drop"\n'
    )


_PUBLIC_ONLY = """\
Everything in this file may be seen by everyone who asks questions.
# Write down what you know from outside: the form that was filled in, the law, the year. Never look into the rows for
# it: a bound or a list taken from the data gives away somebody in the data.
"""
_HEAD = f"""\
# What is public about this table. {_PUBLIC_ONLY}
# What the table is called in questions, as in SELECT COUNT(*) FROM …
name = {{name}}

{{where}}
{{rest}}"""
_HEAD_OF_SEVERAL = f"""\
# What is public about these tables. {_PUBLIC_ONLY}
# What the tables are called together, in the ledger. Each has a name of its own in questions: see [tables.…] below.
name = {{name}}

{{rest}}"""
_WHERE = """\
# Where the rows are. A path starts from the folder of this file.
source = {source}
"""
_PEOPLE = """\
# Each table names, as its unit, the column that says which person a row is about, or a path that leads to a table which
# does: the row of that table with the same key. All rows of one person, in all tables, are protected together. Rows
# where it is empty, and rows that lead to nobody, are excluded from every answer.
rows_without_unit = "drop"
"""
_LIMITS = """\
# About how many rows there are, if that is public. Forecasts of the ± are then about as many, and so is --error 1%.
# rows = 10000

# A question asked again gets the recorded answer, for free. When the rows have changed, change this as well, so that
# questions are answered anew, and paid for.
# version = "2026-01"

{unit}
# How many groups (of GROUP BY) one person may count in, and with how many rows in each. Who has more counts for less
# in each of them. Larger numbers leave out less and need more noise; "auto" chooses them for each question, privately,
# for a tenth of its epsilon, and the answer says how much is left out. Where you know what is usual, write it instead.
max_groups = "auto"
max_rows = "auto"

# Where is written down what was asked and how much of the budget is used. It must be kept: without it the budget would
# start again.
ledger = {ledger}
# A file that keeps the last receipt, best on another disk: a ledger that was put back is then noticed, and refused.
# receipt = "/other/disk/visits.receipt"

# What one question may use of the delta in the budget below: the probability that a group which is not listed under
# keys is shown although very few people are in it. Much less than one in the number of people.
delta = 1e-9
"""

_SPEND = """\
# How much may ever be learned, by all questions together. With epsilon = 1, whatever anybody concludes about a person
# is at most e = 2.7 times as likely as if that person were not in the table. Below 1 is strict, above 10 is little.
[budget]
epsilon = 1
# A small probability of more than that, which groups that are not listed and normal noise need.
delta = 1e-6
{per}
# What one analyst may use of it:
# each_analyst = {{ epsilon = 0.5 }}
"""
_DATASET = """\
# Counted for the whole table: every question uses it up.
per = "dataset\""""
_PERSON = """
# With per = "person" it is counted for each person: a question about some people uses up the budget of these only, and
# who has too little left is not counted. Tables about the same people, in the same ledger, share what each has left if
# they name one population, as in population = "patients\"."""

_COLUMNS = """\
# The columns that may be asked about. Remove those that are not needed.
# bounds: what a value can be at all. Values beyond are moved to the bound. SUM, AVG and the like need them; a range ten
#         times too wide means ten times the noise. Of dates, the first and the last day: their months are then public.
# keys:   all values that may occur, for GROUP BY. Groups not listed are not shown; listed ones always are, even empty.
# format: how a column of text writes dates, beside type = "date" or "timestamp": format = "%Y-%m-%d".
# A column of doubles that holds whole numbers may say type = "integer"; 3.6 then counts as empty.
"""
_CSV = """\
# A CSV file does not say its types, and they are not guessed from the rows. "text" is written everywhere: put in
# integer, number, boolean, date or timestamp where that is right. A cell that cannot be read so counts as empty:
# 3.6 is no integer (3.0 is).
"""
_TABLES = """\
# Tables that anybody may see, to be joined by a key, for example which district a postcode is in:
# [public.districts]
# source = "districts.csv"
# [public.districts.columns]
# postcode = "text"
# district = "text"
"""
_SERIES = """\
# A series is released over time for one charge, paid once for its whole horizon: dither series CARD daily
# [series.daily]
# over = "day"  # or hour, week, month
# column = {column}
# horizon = 365
# start = 2026-01-01
# epsilon = 1
# delta = 1e-9
# max_participations = 4  # on how many days a person counts, at most
# aggregates = {{ n = "count" }}  # "people", "sum(column)" and "count(column)" too
"""


_OPEN = "# to be filled in"


def unfilled(text: str) -> list[tuple[str, ...]]:
    """Return the headings of the sections in a card that still have the type which a draft wrote for lack of a better
    one.

    >>> age = '[columns.age]\\ntype = "text"  # to be filled in'
    >>> unfilled(age + '\\n[columns.day]\\ntype = "date"  # to be filled in')
    [('columns', 'age')]
    """
    result: list[tuple[str, ...]] = []
    heading: tuple[str, ...] = ()
    for line in text.splitlines():
        if line.startswith(("[columns.", "[tables.")):
            heading = tuple(_names_in(tomllib.loads(line)))
        elif re.fullmatch(rf'type = "text"\s+{_OPEN}\s*', line):
            result.append(heading)
    return result


def _names_in(section: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names in the heading of an empty section, the outermost first."""
    for name, inside in section.items():
        yield name
        yield from _names_in(inside)


def _section(prefix: str, column: str, type: Type, is_unit: bool, declares_types: bool) -> str:
    """Return the section of one column, with the steward's choices as comments."""
    bare = re.fullmatch(r"[A-Za-z0-9_-]+", column)
    lines = [f"[{prefix}columns.{column if bare else _quoted(column)}]", f'type = "{type}"']
    if is_unit:
        lines[1] += "  # who it is: never shown"
    elif not declares_types:
        lines[1] += f"  {_OPEN}"
        lines += ["# bounds = [0, 100]", '# keys = ["north", "south"]']
    elif type in ("integer", "number"):
        lines.append("# bounds = [0, 100]")
        if type == "integer":
            lines.append("# keys = [1, 2, 3]")
    elif type in ("date", "timestamp"):
        lines.append("# bounds = [2024-01-01, 2024-12-31]")
    elif type != "boolean":
        lines.append(f"# keys = [{EXAMPLES[type]}]")
    else:
        lines.append("keys = [true, false]")
    return "\n".join(lines) + "\n"
