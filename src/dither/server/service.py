"""All use cases in one place: what pages and the JSON interface call, and where authorization is decided.

Every method takes the :class:`~dither.server.roles.Principal` first, checks it against
:data:`dither.server.roles.ACTIONS`, and writes what was done, or refused, to the event log. Methods may block: call
them from a thread (``run_in_threadpool``). Only :meth:`Questions.wait` is a coroutine.
"""

from __future__ import annotations

from dataclasses import dataclass

from dither.server.auth import Authentication, OwnAccount
from dither.server.config import Config
from dither.server.context import Context
from dither.server.pool import Clock
from dither.server.questions import Answers, Plans, Profiles, Questions
from dither.server.tables import Budgets, Chain, Tables
from dither.server.users import Users


@dataclass(frozen=True)
class Service:
    """All use cases of a running server, by subject."""

    config: Config
    context: Context
    auth: Authentication
    tables: Tables
    questions: Questions
    answers: Answers
    budgets: Budgets
    plans: Plans
    profiles: Profiles
    users: Users
    accounts: OwnAccount
    chain: Chain

    @classmethod
    def start(cls, config: Config, clock: Clock | None = None) -> Service:
        """Open the store, the cards and the ledgers, and start the worker processes."""
        context = Context.start(config, Clock() if clock is None else clock)
        return cls(
            config, context, Authentication(context), Tables(context), Questions(context), Answers(context),
            Budgets(context), Plans(context), Profiles(context), Users(context), OwnAccount(context), Chain(context),
        )  # fmt: skip

    def stop(self) -> None:
        """Let running questions end, give up waiting ones, and close everything."""
        self.context.stop()
