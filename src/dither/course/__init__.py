"""The five lecture documents as a course in which everything runs: every named result, by its number.

:func:`results` lists the definitions, theorems, lemmas, examples and equations of the documents, each with what is true
of it (some are wrong as printed), with the part of dither that implements it, and with an example. :func:`find` looks
one up. What only a lecture needs is here too: :func:`theorem_10`, which is false, and the private descent of theorems
36 and 37 (:class:`TheoremSGD`, :func:`private_bound`).

>>> import dither as dp
>>> [result] = dp.course.find("theorem 10")
>>> result.verdict, result.implementation.__name__
('fails', 'theorem_10')
>>> len(dp.course.results(document=2)) > 37
True
"""

from __future__ import annotations

import typing as _typing

from dither.course.documents import Result, Results, find, results
from dither.course.mixed_noise import theorem_10
from dither.public_module import name_by_home as _name_by_home

if _typing.TYPE_CHECKING:
    from dither.course.private_descent import TheoremSGD, private_bound

__all__ = ["Result", "Results", "TheoremSGD", "find", "private_bound", "results", "theorem_10"]

__dir__ = _name_by_home(__name__, __all__, globals())


def __getattr__(name: str) -> _typing.Any:
    """Return a name of private descent, whose module is loaded on first use: it alone here needs scikit-learn."""
    if name not in ("TheoremSGD", "private_bound"):
        raise AttributeError(f"module 'dither.course' has no attribute {name!r}")
    from dither.course import private_descent

    return getattr(private_descent, name)
