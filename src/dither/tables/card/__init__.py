"""The card of a table: what is public about it, written by its steward."""
