"""Users and what they may ask."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from dither.errors import InvalidArgument
from dither.guarantees import Guarantee
from dither.ledger import Ledger
from dither.ledger.accounts import Filter, Limit
from dither.server import schema
from dither.server.auth import Authentication, check_name, check_session, ends_credentials, password_hash
from dither.server.cards import void_signatures
from dither.server.context import Context
from dither.server.errors import Conflict, NotFound, printable
from dither.server.roles import ROLES, Forbidden, Principal, authorize
from dither.server.store import iso
from dither.server.tables import void_changes
from dither.tables import codec


@dataclass(frozen=True)
class User:
    """A user. ``identities`` are those of single sign-on, as ``issuer subject`` or ``issuer email``."""

    name: str
    display: str
    roles: tuple[str, ...]
    active: bool
    created_at: str
    identities: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grant:
    """A user's permission to query a table. ``limit`` is that of their personal account in words, empty without one."""

    user: str
    table: str
    limit: str
    by: str
    at: str


_users, _grants = schema.users, schema.grants


class Users:
    """Users, their roles, and the tables that are granted to them; all of it is for stewards."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._auth = Authentication(context)

    def list(self, who: Principal) -> tuple[User, ...]:
        """Return all users."""
        authorize(who, "users.list")
        return tuple(self._user(row) for row in self._context.store.rows(sa.select(_users).order_by(_users.c.name)))

    def add(
        self,
        who: Principal,
        name: str,
        *,
        roles: Iterable[str],
        display: str = "",
        password: str | None = None,
        identity: str | None = None,
    ) -> tuple[User, str]:
        """Add the user ``name``, and return the user and the path of a one-time link for setting a password.

        ``display`` is the name that pages show (empty: ``name``). The path is empty if a ``password`` or an
        ``identity`` for single sign-on is given (``issuer email`` or ``issuer subject``).
        """
        context = self._context
        with context.acting(who, "users.change", name, logged=True):
            check_name(name)
            if self._row(name) is not None:
                raise Conflict("This name is taken. Choose another name.")
            shown = printable(display or name, "display", 200)
            stored = None if password is None else password_hash(password)
            values = {"name": name, "display": shown, "roles": _roles(roles), "active": True, "password": stored}
            statements: list[sa.Executable] = [_users.insert().values(**values, created_at=time.time())]
            if identity is not None:
                issuer, _, subject = identity.strip().partition(" ")
                if not subject.strip():
                    expected = "the issuer, a space, and an email or a subject"
                    fix = "write https://issuer.example ann@example.org"
                    raise InvalidArgument("identity", expected, "text of a different form", fix)
                kind = "email" if "@" in subject else "subject"
                known = {"issuer": issuer, "subject": subject.strip(), "kind": kind, "user": name}
                statements.append(schema.identities.insert().values(**known))
            context.store.run(*statements)
            link = "" if password is not None or identity is not None else self._link(name)
            return self._known(name), link

    def change(
        self, who: Principal, name: str, *, roles: Iterable[str] | None = None, active: bool | None = None
    ) -> User:
        """Change the ``roles`` of the user ``name``, or whether they may sign in (``active``); None changes nothing.

        It ends their sessions and tokens. Deactivating a user also voids links for their password. When a user loses
        the role of steward, pending changes that they proposed and cards that they signed become void.
        """
        context = self._context
        with context.acting(who, "users.change", name, logged=True):
            self._known(name)
            values: dict[str, Any] = {} if roles is None else {"roles": _roles(roles)}
            values |= {} if active is None else {"active": bool(active)}
            if name == who.name and (active is False or (roles is not None and "steward" not in values["roles"])):
                raise Conflict("You cannot end your own role as a steward. Have another steward do it.")
            if values:
                ends = ends_credentials(name, but=who.credential, links=active is False)
                loses = active is False or (roles is not None and "steward" not in values["roles"].split())
                void = (void_changes(name), void_signatures(name)) if loses else ()
                context.store.run(_users.update().where(_users.c.name == name).values(**values), *ends, *void)
            return self._known(name)

    def invite(self, who: Principal, name: str) -> str:
        """Return the path of a new one-time link for setting a password; earlier links become void."""
        with self._context.acting(who, "users.change", name, logged=True):
            self._known(name)
            self._context.store.run(schema.links.delete().where(schema.links.c.user == name))
            return self._link(name)

    def end_all(self, who: Principal) -> None:
        """End all sessions but the own one, all tokens and all unused links, of all users.

        Use it if the database, a backup of it, or traffic through a proxy may have been disclosed. Passwords stay
        valid; users change their own.
        """
        context = self._context
        with context.acting(who, "users.change", "everybody", logged=True):
            names = [row.name for row in context.store.rows(sa.select(_users.c.name))]
            with context.store.writing() as connection:
                check_session(connection, who)
                for statement in (s for name in names for s in ends_credentials(name, but=who.credential)):
                    connection.execute(statement)
                connection.execute(schema.links.delete())

    def _link(self, name: str) -> str:
        """Return the path of a new one-time link for setting a password."""
        return f"/welcome/{self._auth.new_link('password', name)}"

    # -- grants -----------------------------------------------------------------------------------------------------

    def grants(self, who: Principal, *, table: str | None = None) -> tuple[Grant, ...]:
        """Return who may ask which table."""
        authorize(who, "grants.list")
        statement = sa.select(_grants).order_by(_grants.c.dataset, _grants.c.user)
        statement = statement if table is None else statement.where(_grants.c.dataset == table)
        return tuple(_grant(row) for row in self._context.store.rows(statement))

    def grant(
        self, who: Principal, user: str, table: str, *, limit: Guarantee | None = None, first: bool = False
    ) -> Grant:
        """Grant a user access to a table, with a personal ``limit`` (None: none), and return the grant.

        Once a table has a personal limit, every analyst needs one; ``first`` confirms that if other analysts would lose
        access. A limit above the template for analysts is a raise, which takes two stewards: grant less, and propose
        the rest (:meth:`Budgets.propose`).
        """
        context = self._context
        with context.acting(who, "grants.change", f"{user}: {table}", logged=True):
            self._known(user)
            ledger = context.folder.ledger(table)
            self._check_nobody_is_locked_out(ledger, table, user, limit is not None, first)
            if limit is not None:
                filter = context.folder.get(table).card.filter
                if not (context.config.single_steward and who.scopes is None):
                    _check_within_template(ledger, table, limit, filter)
                ledger.admit(table, user, limit=limit, filter=filter, signed_by=who.name)
                context.folder.keep_receipt(table)
            stated = "" if limit is None else json.dumps(codec.to_json(limit))
            row = {"user": user, "dataset": table, "limit": stated, "by": who.name, "at": time.time()}
            same = _grants.c.user == user, _grants.c.dataset == table
            context.store.run(_grants.delete().where(*same), _grants.insert().values(**row))
            known = context.store.one(sa.select(_grants).where(*same))
            return _grant(known)

    def _check_nobody_is_locked_out(self, ledger: Ledger, table: str, user: str, limited: bool, first: bool) -> None:
        """Refuse a grant to ``user`` that would lock out others, or the user.

        From the first limit of an analyst in a table on, only analysts with a limit may ask it: such a grant
        (``limited``) has to be confirmed with ``first`` if others may ask now. A grant without a limit is refused where
        analysts need one and there is none for all of them.
        """
        accounts = {account.name for account in ledger.accounts(table) if account.kind == "analyst"}
        if limited and not accounts and not first:
            rows = self._context.store.rows(sa.select(_grants.c.user).where(_grants.c.dataset == table))
            others = ", ".join(sorted(row.user for row in rows if row.user != user))
            if others:
                changes = f"from this first limit on {table}, only analysts with one may ask it, and {others} have none"
                fix = "confirm it (first = true), then grant limits to the others; or leave the limit out"
                raise Conflict("limit", f"to be confirmed: {changes}", "no confirmation", fix)
        if not limited and accounts and not accounts & {"", user}:
            expected = f"one for {user}: analysts have limits on {table}, and need one to ask it"
            raise Conflict("limit", expected, "none", "state a limit")

    def revoke(self, who: Principal, user: str, table: str) -> bool:
        """Revoke a user's permission to ask a table, and return True. Recorded answers and charges stay."""
        with self._context.acting(who, "grants.change", f"{user}: {table}", logged=True):
            same = _grants.c.user == user, _grants.c.dataset == table
            if not self._context.store.run(_grants.delete().where(*same)):
                raise NotFound.of("grant")
            return True

    def _row(self, name: str) -> Any:
        """Return the database row of a user; None for an unknown name."""
        return self._context.store.one(sa.select(_users).where(_users.c.name == name))

    def _known(self, name: str) -> User:
        """Return a user; raise NotFound for an unknown name."""
        row = self._row(name)
        if row is None:
            raise NotFound.of("user")
        return self._user(row)

    def _user(self, row: Any) -> User:
        """Build a user from its database row, with the identities of single sign-on."""
        identities = schema.identities
        rows = self._context.store.rows(sa.select(identities).where(identities.c.user == row.name))
        known = tuple(f"{identity.issuer} {identity.subject}" for identity in rows)
        return User(row.name, row.display, tuple(row.roles.split()), row.active, iso(row.created_at), known)


def _check_within_template(ledger: Ledger, table: str, limit: Guarantee, filter: Filter) -> None:
    """Refuse a ``limit`` above that of each analyst, where the table has one; ``filter`` is how its charges are added
    up.
    """
    for account in ledger.accounts(table):
        if account.kind == "analyst" and not account.name and account.room is not None:
            new = Limit.of(limit, filter)
            if new.unit != account.unit or not new.amount.within(account.room):
                fix = "grant that much, then propose more, which a second steward approves"
                raise Forbidden(
                    "limit",
                    f"at most {account.limit}, as each analyst has",
                    "a larger limit, or one in another unit",
                    fix,
                )


def _roles(roles: Iterable[str]) -> str:
    """Return role names as they are stored; refuse none and unknown ones."""
    wanted = [roles] if isinstance(roles, str) else list(roles)
    if not wanted or not set(wanted) <= set(ROLES):
        raise InvalidArgument("roles", f"some of {', '.join(ROLES)}", "none, or an unknown role", "choose among these")
    return " ".join(role for role in ROLES if role in wanted)


def _grant(row: Any) -> Grant:
    """Build a grant from its database row."""
    limit = str(codec.from_json(json.loads(row.limit), Guarantee, "limit")) if row.limit else ""
    return Grant(row.user, row.dataset, limit, row.by, iso(row.at))
