"""The command line: ``dither`` and ``python -m dither``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; Ctrl-C exits with 130, also while modules are being imported."""
    try:
        from dither.cli.app import main as run
    except BaseException as error:
        if _is_interrupt(error):
            sys.exit(130)
        raise
    run()


def _is_interrupt(error: BaseException | None) -> bool:
    """Return whether Ctrl-C caused an error; some libraries turn it into an ImportError."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
