"""Where the ``dither`` command starts: outside the package, whose import takes a while and may be interrupted."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; Ctrl-C ends it quietly, also while it is still being loaded."""
    try:
        from dither.cli.app import main as run
    except BaseException as error:
        if _interrupted(error):
            sys.exit(130)
        raise
    run()


def _interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind it; some libraries make an ImportError of it."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


if __name__ == "__main__":
    main()
