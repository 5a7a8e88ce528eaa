"""From the noisy table to the answer: the columns, rows and order that the question wants, each number with its error.

Everything here is post-processing, and costs nothing. One SELECT over the noisy table is evaluated by
:mod:`dither.tables.query.evaluate`; other SQL is run by :mod:`dither.tables.query.postprocess`.

How far off a computed column of an answer may be: the same computation on noisy tables as they might have been.

*The construction.* A released number is ``y = a + e``, with the truth a and noise e of a known law. Draw the noise
anew, e_1 .. e_K: then ``y - e_k`` are K equally likely truths for every measure of every group, and each makes a table.
Columns that are computed from the table (arithmetic, windows, joins of answers) are computed from each, and the limits
are the values between which a share of at least the confidence of them lies, as in :mod:`dither.inference.measured`.
Numbers of one table belong together, so what they have in common is kept: a share of a total is as certain as it is.

It is post-processing. What is drawn does not depend on the data and is the same for the same plan, so that an answer
has the same error whenever it is computed.

Which ± holds of rows that were chosen by their noisy numbers, and of what noise moves to one side.

*Chosen rows.* The largest of many noisy numbers is large because of its noise, too: of the rows that ``ORDER BY n DESC
LIMIT 3`` shows, far fewer than 95 % are within the ± that holds of each group. With a confidence of ``1 - 5 % * k / m``
for k rows of m groups, at most 5 % of the shown rows are expected to be outside (Benjamini & Yekutieli 2005, for
independent noise and rules that choose by the order or by a limit).

*One side.* The law of a result is known from noisy tables as they might have been only as far as it is about linear in
the noise. The largest of noisy numbers is not: noise makes it larger, always, and by how much depends on the truth.

Noisy tables without the SQL around the aggregation, for when that SQL fails on them.

The noisy tables are paid for, and are private already. So they are the answer then, and none of them is lost: of
several, each has rows of its own.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from dither.guarantees import Guarantee
from dither.inference import NoiseLaw, level_table
from dither.present.notes import Note
from dither.tables.answer import Answer
from dither.tables.card.model import Type, column_types
from dither.tables.compile.context import StatementContext
from dither.tables.compile.statements import Measure, is_race
from dither.tables.execute.run import NoisyTable
from dither.tables.options import ReleaseOptions
from dither.tables.planning.estimate import corrected, make_agree
from dither.tables.planning.explain import null_value_notes, plan_notes
from dither.tables.planning.group_keys import bin_labels
from dither.tables.planning.plan import AggregationPlan, QuestionPlan, answer_type, without_engine
from dither.tables.query import evaluate, nodes
from dither.tables.query.relations import base_of, unique
from dither.tables.query.tree import SIMPLE, Aggregate, Column, Expression, PostProcessing, columns

if TYPE_CHECKING:
    from dither.tables.query.postprocess import PostProcessedTable, PublicRows


MOST_TABLES, FEWEST_TABLES = 1000, 200
"""How many tables are drawn, by the number of groups."""
MAX_ROWS = 200_000
"""How many rows all tables have together; for so many groups that the tables would be too few there are no errors."""
_VALUE_ONLY = 0.9999
"""A confidence at which an estimate has no sample of its noise: only its value is of interest here."""

Values = Sequence[Any]


def replicates(
    plans: Sequence[AggregationPlan], measures: Sequence[Mapping[Measure, NDArray[Any]]], groups: Sequence[int]
) -> list[Mapping[str, NDArray[np.float64]]] | None:
    """Return simulated noisy tables: for each plan, and each aggregate whose noise has a known law, an array of answers
    with a row for each simulation and a column for each group.

    A simulation subtracts freshly drawn noise from the noisy ``measures``. ``groups`` are the numbers of groups of the
    plans. None where there are too many groups, or a row for all groups that are not shown.
    """
    if any(plan.other for plan in plans) or not 0 < sum(groups) <= MAX_ROWS // FEWEST_TABLES:
        return None
    count = min(MOST_TABLES, MAX_ROWS // sum(groups))
    noises: list[dict[Measure, NDArray[Any]]] = []
    number = 0
    for plan, known, size in zip(plans, measures, groups, strict=True):
        noises.append({})
        for measure in known:
            levels = level_table(f"replicates {number}", count, size)
            noise = NoiseLaw.of(plan.measures[measure], integer=True).quantiles(levels.ravel())
            noises[-1][measure] = noise.reshape(levels.shape)
            number += 1
    if any(plan.reduced for plan in plans):  # noise is made to agree as the values were, which is linear
        make_agree(plans, noises)
    result: list[Mapping[str, NDArray[np.float64]]] = []
    for plan, known, noise_of, size in zip(plans, measures, noises, groups, strict=True):
        possible = {
            measure: (np.asarray(values, dtype=np.float64)[None, :] - noise_of[measure]).ravel()
            for measure, values in known.items()
        }
        tables = {}
        for name, parts in plan.measures_of.items():
            if is_race(parts):  # whose answer is a lower limit, and has no law
                continue
            answers, _, _ = corrected(plan, name, possible, _VALUE_ONLY)
            values = np.array([math.nan if item is None else item for item in answers]).reshape(count, size)
            if name in plan.corrections:
                values = values + _simulated_limit_errors(plan, name, known, count, size)
            tables[name] = values
        result.append(tables)
    return result


def _simulated_limit_errors(
    plan: AggregationPlan, name: str, known: Mapping[Measure, NDArray[Any]], count: int, size: int
) -> NDArray[np.float64]:
    """Return simulated errors of an aggregate by limits and bounds: ``count`` rows of ``size`` groups, normal with the
    standard deviation that the estimate gives. Half of the variance is common to all groups, as an error of the
    profile is; half is independent in each."""
    normal = NoiseLaw("normal", 1.0)
    levels = level_table(f"limits of {name}", count, size + 1)
    draws = normal.quantiles(levels.ravel()).reshape(levels.shape)
    errors = corrected(plan, name, known, CONFIDENCE)[2] or [0.0] * size
    deviation = np.array([error or 0.0 for error in errors]) / float(normal.error(1 - CONFIDENCE))
    result: NDArray[np.float64] = (draws[:, :1] + draws[:, 1:]) / math.sqrt(2) * deviation
    return result


def half_width(value: Any, sample: Values, confidence: float = 0.95) -> float | None:
    """Return the ± of a value: its larger distance to the two quantiles of a simulated sample that enclose this
    confidence.

    None where too many simulations have no value, and where the sample's median is far from the value, which shows that
    noise biases it, as it does a maximum.
    """
    if not _is_number(value):
        return None
    known = sorted(float(item) for item in sample if _is_number(item))
    expected = len(sample) * (1 - confidence) / 2
    # less one standard deviation of the number outside: the quantiles of a small sample are uncertain
    beyond = max(math.floor(expected - math.sqrt(expected)), 0) - (len(sample) - len(known))
    if beyond < 0 or not known:
        return None
    low, high = known[beyond], known[-1 - beyond]
    if abs(known[len(known) // 2] - float(value)) > (high - low) / 4:
        return None
    return max(float(value) - low, high - float(value), 0.0)


def errors_of_rows(
    names: Sequence[str],
    rows: Sequence[Values],
    keys: Sequence[int],
    samples: Sequence[Sequence[Values]],
    confidence: float = 0.95,
) -> dict[str, tuple[float | None, ...]]:
    """Return the errors of those columns of a result that vary over simulated results, by name.

    ``names`` and ``rows`` are those of the result, and ``samples`` the rows of each simulated result. Rows are matched
    by their values in the columns with the indices ``keys``; a row that a simulation lacks counts as a missing value
    there, and rows that share their keys have no errors.
    """

    def by_key(lines: Sequence[Values]) -> dict[tuple[Any, ...], Values | None]:
        """Return the rows by their keys; None for keys that several rows have."""
        result: dict[tuple[Any, ...], Values | None] = {}
        for line in lines:
            key = tuple(line[place] for place in keys)
            result[key] = None if key in result else line
        return result

    actual = by_key(rows)
    tables = [by_key(sample) for sample in samples]
    result: dict[str, tuple[float | None, ...]] = {}
    for place, name in enumerate(names):
        column: list[float | None] = []
        varies = False
        for row in rows:
            key = tuple(row[item] for item in keys)
            lines = [table.get(key) for table in tables] if actual[key] is not None else []
            sample = [None if line is None else line[place] for line in lines]
            varies = varies or any(_is_number(item) and item != row[place] for item in sample)
            column.append(half_width(row[place], sample, confidence) if sample else None)
        if varies and place not in keys:
            result[name] = tuple(column)
    return result


def evaluated(
    compute: Callable[[Mapping[str, Any]], Any], lines: Sequence[Mapping[str, Any]], tables: Mapping[str, NDArray[Any]]
) -> list[list[Any]]:
    """Return a computed column in every simulated table: for each line, its values over the simulations.

    ``compute`` maps a line to the value; ``tables`` has the simulated values of each aggregate, with a column for each
    line.
    """
    result = []
    for place, line in enumerate(lines):
        samples = zip(*(values[:, place].tolist() for values in tables.values()), strict=True)
        result.append([compute({**line, **dict(zip(tables, sample, strict=True))}) for sample in samples])
    return result


def _is_number(value: Any) -> bool:
    """Return whether a value is a finite number other than True and False."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


CONFIDENCE = 0.95
"""The confidence of every ±."""
_ONE_SIDED_SQL = (
    exp.Max, exp.Min, exp.ArgMax, exp.ArgMin, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop,
    exp.Median, exp.Quantile, exp.PercentileCont, exp.PercentileDisc, exp.CountIf, exp.Filter, exp.RowNumber, exp.Rank,
    exp.DenseRank,
)  # fmt: skip


def chosen_confidence(shown: int, groups: int) -> float:
    """Return the confidence 1 - 0.05 k / m for the ± of each of k = ``shown`` rows that were chosen by their noisy
    numbers among m = ``groups``, so that at most 5 % of the shown rows are expected outside (Benjamini & Yekutieli
    2005). Where all are shown, it is 0.95.

    >>> chosen_confidence(3, 366) > 0.9995, chosen_confidence(5, 5)
    (True, 0.95)
    """
    return 1 - (1 - CONFIDENCE) * min(shown, groups) / groups if 0 < shown < groups else CONFIDENCE


def chooses_by_noise(sql: str, groups: Collection[str]) -> bool:
    """Return whether SQL on noisy tables keeps rows by noisy numbers (in WHERE, HAVING, QUALIFY, or ORDER BY with
    LIMIT), rather than by the keys in ``groups`` alone."""
    tree, known = nodes.parsed(sql), {name.casefold() for name in groups}
    conditions: list[exp.Expr] = list(tree.find_all(exp.Where, exp.Having, exp.Qualify))
    conditions += [
        node.args["order"] for node in tree.find_all(exp.Select) if node.args.get("limit") and node.args.get("order")
    ]
    return any(column.name.casefold() not in known for node in conditions for column in node.find_all(exp.Column))


def pushed_to_one_side(sql: str, public: Collection[str] = ()) -> bool:
    """Return whether SQL on noisy tables has a function that noise biases, such as MAX or STDDEV; in a SELECT from
    ``public`` tables alone it is not biased."""
    exact = {name.casefold() for name in public}

    def reads_noise(node: exp.Expr) -> bool:
        """Return whether the SELECT around a function reads anything but public tables."""
        select = node.find_ancestor(exp.Select)
        read = () if select is None else tuple(select.find_all(exp.Table))
        return not read or any(table.name.casefold() not in exact for table in read)

    return any(reads_noise(node) for node in nodes.parsed(sql).find_all(*_ONE_SIDED_SQL))


_NUMBER = "aggregation"


class NoisyColumns(NamedTuple):
    """A noisy table: its columns with their types, its rows, and the errors and probabilities of some columns."""

    types: Mapping[str, Type]
    rows: Sequence[tuple[Any, ...]]
    errors: Mapping[str, Sequence[float | None]]
    probabilities: Mapping[str, Sequence[float | None]]


class Unprocessed(NamedTuple):
    """Several noisy tables as one, with the note that explains it."""

    names: tuple[str, ...]
    types: tuple[Type, ...]
    rows: tuple[tuple[Any, ...], ...]
    errors: dict[str, tuple[float | None, ...]]
    probabilities: dict[str, tuple[float | None, ...]]
    note: Note


def unprocessed(tables: Sequence[NoisyColumns]) -> Unprocessed:
    """Return noisy tables below one another as one table.

    Columns with equal name and type become one column, which is NULL in the rows of tables without it. If there are
    several tables, a first column has the number of the table.
    """
    several = len(tables) > 1
    columns = list(dict.fromkeys(column for table in tables for column in table.types.items()))
    taken = {_NUMBER} if several else set()
    names: dict[tuple[str, Type], str] = {}
    for name, kind in columns:
        names[name, kind] = unique(name, taken, normalize=str)
        taken.add(names[name, kind])
    rows: list[tuple[Any, ...]] = []
    for number, table in enumerate(tables, 1):
        places = {column: place for place, column in enumerate(table.types.items())}
        for row in table.rows:
            values = [row[places[column]] if column in places else None for column in columns]
            rows.append((number, *values) if several else tuple(values))
    kinds: list[Type] = [kind for _, kind in columns]
    return Unprocessed(
        ((_NUMBER,) if several else ()) + tuple(names.values()),
        ("integer", *kinds) if several else tuple(kinds),
        tuple(rows),
        _stacked(names, tables, [table.errors for table in tables]),
        _stacked(names, tables, [table.probabilities for table in tables]),
        Note("failed_sql", {"column": _NUMBER if several else None}),
    )


def _stacked(
    names: Mapping[tuple[str, Type], str],
    tables: Sequence[NoisyColumns],
    known: Sequence[Mapping[str, Sequence[float | None]]],
) -> dict[str, tuple[float | None, ...]]:
    """Return what is ``known`` of the columns of several tables (errors or probabilities) below one another, by the
    column's name in the stacked table; None in the rows of tables without it."""
    result: dict[str, tuple[float | None, ...]] = {}
    for (name, kind), shown in names.items():
        of_tables = [
            facts[name] if name in facts and table.types.get(name) == kind else None
            for table, facts in zip(tables, known, strict=True)
        ]
        if any(values is not None for values in of_tables):
            every: list[float | None] = []
            for table, values in zip(tables, of_tables, strict=True):
                every += [None] * len(table.rows) if values is None else list(values)
            result[shown] = tuple(every)
    return result


_CHOSEN_BY_NOISE = Note("chosen_by_noise")
_ONE_SIDED = Note("one_sided")


@dataclass(frozen=True)
class NoisyAggregation:
    """The noisy table of one private aggregation, with its plan and the context of its statements."""

    plan: AggregationPlan
    context: StatementContext
    noisy: NoisyTable

    @property
    def groups(self) -> list[str]:
        """The names of the grouping columns."""
        return [group.name for group in self.plan.query.groups]

    def rows(self, answers: Mapping[str, list[Any]], options: ReleaseOptions) -> list[tuple[Any, ...]]:
        """Return the rows of the noisy table: the keys, then the answers, rounded or made nonnegative as the options
        say."""
        adjusted = [
            [_adjusted(value, aggregate, options) for value in answers[name]]
            for name, aggregate in self.plan.query.aggregates.items()
        ]
        return [(*key, *(values[i] for values in adjusted)) for i, key in enumerate(self.noisy.keys)]


def rehearse_sql(plan: QuestionPlan, contexts: Sequence[StatementContext]) -> PostProcessedTable | None:
    """Return the columns that the SQL around the aggregations makes of made-up noisy tables, so that DuckDB refuses it
    before the charge; None where a question has no such SQL."""
    if plan.query.post is None:
        return None
    from dither.tables.query import postprocess  # it loads DuckDB, which other questions may not need

    parts = list(zip(plan.parts, contexts, strict=True))
    post = plan.query.post
    single = [name for name, (part, _) in zip(post.tables, parts, strict=True) if not part.query.groups]
    columns = [_types(part, context) for part, context in parts]
    public = column_types(base_of(plan.parts[0].card), post.public) if plan.parts else {}
    return postprocess.rehearse(post, *columns, one_row=single, public=public)


def output_columns(plan: QuestionPlan) -> PostProcessedTable | None:
    """Return the columns of a question's answer that SQL around the aggregations makes, without an engine; None where
    a question has no such SQL."""
    return rehearse_sql(plan, [without_engine(part) for part in plan.parts])


def shape_answer(
    released: Sequence[NoisyAggregation],
    cost: Guarantee,
    options: ReleaseOptions,
    notes: list[Note],
    public: PublicRows | None = None,
) -> Answer:
    """Return the answer made from the noisy tables: by the question's SQL, which may also read the ``public`` tables,
    or its HAVING, ORDER BY and LIMIT."""
    nulls = [note for item in released for note in null_value_notes(item.plan, item.noisy.without_values)]
    every_note = list(dict.fromkeys([*(note for item in released for note in _notes(item.plan)), *nulls, *notes]))
    post = released[0].plan.query.post
    if post is not None:
        return _post_processed(post, released, cost, options, every_note, public)
    plan, noisy, groups = released[0].plan, released[0].noisy, released[0].groups
    names = [*groups, *plan.query.aggregates, "\0place"]
    rows = released[0].rows(noisy.answers, options)
    lines = [dict(zip(names, (*row, place), strict=True)) for place, row in enumerate(rows)]
    shape = plan.query.shape
    shown = shape.columns or {name: Column(name) for name in names[:-1]} | bin_labels(plan.query.groups)
    kept = evaluate.apply(replace(shape, columns={**shown, "\0place": Column("\0place")}), names, lines)
    types = _types(plan, released[0].context, options.integer)
    ordered = [item.value for item in shape.order] if shape.limit is not None else []
    by_noise = any(_uses(item, plan.query.aggregates) for item in (shape.having, *ordered) if item is not None)
    confidence = chosen_confidence(len(kept), len(lines)) if by_noise else CONFIDENCE
    every_note += [_CHOSEN_BY_NOISE] if confidence > CONFIDENCE else []

    def of_kept_rows(known: Mapping[str, Sequence[float | None]]) -> dict[str, tuple[float | None, ...]]:
        """Return what is ``known`` of the noisy table's columns for the kept rows and the shown columns."""
        return {
            name: tuple(known[column.name][line["\0place"]] for line in kept)
            for name, column in shown.items()
            if isinstance(column, Column) and column.name in known
        }

    errors = of_kept_rows(_errors_at(released[0], confidence))
    errors |= _simulated_errors(plan, noisy, options, lines, kept, shown, confidence)
    errors = {name: errors[name] for name in shown if name in errors}
    lines_shown = tuple(tuple(line[name] for name in shown) for line in kept)
    by_law = {
        name for name, item in plan.query.aggregates.items() if item.kind not in SIMPLE and types[name] == "number"
    }
    kinds = tuple(
        _column_type(
            types.get(column.name) if isinstance(column, Column) and column.name not in by_law else None,
            [row[j] for row in lines_shown],
        )
        for j, column in enumerate(shown.values())
    )
    return Answer(
        tuple(shown),
        kinds,
        lines_shown,
        errors,
        cost,
        tuple(every_note),
        interval=options.interval,
        probabilities=of_kept_rows(noisy.probabilities),
        limit_errors=of_kept_rows(noisy.limit_errors),
    )


def _simulated_errors(
    plan: AggregationPlan,
    noisy: NoisyTable,
    options: ReleaseOptions,
    lines: list[dict[str, Any]],
    kept: list[dict[str, Any]],
    shown: Mapping[str, Expression],
    confidence: float,
) -> dict[str, tuple[float | None, ...]]:
    """Return the errors of columns computed from aggregates, such as a ratio: the spread of the expression over
    simulated noisy tables.

    ``lines`` are the rows of the noisy table and ``kept`` those that are shown, each with its index in ``lines`` under
    "\\0place". The result has an error for each kept row, None where the simulation gives no valid one. A column is
    missing if it is text or a truth value, or uses an aggregate whose noise has no known law, such as a quantile; all
    are missing where there are too many groups, and for intervals of the population, as only noise is simulated and
    not the drawing of the sample.
    """
    computed = {
        name: item
        for name, item in shown.items()
        if not isinstance(item, Column) and _uses(item, plan.query.aggregates)
    }
    if plan.population or not any(_uses(item, plan.measures_of) for item in computed.values()):
        return {}
    drawn = replicates([plan], [noisy.measures], [len(noisy.keys)])
    if drawn is None:
        return {}
    (tables,) = drawn
    adjusted = {}
    for name, values in tables.items():
        aggregate = plan.query.aggregates[name]
        adjusted[name] = np.array([[_adjusted(value, aggregate, options) for value in row] for row in values.tolist()])
    result: dict[str, tuple[float | None, ...]] = {}
    places = [line["\0place"] for line in kept]
    for name, item in computed.items():
        used = {column.name for column in columns(item)} & set(plan.query.aggregates)
        if not used <= set(tables) or any(isinstance(line[name], (str, bool)) for line in kept):
            continue
        chosen = {column: adjusted[column][:, places] for column in used}
        samples = evaluated(functools.partial(evaluate.evaluate, item), [lines[place] for place in places], chosen)
        result[name] = tuple(
            half_width(line[name], sample, confidence) for line, sample in zip(kept, samples, strict=True)
        )
    return result


def _errors_at(item: NoisyAggregation, confidence: float) -> Mapping[str, Sequence[float | None]]:
    """Return the errors of a noisy table's columns at a confidence; those of quantiles and extremes, which are computed
    at 95 % only, are unchanged."""
    if confidence == CONFIDENCE:
        return item.noisy.errors
    result = dict(item.noisy.errors)
    for name in item.plan.measures_of:
        _, errors, _ = corrected(item.plan, name, item.noisy.measures, confidence)
        known = zip(item.noisy.errors[name], errors, strict=True)
        result[name] = [None if before is None else error for before, error in known]
    return result


def _uses(item: Expression, names: Mapping[str, object]) -> bool:
    """Return whether an expression refers to a column with one of these names."""
    return any(column.name in names for column in columns(item))


def _post_processed(
    post: PostProcessing,
    released: Sequence[NoisyAggregation],
    cost: Guarantee,
    options: ReleaseOptions,
    notes: list[Note],
    public: PublicRows | None,
) -> Answer:
    """Return the answer that the SQL ``post`` computes from the noisy tables; if it fails on them, these tables below
    one another."""
    from dither.tables.query import postprocess

    result = postprocess.run_on_any_numbers(
        post,
        [_types(item.plan, item.context) for item in released],
        [len(item.groups) for item in released],
        [item.rows(item.noisy.answers, options) for item in released],
        public,
    )
    if result is None:
        return _unprocessed_answer(released, cost, options, notes)
    groups = {name for item in released for name in item.groups}
    rows = sum(len(item.noisy.keys) for item in released)
    confidence = chosen_confidence(len(result.rows), rows) if chooses_by_noise(post.sql, groups) else CONFIDENCE
    one_sided = pushed_to_one_side(post.sql, post.public)
    errors = _errors_after(post, released, options, result, confidence, one_sided, public)
    notes = [*notes, *([_CHOSEN_BY_NOISE] if confidence > CONFIDENCE else []), *([_ONE_SIDED] if one_sided else [])]
    if errors is None:
        notes = [*notes, Note("error_unknown")]
    return Answer(
        result.names,
        result.types,
        tuple(result.rows),
        errors or {},
        cost,
        tuple(notes),
        interval=options.interval,
        probabilities=_passed_on(released, result, [item.noisy.probabilities for item in released], min),
        limit_errors=_passed_on(released, result, [item.noisy.limit_errors for item in released], max),
    )


def _unprocessed_answer(
    released: Sequence[NoisyAggregation], cost: Guarantee, options: ReleaseOptions, notes: list[Note]
) -> Answer:
    """Return the noisy tables below one another, as the answer to a question whose SQL failed after the charge."""
    tables = []
    for item in released:
        rows = item.rows(item.noisy.answers, options)
        declared = _types(item.plan, item.context, options.integer)
        types = {
            name: _column_type(kind, [row[place] for row in rows])
            for place, (name, kind) in enumerate(declared.items())
        }
        tables.append(NoisyColumns(types, rows, item.noisy.errors, item.noisy.probabilities))
    result = unprocessed(tables)
    return Answer(
        result.names,
        result.types,
        result.rows,
        result.errors,
        cost,
        (result.note, *notes),
        interval=options.interval,
        probabilities=result.probabilities,
    )


def _errors_after(
    post: PostProcessing,
    released: Sequence[NoisyAggregation],
    options: ReleaseOptions,
    result: PostProcessedTable,
    confidence: float,
    one_sided: bool,
    public: PublicRows | None,
) -> dict[str, tuple[float | None, ...]] | None:
    """Return the errors of the columns of a SQL result by name; None where none is known.

    Columns that the SQL passes on unchanged keep their errors. Those of computed columns come from running the SQL on
    simulated noisy tables. There are none for columns that depend on an aggregate whose noise has no known law (a
    quantile, a mode), for SQL with functions that noise biases (``one_sided``), and where the SQL is too slow.
    """
    from dither.tables.query import postprocess

    types = [_types(item.plan, item.context) for item in released]
    groups = {name: kinds[name] for item, kinds in zip(released, types, strict=True) for name in item.groups}
    exact = {*groups.items(), *(column for kinds, _ in (public or {}).values() for column in kinds.items())}
    keys = [
        place
        for place, (name, kind) in enumerate(zip(result.names, result.types, strict=True))
        if kind not in ("integer", "number") or (name, kind) in exact
    ]
    passed_on = _passed_on(released, result, [_errors_at(item, confidence) for item in released], max)
    if one_sided or any(item.plan.population for item in released):
        return passed_on
    numeric = {name for name, kind in zip(result.names, result.types, strict=True) if kind in ("integer", "number")}
    if numeric <= {*passed_on, *(result.names[place] for place in keys)}:
        return passed_on
    drawn = replicates(
        [item.plan for item in released],
        [item.noisy.measures for item in released],
        [len(item.noisy.keys) for item in released],
    )
    if drawn is None:
        return passed_on or None

    def tables(k: int | None, without_law: bool = True) -> list[list[tuple[Any, ...]]]:
        """Return the rows of the noisy tables in simulation ``k`` (None: as released); with ``without_law`` False,
        aggregates whose noise has no known law are NULL."""
        every = []
        for item, possible in zip(released, drawn, strict=True):
            answers = dict(item.noisy.answers)
            for name in answers:
                if name in possible and k is not None:
                    drawn_here = zip(answers[name], possible[name][k].tolist(), strict=True)
                    answers[name] = [None if known is None else value for known, value in drawn_here]
                elif name not in possible and not without_law:
                    answers[name] = [None] * len(answers[name])
            every.append(item.rows(answers, options))
        return every

    count = next((len(values) for possible in drawn for values in possible.values()), 0)
    try:
        with postprocess.IsolatedDatabase(post, *types, public=public) as database:
            same, without, *samples = database.run_each([tables(None), tables(None, False), *map(tables, range(count))])
    except Exception:  # it takes too long, or fails on a simulated table
        return passed_on or None
    if _fingerprint(same) != _fingerprint(result.rows):
        return passed_on or None
    steady = [place for place in keys if result.names[place] in groups or _is_steady(place, result.rows, samples)]
    computed_errors = errors_of_rows(result.names, result.rows, steady, samples, confidence)
    for place, name in enumerate(result.names):
        if name in computed_errors and _fingerprint(without, place, *steady) != _fingerprint(
            result.rows, place, *steady
        ):
            computed_errors[name] = (None,) * len(result.rows)
    return {name: (computed_errors | passed_on)[name] for name in result.names if name in computed_errors | passed_on}


def _is_steady(place: int, rows: Sequence[Sequence[Any]], samples: Sequence[Sequence[Sequence[Any]]]) -> bool:
    """Return whether column ``place`` has no values in the samples that the answer lacks, so that it can identify
    rows."""
    known = {row[place] for row in rows}
    return all(row[place] in known for sample in samples for row in sample)


def _fingerprint(rows: Sequence[Sequence[Any]], *places: int) -> Counter[tuple[str, ...]]:
    """Return the rows as a multiset of texts, with floats to nine digits, to compare tables regardless of order;
    restricted to the columns ``places`` if there are any."""
    kept = [[row[place] for place in places] if places else row for row in rows]
    return Counter(tuple(f"{item:.9g}" if isinstance(item, float) else repr(item) for item in row) for row in kept)


def _passed_on(
    released: Sequence[NoisyAggregation],
    result: PostProcessedTable,
    known_of: Sequence[Mapping[str, Sequence[float | None]]],
    worst: Callable[[list[float]], float],
) -> dict[str, tuple[float | None, ...]]:
    """Return what is ``known_of`` the noisy tables (errors or probabilities) for those columns of a SQL result that the
    SQL passed on unchanged: in each row they equal the answer of the group whose keys are in the row. Where several
    tables have that answer, ``worst`` (max or min) decides."""
    shown = set(result.names)
    parts = [(item, known) for item, known in zip(released, known_of, strict=True) if set(item.groups) <= shown]
    places_of = [{key: place for place, key in enumerate(item.noisy.keys)} for item, _ in parts]
    columns = [[result.names.index(name) for name in item.groups] for item, _ in parts]
    every: dict[str, tuple[float | None, ...]] = {}
    for column, name in enumerate(result.names):
        of_column: list[float | None] = []
        for row in result.rows:
            possible: list[float | None] = []
            for (item, known), place_of, key_columns in zip(parts, places_of, columns, strict=True):
                place = place_of.get(tuple(row[key] for key in key_columns))
                if name in known and place is not None and item.noisy.answers[name][place] == row[column]:
                    possible.append(known[name][place])
            if not possible:
                break
            of_column.append(None if None in possible else worst([value or 0.0 for value in possible]))
        if len(of_column) == len(result.rows) and any(name in known for _, known in parts):
            every[name] = tuple(of_column)
    return every


def _types(plan: AggregationPlan, context: StatementContext, integer: bool = False) -> dict[str, Type]:
    """Return the types of a noisy table's columns by name, from the plan alone, so that they do not depend on the
    groups shown; with ``integer`` counts and sums are integers."""
    types = {group.name: typed.type for group, typed in zip(plan.query.groups, context.grouped, strict=True)}
    for name, aggregate in plan.query.aggregates.items():
        types[name] = "integer" if integer and aggregate.kind in SIMPLE else answer_type(plan, aggregate)
    return types


def _adjusted(value: Any, aggregate: Aggregate, options: ReleaseOptions) -> Any:
    """Return a count or sum with negative values set to 0, and rounded, as the options say; other values unchanged."""
    if isinstance(value, list):
        return [_adjusted(item, aggregate, options) for item in value]
    if not isinstance(value, (int, float)) or aggregate.kind not in SIMPLE:
        return value
    result = max(value, 0) if options.nonnegative else value
    return evaluate.representable(round(result)) if options.integer else result


def _column_type(declared: Type | None, values: list[Any]) -> Type:
    """Return the type of a column's values: the declared one, but "number" where an integer exceeded 64 bits and became
    a float; for None the common type of the values."""
    if declared is None:
        return _common_type(values)
    return "number" if declared == "integer" and any(isinstance(value, float) for value in values) else declared


def _common_type(values: list[Any]) -> Type:
    """Return the common type of values other than NULL: "number" for integers and floats together, "text" for other
    mixtures."""
    kinds: dict[type, Type] = {
        bool: "boolean", int: "integer", list: "integer", float: "number", date: "date", datetime: "timestamp"
    }  # fmt: skip
    result = {kinds.get(type(value), "text") for value in values if value is not None}
    return result.pop() if len(result) == 1 else "number" if result <= {"integer", "number"} else "text"


def _notes(plan: AggregationPlan) -> tuple[Note, ...]:
    """Return the notes on one aggregation: its limits, the threshold of small groups, a row for other groups, and that
    levels were made consistent."""
    result = [*plan_notes(plan)]
    if plan.selection is not None:
        result.append(Note("small_groups", {"people": plan.selection.threshold}))
        if plan.other:
            result.append(Note("other_groups"))
    if plan.reduced and plan.query.rolled_up:
        result.append(Note("levels"))
    return tuple(result)
