"""The lessons of the course: which results of which document they hold, their figures and their exercises.

The statements, verdicts and examples are those of ``dither.course``; here is only what a lesson adds: an order, a sentence
of introduction, figures and exercises, whose answers are computed when the page is made. The exercises of single results
are in ``exercises.toml``.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import dither as dp
from dither.course import Result


@dataclass(frozen=True)
class Exercise:
    """A question, Python that answers it, the value of its last expression as Python prints it, and why."""

    question: str
    code: str
    answer: str
    why: str


@dataclass(frozen=True)
class Lesson:
    """A run of results of one document, from the first to the last number."""

    slug: str
    title: str
    document: int
    first: str
    last: str
    about: str
    exercise: Exercise

    @property
    def results(self) -> tuple[Result, ...]:
        """The results of the lesson, in the order of the document."""
        everything = dp.course.results(document=self.document)
        numbers = [result.number for result in everything]
        return tuple(everything[numbers.index(self.first) : numbers.index(self.last) + 1])


LESSONS = (
    Lesson(
        "differential-privacy", "Differential privacy, noise and composition", 2, "Definition 1", "After equation (2)",
        "What is promised, how Laplace and normal noise keep the promise, and what several releases cost together.",
        Exercise(
            "A count is released with ε = 0.5. How large is the noise, and with which ε would an error of 5 be enough in 95 % of releases?",
            "m = dp.Laplace(sensitivity=1, epsilon=0.5)\nwanted = dp.Laplace.for_error(5, sensitivity=1, integer=True)\n(m.scale, round(wanted.epsilon, 3))",
            "(2.0, 0.538)",
            "The scale is Δ/ε = 2. Counts get whole-number noise, for which an error of 5 needs ε = 0.538; real noise has P(|noise| > w) = exp(−wε/Δ), so ε = ln(20)/5 = 0.599.",
        ),
    ),
    Lesson(
        "mixed-noise", "Mixed noise, and why Theorem 10 fails", 2, "Issue 1", "Example 11",
        "Normal noise with the variance of Laplace noise looks attractive. Theorem 10 says when it is private. It is wrong, "
        "and the figure shows at a glance why: its true δ does not depend on the sensitivity at all.",
        Exercise(
            "Take Theorem 10 at its word for Δ = 0.01, ε = 1 and the δ that it then allows, 2Δ/(√π·ε). What does dither say? "
            "Change Δ to 0.1: does the true δ change?",
            "claimed = 2 * 0.01 / math.sqrt(math.pi)\nratio = math.sqrt(2)  # sigma / Delta, whatever Delta is\n"
            "(round(claimed, 4), round(dp.accounting.gaussian_delta(1, ratio), 4))",
            "(0.0113, 0.0396)",
            "The noise is σ = √2·Δ/ε, so σ/Δ is √2/ε for every Δ, and δ is a function of σ/Δ and ε alone. "
            "`dp.course.theorem_10(0.01, 1, 0.0113)` refuses and states the true δ.",
        ),
    ),
    Lesson(
        "smooth-sensitivity", "Local and smooth sensitivity", 2, "Example 12", "Summary",
        "Noise of the size of the local sensitivity gives people away. The smooth sensitivity repairs it.",
        Exercise(
            "The smooth sensitivity of the median of 101 ages between 0 and 100, for β = 0.1, when 51 of them are 0 and the others 100; "
            "and when 52 are 0. By which factor do they differ?",
            "first = dp.sensitivity.smooth_median([0.0] * 51 + [100.0] * 50, bounds=(0, 100), beta=0.1)\n"
            "second = dp.sensitivity.smooth_median([0.0] * 52 + [100.0] * 49, bounds=(0, 100), beta=0.1)\n"
            "(round(first, 3), round(second, 3), round(math.log(first / second), 6))",
            "(100.0, 90.484, 0.1)",
            "Neighbors' smooth sensitivities differ by a factor of at most e^β; here it is exactly that. The local ones are 100 and 0.",
        ),
    ),
    Lesson(
        "bounded-outputs", "Answers inside their range", 2, "Example 22", "Theorem 26",
        "A count of −3 people, a negative variance: what to do about impossible answers, and which repair costs privacy.",
        Exercise(
            "Cutting Lap(1) off at 0 and 10 looks harmless. What is the true loss of the naive scale b = Δ/ε = 1 for Δ = ε = 1, and which b is right?",
            "naive = 1 + math.log((1 - (math.exp(-1) + math.exp(-9)) / 2) / (1 - (1 + math.exp(-10)) / 2))\n"
            "(round(naive, 3), round(dp.BoundedLaplace(sensitivity=1, epsilon=1, lower=0, upper=10).scale, 5))",
            "(1.49, 1.61156)",
            "What the density is divided by depends on the data, and that is worth another 0.49 of loss.",
        ),
    ),
    Lesson(
        "selection", "Choosing instead of adding", 2, "Exponential mechanism", "Example 30",
        "The exponential mechanism and report noisy max: how to publish a name and not a number.",
        Exercise(
            "In the election with 15, 20 and 25 votes at ε = 1, with which probability does the candidate with 25 votes win? And if everybody's ballots "
            "could only be added or removed, not replaced?",
            "right = dp.Exponential(sensitivity=1, epsilon=1).probabilities([15, 20, 25])[2]\n"
            "counts = dp.Exponential.for_counts(1, dp.AddRemove).probabilities([15, 20, 25])[2]\n(round(float(right), 3), round(float(counts), 3))",
            "(0.918, 0.993)",
            "Counts all move in the same direction when a record is added or removed, so the factor 2 in the exponent is not needed.",
        ),
    ),
    Lesson(
        "gradient-descent", "Gradient descent", 2, "Gradient descent", "Illustration",
        "The algorithms that the next lesson makes private, with bounds that hold.",
        Exercise(
            "Descend on f(b) = b² from b = 1 with steps of 0.1. Where are you after 10 steps?",
            "b = 1.0\nfor _ in range(10):\n    b -= 0.1 * 2 * b\nround(b, 6)",
            "0.107374",
            "Each step multiplies b by 1 − 0.1·2 = 0.8, and 0.8¹⁰ is 0.107374.",
        ),
    ),
    Lesson(
        "private-descent", "Private descent, and what is done in practice", 2, "Privacy of descent", "In practice, US census",
        "Noise in every step: what Theorem 36 protects, what it does not, and what is done today.",
        Exercise(
            "Theorem 36 with a_h = h^0.9 and ε = 1: what does the last of 200 iterates cost, by the theorem and by composition of all steps?",
            "sgd = dp.course.TheoremSGD(epsilon=1, steps=200, clip=1.0, kappa=0.9)\n"
            "(round(sgd.theorem_epsilon, 1), round(sgd.composed_epsilon, 1), round(sgd.guarantee.epsilon, 1))",
            "(117.7, 72.8, 72.8)",
            "By the theorem ε·N^κ, by composition about (1 − ρ)/κ of it. An ε of 73 promises nothing; one Laplace draw on the mean would cost 1.",
        ),
    ),
    Lesson(
        "exponential-mechanism", "The exponential mechanism, and a mean three ways", 1, "Utility function", "Example, the mean, over the sample",
        "The most general way to choose privately, and what happens when it is asked for a mean.",
        Exercise(
            "The score −|mean − t| over the whole line gives noise Lap(2/(nε)). What does that really cost, for n = 100 and ε = 1?",
            "scale = 2 / (100 * 1)\nsensitivity = 1 / 100\nsensitivity / scale",
            "0.5",
            "It is the Laplace mechanism with twice the scale: what the density is divided by is the same for all data, so the factor 2 is wasted.",
        ),
    ),
    Lesson(
        "densities", "Releasing a whole distribution", 1, "Estimating the density, Laplace", "Practical problem",
        "Histograms with noise, smoothed histograms, and the Kolmogorov–Smirnov mechanism, of which document 1 does not say how to draw it.",
        Exercise(
            "A histogram of 50 cells, one record replaced: which noise does each cell need for ε = 1? Does it depend on the number of cells?",
            "[dp.Laplace(dp.sensitivity.histogram(neighbors=dp.ReplaceOne), 1).scale, dp.Laplace(dp.sensitivity.histogram(neighbors=dp.AddRemove), 1).scale]",
            "[2.0, 1.0]",
            "One person is in one cell. Replaced, two cells change by 1 each; added or removed, one does. The 50 do not matter.",
        ),
    ),
    Lesson(
        "testing", "What ε means: the power of a test", 1, "Theorem (Wasserman and Zhou), testing", "Summary, 5",
        "An adversary who wants to know whether you are in the data makes a test. Differential privacy bounds its power. Document 1 ends with "
        "an outlook, that the same mathematics keeps repeated analyses from overfitting: in dither that is `dp.ReusableHoldout`, with an example in the gallery.",
        Exercise(
            "An adversary accepts 5 % of false accusations. With ε = 1, how often can a true accusation succeed at most? And with ε = 0.1?",
            "[round(min(0.05 * math.exp(e), 1 - math.exp(-e) * 0.95), 4) for e in (1, 0.1)]",
            "[0.1359, 0.0553]",
            "The power is at most α·e^ε. With ε = 0.1 the adversary does hardly better than by guessing.",
        ),
    ),
    Lesson(
        "selection-problems", "Selection problems: heavy hitters and prices", 3, "Example 1.1", "1.3",
        "Which page is liked most, which price earns most: selection with a proof of its utility.",
        Exercise(
            "100 candidates, ε = 0.5, sensitivity 1. By how much may the chosen score be below the best, with probability 0.99?",
            "round(dp.Exponential(sensitivity=1, epsilon=0.5).error(candidates=100, confidence=0.99), 1)",
            "36.8",
            "2Δ(ln d + t)/ε with t = ln 100. “At most” is printed where it should be at least; the figure is right.",
        ),
    ),
    Lesson(
        "laplace-slides", "The Laplace mechanism on slides", 4, "Differential privacy", "Report noisy max",
        "Counts, vectors, histograms and the largest of many counts, with records added or removed.",
        Exercise(
            "Ten counts of disjoint groups are released together at ε = 1. How large is the largest of the ten errors at most, with probability 0.95?",
            "dp.Laplace(sensitivity=1, epsilon=1).error(0.95, coordinates=10, integer=True)",
            "5.0",
            "The groups are disjoint, so one person changes one count: the sensitivity is 1 and not 10. Counts get whole-number noise; real noise errs by 5.28, and the bound of document 4 ln(10/0.05) = 5.298 holds for both.",
        ),
    ),
    Lesson(
        "ethics", "The science of data ethics: budgets for life", 5, "1, Laplace mechanism", "7, Census 2020",
        "A budget belongs to a person, adds up for life, and is never reset. The Census of 2020 was still to come when document 5 was "
        "written; the tables of a census, which have to add up, are the subject of `dp.publish`.",
        Exercise(
            "A phone reports every day with ε = 4 and calls that private, because the budget is reset every night. What is promised for a year? "
            "How small must the daily ε be for 1 in a year, by plain addition?",
            "(365 * dp.PureDP(4), round(1 / 365, 5))",
            "(PureDP(1460), 0.00274)",
            "ε adds up over releases about the same person, whatever the clock says.",
        ),
    ),
)  # fmt: skip

FIGURE_OF = {
    (1, "Exponential mechanism"): "exponential", (1, "Example, the mean"): "means", (1, "KS utility"): "ks",
    (1, "Theorem (Wasserman and Zhou), testing"): "power",
    (2, "Theorem 2"): "laplace", (2, "Lemma 6"): "composition", (2, "Theorem 10"): "mixed", (2, "Example 11"): "pareto",
    (2, "Definition 14"): "smooth", (2, "Theorem 26"): "bounded", (2, "Example 29"): "exponential", (2, "Example 31"): "steps",
    (2, "Equation (10)"): "descent", (2, "Theorem 37"): "utility", (2, "In practice, Apple"): "reset",
    (3, "Example 1.2"): "pricing", (3, "Example 1.5"): "heavy",
    (4, "Laplace mechanism"): "laplace", (4, "Report noisy max"): "noisymax",
    (5, "5, m times"): "composition", (5, "7, a budget reset every day"): "reset",
    (5, "7, Census 2020"): "census",
}  # fmt: skip
"""The figure of a result, by document and number."""


@cache
def exercises() -> dict[tuple[int, str], Exercise]:
    """The exercises of single results, by document and number."""
    rows = tomllib.loads(Path(__file__).with_name("exercises.toml").read_text(encoding="utf-8"))["exercise"]
    return {
        (row["document"], row["number"]): Exercise(row["question"], row["code"].strip(), row["answer"], row["why"])
        for row in rows
    }
