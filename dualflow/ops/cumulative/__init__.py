"""Running products and running sums of exponentials along an axis."""

from dualflow.ops.families import load_modules

load_modules(__name__, __path__)
