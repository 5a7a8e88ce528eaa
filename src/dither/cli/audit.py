"""``dither audit``: audits everything that is built in, or a function in a file of the user."""

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

from dither.audit import Audit, Row, audit, replay, search, standard_neighbors
from dither.audit.suite.counterexamples import COUNTEREXAMPLES
from dither.audit.suite.subjects import Subject, subjects
from dither.cli import printing
from dither.cli.files import OutputFiles
from dither.cli.options import AuditOptions
from dither.cli.printing import echo
from dither.errors import InvalidArgument
from dither.guarantees import ApproxDP, Guarantee, PureDP
from dither.neighbors import AddRemove, ReplaceOne
from dither.present import write_html
from dither.present.pages.audit import COLUMNS, cells

RELATIONS = {"add-remove": AddRemove, "replace-one": ReplaceOne}


def audit_subjects(options: AuditOptions) -> None:
    """Audit every built-in mechanism, or with ``options.broken`` the suite of mechanisms that are known to be broken.

    ``options.only`` restricts the audit to names that contain it. The command exits with 1 if a verdict is not the
    expected one: built-in mechanisms must not be refuted, broken ones must be.
    """
    wanted = (options.only or "").lower()
    offered = _known_broken() if options.broken else subjects()
    chosen = [subject for subject in offered if wanted in subject.name.lower()]
    if not chosen:
        raise InvalidArgument("--only", "part of a subject's name", repr(options.only), "leave it out to see all names")
    with _outputs(options) as outputs:
        with Progress(console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task("auditing", total=len(chosen))
            result = audit(
                chosen,
                seconds=options.seconds,
                confidence=options.confidence,
                on_row=lambda _: progress.advance(task),
            )
        _show(result)
        _write(result, outputs, options)
    unexpected = [row.name for row in result.rows if row.refuted != (row.kind == "broken")]
    if unexpected:
        echo("unexpected verdicts: " + "; ".join(unexpected))
        raise typer.Exit(1)


def audit_function(target: str, options: AuditOptions) -> None:
    """Audit one function of a file; exit with 1 if it is refuted.

    ``target`` is ``FILE.py:NAME``. The pairs of neighboring datasets come from the function named by ``options.pairs``,
    or are made within ``options.bounds``. The claim that is tested is ``options.epsilon`` with ``options.delta``;
    without an epsilon, the privacy loss is only measured. Beside the measurement, each pair is replayed with the noise
    held fixed, which finds what the function reads or releases besides its noise.
    """
    function, make_pairs = _load(target, options.pairs)
    if options.neighbors not in RELATIONS:
        raise InvalidArgument("--neighbors", " or ".join(RELATIONS), repr(options.neighbors), "choose one of them")
    if make_pairs is None and options.bounds is None:
        raise InvalidArgument(
            "--bounds",
            "the bounds of the records, to make neighbors within",
            "none",
            "pass --bounds 0 1, or --pairs with the name of a function that makes (name, x, neighbor)",
        )
    claim: Guarantee | None = None
    if options.epsilon is not None:
        claim = ApproxDP(options.epsilon, options.delta) if options.delta else PureDP(options.epsilon)
    if make_pairs is not None:
        triples = _called("--pairs", lambda: [tuple(item) for item in make_pairs()])
    else:
        assert options.bounds is not None
        triples = [tuple(item) for item in standard_neighbors(options.bounds, RELATIONS[options.neighbors])]
    with _outputs(options, target.rpartition(":")[0]) as outputs:
        result = search(
            function, triples, trials=options.trials, confidence=options.confidence, delta=options.delta, claim=claim,
            progress=True,
        )  # fmt: skip
        notes = {item.measured.note for item in result.tried if item.measured is not None}
        if "" not in notes:
            raise InvalidArgument(
                "target", "a function that returns something", "; ".join(sorted(notes)), "see that it runs"
            )
        echo(result)
        leaks = _replayed(function, triples, claim)
        for name, findings in leaks.items():
            echo(f"replay, {name}: {'; '.join(findings)}")
        row = _row(target, result, claim, leaks)
        _write(Audit((row,), result.confidence, row.seconds), outputs, options)
    if row.refuted:
        raise typer.Exit(1)


def _replayed(function: Callable[[Any], Any], triples: list[Any], claim: Guarantee | None) -> dict[str, list[str]]:
    """Return the findings of a replay for each pair of neighbors; pairs that release nothing by dither are left out.

    ``triples`` has (name, records, neighboring records); ``claim`` is the guarantee that the replay checks, None for
    none. The result maps the name of each pair that failed to its findings.
    """
    result = {}
    for name, x, neighbor in triples:
        replayed = replay(function, x, neighbor, claim=claim)
        if replayed.recorded and not replayed.passed:
            result[name] = list(replayed.findings)
    return result


def _row(target: str, result: Any, claim: Guarantee | None, leaks: dict[str, list[str]]) -> Row:
    """Return the row of an audit's table about a function of the user.

    ``target`` is the function's ``FILE.py:NAME``, ``result`` the outcome of the search for a distinguishing pair, and
    ``leaks`` the findings of the replay by name of pair. Without a ``claim``, the row shows the epsilon that was
    measured in its stead. The row is refuted by the measurement or by any finding.
    """
    numbers = [] if claim is None else [float(number) for number in claim.exact]
    lines = [f"{name}: {finding}" for name, findings in leaks.items() for finding in findings]
    measured = {**result.worst.to_dict(), "confidence": result.confidence, "pair": result.name}
    return Row(
        target,
        "function",
        "none" if claim is None else str(claim),
        numbers[0] if numbers else result.worst.epsilon,
        numbers[1] if len(numbers) > 1 else 0.0,
        None,
        measured,
        {"passed": not lines, "findings": lines, "releases": []},
        "REFUTED" if result.refuted or lines else "not refuted",
        0.0,
    )


def _show(result: Audit) -> None:
    """Print the table of an audit, its leaks, and how many claims were refuted."""
    printing.table(COLUMNS, [cells(row) for row in result.rows])
    for row in result.rows:
        for finding in (row.replayed or {}).get("findings", ()):
            echo(f"{row.name}: {finding}")
    refuted = sum(row.refuted for row in result.rows)
    echo(f"{len(result.rows)} subjects in {result.seconds:.0f} s; {refuted or 'none'} refuted")


def _outputs(options: AuditOptions, target: str | None = None) -> OutputFiles:
    """Return the files to write, checked before the audit starts; the audited file ``target`` is never overwritten."""
    outputs = OutputFiles(force=options.force, protected=[Path(target)] if target else [])
    try:
        outputs.add("--json", options.json)
        outputs.add("--html", options.html)
    except BaseException:
        outputs.__exit__()
        raise
    return outputs


def _write(result: Audit, outputs: OutputFiles, options: AuditOptions) -> None:
    """Write the JSON and HTML files that ``options`` ask for through ``outputs``, and print their names."""
    text = json.dumps(result.to_dict(), indent=1) + "\n"
    outputs.write("--json", lambda path: Path(path).write_text(text, encoding="utf-8"))
    outputs.write("--html", lambda path: write_html(path, result))
    for content, path in (("findings", options.json), ("page", options.html)):
        if path is not None:
            echo(f"{content} written to {path}")


def _known_broken() -> list[Subject]:
    """Return every counterexample, followed by its repaired version."""
    result = []
    for case in COUNTEREXAMPLES:
        broken = Subject(
            f"{case.name}, broken",
            "broken",
            case.claim,
            case.x,
            case.x_neighbor,
            case.broken,
            replayed=case.caught_by_replay,
        )
        result += [broken, replace(broken, name=f"{case.name}, repaired", kind="repaired", draw=case.repaired)]
    return result


def _load(target: str, pairs: str | None) -> tuple[Callable[[Any], Any], Callable[[], Any] | None]:
    """Load a function of a file, and the function of that file that returns pairs of neighbors.

    ``target`` is ``FILE.py:NAME``; ``pairs`` is the name of the second function, None if there is none, and then the
    second result is None as well. The file is executed. Refuse names that are missing, and functions with other
    required arguments than the data (or, for ``pairs``, with any).
    """
    file_name, _, name = target.rpartition(":")
    path = Path(file_name)
    if not file_name.endswith(".py") or not name.isidentifier() or not path.is_file():
        raise InvalidArgument(
            "target",
            "FILE.py:FUNCTION, where the file exists",
            repr(target),
            "write for example dither audit mine.py:release",
        )
    module_name = f"audited_{path.stem}"  # the stem alone may be the name of a module that others import
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # so that its definitions can be pickled
    sys.path.append(str(path.resolve().parent))  # appended, so that files beside it do not replace libraries
    execute = spec.loader.exec_module
    _called("target", lambda: execute(module))
    function, make_pairs = getattr(module, name, None), getattr(module, pairs, None) if pairs else None
    for option, given, candidate, parameters in (
        ("target", name, function, ("x",)),
        ("--pairs", pairs, make_pairs, ()),
    ):
        if given and not callable(candidate):
            raise InvalidArgument(option, "the name of a function in the file", repr(given), "check its spelling")
        if given and not _accepts(candidate, parameters):
            expected = "a function of the data and nothing else" if parameters else "a function without arguments"
            raise InvalidArgument(option, expected, repr(given), "give its other arguments defaults")
    assert function is not None
    return function, make_pairs


def _accepts(function: Any, arguments: tuple[Any, ...]) -> bool:
    """Return whether a function can be called with these arguments; True for built-ins without a signature."""
    try:
        inspect.signature(function).bind(*arguments)
    except ValueError:
        return True
    except TypeError:
        return False
    return True


def _called(option: str, function: Callable[[], Any]) -> Any:
    """Run user code; report an error by its class and line alone, since its message may contain data."""
    try:
        return function()
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
        lines += [error.lineno] if isinstance(error, SyntaxError) else []
        failure = type(error).__name__ + (f" in line {lines[-1]}" if lines else "")
        raise InvalidArgument(option, "code that runs", failure, "run it by itself to see why") from None
