"""Headers of every response; what other sites send; bodies that are too large or too slow."""

from __future__ import annotations

import asyncio

import pytest
from serving import PASSWORD
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from dither.server.app import HEADERS, POLICY, LimitedBodies, OwnSite
from dither.server.limits import RateLimit
from dither.wire.protocol import API


@pytest.mark.parametrize(
    "path", ["/", "/sign-in", "/nowhere", f"{API}/tables", f"{API}/openapi.json", "/static/dither.css"]
)
def test_every_response_has_the_headers(site, path):
    response = site.client().get(path, follow_redirects=False)
    for name in HEADERS:
        assert name in response.headers, name
    assert response.headers["content-security-policy"] == POLICY or path != "/nowhere"
    assert "unsafe" not in response.headers["content-security-policy"]
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert "server" not in response.headers


FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "http://testserver.evil.example"},
]


@pytest.mark.parametrize("headers", FOREIGN)
def test_another_site_cannot_send_forms(site, headers):
    client = site.client()
    response = client.post("/sign-in", data={"name": "ann", "password": PASSWORD}, headers=headers)
    assert response.status_code == 403
    assert "dither_session" not in response.headers.get("set-cookie", "")


@pytest.mark.parametrize("headers", FOREIGN)
def test_what_another_site_sends_is_refused_before_anything_looks_at_it(headers):
    client = TestClient(OwnSite(PlainTextResponse("done"), origins=frozenset({"data.example"})))
    assert client.post("/", headers=headers).status_code == 403
    assert client.get("/", headers=headers).status_code == 200
    for own in ({}, {"Origin": "http://testserver"}, {"Origin": "https://data.example"}):
        assert client.post("/", headers=own).status_code == 200


def test_a_form_without_its_token_is_refused(site):
    client = site.client()
    client.cookies.set("dither_session", site.service.auth.start_session("sam", "test"))
    for path in ("/sign-in", "/sign-out", "/people", "/limits"):
        response = client.post(path, data={"name": "eve", "roles": "steward"}, follow_redirects=False)
        assert response.status_code in (403, 404, 405), path
    assert "eve" not in {user.name for user in site.service.users.list(site.people["sam"])}


def test_bodies_are_limited(site):
    client = site.client("ann")
    most = site.service.config.max_body_bytes
    for body in (b"x" * (most + 1), (part for part in [b"x" * most, b"x"])):
        response = client.post(f"{API}/tables/visits/explain", content=body)
        assert (response.status_code, response.json()["title"]) == (413, "InvalidArgument")
    response = client.post(f"{API}/tables/visits/explain", content=b"x", headers={"Content-Length": "-1"})
    assert response.status_code == 413


def test_slow_clients_are_given_up():
    sent: list[dict[str, object]] = []

    async def never(*_: object) -> None:
        raise AssertionError("the request was not complete")

    async def receive() -> dict[str, object]:
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def send(event: dict[str, object]) -> None:
        sent.append(event)

    limited = LimitedBodies(never, max_bytes=1 << 20, seconds=0.05)
    scope = {"type": "http", "headers": [], "method": "POST", "path": f"{API}/tables"}
    asyncio.run(limited(scope, receive, send))
    assert sent[0]["status"] == 408


def test_a_bucket_fills_again():
    now = [100.0]
    limit = RateLimit(60, clock=lambda: now[0])
    for _ in range(60):
        limit.take("ann")
    limit.take("bob")
    now[0] = 100.5
    with pytest.raises(Exception, match="at most 60 a minute"):
        limit.take("ann")
    now[0] = 101.1
    limit.take("ann")
