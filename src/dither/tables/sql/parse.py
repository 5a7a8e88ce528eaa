"""SQL to a question, or an InvalidArgument that names the nearest thing that works.

A statement is classified, then read. The SELECTs that aggregate rows of the card are its *private blocks*
(:mod:`dither.tables.sql.blocks`): the statement itself, or several inside of WITH, FROM, UNION and expressions. Each is
read once. What surrounds them is *outer* SQL on their noisy tables, which is rehearsed once. A statement that is one
block, of which dither's own operations compute the answer, needs none.

Blocks with the same rows, GROUP BY, joins and limits are one aggregation. So are blocks without GROUP BY whose WHERE
differ, as each aggregate can be of the rows of its own block; with GROUP BY they are not, as which groups there are
follows from WHERE. Other blocks, and the levels of ROLLUP, CUBE and GROUPING SETS, are aggregations beside it.

Understood
    Aggregates (:mod:`dither.tables.sql.aggregates`) and arithmetic on them; WHERE with comparisons, AND, OR, NOT, IN,
    BETWEEN, LIKE, IS NULL, + - * /, CASE, COALESCE, NULLIF, ABS, LOWER, UPPER, date_trunc and WIDTH_BUCKET; dates as
    '2024-01-01', DATE '…' or TIMESTAMP '…'; GROUP BY columns, expressions, names given by AS, and positions; HAVING,
    ORDER BY and LIMIT on the noisy answer; FROM (SELECT … FROM table WHERE …) of rows; JOIN and LEFT JOIN to a public
    table on one equality; ``SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon, delta, max_groups_contributed,
    max_rows_per_group, privacy_unit_column)`` and its bounds, as BigQuery has them.

Different from what an engine does
    ``/`` never cuts off, and is NULL where the divisor is 0. WIDTH_BUCKET is NULL outside of its limits, and its last
    bucket contains the upper limit. NULLs sort last.

A name in GROUP BY or HAVING that is a column of the table and also, by AS, something else is refused: engines differ
in what they make of it.

*Outer SQL* is written for the isolated DuckDB. Everything is refused that is not known here: each node of the tree,
each function, each table. Tables are the noisy one and those that WITH names. Functions give the same for the same
noisy table, always: none reads files, settings, the catalog, the clock or a random number.

Some of it is written in another way, so that no value of the noisy table makes it fail: a division by zero is NULL, and
a CAST that a value does not fit is NULL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from dither.errors import InvalidArgument
from dither.tables.card.model import Card, Type, column_types
from dither.tables.card.values import clip, closest
from dither.tables.query.operations.base import refuse_other_parts, refuse_sql
from dither.tables.query.relations import answer_type, relation_card, spelling, unique
from dither.tables.query.tree import Aggregate, Call, Column, Expression, Group, Literal, PostProcessing, Query, Shape
from dither.tables.sql.aggregates import is_aggregate, outer_columns
from dither.tables.sql.blocks import BlockLevel, NoisyNames, PrivateBlock, window_parts
from dither.tables.sql.public_subqueries import (
    ComputePublic,
    constant_node,
    public_tables_read,
    reads_public_alone,
    write_public_values,
)
from dither.tables.sql.relations import groups_by_person, is_private
from dither.tables.sql.same_person import with_person_joins
from dither.tables.sql.scopes import bind_tables, read_item, with_item, write_day, write_windows_out
from dither.tables.sql.text import FUNCTION_HINTS, hint, refuse_node, statement

_NODES: frozenset[type[exp.Expr]] = frozenset(
    {
        exp.Select, exp.Subquery, exp.Union, exp.Intersect, exp.Except, exp.With, exp.CTE, exp.TableAlias, exp.Table,
        exp.From, exp.Join, exp.Where, exp.Group, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Having, exp.Qualify,
        exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Fetch, exp.LimitOptions, exp.Distinct, exp.Values,
        exp.Window, exp.WindowSpec, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls,
        exp.Alias, exp.Column, exp.Identifier, exp.Star, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Tuple,
        exp.Case, exp.If, exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In,
        exp.Between, exp.Like, exp.ILike, exp.Escape, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Exists,
        exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Neg, exp.DPipe, exp.Pow,
        exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Extract, exp.Interval, exp.Var, exp.Anonymous,
    }
)  # fmt: skip
_SELECT = (
    "with_", "expressions", "from_", "joins", "where", "group", "having", "qualify", "windows", "order", "limit",
    "offset", "distinct",
)  # fmt: skip

FUNCTIONS = frozenset(
    {
        "abs", "ceil", "ceiling", "floor", "round", "round_even", "trunc", "sign", "sqrt", "cbrt", "exp", "ln", "log",
        "log2", "log10", "pow", "power", "mod", "greatest", "least", "pi", "degrees", "radians", "sin", "cos", "tan",
        "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "even", "gcd", "lcm", "isnan", "isinf", "isfinite",
        "coalesce", "nullif", "ifnull", "if", "iif", "nvl", "lower", "upper", "lcase", "ucase", "trim", "ltrim",
        "rtrim", "length", "len", "char_length", "character_length", "substr", "substring", "left", "right", "replace",
        "translate", "reverse", "concat", "concat_ws", "contains", "starts_with", "ends_with", "prefix", "suffix",
        "strpos", "instr", "position", "split_part", "lpad", "rpad", "format", "printf", "regexp_matches",
        "regexp_replace", "regexp_extract", "regexp_full_match", "md5", "sha256", "strip_accents", "bar", "to_base",
        "hex", "ascii", "initcap", "format_bytes", "year", "month", "day", "quarter", "week", "hour", "minute",
        "second", "dayofweek", "dayofmonth", "dayofyear", "isodow", "isoyear", "weekday", "weekofyear", "yearweek",
        "dayname", "monthname", "decade", "century", "last_day", "date_trunc", "datetrunc", "date_part", "datepart",
        "date_diff", "datediff", "date_sub", "datesub", "date_add", "make_date", "strftime", "try_strptime", "epoch",
        "julian", "age", "time_bucket", "to_years", "to_months", "to_weeks", "to_days", "to_hours", "to_minutes",
        "to_seconds", "count", "sum", "avg", "mean", "min", "max", "median", "mode", "count_if", "countif", "bool_and",
        "bool_or", "product", "stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop", "corr",
        "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2", "regr_count", "regr_avgx", "regr_avgy",
        "skewness", "kurtosis", "entropy", "mad", "quantile", "quantile_cont", "quantile_disc", "percentile_cont",
        "percentile_disc", "string_agg", "listagg", "group_concat", "arg_max", "arg_min", "argmax", "argmin", "max_by",
        "min_by", "any_value", "first", "last", "geomean", "fsum", "favg", "row_number", "rank", "dense_rank",
        "percent_rank", "cume_dist", "ntile", "lag", "lead", "first_value", "last_value", "nth_value", "grouping",
    }
)  # fmt: skip
"""The functions of DuckDB that may be used on an answer."""
_HINTS = {
    **dict.fromkeys(["list", "array_agg"], "use STRING_AGG(CAST(x AS VARCHAR), ', ')"),
    "strptime": "use TRY_STRPTIME(text, format)",
    "repeat": "use LPAD or RPAD",
    **dict.fromkeys(["approx_quantile", "reservoir_quantile"], "use QUANTILE_CONT(x, 0.5): it is exact"),
    "approx_count_distinct": "use COUNT(DISTINCT x): it is exact",
    "to_char": "use STRFTIME(date, '%Y-%m')",
    "date_format": "use STRFTIME(date, '%Y-%m')",
}
_PADDED = {"lpad", "rpad"}
_MOST_PADDING = 1000


def render(tree: exp.Query, *noisy: str, public: Collection[str] = ()) -> str:
    """Return the SQL for the isolated database, which reads these noisy tables and the ``public`` ones; refuse any
    node, function or table that is not known to be safe there."""
    tables = {name.casefold() for name in (*noisy, *public)}
    for node in list(tree.walk()):
        _check_node(node, tables)
    try:
        return without_failures(tree).sql("duckdb", unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError:
        raise refuse_sql(
            "SQL of DuckDB on the answer", "SQL that DuckDB does not have", "simplify the outer query"
        ) from None


def _check_node(node: exp.Expr, tables: Collection[str]) -> None:
    """Refuse a node that SQL on noisy tables may not contain; give the column its table where DuckDB would otherwise
    read its name as a built-in value."""
    kind = type(node)
    if kind not in _NODES:
        raise refuse_node(node, "SQL on the noisy answer", "use plain SELECTs, functions and windows over the answer")
    if isinstance(node, exp.Select):
        refuse_other_parts(node, *_SELECT)
    elif isinstance(node, exp.Table):
        _check_table(node, tables)
    elif isinstance(node, exp.Anonymous):
        _check_function(node)
    elif isinstance(node, exp.Column) and not node.table and reads_database(node.name):
        _qualify(node)
    elif isinstance(node, exp.With) and node.args.get("recursive"):
        raise refuse_sql("WITH", "WITH RECURSIVE", "leave RECURSIVE out, and use window functions")
    elif isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)) and not isinstance(node.parent, exp.Window):
        raise refuse_sql("LAG(x) IGNORE NULLS OVER (…)", "IGNORE NULLS inside the brackets", "write it after them")
    elif isinstance(node, exp.Alias) and not isinstance(node.parent, exp.Select):
        raise refuse_sql("AS after a column of SELECT", "AS inside an expression", "name the whole expression")


def _check_table(node: exp.Table, tables: Collection[str]) -> None:
    """Refuse a table in FROM that is neither a noisy or public table nor an item of WITH."""
    fix = "read a public table, what a WITH names, or an aggregation: FROM (SELECT …, COUNT(*) … GROUP BY …)"
    if not isinstance(node.this, exp.Identifier):
        raise refuse_sql("tables of this question", "a function as table", fix)
    if node.args.get("db") or node.args.get("catalog"):
        raise refuse_sql("tables of this question", "a path to a table", fix)
    refuse_other_parts(node, "this", "alias", "joins")
    if node.name.casefold() not in tables and with_item(node) is None:
        raise refuse_sql("tables of this question", f"a table {clip(node.name)!r}", fix)


def _check_function(node: exp.Anonymous) -> None:
    """Refuse a function that is not among :data:`FUNCTIONS`, or whose arguments could read the clock or use much
    memory."""
    name = str(node.this).casefold() if isinstance(node.this, str) else node.name.casefold()
    if name not in FUNCTIONS:
        fix = _HINTS.get(name) or FUNCTION_HINTS.get(name.upper())
        fix = fix or closest(name.upper(), sorted(item.upper() for item in FUNCTIONS))
        raise refuse_sql("a function of the answer", clip(name.upper()), hint(fix, node))
    if name == "age" and len(node.expressions) != 2:  # with one date it reads the clock
        raise refuse_sql("AGE(later, earlier)", f"{len(node.expressions)} arguments", FUNCTION_HINTS["AGE"])
    if name in _PADDED:
        length = node.expressions[1] if len(node.expressions) > 1 else None
        if not isinstance(length, exp.Literal) or length.is_string or not length.name.isdigit():
            raise refuse_sql(
                f"{name.upper()}(x, n, ' ')", "a length that is no constant", "write the length as a number"
            )
        if int(length.name) > _MOST_PADDING:
            raise refuse_sql(f"a length of at most {_MOST_PADDING}", length.name, "use a shorter one")


def _qualify(node: exp.Column) -> None:
    """Add its table to a column whose bare name DuckDB would read as a built-in value, such as CURRENT_USER, if no
    column had it; refuse it where the table is ambiguous."""
    select = node.find_ancestor(exp.Select)
    source = select.args.get("from_") if select is not None and not select.args.get("joins") else None
    name = source.this.alias_or_name if source is not None else ""
    if not name:
        fix = f"write its table before it, as in t.{clip(node.name)}, or give the column another name by AS"
        raise refuse_sql("columns of the answer", f"{clip(node.name).upper()}, which DuckDB reads by itself", fix)
    node.set("table", exp.to_identifier(name, quoted=True))


@lru_cache(maxsize=4096)
def reads_database(name: str) -> bool:
    """Return whether DuckDB reads a name without such a column as a built-in value, as CURRENT_USER or LOCALTIMESTAMP.

    The installed DuckDB is asked, since versions differ.

    >>> reads_database("LocalTimestamp"), reads_database("n")
    (True, False)
    """
    import duckdb  # questions without post-processing may not need it

    with duckdb.connect(":memory:") as database:
        try:
            database.sql(exp.select(exp.column(exp.to_identifier(name, quoted=True))).sql("duckdb"))
        except (duckdb.BinderException, duckdb.ParserException):
            return False
    return True


def without_failures(tree: exp.Query) -> exp.Query:
    """Rewrite a tree in place so that no value makes it fail, and return it: a division by 0 is NULL, and so is a CAST
    of a value that does not fit."""
    for node in list(tree.walk()):
        if isinstance(node, (exp.Div, exp.Mod, exp.IntDiv)):
            divisor = node.expression
            if not (isinstance(divisor, exp.Literal) and any(digit in "123456789" for digit in divisor.name)):
                node.set("expression", _null_if_zero(divisor))
        elif isinstance(node, exp.Anonymous) and node.name.casefold() == "mod" and len(node.expressions) == 2:
            first, second = node.expressions
            node.set("expressions", [first, _null_if_zero(second)])
        elif type(node) is exp.Cast and not _constant(node):
            node.replace(exp.TryCast(this=node.this, to=node.args["to"]))
    return tree


def _null_if_zero(divisor: exp.Expr) -> exp.Expr:
    """Return NULLIF(divisor, 0)."""
    return exp.Anonymous(this="NULLIF", expressions=[divisor.copy(), exp.Literal.number(0)])


def _constant(node: exp.Cast) -> bool:
    """Return whether a CAST is of a literal, as in DATE '2024-01-01', outside of branches and arguments: the rehearsal
    then evaluates it in any case, and refuses a wrong one."""
    return isinstance(node.this, exp.Literal) and node.find_ancestor(exp.Case, exp.If, exp.Anonymous) is None


_NEVER = "single rows are never released"
_ROWS = "add COUNT(*) and GROUP BY, for example: single rows are never released"
_PLACE = "place among the private blocks"
_MAX_WRITTEN = 50_000
"""How many nodes of the tree may be written again where the names of WITH are read."""
MOST_AGGREGATIONS = 64
"""How many private aggregations a question may have: they share the budget."""


def parse(
    text: str,
    card: Card,
    as_of: date | None = None,
    compute: ComputePublic | None = None,
    earlier: Sequence[float] = (),
) -> Query:
    """Return the question that a SELECT asks of the card's table.

    Each private block of the statement becomes one or more private aggregations. What surrounds the blocks is a
    :class:`~dither.tables.query.tree.Shape` where dither's own operations compute it, else SQL on noisy tables.
    CURRENT_DATE is ``as_of``, or else the card's day, or else today (UTC). ``compute`` computes subqueries about public
    tables, which are refused without it. ``earlier`` are the answers to the questions that are asked before this one.

    >>> from dither.tables.card.model import ColumnCard
    >>> visits = Card("visits", "visits.csv", {"region": ColumnCard("text"), "amount": ColumnCard("number", (0, 9))})
    >>> question = parse("SELECT region, SUM(amount) / COUNT(*) AS m FROM visits GROUP BY region", visits)
    >>> list(question.aggregates), question.groups[0].name
    (['sum_amount', 'count'], 'region')
    >>> parse("SELECT SUM(amuont) FROM visits", visits)
    Traceback (most recent call last):
    dither.InvalidArgument: column: expected a column of the table, got 'amuont'. Fix: write amount, the nearest name.
    """
    tree, options = statement(text, card.name, list(card.columns), example(card))
    write_windows_out(tree)
    day = as_of or card.as_of or datetime.now(UTC).date()
    named_day = day if write_day(tree, day) else None
    if reads_public_alone(tree, card):
        return Query({}, post=_of_public_tables(tree, card), as_of=named_day)
    if compute is not None:
        write_public_values(tree, card, compute)
    with_person_joins(tree, card)
    before = _write_private_values(tree, card, earlier)
    return replace(_question(tree, card, options, named_day), before=() if earlier else before)


def _write_private_values(tree: exp.Query, card: Card, earlier: Sequence[float]) -> tuple[Query, ...]:
    """Replace every subquery that compares rows with a private number, as in ``WHERE x > (SELECT AVG(x) FROM t)``, by
    the number, and return the questions that it is the answer to.

    That number is noise and truth, and released already when rows are compared with it: the question is asked in two
    stages, which share the budget. ``earlier`` are the numbers; empty before they are known, when stand-ins are used.
    """
    questions: list[Query] = []
    for node in [node for node in tree.find_all(exp.Subquery) if _compares_rows(node, card)]:
        inside = node.this
        if len(inside.expressions) != 1 or inside.args.get("group") or outer_columns(inside, inside):
            continue  # it has another number for every row, or several
        question = _question(inside.copy(), card, {})
        kinds = {item.kind for part in question.aggregations for item in part.aggregates.values()}
        if kinds & {"mode", "histogram"}:  # which are no numbers
            continue
        known = earlier[len(questions)] if earlier else _stand_in(question, card)
        node.replace(constant_node(known))
        questions.append(question)
    return tuple(questions)


def _compares_rows(node: exp.Subquery, card: Card) -> bool:
    """Return whether a subquery aggregates private rows, and stands where an expression on rows does."""
    inside = node.this
    if not isinstance(inside, exp.Select) or not _reads_rows(inside, card) or not _aggregates(inside):
        return False
    if isinstance(node.parent, (exp.From, exp.Join, exp.In, exp.Exists, exp.CTE, exp.SetOperation)):
        return False
    around = node.parent
    while around is not None and not isinstance(around, exp.Select):
        if isinstance(around, exp.Where) or is_aggregate(around):
            select = around.find_ancestor(exp.Select)
            return select is not None and (_reads_rows(select, card) or _reads_named_rows(select, card))
        around = around.parent
    return False


def _reads_named_rows(select: exp.Select, card: Card) -> bool:
    """Return whether a SELECT reads private rows that WITH names."""
    start = select.args.get("from_")
    item = with_item(start.this) if start is not None and isinstance(start.this, exp.Table) else None
    return item is not None and _is_relation(item.this, card)


def _stand_in(question: Query, card: Card) -> float:
    """Return a number that a question might have as its answer: the middle of a column's bounds, or else 1."""
    values = [item.value for item in question.aggregates.values() if item.kind in ("mean", "min", "max", "quantile")]
    column = card.columns.get(values[0].name) if values and isinstance(values[0], Column) else None
    return 1.0 if column is None or column.bounds is None else sum(column.bounds) / 2


def _question(tree: exp.Query, card: Card, options: dict[str, exp.Expr], day: date | None = None) -> Query:
    """Return the question that a statement asks, of which all subqueries are read."""
    _refuse_single_rows(tree, card)
    plain = not has_outer_part(tree)
    selects = [tree] if plain and isinstance(tree, exp.Select) else _private_blocks(tree, card)
    for place, select in enumerate(selects):
        select.meta[_PLACE] = place
    blocks = [PrivateBlock(select, card, options) for select in selects]
    shape = blocks[0].shape() if selects[0] is tree else None
    if plain and isinstance(shape, InvalidArgument) and not blocks[0].aggregates:
        raise shape
    merged = aggregations([item for block in blocks for item in block.asked])
    first, *others = [aggregation.query()[0] for aggregation in merged]
    others = [replace(part, epsilon=None, delta=None, as_of=day) for part in others]
    question = replace(first, more=tuple(others), as_of=day)
    if isinstance(shape, Shape):
        return replace(question, shape=shape)
    try:
        return replace(question, post=_post_processing(tree, blocks, merged, card))
    except InvalidArgument:
        if plain and shape is not None:  # DuckDB does not compute it either
            raise shape from None
        raise


def _post_processing(
    tree: exp.Query, blocks: Sequence[PrivateBlock], merged: Sequence[MergedAggregation], card: Card
) -> PostProcessing:
    """Return the SQL that computes a statement from the noisy tables of its blocks; refuse SQL that fails in a
    rehearsal on made-up tables."""
    from dither.tables.query.postprocess import rehearse  # it loads DuckDB, which other questions may not need

    free_names = _free_names(tree)
    noisy = [next(free_names) for _ in merged]
    tables: dict[int, NoisyNames] = {}
    types: list[dict[str, Type]] = []
    for name, aggregation in zip(noisy, merged, strict=True):
        part, names = aggregation.query()
        tables |= {place: (name, columns) for place, columns in zip(aggregation.places, names, strict=True)}
        types.append(_types(part, relation_card(card, part.source), aggregation.items[0].types))
    in_order = iter([tables[place] for place in sorted(tables)])
    outer = [block.outer([next(in_order) for _ in block.asked]) for block in blocks]
    sql = _with_outer_sql(tree, outer)
    known = public_tables_read(sql, card)
    post = PostProcessing(render(sql, *noisy, public=known), noisy[0], tuple(noisy[1:]), known)
    one_row = [name for name, item in zip(noisy, merged, strict=True) if not item.groups]
    rehearse(post, *types, one_row=one_row, public=column_types(card, known))
    return post


def _of_public_tables(tree: exp.Query, card: Card) -> PostProcessing:
    """Return a statement that reads public tables alone, after a rehearsal on made-up ones."""
    from dither.tables.query.postprocess import rehearse  # it loads DuckDB, which other questions may not need

    known = public_tables_read(tree, card)
    post = PostProcessing(render(tree, public=known), table="", public=known)
    rehearse(post, public=column_types(card, known))
    return post


def has_outer_part(tree: exp.Query) -> bool:
    """Return whether a statement may need SQL on noisy tables: it has subqueries, window functions, levels of ROLLUP or
    CUBE, or functions of aggregates."""
    outer_nodes = (exp.Window, exp.Qualify, exp.Distinct, exp.Offset, exp.With, exp.Rollup, exp.Cube, exp.GroupingSets)
    calls = (exp.Anonymous, exp.Cast, exp.TryCast, exp.DPipe, exp.Mod, exp.IntDiv, exp.ILike, exp.Extract)
    for node in tree.walk():
        if isinstance(node, outer_nodes) and not isinstance(node.parent, exp.Anonymous):
            return True
        if isinstance(node, exp.Query) and node is not tree:
            return True
        if isinstance(node, calls) and not is_aggregate(node) and any(map(is_aggregate, node.walk())):
            return True
    return not isinstance(tree, exp.Select)


def _types(question: Query, card: Card, known: dict[str, Type]) -> dict[str, Type]:
    """Return the types of a noisy table's columns by name; ``known`` has those of the groups."""
    groups = {group.name: known[group.name] for group in question.groups}
    return groups | {name: answer_type(aggregate, card) for name, aggregate in question.aggregates.items()}


def _with_outer_sql(tree: exp.Query, outer: list[exp.Select]) -> exp.Query:
    """Return the tree with each private block replaced by its SQL on noisy tables, outermost first, so that blocks
    inside of others are replaced as well."""
    while True:
        block = next((node for node in tree.find_all(exp.Select) if _PLACE in node.meta), None)
        if block is None:
            return tree
        sql = outer[block.meta[_PLACE]].copy()
        if block is tree:
            tree = sql
        else:
            block.replace(sql)


def _write_rows_in_place(tree: exp.Query, card: Card) -> None:
    """Rewrite a tree in place: each WITH item that is a relation of private rows becomes a subquery in every FROM that
    names it, and is removed from WITH."""
    written = 0
    for place, item in enumerate(bind_tables(tree)):
        name = item.alias
        if is_private(name, card) or spelling(name, card.public):
            raise refuse_sql("a new name after WITH", f"{clip(name)!r}, a table of the card", "choose another name")
        if not _is_relation(item.this, card):
            continue
        refuse_other_parts(item, "this", "alias")
        if item.args["alias"].args.get("columns"):
            raise refuse_sql("WITH name AS (…)", "names of columns in brackets", "name them by AS inside")
        size = sum(1 for _ in item.this.walk())
        for table in [table for table in tree.find_all(exp.Table) if read_item(table) == place]:
            written += size
            if written > _MAX_WRITTEN:
                fix = "read what WITH names fewer times"
                raise refuse_sql("WITH that is read a few times", "what grows too large", fix)
            refuse_other_parts(table, "this", "alias")
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name, quoted=True))
            table.replace(exp.Subquery(this=item.this.copy(), alias=alias.copy()))
        clause = item.parent
        assert clause is not None
        item.pop()
        if not clause.expressions and clause.parent is not None:
            clause.parent.set("with_", None)


def _reads_rows(select: exp.Select, card: Card) -> bool:
    """Return whether a SELECT reads private rows in FROM or a join."""
    start = select.args.get("from_")
    sources = [start.this] if start is not None else []
    sources += [join.this for join in select.args.get("joins") or ()]
    return any(_is_rows(source, card) for source in sources)


def _is_rows(source: exp.Expr, card: Card) -> bool:
    """Return whether an element of FROM is a private table, has one in its joins, or is a subquery of private rows."""
    if isinstance(source, exp.Table):
        named = isinstance(source.this, exp.Identifier) and not source.args.get("db")
        nested = [join.this for join in source.args.get("joins") or ()]
        here = named and is_private(source.name, card)
        return here or any(_is_rows(item, card) for item in nested)
    return isinstance(source, exp.Subquery) and _is_relation(source.this, card)


def _is_relation(query: exp.Expr, card: Card) -> bool:
    """Return whether every row of a query's result belongs to one person: it selects private rows, or aggregates them
    by person."""
    if isinstance(query, exp.Union):
        return _is_relation(query.this, card) and _is_relation(query.expression, card)
    if isinstance(query, exp.Subquery):
        return _is_relation(query.this, card)
    if not isinstance(query, exp.Select) or not _reads_rows(query, card):
        return False
    return not _aggregates(query) or groups_by_person(query, card)


def _aggregates(select: exp.Select) -> bool:
    """Return whether a SELECT has GROUP BY or an aggregate, other than as a window function or in a subquery."""
    if select.args.get("group"):
        return True
    parts = [*select.expressions, *(select.args.get(name) for name in ("having", "qualify", "order"))]
    waiting = [part for part in parts if part is not None]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Query):
            continue
        if isinstance(node, exp.Window):
            waiting += window_parts(node)
        elif is_aggregate(node):
            return True
        else:
            waiting += node.iter_expressions()
    return False


def _private_blocks(tree: exp.Query, card: Card) -> list[exp.Select]:
    """Return the SELECTs that aggregate private rows, outermost first; refuse a SELECT that would release rows. WITH
    items of private rows are first written into the FROM that reads them."""
    _write_rows_in_place(tree, card)
    result: list[exp.Select] = []
    consumed: set[int] = set()
    for node in tree.walk():
        if not isinstance(node, exp.Select) or id(node) in consumed or not _reads_rows(node, card):
            continue
        if not _aggregates(node):
            raise _single_rows(node, card)
        result.append(node)
        consumed |= {id(item) for item in _nodes_about_rows(node)}
    if not result:
        raise refuse_sql(f"an aggregation of {card.name}", "none", f"write SELECT COUNT(*) FROM {card.name} inside")
    return result


def _single_rows(select: exp.Select, card: Card) -> InvalidArgument:
    """Return the error for a SELECT that would release rows, with advice by its context: EXISTS, IN, a set operation,
    DISTINCT, a window function, or none of these."""
    person = card.unit or "person"
    around = select.parent
    while isinstance(around, exp.Subquery):
        around = around.parent
    if isinstance(around, (exp.Exists, exp.In)):
        what = "EXISTS" if isinstance(around, exp.Exists) else "IN (SELECT …)"
        if outer_columns(select, select):
            fix = f"put it into WHERE, as a condition of its own: WHERE … AND {clip(around.sql('duckdb'), 200)}"
            return refuse_sql(f"{what} about the person alone inside an expression", "columns of the row in it", fix)
        fix = f"write {person} IN (SELECT {person} FROM …)"
        return refuse_sql(f"{what} about rows of the same person", "rows of other people", fix)
    if select.args.get("distinct"):
        return refuse_sql("SELECT", "SELECT DISTINCT of rows", "use GROUP BY and COUNT(*)")
    if any(item.find(exp.Window) for item in select.expressions):
        fix = "use it over aggregates, with GROUP BY: LAG(COUNT(*)) OVER (ORDER BY key)"
        return refuse_sql("an aggregate", "a window function over single rows", fix)
    if isinstance(select.parent, (exp.Intersect, exp.Except)):
        word = "NOT IN" if isinstance(select.parent, exp.Except) else "IN"
        got = f"{select.parent.key.upper()} of single rows"
        fix = f"keep people by WHERE {person} {word} (SELECT {person} FROM …) in the first SELECT"
        return refuse_sql("an aggregate", got, fix)
    if isinstance(select.parent, exp.SetOperation):
        fix = "aggregate in each SELECT, and join the answers: single rows are never released"
        return refuse_sql("an aggregate", f"{select.parent.key.upper()} of single rows", fix)
    return refuse_sql("an aggregate", "none", _ROWS)


def _nodes_about_rows(block: exp.Select) -> list[exp.Expr]:
    """Return all nodes in the clauses of a block that are about rows: FROM, WHERE, GROUP BY and joins."""
    parts = [
        block.args.get("from_"),
        block.args.get("where"),
        block.args.get("group"),
        *(block.args.get("joins") or ()),
    ]
    return [node for part in parts if part is not None for node in part.walk()]


def _free_names(tree: exp.Query) -> Iterator[str]:
    """Yield names for noisy tables (noisy, noisy_2, …) that the statement does not use."""
    taken = {str(item.this).casefold() for item in tree.find_all(exp.Identifier)}
    while True:
        name = unique("noisy", taken)
        taken.add(name.casefold())
        yield name


@dataclass
class MergedAggregation:
    """A private aggregation of the question, and the requests of blocks that it answers."""

    items: list[BlockLevel]
    places: list[int]
    """The indices of the items among the requests of all blocks."""

    @property
    def groups(self) -> tuple[Group, ...]:
        """The grouping columns, under the names that the first request gives them."""
        return self.items[0].groups

    def takes(self, asked: BlockLevel) -> bool:
        """Return whether this aggregation can also answer a block's request: groups, joins and relation are equal, and
        WHERE is equal or, without groups, can become a condition of each aggregate."""
        first = self.items[0]
        if asked.identity != first.identity:
            return False
        if asked.rows.where == first.rows.where:
            known = [item for item in self.items if item.is_level]
            extra = [item for item in asked.aggregates.values() if known and item not in known[0].aggregates.values()]
            return not extra
        if asked.groups:  # of the rows of both, each block would have the groups of the other as well
            return False
        items = (*self.items, asked)
        conditional = all(item.kind not in ("people", "mode") for part in items for item in part.aggregates.values())
        return conditional and not any(item.is_level for item in items)

    def query(self) -> tuple[Query, list[dict[str, str]]]:
        """Return the query that answers all requests and, for each of them, the names that its groups and aggregates
        have in that query."""
        first = self.items[0]
        every_name: list[dict[str, str]] = []
        same_rows = all(item.rows.where == first.rows.where for item in self.items)
        aggregates: dict[str, Aggregate] = {}
        for item in self.items:
            names = {group.name: here.name for group, here in zip(item.groups, self.groups, strict=True)}
            for name, aggregate in item.aggregates.items():
                wanted = aggregate if same_rows else _filtered_aggregate(aggregate, item.rows.where)
                known = next((other for other, value in aggregates.items() if value == wanted), None)
                taken = {other.casefold() for other in (*aggregates, *(group.name for group in self.groups))}
                names[name] = known or unique(name, taken)
                aggregates[names[name]] = wanted
            every_name.append(names)
        if not aggregates:
            fix = "add COUNT(*) and GROUP BY, for example: single rows are never released"
            raise refuse_sql("an aggregate", "none", fix)
        where = first.rows.where
        if not same_rows:
            for item in self.items[1:]:
                other = item.rows.where
                where = None if where is None or other is None else Call("or", (where, other))
        question = Query(
            aggregates, self.groups, where, first.rows.joins, source=first.rows.source, rolled_up=first.rolled_up
        )
        return replace(question, **first.options), every_name


def aggregations(asked: Sequence[BlockLevel]) -> list[MergedAggregation]:
    """Return the requests of all blocks merged into as few private aggregations as possible, in their order.

    Levels of ROLLUP and CUBE are placed first, so that other requests with the same rows and groups join a level.
    """
    result: list[MergedAggregation] = []
    for place, item in sorted(enumerate(asked), key=lambda pair: not pair[1].is_level):
        taking = next((other for other in result if other.takes(item)), None)
        if taking is None:
            result.append(MergedAggregation([item], [place]))
        else:
            taking.items.append(item)
            taking.places.append(place)
    if len(result) > MOST_AGGREGATIONS:
        fix = "ask several questions"
        raise refuse_sql(f"at most {MOST_AGGREGATIONS} private aggregations", str(len(result)), fix)
    return sorted(result, key=lambda other: min(other.places))


def _filtered_aggregate(aggregate: Aggregate, condition: Expression | None) -> Aggregate:
    """Return an aggregate of only the rows for which a condition holds, by making its value NULL in others; unchanged
    for None."""
    if condition is None:
        return aggregate
    value = Literal(1) if aggregate.value is None else aggregate.value
    kind = "count_value" if aggregate.kind == "count" else aggregate.kind
    return replace(aggregate, kind=kind, value=Call("case", (condition, value, Literal(None))))


def example(card: Card) -> str:
    """Return the SQL of a valid question about the table, as an example in errors."""
    columns = {name: item for name, item in card.columns.items() if name != card.unit}
    suitable = [name for name, item in columns.items() if item.keys or item.type == "boolean"]
    suitable += [name for name, item in columns.items() if item.type == "text"]
    if not suitable:
        return f"SELECT COUNT(*) FROM {_sql_name(card.name)}"
    name = _sql_name(suitable[0])
    return f"SELECT {name}, COUNT(*) FROM {_sql_name(card.name)} GROUP BY {name}"


def _sql_name(name: str) -> str:
    """Return a name as an SQL identifier, in double quotes where it needs them."""
    return exp.to_identifier(name).sql("duckdb")


def _refuse_single_rows(tree: exp.Query, card: Card) -> None:
    """Refuse a SELECT of rows of the card's table without an aggregate, with a question to ask instead."""
    start = tree.args.get("from_")
    if not isinstance(tree, exp.Select) or start is None or start.this.name.casefold() != card.name.casefold():
        return
    columns = [item.unalias() for item in tree.expressions]
    if tree.args.get("group") or any(is_aggregate(node) for item in columns for node in item.walk()):
        return
    stars = [item for item in columns if item.is_star]
    names = [spelling(item.name, card.columns) for item in columns if isinstance(item, exp.Column)]
    if stars:
        fix = f"write for example {example(card)}"
        raise refuse_sql("groups and aggregates", "*, which means all columns", f"{fix}: {_NEVER}")
    grouped = [name for name in names if name is not None and name != card.unit]
    if len(grouped) != len(columns) or not columns:
        return
    listed = ", ".join(map(_sql_name, grouped))
    got = "SELECT DISTINCT of rows" if tree.args.get("distinct") else f"the column {grouped[0]} outside of aggregates"
    fix = f"write SELECT {listed}, COUNT(*) FROM {_sql_name(card.name)} GROUP BY {listed}: {_NEVER}"
    raise refuse_sql("groups and aggregates", got, fix)


def named_tables(text: str, card: Card) -> tuple[str, ...]:
    """Return the private tables that a statement names, in the card's spelling and the order of the statement; none
    where it reads public tables alone. Refuse a statement without any table of the card."""
    names = list(card.private_tables)
    tree, _ = statement(text, names[0])
    for item in tree.find_all(exp.CTE):
        if spelling(item.alias, names):
            got = f"{clip(item.alias)!r}, a table of the card"
            raise refuse_sql("a new name after WITH", got, "choose another name")
    if reads_public_alone(tree, card):
        return ()
    written = [spelling(table.name, names) for table in tree.find_all(exp.Table) if not table.args.get("db")]
    about = list(dict.fromkeys(name for name in written if name is not None))
    expected = f"FROM one of {', '.join(names)}"
    if not about:
        raise refuse_sql(expected, "none of them", f"write SELECT COUNT(*) FROM {names[0]}, for example")
    return tuple(about)
