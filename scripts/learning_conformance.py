"""Which checks of scikit-learn fail without a seed, and why: a private fit is not the same twice.

    python scripts/learning_conformance.py              # epsilon = 1
    python scripts/learning_conformance.py --epsilon 100

Every estimator of ``dither.learn`` goes through ``check_estimator`` with real noise. A check that fails is one of
three: a *departure*, which asks for something that would tell of a record (tests/learn/conformance.py); a *comparison*
of two fits, whose noise differs; or one of *quality*, which wants a fit to be good on a few dozen records.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter

from sklearn.utils.estimator_checks import check_estimator

from dither import learn

DEPARTURES = ("check_estimators_empty_data_messages", "check_supervised_y_no_nan", "check_dtype_object")
QUALITY = (
    "check_classifiers_train",
    "check_classifiers_classes",
    "check_classifiers_one_label",
    "check_clustering",
    "check_regressors_train",
    "check_estimators_overwrite_params",
    "check_class_weight_classifiers",
)


def estimators(epsilon: float) -> list[object]:
    """One of each kind."""
    common = {"epsilon": epsilon, "bounds": (-20, 20)}
    return [
        learn.Mean(**common),
        learn.StandardScaler(**common),
        learn.PCA(**common),
        learn.KMeans(**common),
        learn.LinearRegression(**common, label_bounds=(-20, 20)),
        learn.Ridge(**common, label_bounds=(-20, 20)),
        learn.LogisticRegression(**common, classes="observed"),
        learn.GaussianNB(**common, classes="observed"),
    ]


def kind_of(name: str) -> str:
    """Why a check fails."""
    if name in DEPARTURES:
        return "departure"
    return "quality" if name in QUALITY else "comparison of fits"


def main() -> None:
    """Print what fails, by check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args()
    total, found = 0, Counter[tuple[str, str]]()
    for estimator in estimators(options.epsilon):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = check_estimator(estimator, on_skip=None, on_fail=None)
        total += len(results)
        failed = [result["check_name"] for result in results if result["status"] == "failed"]
        found.update((kind_of(name), name) for name in failed)
        print(f"{type(estimator).__name__}: {len(failed)} of {len(results)} fail")
    print(f"epsilon = {options.epsilon:g}: {sum(found.values())} of {total} fail")
    for (kind, name), count in sorted(found.items()):
        print(f"  {kind}: {name} ({count})")


if __name__ == "__main__":
    main()
