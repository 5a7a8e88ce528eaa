"""The threshold for keys that are not public, against the law of the number as it is released."""

from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from dither import Gaussian, Laplace
from dither.tables.planning.key_selection import threshold
from support import each

CHANCE = Fraction(1, 10**6)


def passes(sigma: float, step: int, limit: int) -> mp.mpf:
    """P(the multiple of step nearest to 1 + N is at least the limit)."""
    first = -(-limit // step) * step
    return mp.ncdf(-(mp.mpf(first) - mp.mpf(step) / 2 - 1) / mp.mpf(sigma))


@each("power", range(20, 41))
@each("delta", [1e-6, 1e-3])
def test_a_key_of_one_person_is_shown_with_at_most_delta_whatever_the_rounding_of_wide_noise(power, delta):
    noise = Gaussian(2.0**power / 5, epsilon=1, delta=delta)
    sigma = float(noise.scale)  # type: ignore[arg-type]
    released = np.asarray(noise.release(np.ones(64, dtype=np.int64)))
    step = int(np.gcd.reduce(released - 1 if sigma <= 2**26 else released))
    with mp.workdps(40):
        for groups in (1, 3):
            limit = threshold(noise, Fraction(str(delta)), groups, normal=True).threshold
            share = mp.mpf(str(delta)) / 2 / groups
            assert passes(sigma, step, limit) <= share
            assert passes(sigma, step, limit - 1) > share
            assert passes(sigma, step, limit) > share * (1 - mp.mpf(2) ** -15)  # no wider than the lattice asks for
    assert (step > 1) == (sigma > 2**26)


@pytest.mark.parametrize("scale", [2.0**20, 2.0**30, 2.0**50, 2.0**57, 2.0**59])
def test_wide_laplace_noise(scale):
    noise = Laplace(scale, epsilon=1)
    limit = threshold(noise, CHANCE, 1, normal=False).threshold
    with mp.workdps(60):
        if scale <= 2**56:
            q = mp.exp(-1 / mp.mpf(scale))
            shown = [q ** (limit - back - 1) / (1 + q) for back in (0, 1)]
        else:
            step = int(np.gcd.reduce([noise.release(1) for _ in range(64)]))
            assert step > 1
            firsts = [-(-(limit - back) // step) * step for back in (0, 1)]
            shown = [mp.exp(-(first - mp.mpf(step) / 2 - 1) / mp.mpf(scale)) / 2 for first in firsts]
        assert shown[0] <= mp.mpf("1e-6") < shown[1]


@pytest.mark.parametrize("sigma", [3, 50.5, 2.0**30])
def test_the_discrete_law_has_no_larger_tail_than_is_counted(sigma):
    noise = Gaussian(sigma, rho=0.5)
    limit = threshold(noise, CHANCE, 1, normal=True).threshold
    with mp.workdps(40):
        if sigma < 100:
            weights = {k: mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(sigma) ** 2)) for k in range(-2000, 2001)}
            shown = mp.fsum(w for k, w in weights.items() if 1 + k >= limit) / mp.fsum(weights.values())
            assert mp.mpf("4e-7") * (1 if sigma > 10 else mp.mpf("0.2")) < shown <= mp.mpf("5e-7")
        assert passes(sigma, 1, limit) <= mp.mpf("5e-7") < passes(sigma, 1, limit - 1)
