"""An answer as text, frames and files: what goes out comes back."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import date, datetime

import matplotlib as mpl
import polars
import pyarrow as pa
import pyarrow.parquet as pq

import dither as dp
from dither import present
from dither.errors import DitherError
from dither.guarantees import PureDP
from dither.ledger.recorded import decode, encode
from dither.present.notes import Note, kinds_of
from dither.tables.answer import Answer
from support import refuses

mpl.use("Agg")

ANSWER = Answer(
    ("month", "at", "town", "vip", "n", "mean", "hist"),
    ("date", "timestamp", "text", "boolean", "integer", "number", "integer"),
    (
        (date(2024, 2, 1), datetime(2024, 2, 29, 23, 59, 59, 5), "=1+1", True, -12, 1.5, [1, -2]),
        (None, None, None, None, 7, 2.25e10, [0, 3]),
        (date(1, 1, 1), datetime(9999, 12, 31), "Ångström\n😀, \"x\"", False, 1 << 60, -0.0, [5, 5]),
    ),
    {"n": (3.0, 3.0, 3.0), "mean": (0.1, None, 0.3), "hist": (2.0, 2.0, 2.0)},
    PureDP(1),
    (Note("levels"),),
)  # fmt: skip


def test_the_ledger_gives_back_what_it_keeps():
    again = Answer.restored(decode(encode(ANSWER.stored())))
    assert again == ANSWER
    assert repr(again.rows) == repr(ANSWER.rows)
    assert encode(again.stored()) == encode(ANSWER.stored())


def test_arrow_pandas_and_polars_hold_the_same():
    arrow = ANSWER.to_arrow()
    assert arrow.schema.field("month").type == pa.date32()
    assert arrow.schema.field("at").type == pa.timestamp("us")
    assert arrow.schema.field("hist").type == pa.list_(pa.int64())
    assert arrow.column("town").to_pylist() == ANSWER["town"]
    assert arrow.column("mean_error").to_pylist() == [0.1, None, 0.3]
    assert ANSWER.to_arrow(errors=False).column_names == list(ANSWER.columns)
    shown = polars.DataFrame(ANSWER.to_polars())
    assert shown["month"].to_list() == ANSWER["month"]
    assert shown["n"].to_list() == ANSWER["n"]
    frame = ANSWER.to_pandas()
    assert frame["n"].tolist() == ANSWER["n"]
    assert frame["vip"].tolist() == ANSWER["vip"]


def test_json_and_csv_say_the_same(tmp_path):
    content = json.loads(ANSWER.to_json())
    assert content["cost"] == "ε = 1"
    assert content["rows"][0]["month"] == "2024-02-01"
    assert content["rows"][1]["town"] is None
    assert content["rows"][2]["n"] == 1 << 60
    lines = list(csv.reader(io.StringIO(ANSWER.to_csv())))
    assert lines[0][-3:] == ["n_error", "mean_error", "hist_error"]
    assert lines[1][2] == "'=1+1"  # no spreadsheet runs it
    assert lines[1][4] == "-12"  # and a number stays one
    assert lines[2][:4] == [""] * 4
    assert lines[3][2] == ANSWER.rows[2][2]
    for name in ("a.json", "a.csv", "a.parquet"):
        ANSWER.write(tmp_path / name)
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == content
    assert (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()[0] == ANSWER.to_csv().splitlines()[0]
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == ANSWER.to_arrow().to_pylist()
    ANSWER.write(tmp_path / "odd.name", "csv")
    with refuses(DitherError, "json, csv or parquet"):
        ANSWER.write(tmp_path / "a.xlsx")


def test_text_is_a_table():
    shown = str(ANSWER).splitlines()
    assert shown[0].split() == ["month", "at", "town", "vip", "n", "±", "mean", "±", "hist", "±"]
    assert "Ångström 😀" in shown[4]
    assert shown[-3:] == ["cost: ε = 1", "~ is mostly noise: the ± exceeds the number.", str(Note("levels"))]
    assert "3 rows, 1 shown: --format csv" in ANSWER.text(most=1, more="--format csv")
    assert "shown" not in ANSWER.text(most=None)
    assert "recorded answer" in str(Answer.restored(ANSWER.stored(), replayed=True))


def test_two_notes_stand_under_an_answer_and_the_others_on_demand():
    kinds = ("rows_without_person", "shared_epsilon", "undercount_unknown", "no_interval", "first_answer")
    notes = tuple(Note(kind, {"column": "who"} if kind == "rows_without_person" else {}) for kind in kinds)
    answer = replace(ANSWER, columns=("n",), types=("integer",), rows=((40,),), errors={"n": (3.0,)}, notes=notes)
    first, others = answer.leading_notes()
    assert kinds_of(first) == ["first_answer"]  # which is long: nothing else beside it
    assert len(others) == 4
    assert str(answer).splitlines()[-1].endswith("was lost or replaced. (4 more: answer.notes)")
    assert answer.summary(more="--verbose").endswith("(4 more: --verbose)")
    assert answer.text(verbose=True).splitlines()[-5:] == [*map(str, (*first, *others))]
    assert "<summary>4 more notes</summary>" in answer._repr_html_()
    again = replace(answer, replayed=True)
    assert kinds_of(again.leading_notes()[0]) == ["undercount_unknown", "no_interval"]
    noisy = replace(again, errors={"n": (50.0,)})
    assert kinds_of(noisy.leading_notes()[0]) == ["undercount_unknown"]
    assert "~40" in noisy.text()
    assert "~40</abbr>" in noisy._repr_html_()
    assert noisy.to_pandas()["n"].tolist() == [40]
    assert "~" not in noisy.to_csv() + noisy.to_json()


def test_columns_by_name():
    assert ANSWER["n"] == [-12, 7, 1 << 60]
    assert ANSWER.error("mean") == [0.1, None, 0.3]
    assert ANSWER.error("town") == [None] * 3
    assert len(ANSWER) == 3
    with refuses(DitherError, "column"):
        ANSWER["nosuch"]


def test_an_answer_is_a_sequence_of_rows():
    assert len(ANSWER) == 3
    assert list(ANSWER) == ANSWER.dicts()
    assert [row["n"] for row in ANSWER] == ANSWER["n"]


def test_a_plot_has_bars_and_errors():
    axes = ANSWER.plot()
    assert axes.get_ylabel() == "n"
    assert len(axes.patches) == 3
    assert ANSWER.plot("mean", axes=axes) is axes
    for name in ("town", "nosuch", "hist"):
        with refuses(DitherError, "column"):
            ANSWER.plot(name)
    with refuses(DitherError, "column"):
        Answer(("k",), ("text",), (("a",),), {}, PureDP(1)).plot()


def test_modes_histograms_and_dates_of_a_real_answer():
    days = [date(2024, 1 + i % 3, 1 + i % 28) for i in range(300)]
    data = pa.table({"day": days, "town": ["é", "b", "b"] * 100, "x": [float(i % 10) for i in range(300)]})
    with dp.open(data, budget=dp.ApproxDP(4000, 0.1), bounds={"x": (0, 10)}, delta=1e-6) as table:
        answer = table.group_by(month=dp.col("day").trunc("month")).agg(
            day=dp.mode("day", keys=[date(2024, 1, 1), date(2024, 2, 2)]),
            town=dp.mode("town", keys=["é", "b"]),
            h=dp.histogram("x", [0, 5, 10]),
            n=dp.count(),
        )
        result = answer.release(3000)
        again = answer.release(3000)
    assert again == result
    assert again.replayed
    assert result.types == ("date", "date", "text", "integer", "integer")
    assert result["month"] == [date(2024, 1, 1), date(2024, 2, 1), date(2024, 3, 1)]
    assert result["n"] == [100, 100, 100]
    assert result["town"] == ["é", "b", "b"]
    assert [sum(item) for item in result["h"]] == [100, 100, 100]
    assert result.to_pandas()["h"].tolist()[0].tolist() == result["h"][0]
    assert result.to_arrow().schema.field("day").type == pa.date32()
    assert "2024-02-01" in str(result)


def test_a_column_may_be_called_like_an_error():
    content = Answer(("n", "n_error"), ("integer", "integer"), ((5, 7),), {"n": (1.0,), "n_error": (2.0,)}, PureDP(1))
    assert content.to_arrow().to_pylist() == [{"n": 5, "n_error": 7, "n_error_": 1.0, "n_error_error": 2.0}]
    assert content.to_csv().splitlines() == ["n,n_error,n_error_,n_error_error", "5,7,1.0,2.0"]
    assert content.dicts(errors=True) == content.to_arrow().to_pylist()


SHARES = (0.1, 0.0, 0.25)
LOW = Answer(
    ("k", "n", "s", "h"), ("text", "integer", "number", "integer"),
    (("a", 900, -45.0, [9, 90]), ("b", -3, 1234567.5, [0, 0]), ("c", None, None, [None, 1])),
    {"n": (6.0, 6.0, 6.0), "s": (2.5, 40000.0, None), "h": (2.0, 2.0, 2.0)},
    PureDP(1), clipped_share={"n": SHARES, "s": SHARES, "h": SHARES},
)  # fmt: skip
TOTAL = replace(
    LOW,
    columns=("n", "s", "h"),
    types=("integer", "number", "integer"),
    rows=((900, -45.0, [9, 90]),),
    errors={"n": (6.0,), "s": (2.5,), "h": (2.0,)},
)
"""The same of all rows together."""


def test_what_the_limits_leave_out_is_in_units_of_the_answer():
    assert TOTAL.undercount("n") == [(100.0, 0.0, 300.0)]
    assert TOTAL.undercount("s")[0] == (-5.0, -15.0, 0.0)  # nearer to 0 than the truth, whichever side
    assert TOTAL.undercount("h")[0] == ([1.0, 10.0], [0.0, 0.0], [3.0, 30.0])
    below = replace(TOTAL, rows=((-3, None, [0, 0]),))
    assert (below.undercount("n"), below.undercount("s")) == ([(0.0, 0.0, 0.0)], [None])
    everything = Answer(("n",), ("integer",), ((5,),), {"n": (1.0,)}, PureDP(1), clipped_share={"n": (0.5, 0.1, 1.0)})
    assert everything.undercount("n")[0][2] is None
    assert " at least 1\n" in everything.text()
    negative = Answer(("s",), ("number",), ((-90.0,),), {"s": (1.0,)}, PureDP(1), clipped_share={"s": (0.1, 0.1, 1.0)})
    assert negative.undercount("s") == [(-10.0, None, -10.0)]
    assert " at most -10\n" in negative.text()
    assert "at least 1" in everything._repr_html_()


def test_of_a_single_group_nothing_is_said():
    """The share is of all rows: all of them, or none, may be in one group. Answers of groups, recorded ones too, have
    no column that says how low each is."""
    for answer in (LOW, replace(LOW, rows=LOW.rows[:1], errors=dict.fromkeys("nsh", (1.0,)))):
        assert all(answer.undercount(name) == [None] * len(answer) for name in ("k", "n", "s", "h"))
        assert "low by" not in str(answer) + answer._repr_html_() + present.html(answer)
        assert not [name for name in answer.to_arrow().column_names if "low_by" in name]
        assert json.loads(answer.to_json())["left_out"]["n"]["share"] == 0.1
    assert "is shown beside each count" in present.html(TOTAL)
    assert "for all groups together" in present.html(LOW)


def test_what_is_left_out_is_recorded_and_older_records_have_none():
    again = Answer.restored(decode(encode(LOW.stored())))
    assert again == LOW
    assert encode(again.stored()) == encode(LOW.stored())
    assert "left_out" not in ANSWER.stored()
    assert Answer.restored(decode(encode(ANSWER.stored()))).clipped_share == {}


def test_programs_get_what_is_left_out_in_full():
    content = json.loads(TOTAL.to_json())
    assert content["left_out"]["n"] == {"share": 0.1, "low": 0.0, "high": 0.25}
    assert content["rows"][0]["n_low_by"] == 100.0
    assert content["rows"][0]["n_low_by_max"] == 300.0
    assert content["rows"][0]["h_low_by_max"] == [3.0, 30.0]
    assert json.loads(LOW.to_json())["rows"][1]["s"] == 1234567.5
    arrow = TOTAL.to_arrow()
    assert arrow.column("n_low_by_max").to_pylist() == [300.0]
    assert arrow.schema.field("h_low_by").type == pa.list_(pa.float64())
    assert TOTAL.to_csv().splitlines()[0].endswith("h_low_by,h_low_by_min,h_low_by_max")


def test_people_see_the_digits_that_the_error_allows():
    header, _, first, *_ = str(TOTAL).splitlines()
    _, _, _, second, third, *_ = str(LOW).splitlines()
    assert header.split() == ["n", "±", "low", "by", "s", "±", "low", "by", "h", "±", "low", "by"]
    assert first.split()[:3] == ["900", "6", "100"]
    assert "(0–300)" in first
    assert "-45.0" in first
    assert "2.5" in first
    assert "1,230,000  40,000" in second
    assert third.split()[0] == "c"
    assert "10 % (0–25 %)" in first


def test_keys_are_no_quantities():
    answer = Answer(("year", "n"), ("integer", "integer"), ((2013, 2013),), {"n": (12.0,)}, PureDP(1))
    assert str(answer).splitlines()[2].split() == ["2013", "2,013", "12"]


def test_long_answers_say_how_to_see_the_rest():
    many = Answer(("k",), ("integer",), tuple((i,) for i in range(192)), {}, PureDP(1))
    assert "192 rows, 40 shown: " in str(many)
    assert "192 rows, 40 shown" in many._repr_html_()
    assert len(many.text(most=None).splitlines()) == 2 + 192 + 1


def test_a_notebook_shows_text_and_nothing_else():
    answer = Answer(
        ("<b>k", "n"), ("text", "integer"), (("<script>alert(1)</script>", 5), (None, 7)), {"n": (1.0, 1.0)}, PureDP(1),
        (Note("unused_columns", {"names": ["<i>note</i>"]}),),
    )  # fmt: skip
    page = answer._repr_html_()
    assert "<script" not in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;script&gt;" in page
    assert "<em>NULL</em>" in page
    assert "No group has enough people" in Answer(("n",), ("integer",), (), {"n": ()}, PureDP(1))._repr_html_()
