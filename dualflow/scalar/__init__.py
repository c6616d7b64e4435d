"""Scalar functions: what an op computes for one element, as data.

An op record defines its computation as a Python function over a namespace of maths. :func:`trace` calls this
function once with traced scalars and records a :class:`ScalarFunction`: instructions in static single
assignment form. Kernels contain scalar functions, so kernels can be compared, printed and stored. A backend
renders a scalar function by :func:`evaluate`, with values of its own.

>>> from dualflow.core.dtypes import float32
>>> print(trace(lambda m, x: m.log1p(m.exp(x)) * 2.0, (float32,)))
(v0: float32) -> v4
    v1: float32 = exp(v0)
    v2: float32 = log1p(v1)
    v3: float32 = constant 2.0
    v4: float32 = multiply(v2, v3)
"""

from dualflow.scalar.evaluation import evaluate
from dualflow.scalar.ir import Instruction, ScalarFunction, ScalarOp
from dualflow.scalar.tracing import NotTraceable, trace

__all__ = ["Instruction", "NotTraceable", "ScalarFunction", "ScalarOp", "evaluate", "trace"]
