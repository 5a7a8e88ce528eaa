"""A served folder with people of every role, once for each run; tests that change it have folders of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "ledger" / "survive"))

from argon2 import PasswordHasher
from serving import PASSWORD, fill
from starlette.testclient import TestClient
from throwaway import Server

from dither.server import auth
from dither.server.app import create_app
from dither.server.config import Config
from dither.server.pool import Clock
from dither.server.roles import SCOPES, Principal
from dither.server.service import Service


@pytest.fixture(scope="session", autouse=True)
def real_hasher() -> Iterator[PasswordHasher]:
    """Passwords that are cheap to hash, for the tests: this is the hasher that is not."""
    result = auth.hasher
    auth.hasher = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    yield result
    auth.hasher = result


@dataclass
class Site:
    """A service with its people: a steward sam and sue, an analyst ann and bob, an auditor aud, a reader rea."""

    service: Service
    folder: Path
    people: dict[str, Principal]
    tokens: dict[str, str]

    def client(self, name: str | None = None) -> TestClient:
        headers = {} if name is None else {"Authorization": f"Bearer {self.tokens[name]}"}
        return TestClient(create_app(self.service.config, service=self.service), headers=headers)


def people_of(service: Service) -> tuple[dict[str, Principal], dict[str, str]]:
    link = service.auth.first_link()
    assert link is not None
    session = service.auth.use_link(link.rpartition("/")[2], PASSWORD, "sam")
    people = {"sam": service.auth.principal_of_session(session)}
    roles = {"sue": ["steward"], "ann": ["analyst"], "bob": ["analyst"], "aud": ["auditor"], "rea": ["reader"]}
    for name, theirs in roles.items():
        service.users.add(people["sam"], name, roles=theirs, password=PASSWORD)
        people[name] = service.auth.principal_of_session(service.auth.start_session(name, "test"))
    for name in ("ann", "bob"):
        service.users.grant(people["sam"], name, "visits")
    tokens = {
        name: service.accounts.create_token(who, "test", scopes=SCOPES, days=1).secret for name, who in people.items()
    }
    return people, tokens


@pytest.fixture(scope="session")
def start_site() -> Iterator[Callable[..., Site]]:
    """Starts sites, and stops them at the end."""
    services: list[Service] = []

    def start(folder: Path, clock: Clock | None = None, **options: object) -> Site:
        given = {
            "folder": str(folder), "tick": 0.05, "workers": 1, "warm": False, "questions_per_minute": 9999,
            "sign_ins_per_minute": 500,
        } | options  # fmt: skip
        service = Service.start(Config(**given), clock)  # type: ignore[arg-type]
        services.append(service)
        return Site(service, folder, *people_of(service))

    yield start
    for service in services:
        service.stop()


@pytest.fixture(scope="session")
def site(start_site: Callable[..., Site], tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site that tests share."""
    folder = fill(tmp_path_factory.mktemp("served"))
    fill(folder, name="other")
    return start_site(folder)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Server]:
    result = Server()
    yield result
    result.stop()


@pytest.fixture
def postgresql(postgresql_server: Server) -> Iterator[str]:
    place = postgresql_server.fresh()
    yield place
    postgresql_server.drop(place)
