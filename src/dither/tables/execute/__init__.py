"""A plan carried out: statements run, noise added, the answer assembled."""
