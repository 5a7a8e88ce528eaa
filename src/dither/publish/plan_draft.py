"""A first draft of a plan, from what a card says: its columns with their public domains, and two tables."""

from __future__ import annotations

import json
import re

from dither.guarantees import ZCDP, ApproxDP
from dither.tables.card.model import Card, ColumnCard

_BARE = re.compile("[A-Za-z0-9_-]+")
_FEW_KEYS = 1_000


def draft_plan(card: Card, path: str, about: str | None = None) -> str:
    """The text of a plan for a card's table; ``path`` leads from the plan to the card.

    >>> columns = {"sex": ColumnCard("text", keys=("f", "m")), "age": ColumnCard("integer", (0, 99))}
    >>> print(draft_plan(Card("people", "people.csv", columns), "people.toml").split("\\n\\n")[2])
    # Every table is a list of columns; { by = ["sex"], error = "2%" } for one that must be so good, or
    # { by = ["sex"], weight = 2 } for one that matters more. [] is everybody.
    tables = [
        ["sex"],
        ["sex", "age"],
    ]
    """
    if about is None and not card.columns and card.tables:
        about = next(iter(card.tables))
    item = card if about is None else card.for_table(about)
    usable: list[tuple[str, ColumnCard, str]] = []
    others: list[tuple[str, ColumnCard, str]] = []
    for name, column in item.columns.items():
        if name == item.unit:
            continue
        section = _section(name, column)
        (others if section is None else usable).append((name, column, section or _unusable(name, column)))
    first = sorted(usable, key=lambda entry: _size(entry[1]))[:2]
    names = [_quoted(name) for name, _, _ in first]
    tables = [f"[{names[0]}]", f"[{', '.join(names)}]"][: len(names)] if names else []
    example = names[0] if names else '"state"'
    lines = [
        f"# A plan to publish tables of {item.name}, drafted from its card: every number here is public.",
        "# dither publish FILE --dry-run shows the expected ± of every table; nothing is read or charged.",
        "",
        f"card = {_quoted(path)}",
        *([f"about = {_quoted(about)}"] if about is not None else []),
        "",
        f"# Every table is a list of columns; {{ by = [{example}], error = \"2%\" }} for one that must be so good, or",
        f"# {{ by = [{example}], weight = 2 }} for one that matters more. [] is everybody.",
        "tables = [",
        *(f"    {table}," for table in tables),
        "]",
        "",
        *_rows(item),
        "# where = \"…\"       # only rows that meet a condition in SQL count",
        "# max_rows = 1      # so many rows of a person count in full; by default as the card says; \"auto\" chooses",
        "# bias = true       # with a stated max_rows: say how much it leaves out, for a twentieth of the cost",
        "",
        "[budget]",
        *_budget(item),
        "",
        "# A row counts in all tables or in none. By default it counts in none if the value of a column is NULL or not",
        "# in the domain; null = true makes NULL a key, other = \"other\" makes one of all values that are not listed.",
    ]  # fmt: skip
    for _, _, section in [*usable, *others]:
        lines += ["", section]
    lines += [
        "",
        "# Places inside places: a public table of the card or a file says which county lies in which state.",
        "# [nested.geography]",
        '# levels = ["state", "county"]',
        '# lookup = "places.csv"',
        "",
    ]
    return "\n".join(lines)


def _rows(card: Card) -> list[str]:
    if card.rows is not None:
        return [f"# rows = {card.rows}     # what an error in percent is of; this is what the card says"]
    return ["# rows = 100000     # about how many rows there are, if that is public: what an error in percent is of"]


def _budget(card: Card) -> list[str]:
    """A small part of what the card allows, in its own terms."""
    limit = card.each_person if card.each_person is not None else card.budget
    if isinstance(limit, ZCDP):
        return [f"rho = {limit.rho / 10:.3g}"]
    delta = card.delta if card.delta is not None else limit.delta / 10 if isinstance(limit, ApproxDP) else 1e-9
    epsilon = 1.0 if limit is None else min(1.0, float(limit.exact[0]))
    return [f"epsilon = {epsilon:g}", f"delta = {delta:g}"]


def _section(name: str, column: ColumnCard) -> str | None:
    """What a plan says about a column; None where the card has neither keys nor bounds for it."""
    head = f"[columns.{_key(name)}]"
    if column.keys is not None:
        return f"{head}   # {len(column.keys):,} keys, as the card lists them"
    if column.type == "boolean":
        return f"{head}   # true and false"
    if column.period is not None:
        first, last = column.period
        return f'{head}   # {first} to {last}\npart = "month"   # or period = "month", which tells years apart'
    if column.type in ("integer", "number") and column.bounds is not None:
        low, high = column.bounds
        if column.type == "integer" and _width(high - low) <= 1:
            return f"{head}   # the whole numbers {low:g} to {high:g}"
        return f"{head}   # {low:g} to {high:g}\nwidth = {_width(high - low):.15g}   # or edges = […]"
    return None


def _unusable(name: str, column: ColumnCard) -> str:
    wanted = {"integer": "edges = [0, 10, 100]", "number": "edges = [0, 10, 100]", "text": 'keys = ["…"]'}
    state = wanted.get(column.type, "bounds in the card")
    return f"# [columns.{_key(name)}]   # the card has no domain for it: it needs {state}"


def _width(span: float) -> float:
    """A round width that makes about ten bins."""
    text = f"{max(span, 1e-300) / 10:.0e}"
    return float(text)


def _size(column: ColumnCard) -> int:
    if column.keys is not None:
        return len(column.keys) if len(column.keys) <= _FEW_KEYS else 10**9
    return 2 if column.type == "boolean" else 11


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
