"""Rows that belong together, told by integers: segments, partitions, and scatters that keep an extreme."""

from dualflow.ops.families import load_modules

load_modules(__name__, __path__)
