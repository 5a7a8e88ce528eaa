"""Public tables in questions: alone, beside an answer, in subqueries whose values are constants; and CURRENT_DATE."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from client.fake_server import TOKEN, fake_server
from dither.guarantees import FREE
from dither.tables.execute import release as execute
from support import for_each, noted, refuses
from tables.visits import spent

VISITS = pa.table(
    {
        "who": [i % 40 for i in range(400)],
        "amount": [float(i % 50) for i in range(400)],
        "region": ["a" if i % 7 < 3 else "b" if i % 7 < 5 else None if i % 91 == 6 else "c" for i in range(400)],
        "day": [date(2024, 1, 1) + timedelta(days=i % 300) for i in range(400)],
    }
)
PLACES = pa.table({"region": ["a", "b", "c"], "people": [10, 20, 40], "coast": [True, False, None], "zone": [1, 1, 2]})
ZONES = pa.table({"zone": [1, 2, 3], "price": [1.5, 30.0, -4.0], "since": [date(2020, 1, 1), date(2024, 6, 1), None]})
CARD = """
name = "visits"
source = "visits.parquet"
unit = "who"
max_groups = 3
max_rows = 10
ledger = "ledger.sqlite"
[budget]
epsilon = 4600
[columns]
who = "integer"
amount = { type = "number", bounds = [0, 50] }
region = { type = "text", keys = ["a", "b", "c"] }
day = { type = "date", bounds = [2024-01-01, 2024-12-31] }
[public.places]
source = "places.parquet"
columns = { region = "text", people = "integer", coast = "boolean", zone = "integer" }
[public.zones]
source = "zones.parquet"
columns = { zone = "integer", price = "number", since = "date" }
"""
EXACT = 200
"""An epsilon at which the noise of a count is below 1."""


@pytest.fixture
def folder(tmp_path):
    for name, rows in (("visits", VISITS), ("places", PLACES), ("zones", ZONES)):
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    (tmp_path / "card.toml").write_text(CARD, encoding="utf-8")
    return tmp_path


@pytest.fixture
def visits(folder):
    with dp.open(folder / "card.toml") as table:
        yield table


def by_duckdb(sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as database:
        for name, rows in (("visits", VISITS), ("places", PLACES), ("zones", ZONES)):
            database.register(name, rows)
        return database.sql(sql).fetchall()


ALONE = [
    "SELECT COUNT(*) AS n FROM places",
    "SELECT zone, SUM(people) AS people FROM Places GROUP BY zone ORDER BY zone",
    "SELECT p.region, z.price FROM places p LEFT JOIN zones z USING (zone) ORDER BY 1",
    "WITH q AS (SELECT * FROM places WHERE coast) SELECT COUNT(*) AS n FROM q",
    "SELECT region, RANK() OVER (ORDER BY people DESC) AS place FROM places ORDER BY region",
    "SELECT COUNT(*) AS n FROM places WHERE people > (SELECT AVG(people) FROM places)",
    "SELECT zone FROM places UNION SELECT zone FROM zones ORDER BY 1",
]


def test_public_tables_alone_are_exact_and_free(visits):
    before = spent(visits)

    def check(sql):
        question = visits.sql(sql)
        plan, answer = question.explain(), question.release(epsilon=1)
        assert list(answer.rows) == by_duckdb(sql)
        assert not answer.errors
        assert answer.cost == plan.cost == FREE
        (values,) = noted(answer, "public_alone")
        assert values["tables"]

    for_each(ALONE, check)
    assert spent(visits) == before


def test_they_are_answered_without_the_right_to_charge(folder, visits):
    with dp.open(folder / "card.toml", read_only=True) as table:
        assert table.sql(ALONE[0]).release().dicts() == [{"n": 3}]


def test_a_server_answers_them_too(visits):
    with fake_server(visits) as (_, url), dp.connect(url, token=TOKEN) as table:
        answer = table.sql(ALONE[1]).release(epsilon=1)
        assert list(answer.rows) == by_duckdb(ALONE[1])
        assert answer.cost is FREE
        count = table.sql(IN_ROWS[0]).release(epsilon=EXACT)
        assert list(count.rows) == by_duckdb(IN_ROWS[0])


BESIDE = [
    "SELECT c.region, c.n, p.people FROM (SELECT region, COUNT(*) AS n FROM visits GROUP BY region) c "
    "JOIN places p ON c.region = p.region ORDER BY 1",
    "WITH c AS (SELECT region, COUNT(*) AS n FROM visits GROUP BY region) "
    "SELECT zone, SUM(n) AS n FROM places LEFT JOIN c USING (region) GROUP BY zone ORDER BY 1",
    "WITH c AS (SELECT region, COUNT(*) AS n FROM visits GROUP BY region) "
    "SELECT region, n / (SELECT people FROM places p WHERE p.region = c.region) AS per_head FROM c ORDER BY 1",
]


def test_an_answer_is_joined_to_public_tables(visits):
    def check(sql):
        answer = visits.sql(sql).release(epsilon=EXACT)
        known = [row for row in by_duckdb(sql) if row[0] is not None]
        assert len(answer.rows) == len(known)
        for row, true in zip(answer.rows, known, strict=True):
            assert row == pytest.approx(true, abs=1.5)
        assert set(answer.errors) == {answer.columns[1]}  # what is computed from noise has a ±, and nothing else

    for_each(BESIDE, check)


IN_ROWS = [
    "SELECT COUNT(*) AS n FROM visits WHERE region IN (SELECT region FROM places WHERE people > 10)",
    "SELECT COUNT(*) AS n FROM visits WHERE region NOT IN (SELECT region FROM places WHERE people > 10)",
    "SELECT COUNT(*) AS n FROM visits WHERE region = ANY (SELECT region FROM places WHERE coast IS NULL OR coast)",
    "SELECT COUNT(*) AS n FROM visits WHERE amount > (SELECT MAX(price) FROM zones)",
    "SELECT COUNT(*) AS n FROM visits WHERE amount > (SELECT MIN(price) FROM zones)",
    "SELECT COUNT(*) AS n FROM visits WHERE day < (SELECT MAX(since) FROM zones)",
    "SELECT COUNT(*) AS n FROM visits "
    "WHERE region IN (SELECT region FROM places JOIN zones USING (zone) WHERE price > 9)",
    "SELECT COUNT(*) AS n FROM visits WHERE region IN (SELECT region FROM places WHERE people > 1000)",
    "SELECT COUNT(*) AS n FROM visits WHERE NOT region IN (SELECT region FROM places WHERE people > 1000)",
    "SELECT COUNT(*) AS n FROM visits WHERE region IN (SELECT NULLIF(region, 'a') FROM places)",
    "SELECT COUNT(*) AS n FROM visits WHERE EXISTS (SELECT 1 FROM zones WHERE price < 0)",
    "SELECT COUNT(*) AS n FROM visits WHERE NOT EXISTS (SELECT 1 FROM zones WHERE price < 0)",
    "SELECT SUM(CASE WHEN amount > (SELECT AVG(people) FROM places) THEN 1 ELSE 0 END) AS n FROM visits",
    "WITH big AS (SELECT region FROM places WHERE people > 10) "
    "SELECT COUNT(*) AS n FROM visits WHERE region IN (SELECT region FROM places WHERE zone = 2)",
]


def test_subqueries_of_public_tables_are_their_values(visits):
    def check(sql):
        answer = visits.sql(sql).release(epsilon=EXACT)
        assert answer.rows[0] == pytest.approx(by_duckdb(sql)[0], abs=1.5)

    for_each(IN_ROWS, check)


def test_another_value_is_another_question(folder, visits):
    sql = IN_ROWS[3]
    before = visits.sql(sql).query
    pq.write_table(ZONES.set_column(1, "price", pa.array([1.5, 44.0, -4.0])), folder / "zones.parquet")
    with dp.open(folder / "card.toml") as table:
        assert table.sql(sql).query != before


def test_what_cannot_be_a_value_is_refused(visits, monkeypatch):
    with refuses(dp.InvalidArgument, "one value of a subquery", "3 rows"):
        visits.sql("SELECT COUNT(*) FROM visits WHERE amount > (SELECT people FROM places)")
    with refuses(dp.InvalidArgument, "one column in a subquery", "2"):
        visits.sql("SELECT COUNT(*) FROM visits WHERE region IN (SELECT region, zone FROM places WHERE zone = 1)")
    with refuses(dp.InvalidArgument, "EXISTS about a private table"):  # with the join that says the same
        visits.sql("SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM places p WHERE p.region = v.region)")
    monkeypatch.setattr(execute, "MOST_PUBLIC_ROWS", 2)
    with refuses(dp.InvalidArgument, "at most 2 rows beside an answer"):
        visits.sql("SELECT COUNT(*) AS n FROM places").release()


def test_rows_are_not_read_beside_public_tables(visits):
    """SQL on an answer reads public tables and no others, whatever they are called."""
    for sql in (
        "SELECT n, (SELECT MAX(amount) FROM visits) AS most FROM (SELECT COUNT(*) AS n FROM visits)",
        "SELECT p.region FROM places p JOIN visits v ON p.region = v.region",
        "SELECT MAX(amount) AS most FROM (SELECT * FROM visits) JOIN places USING (region) UNION SELECT 1",
        "SELECT * FROM places, read_csv('visits.parquet')",
    ):
        try:
            answer = visits.sql(sql).release(epsilon=1)
        except dp.DitherError:
            continue
        assert answer.cost != FREE


DAYS = "SELECT COUNT(*) AS n FROM visits WHERE day >= CURRENT_DATE - INTERVAL 30 DAY AND day < {}"


def test_current_date_is_a_stated_day(visits):
    day = date(2024, 5, 17)
    for written in ("CURRENT_DATE", "NOW()", "CURRENT_TIMESTAMP", "today()", "CURRENT_DATE()"):
        question = visits.sql(DAYS.format(written), as_of=day)
        answer = question.release(epsilon=EXACT)
        stated = DAYS.format("CURRENT_DATE").replace("CURRENT_DATE", f"DATE '{day}'")
        assert answer.rows[0] == pytest.approx(by_duckdb(stated)[0], abs=1.5)
        assert noted(answer, "as_of") == [{"day": "2024-05-17"}]
    assert (
        visits.sql(DAYS.format("CURRENT_DATE"), as_of="2024-05-17").query
        == visits.sql(DAYS.format("CURRENT_DATE"), as_of=day).query
    )
    assert visits.sql("SELECT COUNT(*) AS n FROM visits", as_of=day).query.as_of is None


def test_the_day_is_the_card_s_or_today(folder, visits):
    sql = DAYS.format("CURRENT_DATE")
    today = {datetime.now(UTC).date()}
    asked = visits.sql(sql).query.as_of
    assert asked in today | {datetime.now(UTC).date()}
    stated = CARD.replace('unit = "who"', 'unit = "who"\nas_of = 2024-03-01')
    (folder / "card.toml").write_text(stated, encoding="utf-8")
    with dp.open(folder / "card.toml") as table:
        assert table.sql(sql).query.as_of == date(2024, 3, 1)
        first = table.sql(sql).release(epsilon=1)
        assert table.sql(sql).release(epsilon=1).replayed
        again = table.sql(sql, as_of="2024-03-02").release(epsilon=1)
        assert not again.replayed
        assert first.cost == again.cost
    (folder / "card.toml").write_text(stated.replace("2024-03-01", '"soon"'), encoding="utf-8")
    with refuses(dp.InvalidArgument, "as_of", "a date"):
        dp.open(folder / "card.toml")
