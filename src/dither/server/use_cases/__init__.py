"""The use cases, by subject. Each asks the table of roles before it does anything."""
