"""The code blocks of the README and of the pages in ``docs`` run, in order, and do what the pages say.

A page's blocks share one namespace and one temporary folder, as a reader's session would. Answers are noisy, so what is
compared are statements that hold whatever the noise is; where one could fail by chance, its probability is below 1e-9.
"""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import dither as dp
from dither.cli import demo
from dither.cli.app import main
from dither.tables.card import toml
from support_publish import published_visits

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ROWS = 20_000


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: the word after the fence, the line it starts at, and its text."""

    language: str
    line: int
    text: str


def blocks(page: Path) -> Iterator[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    start = None
    for number, line in enumerate(lines):
        if line.lstrip().startswith("```"):
            if start is None:
                start = number
            else:
                yield Block(lines[start].strip("` "), start + 1, "\n".join(lines[start + 1 : number]))
                start = None
    assert start is None, f"{page.name}: a block is not closed"


# -- the folder of a page -----------------------------------------------------------------------------------------


def shop(folder: Path) -> None:
    """What ``make demo`` leaves behind that the pages use: the table and its card."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(demo.make_visits(ROWS), folder / "visits.parquet")
    (folder / "visits.toml").write_text(demo.CARD, encoding="utf-8")


def function_to_audit(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "import dither as dp\nimport numpy as np\n"
        "def release(x):\n    total = np.clip(np.nan_to_num(np.asarray(x)), 0, 1).sum()\n"
        "    return dp.Laplace(sensitivity=1, epsilon=1).release(float(total))\n"
        "def pairs():\n    return [('one record', [0.0, 0.5], [1.0, 0.5])]\n",
        encoding="utf-8",
    )


def publishing(folder: Path) -> None:
    """The card and the plan of the page, with a lookup and rows that somebody made up."""
    card, plan = [block.text for block in blocks(ROOT / "docs" / "publishing.md") if block.language == "toml"]
    published_visits(folder, card, plan)


FOLDERS: dict[str, Callable[[Path], None]] = {
    "README.md": lambda folder: shop(folder / "out" / "demo"),
    "tables.md": shop,
    "audit.md": function_to_audit,
    "publishing.md": publishing,
}


# -- commands -----------------------------------------------------------------------------------------------------

ONLY_PARSED = ("audit", "audit --broken")  # a minute each; tests/audit/suite runs what they run


def commands(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words:
            yield words


def run_command(words: list[str], dither: Callable[..., str]) -> None:
    program, arguments = words[0].rpartition("/")[2], words[1:]
    if program == ".":  # activates the virtual environment
        return
    if program == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert set(arguments) <= set(targets)
        return
    assert program == "dither", words
    if " ".join(arguments) in ONLY_PARSED:
        assert "Usage" in dither(*arguments, "--help")
    elif arguments[0] == "init":  # the steward fills the draft in: here it becomes the card of the demo
        card = Path(arguments[arguments.index("--output") + 1] if "--output" in arguments else "visits.toml")
        filled = card.read_text(encoding="utf-8") if card.exists() else ""
        card.unlink(missing_ok=True)
        dither(*arguments)
        assert tomllib.loads(card.read_text(encoding="utf-8"))["unit"] == "customer"
        if filled:
            card.write_text(filled, encoding="utf-8")
    elif arguments[0] == "check":
        assert "complete; source and card agree" in dither(*arguments)
    elif arguments[0] == "publish":
        assert ("a draft" if "--draft" in arguments else "cost: (ε, δ) = (1, 1e-09)") in dither(*arguments)
    elif arguments[0] == "synthesize":
        assert ("synthetic records of" if "--dry-run" in arguments else "") in dither(*arguments)
        assert "--output" not in arguments or Path(arguments[arguments.index("--output") + 1]).exists()
    elif arguments[0] == "audit":
        assert "not refuted" in dither(*arguments, "--trials", "2000")
    else:
        assert EXPECTED[arguments[0]] in dither(*arguments)


EXPECTED = {"explain": "cost", "query": "left", "budget": "spent"}


@pytest.fixture
def dither(monkeypatch, capsys) -> Callable[..., str]:
    """``dither("check", "visits.toml")``: what it printed; any status but 0 fails."""

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["dither", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        assert not stopped.value.code, (arguments, printed.err)
        return printed.out + printed.err

    return run


# -- what must hold after a page ----------------------------------------------------------------------------------


def after_readme(names: dict[str, Any]) -> None:
    m = names["m"]
    assert (m.guarantee, m.scale, m.error(confidence=0.95)) == (dp.PureDP(0.5), 2.0, 6.0)
    assert isinstance(m.release(42), int)
    assert Path("spend.html").read_text(encoding="utf-8").startswith("<!")
    assert Path("my.toml").exists()


def after_ledger(names: dict[str, Any]) -> None:
    ledger, answer = names["ledger"], names["answer"]
    assert abs(answer.value - 120) < 100
    assert ledger.left("visits") == dp.ApproxDP(2.3, 1e-6)  # 3, less 0.5 for June and 0.2 inside the scope
    assert ledger.verify().entries == 7  # two datasets, three charges, two answers
    ledger.close()


def after_tables(names: dict[str, Any]) -> None:
    left = dp.ledger.open("visits.ledger.sqlite", read_only=True).left("visits")
    # four questions of 0.1 more; the last question may be a replay of the one before
    assert left in (dp.ApproxDP(0.1, 1e-6), dp.ApproxDP(0.6, 1e-6))


def after_accounting(names: dict[str, Any]) -> None:
    day, week = names["day"], names["week"]
    result = names["best_of"](365 * day + 52 * week, delta=1e-6)
    assert result.guarantee.epsilon < 365 * 0.1 / 2
    parallel = names["Parallel"](names["mean"] + names["variance"], names["median"]).guarantee
    assert parallel == dp.PureDP(0.5)


def after_audit(names: dict[str, Any]) -> None:
    result = dp.audit.replay(names["mean_of"], names["x"], names["x_neighbor"])
    assert not result.passed
    assert "its parameters depend on the data" in str(result)
    assert "REFUTED" in str(dp.audit.measure(names["half"], 0.0, 1.0, claim=1))


def after_learning(names: dict[str, Any]) -> None:
    assert names["model"].guarantee_ == dp.ApproxDP(1, 1e-5)
    assert names["total"].guarantee == dp.ApproxDP(11, 0.00011)
    assert names["choice"].guarantee_ == dp.PureDP(0.5)


def after_publishing(names: dict[str, Any]) -> None:
    assert names["out"].guarantee == dp.ApproxDP(1, 1e-9)
    assert abs(names["out"].records().num_rows - 54_000) < 1000
    assert abs(names["records"].num_rows - 4_000) < 500
    assert names["records"].schema.names == ["marital", "age", "smokes"]


AFTER: dict[str, Callable[[dict[str, Any]], None]] = {
    "README.md": after_readme,
    "accounting.md": after_accounting,
    "audit.md": after_audit,
    "learning.md": after_learning,
    "ledger.md": after_ledger,
    "publishing.md": after_publishing,
    "tables.md": after_tables,
}


SLOW = ("audit.md", "learning.md")


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.name, marks=[pytest.mark.slow] * (page.name in SLOW)) for page in PAGES]
)
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch, dither):
    monkeypatch.chdir(tmp_path)
    if page.name in FOLDERS:
        FOLDERS[page.name](tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    executed = False
    for block in blocks(page):
        if block.language == "python":
            # as many empty lines in front as stand before it on the page, so that an error names the line there
            exec(compile("\n" * block.line + block.text, str(page), "exec"), names)
            executed = True
        elif block.language == "toml":  # a card, or a plan
            given = tomllib.loads(block.text)
            assert "tables" in given if "card" in given else toml.parse(given).private_tables
        elif block.language == "sql":
            assert "0.5" in str(names["visits"].sql(block.text).explain().cost)
        else:
            assert block.language in ("", "console"), f"{page.name}:{block.line}: mark the block as python or console"
            for words in commands(block.text):
                run_command(words, dither)
    assert executed == (page.name in AFTER), "every page with Python says here what must hold after it"
    if executed:
        AFTER[page.name](names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_is_fenced_and_not_indented(page):
    """An indented block would not be run."""
    lines = page.read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if line.startswith("    ") and re.match(r"\s+(import|dither|\$) ", line)]


def test_a_page_that_fails_is_seen(tmp_path, monkeypatch, dither):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError):
        run_command(["dither", "check", "missing.toml"], dither)
    with pytest.raises(AssertionError):
        run_command(["make", "no-such-target"], dither)
