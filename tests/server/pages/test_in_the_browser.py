"""The pages in a browser: no errors, nothing that axe-core objects to, and the way of every role."""

from __future__ import annotations

import re

import pytest
from page_site import HOSTILE

pytestmark = pytest.mark.slow


def test_every_page_is_sound_in_light_and_dark_on_phone_and_desk(browse):
    looks = browse("every_page")
    seen = {(look["width"], look["scheme"]) for look in looks}
    assert seen == {("phone", "light"), ("phone", "dark"), ("desk", "light")}
    expected = {"/nowhere/at/all": 404, "/welcome/no-such-link": 403}
    for look in looks:
        assert look["at"].endswith(look["path"]), "sent elsewhere"
        assert look["status"] == expected.get(look["path"], 200), look
        assert look["axe"] == [], look
        assert look["seen"] == [], "errors, warnings, refused by the policy, or loaded from elsewhere"
        assert look["wide"] == [], look
        assert look["title"].endswith(" · dither"), "text from a name became a script"


def test_a_new_analyst_has_an_answer_after_two_clicks(browse):
    result = browse("first_answer")
    assert result["clicks"] <= 5
    assert re.search("/answers/[0-9a-f]+$", result["at"])
    assert "This question costs ε = 0.1. You have" in result["before"].replace("\xa0", " ")
    text = result["text"].replace("\xa0", " ")
    assert re.search(r"north\t-?[\d,]+\t± [\d,]+\n", text)
    assert "This answer cost ε = 0.1. You have" in text
    assert "may be too low by more than the ±" in text
    assert result["seen"] == []


def test_everything_works_without_javascript(browse):
    result = browse("without_script")
    assert result["sql"] == (
        "SELECT region, COUNT(*) AS number_of_rows, AVG(amount) AS average_amount\nFROM visits\nWHERE amount >= 10\n"
        "GROUP BY region"
    )
    assert "costs ε = 0.25" in result["cost"].replace("\xa0", " ")
    assert "costs ε = 0.125" in result["cheaper"].replace("\xa0", " ")
    assert re.search("/answers/[0-9a-f]+$", result["at"])
    assert "average_amount" in result["text"]


def test_the_cost_is_shown_while_a_question_is_written(browse):
    result = browse("while_writing")
    assert result["suggested"][0].split() == ["COUNT(", "aggregate"]
    assert result["axe"] == []
    assert result["sql"] == "SELECT COUNT(*) AS n FROM visits"
    assert "n: ±" in result["cost"]
    assert "cannot be asked like this" in result["refused"]
    assert "0.03" not in result["history"], "showing the cost spent something"
    assert result["seen"] == []


def test_the_keyboard_is_enough_and_the_focus_is_seen(browse):
    result = browse("by_keyboard")
    assert (result["skip"], result["at"]) == ("Skip to the content", "main")
    assert set(result["outlines"]) == {"solid"}
    assert re.search("/answers/[0-9a-f]+$", result["end"])
    assert result["seen"] == []


def test_stewards_approve_publish_release_verify_and_add_people(browse):
    result = browse("stewards")
    assert result["own"] == 0, "nobody approves an own change"
    assert "1 change of a limit" in result["todo"]
    assert "The limit is changed." in result["approved"]
    assert result["published"] == HOSTILE, "a title is text"
    assert "Releasing this plan costs" in result["plan"]
    assert "/jobs/" in result["job"]["at"]
    assert result["job"]["axe"] == []
    assert result["tables"].count("tables") >= 2, "each table of a publication is in the history"
    assert re.fullmatch("[0-9]+:[0-9a-f]{64}", result["receipt"])
    assert "Everything is as it was written." in result["verified"]
    assert result["eve"][0].endswith("/ask")
    assert result["again"] == 403, "a link works once"
    assert result["seen"] == []


def test_a_question_that_takes_long_is_met_and_cancelled(browse):
    result = browse("cancelling")
    assert "One question of yours is under way" in result["notice"]
    assert "Your question is under way" in result["under way"]
    assert "A cancelled question stays paid if it has been charged." in result["under way"]
    assert (result["axe"], result["wide"]) == ([], [])
    assert "Your question was cancelled" in result["cancelled"]
    assert "AS cancelled" in result["cancelled"], "the question is still to be read"
    assert "AS cancelled" not in result["history"]
    assert result["seen"] == []


def test_a_closed_table_says_so_and_is_opened_again(browse):
    result = browse("closed_table")
    assert "This table takes no questions" in result["table"]
    table = result["table"].replace("\xa0", " ")
    assert "ε = 4" in table, "the limit is the ledger's"
    assert "You have ε = 3.5 left." in table
    for part in ("explained", "asked"):
        assert "incident" in result[part], part
    assert "1 closed table" in result["todo"]
    assert "closed" not in result["reopened"].split("Incidents", 1)[0], "reopened"
    assert result["seen"] == []


def test_a_new_token_is_shown_once(browse):
    result = browse("new_token")
    assert re.fullmatch(r"dither_\S{43}", result["token"])
    assert (result["axe"], result["wide"], result["seen"]) == ([], [], [])
    assert result["token"] not in result["again"]
