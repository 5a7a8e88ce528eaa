"""Who acts: a name and roles, taken from a session or a token and from nothing else."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Principal:
    """Somebody who is signed in.

    ``name`` is the user's name, and the analyst's name in the ledger. ``scopes`` are those of the token, None with a
    session, which has all. ``credential`` is the id of the session or token, for the event log and to end it.

    >>> Principal("ann", frozenset({"analyst"})).is_session
    True
    """

    name: str
    roles: frozenset[str]
    scopes: frozenset[str] | None = None
    credential: str = ""

    @property
    def is_session(self) -> bool:
        """Whether this is a person who signed in, and not a token."""
        return self.scopes is None
