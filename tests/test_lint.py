"""House rules that no linter here knows, read from the source."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

import dither
from support import for_each

SOURCE = Path(dither.__file__).parent
TESTS = Path(__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# modules without a test file of their own name in the mirrored folder: the file that tests them, and which they are
TESTED_BY = {
    "accounting/test_accountants.py": "bridge composition events sampling",
    "accounting/test_distribution.py": "pairs",
    "audit/blackbox/test_measure.py": "sampling",
    "audit/blackbox/test_region.py": "views",
    "audit/dataflow/test_replay.py": "distance",
    "audit/proof/test_certify.py": "certificate",
    "audit/proof/test_certify_oracles.py": "noise selection",
    "audit/outputs/test_canonical.py": "libraries",
    "audit/suite/test_run.py": "subjects",
    "cli/test_edge.py": "audit guard",
    "density/test_release.py": "result",
    "mechanisms/test_contract.py": "pictures",
    "local/test_protocol.py": "hadamard_response sketch subset_selection",
    "ledger/test_store.py": "schema",
    "present/test_deployment.py": "pages/deployment",
    "present/test_publication.py": "pages/publication",
    "present/test_chart.py": "drawing",
    "present/test_pages.py": "pages/answer pages/audit pages/sheet",
    "present/test_synthetic.py": "pages/synthetic",
    "stream/test_series.py": "series_answer series_spec",
    "server/pages/test_in_the_browser.py": "admin asking login",
    "server/test_app.py": "limits",
    "server/test_jobs.py": "worker",
    "server/test_roles.py": "service",
    "server/test_store.py": "schema",
    "server/test_tables.py": "questions users",
    "tables/builder/test_steps.py": "expressions",
    "tables/card/test_toml.py": "model",
    "tables/compile/test_statements.py": "context",
    "tables/engines/test_base.py": "duckdb",
    "tables/planning/test_plan.py": "calibrate",
    "tables/query/test_evaluate.py": "tree",
    "tables/query/test_operations.py": " ".join(
        f"operations/{name}" for name in ("arithmetic", "base", "casts", "comparison", "dates", "text")
    ),
    "tables/sql/test_parse.py": "aggregates text",
    "test_public_face.py": "errors extras public_module",
    "test_values.py": "comparison",
}


@functools.cache
def trees() -> dict[str, ast.Module]:
    return {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


def assert_secure_randomness(tree):
    numpy = {"np", "numpy"}
    for node in ast.walk(tree):
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


def test_no_insecure_randomness():
    """Neither ``random`` nor ``numpy.random`` by any spelling: import, from-import or attribute of NumPy."""
    for_each(trees().items(), lambda _, tree: assert_secure_randomness(tree))


def test_insecure_randomness_is_recognized():
    spellings = [
        *("import random", "import numpy.random", "from random import random", "from secrets import randbelow"),
        *("from numpy.random import default_rng", "from numpy import random", "np.random.rand()"),
        *("numpy.random.rand()", "importlib.import_module('random')"),
    ]

    def is_refused(source):
        with pytest.raises(AssertionError):
            assert_secure_randomness(ast.parse(source))

    for_each(spellings, is_refused)
    assert_secure_randomness(ast.parse("from dither import randomness\nfrom .random import x\nlaw.random"))


SENTENCES_OF_OTHERS = {
    "ledger/store.py": "what SQLite and PostgreSQL say of a ledger that cannot be used",
    "tables/engines/postgresql.py": "what psycopg says of a connection that was refused",
    "tables/query/postprocess.py": "what DuckDB says of SQL that it refuses",
}
"""Files that read sentences of foreign libraries, with whose they are; nobody reads sentences of ours."""
ERROR_NAMES = {"error", "e", "exc", "exception", "problem", "refusal", "refused", "cause", "caught", "failure"}
SENTENCE_FIELDS = {"fix", "expected", "got", "command", "command_text", "cost", "left", "remaining"}
TEXT_METHODS = {"startswith", "endswith", "replace", "partition", "rpartition", "split", "rsplit", "find", "index"}
PASSED_ON = {"lower", "strip", "rstrip", "casefold", "splitlines"}
PATTERN_METHODS = {"match", "search", "fullmatch", "sub", "findall", "finditer"}


def is_our_sentence(node, names):
    """Whether an expression is the text of an error, a note, a cost or what is left, or one of these names."""
    if isinstance(node, ast.Subscript):
        return is_our_sentence(node.value, names)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):  # str(error).lower(), and the like
        return node.func.attr in PASSED_ON and is_our_sentence(node.func.value, names)
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "str" and node.args:
        text = node.args[0]
        name = text.id if isinstance(text, ast.Name) else text.attr if isinstance(text, ast.Attribute) else ""
        return name in ERROR_NAMES | SENTENCE_FIELDS | {"note", "guarantee"}
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr in SENTENCE_FIELDS and node.value.id in ERROR_NAMES | {"answer", "explanation", "publication"}
    return isinstance(node, ast.Name) and node.id in names


def sentences_read(tree, names=("note",)):
    """The lines where a sentence is searched, taken apart or rewritten."""
    names = {*names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and is_our_sentence(node.value, names):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    for node in ast.walk(tree):
        texts = []
        if isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            texts = node.comparators
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if getattr(node.func.value, "id", "") == "re":
                texts = node.args[1:]
            elif node.func.attr in TEXT_METHODS:
                texts = [node.func.value]
            elif node.func.attr in PATTERN_METHODS:
                texts = node.args
        if any(is_our_sentence(text, names) for text in texts):
            yield node.lineno


def lines_that_read_sentences(tree):
    """The same for each function on its own, since a name of one is no name of another."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return sorted({line for function in functions for line in sentences_read(function)})


def test_no_sentence_is_data():
    """Results, notes and errors are values with fields: no module searches, splits or rewrites their words."""
    found = {name: lines for name, tree in trees().items() if (lines := lines_that_read_sentences(tree))}
    assert {name: lines for name, lines in found.items() if name not in SENTENCES_OF_OTHERS} == {}
    assert {*SENTENCES_OF_OTHERS} <= {*found}, "these need no line in the table any more"


def test_sentences_that_are_data_are_recognized():
    spellings = [
        *('"receipt" not in str(error)', 'str(error).endswith("Fix: create it.")', '"δ" in answer.cost'),
        *('re.search("bounds of", note)', 'note.startswith("no bounds")', 'error.fix.replace("a", "b")'),
        *("_AMOUNT.match(explanation.cost)", 'str(error).lower().split(" ")', 're.sub("a", "b", str(refusal))'),
        *("text = str(error); 'locked' in text",),
        *('str(answer.remaining).partition(";")', '"fewer than" in str(note)', "_EPSILON.match(str(guarantee))"),
    ]

    def is_recognized(source):
        assert [*sentences_read(ast.parse(source))] == [1]

    for_each(spellings, is_recognized)
    allowed = ['note.kind in ("limits",)', "str(error)", 'f"{error.fix}."', '"limits" in kinds_of(answer.notes)']
    assert not [source for source in allowed if [*sentences_read(ast.parse(source))]]


def test_every_file_says_what_it_is_for():
    assert not [name for name, tree in trees().items() if not ast.get_docstring(tree)]


def test_the_package_is_typed():
    assert (SOURCE / "py.typed").exists()


FOREIGN_API = {"_replace", "_asdict", "_fields", "_make", "_getframe"}
"""Names with an underscore that are the documented interface of a foreign class or module (namedtuple, sys)."""
TEMPORARY_PRIVATE_ACCESS = {
    "budget_hooks.py": "marks functions with _covered",
    "learn/base.py": "calls _check_feature_names of scikit-learn",
}
"""Files that still read private names of others, with the reason; a file is removed from here once it does not."""


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def members(tree):
    """The names that the classes of a module define: methods, class attributes and attributes of self."""
    for owner in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for node in ast.walk(owner):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name
            elif isinstance(node, ast.Attribute) and getattr(node.value, "id", None) in ("self", "cls"):
                yield node.attr
            elif isinstance(node, ast.AnnAssign | ast.Assign):
                targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
                yield from (target.id for target in targets if isinstance(target, ast.Name))


def private_accesses(tree):
    """The private names of other modules that a module reads: attributes and imports."""
    own = {*members(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").split(".")[0] == "dither"):
            yield from (name.name for name in node.names if is_private(name.name))
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in FOREIGN_API:
            owner = node.value.func if isinstance(node.value, ast.Call) else node.value
            if getattr(owner, "id", None) not in ("self", "cls", "super") and node.attr not in own:
                yield ast.unparse(node)


def test_no_module_reads_private_names_of_another():
    accesses = {name: [*private_accesses(tree)] for name, tree in trees().items()}
    assert {name: reads for name, reads in accesses.items() if reads and name not in TEMPORARY_PRIVATE_ACCESS} == {}


def test_private_accesses_are_recognized():
    def reads(source):
        return [*private_accesses(ast.parse(source))]

    assert reads("from dither.stats import _mean, mean") == ["_mean"]
    assert reads("import os\nx = thing._hidden + a.b._c") == ["thing._hidden", "a.b._c"]
    assert not reads("class A:\n    def __eq__(self, other):\n        return self._x == other._x\n")
    assert not reads("point._replace(x=1)\nthing.__dict__\nsuper()._run()")


def modules_without_a_test_file_of_their_name() -> set[str]:
    modules = {str(path.relative_to(SOURCE)) for path in FILES if path.name != "__init__.py"}
    return {module for module in modules if not (TESTS / module).with_name(f"test_{Path(module).name}").exists()}


def test_every_module_has_its_test_file_where_one_looks_for_it():
    listed = {str(Path(test).parent / f"{name}.py") for test, names in TESTED_BY.items() for name in names.split()}
    assert [test for test in TESTED_BY if not (TESTS / test).exists()] == [], "these test files are gone"
    missing = modules_without_a_test_file_of_their_name()
    assert missing - listed == set(), "give these a test file of their name in the mirrored folder, or list them"
    assert listed - missing == set(), "these need no line in the table any more"


UNCLEAR = {
    "found", "told", "made", "each", "reach", "chance", "books", "crowd", "either", "gathered", "scattered",
    "apart", "turned", "lengths", "across",
}  # fmt: skip
"""Names that do not say what they hold; the names of the field are result, item, sensitivity, delta, ledger, ..."""


def defined_names(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def test_names_say_what_they_hold():
    def check(_, tree):
        names = {name.strip("_") for name in defined_names(tree)}
        assert not names & UNCLEAR
        assert not [name for name in names if "neighbour" in name.lower()], "American spelling in code: neighbor"

    for_each(trees().items(), check)


def test_unclear_names_are_recognized():
    assert {*defined_names(ast.parse("def told(made):\n    found = [each for each in made]"))} & UNCLEAR == {
        "told", "made", "found", "each"
    }  # fmt: skip
