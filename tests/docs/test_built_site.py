"""The built site: it builds without a warning, no link is dead, and a browser opens its pages without a complaint."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

from site_builder import links  # noqa: E402

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PAGES = (
    "index", "tutorials/dashboard", "howto/migrate", "explanation/promise", "explanation/glossary", "tables",
    "generated/gallery", "generated/course/index", "generated/course/fails", "generated/course/smooth-sensitivity",
    "generated/reference/mechanisms", "generated/reference/card", "generated/reference/http",
)  # fmt: skip
"""A page of every kind, two of which have moving figures."""
MOVING = ("explanation/promise", "generated/course/smooth-sensitivity")


def build(folder: Path) -> Path:
    """The site, as ``make docs`` builds it."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", str(folder / "trees")]
    done = subprocess.run(
        [*command, str(DOCS), str(folder / "site")],
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    assert done.returncode == 0, done.stderr
    return folder / "site"


def look(site: Path, pages: list[str], shots: str = "") -> list[dict[str, Any]]:
    """What a browser sees that opens these pages from the folder, in a process of its own."""
    browser = os.environ.get("DITHER_TEST_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    assert browser is not None, f"none of {', '.join(BROWSERS)} is installed: run make browser"
    given = {"base": site.resolve().as_uri(), "pages": [f"{page}.html" for page in pages], "browser": browser}
    command = [sys.executable, str(HERE / "site_browser.py")]
    ended = subprocess.run(
        command, input=json.dumps({**given, "shots": shots}), capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return list(json.loads(ended.stdout))


def complaints(results: list[dict[str, Any]]) -> list[str]:
    """What is wrong, one line each."""
    return [
        f"{item['path']} ({item['look']}): {kind}: {text}"
        for item in results
        for kind in ("seen", "axe", "wide")
        for text in item[kind]
    ]


@pytest.mark.slow
def test_the_site_builds_and_a_browser_opens_its_pages_without_a_complaint(tmp_path):
    """One test, because the site is built once for all of it."""
    site = build(tmp_path)
    assert links.faults(site) == []
    text = (site / "generated" / "reference" / "mechanisms.html").read_text(encoding="utf-8")
    assert 'id="dither.Laplace"' in text
    assert "the triangle inequality" in text  # the reason stands beside the statement
    results = look(site, list(PAGES))
    assert complaints(results) == []
    for item in results:
        page = item["path"].removesuffix(".html")
        assert bool(item["moved"]) == (page in MOVING), page
        assert all(item["moved"]), f"{page} ({item['look']}): a slider moves nothing"


@pytest.mark.slow
def test_a_bad_page_is_seen(tmp_path):
    body = "<img src='missing.png'><p style='width: 3000px'>wide</p><script>throw new Error('broken')</script>"
    (tmp_path / "bad.html").write_text(f"<html><body>{body}</body></html>", encoding="utf-8")
    text = "\n".join(complaints(look(tmp_path, ["bad"])))
    for part in ("broken", "not loaded", "image-alt", "wide: "):
        assert part in text
