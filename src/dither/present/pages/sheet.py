"""The parts that all pages share: head, foot, and writing to a file. Pages hold no script and load nothing."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from dither.errors import InvalidArgument
from dither.present.markup import escaped

FOOT = "</main>\n</body>\n</html>\n"

_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #ffffff; max-width: 50rem; margin: 2rem auto;
  padding: 0 1rem; }}
h1 {{ font-size: 1.5rem; }}
h2 {{ font-size: 1.15rem; margin-top: 2rem; }}
table {{ border-collapse: collapse; }}
caption {{ text-align: left; color: #444444; padding-bottom: .4rem; max-width: min(46rem, 92vw); }}
th, td {{ text-align: left; padding: .2rem 1rem .2rem 0; border-bottom: 1px solid #c8c8c8; vertical-align: top; }}
td.n, th.n {{ text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
.facts td {{ overflow-wrap: anywhere; }}
.facts th {{ white-space: nowrap; }}
pre {{ background: #f2f2f2; padding: .7rem; white-space: pre-wrap; overflow-wrap: anywhere; }}
code {{ overflow-wrap: anywhere; }}
figure {{ margin: 1rem 0; }}
svg {{ max-width: 100%; height: auto; }}
.wide {{ overflow-x: auto; }}
</style>
</head>
<body>
<main>
"""


def head(title: str) -> str:
    """The page up to its heading.

    >>> head("a < b").endswith("<h1>a &lt; b</h1>\\n")
    True
    """
    return _HEAD.format(title=escaped(title)) + f"<h1>{escaped(title)}</h1>\n"


def write(path: str | os.PathLike[str], page: str) -> None:
    """Write a page to a file; it appears whole or not at all."""
    target = Path(path)
    try:
        handle, fresh = tempfile.mkstemp(dir=target.parent, prefix=".page-", suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as out:
                out.write(page)
            os.chmod(fresh, 0o644)
            os.replace(fresh, target)
        except BaseException:
            os.unlink(fresh)
            raise
    except OSError:
        raise InvalidArgument(
            "report", "a file in a folder that can be written", "another", "choose another place"
        ) from None
