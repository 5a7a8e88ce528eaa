"""Writes everything under ``docs/generated``. A file is written only where it changed, so that a second build is quick."""

from __future__ import annotations

from pathlib import Path

from site_builder import card, commands, course, gallery, guides, http, notebooks, operations, outside, reference
from site_builder.lessons import LESSONS


def write(docs: Path) -> None:
    """Make the generated pages what they should be now, and remove those that are no longer made."""
    root = docs / "generated"
    contents = {f"reference/{name}.md": text for name, text in reference.pages().items()}
    contents |= {
        "reference/operations.md": operations.page(),
        "reference/card.md": card.page(docs),
        "reference/commands.md": commands.page(),
    }
    contents["reference/http.md"] = http.page(http.description())
    contents["reference/index.md"] = guides.reference_index()
    contents |= outside.pages(docs.parent)
    contents |= {f"course/{name}.md": text for name, text in course.pages().items()}
    contents |= {f"downloads/{lesson.slug}.ipynb": notebooks.notebook(lesson) for lesson in LESSONS}
    contents["guide.md"] = guides.guide_index(docs)
    contents["gallery.md"] = gallery.page(docs.parent)
    gallery.make_pictures(docs.parent, root / "gallery-pictures")
    for name, text in contents.items():
        write_if_changed(root / name, text)
    for path in root.rglob("*"):
        if (
            path.is_file()
            and path.parent.name != "gallery-pictures"
            and path.relative_to(root).as_posix() not in contents
        ):
            path.unlink()


def write_if_changed(path: Path, text: str) -> None:
    """Leave a file alone that has this text already: its time tells Sphinx whether to read it again."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
