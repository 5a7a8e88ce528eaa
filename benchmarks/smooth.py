"""Smooth sensitivity: how long it takes, and how much noise the exact calibration saves."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

import dither as dp
from dither.accounting import smooth
from suite import Row, interleaved, limited, main, times

TITLE = "Smooth sensitivity"
NOTES = (
    "Smooth sensitivity of the median of 1e6 uniform values, the sort included, at the beta of the exact Laplace "
    "calibration for (1, 1e-6), and at a far smaller one, for which many more pairs of records matter.",
    "Standard deviations of the noise on the median of 10,001 lognormal(10.5, 0.8) incomes clipped to [0, 1e6], at "
    "(epsilon, delta) = (1, 1e-6): textbook constants over exact calibration, each with the smooth sensitivity for its "
    "own beta. The mean over 20 data sets; the smallest is in brackets. Cauchy noise has no standard deviation: its "
    "half-widths at 95 % are compared.",
    "Certificate: the rigorous upper bound on delta (or on the loss) recomputed from the law.",
    "Calibration: one call with an empty cache.",
)


def incomes(seed: int) -> np.ndarray:
    """The data of the second note."""
    return np.clip(np.random.default_rng(seed).lognormal(10.5, 0.8, 10_001), 0, 1e6)


def savings(kind: str, sets: int) -> list[float]:
    """Textbook noise over exact noise, for each data set."""
    delta = None if kind == "cauchy" else 1e-6
    exact, textbook = (dp.SmoothNoise(kind, 1, delta, how) for how in ("exact", "textbook"))
    result = []
    for seed in range(sets):
        x = incomes(seed)
        sizes = [
            (m.error if kind == "cauchy" else m.std)(dp.sensitivity.smooth_median(x, (0, 1e6), m.beta))
            for m in (textbook, exact)
        ]
        result.append(sizes[0] / sizes[1])
    return result


def rows(quick: bool = False) -> list[Row]:
    """All of the suite."""
    n = 10**5 if quick else 10**6
    x = np.random.default_rng(1).random(n) * 100
    beta = dp.SmoothNoise("laplace", 1, 1e-6).beta
    result = interleaved(
        {
            "sort": lambda: np.sort(x),
            "usual": lambda: dp.sensitivity.smooth_median(x, (0, 100), beta),
            "small": lambda: dp.sensitivity.smooth_median(x, (0, 100), 1e-5),
        },
        3 if quick else 7,
    )
    sort = 1e3 * result["sort"]
    table = [
        times(f"Smooth median, n = {n:.0e}, beta = {beta:.3f}", 1e3 * result["usual"], sort, "ms", 4.0, "np.sort"),
        times(f"Smooth median, n = {n:.0e}, beta = 1e-05", 1e3 * result["small"], sort, "ms", None, "np.sort"),
    ]
    for kind, target in (("laplace", 1.4), ("gaussian", 2.4), ("cauchy", None)):
        ratios = savings(kind, 3 if quick else 20)
        mean = sum(ratios) / len(ratios)
        text = f"{mean:.2f}× ({min(ratios):.2f}×)"
        met = None if target is None else mean >= target
        goal = "" if target is None else f"≥ {target}×"
        table.append(Row(f"Textbook noise over exact noise: {kind}", text, target=goal, met=met))
    for kind in ("laplace", "gaussian", "cauchy", "student"):
        delta = 1e-6 if kind in ("laplace", "gaussian") else None
        bound, most = dp.SmoothNoise(kind, 1, delta).certificate(), delta or 1.0
        name = "delta" if delta else "epsilon"
        table.append(Row(f"Certificate: {kind}", f"{bound:.9g}", target=f"{name} ≤ {most:g}", met=bound <= most))

        def calibrate(kind: str = kind, delta: float | None = delta) -> object:
            smooth.smooth_calibration.cache_clear()
            smooth.smooth_scale.cache_clear()
            return smooth.smooth_calibration(kind, Fraction(1), Fraction(delta or 0))

        took = interleaved({"calibration": calibrate}, 5)["calibration"]
        table.append(limited(f"Calibration: {kind}", took * 1e3, "ms", 50.0))
    return table


if __name__ == "__main__":
    main(TITLE, NOTES, rows)
