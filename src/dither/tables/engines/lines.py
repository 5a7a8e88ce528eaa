"""CSV files, one line at a time: a record is one line, and no cell can change how another line is read.

A line ends with LF or CRLF. It is a record if

* it has as many cells as the header,
* its quotes are those of RFC 4180 and are closed before its end: a cell is either free of quotes, or begins and ends
  with one and doubles those inside,
* it is valid UTF-8, has no other CR, and is at most 2 MiB long.

A line break within quotes is therefore not supported: the quote is open at the end of its line. A line that is not a
record is *malformed*. A file with malformed lines is refused before any question (:func:`malformed`); should they
appear later, they belong to nobody and are left out. A blank line is neither, except where the file has one column:
there it is a record whose cell is empty.

The lines are found here, in bytes, and only whole records are handed to Arrow's parser. The parser therefore never
decides where a record ends.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

BLOCK = 1 << 23
LONGEST = 1 << 21
_LF, _CR, _QUOTE = 10, 13, 34


@dataclass(frozen=True)
class CsvFormat:
    """The names of the columns and the character between cells, both from the header."""

    header: tuple[str, ...]
    delimiter: str = ","


@dataclass(frozen=True)
class CsvTable:
    """CSV files of one format as an Arrow stream of text columns, which may be read any number of times."""

    paths: tuple[str, ...]
    format: CsvFormat
    columns: tuple[str, ...]

    @property
    def schema(self) -> Any:
        """Every column is text; an empty cell without quotes is NULL."""
        return pa.schema([(name, pa.string()) for name in self.columns])

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        batches = (batch for path in self.paths for batch in records(path, self.format, self.columns))
        return pa.RecordBatchReader.from_batches(self.schema, batches).__arrow_c_stream__(requested_schema)


def open_bytes(path: str) -> BufferedIOBase:
    """The bytes of a file, uncompressed."""
    return gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb")


def blocks(path: str) -> Iterator[bytes]:
    """The lines below the header, several thousand at a time; each ends with LF.

    A line longer than :data:`LONGEST` may be replaced by a short malformed one, so that memory stays bounded.
    """
    with open_bytes(path) as file:
        rest, header = b"", True
        while read := file.read(BLOCK):
            cut = read.rfind(b"\n") + 1
            block = rest + read[:cut] if cut else b""
            rest = read[cut:] if cut else rest + read
            if len(rest) > LONGEST:  # the line is too long already; its beginning says so
                rest = rest[: LONGEST + 1]
            if header and block:
                block, header = block[block.index(b"\n") + 1 :], False
            if block:
                yield block
        if rest and not header:
            yield rest + b"\n"


def classify(block: bytes, format: CsvFormat) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
    """Where the lines of a block begin and end, and which of them are records.

    >>> classify(b'1,"a,b"\\n2,"c\\n3,d\\n', CsvFormat(("x", "y")))[2].tolist()
    [True, False, True]
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
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def records(path: str, format: CsvFormat, columns: tuple[str, ...]) -> Iterator[Any]:
    """The records of a file as Arrow batches; malformed lines are left out."""
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
        # a line of our own in front, skipped again: Arrow would take a byte order mark off the first record
        reading = pa_csv.ReadOptions(column_names=names, skip_rows=1, block_size=max(1 << 20, 2 * LONGEST))
        yield from pa_csv.read_csv(pa.BufferReader(b"\n" + block), reading, parsing, converting).to_batches()


def malformed(path: str, format: CsvFormat) -> Iterator[int]:
    """The numbers of a file's malformed lines, where the header is line 1. For its steward alone."""
    above = 1
    for block in blocks(path):
        starts, ends, good = classify(block, format)
        for line in np.flatnonzero(~good):
            if block[starts[line] : ends[line]].rstrip(b"\r"):
                yield above + int(line) + 1
        above += len(ends)
