"""Pages of the repository that stand outside of ``docs``: they become pages of the site, and links to them lead there."""

from __future__ import annotations

import re
from pathlib import Path

PAGES = {"SECURITY.md": "security.md", "deploy/README.md": "deployment.md"}
"""Files of the repository, and the pages below ``docs/generated`` that they become."""


def pages(root: Path) -> dict[str, str]:
    """The text of every such page, with links to ``docs`` that hold on the site."""
    return {
        page: re.sub(r"\]\(docs/", "](/", (root / source).read_text(encoding="utf-8")) for source, page in PAGES.items()
    }


def point_inside(text: str) -> str:
    """A page of ``docs`` with links to those files turned into links to their pages.

    >>> point_inside("[security](../SECURITY.md#reporting)")
    '[security](/generated/security.md#reporting)'
    """
    for source, page in PAGES.items():
        text = re.sub(rf"\]\((\.\./)+{re.escape(source)}", f"](/generated/{page}", text)
    return text


def read_source(app: object, name: str, source: list[str]) -> None:
    """For ``source-read``: changes the text in place."""
    source[0] = point_inside(source[0])
