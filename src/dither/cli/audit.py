"""``dither audit``: everything that is built in, or a function of yours, put to the test."""

from __future__ import annotations

import importlib.util
import inspect
import json
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import Progress

from dither.audit import Audit, Row, audit, catalogue, replay, search
from dither.audit.suite.counterexamples import CASES
from dither.audit.suite.subjects import Subject, subjects
from dither.cli import printing
from dither.cli.files import Outputs
from dither.cli.printing import echo
from dither.errors import InvalidArgument, message
from dither.guarantees import ApproxDP, Guarantee, PureDP
from dither.neighbors import AddRemove, ReplaceOne
from dither.report.audit import COLUMNS, cells, write_audit

RELATIONS = {"add-remove": AddRemove, "replace-one": ReplaceOne}


def run(
    only: str | None,
    broken: bool,
    seconds: float,
    confidence: float,
    out: str | None,
    page: str | None,
    force: bool = False,
) -> None:
    """Audit what is built in, or what is known to be broken; a status of 1 if anything is not as it should be."""
    chosen = [subject for subject in (_known_broken() if broken else subjects()) if _wanted(subject, only)]
    if not chosen:
        raise InvalidArgument(message("--only", "part of a subject's name", repr(only), "run dither audit to see them"))
    with _outputs(out, page, force) as outputs:
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("auditing", total=len(chosen))
            result = audit(chosen, seconds=seconds, confidence=confidence, tell=lambda _: progress.advance(task))
        _show(result)
        _write(result, outputs, out, page)
    wrong = [row.name for row in result.rows if row.refuted != (row.kind == "broken")]
    if wrong:
        echo("not as it should be: " + "; ".join(wrong))
        raise typer.Exit(1)


def own(
    target: str,
    *,
    epsilon: float | None,
    delta: float,
    bounds: tuple[float, float] | None,
    neighbors: str,
    pairs: str | None,
    trials: int,
    confidence: float,
    out: str | None,
    page: str | None,
    force: bool = False,
) -> None:
    """Audit one function of a file."""
    function, plan = _load(target, pairs)
    if neighbors not in RELATIONS:
        raise InvalidArgument(message("--neighbors", " or ".join(RELATIONS), repr(neighbors), "choose one of them"))
    if plan is None and bounds is None:
        raise InvalidArgument(
            message(
                "--bounds",
                "the bounds of the records, to make neighbours within",
                "none",
                "pass --bounds 0 1, or --pairs with the name of a function that makes (name, x, neighbour)",
            )
        )
    claim: Guarantee | None = None
    if epsilon is not None:
        claim = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
    if plan is not None:
        triples = _called("--pairs", lambda: [tuple(item) for item in plan()])
    else:
        triples = [tuple(item) for item in catalogue(bounds, RELATIONS[neighbors])]  # type: ignore[arg-type]
    with _outputs(out, page, force, target.rpartition(":")[0]) as outputs:
        result = search(
            function, triples, trials=trials, confidence=confidence, delta=delta, claim=claim, progress=True
        )
        notes = {item.measured.note for item in result.tried if item.measured is not None}
        if "" not in notes:
            raise InvalidArgument(
                message("target", "a function that returns something", "; ".join(sorted(notes)), "see that it runs")
            )
        echo(result)
        leaks = _replayed(function, triples, claim)
        for name, findings in leaks.items():
            echo(f"replay, {name}: {'; '.join(findings)}")
        row = _row(target, result, claim, leaks)
        _write(Audit((row,), result.confidence, row.seconds), outputs, out, page)
    if row.refuted:
        raise typer.Exit(1)


def _replayed(function: Callable[[Any], Any], triples: list[Any], claim: Guarantee | None) -> dict[str, list[str]]:
    """What goes round the mechanisms; of code that uses none of ours nothing can be said this way."""
    result = {}
    for name, x, neighbor in triples:
        seen = replay(function, x, neighbor, claim=claim)
        if seen.recorded and not seen.passed:
            result[name] = list(seen.findings)
    return result


def _row(target: str, result: Any, claim: Guarantee | None, leaks: dict[str, list[str]]) -> Row:
    numbers = [] if claim is None else [float(number) for number in claim.exact]
    findings = [f"{name}: {finding}" for name, told in leaks.items() for finding in told]
    measured = {**result.worst.to_dict(), "confidence": result.confidence, "pair": result.name}
    return Row(
        target,
        "function",
        "none" if claim is None else str(claim),
        numbers[0] if numbers else result.worst.epsilon,
        numbers[1] if len(numbers) > 1 else 0.0,
        None,
        measured,
        {"passed": not findings, "findings": findings, "releases": []},
        "REFUTED" if result.refuted or findings else "not refuted",
        0.0,
    )


def _show(result: Audit) -> None:
    printing.table(COLUMNS, [cells(row) for row in result.rows])
    for row in result.rows:
        for finding in (row.replayed or {}).get("findings", ()):
            echo(f"{row.name}: {finding}")
    refuted = sum(row.refuted for row in result.rows)
    echo(f"{len(result.rows)} subjects in {result.seconds:.0f} s; {refuted or 'none'} refuted")


def _outputs(out: str | None, page: str | None, force: bool, target: str | None = None) -> Outputs:
    """The files to write, checked before anything takes its time."""
    outputs = Outputs(force=force, protected=[Path(target)] if target else [])
    try:
        outputs.add("--json", out)
        outputs.add("--html", page)
    except BaseException:
        outputs.__exit__()
        raise
    return outputs


def _write(result: Audit, outputs: Outputs, out: str | None, page: str | None) -> None:
    text = json.dumps(result.to_dict(), indent=1) + "\n"
    outputs.write("--json", lambda room: Path(room).write_text(text, encoding="utf-8"))
    outputs.write("--html", lambda room: write_audit(room, result))
    for what, path in (("findings", out), ("page", page)):
        if path is not None:
            echo(f"{what} written to {path}")


def _wanted(subject: Subject, only: str | None) -> bool:
    return only is None or only.lower() in subject.name.lower()


def _known_broken() -> list[Subject]:
    """Each broken mechanism, then its repair."""
    result = []
    for case in CASES:
        named = f"{case.name}, broken"
        bad = Subject(named, "broken", case.claim, case.one, case.other, case.broken, replayed=case.glue)
        result += [bad, replace(bad, name=f"{case.name}, repaired", kind="repaired", draw=case.repaired)]
    return result


def _load(target: str, pairs: str | None) -> tuple[Callable[[Any], Any], Callable[[], Any] | None]:
    """The function named FILE.py:name, and the one that makes its pairs."""
    place, _, name = target.rpartition(":")
    path = Path(place)
    if not place.endswith(".py") or not name.isidentifier() or not path.is_file():
        raise InvalidArgument(
            message("target", "FILE.py:function, a file that is there", repr(target), "dither audit mine.py:release")
        )
    own = f"audited_{path.stem}"  # not its own name, which may be that of a module that others import
    spec = importlib.util.spec_from_file_location(own, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[own] = module  # so that what it defines can be pickled
    sys.path.append(str(path.resolve().parent))  # what lies beside it, but nothing in the place of a library
    run_it = spec.loader.exec_module
    _called("target", lambda: run_it(module))
    function, plan = getattr(module, name, None), getattr(module, pairs, None) if pairs else None
    for which, given, thing, told in (("target", name, function, ("x",)), ("--pairs", pairs, plan, ())):
        if given and not callable(thing):
            raise InvalidArgument(
                message(which, "the name of a function in the file", repr(given), "check its spelling")
            )
        if given and not _takes(thing, told):
            wanted = "a function of the data and nothing else" if told else "a function without arguments"
            raise InvalidArgument(message(which, wanted, repr(given), "give its other arguments defaults"))
    assert function is not None
    return function, plan


def _takes(function: Any, arguments: tuple[Any, ...]) -> bool:
    """Whether it can be called so; of some that are not written in Python nobody knows."""
    try:
        inspect.signature(function).bind(*arguments)
    except ValueError:
        return True
    except TypeError:
        return False
    return True


def _called(which: str, function: Callable[[], Any]) -> Any:
    """What code of others returns; how it failed is told without its words, which may be of the data."""
    try:
        return function()
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
        lines += [error.lineno] if isinstance(error, SyntaxError) else []
        told = type(error).__name__ + (f" in line {lines[-1]}" if lines else "")
        raise InvalidArgument(message(which, "code that runs", told, "run it by itself to see why")) from None
