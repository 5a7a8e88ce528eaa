"""Cards: every mistake is named, and gaps say what they forbid."""

from __future__ import annotations

import os
import re
import tomllib
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dither as dp
from dither.errors import InvalidArgument, NotPrivate
from dither.guarantees import ZCDP, ApproxDP, PureDP
from dither.server.config import read_config
from dither.tables.card import toml
from dither.tables.card.model import Card, ColumnCard, PrivateTable, PublicTable, check_private_tables
from dither.tables.card.toml import SeriesAggregate, columns_of, contents, read_bytes, series_of
from dither.tables.draft import draft
from support import each, refuses

FULL = """
name = "visits"
source = "data/visits.parquet"
unit = "patient"
max_groups = "auto"
max_rows = 3
delta = 1e-6
ledger = "visits.ledger.sqlite"

[budget]
epsilon = 1
delta = 1e-7
per = "person"
each_analyst = { rho = 0.5 }

[columns]
patient = "integer"
note = "text"

[columns.amount]
type = "number"
bounds = [0, 999.5]

[columns.age]
type = "integer"
bounds = [0, 120]
keys = [1, 2]

[columns."the region"]
type = "text"
keys = ["north", "süd"]

[columns.born]
type = "date"
keys = [2024-01-31]

[columns.seen]
type = "timestamp"
keys = [2024-01-31T12:00:00, 2024-01-31T12:00:00+02:00]

[columns.alive]
type = "boolean"
keys = [true, false]

[columns.dose]
type = "number"
keys = [0.5, 1]

[public.districts]
source = "/elsewhere/districts.csv"
[public.districts.columns]
code = "text"
district = { type = "text" }
"""


def test_a_full_card(tmp_path: Path) -> None:
    path = tmp_path / "visits.toml"
    path.write_text(FULL, encoding="utf-8")
    assert toml.read(path) == Card(
        name="visits",
        source=str(tmp_path / "data/visits.parquet"),
        columns={
            "patient": ColumnCard("integer"),
            "note": ColumnCard("text"),
            "amount": ColumnCard("number", (0, 999.5)),
            "age": ColumnCard("integer", (0, 120), (1, 2)),
            "the region": ColumnCard("text", None, ("north", "süd")),
            "born": ColumnCard("date", None, (date(2024, 1, 31),)),
            "seen": ColumnCard("timestamp", None, (datetime(2024, 1, 31, 12), datetime(2024, 1, 31, 10))),
            "alive": ColumnCard("boolean", None, (True, False)),
            "dose": ColumnCard("number", None, (0.5, 1.0)),
        },
        unit="patient",
        max_groups="auto",
        max_rows=3,
        public={
            "districts": PublicTable(
                "/elsewhere/districts.csv", {"code": ColumnCard("text"), "district": ColumnCard("text")}
            )
        },
        ledger=str(tmp_path / "visits.ledger.sqlite"),
        budget=None,
        each_person=ApproxDP(1, 1e-7),
        each_analyst=ZCDP(0.5),
        delta=1e-6,
    )


SMALL = {"name": "t", "source": "t.csv", "columns": {"a": "integer", "b": "text"}}


def test_a_small_card() -> None:
    assert toml.parse(SMALL, "/home") == Card("t", "/home/t.csv", {"a": ColumnCard("integer"), "b": ColumnCard("text")})


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("t.csv", "/home/t.csv"),
        ("../x/*.parquet", "/x/*.parquet"),
        ("/abs/t.csv", "/abs/t.csv"),
        ("d.duckdb::t", "/home/d.duckdb::t"),
        ("postgresql://u@h/d::t", "postgresql://u@h/d::t"),
        ("spark::t", "spark::t"),
        ("~/t.csv", os.path.expanduser("~/t.csv")),
    ],
)
def test_paths_start_from_the_card(source: str, found: str) -> None:
    assert toml.parse({**SMALL, "source": source, "ledger": source}, "/home").source == found


def test_a_relative_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.toml").write_text('name = "t"\nsource = "t.csv"\ncolumns.a = "text"')
    monkeypatch.chdir(tmp_path)
    assert toml.read("t.toml").source == str(tmp_path / "t.csv")


def changed(**more: Any) -> dict[str, Any]:
    return {**SMALL, **more}


def column(**about: Any) -> dict[str, Any]:
    return changed(columns={"a": about})


def test_how_questions_are_limited_and_where_traces_are_kept() -> None:
    more = {"min_epsilon": 1, "max_incidents": 5, "receipt": "../r", "incident_log": "/var/log/t"}
    budget = {"epsilon": 1, "delta": 1e-6, "per": "person", "population": "p", "filter": "advanced"}
    card = toml.parse({**SMALL, **more, "unit": "a", "budget": budget}, "/home")
    assert (card.min_epsilon, card.max_incidents, card.receipt, card.incident_log) == (1.0, 5, "/r", "/var/log/t")
    assert (card.population, card.filter, card.each_person) == ("p", "advanced", ApproxDP(1, 1e-6))
    plain = toml.parse(SMALL, "/home")
    assert (plain.min_epsilon, plain.max_incidents, plain.receipt, plain.incident_log) == (1e-4, 3, None, None)
    # none of these changes what an answer means, so none makes a recorded answer unknown
    assert repr(toml.parse({**SMALL, **more}, "/home")) == repr(plain)


MISTAKES: list[tuple[dict[str, Any], str]] = [
    (changed(min_epsilon=0), "min_epsilon: expected a number above 0 and at most 1000, got 0"),
    (changed(min_epsilon=float("nan")), "min_epsilon: .* got nan"),
    (changed(min_epsilon=True), "min_epsilon: .* got true or false"),
    (changed(min_epsilon="1"), "min_epsilon: .* got text"),
    (changed(max_incidents=0), "max_incidents: expected a whole number from 1 on, got 0. Fix: max_incidents = 3"),
    (changed(max_incidents=1.5), "max_incidents: .* got 1.5"),
    (changed(receipt=7), "receipt: expected text, got a whole number"),
    (changed(receipt="http://x/r"), "receipt: expected a path of this machine, got an address"),
    (changed(incident_log="s3://x/r"), "incident_log: expected a path of this machine, got an address"),
    (changed(budget={"epsilon": 1, "population": "p"}), 'budget.population: expected per = "person" beside it'),
    (changed(unit="a", budget={"epsilon": 1, "per": "person", "population": 7}), "budget.population: expected text"),
    (changed(budget={"epsilon": 1, "filter": "best"}), 'budget.filter: expected "sum" or "advanced", got \'best\''),
    (changed(budget={"epsilon": 1, "filter": 7}), "budget.filter: .* got a whole number"),
    ({}, "name: expected text, got none"),
    (changed(name=7), "name: expected text, got a whole number"),
    (changed(name=""), "name: expected text, got empty text"),
    (changed(name="a b"), "name: expected a name for SQL"),
    (changed(name="x; DROP"), "name: expected a name for SQL"),
    (changed(source=None), "source: expected text, got none"),
    (changed(source=["t.csv"]), "source: expected text, got a list"),
    (changed(colums={}), "colums: expected .* write 'columns', the nearest name"),
    (changed(whatever=1), "whatever: expected .*, got an unknown key. Fix: remove it"),
    (changed(columns=None), "columns: expected a section for each column, got none"),
    (changed(columns={}), "columns: expected a section for each column, got none"),
    (changed(columns="a"), "columns: expected a section for each column, got text"),
    (changed(columns={"": "text"}), "columns: expected names"),
    (changed(columns={"a": "text", "A": "text"}), "columns.A: expected names that differ by more than case"),
    (changed(columns={"a": 7}), "columns.a: expected a section, got a whole number"),
    (column(), "columns.a.type: expected integer, number, .* got none"),
    (column(type="int"), "columns.a.type: .* got 'int'. Fix: write type = \"integer\""),
    (column(type="string"), 'Fix: write type = "text"'),
    (column(type="nmber"), 'Fix: write type = "number"'),
    (column(type=7), "columns.a.type: .* got a whole number"),
    (
        column(type="text", bound=[0, 1]),
        "columns.a.bound: expected type, bounds, keys or format, .* write 'bounds', the",
    ),
    (
        column(type="text", bounds=[0, 1]),
        "columns.a.bounds: expected bounds of numbers or dates only, got bounds of text",
    ),
    (column(type="number", bounds=[1, 0]), r"columns.a.bounds: expected lower below upper, got \[1, 0\]. Fix: swap"),
    (column(type="number", bounds=[1, 1]), "columns.a.bounds: expected lower below upper"),
    (column(type="number", bounds=[1]), "columns.a.bounds: expected two numbers .* got 1 values"),
    (column(type="number", bounds=5), "columns.a.bounds: expected two numbers .* got a whole number"),
    (column(type="number", bounds=["0", "1"]), "columns.a.bounds: expected two numbers .* got text"),
    (column(type="number", bounds=[False, True]), "columns.a.bounds: expected two numbers .* got true or false"),
    (column(type="number", bounds=[0, float("inf")]), "columns.a.bounds: expected finite numbers"),
    (column(type="number", bounds=[float("nan"), 1]), "columns.a.bounds: expected finite numbers"),
    (column(type="number", bounds=[0, 1e300]), "columns.a.bounds: expected finite numbers"),
    (column(type="integer", bounds=[0, 1.5]), "columns.a.bounds: expected whole numbers"),
    (column(type="integer", bounds=[0, 2**63]), "columns.a.bounds: expected whole numbers"),
    (column(type="text", keys=[]), "columns.a.keys: expected a list .* got an empty list"),
    (column(type="text", keys="north"), "columns.a.keys: expected a list .* got text"),
    (column(type="text", keys=["a", 7]), "columns.a.keys: expected text .* got a whole number"),
    (column(type="text", keys=["a", "a"]), "columns.a.keys: expected values that differ, got one of them twice"),
    (column(type="text", keys=["a\0"]), "columns.a.keys: expected text without a NUL"),
    (column(type="integer", keys=["1"]), "columns.a.keys: expected whole numbers, .* got text"),
    (column(type="integer", keys=[1.0]), "columns.a.keys: expected whole numbers, .* got a number"),
    (column(type="integer", keys=[True]), "columns.a.keys: expected whole numbers, .* got true or false"),
    (column(type="integer", keys=[2**63]), "columns.a.keys: expected whole numbers of 64 bits"),
    (column(type="number", keys=[float("nan")]), "columns.a.keys: expected finite numbers"),
    (column(type="boolean", keys=[0, 1]), "columns.a.keys: expected true and false, .* got a whole number"),
    (column(type="date", keys=["2024-01-01"]), "columns.a.keys: expected dates without quotes, .* got text"),
    (column(type="date", keys=[datetime(2024, 1, 1)]), "columns.a.keys: expected dates .* got a date with a time"),
    (column(type="timestamp", keys=[date(2024, 1, 1)]), "columns.a.keys: expected dates with times.* got a date"),
    (changed(unit="c"), r"unit: expected one of the columns, got 'c'. Fix: add \[columns.c\]"),
    (changed(unit=7), "unit: expected text, got a whole number"),
    (changed(unit="a", columns={"a": "number"}), "unit: expected a column of type integer or text, got number"),
    (changed(max_groups=0), 'max_groups: expected a whole number from 1 on or "auto", got 0'),
    (changed(max_groups="many"), "max_groups: .* got text"),
    (changed(max_groups=1.5), "max_groups: .* got 1.5"),
    (changed(max_rows=True), 'max_rows: expected a whole number from 1 on or "auto", got true or false'),
    (changed(max_rows="all"), "max_rows: .* got text"),
    (changed(delta=0), "delta: expected a number strictly between 0 and 1, got 0"),
    (changed(delta="1e-6"), "delta: .* got text"),
    (changed(ledger=7), "ledger: expected text"),
    (changed(budget=1), "budget: expected a section, got a whole number"),
    (changed(budget={}), "budget: expected epsilon, epsilon and delta, or rho, got none of them"),
    (changed(budget={"epsilon": 0}), "budget.epsilon: expected a number above 0"),
    (changed(budget={"epsilon": -1}), "budget.epsilon: expected a number above 0"),
    (changed(budget={"epsilon": float("nan")}), "budget.epsilon: expected"),
    (changed(budget={"epsilon": float("inf")}), "budget.epsilon: expected"),
    (changed(budget={"epsilon": 1e9}), "budget.epsilon: expected"),
    (
        changed(budget={"epsilon": "1"}),
        "budget.epsilon: expected a number, got text. Fix: write epsilon without quotes",
    ),
    (changed(budget={"epsilon": True}), "budget.epsilon: expected a number, got true or false"),
    (changed(budget={"epsilon": 1, "delta": 1}), "budget.delta: expected a number strictly between 0 and 1"),
    (changed(budget={"epsilon": 0, "delta": 0.1}), "budget.epsilon: expected a number above 0"),
    (changed(budget={"delta": 0.1}), "budget: expected epsilon, epsilon and delta, or rho, got none of them"),
    (changed(budget={"epsilon": 1, "rho": 1}), "budget: expected epsilon or rho, got both"),
    (changed(budget={"rho": 0}), "budget.rho: expected"),
    (changed(budget={"epsilon": 1, "per": "people"}), 'budget.per: expected "dataset" or "person", got \'people\''),
    (changed(budget={"epsilon": 1, "per": "person"}), 'budget.per: expected "dataset" where no unit is named'),
    (changed(budget={"epsilom": 1}), "budget.epsilom: .* write 'epsilon', the nearest name"),
    (changed(budget={"epsilon": 1, "each_analyst": "x"}), "budget.each_analyst: expected a section, got text"),
    (changed(budget={"epsilon": 1, "each_analyst": {}}), "budget.each_analyst: expected epsilon"),
    (changed(budget={"epsilon": 1, "each_analyst": {"epsilon": 0}}), "budget.each_analyst.epsilon: expected"),
    (changed(budget={"epsilon": 1, "each_analyst": {"per": 1}}), "budget.each_analyst.per: expected"),
    (changed(public=1), "public: expected a section for each public table, got a whole number"),
    (changed(public={"p q": {}}), "public.p q: expected a name for SQL"),
    (changed(public={"p": 1}), "public.p: expected a section"),
    (changed(public={"p": {"columns": {"a": "text"}}}), "public.p.source: expected text, got none"),
    (changed(public={"p": {"source": "p.csv"}}), "public.p.columns: expected a section for each column"),
    (changed(public={"p": {"source": "p.csv", "columns": {"a": "txt"}}}), "public.p.columns.a.type: expected"),
    (changed(public={"p": {"source": "p.csv", "unit": "a", "columns": {"a": "text"}}}), "public.p.unit: expected"),
]


@each(("given", "said"), MISTAKES)
def test_mistakes(given: dict[str, Any], said: str) -> None:
    with refuses(InvalidArgument) as caught:
        toml.parse({key: value for key, value in given.items() if value is not None})
    assert re.match(f"(?:{said})|.*(?:{said})", str(caught.value)), str(caught.value)
    assert re.search(r": expected .+, got .+\. Fix: .+\.", str(caught.value))


def test_files_that_are_no_cards(tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    for raw, said in (
        (b"name = ", "card t.toml: .* a mistake in line 1, column 7: name ="),
        (b"\xff\xfe", "another encoding"),
        (b"a = 1\na = 2\nb = 1", "a mistake in line 2, column 6: a = 2"),
        (b"", "nothing"),
        (b"# later\n", "draft a card with dither init"),
    ):
        path.write_bytes(raw)
        with pytest.raises(InvalidArgument, match=said):
            toml.read(path)
    for place, said in (
        (tmp_path, "a folder"),
        (tmp_path / "nothing.toml", "dither init"),
        (tmp_path / "tt.toml", "'t.toml'"),
    ):
        with refuses(InvalidArgument, "card: expected", said):
            toml.read(place)
    rows = tmp_path / "rows.csv"
    rows.write_text("a,b\n1,2\n")
    with refuses(InvalidArgument, "card: expected a card in TOML, got a file of rows", "dither init rows.csv"):
        toml.read(rows)


@pytest.mark.parametrize(
    ("budget", "found"),
    [
        ({"epsilon": 1}, PureDP(1)),
        ({"epsilon": 0.1, "delta": 0}, PureDP(0.1)),
        ({"epsilon": 1, "delta": 1e-6, "per": "dataset"}, ApproxDP(1, 1e-6)),
        ({"rho": 0.5}, ZCDP(0.5)),
    ],
)
def test_budgets(budget: dict[str, Any], found: Any) -> None:
    card = toml.parse(changed(budget=budget))
    assert (card.budget, card.each_person, card.each_analyst) == (found, None, None)
    person = toml.parse(changed(unit="a", budget={**budget, "per": "person", "each_analyst": 0.5}))
    assert (person.budget, person.each_person, person.each_analyst) == (None, found, PureDP(0.5))


def test_rows_without_a_unit() -> None:
    columns = {"a": "integer"}
    assert toml.parse(changed(columns=columns, unit="a", rows_without_unit="drop")).rows_without_unit == "drop"
    each = toml.parse(changed(columns=columns, unit="a", rows_without_unit="each"))
    assert each.counts_rows_without_unit
    assert not any("rows without a" in gap for gap in toml.gaps(each))
    unsaid = toml.parse(changed(columns=columns, unit="a"))
    assert any("rows without a are" in gap for gap in toml.gaps(unsaid))
    for card, fragment in (
        (
            changed(columns=columns, unit="a", rows_without_unit="each", budget={"epsilon": 1, "per": "person"}),
            '"drop" where people have budgets',
        ),
        (changed(columns=columns, unit="a", rows_without_unit="keep"), "'keep'"),
        (changed(columns=columns, rows_without_unit="drop"), "a unit"),
    ):
        with refuses(InvalidArgument, "rows_without_unit", fragment):
            toml.parse(card)


# -- gaps ------------------------------------------------------------------------------------------------------------


def test_gaps() -> None:
    bare = toml.parse(changed(columns={"a": "integer", "b": "text", "c": "date"}))
    said = "\n".join(toml.gaps(bare))
    assert "no bounds for a: SUM, AVG, VAR, STDDEV, MIN, MAX and quantiles of it are refused" in said
    assert "no keys for b and no delta: GROUP BY b is refused" in said
    assert "no unit" in said
    assert "no budget: nothing can be released" in said
    spent = toml.parse(changed(budget={"epsilon": 1}))
    assert any(gap.startswith("no ledger") for gap in toml.gaps(spent))


@pytest.mark.parametrize("rows", [1, 257, 100_000, "auto"])
def test_many_rows_of_a_person_are_no_gap(rows: Any) -> None:
    assert not [gap for gap in toml.gaps(Card("t", "t.csv", {}, unit="who", max_rows=rows)) if "max_rows" in gap]


def test_no_gaps() -> None:
    full = toml.parse(
        {
            "name": "t", "source": "t.csv", "unit": "who", "delta": 1e-6, "ledger": "l.sqlite",
            "budget": {"epsilon": 1}, "rows_without_unit": "drop",
            "columns": {"who": "integer", "x": {"type": "number", "bounds": [0, 1]},
                        "t": {"type": "text", "keys": ["a"]}},
        }
    )  # fmt: skip
    assert toml.gaps(full) == []


def test_bounds_of_dates() -> None:
    columns = {
        "a": {"type": "date", "bounds": [date(2024, 1, 1), date(2024, 12, 31)]},
        "b": {"type": "timestamp", "bounds": [date(2024, 1, 1), date(2024, 12, 31)]},
        "c": {"type": "timestamp", "bounds": [datetime(2024, 1, 1, 6), datetime(2024, 1, 1, 8)]},
        "d": {"type": "date", "format": "%d.%m.%Y"},
    }
    columns_by_name = columns_of({"columns": columns}, "")
    assert columns_by_name["a"].period == (date(2024, 1, 1), date(2024, 12, 31))
    assert columns_by_name["b"].period == (datetime(2024, 1, 1), datetime(2024, 12, 31, 23, 59, 59, 999999))
    assert columns_by_name["c"].period == (datetime(2024, 1, 1, 6), datetime(2024, 1, 1, 8))
    assert columns_by_name["d"].format == "%d.%m.%Y"
    assert all(column.bounds is None for column in columns_by_name.values())


@pytest.mark.parametrize(
    ("section", "fragment"),
    [
        ({"type": "date", "bounds": ["2024-01-01", "2024-12-31"]}, "two dates [first, last]"),
        ({"type": "date", "bounds": [date(2024, 1, 1)]}, "two dates [first, last]"),
        ({"type": "date", "bounds": [datetime(2024, 1, 1), datetime(2024, 1, 2)]}, "times of day"),
        ({"type": "date", "bounds": [date(2024, 1, 2), date(2024, 1, 1)]}, "swap them"),
        ({"type": "text", "format": "%Y-%m-%d"}, "a format of dates, timestamps or numbers only"),
        ({"type": "date", "format": "%Y-%m"}, "%Y, %m and %d, each once"),
        ({"type": "date", "format": "%Y-%m-%d %H"}, "%Y, %m and %d, each once"),
        ({"type": "timestamp", "format": "%Y-%m-%d %M"}, "%H with %M"),
        ({"type": "date", "format": "%Y%m%d[0]"}, "letters, spaces and signs"),
        ({"type": "date", "format": "%y-%m-%d"}, "%Y, %m and %d, each once"),
        ({"type": "date", "format": 5}, "text"),
    ],
)
def test_mistakes_about_dates(section: dict[str, object], fragment: str) -> None:
    with refuses(InvalidArgument, "columns.a", fragment):
        columns_of({"columns": {"a": section}}, "")


COLUMNS = {"day": ColumnCard("date"), "x": ColumnCard("number", (0, 9))}
SECTION = {
    "over": "week", "column": "day", "horizon": 52, "start": date(2026, 1, 5), "rho": 0.1, "max_participations": 2,
    "aggregates": {"n": "count", "total": "sum( x )"},
}  # fmt: skip


def test_a_section_is_read():
    read = series_of({"weekly": SECTION}, COLUMNS)["weekly"]
    assert (read.over, read.horizon, read.start, read.groups) == ("week", 52, date(2026, 1, 5), ())
    assert read.options == {"rho": 0.1, "max_participations": 2}
    assert SeriesAggregate.read(read.aggregates["total"], "total") == SeriesAggregate("sum", "x")
    assert series_of(None, COLUMNS) == {}


@pytest.mark.parametrize("given", [[], {}, {"a b": SECTION}, {"weekly": 3}, {"weekly": {**SECTION, "aggregates": {}}}])
def test_what_is_no_section_is_refused(given):
    with refuses(dp.InvalidArgument, "series"):
        series_of(given, COLUMNS)


def test_a_missing_file_is_refused_with_the_nearest_name(tmp_path):
    (tmp_path / "visits.toml").write_text("a = 1")
    assert contents(read_bytes(tmp_path / "visits.toml", "plan", ""), "plan") == {"a": 1}
    with refuses(dp.InvalidArgument, "plan", "'visit.toml'", "'visits.toml', the nearest name"):
        read_bytes(tmp_path / "visit.toml", "plan", "or draft one")
    with refuses(dp.InvalidArgument, "card", "a folder"):
        read_bytes(tmp_path, "card", "")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"a = ", ["a mistake"]),
        (b"a = 1\nb = = 2", ["line 2"]),
        (b"\xff\xfe", ["UTF-8"]),
        (b"a = " + b"[" * 5000, ["Fix"]),
    ],
)
def test_a_mistake_is_named_by_its_line(raw, words):
    with refuses(dp.InvalidArgument, "plan", *words):
        contents(raw, "plan")


LONG = "\n".join(f"a{i} = {i}" for i in range(50))


@each(
    ("text", "said"),
    [
        (LONG + "\nbounds = [0,, 10]", "line 51, column 13: bounds = [0,, 10]"),
        (LONG + "\nbounds = ", "line 51, column 9: bounds ="),
        (LONG + "\nkeys = [1,\n2\n\n# more\n[columns.a]\nb = 1", "what begins in line 51: keys = [1,"),
        (LONG + '\nname = "visits\nb = 1', 'line 51, column 15: name = "visits'),
        (LONG + '\nname = """visits\nb = 1\n', 'what begins in line 51: name = """visits'),
        (LONG + "\na1 = 5", "line 51, column 7: a1 = 5"),
        (LONG + "\nage : 5\n" + "b = 1", "line 51, column 5: age : 5"),
        ('source = "postgresql://u:hunter2@h/d?password=hunter2::t', "postgresql://u:…@h/d?password=…::t"),
        ('oidc_client_secret = "hunter2', "line 1, column 30: oidc_client_secret = …"),
        ("a = \x1b[2J", "a = \\x1b[2J"),
    ],
)
def test_a_mistake_is_shown_with_its_file_its_line_and_what_stands_there(text, said):
    with refuses(dp.InvalidArgument, "card visits.toml: expected a file in TOML, got a mistake in ", said) as refusal:
        contents(text.encode(), "card", Path("some/visits.toml"))
    assert "hunter2" not in str(refusal.value)


def test_every_file_in_toml_is_read_so(tmp_path):
    place = tmp_path / "dither-server.toml"
    place.write_text("tick = 0.5\nport = = 9")
    with refuses(dp.InvalidArgument, "config dither-server.toml", "line 2, column 8: port = = 9"):
        read_config(str(tmp_path), environment={})
    plan = tmp_path / "plan.toml"
    plan.write_text("card = ")
    with refuses(dp.InvalidArgument, "plan plan.toml", "line 1, column 7: card ="):
        dp.publish.plan(plan)


SEVERAL = """
name = "clinic"
rows_without_unit = "drop"
ledger = "clinic.sqlite"

[budget]
epsilon = 1
delta = 1e-6
per = "person"

[tables.visits]
source = "visits.parquet"
unit = "patient"
rows = 1000
[tables.visits.columns]
patient = "text"
amount = "number"

[tables.patients]
source = "a.duckdb::patients"
unit = "id"
[tables.patients.columns]
id = "text"
region = "text"
"""


def test_a_card_of_several_tables(tmp_path: Path) -> None:
    path = tmp_path / "clinic.toml"
    path.write_text(SEVERAL)
    card = toml.read(path)
    assert (card.source, dict(card.columns), card.unit, card.each_person) == ("", {}, None, ApproxDP(1, 1e-6))
    visits = {"patient": ColumnCard("text"), "amount": ColumnCard("number")}
    assert card.tables == {
        "visits": PrivateTable(str(tmp_path / "visits.parquet"), visits, "patient", 1000),
        "patients": PrivateTable(
            f"{tmp_path}/a.duckdb::patients", {"id": ColumnCard("text"), "region": ColumnCard("text")}, "id"
        ),
    }
    alone = card.for_table("visits")
    assert (alone.name, alone.unit, alone.rows, dict(alone.tables)) == ("visits", "patient", 1000, {})
    gaps = "\n".join(toml.gaps(card))
    assert "no bounds for visits.amount" in gaps
    assert "no keys for patients.region and no delta: GROUP BY region" in gaps
    assert "no unit" not in gaps
    assert "rows without" not in gaps


def test_a_table_of_the_card_itself_and_another() -> None:
    card = toml.parse({**tomllib.loads(SEVERAL), "source": "c.csv", "unit": "who", "columns": {"who": "text"}})
    assert list(card.private_tables) == ["clinic", "visits", "patients"]
    assert dict(card.for_table("clinic").tables) == {}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('unit = "id"', "", "tables.patients.unit: expected a unit, since there are several tables, got none"),
        ('unit = "id"', 'unit = "nobody"', r"tables.patients.unit: .* add \[tables.patients.columns.nobody\]"),
        ('id = "text"', 'id = "integer"', "tables.patients.unit: expected a column of type text, as in visits"),
        ('id = "text"', 'id = "date"', "tables.patients.unit: expected a column of type integer or text"),
        ("[tables.patients]", "[tables.clinic]", "tables.*"),
        ('source = "visits.parquet"', "", "tables.visits.source: expected text, got none"),
        (
            'unit = "patient"',
            'unit = "patient"\nbudget = 1',
            "tables.visits.budget: expected source, unit, person",
        ),
        ("rows = 1000", "rows = 0", "rows: expected a whole number"),
        ('patient = "text"', 'patient = "tex"', "tables.visits.columns.patient.type: expected"),
    ],
)
def test_mistakes_in_a_card_of_several_tables(old: str, new: str, said: str) -> None:
    assert old in SEVERAL
    with refuses(InvalidArgument) as caught:
        toml.parse(tomllib.loads(SEVERAL.replace(old, new)))
    assert re.match(said, str(caught.value)), str(caught.value)


def test_a_draft_of_several_tables_can_be_read_back() -> None:
    visits, people = pa.table({"patient": [1], "amount": [2.5]}), pa.table({"patient": ["1"], "region": ["a"]})
    card = toml.parse(tomllib.loads(draft({"visits": visits, "people": people}, "patient", "clinic")))
    assert list(card.private_tables) == ["visits", "people"]
    assert {table.columns["patient"].type for table in card.tables.values()} == {"text"}  # which both of them can be
    assert card.rows_without_unit == "drop"


@pytest.mark.parametrize("source", ["rows.csv", "./rows.csv", "folder/../rows.csv"])
def test_private_rows_are_no_public_table(source):
    columns = {"region": ColumnCard("text")}
    card = Card("visits", "rows.csv", columns, public={"regions": PublicTable(source, columns)})
    with refuses(NotPrivate, "public.regions.source", "holds no private rows"):
        check_private_tables(card)


def test_a_public_table_has_a_name_of_its_own():
    """SQL would read the public table where the private one was meant, or the reverse."""
    for name in ("visits", "VISITS"):
        card = {"name": "visits", "source": "v.parquet", "budget": {"epsilon": 1}, "columns": {"k": "text"}}
        with refuses(InvalidArgument, f"public.{name}", "a name that nothing else has"):
            toml.parse(card | {"public": {name: {"source": "p.parquet", "columns": {"k": "text"}}}})
