"""``python -m dither`` runs the command line."""

from __future__ import annotations

from dither.cli import main

if __name__ == "__main__":
    main()
