"""One page of HTML about a publication: what is promised, every table, its errors, and pictures of them.

Everything on it is computed from what was released. Long tables are shown by their first rows.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from dither.errors import InvalidArgument
from dither.present import words
from dither.present.bars import chart
from dither.present.digits import significant, with_error
from dither.present.markup import escaped
from dither.present.pages.sheet import FOOT, head, write
from dither.present.pages.treemap import treemap
from dither.publish import Publication
from dither.publish.allocate import normal_quantile
from dither.publish.domain import Levels
from dither.tables.answer import Answer, shown

MAX_ROWS = 25
MAX_TABLES = 60
MAX_BARS = 30
MAX_CHARTS = 4
MAX_PLACES = 500
_CONFIDENCE = 0.95


def publication_page(publication: Publication, title: str = "Published tables") -> str:
    """The page, as text: it holds no script, loads nothing, and is the same for the same publication.

    >>> import dither as dp
    >>> from dither.publish import Attribute, Domain, MarginalPlan, table_spec
    >>> domain = Domain([Attribute.flat("sex", ["f", "<script>"])])
    >>> plan = MarginalPlan(domain, [table_spec(domain, ["sex"])])
    >>> page = publication_page(plan.release({(1,): [500, 600]}, dp.ApproxDP(1, 1e-9)))
    >>> page.startswith("<!DOCTYPE html>"), "<script" in page, "&lt;script&gt;" in page
    (True, False, True)
    """
    if not isinstance(publication, Publication):
        raise InvalidArgument(
            "publication", "a publication", type(publication).__name__, "pass what release() returned"
        )
    tables = [*dict.fromkeys(publication.estimates.tables)]
    parts = [head(title), _summary(publication, tables), _promises(publication), _cost(publication)]
    parts.append(_errors(publication, tables))
    parts += _maps(publication, tables)
    parts += _all_tables(publication, tables)
    parts += ["<h2>What is not promised</h2>\n", _listed(_not_promised(publication)), FOOT]
    return "".join(parts)


def write_publication(path: str | os.PathLike[str], publication: Publication, title: str = "Published tables") -> None:
    """Write the page to a file; it appears whole or not at all.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import dither as dp
    >>> from dither.publish import Attribute, Domain, MarginalPlan, table_spec
    >>> domain = Domain([Attribute.flat("sex", ["f", "m"])])
    >>> released = MarginalPlan(domain, [table_spec(domain, ["sex"])]).release({(1,): [500, 600]}, dp.ZCDP(0.5))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_publication(folder + "/tables.html", released)
    ...     Path(folder, "tables.html").read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    write(path, publication_page(publication, title))


def _name(publication: Publication, levels: Levels) -> str:
    return " × ".join(publication.names_of(levels)) or "everybody"


def _summary(publication: Publication, tables: Sequence[Levels]) -> str:
    cost = publication.guarantee
    domain = publication.estimates.domain
    cells = sum(domain.size(levels) for levels in tables)
    return (
        f"<p>{len(tables)} table{'s' if len(tables) != 1 else ''} with {cells:,} cells, published in one release.</p>\n"
        f"<h2>What is guaranteed</h2>\n<p>{escaped(str(cost))} for the whole page: add or remove all the rows of "
        f"one person, and every conclusion drawn from it would {words.likelihood(cost)}. This holds against anybody, "
        "whatever they know already. Estimates, whole counts and records are computed from the same release, so that "
        "all of them together cost no more than one.</p>\n"
    )


def _promises(publication: Publication) -> str:
    rows = [
        (
            "value ± error",
            "Unbiased estimates. Each interval holds the exact count of the rows that count with 95 % probability, and "
            "so do the intervals of sums of cells. Estimates may be negative or not whole. Tables agree: each is a "
            "margin of finer ones.",
        )
    ]
    if publication.has_whole_counts:
        rows += [
            (
                "whole",
                "Whole counts, none negative. Every table is a margin of one object, and children add up to their "
                "parents. They have no intervals of their own: what is never negative is biased near zero, and they "
                "may differ from the values by more than the ±.",
            ),
            ("records", "One row for each person of the whole counts: grouped by any table, they give exactly it."),
        ]
    public = [_name(publication, levels) for levels in publication.totals.tables]
    if public:
        rows.append(
            (
                "public totals",
                f"{', '.join(public)}: numbers of the plan that were public before. They are met exactly, have no "
                "error, and nothing was spent on them.",
            )
        )
    lines = "".join(f'<tr><th scope="row">{name}</th><td>{escaped(text)}</td></tr>\n' for name, text in rows)
    return (
        '<table class="facts">\n<caption>What the numbers mean, and what is promised of each.</caption>\n'
        f"<tbody>\n{lines}</tbody>\n</table>\n"
    )


def _cost(publication: Publication) -> str:
    facts = [("cost", f"{publication.cost}{' (paid earlier: this was recorded then)' if publication.replayed else ''}")]
    if publication.remaining is not None:
        facts.append(("left of the budget", str(publication.remaining)))
    if publication.left_out is not None:
        facts.append(("left out by the limit on a person's rows", str(publication.left_out)))
    facts += [("note", str(note)) for note in publication.notes]
    if publication.receipt:
        facts.append(("receipt", publication.receipt))
    lines = "".join(f'<tr><th scope="row">{name}</th><td>{escaped(text)}</td></tr>\n' for name, text in facts)
    return (
        '<h2>What it cost</h2>\n<table class="facts">\n<caption>Cost, and what the numbers leave out.</caption>\n'
        f"<tbody>\n{lines}</tbody>\n</table>\n"
    )


def _errors(publication: Publication, tables: Sequence[Levels]) -> str:
    estimates = publication.estimates
    total = max(float(estimates.values((0,) * len(estimates.domain.attributes)).sum()), 0.0)
    lines = []
    for levels in tables[:MAX_TABLES]:
        error = _mean_error(publication, levels)
        average = total / estimates.domain.size(levels)
        share = "exact" if error == 0 else f"{_percent(error / average)}" if average > 0 else ""
        cells = f"± {significant(error, 3)}", share, f"{estimates.domain.size(levels):,}", f"{average:,.1f}"
        numbers = "".join(f'<td class="n">{cell}</td>' for cell in cells)
        lines.append(f'<tr><th scope="row">{escaped(_name(publication, levels))}</th>{numbers}</tr>\n')
    return "<h2>Errors</h2>\n" + _table(
        ("table", "error, 95 %", "of the mean", "cells", "mean of a cell"),
        lines,
        f"Root mean square of the half-widths of the 95 % intervals.{_beside(publication)}"
        + _more(len(tables), MAX_TABLES, "tables"),
    )


def _beside(publication: Publication) -> str:
    """What stands beside every ±: how much the limit on a person's rows leaves out."""
    if publication.max_rows is None:
        return ""
    if publication.left_out is None:
        return " What the limit on a person's rows leaves out is not in them, and is not known."
    return f" Not in them: {escaped(str(publication.left_out))}."


def _mean_error(publication: Publication, levels: Levels) -> float:
    """The root of the mean squared half-width of a table's intervals."""
    estimates = publication.estimates
    shares = estimates.residuals.mean_variances(levels, estimates.variances)
    variance = float(shares @ np.array([*estimates.variances.values()])) if len(shares) else 0.0
    return normal_quantile(_CONFIDENCE) * estimates.unit * math.sqrt(variance)


def _maps(publication: Publication, tables: Sequence[Levels]) -> list[str]:
    """For each nested attribute: relative errors of the places of each level, as quantiles and as treemaps."""
    domain = publication.estimates.domain
    parts = []
    for axis, attribute in enumerate(domain.attributes):
        deepest = max(levels[axis] for levels in tables)
        if deepest < 2:
            continue
        lines, pictures = [], []
        for level in range(1, deepest + 1):
            name = attribute.level_names[level - 1]
            estimate = publication.estimates.table([name])
            widths = normal_quantile(_CONFIDENCE) * estimate.standard_error
            values = np.maximum(estimate.value, 0.0)
            relative = widths / np.maximum(values, 1.0)
            low, middle, high = np.quantile(relative, [0.1, 0.5, 0.9])
            cells = f"{len(values):,}", f"{np.median(values):,.0f}", *map(_percent, (low, middle, high))
            numbers = "".join(f'<td class="n">{cell}</td>' for cell in cells)
            lines.append(f'<tr><th scope="row">{escaped(name)}</th>{numbers}</tr>\n')
            if len(values) <= MAX_PLACES and values.sum() > 0:
                labels = [_key(key) for key in attribute.keys[level - 1].to_pylist()]
                title = f"{name}: areas are estimated counts, colors are relative errors (95 %)"
                picture = treemap(labels, values.tolist(), relative.tolist(), title)
                pictures.append(f"<figure>\n<p>{escaped(title)}</p>\n{picture}</figure>\n")
        parts += [
            f"<h2>Errors by level of {escaped(attribute.name)}</h2>\n",
            _table(
                ("level", "places", "median count", "10 %", "half", "90 %"),
                lines,
                "The half-width of the 95 % interval over the estimate: 10 %, half and 90 % of the places have at most "
                "this error.",
            ),
            *pictures,
        ]
    return parts


def _all_tables(publication: Publication, tables: Sequence[Levels]) -> list[str]:
    parts, charts = ["<h2>Tables</h2>\n"], 0
    for levels in tables[:MAX_TABLES]:
        names = publication.estimates.domain.names(levels)
        keys, values, errors, whole = _rows(publication, names, levels)
        headings = (*(names or ("",)), "value", "±", *(["whole"] if whole is not None else []))
        lines = []
        for i, row_keys in enumerate(keys):
            value, error = with_error(values[i], errors[i]) if errors[i] > 0 else (f"{values[i]:,.6g}", "exact")
            numbers = [value, error, *([f"{whole[i]:,}"] if whole is not None else [])]
            first, *rest = row_keys
            cells = "".join(f"<td>{escaped(key)}</td>" for key in rest)
            cells += "".join(f'<td class="n">{escaped(text)}</td>' for text in numbers)
            lines.append(f'<tr><th scope="row">{escaped(first)}</th>{cells}</tr>\n')
        size = publication.estimates.domain.size(levels)
        caption = f"{escaped(_name(publication, levels))}.{_more(size, MAX_ROWS, 'rows')}"
        parts.append(_table(headings, lines, caption, keys=len(keys[0])))
        if 1 < size <= MAX_BARS and charts < MAX_CHARTS and any(error > 0 for error in errors):
            rows = tuple((", ".join(key), value) for key, value in zip(keys, values, strict=True))
            answer = Answer(("key", "count"), ("text", "number"), rows, {"count": tuple(errors)}, publication.cost)
            parts.append(f"<figure>\n{chart(answer)}</figure>\n")
            charts += 1
    if len(tables) > MAX_TABLES:
        parts.append(f"<p>{len(tables) - MAX_TABLES:,} more tables are in the files.</p>\n")
    return parts


def _rows(
    publication: Publication, names: Sequence[str], levels: Levels
) -> tuple[list[list[str]], list[float], list[float], list[int] | None]:
    """The first rows of a table: keys, values, half-widths of intervals, whole counts where there are any."""
    domain = publication.estimates.domain
    count = min(domain.size(levels), MAX_ROWS)
    places = np.unravel_index(np.arange(count), domain.shape(levels))
    columns = [
        [_key(attribute.keys[level - 1][int(i)].as_py()) for i in place]
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
    result = [
        "A single value may be off by more than its ±: about one in twenty is.",
        "Domains, bins and lookups are taken to be public. If they were read off the data, the promise does not cover "
        "what they give away.",
        "Rows of one person count up to a limit. What the limit leaves out is not in the ±"
        + ("." if publication.left_out is None else f": {publication.left_out}."),
        "What is true of people in general is not hidden.",
    ]
    if publication.has_whole_counts:
        result.insert(
            1,
            "Whole counts are for printing and for programs that want rows. For analysis use the values: sums of "
            "whole counts over many small cells are less exact than the estimate of the sum.",
        )
    return result


def _table(headings: Sequence[str], lines: Sequence[str], caption: str, keys: int = 1) -> str:
    cells = "".join(
        f'<th scope="col"{side}>{escaped(name)}</th>'
        for name, side in zip(headings, [""] * keys + [' class="n"'] * (len(headings) - keys), strict=True)
    )
    return (
        f'<div class="wide">\n<table>\n<caption>{caption}</caption>\n<thead><tr>{cells}</tr></thead>\n'
        f"<tbody>\n{''.join(lines)}</tbody>\n</table>\n</div>\n"
    )


def _more(size: int, limit: int, what: str) -> str:
    return f" The first {limit} of {size:,} {what}." if size > limit else ""


def _key(value: Any) -> str:
    return "NULL" if value is None else shown(value)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:,.0f} %"


def _listed(lines: Sequence[str]) -> str:
    return "<ul>\n" + "".join(f"<li>{escaped(line)}</li>\n" for line in lines) + "</ul>\n"
