"""Every example runs, prints a report, leaves a plot, and its figures are what theory says they must be.

The data are made from fixed seeds, so what does not depend on privacy noise is a fixed fact. Where noise matters the
bands are those of the binomial law or of Hoeffding's inequality at a false alarm of 1e-9 or less for a whole run.
"""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

FOLDER = Path(__file__).parents[2] / "examples"
FILES = sorted(FOLDER.glob("*.py"))
SLOW = {"density_four_ways", "mean_three_ways"}
FALSE_ALARM = 1e-9


def band(draws: int, questions: int) -> float:
    """How far the frequencies of so many events can be from their probabilities."""
    return math.sqrt(math.log(2 * questions / FALSE_ALARM) / (2 * draws))


def heavy_hitter(found: dict[str, Any]) -> None:
    exact, seen = found["exact"], found["seen"]
    for i, lead in enumerate(found["leads"]):
        assert found["bound"][i] <= exact["exponential"][i] <= exact["permute-and-flip"][i] + 1e-12
        assert lead < found["lead_for_95"] or exact["exponential"][i] >= 0.95
        for name, values in seen.items():
            assert abs(values[i] - exact[name][i]) <= band(found["draws"], 3 * len(found["leads"]))
            assert exact["all counts, Lap(d/ε)"][i] < exact[name][i]


def pricing(found: dict[str, Any]) -> None:
    for promised, exponential, flip in zip(
        found["promised"], found["exponential"], found["permute-and-flip"], strict=True
    ):
        assert promised <= exponential <= flip + 1e-12 <= 1 + 1e-9
    assert found["exponential"] == sorted(found["exponential"])
    assert all(1 <= price <= 199 for price in found["drawn"])
    assert found["noise on the price"][0] < found["exponential"][0]


def election(found: dict[str, Any]) -> None:
    p, q = math.exp(-2.5), math.exp(-5)
    assert found["exact"]["exponential"] == pytest.approx([q / (1 + p + q), p / (1 + p + q), 1 / (1 + p + q)])
    flip = [q * (0.5 - p / 6), p * (0.5 - q / 6), 1 - (p + q) / 2 + p * q / 3]
    assert found["exact"]["permute-and-flip"] == pytest.approx(flip)
    for name, exact in found["exact"].items():
        assert sum(exact) == pytest.approx(1)
        assert np.abs(np.subtract(exact, found["seen"][name])).max() <= band(found["draws"], 9)
    lost = found["votes_lost"]
    assert lost["permute-and-flip"] < lost["exponential"] < lost["Laplace noisy max"]


def mean_three_ways(found: dict[str, Any]) -> None:
    cost, error = found["cost"], found["error"]
    assert cost["-|.| on [-2, 3]"] == pytest.approx(0.5, abs=1e-6)
    assert cost["-|.| on [-2, 3], at 2ε"] == pytest.approx(1.0, abs=1e-6)
    assert cost["-|.| on [0, 1]"] == pytest.approx(0.5 + math.log(2 - math.exp(-0.5)), abs=1e-6)
    assert cost["-(.)² on [0, 1], (2-1/n)/n"] < 0.5 < cost["-(.)² on [0, 1], the notes' 1/n"] < 1
    assert error["-|.| on [-2, 3], at 2ε"] == pytest.approx(error["Laplace"], rel=1e-3)
    assert error["-(.)² on [0, 1], the notes' 1/n"] == pytest.approx((found["n"]) ** -0.5, rel=0.01)
    for share in found["share_within_median"].values():  # 1 of 40 or fewer, on either side, six times: 4.5e-10
        assert found["draws"] == 40
        assert 2 <= round(40 * share) <= 38


def density_four_ways(found: dict[str, Any]) -> None:
    assert found["sizes"][-1] == 10_000
    for name, values in found["mean"].items():
        assert all(0 < value < 1 for value in values)
        assert name == "smoothed" or values[-1] < 0.1  # some 0.01: ten times that does not happen
    assert found["mean"]["the data (not private)"] == sorted(found["mean"]["the data (not private)"], reverse=True)


def top_snps(found: dict[str, Any]) -> None:
    assert found["beyond_limit"] <= 0  # each of 140 releases fails with probability 1e-12 at most
    assert all(b <= a for a, b in zip(found["scale"]["pure"], found["scale"]["delta"], strict=True))
    assert found["scale"]["pure"] == pytest.approx([40 / epsilon for epsilon in found["epsilons"]])
    assert found["accounted_by"][0] == "zcdp"
    assert found["accounted_by"][-1] == "pure"
    assert all(0 <= value <= 10 for values in found["found"].values() for value in values)


def reusable_holdout(found: dict[str, Any]) -> None:
    noise, signal = found["noise"], found["signal"]
    assert noise["plain"]["holdout"][-1] > noise["plain"]["fresh"][-1] + 0.05  # no noise: a fact of the data
    assert signal["plain"]["fresh"][-1] > 0.7
    for kind in ("plain", "reusable"):
        assert all(abs(accuracy - 0.5) < 0.03 for accuracy in noise[kind]["fresh"])  # 20,000 records: 8 deviations
    for case in (noise, signal):
        assert 0 <= case["used"] <= found["limit"]
        assert case["guarantee"].epsilon == 4


CHECKS = {
    check.__name__: check
    for check in (heavy_hitter, pricing, election, mean_three_ways, density_four_ways, top_snps, reusable_holdout)
}


def test_every_example_is_checked():
    assert {path.stem for path in FILES} == set(CHECKS)


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else []) for path in FILES],
)
def test_example(path, tmp_path, capsys):
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.main(tmp_path, quick=True)
    plots = list(tmp_path.iterdir())
    assert [plot.name for plot in plots] == [f"{path.stem}.png"]
    assert plots[0].read_bytes().startswith(b"\x89PNG")
    assert plots[0].stat().st_size > 10_000
    assert len(capsys.readouterr().out.splitlines()) >= 4
    CHECKS[path.stem](found)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_example_is_short_and_explained(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    assert text.startswith('"""')
    assert "pyplot" not in text
