"""What must hold after the blocks of the site's tutorials, how-to pages and explanations have run.

Answers are noisy; what is asserted here holds with a probability of at least 1 - 1e-9, or with that stated beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dither as dp


def first_answer(names: dict[str, Any]) -> None:
    assert Path("answer.html").read_text(encoding="utf-8").startswith("<!")
    assert names["answer"].columns == ("region", "n")
    assert names["visits"].left == dp.ApproxDP(1.25, 1e-6) or "1.25" in str(
        names["answer"].left
    )  # 0.5 paid once, and 0.25
    names["visits"].close()


def csv_to_budget(names: dict[str, Any]) -> None:
    with dp.ledger.open("stays.ledger.sqlite", read_only=True) as ledger:
        assert ledger.left("stays") == dp.ApproxDP(0.5, 1e-6)  # 1.5 from now on, of which 1 is spent
        assert ledger.verify()
    assert len(names["answer"].rows) == 12


def profile(names: dict[str, Any]) -> None:
    measured = names["profile"].tables["data"].columns
    assert list(measured) == ["region", "delay"]
    assert abs(sum(measured["region"].keys.weights) - 4000) < 400
    assert measured["delay"].by_rows is not None


def asking_well(names: dict[str, Any]) -> None:
    assert abs(names["answer"]["mean"][0] - 40) < 10


def publish_tables(names: dict[str, Any]) -> None:
    assert names["out"].guarantee == dp.ApproxDP(1, 1e-9)
    assert abs(len(names["records"]) - 20_000) < 300
    low, high = names["adults"].interval()
    assert low < names["adults"].value < high


def dashboard(names: dict[str, Any]) -> None:
    assert len(names["summer"]) == 362
    with dp.ledger.open("admissions.ledger.sqlite", read_only=True) as ledger:
        assert ledger.left("admissions") is None
    for row, error in zip(names["totals"].rows[-2:], names["totals"].error("n")[-2:], strict=True):
        assert abs(row[2] - 5430) < 300 + 4 * error  # half of 181 days of 60; the draw of wards is seeded
    assert Path("spring.html").read_text(encoding="utf-8").startswith("<!")


def collect_without_trust(names: dict[str, Any]) -> None:
    estimate = names["estimate"]
    assert (abs(estimate.shares - [0.6, 0.3, 0.1]) < 7 * estimate.standard_error).all()
    assert names["server"].n == 3
    assert 50 < names["local"] / names["central"] < 200
    assert names["protocol"].report_bits <= 16
    assert names["year"].fresh_at_delta.epsilon > 50


def serve_to_colleagues(names: dict[str, Any]) -> None:
    assert names["again"] == names["answer"]
    assert names["left"] == dp.ApproxDP(3.5, 1e-6)


def train_model(names: dict[str, Any]) -> None:
    assert names["model"].guarantee_ == dp.ApproxDP(2, 1e-5)
    with dp.ledger.open("models.sqlite", read_only=True) as ledger:
        assert ledger.left("patients") == dp.ApproxDP(0.5, 9e-5)


def audit_code(names: dict[str, Any]) -> None:
    assert names["result"].epsilon > 1.3  # the truth is 2
    assert not dp.audit.replay(names["clever"], names["ages"], [*names["ages"][:-1], 90.0]).passed


def epsilon_and_delta(names: dict[str, Any]) -> None:
    assert 10 * names["yearly"] == dp.PureDP(3)


def bounds_and_limits(names: dict[str, Any]) -> None:
    """Values fill the bins up to 512. Bounds of 2^19 or more, of a million, need ten empty bins in a row each of which
    shows noise of a probability of 0.1, the first with its four values 0.11: 1.1e-10; or one of the last two bins,
    each taken for a filled one with a probability of 1e-6 divided by twice the 41 bins: 2.4e-8."""
    chosen, wide = names["chosen"], names["wide"]
    assert chosen.error("mean")[0] < wide.error("mean")[0] / 3
    # seven times what is exceeded with a probability of 0.05, with tails of Laplace's law: 8e-10; 1 for what is cut off
    assert abs(chosen["mean"][0] - 80) < 1 + 7 * chosen.error("mean")[0]


def tell_a_lawyer(names: dict[str, Any]) -> None:
    text = Path("record.html").read_text(encoding="utf-8")
    assert "ε = 0.25" in text
    assert "to be answered by the steward" in text


def migrate(names: dict[str, Any]) -> None:
    assert [row[0] for row in names["answer"].rows] == ["north", "south"]


def joins_by_view(names: dict[str, Any]) -> None:
    assert [row[0] for row in names["answer"].rows] == ["town", "country"]


def notebooks(names: dict[str, Any]) -> None:
    assert Path("needed.svg").read_text(encoding="utf-8").lstrip().startswith("<?xml")
    assert "<svg" in names["laplace"]._repr_html_()


def back_up_a_ledger(names: dict[str, Any]) -> None:
    with dp.ledger.open("budget.sqlite", receipt=names["receipt"]) as ledger:
        assert ledger.left("visits") == dp.PureDP(0.75)


AFTER_SITE: dict[str, Callable[[dict[str, Any]], None]] = {
    "tutorials/first-answer.md": first_answer,
    "tutorials/csv-to-budget.md": csv_to_budget,
    "tutorials/asking-well.md": asking_well,
    "tutorials/publish-tables.md": publish_tables,
    "howto/profile.md": profile,
    "tutorials/dashboard.md": dashboard,
    "tutorials/collect-without-trust.md": collect_without_trust,
    "tutorials/serve-to-colleagues.md": serve_to_colleagues,
    "tutorials/train-model.md": train_model,
    "tutorials/audit-code.md": audit_code,
    "howto/epsilon-and-delta.md": epsilon_and_delta,
    "howto/bounds-and-limits.md": bounds_and_limits,
    "howto/tell-a-lawyer.md": tell_a_lawyer,
    "howto/migrate.md": migrate,
    "howto/joins-by-view.md": joins_by_view,
    "howto/notebooks.md": notebooks,
    "howto/back-up-a-ledger.md": back_up_a_ledger,
}
SLOW_SITE = ("tutorials/audit-code.md",)
