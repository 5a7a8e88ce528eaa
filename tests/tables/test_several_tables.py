"""Several private tables of the same people in one card: what opens, what is refused, and one budget for all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.errors import BudgetExceeded, InvalidArgument, InvalidData
from dither.tables.card.model import Card, ColumnCard, PrivateTable
from dither.tables.engines import connect
from support import noted, refuses
from tables.conftest import fill

pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # Py4J leaves them to the collector

VISITS = pa.table({"patient": [i // 4 for i in range(4000)], "amount": [float(i % 10) for i in range(4000)]})
PATIENTS = pa.table({"id": list(range(1000)), "region": ["north", "south"] * 500})
COLUMNS = {
    "visits": {"patient": ColumnCard("integer"), "amount": ColumnCard("number", (0, 10))},
    "patients": {"id": ColumnCard("integer"), "region": ColumnCard("text", keys=("north", "south"))},
}
UNITS = {"visits": "patient", "patients": "id"}
BY_REGION = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"


def clinic(sources: dict[str, str], **more: Any) -> Card:
    tables = {name: PrivateTable(sources[name], COLUMNS[name], UNITS[name]) for name in sources}
    return Card("clinic", "", {}, max_rows=4, tables=tables, **{"budget": dp.PureDP(100), **more})


def truths(table: dp.Table) -> tuple[list[Any], Any]:
    """The regions and the mean, at so large an epsilon that the noise rounds to next to nothing."""
    regions = table.sql(BY_REGION).release(epsilon=20)
    mean = table.sql("SELECT AVG(amount) AS mean, COUNT(*) AS n FROM Visits WHERE amount > 0").release(epsilon=20)
    return [line["n"] for line in regions.dicts()], mean.dicts()[0]


def check_truths(table: dp.Table) -> None:
    regions, visits = truths(table)
    assert all(abs(n - 500) <= 5 for n in regions)
    assert abs(visits["n"] - 3600) <= 15
    assert abs(visits["mean"] - 5) < 0.1


def written(folder: Path, kind: str) -> dict[str, str]:
    """The two tables as files, or as tables of one or of two databases."""
    if kind == "files":
        pq.write_table(VISITS, folder / "visits.parquet")
        pa_csv.write_csv(PATIENTS, folder / "patients.csv")
        return {"visits": str(folder / "visits.parquet"), "patients": str(folder / "patients.csv")}
    places = {"visits": "a.duckdb", "patients": "a.duckdb" if kind == "one database" else "b.duckdb"}
    for name, rows in (("visits", VISITS), ("patients", PATIENTS)):
        with duckdb.connect(str(folder / places[name])) as connection:
            connection.register("rows", rows)
            connection.execute(f"CREATE TABLE {name}_rows AS SELECT * FROM rows")
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {name}_rows")
    return {name: f"{folder / place}::{name}" for name, place in places.items()}


@pytest.mark.parametrize("kind", ["files", "one database", "two databases"])
def test_each_table_of_a_card_can_be_asked_about(tmp_path, kind):
    card = clinic(written(tmp_path, kind), ledger=str(tmp_path / "ledger.sqlite"))
    with dp.open(card) as table:
        check_truths(table)
        assert table.left == dp.PureDP(60)
        assert {account.owner for account in table.ledger.accounts()} == {"clinic"}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["postgres", pytest.param("spark", marks=pytest.mark.slow)])
def test_each_table_of_a_server_can_be_asked_about(tmp_path, engine, request):
    if engine == "postgres":
        place = request.getfixturevalue("postgres")
        sources = {"visits": fill(place, VISITS), "patients": fill(place, PATIENTS)}
    else:
        request.getfixturevalue("spark")
        sources = {}
        for name, rows in (("visits", VISITS), ("patients", PATIENTS)):
            pq.write_table(rows, tmp_path / f"{name}.parquet")
            sources[name] = f"spark::{tmp_path}/{name}.parquet"
    with dp.open(clinic(sources, ledger=str(tmp_path / "ledger.sqlite"))) as table:
        check_truths(table)


def test_frames_of_any_kind_are_opened_together():
    frames = {"visits": VISITS.to_pandas(), "patients": pl.from_arrow(PATIENTS)}
    stated = {"unit": UNITS, "bounds": {"visits.amount": (0, 10)}, "keys": {"region": ["north", "south"]}}
    with dp.open(frames, max_rows=4, name="clinic", budget=dp.PureDP(100), **stated) as table:
        check_truths(table)
        assert repr(table) == "Table('clinic', with visits, patients)"
        assert "patients.id" in table._repr_html_()
        built = table["patients"].group_by("region").agg(n=dp.count()).release(epsilon=20)
        assert all(abs(line["n"] - 500) <= 5 for line in built.dicts())
        with refuses(InvalidArgument, "one of visits, patients", "table['visits']"):
            table.agg(n=dp.count())
        with refuses(InvalidArgument, "one of visits, patients", "'visits', the nearest name"):
            table["visit"]


def test_the_same_question_about_two_tables_is_two_questions():
    """Built in Python they have the same tree: the recorded answer of one must not be given for the other."""
    people = pd.DataFrame({"who": range(10)})
    frames = {"few": people, "many": pd.concat([people] * 100)}
    with dp.open(frames, unit="who", max_rows=100, budget=dp.PureDP(100)) as table:
        few = table["few"].agg(n=dp.count()).release(epsilon=40).dicts()[0]["n"]
        many = table["many"].agg(n=dp.count()).release(epsilon=40).dicts()[0]["n"]
        assert abs(few - 10) <= 60
        assert abs(many - 1000) <= 60
        assert table["few"].agg(n=dp.count()).release(epsilon=40).replayed


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"clinic": UNITS["visits"]}, ("tables.clinic", "name of the card")),
        ({"Regions": UNITS["visits"]}, ("tables.Regions", "public table")),
        ({"a": "patient", "A": "patient"}, ("tables.A", "another table")),
        ({"a b": "patient"}, ("tables.a b", "letters, digits")),
        ({"a": "patient", "b": None}, ("tables.b.unit", "several tables", "none")),
        ({"a": "patient", "b": "amount"}, ("tables.b.unit", "whole numbers or text", "number")),
        ({"a": "patient", "b": "nobody"}, ("tables.b.unit", "no such column")),
        ({"a": "patient", "b": "name"}, ("tables.b.unit", "type integer, as in a", "text")),
    ],
)
def test_tables_that_could_mean_two_things_or_have_other_people_are_refused(tmp_path, tables, words):
    columns = {**COLUMNS["visits"], "name": ColumnCard("text")}
    public = {"regions": dp.tables.card.model.PublicTable("r.csv", {"r": ColumnCard("text")})}
    card = Card(
        "clinic",
        "",
        {},
        budget=dp.PureDP(1),
        public=public,
        ledger=str(tmp_path / "ledger.sqlite"),
        tables={name: PrivateTable("v.csv", columns, unit) for name, unit in tables.items()},
    )
    with refuses(InvalidArgument, *words):
        dp.open(card)


def test_sources_of_different_engines_are_refused(tmp_path):
    sources = written(tmp_path, "files")
    for other in ("postgresql://nobody@localhost/x::t", "spark::t"):
        with refuses(InvalidArgument, "one engine", "tables of several", "copy them to one place"):
            connect({**sources, "patients": other}, clinic(sources))
    with refuses(InvalidArgument, "a source for each of patients, visits"):
        connect({"visits": sources["visits"]}, clinic(sources))


def test_every_table_is_checked_again_before_a_question(tmp_path):
    """Also a table that the question is not about: a later one may be, and the card says what both are."""
    sources = written(tmp_path, "files")
    with dp.open(clinic(sources, ledger=str(tmp_path / "ledger.sqlite"))) as table:
        pq.write_table(VISITS.rename_columns(["patient", "other"]), tmp_path / "visits.parquet")
        with refuses(InvalidData, "table visits: column amount"):
            table.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=1)
        pq.write_table(VISITS, tmp_path / "visits.parquet")
        Path(tmp_path / "patients.csv").write_text('id,region\n1,"north\n')
        with refuses(InvalidData, "table patients: source", "quotes closed"):
            table.sql(BY_REGION).release(epsilon=1)
        assert table.left == dp.PureDP(100)


def test_the_engine_has_each_table_by_name(tmp_path):
    sources = written(tmp_path, "files")
    with connect(sources, clinic(sources)) as engine:
        for name, rows in (("visits", VISITS), ("patients", PATIENTS)):
            table, empty = engine.private(name).sql("duckdb"), engine.empty_of(name).sql("duckdb")
            assert engine.run(f"SELECT COUNT(*) AS n FROM {table} AS t").to_pylist() == [{"n": rows.num_rows}]
            shown = engine.run(f"SELECT * FROM {empty} AS t")
            assert (shown.num_rows, shown.column_names) == (0, list(COLUMNS[name]))
        joined = f"{engine.private('visits')} AS v JOIN {engine.private('patients')} AS p ON v.patient = p.id"
        assert engine.run(f"SELECT COUNT(*) AS n FROM {joined}").to_pylist() == [{"n": 4000}]
        with refuses(InvalidArgument, "one of visits, patients", "none"):
            _ = engine.table
        with refuses(InvalidArgument, "one of visits, patients", "'others'"):
            engine.private("others")


def test_statements_of_one_question_see_one_state_of_a_server(postgres):
    source = fill(postgres, PATIENTS)
    table = source.rpartition("::")[2]
    with connect(source) as engine, psycopg.connect(postgres, autocommit=True) as other:
        count = f"SELECT COUNT(*) AS n FROM {engine.table.sql('postgres')} AS t"
        with engine.snapshot():
            assert engine.run(count).to_pylist() == [{"n": 1000}]
            other.execute(f"DELETE FROM {table} WHERE id < 400".encode())
            assert engine.run(count).to_pylist() == [{"n": 1000}]
        assert engine.run(count).to_pylist() == [{"n": 600}]


def test_people_pay_once_for_questions_about_either_table(tmp_path):
    """With a budget for each person, a question about one table is charged to the people in it, in one account."""
    sources = written(tmp_path, "files")
    pq.write_table(VISITS.slice(0, 400), tmp_path / "visits.parquet")  # the people from 0 to 99
    card = clinic(sources, budget=None, each_person=dp.PureDP(10), ledger=str(tmp_path / "ledger.sqlite"))
    with dp.open(card) as table:
        table.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=8)
        left = table.sql("SELECT COUNT(*) AS n FROM patients").release(epsilon=8).dicts()[0]["n"]
        assert abs(left - 900) <= 15  # those of visits cannot pay a second time
        for name in ("visits", "patients"):
            with refuses(BudgetExceeded, "nobody, after the questions about everybody"):
                table.sql(f"SELECT COUNT(*) AS m FROM {name}").release(epsilon=8)


def test_cells_of_a_join_that_takes_a_limited_number_of_rows_say_so():
    """What such a join loses is in no ±, so the cell says that the number may be off by more."""
    rows = pa.table({"patient": [1] * 400 + [2, 3], "amount": [1.0] * 402})
    frames = {"visits": rows, "patients": rows}
    stated = {"unit": {"visits": "patient", "patients": "patient"}, "bounds": {"amount": (0, 2)}}
    with dp.open(frames, max_rows=2**20, name="clinic", budget=dp.PureDP(100), **stated) as table:
        sql = "SELECT COUNT(*) AS n FROM visits v JOIN patients p ON v.patient = p.patient"
        answer = table.sql(sql).release(epsilon=50, force=True)
        assert answer.open_ended == {"n"}
        assert noted(answer, "join_limit")[0]["names"] == ["n"]
        assert "+" in answer.text()
        whole = table.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=1, force=True)
        assert not whole.open_ended
