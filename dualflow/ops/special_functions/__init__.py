"""Special functions of mathematics, and products that vanish with one factor."""

from dualflow.ops.families import load_modules

load_modules(__name__, __path__)
