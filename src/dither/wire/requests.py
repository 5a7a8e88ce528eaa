"""What a client asks: a question, and the options of its release.

A question is ``{"sql": "SELECT …"}``, or the tree that the builder made with the tables that it is about: ``{"tree":
{…}, "about": ["visits"]}``. Read with a table, the text is parsed again, or the tree is built again
(:mod:`dither.wire.rebuilding`), by the card of that table. Options are those of :class:`dither.ReleaseOptions` that are
not at their defaults. Who asks is not among them: a server knows that from the session alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields as fields_of
from dataclasses import replace
from typing import Any

from dither.errors import InvalidArgument
from dither.tables.card.values import clip
from dither.tables.codec import fields, from_json, is_storable, text, to_json
from dither.tables.options import ReleaseOptions
from dither.tables.query.tree import Query
from dither.tables.question import Question
from dither.tables.table import Table
from dither.wire.rebuilding import rebuilt

QUESTION = ("sql", "tree", "about")
"""The fields of a question."""
BUILT = "built in Python: "
"""How a question without SQL begins in words."""
_MOST_SHOWN = 20


def question_to_json(question: Question) -> dict[str, Any]:
    """Convert a question to JSON: its SQL, or the tree that the builder made."""
    if question.text is not None:
        return {"sql": question.text}
    about = {"about": list(question.about)} if question.about else {}
    return {"tree": to_json(question.query), **about}


def question_from_json(document: object, table: Table) -> Question:
    """Parse a question about a table; SQL is parsed and a tree is built again, with all checks of the library.

    >>> import dither as dp, pyarrow as pa
    >>> with dp.open(pa.table({"age": [30, 40] * 50}), budget=dp.PureDP(1)) as people:
    ...     question_from_json({"sql": "SELECT COUNT(*) AS n FROM data"}, people)
    Question('data', 'SELECT COUNT(*) AS n FROM data')
    """
    given = fields(document, "question", (), QUESTION)
    if ("sql" in given) == ("tree" in given):
        raise InvalidArgument("question", "sql or tree", "both or none", 'write {"sql": "SELECT …"}')
    if "sql" in given:
        fields(given, "question", ("sql",))
        return table.sql(text(given["sql"], "question.sql"))
    query: Query = from_json(given["tree"], Query, "tree")
    about: tuple[str, ...] = from_json(given.get("about", []), tuple[str, ...], "question.about")
    if len(about) > 1 or (bool(about) != bool(table.card.tables)):
        expected = "the one table that it is about" if table.card.tables else "none, since there is one table"
        raise InvalidArgument("question.about", expected, str(len(about)), "ask of several tables in SQL")
    question = table[about[0]] if about else Question(table, Query({}))
    return replace(question, query=rebuilt(query, question.card))


def question_words(document: Mapping[str, Any]) -> str:
    """Describe the JSON of a question for people: its SQL, or a summary of its tree, which is not checked here.

    >>> question_words({"sql": "SELECT COUNT(*) AS n FROM visits"})
    'SELECT COUNT(*) AS n FROM visits'
    >>> question_words({"tree": {"aggregates": [["n", {"kind": "count"}]], "groups": [{"name": "region"}]}})
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
    """Return the first items of a list; none of anything else."""
    return given[:_MOST_SHOWN] if isinstance(given, list) else []


def _short(given: object) -> str:
    """Return a short printable text; a question mark for anything else."""
    return clip(given) if isinstance(given, str) and is_storable(given) else "?"


def options_to_json(options: ReleaseOptions) -> dict[str, Any]:
    """Convert options to JSON, without ``key``, which is sent as a header, and refusing ``analyst``.

    >>> options_to_json(ReleaseOptions(epsilon=0.5, max_rows=3))
    {'epsilon': 0.5, 'max_rows': 3}
    """
    if options.analyst is not None:
        fix = "leave it out: a server knows who asks from the token"
        raise InvalidArgument("analyst", "none, on a server", "a name", fix)
    result: dict[str, Any] = to_json(replace(options, key=None))
    return result


def options_from_json(document: object, *, analyst: str | None = None, key: str | None = None) -> ReleaseOptions:
    """Parse options, and add the analyst of the session and the key of the request.

    >>> options_from_json({"epsilon": 0.5, "noise": "gaussian"}).noise
    'gaussian'
    """
    stated = fields(document, "options", (), OPTIONS)
    options: ReleaseOptions = from_json(stated, ReleaseOptions, "options")
    return replace(options, analyst=analyst, key=key)


OPTIONS = tuple(item.name for item in fields_of(ReleaseOptions) if item.metadata["sent"])
"""The options that a client may state; ``key`` is the header Idempotency-Key."""
