"""Public classes are named by the package that users import them from: ``dither.Laplace``, not the file of its code.

A package declares this for everything in its ``__all__`` (:func:`name_by_home`), a class that is loaded later declares
it itself (:func:`public_in`). A class that two packages offer is named by the shorter of the two. ``pickle`` stores
that name, so a pickle survives when code moves to another file. :func:`defining_module` is the module of its file, for
code that compares files. The annotations of a renamed class still refer to the names of that module, so that
``typing.get_type_hints`` reads them.

>>> import dither as dp
>>> dp.Laplace
<class 'dither.Laplace'>
>>> defining_module(dp.Laplace)
'dither.mechanisms.laplace'
>>> import typing
>>> typing.get_type_hints(dp.audit.Certificate)["claim"]
<class 'dither.Guarantee'>
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import ForwardRef, TypeVar

Kind = TypeVar("Kind", bound=type)

DEFINED_IN = "__defined_in__"
"""The attribute of a renamed class that holds the module of its code."""


def public_in(home: str) -> Callable[[Kind], Kind]:
    """Decorate a class so that it is named by its public module.

    It must be the outermost one, since ``dataclass`` evaluates annotations in the module that the class names.

    >>> @public_in("dither")
    ... class Table:
    ...     pass
    >>> Table.__module__
    'dither'
    """

    def rename(kind: Kind) -> Kind:
        """Name the class by its public module, unless it already has a shorter one."""
        if DEFINED_IN not in vars(kind):
            type.__setattr__(kind, DEFINED_IN, kind.__module__)
            _refer_to_defining_module(kind)
        elif len(kind.__module__) <= len(home):
            return kind
        type.__setattr__(kind, "__module__", home)
        return kind

    return rename


def _refer_to_defining_module(kind: type) -> None:
    """Make the textual annotations of a class resolve in the module of its code."""
    annotations = vars(kind).get("__annotations__", {})
    for name, annotation in annotations.items():
        if isinstance(annotation, str):
            annotations[name] = ForwardRef(annotation, is_argument=False, module=kind.__module__, is_class=True)


def name_by_home(home: str, names: Iterable[str], namespace: Mapping[str, object]) -> Callable[[], list[str]]:
    """Name the classes among some public names by their public module; return the package's ``__dir__``, which lists
    these names.

    Classes of other libraries keep their names, and so do protocols: an attribute more would be one more that an object
    must have to be an instance.

    >>> class Card:
    ...     __module__ = "dither.somewhere"
    >>> public_names = name_by_home("dither", ["Card"], {"Card": Card})
    >>> Card
    <class 'dither.Card'>
    >>> public_names()
    ['Card']
    """
    for name in names:
        kind = namespace.get(name)
        if not isinstance(kind, type) or kind.__module__.partition(".")[0] != "dither" or kind.__qualname__ != name:
            continue
        if not getattr(kind, "_is_protocol", False):
            public_in(home)(kind)
    return lambda: sorted(names)


def defining_module(kind: type) -> str:
    """Return the name of the module whose file defines a class.

    >>> defining_module(dict)
    'builtins'
    """
    return str(vars(kind).get(DEFINED_IN, kind.__module__))
