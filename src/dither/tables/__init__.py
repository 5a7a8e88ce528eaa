"""Private questions about real tables."""
