"""Python expressions and method calls to a question's tree."""
