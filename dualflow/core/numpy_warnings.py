"""Calls of NumPy kernels without floating-point warnings.

For tensors, 1/0 is inf and inf - inf is nan without a warning, where NumPy reports a RuntimeWarning.
``np.errstate`` around each kernel would cost more than adding 100 floats, and a warnings filter is lost when
the ``catch_warnings`` block that saw the import ends (pytest's do). NumPy keeps its error state in a context
variable, so a kernel that runs in a context of its own is quiet for 0.03 us, and the caller's NumPy warns as
before.
"""

from __future__ import annotations

from contextvars import Context
from typing import Final

import numpy as np

_silent: Final = Context()
_silent.run(np.seterr, all="ignore")

_kernels: Final = _silent.copy()

set_for_kernels: Final = _kernels.run
"""``set_for_kernels(function, *args)`` calls a function that sets a context variable for :data:`quiet`."""

quiet: Final = _kernels.copy
"""``quiet().run(kernel, *arrays, **attrs)`` calls a kernel in a new context, since none can be reentered."""

run_quietly: Final = _silent.run
"""``run_quietly(kernel, *arrays)`` calls a kernel in a shared context, which is faster than a new one.

It raises RuntimeError if another call is using the context.
"""
