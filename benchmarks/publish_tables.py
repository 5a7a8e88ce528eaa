"""Small tables for the benchmark of publishing: errors of margins, coverage of intervals, whole counts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dither as dp
from dither.publish import (
    Attribute,
    Domain,
    Estimates,
    MarginalPlan,
    PublicTotals,
    TableSpec,
    public_totals,
    whole_counts,
)
from dither.publish.domain import Levels
from dither.publish.residuals import margin, margins
from suite import Row, number

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
UNIT = 2.0**-20


def root_mean_square(errors: Sequence[Floats] | Floats) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


def plan_of(domain: Domain, tables: Sequence[Levels], **options: Any) -> MarginalPlan:
    return MarginalPlan(domain, [TableSpec(levels) for levels in tables], **options)


def releases(case: Case, repeats: int) -> Iterator[Estimates]:
    """Estimates from as many releases of the same counts."""
    mechanism = case.plan.mechanism(case.budget)
    public = {levels: part / case.plan.unit for levels, part in case.plan.totals.parts(case.plan.residuals).items()}
    for _ in range(repeats):
        noisy = mechanism.release({case.finest: case.counts})
        yield Estimates(case.plan.residuals, case.tables, {**noisy, **public}, mechanism.variances, case.plan.unit)


@dataclass(frozen=True)
class Case:
    """A plan and the counts of its finest table."""

    name: str
    plan: MarginalPlan
    counts: Integers
    finest: Levels
    budget: dp.Guarantee

    @property
    def tables(self) -> list[Levels]:
        return [table.levels for table in self.plan.tables]

    def exact(self, levels: Levels) -> Floats:
        """The counts of a table in people."""
        return np.asarray(margin(self.plan.domain, self.counts, self.finest, levels) * self.plan.unit)


def states(people: int = 100_000, count: int = 51) -> tuple[Domain, Integers]:
    generator = np.random.default_rng(1)
    domain = Domain([Attribute.flat(name, range(size)) for name, size in (("state", count), ("age", 9), ("sex", 2))])
    ages = np.array([12, 13, 14, 13, 12, 12, 10, 7, 3.0])
    shares = (
        np.exp(generator.normal(0, 1.2, count))[:, np.newaxis, np.newaxis] * ages[:, np.newaxis] * np.ones((1, 1, 2))
    )
    return domain, generator.poisson(shares / shares.sum() * people)


def tree(sizes: Sequence[int], people: float, shape: float) -> tuple[Domain, Integers]:
    """Levels of these sizes, by sex and four ages; the fewer people and the smaller the shape, the more empty cells."""
    generator = np.random.default_rng(2)
    leaves = np.arange(sizes[-1])
    names = [f"level{i + 1}" for i in range(len(sizes))]
    lookup = {name: leaves // (sizes[-1] // size) for name, size in zip(names, sizes, strict=True)}
    shares = np.ones(sizes[-1])
    for size in sizes:
        shares *= np.repeat(generator.gamma(shape, 1 / shape, size), sizes[-1] // size)
    domain = Domain(
        [Attribute.nested("place", names, lookup), Attribute.flat("sex", ["f", "m"]), Attribute.flat("age", range(4))]
    )
    cells = np.array([[0.5], [0.5]]) * np.array([0.4, 0.3, 0.2, 0.1])
    return domain, generator.poisson((shares / shares.sum() * people)[:, np.newaxis, np.newaxis] * cells)


def margins_of_states(repeats: int) -> list[Row]:
    domain, counts = states()
    finest, tables, budget = (1, 1, 1), margins([(1, 1, 1)]), dp.ApproxDP(0.5, 1e-9)
    errors: dict[str, dict[Levels, list[Floats]]] = {}
    for name, wanted in (("all", tables), ("cells", [finest])):
        errors[name] = {levels: [] for levels in tables}
        for estimates in releases(Case(name, plan_of(domain, wanted), counts, finest, budget), repeats):
            values = estimates.values(finest) - counts
            for levels in tables:
                errors[name][levels].append(margin(domain, values, finest, levels))
    rows = []
    for levels in reversed(tables):
        ours, alone = (root_mean_square(errors[name][levels]) for name in ("all", "cells"))
        what = " × ".join(domain.names(levels)) or "total"
        limit = 1.15 if levels == finest else 1.0
        target = f"{'≤' if levels == finest else '<'} {limit:g}×"
        met = ours / alone <= limit if levels == finest else ours < alone
        label = "cells alone" if levels == finest else "adding up cells"
        rows.append(Row(f"{what}: error", number(ours), f"{number(alone)} ({label})", ours / alone, target, met))
    return rows


def uneven() -> tuple[Domain, Integers]:
    """Families of very different sizes, with only children, by sex and three ages."""
    generator = np.random.default_rng(4)
    families = [1, 2, 5, 12]
    middle = np.repeat(np.arange(4), families)
    leaves = np.where(np.arange(20) % 3 == 0, 1, generator.integers(2, 5, 20))
    lookup = {
        "state": np.repeat(middle, leaves),
        "county": np.repeat(np.arange(20), leaves),
        "tract": range(leaves.sum()),
    }
    domain = Domain(
        [
            Attribute.nested("place", ["state", "county", "tract"], lookup),
            Attribute.flat("sex", ["f", "m"]),
            Attribute.flat("age", range(3)),
        ]
    )
    return domain, generator.poisson(generator.gamma(0.5, 4, (int(leaves.sum()), 2, 3)))


def totals_of(domain: Domain, counts: Integers, finest: Levels, tables: Sequence[Levels]) -> PublicTotals:
    return public_totals(domain, {domain.names(levels): margin(domain, counts, finest, levels) for levels in tables})


def coverage_cases() -> list[Case]:
    (crossed, counts), (nested, people), (levels, many) = states(5_000, 4), tree((3, 12), 2_000, 0.7), uneven()
    finest, below = (1, 1, 1), (3, 1, 1)
    public = totals_of(levels, many, below, [(1, 0, 0), (0, 1, 1)])
    weighted = {"contribution": round(1 / UNIT), "unit": UNIT}
    return [
        Case("4 × 9 × 2, epsilon = 0.5", plan_of(crossed, margins([finest])), counts, finest, dp.ApproxDP(0.5, 1e-9)),
        Case("4 × 9 × 2, epsilon = 0.01", plan_of(crossed, margins([finest])), counts, finest, dp.ApproxDP(0.01, 1e-9)),
        Case("4 × 9 × 2, epsilon = 10", plan_of(crossed, margins([finest])), counts, finest, dp.ApproxDP(10, 1e-9)),
        Case("4 × 9 × 2, rho = 20", plan_of(crossed, margins([finest])), counts, finest, dp.ZCDP(20)),
        Case("2 levels, rho = 0.01", plan_of(nested, margins([(2, 1, 1)])), people, (2, 1, 1), dp.ZCDP(0.01)),
        Case("uneven levels", plan_of(levels, margins([below])), many, below, dp.ApproxDP(1, 1e-9)),
        Case("weights", plan_of(levels, margins([below]), **weighted), (many << 20) * 2 // 3, below, dp.ZCDP(0.5)),
        Case("public totals", plan_of(levels, margins([below]), totals=public), many, below, dp.ApproxDP(1, 1e-9)),
    ]


def coverage(repeats: int) -> list[Row]:
    rows = []
    generator = np.random.default_rng(5)
    for case in coverage_cases():
        domain, residuals = case.plan.domain, case.plan.residuals
        variances = case.plan.mechanism(case.budget).variances
        exact = {levels: case.exact(levels) for levels in case.tables}
        width = 1.959964 * case.plan.unit
        limits = {levels: width * np.sqrt(residuals.variances(levels, variances)) for levels in case.tables}
        measured = [levels for levels in case.tables if limits[levels].any()]
        weights = (generator.random((50, domain.size(case.finest))) < 0.3).astype(np.float64)
        arrays = (row.reshape(domain.shape(case.finest)) for row in weights)
        limit_of_sums = width * np.sqrt([residuals.variance_of_sum(case.finest, row, variances) for row in arrays])
        inside, inside_sums = dict.fromkeys(measured, 0), 0
        for estimates in releases(case, repeats):
            errors = estimates.values(case.finest) - exact[case.finest]
            for levels in measured:
                distances = np.abs(margin(domain, errors, case.finest, levels))
                inside[levels] += np.count_nonzero(distances <= limits[levels] + 1e-6)
            inside_sums += np.count_nonzero(np.abs(weights @ errors.ravel()) <= limit_of_sums)
        shares = {" × ".join(domain.names(levels)) or "total": inside[levels] / (repeats * domain.size(levels))
                  for levels in measured} | {"random sums": inside_sums / (repeats * len(weights))}  # fmt: skip
        worst = max(shares, key=lambda name: abs(shares[name] - 0.95))
        rows.append(
            Row(
                f"coverage, {case.name}: farthest from 95 % of {len(measured)} tables and random sums",
                f"{100 * shares[worst]:.2f} % ({worst})",
                "",
                None,
                "94 to 96 %",
                0.94 <= shares[worst] <= 0.96,
            )
        )
    return rows


def project(values: Floats, sums: Floats) -> Floats:
    """The nearest non-negative numbers with these sums of the columns."""
    ordered = -np.sort(-values, axis=0)
    excess = np.cumsum(ordered, axis=0) - sums
    count = np.maximum((ordered - excess / np.arange(1, len(values) + 1)[:, np.newaxis] > 0).sum(axis=0), 1)
    return np.maximum(values - excess[count - 1, np.arange(values.shape[1])] / count, 0)


def top_down(estimates: Estimates, finest: Levels) -> Floats:
    """Plain top-down along the first attribute."""
    residuals, columns = estimates.residuals, estimates.domain.size((0, *finest[1:]))
    root = estimates.values((0, *finest[1:])).reshape(columns, 1)
    counts = project(root, np.maximum(root.sum(axis=0), 0)).T
    for level in range(1, finest[0] + 1):
        contrasts = residuals.attributes[0].contrasts[level - 1]
        noisy = residuals.table((level, *finest[1:]), estimates.parts.get, keep={0: level})
        values = contrasts.expand(counts, noisy.reshape(len(noisy), -1) * estimates.unit)
        families = np.split(values, np.cumsum(contrasts.children)[:-1])
        counts = np.concatenate([project(family, sums) for family, sums in zip(families, counts, strict=True)])
    return counts.reshape(estimates.domain.shape(finest))


def pairs_of_three(people: int) -> tuple[Domain, Integers]:
    """20 × 15 × 10 cells whose attributes depend on one another in pairs."""
    generator = np.random.default_rng(3)
    domain = Domain([Attribute.flat(name, range(size)) for name, size in (("i", 20), ("j", 15), ("k", 10))])
    first, second, third = (generator.gamma(0.5, 1, size) for size in (20, 15, 10))
    shares = first[:, np.newaxis, np.newaxis] * second[:, np.newaxis] * third
    shares = shares * generator.gamma(1, 1, (20, 15, 1)) * generator.gamma(1, 1, (1, 15, 10))
    return domain, generator.poisson(shares / shares.sum() * people)


def whole_cases() -> list[Case]:
    half, one = dp.ApproxDP(0.5, 1e-9), dp.ApproxDP(1, 1e-9)
    (full, many), (sparse, few), (zeros, places) = states(), states(10_000), tree((8, 64, 512, 4096), 60_000, 0.5)
    (small, rare), (crossed, paired) = tree((8, 64, 512), 8_000, 0.5), pairs_of_three(3_000)
    by_level, by_three = ([levels for levels in margins([(depth, 1, 1)]) if levels[1] == levels[2]] for depth in (4, 3))
    public = totals_of(small, rare, (3, 1, 1), [(1, 0, 0), (0, 1, 1)])
    weighted = {"contribution": round(1 / UNIT), "unit": UNIT}
    return [
        Case("51 × 9 × 2", plan_of(full, margins([(1, 1, 1)])), many, (1, 1, 1), half),
        Case("51 × 9 × 2, sparse", plan_of(sparse, margins([(1, 1, 1)])), few, (1, 1, 1), half),
        Case("zero-heavy", plan_of(zeros, by_level), places, (4, 1, 1), one),
        Case("zero-heavy, epsilon = 10", plan_of(zeros, by_level), places, (4, 1, 1), dp.ApproxDP(10, 1e-9)),
        Case("zero-heavy, weights", plan_of(small, by_three, **weighted), (rare << 20) * 2 // 3, (3, 1, 1), one),
        Case("zero-heavy, public totals", plan_of(small, by_three, totals=public), rare, (3, 1, 1), one),
        Case("pairs", plan_of(crossed, [(1, 1, 0), (0, 1, 1), (1, 0, 1)]), paired, (1, 1, 1), one),
    ]


def whole_numbers(repeats: int) -> list[Row]:
    rows = []
    for case in whole_cases():
        largest = max(case.tables, key=case.plan.domain.size)
        names = {levels: case.plan.domain.names(levels) for levels in case.tables}
        exact = {levels: case.exact(levels) for levels in case.tables}
        errors: dict[str, dict[Levels, list[Floats]]] = {
            kind: {levels: [] for levels in case.tables} for kind in ("unbiased", "clipping", "top-down", "whole")
        }
        for estimates in releases(case, repeats):
            whole = whole_counts(estimates, totals=case.plan.totals)
            for levels in case.tables:
                values = estimates.values(levels)
                errors["unbiased"][levels].append(values - exact[levels])
                errors["clipping"][levels].append(np.maximum(np.rint(values), 0) - exact[levels])
                errors["whole"][levels].append(whole.table(names[levels]).reshape(values.shape) - exact[levels])
            if largest == case.finest:
                errors["top-down"][largest].append(top_down(estimates, largest) - exact[largest])
        rows += compared(case, largest, exact[largest], errors)
    return rows


def compared(
    case: Case, table: Levels, counts: Floats, errors: Mapping[str, Mapping[Levels, Sequence[Floats]]]
) -> list[Row]:
    of_cells = {kind: parts[table] for kind, parts in errors.items() if parts[table]}
    size = {kind: root_mean_square(parts) for kind, parts in of_cells.items()}
    total = {kind: float(np.mean([part.sum() for part in errors[kind][table]])) for kind in ("whole", "clipping")}
    dense = counts > np.quantile(counts, 0.95)
    moved = {
        kind: float(np.mean([part[dense].mean() for part in parts[table]]))
        for kind, parts in errors.items()
        if parts[table]
    }
    ratio = abs(total["whole"] / total["clipping"])
    ratios = {}
    variances = case.plan.mechanism(case.budget).variances
    for levels, unbiased in errors["unbiased"].items():
        variance = case.plan.unit**2 * float(np.mean(case.plan.residuals.variances(levels, variances)))
        more = float(np.mean(np.square(errors["whole"][levels])) - np.mean(np.square(unbiased)))
        if variance > 0:
            ratios[levels] = math.sqrt(max(variance + more, 0.0) / (variance + 0.25))
    worst = max(ratios, key=lambda levels: ratios[levels])
    plain = f"; {number(size['top-down'])} (top-down)" if "top-down" in size else ""
    return [
        Row(
            f"whole counts, {case.name}: bias of the total",
            f"{total['whole']:+.0f}",
            f"{total['clipping']:+.0f} (clipping)",
            ratio,
            "≤ 0.50×",
            ratio <= 0.5,
        ),
        Row(
            f"whole counts, {case.name}: error of cells",
            number(size["whole"]),
            f"{number(size['unbiased'])} (unbiased){plain}",
            size["whole"] / size["unbiased"],
            "≤ 1.00×",
            size["whole"] <= size["unbiased"],
        ),
        Row(
            f"whole counts, {case.name}: worst of {len(ratios)} tables",
            " × ".join(case.plan.domain.names(worst)) or "total",
            "",
            ratios[worst],
            "≤ 1.00×",
            round(ratios[worst], 2) <= 1,
        ),
        Row(
            f"whole counts, {case.name}: bias of the dense places",
            f"{moved['whole']:+.2f}",
            f"{moved['top-down']:+.2f} (top-down)" if "top-down" in moved else "",
        ),
    ]
