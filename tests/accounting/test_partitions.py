"""Releases about groups, repeated and nested, against an adversary who picks the worst group of a person each time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from dither import arguments
from dither.accounting import (
    ACCOUNTANTS,
    Approximate,
    Event,
    GaussianNoise,
    LaplaceNoise,
    Parallel,
    PoissonSampled,
    PostProcessed,
    Pure,
    ResponseReport,
    Sequential,
    pld,
    privacy_curve,
)
from dither.errors import DitherError

Atoms = list[tuple[float, float, float]]
"""Loss, mass of P, mass of Q; the loss is infinite where Q has none."""


def law(leaf: Event, *, adding: bool) -> Atoms:
    if isinstance(leaf, PoissonSampled):
        rate = float(leaf.rate)
        mixed = [((1 - rate) * q + rate * p, q) for _, p, q in law(leaf.event, adding=False)]
        pairs = [(q, p) if adding else (p, q) for p, q in mixed]
        return [(math.log(p / q) if q else math.inf, p, q) for p, q in pairs if p]
    e, others = float(leaf.epsilon), getattr(leaf, "categories", 2) - 2  # type: ignore[attr-defined]
    delta = float(leaf.own_delta)
    low = (1 - delta) / (math.exp(e) + 1 + others)
    result = [(e, low * math.exp(e), low), (-e, low, low * math.exp(e)), (0.0, others * low, others * low)]
    return [*result, (math.inf, delta, 0.0), (-math.inf, 0.0, delta)]


def worst_delta(tree: Event, epsilon: float) -> float:
    """The largest delta over all ways to choose a person's group, each after seeing the answers before it."""

    def value(event: Event, loss: float, then: Callable[[float], float], adding: bool) -> float:
        if isinstance(event, PostProcessed):
            return value(event.event, loss, then, adding)
        if isinstance(event, Parallel):
            return max(value(group, loss, then, adding) for group in event.groups)
        if isinstance(event, Sequential):
            steps = [part for part, count in event.parts for _ in range(count)]
            return chain(steps, loss, then, adding)
        return sum(
            p * (1.0 if one == math.inf else then(loss + one)) for one, p, _ in law(event, adding=adding) if p > 0
        )

    def chain(steps: list[Event], loss: float, then: Callable[[float], float], adding: bool) -> float:
        if not steps:
            return then(loss)
        return value(steps[0], loss, lambda reached: chain(steps[1:], reached, then, adding), adding)

    return max(value(tree, 0.0, lambda loss: max(0.0, -math.expm1(epsilon - loss)), adding) for adding in (False, True))


losses = st.sampled_from([0.1, 1, 2, 4, 8])
plain = st.one_of(
    st.builds(Pure, losses),
    st.builds(ResponseReport, losses, st.sampled_from([2, 5])),
    st.builds(Approximate, losses, st.sampled_from([1e-4, 0.01])),
)
leaves = st.one_of(plain, st.builds(PoissonSampled, plain, st.sampled_from([0.01, 0.3, 1])))


def grown(children: Any) -> Any:
    return st.one_of(
        st.builds(lambda groups: Parallel(*groups), st.lists(children, min_size=1, max_size=3)),
        st.builds(lambda parts: Sequential(*parts), st.lists(children, min_size=1, max_size=2)),
        st.builds(lambda times, child: times * child, st.integers(2, 3), children),
        st.builds(PostProcessed, children),
    )


def steps(tree: Event) -> int:
    return tree.fold(lambda _: 1, lambda parts: sum(size * count for size, count in parts), max)


partitions = st.builds(lambda groups: Parallel(*groups), st.lists(leaves, min_size=2, max_size=3))
repeated = st.builds(lambda times, one, then: times * one + then, st.just(2), partitions, leaves)
trees = st.one_of(repeated, st.recursive(leaves, grown, max_leaves=5).filter(lambda tree: steps(tree) <= 4))


@given(trees, st.sampled_from([1e-6, 1e-3, 0.05]))
@settings(max_examples=40)
def test_no_accountant_claims_less_than_the_worst_adversary_achieves(tree: Event, delta: float) -> None:
    answered = 0
    for accountant in ACCOUNTANTS:
        try:
            claimed = float(accountant.guarantee(tree, delta).epsilon_at(arguments.delta(delta)))
        except DitherError:
            continue
        answered += 1
        assert worst_delta(tree, claimed) <= delta * (1 + 1e-6) + 1e-15, accountant.name
    assert answered or worst_delta(tree, 100.0) > delta / 2  # refused: no epsilon buys off the events' own deltas


@given(trees, st.sampled_from([0.0, 0.3, 1.0, 3.0]))
@settings(max_examples=40)
def test_the_curve_is_never_below_the_worst_adversary_and_that_of_one_partition_is_exact(
    tree: Event, epsilon: float
) -> None:
    assert privacy_curve(tree, epsilon) >= worst_delta(tree, epsilon) * (1 - 1e-9)
    if steps(tree) == 1:
        assert privacy_curve(tree, epsilon) <= worst_delta(tree, epsilon) * 1.01 + 1e-9


RARE, LARGE = PoissonSampled(Pure(8), 0.01), Pure(2)


def test_a_person_may_be_in_another_group_the_second_time() -> None:
    """In the group of rare large losses once and in the other once: more than twice in either."""
    needed = pld.guarantee(RARE + LARGE, 1e-3).epsilon
    assert needed == pytest.approx(5.311, abs=1e-3)
    both = Parallel(RARE, LARGE)
    for tree in (both + both, 2 * both, PostProcessed(both) + Parallel(LARGE, RARE)):
        claimed = pld.guarantee(tree, 1e-3).epsilon
        assert needed <= claimed <= 1.02 * needed
        assert worst_delta(tree, claimed) <= 1e-3 < worst_delta(tree, 3.999)
    for twice in (RARE, LARGE):
        assert pld.guarantee(2 * twice, 1e-3).epsilon < 4
    kept = pld.guarantee(Parallel(2 * RARE, 2 * LARGE), 1e-3).epsilon  # in the same group both times
    assert kept == pytest.approx(3.9987, abs=1e-3)


def test_many_repetitions_stay_cheap_and_between_the_groups_and_their_sum() -> None:
    many = 10_000 * Parallel(PoissonSampled(GaussianNoise(1), 0.01), LaplaceNoise(50), Pure(0.015))
    claimed = pld.guarantee(many, 1e-6).epsilon
    item = [pld.guarantee(10_000 * group, 1e-6).epsilon for group in many.parts[0][0].groups]  # type: ignore[attr-defined]
    assert max(item) <= claimed <= sum(item)


def test_partitions_of_different_kinds_are_dominated_release_by_release() -> None:
    tree = Parallel(GaussianNoise(2), LaplaceNoise(2)) + Parallel(Pure(0.5), GaussianNoise(1))
    ways = [a + b for a in (GaussianNoise(2), LaplaceNoise(2)) for b in (Pure(0.5), GaussianNoise(1))]
    worst = max(pld.guarantee(way, 1e-6).epsilon for way in ways)
    assert worst <= pld.guarantee(tree, 1e-6).epsilon <= 1.01 * worst
    eight = Sequential(*(Parallel(Pure(i), GaussianNoise(i)) for i in range(1, 9)))
    assert pld.guarantee(eight, 1e-6).epsilon <= 8 * 9 / 2 + 6


def test_a_sample_of_a_partition_is_as_bad_as_a_sample_of_its_worst_group() -> None:
    groups = (Pure(1), GaussianNoise(1), LaplaceNoise(3))
    sampled = [pld.guarantee(PoissonSampled(group, 0.1), 1e-6).epsilon for group in groups]
    assert pld.guarantee(PoissonSampled(Parallel(*groups), 0.1), 1e-6).epsilon == pytest.approx(max(sampled), rel=1e-6)
