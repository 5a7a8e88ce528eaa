"""What ``import dither`` offers, and nothing else: names, examples, annotations, weight."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import subprocess
import sys
import traceback
import typing
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import dither
from dither import errors
from dither.public_module import defining_module
from support import for_each, refuses

DECIDED = {
    "dither": """
        __version__ AccessDenied accounting AddRemove among Answer ApproxDP audit BoundedLaplace BudgetExceeded
        Cancelled Card col connect Connection corr
        count count_distinct course covariance DataIncident DatasetClosed density DitherError Explanation Exponential
        Gaussian Guarantee histogram
        InvalidArgument InvalidData Laplace learn ledger LedgerError local mean median MissingPackage MixedNoise mode
        Neighbors NoisyMax NotPrivate parallel people PermuteAndFlip present Profile publish ProposeTestRelease PureDP
        quantile
        Question RandomizedResponse regression_intercept regression_r2 regression_slope ReleaseOptions ReplaceOne
        ReusableHoldout SampleAndAggregate sensitivity
        sequential ServerUnavailable SmoothNoise SparseVector Staircase stats std stream Table TopK var WrongType ZCDP
    """,
    "accounting": """
        Accountant ACCOUNTANTS advanced amplify Approximate basic Best best_of BoundedRange calibrate Calibration
        Concentrated DiscreteLaplaceNoise epsilon_for_error Event gaussian_delta gaussian_epsilon gaussian_ratio
        gaussian_smooth_delta GaussianNoise heavy_smooth_loss laplace_smooth_delta LaplaceNoise Parallel pld
        PoissonSampled post_process PostProcessed POWERS privacy_curve Pure pure_delta renyi ResponseReport
        Sequential Shuffled shuffled smooth_calibration smooth_scale split to_dp_event widest_beta zcdp
    """,
    "audit": """
        Audit audit Certificate certify measure Measurement multi_row_neighbors Pair Release Replay replay Row Search
        search standard_neighbors
    """,
    "course": """
        find private_bound Result Results results theorem_10 TheoremSGD
    """,
    "density": """
        Density ks_distance release
    """,
    "exact": """
        decimal divide down Enclosure exactly exp exp_neg gumbel_tail heavy_tail log normal_tail outward_max pi
        power_neg root_up square_root up
    """,
    "inference": """
        Around AroundBounded BernsteinInterval bin_numbers combine EXACT Grid halve Interval IntervalEstimate
        level_table levels mean Measured measured mode_probability NoiseLaw outward pair_statistic PairStatistic
        PairSums population_count population_mean population_sum population_variance PopulationCount PopulationVariance
        quotient RankInterval Root Split STANDARD_NORMAL standard_deviation variance wilson WithinBounds
    """,
    "learn": """
        Choice compare Comparison descend descent_bound GaussianNB gradient_descent gradient_variance Huber KMeans
        LinearRegression Logistic LogisticRegression Loss Mean Multinomial noise_for noisy_descent NoisyDescent
        NonPrivate offline_sgd online_sgd PCA PrivacyWarning Ridge ridge_line Schedule select_model SmoothHinge
        Squared StandardScaler stochastic_bound total_spent Trace utility_bound
    """,
    "ledger": """
        Account Charge Entry Ledger open Receipt Released Verified
    """,
    "local": """
        best CountMeanSketch DeviceBudget Distribution HadamardCountMeanSketch HadamardResponse HeavyHitter HeavyHitters
        HeavyHitterSearch LocalDistribution LocalFrequencies LocalHashing LocalMean LocalProtocol Mean PaddedSets
        ProjectiveGeometryResponse RandomizedResponse Recommendation repetition_cost RepetitionCost Reports Server
        SubsetSelection UnaryEncoding
    """,
    "mechanisms": """
        BoundedLaplace ContinuousExponential Exponential Frequencies Gaussian HoldoutAnswer Laplace mean_pieces
        MixedNoise Noise NoisyMax PermuteAndFlip piecewise_constant ProposeTestRelease RandomizedResponse
        ReusableHoldout SampleAndAggregate SmoothNoise SparseVector SparseVectorSession Staircase TopK
    """,
    "stream": """
        Histogram Optimum RunningMean RunningSum Series SeriesAnswer SeriesExplanation SlidingWindow StreamPlan
        ThresholdAlarm TimeSeriesBuilder optimum
    """,
    "present": """
        compare density error_over_time html local_variance noise_beside_data privacy_curve svg trade_off write_html
    """,
    "publish": """
        allocate Allocation Attribute cost_of Domain Estimates ExpectedTable MarginalMechanism MarginalPlan
        plan Plan PlanExplanation public_totals Publication PublicTotals records Residuals Round SumEstimate
        synthesize Synthesis Synthesizer synthetic_plan SyntheticPlan SyntheticRecords table_spec
        TableEstimate TableSpec whole_counts WholeCounts
    """,
    "randomness": """
        bernoulli bernoulli_exp BLOCK discrete_gaussian discrete_gaussian_one discrete_laplace discrete_laplace_one
        draw_one drawn_from Exponential exponential_race geometric Gumbel HeavyTail integer_steps is_secure is_seeded
        noisy_top_k Law LazyUniform mark MAX_SCALE MIN_SCALE Normal resolve round_nearest round_nearest_all
        SeededSource Source spacing SPLIT_SCALE Staircase Student SYSTEM SystemSource trial trials truncated_tail
        uniform_integer uniform_integers Variate
    """,
    "sensitivity": """
        count distance_to_exceed histogram linear local_median local_order max mean median min sampled smooth_iqr
        smooth_max smooth_mean smooth_median smooth_min smooth_order smooth_quantile smooth_trimmed_mean std sum var
    """,
    "stats": """
        count Estimate EstimateFloat EstimateInt Histogram histogram iqr max mean median min mode quantile quantiles
        std sum var
    """,
}
"""The public names of every package, as they were decided: a new one is added here, and to the docs."""

FLOORS = ("exact", "inference", "randomness")
"""Packages below the public face: their names are asserted, but users get them through mechanisms and statistics."""

VALUES = (
    "__version__",
    "ACCOUNTANTS",
    "POWERS",
    "AddRemove",
    "ReplaceOne",
    "basic",
    "advanced",
    "zcdp",
    "renyi",
    "pld",
)
"""Public names that are values, described by their module or their class."""

SHOWN_BY_THE_PACKAGE = ("dither.ledger.Ledger", "dither.ledger.Released", "dither.ledger.Verified")
"""Classes that users never build themselves: the example of their package shows them."""

SHADOWING = ["max", "min", "open", "sum"]
HEAVY = ["scipy", "pandas", "polars", "matplotlib", "sklearn", "duckdb", "ibis", "typer", "rich", "mpmath", "torch"]


def package(name: str) -> ModuleType:
    return dither if name == "dither" else importlib.import_module(f"dither.{name}")


def public() -> dict[str, Any]:
    """Every public object of the face by its full name."""
    result = {f"dither.{name}": getattr(dither, name) for name in SHADOWING}
    for place in DECIDED.keys() - {*FLOORS}:
        module = package(place)
        names = [name for name in module.__all__ if name not in VALUES]
        result |= {f"{module.__name__}.{name}": getattr(module, name) for name in names}
    return dict(sorted(result.items()))


PUBLIC = public()
CALLABLES = {name: value for name, value in PUBLIC.items() if callable(value)}
CLASSES = {name: value for name, value in PUBLIC.items() if inspect.isclass(value)}


def methods(owner: type) -> dict[str, Any]:
    return {
        f"{owner.__name__}.{name}": inspect.unwrap(getattr(value, "__func__", getattr(value, "fget", value)))
        for base in owner.__mro__
        if base.__module__.partition(".")[0] == "dither"
        for name, value in vars(base).items()
        if not name.startswith("_")
        and (inspect.isfunction(getattr(value, "__func__", value)) or isinstance(value, property))
    }


def test_all_is_what_was_decided():
    def check(place, names):
        module = package(place)
        assert sorted(module.__all__) == sorted(names.split())
        assert len(set(module.__all__)) == len(module.__all__)
        for name in module.__all__:
            assert getattr(module, name) is not None

    for_each(DECIDED.items(), check)


def test_every_package_has_decided_its_names():
    folder = Path(dither.__file__).parent
    inner = {
        "cli",
        "client",
        "release",
        "server",
        "tables",
        "wire",
    }  # commands, and rooms whose public classes are dither's own
    assert {path.parent.name for path in folder.glob("*/__init__.py")} - inner == DECIDED.keys() - {"dither"}


def test_dir_lists_every_public_name_and_no_other():
    assert dir(dither) == sorted({*dither.__all__, *SHADOWING})
    for name in dir(dither):
        assert getattr(dither, name) is not None
    assert not {*SHADOWING} & {*dither.__all__}  # a star should not hide Python's own


def test_dir_of_a_package_lists_its_public_names_and_no_submodule():
    def check(place):
        assert dir(package(place)) == sorted(package(place).__all__)

    for_each(sorted(DECIDED.keys() - {"dither"}), check)


def test_type_hints_of_every_public_callable_can_be_read():
    def check(name, value):
        typing.get_type_hints(value)
        for function in [*methods(value).values(), value.__init__] if inspect.isclass(value) else []:
            typing.get_type_hints(function)

    for_each(CALLABLES.items(), check)


def test_classes_are_named_by_their_public_home():
    def check(name, kind):
        home, _, short = name.rpartition(".")
        shorter = home != "dither" and short in dither.__all__ and getattr(dither, short) is kind
        assert kind.__module__ == ("dither" if shorter else home)
        assert kind.__qualname__ == short
        assert getattr(importlib.import_module(kind.__module__), short) is kind  # so that pickle finds it
        assert vars(sys.modules[defining_module(kind)])[short] is kind

    for_each(CLASSES.items(), check)


def test_a_type_and_an_error_are_printed_by_their_public_names():
    assert repr(dither.Laplace) == "<class 'dither.Laplace'>"
    assert repr(dither.stats.Histogram) == "<class 'dither.stats.Histogram'>"
    with refuses(dither.InvalidArgument) as refused:
        dither.Laplace(1, -1)
    assert "".join(traceback.format_exception_only(refused.value)).startswith("dither.InvalidArgument: epsilon")


def test_nothing_else_looks_public():
    offered = {name for name in vars(dither) if not name.startswith("_")}
    modules = {name for name in offered if isinstance(getattr(dither, name), ModuleType)}
    assert offered - modules <= set(dither.__all__)


def test_every_public_name_has_a_docstring_with_an_example():
    def check(name, value):
        text = inspect.getdoc(value) or ""
        assert text
        if name in SHOWN_BY_THE_PACKAGE:
            text = inspect.getdoc(importlib.import_module(name.rpartition(".")[0])) or ""
        assert doctest.DocTestParser().get_examples(text), f"{name} has no runnable example"

    for_each(PUBLIC.items(), check)


def test_every_public_callable_is_fully_annotated():
    def check(label, function):
        signature = inspect.signature(function)
        assert signature.return_annotation is not inspect.Signature.empty
        for parameter in signature.parameters.values():
            if parameter.name not in ("self", "cls"):
                assert parameter.annotation is not inspect.Parameter.empty, parameter.name

    functions = [(name, value) for name, value in CALLABLES.items() if inspect.isfunction(value)]
    for_each([*functions, *(item for kind in CLASSES.values() for item in methods(kind).items())], check)


def test_every_public_method_says_what_it_does():
    def check(name, owner):
        for label in methods(owner):
            assert inspect.getdoc(getattr(owner, label.split(".")[1])), label

    for_each(CLASSES.items(), check)


@pytest.mark.slow
def test_import_brings_in_nothing_heavy():
    code = "import sys, json, dither; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert not loaded & {"numpy", *HEAVY}


def test_the_tree_of_errors_in_words_is_the_tree_of_errors():
    def below(kind: type) -> set[type]:
        return {kind}.union(*(below(child) for child in kind.__subclasses__()))

    defined = {kind: defining_module(kind) for kind in below(dither.DitherError)}
    kinds = {kind for kind, home in defined.items() if home.startswith("dither.") and "dither.server" not in home}
    for kind in kinds:
        assert kind.__name__ in (errors.__doc__ or "")
        state = (
            dither.AccessDenied,
            dither.BudgetExceeded,
            dither.Cancelled,
            dither.DataIncident,
            dither.DatasetClosed,
            dither.LedgerError,
            dither.MissingPackage,
            dither.ServerUnavailable,
        )
        if kind is not dither.DitherError and not issubclass(kind, state):  # not of an argument's making
            assert issubclass(kind, (ValueError, TypeError))
        for base in (ValueError, TypeError):
            line = next(line for line in (errors.__doc__ or "").splitlines() if kind.__name__ in line)
            assert (base.__name__ in line) == issubclass(kind, base)


def test_relations_and_version_are_what_they_say():
    assert dither.AddRemove is dither.Neighbors.AddRemove
    assert dither.ReplaceOne is dither.Neighbors.ReplaceOne
    assert dither.__version__.count(".") == 2


@pytest.mark.parametrize("name", ["count", "sum", "mean", "var", "std", "median", "min", "max", "histogram"])
def test_every_statistic_takes_the_same_arguments_in_the_same_order(name):
    parameters = list(inspect.signature(getattr(dither.stats, name)).parameters.values())
    order = ["x", "bounds", "epsilon", "delta", "bins", "neighbors", "nan", "method", "interval", "source"]
    names = [parameter.name for parameter in parameters]
    assert names == [item for item in order if item in names]
    keyword = [parameter.name for parameter in parameters if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    assert {"neighbors", "nan", "source"} <= set(keyword)


def test_among_states_the_keys_of_one_question():
    rows = pa.table({"region": ["north", "south"] * 50})
    with dither.open(rows, budget=dither.PureDP(10)) as people:
        answer = people.group_by(dither.among("region", ["north", "west"])).agg(n=dither.count()).release(epsilon=1)
    assert [row["region"] for row in answer.dicts()] == ["north", "west"]
