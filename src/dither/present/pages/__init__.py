"""Pages of HTML to hand on: of an answer, a series, a profile, a publication, synthetic records, an audit, a
deployment."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from dither.errors import InvalidArgument
from dither.present.pages import sheet
from dither.present.pages.answer import answer_page, series_page
from dither.stream.series_answer import SeriesAnswer
from dither.tables.answer import Answer
from dither.tables.card.profile import Profile

if TYPE_CHECKING:
    from dither.audit import Audit
    from dither.ledger import Entry
    from dither.present.pages.deployment import Deployment
    from dither.publish import Publication, Synthesis, SyntheticPlan, SyntheticRecords
    from dither.tables.planning.explain import Explanation

    Result = Answer | SeriesAnswer | Profile | Publication | Synthesis | SyntheticRecords | Audit | Deployment
else:  # known to type checkers; nothing is imported to read an annotation
    Entry = Explanation = Result = SyntheticPlan = Any


def html(
    result: Result,
    title: str | None = None,
    *,
    explanation: Explanation | SyntheticPlan | None = None,
    history: Iterable[Entry] | None = None,
    question: str | None = None,
) -> str:
    """Return one page about a result as HTML, without scripts and external resources.

    Parameters
    ----------
    result
        What ``release`` of a question, a series, a plan of tables or of synthetic records returned, a profile, an
        audit, or the record of a deployment.
    title
        What to call the page.
    explanation
        Of an answer, what :meth:`~dither.Question.explain` returned: adds the mechanisms. Of synthetic records, their
        plan: adds its rules and notes.
    history
        Of an answer, ``table.ledger.history(table.card.name)``: adds what was spent so far. Of other questions only
        their cost is shown.
    question
        Of an answer, the question as it was asked.

    Examples
    --------
    >>> import dither as dp
    >>> answer = dp.Answer(("word", "n"), ("text", "integer"), (("<script>alert(1)", 9),), {"n": (6.0,)}, dp.PureDP(1))
    >>> "<script" in html(answer), "&lt;script&gt;" in html(answer)
    (False, True)
    """
    if isinstance(result, SeriesAnswer):
        return series_page(result, title or "A series of private numbers")
    if isinstance(result, Answer):
        return answer_page(
            result, title or "A private answer", cast("Explanation | None", explanation), history, question
        )
    from dither.publish import Publication, Synthesis, SyntheticRecords

    if isinstance(result, Publication):
        from dither.present.pages.publication import publication_page

        return publication_page(result, title or "Published tables")
    if isinstance(result, (Synthesis, SyntheticRecords)):
        from dither.present.pages.synthetic import synthetic_page

        return synthetic_page(result, title or "Synthetic records", cast("SyntheticPlan | None", explanation))
    from dither.audit import Audit
    from dither.present.pages.deployment import Deployment, deployment_page

    if isinstance(result, Audit):
        from dither.present.pages.audit import audit_page

        return audit_page(result, title or "An audit of privacy")
    if isinstance(result, Profile):
        from dither.present.pages.answer import profile_page

        return profile_page(result, title or "A private profile")
    if isinstance(result, Deployment):
        return deployment_page(result, title or f"Differential privacy record: {result.name}")
    raise InvalidArgument(
        "result", "an answer, a publication or an audit", type(result).__name__, "pass what release() returned"
    )


def write_html(
    path: str | os.PathLike[str],
    result: Result,
    title: str | None = None,
    *,
    explanation: Explanation | SyntheticPlan | None = None,
    history: Iterable[Entry] | None = None,
    question: str | None = None,
) -> None:
    """Write the page of :func:`html` about a ``result`` to the file ``path``; it is replaced atomically.

    ``title``, ``explanation``, ``history`` and ``question`` are those of :func:`html`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import dither as dp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_html(folder + "/answer.html", dp.Answer(("n",), ("integer",), ((7,),), {"n": (6.0,)}, dp.PureDP(1)))
    ...     Path(folder, "answer.html").read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    sheet.write(path, html(result, title, explanation=explanation, history=history, question=question))
