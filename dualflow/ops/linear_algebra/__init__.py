"""Ops of matrices: diagonals, bands, norms and decompositions."""
