"""Imported by every Python that a test starts, since this folder is on its path: seed it as the test is seeded."""

from seeded_entropy import seed_child

seed_child()
