"""Black-box auditing: statistical lower bounds on the epsilon of any code, from its outputs alone."""
