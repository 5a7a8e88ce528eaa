"""What the use cases return: frozen values, which pages show and the JSON interface encodes.

Nothing here depends on rows but noisy answers: no durations, no sizes, no states of a question that depend on them.
Times are UTC, ISO 8601.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dither.guarantees import Guarantee
from dither.ledger import Account
from dither.tables.answer import Answer
from dither.tables.card.model import Card

JobState = Literal["waiting", "answered", "refused", "failed", "cancelled"]


@dataclass(frozen=True)
class TableSummary:
    """A table that a principal may know of. ``granted`` says that they may ask; ``left`` is in words."""

    name: str
    tables: tuple[str, ...]
    columns: int
    granted: bool
    left: str
    open: bool


@dataclass(frozen=True)
class TableCard:
    """The public part of a card: no sources, ledgers or paths. ``gaps`` are for stewards and auditors, else empty.

    ``own_limit`` and ``own_left`` are, in words, of the account that whoever asks pays from first: an analyst's own, or
    the table's, of which ``whole_limit`` is the limit. They are the ledger's, where a limit may have been changed since
    the card was written.
    """

    card: Card
    left: str
    granted: bool
    open: bool
    gaps: tuple[str, ...] = ()
    left_exact: Guarantee | None = None
    own_limit: str = ""
    own_left: str = ""
    whole_limit: str = ""


@dataclass(frozen=True)
class CardProblem:
    """A card or plan that is not in force as it stands in its file: why, and, if stewards may sign it off, who has
    done so (``signed_by``) and how many have to (``needed``, else 0). The server is then to be started again."""

    file: str
    problem: str
    signed_by: tuple[str, ...] = ()
    needed: int = 0


@dataclass(frozen=True)
class Problem:
    """What went wrong, in words for whoever asked: ``type`` names the class of the error (``urn:dither:…``),
    ``detail`` is the whole sentence, and ``status`` the HTTP status.
    """

    type: str
    title: str
    status: int
    detail: str
    name: str = ""
    expected: str = ""
    got: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Job:
    """A question under way. ``waiting`` until a tick, then as it ended: in ``answer_id`` or ``problem``."""

    id: str
    table: str
    question: str
    state: JobState
    asked_at: str
    kind: Literal["question", "publication"] = "question"
    answer_id: str | None = None
    problem: Problem | None = None


@dataclass(frozen=True)
class AnswerRecord:
    """A recorded answer, with what was asked. ``published`` is when it was published to readers, None if it was not."""

    id: str
    table: str
    analyst: str
    question: str
    options: Mapping[str, Any]
    cost: str
    at: str
    receipt: str
    answer: Answer
    published: str | None = None
    title: str = ""
    proposed: bool = False


@dataclass(frozen=True)
class AnswerLine:
    """A line of a history of answers."""

    id: str
    table: str
    analyst: str
    question: str
    cost: str
    at: str
    published: str | None = None
    title: str = ""
    proposed: bool = False
    kind: str = "question"


@dataclass(frozen=True)
class OwnBudget:
    """What an analyst may still spend on a table, in words; ``limit``, ``spent`` and ``left`` are of the own account,
    empty where analysts have none there. ``used`` is the spent share of the limit, None where there is none."""

    table: str
    words: str
    limit: str
    spent: str
    left: str
    used: float | None


@dataclass(frozen=True)
class SpendingPoint:
    """One charge in time: the total of the dataset after it, in ε or ρ."""

    at: str
    total: float


@dataclass(frozen=True)
class ChargeLine:
    """Who asked what at what cost."""

    seq: int
    at: str
    analyst: str
    question: str
    cost: str
    answered: bool
    incident: bool


@dataclass(frozen=True)
class DatasetBudget:
    """The accounts of a table (of people, only the limit), spending over time, and who asked what."""

    table: str
    accounts: tuple[Account, ...]
    unit: str
    limit: float | None
    points: tuple[SpendingPoint, ...]
    charges: tuple[ChargeLine, ...]


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
class Token:
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

    token: Token
    secret: str


@dataclass(frozen=True)
class Grant:
    """That a user may ask a table; ``limit`` is what they may spend in all, in words, empty for no limit of their
    own."""

    user: str
    table: str
    limit: str
    by: str
    at: str


@dataclass(frozen=True)
class LimitChange:
    """A change of a limit: of the dataset, of one ``analyst``, or of each person. One that was pending when whoever
    proposed it ceased to be a steward is void."""

    id: str
    table: str
    analyst: str | None
    each_person: bool
    limit: str
    before: str
    reason: str
    proposed_by: str
    proposed_at: str
    state: Literal["pending", "done", "withdrawn", "void"]
    approved_by: str | None = None
    receipt: str = ""


@dataclass(frozen=True)
class IncidentLine:
    """An incident: an error while rows were read. What it was stands in the steward's log file only."""

    seq: int
    at: str
    table: str
    charge: int


@dataclass(frozen=True)
class IncidentState:
    """The incidents of a table since it was last reopened; ``open`` says whether it takes questions of everybody, and
    ``closed_for`` names the analysts whose questions it refuses, where it takes those of others."""

    table: str
    count: int
    max: int
    open: bool
    log: str
    incidents: tuple[IncidentLine, ...]
    closed_for: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChainEntry:
    """An entry of the history of a ledger; of an answer, only that there is one."""

    seq: int
    at: str
    kind: str
    dataset: str
    key: str | None
    answers: int | None
    body: Mapping[str, Any]
    hash: str


@dataclass(frozen=True)
class Verification:
    """The result of verifying a ledger. ``problem`` is empty where everything is as it was written."""

    table: str
    entries: int
    receipt: str
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Whether everything is as it was written."""
        return not self.problem


@dataclass(frozen=True)
class Event:
    """A line of the event log: who did what, when, to what, and whether it was refused. Never an answer or a secret."""

    id: int
    at: str
    user: str
    action: str
    subject: str
    outcome: Literal["done", "refused"]
    detail: str = ""


@dataclass(frozen=True)
class PlanLine:
    """A plan of a publication: a file in the served folder."""

    name: str
    table: str
    tables: tuple[str, ...]


@dataclass(frozen=True)
class PlanPreview:
    """What a plan would publish, at what cost, with which errors; nothing is read or charged."""

    name: str
    table: str
    cost: str
    text: str
    left: str
    refused: str = ""
