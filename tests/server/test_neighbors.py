"""Two tables that differ in one person: what an analyst sees differs in noisy numbers only."""

from __future__ import annotations

import json
import math
import re

import pytest
import sqlalchemy as sa
from serving import BY_REGION, COUNT, fill, until_it_ends

from dither.server import schema
from dither.wire.protocol import API

QUESTIONS = [
    (COUNT, {"epsilon": 0.5}),
    (BY_REGION, {"epsilon": 0.5}),
    ("SELECT AVG(amount) AS m FROM visits WHERE who = 7", {"epsilon": 0.5}),  # nobody at all, on one side
    ("SELECT SUM(amount) AS s FROM visits WHERE who = 7", {"epsilon": 0.5}),
    ("SELECT who, COUNT(*) AS n FROM visits GROUP BY who", {"epsilon": 0.5}),  # refused alike
    (COUNT, {"epsilon": 10_000}),
    ("SELECT nowhere FROM visits", {"epsilon": 0.5}),
]


TICK = 0.5
TABLES = "visits", "visitz"
"""Everybody, and everybody but person 7."""


@pytest.fixture(scope="module")
def server(start_site, tmp_path_factory):
    """A server about both tables."""
    folder = fill(tmp_path_factory.mktemp("pair"))
    fill(folder, name=TABLES[1], without=7)
    site = start_site(folder, tick=TICK, warm=True)
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
        last = until_it_ends(client, first)
    headers = {
        name: value for name, value in last.headers.items() if name not in ("date", "content-length", "x-request-id")
    }
    document = last.json()
    answer = document.pop("answer", None) or {}
    for name in ("id", "answer_id", "asked_at"):
        document.pop(name, None)
    recorded = re.sub(r"-?\d+(\.\d+)?(e-?\d+)?", "#", answer.get("recorded", ""))
    shown = json.dumps(document).replace(table, "visits")
    return first.status_code, waiting, last.status_code, headers, len(last.content) // 256, shown, recorded


@pytest.mark.slow
@pytest.mark.parametrize(("sql", "options"), QUESTIONS, ids=range(len(QUESTIONS)))
def test_neighbors_look_alike(server, sql, options):
    one, other = (seen(server, table, sql, options) for table in TABLES)
    assert one[:4] == other[:4]
    assert abs(one[4] - other[4]) <= 1  # the digits of noisy numbers are more or fewer
    assert one[5:] == other[5:]


def ticks_waited(server, table):
    """How many times a tick was doubled before an answer was shown."""
    body = {"question": BY_REGION.replace("visits", table), "options": {"epsilon": 0.5, "again": True}}
    with server.client("ann") as client:
        job = until_it_ends(client, client.post(f"{API}/tables/{table}/questions?wait=60", json=body)).json()["id"]
    row = server.service.context.store.one(sa.select(schema.jobs).where(schema.jobs.c.id == job))
    # a tick counts from when a worker has taken the question up, which is soon where nobody else asks
    return math.floor(math.log2((row.visible_at - row.asked_at) / TICK))


def test_the_tick_is_the_same(server):
    """Both answers may be seen from the same moment after the question on. Something else on the machine may delay one
    of them by a tick; a person who makes a difference would do so each time."""
    for _ in range(20):
        one, other = (ticks_waited(server, table) for table in TABLES)
        if one == other:
            return
    pytest.fail("the table of neighbors is answered at another tick, each time")
