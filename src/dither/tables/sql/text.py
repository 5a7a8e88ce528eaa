"""From text to sqlglot's tree of one SELECT, whatever the text is: anything else is one InvalidArgument.

The text is cut into tokens first. What could make a parser recurse without end is counted there, and BigQuery's
``WITH DIFFERENTIAL_PRIVACY OPTIONS (…)`` is taken off there, so no text is ever searched or pasted together. Functions
are not interpreted by sqlglot (it has opinions on their arguments): each arrives as a name with arguments.

Quotes are those of the standard: 'text', "name", and also `name`. After WITH DIFFERENTIAL_PRIVACY they are BigQuery's:
'text', "text", `name`, without backslashes.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ErrorLevel, ParseError, TokenError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType
from sqlglot.tokens import Tokenizer

from dither.errors import WrongType, message
from dither.tables.card.wording import clip
from dither.tables.query.operations.base import refuse_other_parts, refuse_sql

MAX_CHARACTERS = 100_000
MAX_TOKENS = 30_000
MAX_TOKEN_DEPTH = 24
MAX_TREE_DEPTH = 150

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_PREFIX = {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE}
_TEXTS = {TokenType.STRING, TokenType.IDENTIFIER}
_FIRST = {TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN, TokenType.FROM}
_EXAMPLE = "write for example SELECT region, COUNT(*) FROM {table} GROUP BY region"


class _Standard(Tokenizer):
    IDENTIFIERS: ClassVar = ['"', "`"]
    COMMENTS: ClassVar = ["--", ("/*", "*/")]
    KEYWORDS: ClassVar = {word: kind for word, kind in Tokenizer.KEYWORDS.items() if not word.startswith(("{", "/*+"))}


class _BigQuery(_Standard):
    QUOTES: ClassVar = ["'", '"']
    IDENTIFIERS: ClassVar = ["`"]
    STRING_ESCAPES: ClassVar = ["\\"]
    COMMENTS: ClassVar = ["--", "#", ("/*", "*/")]


class _Parser(Parser):
    FUNCTIONS: ClassVar = {}
    FUNCTION_PARSERS: ClassVar = {name: Parser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT")}

    def _warn_unsupported(self) -> None:
        # it would be logged and read as a command
        self.raise_error("no question")


def statement(text: str, table: str) -> tuple[exp.Query, dict[str, exp.Expr]]:
    """The one query in the text, with WITH, UNION and parentheses where it has them, and the options of differential
    privacy it states.

    >>> text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) COUNT(*) FROM visits"
    >>> tree, options = statement(text, "visits")
    >>> sorted(options), len(tree.expressions)
    (['epsilon'], 1)
    """
    tokens, options = _split_options(_tokens(text), text)
    if tokens[0].token_type not in _FIRST:
        got = clip(tokens[0].text.upper(), 20)
        raise refuse_sql(f"one SELECT over {table}", got, _EXAMPLE.format(table=table))
    tree = _parse(tokens, text)
    while isinstance(tree, exp.Subquery) and not tree.alias:
        refuse_other_parts(tree, "this")
        tree = tree.this
    if not isinstance(tree, (exp.Select, exp.SetOperation)):
        raise refuse_sql("one SELECT", tree.key.upper(), _EXAMPLE.format(table=table))
    return tree, options


def expression(text: str) -> exp.Expr:
    """The one expression in the text.

    >>> expression("amount > 5").key
    'gt'
    """
    tokens = _tokens(text)
    tree = _parse([Token(TokenType.SELECT, "SELECT"), *tokens], text)
    extra = [name for name, value in tree.args.items() if value and name != "expressions"]
    parts: list[exp.Expr] = tree.expressions
    if not isinstance(tree, exp.Select) or extra or len(parts) != 1 or isinstance(parts[0], exp.Alias):
        raise refuse_sql("one expression", "something else", "write for example amount > 5 AND region = 'a'")
    return parts[0]


def _tokens(text: str) -> list[Token]:
    """The tokens of one statement."""
    if not isinstance(text, str):
        raise WrongType(message("SQL", "a text", type(text).__name__, "pass the query as a str"))
    if len(text) > MAX_CHARACTERS:
        raise refuse_sql(f"at most {MAX_CHARACTERS} characters", str(len(text)), "ask a shorter question")
    if "\0" in text or any("\ud800" <= item <= "\udfff" for item in text):
        raise refuse_sql("valid Unicode without NUL", "a text that is not", "take the odd characters out")
    # without the word it cannot be BigQuery's form, and cutting is most of the work
    tokens = _tokenize(text, _BigQuery) if "DIFFERENTIAL_PRIVACY" in text.upper() else None
    if tokens is None or [item.text.upper() for item in tokens[:3]] != ["SELECT", "WITH", "DIFFERENTIAL_PRIVACY"]:
        tokens = _tokenize(text, _Standard)
    elif any(item.token_type in _TEXTS and "\\" in text[item.start : item.end + 1] for item in tokens):
        raise refuse_sql("texts without backslash", "a backslash", "write the character itself")
    if tokens is None:
        raise refuse_sql("every quote and comment closed", "one that is open", "close it; double a quote inside a text")
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens = tokens[:-1]
    if not tokens:
        raise refuse_sql("a question", "an empty text", _EXAMPLE.format(table="the table"))
    if any(item.token_type == TokenType.SEMICOLON for item in tokens):
        raise refuse_sql("one statement", "several", "ask one question at a time")
    if len(tokens) > MAX_TOKENS:
        raise refuse_sql(f"at most {MAX_TOKENS} words and signs", str(len(tokens)), "ask a shorter question")
    _check_nesting(tokens)
    return tokens


def _tokenize(text: str, tokenizer: type[Tokenizer]) -> list[Token] | None:
    try:
        return tokenizer(dialect=DuckDB()).tokenize(text)
    except TokenError:
        return None


def _check_nesting(tokens: list[Token]) -> None:
    depth = run = 0
    for item in tokens:
        run = run + 1 if item.token_type in _PREFIX else 0
        depth += (item.token_type in _OPENING) - (item.token_type in _CLOSING)
        if depth > MAX_TOKEN_DEPTH or run > MAX_TOKEN_DEPTH:
            raise refuse_sql(f"at most {MAX_TOKEN_DEPTH} levels of parentheses", "more", "simplify the question")


def _split_options(tokens: list[Token], text: str) -> tuple[list[Token], dict[str, exp.Expr]]:
    """The tokens without BigQuery's head, and what it states."""
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
            raise refuse_sql("OPTIONS (name = value, …)", "something else", "write for example OPTIONS (epsilon = 1)")
        name = item.this.name.lower()
        if name in options:
            raise refuse_sql("each option once", f"{clip(name)} twice", "leave one out")
        options[name] = item.expression
    return [tokens[0], *tokens[end:]], options


def _parse(tokens: list[Token], text: str) -> exp.Expr:
    parser = _Parser(dialect=DuckDB(), error_level=ErrorLevel.IMMEDIATE)
    try:
        trees = [item for item in parser.parse(tokens, text) if item is not None]
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        place = f"line {first.get('line')}, at {clip(str(first.get('highlight')), 20)!r}"
        raise refuse_sql(
            "SQL that can be read", f"an error in {place}", "check commas, brackets and keywords"
        ) from None
    except Exception:
        # a fault of the parser on a text that is no SQL, or its recursion: the text is not a question either way
        raise refuse_sql("SQL that can be read", "something else", "simplify the question") from None
    if len(trees) != 1:
        raise refuse_sql("one statement", str(len(trees)), "ask one question at a time")
    waiting = [(trees[0], 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_TREE_DEPTH:
            raise refuse_sql(f"at most {MAX_TREE_DEPTH} levels", "more", "write long OR chains as x IN (…)")
        waiting.extend((item, depth + 1) for item in node.iter_expressions())
    return trees[0]
