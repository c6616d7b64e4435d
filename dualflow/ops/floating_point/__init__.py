"""Elementwise functions of C and NumPy that TensorFlow lacks: exp2, log2, hypot, copysign, ..."""

from dualflow.ops.families import load_modules

load_modules(__name__, __path__)
