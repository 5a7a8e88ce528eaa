"""Single sign-on by OpenID Connect: the code flow with PKCE, by Authlib.

Who somebody is follows from the issuer and the subject of a signed token alone. A steward adds people by an email
first; the first sign-in with that email, which the issuer says it has verified, binds the subject, and from then on the
subject counts. A state that works once, and a cookie that only the same browser has, tie both ends of the flow
together.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from base64 import urlsafe_b64encode
from typing import Any, cast

import httpx2 as httpx
import sqlalchemy as sa
from authlib.integrations.httpx_client import OAuth2Client
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dither.errors import AccessDenied, DitherError, ServerUnavailable
from dither.server import schema
from dither.server.auth import NAME
from dither.server.errors import NotFound
from dither.server.limits import address_of
from dither.server.pages.render import SESSION_COOKIE, set_cookie
from dither.server.service import Service

BACK = "/sign-in/oidc/back"
STATE_COOKIE = "dither_oidc"
_HOURS = 0.25
_TIMEOUT = 10.0
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]


class SignOn:
    """The OpenID Connect flow with one issuer; ``transport`` replaces the network in tests."""

    def __init__(self, service: Service, transport: httpx.BaseTransport | None = None) -> None:
        self._service = service
        self._config = service.config
        self._transport = transport

    @property
    def _back(self) -> str:
        """Return the redirect URI that the issuer sends the browser back to."""
        return self._config.url + BACK

    def begin(self) -> tuple[str, str]:
        """Return the address at the issuer to redirect to, and the state, which also goes into a cookie."""
        nonce, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        challenge = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        with self._client() as client:
            try:
                endpoint = self._metadata(client)["authorization_endpoint"]
            except DitherError:
                raise
            except Exception:  # of the network or of JSON: none of its words are shown
                text = "Single sign-on is unavailable. Try again later, or sign in with a password."
                raise ServerUnavailable(text) from None
            state = self._service.auth.new_link("oidc", None, {"nonce": nonce, "verifier": verifier}, hours=_HOURS)
            url, _ = client.create_authorization_url(
                endpoint, state=state, nonce=nonce, code_challenge=challenge, code_challenge_method="S256"
            )
        return str(url), state

    def finish(self, state: str, cookie: str, code: str) -> str:
        """Check the issuer's response, start a session for the identified user, and return its secret.

        ``state`` and ``code`` are the parameters with which the issuer sends the browser back; ``cookie`` has the state
        of the browser that began, so that nobody can be signed in by a link of somebody else.
        """
        if not state or not hmac.compare_digest(state.encode(), cookie.encode()):
            raise _refused("The sign-in did not begin in this browser.")
        _, data = self._service.auth.take_link(state, "oidc")
        try:
            with self._client() as client:
                metadata = self._metadata(client)
                answer = client.fetch_token(metadata["token_endpoint"], code=code, code_verifier=data["verifier"])
                keys = client.request("GET", metadata["jwks_uri"], withhold_token=True).raise_for_status().json()
            claims = self._claims(answer["id_token"], keys, data["nonce"])
        except DitherError:
            raise
        except Exception:  # of the network, of JSON, of Authlib: none of its words are shown
            claims = None
        if claims is None:
            raise _refused("The answer of the issuer is not valid.")
        return self._service.auth.start_session(self._user(claims), "single sign-on")

    def _client(self) -> Any:
        """Return an OAuth client for the configured issuer."""
        config = self._config
        return OAuth2Client(
            config.oidc_client_id, config.oidc_client_secret, scope="openid email profile", redirect_uri=self._back,
            transport=self._transport, timeout=_TIMEOUT,
        )  # fmt: skip

    def _metadata(self, client: Any) -> dict[str, str]:
        """Return the issuer's published metadata (its endpoints); refuse a document that names a different issuer."""
        address = self._config.oidc_issuer.rstrip("/") + "/.well-known/openid-configuration"
        metadata = cast(dict[str, str], client.request("GET", address, withhold_token=True).raise_for_status().json())
        if metadata.get("issuer", "").rstrip("/") != self._config.oidc_issuer.rstrip("/"):
            raise _refused("The issuer is not the one that is configured.")
        return metadata

    def _claims(self, token: str, keys: Any, nonce: str) -> dict[str, Any]:
        """Return the claims of an ID token, checked for signature, validity, audience and the nonce of this sign-in."""
        registry = jwt.JWTClaimsRegistry(
            leeway=60,
            iss={"essential": True, "value": self._config.oidc_issuer},
            aud={"essential": True, "value": self._config.oidc_client_id},
            exp={"essential": True},
            sub={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            decoded = jwt.decode(token, KeySet.import_key_set(keys), algorithms=_ALGORITHMS)
            registry.validate(decoded.claims)
            if decoded.claims.get("azp", self._config.oidc_client_id) != self._config.oidc_client_id:
                raise ValueError("a token that was made for another client")
        except (JoseError, ValueError, KeyError, TypeError):
            raise _refused("The token was not signed by the issuer for this sign-in.") from None
        return dict(decoded.claims)

    def _user(self, claims: dict[str, Any]) -> str:
        """Return the name of the user with the identity in ``claims``; refuse an identity without an active user.

        It is the user bound to the issuer's subject, else the one whom a steward has added under the verified email
        (who is bound to the subject now), else a new user where ``oidc_roles`` are configured.
        """
        store, identities, users = self._service.context.store, schema.identities, schema.users
        issuer, subject = self._config.oidc_issuer, str(claims["sub"])
        user = self._known(issuer, subject, "subject")
        email = claims.get("email") if claims.get("email_verified") is True else None
        if user is None and isinstance(email, str):
            user = self._known(issuer, email, "email")
            if user is not None:
                same = identities.c.issuer == issuer, identities.c.subject == email
                store.run(identities.update().where(*same).values(subject=subject, kind="subject"))
        if user is None and self._config.oidc_roles:
            user = self._new_name(str(email or claims.get("preferred_username") or subject))
            values = {"name": user, "display": user, "roles": " ".join(self._config.oidc_roles), "active": True}
            identity = {"issuer": issuer, "subject": subject, "kind": "subject", "user": user}
            store.run(
                users.insert().values(**values, created_at=time.time()),
                identities.insert().values(**identity),
                *self._service.context.events.line(user, "first single sign-on"),
            )
        row = None if user is None else store.one(sa.select(users.c.active).where(users.c.name == user))
        if user is None or row is None or not row.active:
            self._service.context.events.write("?", "single sign-on", refused="unknown or inactive")
            raise _refused("You have no account here.")
        return user

    def _known(self, issuer: str, subject: str, kind: str) -> str | None:
        """Return the user with an identity of this kind, ``subject`` or ``email``; None if no user has it."""
        identities = schema.identities
        same = identities.c.issuer == issuer, identities.c.subject == subject, identities.c.kind == kind
        row = self._service.context.store.one(sa.select(identities.c.user).where(*same))
        return None if row is None else str(row.user)

    def _new_name(self, wanted: str) -> str:
        """Return an unused user name similar to the wanted one."""
        plain = re.sub("[^a-z0-9._@-]", "-", wanted.lower()).lstrip("._@-")[:50] or "user"
        users = schema.users
        name = plain
        while not NAME.fullmatch(name) or self._service.context.store.one(sa.select(users).where(users.c.name == name)):
            name = f"{plain}-{secrets.token_hex(3)}"
        return name


def _refused(reason: str) -> AccessDenied:
    """Return the error for a failed sign-in, with its reason."""
    return AccessDenied(f"{reason} Sign in again, or ask a steward.")


def _sign_on(request: Request) -> SignOn:
    """Return the flow of the configured issuer; raise NotFound if none is configured."""
    service: Service = request.app.state.service
    if not service.config.oidc_issuer:
        raise NotFound.of("path")
    return SignOn(service, getattr(request.app.state, "oidc_transport", None))


async def _begin(request: Request) -> Response:
    """Redirect the browser to the issuer, with the state in a cookie."""
    request.app.state.service.context.sign_ins.take(f"address {address_of(request.scope)}")  # each asks the issuer
    url, state = await run_in_threadpool(_sign_on(request).begin)
    response = RedirectResponse(url, 303)
    set_cookie(request, response, STATE_COOKIE, state, max_age=int(3600 * _HOURS))
    return response


async def _finish(request: Request) -> Response:
    """Sign in the user whom the issuer identified, and redirect to the start page."""
    query = request.query_params
    cookie = request.cookies.get(STATE_COOKIE, "")
    state, code = query.get("state", ""), query.get("code", "")
    session = await run_in_threadpool(_sign_on(request).finish, state, cookie, code)
    response = RedirectResponse("/", 303)
    set_cookie(request, response, SESSION_COOKIE, session)
    response.delete_cookie(STATE_COOKIE, path="/")
    return response


ROUTES = (Route("/sign-in/oidc", _begin, methods=["GET"]), Route(BACK, _finish, methods=["GET"]))
