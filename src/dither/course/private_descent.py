"""The private stochastic gradient descent of Theorem 36, with the conditions that the theorem leaves out.

*Statement.* Step h draws one of the n records at random and sets ``beta[h] = beta[h-1] - gamma[h-1] (g + theta[h] Z)``,
g its gradient, Z standard Laplace in every coordinate, and ``theta[h] = (1 / a[h]) (sum of gamma[0..h-2] / gamma[h-1] +
1) Delta / epsilon``. Then, for one record replaced by another, the *single* iterate ``beta[h]`` is ``epsilon
a[h]``-DP.

*Why.* Take the same indices and the same noise in all steps before h for two neighbors. The distance of
their iterates grows by at most ``gamma[j] Delta`` in step j, if Delta bounds the l1 distance of any two gradients,
*also at different beta*: gradients are clipped to l1 norm C here, so Delta = 2C. Before the noise of step h the
distance is at most ``Delta sum of gamma[0..h-1]``, which is ``epsilon a[h]`` times the scale ``gamma[h-1] theta[h]`` of
that noise.

So the noise of the last step alone protects the last iterate, and Theorem 36 is about single iterates only. Two costs
follow, and ``guarantee`` is the smaller one:

* *By the theorem*, with ``a[h] = h^kappa``, the last of N iterates costs ``epsilon N^kappa``. Costs of single iterates
  do not add up by themselves, as their noise is shared; ``epsilon sum of a[h]`` is the price that document 2 leaves
  for the average of Theorem 37, which is made of all iterates.
* *By composition*: given the iterates before it, iterate h is one Laplace release of a gradient; the distance of two
  gradients is at most 2C, so it costs ``2C / theta[h] = epsilon a[h] gamma[h-1] / (sum of gamma[0..h-1])``. These add
  up to ``composed_epsilon``, for all iterates together, hence for the last one and for the average, too. Each term is
  at most ``epsilon a[h]``, so for the average the composed cost is always the smaller one. For the last iterate it is
  the smaller one for many steps if ``kappa > 1 - rho``: it is then about ``(1 - rho) / kappa`` times the theorem's.

That the drawn record is hidden would lower the composed cost further where n is large; this is not counted.

Everything is computed in whole steps of a lattice, so the distances above are exact and no float leaks.

>>> private = TheoremSGD(epsilon=0.1, steps=100, clip=1.0, kappa=0.5)
>>> private.guarantee
PureDP(1)
>>> average = TheoremSGD(epsilon=1, steps=100, clip=1.0, kappa=0.76, release="average")
>>> round(average.theorem_epsilon, 1), round(average.guarantee.epsilon, 1)
(1864.8, 25.2)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dither import arguments
from dither.budget_hooks import covered, spends
from dither.errors import InvalidArgument, InvalidData
from dither.exact import up
from dither.guarantees import PureDP
from dither.learn.gd import Schedule, read_records, start_of, utility_bound
from dither.learn.losses import Floats, Loss
from dither.mechanisms import Laplace
from dither.public_module import public_in
from dither.randomness import MAX_SCALE, Source, resolve, uniform_integer

_FINE = 20
"""The longest gradient of the smallest step is at least 2^20 steps of the lattice."""

_LARGEST = 2.0**62
_SCHEDULE = Schedule(1.0, rho=0.5)


@public_in("dither.course")
@dataclass(frozen=True)
class TheoremSGD:
    """Private SGD with batches of one, Laplace noise and steps ``gamma[h] = first (1 + h)^-rho``, for n public.

    Parameters
    ----------
    epsilon, kappa
        The iterate after h steps costs ``epsilon h^kappa`` by the theorem.
    steps, schedule
        How many steps N, and their sizes.
    clip
        The largest l1 norm C of a gradient; longer ones are shortened.
    release
        ``"last"``: beta[N]. ``"average"``: the weighted average of beta[0], ..., beta[N-1].

    Examples
    --------
    >>> from dither.learn.losses import Squared
    >>> sgd = TheoremSGD(epsilon=1, steps=50, clip=1.0, schedule=Schedule(0.1, rho=0.5))
    >>> sgd.run(Squared(), np.ones((100, 1)), np.full(100, 0.5), start=0.0).shape
    (1,)
    """

    epsilon: float
    steps: int
    clip: float
    schedule: Schedule = _SCHEDULE
    kappa: float = 0.0
    release: Literal["last", "average"] = "last"

    def __post_init__(self) -> None:
        """Refuse arguments out of range, and steps whose noise would be too large or too small for the lattice."""
        arguments.epsilon(self.epsilon)
        arguments.positive(self.clip, "clip")
        if not (math.isfinite(self.kappa) and 0 <= self.kappa <= 10):
            raise InvalidArgument("kappa", "a number from 0 to 10", self.kappa, "pass kappa=0")
        if self.release not in ("last", "average"):
            raise InvalidArgument("release", "'last' or 'average'", repr(self.release), "leave it out")
        if arguments.whole(self.steps, "steps") < 2 and self.release == "average":
            raise InvalidArgument("steps", "at least 2, for an average", self.steps, "pass release='last'")
        arguments.epsilon(self._epsilons[-1])
        arguments.epsilon(min(self._stated, self._composed))
        if self._sensitivities[-1] > _LARGEST / 2**20:
            raise InvalidArgument(
                "steps", "steps of more similar sizes", f"rho={self.schedule.rho:g}", "pass a smaller rho"
            )
        # noise beyond is on a coarser lattice, whose rounding would move neighbors' iterates farther from each other
        scales = (distance / epsilon for distance, epsilon in zip(self._sensitivities, self._epsilons, strict=True))
        if max(scales) > MAX_SCALE / 2:
            raise InvalidArgument(
                "epsilon", f"a larger one, for {self.steps} steps", self.epsilon, "pass a larger epsilon or fewer steps"
            )

    @cached_property
    def _epsilons(self) -> list[Fraction]:
        """Return ``epsilon a[h]`` for h = 1, ..., N, exactly, where a[h] is the float nearest to h^kappa."""
        epsilon = arguments.epsilon(self.epsilon)
        return [epsilon * Fraction(float(h) ** self.kappa) for h in range(1, self.steps + 1)]

    @cached_property
    def _step(self) -> float:
        """Return the step of the lattice on which all is computed, a power of two."""
        return 2.0 ** (math.floor(math.log2(self.clip * float(self.schedule.steps(self.steps)[-1]))) - _FINE)

    @cached_property
    def _longest_moves(self) -> list[int]:
        """Return ``gamma[h] C``, the longest move of step h = 0, ..., N-1, in steps of the lattice, rounded down."""
        return [math.floor(gamma * self.clip / self._step) for gamma in self.schedule.steps(self.steps).tolist()]

    @cached_property
    def _sensitivities(self) -> list[int]:
        """Return the largest l1 distance of neighbors' iterates before the noise of step h = 1, ..., N is added.

        It is twice the sum of the moves up to that step, in steps of the lattice.
        """
        return [2 * total for total in np.cumsum(np.array(self._longest_moves, dtype=object)).tolist()]

    @property
    def guarantee(self) -> PureDP:
        """Return the guarantee for one record replaced: the smaller of the theorem's cost and the composed one."""
        return PureDP(min(self._stated, self._composed))

    @property
    def theorem_epsilon(self) -> float:
        """Return the cost by Theorem 36: ``epsilon N^kappa`` for the last iterate, and ``epsilon (1 + 2^kappa + ... +
        (N-1)^kappa)`` for the average.

        >>> round(TheoremSGD(epsilon=1, steps=100, clip=1.0, kappa=0.76).theorem_epsilon, 1)
        33.1
        """
        return up(self._stated)

    @property
    def composed_epsilon(self) -> float:
        """Return the cost of publishing every iterate that the release is a function of, each given those before it:
        ``sum of 2C / theta[h]``, h = 1, ..., N for the last iterate, and to N-1 for the average.

        >>> round(TheoremSGD(epsilon=1, steps=100, clip=1.0, kappa=0.76).composed_epsilon, 1)
        25.4
        """
        return up(self._composed)

    @cached_property
    def _stated(self) -> Fraction:
        """Return the cost of the release by the theorem: that of the last iterate, or the sum over those averaged."""
        return self._epsilons[-1] if self.release == "last" else sum(self._epsilons[:-1], Fraction(0))

    @cached_property
    def _composed(self) -> Fraction:
        """Return the sum of the losses of all published iterates, each rounded up to a multiple of 2^-80."""
        published = self.steps if self.release == "last" else self.steps - 1
        parts = zip(self._epsilons[:published], self._longest_moves, self._sensitivities, strict=False)
        return (
            Fraction(sum(math.ceil(epsilon * 2 * longest / distance * 2**80) for epsilon, longest, distance in parts))
            / 2**80
        )

    @property
    def noise(self) -> Floats:
        """Return ``theta[1], ..., theta[N]``, the scales of the noise in the gradients.

        >>> TheoremSGD(epsilon=2, steps=3, clip=1.0, schedule=Schedule(0.5)).noise
        array([1., 2., 3.])
        """
        gammas = self.schedule.steps(self.steps)
        epsilons = np.array([float(epsilon) for epsilon in self._epsilons])
        return np.asarray(np.cumsum(gammas) / gammas * 2 * self.clip / epsilons)

    @spends
    def run(self, loss: Loss, X: Floats, y: Floats, start: ArrayLike, *, source: Source | None = None) -> Floats:
        """Minimize the mean loss by private descent, and return the last or the average iterate, as ``release`` says.

        Nothing else is returned, since the guarantee of the last iterate does not cover the others. Each step takes the
        gradient of one record, drawn at random, clips it, and adds Laplace noise.

        Parameters
        ----------
        loss
            The loss of a record. A penalty counts as part of every record's loss, and is clipped with it.
        X, y
            The records, one row each, and their targets. How many there are is public.
        start
            The iterate before the first step.
        source
            Where random words come from; by default the system.
        """
        words = resolve(source)
        first = np.rint(start_of(start) / self._step)
        rows, targets = read_records(X, y, first)
        if len(rows) == 0:
            raise InvalidData("X, y", "at least one row", "none", "pass some")
        if np.abs(first).max() > _LARGEST / 2**20:
            raise InvalidArgument(
                "start", "a start nearer to zero", "one too far away for the lattice", "start from zeros"
            )
        shape, whole = first.shape, [int(coordinate) for coordinate in first.ravel()]
        gammas = self.schedule.steps(self.steps)
        total = np.zeros(shape)
        for h in range(self.steps):
            beta = np.array([coordinate * self._step for coordinate in whole]).reshape(shape)
            total += gammas[h] * beta
            if self.release == "average" and h == self.steps - 1:
                break  # the average needs no beta[N]
            i = uniform_integer(len(rows), words)
            with np.errstate(over="ignore", invalid="ignore"):  # a warning would tell of a record
                gradient = loss.gradient(beta, rows[i : i + 1], targets[i : i + 1])
            moves = self._move(h, gradient).ravel().tolist()
            moved = [coordinate - move for coordinate, move in zip(whole, moves, strict=True)]
            noise = Laplace(sensitivity=self._sensitivities[h], epsilon=cast(float, self._epsilons[h]))
            whole = covered(noise.release)(moved, source=words)
        if self.release == "average":
            return np.asarray(total / gammas.sum())
        return np.array([coordinate * self._step for coordinate in whole]).reshape(shape)

    def _move(self, h: int, gradient: Floats) -> NDArray[np.int64]:
        """Return gamma[h] times the clipped gradient in lattice steps, cut toward 0: at most ``_longest_moves[h]``.

        The margin is more than the rounding of the sum and the products; cutting only makes it shorter.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            length = float(np.abs(gradient).sum())
            scaled = gradient * (self._longest_moves[h] * (1 - (gradient.size + 8) * 2.0**-52) / max(length, self.clip))
        scaled[~np.isfinite(scaled)] = 0.0
        return np.trunc(scaled).astype(np.int64)


def private_bound(
    distance_squared: float, sgd: TheoremSGD, *, coordinates: int, printed: bool = True
) -> tuple[Floats, Floats, Floats]:
    """Return the terms A1, A2, A3 of Theorem 37, whose sum bounds the mean of ``f(average) - f*`` after each step.

    Parameters
    ----------
    distance_squared
        ``D^2``, the squared l2 distance of the start to the optimum.
    sgd
        The descent: its clip ``C``, its step sizes ``gamma`` and the scales ``theta`` of its Laplace noise.
    coordinates
        ``p``, the number of coordinates of an iterate.
    printed
        True: the terms in the form of equation (11) of the course's document 2, each at least that of the statement
        below. False: those of the statement.

    Notes
    -----
    *Statement.* ``A1 = D^2 / (2 sum gamma)``, ``A2 = (C^2 / 2) sum gamma^2 / sum gamma``, ``A3 = p sum gamma^2 theta^2
    / sum gamma``, if every loss is a convex function of one linear combination of the coordinates, and f is the mean of
    the *clipped* losses, whose gradients are the clipped ones, at most C long: beyond the clip they go on as lines. The
    noise in step j is ``theta[j+1]``; document 2 writes ``theta[j]``, and theta[0] is not defined.

    *Why.* In a step ``E |b - b*|^2`` falls by ``2 gamma (f(b) - f*)``, less ``gamma^2`` times the mean squared length
    of gradient and noise, at most ``C^2 + 2 p theta^2``. Sum over the steps and use convexity.

    Equation (11) has ``D^2 / sum gamma``, and one constant in its other two terms: here the smallest for which they
    follow from the statement, ``max(C^2 / 2, p)``.

    Examples
    --------
    >>> sgd = TheoremSGD(epsilon=1, steps=4, clip=1.0, schedule=Schedule(0.5))
    >>> A1, A2, A3 = private_bound(1.0, sgd, coordinates=1)
    >>> A1, A2, A3
    (array([2.        , 1.        , 0.66666667, 0.5       ]),
     array([0.5, 0.5, 0.5, 0.5]),
     array([ 2.        ,  5.        ,  9.33333333, 15.        ]))
    >>> [float(term[-1]) for term in private_bound(1.0, sgd, coordinates=1, printed=False)]
    [0.25, 0.25, 15.0]
    """
    gammas, count = sgd.schedule.steps(sgd.steps), float(arguments.whole(coordinates, "coordinates"))
    half = sgd.clip**2 / 2
    if printed:
        constants = (distance_squared, max(half, count), max(half, count))
    else:
        constants = (distance_squared / 2, half, count)
    first = utility_bound(constants[0], gammas)
    second = utility_bound(0.0, gammas, constant=constants[1])
    third = utility_bound(0.0, gammas, noise=sgd.noise, per_noise=constants[2])
    return first, second, third
