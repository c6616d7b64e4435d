"""Functions of C's and NumPy's mathematics that TensorFlow has no names for, and what floats are made of."""

from dualflow.ops.families import load_modules

load_modules(__name__, __path__)
