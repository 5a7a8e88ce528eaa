"""Which protocol to take: the smallest variance among those whose reports are short enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dither import arguments
from dither.errors import InvalidArgument
from dither.local.finite_fields import LocalHashing, ProjectiveGeometryResponse
from dither.local.hadamard_response import HadamardResponse
from dither.local.protocol import LocalProtocol
from dither.local.subset_selection import RandomizedResponse, SubsetSelection, UnaryEncoding

_NEARLY = 1.02


@dataclass(frozen=True)
class Recommendation:
    """The protocol of the smallest variance, the alternatives in order, and the reason.

    >>> import dither as dp
    >>> choice = dp.local.best(categories=1024, epsilon=1, max_bits=16)
    >>> choice.protocol
    ProjectiveGeometryResponse(categories=1024, epsilon=1)
    """

    protocol: LocalProtocol[Any]
    alternatives: tuple[LocalProtocol[Any], ...]
    """All protocols that were compared and fit, the smallest variance first."""
    max_bits: int | None = None

    @property
    def reason(self) -> str:
        """Explain in a sentence or two why this protocol is recommended.

        >>> import dither as dp
        >>> print(dp.local.best(categories=4, epsilon=4).reason)
        RandomizedResponse has the smallest variance of 6 protocols, 0.0197/n for a rare category, with reports of 2
        bits.
        """
        return " ".join(self._reasons())

    def _reasons(self) -> list[str]:
        """Return the sentences of :attr:`reason`: one on the protocol and, if any, one on a shorter alternative."""
        p = self.protocol
        limit = "" if self.max_bits is None else f" with reports of at most {self.max_bits} bits"
        sentences = [
            f"{type(p).__name__} has the smallest variance of {len(self.alternatives)} protocols{limit}, "
            f"{p.variance(1):.4g}/n for a rare category, with reports of {p.report_bits} bits."
        ]
        near = [
            other
            for other in self.alternatives[1:]
            if other.variance(1) <= _NEARLY * p.variance(1) and 2 * other.report_bits <= p.report_bits
        ]
        if near:
            short = min(near, key=lambda other: other.report_bits)
            more = short.variance(1) / p.variance(1) - 1
            sentences.append(
                f"{type(short).__name__} has {more:.1%} more variance with reports of {short.report_bits} bits; "
                f"pass max_bits={short.report_bits} for it."
            )
        return sentences

    def explain(self, error: float = 0.01, confidence: float = 0.95) -> str:
        """Return the reason and the alternatives as a table: variance, bits of a report, and people needed.

        The number of people is that for which an estimated share is within ``error`` with probability ``confidence``.

        >>> import dither as dp
        >>> print(dp.local.best(categories=128, epsilon=1).explain(error=0.01))
        SubsetSelection has the smallest variance of 6 protocols, 3.61/n for a rare category, with reports of 128 bits.
        ProjectiveGeometryResponse has 1.5% more variance with reports of 9 bits; pass max_bits=9 for it.
        <BLANKLINE>
        protocol                      n * variance    bits    people for ± 0.01 (95%)
        SubsetSelection                       3.61     128                   138,669
        ProjectiveGeometryResponse           3.664       9                   140,761
        UnaryEncoding                        3.683     128                   141,470
        LocalHashing                         3.692      10                   141,814
        HadamardResponse                     4.683       8                   179,884
        RandomizedResponse                    43.6       7                 1,674,741
        """
        title = f"people for ± {arguments.positive(error, 'error'):g} ({arguments.confidence(confidence):.0%})"
        rows = [f"{'protocol':<28}{'n * variance':>14}{'bits':>8}{title:>27}"]
        for p in self.alternatives:
            people = f"{p.people_needed(error, confidence):,}"
            rows.append(f"{type(p).__name__:<28}{p.variance(1):>14.4g}{p.report_bits:>8}{people:>27}")
        return "\n".join([*self._reasons(), "", *rows])

    def __str__(self) -> str:
        return self.explain()


def best(categories: Any, epsilon: float, *, max_bits: int | None = None) -> Recommendation:
    """Return the protocol with the smallest variance for a rare category, among those with reports of at most
    ``max_bits``.

    >>> import dither as dp
    >>> dp.local.best(categories=128, epsilon=1).protocol
    SubsetSelection(categories=128, epsilon=1)
    >>> dp.local.best(categories=128, epsilon=1, max_bits=16).protocol
    ProjectiveGeometryResponse(categories=128, epsilon=1)
    """
    kinds = (RandomizedResponse, SubsetSelection, UnaryEncoding, LocalHashing, HadamardResponse)
    candidates: list[LocalProtocol[Any]] = [kind(categories, epsilon) for kind in kinds]
    candidates.append(ProjectiveGeometryResponse(categories, epsilon))
    if max_bits is not None:
        limit = arguments.whole(max_bits, "max_bits")
        shortest = min(p.report_bits for p in candidates)
        candidates = [p for p in candidates if p.report_bits <= limit]
        if not candidates:
            raise InvalidArgument(
                "max_bits", f"at least {shortest} for these categories", max_bits, f"pass {shortest} or more"
            )
    # rounded, so that equal variances are ordered by the length of reports
    ordered = sorted(candidates, key=lambda p: (float(f"{p.variance(1):.9g}"), p.report_bits))
    return Recommendation(ordered[0], tuple(ordered), max_bits)
