"""Exact sums of clipped rows, and the budget that their noise is paid from.

A row is clipped to a public norm C and its entries are rounded toward zero to whole multiples of a public step, so that
the row becomes a row of integers whose norm is at most ``2**bits``, without any rounding error. Integers are summed
exactly (in floats, block by block, while every partial sum is below 2^53; the blocks in 64-bit integers), so neither
the order of the rows nor rounding nor overflow can move a sum by more than its sensitivity.

What a record adds to a sum must not depend on the other records, to the last bit; otherwise adding one record would
change the contributions of all. Matrix products of linear algebra libraries violate this: they process rows in groups
and add the remaining rows in a different order, so the rounding of a row depends on its position. Here products are of
whole numbers, without rounding, and sums over columns are taken in the order of the columns for every row.

The noise of all releases of one fit comes out of one :class:`GaussianBudget`. Nothing here depends on the number of
rows except the sums themselves.

>>> import dither as dp
>>> budget = GaussianBudget(dp.ApproxDP(1, 1e-5), dp.AddRemove)
>>> rows = np.array([[3.0, 4.0], [0.3, 0.4]])
>>> noisy_sum(rows, 1.0, budget, share=1).shape             # the first row counts as (0.6, 0.8)
(2,)
>>> X, w = np.sin(np.arange(3030.0)).reshape(101, 30), np.cos(np.arange(30.0))
>>> bool(np.all(project(X, w, 1)[:-1] == project(X[:-1], w, 1)))
True
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dither.accounting import Event, GaussianNoise, Pure, Sequential, gaussian_ratio
from dither.budget_hooks import covered, starts_session
from dither.errors import InvalidArgument, InvalidData, NotPrivate, WrongType
from dither.exact import decimal, exactly, root_up, up
from dither.guarantees import ApproxDP, Guarantee, PureDP
from dither.mechanisms import Gaussian, Laplace
from dither.neighbors import AddRemove, Neighbors, ReplaceOne, relation
from dither.randomness import Source, resolve
from dither.stateful import Stateful

Floats = NDArray[np.float64]

ROW_BITS = 24
_NORM_ROWS = 1 << 13
_MIN_EXPONENT = -900  # numbers below 2^-900 are 0: powers of two beyond would not be floats


def row_norms(rows: Floats, order: int = 2) -> Floats:
    """Return the norm of each row: l2 for ``order`` 2 and l1 for 1, summed in the order of the columns."""
    result = np.zeros(len(rows))
    for start in range(0, len(rows), _NORM_ROWS):
        total = result[start : start + _NORM_ROWS]
        for column in rows[start : start + _NORM_ROWS].T:
            total += np.abs(column) if order == 1 else column * column
    return result if order == 1 else np.sqrt(result, out=result)


def row_sums(values: Floats) -> Floats:
    """Return the sum of each row, added in the order of the columns, so that no row affects another's rounding."""
    result = np.zeros(len(values))
    for column in values.T:
        result += column
    return result


def project(rows: Floats, matrix: Floats, largest: float) -> Floats:
    """Return ``rows @ matrix``, computed in whole numbers so that each row of the result depends on its row alone.

    No entry of the rows is above ``largest``, a public number. Rows are rounded to 2^-22 of it, and the matrix to about
    2^-23 of its largest entry.

    *Why rows are independent.* Rows are cut to whole numbers below 2^24, the matrix to whole numbers below ``2^28 /
    columns``: every product and every partial sum is below 2^53, and so exact in whichever order.
    """
    unit = 2.0 ** (ROW_BITS - 1 - max(math.frexp(largest)[1], _MIN_EXPONENT))
    whole = rows * unit
    return whole_product(np.trunc(whole, out=whole), ROW_BITS, matrix) / unit


def whole_product(whole: Floats, bits: int, matrix: Floats) -> Floats:
    """Return ``whole @ matrix`` for rows of whole numbers of at most ``2**bits``, with the matrix rounded.

    The matrix is scaled and rounded to whole numbers so small that every partial sum is below 2^53, hence exact.
    """
    spare_bits = 52 - bits - len(matrix).bit_length()
    unit = 2.0 ** (spare_bits - max(math.frexp(float(np.abs(matrix).max(initial=0.0)))[1], _MIN_EXPONENT))
    result: Floats = whole @ np.rint(matrix * unit)
    result /= unit
    return result


Integers = NDArray[np.int64]

VECTOR_BITS = 20
GRAM_BITS = 16
_ROWS = 1 << 14  # 2^14 rows of squares below 2^32 add up to less than 2^53, and fit the cache
_MAX_ROWS = 1 << 31  # 2^31 squares below 2^32 fit 63 bits
_EXACT = 1 << 53
_BITS = 96
_NONE = np.zeros(1)  # the norms of rows that are all within their norm
_BINS = 20


class GaussianBudget(Stateful):
    """The privacy budget of one fit, spent in shares that add up to at most 1.

    *Statement.* Let each person's contribution to the parts of one release satisfy ``sum_b |z_b|^2 / s_b^2 <=
    1``. Part b gets normal noise of deviation ``r s_b / sqrt(share)``, with r the exact ratio of noise to
    sensitivity that (epsilon, delta) asks of a single release. All releases together are (epsilon, delta)-DP, also
    if what is asked, and which share it gets, depends on the answers before.

    *Why.* A release is one Gaussian mechanism on the vector of all ``z_b / s_b``: it is mu-GDP with ``mu^2 =
    share / r^2``. Squares of mu add up (Dong, Roth and Su 2022, corollary 2), adaptively and with adaptive shares as
    long as their sum is bounded (Smith and Thakurta 2022), and mu = 1/r is (epsilon, delta)-DP. Under replace-one a
    person moves the sums by the difference of two contributions: twice the sensitivity; sqrt(2) times if no two
    contributions have a negative inner product.

    Under pure epsilon-DP norms are l1, the noise is Laplace, and shares of epsilon add up.
    """

    @starts_session(cost="guarantee")
    def __init__(self, guarantee: Guarantee, neighbors: Neighbors = AddRemove, source: Source | None = None) -> None:
        """Start a budget of ``guarantee``, an (epsilon, delta) or a pure epsilon, which a ledger charges as a whole.

        ``neighbors`` is the relation for which sensitivities are doubled or not, and ``source`` the randomness, by
        default the operating system's.
        """
        if not isinstance(guarantee, (ApproxDP, PureDP)):
            raise WrongType("guarantee", "PureDP or ApproxDP", type(guarantee).__name__, "pass ApproxDP(1, 1e-5)")
        self.guarantee = guarantee
        self.neighbors = relation(neighbors)
        self.source = resolve(source)
        self._left = Fraction(1)
        self._events: list[Event] = []
        self._mechanisms: dict[tuple[Fraction, Fraction], Laplace | Gaussian] = {}

    @property
    def pure(self) -> bool:
        """Return whether there is no delta; then norms are l1."""
        return isinstance(self.guarantee, PureDP)

    @property
    def order(self) -> int:
        """Return the norm in which rows are clipped: 1 or 2."""
        return 1 if self.pure else 2

    @property
    def left(self) -> Fraction:
        """Return the share of the budget that is left."""
        return self._left

    @property
    def event(self) -> Event:
        """Return the event of everything that was released, for accountants."""
        return Sequential(*self._events)

    def ratio(self, share: float | Fraction, *, aligned: bool = False) -> float:
        """Return the noise of a part with sensitivity 1 that is released for ``share`` of the budget.

        It is the standard deviation of normal noise, ``r / sqrt(share)``, or the scale of Laplace noise, ``1 / (epsilon
        share)``, times the factor for the neighboring relation (``aligned`` as for :meth:`release`).
        """
        return up(self._ratio(decimal(share, "share")) * self._relation_factor(aligned))

    def _ratio(self, share: Fraction) -> Fraction:
        """Return the ratio of noise to sensitivity at a share of the budget, rounded up.

        It is ``r / sqrt(share)`` for normal noise, with r the ratio that (epsilon, delta) asks of one release, and ``1
        / (epsilon share)`` for Laplace noise.
        """
        if not 0 < share <= 1:
            raise InvalidArgument("share", "a number above 0 and at most 1", float(share), "pass share=0.5")
        numbers = self.guarantee.exact
        if self.pure:
            return 1 / (numbers[0] * share)
        return gaussian_ratio(*numbers) * root_up(1 / share, _BITS)

    def _relation_factor(self, aligned: bool) -> Fraction:
        """Return the largest difference between the sums of neighbors, in units of one record's sensitivity.

        It is 1 under AddRemove and 2 under ReplaceOne, where two contributions differ; for normal noise ``sqrt(2)`` if
        no two contributions have a negative inner product (``aligned``), since then ``|a - b|^2 <= |a|^2 + |b|^2``.
        """
        if self.neighbors is not ReplaceOne:
            return Fraction(1)
        return root_up(Fraction(2), _BITS) if aligned and not self.pure else Fraction(2)

    def release(
        self, parts: Sequence[tuple[NDArray[Any], float | Fraction]], share: float | Fraction, *, aligned: bool = False
    ) -> list[Floats]:
        """Add noise to exact integer sums and return them as floats, for ``share`` of the budget.

        ``parts`` are pairs of an array of sums and its sensitivity, how far one record moves it. ``aligned`` says that
        no two contributions have a negative inner product. A share above what is left is refused.
        """
        weight = decimal(share, "share")
        ratio = self._ratio(weight)
        if weight > self._left:
            raise NotPrivate("share", f"at most {float(self.left):g}, which is left", float(weight), "ask for less")
        self._left -= weight
        self._events.append(Pure(self.guarantee.exact[0] * weight) if self.pure else GaussianNoise(ratio))
        factor = self._relation_factor(aligned)
        return [self._noisy(sums, exactly(sensitivity) * factor, weight) for sums, sensitivity in parts]

    def _noisy(self, sums: NDArray[Any], sensitivity: Fraction, weight: Fraction) -> Floats:
        """Return exact sums with noise for this sensitivity and this share (``weight``) of the budget, as floats."""
        mechanism = self._mechanisms.get((sensitivity, weight))
        if mechanism is None:
            ratio: Any = self._ratio(weight)
            size: Any = sensitivity
            mechanism = Laplace(size, 1 / ratio) if self.pure else Gaussian(size, rho=1 / (2 * ratio * ratio))
            self._mechanisms[sensitivity, weight] = mechanism
        flattened = sums.ravel()
        if flattened.size == 0:
            return np.zeros(sums.shape)
        small = int(flattened.min()) > -_EXACT and int(flattened.max()) < _EXACT
        exact: Any = flattened.astype(np.float64) if small else [Fraction(int(value)) for value in flattened]
        return np.asarray(covered(mechanism.release)(exact, source=self.source), dtype=np.float64).reshape(sums.shape)


def steps_to_one(columns: int, norm: float, bits: int) -> float:
    """Return the inverse of the step of :func:`quantized`: the integer that stands for 1, a little below ``2**bits /
    norm`` for the rounding of rows of ``columns`` floats."""
    return float(1 << bits) * (1 - (columns + 8) * 2.0**-52) / norm


def quantized(
    rows: Floats, norm: float, bits: int, order: int = 2, sizes: Floats | None = None
) -> tuple[Floats, float]:
    """Return rows clipped to ``norm``, as whole numbers of norm at most ``2**bits``, and the integer that stands for 1.

    ``order`` is 2 for the l2 norm and 1 for the l1 norm. ``sizes`` are the norms of the rows
    (:func:`~dither.learn.budget.row_norms`) if they are known, None to compute them, and zeros if no row is longer than
    ``norm``, up to the rounding of d + 2 operations.

    *Why.* With u = 2^-53 the norm of a row of d floats is computed to within a factor 1 + (d + 2) u, the factor that
    clips it and each product to within 1 + 3u: the result is at most ``K (1 + (d + 8) u)`` for ``K = 2^bits (1 - (d +
    8) 2^-52)``, so below ``2^bits``; cutting toward zero only makes it shorter. No row depends on another.
    """
    if not 1e-100 <= norm <= 1e100:
        raise InvalidArgument("norm", "a number from 1e-100 to 1e+100", norm, "measure in other units")
    top = steps_to_one(rows.shape[1], 1.0, bits)
    if sizes is None:
        with np.errstate(over="ignore"):  # a row too long for floats counts as zero
            sizes = row_norms(rows, order)
    whole = rows * (top / np.maximum(sizes, norm))[:, np.newaxis]
    return np.trunc(whole, out=whole), top / norm


def _summed(rows: Floats, add: Callable[[Floats], Floats]) -> Integers:
    """Return the sum of ``add(block)`` over blocks of 2^14 rows, where ``add`` returns integers below 2^53."""
    if rows.shape[0] >= _MAX_ROWS:
        raise InvalidData("rows", "fewer than 2^31 rows", "more", "use a sample of them")
    blocks = (add(rows[start : start + _ROWS]) for start in range(0, max(rows.shape[0], 1), _ROWS))
    total: Integers = next(blocks).astype(np.int64)
    for block in blocks:
        total += block.astype(np.int64)
    return total


def exact_sum(rows: Floats, norm: float, order: int = 2) -> tuple[Integers, float]:
    """Return the exact sum of rows clipped to ``norm``, as integers, and the integer that stands for 1.

    Each row adds integers of norm at most ``2**20``, in the l2 norm (``order`` 2) or the l1 norm (1).
    """
    total = _summed(rows, lambda part: quantized(part, norm, VECTOR_BITS, order)[0].sum(axis=0))
    return total, steps_to_one(rows.shape[1], norm, VECTOR_BITS)


def exact_gram(rows: Floats, norm: float, order: int = 2, *, within: bool = False) -> tuple[Integers, float]:
    """Return the exact sum of outer products ``x x'`` over the rows, as integers, and the integer that stands for 1.

    Rows are clipped to ``norm`` in the l2 norm (``order`` 2) or the l1 norm (1) and rounded to whole steps first, so
    that the sum is exact. ``within`` says that no row is longer than ``norm``.
    """

    def squares(part: Floats) -> Floats:
        """Return the sum of outer products of a block of rows in whole numbers."""
        whole = quantized(part, norm, GRAM_BITS, order, _NONE if within else None)[0]
        return whole.T @ whole

    return _summed(rows, squares), steps_to_one(rows.shape[1], norm, GRAM_BITS) ** 2


def noisy_sum(rows: Floats, norm: float, budget: GaussianBudget, share: float | Fraction) -> Floats:
    """Return the noisy sum of the rows, each clipped to ``norm``, for ``share`` of ``budget``."""
    total, steps = exact_sum(rows, norm, budget.order)
    return budget.release([(total, 1 << VECTOR_BITS)], share)[0] / steps


def gram_parts(total: Integers, sensitivity: float | Fraction, pure: bool) -> list[tuple[Integers, Fraction]]:
    """Return the parts of a symmetric matrix to release, each with its sensitivity: diagonal and upper triangle.

    ``total`` is the matrix, ``sensitivity`` how far one person moves it (in the Frobenius norm, or the l1 norm of all
    entries if ``pure``). The Frobenius norm counts an entry off the diagonal twice, so in the vector of the upper
    triangle it weighs sqrt(2): its sensitivity is that much smaller. In l1 the entries of ``x x'`` add up to at most
    the square of the norm, each pair again twice.
    """
    whole = exactly(sensitivity)
    shorter = whole / 2 if pure else root_up(whole * whole / 2, _BITS)
    return [(np.diagonal(total), whole), (total[np.triu_indices(len(total), 1)], shorter)]


def symmetric(diagonal: Floats, above: Floats) -> Floats:
    """Return the symmetric matrix with this diagonal and this upper triangle, row by row: see :func:`gram_parts`."""
    matrix = np.diag(diagonal)
    matrix[np.triu_indices(len(diagonal), 1)] = above
    return np.asarray(np.triu(matrix) + np.triu(matrix, 1).T)


def noisy_gram(
    rows: Floats, norm: float, budget: GaussianBudget, share: float | Fraction, *, within: bool = False
) -> Floats:
    """Return the noisy sum of ``x x'`` over the rows x, each clipped to ``norm``: a symmetric matrix.

    It spends ``share`` of ``budget``. ``within`` says that no row is longer than ``norm``, up to rounding.

    One row adds ``x x'`` of Frobenius norm ``|x|^2``. The noise has deviation ``norm^2 budget.ratio(share,
    aligned=True)`` on the diagonal and ``sqrt(1/2)`` of that off it, and may leave the matrix indefinite.
    """
    total, steps = exact_gram(rows, norm, budget.order, within=within)
    parts = gram_parts(total, 1 << (2 * GRAM_BITS), budget.pure)
    return symmetric(*budget.release(parts, share, aligned=True)) / steps


def noisy_count(rows: Sequence[Any] | NDArray[Any], budget: GaussianBudget, share: float | Fraction) -> float:
    """Return the number of rows, at least 1: noisy, for ``share`` of ``budget``, under AddRemove.

    Under ReplaceOne the number is public: it is returned exactly, at no cost.
    """
    if budget.neighbors is ReplaceOne:
        return float(max(len(rows), 1))
    return max(1.0, float(budget.release([(np.array([len(rows)]), 1)], share)[0][0]))


class NoisyMoments(NamedTuple):
    """Noisy moments of columns with values between -1 and 1."""

    mean: Floats
    """The mean of each column."""
    mean_square: Floats
    """The mean of the squares of each column."""
    noise: float
    """The standard deviation of the noise in each of them (for Laplace noise: its scale)."""


def noisy_moments(values: Floats, count: float, budget: GaussianBudget, share: float | Fraction) -> NoisyMoments:
    """Return mean and mean square of each column of ``values``, and the size of their noise.

    ``values`` has columns of numbers between -1 and 1 (others are clipped), ``count`` is the number of rows, or a
    noisy one, and the release takes the part ``share`` of ``budget``. One row adds ``(x, x^2 - 1/2)``: in l2 its
    square is ``x^4 + 1/4 <= 5/4`` for each column, in l1 it is at most 3/2.
    """
    columns = values.shape[1]
    norm = 1.5 * columns if budget.pure else math.sqrt(1.25 * columns)

    def both(part: Floats) -> Floats:
        """Return the sums of x and of ``x^2 - 1/2`` over a block of rows, in whole numbers."""
        inside = np.clip(part, -1.0, 1.0)
        whole, _ = quantized(np.hstack([inside, inside * inside - 0.5]), norm, VECTOR_BITS, budget.order, _NONE)
        return np.asarray(whole.sum(axis=0))

    total, steps = _summed(values, both), steps_to_one(2 * columns, norm, VECTOR_BITS)
    result = budget.release([(total, 1 << VECTOR_BITS)], share)[0] / (steps * count)
    return NoisyMoments(result[:columns], result[columns:] + 0.5, norm * budget.ratio(share) / count)


def noisy_ceiling(
    sizes: Floats, top: float, fraction: float, count: float, budget: GaussianBudget, share: float | Fraction
) -> float:
    """Return a noisy upper quantile: a size that about ``fraction`` of the ``sizes`` do not exceed.

    ``top`` is the largest possible size, ``count`` the number of sizes (or a noisy one), and the release takes
    ``share`` of ``budget``. The bins of a noisy histogram are factors of ``sqrt(2)`` below ``top``; a person is in one
    of them, so the sensitivity is 1. Bins are added up from the largest down, and the search ends at the first bin
    where the sum exceeds ``(1 - fraction) count`` by more than one standard deviation of its noise. The allowance makes
    the result too large rather than too small: clipping to it then adds noise, not bias.
    """
    edges = top * 2.0 ** (-np.arange(_BINS - 1, -1, -1) / 2)
    mantissas, octaves = np.frexp(np.maximum(sizes / top, np.finfo(np.float64).tiny))  # 0 has no octave
    bins = np.clip(2 * octaves - (mantissas <= math.sqrt(0.5)) + (_BINS - 1), 0, _BINS - 1)
    [noisy] = budget.release([(np.bincount(bins, minlength=_BINS), 1)], share, aligned=True)
    deviation = budget.ratio(share, aligned=True)
    above = 0.0
    for bin_ in range(_BINS - 1, 0, -1):
        above += noisy[bin_]
        if above > (1 - fraction) * count + deviation * math.sqrt(_BINS - bin_):
            return float(edges[bin_])
    return float(edges[0])
