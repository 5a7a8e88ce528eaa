"""A card and its ledger: what both state agrees, one that went back is refused, and reading only changes nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.errors import BudgetExceeded, DitherError, InvalidArgument, LedgerError
from dither.ledger import Receipt
from dither.ledger.chain import read_receipt
from dither.tables.card import toml as cards
from dither.tables.card.model import Card, ColumnCard
from support import each, noted, refuses

ROWS = pa.table({"who": list(range(40)), "region": ["a", "b"] * 20, "age": [i % 90 for i in range(40)]})
COUNT = "SELECT COUNT(*) AS n FROM visits"
LIMITS = {"budget": dp.PureDP(2), "each_analyst": dp.PureDP(1), "each_person": dp.PureDP(3)}


def card(tmp_path, **more) -> Card:
    pq.write_table(ROWS, tmp_path / "visits.parquet")
    columns = {"who": ColumnCard("integer"), "region": ColumnCard("text"), "age": ColumnCard("integer", (0, 120))}
    stated = {"unit": "who", "ledger": str(tmp_path / "ledger.sqlite"), "budget": dp.PureDP(10), **more}
    return Card("visits", str(tmp_path / "visits.parquet"), columns, **stated)


def state(tmp_path) -> dict[str, tuple[bytes, int]]:
    return {item.name: (item.read_bytes(), item.stat().st_mtime_ns) for item in tmp_path.iterdir() if item.is_file()}


# -- the card and the ledger agree ----------------------------------------------------------------------------------

CHANGES = {
    "another budget": {"budget": dp.PureDP(1)},
    "the same number in another unit": {"budget": dp.ZCDP(2)},
    "a delta": {"budget": dp.ApproxDP(2, 1e-9)},
    "no budget": {"budget": None},
    "another for each analyst": {"each_analyst": dp.PureDP(2)},
    "none for each analyst": {"each_analyst": None},
    "another for each person": {"each_person": dp.PureDP(2)},
    "none for each person": {"each_person": None, "population": None},
    "another population": {"population": "others"},
    "no population": {"population": None},
}


@pytest.mark.slow
@each("change", CHANGES.values())
@each("read_only", [False, True])
def test_whatever_differs_from_the_ledger_is_refused(tmp_path, change, read_only):
    stated = card(tmp_path, **LIMITS, population="all")
    with dp.open(stated) as table:
        table.sql(COUNT).release(0.1, analyst="ada")
    dp.open(stated, read_only=read_only).close()
    with refuses(InvalidArgument, "what the ledger holds"):
        dp.open(replace(stated, **change), read_only=read_only)
    dp.open(stated, read_only=read_only).close()


@pytest.mark.parametrize("name", LIMITS)
def test_what_the_ledger_does_not_have_is_refused_too(tmp_path, name):
    stated = card(tmp_path, **{**dict.fromkeys(LIMITS), "budget": dp.PureDP(2)})
    with dp.open(stated) as table:
        table.sql(COUNT).release(0.1)
    with refuses(InvalidArgument, "what the ledger holds"):
        dp.open(replace(stated, **{name: dp.PureDP(1)}))


def test_the_filter_agrees(tmp_path):
    stated = card(tmp_path, budget=dp.ApproxDP(2, 1e-6), filter="advanced")
    dp.open(stated).close()
    dp.open(stated).close()
    with refuses(InvalidArgument, "filter: expected what the ledger holds"):
        dp.open(replace(stated, filter="sum"))


def test_a_limit_changed_in_the_ledger_is_changed_in_the_card(tmp_path):
    stated = card(tmp_path)
    with dp.open(stated) as table:
        table.ledger.change_limit("visits", dp.PureDP(20), signed_by="steward", reason="agreed")
    with refuses(InvalidArgument, "limit: expected what the ledger holds"):
        dp.open(stated)
    dp.open(replace(stated, budget=dp.PureDP(20))).close()


UNCHARGED = {
    "another budget": {"budget": dp.PureDP(3)},
    "a smaller budget": {"budget": dp.PureDP(1)},
    "a delta": {"budget": dp.ApproxDP(2, 1e-9)},
    "another for each person": {"each_person": dp.PureDP(2)},
}


@pytest.mark.parametrize("change", UNCHARGED.values(), ids=UNCHARGED)
def test_before_the_first_charge_a_limit_is_what_the_card_says(tmp_path, change):
    stated = card(tmp_path, budget=dp.PureDP(2), each_person=dp.PureDP(3))
    dp.open(stated).close()
    changed = replace(stated, **change)
    before = state(tmp_path)
    with dp.open(changed, read_only=True) as table:
        assert table.accounts.remaining().table == changed.budget
    assert state(tmp_path) == before
    with dp.open(changed) as table:
        limits = {account.kind: account.limit for account in table.ledger.accounts("visits")}
        assert (limits["dataset"], limits["people"]) == (changed.budget, changed.each_person)
        assert table.ledger.verify().entries > 0
        table.sql(COUNT).release(0.1)
    with refuses(InvalidArgument, "what the ledger holds"):
        dp.open(stated)


def test_people_who_have_paid_for_another_table_keep_the_limit_they_have(tmp_path):
    visits = replace(card(tmp_path, budget=None, each_person=dp.PureDP(3)), population="all")
    stays = replace(visits, name="stays")
    dp.open(visits).close()
    with dp.open(stays) as table:
        table.sql("SELECT COUNT(*) AS n FROM stays").release(1)
    with refuses(InvalidArgument, "each_person: expected what the ledger holds"):
        dp.open(replace(visits, each_person=dp.PureDP(9)))


# -- people without budget --------------------------------------------------------------------------------------------

EVERYBODY = "SELECT COUNT(*) AS n FROM visits"
SOME = "SELECT COUNT(*) AS n FROM visits WHERE who < 10"


def test_a_question_that_nobody_can_pay_for_is_refused_and_charges_nothing(tmp_path):
    stated = card(tmp_path, budget=None, each_person=dp.PureDP(1))
    with dp.open(stated) as table:
        first = table.sql(EVERYBODY).release(0.6)
        head = table.ledger.head
        with refuses(BudgetExceeded, "nobody, after the questions about everybody or the same people"):
            table.sql(EVERYBODY).release(0.6, again=True)
        with refuses(BudgetExceeded, "nobody"):
            table.sql(SOME).release(0.7)
        assert table.ledger.head == head
        assert table.sql(EVERYBODY).release(0.6) == first  # recorded, and free
        table.sql(EVERYBODY).release(0.3)
    with dp.open(replace(stated, version="with new rows")) as table:
        table.sql(EVERYBODY).release(0.6)


def test_questions_about_some_people_and_dearer_ones_prove_nothing(tmp_path):
    with dp.open(card(tmp_path, budget=None, each_person=dp.PureDP(1))) as table:
        table.sql(SOME).release(0.6)
        table.sql(EVERYBODY).release(0.9)  # not for those who have 0.4 left, and they could still pay for what follows
        answer = table.sql(EVERYBODY).release(0.4)
    assert noted(answer, "people_without_budget")


def test_a_question_about_the_same_people_that_none_of_them_can_pay_for_is_refused(tmp_path):
    """The same WHERE and GROUP BY, whatever is asked about the rows: the same people would pay, and nobody else."""
    older = "SELECT COUNT(*) AS n, SUM(age) AS years FROM visits WHERE who < 10 ORDER BY n"
    others = "SELECT COUNT(*) AS n FROM visits WHERE who < 11"
    by_age = "SELECT age, COUNT(*) AS n FROM visits GROUP BY age"
    ranked = "SELECT age, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS place FROM visits GROUP BY age"
    columns = {"who": ColumnCard("integer"), "age": ColumnCard("integer", (0, 100), tuple(range(40)))}
    with dp.open(replace(card(tmp_path, budget=None, each_person=dp.PureDP(1)), columns=columns)) as table:
        table.sql(SOME).release(0.6)
        head = table.ledger.head
        with refuses(BudgetExceeded, "nobody"):
            table.sql(older).release(0.6)
        assert table.ledger.head == head
        table.sql(others).release(0.6)  # one of them may be able to pay, and who is in it is not public
        table.sql(by_age).release(0.3)
        with refuses(BudgetExceeded, "nobody"):
            table.sql(ranked).release(0.8)
        table.sql(EVERYBODY).release(0.8)  # whoever has an age that is not listed was not asked to pay before


# -- a population ---------------------------------------------------------------------------------------------------


def toml(tmp_path, name: str, population: str, **more: object) -> Path:
    pq.write_table(ROWS, tmp_path / "visits.parquet")
    place = tmp_path / f"{name}.toml"
    extra = "\n".join(f"{key} = {value}" for key, value in more.items())
    place.write_text(
        f'name = "{name}"\nsource = "visits.parquet"\nunit = "who"\nledger = "ledger.sqlite"\n{extra}\n'
        '[columns]\nwho = "integer"\nage = "integer"\n'
        f'[budget]\nepsilon = 3000\nper = "person"\npopulation = "{population}"\n'
    )
    return place


def test_tables_of_one_population_share_each_persons_budget(tmp_path):
    with dp.open(toml(tmp_path, "visits", "patients")) as table:
        assert table.card.population == "patients"
        assert table.sql("SELECT COUNT(*) AS n FROM visits WHERE who < 30").release(2000)["n"] == [30]
    with dp.open(toml(tmp_path, "stays", "patients")) as table:
        assert table.sql("SELECT COUNT(*) AS n FROM stays").release(2000)["n"] == [10]  # the others have spent theirs
    with dp.open(toml(tmp_path, "trips", "drivers")) as table:
        assert table.sql("SELECT COUNT(*) AS n FROM trips").release(2000)["n"] == [40]
    with refuses(InvalidArgument, "population: expected what the ledger holds"):
        dp.open(toml(tmp_path, "visits", "drivers"))


def test_a_population_goes_with_a_budget_for_each_person(tmp_path):
    text = toml(tmp_path, "visits", "patients").read_text()
    for wrong in (text.replace('per = "person"\n', ""), text.replace('"person"', '"dataset"')):
        (tmp_path / "wrong.toml").write_text(wrong)
        with refuses(InvalidArgument, "budget.population"):
            cards.read(tmp_path / "wrong.toml")


# -- a ledger that was lost, or went back ---------------------------------------------------------------------------


FIRST = "This is the ledger's first answer about this table."


def test_the_first_answer_to_an_analyst_says_so(tmp_path):
    accounts = {"each_analyst": dp.PureDP(9)}
    with dp.open(card(tmp_path, **accounts)) as table:
        assert table.new_ledger
        first = table.sql(COUNT).release(1, analyst="ada")
        assert FIRST in str(first)
        assert FIRST not in dp.present.html(first)  # whoever reads a page has asked nothing
        assert FIRST not in str(table.sql(COUNT).release(2, analyst="ada"))
    with dp.open(card(tmp_path, **accounts)) as table:
        assert not table.new_ledger
        again = table.sql(COUNT).release(1, analyst="ada")
        assert (again.replayed, again.rows, FIRST in str(again)) == (True, first.rows, False)


def test_whoever_has_just_started_a_ledger_is_not_told_so(tmp_path):
    with dp.open(card(tmp_path)) as table:
        assert table.new_ledger
        assert not noted(table.sql(COUNT).release(1), "first_answer")


def test_a_ledger_that_was_opened_and_not_asked_says_so_too(tmp_path):
    accounts = {"each_analyst": dp.PureDP(9)}
    dp.open(card(tmp_path, **accounts)).close()
    with dp.open(card(tmp_path, **accounts)) as table:
        assert not table.new_ledger
        assert FIRST in str(table.sql(COUNT).release(1, analyst="ada"))


def test_a_temporary_ledger_is_called_one(tmp_path):
    for ledger, said in ((None, True), (str(tmp_path / "l"), False)):
        with dp.open(ROWS, unit="who", budget=dp.PureDP(10), ledger=ledger) as table:
            answer = table.agg(n=dp.count()).release(1)
            assert ("a temporary ledger" in answer.text(verbose=True)) is said
            assert "a temporary ledger" not in dp.present.html(answer)
            assert "ledger" not in str(table.agg(n=dp.count()).release(2))


@pytest.mark.parametrize("given", ["argument", "text", "card"])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_ledger_that_went_back_is_refused(tmp_path, given, read_only):
    kept = tmp_path / "elsewhere" / "receipt"
    kept.parent.mkdir()
    stated = card(tmp_path, receipt=str(kept) if given == "card" else None)
    files = [tmp_path / f"ledger.sqlite{more}" for more in ("", "-wal", "-shm")]
    with dp.open(stated) as table:
        table.sql(COUNT).release(1)
    old = {item: item.read_bytes() for item in files if item.exists()}
    with dp.open(stated) as table:
        receipt = table.sql(COUNT).release(2).receipt
    how = {} if given == "card" else {"receipt": receipt if given == "text" else Receipt.read(receipt)}
    dp.open(stated, read_only=read_only, **how).close()
    for item in files:
        item.unlink(missing_ok=True)
        if item in old:
            item.write_bytes(old[item])
    with refuses(LedgerError):
        dp.open(stated, read_only=read_only, **how)
    for item in (*files, tmp_path / "ledger.sqlite.key"):
        item.unlink(missing_ok=True)
    with refuses(LedgerError):
        dp.open(stated, read_only=read_only, **how)
    assert not files[0].exists()


def test_the_cards_receipt_is_kept_by_every_answer(tmp_path):
    stated = card(tmp_path, receipt=str(tmp_path / "receipt"))
    with dp.open(stated) as table:
        for epsilon in (1, 2):
            receipt = table.sql(COUNT).release(epsilon).receipt
            assert str(read_receipt(tmp_path / "receipt")) == receipt
        table.sql(COUNT).release(1)  # an earlier answer does not put it back
        assert str(read_receipt(tmp_path / "receipt")) == receipt


def test_a_receipt_that_cannot_be_kept_costs_nothing(tmp_path):
    with dp.open(card(tmp_path, receipt=str(tmp_path / "no folder" / "receipt"))) as table:
        with refuses(LedgerError, "receipt"):
            table.sql(COUNT).release(1)
        assert table.left == dp.PureDP(10)


# -- to read only ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{"budget": dp.PureDP(10)}, {"budget": None, "each_person": dp.PureDP(10)}])
def test_reading_only_makes_no_ledger_and_freezes_no_budget(tmp_path, how):
    stated = card(tmp_path, **how)
    before = state(tmp_path)
    with dp.open(stated, read_only=True) as table:
        told = str(table.sql(COUNT).explain(1))
        assert "10" in told
        assert not table.new_ledger
        assert table.left == stated.budget
        with refuses(InvalidArgument, "read"):
            table.sql(COUNT).release(1)
        with refuses(LedgerError, "none yet"):
            _ = table.ledger
    assert state(tmp_path) == before
    with dp.open(replace(stated, **{name: dp.PureDP(20) for name, limit in how.items() if limit})) as table:
        assert table.new_ledger


def test_reading_only_shows_what_a_ledger_has_left_and_changes_nothing(tmp_path):
    stated = card(tmp_path)
    with dp.open(stated) as table:
        table.sql(COUNT).release(4)
    before = state(tmp_path)
    tmp_path.chmod(0o500)
    try:
        with dp.open(stated, read_only=True) as table:
            assert "left: ε = 6" in str(table.sql(COUNT).explain(1))
            assert table.left == dp.PureDP(6)
            with refuses(DitherError, "read"):
                table.sql(COUNT).release(4)  # not even what is recorded: nothing is released
    finally:
        tmp_path.chmod(0o700)
    assert {name: data for name, (data, _) in state(tmp_path).items()} == {n: data for n, (data, _) in before.items()}


def test_a_draft_without_a_budget_or_a_ledger_can_be_explained(tmp_path):
    with dp.open(card(tmp_path, budget=None, ledger=None), read_only=True) as table:
        assert "the card states no budget" in str(table.sql(COUNT).explain(1))
    with refuses(InvalidArgument, "ledger"):
        dp.open(card(tmp_path, ledger=None))


# -- noise that the accounts can pay for ----------------------------------------------------------------------------

NO_DELTA = {
    "the dataset": {"budget": dp.PureDP(10)},
    "in rho": {"budget": dp.ZCDP(10)},
    "each person": {"budget": None, "each_person": dp.PureDP(10)},
    "each analyst": {"budget": dp.ApproxDP(10, 1e-3), "each_analyst": dp.PureDP(10)},
}


@pytest.mark.parametrize("limits", NO_DELTA.values(), ids=NO_DELTA)
@pytest.mark.parametrize("how", [{"error": 1e9}, {"epsilon": 0.01}], ids=str)
def test_noise_that_no_account_can_pay_for_is_not_chosen(tmp_path, limits, how):
    with dp.open(card(tmp_path, **limits)) as table:
        question = table.sql("SELECT COUNT(*) AS n FROM visits")
        assert isinstance(question.plan(**how, delta=0.01).cost, dp.PureDP)
        assert question.release(**how, delta=0.01, analyst="a")["n"]
        automatic = table.agg(m=dp.mean("age", bounds="auto"))
        if "epsilon" in how:
            assert isinstance(automatic.plan(**how, delta=0.01).cost, dp.PureDP)
            assert automatic.release(**how, delta=0.01, analyst="a")["m"]


@pytest.mark.parametrize("limits", NO_DELTA.values(), ids=NO_DELTA)
def test_what_needs_a_delta_is_refused_with_the_reason(tmp_path, limits):
    with dp.open(card(tmp_path, **limits)) as table:
        for sql, more in ((COUNT, {"noise": "gaussian"}), ("SELECT region, COUNT(*) AS n FROM visits GROUP BY 1", {})):
            for how in ({"epsilon": 1}, {"error": 1e9}):
                with refuses(InvalidArgument, "delta: expected a budget with a delta"):
                    table.sql(sql).explain(**how, delta=0.01, **more)
                with refuses(InvalidArgument, "delta: expected a budget with a delta"):
                    table.sql(sql).release(**how, delta=0.01, analyst="a", **more)


def test_where_there_is_a_delta_it_is_used(tmp_path):
    """The same questions as above: without the choice, those would cost a delta."""
    with dp.open(card(tmp_path, budget=dp.ApproxDP(10, 0.5))) as table:
        question = table.sql("SELECT COUNT(*) AS n FROM visits")
        for how in ({"error": 1e9}, {"epsilon": 0.01}):
            assert isinstance(question.plan(**how, delta=0.01).cost, dp.ApproxDP)
        assert isinstance(table.agg(m=dp.mean("age", bounds="auto")).plan(0.01, delta=0.01).cost, dp.ApproxDP)


def test_a_database_without_a_ledger_has_none_yet(tmp_path, postgres_server, monkeypatch):
    monkeypatch.setenv("DITHER_LEDGER_KEY", "ab" * 32)
    postgres_server.execute("CREATE DATABASE no_ledger_yet")
    stated = card(tmp_path, ledger=postgres_server.place("no_ledger_yet"))
    with dp.open(stated, read_only=True) as table:
        assert "(no ledger yet)" in str(table.sql(COUNT).explain(1))
    with refuses(LedgerError, "the ledger that the receipt was given for"):
        dp.open(stated, receipt=Receipt(3, "ab" * 32))
    with dp.open(stated) as table:
        assert table.new_ledger
    with dp.open(stated, read_only=True) as table:
        assert "left: ε = 10" in str(table.sql(COUNT).explain(1))
