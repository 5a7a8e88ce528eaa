"""Exact noise from secure bits: sources, noise laws on lattices, integer samplers, races.

>>> from dither.randomness import SYSTEM, discrete_laplace
>>> discrete_laplace(10.0, 5, SYSTEM).shape
(5,)
"""

from dither.public_module import name_by_home as _name_by_home
from dither.randomness.discrete import (
    MAX_SCALE,
    MIN_SCALE,
    SPLIT_SCALE,
    bernoulli,
    bernoulli_exp,
    discrete_gaussian,
    discrete_gaussian_one,
    discrete_laplace,
    discrete_laplace_one,
    geometric,
    trial,
    trials,
    uniform_integer,
    uniform_integers,
)
from dither.randomness.lattice import (
    BLOCK,
    draw_one,
    integer_steps,
    round_nearest,
    round_nearest_all,
    spacing,
)
from dither.randomness.laws import Exponential, Gumbel, HeavyTail, Law, Normal, Staircase, Student, truncated_tail
from dither.randomness.race import Variate, exponential_race, noisy_top_k
from dither.randomness.source import (
    SYSTEM,
    LazyUniform,
    SeededSource,
    Source,
    SystemSource,
    drawn_from,
    is_secure,
    is_seeded,
    mark,
    resolve,
)

__all__ = [
    "BLOCK",
    "MAX_SCALE",
    "MIN_SCALE",
    "SPLIT_SCALE",
    "SYSTEM",
    "Exponential",
    "Gumbel",
    "HeavyTail",
    "Law",
    "LazyUniform",
    "Normal",
    "SeededSource",
    "Source",
    "Staircase",
    "Student",
    "SystemSource",
    "Variate",
    "bernoulli",
    "bernoulli_exp",
    "discrete_gaussian",
    "discrete_gaussian_one",
    "discrete_laplace",
    "discrete_laplace_one",
    "draw_one",
    "drawn_from",
    "exponential_race",
    "geometric",
    "integer_steps",
    "is_secure",
    "is_seeded",
    "mark",
    "noisy_top_k",
    "resolve",
    "round_nearest",
    "round_nearest_all",
    "spacing",
    "trial",
    "trials",
    "truncated_tail",
    "uniform_integer",
    "uniform_integers",
]

__dir__ = _name_by_home(__name__, __all__, globals())
