"""The site that the tests of pages share, in a process of its own, and the browser that looks at it, in another."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from serving import PASSWORD

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE)]
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


@dataclass
class Pages:
    """Where the site is, and what is known of it."""

    port: int
    known: dict[str, str]

    def visitor(self, name: str = "") -> Visitor:
        result = Visitor(self.port)
        if name:
            result.sign_in(name)
        return result


class Visitor:
    """Somebody with cookies, who follows no redirects: an HTTP client without an event loop."""

    def __init__(self, port: int) -> None:
        self.port, self.cookies, self.token = port, dict[str, str](), ""

    def send(self, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, str, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        sent = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()), **headers}
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            text, received = response.read().decode(), response.getheaders()
        finally:
            connection.close()
        for name, value in received:
            if name.lower() == "set-cookie":
                key, _, rest = value.partition("=")
                self.cookies[key] = rest.partition(";")[0].strip('"')
        token = re.search('name="csrf" value="([0-9a-f]*)"', text)
        self.token = token[1] if token else self.token
        return response.status, text, {name.lower(): value for name, value in received}

    def get(self, path: str) -> tuple[int, str, dict[str, str]]:
        return self.send("GET", path)

    def post(self, path: str, **fields: Any) -> tuple[int, str, dict[str, str]]:
        body = urlencode({"csrf": self.token, **fields}, doseq=True)
        return self.send("POST", path, body, **{"Content-Type": "application/x-www-form-urlencoded"})

    def sign_in(self, name: str) -> None:
        self.get("/sign-in")
        status, _, _ = self.post("/sign-in", name=name, password=PASSWORD, next="/")
        assert status == 303
        self.get("/account")


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    command = [sys.executable, str(HERE / "page_site.py"), str(tmp_path_factory.mktemp("pages"))]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        known = json.loads(process.stdout.readline())
        yield Pages(int(known["port"]), known)
    finally:
        process.terminate()
        process.wait(600)
        process.stdout.close()


@pytest.fixture(scope="session")
def browse(pages: Pages) -> Iterator[Callable[[str], Any]]:
    """Run a scenario of ``page_browser.py``, in one browser for all of them, and read what it saw."""
    path = os.environ.get("DITHER_TEST_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.fail(f"none of {', '.join(NAMES)} is installed: run make browser, which installs one or says how")

    site = {"base": f"http://127.0.0.1:{pages.port}", "known": pages.known, "browser": path}
    command = [sys.executable, str(HERE / "page_browser.py")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(site) + "\n")

    def run(scenario: str) -> Any:
        process.stdin.write(scenario + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, "the browser has ended: see its errors above"
        result = json.loads(line)
        assert "error" not in result, result
        return result

    try:
        yield run
    finally:
        process.stdin.close()
        process.wait(600)
        process.stdout.close()
