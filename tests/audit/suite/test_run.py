"""The whole audit: what is built in passes, what is not what it claims does not, and page and command say so."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

import dither as dp
from dither.audit import audit
from dither.audit.suite import run as run_module
from dither.audit.suite.run import examine
from dither.audit.suite.subjects import Subject, subjects
from dither.cli.app import app
from dither.present import html, write_html
from dither.present.pages.audit import max_power, trade_off
from dither.public_module import defining_module
from dither.randomness import SYSTEM
from support import refuses

pytestmark = pytest.mark.slow

EVERY = subjects()


@pytest.fixture
def few_trials(monkeypatch):
    """As many as refute what one set of data gives in a third of runs and the other never; laws are tested by the tests
    of each mechanism, with as many draws as their scales take."""
    monkeypatch.setattr(run_module, "_affordable", lambda *_: 600)


@pytest.mark.usefixtures("few_trials")
@pytest.mark.parametrize("subject", EVERY, ids=lambda subject: subject.name)
def test_everything_that_is_built_in_is_what_it_claims(subject):
    result = examine(subject, confidence=1 - 1e-11)
    assert not result.refuted, result.replayed
    assert result.verdict == ("proved" if subject.mechanism is not None else "not refuted")
    json.dumps(result.measured, allow_nan=False)


@pytest.mark.usefixtures("few_trials")
def test_so_few_trials_find_what_shows_in_a_third_of_runs():
    leak = Subject(
        "leak", "statistic", dp.PureDP(1), 0.0, 1.0,
        lambda x, size: [x * (SYSTEM.word() < 2**64 // 3) for _ in range(size)], replayed=False,
    )  # fmt: skip
    assert examine(leak, confidence=1 - 1e-11).refuted


def test_every_mechanism_is_there():
    mechanisms = [s.mechanism() if isinstance(s.mechanism, partial) else s.mechanism for s in EVERY]
    kinds = {type(mechanism).__name__ for mechanism in mechanisms} | {"SampleAndAggregate", "ContinuousExponential"}
    classes = [kind for kind in (getattr(dp, name) for name in dp.__all__) if isinstance(kind, type)]
    expected = {kind.__name__ for kind in classes if defining_module(kind).startswith("dither.mechanisms")}
    assert expected <= kinds


def halved(subject):
    """The same with half the noise."""
    mechanism = dp.Laplace(1, 1)
    object.__setattr__(mechanism, "_scales", (0.5,))
    return replace(subject, draw=lambda x, size: mechanism.release(np.full(size, x)), mechanism=mechanism)


@pytest.fixture
def enough_trials(monkeypatch):
    """As many as half the noise is refuted with on any machine; how many fit into a time depends on it."""
    monkeypatch.setattr(run_module, "_affordable", lambda *_: 20_000)


@pytest.mark.usefixtures("enough_trials")
def test_a_wrong_scale_is_refuted_by_measurement_and_gets_no_certificate():
    broken = halved(EVERY[1])
    result = examine(broken, seconds=0.3)
    assert result.refuted
    assert result.certified is None
    assert result.measured is not None
    assert result.measured["refuted"]
    assert examine(replace(broken, measured=False, replayed=False)).refuted
    assert examine(replace(broken, mechanism=None), seconds=0.3).refuted


def test_a_leak_is_refuted_by_replay_alone():
    leak = Subject(
        "leak", "statistic", dp.PureDP(1), np.zeros(5), np.zeros(6),
        lambda x, size: [(dp.stats.count(x, epsilon=1), len(x)) for _ in range(size)], measured=False,
    )  # fmt: skip
    result = audit([leak], processes=1)
    assert not result.passed
    assert result.rows[0].replayed is not None
    assert "result differs" in result.rows[0].replayed["findings"][0]
    assert "Leaks" in html(result)


def test_processes_agree_and_rows_are_reported_in_order():
    outcome: list[str] = []
    result = audit(EVERY[:4], seconds=0.02, processes=2, on_row=lambda row: outcome.append(row.name))
    assert outcome == [subject.name for subject in EVERY[:4]] == [row.name for row in result.rows]
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False))["passed"]


@pytest.mark.parametrize("wrong", [{"seconds": 0}, {"confidence": 1}, {"processes": -1}])
def test_wrong_arguments(wrong):
    with refuses(dp.DitherError):
        audit(EVERY[:1], **wrong)


@pytest.mark.usefixtures("enough_trials")
def test_the_page(tmp_path):
    result = audit([EVERY[0], halved(replace(EVERY[1], name="<b>wrong</b>"))], seconds=0.1)
    page = html(result)
    assert "1 of 2 claims were REFUTED" in page
    assert "&lt;b&gt;wrong" in page
    assert "<b>wrong" not in page
    assert "<script" not in page
    for row in result.rows:
        allowed, tests = trade_off(row).marks
        assert len(tests.points()) == len(row.measured["points"])
        assert max(allowed.y) <= 1
    write_html(tmp_path / "audit.html", result)
    assert (tmp_path / "audit.html").read_text() == page
    with refuses(dp.InvalidArgument):
        write_html(tmp_path / "no" / "audit.html", result)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.3, 0.01), (5.0, 1e-6)])
def test_the_region_is_that_of_the_theorem(epsilon, delta):
    """Against randomized response with a little certainty, which reaches the border."""
    p = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    q = 1 - delta - p
    assert max_power(q, epsilon, delta) == pytest.approx(p + delta)
    for alpha in (0.0, 0.1, 0.9, 1.0):
        assert max_power(alpha, epsilon, delta) >= alpha


# -- the command ---------------------------------------------------------------------------------------------------

MINE = """
import numpy as np
import dither as dp

def half(x):
    return dp.Laplace(sensitivity=1, epsilon=2).release(float(np.sum(x)))

def good(x):
    return dp.Laplace(sensitivity=1, epsilon=1).release(float(np.clip(np.nan_to_num(x, nan=0, posinf=1), 0, 1).sum()))

def leaks(x):
    return dp.stats.mean(x, bounds=(0, float(np.max(x))), epsilon=1, neighbors=dp.AddRemove)

def pairs():
    yield "apart", np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 9.0])

number = 3
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def run(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def test_the_command_on_what_is_built_in(tmp_path):
    page, result = tmp_path / "a.html", tmp_path / "a.json"
    outcome = run("--only", "randomized", "--seconds", "0.05", "--json", result, "--html", page)
    assert outcome.exit_code == 0, outcome.output
    assert "proved" in outcome.output
    assert json.loads(result.read_text())["passed"]
    assert "<svg" in page.read_text()


@pytest.mark.usefixtures("enough_trials")
def test_the_command_on_what_is_broken():
    outcome = run("--broken", "--only", "half", "--seconds", "0.2")
    assert outcome.exit_code == 0, outcome.output
    assert "1 refuted" in outcome.output


def test_the_command_on_ones_own_code(script, tmp_path):
    outcome = run(f"{script}:half", "--epsilon", "1", "--bounds", "0", "1", "--trials", "2000")
    assert outcome.exit_code == 1, outcome.output
    assert "REFUTED" in outcome.output
    result = tmp_path / "found.json"
    outcome = run(
        f"{script}:good", "--epsilon", "1", "--bounds", "0", "1", "--trials", "400", "--neighbors", "add-remove",
        "--json", result,
    )  # fmt: skip
    assert outcome.exit_code == 0, outcome.output
    assert json.loads(result.read_text())["rows"][0]["verdict"] == "not refuted"


def test_the_command_replays_ones_own_code(script):
    outcome = run(f"{script}:leaks", "--epsilon", "9", "--pairs", "pairs", "--trials", "100")
    assert outcome.exit_code == 1, outcome.output
    assert "parameters depend on the data" in outcome.output


def test_without_a_claim_it_measures(script):
    outcome = run(f"{script}:half", "--pairs", "pairs", "--trials", "300")
    assert outcome.exit_code == 1  # the sensitivity is exceeded, whatever was claimed
    assert "epsilon >=" in outcome.output


@pytest.mark.parametrize(
    ("target", "more", "words"),
    [
        ("nothing.py:f", [], "FILE.py:FUNCTION"),
        ("mine.txt:f", [], "FILE.py:FUNCTION"),
        ("{mine}", [], "FILE.py:FUNCTION"),
        ("{mine}:number", ["--bounds", "0", "1"], "name of a function"),
        ("{mine}:absent", ["--bounds", "0", "1"], "name of a function"),
        ("{mine}:good", [], "--bounds"),
        ("{mine}:good", ["--pairs", "number"], "--pairs"),
        ("{mine}:good", ["--bounds", "1", "0"], "bounds"),
        ("{mine}:good", ["--bounds", "0", "1", "--neighbors", "both"], "--neighbors"),
        ("{mine}:good", ["--bounds", "0", "1", "--epsilon", "-1"], "epsilon"),
    ],
)
def test_wrong_commands(script, target, more, words):
    outcome = run(target.replace("{mine}", str(script)), *more)
    assert outcome.exit_code != 0
    assert words in str(outcome.exception)


def test_nothing_of_that_name():
    outcome = run("--only", "no such thing")
    assert "part of a subject's name" in str(outcome.exception)
