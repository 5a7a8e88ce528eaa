"""The code blocks of the README and of the pages in ``docs`` run, in order, and do what the pages say.

A page's blocks share one namespace and one temporary folder, as a reader's session would. Answers are noisy, so what is
compared are statements that hold whatever the noise is; where one could fail by chance, its probability is below 1e-9.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import dither as dp
from client.fake_server import TOKEN, fake_server
from dither.cli import demo
from dither.cli.app import main
from dither.server.config import Config
from dither.tables.card import toml
from dither.tables.codec import fields
from dither.wire.protocol import problem_from_json, problem_to_json
from dither.wire.requests import options_from_json
from support import each
from support_docs import AFTER_SITE, SLOW_SITE
from support_publish import published_visits

ROOT = Path(__file__).parents[2]
FOLDERS_OF_THE_SITE = ("tutorials", "howto", "explanation")
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *(page for folder in FOLDERS_OF_THE_SITE for page in sorted((ROOT / "docs" / folder).glob("*.md"))),
]
ROWS = 20_000


def name_of(page: Path) -> str:
    """The path of a page below ``docs``, or its name."""
    docs = ROOT / "docs"
    return page.relative_to(docs).as_posix() if page.is_relative_to(docs) else page.name


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


def visits_file(folder: Path) -> None:
    """The file that the first tutorial makes."""
    first = next(
        block for block in blocks(ROOT / "docs" / "tutorials" / "first-answer.md") if block.language == "python"
    )
    exec(first.text, {})


FOLDERS: dict[str, Callable[[Path], None]] = {
    "README.md": lambda folder: shop(folder / "out" / "demo"),
    "tables.md": shop,
    "audit.md": function_to_audit,
    "publishing.md": publishing,
    "server.md": shop,
    "howto/profile.md": shop,
    "tutorials/audit-code.md": function_to_audit,
    "index.md": visits_file,
}


SERVED = {"server.md": "https://answers.example.org/", "serve-to-colleagues.md": "http://127.0.0.1:8765/"}
"""The pages that ask a server, and its address there."""


@contextmanager
def as_published(page: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Around a page about the server: what it connects to is a server on the table of its card."""
    if page not in SERVED:
        yield
        return
    with ExitStack() as started:
        addresses: list[str] = []

        def connect(url: str, *, token: str | None = None) -> Any:
            assert url.startswith(SERVED[page])
            if not addresses:  # the page has written its card by now
                table = started.enter_context(dp.open("visits.toml"))
                addresses.append(started.enter_context(fake_server(table))[1])
            return real(url.replace(SERVED[page], addresses[0]), token=TOKEN)

        real = dp.connect
        monkeypatch.setattr("dither.client.connecting.connect", connect)
        monkeypatch.setenv("DITHER_TOKEN", TOKEN)
        yield


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
    if program == "pip":  # the environment of the tests has it
        assert arguments[0] == "install"
        return
    assert program == "dither", words
    if arguments[0] == "serve":  # until it is stopped; tests/server does
        assert "Usage" in dither("serve", "--help")
        return
    if arguments[0] == "budget" and "://" in arguments[1]:
        assert "left" in dither(*arguments)
    elif " ".join(arguments) in ONLY_PARSED:
        assert "Usage" in dither(*arguments, "--help")
    elif arguments[0] == "init":  # the steward fills the draft in: here it becomes the card of the demo
        card = Path(arguments[arguments.index("--output") + 1] if "--output" in arguments else "visits.toml")
        filled = card.read_text(encoding="utf-8") if card.exists() else ""
        card.unlink(missing_ok=True)
        dither(*arguments)
        assert tomllib.loads(card.read_text(encoding="utf-8"))["unit"] == "customer"
        if filled:
            card.write_text(filled, encoding="utf-8")
    elif arguments[0] == "check" and "://" in arguments[1]:
        assert "complete; left: " in dither(*arguments)
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


EXPECTED = {
    "profile": "cost: ",
    "explain": "cost",
    "query": "left",
    "budget": "spent",
    "series": "cost",
    "report": "left to the steward",
}

# -- printed output -----------------------------------------------------------------------------------------------

NUMBER = re.compile(r"[-−+]?\d[\d.,]*(e[-+]?\d+)?")


def outline(text: str) -> list[str]:
    """The first line of an output and the lines of costs, with numbers and spaces masked: what noise cannot change."""
    lines = [" ".join(NUMBER.sub("#", line).replace("─", "").split()) for line in text.strip().splitlines()]
    return [line for i, line in enumerate(lines) if line and (i == 0 or line.startswith("cost:"))]


def test_outlines_differ_where_words_do():
    assert outline("n  ±\n41 6\ncost: ε = 0.5") == outline("n    ±\n1,041 17\ncost: ε = 0.5")
    assert outline("n ±\ncost: ε = 0.5") != outline("n ±\ncost: (ε, δ) = (0.5, 1e-9)")
    assert outline("n") != outline("people")


@pytest.fixture
def dither(monkeypatch, capsys) -> Callable[..., str]:
    """``dither("check", "visits.toml")``: what it printed; any status but 0 fails."""

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["dither", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        assert not stopped.value.code, (arguments, printed.err)
        run.printed += printed.out + printed.err  # type: ignore[attr-defined]
        return printed.out + printed.err

    run.printed = ""  # type: ignore[attr-defined]
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


def after_local_numbers(names: dict[str, Any]) -> None:
    result, median = names["result"], names["median"]
    assert abs(result.value - 17.5 / 3) < 7 * result.standard_error
    assert 30 < median < 50
    assert len(names["hits"]) < 5  # two words, and a false one in a search of 50,000
    assert names["year"].guarantee.epsilon < 52 * names["g"].epsilon / 4


def after_local(names: dict[str, Any]) -> None:
    estimate, server, seen = names["estimate"], names["server"], names["seen"]
    assert (abs(estimate.shares - [0.6, 0.3, 0.1]) < 7 * estimate.standard_error).all()
    assert (abs(seen.shares - [0.7, 0.3, 0]) < 7 * seen.standard_error).all()
    assert server.n == 10_102
    assert names["short"].report_bits <= 16
    assert names["certificate"].holds
    assert 2.3 < names["apple"].variance(1) / names["words"].variance(1) < 2.4


def after_stream(names: dict[str, Any]) -> None:
    assert names["admissions"].step == 3
    assert round(names["admissions"].error(365), 1) == 31.7
    assert round(names["alarm"].guarantee.epsilon, 3) == 0.136
    assert names["alarm"].done
    assert names["certificate"].holds


def after_server(names: dict[str, Any]) -> None:
    assert names["explanation"].cost == names["answer"].cost
    assert names["again"].replayed
    assert names["again"] == names["answer"]
    assert names["left"] == dp.ApproxDP(1.5, 1e-6)
    names["visits"].close()


AFTER: dict[str, Callable[[dict[str, Any]], None]] = {
    **AFTER_SITE,
    "README.md": after_readme,
    "accounting.md": after_accounting,
    "audit.md": after_audit,
    "learning.md": after_learning,
    "ledger.md": after_ledger,
    "local-numbers.md": after_local_numbers,
    "local.md": after_local,
    "publishing.md": after_publishing,
    "stream.md": after_stream,
    "server.md": after_server,
    "tables.md": after_tables,
}


SLOW = ("audit.md", "learning.md", *SLOW_SITE)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=name_of(page), marks=[pytest.mark.slow] * (name_of(page) in SLOW)) for page in PAGES],
)
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch, dither, capsys):
    monkeypatch.chdir(tmp_path)
    name = name_of(page)
    if name in FOLDERS:
        FOLDERS[name](tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    with as_published(page.name, monkeypatch):
        executed = [run_block(page, block, names, dither, capsys) for block in blocks(page)]
        assert any(executed) == (name in AFTER), "every page with Python says here what must hold after it"
        if any(executed):
            AFTER[name](names)


def run_block(page: Path, block: Block, names: dict[str, Any], dither: Any, capsys: Any) -> bool:
    """Run a block of a page, or check what it holds; whether it is Python."""
    place = f"{name_of(page)}:{block.line}"
    if block.language.startswith(("{", ":")):  # a directive of the site
        return False
    if block.language == "text":  # what the block before has printed, when the page was written
        assert outline(block.text) == outline(dither.printed), f"{place}: {dither.printed}"
        return False
    dither.printed = ""
    if block.language == "python":
        # as many empty lines in front as stand before it on the page, so that an error names the line there
        exec(compile("\n" * block.line + block.text, str(page), "exec"), names)
        dither.printed = capsys.readouterr().out
        return True
    if block.language == "toml" and page.name == "server.md":  # a configuration
        Config(folder=".", **tomllib.loads(block.text))
    elif block.language == "toml":  # a card, or a plan
        given = tomllib.loads(block.text)
        if [*given] == ["series"]:  # a section for the demo's card, whose days are in another column
            given = {**tomllib.loads(demo.CARD), **given}
            given["columns"] = {**given["columns"], "visited_at": "date"}
        assert "tables" in given if "card" in given else toml.parse(given).private_tables
        written = re.match(r"# (\w+\.toml)\n", block.text)
        if written:  # the page says that the reader saves it
            Path(written.group(1)).write_text(block.text, encoding="utf-8")
    elif block.language == "json":
        check_json(json.loads(block.text))
    elif block.language == "sql":
        assert "0.5" in str(names["visits"].sql(block.text).explain().cost)
    else:
        assert block.language in ("", "console"), f"{place}: mark the block as python or console"
        for words in commands(block.text):
            run_command(words, dither)
    return False


def check_json(document: dict[str, Any]) -> None:
    """A problem is what its text makes it; a request has a question and options as the wire has them."""
    if "detail" in document:
        error = problem_from_json(document)
        assert problem_to_json(document["title"], document["status"], error) == document
        return
    assert fields(document, "request", ("question", "options")) == document
    assert options_from_json(document["options"]).epsilon == 0.5


@each("page", PAGES)
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
