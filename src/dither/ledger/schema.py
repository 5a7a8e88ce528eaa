"""The tables of a ledger, its version, and every statement that is run on it.

``entry``    the history: only ever appended to, each row hashed together with the one before
``account``  what each account may spend and has spent: sums over the history, kept so that a charge reads one row
``person``   what each person has spent, under a keyed hash of the person's key
``about``    version, and the fingerprint of the key of those hashes
``series``   the sealed state of series of releases (:mod:`dither.ledger.series`)
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from importlib import import_module
from typing import Any

import sqlalchemy as sa

VERSION = 2
PERSON_BYTES = 16

_metadata = sa.MetaData()

# SQLite numbers rows itself only for INTEGER; everywhere else 64 bits are called BIGINT
_Whole = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

about = sa.Table(
    "dither_about",
    _metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

entry = sa.Table(
    "dither_entry",
    _metadata,
    sa.Column("seq", _Whole, primary_key=True, autoincrement=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("dataset", sa.Text, nullable=False),
    sa.Column("key", sa.Text),
    sa.Column("charge", _Whole),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("answer", sa.LargeBinary),
    sa.Column("hash", sa.LargeBinary, nullable=False),
)


def _is(kind: str) -> sa.ColumnElement[bool]:
    """Return the SQL condition that an entry is of a kind, with the kind as a literal: databases do not use partial
    indices for a condition with a parameter."""
    return entry.c.kind == sa.literal_column(f"'{kind}'")


def _index(name: str, kind: str, *columns: sa.Column[object], unique: bool) -> None:
    """Declare a partial index over the entries of one kind."""
    sa.Index(name, *columns, unique=unique, sqlite_where=_is(kind), info={"kind": kind})


# a key may be charged several times and has one answer; each entry is in one index at most, which saves pages
_index("dither_charges", "charge", entry.c.dataset, entry.c.key, unique=False)
_index("dither_one_answer", "answer", entry.c.dataset, entry.c.key, unique=True)
_index("dither_one_incident", "incident", entry.c.charge, unique=True)

account = sa.Table(
    "dither_account",
    _metadata,
    sa.Column("owner", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("stated", sa.Text, nullable=False),
    sa.Column("unit", sa.Text, nullable=False),
    sa.Column("limit_loss", _Whole),
    sa.Column("limit_delta", _Whole),
    sa.Column("spent_loss", _Whole, nullable=False),
    sa.Column("spent_delta", _Whole, nullable=False),
    sa.Column("population", sa.Text, nullable=False),
    sa.Column("checksum", _Whole, nullable=False),
    sa.Column("sealed", _Whole, nullable=False),
    sa.Column("incidents", _Whole, nullable=False),
)

person = sa.Table(
    "dither_person",
    _metadata,
    sa.Column("who", sa.LargeBinary, primary_key=True),  # the population is part of what is hashed
    sa.Column("population", sa.Text, nullable=False),
    sa.Column("loss", _Whole, nullable=False),
    sa.Column("delta", _Whole, nullable=False),
    sqlite_with_rowid=False,
)

series = sa.Table(
    "dither_series",
    _metadata,
    sa.Column("series", _Whole, primary_key=True, autoincrement=False),
    sa.Column("part", _Whole, primary_key=True, autoincrement=False),
    sa.Column("number", _Whole, nullable=False),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
)

FORBIDDEN = "the history of a ledger is only ever appended to"


_SQLITE_TRIGGERS = (
    *(
        f"CREATE TRIGGER dither_no_{verb.lower()} BEFORE {verb} ON dither_entry "
        f"BEGIN SELECT RAISE(ABORT, '{FORBIDDEN}'); END"
        for verb in ("UPDATE", "DELETE")
    ),
    # INSERT OR REPLACE deletes what is in its way without asking the triggers
    "CREATE TRIGGER dither_no_replace BEFORE INSERT ON dither_entry "
    "WHEN EXISTS (SELECT 1 FROM dither_entry WHERE seq >= NEW.seq) "
    "OR (NEW.kind = 'answer' AND EXISTS (SELECT 1 FROM dither_entry "
    "WHERE kind = 'answer' AND dataset = NEW.dataset AND key = NEW.key)) "
    "OR (NEW.kind = 'incident' AND EXISTS (SELECT 1 FROM dither_entry "
    "WHERE kind = 'incident' AND charge = NEW.charge)) "
    f"BEGIN SELECT RAISE(ABORT, '{FORBIDDEN}'); END",
)
_FUNCTION = f" BEGIN RAISE EXCEPTION '{FORBIDDEN}'; END "
_POSTGRESQL_TRIGGERS = (
    f"CREATE FUNCTION dither_append_only() RETURNS trigger LANGUAGE plpgsql AS $${_FUNCTION}$$",
    "CREATE TRIGGER dither_append_only BEFORE UPDATE OR DELETE ON dither_entry "
    "FOR EACH ROW EXECUTE FUNCTION dither_append_only()",
    "CREATE TRIGGER dither_no_truncate BEFORE TRUNCATE ON dither_entry "
    "FOR EACH STATEMENT EXECUTE FUNCTION dither_append_only()",
)


def _dialect(name: str) -> sa.Dialect:
    """Return SQLAlchemy's dialect of this name.

    The conditions of PostgreSQL's partial indices are set here, only when that dialect is used, since setting them
    imports the whole dialect.
    """
    dialects: Any = import_module(f"sqlalchemy.dialects.{name}")
    if name == "postgresql":
        for index in (index for table in _metadata.tables.values() for index in table.indexes):
            if "kind" in index.info:
                index.dialect_options["postgresql"]["where"] = _is(index.info["kind"])
    result: sa.Dialect = dialects.dialect()
    return result


def creation(dialect: str, fingerprint: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return the statements, with their parameters, that create a ledger: tables, indices, triggers against changes of
    the history, and the rows that state its version and the fingerprint of its secret."""
    speaks = _dialect(dialect)
    plan: list[str] = []
    for table in _metadata.sorted_tables:
        plan.append(str(sa.schema.CreateTable(table).compile(dialect=speaks)))
        indices = sorted(table.indexes, key=lambda index: str(index.name))
        plan += [str(sa.schema.CreateIndex(index).compile(dialect=speaks)) for index in indices]
    plan += _SQLITE_TRIGGERS if dialect == "sqlite" else _POSTGRESQL_TRIGGERS
    mark = "?" if dialect == "sqlite" else "%s"
    insert = f"INSERT INTO dither_about (name, value) VALUES ({mark}, {mark})"
    values = (("version", str(VERSION)), ("secret", fingerprint))
    return [*((statement, ()) for statement in plan), *((insert, pair) for pair in values)]


# everything that can change what a statement does
_SQLITE_SHAPE = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_stat%' ESCAPE '\\'"
_REGISTERED = ", ".join(f"'{table}'::regclass" for table in _metadata.tables)
_POSTGRESQL_SHAPE = f"""
SELECT 'trigger', c.relname::text, t.tgname::text, t.tgenabled::text, t.tgtype::text, (t.tgqual IS NULL)::text, p.prosrc
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
WHERE NOT t.tgisinternal AND t.tgrelid IN ({_REGISTERED})
UNION ALL
SELECT 'rule', c.relname::text, r.rulename::text, '', '', '', ''
FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class WHERE r.ev_class IN ({_REGISTERED})
UNION ALL
SELECT 'index', c.relname::text, i.relname::text, x.indisunique::text, '', '', ''
FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class c ON c.oid = x.indrelid
WHERE x.indrelid IN ({_REGISTERED}) AND x.indisvalid
"""


def shape(dialect: str) -> str:
    """Return the SQL that lists the existing tables, indices and triggers of a ledger."""
    return _SQLITE_SHAPE if dialect == "sqlite" else _POSTGRESQL_SHAPE


@cache
def expected_shape(dialect: str) -> list[tuple[Any, ...]]:
    """Return the rows that the SQL of :func:`shape` has to give in an unchanged ledger, sorted."""
    if dialect == "sqlite":
        with closing(sqlite3.connect(":memory:")) as connection:
            for statement, values in creation(dialect, ""):
                connection.execute(statement, values)
            return sorted(connection.execute(shape(dialect)).fetchall(), key=repr)
    before_change, before_truncate = "27", "34"  # pg_trigger.tgtype: row, before, delete, update; before, truncate
    result: list[tuple[Any, ...]] = [
        ("trigger", "dither_entry", "dither_append_only", "O", before_change, "true", _FUNCTION),
        ("trigger", "dither_entry", "dither_no_truncate", "O", before_truncate, "true", _FUNCTION),
    ]
    for table in _metadata.tables.values():
        unique = {f"{table.name}_pkey": True, **{str(index.name): bool(index.unique) for index in table.indexes}}
        result += [("index", table.name, name, str(yes).lower(), "", "", "") for name, yes in unique.items()]
    return sorted(result, key=repr)


def _p(name: str) -> sa.BindParameter[object]:
    """Return a parameter of a statement."""
    return sa.bindparam(name)


LAST = sa.select(entry.c.seq, entry.c.hash).order_by(entry.c.seq.desc()).limit(1)
ENTRY = sa.select(entry).where(entry.c.seq == _p("seq"))
ENTRIES = sa.select(entry).where(entry.c.seq > _p("after")).order_by(entry.c.seq).limit(_p("most"))
ENTRIES_OF = (
    sa.select(entry)
    .where(entry.c.seq > _p("after"), entry.c.dataset == _p("dataset"))
    .order_by(entry.c.seq)
    .limit(_p("most"))
)
APPEND = entry.insert().values({column.name: _p(column.name) for column in entry.c})
# the first charge under a key: all of them are for the same request
CHARGED = (
    sa.select(entry.c.seq)
    .where(_is("charge"), entry.c.dataset == _p("dataset"), entry.c.key == _p("key"))
    .order_by(entry.c.seq)
    .limit(1)
)
ANSWER = sa.select(entry.c.seq).where(_is("answer"), entry.c.dataset == _p("dataset"), entry.c.key == _p("key"))
# answers with keys from one text up to another: the ends and all that is between differ in hexadecimal digits, which
# every collation has in one order
ANSWERS_BETWEEN = sa.select(entry.c.seq, entry.c.key).where(
    _is("answer"), entry.c.dataset == _p("dataset"), entry.c.key >= _p("first"), entry.c.key < _p("last")
)
_previous = entry.alias("previous")
# the answers to one charge with keys in a range, each with the hash of the entry before it
ANSWERS = (
    sa.select(entry, _previous.c.hash)
    .where(_is("answer"), entry.c.dataset == _p("dataset"), entry.c.key >= _p("first"), entry.c.key < _p("last"))
    .where(entry.c.charge == _p("charge"), _previous.c.seq == entry.c.seq - 1)
    .order_by(entry.c.seq)
)
_charged = entry.alias("charged")
# what the last incidents of a dataset were charged for
LAST_INCIDENTS = (
    sa.select(_charged.c.body)
    .where(_is("incident"), entry.c.dataset == _p("dataset"), _charged.c.seq == entry.c.charge)
    .order_by(entry.c.seq.desc())
    .limit(_p("most"))
)
INCIDENT = sa.select(entry).where(_is("incident"), entry.c.charge == _p("charge"))

ACCOUNT = sa.select(account).where(
    account.c.owner == _p("owner"), account.c.kind == _p("kind"), account.c.name == _p("name")
)
_other = account.alias("other")
TOUCHED = sa.select(
    account,
    sa.exists().where(_other.c.owner == _p("owner"), _other.c.kind == "analyst").label("analysts"),
    # the last entry in the same statement saves a round trip to the server
    sa.select(entry.c.seq).order_by(entry.c.seq.desc()).limit(1).scalar_subquery().label("last_seq"),
    sa.select(entry.c.hash).order_by(entry.c.seq.desc()).limit(1).scalar_subquery().label("last_hash"),
).where(
    # a condition for each column lets the primary key be used; a dataset's own account has an empty name
    account.c.owner == _p("owner"),
    sa.or_(account.c.kind == "dataset", account.c.kind == "analyst"),
    sa.or_(account.c.name == "", account.c.name == _p("analyst")),
)
ACCOUNTS = sa.select(account).order_by(account.c.owner, account.c.kind, account.c.name)
OPEN = account.insert().values({column.name: _p(column.name) for column in account.c})
_change_account = account.update().where(
    account.c.owner == _p("owner_"), account.c.kind == _p("kind_"), account.c.name == _p("name_")
)
SPEND = _change_account.values(
    spent_loss=account.c.spent_loss + _p("loss"),
    spent_delta=account.c.spent_delta + _p("delta"),
    checksum=_p("checksum_"),
    sealed=_p("sealed_"),
)
RESTATE = _change_account.values(
    stated=_p("stated_"), unit=_p("unit_"), limit_loss=_p("limit_loss_"), limit_delta=_p("limit_delta_")
)
COUNT_INCIDENTS = _change_account.values(incidents=_p("incidents_"))

SERIES_PARTS = sa.select(series.c.part, series.c.number, series.c.sealed).where(series.c.series == _p("series"))
SERIES_NUMBERS = sa.select(series.c.part, series.c.number).where(series.c.series == _p("series"))
SERIES_DROP = series.delete().where(series.c.series == _p("series"), series.c.part == _p("part"))
SERIES_PUT = series.insert().values({column.name: _p(column.name) for column in series.c})

PEOPLE = (
    sa.select(person.c.who, person.c.loss, person.c.delta)
    .where(person.c.population == _p("population"), person.c.who > _p("after"))
    .order_by(person.c.who)
    .limit(_p("most"))
)

# The keyed hashes of a set of people are handed over as one string of bytes; a batch is a table of their numbers.
# SQLite has no generate_series: numbers below a million are made of two below a thousand, which is fast.
_THOUSANDS = 1 << 10
_BATCH = {
    "sqlite": (
        f"(WITH RECURSIVE d(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM d WHERE i < {_THOUSANDS - 1}) "
        f"SELECT a.i * {_THOUSANDS} + b.i AS i FROM d AS a CROSS JOIN d AS b "
        f"WHERE a.i * {_THOUSANDS} + b.i < :size AND a.i * {_THOUSANDS} < :size)"
    ),
    "postgresql": "(SELECT i FROM generate_series(0, CAST(:size AS integer) - 1) AS g(i))",
}
_WHO = {
    "sqlite": f"substr(:batch, {PERSON_BYTES} * n.i + 1, {PERSON_BYTES})",
    "postgresql": f"substr(CAST(:batch AS bytea), {PERSON_BYTES} * n.i + 1, {PERSON_BYTES})",
}


def exhausted(dialect: str) -> sa.TextClause:
    """Return the SELECT of the positions, in a batch, of the people who cannot pay."""
    return sa.text(
        f"SELECT n.i FROM {_BATCH[dialect]} AS n CROSS JOIN dither_person AS p WHERE p.who = {_WHO[dialect]} "
        "AND (p.loss > :room_loss OR p.delta > :room_delta)"
    )


def charge_people(dialect: str) -> sa.TextClause:
    """Return the statement that charges all people of a batch, and opens accounts for those without one."""
    return sa.text(
        "INSERT INTO dither_person (who, population, loss, delta) "
        f"SELECT {_WHO[dialect]}, CAST(:population AS text), CAST(:loss AS bigint), CAST(:delta AS bigint) "
        f"FROM {_BATCH[dialect]} AS n WHERE true ON CONFLICT (who) DO UPDATE SET "
        "loss = dither_person.loss + excluded.loss, delta = dither_person.delta + excluded.delta"
    )
