"""Options that several commands share: a dataclass, each field of which is an option on the command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True)
class PlanOptions:
    """What decides how a question is answered and what it costs; the same for ``query`` and ``explain``."""

    epsilon: Annotated[float | None, typer.Option(metavar="NUMBER", help="The ε to spend on this question.")] = None
    error: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|N%",
            help="Instead of ε: the error (95 %) that is good enough for counts and sums; N% is of the card's rows.",
        ),
    ] = None
    delta: Annotated[float | None, typer.Option(metavar="NUMBER", help="The δ to spend, where one is needed.")] = None
    max_groups: Annotated[
        str | None, typer.Option(metavar="N|auto", help="In how many groups a person counts at most.")
    ] = None
    max_rows: Annotated[
        str | None, typer.Option(metavar="N|auto", help="How many rows of a person count at most, in each group.")
    ] = None
    noise: Annotated[str, typer.Option(metavar="NAME", help="best, laplace or gaussian.")] = "best"
    quantile_interval: Annotated[
        bool,
        typer.Option(
            "--quantile-interval",
            help="Spend a third of the budget of quantiles, MIN and MAX on their ±, of MODE on its probability.",
        ),
    ] = False
    interval: Annotated[
        str, typer.Option(metavar="NAME", help="What the ± is about: noise, or population (adds the sampling error).")
    ] = "noise"
    other: Annotated[bool, typer.Option("--other", help="Add one row for all groups that are not shown.")] = False
    bias: Annotated[
        bool, typer.Option("--bias", help="Spend a twentieth of ε to learn how much the limits leave out.")
    ] = False
    analyst: Annotated[str | None, typer.Option(metavar="NAME", help="Who asks, where each analyst has a budget.")] = (
        None
    )


def expand_options(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take whole dataclasses of options: in its signature, each is replaced by its fields.

    >>> @expand_options
    ... def explain(sql: str, plan: PlanOptions) -> None:
    ...     print(sql, plan.epsilon, plan.noise)
    >>> explain(sql="SELECT 1", **{**vars(PlanOptions()), "epsilon": 0.5})
    SELECT 1 0.5 best
    >>> list(inspect.signature(explain).parameters)[:3]
    ['sql', 'epsilon', 'error']
    """
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type[Any]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if isinstance(group, type) and is_dataclass(group):
            groups[parameter.name] = group
            hints = get_type_hints(group, include_extras=True)
            parameters += [
                inspect.Parameter(
                    item.name, inspect.Parameter.KEYWORD_ONLY, default=item.default, annotation=hints[item.name]
                )
                for item in fields(group)
            ]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def expanded(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{item.name: values.pop(item.name) for item in fields(group)})
        command(**values)

    setattr(expanded, "__signature__", inspect.Signature(parameters))  # noqa: B010 which mypy does not know
    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return expanded


class Command(TyperCommand):
    """A command whose help shows no type beside a flag, which takes no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, ``--help`` included."""
        return _without_flag_types(super().get_params(ctx))


class Group(TyperGroup):
    """The same for the command that the others belong to."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, ``--help`` included."""
        return _without_flag_types(super().get_params(ctx))


def _without_flag_types(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters
