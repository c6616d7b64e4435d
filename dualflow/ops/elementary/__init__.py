"""More functions of numbers, element by element: quotients, neighbours, angles, polynomials, conversions."""

from dualflow.ops.families import load_modules

load_modules(__name__, __path__)
