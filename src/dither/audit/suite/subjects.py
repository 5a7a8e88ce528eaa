"""What ``dither audit`` looks at: every mechanism, statistic and release there is, at neighbours that are hard for it.

A subject has a claim, a function ``(data, size) -> size outputs`` and two neighbouring data sets; a mechanism can be
certified as well, and whatever is made of mechanisms can be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from dither import density, stats
from dither.guarantees import ApproxDP, Guarantee, PureDP
from dither.mechanisms import (
    BoundedLaplace,
    ContinuousExponential,
    Exponential,
    Gaussian,
    Laplace,
    MixedNoise,
    NoisyMax,
    PermuteAndFlip,
    ProposeTestRelease,
    RandomizedResponse,
    ReusableHoldout,
    SmoothNoise,
    SparseVector,
    Staircase,
    TopK,
)
from dither.neighbors import AddRemove, Neighbors, ReplaceOne

Draw = Callable[[Any, int], Any]


@dataclass(frozen=True)
class Subject:
    """Something that claims to be private, and how to put it to the test."""

    name: str
    kind: str
    """``mechanism``, ``statistic``, ``density``, ``table`` or ``learning``."""
    claim: Guarantee
    one: Any = field(repr=False)
    other: Any = field(repr=False)
    draw: Draw = field(repr=False)
    mechanism: Any = field(default=None, repr=False)
    """What can be certified, or a function that makes it: a session belongs to the process that starts it."""
    measured: bool = True
    """Whether it is quick enough to be run thousands of times."""
    replayed: bool = True
    """Whether all its noise is drawn by mechanisms."""


def subjects() -> list[Subject]:
    """All of them.

    >>> len(subjects()) > 40
    True
    """
    return [*_noises(), *_smooth(), *_choices(), *_sessions(), *_statistics(), *_densities(), *_tables(), *_learning()]


def each(function: Callable[[Any], Any]) -> Draw:
    """One run after another."""
    return lambda x, size: [function(x) for _ in range(size)]


def _filled(mechanism: Any) -> Draw:
    """Many releases of one number at once: every coordinate has noise of its own."""
    return lambda x, size: mechanism.release(np.full(size, x))


def _reports(response: RandomizedResponse, x: Any, size: int) -> Any:
    return response.release([x] * size)


def _noises() -> Iterator[Subject]:
    normal = Gaussian(sensitivity=1, epsilon=1, delta=1e-6)
    for name, mechanism, one, other in (
        ("Laplace, whole numbers", Laplace(1, 1), 0, 1),
        ("Laplace, real numbers", Laplace(1, 1), 0.0, 1.0),
        ("Laplace, a third", Laplace(1 / 3, 1), 0.0, 1 / 3),
        ("Gaussian, whole numbers", normal, 0, 1),
        ("Gaussian, real numbers", normal, 0.0, 1.0),
        ("Gaussian, zCDP, whole numbers", Gaussian(sensitivity=1, rho=0.5), 0, 1),
        ("mixed noise", MixedNoise(1, 1, 1e-6), 0.0, 1.0),
    ):
        yield Subject(name, "mechanism", mechanism.guarantee, one, other, _filled(mechanism), mechanism)
    stairs = Staircase(1, 2)
    yield Subject("staircase", "mechanism", stairs.guarantee, 0.0, 1.0, each(stairs.release), stairs)
    split = Laplace([1, 2], 1)
    yield Subject(
        "Laplace, two sensitivities", "mechanism", split.guarantee, [0.0, 0.0], [1.0, 2.0], each(split.release), split
    )
    bounded = BoundedLaplace(1, 1, 0, 10)
    for name, one, other in (("real numbers", 0.0, 1.0), ("whole numbers", 0, 1)):
        yield Subject(
            f"bounded Laplace, {name}", "mechanism", bounded.guarantee, one, other, each(bounded.release), bounded
        )
    for categories in (2, 5):
        response = RandomizedResponse(1, categories)
        one, other = (False, True) if categories == 2 else (0, 1)
        yield Subject(
            f"randomized response, {categories} categories", "mechanism", response.guarantee, one, other,
            partial(_reports, response), response,
        )  # fmt: skip


def _smooth() -> Iterator[Subject]:
    for kind in ("laplace", "gaussian", "cauchy", "student"):
        pure = kind in ("cauchy", "student")
        noise = SmoothNoise(kind, 1) if pure else SmoothNoise(kind, 1, 1e-6)

        def draw(x: Any, noise: Any = noise) -> Any:
            return noise.release(x[0], x[1], width=1000.0)

        size = 1.0
        wider = size * float(np.exp(noise.beta)) * (1 - 1e-12)
        yield Subject(
            f"smooth noise, {kind}", "mechanism", noise.guarantee, (0.0, size), (size, wider), each(draw), noise
        )


def _choices() -> Iterator[Subject]:
    here, there = [0, 0, 0, 0, 1], [1, 1, 1, 1, 0]
    for name, chooser in (
        ("exponential mechanism", Exponential(1, 1)),
        ("noisy max, Gumbel", NoisyMax(1, 1, noise="gumbel")),
        ("noisy max, Laplace", NoisyMax(1, 1, noise="laplace")),
        ("noisy max, exponential", NoisyMax(1, 1, noise="exponential")),
        ("permute and flip", PermuteAndFlip(1, 1)),
    ):
        yield Subject(name, "mechanism", chooser.guarantee, here, there, each(chooser.select_index), chooser)
    monotone = Exponential(1, 1, monotone=True)
    yield Subject(
        "exponential mechanism, monotone", "mechanism", monotone.guarantee, [0, 0, 0], [1, 0, 0],
        each(monotone.select_index), monotone,
    )  # fmt: skip
    best = TopK(2, 1, 1)
    yield Subject("top k", "mechanism", best.guarantee, here, there, each(best.select_indices), best)
    whole = Exponential(1, 1)
    yield Subject(
        "exponential mechanism, all integers", "mechanism", whole.guarantee, 0, 1,
        each(lambda x: whole.select_integer(lambda k: -abs(k - x), center=x, ceiling=0, slope=1)), whole,
    )  # fmt: skip
    along = ContinuousExponential(1, 1, bounds=(0.0, 1.0))
    left, right = [(0.0, 0.5, [1.0]), (0.5, 1.0, [0.0])], [(0.0, 0.5, [0.0]), (0.5, 1.0, [1.0])]
    yield Subject(
        "exponential mechanism, an interval", "mechanism", along.guarantee, left, right, each(along.release), along
    )


def one_session(sparse: SparseVector, answers: Sequence[float]) -> list[float]:
    """What a session says to each answer, about a threshold of 0; -1000 after its end."""
    asked = sparse.start(0.0)
    return [-1000.0 if asked.done else float(asked.ask(float(answer))) for answer in answers]


def _above(t: float, rows: Any) -> Any:
    return (rows > t).astype(float)


def _sessions() -> Iterator[Subject]:
    for numeric in (False, True):
        sparse = SparseVector(1, 1, 2, numeric=numeric)
        yield Subject(
            "sparse vector" + (", numeric" if numeric else ""), "mechanism", sparse.guarantee,
            (0.0, 0.0, 1.0, 1.0), (1.0, 1.0, 0.0, 0.0), each(partial(one_session, sparse)), sparse,
        )  # fmt: skip
    train = np.linspace(0, 1, 10)

    def started(x: Any) -> ReusableHoldout:
        return ReusableHoldout(train, x, threshold=0.3, epsilon=1, bounds=(0, 1), limit=2)

    def holdout(x: Any) -> list[float]:
        kept = started(x)
        return [kept.ask(partial(_above, t)).value for t in (0.2, 0.8)]

    one = np.linspace(0, 1, 10)
    other = np.append(one[:-1], 0.0)
    yield Subject("reusable holdout", "mechanism", PureDP(1), one, other, each(holdout), partial(started, one))
    test = ProposeTestRelease(bound=1, epsilon=1, delta=1e-3)
    yield Subject(
        "propose, test, release", "mechanism", test.guarantee, (0.0, test.threshold), (1.0, test.threshold + 1),
        each(lambda x: test.release(*x)), test,
    )  # fmt: skip


def _statistics() -> Iterator[Subject]:
    bounds = {"bounds": (0, 1)}
    for name, how in (
        ("count", {}), ("sum", bounds), ("mean", bounds), ("variance", bounds), ("std", bounds), ("median", bounds),
        ("min", bounds), ("max", bounds), ("iqr", bounds), ("histogram", bounds),
    ):  # fmt: skip
        function = getattr(stats, name)
        for relation in (AddRemove, ReplaceOne):
            # ranks are most in doubt where the middle of the data is empty
            one = np.append(np.zeros(5), np.ones(4)) if name in ("median", "iqr") else np.zeros(9)
            other = np.append(one, 1.0) if relation is AddRemove else np.append(one[1:], 1.0)
            if (name, relation) == ("count", ReplaceOne):
                continue  # nothing changes

            def draw(x: Any, function: Any = function, relation: Neighbors = relation, how: Any = how) -> Any:
                result = function(x, epsilon=1, neighbors=relation, **how)
                return result.counts.tolist() if hasattr(result, "counts") else result

            yield Subject(f"{name}, {_words(relation)}", "statistic", PureDP(1), one, other, each(draw))
    yield Subject(
        "median, smooth", "statistic", PureDP(1), np.array([0.0, 0.0, 0.0, 1.0, 1.0]), np.array([0.0] * 4 + [1.0]),
        each(lambda x: stats.median(x, bounds=(0, 1), epsilon=1, method="smooth")),
    )  # fmt: skip
    yield Subject(
        "quantiles", "statistic", PureDP(1), np.linspace(0, 1, 9), np.linspace(0, 1, 9)[:-1],
        each(lambda x: stats.quantiles(x, [0.25, 0.5, 0.75], bounds=(0, 1), epsilon=1, neighbors=AddRemove)),
    )  # fmt: skip
    yield Subject(
        "mode", "statistic", PureDP(1), ["a", "b"], ["a", "a"],
        each(lambda x: stats.mode(x, ["a", "b", "c"], epsilon=1)),
    )  # fmt: skip


def _words(relation: Neighbors) -> str:
    return "add or remove" if relation is AddRemove else "replace"


def _densities() -> Iterator[Subject]:
    one = np.linspace(0.05, 0.45, 9)
    other = np.append(one[:-1], 0.95)
    for method in ("histogram", "perturbed", "smoothed", "ks"):
        how = {"ks": {"bins": 4, "points": 4}, "smoothed": {"bins": 2, "points": 2}}.get(method, {"bins": 3})

        def draw(x: Any, method: Any = method, how: Any = how) -> Any:
            return density.release(x, (0, 1), 1, method=method, **how).weights.tolist()

        yield Subject(f"density, {method}", "density", PureDP(1), one, other, each(draw))


def _tables() -> Iterator[Subject]:
    import pyarrow as pa

    from dither.tables.table import open as open_table

    people = np.arange(60) % 20
    rows = {"who": people, "town": [f"t{i % 3}" for i in range(60)], "amount": np.linspace(0, 10, 60)}
    one = pa.table(rows)
    other = one.filter(pa.array(people != 7))
    for name, keys, question in (
        ("counts and means, public keys", ["t0", "t1", "t2"], "COUNT(*) AS n, AVG(amount) AS m"),
        ("quartiles, public keys", ["t0", "t1", "t2"], "QUANTILE(amount, 0.25) AS a, MEDIAN(amount) AS b"),
        ("counts and sums, private keys", None, "COUNT(*) AS n, SUM(amount) AS s"),
    ):

        def draw(x: Any, keys: Any = keys, question: str = question) -> Any:
            stated = None if keys is None else {"town": keys}
            budget = ApproxDP(2, 1e-4)
            with open_table(
                x, unit="who", bounds={"amount": (0, 10)}, keys=stated, budget=budget, max_groups=2
            ) as table:
                asked = table.sql(f"SELECT town, {question} FROM data GROUP BY town")
                return asked.release(epsilon=1, delta=1e-6).to_arrow().to_pylist()

        claim = ApproxDP(1, 1e-6)
        yield Subject(f"table, {name}", "table", claim, one, other, each(draw), measured=False)


def _learning() -> Iterator[Subject]:
    """Fits, which are too slow to be measured here; their mechanisms are, and what reaches them is replayed."""
    if find_spec("sklearn") is None:
        return
    from dither import learn

    X = np.column_stack([np.linspace(0, 1, 40), np.tile([0.0, 1.0], 20)])
    y = (X[:, 0] > 0.5).astype(np.float64)
    extreme, fewer = np.append(X[:-1], [[0.0, 1.0]], axis=0), X[:-1]
    told: dict[str, Any] = {"epsilon": 1, "bounds": (0, 1)}
    labels: dict[str, Any] = {**told, "label_bounds": (0, 1)}
    classes: dict[str, Any] = {**told, "classes": [0, 1]}
    for name, model, shown in (
        ("mean", learn.Mean(**told), ("mean_",)),
        ("linear regression", learn.LinearRegression(**labels), ("coef_", "intercept_")),
        ("ridge", learn.Ridge(**labels), ("coef_", "intercept_")),
        ("logistic regression", learn.LogisticRegression(**classes), ("coef_", "intercept_")),
        ("naive Bayes", learn.GaussianNB(**classes), ("theta_", "var_", "class_prior_")),
        ("k-means", learn.KMeans(2, **told), ("cluster_centers_",)),
        ("principal components", learn.PCA(1, **told), ("components_", "mean_")),
        ("standard scaler", learn.StandardScaler(**told), ("mean_", "scale_")),
    ):
        for words, other, relation in (("add or remove", fewer, AddRemove), ("replace", extreme, ReplaceOne)):

            def draw(data: Any, model: Any = model, shown: Any = shown, relation: Neighbors = relation) -> Any:
                with learn.total_spent():  # an audit fits again and again, and says what one fit costs
                    fitted = model.set_params(neighbors=relation).fit(*data)
                return [np.asarray(getattr(fitted, name)).tolist() for name in shown]

            other_y = y[: len(other)] if relation is AddRemove else np.append(y[:-1], 0.0)
            yield Subject(
                f"{name}, {words}", "learning", model.guarantee, (X, y), (other, other_y), each(draw), measured=False
            )


__all__ = ["Draw", "Subject", "each", "one_session", "subjects"]
