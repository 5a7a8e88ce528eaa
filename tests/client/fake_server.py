"""A small server in this process that speaks the client's part of the interface, and fails in the ways that are asked.

The rows are asked through the library itself. It is for what a real server does not do on request: break connections,
redirect, answer with somebody else's page. The contract of both sides is tested against the real one.
"""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import dither as dp
from dither.errors import DitherError
from dither.ledger.accounts import Remaining
from dither.tables.codec import to_json
from dither.wire.protocol import problem_to_json
from dither.wire.requests import options_from_json, question_from_json
from dither.wire.results import answer_to_json, card_to_json, explanation_to_json

TOKEN = "dither_secret-token"


class FakeServer:
    """``faults`` are one for each request: "drop" before the work, "lose" after it, or what to answer with."""

    def __init__(self, table: dp.Table) -> None:
        self.table = table
        self.faults: list[Any] = []
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.work: Counter[str] = Counter()
        self.jobs: dict[str, dict[str, Any]] = {}
        self.waiting: list[str] = []
        self.lock = threading.Lock()

    def reply(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
        path, _, _query = path.partition("?")
        parts = path.removeprefix("/api/v1/").split("/")
        if headers.get("authorization") != f"Bearer {TOKEN}":
            return 401, problem_to_json("NotSignedIn", 401, dp.AccessDenied("sign-in", "a token", "none", "sign in"))
        try:
            return 200, self.document(method, parts, headers, json.loads(body) if body else {})
        except DitherError as error:
            return 400, problem_to_json(type(error).__name__, 400, error)

    def document(self, method: str, parts: list[str], headers: dict[str, str], body: dict[str, Any]) -> Any:
        name = self.table.card.name
        if parts == ["tables"]:
            left = to_json(Remaining("no limit"))
            return {"tables": [{"name": name, "granted": True, "left": left, "open": True}]}
        if parts[0] == "tables" and parts[1] != name:
            raise dp.InvalidArgument("table", "one that you may see", "none", "check the name")
        if parts == ["tables", name]:
            return {"card": card_to_json(self.table.card), "left": to_json(self.table.accounts.remaining(None))}
        if parts[0] == "jobs":
            job = self.jobs[parts[1]]
            if method == "DELETE":
                job["state"] = "cancelled"
                self.work["cancel"] += 1
            elif self.waiting:
                return {**job, "state": self.waiting.pop(0)}
            return job
        with self.lock:
            question = question_from_json(body["question"], self.table)
            stated = options_from_json(body["options"], key=headers.get("idempotency-key"))
            if parts[2] == "explain":
                return explanation_to_json(question.explain(options=stated))
            self.work["ask"] += 1
            number = f"n{len(self.jobs)}"
            answer = question.release(options=stated)
            self.work["paid"] += not answer.replayed
        self.jobs[number] = {"id": number, "state": "answered", "answer": answer_to_json(answer), "problem": None}
        return {**self.jobs[number], "state": "waiting"} if self.waiting else self.jobs[number]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeServer

    def do_GET(self) -> None:
        fault = self.fake.faults.pop(0) if self.fake.faults else None
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.fake.seen.append((self.command, self.path, headers))
        if fault == "drop":
            return self.drop()
        if isinstance(fault, tuple):
            return self.send(*fault)
        status, document = self.fake.reply(self.command, self.path, headers, body)
        if fault == "lose":
            return self.drop()
        return self.send(status, json.dumps(document).encode(), {})

    do_POST = do_DELETE = do_GET

    def drop(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def fake_server(table: dp.Table, tls: Any = None):
    """The server, and its address."""
    fake = FakeServer(table)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"fake": fake}))
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a connection that was broken on purpose
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake, f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
