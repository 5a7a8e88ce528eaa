"""The pages of the course, from ``dither.course`` and the lessons."""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import dither as dp
from dither.course import Result
from dither.course.documents import Verdict, documents
from site_builder import figures, gallery
from site_builder.lessons import FIGURE_OF, LESSONS, Exercise, Lesson, exercises
from site_builder.notebooks import value_of
from site_builder.public_names import packages, public_names

BADGES = {
    "holds": "success",
    "holds with conditions": "warning",
    "misprint": "info",
    "open": "primary",
    "fails": "danger",
    "definition": "secondary",
}


def badge(verdict: Verdict) -> str:
    """A verdict in its color; a result of which nothing was claimed is a definition or a remark."""
    return f"{{bdg-{BADGES[verdict]}}}`{'definition or remark' if verdict == 'definition' else verdict}`"


_INNER = r"\((?:[^()]|\([^()]*\))*\)"
_SCRIPT = re.compile(rf"(?<=\S)([_^])({_INNER}|\d+(?:\.\d+)?|[A-Za-zα-ω]+)")


def plain(text: str) -> str:
    """A sentence of a result as Markdown: its signs stand for themselves, but ``x_h`` and ``e^(a/b)`` are set lower and
    higher."""
    parts, last = [], 0
    for script in _SCRIPT.finditer(text):
        role, inner = "sub" if script[1] == "_" else "sup", script[2]
        if inner.startswith("(") and not set("_^`") & set(inner):
            parts += [_signs(text[last : script.start()]), f"{{{role}}}`{inner[1:-1]}`"]
            last = script.end()
        elif not inner.startswith("("):
            parts += [_signs(text[last : script.start()]), f"{{{role}}}`{inner}`"]
            last = script.end()
    return "".join([*parts, _signs(text[last:])])


def _signs(text: str) -> str:
    return re.sub(r"([\\`*_{}\[\]<>|#$~^])", r"\\\1", text)


def label(result: Result) -> str:
    """The address of a result: the anchor of its section."""
    words = re.sub(r"[^a-z0-9]+", "-", result.number.lower()).strip("-")
    return f"course-{result.document}-{words}"


def _implementations() -> dict[str, str]:
    return {item.full: item.home for package in packages() for item in public_names(package)}


def _result(result: Result, homes: dict[str, str]) -> list[str]:
    """The section of a result: what holds, each claim as printed and as computed, its figure, example and exercise."""
    owner = result.where
    while owner not in homes and "." in owner:
        owner = owner.rpartition(".")[0]
    home = homes.get(owner)
    where = f"{{py:obj}}`{result.where} <{home}>`" if home else f"`{result.where}`"
    equations = "".join(f" · equation ({number})" for number in result.equations if str(number) not in result.number)
    figure = FIGURE_OF.get((result.document, result.number))
    return [
        f"({label(result)})=", f"### {result.number}: {plain(result.title)}", "",
        f"{badge(result.verdict)} In dither: {where}{equations}", "",
        plain(result.statement), "", *_claims(result),
        *([figures.block(figure), ""] if figure else []),
        "```pycon", result.session, "```", "", *_gallery(result), *_exercise(result),
    ]  # fmt: skip


def _claims(result: Result) -> list[str]:
    """Each claim as printed, with its own verdict, what holds and what was computed: side by side, on a phone below
    each other."""
    lines = []
    for claim in result.claims:
        columns = {
            f"**As printed** {badge(claim.verdict)}": claim.printed,
            "**What holds**": claim.note or "As printed.",
            "**Computed here**": computations()[claim.document, claim.place],
        }
        lines += ["::::{grid} 1 1 3 3", ":class-container: claim", ":gutter: 2", ""]
        for heading, text in columns.items():
            lines += [":::{grid-item}", heading, "", plain(text), ":::", ""]
        lines += ["::::", ""]
    return lines


def _gallery(result: Result) -> list[str]:
    links = [f"[{name.replace('_', ' ')}](/generated/gallery.md#{anchor(name)})" for name in result.gallery]
    return [f"At length, in the gallery: {', '.join(links)}.", ""] if links else []


def _exercise(result: Result) -> list[str]:
    exercise = exercises().get((result.document, result.number))
    if exercise is None:
        return []
    return [f"**Exercise.** {exercise.question}", "", *_answer(exercise)]


def _answer(exercise: Exercise) -> list[str]:
    return [
        ":::{dropdown} Answer", "```python", exercise.code, "```", "",
        "```pycon", answer_of(exercise), "```", "", exercise.why, ":::", "",
    ]  # fmt: skip


def anchor(example: str) -> str:
    """The place of an example on the page of the gallery."""
    heading = gallery.TITLES.get(example, example.replace("_", " "))
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


@cache
def computations() -> dict[tuple[int, str], str]:
    """What was computed about each claim, by document and place, from the page of claims, which the tests write."""
    found: dict[tuple[int, str], str] = {}
    document = 0
    for line in (Path(__file__).parents[1] / "claims.md").read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"## (\d)\. ", line):
            document = int(heading[1])
        elif document and line.startswith("| ") and not line.startswith("| where "):
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            found[document, cells[0]] = cells[-1]
    return found


def answer_of(exercise: Exercise) -> str:
    """The answer of an exercise, computed now."""
    names: dict[str, Any] = {"dp": dp, "np": np, "math": math}
    return repr(value_of(exercise.code, names))


def lesson_page(lesson: Lesson) -> str:
    """The page of a lesson."""
    homes = _implementations()
    lines = [
        f"# {lesson.title}", "",
        f"*Document {lesson.document}, {documents()[lesson.document].title}: {lesson.first} to {lesson.last}.* {lesson.about}", "",
        f"{{download}}`Download this lesson as an executed notebook </generated/downloads/{lesson.slug}.ipynb>`. "
        "In the code `dp` is dither, `np` is NumPy and `math` is imported. [Find any result by its number](results.md).", "",
        "## Results",
        "",
        "The first sentences of each result say what is true: where the print needs a condition or a correction, it is in them.",
        "",
    ]  # fmt: skip
    for result in lesson.results:
        lines += _result(result, homes)
    lines += ["## Exercise", "", lesson.exercise.question, "", *_answer(lesson.exercise)]
    return "\n".join(lines)


def results_page() -> str:
    """Every result by its number, and every equation."""
    lines = [
        "# Every result by its number", "",
        "The numbers are those of the documents. `dp.course.find` takes them too, and words: "
        "`dp.course.find(\"Thm 26\")`, `dp.course.find(\"equation (5)\", document=3)`, `dp.course.find(\"daily reset\")`.", "",
    ]  # fmt: skip
    for document in documents().values():
        lines += [f"## Document {document.number}: {plain(document.title)}", ""]
        for result in document.results:
            lines.append(f"* [{result.number}](#{label(result)}): {plain(result.title)} {badge(result.verdict)}")
        numbers = {number: result for result in document.results for number in result.equations}
        links = ", ".join(f"[({number})](#{label(numbers[number])})" for number in sorted(numbers))
        lines += ["", *([f"Equations: {links}.", ""] if links else [])]
    return "\n".join(lines)


def index_page() -> str:
    """The first page of the course."""
    lines = [
        "# The course", "",
        f"Five lecture documents about differential privacy, section by section: {len(dp.course.results())} definitions, theorems, lemmas, "
        "examples and equations. Each has a section: as printed, what holds, what was computed here, and an example that runs. Every lesson has "
        "figures that move, exercises with answers that were computed when this page was made, and can be downloaded as an executed notebook.", "",
        "[Find a result by its number or name](results.md).", "",
        "Some of what the documents print is wrong. [What fails](fails.md) collects it; the most instructive is "
        "[Theorem 10](mixed-noise.md). [All claims, with the computation behind each verdict](/claims.md).", "",
        "The same from Python: `dp.course.find(\"theorem 10\")`, `dp.course.results(document=2)`.", "",
    ]  # fmt: skip
    for document in documents().values():
        lines += [f"**Document {document.number}: {plain(document.title)}**, about {document.about}.", ""]
        for lesson in (lesson for lesson in LESSONS if lesson.document == document.number):
            failing = sum(result.verdict == "fails" for result in lesson.results)
            fails = f", {failing} of which fail" if failing > 1 else ", one of which fails" if failing else ""
            lines.append(f"* [{lesson.title}]({lesson.slug}.md): {len(lesson.results)} results{fails}")
        lines.append("")
    names = [lesson.slug for lesson in LESSONS]
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *names, "results", "fails", "/claims", "```", ""])


def fails_page() -> str:
    """Everything that fails as printed, with the correction."""
    lines = [
        "# What fails", "",
        "Results that are false as the documents print them, with what is true instead; misprints, which the context corrects, are marked on the lessons' pages. "
        "The computations behind these verdicts are on [the page of claims](/claims.md), and the tests run them.", "",
    ]  # fmt: skip
    for lesson in LESSONS:
        failing = [result for result in lesson.results if result.verdict == "fails"]
        if failing:
            lines += [f"## {lesson.title}", ""]
            lines += [
                f"* [{result.number}: {plain(result.title)}](#{label(result)}). {plain(result.statement)}"
                for result in failing
            ]
            lines.append("")
    return "\n".join(lines)


def pages() -> dict[str, str]:
    """Every page of the course by its path below ``generated/course``."""
    return {
        "index": index_page(),
        "results": results_page(),
        "fails": fails_page(),
        **{lesson.slug: lesson_page(lesson) for lesson in LESSONS},
    }
