"""``dither profile``: forecast, buy, show; and what other commands say of it."""

from __future__ import annotations

import json
from pathlib import Path

import dither as dp


def left():
    with dp.open("visits.toml", read_only=True) as table:
        return table.left


def test_a_forecast_charges_nothing(visits, dither):
    code, out, err = dither("profile", visits, "--dry-run", "--epsilon", 2)
    assert (code, err) == (0, "")
    assert "people by their number of rows" in out
    assert "cost: ε = 2" in out
    assert "left: (ε, δ) = (20, 0.001)" in out
    assert not Path("visits.ledger").exists()


def test_without_a_cost_the_newest_profile_is_shown_for_free(visits, dither):
    code, _, err = dither("profile", visits)
    assert code
    assert "--epsilon 1 buys it" in err
    code, bought, err = dither("profile", visits, "--epsilon", 1, "--report", "profile.html")
    assert (code, err) == (0, "")
    assert bought.startswith("visits: ")
    assert "region: people by value" in bought
    assert bought.rstrip().endswith("left: (ε, δ) = (19, 0.001)")
    assert Path("profile.html").read_text().count("<svg ") == 4
    code, shown, _ = dither("profile", visits)
    assert (code, shown) == (0, bought[: bought.rindex("left:")])
    content = json.loads(dither("profile", visits, "--json")[1])
    assert content["cost"] == {"kind": "pure", "epsilon": "1"}
    assert list(content["tables"]["visits"]["columns"]) == ["region", "amount", "day"]
    code, out, _ = dither("profile", visits, "--epsilon", 1)
    assert (code, left()) == (0, dp.ApproxDP(19, 1e-3))
    code, out, _ = dither("profile", visits, "--epsilon", 1, "--columns", "amount", "--again")
    assert "region" not in out
    assert left() == dp.ApproxDP(18, 1e-3)


def test_what_is_refused_is_not_charged(visits, dither):
    for options in (["--columns", "amont"], ["--without", "who"], ["--epsilon", 0], ["--rho", 1]):
        code, out, err = dither("profile", visits, "--epsilon", 1, *options)
        assert (code, out) != (0, "")
        assert "Nothing was charged" in err or "expected" in err
    assert left() == dp.ApproxDP(20, 1e-3)


def test_check_says_whether_there_is_a_profile_and_init_how_to_get_one(visits, dither):
    assert "no profile yet" in dither("check", visits)[1]
    dither("profile", visits, "--epsilon", 1, "--without", "day")
    out = dither("check", visits)[1]
    assert "a profile of 20" in out
    assert "for ε = 1: visits: " in out
    assert "people; without day" in out
    code, out, _ = dither("init", "visits.csv", "--output", "draft.toml", "--unit", "who")
    assert code == 0
    assert "dither profile draft.toml --epsilon 1" in out
