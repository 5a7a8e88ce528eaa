"""Notes: values that go into the ledger, over HTTP and into copies, and one sentence for each kind."""

from __future__ import annotations

import copy
import json
import pickle

import pyarrow as pa
import pytest

import dither as dp
from dither.guarantees import stored
from dither.present.notes import KINDS, SENTENCES, Note, kinds_of, sentence
from dither.wire.results import answer_from_json, answer_to_json, explanation_from_json, explanation_to_json
from support import for_each, refuses

ROWS = pa.table({"who": [i // 2 for i in range(400)], "town": ["a", "b"] * 200, "x": [1.0, 2.0] * 200})
EXAMPLES = {
    "rows_without_person": {"column": "who"},
    "rows_as_people": {"column": "who"},
    "limits": {"rows": 5, "groups": 2},
    "limit_of_aggregate": {"name": "m", "rows": 4},
    "by_profile": {"released": "2026-03-01"},
    "top_keys": {"people": 51.9, "divided": True, "asked": 10, "shown": 7},
    "join_limit": {"rows": 3, "relation": "visits", "exists": False},
    "undercount_share": {"of": "rows", "of_parts": ["group", "sum"]},
    "left_out": {"of": "rows", "share": 0.1, "low": 0.1, "high": 1.0, "epsilon": 0.05},
    "undetected": {"people": 160},
    "unseen_people": {"people": 160, "names": ["n"]},
    "any_tail": {"name": "n", "times": 81.5, "most": None},
    "bias_unused": {"reason": "one_row"},
    "people_without_budget": {
        "cost": stored(dp.PureDP(1)), "state": "not_all", "spent": None, "left": stored(dp.PureDP(0.5))
    },
    "rows_chosen": {"rows": 11, "epsilon": 0.05},
    "groups_chosen": {"groups": 3, "epsilon": 0.05},
    "bounds_chosen": {
        "name": "m", "low": 0, "high": 64, "epsilon": 0.05, "share": 0.01, "most": 0.02, "of_card": False
    },
    "bounds_not_found": {"name": "m", "epsilon": 0.05, "factor": 2.0},
    "bounds_forecast": {"name": "m", "people": 160.0},
    "bounds_stated": {"value": "k", "low": 0, "high": 3},
    "person_values_clamped": {"column": "amount", "low": 0, "high": 100, "person": "who"},
    "null_keys": {"columns": ["kind"], "group_by": ["COALESCE(kind, …)"]},
    "keys_beyond_bounds": {"columns": [{"column": "age", "low": "0", "high": "9"}], "certain": True},
    "small_groups": {"people": 30},
    "weekday_numbers": {},
    "value_without_rows": {"names": ["m"], "grouped": True, "counts": ["COUNT(x)"]},
    "value_without_values": {"names": ["m"], "grouped": False, "counts": ["COUNT(x)"]},
    "null_values": {"names": ["m"], "grouped": True},
    "population_clusters": {"factor": 3.0},
    "mode_gap": {"name": "m", "rows": 12.0},
    "extreme_rank": {"name": "m", "rows": 12.0, "bin_width": 4.0},
    "quantile_rank": {"name": "m", "rows": 12.0, "bin_width": 4.0},
    "noise_only": {"name": "m", "rows": 1000, "low": 0.0, "high": 1.0},
    "mostly_noise": {
        "name": "m", "error": 14.0, "size": 7.0, "all": True, "levers": [
            {"kind": "epsilon", "epsilon": 2.5, "error": 1.4, "share": 0.2},
            {"kind": "groups", "columns": ["town"], "error": 0.8, "share": 0.1},
            {"kind": "groups", "columns": [], "error": 0.1, "share": 0.02},
            {"kind": "where", "error": 0.2, "share": 0.03},
        ],
    },
    "shared_parts": {"names": ["n"], "others": ["m"]},
    "failed_sql": {"column": "aggregation"},
    "public_alone": {"tables": ["places", "zones"]},
    "as_of": {"day": "2024-01-31"},
    "in_stages": {"stages": 2},
    "compared_with": {"numbers": [24.31, 7.0], "errors": [0.5, None]},
    "whole_counts": {"combinations": 918, "slow": False},
    "too_many_combinations": {"combinations": 10**9, "most": 10**8},
    "unused_columns": {"names": ["sex"]},
    "rows_outside": {"name": "age", "null": False, "other": None, "outside": {"low": 0.0, "high": 18.0}},
    "columns_without_domain": {"names": ["age"]},
    "series_row_is_person": {"unit": "day"},
    "series_limits": {"unit": "day", "rows": 1, "periods": 3, "separation": 2},
    "series_falling": {"unit": "day"},
    "series_people": {"names": ["n"], "unit": "day"},
    "late_arrival": {"column": "day", "arrived": "seen"},
}  # fmt: skip
LONGER = {
    *("bounds_chosen", "first_answer", "bounds_not_found", "too_many_combinations", "people_without_budget"),
    "mostly_noise",
}
"""Kinds whose sentences also say what to do, and take more than 24 words for it."""


def opened() -> dp.Table:
    return dp.open(ROWS, unit="who", bounds={"x": (0, 10)}, budget=dp.ApproxDP(100, 0.1), delta=1e-6)


def test_each_kind_has_a_plain_sentence():
    assert SENTENCES.keys() == KINDS

    def is_plain(kind):
        text = str(Note(kind, EXAMPLES.get(kind, {})))
        assert text[0].isupper() or text[0] in "`±m+"
        assert text.endswith(".")
        assert "{" not in text
        assert kind in LONGER or len(text.split()) <= 24

    for_each(sorted(KINDS), is_plain)
    assert sentence(Note("no_interval"), str.upper).endswith("QUANTILE_INTERVAL adds one.")


def test_notes_are_values_wherever_they_go():
    with opened() as table:
        question = table.sql("SELECT town, COUNT(*) AS n, MAX(x) AS m FROM data GROUP BY town")
        answer, again = question.release(epsilon=5), question.release(epsilon=5)
        explanation = question.explain(epsilon=5)
    assert again.replayed
    kinds = kinds_of(answer.notes)
    assert kinds[0] == "temporary_ledger"
    assert {"small_groups", "undercount_unknown", "rows_without_person", "extreme_rank"} <= set(kinds)
    assert again.notes == answer.notes
    assert "temporary" in answer.text(verbose=True)
    assert "temporary" not in again.text(verbose=True)
    assert answer_from_json(json.loads(json.dumps(answer_to_json(answer)))).notes == answer.notes
    said = json.loads(answer.to_json())
    assert (said["notes"], said["note_kinds"]) == ([*map(str, answer.notes)], kinds)
    assert explanation_from_json(json.loads(json.dumps(explanation_to_json(explanation)))) == explanation


def test_copies_of_a_note_are_equal_and_unknown_ones_are_refused():
    note = Note("limits", {"rows": 3, "groups": None})
    for other in (copy.copy(note), copy.deepcopy(note), pickle.loads(pickle.dumps(note)), Note.restored(note.stored())):
        assert (other, hash(other)) == (note, hash(note))
    for wrong in ({"kind": "of a later version", "values": {}}, {"kind": "limits", "values": []}):
        with refuses(dp.InvalidArgument, "note"):
            Note.restored(wrong)
    with pytest.raises(KeyError):
        Note.restored({"kind": "limits"})


def test_the_page_of_rows_that_are_people_speaks_of_rows():
    with dp.open(ROWS, budget=dp.PureDP(10)) as table:
        question = table.sql("SELECT COUNT(*) AS n FROM data")
        assert question.explain(epsilon=1).rows_are_people
        page = dp.present.html(question.release(epsilon=1), explanation=question.explain(epsilon=1))
    assert "If that one row were added or removed" in page
    with opened() as table:
        assert not table.sql("SELECT COUNT(*) AS n FROM data").explain(epsilon=1).rows_are_people
