"""A page about a profile: for each table, a chart of each column with its bands, and what the numbers are."""

from __future__ import annotations

from dither.present.pages import sheet
from dither.tables.card.profile import Profile
from dither.tables.card.profile_charts import table_charts


def profile_page(profile: Profile, title: str) -> str:
    """Return one page with every chart of a profile."""
    sections = []
    for name, table in profile.tables.items():
        charts = [sheet.figure(chart, width=480) for chart in table_charts(table).values()]
        sections.append(sheet.section(profile.heading(name), sheet.side_by_side(charts)))
    return sheet.page(title, sheet.listed(profile.facts()), *sections)
