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
_ANALYST = "The asking analyst, where analysts have budgets."


@dataclass(frozen=True)
class DemoOptions:
    """Size and folder of the demo."""

    rows: int = option(200_000, "The number of invented visits.", "N")
    folder: str = option("out/demo", "The folder to write to: a new or an empty one.", "FOLDER")

    def __post_init__(self) -> None:
        arguments.whole(self.rows, "--rows", 1000, 10_000_000)


@dataclass(frozen=True)
class InitOptions:
    """The content of a drafted card, and the file that it is written to."""

    unit: str | None = option(
        None, "The column that identifies the person; without it every row is a person.", "COLUMN"
    )
    name: str | None = option(None, "The name of the table in questions, or of several tables together.", "NAME")
    output: str | None = option(None, "Write the card to this file.", "FILE")
    force: bool = option(False, "Overwrite an existing file, unless it is a card.")
    schema_only: bool = option(False, "Read no rows, and propose no types.")


@dataclass(frozen=True)
class OutputOptions:
    """How the answer to a question is printed, and the files that it is written to."""

    dry_run: bool = option(False, "Explain only: read no data, charge nothing.")
    format: str | None = option(None, "json, csv or parquet instead of a table.", "NAME")
    output: str | None = option(None, "Write the answer to this file.", "FILE")
    plot: str | None = option(None, "Plot the answer to this file.", "FILE")
    report: str | None = option(None, "Write a page about the answer to this .html file.", "FILE")
    receipt: str | None = option(None, _RECEIPT, "TEXT")
    overwrite: bool = option(False, _FORCE, flag="--force")
    verbose: bool = option(False, "Print all notes, not only the two that matter most.")


@dataclass(frozen=True)
class ReleaseCommandOptions:
    """The options that ``publish``, ``synthesize`` and ``series`` share."""

    dry_run: bool = option(False, "Show the cost and the expected ± only: read no data, charge nothing.")
    output: str | None = option(None, "Write everything to this file.", "FILE")
    report: str | None = option(None, "Write a page about it to this .html file.", "FILE")
    analyst: str | None = option(None, _ANALYST, "NAME")
    receipt: str | None = option(None, _RECEIPT, "TEXT")
    force: bool = option(False, _FORCE)


@dataclass(frozen=True)
class PublicationOptions(ReleaseCommandOptions):
    """The options that ``publish`` and ``synthesize`` share."""

    epsilon: float | None = option(None, "The ε to spend; else that of the plan.", "NUMBER")
    delta: float | None = option(None, "The δ to spend; else that of the plan or the card.", "NUMBER")
    max_rows: int | Literal["auto"] | None = option(
        None, "The most rows of a person that count; auto chooses privately.", "N|auto"
    )
    bias: bool = option(False, "Spend a twentieth of the cost to estimate how much a stated limit excludes.")
    about: str | None = option(None, "The table, of a card with several.", "NAME")
    key: str | None = option(
        None, "A name for this release: repeating it under this name returns the recorded release.", "NAME"
    )
    again: bool = option(False, "Release and charge again, even if this was done before.")


@dataclass(frozen=True)
class PublishOptions(PublicationOptions):
    """The options of ``publish``: cost, limits and output of a plan of tables."""

    rho: float | None = option(None, "The ρ of zCDP to spend, instead of ε and δ.", "NUMBER")
    output: str | None = option(None, "Write every table, the records and publication.json to this folder.", "FOLDER")
    format: str = option("csv", "The tables as csv or parquet.", "NAME")
    json: bool = option(False, "Print JSON.")
    draft: bool = option(False, "Write a draft of a plan from a card; no data are read.")

    @property
    def cost(self) -> dict[str, float | None]:
        """Return the budget as keywords of a plan's methods."""
        return {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}

    @property
    def changes(self) -> dict[str, Any]:
        """Return the keys of a plan that the options override."""
        limit = {} if self.max_rows is None else {"max_rows": self.max_rows}
        return {**limit, **({"bias": True} if self.bias else {})}


@dataclass(frozen=True)
class SynthesizeOptions(PublicationOptions):
    """The options of ``synthesize``: columns, number, rules and output of synthetic records."""

    columns: str | None = option(None, "The columns; else all with keys or bounds in the card.", "NAME,NAME…")
    rows: int | None = option(None, "The number of records; else about the number of rows.", "N")
    target: str | None = option(None, "The column that models trained on the records will predict.", "COLUMN")
    constraint: tuple[str, ...] = option(
        (), "A public rule that every record obeys: 'NOT (married AND age < 15)'; may be repeated.", "SQL"
    )
    where: str | None = option(None, "Only rows that meet this condition.", "SQL")
    output: str | None = option(None, "Write the records to this .parquet or .csv file.", "FILE")


@dataclass(frozen=True)
class ProfileOptions:
    """The options of ``profile``: its cost, columns and output."""

    epsilon: float | None = option(None, "The ε to spend; without it, the newest profile is shown, for free.", "NUMBER")
    delta: float | None = option(None, "The δ to spend; else that of the card, where normal noise is better.", "NUMBER")
    rho: float | None = option(None, "The ρ of zCDP to spend, instead of ε and δ.", "NUMBER")
    columns: str | None = option(None, "The columns to describe; else all.", "NAME,NAME…")
    without: str | None = option(None, "The columns to omit.", "NAME,NAME…")
    dry_run: bool = option(False, "Show the cost and the expected ± only: read no data, charge nothing.")
    json: bool = option(False, "Print JSON.")
    report: str | None = option(None, "Write the charts to this .html file.", "FILE")
    analyst: str | None = option(None, _ANALYST, "NAME")
    receipt: str | None = option(None, _RECEIPT, "TEXT")
    again: bool = option(False, "Measure and charge again, even if this was done before.")
    yes: bool = option(False, "Measure even if everything is expected to be hidden by noise.")
    force: bool = option(False, _FORCE)


@dataclass(frozen=True)
class SeriesOptions(ReleaseCommandOptions):
    """The options of ``series``: the last period to release, and the output."""

    through: str | None = option(None, "The last period to release; else the last one that has ended (UTC).", "DATE")
    window: int | None = option(None, "Show sums over the last N periods instead of running totals, for free.", "N")
    output: str | None = option(None, "Write all points to this .csv, .json or .parquet.", "FILE")
    plot: str | None = option(None, "Draw lines with their bands to this file.", "FILE")
    json: bool = option(False, "Print JSON.")

    def __post_init__(self) -> None:
        if self.window is not None:  # before a ledger is made
            arguments.whole(self.window, "--window")


@dataclass(frozen=True)
class BudgetOptions:
    """The options of ``budget``: parts of a ledger to show or export, and signed changes of a limit or reopenings."""

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
    reopen: bool = option(False, "Reopen a dataset that incidents have closed.")
    signed_by: str | None = option(
        None, "With --set or --reopen: the responsible person.", "NAME", flag="--signed-by --by"
    )
    reason: str | None = option(None, "With --set or --reopen: the reason, for the history.", "TEXT")


@dataclass(frozen=True)
class ReportOptions:
    """The options of ``report``: the card of a deployment, and the file for its record."""

    deployment: str | None = option(None, "The card of the deployed table.", "CARD")
    output: str | None = option(None, "Write a .md, .html or .json file instead of printing Markdown.", "FILE")
    force: bool = option(False, _FORCE)

    def __post_init__(self) -> None:
        if self.deployment is None:
            raise InvalidArgument("--deployment", "the card of a table", "none", "pass --deployment visits.toml")


@dataclass(frozen=True)
class ServeOptions:
    """The options of ``serve``: settings that override the configuration file and the environment."""

    database: str | None = option(
        None, "The database of users and answers: a file, or postgresql://…; else in the folder.", "DATABASE"
    )
    host: str | None = option(None, "The address to listen on; else 127.0.0.1.", "NAME")
    port: int | None = option(None, "The port to listen on; else 8765.", "N")
    config: str | None = option(None, "The configuration; else dither-server.toml.", "FILE")
    processes: int | None = option(None, "The number of serving processes; more than 1 needs PostgreSQL.", "N")
    single_steward: bool = option(False, "Let one steward alone raise limits.")


@dataclass(frozen=True)
class BackupOptions:
    """The options of ``backup``: the folder for the ledgers' secrets, and the server's configuration."""

    keys: str | None = option(
        None, "Copy the ledgers' secrets to this folder, once; keep it separate from the backups.", "FOLDER"
    )
    config: str | None = option(None, "The configuration; else dither-server.toml.", "FILE")
    database: str | None = option(None, "The server's database, as for dither serve.", "DATABASE")


@dataclass(frozen=True)
class RestoreOptions(BackupOptions):
    """The options of ``restore``: the folder with the ledgers' secrets, and a signed acceptance of lost charges."""

    keys: str | None = option(None, "The folder with the ledgers' secrets, if those are lost, too.", "FOLDER")
    accept_loss: bool = option(False, "Use a ledger that has lost entries, with no budget left in its accounts.")
    signed_by: str | None = option(None, "With --accept-loss: the responsible person.", "NAME", flag="--signed-by --by")
    reason: str | None = option(None, "With --accept-loss: the reason, for the history.", "TEXT")


@dataclass(frozen=True)
class AuditOptions:
    """The options of ``audit``: the claim to test, the effort, and the files for the findings."""

    epsilon: float | None = option(None, "The ε that your function claims.", "NUMBER")
    delta: float = option(0.0, "The δ that it claims.", "NUMBER")
    bounds: tuple[float, float] | None = option(
        None, "The bounds of your records: neighboring datasets are made within them.", "LOWER UPPER"
    )
    neighbors: str = option("replace-one", "add-remove or replace-one.", "NAME")
    pairs: str | None = option(
        None, "Instead of bounds: a function in the file that returns (name, x, neighbor) triples.", "NAME"
    )
    trials: int = option(20_000, "The number of runs of your function on each of two neighbors.", "N")
    only: str | None = option(None, "Audit only built-in subjects with this in their name.", "TEXT")
    broken: bool = option(False, "Audit mechanisms known to be broken, and their repairs, instead.")
    seconds: float = option(1.0, "The approximate time to sample each built-in subject, in seconds.", "N")
    confidence: float = option(0.999, "The confidence of a refutation, over the whole audit.", "NUMBER")
    json: str | None = option(None, "Write the findings to this file.", "FILE")
    html: str | None = option(None, "Write a page with the trade-off plots to this file.", "FILE")
    force: bool = option(False, _FORCE)

    def __post_init__(self) -> None:
        arguments.whole(self.trials, "--trials", 20)


def expand_options(
    command: Callable[..., None], *, taken: Callable[[Field[Any]], bool] = lambda _: True
) -> Callable[..., None]:
    """Decorate a command that takes groups of options: typer sees each field of a group as a separate option.

    ``taken`` selects the fields; the others keep their defaults.

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
        """Build the groups from the values of their fields, and run the command."""
        for name, group in groups.items():
            hints = option_types(kinds[name])
            stated = {item.name: _read(values.pop(item.name), hints[item.name], _flags(item)[0]) for item in group}
            values[name] = kinds[name](**stated)
        command(**values)

    setattr(expanded, "__signature__", inspect.Signature(parameters))  # noqa: B010 which mypy does not know
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return expanded


def _flags(item: Field[Any]) -> list[str]:
    """Return the spellings of an option, the main one first."""
    return str(item.metadata["flag"] or f"--{item.name.replace('_', '-')}").split()


def _parameter(item: Field[Any], hint: Any) -> inspect.Parameter:
    """Return the parameter that declares an option to typer."""
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
    """Return whether typer itself parses values of a type: a flag, text, one kind of number, or a pair of numbers."""
    kinds = {*(typing.get_args(hint) or (hint,))} - {NoneType}
    return len(kinds) == 1 and kinds <= {bool, int, float, str, tuple[float, float]}


def _read(given: Any, hint: Any, flag: str) -> Any:
    """Parse the value of an option by its type: one of its choices, a number, or text.

    ``given`` is the text from the command line (None if the option was not passed, a list for an option that may be
    repeated), ``hint`` the type annotation of its field, and ``flag`` its name for the error.
    """
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
    if float in kinds and NUMBER.fullmatch(given):
        return float(given)
    if str in kinds:
        return given
    expected = " or ".join([*(["a whole number"] if int in kinds else []), *choices])
    fix = " or ".join(f"{flag} {example}" for example in [*(["2"] if int in kinds else []), *choices])
    raise InvalidArgument(flag, expected, repr(given[:20]), f"pass {fix}, or leave it out for the default")


_WHOLE = re.compile("[0-9]{1,18}")
NUMBER = re.compile(r"[0-9]{1,40}(\.[0-9]{0,40})?([eE][-+]?[0-9]{1,3})?|\.[0-9]{1,40}([eE][-+]?[0-9]{1,3})?")


class _FlagsWithoutType:
    """A mixin for commands whose help shows no type beside flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of the command, including ``--help``, with an empty type for flags."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of the command class
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class Command(_FlagsWithoutType, TyperCommand):
    """A command whose help shows no type beside flags."""


class CommandGroup(_FlagsWithoutType, TyperGroup):
    """The main command, whose help shows no type beside flags."""
