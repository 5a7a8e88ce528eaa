"""Repeated reports of one person: what they cost, answers that are remembered, and a budget that does not reset.

Reports of one person compose. A system that allows epsilon every day and forgets what was spent promises epsilon for a
day and 365 epsilon for a year: that was the criticism of Apple's daily reset (Tang et al. 2017). Two things help, on
the device, where the true value is:

*A budget for life*. :class:`DeviceBudget` keeps an account in a ledger file: every report is charged before it is
drawn, and the one that would go too far is refused, on whatever day.

*Remembered answers* (Erlingsson, Pihur and Korolova 2014, "permanent randomized response"). The report of a value is
drawn once; whenever the value is the same, the same bytes are sent, at no cost. What that gives and what it does not:

* For two histories of values that change at the same times, to and from the same of m values, the laws of all reports
  together differ by at most e^(m epsilon): epsilon for somebody whose value never changes. *Why.* All reports are a
  function of m independent ones, of epsilon each.
* *When the value changes is not protected at all*: different bytes are sent. Nor is it hidden that two batches come
  from one device. If the moment of a change is sensitive, remember nothing and pay for each report.
* A budget that is used up shows that there were many different values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike
from typing import Any

from dither import arguments
from dither.accounting import Event, Pure, best_of
from dither.errors import InvalidArgument, WrongType
from dither.guarantees import Guarantee, PureDP
from dither.ledger import open as open_ledger
from dither.local.protocol import LocalProtocol
from dither.local.reports import Reports
from dither.local.sets import PaddedSets
from dither.stateful import Stateful

_ACCOUNT = "device"
_MAX_QUESTION = 100


@dataclass(frozen=True)
class RepetitionCost:
    """The guarantee of several reports of one person: drawn anew each time, or remembered.

    >>> cost = repetition_cost(1, reports=365, delta=1e-6)
    >>> cost.fresh, cost.remembered
    (PureDP(365), PureDP(1))
    """

    reports: int
    fresh: PureDP
    """A new report each time: pure epsilon."""
    fresh_at_delta: Guarantee
    """The same, by the best accountant, at the delta that was asked for."""
    remembered: PureDP
    """Remembered answers, for histories that change at the same times."""
    values: int
    """The number of different values that ``remembered`` is for."""

    def __str__(self) -> str:
        return (
            f"{self.reports} reports: fresh {self.fresh}, or {self.fresh_at_delta}; "
            f"remembered, with {self.values} different values, {self.remembered}, and the moments of change are shown"
        )


def repetition_cost(
    epsilon: float | Fraction | Event, reports: int = 365, *, values: int = 1, delta: float = 1e-6
) -> RepetitionCost:
    """Return what several reports of one person cost, drawn anew or remembered.

    Parameters
    ----------
    epsilon
        The privacy loss of one report, or the event of a protocol.
    reports
        Their number: 365 for a year of days.
    values
        How many different values the person had meanwhile.
    delta
        For the best known bound on all fresh reports together.

    Examples
    --------
    >>> round(repetition_cost(0.1, reports=365, delta=1e-6).fresh_at_delta.epsilon, 1)
    10.3
    """
    event = epsilon if isinstance(epsilon, Event) else Pure(epsilon)
    loss = event.pure_epsilon
    if loss is None:
        raise WrongType("epsilon", "a pure epsilon, or an event that has one", "an event without one", "pass a number")
    count, different = arguments.whole(reports, "reports"), arguments.whole(values, "values")
    if different > count:
        raise InvalidArgument("values", "at most as many as reports", different, "pass 1 if it never changes")
    composed = best_of(count * event, delta).guarantee
    return RepetitionCost(count, PureDP(loss * count), composed, PureDP(loss * different), different)


class DeviceBudget(Stateful):
    """The account of one device, in a file, for its whole life: nothing is drawn before it is paid for.

    Parameters
    ----------
    place
        The ledger file on the device. Deleting it, or restoring an older copy, resets the budget: keep it where
        neither a new installation nor a restored backup does. It holds a hash of every remembered value, which is easy
        to invert where values are few: the file is as confidential as the values.
    limit
        What may ever be learned about this person from all reports of the device.

    Examples
    --------
    >>> import tempfile, dither as dp
    >>> p = dp.local.SubsetSelection(categories=64, epsilon=1)
    >>> folder = tempfile.TemporaryDirectory()
    >>> device = dp.local.DeviceBudget(folder.name + "/device.sqlite", limit=dp.PureDP(2))
    >>> monday = device.report(p, 17, question="emoji", remember=True)
    >>> tuesday = device.report(p, 17, question="emoji", remember=True)
    >>> monday == tuesday, device.left
    (True, PureDP(1))
    >>> _ = device.report(p, 18, question="emoji", remember=True)
    >>> device.left is None
    True
    >>> device.close(); folder.cleanup()
    """

    def __init__(self, place: str | PathLike[str], limit: Guarantee) -> None:
        """Open the ledger file at ``place``, or create it, with an account that may spend ``limit`` in all."""
        self._ledger = open_ledger(place)
        try:
            self._ledger.ensure(_ACCOUNT, limit=limit)
        except BaseException:
            self._ledger.close()
            raise

    def report(
        self,
        protocol: LocalProtocol[Any],
        value: Any,
        *,
        question: str,
        remember: bool = False,
        occasion: str | None = None,
    ) -> Reports:
        """Return a report, charged before it is drawn.

        Parameters
        ----------
        protocol
            How values become reports.
        value
            The true value; it does not leave the device.
        question
            What is asked, for example ``"emoji"``; public.
        remember
            Send the same report again for the same value, free of charge, and show when the value changes.
        occasion
            For a fresh report: when, for example ``"2026-11-17"``; public. The same occasion returns the same report,
            whatever the value is then, so that sending again costs nothing. Without it every call is an occasion.
        """
        if not isinstance(protocol, LocalProtocol):
            raise WrongType("protocol", "a local protocol", type(protocol).__name__, "pass dp.local.…")
        if not isinstance(question, str) or not 0 < len(question) <= _MAX_QUESTION:
            raise InvalidArgument(
                "question", f"a name of 1 to {_MAX_QUESTION} characters", "an empty or longer one", "name the question"
            )
        if remember and occasion is not None:
            raise InvalidArgument(
                "occasion", "none with remember=True", "one", "leave it out: an answer is for all occasions"
            )
        own, codes = _read(protocol, value)  # what is not in the domain is refused before anything is charged
        prefix = f"{question}/{protocol.fingerprint.hex()}"
        key = None if occasion is None else f"{prefix}/at/{_digest(occasion)}"
        if remember:
            key = f"{prefix}/value/{_digest(codes)}"
        released = self._ledger.release(
            _ACCOUNT, protocol.guarantee, lambda: protocol.privatize([own]).to_bytes(), key=key
        )
        return Reports.from_bytes(released.value)

    @property
    def left(self) -> Guarantee | None:
        """Return the budget that remains for the device's lifetime; None if nothing remains."""
        return self._ledger.left(_ACCOUNT)

    def close(self) -> None:
        """Close the file."""
        self._ledger.close()


def _read(protocol: LocalProtocol[Any], value: Any) -> tuple[Any, list[int]]:
    """Return ``(value, codes)``: the value as a protocol takes it, and the codes by which the device recognizes it.

    Codes are equal for values that the protocol does not distinguish; those of a set are sorted.
    """
    if not isinstance(protocol, PaddedSets):
        return value, protocol.encode([value]).tolist()
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise WrongType("value", "a set of items", type(value).__name__, "pass a set")
    items = list(value)
    return items, sorted(set(protocol.encode(items).tolist())) if items else []


def _digest(value: Any) -> str:
    """Return a hash by which the device recognizes a value."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:32]
