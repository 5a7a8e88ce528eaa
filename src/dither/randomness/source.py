"""Where random bits come from: the operating system for releases, a seed for tests.

:class:`SystemSource` turns 48 bytes of operating-system entropy into an AES-256-CTR keystream, one stream
per thread, rekeyed from the operating system every 64 MiB and after every fork. There is no way to seed it.
:class:`SeededSource` is another type on purpose: what is released with it carries the mark of :func:`mark`.
:class:`LazyUniform` is a uniform real number whose bits are drawn from a source when a comparison needs them.
The mark is part of how such a value is shown.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, runtime_checkable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from dither.errors import InvalidArgument, WrongType
from dither.exact import Enclosure
from dither.stateful import process

Words = NDArray[np.uint64]
Threshold = Callable[[int], Enclosure]
"""Encloses a number t between 0 and 1: the limits of ``t * 2**bits`` for a number of bits."""

_REKEY_BYTES = 64 << 20
_SINGLE_WORDS = 256
_ZEROS = memoryview(bytes(1 << 18))


@runtime_checkable
class Source(Protocol):
    """A stream of independent uniform 64-bit words.

    >>> isinstance(SystemSource(), Source)
    True
    """

    private: bool

    def words(self, count: int) -> Words:
        """Return the next ``count`` words."""

    def word(self) -> int:
        """Return one word, as an int."""


class KeyStream:
    """An AES-256-CTR keystream; ``fixed_key`` says whether the first key is kept for good."""

    __slots__ = ("_left", "_single", "encryptor", "fixed_key", "process")

    def __init__(self, key: bytes | None = None) -> None:
        self.fixed_key = key is not None
        self.process = process()
        self._single: Iterator[int] = iter(())
        self._start(key if key is not None else os.urandom(48))

    def _start(self, key: bytes) -> None:
        """Start a key stream of AES-256 in counter mode: 32 bytes of key, 16 bytes of counter."""
        self.encryptor = Cipher(algorithms.AES(key[:32]), modes.CTR(key[32:])).encryptor()
        self._left = _REKEY_BYTES

    def _chunk(self, size: int) -> bytes:
        """Return the next bytes of the key stream; a stream without a fixed key takes a new key before it is
        used up."""
        if size > self._left and not self.fixed_key:
            self._start(os.urandom(48))
        self._left -= size
        return self.encryptor.update(_ZEROS[:size])

    def words(self, count: int) -> Words:
        """Return the next ``count`` words."""
        size = 8 * count
        if size <= len(_ZEROS):
            return np.frombuffer(self._chunk(size), dtype=np.uint64)
        out = np.empty(count, dtype=np.uint64)
        step = len(_ZEROS) // 8
        for start in range(0, count, step):
            part = out[start : start + step]
            part[:] = np.frombuffer(self._chunk(8 * part.size), dtype=np.uint64)
        return out

    def word(self) -> int:
        """Return one word, as an int."""
        for value in self._single:
            return value
        self._single = iter(self.words(_SINGLE_WORDS).tolist())
        return next(self._single)


class SystemSource:
    """Secure words: an AES-256-CTR keystream keyed by the operating system.

    Safe across threads (each has its own stream), ``fork`` and ``multiprocessing`` (a child notices by a fork
    hook and by its process id, and starts a new stream) and pickling or copying (no state travels).

    >>> source = SystemSource()
    >>> source.word() != source.word()
    True
    """

    private = True

    def __init__(self) -> None:
        self._local = threading.local()

    def _stream(self) -> KeyStream:
        """Return the stream of this thread, renewed after a fork so that processes never share one."""
        stream: KeyStream | None = getattr(self._local, "stream", None)
        if stream is None or stream.process != process():
            stream = self._local.stream = KeyStream()
        return stream

    def words(self, count: int) -> Words:
        """Return the next ``count`` words."""
        return self._stream().words(count)

    def word(self) -> int:
        """Return one word, as an int."""
        return self._stream().word()

    def __reduce__(self) -> tuple[type[SystemSource], tuple[()]]:
        return SystemSource, ()

    def __repr__(self) -> str:
        return "SystemSource()"


class SeededSource(KeyStream):
    """Reproducible words, for tests and documentation only; never private.

    >>> SeededSource(7).word() == SeededSource(7).word()
    True
    """

    private = False

    def __init__(self, seed: int) -> None:
        """Derive the key of the stream of words from ``seed``, an int of at most 4096 bits, by SHA-512."""
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise WrongType("seed", "an int", type(seed).__name__, "pass SeededSource(1)")
        if seed.bit_length() > 4096:
            raise InvalidArgument("seed", "an int of at most 4096 bits", seed, "pass SeededSource(1)")
        self.seed = seed
        super().__init__(hashlib.sha512(b"dither seeded source %d" % seed).digest()[:48])

    def __reduce__(self) -> tuple[type[SeededSource], tuple[int]]:
        """Pickle by the seed: a copy starts from the beginning."""
        return type(self), (self.seed,)

    def __repr__(self) -> str:
        return f"SeededSource({self.seed})  # reproducible, not private"


SYSTEM = SystemSource()
_DEFAULT: ContextVar[Source] = ContextVar("dither_source", default=SYSTEM)


@contextmanager
def drawn_from(source: Source) -> Iterator[None]:
    """Draw from ``source`` inside the context wherever no source is given.

    It is for the auditor, who compares two runs with the same coins.
    """
    token = _DEFAULT.set(source)
    try:
        yield
    finally:
        _DEFAULT.reset(token)


def is_secure(source: object) -> bool:
    """Return whether ``source`` (None: the default) is exactly the operating system's.

    Another type may draw from anywhere, whatever its attributes claim.

    >>> is_secure(None), is_secure(SeededSource(1))
    (True, False)
    """
    return type(_DEFAULT.get() if source is None else source) is SystemSource


def resolve(source: Source | None) -> Source:
    """Return the source to use: the system's unless another is given.

    >>> resolve(None)
    SystemSource()
    """
    if source is None:
        return _DEFAULT.get()
    if isinstance(source, type) or not isinstance(source, Source):
        raise WrongType(
            "source",
            "a randomness source",
            type(source).__name__,
            "leave it out, or pass SeededSource(1) in a test",
        )
    return source


class LazyUniform:
    """U uniform on (0, 1): ``value / 2**bits < U < (value + 1) / 2**bits``, more bits drawn on demand.

    The bits already drawn never change, so every answer stays true of the number that all later answers
    are about: a decision taken after any finite number of bits is a decision about U itself.

    >>> from fractions import Fraction
    >>> from dither.exact import exp_neg
    >>> from dither.randomness import SeededSource
    >>> u = LazyUniform(0b101, 3, SeededSource(1))               # 5/8 < U < 6/8
    >>> u.below(lambda bits: exp_neg(Fraction(1, 10), bits))     # U < exp(-1/10) = 0.905 ?
    True
    """

    __slots__ = ("bits", "source", "value")

    def __init__(self, value: int, bits: int, source: Source) -> None:
        self.value, self.bits, self.source = value, bits, source

    def extend(self) -> None:
        """Draw 64 more bits of the number."""
        self.value = self.value << 64 | self.source.word()
        self.bits += 64

    def below(self, threshold: Threshold) -> bool:
        """Decide ``U < t`` exactly; ``threshold(bits)`` encloses ``t * 2**bits``."""
        while True:
            low, high = threshold(self.bits)
            if self.value + 1 <= low:
                return True
            if self.value >= high:
                return False
            self.extend()

    def approximate(self) -> float:
        """Return a positive float near U, good enough to start a search from."""
        while self.value >> 32 == 0 and self.bits < 960:
            self.extend()
        return max(self.value, 1) / (1 << self.bits)


NOTICE = "seeded, not private"


class SeededInt(int):
    """An int that was released with a seeded source.

    >>> SeededInt(3)
    3 (seeded, not private)
    """

    def __repr__(self) -> str:
        return f"{int(self)} ({NOTICE})"


class SeededFloat(float):
    """A float that was released with a seeded source.

    >>> SeededFloat(0.5)
    0.5 (seeded, not private)
    """

    def __repr__(self) -> str:
        return f"{float(self)!r} ({NOTICE})"


class SeededStr(str):
    """A label that was released with a seeded source.

    >>> SeededStr("yes")
    'yes' (seeded, not private)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{str(self)!r} ({NOTICE})"


class SeededList(list[Any]):
    """A list that was released with a seeded source.

    >>> SeededList([1, 2])
    [1, 2] (seeded, not private)
    """

    def __repr__(self) -> str:
        return f"{list(self)!r} ({NOTICE})"


class SeededArray(np.ndarray[Any, np.dtype[Any]]):
    """An array that was released with a seeded source.

    >>> np.zeros(2).view(SeededArray)
    array([0., 0.]) (seeded, not private)
    """

    def __repr__(self) -> str:
        return f"{np.asarray(self)!r} ({NOTICE})"

    def __str__(self) -> str:
        return f"{np.asarray(self)} ({NOTICE})"


def mark(value: Any, source: Source) -> Any:
    """Return ``value``, marked as seeded if ``source`` is not private.

    >>> from dither.randomness import SYSTEM, SeededSource
    >>> mark(1, SYSTEM), mark(1, SeededSource(1))
    (1, 1 (seeded, not private))
    """
    if source.private:
        return value
    if isinstance(value, np.ndarray):
        return value.view(SeededArray)
    if isinstance(value, (int, np.integer)):
        return SeededInt(value)
    if isinstance(value, (float, np.floating)):
        return SeededFloat(value)
    if isinstance(value, str):
        return SeededStr(value)
    return SeededList(value) if isinstance(value, list) else value


def is_seeded(value: object) -> bool:
    """Return whether ``value`` was released with a seeded source, by its type or its ``seeded`` attribute.

    Such a value is not private; ledger and tables refuse it.

    >>> is_seeded(SeededInt(1)), is_seeded(1)
    (True, False)
    """
    marked = isinstance(value, (SeededInt, SeededFloat, SeededStr, SeededList, SeededArray))
    return marked or getattr(value, "seeded", False) is True  # statistics and densities say it of themselves
