"""The page about a publication: its guarantee, every table with errors, and charts.

Everything on it is computed from released numbers. Of long tables the first rows are shown. Nested levels have
treemaps, in which the area of a box is a region's count and its color the relative error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dither.inference.measured import normal_quantile
from dither.present import chart
from dither.present.drawing import frame
from dither.present.pages import sheet
from dither.present.pages.answer import promise as promise_of
from dither.present.text import escaped, keys_shown, percent, significant, with_error
from dither.publish import Publication
from dither.publish.domain import Levels

Box = tuple[float, float, float, float]
"""Left, top, width and height."""

CLASSES = (
    (0.01, "up to 1 %", "#e6f0fa"),
    (0.03, "up to 3 %", "#a9cbe8"),
    (0.10, "up to 10 %", "#f7e7a3"),
    (0.30, "up to 30 %", "#f2b366"),
    (float("inf"), "more", "#dd7d63"),
)
"""Classes of relative errors: the highest error, the label and the color of each."""
_WIDTH, _HEIGHT, _LEGEND = 760, 330, 26
_SIGN, _LINE = 6.6, 15
"""The width of a sign and the height of a line of a label."""


def color_of(relative_error: float) -> str:
    """Return the color for a relative error.

    >>> color_of(0.02), color_of(2.0)
    ('#a9cbe8', '#dd7d63')
    """
    return next(color for highest, _, color in CLASSES if relative_error <= highest)


def layout(sizes: Sequence[float], box: Box) -> list[Box]:
    """Divide a box into nearly square boxes with these areas (Bruls, Huizing and van Wijk 2000).

    The sizes are positive and in decreasing order.

    >>> layout([2.0, 1.0, 1.0], (0.0, 0.0, 4.0, 2.0))
    [(0.0, 0.0, 2.0, 2.0), (2.0, 0.0, 2.0, 1.0), (2.0, 1.0, 2.0, 1.0)]
    """
    left, top, width, height = box
    result: list[Box] = []
    start, remaining = 0, float(sum(sizes))
    while start < len(sizes):
        side = min(width, height)
        scale = width * height / remaining if remaining > 0 else 0.0
        stop, strip = start + 1, sizes[start] * scale
        worst = _flatness(sizes[start] * scale, sizes[start] * scale, strip, side)
        while stop < len(sizes):
            longer = strip + sizes[stop] * scale
            flatness = _flatness(sizes[start] * scale, sizes[stop] * scale, longer, side)
            if flatness > worst:
                break
            stop, strip, worst = stop + 1, longer, flatness
        thickness = strip / side if side > 0 else 0.0
        along = 0.0
        for size in sizes[start:stop]:
            length = size * scale / thickness if thickness > 0 else 0.0
            place = (
                (left, top + along, thickness, length) if width >= height else (left + along, top, length, thickness)
            )
            result.append(place)
            along += length
        if width >= height:
            left, width = left + thickness, max(width - thickness, 0.0)
        else:
            top, height = top + thickness, max(height - thickness, 0.0)
        remaining -= sum(sizes[start:stop])
        start = stop
    return result


def _flatness(largest: float, smallest: float, strip: float, side: float) -> float:
    """Return the aspect ratio of the flattest box in a strip."""
    if min(smallest, strip, side) <= 0:
        return float("inf")
    return max(side * side * largest / strip**2, strip**2 / (side * side * smallest))


def treemap(labels: Sequence[str], sizes: Sequence[float], relative_errors: Sequence[float], title: str) -> str:
    """Render regions of positive size as an SVG treemap, colored by relative error, with a legend.

    ``labels``, ``sizes`` and ``relative_errors`` have one entry per region; areas are proportional to sizes, and
    regions without a positive size are omitted. A label is shown if it fits into its box. ``title`` is for screen
    readers.

    >>> picture = treemap(["north", "a<b"], [30.0, 10.0], [0.02, 0.2], "regions")
    >>> picture.count("<title>"), "a&lt;b" in picture
    (3, True)
    """
    order = sorted((i for i, size in enumerate(sizes) if size > 0), key=lambda i: -sizes[i])
    boxes = layout([float(sizes[i]) for i in order], (0.0, 0.0, float(_WIDTH), float(_HEIGHT)))
    parts = []
    for i, (left, top, width, tall) in zip(order, boxes, strict=True):
        what = f"{labels[i]}: about {sizes[i]:,.0f}, ± {percent(relative_errors[i])}"
        parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{tall:.1f}" stroke="#ffffff" '
            f'fill="{color_of(relative_errors[i])}"><title>{escaped(what)}</title></rect>'
        )
        for line, text in enumerate((labels[i], f"± {percent(relative_errors[i])}")):
            if _SIGN * len(text) + 8 <= width and _LINE * (line + 1) + 4 <= tall:
                parts.append(
                    f'<text x="{left + 5:.1f}" y="{top + _LINE * (line + 1):.1f}" fill="#1a1a1a">{escaped(text)}</text>'
                )
    return frame(title, [*parts, *_legend()], _WIDTH, _HEIGHT + _LEGEND, scaled=True)


def _legend() -> list[str]:
    """Return the elements of the legend of error classes."""
    parts, left = [f'<text x="0" y="{_HEIGHT + 20}" fill="#1a1a1a">relative error:</text>'], 110
    for _, name, color in CLASSES:
        parts.append(
            f'<rect x="{left}" y="{_HEIGHT + 9}" width="14" height="14" fill="{color}"/>'
            f'<text x="{left + 19}" y="{_HEIGHT + 20}" fill="#1a1a1a">{name}</text>'
        )
        left += 105
    return parts


MAX_ROWS = 25
MAX_TABLES = 60
MAX_BARS = 30
MAX_CHARTS = 4
MAX_PLACES = 500
_CONFIDENCE = 0.95


def publication_page(publication: Publication, title: str) -> str:
    """Render the page of a publication."""
    tables = [*dict.fromkeys(publication.estimates.tables)]
    return sheet.page(
        title,
        _summary(publication, tables),
        _promises(publication),
        _cost(publication),
        _errors(publication, tables),
        *_maps(publication, tables),
        sheet.section("Tables", *_all_tables(publication, tables)),
        sheet.section("What is not promised", sheet.listed(_not_promised(publication))),
    )


def _name(publication: Publication, levels: Levels) -> str:
    """Return the name of a table: its columns, or everybody."""
    return " × ".join(publication.names_of(levels)) or "everybody"


def _summary(publication: Publication, tables: Sequence[Levels]) -> str:
    """Render the size of the publication and its guarantee."""
    cost = publication.guarantee
    cells = sum(publication.estimates.domain.size(levels) for levels in tables)
    size = f"{len(tables)} table{'s' if len(tables) != 1 else ''} with {cells:,} cells, published in one release."
    promise = (
        f"{cost} for the whole page: {promise_of(cost, 'it')} Estimates, whole counts and records are computed "
        "from the same release, so that all of them together cost no more than one."
    )
    return sheet.paragraph(size) + sheet.section("What is guaranteed", sheet.paragraph(promise))


def _promises(publication: Publication) -> str:
    """Render what the columns of the tables mean and promise."""
    rows = [
        (
            "value ± error",
            "Unbiased estimates. Each interval contains the exact count of the counted rows with 95 % probability; "
            "the intervals of sums of cells do, too. Estimates may be negative or not whole. Tables agree: each is a "
            "margin of finer ones.",
        )
    ]
    if publication.has_whole_counts:
        rows += [
            (
                "whole",
                "Whole counts, none negative. Every table is a margin of one set of counts, and children add up to "
                "their parents. They have no intervals: counts that are never negative are biased near zero, and they "
                "may differ from the values by more than the ±.",
            ),
            (
                "records",
                "Rows with exactly the whole counts: grouping them by the columns of a table gives that table.",
            ),
        ]
    public = [_name(publication, levels) for levels in publication.totals.tables]
    if public:
        rows.append(
            (
                "public totals",
                f"{', '.join(public)}: numbers that were public already, as the plan states. They are met exactly, "
                "have no error, and cost nothing.",
            )
        )
    return sheet.facts(rows)


def _cost(publication: Publication) -> str:
    """Render what the publication cost, what is left, its notes and its receipt."""
    paid = " (paid earlier: this was recorded then)" if publication.replayed else ""
    facts: list[tuple[str, object]] = [("cost", f"{publication.cost}{paid}")]
    if publication.remaining is not None:
        facts.append(("left of the budget", publication.remaining))
    if publication.clipped_share is not None:
        facts.append(("excluded by the limit on a person's rows", publication.clipped_share))
    facts += [("note", note) for note in publication.notes]
    if publication.receipt:
        facts.append(("receipt", publication.receipt))
    return sheet.section("What it cost", sheet.facts(facts))


def _errors(publication: Publication, tables: Sequence[Levels]) -> str:
    """Render the typical error of each of the ``tables`` of a publication, and what share of a mean cell it is.

    A table is named by its levels, one for each attribute (0: summed over). A negative total, which noise can make,
    counts as 0, and then no share is shown.
    """
    estimates = publication.estimates
    total = max(float(estimates.values((0,) * len(estimates.domain.attributes)).sum()), 0.0)
    rows = []
    for levels in tables[:MAX_TABLES]:
        error, cells = _mean_error(publication, levels), estimates.domain.size(levels)
        average = total / cells
        share = "exact" if error == 0 else percent(error / average) if average > 0 else ""
        name = _name(publication, levels)
        rows.append((name, f"± {significant(error, 3)}", share, f"{cells:,}", f"{average:,.1f}"))
    headings = ("table", "error, 95 %", "of the mean", "cells", "mean of a cell")
    caption = f"Root mean square of the half-widths of the 95 % intervals.{_beside(publication)}"
    caption += _more(len(tables), MAX_TABLES, "tables")
    return sheet.section("Errors", sheet.table(headings, rows, caption, [False, True, True, True, True]))


def _beside(publication: Publication) -> str:
    """Return a sentence on what the limit on a person's rows excludes, which no ± includes; empty without a limit."""
    if publication.max_rows is None:
        return ""
    if publication.clipped_share is None:
        return " They do not include what the limit on a person's rows excludes, which is not known."
    return f" They do not include that {publication.clipped_share}."


def _mean_error(publication: Publication, levels: Levels) -> float:
    """Return the root mean square of the half-widths of a table's intervals."""
    estimates = publication.estimates
    variance = estimates.residuals.mean_variance(levels, estimates.variances)
    return normal_quantile(_CONFIDENCE) * estimates.unit * math.sqrt(variance)


def _maps(publication: Publication, tables: Sequence[Levels]) -> list[str]:
    """Render for each nested attribute the relative errors at each level: their quantiles, and treemaps.

    A nested attribute has several levels, as state and county. Levels are shown down to the deepest that any of
    ``tables`` has. The error of a cell is relative to its estimate, but to 1 at least.
    """
    parts = []
    for axis, attribute in enumerate(publication.estimates.domain.attributes):
        deepest = max(levels[axis] for levels in tables)
        if deepest < 2:
            continue
        rows, pictures = [], []
        for level in range(1, deepest + 1):
            name = attribute.level_names[level - 1]
            estimate = publication.estimates.table([name])
            widths = normal_quantile(_CONFIDENCE) * estimate.standard_error
            values = np.maximum(estimate.value, 0.0)
            relative = widths / np.maximum(values, 1.0)
            quantiles = map(percent, np.quantile(relative, [0.1, 0.5, 0.9]))
            rows.append((name, f"{len(values):,}", f"{np.median(values):,.0f}", *quantiles))
            if len(values) <= MAX_PLACES and values.sum() > 0:
                labels = [keys_shown([key]) for key in attribute.keys[level - 1].to_pylist()]
                title = f"{name}: areas are estimated counts, colors are relative errors (95 %)"
                picture = treemap(labels, values.tolist(), relative.tolist(), title)
                pictures.append(f"<figure>\n<figcaption>{escaped(title)}</figcaption>\n{picture}\n</figure>\n")
        headings = ("level", "places", "median count", "10 %", "half", "90 %")
        caption = (
            "The half-width of the 95 % interval over the estimate: 10 %, half and 90 % of the places have at most "
            "this error."
        )
        table = sheet.table(headings, rows, caption, [False] + [True] * 5)
        parts.append(sheet.section(f"Errors by level of {attribute.name}", table, *pictures))
    return parts


def _all_tables(publication: Publication, tables: Sequence[Levels]) -> list[str]:
    """Render the first rows of each of the ``tables`` of a publication, and bar charts of small ones.

    At most ``MAX_TABLES`` tables, ``MAX_ROWS`` rows of each and ``MAX_CHARTS`` charts are shown, so that the page stays
    short.
    """
    parts: list[str] = []
    charts = 0
    for levels in tables[:MAX_TABLES]:
        names = publication.estimates.domain.names(levels)
        keys, values, errors, whole = _rows(publication, names, levels)
        texts = [
            with_error(value, error) if error > 0 else (f"{value:,.6g}", "exact")
            for value, error in zip(values, errors, strict=True)
        ]
        rows = [[*key, *text] for key, text in zip(keys, texts, strict=True)]
        if whole is not None:
            rows = [[*row, f"{count:,}"] for row, count in zip(rows, whole, strict=True)]
        headings = (*(names or ("",)), "value", "±", *(["whole"] if whole is not None else []))
        size = publication.estimates.domain.size(levels)
        caption = f"{_name(publication, levels)}.{_more(size, MAX_ROWS, 'rows')}"
        keyed = len(keys[0])
        parts.append(sheet.table(headings, rows, caption, [False] * keyed + [True] * (len(headings) - keyed)))
        if 1 < size <= MAX_BARS and charts < MAX_CHARTS and any(error > 0 for error in errors):
            bars = zip([", ".join(key) for key in keys], values, errors, strict=True)
            title = f"{_name(publication, levels)}, with errors (95 %)"
            parts.append(sheet.figure(chart.bars(bars, title=title, texts=[" ± ".join(text) for text in texts])))
            charts += 1
    if len(tables) > MAX_TABLES:
        parts.append(sheet.paragraph(f"{len(tables) - MAX_TABLES:,} more tables are in the files."))
    return parts


def _rows(
    publication: Publication, names: Sequence[str], levels: Levels
) -> tuple[list[list[str]], list[float], list[float], list[int] | None]:
    """Return the first rows of a table: keys, values, half-widths of 95 % intervals, and whole counts.

    ``names`` are the columns of the table and ``levels`` its level of each attribute (0: summed over). Whole counts are
    None for a publication without them.
    """
    domain = publication.estimates.domain
    count = min(domain.size(levels), MAX_ROWS)
    places = np.unravel_index(np.arange(count), domain.shape(levels))
    columns = [
        [keys_shown([attribute.keys[level - 1][int(i)].as_py()]) for i in place]
        for attribute, level, place in zip(domain.attributes, levels, places, strict=True)
        if level
    ]
    keys = [list(row) for row in zip(*columns, strict=True)] if columns else [["everybody"]]
    estimate = publication.estimates.table(names)
    widths = normal_quantile(_CONFIDENCE) * np.ravel(estimate.standard_error)[:count]
    whole = None
    if publication.has_whole_counts:
        whole = np.ravel(publication.counts.table(names))[:count].tolist()
    return keys, np.ravel(estimate.value)[:count].tolist(), widths.tolist(), whole


def _not_promised(publication: Publication) -> list[str]:
    """Return statements that correct likely misunderstandings of a publication."""
    result = [
        "A single value may be off by more than its ±: about one in twenty is.",
        "Domains, bins and lookups are assumed to be public. If they were taken from the data, the guarantee does not "
        "cover what they disclose.",
        "Rows of one person count up to a limit. The ± does not include what the limit excludes"
        + ("." if publication.clipped_share is None else f": {publication.clipped_share}."),
        "Facts about people in general are not hidden.",
    ]
    if publication.has_whole_counts:
        result.insert(
            1,
            "Whole counts are for printing and for programs that need rows. For analysis use the values: sums of whole "
            "counts over many small cells are less accurate than the estimate of the sum.",
        )
    return result


def _more(size: int, limit: int, what: str) -> str:
    """Return a sentence that only the first ``limit`` of ``size`` rows or tables are shown; empty if all are."""
    return f" The first {limit} of {size:,} {what}." if size > limit else ""
