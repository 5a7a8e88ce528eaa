"""Pages: everything is escaped, forms carry their token, and nobody sees what is not theirs."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from page_site import HOSTILE, HOSTILE_COLUMN, PASSWORD

import dither as dp
from dither.errors import DataIncident, InvalidArgument
from dither.ledger.accounts import Remaining
from dither.present.notes import Note
from dither.server.errors import problem_of
from dither.server.jobs import Job
from dither.server.pages.asking import TITLES
from dither.server.pages.login import local_path
from dither.server.pages.render import FOLDER, environment, moment, sentence
from support import each

SHARED = {"principal": None, "navigation": [], "csrf": "", "notice": "", "problem": None}

TEMPLATES = sorted(path.name for path in (FOLDER / "templates").iterdir())


@pytest.mark.parametrize("kind", ["question", "publication"])
@pytest.mark.parametrize("state", TITLES)
def test_every_state_of_a_question_has_its_words(state, kind):
    problem = problem_of(DataIncident())
    job = Job("1", "visits", "SELECT <b>", state, "2026-01-01T00:00:00+00:00", kind, "a1", problem)
    text = environment().get_template("job.html").render(job=job, titles=TITLES, **SHARED)
    assert f"Your {kind}" in text
    assert "<b>" not in text
    assert ("Cancel the" in text) == (state == "waiting")
    assert ("Tell the steward; the charge stays." in text) == (state in ("failed", "refused"))


@each("confirmed", [False, True])
def test_an_answer_that_would_be_noise_is_confirmed_beside_the_forecast(confirmed):
    levers = [{"kind": "groups", "columns": ["<b>"], "error": 2.8, "share": 0.35}]
    values = {"name": "delay", "error": 11.0, "size": 8.0, "all": True, "levers": levers}
    line = {"answer": "delay", "measure": "m", "mechanism": "by", "error": 11.0, "expected": "in words"}
    known = {**line, "groups": [14.0, 11.0, 9.0, 8.0]}
    other = {**line, "answer": "other", "groups": None}
    explanation = dp.Explanation(
        (known, other), dp.PureDP(1), "groups: 48", "each", Remaining(dp.PureDP(9)), (Note("mostly_noise", values),)
    )
    context = {"explanation": explanation, "problem": None, "meter": None, "unit": "ε", "confirmed": confirmed}
    text = environment().get_template("_explanation.html").render(**context).replace("\xa0", " ")
    assert "<code>delay</code> will be mostly noise: ± 11 is expected where the number is about 8.0." in text
    assert "by <code>&lt;b&gt;</code> ± 2.8 (35 %)" in text
    assert ('name="force" value="yes" checked' in text) == confirmed
    cells = re.findall(r"<td class=\"n\">([^<]*)</td>", text)
    assert cells == ["8.0", "± 11", "± 14", "± 9.0"]
    assert text.count("in words") == 1


@pytest.mark.parametrize("error", [InvalidArgument("one <b> sentence"), KeyError("a patient's name")])
def test_an_error_without_parts_is_shown_whole_and_a_foreign_one_not_at_all(error):
    shown = SHARED | {"problem": problem_of(error)}
    text = environment().get_template("error.html").render(heading="Something went wrong", **shown)
    assert "patient" not in text
    assert "<b>" not in text
    assert 'role="alert"' in text


@each("name", TEMPLATES)
def test_no_template_holds_a_script_or_style_or_trusts_a_value(name):
    source = (FOLDER / "templates" / name).read_text(encoding="utf-8")
    assert not re.search(r"\sstyle=|<style|\son[a-z]+=|javascript:|\|\s*safe|autoescape", source)
    for tag in re.findall("<script[^>]*>", source):
        assert re.fullmatch('<script src="/static/[a-z]+.js" defer>', tag)
    assert not re.search(r"(src|href)=\"(https?:)?//", source)


@each("name", TEMPLATES)
def test_every_form_that_changes_something_carries_a_token(name):
    source = (FOLDER / "templates" / name).read_text(encoding="utf-8")
    for form in re.findall("<form[^>]*>.*?</form>", source, re.DOTALL):
        if 'method="post"' in form.partition(">")[0]:
            assert "m.csrf(csrf)" in form, form


def test_times_and_sentences():
    assert moment("2026-11-17T02:05:59+02:00") == "2026-11-17 00:05"
    assert sentence("") == ""
    assert sentence("COUNT(*) is refused") == "COUNT(*) is refused."


def test_marks_of_direction_are_shown():
    assert environment().from_string("{{ text }}").render(text="a\u202eb\nc\x00") == "a\ufffdb\nc\ufffd"


def test_what_to_do_on_a_page_can_be_done_there():
    with dp.open(pa.table({"x": [1.0, 2.0]}), name="t", budget=dp.PureDP(9)) as table:
        with pytest.raises(InvalidArgument) as refused:
            table.sql("SELECT AVG(x) AS m FROM t").explain(epsilon=1)
        fix = problem_of(refused.value)["fix"]
        assert "Python" not in fix
        written = re.search(r"AVG\(amount(, .*)\)$", fix)
        assert written, fix
        assert table.sql(f"SELECT AVG(x{written[1]}) AS m FROM t").explain(epsilon=1).cost
        with pytest.raises(InvalidArgument) as refused:
            table.sql("SELECT COUNT(*) AS n FROM t").explain(error="1%")
        assert "error=" not in problem_of(refused.value)["fix"]
    with pytest.raises(InvalidArgument) as refused:
        dp.ledger.Receipt.read("nonsense")
    assert "as it was printed" in problem_of(refused.value)["fix"]


def test_forms_need_the_token_of_this_session(pages):
    ann, new = pages.visitor("ann"), pages.visitor("new")
    question = {
        "table": "visits",
        "sql": "SELECT COUNT(*) AS n FROM visits",
        "by": "epsilon",
        "epsilon": "0.2",
        "do": "ask",
    }
    for token in ("", "0" * 64, new.token):
        status, text, _ = ann.post("/ask", **(question | {"csrf": token}))
        assert status == 403
        assert "loaded in this session" in text
    _, text, _ = ann.get("/history")
    assert "ε = 0.2" not in text


def test_a_wrong_password_is_refused_alike_for_known_and_unknown_people(pages):
    texts = []
    for name in ("ann", "zed"):
        visitor = pages.visitor()
        visitor.get("/sign-in")
        status, text, headers = visitor.post("/sign-in", name=name, password="wrong password", next="/")
        assert status == 403
        assert "dither_session" not in headers.get("set-cookie", "")
        texts.append(text.replace(name, "").replace(visitor.token, ""))
    assert texts[0] == texts[1]


def test_the_session_cookie_is_out_of_reach_and_ends_with_sign_out(pages):
    visitor = pages.visitor()
    visitor.get("/sign-in")
    _, _, headers = visitor.post("/sign-in", name="rea", password=PASSWORD, next="/published")
    assert headers["location"] == "/published"
    visitor.get("/account")
    kept = dict(visitor.cookies)
    status, _, headers = visitor.post("/sign-out")
    assert (status, headers["location"]) == (303, "/sign-in")
    visitor.cookies = kept
    assert visitor.get("/published")[2]["location"].startswith("/sign-in")


def test_cookies_are_http_only_and_same_site(pages):
    visitor = pages.visitor()
    _, _, headers = visitor.get("/sign-in")
    assert "HttpOnly" in headers["set-cookie"]
    assert "SameSite=lax" in headers["set-cookie"]


@pytest.mark.parametrize(
    ("who", "path", "status"),
    [
        ("", "/ask", 303), ("", "/people", 303), ("", "/answers/{answer}", 303),
        ("ann", "/people", 403), ("ann", "/steward", 403), ("ann", "/ledger", 403), ("ann", "/ledger/visits", 403),
        ("ann", "/events", 403), ("ann", "/publishing", 403), ("ann", "/limits", 403), ("ann", "/incidents", 403),
        ("rea", "/tables", 403), ("rea", "/ask", 403), ("rea", "/history", 403), ("rea", "/answers/{hostile}", 404),
        ("new", "/answers/{hostile}", 404), ("new", "/tables/hostile", 404), ("new", "/ask?table=hostile", 404),
        ("aud", "/people", 403), ("aud", "/answers/{hostile}", 404), ("ann", "/answers/..%2f..%2fetc%2fpasswd", 404),
        ("ann", "/answers/{answer}.exe", 404), ("ann", "/static/..%2f__init__.py", 404), ("ann", "/jobs/none", 404),
    ],
)  # fmt: skip
def test_nobody_sees_what_is_not_theirs(pages, who, path, status):
    got, text, _ = pages.visitor(who).get(path.format(**pages.known))
    assert got == status
    assert "Traceback" not in text


def test_auditors_cannot_change_anything(pages):
    auditor = pages.visitor("aud")
    for path, fields in (
        ("/limits", {"table": "visits", "whose": "dataset", "epsilon": "9", "reason": "x"}),
        ("/limits/approve", {"change": pages.known["change"]}),
        ("/people", {"name": "eve", "role": "steward"}),
        ("/incidents/reopen", {"table": "visits", "reason": "x"}),
        ("/answers/{answer}/unpublish", {}),
    ):
        assert auditor.post(path.format(**pages.known), **fields)[0] == 403


def test_hostile_names_are_text_everywhere(pages):
    for who, path in (
        ("ann", "/tables/hostile"), ("ann", "/ask?table=hostile"), ("ann", "/ask/guided?table=hostile"),
        ("ann", "/answers/{hostile}"), ("ann", "/account"), ("ann", "/history"), ("sam", "/limits"),
        ("sam", "/publishing"), ("sam", "/steward/hostile"),
    ):  # fmt: skip
        _, text, _ = pages.visitor(who).get(path.format(**pages.known))
        assert HOSTILE not in text
        assert HOSTILE_COLUMN not in text
        assert "&lt;script&gt;" in text or "&lt;img" in text, path
        assert "{{ 7 * 7 }}" in text or not path.startswith("/answers"), "a key is no template"


def test_downloads_are_files_with_plain_names(pages):
    ann = pages.visitor("ann")
    for ending, kind in (("csv", "text/csv"), ("json", "application/json"), ("svg", "image/svg+xml")):
        status, text, headers = ann.get(f"/answers/{pages.known['hostile']}.{ending}")
        assert (status, headers["content-type"].split(";")[0]) == (200, kind)
        assert headers["content-disposition"].startswith('attachment; filename="hostile-')
        assert "<script>" not in text or ending != "svg"
    status, text, headers = pages.visitor("aud").get("/ledger/visits/receipt.txt")
    assert (status, headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert text.count(":") == 1


@pytest.mark.parametrize(
    "path", ["https://evil.example", "//evil.example", "/\\evil", "javascript:alert(1)", "", "/é", "/a\nb"]
)
def test_sign_in_leads_nowhere_else(path):
    assert local_path(path) == "/"
