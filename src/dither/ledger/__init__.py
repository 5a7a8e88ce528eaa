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

from os import PathLike

from dither.ledger.accounts import Account
from dither.ledger.chain import Entry, Receipt
from dither.ledger.charging import Charge
from dither.ledger.ledger import Ledger, Released, Verified
from dither.public_module import name_by_home as _name_by_home

__all__ = ["Account", "Charge", "Entry", "Ledger", "Receipt", "Released", "Verified", "open"]

__dir__ = _name_by_home(__name__, __all__, globals())


def open(
    place: str | PathLike[str],
    *,
    secret: bytes | None = None,
    receipt: Receipt | None = None,
    create: bool = True,
    read_only: bool = False,
) -> Ledger:
    """Open a ledger, or create one.

    Parameters
    ----------
    place
        A file (SQLite), or ``postgresql://…``.
    secret
        32 bytes under which keys of people are hashed; by default from a file beside the ledger, or the environment
        (see :mod:`dither.ledger.files`).
    receipt
        The last receipt the caller has kept: a ledger that does not hold it is refused.
    create
        Whether to create a ledger where there is none.
    read_only
        Whether to read only: nothing is created or written, so that a folder without write permission will do.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, open(folder + "/budget.sqlite") as ledger:
    ...     ledger.accounts()
    []
    """
    ledger = Ledger(place, secret=secret, create=create, read_only=read_only)
    try:
        if receipt is not None:
            ledger.expect(receipt)
    except BaseException:
        ledger.close()
        raise
    return ledger
