"""The third document, Solving selection problems privately, lecture 6: the exponential mechanism and its utility."""

from __future__ import annotations

from dither.course.result import CONDITIONS, DEFINITION, FAILS, HOLDS, Result

RESULTS = (
    Result(
        3,
        "Example 1.1",
        "Heavy hitter",
        HOLDS,
        (
            "Each count has sensitivity 1 but the list of d counts has d, so Laplace noise on all of them is d/ε; a "
            "selection needs far less."
        ),
        "dither.Exponential",
        "dp.Exponential.for_counts(1, dp.AddRemove).select(['a', 'b'], [900, 100])",
        "'a'",
    ),
    Result(
        3,
        "Example 1.2",
        "Prices of a digital good",
        CONDITIONS,
        (
            "The revenue of a price has sensitivity equal to the highest price; for values within [0, 1] that is 1, "
            "not 1.99, as nobody pays more."
        ),
        "dither.Exponential",
        "dp.Exponential(sensitivity=1, epsilon=1).select([0.69, 0.70, 0.71], [690, 700, 0]) < 0.71",
        "True",
    ),
    Result(
        3,
        "1.1",
        "Selection problems",
        DEFINITION,
        (
            "A set of outputs, a score of each for a data set, and a bound on its sensitivity; wanted is an output "
            "with nearly the best score, q_max (4)."
        ),
        "dither.Exponential",
        "dp.Exponential(sensitivity=1, epsilon=1).probabilities([900, 100]).round(4).tolist()",
        "[1.0, 0.0]",
    ),
    Result(
        3,
        "Equation (1)",
        "The sensitivity of a score",
        DEFINITION,
        "Δ bounds the change of every candidate's score between neighbors.",
        "dither.sensitivity.count",
        "dp.sensitivity.count(neighbors=dp.AddRemove)",
        "1.0",
    ),
    Result(
        3,
        "Algorithm 1",
        "The exponential mechanism",
        DEFINITION,
        "Select y with probability proportional to exp(ε·q(y)/(2Δ)).",
        "dither.Exponential",
        "dp.Exponential(sensitivity=1, epsilon=2).probabilities([1, 0]).round(4).tolist()",
        "[0.7311, 0.2689]",
    ),
    Result(
        3,
        "Equation (2)",
        "The probabilities",
        FAILS,
        (
            "P(y) = e^(ε·q(y)/(2Δ)) / Σ e^(ε·q/(2Δ)); the lecture drops ε above the line. Over infinite domains the "
            "sum or integral must be finite."
        ),
        "dither.Exponential",
        "dp.Exponential(sensitivity=1, epsilon=2).probabilities([1, 2, 3]).sum().round(9).item()",
        "1.0",
    ),
    Result(
        3,
        "Theorem 1.3",
        "Privacy of the exponential mechanism",
        HOLDS,
        "It is ε-DP, also over an infinite domain: weight and sum each move by e^(ε/2) at most.",
        "dither.Exponential",
        "dp.Exponential(sensitivity=1, epsilon=0.5).guarantee",
        "PureDP(0.5)",
    ),
    Result(
        3,
        "Proposition 1.4",
        "Utility of the exponential mechanism",
        HOLDS,
        (
            "P(q(Y) < q_max − 2Δ(ln d + t)/ε) ≤ e^(−t) (5) and E q(Y) ≥ q_max − 2Δ(ln d + 1)/ε (6), where the 1 can "
            "go; in the proof C is one over the sum of the weights."
        ),
        "dither.Exponential",
        "round(dp.Exponential(sensitivity=1, epsilon=0.5).error(candidates=100, confidence=0.99), 2) <= 36.84",
        "True",
    ),
    Result(
        3,
        "Example 1.5",
        "Heavy hitter, continued",
        FAILS,
        (
            "For d = 100 and ε = 0.5 the score is with probability 0.99 at least, not at most, q_max − 36.8; Laplace "
            "noise on all scores has scale 200."
        ),
        "dither.Exponential",
        "round(2 / 0.5 * (math.log(100) + math.log(1 / 0.01)), 2)",
        "36.84",
    ),
    Result(
        3,
        "Example 1.6",
        "Pricing, continued",
        FAILS,
        "There are 199 prices and Δ = 1.99, so the price found is within 2Δ·ln(d)/ε = 21/ε of the best, not 31/ε.",
        "dither.Exponential",
        "round(dp.Exponential(sensitivity=1.99, epsilon=1).expected_score_bound(candidates=199), 2)",
        "21.07",
    ),
    Result(
        3,
        "1.3",
        "Laplace and randomized response as selections",
        FAILS,
        (
            "Both are exponential mechanisms with the score −‖y − f(x)‖₁ (the lecture drops the sign) and the number "
            "of agreements; their sums do not vary, which saves the factor 2."
        ),
        "dither.RandomizedResponse",
        "round(dp.RandomizedResponse(epsilon=1).probability, 4)",
        "0.7311",
    ),
)
