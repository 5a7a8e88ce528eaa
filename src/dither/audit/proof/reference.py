"""Comparison of the modules of dither in memory with what their files define.

Every module that a certificate depends on is executed a second time, from its file, in a separate namespace. The
module in memory must be equal to that namespace: the same names, functions with the same code, defaults and closures,
classes with the same bases and members, instances with the same attributes, arrays with the same content. Imported
objects are identical in both, and the modules they come from are compared separately. There is no list of what to
compare, and it does not matter when something was changed.

Objects imported from outside of dither cannot be compared in this way. A function of the standard library or of NumPy
that a module uses by name must be defined in a file of that library, and ``os.urandom`` must be the built-in function.

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

from dither.public_module import DEFINED_IN, defining_module

Namespace = dict[str, Any]
Pairs = dict[tuple[int, int], tuple[Any, Any]]

_ROOTS = ("dither.audit.proof.certify", "dither.mechanisms", "dither.randomness")
_NOT_IMPORTED_FROM = frozenset({"dither", "dither.audit", "dither.local"})
_FOLDER = Path(__file__).parents[2]
_STANDARD = str(Path(str(os.__file__)).parent)
_INSTALLED = tuple(str(Path(_STANDARD) / name) for name in ("site-packages", "dist-packages"))
_COUNTERS = frozenset({"dither.stateful._forks"})  # it counts forks
_IMPORT_SYSTEM = frozenset(
    {"__builtins__", "__cached__", "__doc__", "__file__", "__loader__", "__name__", "__package__", "__path__"}
    | {"__spec__", "__warningregistry__"}
)
_DOCUMENTATION = frozenset(
    {"__doc__", "__annotations__", "__module__", "__qualname__", "_abc_impl", "__slotnames__", DEFINED_IN}
)
_LRU_CACHE: Any = type(lru_cache(maxsize=1)(len))
_BY_VALUE = (bool, int, float, complex, str, bytes, CodeType, re.Pattern, range, slice, type(None), type(Ellipsis))
_WRAPPERS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (staticmethod, ("__func__",)),
    (classmethod, ("__func__",)),
    (property, ("fget", "fset", "fdel")),
    (functools.cached_property, ("func", "attrname")),
    (_LRU_CACHE, ("__wrapped__",)),
    (functools.partial, ("func", "args", "keywords")),
)
_ADDRESS = re.compile(r"\b0x[0-9a-f]+")


def changed_names() -> list[str]:
    """The names of everything that differs from what the files of dither define, or else of libraries."""
    result = [name for name in sorted(reference_modules()) for name in _module_changes(name)]
    return result or _changed_libraries()


def clear_caches() -> None:
    """Clear the caches of functions in these modules, which may date from before a change was undone."""
    for name in reference_modules():
        for value in vars(sys.modules[name]).values():
            cached = isinstance(value, _LRU_CACHE) and value.__module__ == name != __name__
            if cached and not _is_cached_constant(value):
                value.cache_clear()


@lru_cache(maxsize=1)
def reference_modules() -> Mapping[str, Namespace]:
    """A second execution of every module that a certificate depends on, by name: the roots and all their imports."""
    result: dict[str, Namespace] = {}
    waiting = [name for name in sys.modules if name in _ROOTS or name.startswith(tuple(f"{r}." for r in _ROOTS))]
    while waiting:
        name = waiting.pop()
        if name in result:
            continue
        result[name] = _executed(name)
        for value in result[name].values():
            module = value.__name__ if isinstance(value, ModuleType) else _home(value)
            if isinstance(module, str) and module.startswith("dither."):
                waiting.append(module)
        parent = name.rpartition(".")[0]  # names are imported from packages, too
        if parent not in _NOT_IMPORTED_FROM:
            waiting.append(parent)
    return result


def _home(value: object) -> object:
    """The module that defines a value: that of its code, also where a class is named by its public home."""
    kind = value if isinstance(value, type) else type(value)
    return defining_module(kind) if DEFINED_IN in vars(kind) else getattr(value, "__module__", None)


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
    actual = vars(module)
    if actual.get("__builtins__") not in (vars(builtins), builtins):
        yield f"{name}.__builtins__"
    compared: Pairs = {}
    for key in sorted((expected.keys() | actual.keys()) - _IMPORT_SYSTEM):
        if key not in expected and not key.isidentifier():  # no code can refer to it; pytest leaves such names
            continue
        qualified, value = f"{name}.{key}", actual.get(key)
        if isinstance(value, ModuleType) and sys.modules.get(value.__name__) is not value:
            yield qualified
        elif key in expected and key in actual:
            if qualified not in _COUNTERS:
                yield from _changes(expected[key], actual[key], qualified, (expected, actual), compared)
        elif key in expected or value is not sys.modules.get(qualified):  # submodules are attributes of their package
            yield qualified


def _changes(
    expected: Any, actual: Any, name: str, spaces: tuple[Namespace, Namespace], compared: Pairs
) -> Iterator[str]:
    """The names of all parts that differ from what the file defines."""
    pair = id(expected), id(actual)
    if expected is actual or pair in compared:
        return
    qualified_name = str(getattr(expected, "__qualname__", ""))
    if (
        isinstance(expected, (type, FunctionType))
        and spaces[0].get(qualified_name) is expected
        and name != _full_name(qualified_name, spaces)
    ):
        if spaces[1].get(qualified_name) is not actual:  # it is compared where the module defines it
            yield name
        return
    compared[pair] = expected, actual  # kept alive, so that their ids are not reused
    if isinstance(expected, type) and isinstance(actual, type):
        yield from _class_changes(expected, actual, name, spaces, compared)
        return
    if type(expected) is not type(actual):
        kind = type(expected).__qualname__  # a class of the same module, which is compared where it is defined
        if spaces[0].get(kind) is not type(expected) or spaces[1].get(kind) is not type(actual):
            yield name
            return
    if isinstance(expected, _BY_VALUE):
        if expected != actual or repr(expected) != repr(actual):
            yield name
    elif isinstance(expected, np.ndarray):
        same_shape = expected.dtype == actual.dtype and expected.shape == actual.shape
        if not same_shape or expected.tobytes() != actual.tobytes():
            yield name
    elif isinstance(expected, memoryview):
        if expected.tobytes() != actual.tobytes():
            yield name
    elif isinstance(expected, FunctionType):
        yield from _function_changes(expected, actual, name, spaces, compared)
    elif isinstance(expected, (tuple, list)):
        if len(expected) != len(actual):
            yield name
        for index, (one, other) in enumerate(zip(expected, actual, strict=False)):
            yield from _changes(one, other, f"{name}[{index}]", spaces, compared)
    elif isinstance(expected, Mapping):
        yield from _changes([*expected], [*actual], f"{name} keys", spaces, compared)
        for (key, one), other in zip([*expected.items()], [*actual.values()], strict=False):
            yield from _changes(one, other, f"{name}[{key!r}]", spaces, compared)
    elif isinstance(expected, (set, frozenset)):
        yield from _changes(sorted(expected, key=repr), sorted(actual, key=repr), name, spaces, compared)
    elif isinstance(expected, (GetSetDescriptorType, MemberDescriptorType)):
        yield from _changes(expected.__objclass__, actual.__objclass__, name, spaces, compared)
        if expected.__name__ != actual.__name__:
            yield name
    elif isinstance(expected, CellType):
        yield from _changes(_content(expected), _content(actual), name, spaces, compared)
    elif isinstance(expected, ContextVar):
        if expected.name != actual.name:
            yield name
    elif not isinstance(expected, threading.local):  # which differs between threads
        yield from _object_changes(expected, actual, name, spaces, compared)


def _full_name(qualified_name: str, spaces: tuple[Namespace, Namespace]) -> str:
    return f"{spaces[0]['__name__']}.{qualified_name}"


def _class_changes(
    expected: type, actual: type, name: str, spaces: tuple[Namespace, Namespace], compared: Pairs
) -> Iterator[str]:
    if (_home(expected), expected.__qualname__) != (_home(actual), actual.__qualname__):
        yield name
        return
    if _home(expected) != spaces[0]["__name__"]:  # an imported class must be identical
        yield name
        return
    yield from _changes(expected.__bases__, actual.__bases__, f"{name}.__bases__", spaces, compared)
    if type(expected) is not type(actual):
        yield f"{name}.__class__"
    one, other = vars(expected), vars(actual)
    for key in sorted((one.keys() | other.keys()) - _DOCUMENTATION):
        if key in one and key in other:
            yield from _changes(one[key], other[key], f"{name}.{key}", spaces, compared)
        else:
            yield f"{name}.{key}"


def _function_changes(
    expected: FunctionType, actual: FunctionType, name: str, spaces: tuple[Namespace, Namespace], compared: Pairs
) -> Iterator[str]:
    if expected.__code__ != actual.__code__:
        yield name
    if expected.__globals__ is spaces[0]:
        if actual.__globals__ is not spaces[1]:
            yield f"{name}.__globals__"
    elif expected.__globals__ is not actual.__globals__:  # a namespace of its own, as namedtuple creates
        one, other = (
            {key: value for key, value in instance.__globals__.items() if key not in _IMPORT_SYSTEM}
            for instance in (expected, actual)
        )
        yield from _changes(one, other, f"{name}.__globals__", spaces, compared)
    for part in ("__defaults__", "__kwdefaults__", "__closure__", "__dict__"):
        yield from _changes(getattr(expected, part), getattr(actual, part), f"{name}.{part}", spaces, compared)


def _object_changes(
    expected: Any, actual: Any, name: str, spaces: tuple[Namespace, Namespace], compared: Pairs
) -> Iterator[str]:
    for kind, parts in _WRAPPERS:
        if isinstance(expected, kind):
            for part in parts:
                yield from _changes(getattr(expected, part), getattr(actual, part), f"{name}.{part}", spaces, compared)
            if _is_cached_constant(actual):
                cached: tuple[Any, Any] = (expected, actual)
                yield from _changes(cached[0](), cached[1](), f"{name}()", spaces, compared)
            return
    one, other = _attributes(expected), _attributes(actual)
    for key in other.keys() - one.keys():  # cached properties are recomputed
        if isinstance(getattr(type(expected), key, None), functools.cached_property):
            one[key] = getattr(expected, key)
    for key in sorted(one.keys() | other.keys()):
        if key in one and key in other:
            yield from _changes(one[key], other[key], f"{name}.{key}", spaces, compared)
        elif key in other or not isinstance(getattr(type(expected), key, None), functools.cached_property):
            yield f"{name}.{key}"
    unknown = not one and not defining_module(type(expected)).startswith("dither.")  # such as a type alias
    if unknown and _ADDRESS.sub("", repr(expected)) != _ADDRESS.sub("", repr(actual)):
        yield name


def _is_cached_constant(function: Any) -> bool:
    """Whether this is the cache of a function without parameters, whose result is compared rather than cleared."""
    return (
        isinstance(function, _LRU_CACHE)
        and function.__module__ != __name__
        and not function.__wrapped__.__code__.co_argcount
        and function.cache_info().currsize > 0
    )


def _attributes(instance: Any) -> dict[str, Any]:
    """Everything stored in the slots and the ``__dict__`` of an instance, bypassing its class."""
    result: dict[str, Any] = {}
    for base in type.__getattribute__(type(instance), "__mro__"):
        for name, member in vars(base).items():
            if isinstance(member, MemberDescriptorType) and name not in _DOCUMENTATION:
                with suppress(AttributeError):  # an unset slot
                    result[name] = member.__get__(instance)
    with suppress(AttributeError, TypeError):
        actual = object.__getattribute__(instance, "__dict__")
        result |= {name: value for name, value in actual.items() if name not in _DOCUMENTATION}
    return result


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not yet bound
        return None


def _changed_libraries() -> list[str]:
    result = [] if os.urandom is getattr(sys.modules[os.name], "urandom", None) else ["os.urandom"]
    for module, name in sorted(_library_names()):
        value: Any = getattr(sys.modules.get(module), name, None)
        owner = value.__self__ if isinstance(value, BuiltinFunctionType) else None
        moved = isinstance(owner, ModuleType) and getattr(owner, value.__name__, value) is not value
        if moved or (isinstance(value, FunctionType) and not _defined_in_library(value, module)):
            result.append(f"{module}.{name}")
    return result


def _defined_in_library(function: FunctionType, library: str) -> bool:
    """Whether a Python function was defined in a file of this library."""
    written, top = function.__code__.co_filename, library.partition(".")[0]
    if top in sys.stdlib_module_names:
        return written.startswith(("<frozen ", _STANDARD)) and not written.startswith(_INSTALLED)
    paths = getattr(sys.modules.get(top), "__path__", ())
    return written.startswith((*(f"{path}{os.sep}" for path in paths), "<__array_function__ "))


@lru_cache(maxsize=1)
def _library_names() -> frozenset[tuple[str, str]]:
    """The attributes of modules outside of dither, and the built-ins, that the code refers to by name."""
    result: set[tuple[str, str]] = set()
    for name, namespace in reference_modules().items():
        loader = namespace["__spec__"].loader
        names = {*_names(loader.get_code(name))}
        modules = [v for v in namespace.values() if isinstance(v, ModuleType) and not v.__name__.startswith("dither")]
        for module in (*modules, builtins):
            result |= {(module.__name__, used_name) for used_name in names & vars(module).keys()}
    return frozenset(result)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
