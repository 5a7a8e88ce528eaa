"""The base of the private estimators: public bounds, one budget, one charge, and a stated guarantee.

The order of a fit: parameters are checked, the data enter through :mod:`dither.learn.inputs` (which looks at declared
types and shapes alone), the ledger scope that is open, if any, is charged, and only then is anything computed that
depends on a value in the data. A fit computes in :meth:`PrivateEstimator._released`, from rows clipped to the public
bounds and a :class:`~dither.learn.budget.GaussianBudget`. The result is a dict of arrays and numbers, which become the
attributes of the estimator, so that a ledger can record it and give it again. A scope holds for the thread that opened
it: fits in other threads or processes (``n_jobs`` above 1 in scikit-learn) do not see it, and are not charged.

No outcome but the noisy one depends on a value, nor, where one record may be added or removed, on the number of rows:
a cell that is missing (None, NaN, text) counts as the middle of its bounds, and a table without rows is fitted like any
other. Impute by a public rule of your own before, if the middle is not what you want.

The cost of several fits
------------------------
``guarantee_`` is the cost of one fit. scikit-learn's searches and cross-validation fit clones of an estimator, many
times, and each fit costs what it states. With a ledger scope open each is charged. Elsewhere they are not added up, so
an estimator remembers, together with its clones, what was fitted (:attr:`PrivateEstimator.total_guarantee`), and warns
once when a second fit is not charged. :func:`total_spent` adds up all fits in a block, of whichever estimators.

It is counted as if all fits were to the same records, each of them once: costs add up. Fits in other processes, or in
threads started in the block (``n_jobs`` above 1), are not seen by it. *A sample with replacement*, which is the default
of ``BaggingClassifier``, gives a record to one fit several times, and that fit then costs the person that many times
what it states. No fit can tell, since equal rows may be different people: pass ``bootstrap=False``.

>>> from dither.learn import Mean, Ridge
>>> X = np.linspace(0, 1, 50)[:, np.newaxis]
>>> with total_spent() as total:
...     _ = Mean(epsilon=1, bounds=(0, 1)).fit(X)
...     _ = Ridge(epsilon=0.5, bounds=(0, 1), label_bounds=(0, 1)).fit(X, X[:, 0])
>>> total.fits, total.guarantee
(2, ApproxDP(1.5, 2e-05))

The base classes of scikit-learn that the estimators here are built on, with types: scikit-learn carries none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Self, TypeVar
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.accounting import Approximate, Event, Pure
from dither.budget_hooks import covered, current_spender, spends
from dither.errors import InvalidArgument, InvalidData, MissingPackage, NotPrivate, WrongType
from dither.guarantees import ApproxDP, Guarantee, PureDP
from dither.learn import inputs
from dither.learn.budget import Floats, GaussianBudget
from dither.neighbors import AddRemove, Neighbors, relation
from dither.randomness import SeededSource, Source, resolve

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


T = TypeVar("T")
Limits = tuple[Floats, Floats]
"""The public lower and upper limits of each column."""


class PrivacyWarning(UserWarning):
    """A warning that something costs more privacy than a single number shows.

    >>> issubclass(PrivacyWarning, UserWarning)
    True
    """


@dataclass
class Total:
    """The number of fits and their total guarantee, which is None before the first."""

    fits: int = 0
    warned: bool = False
    costs: list[Guarantee] = field(default_factory=list, repr=False)

    def add(self, guarantee: Guarantee) -> None:
        """Count one fit that cost ``guarantee``."""
        self.fits += 1
        self.costs.append(guarantee)

    @property
    def guarantee(self) -> Guarantee | None:
        """Return the sum over all fits, None before the first.

        It is refused, when it is read, where no guarantee can represent so large a sum.
        """
        try:
            return sum(self.costs[1:], self.costs[0]) if self.costs else None
        except InvalidArgument:
            pass
        raise NotPrivate(
            "total",
            "a total of at most epsilon = 1e+06 and delta below 1",
            f"{self.fits} fits that cost more",
            "fit fewer times, or with a smaller epsilon",
        )


_OPEN: ContextVar[tuple[Total, ...]] = ContextVar("dither_totals", default=())
_LINEAGE = "_lineage"


@contextmanager
def total_spent() -> Iterator[Total]:
    """Add up the guarantees of all fits in the block; nothing is charged and nothing refused.

    >>> with total_spent() as total:
    ...     pass
    >>> total.guarantee
    """
    total = Total()
    token = _OPEN.set((*_OPEN.get(), total))
    try:
        yield total
    finally:
        _OPEN.reset(token)


def count_fit(estimator: Any, guarantee: Guarantee, *, charged: bool) -> None:
    """Add the ``guarantee`` of a fit to the running totals, and warn once about fits that nobody charges.

    A fit counts for its estimator together with all clones, and for every open :func:`total_spent`. The warning comes
    at a second fit that no ledger charged (``charged`` is false) while no such scope is open.
    """
    lineage: Total = vars(estimator).setdefault(_LINEAGE, Total())
    lineage.add(guarantee)
    for total in _OPEN.get():
        total.add(guarantee)
    if lineage.fits > 1 and not (charged or _OPEN.get() or lineage.warned):
        lineage.warned = True
        warn(
            f"{type(estimator).__name__} and its clones are being fitted again, and no ledger scope is open. Each fit "
            f"costs {guarantee}, which is all that guarantee_ states; on the same records they add up. See "
            "total_guarantee, or fit inside 'with dither.learn.total_spent() as total:' or a ledger scope.",
            PrivacyWarning,
            stacklevel=5,
        )


Released = dict[str, Any]

_LARGEST = 1e90
_WIDE = 64


class PrivateEstimator(BaseEstimator):
    """Base of the estimators: epsilon, delta, bounds and neighbors in, ``guarantee_`` and ``event_`` out.

    A subclass with more parameters names all of them in ``__init__``, as scikit-learn wants it; it overrides
    :meth:`_released` and, for its non-private twin, :meth:`non_private_estimator`; with labels, its ``fit`` calls
    ``self._fit_rows(X, y, labeled=True)``.
    """

    guarantee_: Guarantee
    event_: Event
    n_features_in_: int

    _needs_delta = False

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = 1e-5,
        *,
        bounds: Any = None,
        neighbors: Neighbors | None = None,
        source: Source | None = None,
    ) -> None:
        """Store the parameters unchanged, as scikit-learn wants it; they are checked in ``fit``.

        ``epsilon`` and ``delta`` are the guarantee of one fit, ``bounds`` the public limits of the features (one pair,
        or one for each; a fit refuses None), ``neighbors`` the neighboring relation (None: ``dither.AddRemove``), and
        ``source`` the randomness (None: the operating system's).
        """
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.neighbors = neighbors
        self.source = source

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of a fit: (epsilon, delta)-DP; with ``delta=None``, epsilon-DP."""
        arguments.epsilon(self.epsilon)
        return PureDP(self.epsilon) if self.delta is None else ApproxDP(self.epsilon, self.delta)

    def _fit_rows(self, X: Any, y: Any = None, *, labeled: bool = False) -> tuple[Any, ...]:
        """Check all arguments, pay, compute, and set what was released as attributes; return the prepared labels.

        ``X`` are the rows and ``y`` the labels, which are read only if ``labeled``. The result is what :meth:`_labels`
        makes of them, and empty without labels. If a ledger returned an answer that it had recorded, nothing was
        computed and the fit is not counted again.
        """
        guarantee = self.guarantee
        neighbors = AddRemove if self.neighbors is None else relation(self.neighbors)
        if self.delta is None and self._needs_delta:
            raise InvalidArgument("delta", "a delta, for normal noise", "None", "pass delta=1e-5")
        self._check_parameters()
        rows = self.read_rows(X, reset=True)
        limits = limits_of(self.bounds, rows.shape[1])
        self._check_columns(rows.shape[1])
        budget = covered(GaussianBudget)(guarantee, neighbors, _words(self.source))
        prepared = self._labels(y, len(rows)) if labeled else ()
        charged = current_spender() is not None

        def compute() -> Released:
            """Release on rows clipped to the limits, with a thread count that suits the number of columns."""
            with _threads(rows.shape[1]):
                return self._released(clip(rows, limits), limits, *prepared, budget=budget)

        paid = PaidComputation(self._request(rows.shape[1]), guarantee)
        for name, value in paid.release(compute, source=self.source).items():
            setattr(self, name, value)
        self.guarantee_ = guarantee
        computed = budget.left < 1  # or a ledger gave what it had recorded
        self.event_ = budget.event if computed else _whole(guarantee)
        self.private_ = budget.source.private
        if computed:
            count_fit(self, guarantee, charged=charged)
        return prepared

    @property
    def total_guarantee(self) -> Guarantee | None:
        """Return the guarantee of all fits so far of this estimator, its clones and what it was cloned from, for one
        set of records.

        None before the first fit. ``guarantee_`` is about a single fit.

        Searches and cross-validation of scikit-learn fit clones. Fits in other processes are not counted.
        """
        lineage: Total = vars(self).get(_LINEAGE, Total())
        return lineage.guarantee

    def __sklearn_clone__(self) -> Self:
        copy: Self = super().__sklearn_clone__()
        setattr(copy, _LINEAGE, vars(self).setdefault(_LINEAGE, Total()))  # a clone adds to what its original counts
        return copy

    def _request(self, columns: int) -> str:
        """Return the parameters and the number of features in words; two requests are equal if these are."""
        parameters = self.get_params(deep=False)
        descriptions = (
            f"{name}={np.asarray(parameters[name]).tolist()}" for name in sorted(parameters) if name != "source"
        )
        return f"{type(self).__name__}({', '.join(descriptions)}) of {columns} features"

    def _check_parameters(self) -> None:
        """Refuse what the subclass cannot use; called before the data are looked at."""

    def _check_columns(self, columns: int) -> None:
        """Refuse parameters that do not fit the number of features; called before anything is charged."""

    def _labels(self, y: Any, rows: int) -> tuple[Any, ...]:
        """Return labels as :meth:`_released` wants them, record by record: regressors clip them to ``label_bounds``."""
        raise AssertionError("an estimator with labels reads them")

    def _released(self, rows: Floats, limits: Limits, *labels: Any, budget: GaussianBudget) -> Released:
        """Return everything that is released, by the name of the fitted attribute.

        ``rows`` are the records clipped to ``limits``, the lower and upper bounds of the features. ``labels`` are of a
        classifier the class index of each record (-1 for none) and the list of classes, of a regression the array of
        labels, and of others nothing. All noise is paid for out of ``budget``.
        """
        raise AssertionError("each estimator computes what it releases")

    def non_private_estimator(self) -> Any:
        """Return the estimator of scikit-learn that fits such a model without privacy."""
        raise AssertionError("each estimator has a twin")

    def non_private_data(self, rows: Floats, y: Any) -> tuple[Any, ...]:
        """Return the arguments of the non-private estimator's ``fit``: the rows, for an estimator without labels."""
        return (rows,)

    def non_private(self) -> NonPrivate:
        """Return the baseline: scikit-learn's own estimator on rows and labels clipped to these bounds."""
        return NonPrivate(self)

    def read_rows(self, X: Any, *, reset: bool) -> Floats:
        """Return rows as finite floats; a missing cell becomes the middle of its bounds.

        With ``reset``, in a fit, the columns are remembered; otherwise columns that differ from those of the fit are
        refused.
        """
        declared = len(self.bounds) if _several(self.bounds) else None
        rows = inputs.table(X, declared)
        check_feature_names(self, X, reset=reset)
        if reset:
            self.n_features_in_ = rows.shape[1]
        elif rows.shape[1] != self.n_features_in_:
            got = (
                f"X has {rows.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features"
            )
            raise InvalidArgument("X", "the columns of the fit", f"{got} as input", "pass the same columns")
        return inputs.filled(rows, _middle(self.bounds, rows.shape[1]))

    def _new_rows(self, X: Any) -> Floats:
        """Return the rows to predict from, not clipped; refuse an estimator before its fit."""
        check_is_fitted(self)
        return self.read_rows(X, reset=False)

    def _rows(self, X: Any) -> Floats:
        """Return the rows to predict from, clipped to the bounds."""
        return clip(self._new_rows(X), limits_of(self.bounds, self.n_features_in_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        return tags


class UnsupervisedEstimator(PrivateEstimator):
    """Base of the estimators without labels: ``y`` is there for scikit-learn's pipelines and is not looked at."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to the rows, clipped to the bounds; a ledger scope that is open is charged once."""
        self._fit_rows(X)
        return self


def _words(source: Source | None) -> Source:
    """Return the source to draw from.

    A seeded source starts again, so that a fit leaves its parameters unchanged and can be repeated.
    """
    return SeededSource(source.seed) if isinstance(source, SeededSource) else resolve(source)


def _threads(columns: int) -> AbstractContextManager[Any]:
    """Limit linear algebra to one thread for narrow blocks, where starting several costs more than it saves."""
    return nullcontext() if columns > _WIDE else _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> Any:
    """Return the controller of the threads of linear algebra libraries."""
    from threadpoolctl import ThreadpoolController  # scikit-learn has it

    return ThreadpoolController()


@dataclass(frozen=True)
class PaidComputation:
    """A fit or a selection as a ledger sees it: what is asked, in words, and what it costs.

    >>> PaidComputation("the answer to everything", PureDP(1)).release(lambda: 42, source=None)
    42
    """

    request: str
    guarantee: Guarantee

    @spends
    def release(self, compute: Callable[[], T], *, source: Source | None) -> T:
        """Return what ``compute`` returns; a ledger scope that is open is charged first, once for equal requests."""
        return compute()


def _whole(guarantee: Guarantee) -> Event:
    """Return the event of a fit that a ledger answered from its record, of which only the guarantee is known."""
    numbers = guarantee.exact
    return Pure(*numbers) if isinstance(guarantee, PureDP) else Approximate(*numbers)


class NonPrivate(BaseEstimator):
    """The baseline of an estimator: scikit-learn's own, fitted without noise to data clipped to these bounds.

    >>> from dither.learn.linear import Ridge
    >>> NonPrivate(Ridge(bounds=(0, 1), label_bounds=(0, 1))).fit([[0.0], [1.0]], [0.0, 5.0]).private_
    False
    """

    def __init__(self, estimator: PrivateEstimator) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit scikit-learn's estimator to rows and labels clipped to the bounds of the private one, without noise."""
        private = self.estimator
        rows = private.read_rows(X, reset=True)
        clipped_rows = clip(rows, limits_of(private.bounds, rows.shape[1]))
        self.model_ = private.non_private_estimator()
        self.model_.fit(*private.non_private_data(clipped_rows, y))
        self.n_features_in_ = rows.shape[1]
        self.private_ = False
        return self

    def __getattr__(self, name: str) -> Any:
        """Return a method of the fitted model, applied to rows that are clipped to the bounds."""
        if name in ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "score"):
            if "model_" not in vars(self):
                raise AttributeError(f"{name} is there after fit")
            method = getattr(self.model_, name)
            bounds = self.estimator.bounds
            limits, middle = limits_of(bounds, self.n_features_in_), _middle(bounds, self.n_features_in_)

            @wraps(method)  # scikit-learn's scorers look at the name
            def clipped(X: Any, *others: Any) -> Any:
                """Call the method on rows clipped to the bounds."""
                return method(clip(inputs.filled(inputs.table(X, self.n_features_in_), middle), limits), *others)

            return clipped
        if name.endswith("_") and not name.startswith("_") and "model_" in vars(self):
            return getattr(self.model_, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def limits_of(bounds: Any, columns: int, name: str = "bounds") -> Limits:
    """Return public lower and upper limits as two arrays with one number for each of ``columns`` columns.

    ``bounds`` is one pair for all columns or a sequence of one pair for each, and ``name`` is the parameter's name for
    errors. The bounds must be at most 1e90 in size, with a difference of at least 1e-90.
    """
    if bounds is None:
        arguments.bounds(None, name)
    if _several(bounds):
        if len(bounds) != columns:
            raise InvalidArgument(
                name, f"one pair for each of the {columns} column(s)", f"{len(bounds)} pairs", "pass them all"
            )
        pairs = [arguments.bounds(pair, name) for pair in bounds]
    else:
        pairs = [_pair(bounds, name)] * columns
    small = all(abs(end) <= _LARGEST for pair in pairs for end in pair)  # before they are floats
    lower, upper = np.array(pairs if small else [(0.0, 0.0)] * columns, dtype=np.float64).reshape(columns, 2).T
    if (upper - lower).min() < 1 / _LARGEST:
        raise InvalidArgument(
            name,
            "bounds of at most 1e+90, with a difference of at least 1e-90",
            "bounds beyond that",
            "measure in other units",
        )
    return lower, upper


def _pair(bounds: Any, name: str) -> tuple[int | float, int | float]:
    """Return the pair of bounds for all columns; any other value is refused with both allowed forms in the error."""
    expected = "one pair (lower, upper) for all columns, or a list of one pair for each, in the order of the columns"
    fix = f"pass {name}=(lower, upper), or {name}=[(lower, upper), ...]; from a dict by [pairs[c] for c in X.columns]"
    if isinstance(bounds, (str, Mapping)) or not hasattr(bounds, "__len__"):
        raise WrongType(name, expected, type(bounds).__name__, fix)
    if len(bounds) != 2:
        raise InvalidArgument(name, expected, f"{len(bounds)} items that are no pairs", fix)
    return arguments.bounds(bounds, name)


def _middle(bounds: Any, columns: int) -> Floats:
    """Return the middle of each column's bounds, a public number that replaces missing cells."""
    lower, upper = limits_of(bounds, columns)
    return (lower + upper) / 2


def _several(bounds: Any) -> bool:
    """Return whether bounds are given as one pair for each column; a malformed pair is refused later."""
    try:
        return np.ndim(bounds) == 2
    except ValueError:
        return True


def clip(rows: Floats, limits: Limits) -> Floats:
    """Return each row inside the limits."""
    return np.clip(rows, *limits)


def centered(rows: Floats, limits: Limits) -> Floats:
    """Return rows inside the limits, scaled so that each column lies between -1 and 1."""
    lower, upper = limits
    result = rows - (lower + upper) / 2
    result /= (upper - lower) / 2
    return result


OBSERVED = "observed"
_LARGEST_LABEL = 1 << 53


class PrivateClassifier(ClassifierMixin, PrivateEstimator):
    """Base of the classifiers. ``classes`` is the public list of labels; ``"observed"`` takes those that occur, for
    data where *that a label occurs* is public."""

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = 1e-5,
        *,
        bounds: Any = None,
        classes: Any = None,
        neighbors: Neighbors | None = None,
        source: Source | None = None,
    ) -> None:
        super().__init__(epsilon, delta, bounds=bounds, neighbors=neighbors, source=source)
        self.classes = classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on a few records, as any private estimator
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Fit to rows X and labels y; an open ledger scope is charged once. Weights of records are not taken: they
        would change what one record can do."""
        _, self.classes_ = self._fit_rows(X, y, labeled=True)
        return self

    def _check_parameters(self) -> None:
        """Refuse a list of classes that is missing or malformed."""
        if not self._by_observation():
            self._known(None)

    def _by_observation(self) -> bool:
        """Return whether the classes are those that occur in the labels."""
        return isinstance(self.classes, str) and self.classes == OBSERVED

    def _known(self, y: Any) -> NDArray[Any]:
        """Return the sorted classes: the public list, or the labels that occur in ``y`` for ``"observed"``."""
        fix = 'pass classes=[0, 1], for example, or classes="observed" if it is public which labels occur'
        if self._by_observation():
            result = inputs.observed(y)
            if len(result) < 2:
                raise InvalidData("y", "labels of at least two classes", "one class", "pass classes=[...]")
            return result
        if self.classes is None:
            raise InvalidArgument("classes", "the public list of labels", "none", fix)
        if isinstance(self.classes, (str, bytes)) or not hasattr(self.classes, "__len__"):
            raise WrongType("classes", "a list of labels", type(self.classes).__name__, fix)
        if len({isinstance(one, str) for one in self.classes}) == 2:  # an array would make text of all
            raise InvalidArgument("classes", "text or numbers", "both", fix)
        try:
            result = np.unique(np.asarray(self.classes))
        except TypeError:
            raise WrongType("classes", "labels that have an order", "labels that cannot be compared", fix) from None
        if len(result) < 2 or len(result) != len(self.classes):
            raise InvalidArgument("classes", "at least two labels, all different", "a single label, or one twice", fix)
        # one missing label makes floats of a column of integers: up to here that changes none of them
        if result.dtype.kind not in "biufUS" or (
            result.dtype.kind in "iuf" and not np.all(np.abs(result) < _LARGEST_LABEL)
        ):
            raise InvalidArgument(
                "classes", "text, or numbers below 2^53", "labels of other types, or larger numbers", fix
            )
        return np.asarray(result)

    def _labels(self, y: Any, rows: int) -> tuple[Any, ...]:
        """Return the index of each label of ``y`` among the classes (-1 if it is none of them), and the classes.

        ``rows`` is the number of records, which must be that of the labels.
        """
        classes = self._known(y)
        codes = inputs.codes(y, classes)
        inputs.check_lengths(len(codes), rows)
        return codes, classes

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, in the order of ``classes_``."""
        raise AssertionError("each classifier has its probabilities")

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of :meth:`predict_proba`."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny)))

    def non_private_data(self, rows: Floats, y: Any) -> tuple[Any, ...]:
        """Return the arguments of the non-private estimator's ``fit``: rows and labels of records of a known class."""
        codes, classes = self._labels(y, len(rows))
        return rows[codes >= 0], classes[codes[codes >= 0]]
