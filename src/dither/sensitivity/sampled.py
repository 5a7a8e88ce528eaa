"""A sensitivity estimated from a public distribution of the data, for statistics without a finite global one.

*Statement.* Let f be a statistic of n records, and G the distance of its values on two neighbors whose records are
independent draws of a distribution P. Of ``trials`` independent copies of G, :func:`sampled` returns the largest. The
copy of G that belongs to the actual data and one neighbor of theirs, if these are draws of P as well, exceeds it with
probability at most ``1 / (trials + 1)``. Laplace noise of scale ``sampled / epsilon`` then has random differential
privacy (Hall, Rinaldo and Wasserman 2013) with gamma = 1 / (trials + 1): with probability 1 - gamma, over the data, the
neighbor and the trials, the privacy loss is at most epsilon.

*Why.* The ``trials + 1`` copies are exchangeable; each is strictly the largest with the same probability, and at most
one of them is.

*What it does not guarantee.* This is not differential privacy. It says nothing about data that are not draws of P, nor
about a record that is not: an outlier, or a person whom an attacker singles out, may lose everything. gamma is not
delta: where the event fails there is no bound on the loss, and it holds for one pair of neighbors, not for all of them
at once. It must be computed from P, or from public data, never from the data to be protected.

The course's document 2 names a *general sensitivity* as another way around a global sensitivity that is too large, and
does not define it. This is the construction of Rubinstein and Alda (2017), whose bound is larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dither import arguments
from dither.errors import InvalidArgument
from dither.neighbors import AddRemove, Neighbors, relation


def sampled(
    statistic: Callable[[Any], float], draw: Callable[[int], Any], *, n: int, gamma: float, neighbors: Neighbors
) -> float:
    """Return a bound on the change of a statistic that random neighbors exceed with probability at most ``gamma``.

    Parameters
    ----------
    statistic
        Takes an array of records, returns a number.
    draw
        Takes a number of records, returns an array of as many independent draws from a *public* distribution.
    n
        The number of records; under ``AddRemove`` that of the larger data set.
    gamma
        How likely random neighbors are to differ by more; ``1/gamma - 1`` pairs of data sets are drawn.
    neighbors
        The relation.

    Examples
    --------
    >>> import dither as dp
    >>> incomes = np.random.default_rng(1)
    >>> bound = sampled(np.mean, lambda k: incomes.pareto(3, k) + 1, n=1000, gamma=0.01, neighbors=dp.ReplaceOne)
    >>> 0.002 < bound < 0.2     # the global sensitivity is infinite
    True
    """
    size = arguments.whole(n, "n", 2 if relation(neighbors) is AddRemove else 1)
    if not 0 < gamma < 1:
        raise InvalidArgument("gamma", "a number between 0 and 1", gamma, "pass gamma=0.01, for example")
    largest = 0.0
    for _ in range(max(1, math.ceil(1 / arguments.positive(gamma, "gamma")) - 1)):
        if neighbors is AddRemove:
            records = draw(size)
            change = abs(float(statistic(records)) - float(statistic(records[:-1])))
        else:
            records = draw(size + 1)
            replaced = records[np.append(np.arange(size - 1), size)]
            change = abs(float(statistic(records[:-1])) - float(statistic(replaced)))
        if not math.isfinite(change):
            raise InvalidArgument(
                "statistic", "a finite number for every sample", "NaN or infinity", "bound the statistic first"
            )
        largest = max(largest, change)
    return largest
