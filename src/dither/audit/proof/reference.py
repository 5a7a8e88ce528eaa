"""The modules of dither in memory, compared with what their files define.

Every module that a certificate rests on is executed a second time, from its file, in a namespace of its own. Whatever
the module in memory holds must be equal to what that namespace holds: the same names, functions with the same code,
defaults and closures, classes with the same bases and the same members, instances with the same attributes, arrays with
the same content. Imported objects are the same objects in both, and the modules they come from are compared by
themselves. No list of what to look at is kept, and it does not matter when something was changed.

Only what is imported from outside dither cannot be compared so. A function of the standard library or of NumPy that a
module uses by its name must come from the file of a module of that library; ``os.urandom`` must be the built-in one.

>>> changed_names()
[]
>>> import dither.mechanisms.additive as additive
>>> additive.anything = 1
>>> changed_names()
['dither.mechanisms.additive.anything']
>>> del additive.anything
"""

from __future__ import annotations

import builtins
import functools
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any

import numpy as np

Namespace = dict[str, Any]
Pairs = dict[tuple[int, int], tuple[Any, Any]]

_ROOTS = ("dither.audit.proof.certify", "dither.mechanisms", "dither.randomness")
_NOT_IMPORTED_FROM = frozenset({"dither", "dither.audit"})
_FOLDER = Path(__file__).parents[2]
_STANDARD = str(Path(str(os.__file__)).parent)
_INSTALLED = tuple(str(Path(_STANDARD) / name) for name in ("site-packages", "dist-packages"))
_COUNTERS = frozenset({"dither.forks._forks"})  # it counts forks
_IMPORT_SYSTEM = frozenset(
    {"__builtins__", "__cached__", "__doc__", "__file__", "__loader__", "__name__", "__package__", "__path__"}
    | {"__spec__", "__warningregistry__"}
)
_DOCUMENTATION = frozenset({"__doc__", "__annotations__", "__module__", "__qualname__", "_abc_impl", "__slotnames__"})
_BY_VALUE = (bool, int, float, complex, str, bytes, CodeType, re.Pattern, range, slice, type(None), type(Ellipsis))
_WRAPPERS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (staticmethod, ("__func__",)),
    (classmethod, ("__func__",)),
    (property, ("fget", "fset", "fdel")),
    (functools.cached_property, ("func", "attrname")),
    (functools._lru_cache_wrapper, ("__wrapped__",)),
    (functools.partial, ("func", "args", "keywords")),
)
_ADDRESS = re.compile(r"\b0x[0-9a-f]+")


def changed_names() -> list[str]:
    """The names of everything that is not what the files of dither define, or that a library no longer defines."""
    result = [name for name in sorted(reference_modules()) for name in _module_changes(name)]
    return result or _changed_libraries()


def clear_caches() -> None:
    """Forget what functions of these modules keep of earlier calls: it may come from before a change was undone."""
    for name in reference_modules():
        for value in vars(sys.modules[name]).values():
            cached = isinstance(value, functools._lru_cache_wrapper) and value.__module__ == name != __name__
            if cached and not _kept_constant(value):
                value.cache_clear()


@lru_cache(maxsize=1)
def reference_modules() -> Mapping[str, Namespace]:
    """A second execution of every module that a certificate rests on, by name: the roots and all that they import."""
    result: dict[str, Namespace] = {}
    waiting = [name for name in sys.modules if name in _ROOTS or name.startswith(tuple(f"{r}." for r in _ROOTS))]
    while waiting:
        name = waiting.pop()
        if name in result:
            continue
        result[name] = _executed(name)
        for value in result[name].values():
            home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if isinstance(home, str) and home.startswith("dither."):
                waiting.append(home)
        parent = name.rpartition(".")[0]  # from which names are imported, too
        if parent not in _NOT_IMPORTED_FROM:
            waiting.append(parent)
    return result


def _executed(name: str) -> Namespace:
    folder = _FOLDER.joinpath(*name.split(".")[1:-1])
    spec = PathFinder.find_spec(name, [str(folder)])
    if spec is None or spec.loader is None or not hasattr(spec.loader, "get_code"):
        raise ImportError(f"no file defines {name}")
    package = name if spec.submodule_search_locations is not None else name.rpartition(".")[0]
    namespace: Namespace = {
        "__name__": name, "__package__": package, "__spec__": spec, "__file__": spec.origin, "__loader__": spec.loader
    }  # fmt: skip
    exec(spec.loader.get_code(name), namespace)
    return namespace


def _module_changes(name: str) -> Iterator[str]:
    expected, module = reference_modules()[name], sys.modules.get(name)
    if type(module) is not ModuleType:
        yield name
        return
    held = vars(module)
    if held.get("__builtins__") not in (vars(builtins), builtins):
        yield f"{name}.__builtins__"
    compared: Pairs = {}
    for key in sorted((expected.keys() | held.keys()) - _IMPORT_SYSTEM):
        if key not in expected and not key.isidentifier():  # no code can name it; pytest leaves such
            continue
        full, value = f"{name}.{key}", held.get(key)
        if isinstance(value, ModuleType) and sys.modules.get(value.__name__) is not value:
            yield full
        elif key in expected and key in held:
            if full not in _COUNTERS:
                yield from _changes(expected[key], held[key], full, (expected, held), compared)
        elif key in expected or value is not sys.modules.get(full):  # a package has its modules as attributes
            yield full


def _changes(
    expected: Any, held: Any, name: str, spaces: tuple[Namespace, Namespace], compared: Pairs
) -> Iterator[str]:
    """The names of the parts in which a thing differs from the one that the file defines."""
    pair = id(expected), id(held)
    if expected is held or pair in compared:
        return
    own = str(getattr(expected, "__qualname__", ""))
    if isinstance(expected, (type, FunctionType)) and spaces[0].get(own) is expected and name != _place(own, spaces):
        if spaces[1].get(own) is not held:  # what the module defines is looked at in its own place
            yield name
        return
    compared[pair] = expected, held  # kept, so that no other thing gets their ids
    if isinstance(expected, type) and isinstance(held, type):
        yield from _class_changes(expected, held, name, spaces, compared)
        return
    if type(expected) is not type(held):
        kind = type(expected).__qualname__  # of the module itself, which compares it in its own place
        if spaces[0].get(kind) is not type(expected) or spaces[1].get(kind) is not type(held):
            yield name
            return
    if isinstance(expected, _BY_VALUE):
        if expected != held or repr(expected) != repr(held):
            yield name
    elif isinstance(expected, np.ndarray):
        alike = expected.dtype == held.dtype and expected.shape == held.shape
        if not alike or expected.tobytes() != held.tobytes():
            yield name
    elif isinstance(expected, memoryview):
        if expected.tobytes() != held.tobytes():
            yield name
    elif isinstance(expected, FunctionType):
        yield from _function_changes(expected, held, name, spaces, compared)
    elif isinstance(expected, (tuple, list)):
        if len(expected) != len(held):
            yield name
        for place, (one, other) in enumerate(zip(expected, held, strict=False)):
            yield from _changes(one, other, f"{name}[{place}]", spaces, compared)
    elif isinstance(expected, Mapping):
        yield from _changes([*expected], [*held], f"{name} keys", spaces, compared)
        for (key, one), other in zip([*expected.items()], [*held.values()], strict=False):
            yield from _changes(one, other, f"{name}[{key!r}]", spaces, compared)
    elif isinstance(expected, (set, frozenset)):
        yield from _changes(sorted(expected, key=repr), sorted(held, key=repr), name, spaces, compared)
    elif isinstance(expected, (GetSetDescriptorType, MemberDescriptorType)):
        yield from _changes(expected.__objclass__, held.__objclass__, name, spaces, compared)
        if expected.__name__ != held.__name__:
            yield name
    elif isinstance(expected, CellType):
        yield from _changes(_content(expected), _content(held), name, spaces, compared)
    elif isinstance(expected, ContextVar):
        if expected.name != held.name:
            yield name
    elif not isinstance(expected, threading.local):  # of each thread its own
        yield from _object_changes(expected, held, name, spaces, compared)


def _place(own: str, spaces: tuple[Namespace, Namespace]) -> str:
    return f"{spaces[0]['__name__']}.{own}"


def _class_changes(
    expected: type, held: type, name: str, spaces: tuple[Namespace, Namespace], compared: Pairs
) -> Iterator[str]:
    if (expected.__module__, expected.__qualname__) != (held.__module__, held.__qualname__):
        yield name
        return
    if expected.__module__ != spaces[0]["__name__"]:  # one that is imported must be the same one
        yield name
        return
    yield from _changes(expected.__bases__, held.__bases__, f"{name}.__bases__", spaces, compared)
    if type(expected) is not type(held):
        yield f"{name}.__class__"
    one, other = vars(expected), vars(held)
    for key in sorted((one.keys() | other.keys()) - _DOCUMENTATION):
        if key in one and key in other:
            yield from _changes(one[key], other[key], f"{name}.{key}", spaces, compared)
        else:
            yield f"{name}.{key}"


def _function_changes(
    expected: FunctionType, held: FunctionType, name: str, spaces: tuple[Namespace, Namespace], compared: Pairs
) -> Iterator[str]:
    if expected.__code__ != held.__code__:
        yield name
    if expected.__globals__ is spaces[0]:
        if held.__globals__ is not spaces[1]:
            yield f"{name}.__globals__"
    elif expected.__globals__ is not held.__globals__:  # one of its own, as namedtuple gives
        one, other = (
            {key: value for key, value in thing.__globals__.items() if key not in _IMPORT_SYSTEM}
            for thing in (expected, held)
        )
        yield from _changes(one, other, f"{name}.__globals__", spaces, compared)
    for part in ("__defaults__", "__kwdefaults__", "__closure__", "__dict__"):
        yield from _changes(getattr(expected, part), getattr(held, part), f"{name}.{part}", spaces, compared)


def _object_changes(
    expected: Any, held: Any, name: str, spaces: tuple[Namespace, Namespace], compared: Pairs
) -> Iterator[str]:
    for kind, parts in _WRAPPERS:
        if isinstance(expected, kind):
            for part in parts:
                yield from _changes(getattr(expected, part), getattr(held, part), f"{name}.{part}", spaces, compared)
            if _kept_constant(held):
                cached: tuple[Any, Any] = (expected, held)
                yield from _changes(cached[0](), cached[1](), f"{name}()", spaces, compared)
            return
    one, other = _attributes(expected), _attributes(held)
    for key in other.keys() - one.keys():  # what is computed once and kept is computed here too
        if isinstance(getattr(type(expected), key, None), functools.cached_property):
            one[key] = getattr(expected, key)
    for key in sorted(one.keys() | other.keys()):
        if key in one and key in other:
            yield from _changes(one[key], other[key], f"{name}.{key}", spaces, compared)
        elif key in other or not isinstance(getattr(type(expected), key, None), functools.cached_property):
            yield f"{name}.{key}"
    unknown = not one and not type(expected).__module__.startswith("dither.")  # such as an alias of a type
    if unknown and _ADDRESS.sub("", repr(expected)) != _ADDRESS.sub("", repr(held)):
        yield name


def _kept_constant(function: Any) -> bool:
    """Whether a cache holds the result of a function without parameters: it is compared instead of computed anew."""
    return (
        isinstance(function, functools._lru_cache_wrapper)
        and function.__module__ != __name__
        and not function.__wrapped__.__code__.co_argcount
        and function.cache_info().currsize > 0
    )


def _attributes(thing: Any) -> dict[str, Any]:
    """What is stored in slots and in the dict of an instance, whatever its class says of its attributes."""
    result: dict[str, Any] = {}
    for base in type.__getattribute__(type(thing), "__mro__"):
        for name, member in vars(base).items():
            if isinstance(member, MemberDescriptorType) and name not in _DOCUMENTATION:
                with suppress(AttributeError):  # a slot that is not filled
                    result[name] = member.__get__(thing)
    with suppress(AttributeError, TypeError):
        held = object.__getattribute__(thing, "__dict__")
        result |= {name: value for name, value in held.items() if name not in _DOCUMENTATION}
    return result


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not yet bound
        return None


def _changed_libraries() -> list[str]:
    result = [] if os.urandom is getattr(sys.modules[os.name], "urandom", None) else ["os.urandom"]
    for module, name in sorted(_used_of_libraries()):
        value: Any = getattr(sys.modules.get(module), name, None)
        owner = value.__self__ if isinstance(value, BuiltinFunctionType) else None
        moved = isinstance(owner, ModuleType) and getattr(owner, value.__name__, value) is not value
        if moved or (isinstance(value, FunctionType) and not _at_home(value, module)):
            result.append(f"{module}.{name}")
    return result


def _at_home(function: FunctionType, library: str) -> bool:
    """Whether a Python function was defined in a file of this library."""
    written, top = function.__code__.co_filename, library.partition(".")[0]
    if top in sys.stdlib_module_names:
        return written.startswith(("<frozen ", _STANDARD)) and not written.startswith(_INSTALLED)
    paths = getattr(sys.modules.get(top), "__path__", ())
    return written.startswith((*(f"{path}{os.sep}" for path in paths), "<__array_function__ "))


@lru_cache(maxsize=1)
def _used_of_libraries() -> frozenset[tuple[str, str]]:
    """Attributes of modules outside of dither that the code uses by name, and built-in functions."""
    result: set[tuple[str, str]] = set()
    for name, namespace in reference_modules().items():
        loader = namespace["__spec__"].loader
        names = {*_names(loader.get_code(name))}
        modules = [v for v in namespace.values() if isinstance(v, ModuleType) and not v.__name__.startswith("dither")]
        for module in (*modules, builtins):
            result |= {(module.__name__, used) for used in names & vars(module).keys()}
    return frozenset(result)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


__all__ = ["changed_names", "clear_caches", "reference_modules"]
