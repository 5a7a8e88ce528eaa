"""The course on the site: every result once, answers computed, notebooks executed, figures the same every time."""

from __future__ import annotations

import json
import math
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import dither as dp
from support import each

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

from site_builder import course, figures, notebooks  # noqa: E402
from site_builder.lessons import FIGURE_OF, LESSONS, exercises  # noqa: E402

SCRIPT = (DOCS / "static" / "figures.js").read_text(encoding="utf-8")


def test_every_result_is_in_one_lesson():
    counts = Counter((result.document, result.number) for lesson in LESSONS for result in lesson.results)
    assert counts == Counter((result.document, result.number) for result in dp.course.results())


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.slug)
def test_the_answer_of_an_exercise_is_what_its_code_gives(lesson):
    assert course.answer_of(lesson.exercise) == lesson.exercise.answer
    assert lesson.exercise.question.count("?") >= 1


@each("place", exercises())
def test_the_answer_of_the_exercise_of_a_result_is_what_its_code_gives(place):
    [_] = [result for result in dp.course.results(document=place[0]) if result.number == place[1]]
    exercise = exercises()[place]
    assert course.answer_of(exercise) == exercise.answer
    assert exercise.question.count("?") >= 1


def test_every_theorem_of_the_documents_has_an_exercise_and_every_lesson_a_figure():
    kinds = ("Theorem", "Lemma ", "Proposition ")
    theorems = {(result.document, result.number) for result in dp.course.results() if result.number.startswith(kinds)}
    assert theorems - set(exercises()) == set()
    assert set(FIGURE_OF.values()) == set(figures.FIGURES)
    for lesson in LESSONS:
        assert any((result.document, result.number) in FIGURE_OF for result in lesson.results), lesson.slug


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.slug)
def test_a_lesson_can_be_downloaded_as_an_executed_notebook(lesson):
    document = json.loads(notebooks.notebook(lesson))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [*range(1, len(code) + 1)]
    shown = ["".join(cell["outputs"][0]["data"]["text/plain"]) for cell in code[1:]]
    wanted = []
    for result in lesson.results:
        exercise = exercises().get((result.document, result.number))
        wanted += [result.output, *([exercise.answer] if exercise else [])]
    assert shown == [*wanted, lesson.exercise.answer]
    identities = [cell["id"] for cell in document["cells"]]
    assert len(set(identities)) == len(identities)
    assert all(re.fullmatch(r"[a-zA-Z0-9-_]{1,64}", identity) for identity in identities)


def test_what_fails_has_a_page_of_its_own():
    page = course.fails_page()
    failing = [result for result in dp.course.results() if result.verdict == "fails"]
    assert page.count("\n* [") == len(failing)
    assert all(f"](#{course.label(result)})" in page for result in failing)


def test_every_result_and_every_equation_has_an_address_and_is_in_the_index():
    labels = [course.label(result) for result in dp.course.results()]
    assert len(set(labels)) == len(labels)
    [theorem] = dp.course.find("theorem 26")
    assert course.label(theorem) == "course-2-theorem-26"
    pages = course.pages()
    lessons = "".join(pages[lesson.slug] for lesson in LESSONS)
    for label in labels:
        assert lessons.count(f"({label})=\n") == 1
        assert f"](#{label})" in pages["results"]
    assert len(re.findall(r"\[\(\d+\)\]\(#", pages["results"])) == 19


def test_a_section_shows_the_print_what_holds_and_what_was_computed():
    page = course.lesson_page(next(lesson for lesson in LESSONS if lesson.slug == "bounded-outputs"))
    section = page.split("### Theorem 26", 1)[1].split("(course-", 1)[0]
    for part in (
        "**As printed** {bdg-warning}",
        "**What holds**",
        "**Computed here**",
        'data-figure="bounded"',
        "**Exercise.**",
    ):
        assert part in section
    assert ">>> m, (width, epsilon, low, high) = " in section
    claims = sum(len(result.claims) for result in dp.course.results())
    assert sum(text.count("**As printed**") for text in course.pages().values()) == claims


def test_signs_of_a_statement_are_no_markup():
    assert course.plain("a_h * |x| < e^(1/(2b)) < ^2") == r"a{sub}`h` \* \|x\| \< e{sup}`1/(2b)` \< \^2"
    texts = [text for result in dp.course.results() for text in (result.title, result.statement)]
    texts += [text for result in dp.course.results() for claim in result.claims for text in (claim.printed, claim.note)]
    assert not re.search(r"\\[_^]", " ".join(map(course.plain, texts)))


@pytest.mark.parametrize("name", figures.FIGURES)
def test_a_figure_is_the_same_from_run_to_run(name):
    assert figures.block(name) == figures.block(name)
    assert "<svg" in figures.block(name)


def test_the_script_moves_every_live_figure_and_loads_nothing():
    for name in figures.FIGURES:
        assert re.search(rf"^    {name}: \{{$", SCRIPT, re.MULTILINE), name
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|import |fetch\(|eval\(|innerHTML", SCRIPT)
    values = {f"{epsilon:g}" for epsilon in figures.KS_EPSILONS}
    assert values == set(re.findall(r'"([\d.]+)"', SCRIPT.split("ks: {", 1)[1].split("\n", 2)[1]))
    values = {f"{epsilon:g}" for epsilon in figures.DESCENT_EPSILONS}
    assert values == set(re.findall(r'"([\d.]+)"', SCRIPT.split("descent: {", 1)[1].split("\n", 2)[1]))


def test_the_formulas_of_the_pictures_are_those_of_dither():
    for epsilon in (0.3, 1.0, 2.5):
        exact = dp.accounting.gaussian_delta(dp.exact.decimal(epsilon), dp.exact.exactly(math.sqrt(2)))
        assert figures.gaussian_delta(epsilon, math.sqrt(2)) == pytest.approx(exact, rel=1e-9)
    values = sorted(np.random.default_rng(1).uniform(0, 100, 21).tolist())
    smooth = max(math.exp(-0.2 * k) * figures.local_at(values, k, 0.0, 100.0) for k in range(22))
    assert smooth == pytest.approx(dp.sensitivity.smooth_median(values, bounds=(0, 100), beta=0.2), rel=1e-9)
    rho, delta = 0.5, 1e-6
    assert figures.zcdp(rho, delta) >= dp.ZCDP(rho).to_approx(delta).epsilon  # the textbook's is the looser one
