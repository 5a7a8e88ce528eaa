"""One contract for tables: what ``dither.open`` promises holds for ``dither.connect``, against a real server.

Every test runs twice, on a table that was opened here and on one that a server answers for. What is compared beside it
(texts of refusals, explanations) comes from a table of the same card that is opened here, to read only.
"""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.errors import DitherError
from dither.wire.results import answer_to_json
from support import refuses

ROWS = pa.table(
    {
        "who": [i % 400 for i in range(2000)],
        "region": [("north", "south", "east")[i % 3] for i in range(2000)],
        "product": [f"p{i % 7}" for i in range(2000)],
        "amount": [float(i % 50) for i in range(2000)],
        "age": [i % 90 for i in range(2000)],
        "vip": [i % 5 == 0 for i in range(2000)],
    }
)
REGIONS = pa.table({"region": ["north", "south", "east"], "coast": ["yes", "no", "no"]})
COLUMNS = """
who = { type = "integer" }
region = { type = "text", keys = ["north", "south", "east"] }
product = { type = "text" }
amount = { type = "number", bounds = [0, 50] }
age = { type = "integer", bounds = [0, 120] }
vip = { type = "boolean" }
"""
CARD = f"""
name = "NAME"
source = "NAME.rows.parquet"
ledger = "NAME.ledger.sqlite"
unit = "who"
max_groups = 3
max_rows = 5
delta = 1e-6
rows = 2000
rows_without_unit = "drop"
[budget]
epsilon = 10
delta = 1e-3
[columns]
{COLUMNS}
[public.regions]
source = "NAME.regions.parquet"
columns = {{ region = {{ type = "text" }}, coast = {{ type = "text" }} }}
"""
SEVERAL = f"""
name = "NAME"
ledger = "NAME.ledger.sqlite"
max_groups = 3
max_rows = 5
rows_without_unit = "drop"
[budget]
epsilon = 10
[tables.visits]
source = "NAME.rows.parquet"
unit = "who"
[tables.visits.columns]
{COLUMNS}
[tables.people]
source = "NAME.rows.parquet"
unit = "who"
[tables.people.columns]
who = {{ type = "integer" }}
vip = {{ type = "boolean" }}
"""


@dataclass
class Place:
    """Where tables are opened: here, or through a server."""

    kind: str
    add: Callable[..., str]
    open: Callable[[str], Any]
    folder: Path

    def table(self, card: str = CARD) -> Any:
        """A table of the card that nobody has asked yet."""
        return self.open(self.add(card, rows=ROWS, regions=REGIONS))

    def reference(self, table: Any) -> dp.Table:
        """The same table, opened here to read only."""
        return dp.open(str(self.folder / f"{table.card.name}.toml"), read_only=True)


@pytest.fixture(params=["open", pytest.param("connect", marks=pytest.mark.slow)], scope="module")
def place(request, tmp_path_factory):
    if request.param == "connect":
        served = request.getfixturevalue("served")
        yield Place(
            "connect", served.add, lambda name: dp.connect(served.url + name, token=served.tokens["ann"]), served.folder
        )
        return
    numbers, tmp_path = count(1), tmp_path_factory.mktemp("opened")

    def add(card: str, **sources: Any) -> str:
        name = f"t{next(numbers)}"
        for file, rows in sources.items():
            pq.write_table(rows, tmp_path / f"{name}.{file}.parquet")
        (tmp_path / f"{name}.toml").write_text(card.replace("NAME", name), encoding="utf-8")
        return name

    yield Place("open", add, lambda name: dp.open(str(tmp_path / f"{name}.toml")), tmp_path)


@pytest.fixture
def visits(place):
    with place.table() as table:
        yield table


@pytest.fixture(scope="module")
def unspent(place):
    """A table of which nothing is released, and the same one opened here."""
    with place.table() as table, dp.open(str(place.folder / f"{table.card.name}.toml")) as here:
        yield table, here


def name_of(table: Any) -> str:
    return table.card.name


QUESTIONS: dict[str, Callable[[Any], dp.Question]] = {
    "count": lambda t: t.sql(f"SELECT COUNT(*) AS n FROM {name_of(t)}"),
    "public keys": lambda t: t.sql(f"SELECT region, COUNT(*) AS n, AVG(amount) AS m FROM {name_of(t)} GROUP BY region"),
    "private keys": lambda t: t.sql(f"SELECT product, COUNT(*) AS n FROM {name_of(t)} GROUP BY product"),
    "quantiles": lambda t: t.sql(f"SELECT MEDIAN(amount) AS m, MAX(age) AS a FROM {name_of(t)}"),
    "rollup": lambda t: t.sql(f"SELECT region, vip, COUNT(*) AS n FROM {name_of(t)} GROUP BY ROLLUP (region, vip)"),
    "window": lambda t: t.sql(
        "SELECT COUNT(*) AS n FROM (SELECT who, ROW_NUMBER() OVER (PARTITION BY who ORDER BY age) AS k "
        f"FROM {name_of(t)}) WHERE k = 1"
    ),
    "having": lambda t: t.sql(
        f"SELECT region, SUM(amount) AS s FROM {name_of(t)} GROUP BY region HAVING SUM(amount) > 10 ORDER BY s LIMIT 2"
    ),
    "public join": lambda t: t.sql(
        f"SELECT coast, COUNT(*) AS n FROM {name_of(t)} JOIN regions USING (region) GROUP BY coast"
    ),
    "builder": lambda t: t.where("age > 18").group_by("region").agg(n=dp.count(), s=dp.sum("amount"), p=dp.people()),
    "expressions": lambda t: t.where((dp.col("amount") > 3) & ~dp.col("vip")).group_by(old=dp.col("age") > 60).agg(
        n=dp.count(), m=dp.mean(dp.col("amount") * 2, (0, 100))
    ),
    "among": lambda t: t.group_by(dp.among("product", ["p1", "p2", "other"])).agg(n=dp.count()),
    "per person": lambda t: t.per_person(total=dp.sum("amount")).agg(m=dp.mean("total", (0, 250)), n=dp.count()),
    "histogram": lambda t: t.agg(h=dp.histogram("age", [0, 30, 60, 90]), m=dp.mode("region"), s=dp.std("amount")),
    "pairs": lambda t: t.agg(c=dp.corr("amount", "age"), r=dp.regression_slope("amount", "age")),
    "after SQL": lambda t: t.sql(f"SELECT COUNT(*) AS n FROM {name_of(t)}").where("age > 18").group_by("vip"),
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_are_explained_and_answered_alike(visits, place, name):
    question = QUESTIONS[name](visits)
    with place.reference(visits) as reference:
        same = QUESTIONS[name](reference)
        assert repr(question) == repr(same)
        assert repr(question.query) == repr(same.query)
        expected = same.explain(epsilon=1)
    explanation = question.explain(epsilon=1)
    assert explanation == expected
    assert explanation._repr_html_() == expected._repr_html_()
    answer = question.release(epsilon=1)
    assert answer.cost == explanation.cost
    assert not answer.replayed
    assert len(answer.receipt) > 60
    again = QUESTIONS[name](visits).release(epsilon=1)
    assert again.replayed
    assert answer_to_json(again)["recorded"] == answer_to_json(answer)["recorded"]


def test_a_card_is_what_is_public(visits, place):
    with place.reference(visits) as reference:
        for name in ("name", "unit", "max_groups", "max_rows", "budget", "delta", "rows", "rows_without_unit"):
            assert getattr(visits.card, name) == getattr(reference.card, name)
        assert repr(visits.card.columns) == repr(reference.card.columns)
        assert repr(visits) == repr(reference)
        assert visits._repr_html_() == reference._repr_html_()
    if place.kind == "connect":
        shown = repr(vars(visits.card))
        assert "parquet" not in shown
        assert "sqlite" not in shown
        assert str(place.folder) not in shown


def test_what_is_left_is_exact(visits):
    question = QUESTIONS["count"](visits)
    assert visits.left == dp.ApproxDP(10, 1e-3)
    assert question.release(epsilon=0.1).left == visits.left
    assert question.release(epsilon=0.1).replayed  # free
    question.release(epsilon=0.1, again=True)
    question.release(epsilon=0.1, again=True)
    assert visits.left == dp.ApproxDP(9.7, 1e-3)
    with refuses(dp.BudgetExceeded, "9.7"):
        question.release(epsilon=9.8)
    assert visits.left == dp.ApproxDP(9.7, 1e-3)
    assert question.explain(epsilon=9.8).refused
    question.release(epsilon=9.7)
    with refuses(dp.BudgetExceeded):
        question.release(epsilon=0.001, force=True)


def test_keys_name_releases(visits):
    question = QUESTIONS["count"](visits)
    first = question.release(epsilon=0.5, key="monday")
    assert question.release(epsilon=0.5, key="monday") == first
    assert question.release(epsilon=0.5, key="monday").replayed
    assert not question.release(epsilon=0.5, key="tuesday").replayed
    before = visits.left
    with refuses(DitherError, "key"):
        QUESTIONS["builder"](visits).release(epsilon=0.5, key="monday")
    assert visits.left == before


def test_asking_anew_draws_new_noise(visits):
    question = QUESTIONS["public keys"](visits)
    assert len({str(question.release(epsilon=0.01, again=True, force=True).rows) for _ in range(5)}) == 5


def test_an_answer_that_would_be_noise_alone_asks_for_confirmation(visits):
    question, left = QUESTIONS["public keys"](visits), visits.left
    assert "asks for confirmation" in str(question.explain(epsilon=0.01))
    with refuses(dp.InvalidArgument, "± of n", "the answer would be noise alone", "force=True"):
        question.release(epsilon=0.01)
    assert visits.left == left
    answer = question.release(epsilon=0.01, force=True)
    assert question.release(epsilon=0.01).rows == answer.rows  # it is paid for


OPTIONS: list[dict[str, Any]] = [
    {"error": 200}, {"error": "20%"}, {"epsilon": 1, "noise": "gaussian"}, {"epsilon": 1, "max_rows": "auto"},
    {"epsilon": 1, "max_groups": 1, "max_rows": 2}, {"epsilon": 1, "interval": "population"},
    {"epsilon": 1, "nonnegative": True, "integer": True}, {"epsilon": 1, "delta": 1e-9}, {"epsilon": 1, "bias": True},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options_mean_the_same(visits, place, options):
    question = QUESTIONS["public keys"](visits)
    with place.reference(visits) as reference:
        expected = QUESTIONS["public keys"](reference).explain(**options)
    assert question.explain(**options) == expected
    assert question.explain(options=dp.ReleaseOptions(**options)) == expected
    answer = question.release(options=dp.ReleaseOptions(**options))
    assert answer.cost == expected.cost
    assert answer.columns == ("region", "n", "m")
    assert question.release(**options).replayed


def test_answers_are_the_same_objects(visits):
    answer = QUESTIONS["public keys"](visits).release(epsilon=1)
    assert type(answer) is dp.Answer
    assert (answer.columns, answer.types) == (("region", "n", "m"), ("text", "integer", "number"))
    assert sorted(answer["region"]) == ["east", "north", "south"]
    assert set(answer.errors) == {"n", "m"}
    assert list(answer.to_pandas().columns) == list(answer.to_polars().columns) == answer.to_arrow().column_names
    assert len(json.loads(answer.to_json())["rows"]) == 3
    assert answer.to_csv().count("\r\n") == 4
    assert answer._repr_html_()
    assert abs(sum(answer["n"]) - 2000) < 1000


REFUSED: dict[str, Callable[[Any], Any]] = {
    "no SQL": lambda t: t.sql("SELECT"),
    "rows": lambda t: t.sql(f"SELECT who FROM {name_of(t)}"),
    "an unknown column": lambda t: t.sql(f"SELECT COUNT(salary) FROM {name_of(t)}"),
    "another table": lambda t: t.sql("SELECT COUNT(*) FROM secrets"),
    "a file": lambda t: t.sql("SELECT COUNT(*) FROM '/etc/passwd'"),
    "a function that reads": lambda t: t.sql(f"SELECT COUNT(*) FROM {name_of(t)} WHERE read_text('/etc/passwd') = ''"),
    "two statements": lambda t: t.sql(f"SELECT COUNT(*) FROM {name_of(t)}; DROP TABLE {name_of(t)}"),
    "an unknown column in Python": lambda t: t.agg(s=dp.sum("salary")),
    "a condition that is none": lambda t: t.where("age"),
    "aggregates without names": lambda t: t.agg({"age": "mean"}),
    "nothing asked": lambda t: t.group_by("region").release(epsilon=1),
    "no epsilon": lambda t: QUESTIONS["count"](t).release(),
    "both": lambda t: QUESTIONS["count"](t).release(epsilon=1, error=5),
    "a negative epsilon": lambda t: QUESTIONS["count"](t).release(epsilon=-1),
    "a tiny epsilon": lambda t: QUESTIONS["count"](t).release(epsilon=1e-6),
    "an unknown option": lambda t: QUESTIONS["count"](t).release(epsilon=1, max_row=1),
    "no bounds": lambda t: t.sql(f"SELECT SUM(who) FROM {name_of(t)}").release(epsilon=1),
    "too much": lambda t: QUESTIONS["count"](t).release(epsilon=11),
    "a key that is derived": lambda t: QUESTIONS["count"](t).release(epsilon=1, key="a" * 64),
    "the length": len,
    "iteration": list,
    "a column of it": lambda t: t["age"],
    "a copy": copy.copy,
    "a pickle": pickle.dumps,
    "explaining no epsilon": lambda t: QUESTIONS["builder"](t).explain(),
    "publishing an unknown option": lambda t: QUESTIONS["builder"](t).explain(epsilon=1, constant=True),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_the_same(unspent, name):
    table, here = unspent
    with pytest.raises(DitherError) as refusal:
        REFUSED[name](table)
    with pytest.raises(DitherError) as expected:
        REFUSED[name](here)
    assert type(refusal.value) is type(expected.value)
    assert str(refusal.value) == str(expected.value)
    assert table.left == dp.ApproxDP(10, 1e-3)


def test_attributes_of_data_frames_are_answered_in_words(unspent):
    for name in ("head", "columns", "groupby", "amount"):
        with pytest.raises(AttributeError, match="Fix:"):
            getattr(unspent[0], name)


def test_several_tables(place):
    with place.table(SEVERAL) as clinic:
        assert repr(clinic).endswith("with visits, people)")
        answer = clinic["visits"].agg(n=dp.count()).release(epsilon=1)
        assert clinic["visits"].agg(n=dp.count()).release(epsilon=1) == answer
        joined = "SELECT COUNT(*) AS n FROM visits JOIN people USING (who) WHERE people.vip"
        assert clinic.sql(joined).release(epsilon=1).columns == ("n",)
        assert clinic.left == dp.PureDP(8)
        with refuses(dp.InvalidArgument, "visits, people"):
            clinic["secrets"]
        with refuses(dp.InvalidArgument, "visits, people"):
            clinic.agg(n=dp.count())


def test_a_closed_table_stays_closed(place):
    table = place.table()
    question = QUESTIONS["count"](table)
    table.close()
    for use in (lambda: question.release(epsilon=1), lambda: question.explain(epsilon=1), lambda: table.left):
        with refuses(DitherError, "closed"):
            use()
    assert "closed" in table._repr_html_()


def test_an_error_while_rows_are_read_costs_and_says_one_sentence(place):
    with place.table() as table:
        (place.folder / f"{name_of(table)}.rows.parquet").write_bytes(b"PAR1 is gone")
        with pytest.raises(DitherError) as failure:
            QUESTIONS["count"](table).release(epsilon=1)
        assert "parquet" not in str(failure.value).lower()
