"""The mathematics of emitted code: vector functions written over `dualflow.backends.llvm.text` values.

`Maths` is the namespace that element code receives; the other modules hold its functions, one subject each,
as plain functions of values that know nothing of how they are called.
"""

from dualflow.backends.llvm.maths.namespace import Maths

__all__ = ["Maths"]
