"""The options of the command line: derived from their declarations, and shown by the help."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from typing import Any

import pytest
from typer.testing import CliRunner

import dither as dp
from dither.cli import app as app_module
from dither.cli.app import app
from dither.cli.options import expand_options
from dither.tables.options import ReleaseOptions, option
from support import refuses

COMMANDS = ["version", "demo", "init", "check", "query", "explain", "publish", "series", "budget", "audit"]


def arrived(**typed: Any) -> ReleaseOptions:
    """The options that a command gets which is called with these, as texts."""
    result = []

    @expand_options
    def command(sql: str, options: ReleaseOptions) -> None:
        result.append(options)

    defaults = {item.name: item.default for item in fields(ReleaseOptions)}
    command(sql="SELECT 1", **{**defaults, **typed})
    return result[0]


def test_every_option_of_a_release_is_one_of_the_command_line() -> None:
    names = {item.name: item.metadata["planned"] for item in fields(ReleaseOptions)}
    assert set(names) <= set(inspect.signature(app_module.query).parameters)
    explained = set(inspect.signature(app_module.explain).parameters)
    assert {name for name, planned in names.items() if planned} == explained - {"card", "sql"}


def test_a_declaration_is_all_that_a_new_option_needs() -> None:
    @dataclass(frozen=True)
    class Later(ReleaseOptions):
        surprise: int | None = option(None, "How large the surprise may be.", "N")

    def command(options: Any) -> None:
        result.append(options)

    result: list[Any] = []
    command.__annotations__["options"] = Later
    expanded = expand_options(command)
    assert "surprise" in inspect.signature(expanded).parameters
    expanded(**{**{item.name: item.default for item in fields(Later)}, "surprise": 3})
    assert result == [Later(surprise=3)]


def test_options_are_read_from_text() -> None:
    options = arrived(epsilon=0.5, delta=1e-7, max_groups="3", max_rows="auto", noise="laplace", analyst="ann")
    assert options == ReleaseOptions(0.5, delta=1e-7, max_groups=3, max_rows="auto", noise="laplace", analyst="ann")
    assert arrived(error="2.5").error == 2.5
    assert arrived(error="1%").error == "1%"
    for text in ("x", "0%", "1 %%", "nan%", "-1%", "1_0", "\u0661"):
        with refuses(dp.InvalidArgument, "error", "percentage"):
            arrived(error=text)
    for name, text in (("max_rows", "many"), ("max_groups", "1.5"), ("noise", "loud"), ("interval", "all")):
        with refuses(dp.InvalidArgument, f"--{name.replace('_', '-')}", f"'{text}'"):
            arrived(**{name: text})
    with pytest.raises(dp.InvalidArgument) as refusal:
        arrived(max_groups="1.5")
    assert refusal.value.command == "pass --max-groups 2 or --max-groups auto, or leave it out for the default"
    with pytest.raises(dp.InvalidArgument) as refusal:
        arrived(error="x%")
    assert refusal.value.command == "pass --error 50, or --error 1%"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_the_help_shows_no_type_beside_a_flag(command: str) -> None:
    shown = CliRunner().invoke(app, [*command.split(), "--help"], terminal_width=200)
    assert shown.exit_code == 0
    assert "--help" in shown.output
    assert "bool" not in shown.output


def test_version_as_an_option() -> None:
    assert CliRunner().invoke(app, ["--version"]).output == f"{dp.__version__}\n"
