"""The statements of a profile: one person changes each part by no more than it is paid for, whoever else is there.

Random hostile tables with one person removed, as in :mod:`tables.neighbors`: a whole profile is replayed on both, and
what every statement says about a table is what it says about the others and about the person alone.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace
from unittest.mock import patch

import pyarrow as pa
import pytest
from sqlglot import exp

import dither as dp
from dither.audit.outputs import observe
from dither.tables.compile import marginals
from dither.tables.compile.context import Statement, StatementContext
from dither.tables.compile.limits import Limits
from dither.tables.planning import profile_plan
from dither.tables.planning.profile_plan import ProfilePlan, plan_profile
from dither.tables.profile import measure
from dither.tables.query.nodes import integer
from dither.tables.query.tree import Query
from tables.neighbors.comparison import SIDES, Finding, Side, TablePair, _NoMemory, table_pair

pytestmark = [pytest.mark.slow]
if "NEIGHBOR_QUESTIONS" in os.environ:  # a search with fresh seeds, of exact statements: no draw is a false alarm
    pytestmark.append(pytest.mark.statistical(alpha=0))

TABLES, TABLES_FOR_A_DEFECT = 16, 24


def check(pair: TablePair, pick: random.Random) -> int:
    """Raise a :class:`Finding` if a profile of the table is not private; return how many statements it has."""
    costs = [{"epsilon": 1}, {"epsilon": 0.1}, {"epsilon": 1, "delta": 1e-6}, {"rho": 0.1}]
    card = replace(pair.card, budget=dp.ApproxDP(1, 1e-3))
    present = {name for table in card.private_tables.values() for name in table.columns}
    # the keys of paths are different in the rows that are compared, so that they do not lead from some to the others
    plan = plan_profile(card, **pick.choice(costs), without=sorted({"removed", "number", "note"} & present))
    contexts = _contexts(pair, plan)
    sides: list[Side] = []

    def release(name: str) -> object:
        sides.append(Side(pair, name))
        return measure(plan, contexts, lambda statement: _as_arrow(sides[-1], statement))

    with patch.object(observe, "_Memory", _NoMemory):
        result = dp.audit.replay(release, "whole", "fewer", claim=plan.guarantee, rounds=1)
    if result.ended:
        raise Finding(f"every run ended in {result.ended}")
    if not result.passed:
        raise Finding(str(result))
    if sides[0].log != sides[1].log:
        raise Finding("which statements are run depends on the data")
    for text in sides[0].log:
        _check_additivity(pair, text)
    return len(sides[0].log)


def _contexts(pair: TablePair, plan: ProfilePlan) -> list[StatementContext]:
    """The contexts of a profile about the rows of one side."""
    first, last = (exp.func("GETVARIABLE", exp.Literal.string(name)) for name in ("first", "last"))
    contexts = []
    for table in plan.tables:
        node = exp.select("*").from_(pair.engine.private(table.name))
        rows = node.where(exp.column("removed").between(first, last)).subquery()
        own, limits = pair.card.for_table(table.name), marginals.profile_limits(table.unit is not None)
        contexts.append(StatementContext(Query({}), own, (), limits, 0, "duckdb", {"": rows}))
    return contexts


def _as_arrow(side: Side, statement: Statement) -> pa.Table:
    side.log.append(statement.text)
    names, rows = side.pair.run(statement.text, side.name)
    return pa.table({name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate(names)})


def _check_additivity(pair: TablePair, text: str) -> None:
    whole, fewer, alone = (pair._lines(text, side) for side in SIDES)
    if "GREATEST" in text:  # layers: each grows with the weights of keys, and all of them by no more than these
        numbers = [lines[()] for lines in (whole, fewer, alone)]
        grown = [together - others for together, others in zip(numbers[0], numbers[1], strict=True)]
        if min(grown) < 0 or sum(grown) > sum(numbers[2]):
            raise Finding("one person changes layers by more than the person's weight")
        return
    for key in {*whole, *fewer, *alone}:
        together, others, own = (lines.get(key, (0,))[0] for lines in (whole, fewer, alone))
        if together != others + own:
            raise Finding("what one person adds depends on other people")


def search(tables: int, folder, seed: int) -> int:
    """Check profiles of random tables; how many statements were run."""
    seeds = random.SystemRandom() if "NEIGHBOR_QUESTIONS" in os.environ else random.Random(seed)
    statements = 0
    for _ in range(tables):
        table_seed = seeds.getrandbits(48)
        with table_pair(random.Random(table_seed), folder) as pair:
            try:
                statements += check(pair, random.Random(table_seed))
            except Exception as error:
                raise Finding(f"{error}\ntable {table_seed}, unit {pair.card.unit}") from error
    return statements


def test_neighbors_of_a_profile_can_tell_no_more_than_is_charged(tmp_path):
    assert search(TABLES, tmp_path, 3) > 5 * TABLES


# -- defects that the search must find --------------------------------------------------------------------------------


def _weight_dropped(monkeypatch):
    monkeypatch.setattr(Limits, "weight", lambda self, _size, _dialect: integer(1 << self.bits()))


def _one_epsilon_for_two_columns(monkeypatch):
    """Every part is paid for as if it had its own and half of another's share."""
    shares = profile_plan.noise_of
    monkeypatch.setattr(profile_plan, "noise_of", lambda g, normal, share, one: shares(g, normal, 2 * share, one))


def _unpaid_bits(monkeypatch):
    """Weights have twice the units that the noise is for."""
    monkeypatch.setattr(ProfilePlan, "noise", lambda plan, part, one: profile_plan.noise_of(
        plan.guarantee, plan.normal, plan.shares[part], max(one // 2, 1)))  # fmt: skip


def _keys_counted(monkeypatch):
    """A person counts in full for every key."""
    weighted = StatementContext.weighted

    def planted(self, lines, limits):
        rows, before, weights = weighted(self, lines, limits)
        return rows, before, weights if self.card.unit is None else exp.Mul(this=weights, expression=integer(2))

    monkeypatch.setattr(StatementContext, "weighted", planted)


@pytest.mark.parametrize("plant", [_weight_dropped, _one_epsilon_for_two_columns, _unpaid_bits, _keys_counted])
def test_a_planted_defect_is_found(plant, monkeypatch, tmp_path):
    plant(monkeypatch)
    with pytest.raises(Finding):
        search(TABLES_FOR_A_DEFECT, tmp_path, 7)
