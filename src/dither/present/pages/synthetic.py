"""One page of HTML about synthetic records: what they promise, and how close they are to what was released.

Everything on it is computed from what was released: the noisy tables, and the records. It compares no record with a
private row.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from dither.errors import InvalidArgument
from dither.present import words
from dither.present.digits import significant
from dither.present.markup import escaped
from dither.present.notes import Note
from dither.present.pages.sheet import FOOT, head, write
from dither.publish.record_values import RecordColumn
from dither.publish.synthesizer import Synthesis, TableComparison, column_comparisons, comparisons

MAX_TABLES = 100
MAX_CHARTS = 40
_FEW_KEYS = 16
_WIDTH, _LABEL, _LINE, _HEIGHT = 340, 130, 18, 110
_NOISY, _RECORDS = "#9aa5b1", "#0b61a4"
_HALF_WIDTH = 1.959964
"""Half the width of an interval of 95 %, in deviations of a normal law."""


def synthetic_page(
    synthesis: Synthesis,
    title: str = "Synthetic records",
    *,
    constraints: Sequence[str] = (),
    notes: Sequence[Note] = (),
    facts: Sequence[tuple[str, str]] = (),
) -> str:
    """The page, as text: it holds no script, loads nothing, and is the same for the same release.

    >>> from dither.guarantees import ZCDP
    >>> from dither.publish import Attribute, Domain, Synthesizer
    >>> synthesizer = Synthesizer(Domain([Attribute.flat("sex", ["f", "<script>"])]), ZCDP(1))
    >>> page = synthetic_page(synthesizer.release({(1,): [300, 200]}))
    >>> page.startswith("<!DOCTYPE html>"), "<script" in page, "&lt;script&gt;" in page
    (True, False, True)
    """
    if not isinstance(synthesis, Synthesis):
        got = type(synthesis).__name__
        raise InvalidArgument("synthesis", "a synthesis", got, "pass what Synthesizer.release returned")
    measured = comparisons(synthesis)
    parts = [head(title), _summary(synthesis, measured, facts)]
    if constraints:
        parts += ["<h2>Rules</h2>\n<p>No record violates these:</p>\n", _listed(constraints)]
    parts += [_columns(synthesis), _closeness(measured), "<h2>What is not promised</h2>\n", _listed(_NOT_PROMISED)]
    if notes:
        parts += ["<h2>Notes</h2>\n", _listed([*map(str, notes)])]
    return "".join([*parts, FOOT])


def write_synthetic(
    path: str | os.PathLike[str],
    synthesis: Synthesis,
    title: str = "Synthetic records",
    *,
    constraints: Sequence[str] = (),
    notes: Sequence[Note] = (),
    facts: Sequence[tuple[str, str]] = (),
) -> None:
    """Write the page to a file; it appears whole or not at all.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from dither.guarantees import ZCDP
    >>> from dither.publish import Attribute, Domain, Synthesizer
    >>> synthesizer = Synthesizer(Domain([Attribute.flat("sex", ["f", "m"])]), ZCDP(1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_synthetic(folder + "/page.html", synthesizer.release({(1,): [300, 200]}))
    ...     Path(folder, "page.html").read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    write(path, synthetic_page(synthesis, title, constraints=constraints, notes=notes, facts=facts))


_NOT_PROMISED = (
    "Relations that no measured table shows are not in the records: columns that were never measured together are "
    "related only through others.",
    "Records are no more precise than the measured tables: an analysis of them should add the noise to its errors.",
    "No record is a person. A record may be like a person by chance, as any made-up one may.",
)


def _summary(synthesis: Synthesis, measured: Sequence[TableComparison], facts: Sequence[tuple[str, str]]) -> str:
    cost, change = str(synthesis.guarantee), words.likelihood(synthesis.guarantee)
    rows = [
        ("records", f"{synthesis.records.num_rows:,} of {len(synthesis.columns)} columns"),
        ("measured", f"{len(measured)} tables in {len(synthesis.rounds)} measurements"),
        ("cost", cost),
        *facts,
    ]
    lines = "".join(f'<tr><th scope="row">{escaped(name)}</th><td>{escaped(text)}</td></tr>\n' for name, text in rows)
    return (
        f'<table class="facts">\n<tbody>\n{lines}</tbody>\n</table>\n'
        f"<h2>What is guaranteed</h2>\n<p>{escaped(cost)} for the records and this page together: add or remove all "
        f"the rows of one person, and every conclusion drawn from them would {change}. This holds against "
        "anybody, whatever they know already.</p>\n"
    )


def _closeness(measured: Sequence[TableComparison]) -> str:
    lines = []
    for item in sorted(measured, key=lambda item: item.expected_distance - item.distance)[:MAX_TABLES]:
        numbers = (
            f"{item.noisy.size:,}",
            f"± {significant(_HALF_WIDTH * item.sigma, 2)}",
            f"{100 * item.distance:.1f} %",
            f"{100 * item.expected_distance:.1f} %",
        )
        cells = "".join(f'<td class="n">{number}</td>' for number in numbers)
        lines.append(f'<tr><th scope="row">{escaped(" × ".join(item.names))}</th>{cells}</tr>\n')
    names = ("cells", "±", "records", "noise")
    columns = "".join(f'<th scope="col" class="n">{name}</th>' for name in names)
    more = "" if len(measured) <= MAX_TABLES else f" The first {MAX_TABLES} of {len(measured)}."
    return (
        "<h2>How close the records are</h2>\n"
        "<p>Each measured table was released with noise; ± is the error of one of its cells, at 95 %. <em>Records</em> "
        "says which part of all records would have to be changed to give the released counts; <em>noise</em>, how "
        "large that part is expected to be for exact counts, since released ones are off by their noise. Where the "
        "first is not much larger than the second, the records are as close as what was released can say; where it is "
        'smaller, they follow some of the noise.</p>\n<div class="wide">\n<table>\n'
        f"<caption>The tables that fit worst come first.{more}</caption>\n"
        f'<thead><tr><th scope="col">table</th>{columns}</tr></thead>\n<tbody>\n{"".join(lines)}</tbody>\n'
        "</table>\n</div>\n"
    )


def _columns(synthesis: Synthesis) -> str:
    items = column_comparisons(synthesis)
    charts = [_chart(item, synthesis.columns[item.table[0]]) for item in items[:MAX_CHARTS]]
    more = "" if len(items) <= MAX_CHARTS else f" The first {MAX_CHARTS} of {len(items)} columns."
    return (
        f'<h2>Columns</h2>\n<p><span style="color:{_NOISY}">▮</span> released count with its 95 % interval, '
        f'<span style="color:{_RECORDS}">●</span> count of the records.{more}</p>\n'
        f'<div style="display:flex;flex-wrap:wrap;gap:1rem">\n{"".join(charts)}</div>\n'
    )


def _chart(item: TableComparison, column: RecordColumn) -> str:
    keys = [column.label(code) for code in range(len(item.noisy))]
    name = column.attribute.name
    label, short = f"{name}: released counts and counts of the records", name if len(name) <= 36 else name[:35] + "…"
    body, height = _few(item, keys) if len(keys) <= _FEW_KEYS else _many(item, keys)
    return (
        f'<figure style="margin:0;max-width:100%">\n<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} '
        f'{height}" width="{_WIDTH}" height="{height}" role="img" aria-label="{escaped(label)}" '
        f'font-family="sans-serif" font-size="11"><title>{escaped(label)}</title>'
        f'<text x="0" y="13" font-weight="bold" font-size="13" fill="#1a1a1a">{escaped(short)}</text>'
        f"{body}</svg>\n</figure>\n"
    )


def _scale(item: TableComparison) -> float:
    """The largest number that a chart shows."""
    return max(float(item.noisy.max()) + _HALF_WIDTH * item.sigma, float(item.records.max()), 1.0)


def _few(item: TableComparison, keys: Sequence[str]) -> tuple[str, int]:
    """A line for each key: bar, interval and point."""
    room, largest = _WIDTH - _LABEL - 62, _scale(item)

    def x(value: float) -> str:
        return f"{_LABEL + room * min(max(value / largest, 0.0), 1.0):.1f}"

    parts = []
    for i, (key, noisy, record) in enumerate(zip(keys, item.noisy.tolist(), item.records.tolist(), strict=True)):
        top = 22 + _LINE * i
        low, high = x(noisy - _HALF_WIDTH * item.sigma), x(noisy + _HALF_WIDTH * item.sigma)
        short = key if len(key) <= 20 else key[:19] + "…"
        parts.append(
            f'<text x="{_LABEL - 6}" y="{top + 12}" text-anchor="end" fill="#1a1a1a">{escaped(short)}</text>'
            f'<rect x="{_LABEL}" y="{top + 3}" width="{float(x(noisy)) - _LABEL:.1f}" height="10" fill="{_NOISY}"/>'
            f'<path d="M{low} {top + 8}H{high}" stroke="#1a1a1a" stroke-width="1.5"/>'
            f'<circle cx="{x(record)}" cy="{top + 8}" r="3.5" fill="{_RECORDS}"/>'
            f'<text x="{_WIDTH - 2}" y="{top + 12}" text-anchor="end" fill="#1a1a1a">{record:,.0f}</text>'
        )
    return "".join(parts), 28 + _LINE * len(keys)


def _many(item: TableComparison, keys: Sequence[str]) -> tuple[str, int]:
    """A bar for each key, side by side, with its interval; points for the records."""
    largest, foot = _scale(item), 24 + _HEIGHT
    step = (_WIDTH - 12) / len(keys)

    def y(value: float) -> str:
        return f"{foot - _HEIGHT * min(max(value / largest, 0.0), 1.0):.1f}"

    parts = []
    for i, (noisy, record) in enumerate(zip(item.noisy.tolist(), item.records.tolist(), strict=True)):
        middle = f"{6 + step * (i + 0.5):.1f}"
        low, high = y(noisy - _HALF_WIDTH * item.sigma), y(noisy + _HALF_WIDTH * item.sigma)
        parts.append(
            f'<rect x="{6 + step * (i + 0.1):.1f}" y="{y(noisy)}" width="{0.8 * step:.1f}" '
            f'height="{foot - float(y(noisy)):.1f}" fill="{_NOISY}"/>'
            f'<path d="M{middle} {low}V{high}" stroke="#1a1a1a" stroke-width="0.8"/>'
            f'<circle cx="{middle}" cy="{y(record)}" r="{min(3.0, max(1.2, 0.45 * step)):.1f}" fill="{_RECORDS}"/>'
        )
    parts.append(
        f'<path d="M6 {foot}H{_WIDTH - 6}" stroke="#1a1a1a"/>'
        f'<text x="6" y="{foot + 14}" fill="#1a1a1a">{escaped(keys[0])}</text>'
        f'<text x="{_WIDTH - 6}" y="{foot + 14}" text-anchor="end" fill="#1a1a1a">{escaped(keys[-1])}</text>'
        f'<text x="{_WIDTH - 6}" y="13" text-anchor="end" fill="#444444">up to {largest:,.0f}</text>'
    )
    return "".join(parts), foot + 20


def _listed(lines: Sequence[str]) -> str:
    return "<ul>\n" + "".join(f"<li>{escaped(line)}</li>\n" for line in lines) + "</ul>\n"
