"""Files of rows: which they are, and the header of CSV files. Nothing below the header is read here."""

from __future__ import annotations

import csv
import glob
import gzip
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dither.errors import InvalidArgument, message
from dither.tables.engines.base import broken

_KINDS: dict[str, Literal["parquet", "csv"]] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
}
_DELIMITERS = ",;\t|"
_LONGEST = 1 << 20


@dataclass(frozen=True)
class Files:
    """Files of one kind, by full name; of CSV files also the columns and the sign between them."""

    kind: Literal["parquet", "csv"]
    paths: tuple[str, ...]
    header: tuple[str, ...] = ()
    delimiter: str = ","


def find(source: str) -> Files:
    """The files of a path or glob, as they are now."""
    path = os.path.abspath(os.path.expanduser(source))
    if os.path.isdir(path):
        raise broken("a file", "a folder", "name the files in it, for example folder/*.parquet")
    paths = [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
    paths = [each for each in paths if not os.path.isdir(each)]
    if not paths:
        raise broken("a file", "no such file", "check the path; in a card it starts from the card's folder")
    if any(sign in each for each in paths for sign in "*?["):
        raise broken("file names without *, ? and [", "another", "rename the file or its folder")
    kinds = {_kind(each) for each in paths}
    if len(kinds) > 1:
        raise broken("files of one kind", "Parquet and CSV files together", "name them by *.parquet or *.csv")
    for each in paths:
        if not os.access(each, os.R_OK):
            raise broken("a file that may be read", "one that may not", "ask its owner for leave to read it")
        if os.path.getsize(each) == 0:
            raise broken("a file with a schema", "an empty one", "write it again, or leave it out")
    if kinds == {"parquet"}:
        return Files("parquet", tuple(paths))
    return Files("csv", tuple(paths), *headers(tuple(paths)))


def headers(paths: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """The columns of CSV files and the sign between them, which all of them share."""
    header, delimiter = _header(paths[0])
    if any(_header(each) != (header, delimiter) for each in paths[1:]):
        raise broken("CSV files with one header", "different ones", "write them with the same columns in one order")
    return header, delimiter


def _kind(path: str) -> Literal["parquet", "csv"]:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes[-1:] == [".gz"] and suffixes[-2:-1] and _KINDS.get(suffixes[-2]) == "csv":
        return "csv"
    kind = _KINDS.get(suffixes[-1]) if suffixes else None
    if kind is None:
        if suffixes[-1:] in ([".duckdb"], [".db"], [".ddb"]):
            raise InvalidArgument(message("source", "file.duckdb::table", "no table", "add ::table after the file"))
        raise broken("a file that ends in .parquet, .csv, .tsv or .csv.gz", "another", "rename or convert it")
    return kind


def _header(path: str) -> tuple[tuple[str, ...], str]:
    """The columns of a CSV file and the sign between them, from its first line alone."""
    opener = gzip.open if path.lower().endswith(".gz") else open
    try:
        # what follows the header is none of our business here, even its encoding
        with opener(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            start = file.read(_LONGEST)
        # as many lines as the header's quotes need; a sign within quotes separates nothing
        signs = [sign for sign in _DELIMITERS if len(_first(start, sign)) > 1]
        delimiter = signs[0] if signs else ","
        names = _first(start, delimiter)
    except (OSError, EOFError, csv.Error):
        raise broken("a CSV file with a header", "one that cannot be read", "write it again") from None
    if not names:
        raise broken("a CSV file with a header", "an empty first line", "put the names of the columns there")
    if any("\udc80" <= sign <= "\udcff" or sign == "\0" for name in names for sign in name):
        raise broken("a CSV file in UTF-8", "another encoding", "save it as UTF-8")
    named = tuple(name if name else f"column_{i}" for i, name in enumerate(names, 1))
    if len(set(named)) != len(named):
        raise broken("a CSV file whose columns differ", "two of one name", "rename one of them in the header")
    return named, delimiter


def _first(start: str, delimiter: str) -> list[str]:
    return next(csv.reader(start.splitlines(keepends=True), delimiter=delimiter), [])


def database(path: str) -> str:
    """The full name of a database file that is there."""
    full = os.path.abspath(os.path.expanduser(path))
    if os.path.isdir(full):
        raise broken("a file", "a folder", "name the database file in it")
    if not os.path.exists(full):
        raise broken("a file", "no such file", "check the path; in a card it starts from the card's folder")
    return full


def parts_of(table: str) -> list[str]:
    """The parts of ``table``, ``schema.table`` or ``"Schema"."Table"``, as they are spelled.

    >>> parts_of('clinic."Visits of 2024"')
    ['clinic', 'Visits of 2024']
    """
    found = re.findall(r'"((?:[^"]|"")+)"|([^".]+)', table)
    names = [quoted.replace('""', '"') or bare for quoted, bare in found]
    rebuilt = ".".join(f'"{quoted}"' if quoted else bare for quoted, bare in found)
    if not 1 <= len(names) <= 2 or rebuilt != table or any("\0" in name for name in names):
        raise InvalidArgument(
            message("source", "::table or ::schema.table", "another name", "put odd names in double quotes")
        )
    return names
