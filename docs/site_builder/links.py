"""Checks a built site: every link inside it leads somewhere, and nothing is loaded from elsewhere.

``python -m site_builder.links out/docs`` prints what is wrong, one line each, and exits with 1 if anything is.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data"), ("link", "href")}
"""What a browser fetches by itself: these may not be remote."""


@dataclass
class Page(HTMLParser):
    """The anchors of a page, and the addresses that it links to or loads."""

    anchors: set[str] = field(default_factory=set)
    links: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag says."""
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif (tag, name) in LOADED or (tag, name) == ("a", "href"):
                self.links.append((tag, value or ""))


def read(path: Path) -> Page:
    """The anchors and links of a page."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def faults(site: Path) -> list[str]:
    """What is wrong with a site: links that lead nowhere, and what is loaded from the network."""
    pages = {path.resolve(): read(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts}
    result = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for tag, address in page.links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if tag != "a" and parts.scheme != "data":
                    result.append(f"{name}: <{tag}> is loaded from elsewhere: {address}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_relative_to(site.resolve()):
                result.append(f"{name}: leads out of the site: {address}")
            elif not target.is_file():
                result.append(f"{name}: leads to no file: {address}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                result.append(f"{name}: leads to no anchor: {address}")
    for path in sorted(site.rglob("*.css")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if "url(http" in text or "url(//" in text or "@import url(http" in text:
            result.append(f"{path.name}: a style sheet that loads from elsewhere")
    return result


def main(folder: str) -> int:
    """Print the faults of a site; 1 where there are any."""
    problems = faults(Path(folder))
    for problem in problems:
        print(problem)
    count = len([path for path in Path(folder).rglob("*.html") if "_static" not in path.parts])
    print(f"{count} pages, {len(problems)} faults")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
