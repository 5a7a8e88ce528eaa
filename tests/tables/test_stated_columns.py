"""What the arguments of dp.open say about the columns of one table or of several."""

from __future__ import annotations

import pyarrow as pa

import dither as dp
from dither.errors import InvalidArgument
from support import refuses

VISITS = pa.table({"patient": [1, 1, 2], "amount": [1.0, 2.0, 3.0]})
PATIENTS = pa.table({"id": [1, 2], "region": ["north", "south"]})
UNITS = {"visits": "patient", "patients": "id"}


def test_columns_that_no_table_has_are_refused_by_name():
    frames = {"visits": VISITS, "patients": PATIENTS}
    for wrong in ({"bounds": {"visits.region": (0, 1)}}, {"keys": {"area": ["a"]}}, {"types": {"visits.x": "text"}}):
        with refuses(InvalidArgument, "visits.amount", "correct the name"):
            dp.open(frames, unit=UNITS, budget=dp.PureDP(1), **wrong)
    with refuses(InvalidArgument, "unit", "a column of patients"):
        dp.open(frames, unit={"visits": "patient"}, budget=dp.PureDP(1))
    with refuses(InvalidArgument, "column", "id"):
        dp.open(frames, unit="id", budget=dp.PureDP(1))
    with refuses(InvalidArgument, "unit", "several tables"):
        dp.open(frames, budget=dp.PureDP(1))


def test_what_is_said_of_one_table_goes_before_what_is_said_of_all():
    frames = {"visits": VISITS, "stays": VISITS}
    bounds = {"amount": (0, 10), "stays.amount": (0, 5)}
    with dp.open(frames, unit="patient", bounds=bounds, budget=dp.PureDP(1)) as table:
        known = {name: item.columns["amount"].bounds for name, item in table.card.private_tables.items()}
    assert known == {"visits": (0, 10), "stays": (0, 5)}
