"""The page ``docs/claims.md``: what the lecture documents say, checked. ``python tests/claims/claims.py`` writes it."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from pathlib import Path

from claim import CONDITIONS, FAILS, HOLDS, Claim

PAGE = Path(__file__).parents[2] / "docs" / "claims.md"
VERDICTS = (HOLDS, CONDITIONS, FAILS)
DOCUMENTS = {
    1: (
        "Class notes 4",
        "the exponential mechanism, releasing a density, testing",
        ["notes_on_densities", "notes_on_testing"],
    ),
    2: (
        "Foundations of Data Privacy, lectures 17 to 20",
        "composition, mixed noise, smooth sensitivity, bounded noise, selection, gradient descent",
        ["advances_noise", "advances_smooth", "advances_outputs", "advances_descent", "advances_learning"],
    ),
    3: (
        "Solving selection problems privately, lecture 6",
        "the exponential mechanism and its utility",
        ["selection_lecture"],
    ),
    4: ("Differential privacy, slides", "the Laplace mechanism and report noisy max", ["laplace_slides"]),
    5: ("The science of data ethics", "Laplace, exponential mechanism, composition, budgets", ["ethics_lecture"]),
}

HEAD = """# Claims of the sources, checked

The methods here come from five lecture documents. They contradict each other in places, and some of what they say is
wrong. This page lists what they claim, in our words, with our verdict and the computation behind it. It is written by
`python tests/claims/claims.py`; the tests run every computation again, hold it against the verdict, and compare this
page with what comes out. Nothing is drawn at random: all figures are enumerations, integrals, closed forms or bounds.

* *holds*: the computation finds it true as stated. A computation covers cases, not all of them; proofs are in the
  sources. A remark may follow.
* *holds with conditions*: false as stated, in a case that is given, true under the condition that is given.
* *fails*: false as stated, in a case that is given; the correction is checked too. Misprints count, since somebody
  may implement them.

Left out: opinions, news, motivation, and definitions without a claim. Neighbours differ in one *replaced* record,
except in document 4, where one is *added or removed*.
"""


def everything() -> list[Claim]:
    """All claims, in the order of the documents."""
    return [
        claim
        for _, _, modules in DOCUMENTS.values()
        for name in modules
        for claim in importlib.import_module(name).claims.rows
    ]


def tidy(figures: str) -> str:
    """Minus signs instead of hyphens, where they are not part of an exponent."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", figures)


def row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def page() -> str:
    """The whole page, with every computation run."""
    claims = everything()
    tally = Counter((claim.document, claim.verdict) for claim in claims)
    lines = [HEAD, row("document", "about", *VERDICTS, "all"), "|---|---|---:|---:|---:|---:|"]
    for number, (title, about, _) in DOCUMENTS.items():
        counts = [tally[number, verdict] for verdict in VERDICTS]
        lines.append(row(f"{number}. {title}", about, *(str(c) for c in counts), str(sum(counts))))
    totals = [sum(tally[number, verdict] for number in DOCUMENTS) for verdict in VERDICTS]
    lines += [row("all", "", *(str(c) for c in totals), str(sum(totals))), "", "## What fails", ""]
    failing = [claim for claim in claims if claim.verdict == FAILS]
    lines += [f"* {c.document}, {c.where}: {c.statement} **{c.note}**" for c in failing]
    for number, (title, _, _) in DOCUMENTS.items():
        lines += [
            "",
            f"## {number}. {title}",
            "",
            row("where", "claim", "verdict", "condition, correction, remark", "computation"),
        ]
        lines.append("|---|---|---|---|---|")
        for c in claims:
            if c.document == number:
                verdict = f"**{c.verdict}**" if c.verdict != HOLDS else c.verdict
                lines.append(row(c.where, c.statement, verdict, c.note, tidy(c.check())))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
