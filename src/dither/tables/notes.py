"""Notes: the sentences beside an answer, each with the kind of what it says.

A page that depends on what an answer says chooses by the kind, never by the words of a sentence. A note is a text, so
whatever shows notes shows them as they are; the kinds are recorded beside the texts. An answer that version 0.1
recorded has texts alone, of no kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

NoteKind = Literal[
    "bias", "bounds", "chosen", "empty", "error", "failed_sql", "first_answer", "levels", "limits", "no_key",
    "other_groups", "rows_without_person", "small_groups", "undercount_unknown", "",
]  # fmt: skip
"""What a note is about:

* ``limits``: what the limits on one person do to an answer, and ``undercount_unknown`` where it is not known how much
  they leave out; ``bias``: what was, or was not, learned of it;
* ``chosen``: limits and bounds that were chosen privately; ``bounds``: values that are held within bounds, and those
  for which none could be found;
* ``rows_without_person`` and ``no_key``: rows that belong to nobody, and those that are in no group;
* ``small_groups``: groups of few people are not shown; ``other_groups``: the row of all of them together;
* ``empty``: what is NULL because nobody may be there, or has a value nevertheless;
* ``error``: what is known of an error beside, or instead of, a ±; ``levels``: numbers that add up;
* ``first_answer``: what whoever asks should know of the ledger with the first answer; later, and to whoever reads a
  page, it says nothing, and is left out (:func:`lasting`);
* ``failed_sql``: SQL around an aggregation that failed on the noisy table.

A note of no kind is about the budget, or was recorded by an earlier version.
"""
_FIRST_ANSWER = "first answer: "
"""How notes about the first answer began before they had a kind."""

KINDS: frozenset[str] = frozenset(get_args(NoteKind))


class Note(str):
    """A sentence of a kind.

    >>> note = Note("small_groups", "groups with fewer than about 30 people are not shown")
    >>> print(note, note.kind, sep="; ")
    groups with fewer than about 30 people are not shown; small_groups
    """

    kind: NoteKind

    def __new__(cls, kind: NoteKind, text: str) -> Note:
        """The text, as a note of this kind."""
        result = super().__new__(cls, text)
        result.kind = kind
        return result

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        """What a copy is made from."""
        return self.kind, str(self)


def kind_of(note: str) -> NoteKind:
    """The kind of a note; none for a text without one.

    >>> kind_of(Note("limits", "…")), kind_of("…")
    ('limits', '')
    """
    return note.kind if isinstance(note, Note) else ""


def kinds_of(notes: Iterable[str]) -> list[NoteKind]:
    """The kind of each note."""
    return [kind_of(note) for note in notes]


def with_kinds(texts: Sequence[str], kinds: Sequence[object] | None) -> tuple[str, ...]:
    """Texts as notes of these kinds; a kind of another version is none, and so are kinds that are not one for each.

    >>> kinds_of(with_kinds(["a", "b"], ["limits", "of a later version"])), kinds_of(with_kinds(["a"], None))
    (['limits', ''], [''])
    """
    if kinds is None or len(kinds) != len(texts):
        kinds = [""] * len(texts)
    return tuple(_of_kind(text, kind) for text, kind in zip(texts, kinds, strict=True))


def _of_kind(text: str, kind: object) -> str:
    if not kind and text.startswith(_FIRST_ANSWER):
        return Note("first_answer", text)
    return Note(kind, text) if isinstance(kind, str) and kind in KINDS else text  # type: ignore[arg-type]


def lasting(notes: Iterable[str]) -> tuple[str, ...]:
    """The notes that hold whenever, and by whomever, they are read.

    >>> lasting([Note("first_answer", "the first"), Note("limits", "up to 3 rows")])
    ('up to 3 rows',)
    """
    return tuple(note for note in notes if kind_of(note) != "first_answer")
