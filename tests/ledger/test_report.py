"""What a ledger shows of itself: the plot of an account's spending."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import dither as dp
from dither.ledger import chain

pytest.importorskip("matplotlib")

Ledger = dp.ledger.Ledger


@pytest.fixture
def ledger(tmp_path: Path):
    with dp.ledger.open(tmp_path / "budget.sqlite") as opened:
        opened.create("visits", limit=dp.PureDP(1), each_analyst=dp.PureDP(0.75))
        yield opened


@pytest.fixture
def axes():
    from matplotlib.figure import Figure

    return Figure().subplots()


def plotted(axes) -> tuple[list[datetime], list[float]]:
    line = axes.get_lines()[0]
    assert line.get_marker() == "o", "a single charge would be invisible as a line"
    return list(line.get_xdata(orig=True)), list(line.get_ydata())


def test_one_charge_is_visible(ledger: Ledger, axes) -> None:
    """A step from 0, where the account was opened, to the charge; a single point would draw no line at all."""
    ledger.charge("visits", dp.PureDP(0.25), analyst="ann")
    ledger.plot("visits", axes=axes)
    times, totals = plotted(axes)
    assert totals == [0, 0.25]
    assert times == sorted(times)
    assert axes.get_lines()[1].get_ydata()[0] == 1  # the limit
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["spent", "limit: ε = 1"]


def test_no_charge_is_a_total_of_zero(ledger: Ledger, axes) -> None:
    ledger.plot("visits", axes=axes)
    assert plotted(axes)[1] == [0]


def test_an_account_of_an_analyst(ledger: Ledger, axes) -> None:
    for analyst, epsilon in (("ann", 0.25), ("bob", 0.125), ("ann", 0.25)):
        ledger.charge("visits", dp.PureDP(epsilon), analyst=analyst)
    ledger.plot("visits", analyst="ann", axes=axes)
    assert plotted(axes)[1] == [0, 0.25, 0.5]
    assert axes.get_title() == "analyst 'ann' in dataset 'visits'"


def test_a_clock_that_goes_backwards(ledger: Ledger, axes, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in (3, 1, 2):
        monkeypatch.setattr(chain, "now", lambda day=day: datetime(2990, 1, day, tzinfo=UTC).isoformat())
        ledger.charge("visits", dp.PureDP(0.25), analyst="ann")
    ledger.plot("visits", axes=axes)
    times, totals = plotted(axes)
    assert times == sorted(times)
    assert totals == [0, 0.25, 0.5, 0.75]
