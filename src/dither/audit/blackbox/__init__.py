"""Measurement: a lower bound on the privacy loss of any code, from its outputs alone."""
