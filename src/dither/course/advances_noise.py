"""The second document, Foundations of Data Privacy, first part: composition, mixed noise, smooth sensitivity."""

from __future__ import annotations

from dither.course.result import CONDITIONS, DEFINITION, FAILS, HOLDS, Result

RESULTS = (
    Result(
        2,
        "Definition 1",
        "Differential privacy",
        DEFINITION,
        "An algorithm is ε-DP if no output becomes more likely by more than a factor e^ε when one record is changed.",
        "dither.PureDP",
        "dp.PureDP(1)",
        "PureDP(1)",
    ),
    Result(
        2,
        "Theorem 2",
        "The Laplace mechanism",
        HOLDS,
        "f(x) + Lap(Δ/ε) is ε-DP for every real f with a finite sensitivity Δ, if the noise is drawn exactly.",
        "dither.Laplace",
        "dp.Laplace(sensitivity=2, epsilon=1).privacy_curve(1)",
        "0.0",
    ),
    Result(
        2,
        "Example 3",
        "The mean without noise",
        HOLDS,
        (
            "The mean without noise is not DP; neither is it with normal noise under pure DP, though that does not "
            "follow from the example."
        ),
        "dither.stats.mean",
        "dp.stats.mean([0, 0.5, 1] * 100, bounds=(0, 1), epsilon=1).guarantee",
        "PureDP(1)",
    ),
    Result(
        2,
        "Definition 4",
        "Approximate differential privacy",
        DEFINITION,
        "(ε, δ)-DP allows the factor e^ε to be exceeded by a probability of δ.",
        "dither.ApproxDP",
        "dp.PureDP(1) <= dp.ApproxDP(1, 1e-6)",
        "True",
    ),
    Result(
        2,
        "Theorem 5",
        "The classical Gaussian mechanism",
        HOLDS,
        (
            "σ = √(2·ln(1.25/δ))·Δ/ε is (ε, δ)-DP for ε < 1 only; the exact calibration holds for every ε and is never "
            "larger."
        ),
        "dither.Gaussian",
        "dp.Gaussian(1, 0.5, 1e-5).scale < dp.Gaussian(1, 0.5, 1e-5, method='classical').scale",
        "True",
    ),
    Result(
        2,
        "Lemma 6",
        "Sequential composition",
        HOLDS,
        "The ε's of releases from the same data add up, and so do the δ's.",
        "dither.sequential",
        "dp.sequential(dp.PureDP(0.5), dp.PureDP(1))",
        "PureDP(1.5)",
    ),
    Result(
        2,
        "Lemma 7",
        "Parallel composition",
        CONDITIONS,
        (
            "Releases from disjoint parts of the data cost the largest ε, if the parts are fixed beforehand; where a "
            "replaced record moves to another part, the two largest add."
        ),
        "dither.parallel",
        "dp.parallel(dp.PureDP(1), dp.PureDP(0.5))",
        "PureDP(1)",
    ),
    Result(
        2,
        "Example 8",
        "Several queries",
        HOLDS,
        (
            "Mean and variance of one part and the median of another cost max(ε₁ + ε₂, ε₃); their sensitivities are "
            "Λ/m, Λ²/m and Λ."
        ),
        "dither.parallel",
        "dp.parallel(dp.sequential(dp.PureDP(0.25), dp.PureDP(0.5)), dp.PureDP(0.6))",
        "PureDP(0.75)",
    ),
    Result(
        2,
        "Utility",
        "The price of Laplace noise",
        HOLDS,
        "Laplace noise adds 2(Δ/ε)² to the mean squared error of an estimate.",
        "dither.Laplace",
        "round(float(dp.Laplace(sensitivity=0.01, epsilon=1).variance), 6)",
        "0.0002",
    ),
    Result(
        2,
        "Equation (2)",
        "The variance of a noisy mean",
        HOLDS,
        "For a mean of n values in [0, Λ] the noise has variance 2Λ²/(nε)².",
        "dither.stats.mean",
        "round(float(dp.Laplace(dp.sensitivity.mean(n=100, bounds=(0, 4), neighbors=dp.ReplaceOne), 1).variance), 6)",
        "0.0032",
    ),
    Result(
        2,
        "Issue 1",
        "Other noise than Laplace",
        FAILS,
        (
            "Pure DP allows other laws than Laplace, such as staircase noise with less variance; and normal noise "
            "needs σ² = 2Δ²·ln(1.25/δ)/ε², where the lecture prints Δ for Δ²."
        ),
        "dither.Staircase",
        "dp.Staircase(1, 3).variance < dp.Laplace(1, 3).variance",
        "True",
    ),
    Result(
        2,
        "Definition 9",
        "Mixed noise",
        DEFINITION,
        (
            "Gaussian noise where the sensitivity is small, Laplace noise where it is large; here: whichever of two "
            "calibrated laws has the smaller variance."
        ),
        "dither.MixedNoise",
        "dp.MixedNoise(sensitivity=1, epsilon=1, delta=0.1).chosen",
        "'Gaussian'",
    ),
    Result(
        2,
        "Theorem 10",
        "Privacy of mixed noise",
        FAILS,
        (
            "Gaussian noise with σ = √2·Δ/ε has a δ that depends on ε alone, so no threshold on Δ makes it (ε, δ)-DP; "
            "it is refused with the true δ."
        ),
        "dither.course.theorem_10",
        "round(dp.course.theorem_10(sensitivity=0.01, epsilon=1, delta=0.1).delta, 4)",
        "0.0396",
    ),
    Result(
        2,
        "Example 11",
        "Means of Pareto data",
        CONDITIONS,
        (
            "Pareto values have no upper bound, so the mean has no sensitivity: clip at a public value, at the price "
            "of a bias."
        ),
        "dither.stats.mean",
        "dp.stats.mean([1, 2, 50] * 100, bounds=(1, 10), epsilon=1).guarantee",
        "PureDP(1)",
    ),
    Result(
        2,
        "Example 12",
        "Local sensitivity leaks",
        HOLDS,
        (
            "The median has global sensitivity Λ and a local one of the gaps around it; noise of the local sensitivity "
            "distinguishes two neighbors with certainty."
        ),
        "dither.sensitivity.local_median",
        "[round(dp.sensitivity.local_median([0] * zeros + [1] * (11 - zeros), (0, 1)), 6) for zeros in (6, 7)]",
        "[1.0, 0.0]",
    ),
    Result(
        2,
        "Smooth sensitivity, preliminaries",
        "Global from local sensitivity",
        HOLDS,
        "The global sensitivity is the largest local one.",
        "dither.sensitivity.median",
        "dp.sensitivity.median(bounds=(0, 1), neighbors=dp.ReplaceOne)",
        "1.0",
    ),
    Result(
        2,
        "Definition 13",
        "A smooth bound on the local sensitivity",
        DEFINITION,
        (
            "S is a β-smooth bound if it is at least the local sensitivity and moves by a factor e^β at most between "
            "neighbors."
        ),
        "dither.sensitivity.smooth_median",
        (
            "dp.sensitivity.smooth_median([0.1, 0.5, 0.9], (0, 1), 0.1) >= dp.sensitivity.local_median([0.1, 0.5, "
            "0.9], (0, 1))"
        ),
        "True",
    ),
    Result(
        2,
        "Definition 14",
        "Smooth sensitivity",
        DEFINITION,
        (
            "The smooth sensitivity is the largest local sensitivity of any data set, discounted by e^(−β) for every "
            "record it differs in."
        ),
        "dither.sensitivity.smooth_median",
        "round(dp.sensitivity.smooth_median([0.1, 0.5, 0.9], (0, 1), 0.1), 4)",
        "0.7408",
    ),
    Result(
        2,
        "Lemma 15",
        "The least smooth bound",
        HOLDS,
        "The smooth sensitivity is a β-smooth bound, and the least one.",
        "dither.sensitivity.smooth_median",
        (
            "dp.sensitivity.smooth_median([0.5] * 3, (0, 1), 0.1) <= math.exp(0.1) * "
            "dp.sensitivity.smooth_median([0.5, 0.5, 0.9], (0, 1), 0.1)"
        ),
        "True",
    ),
    Result(
        2,
        "Proposition 16",
        "Laplace noise of the smooth sensitivity",
        HOLDS,
        (
            "Lap(2S/ε) with β ≤ ε/(2·ln(2/δ′)) is (ε, δ′(e^(ε/2) + 1)/2)-DP, loose by orders of magnitude: the exact "
            "calibration needs less noise."
        ),
        "dither.SmoothNoise",
        "dp.SmoothNoise('laplace', 1, 1e-6).guarantee",
        "ApproxDP(1, 1e-06)",
    ),
    Result(
        2,
        "Corollary 17",
        "The guarantee of that noise",
        HOLDS,
        "It is (ε, δ)-DP whenever δ′(e^(ε/2) + 1)/2 ≤ δ.",
        "dither.SmoothNoise",
        "dp.SmoothNoise('laplace', 1, 1e-6, calibration='textbook').guarantee",
        "ApproxDP(1, 1e-06)",
    ),
    Result(
        2,
        "Noise with heavy tails",
        "Pure privacy from smooth sensitivity",
        HOLDS,
        "Noise with density ∝ 1/(1 + |z|^γ), γ > 1, of scale 2(γ + 1)S/ε with β ≤ ε/(2(γ + 1)) is ε-DP.",
        "dither.SmoothNoise",
        "dp.SmoothNoise('student', 1).guarantee",
        "PureDP(1)",
    ),
    Result(
        2,
        "Normal noise",
        "Normal noise of the smooth sensitivity",
        CONDITIONS,
        (
            "Normal noise of scale 5√(2·ln(2/δ))·S/ε with β = ε/(2·ln(2/δ)) is (ε, δ)-DP up to about ε = 5, and not "
            "beyond."
        ),
        "dither.SmoothNoise",
        "dp.SmoothNoise('gaussian', 1, 1e-6, calibration='textbook').guarantee",
        "ApproxDP(1, 1e-06)",
    ),
    Result(
        2,
        "Computation",
        "Computing the smooth sensitivity",
        FAILS,
        "It need not run over all data sets: for order statistics and means there is a closed form in O(n log n).",
        "dither.sensitivity.smooth_median",
        "round(dp.sensitivity.smooth_median([x / 1000 for x in range(1001)], (0, 1), 0.1), 6)",
        "0.004066",
    ),
    Result(
        2,
        "Definition 18",
        "Local sensitivity at a distance",
        DEFINITION,
        (
            "A_k is the largest local sensitivity of a data set in which k records differ; the smooth sensitivity is "
            "exactly max over k of e^(−kβ)·A_k."
        ),
        "dither.sensitivity.local_median",
        "[round(dp.sensitivity.local_median([0.1, 0.5, 0.9], (0, 1), distance=k), 6) for k in (0, 1)]",
        "[0.4, 0.8]",
    ),
    Result(
        2,
        "Example 19",
        "Smooth sensitivity of the mean",
        FAILS,
        (
            "The local sensitivity of the mean is max_j max(x_j, Λ − x_j)/n, and A_k = Λ/n from k = 1 on, so the "
            "smooth one gains a factor e^β at most."
        ),
        "dither.sensitivity.smooth_mean",
        "round(dp.sensitivity.smooth_mean([0.5] * 10, (0, 1), 0.1), 6)",
        "0.090484",
    ),
    Result(
        2,
        "Example 20",
        "Smooth sensitivity of the median",
        CONDITIONS,
        (
            "Formula (4), max over k of e^(−kβ) max over t of x_(m+t) − x_(m+t−k−1), holds with order statistics "
            "beyond the ends read as the ends of the range."
        ),
        "dither.sensitivity.smooth_median",
        "round(dp.sensitivity.smooth_median([0.4, 0.5, 0.6], (0, 1), 1.0), 6)",
        "0.18394",
    ),
    Result(
        2,
        "Example 21",
        "The two data sets of Example 12 again",
        HOLDS,
        "All differences are 0 or Λ, and neither smooth sensitivity is 0.",
        "dither.sensitivity.smooth_median",
        "[round(dp.sensitivity.smooth_median([0] * zeros + [1] * (11 - zeros), (0, 1), 0.1), 4) for zeros in (6, 7)]",
        "[1.0, 0.9048]",
    ),
    Result(
        2,
        "Summary",
        "Smooth, local and global sensitivity",
        FAILS,
        (
            "The smooth sensitivity lies between the local and the global one; less noise follows only where it is "
            "clearly below, and the global one needs no data, only the query and the public range."
        ),
        "dither.stats.median",
        "dp.stats.median([0.5] * 99, bounds=(0, 1), epsilon=1, delta=1e-6, method='smooth').guarantee",
        "ApproxDP(1, 1e-06)",
    ),
)
