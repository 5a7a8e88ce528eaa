"""Signing in, and the own account: passwords, sessions, personal tokens, and links that work once.

Sessions, tokens and links are 256 random bits; only their SHA-256 is stored, so that reading the database does not
disclose them. Passwords are hashed by argon2id. An unknown user takes as long as a wrong password, and both get one
error.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from sqlalchemy.exc import SQLAlchemyError

from dither.errors import AccessDenied, InvalidArgument
from dither.server import schema
from dither.server.context import Context
from dither.server.errors import Conflict, NotFound, NotSignedIn, printable
from dither.server.roles import ROLES, SCOPES, Principal, authorize
from dither.server.store import iso, iso_or_none


@dataclass(frozen=True)
class PersonalToken:
    """A personal token without its secret; ``hint`` is how it begins."""

    id: str
    user: str
    label: str
    scopes: tuple[str, ...]
    hint: str
    created_at: str
    expires_at: str
    revoked_at: str | None
    used_at: str | None


@dataclass(frozen=True)
class NewToken:
    """A token that was just made: ``secret`` is shown this once."""

    token: PersonalToken
    secret: str


NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,62}")
"""Valid user names. A name is also the analyst's name in the ledger, so it can never be changed."""

MIN_PASSWORD, MAX_PASSWORD = 10, 200

TOKEN_PREFIX = "dither_"

_LINK_HOURS = 72

_TOUCH_SECONDS = 60.0  # the stored time of last use is renewed at most this often, to save writes

hasher = PasswordHasher()
"""argon2id, with the parameters of RFC 9106 for little memory: 64 MiB, 3 passes, 4 lanes."""


def _of_user(table: sa.Table) -> sa.Select[Any]:
    """Return the SELECT of a session or token by its hash, joined with the roles of its user."""
    users = schema.users
    joined = sa.select(table, users.c.roles, users.c.active).join(users, users.c.name == table.c.user)
    return joined.where(table.c.hash == sa.bindparam("secret"))


_TOKEN, _SESSION = _of_user(schema.tokens), _of_user(schema.sessions)


def hashed(secret: str) -> str:
    """Return the SHA-256 of a random secret, which is all that is stored of it."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def password_hash(password: str) -> str:
    """Return the argon2id hash of a password; refuse one that is too short or too long."""
    if not isinstance(password, str) or not MIN_PASSWORD <= len(password) <= MAX_PASSWORD:
        expected = f"{MIN_PASSWORD} to {MAX_PASSWORD} characters"
        raise InvalidArgument("password", expected, "fewer or more", "choose a password of that length")
    return hasher.hash(password)


def check_name(name: str) -> str:
    """Return a user name if it is valid; refuse it otherwise."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        expected = "1 to 63 of a-z, 0-9 and . _ @ -, beginning with a letter or digit"
        raise InvalidArgument("name", expected, "other characters", "choose a name such as ann")
    return name


class Authentication:
    """Establishes who a request comes from: passwords, one-time links, sessions and tokens."""

    def __init__(self, context: Context) -> None:
        """Prepare a hash for unknown users, so that checking them takes as long as checking a password."""
        self._context = context
        self._store = context.store
        self._nobody = hasher.hash(secrets.token_hex(16))

    # -- passwords and links ----------------------------------------------------------------------------------------

    def sign_in(self, name: str, password: str, address: str = "") -> str:
        """Check a password, start a session and return its secret, which goes into a cookie. ``address`` is that of
        the client, for the rate limit."""
        self._context.sign_ins.take(f"address {address}")
        self._context.sign_ins_of_user.take(str(name)[:64])
        known = isinstance(name, str) and NAME.fullmatch(name) is not None
        row = self._user(name) if known else None
        stored = row.password if row is not None and row.password and row.active else None
        if not verify(stored or self._nobody, password) or stored is None:
            self._context.events.write(name if known else "?", "sign-in", refused="wrong name or password")
            raise AccessDenied("Wrong name or password. Try again, or ask a steward for a new link.")
        session = self.start_session(name, "password", stored)
        if hasher.check_needs_rehash(stored):
            same = schema.users.c.name == name, schema.users.c.password == stored
            self._store.run(schema.users.update().where(*same).values(password=password_hash(password)))
        return session

    def start_session(self, name: str, how: str, password: str | None = None) -> str:
        """Start a session of the user ``name`` whose identity is established, and return its secret; only a hash is
        stored.

        ``how`` is the way of signing in, for the event log. ``password`` is the hash that the user was checked against
        (None: another way); if it has changed since, no session is started.
        """
        secret, now = secrets.token_urlsafe(32), time.time()
        expires = now + 3600 * self._context.config.session_hours
        values = {"hash": hashed(secret), "user": name, "created_at": now, "used_at": now, "expires_at": expires}
        with self._store.writing() as connection:
            row = _locked(connection, name)
            if row is None or not row.active or (password is not None and row.password != password):
                raise NotSignedIn.refusal()
            connection.execute(schema.sessions.delete().where(schema.sessions.c.expires_at < now))
            connection.execute(schema.sessions.insert().values(**values))
            for statement in self._context.events.line(name, "sign-in", how):
                connection.execute(statement)
        return secret

    def first_link(self) -> str | None:
        """Return the path of the one-time link by which the first steward sets name and password; None once there is
        a steward."""
        roles = [row.roles for row in self._store.rows(sa.select(schema.users.c.roles))]
        if any("steward" in text.split() for text in roles):
            return None
        self._store.run(schema.links.delete().where(schema.links.c.kind == "first"))
        return f"/welcome/{self.new_link('first', None)}"

    def new_link(self, kind: str, user: str | None, data: Any = None, hours: float = _LINK_HOURS) -> str:
        """Store a one-time link that expires after ``hours``, and return its secret; only a hash is stored.

        ``kind`` says what it is for, ``user`` whose it is (None: not known yet), and ``data`` is kept with it.
        """
        secret = secrets.token_urlsafe(32)
        expires = time.time() + 3600 * hours
        values = {"hash": hashed(secret), "kind": kind, "user": user, "data": json.dumps(data), "expires_at": expires}
        old = schema.links.delete().where(schema.links.c.expires_at < time.time())
        self._store.run(old, schema.links.insert().values(**values))
        return secret

    def peek_link(self, secret: str) -> tuple[str, str | None]:
        """Return the kind of a one-time link for setting a password (``first`` or ``password``) and its user, without
        using it up; refuse other links.

        The user is None where the link was made without one.
        """
        row = self._store.one(sa.select(schema.links).where(schema.links.c.hash == hashed(secret)))
        if row is None or row.kind not in ("first", "password") or row.expires_at < time.time():
            raise _used_up()
        return row.kind, row.user

    def take_link(self, secret: str, kind: str) -> tuple[str | None, Any]:
        """Use up a one-time link and return its user (None if it was made without one) and the data stored with it.

        Refuse one that is used, expired or of another ``kind``. Of two simultaneous requests only one gets it, since
        the deletion of its row decides.
        """
        links = schema.links
        with self._store.writing() as connection:
            row = connection.execute(sa.select(links).where(links.c.hash == hashed(secret))).fetchone()
            right = row is not None and row.kind == kind and row.expires_at >= time.time()
            taken = right and connection.execute(links.delete().where(links.c.hash == hashed(secret))).rowcount == 1
        if row is None or not taken:
            raise _used_up()
        return row.user, json.loads(row.data)

    def use_link(self, secret: str, password: str, name: str | None = None) -> str:
        """Set a password by a one-time link, sign in, and return the secret of the session. The first link makes
        ``name`` a steward."""
        kind, user = self.peek_link(secret)
        stored = password_hash(password)
        if kind == "first":
            user = check_name(name or "")
            if self._user(user) is not None:
                raise Conflict("This name is taken. Choose another name.")
        self.take_link(secret, kind)
        assert user is not None
        users = schema.users
        if kind == "first":
            values = {"name": user, "display": user, "roles": "steward", "active": True, "created_at": time.time()}
            self._store.run(
                users.insert().values(**values, password=stored), *self._context.events.line(user, "first steward")
            )
        else:
            self._store.run(
                users.update().where(users.c.name == user).values(password=stored),
                *ends_credentials(user),
                *self._context.events.line(user, "password set by a link"),
            )
        row = self._user(user)
        if row is None or not row.active:
            raise _used_up()
        return self.start_session(user, "link")

    def check_password(self, name: str, password: str) -> bool:
        """Return whether this is the password of a user."""
        row = self._user(name)
        return row is not None and bool(row.password) and verify(row.password, password)

    def _user(self, name: str) -> Any:
        """Return the row of a user; None for an unknown name."""
        return self._store.one(sa.select(schema.users).where(schema.users.c.name == name))

    # -- who a request is from --------------------------------------------------------------------------------------

    def principal_of_session(self, secret: str) -> Principal:
        """Return the principal of a session; refuse a session that is unknown or expired, or whose user is
        deactivated."""
        sessions = schema.sessions
        row = self._store.one(_SESSION, {"secret": hashed(secret)})
        now = time.time()
        idle = 3600 * self._context.config.idle_hours
        if row is None or not row.active or row.expires_at < now or row.used_at < now - idle:
            raise NotSignedIn.refusal()
        if row.used_at < now - _TOUCH_SECONDS:
            self._touch(sessions.update().where(sessions.c.hash == row.hash).values(used_at=now))
        return Principal(row.user, frozenset(row.roles.split()), None, row.hash)

    def principal_of_token(self, secret: str) -> Principal:
        """Return the principal of a token; refuse a token that is unknown, expired or revoked, or whose user is
        deactivated."""
        tokens = schema.tokens
        row, now = self._store.one(_TOKEN, {"secret": hashed(secret)}), time.time()
        if row is None:
            raise NotSignedIn.refusal()
        if not _is_valid(row, now):
            self._context.requests.take(f"token {row.id}")  # or it would fill the log
            self._context.events.write(row.user, "token", row.hint, refused="expired or revoked")
            raise NotSignedIn.refusal()
        if _is_stale(row, now):
            self._touch(tokens.update().where(tokens.c.id == row.id).values(used_at=now))
        return _principal_of_token(row)

    def _touch(self, statement: sa.Executable) -> None:
        """Store when a session or token was last used, if the database can be written; reading does not depend on
        it."""
        with suppress(SQLAlchemyError):
            self._store.run(statement)

    def known_token(self, secret: str) -> Principal | None:
        """Return the principal of a valid token that needs no note of its use; None for any other, which
        :meth:`principal_of_token` handles."""
        row, now = self._store.one(_TOKEN, {"secret": hashed(secret)}), time.time()
        known = row is not None and _is_valid(row, now) and not _is_stale(row, now)
        return _principal_of_token(row) if known else None

    def sign_out(self, who: Principal) -> None:
        """End the session of a principal."""
        delete = schema.sessions.delete().where(schema.sessions.c.hash == who.credential)
        self._store.run(delete, *self._context.events.line(who.name, "sign-out"))


def _locked(connection: sa.Connection, user: str) -> Any:
    """Return the row of a user (None if unknown), locked against changes until the transaction ends."""
    return connection.execute(sa.select(schema.users).where(schema.users.c.name == user).with_for_update()).fetchone()


def check_session(connection: sa.Connection, who: Principal) -> None:
    """Refuse, within the transaction of ``connection``, a session of ``who`` that has ended since the request began.

    A token made now would outlive the change of password that ended the session.
    """
    row = _locked(connection, who.name)
    same = schema.sessions.c.hash == who.credential
    ended = who.credential and connection.execute(sa.select(schema.sessions.c.hash).where(same)).fetchone() is None
    if row is None or not row.active or ended:
        raise NotSignedIn.refusal()


def ends_credentials(user: str, *, but: str = "", links: bool = True) -> tuple[sa.Executable, ...]:
    """Return the statements that end a user's sessions, tokens and, if ``links``, one-time links; the session with
    the hash ``but`` stays.

    They are run with every change of a password, of roles or of the right to sign in: a password is often changed
    because somebody else knows it, and that person must lose open sessions and tokens, too.
    """
    sessions, tokens, unused = schema.sessions, schema.tokens, schema.links
    return (
        sessions.delete().where(sessions.c.user == user, sessions.c.hash != but),
        tokens.update().where(tokens.c.user == user, tokens.c.revoked_at.is_(None)).values(revoked_at=time.time()),
        *([unused.delete().where(unused.c.user == user)] if links else []),
    )


def _is_valid(token: Any, now: float) -> bool:
    """Return whether a token is neither expired nor revoked, and its user is active."""
    return bool(token.active and token.expires_at >= now and token.revoked_at is None)


def _is_stale(token: Any, now: float) -> bool:
    """Return whether the stored time of a token's last use is so old that a new one has to be stored."""
    return token.used_at is None or token.used_at < now - _TOUCH_SECONDS


def _principal_of_token(row: Any) -> Principal:
    """Return the principal of a token's row: its user, with the user's roles and the token's scopes."""
    roles = frozenset(row.roles.split()) & frozenset(ROLES)
    return Principal(row.user, roles, frozenset(row.scopes.split()), row.id)


def verify(stored: str, password: str) -> bool:
    """Return whether a password matches an argon2id hash."""
    try:
        return isinstance(password, str) and len(password) <= MAX_PASSWORD and hasher.verify(stored, password)
    except (Argon2Error, InvalidHashError):
        return False


def _used_up() -> AccessDenied:
    """Return the error for a one-time link that was used or has expired."""
    fix = "Ask a steward for a new one; for the first steward, start the server again."
    return AccessDenied(f"This link was used, or has expired. {fix}")


_tokens = schema.tokens


class OwnAccount:
    """What users may do with their own accounts; all of it needs a session, since a stolen token must not suffice."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._auth = Authentication(context)

    def change_password(self, who: Principal, old: str, new: str) -> None:
        """Change the password of the user ``who`` from ``old`` to ``new``; it ends all other sessions, all tokens and
        all links.
        """
        context = self._context
        with context.acting(who, "account.own", "password", logged=True):
            context.sign_ins.take(f"user {who.name}")
            if not self._auth.check_password(who.name, old):
                raise AccessDenied("Current password is incorrect.")
            users = schema.users
            context.store.run(
                users.update().where(users.c.name == who.name).values(password=password_hash(new)),
                *ends_credentials(who.name, but=who.credential),
            )

    def end_sessions(self, who: Principal) -> None:
        """End all sessions of the user ``who`` except the current one."""
        with self._context.acting(who, "account.own", "sessions", logged=True):
            sessions = schema.sessions
            others = sessions.c.user == who.name, sessions.c.hash != who.credential
            self._context.store.run(sessions.delete().where(*others))

    def is_empty(self) -> bool:
        """Return whether there are no users yet; the sign-in page then explains how to become the first steward."""
        return self._context.store.one(sa.select(schema.users.c.name).limit(1)) is None

    def tokens(self, who: Principal) -> tuple[PersonalToken, ...]:
        """Return the tokens of the user ``who``, the newest first and without their secrets."""
        authorize(who, "tokens.own")
        statement = sa.select(_tokens).where(_tokens.c.user == who.name).order_by(_tokens.c.created_at.desc())
        return tuple(_token(row) for row in self._context.store.rows(statement))

    def create_token(self, who: Principal, label: str, *, scopes: Iterable[str], days: int = 90) -> NewToken:
        """Make a token of the user ``who`` with some of :data:`dither.server.roles.SCOPES` that expires after ``days``.

        The result holds the token's secret, which is shown once: only its hash is stored.
        """
        context = self._context
        with context.acting(who, "tokens.own", logged=True):
            wanted = [scopes] if isinstance(scopes, str) else list(scopes)
            if not wanted or not set(wanted) <= set(SCOPES):
                raise InvalidArgument(
                    "scopes", f"some of {', '.join(SCOPES)}", "none, or an unknown scope", "choose among these"
                )
            label = printable(label, "label", 100)
            most = context.config.token_days
            if not isinstance(days, int) or isinstance(days, bool) or not 1 <= days <= most:
                raise InvalidArgument(
                    "days", f"a whole number from 1 to {most}", "a value out of range", "choose fewer days"
                )
            secret, now = TOKEN_PREFIX + secrets.token_urlsafe(32), time.time()
            row = {
                "id": secrets.token_hex(16), "hash": hashed(secret), "user": who.name, "label": label,
                "scopes": " ".join(scope for scope in SCOPES if scope in wanted), "hint": secret[:11],
                "created_at": now, "expires_at": now + 86400 * days,
            }  # fmt: skip
            with context.store.writing() as connection:
                check_session(connection, who)
                connection.execute(_tokens.insert().values(**row))
            return NewToken(self._get(str(row["id"]), who), secret)

    def revoke_token(self, who: Principal, token: str) -> PersonalToken:
        """Revoke a token of the user ``who`` and return it; it stops working at once."""
        with self._context.acting(who, "tokens.own", token, logged=True):
            self._get(token, who)
            unrevoked = _tokens.c.id == token, _tokens.c.revoked_at.is_(None)
            self._context.store.run(_tokens.update().where(*unrevoked).values(revoked_at=time.time()))
            return self._get(token, who)

    def _get(self, token: str, who: Principal) -> PersonalToken:
        """Return a token of the user ``who``; raise NotFound for tokens of other users."""
        row = self._context.store.one(sa.select(_tokens).where(_tokens.c.id == token, _tokens.c.user == who.name))
        if row is None:
            raise NotFound.of("token")
        return _token(row)


def _token(row: Any) -> PersonalToken:
    """Build a token, without its secret, from its database row."""
    return PersonalToken(
        row.id, row.user, row.label, tuple(row.scopes.split()), row.hint, iso(row.created_at), iso(row.expires_at),
        iso_or_none(row.revoked_at), iso_or_none(row.used_at),
    )  # fmt: skip
