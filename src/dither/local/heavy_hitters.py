"""Frequent words over a domain too large to list, found letter by letter, each person asked once.

The people are split at random into a group for each round. In a round the server has a public list of prefixes that
earlier groups have shown to be frequent; a member of the group reports which of them its word begins with, and the next
byte; or that it is none of them. So the categories of a round are at most ``candidates * 256 + 1``, few enough for
:class:`~dither.local.finite_fields.ProjectiveGeometryResponse`, whose reports are some bytes long and whose
estimates are as good as any. Prefixes that may be those of a frequent word go on to the next round (Bassily, Nissim,
Stemmer and Thakurta 2017; Wang, Li and Jha 2019, "prefix extending"; Apple's sequence fragments do the same with
fragments of words, all at once). The last group, of four tenths of the people or more, is asked which of the words that
are left it has, by subset selection: that decides what is listed, and gives the shares.

Each person sends one report in all, of epsilon. The list of a round is computed from other people's reports.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dither import arguments
from dither.accounting import Event, Pure
from dither.errors import InvalidArgument, InvalidData, WrongType
from dither.guarantees import PureDP
from dither.inference.measured import normal_quantile
from dither.local.finite_fields import ProjectiveGeometryResponse
from dither.local.protocol import Server, report_epsilon
from dither.local.reports import LocalFrequencies, Reports, half_width
from dither.local.subset_selection import SubsetSelection
from dither.randomness import Source, resolve, uniform_integers

Bytes = NDArray[np.uint8]

_MAX_LENGTH = 255
_FALSE = 2e-5  # the probability that noise alone passes for a frequent word
_DECIDING = (4, 7)  # the fewest and the most tenths of the people that decide among the words that are left
_TENTHS = 10
_LENIENCE = 4.0  # standard errors by which a prefix or a word may miss the threshold and go on, or be listed
_CLEAR = 4.5  # standard errors above 0 at which prefixes that no person has are few


@dataclass(frozen=True)
class HeavyHitter:
    """A word, the estimated share of people who have it, and the standard error of that.

    >>> hit = HeavyHitter(b"tea", 0.25, 0.01)
    >>> hit.text, round(hit.error(), 4)
    ('tea', 0.0196)
    """

    word: bytes
    share: float
    standard_error: float
    slope: float = 0.0
    """By how much the variance of the share changes with the share."""
    step: float = 0.0
    """What one report can change the share by."""

    @property
    def text(self) -> str:
        """Return the word as text."""
        return self.word.decode("utf-8", "replace")

    def error(self, confidence: float = 0.95) -> float:
        """Return the half-width of a confidence interval for the share among the people who reported.

        It is a normal one with many reports, and wider with few (:func:`~dither.local.reports.half_width`).
        """
        return float(half_width(self.standard_error, self.slope, self.step, confidence))


@dataclass(frozen=True)
class HeavyHitters:
    """The words that at least a share ``threshold`` of the people have.

    *Statement.* Each person sends one report, epsilon-DP for its sender whatever their word is replaced by.

    *Why.* Which round a person answers in is drawn without regard to the word, and the report of a round is that of an
    epsilon-DP protocol on a function of the word and of what others have reported.

    Words are bytes, or text in UTF-8, of at most ``max_bytes``; longer ones, and those with a zero byte, are counted as
    none of the frequent words. What is listed has an estimate of at least the threshold less four of its standard
    errors, so that a word above the threshold is missed in one search of 30,000, where there are people enough; a word
    whose share is up to eight standard errors below it may be listed, too. Compare ``share`` with the threshold where a
    word too many is worse than one that is missed.

    Parameters
    ----------
    epsilon
        The privacy loss of one person's report.
    threshold
        The share from which a word counts as frequent.
    max_bytes
        The largest length of a word; there is about a round for each byte.

    Examples
    --------
    >>> import dither as dp
    >>> hh = dp.local.HeavyHitters(epsilon=6, threshold=0.1, max_bytes=3)
    >>> words = ["yes", "no"] * 6000 + [f"{i:03d}" for i in range(600)]
    >>> sorted(hit.text for hit in hh.search(words))
    ['no', 'yes']
    """

    epsilon: float
    threshold: float
    max_bytes: int = 6

    def __post_init__(self) -> None:
        report_epsilon(self.epsilon)
        if not 0 < float(arguments.rate(self.threshold, "threshold")) < 1:
            raise InvalidArgument("threshold", "a share in (0, 1)", self.threshold, "pass 0.01, for example")
        arguments.whole(self.max_bytes, "max_bytes", 1, _MAX_LENGTH)

    @property
    def guarantee(self) -> PureDP:
        """Return the guarantee of each person's one report: epsilon-DP."""
        return PureDP(arguments.epsilon(self.epsilon))

    @property
    def event(self) -> Event:
        """Return the event for accountants, the one report of a person."""
        return Pure(arguments.epsilon(self.epsilon))

    @property
    def rounds(self) -> tuple[int, ...]:
        """Return the length in bytes of the prefixes that each round asks for.

        Two bytes first, then one more in each round; the last round asks for whole words again, of which few are left.
        """
        return (min(2, self.max_bytes), *range(3, self.max_bytes + 1), self.max_bytes)

    @property
    def candidates(self) -> int:
        """Return the largest number of prefixes that a round may keep: twice as many as can be frequent."""
        return min(4096, 2 * math.ceil(1 / float(self.threshold)))

    def people_needed(self, missing: float = 0.01) -> int:
        """Return about how many people are needed so that a word of twice the threshold is missed with probability
        ``missing``.

        The number is for data in which more prefixes compete than a round may keep.

        >>> import dither as dp
        >>> 50_000 < dp.local.HeavyHitters(epsilon=4, threshold=0.01, max_bytes=6).people_needed() < 300_000
        True
        """
        categories, prefix_rounds = self.candidates * 256 + 1, len(self.rounds) - 1
        z = normal_quantile(1 - arguments.positive(missing, "missing") / prefix_rounds)
        one = ProjectiveGeometryResponse(categories, self.epsilon).variance(1, 2 * float(self.threshold))
        group = one * ((z + 2 * _LENIENCE) / (2 * float(self.threshold))) ** 2
        return math.ceil(group * prefix_rounds * _TENTHS / (_TENTHS - _DECIDING[0]))

    def deciding_tenths(self, people: int) -> int:
        """Return the tenths of the people in the last group, from 4 to 7: as many as the other rounds can spare.

        The other rounds have enough people if prefixes at the threshold are clearly distinguished from prefixes that
        nobody has: by 8.5 standard errors.

        >>> import dither as dp
        >>> plan = dp.local.HeavyHitters(epsilon=4, threshold=0.01)
        >>> plan.deciding_tenths(100_000), plan.deciding_tenths(1_000_000)
        (4, 6)
        """
        threshold, prefix_rounds = float(self.threshold), len(self.rounds) - 1
        one = ProjectiveGeometryResponse(self.candidates * 256 + 1, self.epsilon).variance(1, threshold)
        enough = prefix_rounds * one * ((_LENIENCE + _CLEAR) / threshold) ** 2
        return min(max(math.floor(_TENTHS * (1 - enough / people)), _DECIDING[0]), _DECIDING[1])

    def start(self) -> HeavyHitterSearch:
        """Return a search that asks one group after the other."""
        return HeavyHitterSearch(self)

    def search(self, words: Any, *, source: Source | None = None) -> list[HeavyHitter]:
        """Return the frequent words among those of all people, the most frequent first, in one call for a simulation.

        The people are split at random into groups and each group is asked in its round.
        """
        resolved = resolve(source)
        table = as_table(words, self.max_bytes)
        prefix_rounds, deciding = len(self.rounds) - 1, self.deciding_tenths(table.shape[0])
        drawn = uniform_integers(_TENTHS * prefix_rounds, table.shape[0], resolved).astype(np.int64)
        group = np.minimum(drawn // (_TENTHS - deciding), prefix_rounds)
        if np.bincount(group, minlength=len(self.rounds)).min() == 0:
            raise InvalidData("words", "people in every group", "too few people", "ask more people")
        search = self.start()
        for number in range(len(self.rounds)):
            search.add(search.privatize(table[group == number], source=resolved))
            search.advance()
            if search.ended:  # no prefix is frequent, so no word is
                break
        return search.result()


class HeavyHitterSearch:
    """The rounds of a search: ``privatize`` is the client's part, ``add`` and ``advance`` the server's.

    >>> import dither as dp
    >>> search = dp.local.HeavyHitters(epsilon=4, threshold=0.2, max_bytes=2).start()
    >>> search.add(search.privatize(["ab"] * 3000)).advance()
    >>> search.add(search.privatize(["ab"] * 2000)).advance()
    >>> [hit.text for hit in search.result()]
    ['ab']
    """

    def __init__(self, plan: HeavyHitters) -> None:
        """Start the search of ``plan`` at its first round, with no prefixes found and no reports."""
        self.plan = plan
        self.round = 0
        self.prefixes: tuple[bytes, ...] = ()
        self._hits: list[HeavyHitter] | None = None
        self._people = 0
        self._server: Server[LocalFrequencies] = self.protocol.server()

    @property
    def length(self) -> int:
        """Return the length of the prefixes of this round."""
        return self.plan.rounds[self.round]

    @property
    def ended(self) -> bool:
        """Return whether the words are known: after the last round, or where no prefix is frequent."""
        return self._hits is not None

    @property
    def final(self) -> bool:
        """Return whether this is the last round, about whole words."""
        return self.round == len(self.plan.rounds) - 1

    @property
    def protocol(self) -> ProjectiveGeometryResponse | SubsetSelection:
        """Return the protocol of this round; its last category is for words that begin with no prefix of the list."""
        if self.final:
            return SubsetSelection(max(2, len(self.prefixes) + 1), self.plan.epsilon)
        heads = len(self.prefixes) if self.round else 256 ** (self.length - 1)
        return ProjectiveGeometryResponse(heads * 256 + 1, self.plan.epsilon)

    def encode(self, words: Any) -> NDArray[np.int64]:
        """Return the category of each word in this round: the number of its prefix and next byte, or "none".

        ``words`` is a list of texts or byte strings, or their table of bytes, whose last column says whether a word is
        too long. In the first round the prefix is the number its bytes make; later it is the index in ``prefixes``. In
        the final round the category is the index of the whole word. Words that are too long or whose prefix is not
        listed get the last category, "none".
        """
        is_table = isinstance(words, np.ndarray) and words.dtype == np.uint8
        table = words if is_table else as_table(words, self.plan.max_bytes)
        if table.ndim != 2 or table.shape[1] != self.plan.max_bytes + 1:
            raise InvalidArgument("words", "a list of words", "a table of bytes", "pass text or bytes")
        none = self.protocol.category_count - 1
        too_long = table[:, -1] == 1
        known = self.length if self.final else self.length - 1
        last = table[:, self.length - 1].astype(np.int64)
        if self.round == 0:
            index = np.zeros(table.shape[0], dtype=np.int64)
            for column in range(known):
                index = index * 256 + table[:, column]
            return np.where(too_long, none, index * 256 + last)
        listed = np.array([list(prefix) for prefix in self.prefixes], dtype=np.uint8).reshape(-1, known)
        index = _row_index(table[:, :known], listed)
        return np.where(too_long | (index < 0), none, index if self.final else index * 256 + last)

    def privatize(self, words: Any, *, source: Source | None = None) -> Reports:
        """Return one report for each word of this round's group."""
        self._refuse_end()
        return self.protocol.privatize(self.encode(words), source=source)

    def add(self, reports: Any) -> HeavyHitterSearch:
        """Add reports of this round. Returns the search."""
        self._refuse_end()
        self._server.add(reports)
        return self

    def advance(self) -> None:
        """End the round: keep the frequent prefixes, and begin the next one; after the last one, list the words."""
        self._refuse_end()
        estimate = self._server.estimate()
        shares, errors = estimate.shares[: len(estimate.shares) - 1], estimate.standard_error[:-1]
        threshold = float(self.plan.threshold)
        group = estimate.n
        self._people += group
        if self.final:
            # the group is a random part of the people whose shares are wanted
            true_shares = np.clip(shares, 0.0, 1.0)
            drawn = (1 - group / self._people) / group
            errors = np.sqrt(errors**2 + true_shares * (1 - true_shares) * drawn)
            spread = estimate.slope + drawn, estimate.step
            noise = normal_quantile(1 - 2 * _FALSE / max(shares.size, 1))
            listed = np.flatnonzero(shares >= np.maximum(threshold - _LENIENCE * errors, noise * errors))
            hits = [
                HeavyHitter(self.prefixes[code].rstrip(b"\0"), float(shares[code]), float(errors[code]), *spread)
                for code in listed.tolist()
                if code < len(self.prefixes)
            ]
            self._hits = sorted(hits, key=lambda hit: -hit.share)
            return
        likely = np.flatnonzero(shares >= np.maximum(threshold - _LENIENCE * errors, 2 * errors))
        kept = np.sort(likely[np.argsort(-shares[likely], kind="stable")][: self.plan.candidates])
        self.prefixes = tuple(self._prefix(int(code)) for code in kept)
        if not self.prefixes:
            self._hits = []
            return
        self.round += 1
        self._server = self.protocol.server()

    def result(self) -> list[HeavyHitter]:
        """Return the frequent words, the most frequent first."""
        if self._hits is None:
            raise InvalidData("search", "all rounds", f"{self.round} of them", "add reports and advance")
        return list(self._hits)

    def _prefix(self, code: int) -> bytes:
        """Return the prefix of a code of this round: that of an earlier round and the byte ``code % 256``.

        In the first round the code is the number whose bytes are the prefix.
        """
        head, last = divmod(code, 256)
        if self.round:
            return self.prefixes[head] + bytes([last])
        return head.to_bytes(self.length - 1, "big") + bytes([last])

    def _refuse_end(self) -> None:
        """Refuse to continue a search that has ended."""
        if self.ended:
            raise InvalidArgument("search", "a round", "a search that has ended", "start another one")


def as_table(words: Any, max_bytes: int) -> Bytes:
    """Return words as rows of ``max_bytes`` bytes, padded with zeros, and one more column.

    The last column is 1 for words that are too long or contain a zero byte, and 0 for others.
    """
    if isinstance(words, (str, bytes)) or not isinstance(words, (Sequence, np.ndarray)):
        raise WrongType("words", "a list of words", type(words).__name__, "pass one word for each person")
    texts = words.tolist() if isinstance(words, np.ndarray) else words
    if not all(isinstance(word, (str, bytes)) for word in texts):
        raise WrongType("words", "text or bytes", "values of other types", "pass one word for each person")
    try:
        encoded = [word.encode() if isinstance(word, str) else word for word in texts]
    except UnicodeEncodeError:
        raise InvalidData("words", "texts", "one that is not valid Unicode", "repair the text") from None
    fixed = b"".join(word[:max_bytes].ljust(max_bytes, b"\0") for word in encoded)
    bad = np.array([len(word) > max_bytes or b"\0" in word for word in encoded], dtype=np.uint8)
    table = np.frombuffer(fixed, dtype=np.uint8).reshape(len(encoded), max_bytes)
    return np.concatenate([table, bad[:, None]], axis=1)


def _row_index(rows: Bytes, listed: Bytes) -> NDArray[np.int64]:
    """Return the index of each row in ``listed``, a table of distinct rows; -1 for rows that are not in it."""
    width = rows.shape[1]
    keys = np.ascontiguousarray(rows).view(f"V{width}").reshape(-1)
    unique, inverse = np.unique(keys, return_inverse=True)
    positions = {row.tobytes(): index for index, row in enumerate(listed)}
    index = np.array([positions.get(key.tobytes(), -1) for key in unique], dtype=np.int64)
    result: NDArray[np.int64] = index[inverse.reshape(-1)]
    return result
