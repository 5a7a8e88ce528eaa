"""Properties of printed answers, over numbers and errors of all sizes: as text, on a page, and for programs."""

from __future__ import annotations

import csv
import html
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dp
from tables.refusals.samples import flights

EXPONENT = re.compile(r"[0-9]e[+-]?[0-9]", re.IGNORECASE)
NUMBER = re.compile(r"-?([0-9]{1,3}(,[0-9]{3})*|[0-9]{4})(\.[0-9]+)?")
"""Four digits may stand without a comma: they may be a year."""

values = st.one_of(st.integers(-(10**14), 10**14), st.floats(-1e14, 1e14).filter(lambda x: x == 0 or abs(x) > 1e-6))
errors = st.one_of(st.none(), st.floats(1e-6, 1e14))
ROWS = st.lists(st.tuples(values, errors), min_size=1, max_size=6)


def _answer(pairs: list[tuple[float, float | None]], shares: tuple[float, float, float] | None = None) -> dp.Answer:
    kind = "integer" if all(isinstance(value, int) for value, _ in pairs) else "number"
    rows = tuple((f"k{place}", value if kind == "integer" else float(value)) for place, (value, _) in enumerate(pairs))
    widths = {"n": tuple(error for _, error in pairs)}
    return dp.Answer(
        ("key", "n"), ("text", kind), rows, widths, dp.PureDP(1), clipped_share={} if shares is None else {"n": shares}
    )


def _source_addresses(text: str) -> int:
    """Decimal places of a printed number; negative for zeros at the end of a whole one."""
    if "." in text:
        return len(text.partition(".")[2])
    return -(len(text) - len(text.rstrip("0,"))) if text.strip("-0,") else 0


@given(ROWS, st.none() | st.tuples(st.floats(0.01, 0.2), st.floats(0, 0.01), st.floats(0.2, 0.5)))
def test_people_read_plain_numbers_with_the_digits_of_their_error(pairs, shares):
    answer = _answer(pairs, shares)
    assert not EXPONENT.search(answer.text())
    assert not EXPONENT.search(re.sub(r"<[^>]*>", " ", html.unescape(answer._repr_html_())))
    _, lines = answer.table()
    for (_, value, error, *_), (number, wanted) in zip(lines, pairs, strict=True):
        assert value is not None
        assert value.startswith("~") == (wanted is not None and wanted > abs(number))
        value = value.removeprefix("~")
        assert NUMBER.fullmatch(value)
        if wanted is None:
            assert error == ""
            continue
        assert NUMBER.fullmatch(error)
        assert len(error.replace(",", "").replace(".", "").strip("0")) <= 2 or "." not in value
        assert "." not in error or _source_addresses(value) == _source_addresses(error)


@given(ROWS)
def test_programs_read_every_digit(pairs):
    answer = _answer(pairs)
    parsed = json.loads(answer.to_json())["rows"]
    table = list(csv.DictReader(io.StringIO(answer.to_csv())))
    for line, cells, (value, error) in zip(parsed, table, pairs, strict=True):
        assert line["n"] == float(cells["n"]) == value
        assert line["n_error"] == error
        assert cells["n_error"] == ("" if error is None else str(error))


def test_a_long_table_says_how_many_rows_it_has_and_where_all_are():
    answer = _answer([(place + 3, 3.0) for place in range(192)])
    assert "192 rows, 40 shown: text(most=None) shows all" in answer.text()
    assert "192 rows, 40 shown: --format csv" in answer.text(more="--format csv prints all")
    assert "192 rows, 40 shown: to_pandas() has all" in answer._repr_html_()
    assert len(answer.text(most=None).splitlines()) == 192 + 3
    assert len(answer.to_csv().splitlines()) == 193


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT origin, COUNT(*), SUM(distance), AVG(dep_delay), MEDIAN(dep_delay) FROM flights GROUP BY origin",
        "SELECT month, COUNT(*) * 1000000 AS n, SUM(distance) / COUNT(*) AS m FROM flights GROUP BY month",
        "SELECT SUM(POWER(distance, 3)) AS s, AVG(distance / 100000) AS m, COUNT(DISTINCT tailnum) FROM flights",
    ],
)
def test_plans_and_answers_are_in_the_units_of_the_answer(sql):
    """Neither powers of ten nor the units in which noise is drawn are shown."""
    with flights() as table:
        question = table.sql(sql)
        plan, answer = question.explain(epsilon=1), question.release(epsilon=1)
    for text in (str(plan), plan._repr_html_(), answer.text(), answer._repr_html_()):
        assert not EXPONENT.search(re.sub(r"<[^>]*>", " ", text))
        assert "lattice" not in text
        assert "2^" not in text
