"""Every claim's computation agrees with its verdict, the page is what they print, and a wrong verdict is caught."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
from claim import COMPUTATIONS, Checked, Computed

import claims
from support import each

pytestmark = pytest.mark.slow

EVERYTHING = claims.everything()


@each("item", EVERYTHING)
def test_the_computation_agrees_with_the_verdict(item: Checked) -> None:
    figures = item.figures()
    assert figures.endswith(".")
    assert any(c.isdigit() for c in figures)
    assert item.claim.verdict == "holds" or item.claim.note, "a condition or a correction is missing"


@pytest.mark.parametrize("verdict", claims.VERDICTS)
def test_a_wrong_verdict_is_caught(verdict: str) -> None:
    """Each verdict is refuted by the evidence for another one."""
    evidence = {"holds": Computed("1.", True), "open": Computed("1.", None)}
    right = evidence.pop(verdict, Computed("1.", False, True))
    other = next(iter(evidence.values()))
    claim = dataclasses.replace(EVERYTHING[0].claim, verdict=verdict)
    Checked(claim, lambda: right).figures()
    for wrong in (other, Computed("1.", False)):
        with pytest.raises(AssertionError, match="computed"):
            Checked(claim, lambda wrong=wrong: wrong).figures()


def test_every_claim_has_one_computation() -> None:
    places = Counter((item.claim.document, item.claim.place) for item in EVERYTHING)
    assert max(places.values()) == 1, places.most_common(3)
    assert places.keys() == COMPUTATIONS.keys()


def test_the_page_is_what_the_computations_say() -> None:
    """``python tests/claims/claims.py`` writes it."""
    assert claims.PAGE.read_text(encoding="utf-8") == claims.page()
