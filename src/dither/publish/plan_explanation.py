"""A plan of tables in words and numbers: every table with its cells and its expected ±, the cost, and what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dither.present import markup
from dither.present.digits import two_digits
from dither.present.terminal import printable

NO_WHOLE = "no whole counts and no records, as the plan says"
TOTALS_NOTE = (
    "public totals are imposed on counts of bounded rows: if people have more rows than count, or rows outside the "
    "domains, totals of all rows contradict these counts, and the ± of all tables does not include that; give totals "
    "of what is counted, or a max_rows that nobody exceeds"
)
"""What is to be known of public totals where the rows of a person are bounded."""
_MANY = 10_000_000


def whole_note(combinations: int, most: int) -> str:
    """What is to be known of whole counts: how many combinations they are made of, or why there are none.

    >>> whole_note(918, 10**8)
    'whole counts: never negative, all margins of one table of 918 cells, adding up; no ± is claimed for them'
    """
    if combinations > most:
        return (
            f"no whole counts and no records: all attributes together have {combinations:,} combinations, more than "
            f"{most:,}; ask for tables over fewer attributes or coarser levels to have them"
        )
    text = (
        f"whole counts: never negative, all margins of one table of {combinations:,} cells, adding up; no ± is claimed "
        "for them"
    )
    return text if combinations <= _MANY else f"{text}; so many take long, and whole = false leaves them out"


@dataclass(frozen=True)
class ExpectedTable:
    """A table of a plan: its name, cells, the mean and the largest half-width of its intervals (95 %), and the mean as
    a share of a cell of average size, where the number of rows is public. ``for_one_row``: both are for one row of
    ``max_rows``, which is chosen later.

    >>> print(ExpectedTable("state", 51, 12.34, 12.34, 0.0021))
    state: 51 cells, ± 12 (0.21 % of an average cell)
    """

    name: str
    cells: int
    error: float
    largest_error: float
    share: float | None = None
    target: str = ""
    for_one_row: bool = False

    @property
    def expected(self) -> str:
        """The expected ± in words."""
        if self.error == 0:
            return "± 0 (public)"
        times = " × max_rows" if self.for_one_row else ""
        text = f"± {two_digits(self.error)}{times}"
        if self.largest_error > 1.05 * self.error:
            text += f", at most {two_digits(self.largest_error)}{times}"
        return text

    @property
    def relative(self) -> str:
        """The expected ± as a share of a cell of average size."""
        return "" if self.share is None else f"{two_digits(100 * self.share)} %"

    def __str__(self) -> str:
        cells = f"{self.cells:,} cell{'s' if self.cells != 1 else ''}"
        share = f" ({self.relative} of an average cell)" if self.relative and self.error else ""
        return f"{self.name}: {cells}, {self.expected}{share}{self.target}"


@dataclass(frozen=True)
class PlanExplanation:
    """What a plan would publish: the tables with their expected ±, what it costs, and what is left; nothing was read
    and nothing charged.

    >>> print(PlanExplanation((ExpectedTable("sex", 2, 3.0, 3.0),), "ρ = 0.5 (zCDP)", "ρ = 1 (zCDP)"))
    cost: ρ = 0.5 (zCDP); left: ρ = 1 (zCDP)
    expected ± of each cell (95 %):
      sex: 2 cells, ± 3.0
    """

    tables: tuple[ExpectedTable, ...]
    cost: str
    left: str
    notes: tuple[str, ...] = ()
    refused: str = ""

    def __str__(self) -> str:
        output = [f"cost: {self.cost}; left: {self.left}"]
        output += [f"would be refused: {self.refused}"] if self.refused else []
        output += ["expected ± of each cell (95 %):", *(f"  {table}" for table in self.tables), *self.notes]
        return "\n".join(map(printable, output))

    def _repr_html_(self) -> str:
        """For a notebook: the cost, what is left, and a table of the tables."""
        facts = [("cost", self.cost), ("left", self.left)]
        facts += [("would be refused", self.refused)] if self.refused else []
        header, lines = table_lines(self.tables)
        return markup.block(
            markup.facts(facts),
            markup.table(header, lines, [False, *[True] * (len(header) - 1)]),
            markup.lines(self.notes),
        )


def table_lines(tables: Sequence[ExpectedTable]) -> tuple[list[str], list[list[str]]]:
    """A header, and a line for each table; the share of an average cell only where it is known.

    >>> table_lines([ExpectedTable("sex", 2, 3.0, 3.0)])
    (['table', 'cells', 'expected ± (95 %)'], [['sex', '2', '± 3.0']])
    """
    header = ["table", "cells", "expected ± (95 %)"]
    shares = any(table.relative for table in tables)
    lines = [
        [table.name, f"{table.cells:,}", table.expected + table.target, *([table.relative] if shares else [])]
        for table in tables
    ]
    return [*header, *(["of an average cell"] if shares else [])], lines
