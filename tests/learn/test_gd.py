"""Descents: the iterates where there is a formula, the bounds where there is a theorem, and what breaks them."""

from __future__ import annotations

import numpy as np
import pytest

from dither.errors import InvalidArgument
from dither.learn.gd import (
    Schedule,
    Trace,
    descend,
    descent_bound,
    draw_rows,
    gradient_descent,
    gradient_variance,
    offline,
    online,
    stochastic_bound,
    utility_bound,
)
from dither.learn.losses import Huber, Logistic, Multinomial, SmoothHinge, Squared, ridge_line
from dither.randomness import SYSTEM
from support import refuses

RNG = np.random.default_rng(7)
X1, DATA = np.ones((1000, 1)), RNG.exponential(size=1000)


def test_example_31_shrinks_by_the_same_factor():
    trace = descend(lambda beta, _: beta, start=1.0, steps=10, schedule=Schedule(0.3))
    assert trace.iterates.ravel() == pytest.approx(0.7 ** np.arange(11))


def test_example_33_has_a_closed_form():
    trace = gradient_descent(Squared(), X1, DATA, start=0.0, steps=30, schedule=Schedule(0.1))
    assert trace.iterates.ravel() == pytest.approx(DATA.mean() * (1 - 0.8 ** np.arange(31)))


def test_ridge_descends_to_its_line():
    v = RNG.normal(size=200)
    u = 1 - 2 * v + RNG.normal(size=200)
    X, loss = np.column_stack([np.ones(200), v]), Squared(weight=0.5, penalty=0.5, free=1)
    assert gradient_descent(loss, X, u, start=np.zeros(2), steps=300).last == pytest.approx(ridge_line(v, u, 0.5))


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("loss", [Squared(weight=0.5, penalty=0.1), Logistic(penalty=0.01), Huber(), SmoothHinge()])
def test_bound_6_holds_at_every_step_up_to_the_longest_it_is_proved_for(loss, rho):
    X = RNG.normal(size=(60, 3))
    y = RNG.integers(0, 2, 60).astype(float)
    far = gradient_descent(loss, X, y, start=np.zeros(3), steps=5_000).last
    start = RNG.normal(size=3)
    first = 1.5 / loss.smoothness(X)
    trace = gradient_descent(loss, X, y, start=start, steps=100, schedule=Schedule(first, rho))
    bound = descent_bound(float(np.sum((start - far) ** 2)), trace.steps, loss.smoothness(X))
    assert np.all(trace.excess(loss, X, y, far) <= bound + 1e-9)
    with refuses(InvalidArgument, "for which the bound is proved"):
        descent_bound(1.0, trace.steps * 1.01, loss.smoothness(X))


def test_bound_6_fails_beyond_2_over_the_smoothness():
    trace = descend(lambda beta, _: beta, start=1.0, steps=50, schedule=Schedule(2.1))  # f = x^2/2, L = 1
    assert trace.average[0] ** 2 / 2 > utility_bound(1.0, trace.steps)[-1]


def test_averages_are_weighted_by_the_steps():
    trace = Trace(np.array([[1.0], [2.0], [7.0]]), np.array([3.0, 1.0]))
    assert trace.averages.ravel().tolist() == [1, 1.25]
    assert trace.last.tolist() == [7]
    matrix = Trace(np.arange(12.0).reshape(3, 2, 2), np.ones(2))
    assert matrix.average.tolist() == [[2, 3], [4, 5]]


def test_online_uses_each_row_once_and_in_order():
    trace = online(Squared(), np.ones((5, 1)), np.arange(5.0), start=0.0, batch=2, schedule=Schedule(0.5))
    assert trace.iterates.ravel().tolist() == [
        0,
        0.5,
        2.5,
    ]  # means of batches; row 4 fills none


def test_batches_are_sets_drawn_evenly():
    for size in (1, 2, 3):
        result = np.zeros((4, 4))
        for _ in range(2000):
            rows = draw_rows(4, size, SYSTEM)
            assert len(set(rows.tolist())) == size
            result[rows[:, None], rows] += 1
        # each row with probability size/4: a deviation of 6.5 standard errors has 1e-10
        assert np.abs(np.diagonal(result) / 2000 - size / 4).max() <= 6.5 * np.sqrt(size / 4 * (1 - size / 4) / 2000)


def repeated(steps, schedule, times=300):
    return [offline(Squared(), X1, DATA, start=0.0, steps=steps, schedule=schedule) for _ in range(times)]


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_bound_9_holds_in_the_mean(rho):
    best = np.array([DATA.mean()])
    variance = gradient_variance(Squared(), X1, DATA, best)
    assert variance == pytest.approx(4 * DATA.var())
    traces = repeated(100, Schedule(0.1, rho), 100)
    excess = np.array([(trace.average[0] - best[0]) ** 2 for trace in traces])
    bound = stochastic_bound(float(best[0] ** 2), traces[0].steps, Squared().smoothness(X1, single=True), variance)[-1]
    assert excess.mean() + 8 * excess.std() / 10 <= bound
    with refuses(InvalidArgument):
        stochastic_bound(1.0, np.full(3, 0.13), 2.0, variance)


@pytest.mark.slow
def test_constant_steps_do_not_settle_and_decreasing_ones_do():
    spread = {}
    for rho in (0.0, 0.9):
        last = np.array([trace.last[0] for trace in repeated(200, Schedule(0.4, rho), 40)])
        spread[rho] = np.mean((last - DATA.mean()) ** 2)
    # stationary: gamma var / (1 - gamma) with gamma = 0.4, beta moves by 2 gamma of the way; some 0.67 var
    assert spread[0.0] > 0.1 * DATA.var()
    assert spread[0.9] < 0.05 * DATA.var()


def test_variance_of_gradients_counts_the_penalty():
    X, y = RNG.normal(size=(30, 2)), RNG.normal(size=30)
    loss = Squared(weight=0.5, penalty=0.7)
    best = loss.minimum(X, y)
    item = [loss.gradient(best, X[i : i + 1], y[i : i + 1]) for i in range(30)]
    assert gradient_variance(loss, X, y, best) == pytest.approx(np.mean([one @ one for one in item]))
    several = Multinomial(penalty=0.2)
    labels, beta = np.eye(3)[RNG.integers(0, 3, 30)], RNG.normal(size=(2, 3))
    item = [np.sum(several.gradient(beta, X[i : i + 1], labels[i : i + 1]) ** 2) for i in range(30)]
    assert gradient_variance(several, X, labels, beta) == pytest.approx(np.mean(item))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Schedule(0.0),
        lambda: Schedule(1.0, rho=-1),
        lambda: Schedule(float("nan")),
        lambda: descend(lambda beta, _: beta, start=float("nan"), steps=1, schedule=Schedule()),
        lambda: descend(lambda beta, _: beta, start=1.0, steps=0, schedule=Schedule()),
        lambda: online(Squared(), X1, DATA, start=0.0, batch=1001, schedule=Schedule()),
    ],
)
def test_what_makes_no_descent_is_refused(make):
    with refuses(InvalidArgument):
        make()
