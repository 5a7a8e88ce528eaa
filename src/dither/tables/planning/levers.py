"""What a question whose answer is expected to be mostly noise could be instead: the cheapest changes, with numbers.

An answer is mostly noise where the total error that the profile forecasts for a group of typical size exceeds the
number itself. Everything here follows from the profile and the card: no data are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from dither.errors import DitherError
from dither.present.notes import Note
from dither.tables.options import ReleaseOptions
from dither.tables.planning.forecast import GroupErrors
from dither.tables.planning.plan import QuestionPlan
from dither.tables.query.relations import base_of
from dither.tables.query.tree import Column, Group, Query, Shape

Replan = Callable[[Query, ReleaseOptions], QuestionPlan]
"""Plans another question of the same table."""
_FACTORS = (1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.3, 8.0, 10.0, 12.5, 16.0, 20.0)
"""The multiples of epsilon that are tried."""
_USEFUL = 0.2
"""The share of an answer that its error is to be, where more epsilon is spent."""
_HALF = 0.5
"""The same where that cannot be had, or something else is asked."""
_MOST_COLUMNS = 4


def noise_notes(plan: QuestionPlan, query: Query, options: ReleaseOptions, replan: Replan) -> tuple[Note, ...]:
    """Return a note for each answer that the profile expects to be mostly noise, with what would reduce its error.

    ``query`` and ``options`` are the question that ``plan`` is of; ``replan`` plans other ones.
    """
    # of keys that are not public, the profile forecasts small groups that will not be shown, too
    parts = [part for part in plan.parts if part.selection is None]
    known = [(name, item) for part in parts for name, item in part.expected.items()]
    noisy = [(name, item) for name, item in known if item.is_mostly_noise]
    if not noisy:
        return ()
    name, item = max(noisy, key=lambda pair: pair[1].typical / max(pair[1].answer, 1e-300))
    about = {"name": name, "error": item.typical, "size": item.answer, "all": len(noisy) == len(known)}
    return (Note("mostly_noise", {**about, "levers": list(_levers(name, query, options, replan))}),)


def _levers(name: str, query: Query, options: ReleaseOptions, replan: Replan) -> Iterator[dict[str, Any]]:
    """Yield changes that would reduce the error of an aggregate (more epsilon, fewer groups, no condition), each
    with the error that the profile then expects."""

    def forecast(other: Query, epsilon: float | None = None) -> GroupErrors | None:
        """Return the expected errors of the aggregate in another question, or at another epsilon; None where it cannot
        be planned."""
        try:
            planned = replan(other, options if epsilon is None else replace(options, epsilon=epsilon))
        except DitherError:
            return None
        return next((part.expected[name] for part in planned.parts if name in part.expected), None)

    spent = options.epsilon if options.epsilon is not None else query.epsilon
    tried = [] if spent is None else [float(f"{spent * factor:.2g}") for factor in _FACTORS]
    best = forecast(query, tried[-1]) if tried else None
    for share in (share for share in (_USEFUL, _HALF) if best is not None and best.typical <= share * best.answer):
        for epsilon in tried:
            item = forecast(query, epsilon)
            if item is not None and 0 < item.typical <= share * item.answer:
                yield {"kind": "epsilon", "epsilon": epsilon, **_expected(item)}
                break
        break
    if query.post is not None or query.more:
        return
    for groups in _fewer_groups(query, replan, options):
        item = forecast(replace(query, groups=groups, shape=Shape()))
        if item is not None and 0 < item.typical <= _HALF * item.answer:
            yield {"kind": "groups", "columns": [group.name for group in groups], **_expected(item)}
            break
    if query.where is not None:
        item = forecast(replace(query, where=None, shape=Shape()))
        if item is not None and 0 < item.typical <= _HALF * item.answer:
            yield {"kind": "where", **_expected(item)}


def _expected(item: GroupErrors) -> dict[str, float]:
    """Return the fields of a lever: the expected ± in a typical group, and its share of the answer."""
    return {"error": item.typical, "share": item.typical / item.answer}


def _fewer_groups(query: Query, replan: Replan, options: ReleaseOptions) -> Iterator[tuple[Group, ...]]:
    """Yield groupings with fewer groups than a question's: without one of its columns, by another column with fewer
    public keys, and without groups."""
    if not query.groups:
        return
    for group in query.groups if len(query.groups) > 1 else ():
        yield tuple(other for other in query.groups if other is not group)
    asked = replan(query, options).parts[0]
    keys = asked.keys[0] if len(asked.keys) == 1 else ()
    most = 10**9 if keys is None else len(keys)
    columns = {} if query.source is not None else base_of(asked.card).columns
    fewer = {column: len(item.keys) for column, item in columns.items() if item.keys is not None}
    by_size = sorted((column for column in fewer if fewer[column] < most), key=lambda column: -fewer[column])
    for column in by_size[:_MOST_COLUMNS]:
        yield (Group(column, Column(column)),)
    yield ()
