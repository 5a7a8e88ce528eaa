"""How local protocols look in a notebook."""

from __future__ import annotations

import pytest

import dither as dp
from dither.local import pictures

PROTOCOLS = [
    dp.local.SubsetSelection(categories=128, epsilon=1),
    dp.local.UnaryEncoding(categories=16, epsilon=1),
    dp.local.RandomizedResponse(categories=["<b>", "no"], epsilon=1),
    dp.local.HadamardResponse(categories=16, epsilon=1),
    dp.local.Mean(bounds=(0, 10), epsilon=1),
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: type(protocol).__name__)
def test_a_protocol_shows_its_promise_and_its_error(protocol):
    page = protocol._repr_html_()
    assert "ε = 1 for each report" in page
    assert f"{protocol.variance(1):.4g}, for " in page
    assert page.count("<svg") == 1
    assert "<b>" not in page
    assert all(f"{n:,} people" in page for n in pictures.PEOPLE)
    assert ("the mean" in page) == isinstance(protocol, dp.local.Mean)
