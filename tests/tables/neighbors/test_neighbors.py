"""Random questions about random hostile tables, with one person removed: nothing changes by more than is paid for.

What is checked of each question says :mod:`tables.neighbors.comparison`. A finding names the seeds of the table and of
the question, so that ``check_one(table_seed, question_seed, folder)`` shows it again.

By default the questions are the same in every run; with ``NEIGHBOR_QUESTIONS`` set (``make neighbors``) they are new.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlglot import exp

from dither.tables.compile import person_paths, relations, statements
from dither.tables.compile.context import StatementContext, smallest
from dither.tables.compile.limits import Limits
from dither.tables.engines import duckdb as duckdb_engine
from dither.tables.planning.plan import AggregationPlan, QuestionPlan
from dither.tables.query import nodes
from dither.tables.query.nodes import Dialect, binary, call, cast, coalesce, double, integer, plain_column
from dither.tables.query.operations import OPERATIONS
from dither.tables.query.tree import Call, walk
from dither.tables.sql.parse import parse
from tables.kept_databases import databases_kept
from tables.neighbors import random_sql, random_tables
from tables.neighbors.comparison import Finding, table_pair
from tables.neighbors.random_profiles import random_profile
from tables.neighbors.random_sql import RandomQuestion

pytestmark = [pytest.mark.slow]
if "NEIGHBOR_QUESTIONS" in os.environ:  # a search with fresh seeds, of exact statements: no draw is a false alarm
    pytestmark.append(pytest.mark.statistical(alpha=0))

QUESTIONS, PARTS, QUESTIONS_OF_A_TABLE = int(os.environ.get("NEIGHBOR_QUESTIONS", "400")), 2, 50
QUESTIONS_FOR_A_DEFECT, SEED_FOR_DEFECTS = max(QUESTIONS, 1200), 7


def seeds(part: int) -> random.Random:
    """Where the seeds of one part of the search come from."""
    return random.SystemRandom() if "NEIGHBOR_QUESTIONS" in os.environ else random.Random(part)


@databases_kept()
def search(
    questions: int,
    folder: Any,
    seeds: random.Random,
    of_a_table: int = QUESTIONS_OF_A_TABLE,
    with_profiles: bool = False,
) -> Counter[str]:
    """Check random questions, and count what they were like; a finding is raised. ``with_profiles`` the card has a
    random profile for each."""
    counts: Counter[str] = Counter()
    for _ in range(questions // of_a_table):
        table_seed = seeds.getrandbits(48)
        with table_pair(random.Random(table_seed), folder) as pair:
            for _ in range(of_a_table):
                question_seed = seeds.getrandbits(48)
                question = RandomQuestion(random.Random(question_seed), pair.card.unit)
                if with_profiles:
                    _profile(pair, question, question_seed)
                counts.update(_checked(pair, question, table_seed, question_seed))
    return counts


def _checked(pair: Any, question: RandomQuestion, table_seed: int, question_seed: int) -> list[str]:
    try:
        plan = pair.check(question)
    except Exception as error:
        where = f"check_one({table_seed}, {question_seed}, folder), unit {pair.card.unit}, {question.options}"
        raise Finding(f"{error}\n{question.sql}\n{where}") from error
    return ["refused"] if plan is None else ["accepted", *features(plan)]


def _profile(pair: Any, question: RandomQuestion, seed: int) -> None:
    """Give the card the random profile of a question, which mostly leaves limits to it."""
    pick = random.Random(f"profile {seed}")
    pair.card = replace(pair.card, profile=random_profile(pick, replace(pair.card, profile=None)))
    if pick.random() < 0.8:
        question.options["max_rows"] = "auto"


def check_one(table_seed: int, question_seed: int, folder: Any, with_profile: bool = False) -> None:
    """One question about one table again."""
    with table_pair(random.Random(table_seed), folder) as pair:
        question = RandomQuestion(random.Random(question_seed), pair.card.unit)
        if with_profile:
            _profile(pair, question, question_seed)
        pair.check(question)


def features(plan: QuestionPlan) -> list[str]:
    """What a plan has to do with."""
    result = [f"unit {plan.parts[0].card.unit}", *(["several aggregations"] if len(plan.parts) > 1 else [])]
    result += ["outer SQL"] if plan.query.post is not None else []
    for part in plan.parts:
        result.append(f"norm {part.limits.norm}")
        result.append("private keys" if part.selection is not None else "public keys" if part.keys else "one group")
        result += ["automatic"] if part.automatic else []
        result += ["profiled"] if part.profiled is not None else []
        result += ["sketched"] if part.profiled is not None and part.profiled.to_sketch else []
        result += ["own limits" for item in part.query.aggregates.values() if item.rows_per_person is not None]
        result += ["top keys"] if part.top_keys is not None else []
        result += ["join"] if part.query.joins else []
        result += ["relation"] if part.query.source is not None else []
        result += [aggregate.kind for aggregate in part.query.aggregates.values()]
    return result


@pytest.mark.parametrize("part", range(PARTS))
def test_neighbors_can_tell_no_more_than_is_charged(part, tmp_path):
    """Everything that the assertion at the end names is in one of 25 questions or more, so that 500 random questions
    without it come with a probability below 1e-8."""
    counts = search(QUESTIONS // PARTS, tmp_path, seeds(part))
    assert counts["accepted"] > 0.7 * QUESTIONS / PARTS, counts
    if "NEIGHBOR_QUESTIONS" in os.environ and QUESTIONS // PARTS < 500:
        return
    expected = {
        "norm 1", "norm 2", "private keys", "public keys", "one group", "automatic", "join",
        "outer SQL", "relation", "several aggregations", "top keys", "count", "count_value", "count_distinct", "people",
        "sum", "mean", "var", "std", "min", "max", "quantile", "mode", "corr",
    }  # fmt: skip
    assert expected <= counts.keys()


def test_a_profile_lets_neighbors_tell_no_more(tmp_path):
    """Limits, bounds and corrections by a random profile for each question: they are the same for neighbors."""
    number = max(QUESTIONS // 4, 60) if "NEIGHBOR_QUESTIONS" in os.environ else 60
    counts = search(number, tmp_path, seeds(PARTS), of_a_table=20, with_profiles=True)
    assert counts["accepted"] > 0.5 * number, counts
    assert {"profiled", "sketched", "own limits", "public keys", "mean"} <= counts.keys()


def test_the_generator_asks_about_every_operation():
    card = random_tables.card(None, "")
    templates = [template for listed in random_sql.EXPRESSIONS.values() for template in listed]
    assert {node.op for template in templates for node in walk_of(template, card)} == set(OPERATIONS)


def walk_of(template: str, card: Any) -> list[Call]:
    """The operations of a template of expressions, each slot being a plain column."""
    columns = {
        "number": "amount",
        "integer": "age",
        "text": "town",
        "date": "ever",
        "timestamp": "at",
        "boolean": "vip",
    }
    for kind, name in columns.items():
        template = template.replace(f"{{{kind}}}", name)
    query = parse(f"SELECT COUNT({template}) FROM visits", card)
    (aggregate,) = query.aggregates.values()
    assert aggregate.value is not None
    return [node for node in walk(aggregate.value) if isinstance(node, Call)]


# -- defects that the search must find ------------------------------------------------------------------------------

Plant = Callable[[pytest.MonkeyPatch], None]


def _more_than_paid_for(limit: str) -> Plant:
    """Statements that let a person count for one group more, or for one row more, than the plan pays for."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        frame = AggregationPlan.statement_context

        def with_more(self: AggregationPlan, *rest: Any) -> StatementContext:
            context = frame(self, *rest)
            return replace(context, limits=replace(context.limits, **{limit: getattr(context.limits, limit) + 1}))

        monkeypatch.setattr(AggregationPlan, "statement_context", with_more)

    return plant


def _forgotten_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody counts in full."""
    monkeypatch.setattr(Limits, "weight", lambda self, _size, _dialect: integer(1 << self.bits()))


def _forgotten_weight_of_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of people who are in more groups than they may count in."""
    weight = Limits.weight

    def planted(self: Limits, size: Any, dialect: Dialect) -> Any:
        return integer(1 << self.bits()) if self.rows == 1 and self.groups > 1 else weight(self, size, dialect)

    monkeypatch.setattr(Limits, "weight", planted)


def _square_for_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The l2 norm of a person takes the number of rows for the sum of squares."""
    weight = Limits.weight

    def planted(self: Limits, size: Any, dialect: Dialect) -> Any:
        if self.norm == 2 and "*" in size.sql():
            size = cast(call("SQRT", cast(size, "number")), "integer")
        return weight(self, size, dialect)

    monkeypatch.setattr(Limits, "weight", planted)


def _norm_of_the_largest_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """The groups of a person do not add up."""
    size_of = statements._size

    def size(limits: Limits, by_person: bool, windows: bool) -> Any:
        if not by_person or windows:
            return size_of(limits, by_person, windows)
        n = plain_column("n")
        return call("MAX", binary("*", n, n) if limits.norm == 2 else n)

    monkeypatch.setattr(statements, "_size", size)


def _weight_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    quotient = nodes.integer_quotient
    monkeypatch.setattr(nodes, "integer_quotient", lambda *of: binary("+", quotient(*of), integer(1)))


def _ties_by_physical_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of a person with the same keyed hash are kept as they come."""

    def first(self: StatementContext, pairs: Any) -> Any:
        return smallest(pairs, ["u"], self.keyed_hash(), self.limits.groups, ["u", *self.names])

    monkeypatch.setattr(StatementContext, "_first_groups", first)


def _groups_by_the_rows_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which groups of a person are kept goes by the numbers of their keys, which depend on who else is there."""
    monkeypatch.setattr(
        StatementContext,
        "keyed_hash",
        lambda *_: binary("%", binary("*", plain_column("g0"), integer(7919)), integer(31)),
    )


def _collation_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and people that differ in their bytes are one where the collation of the column says so."""
    monkeypatch.setattr(duckdb_engine.nodes, "bytewise", lambda x, _dialect: x)


def _floating_point_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weighted numbers are added up as doubles, and become whole numbers at the end."""
    monkeypatch.setattr(
        statements, "total", lambda x: cast(coalesce(call("FLOOR", call("SUM", _thirds(x))), integer(0)), "integer")
    )


def _thirds(x: Any) -> Any:
    return binary("*", cast(x, "number"), double(1 / 3))


def _join_of_all_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of one person are joined with those of another."""

    def planted(op: str, left: Any, right: Any) -> Any:
        if op == "=" and [getattr(side, "table", None) for side in (left, right)] == ["l", "r"]:
            return exp.true()
        return binary(op, left, right)

    monkeypatch.setattr(relations, "binary", planted)


def _window_over_all_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """Window functions look at the rows of others."""
    window = relations._Compiler._window

    def planted(self: Any, *rest: Any) -> Any:
        parts, result = window(self, *rest)
        for node in (node for part in parts for node in part.find_all(exp.Window)):
            node.set("partition_by", node.args["partition_by"][1:])
        return parts, result

    monkeypatch.setattr(relations._Compiler, "_window", planted)


def _shared_keys_lead_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row whose key several people have is nobody's, so that each of them can take it from the others."""

    def planted(name: str, *arguments: Any) -> Any:
        if name != "MIN":
            return call(name, *arguments)
        least, most = call("MIN", *arguments), call("MAX", *arguments)
        return nodes.case([(binary("=", least, most), least)], nodes.literal(None))

    monkeypatch.setattr(person_paths, "call", planted)


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(_more_than_paid_for("groups"), id="one group more"),
        pytest.param(_more_than_paid_for("rows"), id="one row more"),
        _forgotten_weight, _forgotten_weight_of_people, _square_for_the_number, _norm_of_the_largest_group,
        _weight_rounded_up, _ties_by_physical_order, _groups_by_the_rows_of_others,
        _collation_of_the_source, _floating_point_sum,
        _join_of_all_people, _window_over_all_people, _shared_keys_lead_to_nobody,
    ],
)  # fmt: skip
def test_a_planted_defect_is_found(plant, monkeypatch, tmp_path):
    plant(monkeypatch)
    with pytest.raises(Finding) as caught:
        search(
            QUESTIONS_FOR_A_DEFECT, tmp_path, seeds(SEED_FOR_DEFECTS), of_a_table=8
        )  # some defects show in few tables only
    assert isinstance(caught.value.__cause__, Finding)  # and no error of what was planted
