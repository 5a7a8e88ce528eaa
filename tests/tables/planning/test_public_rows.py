"""Groups by columns of one public table: its rows, whatever is grouped by beside them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dither as dp
from tables.raw_rows import alike, answered, truth

PLANS = pa.table(
    {
        "plan_id": [1, 2, 3, 4, 5],
        "plan_name": ["basic", "basic", "extra", "extra", None],
        "tier": ["low", "high", "low", "high", "high"],
    }
)
MEMBERS = pa.table(
    {
        "who": list(range(600)),
        "pid": [1 + i % 4 for i in range(600)],  # nobody has plan 5
        "kind": ["ab"[i % 2] for i in range(600)],
        "x": [float(i % 7) for i in range(600)],
    }
)
JOINED = "FROM members JOIN plans ON pid = plan_id"
TUPLES = {  # questions, and how many groups the public table has for them
    f"SELECT plan_id, plan_name, COUNT(*) AS n {JOINED} GROUP BY plan_id, plan_name": 5,
    f"SELECT plan_name, tier, COUNT(*) AS n {JOINED} GROUP BY 1, 2": 5,
    f"SELECT pid, plan_name, COUNT(*) AS n {JOINED} GROUP BY pid, plan_name": 5,
    f"SELECT plan_id, kind, tier, COUNT(*) AS n {JOINED} GROUP BY 1, 2, 3": 10,
    f"SELECT UPPER(plan_name) AS u, plan_id * 10 AS t, COUNT(*) AS n {JOINED} GROUP BY 1, 2": 5,
    f"SELECT tier || plan_name AS both_names, COUNT(*) AS n {JOINED} GROUP BY 1": 5,
    f"SELECT plan_id, plan_name, COUNT(*) AS n {JOINED} WHERE tier = 'low' GROUP BY 1, 2": 2,
    f"SELECT plan_name, COUNT(*) AS n {JOINED} WHERE tier = 'low' AND x > 2 GROUP BY 1": 2,
    f"SELECT pid, COUNT(*) AS n {JOINED} WHERE tier = 'low' GROUP BY 1": 2,
    f"SELECT plan_name, COUNT(*) AS n {JOINED} WHERE plan_id = 5 GROUP BY 1": 1,  # NULL is the only key
    f"SELECT plan_name, tier, AVG(x) AS m {JOINED} WHERE plan_id < 4 GROUP BY 1, 2": 3,
    "SELECT plan_name, tier, COUNT(*) AS n FROM members LEFT JOIN plans ON pid = plan_id GROUP BY 1, 2": 6,
    "SELECT a, b, COUNT(*) AS n FROM (SELECT who, plan_id AS a, UPPER(plan_name) AS b, COUNT(*) AS k "
    f"{JOINED} GROUP BY who, 2, 3) GROUP BY a, b": 5,
    f"SELECT LEFT(tier, 1) AS a, UPPER(tier) AS b, COUNT(*) AS n {JOINED} GROUP BY 1, 2": 2,
    "SELECT LEFT(tier, 1) AS a, UPPER(tier) AS b, COUNT(*) AS n FROM members LEFT JOIN plans ON pid = plan_id "
    "GROUP BY 1, 2": 3,
    f"SELECT LEFT(t, 1) AS a, UPPER(t) AS b, COUNT(*) AS n FROM (SELECT who, tier AS t {JOINED}) GROUP BY 1, 2": 2,
    f"SELECT a, b, COUNT(*) AS n FROM (SELECT who, plan_id AS a, tier AS b {JOINED} WHERE tier = 'high' "
    "QUALIFY ROW_NUMBER() OVER (PARTITION BY who ORDER BY x) <= 2) GROUP BY a, b": 3,
    f"SELECT t.tier, o.tier AS other, COUNT(*) AS n FROM (SELECT who, tier {JOINED}) AS t "
    f"JOIN (SELECT who, tier {JOINED}) AS o ON t.who = o.who GROUP BY 1, 2": 4,
    f"SELECT a, b, COUNT(*) AS n FROM (SELECT who, plan_id AS a, tier AS b {JOINED}) WHERE b = 'high' GROUP BY a, b": 3,
}


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    folder = tmp_path_factory.mktemp("members")
    pq.write_table(PLANS, folder / "plans.parquet")
    pq.write_table(MEMBERS, folder / "members.parquet")
    (folder / "members.toml").write_text(
        'name = "members"\nsource = "members.parquet"\nunit = "who"\nledger = "l.sqlite"\nmax_rows = 2\n'
        '[budget]\nepsilon = 4000\n[columns]\nwho = "integer"\npid = {type = "integer", bounds = [1, 5]}\n'
        'kind = {type = "text", keys = ["a", "b"]}\nx = {type = "number", bounds = [0, 10]}\n'
        '[public.plans]\nsource = "plans.parquet"\n[public.plans.columns]\n'
        'plan_id = {type = "integer", bounds = [1, 5]}\n'
        'plan_name = "text"\ntier = "text"\n'
    )
    with dp.open(folder / "members.toml") as table:
        yield table


@pytest.mark.parametrize("sql", TUPLES)
def test_groups_by_columns_of_one_public_table_are_its_rows(members, sql):
    answer = answered(members, sql)
    expected = truth(sql, members=MEMBERS, plans=PLANS)
    keys = {tuple(map(str, row[:-1])) for row in expected}
    assert len(answer.rows) == TUPLES[sql]
    # groups that nobody is in are shown as well, as those of all public keys are: plan 5
    assert alike([row for row in answer.rows if tuple(map(str, row[:-1])) in keys], expected)
    assert all(row[-1] in (0, None) for row in answer.rows if tuple(map(str, row[:-1])) not in keys)


def test_levels_of_columns_of_one_public_table_have_its_rows(members):
    sql = f"SELECT plan_id, plan_name, COUNT(*) AS n {JOINED} WHERE plan_id < 5 GROUP BY ROLLUP (plan_id, plan_name)"
    assert alike(answered(members, sql).rows, truth(sql, members=MEMBERS, plans=PLANS))
