"""Directives of the site: ``{made-figure} name`` puts a figure of the course on any page."""

from __future__ import annotations

from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive

from site_builder import figures


class MadeFigure(Directive):
    """A figure by its name, made when the page is read."""

    required_arguments: ClassVar[int] = 1

    def run(self) -> list[nodes.Node]:
        """The figure as raw HTML."""
        text = figures.block(self.arguments[0]).removeprefix("```{raw} html\n").removesuffix("\n```")
        return [nodes.raw("", text, format="html")]
