"""What every engine has to agree on, to the bit: one suite, run on each. The oracle is Python."""

from __future__ import annotations

import hashlib
import math
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime
from itertools import product as pairs
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from sqlglot import exp

from dither.tables.card.model import Type
from dither.tables.query import nodes as say
from dither.tables.query.nodes import column, literal, render
from support import PATIENCE_S, eventually, refuses

TEXTS = [
    "", " ", "a", "a ", " a", "A", "b", "B", "Z", "_", "%", "\\", "a\\_b", "a_b", "axb", "a%b", "it's", '"', "`", "\n",
    "a\nb", "\t",
    "é", "e\u0301", "Å", "A\u030a", "ß", "ss", "SS", "İ", "i", "I", "ı", "ﬁ", "fi", "😀", "👩\u200d👩\u200d👧", "日本",
    "\u202eabc", "\ufeff", "\uffff", "\U0010ffff", "a-b", "ab", "a b", "coop", "co-op", "${spark.app.name}", "$1", "?",
    "%s", ":x", "--", "/*", "NULL", "null", "nan", "true", "0", "-0", "10", "9",
]  # fmt: skip
DOUBLES = [
    0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, -0.49999999999999994, 0.1, -0.1, 1 / 3, 5e-324, -5e-324,
    1e-310, 2.2250738585072014e-308, 1e-300, 1e-200, 4503599627370495.5, 4503599627370496.5, -4503599627370495.5,
    1023.9999999999999, 123456.789, -123456.789, 3.0000000000000004,
]  # fmt: skip
EXTREMES = [*DOUBLES, 1e308, -1e308, 1.7976931348623157e308, 1e200, -1e200, 1e155, 1e-155, 1e290, 1e-290, 1.0, -1.0]
DATES = [
    date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31), date(1970, 1, 1), date(1582, 10, 4), date(1582, 10, 15),
    date(1900, 2, 28), date(2000, 2, 29), date(2020, 12, 28), date(2021, 1, 1), date(2021, 1, 3), date(2021, 1, 4),
    date(2023, 12, 31), date(2024, 2, 29), date(2024, 6, 30), date(2024, 7, 1),
]  # fmt: skip
TIMES = [
    *(datetime(day.year, day.month, day.day) for day in DATES),
    *(datetime(day.year, day.month, day.day, 23, 59, 59, 999999) for day in DATES),
    datetime(2024, 3, 10, 2, 30), datetime(2024, 11, 3, 1, 30, 0, 120000), datetime(1883, 11, 18, 12, 0, 0, 1),
]  # fmt: skip
INTEGERS = [0, 1, -1, 7, -7, 2**31, -(2**31) - 1, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)]


class Primitives:
    """Subclasses say which engine."""

    kind: ClassVar[say.Dialect]

    @pytest.fixture
    def ask(self, engine: Any) -> Callable[..., list[Any]]:
        """Expressions over rows that also have a number, in the order of the numbers."""

        def ask(rows: dict[str, Any], *expressions: exp.Expression) -> list[Any]:
            size = len(next(iter(rows.values())))
            loaded = engine(self.kind, pa.table({"i": pa.array(range(size), pa.int64()), **rows}))
            listed = [exp.alias_(item, f"y{n}") for n, item in enumerate(expressions)]
            query = exp.select(*listed).from_(exp.alias_(loaded.table, "t", table=True)).order_by(column("i", "t"))
            result = loaded.run(query)
            columns = [result.column(f"y{n}").to_pylist() for n in range(len(expressions))]
            return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

        return ask

    def test_a_table_comes_back_as_it_went_in(self, engine: Any) -> None:
        rows = pa.table(
            {
                "i": pa.array([*INTEGERS, None]),
                "x": pa.array([*DOUBLES[:9], math.inf, -math.inf, None]),
                "t": pa.array([*TEXTS[:11], None]),
                "b": pa.array([True, False, None] * 4),
                "d": pa.array([*DATES[:11], None]),
                "s": pa.array([*TIMES[:11], None], pa.timestamp("us")),
            }
        )
        loaded = engine(self.kind, rows)
        result = loaded.run(exp.select("*").from_(exp.alias_(loaded.table, "t", table=True)))
        assert result.schema == rows.schema
        assert Counter(map(repr, result.to_pylist())) == Counter(map(repr, rows.to_pylist()))
        types = {"i": "integer", "x": "number", "t": "text", "b": "boolean", "d": "date", "s": "timestamp"}
        assert loaded.schema() == loaded.columns == types

    def test_plain_sums_of_products_are_those_of_python(self, ask: Any) -> None:
        drawn = random.Random(1)
        a, b = ([drawn.uniform(-1e6, 1e6) for _ in range(500)] for _ in range(2))
        x, y = column("x"), column("y")
        result = ask({"x": pa.array(a), "y": pa.array(b)}, x + y, x * y, x - y, x * y + x)
        assert result == [(p + q, p * q, p - q, p * q + p) for p, q in zip(a, b, strict=True)]

    def test_digests_are_of_utf8(self, ask: Any) -> None:
        result = ask({"x": pa.array([*TEXTS, None])}, say.md5(column("x")))
        assert result == [*(hashlib.md5(text.encode()).hexdigest() for text in TEXTS), None]

    @pytest.mark.parametrize(
        ("type", "values", "shown"),
        [
            ("integer", INTEGERS, str),
            ("boolean", [True, False], lambda value: str(value).lower()),
            ("date", DATES, lambda value: f"{value:%Y-%m-%d}".rjust(10, "0")),
            ("timestamp", TIMES, lambda value: value.isoformat(" ", "microseconds")),
            ("text", TEXTS, str),
        ],
    )
    def test_text_of_values(self, ask: Any, type: Type, values: list[Any], shown: Any) -> None:
        result = ask({"x": pa.array([*values, None])}, say.as_text(column("x"), type, self.kind))
        assert result == [*map(shown, values), None]

    def test_text_is_compared_byte_by_byte(self, ask: Any) -> None:
        a, b = zip(*pairs(TEXTS, TEXTS), strict=True)
        x, y = column("x"), column("y")
        kinds = [exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE]
        result = ask(
            {"x": pa.array(a), "y": pa.array(b)}, *(kind(this=x.copy(), expression=y.copy()) for kind in kinds)
        )
        for p, q, row in zip(a, b, result, strict=True):
            p, q = p.encode(), q.encode()
            assert row == (p == q, p != q, p < q, p <= q, p > q, p >= q), (p, q)

    def test_text_is_compared_with_constants_byte_by_byte(self, ask: Any) -> None:
        for constant in ["a", "Z", "é", "😀", "a b"]:
            result = ask({"x": pa.array(TEXTS)}, exp.LT(this=column("x"), expression=literal(constant)))
            assert result == [text.encode() < constant.encode() for text in TEXTS]

    def test_whole_quotients(self, ask: Any) -> None:
        tops, bottoms = (
            [0, 1, 2, 6, 7, 2**31, 2**53 + 1, 2**62 + 1, 2**63 - 1],
            [1, 2, 3, 7, 2**31 - 1, 2**62, 2**63 - 1],
        )
        a, b = zip(*pairs(tops, bottoms), strict=True)
        x, y = column("x"), column("y")
        result = ask(
            {"x": pa.array(a), "y": pa.array(b)},
            say.integer_quotient(x, y, self.kind),
        )
        assert result == [p // q for p, q in zip(a, b, strict=True)]

    def test_constants(self, ask: Any) -> None:
        values: list[Any] = [
            *TEXTS,
            *EXTREMES,
            *INTEGERS,
            *DATES,
            *TIMES,
            True,
            False,
            None,
            "\\'; DROP TABLE t; --",
            "\r\n\x01",
        ]
        row = ask({"x": pa.array([1])}, *map(literal, values))[0]
        for value, result in zip(values, row, strict=True):
            assert repr(result) == repr(value)
        assert ask({"x": pa.array([1])}, literal(math.inf), literal(-math.inf)) == [(math.inf, -math.inf)]
        assert math.isnan(ask({"x": pa.array([1])}, literal(math.nan))[0])

    def test_unknown_is_neither(self, ask: Any) -> None:
        a, b = zip(*pairs([True, False, None], repeat=2), strict=True)
        x, y = column("x"), column("y")
        case = exp.Case(default=literal(3)).when(x, literal(1)).when(exp.Not(this=y), literal(2))
        result = ask(
            {"x": pa.array(a), "y": pa.array(b)},
            exp.and_(x, y),
            exp.or_(x, y),
            exp.Not(this=x.copy()),
            exp.Is(this=x.copy(), expression=exp.null()),
            exp.Coalesce(this=x.copy(), expressions=[y.copy()]),
            case,
        )
        for p, q, row in zip(a, b, result, strict=True):
            both = False if False in (p, q) else None if None in (p, q) else True
            either = True if True in (p, q) else None if None in (p, q) else False
            arm = 1 if p else 2 if q is False else 3
            assert row == (both, either, None if p is None else not p, p is None, q if p is None else p, arm)

    def test_comparing_null_and_nan(self, ask: Any) -> None:
        values = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, None]
        x = column("x")
        result = ask(
            {"x": pa.array(values)}, exp.EQ(this=x, expression=literal(0.0)), exp.LT(this=x, expression=literal(1.0))
        )
        assert result[1:] == [(False, False), (False, True), (True, True), (True, True), (False, False), (None, None)]
        assert result[0] == (False, False)  # and NaN >= 1 is true: above everything

    def test_counts_and_keys(self, engine: Any) -> None:
        keys = [*TEXTS, None, *TEXTS[:20], None]
        values = [None if i % 3 == 0 else i for i in range(len(keys))]
        loaded = engine(self.kind, pa.table({"k": pa.array(keys), "x": pa.array(values)}))
        query = (
            exp.select(
                column("k"), exp.alias_(exp.Count(this=exp.Star()), "n"), exp.alias_(exp.Count(this=column("x")), "v")
            )
            .from_(exp.alias_(loaded.table, "t", table=True))
            .group_by(column("k"))
        )
        result = {row["k"]: (row["n"], row["v"]) for row in loaded.run(query).to_pylist()}
        filled = Counter(key for key, value in zip(keys, values, strict=True) if value is not None)
        assert result == {key: (n, filled[key]) for key, n in Counter(keys).items()}

    def test_no_rows(self, engine: Any) -> None:
        loaded = engine(self.kind, pa.table({"x": pa.array([], pa.int64())}))
        shown = [exp.alias_(exp.Count(this=exp.Star()), "n"), exp.alias_(exp.Sum(this=column("x")), "s")]
        assert loaded.run(exp.select(*shown).from_(loaded.table)).to_pylist() == [{"n": 0, "s": None}]
        result = loaded.run(exp.select(column("x")).from_(loaded.table))
        assert (result.num_rows, result.schema.names) == (0, ["x"])

    def test_errors_hold_no_values(self, engine: Any) -> None:
        from dither.errors import InvalidData

        loaded = engine(self.kind, pa.table({"x": pa.array([2**63 - 1]), "t": pa.array(["a secret"])}))
        for failing in (column("x") * column("x"), say.cast(column("t"), "integer")):
            with refuses(InvalidData, "withheld") as caught:
                loaded.run(exp.select(exp.alias_(failing, "y")).from_(loaded.table))
            assert "secret" not in str(caught.value)
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None
        assert loaded.run(exp.select(column("x")).from_(loaded.table)).num_rows == 1  # it still works

    def test_odd_names(self, engine: Any) -> None:
        names = ["select", "a b", "ä😀", "semi;", "dot.ted", "back`tick", "100%", "${x}"]
        rows = pa.table({name: [i] for i, name in enumerate(names)})
        loaded = engine(self.kind, rows)
        result = loaded.run(exp.select(*map(column, names)).from_(loaded.table))
        assert result.to_pylist() == rows.to_pylist()
        assert loaded.columns == dict.fromkeys(names, "integer")

    def test_public_tables(self, engine: Any, tmp_path: Any) -> None:
        from dither.tables.card.model import Card, ColumnCard, PublicTable

        (tmp_path / "p.csv").write_text("code,région,since,n\n1,nord,2024-01-01,1.5\n2,süd,,\n2,,,\n")
        kinds: dict[str, Type] = {"code": "integer", "région": "text", "since": "date", "n": "number"}
        public = PublicTable(str(tmp_path / "p.csv"), {name: ColumnCard(type) for name, type in kinds.items()})
        card = Card("t", "…", {"code": ColumnCard("integer")}, public={"p": public})
        loaded = engine(self.kind, pa.table({"code": [1, 1, 3]}), card)
        assert not loaded.unique("p", "code")
        assert loaded.unique("p", "région")
        query = f"""
            SELECT p.* FROM {render(loaded.table, self.kind)} AS t
            JOIN {render(loaded.public("p"), self.kind)} AS p ON t.code = p.code
        """
        row = {"code": 1, "région": "nord", "since": date(2024, 1, 1), "n": 1.5}
        assert loaded.run(query).to_pylist() == [row, row]


def interrupted(script: str, *arguments: str, begun: Callable[[], object]) -> str:
    """What a program says that is told to stop once it has said that it asks and its statement has begun; the statement
    would take longer than anybody waits here."""
    command = [sys.executable, "-c", script, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "asking\n"
        eventually(begun)
        process.send_signal(signal.SIGINT)
        said, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.communicate()
    return said + errors


@contextmanager
def cancelling(engine: Any) -> Iterator[None]:
    """Cancel what an engine runs, from another thread, as often as it takes: the first time may come too early."""
    ended = threading.Event()

    def cancel() -> None:
        while not ended.wait(0.1):
            engine.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
