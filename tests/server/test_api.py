"""The JSON interface: its description, its refusals, and that a name comes from a token alone."""

from __future__ import annotations

import json
import re

import pytest
from serving import BY_REGION, COUNT, until_it_ends
from starlette.routing import Route

from dither.server import api
from dither.server.api import ENDPOINTS, openapi
from dither.server.config import Config
from dither.server.errors import problem_of
from dither.server.roles import SCOPES
from dither.wire.protocol import API
from support import for_each


def asked(client, sql=COUNT, table="visits", key=None, **options):
    body = {"question": {"sql": sql}, "options": {"epsilon": 0.5} | options}
    headers = {} if key is None else {"Idempotency-Key": key}
    return until_it_ends(client, client.post(f"{API}/tables/{table}/questions?wait=60", json=body, headers=headers))


def is_problem(response, status, title=None):
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert response.status_code == body["status"] == status
    assert title is None or body["title"] == title
    assert body["detail"]
    return True


# -- the document and the routes --------------------------------------------------------------------------------------


def test_the_document_describes_every_route_and_no_other(site):
    served = {
        (method, route.path)
        for route in api.ROUTES
        if isinstance(route, Route) and route.path not in (f"{API}/openapi.json", f"{API}/{{rest:path}}")
        for method in (route.methods or set()) - {"HEAD"}
    }
    document = site.client().get(f"{API}/openapi.json").json()
    assert document == json.loads(json.dumps(openapi()))
    stated = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert stated == served
    operations = [item for methods in document["paths"].values() for item in methods.values()]
    assert len({item["operationId"] for item in operations}) == len(operations)
    for path, methods in document["paths"].items():
        for item in methods.values():
            names = {p["name"] for p in item["parameters"] if p["in"] == "path"}
            assert names == set(re.findall(r"\{(\w+)\}", path))


KINDS = {
    "null": None, "boolean": True, "integer": 7, "number": 0.5, "string": f"1:{0:064}", "array": [],
    "object": {"kind": "pure", "epsilon": "1"},
}  # fmt: skip
"""A value of each kind that JSON has; the text can be read as a receipt, and the object as a guarantee."""
WHOLE = ("0", "7", "1.5", "-1", "many", "", "１")
"""Texts for a parameter that is a whole number; the first two are."""


def stated_kinds(schema):
    return {schema["type"]} if isinstance(schema["type"], str) else set(schema["type"])


def operations():
    """Every operation of the document, with a path that leads to it, and the kinds of its fields and parameters."""
    for path, methods in openapi()["paths"].items():
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            fields = {name: stated_kinds(schema) for name, schema in body.get("properties", {}).items()}
            query = {p["name"]: stated_kinds(p["schema"]) for p in operation["parameters"] if p["in"] == "query"}
            yield method, re.sub(r"\{\w+\}", "x", path), fields, query


def filled(fields):
    return {name: KINDS[min(kinds - {"null"})] for name, kinds in fields.items()}


def is_refused(response, name):
    """Whether what is wrong is the kind of this parameter or field; a table that is not there is not."""
    assert response.status_code < 500, response.text
    return response.status_code == 422 and response.json()["name"] == name and "got" in response.json()


def test_the_document_says_of_every_parameter_what_the_route_reads(site):
    client = site.client("sam")
    tried = set()

    def check(method, path, fields, query):
        for name, kinds in query.items():
            for value in WHOLE:
                response = client.request(method, path, params={name: value}, json=filled(fields) or None)
                assert is_refused(response, name) == (kinds == {"integer"} and value not in WHOLE[:2]), (name, value)
            tried.add((name, *kinds))

    for_each(operations(), check)
    texts, numbers = ("table", "user", "before"), ("wait", "after", "most")
    assert tried == {*((name, "string") for name in texts), *((name, "integer") for name in numbers)}


def test_the_document_says_of_every_field_what_the_route_reads(site):
    client = site.client("sam")
    tried = set()

    def check(method, path, fields, _query):
        for name, kinds in fields.items():
            for kind, value in KINDS.items():
                response = client.request(method, path, json=filled(fields) | {name: value})
                assert is_refused(response, name) == (kind not in kinds), (name, kind, response.text)
            tried.add(name)

    for_each(operations(), check)
    assert tried >= {"question", "options", "limit", "title", "receipt", "each_person", "analyst"}


def test_a_wrong_parameter_is_refused_before_the_question_is_asked(site):
    client, body = site.client("bob"), {"question": COUNT, "options": {"epsilon": 0.25}}
    before = client.get(f"{API}/budget").json()
    for query in ("wait=soon", "wait=1&again=1"):
        assert is_problem(client.post(f"{API}/tables/visits/questions?{query}", json=body), 422)
    assert client.get(f"{API}/jobs").json() == {"jobs": []}
    assert client.get(f"{API}/budget").json() == before


def test_a_method_that_is_not_served_is_answered_with_those_that_are(site):
    client = site.client("ann")
    served = {}
    for endpoint in ENDPOINTS:
        served.setdefault(endpoint.path, set()).add(endpoint.method)

    def check(path, methods):
        allowed = methods | ({"HEAD"} if "GET" in methods else set())
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"} - methods:
            response = client.request(method, API + re.sub(r"\{\w+\}", "x", path))
            assert is_problem(response, 405)
            assert response.headers["allow"] == ", ".join(sorted(allowed))

    for_each(served.items(), check)
    assert is_problem(client.get(f"{API}/nowhere"), 404)
    assert client.post(f"{API}/openapi.json").headers["allow"] == "GET, HEAD"
    assert client.request("PUT", "/sign-in").headers["allow"] == "GET, HEAD, POST"


def test_every_endpoint_needs_a_token(site):
    client = site.client()
    for endpoint in ENDPOINTS:
        path = API + re.sub(r"\{\w+\}", "x", endpoint.path)
        for headers in ({}, {"Authorization": "Bearer dither_wrong"}, {"Authorization": "Basic eDp5"}):
            response = client.request(endpoint.method, path, headers=headers)
            assert is_problem(response, 401, "NotSignedIn")
            assert response.headers["www-authenticate"] == "Bearer"


def test_a_session_cookie_is_no_token(site):
    secret = site.service.auth.start_session("ann", "test")
    client = site.client()
    client.cookies.set("dither_session", secret)
    assert is_problem(client.get(f"{API}/tables"), 401)
    assert is_problem(client.get(f"{API}/tables", headers={"Authorization": f"Bearer {secret}"}), 401)


# -- asking -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ask_wait_and_ask_again(site):
    with site.client("ann") as client:
        first = asked(client, BY_REGION, key="api-1")
        assert first.status_code == 200
        job = first.json()
        assert job["state"] == "answered"
        assert job["answer"]["replayed"] is False
        again = asked(client, BY_REGION, key="api-1").json()
        assert again["answer"]["recorded"] == job["answer"]["recorded"]
        assert again["answer"]["replayed"] is True
        answer = client.get(f"{API}/answers/{job['answer_id']}").json()
        assert answer["recorded"] == job["answer"]["recorded"]
        assert client.get(f"{API}/jobs/{job['id']}").json()["state"] == "answered"
        lines = client.get(f"{API}/answers?most=1").json()["answers"]
        assert [line["id"] for line in lines] == [job["answer_id"]]
        assert client.get(f"{API}/budget").json()["budgets"][0]["table"] == "visits"


def test_without_waiting_the_answer_is_a_job(site):
    with site.client("ann") as client:
        body = {"question": {"sql": COUNT}, "options": {"epsilon": 0.5, "again": True}}
        response = client.post(f"{API}/tables/visits/questions", json=body)
        assert response.status_code == 202
        job = response.json()
        assert (job["state"], job["answer"], job["answer_id"]) == ("waiting", None, None)
        assert until_it_ends(client, response).json()["state"] == "answered"


@pytest.mark.slow
def test_explain_and_card(site):
    with site.client("ann") as client:
        body = {"question": {"sql": COUNT}, "options": {"epsilon": 0.5}}
        assert client.post(f"{API}/tables/visits/explain", json=body).json()["cost"] == {
            "kind": "pure",
            "epsilon": "1/2",
        }
        table = client.get(f"{API}/tables/visits").json()
        assert table["card"]["columns"]["amount"]["bounds"] == [0, 100]
        for secret in (str(site.folder), "visits.csv", "sqlite", "incident"):
            assert secret not in json.dumps(table).replace("max_incidents", "")


# -- names, answers and keys of others --------------------------------------------------------------------------------


@pytest.mark.parametrize("header", ["X-User", "X-Forwarded-User", "Remote-User", "user-name", "X-Analyst", "From"])
def test_a_name_in_a_header_is_nobody(site, header):
    with site.client("bob") as client:
        response = client.post(
            f"{API}/tables/visits/questions?wait=60",
            json={"question": COUNT, "options": {"epsilon": 0.25}},
            headers={header: "ann"},
        )
        job = until_it_ends(client, response).json()
        mine = client.get(f"{API}/answers?most=1").json()["answers"][0]
        assert (mine["id"], mine["analyst"]) == (job["answer_id"], "bob")


@pytest.mark.parametrize("part", ["options", "body", "query", "question"])
def test_a_name_in_the_request_is_refused(site, part):
    with site.client("bob") as client:
        body = {"question": {"sql": COUNT}, "options": {"epsilon": 0.25}}
        path = f"{API}/tables/visits/questions"
        if part == "query":
            path += "?analyst=ann"
        else:
            {"options": body["options"], "body": body, "question": body["question"]}[part]["analyst"] = "ann"
        assert is_problem(client.post(path, json=body), 422)


def test_answers_of_others_do_not_exist(site):
    with site.client("ann") as ann, site.client("bob") as bob, site.client("rea") as rea, site.client("sam") as sam:
        answer = asked(ann, key="private").json()["answer_id"]
        unknown = bob.get(f"{API}/answers/{'0' * 32}")
        for client in (bob, rea, sam):
            response = client.get(f"{API}/answers/{answer}")
            assert is_problem(response, 404)
            assert response.json() == unknown.json()
        assert ann.post(f"{API}/answers/{answer}/propose", json={"title": "Visits"}).json()["proposed"]
        assert is_problem(rea.get(f"{API}/answers/{answer}"), 404)
        assert sam.post(f"{API}/answers/{answer}/publish", json={"title": "Visits"}).status_code == 200
        assert rea.get(f"{API}/answers/{answer}").status_code == 200
        assert [line["title"] for line in rea.get(f"{API}/published").json()["answers"]] == ["Visits"]
        assert sam.delete(f"{API}/answers/{answer}/publish").status_code == 200
        assert is_problem(rea.get(f"{API}/answers/{answer}"), 404)


def test_roles_hold_over_http(site):
    with site.client("rea") as rea, site.client("ann") as ann, site.client("aud") as aud, site.client("sam") as sam:
        assert is_problem(rea.get(f"{API}/tables"), 403, "Forbidden")
        assert is_problem(ann.get(f"{API}/events"), 403, "Forbidden")
        assert is_problem(aud.post(f"{API}/grants", json={"user": "rea", "table": "visits"}), 403, "Forbidden")
        assert aud.post(f"{API}/tables/visits/verify", json={}).json()["ok"] is True
        assert ":" in aud.get(f"{API}/tables/visits/receipt").json()["receipt"]
        assert aud.get(f"{API}/tables/visits/entries?most=1").json()["entries"][0]["kind"] == "open"
        limit = {"table": "visits", "limit": {"kind": "pure", "epsilon": "5000"}, "reason": "more"}
        assert is_problem(sam.post(f"{API}/limits", json=limit), 403, "Forbidden")  # not with a token
        assert {line["table"] for line in sam.get(f"{API}/incidents").json()["tables"]} == {"visits", "other"}
        assert sam.get(f"{API}/tables/visits/budget").json()["unit"] == "epsilon"


def test_a_token_has_its_scopes_only(site):
    ann = site.people["ann"]
    token = site.service.accounts.create_token(ann, "explains", scopes=["explain"], days=1)
    client = site.client()
    client.headers["Authorization"] = f"Bearer {token.secret}"
    assert client.get(f"{API}/tables").status_code == 200
    assert is_problem(asked(client), 403, "Forbidden")
    site.service.accounts.revoke_token(ann, token.token.id)
    assert is_problem(client.get(f"{API}/tables"), 401)


# -- what people try --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/tables/..%2f..%2fetc%2fpasswd", "/tables/../../etc/passwd", "/tables/visits.toml", "/tables/%00",
        "/tables/visits%2fbudget", "/answers/..%2fanswers", "/jobs/recorded-", "/plans/..%2fvisits", "/nowhere", "/",
    ],
)  # fmt: skip
def test_paths_that_lead_outside(site, path):
    with site.client("ann") as client:
        response = client.get(API + path)
        assert response.status_code in (403, 404)
        assert "Traceback" not in response.text
        assert str(site.folder) not in response.text


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM visits", "SELECT who FROM visits", "SELECT COUNT(*) AS n FROM read_csv('/etc/passwd')",
        "SELECT COUNT(*) AS n FROM '/etc/passwd'", "SELECT COUNT(*) AS n FROM other", "ATTACH '/etc/passwd' AS x",
        "COPY visits TO '/tmp/x'", "SELECT COUNT(*) AS n FROM visits; DROP TABLE visits", "PRAGMA database_list",
        "SELECT COUNT(*) AS n FROM information_schema.tables", "SELECT getenv('HOME') AS h, COUNT(*) AS n FROM visits",
        "SELECT COUNT(*) AS n FROM duckdb_settings()", "INSTALL httpfs", "SELECT MAX(region) AS m FROM visits",
        "SELECT COUNT(*) AS n FROM visits WHERE region = (SELECT content FROM read_text('/etc/passwd'))",
        "SELECT 1/0 AS n FROM visits", "SELECT error(region) AS e, COUNT(*) AS n FROM visits GROUP BY 1", "", "\0",
    ],
)  # fmt: skip
def test_sql_that_reaches_outside(site, sql):
    ledger = site.service.context.folder.ledger("visits")
    before = ledger.head
    with site.client("ann") as client:
        response = asked(client, sql)
        if response.status_code == 200:
            assert response.json()["state"] == "refused"
            problem = response.json()["problem"]
        else:
            assert is_problem(response, 422)
            problem = response.json()
        assert "root:" not in json.dumps(problem)
        assert problem["title"] != "InternalError"
    assert ledger.head == before


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b'{"question": 1}', b'{"question": {}}', b'{"question": {"sql": 1}}', b"\xff\xfe",
        b'{"question": {"sql": "SELECT 1", "tree": {}}}', b'{"question": {"tree": {"is": "Query"}}}',
        b'{"question": "SELECT COUNT(*) AS n FROM visits", "options": []}', b"[" * 100_000,
        b'{"question": "x", "options": {"epsilon": NaN}}', b'{"question": "x", "question": "y"}',
        b'{"question": "SELECT COUNT(*) AS n FROM visits", "options": {"epsilon": 1e999}}',
        b'{"question": "SELECT COUNT(*) AS n FROM visits", "options": {"epsilon": "1"}}',
        b'{"question": "SELECT COUNT(*) AS n FROM visits", "options": {"key": "x"}}',
    ],
    ids=range(17),
)  # fmt: skip
def test_bodies_that_are_not_right(site, body):
    with site.client("ann") as client:
        response = until_it_ends(client, client.post(f"{API}/tables/visits/questions?wait=60", content=body))
        if response.status_code == 200:
            assert response.json()["state"] == "refused"
        else:
            assert is_problem(response, 422)


@pytest.mark.parametrize("key", ["", "x" * 500, "tab\there", "ß", "a" * 64])
def test_keys_that_are_not_right(site, key):
    with site.client("ann") as client:
        response = client.post(
            f"{API}/tables/visits/questions?wait=60",
            json={"question": COUNT, "options": {"epsilon": 0.5}},
            headers={"Idempotency-Key": key.encode("latin-1")},
        )
        response = until_it_ends(client, response)
        if key == "a" * 64:  # 64 hexadecimal digits are a key of a question's own, but not below a name
            assert response.json()["state"] == "answered"
        else:
            assert is_problem(response, 422)


def test_an_error_that_nobody_foresaw_says_nothing(site, monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("patient 17 lives in Bonn")

    monkeypatch.setattr(site.service.context.store, "rows", fail)
    with site.client("ann") as client:
        response = client.get(f"{API}/tables")
    assert response.status_code == 500
    assert "Bonn" not in response.text + caplog.text
    assert "RuntimeError" in caplog.text


def test_errors_of_the_ledger_say_no_paths():
    from dither.errors import LedgerError

    assert "/secret" not in problem_of(LedgerError("ledger: /secret/place"))["detail"]


def test_rate_limits(site):
    from dataclasses import replace

    from dither.server.limits import RateLimit

    context = replace(site.service.context, requests=RateLimit(20, clock=lambda: 0.0))
    limited = replace(site, service=replace(site.service, context=context))
    with limited.client("ann") as client:
        statuses = [client.get(f"{API}/published").status_code for _ in range(25)]
        assert statuses.count(200) == 20
        response = client.get(f"{API}/published")
        assert is_problem(response, 429)
        assert int(response.headers["retry-after"]) >= 1
    assert Config(folder=".").requests_per_minute > 100
    assert set(SCOPES)
