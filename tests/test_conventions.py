"""One name, one order and one default for each argument, over the whole public face; exceptions state their reason.

The table of CONTRIBUTING.md, "Argument conventions", says the same in words.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import dither as dp
from support import for_each

CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
PACKAGES = [
    "accounting",
    "audit",
    "course",
    "density",
    "learn",
    "ledger",
    "mechanisms",
    "present",
    "publish",
    "sensitivity",
    "stats",
]
EMPTY = inspect.Parameter.empty

INSTEAD = {  # another name for the same thing, and the name that is used
    "eps": "epsilon", "chance": "delta",
    "relation": "neighbors", "neighbours": "neighbors", "adjacency": "neighbors",
    "rng": "source", "random_state": "source", "generator": "source", "seed": "source",
    "at": "q", "qs": "q", "quantile": "q", "percentile": "q", "fraction": "q",
    "lower": "bounds", "upper": "bounds", "low": "bounds", "high": "bounds", "range": "bounds", "limits": "bounds",
    "minimum": "min", "maximum": "max", "level": "confidence",
    "labels": "categories", "options": "candidates", "choices": "candidates",
}  # fmt: skip
REASONS = {  # where a name that is elsewhere another's is right
    ("dither.ledger.Ledger.create", "limits"): "limits on what may be spent, not bounds of values",
    ("dither.ledger.Ledger.ensure", "limits"): "the same",
    ("dither.BoundedLaplace", "lower"): "limits of the law itself, not a range that data are clipped to",
    ("dither.BoundedLaplace", "upper"): "the same",
    ("dither.BoundedLaplace.for_error", "lower"): "as the constructor",
    ("dither.BoundedLaplace.for_error", "upper"): "as the constructor",
    ("dither.audit.certify", "at"): "the epsilon at which delta is bounded, not a quantile",
    ("dither.audit.Certificate", "at"): "the same",
    ("dither.audit.Certificate.of", "at"): "the same",
    ("dither.ledger.Entry", "at"): "when the entry was made, not a quantile",
    ("dither.learn.compare", "seed"): "which rows are held out, by scikit-learn: no noise",
    ("dither.Question.explain", "options"): "the options of a release, not candidates",
    ("dither.Question.plan", "options"): "the same",
    ("dither.Question.release", "options"): "the same",
}  # fmt: skip
RELATIONS = {  # the default of ``neighbors`` in each package, and why
    "dither.stats": (dp.ReplaceOne, "one column with a public number of records, as in most textbooks"),
    "dither.density": (dp.ReplaceOne, "the same"),
    "dither.sensitivity": (EMPTY, "a sensitivity has no default relation"),
    "dither.audit": (EMPTY, "which neighbors are tried must be said"),
    "dither.mechanisms": (EMPTY, "a mechanism knows sensitivities, not relations"),
    "dither": (EMPTY, "the same"),
    "dither.learn": (None, "None is AddRemove: the number of rows is private; recorded requests hold the None"),
    "dither.accounting": (dp.AddRemove, "Poisson samples have a private size"),
}
OTHER_RELATIONS = {
    "dither.audit.search": "None: only pairs that are generated need a relation, not those that are passed",
    "dither.density.Density": "what was used, not what to use",
    "dither.stats.Histogram": "what was used, not what to use",
    "dither.stats.Estimate.of": "what was used, not what to use",
    "dither.stats.EstimateInt.of": "what was used, not what to use",
    "dither.stats.EstimateFloat.of": "what was used, not what to use",
}
OPTIONAL = {  # where a required argument has a default
    "dither.Gaussian": "epsilon and delta, or rho",
    "dither.ReleaseOptions": "epsilon, or an error, or an epsilon in the question",
    "dither.Question.release": "the same",
    "dither.Question.explain": "the same",
    "dither.Question.plan": "the same",
    "dither.Table.over": "epsilon and delta, or rho",
    "dither.Table.profile": "epsilon and delta, or rho",
    "dither.publish.Plan.release": "epsilon and delta, or rho, or the budget of the plan",
    "dither.publish.Plan.explain": "the same",
    "dither.publish.Plan.guarantee": "the same",
    "dither.publish.Synthesizer": "bounds of dates; those that have none are inside their periods",
    "dither.open": "bounds by column; columns without them can be counted only",
    "dither.audit.search": "bounds are for generated pairs",
    "dither.corr": "bounds of columns are in the card",
    "dither.covariance": "bounds of columns are in the card",
    "dither.regression_intercept": "bounds of columns are in the card",
    "dither.regression_r2": "bounds of columns are in the card",
    "dither.regression_slope": "bounds of columns are in the card",
    "dither.mechanisms.ContinuousExponential": "pieces may have bounds of their own",
    "dither.SmoothNoise.certificate": "the mechanism's own epsilon by default",
    "dither.sum": "by default those of the card", "dither.mean": "the same", "dither.var": "the same",
    "dither.std": "the same", "dither.min": "the same", "dither.max": "the same", "dither.median": "the same",
    "dither.quantile": "the same",
}  # fmt: skip
POSITIONAL_SOURCE = {
    "dither.mechanisms.SparseVectorSession": "made by SparseVector.start",
    "dither.open": "where the rows are, not where random words come from",
    "dither.Card": "the same",
    "dither.Table": "the same",
}
ORDER = ["x", "q", "k", "categories", "candidates", "sensitivity", "bounds", "epsilon", "delta"]
OTHER_ORDER = {
    "dither.RandomizedResponse": "categories have a default, two",
    "dither.accounting.ResponseReport": "as the mechanism",
    "dither.mechanisms.ContinuousExponential": "bounds have a default, those of the pieces",
}


def callables() -> dict[str, Any]:
    """Every public function, constructor and method by its full name; methods of Python's own types left out."""
    result: dict[str, Any] = {}
    for module in (dp, *(importlib.import_module(f"dither.{name}") for name in PACKAGES)):
        for name in dir(dp) if module is dp else module.__all__:
            thing = getattr(module, name)
            if inspect.ismodule(thing) or not callable(thing):
                continue
            if not inspect.isclass(thing):
                result[f"{module.__name__}.{name}"] = thing
                continue
            home = f"{thing.__module__}.{name}"
            result[home] = thing
            for method, value in inspect.getmembers(thing, callable):
                if not method.startswith("_") and not hasattr(object, method) and _written_here(thing, method):
                    result[f"{home}.{method}"] = value
    return result


def _written_here(kind: type, method: str) -> bool:
    owner = next((base for base in kind.__mro__ if method in vars(base)), kind)
    return owner.__module__.partition(".")[0] == "dither" and not hasattr(int, method) and not hasattr(float, method)


def parameters(thing: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(thing).parameters)
    except (TypeError, ValueError):  # a built-in type
        return {}


CALLABLES = callables()
ALL = {name: parameters(thing) for name, thing in CALLABLES.items()}


def having(*names: str) -> list[tuple[str, inspect.Parameter]]:
    """Every public callable that has a parameter of one of these names, and that parameter."""
    return [(name, ALL[name][parameter]) for name in sorted(ALL) for parameter in names if parameter in ALL[name]]


def is_estimator(name: str) -> bool:
    """Estimators of scikit-learn have a default for every parameter; a fit refuses ``bounds=None``."""
    return hasattr(CALLABLES[name], "get_params")


def test_one_thing_has_one_name():
    def check(name, parameter):
        assert (name, parameter.name) in REASONS, f"{parameter.name}: say {INSTEAD[parameter.name]}"

    for_each(having(*INSTEAD), check)


def test_the_default_relation_is_that_of_the_package():
    def check(name, neighbors):
        package = max((place for place in RELATIONS if name.startswith(f"{place}.")), key=len)
        assert neighbors.default is RELATIONS[package][0] or name in OTHER_RELATIONS

    for_each(having("neighbors"), check)


def test_required_arguments_are_required():
    def check(name, parameter):
        if name in OPTIONAL or is_estimator(name) or name.startswith("dither.ledger."):
            return
        if name.startswith(("dither.SparseVector", "dither.RandomizedResponse")):
            return  # two categories, one answer: the textbook's defaults
        assert parameter.default is EMPTY, f"{parameter.name} has a default"

    for_each(having("sensitivity", "bounds", "epsilon", "q", "categories", "limit"), check)


def test_sources_relations_and_policies_are_given_by_name():
    def check(name, parameter):
        if name not in POSITIONAL_SOURCE:
            assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
            assert parameter.default is not EMPTY

    for_each(having("source", "nan"), check)


def test_the_order_is_data_then_bounds_then_epsilon_then_delta():
    def check(name):
        order = [
            parameter.name
            for parameter in ALL[name].values()
            if parameter.name in ORDER and parameter.kind is not inspect.Parameter.KEYWORD_ONLY
        ]
        assert order == sorted(order, key=ORDER.index) or name in OTHER_ORDER

    for_each(sorted(ALL), check)


def test_confidence_has_one_default():
    def check(name, confidence):
        if name.rpartition(".")[2] in ("error", "for_error", "interval", "rank_error"):
            assert confidence.default == 0.95

    for_each(having("confidence"), check)


def test_weights_are_given_by_name_with_one_default():
    def check(name, weight):
        # the weight of a loss, and of a table with its own target beside it, are not shares of the budget
        if name not in ("dither.learn.Squared", "dither.publish.TableSpec"):
            assert weight.kind is inspect.Parameter.KEYWORD_ONLY
            assert weight.default is None

    for_each(having("weight"), check)


def test_what_adds_noise_releases_and_what_chooses_selects():
    mechanisms = {name: kind for name, kind in vars(dp.mechanisms).items() if inspect.isclass(kind)}
    selecting = {name for name, kind in mechanisms.items() if hasattr(kind, "select")}
    releasing = {name for name, kind in mechanisms.items() if hasattr(kind, "release")}
    asking = {name for name, kind in mechanisms.items() if hasattr(kind, "ask") or hasattr(kind, "start")}
    assert selecting == {"Exponential", "NoisyMax", "PermuteAndFlip", "TopK"}
    assert not selecting & releasing
    assert asking == {"SparseVector", "SparseVectorSession", "ReusableHoldout"}
    assert not asking & (selecting | releasing)
    for name in selecting:
        assert list(parameters(mechanisms[name].select))[1:3] == ["candidates", "scores"]
    for name in releasing - {"ContinuousExponential"}:  # which releases a point of a density, given in pieces
        assert list(parameters(mechanisms[name].release))[1] == "value"


def test_keys_categories_and_classes_are_three_things():
    """Keys are values of a column of a table, categories of an array, classes the labels of a classifier."""
    where = {word: {name for name in ALL if word in ALL[name]} for word in ("keys", "categories", "classes")}
    attributes = {f"dither.publish.Attribute{name}" for name in ("", ".flat", ".nested")}
    assert where["keys"] == {"dither.among", "dither.open", "dither.mode", *attributes}
    homes = ("dither.stats.", "dither.RandomizedResponse", "dither.accounting.")
    assert all(name.startswith(homes) for name in where["categories"])
    assert all(name.startswith("dither.learn.") for name in where["classes"])


def test_every_exception_is_about_something_that_is_there():
    for name, parameter in REASONS:
        assert parameter in ALL[name]
    for name in {*OTHER_RELATIONS, *OPTIONAL, *POSITIONAL_SOURCE, *OTHER_ORDER}:
        assert name in ALL


def test_contributing_has_the_table():
    text = CONTRIBUTING.read_text(encoding="utf-8")
    table = text[text.index("## Argument conventions") :]
    documented = set(re.findall(r"`(\w+)`", table))
    words = {"epsilon", "delta", "bounds", "neighbors", "source", "q", "keys", "categories", "classes", "weight"}
    assert (
        words | {"confidence", "select", "release", "lower", "upper", "n", "nan", "candidates", "scores"} <= documented
    )
