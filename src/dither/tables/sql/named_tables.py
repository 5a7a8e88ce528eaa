"""Which of several private tables a statement is about."""

from __future__ import annotations

from sqlglot import exp

from dither.tables.card.model import Card
from dither.tables.card.wording import clip
from dither.tables.query.operations.base import refuse_sql
from dither.tables.query.resolve import spelling
from dither.tables.sql.text import statement


def named_tables(text: str, card: Card) -> tuple[str, ...]:
    """The private tables of the card that a statement names, in the card's spelling and the order of the statement.

    >>> from dither.tables.card.model import ColumnCard, PrivateTable
    >>> visits = PrivateTable("visits.csv", {"patient": ColumnCard("integer")}, "patient")
    >>> named_tables("SELECT COUNT(*) FROM Visits", Card("clinic", "", {}, tables={"visits": visits}))
    ('visits',)
    """
    names = list(card.private_tables)
    tree, _ = statement(text, names[0])
    for item in tree.find_all(exp.CTE):
        if spelling(item.alias, names):
            got = f"{clip(item.alias)!r}, a table of the card"
            raise refuse_sql("a new name after WITH", got, "choose another name")
    written = [spelling(table.name, names) for table in tree.find_all(exp.Table) if not table.args.get("db")]
    about = list(dict.fromkeys(name for name in written if name is not None))
    expected = f"FROM one of {', '.join(names)}"
    if not about:
        raise refuse_sql(expected, "none of them", f"write SELECT COUNT(*) FROM {names[0]}, for example")
    return tuple(about)
