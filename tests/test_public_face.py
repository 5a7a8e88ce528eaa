"""What ``import dither`` offers, and nothing else: names, examples, annotations, weight."""

from __future__ import annotations

import doctest
import inspect
import json
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

import dither
from dither import errors

NAMES = [
    "ZCDP", "AddRemove", "ApproxDP", "BoundedLaplace", "BudgetExceeded", "DataIncident", "DatasetClosed", "DitherError",
    "Exponential", "Gaussian", "Guarantee", "InvalidArgument", "InvalidData", "Laplace", "LedgerError",
    "MixedNoise", "Neighbors", "NoisyMax", "NotPrivate", "PermuteAndFlip",
    "ProposeTestRelease", "PureDP", "RandomizedResponse", "ReplaceOne", "ReusableHoldout", "SampleAndAggregate",
    "SmoothNoise", "SparseVector", "Staircase", "TopK", "WrongType",
    "__version__", "accounting", "audit", "col", "count", "density", "histogram", "learn",
    "ledger", "mean", "median", "mode", "people",
    "quantile", "report", "std", "var", "parallel", "sensitivity", "sequential", "stats",
]  # fmt: skip
STATISTICS = [
    "Estimate", "EstimateFloat", "EstimateInt", "Histogram", "count", "histogram", "iqr", "max", "mean", "median",
    "min", "mode", "quantile", "quantiles", "std", "sum", "var", "variance",
]  # fmt: skip
SENSITIVITIES = [
    "count", "distance_to_exceed", "histogram", "linear", "local_median", "local_order", "maximum", "mean", "median",
    "minimum", "smooth_iqr", "smooth_max", "smooth_mean", "smooth_median", "smooth_min", "smooth_order",
    "smooth_quantile", "smooth_trimmed_mean", "std", "sum", "variance",
]  # fmt: skip
ACCOUNTING = [
    "ACCOUNTANTS", "POWERS", "Accountant", "Approximate", "Best", "BoundedRange", "Calibration", "Concentrated",
    "DiscreteLaplaceNoise", "Event", "GaussianNoise", "LaplaceNoise", "Parallel", "PoissonSampled", "PostProcessed",
    "Pure", "ResponseReport", "Sequential", "advanced", "amplify", "basic", "best_of", "calibrate", "epsilon_for_error",
    "gaussian_delta", "gaussian_epsilon", "gaussian_ratio", "gaussian_smooth_delta", "heavy_smooth_loss",
    "laplace_smooth_delta", "pld", "post_process", "privacy_curve", "pure_delta", "renyi", "smooth_calibration",
    "smooth_scale", "split", "to_dp_event", "zcdp",
]  # fmt: skip
AUDIT = [
    "Audit", "Certificate", "Measurement", "Pair", "Release", "Replay", "Row", "Search", "audit", "certify",
    "measure", "multi_row_neighbors", "replay", "search", "standard_neighbors",
]  # fmt: skip
LEARN = [
    "Choice", "Comparison", "GaussianNB", "Huber", "KMeans", "LinearRegression", "Logistic", "LogisticRegression",
    "Loss", "Mean", "Multinomial", "NoisyDescent", "NonPrivate", "PCA", "PrivacyWarning", "Ridge", "Schedule",
    "SmoothHinge", "Squared", "StandardScaler", "TheoremSGD", "Trace", "compare", "descend", "descent_bound",
    "gradient_descent",
    "gradient_variance", "noise_for", "noisy_descent", "offline_sgd", "online_sgd", "private_bound", "ridge_line",
    "select_model", "stochastic_bound", "total_spent", "utility_bound",
]  # fmt: skip
HEAVY = ["scipy", "pandas", "polars", "matplotlib", "sklearn", "duckdb", "ibis", "typer", "rich", "mpmath", "torch"]


def public() -> dict[str, Any]:
    """Every public object by its full name; values such as AddRemove are described by their module."""
    result = {f"dither.{name}": getattr(dither, name) for name in dither.__all__ if name != "__version__"}
    for module in (dither.stats, dither.sensitivity, dither.accounting, dither.audit, dither.learn):
        names = [name for name in module.__all__ if name not in ("ACCOUNTANTS", "POWERS")]  # values
        result |= {f"{module.__name__}.{name}": getattr(module, name) for name in names}
    return result


def methods(owner: type) -> dict[str, Any]:
    return {
        f"{owner.__name__}.{name}": inspect.unwrap(getattr(value, "__func__", getattr(value, "fget", value)))
        for base in owner.__mro__
        if base.__module__.startswith("dither")
        for name, value in vars(base).items()
        if not name.startswith("_")
        and (inspect.isfunction(getattr(value, "__func__", value)) or isinstance(value, property))
    }


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (dither, NAMES),
        (dither.stats, STATISTICS),
        (dither.sensitivity, SENSITIVITIES),
        (dither.accounting, ACCOUNTING),
        (dither.audit, AUDIT),
        (dither.learn, LEARN),
    ],
    ids=["dither", "stats", "sensitivity", "accounting", "audit", "learn"],
)
def test_all_is_what_was_decided(module, names):
    assert sorted(module.__all__) == sorted(names)
    assert len(set(module.__all__)) == len(module.__all__)
    for name in names:
        assert hasattr(module, name)


def test_nothing_else_looks_public():
    offered = {name for name in vars(dither) if not name.startswith("_")}
    modules = {name for name in offered if isinstance(getattr(dither, name), ModuleType)}
    assert offered - modules <= set(dither.__all__)


@pytest.mark.parametrize("name", public())
def test_every_public_name_has_a_docstring_with_an_example(name):
    text = inspect.getdoc(public()[name]) or ""
    assert text
    assert doctest.DocTestParser().get_examples(text), f"{name} has no runnable example"


@pytest.mark.parametrize("name", [name for name, value in public().items() if callable(value)])
def test_every_public_callable_is_fully_annotated(name):
    value = public()[name]
    callables = {name: value} if inspect.isfunction(value) else methods(value) if inspect.isclass(value) else {}
    for label, function in callables.items():
        signature = inspect.signature(function)
        assert signature.return_annotation is not inspect.Signature.empty, label
        for parameter in signature.parameters.values():
            if parameter.name not in ("self", "cls"):
                assert parameter.annotation is not inspect.Parameter.empty, f"{label}({parameter.name})"


@pytest.mark.parametrize("name", [name for name, value in public().items() if inspect.isclass(value)])
def test_every_public_method_says_what_it_does(name):
    owner = public()[name]
    for label in methods(owner):
        assert inspect.getdoc(getattr(owner, label.split(".")[1])), label


def test_import_brings_in_nothing_heavy():
    code = "import sys, json, dither; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert "numpy" in loaded
    assert not loaded & set(HEAVY)


def test_the_tree_of_errors_in_words_is_the_tree_of_errors():
    def below(kind: type) -> set[type]:
        return {kind}.union(*(below(child) for child in kind.__subclasses__()))

    kinds = {kind for kind in below(dither.DitherError) if kind.__module__.startswith("dither.")}
    for kind in kinds:
        assert kind.__name__ in (errors.__doc__ or "")
        state = (
            dither.BudgetExceeded,
            dither.DataIncident,
            dither.DatasetClosed,
            dither.LedgerError,
            errors.MissingPackage,
        )
        if kind not in (dither.DitherError, *state):  # not of an argument's making
            assert issubclass(kind, (ValueError, TypeError))
        for base in (ValueError, TypeError):
            line = next(line for line in (errors.__doc__ or "").splitlines() if kind.__name__ in line)
            assert (base.__name__ in line) == issubclass(kind, base)


def test_relations_and_version_are_what_they_say():
    assert dither.AddRemove is dither.Neighbors.AddRemove
    assert dither.ReplaceOne is dither.Neighbors.ReplaceOne
    assert dither.__version__.count(".") == 2


@pytest.mark.parametrize("name", ["count", "sum", "mean", "variance", "std", "median", "min", "max", "histogram"])
def test_every_statistic_takes_the_same_arguments_in_the_same_order(name):
    parameters = list(inspect.signature(getattr(dither.stats, name)).parameters.values())
    order = ["x", "bounds", "epsilon", "delta", "bins", "neighbors", "nan", "method", "source"]
    names = [parameter.name for parameter in parameters]
    assert names == [item for item in order if item in names]
    keyword = [parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    assert {"neighbors", "nan", "source"} <= set(keyword)
