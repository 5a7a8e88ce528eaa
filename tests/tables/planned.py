"""Plans of single aggregations, for tests of what is done with them."""

from __future__ import annotations

from typing import Any

from dither import arguments
from dither.tables.card.model import Card
from dither.tables.options import ReleaseOptions
from dither.tables.planning.plan import AggregationPlan, QuestionPlan, aggregation_of, check_statements
from dither.tables.query.tree import Query


def make(query: Query, card: Card, *, epsilon: Any, delta: Any = None, **options: Any) -> AggregationPlan:
    """The plan of an aggregation at a budget that no account of the card has to allow."""
    exact_delta = None if delta is None else arguments.delta(delta)
    return aggregation_of(query, card, ReleaseOptions(**options)).with_budget(arguments.epsilon(epsilon), exact_delta)


def check(plan: AggregationPlan) -> None:
    """Write every statement of it."""
    check_statements(QuestionPlan((plan,)))
