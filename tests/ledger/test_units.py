"""Budgets as whole numbers: against exact fractions, and against high-precision conversions written down here."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dp
from dither.ledger.accounts import (
    DELTA_UNIT,
    LOSS_UNIT,
    MAX_AMOUNT,
    Account,
    Amount,
    Limit,
    Price,
    cost,
    guarantee_of,
    opened,
)
from support import each, refuses

LOSSES = st.one_of(st.floats(1e-20, 10), st.fractions(Fraction(1, 10**20), 10), st.integers(1, 10))
DELTAS = st.one_of(st.floats(1e-25, 0.5), st.fractions(Fraction(1, 10**25), Fraction(1, 2)))


def ceiling(number: Fraction, unit: int) -> int:
    whole, rest = divmod(number.numerator * unit, number.denominator)
    return whole + bool(rest)


def exact(number: float | Fraction) -> Fraction:
    """A float means the decimal it prints as."""
    return Fraction(str(number)) if isinstance(number, float) else Fraction(number)


def test_ten_tenths_are_one() -> None:
    limit, tenth = Limit.of(dp.PureDP(1)).amount, cost(dp.PureDP(0.1), "epsilon")
    ten = Amount(10 * tenth.loss, 0)
    assert ten == limit
    assert not (ten + cost(dp.PureDP(1e-12), "epsilon")).within(limit)
    assert not (ten + cost(dp.PureDP(1e-100), "epsilon")).within(limit)


@given(st.lists(LOSSES, min_size=1, max_size=30))
def test_costs_are_exact_sums_of_fractions_rounded_up(losses: list[float | Fraction]) -> None:
    total = sum((cost(dp.PureDP(epsilon), "epsilon").loss for epsilon in losses), 0)
    assert total == sum(ceiling(exact(epsilon), LOSS_UNIT) for epsilon in losses)
    true = sum((exact(epsilon) for epsilon in losses), Fraction(0))
    assert true <= Fraction(total, LOSS_UNIT) < true + Fraction(len(losses), LOSS_UNIT)


@given(LOSSES, DELTAS)
def test_costs_round_up_and_limits_round_down(loss: float | Fraction, delta: float | Fraction) -> None:
    asked = cost(dp.ApproxDP(loss, delta), "epsilon")
    assert Fraction(asked.loss, LOSS_UNIT) >= exact(loss)
    assert Fraction(asked.delta, DELTA_UNIT) >= exact(delta)
    if exact(loss) * LOSS_UNIT >= 1:
        given_ = Limit.of(dp.ApproxDP(loss, delta)).amount
        assert given_.within(asked)
        assert Fraction(given_.loss, LOSS_UNIT) <= exact(loss)
        assert Fraction(given_.delta, DELTA_UNIT) <= exact(delta)


@given(LOSSES)
def test_epsilon_as_rho(loss: float | Fraction) -> None:
    """epsilon tanh(epsilon / 2), by mpmath: never less, and hardly more."""
    with mp.workprec(300):
        exact_loss = mp.mpf(exact(loss).numerator) / exact(loss).denominator
        true = exact_loss * mp.tanh(exact_loss / 2) * LOSS_UNIT
        result = cost(dp.PureDP(loss), "rho").loss
        assert result >= true
        assert result <= true * (1 + mp.mpf(10) ** -12) + 1


def test_rho_is_not_epsilon() -> None:
    with refuses(dp.NotPrivate, "rho"):
        cost(dp.ZCDP(0.1), "epsilon")


def conversion(rho: mp.mpf, delta: mp.mpf) -> mp.mpf:
    """Canonne, Kamath and Steinke 2020, corollary 13: the least epsilon over alpha, by ternary search in mpmath."""

    def at(t: mp.mpf) -> mp.mpf:
        a = 1 + mp.exp(t)
        return a * rho + (mp.log(1 / delta) + (a - 1) * mp.log(1 - 1 / a) - mp.log(a)) / (a - 1)

    low, high = mp.mpf(-10), mp.mpf(30)
    for _ in range(120):
        third = (high - low) / 3
        low, high = (low, high - third) if at(low + third) < at(high - third) else (low + third, high)
    return max(at(low), mp.mpf(0))


def whitehouse(rho: mp.mpf, delta: mp.mpf) -> mp.mpf:
    """Whitehouse et al. 2023: half the sum of squares, and sqrt(2 ln(1/delta') times it); rho is half of the sum."""
    return rho + mp.sqrt(2 * mp.log(1 / delta) * 2 * rho)


PROMISES = [(0.1, 1e-9), (0.5, 1e-6), (1, 1e-6), (1, 1e-12), (3, 1e-5), (8, 1e-3), (20, 1e-8), (1e-3, 1e-6)]


@pytest.mark.parametrize(("epsilon", "delta"), PROMISES)
def test_the_advanced_filter_promises_what_was_asked_and_wastes_little(epsilon: float, delta: float) -> None:
    limit = Limit.of(dp.ApproxDP(epsilon, delta), "advanced")
    assert limit.unit == "rho"
    with mp.workprec(200):
        half = mp.mpf(repr(delta)) / 2
        rho = mp.mpf(limit.amount.loss) / LOSS_UNIT
        assert conversion(rho, half) <= mp.mpf(repr(epsilon)) * (1 + mp.mpf(10) ** -25)
        assert conversion(rho * mp.mpf("1.01"), half) > mp.mpf(repr(epsilon)), "more than 1 % is left unused"
        assert mp.mpf(limit.amount.delta) / DELTA_UNIT <= half


@each(("epsilon", "delta"), PROMISES)
@each("one", [0.001, 0.01, 0.1, 1.0])
def test_the_advanced_filter_admits_no_fewer_than_the_published_one(epsilon: float, delta: float, one: float) -> None:
    """Their formula at the same delta' as ours (half is kept for the deltas of the releases in both)."""
    room = Limit.of(dp.ApproxDP(epsilon, delta), "advanced").amount
    ours = room.loss // cost(dp.PureDP(one), "rho").loss
    with mp.workprec(200):
        half, square = mp.mpf(repr(delta)) / 2, mp.mpf(repr(one)) ** 2
        theirs = 0
        step = 1 << 40
        while step:
            if whitehouse((theirs + step) * square / 2, half) <= mp.mpf(repr(epsilon)):
                theirs += step
            step //= 2
    assert ours >= theirs


def test_a_filter_that_forgets_half_of_delta_is_seen() -> None:
    """The test above can fail: the same search at the whole delta promises too much."""
    with mp.workprec(200):
        low, high = mp.mpf(0), mp.mpf(1)
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (middle, high) if conversion(middle, mp.mpf("1e-6")) <= 1 else (low, middle)
        assert conversion(low, mp.mpf("0.5e-6")) > 1


@pytest.mark.parametrize("kind", [dp.PureDP(1), dp.ZCDP(1)])
def test_the_advanced_filter_needs_a_delta(kind: dp.Guarantee) -> None:
    with refuses(dp.InvalidArgument, "advanced"):
        Limit.of(kind, "advanced")


def test_limits_have_a_range() -> None:
    assert Limit.of(dp.PureDP(4611)).amount.loss <= MAX_AMOUNT
    for beyond in (dp.PureDP(4612), dp.PureDP(1e-16), dp.PureDP(1e6), dp.ZCDP(1e12)):
        with refuses(dp.InvalidArgument, "limit"):
            Limit.of(beyond)


def test_a_guarantee_is_one_of_three() -> None:
    class Own(dp.PureDP):
        __slots__ = ()

    for wrong in (Own(1), 1, "1", None, dp.PureDP):
        with refuses(dp.WrongType):
            Limit.of(wrong)
    with refuses(dp.InvalidArgument, "digits"):
        Limit.of(dp.PureDP(1 + Fraction(1, 10**5000)))


@given(st.integers(0, MAX_AMOUNT), st.integers(0, DELTA_UNIT - 1), st.sampled_from(["epsilon", "rho"]))
def test_what_an_amount_promises(loss: int, delta: int, unit: str) -> None:
    result = guarantee_of(Amount(loss, delta), unit)  # type: ignore[arg-type]
    if loss == 0 and (delta == 0 or unit == "rho"):
        assert result is None
    else:
        assert result is not None
        assert cost(result, unit).loss == loss  # type: ignore[arg-type]


def charge(account: Account, guarantee: dp.Guarantee) -> Account:
    return replace(account, used=account.used + account.charged(Price.of(guarantee)))


LIMITS = [
    (dp.PureDP(1), "sum"),
    (dp.ApproxDP(Fraction(10, 3), 1e-6), "sum"),
    (dp.ZCDP(0.3), "sum"),
    (dp.ApproxDP(2, 1e-5), "advanced"),
]


@given(st.sampled_from(LIMITS), st.lists(st.tuples(LOSSES, st.none() | DELTAS), max_size=10))
def test_what_is_printed_as_left_can_be_spent(limit, charges) -> None:
    """And it is all that is left, but for less than one part in 100,000."""
    account = opened(("visits", "dataset", ""), *limit)
    for epsilon, delta in charges:
        with suppress(dp.BudgetExceeded):
            account = charge(account, dp.PureDP(epsilon) if delta is None else dp.ApproxDP(epsilon, delta))
    if account.left is None:
        assert account.left_text == "nothing"
        return
    printed = [Fraction(number) for number in re.findall(r"[0-9.]+(?:e[-+]?[0-9]+)?", account.left_text)]
    charge(account, type(account.left)(*printed))
    for number, exact_number in zip(printed, account.left.exact, strict=True):
        assert exact_number * (1 - Fraction(1, 10**5)) <= number <= exact_number


def test_a_remaining_budget_is_not_printed_rounded_up() -> None:
    account = charge(opened(("visits", "dataset", ""), dp.PureDP(1), "sum"), dp.PureDP(Fraction(1, 3)))
    assert account.left_text == "ε = 0.666666"
    with refuses(dp.BudgetExceeded, "ε = 0.666666,", "ε = 0.666667"):
        account.charged(Price.of(dp.PureDP(0.666667)))
