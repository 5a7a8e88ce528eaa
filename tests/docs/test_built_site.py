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


def pages_of(site: Path) -> list[str]:
    """Every page of the site, without what the theme leaves among its files."""
    found = (path.relative_to(site) for path in site.rglob("*.html"))
    return sorted(path.with_suffix("").as_posix() for path in found if path.parts[0] != "_static")


def sample(site: Path) -> list[str]:
    """The first page, and the page of middle length of each folder: what axe-core looks at, which takes a minute on a
    long page. Everything else is looked at on every page.
    """
    folders: dict[Path, list[str]] = {}
    for page in sorted(pages_of(site), key=lambda page: (site / f"{page}.html").stat().st_size):
        folders.setdefault(Path(page).parent, []).append(page)
    return ["index", *(pages[len(pages) // 2] for pages in folders.values())]


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


def with_figures(site: Path, pages: list[str]) -> list[str]:
    """The pages with pictures of our own, whose labels lie elsewhere at another width."""
    return [page for page in pages if 'class="made' in (site / f"{page}.html").read_text(encoding="utf-8")]


def look(
    site: Path, pages: list[str], accessible: list[str], again: list[str], shots: str = ""
) -> list[dict[str, Any]]:
    """What a browser sees that opens these pages from the folder, in a process of its own: all of them in one look, and
    some ``again`` in another.
    """
    browser = os.environ.get("DITHER_TEST_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    assert browser is not None, f"none of {', '.join(BROWSERS)} is installed: run make browser"
    named = {"pages": pages, "accessible": accessible, "again": again}
    given = {"base": site.resolve().as_uri(), "browser": browser}
    given |= {name: [f"{page}.html" for page in each] for name, each in named.items()}
    command = [sys.executable, str(HERE / "site_browser.py")]
    ended = subprocess.run(
        command, input=json.dumps({**given, "shots": shots}), capture_output=True, text=True, timeout=3600, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return list(json.loads(ended.stdout))


def complaints(results: list[dict[str, Any]]) -> list[str]:
    """What is wrong, one line each."""
    return [
        f"{item['path']} ({item['look']}): {kind}: {text}"
        for item in results
        for kind in ("seen", "axe", "wide", "overlap", "empty")
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
    pages, accessible = pages_of(site), sample(site)
    assert len({Path(page).parent for page in accessible}) >= 7
    again = sorted({*accessible, *with_figures(site, pages)})
    assert len(accessible) < len(again) < len(pages)
    results = look(site, pages, accessible, again)
    assert complaints(results) == []
    course = [
        item
        for item in results
        if item["look"] == "phone" and ("/course/" in item["path"] or item["path"] == "claims.html")
    ]
    assert len(course) > 14
    assert [(item["path"], text) for item in course for text in item["scrolls"]] == []
    moving = {page for page in pages if "data-figure=" in (site / f"{page}.html").read_text(encoding="utf-8")}
    assert "explanation/promise" in moving
    for item in results:
        page = item["path"].removesuffix(".html")
        assert bool(item["moved"]) == (page in moving), page
        assert all(item["moved"]), f"{page} ({item['look']}): a slider moves nothing"


@pytest.mark.slow
def test_a_bad_page_is_seen(tmp_path):
    body = "<img src='missing.png'><p style='width: 3000px'>wide</p><script>throw new Error('broken')</script>"
    labels = "<text x='5' y='20'>15 votes</text><text x='9' y='20'>0.75</text><text x='5' y='60'>below</text>"
    body += f"<figure class='made'><svg>{labels}</svg></figure><main><table><tr><th></th></tr></table></main>"
    (tmp_path / "bad.html").write_text(f"<html><body>{body}</body></html>", encoding="utf-8")
    found = complaints(look(tmp_path, ["bad"], ["bad"], ["bad"]))
    assert [line for line in found if "overlap: " in line] == [
        f"bad.html ({name}): overlap: 15 votes | 0.75" for name in ("phone", "desk") for _ in range(2)
    ]
    text = "\n".join(found)
    for part in ("broken", "not loaded", "image-alt", "wide: ", "empty: <th"):
        assert part in text
