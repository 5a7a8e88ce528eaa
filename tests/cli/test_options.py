"""The options of the command line: shared between commands, and shown by the help."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest
from typer.testing import CliRunner

import dither as dp
from dither.cli import app as app_module
from dither.cli import tables
from dither.cli.app import app
from dither.cli.options import PlanOptions, expand_options
from support import refuses

COMMANDS = ["version", "demo", "init", "check", "query", "explain", "budget", "audit"]


def test_query_and_explain_share_their_options() -> None:
    shared = {item.name for item in fields(PlanOptions)}
    for command in (app_module.query, app_module.explain):
        assert shared <= set(inspect.signature(command).parameters)


def test_a_group_of_options_arrives_whole() -> None:
    arrived = []

    @expand_options
    def command(sql: str, plan: PlanOptions) -> None:
        arrived.append((sql, plan))

    plan = PlanOptions(epsilon=0.5, max_groups="auto", other=True)
    command(sql="SELECT 1", **vars(plan))
    assert arrived == [("SELECT 1", plan)]


def test_release_options_are_checked_and_complete() -> None:
    plan = PlanOptions(epsilon=0.5, delta=1e-7, max_groups="3", max_rows="2", noise="laplace", analyst="ann", bias=True)
    options = tables.release_options(plan)
    assert vars(options) | {"max_groups": "3", "max_rows": "2"} == vars(options) | vars(plan)
    assert (options.max_groups, options.max_rows) == (3, 2)
    assert tables.release_options(PlanOptions(max_rows="auto")).max_rows == "auto"
    assert tables.release_options(PlanOptions(error="2.5")).error == 2.5
    assert tables.release_options(PlanOptions(error="1%")).error == "1%"
    for text in ("x", "0%", "1 %%", "nan%", "-1%"):
        with refuses(dp.InvalidArgument, "error", "percentage"):
            tables.release_options(PlanOptions(error=text))
    with refuses(dp.InvalidArgument, "--max-rows", "'many'"):
        tables.release_options(PlanOptions(max_rows="many"))
    with refuses(dp.InvalidArgument, "--max-groups", "'many'"):
        tables.release_options(PlanOptions(max_groups="many"))
    with refuses(dp.InvalidArgument, "--noise", "'loud'"):
        tables.release_options(PlanOptions(noise="loud"))


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_the_help_shows_no_type_beside_a_flag(command: str) -> None:
    shown = CliRunner().invoke(app, [*command.split(), "--help"], terminal_width=200)
    assert shown.exit_code == 0
    assert "--help" in shown.output
    assert "bool" not in shown.output


def test_version_as_an_option() -> None:
    assert CliRunner().invoke(app, ["--version"]).output == f"{dp.__version__}\n"
