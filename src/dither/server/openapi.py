"""The description of the JSON interface (OpenAPI 3.1), made from the table of its endpoints."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from dither.server.endpoints import ENDPOINTS, Endpoint, Parameter
from dither.wire.problems import CONTENT_TYPE
from dither.wire.routes import API, KEY_HEADER

_PATH_PARTS = re.compile(r"\{([a-z]+)\}")
_PROBLEM = {
    "type": "object",
    "description": "What went wrong (RFC 9457): what was expected, what was got, and how to mend it.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        **{name: {"type": "string"} for name in ("type", "title", "detail", "name", "expected", "got", "fix")},
        "status": {"type": "integer"},
    },
}
_JOB = {
    "type": "object",
    "description": "A question: waiting until a tick, then answered, refused, failed or cancelled.",
    "required": ["id", "table", "state", "answer_id", "problem"],
    "properties": {
        "id": {"type": "string"},
        "table": {"type": "string"},
        "question": {"type": "string"},
        "kind": {"enum": ["question", "publication"]},
        "state": {"enum": ["waiting", "answered", "refused", "failed", "cancelled"]},
        "asked_at": {"type": "string", "format": "date-time"},
        "answer_id": {"type": ["string", "null"]},
        "answer": {"anyOf": [{"$ref": "#/components/schemas/Answer"}, {"type": "null"}]},
        "problem": {"anyOf": [{"$ref": "#/components/schemas/Problem"}, {"type": "null"}]},
    },
}
_ANSWER = {
    "type": "object",
    "description": "An answer: the text that the ledger recorded, what was left, and the receipt.",
    "required": ["version", "recorded", "left", "replayed", "receipt"],
    "properties": {
        "version": {"type": "integer"},
        "recorded": {"type": "string"},
        "left": {"type": ["string", "null"]},
        "replayed": {"type": "boolean"},
        "receipt": {"type": "string"},
    },
}


@cache
def described() -> dict[str, Any]:
    """The whole document.

    >>> described()["openapi"]
    '3.1.0'
    """
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(API + endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "dither",
            "version": "1",
            "description": "Private answers: each costs a part of a budget, and comes with its errors.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Problem": _PROBLEM, "Job": _JOB, "Answer": _ANSWER},
        },
    }


def _schema(item: Parameter) -> dict[str, Any]:
    """What a parameter may be, and what it is where it is left out."""
    return {**item.kind.schema, **({} if item.default is None else {"default": item.default})}


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _PATH_PARTS.findall(endpoint.path)
    ]
    parameters += [{"name": name, "in": "query", "schema": _schema(item)} for name, item in endpoint.query.items()]
    if endpoint.has_key:
        words = "Names this release for ever: sent again, the same answer is returned, and nothing is charged."
        parameters.append({"name": KEY_HEADER, "in": "header", "description": words, "schema": {"type": "string"}})
    schema: dict[str, Any] = {"type": "object"}
    if endpoint.waits:
        schema = {"$ref": "#/components/schemas/Job"}
    elif endpoint.path == "/answers/{answer}":
        schema = {"$ref": "#/components/schemas/Answer"}
    content = {"application/json": {"schema": schema}}
    responses: dict[str, Any] = {"200": {"description": "Done", "content": content}}
    if endpoint.waits:
        responses["202"] = {"description": "The question waits", "content": content}
    problem = {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    responses["default"] = {"description": "Refused", "content": problem}
    result: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": f"{endpoint.method.lower()}{re.sub('[^a-z]+', '_', endpoint.path)}".rstrip("_"),
        "parameters": parameters,
        "responses": responses,
    }
    if endpoint.body:
        properties = {name: _schema(item) for name, item in endpoint.body.items()}
        needed = [name for name, item in endpoint.body.items() if item.required]
        fields = {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}
        result["requestBody"] = {"required": bool(needed), "content": {"application/json": {"schema": fields}}}
    return result
