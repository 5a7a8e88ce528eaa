"""Limits that follow from the machine's memory and file descriptors.

A server whose processes may together use more than they have is killed as a whole, by the kernel, while questions are
charged; one that runs out of descriptors accepts nobody, and can start no worker. So both limits are computed from what
there is, and a configuration that does not fit is refused at the start.
"""

from __future__ import annotations

import os
import resource
from pathlib import Path

from dither.errors import InvalidArgument
from dither.server.config import Config

SERVER_MB = 512
"""Memory reserved for each serving process itself, in MB."""
MOST_WORKER_MB = 8192
_LEAST_WORKER_MB = 512
"""With less memory than this, in MB, a worker process cannot open a table."""
_MB = 1 << 20

MOST_CONNECTIONS = 2000
_LEAST_CONNECTIONS = 16
_OWN_DESCRIPTORS = 64
"""File descriptors reserved for the server itself: modules, database connections, log, and starting a process."""
_EACH_WORKER, _EACH_TABLE = 6, 6
_ROOT = Path("/")


def group_memory_mb(root: Path = _ROOT) -> int | None:
    """Return the smallest memory limit of the process's Linux control groups in MB (of 2^20 bytes), as systemd
    (``MemoryMax``) and containers set it; None without a limit."""
    limits: list[int] = []
    for version, name, start in _groups(root):
        for group in (start, *start.parents):
            try:
                text = (group / name).read_text(encoding="ascii").strip()
            except OSError:
                text = "max"
            if text.isdigit() and int(text) < 1 << 60:  # version 1 states a number without meaning for no limit
                limits.append(int(text) // _MB)
            if group == version:
                break
    return min(limits, default=None)


def _groups(root: Path) -> list[tuple[Path, str, Path]]:
    """Return the memory control groups of the process, each as the root folder of its hierarchy, the name of the file
    with the limit, and the group's own folder; ``root`` is the root of the file system."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    result, top = [], root / "sys/fs/cgroup"
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            result.append((top, "memory.max", top / path.lstrip("/")))
        elif "memory" in controllers.split(","):
            result.append((top / "memory", "memory.limit_in_bytes", top / "memory" / path.lstrip("/")))
    return result


def _physical_mb() -> int | None:
    """Return the memory of the machine in MB (of 2^20 bytes); None where the system does not report it."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None
    return size // _MB if size > 0 else None


def worker_memory_mb(config: Config, root: Path = _ROOT) -> int:
    """Return the memory that each worker process may use, in MB (of 2^20 bytes).

    It is the one configured in ``config``, refused where all workers together would not fit into the control group;
    otherwise an equal share of the group's or the machine's memory, at most 8 GiB. ``root`` is the folder under which
    the control group's files are read, another one in tests.

    >>> worker_memory_mb(Config(folder=".", memory_limit_mb=600))
    600
    """
    group = group_memory_mb(root)
    count = config.processes * (config.workers + 1)  # one more for explanations

    def share(memory: int) -> int:
        """Return each worker's equal share, in MB, of ``memory`` minus what the serving processes use."""
        return (memory - config.processes * SERVER_MB) // count

    if config.memory_limit_mb is not None:
        if group is not None and config.memory_limit_mb > share(group):
            expected = f"at most {max(0, share(group))}, for {count} processes in {group} MB"
            fix = "leave it out, have fewer workers, or raise MemoryMax or the memory of the container"
            raise InvalidArgument("memory_limit_mb", expected, config.memory_limit_mb, fix)
        return config.memory_limit_mb
    known = [memory for memory in (group, _physical_mb()) if memory is not None]
    result = min(MOST_WORKER_MB, share(min(known))) if known else MOST_WORKER_MB
    if group is None:  # the whole machine, which may swap
        return max(result, _LEAST_WORKER_MB)
    if result < _LEAST_WORKER_MB:
        expected = f"{_LEAST_WORKER_MB} MB for each of {count} processes"
        fix = "have fewer workers, or give the server more memory"
        raise InvalidArgument("workers", expected, f"{max(0, result)} MB", fix)
    return result


def raise_descriptors() -> int:
    """Raise the process's limit on open files to its hard limit, and return the new limit (2^20 if unlimited)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1 << 20 if hard == resource.RLIM_INFINITY else hard
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft


def most_connections(config: Config, tables: int, descriptors: int) -> int:
    """Return how many connections a process may accept, at most half of the ``descriptors`` that remain for them.

    Descriptors are reserved for the server, its workers, and the ledgers of ``tables`` tables; half of the rest is
    kept for the time between closing a connection and releasing its descriptor.

    >>> most_connections(Config(folder="."), 3, 8192), most_connections(Config(folder="."), 3, 256)
    (2000, 78)
    """
    needed = _OWN_DESCRIPTORS + _EACH_WORKER * (config.workers + 1) + _EACH_TABLE * tables
    result = min(MOST_CONNECTIONS, (descriptors - needed) // 2)
    if result < _LEAST_CONNECTIONS:
        expected = f"at least {needed + 2 * _LEAST_CONNECTIONS} descriptors"
        raise InvalidArgument("open files", expected, descriptors, "raise LimitNOFILE, or ulimit -n")
    return result
