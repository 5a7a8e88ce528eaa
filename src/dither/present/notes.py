"""Notes beside an answer, as values, and the only module that turns them into sentences.

A note is a kind with values. Code that depends on a note reads these and never the sentence; ledgers and servers store
and send them. ``str(note)`` is the sentence; :data:`SENTENCES` has one for each kind.

>>> note = Note("rows_without_person", {"column": "who"})
>>> print(note)
Rows with NULL `who` are excluded.
>>> Note.restored(note.stored()) == note
True
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from dither.errors import InvalidArgument
from dither.guarantees import Guarantee, restored
from dither.present.text import percent, two_digits

NoteKind = Literal[
    # people and their rows
    "rows_without_person", "rows_as_people", "row_is_person", "limits", "limit_of_aggregate", "weighted_rows",
    "join_limit",
    "undercount_unknown", "undercount_beside", "undercount_share", "undercount_later", "undercount_elsewhere",
    "undercount_not_measured", "distinct_limited", "means_limited", "left_out", "left_out_later", "undetected",
    "unseen_people", "any_tail",
    "bias_unused", "people_without_budget",
    # what was chosen privately, and bounds
    "by_profile", "rows_chosen", "rows_chosen_later", "groups_chosen", "bounds_chosen", "bounds_not_found",
    "bounds_forecast", "bounds_stated", "person_values_clamped",
    # groups
    "null_keys", "keys_beyond_bounds", "small_groups", "top_keys", "other_groups", "levels", "empty_groups",
    "weekday_numbers", "value_without_rows", "value_without_values", "null_values",
    # errors
    "population", "population_clusters", "mode_gap", "extreme_rank", "quantile_rank", "no_interval", "noise_only",
    "mostly_noise",
    "shared_parts", "shared_epsilon", "chosen_by_noise", "one_sided", "error_unknown", "failed_sql",
    "public_alone", "as_of", "in_stages", "compared_with",
    # the ledger
    "first_answer", "temporary_ledger",
    # publications and synthetic records
    "whole_counts", "too_many_combinations", "no_whole_counts", "totals_of_bounded_rows", "unused_columns",
    "rows_outside", "rows_outside_domains", "columns_without_domain",
    # series
    "series_row_is_person", "series_limits", "series_falling", "series_people", "late_ignored", "late_arrival",
]  # fmt: skip
KINDS: frozenset[str] = frozenset(get_args(NoteKind))
_OF_THE_FIRST_ANSWER = ("first_answer", "temporary_ledger")


@dataclass(frozen=True)
class Note:
    """A note beside an answer: its kind, and the values of its sentence as plain JSON."""

    kind: NoteKind
    values: Mapping[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.kind, json.dumps(self.values, sort_keys=True)))

    def __str__(self) -> str:
        return sentence(self)

    def stored(self) -> dict[str, Any]:
        """Return the note as plain JSON, as ledgers and servers keep and send it."""
        return {"kind": self.kind, "values": dict(self.values)}

    @classmethod
    def restored(cls, document: Any) -> Note:
        """Return the note that :meth:`stored` turned into JSON."""
        kind, values = document["kind"], document["values"]
        if kind not in KINDS or not isinstance(values, dict):
            raise InvalidArgument(
                "note", "a known kind of note with its values", "an unknown one", "ask again with this version"
            )
        return cls(kind, values)


def kinds_of(notes: Iterable[Note]) -> list[NoteKind]:
    """Return the kinds of notes, in order."""
    return [note.kind for note in notes]


def lasting(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the notes except those that only the first answer from a ledger has.

    >>> lasting([Note("first_answer"), Note("levels")])
    (Note(kind='levels', values={}),)
    """
    return tuple(note for note in notes if note.kind not in _OF_THE_FIRST_ANSWER)


MOST_SHOWN, MOST_WORDS = 2, 32
"""The most notes shown under an answer, and the most words that they have together, unless there is only one."""
_FIRST: tuple[NoteKind, ...] = (
    # what is wrong or missing, and what is said once
    "failed_sql", "public_alone", "bounds_not_found", "any_tail", "first_answer", "people_without_budget",
    "error_unknown", "join_limit", "distinct_limited", "unseen_people",
    # which rows are shown, and what their numbers are
    "as_of", "compared_with", "top_keys", "small_groups", "other_groups", "weekday_numbers", "population",
    "temporary_ledger",
    # what the ± leaves out, or follows from
    "undercount_unknown", "left_out", "by_profile", "null_values", "one_sided", "chosen_by_noise", "undercount_beside",
    "undercount_share", "quantile_rank", "extreme_rank", "mode_gap", "no_interval",
    "value_without_rows", "value_without_values",
    "rows_chosen", "groups_chosen", "limits", "limit_of_aggregate", "bounds_chosen", "bounds_stated", "means_limited",
    "null_keys", "keys_beyond_bounds", "rows_as_people", "rows_without_person",
)  # fmt: skip
_RANKS = {kind: rank for rank, kind in enumerate(_FIRST)}


def leading(notes: Sequence[Note], most: int = MOST_SHOWN) -> tuple[list[Note], list[Note]]:
    """Return the most important notes, at most ``most``, which are shown under an answer, and the other notes; both in
    the order of ``notes``.

    >>> notes = [Note("rows_without_person", {"column": "who"}), Note("shared_epsilon"), Note("error_unknown")]
    >>> kinds_of(leading(notes)[0]), kinds_of(leading(notes)[1])
    (['rows_without_person', 'error_unknown'], ['shared_epsilon'])
    """
    order = sorted(range(len(notes)), key=lambda place: _RANKS.get(notes[place].kind, len(_FIRST)))
    first = order[:1] if most else []
    words = sum(len(str(notes[place]).split()) for place in first)
    for place in order[1:most]:
        words += len(str(notes[place]).split())
        first += [place] if words <= MOST_WORDS else []
    shown = sorted(first)
    return [notes[place] for place in shown], [note for place, note in enumerate(notes) if place not in shown]


def by_call(option: str) -> str:
    """Return how an option of a release is written in Python and on the command line.

    >>> by_call("bias")
    'bias=True (--bias)'
    """
    return f"{option}=True (--{option.replace('_', '-')})"


def sentence(note: Note, option: Callable[[str], str] = by_call) -> str:
    """Return the sentence of a note; ``option`` returns how an option of a release is named for its readers."""
    template = SENTENCES[note.kind]
    values = {"option": option, **note.values}
    return template(values) if callable(template) else template.format_map(values)


# -- parts of sentences -----------------------------------------------------------------------------------------------


def share_left_out(share: float, low: float, high: float, of: str) -> str:
    """Return a clause on the share of something that is excluded, with its interval; ``high = 1`` means that there is
    no upper limit.

    >>> share_left_out(0.12, 0.1, 0.15, "the rows"), share_left_out(0.1, 0.1, 1.0, "the rows")
    ('about 12 % of the rows are excluded (10 % to 15 %)', 'at least 10 % of the rows are excluded')
    >>> share_left_out(0.0, 0.0, 1.0, "the rows")
    'the noise hides whether any of the rows are excluded'
    """
    if high < 1:
        return f"about {percent(share)} of {of} are excluded ({percent(low)} to {percent(high)})"
    return (
        f"at least {percent(low)} of {of} are excluded" if low else f"the noise hides whether any of {of} are excluded"
    )


def counted(number: int, noun: str) -> str:
    """Format a number with a noun in singular or plural.

    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def limit_words(rows: int | Literal["auto"] | None, groups: int | Literal["auto"] | None) -> str:
    """Describe the contribution limits of one person: rows, groups, or rows in each of some groups.

    >>> limit_words(5, None), limit_words("auto", None), limit_words(5, 2), limit_words(None, 3)
    ('5 rows', 'a privately chosen number of rows', 'the weight of 5 rows in each of 2 groups', '3 groups')
    """
    if rows == "auto":
        return "a privately chosen number of rows"
    of_rows = "" if rows is None else counted(rows, "row")
    if groups is None:
        return of_rows
    of_groups = "a privately chosen number of groups" if groups == "auto" else counted(groups, "group")
    return f"the weight of {of_rows} in each of {of_groups}" if of_rows else of_groups


def _code(names: Sequence[str], joined: str = ", ") -> str:
    """Quote names as code and join them."""
    return joined.join(f"`{name}`" for name in names)


def _first_upper(text: str) -> str:
    """Capitalize the first letter of a sentence."""
    return text[:1].upper() + text[1:]


def _undercount_share(values: Mapping[str, Any]) -> str:
    """Return the sentence of a note ``undercount_share``."""
    whole = {"rows": "all rows", "groups": "all groups of people"}[values["of"]]
    parts = " or ".join({"group": "a group", "sum": "a sum"}[item] for item in values["of_parts"])
    return f"Counts and sums may be too low. The share stated is of {whole}; that of {parts} may differ."


def _left_out(values: Mapping[str, Any]) -> str:
    """Return the sentence of a note ``left_out``: the share that limits exclude, and the ε that was spent to learn
    it."""
    of = {"rows": "the rows", "groups": "people's groups"}[values["of"]]
    text = share_left_out(values["share"], values["low"], values["high"], of)
    return f"{_first_upper(text)}, learned with ε = {values['epsilon']:.3g}; the ± does not include this."


def _bias_unused(values: Mapping[str, Any]) -> str:
    """Return the sentence of a note ``bias_unused``: why estimating the bias would tell nothing."""
    reasons = {
        "limits_chosen": "spends nothing: what privately chosen limits exclude is learned with them",
        "one_row": "has nothing to learn: each person has at most one row, so no limit excludes any",
        "people": "has nothing to learn: people are counted once each, and no limit excludes any",
    }
    return f"The option {values['option']('bias')} {reasons[values['reason']]}."


def _people_without_budget(values: Mapping[str, Any]) -> str:
    """Return the sentence of a note ``people_without_budget``: who is not counted, and what questions have cost people
    so far."""
    cost, spent, left, limit = (_guarantee(values.get(name)) for name in ("cost", "spent", "left", "limit"))
    text = f"People with less than {cost} left are not counted; how many is private."
    after = {
        "": "",
        "everybody": " So far everybody can pay.",
        "not_all": f" Questions so far cost {spent or 'nothing'}; people in all of them have {left or 'nothing'} left.",
        "nobody": f" Questions so far cost {spent or 'nothing'}, more than the {limit} that a person may spend.",
    }
    return text + after[values["state"]]


def _guarantee(document: Any) -> Guarantee | None:
    """Return a guarantee from its JSON; None for None."""
    return None if document is None else restored(document)


def _bounds_chosen(values: Mapping[str, Any]) -> str:
    """Return the sentence of a note ``bounds_chosen``: the bounds, the ε spent on them, and the share of values
    beyond."""
    name, low, high = values["name"], values["low"], values["high"]
    beyond = "as in the card, since the ε is too small to choose others"
    if not values["of_card"]:
        share, most = percent(values["share"]), percent(max(values["most"], 1e-4))
        beyond = f"values beyond, about {share} and at most {most} (95 %), count as the nearer bound"
    return f"Bounds of `{name}` = ({low:g}, {high:g}), chosen privately with ε = {values['epsilon']:.3g}: {beyond}."


def _bounds_not_found(values: Mapping[str, Any]) -> str:
    """Return the sentence of a note ``bounds_not_found``, with how much more ε would be needed if that is known."""
    factor = values["factor"]
    more = "spend more" if factor is None else f"spend about {two_digits(factor)} times the ε"
    spent = f"ε = {values['epsilon']:.3g}, which stays charged"
    return f"No bounds of `{values['name']}` were found with {spent}, so it has no answer: {_STATE_BOUNDS}, or {more}."


_STATE_BOUNDS = "state its bounds, as in AVG(x, contribution_bounds_per_row => (0, 100))"


def _bounds_forecast(values: Mapping[str, Any]) -> str:
    """Return the sentence of a note ``bounds_forecast``: for how many people private bounds may not be found."""
    people = two_digits(values["people"])
    return f"`{values['name']}` may get no answer with fewer than about {people} people: {_STATE_BOUNDS}."


def _null_keys(values: Mapping[str, Any]) -> str:
    """Return the sentence of a note ``null_keys``: rows without a key are in no group, and how to include them."""
    included = ", ".join(values["group_by"])
    return f"Rows with NULL {_code(values['columns'], ' or ')} are in no group; GROUP BY {included} includes them."


def _keys_beyond_bounds(values: Mapping[str, Any]) -> str:
    """Return the sentence of a note ``keys_beyond_bounds``: rows whose key is beyond the card's bounds are in no
    group."""
    which = " or ".join(f"`{item['column']}` beyond {item['low']} to {item['high']}" for item in values["columns"])
    verb = "are" if values["certain"] else "may be"
    return f"Rows with {which}, the bounds of the card, {verb} in no group."


def _value_without(values: Mapping[str, Any], grouped: str, alone: str) -> str:
    """Return the sentence of values that exist without rows or values: ``grouped`` and ``alone`` name that case."""
    one = len(values["names"]) == 1
    even = f"even in {grouped}" if values["grouped"] else f"even if {alone}"
    counts, null = " and ".join(values["counts"]), "it is NULL" if one else "they are NULL"
    return f"{_code(values['names'])} {'has' if one else 'have'} a value {even}; with {counts} in the question {null}."


def _top_keys(v: Mapping[str, Any]) -> str:
    """Return the sentence of ``top_keys``: how groups were found, and whether fewer than asked for are shown."""
    needed = f"about {max(1, round(v['people'])):,} people{', each divided among their groups' if v['divided'] else ''}"
    if not v["shown"]:
        return f"No group could be shown: it takes {needed}."
    if v["shown"] < v["asked"]:
        return f"Only {v['shown']:,} of {v['asked']:,} groups could be shown, in a noisy order: it takes {needed}."
    return f"Which groups are the largest, and their order, is noisy; a group needs {needed}."


def _null_values(values: Mapping[str, Any]) -> str:
    """Return the sentence of a note ``null_values``: why values are NULL."""
    where = (
        "in groups whose noisy count shows no people" if values["grouped"] else "because the noisy count shows no rows"
    )
    return f"{_code(values['names'])} {'is' if len(values['names']) == 1 else 'are'} NULL {where}."


def _bin(values: Mapping[str, Any], beginning: str) -> str:
    """Return how wide the bins of a quantile are, after ``beginning``; empty for exact quantiles."""
    width = values["bin_width"]
    return "" if width is None else f"{beginning} {two_digits(width)} wide"


_ROWS_OR_VALUES = {"rows": "row", "values": "different value"}


def _extreme_rank(values: Mapping[str, Any]) -> str:
    """Return the sentence of a note ``extreme_rank``: how many people (or rows) lie beyond a private MIN or MAX."""
    half = _bin(values, " by more than half a bin,")
    who = {"people": " people", "divided": " people, each divided among their groups,"}.get(
        values.get("of", ""), " rows"
    )
    return f"At most {two_digits(values['rows'])}{who} are beyond `{values['name']}`{half} (95 %)."


def _quantile_rank(values: Mapping[str, Any]) -> str:
    """Return the sentence of a note ``quantile_rank``: by how many rows the rank of a quantile is off."""
    middle = _bin(values, "; it is the middle of a bin")
    return f"The rank of `{values['name']}` is off by at most {two_digits(values['rows'])} rows (95 %){middle}."


def _compared_with(values: Mapping[str, Any]) -> str:
    """Return the sentence of a note ``compared_with``: the noisy numbers that stand for private subqueries."""
    pairs = zip(values["numbers"], values["errors"], strict=True)
    known = [f"{n:,.6g}" if error is None else f"{n:,.6g} ± {two_digits(error)}" for n, error in pairs]
    return f"Compared with the noisy {' and '.join(known)}; the ± holds for that comparison."


def _failed_sql(values: Mapping[str, Any]) -> str:
    """Return the sentence of a note ``failed_sql``: what is shown instead of the failed result."""
    failed = "The SQL around the aggregation failed on this answer; shown instead"
    if values["column"] is None:
        return f"{failed} is its noisy table."
    return f"{failed} are the noisy tables, numbered by `{values['column']}`."


def lever_words(lever: Mapping[str, Any]) -> str:
    """Return a change of a question that makes its error smaller, with the error that it would have, as text.

    >>> lever_words({"kind": "epsilon", "epsilon": 2.3, "error": 1.4, "share": 0.2})
    'ε = 2.3 gives ± 20 %'
    >>> lever_words({"kind": "groups", "columns": ["origin"], "error": 0.8, "share": 0.1})
    'by `origin` ± 0.80 (10 %)'
    """
    if lever["kind"] == "epsilon":
        return f"ε = {lever['epsilon']:g} gives ± {percent(lever['share'])}"
    changed = "without WHERE" if lever["kind"] == "where" else "without groups"
    if lever.get("columns"):
        changed = f"by {_code(lever['columns'])}"
    return f"{changed} ± {two_digits(lever['error'])} ({percent(lever['share'])})"


def _mostly_noise(values: Mapping[str, Any]) -> str:
    """Return the sentence of a note ``mostly_noise``: the error beside the number, and what makes it smaller."""
    sizes = f"± {two_digits(values['error'])} is expected where the number is about {two_digits(values['size'])}"
    text = f"`{values['name']}` will be mostly noise: {sizes}."
    levers = "; ".join(map(lever_words, values["levers"]))
    return f"{text} Better: {levers}." if levers else text


def _whole_counts(values: Mapping[str, Any]) -> str:
    """Return the sentence of a note ``whole_counts``."""
    text = f"Whole counts are never negative and add up, over {values['combinations']:,} cells; they have no ±"
    return f"{text}. Computing them takes long; whole = false leaves them out." if values["slow"] else f"{text}."


def _rows_outside(values: Mapping[str, Any]) -> str:
    """Return the sentence of a note ``rows_outside``: what becomes of rows whose value is not among the keys of a
    column."""
    null, other, outside = values["null"], values["other"], values["outside"]
    kept = [*([] if other is None else [f"all others as {other!r}"]), *(["NULL as NULL"] if null else [])]
    beyond = {
        "keys": "none of its {keys:,} keys",
        "lookup": "none of the {lookup:,} in the lookup",
        "low": "below {low:.15g} or not below {high:.15g}",
    }[next(iter(outside))].format_map(outside)
    dropped = [*([] if null else ["NULL"]), *([] if other is not None else [beyond])]
    if not dropped:
        return f"Every row counts in `{values['name']}`, {' and '.join(kept)}."
    beside = f"; {' and '.join(kept)} count" if kept else ""
    return f"Rows whose `{values['name']}` is {' or '.join(dropped)} count in no table{beside}."


def _series_limits(values: Mapping[str, Any]) -> str:
    """Return the sentence of a note ``series_limits``: how many rows of a person count, in how many periods."""
    unit, separation = values["unit"], values["separation"]
    rows, periods = counted(values["rows"], "row"), counted(values["periods"], unit)
    text = f"At most {rows} of a person count in a {unit}, in at most {periods}"
    return f"{text}, at least {separation} apart." if separation > 1 else f"{text}."


# -- the sentence of each kind ----------------------------------------------------------------------------------------

SENTENCES: dict[NoteKind, str | Callable[[Mapping[str, Any]], str]] = {
    "rows_without_person": "Rows with NULL `{column}` are excluded.",
    "rows_as_people": "Each row with NULL `{column}` counts as its own person.",
    "row_is_person": "Each row is its own person.",
    "limits": lambda v: f"Each person counts for at most {limit_words(v['rows'], v['groups'])}.",
    "limit_of_aggregate": lambda v: f"In {v['name']}, each person counts for at most {counted(v['rows'], 'row')}.",
    "weighted_rows": "Rows of people with more are weighted down; the ± and intervals are of the weighted counts.",
    "join_limit": lambda v: (
        f"{'+ or more: each' if 'names' in v else 'Each'} person contributes at most {counted(v['rows'], 'row')} of "
        f"{v['relation']} to {'EXISTS' if v['exists'] else 'the join'}, whatever their values."
    ),
    "undercount_unknown": lambda v: (
        f"Counts and sums may be too low by more than the ±; {v['option']('bias')} estimates it."
    ),
    "undercount_beside": "Counts are underestimated by about the amount shown, which the ± does not include.",
    "undercount_share": _undercount_share,
    "undercount_later": "Counts and sums will be too low; the answer will state the share of rows that is excluded.",
    "undercount_elsewhere": "Counts and sums may be too low by more than the ±.",
    "undercount_not_measured": (
        'How much the limit excludes is not known, nor in any ±: bias = true, or max_rows = "auto", measures it.'
    ),
    "distinct_limited": "+ or more: values of one person beyond the limit do not count as distinct values.",
    "means_limited": "Means, quantiles and similar results favor people with few rows; the ± does not include this.",
    "left_out": _left_out,
    "left_out_later": "What the limit excludes will be learned and stated beside the ±, which does not include it.",
    "undetected": lambda v: f"Up to about {v['people']:,} heavy contributors could go undetected.",
    "unseen_people": lambda v: f"+ or more: up to ~{v['people']:,} people with far more rows could go undetected.",
    "any_tail": lambda v: (
        f"`{v['name']}` is a lower limit (97.5 %), low by about {two_digits(v['times'])} times the heaviest person; "
        + (
            "max_rows, if stated, bounds it from above."
            if v["most"] is None
            else f"the ± holds if nobody has more than {v['most']:,} rows."
        )
    ),
    "bias_unused": _bias_unused,
    "people_without_budget": _people_without_budget,
    "by_profile": lambda v: (
        "The ± includes what limits and bounds leave out, by the profile"
        f"{'' if v['released'] is None else ' of ' + v['released']}; groups unlike the table may be off by more."
    ),
    "rows_chosen": lambda v: (
        f"Each person counts for at most {counted(v['rows'], _ROWS_OR_VALUES[v.get('of', 'rows')])}, chosen privately "
        f"with ε = {v['epsilon']:.3g}."
    ),
    "rows_chosen_later": (
        "max_rows is chosen privately with a tenth of the cost; multiply every ± by the limit that will be chosen."
    ),
    "groups_chosen": lambda v: (
        f"Each person counts in at most {counted(v['groups'], 'group')}, chosen privately with ε = {v['epsilon']:.3g}."
    ),
    "bounds_chosen": _bounds_chosen,
    "bounds_not_found": _bounds_not_found,
    "bounds_forecast": _bounds_forecast,
    "bounds_stated": "Values of {value} beyond the stated {low:,.15g} to {high:,.15g} count as the nearer bound.",
    "person_values_clamped": (
        "Values of `{column}` are clamped to the card's {low:,.15g} to {high:,.15g}, then added up per `{person}`."
    ),
    "null_keys": _null_keys,
    "keys_beyond_bounds": _keys_beyond_bounds,
    "small_groups": "Groups with fewer than about {people:,} people are not shown.",
    "top_keys": _top_keys,
    "weekday_numbers": "Of days of the week, Sunday is 0 (BigQuery, Spark: 1).",
    "other_groups": "The last row, without a key, is all groups that are not shown.",
    "levels": "Levels add up, except for rounding; they count the rows whose keys in all columns are public.",
    "empty_groups": "Results computed from groups include every public group, even one without people.",
    "value_without_rows": lambda v: _value_without(v, "a group without people", "there are no rows"),
    "value_without_values": lambda v: _value_without(v, "a group without values", "all values are NULL"),
    "null_values": _null_values,
    "population": "± population (95 %): noise and sampling error, for the population that the rows were drawn from.",
    "population_clusters": (
        "Rows of one person may be similar, so the sampling error is multiplied by {factor:.2g}, the most possible."
    ),
    "mode_gap": lambda v: f"No key is more common than `{v['name']}` by more than {two_digits(v['rows'])} rows (95 %).",
    "extreme_rank": _extreme_rank,
    "quantile_rank": _quantile_rank,
    "no_interval": lambda v: f"Quantiles, extremes and modes have no ±; {v['option']('quantile_interval')} adds one.",
    "noise_only": (
        "With {rows:,} rows in a group the ± of `{name}` spans all possible values, {low:,.6g} to {high:,.6g}; "
        "a release asks for confirmation."
    ),
    "mostly_noise": _mostly_noise,
    "shared_parts": lambda v: (
        f"{_code(v['names'])}: computed from the noisy parts of {_code(v['others'])}, so the ± is larger than alone."
    ),
    "shared_epsilon": "All measurements share the ε, so each ± is larger than if it were asked alone.",
    "chosen_by_noise": "Rows are selected by noisy numbers, so their ± is wider than that of all groups.",
    "one_sided": "MAX, MIN, STDDEV, ranks and conditional counts of noisy numbers have no ±: noise biases them.",
    "error_unknown": "The ± of computed columns could not be computed.",
    "failed_sql": _failed_sql,
    "in_stages": "The subquery is answered first; {stages} stages share the budget equally.",
    "compared_with": _compared_with,
    "as_of": "CURRENT_DATE is {day}; asked again on another day, the question is charged again.",
    "public_alone": lambda v: f"{_code(v['tables'])}: public, so the answer is exact and free.",
    "first_answer": (
        "This is the ledger's first answer about this table. If you had answers before, tell the steward: the ledger "
        "was lost or replaced."
    ),
    "temporary_ledger": "The budget is kept in a temporary ledger, which ends with this table; ledger= keeps it.",
    "whole_counts": _whole_counts,
    "too_many_combinations": (
        "No whole counts and no records: all attributes have {combinations:,} combinations, more than {most:,}; ask "
        "for fewer attributes or coarser levels."
    ),
    "no_whole_counts": "No whole counts and no records, as the plan says.",
    "totals_of_bounded_rows": (
        "Public totals must be of the bounded rows that are counted: totals of all rows contradict these counts, and "
        "no ± includes that."
    ),
    "unused_columns": lambda v: f"Not in any table: {_code(v['names'])}.",
    "rows_outside": _rows_outside,
    "rows_outside_domains": "Rows outside the domains of the columns, which --dry-run shows, are not counted.",
    "columns_without_domain": lambda v: (
        f"Columns without keys or bounds in the card are left out: {_code(v['names'])}."
    ),
    "series_row_is_person": "Each row is its own person and counts in one {unit}; a changed row is a new one.",
    "series_limits": _series_limits,
    "series_falling": (
        "Later {unit}s are undercounted more, since people reach their limit: a falling line may not mean a decline."
    ),
    "series_people": lambda v: (
        f"{_code(v['names'])}: a person counts once per {v['unit']}, so totals are not numbers of distinct people."
    ),
    "late_ignored": "Rows that arrive after their period was released do not count.",
    "late_arrival": "A row counts on the later of `{column}` and `{arrived}`.",
}  # fmt: skip
