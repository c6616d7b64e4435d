"""Functions of C's and NumPy's mathematics that TensorFlow lacks, and the parts of floats."""

from dualflow.ops.families import load_modules

load_modules(__name__, __path__)
