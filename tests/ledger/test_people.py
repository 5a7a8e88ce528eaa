"""Who took part: reading keys of every kind, and bookkeeping person by person against brute force."""

from __future__ import annotations

import datetime
import math
import unicodedata
import uuid
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dither as dp
from dither.ledger import people
from dither.ledger.store import Store
from dither.ledger.units import LOSS_UNIT, Amount

Ledger = dp.ledger.Ledger
KEY = bytes(range(32))
DATABASE = settings(
    max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
BIG = 2**53 + 1


def who(column: Any) -> list[int]:
    """Each row's keyed hash; 0 for a row without a key."""
    found = people.crowd(column, KEY)
    return [*np.append(found.who, 0)[found.place].tolist()]


def aes_cbc_mac(text: bytes) -> int:
    """The whole message through AES-CBC with a zero vector; the last block, as the definition says."""
    message = len(text).to_bytes(4, "big") + text
    message += bytes(-len(message) % 16)
    last = Cipher(algorithms.AES(KEY), modes.CBC(bytes(16))).encryptor().update(message)[-16:]
    return int.from_bytes(last[:8], "big", signed=True)


@given(st.lists(st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=64), max_size=20))
def test_hashes_are_cbc_mac_of_length_and_text(texts: list[str]) -> None:
    assert who(texts) == [aes_cbc_mac(text.encode()) for text in texts]


SAME: list[tuple[Any, ...]] = [
    (7, 7.0, "7", b"7", np.int8(7), np.uint64(7), np.float32(7), np.float64(7), Decimal(7), Decimal("7.00")),
    (0, -0.0, "0", np.float32(-0.0), Decimal("-0.0")),
    (-3, -3.0, "-3", Decimal("-3.0")),
    (10**22, 1e22, str(10**22), Decimal("1e22")),
    (0.5, "0.5", np.float32(0.5), Decimal("0.50")),
    (True, np.True_, "True"),
    ("é", unicodedata.normalize("NFD", "é"), "é".encode(), unicodedata.normalize("NFD", "é").encode(), np.str_("é")),
    ("x" * 5000, b"x" * 5000, np.bytes_(b"x" * 5000)),
    (uuid.UUID(int=5), str(uuid.UUID(int=5))),
    (datetime.date(2020, 1, 2), "2020-01-02"),
    (None, math.nan, np.float32("nan"), Decimal("nan"), Decimal("snan"), pd.NA, pd.NaT),
]
OTHERS = [
    7,
    8,
    -7,
    7.5,
    "07",
    "",
    " ",
    "7 ",
    "a",
    "A",
    "x" * 5000,
    "x" * 5001,
    b"\xff",
    2**70,
    BIG,
    "\ud800",
    "\U0001f9ea",
]


def test_the_same_person_however_the_key_is_held() -> None:
    for held in SAME:
        assert len({one for key in held for one in who([key])}) == 1, held
        assert len(set(who(list(held)))) == 1, held
    assert len(set(who(OTHERS))) == len(OTHERS)
    assert 0 not in who(OTHERS)


def test_columns_of_every_kind_hold_the_same_people() -> None:
    keys, texts = [3, 1, BIG, 1], ["c", "é", "x" * 100, "é"]
    numbers = [
        np.array(keys), np.array(keys, dtype=object), tuple(keys), (key for key in keys), lambda: keys,
        pd.Series(keys), pd.Series(keys, dtype="Int64"), pd.Series(keys, dtype="uint64"), pd.Index(keys),
        pd.Series(keys, dtype="int64[pyarrow]"), pd.DataFrame({"a": keys}), pd.Series(keys).astype("category"),
        pl.Series(keys), pl.DataFrame({"a": keys})["a"], pa.array(keys), pa.chunked_array([keys[:2], keys[2:]]),
        pa.table({"a": keys}), pa.record_batch({"a": keys}), lambda: pa.table({"a": keys}),
        duckdb.sql("SELECT unnest([3, 1, 9007199254740993, 1]) AS a"),
        duckdb.sql("SELECT unnest([3, 1, 9007199254740993, 1])::DECIMAL(30, 2) AS a"),
        duckdb.sql("SELECT unnest([3, 1, 9007199254740993, 1])::HUGEINT AS a"),
        [str(key) for key in keys],
    ]  # fmt: skip
    for column in numbers:
        assert who(column) == [aes_cbc_mac(str(key).encode()) for key in keys], type(column)
    expected = who(texts)
    for column in (
        np.array(texts), np.array(texts, dtype=object), np.array(texts, dtype=np.dtypes.StringDType()),
        pd.Series(texts), pd.Series(texts).astype("category"), pl.Series(texts), pl.Series(texts, dtype=pl.Categorical),
        pa.array(texts), pa.array(texts).dictionary_encode(), [text.encode() for text in texts],
    ):  # fmt: skip
        assert who(column) == expected, type(column)


def test_missing_keys_belong_to_nobody_and_change_no_other_key() -> None:
    """A column with gaps turns whole numbers into floats in some libraries, and 2^53 + 1 into somebody else."""
    expected = [*who([BIG]), 0]
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
    assert who(pd.Series(["a", None])) == [*who(["a"]), 0]
    assert who(np.array([math.nan, 7.0])) == [0, *who([7])]
    assert who([]) == who(np.array([])) == who(np.array([], dtype=int)) == who(iter(())) == []
    assert who([None]) == [0]


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


@pytest.mark.parametrize("column", WRONG, ids=lambda column: type(column).__name__)
def test_what_is_no_column_of_keys_is_refused(column: Any) -> None:
    with pytest.raises(dp.WrongType, match="people") as error:
        people.crowd(column, KEY)
    assert "value from the data" not in str(error.value)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8, unique=True), st.integers(1, 2**62))
def test_the_checksum_adds_up_and_sees_edits(names: list[int], loss: int) -> None:
    crowd, losses = np.array(names), np.arange(1, len(names) + 1) + loss
    found = people.checksum(KEY, crowd, losses, 0)
    apart = sum(people.checksum(KEY, crowd[i : i + 1], int(losses[i]), 0) for i in range(len(names)))
    assert found == apart % people.PRIME
    assert found != people.checksum(KEY, crowd, losses + (np.arange(len(names)) == 0), 0)
    assert found != people.checksum(KEY, crowd[1:], losses[1:], 0)
    assert found != people.checksum(KEY, crowd, losses, 1)
    if len(names) > 1:
        assert found != people.checksum(KEY, crowd[::-1].copy(), losses, 0) or np.array_equal(losses, losses[::-1])
        # nobody without the secret can move a debt, in steps however large
        for step in (int(losses[0]), 2**49, 2**61):
            for back in range(-4, 4):
                moved = losses.astype(object)
                moved[0], moved[1] = moved[0] - step, moved[1] + back * step
                assert found != people.checksum(KEY, crowd, moved, 0)


def test_the_ends_of_64_bits_are_people_too(place: str) -> None:
    store, ends = Store(place), np.array([-(2**63), -1, 0, 2**63 - 1])
    for expected in ([True] * 4, [False] * 4):
        with store.transaction():
            kept = people.charge(store, "all", ends, Amount(2, 1), Amount(3, 1))
            assert kept.tolist() == expected
    with store.snapshot():
        assert people.total(store, KEY, "all") == people.checksum(KEY, ends, 2, 1)
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
        loss = Fraction(str(cost.epsilon))  # type: ignore[attr-defined]
        delta = Fraction(str(cost.delta)) if isinstance(cost, dp.ApproxDP) else Fraction(0)
        paying = set()
        for person in set(column) - {None}:
            total = self.totals[person][0] + loss, self.totals[person][1] + delta
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
            with pytest.raises(dp.BudgetExceeded, match="for life"):  # which nobody could ever pay
                ledger.charge(dataset, cost, people=column)
            continue
        seen: list[list[bool]] = []
        ledger.release(dataset, cost, lambda kept, seen=seen: seen.append(kept.tolist()), people=column)
        assert seen == [brute.charge(cost, column)]
    store, population = ledger._store, dataset
    with store.snapshot():
        rows = store.run(people.schema.PEOPLE, {"population": population, "start": -(2**63), "most": 99}).fetchall()
    found = {row[0]: Fraction(row[1], LOSS_UNIT) for row in rows}
    assert found == {who([person])[0]: total[0] for person, total in brute.totals.items() if total != (0, 0)}
    assert ledger.verify().people


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
    assert ledger.verify().people


def test_people_in_rho_and_with_the_advanced_filter(ledger: Ledger) -> None:
    ledger.create("visits", each_person=dp.ZCDP(0.1))
    ledger.create("deaths", each_person=dp.ApproxDP(1, 1e-6), filter="advanced")
    for dataset, cost, fits in (("visits", dp.ZCDP(0.05), 2), ("deaths", dp.PureDP(0.1), 4)):
        kept = [ledger.charge(dataset, cost, people=["ann"]).kept for _ in range(fits + 1)]
        assert [bool(one.all()) for one in kept if one is not None] == fits * [True] + [False]
    ledger.create("bills", each_person=dp.PureDP(1))
    with pytest.raises(dp.NotPrivate, match="rho"):
        ledger.charge("bills", dp.ZCDP(0.1), people=["ann"])


def test_whom_a_release_touches_has_to_be_said(ledger: Ledger) -> None:
    ledger.create("visits", limit=dp.PureDP(1), each_person=dp.PureDP(1))
    with pytest.raises(dp.InvalidArgument, match="people"):
        ledger.charge("visits", dp.PureDP(0.1))
    assert ledger.charge("visits", dp.PureDP(0.1), people=[]).kept.tolist() == []  # type: ignore[union-attr]
    assert ledger.left("visits") == dp.PureDP(0.9), "that nobody was touched is private"
