"""Single sign-on, against an issuer that is made here."""

from __future__ import annotations

import time
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import httpx2 as httpx
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from dither.errors import AccessDenied, ServerUnavailable
from dither.server.oidc import BACK, SignOn

ISSUER = "https://issuer.example"


class Issuer:
    """An issuer: what it answers, and what it says about whoever signs in."""

    def __init__(self):
        self.key = RSAKey.generate_key(2048, {"kid": "k", "use": "sig", "alg": "RS256"})
        self.claims: dict[str, object] = {}
        self.signed_by = self.key
        self.nonce = ""

    def transport(self):
        return httpx.MockTransport(self.answer)

    def answer(self, request):
        path = request.url.path
        if path.endswith("openid-configuration"):
            names = {"authorization_endpoint": "auth", "token_endpoint": "token", "jwks_uri": "keys"}
            return httpx.Response(200, json={"issuer": ISSUER, **{n: f"{ISSUER}/{p}" for n, p in names.items()}})
        if path == "/keys":
            return httpx.Response(200, json={"keys": [self.key.as_dict(private=False)]})
        form = parse_qs(request.content.decode())
        assert form["code_verifier"]
        assert form["code"] == ["code"]
        now = int(time.time())
        claims = {"iss": ISSUER, "aud": "client", "exp": now + 60, "iat": now, "sub": "s-1", "nonce": self.nonce}
        token = jwt.encode({"alg": "RS256", "kid": "k"}, claims | self.claims, self.signed_by)
        return httpx.Response(200, json={"access_token": "x", "token_type": "Bearer", "id_token": token})


@pytest.fixture
def issuer():
    return Issuer()


@pytest.fixture
def sign_on(site, issuer):
    config = replace(
        site.service.config, oidc_issuer=ISSUER, oidc_client_id="client", oidc_client_secret="s",
        public_url="http://testserver",
    )  # fmt: skip
    return SignOn(replace(site.service, config=config), issuer.transport())


def through(sign_on, issuer, **claims):
    url, state = sign_on.begin()
    query = parse_qs(urlsplit(url).query)
    assert query["code_challenge_method"] == ["S256"]
    issuer.nonce, issuer.claims = query["nonce"][0], claims
    return sign_on.finish(state, state, "code")


def test_somebody_whom_a_steward_added_by_email(site, sign_on, issuer):
    name = f"o{time.time_ns()}"
    site.service.users.add(site.people["sam"], name, roles=["analyst"], identity=f"{ISSUER} {name}@example.org")
    with pytest.raises(AccessDenied, match="no account here"):
        through(sign_on, issuer, sub=name, email=f"{name}@example.org")  # the issuer has not verified it
    session = through(sign_on, issuer, sub=name, email=f"{name}@example.org", email_verified=True)
    assert site.service.auth.principal_of_session(session).name == name
    session = through(sign_on, issuer, sub=name)  # from now on the subject counts
    assert site.service.auth.principal_of_session(session).name == name
    with pytest.raises(AccessDenied):  # and the email is nobody's
        through(sign_on, issuer, sub="thief", email=f"{name}@example.org", email_verified=True)


def test_unknown_people_need_roles_in_the_configuration(site, sign_on, issuer):
    subject = f"n{time.time_ns()}"
    with pytest.raises(AccessDenied):
        through(sign_on, issuer, sub=subject)
    service = sign_on._service
    open_to_all = SignOn(replace(service, config=replace(service.config, oidc_roles=("reader",))), issuer.transport())
    session = through(open_to_all, issuer, sub=subject, preferred_username="../Eve <b>")
    who = site.service.auth.principal_of_session(session)
    assert who.roles == {"reader"}
    assert "<" not in who.name


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example"},
        {"aud": "other"},
        {"exp": 1},
        {"nonce": "other"},
        {"sub": None},
        {"azp": "evil"},
        {"aud": ["evil", "dither"], "azp": "evil"},
        {"nbf": 9e9},
    ],
    ids=lambda claims: next(iter(claims)),
)
def test_tokens_that_are_not_right(sign_on, issuer, claims):
    with pytest.raises(AccessDenied, match="not signed by the issuer"):
        through(sign_on, issuer, **claims)


def test_a_token_that_somebody_else_signed(sign_on, issuer):
    issuer.signed_by = RSAKey.generate_key(2048, {"kid": "k"})
    with pytest.raises(AccessDenied, match="not signed by the issuer"):
        through(sign_on, issuer)


def test_a_sign_in_that_began_elsewhere(sign_on):
    _, state = sign_on.begin()
    for given, cookie in ((state, ""), (state, "other"), ("", ""), ("other", "other")):
        with pytest.raises(AccessDenied):
            sign_on.finish(given, cookie, "code")


@pytest.mark.parametrize("answer", [httpx.Response(503), httpx.Response(200, text="<html>"), httpx.ConnectError("x")])
def test_an_issuer_that_is_down_is_said_in_words(site, sign_on, answer):
    def down(_: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(ServerUnavailable, match="sign in with a password"):
        SignOn(replace(site.service, config=sign_on._config), httpx.MockTransport(down)).begin()


def test_without_an_issuer_there_is_no_such_page(site):
    assert site.client().get("/sign-in/oidc").status_code == 404
    assert site.client().get(BACK).status_code == 404
