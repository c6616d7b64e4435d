"""Functions of floats, written once in the scalar IR: exp, sin, erf and their relatives.

Each module has one subject. Its functions take and return traced scalars of float32 or float64; the tables
of coefficients depend on the precision. :func:`definition` is the traced function of an op, which a backend
renders as a function that its kernels call. Denormals, infinities, NaN and signed zeros are right.

Largest errors, in units in the last place (float32, float64), as tested:

====================  ==========  ====================  ==========  ====================  ==========
exp                   1.0, 1.0    log                   0.9, 0.9    sin, cos              1.2, 1.2
exp2                  0.9, 0.9    log2, log10           1.7, 1.6    tan                   2.1, 2.5
expm1                 1.5, 1.2    log1p                 1.5, 1.4    asin                  2.0, 2.0
sigmoid               2.3, 2.3    asinh                 1.9, 1.8    acos                  1.1, 1.2
sinh, cosh            1.7, 1.7    acosh                 2.3, 2.0    atan                  1.2, 1.4
tanh                  1.4, 1.4    atanh                 2.2, 2.0    atan2                 1.5, 1.5
erf                   1.1, 1.1    erfc                  4.0, 3.6    pow                   0.6, 1.2
ndtr                  3.2, 3.1
====================  ==========  ====================  ==========  ====================  ==========
"""

from dualflow.scalar.maths.definitions import Definition, definition, has_fallback, is_guarded

__all__ = ["Definition", "definition", "has_fallback", "is_guarded"]
