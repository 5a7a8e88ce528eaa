"""Every notebook in the examples runs from top to bottom, and the file holds what running it shows."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def code_cells(path: Path) -> list[dict[str, Any]]:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(source: str, space: dict[str, Any]) -> object:
    """Run a cell; the value of its last line, if that is an expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), space)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), space) if isinstance(last, ast.Expr) else None


def fields(text: str) -> list[str]:
    """The classes and the names of fields in a representation, whose numbers and notes depend on the noise."""
    return re.findall(r"[A-Z]\w+(?=\()|\b\w+(?==)", text.split("notes=(")[0])


def test_there_is_a_notebook():
    assert [path.name for path in NOTEBOOKS] == ["first_hour.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs_and_shows_what_the_file_says(path):
    space: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(code_cells(path), 1):
        result = run("".join(cell["source"]), space)
        assert cell["execution_count"] == number
        assert bool(cell["outputs"]) == (result is not None)
        for output in cell["outputs"]:
            assert output["output_type"] == "execute_result"
            assert ("text/html" in output["data"]) == hasattr(result, "_repr_html_")
            assert fields("".join(output["data"]["text/plain"])) == fields(repr(result)), (
                f"cell {number} shows old output"
            )
    assert "low by" in "".join(
        text for cell in code_cells(path) for output in cell["outputs"] for text in output["data"].get("text/html", [])
    )
