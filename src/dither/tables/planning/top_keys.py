"""The largest groups by keys that are not public: which keys may be shown.

``GROUP BY key ORDER BY COUNT(*) DESC LIMIT k`` asks for a few large groups. Keys are chosen for a part of the budget
(:data:`SHARE`); from then on they are public, and everything that was asked is measured of them with what is left, as
of any public keys. The order of the answer is that of the numbers measured then.

*How keys are chosen.* Each person has the weight 1, spread over the groups like the person's rows, or evenly where
people are counted. The weights of a key are added up, noise is added, and keys from a threshold on are shown: of many
of them the largest, a few times as many as are asked for.

*Statement.* Let S = ``2^bits``, and let a person with ``n_g`` rows in group g add ``x_g = floor(S n_g / N)`` to its
key, with ``N = sum n_g``; or for normal noise with ``N = sqrt(sum n_g^2)``. Let keys with a sum above 0 get noise that
is (epsilon, delta_0)-DP for changes of at most S in the l1 norm (l2 norm), p = 1 (2), and be shown where they reach T.
With ``f(x) = P(x + noise >= T)`` and ``delta_1 >= S^p max f(x) / x^p`` over x = 1, …, S, the keys that are shown are
(epsilon, delta_0 + delta_1)-DP under adding or removing a person, whatever rows the person has, in any number of
groups.

*Why.* Let M be the keys shown with the person, M' without, and M_A those of M among the keys A that others have. The
sums of A differ by a vector of norm at most S, so M_A and M' are (epsilon, delta_0)-close. Any other key has the
person's ``x_g`` alone. Since ``sum x_g^p <= S^p`` and every ``x_g > 0`` is at least 1, the expected number of these
keys that are shown is ``sum f(x_g) = sum x_g^p f(x_g) / x_g^p <= delta_1``; so M shows any with a probability q of at
most delta_1. Hence ``P(M in O) <= P(M_A in O) + q <= e^epsilon P(M' in O) + delta_0 + delta_1``. The noise of
different keys is independent, so ``P(M in O) >= (1 - q) P(M_A in O)``, and ``P(M' in O) - e^epsilon P(M in O)`` is at
most ``P(M' in O) - (1 - q) (P(M' in O) - delta_0) <= q + delta_0``. A row that is a person of its own adds S to one
key.

*Why not a limit on groups.* A person with more groups adds less to each, so the noise does not grow with the number of
groups, and no group of a person is left out. Rounding down is what bounds the number of groups: it takes at most one
unit from each, and a person with more than ``S^p`` equal groups adds nothing. Choosing k keys one by one (Durfee and
Rogers 2019) takes noise that grows with k instead, but not with the groups of a person: it is better only for people
with more groups than k.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from dither.budget_hooks import observed
from dither.exact import down
from dither.exact.search import bisect_integers
from dither.mechanisms import Gaussian, Laplace
from dither.present.notes import Note
from dither.tables.card.model import Type
from dither.tables.card.profile import NoisyHistogram, TableProfile
from dither.tables.card.values import Value
from dither.tables.compile import expressions, statements
from dither.tables.compile.context import Statement, StatementContext
from dither.tables.compile.statements import key_bits
from dither.tables.options import ReleaseOptions
from dither.tables.planning.group_keys import Key, Noise, PublicKeys, Tie
from dither.tables.query.tree import Column, Query, columns

SHARE = Fraction(2, 5)
"""The share of epsilon that keys are chosen for; of delta it is one half."""
KEYS = "keys"
"""What the choice is called among what is chosen privately."""
_ASSUMED_GROUPS = 8
"""How many groups a person has, where nothing says so, for the choice of the noise."""
_MOST_STAND_INS = 100
MOST_GROUPS = 1000
"""The most groups that are asked for as the largest: more of them are shown as any groups with private keys are."""

GroupKeys = tuple[PublicKeys, tuple[Tie, ...]]
"""Keys of each column, and which of them occur together."""


@dataclass(frozen=True)
class TopKeys:
    """The private selection of the largest groups: of the keys whose noisy weight reaches ``threshold``, the ``most``
    largest. A person's whole weight is 2^bits."""

    noise: Noise
    threshold: int
    bits: int
    delta: Fraction
    """The largest expected number of keys shown that one person alone has."""
    most: int
    """The number of keys that are shown at most."""

    @property
    def norm(self) -> Literal[1, 2]:
        """The norm that bounds what one person adds to all keys."""
        return 2 if isinstance(self.noise, Gaussian) else 1

    @property
    def people(self) -> float:
        """The threshold in people."""
        return self.threshold / (1 << self.bits)

    @observed
    def release(self, lines: Mapping[Key, int]) -> list[Key]:
        """Return the keys with the largest noisy weights that reach the threshold, in the order of their text. A key
        with NUL in a text cannot be written in SQL, and is never shown."""
        keys = sorted((key for key in lines if not any("\0" in str(part) for part in key)), key=_text_order)
        if not keys:
            return []
        noisy = np.asarray(self.noise.release(np.array([lines[key] for key in keys], dtype=np.int64)))
        largest = np.argsort(-noisy, kind="stable")[: self.most]
        return [keys[place] for place in sorted(largest[noisy[largest] >= self.threshold].tolist())]


def _text_order(key: Key) -> tuple[tuple[bool, str], ...]:
    """Return the sort key of a group's keys: their text, which does not depend on weights."""
    return tuple((part is None, str(part)) for part in key)


def keys_shown(profile: TableProfile, column: str, people: float, max_groups: int) -> tuple[int, int] | None:
    """Return estimates of how many keys of a column are shown, and how many there are; None if not in the profile.

    A key is shown if at least ``people`` have it; a person counts in at most ``max_groups`` groups.
    """
    known = profile.columns.get(column)
    if known is None or known.private_keys is None:
        return None
    groups = _typical(known.keys_per_person, 1.0) if known.keys_per_person is not None else 1.0
    every = keys_above(known.private_keys, 0.0)
    return min(keys_above(known.private_keys, people / max(1.0, min(max_groups, groups))), every), every


def counted_in_order(query: Query, kinds: tuple[str, ...] = ("count", "count_value", "people", "sum")) -> str | None:
    """Return the name of the count or sum, one of the ``kinds``, by which a question shows its largest groups only;
    None where it does not."""
    shape = query.shape
    if not shape.limit or not shape.order or not shape.order[0].descending:
        return None
    first = shape.order[0].value
    value = shape.columns.get(first.name, first) if isinstance(first, Column) else None
    name = value.name if isinstance(value, Column) else ""
    return name if name in query.aggregates and query.aggregates[name].kind in kinds else None


def shown_groups(query: Query) -> int | None:
    """Return how many groups a question shows, if these are the largest by a count or a sum; None otherwise."""
    return None if counted_in_order(query) is None else query.shape.limit


@dataclass(frozen=True)
class TopQuestion:
    """A question for the ``k`` largest groups: its ``keys``, None for columns without public ones, whether the order is
    by people or by rows, and in how many groups a person is assumed to be."""

    keys: PublicKeys
    k: int
    of_people: bool
    has_unit: bool
    groups: float
    noise: Literal["best", "laplace", "gaussian"]
    layers: NoisyHistogram | None = None
    """The weights of all keys, by :attr:`ColumnProfile.private_keys`, where a profile has them."""

    @classmethod
    def of(
        cls, query: Query, keys: PublicKeys, options: ReleaseOptions, limits: object, profile: TableProfile | None
    ) -> TopQuestion | None:
        """Return the question as one for the largest groups by a count; None if it is not one.

        ``limits`` is in how many groups a person counts (None: every row is a person); a ``profile`` overrides it.
        """
        shape = query.shape
        others = options.other or options.error is not None or query.post is not None
        name = counted_in_order(query, ("count", "people"))
        if others or query.more or query.rolled_up or None not in keys or name is None or not shape.limit:
            return None
        if shape.limit > MOST_GROUPS:
            return None
        if {column.name for column in columns(shape.having)} - {name}:  # it may leave out the largest groups
            return None
        column = None
        if profile is not None and len(keys) == 1 and isinstance(query.groups[0].value, Column):
            column = profile.columns.get(query.groups[0].value.name)
        groups = float(limits) if isinstance(limits, int) else _ASSUMED_GROUPS
        if column is not None and column.keys_per_person is not None:
            groups = _typical(column.keys_per_person, groups)
        layers = None if column is None or query.where is not None else column.private_keys
        of_people = query.aggregates[name].kind == "people"
        return cls(keys, shape.limit, of_people, limits is not None, groups, options.noise, layers)

    def at(self, epsilon: Fraction, delta: Fraction) -> TopKeys:
        """Return the choice of keys at this budget, with the noise by which keys need the fewest people to be shown,
        assuming that each person is in ``groups`` groups."""
        kinds: list[Literal["laplace", "gaussian"]] = ["laplace", "gaussian"] if self.has_unit else ["laplace"]
        if self.noise != "best":
            kinds = [self.noise]
        choices = [self._with(kind, epsilon, delta) for kind in kinds]
        return min(choices, key=lambda item: item.people * max(self.groups, 1) ** (1 / item.norm))

    def expected(self, choice: TopKeys) -> int | None:
        """Return about how many groups will be shown: by the profile, the number of keys whose weight reaches the
        threshold. None without a profile of the keys."""
        if self.layers is None:
            return None
        # by the l2 norm a person in some equal groups has a larger weight in each, by the root of their number
        weight = choice.people / (math.sqrt(self.groups) if choice.norm == 2 else 1.0)
        return min(self.k, keys_above(self.layers, weight))

    def _with(self, kind: Literal["laplace", "gaussian"], epsilon: Fraction, delta: Fraction) -> TopKeys:
        """Return the choice of keys with this noise; normal noise spends half of delta, the threshold the rest."""
        norm: Literal[1, 2] = 2 if kind == "gaussian" else 1
        bits = key_bits(norm) if self.has_unit else 0
        of_noise = delta / 2 if norm == 2 else Fraction(0)
        noise: Noise = Laplace(1 << bits, down(epsilon))
        if norm == 2:
            noise = Gaussian(1 << bits, down(epsilon), down(of_noise))
        most = 4 * self.k + 20  # their order by weights is not quite the one asked for
        return TopKeys(noise, _threshold(noise, bits, norm, delta - of_noise), bits, delta, most)

    def stand_ins(self, query: Query, find: expressions.Lookup) -> GroupKeys:
        """Return made-up keys in the place of the chosen ones, as many as the question shows and at most 100, to plan
        it with."""
        count = min(self.k, _MOST_STAND_INS)
        known = [
            _made_up(expressions.compile(group.value, find).type, count) if listed is None else listed
            for group, listed in zip(query.groups, self.keys, strict=True)
        ]
        every = itertools.product(*(range(len(column)) for column in known))
        return self._occurring(set(itertools.islice(every, count)), known)

    def as_public_keys(self, chosen: list[Key]) -> GroupKeys:
        """Return the chosen keys in the form of public keys. In ``chosen``, the entry of a column with public keys is
        its index among them."""
        columns: list[tuple[Value, ...]] = []
        index_of: list[dict[Value, int] | None] = []
        for place, listed in enumerate(self.keys):
            keys = tuple(dict.fromkeys(key[place] for key in chosen)) if listed is None else listed
            columns.append(keys)
            index_of.append({key: index for index, key in enumerate(keys)} if listed is None else None)
        combinations = {
            tuple(
                int(str(value)) if index is None else index[value] for value, index in zip(key, index_of, strict=True)
            )
            for key in chosen
        }
        return self._occurring(combinations, columns)

    @staticmethod
    def _occurring(lines: set[tuple[int, ...]], columns: list[tuple[Value, ...]]) -> GroupKeys:
        """Return keys of columns as public keys that occur only in these combinations (indices of keys)."""
        ties = (Tie(tuple(range(len(columns))), tuple(sorted(lines))),) if len(columns) > 1 else ()
        return tuple(columns), ties


def choose_keys(
    question: TopQuestion, choice: TopKeys, context: StatementContext, run: Callable[[Statement], list[Any]]
) -> tuple[GroupKeys, Note]:
    """Choose the largest groups privately; return their keys in the form of public keys, and a note on the choice."""
    lines = {tuple(line[:-1]): int(line[-1]) for line in run(weights_statement(question, choice, context))}
    chosen = choice.release(lines)
    said = {
        "people": choice.people,
        "divided": question.has_unit,
        "asked": question.k,
        "shown": min(len(chosen), question.k),
    }
    return question.as_public_keys(chosen), Note("top_keys", said)


def weights_statement(question: TopQuestion, choice: TopKeys, context: StatementContext) -> Statement:
    """Return the statement for the weights of keys."""
    return statements.key_weights(context, choice.norm, question.of_people)


def keys_above(layers: NoisyHistogram, weight: float) -> int:
    """Return about how many keys have more than a weight of people, by :attr:`ColumnProfile.private_keys`: the numbers
    in its layers, made to fall by least squares (adjacent layers that rise are pooled)."""
    pools: list[tuple[float, float, float]] = []  # the number, its weight, and up to where it goes
    for in_layer, (low, high) in zip(layers.weights, pairwise(layers.edges), strict=False):
        pools.append((in_layer / (high - low), (high - low) ** 2, high))
        while len(pools) > 1 and pools[-1][0] > pools[-2][0]:
            (last, share, end), (before, other, _) = pools.pop(), pools.pop()
            pools.append(((last * share + before * other) / (share + other), share + other, end))
    return next((max(0, round(number)) for number, _, high in pools if weight <= high), 0)


def _threshold(noise: Noise, bits: int, norm: int, delta: Fraction) -> int:
    """Return the smallest threshold T with ``S^p max f(x) / x^p <= delta``, f(x) the probability that weight x passes
    T, S = ``2^bits`` a person's whole weight and p the norm. The maximum is bounded between powers of two."""
    precision = 64 + (1 / delta).__ceil__().bit_length()
    size = 1 << bits

    def is_rare(threshold: int) -> bool:
        """Return whether S^p f(x) / x^p <= delta for every weight x up to S, at this threshold: f is bounded by its
        value at the upper end of each interval between powers of two, and x by the lower end."""
        ends = [(1 << i, min(2 << i, size)) for i in range(bits)] or [(1, 1)]
        return all(
            noise.integer_tail(upper, threshold, precision) * Fraction(size, lower) ** norm <= delta
            for lower, upper in ends
        )

    low, high = 1, 2
    while not is_rare(high):
        low, high = high, 2 * high
    return bisect_integers(is_rare, low, high).holds


def _typical(people: NoisyHistogram, otherwise: float) -> float:
    """Return the harmonic mean of the number of groups that a person is in; ``otherwise`` if noise hides it."""
    above = [max(weight - 2 * people.deviation, 0.0) for weight in people.weights]
    total = sum(above)
    return total / sum(weight / edge for weight, edge in zip(above, people.edges, strict=True)) if total else otherwise


def _made_up(kind: Type, count: int) -> tuple[Value, ...]:
    """Return ``count`` different made-up keys of a type (two for booleans)."""
    numbers = range(count)
    if kind == "date":
        return tuple(date(2000, 1, 1) + timedelta(days=i) for i in numbers)
    if kind == "timestamp":
        return tuple(datetime(2000, 1, 1) + timedelta(hours=i) for i in numbers)
    if kind == "boolean":
        return (False, True)
    return tuple(f"key {i}" if kind == "text" else i for i in numbers)
