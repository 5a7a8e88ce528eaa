"""A small site for the tests of pages: two tables, one of them with hostile names, and people of every role.

It is served by a process of its own (``python page_site.py FOLDER``), so that pytest's own has no
event loop.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from argon2 import PasswordHasher

from dither.cli import demo
from dither.guarantees import ApproxDP, PureDP
from dither.server import auth
from dither.server.config import Config
from dither.server.roles import Principal
from dither.server.run import listen
from dither.server.service import Service

PASSWORD = "correct horse battery"
HOSTILE = "<script>document.title='broken'</script>"
HOSTILE_COLUMN = "<img src=x onerror=document.title='broken'>"
HOSTILE_KEYS = (HOSTILE, "\"><svg onload=document.title='broken'>", "{{ 7 * 7 }}", "a\u202eb", "&amp;")
HOSTILE_CARD = f"""
name = "hostile"
source = "hostile.parquet"
ledger = "hostile.ledger.sqlite"
[budget]
epsilon = 10
[columns]
{json.dumps(HOSTILE_COLUMN)} = {{ type = "text", keys = {json.dumps(HOSTILE_KEYS)} }}
weight = {{ type = "number" }}
"""
CLOSED_CARD = """
name = "closed"
source = "hostile.parquet"
ledger = "closed.ledger.sqlite"
max_incidents = 1
[budget]
epsilon = 10
[columns]
weight = { type = "number", bounds = [0, 2] }
"""
PLAN = """
card = "visits.toml"
max_rows = 12
tables = [[], ["region"]]
[budget]
epsilon = 0.25
delta = 1e-8
"""
PEOPLE = {
    "sam": ("steward",),
    "sue": ("steward",),
    "ann": ("analyst",),
    "new": ("analyst",),
    "aud": ("auditor",),
    "rea": ("reader",),
}


def write_folder(folder: Path, rows: int = 20_000) -> None:
    """The cards and their data."""
    pq.write_table(demo.make_visits(rows), folder / "visits.parquet")
    (folder / "visits.toml").write_text(demo.CARD, encoding="utf-8")
    (folder / "tables.toml").write_text(PLAN, encoding="utf-8")
    keys = [HOSTILE_KEYS[i % len(HOSTILE_KEYS)] for i in range(1000)]
    pq.write_table(pa.table({HOSTILE_COLUMN: keys, "weight": [1.0] * 1000}), folder / "hostile.parquet")
    (folder / "hostile.toml").write_text(HOSTILE_CARD, encoding="utf-8")
    (folder / "closed.toml").write_text(CLOSED_CARD, encoding="utf-8")
    (folder / "half-typed.toml").write_text(f'name = "{HOSTILE}', encoding="utf-8")


def fill(service: Service) -> dict[str, str]:
    """People, grants, answers, a proposal, a pending change; what the tests need to know of them."""
    root = Principal("root", frozenset({"steward"}))
    for name, roles in PEOPLE.items():
        service.users.add(root, name, roles=roles, password=PASSWORD)
    for name in ("ann", "new"):
        service.users.grant(root, name, "visits")
    service.users.grant(root, "ann", "hostile")
    service.users.grant(root, "ann", "closed")
    ann, sam = (Principal(name, frozenset(PEOPLE[name])) for name in ("ann", "sam"))
    question = f'SELECT "{HOSTILE_COLUMN}", COUNT(*) AS n FROM hostile GROUP BY "{HOSTILE_COLUMN}"'
    ids = {}
    for label, table, sql, epsilon in (
        ("answer", "visits", demo.BY_REGION, 0.5),
        ("hostile", "hostile", question, 1),
        ("shared", "hostile", "SELECT COUNT(*) AS n FROM hostile", 1),
    ):
        job = service.questions.ask(ann, table, sql, {"epsilon": epsilon})
        while job.state == "waiting":
            job = service.questions.job(ann, job.id)
        assert job.answer_id is not None, job
        ids[label] = job.answer_id
    service.answers.propose(ann, ids["hostile"], HOSTILE)
    service.answers.propose(ann, ids["shared"], HOSTILE)
    service.answers.propose(ann, ids["answer"], "Visits by region")
    service.answers.publish(sam, ids["answer"], "Visits by region in 2024")
    change = service.budgets.propose(sam, "visits", ApproxDP(3, 1e-6), reason=f"more questions {HOSTILE}")
    ids["change"] = change.id
    ledger = service.context.folder.ledger("closed")
    ledger.record_incident(ledger.charge("closed", PureDP(0.5)))
    service.budgets.propose(sam, "closed", PureDP(4), reason="less is enough")
    link = service.users.add(root, "welcome", roles=["analyst"])[1]
    ids |= {"link": link.rpartition("/")[2], "process": str(os.getpid())}
    service.questions.explain(ann, "visits", demo.BY_REGION, {"epsilon": 0.5})  # its process is there from now on
    ids["explaining"] = " ".join(map(str, service.context.explaining.pids))
    service.accounts.create_token(ann, HOSTILE, scopes=["explain", "ask"])
    return ids


def serve(folder: Path) -> None:
    """Start the service and the application; prints one line of JSON when it listens, with the port."""
    import uvicorn

    from dither.server.app import create_app

    auth.hasher = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)  # cheap, for the tests
    write_folder(folder)
    limits = {"sign_ins_per_minute": 1000, "requests_per_minute": 100_000}
    with listen(Config(folder=str(folder), port=0)) as listener:
        config = Config(folder=str(folder), port=listener.getsockname()[1], tick=0.05, **limits)
        service = Service.start(config)
        try:
            known = fill(service) | {"port": str(config.port)}
            server = uvicorn.Server(uvicorn.Config(create_app(config, service=service), log_level="warning"))
            print(json.dumps(known), flush=True)
            server.run(sockets=[listener])
        finally:
            service.stop()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
