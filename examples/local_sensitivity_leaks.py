"""Noise of the size of the local sensitivity gives a person away; noise of the size of the smooth sensitivity does not.

Source: document 2 of the course, Examples 12 and 21. n ages between 0 and L, n odd, m = (n + 1)/2 the rank of the
median. Table 1 has m zeros, table 2 has m + 1, and all other ages are L; they differ in one record and both medians
are 0. But the local sensitivity, how far the median moves if one record is replaced, is L in table 1 and 0 in table
2. So "median + Lap(local sensitivity / epsilon)" is *exactly* 0 for table 2 and almost never for table 1: no
(epsilon, delta) with delta < 1 holds, and one answer tells the two tables apart.

The smooth sensitivity S(x) = max_k exp(-k beta) A_k(x) looks at tables k records away: here A_k is 0 or L, from k = 0
on in table 1 and from k = 1 on in table 2 (it does not alternate, as is printed). So S is L and L exp(-beta):
never far apart between neighbours. The exact divergence of the two releases is computed below. What it costs: on this
pair S is as large as the global sensitivity. It is small where the records in the middle are close together.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import dither as dp

N, WIDTH, EPSILON, DELTA = 101, 100.0, 1.0, 1e-6
MIDDLE = (N + 1) // 2


def table(zeros: int) -> np.ndarray:
    """So many ages of 0, all others at the upper bound."""
    return np.where(np.arange(N) < zeros, 0.0, WIDTH)


def local(zeros: int) -> float:
    return dp.sensitivity.local_median(table(zeros), (0, WIDTH))


def smooth(zeros: int, beta: float) -> float:
    return dp.sensitivity.smooth_median(table(zeros), (0, WIDTH), beta)


def naive(zeros: int, draws: int) -> np.ndarray:
    """The median with noise of the local sensitivity, multiplied by hand: dither refuses a sensitivity of 0."""
    unit = dp.Laplace(sensitivity=1, epsilon=EPSILON).release(np.zeros(draws))
    return float(np.median(table(zeros))) + local(zeros) * np.asarray(unit)


def laplace_delta(large: float, small: float) -> float:
    """max over events of P - e^epsilon Q for Laplace laws around 0 of these scales: the tails, of the wider over the
    narrower. (The other way round the loss is at most ln(large/small) = beta, below epsilon.)
    """
    edge = (EPSILON + math.log(large / small)) / (1 / small - 1 / large)
    return math.exp(-edge / large) - math.exp(EPSILON - edge / small)


def main(out: Path | None = None, quick: bool = False) -> dict[str, Any]:
    """Print both sensitivities of both tables, the exact leak, the repaired release, and plot them."""
    draws = 500 if quick else 20_000
    mechanism = dp.SmoothNoise("laplace", EPSILON, DELTA)
    student = dp.SmoothNoise("student", EPSILON)
    pair = {"table 1": MIDDLE, "table 2": MIDDLE + 1}
    locals_ = {name: local(zeros) for name, zeros in pair.items()}
    smooths = {name: smooth(zeros, mechanism.beta) for name, zeros in pair.items()}
    zero = {name: float(np.mean(naive(zeros, draws) == 0)) for name, zeros in pair.items()}
    # whole ages: noise of the discrete Laplace law, P(0) = tanh(epsilon / 2L) for table 1 and 1 for table 2
    exact_zero = math.tanh(EPSILON / (2 * WIDTH))
    leak = 1 - math.exp(EPSILON) * exact_zero
    scales = [mechanism.scale * smooths[name] for name in pair]
    repaired = laplace_delta(*scales)
    try:
        dp.Laplace(sensitivity=locals_["table 2"], epsilon=EPSILON)
        refused = ""
    except dp.DitherError as error:
        refused = str(error)

    print(f"n = {N}, ages from 0 to {WIDTH:g}, epsilon = {EPSILON:g}, delta = {DELTA:g}; both medians are 0")
    print(f"{'':>9} {'zeros':>6} {'local sens.':>12} {'answer is exactly 0':>20} {'smooth sens.':>13}")
    for name, zeros in pair.items():
        print(f"{name:>9} {zeros:>6} {locals_[name]:>12.1f} {zero[name]:>20.4f} {smooths[name]:>13.3f}")
    print("noise of the local sensitivity, whole ages, exactly: P(answer = 0) is")
    print(f"  {exact_zero:.4f} for table 1 and 1 for table 2, so delta(epsilon) = {leak:.4f} (continuous noise: 1)")
    print(f"noise of the smooth sensitivity, exactly: delta(epsilon) = {repaired:.1e} for this pair,")
    print(f"  {mechanism.certificate():.1e} or less for any pair; Student: loss {student.certificate():.4f} or less")
    print(f"dp.Laplace with sensitivity 0: {refused}")

    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    counts = np.arange(MIDDLE - 25, MIDDLE + 26)
    path_local = [local(int(zeros)) for zeros in counts]
    path_smooth = [smooth(int(zeros), mechanism.beta) for zeros in counts]
    path_student = [smooth(int(zeros), student.beta) for zeros in counts]
    left.plot(counts, path_local, "o", markersize=4, color="tab:red", label="local: 0 or L")
    left.plot(counts, path_smooth, color="tab:blue", label=f"smooth, β = {mechanism.beta:.3f} (Laplace)")
    left.plot(counts, path_student, color="tab:green", label=f"smooth, β = {student.beta:.3f} (Student)")
    for name, zeros in pair.items():
        left.axvline(zeros, color="k", linewidth=0.6, linestyle=":")
        before = zeros == MIDDLE
        left.text(zeros - 0.5 if before else zeros + 0.5, 106, name, ha="right" if before else "left", fontsize=9)
    left.set(
        title="Each step to the right replaces one record",
        xlabel=f"records that are 0, out of {N}",
        ylabel="sensitivity of the median",
    )
    left.set_ylim(-5, 155)
    left.legend(fontsize=8, loc="upper left")
    t = np.linspace(-400, 400, 1601)
    below = [np.where(t < 0, np.exp(t / b) / 2, 1 - np.exp(-t / b) / 2) for b in (WIDTH / EPSILON, *scales)]
    right.plot(t, below[0], color="tab:red", label="local, table 1")
    right.plot(t, t >= 0, color="tab:red", linestyle="--", label="local, table 2")
    right.plot(t, below[1], color="tab:blue", linewidth=4, alpha=0.4, label="smooth, table 1")
    right.plot(t, below[2], color="tab:blue", linestyle="--", label="smooth, table 2")
    right.set(title=f"The releases, ε = {EPSILON:g}", xlabel="t", ylabel="P(answer ≤ t)")
    right.legend(fontsize=8)
    for axes in (left, right):
        axes.grid(alpha=0.3)
    folder = Path("out") if out is None else out
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "local_sensitivity_leaks.png", dpi=150)
    return {
        "local": locals_,
        "smooth": smooths,
        "beta": mechanism.beta,
        "draws": draws,
        "zero": zero,
        "leak": leak,
        "repaired": repaired,
        "certified": mechanism.certificate(),
        "refused": refused,
        "path": {"local": path_local, "smooth": path_smooth},
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder for the plot (default: out/)")
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    arguments = parser.parse_args()
    main(arguments.out, arguments.quick)
