"""How a question is answered: what is measured, with which noise, for which part of the budget. Reads no data."""
