"""Who has an account, what it may spend, and who may change that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dither as dp
from dither.ledger.accounts import DELTA_UNIT, LOSS_UNIT, Amount, Limit, Price, charge_each, opened
from support import refuses

pytestmark = pytest.mark.slow

Ledger = dp.ledger.Ledger
ODD = ["O'Brien; DROP TABLE dither_entry; --", '"; --', "émigré 🧪", "{}", "%s", ":name", "?", "a/b\\c", " ", "x" * 200]
WRONG = ["", "x" * 201, "x" * 10_000, "a\0b", "a\nb", "a\tb", "\ud800", "\u202e"]


def spends(ledger: Ledger, dataset: str, costs: list[dp.Guarantee], **asked: Any) -> int:
    """How many of these charges fit, each tried once."""
    fitted = 0
    for cost in costs:
        try:
            ledger.charge(dataset, cost, **asked)
        except dp.BudgetExceeded:
            continue
        fitted += 1
    return fitted


def test_ten_tenths_fit_and_the_next_bit_does_not(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    assert spends(ledger, "visits", 10 * [dp.PureDP(0.1)]) == 10
    assert ledger.left("visits") is None
    for more in (1e-12, 1e-15, 1e-100):
        with refuses(dp.BudgetExceeded, "nothing"):
            ledger.charge("visits", dp.PureDP(more))
    assert ledger.accounts("visits")[0].spent == dp.PureDP(1)
    assert ledger.accounts("visits")[0].share == 1


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(
            st.one_of(st.floats(1e-13, 0.6), st.fractions(Fraction(1, 10**16), Fraction(1, 2))),
            st.one_of(st.none(), st.floats(1e-19, 1e-6)),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_limits_in_epsilon_and_delta_against_fractions(
    ledger: Ledger, asked: list[tuple[float | Fraction, float | None]]
) -> None:
    """Both parts are sums of what was asked, each rounded up to a unit; whatever fits is let in, and nothing else."""
    dataset = f"visits {ledger.head.seq}"
    ledger.create(dataset, limit=dp.ApproxDP(1, 1e-6))
    loss, delta = Fraction(0), Fraction(0)
    for epsilon, failure in asked:
        more = -(-_exact(epsilon) * LOSS_UNIT // 1) / Fraction(LOSS_UNIT)
        extra = -(-_exact(failure or 0) * DELTA_UNIT // 1) / Fraction(DELTA_UNIT)
        fits = loss + more <= 1 and delta + extra <= Fraction(1, 10**6)
        cost = dp.PureDP(epsilon) if failure is None else dp.ApproxDP(epsilon, failure)
        assert spends(ledger, dataset, [cost]) == fits
        loss, delta = (loss + more, delta + extra) if fits else (loss, delta)
    (account,) = ledger.accounts(dataset)
    assert account.used.numbers() == (loss, delta)


def _exact(number: float | Fraction) -> Fraction:
    return Fraction(str(number)) if isinstance(number, float) else Fraction(number)


def test_each_part_of_epsilon_and_delta_is_a_limit(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.ApproxDP(1, 1e-6))
    assert spends(ledger, "visits", 3 * [dp.ApproxDP(0.1, 5e-7)]) == 2, "delta runs out first"
    assert ledger.left("visits") == dp.PureDP(0.8)
    assert spends(ledger, "visits", 3 * [dp.PureDP(0.4)]) == 2
    assert ledger.left("visits") is None
    ledger.create("deaths", limit=dp.ApproxDP(1, 1e-6))
    assert spends(ledger, "deaths", [dp.PureDP(1), dp.ApproxDP(0, 1e-6), dp.ApproxDP(0, 1e-18)]) == 2
    assert ledger.accounts("deaths")[0].spent == dp.ApproxDP(1, 1e-6)


def test_rho_adds_up_and_takes_epsilon(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.ZCDP(0.5))
    assert spends(ledger, "visits", [dp.ZCDP(0.4), dp.PureDP(0.2), dp.ZCDP(0.1)]) == 2  # 0.2 tanh 0.1 = 0.0199
    with refuses(dp.BudgetExceeded):
        ledger.charge("visits", dp.ApproxDP(0.01, 1e-9))  # a limit in rho has no delta
    ledger.create("deaths", limit=dp.PureDP(10))
    with refuses(dp.NotPrivate, "rho"):
        ledger.charge("deaths", dp.ZCDP(0.1))
    assert ledger.left("deaths") == dp.PureDP(10)


def test_the_advanced_filter_mixes_costs(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.ApproxDP(1, 1e-6), filter="advanced")
    (account,) = ledger.accounts("visits")
    assert account.filter == "advanced"
    assert account.limit == dp.ApproxDP(1, 1e-6)
    room = account.room
    assert room is not None
    assert spends(ledger, "visits", [dp.PureDP(0.1), dp.ZCDP(0.005), dp.ApproxDP(0.1, 1e-7)]) == 3
    used = ledger.accounts("visits")[0].used
    assert used.delta == 10**11
    assert used.loss == pytest.approx((2 * 0.1 * 0.04995837 + 0.005) * LOSS_UNIT, rel=1e-6)
    assert spends(ledger, "visits", [dp.ZCDP(Fraction(room.loss - used.loss + 1, LOSS_UNIT))]) == 0
    assert spends(ledger, "visits", [dp.ApproxDP(0, 4.1e-7)]) == 0
    assert spends(ledger, "visits", [dp.ZCDP(Fraction(room.loss - used.loss, LOSS_UNIT))]) == 1
    assert ledger.left("visits") is None


def test_the_pending_charge_is_part_of_the_check(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    with refuses(dp.BudgetExceeded, "ε = 1"):
        ledger.charge("visits", dp.PureDP(1.0000001))
    assert ledger.left("visits") == dp.PureDP(1)
    assert ledger.head.seq == 1, "a refusal leaves nothing behind"


def test_who_has_no_account_is_refused(ledger: Ledger) -> None:
    for ask in (
        lambda: ledger.charge("visits", dp.PureDP(1)),
        lambda: ledger.charge("visits", dp.PureDP(1), key="june"),
        lambda: ledger.release("visits", dp.PureDP(1), lambda: 1),
        lambda: ledger.left("visits"),
        lambda: ledger.accounts("visits"),
        lambda: ledger.admit("visits", "ann", limit=dp.PureDP(1)),
        lambda: ledger.change_limit("visits", dp.PureDP(1), signed_by="board", reason="vote"),
        lambda: ledger.create("visits", population="nobody"),
        lambda: ledger.create("visits"),
    ):
        with refuses(dp.InvalidArgument):
            ask()
    ledger.create("visits", limit=dp.PureDP(1))
    with refuses(dp.InvalidArgument, "population"):
        ledger.change_limit("visits", dp.PureDP(1), signed_by="board", reason="vote", each_person=True)
    with refuses(dp.InvalidArgument, "analyst"):
        ledger.change_limit("visits", dp.PureDP(1), signed_by="board", reason="vote", analyst="ann")
    with refuses(dp.InvalidArgument, "people"):
        ledger.charge("visits", dp.PureDP(0.1), people=[1])
    with refuses(dp.InvalidArgument, "analyst"):
        ledger.left("visits", "ann")
    assert ledger.head.seq == 1


def test_accounts_are_opened_once(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1), each_person=dp.PureDP(1))
    ledger.charge("visits", dp.PureDP(0.5), people=[1])
    for again in ({"limit": dp.PureDP(9)}, {"limit": dp.PureDP(1), "each_person": dp.PureDP(1)}, {"population": "x"}):
        with refuses(dp.InvalidArgument, "already"):
            ledger.create("visits", **again)  # type: ignore[arg-type]
    with refuses(dp.InvalidArgument, "each_person"):
        ledger.create("deaths", each_person=dp.PureDP(2), population="visits")
    assert ledger.left("visits") == dp.PureDP(0.5)
    assert ledger.head.seq == 2


def test_each_analyst_has_an_account_from_the_first_question(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1), each_analyst=dp.PureDP(0.5))
    with refuses(dp.InvalidArgument, "analyst"):
        ledger.charge("visits", dp.PureDP(0.1))
    assert spends(ledger, "visits", 3 * [dp.PureDP(0.25)], analyst="ann") == 2
    assert spends(ledger, "visits", 3 * [dp.PureDP(0.25)], analyst="bob") == 2
    assert spends(ledger, "visits", [dp.PureDP(1e-15)], analyst="eve") == 0, (
        "the dataset's limit holds for all together"
    )
    ledger.create("deaths", limit=dp.PureDP(9), each_analyst=dp.PureDP(0.5))
    with refuses(dp.BudgetExceeded, "analyst 'ann'"):
        ledger.charge("deaths", dp.PureDP(0.6), analyst="ann")
    with refuses(dp.InvalidArgument, "analyst"):
        ledger.left("visits", "eve")
    assert ledger.verify()


def test_admitted_analysts_only(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    ledger.charge("visits", dp.PureDP(0.1))
    ledger.admit("visits", "ann", limit=dp.ZCDP(0.01))
    assert spends(ledger, "visits", 3 * [dp.PureDP(0.1)], analyst="ann") == 2  # 0.1 tanh 0.05 = 0.004996 in rho
    for ask in ({}, {"analyst": "bob"}):
        with refuses(dp.InvalidArgument, "analyst"):
            ledger.charge("visits", dp.PureDP(0.1), **ask)  # type: ignore[arg-type]
    with refuses(dp.InvalidArgument, "analyst"):
        ledger.admit("visits", "ann", limit=dp.PureDP(5))
    assert ledger.left("visits") == dp.PureDP(0.7)
    assert ledger.verify()


def test_a_limit_goes_up_and_down_and_nothing_comes_back(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1), each_analyst=dp.PureDP(1))
    ledger.charge("visits", dp.PureDP(0.75), analyst="ann")
    sign = {"signed_by": "data board", "reason": "vote of 3 June"}
    ledger.change_limit("visits", dp.PureDP(0.5), **sign)
    assert ledger.left("visits") is None
    assert [account.share for account in ledger.accounts("visits")] == [0, 0.75, 1]
    with refuses(dp.BudgetExceeded, "nothing"):
        ledger.charge("visits", dp.PureDP(1e-15), analyst="ann")
    ledger.change_limit("visits", dp.PureDP(2), **sign)
    assert ledger.left("visits") == dp.PureDP(1.25)
    with refuses(dp.BudgetExceeded, "'ann'"):
        ledger.charge("visits", dp.PureDP(0.5), analyst="ann")
    ledger.change_limit("visits", dp.PureDP(1.5), analyst="ann", **sign)
    assert ledger.left("visits", "ann") == dp.PureDP(0.75)
    changes = [entry.body for entry in ledger.history("visits") if entry.kind == "limit"]
    assert [(one["signed_by"], one["reason"]) for one in changes] == 3 * [("data board", "vote of 3 June")]
    assert ledger.verify()


def test_a_limit_below_what_is_spent_in_both_parts(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.ApproxDP(1, 1e-6))
    ledger.charge("visits", dp.ApproxDP(0.5, 5e-7))
    for lower in (dp.ApproxDP(1, 1e-7), dp.ApproxDP(0.1, 1e-6), dp.PureDP(0.9)):
        ledger.change_limit("visits", lower, signed_by="board", reason="vote")
        assert ledger.left("visits") is None
        with refuses(dp.BudgetExceeded):
            ledger.charge("visits", dp.PureDP(0.01))


def test_a_change_needs_a_unit_a_name_and_a_reason(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    with refuses(dp.InvalidArgument, "epsilon"):
        ledger.change_limit("visits", dp.ZCDP(1), signed_by="board", reason="vote")
    for by, why in (("", "vote"), ("board", ""), ("board", "x" * 2001)):
        with refuses(dp.InvalidArgument):
            ledger.change_limit("visits", dp.PureDP(2), signed_by=by, reason=why)
    for wrong in (None, 2, "2"):
        with refuses(dp.WrongType):
            ledger.change_limit("visits", wrong, signed_by="board", reason="vote")  # type: ignore[arg-type]
    with refuses(dp.WrongType):
        ledger.change_limit("visits", dp.PureDP(2), signed_by=None, reason="vote")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        ledger.change_limit("visits", dp.PureDP(2))  # type: ignore[call-arg]
    assert ledger.left("visits") == dp.PureDP(1)


def test_odd_names_are_names(ledger: Ledger) -> None:
    for name in ODD:
        ledger.create(name, limit=dp.PureDP(1), each_analyst=dp.PureDP(1), each_person=dp.PureDP(1), population=name)
        ledger.release(name, dp.PureDP(0.5), np.count_nonzero, key=name, request=name, analyst=name, people=[name])
        assert ledger.left(name) == ledger.left(name, name) == dp.PureDP(0.5)
        assert [account.owner for account in ledger.accounts(name)] == 4 * [name]
        assert [entry.key for entry in ledger.history(name)] == [None, None, name, name]
    assert ledger.verify().entries


def test_wrong_names_are_refused_everywhere(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    places: list[Callable[[Any], Any]] = [
        lambda name: ledger.create(name, limit=dp.PureDP(1)),
        lambda name: ledger.create("deaths", each_person=dp.PureDP(1), population=name),
        lambda name: ledger.admit("visits", name, limit=dp.PureDP(1)),
        lambda name: ledger.charge(name, dp.PureDP(0.1)),
        lambda name: ledger.charge("visits", dp.PureDP(0.1), key=name),
        lambda name: ledger.charge("visits", dp.PureDP(0.1), analyst=name),
        lambda name: ledger.scope(name),
        lambda name: ledger.scope("visits", key=name),
        lambda name: ledger.left(name),
        lambda name: ledger.left("visits", name),
        lambda name: list(ledger.history(name)),
        lambda name: ledger.accounts(name),
    ]
    for place in places:
        for name in WRONG:
            with refuses(dp.InvalidArgument):
                place(name)
        for wrong in (5, b"visits", ["visits"], object()):
            with refuses(dp.DitherError):
                place(wrong)
    assert ledger.head.seq == 1


def test_wrong_arguments_are_refused(ledger: Ledger) -> None:
    for wrong in (0, 1, "1", (1,), dp.PureDP):
        for what in ("limit", "each_analyst", "each_person"):
            with refuses(dp.WrongType):
                ledger.create("visits", **{"limit": dp.PureDP(1), what: wrong})  # type: ignore[arg-type]
    ledger.create("deaths", each_person=dp.PureDP(1))
    for filter_ in ("max", None, 5, object()):
        with refuses(dp.InvalidArgument, "filter"):
            ledger.create("visits", population="deaths", filter=filter_)  # type: ignore[arg-type]
    ledger.create("visits", limit=dp.PureDP(1))
    for cost in (0, 0.1, "0.1", None, dp.PureDP, dp.Laplace):
        with refuses(dp.WrongType, "cost"):
            ledger.charge("visits", cost)
    with refuses(dp.WrongType, "compute"):
        ledger.release("visits", dp.PureDP(0.1), 5)  # type: ignore[arg-type]
    assert ledger.left("visits") == dp.PureDP(1)


def test_a_mechanism_is_a_cost(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1))
    ledger.charge("visits", dp.Laplace(1, 0.25))
    assert ledger.left("visits") == dp.PureDP(0.75)


def test_without_a_limit_the_count_ends_when_it_is_full(ledger: Ledger) -> None:
    """People's limits go on holding, however much a dataset has released about ever new people."""
    ledger.create("visits", each_person=dp.ApproxDP(4000, 0.9))
    for i in range(3):
        assert ledger.charge("visits", dp.ApproxDP(4000, 0.9), people=[i]).kept.all()  # type: ignore[union-attr]
    with refuses(dp.BudgetExceeded, "for life"):
        ledger.charge("visits", dp.PureDP(1e6), people=[0, 9])
    assert not ledger.charge("visits", dp.PureDP(4000), people=[0]).kept.any()  # type: ignore[union-attr]
    spent = ledger.accounts("visits")[0].spent
    assert spent is not None
    assert spent >= dp.ApproxDP(4611, 0.99)
    assert ledger.left("visits") is None
    assert ledger.verify().entries


ACCOUNT = st.tuples(st.integers(1, 20), st.integers(0, 20)).filter(lambda limit_spent: limit_spent[1] <= limit_spent[0])


@given(st.lists(ACCOUNT, min_size=1, max_size=3), st.integers(1, 30))
def test_a_refusal_names_the_account_with_least_left(tenths: list[tuple[int, int]], asked: int) -> None:
    """Whoever then asks for what the refusal says is left is refused by no other account."""
    kinds: list[Any] = ["dataset", "analyst", "analyst"]
    paying = [
        replace(
            opened(("visits", kind, str(i) * i), dp.PureDP(Fraction(limit, 10)), "sum"),
            used=Limit.of(dp.PureDP(Fraction(spent, 10)), "sum").amount if spent else Amount(0, 0),
        )
        for i, (kind, (limit, spent)) in enumerate(zip(kinds, tenths, strict=False))
    ]
    least = min(limit - spent for limit, spent in tenths)
    if asked <= least:
        assert len(charge_each(paying, Price.of(dp.PureDP(Fraction(asked, 10))))) == len(paying)
        return
    with pytest.raises(dp.BudgetExceeded) as error:
        charge_each(paying, Price.of(dp.PureDP(Fraction(asked, 10))))
    assert f"has left, {dp.PureDP(Fraction(least, 10)) if least else 'nothing'}, got" in str(error.value)
