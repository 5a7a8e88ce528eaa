"""Card files: a steward's TOML, read with every mistake named, and what it leaves out.

A card holds what is public. Its file looks like this::

    name = "visits"
    source = "visits.parquet"
    unit = "patient"

    [budget]
    epsilon = 1
    per = "person"

    [columns.patient]
    type = "integer"

    [columns.amount]
    type = "number"
    bounds = [0, 1000]

    [columns.region]
    type = "text"
    keys = ["north", "south"]

Paths in it start from the card's folder. A card of several tables about the same people has a section for each, in
place of its own source, unit and columns::

    name = "clinic"

    [tables.visits]
    source = "visits.parquet"
    unit = "patient"

    [tables.visits.columns.patient]
    type = "integer"
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from dither.errors import DitherError, InvalidArgument
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.ledger.units import Limit
from dither.tables.card.columns import check_names, columns_of, kind_of, wrong
from dither.tables.card.model import MAX_INCIDENTS, MIN_EPSILON, NAME, Card, ColumnCard, PrivateTable, PublicTable
from dither.tables.card.private_tables import check_private_tables
from dither.tables.card.series import series_of
from dither.tables.card.toml_file import contents, read_bytes
from dither.tables.card.wording import clip

_TOP = (
    "name", "source", "unit", "max_groups", "max_rows", "delta", "ledger", "budget", "columns",
    "public", "tables", "version", "min_epsilon", "max_incidents", "receipt", "incident_log", "rows_without_unit",
    "rows", "series",
)  # fmt: skip
_PUBLIC = ("source", "columns")
_TABLE = ("source", "unit", "columns", "rows")
_BUDGET = ("epsilon", "delta", "rho", "per", "each_analyst", "population", "filter")
_GUARANTEE = ("epsilon", "delta", "rho")


def read(path: str | os.PathLike[str]) -> Card:
    """The card in a file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder, "visits.toml")
    ...     _ = place.write_text('name = "visits"\\nsource = "visits.csv"\\ncolumns.age = "integer"')
    ...     read(place).columns
    {'age': ColumnCard(type='integer', bounds=None, keys=None)}
    """
    place = Path(path)
    raw = read_bytes(place, "card", "or draft a card with dither init")
    if place.suffix.lower() != ".toml" and _looks_like_data(place, raw):
        got = f"a file of rows, {clip(place.name)!r}"
        raise wrong("card", "a card in TOML", got, f"draft one with dither init {clip(place.name)}")
    given = contents(raw, "card", place)
    if not given:
        raise wrong("card", "name, source and columns", "nothing", "draft a card with dither init, and fill it in")
    return parse(given, place.absolute().parent)


def _looks_like_data(place: Path, raw: bytes) -> bool:
    """Whether a file that was given as a card is one of rows, by its name or its first bytes."""
    suffixes = {suffix.lower() for suffix in place.suffixes}
    named = suffixes & {".csv", ".tsv", ".parquet", ".pq", ".duckdb", ".db", ".gz", ".arrow", ".xlsx", ".json"}
    return bool(named) or raw.startswith(b"PAR1") or raw[8:12] == b"DUCK"


def parse(given: Mapping[str, Any], folder: str | os.PathLike[str] = ".") -> Card:
    """The card that a file's contents say; relative paths start from ``folder``.

    >>> parse({"name": "t", "source": "t.csv", "columns": {"age": "integer"}, "uint": "age"})
    Traceback (most recent call last):
    dither.InvalidArgument: uint: expected name, source, unit, max_groups, max_rows, delta, ledger, budget,
    columns, public, tables, version, min_epsilon, max_incidents, receipt, incident_log, rows_without_unit, rows or
    series, got another key. Fix: write 'unit', the nearest name.
    """
    check_names(given, _TOP, "")
    home = Path(folder)
    name = _text(given, "name", "", required=True)
    if not NAME.fullmatch(name):
        raise wrong("name", "a name for SQL: letters, digits and _", repr(name), 'write name = "visits", for example')
    tables = _tables(given, home)
    has_own = "columns" in given or "source" in given or not tables
    columns = columns_of(given, "") if has_own else {}
    unit = _unit(given, "", columns) if has_own else None
    any_unit = unit or next((table.unit for table in tables.values()), None)
    ledger = _text(given, "ledger", "")
    budget, each_person, each_analyst = _budget(given.get("budget"), any_unit)
    population, filter = _accounts(given.get("budget"))
    for limit, where in ((budget or each_person, "budget"), (each_analyst, "budget.each_analyst")):
        _check_limit(limit, where, filter)
    card = Card(
        name=name,
        source=_place(_text(given, "source", "", required=True), home) if has_own else "",
        columns=columns,
        unit=unit,
        max_groups="auto" if given.get("max_groups") == "auto" else _whole(given, "max_groups"),
        max_rows="auto" if given.get("max_rows") == "auto" else _whole(given, "max_rows"),
        public=_public(given.get("public", {}), home),
        ledger=None if ledger is None else _place(ledger, home),
        budget=budget,
        each_analyst=each_analyst,
        each_person=each_person,
        delta=_delta(given.get("delta"), "delta"),
        version=_text(given, "version", ""),
        population=population,
        filter=filter,
        min_epsilon=_least(given.get("min_epsilon", MIN_EPSILON)),
        max_incidents=_whole(given, "max_incidents", MAX_INCIDENTS),
        receipt=_file(_text(given, "receipt", ""), "receipt", home),
        incident_log=_file(_text(given, "incident_log", ""), "incident_log", home),
        rows_without_unit=_rows_without_unit(given.get("rows_without_unit"), any_unit, each_person is not None),
        rows=None if given.get("rows") is None else _whole(given, "rows"),
        tables=tables,
        series=series_of(given.get("series"), columns),
    )
    check_private_tables(card)
    return card


def _unit(given: Mapping[str, Any], where: str, columns: Mapping[str, ColumnCard]) -> str | None:
    """The column that names the person, if the card or its section of a table says one."""
    name, section = (f"{where}.unit", f"{where}.columns") if where else ("unit", "columns")
    unit: str | None = _text(given, "unit", where)
    if unit is not None:
        if unit not in columns:
            raise wrong(name, "one of the columns", repr(unit), f"add [{section}.{unit}], or correct the name")
        if columns[unit].type not in ("integer", "text"):
            fix = "name the column that says who it is"
            raise wrong(name, "a column of type integer or text", columns[unit].type, fix)
        if columns[unit].format is not None:  # two texts may write one number, and two people would be one
            raise wrong(f"{section}.{unit}.format", "none for the unit", "one", 'remove it, and write type = "text"')
    return unit


def _tables(given: Mapping[str, Any], home: Path) -> dict[str, PrivateTable]:
    """The sections of private tables."""
    sections = given.get("tables", {})
    if not isinstance(sections, Mapping) or ("tables" in given and not sections):
        got = "an empty one" if isinstance(sections, Mapping) else kind_of(sections)
        raise wrong("tables", "a section for each private table", got, "write [tables.visits]")
    result = {}
    for name, section in sections.items():
        where = f"tables.{name}"
        check_names(section, _TABLE, where)
        columns = columns_of(section, where)
        source = _place(_text(section, "source", where, required=True), home)
        rows = None if section.get("rows") is None else _whole(section, "rows")
        result[name] = PrivateTable(source, columns, _unit(section, where, columns), rows)
    return result


def _rows_without_unit(given: object, unit: str | None, people_pay: bool) -> Literal["drop", "each"] | None:
    """What the card says about rows whose unit is NULL."""
    if given is None:
        return None
    name = "rows_without_unit"
    if unit is None:
        raise wrong(name, "a unit", "none", f"remove {name}: every row is a person of its own")
    if given == "each":
        if people_pay:
            expected = '"drop" where people have budgets of their own, which are kept by their unit'
            raise wrong(name, expected, '"each"', f'write {name} = "drop", or per = "dataset" under [budget]')
        return "each"
    if given != "drop":
        got = repr(clip(given)) if isinstance(given, str) else kind_of(given)
        raise wrong(name, '"drop" or "each"', got, 'write "drop" to leave them out')
    return "drop"


def _text(given: Mapping[str, Any], key: str, where: str, required: bool = False) -> Any:
    name, value = f"{where}.{key}" if where else key, given.get(key)
    if value is None and not required:
        return None
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        got = "none" if value is None else kind_of(value) if not isinstance(value, str) else "empty text"
        raise wrong(name, "text", got, f'write {key} = "…"')
    return value


def _whole(given: Mapping[str, Any], key: str, default: int = 1) -> int:
    value = given.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        got = str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else kind_of(value)
        expected = "a whole number from 1 on" + (' or "auto"' if key in ("max_groups", "max_rows") else "")
        raise wrong(key, expected, got, f"{key} = {default}")
    return value


def _place(source: str, home: Path) -> str:
    """A source or ledger with its path made full; URLs and Spark tables are as they are."""
    if "://" in source:
        return source
    path, mark, table = source.rpartition("::")
    if mark and path == "spark":
        return source
    path, rest = (path, mark + table) if mark else (source, "")
    return os.path.normpath(os.path.join(home, os.path.expanduser(path))) + rest


def _file(given: str | None, name: str, home: Path) -> str | None:
    """A file of this machine, with its path made full."""
    if given is None:
        return None
    if "://" in given:
        raise wrong(name, "a path of this machine", "an address", f'write {name} = "{name}.txt"')
    return os.path.normpath(os.path.join(home, os.path.expanduser(given)))


def _public(given: object, home: Path) -> dict[str, PublicTable]:
    if not isinstance(given, Mapping):
        raise wrong("public", "a section for each public table", kind_of(given), "write [public.regions]")
    result = {}
    for name, section in given.items():
        where = f"public.{name}"
        if not NAME.fullmatch(name):
            raise wrong(where, "a name for SQL: letters, digits and _", "another", "rename it")
        check_names(section, _PUBLIC, where)
        result[name] = PublicTable(
            _place(_text(section, "source", where, required=True), home), columns_of(section, where)
        )
    return result


def _delta(given: object, name: str) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < 1:
        got = str(given) if isinstance(given, (int, float)) and not isinstance(given, bool) else kind_of(given)
        raise wrong(name, "a number strictly between 0 and 1", got, "write delta = 1e-6, for example")
    return float(given)


def _least(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given <= 1000:
        got = str(given) if isinstance(given, (int, float)) and not isinstance(given, bool) else kind_of(given)
        raise wrong("min_epsilon", "a number above 0 and at most 1000", got, f"write min_epsilon = {MIN_EPSILON}")
    return float(given)


def _accounts(given: object) -> tuple[str | None, Literal["sum", "advanced"]]:
    """Whose people the accounts are for, and how the limits are kept."""
    if not isinstance(given, Mapping):
        return None, "sum"
    population, filter = _text(given, "population", "budget"), given.get("filter", "sum")
    if population is not None and given.get("per") != "person":
        raise wrong(
            "budget.population", 'per = "person" beside it', "another", 'write per = "person", or remove population'
        )
    if filter not in ("sum", "advanced"):
        got = repr(filter) if isinstance(filter, str) else kind_of(filter)
        raise wrong("budget.filter", '"sum" or "advanced"', got, "leave it out")
    return population, filter


def _budget(given: object, unit: str | None) -> tuple[Guarantee | None, Guarantee | None, Guarantee | None]:
    """For the dataset, each person, each analyst."""
    if given is None:
        return None, None, None
    check_names(given, _BUDGET, "budget")
    assert isinstance(given, Mapping)
    per = given.get("per", "dataset")
    if per not in ("dataset", "person"):
        got = repr(per) if isinstance(per, str) else kind_of(per)
        raise wrong("budget.per", '"dataset" or "person"', got, 'write per = "person", or leave it out')
    if per == "person" and unit is None:
        raise wrong("budget.per", '"dataset" where no unit is named', '"person"', "name the unit, or per dataset")
    stated = {key: given[key] for key in _GUARANTEE if key in given}
    analyst: Any = given.get("each_analyst")
    if not stated and analyst is None:
        raise wrong("budget", "epsilon, epsilon and delta, or rho", "none of them", "write epsilon = 1, for example")
    whole = _guarantee(stated, "budget") if stated else None
    if isinstance(analyst, (int, float)) and not isinstance(analyst, bool):
        analyst = {"epsilon": analyst}
    if analyst is not None:
        check_names(analyst, _GUARANTEE, "budget.each_analyst")
    item = None if analyst is None else _guarantee(analyst, "budget.each_analyst")
    return (whole, None, item) if per == "dataset" else (None, whole, item)


def _guarantee(stated: Mapping[str, Any], where: str) -> Guarantee:
    for key, value in stated.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise wrong(f"{where}.{key}", "a number", kind_of(value), f"write {key} without quotes")
    if "rho" in stated and len(stated) > 1:
        raise wrong(where, "epsilon or rho", "both", "keep one; rho takes no delta")
    if "rho" not in stated and "epsilon" not in stated:
        raise wrong(where, "epsilon, epsilon and delta, or rho", "none of them", "write epsilon = 1, for example")
    try:
        if "rho" in stated:
            return ZCDP(stated["rho"])
        if "delta" in stated and stated["delta"] != 0:
            if stated["epsilon"] == 0:
                raise wrong(f"{where}.epsilon", "a number above 0", "0", "write epsilon = 1, for example")
            return ApproxDP(stated["epsilon"], stated["delta"])
        return PureDP(stated["epsilon"])
    except DitherError as error:
        if error.subject.startswith(where):
            raise
        raise InvalidArgument(f"{where}.{error.subject}", error.expected, error.got, error.fix) from None


def _check_limit(limit: Guarantee | None, where: str, filter: Literal["sum", "advanced"]) -> None:
    """Refuse a limit that no ledger could keep, as the ledger itself would at the first question."""
    try:
        if limit is not None:
            Limit.of(limit, filter)
    except InvalidArgument as error:
        raise error.within(f"{where}: ") from None


def gaps(card: Card) -> list[str]:
    """What the card does not say, and what will therefore be refused.

    >>> from dither.tables.card.model import ColumnCard
    >>> card = Card("t", "t.csv", {"amount": ColumnCard("number")})
    >>> print(gaps(card)[0])
    no bounds for amount: SUM, AVG, VAR, STDDEV, MIN, MAX and quantiles of it are refused
    """
    result = []
    for table in card.private_tables:
        result += _gaps_of_table(card.for_table(table), f"{table}." if card.tables else "")
    if card.unit is None and not card.tables:
        result.append(
            "no unit: every row counts as a person of its own; nobody with several rows is protected as a whole"
        )
    elif card.rows_without_unit is None:
        units = " or ".join(dict.fromkeys(str(table.unit) for table in card.private_tables.values()))
        result.append(
            f"not said what rows without {units} are: they are left out of every answer; "
            'rows_without_unit = "drop" says that this is meant, "each" that each of them is a person of its own'
        )
    if card.budget is None and card.each_person is None and card.each_analyst is None:
        result.append("no budget: nothing can be released")
    elif card.ledger is None:
        result.append("no ledger: what is spent cannot be written down, so nothing can be released")
    if card.delta is None and not any(isinstance(item, ApproxDP) for item in (card.budget, card.each_person)):
        result.append("no delta: Gaussian noise under a budget in epsilon, and groups found in the data, are refused")
    return result


def _gaps_of_table(card: Card, prefix: str) -> list[str]:
    """What the card does not say about the columns of one table."""
    result = [
        f"no bounds for {prefix}{name}: SUM, AVG, VAR, STDDEV, MIN, MAX and quantiles of it are refused"
        for name, column in card.columns.items()
        if column.type in ("integer", "number") and column.bounds is None and column.keys is None and name != card.unit
    ]
    for name, column in card.columns.items():
        if column.keys is None and column.type == "text" and name != card.unit and card.delta is None:
            refused = f"GROUP BY {name} is refused unless the question lists its keys"
            result.append(f"no keys for {prefix}{name} and no delta: {refused}")
    return result
