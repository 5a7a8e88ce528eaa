"""The second document, Foundations of Data Privacy, second part: bounded noise, selection, gradient descent."""

from __future__ import annotations

from dither.course.result import CONDITIONS, DEFINITION, FAILS, HOLDS, Result

RESULTS = (
    Result(
        2,
        "Example 22",
        "The population of Mars",
        HOLDS,
        "A count of 0 with Laplace noise is negative half of the time; whole-number noise is so less often.",
        "dither.Laplace",
        "round(float(dp.Laplace(sensitivity=1, epsilon=1).variance), 6)",
        "2.0",
    ),
    Result(
        2,
        "Example 23",
        "Noisy variance and standard deviation",
        FAILS,
        "The sample variance has sensitivity Λ²/n; the standard deviation has Λ/√n, not Λ/n as the lecture has it.",
        "dither.sensitivity.std",
        "round(dp.sensitivity.std(n=10_000, bounds=(0, 1), neighbors=dp.ReplaceOne), 6)",
        "0.01",
    ),
    Result(
        2,
        "Definition 24",
        "The bounded Laplace mechanism",
        DEFINITION,
        "Noise with density ∝ e^(−|v−q|/b) on [l, u], divided by C_q = 1 − (e^(−(q−l)/b) + e^(−(u−q)/b))/2.",
        "dither.BoundedLaplace",
        "0 <= dp.BoundedLaplace(sensitivity=1, epsilon=1, lower=0, upper=10).release(3.0) <= 10",
        "True",
    ),
    Result(
        2,
        "Example 25",
        "The youngest age",
        HOLDS,
        (
            "Noise from −10 to 100 keeps an age of 10 within 0 to 110; as the minimum has sensitivity 110 the output "
            "says next to nothing."
        ),
        "dither.BoundedLaplace",
        "dp.BoundedLaplace(sensitivity=110, epsilon=1, lower=0, upper=110).scale >= 110",
        "True",
    ),
    Result(
        2,
        "Theorem 26",
        "Privacy of bounded noise",
        CONDITIONS,
        "It is (ε, δ)-DP for b ≥ Δ/(ε − ln ΔC(b) − ln(1 − δ)), a fixed point in b, if Δ ≤ u − l.",
        "dither.BoundedLaplace",
        "round(dp.BoundedLaplace(sensitivity=1, epsilon=1, lower=0, upper=10).scale, 5)",
        "1.61156",
    ),
    Result(
        2,
        "Exponential mechanism",
        "Selecting an object by its score",
        DEFINITION,
        "Select q with probability proportional to exp(ε·f(x, q)/(2Δ)), where Δ bounds the change of every score.",
        "dither.Exponential",
        "dp.Exponential(sensitivity=1, epsilon=1).probabilities([2, 1]).round(4).tolist()",
        "[0.6225, 0.3775]",
    ),
    Result(
        2,
        "Theorem 27",
        "The exponential mechanism",
        HOLDS,
        "It is ε-DP, given a finite sensitivity and a finite sum of weights.",
        "dither.Exponential",
        "dp.Exponential(sensitivity=1, epsilon=1).guarantee",
        "PureDP(1)",
    ),
    Result(
        2,
        "Lemma 28",
        "Utility of the exponential mechanism",
        HOLDS,
        "P(f(Q) < f* − 2Δ(ln d + t)/ε) ≤ e^(−t), and E f(Q) ≥ f* − 2Δ·ln(d)/ε, where the lecture adds a t.",
        "dither.Exponential",
        "round(dp.Exponential(sensitivity=1, epsilon=1).expected_score_bound(candidates=100), 3)",
        "9.21",
    ),
    Result(
        2,
        "Example 29",
        "Running an election",
        HOLDS,
        "With votes 15, 20, 25 and ε = 1 candidate 1 wins with probability e^7.5/(e^7.5 + e^10 + e^12.5).",
        "dither.Exponential",
        "dp.Exponential(sensitivity=1, epsilon=1).probabilities([15, 20, 25]).round(4).tolist()",
        "[0.0062, 0.0754, 0.9184]",
    ),
    Result(
        2,
        "Report noisy max",
        "Selection by adding noise",
        HOLDS,
        (
            "The largest score after exponential noise of rate ε/(2Δ) is ε-DP: it is permute-and-flip, never worse "
            "than the exponential mechanism."
        ),
        "dither.PermuteAndFlip",
        "dp.PermuteAndFlip(sensitivity=1, epsilon=1).probabilities([15, 20, 25]).round(4).tolist()",
        "[0.0033, 0.041, 0.9558]",
    ),
    Result(
        2,
        "Example 30",
        "The election with noise",
        FAILS,
        (
            "Exponential noise is never negative, so a score of 20 cannot become 16; Laplace and Gumbel noise can "
            "lower scores."
        ),
        "dither.NoisyMax",
        "dp.NoisyMax(sensitivity=1, epsilon=1, noise='gumbel').probabilities([15, 20, 25]).round(4).tolist()",
        "[0.0062, 0.0754, 0.9184]",
    ),
    Result(
        2,
        "Gradient descent",
        "Optimality and the steepest direction",
        HOLDS,
        (
            "For convex differentiable f the gradient vanishes exactly at the minima, and its negative is the "
            "direction of steepest descent."
        ),
        "dither.learn.descend",
        (
            "dp.learn.descend(lambda beta, step: 2 * (beta - 3), start=0.0, steps=60, "
            "schedule=dp.learn.Schedule(0.25)).last.round(6).tolist()"
        ),
        "[3.0]",
    ),
    Result(
        2,
        "Example 31",
        "Descent on a parabola",
        HOLDS,
        "For f = x²/2 the step is b − γb, so b_h = b_0(1 − γ)^h, which diverges for γ > 2.",
        "dither.learn.descend",
        (
            "dp.learn.descend(lambda beta, step: beta, start=1.0, steps=3, "
            "schedule=dp.learn.Schedule(0.5)).iterates.ravel().tolist()"
        ),
        "[1.0, 0.5, 0.25, 0.125]",
    ),
    Result(
        2,
        "Example 32",
        "Least squares",
        FAILS,
        "The loss (Y − bX)² has gradient −2X(Y − bX); the lecture drops the 2.",
        "dither.learn.Squared",
        "dp.learn.Squared().gradient(np.array([1.0]), np.array([[2.0]]), np.array([5.0])).tolist()",
        "[-12.0]",
    ),
    Result(
        2,
        "Equation (6)",
        "The bound of gradient descent",
        CONDITIONS,
        "f(average) − f* ≤ ‖b_0 − b*‖²/Σγ for convex f with an L-Lipschitz gradient and steps of at most 1.5/L.",
        "dither.learn.descent_bound",
        "float(dp.learn.descent_bound(1.0, np.full(4, 0.5), smoothness=1.0)[-1])",
        "0.5",
    ),
    Result(
        2,
        "Equation (7)",
        "The empirical loss",
        HOLDS,
        (
            "The mean loss over a sample estimates the expected loss without bias at a fixed b; its minimum is biased "
            "downward."
        ),
        "dither.learn.Squared",
        "dp.learn.Squared().objective(np.array([1.0]), np.ones((2, 1)), np.array([0.0, 2.0]))",
        "1.0",
    ),
    Result(
        2,
        "Example 33",
        "The sample mean",
        HOLDS,
        "The loss (x − b)² is least at the mean.",
        "dither.learn.gradient_descent",
        (
            "dp.learn.gradient_descent(dp.learn.Squared(), np.ones((3, 1)), np.array([1.0, 2.0, 6.0]), start=0.0, "
            "steps=60).last.round(6).tolist()"
        ),
        "[3.0]",
    ),
    Result(
        2,
        "Example 34",
        "Linear regression and ridge",
        HOLDS,
        "Ridge regression has the closed form (8); the intercept is not shrunk.",
        "dither.learn.ridge_line",
        "[round(x, 6) for x in dp.learn.ridge_line(np.array([-1.0, 1.0]), np.array([1.0, 5.0]), penalty=1.0)]",
        "[3.0, 1.0]",
    ),
    Result(
        2,
        "One-pass descent",
        "Every record once",
        FAILS,
        (
            "Batches h = 0, …, n/b − 1 use every record once; with the printed h = 1, …, n/b the first batch is never "
            "used and the last does not exist."
        ),
        "dither.learn.online_sgd",
        (
            "dp.learn.online_sgd(dp.learn.Squared(), np.ones((4, 1)), np.arange(4.0), start=0.0, batch=2, "
            "schedule=dp.learn.Schedule(0.5)).iterates.ravel().tolist()"
        ),
        "[0.0, 0.5, 2.5]",
    ),
    Result(
        2,
        "Multi-pass descent",
        "Random batches",
        CONDITIONS,
        "Every step draws b records, each at most once in a step if they are drawn without replacement.",
        "dither.learn.offline_sgd",
        (
            "dp.learn.offline_sgd(dp.learn.Squared(), np.ones((4, 1)), np.ones(4), start=0.0, steps=3, "
            "schedule=dp.learn.Schedule(0.5)).last.tolist()"
        ),
        "[1.0]",
    ),
    Result(
        2,
        "Theorem 35",
        "The bound of stochastic descent",
        CONDITIONS,
        (
            "E f(average) − f* ≤ ‖b_0 − b*‖²/Σγ + CΣγ²/Σγ (9) for convex losses with L-Lipschitz gradients, with C = "
            "2·E‖∇L_i(b*)‖² and γ ≤ 1/(4L)."
        ),
        "dither.learn.stochastic_bound",
        "float(dp.learn.stochastic_bound(1.0, np.full(100, 0.125), 2.0, 1.0)[-1])",
        "0.33",
    ),
    Result(
        2,
        "Illustration",
        "Descent on a sample mean",
        FAILS,
        (
            "Gradient descent converges in 30 steps of 0.1, stochastic descent with falling steps slowly in 200; the "
            "loops take 29,000 and 199 gradients, not 30,000 and 200."
        ),
        "dither.learn.Schedule",
        "dp.learn.Schedule(0.1, rho=0.5).steps(4).round(4).tolist()",
        "[0.1, 0.0707, 0.0577, 0.05]",
    ),
    Result(
        2,
        "Privacy of descent",
        "Is descent private by itself?",
        FAILS,
        (
            "The randomness of stochastic descent hides nothing: whenever a changed record was drawn the iterate is "
            "one that its neighbor cannot give."
        ),
        "dither.learn.noisy_descent",
        "round(dp.learn.noise_for(1, 1e-5, steps=100, sampling_rate=0.01), 2)",
        "0.9",
    ),
    Result(
        2,
        "Equation (10)",
        "Stochastic descent with noise in every step",
        DEFINITION,
        "Step h moves by −γ_h·(gradient of a random record + θ_h·Z_h), with Laplace noise Z_h in every coordinate.",
        "dither.course.TheoremSGD",
        "dp.course.TheoremSGD(1, 50, clip=1.0).run(dp.learn.Squared(), np.ones((9, 1)), np.ones(9), start=0.0).shape",
        "(1,)",
    ),
    Result(
        2,
        "Theorem 36",
        "Private stochastic descent",
        FAILS,
        (
            "With noise θ_h = (1/a_h)(Σ_(j≤h−2) γ_j/γ_(h−1) + 1)·Δ/ε the single iterate h is ε·a_h-DP, if Δ bounds "
            "gradient differences also between different b, as clipping to C with Δ = 2C does; all iterates together "
            "cost more."
        ),
        "dither.course.TheoremSGD",
        "dp.course.TheoremSGD(epsilon=0.1, steps=100, clip=1.0, kappa=0.5).guarantee",
        "PureDP(1)",
    ),
    Result(
        2,
        "Theorem 37",
        "Utility of private stochastic descent",
        CONDITIONS,
        (
            "The bound (11) adds the term CΣγ²θ²/Σγ to that of Theorem 35; it is about the average of all iterates, "
            "which costs what all of them cost."
        ),
        "dither.course.private_bound",
        (
            "[float(term[-1]) for term in dp.course.private_bound(1.0, dp.course.TheoremSGD(epsilon=1, steps=4, "
            "clip=1.0, schedule=dp.learn.Schedule(0.5)), coordinates=1)]"
        ),
        "[0.25, 0.25, 15.0]",
    ),
    Result(
        2,
        "Utility I",
        "Constant privacy of each iterate",
        CONDITIONS,
        (
            "For a_h = 1 and γ = (1 + h)^(−ρ) the noise grows like h/(1 − ρ) and the bound's third term like N^(2−ρ): "
            "the algorithm does not converge."
        ),
        "dither.course.private_bound",
        (
            "[round(float(dp.course.private_bound(1.0, dp.course.TheoremSGD(epsilon=1, steps=n, clip=1.0), "
            "coordinates=1)[2][-1]) / n**1.5, 1) for n in (100, 400)]"
        ),
        "[3.6, 3.8]",
    ),
    Result(
        2,
        "Utility II",
        "Privacy given up over time",
        FAILS,
        (
            "For a_h = h^κ the third term vanishes if 2κ + ρ > 2, but the guarantee of the last iterate is then ε·N^κ, "
            "which grows without limit."
        ),
        "dither.course.TheoremSGD",
        "round(dp.course.TheoremSGD(epsilon=1, steps=4000, clip=1.0, kappa=0.9).guarantee.epsilon)",
        "1745",
    ),
)
