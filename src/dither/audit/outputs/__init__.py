"""Outputs of arbitrary type: how they are observed, their canonical form, and their exact comparison."""
