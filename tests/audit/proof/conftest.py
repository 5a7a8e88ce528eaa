"""Shared by the tests of certificates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dither.audit.proof import integrity


@pytest.fixture(scope="module")
def code_compared_once() -> Iterator[None]:
    """Compare the code with its files once, and not again for each of hundreds of certificates.

    The comparison takes most of the time of a certificate and does not depend on the mechanism. It is tested in
    ``test_integrity.py``; every other check of ``certify`` remains in force.
    """
    assert integrity.changed_code() == []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(integrity, "changed_code", list)
        yield
