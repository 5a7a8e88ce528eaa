"""A durable ledger of privacy budgets: what each dataset, analyst and person may spend and has spent.

>>> import tempfile, dither as dp
>>> folder = tempfile.TemporaryDirectory()
>>> ledger = dp.ledger.open(folder.name + "/budget.sqlite")
>>> _ = ledger.create("visits", limit=dp.PureDP(1))
>>> answer = ledger.release("visits", dp.PureDP(0.4), lambda: dp.Laplace(1, 0.4).release(120), key="june")
>>> again = ledger.release("visits", dp.PureDP(0.4), lambda: dp.Laplace(1, 0.4).release(120), key="june")
>>> again.value == answer.value, again.replayed, ledger.left("visits")
(True, True, PureDP(0.6))
>>> with ledger.scope("visits"):
...     _ = dp.Laplace(1, 0.6).release(120)
>>> ledger.left("visits") is None and ledger.verify().entries
4
>>> ledger.close(); folder.cleanup()
"""

from __future__ import annotations

from dither.ledger.accounts import Account
from dither.ledger.chain import Entry, Receipt
from dither.ledger.charging import Charge
from dither.ledger.ledger import Ledger, Released, Verified, open
from dither.public_module import name_by_home as _name_by_home

__all__ = ["Account", "Charge", "Entry", "Ledger", "Receipt", "Released", "Verified", "open"]

__dir__ = _name_by_home(__name__, __all__, globals())
