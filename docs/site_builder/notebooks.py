"""Lessons as notebooks that were executed: text, code, and what the code gave when the site was built."""

from __future__ import annotations

import ast
import hashlib
import json
import math
from typing import Any

import numpy as np

import dither as dp
from dither.course import Result
from site_builder.lessons import Exercise, Lesson, exercises

SETUP = "import math\n\nimport numpy as np\n\nimport dither as dp"


def _cell(kind: str, source: str, outputs: list[Any] | None = None, count: int | None = None) -> dict[str, Any]:
    identity = hashlib.sha256(f"{kind}{source}".encode()).hexdigest()[:12]
    cell: dict[str, Any] = {
        "cell_type": kind,
        "id": identity,
        "metadata": {},
        "source": source.splitlines(keepends=True),
    }
    if kind == "code":
        cell |= {"execution_count": count, "outputs": outputs or []}
    return cell


def value_of(code: str, names: dict[str, Any]) -> Any:
    """Run Python and return the value of its last expression; None where it has none."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<lesson>", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "<lesson>", "eval"), names)


def _output(value: Any, count: int) -> list[Any]:
    if value is None:
        return []
    data = {"text/plain": repr(value).splitlines(keepends=True)}
    picture = getattr(value, "_repr_html_", None)
    if callable(picture) and not isinstance(value, type):
        data["text/html"] = picture().splitlines(keepends=True)
    return [{"output_type": "execute_result", "execution_count": count, "data": data, "metadata": {}}]


def about(result: Result) -> str:
    """What a notebook says of a result: what holds, and each claim as printed with its verdict."""
    lines = [f"## {result.number}: {result.title}", "", f"**{result.verdict}.** {result.statement}", ""]
    for claim in result.claims:
        note = f" {claim.note}" if claim.note else ""
        lines += [f"* As printed: {claim.printed} **{claim.verdict}.**{note}"]
    return "\n".join([*lines, "", f"In dither: `{result.where}`"])


def notebook(lesson: Lesson) -> str:
    """A lesson as the text of a notebook, every cell of which was run in order."""
    names: dict[str, Any] = {"dp": dp, "np": np, "math": math}
    cells = [_cell("markdown", f"# {lesson.title}\n\n{lesson.about}"), _cell("code", SETUP, [], 1)]
    count = 1

    def run(code: str) -> None:
        nonlocal count
        count += 1
        cells.append(_cell("code", code, _output(value_of(code, names), count), count))

    def ask(exercise: Exercise) -> None:
        cells.append(_cell("markdown", f"**Exercise.** {exercise.question}"))
        run(exercise.code)
        cells.append(_cell("markdown", exercise.why))

    for result in lesson.results:
        cells.append(_cell("markdown", about(result)))
        run(result.example)
        exercise = exercises().get((result.document, result.number))
        if exercise is not None:
            ask(exercise)
    cells.append(_cell("markdown", "## Exercise"))
    ask(lesson.exercise)
    seen: dict[str, int] = {}
    for cell in cells:  # two cells may hold the same code; their names differ
        seen[cell["id"]] = seen.get(cell["id"], 0) + 1
        if seen[cell["id"]] > 1:
            cell["id"] += f"-{seen[cell['id']]}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    document = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
