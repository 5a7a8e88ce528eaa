"""The command ``dither serve``."""

from __future__ import annotations

from typing import Any

from dither.cli.printing import echo
from dither.extras import need


def serve(
    folder: str,
    database: str | None,
    host: str | None,
    port: int | None,
    config: str | None,
    processes: int | None,
    single_steward: bool,
) -> None:
    """Serve the cards of a folder until a signal stops it."""
    for module in ("starlette", "uvicorn", "jinja2", "argon2", "authlib", "httpx2", "python_multipart"):
        need(module, "server")
    from dither.server.config import read_config
    from dither.server.run import serve as start

    stated: dict[str, Any] = {"database": database, "host": host, "port": port, "processes": processes}
    start(read_config(folder, config, **stated, single_steward=single_steward or None), echo)
