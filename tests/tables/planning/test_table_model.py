"""What is expected of rows by a profile: numbers of rows of people, and values."""

from __future__ import annotations

import numpy as np
import pytest

from dither.tables.card.profile import NoisyHistogram
from dither.tables.planning.table_model import People, Values
from support import each
from tables.profiles import PEOPLE_EDGES, table_profile

EDGES = tuple(float(edge) for edge in range(0, 105, 5))


def rows_of(sizes, value):
    """Return the rows of people with these numbers of rows."""
    who = np.repeat(np.arange(len(sizes)), sizes)
    return who, [value(person, i) for i, person in enumerate(who)]


def people_of(sizes, scale=0.01):
    counts = np.bincount(np.searchsorted(np.array(PEOPLE_EDGES), sizes), minlength=len(PEOPLE_EDGES))
    return People.of_histogram(NoisyHistogram(PEOPLE_EDGES, tuple(map(float, counts)), scale=scale))


SIZES = {
    "one row": np.ones(500, dtype=int),
    "constant": np.full(500, 37),
    "light": 1 + np.random.default_rng(1).poisson(9, 2000),
    "log-normal": np.ceil(np.random.default_rng(2).lognormal(3, 1, 3000)).astype(int),
}


@each("name", SIZES)
def test_what_people_count_for_is_what_they_do(name):
    sizes, limits = SIZES[name], np.array([1.0, 3, 10, 40, 200])
    people = people_of(sizes)
    assert people.number == pytest.approx(len(sizes), rel=0.02)
    assert people.rows == pytest.approx(sizes.sum(), rel=0.05)
    true = np.minimum(sizes[:, None], limits).sum(axis=0)
    assert people.counted(limits) == pytest.approx(true, rel=0.07)
    assert people.left_out(limits)[0] == pytest.approx(sizes.sum() - true, rel=0.15, abs=0.02 * sizes.sum())


def test_what_is_left_out_is_as_uncertain_as_the_histogram():
    """Of many noisy histograms: the spread of the estimates is no larger than is said, and not much smaller."""
    sizes, limits, scale = SIZES["log-normal"], np.array([20.0]), 5.0
    generator = np.random.default_rng(3)
    counts = np.bincount(np.searchsorted(np.array(PEOPLE_EDGES), sizes), minlength=len(PEOPLE_EDGES))
    found = []
    for _ in range(60):
        noisy = counts + generator.laplace(0, scale, len(counts))
        people = People.of_histogram(NoisyHistogram(PEOPLE_EDGES, tuple(noisy.tolist()), scale=scale))
        found.append([float(item[0]) for item in people.left_out(limits)])
    estimates, said = np.array(found).T
    off = estimates - np.maximum(sizes - 20, 0).sum()
    assert 0.6 < np.sqrt((off**2).mean()) / np.median(said) < 1.4


def noisy_people(true, scale, generator):
    noisy = true + np.round(generator.laplace(0, scale, len(PEOPLE_EDGES)))
    return People.of_histogram(NoisyHistogram(PEOPLE_EDGES, tuple(noisy.tolist()), scale=scale))


def test_what_is_expected_of_people_is_finite_wherever_they_are_and_however_many():
    """Every bin is the last one that is seen; up to 1e9 people, in edges of every width, with any noise."""
    generator = np.random.default_rng(4)
    for last in range(len(PEOPLE_EDGES)):
        for width, number, scale in zip(
            (1, 2, 5, 9), (300, 1e4, 1e6, 1e9), generator.choice([0.5, 4, 20], 4), strict=True
        ):
            true = np.zeros(len(PEOPLE_EDGES))
            true[max(last + 1 - width, 0) : last + 1] = number / width
            people = noisy_people(true, scale, generator)
            assert people.weights.sum() == pytest.approx(1), (last, width, number, scale)
            assert people.number == pytest.approx(true.sum(), rel=1, abs=80 * scale), (last, width, number, scale)
            limited = people.left_out(np.array([1.0, 64.0]))
            assert np.isfinite([*limited, people.counted(np.array([1.0, 64.0]))]).all()


def test_a_spike_of_noise_is_nobody():
    """In one of 118 histograms noise alone is above 6 of its standard deviations in some bin; a limit for such people
    is much too high."""
    generator, true, scale = np.random.default_rng(5), np.zeros(len(PEOPLE_EDGES)), 10.0
    true[0] = 20_000
    for place in range(12, len(PEOPLE_EDGES)):
        noisy = true + generator.laplace(0, scale, len(true)).clip(-3 * scale, 3 * scale)
        noisy[place] = 10 * scale
        people = People.of_histogram(NoisyHistogram(PEOPLE_EDGES, tuple(noisy.tolist()), scale=scale))
        assert people.expected[12:].sum() < scale, place
    noisy[40] = 20 * scale
    people = People.of_histogram(NoisyHistogram(PEOPLE_EDGES, tuple(noisy.tolist()), scale=scale))
    assert people.expected[40].sum() == pytest.approx(20 * scale, rel=0.3)


def test_a_condition_keeps_rows_or_people():
    """Half of the rows of everybody, or all rows of half of the people: both are possible."""
    people = people_of(np.full(1000, 64)).thinned(0.5)
    assert people.rows == pytest.approx(32_000, rel=0.1)
    assert people.number == pytest.approx(750, rel=0.05)
    missing, deviation = people.left_out(np.array([48.0]))
    assert missing[0] == pytest.approx(500 * 16 / 2, rel=0.3)
    assert deviation[0] == pytest.approx(missing[0], rel=0.3)


def values_of(sizes, value, scale=0.01, edges=EDGES, classes=(4, 16, 1 << 20), bounds=(0.0, 100.0)):
    who, x = rows_of(sizes, value)
    table = table_profile(who, {"x": x}, {"x": edges}, classes=classes, scale=scale)
    result = Values.of_column(table, "x", bounds, people_of(sizes))
    assert result is not None
    return result, np.array(x), who


def test_values_are_those_of_a_person_chosen_by_chance():
    sizes = np.tile([1, 2, 50], 300)
    values, x, who = values_of(sizes, lambda who, i: float(sizes[who]) + i % 10)
    weights = 1 / sizes[who]
    assert values.mean == pytest.approx((x * weights).sum() / weights.sum(), abs=1.0)
    low, high = np.array([0.0, 20]), np.array([30.0, 40])
    held = [(np.clip(x, a, b) * weights).sum() / weights.sum() for a, b in zip(low, high, strict=True)]
    assert values.held_moments(low, high)[0] == pytest.approx(held, abs=1.0)
    # classes: people with 1 and 2 rows, nobody, those with 50 rows
    assert values.class_means(np.array([0.0]), np.array([100.0]))[0][2, 0] > 20


def test_what_the_noise_hides_beyond_the_last_filled_bin_is_little_and_uncertain():
    weights = [0.0] * 4 + [400.0, 900.0, 300.0] + [0.0] * 13
    seen = Values.of_histogram(NoisyHistogram(EDGES, tuple(weights), scale=10.0), (0, 100))
    assert seen is not None
    assert seen.ends == (20, 35)
    beyond = seen.points > 35
    assert 0 < seen.shares[beyond].sum() < 0.1
    assert np.all(np.diff(seen.deviations[beyond]) <= 0)
    assert Values.of_histogram(NoisyHistogram(EDGES, (3.0,) * 20, scale=10.0), (0, 100)) is None


def test_values_of_a_function_are_those_of_its_points():
    values, _, _ = values_of(np.full(200, 5), lambda _, i: float(i % 100))
    late = values.mapped(lambda points: np.where(points > 90, 1.0, np.where(points < 10, np.nan, 0.0)))
    assert late.mean == pytest.approx(10 / 90, abs=0.02)
    assert late.nulls == pytest.approx(0.1, abs=0.02)
    assert values.mapped(lambda points: points * np.nan).nulls == 1.0


def test_values_far_from_all_others_are_seen_beyond_empty_bins():
    weights = [900.0, 300.0, *[0.0] * 15, 160.0, 0.0, 0.0]
    seen = Values.of_histogram(NoisyHistogram(EDGES, tuple(weights), scale=10.0), (0, 100))
    assert seen.ends[1] >= EDGES[18]


def test_whole_numbers_are_at_the_first_number_of_a_bin_of_one():
    edges = (0.0, 1.0, 2.0, 4.0)
    seen = Values.of_histogram(NoisyHistogram(edges, (900.0, 800.0, 700.0), scale=1.0), (0, 4), whole=True)
    assert seen.points.tolist() == [0.0, 1.0, 2.5]
    assert seen.ends == (0.0, 3.0)


def test_what_may_be_hidden_is_probable_and_widens_what_is_uncertain():
    """The means of the possibilities are what is expected, and noise that shows more makes more probable."""
    few, more = (
        Values.of_histogram(NoisyHistogram(EDGES, (900.0, 300.0, *beyond, *[0.0] * 14), scale=10.0), (0, 100))
        for beyond in ((0.0,) * 4, (20.0,) * 4)
    )
    for values in (few, more):
        for possible, probabilities in values.hidden:
            assert probabilities.sum() == pytest.approx(1)
            assert np.abs(probabilities @ possible).max() < 2e-3

    def beyond(points):
        return np.maximum(points - 10.0, 0.0)[None, :]

    assert more.shares[more.points > 10].sum() > few.shares[few.points > 10].sum() > 0
    assert more.uncertainty(beyond)[0] > more.uncertainty(beyond, hidden=False)[0]
    assert few.hidden_median(beyond)[0] < 0  # in most cases there is nothing, and less than is expected


def test_noise_is_taken_for_what_its_law_says():
    """A bin of seven standard deviations of normal noise has values; of Laplace noise, of which one in 60 bins has as
    much in one of 2,000 histograms, it may have none."""
    weights = (900.0, 300.0, *[0.0] * 6, 31.0, *[0.0] * 11)

    def beyond(points):
        return np.maximum(points - 12.0, 0.0)[None, :]

    normal, laplace = (
        Values.of_histogram(NoisyHistogram(EDGES, weights, scale=scale, normal=law), (0, 100))
        for law, scale in ((True, 5.0), (False, 5.0 / np.sqrt(2)))
    )
    assert normal.mean + normal.hidden_median(beyond)[0] > laplace.mean + laplace.hidden_median(beyond)[0]


def test_a_second_hump_that_noise_nearly_hides_is_possible():
    """Four deviations of the noise in each of five bins, far behind all others, of which most are not filled beyond
    doubt: that most of their rows are there is not excluded."""
    generator, counts = np.random.default_rng(6), np.zeros(len(PEOPLE_EDGES))
    counts[2:9], counts[24:29] = 200, 80
    sizes = np.array(PEOPLE_EDGES, dtype=float)
    possible = 0
    for _ in range(20):
        people = noisy_people(counts, 20.0, generator)
        missing, deviation = people.hidden(30.0)
        possible += missing + 1.96 * deviation > 0.5 * (counts @ np.maximum(sizes - 30, 0))
    assert possible >= 15
