"""The base of the private classifiers: the list of classes, which is public."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dither.errors import InvalidArgument, InvalidData, WrongType
from dither.learn import inputs
from dither.learn.base import PrivateEstimator
from dither.learn.budget import Floats
from dither.learn.sklearn_base import ClassifierMixin
from dither.neighbors import Neighbors
from dither.randomness import Source

OBSERVED = "observed"
_LARGEST = 1 << 53


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
        if not self._by_observation():
            self._known(None)

    def _by_observation(self) -> bool:
        return isinstance(self.classes, str) and self.classes == OBSERVED

    def _known(self, y: Any) -> NDArray[Any]:
        """The classes in order."""
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
            raise WrongType("classes", "labels that have an order", "others", fix) from None
        if len(result) < 2 or len(result) != len(self.classes):
            raise InvalidArgument("classes", "at least two labels, all different", "others", fix)
        # one missing label makes floats of a column of integers: up to here that changes none of them
        if result.dtype.kind not in "biufUS" or (result.dtype.kind in "iuf" and not np.all(np.abs(result) < _LARGEST)):
            raise InvalidArgument("classes", "text, or numbers below 2^53", "others", fix)
        return np.asarray(result)

    def _labels(self, y: Any, rows: int) -> tuple[Any, ...]:
        """The place of each label among the classes, -1 if it is none of them; and the classes."""
        classes = self._known(y)
        codes = inputs.codes(y, classes)
        inputs.check_lengths(len(codes), rows)
        return codes, classes

    def non_private_data(self, rows: Floats, y: Any) -> tuple[Any, ...]:
        """What the non-private estimator is fitted to."""
        codes, classes = self._labels(y, len(rows))
        return rows[codes >= 0], classes[codes[codes >= 0]]
