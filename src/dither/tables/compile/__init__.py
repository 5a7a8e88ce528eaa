"""A plan as SQL statements that mean the same on every engine and cannot fail."""
