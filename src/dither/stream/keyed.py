"""Noise as a function of a secret key, step and lane: after a restart, a step has the same noise as before.

*Construction.* The word of lane i (one of the series that advance together) at step t is the first half of the AES-256
block of the counter ``(t, i)``: counter mode with random access, the construction of :mod:`dither.randomness.source`,
under a key that is derived from the secret by HMAC. All words of a secret are independent to anyone who cannot tell
AES-256 from a random permutation.

*Reproducibility.* The draw is the integer nearest to ``scale * Z``, where Z is the quantile of a uniform number
U: a function of U alone. The first 63 bits of U are those of the word. Where the float quantile cannot decide, with its
proven bound, exact arithmetic decides and draws more bits of U: from a stream that belongs to this step and lane alone.
So neither the platform nor its mathematical library can change a draw; they only change how often exact arithmetic is
needed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from fractions import Fraction
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from dither.errors import InvalidArgument, WrongType
from dither.randomness.lattice import CHUNK, MAGNITUDE, bound, settle
from dither.randomness.laws import LOW, Law
from dither.randomness.source import KeyStream, LazyUniform, Source, is_secure, resolve

KEY_BYTES = 32
_UNIT = 2.0**-63
_FAR = 1 << 52

Lattice = NDArray[Any]
"""Whole numbers in lattice steps: 64-bit integers, or Python's own (dtype object) where those could overflow."""


def new_key(source: Source | None = None) -> bytes:
    """Return a fresh secret of 32 bytes, from the operating system unless a source is given (tests)."""
    if is_secure(source):
        return os.urandom(KEY_BYTES)
    return resolve(source).words(KEY_BYTES // 8).tobytes()


def check_key(key: object) -> bytes:
    """Return a secret of 32 bytes, or refuse another value without repeating it."""
    if not isinstance(key, bytes):
        raise WrongType("key", "32 secret bytes", type(key).__name__, "pass what new_key() returned")
    if len(key) != KEY_BYTES:
        raise InvalidArgument("key", "32 secret bytes", f"{len(key)} bytes", "pass what new_key() returned")
    return key


class _LaneSource(KeyStream):
    """The additional random words of one draw, if its first word does not decide it: a stream for its step and lane."""

    private = True

    def __init__(self, key: bytes, step: int, lane: int) -> None:
        place = step.to_bytes(8, "big") + lane.to_bytes(8, "big")
        super().__init__(hmac.digest(key, b"dither stream more bits 1" + place, hashlib.sha512)[:48])


class KeyedNoise:
    """Noise by step and lane, as a function of one secret key."""

    __slots__ = ("_encryptor", "_key")

    def __init__(self, key: bytes) -> None:
        self._key = check_key(key)
        words_key = hmac.digest(self._key, b"dither stream words 1", hashlib.sha256)
        # the blocks are counters, no two of them equal: counter mode, at places of our choice
        self._encryptor = Cipher(algorithms.AES(words_key), modes.ECB()).encryptor()

    def words(self, first: int, steps: int, lanes: int) -> NDArray[np.uint64]:
        """Return the 64-bit words of steps ``first`` to ``first + steps - 1``, a row for each step and a column for
        each lane."""
        counters = np.empty((steps, lanes, 2), dtype=">u8")
        counters[:, :, 0] = np.arange(first, first + steps, dtype=np.uint64)[:, None]
        counters[:, :, 1] = np.arange(lanes, dtype=np.uint64)[None, :]
        blocks = np.frombuffer(self._encryptor.update(counters.tobytes()), dtype=">u8")
        return blocks[::2].astype(np.uint64).reshape(steps, lanes)

    def draw(self, law: Law, scale: float, first: int, steps: int, lanes: int) -> Lattice:
        """Return the integers nearest to ``scale * Z``, where Z follows the standard ``law`` (normal or Laplace).

        The result has a row for each of ``steps`` steps from ``first`` on, and ``lanes`` columns. It is an array of
        objects if one of the integers may not fit into 64 bits.
        """
        out: Lattice = np.empty((steps, lanes), dtype=np.int64)
        rows = max(1, CHUNK // lanes)
        for start in range(0, steps, rows):
            count = min(rows, steps - start)
            part = self._rounded(law, scale, first + start, self.words(first + start, count, lanes))
            if part.dtype == object and out.dtype != object:
                out = out.astype(object)
            out[start : start + count] = part
        return out

    def _rounded(self, law: Law, scale: float, first: int, words: NDArray[np.uint64]) -> Lattice:
        """Return scaled noise rounded to integers, as :func:`dither.randomness.lattice.draw` does.

        ``words`` has a row of random words for each step from ``first`` on, one for each lane: 63 bits are the uniform
        number whose quantile is taken, and one is the sign. Where the error of floats leaves the nearest integer
        undecided, further bits come from the stream of the lane, and the integer is found exactly. ``scale`` and
        ``law`` are as for :meth:`draw`.
        """
        u = (words & np.uint64(MAGNITUDE)).view(np.int64).astype(np.float64)
        u *= _UNIT
        doubtful = (u < LOW) | (u > law.high)
        u[doubtful] = 0.5
        flat = u.reshape(-1)
        law.quantile(flat)
        flat *= scale
        np.copysign(flat, words.view(np.float64).reshape(-1), out=flat)
        steps = np.rint(u)
        doubtful |= ~(np.abs(u - steps) <= 0.5 - bound(scale, law.error))
        out: Lattice = steps.astype(np.int64)
        for row, lane in np.argwhere(doubtful).tolist():
            word = int(words[row, lane])
            uniform = LazyUniform(word & MAGNITUDE, 63, _LaneSource(self._key, first + row, lane))
            step = settle(uniform, word > MAGNITUDE, law, Fraction(scale), Fraction(0))
            if abs(step) >= _FAR and out.dtype != object:
                out = out.astype(object)
            out[row, lane] = step
        return out
