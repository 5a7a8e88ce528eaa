"""How much noise a guarantee needs, and what noise guarantees."""

from dither.accounting.gaussian import gaussian_delta, gaussian_epsilon, gaussian_ratio

__all__ = ["gaussian_delta", "gaussian_epsilon", "gaussian_ratio"]
