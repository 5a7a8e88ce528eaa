"""Replay: whether anything but the releases of a pipeline depends on the data."""
