"""The process in which questions are computed: its memory and its time are limited, and it can be killed.

It reads tasks as lines of JSON from its standard input and writes events as lines of JSON, and it keeps its tables open
from one question to the next. It charges, computes and records through the library. Before a charge it sends the
charge's key, so that the server can record an incident if the process dies. Printed output is discarded, since it might
hold data.

>>> from dither.server import worker
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dither.errors import DataIncident
from dither.guarantees import Guarantee
from dither.ledger import Charge, Ledger
from dither.publish import plan_file
from dither.publish.record_values import type_of_arrow
from dither.release.pipeline import PROFILE_KEY
from dither.server import errors
from dither.server.cards import served_card, with_ledger_limits
from dither.tables.answer import Answer
from dither.tables.card.accounts import TableAccounts
from dither.tables.card.profile import TableProfile, table_charts
from dither.tables.planning.group_keys import MOST_VALUES
from dither.tables.profile import recorded_profile
from dither.tables.table import Table
from dither.tables.table import open as open_table
from dither.wire.requests import options_from_json, question_from_json
from dither.wire.results import answer_to_json, card_to_json, explanation_to_json

Event = dict[str, Any]
Send = Callable[[Event], None]


class AnnouncedLedger:
    """A ledger that announces each charge before it is made, and remembers whether one was made."""

    def __init__(self, ledger: Ledger, announce: Callable[[str], None]) -> None:
        """Wrap a ledger; ``announce`` is called with the key of each charge before it is made."""
        self._ledger = ledger
        self._announce = announce
        self.charged = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def charge(self, dataset: str, cost: Any, *, key: str, **stated: Any) -> Charge:
        """Announce a charge under ``key``, then make it; ``charged`` says afterwards whether it was new, not a recorded
        answer.
        """
        self._announce(key)
        result = self._ledger.charge(dataset, cost, key=key, **stated)
        self.charged = result.answer is None
        return result


class AnnouncedAccounts(TableAccounts):
    """The accounts of a table whose ledger announces its charges."""

    def __init__(self, accounts: TableAccounts, announce: Callable[[str], None]) -> None:
        """Wrap the accounts of a table and their ledger."""
        super().__init__(accounts.card, accounts.ledger, opened_now=accounts.opened_now)
        self.announced = AnnouncedLedger(accounts.ledger, announce)

    @property
    def ledger(self) -> Any:
        """Return the announcing ledger; refused once the table is closed."""
        super().ledger  # noqa: B018  refused once the table is closed
        return self.announced


class Worker:
    """The open tables of a worker process, and the tasks that it runs on them."""

    def __init__(self, send: Send) -> None:
        """Run tasks and report events by ``send``."""
        self._send = send
        self._number = 0
        self._tables: dict[str, tuple[dict[str, str], Table, AnnouncedLedger]] = {}

    def do(self, task: Mapping[str, Any]) -> Event:
        """Run one task and return its final event. After a charge every error becomes a data incident, so that it
        tells nothing about rows."""
        ledger: AnnouncedLedger | None = None
        self._number = task["number"]
        try:
            table, ledger = self._table(task["card"], bool(task.get("keep_profile")))
            ledger.charged = False
            return {"event": "end", **_ACTIONS[task["do"]](table, task), "charged": ledger.charged}
        except BaseException as error:
            if ledger is not None and ledger.charged:  # the cause may depend on rows, so it is not reported
                document = errors.problem_of(DataIncident())
                return {"event": "end", "problem": document, "charged": True}
            return {"event": "end", "problem": errors.problem_of(error), "kind": type(error).__name__}

    def _announce(self, key: str) -> None:
        """Tell the server that a charge under this key is about to be made."""
        self._send({"event": "charging", "key": key, "number": self._number})

    def _table(self, document: dict[str, str], keep_profile: bool) -> tuple[Table, AnnouncedLedger]:
        """Return the open table of a card as the server sent it (``document``), and its announcing ledger.

        A changed card is opened anew. The table has its newest profile, except that with ``keep_profile``, while
        another one is measured, a table that is open keeps the profile it has and a new one gets none.
        """
        path = document["path"]
        if path in self._tables:
            before, table, ledger = self._tables[path]
            if before == document:
                if not keep_profile:
                    table.card = replace(table.card, profile=recorded_profile(table.card, table.ledger))
                return table, ledger
            del self._tables[path]
            table.close()
        table = open_table(with_ledger_limits(served_card(document)))
        if keep_profile:
            table.card = replace(table.card, profile=None)
        accounts = AnnouncedAccounts(table.accounts, self._announce)
        table.accounts = accounts
        self._tables[path] = document, table, accounts.announced
        return table, accounts.announced


def _open(_table: Table, _task: Mapping[str, Any]) -> Event:
    """Do nothing: the table was opened before."""
    return {}


def _explain(table: Table, task: Mapping[str, Any]) -> Event:
    """Explain a question."""
    asked = question_from_json(task["question"], table)
    stated = options_from_json(task["options"], analyst=task["analyst"])
    return {"explanation": explanation_to_json(asked.explain(options=stated))}


def _ask(table: Table, task: Mapping[str, Any]) -> Event:
    """Release a question, and return its answer and cost."""
    asked = question_from_json(task["question"], table)
    stated = options_from_json(task["options"], analyst=task["analyst"], key=task["key"])
    answer = asked.release(options=stated)
    return {"answers": [answer_to_json(answer)], "cost": str(answer.cost), "parts": [""]}


def _card(table: Table, _task: Mapping[str, Any]) -> Event:
    """Return the public part of the card, with the values of public tables as keys."""

    def values(public: str, column: str) -> Any:
        """Return the values of a column of a public table; None if there are too many."""
        return table.engine.public_values(public, column, MOST_VALUES)

    return {"card": card_to_json(table.card, values)}


def _explain_plan(table: Table, task: Mapping[str, Any]) -> Event:
    """Explain a plan of a publication."""
    plan = plan_file.plan(task["plan"], table)
    explained = plan.explain(analyst=task["analyst"])
    cost, left = str(explained.cost), str(explained.remaining)
    return {"cost": cost, "text": str(explained), "left": left, "refused": explained.refused}


def _release_plan(table: Table, task: Mapping[str, Any]) -> Event:
    """Release a plan, and return each of its tables as an answer."""
    publication = plan_file.plan(task["plan"], table).release(analyst=task["analyst"], key=task["key"])
    parts = [publication.names_of(levels) for levels in publication.tables]
    documents = [answer_to_json(_published(publication, names)) for names in parts]
    named = [", ".join(names) or "all" for names in parts]
    return {"answers": documents, "cost": str(publication.cost), "parts": named}


def _release_profile(table: Table, task: Mapping[str, Any]) -> Event:
    """Release a profile, and return the bars of each table as an answer."""
    profile = table.profile(**task["options"], analyst=task["analyst"])
    entry = table.ledger.newest_answer(table.card.name, PROFILE_KEY)
    receipt = "" if entry is None else str(entry.receipt)
    answers = [_bars(item, profile.cost, receipt) for item in profile.tables.values()]
    return {"answers": list(map(answer_to_json, answers)), "cost": str(profile.cost), "parts": [*profile.tables]}


def _bars(table: TableProfile, cost: Guarantee, receipt: str) -> Answer:
    """Return the charts of a table as an answer: a row for each bar."""
    rows, errors = [], []
    for name, chart in table_charts(table).items():
        (mark,) = chart.marks
        for label, value, error in zip(chart.categories, mark.y, mark.errors, strict=True):
            rows.append((name or "(rows per person)", label, value))
            errors.append(error)
    columns: tuple[str, ...] = ("column", "value", "people")
    return Answer(columns, ("text", "text", "number"), tuple(rows), {"people": tuple(errors)}, cost, receipt=receipt)


def _published(publication: Any, names: tuple[str, ...]) -> Answer:
    """Return a table of a publication as an answer: its keys, its values with their ±, and its whole counts."""
    result = publication.table(*names)
    columns = [name for name in result.column_names if name not in ("lower", "upper")]
    data = result.to_pydict()
    errors = tuple((high - low) / 2 for low, high in zip(data["lower"], data["upper"], strict=True))
    kinds = tuple(type_of_arrow(result.schema.field(name).type) for name in columns)
    rows = tuple(zip(*(data[name] for name in columns), strict=True))
    receipt = str(publication.receipt)
    return Answer(
        tuple(columns), kinds, rows, {"value": errors}, publication.cost, tuple(publication.notes), receipt=receipt
    )


_ACTIONS: dict[str, Callable[[Table, Mapping[str, Any]], Event]] = {
    "open": _open, "explain": _explain, "ask": _ask, "card": _card,
    "explain_plan": _explain_plan, "release_plan": _release_plan, "release_profile": _release_profile,
}  # fmt: skip


def _end_with_the_server() -> None:
    """Let the kernel kill this process when its server ends (Linux only).

    Otherwise it might charge or answer after the next server has recorded incidents for unanswered charges.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


def main() -> None:
    """Run tasks from standard input until it ends, because the server has stopped or has no more.

    The process is started with two arguments, the memory it may use in MB (0: no limit) and the seconds that a task may
    take. Nothing but events is written, since an error message could hold rows.
    """
    memory, seconds = int(sys.argv[1]), int(sys.argv[2])
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which lets running questions end
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _end_with_the_server()
    if memory:
        # what it may write to, not what it may address: allocators reserve gigabytes of addresses, more on more cores
        resource.setrlimit(resource.RLIMIT_DATA, (memory << 20, memory << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold rows

    def send(event: Event) -> None:
        """Write an event as a line of JSON."""
        output.write(json.dumps(event) + "\n")
        output.flush()

    worker = Worker(send)
    for line in sys.stdin:
        signal.alarm(seconds)  # ends this process if the server is gone and cannot kill it
        task = json.loads(line)
        event = worker.do(task)
        signal.alarm(0)
        send({**event, "number": task["number"]})


if __name__ == "__main__":
    main()
