"""Who took part: reading keys of every kind, and bookkeeping person by person against brute force."""

from __future__ import annotations

import datetime
import hashlib
import hmac
import math
import uuid
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import dither as dp
from dither.ledger import people
from dither.ledger.accounts import LOSS_UNIT, Amount
from dither.ledger.store import LedgerStore
from support import each, refuses

Ledger = dp.ledger.Ledger
KEY = bytes(range(32))
DATABASE = settings(
    max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
BIG = 2**53 + 1


def who(column: Any) -> list[bytes]:
    """Each row's keyed hash; none for a row without a key."""
    result = people.contributors(column, "all", KEY)
    names = [*(row.tobytes() for row in result.who), b""]
    return [names[i] for i in result.person_of_row]


def keyed_hash(key: bytes) -> bytes:
    """By the definition: BLAKE2b under a key made of the secret and the population."""
    population_key = hmac.new(KEY, b"population all", "sha256").digest()
    return hashlib.blake2b(key, digest_size=16, key=population_key).digest()


# where text was normalized, cut, padded, or shortened first, some of these were the same person
HOSTILE = ["\u00e9", "e\u0301", "\u212b", "\u00c5", "A\u030a", "\ufb01", "fi", "\u1e9b\u0323", "\uac00", "\u1100\u1161"]
HOSTILE += ["a", "a\0", "a\0\0", "\0", "\0\0", "", " ", "a ", " a", "A", "a\u200d", "a\ufeff", "\ufeffa", "\U0001f9ea"]
HOSTILE += ["x" * n for n in (15, 16, 17, 63, 64, 65, 66, 128, 129, 5000, 5001)]
HOSTILE += ["x" * 64 + end for end in ("a", "b", "a\0")] + ["x" * 4999 + "y", "y" + "x" * 4999]
HOSTILE += ["7", "07", "7.0", "+7", "7 ", "-7", "\u0667", "7\0", "1e3", "1000", "True", "None", "nan", "NaN", "-0", "0"]
HOSTILE += [hashlib.blake2b(b"x" * 65).hexdigest()[:64], hashlib.blake2b(b"x" * 65).hexdigest()]


@given(st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=80)), max_size=30))
def test_a_person_is_the_exact_bytes_of_a_key(texts: list[str]) -> None:
    texts = [text for text in texts if not any("\ud800" <= letter <= "\udfff" for letter in text)]
    assert who(texts) == [keyed_hash(text.encode()) for text in texts]


def test_different_keys_are_different_people() -> None:
    assert len(HOSTILE) == len(set(HOSTILE))
    assert len(set(who(HOSTILE))) == len(HOSTILE)
    for column in (pd.Series(HOSTILE), pl.Series(HOSTILE), pa.array(HOSTILE), np.array(HOSTILE, dtype=object)):
        assert who(column) == who(HOSTILE), type(column)


def test_a_whole_number_is_its_digits() -> None:
    for number in (0, 7, -7, BIG, 2**63 - 1, -(2**63), 2**64 - 1, 2**70, -(10**40)):
        assert who([number]) == who([str(number)]) == [keyed_hash(str(number).encode())]
    for kind in (np.int8, np.uint64, np.int64):
        assert who([kind(7)]) == who(np.array([7], dtype=kind)) == who([7]) == who(["7"]) != who(["07"])


MISSING = [None, math.nan, np.float32("nan"), Decimal("nan"), pd.NA, pd.NaT]


def test_what_is_missing_is_nobody() -> None:
    assert who(MISSING) == [b""] * len(MISSING)


NO_KEYS: list[Any] = [
    True, np.True_, 7.0, 0.5, -0.0, 1e22, np.float32(7), math.inf, Decimal(7), Decimal("1e-7"), Fraction(7), 7j, b"7",
    np.bytes_(b"7"), bytearray(b"7"), uuid.UUID(int=7), datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2),
    np.datetime64("2020-01-02"), pd.Timestamp(0), "\ud800", "a\udfff", 10**5000, object(), (7,), [7], {7: 7},
]  # fmt: skip


@each("key", NO_KEYS)
def test_what_has_no_one_text_is_refused_with_the_fix(key: Any) -> None:
    """True and 1, a UUID and its bytes, 1e-7 and Decimal("1e-7"): the same to some, two people to others."""
    column = np.empty(2, dtype=object)
    column[:] = ["a", key]
    with refuses(dp.WrongType, "people") as error:
        people.contributors(column, "all", KEY)
    assert "text" in str(error.value)
    assert error.value.__cause__ is None


def test_a_column_of_floats_says_how_to_mend_it() -> None:
    for column in (pd.Series([7, None]), np.array([7.0]), pl.Series([7.0]), pa.array([7.0])):
        with pytest.raises(dp.WrongType, match=r'astype\("Int64"\)'):
            people.contributors(column, "all", KEY)


def test_the_same_key_in_another_population_is_hashed_otherwise() -> None:
    one, other = (people.contributors([7], name, KEY).who.tobytes() for name in ("patients", "staff"))
    assert one != other


def test_an_account_is_nobody_elses_on_an_engine(tmp_path: Path) -> None:
    """People whose keys are equal to hers after normalization, or but for an ending, are counted when she is not."""
    others = ["e\u0301", "\u00e9\0", "\u00e9 ", *(f"\u00e9{i}" for i in range(300))]
    frame = pd.DataFrame(
        {"id": pd.Series(["\u00e9", *others], dtype="string"), "ward": [1, *[0] * len(others)], "all": 1}
    )
    with dp.open(
        frame,
        unit="id",
        bounds={"ward": (0, 1)},
        budget=dp.PureDP(1000),
        ledger=str(tmp_path / "ledger.sqlite"),
    ) as table:
        table.ledger.create("people", each_person=dp.PureDP(30))
        asked = {"people": table.engine.run(f"SELECT id FROM {table.engine.table.sql('duckdb')}").column(0)}
        hers = asked["people"].to_pylist().index("\u00e9")
        assert table.ledger.charge("people", dp.PureDP(30), people=["\u00e9"]).kept.all()  # type: ignore[union-attr]
        kept = table.ledger.charge("people", dp.PureDP(30), **asked).kept
        assert kept is not None
        assert np.flatnonzero(~kept).tolist() == [hers]


def test_columns_of_every_kind_hold_the_same_people() -> None:
    keys, texts = [3, 1, BIG, 1], ["c", "é", "x" * 100, "é"]
    numbers = [
        np.array(keys), np.array(keys, dtype=object), tuple(keys), (key for key in keys), lambda: keys,
        pd.Series(keys), pd.Series(keys, dtype="Int64"), pd.Series(keys, dtype="uint64"), pd.Index(keys),
        pd.Series(keys, dtype="int64[pyarrow]"), pd.DataFrame({"a": keys}), pd.Series(keys).astype("category"),
        pl.Series(keys), pl.DataFrame({"a": keys})["a"], pa.array(keys), pa.chunked_array([keys[:2], keys[2:]]),
        pa.table({"a": keys}), pa.record_batch({"a": keys}), lambda: pa.table({"a": keys}),
        duckdb.sql("SELECT unnest([3, 1, 9007199254740993, 1]) AS a"),
        duckdb.sql("SELECT unnest([3, 1, 9007199254740993, 1])::HUGEINT AS a"),
        [str(key) for key in keys],
    ]  # fmt: skip
    for column in numbers:
        assert who(column) == [keyed_hash(str(key).encode()) for key in keys], type(column)
    expected = who(texts)
    for column in (
        np.array(texts), np.array(texts, dtype=object), np.array(texts, dtype=np.dtypes.StringDType()),
        pd.Series(texts), pd.Series(texts).astype("category"), pl.Series(texts), pl.Series(texts, dtype=pl.Categorical),
        pa.array(texts), pa.array(texts).dictionary_encode(),
    ):  # fmt: skip
        assert who(column) == expected, type(column)


def test_missing_keys_belong_to_nobody_and_change_no_other_key() -> None:
    """A column with gaps turns whole numbers into floats in some libraries, and 2^53 + 1 into somebody else."""
    expected = [*who([BIG]), b""]
    for column in (
        [BIG, None],
        np.array([BIG, None], dtype=object),
        np.ma.array([BIG, 5], mask=[False, True]),
        pd.Series([BIG, None], dtype="Int64"),
        pd.Series([BIG, None], dtype="int64[pyarrow]"),
        pd.Series([BIG, pd.NA], dtype=object),
        pl.Series([BIG, None]),
        pa.array([BIG, None]),
        pa.table({"a": [BIG, None]}),
        duckdb.sql("SELECT unnest([9007199254740993, NULL]) AS a"),
    ):
        assert who(column) == expected, type(column)
    assert who(pd.Series(["a", None])) == [*who(["a"]), b""]
    assert who([]) == who(np.array([])) == who(np.array([], dtype=int)) == who(iter(())) == []
    assert who([None]) == [b""]


class Unhelpful:
    """Its text is its address: somebody new every time."""

    def __ne__(self, other: object) -> bool:
        raise KeyError("a value from the data")

    __hash__ = None  # type: ignore[assignment]


WRONG: list[Any] = [
    5, "abc", b"abc", {"a": 1}, None.__class__, np.zeros((2, 2)), np.array(5), pl.DataFrame({"a": [1], "b": [2]}),
    pd.DataFrame({"a": [1], "b": [2]}), pa.table({"a": [1], "b": [2]}), [[1, 2], [3, 4]], [(1, 2), (3, 4)], [[1], [2]],
    [np.array([1, 2])], [object()], [Unhelpful()], [1j], [{"a": 1}], [bytearray(b"a")], [10**5000], [slice(0)],
    pd.MultiIndex.from_tuples([(1, 2)]), np.array(["2020-01-01"], dtype="M8[ns]"), [np.datetime64("2020-01-01")],
    np.zeros(2, dtype=[("a", int)]), [Fraction(1, 2)], [lambda: 1],
]  # fmt: skip


@each("column", WRONG)
def test_what_is_no_column_of_keys_is_refused(column: Any) -> None:
    with refuses(dp.WrongType, "people") as error:
        people.contributors(column, "all", KEY)
    assert "value from the data" not in str(error.value)


@given(st.lists(st.binary(min_size=16, max_size=16), min_size=1, max_size=8, unique=True), st.integers(1, 2**62))
def test_the_checksum_adds_up_and_sees_edits(names: list[bytes], loss: int) -> None:
    hashes, losses = rows_of(names), np.arange(1, len(names) + 1) + loss
    result = people.checksum(KEY, hashes, losses, np.zeros_like(losses))
    one_by_one = sum(people.checksum(KEY, hashes[i : i + 1], int(losses[i]), 0) for i in range(len(names)))
    assert result == one_by_one % people.PRIME
    assert result != people.checksum(KEY, hashes, losses + (np.arange(len(names)) == 0), 0)
    assert result != people.checksum(KEY, hashes[1:], losses[1:], 0)
    assert result != people.checksum(KEY, hashes, losses, 1)
    if len(names) > 1:
        assert result != people.checksum(KEY, hashes[::-1].copy(), losses, 0) or np.array_equal(losses, losses[::-1])
        # nobody without the secret can move a debt, in steps however large
        for step in (int(losses[0]), 2**49, 2**61):
            for back in range(-4, 4):
                moved = losses.astype(object)
                moved[0], moved[1] = moved[0] - step, moved[1] + back * step
                assert result != people.checksum(KEY, hashes, moved, 0)


def rows_of(names: list[bytes]) -> NDArray[np.uint8]:
    return np.frombuffer(b"".join(names), dtype=np.uint8).reshape(len(names), 16)


def test_the_ends_of_all_hashes_are_people_too(place: str) -> None:
    names = [bytes(16), bytes(15) + b"\1", b"\x7f" + b"\xff" * 15, b"\x80" + bytes(15), b"\xff" * 16]
    store, ends = LedgerStore(place, secret=KEY), rows_of(names)
    for expected in ([True] * 5, [False] * 5):
        with store.transaction():
            kept = people.charge(store, "all", ends, Amount(2, 1), Amount(3, 1))
            assert kept.tolist() == expected
    with store.snapshot():
        assert people.total(store, KEY, "all") == people.checksum(KEY, ends, 2, 1)
        assert people.total(store, KEY, "others") == 0
    store.close()


def test_people_in_several_batches(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers in a batch are not those in the column."""
    monkeypatch.setattr(people, "_BATCH", 7)
    store, names = LedgerStore(place, secret=KEY), rows_of([bytes([i] * 16) for i in range(40)])
    with store.transaction():
        assert people.charge(store, "all", names[::3], Amount(2, 1), Amount(3, 1)).all()
        kept = people.charge(store, "all", names, Amount(2, 1), Amount(3, 1))
    assert np.flatnonzero(~kept).tolist() == list(range(0, 40, 3))
    with store.snapshot():
        assert people.total(store, KEY, "all") == people.checksum(KEY, names, 2, 1)
    store.close()


def test_example_8_of_the_lectures(ledger: Ledger) -> None:
    """Mean and variance of one half, the median of the other: max(epsilon1 + epsilon2, epsilon3), by itself."""
    ledger.create("school", each_person=dp.PureDP(1))
    left, right = [f"pupil {i}" for i in range(0, 10)], [f"pupil {i}" for i in range(10, 20)]
    for cost, half in ((0.3, left), (0.4, left), (0.6, right)):
        assert ledger.charge("school", dp.PureDP(cost), people=half).kept.all()  # type: ignore[union-attr]
    everybody = left + right
    assert ledger.charge("school", dp.PureDP(0.3), people=everybody).kept.all()  # type: ignore[union-attr]
    # the largest total is now 0.3 + 0.4 + 0.3 on the left, and 0.9 on the right
    kept = ledger.charge("school", dp.PureDP(0.1), people=everybody).kept
    assert kept is not None
    assert kept.tolist() == 10 * [False] + 10 * [True]
    assert not ledger.charge("school", dp.PureDP(1e-15), people=everybody).kept.any()  # type: ignore[union-attr]


COSTS = st.sampled_from([dp.PureDP(0.1), dp.PureDP(0.25), dp.PureDP(1), dp.PureDP(1.5), dp.ApproxDP(0.2, 4e-7)])
RELEASES = st.lists(
    st.tuples(COSTS, st.lists(st.one_of(st.none(), st.integers(0, 8)), max_size=12)), min_size=1, max_size=10
)


class Brute:
    """A dictionary, fractions, and one person at a time."""

    def __init__(self) -> None:
        self.totals: dict[Any, tuple[Fraction, Fraction]] = defaultdict(lambda: (Fraction(0), Fraction(0)))

    def charge(self, cost: dp.Guarantee, column: list[Any]) -> list[bool]:
        epsilon = Fraction(str(cost.epsilon))  # type: ignore[attr-defined]
        delta = Fraction(str(cost.delta)) if isinstance(cost, dp.ApproxDP) else Fraction(0)
        paying = set()
        for person in set(column) - {None}:
            total = self.totals[person][0] + epsilon, self.totals[person][1] + delta
            if total[0] <= 1 and total[1] <= Fraction(1, 10**6):
                self.totals[person] = total
                paying.add(person)
        return [person in paying for person in column]


@DATABASE
@given(RELEASES)
def test_bookkeeping_person_by_person(ledger: Ledger, releases: list[tuple[dp.Guarantee, list[int | None]]]) -> None:
    dataset, brute = f"visits {ledger.head.seq}", Brute()
    ledger.create(dataset, each_person=dp.ApproxDP(1, 1e-6))
    for cost, column in releases:
        if not cost <= dp.ApproxDP(1, 1e-6):
            with refuses(dp.BudgetExceeded, "for life"):  # which nobody could ever pay
                ledger.charge(dataset, cost, people=column)
            continue
        seen: list[list[bool]] = []
        ledger.release(dataset, cost, lambda kept, seen=seen: seen.append(kept.tolist()), people=column)
        assert seen == [brute.charge(cost, column)]
    store, population = ledger._store, dataset
    with store.snapshot():
        rows = store.run(people.schema.PEOPLE, {"population": population, "after": b"", "most": 99}).fetchall()
    result = {bytes(row[0]): Fraction(row[1], LOSS_UNIT) for row in rows}
    hash_of = {key: people.contributors([key], population, store.secret.people).who.tobytes() for key in brute.totals}
    assert result == {hash_of[person]: total[0] for person, total in brute.totals.items() if total != (0, 0)}
    assert ledger.verify().entries


def test_brute_force_can_tell(ledger: Ledger) -> None:
    """A ledger that charges rows instead of people, or forgets the pending charge, would be seen above."""
    ledger.create("visits", each_person=dp.PureDP(1))
    assert ledger.charge("visits", dp.PureDP(0.6), people=["a", "a"]).kept.all()  # type: ignore[union-attr]
    assert not ledger.charge("visits", dp.PureDP(0.6), people=["a"]).kept.any()  # type: ignore[union-attr]
    assert ledger.charge("visits", dp.PureDP(0.4), people=["a"]).kept.all()  # type: ignore[union-attr]


@DATABASE
@given(RELEASES, st.integers(0, 8))
def test_one_person_never_changes_whether_another_takes_part(
    ledger: Ledger, releases: list[tuple[dp.Guarantee, list[int | None]]], gone: int
) -> None:
    """The same questions with and without somebody: everybody else's rows are kept or left out alike."""
    names = [f"{side} {ledger.head.seq}" for side in ("with", "without")]
    for name in names:
        ledger.create(name, each_person=dp.ApproxDP(1, 1e-6))
    for cost, column in releases:
        if not cost <= dp.ApproxDP(1, 1e-6):
            continue
        both = ledger.charge(names[0], cost, people=column).kept
        fewer = ledger.charge(names[1], cost, people=[key for key in column if key != gone]).kept
        assert both is not None
        assert fewer is not None
        assert both[[key != gone for key in column]].tolist() == fewer.tolist()


def test_datasets_of_one_population_share_accounts(ledger: Ledger) -> None:
    ledger.create("visits", each_person=dp.PureDP(1), population="patients")
    ledger.create("bills", limit=dp.PureDP(9), population="patients")
    ledger.create("staff", each_person=dp.PureDP(1))
    ledger.charge("visits", dp.PureDP(0.7), people=["ann", "bob"])
    kept = ledger.charge("bills", dp.PureDP(0.5), people=["ann", "eve"]).kept
    assert kept is not None
    assert kept.tolist() == [False, True]
    assert ledger.charge("staff", dp.PureDP(1), people=["ann", "bob"]).kept.all()  # type: ignore[union-attr]
    sign = {"signed_by": "board", "reason": "vote"}
    ledger.change_limit("bills", dp.PureDP(1.2), each_person=True, **sign)
    assert ledger.charge("bills", dp.PureDP(0.5), people=["ann", "bob"]).kept.all()  # type: ignore[union-attr]
    ledger.change_limit("visits", dp.PureDP(0.1), each_person=True, **sign)
    assert not ledger.charge("visits", dp.PureDP(1e-15), people=["ann"]).kept.any()  # type: ignore[union-attr]
    assert [account.owner for account in ledger.accounts("bills")] == ["bills", "patients"]
    assert ledger.verify().entries


def test_people_in_rho_and_with_the_advanced_filter(ledger: Ledger) -> None:
    ledger.create("visits", each_person=dp.ZCDP(0.1))
    ledger.create("deaths", each_person=dp.ApproxDP(1, 1e-6), filter="advanced")
    for dataset, cost, fits in (("visits", dp.ZCDP(0.05), 2), ("deaths", dp.PureDP(0.1), 4)):
        kept = [ledger.charge(dataset, cost, people=["ann"]).kept for _ in range(fits + 1)]
        assert [bool(one.all()) for one in kept if one is not None] == fits * [True] + [False]
    ledger.create("bills", each_person=dp.PureDP(1))
    with refuses(dp.NotPrivate, "rho"):
        ledger.charge("bills", dp.ZCDP(0.1), people=["ann"])


def test_whom_a_release_touches_has_to_be_said(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1), each_person=dp.PureDP(1))
    with refuses(dp.InvalidArgument, "people"):
        ledger.charge("visits", dp.PureDP(0.1))
    assert ledger.charge("visits", dp.PureDP(0.1), people=[]).kept.tolist() == []  # type: ignore[union-attr]
    assert ledger.left("visits") == dp.PureDP(0.9), "that nobody was touched is private"
