"""Whole counts of the smallest table that all public totals are margins of."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dither.publish import Attribute, Domain, Estimates, Residuals, public_totals
from dither.publish.imposed import imposed_counts, scaled_to
from dither.publish.residuals import margin, margins
from dither.randomness import SYSTEM

DOMAIN = Domain([Attribute.flat(name, range(size)) for name, size in (("i", 3), ("j", 4), ("k", 2))])
COUNTS = np.random.default_rng(2).poisson(np.random.default_rng(3).gamma(0.5, 30, (3, 4, 2)))
FINEST = (1, 1, 1)


def exact_estimates(variance=1e-6):
    """Estimates of everything with next to no noise."""
    residuals = Residuals(DOMAIN)
    parts = {levels: residuals.of(levels, COUNTS, FINEST).astype(float) for levels in margins([FINEST])}
    return Estimates(residuals, [FINEST], parts, dict.fromkeys(parts, variance))


PAIRS = [("i", "j"), ("j", "k"), ("i", "k")]


@pytest.mark.parametrize("public", [[("i",), ("j",), ("k",)], PAIRS[:2], PAIRS, [("i", "j"), ("k",)]])
def test_exact_estimates_are_found_again(public):
    """Joined one by one, or, for all three pairs, by integer programming."""
    totals = public_totals(DOMAIN, {names: margin(DOMAIN, COUNTS, FINEST, DOMAIN.levels(names)) for names in public})
    core, counts = imposed_counts(exact_estimates(), totals, SYSTEM)
    assert core == FINEST
    for levels, numbers in totals.tables.items():
        np.testing.assert_array_equal(margin(DOMAIN, counts, core, levels), numbers)
    assert np.abs(counts - COUNTS).max() <= 2


def test_what_was_not_measured_is_scaled_to_the_margins_that_were():
    """Attributes that are independent given margins: iterative proportional fitting finds them."""
    independent = np.multiply.outer(np.multiply.outer([10.0, 20, 30], [1.0, 2, 3, 4]), [0.5, 1.5])
    residuals = Residuals(DOMAIN)
    single = [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    parts = {levels: residuals.of(levels, independent, FINEST) for levels in margins(single)}
    estimates = Estimates(residuals, single, parts, dict.fromkeys(parts, 1e-6))
    fitted = scaled_to(estimates, FINEST, np.full((3, 4, 2), independent.mean()), {})
    np.testing.assert_allclose(fitted, independent, rtol=1e-3)
    for names in itertools.combinations("ijk", 1):
        levels = DOMAIN.levels(names)
        np.testing.assert_allclose(
            margin(DOMAIN, fitted, FINEST, levels), margin(DOMAIN, independent, FINEST, levels), rtol=1e-3
        )
