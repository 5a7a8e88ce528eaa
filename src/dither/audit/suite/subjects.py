"""The subjects of ``dither audit``: all built-in mechanisms, statistics and releases, each at a difficult pair.

A subject has a claim, a function ``(data, size) -> size outputs`` and two neighboring data sets. Mechanisms can be
certified as well, and everything that is composed of mechanisms can be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from dither import density, local, stats
from dither.audit.outputs.observe import observe_runs
from dither.audit.suite import small_releases as small
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.local import LocalProtocol
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


@dataclass(frozen=True, eq=False)
class Subject:
    """Code with a privacy claim, and how to test it; equal only to itself, since functions have no other equality."""

    name: str
    kind: str
    """``mechanism``, ``statistic``, ``density``, ``table``, ``publishing``, ``stream`` or ``learning``."""
    claim: Guarantee
    x: Any = field(repr=False)
    x_neighbor: Any = field(repr=False)
    draw: Draw = field(repr=False)
    mechanism: Any = field(default=None, repr=False)
    """The object to certify, or a ``partial`` that builds it, since a session belongs to the process that starts it."""
    measured: bool = True
    """Whether to measure it, which takes thousands of runs."""
    replayed: bool = True
    """Whether to replay it, which requires that mechanisms draw all of its noise."""


def subjects() -> list[Subject]:
    """Return all subjects that ``dither audit`` examines."""
    return [
        *_noises(),
        *_smooth(),
        *_selections(),
        *_sessions(),
        *_local(),
        *_statistics(),
        *_densities(),
        *_tables(),
        *_publishing(),
        *_streams(),
        *_learning(),
    ]


def repeated_runs(function: Callable[[Any], Any]) -> Draw:
    """Return a batch function that calls ``function`` once per output; errors and warnings are part of the outputs."""
    return partial(observe_runs, function)


def _filled(mechanism: Any) -> Draw:
    """Return a batch function for mechanisms that add independent noise to every coordinate."""
    return lambda x, size: mechanism.release(np.full(size, x))


def _mechanism(name: str, mechanism: Any, x: Any, x_neighbor: Any, draw: Draw | None = None) -> Subject:
    """Return a mechanism as a subject; by default its ``release`` is called once per output."""
    drawn = repeated_runs(mechanism.release) if draw is None else draw
    return Subject(name, "mechanism", mechanism.guarantee, x, x_neighbor, drawn, mechanism)


def _reports(response: RandomizedResponse, x: Any, size: int) -> Any:
    """Return ``size`` randomized responses of one value."""
    return response.release([x] * size)


def _noises() -> Iterator[Subject]:
    """Yield the mechanisms that add noise or randomize a category.

    Each has a pair of inputs that differ as much as the sensitivity allows.
    """
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
        yield _mechanism(name, mechanism, one, other, _filled(mechanism))
    yield _mechanism("staircase", Staircase(1, 2), 0.0, 1.0)
    yield _mechanism("Laplace, two sensitivities", Laplace([1, 2], 1), [0.0, 0.0], [1.0, 2.0])
    yield _mechanism("bounded Laplace, real numbers", BoundedLaplace(1, 1, 0, 10), 0.0, 1.0)
    yield _mechanism("bounded Laplace, whole numbers", BoundedLaplace(1, 1, 0, 10), 0, 1)
    for categories, one, other in ((2, False, True), (5, 0, 1)):
        response = RandomizedResponse(1, categories)
        name = f"randomized response, {categories} categories"
        yield _mechanism(name, response, one, other, partial(_reports, response))


def _local() -> Iterator[Subject]:
    """Yield the local protocols."""
    protocols: tuple[LocalProtocol[Any], ...] = (
        local.RandomizedResponse(8, 1),
        local.SubsetSelection(8, 1),
        local.UnaryEncoding(8, 1),
        local.UnaryEncoding(8, 1, optimized=False),
        local.LocalHashing(8, 1),
        local.HadamardResponse(8, 2),
        local.ProjectiveGeometryResponse(8, 1),
        local.CountMeanSketch(1, rows=4, width=16),
        local.HadamardCountMeanSketch(1, rows=4, width=16),
    )
    for protocol in protocols:
        form = ", symmetric" if getattr(protocol, "optimized", True) is False else ""
        name = f"local reports, {type(protocol).__name__}{form}"
        yield _mechanism(name, protocol, 0, 1, partial(_records, protocol))
    numbers: tuple[tuple[Any, Any, Any, Draw], ...] = (
        (small.MEAN, 0.0, 1.0, small.mean_reports),
        (small.DISTRIBUTION, 0.0, 1.0, small.distribution_reports),
        (small.SETS, {0, 1}, {2, 3}, small.set_reports),
        (small.WORDS, "aaa", "zzz", small.word_reports),
    )
    for mechanism, one, other, draw in numbers:
        yield _mechanism(f"local reports, {type(mechanism).__name__}", mechanism, one, other, draw)


def _records(protocol: LocalProtocol[Any], x: Any, size: int) -> Any:
    """Return the records of ``size`` reports of one value."""
    return protocol.privatize([x] * size).records


def _smooth() -> Iterator[Subject]:
    """Yield the kinds of noise for smooth sensitivities."""
    noises = [SmoothNoise(kind, 1, 1e-6) for kind in ("laplace", "gaussian")]
    noises += [SmoothNoise(kind, 1) for kind in ("cauchy", "student")]
    noises += [SmoothNoise("power", 1, gamma=3)]
    for noise in noises:

        def draw(x: Any, noise: Any = noise) -> Any:
            """Release an answer with its smooth sensitivity, the two numbers in x."""
            return noise.release(x[0], x[1], width=1000.0)

        wider = float(np.exp(noise.beta)) * (1 - 1e-12)
        yield _mechanism(f"smooth noise, {noise.kind}", noise, (0.0, 1.0), (1.0, wider), repeated_runs(draw))


def _selections() -> Iterator[Subject]:
    """Yield the mechanisms that select among candidates."""
    scores, neighbor_scores = [0, 0, 0, 0, 1], [1, 1, 1, 1, 0]
    for name, chooser in (
        ("exponential mechanism", Exponential(1, 1)),
        ("noisy max, Gumbel", NoisyMax(1, 1, noise="gumbel")),
        ("noisy max, Laplace", NoisyMax(1, 1, noise="laplace")),
        ("noisy max, exponential", NoisyMax(1, 1, noise="exponential")),
        ("permute and flip", PermuteAndFlip(1, 1)),
    ):
        yield _mechanism(name, chooser, scores, neighbor_scores, repeated_runs(chooser.select_index))
    monotone = Exponential(1, 1, monotone=True)
    draw = repeated_runs(monotone.select_index)
    yield _mechanism("exponential mechanism, monotone", monotone, [0, 0, 0], [1, 0, 0], draw)
    best = TopK(2, 1, 1)
    yield _mechanism("top k", best, scores, neighbor_scores, repeated_runs(best.select_indices))
    whole = Exponential(1, 1)
    draw = repeated_runs(lambda x: whole.select_integer(lambda k: -abs(k - x), center=x, ceiling=0, slope=1))
    yield _mechanism("exponential mechanism, all integers", whole, 0, 1, draw)
    mechanism = ContinuousExponential(1, 1, bounds=(0.0, 1.0))
    left, right = [(0.0, 0.5, [1.0]), (0.5, 1.0, [0.0])], [(0.0, 0.5, [0.0]), (0.5, 1.0, [1.0])]
    yield _mechanism("exponential mechanism, an interval", mechanism, left, right)


def run_session(sparse: SparseVector, answers: Sequence[float]) -> list[float]:
    """Return the responses of one session with threshold 0, and -1000 for questions after its end."""
    session = sparse.start(0.0)
    return [-1000.0 if session.done else float(session.ask(float(answer))) for answer in answers]


def _above(t: float, rows: Any) -> Any:
    """Return 1 for rows above t and 0 for others, as a query."""
    return (rows > t).astype(float)


def _sessions() -> Iterator[Subject]:
    """Yield the mechanisms that answer a limited number of times, and propose-test-release."""
    for numeric in (False, True):
        sparse = SparseVector(1, 1, 2, numeric=numeric)
        name, draw = "sparse vector" + (", numeric" if numeric else ""), repeated_runs(partial(run_session, sparse))
        yield _mechanism(name, sparse, (0.0, 0.0, 1.0, 1.0), (1.0, 1.0, 0.0, 0.0), draw)
    train = np.linspace(0, 1, 10)

    def start_holdout(x: Any) -> ReusableHoldout:
        """Start a session with the held-out records x."""
        return ReusableHoldout(train, x, threshold=0.3, epsilon=1, bounds=(0, 1), limit=2)

    def ask_holdout(x: Any) -> list[float]:
        """Return the answers of a session to two questions."""
        holdout_session = start_holdout(x)
        return [holdout_session.ask(partial(_above, t)).value for t in (0.2, 0.8)]

    one = np.linspace(0, 1, 10)
    other = np.append(one[:-1], 0.0)
    yield Subject(
        "reusable holdout", "mechanism", PureDP(1), one, other, repeated_runs(ask_holdout), partial(start_holdout, one)
    )
    test = ProposeTestRelease(bound=1, epsilon=1, delta=1e-3)
    far, near = (0.0, test.threshold), (1.0, test.threshold + 1)
    yield _mechanism("propose, test, release", test, far, near, repeated_runs(lambda x: test.release(*x)))


def _statistics() -> Iterator[Subject]:
    """Yield the statistics of one column, for both relations.

    The data sets are chosen where one record changes the statistic most: all values at one bound but one.
    """
    bounds = {"bounds": (0, 1)}
    for name, options in (
        ("count", {}), ("sum", bounds), ("mean", bounds), ("var", bounds), ("std", bounds), ("median", bounds),
        ("min", bounds), ("max", bounds), ("iqr", bounds), ("histogram", bounds),
    ):  # fmt: skip
        function = getattr(stats, name)
        for relation in (AddRemove, ReplaceOne):
            # ranks are most uncertain where the middle of the data is empty
            one = np.append(np.zeros(5), np.ones(4)) if name in ("median", "iqr") else np.zeros(9)
            other = np.append(one, 1.0) if relation is AddRemove else np.append(one[1:], 1.0)
            if (name, relation) == ("count", ReplaceOne):
                continue  # nothing changes

            def draw(x: Any, function: Any = function, relation: Neighbors = relation, options: Any = options) -> Any:
                """Release the statistic of the column x once: a number, or the counts of a histogram."""
                result = function(x, epsilon=1, neighbors=relation, **options)
                return result.counts.tolist() if hasattr(result, "counts") else result

            change = "add or remove" if relation is AddRemove else "replace"
            yield Subject(f"{name}, {change}", "statistic", PureDP(1), one, other, repeated_runs(draw))
    yield Subject(
        "median, smooth", "statistic", PureDP(1), np.array([0.0, 0.0, 0.0, 1.0, 1.0]), np.array([0.0] * 4 + [1.0]),
        repeated_runs(lambda x: stats.median(x, bounds=(0, 1), epsilon=1, method="smooth")),
    )  # fmt: skip
    yield Subject(
        "quantiles", "statistic", PureDP(1), np.linspace(0, 1, 9), np.linspace(0, 1, 9)[:-1],
        repeated_runs(lambda x: stats.quantiles(x, [0.25, 0.5, 0.75], bounds=(0, 1), epsilon=1, neighbors=AddRemove)),
    )  # fmt: skip
    yield Subject(
        "mode", "statistic", PureDP(1), ["a", "b"], ["a", "a"],
        repeated_runs(lambda x: stats.mode(x, ["a", "b", "c"], epsilon=1)),
    )  # fmt: skip


def _densities() -> Iterator[Subject]:
    """Yield the methods that release a density."""
    one = np.linspace(0.05, 0.45, 9)
    other = np.append(one[:-1], 0.95)
    for method in ("histogram", "perturbed", "smoothed", "ks"):
        options = {"ks": {"bins": 4, "points": 4}, "smoothed": {"bins": 2, "points": 2}}.get(method, {"bins": 3})

        def draw(x: Any, method: Any = method, options: Any = options) -> Any:
            """Release the density of the column x once, as the probability of each bin."""
            return density.release(x, (0, 1), 1, method=method, **options).weights.tolist()

        yield Subject(f"density, {method}", "density", PureDP(1), one, other, repeated_runs(draw))


class _TableQuestion(NamedTuple):
    """A question of the suite about a table: what is asked by town, in which order, and how it is released."""

    name: str
    rows: Any
    keys: list[str] | None
    """The public keys of the towns; None where they are private."""
    aggregates: str
    noise: str = "best"
    order: str = ""
    tails: str = "usual"
    """"any": counts and sums as a race of truncations, whose sensitivity does not depend on a limit."""


_ANY_TAIL = "a heavy person, any tail"


def _tables() -> Iterator[Subject]:
    """Yield questions about tables, which are replayed and not measured, since each run takes a ledger and a scan."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from dither.tables.codec import to_json
    from dither.tables.table import open as open_table

    people = np.arange(60) % 20
    rows = {"who": people, "town": [f"t{i % 3}" for i in range(60)], "amount": np.linspace(0, 10, 60)}
    few = pa.table(rows)
    # person 7 has 40 rows more, in every town: far more than the limits
    more = {"who": [7] * 40, "town": [f"t{i % 3}" for i in range(40)], "amount": [10.0] * 40}
    heavy = pa.concat_tables([few, pa.table(more, few.schema)])
    towns = ["t0", "t1", "t2"]
    largest = "COUNT(*) AS n, AVG(amount, rows_per_person => 1) AS m"
    counts, quartiles = "COUNT(*) AS n, SUM(amount) AS s", "QUANTILE(amount, 0.25) AS a, MEDIAN(amount) AS b"
    for asked in (
        _TableQuestion("counts and means, public keys", few, towns, "COUNT(*) AS n, AVG(amount) AS m"),
        _TableQuestion("quartiles, public keys", few, towns, quartiles),
        _TableQuestion("counts and sums, private keys", few, None, counts),
        _TableQuestion("the largest groups, private keys", heavy, None, largest, order=" ORDER BY n DESC LIMIT 2"),
        _TableQuestion("a heavy person in every group", heavy, towns, "COUNT(*) AS n, STDDEV(amount) AS d", "laplace"),
        _TableQuestion("a heavy person in every group, normal noise", heavy, towns, counts, "gaussian"),
        _TableQuestion(_ANY_TAIL, heavy, towns, counts, "laplace", tails="any"),
        _TableQuestion(f"{_ANY_TAIL}, normal noise", heavy, towns, counts, "gaussian", tails="any"),
        _TableQuestion("quartiles of a heavy person", heavy, towns, quartiles),
    ):
        other = asked.rows.filter(pc.not_equal(asked.rows["who"], 7))

        def draw(x: Any, asked: _TableQuestion = asked) -> Any:
            """Open the rows x as a table, and release the question once."""
            public_keys = None if asked.keys is None else {"town": asked.keys}
            budget = ApproxDP(2, 1e-4)
            with open_table(
                x, unit="who", bounds={"amount": (0, 10)}, keys=public_keys, budget=budget, max_groups=2
            ) as table:
                query = table.sql(f"SELECT town, {asked.aggregates} FROM data GROUP BY town{asked.order}")
                options: dict[str, Any] = {"noise": asked.noise, "tails": asked.tails}
                return query.release(epsilon=1, delta=1e-6, **options).to_arrow().to_pylist()

        claim = ApproxDP(1, 1e-6)
        yield Subject(f"table, {asked.name}", "table", claim, asked.rows, other, repeated_runs(draw), measured=False)
    without = heavy.filter(pc.not_equal(heavy["who"], 7))
    promised: Guarantee
    for name, promised, cost in (("pure", PureDP(1), {"epsilon": 1}), ("normal noise", ZCDP(0.5), {"rho": 0.5})):

        def profile(x: Any, budget: Guarantee = promised, cost: Mapping[str, Any] = cost) -> Any:
            """Open the rows x as a table and release its profile, as JSON."""
            bounds, keys = {"amount": (0, 10)}, {"town": ["t0", "t1"]}
            with open_table(x, unit="who", bounds=bounds, keys=keys, budget=budget) as table:
                return to_json(table.profile(**cost).tables)

        yield Subject(
            f"profile of a table, {name}", "table", promised, heavy, without, repeated_runs(profile), measured=False
        )


def _publishing() -> Iterator[Subject]:
    """Yield the publication of a table."""
    one, other = small.people()
    yield Subject(
        "publishing, people of twenty rows",
        "publishing",
        small.PUBLISHING_CLAIM,
        one,
        other,
        small.noisy_residuals,
    )


def _streams() -> Iterator[Subject]:
    """Yield series over time."""
    for name, draw, plan in (
        ("running sums", small.running_sums, small.plan_for()),
        ("running sums, a tree", small.running_sums_of_a_tree, small.plan_for(PureDP(1))),
    ):
        yield Subject(name, "stream", plan.guarantee, small.HISTORY, small.NEIGHBOR, draw, plan, replayed=False)


def _learning() -> Iterator[Subject]:
    """Yield model fits, which are too slow to be measured; their mechanisms are subjects of their own."""
    if find_spec("sklearn") is None:
        return
    from dither import learn

    X = np.column_stack([np.linspace(0, 1, 40), np.tile([0.0, 1.0], 20)])
    y = (X[:, 0] > 0.5).astype(np.float64)
    extreme, removed = np.append(X[:-1], [[0.0, 1.0]], axis=0), X[:-1]
    options: dict[str, Any] = {"epsilon": 1, "bounds": (0, 1)}
    labels: dict[str, Any] = {**options, "label_bounds": (0, 1)}
    classes: dict[str, Any] = {**options, "classes": [0, 1]}
    for name, model, attributes in (
        ("mean", learn.Mean(**options), ("mean_",)),
        ("linear regression", learn.LinearRegression(**labels), ("coef_", "intercept_")),
        ("ridge", learn.Ridge(**labels), ("coef_", "intercept_")),
        ("logistic regression", learn.LogisticRegression(**classes), ("coef_", "intercept_")),
        ("naive Bayes", learn.GaussianNB(**classes), ("theta_", "var_", "class_prior_")),
        ("k-means", learn.KMeans(2, **options), ("cluster_centers_",)),
        ("principal components", learn.PCA(1, **options), ("components_", "mean_")),
        ("standard scaler", learn.StandardScaler(**options), ("mean_", "scale_")),
    ):
        for relation_name, other, relation in (("add or remove", removed, AddRemove), ("replace", extreme, ReplaceOne)):

            def draw(
                data: Any, model: Any = model, attributes: Any = attributes, relation: Neighbors = relation
            ) -> Any:
                """Fit the model once to ``data``, rows and labels, and return its fitted attributes."""
                with learn.total_spent():  # the audit fits repeatedly, and the claim is that of one fit
                    fitted = model.set_params(neighbors=relation).fit(*data)
                return [np.asarray(getattr(fitted, name)).tolist() for name in attributes]

            other_y = y[: len(other)] if relation is AddRemove else np.append(y[:-1], 0.0)
            yield Subject(
                f"{name}, {relation_name}",
                "learning",
                model.guarantee,
                (X, y),
                (other, other_y),
                repeated_runs(draw),
                measured=False,
            )
