"""Random profiles of a card: of people in few bins, spread evenly or in a tail, with noise of three sizes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from dither.guarantees import PureDP
from dither.tables.card.model import Card, PrivateTable
from dither.tables.card.profile import ColumnProfile, NoisyHistogram, NoisyKeys, NoisyNumber, Profile, TableProfile
from dither.tables.planning.automatic import EDGES
from dither.tables.planning.profile_plan import KEY_EDGES, days_since_1970, plan_profile


def random_profile(pick: random.Random, card: Card) -> Profile:
    """A profile that a card may have, whatever its rows are."""
    plans = {plan.name: plan for plan in plan_profile(card, 1).tables}
    tables = {name: _table(pick, table, plans[name]) for name, table in card.private_tables.items()}
    return Profile(tables, PureDP(1), datetime(2026, 1, 1, tzinfo=UTC))


def _table(pick: random.Random, table: PrivateTable, plan: Any) -> TableProfile:
    people = pick.choice([3, 100, 2000, 1e6])
    has_people = table.unit is not None
    classes = tuple(sorted(pick.sample([1, 2, 4, 8, 64, 1000], pick.randint(1, 3)))) if has_people else ()
    columns = {}
    for column in plan.columns:
        kinds = column.kinds(has_people)
        known: dict[str, Any] = {"type": column.type}
        if "values" in kinds:
            edges = [edge if isinstance(edge, (int, float)) else days_since_1970(edge) for edge in column.edges]
            known["values"] = _histogram(pick, edges, len(edges) - 1, people)
            known["nulls"] = pick.choice([0.0, people * 0.1, -3.0])
            if "by_rows" in kinds and len(classes) > 1:
                of_class = people / len(classes)
                known["by_rows"] = tuple(_histogram(pick, edges, len(edges) - 1, of_class) for _ in classes)
        if "whole" in kinds:
            known["whole"] = NoisyNumber(pick.choice([0.0, people]), scale=3.0)
        if "keys" in kinds:
            drawn = _histogram(pick, range(len(column.keys) + 1), len(column.keys), people)
            known["keys"] = NoisyKeys(column.keys, drawn.weights, scale=drawn.scale, normal=drawn.normal)
        if "private_keys" in kinds:
            known["private_keys"] = _histogram(pick, KEY_EDGES, len(KEY_EDGES) - 1, people)
        if "keys_per_person" in kinds:
            known["keys_per_person"] = _histogram(pick, KEY_EDGES[1:], len(KEY_EDGES) - 1, people)
        if pick.random() < 0.85:
            columns[column.name] = ColumnProfile(**known)
    rows = _histogram(pick, EDGES, len(EDGES), people) if has_people else None
    return TableProfile(rows, columns, NoisyNumber(people, scale=3.0), classes)


def _histogram(pick: random.Random, edges: Sequence[float], bins: int, people: float) -> NoisyHistogram:
    scale, normal = pick.choice([0.5, 3.0, 30.0]), pick.random() < 0.4
    where = pick.choice(["one bin", "all bins", "a tail"])
    shares = np.exp(-np.arange(bins) / pick.choice([1, 3, 10])) if where == "a tail" else np.ones(bins)
    if where == "one bin":
        shares = np.eye(bins)[pick.randrange(bins)]
    noise = np.random.default_rng(pick.getrandbits(32)).laplace(0, scale, bins)
    weights = people * shares / shares.sum() + noise
    return NoisyHistogram(tuple(map(float, edges)), tuple(weights.tolist()), scale=scale, normal=normal)
