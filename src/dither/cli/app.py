"""``dither``: the commands."""

from __future__ import annotations

import sys
from functools import cache, partial
from typing import Any

import typer

from dither import __version__
from dither.cli import guard, printing
from dither.cli.options import (
    AuditOptions,
    BackupOptions,
    BudgetOptions,
    Command,
    CommandGroup,
    DemoOptions,
    InitOptions,
    OutputOptions,
    ProfileOptions,
    PublishOptions,
    ReportOptions,
    RestoreOptions,
    SeriesOptions,
    ServeOptions,
    SynthesizeOptions,
    expand_options,
)
from dither.tables.options import ReleaseOptions

_SUMMARY = "Differentially private answers from your tables."

# a pretty traceback shows local variables, and those hold data
app = typer.Typer(cls=CommandGroup, no_args_is_help=True, pretty_exceptions_enable=False, help=_SUMMARY)

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


def _print_version(asked: bool) -> None:
    """Print the version and exit, if the option was passed."""
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
@expand_options
def demo(*, options: DemoOptions) -> None:
    """Run a demo: a made-up shop, from its card to a page, with the true numbers beside each answer."""
    from dither.cli import demo as demo_command

    demo_command.run(options.rows, options.folder)


@app.command(cls=Command)
@expand_options
def init(sources: list[str] = _SOURCES, *, options: InitOptions) -> None:
    """Draft a card for one or several tables from their schema.

    The first cells of text columns are read to propose types and formats, which are only printed.
    """
    from dither.cli import tables

    tables.init(sources, options)


@app.command(cls=Command)
def check(card: str = _CARD_OR_URL) -> None:
    """Validate a card and list what is missing.

    For each column it counts the cells of the source that do not have the type of the card.
    """
    from dither.cli import tables

    tables.check(card)


@app.command(cls=Command)
@expand_options
def query(card: str = _CARD_OR_URL, sql: str = _SQL, *, options: ReleaseOptions, output: OutputOptions) -> None:
    """Answer a SQL question privately, with errors, cost and remaining budget."""
    from dither.cli import tables

    if output.dry_run:
        tables.explain(card, sql, options)
    else:
        tables.query(card, sql, options, output)


@app.command(cls=Command)
@partial(expand_options, taken=lambda option: option.metadata["planned"])
def explain(card: str = _CARD_OR_URL, sql: str = _SQL, *, options: ReleaseOptions) -> None:
    """Show mechanisms, expected errors and cost of a question, without reading data or charging."""
    from dither.cli import tables

    tables.explain(card, sql, options)


@app.command(cls=Command)
@expand_options
def profile(card: str = _CARD_OR_URL, *, options: ProfileOptions) -> None:
    """Show the profile of a card's tables, or buy one: histograms of every column, for one charge."""
    from dither.cli import tables

    tables.show_or_buy_profile(card, options)


@app.command(cls=Command)
@expand_options
def publish(
    plan: str = typer.Argument(metavar="PLAN", help="A plan of tables: a .toml file; with --draft, a card."),
    *,
    options: PublishOptions,
) -> None:
    """Publish a plan of consistent tables with errors, whole counts and records, for one charge."""
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
    """Generate synthetic records of a table, subject to public rules, for one charge."""
    from dither.cli import publish as commands

    (commands.explain_synthesis if options.dry_run else commands.synthesize)(card, options)


@app.command(cls=Command)
@expand_options
def series(
    card: str = _CARD,
    name: str = typer.Argument(
        metavar="NAME", help="The name of the series, which is a section series.NAME of the card."
    ),
    *,
    options: SeriesOptions,
) -> None:
    """Release a time series, all points so far; one charge covers it, and published points never change."""
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
    """Show limits, spending and remaining budget of a ledger; change a limit or reopen a dataset."""
    from dither.cli import budget as commands

    commands.run(ledger, options)


@app.command(cls=Command)
@expand_options
def serve(
    folder: str = typer.Argument(metavar="FOLDER", help="A folder with cards, and plans of publications."),
    *,
    options: ServeOptions,
) -> None:
    """Serve tables on the web, with sign-in, roles and a JSON API; no role can read rows."""
    from dither.cli import serve as commands

    commands.serve(folder, options)


@app.command(cls=Command)
@expand_options
def backup(
    folder: str = typer.Argument(metavar="FOLDER", help="A served folder; the server may be running."),
    into: str = typer.Argument(metavar="BACKUP", help="A new folder for the copy."),
    *,
    options: BackupOptions,
) -> None:
    """Back up ledgers, server database and cards of a served folder, consistently, and verify the copy."""
    from dither.cli import serve as commands

    commands.backup(folder, into, options)


@app.command(cls=Command)
@expand_options
def restore(
    source: str = typer.Argument(metavar="BACKUP", help="A folder that dither backup has made."),
    folder: str = typer.Argument(metavar="FOLDER", help="The folder to restore; its server must be stopped."),
    *,
    options: RestoreOptions,
) -> None:
    """Restore missing or damaged files from a backup and report losses; receipts are never restored."""
    from dither.cli import serve as commands

    commands.restore(source, folder, options)


@app.command(cls=Command)
@expand_options
def report(*, options: ReportOptions) -> None:
    """Write a NIST SP 800-226 deployment record."""
    from dither.cli import budget as commands

    commands.report(options)


@app.command(cls=Command)
@expand_options
def audit(
    target: str | None = typer.Argument(
        None, metavar="FILE.py:FUNCTION", help="Your function to audit; all built-in mechanisms if omitted."
    ),
    *,
    options: AuditOptions,
) -> None:
    """Certify, measure and replay mechanisms, and print claims with evidence; exit with 1 if a claim is refuted."""
    from dither.cli import audit as commands

    if target is None:
        commands.audit_subjects(options)
    else:
        commands.audit_function(target, options)


@cache
def command() -> Any:
    """Build the click command of all commands, once, since that takes tens of milliseconds."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the command line and exit: 2 after an error, which is one line, and 130 after Ctrl-C."""
    printing.prepare()
    sys.exit(guard.run(lambda: command()(standalone_mode=False, prog_name="dither")))
