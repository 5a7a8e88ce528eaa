"""What a client asks: a question, and the options of its release.

A question is ``{"sql": "SELECT …"}``, or the tree that the builder made with the tables that it is about: ``{"tree":
{…}, "about": ["visits"]}``. The server parses the text, or builds the tree, again by the card of its table. Options are
those of :class:`dither.ReleaseOptions` that are not at their defaults. The analyst is not among them: a server knows it
from the session or token.

A tree can say things that neither SQL nor Python would: a join on nothing, an aggregate with bounds upside down, SQL
of its own for the noisy table. The planner relies on what the builder and the parser have checked. So the server takes
from a tree only what the builder makes, and builds it anew: every expression is resolved and typed, every argument
checked. What comes from SQL alone (windows, joins of private tables, set operations) is asked in SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields as fields_of
from dataclasses import replace
from typing import Any

from dither.errors import InvalidArgument
from dither.tables.builder import expressions as build
from dither.tables.builder import steps
from dither.tables.card.model import Card
from dither.tables.card.values import clip
from dither.tables.codec import fields, from_json, is_storable, text, to_json
from dither.tables.options import ReleaseOptions
from dither.tables.query.relations import relation_card
from dither.tables.query.tree import Aggregate, PerPerson, PersonAggregate, PrivateRows, Query, Source, check_size
from dither.tables.question import Question
from dither.tables.table import Table


def rebuilt(query: Query, card: Card) -> Query:
    """Build a question from a client again with the builder, which checks it; refuse what only SQL can express.

    >>> from dither.tables.card.model import ColumnCard
    >>> visits = Card("visits", "", {"age": ColumnCard("integer", (0, 120))})
    >>> rebuilt(Query({"n": Aggregate("count")}), visits) == Query({"n": Aggregate("count")})
    True
    """
    if query.post is not None or query.more or query.rolled_up or query.before or query.as_of is not None:
        raise _only_sql()
    limits = {name: getattr(query, name) for name in ("epsilon", "delta", "max_groups", "max_rows")}
    stated = steps.query(card, {"n": build.count()}, **limits)  # checks them
    asked = replace(_relation(query.source, card), **{name: getattr(stated, name) for name in limits})
    inside = relation_card(card, asked.source)
    asked = _rows(asked, query, inside)
    for group in query.groups:
        check_size(group.value)
        keys = None if group.keys is None else build.distinct_keys(group.keys, "keys")
        asked = steps.group_by(asked, [replace(group, keys=keys)], {}, inside)
    if query.aggregates:
        asked = steps.agg(asked, {name: _aggregate(item) for name, item in query.aggregates.items()}, inside)
    shape = query.shape
    if shape != type(shape)():
        asked = steps.shaped(
            asked, inside, columns=shape.columns, having=shape.having, order=list(shape.order), limit=shape.limit
        )
    return asked


def _rows(asked: Query, wanted: Query | PerPerson, card: Card) -> Query:
    """Return the question ``asked`` with the public joins and the condition of ``wanted``.

    Joins and condition are added by the functions that build questions in Python, which check them against the
    ``card``.
    """
    for join in wanted.joins:
        check_size(join.own)
        asked = steps.join(asked, join.table, join.own, join.other, card, left=join.left)
    if wanted.where is not None:
        check_size(wanted.where)
        asked = steps.where(asked, wanted.where, card)
    return asked


def _relation(source: Source | None, card: Card) -> Query:
    """Build the relation in FROM of a question, and return a question about it without aggregates.

    ``source`` is the relation as the client sent it; None stands for the rows of the card's own table. Only tables per
    person can be built; others are refused.
    """
    if source is None or source == PrivateRows():
        return Query({})
    if not isinstance(source, PerPerson):
        raise _only_sql()
    asked = Query({}) if source.source == PrivateRows() else _relation(source.source, card)
    inside = relation_card(card, asked.source)
    asked = _rows(asked, source, inside)
    if source.groups:
        asked = steps.group_by(asked, [], dict(source.groups), inside)
    return steps.per_person(asked, {name: _of_person(item) for name, item in source.aggregates.items()}, card)


def _of_person(item: PersonAggregate) -> Aggregate:
    """Build an aggregate per person; refuse kinds that only SQL has."""
    if item.kind in ("any", "every", "count_distinct"):
        raise _only_sql()
    return _aggregate(Aggregate(item.kind, item.value))  # type: ignore[arg-type]  # the others are kinds of both


_OF_NUMBERS: dict[str, Callable[..., Aggregate]] = {
    "sum": build.sum_, "mean": build.mean, "var": build.var, "std": build.std, "min": build.min_, "max": build.max_,
}  # fmt: skip
_OF_PAIRS: dict[str, Callable[..., Aggregate]] = {
    "covar_pop": build.covariance, "covar_samp": build.covariance, "corr": build.corr,
    "regr_slope": build.regression_slope, "regr_intercept": build.regression_intercept,
    "regr_r2": build.regression_r2,
}  # fmt: skip


def _aggregate(item: Aggregate) -> Aggregate:
    """Build an aggregate by the public function for its kind; refuse fields that the kind does not have."""
    result = _built(item)
    if result != item:
        expected, fix = f"the fields of {item.kind} only", "leave the others out"
        raise InvalidArgument(f"aggregate {item.kind}", expected, "further fields", fix)
    return result


def _built(item: Aggregate) -> Aggregate:
    """Call the public function for the kind of an aggregate."""
    kind = item.kind
    shared: dict[str, Any] = {"weight": item.weight, "rows_per_person": item.rows_per_person}
    if kind == "count" and item.value is None:
        return build.count(**shared)
    if kind == "people" and item.value is None:
        return build.people(weight=item.weight)
    if item.value is None:
        raise InvalidArgument(f"aggregate {kind}", "a value", "none", "name a column")
    check_size(item.value)
    if kind == "count_value":
        return build.count(item.value, **shared)
    if kind == "count_distinct":
        return build.count_distinct(item.value, weight=item.weight)
    if kind == "quantile":
        return build.quantile(item.value, item.at, item.bounds, **shared)
    if kind == "mode":
        return build.mode(item.value, item.keys, **shared)
    if kind == "histogram" and item.edges is not None:
        return build.histogram(item.value, item.edges, **shared)
    if kind in _OF_NUMBERS:
        return _OF_NUMBERS[kind](item.value, item.bounds, **shared)
    if kind in _OF_PAIRS and item.other is not None:
        check_size(item.other)
        more: dict[str, Any] = {"population": True} if kind == "covar_pop" else {}
        pair = (item.value, item.other, item.bounds, item.other_bounds)
        return _OF_PAIRS[kind](*pair, **shared, **more)
    raise InvalidArgument(
        "aggregate",
        "one that a function of dither makes, such as dither.count",
        "an unknown one",
        "use such a function",
    )


def _only_sql() -> InvalidArgument:
    """Return the error for a question that has to be asked in SQL."""
    fix = "ask it in SQL, whole: table.sql('SELECT …')"
    return InvalidArgument("question", "what group_by, where, per_person and agg make", "more than that", fix)


QUESTION = ("sql", "tree", "about")
"""The fields of a question in JSON."""
BUILT = "built in Python: "
"""The prefix of the text about a question without SQL."""
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
    """Return a question in JSON as text for people: its SQL, or a summary of its tree, which is not checked here.

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
    """Convert options to JSON, without ``key``, which is sent as a header; refuse options with an ``analyst``.

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
