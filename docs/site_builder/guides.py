"""Pages that list other pages. A new page in ``docs`` is in the guide as soon as it is there."""

from __future__ import annotations

import re
from pathlib import Path

from site_builder import reference

ELSEWHERE = {
    "index": "the first page",
    "architecture": "explanation",
    "claims": "course",
    "command-line": "reference",
    "exactness": "explanation",
    "figures": "explanation",
    "guarantees": "explanation",
    "threat-model": "explanation",
    "which-noise": "explanation",
}
"""Pages in the folder ``docs`` that another section lists; all others are chapters of the guide."""


def chapters(docs: Path) -> list[str]:
    """The pages of the guide: those in ``docs`` that are listed nowhere else."""
    return sorted(path.stem for path in docs.glob("*.md") if path.stem not in ELSEWHERE)


def title_and_text(page: Path) -> tuple[str, str]:
    """The heading of a page and its first paragraph of prose, without links."""
    text = page.read_text(encoding="utf-8")
    title = text.split("\n", 1)[0].lstrip("# ").strip()
    body = re.sub(r"^(```|:::).*?^\1", "", text.split("\n", 1)[1], flags=re.DOTALL | re.MULTILINE)
    paragraphs = [part for part in body.split("\n\n") if part.strip() and part.strip()[0] not in "#|!*:("]
    prose = " ".join(paragraphs[0].split()) if paragraphs else ""
    prose = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", prose)
    first = re.match(r".{40,}?[.:](?= |$)", prose)
    return title, (first.group(0) if first else prose).rstrip(":")


def guide_index(docs: Path) -> str:
    """The first page of the guide."""
    names = chapters(docs)
    cards = []
    for name in names:
        title, text = title_and_text(docs / f"{name}.md")
        cards += [f":::{{grid-item-card}} {title}", f":link: /{name}", ":link-type: doc", "", text, ":::", ""]
    return "\n".join(
        [
            "# Guide", "",
            "A chapter for each part of dither: everything it does, with its limits. Start with a "
            "[tutorial](/tutorials/index.md) if you are new.", "",
            "::::{grid} 1 1 2 2", ":gutter: 3", "", *cards, "::::", "",
            "```{toctree}", ":hidden:", "", *(f"/{name}" for name in names), "```", "",
        ]
    )  # fmt: skip


LANGUAGES = (
    ("operations", "SQL operations", "Every function and operator that a question may use on the values of a row."),
    ("card", "The card", "Every key of the file in which a steward says what is public about a table."),
    ("commands", "Commands and options", "`dither` on the command line, from its own help."),
    ("http", "HTTP interface", "Every address of `dither serve`, from its OpenAPI description."),
)
"""Pages of the reference that are not about Python."""


def reference_index() -> str:
    """The first page of the reference."""
    names = reference.index_entries()
    lower = [row for row in names if "below" in row[1]]
    upper = [row for row in names if row not in lower]

    def table(rows: list[tuple[str, str, str]]) -> list[str]:
        body = [f"| [{title.split(' (')[0]}]({path}.md) | {text.replace('|', ' ')} |" for path, title, text in rows]
        return ["| page | about |", "|---|---|", *body, ""]

    return "\n".join(
        [
            "# Reference", "",
            "Every public name, with its signature, what it states and why that holds, and an example that the tests run. "
            "These pages are made from the code: from docstrings, from the table of SQL operations, from the reader of "
            "cards and from the help of the commands.", "",
            "## SQL, cards, commands and HTTP", "", *table([*LANGUAGES]),
            "## Python", "", "`import dither as dp`; the first five pages are the names of `dp` itself.", "", *table(upper),
            "## Below the public face", "", "Exact arithmetic, inference and randomness, for those who read the code.", "",
            *table(lower),
            "```{toctree}", ":hidden:", "", *(path for path, _, _ in [*LANGUAGES, *names]), "/command-line", "```", "",
        ]
    )  # fmt: skip
