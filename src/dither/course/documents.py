"""The named results of the five documents: what each states, whether it holds, and what in dither implements it.

They stand in ``documents.toml``, together with every claim that was checked; the site and ``tests/claims`` read the
same file. The verdict on a result is the worst of the verdicts on its claims.
"""

from __future__ import annotations

import ast
import importlib
import math
import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, SupportsIndex, get_args, overload

import numpy as np

from dither.errors import InvalidArgument, WrongType
from dither.present import markup

Verdict = Literal["definition", "holds", "holds with conditions", "misprint", "open", "fails"]
"""What is true of a result, from the mildest to the worst."""


@dataclass(frozen=True)
class Claim:
    """What a document claims at one place, and whether it holds as printed; ``tests/claims`` has the computation."""

    document: int
    place: str
    verdict: Verdict
    printed: str
    note: str = ""
    """The condition, the correction, or a remark."""
    aside: bool = False
    """Whether this is a remark, a proof or about a definition, and does not count for the verdict on the result."""


@dataclass(frozen=True)
class Result:
    """A definition, theorem, lemma, example or equation of a document.

    Parameters
    ----------
    document, number
        Where it stands: the number of the document, and its name there.
    title
        What it is about.
    statement
        What is true, in one sentence: with the condition or the correction, where the print needs one.
    where
        The public name of what implements it.
    example, output
        Python in which ``dp`` is dither, ``np`` is NumPy and ``math`` is there, and the value of its last expression as
        Python prints it. Noise in it is seeded, so that it gives the same value every time.
    claims
        What was checked: each with its place, what is printed there, and the verdict.
    equations
        The numbers of the equations that stand in it.
    keywords
        Words by which it is found too.
    gallery
        The examples of the gallery that run it at length.

    Examples
    --------
    >>> import dither as dp
    >>> result = dp.course.find("lemma 15")[0]
    >>> print(result)
    2. Lemma 15: The least smooth bound (holds)
      The smooth sensitivity is a β-smooth bound, and the least one.
      where  dither.sensitivity.smooth_median
      run    [round(dp.sensitivity.smooth_median(x, (0, 1), 0.1), 4) for x in ([0, 0, 0], [0, 0, 1], [0, 1, 1])]
      gives  [0.9048, 1.0, 1.0]
    >>> result.run()
    [0.9048, 1.0, 1.0]
    """

    document: int
    number: str
    title: str
    statement: str
    where: str
    example: str
    output: str
    claims: tuple[Claim, ...] = field(default=(), repr=False)
    equations: tuple[int, ...] = field(default=(), repr=False)
    keywords: tuple[str, ...] = field(default=(), repr=False)
    gallery: tuple[str, ...] = field(default=(), repr=False)

    @property
    def verdict(self) -> Verdict:
        """Return whether the result holds as printed: the worst of the verdicts on its claims.

        >>> import dither as dp
        >>> [(claim.place, claim.verdict) for claim in dp.course.find("lemma 7")[0].claims]
        [('Lemma 7', 'holds with conditions')]
        """
        verdicts = [claim.verdict for claim in self.claims if not claim.aside]
        return max(verdicts, key=get_args(Verdict).index, default="definition")

    @property
    def implementation(self) -> Any:
        """Return the class, function or value that ``where`` names.

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
        """Return the value of the last expression of the example, computed now.

        >>> import dither as dp
        >>> dp.course.find("definition 24")[0].run()
        1.0
        """
        names = {"dp": importlib.import_module("dither"), "np": np, "math": math}
        *statements, last = ast.parse(self.example).body
        exec(compile(ast.Module(statements, []), self.number, "exec"), names)
        assert isinstance(last, ast.Expr)
        return eval(compile(ast.Expression(last.value), self.number, "eval"), names)

    @property
    def session(self) -> str:
        """Return the example as it is typed at Python's prompt, and its value.

        >>> import dither as dp
        >>> dp.course.find("theorem 26")[0].session.splitlines()[-1] == dp.course.find("theorem 26")[0].output
        True
        """
        firsts = {statement.lineno for statement in ast.parse(self.example).body}
        lines = enumerate(self.example.splitlines(), 1)
        typed = [f"{'>>>' if number in firsts else '...'} {line}".rstrip() for number, line in lines]
        return "\n".join([*typed, self.output])

    def _repr_html_(self) -> str:
        """Return the result for a notebook: what is true, and the example with its value."""
        where = f"document {self.document}, {documents()[self.document].title}"
        return markup.block(
            markup.heading(f"{self.number}: {self.title} ({self.verdict})"),
            markup.lines([self.statement]),
            markup.code(self.session),
            markup.facts([("printed in", where), ("in dither", self.where)]),
        )

    def __str__(self) -> str:
        """Return the name and verdict, the statement, where it is implemented, and the example with its output."""
        return "\n".join(
            [
                f"{self.document}. {self.number}: {self.title} ({self.verdict})",
                f"  {self.statement}",
                f"  where  {self.where}",
                "  run    " + self.example.replace("\n", "\n         "),
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
        """Return one result, or several as :class:`Results`."""
        if isinstance(index, slice):
            return Results(super().__getitem__(index))
        return super().__getitem__(index)

    def _repr_html_(self) -> str:
        """Return the results for a notebook: a table with a row for each."""
        rows = [(row.document, row.number, row.title, row.verdict, row.where) for row in self]
        header = ("document", "number", "about", "verdict", "in dither")
        return markup.block(markup.table(header, rows, [True, False, False, False, False]))

    def __str__(self) -> str:
        """Return one line for each result, in aligned columns: document, number, title, verdict and public name."""
        lines = [(str(row.document), row.number, row.title, row.verdict, row.where) for row in self]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        )


@dataclass(frozen=True)
class Document:
    """One of the five documents."""

    number: int
    title: str
    about: str
    results: Results


@cache
def documents() -> dict[int, Document]:
    """Return the five documents by their numbers, 1 to 5, read from ``documents.toml``.

    >>> documents()[4].title
    'Differential privacy, slides'
    """
    text = Path(__file__).with_name("documents.toml").read_text(encoding="utf-8")
    return {
        number: Document(number, item["title"], item["about"], Results(_result(number, row) for row in item["result"]))
        for number, item in enumerate(tomllib.loads(text)["document"], 1)
    }


def _result(document: int, row: dict[str, Any]) -> Result:
    """Return the result of a document from its section ``row`` in the TOML file, which is changed.

    A claim without a document, place or statement of its own has those of the result.
    """
    defaults = {"document": document, "place": row["number"], "printed": row["statement"]}
    claims = tuple(Claim(**{**defaults, **claim}) for claim in row.pop("claim", ()))
    lists: dict[str, Any] = {name: tuple(row.pop(name, ())) for name in ("equations", "keywords", "gallery")}
    row["example"] = row["example"].strip()
    return Result(document, **row, claims=claims, **lists)


def results(document: int | None = None) -> Results:
    """Return every named result of the five documents, or of one of them.

    >>> print(results(document=4)[3])
    4. Laplace distribution: Variance and tail (holds)
      Lap(b) has variance 2b², and P(|Y| ≥ bt) = e^(−t).
      where  dither.Laplace
      run    round(dp.Laplace(sensitivity=1, epsilon=1).error(confidence=1 - math.exp(-3), integer=False), 6)
      gives  3.0
    """
    if document is None:
        return Results(result for item in documents().values() for result in item.results)
    if document not in documents():
        raise InvalidArgument("document", "a number from 1 to 5", document, "pass document=2")
    return documents()[document].results


_ABBREVIATIONS = {
    "thm": "theorem", "th": "theorem", "def": "definition", "defn": "definition", "ex": "example", "eq": "equation",
    "eqn": "equation", "prop": "proposition", "cor": "corollary", "lem": "lemma", "alg": "algorithm",
    "w&z": "wasserman",
}  # fmt: skip
_SIGNS = str.maketrans("-‐‑‒–—−₀₁₂₃₄₅₆₇₈₉", "       0123456789", "_")
_GREEK = ("alpha", "beta", "gamma", "delta", "epsilon", "theta", "kappa", "rho", "sigma", "lambda")
_LETTERS = dict(zip(_GREEK, "αβγδεθκρσλ", strict=True))
_SMALL_WORDS = {"a", "an", "and", "by", "for", "from", "in", "of", "on", "the", "to", "with"}


def find(text: str, document: int | None = None) -> Results:
    """Find results by number ("Thm 36"), by equation ("Eq (5)"), or else by words.

    Words are searched in numbers and titles, then keywords, then statements and claims, as a phrase; if nowhere found,
    as single words anywhere in a result, whatever their endings. The first search that finds something decides; a
    result of which the words are a keyword is among those of the title. Hyphens and subscripts do not matter, and Greek
    letters may be spelled.

    An equation number that several documents have is refused unless ``document`` says which is meant, as "document 3,
    equation (5)" does, too.

    >>> [result.title for result in find("Thm 36")]
    ['Private stochastic descent']
    >>> [result.number for result in find("heavy hitter")]
    ['Example 1.1', 'Example 1.5']
    >>> [result.number for result in find("equation (10)")]
    ['Equation (10)']
    >>> [result.number for result in find("Eq (5)", document=3)]
    ['Proposition 1.4']
    """
    if not isinstance(text, str):
        kind = type(text).__name__
        raise WrongType("text", "a number as printed, or words", kind, "pass find('theorem 36')")
    wanted = _normal(text)
    named = re.fullmatch(r"document (\d) (.+)", wanted)
    if named is not None and document in (None, int(named[1])):
        document, wanted = int(named[1]), named[2]
    among = results(document)
    exact = Results(result for result in among if _normal(result.number) == wanted)
    equation = re.fullmatch(r"(?:equation )?\((\d+)\)|equation (\d+)", wanted)
    if equation is not None:
        number = int(equation[1] or equation[2])
        exact = Results(result for result in among if number in result.equations)
        holders = sorted({result.document for result in exact})
        if len(holders) > 1:
            names = " and ".join(f"document {holder}" for holder in holders)
            fix = f"pass document={holders[0]} or document={holders[-1]}"
            raise InvalidArgument("text", "an equation of one document", f"({number}), which {names} have", fix)
    if exact:
        return exact
    tokens = wanted.split()
    stems = [_LETTERS.get(word, word[:-1] if word[-1] == "s" else word) for word in tokens if word not in _SMALL_WORDS]
    for parts, words in (
        (_name, [wanted]),
        (_keywords, [wanted]),
        (_sentences, [wanted]),
        (_sentences, tokens),
        (_sentences, stems),
    ):
        holding = Results(
            result
            for result in among
            if words
            and (all(_holds(parts(result), word) for word in words) or (parts is _name and wanted in _exactly(result)))
        )
        if holding and wanted:
            return holding
    raise InvalidArgument(
        "text", "the number of a result or words that stand in one", "neither", "see dither.course.results()"
    )


def _normal(text: str) -> str:
    """Return a number or words in lower case, without abbreviations, stops, commas, hyphens and subscripts."""
    words = (word.rstrip(".,:") for word in text.translate(_SIGNS).lower().split())
    return " ".join(_ABBREVIATIONS.get(word, word) for word in words if word)


def _holds(text: str, wanted: str) -> bool:
    """Return whether ``text`` contains the phrase ``wanted``, starting at the beginning of a word."""
    return re.search(rf"(?<!\w){re.escape(wanted)}(?![\d])", text.translate(_SIGNS).lower()) is not None


def _exactly(result: Result) -> set[str]:
    """Return the keywords of a result in the form of :func:`_normal`."""
    return {_normal(keyword) for keyword in result.keywords}


def _name(result: Result) -> str:
    """Return the text of the first search: the number and title of a result."""
    return f"{result.number} {result.title}"


def _keywords(result: Result) -> str:
    """Return the text of the second search: number, title and keywords."""
    return f"{_name(result)} {' '.join(result.keywords)}"


def _sentences(result: Result) -> str:
    """Return the text of the last searches: everything that stands in a result, with its claims."""
    claims = (f"{claim.place} {claim.printed} {claim.note}" for claim in result.claims)
    return " ".join([_keywords(result), result.statement, result.where, *claims])
