"""Books that only look on: what was charged, and whether the noise was private."""

from __future__ import annotations

from dither.budget_hooks import charging_to


def charged(fit):
    """What a fit charges to whoever keeps the books."""
    spent = []

    class Keeper:
        def spend(self, what, compute, *, private, recordable=True):
            spent.append((what.guarantee, private))
            return compute()

    with charging_to(Keeper()):
        fit()
    return spent
