"""Neighbors of private relations: without one person, every other row of a relation is the same, bit for bit."""

from __future__ import annotations

import random
import struct
from collections import Counter
from typing import Any

import pytest

from dither.tables.compile import relations
from dither.tables.compile.relations import relation_sql
from dither.tables.engines import connect
from dither.tables.options import ReleaseOptions
from dither.tables.planning.calibrate import plan_question
from dither.tables.query import nodes
from dither.tables.query.nodes import placeholder
from dither.tables.query.relations import relation_card
from dither.tables.query.tree import PrivateRows, Source, Windowed, WindowFunction, sources
from dither.tables.sql.parse import parse
from support import each
from tables.glass import bounded, card, losses, table
from tables.random_relations import full_joined, relation, rows

pytestmark = pytest.mark.slow

CARD = card(max_groups=2, max_rows=3, delta=1e-6)


def bits(value: Any) -> Any:
    """A value so that it equals only itself: 0.0 and -0.0 are different doubles."""
    return struct.pack("<d", value) if isinstance(value, float) else value


class Relations:
    """Runs relations on given rows, in DuckDB."""

    def __init__(self) -> None:
        self.engine = connect(table([]), CARD)

    def result(self, source: Source, given: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
        self.engine.stage(self.engine._raw(CARD.name).name, table(given))
        sql = relation_sql(source, CARD, {}, "duckdb")
        text = nodes.render(sql, "duckdb", replacing={placeholder(""): self.engine.table})
        lines = self.engine.run(text).to_pylist()
        return Counter(tuple((name, bits(value)) for name, value in line.items()) for line in lines)


def others(result: Counter[tuple[Any, ...]], person: int) -> Counter[tuple[Any, ...]]:
    return Counter({line: count for line, count in result.items() if dict(line)["person"] != person})


def test_without_a_person_every_other_row_of_a_relation_stays_the_same_bit_for_bit():
    engine = Relations()
    kinds: Counter[str] = Counter()
    for seed in range(60):
        random_source = random.Random(seed)
        sql = full_joined(random_source) if seed % 6 == 0 else relation(random_source)
        question = parse(f"SELECT COUNT(*) AS n FROM ({sql}) AS q", CARD)
        given = rows(random_source, 14)
        removed = random_source.choice([1, 2, 3])
        left = [row for row in given if row["person"] != removed]
        random_source.shuffle(left)
        if question.source is None:
            continue
        kinds.update(type(item).__name__ for item in sources(question.source))
        whole, rest = engine.result(question.source, given), engine.result(question.source, left)
        assert rest == others(whole, removed), seed
        people = Counter(dict(line)["person"] for line in whole.elements())
        assert None not in people
        if relation_card(CARD, question.source).unit is None:  # planned as a table where every row is a person
            assert set(people.values()) <= {1}, seed
    assert set(kinds) == {"PrivateRows", "Projection", "PerPerson", "Windowed", "PersonJoin", "UnionAll"}
    engine.engine.close()


def test_the_comparison_notices_a_window_over_several_people(monkeypatch):
    """The test above fails where a relation mixes people."""
    engine = Relations()
    lines = [{"person": person, "amount": 10.0 * person, "town": "a"} for person in (1, 2, 3)]
    numbered = Windowed(PrivateRows(), {"place": WindowFunction("row_number")})
    assert engine.result(numbered, lines[1:]) == others(engine.result(numbered, lines), 1)
    window = relations.exp.Window

    def without_partition(**parts: Any) -> Any:
        return window(**{**parts, "partition_by": []})

    monkeypatch.setattr(relations.exp, "Window", without_partition)
    assert engine.result(numbered, lines[1:]) != others(engine.result(numbered, lines), 1)
    engine.engine.close()


@each("seed", range(40))
def test_what_reaches_a_mechanism_moves_by_no_more_than_is_paid_for(seed):
    random_source = random.Random(1000 + seed)
    sql = full_joined(random_source) if seed % 6 == 0 else relation(random_source)
    asked = random_source.choice(["COUNT(*) AS n", "COUNT(*) AS n, COUNT(x) AS c", "COUNT(x) AS c"])
    plan = plan_question(parse(f"SELECT {asked} FROM ({sql}) AS q", CARD), CARD, ReleaseOptions(epsilon=1.0)).parts[0]
    given = rows(random_source, 16)
    removed = random_source.choice([1, 2, 3])
    one = bounded(plan, table(given))
    other = bounded(plan, table([row for row in given if row["person"] != removed]))
    pure, normal = losses(plan, one, other)
    assert normal == 0
    assert pure <= 1 + 1e-9
