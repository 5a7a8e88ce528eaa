"""``dither serve``, ``dither backup`` and ``dither restore``: a folder of cards on a server."""

from __future__ import annotations

import typer

from dither.cli.options import BackupOptions, RestoreOptions, ServeOptions
from dither.cli.printing import echo
from dither.extras import need
from dither.server import backup as copies
from dither.server.config import read_config


def serve(folder: str, options: ServeOptions) -> None:
    """Serve the cards of a folder until a signal stops the server."""
    for module in ("starlette", "uvicorn", "jinja2", "argon2", "authlib", "httpx2", "python_multipart"):
        need(module, "server")
    from dither.server.run import serve as start

    stated = {**vars(options), "single_steward": options.single_steward or None}
    start(read_config(folder, stated.pop("config"), **stated), echo)


_DATABASE_RESTORED = (
    "All sessions have ended, tokens are revoked, and pending changes of limits are void. Users and grants are those "
    "of the backup: deactivate again whom you have deactivated since."
)
_REFUSED = "it is refused until a newer copy is restored, or the loss is accepted with --accept-loss."
_ACCEPTED = "nothing is left in its accounts until stewards raise the limits."


def words(item: copies.Restored) -> str:
    """Return a sentence on the outcome of restoring one part of a backup.

    >>> print(words(copies.Restored("visits.sqlite", "restored", 100, 20, True)))
    visits.sqlite: restored, of entry 100. At least 20 later entries are lost, and what they charged is unknown: it is
    refused until a newer copy is restored, or the loss is accepted with --accept-loss.
    """
    if item.outcome == "missing":
        return f"{item.what}: not in this backup; PostgreSQL's own tools restore it."
    if not item.entry:
        advice = f" {_DATABASE_RESTORED}" if (item.what, item.outcome) == (copies.DATABASE, "restored") else ""
        return f"{item.what}: {item.outcome}.{advice}"
    if item.outcome == "kept" and not item.lost:
        return f"{item.what}: kept. It is intact, and holds all entries of the backup."
    start = f"{item.what}: {item.outcome}, of entry {item.entry}."
    if item.lost is None:
        return (
            f"{start} Without a receipt here it is unknown whether later entries are lost: compare one kept elsewhere."
        )
    if not item.lost:
        return f"{start} Nothing is lost."
    lost = f"At least {item.lost} later entries are lost, and what they charged is unknown"
    return f"{start} {lost}: {_REFUSED if item.refused else _ACCEPTED}"


def backup(folder: str, into: str, options: BackupOptions) -> None:
    """Copy the ledgers and the server's database of ``folder`` to the folder ``into``, and print the receipts of the
    copies.
    """
    config = read_config(folder, options.config, database=options.database)
    manifest = copies.backup(config, into, keys=options.keys)
    for saved in manifest.ledgers:
        echo(f"{saved.place}: receipt {saved.head}")
    for what in manifest.elsewhere:
        echo(f"not copied: {what}, which PostgreSQL's own tools back up (pg_dump)")
    echo(f"backup of {manifest.at} in {into}: {len(manifest.ledgers)} ledger(s), verified")


def restore(source: str, folder: str, options: RestoreOptions) -> None:
    """Restore what is missing or damaged in ``folder`` from the backup ``source``, and print what was lost.

    Exit with 1 if a ledger was not restored because charges would be lost, which ``options.accept_loss`` allows.
    """
    config = read_config(folder, options.config, database=options.database)
    result = copies.restore(
        config, source, keys=options.keys, accept_loss=options.accept_loss, signed_by=options.signed_by or "",
        reason=options.reason or "",
    )  # fmt: skip
    for item in result:
        echo(words(item))
    if any(item.refused for item in result):
        raise typer.Exit(1)
