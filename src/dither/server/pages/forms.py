"""What people write into forms, as values: the options of a question, and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.datastructures import FormData

from dither.errors import InvalidArgument
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.wire.numbers import decimal

FLAGS = ("bias", "quantile_interval", "other", "integer", "nonnegative", "again", "force")
DEFAULT_EPSILON = "0.1"


def text_of(form: FormData, name: str, most: int = 20_000) -> str:
    """A field of text, without spaces around it; refused if it is too long. Browsers send other ends of lines.

    >>> text_of(FormData([("sql", "SELECT 1\\r\\nFROM t ")]), "sql")
    'SELECT 1\\nFROM t'
    """
    value = form.get(name, "")
    if not isinstance(value, str) or len(value) > most:
        raise InvalidArgument(name, f"at most {most:,} characters", "more", "shorten it")
    return value.replace("\r\n", "\n").strip()


def texts_of(form: FormData, name: str) -> list[str]:
    """All values of a field that may be sent several times."""
    return [value for value in form.getlist(name) if isinstance(value, str)]


@dataclass(frozen=True)
class AskedOptions:
    """The options of a question as the form has them, so that they are shown again as they were written."""

    by: str = "epsilon"
    epsilon: str = DEFAULT_EPSILON
    error: str = ""
    bias: bool = False
    quantile_interval: bool = False
    other: bool = False
    integer: bool = False
    nonnegative: bool = False
    again: bool = False
    force: bool = False

    @property
    def more(self) -> bool:
        """Whether any of the further choices is made."""
        return any(getattr(self, name) for name in FLAGS)

    def options(self) -> dict[str, Any]:
        """The options by name, as a release takes them.

        >>> AskedOptions(epsilon="0,5", bias=True).options()
        {'epsilon': 0.5, 'bias': True}
        >>> AskedOptions(by="error", error="1 %").options()
        {'error': '1%'}
        """
        result: dict[str, Any] = {name: True for name in FLAGS if getattr(self, name)}
        if self.by == "error":
            text = self.error.replace(" ", "")
            return {"error": text if text.endswith("%") else number(text, "±")} | result
        return {"epsilon": number(self.epsilon, "ε")} | result


def asked_options(form: FormData) -> AskedOptions:
    """The options that a form holds."""
    flags = {name: form.get(name) == "yes" for name in FLAGS}
    by = "error" if form.get("by") == "error" else "epsilon"
    return AskedOptions(by, text_of(form, "epsilon", 40), text_of(form, "error", 40), **flags)


def number(text: str, name: str) -> float:
    """A positive number; a comma is taken for a decimal point.

    >>> number("0,25", "ε")
    0.25
    >>> number("a lot", "ε")
    Traceback (most recent call last):
    dither.InvalidArgument: ε: expected a number above 0, got another text. Fix: write a number, as in 0.5.
    """
    value = decimal(text.strip().replace(",", "."))
    if value is None or value <= 0:
        got = "nothing" if not text.strip() else "another text"
        raise InvalidArgument(name, "a number above 0", got, "write a number, as in 0.5")
    return value


def limit_of(form: FormData) -> Guarantee | None:
    """A limit in ε, in ε and δ, or in ρ; None where nothing is written.

    >>> limit_of(FormData([("epsilon", "2"), ("delta", "1e-6")]))
    ApproxDP(2, 1e-06)
    """
    epsilon, delta, rho = (text_of(form, name, 40) for name in ("epsilon", "delta", "rho"))
    if rho and (epsilon or delta):
        raise InvalidArgument("limit", "ε (and δ), or ρ", "both", "leave one of them empty")
    if rho:
        return ZCDP(number(rho, "ρ"))
    if delta and not epsilon:
        raise InvalidArgument("limit", "ε beside δ", "δ alone", "write ε as well")
    if not epsilon:
        return None
    return ApproxDP(number(epsilon, "ε"), number(delta, "δ")) if delta else PureDP(number(epsilon, "ε"))
