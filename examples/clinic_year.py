"""A year of a clinic's admissions: one charge, a point for every day, and numbers that never change once they are out.

The clinic releases what is new every few months. A patient counts on at most three days of the year. Asked day by day
with fresh noise, the same budget would have to be divided by 365.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

import dither as dp

YEAR, WARDS = 365, ("surgery", "medicine")


def admissions(through: int, seed: int = 11) -> pa.Table:
    """Invented admissions of the year's first days: more in winter, fewer on weekends."""
    drawn = np.random.default_rng(seed)
    start, patients, days, wards = date(2026, 1, 1), [], [], []
    for day in range(through):
        moment = start + timedelta(days=day)
        usual = 60 + 20 * math.cos(2 * math.pi * day / YEAR) - (25 if moment.weekday() > 4 else 0)
        count = int(drawn.poisson(usual))
        patients += drawn.integers(0, 40_000, count).tolist()
        days += [moment] * count
        wards += [WARDS[i] for i in drawn.integers(0, 2, count)]
    return pa.table({"patient": patients, "day": days, "ward": wards})


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Release the year, some months at a time, and compare with fresh noise every day; draw the weekly sums."""
    del quick  # it is
    folder = Path("out") if out is None else out
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        for through in (120, 240, YEAR):  # the table grows; the ledger keeps the state
            with dp.open(
                admissions(through),
                unit="patient",
                keys={"ward": list(WARDS)},
                budget=dp.ApproxDP(1, 1e-6),
                ledger=f"{place}/ledger.sqlite",
                name="admissions",
            ) as table:
                last = date(2026, 1, 1) + timedelta(days=through - 1)
                days = table.over(
                    "day", column="day", horizon=YEAR, start="2026-01-01", epsilon=1, delta=1e-6, max_participations=3
                )
                series = days.group_by("ward").agg(n=dp.count())
                answer, weekly = series.release(through=last), series.release(through=last, window=7)
    names, counts = np.unique(admissions(YEAR)["ward"].to_numpy(), return_counts=True)
    truth = dict(zip(names.tolist(), counts.tolist(), strict=True))
    ends = {row[1]: (row[2], error) for row, error in zip(answer.rows[-2:], answer.error("n")[-2:], strict=True)}
    for ward, (value, error) in ends.items():
        print(f"{ward} through 2026-12-31: {value:,.0f} ± {error:,.0f} (truth: {truth[ward]:,})")
    fresh = float(dp.Gaussian(sensitivity=math.sqrt(3), epsilon=1, delta=1e-6).error()) * math.sqrt(YEAR)
    print(f"the sum of a year of fresh daily noise at the same cost: ± {fresh:,.0f}")
    print(f"a week, from the same points: ± {weekly.error('n')[-1]:,.0f}; cost of all of it: {answer.cost}")
    figure = Figure(figsize=(9, 4), layout="constrained")
    weekly.plot(axes=figure.subplots())
    figure.savefig(Path(folder, "clinic_year.png"))
    return {"truth": truth, "ends": ends, "fresh": fresh, "points": len(answer)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    main(parser.parse_args().out)
