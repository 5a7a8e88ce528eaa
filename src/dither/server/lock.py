"""One server for one SQLite file: a second one would give up the questions of the first.

The lock is of the operating system, which ends it with the process, however that ends. PostgreSQL is for several.
"""

from __future__ import annotations

import fcntl
import os

from dither.errors import InvalidArgument, LedgerError


class FolderLock:
    """The lock beside the server's SQLite file, held from the beginning on.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = FolderLock(folder + "/s.sqlite")
    ...     try:
    ...         FolderLock(folder + "/s.sqlite")
    ...     except InvalidArgument as error:
    ...         print(str(error).partition(' Fix')[0])
    ...     first.release()
    folder: expected one that no other server serves, got one that is served.
    """

    def __init__(self, place: str) -> None:
        try:  # the path itself, so that two names of one folder are one lock
            self._file = os.open(os.path.realpath(place) + ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:
            expected, fix = "a folder that can be written to", "check its place, and who may write to it"
            raise LedgerError("database", expected, "another", fix) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            fix = "stop the other server, or use PostgreSQL"
            expected = "one that no other server serves"
            raise InvalidArgument("folder", expected, "one that is served", fix) from None

    def release(self) -> None:
        """Let another server have it."""
        os.close(self._file)
