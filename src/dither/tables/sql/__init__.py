"""SQL text to a question's tree."""
