"""The tables of a ledger, its version, and every statement that is run on it.

``entry``    the history: only ever appended to, each row hashed together with the one before
``account``  what each account may spend and has spent: sums over the history, kept so that a charge reads one row
``person``   what each person has spent, under a keyed hash of the person's key
``about``    version, and the fingerprint of the key of those hashes
"""

from __future__ import annotations

import sqlalchemy as sa

VERSION = 2

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
    """Entries of one kind, spelled out in the statement: a partial index is not used for a parameter."""
    return entry.c.kind == sa.literal_column(f"'{kind}'")


def _index(name: str, kind: str, *columns: sa.Column[object], unique: bool) -> None:
    sa.Index(name, *columns, unique=unique, sqlite_where=_is(kind), postgresql_where=_is(kind))


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
    sa.Column("population", sa.Text, primary_key=True),
    sa.Column("who", _Whole, primary_key=True, autoincrement=False),
    sa.Column("loss", _Whole, nullable=False),
    sa.Column("delta", _Whole, nullable=False),
    sqlite_with_rowid=False,
)

FORBIDDEN = "the history of a ledger is only ever appended to"


def create(connection: sa.Connection) -> None:
    """Make the tables, and the triggers that refuse to change or delete history."""
    _metadata.create_all(connection, checkfirst=False)
    if connection.dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            connection.exec_driver_sql(
                f"CREATE TRIGGER dither_no_{verb.lower()} BEFORE {verb} ON dither_entry "
                f"BEGIN SELECT RAISE(ABORT, '{FORBIDDEN}'); END"
            )
        # INSERT OR REPLACE deletes what is in its way without asking the triggers
        connection.exec_driver_sql(
            "CREATE TRIGGER dither_no_replace BEFORE INSERT ON dither_entry WHEN EXISTS (SELECT 1 FROM dither_entry "
            "WHERE seq >= NEW.seq) "
            "OR (NEW.kind = 'answer' AND EXISTS (SELECT 1 FROM dither_entry "
            "WHERE kind = 'answer' AND dataset = NEW.dataset AND key = NEW.key)) "
            "OR (NEW.kind = 'incident' AND EXISTS (SELECT 1 FROM dither_entry "
            "WHERE kind = 'incident' AND charge = NEW.charge)) "
            f"BEGIN SELECT RAISE(ABORT, '{FORBIDDEN}'); END"
        )
    else:
        connection.exec_driver_sql(
            "CREATE FUNCTION dither_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{FORBIDDEN}'; END $$"
        )
        connection.exec_driver_sql(
            "CREATE TRIGGER dither_append_only BEFORE UPDATE OR DELETE ON dither_entry "
            "FOR EACH ROW EXECUTE FUNCTION dither_append_only()"
        )
        connection.exec_driver_sql(
            "CREATE TRIGGER dither_no_truncate BEFORE TRUNCATE ON dither_entry "
            "FOR EACH STATEMENT EXECUTE FUNCTION dither_append_only()"
        )
    connection.execute(about.insert(), [{"name": "version", "value": str(VERSION)}])


def _p(name: str) -> sa.BindParameter[object]:
    return sa.bindparam(name)


_entry_columns = (
    entry.c.seq,
    entry.c.at,
    entry.c.kind,
    entry.c.dataset,
    entry.c.key,
    entry.c.charge,
    entry.c.body,
    entry.c.answer,
    entry.c.hash,
)

LAST = sa.select(entry.c.seq, entry.c.hash).order_by(entry.c.seq.desc()).limit(1)
ENTRY = sa.select(*_entry_columns).where(entry.c.seq == _p("seq"))
ENTRIES = sa.select(*_entry_columns).where(entry.c.seq > _p("after")).order_by(entry.c.seq).limit(_p("most"))
ENTRIES_OF = (
    sa.select(*_entry_columns)
    .where(entry.c.seq > _p("after"), entry.c.dataset == _p("dataset"))
    .order_by(entry.c.seq)
    .limit(_p("most"))
)
APPEND = entry.insert().values({column.name: _p(column.name) for column in entry.c})
# the first charge under a key: all of them are for the same request
CHARGED = (
    sa.select(entry.c.seq, entry.c.body)
    .where(_is("charge"), entry.c.dataset == _p("dataset"), entry.c.key == _p("key"))
    .order_by(entry.c.seq)
    .limit(1)
)
ANSWER = sa.select(*_entry_columns).where(_is("answer"), entry.c.dataset == _p("dataset"), entry.c.key == _p("key"))
INCIDENT = sa.select(*_entry_columns).where(_is("incident"), entry.c.charge == _p("charge"))

ACCOUNT = sa.select(account).where(
    account.c.owner == _p("owner"), account.c.kind == _p("kind"), account.c.name == _p("name")
)
_other = account.alias("other")
TOUCHED = sa.select(
    account,
    sa.exists().where(_other.c.owner == _p("owner"), _other.c.kind == "analyst").label("analysts"),
    # the last entry, in the same breath: one journey to the server
    sa.select(entry.c.seq).order_by(entry.c.seq.desc()).limit(1).scalar_subquery().label("last_seq"),
    sa.select(entry.c.hash).order_by(entry.c.seq.desc()).limit(1).scalar_subquery().label("last_hash"),
).where(
    # each column by itself, so that the key finds them: a dataset's own account has no name
    account.c.owner == _p("owner"),
    sa.or_(account.c.kind == "dataset", account.c.kind == "analyst"),
    sa.or_(account.c.name == "", account.c.name == _p("analyst")),
)
ACCOUNTS = sa.select(account).order_by(account.c.owner, account.c.kind, account.c.name)
OPEN = account.insert().values({column.name: _p(column.name) for column in account.c})
SPEND = (
    account.update()
    .where(account.c.owner == _p("owner_"), account.c.kind == _p("kind_"), account.c.name == _p("name_"))
    .values(
        spent_loss=account.c.spent_loss + _p("loss"),
        spent_delta=account.c.spent_delta + _p("delta"),
        checksum=_p("checksum_"),
        sealed=_p("sealed_"),
    )
)
RESTATE = (
    account.update()
    .where(account.c.owner == _p("owner_"), account.c.kind == _p("kind_"), account.c.name == _p("name_"))
    .values(stated=_p("stated_"), unit=_p("unit_"), limit_loss=_p("limit_loss_"), limit_delta=_p("limit_delta_"))
)
COUNT_INCIDENTS = (
    account.update()
    .where(account.c.owner == _p("owner_"), account.c.kind == _p("kind_"), account.c.name == _p("name_"))
    .values(incidents=_p("incidents_"))
)

GET = sa.select(about.c.value).where(about.c.name == _p("name"))
PUT = about.insert().values(name=_p("name"), value=_p("value"))

PEOPLE = (
    sa.select(person.c.who, person.c.loss, person.c.delta)
    .where(person.c.population == _p("population"), person.c.who >= _p("start"))
    .order_by(person.c.who)
    .limit(_p("most"))
)


def _batch(dialect: str) -> sa.FromClause:
    """The keyed hashes of a set of people, handed over in one parameter, as a table of one column."""
    if dialect == "sqlite":
        return sa.func.json_each(sa.bindparam("batch", type_=sa.Text)).table_valued("value")
    return sa.func.unnest(sa.bindparam("batch", type_=sa.ARRAY(sa.BigInteger))).table_valued("value").render_derived()


def exhausted(dialect: str) -> sa.Select[tuple[int]]:
    """Who of a batch has spent more than what leaves room for the charge."""
    return sa.select(person.c.who).where(
        person.c.population == _p("population"),
        person.c.who.in_(sa.select(_batch(dialect).c.value)),
        sa.or_(person.c.loss > _p("room_loss"), person.c.delta > _p("room_delta")),
    )


def charge_people(dialect: str) -> sa.Insert:
    """Charge each of a batch, opening the account of whoever has none."""
    from sqlalchemy.dialects import postgresql, sqlite

    insert = sqlite.insert(person) if dialect == "sqlite" else postgresql.insert(person)
    values = _batch(dialect)
    rows = sa.select(
        sa.cast(_p("population"), sa.Text),
        values.c.value,
        sa.cast(_p("loss"), sa.BigInteger),
        sa.cast(_p("delta"), sa.BigInteger),
    ).where(sa.true())
    new = insert.from_select([column.name for column in person.c], rows)
    return new.on_conflict_do_update(
        index_elements=["population", "who"],
        set_={
            "loss": person.c.loss + new.excluded.loss,
            "delta": person.c.delta + new.excluded.delta,
        },
    )
