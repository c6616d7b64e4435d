"""Selects the implementation of matrix products: the backend's own, or NumPy's BLAS."""

from __future__ import annotations

import functools

from dualflow.backends.llvm.runtime.target import vector_bits
from dualflow.backends.runtime import switches
from dualflow.core.locks import imported


@functools.cache
def uses_own_gemm() -> bool:
    """Whether matrix products use the backend's own code: it is available, or there is no BLAS."""
    return not unavailable_reason() or imported("dualflow.core.blas").find() is None


@functools.cache
def unavailable_reason() -> str:
    """The reason that matrix products call NumPy's BLAS; empty if they use the backend's code."""
    if vector_bits() < 256:
        return "no wide vectors here: NumPy's BLAS is called"
    return switches.off("product")
