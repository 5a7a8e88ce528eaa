"""``dither``: the commands."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import typer

from dither import __version__
from dither.cli import demo as demo_command
from dither.errors import DitherError

_USAGE: type[Any] = typer.BadParameter.__mro__[2]  # ClickException, of whichever click typer brings

# a pretty traceback shows local variables, and those hold data
app = typer.Typer(
    add_completion=False,
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
    typer.echo(__version__)


@app.command()
def demo(
    people: int = typer.Option(10_000, min=1, max=10_000_000, help="How many people to make up."),
    epsilon: float = typer.Option(1.0, help="The privacy loss of the whole summary."),
) -> None:
    """Summarise a made-up table of people privately, and explain each line."""
    demo_command.run(people, epsilon)


@app.command()
def budget(
    ledger: str = typer.Argument(help="A ledger: a file, or postgresql://…"),
    dataset: str | None = typer.Option(None, help="Only this dataset."),
    history: bool = typer.Option(False, "--history", help="Show every entry."),
    verify: bool = typer.Option(False, "--verify", help="Check every entry and every account."),
    receipt: str | None = typer.Option(None, help="The last receipt you kept: an older copy is refused."),
    export: str | None = typer.Option(None, help="Write the history to a .json or .csv file."),
    plot: str | None = typer.Option(None, help="Plot a dataset's spending to this file."),
) -> None:
    """Show what a ledger's accounts may spend, have spent and have left."""
    from dither.cli import budget as budget_command

    budget_command.run(ledger, dataset, history, verify, receipt, export, plot)


def main() -> None:
    """Run the command line; errors are one line and a status of 2, an interrupt one of 130."""
    try:
        sys.exit(app(standalone_mode=False))
    except DitherError as error:
        _stop(str(error), 2)
    except _USAGE as error:
        _stop(error.format_message(), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)


def _stop(reason: str, status: int) -> NoReturn:
    if reason:  # none where the help was shown instead
        typer.echo(f"dither: {reason}", err=True)
    sys.exit(status)


if __name__ == "__main__":
    main()
