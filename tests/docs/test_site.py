"""The site that ``make docs`` builds: every public name is in it, its own pages follow the code, no link is dead."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

import pytest

import dither
from dither.tables.query.operations import OPERATIONS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))

from site_builder import (  # noqa: E402
    card,
    commands,
    gallery,
    guides,
    http,
    links,
    operations,
    outside,
    public_names,
    reference,
)
from site_builder.docstrings import escape_bars  # noqa: E402


def test_every_public_name_is_in_the_reference():
    pages = reference.pages()
    inner = {
        "cli",
        "client",
        "release",
        "server",
        "tables",
        "wire",
    }  # commands, pages, and rooms whose public classes are dither's own
    packages = {item.name for item in pkgutil.iter_modules(dither.__path__) if item.ispkg} - inner
    for package in [dither, *(importlib.import_module(f"dither.{name}") for name in sorted(packages))]:
        names = {*package.__all__} - {"__version__", *packages, *public_names.PACKAGES}
        text = "".join(pages.values())
        for name in names | ({"open", "max", "min", "sum"} if package is dither else set()):
            assert f":py:obj:`{package.__name__}.{name} <" in text, f"{package.__name__}.{name}"


def test_every_name_is_described_once_where_users_import_it_from():
    text = "".join(reference.pages().values())
    for name in reference.described():
        assert text.count(f":: {name}\n") == 1, name


def test_the_operations_page_has_every_operation_once():
    page = operations.page()
    lines = [line for line in page.splitlines() if line.startswith("| `")]
    assert len(lines) == len(OPERATIONS)
    for row in OPERATIONS.values():
        assert operations.row_of(row) in lines


def test_the_card_page_has_every_key_that_cards_may_have():
    page = card.page(DOCS)
    assert "max_incidents" in card.accepted("")
    assert card.accepted("columns.age") == ("type", "bounds", "keys", "format")
    for section in card.SECTIONS:
        for name in card.accepted(section):
            assert f"| `{name}` |" in page
    known = card.meanings(DOCS)
    assert "a further table" in card.meaning_of(known, "tables.visits", "source")[1]
    assert "where the rows are" in card.meaning_of(known, "", "source")[1]
    with pytest.raises(KeyError):
        card.meaning_of(known, "budget", "no_such_key")


def test_the_commands_page_has_every_command_and_option():
    page = commands.page()
    for name, command in commands.commands().items():
        assert f"## dither {name}\n" in page
        for item in command.params:
            if item.name != "help" and item.param_type_name == "option" and not item.hidden:
                assert item.opts[0] in page


def test_the_http_page_has_every_endpoint_of_the_server():
    page = http.page(http.description())
    for path, methods in http.description()["paths"].items():
        for method in methods:
            assert f"## {method.upper()} {path}\n" in page
    assert "/api/v1/tables/{table}/questions" in page


def test_pages_outside_of_docs_are_pages_of_the_site():
    pages = outside.pages(ROOT)
    assert "](/threat-model.md" in pages["security.md"]
    assert "](docs/" not in "".join(pages.values())
    text = "[a](../SECURITY.md) [b](../../deploy/README.md#tls) [c](../LICENSE)"
    expected = "[a](/generated/security.md) [b](/generated/deployment.md#tls) [c](../LICENSE)"
    assert outside.point_inside(text) == expected


def test_the_http_page_is_made_from_openapi():
    document = {
        "info": {"description": "Questions over HTTP."},
        "paths": {
            "/v1/query": {
                "post": {
                    "summary": "Ask.",
                    "parameters": [{"name": "dry", "description": "only explain"}],
                    "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Ask"}}}},
                    "responses": {"200": {"description": "the answer"}, "402": {"description": "not enough left"}},
                }
            }
        },
        "components": {"schemas": {"Ask": {"properties": {"sql": {"description": "a SELECT | statement"}}}}},
    }
    page = http.page(document)
    assert "## POST /v1/query" in page
    assert "| `dry` | only explain |" in page
    assert r"| `sql` | a SELECT \| statement |" in page
    assert "| `402` | not enough left |" in page


def test_a_new_page_is_in_the_guide_without_more_work(tmp_path):
    (tmp_path / "stream.md").write_text("# Over time\n\n```python\nx = 1\n```\n\nCounts for every [day](x.md). More.\n")
    assert guides.chapters(tmp_path) == ["stream"]
    assert guides.title_and_text(tmp_path / "stream.md") == ("Over time", "Counts for every day. More.")
    assert ":link: /stream" in guides.guide_index(tmp_path)


def test_bars_of_absolute_values_are_no_markup():
    assert escape_bars("|x| and ``|y|`` and :func:`a|b`") == r"\|x\| and ``|y|`` and :func:`a|b`"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<a href="other.html">x</a>', "leads to no file"),
        ('<a href="#nowhere">x</a>', "leads to no anchor"),
        ('<a href="../../secret.html">x</a>', "leads out of the site"),
        ('<script src="https://cdn.example/x.js"></script>', "loaded from elsewhere"),
        ('<a href="https://example.org">x</a><a href="#top">y</a><p id="top">', None),
    ],
)
def test_dead_links_and_remote_files_are_seen(tmp_path, body, fault):
    (tmp_path / "index.html").write_text(f"<html><body>{body}</body></html>")
    faults = links.faults(tmp_path)
    assert [fault in text for text in faults] == [True] if fault else faults == []


def test_a_site_without_pages_is_no_site(tmp_path):
    assert links.main(str(tmp_path)) == 1


def test_the_gallery_has_every_example_with_one_sentence_on_when_to_use_it():
    names = [path.stem for path in gallery.examples(ROOT)]
    assert sorted(gallery.WHEN) == names
    assert set(gallery.TITLES) <= set(names)
    assert all(text.count(".") == 1 and text.endswith(".") for text in gallery.WHEN.values())
    page = gallery.page(ROOT)
    for name in names:
        assert f"gallery-pictures/{name}.png" in page
        assert f"../../examples/{name}.py" in page


def test_a_picture_of_the_gallery_is_the_same_from_run_to_run(tmp_path):
    example = ROOT / "examples" / "election.py"
    pictures = []
    for name in ("first", "second"):
        gallery.run(example, tmp_path / name)
        pictures.append((tmp_path / name / "election.png").read_bytes())
    assert pictures[0] == pictures[1]
