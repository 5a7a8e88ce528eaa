"""How long ``import dither`` takes in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
import time

from suite import Row, limited, main

TITLE = "Import"
NOTES = (
    "Wall time of a fresh interpreter that imports the package and ends, best of 5, nothing subtracted; the files are in the cache of the operating system. "
    "The reference does the same with `import numpy` alone.",
)

TARGET_S = 0.35


def best_wall(statements: dict[str, str], repeats: int) -> dict[str, float]:
    """The best wall time of an interpreter that runs each statement, taking turns."""
    best = dict.fromkeys(statements, float("inf"))
    for _ in range(repeats):
        for name, statement in statements.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def rows(quick: bool = False) -> list[Row]:
    """All of the suite."""
    best = best_wall({"ours": "import dither", "numpy": "import numpy"}, 2 if quick else 5)
    return [limited("`import dither`", best["ours"], "s", TARGET_S, f"{best['numpy']:.3g} s (numpy alone)")]


if __name__ == "__main__":
    main(TITLE, NOTES, rows)
