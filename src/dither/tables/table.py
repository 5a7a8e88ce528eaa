"""A table that questions can be asked of: its card, its engine and its ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, SupportsIndex

import dither
from dither import arguments
from dither.errors import InvalidArgument, WrongType, message
from dither.guarantees import Guarantee
from dither.ledger import Ledger, Receipt
from dither.present import markup
from dither.present.text import shown
from dither.public_module import public_in
from dither.release.pipeline import IncidentLog, incident_log_beside_card, incident_log_path
from dither.tables.attribute_hints import NotIterable, missing_attribute
from dither.tables.builder.expressions import Condition
from dither.tables.builder.steps import Grouping
from dither.tables.card.accounts import TableAccounts, open_ledger, read_ledger
from dither.tables.card.model import (
    Card,
    ColumnCard,
    PrivateTable,
    Type,
    check_private_tables,
    column_card,
    limited,
    tightened,
    with_people_by_path,
)
from dither.tables.card.profile import Profile
from dither.tables.card.values import clip, closest
from dither.tables.engines import connect
from dither.tables.engines.base import PrivateFolder
from dither.tables.planning.profile_plan import plan_profile
from dither.tables.profile import recorded_profile, release_profile
from dither.tables.query.tree import Aggregate, Query
from dither.tables.question import LOCAL, Backend, Question

_ONLY_HERE = ("accounts", "engine", "incident_log", "ledger", "new_accounts", "new_ledger", "temporary_folder")
"""What a table has only where it was opened, and not through a server."""


@public_in("dither")
class Table(NotIterable):
    """A table with its card, its engine and its accounts in a ledger: what :func:`dither.open` returns.

    ``new_ledger`` says that opening it started a new ledger; ``new_accounts``, that it opened the table's accounts, in
    a new ledger or in one that holds other tables. ``temporary_folder`` holds a ledger that ends with the table.

    A table cannot be copied or pickled: it is open where it was opened.

    >>> import dither as dp, pyarrow as pa
    >>> rows = pa.table({"region": ["north", "south"] * 50})
    >>> with dp.open(rows, keys={"region": ["north", "south"]}, budget=dp.PureDP(1)) as visits:
    ...     print(visits.sql("SELECT COUNT(*) AS n FROM data").release(epsilon=0.5).columns)
    ('n',)
    """

    _completed = ("agg", "card", "close", "group_by", "ledger", "left", "over", "per_person", "profile", "sql", "where")

    def __init__(
        self,
        card: Card,
        source: object,
        accounts: TableAccounts,
        log: IncidentLog,
        *,
        temporary_folder: PrivateFolder | None = None,
        read_only: bool = False,
    ) -> None:
        """Check the card and connect to its source; close the accounts if that fails."""
        self.card = card
        self.backend: Backend = LOCAL
        self.accounts = accounts
        self.incident_log = log
        self.temporary_folder = temporary_folder
        self.read_only = read_only
        try:
            self.new_accounts = accounts.opened_now
            self.new_ledger = accounts.started_ledger
            check_private_tables(card)
            _check_people_pay(card)
            arguments.epsilon(card.min_epsilon, "min_epsilon")
            arguments.whole(card.max_incidents, "max_incidents")
            self.engine = connect(source, card)
        except BaseException:
            accounts.close()
            raise

    @classmethod
    def remote(cls, card: Card, backend: Backend) -> Table:
        """Return a table whose rows and ledger are on a server: ``card`` checks its questions, ``backend`` answers
        them."""
        table = cls.__new__(cls)
        table.card, table.backend, table.read_only = card, backend, False
        return table

    @property
    def ledger(self) -> Ledger:
        """Return the ledger with the table's budget; refused for a table opened read-only that has none yet."""
        return self.accounts.ledger

    def sql(self, text: str, as_of: date | str | None = None) -> Question:
        """Ask a question in SQL. ``as_of`` is the day that CURRENT_DATE stands for: by default the card's, else today
        (UTC)."""
        from dither.tables.query.operations.base import as_date
        from dither.tables.sql import parse as sql
        from dither.tables.sql.parse import named_tables

        about = named_tables(text, self.card) if self.card.tables else ()
        card = self.card.for_table(*about) if about else self.card
        day = as_date(as_of) if isinstance(as_of, str) else as_of
        return Question(self, sql.parse(text, card, day, self.backend.compute_public(self)), text, about)

    def reread(self, question: Question, earlier: Sequence[float]) -> Query:
        """Return the tree of a question in SQL once the questions before it have these answers."""
        from dither.tables.sql import parse as sql

        assert question.text is not None
        compute = self.backend.compute_public(self)
        return sql.parse(question.text, question.card, question.query.as_of, compute, earlier)

    def __getitem__(self, name: object) -> Question:
        """Return a question without aggregates about one of several tables: ``clinic["visits"].agg(n=dp.count())``."""
        tables = self.card.private_tables
        if not isinstance(name, str) or name not in tables:
            if not self.card.tables:
                super().__getitem__(name)
            fix = closest(name, tables) if isinstance(name, str) else "pass its name as text"
            got = repr(clip(name)) if isinstance(name, str) else type(name).__name__
            raise InvalidArgument("table", f"one of {', '.join(tables)}", got, fix)
        return Question(self, Query({}), about=(name,) if self.card.tables else ())

    def _own(self) -> Question:
        """Return a question without aggregates about the card's own table; refused where it has several tables and none
        of its own."""
        if self.card.tables and not self.card.columns:
            names = list(self.card.tables)
            fix = f"say which one: table[{names[0]!r}].agg(…), or sql('SELECT … FROM {names[0]}')"
            raise InvalidArgument("table", f"one of {', '.join(names)}", "none", fix)
        return self[self.card.name] if self.card.tables else Question(self, Query({}))

    def where(self, condition: Condition | Sequence[Condition]) -> Question:
        """Keep only rows for which a condition holds; of several in a list, all must hold."""
        return self._own().where(condition)

    def group_by(self, *groups: Grouping | Sequence[Grouping], **named: Grouping) -> Question:
        """Ask for an answer for each value of these columns or expressions."""
        return self._own().group_by(*groups, **named)

    def agg(self, *unnamed: object, **aggregates: Aggregate) -> Question:
        """State what to ask of all rows together."""
        return self._own().agg(*unnamed, **aggregates)

    def per_person(self, **aggregates: Aggregate) -> Question:
        """Ask of a table with a row for each person: :meth:`dither.Question.per_person`."""
        return self._own().per_person(**aggregates)

    def over(
        self,
        unit: Literal["hour", "day", "week", "month"],
        *,
        column: str,
        horizon: int,
        start: str | date | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        max_participations: int = 1,
        min_separation: int = 1,
        max_rows: int | None = None,
        late: Literal["ignore", "arrival"] = "ignore",
        arrived: str | None = None,
        name: str | None = None,
    ) -> dither.stream.TimeSeriesBuilder:
        """Ask over time, to release period by period for one charge: ``over("day", column="visited_at",
        horizon=365, start="2026-01-01", epsilon=1, delta=1e-9).agg(n=dp.count())`` is a :class:`dither.stream.Series`.

        Parameters
        ----------
        unit
            ``"hour"``, ``"day"``, ``"week"`` (from Monday) or ``"month"``.
        column, horizon, start
            The column of dates or timestamps, how many periods there are, and the first one; where ``start`` is left
            out, the first date of the column's bounds in the card.
        epsilon, delta, rho
            What the whole series costs, once.
        max_participations, min_separation, max_rows
            In how many periods a person counts at most (1), how far apart any two of them are at least (1), and with
            how many rows in each at most (the card's).
        late, arrived
            What becomes of rows that come after their period was released: ``"ignore"`` (they do not count), or
            ``"arrival"``: a row counts on the later of its date and the date in the column ``arrived``.
        name
            A name for the series: the same name goes on with it, and is refused for another one.
        """
        if self.backend is not LOCAL:
            fix = "release a series where its ledger is: dither series CARD NAME"
            raise InvalidArgument("over", "a table that was opened here", "one on a server", fix)
        over: dither.stream.TimeSeriesBuilder = import_module("dither.stream.series").over(
            self,
            unit,
            column=column,
            horizon=horizon,
            start=start,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            max_participations=max_participations,
            min_separation=min_separation,
            max_rows=max_rows,
            late=late,
            arrived=arrived,
            name=name,
        )
        return over

    def profile(
        self,
        epsilon: float | None = None,
        *,
        delta: float | None = None,
        rho: float | None = None,
        columns: Sequence[str] | None = None,
        without: Sequence[str] = (),
        analyst: str | None = None,
        again: bool = False,
        force: bool = False,
    ) -> Profile:
        """Buy a profile: a small noisy description of the private tables, for one charge. It is recorded in the ledger
        and public from then on; what was not stated in later questions is chosen by it.

        Parameters
        ----------
        epsilon, delta, rho
            What it costs. With a delta (the card's, where one is not stated) normal noise is used if it is better; a
            budget in rho may pay in rho.
        columns, without
            The columns that are described (all by default), and those that are left out; in a card of several tables
            also as ``"visits.amount"``. The column that names the person is never described.
        analyst
            Who pays, where analysts have accounts.
        again
            Measure anew, and pay anew, although this very profile was recorded before.
        force
            Measure although the card's number of rows says that nothing can be seen at this cost.

        Examples
        --------
        >>> import dither as dp, pyarrow as pa
        >>> rows = pa.table({"age": [30, 40] * 5000})
        >>> with dp.open(rows, bounds={"age": (0, 120)}, budget=dp.PureDP(1)) as people:
        ...     profile = people.profile(epsilon=0.5)
        ...     assert people.card.profile == profile
        >>> 9_000 < profile.tables["data"].total.value < 11_000
        True
        """
        if self.backend is not LOCAL:
            fix = "have a steward buy it on the page of the table"
            raise InvalidArgument("profile", "a table that was opened here", "one on a server", fix)
        plan = plan_profile(self.card, epsilon, delta=delta, rho=rho, columns=columns, without=without)
        result = release_profile(self, plan, analyst=analyst, again=again, force=force)
        self.card = replace(self.card, profile=recorded_profile(self.card, self.accounts.ledger))
        return result

    @property
    def left(self) -> Guarantee | None:
        """Return what the dataset has left; None for nothing, and where only people have limits."""
        left = self.backend.remaining(self).table
        return left if isinstance(left, Guarantee) else None

    def close(self) -> None:
        """Let go of the engine and the ledger; no question can be released afterwards."""
        self.backend.close(self)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be copied or pickled: a table is open where it was opened."""
        fix = "open it again with dither.open where it is used"
        raise WrongType("Table", "the table that was opened", "a copy or a pickle of it", fix)

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        """Return HTML for a notebook: the columns with what is public about them, and what is left; no rows."""
        card = self.card
        names = ["column", "type", "bounds", "public keys", "person"]
        parts, units = [], []
        for table, item in card.private_tables.items():
            lines = [
                [name, column.type, _bounds_text(column), _keys_text(column), "yes" if name == item.unit else ""]
                for name, column in item.stated_columns.items()
            ]
            unit = "every row is a person of their own" if item.unit is None else str(item.path or item.unit)
            units.append(f"{table}.{unit}" if card.tables else unit)
            parts += [markup.lines([f"{table}, as in FROM {table}"])] if card.tables else []
            parts.append(markup.table(names, lines, [False] * len(names)))
        facts = [("person", ", ".join(units)), ("max_groups", card.max_groups), ("max_rows", card.max_rows)]
        facts.append(("left", self._left_text()))
        title = f"Tables of {card.name}" if card.tables else f"Table {card.name}"
        return markup.block(markup.heading(title), markup.facts(facts), *parts)

    if not TYPE_CHECKING:  # a type checker still finds names that do not exist

        def __getattr__(self, name: str) -> NoReturn:
            """Raise the error for a missing attribute; for names that data frames have, it says what to write here."""
            if name in _ONLY_HERE and "backend" in self.__dict__:
                fix = "do it on the server, or open the table itself with dither.open"
                text = message(f"Table.{name}", "a table that was opened here", "one on a server", fix)
                raise AttributeError(text, name=name, obj=self)
            raise missing_attribute(self, name, self.__dict__["card"].columns if "card" in self.__dict__ else ())

    def _left_text(self) -> str:
        """Return the remaining budget as text; for a closed table, that it is closed."""
        try:
            return str(self.backend.remaining(self))
        except InvalidArgument:
            return "this table is closed; open it again to ask"

    def __repr__(self) -> str:
        if self.card.tables:
            return f"Table({self.card.name!r}, with {', '.join(self.card.private_tables)})"
        return f"Table({self.card.name!r}, {len(self.card.columns)} columns, unit={self.card.unit!r})"


def _bounds_text(column: ColumnCard) -> str:
    """Return the bounds of a column as text; empty where it has none."""
    ends = column.bounds if column.period is None else column.period
    return "" if ends is None else f"{shown(ends[0])} to {shown(ends[1])}"


def _keys_text(column: ColumnCard) -> str:
    """Return the first public keys of a column, and how many there are."""
    if column.keys is None:
        return ""
    first = ", ".join(shown(key) for key in column.keys[:6])
    return first if len(column.keys) <= 6 else f"{first}, … ({len(column.keys):,} in all)"


def _check_people_pay(card: Card) -> None:
    """Refuse a card in which rows without a unit count as people while people have accounts: such rows could not be
    charged."""
    if card.counts_rows_without_unit and card.each_person is not None:
        fix = "drop such rows, or have a budget for the whole table"
        raise InvalidArgument("rows_without_unit", '"drop" where people have budgets of their own', '"each"', fix)


def open(
    source: Any,
    *,
    unit: str | Mapping[str, str] | None = None,
    bounds: Mapping[str, tuple[float, float] | tuple[date, date]] | None = None,
    keys: Mapping[str, Any] | None = None,
    budget: Guarantee | None = None,
    name: str = "data",
    max_groups: int | Literal["auto"] = 1,
    max_rows: int | Literal["auto"] = 1,
    delta: float | None = None,
    ledger: str | None = None,
    receipt: Receipt | str | None = None,
    read_only: bool = False,
    max_incidents: int | None = None,
    min_epsilon: float | None = None,
    types: Mapping[str, Type] | None = None,
    rows: int | None = None,
) -> Table:
    """Open a table by its card, or a frame or files with what a card would say.

    Parameters
    ----------
    source
        What to open, one of

        * the path of a card, which ends in ``.toml`` (``"visits.toml"``), or a :class:`~dither.tables.card.model.Card`;
        * a pandas, Polars, Arrow or Spark frame, or a DuckDB relation;
        * a path or glob of Parquet or CSV files (``"visits/*.parquet"``, ``"visits.csv"``, ``"visits.csv.gz"``), or a
          table as ``"file.duckdb::table"``, ``"postgresql://user@host/db::table"`` or ``"spark::table"``. Every column
          of a CSV file is text unless ``types`` says otherwise;
        * several tables about the same people, by their names in SQL: ``{"visits": frame, "patients": frame_2}``.

        Without a card, what it would say is stated by the arguments below.
    unit, bounds, keys, budget, name, max_groups, max_rows, delta
        Without a card: what it would say. ``unit`` names the column of the person; without it every row is a person
        of their own. ``budget`` is needed. Of several tables ``unit`` is one name, or one for each table (or a path to
        the person, such as ``"orders via order_id = id"``), and a column
        is called ``"amount"`` in whatever table, or ``"visits.amount"``.
    ledger
        Where to keep the budget. Without a card, by default in a temporary file: it then lasts as long as the table.
    receipt
        The last receipt that was kept, or its text: a ledger that does not hold it is refused. By default the one in
        the file that the card names, if it does.
    read_only
        To check and explain: a ledger is neither made nor changed, and nothing can be released.
    max_incidents
        After this many errors while rows were read the table is closed until its steward reopens it; by default what
        the card says, or 3. Beside a card it may only be smaller than what the card says.
    min_epsilon
        The least epsilon of a question; by default what the card says, or 1e-4. Beside a card it may only be larger.
    types
        Without a card: the types of the columns, as in ``{"age": "integer"}``, where they are not those of its schema.
        They are never guessed from the values: a column of Python objects needs one. Each value is read as that type by
        itself, and is NULL where it does not fit. pandas chooses a column's dtype by its values (one missing whole
        number makes all of them floats), so declare the types of what came from a list or a file.
    rows
        Without a card: about how many rows there are, if that is public. An ``error="1%"`` is a percentage of it.

    Examples
    --------
    >>> import pyarrow as pa, dither as dp
    >>> with dp.open(pa.table({"age": [30, 40] * 50}), bounds={"age": (0, 120)}, budget=dp.PureDP(1)) as people:
    ...     print(people.sql("SELECT AVG(age) AS mean FROM data").release(epsilon=1).columns)
    ('mean',)
    """
    from dither.tables.card import toml

    if isinstance(source, (str, Path)) and str(source).endswith(".toml"):
        card = toml.read(source)
        log = incident_log_beside_card(card.incident_log, card.name, ledger or card.ledger, source)
        card = replace(card, incident_log=log)
        return _opened(tightened(card, max_incidents, min_epsilon), card.sources, ledger, receipt, read_only)
    if isinstance(source, Card):
        card = with_people_by_path(source)
        return _opened(tightened(card, max_incidents, min_epsilon), card.sources, ledger, receipt, read_only)
    if budget is None:
        fix = "pass budget=dither.PureDP(1)"
        if isinstance(source, (str, Path)):
            fix += ", or the path of a card, which ends in .toml"
        raise InvalidArgument("budget", "what may ever be learned", "none", fix)
    stated = StatedColumns(unit, bounds or {}, keys or {}, types or {})
    if isinstance(source, Mapping):
        tables = {table: stated.private_table(item, table) for table, item in source.items()}
        stated.check_names({table: item.columns for table, item in tables.items()})
        card = Card(name, "", {}, None, max_groups, max_rows, budget=budget, delta=delta, tables=tables)
        card = with_people_by_path(card)
        if rows is not None:
            fix = "leave it out, or write a card and state rows for each table"
            raise InvalidArgument("rows", "one table", "several", fix)
    else:
        own = stated.private_table(source, None)
        stated.check_names({"": own.columns})
        card = Card(name, "", own.columns, own.unit, max_groups, max_rows, budget=budget, delta=delta)
    card = limited(
        replace(card, rows=None if rows is None else arguments.whole(rows, "rows")), max_incidents, min_epsilon
    )
    if ledger is not None:
        return _opened(card, source, ledger, receipt, read_only)
    folder = PrivateFolder()
    try:
        return _opened(card, source, f"{folder.name}/ledger.sqlite", receipt, read_only, folder)
    except BaseException:
        folder.remove()
        raise


def _opened(
    card: Card,
    source: object,
    place: str | None,
    receipt: Receipt | str | None,
    read_only: bool,
    temporary_folder: PrivateFolder | None = None,
) -> Table:
    """Return an opened table. Its ledger is opened first, so that one that a receipt disproves is refused before any
    row is read.

    ``place`` is the ledger's path or address, None for that of the card. ``temporary_folder`` holds a ledger that ends
    with the table.
    """
    where = place if place is not None else card.ledger
    if where is None and not read_only:
        raise InvalidArgument("ledger", "the path or address of a ledger", "none", "state it in the card")
    ledger, opened_now = None, False
    if where is not None and read_only:
        ledger = read_ledger(card, where, receipt)
    elif where is not None:
        ledger, opened_now = open_ledger(card, where, receipt)
    card = replace(card, profile=None if opened_now else recorded_profile(card, ledger))
    accounts = TableAccounts(card, ledger, temporary=temporary_folder is not None, opened_now=opened_now)
    log = IncidentLog(incident_log_path(card.incident_log, card.name, where or ""))
    return Table(card, source, accounts, log, temporary_folder=temporary_folder, read_only=read_only)


@dataclass(frozen=True)
class StatedColumns:
    """What the arguments of :func:`open` say about columns, by name: ``amount`` of any table, ``visits.amount`` of
    one."""

    unit: str | Mapping[str, str] | None
    bounds: Mapping[str, Any]
    keys: Mapping[str, Any]
    types: Mapping[str, Type]

    def private_table(self, source: object, table: str | None) -> PrivateTable:
        """Return a table as its schema and the arguments describe it."""
        from dither.tables.builder.expressions import distinct_keys
        from dither.tables.card import toml

        unit, path = self._unit_of(table), None
        types = self._of_table(self.types, table)
        with connect(source, types=types) as engine:
            present = engine.source_columns()
            schema = engine.schema(unit) | {column: type for column, type in types.items() if column in present}
        if unit is not None and unit not in schema and table is not None:
            path = toml.path_in(unit)
            unit = unit if path is None else None
        if unit is not None and unit not in schema:
            raise InvalidArgument("column", f"one of {', '.join(schema)}", unit, "correct the name")
        bounds, keys = self._of_table(self.bounds, table), self._of_table(self.keys, table)
        columns = {
            column: column_card(
                column,
                kind,
                bounds.get(column),
                None if column not in keys else distinct_keys(keys[column], f"keys of {column}"),
            )
            for column, kind in schema.items()
        }
        return PrivateTable("", columns, unit, path=path)

    def _unit_of(self, table: str | None) -> str | None:
        """Return the column that names the person in a table; None where every row is a person of its own."""
        if not isinstance(self.unit, Mapping):
            return self.unit
        if table is None or table not in self.unit:
            fix = "name the column of each table that says which person a row is about"
            raise InvalidArgument("unit", f"a column of {table or 'the table'}", "none", fix)
        return self.unit[table]

    @staticmethod
    def _of_table(stated: Mapping[str, Any], table: str | None) -> dict[str, Any]:
        """Return what is stated of a table's columns, by column: ``visits.amount`` overrides ``amount`` in the table
        visits."""
        if table is None:
            return dict(stated)
        start = f"{table}."
        return dict(stated) | {name[len(start) :]: item for name, item in stated.items() if name.startswith(start)}

    def check_names(self, tables: Mapping[str, Mapping[str, ColumnCard]]) -> None:
        """Refuse what is stated of a column that no table has."""
        known = {name for columns in tables.values() for name in columns}
        known |= {f"{table}.{name}" for table, columns in tables.items() if table for name in columns}
        for name in sorted({*self.bounds, *self.keys, *self.types} - known):
            raise InvalidArgument("column", f"one of {', '.join(sorted(known))}", name, "correct the name")
