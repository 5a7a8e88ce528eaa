"""Looking up the results of the documents by document, number or title."""

from __future__ import annotations

from dither.course import advances_learning, advances_noise, class_notes, ethics_lecture, selection_lecture, slides
from dither.course.result import DOCUMENTS, Results
from dither.errors import InvalidArgument, WrongType

_DOCUMENTS = (class_notes, advances_noise, advances_learning, selection_lecture, slides, ethics_lecture)
_ALL = Results(result for document in _DOCUMENTS for result in document.RESULTS)


def results(document: int | None = None) -> Results:
    """Every named result of the five documents, or of one of them.

    >>> print(results(document=3)[4])
    3. Algorithm 1: The exponential mechanism (definition)
      Select y with probability proportional to exp(ε·q(y)/(2Δ)).
      where  dither.Exponential
      run    dp.Exponential(sensitivity=1, epsilon=2).probabilities([1, 0]).round(4).tolist()
      gives  [0.7311, 0.2689]
    """
    if document is not None and document not in DOCUMENTS:
        raise InvalidArgument("document", "a number from 1 to 5", document, "pass document=2")
    return Results(result for result in _ALL if document in (None, result.document))


def find(text: str) -> Results:
    """The results of this number, in any spelling of its letters; else those whose number or title holds the text.

    >>> [result.title for result in find("theorem 36")]
    ['Private stochastic descent']
    >>> [result.number for result in find("heavy hitter")]
    ['Example 1.1', 'Example 1.5']
    """
    if not isinstance(text, str):
        kind = type(text).__name__
        raise WrongType("text", "a number as printed, or a word of a title", kind, "pass find('theorem 36')")
    wanted = " ".join(text.lower().split())
    exact = Results(result for result in _ALL if result.number.lower() == wanted)
    if exact:
        return exact
    holding = Results(result for result in _ALL if wanted and wanted in f"{result.number} {result.title}".lower())
    if not holding:
        raise InvalidArgument(
            "text", "the number or a word of the title of a result", "another", "see dither.course.results()"
        )
    return holding
