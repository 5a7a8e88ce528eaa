"""Files of rows: which they are, what identifies their content, and the records of CSV files.

CSV files are read one line at a time: a record is one line, and no cell can change how another line is read.
A line ends with LF or CRLF. It is a record if

* it has as many cells as the header,
* its quotes are those of RFC 4180 and are closed before its end: a cell is either free of quotes, or begins and ends
  with one and doubles those inside,
* it is valid UTF-8, has no other CR, and is at most 2 MiB long.

A line break within quotes is therefore not supported: the quote is open at the end of its line. A line that is not a
record is *malformed*. A file with malformed lines is refused before any question (:func:`malformed`); should they
appear later, they are excluded. A blank line is neither, except where the file has one column:
there it is a record whose cell is empty.

The lines are found here, in bytes, and only whole records are handed to Arrow's parser. The parser therefore never
decides where a record ends.
"""

from __future__ import annotations

import csv
import glob
import gzip
import hashlib
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from dither.errors import InvalidArgument, InvalidData
from dither.tables.engines.base import source_error

_KINDS: dict[str, Literal["parquet", "csv"]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
}
_DELIMITERS = ",;\t|"
_LONGEST_HEADER = 1 << 20
_LARGE = 1 << 25
"""From how many bytes on a scan is remembered on disk."""
BLOCK = 1 << 23
LONGEST = 1 << 21
"""The most bytes of a line."""
_LF, _CR, _QUOTE = 10, 13, 34
_WHOLE = re.compile("[+-]?[0-9]{1,18}")
_VALUE = re.compile(
    "[^0-9A-Za-z]{0,3}[+-]?[0-9][0-9., ]*[.,][0-9]+[^0-9A-Za-z]{0,3}|[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}([ T].*)?"
)
"""Decimal numbers, also of currencies, and dates."""


@dataclass(frozen=True)
class CsvFormat:
    """The names of the columns and the character between cells, both from the header."""

    header: tuple[str, ...]
    delimiter: str = ","


@dataclass(frozen=True)
class Files:
    """Files of one kind, by full name; of CSV files also their format."""

    kind: Literal["parquet", "csv"]
    paths: tuple[str, ...]
    format: CsvFormat | None = None


def find(source: str) -> Files:
    """Return the files that a path or glob names now; refuse a missing, unreadable or empty file, and Parquet files
    beside CSV files."""
    path = os.path.abspath(os.path.expanduser(source))
    if os.path.isdir(path):
        raise source_error("a file", "a folder", "name the files in it, for example folder/*.parquet")
    paths = [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
    paths = [item for item in paths if not os.path.isdir(item)]
    if not paths:
        raise source_error("a file", "no such file", "check the path; in a card it starts from the card's folder")
    if any(sign in item for item in paths for sign in "*?["):
        raise source_error("file names without *, ? and [", "a name with one of them", "rename the file or its folder")
    kinds = {_kind(item) for item in paths}
    if len(kinds) > 1:
        raise source_error("files of one kind", "Parquet and CSV files together", "name them by *.parquet or *.csv")
    for item in paths:
        if not os.access(item, os.R_OK):
            raise source_error("a file that you may read", "one without read permission", "ask its owner for it")
        if os.path.getsize(item) == 0:
            raise source_error("a file with a schema", "an empty one", "write it again, or leave it out")
    if kinds == {"parquet"}:
        return Files("parquet", tuple(paths))
    return Files("csv", tuple(paths), csv_format(tuple(paths)))


def csv_format(paths: tuple[str, ...]) -> CsvFormat:
    """Return the format of CSV files; refuse files with different headers."""
    format = _header(paths[0])
    if any(_header(path) != format for path in paths[1:]):
        raise source_error(
            "CSV files with one header", "different ones", "write them with the same columns in one order"
        )
    return format


def _kind(path: str) -> Literal["parquet", "csv"]:
    """Return whether a file is Parquet or CSV, by its ending; refuse other endings."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes[-1:] == [".gz"] and suffixes[-2:-1] and _KINDS.get(suffixes[-2]) == "csv":
        return "csv"
    kind = _KINDS.get(suffixes[-1]) if suffixes else None
    if kind is None:
        if suffixes[-1:] in ([".duckdb"], [".db"], [".ddb"]):
            raise InvalidArgument("source", "file.duckdb::table", "no table", "add ::table after the file")
        raise source_error(
            "a file that ends in .parquet, .csv, .tsv or .csv.gz", "a file with another ending", "rename or convert it"
        )
    return kind


def _header(path: str) -> CsvFormat:
    """Return the columns of a CSV file and the character between cells, from its first line alone."""
    try:
        with open_bytes(path) as file:
            line = file.readline(_LONGEST_HEADER)
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
            "a header on one line, its quotes closed",
            "an open quote or a broken line",
            "write each column's name on that line",
        )
    if len(set(names)) != len(names):
        if looks_like_data(names):
            raise headless()
        raise source_error("a CSV file whose columns differ", "two of one name", "rename one of them in the header")
    return format


def looks_like_data(names: Sequence[str]) -> bool:
    """Return whether the cells of a file's first line are values rather than names: decimal numbers, dates, or integers
    that are neither years nor consecutive."""
    whole = [int(name) for name in names if _WHOLE.fullmatch(name.strip())]
    consecutive = whole == list(range(whole[0], whole[0] + len(whole))) and len(whole) > 1 if whole else True
    years = all(1800 <= number <= 2200 for number in whole)
    return any(_VALUE.fullmatch(name.strip()) for name in names) or not (consecutive or years)


def headless() -> InvalidData:
    """Return the error for a file whose first line holds values."""
    got = "a first line that looks like data"
    fix = "put a line with the names before it, such as id,day,amount, with the sign between them that the file has"
    return source_error("a CSV file whose first line names the columns", got, fix)


def _cells(line: str, delimiter: str) -> list[str]:
    """Return the cells of one line of CSV; an empty list where it cannot be parsed."""
    try:
        return next(csv.reader([line], delimiter=delimiter))
    except (csv.Error, StopIteration):
        return []


def identity(paths: tuple[str, ...], purpose: str) -> str:
    """Return a digest that changes when one of the files is replaced or written to, without reading them: SHA-256 of
    their names, devices, inodes, sizes and times of change, and of the ``purpose``."""
    try:
        stats = [(path, os.stat(path)) for path in paths]
    except OSError:
        raise source_error("a source that can be read", "one that is gone or damaged", "restore it") from None
    facts = [(path, s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for path, s in stats]
    return hashlib.sha256(repr((purpose, facts)).encode("utf-8", "surrogatepass")).hexdigest()


def was_scanned(paths: tuple[str, ...], mark: str) -> bool:
    """Return whether files with this identity were read in full before, as the user's cache notes."""
    with suppress(OSError):
        return _note(paths).read_text() == mark
    return False


def remember_scan(paths: tuple[str, ...], mark: str) -> None:
    """Record in the user's cache that files with the identity ``mark`` were read in full. Files of less than 32 MiB
    together are not recorded, since reading them again is fast."""
    if sum(os.path.getsize(path) for path in paths) < _LARGE:
        return
    note = _note(paths)
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        fresh = note.with_suffix(f".{os.getpid()}")
        fresh.write_text(mark)
        os.replace(fresh, note)


def _note(paths: tuple[str, ...]) -> Path:
    """Return the path of the file in the user's cache that holds the identity of the last full scan of these files."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    name = hashlib.sha256("\0".join(paths).encode("utf-8", "surrogatepass")).hexdigest()
    return Path(home, "dither", "scanned", name)


def database(path: str) -> str:
    """Return the full path of a database file; refuse a folder or a missing file."""
    full = os.path.abspath(os.path.expanduser(path))
    if os.path.isdir(full):
        raise source_error("a file", "a folder", "name the database file in it")
    if not os.path.exists(full):
        raise source_error("a file", "no such file", "check the path; in a card it starts from the card's folder")
    return full


def parts_of(table: str) -> list[str]:
    """Split ``table``, ``schema.table`` or ``"Schema"."Table"`` into its names without quotes."""
    result = re.findall(r'"((?:[^"]|"")+)"|([^".]+)', table)
    names = [quoted.replace('""', '"') or bare for quoted, bare in result]
    rebuilt = ".".join(f'"{quoted}"' if quoted else bare for quoted, bare in result)
    if not 1 <= len(names) <= 2 or rebuilt != table or any("\0" in name for name in names):
        raise InvalidArgument(
            "source",
            "::table or ::schema.table",
            "an empty name, or one with other signs",
            "put odd names in double quotes",
        )
    return names


# -- the records of CSV files -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CsvTable:
    """CSV files of one format as an Arrow stream of text columns, which may be read any number of times."""

    paths: tuple[str, ...]
    format: CsvFormat
    columns: tuple[str, ...]

    @property
    def schema(self) -> Any:
        """The Arrow schema: every column is text, and an empty cell without quotes is NULL."""
        return pa.schema([(name, pa.string()) for name in self.columns])

    def __arrow_c_schema__(self) -> object:
        """Export the schema by Arrow's C interface, which DuckDB reads."""
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the records by Arrow's C interface, read anew each time."""
        batches = (batch for path in self.paths for batch in records(path, self.format, self.columns))
        return pa.RecordBatchReader.from_batches(self.schema, batches).__arrow_c_stream__(requested_schema)


def open_bytes(path: str) -> BufferedIOBase:
    """Open a file, which may be compressed by gzip, to read its uncompressed bytes."""
    return gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb")


def blocks(path: str) -> Iterator[bytes]:
    """Yield the bytes of the lines below the header in blocks of about :data:`BLOCK` bytes; each line ends with LF.

    A line longer than :data:`LONGEST` is cut to one byte more than that, so that memory stays bounded and the line
    is still recognized as malformed.
    """
    with open_bytes(path) as file:
        rest, header = b"", True
        while read := file.read(BLOCK):
            cut = read.rfind(b"\n") + 1
            block = rest + read[:cut] if cut else b""
            rest = read[cut:] if cut else rest + read
            if len(rest) > LONGEST:
                rest = rest[: LONGEST + 1]
            if header and block:
                block, header = block[block.index(b"\n") + 1 :], False
            if block:
                yield block
        if rest and not header:
            yield rest + b"\n"


def classify(block: bytes, format: CsvFormat) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
    """Return the start and end of each line of a block of CSV, as byte offsets, and whether it is a record.

    ``block`` consists of whole lines; ``format`` has the delimiter and the header. A record has as many cells as the
    header, quotes only around cells or doubled inside of these, no carriage return but before the line end, valid
    UTF-8, and is not too long. All is computed on arrays of bytes, since files are large.
    """
    data = np.frombuffer(block, np.uint8)
    delimiter = ord(format.delimiter)
    ends = np.flatnonzero(data == _LF)
    starts = np.concatenate(([0], ends[:-1] + 1))
    good = ends - starts <= LONGEST
    separator = data == delimiter
    quote = data == _QUOTE
    if quote.any():
        inside = np.bitwise_xor.accumulate(quote)  # up to and including each byte
        at_start = np.concatenate(([False], inside[ends[:-1]]))
        if at_start.any():  # quotes are counted anew in each line
            inside ^= np.repeat(at_start, ends - starts + 1)
        good &= ~inside[ends]
        places = np.flatnonzero(quote)
        before, after = data[places - 1], data[places + 1]  # the first byte's neighbor is the last, which is LF
        opens = (before == delimiter) | (before == _LF) | (before == _QUOTE)
        closes = (after == delimiter) | (after == _LF) | (after == _CR) | (after == _QUOTE)
        wrong = places[~np.where(inside[places], opens, closes)]
        good[np.searchsorted(ends, wrong)] = False
        separator &= ~inside
    returns = np.flatnonzero(data == _CR)
    good[np.searchsorted(ends, returns[data[returns + 1] != _LF])] = False
    cells = np.diff(np.searchsorted(np.flatnonzero(separator), ends), prepend=0) + 1
    good &= cells == len(format.header)
    if not (block.isascii() or _is_utf8(block)):
        for line in np.flatnonzero(good):
            good[line] = _is_utf8(block[starts[line] : ends[line]])
    return starts, ends, good


def _is_utf8(data: bytes) -> bool:
    """Return whether bytes are valid UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def records(path: str, format: CsvFormat, columns: tuple[str, ...]) -> Iterator[Any]:
    """Yield the records of the CSV file ``path`` as Arrow batches of texts, without malformed lines.

    ``format`` has its delimiter and header, ``columns`` are those that are read.
    """
    names = list(format.header)
    parsing = pa_csv.ParseOptions(delimiter=format.delimiter, ignore_empty_lines=False)
    converting = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        include_columns=list(columns),
    )
    for block in blocks(path):
        starts, ends, good = classify(block, format)
        if not good.any():
            continue
        if not good.all():
            block = b"".join(block[starts[line] : ends[line] + 1] for line in np.flatnonzero(good))
        # an empty first line that is skipped: Arrow would remove a byte order mark from the first record
        reading = pa_csv.ReadOptions(column_names=names, skip_rows=1, block_size=max(1 << 20, 2 * LONGEST))
        yield from pa_csv.read_csv(pa.BufferReader(b"\n" + block), reading, parsing, converting).to_batches()


def malformed(path: str, format: CsvFormat) -> Iterator[int]:
    """Yield the line numbers of a file's malformed lines; the header is line 1. Only for the steward: they are
    private."""
    above = 1
    for block in blocks(path):
        starts, ends, good = classify(block, format)
        for line in np.flatnonzero(~good):
            if block[starts[line] : ends[line]].rstrip(b"\r"):
                yield above + int(line) + 1
        above += len(ends)
