"""Two tables that differ in one person: what an analyst sees differs in noisy numbers only."""

from __future__ import annotations

import json
import re

import pytest
from serving import BY_REGION, COUNT, fill

from dither.server.endpoints import API

QUESTIONS = [
    (COUNT, {"epsilon": 0.5}),
    (BY_REGION, {"epsilon": 0.5}),
    ("SELECT AVG(amount) AS m FROM visits WHERE who = 7", {"epsilon": 0.5}),  # nobody at all, on one side
    ("SELECT SUM(amount) AS s FROM visits WHERE who = 7", {"epsilon": 0.5}),
    ("SELECT who, COUNT(*) AS n FROM visits GROUP BY who", {"epsilon": 0.5}),  # refused alike
    (COUNT, {"epsilon": 10_000}),
    ("SELECT nowhere FROM visits", {"epsilon": 0.5}),
]


TABLES = "visits", "visitz"
"""Everybody, and everybody but person 7."""


@pytest.fixture(scope="module")
def server(start_site, tmp_path_factory):
    """A server about both tables; with ticks that a loaded machine does not miss."""
    folder = fill(tmp_path_factory.mktemp("pair"))
    fill(folder, name=TABLES[1], without=7)
    site = start_site(folder, tick=2.0, warm=True)
    site.service.users.grant(site.people["sam"], "ann", TABLES[1])
    for table in TABLES:
        seen(site, table, COUNT, {"epsilon": 0.25})  # the first question waits until there is a process for it
    return site


def seen(site, table, sql, options):
    """What an analyst sees: status, names of headers, the class of the length, states, and digits as one letter."""
    with site.client("ann") as client:
        body = {"question": {"sql": sql.replace("visits", table)}, "options": options}
        first = client.post(f"{API}/tables/{table}/questions", json=body)
        waiting = first.json()["state"] if first.status_code == 202 else first.text
        job = first.json().get("id", "")
        last = client.get(f"{API}/jobs/{job}?wait=30") if first.status_code == 202 else first
    headers = {name: value for name, value in last.headers.items() if name not in ("date", "content-length")}
    document = last.json()
    answer = document.pop("answer", None) or {}
    for name in ("id", "answer_id", "asked_at"):
        document.pop(name, None)
    recorded = re.sub(r"-?\d+(\.\d+)?(e-?\d+)?", "#", answer.get("recorded", ""))
    shown = json.dumps(document).replace(table, "visits")
    return first.status_code, waiting, last.status_code, headers, len(last.content) // 256, shown, recorded


@pytest.mark.parametrize(("sql", "options"), QUESTIONS, ids=range(len(QUESTIONS)))
def test_neighbors_look_alike(server, sql, options):
    one, other = (seen(server, table, sql, options) for table in TABLES)
    assert one[:4] == other[:4]
    assert abs(one[4] - other[4]) <= 1  # the digits of noisy numbers are more or fewer
    assert one[5:] == other[5:]


def test_the_tick_is_the_same(server):
    """Both answers may be seen from the same moment after the question on."""
    import sqlalchemy as sa

    from dither.server import schema

    delays = []
    for table in TABLES:
        with server.client("ann") as client:
            body = {"question": BY_REGION.replace("visits", table), "options": {"epsilon": 0.5, "again": True}}
            job = client.post(f"{API}/tables/{table}/questions?wait=30", json=body).json()["id"]
        row = server.service.context.store.one(sa.select(schema.jobs).where(schema.jobs.c.id == job))
        delays.append(row.visible_at - row.asked_at)
    # a tick counts from when a worker has taken the question up, at once where nobody else asks
    assert all(2.0 <= delay < 3.9 for delay in delays)
