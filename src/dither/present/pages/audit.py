"""One page about an audit: what was claimed, proved, measured and replayed, with trade-off charts.

A test that distinguishes two neighbors has a level alpha (the probability of a false positive) and a power (the
probability of a true positive). Under (epsilon, delta)-DP every test lies between two curves; the measured tests are
drawn on top, so that a violated claim is visible.
"""

from __future__ import annotations

import math
from typing import Any

from dither.audit import Audit, Row
from dither.present.chart import Axis, Chart, Mark
from dither.present.pages import sheet

COLUMNS = ("subject", "claimed", "certified", "measured at least", "runs a side", "moved", "verdict")
_STEPS = 60


def audit_page(audit: Audit, title: str) -> str:
    """Render the page of an audit with this ``title``: the verdict, every subject, trade-off charts and leaks."""
    refuted = sum(row.refuted for row in audit.rows)
    verdict = "Nothing was refuted." if audit.passed else f"{refuted} of {len(audit.rows)} claims were REFUTED."
    verdict += (
        " A claim that is true is refuted anywhere in this audit with probability at most "
        f"{1 - audit.confidence:.2g}. Not refuted is not proved: only a certificate proves."
    )
    caption = "Every subject. Moved: how far neighbors moved the input of a release, in units of its sensitivity Δ."
    parts = [sheet.paragraph(verdict), sheet.table(COLUMNS, map(cells, audit.rows), caption)]
    measured = [row for row in audit.rows if row.measured and row.measured["points"]]
    if measured:
        explained = (
            "Level across, power upwards. The blue region is what the claim allows; the points are the observed levels "
            "and powers of tests, without a margin for sampling error."
        )
        figures = sheet.side_by_side(sheet.figure(trade_off(row), width=240, height=190) for row in measured)
        parts.append(sheet.section("Trade-off between level and power", sheet.paragraph(explained), figures))
    findings = [f"{row.name}: {finding}" for row in audit.rows for finding in (row.replayed or {}).get("findings", ())]
    if findings:
        parts.append(sheet.section("Leaks", sheet.listed(findings)))
    return sheet.page(title, *parts)


def cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a subject in the table of an audit."""
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
    """Return the bound that a certificate proves, as text; empty without one."""
    if certificate is None:
        return ""
    if certificate["rho"] is not None and "rho" in certificate["claim"]:
        return f"ρ ≤ {certificate['rho']:.6g}"
    if certificate["pure"] and "delta" not in certificate["claim"]:
        return f"ε ≤ {certificate['epsilon']:.6g}"
    return f"δ({certificate['at']:g}) ≤ {certificate['delta']:.3g}"


def _replayed(replay: dict[str, Any]) -> str:
    """Return how far neighboring inputs moved the inputs of releases, in units of their sensitivity Δ, or the number of
    leaks, as text."""
    if not replay["passed"]:
        return f"{len(replay['findings'])} leak(s)"
    farthest = max((release["moved"] for release in replay["releases"]), default=0.0)
    return f"{farthest:.3g} Δ"


def trade_off(row: Row) -> Chart:
    """Build the chart of the region that a claim allows, and of the measured tests."""
    assert row.measured is not None
    levels = [i / _STEPS for i in range(_STEPS + 1)]
    high = [max_power(level, row.epsilon, row.delta) for level in levels]
    low = [1 - max_power(1 - level, row.epsilon, row.delta) for level in levels]
    ends = list(zip(low, high, strict=True))
    middle, halves = tuple((a + b) / 2 for a, b in ends), tuple((b - a) / 2 for a, b in ends)
    allowed = Mark(middle, tuple(levels), style="area", errors=halves)
    alphas, powers = zip(*row.measured["points"], strict=True)
    tests = Mark(powers, alphas, style="points", color=4 if row.refuted else 2)
    ticks = ((0.0, "0"), (0.5, "0.5"), (1.0, "1"))
    level, power = (Axis(label, low=0.0, high=1.0, ticks=ticks) for label in ("level", "power"))
    return Chart(f"{row.name}: {row.claim}, {row.verdict}", (allowed, tests), level, power, heading=row.name)


def max_power(alpha: float, epsilon: float, delta: float) -> float:
    """Return the largest power of a test at level alpha: ``min(e^epsilon alpha + delta, 1 - e^-epsilon (1 - delta -
    alpha))``.

    >>> round(max_power(0.05, 1.0, 0.0), 4), max_power(1.0, 1.0, 0.0)
    (0.1359, 1.0)
    """
    return min(math.exp(epsilon) * alpha + delta, 1 - math.exp(-epsilon) * (1 - delta - alpha), 1.0)
