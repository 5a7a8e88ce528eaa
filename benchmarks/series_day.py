"""Adding a day to a series on a table of 10,000,000 rows, beside the bounded statement of that day alone.

    python benchmarks/series_day.py [rows]
    python benchmarks/series_day.py coverage [releases]
    python benchmarks/series_day.py --quick    # few rows, to see that it runs

The statement alone is a question about the same day, as people would ask it (its SQL on the same engine, run by itself,
without a ledger); a day of the series is ``Series.release`` from beginning to end: statement, record of people, noise,
the durable commit, and all points so far. Half a year was released before, a day at a time. Seconds are those of the
processors, of all threads, so that other work on the machine does not count. Beside the median day stands the mean,
which has the days on which records of people are merged.

``coverage`` releases counts and sums by group of a small table anew, each time from a fresh ledger, and says how often
the truth of the rows that count lies within the ±, over all days, groups and aggregates.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import dither as dp
from dither.tables.card.model import Card, ColumnCard

DAYS, REPEATS = 365, 12


def source(folder: Path, rows: int, ordered: bool, days: int) -> str:
    """A DuckDB table of visits of a tenth as many people, in a year; in the order of days, or in none."""
    place = folder / f"visits_{ordered}.duckdb"
    day = f"(i * {days} // {rows})" if ordered else f"(hash(i + 7) % {days})"
    with duckdb.connect(str(place)) as connection:
        connection.execute(
            f"CREATE TABLE visits AS SELECT (hash(i) % {rows // 10})::BIGINT AS who, "
            f"(DATE '2026-01-01' + {day}::INTEGER) AS day, (hash(i + 1) % 1000)::DOUBLE / 10 AS amount "
            f"FROM range({rows}) AS r(i)"
        )
    return f"{place}::visits"


def seconds(work: Callable[[], object]) -> float:
    """How long processors work for it."""
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(rows: int, ordered: bool, folder: Path, days: int = DAYS) -> tuple[float, float, float]:
    """Median seconds of the statement alone and of a day of the series, and the mean of the latter."""
    columns = {"who": ColumnCard("integer"), "day": ColumnCard("date"), "amount": ColumnCard("number", (0, 100))}
    card = Card(
        "visits", source(folder, rows, ordered, days), columns, "who", ledger=str(folder / f"ledger_{ordered}"),
        budget=dp.ApproxDP(9, 1e-5),
    )  # fmt: skip
    with dp.open(card) as table:
        over = table.over(
            "day",
            column="day",
            horizon=days,
            start="2026-01-01",
            epsilon=1,
            delta=1e-6,
            max_participations=min(30, days),
        )
        series = over.agg(n=dp.count(), spend=dp.sum("amount"))
        first = days // 2
        for step in range(1, first + 1):
            series.release(through=series.spec.calendar.begin(step))
        alone, whole = [], []
        for step in range(first + 1, min(days, first + REPEATS) + 1):
            statement = series._statement(step, step)
            alone.append(seconds(lambda statement=statement: table.engine.run(statement)))
            moment = series.spec.calendar.begin(step)
            whole.append(seconds(lambda moment=moment: series.release(through=moment)))
    return statistics.median(alone), statistics.median(whole), statistics.mean(whole)


def coverage(releases: int, days: int = 60, people: int = 900) -> dict[str, tuple[float, float]]:
    """The share of points whose truth is within the ±, and its standard error, for running totals, weeks and days.

    Everybody has three rows on each of two days, 20 apart, of which one day counts (20 is below the separation of 30),
    with two of three rows: what counts is known, and is not what the table holds.
    """
    drawn = np.random.default_rng(5)
    first = drawn.integers(0, days - 20, people)
    ward = drawn.integers(0, 3, people)
    start = date(2026, 1, 1)
    lines = [(i, start + timedelta(days=int(first[i]) + later), f"w{ward[i]}", 5.0) for i in range(people)
             for later in (0, 0, 0, 20, 20, 20)]  # fmt: skip
    table = pa.table(dict(zip(("who", "day", "ward", "x"), map(list, zip(*lines, strict=True)), strict=True)))
    truth = np.zeros((days, 3))
    np.add.at(truth, (first, ward), 2.0)
    totals = np.cumsum(truth, axis=0)
    shares: dict[str, list[float]] = {}
    for _ in range(releases):
        with dp.open(
            table, unit="who", keys={"ward": ["w0", "w1", "w2"]}, bounds={"x": (0, 10)}, budget=dp.ApproxDP(1, 1e-6)
        ) as opened:
            over = opened.over(
                "day", column="day", horizon=days, start=start, epsilon=1, delta=1e-6, max_participations=2,
                min_separation=30, max_rows=2,
            )  # fmt: skip
            series = over.group_by("ward").agg(n=dp.count(), x=dp.sum("x"))
            for window, label in ((None, "running totals"), (7, "last 7 days"), (1, "single days")):
                answer = series.release(through=start + timedelta(days=days - 1), window=window)
                exact = totals.copy()
                if window is not None:
                    exact[window:] -= totals[:-window]
                for name, worth in (("n", 1.0), ("x", 5.0)):
                    off = np.abs(np.array(answer[name]) - worth * exact.ravel())
                    shares.setdefault(label, []).append(float(np.mean(off <= np.array(answer.error(name)))))
    return {label: (float(np.mean(s)), float(np.std(s) / math.sqrt(len(s)))) for label, s in shares.items()}


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="10000000", help="a number of rows, or coverage")
    parser.add_argument("releases", nargs="?", type=int, default=200, help="for coverage")
    parser.add_argument("--quick", action="store_true", help="few rows, days and releases, to see that both run")
    options = parser.parse_args()
    if options.what == "coverage" or options.quick:
        for label, (share, spread) in coverage(2 if options.quick else options.releases).items():
            print(f"coverage of {label}: {100 * share:.2f} % ± {196 * spread:.2f}")
    if options.what == "coverage":
        return
    count, days = (2_000, 20) if options.quick else (int(options.what), DAYS)
    with tempfile.TemporaryDirectory() as scratch:
        for in_order in (False, True):
            one, day, mean = measure(count, in_order, Path(scratch), days)
            how = "in the order of days" if in_order else "in no order"
            print(
                f"{count:,} rows {how}: statement {one:.3f} s, a day of the series {day:.3f} s, "
                f"{day / max(one, 1e-9):.2f} times (mean {mean:.3f} s)"
            )


if __name__ == "__main__":
    main()
