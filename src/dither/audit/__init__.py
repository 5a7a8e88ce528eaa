"""Evidence: what a mechanism can lose, proved, measured and replayed.

* :func:`certify`: the worst-case loss of a mechanism, from the law that it draws, with rigorous bounds.
* :func:`measure`: a lower bound on the epsilon of any code, from running it on two neighbours; :func:`search` looks for
  the neighbours.
* :func:`replay`: whether anything of the data goes round the mechanisms of a pipeline.
* :func:`audit`: all of these, on everything that is built in.

>>> import dither as dp
>>> dp.audit.certify(dp.Laplace(sensitivity=1, epsilon=1)).holds
True
>>> half = lambda x: dp.Laplace(sensitivity=0.5, epsilon=1).release(x)
>>> dp.audit.measure(half, 0.0, 1.0, claim=1).refuted
True
>>> dp.audit.replay(lambda x: dp.Laplace(sensitivity=1, epsilon=1).release(len(x)), [1, 2, 3], [1]).passed
False
"""

from __future__ import annotations

from dither.audit.blackbox.measure import Measurement, measure
from dither.audit.blackbox.neighbors import Pair, catalogue, people
from dither.audit.blackbox.search import Search, search
from dither.audit.dataflow.replay import Release, Replay, replay
from dither.audit.proof.certificate import Certificate
from dither.audit.proof.certify import certify
from dither.audit.suite.run import Audit, Row, audit
from dither.homes import name_by_home as _name_by_home

__all__ = [
    "Audit",
    "Certificate",
    "Measurement",
    "Pair",
    "Release",
    "Replay",
    "Row",
    "Search",
    "audit",
    "catalogue",
    "certify",
    "measure",
    "people",
    "replay",
    "search",
]

_name_by_home(__name__, __all__, globals())
