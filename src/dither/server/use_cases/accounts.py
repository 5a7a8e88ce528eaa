"""The own account: password, sessions, personal tokens."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from dither.errors import AccessDenied, InvalidArgument
from dither.server import schema
from dither.server.auth import TOKEN_PREFIX, Authentication, check_session, ends_credentials, hashed, password_hash
from dither.server.context import Context
from dither.server.errors import NotFound
from dither.server.principal import Principal
from dither.server.results import NewToken, Token
from dither.server.roles import SCOPES, authorize
from dither.server.times import iso, iso_or_none

_tokens = schema.tokens


class OwnAccount:
    """What everybody does for themselves, signed in, never with a token."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._auth = Authentication(context)

    def change_password(self, who: Principal, old: str, new: str) -> None:
        """Change the own password: all other sessions end, and tokens and links with them."""
        context = self._context
        with context.acting(who, "account.own", "password", logged=True):
            context.sign_ins.take(f"user {who.name}")
            if not self._auth.check_password(who.name, old):
                raise AccessDenied("password", "the present one", "another", "try again")
            users = schema.users
            context.store.run(
                users.update().where(users.c.name == who.name).values(password=password_hash(new)),
                *ends_credentials(who.name, but=who.credential),
            )

    def end_sessions(self, who: Principal) -> None:
        """End all other own sessions."""
        with self._context.acting(who, "account.own", "sessions", logged=True):
            sessions = schema.sessions
            others = sessions.c.user == who.name, sessions.c.hash != who.credential
            self._context.store.run(sessions.delete().where(*others))

    def is_empty(self) -> bool:
        """Whether nobody has an account yet: the sign-in page then says where the first link is."""
        return self._context.store.one(sa.select(schema.users.c.name).limit(1)) is None

    def tokens(self, who: Principal) -> tuple[Token, ...]:
        """Own tokens, without their secrets."""
        authorize(who, "tokens.own")
        statement = sa.select(_tokens).where(_tokens.c.user == who.name).order_by(_tokens.c.created_at.desc())
        return tuple(_token(row) for row in self._context.store.rows(statement))

    def create_token(self, who: Principal, label: str, *, scopes: Iterable[str], days: int = 90) -> NewToken:
        """Make a token with these scopes (:data:`dither.server.roles.SCOPES`), which expires after so many days."""
        context = self._context
        with context.acting(who, "tokens.own", logged=True):
            wanted = [scopes] if isinstance(scopes, str) else list(scopes)
            if not wanted or not set(wanted) <= set(SCOPES):
                raise InvalidArgument("scopes", f"some of {', '.join(SCOPES)}", "others", "choose among these")
            if not isinstance(label, str) or not 0 < len(label) <= 100 or not label.isprintable():
                raise InvalidArgument("label", "1 to 100 printable characters", "others", "choose another")
            most = context.config.token_days
            if not isinstance(days, int) or isinstance(days, bool) or not 1 <= days <= most:
                raise InvalidArgument("days", f"a whole number from 1 to {most}", "another", "choose fewer")
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

    def revoke_token(self, who: Principal, token: str) -> Token:
        """Revoke an own token, now."""
        with self._context.acting(who, "tokens.own", token, logged=True):
            self._get(token, who)
            unrevoked = _tokens.c.id == token, _tokens.c.revoked_at.is_(None)
            self._context.store.run(_tokens.update().where(*unrevoked).values(revoked_at=time.time()))
            return self._get(token, who)

    def _get(self, token: str, who: Principal) -> Token:
        row = self._context.store.one(sa.select(_tokens).where(_tokens.c.id == token, _tokens.c.user == who.name))
        if row is None:
            raise NotFound.of("token")
        return _token(row)


def _token(row: Any) -> Token:
    return Token(
        row.id, row.user, row.label, tuple(row.scopes.split()), row.hint, iso(row.created_at), iso(row.expires_at),
        iso_or_none(row.revoked_at), iso_or_none(row.used_at),
    )  # fmt: skip
