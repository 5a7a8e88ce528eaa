"""Text: LIKE, and letters of ASCII as small ones or capitals."""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase

from dither.errors import InvalidArgument, message
from dither.tables.query.operations.base import (
    Checked,
    Compiler,
    Operation,
    Syntax,
    TypedExpression,
    TypedSql,
    describe,
    nodes,
    wrong_type,
)
from dither.tables.query.tree import Call, Literal, show

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_UPPER = str.maketrans(ascii_lowercase, ascii_uppercase)


def _check_like(_call: Call, args: list[TypedExpression]) -> Checked:
    (_, kind), (pattern, _) = args
    if kind != "text":
        raise InvalidArgument(message("LIKE", "a text", describe(kind), "compare it with =, < or BETWEEN"))
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str) or "\\" in pattern.value:
        expected = "a constant pattern of %, _ and other characters, without backslash"
        raise InvalidArgument(message("LIKE", expected, show(pattern), "write for example x LIKE 'a%'"))
    return [item for item, _ in args], "boolean"


def _compile_like(call: Call, compiler: Compiler) -> TypedSql:
    x, pattern = (compiler.value(argument) for argument in call.args)
    if x.type != "text" or pattern.type != "text" or not isinstance(call.args[1], Literal):
        raise wrong_type("text and a constant pattern", f"{x.type} and {pattern.type}")
    if "\\" in str(call.args[1].value):
        raise InvalidArgument(message("pattern", "one without a backslash", "a backslash", "leave it out"))
    return TypedSql(nodes.like(x.node, pattern.node), "boolean")


def like(text: str, pattern: str) -> bool:
    """Whether a text fits a pattern of ``%`` (anything) and ``_`` (any one character).

    >>> like("north-east", "north%"), like("north", "n_rth"), like("North", "n%")
    (True, True, False)
    """
    at = place = 0
    star, retry = -1, 0
    while at < len(text):
        if place < len(pattern) and pattern[place] == "%":
            star, retry, place = place, at, place + 1
        elif place < len(pattern) and pattern[place] in ("_", text[at]):
            at, place = at + 1, place + 1
        elif star >= 0:
            retry += 1
            at, place = retry, star + 1
        else:
            return False
    return all(item == "%" for item in pattern[place:])


def _check_letters(call: Call, args: list[TypedExpression]) -> Checked:
    if args[0][1] != "text":
        raise InvalidArgument(message(show(call), "a text", describe(args[0][1]), "use a column of texts"))
    return [args[0][0]], "text"


def _compile_letters(call: Call, compiler: Compiler) -> TypedSql:
    result = compiler.value(call.args[0])
    if result.type != "text":
        raise wrong_type("text", result.type)
    letters = ascii_uppercase, ascii_lowercase
    source, target = letters if call.op == "lower" else letters[::-1]
    return TypedSql(nodes.translate(result.node, source, target), "text")


TEXT = (
    Operation(
        "like", "(x, pattern): whether x fits the pattern of % and _; case matters, and there is no backslash",
        2, 2, _check_like, _compile_like, like, "s LIKE 'a%'", syntax=Syntax("Like", ("this", "expression")),
    ),
    Operation(
        "lower", "the text in small letters, of ASCII only",
        1, 1, _check_letters, _compile_letters, lambda text: text.translate(_LOWER), "LOWER(s)", functions=("LOWER",),
    ),
    Operation(
        "upper", "the text in capitals, of ASCII only",
        1, 1, _check_letters, _compile_letters, lambda text: text.translate(_UPPER), "UPPER(s)", functions=("UPPER",),
    ),
)  # fmt: skip
"""The operations on text."""

__all__ = ["TEXT", "like"]
