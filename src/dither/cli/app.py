"""``dither``: the commands."""

from __future__ import annotations

import sys

import typer

from dither import __version__
from dither.cli import guard, printing

# a pretty traceback shows local variables, and those hold data
app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Answers about people that give none of them away.",
)


@app.callback()
def root() -> None:
    """Answers about people that give none of them away."""


@app.command()
def version() -> None:
    """Print the version."""
    printing.echo(__version__)


@app.command()
def demo(
    rows: int = typer.Option(200_000, min=1000, max=10_000_000, help="How many visits to make up."),
    folder: str = typer.Option("out/demo", help="A folder of the demo's own, new or empty."),
) -> None:
    """Make up a shop's visits and ask about them, from the card to the page, with the truth beside each answer."""
    from dither.cli import demo as demo_command

    demo_command.run(rows, folder)


@app.command()
def init(
    source: str = typer.Argument(help="Parquet or CSV files, file.duckdb::table, postgresql://…::table, spark::table."),
    unit: str | None = typer.Option(None, help="The column that names the person; without it every row is a person."),
    name: str | None = typer.Option(None, help="The table's name in questions."),
    output: str | None = typer.Option(None, help="Where to write the card."),
    force: bool = typer.Option(False, "--force", help="Write over an existing file, unless it is a card."),
) -> None:
    """Write a draft of a table's card from its schema; the data are not read."""
    from dither.cli import tables

    tables.init(source, unit, name, output, force)


@app.command()
def check(card: str = typer.Argument(help="A card.")) -> None:
    """Say what a card leaves open, and what each gap will forbid."""
    from dither.cli import tables

    tables.check(card)


_CARD = typer.Argument(help="A card.")
_SQL = typer.Argument(help="A SELECT statement.")
_EPSILON = typer.Option(None, help="The privacy loss to spend.")
_ERROR = typer.Option(None, help="Instead: the error that is good enough for every count and sum (95 %).")
_DELTA = typer.Option(None, help="The delta to spend, where one is needed.")
_GROUPS = typer.Option(None, help="How many groups of a person count: a number, or auto.")
_ROWS = typer.Option(None, help="How many rows of a person count in each group.")
_NOISE = typer.Option("best", help="best, laplace or gaussian.")
_OTHER = typer.Option(False, "--other", help="One more row for all groups that are not shown.")
_FORCE = typer.Option(
    False, "--force", help="Write over files that exist; never over a source, card, ledger, key or receipt."
)
_CONSISTENT = typer.Option(False, "--consistent", help="Groups add up to a grand total.")


@app.command()
def query(
    card: str = _CARD,
    sql: str = _SQL,
    epsilon: float | None = _EPSILON,
    error: float | None = _ERROR,
    delta: float | None = _DELTA,
    max_groups: str | None = _GROUPS,
    max_rows: int | None = _ROWS,
    noise: str = _NOISE,
    consistent: bool = _CONSISTENT,
    other: bool = _OTHER,
    nonnegative: bool = typer.Option(False, "--nonnegative", help="No count or sum below 0."),
    integer: bool = typer.Option(False, "--integer", help="Counts and sums as whole numbers."),
    analyst: str | None = typer.Option(None, help="Who asks."),
    key: str | None = typer.Option(None, help="A name for this release: asked again, it returns the same answer."),
    again: bool = typer.Option(False, "--again", help="Ask anew, and pay anew, even if this was asked before."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Explain only: read no data, charge nothing."),
    format: str | None = typer.Option(None, help="json, csv or parquet instead of a table."),
    output: str | None = typer.Option(None, help="Write the answer to this file."),
    plot: str | None = typer.Option(None, help="Plot the answer to this file."),
    report: str | None = typer.Option(None, help="Write a page about the answer to this .html file."),
    receipt: str | None = typer.Option(None, help="The last receipt you kept: an older copy of the ledger is refused."),
    force: bool = _FORCE,
) -> None:
    """Ask a private question: an answer with its errors, its cost, and what is left."""
    from dither.cli import tables
    from dither.tables.options import ReleaseOptions

    options = ReleaseOptions(
        epsilon=epsilon, error=error, delta=delta, max_groups=tables.max_groups_option(max_groups), max_rows=max_rows,
        noise=tables.noise_option(noise), consistent=consistent, other=other, nonnegative=nonnegative, integer=integer,
        analyst=analyst, key=key, again=again,
    )  # fmt: skip
    if dry_run:
        tables.explain(card, sql, options)
    else:
        tables.query(card, sql, options, tables.OutputOptions(format, output, plot, report, force, receipt))


@app.command()
def explain(
    card: str = _CARD,
    sql: str = _SQL,
    epsilon: float | None = _EPSILON,
    error: float | None = _ERROR,
    delta: float | None = _DELTA,
    max_groups: str | None = _GROUPS,
    max_rows: int | None = _ROWS,
    noise: str = _NOISE,
    consistent: bool = _CONSISTENT,
    other: bool = _OTHER,
    analyst: str | None = typer.Option(None, help="Who would ask."),
) -> None:
    """Show how a question would be answered, its errors and its cost; no data are read and nothing is charged."""
    from dither.cli import tables
    from dither.tables.options import ReleaseOptions

    options = ReleaseOptions(
        epsilon=epsilon, error=error, delta=delta, max_groups=tables.max_groups_option(max_groups), max_rows=max_rows,
        noise=tables.noise_option(noise), consistent=consistent, other=other, analyst=analyst,
    )  # fmt: skip
    tables.explain(card, sql, options)


@app.command()
def budget(
    ledger: str = typer.Argument(help="A card, or a ledger: a file, or postgresql://…"),
    dataset: str | None = typer.Option(None, help="Only this dataset."),
    history: bool = typer.Option(False, "--history", help="Show every entry."),
    verify: bool = typer.Option(False, "--verify", help="Check every entry and every account."),
    receipt: str | None = typer.Option(None, help="The last receipt you kept: an older copy is refused."),
    export: str | None = typer.Option(None, help="Write the history to a .json or .csv file."),
    plot: str | None = typer.Option(None, help="Plot a dataset's spending to this file."),
    force: bool = typer.Option(
        False, "--force", help="Write over files that exist; with --set, also a limit below what is spent."
    ),
    set_: str | None = typer.Option(None, "--set", help="A new limit: epsilon=2, epsilon=2,delta=1e-6 or rho=0.5."),
    analyst: str | None = typer.Option(None, help="With --set: the limit of this analyst."),
    each_person: bool = typer.Option(False, "--each-person", help="With --set: the limit of each person."),
    reopen: bool = typer.Option(False, "--reopen", help="Take questions again after incidents."),
    signed_by: str | None = typer.Option(None, help="With --set or --reopen: who is responsible."),
    reason: str | None = typer.Option(None, help="With --set or --reopen: why; it stays in the history."),
) -> None:
    """Show what a ledger's accounts may spend, have spent and have left; change a limit, or reopen a dataset."""
    from dither.cli import budget as budget_command

    change = budget_command.Change(set_, analyst, each_person, reopen, signed_by, reason)
    wanted = budget_command.Wanted(history, verify, receipt, export, plot, force)
    budget_command.run(ledger, dataset, wanted, change)


@app.command()
def audit(
    target: str | None = typer.Argument(None, help="FILE.py:function, to audit your own; else all that is built in."),
    epsilon: float | None = typer.Option(None, help="What your function claims."),
    delta: float = typer.Option(0.0, help="And at which delta."),
    bounds: tuple[float, float] | None = typer.Option(None, help="The bounds of your records: neighbors are made."),
    neighbors: str = typer.Option("replace-one", help="add-remove or replace-one."),
    pairs: str | None = typer.Option(None, help="Instead: a function in the file that gives (name, x, neighbor)."),
    trials: int = typer.Option(20_000, min=20, help="Runs of your function a side, for each pair that is measured."),
    only: str | None = typer.Option(None, help="Of what is built in, only names with this in them."),
    broken: bool = typer.Option(False, "--broken", help="Instead: mechanisms known to be broken, and their repairs."),
    seconds: float = typer.Option(1.0, help="About how long to sample each of what is built in."),
    confidence: float = typer.Option(0.999, help="How sure a refutation must be, over the whole audit."),
    json: str | None = typer.Option(None, help="Write what was found to this file."),
    html: str | None = typer.Option(None, help="Write a page with the trade-off plots to this file."),
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


def main() -> None:
    """Run the command line; errors are one line and a status of 2, an interrupt one of 130."""
    printing.prepare()
    sys.exit(guard.run(lambda: app(standalone_mode=False, prog_name="dither")))


if __name__ == "__main__":
    main()
