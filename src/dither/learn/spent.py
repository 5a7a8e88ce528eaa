"""The composed cost of several fits; ``guarantee_`` is that of one of them.

scikit-learn's searches and cross-validation fit clones of an estimator, many times, and each fit costs what it states.
With a ledger scope open each is charged. Elsewhere nobody adds them up, so an estimator remembers, together with its
clones, what was fitted (:attr:`~dither.learn.base.PrivateEstimator.total_guarantee`), and warns once when a second fit
is paid for by nobody. :func:`total_spent` adds up all fits in a block, of whichever estimators.

It is counted as if all fits were to the same records, each of them once: costs add up. Fits in other processes, or in
threads started in the block (``n_jobs`` above 1), are not seen by it. *A sample with replacement*, which is the default
of ``BaggingClassifier``, gives a record to one fit several times, and that fit then costs the person so many times
what it states. No fit can tell, since equal rows may be different people: pass ``bootstrap=False``.

>>> from dither.learn import Mean, Ridge
>>> X = np.linspace(0, 1, 50)[:, np.newaxis]
>>> with total_spent() as total:
...     _ = Mean(epsilon=1, bounds=(0, 1)).fit(X)
...     _ = Ridge(epsilon=0.5, bounds=(0, 1), label_bounds=(0, 1)).fit(X, X[:, 0])
>>> total.fits, total.guarantee
(2, ApproxDP(1.5, 2e-05))
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from warnings import warn

import numpy as np  # noqa: F401  # for the example

from dither.errors import InvalidArgument, NotPrivate
from dither.guarantees import Guarantee


class PrivacyWarning(UserWarning):
    """Something costs more privacy than a single number shows.

    >>> issubclass(PrivacyWarning, UserWarning)
    True
    """


@dataclass
class Total:
    """How many fits there were, and what they cost together; None where there was none.

    >>> Total().fits
    0
    """

    fits: int = 0
    warned: bool = False
    costs: list[Guarantee] = field(default_factory=list, repr=False)

    def add(self, guarantee: Guarantee) -> None:
        """Count one fit."""
        self.fits += 1
        self.costs.append(guarantee)

    @property
    def guarantee(self) -> Guarantee | None:
        """The sum of all fits; refused, when it is read, where no guarantee can state so much."""
        try:
            return sum(self.costs[1:], self.costs[0]) if self.costs else None
        except InvalidArgument:
            pass
        raise NotPrivate(
            "total",
            "a total of at most epsilon = 1e+06 and delta below 1",
            f"{self.fits} fits that cost more",
            "fit fewer times, or with a smaller epsilon",
        )


_OPEN: ContextVar[tuple[Total, ...]] = ContextVar("dither_totals", default=())
_LINEAGE = "_lineage"


@contextmanager
def total_spent() -> Iterator[Total]:
    """Add up what all fits in the block cost, and state it: nothing is charged, and nothing refused.

    >>> with total_spent() as total:
    ...     pass
    >>> total.guarantee
    """
    total = Total()
    token = _OPEN.set((*_OPEN.get(), total))
    try:
        yield total
    finally:
        _OPEN.reset(token)


def shared_lineage(estimator: Any, clone: Any) -> None:
    """Let a clone add to what its original counts."""
    setattr(clone, _LINEAGE, vars(estimator).setdefault(_LINEAGE, Total()))


def count_fit(estimator: Any, guarantee: Guarantee, *, charged: bool) -> None:
    """Count a fit; warn, once, if it is not the first of its lineage and nobody adds them up."""
    lineage: Total = vars(estimator).setdefault(_LINEAGE, Total())
    lineage.add(guarantee)
    for total in _OPEN.get():
        total.add(guarantee)
    if lineage.fits > 1 and not (charged or _OPEN.get() or lineage.warned):
        lineage.warned = True
        warn(
            f"{type(estimator).__name__} and its clones are being fitted again, and no ledger scope is open. Each fit "
            f"costs {guarantee}, which is all that guarantee_ states; on the same records they add up. See "
            "total_guarantee, or fit inside 'with dither.learn.total_spent() as total:' or a ledger scope.",
            PrivacyWarning,
            stacklevel=5,
        )


def total_of(estimator: Any) -> Guarantee | None:
    """What an estimator and its clones have cost so far."""
    lineage: Total | None = vars(estimator).get(_LINEAGE)
    return None if lineage is None else lineage.guarantee
