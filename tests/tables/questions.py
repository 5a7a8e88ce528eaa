"""What the tests of questions share: a card, random typed expressions, and their SQL."""

from __future__ import annotations

from datetime import date, datetime

from hypothesis import strategies as st

from dither.tables.card.model import Card, ColumnCard, PublicTable
from dither.tables.card.values import Value
from dither.tables.query.tree import Call, Column, Expression, Literal

CARD = Card(
    "visits",
    "visits.csv",
    {
        "person": ColumnCard("integer"),
        "region": ColumnCard("text", keys=("north", "south")),
        "amount": ColumnCard("number", (0, 100)),
        "age": ColumnCard("integer", (0, 120)),
        "day": ColumnCard("date"),
        "at": ColumnCard("timestamp"),
        "vip": ColumnCard("boolean"),
        "Mixed Case": ColumnCard("text"),
    },
    unit="person",
    public={
        "regions": PublicTable(
            "regions.csv",
            {"region": ColumnCard("text"), "name": ColumnCard("text"), "size": ColumnCard("integer", (0, 10))},
        )
    },
)

NUMBERS, TEXTS = ("amount", "age"), ("region", "Mixed Case")
INFIX = {"+", "-", "*", "/", "=", "<>", "<", "<=", ">", ">=", "and", "or"}


def op(name: str, *args: object) -> Call:
    """An operation; a str is a column, other values are constants unless they are expressions."""
    return Call(name, tuple(of(item) for item in args))


def of(value: object) -> Expression:
    if isinstance(value, (Column, Literal, Call)):
        return value
    return Column(value) if isinstance(value, str) else Literal(value)  # type: ignore[arg-type]


def text(value: str) -> Literal:
    return Literal(value)


def literal_sql(value: Value) -> str:
    if value is None or isinstance(value, bool):
        return str(value).upper() if value is not None else "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return repr(value)


def sql(expression: Expression) -> str:
    """The expression as SQL that DuckDB and dither both read."""
    if isinstance(expression, Column):
        name = '"' + expression.name.replace('"', '""') + '"'
        return f"{expression.table}.{name}" if expression.table else name
    if isinstance(expression, Literal):
        return literal_sql(expression.value)
    name, args = expression.op, [sql(item) for item in expression.args]
    if name in INFIX:
        return f"({args[0]} {name.upper()} {args[1]})"
    if name == "neg":
        return f"(- {args[0]})"
    if name == "not":
        return f"(NOT {args[0]})"
    if name == "in":
        return f"({args[0]} IN ({', '.join(args[1:])}))"
    if name == "between":
        return f"({args[0]} BETWEEN {args[1]} AND {args[2]})"
    if name == "like":
        return f"({args[0]} LIKE {args[1]})"
    if name == "is_null":
        return f"({args[0]} IS NULL)"
    if name == "case":
        pairs = zip(args[:-1:2], args[1::2], strict=True)
        return f"(CASE {' '.join(f'WHEN {when} THEN {then}' for when, then in pairs)} ELSE {args[-1]} END)"
    return f"{name.upper()}({', '.join(args)})"


finite = st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: 0.0 if x == 0 else x)
numbers_ = st.integers(-(10**6), 10**6) | finite
words = st.text(st.characters(exclude_characters="\0\\", exclude_categories=["Cs"]), max_size=5)
days = st.dates(date(1900, 1, 1), date(2100, 1, 1))
moments = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(lambda at: at.replace(fold=0))


def _columns(names: tuple[str, ...]) -> st.SearchStrategy[Expression]:
    return st.sampled_from([Column(name) for name in names])


def _literals(values: st.SearchStrategy) -> st.SearchStrategy[Expression]:  # type: ignore[type-arg]
    return values.map(Literal)


def _calls(name: str, *args: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.tuples(*args).map(lambda parts: Call(name, parts))


def numbers(
    names: tuple[str, ...] = NUMBERS, depth: int = 2, textual: tuple[str, ...] = TEXTS, dated: bool = True
) -> st.SearchStrategy[Expression]:
    """Expressions that are numbers. A constant stands on the right only, so that no two constants meet."""
    leaf = _columns(names)
    if depth == 0:
        return leaf
    inner = numbers(names, depth - 1, textual, dated)
    other = inner | _literals(numbers_)
    return st.one_of(
        leaf,
        *(_calls(name, inner, other) for name in "+-*/"),
        _calls("neg", inner),
        _calls("abs", inner),
        _calls("case", conditions(depth - 1, names, textual, dated), inner, other | st.just(Literal(None))),
        _calls("coalesce", inner, other),
    )


def conditions(
    depth: int = 2, numeric: tuple[str, ...] = NUMBERS, textual: tuple[str, ...] = TEXTS, dated: bool = True
) -> st.SearchStrategy[Expression]:
    """Expressions that are true, false or unknown."""
    value, word = numbers(numeric, max(depth - 1, 0), textual, dated), _columns(textual)
    word = word | _calls("lower", word)
    comparison = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
    simple = [
        st.tuples(comparison, value, value | _literals(numbers_)).map(lambda t: Call(t[0], t[1:])),
        st.tuples(comparison, word, word | _literals(words)).map(lambda t: Call(t[0], t[1:])),
        st.tuples(value, st.lists(_literals(numbers_), min_size=1, max_size=3)).map(
            lambda t: Call("in", (t[0], *t[1]))
        ),
        _calls("between", value, _literals(numbers_), value),
        _calls("like", word, _literals(st.text("ab%_", max_size=4))),
        _calls("is_null", value | word),
    ]
    if dated:
        simple += [
            st.tuples(comparison, _columns(("day",)), _literals(days)).map(lambda t: Call(t[0], t[1:])),
            st.tuples(comparison, _columns(("at",)), _literals(moments)).map(lambda t: Call(t[0], t[1:])),
            _columns(("vip",)),
        ]
    if depth == 0:
        return st.one_of(*simple)
    inner = conditions(depth - 1, numeric, textual, dated)
    return st.one_of(*simple, _calls("and", inner, inner), _calls("or", inner, inner), _calls("not", inner))
