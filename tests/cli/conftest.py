"""The command line as a test calls it, and a table to ask."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pytest

from dither.cli.app import main
from support import visits_card


@pytest.fixture
def dither(monkeypatch, capsys):
    """``dither("query", …)``: the status, what was printed, and what was said on stderr."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dither", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        return stopped.value.code or 0, printed.out, printed.err

    return run


@pytest.fixture(scope="session")
def rows_in_csv(tmp_path_factory) -> bytes:
    rows = pa.table(
        {
            "who": [i % 500 for i in range(3000)],
            "region": [("north", "south")[i % 2] for i in range(3000)],
            "amount": [float(i % 40) for i in range(3000)],
            "day": [date(2024, 1 + i % 12, 1) for i in range(3000)],
        }
    )
    path = tmp_path_factory.mktemp("rows") / "visits.csv"
    pc.write_csv(rows, path)
    return path.read_bytes()


@pytest.fixture
def visits(tmp_path, monkeypatch, rows_in_csv):
    """A table, and its card as a steward would leave it after ``dither init``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_bytes(rows_in_csv)
    return edit()


def edit() -> Path:
    """Fill in what the draft leaves open."""
    path = Path("visits.toml")
    path.write_text(
        visits_card(
            "max_groups = 2", "max_rows = 6", "delta = 1e-6", 'rows_without_unit = "drop"', budget_delta="1e-3"
        ),
        encoding="utf-8",
    )
    return path
