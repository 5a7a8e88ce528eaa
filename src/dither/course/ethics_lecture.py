"""The fifth document, The science of data ethics: Laplace, exponential mechanism, composition, budgets."""

from __future__ import annotations

from dither.course.result import CONDITIONS, DEFINITION, FAILS, HOLDS, Result

RESULTS = (
    Result(
        5,
        "1, Laplace mechanism",
        "Noise of the size of the sensitivity",
        DEFINITION,
        "f(x) + v, with v of density e^(−|v|/b)/(2b), b = Δf/ε, and Δf the largest change of f between neighbors.",
        "dither.Laplace",
        "dp.Laplace(sensitivity=1, epsilon=0.5).scale",
        "2.0",
    ),
    Result(
        5,
        "1, average",
        "Sensitivity of an average",
        CONDITIONS,
        "It is 1/n for values in [0, 1], and the width of the range over n in general.",
        "dither.sensitivity.mean",
        "dp.sensitivity.mean(n=5, bounds=(0, 40), neighbors=dp.ReplaceOne)",
        "8.0",
    ),
    Result(
        5,
        "1, standard deviation",
        "Sensitivity of a standard deviation",
        CONDITIONS,
        "It is 1/√n for values in [0, 1], and the width over √n in general; document 2 has 1/n, which is wrong.",
        "dither.sensitivity.std",
        "round(dp.sensitivity.std(n=100, bounds=(0, 1), neighbors=dp.ReplaceOne), 6)",
        "0.1",
    ),
    Result(
        5,
        "1.1",
        "Analysis of the Laplace mechanism",
        FAILS,
        "The ratio of densities is at most e^(Δ/b) = e^ε with b = Δ/ε; the lecture prints e^(Δ/ε).",
        "dither.Laplace",
        "round(dp.Laplace(sensitivity=3, epsilon=0.5).scale, 6)",
        "6.0",
    ),
    Result(
        5,
        "3, generalized sensitivity",
        "Sensitivity of a utility",
        DEFINITION,
        "Δu is the largest change of the utility over outputs and neighbors; a best output maximizes the utility.",
        "dither.Exponential",
        "dp.Exponential(sensitivity=1, epsilon=1).probabilities([0, 3, 1]).argmax().item()",
        "1",
    ),
    Result(
        5,
        "4",
        "The exponential mechanism",
        FAILS,
        "Outputs are drawn with probability proportional, not equal, to e^(ε·u/(2Δ)).",
        "dither.Exponential",
        "dp.Exponential(sensitivity=1, epsilon=1).probabilities([15, 20, 25]).sum().round(9).item()",
        "1.0",
    ),
    Result(
        5,
        "5, two algorithms",
        "Composition of two",
        CONDITIONS,
        "A₂ run on the result of A₁ costs ε₁ alone; if it reads the data as well, ε₁ + ε₂.",
        "dither.sequential",
        "dp.PureDP(0.5) + dp.PureDP(1)",
        "PureDP(1.5)",
    ),
    Result(
        5,
        "5, m times",
        "Composition of m",
        HOLDS,
        "The same algorithm m times costs mε, and far less if a δ is allowed.",
        "dither.accounting.best_of",
        "dp.accounting.best_of(100 * dp.RandomizedResponse(0.1).event, delta=1e-6).guarantee.epsilon < 5",
        "True",
    ),
    Result(
        5,
        "6, combining releases",
        "Why budgets are needed",
        HOLDS,
        "Releases that are harmless alone can together tell about a person.",
        "dither.accounting.best_of",
        "dp.accounting.best_of(3 * dp.Laplace(1, 0.5).event).guarantee",
        "PureDP(1.5)",
    ),
    Result(
        5,
        "6, budget",
        "A person's budget",
        HOLDS,
        (
            "It falls by ε with every calculation that includes the person; the guarantee is the largest sum over "
            "people."
        ),
        "dither.ledger.Ledger",
        "max(dp.PureDP(0.5) + dp.PureDP(0.25), dp.PureDP(0.5), key=lambda total: total.epsilon)",
        "PureDP(0.75)",
    ),
    Result(
        5,
        "7, a budget reset every day",
        "Budgets are for life",
        HOLDS,
        "A daily limit that is reset is no limit on what a person loses in a lifetime; a ledger never resets.",
        "dither.ledger.open",
        "dp.local.repetition_cost(1, 365).fresh",
        "PureDP(365)",
    ),
)

__all__ = ["RESULTS"]
