"""Outputs of any kind in one canonical form, and whether two of them are equal."""
