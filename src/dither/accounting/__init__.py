"""How much noise a guarantee needs, and what noise guarantees."""

from dither.accounting.gaussian import gaussian_delta, gaussian_epsilon, gaussian_ratio
from dither.accounting.pure import pure_delta
from dither.accounting.smooth import (
    POWERS,
    gaussian_smooth_delta,
    heavy_smooth_loss,
    laplace_smooth_delta,
    smooth_calibration,
    smooth_scale,
)

__all__ = [
    "POWERS",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_ratio",
    "gaussian_smooth_delta",
    "heavy_smooth_loss",
    "laplace_smooth_delta",
    "pure_delta",
    "smooth_calibration",
    "smooth_scale",
]
