"""The paths that clients use, for both sides to name them alike.

======  ===================================  =======================================================================
GET     ``/api/v1/tables``                   ``{"tables": [{"name": …, "granted": …, "left": …, "open": …}]}``
GET     ``/api/v1/tables/{table}``           ``{"card": …, "left": …, "left_exact": …, "granted": …, "open": …}``
POST    ``/api/v1/tables/{table}/explain``   ``{"question": …, "options": …}`` → an explanation
POST    ``/api/v1/tables/{table}/questions`` ``{"question": …, "options": …}``, header Idempotency-Key → a job
GET     ``/api/v1/jobs/{job}``               a job; ``?wait=30`` answers when it has ended, or after so many seconds
DELETE  ``/api/v1/jobs/{job}``               cancel; what was charged stays charged
GET     ``/api/v1/answers/{answer}``         an answer
======  ===================================  =======================================================================

A job is ``{"id": …, "table": …, "state": "waiting", "answer": null, "answer_id": null, "problem": null, …}``; ended,
its state is ``answered``, ``refused``, ``failed`` or ``cancelled``. Other paths are in the server's OpenAPI document.

>>> explain("my visits")
'/api/v1/tables/my%20visits/explain'
"""

from __future__ import annotations

from urllib.parse import quote

API = "/api/v1"
TABLES = f"{API}/tables"
KEY_HEADER = "Idempotency-Key"
MAX_KEY = 136
"""How many characters a key may have: with the name of whoever asks before it, it fits the keys of a ledger."""


def table(name: str) -> str:
    """What is public about a table.

    >>> table("visits")
    '/api/v1/tables/visits'
    """
    return f"{TABLES}/{quote(name, safe='')}"


def explain(name: str) -> str:
    """How a question would be answered."""
    return f"{table(name)}/explain"


def questions(name: str) -> str:
    """Ask a question."""
    return f"{table(name)}/questions"


def job(id: str, wait: float | None = None) -> str:
    """How a question stands.

    >>> job("j1", wait=30)
    '/api/v1/jobs/j1?wait=30'
    """
    return f"{API}/jobs/{quote(id, safe='')}" + ("" if wait is None else f"?wait={wait:g}")


def answer(id: str) -> str:
    """A recorded answer."""
    return f"{API}/answers/{quote(id, safe='')}"
