"""What order tells: distinct values, places in sorted rows, the largest elements, permutations."""

from dualflow.ops.families import load_modules

load_modules(__name__, __path__)
