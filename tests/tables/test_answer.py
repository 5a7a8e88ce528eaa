"""An answer as text, frames and files: what goes out comes back."""

from __future__ import annotations

import csv
import io
import json
from datetime import date, datetime

import matplotlib as mpl
import polars
import pyarrow as pa
import pyarrow.parquet as pq

import dither as dp
from dither.errors import DitherError
from dither.ledger.recorded import decode, encode
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
    "ε = 1",
    ("a note",),
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
    told = json.loads(ANSWER.to_json())
    assert told["cost"] == "ε = 1"
    assert told["rows"][0]["month"] == "2024-02-01"
    assert told["rows"][1]["town"] is None
    assert told["rows"][2]["n"] == 1 << 60
    lines = list(csv.reader(io.StringIO(ANSWER.to_csv())))
    assert lines[0][-3:] == ["n_error", "mean_error", "hist_error"]
    assert lines[1][2] == "'=1+1"  # no spreadsheet runs it
    assert lines[1][4] == "-12"  # and a number stays one
    assert lines[2][:4] == [""] * 4
    assert lines[3][2] == ANSWER.rows[2][2]
    for name in ("a.json", "a.csv", "a.parquet"):
        ANSWER.write(tmp_path / name)
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == told
    assert (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()[0] == ANSWER.to_csv().splitlines()[0]
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == ANSWER.to_arrow().to_pylist()
    ANSWER.write(tmp_path / "odd.name", "csv")
    with refuses(DitherError, "json, csv or parquet"):
        ANSWER.write(tmp_path / "a.xlsx")


def test_text_is_a_table():
    shown = str(ANSWER).splitlines()
    assert shown[0].split() == ["month", "at", "town", "vip", "n", "±", "mean", "±", "hist", "±"]
    assert "Ångström 😀" in shown[4]
    assert shown[-2:] == ["cost: ε = 1", "a note"]
    assert "… 2 more rows" in ANSWER.text(most=1)
    assert "recorded answer" in str(Answer.restored(ANSWER.stored(), replayed=True))


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
        Answer(("k",), ("text",), (("a",),), {}, "ε = 1").plot()
    mpl.pyplot.close("all")


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
    told = Answer(("n", "n_error"), ("integer", "integer"), ((5, 7),), {"n": (1.0,), "n_error": (2.0,)}, "ε = 1")
    assert told.to_arrow().to_pylist() == [{"n": 5, "n_error": 7, "n_error_": 1.0, "n_error_error": 2.0}]
    assert told.to_csv().splitlines() == ["n,n_error,n_error_,n_error_error", "5,7,1.0,2.0"]
    assert told.dicts(errors=True) == told.to_arrow().to_pylist()
