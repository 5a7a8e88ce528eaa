"""Limits and bounds that nobody stated, chosen so that the expected total error is smallest; corrections that follow.

An estimate from limited rows and clipped values is off by its noise, by what the limits do to it, and by what is not
known of that. With R the most that a person counts for, N a person's rows, W the rows that are counted in a group, k
the people of the group, e the standard deviation of the noise in each part of a measurement with R = 1, and
``h = (high - low) / 2``:

=========  =====================================  =================================================================
aggregate  noise                                  what the limits do
=========  =====================================  =================================================================
count      ``e R``                                rows beyond R are missing: ``sum max(N - R, 0)``
sum        ``e R max(|low|, |high|)``             the same in the units of the value, and values beyond the bounds
mean       ``e R h sqrt(2 (1 + m^2)) / W``        people with few rows count for more; values beyond the bounds
variance   ``e R h^2 sqrt(c) / W``                the same
quantile   its rank by about ``2 R / epsilon``    people with few rows count for more
pair       see :func:`choose_pair`                values beyond either bounds
=========  =====================================  =================================================================

Here m is the mean between the bounds, from -1 to 1. What the limits do to all rows together is known from the profile,
and the answer is corrected by it: counts and sums by a factor, means and the like by a shift. What stays is

* the noise of the profile in that correction;
* that a group differs from the whole table: most of the correction (:data:`_DIFFERENT`), as one standard deviation,
  so that the interval reaches to a group in which nothing had to be corrected;
* that a group has few people. A mean with the weights ``a_i = min(N_i, R) / W`` in place of ``b_i = N_i / M`` differs
  by ``sum (a_i - b_i) v_i``, where v_i is a person's mean; its variance is ``sum (a_i - b_i)^2 var(v_i)``, with
  ``var(v_i) = s^2 (r + (1 - r) / N_i)`` for values of variance s^2 that are correlated by r within a person. A count
  differs by ``sum (N_i - f min(N_i, R))``, with f the factor.

All of these are added up as independent errors. The limit and the bounds are those for which the root of the sum is
smallest: the mean of its logarithm over groups of the sizes that the profile shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from dither.tables.planning.table_model import Floats, People, Values

_DIFFERENT = 0.5
_OF_ALL = 0.15
"""The same as :data:`_DIFFERENT` for an answer about all rows: values of a bin are not all in its middle."""
_UNKNOWN_DRIFT = 0.25
"""By how many standard deviations of people's means those of people with few and with many rows differ, where it is not
known."""
_WITHIN = 0.3
"""How means differ within a class of people by their number of rows, compared with how they differ between classes."""
_BY_GROUP = 0.1
"""How values beyond bounds differ by group, compared with the square of how they differ by person."""
_OF_CORRELATION = 0.07
"""By how much bounds change a correlation, as a standard deviation, in units of the share of the variance that they
take away: of 45 pairs of columns of five real tables, the largest change by any of four bounds was three times that."""
_CUT = (0.0, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08)
"""Shares of the values that bounds cut off."""
_OF_ONE_SIGN = 0.02
"""Up to which share of the others the values of the other sign add up to, for values to be taken to be of one sign."""
_BEYOND = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0)
"""By which shares of the width of what is seen bounds may lie beyond it."""


@dataclass(frozen=True)
class Correction:
    """What follows for an answer from what limits leave out: ``factor * value + shift``, and how uncertain that is.

    ``deviation`` is the standard deviation of what stays, in the units of the answer; ``relative`` is the same as a
    share of the answer; ``of_person`` and ``relative_of_person`` are those of a group of one person, from which those
    of k people follow by division by the root of k.
    """

    factor: float = 1.0
    shift: float = 0.0
    deviation: float = 0.0
    relative: float = 0.0
    of_person: float = 0.0
    relative_of_person: float = 0.0
    people_of_row: float = 1.0
    """How many people there are for each row that is counted."""
    people: float = 1.0
    """How many people a group of typical size has."""
    bounds: tuple[float, float] | None = None
    """Bounds of a mean that are narrower than those of the card, which is what follows."""
    widest: tuple[float, float] = (0.0, 0.0)
    middle: float = 0.0
    """The mean of all values within the bounds."""
    unseen: int = 0
    """How many people with far more rows than all others could go undetected, of whom the error holds nothing; 0 where
    no such people are possible."""

    def limits_error(self, values: Floats, rows: Floats | None, confidence: float = 0.95) -> Floats:
        """Return the error of corrected ``values`` by the uncertainty of the correction, in groups with these
        numbers of counted ``rows`` (None: of typical size).

        Where the mean of a group is near a bound, many of its values may be beyond it: by Markov's inequality a share
        of ``(mean - middle) / (bound - middle)`` at most, of values above the middle. Its fourth power is used, which
        is small for groups that differ from others in usual ways, and 1 where all values may be beyond.
        """
        people = self.people if rows is None else np.maximum(rows * self.people_of_row, 1.0)
        size = np.abs(values)
        variance = self.deviation**2 + (self.relative * size) ** 2
        variance = variance + (self.of_person**2 + (self.relative_of_person * size) ** 2) / people
        result: Floats = NormalDist().inv_cdf((1 + confidence) / 2) * np.sqrt(variance)
        if self.bounds is not None:
            for bound, widest in zip(self.bounds, self.widest, strict=True):
                if bound not in (widest, self.middle):
                    share = np.clip((values - self.shift - self.middle) / (bound - self.middle), 0, 1)
                    result = result + share**4 * abs(widest - bound)
        return result


@dataclass(frozen=True)
class Choice:
    """The limit and the bounds of one aggregate, the correction that they need, and the error that is expected."""

    rows: int
    bounds: tuple[float, float] | None
    correction: Correction
    error: float
    """The expected total error (one standard deviation) in a group of typical size."""
    other_bounds: tuple[float, float] | None = None
    """The bounds of the second value of a pair."""
    noise: float | None = None
    """The part of ``error`` that is noise, of the answer and of the profile; the rest is what limits do to the rows
    that there are, the same in every answer. None for choices of which no error is forecast."""
    rank: tuple[float, float] | None = None
    """Of a quantile, by which share of a group's rows a bin misses the rank for it to be e times less probable, and
    the standard deviation of the rank by what limits do."""


@dataclass(frozen=True)
class Known:
    """What is known about the rows of an aggregation: people, and how they are shared among the groups."""

    people: People
    groups: Floats
    """The share of the people in each group; one for all rows."""
    different: float
    """By which share of a correction a group differs from all rows, as a standard deviation."""
    tried: tuple[float, ...] = ()
    """The only limits that are possible; none for any."""
    usual: bool = False
    """Whether errors are those that are expected, with one limit too, rather than those that a ± has to cover."""

    @classmethod
    def of(cls, people: People, groups: Sequence[float] | None, approximate: bool = False) -> Known:
        """Return the groups with these shares of the people (None: all rows as one), thinned to at most nine.
        ``approximate`` says that the rows differ from those that the profile describes."""
        if groups is None:
            return cls(people, np.ones(1), _DIFFERENT if approximate else _OF_ALL)
        shares = np.maximum(np.asarray(groups, dtype=np.float64), 1e-9)
        if len(shares) > 9:
            shares = np.quantile(shares, np.linspace(0.05, 0.95, 7))
        return cls(people, shares, _DIFFERENT)

    def left_out(self, limits: Floats) -> tuple[Floats, Floats]:
        """Return the expected number of rows beyond each limit, and its standard deviation.

        To compare several limits it is that of the possible histograms of people. For a single limit, whose ± is
        shown, it covers everything that the noise may hide (:meth:`People.hidden`).
        """
        if len(limits) > 1 or self.usual:
            return self.people.left_out(limits)
        missing, deviation = self.people.hidden(float(limits[0]))
        return np.array([missing]), np.array([deviation])

    def in_groups(self) -> Floats:
        """Return the number of people in each group."""
        return np.maximum(self.people.number * self.groups, 1.0)

    def limits(self) -> Floats:
        """Return the limits to try: those stated, or else a fine grid up to about the most rows of a person."""
        if self.tried:
            return np.array(self.tried)
        most = max(float(self.people.sizes[self.people.expected > 1e-6].max(initial=1.0)), 1.0) * 1.3
        tried = sorted({1, 2, 3, *(round(2 ** (i / 4)) for i in range(8, 81))})
        known = [limit for limit in tried if limit <= most]
        larger = [limit for limit in tried if limit > most][:1]
        return np.array([*known, *larger], dtype=np.float64)


def _typical(errors: Floats) -> Floats:
    """Return the geometric mean of errors over groups, the last axis: the error of a typical group."""
    result: Floats = np.exp(np.log(np.maximum(errors, 1e-300)).mean(axis=-1))
    return result


def _uneven_means(people: People, limits: Floats, alike: float) -> Floats:
    """Return, for each limit R, the variance that unequal weights add to a mean, for one person and values of variance
    1: the expectation of (a - b)^2 (r + (1 - r) / N).

    A person with N rows has the weight a = min(N, R) / E min(N, R) among counted rows and b = N / E N among all rows;
    r = ``alike`` is the correlation of a person's values. In a group of k people it is divided by k.
    """
    number, sizes = people.expected[..., None] / people.number, people.sizes[..., None]
    counted = np.minimum(sizes, limits)
    a = counted / (number * counted).sum(axis=(0, 1))
    b = sizes / (number * sizes).sum(axis=(0, 1))
    result: Floats = (number * (a - b) ** 2 * (alike + (1 - alike) / sizes)).sum(axis=(0, 1))
    return result


def _uneven_counts(people: People, limits: Floats, factor: Floats) -> Floats:
    """Return, for each limit R and correction factor f, the mean square of N - f min(N, R) over people with N rows,
    divided by the squared mean of N: the relative variance that one person adds to a corrected count."""
    number, sizes = people.expected[..., None] / people.number, people.sizes[..., None]
    rest: Floats = (number * (sizes - factor * np.minimum(sizes, limits)) ** 2).sum(axis=(0, 1))
    return rest / (people.rows / people.number) ** 2


def choose_count(known: Known, epsilon: float, noise: float | None = None) -> Choice:
    """Return the limit R with the smallest error of a corrected count; ``noise`` is the deviation at R = 1 (None: of
    Laplace noise).

    The error is that of a typical group. Three parts add up in squares: the noise times R and the correction's factor,
    the uncertainty of the factor, and how unevenly people have rows.
    """
    limits, people = known.limits(), known.people
    e = math.sqrt(2) / epsilon if noise is None else noise
    counted = people.counted(limits)
    missing, uncertain = known.left_out(limits)
    factor = 1 + missing / counted
    relative = np.hypot(2 * known.different * missing, uncertain) / (counted + missing)
    uneven = _uneven_counts(people, limits, factor)
    k = known.in_groups()
    size = k * (people.rows / people.number)
    limited = np.hypot(relative[:, None], np.sqrt(uneven[:, None] / k)) * size
    errors = _typical(np.hypot((e * limits * factor)[:, None], limited))
    best = int(np.argmin(errors))
    if len(limits) > 1:
        return choose_count(replace(known, tried=(float(limits[best]),)), epsilon, noise)
    correction = Correction(
        factor=float(factor[best]),
        relative=float(relative[best]),
        relative_of_person=math.sqrt(float(uneven[best])),
        people_of_row=people.number / float(counted[best]),
        people=float(np.median(k)),
    )
    of_profile = people.noise_beyond(float(limits[best])) * k / people.number
    noise_alone = float(_typical(np.hypot(e * limits[best] * factor[best], of_profile)))
    return Choice(math.ceil(limits[best]), None, correction, float(errors[best]), noise=noise_alone)


def _bound_candidates(values: Values, bounds: tuple[float, float], whole: bool) -> tuple[Floats, Floats]:
    """Return pairs of bounds to try, as an array of lower and one of upper bounds.

    They are the stated bounds, quantiles of the values, and points beyond the range that is seen, all within the stated
    bounds and rounded to three digits (or integers if ``whole``).
    """
    cut = np.array(_CUT)
    low = {bounds[0], *values.quantile(cut).tolist()}
    high = {bounds[1], *values.quantile(1 - cut).tolist()}
    first, last = (min(max(end, bounds[0]), bounds[1]) for end in values.ends)
    low |= {first - share * (last - first) for share in _BEYOND}
    high |= {last + share * (last - first) for share in _BEYOND}
    ends: list[list[float]] = []
    for places, rounding in ((low, math.floor), (high, math.ceil)):
        held = sorted({min(max(place, bounds[0]), bounds[1]) for place in places})
        ends.append(sorted({float(rounding(place)) if whole else _rounded(place, bounds) for place in held}))
    least = max((bounds[1] - bounds[0]) * 1e-6, 1.0 if whole else 0.0)
    pairs = [(one, two) for one in ends[0] for two in ends[1] if two - one >= least] or [bounds]
    array = np.array(pairs)
    return array[:, 0], array[:, 1]


def _rounded(place: float, bounds: tuple[float, float]) -> float:
    """Return a bound rounded to three digits and clamped to ``bounds``."""
    return min(max(float(f"{place:.3g}"), bounds[0]), bounds[1])


def _class_weights(values: Values, people: People, limits: Floats) -> tuple[Floats, Floats]:
    """Return the share of each class of people (by their number of rows) among counted rows, a line for each limit, and
    among all rows."""
    sizes = people.sizes
    place = np.searchsorted(np.array(values.sizes[:-1], dtype=np.float64), sizes, side="left")
    counted = people.expected[..., None] * np.minimum(sizes[..., None], limits)
    every = people.expected * sizes
    classes = len(values.sizes)
    shares = np.array([counted[place == number].sum(axis=0) for number in range(classes)]).T
    rows = np.array([every[place == number].sum() for number in range(classes)])
    return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-12), rows / max(float(rows.sum()), 1e-12)


@dataclass(frozen=True)
class _Drift:
    """The difference between the mean of counted rows and that of all rows, for each limit (lines) and pair of bounds
    (columns), and its standard deviation by the noise of the profile and by differences between groups."""

    mean: Floats
    deviation: Floats


def _drift(known: Known, values: Values, limits: Floats, low: Floats, high: Floats) -> _Drift:
    """Return how far limits move a mean of clipped values, since people with few rows then weigh more.

    The mean of each class is that of all values plus a difference: of a deviation of :data:`_UNKNOWN_DRIFT` times that
    of the values before the profile is seen, and then shrunk by the noise in which it was measured.
    """
    people = known.people
    left_out = 1 - people.counted(limits) / people.rows
    spread = values.deviation_of_values * math.sqrt(values.alike)
    if not values.classes:
        unmeasured = _UNKNOWN_DRIFT * spread * left_out
        return _Drift(np.zeros((len(limits), len(low))), np.repeat(unmeasured[:, None], len(low), axis=1))
    shares, rows = _class_weights(values, people, limits)
    means, noises = values.class_means(low, high)
    unknown = _UNKNOWN_DRIFT * spread
    certain = unknown**2 / np.maximum(unknown**2 + noises**2, 1e-300)
    shift = (shares - rows) @ (means * certain)
    of_noise = np.sqrt((shares - rows) ** 2 @ (noises * np.sqrt(certain)) ** 2)
    within = _WITHIN * np.sqrt(rows @ (means * certain) ** 2) * left_out[:, None]
    grouped = known.different if known.different >= _DIFFERENT else 0.0
    of_groups = grouped * unknown * left_out[:, None]
    return _Drift(shift, np.sqrt(of_noise**2 + of_groups**2 + within**2 + (known.different * shift) ** 2))


def _clipping_bias(values: Values, low: Floats, high: Floats) -> Floats:
    """Return, for each pair of bounds, by how much clipping may change the mean of a group.

    The upper bound lowers the mean of all rows and the lower bound raises it, so that both changes cancel in part. They
    are added in quadrature here, since groups differ in which end is clipped: that errs towards more.
    """
    above = np.maximum(values.points - high[:, None], 0.0) @ values.shares
    below = np.maximum(low[:, None] - values.points, 0.0) @ values.shares
    return np.hypot(above, below)


def _beyond(low: Floats, high: Floats) -> Callable[[Floats], Floats]:
    """Return the function that maps values to what clipping to each pair of bounds removes from them: a line for each
    pair."""
    return lambda points: points - np.clip(points, low[:, None], high[:, None])


def _clipped_in_groups(known: Known, values: Values, low: Floats, high: Floats) -> Floats:
    """Return, for each pair of bounds, the standard deviation of what clipping changes in the mean of a group.

    Two parts add up in squares: a share of the change in all rows, and differences between groups, which are taken to
    be :data:`_BY_GROUP` of those between people, up to 1.5 times the change in all rows.
    """
    beyond = values.points - np.clip(values.points, low[:, None], high[:, None])
    variance = beyond**2 @ values.shares - (beyond @ values.shares) ** 2
    share = _BY_GROUP * values.alike**2 if known.different >= _DIFFERENT else 0.0
    in_all = _clipping_bias(values, low, high)
    return np.hypot(known.different * in_all, np.minimum(np.sqrt(share * np.maximum(variance, 0.0)), 1.5 * in_all))


def choose_mean(
    known: Known,
    values: Values | None,
    bounds: tuple[float, float],
    epsilon: float,
    *,
    free: bool = True,
    whole: bool = False,
    noise: float | None = None,
) -> Choice:
    """Return the limit R and the bounds with the smallest expected error of a corrected mean in a typical group.

    The bounds are ``bounds`` themselves unless they are ``free``, and then lie within them; ``whole`` makes them
    integers. Errors add up in squares: noise e R h sqrt(2 (1 + m^2)) / W, what bounds and limits change, and unequal
    weights of people (see the module). ``noise`` is e, None for Laplace noise at ``epsilon``. ``values`` is None where
    nothing is known of them.
    """
    limits, people = known.limits(), known.people
    e = math.sqrt(2) / epsilon if noise is None else noise
    if values is None:
        values, free = Values.flat(bounds), False
    low, high = _bound_candidates(values, bounds, whole) if free else _fixed(bounds)
    half = (high - low) / 2
    mean, square = values.held_moments(low, high)
    clip = mean - values.mean - values.hidden_median(_beyond(low, high))
    deviation = np.sqrt(np.maximum(square - mean**2, 0.0))
    center = np.clip((mean - (low + high) / 2) / half, -1, 1)
    drift = _drift(known, values, limits, low, high)
    counted = people.counted(limits)
    uneven = _uneven_means(people, limits, values.alike)
    k = known.in_groups()
    size = counted[:, None] * (k / people.number)
    noises = (e * limits)[:, None, None] * (half * np.sqrt(2 * (1 + center**2)))[:, None] / size[:, None, :]
    noises = np.minimum(noises, half[:, None])
    cut = _clipped_in_groups(known, values, low, high)
    known_of_limits = np.hypot(cut, drift.deviation)
    fixed = np.hypot(known_of_limits, values.uncertainty(_beyond(low, high)))
    seen = np.hypot(known_of_limits, values.uncertainty(_beyond(low, high), hidden=False))
    by_person = np.sqrt(uneven)[:, None] * deviation
    limited = np.hypot(seen[:, :, None], by_person[:, :, None] / np.sqrt(k))
    errors = _typical(values.expected_error(np.hypot(noises, limited), _beyond(low, high)))
    i, j = np.unravel_index(int(np.argmin(errors)), errors.shape)
    correction = Correction(
        shift=-float(clip[j] + drift.mean[i, j]),
        deviation=float(fixed[i, j]),
        of_person=float(by_person[i, j]),
        people_of_row=people.number / float(counted[i]),
        people=float(np.median(k)),
        bounds=(float(low[j]), float(high[j])),
        widest=(max(bounds[0], float(values.points.min())), min(bounds[1], float(values.points.max()))),
        middle=float(mean[j]),
    )
    bounds = float(low[j]), float(high[j])
    noise_alone = float(_typical(np.hypot(noises[i, j], values.noise(_beyond(low, high))[j])))
    return Choice(math.ceil(limits[i]), bounds, correction, float(errors[i, j]), noise=noise_alone)


def _fixed(bounds: tuple[float, float]) -> tuple[Floats, Floats]:
    """Return stated bounds in the form of :func:`_bound_candidates`, as the only pair."""
    return np.array([float(bounds[0])]), np.array([float(bounds[1])])


def choose_variance(
    known: Known,
    values: Values | None,
    bounds: tuple[float, float],
    epsilon: float,
    *,
    root: bool,
    free: bool = True,
    whole: bool = False,
    noise: float | None = None,
) -> Choice:
    """Return the limit and the bounds with the smallest expected error of a corrected variance or, with ``root``, of a
    standard deviation, in a typical group. Parameters are those of :func:`choose_mean`."""
    limits, people = known.limits(), known.people
    e = math.sqrt(2) / epsilon if noise is None else noise
    if values is None:
        values, free = Values.flat(bounds), False
    low, high = _bound_candidates(values, bounds, whole) if free else _fixed(bounds)
    half = (high - low) / 2
    mean, square = values.held_moments(low, high)
    variance = np.maximum(square - mean**2, 1e-12 * half**2)
    of_seen = max(values.deviation_of_values**2, 1e-300)
    held = np.clip(values.points, low[:, None], high[:, None]) - mean[:, None]
    fourth = held**4 @ values.shares
    m, q = (mean - (low + high) / 2) / half, (square - mean * (low + high) + (low + high) ** 2 / 4) / half**2
    parts = (1 - q + 2 * m + 2 * m**2) ** 2 + (-1 - q + 2 * m**2) ** 2 + (1 - q - 2 * m + 2 * m**2) ** 2
    counted, k = people.counted(limits), known.in_groups()
    size = counted[:, None] * (k / people.number)
    noises = (e * limits)[:, None, None] * (half**2 * np.sqrt(parts))[:, None] / size[:, None, :]
    noises = np.minimum(noises, (half**2)[:, None])
    by_person = np.sqrt(_uneven_means(people, limits, values.alike))[:, None] * np.sqrt(
        np.maximum(fourth - variance**2, 0)
    )

    def lost(points: Floats) -> Floats:
        """Return what clipping to each pair of bounds removes from squared distances to the mean."""
        squares = (points - values.mean) ** 2
        return squares - np.minimum(squares, (np.clip(points, low[:, None], high[:, None]) - values.mean) ** 2)

    true = np.maximum(of_seen + values.hidden_median(lost), variance)
    bias = variance - true
    drift = _UNKNOWN_DRIFT * (1 - counted / people.rows)[:, None] * variance * values.alike
    known_of_limits = np.hypot(known.different * bias, drift)
    fixed = np.hypot(known_of_limits, values.uncertainty(lost))
    seen = np.hypot(known_of_limits, values.uncertainty(lost, hidden=False))
    unit = 2 * np.sqrt(variance) if root else np.ones_like(variance)
    errors = np.hypot(noises, np.hypot(seen[:, :, None], by_person[:, :, None] / np.sqrt(k))) / unit[:, None]
    typical = _typical(values.expected_error(errors, lost, 1 / unit[:, None]))
    i, j = np.unravel_index(int(np.argmin(typical)), typical.shape)
    correction = Correction(
        shift=math.sqrt(true[j]) - math.sqrt(variance[j]) if root else float(true[j] - variance[j]),
        deviation=float(fixed[i, j] / unit[j]),
        of_person=float(by_person[i, j] / unit[j]),
        people_of_row=people.number / float(counted[i]),
        people=float(np.median(k)),
    )
    bounds = float(low[j]), float(high[j])
    noise_alone = float(_typical(np.hypot(noises[i, j], values.noise(lost)[j])) / unit[j])
    return Choice(math.ceil(limits[i]), bounds, correction, float(typical[i, j]), noise=noise_alone)


def pair_scale(kind: str, values: tuple[Values, Values]) -> float:
    """Return the factor from a correlation to a statistic of two values: sd(x) sd(y) for a covariance, sd(x) / sd(y)
    for a slope, 1 for a correlation."""
    first, second = values[0].deviation_of_values, max(values[1].deviation_of_values, 1e-300)
    of_line = {"regr_slope": first / second, "regr_intercept": first * math.hypot(1, values[1].mean / second)}
    return first * second if kind in ("covar_pop", "covar_samp") else of_line.get(kind, 1.0)


def _between(values: Values, low: Floats, high: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return, for each pair of bounds, the mean and the standard deviation of clipped values on the scale on which the
    bounds are 0 and 1/2, and the shares of the variance that clipping removes and keeps."""
    mean, square = values.held_moments(low, high)
    width = high - low
    left = np.maximum(square - mean**2, 1e-9 * width**2)
    kept = np.clip(left / max(values.deviation_of_values**2, 1e-300), 1e-9, 1.0)
    return np.clip((mean - low) / width, 0, 1) / 2, np.sqrt(left) / width / 2, 1 - kept, kept


def _squared_gradient(a: Floats, b: Floats, s_a: Floats, s_b: Floats, r: float) -> Floats:
    """Return ``|g|^2`` of :func:`choose_pair` for values with the means ``a`` and ``b`` and the standard deviations
    ``s_a`` and ``s_b``: the squared length of the gradient of C_ab - (r / 2) (C_aa s_b / s_a + C_bb s_a / s_b) by the
    six measured sums."""
    result = np.zeros_like(a)
    sums = np.array([[1, 1, 1, 1, 1, 1], [1, 0, 0, 0.5, 0.5, 0], [0, 1, 0, 0.5, 0, 0.5]])
    squares = np.array([[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 0, 0.5, 0, 0]])
    for (number, first, second), (aa, bb, ab) in zip(sums.T, squares.T, strict=True):
        c_ab = ab - b * first - a * second + a * b * number
        c_aa, c_bb = aa - 2 * a * first + a * a * number, bb - 2 * b * second + b * b * number
        result = result + (c_ab - r / 2 * (c_aa * s_b / s_a + c_bb * s_a / s_b)) ** 2
    return result


def choose_pair(
    known: Known,
    values: tuple[Values, Values],
    bounds: tuple[tuple[float, float], tuple[float, float]],
    epsilon: float,
    kind: str,
    *,
    free: tuple[bool, bool] = (True, True),
    whole: tuple[bool, bool] = (False, False),
    noise: float | None = None,
) -> Choice:
    """Return the limit and the bounds of both values with the smallest expected error of a covariance, a correlation,
    or a least-squares line that predicts the first value from the second. Parameters are those of :func:`choose_mean`.

    Each of these statistics is a correlation r times standard deviations that the profile knows, so that errors are
    those of r, which is unknown and taken to be 1/2. With a and b the values on the scale on which their bounds are 0
    and 1/2, the noise of r is ``(e R / W) |g| / (s_a s_b)``, where g is the gradient by the six measured sums of
    ``C_ab - (r / 2) (C_aa s_b / s_a + C_bb s_a / s_b)`` (:class:`dither.inference.pairs.PairSums`).
    """
    limits, people = known.limits(), known.people
    e = math.sqrt(2) / epsilon if noise is None else noise
    sides = [
        _bound_candidates(one, ends, is_whole) if is_free else _fixed(ends)
        for one, ends, is_free, is_whole in zip(values, bounds, free, whole, strict=True)
    ]
    i, j = (index.ravel() for index in np.meshgrid(*(np.arange(len(low)) for low, _ in sides)))
    places = (i, j)
    (a, s_a, lost_a, kept_a), (b, s_b, lost_b, kept_b) = (
        [item[place] for item in _between(one, low, high)]
        for one, (low, high), place in zip(values, sides, places, strict=True)
    )
    unit = np.sqrt(_squared_gradient(a, b, s_a, s_b, 0.5)) / (s_a * s_b)
    counted, k = people.counted(limits), known.in_groups()
    size = counted[:, None] * (k / people.number)
    noises = np.minimum((e * limits)[:, None, None] * unit[:, None] / size[:, None, :], 1.0)
    alike = max(one.alike for one in values)
    of_bounds = _OF_CORRELATION * np.hypot(lost_a, lost_b)
    of_weights = _UNKNOWN_DRIFT * alike * (1 - counted / people.rows)
    fixed = np.hypot(of_bounds, of_weights[:, None])
    by_person = np.sqrt(_uneven_means(people, limits, alike))
    errors = _typical(np.hypot(noises, np.hypot(fixed[:, :, None], (by_person[:, None] / np.sqrt(k))[:, None, :])))
    row, place = np.unravel_index(int(np.argmin(errors)), errors.shape)
    scale, kept = pair_scale(kind, values), (float(kept_a[place]), float(kept_b[place]))
    factor = math.sqrt(kept[1] / kept[0]) if kind == "regr_slope" else 1.0
    correction = Correction(
        factor=1 / math.sqrt(kept[0] * kept[1]) if kind in ("covar_pop", "covar_samp") else factor,
        deviation=float(fixed[row, place]) * scale,
        of_person=float(by_person[row]) * scale,
        people_of_row=people.number / float(counted[row]),
        people=float(np.median(k)),
    )
    (low, high), (other_low, other_high) = (
        (float(ends[0][index[place]]), float(ends[1][index[place]])) for ends, index in zip(sides, places, strict=True)
    )
    error, noise_alone = float(errors[row, place]) * scale, float(_typical(noises[row, place])) * scale
    return Choice(math.ceil(limits[row]), (low, high), correction, error, (other_low, other_high), noise_alone)


def choose_sum(
    known: Known,
    values: Values | None,
    bounds: tuple[float, float],
    epsilon: float,
    *,
    alone: bool,
    free: bool = True,
    whole: bool = False,
    noise: float | None = None,
) -> Choice:
    """Return the limit and the bounds with the smallest expected error of a corrected sum in a typical group.

    ``alone`` says that the sum is a measurement of its own, not one of several with the number of values. The
    correction is the factor true sum / estimated sum; values of both signs get none, since their sum may be near 0.
    Other parameters are those of :func:`choose_mean`.
    """
    limits, people = known.limits(), known.people
    e = math.sqrt(2) / epsilon if noise is None else noise
    if values is None:
        values, free = Values.flat(bounds), False
    low, high = _bound_candidates(values, bounds, whole) if free else _fixed(bounds)
    mean = values.held_moments(low, high)[0]
    of_signs = [abs(float(values.shares @ np.clip(values.points, *ends))) for ends in ((-math.inf, 0), (0, math.inf))]
    signed = min(of_signs) > _OF_ONE_SIGN * max(of_signs)
    drift = _drift(known, values, limits, low, high)
    counted, k = people.counted(limits), known.in_groups()
    missing, uncertain = known.left_out(limits)
    rows = counted + missing
    present = 1 - values.nulls
    true = rows[:, None] * (values.mean + values.hidden_median(_beyond(low, high)))
    estimated = counted[:, None] * (mean + drift.mean)
    gap = true - estimated
    size = math.sqrt(float(values.shares @ values.points**2))
    safe = (np.abs(estimated) > 0.1 * counted[:, None] * size) & (not signed)
    factor = np.where(safe, true / np.where(safe, estimated, 1.0), 1.0)
    factor = np.where((factor > 0.5) & (factor < 20), factor, 1.0)
    true = np.broadcast_to(true, gap.shape)
    cut = counted[:, None] * _clipped_in_groups(known, values, low, high)
    per_row = np.hypot(
        np.hypot(2 * known.different * missing[:, None] * values.mean, cut), uncertain[:, None] * values.mean
    )
    per_row = np.hypot(per_row, counted[:, None] * drift.deviation)
    per_row = np.where(factor == 1.0, np.hypot(per_row, gap), per_row)
    seen, per_row = (
        np.hypot(per_row, counted[:, None] * values.uncertainty(_beyond(low, high), hidden)) * present
        for hidden in (False, True)
    )
    widest = np.maximum(np.abs(low), np.abs(high)) if alone else np.hypot(low, high)
    noises = (e * limits)[:, None] * widest * factor
    uneven = _uneven_counts(people, limits, 1 + missing / counted)
    of_person = np.sqrt(uneven) * (people.rows / people.number) * math.sqrt(float(values.shares @ values.points**2))
    share = k / people.number
    limited = np.hypot(seen[:, :, None] * share, (of_person * present)[:, None, None] * np.sqrt(k))
    errors = np.hypot(noises[:, :, None], limited)
    errors = _typical(values.expected_error(errors, _beyond(low, high), counted[:, None, None] * share * present))
    i, j = np.unravel_index(int(np.argmin(errors)), errors.shape)
    if len(limits) > 1:
        one, chosen = replace(known, tried=(float(limits[i]),)), (float(low[j]), float(high[j]))
        settled = choose_sum(one, values, chosen, epsilon, alone=alone, free=False, whole=whole, noise=noise)
        return replace(settled, error=float(errors[i, j]))
    beyond = people.noise_beyond(float(limits[i])) * values.mean
    of_profile = np.hypot(beyond, counted[i] * values.noise(_beyond(low, high))[j]) * present
    noise_alone = float(_typical(np.hypot(noises[i, j], of_profile * share)))
    whole_sum = max(abs(float(true[i, j]) * present), 1e-300)
    relative = float(per_row[i, j]) / whole_sum
    of_one = float(of_person[i]) * present / (whole_sum / people.number)
    of_signed = signed or relative > 3
    correction = Correction(
        factor=float(factor[i, j]),
        relative=0.0 if of_signed else relative,
        deviation=float(per_row[i, j]) if of_signed else 0.0,
        relative_of_person=min(of_one, 10.0),
        people_of_row=people.number / float(counted[i]),
        people=float(np.median(k)),
    )
    bounds = float(low[j]), float(high[j])
    return Choice(math.ceil(limits[i]), bounds, correction, float(errors[i, j]), noise=noise_alone)


def density_at(values: Values, at: float) -> float:
    """Return how dense values are around a quantile, between quantiles half as far from it as the nearer end, or
    closer."""
    step = min(0.05, at / 2, (1 - at) / 2)
    return 2 * step / max(float(values.quantile(at + step) - values.quantile(at - step)), 1e-12)


def choose_quantile(
    known: Known,
    values: Values | None,
    bounds: tuple[float, float],
    epsilon: float,
    at: float,
    *,
    free: bool = True,
    whole: bool = False,
) -> Choice:
    """Return the best limit and bounds of a quantile: its error is the error in rank over the density of values."""
    limits, people = known.limits(), known.people
    if values is None:
        values, free = Values.flat(bounds), False
    counted, k = people.counted(limits), known.in_groups()
    size = counted[:, None] * (k / people.number)
    rank = 2 * math.sqrt(2) * limits[:, None] / epsilon / size
    uneven = at * (1 - at) * _uneven_means(people, limits, values.alike)[:, None] / k
    middle = float(values.quantile(at))
    # 0.4 is the density of a normal law in its middle: how many ranks a standard deviation is
    unknown = _UNKNOWN_DRIFT * 0.4 * (1 - counted / people.rows)
    if values.classes:
        shares, rows = _class_weights(values, people, limits)
        below = np.array([float(item.shares[item.points <= middle].sum()) for item in values.classes])
        in_all = (shares - rows) @ below
        grouped = known.different if known.different >= _DIFFERENT else 0.0
        drift = np.sqrt(in_all**2 * (1 + known.different**2) + (grouped * unknown) ** 2)
    else:
        drift = unknown
    off = np.sqrt(rank**2 + uneven + drift[:, None] ** 2)
    density = density_at(values, at)
    errors = _typical(np.minimum(off, 0.5) / density)
    i = int(np.argmin(errors))
    low, high = bounds
    if free and 0.05 <= at <= 0.95:
        tried_low, tried_high = _bound_candidates(values, bounds, whole)
        inside = (tried_low <= values.quantile(min(0.01, at / 10))) & (
            tried_high >= values.quantile(1 - min(0.01, (1 - at) / 10))
        )
        if inside.any():
            place = int(np.argmin(np.where(inside, tried_high - tried_low, math.inf)))
            low, high = float(tried_low[place]), float(tried_high[place])
    limited = math.hypot(float(drift[i]), 0.0) / density
    of_limits = math.sqrt(float(uneven[i].mean()) + float(drift[i]) ** 2)
    fall = 2 * max(at, 1 - at) * float(limits[i]) / epsilon / float(np.median(size[i]))
    correction = Correction(
        deviation=limited,
        of_person=math.sqrt(at * (1 - at) * float(_uneven_means(people, limits[i : i + 1], values.alike)[0])) / density,
        people_of_row=people.number / float(counted[i]),
        people=float(np.median(k)),
    )
    return Choice(math.ceil(limits[i]), (low, high), correction, float(errors[i]), rank=(fall, of_limits))
