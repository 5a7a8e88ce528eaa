"""The base classes of scikit-learn that the estimators here are built on, with types: scikit-learn carries none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dither.errors import MissingPackage

if TYPE_CHECKING:
    from typing import Self

    class BaseEstimator:
        """Parameters by name."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the constructor arguments."""

        def set_params(self, **params: Any) -> Self:
            """Change constructor arguments."""

        def __sklearn_clone__(self) -> Self: ...

        def __sklearn_tags__(self) -> Any: ...

    class ClassifierMixin:
        """``score``: the accuracy."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            """Return the accuracy on these rows and labels."""

        def __sklearn_tags__(self) -> Any: ...

    class RegressorMixin:
        """``score``: the coefficient of determination."""

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
            """Return the coefficient of determination on these rows and labels."""

        def __sklearn_tags__(self) -> Any: ...

    class ClassNamePrefixFeaturesOutMixin:
        """Output features named by the class and a number: ``pca0``, ``pca1``, …."""

        def get_feature_names_out(self, input_features: Any = None) -> Any:
            """Return a name for each of the ``_n_features_out`` columns of ``transform``."""

    class OneToOneFeatureMixin:
        """Output features that keep the names of the input."""

        def get_feature_names_out(self, input_features: Any = None) -> Any:
            """Return the names of the features, as they went in."""

    class TransformerMixin:
        """``fit_transform``, and the output container that the user chose."""

        def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
            """Fit, then transform the same rows."""

        def __sklearn_tags__(self) -> Any: ...

    def check_is_fitted(estimator: Any) -> None:
        """Refuse an estimator before its fit."""

    def check_feature_names(estimator: Any, X: Any, *, reset: bool) -> None:
        """Remember the names of the columns, or compare them with those of the fit."""

else:
    try:
        from sklearn.base import (
            BaseEstimator,
            ClassifierMixin,
            ClassNamePrefixFeaturesOutMixin,
            OneToOneFeatureMixin,
            RegressorMixin,
            TransformerMixin,
        )
        from sklearn.utils.validation import check_is_fitted
    except ImportError as missing:
        raise MissingPackage(
            "scikit-learn", "scikit-learn, for dither.learn", "none", "run pip install 'dither[learn]'", name="sklearn"
        ) from missing

    try:
        from sklearn.utils.validation import _check_feature_names as check_feature_names
    except ImportError:  # before 1.6 it was a method

        def check_feature_names(estimator: Any, X: Any, *, reset: bool) -> None:
            """Call the method that scikit-learn had before 1.6 for the same check."""
            estimator._check_feature_names(X, reset=reset)


__all__ = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "ClassifierMixin",
    "OneToOneFeatureMixin",
    "RegressorMixin",
    "TransformerMixin",
    "check_feature_names",
    "check_is_fitted",
]
