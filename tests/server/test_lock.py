"""One server for one SQLite file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dither.errors import InvalidArgument
from dither.server.config import Config
from dither.server.service import Service


def test_a_second_server_on_the_same_folder_is_refused(tmp_path):
    """It would give up what the first has under way, and record incidents of charges that are then answered."""
    config = Config(folder=str(tmp_path), warm=False, workers=1)
    first = Service.start(config)
    (tmp_path / "again").symlink_to(tmp_path)
    try:
        for folder in (tmp_path, tmp_path / "again"):
            with pytest.raises(InvalidArgument, match="Another server"):
                Service.start(replace(config, folder=str(folder)))
        assert first.auth.first_link() is not None  # the first one goes on
    finally:
        first.stop()
    Service.start(config).stop()
