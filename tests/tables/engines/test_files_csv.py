"""CSV files: one person's cell never changes another's row, whatever its bytes are."""

from __future__ import annotations

import csv
import gzip
import io
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.errors import InvalidData
from dither.tables.card.model import Card, ColumnCard
from dither.tables.engines import connect, files, malformed_lines
from dither.tables.engines.files import CsvFormat, CsvTable
from support import each, refuses

FORMAT = CsvFormat(("id", "name", "n"))
CARD = Card("t", "…", {"id": ColumnCard("text"), "name": ColumnCard("text"), "n": ColumnCard("text")})
HOSTILE = [
    b'"', b'""', b'"""', b'"x', b'x"', b'"x"', b'"x""', b'"\n"', b'"\r\n', b"\r", b"\n", b"\r\n", b"\n\r", b"\\",
    b'\\"', b",", b",,", b'",', b',"', b'","', b"\0", b'\0"', b"\xef\xbb\xbf", b'\xef\xbb\xbf"', b"\xff\xfe",
    b"\xc3", b"\xe9", b"\xf0\x9f", b"\xed\xa0\x80", b"\xc0\xaf", b"\x1a", b"#", b"'", b";", b"\t", b"|", b"\x01",
    b"\x85", b"\xe2\x80\xa8", b'"\r"', b'a"b', b'"a"b', b'"a" ', b' "a"', b"x" * 70_000, b'"' * 4097, b"\n9,forged,9\n",
    b'"\n9,forged,9\n"', b"\r9,forged,9\r",
]  # fmt: skip


def read(path: Path, format: CsvFormat = FORMAT) -> list[dict[str, Any]]:
    """The rows, read as a question does, without the scan that precedes every question."""
    import pyarrow as pa

    table = CsvTable((str(path),), format, format.header)
    result: list[dict[str, Any]] = pa.RecordBatchReader.from_stream(table).read_all().to_pylist()
    return result


def others(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if str(row["id"]).startswith("other")]


def file_with(cell: bytes, before: int = 3, after: int = 4) -> bytes:
    """A file in which one cell of one row is these bytes, among quoted and plain rows of other people."""
    plan = [b"id,name,n"]
    plan += [b'other%d,"a, ""b""",%d' % (i, i) for i in range(before)]
    plan += [b"mine," + cell + b",1"]
    plan += [b"other%d,c,%d" % (before + i, i) for i in range(after - 1)]
    plan += [b'"other%d","",' % (before + after)]
    return b"\n".join(plan) + b"\n"


EXPECTED = [
    *({"id": f"other{i}", "name": 'a, "b"', "n": str(i)} for i in range(3)),
    *({"id": f"other{3 + i}", "name": "c", "n": str(i)} for i in range(3)),
    {"id": "other7", "name": "", "n": None},
]


@pytest.mark.parametrize("compressed", [False, True])
def test_no_byte_in_a_cell_changes_another_row(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / ("t.csv.gz" if compressed else "t.csv")
    cells = [bytes([value]) for value in range(256)] + HOSTILE
    for cell in cells:
        data = file_with(cell)
        path.write_bytes(gzip.compress(data, 1) if compressed else data)
        rows = read(path)
        assert others(rows) == EXPECTED, cell
        mine = [row for row in rows if row["id"] == "mine"]
        assert len(mine) <= 1
        # what is read of the own row is what the standard parser reads of that one line, or nothing
        if mine:
            line = next(csv.reader(io.StringIO(b"".join([b"mine,", cell, b",1"]).decode(), newline=""), strict=True))
            assert [mine[0]["id"], mine[0]["name"] or "", mine[0]["n"]] == line


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from([b'"', b"\r", b"\n", b",", b"\0", b"\xff", b"\\", b"a", b"\xef\xbb\xbf", b" "])))
def test_no_combination_of_bytes_in_a_cell_changes_another_row(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    path = tmp_path_factory.getbasetemp() / "combination.csv"
    path.write_bytes(file_with(b"".join(parts)))
    assert others(read(path)) == EXPECTED


@pytest.mark.parametrize("cell", [b'"', b'""', b"\r", b"\xff", b'"\n', b"x" * 300, b"\n"])
def test_it_does_not_matter_where_a_block_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: bytes) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(file_with(cell))
    monkeypatch.setattr(files, "LONGEST", 200)
    whole = read(path)
    for size in range(1, 64):
        monkeypatch.setattr(files, "BLOCK", size)
        assert read(path) == whole
    assert others(whole) == EXPECTED


def test_a_line_of_any_length_is_only_its_own(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for size in (files.LONGEST - 8, files.LONGEST + 1, 3 * files.BLOCK):
        path.write_bytes(file_with(b"x" * size))
        assert others(read(path)) == EXPECTED
        assert bool(list(malformed_lines(str(path)))) == (size > files.LONGEST)


@each("cell", HOSTILE)
def test_a_hostile_cell_is_read_as_it_is_or_the_file_is_refused_when_opened(tmp_path: Path, cell: bytes) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(file_with(cell))
    wrong = list(malformed_lines(str(path)))
    if wrong:
        with refuses(InvalidData, "a record on each line") as caught:
            connect(str(path), CARD)
        assert caught.value.__cause__ is caught.value.__context__ is None
    else:
        with connect(str(path), CARD) as engine:
            rows = engine.run("SELECT id, name, n, LOWER(name) AS low FROM dither_rows").to_pylist()
            assert others([{name: row[name] for name in ("id", "name", "n")} for row in rows]) == EXPECTED
            engine.run("SELECT name, COUNT(*) AS c FROM dither_rows GROUP BY name")


def test_a_file_that_becomes_hostile_after_it_was_opened(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(file_with(b"fine"))
    with connect(str(path), CARD) as engine:
        for cell in HOSTILE:
            path.write_bytes(file_with(cell))
            rows = engine.run("SELECT * FROM dither_rows").to_pylist()  # total without the scan, too
            assert others(rows) == EXPECTED
        path.write_bytes(file_with(b'"'))
        with refuses(InvalidData, "a record on each line"):
            engine.check()  # which every release calls before it charges
        path.write_bytes(file_with(b"fine"))
        engine.check()


def test_a_scan_is_remembered_for_large_files_until_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(file_with(b"fine"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(files, "_LARGE", 1)
    scans = []
    kept = files.malformed
    monkeypatch.setattr(files, "malformed", lambda *given: scans.append(given) or kept(*given))
    for _ in range(3):
        connect(str(path), CARD).close()
    assert len(scans) == 1
    notes = list((tmp_path / "cache").rglob("*"))
    assert not any(b"other" in note.read_bytes() or "t.csv" in note.name for note in notes if note.is_file())
    data = file_with(b"diff")
    assert len(data) == os.path.getsize(path)
    path.write_bytes(data)
    connect(str(path), CARD).close()
    assert len(scans) == 2
    path.write_bytes(file_with(b'"'))
    for _ in range(2):  # a refusal is not remembered as a success
        with refuses(InvalidData):
            connect(str(path), CARD)


def test_a_folder_that_cannot_be_written_costs_a_scan_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(file_with(b"fine"))
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(files, "_LARGE", 1)
    connect(str(path), CARD).close()


def test_a_file_that_changes_while_it_is_scanned_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(file_with(b"fine"))
    kept = files.malformed

    def replaced(*given: Any) -> Any:
        result = list(kept(*given))
        path.write_bytes(file_with(b'"'))
        return result

    monkeypatch.setattr(files, "malformed", replaced)
    with refuses(InvalidData, "stay as they are"):
        connect(str(path), CARD)


def test_blank_lines_are_nobodys_except_in_one_column(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"id,name,n\r\n\r\nother1,a,1\r\n\n\n")
    assert not list(malformed_lines(str(path)))
    assert read(path) == [{"id": "other1", "name": "a", "n": "1"}]
    path.write_bytes(b'id\na\n\n""\r\n\r\n')
    assert [row["id"] for row in read(path, CsvFormat(("id",)))] == ["a", None, "", None]


@pytest.mark.parametrize("header", [b'id,"na\nme",n\n', b'id,"name,n\n', b'id,na"me,n\n', b"id,na\rme,n\n"])
def test_a_header_is_one_line_too(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(header + b"1,2,3\n")
    with refuses(InvalidData):
        connect(str(path))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"])), min_size=3, max_size=3)
    )
)
def test_what_the_standard_library_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, cells: list[list[str]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "written.csv"
    for quoting in (csv.QUOTE_ALL, csv.QUOTE_MINIMAL):
        with path.open("w", newline="", encoding="utf-8") as out:
            csv.writer(out, quoting=quoting).writerows([["id", "name", "n"], *cells])
        assert not list(malformed_lines(str(path)))
        result = [["" if value is None else value for value in row.values()] for row in read(path)]
        assert result == cells
