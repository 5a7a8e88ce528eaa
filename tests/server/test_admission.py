"""Every request is identified and counted before anything else is done for it, whatever its path."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

from starlette.testclient import TestClient

from dither.server import api
from dither.server.app import create_app
from dither.server.errors import TooMany
from dither.server.pages.render import SESSION_COOKIE


class Full:
    """A limit that is reached, whoever it is that counts, and under which names."""

    def __init__(self):
        self.names = set()

    def take(self, name):
        self.names.add(name)
        raise TooMany("requests", "at most 0 a minute", 1)


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
