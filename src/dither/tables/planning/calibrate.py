"""The plan of a question, from an epsilon or from the error that is good enough; no data is read.

A question costs at least the card's ``min_epsilon``, and noise that needs a delta is chosen only where every account
has one to spend. What is measured does not depend on the budget, so an error is reached by trying budgets on the same
aggregations.

*Several aggregations* of one question are often divided by each other, so a person's rows have the same limit R in all
of them, by the l1 norm (:mod:`dither.tables.compile.limits`): in those about the same rows they have the same
weights, whatever the groups are. Each has its own noise and its own share of epsilon, of which the sum is charged; a
person changes each by at most R in the l1 norm, and so in the l2 norm.

Levels with public keys are also about the same rows: those whose key in every column is one of the public keys. The
budget is divided equally among them. Which level is read is not known, and after least squares every level gains from
all others, a total most of all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from dither import arguments
from dither.accounting import gaussian_ratio
from dither.errors import InvalidArgument, fix_by_options
from dither.exact.search import bisect_floats
from dither.guarantees import ApproxDP, PureDP
from dither.release.pipeline import check_least
from dither.tables.card.accounts import pays_delta
from dither.tables.card.model import Card
from dither.tables.compile.expressions import lookup_of
from dither.tables.compile.limits import MAX_TOTAL, Level, SharedBounds
from dither.tables.options import ReleaseOptions, percentage
from dither.tables.planning import automatic, tails
from dither.tables.planning.estimate import expected_error, rounded_error, with_least_squares
from dither.tables.planning.group_keys import (
    PublicKeys,
    card_of_question,
    every_group,
    number_of_groups,
    with_unstated_bounds,
)
from dither.tables.planning.plan import (
    Aggregation,
    AggregationPlan,
    QuestionPlan,
    aggregation_of,
    coalesce,
    keys_and_ties,
    make_keys_public,
    variance_of,
)
from dither.tables.planning.top_keys import KEYS, TopQuestion
from dither.tables.planning.top_keys import SHARE as SHARE_OF_KEYS
from dither.tables.planning.work import refuse_much_text_work
from dither.tables.query import evaluate, nodes
from dither.tables.query.relations import base_of
from dither.tables.query.tree import EXTREMES, SIMPLE, Aggregate, Call, Expression, Literal, Query

if TYPE_CHECKING:  # questions without a profile do not need it
    from dither.tables.planning.profiled import ProfiledRows

_LARGEST_EPSILON = 100.0
"""The most that is spent to meet a wanted error: an epsilon above it would protect nobody."""
_MANY_GROUPS = 16


def plan_question(query: Query, card: Card, options: ReleaseOptions) -> QuestionPlan:
    """Return the plan of a question: for the epsilon of the options or of the query, or for the wanted error; refuse a
    question that cannot be planned.

    The private aggregations of a question share its epsilon and delta equally. If all of them use normal noise, they
    are released as one vector, which takes less noise than separate shares.
    """
    if query.is_public:
        return QuestionPlan((), query)
    refuse_much_text_work(query)
    if any(item.source is not None for item in query.aggregations):
        from dither.tables.planning.work import with_limited_work  # which other questions do not need

        query = with_limited_work(query, card)
    epsilon = options.epsilon if options.epsilon is not None else query.epsilon
    if (epsilon is None) == (options.error is None):
        raise InvalidArgument(
            "epsilon",
            "epsilon, or the error that is good enough",
            "neither" if options.error is None else "both",
            *fix_by_options("pass {epsilon}, or {error}", epsilon=0.5, error=50),
        )
    if query.before:
        return _in_stages(query, card, options, epsilon)
    least = arguments.epsilon(card.min_epsilon, "min_epsilon")
    given = coalesce(options.delta, query.delta, card.delta)
    delta = None if given is None else arguments.delta(given)
    bounded = [(query, None)] if not query.more else bounded_together(query.aggregations, card, options.other)
    parts = [_aggregation(item, card, options, shared_bounds) for item, shared_bounds in bounded]
    if len(parts) > 1:
        parts = _choosing_together(parts)

    def at(epsilon: object) -> QuestionPlan:
        """Return the plan of the question at this epsilon."""
        whole = arguments.epsilon(epsilon)
        check_least(card.min_epsilon, PureDP(whole))
        return QuestionPlan((_planned(parts[0], whole, delta),)) if len(parts) == 1 else _sharing(parts, whole, delta)

    if options.error is None:
        result = at(epsilon)
    else:
        if any(part.unstated.keys() - {"bias"} for part in parts):
            raise InvalidArgument(
                "error", "stated bounds, max_groups and max_rows", "'auto'", "state them, or pass epsilon instead"
            )
        result = _for_error(at, options.error, float(least))
    for part in result.parts:
        every_group(part.keys, part.ties)
    refuse_counted_groups(result)
    return result


def _in_stages(query: Query, card: Card, options: ReleaseOptions, epsilon: object) -> QuestionPlan:
    """Return the plan of a question that is asked after others: every stage has an equal share of the budget."""
    if options.error is not None:
        fix = "pass epsilon, or ask the subquery first, and write its answer as a number"
        raise InvalidArgument("error", "a question without a private subquery", "one that is compared with", fix)
    own = stage_options(query, card, options, epsilon)
    before = tuple(plan_question(item, card, own) for item in query.before)
    return replace(plan_question(replace(query, before=()), card, own), before=before)


def stage_options(query: Query, card: Card, options: ReleaseOptions, epsilon: object = None) -> ReleaseOptions:
    """Return the options of each stage of a question: equal shares of its epsilon and of its delta."""
    stages = len(query.before) + 1
    whole = arguments.epsilon(coalesce(epsilon, options.epsilon, query.epsilon))
    delta = coalesce(options.delta, query.delta, card.delta)
    share = None if delta is None else arguments.delta(delta) / stages
    # exact shares, so that they add up to the whole
    return replace(options, epsilon=whole / stages, delta=share)  # type: ignore[arg-type]


_OF_POPULATIONS = ("count", "count_value", "people", "sum", "mean", "var", "std", "quantile")


def _check_population(query: Query) -> None:
    """Refuse an interval for the population of an aggregate whose sampling error does not follow from its sums."""
    for name, aggregate in query.aggregates.items():
        if aggregate.kind not in _OF_POPULATIONS:
            expected = "COUNT, SUM, AVG, VAR, STDDEV or a quantile, for an interval of the population"
            fix = "ask for it in a question of its own, without interval='population'"
            raise InvalidArgument(name, expected, aggregate.kind.upper(), fix)


def _aggregation(query: Query, card: Card, options: ReleaseOptions, shared_bounds: SharedBounds | None) -> Aggregation:
    """Return a private aggregation of a question before it has a budget: its public keys, which limits and bounds are
    chosen privately or by the profile, and stand-ins for these."""
    if query.source is not None:
        card = card_of_question(query, card)
    if options.tails == "any":
        return _race(query, card, options, shared_bounds)
    query = with_unstated_bounds(query, card)
    if options.interval == "population":
        _check_population(query)
    max_groups: Any = 1  # of a row that is a person of its own
    max_rows: Any = 1
    if card.unit is not None:
        max_groups = coalesce(options.max_groups, query.max_groups, card.max_groups)
        max_rows = coalesce(options.max_rows, query.max_rows, card.max_rows)
    known = keys_and_ties(query, card, options.other)
    bias = options.bias and card.unit is not None
    unstated: dict[str, Fraction] = {}
    profiled = None
    if base_of(card).profile is not None and options.interval == "noise":
        may_learn = options.error is None and shared_bounds is None
        profiled, max_groups, max_rows = _by_profile(query, card, max_groups, max_rows, None in known[0], may_learn)
    to_choose = query if profiled is None else _without_bounds(query, profiled)
    if bias or "auto" in (max_groups, max_rows, *(aggregate.bounds for aggregate in to_choose.aggregates.values())):
        unstated = automatic.unstated_limits(to_choose, max_groups, max_rows, None in known[0], bias)
        added = any(item.kind in _ADDED for item in query.aggregates.values())
        of_some = query.where is not None and added and shared_bounds is None and profiled is None
        if "max_rows" in unstated and (of_some or (profiled is not None and profiled.to_learn)):
            unstated["max_rows"] = automatic.LEARNING_SHARE
    one_row = (
        card.unit is None and options.error is None and "auto" in (options.max_rows, query.max_rows, card.max_rows)
    )
    may_sketch = shared_bounds is None and options.interval == "noise"
    if may_sketch and profiled is None and ("max_rows" in unstated or one_row):
        from dither.tables.planning.sketch import values_to_sketch  # which questions with stated limits do not need

        unstated = {**unstated, **values_to_sketch(query, lookup_of(card, query.joins), options.error is None)}
    elif may_sketch and profiled is not None and options.error is None and _may_choose_later(query, known[0]):
        from dither.tables.planning.sketch import values_to_sketch

        sketched = values_to_sketch(query, lookup_of(card, query.joins), sums=True, profiled=profiled)
        unstated, profiled = {**unstated, **sketched}, replace(profiled, to_sketch=bool(sketched))
    top = None
    if shared_bounds is None and None in known[0]:
        profile = None if card.profile is None or query.source is not None else card.profile.tables.get(card.name)
        top = TopQuestion.of(query, known[0], options, None if card.unit is None else max_groups, profile)
    if top is not None:
        known, unstated = top.stand_ins(query, lookup_of(card, query.joins)), {**unstated, KEYS: SHARE_OF_KEYS}
    evaluate.check_shape(query.shape, [*(group.name for group in query.groups), *query.aggregates])
    settled = replace(
        options, max_groups=1 if max_groups == "auto" else max_groups, max_rows=1 if max_rows == "auto" else max_rows
    )
    provisional = automatic.with_provisional_bounds(query) if unstated or profiled is not None else query
    result = aggregation_of(provisional, card, settled, shared_bounds, known)
    return replace(result, unstated=unstated, top=top, profiled=profiled)


def _may_choose_later(query: Query, keys: PublicKeys) -> bool:
    """Return whether all limits and bounds of an aggregation may be chosen after it was charged."""
    from dither.tables.planning.profiled import CHOSEN

    return None not in keys and {item.kind for item in query.aggregates.values()} <= {*CHOSEN, *EXTREMES}


_ADDED = {"count", "count_value", "sum"}


def _race(query: Query, card: Card, options: ReleaseOptions, shared_bounds: SharedBounds | None) -> Aggregation:
    """Return an aggregation of counts and sums for ``tails="any"``, which needs no limit on a person's rows.

    Nothing is chosen privately. A stated ``max_rows`` means that nobody has more rows in a group, in at most
    ``max_groups`` groups if that is stated, too.
    """
    known = keys_and_ties(query, card, options.other)
    tails.check(
        query,
        public_keys=None not in known[0],
        several=shared_bounds is not None,
        rows_without_unit=card.counts_rows_without_unit,
    )
    for name, given in (("error", options.error), ("bias", options.bias), ("interval", options.interval != "noise")):
        if given:
            expected = f"no {name}, with tails='any'"
            raise InvalidArgument(name, expected, getattr(options, name), f"leave out {name}, or tails")
    for name, item in query.aggregates.items():
        if item.bounds == "auto":
            raise InvalidArgument(name, "stated bounds, with tails='any'", "'auto'", "leave them to the card")
    rows = coalesce(options.max_rows, query.max_rows)
    groups = coalesce(options.max_groups, query.max_groups)
    possible = number_of_groups(*known)
    most = MAX_TOTAL
    if isinstance(rows, int):
        most = min(rows * (min(groups, possible) if isinstance(groups, int) else possible), MAX_TOTAL)
    evaluate.check_shape(query.shape, [*(group.name for group in query.groups), *query.aggregates])
    settled = replace(options, max_groups=1, max_rows=most)
    return aggregation_of(query, card, settled, None, known)


def _by_profile(
    query: Query, card: Card, max_groups: Any, max_rows: Any, private: bool, may_learn: bool
) -> tuple[ProfiledRows | None, Any, Any]:
    """Return what the profile says about an aggregation's rows (None: nothing), and the limits on groups and on rows,
    with 1 in place of limits that the profile will choose. ``private`` says that some keys are not public, and
    ``may_learn`` that a histogram of people may be bought."""
    from dither.tables.planning.profiled import CHOSEN, profiled_rows

    kinds = {aggregate.kind for aggregate in query.aggregates.values()}
    if "count_distinct" in kinds or kinds <= {"people", *EXTREMES}:
        return None, max_groups, max_rows
    result = profiled_rows(query, card, max_rows == "auto")
    if result is None:
        return None, max_groups, max_rows
    several = result.approximate and result.people.most_rows > 1
    every = kinds <= {*CHOSEN, *EXTREMES}
    if max_rows == "auto" and several and may_learn and kinds & _ADDED and every and not private:
        result = replace(result, to_learn=True, limits_free=True)
        max_groups = 1 if max_groups == "auto" else max_groups
    elif max_rows == "auto":
        max_rows = 1
        if max_groups == "auto" and not private and every:
            max_groups = 1
    to_bound = frozenset(
        name
        for name, item in query.aggregates.items()
        if item.bounds == "auto"
        and item.value is not None
        and result.values(item.value, lookup_of(card, query.joins), None) is not None
    )
    return replace(result, to_bound=to_bound), max_groups, max_rows


def _without_bounds(query: Query, profiled: ProfiledRows) -> Query:
    """Return the question with bounds None instead of "auto" for the aggregates whose bounds the profile will choose,
    so that these are not chosen privately."""
    bounded: dict[str, Aggregate] = {
        name: replace(item, bounds=None) if name in profiled.to_bound else item
        for name, item in query.aggregates.items()
    }
    return replace(query, aggregates=bounded)


def _settled(asked: Aggregation, epsilon: Fraction, delta: Fraction | None) -> Aggregation:
    """Return an aggregation with the limits and bounds that minimize the expected error by the profile at this budget;
    unchanged without a profile."""
    if asked.profiled is None:
        return asked
    from dither.tables.planning.forecast import mean_errors
    from dither.tables.planning.profiled import settle

    noise_of = None
    if asked.options.noise == "gaussian" and delta is not None:

        def noise_of(share: float) -> float:
            """Return the standard deviation of normal noise for sensitivity 1 at this epsilon."""
            return float(gaussian_ratio(Fraction(share), delta))

    if asked.profiled.to_learn or asked.profiled.to_sketch:  # and to be settled then
        rows, unknown = _with_guesses(asked, asked.profiled)
        people = [rows]
        if rows.to_learn:
            paid = float(epsilon * asked.unstated["max_rows"] / (1 - sum(asked.unstated.values(), Fraction(0))))
            learned = [item for thinned in rows.thinnings for item in thinned.as_learned(paid)]
            people = [replace(rows, people=item, approximate=False) for item in learned]
        expected = mean_errors([settle(asked, item, epsilon, noise_of).expected for item in people])
        return replace(asked, expected={name: item for name, item in expected.items() if name not in unknown})
    settled = settle(asked, asked.profiled, epsilon, noise_of)
    query = replace(asked.query, aggregates={**asked.query.aggregates, **settled.aggregates})
    options = asked.options
    if settled.rows is not None:
        options = replace(options, max_rows=-(-settled.rows // asked.max_groups))
    result = aggregation_of(query, asked.card, options, asked.shared_bounds, (asked.keys, asked.ties))
    result = replace(result, unstated=asked.unstated, top=asked.top, profiled=asked.profiled)
    return replace(result, corrections=settled.corrections, expected=settled.expected)


def _with_guesses(asked: Aggregation, rows: ProfiledRows) -> tuple[ProfiledRows, set[str]]:
    """Return the rows with guesses of the values that are to be sketched, for forecasts alone, and the names of the
    aggregates about values of which nothing can be guessed."""
    guesses, unknown = dict(rows.sketched), set()
    for name, item in asked.query.aggregates.items():
        for value in (item.value, item.other):
            if not rows.to_sketch or value is None or rows.values(value, asked.find, None) is not None:
                continue
            guess = rows.guessed(value, asked.find)
            if guess is not None:
                guesses[value] = guess
            elif item.kind not in ("count", "count_value"):
                unknown.add(name)
    return replace(rows, sketched=guesses), unknown


def _settled_together(parts: Sequence[Aggregation], epsilon: Fraction, delta: Fraction | None) -> list[Aggregation]:
    """Return aggregations with the limits and bounds that the profile chooses at this budget for each; those about the
    same rows get the same limit."""
    from dither.tables.planning.profiled import with_settled

    first: dict[int, Aggregation] = {}
    for part in parts:
        lead = _of_same_rows(part, parts)[0]
        first.setdefault(id(lead), _settled(lead, epsilon, delta))
    result = []
    for part in parts:
        lead = _of_same_rows(part, parts)[0]
        settled = first[id(lead)]
        if part is not lead:
            query = with_settled(part.query, lead.query, settled.query.aggregates)
            options = replace(part.options, max_rows=-(-settled.max_rows * settled.max_groups // part.max_groups))
            settled = _settled(replace(part, query=query, options=options), epsilon, delta)
        result.append(settled)
    return result


def _planned(
    asked: Aggregation, epsilon: Fraction, delta: Fraction | None, choices: Mapping[str, Fraction] | None = None
) -> AggregationPlan:
    """Return the plan of an aggregation at this budget; ``choices`` are the epsilons of its private choices by name
    (None: their shares of ``epsilon``). Refuse a plan that needs a delta which an account cannot pay."""
    if choices is None:
        choices = {name: epsilon * share for name, share in asked.unstated.items()}
    left = epsilon - sum(choices.values(), Fraction(0))
    if asked.top is not None and delta is None:
        raise asked.needs_delta()
    asked = _settled(asked, left, delta)
    result = asked.with_budget(left, _delta_left(asked, delta))
    if asked.top is not None and delta is not None:
        result = replace(result, top_keys=asked.top.at(choices[KEYS], delta / 2))
    later = asked.profiled is not None and asked.profiled.to_sketch
    # whatever is chosen after the charge must not be refused
    if later or {"max_groups", "max_rows"} & set(asked.unstated):
        widest = replace(asked.options, max_groups=1, max_rows=MAX_TOTAL)
        aggregation_of(asked.query, asked.card, widest, asked.shared_bounds, (asked.keys, asked.ties)).with_budget(
            left, _delta_left(asked, delta)
        )
    spends_delta = isinstance(result.guarantee, ApproxDP) or asked.top is not None
    has_delta = pays_delta(asked.card)
    if spends_delta and not has_delta:
        if result.selection is None and asked.top is None:
            raise _no_delta("Gaussian noise", "ask for Laplace noise")
        fix = make_keys_public(asked)
        raise _no_delta("a choice of groups that are not public", f"{fix}, ask for Laplace noise")
    if not asked.unstated:
        return result
    may_spend = spends_delta or (has_delta and _may_choose_normal_noise(asked))
    cost = ApproxDP(epsilon, delta) if may_spend and delta is not None else PureDP(epsilon)
    return replace(result, guarantee=cost, automatic=choices)


def _delta_left(asked: Aggregation, delta: Fraction | None) -> Fraction | None:
    """Return the delta for the measurements: half of it if keys of the largest groups are chosen before, otherwise all
    of it."""
    return delta if delta is None or asked.top is None else delta / 2


def _may_choose_normal_noise(asked: Aggregation) -> bool:
    """Return whether normal noise, which costs a delta, may be better once private choices are made."""
    if asked.unstated.keys() == {"bias"}:
        return False
    if asked.options.noise == "best" and "max_rows" in asked.unstated:
        return asked.shared_bounds is None and number_of_groups(asked.keys, asked.ties) >= _MANY_GROUPS
    return asked.options.noise != "laplace"


def _sharing(parts: Sequence[Aggregation], epsilon: Fraction, delta: Fraction | None) -> QuestionPlan:
    """Return the plan of a question with several aggregations, each with an equal share of epsilon and delta.

    Aggregations about the same rows choose limits once, for the shares of all of them.
    """
    share = Fraction(1, len(parts))
    share_of_delta = None if delta is None else delta * share
    if any(part.profiled is not None for part in parts):
        parts = _settled_together(parts, epsilon * share, share_of_delta)
    plans = []
    for part in parts:
        choices = {name: epsilon * share * item for name, item in part.unstated.items()}
        own = epsilon * share
        limits = {name: item for name, item in choices.items() if name in automatic.SHARES}
        if limits:
            members = _of_same_rows(part, parts)
            spent = sum(limits.values(), Fraction(0))
            if part is members[0]:  # it spends what all of them leave for the choice
                choices |= {name: item * len(members) for name, item in limits.items()}
                own += spent * (len(members) - 1)
            else:
                own -= spent
                choices |= dict.fromkeys(limits, Fraction(0))
        plans.append(_planned(part, own, share_of_delta, choices))
    noise = parts[0].options.noise
    if share_of_delta is not None and noise != "laplace" and pays_delta(parts[0].card):
        joint = [_with_normal_noise(part, epsilon * share, share_of_delta, share) for part in parts]
        normal = [item for item in joint if item is not None]
        if len(normal) == len(parts) and (noise == "gaussian" or _spread(normal) < _spread(plans)):
            plans = normal
    return QuestionPlan(tuple(with_least_squares(plans)))


def _with_normal_noise(
    asked: Aggregation, epsilon: Fraction, delta: Fraction, share: Fraction
) -> AggregationPlan | None:
    """Return the plan of an aggregation as a ``share`` of one vector of normal noise over all aggregations; None if
    part of it needs other noise or a private choice."""
    if asked.unstated or asked.has_private_keys:
        return None
    normal = replace(asked, options=replace(asked.options, noise="gaussian"))
    result = normal.with_budget(epsilon, delta, joint=share)
    return None if result.choices or result.quantiles or result.counts else result


def _spread(plans: Sequence[AggregationPlan]) -> float:
    """Return the sum of the logarithms of the standard deviations of all measures, by which plans are compared: the
    smaller, the better."""
    return sum(
        math.log(variance_of(noise)) / 2 - math.log(measure.unit(item.limits))
        for item in plans
        for measure, noise in item.measures.items()
    )


def _of_same_rows(part: Aggregation, parts: Sequence[Aggregation]) -> list[Aggregation]:
    """Return the aggregations about the same rows as ``part``, itself included. The first is the one for which limits
    are chosen: one that does not only count people, with the most grouping columns."""
    members = [other for other in parts if _rows_number(other) == _rows_number(part)]
    counts_rows = [any(item.kind != "people" for item in other.query.aggregates.values()) for other in members]
    order = sorted(range(len(members)), key=lambda i: (not counts_rows[i], -len(members[i].query.groups)))
    return [members[i] for i in order]


def _rows_number(part: Aggregation) -> int | None:
    """Return the number that identifies an aggregation's rows; None in a question with one aggregation."""
    return None if part.shared_bounds is None else part.shared_bounds.rows


def _choosing_together(parts: Sequence[Aggregation]) -> list[Aggregation]:
    """Return aggregations in which every limit that one of them chooses privately is chosen by all about the same rows;
    bounds are chosen by each for itself."""
    result = []
    for part in parts:
        names = {name for other in _of_same_rows(part, parts) for name in other.unstated if name in automatic.SHARES}
        if "max_rows" in names:
            names.discard("bias")
        bounds = {name: item for name, item in part.unstated.items() if name not in automatic.SHARES}
        shares = {name: automatic.SHARES[name] for name in sorted(names)}
        result.append(replace(part, unstated={**shares, **bounds}))
    return result


def may_use_either_noise(planned: AggregationPlan) -> bool:
    """Return whether limits are chosen together with the law of the noise: with many groups, public keys and a paid
    delta. Normal noise is better if people are in many groups, which the choice of limits shows."""
    return (
        "max_rows" in planned.automatic
        and planned.options.noise == "best"
        and isinstance(planned.guarantee, ApproxDP)
        and planned.selection is None
        and planned.profiled is None
        and planned.shared_bounds is None
        and number_of_groups(planned.keys, planned.ties) >= _MANY_GROUPS
    )


def plan_after_choices(charged: AggregationPlan, choices: automatic.Choices) -> AggregationPlan:
    """Return the plan of an aggregation after private choices (its own or those of the same rows), for the epsilon that
    they left."""
    epsilon, *delta = charged.guarantee.exact
    query, options = charged.query, charged.options
    if any(charged.automatic.values()):
        query = replace(query, aggregates=choices.query.aggregates)
    if choices.max_groups is not None:
        options = replace(options, max_groups=choices.max_groups)
    if choices.max_rows is not None:
        options = replace(options, max_rows=choices.max_rows, noise="gaussian" if choices.norm == 2 else "laplace")
        if charged.top is not None and choices.max_groups is None:  # which the limit on rows was chosen with
            options = replace(options, max_groups=charged.max_groups)
    left = epsilon - sum(charged.automatic.values(), Fraction(0)) - choices.spent_again
    known = (charged.keys, charged.ties) if choices.keys is None else choices.keys
    settled = aggregation_of(query, charged.card, options, charged.shared_bounds, known)
    by = charged if choices.sketched is None else choices.sketched
    settled = replace(settled, corrections={**by.corrections, **choices.corrections}, expected=by.expected)
    result = settled.with_budget(left, _delta_left(charged, delta[0] if delta else None))
    return replace(result, top=charged.top, top_keys=charged.top_keys)


def _no_delta(what: str, fix: str) -> InvalidArgument:
    """Return the error for ``what`` costs a delta where the budget has none."""
    expected = f"a budget with a delta, which {what} costs"
    return InvalidArgument("delta", expected, "a budget without one", f"{fix}, or have a delta added to the budget")


def _for_error(at: Callable[[float], QuestionPlan], error: float | str, least: float) -> QuestionPlan:
    """Return the plan with the smallest epsilon for which every count and sum is within the error, 95 %."""
    first_plan = at(max(1.0, least))
    wanted = _wanted_errors(first_plan, error)

    def reaches(epsilon: float) -> bool:
        """Return whether the plan at this epsilon has all wanted errors."""
        result = at(epsilon)
        if not any(part.counts or _with_errors(part) for part in result.parts):
            raise InvalidArgument(
                "error",
                "a count, a sum or a histogram, whose error does not depend on the data",
                "other aggregates only",
                *fix_by_options("pass {epsilon} instead, and ask for its ± before, by explain", epsilon=1),
            )
        return all(width <= enough for width, enough in zip(widths(result), wanted, strict=True))

    low, high = least, max(_LARGEST_EPSILON, least)
    if not reaches(high):
        raise InvalidArgument("error", "an error that protects people", error, *_larger_error(first_plan))
    if reaches(low):
        return _with_noise(at(low), error, first_plan)
    high = bisect_floats(reaches, low, high, geometric=True, tolerance=1 - 1 / 1.0005, steps=60).holds
    short = float(f"{high:.4g}")
    return _with_noise(at(short if short >= least and reaches(short) else high), error, first_plan)


def _larger_error(affordable: QuestionPlan) -> tuple[str, str]:
    """Return the advice (for Python and for the command line) to ask for the error that the plan ``affordable``
    reaches."""
    enough = math.ceil(max(widths(affordable)))
    return fix_by_options(f"pass {{error}} or more, which costs {affordable.cost}", error=enough)


def _wanted_errors(planned: QuestionPlan, error: float | str) -> list[float]:
    """Return the error that is good enough for each count, sum and histogram, in the order of :func:`widths`."""
    return [wanted for part in planned.parts for wanted in _wanted_errors_of(part, error)]


def _wanted_errors_of(planned: AggregationPlan, error: float | str) -> list[float]:
    """Return the wanted error of each count, sum and histogram of one private aggregation.

    A percentage is a share of the answer that the profile forecasts or, without one, of the card's rows divided by the
    number of public groups (and of bins), times half of the largest absolute bound for a sum.
    """
    names = _with_errors(planned)
    if not isinstance(error, str):
        return [arguments.positive(error, "error")] * (len(names) + len(planned.counts))
    share, rows = percentage(error), planned.card.rows
    if names and not planned.counts and set(names) <= set(planned.expected):
        return [share * planned.expected[name].answer for name in names]
    if rows is None:
        fix = "write rows = 100000 in the card, about as many as there are, or give the error as a number"
        raise InvalidArgument("error", "a percentage of what is public before asking", "no rows", fix)
    every = every_group(planned.keys, planned.ties)
    if every is None:
        fix = "state the keys of the groups, or give the error as a number"
        raise InvalidArgument("error", "a percentage, of groups that are public", "keys that are not public", fix)
    in_group = share * rows / max(len(every), 1)
    result = []
    for name in names:
        kind, moments = planned.query.aggregates[name].kind, planned.measures_of[name][0].moments
        if kind in ("people", "count_distinct"):
            counted = "people" if kind == "people" else "different values"
            fix = "give the error as a number, such as 50"
            raise InvalidArgument("error", "a percentage of rows", f"an answer that counts {counted}", fix)
        bounds = moments.bounds if moments is not None and kind == "sum" else None
        result.append(in_group * (1.0 if bounds is None else max(map(abs, bounds)) / 2))
    return result + [in_group / (len(count.aggregate.edges or ()) - 1) for count in planned.counts]


def _with_noise(planned: QuestionPlan, error: float | str, affordable: QuestionPlan) -> QuestionPlan:
    """Return the plan unchanged; refuse a wanted error so small that rounded counts would be exact with a probability
    of 95 %: one that is 0, or below 1 for counts. The error's advice is what the plan ``affordable`` reaches."""
    parts = planned.parts
    kinds = {part.query.aggregates[name].kind for part in parts for name in part.measures_of}
    counts = any(part.counts for part in parts) or kinds & {"count", "count_value", "count_distinct", "people"}
    if min(widths(planned)) == 0 or (counts and min(_wanted_errors(planned, error)) < 1):
        expected = "an error that leaves room for noise, from 1 on for counts"
        raise InvalidArgument("error", expected, error, *_larger_error(affordable))
    return planned


def _with_errors(planned: AggregationPlan) -> list[str]:
    """Return the answers whose errors are known before: counts and sums, and all that a profile forecasts."""
    kinds = {name: item.kind for name, item in planned.query.aggregates.items()}
    simple = [name for name in planned.measures_of if kinds[name] in SIMPLE]
    return list(dict.fromkeys([*simple, *planned.expected]))


def widths(planned: QuestionPlan, confidence: float = 0.95) -> list[float]:
    """Return the half-width of the interval of each count, sum and histogram of a plan."""
    result = []
    for part in planned.parts:
        for name in _with_errors(part):
            known = part.expected.get(name)
            result.append(expected_error(part, name, confidence) if known is None else known.typical)
        for count in part.counts:
            one = 1 << part.bin_limits(count.aggregate).bits()
            error = float(count.mechanism.error(confidence, integer=True)) / one
            result.append(error if one == 1 else float(rounded_error(error)))
    return result


def refuse_counted_groups(plan: QuestionPlan) -> None:
    """Refuse a question whose SQL uses groups with private keys but none of their keys.

    A group is shown from a threshold on, and smaller ones are missing: the number of groups, or their mean size, is
    then that of the large groups alone. Where each group is one person's, as those of the number of a visit are, none
    is left, and the answer was 0. Nothing public says how many groups are that small, so no ± could hold. Keys may be
    shown, used in conditions and joined on: a reader who sees them knows which groups an answer is of.
    """
    post, parts = plan.query.post, plan.parts
    if post is None or not any(part.selection for part in parts) or any(part.query.rolled_up for part in parts):
        return
    tree = nodes.parsed(post.sql)
    part_of = dict(zip(post.tables, parts, strict=True))
    blocks = [(select, part_of[name]) for select in tree.find_all(exp.Select) if (name := _table(select)) in part_of]
    inside = {id(node) for select, _ in blocks for node in select.walk()}
    outside = [node for node in tree.walk() if id(node) not in inside]
    if any(isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count) for node in outside):
        return
    used = {node.name.casefold() for node in outside if isinstance(node, exp.Identifier)}
    for select, part in blocks:
        private = {group.name for group, keys in zip(part.query.groups, part.keys, strict=True) if keys is None}
        is_shown = select.find_ancestor(exp.Select, exp.CTE) is None
        leaving = [item.alias_or_name for item in select.expressions if private & _columns(item)]
        if private and not is_shown and not used & {name.casefold() for name in leaving}:
            raise _refusal(part, sorted(private))


def _table(select: exp.Select) -> str:
    """Return the name of the table in a SELECT's FROM; an empty text if there is none, or a subquery."""
    start = select.args.get("from_")
    return start.this.name if start is not None and isinstance(start.this, exp.Table) else ""


def _columns(node: exp.Expr) -> set[str]:
    """Return the names of the columns in a piece of SQL."""
    return {column.name for column in node.find_all(exp.Column)}


def _refusal(part: AggregationPlan, private: list[str]) -> InvalidArgument:
    """Return the error for groups with private keys that SQL uses without showing them, with what to ask instead."""
    keys = ", ".join(private)
    unit = base_of(part.card).unit
    fix = f"COUNT(DISTINCT {private[0]}) counts them; or show {keys} in the answer"
    if unit is not None:
        fix = f"add {unit} to GROUP BY, for a row for each person and {keys}; {fix}"
    expected = "groups whose keys are shown, or are public: small groups are missing from others"
    return InvalidArgument("SQL", expected, f"groups by {keys} that are only counted or aggregated", fix)


def bounded_together(
    aggregations: Sequence[Query], card: Card, listed_only: bool = False
) -> list[tuple[Query, SharedBounds]]:
    """Return each aggregation of a question with how it is bounded together with the others.

    Levels of ROLLUP or CUBE with public keys are restricted to rows whose keys are all public, so that they add up.
    """
    keys = [keys_and_ties(query, card_of_question(query, card), listed_only) for query in aggregations]
    sizes = [number_of_groups(known, ties, private=MAX_TOTAL) for known, ties in keys]
    levels: dict[int, tuple[Query, Level]] = {}
    members_of: dict[object, list[int]] = {}
    hierarchies: dict[object, list[int]] = {}
    for place, query in enumerate(aggregations):
        members_of.setdefault(_rows(query), []).append(place)
        hierarchies.setdefault((_rows(query), frozenset(_all_columns(query))), []).append(place)
    for number, members in enumerate(hierarchies.values()):
        if any(aggregations[place].rolled_up for place in members):
            levels |= _levels(number, aggregations, members, card, listed_only)
    most = max([*sizes, *(math.prod(level.sizes) for _, level in levels.values())])
    numbers = {place: number for number, members in enumerate(members_of.values()) for place in members}
    result = []
    for place, query in enumerate(aggregations):
        with_keys, level = levels.get(place, (query, None))
        result.append((with_keys, SharedBounds(numbers[place], min(most, MAX_TOTAL), level)))
    return result


def _rows(query: Query) -> tuple[object, ...]:
    """Return a key that is equal for aggregations about the same rows under the same stated limits."""
    source = repr(query.source)  # whose columns are in dictionaries, which have no hash
    return query.where, query.joins, source, query.max_groups, query.max_rows


def _levels(
    hierarchy: int, aggregations: Sequence[Query], members: Sequence[int], card: Card, listed_only: bool
) -> dict[int, tuple[Query, Level]]:
    """Return aggregations of the same rows and columns as levels; none where some keys are not public, or some
    combinations of them do not occur."""
    by_value = {group.value: group for place in members for group in aggregations[place].groups}
    groups = list(by_value.values())
    first = aggregations[members[0]]
    keys, ties = keys_and_ties(replace(first, groups=tuple(groups)), card_of_question(first, card), listed_only)
    listed = {group.value: known for group, known in zip(groups, keys, strict=True) if known is not None}
    result: dict[int, tuple[Query, Level]] = {}
    if len(listed) < len(groups) or ties:
        return result
    for place in members:
        query = aggregations[place]
        where = query.where
        for group in query.rolled_up:
            has_key = _has_one_of(group.value, listed[group.value])
            where = has_key if where is None else Call("and", (where, has_key))
        shown = tuple(replace(group, keys=listed[group.value]) for group in query.groups)
        columns = tuple(i for i, group in enumerate(groups) if group.value in {item.value for item in shown})
        if [group.value for group in shown] == [groups[i].value for i in columns]:
            # levels are arrays whose axes are the columns in one order
            sizes = tuple(len(listed[group.value]) for group in groups)
            result[place] = replace(query, groups=shown, where=where), Level(hierarchy, columns, sizes)
    return result


def _all_columns(query: Query) -> list[Expression]:
    """Return the grouping expressions of all levels of the ROLLUP or CUBE that an aggregation belongs to."""
    return [group.value for group in (*query.groups, *query.rolled_up)]


def _has_one_of(value: Expression, keys: Sequence[Any]) -> Expression:
    """Return the condition that a value is one of these keys."""
    known = tuple(Literal(key) for key in keys if key is not None)
    result: Expression = Call("in", (value, *known))
    return Call("or", (result, Call("is_null", (value,)))) if None in keys else result
