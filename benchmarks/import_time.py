"""How long ``import dither`` takes in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
import time

from suite import Row, limited, main

TITLE = "Import"
NOTES = (
    "Wall time of a fresh interpreter that imports the package and ends, best of 5, nothing subtracted; the files are "
    "in the cache of the operating system. The reference does the same with `import numpy` alone.",
    "The lines below it also build a mechanism and make one release, so they show what the first use costs.",
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
    statements = {
        "import numpy": "import numpy",
        "import dither": "import dither",
        "import dither, first Laplace release": "import dither; dither.Laplace(1, 1).release(42)",
        "import dither, first Gaussian release": "import dither; dither.Gaussian(1, 1, 1e-6).release(42)",
    }
    best = best_wall(statements, 1 if quick else 5)
    alone = best.pop("import numpy")
    return [
        limited(what, result, "s", TARGET_S if what == "import dither" else None, f"{alone:.3g} s (import numpy)")
        for what, result in best.items()
    ]


if __name__ == "__main__":
    main(TITLE, NOTES, rows)
