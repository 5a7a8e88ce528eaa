"""The server: adding, merging, refusing, and memory that does not grow."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import dither as dp
from dither.errors import InvalidArgument, InvalidData, WrongType
from dither.local.reports import Reports
from dither.randomness import SeededSource

from .test_protocol import all_protocols, label

P = dp.local.SubsetSelection(categories=20, epsilon=1)


@pytest.mark.parametrize("protocol", all_protocols(40, 1), ids=label)
def test_streamed_merged_and_whole_are_the_same(protocol):
    batches = [protocol.privatize(np.arange(size) % 40) for size in (1, 100, 37, 400)]
    whole = protocol.server()
    for batch in batches:
        whole.add(batch)
    first, second = protocol.server().add(batches[0]).add(batches[2].to_bytes()), protocol.server().add(batches[3])
    merged = second.add(batches[1]).merge(pickle.loads(pickle.dumps(first)))
    assert merged.n == whole.n == 538
    assert np.array_equal(merged.estimate().shares, whole.estimate().shares)
    records = np.concatenate([batch.records for batch in batches])
    joined = Reports(protocol.wire_code, 1.0, protocol.fingerprint, records, bytes(16))
    assert np.array_equal(protocol.estimate(joined).shares, whole.estimate().shares)
    assert whole.nbytes == protocol.server().nbytes


@pytest.mark.parametrize("protocol", all_protocols(40, 1), ids=label)
def test_records_that_no_client_sends_are_refused_and_nothing_is_lost(protocol):
    server = protocol.server().add(protocol.privatize([1, 2, 3]))
    before = server.estimate()
    good = protocol.privatize([4] * 50)
    records = good.records.copy()
    records[-1] = 255
    if isinstance(protocol, dp.local.UnaryEncoding | dp.local.LocalHashing):  # every record of this size is possible
        return
    with pytest.raises(InvalidData, match="Fix:"):
        server.add(Reports(good.wire_code, good.epsilon, good.fingerprint, records, good.batch))
    assert server.estimate() == before
    assert server.add(good).n == 53


def test_bits_after_the_last_category_are_refused():
    p = dp.local.UnaryEncoding(categories=13, epsilon=1)
    good = p.privatize([4] * 50)
    records = good.records.copy()
    records[7, 1] |= 0x80
    with pytest.raises(InvalidData, match="13 bits"):
        p.estimate(Reports(good.wire_code, good.epsilon, good.fingerprint, records, good.batch))


@pytest.mark.parametrize(
    ("reports", "text"),
    [
        (lambda: dp.local.UnaryEncoding(20, 1).privatize([1]), "reports of UnaryEncoding"),
        (lambda: dp.local.SubsetSelection(20, 2).privatize([1]), "clients with epsilon=2"),
        (lambda: dp.local.SubsetSelection(21, 1).privatize([1]), "other categories or options"),
        (
            lambda: dp.local.SubsetSelection([*map(str, range(20))], 1).privatize(["1"]),
            "other categories or options",
        ),
        (lambda: P.privatize([1]).to_bytes()[:-1], "3 bytes after the header|records of 3 bytes"),
    ],
)
def test_reports_of_others_are_refused_and_nothing_is_lost(reports, text):
    server = P.server().add(P.privatize([1, 2, 3]))
    before = server.estimate()
    for batch in (reports(), getattr(reports(), "to_bytes", reports)()):
        with pytest.raises(InvalidData, match=text):
            server.add(batch)
    assert server.estimate() == before


def test_a_batch_counts_once():
    server, batch = P.server(), P.privatize([1, 2, 3])
    server.add(batch)
    for again in (batch, batch.to_bytes()):
        with pytest.raises(InvalidData, match="added before"):
            server.add(again)
    assert server.n == 3
    with pytest.raises(InvalidData, match="both have added"):
        server.merge(P.server().add(batch))
    assert server.n == 3
    forgetful = P.server(refuse_duplicates=False).add(batch).add(batch)
    assert forgetful.n == 6
    with pytest.raises(InvalidArgument, match="knows which batches"):
        server.merge(forgetful)  # one of its batches may be here already
    assert server.n == 3
    assert forgetful.merge(server).n == 9
    with pytest.raises(InvalidData, match="added before"):
        server.add(Reports(batch.wire_code, batch.epsilon, batch.fingerprint, P.privatize([9]).records, batch.batch))


@pytest.mark.parametrize("protocol", all_protocols(300, 1), ids=label)
def test_the_order_of_bytes_in_memory_does_not_matter(protocol):
    batch = protocol.privatize(np.arange(300))
    other = Reports(batch.wire_code, batch.epsilon, batch.fingerprint, np.asfortranarray(batch.records), batch.batch)
    every = np.repeat(batch.records, 2, axis=0)[::2]
    third = Reports(batch.wire_code, batch.epsilon, batch.fingerprint, every, batch.batch)
    for copy in (other, third, bytearray(batch.to_bytes())):
        assert np.array_equal(protocol.estimate(copy).shares, protocol.estimate(batch).shares)


def test_only_equal_servers_merge():
    server = P.server()
    for other, error in (
        (dp.local.SubsetSelection(20, 2).server(), InvalidArgument),
        (server, InvalidArgument),
        (3, WrongType),
    ):
        with pytest.raises(error):
            server.merge(other)


def test_a_server_without_reports_has_no_estimate():
    with pytest.raises(InvalidData, match="at least one"):
        P.server().estimate()
    assert "n=0" in repr(P.server())


def test_reports_are_charged_inside_a_scope(tmp_path):
    from dither.budget_hooks import charging_to

    class Till:
        spent = 0.0

        def spend(self, what, compute, *, private, recordable=True):
            self.spent += float(what.guarantee.epsilon)
            return compute()

    till = Till()
    with charging_to(till):
        reports = P.privatize([1, 2])
        P.estimate(reports)
    assert till.spent == 1


SKETCHES = [
    dp.local.CountMeanSketch(4, 40, rows=512, width=64),
    dp.local.HadamardCountMeanSketch(4, 40, rows=512, width=64),
]


@pytest.mark.parametrize("p", SKETCHES, ids=label)
def test_a_sketch_reads_few_categories_as_it_reads_all(p, monkeypatch):
    server = p.server().add(p.privatize(np.arange(20_000) % 40, source=SeededSource(1)))
    whole, few = server.estimate(), server.estimate([3, 1, 4])
    assert few.shares == pytest.approx(whole.shares[[3, 1, 4]], abs=1e-12)
    assert few.standard_error == pytest.approx(whole.standard_error[[3, 1, 4]], rel=1e-9)
    monkeypatch.setattr("dither.local.sketch._CELLS_FOR_PAIRS", 256 * 64)  # as in a large sketch: from some of the rows
    some = server.estimate([3, 1, 4])
    assert np.array_equal(some.shares, few.shares)
    assert some.standard_error == pytest.approx(few.standard_error, rel=0.02)


@pytest.mark.parametrize("p", SKETCHES, ids=label)
def test_sums_do_not_overflow(p):
    """A server that has merged with its like until it has more reports than 32 bits count."""
    server = p.server(refuse_duplicates=False).add(p.privatize([3] * 40))
    first = server.estimate()
    while server.n < 1 << 42:
        server.merge(pickle.loads(pickle.dumps(server)))
    assert server.estimate().shares == pytest.approx(first.shares, abs=1e-9)


def test_categories_in_no_order_and_categories_not_asked_for_are_refused():
    for categories in ({"a", "b"}, "ab", {"a": 1, "b": 2}):
        with pytest.raises(WrongType, match="a list of labels or their number"):
            dp.local.SubsetSelection(categories, 1)
    estimate = P.estimate(P.privatize([1, 2]), [1, 2])
    with pytest.raises(InvalidArgument, match="one that was estimated"):
        estimate[3]
