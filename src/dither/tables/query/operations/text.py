"""Text: patterns, letters of ASCII as small ones or capitals, parts of texts, and texts put together.

Characters are code points, as all engines count them. Where text begins and how much of it is taken is said by
constants, so no engine is asked for a part that it would refuse.

A text that a question makes is short, so that one row cannot take long: what lengthens a text is NULL beyond
:data:`MAX_MADE_BYTES`, measured before it is made, and so long are constants at most. Patterns have at most
:data:`MAX_PATTERN` characters, and :data:`MAX_MIXED_PATTERN` with both ``%`` and ``_``: DuckDB then tries the part
after a ``%`` at every place of the text, which is some 0.5 ns for each character of the text times each of the pattern.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Any
from typing import Literal as Choice

from dither.errors import InvalidArgument
from dither.tables.card.model import Type
from dither.tables.query.operations.base import (
    Checked,
    Compiler,
    Function,
    Operation,
    Range,
    Read,
    Syntax,
    TypedExpression,
    TypedSql,
    checks,
    constant,
    describe,
    nodes,
    refuse_other_parts,
    wrong_type,
)
from dither.tables.query.tree import Call, Expression, Literal, show

if TYPE_CHECKING:
    from sqlglot import exp

MAX_TEXT_BYTES = 1 << 16
"""The same as in :mod:`dither.tables.query.nodes`, which takes long to load."""
MAX_REPLACEMENT_BYTES = 256
MAX_MADE_BYTES = 1024
"""The most bytes of a text that is a constant of a question, or is made by || or by REPLACE with something longer."""
MAX_PATTERN = 256
MAX_MIXED_PATTERN = 32

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_UPPER = str.maketrans(ascii_lowercase, ascii_uppercase)


def _check_like(call: Call, args: list[TypedExpression]) -> Checked:
    """Return the arguments of LIKE or ILIKE, a text and a constant pattern without backslash, and "boolean"."""
    (_, kind), (pattern, _) = args
    if kind != "text":
        fix = "compare it with =, < or BETWEEN"
        if kind in ("date", "timestamp"):
            fix = f"write {show(args[0][0])} >= '2024-01-01', or date_trunc('month', {show(args[0][0])}) = '2024-01-01'"
        raise InvalidArgument(call.op.upper(), "a text", describe(kind), fix)
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str) or "\\" in pattern.value:
        expected = "a constant pattern of %, _ and other characters, without backslash"
        raise InvalidArgument(call.op.upper(), expected, show(pattern), "write for example x LIKE 'a%'")
    _check_pattern(call.op, pattern.value)
    return [item for item, _ in args], "boolean"


def _check_pattern(op: str, pattern: str) -> None:
    """Refuse a pattern that is too long; the limit is lower with both ``%`` and ``_``, where engines try many
    positions of the text."""
    mixed = "%" in pattern and "_" in pattern
    most = MAX_MIXED_PATTERN if mixed else MAX_PATTERN
    if len(pattern) > most:
        expected = f"a pattern of at most {most} characters" + (" where it has both % and _" if mixed else "")
        fix = "write one without _, or a shorter one" if mixed else "write a shorter one, or compare whole texts with ="
        raise InvalidArgument(op.upper(), expected, f"{len(pattern)}", fix)


def _compile_like(call: Call, compiler: Compiler) -> TypedSql:
    """Return LIKE as SQL, or ILIKE as LIKE of both sides in lower case."""
    x, pattern = (compiler.value(argument) for argument in call.args)
    _check_like(call, [(call.args[0], x.type), (call.args[1], pattern.type)])
    if call.op == "like":
        return TypedSql(nodes.like(x.node, pattern.node), "boolean")
    lower_case = nodes.translate(x.node, ascii_uppercase, ascii_lowercase)
    return TypedSql(nodes.like(lower_case, nodes.literal(str(constant(call.args[1])).translate(_LOWER))), "boolean")


def like(text: str, pattern: str) -> bool:
    """Return whether a text matches a pattern in which ``%`` is any text and ``_`` any one character.

    Where a character does not match, the last ``%`` takes one character more, and matching goes on after it.
    """
    position = in_pattern = 0
    last_percent, end_of_percent = -1, 0
    while position < len(text):
        if in_pattern < len(pattern) and pattern[in_pattern] == "%":
            last_percent, end_of_percent, in_pattern = in_pattern, position, in_pattern + 1
        elif in_pattern < len(pattern) and pattern[in_pattern] in ("_", text[position]):
            position, in_pattern = position + 1, in_pattern + 1
        elif last_percent >= 0:
            end_of_percent += 1
            position, in_pattern = end_of_percent, last_percent + 1
        else:
            return False
    return all(item == "%" for item in pattern[in_pattern:])


def _require_texts(call: Call, args: Sequence[TypedExpression]) -> None:
    """Refuse arguments of a call that are not texts; the advice in the error depends on their type."""
    for item, kind in args:
        if kind != "text":
            got = f"{show(item)}, which is {describe(kind)}"
            fix = (
                "use a column of texts" if kind == "number" else f"use a column of texts, or CAST({show(item)} AS TEXT)"
            )
            fix += "; between conditions write OR instead of ||" if call.op == "||" else ""
            raise InvalidArgument(show(call), "a text", got, fix)


def _compile_texts(arguments: Sequence[Expression], compiler: Compiler) -> list[exp.Expr]:
    """Return the SQL of arguments; refuse those that are not texts, and NULL."""
    parts = [compiler.value(argument) for argument in arguments]
    for part in parts:
        if part.type != "text" or part.is_null:
            raise wrong_type("text", "NULL" if part.is_null else part.type)
    return [part.node for part in parts]


def _texts_giving(result: Type) -> Callable[[Call, list[TypedExpression]], Checked]:
    """Return the type check of an operation that takes texts and has a ``result`` of this type."""
    return checks(_require_texts, result=result)


def _compile_letters(call: Call, compiler: Compiler) -> TypedSql:
    """Return LOWER or UPPER as SQL; it changes ASCII letters only, since engines differ in others."""
    (text,) = _compile_texts(call.args, compiler)
    letters = ascii_uppercase, ascii_lowercase
    source, target = letters if call.op == "lower" else letters[::-1]
    return TypedSql(nodes.translate(text, source, target), "text")


# -- spaces at the ends ---------------------------------------------------------------------------------------------

_SIDES: dict[str, Choice["both", "leading", "trailing"]] = {"trim": "both", "ltrim": "leading", "rtrim": "trailing"}


def _compile_trim(call: Call, compiler: Compiler) -> TypedSql:
    """Return TRIM, LTRIM or RTRIM of spaces as SQL."""
    (text,) = _compile_texts(call.args, compiler)
    return TypedSql(nodes.trim(text, _SIDES[call.op]), "text")


def _trim(name: str, meaning: str, compute: Callable[[str, str], str]) -> Operation:
    """Return the row of an operation that removes spaces at one or both ends, in the table of operations."""
    return Operation(
        name, meaning, 1, 1, _texts_giving("text"), _compile_trim, lambda text: compute(text, " "),
        f"{name.upper()}(s)", functions=(name.upper(),), examples=(f"{name.upper()}(' ' || s || '  ')",),
    )  # fmt: skip


# -- parts ----------------------------------------------------------------------------------------------------------


def _count(call: Call, index: int, least: int, what: str) -> int:
    """Return the value of the argument with this index; refuse anything but a constant integer from ``least`` on.
    ``what`` describes the argument in the error."""
    value = constant(call.args[index])
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MAX_TEXT_BYTES:
        expected = f"a constant from {least} to {MAX_TEXT_BYTES} for {what}"
        fix = "write SUBSTR(s, 1, 3), LEFT(s, 3) or RIGHT(s, 3)"
        raise InvalidArgument(call.op.upper(), expected, show(call.args[index]), fix)
    return value


def _part_of_text(call: Call) -> tuple[int, ...]:
    """Return the constants of a call of SUBSTR (the first character's position, from 1, and the number of characters)
    or of RIGHT (the number of characters)."""
    length = _count(call, len(call.args) - 1, 0, "the number of characters")
    return (_count(call, 1, 1, "the first character"), length) if call.op == "substr" else (length,)


def _check_part(call: Call, args: list[TypedExpression]) -> Checked:
    """Return the arguments of SUBSTR or RIGHT, a text and constants, and "text" as the type of the result."""
    _require_texts(call, args[:1])
    _part_of_text(call)
    return [item for item, _ in args], "text"


def _compile_substr(call: Call, compiler: Compiler) -> TypedSql:
    """Return SUBSTR as SQL."""
    (text,) = _compile_texts(call.args[:1], compiler)
    start, count = _part_of_text(call)
    return TypedSql(nodes.call("SUBSTRING", text, nodes.integer(start), nodes.integer(count)), "text")


def _read_substr(args: Sequence[exp.Expr], read: Read) -> Expression:
    """Return the expression of SUBSTR(x, start, count); without a count it takes the rest of the text."""
    parts = [read(item) for item in args]
    return Call("substr", (*parts, *([Literal(MAX_TEXT_BYTES)] if len(parts) == 2 else [])))


def _compile_right(call: Call, compiler: Compiler) -> TypedSql:
    """Return RIGHT as SQL."""
    (text,) = _compile_texts(call.args[:1], compiler)
    (length,) = _part_of_text(call)
    return TypedSql(nodes.call("RIGHT", text, nodes.integer(length)), "text")


def _compile_length(call: Call, compiler: Compiler) -> TypedSql:
    """Return LENGTH as SQL."""
    (text,) = _compile_texts(call.args, compiler)
    return TypedSql(nodes.cast(nodes.call("LENGTH", text), "integer"), "integer", Range.whole(0, MAX_TEXT_BYTES))


# -- one text in another --------------------------------------------------------------------------------------------


def _compile_search(call: Call, compiler: Compiler) -> TypedSql:
    """Return STARTS_WITH, ENDS_WITH or CONTAINS as SQL."""
    text, part = _compile_texts(call.args, compiler)
    if call.op == "starts_with":
        return TypedSql(nodes.starts_with(text, part), "boolean")
    if call.op == "ends_with":
        ending = nodes.call("RIGHT", text, nodes.call("LENGTH", part))
        return TypedSql(nodes.binary("=", ending, part), "boolean")
    return TypedSql(nodes.binary(">", nodes.text_position(text, part), nodes.integer(0)), "boolean")


# -- texts put together ---------------------------------------------------------------------------------------------


def _compile_concat(call: Call, compiler: Compiler) -> TypedSql:
    """Return the concatenation of texts as SQL; NULL where the sum of their lengths is above
    :data:`MAX_MADE_BYTES`."""
    texts = _compile_texts(call.args, compiler)
    if len(texts) == 1:
        return TypedSql(texts[0], "text")
    result, size = texts[0], nodes.text_bytes(texts[0])
    for text in texts[1:]:
        result, size = nodes.concatenate(result, text), nodes.binary("+", size, nodes.text_bytes(text))
    return TypedSql(nodes.if_at_most(result, size, MAX_MADE_BYTES), "text")


def _limited(text: str) -> str | None:
    """Return a text unchanged; None where it is longer than :data:`MAX_MADE_BYTES`."""
    return text if len(text.encode()) <= MAX_MADE_BYTES else None


def _concat(*texts: str) -> str | None:
    """Return texts concatenated; None where the result is too long."""
    if not all(isinstance(text, str) for text in texts):
        raise TypeError
    return texts[0] if len(texts) == 1 else _limited("".join(texts))


def _read_pipe(node: exp.Expr, read: Read) -> Expression:
    """Return the expression of sqlglot's node for ``a || b``; a chain of them is one call with all texts."""
    parts: list[Expression] = []
    while node.key == "dpipe":
        refuse_other_parts(node, "this", "expression", "safe")
        parts.append(read(node.args["expression"]))
        node = node.this
    return Call("||", (read(node), *reversed(parts)))


def _read_concat(args: Sequence[exp.Expr], read: Read) -> Expression:
    """Return the expression of CONCAT, which treats NULL as an empty text, as on DuckDB and PostgreSQL."""
    parts = [read(item) for item in args]
    present = [item if isinstance(item, Literal) else Call("coalesce", (item, Literal(""))) for item in parts]
    return Call("||", tuple(present))


def _replaced(call: Call) -> tuple[str, str]:
    """Return the constant texts ``old`` and ``new`` of a call of REPLACE; refuse long ones and an empty ``old``."""
    old, new = constant(call.args[1]), constant(call.args[2])
    if isinstance(old, str) and isinstance(new, str):
        sizes = len(old.encode()), len(new.encode())
        if old and max(sizes) <= MAX_REPLACEMENT_BYTES:
            return old, new
    expected = f"constant texts of at most {MAX_REPLACEMENT_BYTES} bytes, the first not empty"
    raise InvalidArgument(
        "REPLACE", expected, "longer ones, an empty one, or a column", "write REPLACE(s, 'old', 'new')"
    )


def _compile_replace(call: Call, compiler: Compiler) -> TypedSql:
    """Return REPLACE(x, old, new) as SQL, NULL where ``new`` is longer than ``old`` and the result would be too long.

    The size of the result is computed before the result. With n occurrences of ``old`` and ``left`` bytes without them,
    x has left + n * before bytes and the result has left + n * after. So before * result = after * x - (after - before)
    * left, which is compared with before * MAX_MADE_BYTES.
    """
    (text,) = _compile_texts(call.args[:1], compiler)
    old, new = _replaced(call)
    result = nodes.call("REPLACE", text, nodes.literal(old), nodes.literal(new))
    before, after = len(old.encode()), len(new.encode())
    if after > before:
        left = nodes.text_bytes(nodes.call("REPLACE", text, nodes.literal(old), nodes.literal("")))
        all_new = nodes.binary("*", nodes.text_bytes(text), nodes.integer(after))
        size = nodes.binary("-", all_new, nodes.binary("*", left, nodes.integer(after - before)))
        result = nodes.if_at_most(result, size, MAX_MADE_BYTES * before)
    return TypedSql(result, "text")


def _replace(text: str, old: str, new: str) -> str | None:
    """Return a text with each ``old`` replaced by ``new``; None where a longer ``new`` makes it longer than
    :data:`MAX_MADE_BYTES`."""
    result = text.replace(old, new)
    return _limited(result) if len(new.encode()) > len(old.encode()) else result


def _search(name: str, meaning: str, compute: Callable[[str, str], Any], *functions: str) -> Operation:
    """Return the row of an operation that searches for one text in another, in the table of operations.

    ``compute`` evaluates it in Python, and ``functions`` are its names in SQL.
    """
    return Operation(
        name, meaning, 2, 2, _texts_giving("boolean"), _compile_search, compute, f"{functions[0]}(s, 'a')",
        functions=functions, examples=(f"{functions[0]}(s, s)", f"{functions[0]}(s, '')", f"{functions[0]}('aé', s)"),
    )  # fmt: skip


TEXT = (
    Operation(
        "like", "(x, pattern): whether x fits the pattern of % and _; case matters, and there is no backslash; at most "
        f"{MAX_PATTERN} characters, {MAX_MIXED_PATTERN} where it has both % and _",
        2, 2, _check_like, _compile_like, like, "s LIKE 'a%'", syntax=Syntax("Like", ("this", "expression")),
    ),
    Operation(
        "ilike", "(x, pattern): the same, where small letters of ASCII and capitals are alike",
        2, 2, _check_like, _compile_like, lambda text, pattern: like(text.translate(_LOWER), pattern.translate(_LOWER)),
        "s ILIKE 'A%'", syntax=Syntax("ILike", ("this", "expression")), examples=("s NOT ILIKE '%É_'",),
    ),
    Operation(
        "lower", "the text in small letters, of ASCII only",
        1, 1, _texts_giving("text"), _compile_letters, lambda text: text.translate(_LOWER), "LOWER(s)",
        functions=("LOWER", "LCASE"),
    ),
    Operation(
        "upper", "the text in capitals, of ASCII only",
        1, 1, _texts_giving("text"), _compile_letters, lambda text: text.translate(_UPPER), "UPPER(s)",
        functions=("UPPER", "UCASE"),
    ),
    _trim("trim", "the text without spaces at its ends; other white space stays", str.strip),
    _trim("ltrim", "the text without spaces at its start", str.lstrip),
    _trim("rtrim", "the text without spaces at its end", str.rstrip),
    Operation(
        "substr", "(x, first, count), constants: count characters from the first on, which is 1; LEFT(x, count)",
        3, 3, _check_part, _compile_substr, lambda text, start, count: text[start - 1 : start - 1 + count],
        "SUBSTR(s, 1, 1)",
        special_functions=(
            *(Function(name, (2, 3), "SUBSTR(s, 1, 3)", _read_substr) for name in ("SUBSTR", "SUBSTRING")),
            Function(
                "LEFT", 2, "LEFT(s, 3)", lambda args, read: Call("substr", (read(args[0]), Literal(1), read(args[1])))
            ),
        ),
        examples=("SUBSTRING(s, 2)", "LEFT(s, 1)", "SUBSTR(s, 3, 5)", "LEFT(s, 0)"),
    ),
    Operation(
        "right", "(x, count), a constant: count characters from the end",
        2, 2, _check_part, _compile_right, lambda text, count: text[max(len(text) - count, 0) :], "RIGHT(s, 1)",
        special_functions=(
            Function("RIGHT", 2, "RIGHT(s, 3)", lambda args, read: Call("right", tuple(map(read, args)))),
        ),
        examples=("RIGHT(s, 5)", "RIGHT(s, 0)"),
    ),
    Operation(
        "length", "how many characters (code points) a text has",
        1, 1, _texts_giving("integer"), _compile_length, len, "LENGTH(s)",
        functions=("LENGTH", "LEN", "CHAR_LENGTH", "CHARACTER_LENGTH"), range_rule=f"0 to {MAX_TEXT_BYTES}",
    ),
    _search("contains", "(x, part): whether the part is in x", operator.contains, "CONTAINS"),
    _search("starts_with", "(x, start): whether x begins so", str.startswith, "STARTS_WITH", "STARTSWITH", "PREFIX"),
    _search("ends_with", "(x, end): whether x ends so", str.endswith, "ENDS_WITH", "ENDSWITH", "SUFFIX"),
    Operation(
        "replace", f"(x, old, new), constants of at most {MAX_REPLACEMENT_BYTES} bytes: x with each old as new",
        3, 3, checks(_require_texts, lambda call, _: _replaced(call), result="text"), _compile_replace, _replace,
        "REPLACE(s, 'a', 'xyz')",
        special_functions=(
            Function(
                "REPLACE", 3, "REPLACE(s, 'old', 'new')", lambda args, read: Call("replace", tuple(map(read, args)))
            ),
        ),
        examples=("REPLACE(s, 'ab', '')", "REPLACE(s, 'é', 'ée')"),
        null_where="new is longer than old, and the result has more than 1,024 bytes",
    ),
    Operation(
        "||", "the texts as one; in CONCAT, NULL is an empty text",
        1, None, _texts_giving("text"), _compile_concat, _concat, "s || '-' || s",
        syntax=Syntax("DPipe", read=_read_pipe),
        special_functions=(Function("CONCAT", tuple(range(1, 33)), "CONCAT(s, t)", _read_concat),),
        examples=("CONCAT(s, 'x', s)", "CONCAT(LOWER(s))"), null_where="several make more than 1,024 bytes",
    ),
)  # fmt: skip
"""The operations on text."""
