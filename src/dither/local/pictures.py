"""How a local protocol looks in a notebook: what it promises, what a report weighs, and its error by people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dither.present import drawing, markup

if TYPE_CHECKING:
    from dither.local.protocol import LocalProtocol

PEOPLE = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)


def fragment(protocol: LocalProtocol[Any]) -> str:
    """The HTML of a protocol. It reads no reports: everything shown follows from its public parameters.

    >>> import dither as dp
    >>> page = fragment(dp.local.SubsetSelection(categories=128, epsilon=1))
    >>> "ε = 1 for each report" in page, page.count("<svg")
    (True, 1)
    """
    from dither.local.windows import Mean

    what = "the mean" if isinstance(protocol, Mean) else "the share of a rare category"
    pairs = [
        ("promises", f"{protocol.guarantee} for each report"),
        ("a report has", f"{protocol.report_bits:,} bits"),
        ("variance × people", f"{protocol.variance(1):.4g}, for {what}"),
    ]
    bars = [(f"{n:,} people", protocol.error(n=n), 0.0) for n in PEOPLE]
    picture = drawing.bar_chart(bars, title=f"± of {what} (95 %), by how many people report")
    return markup.block(markup.heading(repr(protocol)), markup.facts(pairs), picture)
