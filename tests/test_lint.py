"""House rules that no linter here knows, read from the source."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import dither

SOURCE = Path(dither.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_insecure_randomness(path):
    """Neither ``random`` nor ``numpy.random`` by any spelling: import, from-import or attribute of NumPy."""
    numpy = {"np", "numpy"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert not any(name.name.split(".")[0] == "random" or "numpy.random" in name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            module = node.module or ""
            assert module.split(".")[0] not in ("random", "secrets")
            assert not module.startswith("numpy.random")
            assert module != "numpy" or all(name.name != "random" for name in node.names)
        elif isinstance(node, ast.Attribute) and node.attr == "random":
            assert not (isinstance(node.value, ast.Name) and node.value.id in numpy)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module":
            assert not any(isinstance(a, ast.Constant) and "random" in str(a.value) for a in node.args)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_file_is_too_long_to_read(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 450


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_file_says_what_it_is_for(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_the_package_is_typed():
    assert (SOURCE / "py.typed").exists()
