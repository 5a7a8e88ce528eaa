"""Groups with private keys that are only counted are refused before the charge; what is advised instead is answered."""

from __future__ import annotations

import pyarrow as pa
import pytest

import dither as dp
from tables.raw_rows import alike, answered, truth

NUMBERED = pa.table(
    {
        "who": [i // 4 for i in range(1200)],
        "visit": list(range(1200)),
        "city": [("x", "y", "z")[i % 3] for i in range(1200)],
        "cost": [float(i % 9) for i in range(1200)],
    }
)
BY_VISIT = "SELECT visit, COUNT(*) AS n, AVG(cost) AS m FROM data GROUP BY visit"
COUNTED = [
    f"WITH v AS ({BY_VISIT}) SELECT COUNT(*) AS k FROM v",
    f"WITH v AS ({BY_VISIT}) SELECT AVG(n) AS k, MAX(m) AS l FROM v WHERE n > 1",
    f"SELECT n, COUNT(*) AS k FROM ({BY_VISIT}) GROUP BY n",
    f"WITH v AS ({BY_VISIT}), w AS ({BY_VISIT}) SELECT (SELECT COUNT(*) FROM v) - (SELECT COUNT(n) FROM w) AS k",
    "SELECT AVG(n) AS k FROM (SELECT COUNT(*) AS n FROM data GROUP BY visit)",
    f"SELECT (SELECT SUM(n) FROM ({BY_VISIT})) / COUNT(*) AS share FROM data",
]
SHOWN = [
    "SELECT city, COUNT(*) AS n FROM data GROUP BY city",
    "SELECT COUNT(*) AS n FROM data GROUP BY city",
    "WITH v AS (SELECT city, COUNT(*) AS n FROM data GROUP BY city) "
    "SELECT city, n, n / (SELECT SUM(n) FROM v) AS s FROM v",
    "SELECT city, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM data GROUP BY city",
    "SELECT * FROM (SELECT city AS c, COUNT(*) AS n FROM data GROUP BY city) WHERE n > 5",
    "SELECT SUM(n) AS k FROM (SELECT city AS c, COUNT(*) AS n FROM data GROUP BY city) WHERE c IN ('x', 'y')",
    "SELECT city, COUNT(*) AS n FROM data GROUP BY city UNION ALL SELECT 'all', COUNT(*) FROM data",
    "SELECT city, COUNT(*) AS n FROM data GROUP BY ROLLUP (city)",
]


def numbered() -> dp.Table:
    stated = {"unit": "who", "bounds": {"cost": (0, 10)}, "max_groups": 4, "max_rows": 4, "delta": 1e-6}
    return dp.open(NUMBERED, **stated, budget=dp.ApproxDP(100, 1e-3))


@pytest.mark.parametrize("sql", COUNTED)
def test_groups_of_private_keys_that_are_only_counted_are_refused_before_the_charge(sql):
    with numbered() as table:
        before = table.accounts.left(None)
        for ask in (table.sql(sql).release, table.sql(sql).explain):
            with pytest.raises(dp.InvalidArgument, match="add who to GROUP BY, for a row for each person and visit"):
                ask(epsilon=1)
        assert table.accounts.left(None) == before


@pytest.mark.parametrize("sql", SHOWN)
def test_groups_of_private_keys_that_are_shown_are_answered(sql):
    with numbered() as table:
        assert alike(answered(table, sql).rows, truth(sql, data=NUMBERED))


def test_what_the_refusal_advises_is_answered():
    visits = "SELECT who, visit, AVG(cost) AS m FROM data GROUP BY who, visit"
    sql = f"WITH v AS ({visits}) SELECT COUNT(*) AS k, AVG(m) AS l FROM v"
    with numbered() as table:
        assert alike(answered(table, sql).rows, truth(sql, data=NUMBERED))
        counted = "SELECT COUNT(DISTINCT visit) AS k FROM data"
        assert alike(answered(table, counted).rows, truth(counted, data=NUMBERED))
