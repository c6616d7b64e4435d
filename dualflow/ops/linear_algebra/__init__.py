"""Ops of matrices: diagonals, bands, norms and decompositions."""

from dualflow.ops.families import load_modules

load_modules(__name__, __path__)
