"""The page ``docs/claims.md``: what the lecture documents say, checked. ``python tests/claims/claims.py`` writes it."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from pathlib import Path

from claim import COMPUTATIONS, Checked

from dither.course.documents import documents

PAGE = Path(__file__).parents[2] / "docs" / "claims.md"
VERDICTS = ("holds", "holds with conditions", "misprint", "open", "fails")
MODULES = (
    *("notes_on_densities", "notes_on_testing"),
    *("advances_noise", "advances_smooth", "advances_outputs", "advances_descent", "advances_learning"),
    *("selection_lecture", "laplace_slides", "ethics_lecture"),
)

HEAD = """# Claims of the documents, checked

The methods here come from five lecture documents. They contradict each other in places, and some of what they say is
wrong. This page lists what they claim, in our words, with our verdict and the computation behind it. It is written by
`python tests/claims/claims.py`; the tests run every computation again, hold it against the verdict, and compare this
page with what comes out. Nothing is drawn at random: all figures are enumerations, integrals, closed forms or bounds.

* *holds*: the computation finds it true as stated. A computation covers cases, not all of them; proofs are in the
  sources. A remark may follow.
* *holds with conditions*: false as stated, in a case that is given, true under the condition that is given.
* *misprint*: false as stated because of a sign, factor, index or symbol that the context corrects; so corrected it
  holds.
* *open*: neither shown nor refuted here; the obstacle is given in numbers.
* *fails*: false as stated, in a case that is given; the correction is checked too.

Left out: opinions, news, motivation, and definitions without a claim. Neighbors differ in one *replaced* record,
except in document 4, where one is *added or removed*.
"""


TALLY, TABLE = (f'<div class="{names}">\n' for names in ("claims tally", "claims"))


def everything() -> list[Checked]:
    """All claims with their computations, in the order of the documents."""
    for name in MODULES:
        importlib.import_module(name)
    claims = [claim for item in documents().values() for result in item.results for claim in result.claims]
    return [Checked(claim, COMPUTATIONS[claim.document, claim.place]) for claim in claims]


def tidy(figures: str) -> str:
    """Minus signs instead of hyphens, where they are not part of an exponent."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", figures)


def row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def page() -> str:
    """The whole page, with every computation run."""
    claims = everything()
    tally = Counter((item.claim.document, item.claim.verdict) for item in claims)
    # on a phone the site shows a row of these tables as a block
    lines = [HEAD, TALLY, row("document", "about", *VERDICTS, "all"), "|---|---|" + "---:|" * 6]
    for document in documents().values():
        counts = [tally[document.number, verdict] for verdict in VERDICTS]
        lines.append(row(f"{document.number}. {document.title}", document.about, *map(str, counts), str(sum(counts))))
    totals = [sum(tally[number, verdict] for number in documents()) for verdict in VERDICTS]
    lines += [row("all", "", *map(str, totals), str(sum(totals))), "", "</div>", ""]
    for verdict, heading in (("fails", "What fails"), ("misprint", "Misprints")):
        lines += ["", f"## {heading}", ""]
        failing = [item.claim for item in claims if item.claim.verdict == verdict]
        lines += [f"* {claim.document}, {claim.place}: {claim.printed} **{claim.note}**" for claim in failing]
    for document in documents().values():
        header = row("where", "claim", "verdict", "condition, correction, remark", "computation")
        lines += ["", f"## {document.number}. {document.title}", "", TABLE, header, "|---|---|---|---|---|"]
        for item in claims:
            claim = item.claim
            if claim.document == document.number:
                verdict = f"**{claim.verdict}**" if claim.verdict != "holds" else claim.verdict
                lines.append(row(claim.place, claim.printed, verdict, claim.note, tidy(item.figures())))
        lines += ["", "</div>"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
