"""``dither``: the commands."""

from __future__ import annotations

import sys
from functools import cache, partial
from typing import Any

import typer

from dither import __version__
from dither.cli import guard, printing
from dither.cli.options import (
    BudgetOptions,
    Command,
    Group,
    OutputOptions,
    PublishOptions,
    SeriesOptions,
    SynthesizeOptions,
    expand_options,
)
from dither.tables.options import ReleaseOptions

_SUMMARY = "Differentially private answers from your tables."

# a pretty traceback shows local variables, and those hold data
app = typer.Typer(cls=Group, no_args_is_help=True, pretty_exceptions_enable=False, help=_SUMMARY)

_SOURCES = typer.Argument(
    metavar="SOURCE…",
    help="Parquet or CSV files, file.duckdb::table, postgresql://…::table, or spark::table; several tables about the "
    "same people make one card.",
)
_CARD = typer.Argument(metavar="CARD", help="The card of a table: a .toml file, see dither init.")
_CARD_OR_URL = typer.Argument(
    metavar="CARD|URL",
    help="The card of a table, a .toml file; or a table on a server, https://host/visits (token: DITHER_TOKEN).",
)
_SQL = typer.Argument(metavar="SQL", help="A SELECT statement, in quotes.")
_FORCE = typer.Option(False, "--force", help="Overwrite existing files; never a source, card, ledger, key or receipt.")


def _print_version(asked: bool) -> None:
    if asked:
        printing.echo(__version__)
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(
        False, "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
    ),
) -> None:
    """Differentially private answers from your tables."""


@app.command(cls=Command)
def version() -> None:
    """Print the version."""
    printing.echo(__version__)


@app.command(cls=Command)
def demo(
    rows: int = typer.Option(200_000, min=1000, max=10_000_000, metavar="N", help="How many visits to make up."),
    folder: str = typer.Option("out/demo", metavar="FOLDER", help="Where to write: a new or an empty folder."),
) -> None:
    """Make up a shop's visits and ask about them, from the card to the page, with the truth beside each answer."""
    from dither.cli import demo as demo_command

    demo_command.run(rows, folder)


@app.command(cls=Command)
def init(
    sources: list[str] = _SOURCES,
    unit: str | None = typer.Option(
        None, metavar="COLUMN", help="The column that identifies the person; without it every row is a person."
    ),
    name: str | None = typer.Option(
        None, metavar="NAME", help="The name of the table in questions, or of several tables together."
    ),
    output: str | None = typer.Option(None, metavar="FILE", help="Where to write the card."),
    force: bool = typer.Option(False, "--force", help="Overwrite an existing file, unless it is a card."),
    schema_only: bool = typer.Option(False, "--schema-only", help="Read no rows, and propose no types."),
) -> None:
    """Write a draft of the card of a table, or of several, from the schema.

    Of columns of text the first cells are read, and types and formats that fit are printed, for the steward alone.
    """
    from dither.cli import tables

    tables.init(sources, unit, name, output, force, schema_only)


@app.command(cls=Command)
def check(card: str = _CARD_OR_URL) -> None:
    """Validate a card and list what is missing.

    Cells of the source that do not read as the card says are counted, column by column.
    """
    from dither.cli import tables

    tables.check(card)


@app.command(cls=Command)
@expand_options
def query(card: str = _CARD_OR_URL, sql: str = _SQL, *, options: ReleaseOptions, output: OutputOptions) -> None:
    """Ask a private question: an answer with its errors, its cost, and what is left."""
    from dither.cli import tables

    if output.dry_run:
        tables.explain(card, sql, options)
    else:
        tables.query(card, sql, options, output)


@app.command(cls=Command)
@partial(expand_options, taken=lambda option: option.metadata["planned"])
def explain(card: str = _CARD_OR_URL, sql: str = _SQL, *, options: ReleaseOptions) -> None:
    """Show how a question would be answered, its errors and its cost; no data are read and nothing is charged."""
    from dither.cli import tables

    tables.explain(card, sql, options)


@app.command(cls=Command)
@expand_options
def publish(
    plan: str = typer.Argument(metavar="PLAN", help="A plan of tables: a .toml file; with --draft, a card."),
    *,
    options: PublishOptions,
) -> None:
    """Publish tables that add up, with their errors, whole counts and records, from one plan for one charge."""
    from dither.cli import publish as commands

    if options.draft:
        commands.draft(plan, options.output, options.about, options.force)
    elif options.dry_run:
        commands.explain_plan(plan, options)
    else:
        commands.publish(plan, options)


@app.command(cls=Command)
@expand_options
def synthesize(card: str = _CARD, *, options: SynthesizeOptions) -> None:
    """Make synthetic records of a table, which obey public rules, for one charge."""
    from dither.cli import publish as commands

    (commands.explain_synthesis if options.dry_run else commands.synthesize)(card, options)


@app.command(cls=Command)
@expand_options
def series(
    card: str = _CARD,
    name: str = typer.Argument(metavar="NAME", help="The series, NAME where the card has a section series.NAME."),
    *,
    options: SeriesOptions,
) -> None:
    """Release a series over time: all points so far, for one charge; published points never change."""
    from dither.cli import publish as commands

    (commands.explain_series if options.dry_run else commands.release_series)(card, name, options)


@app.command(cls=Command)
@expand_options
def budget(
    ledger: str = typer.Argument(
        metavar="CARD|LEDGER|URL", help="A card; a ledger: a file, or postgresql://…; or a server: https://…"
    ),
    *,
    options: BudgetOptions,
) -> None:
    """Show what a ledger's accounts may spend, have spent and have left; change a limit, or reopen a dataset."""
    from dither.cli import budget as commands

    commands.run(ledger, options)


@app.command(cls=Command)
def serve(
    folder: str = typer.Argument(metavar="FOLDER", help="A folder with cards, and plans of publications."),
    database: str | None = typer.Option(
        None, metavar="PLACE", help="Where users and answers are kept: a file, or postgresql://…; else in the folder."
    ),
    host: str | None = typer.Option(None, metavar="NAME", help="The address to listen on; else 127.0.0.1."),
    port: int | None = typer.Option(None, min=0, max=65535, metavar="N", help="The port to listen on; else 8765."),
    config: str | None = typer.Option(None, metavar="FILE", help="The configuration; else dither-server.toml."),
    processes: int | None = typer.Option(None, min=1, metavar="N", help="How many; more than 1 needs PostgreSQL."),
    single_steward: bool = typer.Option(False, "--single-steward", help="Let one steward alone raise limits."),
) -> None:
    """Serve tables to people who sign in: a page, and an interface for programs; no role can read rows."""
    from dither.cli import serve as serve_command

    serve_command.serve(folder, database, host, port, config, processes, single_steward)


@app.command(cls=Command)
def backup(
    folder: str = typer.Argument(metavar="FOLDER", help="A served folder; the server may be running."),
    into: str = typer.Argument(metavar="BACKUP", help="A new folder for the copy."),
    keys: str | None = typer.Option(
        None, metavar="FOLDER", help="Copy the ledgers' secrets to this folder, once; keep it apart from the backups."
    ),
    config: str | None = typer.Option(None, metavar="FILE", help="The configuration; else dither-server.toml."),
    database: str | None = typer.Option(None, metavar="PLACE", help="The server's database, as for dither serve."),
) -> None:
    """Copy ledgers, the server's database and cards, consistently, and verify the copy."""
    from dither.cli import serve as serve_command

    serve_command.backup(folder, into, keys, config, database)


@app.command(cls=Command)
def restore(
    source: str = typer.Argument(metavar="BACKUP", help="A folder that dither backup has made."),
    folder: str = typer.Argument(metavar="FOLDER", help="The folder to restore; its server must be stopped."),
    keys: str | None = typer.Option(
        None, metavar="FOLDER", help="The folder with the ledgers' secrets, where they are lost, too."
    ),
    config: str | None = typer.Option(None, metavar="FILE", help="The configuration; else dither-server.toml."),
    database: str | None = typer.Option(None, metavar="PLACE", help="The server's database, as for dither serve."),
    accept_loss: bool = typer.Option(
        False, "--accept-loss", help="Use a ledger that has lost entries: nothing is left in its accounts."
    ),
    signed_by: str | None = typer.Option(
        None, "--signed-by", "--by", metavar="NAME", help="With --accept-loss: who is responsible."
    ),
    reason: str | None = typer.Option(None, metavar="TEXT", help="With --accept-loss: why; it stays in the history."),
) -> None:
    """Restore what is missing or damaged from a backup, and say what was lost; a receipt is never put back."""
    from dither.cli import serve as serve_command

    if serve_command.restore(source, folder, keys, config, database, accept_loss, signed_by, reason):
        raise typer.Exit(1)


@app.command(cls=Command)
def report(
    deployment: str = typer.Option(..., metavar="CARD", help="The card of the table that the record is about."),
    output: str | None = typer.Option(
        None, metavar="FILE", help="Write a .md, .html or .json file instead of printing Markdown."
    ),
    force: bool = _FORCE,
) -> None:
    """Write a NIST SP 800-226 deployment record."""
    from dither.cli import budget as budget_command

    budget_command.report(deployment, output, force)


@app.command(cls=Command)
def audit(
    target: str | None = typer.Argument(
        None, metavar="FILE.py:FUNCTION", help="A function of yours to audit; without it, everything built in."
    ),
    epsilon: float | None = typer.Option(None, metavar="NUMBER", help="The ε that your function claims."),
    delta: float = typer.Option(0.0, metavar="NUMBER", help="The δ that it claims."),
    bounds: tuple[float, float] | None = typer.Option(
        None, metavar="LOWER UPPER", help="The bounds of your records: neighboring datasets are made within them."
    ),
    neighbors: str = typer.Option("replace-one", metavar="NAME", help="add-remove or replace-one."),
    pairs: str | None = typer.Option(
        None, metavar="NAME", help="Instead of bounds: a function in the file that returns (name, x, neighbor) triples."
    ),
    trials: int = typer.Option(
        20_000, min=20, metavar="N", help="How often your function is run on each of two neighbors."
    ),
    only: str | None = typer.Option(None, metavar="TEXT", help="Audit only built-in subjects with this in their name."),
    broken: bool = typer.Option(
        False, "--broken", help="Audit mechanisms known to be broken, and their repairs, instead."
    ),
    seconds: float = typer.Option(1.0, metavar="N", help="About how long to sample each built-in subject."),
    confidence: float = typer.Option(
        0.999, metavar="NUMBER", help="The confidence of a refutation, over the whole audit."
    ),
    json: str | None = typer.Option(None, metavar="FILE", help="Write the findings to this file."),
    html: str | None = typer.Option(None, metavar="FILE", help="Write a page with the trade-off plots to this file."),
    force: bool = _FORCE,
) -> None:
    """Certify, measure and replay: a table of claims and evidence; a status of 1 if any claim is refuted."""
    from dither.cli import audit as audit_command

    if target is None:
        audit_command.audit_subjects(only, broken, seconds, confidence, json, html, force)
    else:
        audit_command.audit_function(
            target, epsilon=epsilon, delta=delta, bounds=bounds, neighbors=neighbors, pairs=pairs, trials=trials,
            confidence=confidence, out=json, page=html, force=force,
        )  # fmt: skip


@cache
def command() -> Any:
    """Return the command line made of these functions, which is made once: that takes tens of milliseconds."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line; errors are one line and a status of 2, an interrupt one of 130."""
    printing.prepare()
    sys.exit(guard.run(lambda: command()(standalone_mode=False, prog_name="dither")))
