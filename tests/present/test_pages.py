"""Pages about answers: everything is escaped, nothing is loaded, nothing runs, and what must be said is said."""

from __future__ import annotations

import html.parser
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dp
from dither import present
from dither.cli.app import main
from dither.ledger.accounts import Remaining
from dither.present.notes import Note
from dither.present.pages import answer as pages
from dither.stream.series_answer import SeriesAnswer
from dither.tables.answer import Answer
from support import noted, refuses
from tables.profiles import table_profile

NASTY = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></table><svg/onload=alert(1)>",
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "&lt;script&gt;",
    "]]><![CDATA[",
    "a\u202eb\x00c\x1b[31m\ud800",
    "{0} %s {title}",
]
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Reader(html.parser.HTMLParser):
    """Collects tags, attributes and text, and checks that tags are closed in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "pre", "code", "div", "table"),
    *("thead", "tbody", "tr", "th", "td", "abbr", "em", "figure", "figcaption", "ul", "li"), "details", "summary",
    *("svg", "text", "rect", "line", "path", "circle", "polyline", "polygon"),
}  # fmt: skip


def check_safe(page: str) -> Reader:
    """Only known tags; no handlers, no addresses but the name of SVG; nothing that an encoder refuses."""
    page.encode("utf-8")
    reader = read(page)
    for tag, attributes in reader.tags:
        assert tag in ALLOWED
        for name, value in attributes.items():
            assert not name.startswith("on")
            assert name not in ("href", "src", "srcset", "action", "xlink:href", "style")
            assert "://" not in (value or "") or (name, value) == ("xmlns", "http://www.w3.org/2000/svg")
    assert "url(" not in page
    assert "@import" not in page
    return reader


def simple(**more: Any) -> Answer:
    stated: dict[str, Any] = {
        "columns": ("region", "n", "spend"),
        "types": ("text", "integer", "number"),
        "rows": (("north", 41, 1 / 3), ("south", 60, 12.5)),
        "errors": {"n": (6.0, 6.0), "spend": (0.25, None)},
        "cost": dp.PureDP(0.5),
    }
    return Answer(**(stated | more))


@pytest.fixture(scope="module")
def released():
    """An answer about real rows whose keys are nasty, with its explanation and history."""
    keys = [sign.replace("\x00", "").replace("\ud800", "") for sign in NASTY]
    rows = pa.table({"who": list(range(300)), "word": [keys[i % len(keys)] for i in range(300)], "x": [1.5] * 300})
    with dp.open(rows, unit="who", bounds={"x": (0, 2)}, delta=1e-6, budget=dp.ApproxDP(20, 1e-5)) as table:
        table.agg(n=dp.count()).release(epsilon=1)
        question = table.group_by("word").agg(n=dp.count(), m=dp.mean("x"), q=dp.median("x"))
        answer = question.release(epsilon=10)
        yield keys, answer, question.explain(epsilon=10), list(table.ledger.history("data"))


def test_nasty_keys_from_the_data_are_text_and_nothing_else(released):
    keys, answer, explanation, history = released
    assert set(answer["word"]) == set(keys)
    page = present.html(answer, NASTY[0], explanation=explanation, history=history, question="\n".join(NASTY))
    reader = check_safe(page)
    assert "<script" not in page
    assert reader.tags.count(("h1", {})) == 1
    cells = set(reader.text)
    assert {"<script>alert(1)</script>", "&lt;script&gt;", "{0} %s {title}"} <= cells
    assert r"a\u202ebc\x1b[31m" in " ".join(cells)


@given(st.text(), st.text(), st.text())
def test_no_text_breaks_out(key, name, title):
    answer = simple(columns=(f"k{name}", "n"), types=("text", "integer"), rows=((key, 1),), errors={"n": (1.0,)})
    reader = check_safe(present.html(answer, title, question=key))
    assert [tag for tag, _ in reader.tags if tag in ("script", "style")] == ["style"]


def test_the_page_says_what_has_to_be_said(released):
    _, answer, explanation, history = released
    words_ = " ".join(read(present.html(answer, explanation=explanation, history=history, question="SELECT 1")).text)
    for part in (
        "SELECT 1", "(ε, δ) = (10, 1e-06)", str(answer.remaining), answer.receipt, "Laplace noise",
        "exponential mechanism",
        "Spent so far", "ε = 11", "this answer", "What is guaranteed", "What is not", "are not shown", "95 %",
    ):  # fmt: skip
        assert part in words_


def test_the_same_answer_makes_the_same_page(released):
    _, answer, explanation, history = released
    pages = [present.html(answer, explanation=explanation, history=items) for items in (iter(history), history)]
    assert pages[0] == pages[1]


def test_tables_are_tables(released):
    _, answer, explanation, history = released
    reader = read(present.html(answer, explanation=explanation, history=history))
    tags = [tag for tag, _ in reader.tags]
    assert tags.count("table") == 4
    assert tags.count("figcaption") == 3  # the fourth lists facts
    scopes = {attributes.get("scope") for tag, attributes in reader.tags if tag == "th"}
    assert scopes == {"col", "row"}
    pictures = [attributes for tag, attributes in reader.tags if tag == "svg"]
    assert all(picture.get("role") == "img" and picture.get("aria-label") for picture in pictures)
    assert ("html", {"lang": "en"}) in reader.tags


def test_only_the_cost_of_other_questions_is_shown():
    rows = pa.table({"x": [1] * 50})
    with dp.open(rows, name="visits", budget=dp.PureDP(2)) as table:
        table.sql("SELECT COUNT(*) AS a_secret_interest FROM visits").release(epsilon=0.5)
        answer = table.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=0.25)
        page = present.html(answer, history=table.ledger.history("visits"))
    assert "a_secret_interest" not in page
    assert "ε = 0.5" in page
    assert "ε = 0.75" in page


def test_what_is_left_when_that_is_nothing_or_private():
    rows = pa.table({"who": list(range(50))})
    with dp.open(rows, unit="who", budget=dp.PureDP(1)) as table:
        answer = table.agg(n=dp.count()).release(epsilon=1)
        assert (answer.left, str(answer.remaining)) == (None, "nothing")
        assert "<td>nothing</td>" in present.html(answer, history=table.ledger.history("data"))
        table.ledger.create("others", each_person=dp.PureDP(1))
        assert "private, with an account for each person" in present.html(
            simple(), history=table.ledger.history("others")
        )
    assert "left of the budget" not in present.html(simple())


def test_each_row_a_person_is_said():
    with dp.open(pa.table({"x": [1] * 50}), budget=dp.PureDP(2)) as table:
        question = table.agg(n=dp.count())
        page = present.html(question.release(epsilon=1), explanation=question.explain(epsilon=1))
    assert "that one row" in page
    assert "all the rows of one person" in present.html(simple())


def test_long_answers_are_cut_and_say_so():
    many = pages.MAX_ROWS + 7
    answer = simple(
        columns=("k", "n"), types=("integer", "integer"), rows=tuple((i, i) for i in range(many)),
        errors={"n": (1.0,) * many},
    )  # fmt: skip
    page = present.html(answer)
    assert page.count('<th scope="row">') == pages.MAX_ROWS + 1
    assert "7 more are in the answer" in page


def test_an_empty_answer_and_odd_values():
    empty = present.html(simple(rows=(), errors={"n": (), "spend": ()}))
    assert "No group has enough people" in empty
    assert "<svg" not in empty
    odd = simple(
        columns=("day", "flag", "h", "m", "n"),
        types=("date", "boolean", "integer", "text", "number"),
        rows=((date(2024, 1, 2), True, [1, -2], "a", float("inf")), (None, None, [3, 4], "b", -1e308)),
        errors={"h": (1.0, 1.0), "m": (None, None), "n": (1e308, None)},
    )
    page = check_safe(present.html(odd)).text
    assert "2024-01-02" in page
    assert "NULL" in page
    assert "[1, -2]" in page


def test_other_things_have_no_page():
    with refuses(dp.InvalidArgument, "what release", "str"):
        present.html(cast(Answer, "answer"))


def test_writing_is_whole_or_refused(tmp_path: Path):
    target = tmp_path / "answer.html"
    target.write_text("old")
    present.write_html(target, simple(), "t")
    assert target.read_text(encoding="utf-8") == present.html(simple(), "t")
    assert [item.name for item in tmp_path.iterdir()] == ["answer.html"]
    for place in (tmp_path / "none" / "a.html", tmp_path):
        with refuses(dp.InvalidArgument, "report: expected a file in a folder that can be written"):
            present.write_html(place, simple())
    assert [item.name for item in tmp_path.iterdir()] == ["answer.html"]


def test_words_round_the_promise_up():
    assert pages.factor(dp.PureDP(1e-05)) == "1.01"
    assert pages.factor(dp.PureDP(300)) is None
    assert "nearly as likely" in pages.guaranteed(simple(cost=dp.ZCDP(0.1)), False)[0]
    assert "probability of at most δ" in pages.guaranteed(simple(cost=dp.ApproxDP(1, 1e-7)), False)[0]


@pytest.fixture
def card(tmp_path: Path) -> Path:
    (tmp_path / "visits.csv").write_text("who,region\n" + "".join(f"{i},north\n" for i in range(40)))
    stated = 'name = "visits"\nsource = "visits.csv"\nunit = "who"\nledger = "books.sqlite"\nbudget.epsilon = 2\n'
    stated += 'columns.who = "integer"\n[columns.region]\ntype = "text"\nkeys = ["north", "<b>"]\n'
    (tmp_path / "visits.toml").write_text(stated)
    return tmp_path / "visits.toml"


def ask(card: Path, place: Path, monkeypatch: pytest.MonkeyPatch, option: str = "--report") -> object:
    question = ["SELECT region, COUNT(*) AS n FROM visits GROUP BY region", "--epsilon", "0.5"]
    monkeypatch.setattr(sys, "argv", ["dither", "query", str(card), *question, option, str(place)])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code


def test_a_page_on_the_command_line(card, tmp_path, monkeypatch, capsys):
    assert not ask(card, tmp_path / "page.html", monkeypatch)
    assert "left: ε = 1.5" in capsys.readouterr().out
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    words_ = " ".join(check_safe(page).text)
    for part in ("A private answer about visits", "SELECT region", "<b>", "Laplace noise", "this answer", "ε = 1.5"):
        assert part in words_


def test_a_page_that_cannot_be_written_is_found_out_first_and_loses_no_answer(card, tmp_path, monkeypatch, capsys):
    assert ask(card, tmp_path / "none" / "page.html", monkeypatch) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("dither: --report: expected a file")
    assert not (tmp_path / "books.sqlite").exists()  # nothing was charged

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("dither.present.pages.write_html", full)
        assert ask(card, tmp_path / "page.html", patched) == 2
    printed = capsys.readouterr()
    assert "left: ε = 1.5" in printed.out
    assert "the answer is recorded" in printed.err
    assert not ask(card, tmp_path / "page.html", monkeypatch)  # asked again, it is free
    assert "paid earlier" in capsys.readouterr().out
    assert "this answer" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_plot_that_cannot_be_drawn_is_refused_before_it_is_paid(card, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert ask(card, tmp_path / "plot.png", monkeypatch, "--plot") == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err[:27]) == ("", "dither: matplotlib: expecte")
    assert "pip install 'dither[plot]'" in printed.err
    assert not (tmp_path / "books.sqlite").exists()


def test_the_page_says_what_the_error_is_about_and_what_comes_on_top():
    unknown = " ".join(check_safe(present.html(simple(notes=(Note("undercount_unknown"),)))).text)
    assert "± is the error by noise, with 95 % confidence." in unknown
    assert "may be low by an unknown amount" in unknown
    assert "was not measured" in unknown
    total = {"columns": ("n",), "types": ("integer",), "rows": ((41,),), "errors": {"n": (6.0,)}}
    known = " ".join(check_safe(present.html(simple(clipped_share={"n": (0.1, 0.0, 0.25)}, **total))).text)
    assert "“low by” is an estimate of it" in known
    assert "was estimated from a noisy histogram" in known
    assert "5 (0–14)" in known
    assert "unknown" not in known


def test_a_page_promises_that_small_groups_are_hidden_only_where_they_are():
    hidden = "A group is shown only if its noisy number of persons is large enough that no person stands out."
    searched = Note("bounds_forecast", {"name": "m", "people": 30})
    assert hidden not in present.html(simple(notes=(searched,)))
    assert hidden in present.html(simple(notes=(Note("small_groups", {"people": 30}),)))
    elsewhere = present.html(simple(notes=(Note("undercount_elsewhere"),)))
    assert "unknown" not in elsewhere.split("What it cost")[0]


def test_numbers_on_the_page_have_the_digits_of_their_error():
    answer = simple(columns=("n",), types=("number",), rows=((2157950.3,),), errors={"n": (33000.0,)})
    page = present.html(answer)
    assert "2,158,000 ± 33,000" in page
    assert "2.15795e+06" not in page


def test_the_page_of_a_series_shows_the_last_points_and_is_escaped():
    days = [date(2026, 1, 1) + timedelta(days=i) for i in range(300)]
    rows = tuple((day, ward, float(i)) for i, day in enumerate(days) for ward in ("<a>", None))
    answer = SeriesAnswer(
        ("day", "ward", "n"),
        ("date", "text", "number"),
        rows,
        {"n": (2.0,) * 600},
        dp.PureDP(1),
        (Note("levels"),),
        Remaining("nothing"),
    )
    page = present.html(answer, "<title>")
    assert "<a>" not in page
    assert "&lt;a&gt;" in page
    assert "<script" not in page
    assert "The last 200 of 600 points." in page
    assert "Levels add up" in page


def test_what_limits_leave_out_stands_below_the_lines_before_the_cost():
    days = pa.table({"who": [1, 1, 2], "day": [date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 1)]})
    with dp.open(days, unit="who", budget=dp.ApproxDP(1, 1e-6)) as visits:
        over = visits.over("day", column="day", horizon=9, start="2026-01-01", epsilon=1, delta=1e-6)
        answer = over.agg(n=dp.people()).release(through="2026-01-02")
        free = visits.over(
            "day", column="day", horizon=2, start="2026-01-01", epsilon=1, delta=1e-6, max_participations=2
        ).agg(n=dp.count())
        assert not noted(free.explain(), "series_falling")
        assert noted(free.explain(), "undercount_elsewhere")
    page = present.html(answer)
    for said in (
        "too low by more than the ±",
        "a falling line",
        "not numbers of distinct people",
        "rows with null",
    ):
        assert page.lower().index("</svg>") < page.lower().index(said) < page.index("What it cost")


def test_the_page_of_a_profile_has_a_chart_for_each_column_and_is_escaped():
    table = table_profile([1, 1, 2], {"<script>": [1, 5, None], "y": [2, 2, 2]}, {"<script>": (0, 4, 8), "y": (0, 4)})
    text = present.html(dp.Profile({"visits": table}, dp.PureDP(0.5)), "A <profile>")
    assert text.count("<svg ") == 3
    assert "<script" not in text
    assert "<h1>A &lt;profile&gt;</h1>" in text
    assert "cost: ε = 0.5" in text
