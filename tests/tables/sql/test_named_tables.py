"""Which of several private tables a statement is about."""

from __future__ import annotations

import pyarrow as pa
import pytest

import dither as dp
from dither.errors import InvalidArgument
from support import refuses

VISITS = pa.table({"patient": [1, 1, 2], "amount": [1.0, 2.0, 3.0]})
PATIENTS = pa.table({"id": [1, 2], "region": ["north", "south"]})
UNITS = {"visits": "patient", "patients": "id"}


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT COUNT(*) FROM nothing", ("FROM one of visits, patients", "FROM visits")),
        ("SELECT region, COUNT(*) FROM visits GROUP BY region", ("region",)),
        ("WITH patients AS (SELECT 1 AS a) SELECT COUNT(*) FROM visits", ("a new name after WITH",)),
    ],
)
def test_a_question_that_is_not_about_the_tables_says_which_there_are(sql, words):
    frames = {"visits": VISITS, "patients": PATIENTS}
    with dp.open(frames, unit=UNITS, budget=dp.PureDP(1)) as table, refuses(InvalidArgument, *words):
        table.sql(sql)
