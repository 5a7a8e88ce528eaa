"""The page of the HTTP interface, from its OpenAPI description.

The server makes that description from the table of its endpoints, and serves it at ``/api/v1/openapi.json``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dither.server.api import openapi
from site_builder.operations import cell

PLACES = {"path": "a part of the address", "query": "after the question mark", "header": "a header of the request"}
INTRODUCTION = """This page is made from the OpenAPI description that the server has at `/api/v1/openapi.json`. Every request
has the header `Authorization: Bearer dither_…` with a token; bodies are JSON. An answer that is not in the 200s is a problem with what was
expected, what was got and how to mend it. [The chapter on the server](/server.md#the-interface) explains how a question is asked."""


def description() -> Mapping[str, Any]:
    """The OpenAPI document of the server."""
    return openapi()


def page(document: Mapping[str, Any]) -> str:
    """The whole page: a section for every path and method."""
    lines = ["# HTTP interface", "", str(document.get("info", {}).get("description", "")), "", INTRODUCTION, ""]
    for path, methods in document.get("paths", {}).items():
        for method, operation in methods.items():
            if method not in ("get", "post", "put", "patch", "delete"):
                continue
            lines += [f"## {method.upper()} {path}", "", str(operation.get("summary", "")), ""]
            if operation.get("description"):
                lines += [str(operation["description"]), ""]
            lines += _table(
                "parameter",
                [
                    (item["name"], item.get("description") or PLACES[item["in"]])
                    for item in operation.get("parameters", [])
                ],
            )
            lines += _table("body", _body(operation, document))
            answers = operation.get("responses", {}).items()
            lines += _table("status", [(code, answer.get("description", "")) for code, answer in answers])
    return "\n".join(lines)


def _body(operation: Mapping[str, Any], document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The fields of a JSON body; a reference is followed."""
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if "$ref" in schema:
        schema = document.get("components", {}).get("schemas", {}).get(schema["$ref"].rpartition("/")[2], {})
    needed = schema.get("required", [])
    return [
        (name, field.get("description") or ("needed" if name in needed else "may be left out"))
        for name, field in schema.get("properties", {}).items()
    ]


def _table(title: str, rows: list[tuple[str, str]]) -> list[str]:
    if not rows:
        return []
    return [f"| {title} | meaning |", "|---|---|", *(f"| `{name}` | {cell(str(text))} |" for name, text in rows), ""]
