"""Replay: checks that a result depends on the data only through the releases of a pipeline."""
