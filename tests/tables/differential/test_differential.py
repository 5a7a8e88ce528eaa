"""Random questions about random tables, without noise, against DuckDB on the raw rows: the numbers, and which groups
there are.

What is expected of each answer says :mod:`tables.differential.oracle`. A finding names the seeds of its tables and of
its question, so that ``check_one(table_seed, question_seed, folder)`` shows it again.

By default the questions are the same in every run; with ``DIFFERENTIAL_QUESTIONS`` set they are new.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest
from scipy.stats import binom

from dither.errors import DitherError
from dither.tables.card.model import Card
from tables.differential.oracle import Case, Finding, Tables, opened
from tables.differential.random_questions import Generator
from tables.differential.random_tables import card, random_data, write_public_tables

pytestmark = pytest.mark.slow

QUESTIONS, PARTS, QUESTIONS_OF_A_TABLE = int(os.environ.get("DIFFERENTIAL_QUESTIONS", "3000")), 6, 50
MOST_REFUSED = 0.15
"""The share of questions that may be refused: a test of refusals has no power."""
FEATURES = {
    "several blocks", "shadowing", "alias equal to a column", "membership", "semi join", "join", "left join",
    "public join", "per person", "window", "qualify", "union or distinct", "subquery", "having", "order", "levels",
    "outer", "whole numbers", "keys beyond bounds", "empty groups", "NULL keys", "limits", "generous", "automatic",
    "tight", "path", "public schema",
}  # fmt: skip
"""What answered questions have, and what their answers show."""


def limits(pick: random.Random, folder: Path) -> tuple[str, Card]:
    """Limits on what a person counts for: half of the time, more than anybody has."""
    kind = pick.choice([*["generous"] * 5, "automatic", *["tight"] * 4])
    if kind == "generous":
        return kind, card(folder, 30, 100)
    if kind == "automatic":
        return kind, card(folder, "auto", "auto")
    return kind, card(folder, pick.choice([1, 1, 2]), pick.choice([1, 2, 3]))


def checked(tables: Tables, question_seed: int, folder: Path) -> set[str]:
    """Check one question, and say what it was like; a finding is raised."""
    pick = random.Random(question_seed)
    question = Generator(pick).question()
    kind, its_card = limits(pick, folder)
    case = Case(tables, question, its_card, may_bind=kind != "generous")
    try:
        case.check()
    except DitherError:
        return {"refused"}
    except Exception as error:
        raise Finding(f"{type(error).__name__}: {error}\n{kind} limits: {question.sql}") from error
    return {"answered", kind, *question.tags, *case.seen}


def check_one(table_seed: int, question_seed: int, folder: Path) -> set[str]:
    """One question about one set of tables again."""
    write_public_tables(folder)
    with opened(random_data(random.Random(table_seed)), folder) as tables:
        return checked(tables, question_seed, folder)


@pytest.mark.parametrize("part", range(PARTS))
def test_answers_are_those_of_duckdb(part, tmp_path):
    fixed = "DIFFERENTIAL_QUESTIONS" not in os.environ
    seeds = random.Random(part) if fixed else random.SystemRandom()
    counts: Counter[str] = Counter()
    findings = []
    write_public_tables(tmp_path)
    for _ in range(QUESTIONS // PARTS // QUESTIONS_OF_A_TABLE):
        table_seed = seeds.getrandbits(32)
        with opened(random_data(random.Random(table_seed)), tmp_path) as tables:
            for question_seed in (seeds.getrandbits(32) for _ in range(QUESTIONS_OF_A_TABLE)):
                try:
                    counts.update(checked(tables, question_seed, tmp_path))
                except Finding as finding:
                    findings.append(f"{finding}\ncheck_one({table_seed}, {question_seed}, folder)")
    assert not findings, f"{len(findings)} findings:\n\n" + "\n\n".join(findings[:8])
    asked = QUESTIONS // PARTS // QUESTIONS_OF_A_TABLE * QUESTIONS_OF_A_TABLE
    most = MOST_REFUSED * asked if fixed else binom.isf(1e-9, asked, MOST_REFUSED)  # by chance, few may have more
    assert counts["refused"] < most, counts
    if fixed:  # by chance, other questions may lack one of them
        assert counts.keys() >= FEATURES
