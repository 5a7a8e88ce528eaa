"""The fourth document, Differential privacy, slides: the Laplace mechanism and report noisy max."""

from __future__ import annotations

from dither.course.result import CONDITIONS, DEFINITION, FAILS, HOLDS, Result

RESULTS = (
    Result(
        4,
        "Differential privacy",
        "The definition, records added or removed",
        DEFINITION,
        (
            "Neighbors differ by the addition or removal of one record, and no set of outputs becomes more likely by "
            "more than e^ε."
        ),
        "dither.AddRemove",
        "dp.AddRemove",
        "AddRemove",
    ),
    Result(
        4,
        "Sensitivity",
        "Sensitivity of a function",
        DEFINITION,
        "Δf is the largest ℓ₁ distance of f between neighbors.",
        "dither.sensitivity.linear",
        "dp.sensitivity.linear([[1, 0], [1, 1]])",
        "2.0",
    ),
    Result(
        4,
        "Sensitivity of an average",
        "An average of zeros and ones",
        CONDITIONS,
        (
            "It is 1/|x|, also for linear queries with values in [0, 1], with |x| the larger size, which must be "
            "public, as it changes when a record is added."
        ),
        "dither.sensitivity.mean",
        "dp.sensitivity.mean(n=100, bounds=(0, 1), neighbors=dp.ReplaceOne)",
        "0.01",
    ),
    Result(
        4,
        "Laplace distribution",
        "Variance and tail",
        HOLDS,
        "Lap(b) has variance 2b², and P(|Y| ≥ bt) = e^(−t).",
        "dither.Laplace",
        "round(dp.Laplace(sensitivity=1, epsilon=1).error(confidence=1 - math.exp(-3), integer=False), 6)",
        "3.0",
    ),
    Result(
        4,
        "Laplace mechanism",
        "Privacy and accuracy",
        HOLDS,
        (
            "With b = Δ/ε it is ε-DP, also for vectors with the ℓ₁ sensitivity and after rounding; P(largest error of "
            "K ≥ ln(K/δ)·Δ/ε) ≤ δ."
        ),
        "dither.Laplace",
        "dp.Laplace(1, 1).error(0.95, coordinates=10, integer=False) <= math.log(10 / 0.05)",
        "True",
    ),
    Result(
        4,
        "Notes, 1",
        "Gaussian noise",
        FAILS,
        (
            "σ must be of order Δ·√ln(1/δ)/ε; without the root it is far too large for small δ, and too small for "
            "large ε."
        ),
        "dither.Gaussian",
        "round(dp.Gaussian(sensitivity=1, epsilon=1, delta=1e-6).scale, 3)",
        "4.225",
    ),
    Result(
        4,
        "Notes, 2",
        "Randomized response",
        HOLDS,
        "It is local, and less accurate than noise added by a trusted collector.",
        "dither.RandomizedResponse",
        "dp.RandomizedResponse(epsilon=1).error(people=1000) * 1000 > dp.Laplace(1, 1).error()",
        "True",
    ),
    Result(
        4,
        "One counting query",
        "A count",
        HOLDS,
        "A count has sensitivity 1, so Lap(1/ε) is enough.",
        "dither.stats.count",
        "dp.sensitivity.count(neighbors=dp.AddRemove)",
        "1.0",
    ),
    Result(
        4,
        "Vector-valued queries",
        "Several queries at once",
        HOLDS,
        "For d queries of sensitivity Δ each, Lap(dΔ/ε) on each is enough, by composition.",
        "dither.Laplace",
        "dp.Laplace(sensitivity=[1, 1, 1], epsilon=1).guarantee",
        "PureDP(1)",
    ),
    Result(
        4,
        "Histogram queries",
        "A histogram",
        HOLDS,
        "Lap(1/ε) in each cell is enough, since the ℓ₁ distance is 1; if a record is replaced it is Lap(2/ε).",
        "dither.stats.histogram",
        "dp.sensitivity.histogram(neighbors=dp.AddRemove)",
        "1.0",
    ),
    Result(
        4,
        "A question",
        "Over 50 and a smoker",
        HOLDS,
        "It is a count like any other: its sensitivity is 1.",
        "dither.sensitivity.count",
        "dp.sensitivity.count(neighbors=dp.ReplaceOne)",
        "1.0",
    ),
    Result(
        4,
        "Example, likes",
        "The most liked page",
        HOLDS,
        (
            "Counting the likes of every page needs noise that grows with the likes of one person; only the largest is "
            "wanted."
        ),
        "dither.NoisyMax",
        "dp.NoisyMax.for_counts(1, dp.AddRemove).select(['a', 'b'], [900, 100])",
        "'a'",
    ),
    Result(
        4,
        "Report noisy max",
        "Privacy and accuracy",
        HOLDS,
        (
            "The largest of m counts after Lap(1/ε) on each is ε-DP when records are added or removed; if one is "
            "replaced it needs Lap(2/ε). With probability 1 − β it is within 2·ln(m/β)/ε of the best."
        ),
        "dither.NoisyMax",
        "dp.NoisyMax.for_counts(1, dp.AddRemove, noise='laplace').guarantee",
        "PureDP(1)",
    ),
)
