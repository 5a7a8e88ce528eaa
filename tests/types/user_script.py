"""What a user writes: typical calls of the public face, which mypy --strict and pyright in strict mode accept, and
which run. ``assert_type`` says what a checker knows of a result: where that is Any, nothing after it is checked.
"""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import numpy as np
import polars
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

import dither as dp

CARD = """
name = "visits"
source = "visits.csv"
unit = "customer"
max_rows = 2
delta = 1e-7
ledger = "visits.ledger.sqlite"
[budget]
epsilon = 100
delta = 1e-3
[columns]
customer = "integer"
region = { type = "text", keys = ["north", "south"] }
amount = { type = "number", bounds = [0, 100] }
vip = "boolean"
visited_at = { type = "date", bounds = [2026-01-01, 2026-12-31] }
"""


def write_table(folder: Path) -> Path:
    rows = [
        f"{i // 2},{('north', 'south')[i % 2]},{i % 100}.5,{str(i % 7 == 0).lower()},2026-0{1 + i % 9}-15"
        for i in range(2000)
    ]
    (folder / "visits.csv").write_text("\n".join(["customer,region,amount,vip,visited_at", *rows]))
    (folder / "visits.toml").write_text(CARD)
    return folder / "visits.toml"


def mechanisms() -> None:
    m = dp.Laplace(sensitivity=1, epsilon=0.5)
    assert_type(m, dp.Laplace)
    assert_type(m.release(42), int)
    assert_type(m.release(41.5), float)
    assert_type(m.release([1, 2, 3]), list[int])
    noisy = m.release(np.array([1.0, 2.0]))
    assert noisy.shape == (2,)
    assert_type(m.guarantee, dp.PureDP)
    print(2 * m.scale, m.variance / 2, m.error(confidence=0.95) / 100)
    assert_type(dp.Laplace.for_error(5, confidence=0.95, sensitivity=1), dp.Laplace)
    gaussian = dp.Gaussian(sensitivity=1, epsilon=0.5, delta=1e-6)
    assert_type(gaussian.release(3.5), float)
    assert_type(gaussian.privacy_curve(1), float)
    mixed = dp.MixedNoise(sensitivity=1, epsilon=1, delta=1e-6)
    print(mixed.scale * 2, mixed.chosen, mixed.release(7) + 1)
    assert_type(dp.BoundedLaplace(sensitivity=1, epsilon=1, lower=0, upper=10).release(5.0), float)
    assert_type(dp.Staircase(sensitivity=1, epsilon=1).release(5.0), float)
    response = dp.RandomizedResponse(epsilon=1, categories=["yes", "no", "unsure"])
    shares = response.estimate(response.release(["yes", "no", "no"])).shares
    assert_type(shares, NDArray[np.float64])
    assert_type(response.release("yes"), str)
    assert_type(dp.RandomizedResponse(epsilon=1).release(True), int)
    assert_type(dp.SmoothNoise("laplace", epsilon=1, delta=1e-6).scale, float)
    names = ["north", "south"]
    assert_type(dp.Exponential(sensitivity=1, epsilon=1).select(names, [3, 5]), str)
    assert_type(dp.NoisyMax(sensitivity=1, epsilon=1).select(names, np.array([3, 5])), str)
    assert_type(dp.PermuteAndFlip.for_counts(1, dp.AddRemove).select_index([3, 5]), int)
    assert_type(dp.TopK(k=1, sensitivity=1, epsilon=1).select(names, [3, 5]), list[str])
    session = dp.SparseVector(sensitivity=1, epsilon=1, limit=2).start(threshold=100)
    if session.ask(12):
        print("above")


def guarantees() -> None:
    total = dp.PureDP(1) + dp.PureDP(0.5)
    assert_type(dp.parallel(dp.PureDP(1), dp.PureDP(2)), dp.Guarantee)
    assert_type(total <= dp.PureDP(2), bool)
    print(dp.PureDP(0.5).to_approx(delta=1e-6), dp.ZCDP(0.1).to_approx(delta=1e-6).epsilon)
    assert_type(dp.accounting.shuffled(epsilon0=4, n=10_000, delta=1e-6).epsilon, float)
    print(dp.sensitivity.mean(n=100, bounds=(0, 1), neighbors=dp.ReplaceOne) * 2)


def numbers() -> None:
    x = np.linspace(0, 1, 500)
    mean = dp.stats.mean(x, bounds=(0, 1), epsilon=1)
    print(float(mean), mean.error(), round(mean, 2))
    assert_type(dp.stats.mode(["a", "b", "a"], categories=["a", "b"], epsilon=1), str)
    low, high = dp.stats.quantile(x, 0.5, bounds=(0, 1), epsilon=1).interval()
    assert low <= high
    density = dp.density.release(x, bounds=(0, 1), epsilon=1)
    assert_type(density.quantile(0.5), float)
    assert_type(density.cdf(x), NDArray[np.float64])


def tables(card: Path) -> None:
    with dp.open(card) as visits:
        assert_type(visits, dp.Table)
        q = visits.sql("SELECT region, COUNT(*) AS n, AVG(amount) AS spend FROM visits GROUP BY region")
        assert_type(q, dp.Question)
        explanation = q.explain(epsilon=0.5)
        assert_type(explanation, dp.Explanation)
        answer = q.release(epsilon=0.5)
        assert_type(answer, dp.Answer)
        for row in answer:
            print(row["region"], row["n"])
        frame = answer.to_polars()
        assert_type(frame, polars.DataFrame)
        assert_type(answer.plot(axes=Figure().add_subplot()), Axes)
        print(frame.height, answer.errors["n"], answer.error("n"), answer.cost, answer.left, answer.dicts())
        print(answer.to_pandas(), answer.to_arrow())
        built = visits.group_by("region").agg(n=dp.count(), spend=dp.mean("amount"), total=dp.sum("amount"))
        built.release(epsilon=0.5, max_groups=1)
        high = visits.where(dp.col("amount") > 3).where("NOT vip")
        high.agg(people=dp.people(), low=dp.min("amount"), high=dp.max("amount")).release(epsilon=1)
        either = (dp.col("amount").between(3, 50) & ~dp.col("vip")) | (dp.col("region") == "north")
        visits.where(either).agg(middle=dp.median("amount"), p90=dp.quantile("amount", 0.9)).release(epsilon=1)
        visits.where([dp.col("amount") > 3, "vip"]).agg(n=dp.count_distinct("region")).release(epsilon=1)
        monthly = visits.group_by(month=dp.among(dp.col("visited_at").part("month"), [1, 2, 3]))
        monthly.agg(sd=dp.std("amount"), v=dp.var(dp.col("amount") * 2, bounds=(0, 200))).release(epsilon=1)
        visits.agg(bins=dp.histogram("amount", [0, 50, 100]), top=dp.mode("region")).release(epsilon=1)
        visits.per_person(total=dp.sum("amount")).agg(mean=dp.mean("total", bounds=(0, 200))).release(epsilon=1)
        options = dp.ReleaseOptions(epsilon=0.5, analyst=None)
        visits.agg(n=dp.count()).release(options=options)
        visits.agg(n=dp.count()).release(error=50)
        try:
            visits.agg(r=dp.corr("amount", "customer")).release(epsilon=0.1)
        except (dp.InvalidArgument, dp.BudgetExceeded) as refused:
            print(refused)
        print(visits.left, visits.card.columns["amount"].bounds)
    frame = polars.DataFrame({"age": [30, 40] * 50})
    with dp.open(frame, bounds={"age": (0, 120)}, budget=dp.PureDP(1)) as people:
        people.agg(mean=dp.mean("age")).release(epsilon=0.5)


def series(card: Path) -> None:
    with dp.open(str(card)) as visits:
        days = visits.over("month", column="visited_at", horizon=12, start="2026-01-01", epsilon=1, delta=1e-6)
        assert_type(days, dp.stream.TimeSeriesBuilder)
        counted = days.where(dp.col("amount") > 3).group_by("region").agg(n=dp.count())
        assert_type(counted, dp.stream.Series)
        answer = counted.release(through="2026-03-31", window=2)
        assert_type(answer, dp.stream.SeriesAnswer)
        print(answer.to_pandas(), counted.explain().errors)
    running = dp.stream.RunningSum(horizon=365, epsilon=1, delta=1e-9, max_participations=1)
    assert_type(running.release(17), float)
    print(running.error(confidence=0.95))


def publications(card: Path) -> None:
    with dp.open(card) as visits:
        plan = dp.publish.Plan(table=visits, tables=[("region",), ("region", "vip")])
        assert_type(plan, dp.publish.Plan)
        out = plan.release(epsilon=1, delta=1e-6)
        assert_type(out, dp.publish.Publication)
        print(out.table("region").to_pandas(), out.records().num_rows, out.sum_of("vip", [0, 1]).interval())
        records = dp.publish.synthesize(visits, ["region", "vip"], epsilon=1, delta=1e-6)
        print(records.num_rows)


def reports() -> None:
    p = dp.local.SubsetSelection(categories=128, epsilon=1)
    estimate = p.estimate(p.privatize(np.arange(128)))
    assert_type(estimate, dp.local.LocalFrequencies)
    print(estimate.dicts()[0]["share"], p.guarantee, p.variance(1000))
    assert_type(dp.local.best(categories=100, epsilon=1, max_bits=16), dp.local.Recommendation)


def models() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 1, (200, 2)), rng.uniform(0, 1, 200)
    ridge = dp.learn.Ridge(epsilon=1, bounds=[(0, 1), (0, 1)], label_bounds=(0, 1)).fit(X, y)
    assert_type(ridge, dp.learn.Ridge)
    assert_type(ridge.predict(X), NDArray[np.float64])
    labels = (y > 0.5).astype(int)
    logistic = dp.learn.LogisticRegression(epsilon=1, delta=1e-5, bounds=[(0, 1), (0, 1)], classes=[0, 1])
    print(logistic.fit(X, labels).score(X, labels), dp.learn.PCA(1, epsilon=1, bounds=(0, 1)).fit(X).transform(X).shape)


def evidence() -> None:
    assert_type(dp.audit.certify(dp.Laplace(sensitivity=1, epsilon=1)), dp.audit.Certificate)
    m = dp.Laplace(sensitivity=1, epsilon=1)

    def noisy(x: float) -> float:
        return m.release(x)

    measured = dp.audit.measure(noisy, 0.0, 1.0, trials=300, claim=1)
    assert_type(measured, dp.audit.Measurement)
    print(measured)


def budgets(folder: Path) -> None:
    with dp.ledger.open(str(folder / "budget.sqlite")) as ledger:
        ledger.create("visits", limit=dp.PureDP(1))
        answer = ledger.release("visits", dp.PureDP(0.25), lambda: dp.Laplace(1, 0.25).release(120), key="june")
        print(answer.value, answer.receipt)
        with ledger.scope("visits"):
            print(dp.stats.sum([1.0, 2.0], bounds=(0, 2), epsilon=0.1))


def over_http() -> None:
    visits = dp.connect("https://answers.example.org/", table="visits", token="dither_…")
    assert_type(visits, dp.Table)
    served = dp.connect("https://answers.example.org/")
    if isinstance(served, dp.Connection):
        assert_type(served["visits"], dp.Table)
    visits.agg(n=dp.count()).release(epsilon=0.5)


def main(folder: Path) -> None:
    """Everything but what needs a server."""
    card = write_table(folder)
    mechanisms()
    guarantees()
    numbers()
    tables(card)
    series(card)
    publications(card)
    reports()
    models()
    evidence()
    budgets(folder)
