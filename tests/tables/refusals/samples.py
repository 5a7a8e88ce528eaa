"""Two tables as analysts have them: flights, where the plane is the person, and visits to a clinic."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pyarrow as pa

import dither as dp
from dither.randomness import SeededSource

HIDDEN = ("N9Q7Z", "Zyxomma")
"""Parts of values that only the rows hold."""


def _draws(count: int, below: int, seed: int) -> list[int]:
    return [int(word) % below for word in SeededSource(seed).words(count)]


def flights() -> dp.Table:
    """Flights of 200 planes."""
    count = 1200
    plane, place, month, delay, hour = (
        _draws(count, below, seed) for seed, below in enumerate((200, 3, 12, 150, 8760), 1)
    )
    rows = pa.table(
        {
            "tailnum": [f"{HIDDEN[0]}{i}" for i in plane],
            "origin": [("EWR", "JFK", "LGA")[i] for i in place],
            "dest": [(HIDDEN[1], "ORD", "ATL")[i % 3] for i in delay],
            "carrier": [("AA", "DL", "UA")[(i + j) % 3] for i, j in zip(place, month, strict=True)],
            "month": [i + 1 for i in month],
            "dep_delay": [None if i == 7 else i - 20 for i in delay],
            "arr_delay": [i / 2 for i in delay],
            "distance": [100 + 10 * i for i in delay],
            "cancelled": [i % 9 == 0 for i in delay],
            "time_hour": [datetime(2013, 1, 1) + timedelta(hours=i) for i in hour],
            "Gate Number": [1 + i % 40 for i in delay],
            "order": [1 + i % 4 for i in delay],
        }
    )
    period = (datetime(2013, 1, 1), datetime(2013, 12, 31, 23, 59))
    return dp.open(
        rows,
        name="flights",
        unit="tailnum",
        keys={"origin": ["EWR", "JFK", "LGA"], "carrier": ["AA", "DL", "UA"]},
        bounds={
            "month": (1, 12),
            "dep_delay": (-60, 600),
            "arr_delay": (-60, 600),
            "distance": (0, 5000),
            "Gate Number": (1, 40),
            "order": (1, 4),
            "time_hour": period,
        },
        max_groups=5,
        max_rows=10,
        budget=dp.ApproxDP(4000, 0.1),
        delta=1e-6,
    )


def clinic() -> dp.Table:
    """Visits of 300 patients, one or a few each."""
    count = 900
    patient, place, age, cost, day = (
        _draws(count, below, seed) for seed, below in enumerate((300, 2, 90, 900, 365), 11)
    )
    rows = pa.table(
        {
            "patient": [f"{HIDDEN[1]}-{i}" for i in patient],
            "sex": [("f", "m")[i] for i in place],
            "ward": [("surgery", "medicine", "children")[i % 3] for i in age],
            "age": [float(i) for i in age],
            "smoker": [i % 4 == 0 for i in age],
            "cost": [i * 10.5 for i in cost],
            "admitted": [date(2024, 1, 1) + timedelta(days=i) for i in day],
            "group": [("a", "b")[i % 2] for i in cost],
        }
    )
    return dp.open(
        rows,
        name="clinic",
        unit="patient",
        keys={"sex": ["f", "m"], "ward": ["surgery", "medicine", "children"], "group": ["a", "b"]},
        bounds={"age": (0, 120), "cost": (0, 10_000), "admitted": (date(2024, 1, 1), date(2024, 12, 31))},
        max_groups=3,
        max_rows=5,
        budget=dp.ApproxDP(4000, 0.1),
        delta=1e-6,
    )
