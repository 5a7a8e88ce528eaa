"""Running audited code and recording everything that can be observed: the result, an error, and what is left behind.

A warning is an output: an analyst who sees "invalid value encountered in divide" on one data set and not on the other
has learned something about the data. So is whatever else somebody other than the caller can read. One :class:`Watch`
follows one run after the other. It records, as outputs of the function,

* warnings, and what is written to standard output and standard error, also below Python;
* every record that is logged, whatever the level, but for those of libraries;
* files that are written, processes that are started, connections that are opened: the audit events of Python, with
  their arguments, and what is in the files afterwards;
* variables of the environment, the working directory, context variables and the modes of NumPy and ``decimal``;
* what the function stores for its next call: in its closure, in globals that it names, in attributes of functions,
  classes and objects, in its default arguments.

The environment, the directory and the context are put back after every run, so that each starts as the first did.
Categories of warnings that Python hides by default (deprecations, imports, unclosed resources) are not recorded, since
they depend on the program rather than on the data; what dither itself writes is its ledger.

>>> import warnings
>>> observe(lambda x: warnings.warn(f"{x} missing values") or x, 3)
Warned(output=3, warnings=(('UserWarning', '3 missing values'),), effects=())
>>> observe(lambda x: 1 / x, 0)
Raised(kind='ZeroDivisionError', message='division by zero')
>>> observe(lambda x: print(x), 0)
Warned(output=None, warnings=(), effects=(('standard output', '0\\n'),))
"""

from __future__ import annotations

import builtins
import contextvars
import decimal
import dis
import io
import logging
import operator
import os
import sys
import tempfile
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from types import CellType, CodeType, FunctionType, GeneratorType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from dither.audit.outputs.canonical import Frozen, Raised, Stopped, Warned, is_library

Effect = tuple[str, Any]

_HIDDEN = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_EVENTS = ("tempfile.", "os.", "shutil.", "socket.", "subprocess.", "sqlite3.connect", "syslog.", "urllib.", "ftplib.",
           "http.", "smtplib.", "imaplib.", "poplib.", "webbrowser.", "pty.", "mmap.", "signal.")  # fmt: skip
_READING = {"os.listdir", "os.scandir", "os.walk", "os.fwalk", "os.listxattr", "os.getxattr", "os.add_dll_directory",
            "os.chdir", "os.fchdir", "os.register_at_fork", "os.fork", "socket.__new__",
            "socket.gethostname", "socket.getaddrinfo", "mmap.__new__"}  # fmt: skip
_MAX_FILE = 1 << 26
_MAX_PLACES = 1 << 10
_MAX_SIZE = 1 << 14
_MISSING = object()
_DATA = frozenset({int, float, str, bytes, bool, list, dict, set, tuple, complex})
_MODES = ("numpy", "decimal")

_listener: Callable[[str, tuple[Any, ...]], None] | None = None
_hooked = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    """Pass audit events that may write, start or connect to something to the listener, if there is one."""
    if _listener is not None and (event == "open" or event.startswith(_EVENTS)):
        _listener(event, arguments)


class Watch:
    """Record what each of several runs leaves behind; a context manager, which captures the standard streams
    meanwhile.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        """Prepare to observe runs of ``function``; what it can store from one call to the next is found here."""
        self._memory = _Memory(function)
        self._stack = ExitStack()
        self.warnings: list[warnings.WarningMessage] = []
        self._logged: list[tuple[Any, ...]] = []
        self._events: list[tuple[str, Any]] = []
        self._written: dict[str, bytes] = {}
        self._temporary: set[str] = set()
        self._quiet = False

    def __enter__(self) -> Watch:
        """Start to capture the standard streams (file descriptors 1 and 2), logs, warnings and audit events."""
        with ExitStack() as stack:
            self._streams = [
                (name, stack.enter_context(_captured(number, attribute)))
                for name, number, attribute in (("standard output", 1, "stdout"), ("standard error", 2, "stderr"))
            ]
            stack.enter_context(_logging_to(self._log))
            self.warnings = stack.enter_context(warnings.catch_warnings(record=True))
            warnings.simplefilter("always")
            for category in _HIDDEN:
                warnings.simplefilter("ignore", category)
            stack.enter_context(_listening(self._listen))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def run(self, compute: Callable[[], Any]) -> tuple[Any, tuple[Effect, ...]]:
        """Return what ``compute`` returns, and the effects that it left behind.

        An error of it is raised after the environment, the directory and the modes are restored.
        """
        self.warnings.clear()
        self._logged.clear()
        self._events.clear()
        self._written.clear()
        self._temporary.clear()
        surroundings = dict(_environment()), _directory(), _modes()
        before = self._memory.now()
        inherited, context = contextvars.copy_context(), contextvars.copy_context()
        self._quiet = False
        try:
            result = context.run(compute)
        finally:
            self._quiet = True
            self.effects = tuple(self._left(surroundings, before, context, inherited))
        return result, self.effects

    def _left(self, surroundings: Any, before: Any, context: Any, inherited: Any) -> Iterator[Effect]:
        """Yield everything that a run left behind, by name, and restore the environment, the directory and the modes.

        Parameters
        ----------
        surroundings
            The environment, the working directory and the modes (of NumPy and decimal) before the run.
        before
            What the function had stored before the run.
        context, inherited
            The context variables after the run, and those that it started with.
        """
        for name, stream in self._streams:
            text = stream()
            if text:
                yield name, text
        if self._logged:
            yield "log", Frozen.of(list(self._logged))
        environment, directory, modes = surroundings
        if _environment() != environment:
            now = _environment()
            changed = {name for name in {*now, *environment} if now.get(name) != environment.get(name)}
            yield "environment", sorted((name, now.get(name)) for name in changed)
            for name in changed:
                if name in environment:
                    os.environ[os.fsdecode(name)] = os.fsdecode(environment[name])
                else:
                    del os.environ[os.fsdecode(name)]
        if _directory() != directory:
            yield "directory", _directory()
            os.chdir(directory)
        if self._events:
            yield "events", Frozen.of(list(self._events))
        for number, (name, old) in enumerate(self._written.items()):
            content = _content(name)
            if content is not None:
                yield f"file {number}", (self._shown(name), content.removeprefix(old))
        set_variables = {
            variable.name: value
            for variable, value in context.items()
            if inherited.get(variable, _MISSING) is not value and not variable.name.startswith("dither")
        }
        now_modes = context.run(_modes)
        if now_modes != modes:
            yield "modes", now_modes
            decimal.getcontext().prec, decimal.getcontext().rounding = modes[1:]  # the others belong to the context
        others = {name: value for name, value in set_variables.items() if not name.startswith(_MODES)}
        if others:
            yield "context", Frozen.of(others)
        yield from self._memory.changes(before)

    def _shown(self, name: str) -> str:
        """Return a path without the random name of a temporary file or folder."""
        for folder in self._temporary:
            if folder and (name == folder or name.startswith(f"{folder}{os.sep}")):
                return f"temporary{name.removeprefix(folder)}"
        return name

    def _log(self, record: logging.LogRecord) -> None:
        """Record a log entry, with its arguments as they are now."""
        if not self._quiet:
            try:
                text = record.getMessage()
            except Exception:
                text = str(record.msg)
            extra = {name: value for name, value in vars(record).items() if name not in _RECORD}
            self._logged.append((record.name, record.levelno, text, Frozen.of((record.args, extra))))

    def _listen(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Record an audit event that writes, starts or connects to something; remember files before they change.

        Events of dither itself, and those that this function causes, are left out. Names of temporary files are random:
        they are collected, so that :meth:`_shown` can replace them.
        """
        if self._quiet or event in _READING or (event == "open" and not _is_writing(arguments)) or _by_dither():
            return
        self._quiet = True  # what is done here is no event
        try:
            name = (_path(arguments[0]) if arguments else None) or ""
            if event.startswith("tempfile."):  # its name is random
                self._temporary.add(name)
                return
            if event in ("open", "sqlite3.connect"):
                if name and name not in self._written:
                    self._written[name] = b"" if _is_replacing(arguments) else _content(name) or b""
                return
            if self._shown(name) == name:
                self._events.append((event, Frozen.of([item for item in arguments if _is_plain(item)])))
        finally:
            self._quiet = False


_RECORD = {*vars(logging.makeLogRecord({})), "message", "asctime"}


def _is_writing(arguments: tuple[Any, ...]) -> bool:
    """Return whether the arguments of an ``open`` event say that the file can be written."""
    _, mode, flags = (*arguments, None, None)[:3]
    if isinstance(mode, str):
        return not {*mode}.isdisjoint("wax+")
    return isinstance(flags, int) and bool(flags & _WRITING)


def _is_replacing(arguments: tuple[Any, ...]) -> bool:
    """Return whether the arguments of an ``open`` event say that the file is emptied first."""
    _, mode, flags = (*arguments, None, None)[:3]
    return "w" in mode if isinstance(mode, str) else isinstance(flags, int) and bool(flags & os.O_TRUNC)


def _is_plain(value: Any) -> bool:
    """Return whether a value consists of numbers, texts and paths."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return value is None or isinstance(value, (str, bytes, int, float, os.PathLike))


def _path(value: Any) -> str | None:
    """Return an absolute path; None if the value is no path."""
    try:
        return os.path.abspath(os.fsdecode(value))
    except TypeError:
        return None


def _content(name: str) -> bytes | None:
    """Return the content of a regular file; None if it cannot be read or is too large."""
    with suppress(OSError, ValueError):
        path = Path(name)
        if path.is_file() and path.stat().st_size <= _MAX_FILE:
            return path.read_bytes()
    return None


def _environment() -> dict[Any, Any]:
    """Return the variables of the environment as they are stored: reading them one by one takes ten times as long."""
    stored: dict[Any, Any] = getattr(os.environ, "_data")  # noqa: B009
    return stored


def _modes() -> Any:
    """Return the modes of floating-point errors of NumPy, and the precision and rounding of ``decimal``."""
    return np.geterr(), decimal.getcontext().prec, decimal.getcontext().rounding


def _directory() -> str:
    """Return the working directory; an empty string if it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _by_dither() -> bool:
    """Return whether the present audit event is caused by dither's own code, by an import, or by ``os.environ``.

    Imports store compiled code, and the environment is compared as a whole. The stack is searched from the function
    that caused the event; the three innermost frames are those of the hook.
    """
    frame: Any = sys._getframe(3)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name == "os" and "environ" in frame.f_code.co_qualname.lower():  # the environment is compared as a whole
            return True
        if name.startswith(("dither.", "importlib")):
            return not name.startswith("dither.audit.")
        if not is_library(name):
            return False
        frame = frame.f_back
    return False


@contextmanager
def _listening(listener: Callable[[str, tuple[Any, ...]], None]) -> Iterator[None]:
    """Pass audit events of Python to ``listener`` while the context is open.

    A hook cannot be removed, so one is installed once and asks who listens.
    """
    global _listener, _hooked
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked = True
    before, _listener = _listener, listener
    try:
        yield
    finally:
        _listener = before


@contextmanager
def _logging_to(receive: Callable[[logging.LogRecord], None]) -> Iterator[None]:
    """Pass every log record to ``receive``, also those below the level of their logger, which go no further."""
    is_enabled, handle = logging.Logger.isEnabledFor, logging.Logger.handle
    handlers = [*logging.root.handlers]

    def enabled(self: logging.Logger, level: int) -> bool:
        """Return whether a level is enabled, which every level is for loggers of the audited code."""
        return is_enabled(self, level) or not is_library(self.name)

    def handled(self: logging.Logger, record: logging.LogRecord) -> None:
        """Pass a record to ``receive``, and to its handlers if its level is really enabled."""
        receive(record)
        if is_enabled(self, record.levelno):
            handle(self, record)

    logging.Logger.isEnabledFor, logging.Logger.handle = enabled, handled  # type: ignore[method-assign]
    try:
        yield
    finally:
        logging.Logger.isEnabledFor, logging.Logger.handle = is_enabled, handle  # type: ignore[method-assign]
        logging.root.handlers[:] = handlers  # one that was added writes to a stream which is about to be closed


@contextmanager
def _captured(number: int, attribute: str) -> Iterator[Callable[[], str]]:
    """Redirect a standard stream to a file, for the process and for Python.

    Yields a function that returns what was written since its last call. ``number`` is the file descriptor of the
    stream, and ``attribute`` its name in :mod:`sys`.
    """
    original = getattr(sys, attribute)
    with tempfile.TemporaryFile() as file, ExitStack() as stack:
        try:
            if original is not None:
                original.flush()
            saved = os.dup(number)
            os.dup2(file.fileno(), number)
            stack.callback(os.close, saved)
            stack.callback(os.dup2, saved, number)
        except (OSError, ValueError):  # there is no such stream
            pass
        stream = io.TextIOWrapper(
            io.FileIO(os.dup(file.fileno()), "w"), "utf-8", "backslashreplace", write_through=True
        )
        stack.callback(stream.close)
        setattr(sys, attribute, stream)
        stack.callback(setattr, sys, attribute, original)
        read = 0

        def written() -> str:
            """Return what was written since the last call."""
            nonlocal read
            with suppress(ValueError):
                stream.flush()
            size = os.fstat(file.fileno()).st_size
            if size == read:
                return ""
            text = os.pread(file.fileno(), size - read, read).decode("utf-8", "backslashreplace")
            read = size
            return text

        yield written


@dataclass(frozen=True, eq=False)
class _Place:
    """Something that a function can change for its next call: how to read a shallow copy of it, and to restore one."""

    name: str
    read: Callable[[], Any]
    restore: Callable[[Any], None]


_Reached = tuple[str, Any]
"""The name of an object, after that of the one from which it is reached, and the object."""


class _Memory:
    """Everything that a function can store from one call to the next, and which of it has ever changed."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self._known: dict[_Place, Any] | None = None
        self._changed: dict[str, dict[Any, None]] = {}

    def now(self) -> dict[_Place, Any]:
        """Return a shallow copy of everything that the function can store to, by its :class:`_Place`.

        At most 1,024 places are found, and they are searched once until one of them changes.
        """
        if self._known is not None:
            return self._known
        contents: dict[_Place, Any] = {}
        seen: set[int] = set()
        stack: list[_Reached] = [("", self._function)]
        while stack and len(contents) < _MAX_PLACES:
            name, value = stack.pop()
            if id(value) in seen:
                continue
            seen.add(id(value))
            places, reached = _contents(name, value)
            contents |= {place: place.read() for place in places}
            stack.extend((f"{name}{suffix}", item) for suffix, item in reached)
        self._known = contents
        return contents

    def changes(self, before: dict[_Place, Any]) -> Iterator[Effect]:
        """Yield the present content of every place that has changed in some run: of a dict, the items that have."""
        for place, held in before.items():
            now, name = place.read(), place.name
            if not _is_same(held, now):
                self._known = None
                keys = self._changed.setdefault(name, {})
                if isinstance(held, dict) and isinstance(now, dict):
                    all_keys = dict.fromkeys([*held, *now])
                    keys |= {key: None for key in all_keys if held.get(key, _MISSING) is not now.get(key, _MISSING)}
            if name in self._changed:
                yield f"memory{name}", Frozen.of(self._content(name, held, now))

    def _content(self, name: str, held: Any, now: Any) -> Any:
        """Return what is compared of a stored object: of a dict the items that change, of a list what was appended.

        ``held`` is a shallow copy of the object before the run and ``now`` one after it, which is returned for other
        objects. ``name`` is its name in ``_changed``, which has the keys that changed in any run.
        """
        if isinstance(held, dict) and isinstance(now, dict):
            return [(key, now[key]) for key in self._changed[name] if key in now]
        if isinstance(held, list) and isinstance(now, list) and _is_same(held, now[: len(held)]):
            return now[len(held) :]
        return now


def snapshot(function: Callable[..., Any]) -> Callable[[], None]:
    """Return a function that restores everything ``function`` stores to its state at the time of this call."""
    before = _Memory(function).now()

    def restore() -> None:
        """Restore every object that has changed since."""
        for place, held in before.items():
            with suppress(Exception):  # what refuses to be set cannot be restored
                if not _is_same(held, place.read()):
                    place.restore(held)

    return restore


def _contents(name: str, value: Any) -> tuple[list[_Place], list[_Reached]]:
    """Return where one object can store something (readable and restorable), and the objects reached from it.

    ``name`` is the path to the object ``value``. Functions, classes and instances of Python and of installed packages
    are not examined, nor are containers of more than 2^14 items.
    """
    if isinstance(value, ModuleType):
        is_own = value.__name__.startswith("dither")
        return [] if is_own else [_selected_attributes(f"{name} module", value, _module_data)], []
    if isinstance(value, MethodType):
        return [], [(".method.__self__", value.__self__), (".method.__func__", value.__func__)]
    if isinstance(value, partial):
        parts = (".func", value.func), (".args", list(value.args)), (".keywords", value.keywords)
        return [], [(f".partial{key}", item) for key, item in parts]
    if isinstance(value, FunctionType):
        return ([], []) if is_library(value.__module__ or "") else _contents_of_function(name, value)
    if isinstance(value, CellType):
        place = _Place(f"{name} cell", partial(_read_cell, value), partial(_restore_cell, value))
        return [place], [(" cell", _read_cell(value))]
    if isinstance(value, type):
        if is_library(value.__module__):
            return [], []
        stored = [(f" class.{key}", item) for key, item in _class_data(value).items()]
        return [_selected_attributes(f"{name} class", value, _class_data)], stored
    if type(value) in (list, deque, set, dict, bytearray) or isinstance(value, (dict, list)):
        if len(value) > _MAX_SIZE:
            return [], []
        items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, deque)) else ()
        reached = [(f" items[{position}]", item) for position, item in enumerate(list(items)[:64])]
        return [_Place(f"{name} items", partial(_copy, value), partial(_refill, value))], reached
    if isinstance(value, np.ndarray):
        is_small = value.size <= _MAX_SIZE and value.dtype != object
        return [_Place(f"{name} array", value.copy, partial(value.__setitem__, ...))] if is_small else [], []
    return ([], []) if is_library(type(value).__module__) else _contents_of_instance(name, value)


def _contents_of_function(name: str, value: FunctionType) -> tuple[list[_Place], list[_Reached]]:
    """Return the attributes of a function and the globals that it names, with its closure and default arguments."""
    below: list[_Reached] = [(f".cell {number}", cell) for number, cell in enumerate(value.__closure__ or ())]
    below += [(".defaults", list(value.__defaults__ or ())), (".keywords", value.__kwdefaults__ or {})]
    below.append((".wrapped", getattr(value, "__wrapped__", None)))
    places = [_all_attributes(f"{name} function", value)]
    reached = [(f" function{suffix}", item) for suffix, item in below]
    variables = value.__globals__
    for key in sorted(_names(value.__code__)):
        read, restore = partial(variables.get, key, _MISSING), partial(_restore_item, variables, key)
        places.append(_Place(f"{name} global {key}", read, restore))
        reached.append((f" global {key}", variables.get(key, _MISSING)))
    return places, reached


def _contents_of_instance(name: str, value: Any) -> tuple[list[_Place], list[_Reached]]:
    """Return the attributes of an instance, with its class and the method that is called when the instance is.

    The first list has its attributes as one place that can be restored (none if it has no ``__dict__``), the second the
    objects that are reached from it.
    """
    reached: list[_Reached] = [(" type", type(value)), (" type.__call__", vars(type(value)).get("__call__"))]
    own = getattr(value, "__dict__", None)
    if not isinstance(own, dict):
        return [], reached
    attributes = [(f" attributes.{key}", item) for key, item in own.items()]
    return [_all_attributes(f"{name} attributes", value)], [*attributes, *reached]


@lru_cache(maxsize=1 << 10)
def _names(code: CodeType) -> frozenset[str]:
    """Return the globals that a function reads or writes, also in functions defined within."""
    own = {item.argval for item in dis.get_instructions(code) if item.opname.endswith(("_GLOBAL", "_NAME"))}
    below = (_names(item) for item in code.co_consts if isinstance(item, CodeType))
    return frozenset(own.difference(vars(builtins)).union(*below))


def _read_cell(cell: CellType) -> Any:
    """Return the variable of a closure; ``_MISSING`` if it has no value yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _restore_cell(cell: CellType, held: Any) -> None:
    """Set the variable of a closure to ``held``, or remove its value if it had none (``_MISSING``)."""
    if held is _MISSING:
        del cell.cell_contents
    else:
        cell.cell_contents = held


def _restore_item(items: dict[str, Any], key: str, held: Any) -> None:
    """Set the global variable ``key`` to ``held``, or remove it if it did not exist (``_MISSING``)."""
    if held is _MISSING:
        items.pop(key, None)
    else:
        items[key] = held


def _all_attributes(name: str, owner: Any) -> _Place:
    """Return how to read and restore all attributes of a function or instance, its ``__dict__``."""
    return _Place(name, lambda: dict(vars(owner)), lambda held: _refill(vars(owner), held))


def _selected_attributes(name: str, owner: Any, read: Callable[[Any], dict[str, Any]]) -> _Place:
    """Return the place for those attributes of a class or module that ``read`` selects."""

    def restore(held: dict[str, Any]) -> None:
        """Set the selected attributes to those of ``held``, and delete all others."""
        now = read(owner)
        for key in {*now} - {*held}:
            delattr(owner, key)
        for key, item in held.items():
            if now.get(key, _MISSING) is not item:
                setattr(owner, key, item)

    return _Place(name, partial(read, owner), restore)


def _class_data(kind: type) -> dict[str, Any]:
    """Return the attributes of a class that are data: neither methods nor descriptors nor special names."""
    return {
        name: item
        for name, item in vars(kind).items()
        if not (name.startswith("__") or callable(item) or hasattr(item, "__get__")) and name != "_abc_impl"
    }


def _module_data(module: ModuleType) -> dict[str, Any]:
    """Return the public variables of a module that hold plain data; everything else in it is code."""
    stored = vars(module).items()
    return {name: item for name, item in stored if type(item) in _DATA and not name.startswith("_")}


def _copy(value: Any) -> Any:
    """Return a shallow copy of a container: a dict, a set, bytes, or a list for any sequence."""
    if isinstance(value, dict):
        return dict(value)
    return type(value)(value) if type(value) in (set, bytearray) else list(value)


def _refill(container: Any, held: Any) -> None:
    """Replace the content of a container by that of a copy made by :func:`_copy`."""
    if isinstance(container, (list, bytearray)):
        container[:] = held
        return
    container.clear()
    (container.extend if isinstance(container, deque) else container.update)(held)


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two shallow copies hold identical objects; arrays, sets and bytes are compared by value."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one is other or (one.shape == other.shape and one.tobytes() == other.tobytes())
    if isinstance(one, dict) and isinstance(other, (dict, MappingProxyType)):
        return one.keys() == other.keys() and all(item is other[key] for key, item in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(operator.is_, one, other))
    if isinstance(one, (set, bytearray)) and type(one) is type(other):
        return one == other
    return one is other


_MAX_ITEMS = 1 << 16
_LAZY = (GeneratorType, map, filter, zip)
_FIXED = frozenset({float, int, bool, str, bytes, type(None), np.float64, np.int64, Raised})


def observe(function: Callable[..., Any], *arguments: Any, keep: Callable[[Any], Any] = lambda output: output) -> Any:
    """Return what a caller of ``function(*arguments)`` observes: its result, or :class:`Raised`.

    It is within :class:`Warned` if warnings were issued or anything was left behind. ``keep`` is applied to the result
    while everything is still observed.
    """
    with Watch(function) as watch:
        return _observation(function, arguments, watch, keep)


def observe_runs(function: Callable[[Any], Any], x: Any, size: int) -> list[Any]:
    """Return the observations of ``size`` runs of ``function`` on x."""
    return observe_each(function, (x for _ in range(size)))


def observe_each(
    function: Callable[[Any], Any], data: Iterable[Any], features: Callable[[Any], Any] | None = None
) -> list[Any]:
    """Return the observation of one run on each data set, in a form that later runs cannot change.

    With ``features``, its result for the output is returned instead (:func:`feature`).
    """
    with Watch(function) as watch:
        if features is not None:
            return [feature(features, _observation(function, (x,), watch, lambda output: output)) for x in data]
        return [_observation(function, (x,), watch, fixed) for x in data]


def fixed(observed: Any) -> Any:
    """Return an output in a form that later runs cannot change."""
    if type(observed) in _FIXED:
        return observed
    return observed.copy() if type(observed) is np.ndarray and _is_bare(observed) else Frozen.of(observed)


def _is_bare(array: Any) -> bool:
    """Return whether an array is determined by its shape, type and numbers: no view, row-major, without metadata."""
    plain = array.base is None and array.flags.c_contiguous and array.dtype.metadata is None
    return bool(plain and array.dtype.char in "bhilefd")


def feature(features: Callable[[Any], Any], observation: Any) -> Any:
    """Return the feature of an observed output, without its effects; an error is its own feature."""
    output = observation.output if isinstance(observation, Warned) else observation
    return output if isinstance(output, Raised) else features(output)


def _observation(
    function: Callable[..., Any], arguments: tuple[Any, ...], watch: Watch, keep: Callable[[Any], Any]
) -> Any:
    """Run a function once and return its output or error, within :class:`Warned` if it left anything behind.

    ``keep`` is applied to the output at once, before later runs can change it, and ``watch`` records warnings and
    effects.
    """

    def compute() -> Any:
        """Return the output, or the error that was raised; items of lazy iterators are computed here, where they are
        observed."""
        try:
            output = function(*arguments)
            # evaluated here, so that its releases, errors and warnings are observed
            if isinstance(output, _LAZY):
                output = [*islice(output, _MAX_ITEMS)]
        except (KeyboardInterrupt, Stopped):
            raise
        except BaseException as error:
            return Raised.by(error)
        return keep(output)

    output, effects = watch.run(compute)
    warned = tuple((item.category.__qualname__, str(item.message)) for item in watch.warnings)
    return Warned(output, warned, effects) if warned or effects else output
