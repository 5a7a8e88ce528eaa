"""One page of HTML about one answer. It holds no script, loads nothing, and is the same for the same answer."""

from __future__ import annotations

import os
from collections.abc import Iterable
from fractions import Fraction

from dither.errors import InvalidArgument
from dither.ledger import Entry, Receipt
from dither.ledger.accounts import promised
from dither.ledger.units import DELTA_UNIT, LOSS_UNIT
from dither.present import words
from dither.present.bars import chart, columns
from dither.present.markup import escaped
from dither.present.notes import kinds_of, lasting
from dither.present.pages.sheet import FOOT, head, write
from dither.tables.answer import Answer, is_total
from dither.tables.planning.explain import Explanation

MAX_ROWS = 1000
MAX_CHARTS = 4
MAX_ENTRIES = 50


def html(
    answer: Answer,
    explanation: Explanation | None = None,
    history: Iterable[Entry] | None = None,
    title: str = "A private answer",
    *,
    question: str | None = None,
) -> str:
    """The page, as text.

    Parameters
    ----------
    answer
        What :meth:`~dither.tables.table.Question.release` returned.
    explanation
        What :meth:`~dither.tables.table.Question.explain` returned for the same question: adds the mechanisms.
    history
        ``table.ledger.history(table.card.name)``: adds what was spent so far. Of other questions only their cost is
        shown; what was asked is for whoever may read the ledger.
    title, question
        What to call the page, and the question as it was asked.

    Examples
    --------
    >>> from dither.guarantees import PureDP
    >>> from dither.tables.answer import Answer
    >>> answer = Answer(("word", "n"), ("text", "integer"), (("<script>x</script>", 9),), {"n": (6.0,)}, PureDP(1))
    >>> "<script" in html(answer), "&lt;script&gt;" in html(answer)
    (False, True)
    """
    if not isinstance(answer, Answer):
        raise InvalidArgument("answer", "an answer", type(answer).__name__, "pass what release() returned")
    entries = None if history is None else list(history)
    rows_are_people = explanation is not None and explanation.rows_are_people
    parts = [head(title)]
    if question is not None:
        parts.append(f"<h2>The question</h2>\n<pre><code>{_lines(question)}</code></pre>\n")
    parts += ["<h2>The answer</h2>\n", _table(answer)]
    parts += [f"<figure>\n{chart(answer, name)}</figure>\n" for name in columns(answer)[:MAX_CHARTS] if answer.rows]
    parts.append(_cost(answer, entries))
    if explanation is not None:
        parts.append(_mechanisms(explanation))
    if entries is not None:
        parts.append(_spending(entries, answer))
    parts.append("<h2>What is guaranteed</h2>\n" + _listed(words.guaranteed(answer, rows_are_people)))
    parts.append("<h2>What is not</h2>\n" + _listed(words.not_guaranteed(answer)))
    parts.append(FOOT)
    return "".join(parts)


def write_html(
    path: str | os.PathLike[str],
    answer: Answer,
    explanation: Explanation | None = None,
    history: Iterable[Entry] | None = None,
    title: str = "A private answer",
    *,
    question: str | None = None,
) -> None:
    """Write the page to a file; it appears whole or not at all.

    >>> from dither.guarantees import PureDP
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dither.tables.answer import Answer
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_html(folder + "/answer.html", Answer(("n",), ("integer",), ((7,),), {"n": (6.0,)}, PureDP(1)))
    ...     Path(folder, "answer.html").read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    write(path, html(answer, explanation, history, title, question=question))


def _lines(text: str) -> str:
    """Escaped, with its lines kept."""
    return "\n".join(escaped(line) for line in text.splitlines())


_ABBREVIATIONS = {
    "error": "error by the noise, 95 %",
    "population error": "error by the noise and by sampling, 95 %",
    "probability": "how probable it is that nothing is more common",
    "low by": "about how much the limits leave out",
}


def _table(answer: Answer) -> str:
    headings, rows = answer.table(MAX_ROWS)
    head, lines = [], []
    for j, heading in enumerate(headings):
        side = ' class="n"' if heading.numeric and (j > 0 or heading.kind != "key") else ""
        text = escaped(heading.text)
        if heading.kind in _ABBREVIATIONS:
            text = f'<abbr title="{_ABBREVIATIONS[heading.kind]}">{text}</abbr>'
        head.append(f'<th scope="col"{side}>{text}</th>')
    for row in rows:
        cells = []
        for j, (heading, text_of_cell) in enumerate(zip(headings, row, strict=True)):
            cell = "<em>NULL</em>" if text_of_cell is None else escaped(text_of_cell)
            side = ' class="n"' if heading.numeric else ""
            if j == 0 and heading.kind == "key":
                cells.append(f'<th scope="row">{cell}</th>')
            else:
                cells.append(f"<td{side}>{cell}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>\n")
    return (
        f'<div class="wide">\n<table>\n<caption>{_caption(answer)}</caption>\n<thead><tr>{"".join(head)}</tr></thead>\n'
        f"<tbody>\n{''.join(lines)}</tbody>\n</table>\n</div>\n"
    )


def _caption(answer: Answer) -> str:
    """What the numbers of the table mean."""
    more = len(answer.rows) - MAX_ROWS
    parts = ["Noisy values; ± is how far the noise may have moved each, with 95 % confidence."]
    if answer.left_out and is_total(answer):
        parts.append(
            "What the limits on one person’s rows leave out comes on top: “low by” is an estimate of it with the "
            "range in which it lies, or the least that it is."
        )
    elif "undercount_unknown" in kinds_of(answer.notes):
        parts.append(
            "What the limits on one person’s rows leave out comes on top: counts and sums may be low by an unknown "
            "amount."
        )
    if more > 0:
        parts.append(f"The first {MAX_ROWS:,} rows; {more:,} more are in the answer.")
    if not answer.rows:
        parts.append("No group has enough people to be shown.")
    return " ".join(parts)


def _cost(answer: Answer, entries: list[Entry] | None) -> str:
    paid = " (paid earlier: this is the recorded answer)" if answer.replayed else ""
    facts = [("cost", f"{answer.cost}{paid}")]
    left = _nothing(entries) if answer.remaining is None else str(answer.remaining)
    if left is not None:
        facts.append(("left of the budget", left))
    facts += [("note", str(note)) for note in lasting(answer.notes)]
    if answer.receipt:
        facts.append(("receipt", answer.receipt))
    lines = "".join(f'<tr><th scope="row">{name}</th><td>{escaped(text)}</td></tr>\n' for name, text in facts)
    after = "<p>Keep the receipt: a ledger that does not hold it has lost entries.</p>\n" if answer.receipt else ""
    return (
        '<h2>What it cost</h2>\n<table class="facts">\n<caption>Cost, and what may still be asked.</caption>\n'
        f"<tbody>\n{lines}</tbody>\n</table>\n{after}"
    )


def _nothing(entries: list[Entry] | None) -> str | None:
    """What is left where the answer names nothing: nothing, or what each person has, which is private."""
    for entry in entries or ():
        for account in entry.body.get("accounts", ()) if entry.kind == "open" else ():
            if account["account"][1] == "people":
                return "counted for each person, and private; whoever has not enough left is left out"
            if account["account"][1] == "dataset" and account["limit"].get("numbers"):
                return "nothing"
    return None


def _mechanisms(explanation: Explanation) -> str:
    lines = []
    for line in explanation.lines:
        cells = [escaped(line["answer"]), escaped(line["measure"]), escaped(line["mechanism"])]
        width = line["expected"]
        other_cells = "".join(f"<td>{cell}</td>" for cell in cells[1:])
        lines.append(f'<tr><th scope="row">{cells[0]}</th>{other_cells}<td>{escaped(width)}</td></tr>\n')
    head = "".join(f'<th scope="col">{name}</th>' for name in ("column", "what is measured", "how", "expected error"))
    return (
        f"<h2>How it was made private</h2>\n<p>{escaped(explanation.groups)}. {escaped(explanation.bounding)}.</p>\n"
        '<div class="wide">\n<table>\n<caption>What is measured in each group, and the noise it gets.</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(lines)}</tbody>\n</table>\n</div>\n"
    )


def _spending(entries: list[Entry], answer: Answer) -> str:
    """Every charge to the dataset with the running total, in the ledger's own whole numbers."""
    rows: list[str] = []
    loss = delta = 0
    unit = "ε"
    mine = _own_charge(entries, answer)
    for entry in entries:
        for account in entry.body.get("accounts", ()) if entry.kind == "open" else ():
            if account["account"][1] == "dataset" and account.get("unit") == "rho":
                unit = "ρ"
        if entry.kind != "charge":
            continue
        for _, kind, _, own_loss, own_delta in entry.body.get("charged", ()):
            if kind == "dataset":
                loss, delta = loss + own_loss, delta + own_delta
        total = f"{unit} = {float(Fraction(loss, LOSS_UNIT)):.6g}"
        if delta:
            total += f", δ = {float(Fraction(delta, DELTA_UNIT)):.6g}"
        this = "this answer" if entry.seq == mine else ""
        cells = (entry.at[:19].replace("T", " "), str(promised(entry.body["cost"])), total, this)
        row_cells = "".join(f"<td>{escaped(cell)}</td>" for cell in cells)
        rows.append(f'<tr><th scope="row">{entry.seq}</th>{row_cells}</tr>\n')
    caption = "Every charge to this dataset, and the sum up to it."
    if len(rows) > MAX_ENTRIES:
        caption += f" The last {MAX_ENTRIES} of {len(rows)}."
    names = ("entry", "time (UTC)", "cost", "spent so far", "")
    head = "".join(f'<th scope="col">{name}</th>' if name else "<td></td>" for name in names)
    return (
        f'<h2>Spent so far</h2>\n<div class="wide">\n<table>\n<caption>{caption}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(rows[-MAX_ENTRIES:])}</tbody>\n</table>\n</div>\n"
    )


def _own_charge(entries: list[Entry], answer: Answer) -> int | None:
    """The entry that paid for this answer, by its receipt: of the charge, or of the answer recorded for it."""
    if not answer.receipt:
        return None
    seq = Receipt.read(answer.receipt).seq
    return next((entry.charge or entry.seq for entry in entries if entry.seq == seq), None)


def _listed(lines: list[str]) -> str:
    return "<ul>\n" + "".join(f"<li>{escaped(line)}</li>\n" for line in lines) + "</ul>\n"
