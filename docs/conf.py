"""How ``make docs`` builds the site: a folder of pages that works offline, with warnings as errors.

Pages are Markdown in this folder. Those under ``generated`` are written by ``site_builder`` when a build begins, from
docstrings, the table of SQL operations, the card, the command line, the course and the examples; nothing in them is
written twice.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from site_builder import outside, pages  # noqa: E402
from site_builder.directives import MadeFigure  # noqa: E402
from site_builder.docstrings import prepare_docstring, skip_foreign_member  # noqa: E402

import dither  # noqa: E402

project = "dither"
author = "the authors of dither"
copyright = "the authors of dither, Apache-2.0"
version = release = dither.__version__
language = "en"

extensions = ["myst_parser", "sphinx_design", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["site_builder", "static"]
nitpicky = False
show_warning_types = True
pygments_style = "a11y-high-contrast-light"

myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_title = "dither"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("figures.js", {"defer": "defer"})]
html_copy_source = False
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "show_prev_next": True,
    "use_edit_page_button": False,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 8,
    "show_nav_level": 1,
    "navigation_depth": 3,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "back_to_top_button": True,
}


def setup(app: object) -> None:
    """Write the generated pages before the sources are read."""
    pages.write(HERE)
    app.connect("autodoc-process-docstring", prepare_docstring)  # type: ignore[attr-defined]
    app.connect("autodoc-skip-member", skip_foreign_member)  # type: ignore[attr-defined]
    app.connect("source-read", outside.read_source)  # type: ignore[attr-defined]
    app.add_directive("made-figure", MadeFigure)  # type: ignore[attr-defined]
