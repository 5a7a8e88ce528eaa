"""Which ± holds of rows that were chosen by their noisy numbers, and of what noise moves to one side.

*Chosen rows.* The largest of many noisy numbers is large because of its noise, too: of the rows that ``ORDER BY n DESC
LIMIT 3`` shows, far fewer than 95 % are within the ± that holds of each group. With a confidence of ``1 - 5 % * k / m``
for k rows of m groups, at most 5 % of the shown rows are expected to be outside (Benjamini & Yekutieli 2005, for
independent noise and rules that choose by the order or by a limit).

*One side.* The law of a result is known from noisy tables as they might have been only as far as it is about linear in
the noise. The largest of noisy numbers is not: noise makes it larger, always, and by how much depends on the truth.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from dither.tables.query import nodes

CONFIDENCE = 0.95
"""The confidence of every ±."""
_ONE_SIDED = (
    exp.Max, exp.Min, exp.ArgMax, exp.ArgMin, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop,
    exp.Median, exp.Quantile, exp.PercentileCont, exp.PercentileDisc, exp.CountIf, exp.Filter, exp.RowNumber, exp.Rank,
    exp.DenseRank,
)  # fmt: skip


def chosen_confidence(shown: int, groups: int) -> float:
    """The confidence of the ± of each of ``shown`` rows that were chosen among ``groups``.

    >>> chosen_confidence(3, 366) > 0.9995, chosen_confidence(5, 5)
    (True, 0.95)
    """
    return 1 - (1 - CONFIDENCE) * min(shown, groups) / groups if 0 < shown < groups else CONFIDENCE


def chooses_by_noise(sql: str, groups: Collection[str]) -> bool:
    """Whether SQL on noisy tables keeps rows by their numbers, rather than by the keys of ``groups``.

    >>> chooses_by_noise("SELECT k, n FROM noisy ORDER BY n DESC LIMIT 3", {"k"})
    True
    >>> chooses_by_noise("SELECT k, n FROM noisy WHERE k = 'a' ORDER BY n", {"k"})
    False
    """
    tree, known = nodes.parsed(sql), {name.casefold() for name in groups}
    conditions: list[exp.Expr] = list(tree.find_all(exp.Where, exp.Having, exp.Qualify))
    conditions += [
        node.args["order"] for node in tree.find_all(exp.Select) if node.args.get("limit") and node.args.get("order")
    ]
    return any(column.name.casefold() not in known for node in conditions for column in node.find_all(exp.Column))


def pushed_to_one_side(sql: str) -> bool:
    """Whether SQL on noisy tables makes something of several numbers that their noise moves to one side.

    >>> pushed_to_one_side("SELECT MAX(n) FROM noisy"), pushed_to_one_side("SELECT SUM(n) FROM noisy")
    (True, False)
    """
    return nodes.parsed(sql).find(*_ONE_SIDED) is not None
