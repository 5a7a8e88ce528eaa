"""The certified table behind the normal law."""

from __future__ import annotations

import math
import random

import mpmath as mp
import numpy as np
import pytest

from dither.randomness import Normal
from dither.randomness.laws import LOW, _half_normal_quantile, _table

CELLS = 19 << 7


def half_tail(z: float | mp.mpf) -> mp.mpf:
    return mp.erfc(mp.mpf(z) / mp.sqrt(2))


def test_the_table_covers_every_float_from_low_to_one() -> None:
    table, rows = _table()
    assert table.shape == (6, CELLS)
    assert len(rows) == CELLS
    middles = table[0]
    assert np.all(np.diff(middles) > 0)
    assert middles[0] == LOW * (1 + 2.0**-8)
    assert middles[-1] == 1 - 2.0**-9


def test_both_ends_and_the_middle_of_every_cell_are_within_the_bound() -> None:
    # the remainder is largest at the ends, so these are the worst places
    table, _ = _table()
    middles = table[0]
    half = np.ldexp(1.0, np.frexp(middles)[1] - 9)
    ends = np.concatenate([middles - half, middles, np.nextafter(middles + half, 0)])
    z = ends.copy()
    assert Normal().quantile(z) is None
    with mp.workprec(120):
        error = mp.mpf(2) ** -41  # without the word's share
        for u, value in zip(ends[::3].tolist(), z[::3].tolist(), strict=True):
            assert half_tail(value + error) <= u
            assert value <= error or u <= half_tail(value - error)


def test_one_takes_the_same_cells_as_many() -> None:
    rng = random.Random(1)
    u = [LOW, math.nextafter(1.0, 0), 1.0, 0.5, math.nextafter(0.5, 0)] + [
        2.0 ** rng.uniform(-19, 0) for _ in range(2000)
    ]
    z = np.array(u)
    Normal().quantile(z)
    for item, value in zip(u, z.tolist(), strict=True):
        single, error = Normal().quantile_one(item)
        assert error == 2.0**-40
        assert abs(single - value) < 2.0**-49


@pytest.mark.parametrize("u", [2.0**-1022, 2.0**-300, 2.0**-64, math.nextafter(LOW, 0)])
def test_below_the_table_there_is_a_guess_without_a_bound(u: float) -> None:
    guess, error = Normal().quantile_one(u)
    assert error == math.inf
    assert half_tail(guess) == pytest.approx(u, rel=1e-6)


def test_one_is_zero_noise() -> None:
    assert _half_normal_quantile(1.0) == 0.0
    assert abs(Normal().quantile_one(1.0)[0]) <= Normal.error


def test_a_wrong_library_is_noticed_when_the_table_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    import dither.randomness.laws as module

    monkeypatch.setattr(module, "_half_normal_quantile", lambda u: _half_normal_quantile(u) + 1e-11)
    with pytest.raises(ArithmeticError, match="certified"):
        module._table.__wrapped__()
