"""Public rules against DuckDB: which cells are possible, and that no record violates a rule."""

from __future__ import annotations

import itertools
from datetime import date

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import dither as dp
from dither.publish import Attribute, Domain, Synthesizer
from dither.publish.constraints import rules_of
from dither.publish.record_values import record_columns
from support import refuses

MARITAL = ["single", "married", "widowed"]
DOMAIN = Domain(
    [
        Attribute.flat("marital", MARITAL, null=True),
        Attribute.binned("age", [0, 10, 20, 65, 100], null=True, other="outside"),
        Attribute.binned("income", [0.0, 0.5, 10.0], null=True),
        Attribute.flat("school", ["none", "primary", "university"]),
        Attribute.flat("working", [True, False]),
    ]
)
CONDITIONS = [
    "NOT (marital = 'married' AND age < 15)",
    "marital <> 'widowed' OR age >= 18",
    "school <> 'university' OR age BETWEEN 17 AND 80",
    "NOT (school = 'none' AND age > 12 AND age <> 40)",
    "working OR income = 0",
    "NOT working OR income > 0.25",
    "age IS NOT NULL OR marital IS NULL",
    "NOT (marital IN ('married', 'widowed') AND age IN (16, 17))",
    "NOT (age <= 15 AND working)",
    "UPPER(school) <> 'NONE' OR marital = 'single' OR marital IS NULL",
]


def counts_for(synthesizer, seed):
    """Counts of people who know nothing of rules."""
    generator = np.random.default_rng(seed)
    codes = [generator.integers(0, size, 3000) for size in synthesizer.sizes]
    result = {}
    for levels in synthesizer.tables:
        places = [i for i, level in enumerate(levels) if level]
        shape = [synthesizer.sizes[i] for i in places]
        flat = np.ravel_multi_index([codes[i] for i in places], shape)
        result[levels] = np.bincount(flat, minlength=int(np.prod(shape)))
    return result


def violations(records, conditions):
    """How many records violate a condition, by DuckDB; NULL violates nothing."""
    with duckdb.connect() as connection:
        connection.register("records", records)
        return [
            connection.sql(f"SELECT count(*) FROM records WHERE NOT ({condition})").fetchall()[0][0]
            for condition in conditions
        ]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_no_record_violates_a_rule(seed):
    generator = np.random.default_rng(seed)
    chosen = generator.choice(len(CONDITIONS), 6, replace=False)
    conditions = [CONDITIONS[i] for i in chosen]
    plain = Synthesizer(DOMAIN, dp.ZCDP(0.5))
    ruled = Synthesizer(DOMAIN, dp.ZCDP(0.5), constraints=conditions)
    counts = counts_for(plain, seed)
    assert all(violations(plain.release(counts, rows=3000).records, conditions))  # the rules do exclude people
    assert violations(ruled.release(counts, rows=20_000).records, conditions) == [0] * len(conditions)


def all_values(attribute):
    """Every value that a code of an attribute of whole numbers or keys can stand for."""
    if attribute.edges is None:
        return [[key] for key in attribute.keys[-1].to_pylist()]
    bins = [[*range(int(low), int(high))] for low, high in itertools.pairwise(attribute.edges)]
    return [*bins, *([[None]] * (attribute.sizes[-1] - len(bins)))]


@pytest.mark.parametrize("condition", [text for text in CONDITIONS if "income" not in text])
def test_possible_cells_are_those_in_which_some_values_satisfy_the_rule(condition):
    """All values of whole numbers are tried, by DuckDB."""
    (rule,) = rules_of([condition], record_columns(DOMAIN))
    attributes = [DOMAIN.attributes[place] for place in rule.table]
    rows = [
        (*codes, *values)
        for codes in itertools.product(*(range(attribute.sizes[-1]) for attribute in attributes))
        for values in itertools.product(
            *(all_values(attribute)[code] for attribute, code in zip(attributes, codes, strict=True))
        )
    ]
    names = [f"code_{i}" for i in range(len(attributes))] + [attribute.name for attribute in attributes]
    types = [pa.int64()] * len(attributes) + [
        pa.int64() if attribute.edges else attribute.keys[-1].type for attribute in attributes
    ]
    data = pa.table([pa.array(c, type=t) for c, t in zip(zip(*rows, strict=True), types, strict=True)], names=names)
    with duckdb.connect() as connection:
        connection.register("data", data)
        keys = ", ".join(names[: len(attributes)])
        possible = connection.sql(
            f"SELECT {keys}, bool_or(coalesce({condition}, true)) FROM data GROUP BY {keys}"
        ).fetchall()
    expected = np.zeros([attribute.sizes[-1] for attribute in attributes], dtype=bool)
    for *codes, flag in possible:
        expected[tuple(codes)] = flag
    np.testing.assert_array_equal(rule.allowed, expected)


def test_numbers_are_spread_evenly_over_the_allowed_part_of_a_bin():
    """At most 15 of the 65 ages of one bin are allowed: all of them occur, about equally often."""
    domain = Domain([Attribute.flat("job", ["a", "b"]), Attribute.binned("age", [0, 65])])
    synthesizer = Synthesizer(domain, dp.ZCDP(1), constraints=["job = 'a' OR age >= 50"])
    records = synthesizer.release({(1, 0): [500, 500], (0, 1): [1000], (1, 1): [[500], [500]]}, rows=40_000).records
    ages, jobs = records.column("age").to_numpy(), np.array(records.column("job").to_pylist())
    counts = np.bincount(ages[jobs == "b"], minlength=65)
    assert counts[:50].sum() == 0
    expected = counts.sum() / 15
    assert np.all(np.abs(counts[50:] - expected) < 7 * np.sqrt(expected))
    others = np.bincount(ages[jobs == "a"], minlength=65)
    assert np.all(np.abs(others - others.mean()) < 7 * np.sqrt(others.mean()))


def test_rules_hold_for_few_records_as_well():
    """Few records may have none in a cell that a limit divides."""
    synthesizer = Synthesizer(DOMAIN, dp.ZCDP(0.5), constraints=CONDITIONS[:1])
    stored = synthesizer.measure(counts_for(synthesizer, 3))
    for rows in (1, 2, 5):
        assert violations(synthesizer.read(stored, rows=rows).records, CONDITIONS[:1]) == [0]


def test_single_points_of_an_interval_and_dates_inside_periods():
    days = [date(2024, month, 1) for month in range(1, 13)]
    domain = Domain(
        [
            Attribute.flat("paid", [True, False]),
            Attribute.binned("amount", [-1.0, 10.5, 20.5]),
            Attribute.flat("day", days),
        ]
    )
    conditions = ["paid OR amount = 0", "NOT paid OR amount > 10", "day < '2024-03-15' OR paid"]
    synthesizer = Synthesizer(domain, dp.ZCDP(1), constraints=conditions, periods={"day": "month"})
    records = synthesizer.release(counts_for(synthesizer, 1), rows=5000).records
    assert violations(records, conditions) == [0, 0, 0]
    paid, amount = np.array(records.column("paid").to_pylist()), records.column("amount").to_numpy()
    assert 0 < paid.mean() < 1
    assert np.all(amount[~paid] == 0)
    assert amount[paid].max() < 20.5
    drawn = records.column("day").to_pylist()
    assert {day.month for day in drawn} == {*range(1, 13)}
    assert {day.day for day in drawn} == {*range(1, 32)}
    assert max(day for day, flag in zip(drawn, paid, strict=True) if not flag) == date(2024, 3, 14)


def test_rules_that_contradict_one_another_or_cannot_be_kept_are_refused():
    def synthesizer(*constraints, domain=DOMAIN):
        return Synthesizer(domain, dp.ZCDP(1), constraints=constraints)

    with refuses(dp.InvalidArgument, "constraints on age", "at least one possible record"):
        synthesizer("age > 50", "age < 50", "age IS NOT NULL")
    with refuses(dp.InvalidArgument, "constraints", "at least one possible record"):
        synthesizer("marital = 'single' AND marital IS NOT NULL", "working AND marital = 'married'")
    with refuses(dp.InvalidArgument, "compared with constants", "age < 15"):
        synthesizer("age + 1 < 15")
    with refuses(dp.InvalidArgument, "compared with constants"):
        synthesizer("age < income")
    with refuses(dp.InvalidArgument, "column", "'agee'"):
        synthesizer("agee < 15")
    with refuses(dp.InvalidArgument, "a condition on columns"):
        synthesizer("1 = 1")
    with refuses(dp.InvalidArgument, "a condition", "age + 1"):
        synthesizer("age + 1")
    wide = Domain([Attribute.binned(name, range(0, 1000, 2)) for name in "ab"])
    with refuses(dp.InvalidArgument, "constraints on a × b", "200,000 combinations"):
        synthesizer("a < 5 OR b < 5", domain=wide)


@pytest.mark.parametrize("condition", ["age > 200", "marital = 'divorced'", "income IS NULL"])
def test_rules_that_only_nulls_meet_are_refused(condition):
    """They would leave records of nothing but NULLs."""
    with refuses(dp.InvalidArgument, "at least one possible record", "NULLs only"):
        rules_of([condition], record_columns(DOMAIN))


def test_one_rule_may_be_given_alone_and_in_python():
    columns = record_columns(DOMAIN)
    for constraint in ("age >= 20", [dp.col("age") >= 20]):
        (rule,) = rules_of(constraint, columns)
        assert rule.allowed.tolist() == [False, False, True, True, True, True]
