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
import os
import sys
import tempfile
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
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
    if _listener is not None and (event == "open" or event.startswith(_EVENTS)):
        _listener(event, arguments)


class Watch:
    """Records what one run after the other leaves behind; used as a context manager."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._memory = _Memory(function)
        self._stack = ExitStack()
        self.warnings: list[warnings.WarningMessage] = []
        self._logged: list[tuple[Any, ...]] = []
        self._events: list[tuple[str, Any]] = []
        self._written: dict[str, bytes] = {}
        self._temporary: set[str] = set()
        self._quiet = False

    def __enter__(self) -> Watch:
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
        """Return what ``compute`` returns, and what it left behind; an error of it is raised, after everything is put
        back.
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
        if not self._quiet:
            try:
                text = record.getMessage()
            except Exception:
                text = str(record.msg)
            extra = {name: value for name, value in vars(record).items() if name not in _RECORD}
            self._logged.append((record.name, record.levelno, text, Frozen.of((record.args, extra))))

    def _listen(self, event: str, arguments: tuple[Any, ...]) -> None:
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
    _, mode, flags = (*arguments, None, None)[:3]
    if isinstance(mode, str):
        return not {*mode}.isdisjoint("wax+")
    return isinstance(flags, int) and bool(flags & _WRITING)


def _is_replacing(arguments: tuple[Any, ...]) -> bool:
    _, mode, flags = (*arguments, None, None)[:3]
    return "w" in mode if isinstance(mode, str) else isinstance(flags, int) and bool(flags & os.O_TRUNC)


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return value is None or isinstance(value, (str, bytes, int, float, os.PathLike))


def _path(value: Any) -> str | None:
    try:
        return os.path.abspath(os.fsdecode(value))
    except TypeError:
        return None


def _content(name: str) -> bytes | None:
    with suppress(OSError, ValueError):
        path = Path(name)
        if path.is_file() and path.stat().st_size <= _MAX_FILE:
            return path.read_bytes()
    return None


def _environment() -> dict[Any, Any]:
    """Return the variables of the environment, as stored: reading them one by one takes ten times as long."""
    stored: dict[Any, Any] = getattr(os.environ, "_data")  # noqa: B009
    return stored


def _modes() -> Any:
    return np.geterr(), decimal.getcontext().prec, decimal.getcontext().rounding


def _directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""


def _by_dither() -> bool:
    """Return whether an event comes from dither, from an import, which stores compiled code, or from ``os.environ``."""
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
    """Show every record to ``receive``, also those below the level of their logger; those go no further."""
    is_enabled, handle = logging.Logger.isEnabledFor, logging.Logger.handle
    handlers = [*logging.root.handlers]

    def enabled(self: logging.Logger, level: int) -> bool:
        return is_enabled(self, level) or not is_library(self.name)

    def handled(self: logging.Logger, record: logging.LogRecord) -> None:
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
    """Send a standard stream to a file, as the process sees it and as Python does; gives what was written since."""
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


class _Memory:
    """What a function can store from one call to the next: shallow copies of every place that it can reach."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self._known: dict[str, tuple[Any, Any]] | None = None
        self._changed: dict[str, dict[Any, None]] = {}

    def now(self) -> dict[str, tuple[Any, Any]]:
        """Return every place by its name: the holder and a copy of what it holds."""
        if self._known is not None:
            return self._known
        places: dict[str, tuple[Any, Any]] = {}
        seen: set[int] = set()
        stack: list[tuple[str, Any]] = [("", self._function)]
        while stack and len(places) < _MAX_PLACES:
            name, value = stack.pop()
            if id(value) in seen:
                continue
            seen.add(id(value))
            for key, holder, held, below in _places(value):
                places[f"{name}{key}"] = holder, held
                stack.extend((f"{name}{key}{suffix}", item) for suffix, item in below)
        self._known = {name: place for name, place in places.items() if place[0] is not None}
        return self._known

    def changes(self, before: dict[str, tuple[Any, Any]]) -> Iterator[Effect]:
        """Yield what was stored, as it is now: in every place, and under every key, that ever changed."""
        for name, (holder, held) in before.items():
            now = _held(name, holder)
            if not _is_same(held, now):
                self._known = None
                keys = self._changed.setdefault(name, {})
                if isinstance(held, dict) and isinstance(now, dict):
                    all_keys = dict.fromkeys([*held, *now])
                    keys |= {key: None for key in all_keys if held.get(key, _MISSING) is not now.get(key, _MISSING)}
            if name in self._changed:
                yield f"memory{name}", Frozen.of(self._content(name, held, now))

    def _content(self, name: str, held: Any, now: Any) -> Any:
        """Return what a place holds; of a dict the items that change, and of a list what was appended."""
        if isinstance(held, dict) and isinstance(now, dict):
            return [(key, now[key]) for key in self._changed[name] if key in now]
        if isinstance(held, list) and isinstance(now, list) and _is_same(held, now[: len(held)]):
            return now[len(held) :]
        return now


def remembered(function: Callable[..., Any]) -> Callable[[], None]:
    """Return a function that puts back everything which ``function`` stores as it is now."""
    before = _Memory(function).now()

    def put_back() -> None:
        for name, (holder, held) in before.items():
            if not _is_same(held, _held(name, holder)):
                _put(name, holder, held)

    return put_back


Place = tuple[str, Any, Any, list[tuple[str, Any]]]


def _places(value: Any) -> Iterator[Place]:
    """Yield the places of one object: a name, the holder, a copy of what it holds, and what can be reached from it."""
    if isinstance(value, ModuleType):
        if not value.__name__.startswith("dither"):
            yield " module", value, _module_data(value), []
        return
    if isinstance(value, MethodType):
        value_below = [(".__self__", value.__self__), (".__func__", value.__func__)]
        yield ".method", None, None, value_below
    elif isinstance(value, partial):
        yield (
            ".partial",
            None,
            None,
            [(".func", value.func), (".args", list(value.args)), (".keywords", value.keywords)],
        )
    elif isinstance(value, FunctionType):
        yield from _function_places(value)
    elif isinstance(value, CellType):
        held = _cell(value)
        yield " cell", value, held, [("", held)]
    elif isinstance(value, type):
        if not is_library(value.__module__):
            stored = _class_data(value)
            yield " class", value, stored, list(stored.items())
    elif type(value) in (list, deque, set, dict, bytearray) or isinstance(value, (dict, list)):
        if len(value) <= _MAX_SIZE:
            held = _copy(value)
            items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, deque)) else ()
            below = [(f"[{position}]", item) for position, item in enumerate(list(items)[:64])]
            yield " items", value, held, below
    elif isinstance(value, np.ndarray):
        if value.size <= _MAX_SIZE and value.dtype != object:
            yield " array", value, value.copy(), []
    elif not is_library(type(value).__module__):
        own = getattr(value, "__dict__", None)
        if isinstance(own, dict):
            yield " attributes", value, dict(own), [(f".{name}", item) for name, item in own.items()]
        yield " type", None, None, [("", type(value)), (".__call__", vars(type(value)).get("__call__"))]


def _function_places(value: FunctionType) -> Iterator[Place]:
    if is_library(value.__module__ or ""):
        return
    below: list[tuple[str, Any]] = [(f".cell {number}", cell) for number, cell in enumerate(value.__closure__ or ())]
    below += [(".defaults", list(value.__defaults__ or ())), (".keywords", value.__kwdefaults__ or {})]
    below.append((".wrapped", getattr(value, "__wrapped__", None)))
    yield " function", value, dict(vars(value)), below
    for name in sorted(_names(value.__code__)):
        held = value.__globals__.get(name, _MISSING)
        yield f" global {name}", value.__globals__, held, [("", held)]


@lru_cache(maxsize=1 << 10)
def _names(code: CodeType) -> frozenset[str]:
    """Return the globals that a function reads or writes, also in functions defined within."""
    own = {item.argval for item in dis.get_instructions(code) if item.opname.endswith(("_GLOBAL", "_NAME"))}
    below = (_names(item) for item in code.co_consts if isinstance(item, CodeType))
    return frozenset(own.difference(vars(builtins)).union(*below))


def _cell(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _class_data(kind: type) -> dict[str, Any]:
    return {
        name: item
        for name, item in vars(kind).items()
        if not (name.startswith("__") or callable(item) or hasattr(item, "__get__")) and name != "_abc_impl"
    }


def _module_data(module: ModuleType) -> dict[str, Any]:
    """Return what is stored in a module and is plain data; the rest is code."""
    stored = vars(module).items()
    return {name: item for name, item in stored if type(item) in _DATA and not name.startswith("_")}


def _copy(value: Any) -> Any:
    return (
        dict(value)
        if isinstance(value, dict)
        else type(value)(value)
        if type(value) in (set, bytearray)
        else list(value)
    )


def _held(name: str, holder: Any) -> Any:
    """Return what a place holds now."""
    if holder is None:
        return None
    place = name.rpartition(" ")[2]
    if " global " in name and isinstance(holder, dict) and name.endswith(f" global {place}"):
        return holder.get(place, _MISSING)
    if isinstance(holder, CellType):
        return _cell(holder)
    if isinstance(holder, FunctionType):
        return dict(vars(holder))
    if isinstance(holder, type):
        return _class_data(holder)
    if isinstance(holder, ModuleType):
        return _module_data(holder)
    if isinstance(holder, np.ndarray):
        return holder.copy()
    if isinstance(holder, (dict, list, deque, set, bytearray)):
        return _copy(holder)
    return dict(vars(holder))


def _put(name: str, holder: Any, held: Any) -> None:
    place = name.rpartition(" ")[2]
    with suppress(Exception):
        if isinstance(holder, dict) and name.endswith(f" global {place}"):
            if held is _MISSING:
                holder.pop(place, None)
            else:
                holder[place] = held
        elif isinstance(holder, CellType):
            holder.cell_contents = held
        elif isinstance(holder, np.ndarray):
            holder[...] = held
        elif isinstance(holder, (type, ModuleType)):
            now = _held(name, holder)
            for key in {*now} - {*held}:
                delattr(holder, key)
            for key, item in held.items():
                if now.get(key, _MISSING) is not item:
                    setattr(holder, key, item)
        elif isinstance(holder, (list, bytearray)):
            holder[:] = held
        else:
            stored: Any = holder if isinstance(holder, (dict, set, deque)) else vars(holder)
            stored.clear()
            (stored.extend if isinstance(stored, deque) else stored.update)(held)


def _is_same(one: Any, other: Any) -> bool:
    """Return whether two copies hold the same objects."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one is other or (one.shape == other.shape and one.tobytes() == other.tobytes())
    if isinstance(one, dict) and isinstance(other, (dict, MappingProxyType)):
        return one.keys() == other.keys() and all(item is other[key] for key, item in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_identical, one, other))
    if isinstance(one, (set, bytearray)) and type(one) is type(other):
        return one == other
    return one is other


def _identical(one: Any, other: Any) -> bool:
    return one is other


_MAX_ITEMS = 1 << 16
_LAZY = (GeneratorType, map, filter, zip)
_FIXED = frozenset({float, int, bool, str, bytes, type(None), np.float64, np.int64, Raised})


def _as_it_is(output: Any) -> Any:
    return output


def observe(function: Callable[..., Any], *arguments: Any, keep: Callable[[Any], Any] = _as_it_is) -> Any:
    """Return what a caller of ``function(*arguments)`` observes: its result or :class:`Raised`, within :class:`Warned`
    if it issued warnings or left anything behind. ``keep`` is applied to the result while everything is still observed.
    """
    with Watch(function) as watch:
        return _observation(function, arguments, watch, keep)


def observe_runs(function: Callable[[Any], Any], x: Any, size: int) -> list[Any]:
    """Return the observations of ``size`` runs of ``function`` on x."""
    return observe_each(function, (x for _ in range(size)))


def observe_each(
    function: Callable[[Any], Any], data: Iterable[Any], features: Callable[[Any], Any] | None = None
) -> list[Any]:
    """Return one observation for each data set, as it was right after its run; ``features`` replaces what is
    observed.
    """
    with Watch(function) as watch:
        if features is not None:
            return [feature(features, _observation(function, (x,), watch, _as_it_is)) for x in data]
        return [_observation(function, (x,), watch, fixed) for x in data]


def fixed(observed: Any) -> Any:
    """Return an output in a form that later runs cannot change."""
    if type(observed) in _FIXED:
        return observed
    return observed.copy() if type(observed) is np.ndarray and _is_bare(observed) else Frozen.of(observed)


def _is_bare(array: Any) -> bool:
    """Return whether an array is nothing but its numbers: no view, and no other order or metadata."""
    plain = array.base is None and array.flags.c_contiguous and array.dtype.metadata is None
    return bool(plain and array.dtype.char in "bhilefd")


def feature(features: Callable[[Any], Any], observation: Any) -> Any:
    """Return the feature of an output; an error stands for itself, and what was left behind is not looked at."""
    output = observation.output if isinstance(observation, Warned) else observation
    return output if isinstance(output, Raised) else features(output)


def _observation(
    function: Callable[..., Any], arguments: tuple[Any, ...], watch: Watch, keep: Callable[[Any], Any]
) -> Any:
    def compute() -> Any:
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
