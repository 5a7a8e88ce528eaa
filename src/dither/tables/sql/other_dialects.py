"""What to write instead of functions and forms that other engines have and dither cannot bound.

In a hint ``{x}`` stands for the first column among the arguments, and ``{s}`` for the first text that is no format of
dates, so that what it says can be copied into the question.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sqlglot import exp

from dither.tables.card.wording import clip

SINGLE_VALUES = "single values are never released"
_PLACEHOLDER = "write the value itself, for example 3 or 'a'"
_PATTERN = "write {x} LIKE 'a%' for texts that begin so, '%a' for those that end so, '%a%' for those that contain it"
_PERIOD = "write date_trunc('month', {x}), or MONTH({x}), or compare with a date: {x} >= '2024-01-01'"
_TODAY = "write the date itself, for example '2024-01-31': an answer may not depend on when it is asked"
_RANDOM = "leave it out: no rows have to be sampled, noise is added to the answer"
_PART = "write CONTAINS({x}, {s}), or STARTS_WITH({x}, {s})"
_LISTED = f"count them by group, SELECT {{x}}, COUNT(*) … GROUP BY {{x}}: {SINGLE_VALUES}"
_EXTREME = f"write MIN({{x}}) or MAX({{x}}): {SINGLE_VALUES}"
_ROW_OF_EXTREME = f"ask for MAX or MIN by group: {SINGLE_VALUES}"
_SAME_GROUP = f"put the column into GROUP BY: {SINGLE_VALUES}"
_WEEKDAY = "write ISODOW({x}): Monday is 1, Sunday is 7"
_LOGARITHM = "write LN({x}), LOG10({x}) or LOG2({x}): engines mean different ones by LOG"
_CAST = "write CAST({x} AS INTEGER), AS DOUBLE, AS TEXT or AS DATE"

FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ["STRFTIME", "TO_CHAR", "DATE_FORMAT", "FORMAT_DATE", "FORMAT_TIMESTAMP", "TIME_BUCKET"], _PERIOD
        ),
        **dict.fromkeys(["DAYOFWEEK", "DOW", "WEEKDAY", "DAYNAME", "DAY_NAME"], _WEEKDAY),
        **dict.fromkeys(["MONTHNAME", "MONTH_NAME"], "write MONTH({x}): January is 1"),
        **dict.fromkeys(["EPOCH", "UNIX_TIMESTAMP"], "write DATE_DIFF('second', TIMESTAMP '1970-01-01 00:00:00', {x})"),
        **dict.fromkeys(
            ["TO_DATE", "STR_TO_DATE", "PARSE_DATE", "DATE_PARSE"],
            "write CAST({x} AS DATE), or a date as '2024-01-31'",
        ),
        **dict.fromkeys(
            ["TO_TIMESTAMP", "STRPTIME", "PARSE_TIMESTAMP"],
            "write CAST({x} AS TIMESTAMP), or a time as '2024-01-31 12:00:00'",
        ),
        **dict.fromkeys(
            ["AGE", "TIMESTAMPDIFF"], "write EXTRACT(YEAR FROM AGE(DATE '2024-01-31', {x})) for complete years"
        ),
        "MONTHS_BETWEEN": "write DATE_DIFF('day', {x}, DATE '2024-01-31') for days",
        **dict.fromkeys(["NOW", "GETDATE", "TODAY", "SYSDATE", "CURDATE", "GET_CURRENT_TIMESTAMP"], _TODAY),
        **dict.fromkeys(["RANDOM", "RAND", "UUID", "GEN_RANDOM_UUID"], _RANDOM),
        **dict.fromkeys(
            ["REGEXP_MATCHES", "REGEXP_LIKE", "REGEXP_CONTAINS", "REGEXP_FULL_MATCH", "REGEXP", "RLIKE", "MATCH"],
            _PATTERN,
        ),
        **dict.fromkeys(
            ["REGEXP_REPLACE", "REGEXP_EXTRACT", "REGEXP_SUBSTR", "SPLIT_PART", "SUBSTRING_INDEX", "SPLIT"],
            "write SUBSTR({x}, 1, 3), LEFT({x}, 3), RIGHT({x}, 3) or REPLACE({x}, 'old', 'new')",
        ),
        **dict.fromkeys(["POSITION", "STRPOS", "INSTR", "LOCATE", "CHARINDEX", "FIND", "INDEX"], _PART),
        "MID": "write SUBSTR({x}, 1, 3)",
        "CONCAT_WS": "write a || '-' || b",
        **dict.fromkeys(["INITCAP", "PROPER", "TITLE"], "write UPPER({x}) or LOWER({x})"),
        **dict.fromkeys(["LPAD", "RPAD", "FORMAT", "PRINTF"], "leave it out: format the answer instead"),
        **dict.fromkeys(["REVERSE", "HASH", "MD5", "SHA1", "SHA256"], "use the column itself: {x}"),
        **dict.fromkeys(["CONVERT", "INT", "INTEGER", "FLOAT", "DOUBLE", "STR", "STRING", "BOOL", "TO_NUMBER"], _CAST),
        "ZEROIFNULL": "write COALESCE({x}, 0)",
        "NVL2": "write CASE WHEN {x} IS NOT NULL THEN 1 ELSE 0 END",
        **dict.fromkeys(["DECODE", "SWITCH", "CHOOSE"], "write CASE {x} WHEN {s} THEN 1 ELSE 0 END"),
        "LOG": _LOGARITHM,
        **dict.fromkeys(
            ["SIN", "COS", "TAN", "ASIN", "ACOS", "ATAN", "ATAN2"], "use SQRT, POWER, EXP, LN or arithmetic on {x}"
        ),
        "PI": "write 3.141592653589793",
        "CBRT": "write EXP(LN({x}) / 3)",
        "SQUARE": "write POWER({x}, 2)",
        "RANGE_BUCKET": "write WIDTH_BUCKET({x}, 0, 100, 10)",
        "NTILE": "write WIDTH_BUCKET({x}, 0, 100, 4): bins of equal width",
        **dict.fromkeys(["APPROX_COUNT_DISTINCT", "NUNIQUE", "UNIQ", "COUNT_DISTINCT"], "write COUNT(DISTINCT {x})"),
        **dict.fromkeys(
            ["ARRAY_AGG", "STRING_AGG", "GROUP_CONCAT", "LISTAGG", "LIST", "COLLECT_LIST", "COLLECT_SET", "JSON_AGG"],
            _LISTED,
        ),
        **dict.fromkeys(["HISTOGRAM", "VALUE_COUNTS", "TOP_K", "APPROX_TOP_K", "APPROX_TOP_COUNT"], _LISTED),
        "ANY_VALUE": _SAME_GROUP,
        "ARBITRARY": _SAME_GROUP,
        **dict.fromkeys(["FIRST", "LAST", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE"], _EXTREME),
        **dict.fromkeys(["ARG_MAX", "ARG_MIN", "ARGMAX", "ARGMIN", "MAX_BY", "MIN_BY"], _ROW_OF_EXTREME),
        **dict.fromkeys(["SKEWNESS", "SKEW", "KURTOSIS", "KURT"], "write AVG({x}), STDDEV({x}), or QUANTILE({x}, 0.9)"),
        **dict.fromkeys(["MAD", "IQR"], "write QUANTILE({x}, 0.75) - QUANTILE({x}, 0.25)"),
        "ENTROPY": _LISTED,
        **dict.fromkeys(["PRODUCT", "GEOMEAN", "GEOMETRIC_MEAN"], "write EXP(AVG(LN({x})))"),
        **dict.fromkeys(["BOOL_OR", "LOGICAL_OR"], "write COUNTIF({x}) > 0"),
        **dict.fromkeys(["BOOL_AND", "LOGICAL_AND", "EVERY"], "write COUNTIF(NOT {x}) = 0"),
        **dict.fromkeys(["TOTAL", "FSUM", "SUMIF"], "write SUM({x})"),
        "AVGIF": "write AVG({x}) FILTER (WHERE condition)",
        "PERCENTILE": "write QUANTILE({x}, 0.9)",
        **dict.fromkeys(["AVERAGE", "MEANS"], "write AVG({x})"),
        **dict.fromkeys(["STDEV", "STDDEVS"], "write STDDEV({x})"),
        "COLUMNS": "name each column: AVG(a), AVG(b)",
        "UNNEST": "name columns of the table",
    }
)  # fmt: skip
"""Hints for functions that are not among those of :mod:`dither.tables.query.operations`."""

_TYPES = {"INT", "INTEGER", "BIGINT", "SIGNED", "UNSIGNED", "FLOAT", "DOUBLE", "VARCHAR", "TEXT", "CHAR", "DATE"}

COMMON = (
    "COUNT, SUM, AVG, MIN, MAX, MEDIAN, QUANTILE, STDDEV; ABS, ROUND, FLOOR, COALESCE, CASE, CAST; UPPER, SUBSTR, "
    "TRIM, CONTAINS; YEAR, MONTH, DATE_TRUNC, DATE_DIFF"
)
"""Names of functions that most questions are asked with."""

NODES: Mapping[type[exp.Expr], tuple[str, str]] = MappingProxyType(
    {
        exp.Window: ("a window function (OVER)", "use GROUP BY"),
        exp.Subquery: ("a subquery in an expression", "ask it first, and write its answer as a number"),
        exp.Select: ("a subquery in an expression", "ask it first, and write its answer as a number"),
        exp.Exists: ("EXISTS", "write a condition on the row's own columns"),
        exp.Escape: ("ESCAPE", "write CONTAINS({x}, '50%'), or LIKE with % and _ only"),
        exp.RegexpLike: ("a regular expression", _PATTERN),
        exp.RegexpILike: ("a regular expression", _PATTERN),
        exp.SimilarTo: ("SIMILAR TO", _PATTERN),
        exp.Glob: ("GLOB", _PATTERN),
        exp.Interval: ("an interval alone", "add it to a date: x + INTERVAL 5 DAY"),
        exp.Placeholder: ("a placeholder", _PLACEHOLDER),
        exp.Parameter: ("a placeholder", _PLACEHOLDER),
        exp.SessionParameter: ("a placeholder", _PLACEHOLDER),
        exp.Struct: ("braces", _PLACEHOLDER),
        exp.GroupingSets: ("GROUPING SETS", "ask a question for each set of columns"),
        exp.Star: ("*", "write COUNT(*), or name the column: single rows are never released"),
        exp.Tuple: ("a tuple", "compare one column at a time, {x} = 'a' AND …, or with a list: {x} IN (1, 2)"),
        exp.Distinct: ("DISTINCT", "use GROUP BY"),
        exp.Alias: ("AS inside an expression", "name the column after the whole expression"),
        exp.Any: ("ANY", "write {x} IN ('a', 'b'), or {x} LIKE 'a%' OR {x} LIKE 'b%'"),
        exp.CurrentDate: ("CURRENT_DATE", _TODAY),
        exp.CurrentTimestamp: ("CURRENT_TIMESTAMP", _TODAY),
        exp.Filter: ("FILTER after something that is no aggregate", "leave it out"),
        exp.WithinGroup: ("WITHIN GROUP after something else", "write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)"),
        exp.Array: ("a name in square brackets, or a list", 'write {x} without brackets, or "{x}"'),
        exp.Bracket: ("square brackets", "write the column's name alone, or LEFT({x}, 1) for characters"),
        exp.BitwiseXor: ("^", "write POWER({x}, 2)"),
        exp.BitwiseNot: ("~", "write NOT {x}"),
        exp.BitwiseAnd: ("&", "write AND"),
        exp.BitwiseOr: ("|", "write OR"),
        exp.Collate: ("COLLATE", "write LOWER({x}) = 'a', or {x} ILIKE 'a'"),
        exp.Dot: ("a method", "write a function of the column, as AVG(x), CONTAINS(x, 'a') or UPPER(x)"),
    }
)  # fmt: skip
"""What a node is called, and what to write instead."""


def hint(template: str, node: exp.Expr) -> str:
    """The template with the columns and texts of the node.

    >>> hint("write CONTAINS({x}, {s})", exp.func("STRPOS", exp.column("origin"), exp.Literal.string("J")))
    "write CONTAINS(origin, 'J')"
    """
    columns = (item for item in node.find_all(exp.Column, bfs=False) if not isinstance(item.this, exp.Star))
    column = next((item for item in columns if item.name.upper() not in _TYPES), None)
    texts = (item for item in node.find_all(exp.Literal, bfs=False) if item.is_string)
    text = next(texts, None)
    return template.replace("{x}", "x" if column is None else clip(column.sql("duckdb"))).replace(
        "{s}", "'a'" if text is None else clip(text.sql("duckdb"))
    )
