"""The page of commands, from the help that ``dither COMMAND --help`` prints."""

from __future__ import annotations

from typing import Any

import typer.main

from dither.cli.app import app
from site_builder.operations import cell


def commands() -> dict[str, Any]:
    """Every command by its name, as click knows it."""
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def _options(command: Any) -> list[str]:
    rows = []
    for item in command.params:
        if getattr(item, "hidden", False) or item.name == "help":
            continue
        if item.param_type_name == "argument":
            shown = f"`{item.metavar or item.name.upper()}`"
        else:
            metavar = "" if item.is_flag else f" {item.metavar or item.type.name.upper()}"
            shown = f"`{', '.join(item.opts)}{metavar}`"
        default = item.default
        plain = default not in (None, False, "", [], ()) and not callable(default) and "Sentinel" not in repr(default)
        text = cell(getattr(item, "help", "") or "")
        rows.append(f"| {shown.replace('|', '¦')} | {text} | {f'`{default}`' if plain else ''} |")
    return rows


def page() -> str:
    """The whole page."""
    lines = [
        "# Commands and options", "",
        "What `dither COMMAND --help` prints, for every command. How commands behave in general (files, exit status, what "
        "fails before and after the charge) is on [the page about the command line](/command-line.md). In this table ¦ "
        "stands between alternatives.", "",
    ]  # fmt: skip
    for name, command in sorted(commands().items()):
        if command.hidden:
            continue
        arguments = [item.metavar or item.name.upper() for item in command.params if item.param_type_name == "argument"]
        usage = " ".join(["dither", name, *arguments, "[options]"])
        text = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
        lines += [
            f"## dither {name}",
            "",
            f"`{usage}`",
            "",
            text,
            "",
            "| option | meaning | default |",
            "|---|---|---|",
        ]
        lines += [*_options(command), ""]
    return "\n".join(lines)
