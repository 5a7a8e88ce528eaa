"""Participation over the whole horizon: no person moves more than k periods, whatever happens to the rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dither import LedgerError
from dither.stream import participants, series
from dither.stream.participants import Participation, changed, identities, look_up, merged, packed, take_part, unpacked
from support import refuses
from support_series import measured, random_history, violations, without

POLICIES = ({}, {"late": "arrival", "arrived": "loaded"})


SCHEMAS = ((2, 3), (1, 1), (3, 1), (12, 4))


def worst(seed, tmp_path, schema=SCHEMAS[0], **policy):
    history, person = random_history(seed)
    changes = {"max_participations": schema[0], "min_separation": schema[1], **policy}
    rows, mechanism = measured(history, tmp_path / "with", **changes)
    others, _ = measured(without(history, person), tmp_path / "without", **changes)
    return violations(rows - others, mechanism, *schema), bool(np.any(rows != others))


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(8))
def test_a_person_moves_no_more_than_the_schema_allows(seed, policy, tmp_path):
    assert worst(seed, tmp_path, SCHEMAS[seed % 4], **policy)[0] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 108))  # every schema with every policy
def test_more_histories(seed, tmp_path):
    assert worst(seed, tmp_path, SCHEMAS[seed // 2 % 4], **POLICIES[seed % 2])[0] == []


def each_day_by_itself(monkeypatch):
    """The broken twin: nobody's earlier days are remembered."""
    monkeypatch.setattr(series, "look_up", lambda people, _: people.copy())


def from_the_rows_alone(monkeypatch):
    """Another broken twin: gaps are kept, the number of days is not."""
    whole = participants.take_part

    def forgetful(records, person, step, rule):
        forgotten = records.copy()
        forgotten["used"] = np.minimum(forgotten["used"], 1)
        return whole(forgotten, person, step, rule)

    monkeypatch.setattr(series, "take_part", forgetful)


@pytest.mark.slow
@pytest.mark.parametrize("defect", [each_day_by_itself, from_the_rows_alone])
def test_the_search_finds_defects(defect, monkeypatch, tmp_path):
    defect(monkeypatch)
    for seed in range(30):
        if worst(seed, tmp_path / str(seed))[0]:
            return
    pytest.fail("nothing was found")


@pytest.fixture(autouse=True)
def folders(tmp_path):
    for seed in range(30):
        (tmp_path / str(seed)).mkdir()


def brute(days, rule, used=0, last=None):
    """The rule, one day at a time."""
    result = []
    for day in sorted(days):
        free = used < rule.max_participations and (last is None or day - last >= rule.min_separation)
        result.append(free)
        used, last = (used + 1, day) if free else (used, last)
    return result


@pytest.mark.parametrize("rule", [Participation(1, 1), Participation(3, 1), Participation(3, 4), Participation(50, 2)])
def test_the_rule_is_that_of_one_day_at_a_time(rule):
    drawn = np.random.RandomState(1)
    people = identities(pa.array(range(40)), bytes(32))
    parts: list[bytes] = []
    expected = {who: [] for who in range(40)}
    counted = {who: [] for who in range(40)}
    for first in range(0, 60, 12):
        lines = [(who, day) for who in range(40) for day in range(first + 1, first + 13) if drawn.rand() < 0.4]
        person, step = (np.array(column) for column in zip(*lines, strict=True))
        before = look_up(people, parts)
        kept, after = take_part(before, person, step, rule)
        parts.append(changed(before, after, rule.widths(60)))
        for (who, day), yes in zip(lines, kept, strict=True):
            expected[who].append(day)
            counted[who].append(bool(yes))
        whole = merged(parts)
        assert np.array_equal(look_up(people, [whole]), look_up(people, parts))
    assert all(counted[who] == brute(expected[who], rule) for who in expected)


def test_people_are_told_apart_and_texts_depend_on_the_secret():
    numbers = pa.array([0, 1, -1, 2**63 - 1, -(2**63)])
    one = identities(numbers, bytes(32))
    assert len({tuple(item) for item in one[["high", "low"]].tolist()}) == 5
    assert not one["low"].any()
    written = pa.array(["", "a", "a ", "é"])
    texts, others = identities(written, bytes(32)), identities(written, b"1" * 32)
    assert len(set(texts["high"].tolist())) == 4
    assert (texts["low"] % 2 == 1).all()  # no text is a number
    assert not set(texts["high"].tolist()) & set(others["high"].tolist())
    as_text = identities(pa.array([str(number) for number in numbers.to_pylist()]), bytes(32))
    assert (as_text == one).all()
    assert (identities(pa.array([0, 1, -1], pa.int8()), bytes(32)) == one[:3]).all()
    others = identities(pa.array(["07", "+7", "-0", " 7", "7 ", "--7", "\u0667", str(2**63), "7", "0"]), bytes(32))
    assert len(set(others["high"].tolist())) == 10


@pytest.mark.parametrize("last", [1, 2, 3, 2**64 - 1])
def test_people_whose_identities_begin_alike_are_told_apart(last):
    people = np.zeros(3, dtype=participants._RECORD)
    people["high"], people["low"] = 7, [1, last, last]
    people["high"][2] = last
    known = people.copy()
    known["used"], known["last"] = [4, 5, 6], [1, 2, 3]
    known = known[np.lexsort((known["low"], known["high"]))]
    if last != 1:
        assert look_up(people, [packed(known)])["used"].tolist() == [4, 5, 6]
    assert look_up(people[:1], [packed(known[known["used"] == 4])])["used"].tolist() == [4]
    assert look_up(people[1:], [packed(known[known["used"] == 4])])["used"][1] == 0


@pytest.mark.parametrize("seed", range(6))
def test_merging_is_what_the_last_part_says_of_everybody(seed):
    """Against a dictionary, with identities that are alike in one half or both."""
    drawn = np.random.RandomState(seed)
    parts, expected = [], {}
    for number in range(1, 6):
        size = drawn.randint(0, 40)
        records = np.zeros(size, dtype=participants._RECORD)
        records["high"], records["low"] = drawn.randint(0, 6, size), drawn.randint(0, 2 if seed % 2 else 1, size)
        records = records[np.unique(records[["high", "low"]], return_index=True)[1]]
        records["used"], records["last"] = number, drawn.randint(1, 200, len(records))
        parts.append(packed(records, (1, 2)))
        expected |= {(int(r["high"]), int(r["low"])): (int(r["used"]), int(r["last"])) for r in records}
    columns, widths = unpacked(merged(parts))
    keys = list(zip(columns["high"].tolist(), columns["low"].tolist(), strict=True))
    values = zip(columns["used"].tolist(), columns["last"].tolist(), strict=True)
    assert keys == sorted(expected)
    assert dict(zip(keys, values, strict=True)) == expected
    assert widths == (1, 2)


def test_a_part_has_the_size_of_its_people_and_damage_is_refused():
    records = np.zeros(1000, dtype=participants._RECORD)
    records["high"] = np.arange(1000)
    assert len(packed(records, Participation(30).widths(365))) == 4 + 1000 * (8 + 1)
    assert len(packed(records, Participation(300, 2).widths(365))) == 4 + 1000 * (8 + 2 + 2)
    for damaged in (b"", b"\x08\x00\x04", packed(records)[:-1], b"\x07" + packed(records)[1:]):
        with refuses(LedgerError, "as it was written"):
            unpacked(damaged)


def test_limits_that_are_none_are_refused():
    for given in [(0, 1), (1, 0), (True, 1), ("2", 1)]:
        with refuses((ValueError, TypeError)):
            Participation(*given)
