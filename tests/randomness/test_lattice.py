"""The lattice combinator on words that land on rounding boundaries, where only the exact side can decide."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from dither.randomness import (
    Exponential,
    Gumbel,
    HeavyTail,
    LazyUniform,
    Normal,
    SeededSource,
    Staircase,
    draw_one,
    integer_steps,
    round_nearest,
    round_nearest_all,
    spacing,
)
from dither.randomness.discrete import DiscreteLaplace
from dither.randomness.lattice import CHUNK, MAGNITUDE, Steps, bound, draw, in_blocks, settle, to_int64
from support import PRECISION, ScriptedSource, nearest_integer, real, tail_of, words_beside

# (law, scale in steps, integers k whose lower boundary is hit)
CASES: list[tuple[Any, float, tuple[int, ...]]] = [
    (Exponential(), 3.3, (1, 2, 17)),
    (Exponential(symmetric=True), 1.3 * 2**20, (1, 1_000_003, 12_345_678)),
    (Exponential(symmetric=True), 0.7, (1, 3, 9)),
    (Gumbel(), 2.0, (-3, 0, 5, 21)),
    (Gumbel(), 1e6, (-2_000_000, 1, 12_000_000)),
    (Staircase(Fraction(1), Fraction(3, 8)), 1000.0, (1, 375, 1000, 5300)),
    (Staircase(Fraction(1, 1000), Fraction(1, 2)), 7.5, (1, 4, 80_000)),
    (Staircase(Fraction(20), Fraction(1, 3)), 2.0**20, (1, 350_000)),
    (HeavyTail(Fraction(3, 2)), 5.0, (1, 12, 10**9)),
    (HeavyTail(Fraction(2)), 2.0**20, (1, 2**20, 10**12)),
    (HeavyTail(Fraction(37, 10)), 33.0, (2, 40, 700)),
    (HeavyTail(Fraction(4)), 0.6, (1, 3)),
    (Normal(), 0.5, (1, 2)),
    (Normal(), 1.3 * 2**20, (1, 1_000_003, 5_000_000)),
]
IDS = [f"{type(law).__name__}-{scale:g}-{i}" for i, (law, scale, _) in enumerate(CASES)]
SLOW = pytest.mark.slow
FRACTIONS = (0.0, 0.3125, pytest.param(-0.4921875, marks=SLOW))


@pytest.fixture(autouse=True)
def precise() -> Iterator[None]:
    with mp.workprec(PRECISION):
        yield


@pytest.mark.slow
@pytest.mark.parametrize(("law", "scale", "integers"), CASES, ids=IDS)
@pytest.mark.parametrize("extra", [pytest.param(1, marks=SLOW), 2, pytest.param(3, marks=SLOW)])
@pytest.mark.parametrize("fraction", FRACTIONS)
def test_words_beside_a_boundary_fall_on_the_right_side(
    law: Any, scale: float, integers: tuple[int, ...], extra: int, fraction: float
) -> None:
    """U agrees with the boundary of k in 63, 127 or 191 bits: below it the result is k, above it k - 1."""
    tail, steps, shift = tail_of(law), Fraction(scale), Fraction(fraction)
    for k in integers:
        for negative in (False, True):
            sign = -1 if negative and law.symmetric else 1
            boundary = tail(real((k - Fraction(1, 2) - sign * shift) / steps))
            for above in (False, True):
                first, *rest = words_beside(boundary, 63, extra, above)
                bits = 63 + 64 * extra
                u = sum(word << (64 * i) for i, word in enumerate(reversed(rest))) + (first << (64 * extra))
                middle = (mp.mpf(u) + 0.5) / mp.mpf(2) ** bits
                expected = nearest_integer(middle, sign < 0, tail, steps, shift, sign * k)
                assert expected == sign * (k - above)
                word = first | negative << 63
                # one draw, an array of one, and the exact side alone; each must need every scripted word
                source = ScriptedSource([word, *rest])
                assert draw_one(law, scale, source, fraction) == expected
                assert source.used == 1 + extra
                source = ScriptedSource([word, *rest])
                result = draw(law, scale, 1, source, np.array([fraction]))
                assert result.values[0] == expected
                assert source.used == 1 + extra
                source = ScriptedSource(rest)
                assert settle(LazyUniform(first, 63, source), sign < 0, law, steps, shift) == expected
                assert source.used == extra


@pytest.mark.slow
@pytest.mark.parametrize(("law", "scale", "integers"), CASES, ids=IDS)
@pytest.mark.parametrize("word", [0, 1, (1 << 44) - 1, 1 << 44, MAGNITUDE - 1, MAGNITUDE])
@pytest.mark.parametrize("more", [pytest.param((0, 1 << 40), marks=SLOW), (2**64 - 1, 2**64 - 1, 5)])
def test_the_first_and_the_last_words(
    law: Any, scale: float, integers: tuple[int, ...], word: int, more: tuple[int, ...]
) -> None:
    tail, fraction = tail_of(law), 0.375
    for negative in (False, True):
        script = [word | negative << 63, *more]
        result = draw_one(law, scale, ScriptedSource(script), fraction)
        value = word
        for item in (*more, *_after(ScriptedSource(script), len(script), 14)):
            value = value << 64 | item
        with mp.workprec(1400):  # a heavy tail takes U near 2^-127 to an integer of 300 bits
            u = (mp.mpf(value) + 0.5) / mp.mpf(2) ** (63 + 64 * (len(more) + 14))
            assert result == nearest_integer(
                u, negative and law.symmetric, tail, Fraction(scale), Fraction(fraction), result
            )
        many = draw(law, scale, 1, ScriptedSource(script), fraction)
        assert many.large.get(0, int(many.values[0])) == result


def _after(source: ScriptedSource, skip: int, count: int) -> list[int]:
    for _ in range(skip):
        source.word()
    return [source.word() for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize(("law", "scale", "integers"), CASES, ids=IDS)
def test_random_words_give_the_integer_of_the_oracle(law: Any, scale: float, integers: tuple[int, ...]) -> None:
    tail, steps = tail_of(law), Fraction(scale)
    words = SeededSource(11).words(30)
    fractions = np.linspace(-0.5, 0.5, 30)
    many = draw(law, scale, 30, ScriptedSource(words.tolist()), fractions)
    for i, word in enumerate(words.tolist()):
        u = (mp.mpf(word & MAGNITUDE) + 0.5) / 2**63
        result = many.large.get(i, int(many.values[i]))
        negative = word > MAGNITUDE and law.symmetric
        assert result == nearest_integer(u, negative, tail, steps, Fraction(float(fractions[i])), result)
        assert result == draw_one(law, scale, ScriptedSource([word]), float(fractions[i]))


def test_a_chunk_decides_boundary_words_among_ordinary_ones() -> None:
    law, scale, count = Exponential(symmetric=True), 1.3 * 2**20, CHUNK + 500
    words = SeededSource(5).words(count).tolist()
    places = {7: 3, CHUNK - 1: 1000, CHUNK: 77_777, count - 1: 5}
    rest: list[list[int]] = [[], []]
    expected = {}
    for i, k in places.items():
        above = k % 2 == 0
        boundary = tail_of(law)(real((k - Fraction(1, 2)) / Fraction(scale)))
        words[i], *more = words_beside(boundary, 63, 2, above)
        rest[i // CHUNK] += more
        expected[i] = k - above
    # extension words come after the words of the chunk they belong to
    script = words[:CHUNK] + rest[0] + words[CHUNK:] + rest[1]
    source = ScriptedSource(script)
    values = draw(law, scale, count, source).values
    assert {i: values[i] for i in places} == expected
    assert source.used == len(script)


def test_the_exact_fraction_is_what_counts_where_floats_only_come_near() -> None:
    law, scale, exact = Normal(), 8.0, Fraction(1, 3)
    boundary = tail_of(law)(real((5 - Fraction(1, 2) - exact) / 8))
    for above in (False, True):
        words = words_beside(boundary, 63, 2, above)
        assert draw_one(law, scale, ScriptedSource(words), float(exact), exact) == 5 - above
        result = draw(law, scale, 1, ScriptedSource(words), np.array([float(exact)]), lambda _: exact)
        assert result.values[0] == 5 - above


@pytest.mark.parametrize("scale", [0.3, 10.0, 2.0**26])
@pytest.mark.parametrize("extra", [1, 2, 3])
def test_discrete_laplace_boundaries(scale: float, extra: int) -> None:
    law = DiscreteLaplace(scale)
    for k in (1, 2, max(3, int(2 * scale))):
        q = mp.exp(-1 / real(scale))
        boundary = 2 * q**k / (1 + q)  # P(|K| >= k), from the probabilities themselves
        for above in (False, True):
            for sign in (1, -1):
                first, *rest = words_beside(boundary, 63, extra, above)
                source = ScriptedSource([first | (sign < 0) << 63, *rest])
                assert integer_steps(law, scale, 1, source)[0] == sign * (k - above)
                assert source.used == 1 + extra


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 0.75, 1.0, 1.5, 2.0**30, 1e300])
def test_spacing_is_a_power_of_two_with_a_million_steps_to_the_scale(scale: float) -> None:
    step = spacing(scale)
    assert math.frexp(step)[0] == 0.5
    assert 2**20 <= scale / step < 2**21


@pytest.mark.parametrize("scale", [1e-6, 1.0, 2.0**21, 2.0**39])
def test_the_bound_covers_products_and_sums_of_floats(scale: float) -> None:
    rng = np.random.default_rng(1)
    z, fraction = rng.uniform(0, 14, 2000), rng.uniform(-1, 1, 2000)
    for a, f, c in zip(z.tolist(), fraction.tolist(), (fraction + scale * z).tolist(), strict=True):
        assert abs(Fraction(c) - Fraction(f) - Fraction(scale) * Fraction(a)) <= Fraction(bound(scale, 0.0))


def test_scales_too_large_for_any_float_are_settled_exactly() -> None:
    law, scale = Exponential(symmetric=True), 2.0**70
    words = SeededSource(2).words(20).tolist()
    result = draw(law, scale, 20, ScriptedSource(words))
    for i, word in enumerate(words):
        u = (mp.mpf(word & MAGNITUDE) + 0.5) / 2**63
        # the word leaves 2^7 integers open and further words choose among them
        middle = mp.sign(-1 if word > MAGNITUDE else 1) * -mp.log(u) * 2**70
        assert abs(result.large[i] - middle) < 2**7 / u
    saturated = integer_steps(law, scale, 20, ScriptedSource(words))
    assert set(np.abs(saturated.astype(object))) <= {2**63 - 1, 2**63} | {abs(k) for k in result.large.values()}


def test_to_int64_saturates() -> None:
    steps = Steps(np.array([1.0, -2.0, 3.0, 2.0**53]), {0: 2**63, 1: -(2**63) - 1, 3: 2**53 + 1})
    assert to_int64(steps).tolist() == [2**63 - 1, -(2**63), 3, 2**53 + 1]


@pytest.mark.parametrize("count", [0, 1, 8 * CHUNK - 1, 8 * CHUNK, 8 * CHUNK + 1, 20 * CHUNK + 7])
def test_in_blocks_fills_every_place(count: int) -> None:
    built: list[int] = []

    def block(size: int) -> Any:
        built.append(size)
        return np.arange(sum(built) - size, sum(built))

    assert np.array_equal(in_blocks(count, block), np.arange(count))
    assert max(built) <= 8 * CHUNK


@pytest.mark.parametrize("x", [0.3, -1.7, 12345.678, 0.0, 1e-310, 3e20])
def test_rounding_a_fraction_and_its_float_agree(x: float) -> None:
    for seed in range(20):
        one = round_nearest(x, Normal(), 1.0, 2.0**-20, SeededSource(seed))
        assert one == round_nearest(Fraction(x), Normal(), 1.0, 2.0**-20, SeededSource(seed))
        assert one == round_nearest_all(np.array([x]), Normal(), 1.0, 2.0**-20, SeededSource(seed))[0]


def test_nothing_is_drawn_for_nothing() -> None:
    source = ScriptedSource()
    assert draw(Normal(), 1.0, 0, source).values.size == 0
    assert round_nearest_all(np.array([]), Normal(), 1.0, 1.0, source).size == 0
    assert integer_steps(Normal(), 1.0, 0, source).size == 0
    assert source.used == 0
