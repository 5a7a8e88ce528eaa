"""Texts that cannot be read as SQL: what is wrong in them, in words of the mistake, and what to write instead.

A parser says where it stopped, which is seldom where the mistake is. The rules here look at the words and signs
themselves. Each either recognizes its mistake or says nothing, and the first that recognizes one is what is said.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from dither.errors import InvalidArgument
from dither.tables.card.wording import clip
from dither.tables.query.operations.base import refuse_sql

_SIGNS = {
    **dict.fromkeys("‘’‚‛＇´", "'"), **dict.fromkeys("“”„‟＂«»", "'"), "（": "(", "）": ")", "，": ",", "；": ";",
    "＝": "=", "＞": ">", "＜": "<", "≥": ">=", "≤": "<=", "≠": "<>", "−": "-", "–": "-", "—": "-", "×": "*", "＊": "*",
    "÷": "/", "％": "%", "．": ".", "、": ",", "…": "the rest",
}  # fmt: skip
"""Signs that look like those of SQL, and what SQL writes."""

_NAMES = {TokenType.VAR, TokenType.IDENTIFIER}
_COMPARISONS = {TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE}
_QUOTED = {TokenType.STRING, TokenType.IDENTIFIER}
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
_PLACEHOLDER = "write the value itself in place of the placeholder, for example 3 or 'a'"


def refuse_unusual_signs(tokens: Sequence[Token], text: str) -> None:
    """Refuse typographic quotes, signs of full width and characters that nobody sees, where they are no part of a text
    or of a quoted name; and the braces of a template.
    """
    if not text.isascii():
        for token in tokens:
            if token.token_type not in _QUOTED or text[token.start : token.start + 1] not in "'\"`":
                _refuse_sign(text[token.start : token.end + 1])
    kinds = [token.token_type for token in tokens]
    for place, kind in enumerate(kinds):
        if kind == TokenType.L_BRACE and TokenType.COLON not in kinds[place : place + 4]:
            raise refuse_sql("a question with its values", "a template with braces", _PLACEHOLDER)


def _refuse_sign(word: str) -> None:
    for sign in word:
        if sign in _SIGNS:
            fix = f"write {_SIGNS[sign]} instead"
            raise refuse_sql("the signs of SQL", f"{sign} (U+{ord(sign):04X})", fix)
        if unicodedata.category(sign) in ("Cf", "Zs", "Zl", "Zp", "Cc") and sign not in " \t\r\n\f\v":
            raise refuse_sql("the signs of SQL", f"U+{ord(sign):04X}, which nobody sees", "write a space instead")


def unreadable(tokens: Sequence[Token], line: int | None, column: int | None, names: Sequence[str]) -> InvalidArgument:
    """The refusal of a text that the parser could not read beyond a token; ``names`` are columns of the table.

    >>> from sqlglot.tokens import Tokenizer
    >>> tokens = Tokenizer().tokenize("SELECT COUNT(*) FORM visits")
    >>> str(unreadable(tokens, 1, 27, ()))
    "SQL: expected SQL that can be read, got an error in line 1, at 'visits'. Fix: write FROM instead of FORM."
    """
    at = next((i for i, token in enumerate(tokens) if (token.line, token.col) == (line, column)), len(tokens) - 1)
    words = [token.text if token.token_type in _QUOTED else token.text.upper() for token in tokens]
    for rule in _RULES:
        fix = rule(tokens, words, names)
        if fix is not None:
            break
    else:
        fix = f"look for a comma, bracket or quote that is missing before {clip(tokens[at].text, 20)!r}"
    got = f"an error in line {tokens[at].line}, at {clip(tokens[at].text, 20)!r}"
    return refuse_sql("SQL that can be read", got, fix)


_Rule = Callable[[Sequence[Token], list[str], Sequence[str]], str | None]


def _other_operators(_tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    for first, second in zip(words, [*words[1:], ""], strict=True):
        pair = f"{first} {second}"
        if first == "&&":
            return "write AND instead of &&"
        if first == "=>":
            return "write >= instead of =>"
        if pair == "= <":
            return "write <= instead of =<"
        if pair == "* *":
            return "write POWER(x, 2) instead of x ** 2"
        if pair == "NOT =":
            return "write <> instead of NOT ="
        if first == "XOR":
            return "write (a OR b) AND NOT (a AND b) instead of a XOR b"
        if first in ("~", "!~"):
            return "write LIKE 'a%' instead of a regular expression"
        if first == "UNIQUE":
            return "write DISTINCT instead of UNIQUE"
    return None


def _placeholders(tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    for place, word in enumerate(words):
        rest = words[place + 1 : place + 5]
        if word == "%" and (rest[:1] == ["S"] or (rest[:1] == ["("] and rest[2:4] == [")", "S"])):
            return _PLACEHOLDER
        if tokens[place].token_type in (TokenType.PLACEHOLDER, TokenType.PARAMETER):
            return _PLACEHOLDER
    return None


def _comments(_tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    if "#" in words or "//" in words:
        return "begin a comment with --, and write a date in quotes: '2024-01-31'"
    return None


def _first_rows(tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    if words[1:2] == ["TOP"] and len(tokens) > 2:
        count = tokens[2].text if tokens[2].token_type == TokenType.NUMBER else "10"
        return f"leave TOP {clip(count, 10)} out, and end the question with LIMIT {clip(count, 10)}"
    return None


def _brackets_around_names(_tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    for place, word in enumerate(words):
        if word == "[" and words[place + 2 : place + 3] == ["]"]:
            return f"write {_tokens[place + 1].text} without square brackets, and a name with spaces in double quotes"
    return None


def _lists(tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
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
    if "CASE" in words and words.count("CASE") > words.count("END"):
        return "close CASE with END: CASE WHEN x > 0 THEN 1 ELSE 0 END"
    if "CASE" in words and "WHEN" not in words:
        return "write CASE WHEN condition THEN 1 ELSE 0 END"
    return None


def _parentheses(_tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    depth = 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if depth < 0:
            return "leave out the ) that has no ("
    return "close each ( with a )" if depth else None


def _clauses(_tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    for place, word in enumerate(words[:-1]):
        if word in ("GROUP", "ORDER") and words[place + 1] not in ("BY", ")", ",", ".") and words[place - 1] != ".":
            return f"write {word} BY instead of {word}"
    if "WHERE" in words and "FROM" in words[words.index("WHERE") :] and "FROM" not in words[: words.index("WHERE")]:
        return "write FROM before WHERE: SELECT … FROM … WHERE …"
    if words[-1] in _OPEN_ENDED:
        return f"write something after {words[-1]}, or leave it out"
    return None


def _names_by_as(tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    for place, word in enumerate(words[:-1]):
        if word != "AS" or tokens[place + 1].token_type in _QUOTED:
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
    known = {name.casefold(): name for name in names}
    for place in range(len(words)):
        for end in range(place + 2, min(place + 6, len(words) + 1)):
            joined = " ".join(token.text for token in tokens[place:end]).casefold()
            name = known.get(joined) or known.get(joined.replace(" ", "_"))
            if name is not None:
                return f'write "{name}", in double quotes' if " " in name else f"write {name}"
    return None


def _operators_in_words(tokens: Sequence[Token], words: list[str], _names: Sequence[str]) -> str | None:
    for place, word in enumerate(words[1:], 1):
        following = words[place + 1 : place + 2]
        if word in _WORD_OPERATORS and tokens[place - 1].token_type in _NAMES and following != ["("]:
            return f"write {tokens[place - 1].text} {_WORD_OPERATORS[word]}"
        if word == "AGAINST":
            return "write x LIKE '%a%'"
    return None


def _misspelled_keywords(tokens: Sequence[Token], words: list[str], names: Sequence[str]) -> str | None:
    columns = {name.casefold() for name in names}
    for place, token in enumerate(tokens):
        if token.token_type != TokenType.VAR or token.text.casefold() in columns or words[place - 1] in ("AS", "."):
            continue
        near = difflib.get_close_matches(token.text.casefold(), _KEYWORDS, n=1, cutoff=0.75)
        if near and _KEYWORDS[near[0]] != words[place]:
            return f"write {_KEYWORDS[near[0]]} instead of {clip(token.text, 20)}"
    return None


def _missing_commas(tokens: Sequence[Token], words: list[str], names: Sequence[str]) -> str | None:
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
