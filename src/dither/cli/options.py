"""The options of commands: groups of fields, each of which is an option on the command line.

A group is a dataclass whose fields are declared by :func:`dither.tables.options.option`. The group of ``query`` and
``explain`` is :class:`~dither.ReleaseOptions` itself.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable
from dataclasses import Field, dataclass, fields, is_dataclass
from functools import wraps
from types import NoneType
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperGroup

from dither import arguments
from dither.errors import InvalidArgument
from dither.tables.options import option, option_types

_FORCE = "Overwrite existing files; never a source, card, ledger, key or receipt."
_RECEIPT = "The last receipt you kept: an older copy of the ledger is refused."


@dataclass(frozen=True)
class OutputOptions:
    """What becomes of an answer: printed in a format, written, plotted, made a page of."""

    dry_run: bool = option(False, "Explain only: read no data, charge nothing.")
    format: str | None = option(None, "json, csv or parquet instead of a table.", "NAME")
    output: str | None = option(None, "Write the answer to this file.", "FILE")
    plot: str | None = option(None, "Plot the answer to this file.", "FILE")
    report: str | None = option(None, "Write a page about the answer to this .html file.", "FILE")
    receipt: str | None = option(None, _RECEIPT, "TEXT")
    overwrite: bool = option(False, _FORCE, flag="--force")


@dataclass(frozen=True)
class ReleaseCommandOptions:
    """What ``publish``, ``synthesize`` and ``series`` share."""

    dry_run: bool = option(False, "Show the cost and the expected ± only: read no data, charge nothing.")
    output: str | None = option(None, "Write everything to this file.", "FILE")
    report: str | None = option(None, "Write a page about it to this .html file.", "FILE")
    analyst: str | None = option(None, "Who asks, where each analyst has a budget.", "NAME")
    receipt: str | None = option(None, _RECEIPT, "TEXT")
    force: bool = option(False, _FORCE)


@dataclass(frozen=True)
class PublicationOptions(ReleaseCommandOptions):
    """What ``publish`` and ``synthesize`` share."""

    epsilon: float | None = option(None, "The ε to spend; else that of the plan.", "NUMBER")
    delta: float | None = option(None, "The δ to spend; else that of the plan or the card.", "NUMBER")
    max_rows: int | Literal["auto"] | None = option(
        None, "How many rows of a person count at most; auto chooses privately.", "N|auto"
    )
    bias: bool = option(False, "Spend a twentieth of the cost to learn how much a stated limit leaves out.")
    about: str | None = option(None, "The table, of a card with several.", "NAME")
    key: str | None = option(
        None, "A name for this release: asked again under it, the same release is returned.", "NAME"
    )
    again: bool = option(False, "Release anew, and charge anew, even if this was done before.")


@dataclass(frozen=True)
class PublishOptions(PublicationOptions):
    """How a plan of tables is published, and what becomes of the tables."""

    rho: float | None = option(None, "Instead of ε and δ: the ρ of zCDP to spend.", "NUMBER")
    output: str | None = option(None, "Write every table, the records and publication.json to this folder.", "FOLDER")
    format: str = option("csv", "The tables as csv or parquet.", "NAME")
    json: bool = option(False, "Print JSON.")
    draft: bool = option(False, "Write a draft of a plan from a card; no data are read.")

    @property
    def cost(self) -> dict[str, float | None]:
        """Return the budget, as a plan's methods take it."""
        return {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}

    @property
    def changes(self) -> dict[str, Any]:
        """Return what the options say in place of the plan."""
        limit = {} if self.max_rows is None else {"max_rows": self.max_rows}
        return {**limit, **({"bias": True} if self.bias else {})}


@dataclass(frozen=True)
class SynthesizeOptions(PublicationOptions):
    """What records are made, and what becomes of them."""

    columns: str | None = option(None, "The columns; else all that the card has keys or bounds of.", "NAME,NAME…")
    rows: int | None = option(None, "How many records; else about as many as there are rows.", "N")
    target: str | None = option(None, "The column that models trained on the records will predict.", "COLUMN")
    constraint: tuple[str, ...] = option(
        (), "A public rule that every record obeys: 'NOT (married AND age < 15)'; may be repeated.", "SQL"
    )
    where: str | None = option(None, "Only rows that meet this condition.", "SQL")
    output: str | None = option(None, "Write the records to this .parquet or .csv file.", "FILE")


@dataclass(frozen=True)
class SeriesOptions(ReleaseCommandOptions):
    """Which points of a series are released, and what becomes of them."""

    through: str | None = option(None, "The last period to release; else the last one that has ended (UTC).", "DATE")
    window: int | None = option(None, "Sums over the last N periods in place of running totals, for free.", "N")
    output: str | None = option(None, "Write all points to this .csv, .json or .parquet.", "FILE")
    plot: str | None = option(None, "Draw lines with their bands to this file.", "FILE")
    json: bool = option(False, "Print JSON.")

    def __post_init__(self) -> None:
        if self.window is not None:  # before a ledger is made
            arguments.whole(self.window, "window")


@dataclass(frozen=True)
class BudgetOptions:
    """What to show of a ledger and to write; and a change of a limit, or a reopening, signed and with a reason."""

    dataset: str | None = option(None, "Show only this dataset.", "NAME")
    history: bool = option(False, "Show every entry.")
    verify: bool = option(False, "Check every entry and every account.")
    receipt: str | None = option(None, _RECEIPT, "TEXT")
    export: str | None = option(None, "Write the history to a .json or .csv file.", "FILE")
    plot: str | None = option(None, "Plot the spending of a dataset to this file.", "FILE")
    force: bool = option(False, "Overwrite existing files; with --set, also set a limit below what is spent.")
    limit: str | None = option(
        None, "Set a new limit: epsilon=2, epsilon=2,delta=1e-6 or rho=0.5.", "LIMIT", flag="--set"
    )
    analyst: str | None = option(None, "With --set: the limit of this analyst.", "NAME")
    each_person: bool = option(False, "With --set: the limit of each person.")
    reopen: bool = option(False, "Take questions again after incidents.")
    signed_by: str | None = option(None, "With --set or --reopen: who is responsible.", "NAME", flag="--signed-by --by")
    reason: str | None = option(None, "With --set or --reopen: why; it stays in the history.", "TEXT")


def expand_options(
    command: Callable[..., None], *, taken: Callable[[Field[Any]], bool] = lambda _: True
) -> Callable[..., None]:
    """Let a command take whole groups of options: in its signature, each group is replaced by its fields.

    >>> @expand_options
    ... def series(card: str, options: SeriesOptions) -> None:
    ...     print(card, options.window)
    >>> list(inspect.signature(series).parameters)[:3]
    ['card', 'dry_run', 'output']
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, list[Field[Any]]] = {}
    kinds: dict[str, Any] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        kind = parameter.annotation
        if isinstance(kind, type) and is_dataclass(kind):
            kinds[parameter.name] = kind
            groups[parameter.name] = [item for item in fields(kind) if taken(item)]
            parameters += [_parameter(item, option_types(kind)[item.name]) for item in groups[parameter.name]]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def expanded(**values: Any) -> None:
        for name, group in groups.items():
            hints = option_types(kinds[name])
            stated = {item.name: _read(values.pop(item.name), hints[item.name], _flags(item)[0]) for item in group}
            values[name] = kinds[name](**stated)
        command(**values)

    setattr(expanded, "__signature__", inspect.Signature(parameters))  # noqa: B010 which mypy does not know
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return expanded


def _flags(item: Field[Any]) -> list[str]:
    """Return the flags of an option, the first of which is its name."""
    return str(item.metadata["flag"] or f"--{item.name.replace('_', '-')}").split()


def _parameter(item: Field[Any], hint: Any) -> inspect.Parameter:
    """Return the parameter of a command that an option becomes."""
    about = typer.Option(*_flags(item), metavar=item.metadata["metavar"] or None, help=item.metadata["help"])
    many = typing.get_origin(hint) is tuple
    shown = list[str] if many else hint if _is_simple(hint) else str | None if item.default is None else str
    return inspect.Parameter(
        item.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=[] if many else item.default,
        annotation=Annotated[shown, about],
    )


def _is_simple(hint: Any) -> bool:
    """Return whether the command line itself reads values of a type: a truth value, text or one kind of number."""
    kinds = {*(typing.get_args(hint) or (hint,))} - {NoneType}
    return len(kinds) == 1 and kinds <= {bool, int, float, str}


def _read(given: Any, hint: Any, flag: str) -> Any:
    """Return the value of an option that was given as text: one of its choices, or a number, or the text."""
    if typing.get_origin(hint) is tuple:
        return tuple(given)
    if given is None or _is_simple(hint):
        return given
    kinds = typing.get_args(hint) if typing.get_origin(hint) is not Literal else (hint,)
    choices = [choice for kind in kinds if typing.get_origin(kind) is Literal for choice in typing.get_args(kind)]
    if given in choices:
        return given
    if int in kinds and _WHOLE.fullmatch(given):
        return int(given)
    if float in kinds and _NUMBER.fullmatch(given):
        return float(given)
    if str in kinds:
        return given
    expected = " or ".join([*(["a whole number"] if int in kinds else []), *choices])
    fix = " or ".join(f"{flag} {example}" for example in [*(["2"] if int in kinds else []), *choices])
    raise InvalidArgument(flag, expected, repr(given[:20]), f"pass {fix}, or leave it out for the default")


_WHOLE = re.compile("[0-9]{1,18}")
_NUMBER = re.compile(r"[0-9]{1,40}(\.[0-9]{0,40})?([eE][-+]?[0-9]{1,3})?|\.[0-9]{1,40}([eE][-+]?[0-9]{1,3})?")


class Command(TyperCommand):
    """A command whose help shows no type beside a flag, which takes no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, ``--help`` included."""
        return _without_flag_types(super().get_params(ctx))


class Group(TyperGroup):
    """The command that the others belong to, with help like theirs."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, ``--help`` included."""
        return _without_flag_types(super().get_params(ctx))


def _without_flag_types(parameters: list[Any]) -> list[Any]:
    """Remove the type that the help would show beside flags."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters
