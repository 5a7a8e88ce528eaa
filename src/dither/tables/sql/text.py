"""From text to sqlglot's tree of one SELECT, whatever the text is: anything else is one InvalidArgument.

The text is cut into tokens first. What could make a parser recurse without end is counted there, and BigQuery's
``WITH DIFFERENTIAL_PRIVACY OPTIONS (…)`` is taken off there, so no text is ever searched or pasted together. Functions
are not interpreted by sqlglot (it has opinions on their arguments): each arrives as a name with arguments.

Quotes are those of the standard: 'text', "name", and also `name`. After WITH DIFFERENTIAL_PRIVACY they are BigQuery's:
'text', "text", `name`, without backslashes.

*Mistakes.* What is wrong in a text that cannot be read as SQL, or names what other engines have, is said with what to
write instead. A parser says where it stopped, which is seldom where the mistake is. The rules here look at the words
and signs themselves. Each either recognizes its mistake or says nothing, and the first that recognizes one is what is
said.

In a hint for a function of another engine ``{x}`` stands for the first column among the arguments, and ``{s}`` for the
first text that is no format of dates, so that what it says can be copied into the question.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar, NamedTuple

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from dither.errors import InvalidArgument, WrongType
from dither.tables.card.values import clip
from dither.tables.query.operations.base import refuse_other_parts, refuse_sql

_NAMES = {TokenType.VAR, TokenType.IDENTIFIER}
_COMPARISONS = {TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE}
QUOTED = {TokenType.STRING, TokenType.IDENTIFIER}
_KEYWORDS = {
    "select": "SELECT", "from": "FROM", "where": "WHERE", "groupby": "GROUP BY", "group": "GROUP BY",
    "having": "HAVING", "orderby": "ORDER BY", "order": "ORDER BY", "limit": "LIMIT", "between": "BETWEEN",
    "like": "LIKE", "join": "JOIN",
    "descending": "DESC", "ascending": "ASC", "distinct": "DISTINCT", "filter": "FILTER", "form": "FROM",
}  # fmt: skip
_WORD_OPERATORS = {
    "MATCH": "LIKE '%a%'", "CONTAINS": "LIKE '%a%'", "STARTS": "LIKE 'a%'", "BEGINS": "LIKE 'a%'",
    "STARTSWITH": "LIKE 'a%'", "ENDS": "LIKE '%a'", "ENDSWITH": "LIKE '%a'", "EQUALS": "=", "EQ": "=",
}  # fmt: skip
_OPEN_ENDED = {
    "WHERE", "AND", "OR", "NOT", "BY", "HAVING", "FROM", "SELECT", "ON", "IN", "LIKE", "BETWEEN", ",", "=",
    "<", ">", "<=", ">=", "<>", "!=", "+", "-", "/", "%", "||",
}  # fmt: skip
PLACEHOLDER_ADVICE = "write the value itself, for example 3 or 'a'"


def unreadable(tokens: Sequence[Token], line: int | None, column: int | None, names: Sequence[str]) -> InvalidArgument:
    """Return the error for a text that the parser could not read from this line and column on.

    Its advice is that of the first rule which recognizes a mistake among the tokens. ``names`` are the table's columns.
    """
    at = next((i for i, token in enumerate(tokens) if (token.line, token.col) == (line, column)), len(tokens) - 1)
    words = [token.text if token.token_type in QUOTED else token.text.upper() for token in tokens]
    for rule in _RULES:
        fix = rule(tokens, words, names)
        if fix is not None:
            break
    else:
        fix = f"look for a comma, bracket or quote that is missing before {clip(tokens[at].text, 20)!r}"
    got = f"an error in line {tokens[at].line}, at {clip(tokens[at].text, 20)!r}"
    return refuse_sql("SQL that can be read", got, fix)


_Rule = Callable[[Sequence[Token], list[str], Sequence[str]], str | None]


_OTHER_OPERATORS = {
    "&&": "write AND instead of &&",
    "=>": "write >= instead of =>",
    "= <": "write <= instead of =<",
    "* *": "write POWER(x, 2) instead of x ** 2",
    "NOT =": "write <> instead of NOT =",
    "XOR": "write (a OR b) AND NOT (a AND b) instead of a XOR b",
    **dict.fromkeys(["~", "!~"], "write LIKE 'a%' instead of a regular expression"),
    "UNIQUE": "write DISTINCT instead of UNIQUE",
}
"""Advice on operators of other languages, which are one or two tokens."""


def _other_operators(_tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    """Return advice on operators of other languages, such as && and =>; None where there is none."""
    for first, second in zip(words, [*words[1:], ""], strict=True):
        advice = _OTHER_OPERATORS.get(first) or _OTHER_OPERATORS.get(f"{first} {second}")
        if advice is not None:
            return advice
    return None


def _placeholders(tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    """Return advice on placeholders for parameters, such as ? and %s; None where there is none."""
    for place, word in enumerate(words):
        rest = words[place + 1 : place + 5]
        if word == "%" and (rest[:1] == ["S"] or (rest[:1] == ["("] and rest[2:4] == [")", "S"])):
            return PLACEHOLDER_ADVICE
        if tokens[place].token_type in (TokenType.PLACEHOLDER, TokenType.PARAMETER):
            return PLACEHOLDER_ADVICE
    return None


def _comments(_tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    """Return advice on # and //, which begin no comment in SQL; None where neither occurs."""
    if "#" in words or "//" in words:
        return "begin a comment with --, and write a date in quotes: '2024-01-31'"
    return None


def _first_rows(tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    """Return advice on SELECT TOP n, which is LIMIT n here; None where there is none."""
    if words[1:2] == ["TOP"] and len(tokens) > 2:
        count = tokens[2].text if tokens[2].token_type == TokenType.NUMBER else "10"
        return f"leave TOP {clip(count, 10)} out, and end the question with LIMIT {clip(count, 10)}"
    return None


def _brackets_around_names(_tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    """Return advice on [name], as SQL Server quotes names; None where there is none."""
    for place, word in enumerate(words):
        if word == "[" and words[place + 2 : place + 3] == ["]"]:
            return f"write {_tokens[place + 1].text} without square brackets, and a name with spaces in double quotes"
    return None


def _lists(tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    """Return advice on values and the operators before them (IN, BETWEEN, LIKE, chained comparisons, numbers with
    separators); None where these are right."""
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else ""
        kinds = [token.token_type for token in tokens[place : place + 3]]
        if word == "IN" and following not in ("(", "["):
            return "put the values into brackets: x IN (1, 2)"
        if word in ("LIKE", "ILIKE") and kinds[1:2] == [TokenType.VAR]:
            return f"write the pattern in single quotes: {word} '{clip(tokens[place + 1].text, 20)}%'"
        if word == "BETWEEN" and words[place + 2 : place + 3] == [","]:
            return "write BETWEEN low AND high, without a comma"
        if word in ("AND", "OR") and place + 1 < len(tokens) and tokens[place + 1].token_type in _COMPARISONS:
            return f"name the column again: x > 1 {word} x < 5"
        if kinds == [TokenType.NUMBER, TokenType.COMMA, TokenType.NUMBER]:
            if len(words[place + 2]) == 3 and place and tokens[place - 1].token_type in _COMPARISONS:
                return f"write numbers without commas: {words[place]}{words[place + 2]}"
            return "put the values into brackets: x IN (1, 2)"
        if kinds[:2] == [TokenType.NUMBER, TokenType.MOD] and place + 2 in (len(tokens), place + 3):
            return "write a number without a percent sign: 15, or 0.15"
        if kinds[:2] == [TokenType.NUMBER, TokenType.NUMBER]:
            return f"put a comma between {words[place]} and {words[place + 1]}"
    return None


def _cases(_tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    """Return advice on a CASE without END or WHEN; None where there is none."""
    if "CASE" in words and words.count("CASE") > words.count("END"):
        return "close CASE with END: CASE WHEN x > 0 THEN 1 ELSE 0 END"
    if "CASE" in words and "WHEN" not in words:
        return "write CASE WHEN condition THEN 1 ELSE 0 END"
    return None


def _parentheses(_tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    """Return advice on parentheses that do not match; None where they do."""
    depth = 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if depth < 0:
            return "leave out the ) that has no ("
    return "close each ( with a )" if depth else None


def _clauses(_tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    """Return advice on clauses that are incomplete or in the wrong order, such as GROUP without BY; None where they
    are right."""
    for place, word in enumerate(words[:-1]):
        if word in ("GROUP", "ORDER") and words[place + 1] not in ("BY", ")", ",", ".") and words[place - 1] != ".":
            return f"write {word} BY instead of {word}"
    if "WHERE" in words and "FROM" in words[words.index("WHERE") :] and "FROM" not in words[: words.index("WHERE")]:
        return "write FROM before WHERE: SELECT … FROM … WHERE …"
    if words[-1] in _OPEN_ENDED:
        return f"write something after {words[-1]}, or leave it out"
    return None


def _names_by_as(tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    """Return advice on a name after AS that needs double quotes, as it has spaces or is a keyword; None where there
    is none."""
    for place, word in enumerate(words[:-1]):
        if word != "AS" or tokens[place + 1].token_type in QUOTED:
            continue
        end = place + 2
        while end < len(words) and words[end] not in ("FROM", ",", ")"):
            end += 1
        if end > place + 2 and all(token.text.isalnum() for token in tokens[place + 1 : end]):
            name = " ".join(token.text for token in tokens[place + 1 : end])
            return f'write a name of several words in double quotes: AS "{clip(name)}"'
        if tokens[place + 1].token_type not in _NAMES and tokens[place + 1].text.isalpha():
            return f'write the name in double quotes: AS "{tokens[place + 1].text}"'
    return None


def _names_with_spaces(tokens: Sequence[Token], words: list[str], names: Sequence[str]) -> str | None:
    """Return advice on a column that is written in several words, with its real name; None where there is none."""
    known = {name.casefold(): name for name in names}
    for place in range(len(words)):
        for end in range(place + 2, min(place + 6, len(words) + 1)):
            joined = " ".join(token.text for token in tokens[place:end]).casefold()
            name = known.get(joined) or known.get(joined.replace(" ", "_"))
            if name is not None:
                return f'write "{name}", in double quotes' if " " in name else f"write {name}"
    return None


def _operators_in_words(tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    """Return advice on operators written as words, such as CONTAINS and EQUALS; None where there is none."""
    for place, word in enumerate(words[1:], 1):
        following = words[place + 1 : place + 2]
        if word in _WORD_OPERATORS and tokens[place - 1].token_type in _NAMES and following != ["("]:
            return f"write {tokens[place - 1].text} {_WORD_OPERATORS[word]}"
        if word == "AGAINST":
            return "write x LIKE '%a%'"
    return None


def _misspelled_keywords(tokens: Sequence[Token], words: list[str], names: Sequence[str]) -> str | None:
    """Return advice on a word that resembles a keyword, such as FORM for FROM; None where there is none."""
    columns = {name.casefold() for name in names}
    for place, token in enumerate(tokens):
        if token.token_type != TokenType.VAR or token.text.casefold() in columns or words[place - 1] in ("AS", "."):
            continue
        near = difflib.get_close_matches(token.text.casefold(), _KEYWORDS, n=1, cutoff=0.75)
        if near and _KEYWORDS[near[0]] != words[place]:
            return f"write {_KEYWORDS[near[0]]} instead of {clip(token.text, 20)}"
    return None


def _missing_commas(tokens: Sequence[Token], words: list[str], names: Sequence[str]) -> str | None:
    """Return advice on two names beside each other between SELECT and FROM; None where there are none."""
    columns = {name.casefold() for name in names}
    end = words.index("FROM") if "FROM" in words else len(words)
    for place in range(1, end - 1):
        first, second = tokens[place], tokens[place + 1]
        if first.text.casefold() in columns and second.token_type in _NAMES:
            return f"put a comma between {clip(first.text)} and {clip(second.text)}"
    return None


_RULES: tuple[_Rule, ...] = (
    _other_operators, _placeholders, _comments, _first_rows, _names_with_spaces, _brackets_around_names, _lists, _cases,
    _names_by_as, _operators_in_words, _clauses, _misspelled_keywords, _parentheses, _missing_commas,
)  # fmt: skip


SINGLE_VALUES = "single values are never released"
_PATTERN = "write {x} LIKE 'a%' for texts that begin so, '%a' for those that end so, '%a%' for those that contain it"
_PERIOD = "write date_trunc('month', {x}), or MONTH({x}), or compare with a date: {x} >= '2024-01-01'"
_TODAY = "use CURRENT_DATE: an answer may not depend on the hour at which it is asked"
_RANDOM = "leave it out: no rows have to be sampled, noise is added to the answer"
_PART = "write CONTAINS({x}, {s}), or STARTS_WITH({x}, {s})"
_LISTED = f"count them by group, SELECT {{x}}, COUNT(*) … GROUP BY {{x}}: {SINGLE_VALUES}"
_EXTREME = f"write MIN({{x}}) or MAX({{x}}): {SINGLE_VALUES}"
_ROW_OF_EXTREME = f"ask for MAX or MIN by group: {SINGLE_VALUES}"
_SAME_GROUP = f"put the column into GROUP BY: {SINGLE_VALUES}"
_WEEKDAY = "write ISODOW({x}): Monday is 1, Sunday is 7; or DAYNAME({x})"
_LOGARITHM = "write LN({x}), LOG10({x}) or LOG2({x}): engines mean different ones by LOG"
_CAST = "write CAST({x} AS INTEGER), AS DOUBLE, AS TEXT or AS DATE"

FUNCTION_HINTS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ["STRFTIME", "TO_CHAR", "DATE_FORMAT", "FORMAT_DATE", "FORMAT_TIMESTAMP", "TIME_BUCKET"], _PERIOD
        ),
        **dict.fromkeys(["DOW", "DAY_NAME", "DAYOFWEEK_ISO"], _WEEKDAY),
        "MONTH_NAME": "write MONTHNAME({x}), or MONTH({x}): January is 1",
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


class RefusedNode(NamedTuple):
    """What SQL calls a node that is refused, and what to write instead."""

    name: str
    advice: str


REFUSED_NODES: Mapping[type[exp.Expr], RefusedNode] = MappingProxyType({
    kind: RefusedNode(*words)
    for kind, words in {
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
        exp.Placeholder: ("a placeholder", PLACEHOLDER_ADVICE),
        exp.Parameter: ("a placeholder", PLACEHOLDER_ADVICE),
        exp.SessionParameter: ("a placeholder", PLACEHOLDER_ADVICE),
        exp.Struct: ("braces", PLACEHOLDER_ADVICE),
        exp.GroupingSets: ("GROUPING SETS", "ask a question for each set of columns"),
        exp.Star: ("*", "write COUNT(*), or name the column: single rows are never released"),
        exp.Tuple: ("a tuple", "compare one column at a time, {x} = 'a' AND …, or with a list: {x} IN (1, 2)"),
        exp.Distinct: ("DISTINCT", "use GROUP BY"),
        exp.Alias: ("AS inside an expression", "name the column after the whole expression"),
        exp.Any: ("ANY", "write {x} IN ('a', 'b'), or {x} LIKE 'a%' OR {x} LIKE 'b%'"),
        exp.CurrentTime: ("CURRENT_TIME", _TODAY),
        exp.Filter: ("FILTER after something that is no aggregate", "leave it out"),
        exp.WithinGroup: ("WITHIN GROUP after something else", "write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)"),
        exp.Array: ("a name in square brackets, or a list", 'write {x} without brackets, or "{x}"'),
        exp.Bracket: ("square brackets", "write the column's name alone, or LEFT({x}, 1) for characters"),
        exp.BitwiseXor: ("^", "write POWER({x}, 2)"),
        exp.BitwiseNot: ("~", "write NOT {x}"),
        exp.BitwiseAnd: ("&", "write AND"),
        exp.BitwiseOr: ("|", "write OR"),
        exp.Collate: ("COLLATE", "write LOWER({x}) = 'a', or {x} ILIKE 'a'"),
        exp.Dot: ("a method, or a path", "write a function of the column, as AVG(x), CONTAINS(x, 'a') or UPPER(x)"),
        exp.Lambda: ("a lambda", "write CASE WHEN {x} > 0 THEN 1 ELSE 0 END"),
        exp.Pivot: ("PIVOT", "write SUM(CASE WHEN key = 'a' THEN n END) AS a for each column"),
        exp.TableSample: ("SAMPLE", "leave it out, or use ORDER BY and LIMIT"),
    }.items()
})  # fmt: skip
"""What is refused in expressions on rows, and in SQL on the answer where that does not allow it."""


def refuse_node(node: exp.Expr, expected: str, otherwise: str) -> InvalidArgument:
    """Return the error for a node of a kind that cannot stand where ``expected`` is; ``otherwise`` is the advice for
    kinds that :data:`REFUSED_NODES` does not list.

    >>> from sqlglot import parse_one
    >>> print(refuse_node(parse_one("x ^ 2", dialect="mysql"), "an expression", "use arithmetic"))
    SQL: expected an expression, got ^. Fix: write POWER(x, 2).
    """
    known = REFUSED_NODES.get(type(node), RefusedNode(node.key.upper(), otherwise))
    return refuse_sql(expected, known.name, hint(known.advice, node))


def hint(template: str, node: exp.Expr) -> str:
    """Return advice with ``{x}`` and ``{s}`` replaced by the first column and the first text among the arguments of
    a node."""
    columns = (item for item in node.find_all(exp.Column, bfs=False) if not isinstance(item.this, exp.Star))
    column = next((item for item in columns if item.name.upper() not in _TYPES), None)
    texts = (item for item in node.find_all(exp.Literal, bfs=False) if item.is_string)
    text = next(texts, None)
    return template.replace("{x}", "x" if column is None else clip(column.sql("duckdb"))).replace(
        "{s}", "'a'" if text is None else clip(text.sql("duckdb"))
    )


MAX_CHARACTERS = 100_000
MAX_TOKENS = 30_000
MAX_TOKEN_DEPTH = 24
MAX_TREE_DEPTH = 150

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_PREFIX = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_FIRST = {TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN, TokenType.FROM}
_LISTING = {"DESCRIBE", "DESC", "SHOW", "PRAGMA", "SUMMARIZE", "TABLE", "USE"}
_CHANGES = {"INSERT", "UPDATE", "DELETE", "DROP", "CREATE", "ALTER", "TRUNCATE", "MERGE", "COPY", "ATTACH", "REPLACE"}

_SIGNS = {
    **dict.fromkeys("‘’‚‛＇´", "'"), **dict.fromkeys("“”„‟＂«»", "'"), "（": "(", "）": ")", "，": ",", "；": ";",
    "＝": "=", "＞": ">", "＜": "<", "≥": ">=", "≤": "<=", "≠": "<>", "−": "-", "–": "-", "—": "-", "×": "*", "＊": "*",
    "÷": "/", "％": "%", "．": ".", "、": ",", "…": "the rest",
}  # fmt: skip
"""Signs that look like those of SQL, and what SQL writes."""


class _Standard(Tokenizer):
    """Cuts standard SQL into tokens: 'text', "name" and `name`, without templates and optimizer hints."""

    IDENTIFIERS: ClassVar = ['"', "`"]
    COMMENTS: ClassVar = ["--", ("/*", "*/")]
    KEYWORDS: ClassVar = {
        **{word: kind for word, kind in Tokenizer.KEYWORDS.items() if not word.startswith(("{", "/*+"))},
        "//": TokenType.DIV,
    }


class _BigQuery(_Standard):
    """Cuts BigQuery's SQL into tokens: 'text', "text" and `name`."""

    QUOTES: ClassVar = ["'", '"']
    IDENTIFIERS: ClassVar = ["`"]
    STRING_ESCAPES: ClassVar = ["\\"]
    COMMENTS: ClassVar = ["--", "#", ("/*", "*/")]


class _Parser(Parser):
    """Parses tokens to sqlglot's tree with every function call as a name with arguments, except CAST and EXTRACT."""

    FUNCTIONS: ClassVar = {}
    # a = b IS NULL is (a = b) IS NULL, as in DuckDB and PostgreSQL
    IS_PREDICATE_PRECEDENCE: ClassVar = DuckDB.Parser.IS_PREDICATE_PRECEDENCE
    FUNCTION_PARSERS: ClassVar = {
        **{name: Parser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "SAFE_CAST", "EXTRACT")},
        "SUBSTRING": lambda self: self.substring_call(),
        "TRIM": lambda self: self.trim_call(),
    }

    def substring_call(self) -> exp.Expr:
        """Parse SUBSTRING(x, 1, 2) and SUBSTRING(x FROM 1 FOR 2) as one function call."""
        node = self._parse_substring()
        parts = [node.args.get(name) for name in ("this", "start", "length")]
        return exp.Anonymous(this="SUBSTRING", expressions=[part for part in parts if part is not None])

    def trim_call(self) -> exp.Expr:
        """Parse TRIM(x) and TRIM(BOTH ' ' FROM x) as one function call; characters other than a space are its second
        argument."""
        node = self._parse_trim()
        name = {"LEADING": "LTRIM", "TRAILING": "RTRIM"}.get(str(node.args.get("position")), "TRIM")
        signs = node.args.get("expression")
        if isinstance(signs, exp.Literal) and signs.is_string and signs.name == " ":
            signs = None
        result = exp.Anonymous(this=name, expressions=[part for part in (node.this, signs) if part is not None])
        if node.args.get("collation") is not None:
            self.raise_error("a collation")
        return result

    # ROLLUP (a > 5, b): conditions are grouped by there as elsewhere; sqlglot reads arithmetic alone

    def _parse_grouping_set(self) -> exp.Expr | None:
        """Parse an element of GROUPING SETS, which may be nested ROLLUP, CUBE or GROUPING SETS."""
        return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
        """Parse ROLLUP (…) or CUBE (…), whose elements may be conditions, which sqlglot does not read there; None
        for anything else."""
        kind = exp.Cube if self._match(TokenType.CUBE) else exp.Rollup if self._match(TokenType.ROLLUP) else None
        if kind is None:
            return None
        return kind(expressions=[] if with_prefix else self._parse_wrapped_csv(self._parse_disjunction))

    def _warn_unsupported(self) -> None:
        """Raise where sqlglot would log a warning and read the text as a command."""
        self.raise_error("no question")


def statement(
    text: str, table: str, names: Sequence[str] = (), example: str | None = None
) -> tuple[exp.Query, dict[str, exp.Expr]]:
    """Return the tree of the one query in a text, and the options of its WITH DIFFERENTIAL_PRIVACY by name; refuse
    anything but one query, which may have WITH, UNION and parentheses.

    ``table``, its columns ``names`` and an ``example`` of a question are used in errors (None: a count of the table).
    """
    example = example or f"SELECT COUNT(*) FROM {table}"
    tokens, options = _split_options(_tokens(text, example), text)
    if tokens[0].token_type not in _FIRST:
        raise _no_question(tokens, table, names, example)
    tree = _parse(tokens, text, names)
    while isinstance(tree, exp.Subquery) and not tree.alias:
        refuse_other_parts(tree, "this")
        tree = tree.this
    if not isinstance(tree, (exp.Select, exp.SetOperation)):
        raise refuse_sql("one SELECT", tree.key.upper(), f"write for example {example}")
    return tree, options


def _no_question(tokens: list[Token], table: str, names: Sequence[str], example: str) -> InvalidArgument:
    """Return the error for a text that does not begin like a query, such as DESCRIBE or DELETE, with advice by its
    first word."""
    first = tokens[0].text.upper()
    fix = f"write for example {example}"
    if first in _LISTING and names:
        fix = f"the columns of {table} are {clip(', '.join(names), 300)}; {fix}"
    elif first in _CHANGES:
        fix = f"a question only reads; {fix}"
    elif first == "EXPLAIN":
        fix = "leave EXPLAIN out, and ask for the plan by explain, in Python and on the command line"
    elif difflib.SequenceMatcher(None, first, "SELECT").ratio() > 0.75:
        fix = f"write SELECT instead of {clip(tokens[0].text, 20)}"
    elif first == "COUNT" or first.casefold() in (name.casefold() for name in names):
        fix = f"begin with SELECT and end with FROM {table}: {example}"
    return refuse_sql(f"one SELECT over {table}", clip(first, 20), fix)


def expression(text: str) -> exp.Expr:
    """Return the tree of the one expression in a text; refuse anything else."""
    tokens = _tokens(text, "amount > 5")
    tree = _parse([Token(TokenType.SELECT, "SELECT"), *tokens], text)
    extra = [name for name, value in tree.args.items() if value and name != "expressions"]
    parts: list[exp.Expr] = tree.expressions
    if not isinstance(tree, exp.Select) or extra or len(parts) != 1 or isinstance(parts[0], exp.Alias):
        raise refuse_sql("one expression", "none, or several", "write for example amount > 5 AND region = 'a'")
    return parts[0]


def _tokens(text: str, example: str) -> list[Token]:
    """Return the tokens of the one statement in a text; refuse texts that are empty, too long, too deeply nested, or
    not valid SQL tokens. ``example`` is the advice for an empty text."""
    if not isinstance(text, str):
        raise WrongType("SQL", "a text", type(text).__name__, "pass the query as a str")
    if len(text) > MAX_CHARACTERS:
        raise refuse_sql(f"at most {MAX_CHARACTERS} characters", str(len(text)), "ask a shorter question")
    if "\0" in text or any("\ud800" <= item <= "\udfff" for item in text):
        raise refuse_sql("valid Unicode without NUL", "a text that is not", "take the odd characters out")
    # without the word it cannot be BigQuery's form, and cutting is most of the work
    tokens = _tokenize(text, _BigQuery) if "DIFFERENTIAL_PRIVACY" in text.upper() else None
    if tokens is None or [item.text.upper() for item in tokens[:3]] != ["SELECT", "WITH", "DIFFERENTIAL_PRIVACY"]:
        tokens = _tokenize(text, _Standard)
    elif any(item.token_type in QUOTED and "\\" in text[item.start : item.end + 1] for item in tokens):
        raise refuse_sql("texts without backslash", "a backslash", "write the character itself")
    if tokens is None:
        fix = "close it, and double a quote inside a text: 'O''Hare'"
        raise refuse_sql("every quote and comment closed", "one that is open", fix)
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens = tokens[:-1]
    if not tokens:
        raise refuse_sql("a question", "an empty text", f"write for example {example}")
    if any(item.token_type == TokenType.SEMICOLON for item in tokens):
        raise refuse_sql("one statement", "several", "ask one question at a time")
    if len(tokens) > MAX_TOKENS:
        raise refuse_sql(f"at most {MAX_TOKENS} words and signs", str(len(tokens)), "ask a shorter question")
    _check_nesting(tokens)
    _refuse_unusual_signs(tokens, text)
    return tokens


def _tokenize(text: str, tokenizer: type[Tokenizer]) -> list[Token] | None:
    """Return the tokens of a text; None where a quote or comment is not closed."""
    try:
        return tokenizer(dialect=DuckDB()).tokenize(text)
    except TokenError:
        return None


def _check_nesting(tokens: list[Token]) -> None:
    """Refuse tokens with parentheses, brackets, CASEs or prefix operators nested more deeply than
    :data:`MAX_TOKEN_DEPTH`, on which the parser would recurse too far."""
    depth = run = 0
    for item in tokens:
        run = run + 1 if item.token_type in _PREFIX else 0
        depth += (item.token_type in _OPENING) - (item.token_type in _CLOSING)
        if depth > MAX_TOKEN_DEPTH or run > MAX_TOKEN_DEPTH:
            raise refuse_sql(f"at most {MAX_TOKEN_DEPTH} levels of parentheses", "more", "simplify the question")


def _refuse_unusual_signs(tokens: Sequence[Token], text: str) -> None:
    """Refuse typographic quotes, full-width signs and invisible characters outside of texts and quoted names, and
    the braces of a template."""
    if not text.isascii():
        for token in tokens:
            if token.token_type not in QUOTED or text[token.start : token.start + 1] not in "'\"`":
                _refuse_sign(text[token.start : token.end + 1])
    kinds = [token.token_type for token in tokens]
    for place, kind in enumerate(kinds):
        if kind == TokenType.L_BRACE and TokenType.COLON not in kinds[place : place + 4]:
            raise refuse_sql("a question with its values", "a template with braces", PLACEHOLDER_ADVICE)


def _refuse_sign(word: str) -> None:
    """Refuse a word that contains a sign which only looks like one of SQL, or an invisible character."""
    for sign in word:
        if sign in _SIGNS:
            fix = f"write {_SIGNS[sign]} instead"
            raise refuse_sql("the signs of SQL", f"{sign} (U+{ord(sign):04X})", fix)
        if unicodedata.category(sign) in ("Cf", "Zs", "Zl", "Zp", "Cc") and sign not in " \t\r\n\f\v":
            raise refuse_sql("the signs of SQL", f"the invisible character U+{ord(sign):04X}", "write a space instead")


def _split_options(tokens: list[Token], text: str) -> tuple[list[Token], dict[str, exp.Expr]]:
    """Return a statement's tokens without BigQuery's ``WITH DIFFERENTIAL_PRIVACY OPTIONS (…)``, and the trees of the
    options by name."""
    words = [item.text.upper() for item in tokens[:5]]
    if words[:3] != ["SELECT", "WITH", "DIFFERENTIAL_PRIVACY"]:
        return tokens, {}
    if words[3:] != ["OPTIONS", "("]:
        return [tokens[0], *tokens[3:]], {}
    depth, end = 1, 5
    while end < len(tokens) and depth:
        depth += (tokens[end].token_type == TokenType.L_PAREN) - (tokens[end].token_type == TokenType.R_PAREN)
        end += 1
    options: dict[str, exp.Expr] = {}
    inside = _parse([tokens[0], *tokens[5 : end - 1]], text).expressions if end > 6 else []
    for item in inside:
        if not isinstance(item, exp.EQ) or not isinstance(item.this, exp.Column):
            raise refuse_sql(
                "OPTIONS (name = value, …)", clip(item.sql("duckdb"), 30), "write for example OPTIONS (epsilon = 1)"
            )
        name = item.this.name.lower()
        if name in options:
            raise refuse_sql("each option once", f"{clip(name)} twice", "leave one out")
        options[name] = item.expression
    return [tokens[0], *tokens[end:]], options


def _parse(tokens: list[Token], text: str, names: Sequence[str] = ()) -> exp.Expr:
    """Return the tree of one statement's tokens; refuse tokens that are no SQL, and a tree that is too deep. ``names``
    are the table's columns, for the advice on a mistake."""
    parser = _Parser(dialect=DuckDB(), error_level=ErrorLevel.IMMEDIATE)
    try:
        trees = [item for item in parser.parse(tokens, text) if item is not None]
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        raise unreadable(tokens, first.get("line"), first.get("col"), names) from None
    except Exception:
        # a fault of the parser on a text that is no SQL, or its recursion: the text is not a question either way
        raise refuse_sql("SQL that can be read", "a text too tangled for the parser", "simplify the question") from None
    if len(trees) != 1:
        raise refuse_sql("one statement", str(len(trees)), "ask one question at a time")
    waiting = [(trees[0], 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_TREE_DEPTH:
            raise refuse_sql(f"at most {MAX_TREE_DEPTH} levels", "more", "write long OR chains as x IN (…)")
        waiting.extend((item, depth + 1) for item in node.iter_expressions())
    return trees[0]
