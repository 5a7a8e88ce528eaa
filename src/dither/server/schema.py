"""The tables of the server's own database: users, credentials, grants, questions, answers, events.

Secrets are stored hashed only. No row of a served table is ever in it; answers are, which were released.
"""

from __future__ import annotations

import sqlalchemy as sa

VERSION = 1
metadata = sa.MetaData()

_TEXT, _TIME = sa.Text, sa.Float  # times are seconds since 1970, UTC

about = sa.Table("server_about", metadata, sa.Column("version", sa.Integer, primary_key=True))

users = sa.Table(
    "server_user",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("display", _TEXT, nullable=False),
    sa.Column("roles", _TEXT, nullable=False),
    sa.Column("active", sa.Boolean, nullable=False),
    sa.Column("password", _TEXT),
    sa.Column("created_at", _TIME, nullable=False),
)
identities = sa.Table(
    "server_identity",
    metadata,
    sa.Column("issuer", sa.String(500), primary_key=True),
    sa.Column("subject", sa.String(300), primary_key=True),
    sa.Column("kind", sa.String(10), nullable=False),  # "subject", or "email" until its owner has signed in once
    sa.Column("user", sa.String(64), sa.ForeignKey("server_user.name"), nullable=False),
)
sessions = sa.Table(
    "server_session",
    metadata,
    sa.Column("hash", sa.String(64), primary_key=True),
    sa.Column("user", sa.String(64), nullable=False, index=True),
    sa.Column("created_at", _TIME, nullable=False),
    sa.Column("used_at", _TIME, nullable=False),
    sa.Column("expires_at", _TIME, nullable=False),
)
tokens = sa.Table(
    "server_token",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("hash", sa.String(64), nullable=False, unique=True),
    sa.Column("user", sa.String(64), nullable=False, index=True),
    sa.Column("label", _TEXT, nullable=False),
    sa.Column("scopes", _TEXT, nullable=False),
    sa.Column("hint", _TEXT, nullable=False),
    sa.Column("created_at", _TIME, nullable=False),
    sa.Column("expires_at", _TIME, nullable=False),
    sa.Column("revoked_at", _TIME),
    sa.Column("used_at", _TIME),
)
links = sa.Table(
    "server_link",
    metadata,
    sa.Column("hash", sa.String(64), primary_key=True),
    sa.Column("kind", sa.String(10), nullable=False),  # "first", "password" or "oidc"
    sa.Column("user", sa.String(64)),
    sa.Column("data", _TEXT, nullable=False),
    sa.Column("expires_at", _TIME, nullable=False),
)
grants = sa.Table(
    "server_grant",
    metadata,
    sa.Column("user", sa.String(64), primary_key=True),
    sa.Column("dataset", sa.String(200), primary_key=True),
    sa.Column("limit", _TEXT, nullable=False),
    sa.Column("by", sa.String(64), nullable=False),
    sa.Column("at", _TIME, nullable=False),
)
jobs = sa.Table(
    "server_job",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("user", sa.String(64), nullable=False, index=True),
    sa.Column("dataset", sa.String(200), nullable=False),
    sa.Column("kind", sa.String(12), nullable=False),
    sa.Column("question", _TEXT, nullable=False),
    sa.Column("server", sa.String(32), nullable=False),
    sa.Column("request", sa.String(64), nullable=False, index=True),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("asked_at", _TIME, nullable=False),
    sa.Column("began_at", _TIME),  # when a worker took it up, from which its ticks count
    sa.Column("began_after", sa.BigInteger),  # the last entry of the table's ledger then: its charges come later
    sa.Column("visible_at", _TIME),  # when the analyst may see how it ended
    sa.Column("cancel_at", _TIME),
    sa.Column("answer", sa.String(32)),
    sa.Column("problem", _TEXT),
)
answers = sa.Table(
    "server_answer",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("user", sa.String(64), nullable=False),
    sa.Column("dataset", sa.String(200), nullable=False),
    sa.Column("kind", sa.String(12), nullable=False),
    sa.Column("request", sa.String(64), nullable=False, index=True),
    sa.Column("question", _TEXT, nullable=False),
    sa.Column("options", _TEXT, nullable=False),
    sa.Column("cost", _TEXT, nullable=False),
    sa.Column("receipt", _TEXT, nullable=False),
    sa.Column("part", sa.Integer, nullable=False),  # of a publication, which of its tables
    sa.Column("body", _TEXT, nullable=False),
    sa.Column("at", _TIME, nullable=False),
    sa.Column("title", _TEXT, nullable=False),
    sa.Column("proposed_at", _TIME),
    sa.Column("published_at", _TIME),
    sa.Column("published_by", sa.String(64)),
    sa.UniqueConstraint("user", "dataset", "receipt", "part"),
    sa.Index("server_answer_of_user", "user", "at"),
)
changes = sa.Table(
    "server_limit_change",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("dataset", sa.String(200), nullable=False),
    sa.Column("analyst", sa.String(64)),
    sa.Column("each_person", sa.Boolean, nullable=False),
    sa.Column("limit", _TEXT, nullable=False),
    sa.Column("before", _TEXT, nullable=False),
    sa.Column("reason", _TEXT, nullable=False),
    sa.Column("proposed_by", sa.String(64), nullable=False),
    sa.Column("proposed_at", _TIME, nullable=False),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("approved_by", sa.String(64)),
    sa.Column("receipt", _TEXT, nullable=False),
)
cards = sa.Table(
    "server_card",
    metadata,
    sa.Column("dataset", sa.String(200), primary_key=True),
    sa.Column("file", _TEXT, nullable=False),
    sa.Column("ledger", _TEXT, nullable=False),  # addresses in this table are stored without their password
    sa.Column("receipt", _TEXT, nullable=False),
    sa.Column("sources", _TEXT, nullable=False),
    sa.Column("at", _TIME, nullable=False),
)
card_signatures = sa.Table(
    "server_card_signature",
    metadata,
    sa.Column("digest", sa.String(64), primary_key=True),
    sa.Column("user", sa.String(64), primary_key=True),
    sa.Column("reason", _TEXT, nullable=False),
    sa.Column("at", _TIME, nullable=False),
)
events = sa.Table(
    "server_event",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("at", _TIME, nullable=False),
    sa.Column("user", sa.String(64), nullable=False),
    sa.Column("action", _TEXT, nullable=False),
    sa.Column("subject", _TEXT, nullable=False),
    sa.Column("outcome", sa.String(10), nullable=False),
    sa.Column("detail", _TEXT, nullable=False),
)
