"""Files of rows: which they are, what identifies their content, and the header of CSV files."""

from __future__ import annotations

import csv
import glob
import hashlib
import os
import re
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dither.errors import InvalidArgument, message
from dither.tables.engines.base import source_error
from dither.tables.engines.lines import CsvFormat, classify, open_bytes

_KINDS: dict[str, Literal["parquet", "csv"]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
}
_DELIMITERS = ",;\t|"
_LONGEST = 1 << 20
_LARGE = 1 << 25
"""From how many bytes on a scan is remembered on disk."""


@dataclass(frozen=True)
class Files:
    """Files of one kind, by full name; of CSV files also their format."""

    kind: Literal["parquet", "csv"]
    paths: tuple[str, ...]
    format: CsvFormat | None = None


def find(source: str) -> Files:
    """The files of a path or glob, as they are now."""
    path = os.path.abspath(os.path.expanduser(source))
    if os.path.isdir(path):
        raise source_error("a file", "a folder", "name the files in it, for example folder/*.parquet")
    paths = [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
    paths = [item for item in paths if not os.path.isdir(item)]
    if not paths:
        raise source_error("a file", "no such file", "check the path; in a card it starts from the card's folder")
    if any(sign in item for item in paths for sign in "*?["):
        raise source_error("file names without *, ? and [", "another", "rename the file or its folder")
    kinds = {_kind(item) for item in paths}
    if len(kinds) > 1:
        raise source_error("files of one kind", "Parquet and CSV files together", "name them by *.parquet or *.csv")
    for item in paths:
        if not os.access(item, os.R_OK):
            raise source_error("a file that may be read", "one that may not", "ask its owner for leave to read it")
        if os.path.getsize(item) == 0:
            raise source_error("a file with a schema", "an empty one", "write it again, or leave it out")
    if kinds == {"parquet"}:
        return Files("parquet", tuple(paths))
    return Files("csv", tuple(paths), csv_format(tuple(paths)))


def csv_format(paths: tuple[str, ...]) -> CsvFormat:
    """The format of CSV files, which all of them share."""
    format = _header(paths[0])
    if any(_header(path) != format for path in paths[1:]):
        raise source_error(
            "CSV files with one header", "different ones", "write them with the same columns in one order"
        )
    return format


def _kind(path: str) -> Literal["parquet", "csv"]:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes[-1:] == [".gz"] and suffixes[-2:-1] and _KINDS.get(suffixes[-2]) == "csv":
        return "csv"
    kind = _KINDS.get(suffixes[-1]) if suffixes else None
    if kind is None:
        if suffixes[-1:] in ([".duckdb"], [".db"], [".ddb"]):
            raise InvalidArgument(message("source", "file.duckdb::table", "no table", "add ::table after the file"))
        raise source_error("a file that ends in .parquet, .csv, .tsv or .csv.gz", "another", "rename or convert it")
    return kind


def _header(path: str) -> CsvFormat:
    """The columns of a CSV file and the character between them, from its first line alone."""
    try:
        with open_bytes(path) as file:
            line = file.readline(_LONGEST)
    except (OSError, EOFError, zlib.error):
        raise source_error("a CSV file with a header", "one that cannot be read", "write it again") from None
    line = line.removesuffix(b"\n").removesuffix(b"\r").removeprefix(b"\xef\xbb\xbf")
    try:
        text = line.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise source_error("a CSV file in UTF-8", "another encoding", "save it as UTF-8")
    if not text:
        raise source_error("a CSV file with a header", "an empty first line", "put the names of the columns there")
    split = {sign: _cells(text, sign) for sign in _DELIMITERS}  # a character within quotes separates nothing
    delimiter = next((sign for sign, cells in split.items() if len(cells) > 1), ",")
    names = tuple(name if name else f"column_{i}" for i, name in enumerate(split[delimiter], 1))
    format = CsvFormat(names, delimiter)
    if not classify(line + b"\n", format)[2].all():
        raise source_error(
            "a header on one line, its quotes closed", "another first line", "write each column's name on that line"
        )
    if len(set(names)) != len(names):
        raise source_error("a CSV file whose columns differ", "two of one name", "rename one of them in the header")
    return format


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter))
    except (csv.Error, StopIteration):
        return []


def identity(paths: tuple[str, ...], purpose: str) -> str:
    """What changes when one of the files is replaced or written to, without reading them.

    Name, device, inode, size and the times of the last change, as one digest with the purpose.
    """
    try:
        stats = [(path, os.stat(path)) for path in paths]
    except OSError:
        raise source_error("a source that can be read", "one that is gone or damaged", "restore it") from None
    facts = [(path, s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for path, s in stats]
    return hashlib.sha256(repr((purpose, facts)).encode("utf-8", "surrogatepass")).hexdigest()


def was_scanned(paths: tuple[str, ...], mark: str) -> bool:
    """Whether files of this identity were read in full before, by any process of this user."""
    with suppress(OSError):
        return _note(paths).read_text() == mark
    return False


def remember_scan(paths: tuple[str, ...], mark: str) -> None:
    """Keep the identity of large files that were read in full; small ones are read again sooner than looked up."""
    if sum(os.path.getsize(path) for path in paths) < _LARGE:
        return
    note = _note(paths)
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        fresh = note.with_suffix(f".{os.getpid()}")
        fresh.write_text(mark)
        os.replace(fresh, note)


def _note(paths: tuple[str, ...]) -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    name = hashlib.sha256("\0".join(paths).encode("utf-8", "surrogatepass")).hexdigest()
    return Path(home, "dither", "scanned", name)


def database(path: str) -> str:
    """The full name of a database file that is there."""
    full = os.path.abspath(os.path.expanduser(path))
    if os.path.isdir(full):
        raise source_error("a file", "a folder", "name the database file in it")
    if not os.path.exists(full):
        raise source_error("a file", "no such file", "check the path; in a card it starts from the card's folder")
    return full


def parts_of(table: str) -> list[str]:
    """The parts of ``table``, ``schema.table`` or ``"Schema"."Table"``, as they are spelled.

    >>> parts_of('clinic."Visits of 2024"')
    ['clinic', 'Visits of 2024']
    """
    result = re.findall(r'"((?:[^"]|"")+)"|([^".]+)', table)
    names = [quoted.replace('""', '"') or bare for quoted, bare in result]
    rebuilt = ".".join(f'"{quoted}"' if quoted else bare for quoted, bare in result)
    if not 1 <= len(names) <= 2 or rebuilt != table or any("\0" in name for name in names):
        raise InvalidArgument(
            message("source", "::table or ::schema.table", "another name", "put odd names in double quotes")
        )
    return names
