"""The plan of a series: one charge for the whole horizon, noise as a function of a key, the error of every step.

*Mechanism.* Values ``x_1, x_2, ...`` are whole multiples of a public lattice step; those of several series that advance
together are whole numbers, which bounds in how many of them rounding can differ. Released at t is the running sum ``x_1
+ ... + x_t`` plus ``w_t``, where w comes from independent noise z by a filter in whole numbers
(:mod:`dither.stream.filters`, with the proof of its sensitivity). Sums over windows, means and single steps are
differences of what is released.

*Neighboring relation.* One person is added or removed, or their values are replaced by others: the values of at most
``max_participations`` steps change, any two of them at least ``min_separation`` steps apart, each by at most
``sensitivity`` (the l2 norm over the series; the l1 norm for a pure guarantee).

*Guarantee.* On every path the fresh noise of two neighboring histories differs by whole numbers u with ``|u|_2 <= D``
(or ``|u|_1 <= D``), where D is computed outward, rounding of the filter included. z is the normal law (or Laplace's)
rounded to integers, a function of the ideal noise, so adding a whole number commutes with rounding. Gaussian noise
whose shifts are chosen adaptively, with ``|u|_2 <= D`` for sure, has the exact curve of one Gaussian release of ratio
``sigma / D`` (Denisov, McMahan, Rush, Smith and Thakurta 2022 for factorizations; Smith and Thakurta 2022 for adaptive
shifts), and so ``D^2 / (2 sigma^2)``-zCDP. Laplace noise of scale b is ``D / b``-DP, adaptively as well. So later
values, and when a person takes part, may depend on earlier releases.

*Unknown horizon.* Epochs of 64, 128, 256, ... steps, each with a filter of its own that starts anew; the noise of the
finished epochs stays in the sum. A person with m of their k participations in an epoch moves its fresh noise by at
most ``m/k`` of what it is scaled for, and the squares of such shares (the shares themselves, for Laplace noise) add up
to at most 1.

*State.* The noise of a step is a function of the secret key and the step (:mod:`dither.stream.keyed`), and the state on
which later steps depend can be recorded (:meth:`NoiseStream.record`): the secret of a series is its key, or that
record. The plan itself is public; :meth:`StreamPlan.record` keeps filters and scales, so that a later version of dither
continues with the same noise even if it would choose other filters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Literal, get_args

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaincc

from dither import arguments
from dither.accounting import Event, GaussianNoise, Pure, gaussian_ratio
from dither.errors import InvalidArgument, NotPrivate, WrongType
from dither.exact import down, root_up, up
from dither.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dither.present import chart, markup
from dither.randomness import MAX_SCALE, Exponential, Normal
from dither.randomness.laws import Law
from dither.stateful import Stateful
from dither.stream.buffers import EPOCHS, FIRST, Buffers, buffers_for, epoch_buffers
from dither.stream.filters import Bands, Filter, FilterState, Tree, restored, stored, window_variance
from dither.stream.keyed import KeyedNoise, Lattice

Factorization = Literal["buffers", "square root", "banded", "tree"]


def known_filter(
    horizon: int,
    kind: str,
    *,
    buffers: int = 5,
    bands: int | None = None,
    participations: int = 1,
    separation: int = 1,
    window: int | None = None,
) -> Filter:
    """Return the filter for a known number of steps.

    Parameters
    ----------
    horizon
        The number of steps.
    kind
        ``"tree"``, ``"square root"``, ``"banded"`` or ``"buffers"``.
    buffers, bands
        The number of buffers or bands; None: as many bands as ``separation``.
    participations, separation, window
        The parameters for which buffers are optimized; see :func:`~dither.stream.buffers.buffers_for`.
    """
    if kind == "tree":
        return Tree(horizon)
    if kind == "square root":
        return Bands.square_root(horizon, horizon)
    if kind == "banded":
        return Bands.square_root(horizon, separation if bands is None else bands)
    if kind == "buffers":
        return buffers_for(horizon, buffers, participations, separation, window)
    raise InvalidArgument("factorization", f"one of {', '.join(get_args(Factorization))}", repr(kind), "leave it out")


def epoch_filter(epoch: int, kind: str) -> Filter:
    """Return the filter of an epoch, counted from 0, of a series without a known horizon."""
    if kind == "tree":
        return Tree(FIRST << epoch)
    if kind == "buffers":
        return epoch_buffers(epoch)
    raise InvalidArgument(
        "factorization", "'buffers' or 'tree' where the horizon is not known", repr(kind), "pass a horizon"
    )


def from_record(record: Mapping[str, Any]) -> Filter:
    """Return the filter with the parameters that :meth:`Filter.record` returned."""
    length = int(record["length"])
    if record["kind"] == "tree":
        return Tree(length)
    if record["kind"] == "bands":
        return Bands(length, tuple(map(int, record["coefficients"])), int(record["bits"]))
    return Buffers(
        length,
        tuple(map(int, record["decays"])),
        tuple(map(int, record["decay_bits"])),
        tuple(map(int, record["weights"])),
        int(record["weight_bits"]),
        int(record["extra_bits"]),
    )


def laplace_sum_tail(x: float, terms: int) -> float:
    """Return P(|S| > x) for the sum S of ``terms`` independent standard Laplace variables.

    S is the difference of the times of the m-th arrivals (m = ``terms``) in two Poisson processes of rate 1. When the
    first m-th arrival comes, the other process has had k < m arrivals with probability ``2 C(m-1+k, k) / 2^(m+k)``, and
    |S| is the time of its next m - k arrivals, whose tail is the regularized incomplete gamma function.
    """
    total = 0.0
    for k in range(terms):
        total += math.comb(terms - 1 + k, k) * 0.5 ** (terms + k) * float(gammaincc(terms - k, x))
    return 2 * total


@lru_cache(maxsize=4096)
def _whole(tail: float, terms: int) -> float:
    """Return the x such that the sum of ``terms`` standard Laplace variables exceeds x standard deviations in absolute
    value with probability ``tail``, by root finding."""
    top = math.sqrt(2 * terms) * (4 - 2 * math.log(tail))
    return float(brentq(lambda x: laplace_sum_tail(x, terms) - tail, 0.0, top)) / math.sqrt(2 * terms)


def laplace_quantile(tail: float, terms: float) -> float:
    """Return the x such that a sum of ``terms`` equal Laplace variables exceeds x standard deviations in absolute value
    with probability ``tail``.

    A fractional number of terms is interpolated: it stands for a sum of different scales with the same kurtosis.
    """
    low = max(1, math.floor(terms))
    share = max(0.0, terms - low)
    return (1 - share) * _whole(tail, low) + (share * _whole(tail, low + 1) if share else 0.0)


@dataclass(frozen=True)
class Segment:
    """Steps ``first`` to ``first + filter.length - 1`` (from 1), which share a filter and a scale of noise."""

    first: int
    filter: Filter
    scale: float
    """The scale of the fresh noise, in lattice steps."""


class NoiseStream(Stateful):
    """The noise of the running sums of a series, step after step; a secret state in memory of constant size.

    The noise is a function of the key. A stream may also continue a record (:meth:`record`) with a different key: the
    noise drawn before stays in the sums, and fresh noise comes from the new key.

    >>> from dither import ZCDP
    >>> StreamPlan(horizon=8, budget=ZCDP(0.5)).start(bytes(32)).advance(3).shape
    (3, 1)
    """

    def __init__(
        self,
        segment_at: Callable[[int], Segment],
        law: Law,
        series: int,
        key: bytes,
        recorded: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin before the first step, or continue a record.

        Parameters
        ----------
        segment_at
            Returns the segment of the plan, with its filter and scale, that a step is in.
        law
            The standard law of the noise, normal or Laplace.
        series
            The number of series that advance together.
        key
            The secret from which fresh noise is computed.
        recorded
            The state after the last step that was drawn, from :meth:`record`; None: nothing was drawn.
        """
        self._segment_at, self._law, self._series = segment_at, law, series
        self._keyed = KeyedNoise(key)
        self._step = 0
        self._state: FilterState | None = None
        self._segment: Segment | None = None
        self._before: Lattice | int = 0
        self._last: Lattice | int = 0
        if recorded is not None:
            self._step = int(recorded["step"])
            self._segment = segment_at(self._step)
            self._state = self._segment.filter.start(series, recorded["filter"])
            self._before, self._last = restored(recorded["before"]), restored(recorded["last"])

    @property
    def step(self) -> int:
        """Return the number of steps whose noise was drawn."""
        return self._step

    def record(self) -> dict[str, Any]:
        """Return the secret state on which later noise depends besides the key; requires at least one step."""
        assert self._state is not None
        before, last = (stored(np.asarray(item)) for item in (self._before, self._last))
        return {"step": self._step, "filter": self._state.record(), "before": before, "last": last}

    def advance(self, steps: int = 1) -> Lattice:
        """Return the noise of the next steps, a row for each, in lattice steps."""
        arguments.whole(steps, "steps")
        self._segment_at(self._step + steps)
        parts = []
        while steps:
            segment = self._segment_at(self._step + 1)
            if segment is not self._segment:
                self._segment, self._state = segment, segment.filter.start(self._series)
                self._before = self._last
            assert self._state is not None
            count = min(steps, segment.first + segment.filter.length - 1 - self._step)
            fresh = self._keyed.draw(self._law, segment.scale, self._step + 1, count, self._series)
            noise = self._state.advance(fresh) + self._before
            self._last, self._step = noise[-1].copy(), self._step + count
            parts.append(noise)
            steps -= count
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


_NORMAL = Normal()
_LAPLACE = Exponential(symmetric=True)
_ROOT_BITS = 64
_STEPS_SHOWN = 365
"""The number of steps in the chart of a plan without a known horizon."""
_ROUNDING_SHARE = 1 << 12
_FINEST_SCALE = 1 << 16
_TYPICAL_EPOCH = 14
_BLOCK = 4096
_MARGIN = 1 + Fraction(1, 1 << 40)
"""The factor by which noise is larger than required, so that recorded noise still passes the check of a later version
whose bounds are slightly wider. The check itself has no tolerance."""


@dataclass(frozen=True, kw_only=True)
class StreamPlan:
    """The public plan of a series of running sums: its cost, its noise and its errors; nothing in it is random.

    Parameters
    ----------
    horizon
        The number of steps; None if it is not known, which costs accuracy (see the module).
    budget
        ``ApproxDP(epsilon, delta)``, ``ZCDP(rho)``, or ``PureDP(epsilon)``, which uses the tree: the cost of all steps
        together.
    max_participations, min_separation
        The most steps that contain values of one person, and the fewest steps from one of them to the next.
    sensitivity
        The most that one person can change the values of one step: the l2 norm over all series, or the l1 norm under
        ``PureDP``.
    series
        The number of series that advance together; if there are several, their values must be whole numbers.
    factorization
        ``"buffers"``, ``"square root"``, ``"banded"`` (with ``bands``) or ``"tree"``.
    buffers, bands
        The number of buffers or bands of the filter.
    window
        Optimize the buffers for sums over the last ``window`` steps; None: for running sums.

    Examples
    --------
    >>> from dither import ApproxDP
    >>> plan = StreamPlan(horizon=365, budget=ApproxDP(1, 1e-9))
    >>> noise = plan.noises(bytes(32), steps=30)         # of the running sums of 30 days; the key is secret
    >>> noise.shape, bool(noise[29, 0] == plan.noise(bytes(32), step=30)[0])
    ((30, 1), True)
    >>> plan.error(365) < 3 * 1.96 * plan.error(1)
    True
    """

    horizon: int | None
    budget: Guarantee
    max_participations: int = 1
    min_separation: int = 1
    sensitivity: float | Fraction = 1
    series: int = 1
    factorization: Factorization = "buffers"
    buffers: int = 5
    bands: int | None = None
    window: int | None = None
    recorded: tuple[int, tuple[Segment, ...]] | None = None
    """The recorded ``lattice_bits`` and segments; None: they are chosen from the other parameters."""

    def __post_init__(self) -> None:
        """Refuse arguments out of range, and noise that is too wide for 64 bits or too small for the budget."""
        if self.horizon is not None:
            arguments.whole(self.horizon, "horizon", at_most=1 << 32)
        arguments.whole(self.max_participations, "max_participations")
        arguments.whole(self.min_separation, "min_separation")
        arguments.whole(self.series, "series", at_most=1 << 31)
        arguments.sensitivity(self.sensitivity)
        if not isinstance(self.budget, (ApproxDP, ZCDP, PureDP)):
            raise WrongType("budget", "ApproxDP, ZCDP or PureDP", type(self.budget).__name__, "pass ApproxDP(1, 1e-9)")
        if self.window is not None:
            arguments.whole(self.window, "window")
        self._check_steps()
        for segment in self.segments:
            self._check(segment)

    @property
    def pure(self) -> bool:
        """Return whether the budget is pure DP; the noise is then Laplace noise in a tree."""
        return isinstance(self.budget, PureDP)

    @property
    def participations(self) -> int:
        """Return the most steps with values of one person that fit into the horizon."""
        if self.horizon is None:
            return self.max_participations
        return min(self.max_participations, -(-self.horizon // self.min_separation))

    @cached_property
    def ratio(self) -> Fraction:
        """Return the scale of the noise divided by the distance ``D`` of neighbors, rounded up."""
        if isinstance(self.budget, PureDP):
            return 1 / self.budget.exact[0]
        if isinstance(self.budget, ZCDP):
            return root_up(1 / (2 * self.budget.exact[0]), _ROOT_BITS)
        epsilon, delta = self.budget.exact
        return gaussian_ratio(arguments.epsilon(epsilon), arguments.delta(delta))

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of all steps together."""
        return self.budget

    cost = guarantee

    @cached_property
    def event(self) -> Event:
        """Return the event for accountants: one Gaussian release, or a pure one."""
        if isinstance(self.budget, PureDP):
            return Pure(self.budget.exact[0])
        return GaussianNoise(Fraction(down(self.ratio)))

    # the lattice

    @cached_property
    def lattice_bits(self) -> int:
        """Return the b such that values are rounded to multiples of ``2^-b``.

        The lattice is so fine that the scale of the noise is many steps, and that the filter's rounding increases the
        noise by less than 1 in 4096.
        """
        if self.recorded is not None:
            return self.recorded[0]
        item = self._filter(0 if self.horizon is not None else _TYPICAL_EPOCH)
        distance = self._linear_distance(item) * arguments.sensitivity(self.sensitivity)
        wanted = max(_ROUNDING_SHARE * self._rounding(item) / distance, _FINEST_SCALE / (distance * self.ratio))
        return math.ceil(math.log2(wanted)) if wanted > 1 else 0

    @property
    def unit(self) -> Fraction:
        """Return the lattice step ``2^-lattice_bits``, in units of the values."""
        return Fraction(1, 1 << self.lattice_bits)

    def values(self, measured: Lattice) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return noisy running sums in units of the values, from sums in lattice steps (``measured``)."""
        return np.asarray(measured / (1 << self.lattice_bits), dtype=np.float64)

    # filters, noise and error

    def _filter(self, epoch: int) -> Filter:
        """Return the filter of the whole horizon or, if that is not known, of an epoch counted from 0."""
        kind: Factorization = "tree" if self.pure else self.factorization
        if self.horizon is None:
            return epoch_filter(epoch, kind)
        return known_filter(
            self.horizon,
            kind,
            buffers=self.buffers,
            bands=self.bands,
            participations=self.participations,
            separation=self.min_separation,
            window=self.window,
        )

    def _linear_distance(self, item: Filter) -> Fraction:
        """Return the largest norm of the filter's response to one person's changes of at most 1: the l1 norm under pure
        DP, else the l2 norm."""
        if self.pure:
            assert isinstance(item, Tree)
            return item.l1_sensitivity(self.participations)
        if self.horizon is None:
            return self.participations * item.l2_sensitivity(1, 1)
        return item.l2_sensitivity(self.participations, self.min_separation)

    def _rounding(self, item: Filter) -> Fraction:
        """Return the largest norm that the filter's rounding adds to the distance of neighbors, in lattice steps.

        A lane (one of the series) is rounded differently only if its values differ. Values of several lanes are whole
        numbers, so a change with l2 norm ``sensitivity`` concerns at most ``sensitivity^2`` lanes at a step.
        """
        touched = min(self.series, self.participations * max(1, int(arguments.sensitivity(self.sensitivity) ** 2)))
        times = 1 if self.horizon is not None else self.participations
        return times * item.rounding * root_up(Fraction(item.length * touched), _ROOT_BITS)

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """Return the segments of the series: one for a known horizon, else one for each epoch."""
        if self.recorded is not None:
            return self.recorded[1]
        result, first = [], 1
        for epoch in range(1 if self.horizon is not None else EPOCHS):
            item = self._filter(epoch)
            result.append(Segment(first, item, up(self.ratio * self.distance(item) * _MARGIN)))
            first += item.length
        return tuple(result)

    def distance(self, item: Filter) -> Fraction:
        """Return ``D``: a bound on how far the fresh noise of a filter differs between neighbors, in lattice steps."""
        change = math.ceil(arguments.sensitivity(self.sensitivity) * (1 << self.lattice_bits))
        return self._linear_distance(item) * change + self._rounding(item)

    def _check_steps(self) -> None:
        """Refuse segments that do not cover the steps of the series, as in a changed record."""
        sizes = [self.horizon] if self.horizon is not None else [FIRST << epoch for epoch in range(EPOCHS)]
        firsts = [1, *(1 + sum(sizes[:i]) for i in range(1, len(sizes)))]
        if [(item.first, item.filter.length) for item in self.segments] != [*zip(firsts, sizes, strict=True)]:
            raise NotPrivate(
                "recorded", "filters for the steps of the series", "a changed record", "leave the record as it was"
            )

    def _check(self, segment: Segment) -> None:
        """Refuse a segment whose noise is too wide for 64 bits, or too small for the budget."""
        if not segment.scale <= MAX_SCALE:
            raise InvalidArgument(
                "sensitivity", "noise that 64 bits can hold", "wider noise", "measure in larger units"
            )
        needed = self.ratio * self.distance(segment.filter)
        if not segment.filter.decreasing or Fraction(segment.scale) < needed:
            raise NotPrivate(
                "recorded", "a filter and noise that keep the budget", "a changed record", "leave the record as it was"
            )

    def segment(self, step: int) -> Segment:
        """Return the segment that contains a step (from 1); refuse a step beyond the horizon."""
        most = self.horizon if self.horizon is not None else FIRST * ((1 << EPOCHS) - 1)
        if arguments.whole(step, "step") > most:
            raise InvalidArgument(
                "step", f"at most the horizon of {most:,}", f"{step:,}", "start another series, at its own cost"
            )
        return self.segments[0 if self.horizon is not None else ((step - 1) // FIRST + 1).bit_length() - 1]

    def start(self, key: bytes, recorded: Mapping[str, Any] | None = None) -> NoiseStream:
        """Return the stream of the running sums' noise from the first step on or, if ``recorded`` is not None, after
        the steps of that record."""
        return NoiseStream(self.segment, _LAPLACE if self.pure else _NORMAL, self.series, key, recorded)

    def noises(self, key: bytes, steps: int) -> Lattice:
        """Return the noise of the running sums of the first ``steps`` steps, a row for each, in lattice steps."""
        return self.start(key).advance(steps)

    def noise(self, key: bytes, step: int) -> Lattice:
        """Return the noise of the running sums of one step (from 1): one number for each series, in lattice steps."""
        stream = self.start(key)
        for block in _blocks(arguments.whole(step, "step")):
            noise = stream.advance(block)
        last: Lattice = noise[-1]
        return last

    def variance(self, step: int, window: int | None = None) -> float:
        """Return the variance of the noise in the running sum of a step (from 1), or in the sum over its last
        ``window`` steps, in squared units of the values."""
        unit = 2.0 if self.pure else 1.0
        return sum(unit * count * scale * scale for count, scale in self._terms(step, window))

    def _terms(self, step: int, window: int | None) -> list[tuple[float, float]]:
        """Return, for each segment that contributes to the noise of a sum, the sum of squares of the coefficients of
        its fresh noise, and the scale of that noise in units of the values."""
        result, last = [], arguments.whole(step, "step")
        first = 0 if window is None else max(0, last - arguments.whole(window, "window"))
        while last > first:
            segment = self.segment(last)
            inside, before = last - segment.first + 1, max(0, first - segment.first + 1)
            share = window_variance(segment.filter, inside, inside - before)
            result.append((share, segment.scale / (1 << self.lattice_bits)))
            last = segment.first - 1
        return result

    def error(self, step: int, confidence: float = 0.95, window: int | None = None) -> float:
        """Return the half-width of an interval for the running sum of a step (from 1), or for the sum over its last
        ``window`` steps.

        The noise is normal or, for a pure budget, a sum of Laplace variables, whose quantile is approximated from
        variance and kurtosis.

        >>> plan = StreamPlan(horizon=365, budget=ApproxDP(1, 1e-9))
        >>> plan.error(365, window=7) < plan.error(365)
        True
        """
        tail = 1 - arguments.confidence(confidence)
        deviation = math.sqrt(self.variance(step, window))
        if not self.pure:
            return float(_NORMAL.quantile_one(tail)[0] * deviation)
        terms = self._terms(step, window)  # the coefficients in a tree are 1 or -1
        fourth = sum(count * scale**4 for count, scale in terms)
        kurtosis_terms = sum(count * scale**2 for count, scale in terms) ** 2 / fourth
        return laplace_quantile(tail, kurtosis_terms) * deviation

    def _repr_html_(self) -> str:
        """Return the plan for a notebook: the guarantee, and the ± over time."""
        return self.fragment("A series of running sums", "running sum", self.error)

    def fragment(self, title: str, released: str, error: Callable[[int], float]) -> str:
        """Return HTML about a series with this plan for a notebook; everything in it is public.

        ``released`` names the number that is released at every step, and ``error(step)`` is its ± (95 %).
        """
        steps = self.shown_steps()
        errors = [error(step) for step in steps]
        times = f"in at most {self.max_participations:,} steps"
        if self.max_participations > 1:
            times += f", at least {self.min_separation:,} apart"
        facts = [
            ("promises", f"{self.guarantee}, once for all steps"),
            ("horizon", "not known" if self.horizon is None else f"{self.horizon:,} steps"),
            ("one person's values", times),
            ("error (95 %)", f"± {errors[0]:.3g} after the first step, ± {errors[-1]:.3g} after step {steps[-1]:,}"),
        ]
        picture = chart.lines([("", steps, errors)], title=f"± of the {released} (95 %)", x_label="step")
        return markup.block(markup.heading(title), markup.facts(facts), markup.picture(picture))

    def shown_steps(self, most: int = 61) -> list[int]:
        """Return at most ``most`` steps from the first to the last of the horizon, for a chart.

        >>> StreamPlan(horizon=100, budget=PureDP(1)).shown_steps(4)
        [1, 34, 67, 100]
        """
        last = _STEPS_SHOWN if self.horizon is None else self.horizon
        if last <= most:
            return [*range(1, last + 1)]
        return sorted({1 + round((last - 1) * i / (most - 1)) for i in range(most)})

    # records

    def record(self) -> dict[str, Any]:
        """Return the plan as plain values for JSON; it is public. Together with the key it determines the noise."""
        return {
            "version": 1,
            "horizon": self.horizon,
            "budget": [type(self.budget).__name__, *(str(number) for number in self.budget.exact)],
            "max_participations": self.max_participations,
            "min_separation": self.min_separation,
            "sensitivity": str(arguments.sensitivity(self.sensitivity)),
            "series": self.series,
            "factorization": self.factorization,
            "buffers": self.buffers,
            "bands": self.bands,
            "window": self.window,
            "lattice_bits": self.lattice_bits,
            "segments": [
                {"first": item.first, "scale": item.scale.hex(), "filter": item.filter.record()}
                for item in self.segments
            ],
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> StreamPlan:
        """Return the plan from :meth:`record`, with the recorded filters and scales.

        >>> plan = StreamPlan(horizon=7, budget=PureDP(1))
        >>> StreamPlan.from_record(plan.record()).variance(7) == plan.variance(7)
        True
        """
        if record.get("version") != 1:
            raise InvalidArgument(
                "record", "version 1", "a record of a different version", "use the version of dither that wrote it"
            )
        kinds: dict[str, Any] = {"ApproxDP": ApproxDP, "ZCDP": ZCDP, "PureDP": PureDP}
        name, *numbers = record["budget"]
        return cls(
            horizon=record["horizon"],
            budget=kinds[name](*map(Fraction, numbers)),
            max_participations=record["max_participations"],
            min_separation=record["min_separation"],
            sensitivity=Fraction(record["sensitivity"]),
            series=record["series"],
            factorization=record["factorization"],
            buffers=record["buffers"],
            bands=record["bands"],
            window=record["window"],
            recorded=(
                record["lattice_bits"],
                tuple(
                    Segment(item["first"], from_record(item["filter"]), float.fromhex(item["scale"]))
                    for item in record["segments"]
                ),
            ),
        )


def _blocks(steps: int) -> Iterator[int]:
    """Yield positive sizes of at most ``_BLOCK`` that add up to ``steps``, so that memory is bounded."""
    while steps:
        yield min(steps, _BLOCK)
        steps -= min(steps, _BLOCK)
