"""Accounts: the budget of a dataset, of an analyst or of each person; its limit, and what is spent and left.

They are opened and their limits changed here, and what callers of a ledger pass (names, limits, requests) is checked.

Budgets as whole numbers: what a release costs an account, and what an account may spend.

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
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from typing import Any, Literal, TypedDict

from dither.accounting import Event, zcdp
from dither.arguments import MAX_DELTA
from dither.errors import BudgetExceeded, InvalidArgument, LedgerError, LimitsDiffer, NotPrivate, WrongType
from dither.exact.search import bisect_integers
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP, restored, stored
from dither.ledger import chain, schema
from dither.ledger.chain import Receipt
from dither.ledger.recorded import canonical
from dither.ledger.store import LedgerStore
from dither.present import markup

LOSS_UNIT = 10**15
DELTA_UNIT = 10**18
MAX_AMOUNT = 1 << 62
_MAX_BITS = 9966  # bits, 3000 digits

Unit = Literal["epsilon", "rho"]
Filter = Literal["sum", "advanced"]


@dataclass(frozen=True)
class Amount:
    """A loss (epsilon or rho) in units of 1e-15, and a delta in units of 1e-18."""

    loss: int
    delta: int

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.loss + other.loss, self.delta + other.delta)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.loss - other.loss, self.delta - other.delta)

    def within(self, limit: Amount) -> bool:
        """Return whether both loss and delta are at most those of ``limit``."""
        return self.loss <= limit.loss and self.delta <= limit.delta

    def numbers(self) -> tuple[Fraction, Fraction]:
        """Return loss and delta as exact numbers instead of units."""
        return Fraction(self.loss, LOSS_UNIT), Fraction(self.delta, DELTA_UNIT)


@dataclass(frozen=True)
class Limit:
    """The total that an account may spend over its lifetime: whether its loss is epsilon or rho, and the amount."""

    unit: Unit
    amount: Amount

    @classmethod
    def of(cls, promise: object, filter: Filter = "sum") -> Limit:
        """Return the limit that keeps an account within the guarantee ``promise`` under a privacy filter, rounded down
        to whole units; :mod:`dither.ledger.accounts` defines the filters."""
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
    """Return ``value`` if it is a guarantee with at most 3000 digits, which can be stored; refuse anything else."""
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
    """Return the limit of the advanced filter for (epsilon, delta): the largest rho, in units, whose conversion to
    approximate DP at delta/2 is at most epsilon, and delta/2 for the deltas of the releases themselves.

    Half of delta pays for the conversion of the total rho at the end (Whitehouse, Ramdas, Rogers and Wu 2023).
    """
    epsilon, delta = _parts(guarantee)
    half = delta / 2
    largest = min(int(epsilon * LOSS_UNIT), MAX_AMOUNT)
    rho = bisect_integers(
        lambda units: ZCDP(Fraction(units, LOSS_UNIT)).epsilon_at(half) <= epsilon, largest, 0, significant_bits=40
    ).holds
    return Amount(rho, int(half * DELTA_UNIT))


def _up(number: Fraction, unit: int) -> int:
    """Return ``ceil(number * unit)``: the number in units, rounded up."""
    return -(-number.numerator * unit // number.denominator)


@dataclass(frozen=True)
class Price:
    """The cost of a release: its guarantee, and the rho of its mechanism if that is known, which may be tighter than
    the rho that follows from the guarantee (None: not known)."""

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
    """Return the exact loss and delta that a release costs an account whose loss is in ``unit``.

    An epsilon-DP release costs ``epsilon tanh(epsilon/2)`` in rho. A zCDP release has no cost in epsilon: it is
    refused.
    """
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
    """Return what a release costs an account whose loss is in ``unit``, rounded up to whole units."""
    epsilon, delta = exact_cost(price, unit)
    return Amount(_up(epsilon, LOSS_UNIT), _up(delta, DELTA_UNIT))


def guarantee_of(amount: Amount, unit: Unit) -> Guarantee | None:
    """Return the guarantee of all releases that cost this amount in total; None for an amount of 0."""
    epsilon, delta = amount.numbers()
    if unit == "rho":
        return ZCDP(epsilon) if epsilon else None
    if delta:  # a total at the largest number that can be stored may stand for more
        return ApproxDP(epsilon, min(delta, MAX_DELTA))
    return PureDP(epsilon) if epsilon else None


def rounded_down(guarantee: Guarantee) -> Guarantee:
    """Return the guarantee with its numbers rounded toward zero to six significant digits.

    A guarantee prints its numbers rounded up, which is right for a cost. A remaining budget must be rounded down first,
    so that the printed number can be spent.

    >>> print(PureDP(Fraction(2, 3)), rounded_down(PureDP(Fraction(2, 3))))
    ε = 0.666667 ε = 0.666666
    """
    context = decimal.Context(prec=6, rounding=decimal.ROUND_DOWN)
    quotients = (
        context.divide(decimal.Decimal(number.numerator), decimal.Decimal(number.denominator))
        for number in guarantee.exact
    )
    return type(guarantee)(*map(Fraction, quotients))


HEADER = ("account", "limit", "spent", "left", "used")
"""The column headings of :attr:`Account.cells`."""
Kind = Literal["dataset", "analyst", "people"]
_FULL = Amount(MAX_AMOUNT, DELTA_UNIT - 1)  # what an account without a limit counts up to


def accounts_html(accounts: Iterable[Account]) -> str:
    """Return a table of accounts for a notebook."""
    return markup.block(markup.table(HEADER, [account.cells for account in accounts], [False] * len(HEADER)))


Left = Literal["nothing", "no limit", "private", "no budget"] | Guarantee
"""The remaining budget of an account, or the reason why there is no such guarantee."""


def left_words(left: Left) -> str:
    """Return a remaining budget as text, rounded toward zero, so that what is printed can be spent."""
    return str(rounded_down(left)) if isinstance(left, Guarantee) else left


@dataclass(frozen=True)
class Remaining:
    """The remaining budget of a table and, where analysts have accounts, of the asking analyst.

    ``each_person`` is the lifetime limit of each person, where people have accounts. ``has_ledger`` is False before the
    first charge, when the budget comes from the card.

    >>> from dither.guarantees import PureDP
    >>> remaining = Remaining(PureDP(9), analyst=PureDP(1))
    >>> print(remaining, remaining.guarantee, sep="; ")
    you ε = 1; the table ε = 9; ε = 1
    """

    table: Left
    analyst: Left | None = None
    each_person: Guarantee | None = None
    has_ledger: bool = True

    @property
    def guarantee(self) -> Guarantee | None:
        """Return the remaining budget of the asking analyst or, where analysts have no accounts, of the table; None if
        it is nothing, unlimited or private."""
        left = self.table if self.analyst is None else self.analyst
        return left if isinstance(left, Guarantee) else None

    @property
    def table_words(self) -> str:
        """Return the remaining budget of the table as text."""
        if self.table == "private":
            return f"private; each person has {self.each_person} for life"
        if self.table == "no budget":
            return "nothing: the card states no budget"
        return left_words(self.table) + ("" if self.has_ledger or self.table == "no limit" else " (no ledger yet)")

    def __str__(self) -> str:
        if self.analyst is None:
            return self.table_words
        return f"you {left_words(self.analyst)}; the table {self.table_words}"


@dataclass(frozen=True)
class Account:
    """The current state of an account. What people have spent is private, so their account shows a limit only.

    ``spent`` and ``left`` are in the unit the account adds up: epsilon and delta, or rho.

    >>> import dither as dp, tempfile
    >>> with tempfile.TemporaryDirectory() as folder, dp.ledger.open(folder + "/budget.sqlite") as ledger:
    ...     _ = ledger.create("visits", limit=dp.PureDP(1))
    ...     [account] = ledger.accounts("visits")
    >>> account.kind
    'dataset'
    """

    owner: str
    kind: Kind
    name: str
    stated: str = field(repr=False)
    unit: Unit
    room: Amount | None
    used: Amount
    population: str = ""
    checksum: int = field(default=0, repr=False)
    sealed: int = field(default=0, repr=False)
    incidents: int = field(default=0, repr=False)

    @property
    def limit(self) -> Guarantee | None:
        """Return the limit as it was stated."""
        return promised(self.terms)

    @property
    def filter(self) -> Filter:
        """Return how the limit is enforced; see :mod:`dither.ledger.accounts`."""
        result: Filter = self.terms["filter"]
        return result

    @property
    def terms(self) -> dict[str, Any]:
        """Return the limit and its filter as the history states them; see :func:`state`."""
        try:
            terms: dict[str, Any] = json.loads(self.stated)
            return {"kind": terms["kind"], "numbers": terms["numbers"], "filter": terms["filter"]}
        except (ValueError, KeyError, TypeError):
            raise _unreadable() from None

    @property
    def spent(self) -> Guarantee | None:
        """Return what was charged so far; None if that is nothing, and for people, whose spending is private."""
        return None if self.kind == "people" else guarantee_of(self.used, self.unit)

    @property
    def left(self) -> Guarantee | None:
        """Return what may still be charged; None if that is nothing, without a limit, and for people, where it is
        private."""
        if self.room is None or self.kind == "people":
            return None
        rest = self.room - self.used
        return None if min(rest.loss, rest.delta) < 0 else guarantee_of(rest, self.unit)

    @property
    def left_or_why(self) -> Left:
        """Return what may still be charged, or why there is no such guarantee, such as "no limit" or "private"."""
        if self.kind == "people":
            return "private"
        if self.room is None:
            return "no limit"
        return "nothing" if self.left is None else self.left

    @property
    def left_text(self) -> str:
        """Return :attr:`left_or_why` as text."""
        return left_words(self.left_or_why)

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the account as a row of a table with the columns :data:`HEADER`."""
        private = self.kind == "people"
        return (
            "every analyst" if self.kind == "analyst" and not self.name else str(self),
            "none" if self.limit is None else str(self.limit),
            "private" if private else str(self.spent or "nothing"),
            self.left_text,
            "" if self.share is None or private else f"{self.share:.1%}",
        )

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: limit, spending and what is left."""
        return accounts_html([self])

    @property
    def share(self) -> float | None:
        """Return the spent fraction of the limit, from 0 to 1, the larger of those of loss and delta; None without a
        limit, and for people."""
        if self.room is None or self.kind == "people":
            return None
        parts = [Fraction(used, room) for used, room in zip(*map(_both, (self.used, self.room)), strict=True) if room]
        return float(min(max(parts, default=Fraction(0)), Fraction(1)))

    @property
    def identity(self) -> tuple[str, str, str]:
        """Return owner, kind and name, which identify the account."""
        return self.owner, self.kind, self.name

    @property
    def parameters(self) -> dict[str, object]:
        """Return owner, kind and name as the parameters of a statement."""
        return {"owner_": self.owner, "kind_": self.kind, "name_": self.name}

    def charged(self, price: Price) -> Amount:
        """Return the amount that a release costs this account, without charging it; refuse a cost above what is left.

        An account without a limit counts up to the largest number that fits the database, and stays there.
        """
        result = cost(price, self.unit)
        if self.room is None:
            rest = _FULL - self.used
            return Amount(min(result.loss, rest.loss), min(result.delta, rest.delta))
        if not (self.used + result).within(self.room):
            raise BudgetExceeded(
                "cost",
                f"at most what {self} has left, {self.left_text}",
                str(price),
                "ask for less, or have the limit raised and signed off",
            )
        return result

    def pressure(self, price: Price) -> Fraction | float:
        """Return the cost of a release as a multiple of what is left, the larger of those of loss and delta; infinity
        if nothing is left, 0 without a limit."""
        if self.room is None:
            return 0.0
        parts = zip(*map(_both, (cost(price, self.unit), self.room - self.used)), strict=True)
        return max((Fraction(taken, left) if left > 0 else inf for taken, left in parts if taken), default=0.0)

    def __str__(self) -> str:
        """Return a phrase for errors that says whose account it is, as ``analyst 'ana' in dataset 'visits'``."""
        return {
            "dataset": f"dataset {self.owner!r}",
            "analyst": f"analyst {self.name!r} in dataset {self.owner!r}",
            "people": f"each person in {self.owner!r}",
        }[self.kind]


def charge_each(paying: Sequence[Account], price: Price) -> list[Amount]:
    """Return the amounts that a release costs several accounts, in their order; refuse it unless all of them can pay.

    Where several cannot pay, the error names the account that allows the least: a cost within that fits all of them.
    """
    try:
        return [account.charged(price) for account in paying]
    except BudgetExceeded:
        max(paying, key=lambda account: account.pressure(price)).charged(price)
        raise


def _both(amount: Amount) -> tuple[int, int]:
    """Return loss and delta of an amount as a pair."""
    return amount.loss, amount.delta


def state(limit: Guarantee | None, filter: Filter) -> dict[str, Any]:
    """Return a limit with its filter as the JSON object that entries of the history hold; the inverse of
    :func:`promised`."""
    if limit is None:
        return {"kind": None, "numbers": [], "filter": filter}
    return {**stored(limit), "filter": filter}


def promised(terms: dict[str, Any]) -> Guarantee | None:
    """Return the guarantee in a JSON object that :func:`state` made; None for no limit."""
    if terms["kind"] is None:
        return None
    try:
        return restored(terms)
    except (ValueError, KeyError, TypeError, ZeroDivisionError):
        raise _unreadable() from None


def _unreadable() -> LedgerError:
    """Return the error for an account whose stored columns cannot be parsed."""
    return LedgerError("ledger", "accounts as they were written", "one that cannot be read", "restore it from a copy")


def opened(
    identity: tuple[str, Kind, str],
    limit: Guarantee | None,
    filter: Filter,
    *,
    population: str = "",
    unit: Unit = "epsilon",
) -> Account:
    """Return a new account that has spent nothing, with the owner, kind and name in ``identity``; it is not stored.

    An account without a limit still adds up what is spent, in ``unit``; otherwise the limit determines the unit.
    """
    result = None if limit is None else Limit.of(limit, filter)
    return Account(
        *identity,
        canonical(state(limit, filter)),
        unit if result is None else result.unit,
        None if result is None else result.amount,
        Amount(0, 0),
        population,
    )


def add(store: LedgerStore, account: Account) -> None:
    """Insert a new account into the ``store``, in the transaction that is under way.

    An account without a limit has no ``room``, which is stored as NULL.
    """
    store.run(
        schema.OPEN,
        {
            "owner": account.owner,
            "kind": account.kind,
            "name": account.name,
            "stated": account.stated,
            "unit": account.unit,
            "limit_loss": None if account.room is None else account.room.loss,
            "limit_delta": None if account.room is None else account.room.delta,
            "spent_loss": account.used.loss,
            "spent_delta": account.used.delta,
            "population": account.population,
            "checksum": account.checksum,
            "sealed": account.sealed,
            "incidents": account.incidents,
        },
    )


def find(store: LedgerStore, owner: str, kind: Kind = "dataset", name: str = "") -> Account | None:
    """Return an account; None where there is none of this owner, kind and name."""
    rows = store.rows(schema.ACCOUNT, {"owner": owner, "kind": kind, "name": name})
    return read(rows[0]) if rows else None


def known(store: LedgerStore, owner: str, kind: Kind = "dataset", name: str = "") -> Account:
    """Return an account; refuse an owner, kind and name that have none."""
    result = find(store, owner, kind, name)
    if result is None:
        raise unknown(kind)
    return result


def open_all(
    store: LedgerStore, dataset: str, new: list[Account], signed: Mapping[str, str] | None = None
) -> chain.Receipt:
    """Insert new accounts, append an entry about them to the history, and return its receipt.

    It is part of the transaction that is under way. ``signed`` is the signature of the person who opened the accounts;
    None if they are opened by a charge or from a card.
    """
    for account in new:
        add(store, account)
    opened_accounts = [
        {
            "account": list(account.identity),
            "limit": account.terms,
            "unit": account.unit,
            "population": account.population,
        }
        for account in new
    ]
    return chain.append(store, "open", dataset, {"accounts": opened_accounts, **(signed or {})})


_UNKNOWN = {
    "dataset": (
        "dataset",
        "create it with ledger.create(name, limit=…)",
        "correct the name; dither budget LEDGER lists the datasets; the first question to a table adds it",
    ),
    "analyst": ("analyst", "admit the analyst first", ""),
    "people": ("population", "create the dataset with each_person=", ""),
}


def unknown(kind: Kind) -> InvalidArgument:
    """Return the error for an account that does not exist."""
    what, fix, command = _UNKNOWN[kind]
    return InvalidArgument(what, f"a {what} with an account in this ledger", "one without", fix, command)


def read(row: Any) -> Account:
    """Return an account from its database row; refuse a row with another type in a column of whole numbers, which
    SQLite would allow."""
    owner, kind, name, text, unit, limit_loss, limit_delta, spent_loss, spent_delta, population, *rest = row
    numbers = (spent_loss, spent_delta, limit_loss or 0, limit_delta or 0, *rest)
    if any(type(number) is not int for number in numbers):
        raise _unreadable()
    room = None if limit_loss is None else Amount(limit_loss, limit_delta)
    used = Amount(spent_loss, spent_delta)
    return Account(owner, kind, name, text, unit, room, used, population, *rest)


MAX_NAME = 200
"""The longest name that a dataset, an analyst or a key may have."""


def checked_name(value: object, name: str, max_length: int = MAX_NAME) -> str:
    """Return ``value`` if it is printable text of at most ``max_length`` characters; ``name`` is its name in errors.

    >>> checked_name("visits", "dataset")
    'visits'
    """
    if not isinstance(value, str):
        raise WrongType(name, "text", type(value).__name__, f"pass {name}='…'")
    if not 0 < len(value) <= max_length or "\0" in value or not value.isprintable():
        raise InvalidArgument(
            name, f"1 to {max_length} printable characters", f"{len(value)} of them", f"choose another {name}"
        )
    return value


def checked_signature(signed_by: object, reason: object) -> dict[str, str]:
    """Return the name and the reason of a signed change as a history entry holds them; refuse unprintable or long
    texts."""
    return {"signed_by": checked_name(signed_by, "signed_by"), "reason": checked_name(reason, "reason", 2000)}


def canonical_request(request: Any) -> str:
    """Return a request as canonical JSON; refuse what JSON cannot hold.

    >>> canonical_request(None)
    'null'
    """
    if request is None:
        return "null"
    try:
        result = canonical(request)
        result.encode()
        return result
    except (TypeError, ValueError, RecursionError):
        raise WrongType(
            "request", "what JSON can hold", type(request).__name__, "pass text, numbers, lists or dicts of them"
        ) from None


_CHANGE_IT = "change the ledger's with change_limit, signed and with a reason"
"""The fix, in errors, for a limit that differs from the ledger's."""
BY_CARD = "the card"
"""The signer of a limit that is changed by editing the card before anything is charged."""
RESTATED = {"signed_by": BY_CARD, "reason": "changed in the card before anything was charged"}
"""The signature in the history of a limit that was changed in the card."""


class LimitOptions(TypedDict, total=False):
    """The keyword arguments of :meth:`dither.ledger.Ledger.create` and :meth:`dither.ledger.Ledger.ensure`."""

    limit: Guarantee | None
    each_analyst: Guarantee | None
    each_person: Guarantee | None
    population: str | None
    filter: Filter


@dataclass(frozen=True, kw_only=True)
class AccountLimits:
    """The lifetime limits of a dataset's accounts.

    Parameters
    ----------
    limit
        The limit on all releases from the dataset together.
    each_analyst
        The limit on the releases for one analyst; every charge then has to name the analyst.
    each_person
        The limit on the releases that one person's rows are used in; every charge then has to state the people.
        Either this or ``limit`` is required.
    population
        The name of the group of people. Datasets with the same population share each person's account; the first of
        them states ``each_person``, and the others leave it out. By default each dataset has its own population.
    filter
        The privacy filter that keeps the limits under adaptively chosen questions; see
        :mod:`dither.ledger.accounts`.
    """

    limit: Guarantee | None = None
    each_analyst: Guarantee | None = None
    each_person: Guarantee | None = None
    population: str | None = None
    filter: Filter = "sum"

    def __post_init__(self) -> None:
        """Refuse values that are not limits, and a dataset without any limit."""
        if self.population is not None:
            checked_name(self.population, "population")
        for promise in (self.limit, self.each_analyst, self.each_person):
            if promise is not None:
                check_guarantee(promise, "limit")
        check_filter(self.filter)
        if self.limit is None and self.each_person is None and not self.population:
            command = "state a budget in the card: [budget], and below it epsilon = 1"
            expected = "a limit for the dataset or for each person"
            raise InvalidArgument("limit", expected, "none", "pass limit=PureDP(1)", command)

    def people_of(self, dataset: str) -> str:
        """Return the name of the population whose people pay: by default the dataset's; empty without a limit for each
        person.

        >>> from dither.guarantees import PureDP
        >>> AccountLimits(each_person=PureDP(1)).people_of("visits"), AccountLimits(limit=PureDP(1)).people_of("visits")
        ('visits', '')
        """
        if self.population is not None:
            return self.population
        return "" if self.each_person is None else dataset


def create(store: LedgerStore, dataset: str, limits: AccountLimits) -> Receipt:
    """Open the accounts of a new dataset with their ``limits``, in the transaction that is under way.

    These are the dataset's own account, the template for analysts' accounts where ``limits.each_analyst`` is given, and
    the account of each person, unless another dataset of the same population has opened it before. Return the receipt
    of the entry in the history.
    """
    if find(store, dataset, "dataset") is not None:
        raise InvalidArgument("dataset", "a new name", "one that has accounts already", "choose another, or use those")
    whose = limits.people_of(dataset)
    shared = find(store, whose, "people") if whose else None
    if whose and shared is None and limits.each_person is None:
        raise InvalidArgument("each_person", "a limit for a new population", "none", "pass each_person=PureDP(1)")
    if shared is not None and limits.each_person is not None and limits.each_person != shared.limit:
        raise InvalidArgument(
            "each_person", "the limit that this population has", "a different limit", "leave it out, or change_limit"
        )
    new: list[Account] = []
    if whose and shared is None:
        new.append(opened((whose, "people", ""), limits.each_person, limits.filter))
    people = shared or (new[0] if new else None)
    unit: Unit = people.unit if limits.limit is None and people is not None else "epsilon"
    new.append(opened((dataset, "dataset", ""), limits.limit, limits.filter, population=whose, unit=unit))
    if limits.each_analyst is not None:
        new.append(opened((dataset, "analyst", ""), limits.each_analyst, limits.filter))
    return open_all(store, dataset, new)


def ensure(store: LedgerStore, dataset: str, limits: AccountLimits) -> bool:
    """Open the accounts of a dataset if it has none, in the transaction that is under way; return whether it did.

    Existing accounts with different limits are refused.
    """
    whole = find(store, dataset)
    if whole is None:
        create(store, dataset, limits)
        return True
    check_limits(store, dataset, limits)
    return False


def check_limits(store: LedgerStore, dataset: str, limits: AccountLimits) -> None:
    """Refuse ``limits`` that differ from those of the existing accounts of a dataset in the ``store``."""
    whole = known(store, dataset)
    template = find(store, dataset, "analyst")
    people = find(store, whole.population, "people") if whole.population else None
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
        raise LimitsDiffer(
            ", ".join(wrong),
            f"what the ledger holds for dataset {dataset!r} ({ours})",
            theirs,
            f"state that, or {_CHANGE_IT}",
        )


def check_uncharged(store: LedgerStore, dataset: str) -> None:
    """Refuse a dataset with charges, whose limits can only be changed by a signature."""
    if known(store, dataset).spent is not None:
        raise LimitsDiffer("limit", "a dataset that nothing was charged to", "one with charges", _CHANGE_IT)


def admit(
    store: LedgerStore, dataset: str, analyst: str, limit: Guarantee, filter: Filter, signed_by: str | None = None
) -> Receipt:
    """Open an account for one analyst in a dataset, in the transaction that is under way.

    ``limit`` is what the analyst may spend, ``filter`` the rule by which its charges are added up, and ``signed_by``
    who granted the account (None: it was not signed). Return the receipt of the entry in the history.
    """
    known(store, dataset)
    if find(store, dataset, "analyst", analyst) is not None:
        raise InvalidArgument("analyst", "one without an account", "one who has it", "use change_limit to change it")
    signed = (
        None
        if signed_by is None
        else {"signed_by": checked_name(signed_by, "signed_by"), "reason": "an account was granted"}
    )
    return open_all(store, dataset, [opened((dataset, "analyst", analyst), limit, filter)], signed)


def change_limit(
    store: LedgerStore,
    dataset: str,
    analyst: str | None,
    each_person: bool,
    limit: Guarantee,
    signed: Mapping[str, str],
) -> Receipt:
    """Change one limit of a dataset in the ``store``, in the transaction that is under way.

    It is the limit of ``analyst`` if one is named, otherwise each person's with ``each_person``, otherwise the
    dataset's. ``signed`` has the entries ``signed_by`` and ``reason`` for the history. Return the receipt of the entry
    in the history.
    """
    account = known(store, dataset)
    if analyst is not None:
        account = known(store, dataset, "analyst", analyst)
    elif each_person:
        account = known(store, account.population, "people")
    new = Limit.of(limit, account.filter)
    if new.unit != account.unit:
        raise InvalidArgument(
            "limit", f"a limit in {account.unit}, which this account adds up", f"one in {new.unit}", "convert it"
        )
    stated = state(limit, account.filter)
    store.run(
        schema.RESTATE,
        {
            **account.parameters,
            "stated_": canonical(stated),
            "unit_": new.unit,
            "limit_loss_": new.amount.loss,
            "limit_delta_": new.amount.delta,
        },
    )
    return chain.append(store, "limit", dataset, {"account": list(account.identity), "limit": stated, **signed})
