"""Opening the accounts of a dataset, once or if they are not there yet, and changing their limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from dither.errors import InvalidArgument
from dither.guarantees import Guarantee
from dither.ledger import accounts, chain, schema
from dither.ledger.accounts import Account
from dither.ledger.chain import Receipt
from dither.ledger.checks import checked_name
from dither.ledger.recorded import canonical
from dither.ledger.store import Store
from dither.ledger.units import Filter, Limit, Unit, check_filter, check_guarantee

CHANGE_IT = "change the ledger's with change_limit, signed and with a reason"
"""How a limit is changed, from Python."""
BY_CARD = "the card"
"""Who signs a limit that is changed in the card before anything is charged."""
RESTATED = (BY_CARD, "changed in the card before anything was charged")
"""Who signs such a change, and the reason given."""


class LimitOptions(TypedDict, total=False):
    """The keyword arguments of :meth:`dither.ledger.Ledger.create` and :meth:`dither.ledger.Ledger.ensure`."""

    limit: Guarantee | None
    each_analyst: Guarantee | None
    each_person: Guarantee | None
    population: str | None
    filter: Filter


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a dataset's accounts may ever spend.

    Parameters
    ----------
    limit
        What all releases from the dataset together may ever cost.
    each_analyst
        What the releases asked for by one analyst may ever cost; every charge then has to name the analyst.
    each_person
        What the releases that one person took part in may ever cost; every charge then has to say whom it
        touches. This, or ``limit``, or both, is needed.
    population
        Whose people these are. Datasets of the same population share each person's account; the first of them
        states the limit, and the others leave it out. By default the dataset's own.
    filter
        How the limits are kept when every question may depend on the answers so far; see
        :mod:`dither.ledger.units`.
    """

    limit: Guarantee | None = None
    each_analyst: Guarantee | None = None
    each_person: Guarantee | None = None
    population: str | None = None
    filter: Filter = "sum"

    def __post_init__(self) -> None:
        for promise in (self.limit, self.each_analyst, self.each_person):
            if promise is not None:
                check_guarantee(promise, "limit")
        check_filter(self.filter)
        if self.limit is None and self.each_person is None and not self.population:
            raise InvalidArgument("limit", "a limit for the dataset or for each person", "none", "pass limit=PureDP(1)")

    def people_of(self, dataset: str) -> str:
        """The population whose people pay: by default the dataset's own, and none where people have no limit.

        >>> from dither.guarantees import PureDP
        >>> Limits(each_person=PureDP(1)).people_of("visits"), Limits(limit=PureDP(1)).people_of("visits")
        ('visits', '')
        """
        if self.population is not None:
            return self.population
        return "" if self.each_person is None else dataset


def create(store: Store, dataset: str, limits: Limits) -> Receipt:
    """Open the accounts of a new dataset, in the transaction that is under way."""
    if accounts.find(store, dataset, "dataset") is not None:
        raise InvalidArgument("dataset", "a new name", "one that has accounts already", "choose another, or use those")
    whose = limits.people_of(dataset)
    shared = accounts.find(store, whose, "people") if whose else None
    if whose and shared is None and limits.each_person is None:
        raise InvalidArgument("each_person", "a limit for a new population", "none", "pass each_person=PureDP(1)")
    if shared is not None and limits.each_person is not None and limits.each_person != shared.limit:
        raise InvalidArgument(
            "each_person", "the limit that this population has", "another", "leave it out, or change_limit"
        )
    new: list[Account] = []
    if whose and shared is None:
        new.append(accounts.opened((whose, "people", ""), limits.each_person, limits.filter))
    people = shared or (new[0] if new else None)
    unit: Unit = people.unit if limits.limit is None and people is not None else "epsilon"
    new.append(accounts.opened((dataset, "dataset", ""), limits.limit, limits.filter, population=whose, unit=unit))
    if limits.each_analyst is not None:
        new.append(accounts.opened((dataset, "analyst", ""), limits.each_analyst, limits.filter))
    return accounts.open_all(store, dataset, new)


def ensure(store: Store, dataset: str, limits: Limits) -> bool:
    """Open the accounts of a dataset unless they are there, in the transaction that is under way; whether it did.

    Accounts that are there have to have these very limits.
    """
    whole = accounts.find(store, dataset)
    if whole is None:
        create(store, dataset, limits)
        return True
    check(store, dataset, limits)
    return False


def check(store: Store, dataset: str, limits: Limits) -> None:
    """Refuse limits that are not those of the accounts that are there."""
    whole = accounts.known(store, dataset)
    template = accounts.find(store, dataset, "analyst")
    people = accounts.find(store, whole.population, "people") if whole.population else None
    held = {
        "limit": whole.limit,
        "each_analyst": None if template is None else template.limit,
        "each_person": None if people is None else people.limit,
        "population": whole.population,
    }
    population = limits.people_of(dataset)
    stated = {
        "limit": limits.limit,
        "each_analyst": limits.each_analyst,
        "each_person": limits.each_person,
        "population": population,
    }
    if limits.each_person is None and population:
        del stated["each_person"]  # a population that another dataset has opened need not be given its limit again
    filters = {account.filter for account in (whole, template) if account is not None and account.limit is not None}
    wrong = {name: (held[name], value) for name, value in stated.items() if value != held[name]}
    if filters - {limits.filter}:
        wrong["filter"] = ", ".join(sorted(filters)), limits.filter
    if wrong:
        ours, theirs = (", ".join(f"{name} {pair[i] or 'none'}" for name, pair in wrong.items()) for i in (0, 1))
        raise InvalidArgument(
            ", ".join(wrong),
            f"what the ledger holds for dataset {dataset!r} ({ours})",
            theirs,
            f"state that, or {CHANGE_IT}",
        )


def check_uncharged(store: Store, dataset: str) -> None:
    """Refuse a dataset that something was charged to, in the transaction that is under way."""
    if accounts.known(store, dataset).spent is not None:
        raise InvalidArgument("limit", "a dataset that nothing was charged to", "another", CHANGE_IT)


def admit(
    store: Store, dataset: str, analyst: str, limit: Guarantee, filter: Filter, signed_by: str | None = None
) -> Receipt:
    """Open an account for one analyst, in the transaction that is under way."""
    accounts.known(store, dataset)
    if accounts.find(store, dataset, "analyst", analyst) is not None:
        raise InvalidArgument("analyst", "one without an account", "one who has it", "use change_limit to change it")
    signed = (
        None
        if signed_by is None
        else {"signed_by": checked_name(signed_by, "signed_by"), "reason": "an account was granted"}
    )
    return accounts.open_all(store, dataset, [accounts.opened((dataset, "analyst", analyst), limit, filter)], signed)


def change_limit(
    store: Store, dataset: str, analyst: str | None, each_person: bool, limit: Guarantee, signed_by: str, reason: str
) -> Receipt:
    """Change one limit, in the transaction that is under way."""
    account = accounts.known(store, dataset)
    if analyst is not None:
        account = accounts.known(store, dataset, "analyst", analyst)
    elif each_person:
        account = accounts.known(store, account.population, "people")
    new = Limit.of(limit, account.filter)
    if new.unit != account.unit:
        raise InvalidArgument(
            "limit", f"a limit in {account.unit}, which this account adds up", f"one in {new.unit}", "convert it"
        )
    stated = accounts.state(limit, account.filter)
    store.run(
        schema.RESTATE,
        {
            **account.where,
            "stated_": canonical(stated),
            "unit_": new.unit,
            "limit_loss_": new.amount.loss,
            "limit_delta_": new.amount.delta,
        },
    )
    body = {"account": list(account.place), "limit": stated, "signed_by": signed_by, "reason": reason}
    return chain.append(store, "limit", dataset, body)
