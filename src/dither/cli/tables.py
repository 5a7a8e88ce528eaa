"""``dither init``, ``check``, ``query`` and ``explain``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import typer

from dither.cli import plots
from dither.errors import InvalidArgument, message
from dither.tables import cards, drafts, session


def init(source: str, unit: str | None, name: str | None, output: str | None, force: bool) -> None:
    """Write a draft card."""
    text = drafts.draft(source, unit, name)
    path = Path(output) if output is not None else Path(f"{_stem(source)}.toml")
    _check_ending("--output", str(path), ())
    if path.exists() and not force:
        raise InvalidArgument(message("card", "a new file", "one that exists", "pass --output, or --force"))
    path.write_text(text, encoding="utf-8")
    typer.echo(f"{path}: a draft, from the schema only. Fill in the public bounds and keys, then: dither check {path}")


def _stem(source: str) -> str:
    place, _, table = source.rpartition("::")
    return table.rpartition(".")[2] if place else (Path(source).stem.strip("*?.[]") or "table")


def check(path: str) -> None:
    """Say what is missing."""
    card = cards.read(path)
    gaps = cards.gaps(card)
    for gap in gaps:
        typer.echo(f"- {gap}")
    with session.open(path) as table:
        table.engine.check()
    typer.echo(
        f"{path}: {len(gaps)} gap(s); source and card agree" if gaps else f"{path}: complete; source and card agree"
    )


def options(
    epsilon: float | None,
    error: float | None,
    delta: float | None,
    max_groups: str | None,
    max_rows: int | None,
    noise: str,
    consistent: bool,
    other: bool = False,
) -> dict[str, Any]:
    """What was asked for, as a question takes it."""
    groups: object = max_groups
    if max_groups is not None and max_groups != "auto":
        if not max_groups.isdigit():
            raise InvalidArgument(message("--max-groups", "a whole number, or auto", "something else", "pass 3"))
        groups = int(max_groups)
    return {
        "epsilon": epsilon,
        "error": error,
        "delta": delta,
        "max_groups": groups,
        "max_rows": max_rows,
        "noise": noise,
        "consistent": consistent,
        "other": other,
    }


def explain(path: str, sql: str, how: dict[str, Any]) -> None:
    """Print the plan."""
    with session.open(path) as table:
        typer.echo(str(table.sql(sql).explain(**how)))


def query(
    path: str,
    sql: str,
    how: dict[str, Any],
    after: dict[str, Any],
    format: str | None,
    output: str | None,
    plot: str | None,
    report: str | None = None,
) -> None:
    """Print, write or plot the answer, or make a page of it."""
    if format not in (None, "json", "csv", "parquet"):
        raise InvalidArgument(message("--format", "json, csv or parquet", str(format), "choose one of these"))
    if format == "parquet" and output is None:
        raise InvalidArgument(message("--output", "a file for Parquet", "none", "pass --output answer.parquet"))
    _check_ending("--output", output, ("json", "csv", "parquet") if format is None else ())
    _check_ending("--plot", plot, ("png", "svg", "pdf", "jpg", "webp"))
    plots.check(plot)
    with session.open(path) as table:
        question = table.sql(sql)
        with _busy():
            answer = question.release(**how, **after)
        if report is not None:  # what was chosen privately is in the answer's notes, and no explanation knows it
            told = question.explain(**how) if question.plan(**how).automatic is None else None
            history = list(table.ledger.history(table.card.name))
    if output is not None:
        answer.write(output, format)
    elif format is not None:
        typer.echo(answer.to_json() if format == "json" else answer.to_csv(), nl=format == "json")
    else:
        typer.echo(str(answer))
    if plot is not None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(max(6.0, 0.3 * len(answer)), 4.0), layout="constrained")
        answer.plot(axes=figure.subplots())
        figure.savefig(plot)
    if report is not None:
        from dither.report import write_html

        write_html(report, answer, told, history, f"A private answer about {table.card.name}", question=sql)


def _check_ending(name: str, path: str | None, endings: tuple[str, ...]) -> None:
    """Refuse a file that could not be written before anything is charged for it."""
    if path is None:
        return
    if endings and Path(path).suffix.lower().lstrip(".") not in endings:
        raise InvalidArgument(
            message(name, f"a file that ends in .{', .'.join(endings)}", "another", f"pass {name} answer.{endings[0]}")
        )
    if not Path(path).absolute().parent.is_dir() or Path(path).is_dir():
        raise InvalidArgument(message(name, "a file in a folder that exists", "another", "make the folder first"))


def _busy() -> Any:
    """A sign of life on long questions, on a terminal only; how long one takes depends on the data it reads."""
    from contextlib import nullcontext

    if not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status("asking…")
