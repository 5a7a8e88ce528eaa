"""Sums of a person's values are of values within bounds, and an answer says so where one may lie beyond them."""

from __future__ import annotations

import dither as dp
from support import each
from tables.raw_rows import alike, answered, truth
from tables.test_conditions import AGE_BOUNDS, AGES


@each(
    ("rows", "held"),
    [
        ("(SELECT who FROM data GROUP BY who HAVING SUM(amount) > 120)", ["amount"]),
        ("(SELECT who, AVG(age) AS m FROM data GROUP BY who) AS s WHERE m > 35", ["age"]),
        ("(SELECT *, SUM(amount * 2) OVER (PARTITION BY who) AS s FROM data) AS t WHERE s > 9", ["amount"]),
        ("(SELECT who, SUM(CASE WHEN amount > 9 THEN 1 ELSE 0 END) AS k FROM data GROUP BY who) WHERE k > 0", []),
        ("(SELECT who, MAX(amount) AS k FROM data GROUP BY who) WHERE k > 120", []),
        ("data WHERE amount > 120", []),
    ],
)
def test_sums_of_a_persons_values_say_that_these_are_held_within_bounds(rows, held):
    sql = f"SELECT COUNT(*) AS n FROM {rows}"
    with dp.open(AGES, unit="who", bounds=AGE_BOUNDS, budget=dp.PureDP(1000)) as table:
        answer = answered(table, sql)
    assert [note.split()[2] for note in answer.notes if "before they are added up for each who" in note] == held
    if not held:
        assert alike(answer.rows, truth(sql, data=AGES))
