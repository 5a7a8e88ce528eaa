"""A uniform number known to as many bits as were asked for."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.exact import exp_neg
from dither.randomness import LazyUniform
from support import ScriptedSource


def exactly(t: Fraction) -> object:
    return lambda bits: ((t.numerator << bits) // t.denominator, -((-t.numerator << bits) // t.denominator))


@given(st.integers(0, 2**63 - 1), st.lists(st.integers(0, 2**64 - 1), max_size=3), st.fractions(0, 1))
def test_below_is_true_of_the_number_the_words_spell(first: int, more: list[int], threshold: Fraction) -> None:
    source = ScriptedSource(more)
    u = LazyUniform(first, 63, source)
    answer = u.below(exactly(threshold))  # type: ignore[arg-type]
    least, most = Fraction(u.value, 1 << u.bits), Fraction(u.value + 1, 1 << u.bits)
    assert most <= threshold if answer else least >= threshold
    assert u.value >> (u.bits - 63) == first  # what was drawn stays


@pytest.mark.slow
@given(st.integers(0, 2**63 - 1), st.lists(st.fractions(0, 5), min_size=2, max_size=6))
@settings(max_examples=40)
def test_answers_never_contradict_each_other(first: int, rates: list[Fraction]) -> None:
    u = LazyUniform(first, 63, ScriptedSource())
    answers = {rate: u.below(lambda bits, rate=rate: exp_neg(rate, bits)) for rate in rates}
    for slow, kept in answers.items():
        assert all(kept or not answers[fast] for fast in rates if fast >= slow)  # U < exp(-fast) <= exp(-slow)


def test_bits_are_drawn_only_as_needed() -> None:
    source = ScriptedSource([1, 2, 3])
    u = LazyUniform(0b10, 2, source)
    assert u.below(exactly(Fraction(3, 4)))  # type: ignore[arg-type]
    assert not u.below(exactly(Fraction(1, 2)))  # type: ignore[arg-type]
    assert source.used == 0
    assert u.below(exactly(Fraction(5, 8)))  # type: ignore[arg-type]
    assert source.used == 1
    assert u.value == 0b10 << 64 | 1
    assert u.bits == 66


@pytest.mark.parametrize(("threshold", "expected"), [(0, False), (1, True)])
@pytest.mark.parametrize("value", [0, 2**63 - 1])
def test_impossible_and_certain_events_need_no_bits(value: int, threshold: int, expected: bool) -> None:
    source = ScriptedSource()
    assert LazyUniform(value, 63, source).below(exactly(Fraction(threshold))) is expected  # type: ignore[arg-type]
    assert source.used == 0


@pytest.mark.parametrize("zeros", [0, 1, 5, 20])
def test_approximate_is_positive_however_many_zeros_come(zeros: int) -> None:
    u = LazyUniform(0, 63, ScriptedSource([0] * zeros))
    guess = u.approximate()
    assert 0 < guess < 1
    if zeros < 14:
        assert guess == pytest.approx(u.value / (1 << u.bits), rel=2.0**-30)
