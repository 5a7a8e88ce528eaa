"""What a command may write: nothing that exists without --force, and nothing that people's privacy rests on at all."""

from __future__ import annotations

import ast
import os
import stat
from pathlib import Path

import pytest

import dither as dp
from dither.cli import files
from dither.cli.files import OutputFiles
from support import refuses

ASK = ("query", "visits.toml", "SELECT region, COUNT(*) AS n FROM visits GROUP BY region", "--epsilon", "1")
LOOK = ("budget", "visits.toml")
AUDIT = ("audit", "mine.py:release", "--bounds", "0", "1", "--trials", "40")
WRITERS = {
    "query --output": (*ASK, "--format", "csv", "--output"),
    "query --plot": (*ASK, "--plot"),
    "query --report": (*ASK, "--report"),
    "budget --export": (*LOOK, "--export"),
    "budget --plot": (*LOOK, "--plot"),
    "audit --json": (*AUDIT, "--json"),
    "audit --html": (*AUDIT, "--html"),
    "init --output": ("init", "visits.csv", "--output"),
}
ENDING = {
    "--output": ".csv",
    "--plot": ".png",
    "--report": ".html",
    "--export": ".json",
    "--json": ".json",
    "--html": ".html",
}


@pytest.fixture
def shop(visits, dither):
    """A table that has been asked once, so that it has a ledger; and a function to audit."""
    assert dither(*ASK)[0] == 0
    assert Path("visits.ledger.key").exists()
    Path("mine.py").write_text("import dither as dp\ndef release(x):\n    return dp.Laplace(1, 1).release(sum(x))\n")
    return visits


def contents() -> dict[str, bytes]:
    """Every file of the folder. Bytecode of an audited file and SQLite's journal come and go."""
    files = [path for path in Path().iterdir() if path.is_file() and not path.name.startswith("visits.ledger-")]
    return {path.name: path.read_bytes() for path in files}


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
def test_what_exists_stays_unless_forced(writer, shop, dither):
    name = f"there{ENDING[writer.split()[1]]}"
    Path(name).write_text("mine")
    before = contents()
    code, _, err = dither(*WRITERS[writer], name)
    assert (code, contents()) == (2, before)
    assert "exists" in err
    assert "--force" in err
    assert dither(*WRITERS[writer], name, "--force")[0] in (0, 1)
    assert Path(name).read_bytes() != b"mine"
    assert {path.name for path in Path().iterdir() if path.name.startswith(".dither")} == set()


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
def test_what_privacy_rests_on_is_never_written_over(writer, shop, dither):
    option = writer.split()[1]
    for there in ("visits.csv", "visits.toml", "visits.ledger", "visits.ledger.key"):
        for make in (None, os.link, os.symlink):
            name = there
            if make is not None:  # by another name, with the ending that the option wants
                name = f"other{ENDING[option]}"
                make(os.path.abspath(there), name)
            before = contents()
            code, out, err = dither(*WRITERS[writer], name, "--force")
            assert (code, out) == (2, "")
            assert option in err
            assert contents() == before
            if make is not None:
                Path(name).unlink()


def test_other_tables_ledgers_keys_receipts_and_cards_are_known_by_what_is_in_them(shop, dither, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with dp.ledger.open(elsewhere / "budget.csv") as ledger:
        receipt = ledger.create("d", limit=dp.PureDP(1))
    (elsewhere / "receipt.csv").write_text(f"{receipt}\n")
    (elsewhere / "key.csv").write_text("0f" * 32)
    (elsewhere / "people.csv").write_text("who\n1\n")
    (elsewhere / "people.toml").write_text('name = "people"\nsource = "people.csv"\ncolumns.who = "integer"\n')
    for name in ("budget.csv", "receipt.csv", "key.csv", "people.csv", "people.toml"):
        before = (elsewhere / name).read_bytes()
        code, _, err = dither(*ASK, "--format", "csv", "--output", elsewhere / name, "--force")
        assert code == 2, name
        assert "--force does not help" in err
        assert (elsewhere / name).read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_that_cannot_be_written_is_found_out_before_anything_is_charged(
    writer, shop, dither, tmp_path, monkeypatch
):
    ending = ENDING[writer.split()[1]]
    (tmp_path / f"a-folder{ending}").mkdir()
    os.symlink("nothing", f"dangling{ending}")
    odd = ["", ".", "..", "a/", "/dev/null", f"a\0b{ending}"]
    names = [f"{name}{ending}" for name in ("nowhere/a", "a-folder", "dangling", "visits.csv/a", "x" * 300)]
    command = (*WRITERS[writer][:-1], *(["--again"] if "query" in writer else []), WRITERS[writer][-1])

    def refused(name: str) -> None:
        code, out, err = dither(*command, name)
        assert (code, out) == (2, "")
        assert len(err.splitlines()) == 1
        assert "bug" not in err

    with dp.ledger.open("visits.ledger") as ledger:
        head = ledger.head
        for name in odd + names:
            refused(name)

        def closed(*_, **__):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(files.tempfile, "mkstemp", closed)
        refused(f"fine{ending}")
        assert ledger.head == head


def test_two_options_cannot_name_one_file(shop, dither):
    code, _, err = dither(*ASK, "--format", "csv", "--output", "a.html", "--report", "./a.html")
    assert code == 2
    assert "a different file from --output" in err


def test_a_file_made_meanwhile_stays(tmp_path):
    with OutputFiles() as outputs:
        outputs.add("--output", str(tmp_path / "a.csv"))
        (tmp_path / "a.csv").write_text("mine")
        with refuses(dp.InvalidArgument, "exists"):
            outputs.write("--output", lambda room: Path(room).write_text("theirs"))
    (tmp_path / "room").write_text("theirs")
    with refuses(dp.InvalidArgument, "meanwhile"):  # the same, between the last look and the move
        files._give_name("--output", tmp_path / "room", tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"a.csv", "room"}


def test_a_file_that_is_not_finished_leaves_no_trace(tmp_path):
    def fails(room: str) -> None:
        Path(room).write_text("half")
        raise OSError(28, "No space left on device")

    with OutputFiles() as outputs:
        outputs.add("--output", str(tmp_path / "a.csv"))
        with pytest.raises(OSError, match="No space"):
            outputs.write("--output", fails)
    assert list(tmp_path.iterdir()) == []


def test_files_have_the_permissions_that_the_user_gives_to_files(tmp_path):
    with OutputFiles() as outputs:
        outputs.add("--output", str(tmp_path / "a.csv"))
        outputs.write("--output", lambda room: Path(room).write_text("n"))
    (tmp_path / "plain").write_text("n")
    assert stat.S_IMODE((tmp_path / "a.csv").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_no_other_module_of_the_command_line_opens_moves_or_deletes_files():
    """The demo writes in its own folder; a command gets the path of its file from :mod:`dither.cli.files`."""
    banned = {"unlink", "rename", "replace", "remove", "rmtree", "rmdir", "write_bytes", "savefig", "mkstemp", "link"}
    for path in Path(files.__file__).parent.glob("*.py"):
        if path.name in ("files.py", "demo.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                home = getattr(getattr(node.func, "value", None), "id", "")
                used = home in ("os", "shutil", "Path") or name in ("unlink", "write_bytes", "savefig", "mkstemp")
                assert not (name in banned and used), path.name
                assert name != "open" or home in ("session", "ledger", "os") or "ledger" in ast.unparse(node), path.name
