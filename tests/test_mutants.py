"""The list of planted defects fits the code and the tests, and the runner tells what becomes of a mutant."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from support import load_script

ROOT = Path(__file__).parents[1]


mutants = load_script("mutants")
LIST = mutants.read_mutants()


def test_every_mutant_changes_one_place_of_a_file_that_still_compiles():
    assert len(LIST) >= 80
    for mutant in LIST:
        text = (ROOT / mutant.path).read_text(encoding="utf-8")
        changed = mutant.apply(text)
        assert changed != text, mutant.name
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text)), mutant.name


def test_every_mutant_says_what_it_breaks_and_names_tests_that_exist():
    for mutant in LIST:
        assert mutant.breaks, mutant.name
        assert mutant.tests, mutant.name
        for test in mutant.tests:
            path, *names = test.split("::")
            source = (ROOT / path).read_text(encoding="utf-8")
            nodes = ast.walk(ast.parse(source))
            known = {node.name for node in nodes if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
            assert all(name.partition("[")[0] in known for name in names), test


def test_an_old_text_that_is_gone_or_occurs_twice_is_refused():
    mutant = mutants.Mutant("name", "something", "errors.py", "old", "new", ())
    assert mutant.apply("an old text") == "an new text"
    for text in ("a text", "old and old"):
        with pytest.raises(SystemExit, match="exactly once"):
            mutant.apply(text)


def test_mutants_are_chosen_by_name_or_file():
    first = LIST[0]
    assert mutants.chosen(LIST, [first.name]) == [first]
    assert first in mutants.chosen(LIST, [first.file])
    assert mutants.chosen(LIST, None) == LIST
    with pytest.raises(SystemExit, match="--list"):
        mutants.chosen(LIST, ["no such mutant"])


def test_a_name_that_occurs_twice_is_refused(tmp_path):
    entry = '[[mutant]]\nname = "a"\nbreaks = "b"\nfile = "errors.py"\nold = "c"\nnew = "d"\ntests = []\n'
    path = tmp_path / "mutants.toml"
    path.write_text(2 * entry, encoding="utf-8")
    with pytest.raises(SystemExit, match="more than once"):
        mutants.read_mutants(path)


_TESTS = """
from small import half


def test_half():
    assert half(4) == 2
"""


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [("x / 2", "SURVIVED"), ("x / 3", "caught"), ("y / 2", "BROKEN"), ("x /", "BROKEN")],
)
def test_a_mutant_is_caught_only_by_a_test_that_fails_for_what_it_does(changed, verdict, tmp_path, monkeypatch):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "small.py").write_text(f"def half(x):\n    return {changed}\n", encoding="utf-8")
    (tmp_path / "test_small.py").write_text(_TESTS, encoding="utf-8")
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    outcome = mutants.run_tests(tmp_path, ["test_small.py"], "small", first_only=True)
    assert outcome.verdict == verdict, outcome.detail


def test_the_list_is_printed(capsys):
    assert mutants.main(["--list", "--only", LIST[0].name]) == 0
    assert LIST[0].breaks in capsys.readouterr().out
