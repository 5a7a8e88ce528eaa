"""Privacy accounting: the guarantee of a workload, and the noise that a guarantee needs.

A mechanism describes itself by an event, events make a workload, accountants add it up:

>>> import dither as dp
>>> from dither.accounting import best_of
>>> workload = 10 * dp.Gaussian(sensitivity=1, rho=0.01).event + dp.Exponential(sensitivity=1, epsilon=0.2).event
>>> result = best_of(workload, delta=1e-6)
>>> result.accountant, round(result.guarantee.epsilon, 4)
('renyi', 2.1962)
"""

from dither.accounting.accountants import (
    ACCOUNTANTS,
    Accountant,
    Best,
    advanced,
    basic,
    best_of,
    pld,
    renyi,
    zcdp,
)
from dither.accounting.bridge import to_dp_event
from dither.accounting.calibration import Calibration, calibrate, epsilon_for_error, split
from dither.accounting.composition import privacy_curve
from dither.accounting.events import (
    Approximate,
    BoundedRange,
    Concentrated,
    DiscreteLaplaceNoise,
    Event,
    GaussianNoise,
    LaplaceNoise,
    Parallel,
    PostProcessed,
    Pure,
    ResponseReport,
    Sequential,
    pure_delta,
)
from dither.accounting.gaussian import gaussian_delta, gaussian_epsilon, gaussian_ratio
from dither.accounting.sampling import PoissonSampled, amplify, post_process
from dither.accounting.shuffling import Shuffled, shuffled
from dither.accounting.smooth import (
    POWERS,
    gaussian_smooth_delta,
    heavy_smooth_loss,
    laplace_smooth_delta,
    smooth_calibration,
    smooth_scale,
    widest_beta,
)
from dither.public_module import name_by_home as _name_by_home

__all__ = [
    "ACCOUNTANTS",
    "POWERS",
    "Accountant",
    "Approximate",
    "Best",
    "BoundedRange",
    "Calibration",
    "Concentrated",
    "DiscreteLaplaceNoise",
    "Event",
    "GaussianNoise",
    "LaplaceNoise",
    "Parallel",
    "PoissonSampled",
    "PostProcessed",
    "Pure",
    "ResponseReport",
    "Sequential",
    "Shuffled",
    "advanced",
    "amplify",
    "basic",
    "best_of",
    "calibrate",
    "epsilon_for_error",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_ratio",
    "gaussian_smooth_delta",
    "heavy_smooth_loss",
    "laplace_smooth_delta",
    "pld",
    "post_process",
    "privacy_curve",
    "pure_delta",
    "renyi",
    "shuffled",
    "smooth_calibration",
    "smooth_scale",
    "split",
    "to_dp_event",
    "widest_beta",
    "zcdp",
]

__dir__ = _name_by_home(__name__, __all__, globals())
