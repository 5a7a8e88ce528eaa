"""From text to sqlglot's tree of one SELECT, whatever the text is: anything else is one InvalidArgument.

The text is cut into tokens first. What could make a parser recurse without end is counted there, and BigQuery's
``WITH DIFFERENTIAL_PRIVACY OPTIONS (…)`` is taken off there, so no text is ever searched or pasted together. Functions
are not interpreted by sqlglot (it has opinions on their arguments): each arrives as a name with arguments.

Quotes are those of the standard: 'text', "name", and also `name`. After WITH DIFFERENTIAL_PRIVACY they are BigQuery's:
'text', "text", `name`, without backslashes.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Sequence
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from dither.errors import InvalidArgument, WrongType
from dither.tables.card.values import clip
from dither.tables.query.operations.base import refuse_other_parts, refuse_sql
from dither.tables.sql.mistakes import PLACEHOLDER_ADVICE, QUOTED, unreadable

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
    IDENTIFIERS: ClassVar = ['"', "`"]
    COMMENTS: ClassVar = ["--", ("/*", "*/")]
    KEYWORDS: ClassVar = {
        **{word: kind for word, kind in Tokenizer.KEYWORDS.items() if not word.startswith(("{", "/*+"))},
        "//": TokenType.DIV,
    }


class _BigQuery(_Standard):
    QUOTES: ClassVar = ["'", '"']
    IDENTIFIERS: ClassVar = ["`"]
    STRING_ESCAPES: ClassVar = ["\\"]
    COMMENTS: ClassVar = ["--", "#", ("/*", "*/")]


class _Parser(Parser):
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
    """Parse the one query in a text, which may have WITH, UNION and parentheses, and the options of differential
    privacy that it states.

    ``names``, the columns of the table, and an ``example`` of a question serve refusals.
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
    """Return the refusal of a text that does not begin like a query, such as DESCRIBE or DELETE."""
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
    """Parse the one expression in a text."""
    tokens = _tokens(text, "amount > 5")
    tree = _parse([Token(TokenType.SELECT, "SELECT"), *tokens], text)
    extra = [name for name, value in tree.args.items() if value and name != "expressions"]
    parts: list[exp.Expr] = tree.expressions
    if not isinstance(tree, exp.Select) or extra or len(parts) != 1 or isinstance(parts[0], exp.Alias):
        raise refuse_sql("one expression", "none, or several", "write for example amount > 5 AND region = 'a'")
    return parts[0]


def _tokens(text: str, example: str) -> list[Token]:
    """Split a text into the tokens of one statement; refuse what is too long, too deeply nested or no SQL.
    ``example`` is shown where the text is empty."""
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
    """Refuse tokens whose parentheses, brackets or signs nest so deeply that the parser would recurse too far."""
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
    """Split BigQuery's ``WITH DIFFERENTIAL_PRIVACY OPTIONS (…)`` off a statement's tokens and return the rest and
    the options by name."""
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
    """Parse tokens into one tree of bounded depth; ``names`` are the table's columns, which the advice on a mistake
    uses."""
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
