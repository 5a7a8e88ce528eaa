"""Docstrings as they stand in the code, made ready for a page: nothing is lost, and no sign is taken for markup."""

from __future__ import annotations

import re

LITERAL = re.compile(r"(``.*?``|:\w+:`[^`]*`|`[^`]*`)", re.DOTALL)


def escape_bars(text: str) -> str:
    """Absolute values are not substitutions: ``|x|`` outside of code has its bars escaped.

    >>> escape_bars("at |x| <= 1, ``|y|``")
    'at \\\\|x\\\\| <= 1, ``|y|``'
    """
    return "".join(part if part.startswith(("`", ":")) else part.replace("|", r"\|") for part in LITERAL.split(text))


def skip_foreign_member(app: object, what: str, name: str, value: object, skip: bool, options: object) -> bool | None:
    """For ``autodoc-skip-member``: methods that scikit-learn and Python bring along are theirs to describe."""
    plain = getattr(value, "fget", None) or getattr(value, "__func__", value)
    module = str(getattr(plain, "__module__", "") or "")
    return True if callable(plain) and module and not module.startswith("dither") else None


def prepare_docstring(app: object, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """For ``autodoc-process-docstring``: changes the lines in place."""
    result: list[str] = []
    inside_example = False
    for line in lines:
        inside_example = line.lstrip().startswith(">>>") or (inside_example and bool(line.strip()))
        result.append(line if inside_example else escape_bars(line))
    lines[:] = result
