"""Evidence for privacy guarantees: proofs, statistical tests and data-flow checks.

* :func:`certify` proves the worst-case privacy loss of a mechanism from the distribution that it samples, with
  rigorous bounds.
* :func:`measure` gives a statistical lower bound on the epsilon of any code, from running it on two neighboring data
  sets; :func:`search` looks for the worst pair, by default among :func:`standard_neighbors`.
* :func:`replay` checks that the data affect the result of a pipeline only through its mechanisms.
* :func:`audit` applies all of these to everything that is built in.

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
from dither.audit.blackbox.search import Pair, Search, multi_row_neighbors, search, standard_neighbors
from dither.audit.dataflow.replay import Release, Replay, replay
from dither.audit.proof.certificate import Certificate
from dither.audit.proof.certify import certify
from dither.audit.suite.run import Audit, Row, audit
from dither.public_module import name_by_home as _name_by_home

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
    "certify",
    "measure",
    "multi_row_neighbors",
    "replay",
    "search",
    "standard_neighbors",
]

__dir__ = _name_by_home(__name__, __all__, globals())
