"""Temporary folders of an engine."""

from __future__ import annotations

import shutil
import tempfile
import weakref

from dither.stateful import process


class PrivateFolder:
    """A temporary folder, removed with the object or at the end of the process that made it, and by no other."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="dither-")
        self._remove = weakref.finalize(self, _remove, self.name, process())

    def remove(self) -> None:
        """Remove it now."""
        self._remove()


def _remove(name: str, owner: tuple[int, int]) -> None:
    if process() == owner:
        shutil.rmtree(name, ignore_errors=True)
