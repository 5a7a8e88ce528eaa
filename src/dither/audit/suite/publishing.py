"""Publishing from rows to noisy residuals, small enough to be measured: counted by an engine, bounded, charged, noisy.

People have up to twenty rows, of which three count. The broken version takes it that one does.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dither.guarantees import ApproxDP

CLAIM = ApproxDP(1, 0.01)
MAX_ROWS = 3


def people() -> tuple[Any, Any]:
    """Rows of people in two towns, and the same without a person who has twenty of them in one town."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = pa.table(
        {
            "who": [*(i % 20 for i in range(60)), *[7] * 20],
            "town": [*("ab"[i // 7 % 2] for i in range(60)), *"b" * 20],
        }
    )
    return rows, rows.filter(pc.not_equal(rows["who"], 7))


def noisy_residuals(rows: Any, size: int, *, rows_of_a_person: int = MAX_ROWS) -> list[list[float]]:
    """What is released of a table of towns, so often, from one charge and one scan."""
    import numpy as np

    from dither.ledger.recorded import decode, encode
    from dither.publish import Attribute, Domain, MarginalPlan, table_spec
    from dither.publish.counting import Counting
    from dither.tables.query.tree import Column
    from dither.tables.table import open as open_table

    domain = Domain([Attribute.flat("town", ["a", "b"])])
    with open_table(rows, unit="who", max_rows=MAX_ROWS, budget=CLAIM) as table:
        counting = Counting(table, domain, (Column("town"),))
        contribution = counting.contribution * Fraction(rows_of_a_person, MAX_ROWS)
        plan = MarginalPlan(domain, [table_spec(domain, ["town"])], contribution=contribution, unit=counting.unit)
        mechanism = plan.mechanism(CLAIM)

        def compute(counts: Any) -> bytes:
            releases = (mechanism.release(counts) for _ in range(size))
            return encode([np.concatenate([part.ravel() for part in noisy.values()]).tolist() for noisy in releases])

        stored = counting.release(plan.needed, CLAIM, {"tables": ["town"]}, compute).stored
    result: list[list[float]] = decode(stored)
    return result


def bounded_for_one_row(rows: Any, size: int) -> list[list[float]]:
    """Noise for people of one row each, though three rows of a person count."""
    return noisy_residuals(rows, size, rows_of_a_person=1)
