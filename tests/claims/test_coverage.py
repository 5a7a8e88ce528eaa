"""Every statement of the five documents is in the course: ``coverage.toml`` says where, and what it names exists."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import Any

from dither.course import find, results
from support import each

ROWS: dict[str, dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_name("coverage.toml").read_text(encoding="utf-8")
)
STATEMENTS = {"1": 29, "2": 86, "3": 23, "4": 20, "5": 15}


def public(name: str) -> Any:
    """The public value of this dotted name."""
    names = name.split(".")
    value: Any = importlib.import_module(names[0])
    for part in names[1:]:
        value = getattr(value, part)
    return value


def test_all_statements_have_a_row() -> None:
    assert {document: len(rows) for document, rows in ROWS.items()} == STATEMENTS
    assert sum(STATEMENTS.values()) == 173


@each("row", [(document, statement) for document, rows in ROWS.items() for statement in rows])
def test_a_statement_is_where_its_row_says(row: tuple[str, str]) -> None:
    document, statement = row
    places = {result.number for result in results(document=int(document))}
    places |= {claim.place for result in results(document=int(document)) for claim in result.claims}
    assert ROWS[document][statement]
    for reference in ROWS[document][statement]:
        if reference.startswith("dither."):
            assert public(reference) is not None
        elif reference.startswith("find "):
            found = find(reference.removeprefix("find "), document=int(document))
            assert {result.document for result in found} == {int(document)}
        else:
            assert reference in places, reference


def test_every_result_and_every_claim_is_a_row_of_the_table() -> None:
    for document, rows in ROWS.items():
        shown = {reference for references in rows.values() for reference in references}
        for result in results(document=int(document)):
            claims = {claim.place for claim in result.claims}
            assert shown & {result.number, *claims}, result.number
