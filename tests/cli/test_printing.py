"""What is printed: no command to the terminal, whatever is in a name, a key or a message; complete at every width."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dp
from dither.cli import printing
from dither.errors import MissingPackage
from dither.extras import need

ODD = "north\x1b[2J\u202e\r\x07\x9b1A"


@given(text=st.text())
def test_nothing_printed_is_a_command_and_a_cell_is_one_line(text):
    assert all(
        part.isprintable() or not part.strip() or part in "\u200c\u200d" for part in printing.without_commands(text)
    )
    assert not set(printing.without_commands(text)) & set("\x1b\r\x07\x08\x9b\u202e\u2028")
    assert not set(printing.cell(text)) & set("\n\t\x0b\x0c\x85")


@given(text=st.text(), encoding=st.sampled_from(["ascii", "latin-1", "cp1252", "cp437", "utf-8"]))
def test_every_text_has_a_form_in_every_encoding(text, encoding):
    printing.prepare()
    assert printing.without_commands(text).encode(encoding, "dither.words") is not None
    assert "± ε".encode("ascii", "dither.words") == b"+/- epsilon"


@pytest.mark.slow
def test_keys_names_and_messages_with_escapes_are_shown_as_text(tmp_path, monkeypatch, dither):
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"who": range(900), "region": [ODD, "south", "west"] * 300}), "t.parquet")
    Path("t.toml").write_text(
        'name = "t"\nsource = "t.parquet"\nunit = "who"\nledger = "t.ledger"\n[budget]\nepsilon = 20\n'
        '[columns.who]\ntype = "integer"\n[columns.region]\ntype = "text"\n'
        'keys = ["north\\u001b[2J\\u202e\\r\\u0007\\u009b1A", "south", "west"]\n',
        encoding="utf-8",
    )
    ask = ("query", "t.toml", "SELECT region, COUNT(*) AS n FROM t GROUP BY region", "--epsilon", "5")
    for command in (ask, (*ask, "--format", "json"), ("budget", "t.toml", "--history"), ("query", ODD, ODD), (ODD,),
                    ("query", "t.toml", f"SELECT {ODD} FROM t"), ("budget", "t.toml", "--dataset", ODD),
                    ("init", ODD), ("init", "t.parquet", "--output", f"{ODD}.toml")):  # fmt: skip
        _, out, err = dither(*command)
        assert not set(out + err) & set("\x1b\r\x07\x9b\u202e"), command
    assert "\\x1b[2J" in dither(*ask)[1]
    assert ODD in dither(*ask, "--format", "csv")[1]  # a pipe gets the keys themselves


def test_every_module_of_the_command_line_prints_by_one_function():
    for path in Path(printing.__file__).parent.glob("*.py"):
        if path.name == "printing.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in ("print", "typer.echo", "typer.secho", "console.print"), path.name
                assert called != "sys.stdout.write" or ast.unparse(node.args[0]) == "answer.to_csv()", path.name


@pytest.mark.parametrize("width", [20, 80, 120])
def test_a_table_is_whole_at_every_width(width, monkeypatch, capsys):
    rows = [("a" * 30, "b" * 30), ("short", "c" * 50)]
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(printing, "is_terminal", lambda: True)
    printing.table(("one", "two"), rows)
    out = capsys.readouterr().out
    assert "…" not in out
    for letter, count in (("a", 30), ("b", 30), ("c", 50)):
        assert out.count(letter) >= count
    monkeypatch.setattr(printing, "is_terminal", lambda: False)
    printing.table(("one", "two"), rows)
    assert "  ".join(rows[0]) in capsys.readouterr().out


@pytest.mark.slow
def test_a_shell_completes_commands():
    run = [sys.executable, "-m", "dither"]
    more = {"_DITHER_COMPLETE": "complete_bash", "COMP_WORDS": "dither bu", "COMP_CWORD": "1"}
    done = subprocess.run(run, capture_output=True, text=True, timeout=600, env={**os.environ, **more})
    assert done.stdout.split() == ["budget"]


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'dither\[plot\]'") as caught:
        need("matplotlib.pyplot", "plot")
    assert isinstance(caught.value, dp.DitherError)
    assert isinstance(caught.value, MissingPackage)
    assert caught.value.name == "matplotlib"


@pytest.mark.slow
def test_learning_without_scikit_learn_is_an_import_error():
    code = "import sys; sys.modules['sklearn'] = None\n"
    code += "try:\n import dither.learn\nexcept ImportError as error:\n print(error)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'dither[learn]'" in said
