"""Budgets as whole numbers: what a release costs an account, and what an account may spend.

Every account adds up two whole numbers, a loss in units of 1e-15 and a delta in units of 1e-18. Costs are rounded
up to a unit and limits down, so ten releases at 0.1 fit into 1 exactly, the next 1e-12 does not fit, and no sum
ever rounds. A 64-bit integer of the database holds both.

The loss an account adds up is epsilon or rho, and both sums are filters: they stay valid when each question is
chosen after seeing the answers to those before, *if the pending charge is part of the check*, as it is here.

``sum``
    epsilon's and delta's add up (for a limit in epsilon or (epsilon, delta)); rho's add up (for a limit in rho).
``advanced``
    For a limit (epsilon, delta): the fully adaptive filter of Whitehouse, Ramdas, Rogers and Wu (2023). A release
    that is epsilon-DP is ``epsilon tanh(epsilon/2)``-zCDP, one that is (epsilon, delta)-DP is that but for a part
    of probability delta; rho's and delta's of approximate zCDP add up under full adaptivity (their Theorem 1), and
    at the end a total of rho is (epsilon, delta)-DP. Half of delta is kept for the delta's of the releases, half
    for that conversion; the limit on rho is the largest whose conversion stays within epsilon.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from dither.accounting import Event, zcdp
from dither.arguments import MAX_DELTA
from dither.errors import InvalidArgument, NotPrivate, WrongType
from dither.exact.search import bisect_integers
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP

LOSS_UNIT = 10**15
DELTA_UNIT = 10**18
MAX_AMOUNT = 1 << 62
_MAX_BITS = 9966  # bits, 3000 digits

Unit = Literal["epsilon", "rho"]
Filter = Literal["sum", "advanced"]


@dataclass(frozen=True)
class Amount:
    """A loss and a delta, in units."""

    loss: int
    delta: int

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.loss + other.loss, self.delta + other.delta)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.loss - other.loss, self.delta - other.delta)

    def within(self, limit: Amount) -> bool:
        """Return whether neither loss nor delta is above that of a limit."""
        return self.loss <= limit.loss and self.delta <= limit.delta

    def numbers(self) -> tuple[Fraction, Fraction]:
        """Return loss and delta as exact numbers instead of units."""
        return Fraction(self.loss, LOSS_UNIT), Fraction(self.delta, DELTA_UNIT)


@dataclass(frozen=True)
class Limit:
    """What an account may ever spend, in its unit."""

    unit: Unit
    amount: Amount

    @classmethod
    def of(cls, promise: object, filter: Filter = "sum") -> Limit:
        """Return the limit in units that keeps an account within a guarantee, under a filter."""
        guarantee = check_guarantee(promise, "limit")
        check_filter(filter)
        if filter == "advanced":
            if not isinstance(guarantee, ApproxDP):
                raise InvalidArgument(
                    "limit",
                    "(epsilon, delta) for the advanced filter",
                    type(guarantee).__name__,
                    "pass limit=ApproxDP(1, 1e-6), or leave filter out",
                )
            return cls("rho", _advanced(guarantee))
        unit: Unit = "rho" if isinstance(guarantee, ZCDP) else "epsilon"
        epsilon, delta = _parts(guarantee)
        amount = Amount(int(epsilon * LOSS_UNIT), int(delta * DELTA_UNIT))
        if not amount.loss + amount.delta > 0 or amount.loss > MAX_AMOUNT:
            raise InvalidArgument(
                "limit", "a limit between 1e-15 and 4611", str(guarantee), "state a limit of ε = 1, for example"
            )
        return cls(unit, amount)


def check_guarantee(value: object, name: str) -> Guarantee:
    """Return a guarantee; refuse anything else, and one with too many digits to be stored."""
    if not isinstance(value, Guarantee) or type(value) not in (PureDP, ApproxDP, ZCDP):
        raise WrongType(
            name, "PureDP, ApproxDP or ZCDP", type(value).__name__, f"pass {name}=dither.PureDP(0.5), for example"
        )
    if max(number.denominator.bit_length() for number in value.exact) > _MAX_BITS:
        raise InvalidArgument(name, "at most 3000 digits", "a longer number", "round it up")
    return value


def check_filter(value: object) -> None:
    """Refuse anything but the filters ``sum`` and ``advanced``."""
    if not isinstance(value, str) or value not in ("sum", "advanced"):
        raise InvalidArgument("filter", "'sum' or 'advanced'", "an unknown filter", "leave it out")


def _parts(guarantee: Guarantee) -> tuple[Fraction, Fraction]:
    """Return the loss (epsilon or rho) and the delta of a guarantee; a delta of 0 where it has none."""
    numbers = guarantee.exact
    return numbers[0], numbers[1] if len(numbers) > 1 else Fraction(0)


def _advanced(guarantee: ApproxDP) -> Amount:
    """Return the limit of the advanced filter: the largest rho that converts to (epsilon, delta/2), and delta/2."""
    epsilon, delta = _parts(guarantee)
    half = delta / 2
    largest = min(int(epsilon * LOSS_UNIT), MAX_AMOUNT)
    rho = bisect_integers(
        lambda units: ZCDP(Fraction(units, LOSS_UNIT)).epsilon_at(half) <= epsilon, largest, 0, significant_bits=40
    ).holds
    return Amount(rho, int(half * DELTA_UNIT))


def _up(number: Fraction, unit: int) -> int:
    """Return a number in units, rounded up."""
    return -(-number.numerator * unit // number.denominator)


@dataclass(frozen=True)
class Price:
    """What a release costs: its guarantee, and its rho where more is known of it than the guarantee says."""

    guarantee: Guarantee
    rho: Fraction | None = None

    @classmethod
    def of(cls, paid: Any) -> Price:
        """Return the price of a guarantee, an event, or a mechanism with a guarantee and an event."""
        guarantee = check_guarantee(getattr(paid, "guarantee", paid), "cost")
        event = paid if isinstance(paid, Event) else getattr(paid, "event", None)
        known = isinstance(event, Event) and zcdp.supports(event)
        return cls(guarantee, zcdp.guarantee(event).exact[0] if known and event is not None else None)

    def __str__(self) -> str:
        return str(self.guarantee)


def exact_cost(price: Guarantee | Price, unit: Unit) -> tuple[Fraction, Fraction]:
    """Return loss and delta, exactly, that a release costs an account in this unit; refuse a cost in rho for an
    account in epsilon."""
    known = price.rho if isinstance(price, Price) else None
    guarantee = price.guarantee if isinstance(price, Price) else price
    if unit == "rho" and known is not None:
        return known, Fraction(0)
    epsilon, delta = _parts(guarantee)
    if unit == "rho" and not isinstance(guarantee, ZCDP):
        epsilon = PureDP(epsilon).to_zcdp().exact[0] if epsilon else epsilon
    elif unit == "epsilon" and isinstance(guarantee, ZCDP):
        raise NotPrivate(
            "cost",
            "a cost in epsilon, which is what this account adds up",
            "a cost in rho",
            "convert it with to_approx(delta), or give the account a limit in rho",
        )
    return epsilon, delta


def cost(price: Guarantee | Price, unit: Unit) -> Amount:
    """Return what a release costs an account which adds up this unit, rounded up to whole units."""
    epsilon, delta = exact_cost(price, unit)
    return Amount(_up(epsilon, LOSS_UNIT), _up(delta, DELTA_UNIT))


def guarantee_of(amount: Amount, unit: Unit) -> Guarantee | None:
    """Return the guarantee of everything that cost this amount in total; None where nothing was spent."""
    epsilon, delta = amount.numbers()
    if unit == "rho":
        return ZCDP(epsilon) if epsilon else None
    if delta:  # a count that is full stands for anything from there on
        return ApproxDP(epsilon, min(delta, MAX_DELTA))
    return PureDP(epsilon) if epsilon else None


def rounded_down(guarantee: Guarantee, digits: int = 6) -> Guarantee:
    """Return the guarantee with its numbers rounded toward zero to this many significant digits.

    Guarantees print rounded up, which is right for what a release costs. Of a remaining budget that would promise
    more than there is; rounded down first, the printed number can be spent.

    >>> print(PureDP(Fraction(2, 3)), rounded_down(PureDP(Fraction(2, 3))))
    ε = 0.666667 ε = 0.666666
    """
    context = decimal.Context(prec=digits, rounding=decimal.ROUND_DOWN)
    quotients = (
        context.divide(decimal.Decimal(number.numerator), decimal.Decimal(number.denominator))
        for number in guarantee.exact
    )
    return type(guarantee)(*map(Fraction, quotients))
