"""The page of the card: every key that dither accepts, what it means, and a draft as ``dither init`` writes it."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa

from dither.errors import InvalidArgument
from dither.tables.card import toml
from dither.tables.draft import draft

SECTIONS = {
    "": {"name": "t", "source": "t.csv", "columns": {"age": "integer"}},
    "columns.age": {"name": "t", "source": "t.csv", "columns": {"age": {"type": "integer"}}},
    "budget": {"name": "t", "source": "t.csv", "columns": {"age": "integer"}, "budget": {"epsilon": 1}},
    "public.places": {
        "name": "t", "source": "t.csv", "columns": {"age": "integer"},
        "public": {"places": {"source": "p.csv", "columns": {"county": "text"}}},
    },
    "series.daily": {
        "name": "t", "source": "t.csv", "columns": {"day": "date"},
        "series": {
            "daily": {"over": "day", "column": "day", "horizon": 30, "epsilon": 1, "aggregates": {"n": "count"}},
        },
    },
    "tables.visits": {
        "name": "t", "tables": {"visits": {"source": "v.csv", "unit": "who", "columns": {"who": "integer"}}},
    },
}  # fmt: skip
"""The sections of a card file, each in the smallest card that has it."""


def accepted(section: str) -> tuple[str, ...]:
    """The keys that a section may have, as the reader of cards says itself when it is given another one."""
    card = _copy(SECTIONS[section])
    place = card
    for part in filter(None, section.split(".")):
        place = place[part]
    place["no_such_key"] = 1
    try:
        toml.parse(card)
    except InvalidArgument as refused:
        return tuple(re.split(r", | or ", refused.expected))
    raise AssertionError("a card with a key that does not exist was accepted")


def _copy(value: dict) -> dict:  # type: ignore[type-arg]
    return {key: _copy(item) if isinstance(item, dict) else item for key, item in value.items()}


def meanings(docs: Path) -> dict[tuple[str, str], tuple[str, str, str]]:
    """From the guide to tables: the line, its meaning, and what happens if it is missing, by section and key."""
    text = (docs / "tables.md").read_text(encoding="utf-8").split("## The card\n", 1)[1].split("\n### ", 1)[0]
    result: dict[tuple[str, str], tuple[str, str, str]] = {}
    for line in text.splitlines():
        cells = [part.strip() for part in line.strip("|").split(" | ")]
        if not line.startswith("| `") or len(cells) != 3:
            continue
        section = ""
        for part in re.findall(r"`([^`]*)`", cells[0]):
            header = re.match(r"\[(\w+)", part)
            if header:
                section = header.group(1)
                result.setdefault(("", section), (cells[0], cells[1], cells[2]))
            elif not part.startswith('"'):
                result.setdefault((section, part.split(" = ")[0]), (cells[0], cells[1], cells[2]))
    return result


def meaning_of(known: dict[tuple[str, str], tuple[str, str, str]], section: str, name: str) -> tuple[str, str, str]:
    """What the guide says of a key of a section; keys that only one section has stand there without it."""
    own = section.partition(".")[0]
    return known.get((own, name)) or known[("", name)]


TITLES = {
    "": "The card itself",
    "columns.age": "A column: [columns.age]",
    "budget": "The budget: [budget]",
    "public.places": "A public table: [public.places]",
    "series.daily": "A series over time: [series.daily]",
    "tables.visits": "A further private table: [tables.visits]",
}


def page(docs: Path) -> str:
    """The whole page."""
    known = meanings(docs)
    lines = [
        "# The card", "",
        "A card is a TOML file that says what is public about a table. Nothing in it may be taken from the rows. These are "
        "all the keys that dither accepts, as its own reader lists them; a key that is not here is refused, and the error "
        "names the nearest one. The [guide to tables](/tables.md) explains how they work together.", "",
    ]  # fmt: skip
    for section, title in TITLES.items():
        lines += [f"## {title}", "", "| key | example | meaning | if it is missing |", "|---|---|---|---|"]
        for name in accepted(section):
            example, meaning, missing = meaning_of(known, section, name)
            row = f"| `{name}` | {example} | {meaning} | {missing} |"
            lines.append(re.sub(r"\]\(([\w-]+\.md)", r"](/\1", row))
        lines.append("")
    rows = pa.table({"patient": [1], "region": ["north"], "amount": [2.5]})
    text = re.sub(r'source = ".*"', 'source = "visits.parquet"', draft(rows, "patient", "visits"))
    lines += ["## A draft, as dither init writes it", "", "```toml", text.rstrip(), "```", ""]
    return "\n".join(lines)
