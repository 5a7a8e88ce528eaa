"""Every request: headers, other sites, who sends it and how often, bodies that are too large or too slow."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from itertools import product

import pytest
from serving import PASSWORD
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from dither.server import api
from dither.server.app import HEADERS, POLICY, BodyLimit, SameOrigin, create_app
from dither.server.errors import TooMany
from dither.server.limits import RateLimit
from dither.server.pages.render import SESSION_COOKIE
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
    client = TestClient(SameOrigin(PlainTextResponse("done"), origins=frozenset({"data.example"})))
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

    limited = BodyLimit(never, max_bytes=1 << 20, seconds=0.05)
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


class Full:
    """A limit that is reached, whoever it is that counts, and under which names."""

    def __init__(self):
        self.names = set()

    def take(self, name):
        self.names.add(name)
        raise TooMany.of("requests", "at most 0 a minute", 1)


FREE = {"/static", "/health"}
"""What reads no database and knows nobody."""


def test_every_route_counts_the_requests_of_everybody(site):
    full = Full()
    context = replace(site.service.context, requests=full, sign_ins=full)
    service = replace(site.service, context=context)
    session = site.service.auth.start_session("ann", "test")
    guests = [
        ({}, "address testclient"),
        ({"Authorization": f"Bearer {site.tokens['ann']}", "Cookie": f"{SESSION_COOKIE}={session}"}, "user ann"),
        ({"Authorization": "Bearer dither_unknown", "Cookie": f"{SESSION_COOKIE}=unknown"}, "address testclient"),
    ]
    app = create_app(service.config, service=service)
    routes = [route for route in app.routes if route.path not in FREE]
    assert len(routes) > 70
    for headers, name in guests:
        client = TestClient(app, headers=headers)
        for route, part in product(routes, ("x", "visits")):  # whether there is such a table or not
            full.names.clear()
            path = re.sub(r"\{[\w:]+\}", part, route.path)
            for method in route.methods - {"HEAD"}:
                response = client.request(method, path, follow_redirects=False)
                assert (response.status_code, response.headers["retry-after"]) == (429, "1"), (method, path)
            assert full.names == {name}, path


def test_no_request_is_free_whatever_its_path_and_method(site):
    """Whoever is over the limit, or has no token, learns from no status whether a path or a table exists."""
    full = Full()
    open_app = create_app(site.service.config, service=site.service)
    service = replace(site.service, context=replace(site.service.context, requests=full))
    over, anonymous = TestClient(create_app(service.config, service=service)), TestClient(open_app)
    for path in ("tables", "tables/visits/questions", "tables/x/questions", "nowhere", "jobs/1", ""):
        for method in ("GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            body = {"content": b"x" * 10**6} if method == "POST" else {}
            assert over.request(method, f"{api.API}/{path}", **body).status_code == 429, (method, path)
            assert anonymous.request(method, f"{api.API}/{path}", **body).status_code == 401, (method, path)
    for path in ("/nowhere", "/tables/visits", "/welcome/x", "/ready", "/metrics"):
        assert over.get(path).status_code == 429, path
