"""Fragments for notebooks: everything is escaped, nothing runs, and all that a person might look at has one."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dp
from dither.present import markup

TAG = re.compile(r"<(/?[a-z]+)[^<>]*>")
KNOWN = {"abbr", "details", "div", "em", "pre", "summary", "table", "tbody", "td", "th", "thead", "tr"}


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
    assert "could go undetected" in pages[3]
    assert "+</td>" in pages[3]
    assert "ε = 9" in pages[4]
    assert "closed" in table._repr_html_()


def test_guarantees_say_what_they_bound():
    assert "e^ε = 1.65" in dp.PureDP(0.5)._repr_html_()
    assert "plus a probability of at most δ" in dp.ApproxDP(1, 1e-6)._repr_html_()
    assert "ρ = 0.1" in dp.ZCDP(0.1)._repr_html_()
    assert "e^ε" in dp.PureDP(5000)._repr_html_()


MECHANISMS = [
    dp.Laplace(1, 1), dp.Gaussian(1, 1, 1e-6), dp.Staircase(1, 1), dp.MixedNoise(1, 1, 1e-6),
    dp.BoundedLaplace(1, 1, 0, 10), dp.SmoothNoise("laplace", 1, 1e-6), dp.Exponential(1, 1), dp.NoisyMax(1, 1),
    dp.PermuteAndFlip(1, 1), dp.RandomizedResponse(1), dp.RandomizedResponse(1, ["<a>", "b", "c"]),
]  # fmt: skip
WITHOUT_A_LAW = [dp.TopK(2, 1, 1), dp.SparseVector(1, 1), dp.ProposeTestRelease(1, 1, 1e-6)]
OTHERS = {
    "estimate": lambda: dp.stats.mean([1, 2, 3], (0, 4), 1),
    "histogram": lambda: dp.stats.histogram([1, 2, 3], (0, 4), 1, bins=4),
    "density": lambda: dp.density.release([0.5] * 20, (0, 1), 1, bins=4),
    "two dimensions": lambda: dp.density.release(np.full((20, 2), 0.5), [(0, 1), (0, 1)], 1, bins=2),
    "best": lambda: dp.accounting.best_of(10 * dp.Laplace(1, 0.1).event, 1e-6),
    "result": lambda: dp.course.find("theorem 10")[0],
    "results": lambda: dp.course.find("lemma"),
    "certificate": lambda: dp.audit.certify(dp.Laplace(1, 1)),
    "measurement": lambda: dp.audit.measure(dp.Laplace(1, 2), 0.0, 1.0, claim=0.5, trials=2000),
    "measurement without a claim": lambda: dp.audit.measure(dp.Laplace(1, 2), 0.0, 1.0, trials=2000),
    "audit": lambda: dp.audit.Audit((dp.audit.Row("m", "f", "ε", 1, 0, None, None, None, "proved", 0.1),), 0.99, 1.0),
    "replay": lambda: dp.audit.replay(lambda x: dp.Laplace(1, 1).release(sum(x)), [1, 2], [1]),
}


def check(page: str) -> ET.Element:
    assert "<script" not in page
    assert not re.search(r"\son[a-z]+=", page)
    return ET.fromstring(page)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_a_mechanism_shows_what_it_promises_and_a_picture(mechanism):
    tree = check(mechanism._repr_html_())
    assert str(mechanism.guarantee) in "".join(tree.itertext())
    assert tree.find(".//{http://www.w3.org/2000/svg}svg") is not None


@pytest.mark.parametrize("mechanism", WITHOUT_A_LAW, ids=repr)
def test_a_mechanism_without_one_law_shows_what_it_promises(mechanism):
    assert str(mechanism.guarantee) in "".join(check(mechanism._repr_html_()).itertext())


@pytest.mark.parametrize("name", OTHERS)
def test_other_values_show_themselves(name):
    value = OTHERS[name]()
    check(value._repr_html_())


def test_a_picture_reads_no_data_and_is_the_same_every_time():
    assert dp.Laplace(1, 1)._repr_html_() == dp.Laplace(1, 1)._repr_html_()
    assert dp.Laplace(1, 1)._repr_html_() != dp.Laplace(1, 2)._repr_html_()


PROTOCOLS = [
    dp.local.SubsetSelection(categories=128, epsilon=1),
    dp.local.UnaryEncoding(categories=16, epsilon=1),
    dp.local.RandomizedResponse(categories=["<b>", "no"], epsilon=1),
    dp.local.HadamardResponse(categories=16, epsilon=1),
    dp.local.Mean(bounds=(0, 10), epsilon=1),
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: type(protocol).__name__)
def test_a_protocol_shows_its_promise_and_its_error(protocol):
    page = protocol._repr_html_()
    assert "ε = 1 for each report" in page
    assert f"{protocol.variance(1):.4g}, for " in page
    assert page.count("<svg xmlns") == 1
    assert "<b>" not in page
    assert all(f"{n:,} people" in page for n in (1_000, 10_000_000))
    assert ("the mean" in page) == isinstance(protocol, dp.local.Mean)


BUDGET = {"horizon": 30, "epsilon": 1, "delta": 1e-9}
SERIES = [
    (dp.stream.RunningSum, {}, "± of the running sum (95 %)"),
    (dp.stream.RunningMean, {}, "± of the mean so far (95 %)"),
    (dp.stream.SlidingWindow, {"window": 7}, "± of the sum over the window (95 %)"),
    (dp.stream.Histogram, {"bins": 3}, "± of the running sum (95 %)"),
]


@pytest.mark.parametrize(("kind", "more", "title"), SERIES, ids=[kind.__name__ for kind, _, _ in SERIES])
def test_a_series_shows_its_promise_and_its_errors(kind, more, title):
    series = kind(**BUDGET, **more)
    page = series._repr_html_()
    assert page.count("<svg xmlns") == 1
    assert f'aria-label="{title}"' in page
    assert "(ε, δ) = (1, 1e-09), once for all steps" in page
    assert f"± {series.error(30):.3g} after step 30" in page
    assert f"{kind.__name__}, 0 steps released" in page


def test_what_was_released_is_not_shown():
    series = dp.stream.RunningSum(**BUDGET)
    before = series._repr_html_()
    series.release(123_456)
    assert series._repr_html_() == before.replace("0 steps released", "1 steps released")


def test_of_a_long_horizon_some_steps_are_drawn():
    plan = dp.stream.StreamPlan(horizon=10_000, budget=dp.PureDP(1))
    steps = plan.shown_steps()
    assert (steps[0], steps[-1], len(steps)) == (1, 10_000, 61)
    assert "after step 10,000" in plan._repr_html_()


def test_an_unknown_horizon_is_said():
    plan = dp.stream.StreamPlan(horizon=None, budget=dp.ZCDP(0.1), max_participations=3, min_separation=5)
    page = plan._repr_html_()
    assert "not known" in page
    assert "in at most 3 steps, at least 5 apart" in page
