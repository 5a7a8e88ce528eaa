"""What names stand for in SQL: as in DuckDB on the raw rows, or refused."""

from __future__ import annotations

import random

import pytest
from sqlglot import exp

from dither.errors import InvalidArgument
from dither.tables.query.relations import Relation, Rows
from dither.tables.query.tree import Column
from dither.tables.sql.parse import parse
from dither.tables.sql.scopes import NameScope, bind_tables, means_alias, read_item, with_item
from dither.tables.sql.text import statement
from support import refuses
from tables.sql.claims import CARD, answered, opened, truth
from tables.sql.random_scopes import question

QUESTIONS = 60

ANSWERED = [
    "WITH x AS (SELECT pid, n FROM visits) SELECT COUNT(*) AS c, SUM(pid) AS s FROM x AS t(n, pid) WHERE t.pid > 1",
    # a name inside EXISTS is that of the inner table, and of the outer one only where the inner has none
    "SELECT COUNT(*) AS c FROM visits WHERE EXISTS (SELECT 1 FROM claims WHERE claims.pid = visits.pid AND kind = 'a')",
    "SELECT COUNT(*) AS c FROM visits WHERE EXISTS (SELECT 1 FROM claims WHERE claims.pid = visits.pid AND n > 3)",
    "SELECT COUNT(*) AS c FROM visits WHERE EXISTS (SELECT 1 FROM claims WHERE claims.pid = visits.pid "
    "AND amount > 20 * cost)",
    "SELECT COUNT(*) AS c FROM visits WHERE NOT EXISTS (SELECT 1 FROM claims WHERE pid = visits.pid AND n = visits.n)",
    "SELECT COUNT(*) AS c FROM visits WHERE EXISTS (SELECT 1 FROM visits AS w WHERE w.pid = visits.pid "
    "AND w.amount > amount)",
    "SELECT COUNT(*) AS c FROM visits AS claims WHERE EXISTS (SELECT 1 FROM visits WHERE visits.pid = claims.pid "
    "AND visits.n > claims.n)",
    "SELECT COUNT(*) AS c FROM visits AS v WHERE EXISTS (SELECT 1 FROM claims WHERE claims.pid = v.pid AND EXISTS "
    "(SELECT 1 FROM claims AS d WHERE d.pid = claims.pid AND d.n > n))",
    "SELECT COUNT(*) AS c FROM visits WHERE pid IN (SELECT pid FROM claims WHERE kind = 'b')",
    # a person that an outer join makes NULL is equal to nobody
    *(
        f"SELECT COUNT(*) AS c FROM {outer} WHERE {negated} EXISTS (SELECT 1 FROM {inner})"
        for negated in ("", "NOT")
        for outer, inner in [
            (
                "visits AS p LEFT JOIN claims AS v ON p.pid = v.pid AND v.n > 4",
                "visits AS c WHERE c.pid = v.pid AND c.n < 3",
            ),
            ("visits AS p", "visits AS q LEFT JOIN claims AS v ON q.pid = v.pid AND v.n > 4 WHERE v.pid = p.pid"),
            (
                "visits AS p",
                "(SELECT v.pid FROM visits AS q LEFT JOIN claims AS v ON q.pid = v.pid AND v.n > 4) AS z "
                "WHERE z.pid = p.pid",
            ),
        ]
    ),
    # a condition on the other side of SEMI and ANTI JOIN
    "SELECT COUNT(*) AS c FROM visits SEMI JOIN claims ON visits.pid = claims.pid AND claims.cost > 25",
    "SELECT COUNT(*) AS c FROM visits ANTI JOIN claims ON visits.pid = claims.pid AND claims.cost > 25",
    "SELECT COUNT(*) AS c FROM visits SEMI JOIN claims ON visits.pid = claims.pid AND visits.n < claims.n AND cost < 9",
    "SELECT COUNT(*) AS c FROM visits SEMI JOIN claims USING (pid, kind)",
    "SELECT COUNT(*) AS c FROM visits ANTI JOIN claims USING (pid, kind, n)",
    "SELECT COUNT(*) AS c FROM visits SEMI JOIN claims USING (pid, kind) WHERE n > 2",
    # an inner WITH ends the scope of an outer one of the same name
    "WITH x AS (SELECT * FROM visits) SELECT (SELECT COUNT(*) FROM x) AS a, "
    "(WITH x AS (SELECT * FROM visits WHERE n < 3) SELECT COUNT(*) FROM x) AS b",
    "WITH x AS (SELECT * FROM visits WHERE n < 5) SELECT (WITH x AS (SELECT * FROM x WHERE n > 2) "
    "SELECT COUNT(*) FROM x) AS a, (SELECT COUNT(*) FROM x) AS b",
    "WITH x AS (SELECT * FROM visits WHERE n < 3), y AS (SELECT * FROM x) "
    "SELECT (WITH x AS (SELECT * FROM visits) SELECT COUNT(*) FROM y) AS a",
    "SELECT (WITH x AS (SELECT * FROM visits WHERE n < 3) SELECT COUNT(*) FROM x) AS a, "
    "(WITH X AS (SELECT * FROM visits WHERE n >= 3) SELECT COUNT(*) FROM x) AS b",
    "WITH x AS (WITH y AS (SELECT * FROM visits WHERE n < 3) SELECT * FROM y) SELECT COUNT(*) AS c FROM x",
    "WITH y AS (SELECT * FROM visits WHERE n > 3), x AS (WITH y AS (SELECT * FROM visits WHERE n < 3) SELECT * FROM y) "
    "SELECT (SELECT COUNT(*) FROM x) AS a, (SELECT COUNT(*) FROM y) AS b",
    "WITH x AS (SELECT COUNT(*) AS c FROM visits) SELECT (SELECT c FROM x) AS a, "
    "(WITH x AS (SELECT COUNT(*) AS c FROM visits WHERE n < 3) SELECT c FROM x) AS b",
    "WITH amount AS (SELECT amount FROM visits WHERE n < 3) SELECT SUM(amount) AS s FROM amount",
    "WITH m AS (SELECT kind AS k, COUNT(*) AS c FROM visits GROUP BY kind), r AS (SELECT * FROM visits WHERE n < 3) "
    "SELECT (WITH m AS (SELECT * FROM r WHERE n > 1) SELECT COUNT(*) FROM m) AS a, SUM(c) AS b FROM m",
    # names by AS
    "SELECT COUNT(*) AS c FROM (SELECT pid, FLOOR(amount / 250) AS q FROM visits GROUP BY pid, q) AS s",
    "SELECT COUNT(*) AS c FROM (SELECT pid, MAX(amount) AS amount FROM visits GROUP BY pid HAVING amount > 900) AS s",
    "SELECT COUNT(*) AS c FROM (SELECT pid, MAX(amount) AS m, COUNT(*) AS n FROM visits GROUP BY pid "
    "HAVING m > 900 AND n > 5) AS s",
    "SELECT COUNT(*) AS c FROM (SELECT pid, kind AS kind FROM visits GROUP BY pid, kind HAVING kind = 'a') AS s",
    "SELECT COUNT(*) AS c FROM (SELECT pid, -amount AS amount FROM visits "
    "QUALIFY ROW_NUMBER() OVER (PARTITION BY pid ORDER BY amount) = 1) AS s WHERE amount < -20",
    "SELECT COUNT(*) AS c FROM (SELECT pid, RANK() OVER (PARTITION BY pid ORDER BY n) AS r FROM visits "
    "QUALIFY r = 1) AS s",
    "SELECT kind, SUM(amount) AS amount FROM visits GROUP BY kind HAVING amount > 60000 ORDER BY kind",
    "SELECT UPPER(kind) AS kind, COUNT(*) AS c FROM visits GROUP BY visits.kind ORDER BY kind",
    "SELECT kind, -COUNT(*) AS c FROM visits GROUP BY kind ORDER BY (c) LIMIT 1",
    "SELECT kind, SUM(amount) AS total, total / COUNT(*) AS d FROM visits GROUP BY kind ORDER BY kind",
    "SELECT KIND AS k, COUNT(*) AS c FROM visits GROUP BY K ORDER BY k",
    'SELECT "Kind", COUNT(*) AS c FROM visits GROUP BY "KIND" ORDER BY 1',
    "SELECT kind, COUNT(*) AS c FROM visits GROUP BY (1) ORDER BY 1",
    # a query inside of what is done with an answer
    "SELECT kind, COUNT(*) AS c FROM visits GROUP BY kind HAVING COUNT(*) > (SELECT AVG(t.c) FROM "
    "(SELECT n, COUNT(*) AS c FROM visits GROUP BY n) AS t WHERE t.n < 3) ORDER BY 1",
    "SELECT kind AS k, COUNT(*) AS c, (SELECT SUM(t.d) FROM (SELECT n AS a, COUNT(*) AS d FROM visits GROUP BY n) "
    "AS t WHERE t.d > c) AS z FROM visits GROUP BY kind ORDER BY 1",
    "SELECT kind AS k, COUNT(*) AS c, 0 AS b FROM visits GROUP BY kind UNION ALL SELECT kind, COUNT(*) AS c, (SELECT "
    "COUNT(*) FROM (VALUES (150), (50)) AS t(v) WHERE t.v > c) FROM visits WHERE n < 3 GROUP BY kind ORDER BY 1, 2",
    "SELECT kind, COUNT(*) AS c FROM visits GROUP BY ROLLUP (kind) HAVING GROUPING(kind) <= (SELECT COUNT(*) FROM "
    "(SELECT COUNT(*) AS c FROM claims) AS t WHERE c > 0) ORDER BY 2",
    "SELECT kind, COUNT(*) AS c FROM visits GROUP BY kind QUALIFY ROW_NUMBER() OVER (ORDER BY c DESC) = 1",
    # columns that USING merges, and where * has them
    "SELECT COUNT(*) AS c FROM (SELECT * FROM visits FULL JOIN (SELECT pid, cost FROM claims) AS c USING (pid) "
    "UNION ALL SELECT pid, kind, amount, day, n, amount AS x FROM visits) AS s WHERE pid > 30",
    "SELECT COUNT(*) AS c FROM visits JOIN claims USING (pid, kind) WHERE kind = 'a'",
]
REFUSED = [
    # not a comparison with the row outside: pid is that of claims
    ("SELECT COUNT(*) AS c FROM visits WHERE EXISTS (SELECT 1 FROM claims WHERE claims.pid = pid)", "same person"),
    ("SELECT COUNT(*) AS c FROM visits AS v WHERE EXISTS (SELECT 1 FROM claims AS v WHERE v.pid = pid)", "same person"),
    ("SELECT COUNT(*) AS c FROM visits WHERE EXISTS (SELECT 1 FROM visits WHERE visits.pid = pid)", "same person"),
    # ambiguous inside, which the outer table does not mend
    ("SELECT COUNT(*) AS c FROM visits WHERE EXISTS (SELECT 1 FROM claims AS c JOIN claims AS d ON c.pid = d.pid "
     "WHERE c.pid = visits.pid AND n > 3)", "one meaning"),
    ("SELECT COUNT(*) AS c FROM visits JOIN claims ON visits.pid = pid", "one meaning"),
    ("SELECT COUNT(*) AS c FROM visits JOIN claims ON visits.pid = claims.pid AND n > 3", "one meaning"),
    ("SELECT COUNT(*) AS c FROM visits, claims WHERE visits.pid = claims.pid AND kind = 'a'", "one meaning"),
    ("SELECT COUNT(*) AS c FROM (SELECT pid, cost AS x FROM claims) AS a, (SELECT pid AS id FROM claims) AS b, "
     "(SELECT pid, n AS id FROM claims) AS d WHERE a.pid = id AND a.pid = d.pid", "one meaning"),
    ("SELECT COUNT(*) AS c FROM visits SEMI JOIN claims ON visits.pid = claims.pid WHERE cost > 3", "cost"),
    ("SELECT COUNT(*) AS c FROM visits WHERE EXISTS (SELECT 1 FROM claims AS d WHERE d.pid = visits.pid "
     "AND d.amount > 3)", "amount"),
    # a column and, by AS, something else
    ("SELECT AVG(k) AS m FROM (SELECT pid, date_trunc('quarter', day) AS day, COUNT(*) AS k FROM visits "
     "GROUP BY pid, day) AS s", "one meaning in GROUP BY"),
    ("SELECT COUNT(*) AS c FROM (SELECT pid, FLOOR(amount / 250) AS amount FROM visits GROUP BY pid, amount) AS s",
     "one meaning in GROUP BY"),
    ("SELECT COUNT(*) AS c FROM (SELECT pid, SUM(amount) AS amount FROM visits GROUP BY pid, (amount)) AS s",
     "one meaning in GROUP BY"),
    ("SELECT COUNT(*) AS c FROM (SELECT pid, -amount AS amount FROM visits QUALIFY amount > 500 AND ROW_NUMBER() OVER "
     "(PARTITION BY pid ORDER BY day) = 1) AS s", "one meaning in QUALIFY"),
    ("SELECT COUNT(*) AS c FROM (SELECT pid, UPPER(kind) AS kind FROM visits GROUP BY pid, visits.kind "
     "HAVING kind = 'A') AS s", "one meaning in HAVING"),
    ("SELECT UPPER(kind) AS kind, COUNT(*) AS c FROM visits GROUP BY visits.kind HAVING kind = 'A'", "one meaning"),
    ("SELECT kind, SUM(amount) AS amount, amount * 2 AS d FROM visits GROUP BY kind", "outside of aggregates"),
    ("SELECT kind, -SUM(amount) AS amount FROM visits GROUP BY kind ORDER BY amount + 0", "outside of aggregates"),
    ("SELECT -n AS n, COUNT(*) AS c FROM visits GROUP BY visits.n ORDER BY n + 0", "one meaning in ORDER BY"),
    # a name in a query inside that is a column outside, and by AS something else
    ("SELECT kind, COUNT(*) AS amount, (SELECT SUM(t.c) FROM (SELECT n AS k, COUNT(*) AS c FROM visits GROUP BY n) "
     "AS t WHERE t.c > amount) AS z FROM visits GROUP BY kind", "one meaning"),
    ("SELECT kind AS n, COUNT(*) AS c FROM visits GROUP BY kind HAVING COUNT(*) > (SELECT SUM(t.c) FROM (SELECT kind "
     "AS k, COUNT(*) AS c FROM visits GROUP BY kind) AS t WHERE t.k = n) - 1", "one meaning"),
    # a window function is not yet known in HAVING
    ("SELECT COUNT(*) AS c FROM (SELECT pid, RANK() OVER (PARTITION BY pid ORDER BY pid) AS r FROM visits GROUP BY pid "
     "HAVING r = 1) AS s", "into QUALIFY"),
    # what is said of a name in FROM is not left out where the name is that of a WITH
    ("WITH x AS (SELECT pid, amount FROM visits) SELECT SUM(amount) AS s FROM x AS t(amount)", "2 different names"),
    ("WITH x AS (SELECT * FROM visits) SELECT COUNT(*) AS c FROM x TABLESAMPLE 10%", ""),
    ("WITH x AS (SELECT * FROM visits), X AS (SELECT * FROM claims) SELECT COUNT(*) AS c FROM x", "different names"),
    ("WITH x AS (SELECT * FROM y), y AS (SELECT * FROM visits) SELECT COUNT(*) AS c FROM x", ""),
    ("WITH x AS (SELECT * FROM x) SELECT COUNT(*) AS c FROM x", ""),
    ("SELECT (WITH x AS (SELECT COUNT(*) AS c FROM visits) SELECT c FROM x) AS a, (SELECT c FROM x) AS b", "'x'"),
    ("WITH plans AS (SELECT * FROM visits) SELECT COUNT(*) AS c FROM plans", "a table of the card"),
    ("SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind QUALIFY RANK() OVER (ORDER BY n DESC) = 1", "column n"),
    # pid is not the person on both sides
    ("SELECT COUNT(*) AS c FROM (SELECT pid AS n, n AS pid FROM visits) AS s JOIN claims USING (pid)", "the person"),
    ("SELECT COUNT(*) AS c FROM (SELECT pid AS n, n AS pid FROM visits) AS s JOIN claims ON s.pid = claims.pid",
     "s.n = claims.pid"),
    # ON is the condition of an outer join; WHERE is not
    ("SELECT COUNT(*) AS c FROM visits LEFT JOIN claims WHERE visits.pid = claims.pid", "a join on the person"),
]  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("care")) as table:
        yield table


@pytest.mark.parametrize("sql", ANSWERED)
def test_names_stand_for_what_they_stand_for_in_duckdb(table, sql):
    expected = truth(sql)
    assert expected is not None
    assert answered(table, sql) == expected


@pytest.mark.parametrize(("sql", "fragment"), REFUSED)
def test_names_without_one_meaning_are_refused(sql, fragment):
    with refuses(InvalidArgument) as refused:
        parse(sql, CARD)
    assert fragment in str(refused.value)


def test_random_names_stand_for_what_they_stand_for_in_duckdb(table):
    """Each is answered as DuckDB answers it, or refused; none that DuckDB refuses is answered."""
    same = 0
    for seed in range(QUESTIONS):
        sql = question(random.Random(seed))
        answer = answered(table, sql)
        if answer is not None:
            expected = truth(sql)
            assert expected is not None, sql
            assert sorted(answer, key=repr) == sorted(expected, key=repr), sql
            same += 1
    assert same > QUESTIONS / 4


def test_a_name_in_from_is_that_of_the_nearest_with():
    text = "WITH a AS (SELECT 1), b AS (SELECT * FROM a, b) SELECT * FROM "
    text += "(WITH A AS (SELECT 2 FROM a) SELECT * FROM a, b), a, other.a"
    tree, _ = statement(text, "t")
    bodies = [
        (table.sql(), None if (item := with_item(table)) is None else item.this.sql())
        for table in tree.find_all(exp.Table)
    ]
    outer, inner = "SELECT 1", "SELECT 2 FROM a"
    assert [body for name, body in bodies if name == "a"].count(outer) == 3
    assert [body for name, body in bodies if name == "a"].count(inner) == 1
    assert ("b", None) in bodies  # an item does not see itself
    assert ("other.a", None) in bodies


def test_a_copy_of_a_table_reads_what_it_read():
    tree, _ = statement("WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b", "t")
    first, second = bind_tables(tree)
    (table,) = second.this.copy().find_all(exp.Table)
    assert (first.alias, read_item(table)) == ("a", 0)


def test_inner_columns_come_first_and_ambiguous_ones_are_refused():
    inner = Rows((Relation("c", {"n": Column("n"), "x": Column("x")}), Relation("d", {"x": Column("x2")})))
    outer = Rows((Relation("v", {"n": Column("n"), "y": Column("y")}), Relation("d", {"z": Column("z")})))
    scope = NameScope(({"inner": inner}, {"outer": outer}))
    assert scope.find(Column("N")) == ("inner", Column("n"))
    assert scope.find(Column("n", "v")) == ("outer", Column("n"))
    assert scope.find(Column("y")) == ("outer", Column("y"))
    assert scope.find(Column("z", "d")) is None  # d is the inner one, which has no z
    with refuses(InvalidArgument, "one meaning"):
        scope.find(Column("x"))
    with refuses(InvalidArgument, "one meaning"):
        NameScope(({"left": inner, "right": outer},)).find(Column("n"))


@pytest.mark.parametrize("clause", ["HAVING", "QUALIFY", "ORDER BY", "DISTINCT ON"])
def test_a_column_and_another_expression_of_one_name_are_refused(clause):
    assert means_alias("n", clause, None, "alias", usable=False)
    assert not means_alias("n", clause, "both", "both", usable=True)
    with refuses(InvalidArgument, f"one meaning in {clause}"):
        means_alias("n", clause, "column", "alias", usable=True)


def test_names_that_differ_in_case_are_of_one_table_or_ambiguous():
    rows = Rows((Relation("a", {"n": Column("n"), "N": Column("N")}), Relation("b", {"m": Column("m")})))
    assert rows.find(Column("N")) == Column("N")
    with refuses(InvalidArgument, "one meaning"):
        Rows((*rows.relations, Relation("c", {"M": Column("M")}))).find(Column("m"))


def test_left_semi_join_is_a_semi_join():
    plain, longer = (parse(f"SELECT COUNT(*) AS c FROM visits {kind} claims USING (pid)", CARD)
                     for kind in ("ANTI JOIN", "LEFT ANTI JOIN"))  # fmt: skip
    assert plain == longer
