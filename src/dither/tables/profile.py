"""A profile of the private tables of a card: released once, recorded in the ledger, and public from then on.

The steps are those of everything that is paid (:mod:`dither.release.pipeline`), with one charge. What is measured, with
which noise, says :mod:`dither.tables.planning.profile_plan`; :mod:`dither.tables.compile.marginals` has the statements
and the proofs of their sensitivities. Only whole numbers for each bin, key or layer leave the engine, and each gets its
noise here: nothing else is done with them before.

The newest profile that a ledger holds for a dataset is found again without any charge (:func:`recorded_profile`). What
the card no longer says the same of is left out: a table that is gone or names its people by another column, and a
column that is gone or has another type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dither.budget_hooks import charging_to
from dither.errors import InvalidArgument, LedgerError, fix_by_options
from dither.guarantees import ZCDP
from dither.ledger import Ledger
from dither.ledger.recorded import decode, encode
from dither.mechanisms import Gaussian
from dither.release import pipeline
from dither.release.pipeline import ChargedTable, with_progress
from dither.tables.card.model import Card, arrow_type
from dither.tables.card.profile import (
    ColumnProfile,
    NoisyHistogram,
    NoisyKeys,
    NoisyNumber,
    Profile,
    TableProfile,
)
from dither.tables.codec import from_json, to_json
from dither.tables.compile import statements
from dither.tables.compile.context import Statement, StatementContext
from dither.tables.compile.marginals import (
    KeyCodes,
    ValueCodes,
    WholeCodes,
    column_name,
    key_layers,
    profile_limits,
    weights_by_code,
)
from dither.tables.compile.statements import Measure
from dither.tables.execute.recorded_key import card_digest
from dither.tables.execute.release import AskedPeople
from dither.tables.planning.automatic import EDGES
from dither.tables.planning.profile_plan import (
    KEY_EDGES,
    ColumnPlan,
    Part,
    ProfilePlan,
    TablePlan,
    choose_classes,
    coarse_edges,
    days_since_1970,
)
from dither.tables.query.tree import Column, Group, Query

VERSION = 1
"""Of the canonical form of a request for a profile, and of what is recorded."""
_COLUMNS_OF_A_STATEMENT = 16
_KIND = "profile"

Run = Callable[[Statement], Any]
Counts = NDArray[np.int64]


def release_profile(
    table: ChargedTable, plan: ProfilePlan, *, analyst: str | None = None, again: bool = False, force: bool = False
) -> Profile:
    """Charge, measure, record, and return a profile; one that is recorded for this request is returned for free."""
    pipeline.check(table, plan.guarantee)
    request = pipeline.identify(
        _content(plan), plan.guarantee, analyst=analyst, again=again, prefix=pipeline.PROFILE_KEY
    )
    if not force and not pipeline.is_recorded(table, plan.guarantee, request, analyst):
        refuse_invisible(plan)
    engine: Any = table.engine
    engine.check()
    started = datetime.now(UTC).replace(microsecond=0)
    contexts = [_context(plan.card, item, engine) for item in plan.tables]
    for item, context in zip(plan.tables, contexts, strict=True):
        empty = {"": engine.empty_of(item.name)}
        for statement in _statements(item, context):
            engine.rehearse(statement.on(empty))

    def compute(paid: Sequence[StatementContext], _: pipeline.ReleaseNotes) -> bytes:
        """Return the bytes of the profile, measured by statements about the people who paid."""

        def measured(run: Run) -> bytes:
            """Return the bytes of the profile; ``run`` runs a statement."""
            with charging_to(None):  # it is paid for
                return _stored(plan, Profile(measure(plan, paid, run), plan.guarantee, started))

        return with_progress(
            measured, engine.run, lambda: sum(len(_statements(*pair)) for pair in zip(plan.tables, paid, strict=True))
        )

    paid = pipeline.release(table, plan.guarantee, request, AskedPeople(engine, contexts), compute, analyst)
    return _in_order(_restored(paid.stored)[0], plan.card)


def refuse_invisible(plan: ProfilePlan) -> None:
    """Refuse a profile in which noise would hide every bin of every table, as far as the card states their rows.

    There are no more people than rows. Twice the least budget is advised, in which the fullest bins can be seen. Noise
    is in proportion to ``1 / epsilon``, or to the root of ``1 / rho``.
    """
    known = {name: table.rows for name, table in plan.card.private_tables.items() if table.rows is not None}
    if len(known) < len(plan.tables) or max(known.values()) > plan.people_seen:
        return
    times = plan.people_seen / max(max(known.values()), 1)
    of_rho = isinstance(plan.guarantee, ZCDP)
    least = float(plan.guarantee.exact[0]) * (times**2 if of_rho else times)
    option = "rho" if of_rho else "epsilon"
    budget = {option: float(f"{2 * least:.2g}")}
    template = f"pass {{{option}}} or more, leave columns out, or ask for it all the same with force=True"
    expected = f"at least {plan.people_seen:,.0f} people, which is what would be seen in a bin"
    got = f"about {max(known.values()):,} rows, as the card says"
    raise InvalidArgument(option, expected, got, *fix_by_options(template, **budget))


# -- what is asked of the engine --------------------------------------------------------------------------------------


def _context(card: Card, table: TablePlan, engine: Any) -> StatementContext:
    """Return the context of the statements about one private table."""
    own = card.for_table(table.name)
    secret = 0  # nothing is chosen by hashes
    tables = {"": engine.private(table.name)}
    return StatementContext(Query({}), own, (), profile_limits(table.unit is not None), secret, engine.dialect, tables)


def _statements(table: TablePlan, context: StatementContext) -> list[Statement]:
    """Return every statement about a table, with stand-ins for classes and edges that the first look determines."""
    result = [_number_of_rows(context), *(item[0] for item in _coded(table, context))]
    if table.unit is not None:
        result.append(statements.people_by_size(context, EDGES, "rows"))
        edges = {column.name: column.edges for column in _by_rows_columns(table)}
        result += [item[0] for item in _coded_by_class(table, context, (1, 2), edges)]
    for column in table.columns:
        if "private_keys" in column.kinds(False):
            result.append(key_layers(context, column.name, KEY_EDGES))
            if table.unit is not None:
                result.append(_keys_per_person(context, column.name))
    return result


def _number_of_rows(context: StatementContext) -> Statement:
    """Return the statement that counts rows, each of which is a person."""
    return statements.sums(context, [Measure("rows")])


def _keys_per_person(context: StatementContext, column: str) -> Statement:
    """Return the statement that counts people by the number of their different keys, NULL being one."""
    query = Query({}, (Group(column, Column(column)),))
    return statements.people_by_size(replace(context, query=query, keys=(None,)), KEY_EDGES[1:], "groups")


Coded = tuple[Part, str, int]
"""A part that is measured by a code: the column of the code in a statement, and how many codes there are."""


def _coded(table: TablePlan, context: StatementContext) -> list[tuple[Statement, list[Coded]]]:
    """Return the statements for a table's histograms of values, whole numbers and public keys, each with the parts of
    the profile that it measures."""
    items: list[tuple[Part, Any, int]] = []
    for column in table.columns:
        kinds = column.kinds(table.unit is not None)
        if "values" in kinds:
            assert column.edges is not None
            items.append(
                (Part(table.name, column.name, "values"), ValueCodes(column.name, column.edges), len(column.edges))
            )
        if "whole" in kinds:
            items.append((Part(table.name, column.name, "whole"), WholeCodes(column.name), 2))
        if "keys" in kinds:
            codes = _key_codes(column)
            items.append((Part(table.name, column.name, "keys"), codes, len(codes.keys) + 2))
    return _in_statements(context, items, ())


def _coded_by_class(
    table: TablePlan, context: StatementContext, classes: Sequence[int], edges: Mapping[str, Any]
) -> list[tuple[Statement, list[Coded]]]:
    """Return the statements for the histograms of columns by class of rows per person, as :func:`_coded` does."""
    items = [
        (Part(table.name, column.name, "by_rows"), ValueCodes(column.name, edges[column.name]), len(edges[column.name]))
        for column in _by_rows_columns(table)
    ]
    return _in_statements(context, items, classes)


def _by_rows_columns(table: TablePlan) -> list[ColumnPlan]:
    """Return the columns whose values are also measured by class of rows per person."""
    return [column for column in table.columns if "by_rows" in column.kinds(table.unit is not None)]


def _in_statements(
    context: StatementContext, items: Sequence[tuple[Part, Any, int]], classes: Sequence[int]
) -> list[tuple[Statement, list[Coded]]]:
    """Return the statements that measure codes, at most ``_COLUMNS_OF_A_STATEMENT`` in each, with their parts.

    ``items`` are parts with their codes and the number of codes; ``classes`` are the largest numbers of rows of classes
    of people, empty for histograms over all people.
    """
    result = []
    for start in range(0, len(items), _COLUMNS_OF_A_STATEMENT):
        chosen = items[start : start + _COLUMNS_OF_A_STATEMENT]
        own = replace(context, codes=tuple(codes for _, codes, _ in chosen))
        listed = [(part, _code_name(i, codes), size) for i, (part, codes, size) in enumerate(chosen)]
        names = tuple(name for _, name, _ in listed)
        result.append((weights_by_code(own, names, tuple(classes[:-1])), listed))
    return result


def _code_name(place: int, codes: Any) -> str:
    """Return the name of the column that codes number ``place`` of a statement have."""
    return column_name(place, 1) if isinstance(codes, KeyCodes) else f"c{place}"


def _key_codes(column: ColumnPlan) -> KeyCodes:
    """Return the codes of a column's public keys: the index of a key, then one code for other values, and one for
    NULL."""
    assert column.keys is not None
    keys = pa.array(column.keys, arrow_type(column.type))
    size = len(keys)
    codes = {1: np.arange(size, dtype=np.int64)}
    return KeyCodes(column.name, Column(column.name), keys, codes, {1: size + 2}, {1: size}, {1: size + 1})


# -- measuring --------------------------------------------------------------------------------------------------------


def measure(plan: ProfilePlan, contexts: Sequence[StatementContext], run: Run) -> dict[str, TableProfile]:
    """Return the noisy profile of every table: first the people by their number of rows, from which classes of people
    are derived, then all columns, with the budget that is left."""
    measured = {
        table.name: _first_look(plan, table, context, run) for table, context in zip(plan.tables, contexts, strict=True)
    }
    alike = {name for name, table in measured.items() if len(table.classes) < 2}
    rest = plan.after_first_look(alike)
    for table, context in zip(plan.tables, contexts, strict=True):
        known = measured[table.name]
        columns = _columns(rest, table, context, run)
        if known.classes and table.name not in alike:
            columns = _with_classes(rest, table, context, run, known.classes, columns)
        classes = known.classes if table.name not in alike else ()
        measured[table.name] = replace(known, columns=columns, classes=classes)
    return measured


def _first_look(plan: ProfilePlan, table: TablePlan, context: StatementContext, run: Run) -> TableProfile:
    """Return the noisy number of people and histogram of their numbers of rows, and the classes of people derived from
    it."""
    if table.unit is None:
        number = int(run(_number_of_rows(context)).column("m0")[0].as_py())
        return TableProfile(None, total=_number(plan, Part(table.name, "", "total"), number, 1))
    counts = _people(run(statements.people_by_size(context, EDGES, "rows")), EDGES)
    people = _histogram(plan, Part(table.name, "", "people"), counts, tuple(EDGES), 1)
    total = _number(plan, Part(table.name, "", "total"), int(counts.sum()), 1)
    return TableProfile(people, total=total, classes=choose_classes(people))


def _columns(plan: ProfilePlan, table: TablePlan, context: StatementContext, run: Run) -> dict[str, ColumnProfile]:
    """Return the noisy profile of every column over all people, without histograms by class."""
    one = int(context.limits.sensitivity())
    result = {column.name: ColumnProfile(column.type) for column in table.columns}
    edges = {column.name: column.edges for column in table.columns}
    for statement, listed in _coded(table, context):
        lines = run(statement)
        for part, name, size in listed:
            counts, known = _of_code(lines, name, size), result[part.column]
            if part.kind == "values":
                ends = edges[part.column]
                assert ends is not None
                # the last code is NULL, and has its noise with the others
                whole = _histogram(plan, part, counts, _as_numbers(ends), one)
                values = replace(whole, weights=whole.weights[:-1])
                result[part.column] = replace(known, values=values, nulls=whole.weights[-1])
            elif part.kind == "whole":
                result[part.column] = replace(known, whole=_number(plan, part, int(counts[1]), one))
            else:
                keys = next(column.keys for column in table.columns if column.name == part.column)
                assert keys is not None
                law, weights = _noisy(plan, part, counts, one)
                shown = NoisyKeys(keys, weights[: len(keys)], **law)
                result[part.column] = replace(known, keys=shown, nulls=weights[-1])
    for column in table.columns:
        for kind in column.kinds(table.unit is not None):
            part = Part(table.name, column.name, kind)
            if kind == "private_keys":
                lines = run(key_layers(context, column.name, KEY_EDGES))
                sums = np.array([lines.column(i)[0].as_py() for i in range(lines.num_columns)], dtype=np.int64)
                layers = _histogram(plan, part, sums, tuple(KEY_EDGES), one)
                result[column.name] = replace(result[column.name], private_keys=layers)
            elif kind == "keys_per_person":
                ends = KEY_EDGES[1:]
                counts = _people(run(_keys_per_person(context, column.name)), ends)
                people = _histogram(plan, part, counts, tuple(ends), 1)
                result[column.name] = replace(result[column.name], keys_per_person=people)
    return result


def _with_classes(
    plan: ProfilePlan,
    table: TablePlan,
    context: StatementContext,
    run: Run,
    classes: tuple[int, ...],
    columns: Mapping[str, ColumnProfile],
) -> dict[str, ColumnProfile]:
    """Return the columns with histograms by class of rows per person, in bins of about equal weight."""
    one = int(context.limits.sensitivity())
    result = dict(columns)
    coarse: dict[str, tuple[float, ...]] = {}
    for column in _by_rows_columns(table):
        values = columns[column.name].values
        assert values is not None
        coarse[column.name] = coarse_edges(values)
    for statement, listed in _coded_by_class(table, context, classes, coarse):
        lines = run(statement)
        for part, name, size in listed:
            counts = np.stack([_of_code(lines, name, size, place) for place in range(len(classes))])
            law, weights = _noisy(plan, part, counts.ravel(), one)
            by_class = tuple(
                NoisyHistogram(coarse[part.column], weights[size * place : size * (place + 1) - 1], **law)
                for place in range(len(classes))
            )
            result[part.column] = replace(result[part.column], by_rows=by_class)
    return result


def _as_numbers(edges: Sequence[Any]) -> tuple[float, ...]:
    """Return edges as numbers: dates and timestamps in days since 1970-01-01."""
    return tuple(days_since_1970(edge) if isinstance(edge, date) else edge for edge in edges)


def _people(lines: Any, edges: Sequence[int]) -> Counts:
    """Return the exact number of people in each bin, from the result of ``people_by_size``; ``edges`` are the largest
    sizes of the bins."""
    counts = np.zeros(len(edges), dtype=np.int64)
    counts[lines.column("b").to_numpy()] = lines.column("m0").to_numpy()
    return counts


def _of_code(lines: Any, name: str, size: int, place: int | None = None) -> Counts:
    """Return the exact weight of each of ``size`` codes in the column ``name`` of a result, for class number ``place``
    of people (None: there are no classes)."""
    counts = np.zeros(size, dtype=np.int64)
    codes = lines.column(name)
    known = np.asarray(codes.is_valid())
    if place is not None:
        known &= lines.column("q").to_numpy() == place
    rows = np.flatnonzero(known)
    counts[codes.take(rows).to_numpy()] = lines.column("m0").take(rows).to_numpy()
    return counts


def _noisy(plan: ProfilePlan, part: Part, counts: Counts, one: int) -> tuple[dict[str, Any], tuple[float, ...]]:
    """Return the law of the noise (``scale`` and ``normal``) and the noisy counts, both in people. ``counts`` are in
    units of which a person adds at most ``one``."""
    mechanism = plan.noise(part, one)
    released = np.asarray(mechanism.release(counts)).astype(np.float64) / one
    assert isinstance(mechanism.scale, float)
    law = {"scale": mechanism.scale / one, "normal": isinstance(mechanism, Gaussian)}
    return law, tuple(released.tolist())


def _histogram(plan: ProfilePlan, part: Part, counts: Counts, edges: tuple[float, ...], one: int) -> NoisyHistogram:
    """Return the noisy histogram of exact counts, of which one person adds at most ``one``."""
    law, weights = _noisy(plan, part, counts, one)
    return NoisyHistogram(edges, weights, **law)


def _number(plan: ProfilePlan, part: Part, count: int, one: int) -> NoisyNumber:
    """Return the noisy number of an exact count, to which one person adds at most ``one``."""
    law, weights = _noisy(plan, part, np.array([count], dtype=np.int64), one)
    return NoisyNumber(weights[0], **law)


# -- what is recorded -------------------------------------------------------------------------------------------------


def _content(plan: ProfilePlan) -> dict[str, Any]:
    """Return the canonical request: everything on which the numbers and their noise depend. Only profiles have the
    field ``profile``; the empty ``query`` says that it is about all people."""
    about = {
        "columns": {table.name: [column.name for column in table.columns] for table in plan.tables},
        "measured": pipeline.digest([[to_json(column) for column in table.columns] for table in plan.tables]),
        "normal": plan.normal,
    }
    return {"version": VERSION, "profile": about, "query": {}, "card": card_digest(plan.card)}


def _stored(plan: ProfilePlan, profile: Profile) -> bytes:
    """Return a profile as the bytes that are recorded, with what the card said about its tables."""
    tables = plan.card.private_tables
    units = {name: table.unit for name, table in tables.items()}
    types = {table.name: {column.name: column.type for column in table.columns} for table in plan.tables}
    return encode({"is": _KIND, "version": VERSION, "profile": to_json(profile), "units": units, "types": types})


def _restored(stored: bytes) -> tuple[Profile, Mapping[str, Any]]:
    """Return the profile in bytes that were recorded, and all that was recorded with it."""
    content = decode(stored)
    try:
        if content["is"] != _KIND or content["version"] != VERSION:
            raise ValueError("another kind or version")
        profile: Profile = from_json(content["profile"], Profile, _KIND)
        return profile, content
    except (ValueError, KeyError, TypeError):
        fix = "release a profile anew, with again=True"
        raise LedgerError("ledger", "a profile, as it was written", "a different record", fix) from None


def recorded_profile(card: Card, ledger: Ledger | None) -> Profile | None:
    """Return the newest profile of this card's dataset in the ledger, without tables and columns that have changed in
    the card; None where there is none, or nothing of it is left."""
    entry = None if ledger is None else ledger.newest_answer(card.name, pipeline.PROFILE_KEY)
    if entry is None or entry.answer is None:
        return None
    try:
        profile, content = _restored(entry.answer)
    except LedgerError:  # of a later version, say: nothing is known, and questions can be asked as before
        return None
    tables: dict[str, TableProfile] = {}
    for name, table in card.private_tables.items():
        known = profile.tables.get(name)
        if known is not None and name in content["units"] and content["units"][name] == table.unit:
            types = content["types"].get(name, {})
            changed = {column for column, item in table.columns.items() if types.get(column) != item.type}
            tables[name] = replace(known, columns={c: item for c, item in known.columns.items() if c not in changed})
    return _in_order(replace(profile, tables=tables), card) if tables else None


def _in_order(profile: Profile, card: Card) -> Profile:
    """Return a profile with tables and columns in the order of the card, without those that the card lacks."""
    tables = {}
    for name, table in card.private_tables.items():
        if name in profile.tables:
            known = profile.tables[name]
            columns = {column: known.columns[column] for column in table.columns if column in known.columns}
            tables[name] = replace(known, columns=columns)
    return replace(profile, tables=tables)
