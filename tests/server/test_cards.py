"""Which cards are in force, and what is pinned: no edit gives rows another budget."""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from serving import COUNT, PASSWORD, fill

import dither as dp
from dither.ledger.chain import read_receipt
from dither.server.cards import Pin, Pins
from dither.server.config import Config
from dither.server.errors import NotFound
from dither.server.roles import Principal
from dither.server.service import Service
from dither.server.store import Store
from dither.tables.card.model import Card, ColumnCard, PrivateTable
from support import each

API = "/api/v1"


@pytest.fixture(scope="module")
def own(start_site, tmp_path_factory):
    folder = fill(tmp_path_factory.mktemp("edited"))
    fill(folder, name="other")
    (folder / "plan.toml").write_text('card = "visits.toml"\ntables = [["region"]]\nbudget.rho = 0.01\n')
    return start_site(folder)


@pytest.fixture
def edited(own):
    """Edits a file of the folder; at the end everything is as it was."""
    before = {path: path.read_text() for path in own.folder.glob("*.toml")}

    def edit(file, *replaced, text=None):
        path = own.folder / file
        new = before[path] if text is None else text
        for old, by in replaced:
            assert old in new
            new = new.replace(old, by)
        path.write_text(new)

    yield edit
    for path in own.folder.glob("*.toml"):
        if path in before:
            path.write_text(before[path])
        else:
            path.unlink()
    assert own.service.tables.problems(own.people["sam"]) == ()


def answered(site, name, epsilon):
    asked = {"epsilon": epsilon, "again": True}
    job = site.service.questions.ask(site.people[name], "visits", COUNT, asked)
    return asyncio.run(site.service.questions.wait(site.people[name], job.id, seconds=600.0)).state == "answered"


def charges(site):
    with dp.ledger.open(site.folder / "visits.sqlite", create=False, read_only=True) as ledger:
        return sum(entry.kind == "charge" for entry in ledger.history("visits"))


WHOLE = (
    'name = "visits"\nsource = "visits.csv"\nunit = "who"\nledger = "visits.sqlite"\nmax_incidents = 3\n[budget]\n'
    "epsilon = 1000\n"
)

HALF_TYPED = [
    'name = "visits', "name = \nsource", "[[[", "", "name = 3", WHOLE + "[columns.amount]\nbounds = [0, 1", "\udcff",
    WHOLE + "[columns.who]\ntype = 'integer'\n[columns.amount]\ntype = 'intege'\n",
    WHOLE.replace("ledger =", "lodger ="),
    WHOLE.replace('ledger = "visits.sqlite"\n', "") + "[columns.who]\ntype = 'integer'\n",
]  # fmt: skip

FRESH_BUDGETS = [
    ("visits.toml", [('ledger = "visits.sqlite"', 'ledger = "fresh.sqlite"')]),
    ("visits.toml", [('name = "visits"', 'name = "sales"')]),
    ("visits.toml", [('unit = "who"', 'unit = "who"\nreceipt = "elsewhere.receipt"')]),
    ("visits.toml", [('name = "visits"', 'name = "other"')]),
    ("visits.toml", [('unit = "who"', 'unit = "amount"')]),
    ("visits.toml", [('unit = "who"\n', "")]),
    ("other.toml", [('source = "other.csv"', 'source = "visits.csv"')]),
    ("other.toml", [('source = "other.csv"', 'source = "visit*.csv"')]),
    ("new.toml", [('name = "visits"', 'name = "sales"')]),
    ("new.toml", [('name = "visits"', 'name = "sales"'), ('"visits.sqlite"', '"sales.sqlite"')]),
]


@each("text", HALF_TYPED)
def test_a_half_typed_card_changes_nothing_for_analysts(own, edited, text):
    ann, sam = own.client("ann"), own.client("sam")
    before = ann.get(f"{API}/tables").json(), ann.get(f"{API}/tables/visits").json()
    (own.folder / "visits.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert (ann.get(f"{API}/tables").json(), ann.get(f"{API}/tables/visits").json()) == before
    assert ann.get(f"{API}/cards").status_code == 403
    [problem] = sam.get(f"{API}/cards").json()["problems"]
    assert (problem["file"], problem["needed"]) == ("visits.toml", 0)
    assert "Fix: " in problem["problem"]
    edited("visits.toml")


def test_questions_are_answered_by_the_last_good_card(own, edited):
    before = charges(own)
    edited("visits.toml", text="[[[")
    assert answered(own, "ann", 0.5)
    assert charges(own) == before + 1
    sql = {"question": {"sql": COUNT}, "options": {"epsilon": 0.5}}
    explained = own.client("ann").post(f"{API}/tables/visits/explain", json=sql)
    assert explained.status_code == 200
    edited("visits.toml", ("bounds = [0, 100]", "bounds = [0, 50]"))  # and a good edit counts at once
    table = own.client("ann").get(f"{API}/tables/visits").json()
    assert table["card"]["columns"]["amount"]["bounds"] == [0, 50]


def test_a_half_typed_plan_is_a_matter_of_stewards(own, edited):
    edited("plan.toml", text='card = "visits.toml"\ntables = [["reg')
    assert own.client("ann").get(f"{API}/tables").status_code == 200
    assert own.client("sam").get(f"{API}/plans").json() == {"plans": []}
    assert [item.file for item in own.service.tables.problems(own.people["aud"])] == ["plan.toml"]
    edited("plan.toml", ("tables", "tabels"))
    assert "'tables'" in own.service.tables.problems(own.people["sam"])[0].problem


@each(("file", "replaced"), FRESH_BUDGETS)
def test_no_edit_gives_rows_another_budget(own, edited, file, replaced):
    before, names = charges(own), own.service.context.folder.names()
    source = "other.toml" if file == "other.toml" else "visits.toml"
    text = (own.folder / source).read_text()
    edited(file, *replaced, text=text)
    assert own.service.context.folder.names() == names
    [problem] = own.service.tables.problems(own.people["sam"])
    assert (problem.file, problem.needed, problem.signed_by) == (file, 2, ()) or "twice" in problem.problem
    assert answered(own, "ann", 0.25)
    assert charges(own) == before + 1
    assert not [path.name for path in own.folder.iterdir() if path.name in ("fresh.sqlite", "sales.sqlite")]
    (own.folder / "new.toml").unlink(missing_ok=True)
    edited(source)


def started(folder, **options):
    """A service, and two stewards."""
    service = Service.start(Config(folder=str(folder), warm=False, tick=0.05, workers=1, **options))
    link = service.auth.first_link()
    if link is not None:
        service.auth.use_link(link.rpartition("/")[2], PASSWORD, "sam")
        sam = service.auth.principal_of_session(service.auth.start_session("sam", "test"))
        service.users.add(sam, "sue", roles=["steward"], password=PASSWORD)
    return service, *(Principal(name, frozenset({"steward"})) for name in ("sam", "sue"))


def test_another_ledger_takes_a_restart_and_two_stewards(tmp_path):
    service, sam, sue = started(fill(tmp_path))
    card, tables = tmp_path / "visits.toml", service.tables
    card.write_text(card.read_text().replace('"visits.sqlite"', '"fresh.sqlite"'))
    with pytest.raises(NotFound):
        tables.sign_off(sam, "other.toml", reason="a new study")
    assert tables.sign_off(sam, "visits.toml", reason="a new study").signed_by == ("sam",)
    assert tables.sign_off(sam, "visits.toml", reason="a new study").signed_by == ("sam",)  # one steward counts once
    service.stop()
    half, _, _ = started(tmp_path)  # signed by one: not served at all
    assert half.context.folder.names() == []
    assert half.tables.problems(sam)[0].signed_by == ("sam",)
    half.tables.sign_off(sue, "visits.toml", reason="yes")
    assert half.context.folder.names() == []  # not before the server is started again
    half.users.change(sue, "sam", active=False)
    assert half.tables.problems(sue)[0].signed_by == ("sue",)
    half.users.change(sue, "sam", active=True)  # what was void stays void
    half.stop()
    again, _, _ = started(tmp_path)
    assert again.context.folder.names() == []
    again.tables.sign_off(sam, "visits.toml", reason="a new study")
    again.stop()
    served, _, _ = started(tmp_path)
    assert served.context.folder.names() == ["visits"]
    assert served.context.folder.ledger("visits").left("visits") == dp.PureDP(1000)
    events = [event.action for event in served.chain.events(sam)]
    assert events.count("tables.sign") == 5  # with the refused one
    assert len(list(tmp_path.glob("visits.toml.receipt*"))) == 2  # that of the ledger before is evidence, and stays
    card.write_text(card.read_text().replace('"fresh.sqlite"', '"visits.sqlite"'))  # and back takes the same
    assert served.tables.problems(sam)[0].signed_by == ()
    served.stop()


def test_a_server_that_stops_keeps_the_last_receipt(tmp_path):
    service, _, _ = started(fill(tmp_path))
    ledger = service.context.folder.ledger("visits")
    ledger.charge("visits", dp.PureDP(0.1))
    head = ledger.head
    service.stop()
    assert read_receipt(tmp_path / "visits.toml.receipt") == head


def test_what_is_signed_off_is_what_is_served(tmp_path):
    """Rows that were put into the card after the stewards had signed it have a budget already."""
    fill(tmp_path)
    service, sam, sue = started(fill(tmp_path, name="secret"))
    card = tmp_path / "fresh.toml"
    text = (tmp_path / "visits.toml").read_text().replace('name = "visits"', 'name = "fresh"')
    signed = text.replace("visits.sqlite", "fresh.sqlite")
    card.write_text(signed)
    for steward in (sam, sue):
        service.tables.sign_off(steward, "fresh.toml", reason="visits once more")
    service.stop()
    for edited in (signed.replace("visits.csv", "secret.csv"), signed.replace('unit = "who"', 'unit = "amount"')):
        card.write_text(edited)
        again, _, _ = started(tmp_path)
        assert again.context.folder.names() == ["secret", "visits"]
        assert again.tables.problems(sam)[0].signed_by == ()
        again.stop()
    card.write_text(signed)
    served, _, _ = started(tmp_path)
    assert served.context.folder.names() == ["fresh", "secret", "visits"]
    served.stop()


def test_one_steward_is_enough_where_that_is_configured(tmp_path):
    first, sam, _ = started(fill(tmp_path), single_steward=True)
    card = tmp_path / "visits.toml"
    card.write_text(card.read_text().replace('name = "visits"', 'name = "sales"'))
    assert first.tables.sign_off(sam, "visits.toml", reason="renamed").needed == 1
    first.stop()
    service, _, _ = started(tmp_path, single_steward=True)
    assert service.context.folder.names() == ["sales"]
    service.stop()


def test_a_server_starts_beside_a_card_that_cannot_be_read(tmp_path):
    fill(tmp_path)
    fill(tmp_path, name="other")
    (tmp_path / "other.toml").write_text("[[[")
    (tmp_path / "twin.toml").write_text((tmp_path / "visits.toml").read_text())
    service, _, _ = started(tmp_path)
    assert service.context.folder.names() == []  # of two with one name none is served
    assert {item.file for item in service.context.folder.refusals()} == {"other.toml", "twin.toml", "visits.toml"}
    service.stop()


NO_LEDGERS = [
    ('"new.sqlite"', '"."'), ('"new.sqlite"', '"no/such/new.sqlite"'), ('"new.sqlite"', '"dither-server.sqlite"'),
    ('"new.sqlite"', '"visits.csv"'), ('"new.sqlite"', '"new.toml"'), ('"new.sqlite"', '"new.sqlite"\nreceipt = "."'),
    ('"new.sqlite"', '"new.sqlite"\nreceipt = "visits.csv"'), ('"new.sqlite"', '"new.sqlite"\nreceipt = "no/such"'),
    ('"new.sqlite"', '"new.sqlite"\nreceipt = "visits.toml.receipt"'),
]  # fmt: skip


@each(("old", "new"), NO_LEDGERS)
def test_a_new_card_whose_ledger_cannot_be_used_is_a_problem_of_its_own(own, edited, old, new):
    before = {path.name for path in own.folder.iterdir()}
    fill(own.folder, name="new")
    edited("new.toml", (old, new), text=(own.folder / "new.toml").read_text())
    sam = own.client("sam")
    for path in ("tables", "incidents", "plans"):
        assert sam.get(f"{API}/{path}").status_code == 200
    [problem] = sam.get(f"{API}/cards").json()["problems"]
    assert (problem["file"], problem["needed"]) == ("new.toml", 0)
    assert "Fix: " in problem["problem"]
    assert own.service.context.folder.names() == ["other", "visits"]
    assert [pin.name for pin in own.service.context.folder.pins.all()] == ["other", "visits"]
    (own.folder / "new.toml").unlink()
    (own.folder / "new.csv").unlink()
    assert {path.name for path in own.folder.iterdir()} <= before | {"new.sqlite", "new.sqlite.key"}


def test_a_server_starts_beside_a_card_whose_ledger_cannot_be_used(tmp_path):
    """On the first start of all, on each later one, and after a sign-off; it is served once its ledger can be used."""
    fill(tmp_path)
    fill(tmp_path, name="new")
    card = tmp_path / "new.toml"
    card.write_text(card.read_text().replace('"new.sqlite"', '"deep/new.sqlite"'))
    for _ in range(2):
        service, sam, sue = started(tmp_path)
        assert service.context.folder.names() == ["visits"]
        assert [item.file for item in service.tables.problems(sam)] == ["new.toml"]
        service.stop()
    service, _, _ = started(tmp_path)
    (tmp_path / "deep").mkdir()
    assert service.context.folder.names() == ["new", "visits"]
    card.write_text(card.read_text().replace('"deep/new.sqlite"', '"deeper/new.sqlite"'))
    for steward in (sam, sue):
        service.tables.sign_off(steward, "new.toml", reason="moved")
    service.stop()
    again, _, _ = started(tmp_path)
    assert again.context.folder.names() == ["visits"]
    [problem] = again.tables.problems(sam)
    assert problem.signed_by == ("sam", "sue")
    assert "a different ledger" not in problem.problem
    again.stop()
    (tmp_path / "deeper").mkdir()
    served, _, _ = started(tmp_path)
    assert served.context.folder.names() == ["new", "visits"]
    served.stop()


def test_a_ledger_that_is_removed_is_not_made_anew(start_site, tmp_path):
    """Neither by the server nor by a worker, although nothing was ever charged."""
    site = start_site(fill(tmp_path))
    for ending in ("", ".key", "-journal"):
        (tmp_path / f"visits.sqlite{ending}").unlink(missing_ok=True)
    job = site.service.questions.ask(site.people["ann"], "visits", COUNT, {"epsilon": 0.5})
    ended = asyncio.run(site.service.questions.wait(site.people["ann"], job.id, seconds=600.0))
    assert ended.state == "refused"
    assert ended.problem["title"] == "LedgerError"
    assert not (tmp_path / "visits.sqlite").exists()


def page_of(site, name):
    """A browser of somebody who is signed in: get and post, with the token of the form."""
    client = site.client()
    client.cookies.set("dither_session", site.service.auth.start_session(name, "test"))

    def post(path, **fields):
        token = re.search(r'name="csrf" value="(\w+)"', client.get("/account").text).group(1)
        return client.post(path, data={"csrf": token, **fields}, headers={"Origin": "http://testserver"})

    return client.get, post


def test_stewards_see_and_sign_off_on_their_page(own, edited):
    get, post = page_of(own, "sam")
    assert "not in force" not in get("/steward").text
    edited("visits.toml", ('ledger = "visits.sqlite"', 'ledger = "fresh.sqlite"'))
    (own.folder / "half.toml").write_text("[[[")
    shown = get("/steward").text
    assert "a different ledger or receipt" in shown
    assert "half.toml" in shown
    assert shown.count("Sign it off") == 1  # a mistake is mended, and not signed
    done = post("/steward/sign-off", file="visits.toml", reason="a new study").text
    assert "A second steward has to sign it off" in done
    assert "Signed off by sam" in done
    assert "That did not work" in post("/steward/sign-off", file="half.toml", reason="x").text
    second = page_of(own, "sue")[1]("/steward/sign-off", file="visits.toml", reason="yes").text
    assert "when the server is restarted" in second
    assert page_of(own, "ann")[1]("/steward/sign-off", file="visits.toml", reason="x").status_code == 403


def test_a_first_limit_is_confirmed_on_the_page(own):
    post = page_of(own, "sam")[1]
    assert "bob may ask other." in post("/people/grant", user="bob", table="other").text
    refused = post("/people/grant", user="ann", table="other", epsilon="1").text
    assert "from this first limit on other" in refused
    assert "ann may ask other." in post("/people/grant", user="ann", table="other", epsilon="1", first="yes").text


WHO = {"who": ColumnCard("integer"), "mail": ColumnCard("text")}

COLUMNS = {"a": ColumnCard("integer")}

PIN = Pin("visits", "visits.toml", "visits.sqlite", "visits.toml.receipt", {"visits.csv": "who integer"})

OTHER = Pin("other", "other.toml", "other.sqlite", "other.toml.receipt", {"other.csv": "who integer"})


def test_passwords_are_not_pinned():
    card = Card("t", "postgresql://u:hunter2@h/d::rows", COLUMNS, ledger="postgresql://u:hunter2@h/ledger")
    pin = Pin.of(Path("/cards/t.toml"), card, "/elsewhere/t.receipt")
    assert (pin.ledger, pin.sources, pin.receipt) == (
        "postgresql://h/ledger", {"postgresql://h/d::rows": ""}, "/elsewhere/t.receipt"
    )  # fmt: skip


def test_a_folder_may_move(tmp_path):
    pins = []
    for name in ("before", "after"):
        folder = tmp_path / name
        folder.mkdir()
        tables = {"more": PrivateTable(f"{folder}/more.csv", COLUMNS, None)}
        card = Card("t", f"{folder}/t.duckdb::rows", COLUMNS, ledger=f"{folder}/t.sqlite", tables=tables)
        pins.append(Pin.of(folder / "t.toml", card, f"{folder}/t.toml.receipt"))
    assert pins[0] == pins[1]
    assert pins[0].sources == {"more.csv": "", "t.duckdb::rows": ""}


@each(
    ("change", "refused"),
    [({}, False), ({"ledger": "x"}, True), ({"receipt": "x"}, True), ({"name": "x"}, True),
     ({"name": "x", "file": "x.toml"}, True), ({"sources": {"new.csv": "x text"}}, False),
     ({"sources": {"other.csv": "who integer"}}, True),
     ({"sources": {"visits.csv": "mail text"}}, True), ({"sources": {"visits.csv": "who text"}}, True),
     ({"name": "x", "file": "x.toml", "sources": {"new.csv": ""}}, False)],
)  # fmt: skip
def test_what_would_be_a_fresh_budget(change, refused):
    assert bool(replace(PIN, **change).difference((PIN, OTHER), Path("/cards"))) == refused


@pytest.fixture
def pins(tmp_path):
    with closing(Store(str(tmp_path / "s.sqlite"))) as store:
        yield Pins(store)


def test_rows_stay_pinned_when_a_card_names_others(pins, tmp_path):
    """Otherwise a table could be moved away from its rows, and another card take them up."""
    pins.keep(PIN)
    pins.keep(replace(PIN, sources={"new.csv": ""}))
    [pin] = pins.all()
    assert pin.sources == {"new.csv": "", "visits.csv": "who integer"}
    assert pin.covers(PIN)
    again = replace(PIN, name="again", file="again.toml", ledger="again.sqlite")
    assert again.difference(pins.all(), tmp_path) == "rows that have the budget of visits"


def pin_of(folder, source, name="t", unit="who", **options):
    card = Card(name, source if "::" in source and "://" in source else f"{folder}/{source}", WHO, unit, **options)
    return Pin.of(folder / f"{name}.toml", replace(card, ledger=f"{folder}/{name}.sqlite"), f"{folder}/{name}.receipt")


PG = "postgresql://u:secret@h/d::visits"


@each(
    ("pinned", "source", "same"),
    [("visits.csv", "visit*.csv", True), ("visit*.csv", "visits.csv", True), ("**/vis*.csv", "visits.csv", True),
     ("visits.csv", "hard.csv", True), ("hard.csv", "visits.csv", True), ("visits.csv", "h*.csv", True),
     ("visits.csv", "soft.csv", True), ("visits.csv", "inner/visits.csv", True), ("visits.csv", "gone.csv", False),
     ("visits.csv", "other.csv", False), ("visits.csv", "other*.csv", False), ("oth*.csv", "visits.csv", False),
     ("x.duckdb::visits", "x.duckdb::VISITS", True), ("x.duckdb::visits", "x.duckdb::main.visits", True),
     ("x.duckdb::visits", 'x.duckdb::"visits"', True), ("x.duckdb::visits", 'x.duckdb::"Main"."visits"', True),
     ("x.duckdb::visits", "y.duckdb::visits", True), ("x.duckdb::visits", "x.duckdb::other", False),
     ("x.duckdb::visits", "x.duckdb::more.visits", False), ("x.duckdb::visits", "visits.csv", False),
     (PG, "postgres://v@H:5432/d::public.visits", True), (PG, 'postgresql://h/d?sslmode=require::"visits"', True),
     (PG, "postgresql:///d?host=h::visits", True), (PG, "postgresql://h:5433/d::visits", False),
     (PG, "postgresql://h/e::visits", False), (PG, "postgresql://h/d::clinic.visits", False),
     ("postgresql://localhost/d::t", "postgresql://[::1]/d::t", True)],
)  # fmt: skip
def test_the_same_rows_however_they_are_spelled(tmp_path, pinned, source, same):
    for name in ("visits.csv", "other.csv", "x.duckdb"):
        (tmp_path / name).write_text("")
    os.link(tmp_path / "visits.csv", tmp_path / "hard.csv")
    os.link(tmp_path / "x.duckdb", tmp_path / "y.duckdb")
    os.symlink("visits.csv", tmp_path / "soft.csv")
    os.symlink(".", tmp_path / "inner")
    again = pin_of(tmp_path, source, name="again")
    first = pin_of(tmp_path, pinned, name="first")
    assert bool(again.difference([first], tmp_path)) == same
    if same:  # and in the same table, another person under another spelling
        other = pin_of(tmp_path, source, name="first", unit="mail")
        assert other.difference([first], tmp_path) == "a different column that identifies the person"


def test_a_file_that_a_glob_gets_later_is_of_its_rows(tmp_path):
    pin = pin_of(tmp_path, "day-*.csv")
    (tmp_path / "day-1.csv").write_text("")
    assert "day-1.csv" not in pin.sources
    assert "day-1.csv" in pin_of(tmp_path, "day-*.csv").sources
    assert pin_of(tmp_path, "day-1.csv", name="again").difference([pin], tmp_path)
    assert not pin_of(tmp_path, "day-*.csv").difference([pin], tmp_path)


def test_stewards_sign_all_of_it():
    changes = [{"name": "x"}, {"file": "x"}, {"ledger": "x"}, {"receipt": "x"}, {"sources": {"x": "who integer"}},
               {"sources": {"visits.csv": "mail text"}}, {"sources": {**PIN.sources, "x": ""}}, {}]  # fmt: skip
    assert len({replace(PIN, **change).digest for change in changes}) == len(changes)
