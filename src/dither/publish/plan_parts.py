"""The parts of a plan as they are written: tables that are wanted, public totals, and the budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither import arguments
from dither.errors import InvalidArgument, NotPrivate, WrongType
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.publish.domain import Domain
from dither.tables.card.model import Card
from dither.tables.card.toml import check_names, kind_of
from dither.tables.card.values import clip

_TABLE = ("by", "weight", "error")
_TOTAL = ("by", "counts")


@dataclass(frozen=True)
class WantedTable:
    """A table of a plan: the names of its levels, how much it counts, and the largest error that is good enough.

    >>> WantedTable(("state", "sex"), error="2%").error
    '2%'
    """

    by: tuple[str, ...]
    weight: float | None = None
    error: float | str | None = None

    @property
    def name(self) -> str:
        """The table in words."""
        return " × ".join(self.by) or "everybody"


def wanted_tables(given: Any) -> list[WantedTable]:
    """The tables of a plan: each a list of names, or a mapping with ``by``, ``weight`` and ``error``.

    >>> wanted_tables([["state"], {"by": ["state", "sex"], "error": "2%"}, []])[1]
    WantedTable(by=('state', 'sex'), weight=None, error='2%')
    """
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Sequence) or not given:
        got = "none" if given is None or given == [] else kind_of(given)
        fix = 'write tables = [["state"], ["state", "age"]], for example'
        raise InvalidArgument("tables", "a list of tables, each a list of names", got, fix)
    result = []
    for place, item in enumerate(given):
        where = f"tables[{place}]"
        if isinstance(item, Mapping):
            check_names(item, _TABLE, where)
        section = item if isinstance(item, Mapping) else {"by": item}
        by = _names(section.get("by"), f"{where}.by")
        weight, error = section.get("weight"), section.get("error")
        if weight is not None:
            arguments.positive(weight, f"{where}.weight")
        if error is not None and not isinstance(error, str):
            arguments.positive(error, f"{where}.error")
        result.append(WantedTable(by, weight, error))
    return result


def check_repetitions(domain: Domain, tables: Sequence[WantedTable]) -> None:
    """Refuse a table that is asked for twice, also by other names of the same levels."""
    seen: dict[tuple[int, ...], str] = {}
    for table in tables:
        levels = domain.levels(table.by)
        if levels in seen:
            got = f"{table.name} twice" if seen[levels] == table.name else f"{seen[levels]} and {table.name}, one table"
            fix = "leave one out; a table that matters more has weight = 2"
            raise InvalidArgument("tables", "each table once", got, fix)
        seen[levels] = table.name


def totals_of(domain: Domain, given: Any) -> dict[str | Sequence[str], Any]:
    """Public totals by the names of a table's levels, in the order of the keys.

    They are given as such a mapping, or as a list of sections with ``by`` and ``counts``; the counts of one level may
    be a mapping of its keys to numbers.

    >>> from dither.publish.domain import Attribute
    >>> totals_of(Domain([Attribute.flat("sex", ["f", "m"])]), [{"by": ["sex"], "counts": {"m": 4, "f": 6}}])
    {('sex',): [6, 4]}
    """
    if given is None:
        return {}
    pairs: list[tuple[Any, Any]]
    if isinstance(given, Mapping):
        pairs = [(name, counts) for name, counts in given.items()]
    else:
        pairs = []
        for place, item in enumerate(given):
            check_names(item, _TOTAL, f"totals[{place}]")
            if "counts" not in item:
                fix = "write counts = [100, 200], a public number for each key"
                raise InvalidArgument(f"totals[{place}]", "counts", "none", fix)
            pairs.append((item.get("by", []), item["counts"]))
    result: dict[str | Sequence[str], Any] = {}
    for name, counts in pairs:
        by = _names(name, "totals")
        _check_totals(domain, by)
        if by in result:
            shown = " × ".join(by) or "everybody"
            raise InvalidArgument("totals", "each table once", f"{shown} twice", "leave one out")
        result[by] = _in_order(domain, by, counts) if isinstance(counts, Mapping) else _transposed(domain, by, counts)
    return result


def _check_totals(domain: Domain, by: tuple[str, ...]) -> None:
    """Refuse totals of a column that no table has."""
    known = [level for attribute in domain.attributes for level in attribute.level_names]
    unknown = [name for name in by if name not in known]
    if unknown:
        name = clip(unknown[0])
        fix = f'add a table with it, such as ["{name}"], or leave these totals out'
        expected = f"columns of the tables ({', '.join(known[:20])})"
        raise InvalidArgument("totals.by", expected, f"{name!r}, which no table has", fix)


def _transposed(domain: Domain, by: tuple[str, ...], counts: Any) -> Any:
    """Numbers in the order of the names, the last of them changing fastest, in the order of the domain."""
    levels = domain.levels(by)
    axes = domain.axes(by)
    if [*axes] == sorted(axes) or np.size(counts) != domain.size(levels):
        return counts
    shape = [domain.shape(levels)[axis] for axis in axes]
    return np.transpose(np.reshape(np.asarray(counts), shape), np.argsort(axes))


def _in_order(domain: Domain, by: tuple[str, ...], counts: Mapping[Any, Any]) -> list[Any]:
    """The counts of one level in the order of its keys."""
    where = f"totals of {' × '.join(by) or 'everybody'}"
    if len(by) != 1:
        fix = "write a list of numbers, the last of the names changing fastest"
        raise InvalidArgument(where, "one level for counts by key", f"{len(by)} names", fix)
    levels = domain.levels(by)
    attribute, level = next((item, level) for item, level in zip(domain.attributes, levels, strict=True) if level)
    keys = ["NULL" if key is None else str(key) for key in attribute.keys[level - 1].to_pylist()]
    numbers = {"NULL" if key is None else str(key): number for key, number in counts.items()}
    missing = [key for key in keys if key not in numbers]
    unknown = [key for key in numbers if key not in {*keys}]
    if missing or unknown:
        got = f"none for {missing[0]!r}" if missing else f"one for {clip(unknown[0])!r}, which is no key"
        raise InvalidArgument(where, "a number for each key", got, "complete or correct the counts")
    return [numbers[key] for key in keys]


def _names(given: Any, where: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        got = "none" if given is None else kind_of(given)
        raise InvalidArgument(where, "a list of names", got, 'write by = ["state", "age"]')
    if len({*names}) != len(names):
        repeated = next(name for name in names if list(names).count(name) > 1)
        raise InvalidArgument(where, "each name once", f"{clip(repeated)!r} twice", "leave one out")
    return tuple(names)


def guarantee_for(
    card: Card, budget: Guarantee | None, epsilon: float | None, delta: float | None, rho: float | None
) -> Guarantee:
    """What a release is to cost: as the call says, or the plan; the delta of the card where none is stated.

    >>> guarantee_for(Card("visits", "", {}, delta=1e-9), None, 1, None, None)
    ApproxDP(1, 1e-09)
    """
    if rho is not None:
        if epsilon is not None or delta is not None:
            given = "rho and epsilon" if epsilon is not None else "rho and delta"
            raise InvalidArgument("rho", "rho, or epsilon and delta", given, "leave one of them out")
        result: Guarantee = ZCDP(rho)
    elif epsilon is not None:
        stated = delta if delta is not None else budget.exact[1] if isinstance(budget, ApproxDP) else card.delta
        if stated is None:
            fix = "pass delta=1e-9, or state one in the card, far below 1 / number of people"
            raise InvalidArgument("delta", "one, as Gaussian noise needs", "none", fix)
        result = ApproxDP(epsilon, stated)
    elif budget is None:
        fix = "pass epsilon=1 and delta=1e-9, or rho=0.05, or write a [budget] into the plan"
        raise InvalidArgument("epsilon", "a budget", "none", fix)
    elif delta is not None:
        if not isinstance(budget, ApproxDP):
            fix = "leave delta out, or pass epsilon=1 beside it"
            raise InvalidArgument("delta", "an epsilon beside it", "a plan in rho", fix)
        result = ApproxDP(budget.exact[0], delta)
    else:
        result = budget
    _check_kind(card, result)
    _check_least(card, result)
    return result


def _check_kind(card: Card, guarantee: Guarantee) -> None:
    """Refuse what an account of the card can never pay: one adds up epsilon alone, epsilon and delta, or rho."""
    for limit in (card.budget, card.each_person, card.each_analyst):
        if isinstance(limit, PureDP):
            fix = (
                "state a delta beside epsilon under [budget] of the card, such as delta = 1e-6, or rho in place of both"
            )
            raise NotPrivate("budget", "a budget with a delta or in rho, as Gaussian noise needs", str(limit), fix)
        if isinstance(limit, ZCDP) and isinstance(guarantee, ApproxDP):
            surprise = math.log(1 / guarantee.delta)
            rho = (math.sqrt(surprise + guarantee.epsilon) - math.sqrt(surprise)) ** 2
            fix = f"pass rho={rho:.2g}, which implies about the same"
            raise NotPrivate("cost", "rho, which is what the accounts of the card add up", str(guarantee), fix)
        if isinstance(limit, ApproxDP) and isinstance(guarantee, ZCDP):
            delta = card.delta if card.delta is not None else limit.delta / 10
            epsilon = guarantee.rho + 2 * math.sqrt(guarantee.rho * math.log(1 / delta))
            fix = f"pass epsilon={epsilon:.2g} and delta={delta:g}, which is about as much"
            expected = "epsilon and delta, which are what the accounts of the card add up"
            raise NotPrivate("cost", expected, str(guarantee), fix)


def _check_least(card: Card, guarantee: Guarantee) -> None:
    """Refuse what costs less than the card allows: it is of use to an attacker only."""
    least = arguments.epsilon(card.min_epsilon, "min_epsilon")
    small = guarantee.exact[0] < least if isinstance(guarantee, ApproxDP) else guarantee.exact[0] < least * least / 2
    if small:
        expected = f"at least {float(least):g}, the card's min_epsilon"
        if isinstance(guarantee, ZCDP):
            expected = f"rho of at least {float(least * least / 2):g}, by the card's min_epsilon"
        raise InvalidArgument("epsilon", expected, str(guarantee), "pass epsilon=0.1, or more")


def budget_of(given: Any, card: Card) -> Guarantee | None:
    """The budget of a plan: a guarantee, or a mapping with epsilon and delta, or rho; the card may have the delta.

    >>> budget_of({"rho": 0.5}, Card("visits", "", {}))
    ZCDP(0.5)
    """
    if given is None or isinstance(given, (ApproxDP, ZCDP)):
        return given
    if not isinstance(given, Mapping):
        fix = "pass dp.ApproxDP(1, 1e-9), dp.ZCDP(0.05), or {'epsilon': 1, 'delta': 1e-9}"
        raise WrongType("budget", "ApproxDP, ZCDP or a section", type(given).__name__, fix)
    check_names(given, ("epsilon", "delta", "rho"), "budget")
    keys = {*given}
    if keys == {"rho"}:
        return ZCDP(given["rho"])
    if keys == {"epsilon", "delta"}:
        return ApproxDP(given["epsilon"], given["delta"])
    if keys == {"epsilon"} and card.delta is not None:
        return ApproxDP(given["epsilon"], card.delta)
    got = " and ".join(sorted(keys)) or "none of them"
    fix = "write epsilon = 1 and delta = 1e-9, or rho = 0.05"
    raise InvalidArgument("budget", "epsilon and delta, or rho", got, fix)
