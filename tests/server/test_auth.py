"""Signing in: passwords, sessions, tokens and links, and how each ends."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import replace

import pytest
import sqlalchemy as sa
from serving import PASSWORD, fill

from dither.errors import AccessDenied, InvalidArgument
from dither.server import schema
from dither.server.auth import Authentication, hashed
from dither.server.errors import Conflict, NotFound, NotSignedIn, TooMany
from dither.server.limits import RateLimit
from dither.server.roles import Forbidden, Principal


@pytest.fixture
def person(site):
    """Somebody new: a name and a session."""
    name = f"p{time.time_ns()}"
    site.service.users.add(site.people["sam"], name, roles=["analyst", "reader"], password=PASSWORD)
    return name


def test_sign_in_and_out(site, person):
    auth = site.service.auth
    secret = auth.sign_in(person, PASSWORD, "address")
    who = auth.principal_of_session(secret)
    assert (who.name, who.roles, who.scopes) == (person, {"analyst", "reader"}, None)
    auth.sign_out(who)
    with pytest.raises(NotSignedIn):
        auth.principal_of_session(secret)


@pytest.mark.parametrize("password", ["", "wrong", PASSWORD + "x", "x" * 100_000, "\0"])
def test_wrong_passwords_and_unknown_names_are_told_alike(site, person, password):
    texts = set()
    for name in (person, "nobody", "Not A Name", ""):
        with pytest.raises(AccessDenied) as error:
            site.service.auth.sign_in(name, password, "somewhere")
        texts.add(str(error.value))
    assert len(texts) == 1


def test_passwords_are_hashed_at_a_price(real_hasher):
    from argon2 import Type

    assert real_hasher.type is Type.ID
    assert (real_hasher.memory_cost, real_hasher.time_cost) == (65536, 3)


def test_guessing_is_slow(site, person):
    """From one address, and from many together."""
    few, more = (RateLimit(most, clock=lambda: 0.0) for most in (3, 9))
    auth = Authentication(replace(site.service.context, sign_ins=few, sign_ins_of_user=more))
    for address in ("here", "there", "elsewhere"):
        for _ in range(3):
            with pytest.raises(AccessDenied):
                auth.sign_in(person, "wrong password", address)
        with pytest.raises(TooMany):
            auth.sign_in(person, PASSWORD, address)
    with pytest.raises(TooMany):
        auth.sign_in(person, PASSWORD, "a fourth address")


def test_sessions_expire(site, person):
    auth, sessions = site.service.auth, schema.sessions
    for column in ("expires_at", "used_at"):
        secret = auth.sign_in(person, PASSWORD)
        auth.principal_of_session(secret)
        site.service.context.store.run(
            sessions.update().where(sessions.c.hash == hashed(secret)).values(**{column: time.time() - 86400})
        )
        with pytest.raises(NotSignedIn):
            auth.principal_of_session(secret)


def test_tokens_expire_and_are_revoked(site, person):
    service, who = site.service, Principal(person, frozenset({"analyst"}))
    made = service.accounts.create_token(who, "laptop", scopes=["ask"], days=2)
    assert service.auth.principal_of_token(made.secret).scopes == {"ask"}
    service.context.store.run(schema.tokens.update().where(schema.tokens.c.id == made.token.id).values(expires_at=1.0))
    with pytest.raises(NotSignedIn):
        service.auth.principal_of_token(made.secret)
    other = service.accounts.create_token(who, "laptop", scopes=["ask"])
    assert service.auth.principal_of_token(other.secret).name == person  # one that was used a moment ago
    service.accounts.revoke_token(who, other.token.id)
    with pytest.raises(NotSignedIn):
        service.auth.principal_of_token(other.secret)
    events = service.chain.events(site.people["aud"], user=person)
    assert [event.detail for event in events if event.action == "token"] == ["expired or revoked"] * 2
    with pytest.raises(NotFound):
        service.accounts.revoke_token(site.people["bob"], other.token.id)
    for wrong in (
        {"scopes": ["root"]},
        {"scopes": []},
        {"scopes": ["ask"], "days": 100_000},
        {"scopes": ["ask"], "days": 0},
    ):
        with pytest.raises(InvalidArgument):
            service.accounts.create_token(who, "laptop", **wrong)


def test_who_may_not_sign_in_any_more_is_out_at_once(site, person):
    service = site.service
    session = service.auth.sign_in(person, PASSWORD)
    token = service.accounts.create_token(Principal(person, frozenset({"analyst"})), "x", scopes=["ask"]).secret
    link = service.users.invite(site.people["sam"], person).rpartition("/")[2]
    service.users.change(site.people["sam"], person, active=False)
    service.users.change(site.people["sam"], person, active=True)
    assert out(service, session, token, link)
    service.users.change(site.people["sam"], person, active=False)
    with pytest.raises(AccessDenied):
        service.auth.sign_in(person, PASSWORD)


def test_credentials_of_a_user_who_is_not_active_open_nothing_even_where_they_were_left(site, person):
    service, users = site.service, schema.users
    session = service.auth.sign_in(person, PASSWORD)
    token = service.accounts.create_token(Principal(person, frozenset({"analyst"})), "x", scopes=["ask"]).secret
    assert service.auth.principal_of_session(session).name == service.auth.principal_of_token(token).name == person
    service.context.store.run(users.update().where(users.c.name == person).values(active=False))
    with pytest.raises(NotSignedIn):
        service.auth.principal_of_session(session)
    with pytest.raises(NotSignedIn):
        service.auth.principal_of_token(token)


def out(service, session, token, link):
    """Whether neither a session nor a token nor a link opens anything."""
    auth = service.auth
    for find, secret in (
        (auth.principal_of_session, session), (auth.principal_of_token, token), (auth.peek_link, link),
    ):  # fmt: skip
        with pytest.raises(AccessDenied):
            find(secret)
    return True


def by_its_owner(site, who, _):
    site.service.accounts.change_password(who, PASSWORD, "another password")


def by_a_link(site, _, link):
    site.service.auth.use_link(link, "another password")


@pytest.mark.parametrize("change", [by_its_owner, by_a_link])
def test_a_new_password_ends_all_that_the_old_one_opened(site, person, change):
    service = site.service
    session, own = (service.auth.sign_in(person, PASSWORD) for _ in range(2))
    who = service.auth.principal_of_session(own)
    token = service.accounts.create_token(who, "x", scopes=["ask"]).secret
    link = service.users.invite(site.people["sam"], person).rpartition("/")[2]
    change(site, who, link)
    assert out(service, session, token, link)
    # requests that began before the change, and end after it
    with pytest.raises(NotSignedIn):
        service.auth.start_session(person, "password", "the hash of the old one")
    with pytest.raises(NotSignedIn):
        service.accounts.create_token(replace(who, credential=hashed(session)), "x", scopes=["ask"])


def test_the_last_steward_cannot_lock_everybody_out(site):
    for change in ({"active": False}, {"roles": ["reader"]}):
        with pytest.raises(Conflict):
            site.service.users.change(site.people["sam"], "sam", **change)


def test_links_work_once(site):
    service = site.service
    name = f"q{time.time_ns()}"
    user, path = service.users.add(site.people["sam"], name, roles=["reader"])
    secret = path.rpartition("/")[2]
    assert service.auth.peek_link(secret) == ("password", name)
    with pytest.raises(InvalidArgument, match="password"):
        service.auth.use_link(secret, "short")
    session = service.auth.use_link(secret, PASSWORD)
    assert service.auth.principal_of_session(session).name == user.name
    with pytest.raises(AccessDenied, match="link"):
        service.auth.use_link(secret, PASSWORD)
    again = service.users.invite(site.people["sam"], name).rpartition("/")[2]
    last = service.users.invite(site.people["sam"], name).rpartition("/")[2]
    with pytest.raises(AccessDenied):
        service.auth.use_link(again, PASSWORD)
    service.context.store.run(schema.links.update().where(schema.links.c.hash == hashed(last)).values(expires_at=1.0))
    with pytest.raises(AccessDenied):
        service.auth.use_link(last, PASSWORD)
    assert service.auth.first_link() is None  # there is a steward
    other = service.auth.new_link("identity", None, {"next": "/"})
    assert service.auth.take_link(other, "identity") == (None, {"next": "/"})
    with pytest.raises(AccessDenied, match="link"):
        service.auth.take_link(other, "identity")


def test_a_password_is_changed_by_who_knows_it(site, person):
    service = site.service
    one, two = (service.auth.principal_of_session(service.auth.sign_in(person, PASSWORD)) for _ in range(2))
    with pytest.raises(AccessDenied):
        service.accounts.change_password(one, "wrong", "another password")
    service.accounts.change_password(one, PASSWORD, "another password")
    rows = service.context.store.rows(sa.select(schema.sessions.c.hash).where(schema.sessions.c.user == person))
    assert [row.hash for row in rows] == [one.credential] != [two.credential]


@pytest.mark.parametrize("name", ["", "Ann", "a b", "a/b", "../x", "<script>", "a\n", "x" * 64, "ß", "-x", "a'--"])
def test_names_are_plain(site, name):
    with pytest.raises(InvalidArgument):
        site.service.users.add(site.people["sam"], name, roles=["reader"])


def test_no_secret_is_in_the_database(site, person):
    service = site.service
    session = service.auth.sign_in(person, PASSWORD)
    token = service.accounts.create_token(Principal(person, frozenset({"reader"})), "x", scopes=["read"]).secret
    link = service.users.invite(site.people["sam"], person).rpartition("/")[2]
    with sqlite3.connect(service.config.store_address) as connection:
        dump = "\n".join(connection.iterdump())
    connection.close()
    assert person in dump
    for secret in (session, token, link, PASSWORD):
        assert secret not in dump


def test_wrong_passwords_from_one_address_lock_nobody_out_elsewhere(site):
    auth = Authentication(replace(site.service.context, sign_ins=RateLimit(5, clock=lambda: 0.0)))
    for refusal in (AccessDenied,) * 5 + (TooMany,) * 20:
        with pytest.raises(refusal):
            auth.sign_in("ann", "not the password", "203.0.113.9")
    assert auth.sign_in("ann", PASSWORD, "198.51.100.7")


def test_everybody_is_signed_out_at_once(start_site, tmp_path):
    site = start_site(fill(tmp_path))
    service, sam = site.service, site.people["sam"]
    session, link = service.auth.start_session("ann", "test"), service.users.invite(sam, "bob").rpartition("/")[2]
    with pytest.raises(Forbidden):
        service.users.end_all(site.people["aud"])
    service.users.end_all(sam)
    for secret in site.tokens.values():
        with pytest.raises(NotSignedIn):
            service.auth.principal_of_token(secret)
    with pytest.raises(NotSignedIn):
        service.auth.principal_of_session(session)
    with pytest.raises(AccessDenied):
        service.auth.peek_link(link)
    service.users.list(sam)  # the own session goes on
    assert service.auth.sign_in("ann", PASSWORD)
