"""placeholder"""

from dither.course.mixed_noise import theorem_10
from dither.course.private_descent import TheoremSGD, private_bound

__all__ = ["TheoremSGD", "private_bound", "theorem_10"]
