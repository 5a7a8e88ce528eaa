"""The formulas of the moving figures, evaluated by Node, against Python that does not share them."""

from __future__ import annotations

import functools
import json
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright._impl._driver import compute_driver_executable
from scipy.integrate import quad
from scipy.stats import binom, norm

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
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


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
    assert set(controls()) == set(figures.FIGURES)
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


def shown(value: float, digits: int = 3) -> str:
    """A number as the script writes it."""
    return f"{float(f'{value:.{digits}g}'):.12g}"


@pytest.mark.parametrize(("width", "upper", "index"), [(1, 10, 0), (0.5, 2, 1), (5, 20, 2), (4, 3, 0), (1, 1, 3)])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_bounded_noise_has_the_scale_of_theorem_26(epsilon, width, upper, index):
    spec = draw("bounded", {"epsilon": epsilon, "width": width, "upper": upper, "q": 1.5, "delta": index})
    reach, delta = min(width, upper), (0.0, 1e-6, 0.01, 0.1)[index]
    m = dp.BoundedLaplace(sensitivity=reach, epsilon=epsilon, lower=0, upper=upper, delta=delta)
    assert f"needs b = {shown(m.scale, 6)};" in spec["says"]
    for line, scale in zip(spec["lines"], (m.scale, reach / epsilon), strict=True):
        at = min(1.5, upper)
        law = np.exp(-np.abs(np.array(line["x"]) - at) / scale)
        total, _ = quad(lambda v: math.exp(-abs(v - at) / scale), 0, upper, points=[at])  # noqa: B023
        assert line["y"] == pytest.approx(law / total, rel=1e-6)
    if (width, upper, index, epsilon) == (1, 10, 0, 1.0):
        assert "the loss is 1.49 and not ε = 1" in spec["says"]


@pytest.mark.parametrize("gamma", [0.05, 0.4, 1.1])
def test_descent_on_a_parabola(gamma):
    spec = draw("steps", {"gamma": gamma})
    trace = dp.learn.descend(lambda b, _: 2 * b, start=1.0, steps=20, schedule=dp.learn.Schedule(gamma))
    assert spec["lines"][0]["y"] == pytest.approx(trace.iterates.ravel().tolist(), rel=1e-6)
    assert ("does not converge" in spec["says"]) == (gamma >= 1)


@pytest.mark.parametrize(("rho", "kappa", "digits"), [(0.5, 0.8, 3), (0.1, 0.0, 2), (0.9, 1.5, 2.5), (0.75, 1.0, 1)])
def test_the_bound_of_theorem_37_and_its_price(rho, kappa, digits):
    spec = draw("utility", {"rho": rho, "kappa": kappa, "digits": digits})
    steps = round(10**digits)
    schedule = dp.learn.Schedule(1.0, rho=rho)
    sgd = dp.course.TheoremSGD(epsilon=1, steps=steps, clip=1.0, schedule=schedule, kappa=kappa)
    terms = dp.course.private_bound(1.0, sgd, coordinates=1)
    for line, term in zip(spec["lines"], terms, strict=False):
        places = [round(10**x) - 1 for x in line["x"]]
        assert [10**y for y in line["y"]] == pytest.approx([float(term[i]) for i in places], rel=1e-4)
    cost, n = spec["lines"][3], [round(10**x) for x in spec["lines"][3]["x"]]
    for i in (0, len(n) // 2, len(n) - 1):
        private = dp.course.TheoremSGD(epsilon=1, steps=n[i], clip=1.0, schedule=schedule, kappa=kappa)
        assert 10 ** cost["y"][i] == pytest.approx(float(private.guarantee.epsilon), rel=1e-4)
    said = [float(v) for v in re.findall(r"(?:Theorem 36|composed): ([\d.e+]+)", spec["says"])]
    assert said == pytest.approx([sgd.theorem_epsilon, sgd.composed_epsilon], rel=6e-3)
    average = dp.course.TheoremSGD(1, steps, clip=1.0, schedule=schedule, kappa=kappa, release="average")
    assert float(spec["says"].rsplit(" ", 1)[1]) == pytest.approx(float(average.guarantee.epsilon), rel=6e-3)


@pytest.mark.parametrize(("alpha", "clip", "epsilon"), [(2, 27, 1.0), (1.2, 50, 0.5), (4, 5, 3.0), (3, 10, 1.0)])
def test_the_parts_of_a_noisy_pareto_mean(alpha, clip, epsilon):
    spec = draw("pareto", {"alpha": alpha, "clip": clip, "epsilon": epsilon})
    total, bias, noise = (line["y"][clip - 2] for line in spec["lines"])
    density = lambda x: alpha * x ** (-alpha - 1)  # noqa: E731
    mean, square = (quad(lambda x: x**k * density(x), 1, clip)[0] + clip ** (k - alpha) for k in (1, 2))  # noqa: B023
    m = dp.Laplace((clip - 1) / 1000, epsilon)
    assert bias == pytest.approx(alpha / (alpha - 1) - mean, rel=1e-6)
    assert noise**2 == pytest.approx(float(m.variance), rel=1e-9)
    assert total**2 == pytest.approx(bias**2 + noise**2 + (square - mean**2) / 1000, rel=1e-6)
    if alpha == 2:
        assert f"bias −{shown(1 / clip)}, noise 0.0368, error 0.0804" in spec["says"]


@pytest.mark.parametrize(("d", "epsilon", "lead"), [(100, 0.5, 39), (2, 1.0, 0), (500, 3.0, 80), (10, 0.1, 20)])
def test_the_heavy_hitter(d, epsilon, lead):
    spec = draw("heavy", {"d": d, "epsilon": epsilon, "lead": lead})
    every = dp.NoisyMax.for_counts(epsilon / d, dp.AddRemove, noise="laplace")
    selection = dp.Exponential(sensitivity=1, epsilon=epsilon)
    for line, m in ((spec["lines"][0], selection), (spec["lines"][2], every)):
        for i in (0, 10, 20, 40):
            exact = float(m.probabilities([line["x"][i]] + [0.0] * (d - 1))[0])
            assert line["y"][i] == pytest.approx(exact, abs=1e-6)
    assert all(low <= high + 1e-12 for low, high in zip(spec["lines"][1]["y"], spec["lines"][0]["y"], strict=True))
    assert f"within {shown(selection.error(candidates=d, confidence=0.99))} of the best" in spec["says"]
    if d == 100:
        assert "named with probability 99.4 %" in spec["says"]


@pytest.mark.parametrize(("price", "people", "epsilon"), [(70, 1000, 1.0), (199, 10, 0.1), (10, 2000, 3.0)])
def test_the_price_that_everybody_pays(price, people, epsilon):
    spec = draw("pricing", {"price": price, "people": people, "epsilon": epsilon})
    earned = np.array([people * c / 100 if c <= price else 0.0 for c in range(1, 200)])
    m = dp.Exponential(sensitivity=1.99, epsilon=epsilon)
    p = m.probabilities(earned)
    assert spec["lines"][1]["y"] == pytest.approx(p.tolist(), rel=1e-9, abs=1e-12)
    loss = float(re.findall(r"expected loss ([\d.e-]+) \$", spec["says"])[0])
    assert loss == pytest.approx(float(earned.max() - p @ earned), rel=1e-3, abs=1e-9)
    assert f"= {shown(2 * 1.99 * math.log(199) / epsilon, 4)} $" in spec["says"]
    assert float(earned.max() - p @ earned) <= m.expected_score_bound(candidates=199)
    if price == 70:
        assert "expected loss 0.8821 $, bound 2Δ·ln(199)/ε = 21.07 $" in spec["says"]


@pytest.mark.parametrize(("m", "epsilon", "beta"), [(100, 1.0, 0.05), (2, 0.1, 0.5), (1000, 3.0, 0.01)])
def test_the_accuracy_of_report_noisy_max(m, epsilon, beta):
    spec = draw("noisymax", {"m": m, "epsilon": epsilon, "beta": beta})
    noisy = dp.NoisyMax.for_counts(epsilon, dp.AddRemove, noise="laplace")
    bound, exact = spec["lines"]
    for i in (0, 10, 30, 60):
        wins = float(noisy.probabilities([exact["x"][i]] + [0.0] * (m - 1))[0])
        assert exact["y"][i] == pytest.approx(1 - wins, abs=1e-6)
        assert exact["y"][i] <= bound["y"][i] + 1e-6
    assert spec["points"][0] == pytest.approx([noisy.error(m, 1 - beta), beta], rel=1e-9)


@pytest.mark.parametrize(("epsilon", "days"), [(1.0, 31), (0.1, 365), (4.0, 2), (1.0, 1)])
def test_a_majority_of_daily_answers(epsilon, days):
    spec = draw("reset", {"epsilon": epsilon, "days": days})
    p = dp.RandomizedResponse(epsilon).probability

    def right(k: int) -> float:
        return float(binom.sf(k // 2, k, p) + (0.5 * binom.pmf(k // 2, k, p) if k % 2 == 0 else 0))

    for x, y in zip(*(spec["lines"][0][axis][::20] for axis in "xy"), strict=True):
        assert y == pytest.approx(right(x), rel=1e-9)
    assert spec["points"][0] == pytest.approx([days, right(days)])
    assert f"cost ε = {shown(float(dp.local.repetition_cost(epsilon, days).fresh.epsilon), 4)};" in spec["says"]
    if (epsilon, days) == (1.0, 31):
        assert right(31) == pytest.approx(0.997034, abs=1e-6)


@pytest.mark.parametrize(("epsilon", "tables", "block"), [(1.0, 10, 50), (0.1, 40, 500), (10, 1, 1)])
def test_the_error_of_a_count_of_a_census(epsilon, tables, block):
    spec = draw("census", {"epsilon": epsilon, "tables": tables, "block": block})
    line = spec["lines"][0]
    for i in (0, 20, 40, 60, 80):
        error = dp.Laplace(sensitivity=1, epsilon=10 ** line["x"][i] / tables).error(integer=True)
        assert line["y"][i] == pytest.approx(min(1.0, error / block))
    here = dp.Laplace(sensitivity=1, epsilon=epsilon / tables).error(integer=True)
    assert f"within ± {here:g} in 95 %" in spec["says"]


@pytest.mark.parametrize(("epsilon", "n", "mean"), [(1.0, 100, 0.4), (0.1, 10, 0.0), (3.0, 1000, 1.0)])
def test_the_three_laws_of_a_mean(epsilon, n, mean):
    spec = draw("means", {"epsilon": epsilon, "n": n, "mean": mean})
    rate, x = n * epsilon / 2, np.array(spec["lines"][0]["x"])
    m = dp.Laplace(sensitivity=1 / n, epsilon=epsilon)
    laws = [np.exp(-np.abs(x - mean) / m.scale), np.exp(-rate * np.abs(x - mean)), np.exp(-rate * (x - mean) ** 2)]
    areas = [2 * m.scale]
    for power in (1, 2):
        areas.append(quad(lambda v: math.exp(-rate * abs(v - mean) ** power), 0, 1, points=[mean], limit=500)[0])  # noqa: B023
    for line, law, area in zip(spec["lines"], laws, areas, strict=True):
        assert line["y"] == pytest.approx(law / area, rel=1e-5, abs=1e-9)
    places = np.linspace(0, 1, 2001)
    whole = [quad(lambda v: math.exp(-rate * abs(v - c)), 0, 1, points=[c], limit=500)[0] for c in (0, 1 / n)]  # noqa: B023
    logs = [-rate * np.abs(places - c) - math.log(area) for c, area in zip((0, 1 / n), whole, strict=True)]
    assert evaluate(("call", "meanCost", [n, epsilon]))[0] == pytest.approx(np.abs(logs[0] - logs[1]).max(), rel=1e-3)
    if n == 100:
        assert "costs 0.832 on [0, 1]" in spec["says"]


def test_what_chromium_draws_is_what_node_computes(tmp_path):
    """Every slider of every figure is moved in a page; what the page then says is what the formulas give."""
    names = list(figures.FIGURES)
    body = "".join(figures.block(name).removeprefix("```{raw} html\n").removesuffix("\n```") for name in names)
    script = (DOCS / "static" / "figures.js").as_uri()
    page = f"<!doctype html><meta charset='utf-8'><title>figures</title>{body}<script src='{script}'></script>"
    (tmp_path / "figures.html").write_text(page, encoding="utf-8")
    moves = {
        name: {c["name"]: c["max"] if i % 2 else c["min"] for i, c in enumerate(controls()[name])} for name in names
    }
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    browser = os.environ.get("DITHER_TEST_BROWSER") or found
    assert browser is not None, f"none of {', '.join(BROWSERS)} is installed: run make browser"
    given = {"address": (tmp_path / "figures.html").as_uri(), "browser": browser, "moves": moves}
    command = [sys.executable, str(Path(__file__).with_name("figure_browser.py"))]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen.pop("errors") == []
    for name in names:
        spec = draw(name, moves[name], figures.FIGURES[name]().data)
        assert seen[name]["says"] == spec["says"], name
        assert seen[name]["title"] == spec["title"], name
        labels = [line["name"] for line in spec.get("lines", [])] + [bar[0] for bar in spec.get("bars", [])]
        assert set(labels) <= set(seen[name]["texts"]), name


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
