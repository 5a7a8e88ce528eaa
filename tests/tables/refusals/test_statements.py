"""Every refusal leads to a working question in one try, and what can be accepted is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import dither as dp
from support import refuses
from tables.refusals.samples import HIDDEN, clinic, flights
from tables.refusals.statements import CLINIC, FLIGHTS, Statement

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def tables() -> Iterator[dict[str, dp.Table]]:
    with flights() as planes, clinic() as patients:
        yield {"flights": planes, "clinic": patients}


ASKED = [("flights", item) for item in FLIGHTS] + [("clinic", item) for item in CLINIC]


@pytest.mark.parametrize(("name", "statement"), ASKED, ids=[item.sql[:60] for _, item in ASKED])
def test_a_question_is_answered_in_one_try(tables: dict[str, dp.Table], name: str, statement: Statement):
    table = tables[name]
    if statement.says is None:
        assert table.sql(statement.sql).release(epsilon=1).columns
        return
    before = table.accounts.remaining(None)
    with refuses(dp.InvalidArgument, statement.says, hiding=HIDDEN) as refusal:
        table.sql(statement.sql).release(epsilon=1)
    assert type(refusal.value) is dp.InvalidArgument
    assert refusal.value.__cause__ is None
    assert table.accounts.remaining(None) == before
    assert table.sql(statement.then).release(epsilon=1).columns


def test_the_suite_holds_what_it_says():
    assert len(ASKED) >= 123
    assert len({item.sql for _, item in ASKED}) == len(ASKED)
    assert all(item.then for _, item in ASKED if item.says is not None)
