"""Answers that version 0.1 recorded are found, and cost nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import dither as dp
from dither.tables.card.model import Card, ColumnCard, PublicTable
from dither.tables.execute import release
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question
from dither.tables.planning.error_0_1 import epsilon_0_1
from dither.tables.sql.parse import parse
from support import refuses

GOLDEN = Path(__file__).parents[1] / "golden" / "version_0_1"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))
REGIONS = ("north", "south", "east")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A copy of what version 0.1 left: the card's paths are relative, since they are part of its keys."""
    for path in GOLDEN.iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    for path in tmp_path.glob("*.sqlite*"):
        path.chmod(0o600)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def visits(**changes) -> Card:
    columns = {
        "patient": ColumnCard("integer"),
        "region": ColumnCard("text", None, REGIONS),
        "amount": ColumnCard("number", (0, 50)),
        "age": ColumnCard("integer", (0, 120)),
        "day": ColumnCard("date"),
    }
    districts = PublicTable("districts.csv", {"region": ColumnCard("text"), "district": ColumnCard("text")})
    stated = {
        "unit": "patient", "max_groups": 2, "max_rows": 3, "public": {"districts": districts},
        "ledger": "visits.ledger.sqlite", "budget": dp.ApproxDP(1000, 0.1), "delta": 1e-6, "version": "2024",
    }  # fmt: skip
    return Card("visits", "visits.csv", columns, **{**stated, **changes})


def plain(answer) -> dict:
    """As it was recorded by 0.1, which knew no kinds of notes."""
    stored = {name: value for name, value in answer.stored().items() if name != "note_kinds"}
    return json.loads(json.dumps(stored, default=str))


def test_every_answer_in_sql_is_replayed_for_free(folder):
    with dp.open(visits()) as table:
        left, head = table.left, table.ledger.head
        for recorded in (item for item in EXPECTED["visits"] if "consistent" not in item["options"]):
            answer = table.sql(recorded["sql"]).release(**recorded["options"])
            assert answer.replayed, recorded
            assert plain(answer) == recorded["stored"]
        assert table.left == left
        assert table.ledger.head == head  # nothing was written
        assert table.ledger.verify().entries


def test_every_answer_built_in_python_is_replayed_for_free(folder):
    numbers = range(100)
    frame = pa.table(
        {
            "person": list(numbers),
            "height": [150.0 + i % 40 for i in numbers],
            "left": [i % 2 == 0 for i in numbers],
        }
    )
    about = {"unit": "person", "name": "people", "bounds": {"height": (100, 250)}, "budget": dp.PureDP(100)}
    with dp.open(frame, **about, ledger="people.ledger.sqlite") as table:
        grouped = table.where("height > 160").group_by("left")
        questions = {
            "builder": grouped.agg(n=dp.count(), mean=dp.mean("height")),
            "automatic": table.agg(spread=dp.mean("height", bounds="auto")),
            "sql": table.sql("SELECT COUNT(*) AS n FROM people"),
        }
        head = table.ledger.head
        for recorded in EXPECTED["people"]:
            answer = questions[recorded["name"]].release(**recorded["options"])
            assert answer.replayed, recorded["name"]
            assert plain(answer) == recorded["stored"]
        assert table.ledger.head == head


def test_the_epsilon_that_version_0_1_spent_to_reach_an_error():
    """The answer has an option that is gone; ``other`` spends as much on totals as that did."""
    (recorded,) = (item for item in EXPECTED["visits"] if "error" in item["options"])
    query, card = parse(recorded["sql"], visits()), visits()
    planned = plan_question(query, card, ReleaseOptions(error=20))
    epsilon = epsilon_0_1(query, card, ReleaseOptions(error=20, other=True), planned)
    assert f"ε = {epsilon:g}" == recorded["stored"]["cost"]
    assert epsilon_0_1(query, card, ReleaseOptions(error=20), planned) == pytest.approx(epsilon * 0.8, rel=1e-3)


def test_what_version_0_1_did_not_answer_is_charged_and_recorded_anew(folder):
    text = "SELECT COUNT(*) AS n FROM visits"
    with dp.open(visits()) as table:
        before = table.left
        assert not table.sql(text).release(epsilon=7).replayed
        assert table.left != before
        assert table.sql(text).release(epsilon=7).replayed
        assert not table.sql(text).release(epsilon=1, again=True).replayed
    with dp.open(visits(version="2025")) as table:
        assert not table.sql(text).release(epsilon=1).replayed


def test_a_key_that_version_0_1_used_is_still_for_one_request(folder):
    with dp.open(visits()) as table:
        assert table.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=0.1, key="monday").replayed
        with refuses(dp.InvalidArgument, "key"):
            table.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=0.2, key="monday")


def test_the_key_of_version_0_1_is_made_only_where_it_may_be_needed(monkeypatch):
    requests = []
    original = release.request_0_1
    monkeypatch.setattr(release, "request_0_1", lambda *given: requests.append(given) or original(*given))
    with dp.open(pa.table({"x": [1, 2, 3]}), budget=dp.PureDP(10)) as table:
        question = table.agg(n=dp.count())
        question.release(epsilon=1)
        assert not requests  # nothing was charged before
        assert question.release(epsilon=1).replayed
        assert not requests  # the answer is recorded under the new key
        assert not question.release(epsilon=2).replayed
        assert len(requests) == 1
