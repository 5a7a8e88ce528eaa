"""Pages about an answer, a series and a profile: numbers with their errors, cost, remaining budget, and guarantees in
plain words."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from dither.guarantees import ZCDP, ApproxDP, Guarantee
from dither.ledger import Entry, Receipt
from dither.ledger.accounts import DELTA_UNIT, LOSS_UNIT, promised
from dither.present import markup
from dither.present.notes import kinds_of, lasting, leading
from dither.present.pages import sheet
from dither.stream.series_answer import SeriesAnswer
from dither.tables.answer import MOSTLY_NOISE, Answer, explained_noise, is_marked, is_total
from dither.tables.card.profile import Profile, table_charts
from dither.tables.planning.explain import Explanation


def factor(cost: Guarantee) -> str | None:
    """Return the factor e^ε by which one person's data may change any probability, as text rounded up; None for zCDP,
    and for an ε above 20.

    >>> from dither.guarantees import PureDP
    >>> factor(PureDP(0.5)), factor(ApproxDP(1, 1e-7)), factor(ZCDP(0.1)), factor(PureDP(30))
    ('1.65', '2.72', None, None)
    """
    epsilon = math.inf if isinstance(cost, ZCDP) else float(cost.exact[0])
    if epsilon > 20:
        return None
    return f"{math.ceil(math.exp(epsilon) * 100 - 1e-9) / 100:.2f}"


def likelihood(cost: Guarantee) -> str:
    """Return a clause on how much one person's data may change the probability of any conclusion.

    >>> likelihood(ApproxDP(1, 1e-7))
    'be at most 2.72 times as likely, or as unlikely, plus a probability of at most δ'
    """
    times = factor(cost)
    change = f"be at most {times} times as likely, or as unlikely" if times else "be nearly as likely"
    return f"{change}, plus a probability of at most δ" if isinstance(cost, ApproxDP) else change


def guaranteed(answer: Answer, rows_are_people: bool) -> list[str]:
    """Return the statements that hold for every reader of an answer, whatever else they know."""
    who = "row" if rows_are_people else "person"
    whose = "that one row" if rows_are_people else "all the rows of one person"
    change = likelihood(answer.cost)
    result = [
        f"If {whose} were added or removed, every conclusion drawn from this page would {change}. This holds for every "
        "reader, whatever they know already, at the cost stated above.",
        "The costs of further answers about the same people add up. The ledger keeps the sum, and refuses what would "
        "exceed the budget.",
        "The cost was recorded before the answer was computed, and the answer before it was shown. Repeating the "
        "question returns the same answer, and costs nothing.",
        _what_errors_mean(answer),
    ]
    if "small_groups" in kinds_of(answer.notes):
        result.append(f"A group is shown only if its noisy number of {who}s is large enough that no {who} stands out.")
    return result


def _what_errors_mean(answer: Answer) -> str:
    """Return a sentence on the ± of an answer: the errors that it includes, and the number that it is a distance to."""
    if answer.interval == "population":
        return (
            "The errors (± population) include noise and sampling: with 95 % confidence each value is that close to "
            "its value in the population that the rows were drawn from, with values beyond the public bounds counted "
            "as the bound and the rows of each person counted up to the limits."
        )
    return (
        "The errors (±) include the noise: with 95 % confidence each value is that close to the result without noise "
        "from the same rows, with values beyond the public bounds counted as the bound and the rows of each person "
        "counted up to the limits."
    )


def not_guaranteed(answer: Answer) -> list[str]:
    """Return statements that correct likely misunderstandings of an answer."""
    result = [
        "A single answer may be off by more than its ±: about one in twenty is.",
        _what_limits_do(answer),
        "Facts about people in general are not hidden. That smoking is harmful can be learned, and holds for a smoker "
        "whether in the table or not.",
        "Bounds, keys and limits are assumed to be public. If they were taken from the data, the guarantee does not "
        "cover what they disclose.",
        "The guarantee protects the units that the card names. Relatives, households and groups of k people are "
        "protected k times less.",
    ]
    if any(error is None for errors in answer.errors.values() for error in errors):
        result.insert(1, "Values without a ± were chosen among many; how far off they are depends on the data.")
    return result


def _what_limits_do(answer: Answer) -> str:
    """Return sentences that the ± does not include what bounds and limits exclude, and whether that was estimated."""
    bounds = "The ± does not include what the bounds cut off."
    if answer.clipped_share:
        where = "is shown beside each count" if is_total(answer) else "is stated in the notes, for all groups together"
        return (
            f"{bounds} Nor does it include what the limits on one person's rows exclude: its size, or a lower limit of "
            f"it, was estimated from a noisy histogram, and {where}."
        )
    if "undercount_unknown" in kinds_of(answer.notes):
        return (
            f"{bounds} Nor does it include what the limits on one person's rows exclude, whose size was not measured. "
            "If the lower bound is 0, it only makes counts and sums smaller."
        )
    return f"{bounds} Nor does it include what limits on one person's rows exclude, if the notes name such limits."


def promise(cost: Guarantee, whole: str) -> str:
    """Return a sentence on the guarantee of a release and of everything computed from it; ``whole`` is the noun for it.

    >>> promise(ApproxDP(1, 1e-7), "it")[:75]
    'if all the rows of one person were added or removed, every conclusion drawn'
    """
    return (
        f"if all the rows of one person were added or removed, every conclusion drawn from {whole} would "
        f"{likelihood(cost)}. This holds for every reader, whatever they know already."
    )


MAX_ROWS = 1000
MAX_CHARTS = 4
MAX_ENTRIES = 50
MAX_POINTS = 200

_EXPLANATIONS = {
    "error": "error by the noise, 95 %",
    "population error": "error by the noise and by sampling, 95 %",
    "probability": "how probable it is that nothing is more common",
    "low by": "about how much the limits exclude",
}


def answer_page(
    answer: Answer, title: str, explanation: Explanation | None, history: Iterable[Entry] | None, question: str | None
) -> str:
    """Render the page of an answer, with its mechanisms if there is an explanation, and past spending if there is a
    history.

    Of other questions only the cost is shown: their texts are for people who may read the ledger.
    """
    entries = None if history is None else list(history)
    rows_are_people = explanation is not None and explanation.rows_are_people
    parts = []
    if question is not None:
        parts.append(sheet.section("The question", f"<pre><code>{markup.escaped_lines(question)}</code></pre>\n"))
    charts = [sheet.figure(answer.chart(name)) for name in answer.drawable()[:MAX_CHARTS]]
    parts += [sheet.section("The answer", answer_table(answer), *charts), _cost(answer, entries)]
    parts += [] if explanation is None else [_mechanisms(explanation)]
    parts += [] if entries is None else [_spending(entries, answer)]
    parts.append(sheet.section("What is guaranteed", sheet.listed(guaranteed(answer, rows_are_people))))
    parts.append(sheet.section("What is not", sheet.listed(not_guaranteed(answer))))
    return sheet.page(title, *parts)


def answer_table(answer: Answer) -> str:
    """Render the table of an answer with a caption, as pages and servers show it."""
    headings, rows = answer.table(MAX_ROWS)
    errors = [heading.kind in ("error", "population error") for heading in headings]
    cells = [
        [f"± {cell}" if cell and is_error else cell for cell, is_error in zip(row, errors, strict=True)]
        for row in explained_noise(headings, rows)
    ]
    names = [
        markup.Explained(heading.text, _EXPLANATIONS[heading.kind]) if heading.kind in _EXPLANATIONS else heading.text
        for heading in headings
    ]
    right = [heading.numeric and (j > 0 or heading.kind != "key") for j, heading in enumerate(headings)]
    return sheet.table(names, cells, _caption(answer), right)


def _caption(answer: Answer) -> str:
    """Return the caption of an answer's table: the meaning of its ±, and what is not shown."""
    more = len(answer.rows) - MAX_ROWS
    parts = ["Noisy values; ± is the error by noise, with 95 % confidence."]
    if answer.limit_errors:
        parts = ["± is the error of each number by noise and by limits, with 95 % confidence."]
    parts += [MOSTLY_NOISE] if is_marked(answer) else []
    if answer.clipped_share and is_total(answer):
        parts.append(
            "What the limits on one person’s rows exclude comes on top: “low by” is an estimate of it with its range, "
            "or a lower limit."
        )
    elif "undercount_unknown" in kinds_of(answer.notes):
        parts.append(
            "What the limits on one person’s rows exclude comes on top: counts and sums may be low by an "
            "unknown amount."
        )
    if more > 0:
        parts.append(f"The first {MAX_ROWS:,} rows; {more:,} more are in the answer.")
    if not answer.rows:
        parts.append("No group has enough people to be shown.")
    return " ".join(parts)


def _cost(answer: Answer, entries: list[Entry] | None) -> str:
    """Render what the answer cost, what is left, its notes and its receipt."""
    paid = " (paid earlier: this is the recorded answer)" if answer.replayed else ""
    facts = [("cost", f"{answer.cost}{paid}")]
    left = _nothing(entries) if answer.remaining is None else str(answer.remaining)
    if left is not None:
        facts.append(("left of the budget", left))
    shown, others = leading(lasting(answer.notes))
    facts += [("note", str(note)) for note in shown]
    if answer.receipt:
        facts.append(("receipt", answer.receipt))
    keep = "Keep the receipt: a ledger that does not hold it has lost entries."
    more = markup.folded(f"{len(others)} more notes", sheet.listed(others) if others else "", inline=False)
    return sheet.section("What it cost", sheet.facts(facts), more, sheet.paragraph(keep) if answer.receipt else "")


def _nothing(entries: list[Entry] | None) -> str | None:
    """Return the remaining budget in words for an answer that states none: nothing, or private for each person; None if
    the entries do not tell."""
    for entry in entries or ():
        for account in entry.body.get("accounts", ()) if entry.kind == "open" else ():
            if account["account"][1] == "people":
                return "private, with an account for each person; people without enough budget are excluded"
            if account["account"][1] == "dataset" and account["limit"].get("numbers"):
                return "nothing"
    return None


def _mechanisms(explanation: Explanation) -> str:
    """Render how each column was measured, by which mechanism and with which expected error."""
    names = ("answer", "measure", "mechanism", "expected")
    return sheet.section(
        "How it was made private",
        sheet.paragraph(f"{explanation.groups}. {explanation.bounding}."),
        sheet.table(
            ("column", "what is measured", "how", "expected error"),
            [[line[name] for name in names] for line in explanation.lines],
            "What is measured in each group, and the noise it gets.",
        ),
    )


def _spending(entries: list[Entry], answer: Answer) -> str:
    """Render every charge to the dataset with the running total; the charge of ``answer`` itself is marked.

    Entries hold whole multiples of ``LOSS_UNIT`` (epsilon or rho) and ``DELTA_UNIT``, which are added up exactly.
    """
    rows: list[list[object]] = []
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
        rows.append([entry.seq, entry.at[:19].replace("T", " "), promised(entry.body["cost"]), total, this])
    caption = "Every charge to this dataset, and the sum up to it."
    if len(rows) > MAX_ENTRIES:
        caption += f" The last {MAX_ENTRIES} of {len(rows)}."
    headings = ("entry", "time (UTC)", "cost", "spent so far", "")
    return sheet.section("Spent so far", sheet.table(headings, rows[-MAX_ENTRIES:], caption))


def _own_charge(entries: list[Entry], answer: Answer) -> int | None:
    """Return the number of the entry that paid for this answer, found by its receipt; None if unknown."""
    if not answer.receipt:
        return None
    seq = Receipt.read(answer.receipt).seq
    return next((entry.charge or entry.seq for entry in entries if entry.seq == seq), None)


def series_page(answer: SeriesAnswer, title: str) -> str:
    """Render the page of a series with this ``title``: a line with its error band for each aggregate, and the last
    points.
    """
    names = [name for name in answer.columns if name in answer.errors]
    figures = [sheet.figure(answer.chart(name), height=240) for name in names if answer.rows]
    facts = [("cost", f"{answer.cost}, once for the whole series")]
    facts += [] if answer.remaining is None else [("left of the budget", str(answer.remaining))]
    facts += [("receipt", answer.receipt)] if answer.receipt else []
    headings, lines = answer.table()
    caption = "± is the error of each number by noise, with 95 % confidence."
    if len(lines) > MAX_POINTS:
        caption += f" The last {MAX_POINTS} of {len(lines):,} points."
    points = sheet.table(
        [item.text for item in headings], lines[-MAX_POINTS:], caption, [item.numeric for item in headings]
    )
    promises = [
        f"All points of the whole series together, future ones included, are private at {answer.cost}.",
        "A published point never changes, even if rows are added, changed or deleted.",
        "Errors of neighboring points are correlated: two points may both be too high.",
    ]
    return sheet.page(
        title,
        # the notes explain the lines, so they follow them directly
        sheet.section("Over time", *figures, sheet.listed(answer.notes) if answer.notes else ""),
        sheet.section("What it cost", sheet.facts(facts)),
        sheet.section("Points", points),
        sheet.section("What is promised", sheet.listed(promises)),
    )


def profile_page(profile: Profile, title: str) -> str:
    """Return one page with every chart of a profile."""
    sections = []
    for name, table in profile.tables.items():
        charts = [sheet.figure(chart, width=480) for chart in table_charts(table).values()]
        sections.append(sheet.section(profile.heading(name), sheet.side_by_side(charts)))
    return sheet.page(title, sheet.listed(profile.facts()), *sections)
