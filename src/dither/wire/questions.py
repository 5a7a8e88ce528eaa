"""Questions as JSON: the text of SQL, or the tree that the builder made and the tables that it is about.

``{"version": 1, "sql": "SELECT …"}`` or ``{"version": 1, "tree": {…}, "about": ["visits"]}``. Read with a table, the
text is parsed again, or the tree is built again (:mod:`dither.wire.rebuilding`), by the card of that table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dither.errors import InvalidArgument
from dither.tables.card.values import clip
from dither.tables.question import Question
from dither.tables.table import Table
from dither.wire import trees
from dither.wire.documents import VERSION, fields, is_plain, text, texts
from dither.wire.rebuilding import rebuilt

NAMES = ("sql", "tree", "about")
"""The fields of a question."""
BUILT = "built in Python: "
"""How a question without SQL begins in words."""
_MOST_SHOWN = 20


def to_json(question: Question) -> dict[str, Any]:
    """A question as JSON has it."""
    if question.text is not None:
        return {"version": VERSION, "sql": question.text}
    about = {"about": list(question.about)} if question.about else {}
    return {"version": VERSION, "tree": trees.to_json(question.query), **about}


def from_json(document: object, table: Table) -> Question:
    """The question about a table; whatever the library would refuse is refused alike.

    >>> import dither as dp, pyarrow as pa
    >>> with dp.open(pa.table({"age": [30, 40] * 50}), budget=dp.PureDP(1)) as people:
    ...     from_json({"sql": "SELECT COUNT(*) AS n FROM data"}, people)
    Question('data', 'SELECT COUNT(*) AS n FROM data')
    """
    given = fields(document, "question", (), NAMES)
    if ("sql" in given) == ("tree" in given):
        raise InvalidArgument("question", "sql or tree", "both or none", 'write {"sql": "SELECT …"}')
    if "sql" in given:
        fields(given, "question", ("sql",))
        return table.sql(text(given["sql"], "question.sql"))
    query = trees.from_json(given["tree"])
    about = texts(given.get("about", []), "question.about")
    if len(about) > 1 or (bool(about) != bool(table.card.tables)):
        expected = "the one table that it is about" if table.card.tables else "none, since there is one table"
        raise InvalidArgument("question.about", expected, str(len(about)), "ask of several tables in SQL")
    question = table[about[0]] if about else Question(table, type(query)({}))
    return replace(question, query=rebuilt(query, question.card))


def words(document: Mapping[str, Any]) -> str:
    """A question for people to read: its SQL, or what its tree asks for. Whatever stands in a tree, it is read only
    as far as that.

    >>> words({"sql": "SELECT COUNT(*) AS n FROM visits"})
    'SELECT COUNT(*) AS n FROM visits'
    >>> words({"tree": {"aggregates": [["n", {"is": "Aggregate", "kind": "count"}]], "groups": [{"name": "region"}]}})
    'built in Python: n = count, by region'
    """
    if "sql" in document:
        return str(document["sql"])
    tree = document.get("tree")
    given = tree if isinstance(tree, dict) else {}
    parts = []
    for item in _listed(given.get("aggregates")):
        if isinstance(item, list) and len(item) == 2 and isinstance(item[1], dict):
            parts.append(f"{_short(item[0])} = {_short(item[1].get('kind'))}")
    parts += [f"by {_short(item.get('name'))}" for item in _listed(given.get("groups")) if isinstance(item, dict)]
    parts += ["where …"] if "where" in given else []
    return BUILT + ", ".join(parts)


def _listed(given: object) -> list[Any]:
    return given[:_MOST_SHOWN] if isinstance(given, list) else []


def _short(given: object) -> str:
    return clip(given) if isinstance(given, str) and is_plain(given) else "?"


def part_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request that are the question's.

    >>> part_of({"sql": "SELECT 1", "epsilon": 1})
    {'sql': 'SELECT 1'}
    """
    return {name: document[name] for name in NAMES if name in document}
