"""The formulas of the moving figures, evaluated by Node, against Python that does not share them."""

from __future__ import annotations

import functools
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright._impl._driver import compute_driver_executable
from scipy.stats import norm

import dither as dp
from dither.present.plot import trade_off_at

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

from site_builder import figures  # noqa: E402

PROGRAM = """
const figures = require(process.argv[1]);
const results = JSON.parse(require("fs").readFileSync(0, "utf8")).map(([kind, name, values, data]) =>
  kind === "draw" ? figures.FIGURES[name].draw(values, data) : kind === "controls"
  ? Object.fromEntries(Object.entries(figures.FIGURES).map(([key, figure]) => [key, figure.controls]))
  : figures[name](...values));
process.stdout.write(JSON.stringify(results));
"""
EPSILONS = (0.1, 0.5, 1.0, 3.0)


def node() -> str:
    """The Node of the machine, or the one that Playwright brings; there is always one where the tests are installed."""
    program = shutil.which("node") or str(compute_driver_executable()[0])
    assert Path(program).is_file(), "no Node: install it, or playwright (pip install -e '.[test]')"
    return program


def evaluate(*calls: tuple[Any, ...]) -> list[Any]:
    command = [node(), "-e", PROGRAM, str(DOCS / "static" / "figures.js")]
    done = subprocess.run(command, input=json.dumps(calls), capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def draw(name: str, values: dict[str, float], data: Any = None) -> Any:
    return evaluate(("draw", name, values, data))[0]


@functools.cache
def controls() -> dict[str, Any]:
    return evaluate(("controls", "", {}))[0]


def test_every_moving_figure_is_drawn_at_all_ends_of_its_sliders():
    assert set(controls()) == set(figures.LIVE)
    calls = []
    for name, sliders in controls().items():
        data = figures.FIGURES[name]().data
        for end in ("min", "value", "max"):
            calls.append(("draw", name, {slider["name"]: slider[end] for slider in sliders}, data))
    for call, spec in zip(calls, evaluate(*calls), strict=True):
        assert min(len(spec["title"]), len(spec["says"])) > 10, call[:3]
        assert "NaN" not in spec["says"], call[:3]
        for line in spec.get("lines", []):
            assert len(line["x"]) == len(line["y"]) > 1, call[:3]
            assert all(isinstance(y, int | float) for y in line["y"]), call[:3]  # JSON has null for NaN and infinity
        for _, y in spec.get("points", []):
            assert spec["y"][0] <= y <= spec["y"][1], call[:3]


@pytest.mark.parametrize("width", [0.25, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_laplace_densities(epsilon, width):
    spec = draw("laplace", {"epsilon": epsilon, "width": width})
    m = dp.Laplace(sensitivity=width, epsilon=epsilon)
    for line, value in zip(spec["lines"], (0.0, width), strict=True):
        exact = [math.exp(-abs(x - value) / m.scale) / (2 * m.scale) for x in line["x"]]
        assert line["y"] == pytest.approx(exact, rel=1e-9)
        assert max(line["y"]) <= spec["y"][1] * (1 + 1e-12)  # the peak is inside the picture
    assert f"± {float(f'{m.scale * math.log(20):.3g}'):g} in 95 %" in spec["says"]
    first, second = (np.array(line["y"]) for line in spec["lines"])
    assert np.abs(np.log(first / second)).max() == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_the_power_is_one_minus_the_trade_off_of_pure_privacy(epsilon):
    spec = draw("power", {"epsilon": epsilon, "alpha": 0.05})
    line = spec["lines"][0]
    levels = np.array(line["x"])
    worst = 1 - levels if not epsilon else trade_off_at(dp.PureDP(epsilon), levels)
    assert line["y"] == pytest.approx(1 - worst, abs=1e-9)
    assert spec["points"][0][1] == pytest.approx(min(0.05 * math.exp(epsilon), 1 - math.exp(-epsilon) * 0.95))


@pytest.mark.parametrize("third", [10, 25, 40])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0])
def test_the_election(epsilon, third):
    bars = draw("exponential", {"epsilon": epsilon, "third": third})["bars"]
    exact = dp.Exponential(sensitivity=1, epsilon=epsilon).probabilities([15, 20, third])
    assert [value for _, value in bars] == pytest.approx([float(p) for p in exact], rel=1e-9)


@pytest.mark.parametrize("digits", [3, 6, 12])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
def test_the_composition_curves(epsilon, digits):
    total, advanced, zcdp = draw("composition", {"epsilon": epsilon, "digits": digits})["lines"]
    delta = 10.0**-digits
    for i in (1, 10, 100):
        k = round(total["x"][i])
        assert total["y"][i] == pytest.approx(float((k * dp.PureDP(epsilon)).epsilon), rel=1e-12)
        # Dwork, Rothblum and Vadhan 2010
        exact = math.sqrt(2 * k * math.log(1 / delta)) * epsilon + k * epsilon * (math.exp(epsilon) - 1)
        assert advanced["y"][i] == pytest.approx(exact, rel=1e-9)
        rho = k * epsilon * math.tanh(epsilon / 2)
        assert zcdp["y"][i] == pytest.approx(figures.zcdp(rho, delta), rel=1e-9)
        assert zcdp["y"][i] >= dp.ZCDP(rho).to_approx(delta).epsilon * (1 - 1e-9)


@pytest.mark.parametrize("zeros", [40, 51, 60])
@pytest.mark.parametrize("beta", [0.01, 0.1, 0.5])
def test_the_smooth_sensitivity(beta, zeros):
    lines = draw("smooth", {"beta": beta, "zeros": zeros})["lines"]
    for line, count in zip(lines, (zeros, zeros + 1), strict=True):
        values = [0.0] * count + [100.0] * (101 - count)
        exact = dp.sensitivity.smooth_median(values, bounds=(0, 100), beta=beta)
        assert max(line["y"]) == pytest.approx(exact, rel=1e-9)


def test_the_local_sensitivity_of_other_values():
    values = sorted(np.random.default_rng(3).uniform(0, 100, 31).tolist())
    results = evaluate(*(("call", "localAt", [values, k, 0, 100]) for k in range(40)))
    assert results == pytest.approx([figures.local_at(values, k, 0.0, 100.0) for k in range(40)], rel=1e-12)


def test_the_tail_of_the_normal_law_is_good_enough_for_a_picture():
    places = [i / 10 for i in range(-40, 41)]
    results = evaluate(*(("call", "erfc", [x]) for x in places))
    assert results == pytest.approx([math.erfc(x) for x in places], abs=2e-7)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_theorem_10_as_claimed_and_as_it_is(epsilon):
    spec = draw("mixed", {"epsilon": epsilon, "width": 0.01})
    claimed, true = spec["lines"]
    exact = dp.accounting.gaussian_delta(epsilon, math.sqrt(2) / epsilon)
    mu = epsilon / math.sqrt(2)
    assert exact == pytest.approx(
        norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    )
    assert true["y"] == pytest.approx([exact] * len(true["y"]), abs=2e-6)
    assert exact < spec["y"][1]  # the true line is inside the picture
    # Theorem 10 has the threshold sqrt(pi) delta epsilon / 2 on the sensitivity: solved for delta
    for width, delta in zip(claimed["x"], claimed["y"], strict=True):
        assert math.sqrt(math.pi) * delta * epsilon / 2 == pytest.approx(width, abs=1e-12)
    if epsilon == 1.0:
        assert "claimed δ = 0.0113, true δ = 0.0396" in spec["says"]


def test_a_released_distribution_and_its_distance():
    data = figures.ks().data
    for index, epsilon in enumerate(figures.KS_EPSILONS):
        spec = draw("ks", {"index": index}, data)
        assert spec["lines"][1]["y"] == data["curves"][f"{epsilon:g}"]
        distance = np.abs(np.array(data["curves"][f"{epsilon:g}"]) - np.array(data["truth"])).max()
        assert spec["says"].endswith(f"{float(f'{distance:.3g}'):g}")


def test_the_path_of_descent():
    data = figures.descent().data
    for index, epsilon in enumerate(figures.DESCENT_EPSILONS):
        spec = draw("descent", {"index": index}, data)
        assert spec["lines"][0]["y"] == data["paths"][f"{epsilon:g}"]
        assert set(spec["lines"][1]["y"]) == {data["target"]}


def test_a_line_ends_where_it_leaves_the_picture():
    line = {"x": [0, 1, 2, 3, 4], "y": [0, 2, 4, 0, -1]}
    (first, second) = evaluate(("call", "pieces", [line, 0, 3]))[0]
    assert first == [[0, 0], [1, 2], [1.5, 3]]
    assert second == [[2.25, 3], [3, 0], [3, 0]]
    assert evaluate(("call", "pieces", [{"x": [0, 1], "y": [5, 6]}, 0, 3]))[0] == []


@pytest.mark.parametrize("name", figures.FIGURES)
def test_every_figure_has_a_text_alternative_and_a_caption(name):
    block = figures.block(name)
    assert 'role="img" aria-label="' in block
    assert "<title>" in block
    assert 'aria-label=""' not in block
    assert len(block.split("<figcaption>")[1].split("</figcaption>")[0]) > 60
