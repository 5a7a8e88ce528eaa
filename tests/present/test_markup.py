"""Fragments for notebooks: everything is escaped, nothing runs, and colors come from where they are shown."""

from __future__ import annotations

import re

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import dither as dp
from dither.present import markup

TAG = re.compile(r"<(/?[a-z]+)[^<>]*>")
KNOWN = {"div", "table", "thead", "tbody", "tr", "th", "td", "em", "pre"}


def check_safe(page: str) -> None:
    assert {name.lstrip("/") for name in TAG.findall(page)} <= KNOWN
    assert not re.search(r"<[^<>]*\son[a-z]+\s*=", page)
    assert "url(" not in page
    rest = TAG.sub("", page)
    assert "<" not in rest
    assert ">" not in rest


@given(st.text(), st.text())
def test_no_text_breaks_out(first, second):
    parts = [
        markup.table([first], [[second], [None]], [True]),
        markup.facts([(first, second)]),
        markup.heading(first),
        markup.lines([second]),
        markup.code(first),
    ]
    page = markup.block(*parts)
    page.encode("utf-8")
    check_safe(page)


def test_everything_shows_in_a_notebook():
    rows = pa.table({"who": [i % 30 for i in range(100)], "<b>region": ["north", "<i>south"] * 50})
    keys = {"<b>region": ["north", "<i>south"]}
    with dp.open(rows, unit="who", keys=keys, budget=dp.PureDP(10), max_rows="auto") as table:
        question = table.group_by("<b>region").agg(n=dp.count())
        [account] = table.ledger.accounts()
        shown = [table, question, question.explain(1), question.release(1), table.ledger, account]
        shown += [table.sql("SELECT COUNT(*) AS n FROM data"), dp.PureDP(0.5), dp.ApproxDP(1, 1e-6), dp.ZCDP(0.1)]
        pages = [item._repr_html_() for item in shown]
    for page in pages:
        check_safe(page)
    assert "&lt;b&gt;region" in pages[0]
    assert "The share stated is of all rows" in pages[3]
    assert "ε = 9" in pages[4]
    assert "closed" in table._repr_html_()


def test_guarantees_say_what_they_bound():
    assert "e^ε = 1.65" in dp.PureDP(0.5)._repr_html_()
    assert "except with probability at most δ" in dp.ApproxDP(1, 1e-6)._repr_html_()
    assert "ρ = 0.1" in dp.ZCDP(0.1)._repr_html_()
    assert "e^ε" in dp.PureDP(5000)._repr_html_()
