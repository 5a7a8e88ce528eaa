"""Shared by all tests: refusals, scripted random words, precise oracles, and statistical tests that do not flake."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import math
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from itertools import count, product
from pathlib import Path
from types import ModuleType
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from dither.errors import DitherError
from dither.randomness import SeededSource

FALSE_ALARM = 1e-9


def noted(answer: Any, *kinds: str) -> list[Mapping[str, Any]]:
    """Return the values of the notes of these kinds, of an answer, a publication or an explanation."""
    notes = answer.limitations if hasattr(answer, "limitations") else answer.notes
    return [note.values for note in notes if note.kind in kinds]


PRECISION = 700
PATIENCE_S = 600.0
"""How long a test waits for something that should happen at once: the machine may be slow, and busy with others."""
SOON_S = 60.0
"""The processor time of what must not take for ever, and takes a few seconds at most."""

Cdf = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Tail = Callable[[Any], Any]

HUGE = 10**5000
BEYOND_FLOATS: list[int | Fraction] = [
    HUGE,
    -HUGE,
    10**400,
    Fraction(HUGE, 3),
    Fraction(1, HUGE),
    Fraction(1, 10**400),
    Fraction(10**400),
]

_MAX_MESSAGE = 3000
_MAX_CASE = 300
_SHAPE = re.compile(r".+: expected .+, got .*\. Fix: .+\.|[A-Z][^:]+\.", re.DOTALL)
"""What was expected, what was got and how to mend it; or a whole sentence."""


def eventually(condition: Callable[[], Any]) -> Any:
    """What a condition gives as soon as it is true.

    >>> eventually(lambda: "there")
    'there'
    """
    until = time.monotonic() + PATIENCE_S
    while not (result := condition()):
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.01)
    return result


@contextmanager
def refuses(
    kind: type[Exception] | tuple[type[Exception], ...], *fragments: str, hiding: Iterable[object] = ()
) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """The block raises an error of ``kind`` that tells the caller what was expected, what was got and how to mend it.

    Parameters
    ----------
    kind
        The class of the error, or one that it inherits from, or several of which it is one.
    fragments
        Plain text, not patterns; each occurs in the message.
    hiding
        Private values; none of them occurs in the message, nor in those of the errors it was raised from.

    Examples
    --------
    >>> import dither as dp
    >>> with refuses(dp.InvalidArgument, "epsilon", "above 0") as refusal:
    ...     dp.Laplace(sensitivity=1, epsilon=-1)
    >>> refusal.value.args[0].startswith("epsilon: expected")
    True
    """
    with pytest.raises(kind) as refusal:
        yield refusal
    text = str(refusal.value)
    assert_explained(refusal.value)
    for fragment in fragments:
        assert fragment in text, f"{fragment!r} is not in the message: {text}"
    for value in hiding:
        for link in _causes(refusal.value):
            assert str(value) not in str(link), f"a private value is in the message: {link}"


def assert_explained(error: BaseException) -> None:
    """The message says what was expected, what was got and how to mend it, at a length that can be read."""
    text = str(error)
    assert _SHAPE.fullmatch(text), f"not of the form 'name: expected …, got …. Fix: ….': {text}"
    assert len(text) < _MAX_MESSAGE, f"too long to read: {text}"


def works_or_is_refused(act: Callable[..., object], *values: object) -> bool:
    """Whether ``act`` accepts the values; if it does not, it raises an error of dither that explains itself."""
    try:
        act(*values)
    except DitherError as refusal:
        assert_explained(refusal)
        return False
    return True


def for_each(cases: Iterable[Any], check: Callable[..., object]) -> None:
    """Try ``check`` on every case and report all that fail together; a tuple is unpacked. No case at all is a failure.

    One test per rule instead of one per case: a rule over the whole public face has thousands of cases.

    Examples
    --------
    >>> def is_short(word):
    ...     assert len(word) < 4, "too long"
    >>> for_each(["one", "two"], is_short)
    >>> for_each(["one", "three", "seven"], is_short)
    Traceback (most recent call last):
    AssertionError: 2 of 3 cases fail, the last as shown above:
    'three': AssertionError: too long
    'seven': AssertionError: too long
    """
    failures, tried = {}, 0
    for case in cases:
        tried += 1
        try:
            check(*case) if isinstance(case, tuple) else check(case)
        except (Exception, pytest.fail.Exception) as error:
            failures[f"{label(case)[:_MAX_CASE]}: {type(error).__name__}: {error}"] = error
    assert tried, "no case was tried"
    if failures:
        first = f"{len(failures)} of {tried} cases fail, the last as shown above:"
        raise AssertionError("\n".join([first, *failures])) from [*failures.values()][-1]


def each(names: str | tuple[str, ...], values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Try a test on every value within one test: ``pytest.mark.parametrize`` for many cheap cases.

    Stacked decorators try the product. All failures are reported together, each with its values. What is left of the
    test's parameters are fixtures, which all the cases share, but for ``monkeypatch`` and ``tmp_path``: what a case
    patches is undone after it, and each has a folder of its own.

    Examples
    --------
    >>> @each("base", [2, 3])
    ... @each(("exponent", "power"), [(1, 2), (2, 4)])
    ... def test_powers(base, exponent, power):
    ...     assert base**exponent == power, "not the power"
    >>> test_powers()
    Traceback (most recent call last):
    AssertionError: 2 of 4 cases fail, the last as shown above:
    {'base': 3, 'exponent': 1, 'power': 2}: AssertionError: not the power
    {'base': 3, 'exponent': 2, 'power': 4}: AssertionError: not the power
    """
    listed = (names,) if isinstance(names, str) else names
    axis = [dict(zip(listed, (value,) if isinstance(names, str) else value, strict=True)) for value in values]
    assert axis, "no case to try"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        inner, axes = getattr(test, "each_of", (test, []))
        axes = [axis, *axes]

        @functools.wraps(test)
        def tried(**fixtures: Any) -> None:
            cases = [{name: value for part in parts for name, value in part.items()} for parts in product(*axes)]
            numbers = count()

            def check(case: dict[str, Any]) -> None:
                with pytest.MonkeyPatch.context() as patch:
                    own = {"monkeypatch": patch} if "monkeypatch" in signature.parameters else {}
                    if "tmp_path" in fixtures:
                        own["tmp_path"] = fixtures["tmp_path"] / f"case {next(numbers)}"
                        own["tmp_path"].mkdir()
                    inner(**case, **fixtures | own)

            for_each(cases, check)

        signature = inspect.signature(inner)
        taken = {"monkeypatch"}.union(*(one[0] for one in axes))
        kept = [parameter for name, parameter in signature.parameters.items() if name not in taken]
        vars(tried).update(each_of=(inner, axes), __signature__=signature.replace(parameters=kept))
        return tried

    return decorate


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and everything it was raised from."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


class ScriptedSource:
    """Words from a list, then from a seed; counts what was taken."""

    private = False

    def __init__(self, words: Iterable[int] = (), seed: int = 1) -> None:
        self._script = list(words)[::-1]
        self._rest = SeededSource(seed)
        self.used = 0

    def word(self) -> int:
        self.used += 1
        return self._script.pop() if self._script else self._rest.word()

    def words(self, count: int) -> NDArray[np.uint64]:
        if not self._script:
            self.used += count
            return self._rest.words(count)
        return np.array([self.word() for _ in range(count)], dtype=np.uint64)


def real(value: Fraction | float | int) -> Any:
    """``value`` at the working precision, without a detour through a decimal string."""
    exact = Fraction(value)
    return mp.mpf(exact.numerator) / exact.denominator


def tail_of(law: Any) -> Tail:
    """P(|Z| > z), or P(Z > z), of each law, written down from its density and not from the code under test."""
    name = type(law).__name__
    if name == "Exponential":
        return lambda z: mp.exp(-max(z, mp.mpf(0)))
    if name == "Gumbel":
        return lambda z: -mp.expm1(-mp.exp(-z))
    if name == "Normal":
        return lambda z: mp.erfc(max(z, mp.mpf(0)) / mp.sqrt(2))
    if name == "DiscreteLaplace":
        return lambda z: mp.mpf(1) if z <= 0 else mp.exp(-z) / mp.cosh(1 / (2 * real(law.scale)))
    if name == "Staircase":
        return lambda z: _staircase_tail(max(z, mp.mpf(0)), real(law.epsilon), real(law.gamma))
    if name == "HeavyTail":
        return lambda z: _heavy_tail(max(z, mp.mpf(0)), real(law.gamma))
    raise AssertionError(name)


def _staircase_tail(z: Any, epsilon: Any, gamma: Any) -> Any:
    s = mp.exp(-epsilon)
    height = (1 - s) / (gamma + s * (1 - gamma))  # of both sides together
    step = mp.floor(z)
    place = z - step
    return s**step * (1 - height * (min(place, gamma) + s * max(place - gamma, 0)))


def _heavy_tail(z: Any, gamma: Any) -> Any:
    total = mp.pi / gamma / mp.sin(mp.pi / gamma)
    if z <= 1:
        return 1 - z * mp.hyp2f1(1, 1 / gamma, 1 + 1 / gamma, -(z**gamma)) / total
    v, a = 1 / z, 1 - 1 / gamma
    return v ** (gamma - 1) / (gamma - 1) * mp.hyp2f1(1, a, 1 + a, -(v**gamma)) / total


def nearest_integer(u: Any, negative: bool, tail: Tail, scale: Fraction, fraction: Fraction, near: int = 0) -> int:
    """The integer nearest to fraction + scale * Z for the real number U = u, by bisection on the tail."""
    sign = -1 if negative else 1

    def reached(k: int) -> bool:
        return bool(u < tail(real((k - Fraction(1, 2) - sign * fraction) / scale)))

    low, high, step = sign * near - 1, sign * near + 1, 1
    while not reached(low):
        low, step = low - step, 2 * step
    while reached(high):
        high, step = high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reached(middle) else (low, middle)
    return sign * low


def words_beside(boundary: Any, first: int, extra: int, above: bool) -> list[int]:
    """Words of a U that has the first ``first + 64 * (extra - 1)`` bits of ``boundary`` and then leaves it by a little.

    ``extra`` words beyond the first are then needed, and are enough, to tell on which side it lies.
    """
    bits = first + 64 * extra
    value = int(mp.floor(boundary * mp.mpf(2) ** bits))
    last = value % (1 << 64)
    # far enough for an enclosure a few units wide, near enough to leave the bits before alone
    room = (1 << 64) - 1 - last if above else last
    moved = min(1 << 40, room)
    assert moved > 64
    value += moved if above else -moved
    return [value >> (64 * extra), *((value >> (64 * i)) % (1 << 64) for i in reversed(range(extra)))]


def surprise(counts: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """An upper bound on the chance of counts as odd as these, if the probabilities are right.

    Cells and running totals are tested by the exact binomial law and combined by the union bound, so small cells
    cannot raise a false alarm; a chi-square over the cells that are large enough for it sees spread-out errors.
    """
    total = int(counts.sum())
    p = np.clip(np.concatenate([probabilities, np.cumsum(probabilities)[:-1]]), 0.0, 1.0)
    k = np.concatenate([counts, np.cumsum(counts)[:-1]])
    smaller = np.minimum(stats.binom.cdf(k, total, p), stats.binom.sf(k - 1, total, p))
    exact = min(1.0, 2 * len(p) * float(smaller.min()))
    big = probabilities * total >= 500
    expected, seen = probabilities[big] * total, counts[big]
    if not big.all():
        expected = np.append(expected, max(total - expected.sum(), 1e-300))
        seen = np.append(seen, total - seen.sum())
        if expected[-1] < 500:
            expected, seen = expected[:-1], seen[:-1]
    spread = float(stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), max(len(expected), 1)))
    return min(1.0, 2 * min(exact, spread))


def integer_edges(scale: float) -> NDArray[np.float64]:
    """Right ends of cells: every integer for small scales, even steps of the scale for large ones."""
    if scale <= 20:
        extent = math.ceil(12 * scale) + 2
        return np.arange(-extent, extent + 1, dtype=np.float64)
    return np.unique(np.rint(scale * np.linspace(-8, 8, 129)))


def assert_distribution(
    sample: NDArray[Any], cdf_for: Callable[[float], Cdf], scale: float, *, detectable: bool = True
) -> None:
    """The sample passes at ``scale`` and is refused at 0.9 and 1.1 times it, each with error at most 1e-9.

    ``detectable=False`` is for laws so narrow that no sample tells these scales apart.
    """
    edges = integer_edges(scale)
    cells = np.searchsorted(edges, sample, side="left")
    counts = np.bincount(cells, minlength=len(edges) + 1).astype(np.int64)

    def judge(candidate: float) -> float:
        below = cdf_for(candidate)(edges)
        return surprise(counts, np.clip(np.diff(np.concatenate([[0.0], below, [1.0]])), 0.0, 1.0))

    assert judge(scale) > FALSE_ALARM, "the sample does not follow its law"
    if detectable:
        assert judge(0.9 * scale) < FALSE_ALARM, "the test cannot see a scale 10% too small"
        assert judge(1.1 * scale) < FALSE_ALARM, "the test cannot see a scale 10% too large"


def assert_uniform(cells: NDArray[Any], count: int) -> None:
    """Cells 0 .. count-1 are equally likely; the same test refuses a tilt of the kind a lost bit leaves."""
    counts = np.bincount(cells.astype(np.int64), minlength=count)
    even = np.full(count, 1 / count)
    assert surprise(counts, even) > FALSE_ALARM
    if count > 1:
        tilted = even * np.where(np.arange(count) % 2, 0.9, 1.1)
        assert surprise(counts, tilted / tilted.sum()) < FALSE_ALARM


def label(value: object) -> str:
    """A name for a parameter that is the same in every process: its repr without addresses."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def visits_card(*settings: str, budget_delta: str | None = None) -> str:
    """The card of a table of visits, as a steward would write it; ``settings`` are more lines at its top.

    ``budget_delta`` is the delta of the budget, as it is written.
    """
    lines = ['name = "visits"', 'source = "visits.csv"', 'unit = "who"', 'ledger = "visits.ledger"', *settings]
    delta = [] if budget_delta is None else [f"delta = {budget_delta}"]
    return "\n".join([*lines, "[budget]", "epsilon = 20", *delta, _COLUMNS])


_COLUMNS = """
[columns.who]
type = "integer"
[columns.region]
type = "text"
keys = ["north", "south"]
[columns.amount]
type = "number"
bounds = [0, 40]
[columns.day]
type = "date"
"""


def load_script(name: str) -> ModuleType:
    """A script of the folder ``scripts`` as a module."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
