"""The walk of a question, traced, against docs/architecture.md."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import pytest

import dither
import dither.cli
import dither.ledger
import dither.tables
from dither.cli import app
from support import visits_card

ROOT = Path(__file__).parents[1]
SOURCE = Path(dither.__file__).parent
DOCUMENT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PICTURE = (ROOT / "docs" / "architecture.svg").read_text(encoding="utf-8")

SQL = "SELECT region, COUNT(*) AS n, AVG(amount) AS spend FROM visits GROUP BY region"
RELEASE = ("tables/question.py", "tables/execute/release.py")
MOST_FILES_OF_THE_WALK = 27
"""Of files inside ``tables`` in which a function is called from ``Question.release`` to the answer."""


@dataclass
class Trace:
    """Calls of dither's functions in order: file, qualified name, and the file of dither that called."""

    calls: list[tuple[str, str, str]] = field(default_factory=list)

    def files(self) -> set[str]:
        return {file for file, _, _ in self.calls}

    def files_of_tables(self) -> set[str]:
        return {file for file in self.files() if file.startswith("tables/")}

    def called_by(self, *callers: str) -> set[str]:
        """The files of these callers, and of the functions that they call themselves."""
        return {*callers, *(file for file, _, caller in self.calls if caller in callers)}

    def first(self, file: str, name: str, after: int = 0) -> int:
        """The place of the first call of a function; refused by the assertion where there is none."""
        places = [i for i, call in enumerate(self.calls) if i >= after and call[:2] == (file, name)]
        assert places, f"{name} of {file} was not called in its turn"
        return places[0]


def _file(frame: FrameType) -> str:
    path = Path(frame.f_code.co_filename)
    return str(path.relative_to(SOURCE)) if path.is_relative_to(SOURCE) else ""


def load_everything() -> None:
    """Import what a question may need and forget what was computed before: neither may depend on earlier tests."""
    for package in (dither.cli, dither.ledger, dither.tables):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.rpartition(".")[2] not in ("spark", "postgresql"):
                importlib.import_module(module.name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "dither"]:
        for value in list(vars(sys.modules[name]).values()):
            if not isinstance(value, type) and hasattr(value, "cache_clear"):
                value.cache_clear()


@contextmanager
def traced() -> Iterator[Trace]:
    """Every call of a function of dither, in all threads. What runs when a module is imported does not count."""
    trace = Trace()
    known: dict[str, str] = {}

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(str(SOURCE)):
            return
        if frame.f_code.co_name == "<module>":
            return
        path = frame.f_code.co_filename
        file = known.get(path) or known.setdefault(path, _file(frame))
        caller = "" if frame.f_back is None else _file(frame.f_back)
        trace.calls.append((file, frame.f_code.co_qualname, caller))

    earlier = sys.getprofile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield trace
    finally:
        sys.setprofile(earlier)
        threading.setprofile(None)


def rows_of(heading: str, place: int = 0) -> list[list[str]]:
    """The cells of a table below a heading of the document: the first one, or that of another place."""
    part = DOCUMENT.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [paragraph for paragraph in part.split("\n\n") if "\n|---" in paragraph][place].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")][2:]


def code(cell: str) -> str:
    return cell.strip("`")


STEPS = [(row[0], code(row[1]), code(row[2])) for row in rows_of("The walk of a question")]


@pytest.fixture
def card(tmp_path, monkeypatch) -> str:
    lines = [f"{i},{'north' if i % 2 else 'south'},{i % 40},2024-01-01" for i in range(100)]
    (tmp_path / "visits.csv").write_text("who,region,amount,day\n" + "\n".join(lines) + "\n")
    (tmp_path / "visits.toml").write_text(visits_card())
    monkeypatch.chdir(tmp_path)
    return "visits.toml"


def trace_of(work: Callable[[], object]) -> Trace:
    load_everything()
    with traced() as trace:
        work()
    return trace


def query(card: str) -> None:
    """What ``dither query`` does, in this process."""
    with pytest.raises(SystemExit) as stopped:
        app.main()
    assert stopped.value.code == 0


@pytest.fixture
def command(card, monkeypatch, capsys) -> Trace:
    monkeypatch.setattr(sys, "argv", ["dither", "query", card, SQL, "--epsilon", "1"])
    trace = trace_of(lambda: query(card))
    assert "cost: ε = 1" in capsys.readouterr().out
    return trace


@pytest.fixture
def release(card) -> Trace:
    with dither.open(card) as table:
        question = table.sql(SQL)
        return trace_of(lambda: question.release(epsilon=2))  # another charge than that of the command


def test_the_document_names_every_step_in_order():
    steps = [step for step, _, _ in STEPS]
    assert [step for step in steps if step != "rehearse"] == [
        "parse", "resolve", "plan", "charge", "compile", "execute", "estimate", "record", "present",
    ]  # fmt: skip


def test_a_question_takes_the_steps_of_the_document_in_their_order(command):
    place = 0
    for _, module, function in STEPS:
        file = module.removeprefix("src/dither/")
        place = command.first(file, function, after=place)


def test_nothing_is_executed_before_the_charge(command):
    charge = command.first("ledger/ledger.py", "Ledger.charge")
    assert command.first("tables/engines/base.py", "Engine.run") > charge


def test_a_question_is_planned_and_charged_and_recorded_once(release):
    for step in ("plan", "charge", "record"):
        module, function = next((module, function) for name, module, function in STEPS if name == step)
        calls = [call for call in release.calls if call[:2] == (module.removeprefix("src/dither/"), function)]
        assert len(calls) == 1, step


@pytest.mark.parametrize("how", [("--epsilon", "1"), ("--epsilon", "1", "--report", "page.html"), ("--error", "50")])
def test_a_command_plans_once_reads_the_card_once_and_rehearses_once(card, monkeypatch, capsys, how):
    monkeypatch.setattr(sys, "argv", ["dither", "query", card, SQL, *how])
    trace = trace_of(lambda: query(card))
    assert "cost: ε = " in capsys.readouterr().out
    steps = {step: (module.removeprefix("src/dither/"), function) for step, module, function in STEPS}
    counted = [steps["plan"], steps["rehearse"], ("tables/card/toml.py", "read")]
    calls = [(file, name) for file, name, _ in trace.calls]
    assert {function: calls.count(function) for function in counted} == dict.fromkeys(counted, 1)


def test_the_walk_is_short_enough_to_be_read(release):
    assert len(release.files_of_tables()) <= MOST_FILES_OF_THE_WALK, sorted(release.files_of_tables())


def test_the_walk_of_a_later_question_is_as_short(card):
    with dither.open(card) as table:
        question = table.sql(SQL)
        question.release(epsilon=1)
        later = trace_of(lambda: question.release(epsilon=2))
    assert len(later.files_of_tables()) <= MOST_FILES_OF_THE_WALK, sorted(later.files_of_tables())


def test_the_document_names_the_files_of_the_walk(release):
    named = [file for _, files in rows_of("How long the way is", 1) for file in re.findall(r"`([^`]*)`", files)]
    assert sorted(named) == sorted(file.removeprefix("tables/") for file in release.files_of_tables())


def test_the_document_tells_how_long_the_way_is(release, command):
    """No longer than the document says: files are merged or the document is changed.

    The floors below change on their own, so that whole ways may differ from the document by two files.
    """
    stated = [int(row[1]) for row in rows_of("How long the way is")]
    measured = [
        len(release.files_of_tables()), len(release.called_by(*RELEASE)), len(release.files()), len(command.files())
    ]  # fmt: skip
    slack = [0, 0, 2, 2]
    assert all(now <= most + more for now, most, more in zip(measured, stated, slack, strict=True)), (measured, stated)


def test_every_path_in_the_document_exists():
    paths = re.findall(r"`((?:src|tests|docs)/[^`*]*)`", DOCUMENT)
    assert len(paths) > 30
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize(
    "wanted",
    [
        "where AVG is estimated", "where a person's rows are bounded", "where ε is charged",
        "where to add a SQL function", "where to add a mechanism",
    ],
)  # fmt: skip
def test_a_newcomer_finds_it_in_one_step(wanted):
    row = next(row for row in rows_of("Where things are") if row[0] == wanted)
    assert re.search(r"`src/dither/[^`]*`", row[1])
    assert re.search(r"`tests/[^`]*`", row[2])


def test_the_picture_shows_every_step_and_every_floor():
    for step, module, _ in STEPS:
        assert f">{step}</text>" in PICTURE
        assert module.removeprefix("src/dither/") in PICTURE
    for package in (path.parent.name for path in SOURCE.glob("*/__init__.py")):
        assert re.search(rf">[^<]*\b{package}\b[^<]*</text>", PICTURE), package
    for room in (path.parent.name for path in (SOURCE / "tables").glob("*/__init__.py")):
        assert re.search(rf">[^<]*\b{room}\b[^<]*</text>", PICTURE), room


def test_the_map_of_contributing_has_every_part_in_the_order_of_the_layers():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = [re.findall(r"dither\.(\w+)", line) for line in contracts[0]["layers"]]
    order = list(dict.fromkeys(name for names in layers for name in names))
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Layers")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert named == order
    parts = {path.name for path in SOURCE.iterdir() if path.is_dir()} | {path.stem for path in SOURCE.glob("*.py")}
    assert {*named} == {name for name in parts if not name.startswith("_")}
