"""Limits that follow from the machine: all processes fit into its memory, all connections into its descriptors."""

from __future__ import annotations

import resource

import pytest

from dither.errors import InvalidArgument
from dither.server import machine
from dither.server.config import Config
from support import each

GIB = 1 << 30


def grouped(root, *lines, **limits):
    """A file system of control groups."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text("".join(f"{line}\n" for line in lines))
    for place, text in limits.items():
        file = (
            root / "sys/fs/cgroup" / place.replace("__", "/").replace("_max", ".max").replace("limit", "memory.limit")
        )
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    return root


@each(
    ("lines", "limits", "expected"),
    [
        (["0::/system.slice/dither.service"],
         {"system.slice__memory_max": 4 * GIB, "system.slice__dither.service__memory_max": "max"}, 4096),
        (["0::/a"], {"a__memory_max": GIB, "memory_max": 2 * GIB}, 1024),
        (["5:cpu:/x", "4:memory:/docker/1"], {"memory__docker__1__limit_in_bytes": 3 * GIB}, 3072),
        (["4:memory:/"], {"memory__limit_in_bytes": (1 << 63) - 4096}, None),
        ([], {}, None),
    ],
)  # fmt: skip
def test_the_smallest_limit_of_all_groups_counts(tmp_path, lines, limits, expected):
    assert machine.group_memory_mb(grouped(tmp_path, *lines, **limits)) == expected


@each(("workers", "processes"), [(1, 1), (2, 1), (2, 3), (7, 2)])
def test_all_processes_together_fit(tmp_path, workers, processes):
    root = grouped(tmp_path, "0::/a", a__memory_max=16 * GIB)
    config = Config(folder=".", workers=workers, processes=processes, database="postgresql://h/d")
    each_one = machine.worker_memory_mb(config, root)
    together = processes * ((workers + 1) * each_one + machine.SERVER_MB)
    assert together <= 16 * 1024
    assert each_one == machine.MOST_WORKER_MB or together > 16 * 1024 - processes * (workers + 1)


def test_a_limit_that_does_not_fit_is_refused(tmp_path):
    root = grouped(tmp_path, "0::/a", a__memory_max=16 * GIB)
    with pytest.raises(InvalidArgument, match="at most 5290, for 3 processes in 16384 MB, got 8192"):
        machine.worker_memory_mb(Config(folder=".", memory_limit_mb=8192), root)
    assert machine.worker_memory_mb(Config(folder=".", memory_limit_mb=5290), root) == 5290
    with pytest.raises(InvalidArgument, match="workers"):
        machine.worker_memory_mb(Config(folder=".", workers=200), root)


def test_the_limit_on_open_files_is_raised():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[0] // 2, before[1]))
        assert machine.raise_descriptors() == resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= before[0]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_too_few_descriptors_are_refused():
    with pytest.raises(InvalidArgument, match="LimitNOFILE"):
        machine.most_connections(Config(folder="."), 1, 64)
