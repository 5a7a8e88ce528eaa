"""Every example runs, prints a report, leaves a plot, and its figures are what theory says they must be.

The data are made from fixed seeds, so what does not depend on privacy noise is a fixed fact. Where noise matters the
bands are those of the binomial law or of Hoeffding's inequality at a false alarm of 1e-9 or less for a whole run; where
no such band is known, as for the accuracy of a model, the example draws from a seeded source.
"""

from __future__ import annotations

import ast
import math
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import each

FOLDER = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(FOLDER.parent / "docs"))

from site_builder import gallery  # noqa: E402

FILES = sorted(FOLDER.glob("*.py"))
SEEDED = {
    "density_dimensions",
    "density_four_ways",
    "gradient_descent",
    "local_domains",
    "publish_country",
    "synthetic_adult",
}
"""What is said of these about noise has no band."""

FALSE_ALARM = 1e-9


def band(draws: int, questions: int) -> float:
    """How far the frequencies of so many events can be from their probabilities."""
    return math.sqrt(math.log(2 * questions / FALSE_ALARM) / (2 * draws))


def heavy_hitter(figures: dict[str, Any]) -> None:
    exact, seen = figures["exact"], figures["seen"]
    for i, lead in enumerate(figures["leads"]):
        assert figures["bound"][i] <= exact["exponential"][i] <= exact["permute-and-flip"][i] + 1e-12
        assert lead < figures["lead_for_95"] or exact["exponential"][i] >= 0.95
        for name, values in seen.items():
            assert abs(values[i] - exact[name][i]) <= band(figures["draws"], 3 * len(figures["leads"]))
            assert exact["all counts, Lap(d/ε)"][i] < exact[name][i]


def pricing(figures: dict[str, Any]) -> None:
    for promised, exponential, flip in zip(
        figures["promised"], figures["exponential"], figures["permute-and-flip"], strict=True
    ):
        assert promised <= exponential <= flip + 1e-12 <= 1 + 1e-9
    assert figures["exponential"] == sorted(figures["exponential"])
    assert all(1 <= price <= 199 for price in figures["drawn"])
    assert figures["noise on the price"][0] < figures["exponential"][0]


def election(figures: dict[str, Any]) -> None:
    p, q = math.exp(-2.5), math.exp(-5)
    assert figures["exact"]["exponential"] == pytest.approx([q / (1 + p + q), p / (1 + p + q), 1 / (1 + p + q)])
    flip = [q * (0.5 - p / 6), p * (0.5 - q / 6), 1 - (p + q) / 2 + p * q / 3]
    assert figures["exact"]["permute-and-flip"] == pytest.approx(flip)
    for name, exact in figures["exact"].items():
        assert sum(exact) == pytest.approx(1)
        assert np.abs(np.subtract(exact, figures["seen"][name])).max() <= band(figures["draws"], 9)
    lost = figures["votes_lost"]
    assert lost["permute-and-flip"] < lost["exponential"] < lost["Laplace noisy max"]


def mean_three_ways(figures: dict[str, Any]) -> None:
    cost, error = figures["cost"], figures["error"]
    assert cost["-|.| on [-2, 3]"] == pytest.approx(0.5, abs=1e-6)
    assert cost["-|.| on [-2, 3], at 2ε"] == pytest.approx(1.0, abs=1e-6)
    assert cost["-|.| on [0, 1]"] == pytest.approx(0.5 + math.log(2 - math.exp(-0.5)), abs=1e-6)
    assert cost["-(.)² on [0, 1], (2-1/n)/n"] < 0.5 < cost["-(.)² on [0, 1], the printed 1/n"] < 1
    assert error["-|.| on [-2, 3], at 2ε"] == pytest.approx(error["Laplace"], rel=1e-3)
    assert error["-(.)² on [0, 1], the printed 1/n"] == pytest.approx((figures["n"]) ** -0.5, rel=0.01)
    for share in figures["share_within_median"].values():  # 1 of 40 or fewer, on either side, six times: 4.5e-10
        assert figures["draws"] == 40
        assert 2 <= round(40 * share) <= 38


def mean_of_a_sample(figures: dict[str, Any]) -> None:
    assert figures["distance"] < band(figures["draws"], 1) + 0.02  # Dvoretzky, Kiefer, Wolfowitz and Massart
    exponential, laplace, mean = (np.array(values) * np.sqrt(figures["sizes"]) for values in figures["errors"].values())
    assert figures["repeats"] == 60
    # squares of 60 normal draws: beyond these factors with probability 1e-12
    assert np.all((exponential > 0.4) & (exponential < 2))
    assert np.all((mean > 0.16 / 2.5) & (mean < 0.16 * 2))
    assert np.all(laplace[1:] < exponential[1:])


def density_four_ways(figures: dict[str, Any]) -> None:
    assert figures["sizes"][-1] == 10_000
    for name, values in figures["mean"].items():
        assert all(0 < value < 1 for value in values)
        assert name == "smoothed" or values[-1] < 0.1  # some 0.01: ten times that does not happen
    assert figures["mean"]["the data (not private)"] == sorted(figures["mean"]["the data (not private)"], reverse=True)


def density_dimensions(figures: dict[str, Any]) -> None:
    histogram, _, _, ks, same_grid = np.array(list(figures["four"].values())).T
    assert np.all(histogram[:2] < ks[:2])
    assert np.all((histogram > 0.005) & (ks < 0.25))
    assert np.all(same_grid < 1.3 * ks)
    assert (figures["rough"], figures["smooth"]) == (5, 9)
    for noisy, as_probabilities in zip(figures["curves"].values(), figures["made"].values(), strict=True):
        assert np.all(np.array(noisy) < 1.5 * np.array(as_probabilities) + 0.02)


def top_snps(figures: dict[str, Any]) -> None:
    assert figures["beyond_limit"] <= 0  # each of 140 releases fails with probability 1e-12 at most
    assert all(b <= a for a, b in zip(figures["scale"]["pure"], figures["scale"]["delta"], strict=True))
    assert figures["scale"]["pure"] == pytest.approx([40 / epsilon for epsilon in figures["epsilons"]])
    assert figures["accounted_by"][0] == "zcdp"
    assert figures["accounted_by"][-1] == "pure"
    assert all(0 <= value <= 10 for values in figures["found"].values() for value in values)


def reusable_holdout(figures: dict[str, Any]) -> None:
    noise, signal = figures["noise"], figures["signal"]
    assert noise["plain"]["holdout"][-1] > noise["plain"]["fresh"][-1] + 0.05  # no noise: a fact of the data
    assert signal["plain"]["fresh"][-1] > 0.7
    for kind in ("plain", "reusable"):
        assert all(abs(accuracy - 0.5) < 0.03 for accuracy in noise[kind]["fresh"])  # 20,000 records: 8 deviations
    for case in (noise, signal):
        assert 0 <= case["used"] <= figures["limit"]
        assert case["guarantee"].epsilon == 4


def local_sensitivity_leaks(figures: dict[str, Any]) -> None:
    assert figures["local"] == {"table 1": pytest.approx(100), "table 2": 0}
    assert figures["zero"]["table 2"] == 1  # no noise at all
    assert figures["zero"]["table 1"] <= 0.02  # 2^-20 or so each: ten of 500 do not happen
    assert figures["leak"] == pytest.approx(1 - math.e * math.tanh(1 / 200))
    assert figures["smooth"]["table 1"] == pytest.approx(100)
    assert figures["smooth"]["table 2"] == pytest.approx(100 * math.exp(-figures["beta"]))
    steps = np.abs(np.diff(np.log(figures["path"]["smooth"])))
    assert steps.max() <= figures["beta"] * (1 + 1e-9)
    assert sum(value > 0 for value in figures["path"]["local"]) == 2
    assert 0 < figures["repaired"] <= figures["certified"] <= 1e-6
    assert "expected a positive number" in figures["refused"]


def pareto_noises(figures: dict[str, Any]) -> None:
    mean, median = ({name: row[0] for name, row in figures["noise"][of].items()} for of in ("mean", "median"))
    assert mean["Laplace"] == mean["mixed"] == pytest.approx(math.sqrt(2) * 49 / figures["n"])
    assert figures["chosen"] == "Laplace"
    assert min(mean, key=mean.__getitem__) == "Laplace"
    assert median["Laplace"] == pytest.approx(math.sqrt(2) * 49)
    for name in ("smooth Laplace", "smooth Gaussian", "smooth Student"):
        assert median[name] < median["Laplace"] / 100
        assert mean[name] > mean["Laplace"]
    for rows in figures["noise"].values():
        for _, share in rows.values():
            assert abs(share - 0.5) <= band(figures["draws"], 12)
    here, elsewhere = figures["theorem_10"]
    assert here == "Laplace noise"
    assert "at least 0.0396326" in elsewhere


def mars(figures: dict[str, Any]) -> None:
    for seen, exact in (("negative", "exact"), ("zeros", "exact_zeros")):
        for name, share in figures[seen].items():
            assert abs(share - figures[exact][name]) <= band(figures["draws"], 6)
    assert figures["negative"]["clamped"] == figures["negative"]["bounded Laplace"] == 0 <= figures["least"]
    assert figures["cut_loss"] == pytest.approx(1 + math.log((2 - math.exp(-1) - math.exp(-9)) / (1 - math.exp(-10))))
    assert figures["scale"] == pytest.approx(1.61156, abs=1e-5)
    assert figures["bias"]["clamped"] == pytest.approx(1 / (math.e - 1 / math.e))
    for name, total in figures["sums"].items():  # ten deviations of a sum of a thousand
        assert abs(total - 1000 * figures["bias"][name]) <= 10 * figures["sum_spread"]


def noisy_std(figures: dict[str, Any]) -> None:
    root = math.sqrt(figures["n"])
    assert figures["pair"] == [0, pytest.approx(100 / root)]
    assert figures["loss"] == pytest.approx(root)
    assert figures["delta"] == pytest.approx(1 - math.exp((1 - root) / 2))
    assert figures["told"][0] <= 0.05  # each with probability 7e-8: ten of 200 do not happen
    assert figures["told"][1] >= 0.95
    assert figures["direct"] == pytest.approx(math.sqrt(2) * 100 / root)
    assert max(figures["clamped"]) < figures["direct"]
    assert max(figures["bounded"]) < figures["direct"]
    assert figures["clamped"][0] == pytest.approx(math.sqrt(5), rel=1e-3)  # E max(0, Lap(10)) = 5
    for seen, exact in zip(figures["zero"], figures["exact zero"], strict=True):
        assert abs(seen - exact) <= band(figures["draws"], 6)
    assert min(figures["least"]) > 0


def budget_for_life(figures: dict[str, Any]) -> None:
    assert figures["limit"].epsilon == 0.5
    assert figures["spent"] == {"first half": 0.5, "second half": 0.4}
    assert figures["again"] == figures["answers"]["mean"]
    assert figures["reached"] == figures["size"] // 2  # those who have spent 0.5 of 0.5 are left out
    assert figures["entries"] == 9
    # Laplace noise of scale 72/500/0.3, and 500 ranks at 0.4: 25 scales do not happen
    assert abs(figures["answers"]["mean"] - figures["true"]["mean"]) <= 25 * 72 / 500 / 0.3
    assert 18 <= figures["answers"]["median"] <= 90


def ask_a_server(figures: dict[str, Any]) -> None:
    answer = figures["answer"]
    assert answer["region"] == ["north", "east", "south", "west"]
    assert figures["again"] == answer
    assert figures["again"].replayed
    assert sum(answer["n"]) == pytest.approx(30_000, rel=0.2)
    assert str(figures["bob"].remaining) == "you nothing; the table ε = 2"
    assert len(figures["refusals"]) == 2
    assert "analyst 'ann'" in figures["refusals"][0]
    assert str(figures["left"]) == "ε = 2"


def ask_in_sql(figures: dict[str, Any]) -> None:
    assert figures["regions"] == ["north", "east", "south", "west"]
    assert figures["same"] is True
    # a row is in one of three parts, each with noise of scale 5 / 0.5; the error holds with 95 %, ten times it always
    three = np.random.default_rng(1).laplace(0, 10, (200_000, 3)).sum(axis=1)
    for answer, error, bounded, true in zip(
        figures["n"], figures["error"], figures["bounded"], figures["true"], strict=True
    ):
        assert error == pytest.approx(np.quantile(np.abs(three), 0.95), abs=1.5)
        assert abs(answer - bounded) <= 10 * error
        assert bounded < true
    assert abs(figures["people"] - figures["true_people"]) <= 10 * figures["people_error"] <= 500
    assert "expected at most what dataset 'visits' has left" in figures["refused"]


def which_accountant(figures: dict[str, Any]) -> None:
    by = figures["epsilon"]
    for i, (epsilon, name) in enumerate(figures["best"]):
        assert epsilon == min(values[i] for values in by.values())
        assert by[name][i] == epsilon
    assert figures["best"][-1][1] == "pld"
    assert by["pld"][-1] < by["renyi"][-1] < by["zcdp"][-1] < by["advanced"][-1] < by["basic"][-1]
    for values in by.values():
        assert values == sorted(values)
    assert figures["factor"] > 1  # a month at these sizes costs more than 2
    assert math.log(20) / figures["needed"] <= 5.01  # the tail of a real Laplace law: exp(-5 epsilon) = 1/20


def gradient_descent(figures: dict[str, Any]) -> None:
    for name, excess in figures["excess"].items():
        assert np.all(np.abs(excess) <= figures["bound"][name])
    assert figures["parabola"] == pytest.approx(0.9**100)
    sgd = figures["sgd"]
    assert sgd["spread"]["constant"] > sgd["spread"]["falling"]  # means of 40 squares, 20 times apart
    for name, excess in sgd["excess"].items():  # the bound is some 20 to 300 times the mean
        assert np.all(excess[10:] <= sgd["bounds"][name][10:])


def descent_illustration(figures: dict[str, Any]) -> None:
    assert figures["reached"] == pytest.approx(1 - 0.8**29)
    assert figures["rms"] == pytest.approx({"constant": 1 / 3, "falling": 0.0890260}, rel=1e-6)
    assert figures["gradients"] == {"GD": 29_000, "SGD": 199}
    for name, seen in figures["ends"].items():  # the data have a fixed seed: no chance is left
        assert seen == pytest.approx(figures["rms"][name], rel=0.2)
    assert [len(trace.iterates) for trace in figures["traces"].values()] == [30, 200, 200, 200]
    middle, spread = figures["laws"]["falling"]
    assert abs(figures["traces"]["falling, random"].last[0] - middle[-1]) < 12 * spread[-1]


def network_weights(figures: dict[str, Any]) -> None:
    laplace, public, training = figures["result"].values()
    assert figures["plain"] > 0.97
    assert max(laplace) < 0.7
    assert min(public) > 0.85
    assert 0.94 < training[-1] < figures["plain"] + 0.005
    assert figures["needed"] > 1000
    for epsilon, guarantee in zip(figures["epsilons"], figures["guarantees"], strict=True):
        assert guarantee.epsilon <= epsilon * (1 + 1e-9)
        assert guarantee.delta <= 1e-5 * (1 + 1e-9)


def daily_reset(figures: dict[str, Any]) -> None:
    for day, exact in figures["exact"].items():
        assert abs(figures["seen"][day] - exact) <= band(figures["phones"], 6)
        assert figures["costs"][day] == pytest.approx(0.5 * day)
        assert exact <= 1 / (1 + math.exp(-0.5 * day))  # no guess about an even bit is better under m epsilon
    assert abs(figures["kept"] - figures["exact"][1]) <= band(figures["phones"], 6)
    assert figures["exact"][365] > 0.999
    assert figures["sure"] == 87


def census_curve(figures: dict[str, Any]) -> None:
    assert figures["epsilons"][0] == 0.1
    for name, rows in figures["rms"].items():
        # 8000 squares of Laplace draws: 10 deviations of their mean
        assert rows[0][3] == pytest.approx(figures["theory"][name][0][3], rel=0.13)
        assert figures["wrong"][name] == sorted(figures["wrong"][name], reverse=True)
    assert figures["theory"]["even"][1][2] < figures["theory"]["all on blocks"][1][2]


def theorem_37(figures: dict[str, Any]) -> None:
    first, last = figures["counts"]
    for name, rows in figures["costs"].items():
        kappa = 0.9 if "h^" in name else 0.0
        assert rows[0]["last"] == pytest.approx(first**kappa)
        assert rows[1]["last"] == pytest.approx(last**kappa)
        assert rows[1]["average"] == pytest.approx(sum(h**kappa for h in range(1, last)))
        assert all(row["composed"] < row["average"] for row in rows)
        assert all(row["guarantee"] <= row["last"] for row in rows)
        assert rows[1]["guarantee"] < 0.7 * rows[1]["last"] or kappa == 0.0
    growth = {name: terms[2][1999] / terms[2][999] for name, terms in figures["terms"].items()}
    constant, falling, growing = growth.values()
    assert constant == pytest.approx(4, rel=0.01)  # N^2
    assert falling == pytest.approx(2**1.5, rel=0.03)  # N^(2 - rho)
    assert growing < 1  # N^(2 - rho - 2 kappa)
    assert figures["direct"] <= 25 / figures["n"]  # Laplace at epsilon 1: 25 scales do not happen


def publish_country(figures: dict[str, Any]) -> None:
    total, error = figures["total"]
    assert figures["records"] == round(total)
    assert abs(total - figures["people"]) < 6.2 * error
    assert figures["clipped"] > 1.5 * figures["people"]
    unbiased, whole = (np.array(figures["rmse"][kind]) for kind in ("unbiased", "whole"))
    assert np.all(whole[-3:] < 0.9 * unbiased[-3:])
    assert abs(figures["covered"][-1] - 0.95) < 0.03  # of 8,192 cells


def synthetic_adult(figures: dict[str, Any]) -> None:
    accuracy = figures["accuracy"]
    assert figures["married_children"] == 0
    assert abs(figures["records"] - figures["people"]) < 0.1 * figures["people"]
    assert accuracy["trained on real"] > accuracy["always the same"] + 0.08
    assert accuracy["trained on synthetic"] > accuracy["trained on real"] - 0.06


def local_emoji(figures: dict[str, Any]) -> None:
    for name, shares in figures["shares"].items():
        assert np.all(np.abs(shares - figures["truth"]) < 7 * figures["standard_error"][name])
    sketch, best = figures["standard_error"].values()
    assert best[-1] < sketch[-1]
    assert figures["fresh"][365] == 365 * figures["fresh"][1]
    assert figures["remembered"][365] == figures["remembered"][1]


def local_domains(figures: dict[str, Any]) -> None:
    assert figures["recall"][-1] == 1.0
    assert figures["recall"][0] < figures["recall"][-1]
    assert sum(figures["false"]) < 3  # one false domain in a search of 50,000
    assert all(abs(z) < 7 for z in figures["errors"][-1])


def local_shuffled_central(figures: dict[str, Any]) -> None:
    rows, seen = figures["standard_error"], figures["seen"]
    for i, n in enumerate(figures["sizes"]):
        assert rows["central"][i] < rows["shuffled"][i] < rows["local"][i]
        assert seen["local"][i] < 7 * rows["local"][i]
        assert seen["shuffled"][i] < 7 * rows["shuffled"][i]
        assert seen["central"][i] < 16 * rows["central"][i]  # Laplace noise: exp(-16 √2) of it is further
        assert rows["central"][i] == pytest.approx(math.sqrt(2) * 20 / n, rel=1e-9)
    assert figures["epsilon0"] == sorted(figures["epsilon0"])


def fresh_noise_averages_away(figures: dict[str, Any]) -> None:
    assert figures["fresh"] > 0.97, "an average of a year of fresh noise is right but once in 10^10"
    assert abs(figures["series"] - figures["most"]) < 0.02 + band(figures["trials"], 1)
    assert figures["most"] < 0.54
    added, lecture, best = figures["bounds"].values()
    assert added == pytest.approx(365)
    assert 100 < best < lecture < added
    lecture_error, fresh_error, series_error = figures["errors"].values()
    assert lecture_error > 1.5 * fresh_error > 1.5 * 3 * series_error


def clinic_year(figures: dict[str, Any]) -> None:
    assert figures["points"] == 2 * 365
    for ward, (value, error) in figures["ends"].items():
        # 3.2 half-widths are 6.2 standard deviations; a few patients are there on more than three days
        assert -3.2 * error < value - figures["truth"][ward] + 40 < 3.2 * error + 80
        assert 3 * error < figures["fresh"]


CHECKS = {
    check.__name__: check
    for check in (
        gradient_descent,
        descent_illustration,
        theorem_37,
        daily_reset,
        census_curve,
        network_weights,
        heavy_hitter,
        pricing,
        election,
        mean_three_ways,
        mean_of_a_sample,
        density_four_ways,
        density_dimensions,
        top_snps,
        reusable_holdout,
        local_sensitivity_leaks,
        pareto_noises,
        mars,
        noisy_std,
        budget_for_life,
        fresh_noise_averages_away,
        clinic_year,
        ask_a_server,
        ask_in_sql,
        which_accountant,
        publish_country,
        synthetic_adult,
        local_emoji,
        local_domains,
        local_shuffled_central,
    )
}


def test_every_example_is_checked():
    assert {path.stem for path in FILES} == set(CHECKS)


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_example(path, tmp_path, capsys, request):
    """Run as the gallery of the site runs it, which is then spared the run; with draws of its own where a base seed is
    given, but those whose figures have no band."""
    if request.config.option.base_seed and path.stem not in SEEDED:
        result = gallery.load(path).main(tmp_path, quick=True)
    else:
        result = gallery.run(path, tmp_path)
        gallery.keep(FOLDER.parent, path, tmp_path, FOLDER.parent / "docs" / "generated" / "gallery-pictures")
    plots = list(tmp_path.iterdir())
    assert [plot.name for plot in plots] == [f"{path.stem}.png"]
    assert plots[0].read_bytes().startswith(b"\x89PNG")
    assert plots[0].stat().st_size > 10_000
    assert len(capsys.readouterr().out.splitlines()) >= 4
    CHECKS[path.stem](result)


@each("path", FILES)
def test_example_is_short_and_explained(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    assert text.startswith('"""')
    assert "pyplot" not in text


def _requirements(names: list[str]) -> set[str]:
    """The packages that these lines of a lock name, as they are imported."""
    result = {re.split(r"[\[<>=~! ]", line, maxsplit=1)[0].lower() for line in names}
    return {{"scikit-learn": "sklearn"}.get(name, name.replace("-", "_")) for name in result}


@each("path", FILES)
def test_what_an_example_imports_is_what_the_demo_installs(path):
    """After ``make demo`` every example runs: its imports, and those of the parts of dither that it uses."""
    root = FOLDER.parent
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    setup = makefile.partition("/run.stamp:")[2].partition("\n\n")[0]
    assert "requirements/run.txt" in setup
    assert re.search(r"^demo: \$\(VENV\)/run.stamp$", makefile, re.MULTILINE)
    lock = (root / "requirements" / "run.txt").read_text(encoding="utf-8").splitlines()
    installed = _requirements([line for line in lock if "==" in line and not line.startswith(" ")]) | {"dither"}
    needed = {"dither.learn": "sklearn"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        modules = [name.name for name in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += (
            [f"dither.{node.attr}"] if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "dp" else []
        )
        for module in modules:
            top = module.partition(".")[0]
            assert top in sys.stdlib_module_names or top in installed, module
            assert needed.get(".".join(module.split(".")[:2]), "numpy") in installed, module
