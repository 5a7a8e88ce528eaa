"""The kind of a note goes with it: into the ledger, over HTTP, into JSON and into copies."""

from __future__ import annotations

import copy
import json
import pickle

import pyarrow as pa

import dither as dp
from dither.ledger.recorded import decode, encode
from dither.tables.answer import Answer
from dither.tables.notes import KINDS, Note, kind_of, kinds_of, with_kinds
from dither.wire import answers, explanations

ROWS = pa.table({"who": [i // 2 for i in range(400)], "town": ["a", "b"] * 200, "x": [1.0, 2.0] * 200})


def opened() -> dp.Table:
    return dp.open(ROWS, unit="who", bounds={"x": (0, 10)}, budget=dp.ApproxDP(100, 0.1), delta=1e-6)


def test_every_note_of_an_answer_has_its_kind_wherever_it_goes():
    with opened() as table:
        question = table.sql("SELECT town, COUNT(*) AS n, MAX(x) AS m FROM data GROUP BY town")
        answer, again = question.release(epsilon=5), question.release(epsilon=5)
        explanation = question.explain(epsilon=5)
    assert again.replayed
    kinds = kinds_of(answer.notes)
    assert kinds[0] == "first_answer"
    assert {"small_groups", "undercount_unknown", "rows_without_person", "error"} <= set(kinds[1:]) <= KINDS - {""}
    assert kinds_of(again.notes) == kinds
    assert "temporary" in str(answer)
    assert "temporary" not in str(again)
    assert kinds_of(answers.from_json(json.loads(json.dumps(answers.to_json(answer)))).notes) == kinds
    assert json.loads(answer.to_json())["note_kinds"] == kinds
    sent = explanations.from_json(json.loads(json.dumps(explanations.to_json(explanation))))
    assert kinds_of(sent.limitations) == kinds_of(explanation.limitations)
    assert "" not in kinds_of(sent.limitations)
    assert (sent.rows_are_people, sent) == (False, explanation)


def test_a_note_is_a_text():
    note = Note("limits", "as it is")
    assert (note, str(note), f"{note}", json.dumps(note)) == ("as it is", "as it is", "as it is", '"as it is"')
    for other in (copy.copy(note), copy.deepcopy(note), pickle.loads(pickle.dumps(note))):
        assert (other, kind_of(other)) == (note, "limits")


def test_answers_of_earlier_versions_have_texts_alone():
    stored = Answer(("n",), ("integer",), ((1,),), {"n": (1.0,)}, "ε = 1", ("a", "b")).stored()
    assert "note_kinds" not in stored
    restored = Answer.restored(decode(encode(stored)))
    assert (restored.notes, kinds_of(restored.notes)) == (("a", "b"), ["", ""])
    assert kinds_of(with_kinds(["a"], ["limits", "limits"])) == [""]
    assert kinds_of(with_kinds(["a"], [["limits"]])) == [""]
    assert kinds_of(with_kinds(["first answer: a new ledger was started"], None)) == ["first_answer"]


def test_the_page_of_rows_that_are_people_speaks_of_rows():
    with dp.open(ROWS, budget=dp.PureDP(10)) as table:
        question = table.sql("SELECT COUNT(*) AS n FROM data")
        assert question.explain(epsilon=1).rows_are_people
        page = dp.present.html(question.release(epsilon=1), question.explain(epsilon=1))
    assert "Add or remove that one row" in page
    with opened() as table:
        assert not table.sql("SELECT COUNT(*) AS n FROM data").explain(epsilon=1).rows_are_people
