"""What SQL above the private aggregation may say, and how it is written for the isolated DuckDB.

Everything is refused that is not known here: each node of the tree, each function, each table. Tables are the noisy
one and those that WITH names. Functions give the same for the same noisy table, always: none reads files, settings, the
catalog, the clock or a random number.

Some of it is written in another way, so that no value of the noisy table makes it fail: a division by zero is NULL, and
a CAST that a value does not fit is NULL.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import ErrorLevel, UnsupportedError

from dither.tables.card.values import clip, closest
from dither.tables.query.operations.base import refuse_other_parts, refuse_sql
from dither.tables.sql.mistakes import FUNCTION_HINTS, hint, refuse_node
from dither.tables.sql.scopes import with_item

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


def render(tree: exp.Query, *noisy: str) -> str:
    """Return the SQL for the isolated database, which reads these noisy tables; refuse any node, function or table
    that is not known to be safe there."""
    tables = {name.casefold() for name in noisy}
    for node in list(tree.walk()):
        _check_node(node, tables)
    try:
        return without_failures(tree).sql("duckdb", unsupported_level=ErrorLevel.RAISE)
    except UnsupportedError:
        raise refuse_sql(
            "SQL of DuckDB on the answer", "SQL that DuckDB does not have", "simplify the outer query"
        ) from None


def _check_node(node: exp.Expr, tables: Collection[str]) -> None:
    """Refuse a node that SQL on the answer may not have."""
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
    """Refuse a table in FROM that is neither a noisy table nor an item of WITH."""
    fix = "read what a WITH names, or an aggregation of the table: FROM (SELECT …, COUNT(*) … GROUP BY …)"
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
    """Write its table before a column whose bare name DuckDB would read as a built-in value, such as CURRENT_USER,
    where there is no such column."""
    select = node.find_ancestor(exp.Select)
    source = select.args.get("from_") if select is not None and not select.args.get("joins") else None
    name = source.this.alias_or_name if source is not None else ""
    if not name:
        fix = f"write its table before it, as in t.{clip(node.name)}, or give the column another name by AS"
        raise refuse_sql("columns of the answer", f"{clip(node.name).upper()}, which DuckDB reads by itself", fix)
    node.set("table", exp.to_identifier(name, quoted=True))


@lru_cache(maxsize=4096)
def reads_database(name: str) -> bool:
    """Return whether DuckDB gives a bare name a value although no column has it, as for CURRENT_USER or LOCALTIMESTAMP.

    DuckDB is asked, so that what another version of it has is known, too.

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
    """Rewrite a tree so that no value makes it fail: division by zero is NULL, and so is a CAST of a value that does
    not fit."""
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
    """Return whether a CAST is of a literal, as DATE '2024-01-01', that every rehearsal computes: not in a branch or
    argument, which made-up rows may not reach."""
    return isinstance(node.this, exp.Literal) and node.find_ancestor(exp.Case, exp.If, exp.Anonymous) is None
