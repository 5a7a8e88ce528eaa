"""Every claim's computation agrees with its verdict, the page is what they print, and a wrong verdict is caught."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
from claim import CONDITIONS, FAILS, HOLDS, Claim, Computed

import claims
from support import each

pytestmark = pytest.mark.slow

EVERYTHING = claims.everything()


@each("claim", EVERYTHING)
def test_the_computation_agrees_with_the_verdict(claim: Claim) -> None:
    figures = claim.check()
    assert figures.endswith(".")
    assert any(c.isdigit() for c in figures)


@pytest.mark.parametrize("verdict", [HOLDS, CONDITIONS, FAILS])
def test_a_wrong_verdict_is_caught(verdict: str) -> None:
    """Each verdict is refuted by the evidence for another one."""
    right = Computed("1.", True) if verdict == HOLDS else Computed("1.", False, True)
    other = Computed("1.", False, True) if verdict == HOLDS else Computed("1.", True)
    wrong = [other, Computed("1.", False)]
    claim = dataclasses.replace(EVERYTHING[0], verdict=verdict, compute=lambda: right)
    claim.check()
    for result in wrong:
        with pytest.raises(AssertionError, match="computed"):
            dataclasses.replace(claim, compute=lambda result=result: result).check()


def test_no_two_rows_have_the_same_place() -> None:
    places = Counter((claim.document, claim.where) for claim in EVERYTHING)
    assert max(places.values()) == 1, places.most_common(3)


def test_the_page_is_what_the_computations_say() -> None:
    """``python tests/claims/claims.py`` writes it."""
    written = claims.PAGE.read_text(encoding="utf-8")
    assert written == claims.page()


def test_the_page_counts_its_rows() -> None:
    tally = Counter(claim.verdict for claim in EVERYTHING)
    text = claims.PAGE.read_text(encoding="utf-8")
    assert f"| all |  | {tally[HOLDS]} | {tally[CONDITIONS]} | {tally[FAILS]} | {len(EVERYTHING)} |" in text
    assert text.count("\n* ") - 3 == tally[FAILS]


def test_every_file_is_short_enough_to_read() -> None:
    for path in claims.PAGE.parents[1].glob("tests/claims/*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 450, path.name
