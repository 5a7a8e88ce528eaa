"""Limits and bounds by the expected total error: against every other choice, simulated from the rows with NumPy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dither.tables.card.profile import NoisyHistogram
from dither.tables.planning import choose
from dither.tables.planning.choose import Correction, Known
from dither.tables.planning.table_model import People, Values
from support import each
from tables.profiles import table_profile

EDGES = tuple(float(edge) for edge in (*range(-40, 100, 4), *range(100, 2001, 50)))
CLASSES = (4, 16, 64, 1 << 20)


class Rows:
    """Rows of people, with their profile: noise of this scale is in every number of it."""

    def __init__(self, sizes, draw, groups=6, scale=2.0, seed=0):
        self.generator = generator = np.random.default_rng(seed)
        self.sizes = np.asarray(sizes)
        self.who = np.repeat(np.arange(len(self.sizes)), self.sizes)
        self.n = self.sizes[self.who]
        self.x = draw(generator, self.who, self.n)
        self.g = generator.integers(0, groups, len(self.who)) if groups else np.zeros(len(self.who), dtype=int)
        self.groups = max(groups, 1)
        table = table_profile(self.who, {"x": self.x.tolist()}, {"x": EDGES}, classes=CLASSES, scale=scale)

        def noisy(histogram):
            noise = generator.laplace(0, scale, len(histogram.weights))
            return replace(histogram, weights=tuple((np.array(histogram.weights) + noise).tolist()))

        people, column = table.people, table.columns["x"]
        assert people is not None
        column = replace(column, values=noisy(column.values), by_rows=tuple(map(noisy, column.by_rows)))
        self.people = People.of_histogram(noisy(people))
        found = Values.of_column(replace(table, columns={"x": column}), "x", (-40.0, 2000.0), self.people)
        assert found is not None
        self.values = found
        self.known = Known.of(self.people, [1 / groups] * groups if groups else None)

    def total(self, weights):
        return np.bincount(self.g, weights=weights, minlength=self.groups)

    def truth(self, kind):
        number, total, squares = self.total(np.ones(len(self.x))), self.total(self.x), self.total(self.x**2)
        mean = total / number
        return {"count": number, "sum": total, "mean": mean, "std": np.sqrt(squares / number - mean**2)}[kind]

    def answers(self, kind, limit, bounds, times, epsilon=1.0):
        """Return estimates, and the standard deviation of their noise, ``times`` anew: a line for each."""
        w = np.minimum(1, limit / self.n)
        low, high = bounds or (0.0, 1.0)
        half, x = (high - low) / 2, np.clip(self.x, low, high)
        y = (x - low) / (high - low)

        def noise():
            return self.generator.laplace(0, limit / epsilon, (times, self.groups))

        if kind == "count":
            counted = self.total(w) + noise()
            return counted, counted, np.full_like(counted, 3 * limit / epsilon)
        if kind == "sum":
            largest = max(abs(low), abs(high))
            return self.total(w * x) + largest * noise(), None, np.full((times, self.groups), 3 * limit * largest)
        if kind == "mean":
            below, above = self.total(w * (1 - y)) + noise(), self.total(w * y) + noise()
            counted = np.maximum(below + above, 1)
            m = np.clip((above - below) / counted, -1, 1)
            error = 1.96 * math.sqrt(2) * limit * half * np.sqrt(2 * (1 + m**2)) / counted / epsilon
            return m * half + (low + high) / 2, counted, error
        parts = [self.total(w * part) + noise() for part in ((1 - y) ** 2, 2 * y * (1 - y), y**2)]
        counted = np.maximum(sum(parts), 1)
        m, q = (parts[2] - parts[0]) / counted, (parts[0] + parts[2] - parts[1]) / counted
        deviation = half * np.sqrt(np.maximum(q - m**2, 0))
        spread = 1.96 * math.sqrt(2) * limit * half**2 * math.sqrt(3) / counted
        return deviation, counted, spread / (2 * np.maximum(deviation, 1e-9))

    def choice(self, kind):
        if kind == "count":
            return choose.choose_count(self.known, 1.0)
        if kind == "mean":
            return choose.choose_mean(self.known, self.values, (-40.0, 2000.0), 1.0)
        if kind == "std":
            return choose.choose_variance(self.known, self.values, (-40.0, 2000.0), 1.0, root=True)
        return choose.choose_sum(self.known, self.values, (-40.0, 2000.0), 1.0, alone=True)

    def errors(self, kind, times):
        """Return the errors of the default, whether its interval covers, and its half-width."""
        choice = self.choice(kind)
        values, counted, noise = self.answers(kind, choice.rows, choice.bounds, times)
        moved = values * choice.correction.factor + choice.correction.shift
        total = np.hypot(noise * choice.correction.factor, choice.correction.limits_error(moved, counted))
        off = np.abs(moved - self.truth(kind))
        return off, off <= total, total

    def best_by_hand(self, kind, times):
        """Return the smallest median error of a grid of limits and bounds, without corrections."""
        bounds = (
            [(-40.0, 2000.0), (-40.0, 400.0), (-20.0, 200.0), (-20.0, 100.0), (0.0, 60.0)]
            if kind != "count"
            else [None]
        )
        return min(
            float(np.median(np.abs(self.answers(kind, limit, pair, times)[0] - self.truth(kind))))
            for limit in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
            for pair in bounds
        )


def delays(generator, who, n):
    return np.clip(
        generator.gamma(0.5, 30, len(who)) - 10 + 5 * generator.normal(size=n.max() * 0 + len(who)), -40, 2000
    )


def above_zero(draw):
    """Values of one sign, whose sums can be corrected by a factor."""
    return lambda generator, who, n: np.minimum(draw(generator, who, n) + 40, 2000)


def falling(generator, who, n):
    """Values that are the smaller the more rows a person has, and the same in all of them."""
    return (60 / (1 + np.log(n))) + generator.normal(0, 3, who.max() + 1)[who]


GENERATOR = np.random.default_rng(7)
POPULATIONS = {
    "light": (1 + GENERATOR.poisson(6, 4000), delays),
    "log-normal": (np.ceil(GENERATOR.lognormal(3, 1, 3000)).astype(int), delays),
    "constant": (np.full(2000, 12), delays),
    "with a drift": (np.ceil(GENERATOR.lognormal(2, 1, 4000)).astype(int), falling),
    "zipf 2.5": (np.minimum(GENERATOR.zipf(2.5, 6000), 5000), delays),
    "zipf 3": (np.minimum(GENERATOR.zipf(3.0, 6000), 5000), delays),
}


@pytest.mark.parametrize("kind", ["mean", "count", "std", "sum"])
@pytest.mark.parametrize("name", POPULATIONS)
def test_no_choice_by_hand_is_much_better(name, kind):
    """The default knows the profile alone; by hand the truth is known, and the best of many choices is taken."""
    sizes, draw = POPULATIONS[name]
    rows = Rows(sizes, above_zero(draw) if kind == "sum" else draw)
    off, _, _ = rows.errors(kind, 40)
    assert np.median(off) <= 3.3 * rows.best_by_hand(kind, 40)


@pytest.mark.parametrize("kind", ["mean", "count", "std", "sum"])
def test_intervals_cover_the_raw_rows(kind):
    """Of every population, and of several profiles of each."""
    covered, widths = [], []
    for sizes, draw in POPULATIONS.values():
        for seed in range(4):
            off, inside, total = Rows(sizes, above_zero(draw) if kind == "sum" else draw, scale=3.0, seed=seed).errors(
                kind, 20
            )
            covered.append(inside.mean())
            widths.append(np.median(total) / np.quantile(off, 0.95))
    assert np.mean(covered) >= {"std": 0.92, "count": 0.88}.get(kind, 0.93)
    assert np.median(widths) <= {"sum": 3.5, "std": 2.3}.get(kind, 2.0)


def test_more_noise_means_tighter_choices():
    rows = Rows(*POPULATIONS["log-normal"])
    much, little = (choose.choose_mean(rows.known, rows.values, (-40, 2000), epsilon) for epsilon in (10.0, 0.1))
    assert little.rows <= much.rows
    assert little.bounds[1] - little.bounds[0] < much.bounds[1] - much.bounds[0]
    assert little.error > much.error
    counts = [choose.choose_count(rows.known, epsilon).rows for epsilon in (0.05, 1.0, 20.0)]
    assert counts == sorted(counts)


def test_a_mean_needs_fewer_rows_of_a_person_than_a_count():
    rows = Rows(*POPULATIONS["log-normal"])
    assert rows.choice("mean").rows < rows.choice("count").rows


def test_limits_and_bounds_that_are_stated_stay():
    rows = Rows(*POPULATIONS["light"])
    known = replace(rows.known, tried=(3.0,))
    choice = choose.choose_mean(known, rows.values, (-5.0, 50.0), 1.0, free=False)
    assert (choice.rows, choice.bounds) == (3, (-5.0, 50.0))
    true = rows.truth("mean").mean()
    plain = np.median(rows.answers("mean", 3, (-5.0, 50.0), 40)[0])
    assert abs(plain + choice.correction.shift - true) < abs(plain - true) / 2


def test_counts_get_back_what_a_limit_leaves_out():
    """People all alike: the factor is known but for the noise of the profile."""
    rows = Rows(np.full(3000, 20), delays, groups=0)
    choice = choose.choose_count(replace(rows.known, tried=(5.0,)), 1.0)
    assert choice.correction.factor == pytest.approx(4, rel=0.1)
    assert choice.correction.relative < 0.3
    grouped = choose.choose_count(replace(rows.known, tried=(5.0,), different=0.5), 1.0)
    assert grouped.correction.relative > 0.7  # a group may have nobody with more rows


def test_rows_that_are_people_need_bounds_alone():
    people = People.of_one_row(5000)
    histogram = NoisyHistogram(EDGES, tuple(3000.0 if 0 <= edge < 8 else 0.0 for edge in EDGES[:-1]), scale=5.0)
    values = Values.of_histogram(histogram, (-40, 2000))
    choice = choose.choose_mean(Known.of(people, None), values, (-40.0, 2000.0), 1.0)
    assert choice.rows == 1
    assert choice.bounds[0] >= -10
    assert choice.bounds[1] <= 20
    assert choice.correction.of_person == 0


def test_a_group_near_a_bound_may_be_beyond_it():
    correction = Correction(bounds=(0.0, 100.0), widest=(0.0, 1000.0), middle=20.0)
    at = correction.limits_error(np.array([20.0, 40.0, 100.0]), None)
    assert at[0] == 0
    assert at[1] < 5
    assert at[2] == 900


@each("at", [0.1, 0.5, 0.9])
def test_bounds_of_a_quantile_hold_it(at):
    rows = Rows(*POPULATIONS["light"])
    choice = choose.choose_quantile(rows.known, rows.values, (-40.0, 2000.0), 1.0, at)
    low, high = choice.bounds
    assert low < np.quantile(rows.x, at) < high
    assert high < 1000
