"""An HTML page about an audit: what was claimed, proved, measured and replayed, with trade-off plots.

A test that distinguishes two neighbors has a level alpha (the probability of a false positive) and a power (the
probability of a true positive). Under (epsilon, delta)-DP every test lies between two curves; the measured tests are
drawn on top, so that a violated claim is visible.
"""

from __future__ import annotations

import math
import os
from typing import Any

from dither.audit import Audit, Row
from dither.present.markup import escaped
from dither.present.pages.sheet import FOOT, head, write

_SIZE, _EDGE, _STEPS = 190, 26, 60


def audit_html(audit: Audit, title: str = "An audit of privacy") -> str:
    """The page as HTML text.

    >>> from dither.audit import audit
    >>> from dither.audit.suite.subjects import subjects
    >>> page = audit_html(audit(subjects()[:1], seconds=0.05))
    >>> "<svg" in page, "<script" in page
    (True, False)
    """
    refuted = sum(row.refuted for row in audit.rows)
    verdict = "Nothing was refuted." if audit.passed else f"{refuted} of {len(audit.rows)} claims were REFUTED."
    parts = [
        head(title),
        f"<p>{verdict} A claim that is true is refuted anywhere in this audit with probability at most "
        f"{1 - audit.confidence:.2g}. Not refuted is not proved: only a certificate proves.</p>\n",
        '<div class="wide">\n<table>\n<caption>Every subject. Moved: how far neighbors moved the input of a release, ',
        "in units of its sensitivity Δ.</caption>\n<thead><tr>",
        *(f'<th scope="col">{name}</th>' for name in COLUMNS),
        "</tr></thead>\n<tbody>\n",
    ]
    for row in audit.rows:
        first, *rest = cells(row)
        row_cells = "".join(f"<td>{escaped(cell)}</td>" for cell in rest)
        parts.append(f'<tr><th scope="row">{escaped(first)}</th>{row_cells}</tr>\n')
    parts.append("</tbody>\n</table>\n</div>\n")
    measured_rows = [row for row in audit.rows if row.measured and row.measured["points"]]
    if measured_rows:
        parts += [
            "<h2>Trade-off between level and power</h2>\n<p>Level across, power upwards. Between the lines is what ",
            "the claim allows; the points are the observed levels and powers of tests, without a margin for sampling ",
            "error.</p>\n",
        ]
        parts += [trade_off(row) for row in measured_rows]
    findings = [(row.name, finding) for row in audit.rows for finding in (row.replayed or {}).get("findings", ())]
    if findings:
        parts.append("<h2>Leaks</h2>\n<ul>\n")
        parts += [f"<li>{escaped(name)}: {escaped(finding)}</li>\n" for name, finding in findings]
        parts.append("</ul>\n")
    return "".join([*parts, FOOT])


def write_audit(path: str | os.PathLike[str], audit: Audit, title: str = "An audit of privacy") -> None:
    """Write the page to a file atomically."""
    write(path, audit_html(audit, title))


COLUMNS = ("subject", "claimed", "certified", "measured at least", "runs a side", "moved", "verdict")


def cells(row: Row) -> tuple[str, ...]:
    """The cells of one table row, as text."""
    measured = row.measured
    return (
        row.name,
        row.claim,
        _certified(row.certified),
        "" if measured is None else f"ε ≥ {measured['epsilon']:.3f}" + (f" at δ = {row.delta:g}" if row.delta else ""),
        "" if measured is None else f"{measured['trials']:,}",
        "" if row.replayed is None else _replayed(row.replayed),
        row.verdict,
    )


def _certified(certificate: dict[str, Any] | None) -> str:
    if certificate is None:
        return ""
    if certificate["rho"] is not None and "rho" in certificate["claim"]:
        return f"ρ ≤ {certificate['rho']:.6g}"
    if certificate["pure"] and "delta" not in certificate["claim"]:
        return f"ε ≤ {certificate['epsilon']:.6g}"
    return f"δ({certificate['at']:g}) ≤ {certificate['delta']:.3g}"


def _replayed(replay: dict[str, Any]) -> str:
    if not replay["passed"]:
        return f"{len(replay['findings'])} leak(s)"
    farthest = max((release["moved"] for release in replay["releases"]), default=0.0)
    return f"{farthest:.3g} Δ"


def trade_off(row: Row) -> str:
    """A plot of the region that the claim allows and of the measured tests, as SVG."""
    assert row.measured is not None

    def x(alpha: float) -> str:
        return f"{_EDGE + alpha * _SIZE:.1f}"

    def y(power: float) -> str:
        return f"{_EDGE + (1 - power) * _SIZE:.1f}"

    steps = [i / _STEPS for i in range(_STEPS + 1)]
    high = [(alpha, max_power(alpha, row.epsilon, row.delta)) for alpha in steps]
    low = [(alpha, 1 - max_power(1 - alpha, row.epsilon, row.delta)) for alpha in steps]
    region = " ".join(f"{x(a)},{y(p)}" for a, p in [*high, *reversed(low)])
    points = "".join(
        f'<circle cx="{x(alpha)}" cy="{y(power)}" r="1.8" fill="{"#b00020" if row.refuted else "#1a1a1a"}"/>'
        for alpha, power in row.measured["points"]
    )
    title = f"{row.name}: {row.claim}, {row.verdict}"
    side = _SIZE + 2 * _EDGE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {side + 14}" width="{side}" '
        f'height="{side + 14}" role="img" aria-label="{escaped(title)}" font-family="sans-serif" font-size="11">'
        f"<title>{escaped(title)}</title>"
        f'<text x="{_EDGE}" y="16" fill="#1a1a1a">{escaped(row.name)}</text>'
        f'<rect x="{_EDGE}" y="{_EDGE}" width="{_SIZE}" height="{_SIZE}" fill="none" stroke="#c8c8c8"/>'
        f'<polygon points="{region}" fill="#dbe7f3" stroke="#4a78a8"/>{points}'
        f'<text x="{_EDGE}" y="{side - 8}" fill="#444444">0</text>'
        f'<text x="{_EDGE + _SIZE / 2}" y="{side - 8}" text-anchor="middle" fill="#444444">level</text>'
        f'<text x="{_EDGE + _SIZE}" y="{side - 8}" text-anchor="end" fill="#444444">1</text>'
        f'<text x="{_EDGE - 6}" y="{_EDGE + _SIZE / 2}" text-anchor="middle" fill="#444444" '
        f'transform="rotate(-90 {_EDGE - 6} {_EDGE + _SIZE / 2})">power</text></svg>\n'
    )


def max_power(alpha: float, epsilon: float, delta: float) -> float:
    """The largest power of a test of level alpha: ``min(e^epsilon alpha + delta, 1 - e^-epsilon (1 - delta - alpha))``.

    >>> round(max_power(0.05, 1.0, 0.0), 4), max_power(1.0, 1.0, 0.0)
    (0.1359, 1.0)
    """
    return min(math.exp(epsilon) * alpha + delta, 1 - math.exp(-epsilon) * (1 - delta - alpha), 1.0)
