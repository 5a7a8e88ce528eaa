"""A question as a tree: its nodes, their types, and the columns they name."""
