"""Templates: every state of a question has its page, everything is escaped, and there is no script or style inside."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import dither as dp
from dither.errors import DataIncident, InvalidArgument
from dither.server.errors import problem_of
from dither.server.jobs import Job
from dither.server.pages.asking import TITLES
from dither.server.pages.render import FOLDER, environment, moment, page_words, sentence
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
    assert page_words("plain") == "plain"


def test_marks_of_direction_are_shown():
    assert environment().from_string("{{ text }}").render(text="a\u202eb\nc\x00") == "a\ufffdb\nc\ufffd"


def test_what_to_do_on_a_page_can_be_done_there():
    with dp.open(pa.table({"x": [1.0, 2.0]}), name="t", budget=dp.PureDP(9)) as table:
        with pytest.raises(InvalidArgument) as refused:
            table.sql("SELECT AVG(x) AS m FROM t").explain(epsilon=1)
        fix = page_words(problem_of(refused.value)["fix"])
        assert "Python" not in fix
        written = re.search(r"AVG\(amount(, .*)\)$", fix)
        assert written, fix
        assert table.sql(f"SELECT AVG(x{written[1]}) AS m FROM t").explain(epsilon=1).cost
        with pytest.raises(InvalidArgument) as refused:
            table.sql("SELECT COUNT(*) AS n FROM t").explain(error="1%")
        assert "error=" not in page_words(problem_of(refused.value)["fix"])
    with pytest.raises(InvalidArgument) as refused:
        dp.ledger.Receipt.read("nonsense")
    assert "Keep a receipt" in page_words(problem_of(refused.value)["fix"])
