"""Whose matrix products run: our own, or those of NumPy's BLAS."""

from __future__ import annotations

import functools

from dualflow.backends.llvm.runtime.target import vector_bits
from dualflow.backends.runtime import switches
from dualflow.core.locks import imported


@functools.cache
def own() -> bool:
    """Whether products run in our own machine code: where it is on, or there is no other."""
    return not unavailable_reason() or imported("dualflow.core.blas").find() is None


@functools.cache
def unavailable_reason() -> str:
    """Why NumPy's BLAS is to be preferred to our own machine code; the empty string where it isn't."""
    if vector_bits() < 256:
        return "no wide vectors here: NumPy's BLAS is called"
    return switches.off("product")
