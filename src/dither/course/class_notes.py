"""The first document, Class notes 4: the exponential mechanism, releasing a density, testing."""

from __future__ import annotations

from dither.course.result import CONDITIONS, DEFINITION, FAILS, HOLDS, Result

RESULTS = (
    Result(
        1,
        "Utility function",
        "What makes an output good",
        DEFINITION,
        "u(x, l) says how useful it is to report l when the data are x: for a mean, −|mean − l| or −(mean − l)².",
        "dither.Exponential",
        "dp.Exponential(1, 1).probabilities([-abs(0.4 - l) for l in (0, 0.5, 1)]).argmax().item()",
        "1",
    ),
    Result(
        1,
        "Sensitivity of a utility",
        "How far one record moves a utility",
        DEFINITION,
        "Δu is the largest change of u(x, l) between neighbors x, for any output l.",
        "dither.Exponential",
        "dp.Exponential(sensitivity=dp.sensitivity.count(neighbors=dp.AddRemove), epsilon=1).sensitivity",
        "1.0",
    ),
    Result(
        1,
        "Exponential mechanism",
        "The exponential mechanism",
        DEFINITION,
        "Report l with probability proportional to exp(ε·u(x, l)/(2Δu)): good outputs are likely, none is certain.",
        "dither.Exponential",
        "dp.Exponential(sensitivity=1, epsilon=1).probabilities([0, -1, -2]).round(4).tolist()",
        "[0.5065, 0.3072, 0.1863]",
    ),
    Result(
        1,
        "Theorem, exponential mechanism",
        "Privacy of the exponential mechanism",
        CONDITIONS,
        (
            "The exponential mechanism is ε-DP for every utility with a finite sensitivity whose weights have a finite "
            "sum; without the two conditions it is not defined."
        ),
        "dither.Exponential",
        "dp.Exponential(sensitivity=1, epsilon=1).probabilities([3, 2, 0]).round(4).tolist()",
        "[0.5465, 0.3315, 0.122]",
    ),
    Result(
        1,
        "Intuition of the proof",
        "Where the factor 2 comes from",
        HOLDS,
        (
            "The weights move by a factor e^(ε/2) and their sum by another one; where the scores of all candidates "
            "move the same way the sum does not count, and the 2 drops."
        ),
        "dither.Exponential",
        "dp.Exponential(1, 1, monotone=True).probabilities([1, 0]).round(4).tolist()",
        "[0.7311, 0.2689]",
    ),
    Result(
        1,
        "Example, the mean",
        "The mean, released in three ways",
        FAILS,
        (
            "Laplace noise of scale 1/(nε) is ε-DP on [0, 1]; the utility −|mean − l| really costs ε/2; the utility "
            "−(mean − l)² has sensitivity (2 − 1/n)/n on [0, 1] and none on the line, so the normal law must be kept "
            "to [0, 1]."
        ),
        "dither.stats.mean",
        "dp.sensitivity.mean(n=100, bounds=(0, 1), neighbors=dp.ReplaceOne)",
        "0.01",
    ),
    Result(
        1,
        "Estimating the density, Laplace",
        "Noise for a histogram",
        FAILS,
        (
            "A histogram needs noise of scale 1/ε when a record is added or removed and 2/ε when one is replaced, "
            "whatever the number m of cells; the notes have m/ε."
        ),
        "dither.stats.histogram",
        "[dp.sensitivity.histogram(neighbors=relation) for relation in (dp.AddRemove, dp.ReplaceOne)]",
        "[1.0, 2.0]",
    ),
    Result(
        1,
        "KS utility",
        "The Kolmogorov-Smirnov mechanism",
        FAILS,
        (
            "The utility −KS has sensitivity 1/n, so drawing a sample z with weight exp(−ε n KS / 2) is ε-DP; the "
            "notes drop the minus sign."
        ),
        "dither.density.release",
        "dp.density.release([0.2, 0.4, 0.9] * 30, (0, 1), 1, method='ks', bins=4).guarantee",
        "PureDP(1)",
    ),
    Result(
        1,
        "Theorem (Wasserman and Zhou), rate",
        "The rate of the Kolmogorov-Smirnov mechanism",
        FAILS,
        (
            "With k of order n^(2/3) points the release is within O(n^(−1/3)) of the truth, which is not faster than "
            "the other ε-DP releases: in one dimension a plain noisy histogram does better."
        ),
        "dither.density.release",
        "dp.density.release([0.2, 0.4, 0.9] * 300, (0, 1), 1, method='histogram').guarantee",
        "PureDP(1)",
    ),
    Result(
        1,
        "Other ways to perturb a histogram",
        "The smoothed histogram",
        CONDITIONS,
        "Drawing k points from (1 − θ)·histogram + θ·uniform is ε-DP when k·ln((1 − θ)m/(nθ) + 1) ≤ ε.",
        "dither.density.release",
        "dp.density.release([0.2, 0.4, 0.9] * 300, (0, 1), 1, method='smoothed').guarantee",
        "PureDP(1)",
    ),
    Result(
        1,
        "Rate of the histogram without noise",
        "The rate without privacy",
        CONDITIONS,
        (
            "The empirical distribution errs by O(n^(−1/2)); a histogram does so with about n^(1/4) cells a side or "
            "more."
        ),
        "dither.density.Density",
        "dp.density.release([0.25, 0.75] * 500, (0, 1), 100, bins=2).weights.round(1).tolist()",
        "[0.5, 0.5]",
    ),
    Result(
        1,
        "Practical problem",
        "Drawing from the Kolmogorov-Smirnov mechanism",
        FAILS,
        (
            "In one dimension it is drawn exactly and fast: a threshold first, then a lattice path within it; the "
            "notes call it an open problem."
        ),
        "dither.density.release",
        "dp.density.release([0.2, 0.4, 0.9] * 30, (0, 1), 1, method='ks', bins=4, points=20).method",
        "'ks'",
    ),
    Result(
        1,
        "Theorem (Wasserman and Zhou), testing",
        "The power of a test about one person",
        CONDITIONS,
        (
            "A test at level α of one record has power at most α·e^ε, which is little for small ε only; run backwards "
            "it is a lower bound on the ε of any code."
        ),
        "dither.audit.measure",
        "dp.audit.measure(lambda x: dp.Laplace(0.5, 1).release(x), 0.0, 1.0, claim=1).refuted",
        "True",
    ),
    Result(
        1,
        "Summary, composition",
        "Composition in a chain",
        FAILS,
        "M₂(M₁(x)) is ε₁-DP, as post-processing is free, and (ε₁ + ε₂)-DP if M₂ reads x as well; it is not ε₁·ε₂-DP.",
        "dither.sequential",
        "dp.sequential(dp.PureDP(0.5), dp.PureDP(0.5))",
        "PureDP(1)",
    ),
    Result(
        1,
        "Summary, 3",
        "Optimal mechanisms",
        FAILS,
        (
            "Some mechanisms are provably optimal: for one count discrete Laplace noise has the least expected error "
            "of all noise, 1/sinh(ε)."
        ),
        "dither.Laplace",
        "round(1 / math.sinh(1), 5)",
        "0.85092",
    ),
)
