"""The errors that dither raises, as one tree.

::

    DitherError
    ├── InvalidArgument (also ValueError)   a parameter is out of its range
    │   └── LimitsDiffer (also ValueError)  the limits stated are not those that the ledger holds
    ├── WrongType (also TypeError)          a parameter or the data has the wrong type
    ├── InvalidData (also ValueError)       the data cannot be used as declared
    ├── NotPrivate (also ValueError)        the request cannot be shown to be private
    ├── BudgetExceeded                      the request would spend more than an account has left
    ├── DataIncident                        an error occurred while rows were read; the charge stays
    ├── DatasetClosed                       too many incidents: closed until the steward reopens it
    ├── MissingPackage (also ImportError)   a package that an extra brings is not installed
    ├── LedgerError                         the ledger cannot be used: foreign, newer, damaged, full, locked
    │   ├── LedgerMissing                   there is no ledger at the address
    │   └── LedgerRolledBack                it does not hold the entry that a receipt was given for
    ├── AccessDenied (also PermissionError)       a server cannot authenticate or does not allow it
    ├── ServerUnavailable (also ConnectionError)  a server cannot be reached, or cannot answer now
    └── Cancelled                           a question was cancelled before its answer was there

An error has four fields, which its text is made from: ``subject``, ``expected``, ``got`` and ``fix``; ``command`` is
the fix in words of the command line, where these differ. None of them ever holds a value taken from the data: errors
are seen by people who may not see the data.

>>> import dither as dp
>>> try:
...     dp.Laplace(sensitivity=1, epsilon=-1)
... except ValueError as error:
...     print(error)
epsilon: expected a number above 0 and at most 1e+06, got -1. Fix: pass a larger epsilon, for example epsilon=1.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Self


class DitherError(Exception):
    """The root of every error dither raises on purpose.

    Parameters
    ----------
    subject
        What was wrong: the name of a parameter, a column, a file. Alone, it is the whole text.
    expected, got
        What would be right, and what was there.
    fix
        What to do.
    command
        What to do on the command line, where that differs.

    >>> error = InvalidArgument("delta", "a number in (0, 1)", 2, "pass delta=1e-6")
    >>> error.subject, error.expected, error.got, error.fix
    ('delta', 'a number in (0, 1)', '2', 'pass delta=1e-6')
    >>> print(error)
    delta: expected a number in (0, 1), got 2. Fix: pass delta=1e-6.
    """

    def __init__(
        self, subject: str = "", expected: str = "", got: object = "", fix: str = "", command: str = ""
    ) -> None:
        """Set the fields, and make the text from them."""
        self.subject, self.expected = subject, expected
        self.got, self.fix, self.command = shown(got).rstrip("."), fix.rstrip("."), (command or fix).rstrip(".")
        super().__init__(message(subject, expected, got, fix) if expected else subject)

    def __reduce__(self) -> tuple[type[DitherError], tuple[str, ...], dict[str, object]]:
        """Support copy and pickle with all fields."""
        return type(self), (self.subject, self.expected, self.got, self.fix, self.command), self.__dict__

    def __str__(self) -> str:
        """Return the text of the error."""
        return str(self.args[0])

    def within(self, prefix: str) -> Self:
        """Return the same error with a prefix before its subject, for a part of something larger.

        >>> print(InvalidArgument("epsilon", "a number", "a text", "pass a number").within("budget."))
        budget.epsilon: expected a number, got a text. Fix: pass a number.
        """
        return type(self)(prefix + self.subject, self.expected, self.got, self.fix, self.command)

    @property
    def command_text(self) -> str:
        """Return the text of the error with the fix as on the command line.

        >>> InvalidArgument("epsilon", "one", "none", *fix_by_options("pass {epsilon}", epsilon=0.5)).command_text
        'epsilon: expected one, got none. Fix: pass --epsilon 0.5.'
        """
        return message(self.subject, self.expected, self.got, self.command) if self.expected else str(self)


class InvalidArgument(DitherError, ValueError):
    """A parameter is out of its range.

    >>> issubclass(InvalidArgument, ValueError)
    True
    """


class LimitsDiffer(InvalidArgument):
    """The limits that are stated are not those that the ledger holds.

    >>> issubclass(LimitsDiffer, InvalidArgument)
    True
    """


class WrongType(DitherError, TypeError):
    """A parameter or the data has the wrong type.

    >>> issubclass(WrongType, TypeError)
    True
    """


class InvalidData(DitherError, ValueError):
    """The data cannot be used as declared; raised before anything is released.

    >>> issubclass(InvalidData, ValueError)
    True
    """


class NotPrivate(DitherError, ValueError):
    """What was asked for cannot be shown to be private, so it is refused.

    >>> issubclass(NotPrivate, ValueError)
    True
    """


class BudgetExceeded(DitherError):
    """The request would spend more than an account has left. Nothing was charged and no data was read.

    >>> issubclass(BudgetExceeded, DitherError)
    True
    """


class MissingPackage(DitherError, ImportError):
    """A package that only a part of dither needs is not installed; the message names the extra that brings it.

    >>> issubclass(MissingPackage, ImportError)
    True
    """

    def __init__(self, subject: str = "", expected: str = "", got: object = "", fix: str = "", name: str = "") -> None:
        super().__init__(subject, expected, got, fix)
        self.name = name


class DataIncident(DitherError):
    """An error occurred while rows were read. The charge stays, and the ledger has recorded the incident.

    The sentence is the same whatever the cause, and no cause is attached: what went wrong in the rows would be an
    answer without noise.

    >>> print(DataIncident())
    data: expected rows that can be read, got an error while reading them. Fix: tell the steward; the charge stays.
    """

    def __init__(self, *_: object) -> None:
        fix = "tell the steward; the charge stays"
        super().__init__("data", "rows that can be read", "an error while reading them", fix)


class DatasetClosed(DitherError):
    """Too many incidents: the dataset takes no questions until its steward reopens it. Nothing was charged.

    >>> issubclass(DatasetClosed, DitherError)
    True
    """


class LedgerError(DitherError):
    """The ledger cannot be used: it is not one, newer, damaged, rolled back, full, read-only or locked.

    >>> issubclass(LedgerError, DitherError)
    True
    """


class LedgerMissing(LedgerError):
    """There is no ledger at the stated address.

    >>> issubclass(LedgerMissing, LedgerError)
    True
    """


class LedgerRolledBack(LedgerError):
    """The ledger does not hold the entry that a receipt was given for: it is an older copy, or another one.

    >>> issubclass(LedgerRolledBack, LedgerError)
    True
    """


class AccessDenied(DitherError, PermissionError):
    """A server cannot authenticate the caller, or the caller may not do this. Nothing was charged.

    >>> issubclass(AccessDenied, PermissionError)
    True
    """


class ServerUnavailable(DitherError, ConnectionError):
    """A server cannot be reached, or cannot answer now. Asking the question again is charged once.

    >>> issubclass(ServerUnavailable, ConnectionError)
    True
    """


class Cancelled(DitherError):
    """A question was cancelled before it was answered. A charge that was made before stays.

    >>> issubclass(Cancelled, DitherError)
    True
    """


RELEASE_OPTIONS = frozenset({"epsilon", "error", "delta", "rho", "analyst", "max_groups", "max_rows", "noise", "key"})
"""The options of a release that are called the same in Python and on the command line."""


def fix_by_options(template: str, **values: object) -> tuple[str, str]:
    """Return a fix that names options of a release, as in Python and as on the command line.

    >>> fix_by_options("pass {epsilon}, or {error}", epsilon=0.5, error="1%")
    ("pass epsilon=0.5, or error='1%'", 'pass --epsilon 0.5, or --error 1%')
    >>> fix_by_options("pass {rate}", rate=0.5)
    ('pass rate=0.5', 'pass rate=0.5')
    """
    python = command = template
    for name, value in values.items():
        argument = f"{name}={_written(repr(value))}"
        option = f"--{name.replace('_', '-')} {_written(str(value))}"
        python = python.replace(f"{{{name}}}", argument)
        command = command.replace(f"{{{name}}}", option if name in RELEASE_OPTIONS else argument)
    return python, command


def _written(number: str) -> str:
    """Return a number as people write it: 1e-6 instead of 1e-06."""
    return number.replace("e-0", "e-")


def message(name: str, expected: str, got: object, fix: str) -> str:
    """Return the text of an error from its fields.

    >>> message("delta", "a number in (0, 1)", 2, "pass delta=1e-6")
    'delta: expected a number in (0, 1), got 2. Fix: pass delta=1e-6.'
    """
    return f"{name}: expected {expected}, got {shown(got).rstrip('.')}. Fix: {fix.rstrip('.')}."


def shown(value: object) -> str:
    """Return a value as text; a number too long to read by its order of magnitude.

    >>> shown(2), shown(Fraction(1, 3)), shown(-(10**5000)), shown(Fraction(1, 10**400))
    ('2', '1/3', 'about -10^5000', 'about 10^-400')
    """
    if not isinstance(value, (int, Fraction)) or max(abs(value.numerator), value.denominator) < 10**60:
        return str(value)
    digits = [math.log10(2) * part.bit_length() for part in (value.numerator, value.denominator)]
    return f"about {'-' if value < 0 else ''}10^{round(digits[0] - digits[1])}"
