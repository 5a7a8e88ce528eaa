"""``dither init``, ``check``, ``query`` and ``explain``.

``dither profile``: show the newest profile of a card, forecast one, or buy one.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from textwrap import indent
from typing import Any

from dither.cli import printing
from dither.cli.files import (
    OutputFiles,
    is_url,
    of_card,
    open_remote,
    open_table,
    read_card,
    refuse_on_server,
    source_files,
)
from dither.cli.guard import explaining_failures
from dither.cli.options import InitOptions, OutputOptions, ProfileOptions
from dither.cli.printing import busy, echo, is_terminal, item
from dither.errors import InvalidArgument
from dither.present.text import table as text_table
from dither.present.text import two_digits
from dither.tables import draft
from dither.tables.answer import Answer
from dither.tables.card import toml
from dither.tables.card.model import Card, PersonPath, PrivateTable
from dither.tables.card.profile import Profile
from dither.tables.codec import to_json
from dither.tables.engines.conversions import UnreadCells, cells_without_key, marked_people, unread_cells
from dither.tables.execute.shape_answer import output_columns
from dither.tables.options import ReleaseOptions
from dither.tables.planning.plan import QuestionPlan
from dither.tables.planning.profile_plan import Kind, ProfilePlan, plan_profile
from dither.tables.query.tree import Column

FORMATS = ("json", "csv", "parquet")


def init(sources: list[str], options: InitOptions) -> None:
    """Write a draft card for one or several tables, and print which types and formats their text columns may have.

    The card is public and follows from the schema alone. The proposals follow from rows, so they are printed for the
    steward and written to no file.

    ``sources`` are files or addresses of tables; with several, each becomes a section named after its file.
    """
    named: dict[str, object] = {}
    for source in sources:
        title = draft.title_of(source)
        if title in named:
            fix = "rename one of the files, or write the section of the second by hand"
            raise InvalidArgument("SOURCE", "sources of different names", f"{title} twice", fix)
        named[title] = source
    text = draft.draft(named if len(sources) > 1 else sources[0], options.unit, options.name)
    stem = _stem(sources[0]) if len(sources) == 1 else options.name or "dataset"
    path = f"{stem}.toml" if options.output is None else options.output
    protected = {file for source in sources for file in source_files(source)}
    with OutputFiles(force=options.force, protected=protected) as outputs:
        outputs.add("--output", path)
        outputs.write("--output", lambda room: Path(room).write_text(text, encoding="utf-8"))
    item(
        f"{path}: a draft, from the schema only. Fill in the public bounds and keys, then run: dither check {path}", ""
    )
    if not options.schema_only:
        _print_proposals(named, options.unit)
    offer = f"dither profile {path} --epsilon 1 shows every column, and makes later answers more accurate"
    item(f"Once the card is complete: {offer}", "")


def _print_proposals(sources: Mapping[str, object], unit: str | None) -> None:
    """Print the types and formats that fit almost all cells of text columns, for the steward to choose from.

    ``sources`` maps the name of each table to its source; ``unit`` is the column of person keys, which is skipped
    (None: not known).
    """
    from dither.tables.engines import connect
    from dither.tables.engines.conversions import proposed_types

    lines: list[tuple[str, str, str]] = []
    for table, source in sources.items():
        with connect(source) as engine, busy("looking at the cells…"):
            texts = [column for column, type in engine.schema(unit).items() if type == "text" and column != unit]
            for column, proposal in proposed_types(engine, texts).items():
                name = f"{table}.{column}" if len(sources) > 1 else column
                words = "\nor ".join(map(str, proposal.readings))
                lines.append((name, words, f"{proposal.readings[0].read:,} of {proposal.tried:,}"))
    if lines:
        echo()
        item("Found in the first cells, and printed here only. Copy into the card what you know to be right:", "")
        echo(indent("\n".join(text_table(("column", "reads as", "cells"), lines, rule=False)), "  "))


def _stem(source: str) -> str:
    """Return the name of a table from its source."""
    database, _, table = source.rpartition("::")
    return table.rpartition(".")[2] if database else (Path(source).stem.strip("*?.[]") or "table")


def check(path: str) -> None:
    """Validate the card at ``path``, a file or the address of a table on a server, and list what is missing.

    For a file, all cells are read, to report those that do not fit the card. These reports are for the steward: they
    are not private.
    """
    if is_url(path):
        with open_remote(path) as table:
            _print_tables(table.card.private_tables)
            gaps = [gap for gap in toml.gaps(table.card) if not gap.startswith("no ledger")]
            for gap in gaps:
                item(gap)
            echo(f"{path}: {_complete(gaps)}; left: {table.backend.remaining(table)}")
            item(_profile_state(path, table.card), "")
        return
    card = toml.read(path)
    _print_tables(card.tables)
    gaps = [*_unfilled(path, card), *toml.gaps(card)]
    for gap in gaps:
        item(gap)
    with open_table(path, read_only=True) as table, busy("reading the cells…"):
        table.engine.check()
        table.engine.check_people()
        unread, strange = unread_cells(table.engine), cells_without_key(table.engine)
        marked = marked_people(table.engine)
        by_path = {name: item.path for name, item in table.card.private_tables.items() if item.path is not None}
        beyond = {name: table.engine.count_beyond_path(name) for name in by_path}
        profile = _profile_state(path, table.card)
    several = len(card.private_tables) > 1
    for cells in unread:
        item(_in_words(cells, several))
    for column in strange:
        name = f"{column.table}.{column.column}" if several else column.column
        item(
            f"{name}: {column.without:,} of {column.cells:,} cells are none of its {column.keys} public keys: their "
            "rows are in no group. Fix: add what is missing to keys, or correct the cells: case and spaces count"
        )
    for people in marked:
        name = f"{people.table}.{people.column}" if several else people.column
        item(
            f"{name}: {people.rows:,} rows have NA, - or the like as their person, and count as one person. Fix: make "
            "these cells empty: rows without a person are excluded"
        )
    for name, person_path in by_path.items():
        for line in _beyond_path(name, person_path, *beyond[name]):
            item(line)
    sources = "sources" if card.tables else "source"
    wrong = sum(cells.markers < cells.unread for cells in unread)
    agree = f"{wrong} column(s) with cells that cannot be read" if wrong else f"{sources} and card agree"
    echo(f"{path}: {_complete(gaps)}; {agree}")
    item(profile, "")


def _beyond_path(table: str, path: PersonPath, unreached: int, repeated: int) -> list[str]:
    """Describe rows of a table that reach nobody by its path, and keys of the path's next table with several rows."""
    result = []
    if unreached:
        result.append(f"{table}: {unreached:,} rows lead to nobody by {path}, and are in no answer")
    if repeated:
        keys = ", ".join(key for _, key in path.keys)
        result.append(
            f"{path.table}: {repeated:,} keys ({keys}) have several rows: where these are of several people, {table} "
            "counts for the first of them alone. Fix: make the key unique, or choose another path"
        )
    return result


def _profile_state(path: str, card: Card) -> str:
    """Return a sentence on the newest profile of a card, or on how to buy one."""
    if card.profile is None:
        if is_url(path):
            return "no profile yet; it makes later answers more accurate: a steward buys it on the page of the table"
        return f"no profile yet; it makes later answers more accurate: dither profile {path} --dry-run shows its cost"
    missing = [
        f"{name}.{column}" if card.tables else column
        for name, table in card.private_tables.items()
        for column in table.stated_columns
        if column != table.unit and (name not in card.profile.tables or column not in card.profile.tables[name].columns)
    ]
    released = card.profile.released
    when = "" if released is None else f" of {released:%Y-%m-%d}"
    people = ", ".join(map(card.profile.heading, card.profile.tables))
    return f"a profile{when} for {card.profile.cost}: {people}" + (f"; without {', '.join(missing)}" if missing else "")


def _print_tables(tables: Mapping[str, PrivateTable]) -> None:
    """Print the name, the number of columns and the person of each table."""
    for name, table in tables.items():
        person = table.unit or "each row" if table.path is None else f"that of {table.path}"
        echo(f"table {name}: {len(table.stated_columns)} columns, the person is {person}")


def _complete(gaps: list[str]) -> str:
    """Format the number of gaps."""
    return f"{len(gaps)} gap(s)" if gaps else "complete"


def _in_words(cells: UnreadCells, with_table: bool) -> str:
    """Return a sentence on cells that do not have the type of the card, with a fix; ``with_table`` adds the table's
    name."""
    name = f"{cells.table}.{cells.column}" if with_table else cells.column
    if cells.markers == cells.unread:
        return f"{name}: {cells.unread:,} of {cells.cells:,} cells are NA, - or the like, and count as empty"
    problem = f"{name}: {cells.unread:,} of {cells.cells:,} cells cannot be read as {cells.type}, and count as empty"
    if cells.markers:
        problem += f" ({cells.markers:,} of them are NA, - or the like)"
    if not cells.better:
        return f"{problem}. Fix: correct the type, state its format, or correct the cells"
    forms = " or ".join(map(str, cells.better))
    read = f"reads {cells.better[0].read:,} of the first {cells.tried:,}"
    if len(cells.better) == 1:
        return f"{problem}. Fix: write {forms}, which {read}"
    return f"{problem}. Fix: write {forms}; each {read}, and they mean different values: only you know which is right"


def _unfilled(path: str, card: Card) -> list[str]:
    """Return a gap about the columns of a drafted card whose type is not filled in yet; empty if there are none."""
    columns = []
    for *prefix, name in draft.unfilled(Path(path).read_text(encoding="utf-8")):
        of_table = card.for_table(prefix[1]) if prefix[0] == "tables" else card
        if name in of_table.columns and of_table.columns[name].keys is None:
            columns.append(".".join([*prefix[1:-1], name]))
    if not columns:
        return []
    return [
        f"to be filled in: {', '.join(columns)}; each is still of type text, without SUM, AVG and comparisons with "
        "numbers; write its type, or remove the comment if it is text"
    ]


def explain(path: str, sql: str, options: ReleaseOptions) -> None:
    """Print the explanation of the question ``sql``: mechanisms, expected errors, cost and remaining budget."""
    with open_remote(path) if is_url(path) else open_table(path, read_only=True) as table:
        for line in str(table.sql(sql).explain(options=options)).splitlines():
            item(line, "")


def query(path: str, sql: str, options: ReleaseOptions, output: OutputOptions) -> None:
    """Ask the question ``sql``, and print, write or plot its answer.

    ``path`` is the file of a card or the address of a table on a server. ``options`` are those of the release,
    ``output`` the files and formats. Everything that can fail without the answer is checked before the charge.
    """
    format = output.format
    if format is not None and format not in FORMATS:
        raise InvalidArgument("--format", "json, csv or parquet", str(format), "choose one of these")
    if format == "parquet" and output.output is None:
        raise InvalidArgument("--output", "a file for Parquet", "none", "pass --output answer.parquet")
    ending = Path(output.output or "").suffix.lower().lstrip(".")
    if format is not None and ending in FORMATS and ending != format:
        raise InvalidArgument(
            "--output", f"a file that ends in .{format}, as --format says", f".{ending}", "leave one of them out"
        )
    if is_url(path):
        refuse_on_server("--receipt", output.receipt)
    card = None if is_url(path) else read_card(path)
    with OutputFiles(force=output.overwrite, protected=set() if card is None else of_card(path, card)) as outputs:
        outputs.add("--output", output.output, FORMATS if format is None else ())
        outputs.add_plot(output.plot)
        outputs.add("--report", output.report, ("html", "htm"))
        with open_remote(path) if card is None else open_table(path, card=card, receipt=output.receipt) as table:
            question = table.sql(sql)
            plan = question.plan(options=options) if card is not None or output.plot or output.report else None
            plotted = None if plan is None else _plotted_column(output.plot, plan)
            # an explanation made before the release does not contain limits that are chosen privately; the notes do
            explained = (
                output.report is not None and plan is not None and not any(part.automatic for part in plan.parts)
            )
            explanation = table.backend.explain(question, options, plan) if explained else None
            with (  # on a server the ledger is out of reach
                nullcontext() if card is None else explaining_failures(str(card.ledger), card.name, "question", sql)
            ):
                with nullcontext() if card is None else busy("asking…"):
                    answer = table.backend.release(question, options, plan)
                _write(outputs, output, answer, plotted, explanation, table, sql)


def _plotted_column(path: str | None, plan: QuestionPlan) -> str | None:
    """Return the column that a plot of the answer will show: the first with one noisy number per group.

    ``path`` is the file of the plot, and the result is None without one. An answer without such a column is refused.
    """
    if path is None:
        return None
    by_sql = output_columns(plan)
    if by_sql is not None:  # by SQL: the first column of numbers that is not a group
        groups = {group.name for part in plan.parts for group in part.query.groups}
        for name, kind in zip(by_sql.names, by_sql.types, strict=True):
            if kind in ("integer", "number") and name not in groups:
                return name
    aggregates = {} if by_sql is not None else plan.query.aggregates
    shown = plan.query.shape.columns or {name: Column(name) for name in aggregates}
    for name, source in shown.items():
        aggregate = aggregates.get(source.name) if isinstance(source, Column) else None
        if aggregate is not None and aggregate.kind not in ("histogram", "mode"):
            return name
    raise InvalidArgument(
        "--plot", "an answer with a column of noisy numbers", "none", "ask for a count, a sum or a mean as well"
    )


def _print(answer: Answer, verbose: bool) -> None:
    """Print an answer's table, and below it cost and notes folded to the width of the terminal; ``verbose`` prints all
    notes."""
    echo(answer.text(more="--format csv prints all").removesuffix(answer.summary()), end="")
    for line in answer.summary(verbose=verbose, more="--verbose").splitlines():
        item(line, "")


def _write(
    outputs: OutputFiles,
    output: OutputOptions,
    answer: Answer,
    plotted: str | None,
    explanation: Any,
    table: Any,
    sql: str,
) -> None:
    """Print the answer, and write the files that were asked for.

    ``output`` has the user's options, ``outputs`` the files reserved for them; ``plotted`` is the column of the plot,
    and None if there is none. The page about the answer also shows ``explanation`` (None: none), the history of the
    ledger where ``table`` is on this machine, and the question ``sql``.
    """
    outputs.write("--output", lambda room: answer.write(room, output.format))
    if output.output is not None or output.format is not None:  # then stdout is for programs, or empty
        echo(answer.summary(verbose=output.verbose, more="--verbose"), err=True)
    if output.output is not None:
        echo(f"written to {output.output}", err=True)
    if output.output is None:
        if output.format is None:
            _print(answer, output.verbose)
        elif output.format == "json":
            echo(answer.to_json())
        elif is_terminal():
            echo(answer.to_csv().replace("\r\n", "\n"), end="")
        else:
            sys.stdout.write(answer.to_csv())  # without escapes: a program that reads a pipe needs the exact keys
    outputs.write_plot(lambda axes: answer.plot(plotted, axes=axes), min(100.0, max(6.0, 0.3 * len(answer))))
    if output.report is not None:
        from dither.present import write_html

        history = table.ledger.history(table.card.name) if hasattr(table, "accounts") else None
        title = f"A private answer about {table.card.name}"
        page = {"explanation": explanation, "history": history, "question": sql}
        outputs.write("--report", lambda room: write_html(room, answer, title, **page))


_WIDTH = 100
_MEASURED: dict[Kind, str] = {
    "people": "people by their number of rows",
    "total": "the number of people",
    "values": "people by value, in bins",
    "by_rows": "the same by rows per person",
    "whole": "how many values are whole numbers",
    "keys": "people by public key",
    "private_keys": "keys that are not public, by their number of people",
    "keys_per_person": "people by their number of different keys",
}


def show_or_buy_profile(path: str, options: ProfileOptions) -> None:
    """Show the newest profile if no cost is stated; otherwise buy one and show it, or forecast it.

    ``path`` is the file of a card or the address of a table on a server, whose profiles can only be shown. The cost is
    ``options.epsilon`` or ``options.rho``; ``options.dry_run`` forecasts, at epsilon 1 without a cost.
    """
    buys = options.epsilon is not None or options.rho is not None
    if is_url(path):
        if buys:
            fix = "have a steward buy it on the page of the table; without --epsilon the newest one is shown"
            raise InvalidArgument("--epsilon", "none for a table on a server", "one", fix)
        with open_remote(path) as remote:
            _show(remote.card.profile, path, options)
        return
    card = read_card(path)
    with OutputFiles(force=options.force, protected=of_card(path, card)) as outputs:
        outputs.add("--report", options.report, ("html", "htm"))
        if options.dry_run or not buys:
            with open_table(path, card=card, read_only=True) as opened:
                if not options.dry_run:
                    _show(opened.card.profile, path, options, outputs)
                    return
                epsilon = 1.0 if not buys else options.epsilon
                plan = plan_profile(opened.card, epsilon, delta=options.delta, rho=options.rho, **_columns(options))
                _print_forecast(plan)
                item(f"left: {opened.backend.remaining(opened)}", "")
            return
        with open_table(path, card=card, receipt=options.receipt) as opened:
            with explaining_failures(str(card.ledger), card.name, "profile"), busy("counting…"):
                profile = opened.profile(
                    options.epsilon,
                    delta=options.delta,
                    rho=options.rho,
                    analyst=options.analyst,
                    again=options.again,
                    force=options.yes,
                    **_columns(options),
                )
            _show(profile, path, options, outputs)
            if not options.json:
                item(f"left: {opened.backend.remaining(opened)}", "")


def _columns(options: ProfileOptions) -> dict[str, list[str]]:
    """Return the columns to describe and those to leave out, as keywords."""
    given = {"columns": options.columns, "without": options.without}
    return {
        name: [part.strip() for part in text.split(",") if part.strip()]
        for name, text in given.items()
        if text is not None
    }


def _show(profile: Profile | None, path: str, options: ProfileOptions, outputs: OutputFiles | None = None) -> None:
    """Print a profile as text or JSON, and write its page to the file ``options.report``, if one is stated.

    A ``profile`` of None is refused, with how to buy one for the card at ``path``. ``outputs`` is None if no file can
    be written.
    """
    if profile is None:
        fix = f"dither profile {path} --dry-run shows what one would show, --epsilon 1 buys it"
        raise InvalidArgument("profile", "a profile in the ledger", "none", fix)
    if outputs is not None and options.report is not None:
        from dither.present import write_html

        outputs.write("--report", lambda room: write_html(room, profile, "A private profile"))
    if options.json:
        echo(json.dumps(to_json(profile)))
        return
    width = min(shutil.get_terminal_size().columns, _WIDTH) if is_terminal() else _WIDTH
    echo(profile.text(width))


def _print_forecast(plan: ProfilePlan) -> None:
    """Print what the profile of a ``plan`` would measure, with the ± of each number in people, and its cost.

    The ± is 1.96 standard deviations of the noise, a 95 % interval of a normal law.
    """
    kinds = dict.fromkeys(part.kind for part in plan.parts)
    rows = [(_MEASURED[kind], f"± {two_digits(1.96 * plan.deviation(kind))}") for kind in kinds]
    printing.table(["what", "each number, in people"], rows)
    echo()
    item(f"A bin stands out from the noise if it has at least about {two_digits(plan.people_seen)} people.", "")
    item(f"cost: {plan.guarantee}, once; later questions are planned with it for free", "")
