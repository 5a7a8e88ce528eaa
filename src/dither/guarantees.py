"""Privacy guarantees: PureDP, ApproxDP and ZCDP, as frozen values that add up exactly.

Parameters are kept as exact rationals (a float means the decimal it prints as), so ten releases at 0.1 cost
exactly 1. Where a conversion needs a logarithm, the result is rounded up.

>>> sum(10 * [PureDP(0.1)]) == PureDP(1)
True
>>> PureDP(0.5) <= PureDP(1) and not PureDP(1) <= PureDP(0.5)
True
"""

from __future__ import annotations

import decimal as _decimal
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Self

from dither import arguments
from dither.errors import InvalidArgument, NotPrivate, WrongType, fix_by_options
from dither.exact import decimal, exp, exp_neg, log, up
from dither.exact.search import minimize
from dither.present import markup

_BITS = 96
_SUBNORMAL = _decimal.Decimal("1e-300")


class Guarantee:
    """A bound on what a release may reveal about one person. Use one of its three kinds.

    ``a <= b`` means: whatever satisfies a satisfies b.

    >>> isinstance(PureDP(1), Guarantee)
    True
    """

    __slots__ = ("exact",)
    _names: ClassVar[tuple[str, ...]] = ()
    exact: tuple[Fraction, ...]
    """The numbers of the guarantee as exact rationals: (epsilon,), (epsilon, delta) or (rho,)."""

    def _set(self, *numbers: Fraction) -> None:
        """Set the exact numbers of a new guarantee, which is frozen afterwards."""
        object.__setattr__(self, "exact", numbers)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a guarantee is frozen")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a guarantee is frozen")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_free, ()) if self is FREE else (type(self), self.exact)

    def __hash__(self) -> int:
        return hash((type(self), self.exact))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.exact == other.exact

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(_shown(number, 12) for number in self.exact)})"

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the guarantee and what it means."""
        return markup.guarantee(str(self), None if isinstance(self, ZCDP) else self.exact[0], len(self.exact) > 1)

    def __radd__(self, other: object) -> Self:
        """Add to 0, so that ``sum`` works."""
        return self if other == 0 else NotImplemented

    def __add__(self, other: object) -> Guarantee:
        """Return the cost of both releases together, about the same people (sequential composition)."""
        if not isinstance(other, Guarantee):
            return self if other == 0 else NotImplemented
        if self is FREE or other is FREE:
            return other if self is FREE else self
        left, right = _common(self, other)
        return _kind(left)(*(a + b for a, b in zip(left.exact, right.exact, strict=True)))

    def __mul__(self, times: object) -> Self:
        """Return the cost of a number of such releases."""
        count = arguments.whole(times, "times")
        return type(self)(*(count * number for number in self.exact))

    __rmul__ = __mul__

    def __le__(self, other: object) -> bool:
        """Return whether this guarantee implies the other one."""
        if not isinstance(other, Guarantee):
            return NotImplemented
        return self == other or self._implies(other)

    def __lt__(self, other: object) -> bool:
        return self != other and self <= other

    def __ge__(self, other: object) -> bool:
        return NotImplemented if not isinstance(other, Guarantee) else other <= self

    def __gt__(self, other: object) -> bool:
        return self != other and self >= other

    def _implies(self, other: Guarantee) -> bool:
        """Return whether this guarantee implies another one, which is not equal to it."""
        raise AssertionError("each kind says what it implies")

    def epsilon_at(self, delta: Fraction) -> Fraction:
        """Return the epsilon that this guarantee has at an exact delta, rounded up and without a limit on its size.

        The delta must be one that this guarantee can have: positive, and at least that of an (epsilon, delta) promise.

        >>> ZCDP(Fraction(1, 2)).epsilon_at(Fraction(1, 10**6)) == ZCDP(0.5).to_approx(1e-6).exact[0]
        True
        """
        raise AssertionError("each kind converts itself")

    def to_approx(self, delta: float) -> ApproxDP:
        """Convert the guarantee to (epsilon, delta) at this delta, with the smallest epsilon that follows."""
        raise AssertionError("each kind converts itself")

    def group(self, size: int) -> Guarantee:
        """Return the guarantee for a group of ``size`` people (Dwork and Roth 2014, theorem 2.2; Bun and Steinke
        2016, proposition 1.9).

        *Statement.* ``size * epsilon`` for pure privacy, ``size^2 * rho`` for zCDP, and ``(size * epsilon, delta
        (e^(size epsilon) - 1) / (e^epsilon - 1))`` for (epsilon, delta): each person in turn is a neighbor, and
        the deltas of the earlier ones are multiplied by the losses of the later ones.

        >>> PureDP(0.5).group(3), ZCDP(0.5).group(3), ApproxDP(0.5, 1e-6).group(2)
        (PureDP(1.5), ZCDP(4.5), ApproxDP(1, 2.64872127071e-06))
        """
        raise AssertionError("each kind says what a group can expect")


class PureDP(Guarantee):
    """epsilon-differential privacy: ``P(A) <= exp(epsilon) * P'(A)`` for all events and neighbors.

    >>> PureDP(1) + PureDP(0.5)
    PureDP(1.5)
    >>> print(PureDP(0.5))
    ε = 0.5
    """

    __slots__ = ()

    def __init__(self, epsilon: float | Fraction) -> None:
        """Check and keep epsilon exactly."""
        self._set(arguments.epsilon(epsilon))

    @property
    def epsilon(self) -> float:
        """Return epsilon, rounded up to a float."""
        return up(self.exact[0])

    @property
    def exact_epsilon(self) -> Fraction:
        """Return epsilon, exactly."""
        return self.exact[0]

    def __str__(self) -> str:
        return f"ε = {_shown(self.exact[0], 6)}"

    def to_approx(self, delta: float) -> ApproxDP:
        """Convert to (epsilon, delta): ``epsilon + ln(1 - delta (1 + exp(-epsilon)))``, which no larger epsilon is
        needed for.

        The least private epsilon-DP mechanism is randomized response, whose curve this is.

        >>> PureDP(1).to_approx(0.01)
        ApproxDP(0.986226788887, 0.01)
        """
        return ApproxDP(self.epsilon_at(arguments.delta(delta)), delta)

    def epsilon_at(self, delta: Fraction) -> Fraction:
        """Return the epsilon of :meth:`to_approx` at an exact delta; see :meth:`Guarantee.epsilon_at`."""
        return _trade(self.exact[0], delta)

    def to_zcdp(self) -> ZCDP:
        """Convert to zCDP with ``rho = epsilon tanh(epsilon / 2)``, the smallest that follows; it is below the
        ``epsilon^2 / 2`` of Bun and Steinke 2016.

        The least private epsilon-DP release is randomized response, whose Renyi divergence is ``ln(cosh((alpha
        - 1/2) epsilon) / cosh(epsilon / 2)) / (alpha - 1)``. Since ln cosh of a square root is concave, the
        numerator lies below its tangent at alpha = 1: ``alpha (alpha - 1) epsilon tanh(epsilon / 2)``.

        >>> PureDP(1).to_zcdp()
        ZCDP(0.462117157261)
        """
        epsilon = self.exact[0]
        bits = _BITS + 2 * max(0, epsilon.denominator.bit_length() - epsilon.numerator.bit_length() + 1)
        low = exp_neg(epsilon, bits)[0]
        return ZCDP(min(epsilon * epsilon / 2, Fraction(up(epsilon * Fraction((1 << bits) - low, (1 << bits) + low)))))

    def group(self, size: int) -> PureDP:
        """Return ``size * epsilon``; see :meth:`Guarantee.group`."""
        return self * size

    def _implies(self, other: Guarantee) -> bool:
        """Return whether the other guarantee follows, after converting this one to its kind."""
        if isinstance(other, PureDP):
            return self.exact <= other.exact
        if isinstance(other, ZCDP):
            return self.to_zcdp().exact <= other.exact
        return self.epsilon_at(other.exact[1]) <= other.exact[0]


def _free() -> PureDP:
    """Return the one guarantee of what depends on no person."""
    return FREE


FREE = PureDP.__new__(PureDP)
"""What the answer to a question about public tables alone costs: ε = 0. No constructor accepts it, since it is no
budget and no parameter of a mechanism."""
FREE._set(Fraction(0))


class ApproxDP(Guarantee):
    """(epsilon, delta)-differential privacy: ``P(A) <= exp(epsilon) * P'(A) + delta``.

    >>> ApproxDP(1, 1e-6) + PureDP(0.5)
    ApproxDP(1.5, 1e-06)
    >>> print(ApproxDP(1, 1e-6))
    (ε, δ) = (1, 1e-06)
    """

    __slots__ = ()

    def __init__(self, epsilon: float | Fraction, delta: float | Fraction) -> None:
        """Check and keep epsilon, which may be 0, and delta exactly."""
        exact = decimal(epsilon, "epsilon")
        self._set(exact if exact == 0 else arguments.epsilon(epsilon), arguments.delta(delta))

    @property
    def epsilon(self) -> float:
        """Return epsilon, rounded up to a float."""
        return up(self.exact[0])

    @property
    def delta(self) -> float:
        """Return delta, rounded up to a float."""
        return up(self.exact[1])

    def __str__(self) -> str:
        return f"(ε, δ) = ({_shown(self.exact[0], 6)}, {_shown(self.exact[1], 6)})"

    def to_approx(self, delta: float) -> ApproxDP:
        """Convert to a larger delta, with the smallest epsilon that follows.

        >>> ApproxDP(1, 1e-6).to_approx(1e-2)
        ApproxDP(0.986228161869, 0.01)
        """
        wanted = arguments.delta(delta)
        if wanted < self.exact[1]:
            raise InvalidArgument(
                "delta",
                f"at least {self.delta:g}",
                delta,
                "a smaller delta cannot be had from this guarantee alone",
            )
        return ApproxDP(self.epsilon_at(wanted), delta)

    def epsilon_at(self, delta: Fraction) -> Fraction:
        """Return the epsilon of :meth:`to_approx` at an exact delta; see :meth:`Guarantee.epsilon_at`."""
        return _trade(self.exact[0], (delta - self.exact[1]) / (1 - self.exact[1]))

    def group(self, size: int) -> ApproxDP:
        """Return ``(size * epsilon, delta (e^(size epsilon) - 1) / (e^epsilon - 1))``; see :meth:`Guarantee.group`."""
        count, (epsilon, delta) = arguments.whole(size, "size"), self.exact
        if count == 1 or epsilon == 0:
            return self * count
        # the quotient is the sum of e^(i epsilon) over i below size: above 10^6 in the exponent delta is above 1
        growth = _geometric(epsilon, count) if (count - 1) * epsilon < 1000 else None
        if growth is None or delta * growth >= 1:
            raise NotPrivate(
                "size",
                "a group so small that its delta stays below 1",
                count,
                "protect groups with a smaller epsilon and delta, or with pure privacy",
            )
        return ApproxDP(count * epsilon, Fraction(up(delta * growth)))

    def _implies(self, other: Guarantee) -> bool:
        """Return whether the other guarantee follows at its delta."""
        if not isinstance(other, ApproxDP) or other.exact[1] < self.exact[1]:
            return False
        return self.epsilon_at(other.exact[1]) <= other.exact[0]


class ZCDP(Guarantee):
    """rho-zero-concentrated differential privacy (Bun and Steinke 2016): rho adds up, Gaussian noise has ``rho
    = (Delta/sigma)^2 / 2``.

    >>> ZCDP(0.1) + ZCDP(0.2)
    ZCDP(0.3)
    >>> print(ZCDP(0.5))
    ρ = 0.5 (zCDP)
    """

    __slots__ = ()

    def __init__(self, rho: float | Fraction) -> None:
        """Check and keep rho exactly."""
        exact = decimal(rho, "rho")
        if not 0 < exact <= arguments.MAX_EPSILON**2:
            raise InvalidArgument(
                "rho", "a number above 0 and at most 1e+12", rho, *fix_by_options("pass {rho}, for example", rho=0.5)
            )
        self._set(exact)

    @property
    def rho(self) -> float:
        """Return rho, rounded up to a float."""
        return up(self.exact[0])

    def __str__(self) -> str:
        return f"ρ = {_shown(self.exact[0], 6)} (zCDP)"

    def to_approx(self, delta: float) -> ApproxDP:
        """Convert to (epsilon, delta): the smallest epsilon over alpha > 1 of ``alpha rho + (ln(1/delta) + alpha
        ln(1 - 1/alpha) - ln(alpha - 1)) / (alpha - 1)`` (Canonne, Kamath and Steinke 2020, Proposition 12).

        Every alpha gives a valid epsilon, so only the last evaluation, in enclosures, has to be right. Never
        above ``rho + 2 sqrt(rho ln(1/delta))``.

        >>> ZCDP(0.5).to_approx(1e-6)
        ApproxDP(5.22153444454, 1e-06)
        """
        return ApproxDP(self.epsilon_at(arguments.delta(delta)), delta)

    def epsilon_at(self, delta: Fraction) -> Fraction:
        """Return the epsilon of :meth:`to_approx` at an exact delta; see :meth:`Guarantee.epsilon_at`."""
        rho, fast = self.exact[0], float(self.exact[0])
        log_delta = math.log(delta.numerator) - math.log(delta.denominator)

        def epsilon(t: float) -> float:
            """Return the epsilon for ``alpha = 1 + exp(t)`` in floating point, to find a good alpha."""
            return (
                (math.exp(t) + 1) * fast
                + (-log_delta - (math.exp(t) + 1) * math.log1p(math.exp(-t))) / math.exp(t)
                - t / math.exp(t)
            )

        alpha = 1 + Fraction(math.exp(minimize(epsilon, -18.0, 36.0, steps=200)))
        one = 1 << _BITS
        top = -log(delta, _BITS)[0] + math.ceil(alpha * log(1 - 1 / alpha, _BITS)[1]) - log(alpha - 1, _BITS)[0]
        best = max(alpha * rho + Fraction(top, one) / (alpha - 1), Fraction(0))
        return Fraction(up(best))

    def group(self, size: int) -> ZCDP:
        """Return ``size^2 * rho``; see :meth:`Guarantee.group`."""
        return self * arguments.whole(size, "size") ** 2

    def _implies(self, other: Guarantee) -> bool:
        """Return whether the other guarantee follows, after converting this one to its kind."""
        if isinstance(other, ZCDP):
            return self.exact <= other.exact
        return isinstance(other, ApproxDP) and self.epsilon_at(other.exact[1]) <= other.exact[0]


def _trade(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return ``max(0, epsilon + ln(1 - delta (1 + exp(-epsilon))))``, the epsilon of epsilon-DP at a delta, rounded
    up."""
    one = 1 << _BITS
    left = 1 - delta * (1 + Fraction(exp_neg(epsilon, _BITS)[0], one))
    if left <= 0:
        return Fraction(0)
    return min(epsilon, max(Fraction(0), Fraction(up(epsilon + Fraction(log(left, _BITS)[1], one)))))


def _geometric(epsilon: Fraction, count: int) -> Fraction:
    """Return ``(e^(count epsilon) - 1) / (e^epsilon - 1)``, rounded up."""
    bits = _BITS + 2 * max(0, epsilon.denominator.bit_length() - epsilon.numerator.bit_length() + 1)
    one = 1 << bits
    return Fraction(exp(count * epsilon, bits)[1] - one, exp(epsilon, bits)[0] - one)


def _shown(number: Fraction, digits: int) -> str:
    """Format a number with this many significant digits, rounded up, so that a cost never looks smaller than it is."""
    context = _decimal.Context(prec=digits, rounding=_decimal.ROUND_CEILING)
    rounded = context.divide(_decimal.Decimal(number.numerator), _decimal.Decimal(number.denominator))
    return f"{float(rounded):.{digits}g}" if number == 0 or rounded > _SUBNORMAL else str(rounded)


def _common(left: Guarantee, right: Guarantee) -> tuple[Guarantee, Guarantee]:
    """Convert two guarantees to one kind, the weaker of theirs, so that they can be added or compared."""
    kinds = {type(left), type(right)}
    if len(kinds) == 1:
        return left, right
    if kinds == {ApproxDP, ZCDP}:
        raise WrongType(
            "guarantees",
            "guarantees that add up",
            "(epsilon, delta) and zCDP",
            "convert the zCDP one with to_approx(delta) first",
        )
    if ZCDP in kinds:
        return _as_zcdp(left), _as_zcdp(right)
    return _as_approx(left), _as_approx(right)


class _NoDelta(ApproxDP):
    """epsilon-DP as (epsilon, 0): a summand only, never shown."""

    __slots__ = ()

    def __init__(self, epsilon: Fraction) -> None:
        self._set(epsilon, Fraction(0))


def _as_zcdp(guarantee: Guarantee) -> Guarantee:
    """Convert a pure guarantee to zCDP; leave others unchanged."""
    return guarantee.to_zcdp() if isinstance(guarantee, PureDP) else guarantee


def _as_approx(guarantee: Guarantee) -> Guarantee:
    """Write a pure guarantee as (epsilon, 0); leave others unchanged."""
    return _NoDelta(guarantee.exact[0]) if isinstance(guarantee, PureDP) else guarantee


def _kind(guarantee: Guarantee) -> type[Guarantee]:
    """Return the public class of a guarantee."""
    return ApproxDP if isinstance(guarantee, ApproxDP) else type(guarantee)


def sequential(*guarantees: Guarantee) -> Guarantee:
    """Return the cost of releases about the same people, each chosen after the results of those before.

    *Statement.* Epsilons, deltas and rhos add, whatever the releases are and however they depend on each other
    (Dwork and Roth 2014, theorem B.1; Bun and Steinke 2016, lemma 2.3).

    >>> sequential(PureDP(1), PureDP(0.5))
    PureDP(1.5)
    """
    first, *rest = _checked(guarantees)
    for other in rest:
        first = first + other
    return first


def parallel(*guarantees: Guarantee) -> Guarantee:
    """Return the cost of releases about disjoint groups of people: the largest one, since each person is in one
    group.

    Between neighbors one group changes: a record is added or removed, or replaced by one of the same group. A
    replacement that moves a person from one group to another changes two of them, and costs their sum.

    >>> parallel(PureDP(1) + PureDP(0.5), PureDP(0.7))
    PureDP(1.5)
    >>> parallel(PureDP(1), ApproxDP(0.5, 1e-6))
    ApproxDP(1, 1e-06)
    """
    result, *rest = _checked(guarantees)
    for other in rest:
        left, right = _common(result, other)
        result = _kind(left)(*(max(a, b) for a, b in zip(left.exact, right.exact, strict=True)))
    return result


def stored(guarantee: Guarantee) -> dict[str, Any]:
    """Convert a guarantee to JSON, exactly, as ledgers keep it.

    >>> stored(PureDP(0.5))
    {'kind': 'PureDP', 'numbers': ['1/2']}
    """
    return {"kind": type(guarantee).__name__, "numbers": [str(number) for number in guarantee.exact]}


def restored(document: Mapping[str, Any]) -> Guarantee:
    """Return the guarantee that :func:`stored` converted to JSON.

    >>> restored(stored(ApproxDP(1, 1e-6)))
    ApproxDP(1, 1e-06)
    """
    if document == stored(FREE):
        return FREE
    kinds = {kind.__name__: kind for kind in (PureDP, ApproxDP, ZCDP)}
    result: Guarantee = kinds[document["kind"]](*(Fraction(number) for number in document["numbers"]))
    return result


def _checked(guarantees: tuple[object, ...]) -> list[Guarantee]:
    """Return the guarantees; refuse an empty list and anything that is no guarantee."""
    if not guarantees:
        raise InvalidArgument("guarantees", "at least one", "none", "pass the guarantee of each release")
    return [require_guarantee(one, "guarantees") for one in guarantees]


def require_guarantee(value: object, name: str = "guarantee") -> Guarantee:
    """Return a guarantee; refuse any other value, under the parameter's ``name``.

    >>> require_guarantee(PureDP(1))
    PureDP(1)
    """
    if not isinstance(value, Guarantee):
        raise WrongType(name, "PureDP, ApproxDP or ZCDP", type(value).__name__, "pass a guarantee, such as PureDP(1)")
    return value
