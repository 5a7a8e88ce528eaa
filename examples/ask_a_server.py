"""Two analysts ask a server about visits that neither of them can read, each within a budget of their own.

The example starts ``dither serve`` in a temporary folder on this machine. A steward adds two analysts and grants each
of them a part of the budget. Ann asks in Python: her question is checked on her side by the card, charged and answered
on the other. Asked again it is the recorded answer, for free, also after a connection that broke: the question has one
key. What Bob spends does not come out of Ann's part, and nobody can ask in another's name.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.figure import Figure

import dither as dp

REGIONS = ("north", "east", "south", "west")
CARD = f"""
name = "visits"
source = "visits.parquet"
ledger = "visits.ledger.sqlite"
unit = "person"
max_rows = 5
rows_without_unit = "drop"
[budget]
epsilon = 4
[columns]
person = {{ type = "integer" }}
region = {{ type = "text", keys = {json.dumps(REGIONS)} }}
amount = {{ type = "number", bounds = [0, 200] }}
"""
SHARES = {"ann": dp.PureDP(2), "bob": dp.PureDP(1)}


def visits(rows: int) -> pa.Table:
    """Made-up visits: three for each person on average, in the region where the person lives."""
    random = np.random.default_rng(4)
    person = random.integers(rows // 3, size=rows)
    region = (4 * random.random(rows // 3) ** 1.5).astype(int)[person]
    amount = np.minimum(random.gamma(2.0, 10.0 + 5 * region), 200)
    return pa.table({"person": person, "region": np.array(REGIONS)[region], "amount": amount})


def add_people(folder: str) -> dict[str, str]:
    """Add the analysts, as a steward does on the page, and make a token for each."""
    from dither.server.config import Config
    from dither.server.roles import Principal
    from dither.server.service import Service

    service = Service.start(Config(folder=folder, warm=False))  # nothing is asked here, so no worker is started
    try:
        steward, tokens = Principal("setup", frozenset({"steward"})), {}
        for name, share in SHARES.items():
            service.users.add(steward, name, roles=["analyst"], password=os.urandom(16).hex())
            service.users.grant(steward, name, "visits", limit=share)
            analyst = Principal(name, frozenset({"analyst"}))
            tokens[name] = service.accounts.create_token(analyst, "example", scopes=["explain", "ask"], days=1).secret
        return tokens
    finally:
        service.stop()


@contextmanager
def served(folder: str) -> Iterator[str]:
    """``dither serve``, in a process of its own; its address."""
    command = [sys.executable, "-m", "dither", "serve", folder, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        yield next(word for word in line.split() if word.startswith("http://"))
    finally:
        process.send_signal(signal.SIGTERM)
        process.stdout.close()
        process.wait(60)


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Serve, ask, ask again, ask for too much; print and plot the answers."""
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(visits(30_000 if quick else 100_000), Path(folder, "visits.parquet"))
        Path(folder, "visits.toml").write_text(CARD, encoding="utf-8")
        tokens = add_people(folder)
        with served(folder) as url:
            ann, bob = (dp.connect(url, token=tokens[name]) for name in ("ann", "bob"))
            question = ann.group_by("region").agg(n=dp.count(), spend=dp.mean("amount"))
            print(question.explain(epsilon=1), end="\n\n")
            answer = question.release(epsilon=1)
            print(answer, end="\n\n")
            again = question.release(epsilon=1)
            bobs = bob.group_by("region").agg(n=dp.count()).release(epsilon=1)
            refusals = []
            for table in (ann, bob):
                try:
                    table.agg(n=dp.count()).release(epsilon=1.5)
                except dp.BudgetExceeded as refusal:
                    refusals.append(str(refusal))
                    print(refusal)
            left = ann.left
            ann.close()
            bob.close()
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    answer.plot("n", axes=figure.subplots())
    place = Path("out") if out is None else out
    place.mkdir(parents=True, exist_ok=True)
    figure.savefig(place / "ask_a_server.png", dpi=150)
    return {"answer": answer, "again": again, "bob": bobs, "refusals": refusals, "left": left}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer visits")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
