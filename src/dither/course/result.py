"""A named result of a lecture document: where it is printed, what it states, and what in dither implements it."""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex, overload

import numpy as np

from dither.present import markup

Verdict = Literal["definition", "holds", "holds with conditions", "fails"]

DEFINITION: Verdict = "definition"
HOLDS: Verdict = "holds"
CONDITIONS: Verdict = "holds with conditions"
FAILS: Verdict = "fails"

DOCUMENTS = {
    1: "Class notes 4",
    2: "Foundations of Data Privacy, lectures 17 to 20",
    3: "Solving selection problems privately, lecture 6",
    4: "Differential privacy, slides",
    5: "The science of data ethics",
}
"""The five documents, by the number that ``docs/claims.md`` gives them too."""


@dataclass(frozen=True)
class Result:
    """A definition, theorem, lemma, example or equation of a document.

    Parameters
    ----------
    document, number
        Where it stands: the number of the document, and its name there.
    title
        What it is about.
    verdict
        Whether it holds as printed.
    statement
        What is true, in one sentence: with the condition or the correction, where the print needs one.
    where
        The public name of what implements it.
    example, output
        A Python expression, in which ``dp`` is dither, and its value as Python prints it.

    Examples
    --------
    >>> import dither as dp
    >>> result = dp.course.find("theorem 26")[0]
    >>> print(result)
    2. Theorem 26: Privacy of bounded noise (holds with conditions)
      It is (ε, δ)-DP for b ≥ Δ/(ε − ln ΔC(b) − ln(1 − δ)), a fixed point in b, if Δ ≤ u − l.
      where  dither.BoundedLaplace
      run    round(dp.BoundedLaplace(sensitivity=1, epsilon=1, lower=0, upper=10).scale, 5)
      gives  1.61156
    >>> result.run()
    1.61156
    """

    document: int
    number: str
    title: str
    verdict: Verdict
    statement: str
    where: str
    example: str
    output: str

    @property
    def implementation(self) -> Any:
        """The class, function or value that ``where`` names.

        >>> import dither as dp
        >>> dp.course.find("theorem 2")[0].implementation
        <class 'dither.Laplace'>
        """
        package, *names = self.where.split(".")
        value: Any = importlib.import_module(package)
        for name in names:
            value = getattr(value, name)
        return value

    def run(self) -> Any:
        """The value of the example, computed now.

        >>> import dither as dp
        >>> dp.course.find("lemma 6")[0].run()
        PureDP(1.5)
        """
        return eval(self.example, {"dp": importlib.import_module("dither"), "np": np, "math": math})

    def _repr_html_(self) -> str:
        """For a notebook: what is true, and the example with its value."""
        where = f"document {self.document}, {DOCUMENTS[self.document]}"
        return markup.block(
            markup.heading(f"{self.number}: {self.title} ({self.verdict})"),
            markup.lines([self.statement]),
            markup.code(f">>> {self.example}\n{self.output}"),
            markup.facts([("printed in", where), ("in dither", self.where)]),
        )

    def __str__(self) -> str:
        return "\n".join(
            [
                f"{self.document}. {self.number}: {self.title} ({self.verdict})",
                f"  {self.statement}",
                f"  where  {self.where}",
                f"  run    {self.example}",
                f"  gives  {self.output}",
            ]
        )


class Results(tuple[Result, ...]):
    """Results in the order of the documents, one line each when printed.

    >>> import dither as dp
    >>> print(dp.course.find("lemma"))
    2  Lemma 6   Sequential composition                holds                  dither.sequential
    2  Lemma 7   Parallel composition                  holds with conditions  dither.parallel
    2  Lemma 15  The least smooth bound                holds                  dither.sensitivity.smooth_median
    2  Lemma 28  Utility of the exponential mechanism  holds                  dither.Exponential
    >>> print(dp.course.find("lemma")[:2])
    2  Lemma 6  Sequential composition  holds                  dither.sequential
    2  Lemma 7  Parallel composition    holds with conditions  dither.parallel
    """

    __slots__ = ()

    @overload
    def __getitem__(self, index: SupportsIndex) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> Results: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Result | Results:
        """One result, or a slice of them, which prints like all of them."""
        if isinstance(index, slice):
            return Results(super().__getitem__(index))
        return super().__getitem__(index)

    def _repr_html_(self) -> str:
        """For a notebook: a row for each."""
        rows = [(row.document, row.number, row.title, row.verdict, row.where) for row in self]
        header = ("document", "number", "about", "verdict", "in dither")
        return markup.block(markup.table(header, rows, [True, False, False, False, False]))

    def __str__(self) -> str:
        lines = [(str(row.document), row.number, row.title, row.verdict, row.where) for row in self]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )
