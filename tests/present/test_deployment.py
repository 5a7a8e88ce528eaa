"""The record of a deployment: filled in from card and ledger, open where only the steward knows, escaped on a page."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import dither as dp
from dither.present import html
from dither.present.pages.deployment import OPEN, deployment
from dither.tables.card.model import Card, ColumnCard, PublicTable
from support import each

COLUMNS = {"person": ColumnCard("integer"), "age": ColumnCard("integer", bounds=(0, 110), keys=None)}


TOPICS = {  # of NIST SP 800-226, by the question here: who answers it
    "What is the unit of privacy?": "card",
    "Does each person have exactly one value of the unit?": "steward",
    "Which data sets are neighbors?": "dither",
    "What are the lifetime parameters of all answers together?": "card",
    "Variant of differential privacy": "card",
    "What is promised to several people together?": "dither",
    "How are several answers composed?": "card",
    "Is the budget ever reset?": "dither",
    "May answers be processed further?": "dither",
    "Were data released before, outside of this ledger?": "steward",
    "What is known about the error of answers?": "dither",
    "What bias do the algorithms add?": "dither",
    "Whose answers are less accurate?": "dither",
    "Is the error small enough for every group that matters?": "steward",
    "How is one person's influence bounded?": "card",
    "What is the query model?": "dither",
    "What is the trust model?": "dither",
    "Is the noise safe against attacks on floating point?": "dither",
    "Which side channels remain?": "dither",
    "How was the implementation checked?": "dither",
    "Who holds the rows, and who can read them?": "steward",
    "How is access to the rows and the ledger controlled?": "steward",
    "What does collecting the data expose?": "steward",
}


def answers(record):
    return {item.question: item for section in record.sections for item in section.items}


def test_without_a_ledger_it_is_filled_in_from_the_card():
    card = Card("visits", "v.csv", COLUMNS, "person", max_rows=4, budget=dp.ApproxDP(2, 1e-6))
    record = deployment(card, None, "9.9")
    items = answers(record)
    assert items["What is the unit of privacy?"].answer == "one person: all rows with one value of person"
    assert "the table: (ε, δ) = (2, 1e-06)" in items["What are the lifetime parameters of all answers together?"].answer
    assert items["What has been spent so far?"].answer == "nothing: there is no ledger yet"
    assert "e^ε = 7.4 times" in items["What do the parameters mean for a person?"].answer
    assert "at most 4 row(s)" in items["How is one person's influence bounded?"].answer
    assert items["Which columns have public bounds?"].answer == "age"
    assert items["Software"].answer == "dither 9.9"
    assert items["Who may ask?"].text.startswith(OPEN)
    assert record.unanswered == sum(not item.answer for item in items.values()) > 5


@each(("question", "source"), TOPICS.items())
def test_every_topic_of_the_guidelines_has_a_question_and_says_who_answers(question, source):
    record = deployment(Card("visits", "v.csv", COLUMNS, "person", budget=dp.PureDP(1)), None, "1")
    item = answers(record)[question]
    assert item.source == source
    assert bool(item.answer) == (source != "steward")
    assert item.answer or item.hint


def test_a_limit_that_is_chosen_privately_is_no_number():
    card = Card("visits", "v.csv", COLUMNS, "person", max_rows="auto", max_groups=2, budget=dp.PureDP(1))
    text = answers(deployment(card, None, "1"))["How is one person's influence bounded?"].answer
    assert "a number of rows that each question chooses privately in each of at most 2 group(s)" in text


@pytest.mark.parametrize(
    ("budget", "variant", "meaning"),
    [
        (dp.PureDP(1), "pure (ε)", "e^ε = 2.8 times"),  # rounded up: it promises no more than is kept
        (dp.ApproxDP(1, 1e-6), "approximate (ε, δ)", "plus a probability of at most δ = 1e-06"),
        (dp.ZCDP(0.5), "zero-concentrated (ρ)", "to_approx"),
        (None, "", ""),
    ],
)
def test_every_variant_is_named(budget, variant, meaning):
    items = answers(deployment(Card("t", "t.csv", COLUMNS, budget=budget), None, "1"))
    assert items["Variant of differential privacy"].answer == variant
    assert meaning in items["What do the parameters mean for a person?"].answer
    assert "each row is a person" in items["What is the unit of privacy?"].answer


def test_what_the_ledger_holds_comes_before_what_the_card_says(tmp_path):
    rows = pa.table({"person": [1, 2, 2], "age": [30, 40, 50]})
    card = Card("visits", "v.csv", COLUMNS, "person", budget=dp.PureDP(1))
    place = str(tmp_path / "l.sqlite")
    known = {"unit": "person", "bounds": {"age": (0, 110)}, "budget": dp.PureDP(1)}
    with dp.open(rows, name="visits", ledger=place, **known) as table:
        table.agg(n=dp.count()).release(epsilon=0.25)
    with dp.ledger.open(place) as ledger:
        ledger.change_limit("visits", dp.PureDP(3), signed_by="Gray", reason="<b>decision</b>")
        record = deployment(card, ledger, "1")
    items = answers(record)
    assert "ε = 3" in items["What are the lifetime parameters of all answers together?"].answer
    assert "e^ε = 20.1 times" in items["What do the parameters mean for a person?"].answer  # of 3, not of 1
    assert items["What has been spent so far?"].answer == "ε = 0.25"
    assert items["Number of releases paid for"].answer == "1"
    assert items["Which noise was used?"].answer == "laplace"
    assert "signed by Gray" in items["Was a limit changed, by whom and why?"].answer
    assert "verified" in items["Is the history of the budget complete?"].answer
    page = html(record)
    assert "<b>decision</b>" not in page
    assert "&lt;b&gt;decision" in page
    assert "<script" not in page
    assert f"## {record.sections[0].title}" in record.markdown()
    data = json.loads(record.to_json())
    assert [section["title"] for section in data["sections"]] == [section.title for section in record.sections]
    assert None in {item["answer"] for section in data["sections"] for item in section["items"]}


def test_accounts_of_people_stay_private(tmp_path):
    card = Card("visits", "v.csv", COLUMNS, "person", each_person=dp.PureDP(1), public={"p": PublicTable("p.csv", {})})
    with dp.ledger.open(tmp_path / "l.sqlite") as ledger:
        ledger.create("visits", each_person=dp.PureDP(1))
        ledger.charge("visits", dp.PureDP(0.5), key="k", request="r", people=[1, 2])
        items = answers(deployment(card, ledger, "1"))
    assert items["What has been spent so far?"].answer == "counted for each person, and private"
    assert "ε = 1" in items["What are the lifetime parameters of all answers together?"].answer
