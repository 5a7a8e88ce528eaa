"""Words are fresh in every thread, process and copy; a seed is another type."""

from __future__ import annotations

import copy
import inspect
import multiprocessing
import os
import pickle
import sys
import threading
import warnings

import numpy as np
import pytest
from scipy import stats

from dither.errors import WrongType
from dither.randomness import SYSTEM, SeededSource, Source, SystemSource, resolve
from dither.randomness import source as module
from support import FALSE_ALARM, refuses

# Keys come from the operating system here. Words that are to differ have 64 bits. Of the 111,537 of the largest test
# that compares all with all, two agree with a probability of 3.4e-10; its p-value is below half of 1e-9 with that
# probability. Any other test has fewer words or compares fixed pairs, or has one p-value. The wrong law is refused by a
# chi-square of 755 on average, 500 above its degrees of freedom and seven standard deviations above what is asked for.
pytestmark = pytest.mark.statistical(alpha=1e-9)

COUNT = 64


def child_words(count: int) -> list[int]:
    return [*SYSTEM.words(count).tolist(), *(SYSTEM.word() for _ in range(count))]


def assert_disjoint(*batches: list[int]) -> None:
    """Words are 64 bits, so two streams share one with a chance below 2^-40."""
    everything = [word for batch in batches for word in batch]
    assert len(set(everything)) == len(everything)


def test_the_system_source_takes_no_seed() -> None:
    assert list(inspect.signature(SystemSource).parameters) == []
    with pytest.raises(TypeError):
        SystemSource(7)  # type: ignore[call-arg]
    assert SYSTEM.private
    assert not any("seed" in attribute for attribute in dir(SYSTEM))


def test_words_are_64_bit_and_word_is_an_int() -> None:
    words = SYSTEM.words(10)
    assert words.dtype == np.uint64
    assert words.shape == (10,)
    assert type(SYSTEM.word()) is int
    assert SYSTEM.words(0).size == 0


def test_two_sources_and_all_calls_differ() -> None:
    other = SystemSource()
    assert_disjoint(
        child_words(COUNT), child_words(COUNT), other.words(COUNT).tolist(), [other.word() for _ in range(600)]
    )


def test_threads_have_their_own_streams() -> None:
    batches: list[list[int]] = [child_words(COUNT)]
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait()
        batches.append(child_words(5000))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(batches) == 5
    assert_disjoint(*batches, child_words(COUNT))


def test_a_forked_child_starts_anew() -> None:
    SYSTEM.word()  # leaves words in the buffer that a child must not use
    SYSTEM.words(COUNT)
    batches = []
    for _ in range(2):
        reader, writer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other tests may have left threads
            pid = os.fork()
        if pid == 0:
            try:
                os.write(writer, pickle.dumps(child_words(COUNT)))
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as stream:
            batches.append(pickle.loads(stream.read()))
        os.waitpid(pid, 0)
    assert_disjoint(*batches, child_words(COUNT))


def test_a_changed_process_id_alone_starts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a process was cloned without Python's fork hooks."""
    source = SystemSource()
    source.word()
    before = source._stream()
    assert source._stream() is before
    monkeypatch.setattr(module.os, "getpid", lambda: -1)
    assert source._stream() is not before


@pytest.mark.slow
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_multiprocessing_children_differ(method: str) -> None:
    SYSTEM.word()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with multiprocessing.get_context(method).Pool(2) as pool:
            # the bound method travels by pickle, and pytest's modules cannot be imported by a spawned child
            batches = [part.tolist() for part in pool.map(SYSTEM.words, [COUNT] * 6, chunksize=1)]
    assert_disjoint(*batches, child_words(COUNT))


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))], ids=["copy", "deepcopy", "pickle"]
)
def test_copies_carry_no_state(duplicate: object) -> None:
    original = SystemSource()
    original.word()
    twin = duplicate(original)  # type: ignore[operator]
    assert isinstance(twin, SystemSource)
    assert_disjoint(
        original.words(COUNT).tolist(),
        twin.words(COUNT).tolist(),
        [original.word() for _ in range(COUNT)],
        [twin.word() for _ in range(COUNT)],
    )
    assert pickle.dumps(original) == pickle.dumps(SystemSource())


@pytest.mark.parametrize("limit", [8, 4096, 1 << 18, (1 << 18) + 8])
def test_rekeying_happens_and_leaves_words_whole(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    keys: list[int] = []

    def entropy(size: int) -> bytes:
        keys.append(size)
        return os.getrandom(size) if sys.platform == "linux" else os.urandom(size)

    monkeypatch.setattr(module, "_REKEY_BYTES", limit)
    monkeypatch.setattr(
        module, "os", type("Os", (), {"urandom": staticmethod(entropy), "getpid": staticmethod(os.getpid)})
    )
    source = SystemSource()
    words = np.concatenate([source.words(n) for n in (1, 511, 512, 513, 40_000, 70_000)])
    assert words.size == 111_537
    assert len(np.unique(words)) == words.size
    assert all(size == 48 for size in keys)
    assert len(keys) >= 1 + (8 * words.size) // max(limit, 1 << 18) // 2
    ones = int(np.bitwise_count(words).sum())
    assert (
        2 * min(stats.binom.cdf(ones, 64 * words.size, 0.5), stats.binom.sf(ones - 1, 64 * words.size, 0.5))
        > FALSE_ALARM / 2
    )


def test_a_seeded_stream_is_not_rekeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = SeededSource(3).words(100_000)
    monkeypatch.setattr(module, "_REKEY_BYTES", 64)
    assert np.array_equal(SeededSource(3).words(100_000), expected)


@pytest.mark.parametrize("count", [1 << 15, (1 << 15) + 1, 1_000_003])
def test_big_requests(count: int) -> None:
    words = SYSTEM.words(count)
    assert words.shape == (count,)
    # a keystream that repeats would repeat a whole piece
    assert not np.any(words[: count // 2] == words[count // 2 :][: count // 2])
    seeded = SeededSource(1)
    assert np.array_equal(
        SeededSource(1).words(count), np.concatenate([seeded.words(1000), seeded.words(count - 1000)])
    )


@pytest.mark.parametrize("shift", [0, 8, 16, 24, 32, 40, 48, 56])
def test_every_byte_is_uniform(shift: int) -> None:
    counts = np.bincount((SYSTEM.words(200_000) >> np.uint64(shift)).astype(np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    assert (
        stats.chisquare(counts, counts.sum() * np.r_[np.full(128, 0.95), np.full(128, 1.05)] / 256).pvalue < FALSE_ALARM
    )


def test_seeded_words_are_reproducible_and_not_private() -> None:
    assert not SeededSource(1).private
    assert SeededSource(1).words(5).tolist() == SeededSource(1).words(5).tolist()
    assert [SeededSource(-9).word() for _ in range(2)] == [SeededSource(-9).words(1)[0]] * 2
    assert_disjoint(*(SeededSource(seed).words(100).tolist() for seed in (0, 1, -1, 10, 2**70)))
    assert "not private" in repr(SeededSource(4))


@pytest.mark.parametrize("seed", [True, 1.0, "1", None, np.int64(1)])
def test_seeds_are_ints(seed: object) -> None:
    with refuses(WrongType, "seed"):
        SeededSource(seed)  # type: ignore[arg-type]


def test_resolve() -> None:
    assert resolve(None) is SYSTEM
    for source in (SYSTEM, SystemSource(), SeededSource(1)):
        assert resolve(source) is source
        assert isinstance(source, Source)


@pytest.mark.parametrize(
    "junk", [0, 7, "system", np.random.default_rng(1), object(), SystemSource, SeededSource, os.urandom]
)
def test_resolve_refuses_what_is_no_source(junk: object) -> None:
    with refuses(WrongType, "source"):
        resolve(junk)  # type: ignore[arg-type]
