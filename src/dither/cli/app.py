"""``dither``: the commands."""

from __future__ import annotations

import sys

import typer

from dither import __version__
from dither.cli import demo as demo_command
from dither.errors import DitherError

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Answers about people that give none of them away.")


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


def main() -> None:
    """Run the command line; errors are one line and a status of 2, an interrupt one of 130."""
    try:
        app()
    except DitherError as error:
        typer.echo(f"dither: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
