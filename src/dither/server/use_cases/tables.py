"""Tables and what is public about them."""

from __future__ import annotations

from dither.ledger.checks import checked_name
from dither.ledger.incidents import Closure
from dither.server.cards import Served
from dither.server.context import Context
from dither.server.errors import NotFound
from dither.server.limits import Places
from dither.server.principal import Principal
from dither.server.problems import LEDGER, as_error, from_json
from dither.server.results import CardProblem, TableCard, TableSummary
from dither.server.roles import may
from dither.tables.card import toml
from dither.tables.card.accounts import TableAccounts
from dither.tables.card.model import Card
from dither.wire import cards

_MOST_OF_ONE, _MOST_READ = 4, 8
"""How many cards may be read at the same time by one person, and by all: each holds a thread, which others need."""


class Tables:
    """The tables of the served folder."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._reading = Places("cards", most_of_one=_MOST_OF_ONE, most_of_all=_MOST_READ)

    def list(self, who: Principal) -> tuple[TableSummary, ...]:
        """The tables that a principal may know of: an analyst those that are granted, stewards and auditors all."""
        context = self._context
        with context.acting(who, "tables.list"):
            result = []
            for name in context.folder.names():
                granted = context.is_granted(who.name, name)
                if not granted and not _knows_all(who):
                    continue
                card = context.folder.get(name).card
                columns = sum(len(item.columns) for item in card.private_tables.values())
                left, is_open = self._state(card, who)
                result.append(TableSummary(name, tuple(card.private_tables), columns, granted, left, is_open))
            return tuple(result)

    def card(self, who: Principal, table: str) -> TableCard:
        """The public part of a card: columns, types, bounds, keys, limits on one person; what is left."""
        context = self._context
        with context.acting(who, "tables.card", table):
            granted = context.is_granted(who.name, table)
            if not granted and not _knows_all(who):
                raise NotFound.of("table")
            served = context.folder.get(table)
            with self._reading.taken(who.name):  # one with public tables waits for the process of explanations
                public = self._public(served)
            left, is_open = self._state(served.card, who)
            gaps = tuple(toml.gaps(served.card)) if may(who, "tables.gaps") else ()
            exact = context.folder.ledger(table).left(table)
            return TableCard(public, left, granted, is_open, gaps, exact, *self._limits(table, who))

    def problems(self, who: Principal) -> tuple[CardProblem, ...]:
        """The cards and plans that are not in force as they stand in their files, and why."""
        folder = self._context.folder
        with self._context.acting(who, "tables.gaps"):
            return tuple(
                CardProblem(item.file, item.problem)
                if item.pin is None
                else CardProblem(item.file, item.problem, folder.pins.signers(item.pin), folder.pins.needed)
                for item in folder.refusals()
            )

    def sign_off(self, who: Principal, file: str, *, reason: str) -> CardProblem:
        """Sign off a card that names another ledger, or another name for its rows: it counts when as many stewards as
        are needed have done so and the server is started again."""
        context = self._context
        with context.acting(who, "tables.sign", file, logged=True):
            why = checked_name(reason, "reason", 1000)
            pin = next((item.pin for item in context.folder.refusals() if item.file == file), None)
            if pin is None:
                raise NotFound.of("card")
            context.folder.pins.sign(pin, who.name, why)
            return next(item for item in self.problems(who) if item.file == file)

    def _public(self, served: Served) -> Card:
        """The public part of a card, with the values of public tables as their keys."""
        if not served.card.public:
            return cards.from_json(cards.to_json(served.card))
        task = {"do": "card", "card": served.document}
        event = self._context.explaining.call(task, self._context.config.time_limit)
        if event is None:
            raise LEDGER
        if "problem" in event:
            raise as_error(from_json(event["problem"]))
        return cards.from_json(event["card"])

    def _limits(self, table: str, who: Principal) -> tuple[str, str, str]:
        """The limit of the account that whoever asks pays from first, what it has left, and the limit of the table."""
        accounts = self._context.folder.ledger(table).accounts(table)
        by_name = {account.name: account for account in accounts if account.kind == "analyst"}
        whole = next(account for account in accounts if account.kind == "dataset")
        account = by_name.get(who.name, by_name.get("", whole))
        own = ("", "") if account.limit is None else (str(account.limit), account.left_text)
        return *own, "" if whole.limit is None else str(whole.limit)

    def _state(self, card: Card, who: Principal) -> tuple[str, bool]:
        """What is left in words, and whether the table takes questions."""
        ledger = self._context.folder.ledger(card.name)
        left = TableAccounts(card, ledger).left(who.name)
        closure = Closure.of(ledger.incidents_by_analyst(card.name), card.max_incidents)
        if may(who, "questions.ask") and not _knows_all(who):  # others see whether it is open for all
            return left, not closure.everybody and who.name not in closure.analysts
        return left, closure.is_open


def _knows_all(who: Principal) -> bool:
    return bool({"steward", "auditor"} & who.roles)
