"""Elements moved between axes and within sequences, and shapes as values."""

from dualflow.ops.families import load_modules

load_modules(__name__, __path__)
